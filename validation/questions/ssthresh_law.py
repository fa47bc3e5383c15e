"""Closed forms of CCID 2's settling time, and the minimum sufficient threshold.

N = packets per second × round-trip time: the packets in flight at the full rate of the call. Slow
start begins at w0 packets and multiplies the window by g per round trip up to the threshold s.
Above the threshold, the window grows by one packet per round trip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from common import Asked

SLOW_START = {"rfc": (4, 1.5), "ns2": (3, 2.0)}
"""w0 and g: one packet for two acknowledged ones in RFC 4341, one packet for each in ns-2."""
PROFILES = {"rfc": "RFC 4341's slow start", "ns2": "ns-2's slow start"}
PACKETS = {"G.711, 10 ms": 100.0, "G.711, 20 ms": 50.0, "G.723.1, 30 ms": 100 / 3}
"""Packets per second of each codec."""
NONE = 65535
"""Represents no threshold: much larger than any window in these studies."""
BIN_S = 0.5
"""Width of the bins in which the rate is measured, and thus the time resolution."""


@dataclass(frozen=True)
class Path:
    """A path and the packet rate of a call on it."""

    packets_per_s: float
    rtt_s: float
    profile: str

    @property
    def in_flight(self) -> float:
        """N in packets."""
        return self.packets_per_s * self.rtt_s


Form = Callable[[Path, float], float]


def keeps_all_s(path: Path, s: float) -> float:
    """Return the settling time in seconds of a sender that keeps all speech since its Request.

    The sender starts after one round trip, and packets arrive half a round trip later. After k
    round trips of slow start, N (k + 1) packets have been generated and (s - w0) / (g - 1) have
    been sent. The remainder, B, is sent at s, s + 1, s + 2 … packets per round trip while N more
    are generated.
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
    """Return the round trips k of slow start that solve N (k + 1) = w0 (g^k − 1) / (g − 1)."""
    low, high = 0.0, 64.0
    for _ in range(64):
        middle = (low + high) / 2
        sent = w0 * (g**middle - 1) / (g - 1)
        low, high = (middle, high) if sent < n * (middle + 1) else (low, middle)
    return high


def drops_stale_s(path: Path, s: float) -> float:
    """Return the settling time in seconds of a connected sender that drops stale packets.

    The window must be N + 2: an acknowledgement covers two packets, and is late for the first.
    """
    (w0, g), need = SLOW_START[path.profile], path.in_flight + 2
    s = max(s, w0)
    if need <= w0:
        return path.rtt_s / 2
    return path.rtt_s * (0.5 + math.log(min(s, need) / w0, g) + max(0.0, need - s))


@dataclass(frozen=True)
class Least:
    """The minimum sufficient threshold, and the next smaller threshold, which is insufficient."""

    path: Path
    below: int
    least: int


def least(path: Path, times: Mapping[int, float]) -> Least:
    """Find the smallest threshold from which all settle at most a bin later than no threshold."""
    tried = sorted(times)
    late = [i for i, s in enumerate(tried) if times[s] > times[NONE] + BIN_S + 1e-9]
    first = max(late, default=-1) + 1
    return Least(path, tried[first - 1] if first else 0, tried[first])


@dataclass(frozen=True)
class Law:
    """Settling times and required thresholds of one kind of sender, measured and predicted."""

    sender: str
    rows: pl.DataFrame
    times: Mapping[Path, Mapping[int, float]]
    """Mean settling time by threshold; infinite if a run never settled."""
    form: Form
    measured: list[Least]
    predicted: list[Least]

    @property
    def informative(self) -> list[Least]:
        """Paths on which the smallest threshold tried is insufficient."""
        return [one for one in self.measured if one.below]

    def errors(self) -> list[tuple[float, float, bool]]:
        """For each settled call: the time, the error of the closed form, and whether s < N."""
        return [
            (measured, self.form(path, s) - measured, s < path.in_flight)
            for path, times in self.times.items()
            for s, measured in times.items()
            if math.isfinite(measured)
        ]

    def steps(self) -> list[int]:
        """Distance between the measured and the predicted minimum, in thresholds tried."""
        found = []
        for measured, predicted in zip(self.measured, self.predicted, strict=True):
            tried = sorted(self.times[measured.path])
            found.append(abs(tried.index(measured.least) - tried.index(predicted.least)))
        return found

    def tried(self, path: Path, s: float) -> int:
        """Return the smallest threshold tried at or above `s`."""
        return min(t for t in self.times[path] if t >= s)

    def cost(self, path: Path, s: float) -> float:
        """Return the extra seconds of the smallest threshold tried at or above `s`."""
        times = self.times[path]
        return times[self.tried(path, s)] - times[NONE]


def law(sender: str, asked: Asked, form: Form) -> Law:
    """Collect all results for one kind of sender."""
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
    """s = slope · N + offset, with 95 % intervals from resampled paths."""

    slope: float
    slope_ends: tuple[float, float]
    offset: float
    offset_ends: tuple[float, float]
    rms: float


def line(found: Sequence[Least]) -> Line:
    """Fit a line to the midpoints of the last insufficient and the first sufficient threshold."""
    n = np.array([one.path.in_flight for one in found])
    s = np.array([(one.below + one.least) / 2 for one in found])
    slope, offset = np.polyfit(n, s, 1)
    generator = np.random.default_rng(1)
    draws = []
    for _ in range(9999):
        chosen = generator.integers(0, len(n), len(n))
        if np.unique(n[chosen]).size > 1:
            draws.append(np.polyfit(n[chosen], s[chosen], 1))
    (low, base), (high, top) = np.quantile(np.array(draws), [0.025, 0.975], axis=0)
    rms = math.sqrt(float(np.mean((slope * n + offset - s) ** 2)))
    return Line(float(slope), (low, high), float(offset), (base, top), rms)
