"""Bands: when a value matches the printed one, as defined in a study's file.

A value of several replications is inside or outside a band if its whole interval is; otherwise it
is undecided. A band applies to the mean, unless the printed statement concerns single runs: then it
applies to each replication's value, and more than half must be inside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from talkspurt.reproduce.sample import CONFIDENCE, Sample, Value

EITHER = frozenset((True, False))
"""Undecided."""

MEAN, SHARE = "mean", "share"
"""What a band applies to: the replications' mean, or the share of replications inside."""


class StudyFileError(ValueError):
    """A study's file contains an invalid entry."""


@dataclass(frozen=True)
class Band:
    """Permitted distance from the printed value; all given bounds must hold.

    For claims without a printed number, ``at_least`` and ``at_most`` are the numbers that satisfy
    the claim.

    Attributes:
        relative: share of the printed value.
        absolute: distance in the row's unit.
        at_least: lower bound, for claims such as "more than".
        at_most: upper bound, for claims such as "none".
    """

    relative: float | None = None
    absolute: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Band:
        """A band from a study's file."""
        unknown = set(table) - set(cls.__dataclass_fields__)
        if unknown:
            raise StudyFileError(f"band: no such bound: {', '.join(sorted(unknown))}")
        return cls(**{name: float(value) for name, value in table.items()})

    def edges(self, paper: Value) -> tuple[float, float]:
        """The minimum and maximum inside."""
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        if isinstance(paper, int | float):
            share = None if self.relative is None else self.relative * abs(paper)
            for apart in (each for each in (share, self.absolute) if each is not None):
                low, high = max(low, paper - apart), min(high, paper + apart)
        return low, high

    def is_word(self, paper: Value) -> TypeGuard[str]:
        """Whether only the printed word matches."""
        return isinstance(paper, str) and self.edges(paper) == (-math.inf, math.inf)

    def as_wide_as(self, paper: Value) -> bool:
        """Whether the band of a printed amount includes zero and so cannot tell them apart."""
        if isinstance(paper, str) or not paper or self.absolute is None:
            return False
        low, high = self.edges(paper)
        return low <= 0 <= high

    def inside(self, paper: Value, ours: Sample) -> int:
        """The replications whose own value is inside; a word must equal the printed one."""
        if self.is_word(paper):
            return ours.there.count(paper)
        low, high = self.edges(paper)
        return sum(
            value == paper if isinstance(value, str) else low <= value <= high
            for value in ours.there
        )

    def holds(self, paper: Value, ours: Sample, of: str = MEAN) -> frozenset[bool]:
        """Whether our value is inside: yes, no, or either; words and shares by the share of runs.

        Replications without a value count as outside.
        """
        there = ours.there
        if not there or paper is None:
            return frozenset((False,))
        if of == SHARE or self.is_word(paper) or isinstance(ours.value, str):
            return majority(self.inside(paper, ours), ours.replications)
        (low, high), (first, last) = self.edges(paper), ours.span
        if low <= first and last <= high:
            found = frozenset((True,))
        elif last < low or first > high:
            found = frozenset((False,))
        else:
            found = EITHER
        return found if len(there) == ours.replications else found | {False}

    def words(self, unit: str) -> str:
        """The band in words, as quoted in a reason; distances between percentages are absolute."""
        of = f" {unit}" if unit else ""
        apart = " percentage points" if unit == "%" else of
        parts = [
            None if self.relative is None else f"±{self.relative * 100:g} %",
            None if self.absolute is None else f"±{self.absolute:g}{apart}",
            None if self.at_least is None else f"at least {self.at_least:g}{of}",
            None if self.at_most is None else f"at most {self.at_most:g}{of}",
        ]
        return " and ".join(part for part in parts if part)


def majority(count: int, of: int) -> frozenset[bool]:
    """Whether ``count`` of ``of`` indicates a majority, by the exact interval of the share.

    Clopper and Pearson, 1934. At least six equal values are needed to decide; a tie is no majority
    and decides nothing.
    """
    if of == 1:
        return frozenset((count == 1,))
    from scipy.special import betaincinv

    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(count, of - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0
    if low > 0.5:
        return frozenset((True,))
    return frozenset((False,)) if high < 0.5 else EITHER
