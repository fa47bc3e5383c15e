"""``talkspurt emulate``: starts commands at nodes, waits for them, and writes what was measured."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from talkspurt import ScenarioError
from talkspurt._commands.options import EmulateOptions
from talkspurt._commands.running import as_asked, say_where, sets_of
from talkspurt._storage import interrupts, output_folder, writer
from talkspurt._terminal.console import console, say
from talkspurt._terminal.progress import say_news
from talkspurt._text.escaping import print_json, visible
from talkspurt._text.format import time_text
from talkspurt.emulating import Command, Emulation, account, namespaces, read_emulated
from talkspurt.errors import BadInputError
from talkspurt.results.result import Result
from talkspurt.scenarios.resolved import duration_s, values
from talkspurt.scenarios.source import Question

WORDS = ("--at", "--serve")

CTRL_C_S = 1.0
"""Time for commands to end after Ctrl-C, before the network ends."""


@dataclass(frozen=True)
class Wanted:
    """A command to start at a node; the emulation does not wait for the end of one that serves."""

    node: str
    words: tuple[str, ...]
    serves: bool


def wanted(
    at: Sequence[str], serve: Sequence[str], rest: Sequence[str], words: Sequence[str] = ()
) -> list[Wanted]:
    """The commands of a command line: the options before the first ``--``, and what follows it.

    ``words`` are all words of the command line, in which another scenario is not behind ``--``.
    """
    if "--" in words:
        extra = rest[: len(rest) - (len(words) - words.index("--") - 1)]
        if extra:
            raise BadInputError(
                visible(
                    f"emulate: {' '.join(extra)}: expected one scenario, and commands behind --"
                )
            )
    if len(at) + len(serve) > 1:
        raise BadInputError("emulate: --at NODE and --serve NODE are followed by -- COMMAND")
    if not at and not serve:
        if rest:
            raise BadInputError("emulate: a command needs its node: --at NODE -- COMMAND")
        return []
    found = []
    serves, node, left = bool(serve), (*at, *serve)[0], list(rest)
    while True:
        # --at NODE -- begins the next command; a command's own --at has no -- behind its value.
        places = range(len(left) - 2)
        end = next((i for i in places if left[i] in WORDS and left[i + 2] == "--"), len(left))
        if end == 0:
            raise BadInputError(f"emulate: --at {node} is followed by no command")
        found.append(Wanted(node, tuple(left[:end]), serves))
        if end == len(left):
            return found
        serves, node, left = left[end] == "--serve", left[end + 1], left[end + 3 :]


def run(
    scenario: Path, commands: Sequence[Wanted], shell: str | None, options: EmulateOptions
) -> int:
    """Emulate, print and write the result; returns the exit status."""
    namespaces.act_as(namespaces.User.behind_sudo())
    if not commands and shell is None:
        raise BadInputError("emulate: needs --at NODE -- COMMAND, or --shell NODE")
    nodes = [it.node for it in commands] + ([] if shell is None else [shell])
    question, most_s = _read(scenario, nodes, options)
    out, quiet, as_json, report = options.out, options.quiet, options.json, options.report
    folder = out if out is not None else None if as_json else Path("runs") / question.name
    failure: BaseException | None = None
    # What was measured is a result, too: a stop comes when it is written.
    with interrupts.undisturbed():
        if folder is None:
            emulation = Emulation(question, nodes)
            status = _execute(emulation, commands, shell, most_s, quiet=quiet)
            answer = emulation.result
        else:
            claim = output_folder.Claim("run", question.name, question.absolute, options.overwrite)
            with output_folder.Staging(folder, claim) as staging:
                say_news(() if quiet else staging.news)
                emulation = Emulation(question, nodes, folder=staging.folder)
                status = _execute(emulation, commands, shell, most_s, quiet=quiet)
                answer = emulation.result
                writer.write_result(answer, staging.folder)
                if report:
                    from talkspurt.report import pictures

                    try:
                        pictures.of_result(answer, staging.folder)
                    except (Exception, KeyboardInterrupt, interrupts.Terminated) as error:
                        # Such as a full disk: the result is there.
                        failure = error
                # An earlier emulation's report would be of other packets.
                report = (staging.folder / output_folder.REPORT).exists()
                where = staging.commit()
                answer = answer.moved(where)
        if as_json or quiet:
            say_news(account.failures(answer.manifest["real_time"]))
        if as_json:
            print_json(answer.to_json())
        elif not quiet:
            from talkspurt._terminal import tables

            tables.print_result(answer)
            say_account(answer)
            if folder is not None:
                say_where(as_asked(where, folder), report)
        if failure is not None:
            raise failure
    return status


def _read(
    scenario: Path, nodes: Sequence[str], options: EmulateOptions
) -> tuple[Question, float | None]:
    """The scenario, and after how many seconds the emulation ends if it ends earlier."""
    length = options.duration
    if length is not None and not duration_s(length):
        raise BadInputError(
            visible(f"emulate: --for {length}: expected a time above 0, such as 20s or 2min")
        )
    pairs = sets_of(options.set)
    most_s = None
    try:
        longer = [] if length is None else [("duration", length)]
        question = read_emulated(scenario, nodes, set=[*pairs, *longer], seed=options.seed)
    except ScenarioError:
        # What begins after a shorter time is no fault, as where the commands end earlier.
        most_s = duration_s(length or "")
        question = read_emulated(scenario, nodes, set=pairs, seed=options.seed)
        if not most_s or most_s > _duration_s(question):
            raise
    return question, most_s


def _execute(
    emulation: Emulation,
    commands: Sequence[Wanted],
    shell: str | None,
    most_s: float | None,
    *,
    quiet: bool,
) -> int:
    """Start the commands and wait for them, or for a stop; returns the exit status."""
    awaited: list[Command] = []
    serving: list[Command] = []
    with emulation:
        try:
            if not quiet:
                say_news([_beginning(emulation, most_s)])
            if len(emulation.names) == 1 and not quiet:
                say_news(["no other node answers: --serve NODE -- COMMAND starts a program there"])
            # Servers first, in any order of the command line.
            servers = [one for one in commands if one.serves]
            with emulation.listening([one.node for one in servers]):
                serving += [_started(emulation, one) for one in servers]
            awaited += [_started(emulation, one) for one in commands if not one.serves]
            if shell is not None:
                words = (os.environ.get("SHELL") or shutil.which("bash") or "/bin/sh",)
                awaited.append(_started(emulation, Wanted(shell, words, serves=False)))
            # Nothing to wait for: the servers, then.
            waiting = awaited or serving
            left_s = math.inf if most_s is None else most_s - emulation.now_s
            until = time.monotonic() + left_s
            while not interrupts.came() and not emulation.wait(waiting, 0.0):
                if time.monotonic() >= until:
                    break
            if interrupts.came():
                # A terminal sends Ctrl-C to the commands, too, which may have something to say.
                emulation.wait(awaited, CTRL_C_S)
        finally:
            if shell is not None:
                # Read and be stopped by the terminal again, which the shell took for itself.
                with contextlib.suppress(OSError), Path("/dev/tty").open() as terminal:
                    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                    os.tcsetpgrp(terminal.fileno(), os.getpgrp())
                    signal.signal(signal.SIGTTOU, before)
    for it in awaited:
        if it.is_stopped and not quiet:
            say_news([f"{it.node}: {it.words[0]} was ended with the emulation"])
    if account.failures(emulation.result.manifest["real_time"]):
        return 2
    ended = (it.status for it in (*awaited, *serving) if not it.is_stopped)
    status = next(filter(None, ended), 0)
    # As shells have it: 128 and the number of a signal.
    return status if status >= 0 else 128 - status


def _started(emulation: Emulation, it: Wanted) -> Command:
    try:
        return emulation.start(it.node, it.words)
    except OSError as error:
        raise BadInputError(
            visible(f"emulate: {it.words[0]} could not be started at {it.node}: {error.strerror}")
        ) from None


def _duration_s(question: Question) -> float:
    return float(values(question.plan.resolved(0))["duration"])


def _beginning(emulation: Emulation, most_s: float | None) -> str:
    where = (f"{node} {' '.join(all)}" for node, all in emulation.addresses.items())
    length = time_text(_duration_s(emulation.question) if most_s is None else most_s)
    how = "" if emulation.is_real_time else "; without real-time priority, packets may be late"
    return f"emulating {emulation.question.name} for {length}: {', '.join(where)}{how}"


def say_account(result: Result) -> None:
    """Where the packets of the commands went, and how late they were."""
    out = console()
    real_time = result.manifest["real_time"]
    say(account.summary(real_time), out)
    for words in account.findings(real_time):
        say(f"Warning: {words}", out, "yellow")
    out.print()
