"""Runs the scenarios of a study concurrently and keeps the tables that rows and figures need.

A run's tables are large and its numbers few: everything not requested is freed when the run ends.
Scenarios with random streams, or whose outcome depends on when flows start, run under several
seeds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from talkspurt import _core, api
from talkspurt._text import problems
from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError
from talkspurt.reproduce.sample import Sample, Value, samples
from talkspurt.runs import engine
from talkspurt.scenarios.source import Question, read

ABSENT = re.compile(r'\bhas no "')
"""The message on a field that a scenario does not have."""
WHOLE = ("flows", "links")
"""Tables that are always kept: one row per flow and link."""


Keep = Callable[["pl.DataFrame"], "pl.DataFrame"]
"""The part of a table to keep."""


def part(*columns: str, flow: str = "", side: str | None = None) -> Keep:
    """Some columns of a table, for flows with this name prefix, from one side or both."""

    def kept(table: pl.DataFrame) -> pl.DataFrame:
        mine = pl.col("flow").str.starts_with(flow)
        if side is not None:
            mine &= pl.col("side") == side
        # A copy, with names as numbers: a slice or a string would keep the whole table.
        copied = pl.col(*columns).gather(pl.int_range(pl.len()))
        return (
            table.filter(mine).select(copied).with_columns(pl.col(pl.String).cast(pl.Categorical))
        )

    return kept


@dataclass(frozen=True)
class Run:
    """The kept tables of one run; its name is that of its scenario's file."""

    name: str
    seed: int
    digest: str
    duration_s: float
    tables: Mapping[str, pl.DataFrame]

    @property
    def flows(self) -> pl.DataFrame:
        """One row per flow."""
        return self.tables["flows"]

    def flow(self, name: str, column: str) -> float:
        """A number of a flow, NaN if missing."""
        value = self.rows[name][column]
        return float("nan") if value is None else float(value)

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of flows by name: a filter costs more than a row."""
        return {row["name"]: row for row in self.flows.to_dicts()}

    def series(self, flow: str) -> pl.DataFrame:
        """A flow's time series."""
        return self.tables["series"].filter(flow=flow)

    def gauges(self, flow: str, gauge: str) -> pl.DataFrame:
        """The changes of a gauge of the endpoints."""
        return self.tables["gauges"].filter(flow=flow, gauge=gauge)

    @property
    def packets(self) -> pl.DataFrame:
        """The kept part of the packet table."""
        return self.tables["packets"]


@dataclass(frozen=True)
class Case:
    """A scenario of a study and its runs.

    Attributes:
        toml: the scenario as a file, including replications.
        profile: ``stated``, ``inferred`` or ``companion``: the origin of its parameters.
        sets: overrides of its fields, if the study is varied.
    """

    name: str
    toml: str
    profile: str
    _answers: Sequence[Future[Run]]
    sets: tuple[str, ...] = ()

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The results, in seed order; waits for them."""
        return tuple(answer.result() for answer in self._answers)

    @property
    def first(self) -> Run:
        """The run of the first seed, used by figures over time."""
        return self.runs[0]

    @property
    def replications(self) -> int:
        """The number of runs."""
        return len(self._answers)


Rows = Callable[..., Mapping[str, Value]]
"""Computes rows from runs of some scenarios, one of each in the order of their names."""


class Lab:
    """Accepts scenarios and runs them when cores are free."""

    def __init__(
        self,
        pool: ThreadPoolExecutor | None = None,
        repeated: Callable[[str], int] = lambda _: 1,
        sets: Sequence[str] = (),
    ) -> None:
        self.cases: dict[str, Case] = {}
        self.used: dict[str, list[str]] = {}
        """The scenarios from which a row was computed."""
        self._pool = pool or ThreadPoolExecutor(engine.cores())
        self._repeated = repeated
        self._sets = tuple(sets)
        self.unfit: dict[str, str] = {}
        """Why an override fits no scenario so far."""

    def ask(self, name: str, scenario: Mapping[str, Any], profile: str, /, **keep: Keep) -> Case:
        """Request the runs of a scenario, of which ``keep`` is kept; free cores start them."""
        assert name not in self.cases, f"{name} was asked before"
        count = self._repeated(name)
        asked = {"title": name, **scenario}
        sets = self._fitting(asked)
        whole = {**asked, "replications": {"count": count}} if count > 1 else asked
        question = read(whole, set=list(sets) or None)
        runs = range(len(question.plan))
        answers = [self._pool.submit(_run, name, question, i, keep) for i in runs]
        self.cases[name] = Case(name, question.text, profile, answers, sets)
        return self.cases[name]

    def _fitting(self, scenario: Mapping[str, Any]) -> tuple[str, ...]:
        fitting = []
        for one in self._sets:
            try:
                read(scenario, set=[one])
            except _core.ScenarioError as error:
                told = "; ".join(problems.text(problem) for problem in error.problems)
                if not all(ABSENT.search(problem["message"]) for problem in error.problems):
                    raise BadInputError(visible(told)) from None
                self.unfit.setdefault(one, told)
            except ValueError as error:
                raise BadInputError(visible(f"--set {one}: {error}")) from None
            else:
                fitting.append(one)
        return tuple(fitting)

    def check(self) -> None:
        """Raise BadInputError unless each override fits some scenario."""
        used = {one for case in self.cases.values() for one in case.sets}
        unused = [one for one in self._sets if one not in used]
        if unused:
            words = "; ".join(self.unfit[one] for one in unused)
            raise BadInputError(visible(f"no scenario of the study has this field: {words}"))

    def varied(self, row: str) -> bool:
        """Whether a row was computed from a scenario with an override."""
        return any(self.cases[name].sets for name in self.used.get(row, ()))

    def samples(self, names: Iterable[str], rows: Rows) -> dict[str, Sample]:
        """Rows computed from these scenarios, once per replication.

        A scenario with a single run is shared by all; others are paired by seed.
        """
        names = list(names)
        made = self.each(names, rows)
        for row in made:
            self.used.setdefault(row, []).extend(names)
        return made

    def each(self, names: Iterable[str], rows: Rows) -> dict[str, Sample]:
        """The same for values that are not rows."""
        cases = [self.cases[name] for name in names]
        several = {case.replications for case in cases} - {1}
        return samples(
            [
                rows(*(case.runs[n if case.replications > 1 else 0] for case in cases))
                for n in range(min(several, default=1))
            ]
        )

    def sample(self, value: Callable[..., Value], *names: str) -> Sample:
        """One such value."""
        return self.each(names, lambda *runs: {"": value(*runs)})[""]

    def first(self, name: str) -> Run:
        """The first run of a scenario."""
        return self.cases[name].first


def _run(name: str, question: Question, i: int, keep: Mapping[str, Keep]) -> Run:
    # The digest does not depend on what is recorded.
    answer = api.collect(question, [i], jobs=1, tables=tuple(keep))[i]
    tables = {table: answer.table(table) for table in WHOLE}
    tables |= {table: kept(answer.table(table)) for table, kept in keep.items()}
    return Run(name, answer.seed, answer.digest, answer.duration_s, tables)
