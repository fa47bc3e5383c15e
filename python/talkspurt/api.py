"""The Python interface: takes a scenario, returns a result or a study."""

from __future__ import annotations

import errno
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from talkspurt import _core
from talkspurt._storage import reader
from talkspurt._terminal.progress import Bar
from talkspurt.errors import StoreError
from talkspurt.results import concatenation
from talkspurt.results.result import Result, Study
from talkspurt.results.run_data import Scratch
from talkspurt.runs import engine, memory
from talkspurt.scenarios.source import Question, Sets, Source, read

if TYPE_CHECKING:
    from talkspurt._cluster.work import Rows

OnProgress = Callable[[engine.Progress], None]


class _HowToRun(TypedDict, total=False):
    set: Sets | None
    seed: int | None
    jobs: int | None
    progress: bool | OnProgress
    executor: Any
    memory_limit: float | None


@overload
def run(scenario: Source, *, study: Literal[False] = False, **how: Unpack[_HowToRun]) -> Result: ...
@overload
def run(scenario: Source, *, study: Literal[True], **how: Unpack[_HowToRun]) -> Study: ...
@overload
def run(scenario: Source, *, study: None, **how: Unpack[_HowToRun]) -> Result | Study: ...
def run(
    scenario: Source,
    *,
    set: Sets | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    progress: bool | OnProgress = False,
    executor: Any = None,
    memory_limit: float | None = None,
    study: bool | None = False,
) -> Result | Study:
    """Run a scenario and return its results. Ctrl-C stops it.

    Args:
        scenario: path of a TOML file, TOML text, or a dict.
        set: overrides of scenario fields, as in ``{"links.sky.delay": "20ms"}``.
        seed: replaces the scenario's seed.
        jobs: concurrent runs; default: all cores. Results do not depend on it.
        progress: true for a bar on standard error, or a function called with
            :class:`talkspurt.runs.engine.Progress` about twenty times a second.
        executor: a ``distributed.Client``, or an executor of ``concurrent.futures``, whose workers
            execute the runs; they must have the same version of talkspurt. Default: this process.
        memory_limit: bytes that the runs may be estimated to take; default: the machine's memory.
        study: true for a scenario with axes or replications, or to get a study of a single run;
            None for whatever the scenario is.

    Returns:
        A :class:`Result`, or with ``study=True`` a :class:`Study`. Without it, a scenario with axes
        or replications still returns a study, with a DeprecationWarning.

    Raises:
        talkspurt.ScenarioError: if the scenario is invalid, with all errors.
        talkspurt.RunError: if a run could not be finished.
        talkspurt.errors.BadInputError: if the runs would take more than ``memory_limit``.
    """
    question = read(scenario, set=set, seed=seed)
    if study is False and is_study(question.plan):
        _is_a_study("run", "this scenario has axes or replications")
    with Bar(question.plan.title, shown=progress is True) as bar:
        on_progress = progress if callable(progress) else bar.on_progress
        found = answer(
            question, jobs=jobs, on_progress=on_progress, executor=executor,
            memory_limit=memory_limit,
        )  # fmt: skip
    if study and isinstance(found, Result):
        return Study.of_results(question, [found])
    return found


@overload
def load(directory: str | os.PathLike[str], *, study: Literal[False] = False) -> Result: ...
@overload
def load(directory: str | os.PathLike[str], *, study: Literal[True]) -> Study: ...
@overload
def load(directory: str | os.PathLike[str], *, study: None) -> Result | Study: ...
def load(directory: str | os.PathLike[str], *, study: bool | None = False) -> Result | Study:
    """Open results saved by :meth:`Result.save`, :meth:`Study.save` or ``talkspurt run``.

    Args:
        directory: the folder, or a URL that fsspec knows, such as ``s3://bucket/name``.
        study: true for a study, None for whatever the folder holds.

    Raises:
        talkspurt.errors.StoreError: if there are no results, if they are damaged or of another
            format, or if ``study`` is true and the folder holds a single run.
    """
    folder = Path(directory)
    found = reader.load(folder)
    if study and isinstance(found, Result):
        raise StoreError(errno.EINVAL, "holds a single run, not a study", str(folder))
    if study is False and isinstance(found, Study):
        _is_a_study("load", f"{folder} holds a study")
    return found


def compare(results: Mapping[str, Result | Study]) -> Study:
    """Put finished runs side by side, or studies with the same axes.

    Args:
        results: two or more, by the name that each gets in tables and figures.

    Returns:
        A study whose first axis is ``run``. Runs with the same seed have the same random streams;
        differences between studies with replications are paired by them.

    Raises:
        ValueError: if there are fewer than two, or if their axes or replications differ.
    """
    return Study.of_answers(results)


