"""Fairness and smoothness of flows, from the time series of a run.

Rates here count IP bytes of received packets with payload, in bins of the series, within the run's
measure window.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

from talkspurt.metrics.bins import bin_width, window
from talkspurt.results.run_data import RunData


def rates(result: RunData, flow: str, column: str = "received_bytes") -> list[float]:
    """Bits per second in each bin of the measure window."""
    low, high = window(result)
    series = result.series(flow).sort("time_s")
    width = bin_width(result)
    # The series identifies bins by their ends.
    inside = series.filter(
        (pl.col("time_s") - width >= low - 1e-9) & (pl.col("time_s") <= high + 1e-9)
    )
    if inside[column].null_count():
        raise ValueError(f"flow {flow!r}: the trace does not tell {column}")
    return [8 * value / width for value in inside[column]]


def jain(values: Sequence[float]) -> float:
    """Jain's index (Jain, Chiu and Hawe 1984; RFC 5166 §2.3): (Σx)² / (n Σx²); 1 is equal."""
    squares = math.fsum(x * x for x in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else math.nan


def least_over_greatest(values: Sequence[float]) -> float:
    """Minimum over maximum: ε-fair means at least 1 − ε (RFC 5166 §2.3)."""
    return min(values) / max(values) if values and max(values) else math.nan


def fair_after_s(
    times: Sequence[float], one: Sequence[float], other: Sequence[float], delta: float = 0.1
) -> float | None:
    """When two flows first share their total as (1 + δ)/2 to (1 − δ)/2 or better; or None.

    The δ-fair convergence time (Bansal, Balakrishnan, Floyd and Shenker 2001; RFC 5166 §2.3).
    """
    for time, a, b in zip(times, one, other, strict=True):
        if a + b > 0 and max(a, b) / (a + b) <= (1 + delta) / 2 + 1e-12:
            return time
    return None


def averages(values: Sequence[float], bins: int) -> list[float]:
    """Averages over ``bins`` values each; an incomplete one at the end is left out."""
    return [math.fsum(values[i : i + bins]) / bins for i in range(0, len(values) - bins + 1, bins)]


def coefficient_of_variation(values: Sequence[float], bins: int) -> float:
    """Standard deviation over mean of averages over ``bins`` rates (Floyd et al. 2000, §4.1.1).

    Incomplete averages at the end are left out; NaN with fewer than two averages.
    """
    means = averages(values, bins)
    if len(means) < 2 or not any(means):
        return math.nan
    mean = math.fsum(means) / len(means)
    return math.sqrt(math.fsum((x - mean) ** 2 for x in means) / len(means)) / mean


def variation_over_scales(result: RunData, flow: str) -> pl.DataFrame:
    """Coefficient of variation against time scale: ``scale_s``, ``cov``."""
    values, width = rates(result, flow), bin_width(result)
    scales = [1 << k for k in range((len(values) // 2).bit_length())]
    return pl.DataFrame(
        {
            "scale_s": [width * bins for bins in scales],
            "cov": [coefficient_of_variation(values, bins) for bins in scales],
        },
        schema={"scale_s": pl.Float64, "cov": pl.Float64},
    )


def equivalence(one: Sequence[float], other: Sequence[float], bins: int) -> float:
    """Equivalence ratio of two flows (Floyd et al. 2000, §4.1.1) at a time scale of ``bins`` bins.

    The mean of min(a/b, b/a) over averages in which at least one flow sent; 1 means always equal.
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
    """When all values from then on stay within target · (1 ± band); None if the last does not."""
    since = None
    for time, value in zip(times, values, strict=True):
        inside = abs(value - target) <= band * target
        since = (time if since is None else since) if inside else None
    return since


def fair_shares(result: RunData) -> dict[str, float]:
    """The fair share of each direction of a flow, in bit/s.

    Fair means max-min fair (Bertsekas and Gallager, Data Networks, 1992, §6.5.2), with unlimited
    demand: no flow can gain except from another that has no more. On a single bottleneck this is
    its rate over the number of flows. Rates are link rates at the run's start; a flow over a cell,
    whose channel has no fixed rate, has no share and takes none from others; with several paths the
    primary one counts.
    """
    rates: dict[str, Any] = {}
    for link in result.topology["links"]:
        rates[link["name"]] = link["rate_bps"]
        rates[f"{link['name']}.back"] = link.get("back", {}).get("rate_bps", link["rate_bps"])
    air = {hop["name"] for hop in result.topology["access_points"]}
    air |= {link["name"] for link in result.topology["links"] if "contends" in link}
    # Of imported traces and of measured paths: not known.
    air |= {name for name, rate in rates.items() if rate is None}
    there = set(result.flows["name"])
    ways = {}
    for flow in result.topology["flows"]:
        for side, name in (("from", flow["name"]), ("to", f"{flow['name']}.reverse")):
            paths = flow["links"][side]
            if name in there and paths and not air.intersection(paths[0]):
                ways[name] = paths[0]
    shares = {}
    while ways:
        crowd = Counter(link for way in ways.values() for link in way)
        share, tightest = min((max(rates[link], 0.0) / n, link) for link, n in crowd.items())
        for name in [name for name, way in ways.items() if tightest in way]:
            shares[name] = share
            for link in ways.pop(name):
                rates[link] -= share
    return shares


def normalised_throughput(result: RunData, flow: str) -> float | None:
    """Throughput of a flow over its fair share; None without one, see :func:`fair_shares`."""
    share = fair_shares(result).get(flow)
    rate = result.flows.filter(pl.col("name") == flow)["throughput_bps"][0]
    return float(rate or 0.0) / share if share else None
