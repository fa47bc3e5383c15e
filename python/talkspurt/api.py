"""The Python interface: takes a scenario, returns a result or a study."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from talkspurt import _core, engine, store
from talkspurt.result import Result, Scratch, recorded
from talkspurt.scenario import Question, Sets, Source, read
from talkspurt.study import Study

OnProgress = Callable[[engine.Progress], None]


def run(
    scenario: Source,
    *,
    set: Sets | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    progress: bool | OnProgress = False,
) -> Result | Study:
    """Run a scenario and return its results. Ctrl-C stops it.

    Args:
        scenario: path of a TOML file, TOML text, or a dict.
        set: overrides of scenario fields, as in ``{"links.sky.delay": "20ms"}``.
        seed: replaces the scenario's seed.
        jobs: concurrent runs; default: all cores. Results do not depend on it.
        progress: true for a bar on standard error, or a function called with
            :class:`talkspurt.engine.Progress` about twenty times a second.

    Returns:
        A :class:`Result`, or a :class:`Study` when the scenario has axes or replications.

    Raises:
        talkspurt.ScenarioError: if the scenario is invalid, with all errors.
        talkspurt.RunError: if a run could not be finished.
    """
    question = read(scenario, set=set, seed=seed)
    if callable(progress):
        return answer(question, jobs=jobs, on_progress=progress)
    if not progress:
        return answer(question, jobs=jobs)
    from talkspurt.terminal.progress import Bar

    with Bar(question.plan.title) as bar:
        return answer(question, jobs=jobs, on_progress=bar.on_progress)


def load(directory: str | os.PathLike[str]) -> Result | Study:
    """Open results saved by :meth:`Result.save`, :meth:`Study.save` or ``talkspurt run``."""
    return store.load(Path(directory))


def is_study(plan: _core.Plan) -> bool:
    """Whether a plan has axes or replications, regardless of the number of runs."""
    return bool(plan.axes) or plan.replications > 1


def answer(
    question: Question,
    *,
    jobs: int | None = None,
    on_progress: OnProgress = lambda _: None,
    keep: Callable[[int, Result], Result] = lambda _, result: result,
    written_in: Callable[[int], Path | None] | None = None,
    there: Mapping[int, Result] | None = None,
) -> Result | Study:
    """Run the whole plan, except the runs in ``there``.

    ``keep`` is called with each finished result and returns the object to hold instead: a study too
    big for memory is written to disk run by run. ``written_in`` returns the folder for captures and
    packets of a run, or None to skip them; by default they go to a temporary folder that lives as
    long as the result.
    """
    plan = question.plan
    results = dict(there or {})
    began: dict[int, float] = {}
    folders: dict[int, Path | Scratch] = {}

    def folder(i: int) -> str | None:
        began[i] = time.monotonic()
        record = recorded(plan.resolved(i))
        if not record.get("pcapng") and not record.get("packets"):
            return None
        place = written_in(i) if written_in else Scratch()
        if place is None:
            return None
        folders[i] = place
        return os.fspath(place)

    def on_end(i: int, outcome: _core.Outcome) -> None:
        wall_s = time.monotonic() - began[i]
        written = folders.pop(i, None)
        fresh = Result.of_outcome(question, i, outcome, wall_s=wall_s, written=written)
        results[i] = keep(i, fresh)

    engine.drive(
        plan,
        [i for i in range(len(plan)) if i not in results],
        jobs=jobs,
        folder=folder,
        on_end=on_end,
        on_progress=on_progress,
    )
    if is_study(plan):
        return Study.of_results(question, [results[i] for i in range(len(plan))])
    return results[0]
