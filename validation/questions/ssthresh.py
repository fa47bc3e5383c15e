"""Closed forms of CCID 2's settling time, and what the page on its initial threshold shows.

N = packets per second × round-trip time: the packets in flight at the full rate of the call. Slow
start begins at w0 packets and multiplies the window by g per round trip up to the threshold s.
Above the threshold, the window grows by one packet per round trip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from measures import PACKETS, SETTLED_BIN_S, SHOWN
from rows import Interval, Panel, Rows, bars, draw

from talkspurt.figures.style import FAINT, INK, transport_style

SLOW_START = {"rfc": (4, 1.5), "ns2": (3, 2.0)}
"""w0 and g: one packet for two acknowledged ones in RFC 4341, one packet for each in ns-2."""
PROFILES = {"rfc": "RFC 4341's slow start", "ns2": "ns-2's slow start"}
NONE = 65535
"""Represents no threshold: much larger than any window in these studies."""
KEEPS, DROPS = "keeps all", "drops stale"
ENOUGH = {"200 ms": "20", "600 ms": "40"}
"""The smallest threshold above N + 5 in the study with competing traffic, by round-trip time."""
CCID2 = transport_style("dccp-ccid2")
SHADES = {0.2: "#54bd98", 0.4: CCID2.colour, 0.6: "#004d38"}
"""Shades of CCID 2's colour by round-trip time: darker for longer times."""
MARK: dict[str, Any] = {"marker": CCID2.marker, "markersize": 4, "linestyle": "none"}
LOST = ("call_lost_packets", "bystander_lost_packets", "upload_lost_packets")
CHANGES = (*LOST, "upload_goodput_bps", "call_mos", "bystander_mos")
"""Measures that a larger threshold may change."""


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

    @property
    def trip(self) -> str:
        """The label of the round-trip time."""
        return f"{self.rtt_s * 1e3:.0f} ms"


# Closed forms.


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


# Measured times and thresholds.


@dataclass(frozen=True)
class Least:
    """The minimum sufficient threshold, and the next smaller threshold, which is insufficient."""

    path: Path
    below: int
    least: int


def least(path: Path, times: Mapping[int, float]) -> Least:
    """Find the smallest threshold from which all settle at most a bin later than no threshold."""
    tried = sorted(times)
    late = [i for i, s in enumerate(tried) if times[s] > times[NONE] + SETTLED_BIN_S + 1e-9]
    first = max(late, default=-1) + 1
    return Least(path, tried[first - 1] if first else 0, tried[first])


@dataclass(frozen=True)
class Law:
    """Settling times and required thresholds of one kind of sender, measured and predicted.

    Attributes:
        words: the proposed threshold.
        rule: the proposed threshold, before rounding up to whole packets.
        form: the closed form of the settling time.
        rows: one row for each run.
    """

    words: str
    rule: Callable[[float], float]
    form: Callable[[Path, float], float]
    rows: Rows

    @cached_property
    def times(self) -> dict[Path, dict[int, float]]:
        """Mean settling time by path and threshold; infinite if a run never settled."""
        times: dict[Path, dict[int, float]] = {}
        keys = ("round trip", "codec", "profile", "ssthresh")
        settled = pl.col("settled").fill_null(math.inf).mean()
        means = self.rows.frame.group_by(*keys, maintain_order=True).agg(settled)
        for trip, codec, profile, s, mean in means.iter_rows():
            path = Path(PACKETS[codec], float(trip.split()[0]) / 1e3, profile)
            times.setdefault(path, {})[int(s)] = mean
        return times

    @cached_property
    def informative(self) -> list[Least]:
        """Minimum thresholds of the paths on which the smallest threshold tried is insufficient."""
        return [one for path, times in self.times.items() if (one := least(path, times)).below]

    @cached_property
    def errors(self) -> pl.DataFrame:
        """For each settled call: the time, the error of the closed form, and whether s < N."""
        rows = [
            (measured, self.form(path, s) - measured, s < path.in_flight)
            for path, times in self.times.items()
            for s, measured in times.items()
            if math.isfinite(measured)
        ]
        frame = pl.DataFrame(rows, ["time", "error", "small"], orient="row")
        return frame.sort(pl.col("error").abs(), descending=True, maintain_order=True)

    def close(self) -> float:
        """Share of the settling times that the closed form predicts to 1 s or 10 %."""
        limit = pl.max_horizontal(1.0, 0.1 * pl.col("time"))
        return float(self.errors.select((pl.col("error").abs() <= limit).mean()).item())

    def steps(self) -> list[int]:
        """Distance between the measured and the predicted minimum, in thresholds tried."""
        found = []
        for path, times in self.times.items():
            tried, predicted = sorted(times), {s: self.form(path, s) for s in times}
            one, other = (tried.index(least(path, each).least) for each in (times, predicted))
            found.append(abs(one - other))
        return found

    @cached_property
    def fit(self) -> tuple[Interval, Interval, float]:
        """Slope, offset and rms error of s = slope · N + offset.

        The line is fitted to the midpoints of the last insufficient and the first sufficient
        threshold. Intervals are those of 95 %, from resampled paths.
        """
        n = np.array([one.path.in_flight for one in self.informative])
        s = np.array([(one.below + one.least) / 2 for one in self.informative])
        slope, offset = np.polyfit(n, s, 1)
        chosen = np.random.default_rng(1).integers(0, len(n), (9999, len(n)))
        x, y = n[chosen], s[chosen]
        off = x - x.mean(axis=1, keepdims=True)
        some = (off**2).sum(axis=1) > 0
        slopes = (off * y).sum(axis=1)[some] / (off**2).sum(axis=1)[some]
        offsets = y.mean(axis=1)[some] - slopes * x.mean(axis=1)[some]
        (low, high), (base, top) = np.quantile([slopes, offsets], [0.025, 0.975], axis=1).T
        rms = math.sqrt(float(np.mean((slope * n + offset - s) ** 2)))
        return Interval(slope, low, high, len(n)), Interval(offset, base, top, len(n)), rms

    def proposed(self, path: Path) -> int:
        """Return the proposed threshold in whole packets."""
        return math.ceil(self.rule(path.in_flight) - 1e-9)

    def tried(self, path: Path, s: float) -> int:
        """Return the smallest threshold tried at or above `s`."""
        return min(t for t in self.times[path] if t >= s)

    def costs(self, share: float = 1.0) -> list[float]:
        """Return the extra seconds of this share of the proposed threshold, if the call settled."""
        found = [
            times[self.tried(path, share * self.proposed(path))] - times[NONE]
            for path, times in self.times.items()
        ]
        return [cost for cost in found if math.isfinite(cost)] if share < 1 else found

    def at(self, path: Path, s: int = NONE) -> Rows:
        """Return the runs on a path with a threshold."""
        codec = next(codec for codec, rate in PACKETS.items() if rate == path.packets_per_s)
        trip = {"round_trip": path.trip, "profile": path.profile}
        return self.rows(codec=codec, ssthresh=str(s), **trip)


