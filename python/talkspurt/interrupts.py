"""Ctrl-C and SIGTERM: raised once, deferred while output would be left incomplete.

`cli.main` raises them; this module provides the protected block, and the list of outputs completed
before the stop.
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

written: list[Path | str] = []
"""Folders, files and URLs that this process has completed."""


class Terminated(BaseException):
    """The process received SIGTERM."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM until the end of the block, which must be short."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread
        return
    held: list[tuple[int, FrameType | None]] = []
    before: dict[int, Any] = {}
    try:
        for each in STOPS:
            before[each] = signal.signal(each, lambda *got: held.append(got))
        yield
    finally:
        for stop, handler in before.items():
            # None: not set from Python, so it cannot be restored.
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
