"""Runs an evaluation: every candidate in every variant of every case, with every seed.

Each run is stored when it ends, so that an evaluation that was stopped or killed goes on from
there. Its folder's name has a hash of all inputs: what they change is run again.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from talkspurt import _core
from talkspurt._lazy import pl
from talkspurt._storage import file_access, output_folder
from talkspurt._terminal.progress import say_news
from talkspurt._text import problems
from talkspurt.errors import BadInputError
from talkspurt.evaluate import cases, judging, measuring
from talkspurt.evaluate.cases import Candidate, Case
from talkspurt.evaluate.judging import Measured
from talkspurt.evaluate.program import FOLDER, Ended, ProgramJob, applied, valued
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
        tables = [table for one in self.candidates for table in (one.transport, one.controller)]
        # What is set may be a file, or a table with one.
        set_there = [{path.rpartition(".")[2]: valued(value)} for path, value in self.sets]
        named = [*provenance.files_in([*tables, *set_there]), *filter(None, [self.program])]
        return provenance.key((), repr(self), code, [provenance.file(name) for name in named])

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
        failed: runs of the program that gave no result, though it can run their variant.
        cpu_s: time of processors that runs took, those stored before included.
    """

    plan: Plan
    measured: dict[str, list[Measured]] = field(default_factory=dict)
    curves: dict[Key, dict[str, Any]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
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
        BadInputError: with everything that is wrong with candidates that can run none, and with
            what is set.
    """
    found: dict[Key, str] = {}
    faults: dict[str, None] = {}
    variants = [(case, variant) for case in plan.cases for variant in case.variants]
    for candidate in plan.candidates:
        # By their texts without what is proposed: names differ from case to case.
        refused: dict[str, str] = {}
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
                    # TCP in place of media says nothing of the candidate.
                    fits = fits or not case.variants[variant].get("tcp")
                    continue
                except _core.ScenarioError as error:
                    why = "; ".join(dict.fromkeys(map(_said, error.problems)))
                    wrong = [_wrong(plan, candidate, problem) for problem in error.problems]
                except (ValueError, BadInputError) as error:
                    why = str(error)
                    wrong = [why]
                for text in wrong:
                    refused.setdefault(text.partition(" – ")[0], text)
            found[case.id, variant, candidate.name] = why
        if not fits:
            faults |= dict.fromkeys(refused.values())
    if faults:
        raise BadInputError("; ".join(faults))
    return found


def _said(problem: _core.Problem) -> str:
    return problems.text({**problem, "file": "", "line": None}).removeprefix("scenario: ")


def _wrong(plan: Plan, candidate: Candidate, problem: _core.Problem) -> str:
    """An error in a scenario as one in the option it is from, the same of all video flows."""
    asked = problem["file"].removeprefix("--set ").partition("=")[0]
    text = problems.text({**problem, "path": ""})
    if asked in dict(plan.sets):
        return text
    if FLOW.sub("media.", asked) in dict(plan.sets):
        return FLOW.sub("media.", text)
    option, _, rest = FLOW.sub("", problem["path"]).partition(".")
    if option not in ("controller", "transport"):
        return _said(problem)
    where = f"--{option} {candidate.name}"
    return problems.text({**problem, "file": where, "line": None, "path": rest})


FLOW = re.compile(r"\bflows\.video(-\d+)?(-resumed)?\.")
"""A video flow of a case."""


@dataclass
class Work:
    """The runs of a plan, each once, though several candidates may be compared with it.

    Attributes:
        tasks: case, variant, candidate and seed of each run, by its name.
        names: the names of the runs of each candidate in each variant, in order of the seeds.
        unfit: why candidates cannot run variants.
        failed: what became of runs of the program that gave no result, by their names.
    """

    plan: Plan
    unfit: dict[Key, str]
    failed: dict[str, Ended] = field(default_factory=dict)
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

    def lost(self, key: Key) -> str:
        """Without which seeds of a variant the results are, and why; empty if with all."""
        its = [name for name in self.names.get(key, ()) if name in self.failed]
        seeds = ", ".join(str(self.tasks[name][3]) for name in its)
        why = "; ".join(dict.fromkeys(self.failed[name].failed for name in its))
        return f"without seed{'s' if len(its) > 1 else ''} {seeds}: {why}" if its else ""

    def failures(self) -> Iterator[str]:
        """What failed; not variants that the program refused with every seed."""
        for key, its in self.names.items():
            ended = [self.failed[name] for name in its if name in self.failed]
            if ended and (len(ended) < len(its) or any(one.crashed for one in ended)):
                case, variant, candidate = key
                yield f"{candidate}, {case} {variant}, {self.lost(key)}"

    def settle(self) -> None:
        """Note which variants the program refused, when all has run.

        Raises:
            BadInputError: if it ran nothing of a candidate.
        """
        of: dict[str, list[Key]] = {}
        for key, its in self.names.items():
            if all(name in self.failed for name in its):
                self.unfit[key] = self.failed[its[0]].failed
            if not self.tasks[its[0]][0].variants[key[1]].get("tcp"):
                of.setdefault(key[2], []).append(key)
        for candidate, keys in of.items():
            if all(key in self.unfit for key in keys):
                said = f"{self.plan.program} ran no case: {self.unfit[keys[0]]}"
                raise BadInputError(f"{candidate}: {said}")


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
        if isinstance(outcome, Ended) and outcome.failed:
            work.failed[name] = outcome
            return
        by_program = isinstance(outcome, Ended)
        written = folder.path / FOLDER if by_program else folder.path
        done[name] = _measured(work, name, outcome, written)
        if unfinished is not None:
            _keep(unfinished, name, done[name])

    engine.each(start, range(len(missing)), jobs=jobs, on_end=on_end, on_progress=on_progress)
    work.settle()
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
    cpu_s = sum(one["cpu_s"] for one in done.values())
    evaluation = Evaluation(plan, failed=[*work.failures()], cpu_s=cpu_s)
    for case in plan.cases:
        found = evaluation.measured[case.id] = []
        shown = [name for name in case.variants if name not in case.references]
        for variant, candidate in product(shown, plan.candidates):
            key = case.id, variant, candidate.name
            runs = _by_seed(work, key, done)
            if 1 in runs:
                evaluation.curves[key] = runs[1]["curves"]
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
    note = _note(work, case, key, band) or ("" if controlled else "no congestion control")
    judged, other = band, None
    if baseline is not None:
        other = None if key[2] == baseline else (*key[:2], baseline)
        judged = judging.against(band, judged=other is not None)
    if other is not None and (of_baseline := _note(work, case, other, band)):
        note = "; ".join(filter(None, (note, f"{baseline}: {of_baseline}")))
    found = []
    for measure in measuring.windows(case, band):
        values = _values(work, case, key, band, measure, done)
        if other is not None:
            against = _values(work, case, other, band, measure, done)
            values = _paired(values, against, "difference")
        its = [*values.values()]
        found.append(Measured(*key, measure, judged, its, note, other is not None))
    return found


def _versus(case: Case, key: Key, band: Mapping[str, Any]) -> Key:
    """What a band compares with."""
    return key[0], case.reference(key[1], band["versus"]), key[2]


def _note(work: Work, case: Case, key: Key, band: Mapping[str, Any]) -> str:
    """Why there are no values of a band, or without which seeds they are."""
    keys = [key, _versus(case, key, band)] if "versus" in band else [key]
    return next(filter(None, (work.unfit.get(one, "") or work.lost(one) for one in keys)), "")


def _values(
    work: Work,
    case: Case,
    key: Key,
    band: Mapping[str, Any],
    measure: str,
    done: Mapping[str, Mapping[str, Any]],
) -> dict[int, float]:
    """One of each seed that has one."""
    its = {n: run["measures"][measure] for n, run in _by_seed(work, key, done).items()}
    if "versus" not in band:
        return its
    others = _by_seed(work, _versus(case, key, band), done)
    versus = {n: run["measures"][measure] for n, run in others.items()}
    return _paired(its, versus, band["as"])


def _by_seed(
    work: Work, key: Key, done: Mapping[str, Mapping[str, Any]]
) -> dict[int, Mapping[str, Any]]:
    """What was measured of a candidate in a variant."""
    return {work.tasks[n][3]: done[n] for n in work.names.get(key, ()) if n in done}


def _paired(its: Mapping[int, float], others: Mapping[int, float], how: str) -> dict[int, float]:
    """Compared seed by seed: without the other, there is nothing to compare with."""
    return {n: _compared(one, others[n], how) for n, one in its.items() if n in others}


def _compared(one: float, other: float, how: str) -> float:
    if how == "difference":
        # Sums in another order differ in the last digits; what is infinite in both is equal.
        return 0.0 if math.isclose(one, other, rel_tol=1e-12) else one - other
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
