"""Scores the calls of runs: several in worker processes, as the models hold Python's lock.

A worker is started afresh, not forked, loads the models once, and gets one call at a time: signals
that were aligned here. A single call is scored in this process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from talkspurt import _core, scores
from talkspurt._lazy import multiprocessing
from talkspurt._storage import interrupts
from talkspurt.results.run_data import RunData
from talkspurt.runs import engine
from talkspurt.scores import models

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    import polars as pl

Rows = list[dict[str, Any]]


def score(
    runs: Iterable[tuple[int, RunData]],
    wanted: scores.Segments,
    *,
    jobs: int | None = None,
    keep: Callable[[int, pl.DataFrame], None],
    on_progress: Callable[[engine.Progress], None] = lambda _: None,
) -> None:
    """Score the calls of runs that have not as many scores; ``keep`` is called with each table.

    ``jobs`` is the number of workers, by default one for each core.

    Raises:
        talkspurt.errors.MissingExtraError: if the models are not installed.
        talkspurt.RunError: if a worker was ended from outside.
    """
    lacking = {i: run for i, run in runs if not scores.is_enough(run, wanted)}
    calls = [(i, flow) for i, run in lacking.items() for flow in run.heard]
    found: dict[int, dict[str, Rows]] = {i: {} for i in lacking}

    def prepared(number: int) -> scores.Call:
        i, flow = calls[number]
        return scores.prepared(lacking[i], flow, wanted)

    def ended(number: int, rows: Rows) -> None:
        i, flow = calls[number]
        found[i][flow] = rows
        if len(found[i]) == len(lacking[i].heard):
            # What was read of the run is dropped with it.
            run, of_run = lacking.pop(i), found.pop(i)
            keep(i, scores.frame(row for flow in run.heard for row in of_run[flow]))

    for i in [i for i, run in lacking.items() if not run.heard]:
        keep(i, scores.frame(()))
    if not calls:
        return
    models.check()
    count = min(jobs or engine.cores(), len(calls))
    if count > 1:
        with _workers(count) as free:
            engine.each(
                lambda number: _Scoring(free, prepared(number)), range(len(calls)), jobs=count,
                on_end=ended, on_progress=on_progress,
            )  # fmt: skip
        return
    total = len(calls)
    for number in range(total):

        def on_part(part: float, number: int = number) -> None:
            on_progress(engine.Progress((number + part) / total, number, total))

        on_part(0.0)
        ended(number, scores.rows(prepared(number), on_part))


class _Worker:
    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        other.close()


@contextlib.contextmanager
def _workers(count: int) -> Iterator[list[_Worker]]:
    """Idle workers, which end with the block, whatever they do then."""
    there: list[_Worker] = []
    try:
        with interrupts.without_ctrl_c():
            for _ in range(count):
                there.append(_Worker())
        yield [*there]
    finally:
        for worker in there:
            worker.process.terminate()
        for worker in there:
            worker.process.join()
            worker.pipe.close()


class _Scoring:
    """The work of an idle worker, which it is again after the result: a job of the engine."""

    def __init__(self, free: list[_Worker], call: scores.Call) -> None:
        self._free, self._worker = free, free.pop()
        self._part = 0.0
        self._rows: Rows | None = None
        try:
            self._worker.pipe.send(call)
        except OSError:
            self._gone()

    def progress(self) -> float:
        return self._part

    def wait(self, seconds: float) -> bool:
        while self._rows is None and self._worker.pipe.poll(seconds):
            try:
                told = self._worker.pipe.recv()
            except (EOFError, OSError):
                self._gone()
            if isinstance(told, float):
                self._part = told
            else:
                self._rows = told
                self._free.append(self._worker)
        return self._rows is not None

    def _gone(self) -> None:
        self._worker.process.join()
        code = self._worker.process.exitcode
        raise _core.RunError(f"a process that computed scores ended with status {code}")

    def cancel(self) -> None:
        """Not wait for it: `_workers` ends what is under way."""
        self._rows = []

    def result(self) -> Rows:
        assert self._rows is not None
        return self._rows


def _serve(pipe: Connection) -> None:
    """What a worker executes: it sends the shares that are done of each call, then the rows."""
    with contextlib.suppress(EOFError, OSError):  # this process's parent is gone
        while True:
            pipe.send(scores.rows(pipe.recv(), pipe.send))
