"""Progress on standard error: a bar with remaining time on a terminal, sparse lines elsewhere."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from talkspurt._text.escaping import below, visible

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from talkspurt.runs.engine import Progress

QUIET_S = 2.0
"""Without a terminal, shorter runs print no progress."""
EVERY_S = 5.0
"""Without a terminal, time between two lines."""
NARROW = 76
"""Narrower terminals have no room for the title."""
REST = 66
"""Width of everything but the title."""


_silent = ContextVar("_silent", default=False)


@contextlib.contextmanager
def silent(*, wanted: bool) -> Iterator[None]:
    """In this block, if it is wanted, neither progress nor news are printed."""
    before = _silent.set(wanted or _silent.get())
    try:
        yield
    finally:
        _silent.reset(before)


def say_news(news: Iterable[str]) -> None:
    """Report what was found in place of an output folder, and the like."""
    for words in () if _silent.get() else news:
        print(f"talkspurt: {visible(words)}", file=sys.stderr, flush=True)


class Bar:
    """Progress of a scenario; use as a context manager and pass its ``on_progress``.

    Unless it is ``shown``, it prints nothing.
    """

    def __init__(self, title: str, *, shown: bool = True) -> None:
        self.title = visible(title)
        self._shown = shown and not _silent.get()
        self._rich: RichProgress | None = None
        self._began = time.monotonic()
        self._said = self._began + QUIET_S - EVERY_S

    def __enter__(self) -> Bar:
        # A dumb terminal cannot redraw a line.
        if self._shown and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._rich = _bar(self.title)
            self._rich.start()
            self._rich.add_task("", total=1.0, note="")
        return self

    def on_progress(self, progress: Progress) -> None:
        note = f"{progress.finished}/{progress.total} runs" if progress.total > 1 else ""
        self.on_fraction(progress.fraction, note)

    def on_step(self, what: str) -> None:
        """Show what is being written."""
        self.on_fraction(1.0, f"writing {what}")

    def on_fraction(self, fraction: float, note: str = "") -> None:
        """Show the progress of a single task, from 0 to 1."""
        if self._rich is not None:
            self._rich.update(self._rich.task_ids[0], completed=fraction, note=note)
        else:
            self._say(fraction, note)

    def _say(self, fraction: float, note: str) -> None:
        now = time.monotonic()
        if not self._shown or now - self._said < EVERY_S:
            return
        self._said = now
        # Of less than what is shown as 1 %, no time can be estimated.
        is_known = fraction >= 0.005
        left = (now - self._began) * (1 - fraction) / fraction if is_known else None
        words = [f"{fraction:4.0%}", *([note] if note else [])]
        words += [f"{left:.0f} s left"] if left is not None and fraction < 1 else []
        print(f"{self.title}: {', '.join(words)}", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self._rich is not None:
            self._rich.stop()


def _bar(title: str) -> RichProgress:
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from talkspurt._terminal.console import Display
    from talkspurt._terminal.layout import shortened

    out = Display(file=below(sys.stderr))
    columns: list[ProgressColumn] = [
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    ]
    if out.width < NARROW:
        columns.insert(0, BarColumn(bar_width=5))
    else:
        columns.insert(0, BarColumn(bar_width=20))
        columns.insert(2, TimeElapsedColumn())
        (name,) = shortened([title], out.width - REST, out.encoding) or [""]
        columns.insert(0, TextColumn(name.replace("{", "{{").replace("}", "}}"), markup=False))
    return Progress(*columns, console=out, transient=True)