def _is_a_study(function: str, why: str) -> None:
    warnings.warn(
        f"{why}: call talkspurt.{function}(..., study=True)", DeprecationWarning, stacklevel=3
    )


def is_study(plan: _core.Plan) -> bool:
    """Whether a plan has axes or replications, regardless of the number of runs."""
    return bool(plan.axes) or plan.replications > 1


@dataclass(frozen=True)
class Keeping:
    """Where the runs of a plan go as they end.

    Attributes:
        keep: called with each finished result, returns the object to hold instead: a study too big
            for memory is written to disk run by run.
        written_in: the folder for captures and packets of a run, or None to skip them; by default
            they go to a temporary folder that lives as long as the result.
        place: the folder of each run that a worker of an executor returns whole; by default a
            temporary one.
        kept: called for each run after that.
        ended: called with the summary tables of each run; of a worker's only if they are short.
    """

    keep: Callable[[int, Result], Result] = lambda _, result: result
    written_in: Callable[[int], Path | None] | None = None
    place: Callable[[int], Path] | None = None
    kept: Callable[[int], None] = lambda _: None
    ended: Callable[[int, _core.Outcome | Rows], None] = lambda *_: None


class HowToCollect(TypedDict, total=False):
    """Options of :func:`collect`."""

    jobs: int | None
    on_progress: OnProgress
    keeping: Keeping
    executor: Any
    tables: engine.Tables
    memory_limit: float | None


def answer(
    question: Question, *, there: Mapping[int, Result] | None = None, **how: Unpack[HowToCollect]
) -> Result | Study:
    """Run the whole plan, except the runs in ``there``; otherwise like :func:`collect`."""
    plan = question.plan
    results = dict(there or {})
    gathered = concatenation.Gathered()
    if is_study(plan):
        keeping = replace(how.get("keeping", Keeping()), ended=gathered.add)
        if how.get("tables") == "none":  # the rows that are gathered are all there is of a run
            kept = keeping.keep
            keeping = replace(
                keeping, keep=lambda i, it: kept(i, it).read_by(partial(gathered.read, i))
            )
        how["keeping"] = keeping
    results |= collect(question, [i for i in range(len(plan)) if i not in results], **how)
    if is_study(plan):
        runs = [results[i] for i in range(len(plan))]
        return Study.of_results(question, runs, gathered.stacks(results))
    return results[0]


def collect(
    question: Question,
    runs: Iterable[int],
    *,
    jobs: int | None = None,
    on_progress: OnProgress = lambda _: None,
    keeping: Keeping = Keeping(),
    executor: Any = None,
    tables: engine.Tables = "memory",
    memory_limit: float | None = None,
) -> dict[int, Result]:
    """Run these runs of the plan; results by number of the run.

    ``tables`` besides those of flows and links are in memory, in files in the folder that the run
    is written in, or not recorded; or only those with these names are recorded, in memory. Runs
    without these tables have no sound either. See :func:`run` for ``memory_limit``.
    """
    if executor is not None:
        from talkspurt import _cluster

        return _cluster.collect(
            question, runs, executor, place=keeping.place, kept=keeping.kept, ended=keeping.ended,
            on_progress=on_progress,
        )  # fmt: skip
    plan, runs, heard = question.plan, [*runs], tables != "none"
    memory.check(memory.estimate(plan, runs, jobs=jobs, tables=tables, heard=heard), memory_limit)
    results: dict[int, Result] = {}
    began: dict[int, float] = {}
    folders: dict[int, Path | Scratch] = {}

    def folder(i: int) -> str | None:
        began[i] = time.monotonic()
        if tables != "folder" and not plan.writes_packets(i):
            return None
        place = keeping.written_in(i) if keeping.written_in else Scratch()
        if place is None:
            return None
        folders[i] = place
        return os.fspath(place)

    def on_end(i: int, outcome: _core.Outcome) -> None:
        wall_s = time.monotonic() - began[i]
        written = folders.pop(i, None)
        fresh = Result.of_outcome(question, i, outcome, wall_s=wall_s, written=written)
        results[i] = keeping.keep(i, fresh)
        keeping.kept(i)
        keeping.ended(i, outcome)

    engine.drive(
        plan,
        runs,
        jobs=jobs,
        folder=folder,
        tables=tables,
        heard=heard,
        on_end=on_end,
        on_progress=on_progress,
    )
    return results
