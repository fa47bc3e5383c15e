"""The run driver: starts, monitors and cancels the runs of a plan and collects their results.

Each :class:`talkspurt._core.Job` has its own Rust thread that releases the GIL, so one Python
thread keeps every core busy: it holds a window of runs open and polls them in turn. It waits in
short steps, so that Ctrl-C is handled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Never, Protocol, TypeVar

from talkspurt import _core
from talkspurt._storage.file_access import failure
from talkspurt.metrics import dictionary

Tables = Literal["memory", "folder", "none"] | tuple[str, ...]
"""Where the tables of a run are besides those of flows and links; or which of them are in memory.
Others are then not recorded."""

STEP_S = 0.05
"""Duration of one wait; the maximum delay of Ctrl-C."""

GRACE_S = 1.0
"""Total time for all runs to react to cancellation."""


@dataclass(frozen=True)
class Progress:
    """Progress of a plan."""

    fraction: float
    """Completed share of the simulated time, 0 to 1."""
    finished: int
    """Finished runs."""
    total: int
    """Total runs of the plan."""


def cores() -> int:
    """Cores available to this process."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


T = TypeVar("T")
Found = TypeVar("Found", covariant=True)


class Job(Protocol[Found]):
    """What the driver asks of work under way: :class:`talkspurt._core.Job`, or the like."""

    def progress(self) -> float:
        """Share that is done, 0 to 1."""

    def wait(self, seconds: float, /) -> bool:
        """Wait at most so long; true when there is a result or an error."""

    def cancel(self) -> None:
        """Ask it to end."""

    def result(self) -> Found:
        """What came out, once."""


def drive(
    plan: _core.Plan,
    runs: Iterable[int],
    *,
    jobs: int | None = None,
    folder: Callable[[int], str | None] = lambda _: None,
    tables: Tables = "memory",
    heard: bool = True,
    on_end: Callable[[int, _core.Outcome], None],
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Run these runs of the plan, ``jobs`` at a time (default: all cores), in order of start.

    ``on_end`` is called with each outcome when its run ends, in any order. If a run or Ctrl-C
    raises an exception here, the other runs are cancelled first.

    ``tables`` is where tables besides those of flows and links are kept, if anywhere, or which.
    Runs that are not ``heard`` have no sound, which takes long to encode and to render.
    """
    meanings = None
    if tables == "folder":
        meanings = _core.Meanings(dictionary.json_columns())
    each(
        lambda i: plan.start(i, folder(i), tables, meanings, heard),
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
    """Start a job for each of these runs; otherwise like :func:`drive`, whose jobs are runs."""
    waiting = [*runs][::-1]
    total = len(waiting)
    window = max(1, jobs if jobs is not None else cores())
    under_way: dict[int, Job[T]] = {}
    finished = 0

    def fill() -> None:
        while waiting and len(under_way) < window:
            i = waiting.pop()
            under_way[i] = start(i)

    try:
        fill()
        while under_way:
            # Threads that have ended leave their memory to the next ones: without this, glibc may
            # give each of many another heap, which it keeps.
            ended = [(i, _result(under_way.pop(i))) for i in _ended(under_way)]
            fill()  # They run while Python handles those that have ended.
            for i, result in ended:
                on_end(i, result())
                finished += 1
            part = sum(run.progress() for run in under_way.values())
            on_progress(Progress((finished + part) / total, finished, total))
    except BaseException:
        _stop(under_way.values())
        raise


def _result(run: Job[T]) -> Callable[[], T]:
    """What returns the result of a run that has ended, or raises its error."""
    try:
        found = run.result()
    except Exception as error:
        return partial(_raise, error)
    return lambda: found


def _raise(error: Exception) -> Never:
    if isinstance(error, OSError):
        raise failure(error, Path(error.filename)) from error
    raise error


def _stop(runs: Collection[Job[T]]) -> None:
    """Cancel runs and wait briefly until they close their files; slower ones end alone."""
    for run in runs:
        run.cancel()
    until = time.monotonic() + GRACE_S
    for run in runs:
        run.wait(max(0.0, until - time.monotonic()))


def _ended(under_way: dict[int, Job[T]]) -> list[int]:
    """The finished ones; waits one step if there are none."""
    ended = [i for i, run in under_way.items() if run.wait(0.0)]
    if ended:
        return ended
    first = next(iter(under_way))
    step = STEP_S if len(under_way) == 1 else STEP_S / 10
    return [first] if under_way[first].wait(step) else []
