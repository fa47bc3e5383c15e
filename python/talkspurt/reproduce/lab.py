"""Runs the scenarios of a study, several at a time, and remembers each for the dossier."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from talkspurt import engine, entry
from talkspurt.result import Result

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Case:
    """One run of a study.

    Attributes:
        name: name of its scenario's file.
        scenario: the scenario, as Python writes it.
        profile: ``stated``, ``inferred`` or ``companion``: whose parameters it has.
    """

    name: str
    scenario: Mapping[str, Any]
    profile: str
    _answer: Future[Result]

    @cached_property
    def result(self) -> Result:
        """What came out; waits for it."""
        return self._answer.result()

    @property
    def toml(self) -> str:
        """The scenario as a file."""
        import tomli_w

        return tomli_w.dumps(dict(self.scenario))

    def flow(self, name: str, column: str) -> float:
        """A number of a flow, NaN where there is none."""
        flows = self.result.flows
        value = flows.filter(flows["name"] == name)[column][0]
        return float("nan") if value is None else float(value)

    def packets(self) -> pl.DataFrame:
        """The packet table."""
        return self.result.packets()


class Lab:
    """Takes questions and answers them as cores come free."""

    def __init__(self, pool: ThreadPoolExecutor | None = None) -> None:
        self.cases: dict[str, Case] = {}
        self._pool = pool or ThreadPoolExecutor(engine.cores())

    def ask(self, name: str, scenario: Mapping[str, Any], profile: str = "stated") -> Case:
        """Ask for a run; it begins as soon as a core is free."""
        assert name not in self.cases, f"{name} was asked before"
        future = self._pool.submit(self._run, {"title": name, **scenario})
        case = Case(name, {"title": name, **scenario}, profile, future)
        self.cases[name] = case
        return case

    @staticmethod
    def _run(scenario: Mapping[str, Any]) -> Result:
        answer = entry.run(scenario, jobs=1)
        assert isinstance(answer, Result)
        return answer
