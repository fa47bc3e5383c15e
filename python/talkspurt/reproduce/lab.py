"""Runs the scenarios of a study, several at a time, and keeps of each what rows and figures read.

A run's tables are large and its numbers few: what is not asked to be kept is gone as soon as the
run has ended. Scenarios with random streams, or whose outcome depends on when flows start, run
under several seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from talkspurt import api, engine
from talkspurt.reproduce.sample import Sample, Value, samples
from talkspurt.result import Result

if TYPE_CHECKING:
    import polars as pl

WHOLE = ("flows", "links")
"""Tables that are always kept: one line for each flow and link."""


Keep = Callable[["pl.DataFrame"], "pl.DataFrame"]
"""What of a table is kept."""


def part(*columns: str, flow: str = "", side: str | None = None) -> Keep:
    """Some columns of a table, of flows whose names begin so, seen from one side or both."""

    def kept(table: pl.DataFrame) -> pl.DataFrame:
        import polars as pl

        mine = pl.col("flow").str.starts_with(flow)
        if side is not None:
            mine &= pl.col("side") == side
        # A copy, and names as numbers: a slice or a string would hold the whole table.
        copied = pl.col(*columns).gather(pl.int_range(pl.len()))
        return (
            table.filter(mine).select(copied).with_columns(pl.col(pl.String).cast(pl.Categorical))
        )

    return kept


@dataclass(frozen=True)
class Run:
    """What is kept of one run.

    Attributes:
        name: name of its scenario's file.
        seed: its seed.
        digest: over its events.
        duration_s: how long it is.
        tables: what is left of its tables.
    """

    name: str
    seed: int
    digest: str
    duration_s: float
    tables: Mapping[str, pl.DataFrame]

    @property
    def flows(self) -> pl.DataFrame:
        """One line per flow."""
        return self.tables["flows"]

    @property
    def links(self) -> pl.DataFrame:
        """One line per link and direction."""
        return self.tables["links"]

    def flow(self, name: str, column: str) -> float:
        """A number of a flow, NaN where there is none."""
        value = self.flows.filter(self.flows["name"] == name)[column][0]
        return float("nan") if value is None else float(value)

    def of(self, table: str, flow: str) -> pl.DataFrame:
        """What is kept of a table, of one flow."""
        return self.tables[table].filter(flow=flow)

    def series(self, flow: str) -> pl.DataFrame:
        """What a flow did in each bin of time."""
        return self.of("series", flow)

    def gauges(self, flow: str, gauge: str) -> pl.DataFrame:
        """A value inside the endpoints as it changed."""
        return self.of("gauges", flow).filter(gauge=gauge)

    @property
    def packets(self) -> pl.DataFrame:
        """What is kept of the packet table."""
        return self.tables["packets"]


@dataclass(frozen=True)
class Case:
    """A scenario of a study and its runs.

    Attributes:
        name: name of its scenario's file.
        scenario: the scenario, as Python writes it.
        profile: ``stated``, ``inferred`` or ``companion``: whose parameters it has.
    """

    name: str
    scenario: Mapping[str, Any]
    profile: str
    _answers: Sequence[Future[Run]]

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """What came out, in the order of the seeds; waits for it."""
        return tuple(answer.result() for answer in self._answers)

    @property
    def first(self) -> Run:
        """The run of the first seed, which the figures over time show."""
        return self.runs[0]

    @property
    def replications(self) -> int:
        """How many runs there are."""
        return len(self._answers)

    @property
    def toml(self) -> str:
        """The scenario as a file, with all its replications."""
        import tomli_w

        return tomli_w.dumps(dict(self.scenario))


Rows = Callable[..., Mapping[str, Value]]
"""Makes rows from runs of some scenarios, one of each in the order they are named."""


class Lab:
    """Takes questions and answers them as cores come free."""

    def __init__(
        self, pool: ThreadPoolExecutor | None = None, repeated: Callable[[str], int] = lambda _: 1
    ) -> None:
        self.cases: dict[str, Case] = {}
        self.used: dict[str, list[str]] = {}
        """Which scenarios a row was made from."""
        self._pool = pool or ThreadPoolExecutor(engine.cores())
        self._repeated = repeated

    def ask(self, name: str, scenario: Mapping[str, Any], profile: str, /, **keep: Keep) -> Case:
        """Ask for the runs of a scenario; they begin as soon as a core is free.

        Args:
            name: name of the scenario.
            scenario: what is run, as often as the study's file says.
            profile: whose parameters it has.
            keep: what is kept, by table.
        """
        assert name not in self.cases, f"{name} was asked before"
        count = self._repeated(name)
        # A copy: what is asked next may be made from the same tables.
        asked = {"title": name, **deepcopy(dict(scenario))}
        answers = [self._pool.submit(_run, name, asked, seed, keep) for seed in range(1, count + 1)]
        whole = {**asked, "replications": {"count": count}} if count > 1 else asked
        self.cases[name] = Case(name, whole, profile, answers)
        return self.cases[name]

    def samples(self, names: Iterable[str], rows: Rows) -> dict[str, Sample]:
        """Rows made from these scenarios, once for each replication.

        A scenario that is run once is the same in all of them; others are paired by their seeds.
        """
        names = list(names)
        made = self.each(names, rows)
        for row in made:
            self.used.setdefault(row, []).extend(names)
        return made

    def each(self, names: Iterable[str], rows: Rows) -> dict[str, Sample]:
        """The same of what is no row."""
        cases = [self.cases[name] for name in names]
        several = {case.replications for case in cases} - {1}
        return samples(
            [
                rows(*(case.runs[n if case.replications > 1 else 0] for case in cases))
                for n in range(min(several, default=1))
            ]
        )

    def first(self, name: str) -> Run:
        """The first run of a scenario."""
        return self.cases[name].first


def _run(name: str, scenario: Mapping[str, Any], seed: int, keep: Mapping[str, Keep]) -> Run:
    answer = api.run(scenario, seed=seed, jobs=1)
    assert isinstance(answer, Result)
    tables = {table: answer.table(table) for table in WHOLE}
    tables |= {table: kept(answer.table(table)) for table, kept in keep.items()}
    return Run(name, seed, answer.digest, answer.duration_s, tables)
