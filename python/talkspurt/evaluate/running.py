"""Runs an evaluation: every candidate in every variant of every case, with every seed.

Each run is stored when it ends, so that an evaluation that was stopped or killed goes on from
there. Its folder's name has a hash of all inputs: what they change is run again.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from talkspurt import _core
from talkspurt._storage import file_access, output_folder
from talkspurt._terminal.progress import say_news
from talkspurt._text import problems
from talkspurt.errors import BadInputError, Faults
from talkspurt.evaluate import cases, judging, measuring
from talkspurt.evaluate.cases import Candidate, Case
from talkspurt.evaluate.judging import Measured
from talkspurt.results.run_data import Scratch
from talkspurt.runs import engine
from talkspurt.scenarios import provenance
from talkspurt.scenarios.source import pairs, read

Key = tuple[str, str, str]
"""Case, variant and candidate."""
OF_ALL = ""
"""The candidate of a variant for comparison that has none."""


@dataclass(frozen=True)
class Plan:
    """What is evaluated.

    Attributes:
        sets: overrides of the scenarios, as pairs of path and value in TOML.
        seeds: each variant is run with the seeds 1 to this.
    """

    cases: Sequence[Case]
    candidates: Sequence[Candidate]
    seeds: int
    sets: Sequence[tuple[str, Any]] = ()

    @property
    def runs(self) -> int:
        """How many runs it has at most."""
        return self.seeds * len(self.candidates) * sum(len(case.variants) for case in self.cases)

    @property
    def key(self) -> str:
        """A hash of everything that a result depends on."""
        code = [
            Path(str(module.__file__)).read_text(encoding="utf-8") for module in (cases, measuring)
        ]
        return provenance.key((), repr(self), code)


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
    variants = [(case, variant) for case in plan.cases for variant in case.variants]
    for candidate in plan.candidates:
        refused: dict[str, None] = {}
        fits = False
        for case, variant in variants:
            why = cases.unable(case, variant, candidate)
            if not why:
                built = cases.build(case, variant, candidate, plan.sets)
                try:
                    read(built.scenario, set=built.sets, seed=1)
                    fits = True
                    continue
                except _core.ScenarioError as error:
                    why = "; ".join(dict.fromkeys(map(_said, error.problems)))
                except ValueError as error:
                    why = str(error)
                refused[why] = None
            found[case.id, variant, candidate.name] = why
        faults.add(f"{candidate.name}: {'; '.join(refused)}", unless=fits or not refused)
    faults.check()
    return found


def _said(problem: _core.Problem) -> str:
    return problems.text({**problem, "file": "", "line": None}).removeprefix("scenario: ")


def _each(plan: Plan) -> list[tuple[Case, str, Candidate]]:
    return [
        (case, variant, candidate)
        for case in plan.cases
        for variant in case.variants
        for candidate in plan.candidates
    ]


def evaluate(
    plan: Plan,
    unfinished: output_folder.Resumable | None = None,
    *,
    jobs: int | None = None,
    on_progress: Callable[[engine.Progress], None] = lambda _: None,
) -> Evaluation:
    """Run what is not in a folder yet, and judge all.

    Raises:
        BadInputError: if nothing can be run.
    """
    unfit = _unfit(plan)
    # Of each run: its case, variant and candidate, and its seed.
    tasks: dict[str, tuple[Case, str, Candidate, int]] = {}
    names: dict[Key, list[str]] = {}
    for case, variant, candidate in _each(plan):
        alone = case.variants[variant].get("tcp", False)
        key = case.id, variant, candidate.name
        if key in unfit:
            continue
        place = [*case.variants].index(variant), plan.candidates.index(candidate)
        who = "all" if alone else str(place[1])
        for seed in range(1, plan.seeds + 1):
            name = f"{case.id}-{place[0]}-{who}-{seed}"
            tasks.setdefault(name, (case, variant, candidate, seed))
            names.setdefault(key, []).append(name)
    done = _there(unfinished, tasks)
    if done:
        say_news([f"{len(done)} of {len(tasks)} runs were there already"])
    missing = [name for name in tasks if name not in done]
    scratch: dict[str, Scratch] = {}

    def start(i: int) -> engine.Job[_core.Outcome]:
        case, variant, candidate, seed = tasks[name := missing[i]]
        built = cases.build(case, variant, candidate, plan.sets)
        scratch[name] = Scratch()
        question = read(built.scenario, set=built.sets, seed=seed)
        return question.plan.start(0, str(scratch[name].path), "none", None, False)

    def on_end(i: int, outcome: _core.Outcome) -> None:
        name = missing[i]
        done[name] = _measured(*tasks[name], plan, outcome, scratch[name].path)
        if unfinished is not None:
            _keep(unfinished, name, done[name])
        del scratch[name]

    engine.each(start, range(len(missing)), jobs=jobs, on_end=on_end, on_progress=on_progress)
    return _judged(plan, unfit, names, done)


def _measured(
    case: Case,
    variant: str,
    candidate: Candidate,
    seed: int,
    plan: Plan,
    outcome: _core.Outcome,
    folder: Path,
) -> dict[str, Any]:
    """What is kept of a run."""
    began = time.thread_time()
    media = cases.build(case, variant, candidate, plan.sets).media
    run = measuring.Run(measuring.read(folder / "packets.parquet"), case, media)
    videos = {name for one in media for name in one.video}
    rows = [row for row in outcome.rows("flows") if row["name"] in videos]
    controlled = candidate.controller is not None and not case.variants[variant].get("tcp")
    silent = controlled and not any(row.get("feedback_packets") for row in rows)
    return {
        "measures": measuring.measures(run, case.bands_of(variant)),
        "curves": measuring.curves(run) if seed == 1 else None,
        "note": "no feedback" if silent else "",
        "digest": outcome.digest,
        "cpu_s": outcome.cpu_s + time.thread_time() - began,
    }


def _there(
    unfinished: output_folder.Resumable | None, names: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The runs that are stored."""
    if unfinished is None:
        return {}
    parts = [part for part in unfinished.finished if part.name in names]
    return {
        part.name: json.loads((part / output_folder.MANIFEST).read_text(encoding="utf-8"))
        for part in parts
    }


