"""The drive: runs of a plan started, watched, cancelled and taken in as they end.

Each :class:`talkspurt._core.Run` has a thread of its own in Rust with the GIL released, so one
Python thread is enough to keep every core busy: it holds a window of runs open and asks each in
turn. Waiting is in short steps, which is what lets Ctrl-C through.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from talkspurt import _core

STEP_S = 0.05
"""How long one wait lasts; the longest time Ctrl-C goes unheard."""

GRACE_S = 1.0
"""How long all runs together may take to notice that they are cancelled."""


@dataclass(frozen=True)
class Progress:
    """How far a plan is."""

    fraction: float
    """Share of all simulated time that is over, 0 to 1."""
    finished: int
    """Runs that have ended."""
    total: int
    """Runs of the plan."""


def cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Job(Protocol[T_co]):
    """Work under way in a thread of its own in Rust."""

    def progress(self) -> float:
        """Share of simulated time that is over, 0 to 1."""

    def wait(self, seconds: float) -> bool:
        """Wait at most so long; true when it has ended."""

    def cancel(self) -> None:
        """Ask it to stop."""

    def result(self) -> T_co:
        """What came of it; raises RunError."""


def drive(
    plan: _core.Plan,
    runs: Iterable[int],
    *,
    jobs: int | None = None,
    folder: Callable[[int], str | None] = lambda _: None,
    on_end: Callable[[int, _core.Outcome], None],
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Run these runs of the plan, ``jobs`` at a time (all cores unless told), in order of start.

    ``on_end`` is called with each outcome as its run ends, whatever the order. Whatever is raised
    here, by a run or by Ctrl-C, cancels the others first.
    """
    each(
        lambda i: plan.start(i, folder(i)),
        runs,
        jobs=jobs,
        on_end=on_end,
        on_progress=on_progress,
    )


def each(
    start: Callable[[int], Job[T]],
    runs: Iterable[int],
    *,
    jobs: int | None = None,
    on_end: Callable[[int, T], None],
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Start a job for each of these runs; otherwise as :func:`drive`, for which it is a run."""
    waiting = list(runs)
    total = len(waiting)
    waiting.reverse()
    window = max(1, jobs if jobs is not None else cores())
    under_way: dict[int, Job[T]] = {}
    finished = 0
    try:
        while waiting or under_way:
            while waiting and len(under_way) < window:
                i = waiting.pop()
                under_way[i] = start(i)
            for i in _ended(under_way):
                on_end(i, under_way.pop(i).result())
                finished += 1
            part = sum(run.progress() for run in under_way.values())
            on_progress(Progress((finished + part) / total, finished, total))
    except BaseException:
        _stop(under_way.values())
        raise


def _stop(runs: Collection[Job[T]]) -> None:
    """Cancel runs and give them a moment to let go of their files; who is slower ends alone."""
    for run in runs:
        run.cancel()
    until = time.monotonic() + GRACE_S
    for run in runs:
        run.wait(max(0.0, until - time.monotonic()))


def _ended(under_way: dict[int, Job[T]]) -> list[int]:
    """Those that have ended; waits a step when none has."""
    ended = [i for i, run in under_way.items() if run.wait(0.0)]
    if ended:
        return ended
    first = next(iter(under_way))
    step = STEP_S if len(under_way) == 1 else STEP_S / 10
    return [first] if under_way[first].wait(step) else []
