"""Lines of Tcl, and behind each source_map it comes."""

from __future__ import annotations

from typing import Any

from talkspurt.ns2.source_map import SourceMap
from talkspurt.scenario import toml_value

COLUMN = 68
"""Where the comments begin."""


class Tcl:
    """A script in the making."""

    def __init__(self, source_map: SourceMap) -> None:
        self.source_map = source_map
        self.lines: list[str] = []

    def say(self, *lines: str) -> None:
        """Lines as they are."""
        self.lines += lines

    def comment(self, text: str = "") -> None:
        """A line of comment."""
        self.lines.append(f"# {comment(text)}".rstrip())

    def add(self, code: str, path: str = "", value: Any = None, words: str = "") -> None:
        """A line of code, the path and value of the scenario it comes from, and a word more."""
        said = []
        if path:
            shown = path if value is None else f"{path} = {toml_value(value)}"
            said.append(f"{self.source_map.place(path)}: {shown}")
        if words:
            said.append(words)
        words = comment("; ".join(said))
        self.lines.append(f"{code:<{COLUMN}} ;# {words}" if words else code)

    def text(self) -> str:
        """The whole."""
        return "\n".join([*self.lines, ""])


def comment(text: str) -> str:
    """Text as a comment of one line: no character ends the line or makes the next one a part of it.

    Tcl reads line feeds, carriage returns and the character 26 as ends; a backslash at the end of a
    comment continues it (Tcl(n), rules 9 and 10).
    """
    shown = (c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)
    return "".join(shown).replace("\\", "/")


def word(text: str) -> str:
    """Text as one word of Tcl that means exactly this text (Tcl(n), rule 9).

    Everything but letters, digits and a few marks is written as an escape, so that nothing in it is
    substituted, ends the word or the line. Beyond the basic plane this needs Tcl 9.
    """
    plain = "_-./"
    return (
        '"'
        + "".join(c if c.isascii() and (c.isalnum() or c in plain) else escape(c) for c in text)
        + '"'
    )


def escape(character: str) -> str:
    """A character as Tcl's escape: of four hexadecimal digits, eight beyond the basic plane."""
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """A number as Tcl reads it back to the same double."""
    return repr(int(value)) if float(value).is_integer() else repr(float(value))