def _keep(unfinished: output_folder.Resumable, name: str, found: Mapping[str, Any]) -> None:
    unfinished.check()
    place = unfinished.folder / "runs" / name
    part = output_folder.part(place)
    # Not a number is a value here, which JSON in the strict sense has not.
    file_access.write_text(part / output_folder.MANIFEST, json.dumps(found))
    with file_access.writing(place):
        part.rename(place)


def _judged(
    plan: Plan,
    unfit: Mapping[Key, str],
    names: Mapping[Key, Sequence[str]],
    done: Mapping[str, Mapping[str, Any]],
) -> Evaluation:
    evaluation = Evaluation(plan, cpu_s=sum(one["cpu_s"] for one in done.values()))
    for case in plan.cases:
        found = evaluation.measured[case.id] = []
        shown = [name for name in case.variants if name not in case.references]
        for variant in shown:
            for candidate in plan.candidates:
                key = case.id, variant, candidate.name
                runs = [done[name] for name in names.get(key, ())]
                if runs:
                    evaluation.curves[key] = runs[0]["curves"]
                found += _of_variant(case, variant, candidate.name, runs, names, done, unfit)
        judging.judge(found, {name: case.variants[name].get("judged", True) for name in shown})
    return evaluation


def _of_variant(
    case: Case,
    variant: str,
    candidate: str,
    runs: Sequence[Mapping[str, Any]],
    names: Mapping[Key, Sequence[str]],
    done: Mapping[str, Mapping[str, Any]],
    unfit: Mapping[Key, str],
) -> list[Measured]:
    found = []
    for band in case.bands_of(variant):
        name = band.get("name", band["measure"])
        measures = [n for n in (runs[0]["measures"] if runs else ()) if _is_of(n, name)]
        for measure in measures or [name]:
            values = [run["measures"][measure] for run in runs]
            note = unfit.get((case.id, variant, candidate), runs[0]["note"] if runs else "")
            if "versus" in band and values:
                other = case.reference(variant, band["versus"])
                key = case.id, other, candidate
                against = [done[one]["measures"][measure] for one in names.get(key, ())]
                ratio = band["as"] == "ratio"
                # Without the other, there is nothing to compare with.
                values = [
                    (one / two if two else float("nan")) if ratio else one - two
                    for one, two in zip(values, against, strict=False)
                ]
                note = note or unfit.get(key, "")
            found.append(Measured(case.id, variant, candidate, measure, band, values, note))
    return found


def _is_of(measure: str, name: str) -> bool:
    """Whether a measure is that of a name, or of a phase of it."""
    rest = measure.removeprefix(name)
    return measure.startswith(name) and (not rest or rest.strip().isdigit())


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


def read_sets(texts: Sequence[str]) -> list[tuple[str, Any]]:
    """Overrides of a command line.

    Raises:
        BadInputError: with everything that is not PATH=VALUE.
    """
    try:
        return [*pairs(list(texts))]
    except ValueError as error:
        raise BadInputError(f"--set {error}") from None
