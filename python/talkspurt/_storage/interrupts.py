"""Ctrl-C, SIGTERM and SIGHUP: raised once, deferred while output would be left incomplete.

`_commands.entry` raises them; this module provides the protected block, whose loops ask `came`,
processes without Ctrl-C, and the list of outputs completed before the stop.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

STOPS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Signals that stop a command; Windows has no SIGHUP."""
MAX_STOPS = 3
"""This many signals end everything, what is protected as well."""

written: list[Path | str] = []
"""Folders, files and URLs that this process has completed."""


class Terminated(BaseException):
    """The process received SIGTERM or SIGHUP."""


_held: list[tuple[int, FrameType | None]] | None = None
"""Signals that wait for the end of the protected block, if there is one."""


def stops() -> list[signal.Signals]:
    """The signals that stop this process: SIGHUP not under nohup, which ignores it."""
    ignored = signal.SIG_IGN
    return [n for n in STOPS if n.name != "SIGHUP" or signal.getsignal(n) != ignored]


def status(number: int) -> int:
    """The exit status after a signal: SIGHUP acts as SIGTERM."""
    return 128 + (signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)


def came() -> bool:
    """Whether a signal waits for the end of the protected block, which should end soon."""
    return bool(_held)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Defer Ctrl-C, SIGTERM and SIGHUP until the end of the block, of the outer one of several.

    The block must be short, or ask `came` now and then. The third signal is not deferred.
    """
    global _held
    if threading.current_thread() is not threading.main_thread() or _held is not None:
        yield  # signals go to the main thread, and to the outer block
        return
    held = _held = []
    before: dict[int, Any] = {}

    def hold(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))
        if len(held) >= MAX_STOPS:
            held.clear()
            _deliver(before[number], number, frame)

    try:
        for each in stops():
            before[each] = signal.signal(each, hold)
        yield
    finally:
        _held = None
        for stop, handler in before.items():
            # None: not set from Python, so it cannot be restored.
            signal.signal(stop, signal.SIG_DFL if handler is None else handler)
        for number, frame in held[:1]:
            _deliver(before[number], number, frame)


@contextmanager
def without_ctrl_c() -> Iterator[None]:
    """Processes that `multiprocessing` starts in the block have SIGINT blocked.

    A terminal sends it to all processes of a command; workers are ended by those who started them.
    A mask of the thread is not enough: `multiprocessing` sets it, too, before it starts a process.
    """
    from multiprocessing import util  # commands without workers do not need it

    start = util.spawnv_passfds

    def masked(*words: Any) -> Any:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return start(*words)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    util.spawnv_passfds = masked  # type: ignore[assignment]
    try:
        yield
    finally:
        util.spawnv_passfds = start


def _deliver(
    handler: Callable[[int, FrameType | None], Any] | int | None,
    number: int,
    frame: FrameType | None,
) -> None:
    if callable(handler):
        handler(number, frame)
    elif handler == signal.SIG_DFL:
        signal.raise_signal(number)
