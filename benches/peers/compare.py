"""Ratios from pairs of runs, and their validity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benches.peers.matches import GOODPUT_BAND, HOPS_BAND, LOSS_BAND

Counts = dict[str, Any]
"""Counts reported by a run: ``hops`` and ``loss``, or ``goodput_mbps``."""


@dataclass(frozen=True)
class Ratio:
    """The peer's CPU time over ours, for the same simulated time."""

    median: float
    lowest: float
    highest: float
    pairs: int

    def __str__(self) -> str:
        if self.pairs == 1:
            return f"{shown(self.median)} (one pair)"
        return f"{shown(self.median)} ({shown(self.lowest)}–{shown(self.highest)})"


def ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """The median of the pairwise ratios of CPU time per simulated second."""
    each = [there / here for here, there in pairs]
    return Ratio(median(each), min(each), max(each), len(each))


def unlike(here: Counts, there: Counts) -> list[str]:
    """Why a ratio is invalid: differences beyond the permitted ones; empty if valid."""
    if "goodput_mbps" in there:
        off = here["goodput_mbps"] / there["goodput_mbps"] - 1
        return [f"goodput {off:+.1%}"] if abs(off) > GOODPUT_BAND else []
    wrong = []
    off = here["hops"] / there["hops"] - 1
    if abs(off) > HOPS_BAND:
        wrong.append(f"hops {off:+.1%}")
    few, many = sorted((here["loss"], there["loss"]))
    if many > LOSS_BAND * few:
        wrong.append(f"loss {here['loss']:.2%} and {there['loss']:.2%}")
    return wrong


def shown(number: float) -> str:
    """A ratio with two or three significant digits."""
    return f"{number:,.0f}" if number >= 99.5 else f"{number:.3g}"
