"""The studies talkspurt grew from, re-run: what was printed, what comes out, and why they differ.

A study is a TOML file (what it prints and states, what was inferred, the bands of a match), a
module that runs it, and where ns-2 can say something a script with its recorded values. ``lab``
runs and keeps what is read, ``rows`` judges what the replications gave, ``checks`` finds what
cannot be, ``dossier`` writes the pages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from talkspurt import engine
from talkspurt.reproduce import checks, ns2, study_file
from talkspurt.reproduce.lab import Case, Lab, Run
from talkspurt.reproduce.rows import Row, Values, judge_all
from talkspurt.reproduce.study_file import StudyFile

if TYPE_CHECKING:
    from types import ModuleType

NAMES = ("nor2010", "wheeb2017", "maldonado2005", "sarao2019", "renker2008")
"""The studies, as the command line calls them."""


@dataclass(frozen=True)
class Reproduction:
    """A study re-run.

    Attributes:
        file: what the study prints and states.
        rows: each value with its verdict.
        cases: the runs, by name.
        values: what the rows were judged by.
    """

    file: StudyFile
    rows: tuple[Row, ...]
    cases: Mapping[str, Case]
    values: Values

    def run(self, name: str) -> Run:
        """The run of a scenario under its first seed, as figures over time show it."""
        return self.cases[name].first

    def to_json(self) -> dict[str, Any]:
        """The document ``talkspurt reproduce NAME --json`` prints."""
        name = self.file.name
        return {"study": name, "rows": [row.to_json(name) for row in self.rows]}


def document(found: Sequence[Reproduction], name: str) -> dict[str, Any]:
    """One document of several studies, their rows one after the other."""
    return {"study": name, "rows": [row for one in found for row in one.to_json()["rows"]]}


def reproduce(
    names: Sequence[str] = NAMES,
    *,
    jobs: int | None = None,
    fresh_ns2: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> list[Reproduction]:
    """Re-run studies; see :func:`reproductions`."""
    return list(reproductions(names, jobs=jobs, fresh_ns2=fresh_ns2, step=step))


def reproductions(
    names: Sequence[str] = NAMES,
    *,
    jobs: int | None = None,
    fresh_ns2: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> Iterator[Reproduction]:
    """Re-run studies, each given as soon as its runs are done; the others' go on meanwhile.

    Args:
        names: which, of :data:`NAMES`.
        jobs: runs at a time; all cores unless told.
        fresh_ns2: run ns-2, which must be installed, instead of taking its recorded values.
        step: hears which study is looked at next.

    Raises:
        talkspurt.reproduce.ns2.Ns2Error: when ns-2 was asked for and is not there.
    """
    pool = ThreadPoolExecutor(jobs or engine.cores())
    try:
        files = {name: study_file.load(name) for name in names}
        labs = {name: Lab(pool, file.repeated) for name, file in files.items()}
        for name, lab in labs.items():
            module(name).cases(lab)
        for name, file in files.items():
            step(name)
            peer = ns2.measured(name) if fresh_ns2 and ns2.scripted(name) else ns2.recorded(name)
            lab = labs.pop(name)
            values = dataclasses.replace(module(name).values(lab), ns2=peer)
            yield judged(file, values, lab.cases)
    finally:
        # Who is interrupted does not wait for what has not begun.
        pool.shutdown(cancel_futures=True)


def module(name: str) -> ModuleType:
    """The module that runs a study."""
    return import_module(f"talkspurt.reproduce.{name}")


def judged(file: StudyFile, values: Values, cases: Mapping[str, Case]) -> Reproduction:
    """A study's rows with their verdicts."""
    facts = {**file.stated, "printed": {spec.id: spec.paper for spec in file.rows}}
    impossible = {spec.id: checks.impossible(spec, facts) for spec in file.rows}
    rows = judge_all(file.rows, values, impossible)
    return Reproduction(file, tuple(rows), cases, values)
