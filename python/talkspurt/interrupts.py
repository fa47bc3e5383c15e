"""Ctrl-C and SIGTERM: raised once, held back where a half of something would be left.

Who raises them is `cli.main`; here is what the rest of the package needs: a block that is not
disturbed, and what was put in its place before the stop.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

STOPS = (signal.SIGINT, signal.SIGTERM)

written: list[Path] = []
"""Folders and files that this process put in their place, whole."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back until the end of the block, which must be short."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    held: list[tuple[int, FrameType | None]] = []
    before: dict[int, Any] = {}
    try:
        for each in STOPS:
            before[each] = signal.signal(each, lambda *got: held.append(got))
        yield
    finally:
        for stop, handler in before.items():
            # None: not set from Python, and so not to be set again.
            signal.signal(stop, signal.SIG_DFL if handler is None else handler)
        for number, frame in held[:1]:
            _deliver(before[number], number, frame)


def _deliver(
    handler: Callable[[int, FrameType | None], Any] | int | None,
    number: int,
    frame: FrameType | None,
) -> None:
    if callable(handler):
        handler(number, frame)
    elif handler == signal.SIG_DFL:
        signal.raise_signal(number)
