"""How flows share a network and how steady they are, from the time series of a run.

Rates here are of IP bytes of packets with payload, as they were received, in bins of the series;
the window of measurement is the run's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import polars as pl

from talkspurt.result import recorded

if TYPE_CHECKING:
    from talkspurt.result import Result

UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """A time of a resolved scenario in seconds, as "1min" or "2.5s"."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzµ")
    return float(number) * UNITS[text[len(number) :]]


def rates(result: Result, flow: str, column: str = "received_bytes") -> list[float]:
    """Bits a second in each bin of the window of measurement."""
    low, high = window(result)
    series = result.series(flow).sort("time_s")
    width = bin_width(result)
    # The series names its bins by their ends.
    inside = series.filter(
        (pl.col("time_s") - width >= low - 1e-9) & (pl.col("time_s") <= high + 1e-9)
    )
    return [8 * value / width for value in inside[column]]


def bin_width(result: Result) -> float:
    """Width of a bin of the series in seconds."""
    return seconds(recorded(result.scenario)["interval"])


def window(result: Result) -> tuple[float, float]:
    """Start and end of the window of measurement in seconds."""
    import tomllib

    measure = tomllib.loads(result.scenario).get("measure", {})
    low = seconds(measure.get("from", "0s"))
    return low, seconds(measure["to"]) if "to" in measure else result.duration_s


def jain(values: Sequence[float]) -> float:
    """Jain's index (Jain, Chiu and Hawe 1984; RFC 5166 §2.3): (Σx)² / (n Σx²); 1 is all alike."""
    squares = math.fsum(x * x for x in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else math.nan


def least_over_greatest(values: Sequence[float]) -> float:
    """How far from alike: ε-fair is what is at least 1 − ε (RFC 5166 §2.3)."""
    return min(values) / max(values) if values and max(values) else math.nan


def fair_after_s(
    times: Sequence[float], one: Sequence[float], other: Sequence[float], delta: float = 0.1
) -> float | None:
    """When two flows first share what both receive as (1 + δ)/2 to (1 − δ)/2 or better; or None.

    The δ-fair convergence time (Bansal, Balakrishnan, Floyd and Shenker 2001; RFC 5166 §2.3).
    """
    for time, a, b in zip(times, one, other, strict=True):
        if a + b > 0 and max(a, b) / (a + b) <= (1 + delta) / 2 + 1e-12:
            return time
    return None


def coefficient_of_variation(values: Sequence[float], bins: int) -> float:
    """Standard deviation over mean of rates averaged over so many bins (Floyd et al. 2000, §4.1.1).

    Bins at the end that fill no whole average are left out; NaN with fewer than two averages.
    """
    means = [math.fsum(values[i : i + bins]) / bins for i in range(0, len(values) - bins + 1, bins)]
    if len(means) < 2 or not any(means):
        return math.nan
    mean = math.fsum(means) / len(means)
    return math.sqrt(math.fsum((x - mean) ** 2 for x in means) / len(means)) / mean


def variation_over_scales(result: Result, flow: str) -> pl.DataFrame:
    """Coefficient of variation against time scale: ``scale_s``, ``cov``."""
    values, width = rates(result, flow), bin_width(result)
    scales, bins = [], 1
    while len(values) // bins >= 2:
        scales.append(bins)
        bins *= 2
    return pl.DataFrame(
        {
            "scale_s": [width * bins for bins in scales],
            "cov": [coefficient_of_variation(values, bins) for bins in scales],
        },
        schema={"scale_s": pl.Float64, "cov": pl.Float64},
    )


def equivalence(one: Sequence[float], other: Sequence[float], bins: int) -> float:
    """Equivalence ratio of two flows (Floyd et al. 2000, §4.1.1), at a time scale of so many bins.

    The mean of min(a/b, b/a) over averages in which at least one sent; 1 is alike at every moment.
    """
    ratios = []
    for i in range(0, min(len(one), len(other)) - bins + 1, bins):
        a, b = math.fsum(one[i : i + bins]), math.fsum(other[i : i + bins])
        if a or b:
            ratios.append(min(a, b) / max(a, b))
    return math.fsum(ratios) / len(ratios) if ratios else math.nan


def converged_s(
    times: Sequence[float], values: Sequence[float], target: float, band: float = 0.1
) -> float | None:
    """From when on every value stays within target · (1 ± band); None if the last does not."""
    since = None
    for time, value in zip(times, values, strict=True):
        inside = abs(value - target) <= band * target
        since = (time if since is None else since) if inside else None
    return since


def active_throughput_bps(result: Result, flow: str, side: str = "from") -> float:
    """Bits received, over the time from the first packet's arrival to the last's.

    Beside ``throughput_bps``, which is over the window: two numbers that studies give one name.
    """
    from talkspurt.metrics.packets import life

    arrived = life(result, flow, side).filter(pl.col("received_s").is_not_null())
    if arrived.height < 2:
        return math.nan
    times = [float(time) for time in arrived["received_s"]]
    return 8 * float(arrived["ip_bytes"].sum()) / (max(times) - min(times))


def fair_share(result: Result, flows: Iterable[str], capacity_bps: float) -> dict[str, float]:
    """Throughput of each flow over what it would have if all had the same of the capacity."""
    names = list(flows)
    table = result.flows.filter(pl.col("name").is_in(names))
    share = capacity_bps / len(names)
    return {name: rate / share for name, rate in table.select("name", "throughput_bps").iter_rows()}


def tcp_rate_bps(packet_bytes: float, rtt_s: float, loss: float) -> float:
    """What a TCP would get (RFC 8083 §4.3, of Mathis et al. 1997): s / (R √(2p/3)), in bit/s."""
    return 8 * packet_bytes / (rtt_s * math.sqrt(2 * loss / 3))


def circuit_breaker(
    sent_bps: Sequence[float],
    loss: Sequence[float],
    rtt_s: Sequence[float],
    packet_bytes: float,
    intervals: int = 3,
) -> int | None:
    """RFC 8083 §4.3: the first reporting interval after which the sender must stop, or None.

    It stops when it has sent more than ten times what a TCP would get in each of so many
    consecutive intervals (CB_INTERVAL; at least 3) with loss.
    """
    over = 0
    for index, (rate, p, rtt) in enumerate(zip(sent_bps, loss, rtt_s, strict=True)):
        too_much = p > 0 and rate > 10 * tcp_rate_bps(packet_bytes, rtt, p)
        over = over + 1 if too_much else 0
        if over >= intervals:
            return index
    return None
