"""How long CCID 2 takes to carry a call, in closed form, and the least threshold that suffices.

N = packets a second × round trip: what is in flight when the call has its rate. Slow start begins
at w0 packets and multiplies the window by g in a round trip up to the threshold s; beyond, it grows
by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from common import Asked

SLOW_START = {"rfc": (4, 1.5), "ns2": (3, 2.0)}
"""w0 and g: RFC 4341's, one packet for two acknowledged, and ns-2's, one for each."""
PROFILES = {"rfc": "RFC 4341's slow start", "ns2": "ns-2's slow start"}
PACKETS = {"G.711, 10 ms": 100.0, "G.711, 20 ms": 50.0, "G.723.1, 30 ms": 100 / 3}
"""Packets a second of each codec."""
NONE = 65535
"""The threshold that is none: no window here comes near it."""
BIN_S = 0.5
"""Width of the bins in which the call must keep its rate, and so what a time is known to."""


@dataclass(frozen=True)
class Path:
    """A call on a path."""

    packets_per_s: float
    rtt_s: float
    profile: str

    @property
    def in_flight(self) -> float:
        """N, packets."""
        return self.packets_per_s * self.rtt_s


Form = Callable[[Path, float], float]


def keeps_all_s(path: Path, s: float) -> float:
    """Seconds until a call is in time whose sender keeps all that was said since its Request.

    Packets leave from one round trip on and arrive half of one later. After k round trips of slow
    start N (k + 1) packets were said and (s - w0) / (g - 1) were sent; the rest, B, goes at s,
    s + 1, s + 2 … a round trip while N more come.
    """
    n, (w0, g) = path.in_flight, SLOW_START[path.profile]
    alone = _slow_start_alone(n, w0, g)
    if s >= w0 * g**alone:
        return path.rtt_s * (1.5 + alone)
    s = max(s, w0)
    k = math.log(s / w0, g)
    b = n * (k + 1) - (s - w0) / (g - 1)
    if b > 0:
        k += math.sqrt((s - n) ** 2 + 2 * b) - (s - n)
    return path.rtt_s * (1.5 + k)


def _slow_start_alone(n: float, w0: float, g: float) -> float:
    """Round trips of slow start until all is sent: N (k + 1) = w0 (g^k − 1) / (g − 1)."""
    low, high = 0.0, 64.0
    for _ in range(64):
        middle = (low + high) / 2
        sent = w0 * (g**middle - 1) / (g - 1)
        low, high = (middle, high) if sent < n * (middle + 1) else (low, middle)
    return high


def drops_stale_s(path: Path, s: float) -> float:
    """The same from the first word on, for a sender that is connected and keeps no backlog.

    The window must be N + 2 wide: an acknowledgement speaks for two packets, and a packet late.
    """
    (w0, g), need = SLOW_START[path.profile], path.in_flight + 2
    s = max(s, w0)
    if need <= w0:
        return path.rtt_s / 2
    return path.rtt_s * (0.5 + math.log(min(s, need) / w0, g) + max(0.0, need - s))


@dataclass(frozen=True)
class Least:
    """The least threshold that suffices, and the next smaller one tried, which does not."""

    path: Path
    below: int
    least: int


def least(path: Path, times: Mapping[int, float]) -> Least:
    """From which threshold on none costs more than a bin beyond the time without one."""
    tried = sorted(times)
    late = [i for i, s in enumerate(tried) if times[s] > times[NONE] + BIN_S + 1e-9]
    first = max(late, default=-1) + 1
    return Least(path, tried[first - 1] if first else 0, tried[first])


@dataclass(frozen=True)
class Law:
    """What one kind of sender needs: measured, and as the closed form has it."""

    sender: str
    rows: pl.DataFrame
    times: Mapping[Path, Mapping[int, float]]
    """Mean time to settle by threshold, infinite where it never did."""
    form: Form
    measured: list[Least]
    predicted: list[Least]

    @property
    def informative(self) -> list[Least]:
        """Paths on which the least of all thresholds tried does not suffice."""
        return [one for one in self.measured if one.below]

    def errors(self) -> list[tuple[float, float, bool]]:
        """Of all that settled: the time, how far the form is from it, and whether s < N."""
        return [
            (measured, self.form(path, s) - measured, s < path.in_flight)
            for path, times in self.times.items()
            for s, measured in times.items()
            if math.isfinite(measured)
        ]

    def steps(self) -> list[int]:
        """How many thresholds tried lie from the measured least to the predicted one."""
        found = []
        for measured, predicted in zip(self.measured, self.predicted, strict=True):
            tried = sorted(self.times[measured.path])
            found.append(abs(tried.index(measured.least) - tried.index(predicted.least)))
        return found

    def tried(self, path: Path, s: float) -> int:
        """The next threshold tried at or above `s`."""
        return min(t for t in self.times[path] if t >= s)

    def cost(self, path: Path, s: float) -> float:
        """Seconds that the next threshold tried at or above `s` costs beyond none at all."""
        times = self.times[path]
        return times[self.tried(path, s)] - times[NONE]


def law(sender: str, asked: Asked, form: Form) -> Law:
    """Everything about one kind of sender."""
    rows = asked.rows.with_columns(pl.col("ssthresh").cast(pl.Int64))
    times: dict[Path, dict[int, float]] = {}
    means = rows.group_by("round trip", "codec", "profile", "ssthresh", maintain_order=True).agg(
        pl.col("settled").fill_null(math.inf).mean()
    )
    for trip, codec, profile, s, mean in means.iter_rows():
        path = Path(PACKETS[codec], float(trip.split()[0]) / 1e3, profile)
        times.setdefault(path, {})[s] = mean
    measured = [least(path, found) for path, found in times.items()]
    predicted = [least(path, {s: form(path, s) for s in found}) for path, found in times.items()]
    return Law(sender, rows, times, form, measured, predicted)


@dataclass(frozen=True)
class Line:
    """s = slope · N + offset with 95 % intervals, by resampling the paths."""

    slope: float
    slope_ends: tuple[float, float]
    offset: float
    offset_ends: tuple[float, float]
    rms: float


def line(found: Sequence[Least]) -> Line:
    """Least squares through what lies between the last that fails and the first that suffices."""
    n = np.array([one.path.in_flight for one in found])
    s = np.array([(one.below + one.least) / 2 for one in found])
    slope, offset = np.polyfit(n, s, 1)
    dice = np.random.default_rng(1)
    draws = []
    for _ in range(9999):
        chosen = dice.integers(0, len(n), len(n))
        if np.unique(n[chosen]).size > 1:
            draws.append(np.polyfit(n[chosen], s[chosen], 1))
    (low, base), (high, top) = np.quantile(np.array(draws), [0.025, 0.975], axis=0)
    rms = math.sqrt(float(np.mean((slope * n + offset - s) ** 2)))
    return Line(float(slope), (low, high), float(offset), (base, top), rms)
