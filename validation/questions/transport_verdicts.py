"""Verdicts in one condition: as good as the best, worse, or inconclusive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl
from common import Asked, Interval, paired

CONFIDENCE = 0.99
CONDITION = ("line", "delay", "beside")
Condition = tuple[str, str, str]
Word = Literal["best", "as good", "worse", "open"]


@dataclass(frozen=True)
class Cell:
    """One transport in one condition.

    Attributes:
        score: its mean and interval.
        difference: paired, from the best; None for the best itself.
        word: `as good` if the interval of the difference lies within the margin, else `worse` if it
            excludes 0, else `open`.
    """

    score: Interval
    difference: Interval | None
    word: Word

    @property
    def good(self) -> bool:
        """Whether it is the best or shown to be as good."""
        return self.word in ("best", "as good")


@dataclass(frozen=True)
class Kind:
    """One kind of traffic and its results.

    Attributes:
        name: the kind of traffic.
        unit: of its score, as written after a number.
        sign: 1 if more is better, −1 if less is.
        margin: the largest irrelevant difference.
        digits: decimals shown.
        asked: the study.
        among: transports to judge; default: all.
    """

    name: str
    unit: str
    sign: int
    margin: float
    digits: int
    asked: Asked
    among: tuple[str, ...] = ()

    @property
    def rows(self) -> pl.DataFrame:
        """A row per run."""
        return self.asked.rows

    @property
    def transports(self) -> tuple[str, ...]:
        """All of them, in order."""
        return self.asked.study.axis("transport").labels

    def conditions(self) -> list[Condition]:
        """All of them, in order."""
        return self.rows.select(CONDITION).unique(maintain_order=True).rows()

    def part(self, condition: Condition) -> pl.DataFrame:
        """The runs of one condition."""
        where = dict(zip(CONDITION, condition, strict=True))
        return self.rows.filter(**where)

    def cells(self, condition: Condition, kind: str = "student") -> dict[str, Cell]:
        """All judged transports in a condition; the interval is Student's or the bootstrap's."""
        rows = self.part(condition)
        names = self.among or self.transports
        rows = rows.filter(pl.col("transport").is_in(names))
        scores = {
            name: Interval.of(rows.filter(transport=name)["score"].to_list(), CONFIDENCE)
            for name in names
        }
        best = max(names, key=lambda name: self.sign * scores[name].mean)
        away = paired(rows, "transport", best, "score", CONFIDENCE, kind=kind)
        return {
            name: Cell(scores[name], away.get(name), self._word(away.get(name))) for name in names
        }

    def _word(self, difference: Interval | None) -> Word:
        if difference is None:
            return "best"
        if max(abs(difference.low), abs(difference.high)) <= self.margin:
            return "as good"
        return "worse" if difference.differs else "open"

    def all(self) -> Mapping[Condition, Mapping[str, Cell]]:
        """All conditions and transports."""
        return {condition: self.cells(condition) for condition in self.conditions()}

    def gap(self, condition: Condition, one: str, other: str) -> Interval:
        """The paired difference between two transports, positive if the first is better."""
        rows = self.part(condition).filter(pl.col("transport").is_in([one, other]))
        found = paired(rows, "transport", other, "score", CONFIDENCE)[one]
        low, high = sorted((self.sign * found.low, self.sign * found.high))
        return Interval(self.sign * found.mean, low, high, found.count)


def words_of(condition: Condition) -> str:
    """A condition as text."""
    line, delay, beside = condition
    return f"{line}, {delay}, {beside}"


def mean_of(cells: Mapping[str, Cell], names: Sequence[str]) -> list[float]:
    """Mean scores of some transports."""
    return [cells[name].score.mean for name in names]