def laws_of(alone: Rows, today: Rows) -> dict[str, Law]:
    """Return the results of both kinds of senders."""
    return {
        KEEPS: Law("2.5\u00a0N", lambda n: 2.5 * n, keeps_all_s, alone),
        DROPS: Law("N\u00a0+\u00a05", lambda n: n + 5, drops_stale_s, today),
    }


# The page.


def values(alone: Rows, today: Rows, beside: Rows) -> Mapping[str, Any]:
    """Return the values of the page by name."""
    laws = laws_of(alone, today)
    keeps, drops = laws.values()
    paths = list(drops.times)
    lead = max(t[NONE] - min(t.values()) for law in laws.values() for t in law.times.values())
    uneasy = min(one.path.in_flight for law in laws.values() for one in law.informative)
    quiet = max(path.in_flight for path in paths if path.in_flight < uneasy)

    heard = {}
    for path in paths:
        thresholds = (path.in_flight / 2, drops.proposed(path), NONE)
        heard[path] = [drops.at(path, drops.tried(path, s)) for s in thresholds]
    rest = max(
        max(abs(one) for one in (none - full).seeds("call_mos").values())
        for _, full, none in heard.values()
    )
    gains = {path: (full - half).call_mos for path, (half, full, _) in heard.items()}
    where = max(gains, key=lambda path: gains[path].mean)
    shown = {
        path.trip: (path, gains[path], *rows)
        for path, rows in heard.items()
        if path.packets_per_s == PACKETS[SHOWN] and path.profile == "rfc"
    }
    far = [path for path in paths if path.rtt_s >= 0.2]
    longest = [path for path in paths if path.rtt_s == 0.6]
    kept = [drops.at(path).call_mos.mean - keeps.at(path).call_mos.mean for path in far]

    found = {}
    axes = ("sender", "beside", "line", "round trip", "profile")
    for setting in beside.frame.select(axes).unique(maintain_order=True).iter_rows():
        names = {axis.replace(" ", "_"): label for axis, label in zip(axes, setting, strict=True)}
        rows = replace(beside, confidence=0.99)(**names)
        change = rows(ssthresh=str(NONE)) - rows(ssthresh=ENOUGH[setting[3]])
        found[", ".join(setting)] = {name: change.interval(name) for name in CHANGES}
    differ = {key: row for key, row in found.items() if any(one.differs for one in row.values())}
    stale = {key: row for key, row in found.items() if key.startswith(DROPS)}
    narrow = [found[f"{KEEPS}, a call, 256 kbit/s, 600 ms, {profile}"] for profile in PROFILES]
    lossless = narrow_of(beside)(ssthresh=ENOUGH["600 ms"])
    tight = beside(line="256 kbit/s", beside="a call and an upload").frame
    never = tight.filter(pl.col("settled").is_null())
    unlost = never.filter(call_lost_packets=0)
    return locals()


