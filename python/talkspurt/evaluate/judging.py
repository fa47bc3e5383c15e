"""Means over seeds, and verdicts on bands.

A band is *held* if the interval of a mean lies inside it, *missed* if it lies outside, and *open*
otherwise. Of one number alone, an interval at 95 % says this at a level of 0.05. A table has many:
its verdicts are corrected by Holm's method, so that with a probability of 0.95 or more none of them
is wrong. Equal values have an interval of no width, which is a verdict from six seeds on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from talkspurt.analysis.means import holm, student

CONFIDENCE = 0.95
EQUAL = 6
"""From so many seeds on, equal values are a verdict: that all lie on one side of a limit on which
the median is has a probability of 2 / 2⁶ = 0.03 (sign test), and with one less, of 0.06."""
HELD, MISSED, OPEN, REPORTED, UNABLE = "held", "missed", "open", "reported", "cannot run"
NO_WORSE, WORSE = "no worse", "worse"
"""In place of the first two, of differences from a baseline."""


@dataclass
class Measured:
    """A measure of a candidate in a variant of a case.

    Attributes:
        band: what it is judged by: least, most and unit, of and why; see :func:`against`.
        values: one of each seed; empty if the candidate cannot run the variant.
        note: why it cannot, or what else is to be known.
        is_difference: whether the values are differences from those of a baseline.
    """

    case: str
    variant: str
    candidate: str
    name: str
    band: Mapping[str, Any]
    values: Sequence[float]
    note: str = ""
    is_difference: bool = False
    verdict: str = REPORTED

    def __post_init__(self) -> None:
        infinite = sum(map(math.isinf, self.values))
        # What is not a number in one run has no mean.
        whole = [] if infinite or any(map(math.isnan, self.values)) else self.values
        self.mean, self.half, self.deviation = student(whole, CONFIDENCE)
        # What is infinite in one run has an infinite mean; differences may be so on both sides.
        if math.isinf(total := sum(self.values)):
            self.mean = total
            what = f"difference of {self.name}" if self.is_difference else self.name
            found = f"{what} is infinite with {infinite} of {len(self.values)} seeds"
            self.note = "; ".join(filter(None, (self.note, found)))
        self.verdict = REPORTED if self.values else UNABLE

    @property
    def least(self) -> float:
        """The lower limit of the band; −∞ if it has none."""
        return float(self.band.get("least", -math.inf))

    @property
    def most(self) -> float:
        """The upper limit of the band; ∞ if it has none."""
        return float(self.band.get("most", math.inf))

    @property
    def inside(self) -> bool | None:
        """Whether the mean lies inside the band; None without one."""
        return None if self.mean is None else self.least <= self.mean <= self.most

    @property
    def p(self) -> float:
        """The two-sided p-value of the mean's distance from the band's limit that decides.

        For a mean inside the band that is the nearer limit, outside the one that is crossed: below
        0.05 where the interval at 95 % does not contain it.
        """
        n = len(self.values)
        if self.mean is None or n < 2:
            return 1.0
        distance = min(abs(self.mean - limit) for limit in (self.least, self.most))
        if self.deviation is None or math.isinf(distance):
            return 0.0
        # Sums in another order differ in the last digits.
        if self.deviation <= 1e-9 * abs(self.mean):
            return 0.0 if n >= EQUAL else 1.0
        from scipy.special import stdtr

        return 2 * float(stdtr(n - 1, -distance / self.deviation * math.sqrt(n)))

    def to_json(self) -> dict[str, Any]:
        """For the file of results."""
        keys = ("case", "variant", "candidate", "name", "mean", "half", "verdict", "note")
        said = {key: getattr(self, key) for key in keys}
        # JSON has no infinity: the note says it.
        said["mean"] = None if self.mean in (math.inf, -math.inf) else self.mean
        limits = ("least", "most", "unit", "better")
        said |= {key: self.band[key] for key in limits if key in self.band}
        return {
            **said,
            "of": self.band["of"],
            "why": self.band["why"],
            "values": [value if math.isfinite(value) else None for value in self.values],
        }


def against(band: Mapping[str, Any], *, judged: bool) -> Mapping[str, Any]:
    """What differences from a baseline are judged by in place of a band: the side of 0.

    Which side is better is in ``better``, or follows from the limit; between two limits neither is,
    but that no goodput is above 1. The baseline itself is not judged.
    """
    rest = {key: value for key, value in band.items() if key not in ("least", "most")}
    limits = band.keys() & {"least", "most"}
    if "most" in limits and band["measure"] == "goodput":
        limits -= {"most"}
    if len(limits) == 1:
        rest["better"] = "higher" if "least" in limits else "lower"
    side = {"higher": "least", "lower": "most"}.get(rest.setdefault("better", ""))
    return {**rest, side: 0} if side and judged else rest


def judge(table: Sequence[Measured], judged: Mapping[str, bool]) -> None:
    """Give the measures of a table their verdicts; ``judged`` says which variants have one.

    What has no limits has none.
    """
    wanted = [
        one
        for one in table
        if one.values and judged[one.variant] and one.band.keys() & {"least", "most"}
    ]
    for one, p in zip(wanted, holm([one.p for one in wanted]), strict=True):
        sure = p <= 1 - CONFIDENCE and one.inside is not None
        inside, outside = (NO_WORSE, WORSE) if "better" in one.band else (HELD, MISSED)
        one.verdict = (inside if one.inside else outside) if sure else OPEN
