"""Runs an evaluation: every candidate in every variant of every case, with every seed.

Each run is stored when it ends, so that an evaluation that was stopped or killed goes on from
there. Its folder's name has a hash of all inputs: what they change is run again.
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from talkspurt import _core
from talkspurt._lazy import pl
from talkspurt._storage import file_access, output_folder
from talkspurt._terminal.progress import say_news
from talkspurt._text import problems
from talkspurt.errors import BadInputError, Faults
from talkspurt.evaluate import cases, judging, measuring
from talkspurt.evaluate.cases import Candidate, Case
from talkspurt.evaluate.judging import Measured
from talkspurt.evaluate.program import FOLDER, Ended, ProgramJob, applied
from talkspurt.results.run_data import Scratch
from talkspurt.runs import engine
from talkspurt.scenarios import provenance
from talkspurt.scenarios.source import read

Key = tuple[str, str, str]
"""Case, variant and candidate."""


@dataclass(frozen=True)
class Plan:
    """What is evaluated.

    Attributes:
        sets: overrides of the scenarios, as pairs of path and value in TOML.
        seeds: each variant is run with the seeds 1 to this.
        program: the program that runs external stacks, if one does.
        baseline: the candidate with which the others are compared, in place of bands.
    """

    cases: Sequence[Case]
    candidates: Sequence[Candidate]
    seeds: int
    sets: Sequence[tuple[str, Any]] = ()
    program: str | None = None
    baseline: str | None = None

    @property
    def key(self) -> str:
        """A hash of everything that a result depends on."""
        code = [
            Path(str(module.__file__)).read_text(encoding="utf-8") for module in (cases, measuring)
        ]
        program = provenance.file(self.program) if self.program else ""
        return provenance.key((), repr(self), code, program)

    def is_run_by_program(self, variant: Mapping[str, Any], candidate: Candidate) -> bool:
        """Whether the program runs a candidate in a variant."""
        external = candidate.transport["kind"] == "external" and not variant.get("tcp")
        return external and self.program is not None


@dataclass
class Evaluation:
    """Its results.

    Attributes:
        measured: the measures of each case.
        curves: what is drawn of the runs with the first seed.
        cpu_s: time of processors that runs took, those stored before included.
    """

    plan: Plan
    measured: dict[str, list[Measured]] = field(default_factory=dict)
    curves: dict[Key, dict[str, Any]] = field(default_factory=dict)
    cpu_s: float = 0.0

    def count(self, verdict: str) -> int:
        """How many measures have a verdict."""
        return sum(one.verdict == verdict for its in self.measured.values() for one in its)

    def to_json(self) -> dict[str, Any]:
        """For ``results.json`` and ``--json``."""
        return {
            "seeds": self.plan.seeds,
            "confidence": judging.CONFIDENCE,
            "set": dict(self.plan.sets),
            "baseline": self.plan.baseline,
            "candidates": {
                one.name: {"transport": one.transport, "controller": one.controller}
                for one in self.plan.candidates
            },
            "cpu_s": round(self.cpu_s, 3),
            "cases": [
                {
                    "case": case.id,
                    "section": case.section,
                    "title": case.title,
                    "about": case.about,
                    "measures": [one.to_json() for one in self.measured[case.id]],
                }
                for case in self.plan.cases
            ],
        }


def _unfit(plan: Plan) -> dict[Key, str]:
    """Why candidates cannot run variants.

    Raises:
        BadInputError: with everything that is wrong with candidates that can run none.
    """
    found, faults = {}, Faults()
    wrong: dict[str, list[str]] = {}
    variants = [(case, variant) for case in plan.cases for variant in case.variants]
    for candidate in plan.candidates:
        refused: dict[str, None] = {}
        fits = False
        for case, variant in variants:
            why = cases.unable(case, variant, candidate)
            if not why:
                built = cases.build(case, variant, candidate, plan.sets)
                try:
                    # What a program cannot run it says itself.
                    if plan.is_run_by_program(case.variants[variant], candidate):
                        applied(built.scenario, built.sets, 1)
                    else:
                        read(built.scenario, set=built.sets, seed=1)
                    fits = True
                    continue
                except _core.ScenarioError as error:
                    why = "; ".join(dict.fromkeys(map(_said, error.problems)))
                except (ValueError, BadInputError) as error:
                    why = str(error)
                refused[why] = None
            found[case.id, variant, candidate.name] = why
        if refused and not fits:
            wrong.setdefault("; ".join(refused), []).append(candidate.name)
    for why, names in wrong.items():
        faults.add(f"{', '.join(names)}: {why}")
    faults.check()
    return found


def _said(problem: _core.Problem) -> str:
    return problems.text({**problem, "file": "", "line": None}).removeprefix("scenario: ")


@dataclass
class Work:
    """The runs of a plan, each once, though several candidates may be compared with it.

    Attributes:
        tasks: case, variant, candidate and seed of each run, by its name.
        names: the names of the runs of each candidate in each variant, in order of the seeds.
        unfit: why candidates cannot run variants.
    """

    plan: Plan
    unfit: dict[Key, str]
    tasks: dict[str, tuple[Case, str, Candidate, int]] = field(default_factory=dict)
    names: dict[Key, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> Work:
        """All runs that can be run.

        Raises:
            BadInputError: with everything that is wrong with candidates that can run none.
        """
        work = cls(plan, _unfit(plan))
        for case in plan.cases:
            for place, (variant, how) in enumerate(case.variants.items()):
                for number, candidate in enumerate(plan.candidates):
                    key = case.id, variant, candidate.name
                    who = "all" if how.get("tcp") else str(number)
                    for seed in range(1, plan.seeds + 1 if key not in work.unfit else 1):
                        name = f"{case.id}-{place}-{who}-{seed}"
                        work.tasks.setdefault(name, (case, variant, candidate, seed))
                        work.names.setdefault(key, []).append(name)
        return work

    def leave_out(self, name: str, why: str) -> None:
        """Note that a variant cannot be run, of which this is a run."""
        for key in [key for key, its in self.names.items() if name in its]:
            self.unfit[key] = why
            del self.names[key]


def evaluate(
    work: Work,
    unfinished: output_folder.Resumable | None = None,
    *,
    jobs: int | None = None,
    on_progress: Callable[[engine.Progress], None] = lambda _: None,
) -> Evaluation:
    """Run what is not in a folder yet, and judge all."""
    tasks, plan = work.tasks, work.plan
    done = {} if unfinished is None else _there(unfinished, tasks)
    if done:
        say_news([f"{len(done)} of {len(tasks)} runs were there already"])
    missing = [name for name in tasks if name not in done]
    scratch: dict[int, Scratch] = {}

    def start(i: int) -> engine.Job[_core.Outcome | Ended]:
        case, variant, candidate, seed = tasks[missing[i]]
        built = cases.build(case, variant, candidate, plan.sets)
        scratch[i] = Scratch()
        if plan.program and plan.is_run_by_program(case.variants[variant], candidate):
            scenario = applied(built.scenario, built.sets, seed)
            return ProgramJob(plan.program, scenario, scratch[i].path)
        question = read(built.scenario, set=built.sets, seed=seed)
        return question.plan.start(0, str(scratch[i].path), "none", None, False)

    def on_end(i: int, outcome: _core.Outcome | Ended) -> None:
        name = missing[i]
        # The folder lives as long as this.
        folder = scratch.pop(i)
        if isinstance(outcome, Ended) and outcome.crashed:
            raise BadInputError(f"{plan.program}: {outcome.failed}; the runs before it are kept")
        if isinstance(outcome, Ended) and outcome.failed:
            work.leave_out(name, outcome.failed)
            return
        by_program = isinstance(outcome, Ended)
        written = folder.path / FOLDER if by_program else folder.path
        done[name] = _measured(work, name, outcome, written)
        if unfinished is not None:
            _keep(unfinished, name, done[name])

    engine.each(start, range(len(missing)), jobs=jobs, on_end=on_end, on_progress=on_progress)
    for candidate in plan.candidates if plan.program else ():
        refused = [why for key, why in work.unfit.items() if key[2] == candidate.name]
        if refused and not any(key[2] == candidate.name for key in work.names):
            raise BadInputError(f"{candidate.name}: {plan.program} ran no case: {refused[0]}")
    return _judged(work, done)


def _measured(
    work: Work, name: str, outcome: _core.Outcome | Ended, folder: Path
) -> dict[str, Any]:
    """What is kept of a run."""
    began = time.thread_time()
    case, variant, candidate, seed = work.tasks[name]
    media = cases.build(case, variant, candidate, work.plan.sets).media
    run = measuring.Run(pl.read_parquet(folder / "packets.parquet"), case, media)
    return {
        "measures": measuring.measures(run, case.bands_of(variant)),
        "curves": measuring.curves(run) if seed == 1 else None,
        "digest": outcome.digest,
        "cpu_s": outcome.cpu_s + time.thread_time() - began,
    }


def _there(unfinished: output_folder.Resumable, names: Iterable[str]) -> dict[str, Any]:
    """The runs that are stored; not those that were half written."""
    found = {}
    for name in names:
        file = unfinished.folder / "runs" / name / output_folder.MANIFEST
        with contextlib.suppress(OSError, ValueError):
            found[name] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _keep(unfinished: output_folder.Resumable, name: str, found: Mapping[str, Any]) -> None:
    unfinished.check()
    place = unfinished.folder / "runs" / name
    part = output_folder.part(place)
    # Not a number is a value here, which JSON in the strict sense has not.
    file_access.write_text(part / output_folder.MANIFEST, json.dumps(found))
    # A half written one may be there.
    shutil.rmtree(place, ignore_errors=True)
    with file_access.writing(place):
        part.rename(place)


def _judged(work: Work, done: Mapping[str, Mapping[str, Any]]) -> Evaluation:
    plan = work.plan
    evaluation = Evaluation(plan, cpu_s=sum(one["cpu_s"] for one in done.values()))
    for case in plan.cases:
        found = evaluation.measured[case.id] = []
        shown = [name for name in case.variants if name not in case.references]
        for variant, candidate in product(shown, plan.candidates):
            key = case.id, variant, candidate.name
            runs = [done[name] for name in work.names.get(key, ())]
            if runs:
                evaluation.curves[key] = runs[0]["curves"]
            for band in case.bands_of(variant):
                if "better" not in band or plan.baseline is not None:
                    found += _of_band(work, case, key, band, done)
        judging.judge(found, {name: case.variants[name].get("judged", True) for name in shown})
    return evaluation


def _of_band(
    work: Work,
    case: Case,
    key: Key,
    band: Mapping[str, Any],
    done: Mapping[str, Mapping[str, Any]],
) -> list[Measured]:
    """The measures of a band, one alone or one of each phase, of a candidate in a variant."""
    baseline = work.plan.baseline
    controlled = next(one.kind != "udp" for one in work.plan.candidates if one.name == key[2])
    keys = [key] if baseline in (None, key[2]) else [key, (*key[:2], str(baseline))]
    notes = [work.unfit.get(one, "") for one in keys]
    if "versus" in band:
        notes += [work.unfit.get(_versus(case, one, band), "") for one in keys]
    note = next(filter(None, notes), "" if controlled else "no congestion control")
    judged = band if baseline is None else judging.against(band, judged=len(keys) > 1)
    found = []
    for measure in measuring.windows(case, band):
        values, *of_baseline = (_values(work, case, one, band, measure, done) for one in keys)
        for others in of_baseline:
            values = [one - other for one, other in zip(values, others, strict=False)]
        found.append(Measured(*key, measure, judged, values, note, len(keys) > 1))
    return found


def _versus(case: Case, key: Key, band: Mapping[str, Any]) -> Key:
    """What a band compares with."""
    return key[0], case.reference(key[1], band["versus"]), key[2]


def _values(
    work: Work,
    case: Case,
    key: Key,
    band: Mapping[str, Any],
    measure: str,
    done: Mapping[str, Mapping[str, Any]],
) -> list[float]:
    """One of each seed."""
    values = [done[name]["measures"][measure] for name in work.names.get(key, ())]
    if "versus" not in band:
        return values
    # Without the other, there is nothing to compare with.
    names = work.names.get(_versus(case, key, band), ())
    both = zip(values, (done[name]["measures"][measure] for name in names), strict=False)
    return [_compared(one, other, band["as"]) for one, other in both]


def _compared(one: float, other: float, how: str) -> float:
    if how == "difference":
        return one - other
    return one / other if other else math.nan


def write(evaluation: Evaluation, unfinished: output_folder.Resumable, page: str | None) -> Path:
    """Write the results in place of the runs they are made of, and commit the folder."""
    folder = unfinished.folder
    document = file_access.to_json(evaluation.to_json())
    file_access.write_text(folder / "results.json", document)
    if page is not None:
        file_access.write_text(folder / output_folder.REPORT, page)
    header = {
        "talkspurt": _core.version(),
        "kind": "evaluation",
        "study": unfinished.claim.name,
        "engine": provenance.engine(),
    }
    file_access.write_text(folder / output_folder.MANIFEST, file_access.to_json(header))
    shutil.rmtree(folder / "runs", ignore_errors=True)
    return unfinished.commit()
