"""Lines of Tcl with comments on their origin."""

from __future__ import annotations

from typing import Any

from talkspurt.ns2.reading import SourceMap
from talkspurt.scenarios.source import toml_value

COLUMN = 68


class Tcl:
    """A script being built."""

    def __init__(self, source_map: SourceMap) -> None:
        self.source_map = source_map
        self.lines: list[str] = []

    def say(self, *lines: str) -> None:
        """Add lines verbatim."""
        self.lines += lines

    def comment(self, text: str = "") -> None:
        """Add a comment line."""
        self.lines.append(f"# {comment(text)}".rstrip())

    def add(self, code: str, path: str = "", value: Any = None, words: str = "") -> None:
        """Add a line of code with the scenario path and value it comes from, and optional text."""
        said = []
        if path:
            shown = path if value is None else f"{path} = {toml_value(value)}"
            said.append(f"{self.source_map.place(path)}: {shown}")
        if words:
            said.append(words)
        words = comment("; ".join(said))
        self.lines.append(f"{code:<{COLUMN}} ;# {words}" if words else code)

    def text(self) -> str:
        """The complete script."""
        return "\n".join([*self.lines, ""])


def comment(text: str) -> str:
    """Text as a comment of one line: no character ends the line or continues it on the next.

    Tcl ends lines at line feeds, carriage returns and character 26; a backslash at the end of a
    comment continues it (Tcl(n), rules 9 and 10).
    """
    shown = (c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)
    return "".join(shown).replace("\\", "/")


def word(text: str) -> str:
    """Text as one Tcl word that evaluates to exactly this text (Tcl(n), rule 9).

    Everything except letters, digits and a few marks is escaped, so that nothing is substituted and
    nothing ends the word or the line. Characters beyond the basic plane require Tcl 9.
    """
    plain = "_-./"
    return (
        '"'
        + "".join(c if c.isascii() and (c.isalnum() or c in plain) else escape(c) for c in text)
        + '"'
    )


def escape(character: str) -> str:
    """A Tcl escape: four hexadecimal digits, eight beyond the basic plane."""
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """A number that Tcl parses to the same double."""
    return repr(int(value)) if float(value).is_integer() else repr(float(value))
