"""What is wrong with a command line, in one sentence with the remedy.

The parser's own messages speak of tokens and conversions; its errors say everything else needed.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from talkspurt._commands.options import COMMANDS, USAGE

if TYPE_CHECKING:
    from cyclopts.argument import Argument

EXPECTED = {int: "a whole number", float: "a number", bool: "no value"}


def text(error: CycloptsError, words: Sequence[str]) -> str:
    """A sentence about a command line of these words."""
    command = " ".join(error.command_chain or ())
    if isinstance(error, UnknownCommandError):
        return _no_command((error.unused_tokens or [""])[0], words, list(COMMANDS))
    if isinstance(error, UnknownOptionError):
        return f"{command}: {_no_option(command, error)}"
    if isinstance(error, UnusedCliTokensError):
        extra = " ".join(error.unused_tokens or ()) or "''"
        return f"{command}: {extra}: too many words; expected {_usage(error, command)}"
    if isinstance(error, MissingArgumentError):
        return f"{command}: {_missing(error, command)}"
    if isinstance(error, RepeatArgumentError):
        return f"{command}: {error.token.keyword}: given twice; give it once"
    if isinstance(error, CoercionError) and error.token is not None:
        return f"{command}: {_no_value(error)}"
    where = f" {command}" if command else ""
    return f"the command line cannot be read; `talkspurt{where} --help` says what it may contain"


def _no_command(word: str, words: Sequence[str], commands: list[str]) -> str:
    listed = "`talkspurt --help` lists the commands"
    command = next((one for one in words if one in commands), "")
    if word == "help":
        return f"help: no command; `{' '.join(filter(None, ['talkspurt', command]))} --help` helps"
    if word.startswith("-") and command:
        said = "stands behind a command" if word == "--" else "an option follows its command"
        return f"{word}: {said}, as in `talkspurt {command} … {word}`; {listed}"
    if word.startswith("-"):
        return f"{word}: no option; {_meant(word, ['--version', '--help'])}{listed}"
    if word.endswith(".toml"):
        return f"{word}: no command; `talkspurt run {word}` runs a scenario"
    if word and Path(word, "manifest.json").is_file():
        return f"{word}: no command; `talkspurt open {word}` opens the report of a result"
    return f"{word or repr('')}: no command; {_meant(word, commands)}{listed}"


def _no_option(command: str, error: UnknownOptionError) -> str:
    given = (error.token.keyword or error.token.value).split("=", 1)[0]
    listed = f"`talkspurt {command} --help` lists the options"
    if given == "-":
        return f"-: expected the name of a file; standard input is not read; {listed}"
    arguments = list(error.argument_collection)
    bare = given.lstrip("-")
    for one in arguments:
        if _is_positional(one) and _shown(one).lower() == bare.lower():
            usage = _usage(error, command)
            return f"{given}: {_shown(one)} is given without an option: {usage}"
        if given == f"--no-{one.name.removeprefix('--')}":
            return f"{given}: no option; leave {one.name} out"
    names = [name for one in arguments if one.parse for name in one.names if name[:1] == "-"]
    return f"{given}: no option; {_meant(given, names)}{listed}"


def _missing(error: MissingArgumentError, command: str) -> str:
    assert error.argument is not None
    given = error.keyword or next((t.keyword for t in error.argument.tokens if t.keyword), None)
    if given is not None:
        return f"{given}: expected {_expected(error.argument)} behind it"
    if _is_positional(error.argument):
        return f"{_shown(error.argument)} is missing; expected {_usage(error, command)}"
    return f"{error.argument.name} is missing; expected {_expected(error.argument)}"


def _no_value(error: CoercionError) -> str:
    assert error.token is not None
    argument = error.argument
    name = error.token.keyword or (_shown(argument) if argument else "")
    if argument is None:
        return f"{name} {error.token.value}: not understood"
    meant = _meant(error.token.value, _choices(argument.hint))
    given = error.token.value or "''"
    return f"{name} {given}: expected {_expected(argument)}{f'; {meant}'.rstrip('; ')}"


def _expected(argument: Argument) -> str:
    if offered := _choices(argument.hint):
        return f"one of {', '.join(offered)}"
    kinds = _types(argument.hint)
    return next((EXPECTED[kind] for kind in kinds if kind in EXPECTED), "") or (
        "the name of a file or folder" if Path in kinds else "a value"
    )


def _types(hint: Any) -> list[Any]:
    """The types of a hint, without those around them."""
    inner = [one for each in get_args(hint) for one in _types(each)]
    return inner or [hint]


def _choices(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return [str(one) for one in get_args(hint)]
    return [one for each in get_args(hint) for one in _choices(each)]


def _is_positional(argument: Argument) -> bool:
    return not argument.field_info.is_keyword


def _shown(argument: Argument) -> str:
    """An argument as its help names it: an option, or a word in capitals."""
    return argument.name if argument.name.startswith("-") else argument.name.upper()


def _usage(error: CycloptsError, command: str) -> str:
    if command in USAGE:
        return f"`talkspurt {command} [OPTIONS] {USAGE[command]}`"
    assert error.app is not None
    words = []
    for one in error.app.assemble_argument_collection():
        if _is_positional(one):
            words.append(_shown(one) if one.required else f"[{_shown(one)}]")
        elif one.required:
            words.append(f"{one.name} {'|'.join(_choices(one.hint)) or 'VALUE'}")
    return f"`{' '.join(['talkspurt', command, '[OPTIONS]', *words])}`"


def _meant(word: str, known: Sequence[str]) -> str:
    """Asks for the known name that a word is spelled like; empty without one."""
    near = difflib.get_close_matches(word, known, 1, 0.65)
    return f"did you mean {near[0]}? " if near else ""
