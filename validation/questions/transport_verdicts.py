"""Verdicts on transports in a condition: best, as good, worse, or inconclusive."""

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
        score: mean score with its interval.
        difference: paired difference from the best; None for the best itself.
        word: `as good` if the interval of the difference lies within the margin, `worse` if it does
            not and excludes 0, `open` otherwise.
    """

    score: Interval
    difference: Interval | None
    word: Word

    @property
    def good(self) -> bool:
        """Whether the transport is the best or shown to be as good."""
        return self.word in ("best", "as good")


@dataclass(frozen=True)
class Kind:
    """A kind of traffic and its results.

    Attributes:
        name: name of the traffic.
        unit: unit of the score, appended to a number.
        sign: 1 if a larger score is better, −1 if a smaller one is.
        margin: largest difference that counts as equal.
        digits: number of decimals shown.
        asked: the study.
        among: transports to compare; all if empty.
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
        """One row per run."""
        return self.asked.rows

    @property
    def transports(self) -> tuple[str, ...]:
        """All transports, in order."""
        return self.asked.study.axis("transport").labels

    def conditions(self) -> list[Condition]:
        """All conditions, in order."""
        return self.rows.select(CONDITION).unique(maintain_order=True).rows()

    def part(self, condition: Condition) -> pl.DataFrame:
        """Return the runs of one condition."""
        where = dict(zip(CONDITION, condition, strict=True))
        return self.rows.filter(**where)

    def cells(self, condition: Condition, kind: str = "student") -> dict[str, Cell]:
        """Compare the transports in a condition with Student's or bootstrap intervals."""
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
        """Compare the transports in all conditions."""
        return {condition: self.cells(condition) for condition in self.conditions()}

    def gap(self, condition: Condition, one: str, other: str) -> Interval:
        """Return the paired difference between two transports, positive if the first is better."""
        rows = self.part(condition).filter(pl.col("transport").is_in([one, other]))
        found = paired(rows, "transport", other, "score", CONFIDENCE)[one]
        low, high = sorted((self.sign * found.low, self.sign * found.high))
        return Interval(self.sign * found.mean, low, high, found.count)


def words_of(condition: Condition) -> str:
    """Format a condition."""
    line, delay, beside = condition
    return f"{line}, {delay}, {beside}"


def mean_of(cells: Mapping[str, Cell], names: Sequence[str]) -> list[float]:
    """Return the mean scores of some transports."""
    return [cells[name].score.mean for name in names]