def narrow_of(beside: Rows) -> Rows:
    """Return the runs on the narrow line with the long round-trip time and without an upload."""
    return beside(round_trip="600 ms", line="256 kbit/s", beside="a call")


def bold(change: Interval, spec: str) -> str:
    """Format a difference, bold if its interval excludes zero."""
    return f"**{change:{spec}}**" if change.differs else f"{change:{spec}}"


# Figures.


def figures(alone: Rows, today: Rows, beside: Rows) -> Mapping[str, bytes]:
    """Draw the figures of the page."""
    laws = laws_of(alone, today)
    needed = [_needed(sender, law) for sender, law in laws.items()]
    settling = [_settling(n, law, profile) for profile in PROFILES for n, law in laws.items()]
    harm = [_harm(narrow_of(beside)(profile=name), words) for name, words in PROFILES.items()]
    right, below = {"loc": "outside right upper"}, {"loc": "outside lower center"}
    return {
        "needed": draw((8.4, 3.6), needed, below | {"ncols": 4}),
        "settling": draw((8.4, 5.6), settling, right, nrows=2, ncols=2, sharex=True, sharey=True),
        "harm": draw((8.4, 3.4), harm, below | {"ncols": 2}, sharey=True),
    }


def _needed(sender: str, law: Law) -> Panel:
    """Show the minimum sufficient threshold against N, with the proposed rule."""
    curves: list[dict[str, Any]] = []
    for profile, face, shift in (("rfc", CCID2.colour, 1.015), ("ns2", "white", 0.985)):
        found = [one for one in law.informative if one.path.profile == profile]
        x, y = [one.path.in_flight * shift for one in found], [one.least for one in found]
        below = [[one.least - one.below for one in found], [0] * len(found)]
        look = {**MARK, "markerfacecolor": face, "capsize": 0, "label": PROFILES[profile]}
        curves.append({"x": x, "y": y, "yerr": below, "color": CCID2.colour, **look})
    ends = (0, 62)
    curves.append({"x": ends, "y": [*map(law.rule, ends)], "color": INK, "label": "proposed"})
    curves.append({"x": ends, "y": ends, "color": FAINT, "dashes": (4, 3), "label": "N"})
    label = {"xlabel": "N = packets per second × RTT", "ylabel": "minimum sufficient ssthresh"}
    return {"title": f"{sender}: {law.words}", "xlim": (0, 63), "ylim": (0, None), **label}, curves


def _settling(sender: str, law: Law, profile: str) -> Panel:
    """Show the settling time against the threshold, measured and by the closed form."""
    curves, fine = [], np.geomspace(2, 180, 200)
    for rtt_s, colour in SHADES.items():
        path = Path(PACKETS[SHOWN], rtt_s, profile)
        times = {s: t for s, t in law.times[path].items() if math.isfinite(t)}
        x, y = [300 if s == NONE else s for s in times], list(times.values())
        curves.append({"x": x, "y": y, "label": path.trip, "color": colour, **MARK})
        curves.append({"x": fine, "y": [law.form(path, s) for s in fine], "color": colour})
    ticks = {"xscale": "log", "xticks": (2, 5, 10, 20, 50, 100, 300), "ylim": (0, 41)}
    axes = {"xlabel": "initial ssthresh / packets", "ylabel": "settling time / s"}
    labels = {"xticklabels": ("2", "5", "10", "20", "50", "100", "none")}
    return {**ticks, **labels, **axes, "title": f"{sender}, {PROFILES[profile]}"}, curves


def _harm(rows: Rows, title: str) -> Panel:
    """Show the lost packets of both calls against the threshold, for both senders."""
    labels, udp, curves = rows.labels("ssthresh"), transport_style("udp"), []
    flows = (("call", CCID2, "call over CCID 2"), ("bystander", udp, "other call over UDP"))
    for flow, style, name in flows:
        for sender, dashes in ((KEEPS, "-"), (DROPS, (0, (4, 3)))):
            some = rows(sender=sender).each("ssthresh").values()
            look = {"color": style.colour, "marker": style.marker, "linestyle": dashes}
            lost = bars([one.interval(f"{flow}_lost_packets") for one in some])
            curves.append({"x": range(len(labels)), **lost, **look, "label": f"{name}, {sender}"})
    ticks = {"xticks": range(len(labels)), "xticklabels": [*labels[:-1], "none"]}
    words = {"xlabel": "initial ssthresh / packets", "ylabel": "lost packets", "title": title}
    return {**ticks, **words}, curves
