"""Re-runs of published studies: printed values, our values, and reasons for differences.

A study is two TOML files (printed values, statements, inferences and bands; scenarios, formulas of
rows, notes and figures), a module with the names in the formulas, and where ns-2 applies a script
with its recorded values. ``lab`` runs the scenarios and keeps the required tables, ``formulas``
computes the rows from them and finds impossible values, ``rows`` judges the replications,
``dossier`` writes the pages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from talkspurt.errors import BadInputError
from talkspurt.reproduce import formulas, ns2, study_file
from talkspurt.reproduce.formulas import module
from talkspurt.reproduce.lab import Case, Lab, Run
from talkspurt.reproduce.rows import Row, Values, judge_all
from talkspurt.reproduce.sample import Sample
from talkspurt.reproduce.study_file import StudyFile, scenarios
from talkspurt.runs import engine

NAMES = ("nor2010", "wheeb2017", "maldonado2005", "sarao2019", "renker2008")
"""Command-line names of the studies."""


@dataclass(frozen=True)
class Reproduction:
    """A study re-run.

    Attributes:
        file: the study's printed values and statements.
        rows: each value with its verdict.
        cases: the scenarios with their runs, by name.
        values: the input of the verdicts.
        sets: overrides of scenario fields; with them, the study is a variation of its own.
    """

    file: StudyFile
    rows: tuple[Row, ...]
    cases: Mapping[str, Case]
    values: Values
    sets: tuple[str, ...] = ()

    def run(self, name: str) -> Run:
        """The run of a scenario under its first seed, used by figures over time."""
        return self.cases[name].first

    def to_json(self) -> dict[str, Any]:
        """The document ``talkspurt reproduce NAME --json`` prints."""
        return document([self], self.file.name)


def document(found: Sequence[Reproduction], name: str) -> dict[str, Any]:
    """One document for several studies, with their rows in sequence."""
    sets = dict.fromkeys(each for one in found for each in one.sets)
    varied = {"set": list(sets)} if sets else {}
    rows = [row.to_json(one.file.name) for one in found for row in one.rows]
    return {"study": name, **varied, "rows": rows}


def reproduce(
    names: Sequence[str] = NAMES,
    *,
    jobs: int | None = None,
    fresh_ns2: bool = False,
    sets: Sequence[str] = (),
    step: Callable[[str], None] = lambda _: None,
) -> list[Reproduction]:
    """Re-run studies; see :func:`reproductions`."""
    return list(reproductions(names, jobs=jobs, fresh_ns2=fresh_ns2, sets=sets, step=step))


def reproductions(
    names: Sequence[str] = NAMES,
    *,
    jobs: int | None = None,
    fresh_ns2: bool = False,
    sets: Sequence[str] = (),
    step: Callable[[str], None] = lambda _: None,
) -> Iterator[Reproduction]:
    """Re-run studies; yields each as soon as its runs are done, while the others continue.

    Args:
        names: selection of :data:`NAMES`.
        jobs: concurrent runs; default: all cores.
        fresh_ns2: run ns-2, which must be installed, instead of using its recorded values.
        sets: ``PATH=VALUE`` overrides a field of every scenario that has it. Rows computed from
            these scenarios then have no value of ns-2, which was not varied.
        step: called with the study to be processed next.

    Raises:
        talkspurt.errors.BadInputError: if no scenario has such a field, or its value is wrong.
        talkspurt.reproduce.ns2.Ns2Error: if ns-2 was requested and is missing.
    """
    pool = ThreadPoolExecutor(jobs or engine.cores())
    try:
        files = {name: study_file.load(name) for name in names}
        labs = {name: Lab(pool, file.repeated, sets) for name, file in files.items()}
        for name, lab in labs.items():
            keep = formulas.kept(name)
            for one in scenarios(name, getattr(module(name), "AXES", None)):
                lab.ask(one.name, one.table, one.profile, **keep.get(one.keep, {}))
            lab.check()
        for name, file in files.items():
            step(name)
            recorded = study_file.recorded(name, "ns2").get("values", {})
            peer = ns2.measured(name) if fresh_ns2 else recorded
            lab = labs.pop(name)
            values = dataclasses.replace(_values(name, lab, sets), ns2=peer)
            varied = [spec.id for spec in file.rows if sets and lab.varied(spec.id)]
            found = judged(file, values, lab.cases, varied)
            yield _varied(found, varied, sets) if sets else found
    finally:
        # After an interrupt, do not wait for jobs that have not started.
        pool.shutdown(cancel_futures=True)


def _values(name: str, lab: Lab, sets: Sequence[str]) -> Values:
    """The values of all rows; of a variation, they may not exist."""
    try:
        return formulas.values(name, lab)
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        if not sets:
            raise
        words = f"{type(error).__name__}: {error}".rstrip(": ")
        raise BadInputError(
            f"--set {' --set '.join(sets)}: the numbers of the study cannot be computed from these "
            f"runs ({words})"
        ) from error


def _varied(found: Reproduction, varied: Collection[str], sets: Sequence[str]) -> Reproduction:
    """A variation: rows of varied scenarios say so and have no value of ns-2."""
    rows = []
    for row in found.rows:
        if row.spec.id not in varied:
            rows.append(row)
            continue
        names = found.values.cases.get(row.spec.id, ())
        used = dict.fromkeys(one for name in names for one in found.cases[name].sets)
        reason = f"Varied: {', '.join(used)}. {row.reason}".rstrip()
        rows.append(dataclasses.replace(row, ns2=None, reason=reason))
    return dataclasses.replace(found, rows=tuple(rows), sets=tuple(sets))


def judged(
    file: StudyFile, values: Values, cases: Mapping[str, Case], varied: Collection[str] = ()
) -> Reproduction:
    """A study's rows with their verdicts.

    Checks compute from the numbers in the text, which do not hold for ``varied`` rows.
    """
    facts = file.facts
    found = {s.id: formulas.impossible(s, facts) for s in file.rows if s.id not in varied}
    rows = judge_all(file.rows, values, found)
    return Reproduction(file, tuple(rows), cases, values)


LIVE = ("", "over sockets")
"""The words before the values of a study measured in real time, which has no stated ones."""


def judged_live(file: StudyFile, live: Mapping[str, Sample]) -> list[Row]:
    """The rows of a study that were measured in real time, with their verdicts."""
    facts, specs = file.facts, [spec for spec in file.rows if spec.id in live]
    found = {spec.id: formulas.impossible(spec, facts) for spec in specs}
    return judge_all(specs, Values(inferred=live), found, LIVE)
