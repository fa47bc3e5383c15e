"""A row's value over the replications of its runs.

For numbers it is the mean with Student's interval, as in the summary of any study; for words, the
most frequent one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from talkspurt.analysis.means import student
from talkspurt.intervals import STILL

Value = float | str | None
"""A number in the row's unit, or a word if the row is about an order or a yes or no."""

CONFIDENCE = 0.95
"""Confidence level of all intervals here."""


@dataclass(frozen=True)
class Sample:
    """The values of the replications, in seed order; None where there is none."""

    values: tuple[Value, ...] = ()

    @property
    def replications(self) -> int:
        """Their number."""
        return len(self.values)

    @property
    def there(self) -> list[float | str]:
        """The values that exist."""
        return [
            value
            for value in self.values
            if isinstance(value, str) or (value is not None and math.isfinite(value))
        ]

    @property
    def value(self) -> Value:
        """The mean; for words the most frequent one, of equally frequent ones the earliest.

        This is displayed; the verdict depends on how often the printed word occurred.
        """
        if any(isinstance(value, str) for value in self.there):
            return Counter(map(str, self.there)).most_common(1)[0][0]
        return student(self.numbers, CONFIDENCE)[0]

    @property
    def ends(self) -> tuple[float, float] | None:
        """Ends of the mean's interval; None for words and for a single number."""
        numbers = self.numbers
        if len(numbers) < 2:
            return None
        mean, half, _ = student(numbers, CONFIDENCE)
        assert mean is not None and half is not None
        return (mean, mean) if self.still else (mean - half, mean + half)

    @property
    def still(self) -> bool:
        """Whether several numbers are equal except for their last digits."""
        numbers = self.numbers
        return len(numbers) > 1 and math.isclose(
            min(numbers), max(numbers), rel_tol=1e-9, abs_tol=1e-9
        )

    @property
    def span(self) -> tuple[float, float]:
        """The possible range of the mean; for a single number that number."""
        ends = self.ends
        if ends is not None:
            return ends
        return self.numbers[0], self.numbers[0]

    @property
    def numbers(self) -> list[float]:
        """The numeric values."""
        return [float(value) for value in self.there if not isinstance(value, str)]

    def show(self) -> str:
        """The value for a table, with its interval or the frequency of the word."""
        value, there, n = self.value, len(self.there), self.replications
        if value is None or n < 2:
            return show(value)
        if isinstance(value, str):
            return f"{value} ({self.there.count(value)} of {n})"
        if self.still:
            shown = f"{show(value)} {STILL}"
        elif self.ends is None:
            shown = show(value)
        else:
            half, digits = (self.ends[1] - self.ends[0]) / 2, self._digits
            step = 10.0**-digits
            spread = f"<{step:g}" if half < step / 2 else f"{half:.{digits}f}"
            shown = f"{_rounded(value, digits)} ±{spread}"
        return shown if there == n else f"{shown} ({there} of {n})"

    @property
    def _digits(self) -> int:
        """Decimals that leave two digits for the interval and six for the value."""
        assert self.ends is not None
        half = (self.ends[1] - self.ends[0]) / 2
        most = max(abs(end) for end in self.ends)
        return max(0, min(1 - math.floor(math.log10(half)), 5 - math.floor(math.log10(most))))

    def told(self, unit: str = "") -> str:
        """The value for a sentence."""
        value, there, n = self.value, len(self.there), self.replications
        if value is None or n < 2:
            return show(value, unit)
        if isinstance(value, str):
            return f"{value} in {self.there.count(value)} of {n} replications"
        if self.ends is None or self.still:
            of = f"in each of {n} replications" if there == n else f"in {there} of {n} replications"
            return f"{show(value, unit)} {of}"
        mean, low, high = (_rounded(each, self._digits) for each in (value, *self.ends))
        of = f"{n} replications" if there == n else f"the {there} of {n} that gave one"
        return f"{mean} [{low} … {high}] {unit}".rstrip() + f", mean of {of}"


def show(value: Value, unit: str = "") -> str:
    """A value for a reason or a table."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    value = 0.0 if abs(value) < 1e-9 else value
    digits = f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
    return f"{digits} {unit}".rstrip()


def narrow(value: str) -> str:
    """A value with its interval, or the number of its runs, on a line of its own."""
    return value.replace(" ±", "\n±").replace(" (", "\n(")


def _rounded(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if round(value, digits) else "0"


def samples(of: Sequence[Mapping[str, Value]]) -> dict[str, Sample]:
    """Each row's values over the replications, from the rows of each of them."""
    return {row: Sample(tuple(each.get(row) for each in of)) for row in (of[0] if of else {})}
