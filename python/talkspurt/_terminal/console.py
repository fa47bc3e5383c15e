"""The console of every command: safe for untrusted text, at the terminal's width."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from talkspurt._terminal.layout import wrapped
from talkspurt._text.escaping import below, encoded, visible

WITHOUT_TERMINAL = 120
"""Width of output to a file or a pipe, unless COLUMNS is set."""
INDENT = 2
"""Of the second and further lines of a sentence."""


class Output(Console):
    """A console whose output contains no control sequences from input text.

    A closed reader is left to the caller.
    """

    def on_broken_pipe(self) -> None:
        """By default, Rich would end the process here."""
        raise BrokenPipeError

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        # Tables escape characters before layout; this handles other output.
        parts = (
            part if part.control else part._replace(text=visible(part.text, lines=True))
            for part in buffer
        )
        return super()._render_buffer(parts)


class Display(Output):
    """A console of what is redrawn: nobody has to see it, and its terminal may be gone."""

    def _write_buffer(self) -> None:
        with contextlib.suppress(OSError):
            super()._write_buffer()


def known_width() -> int | None:
    """The terminal's width, or COLUMNS; None for output to a file or a pipe."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size((0, 0)).columns or None
    return None


def console() -> Console:
    """Standard output, as wide as the terminal, COLUMNS, or ``WITHOUT_TERMINAL``."""
    width = known_width() or WITHOUT_TERMINAL
    # Without a height, Rich takes every dumb terminal for one of 80 columns.
    return Output(file=below(sys.stdout), width=width, height=24, highlight=False, markup=False)


def say(words: str, out: Console, style: str = "") -> None:
    """A sentence, wrapped at spaces with a hanging indent."""
    first, *more = wrapped(encoded(visible(words), out.encoding), out.width - INDENT)
    for line in (first, *(" " * INDENT + line for line in more)):
        # Non-breaking spaces have done their work.
        text = Text(line.replace("\u00a0", " "), style=style)
        out.print(text, no_wrap=True, overflow="ignore", crop=False)


def height(words: str, out: Console) -> int:
    """The number of lines on which :func:`say` prints a sentence."""
    return len(wrapped(encoded(visible(words), out.encoding), out.width - INDENT))


def say_line(words: str) -> None:
    """A sentence on one line, unless the width of the terminal is known."""
    if known_width():
        say(words, console())
    else:
        print(visible(words))
