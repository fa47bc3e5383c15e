"""Means over replications, and their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

Interval = Literal["student", "bootstrap"]
"""Method for intervals: Student's t, or bootstrap over the replications."""


def student(
    numbers: Sequence[float], confidence: float
) -> tuple[float | None, float | None, float | None]:
    """Mean, half width of Student's confidence interval, and sample standard deviation.

    mean ± t(n − 1, (1 + confidence) / 2) · s / √n; no interval from fewer than two numbers. For
    equal numbers, width and deviation are exactly 0.
    """
    n = len(numbers)
    if n == 0:
        return None, None, None
    if n > 1 and max(numbers) == min(numbers):
        return numbers[0], 0.0, 0.0
    mean = math.fsum(numbers) / n
    if n == 1:
        return mean, None, None
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in numbers) / (n - 1))
    return mean, quantile(n - 1, confidence) * deviation / math.sqrt(n), deviation


def bootstrap(numbers: Sequence[float], confidence: float) -> tuple[float, float]:
    """Ends of the bootstrap interval of a mean, bias-corrected and accelerated (Efron 1987).

    9999 resamples under a fixed seed, so that equal numbers give equal intervals. If all numbers
    are equal, the interval has length zero.
    """
    import numpy as np
    from scipy.stats import bootstrap as resample

    if max(numbers) == min(numbers):
        return numbers[0], numbers[0]
    found = resample(
        (np.asarray(numbers, dtype=float),),
        np.mean,
        confidence_level=confidence,
        method="BCa",
        rng=np.random.default_rng(1),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def quantile(freedom: int, confidence: float) -> float:
    """Student's two-sided quantile: t such that P(|T| ≤ t) = confidence."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of a family of tests, corrected by Holm's step-down method (Holm 1979).

    To reject where one is at most α is wrong anywhere with a probability of at most α, whatever the
    dependence of the tests.
    """
    found = [1.0] * len(p_values)
    bound = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        bound = max(bound, min(1.0, p_values[place] * (len(p_values) - rank)))
        found[place] = bound
    return found
