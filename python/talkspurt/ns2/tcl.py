"""Lines of Tcl, and behind each whence it comes."""

from __future__ import annotations

from typing import Any

from talkspurt.ns2.whence import Whence
from talkspurt.scenario import toml_value

COLUMN = 68
"""Where the comments begin."""


class Tcl:
    """A script in the making."""

    def __init__(self, whence: Whence) -> None:
        self.whence = whence
        self.lines: list[str] = []

    def say(self, *lines: str) -> None:
        """Lines as they are."""
        self.lines += lines

    def add(self, code: str, path: str = "", value: Any = None, words: str = "") -> None:
        """A line of code, the path and value of the scenario it comes from, and a word more."""
        said = []
        if path:
            shown = path if value is None else f"{path} = {toml_value(value)}"
            said.append(f"{self.whence.place(path)}: {shown}")
        if words:
            said.append(words)
        comment = "; ".join(said).replace("\\", "/").replace("\n", " ")
        self.lines.append(f"{code:<{COLUMN}} ;# {comment}" if comment else code)

    def text(self) -> str:
        """The whole."""
        return "\n".join([*self.lines, ""])


def number(value: float) -> str:
    """A number as Tcl reads it back to the same double."""
    return repr(int(value)) if float(value).is_integer() else repr(float(value))
