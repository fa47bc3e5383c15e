"""The studies talkspurt grew from, re-run: what was printed, what comes out, and why they differ.

A study is a TOML file (what it prints and states, what was inferred, the bands of a match), a
module that runs it, and where ns-2 can say something a script with its recorded values. ``rows``
judges, ``checks`` finds what cannot be, ``dossier`` writes the pages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from talkspurt import engine
from talkspurt.reproduce import checks, ns2, study_file
from talkspurt.reproduce.lab import Case, Lab
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
    """Re-run studies.

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
        labs = {name: Lab(pool) for name in names}
        for name, lab in labs.items():
            module(name).cases(lab)
        found = []
        for name, lab in labs.items():
            step(name)
            peer = ns2.measured(name) if fresh_ns2 and ns2.scripted(name) else ns2.recorded(name)
            values = dataclasses.replace(module(name).values(lab), ns2=peer)
            found.append(judged(study_file.load(name), values, lab.cases))
    except BaseException:
        # Who was interrupted does not wait for what has not begun.
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
    return found


def module(name: str) -> ModuleType:
    """The module that runs a study."""
    return import_module(f"talkspurt.reproduce.{name}")


def judged(file: StudyFile, values: Values, cases: Mapping[str, Case]) -> Reproduction:
    """A study's rows with their verdicts."""
    impossible = {spec.id: checks.impossible(spec, file.stated) for spec in file.rows}
    rows = judge_all(file.rows, values, impossible)
    return Reproduction(file, tuple(rows), cases, values)
