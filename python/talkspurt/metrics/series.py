"""Flows and links over time, in bins of the time series; needs no packet table.

Counts packets with payload, as the flow tables do. Bins are identified by their starts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from talkspurt.metrics import dictionary
from talkspurt.metrics.bins import bin_width, sided
from talkspurt.results.manifest import Origin
from talkspurt.results.run_data import RunData

SUMS = tuple(name for name in dictionary.kinds("series") if name.endswith(("_packets", "_bytes")))


def usable_bin(result: RunData, bin_s: float | None, usual: float) -> float:
    """The bin width in seconds: the requested or the default one."""
    width = bin_width(result)
    if bin_s is None:
        return max(1, math.ceil(usual / width - 1e-9)) * width
    if abs(bin_s / width - max(1, round(bin_s / width))) > 1e-6:
        raise ValueError(
            f"bins of {bin_s:g} s: expected a multiple of the series' {width:g} s (record.interval)"
        )
    return bin_s


def _start(bin_s: float) -> pl.Expr:
    # The series identifies bins by their ends.
    return (((pl.col("time_s") / bin_s - 1e-9).ceil() - 1) * bin_s).alias("time_s")


def of_flow(result: RunData, flow: str, bin_s: float) -> pl.DataFrame:
    """Counts of ``SUMS``, and ``generated_bps``, ``sent_bps``, ``received_bps``, ``goodput_bps``.

    ``delay_mean_s`` is the mean network delay of the packets received; ``throughput_ratio`` is the
    receive rate of this flow over the mean of all flows.
    """
    missing = [name for name in SUMS if name not in result.series().columns]
    if missing:
        raise ValueError(
            f"the series of this result have no {missing[0]}: an older talkspurt made it; run "
            "scenario.toml in it again"
        )
    width = bin_width(result)
    bits = pl.col("goodput_bps") * (pl.col("time_s") - _start(width))
    table = (
        result.series(flow)
        .group_by(_start(bin_s))
        .agg(
            *(pl.col(name).sum() for name in SUMS),
            bits.sum().alias("goodput"),
            (pl.col("delay_mean_s") * pl.col("received_packets")).sum().alias("delays"),
        )
    )
    mean = (
        result.series()
        .group_by(_start(bin_s), "flow")
        .agg(pl.col("received_bytes").sum())
        .group_by("time_s")
        .agg(pl.col("received_bytes").mean().alias("mean"))
    )
    # The last bin may be shorter.
    length = (result.duration_s - pl.col("time_s")).clip(upper_bound=bin_s)
    if result.origin is Origin.IMPORTED:
        table = table.with_columns(_unknown(result.series(flow)))
    return (
        table.join(mean, on="time_s")
        .select(
            "time_s",
            *SUMS,
            *(
                (8 * pl.col(f"{name}_bytes") / length).alias(f"{name}_bps")
                for name in ("generated", "sent", "received")
            ),
            (pl.col("goodput") / length).alias("goodput_bps"),
            pl.when(pl.col("received_packets") > 0)
            .then(pl.col("delays") / pl.col("received_packets"))
            .alias("delay_mean_s"),
            pl.when(pl.col("mean") > 0)
            .then(pl.col("received_bytes") / pl.col("mean"))
            .alias("throughput_ratio"),
        )
        .sort("time_s")
    )


def _unknown(series: pl.DataFrame) -> list[pl.Expr]:
    """What a trace does not contain: the sum of null values is null, not 0."""
    sums = {**{name: name for name in SUMS}, "goodput": "goodput_bps", "delays": "delay_mean_s"}
    return [
        pl.lit(None, pl.Float64).alias(name)
        for name, of in sums.items()
        if series[of].null_count() == series.height
    ]


def bandwidth_utilisation(result: RunData, flow: str, bin_s: float) -> pl.DataFrame:
    """The flow's sending rate over the minimum link rate on its route.

    Raises:
        ValueError: if one of these link rates changes, or the route includes a cell.
    """
    capacity = narrowest(result, flow)
    return of_flow(result, flow, bin_s).select(
        "time_s", (pl.col("sent_bps") / capacity).alias("bandwidth_utilisation")
    )


def narrowest(result: RunData, flow: str) -> float:
    """The minimum link rate on a direction's primary route, in bit/s."""
    name, side = sided(flow)
    (known,) = (one for one in result.topology["flows"] if one["name"] == name)
    ways = known["back" if side == "to" else "routes"]
    if not ways:
        raise ValueError(f"flow {flow!r}: its route is not known")
    return min(_rate(result, flow, pair) for pair in pairwise(ways[0]))


def _rate(result: RunData, flow: str, pair: Sequence[str]) -> float:
    found = []
    for link in result.topology["links"]:
        ends = (link["from"], link["to"])
        back = ends == tuple(pair[::-1])
        if ends == tuple(pair) or back:
            told = {**link, **(link.get("back") or {})} if back else link
            if told["rate_bps"] is None:
                raise ValueError(f"flow {flow!r}: the rates of its links are not known")
            if told.get("changes"):
                raise ValueError(
                    f"flow {flow!r}: the rate of link {link['name']!r} changes, and a share of it "
                    "is not computed"
                )
            if "changes" in link:
                found.append(float(told["rate_bps"]))
    if not found:
        raise ValueError(f"flow {flow!r}: its way leads through a cell, which has no rate")
    return max(found)


WATERMARKS = 4.0
"""The high watermark over the low one (RFC 8868 §3, item 9)."""
SWING_S = 0.5
"""Maximum time for the rate to go from one to the other."""


def oscillations(rates: Sequence[float], bin_s: float) -> int:
    """Number of transitions of a rate between the watermarks within half a second.

    RFC 8868 §3, item 9; in its example one watermark is a quarter of the other. Here they are half
    and twice the mean rate.
    """
    mean = math.fsum(rates) / len(rates) if rates else 0.0
    if not mean:
        return 0
    side, last, count = 0, -math.inf, 0
    for i, rate in enumerate(rates):
        here = int(rate >= mean * math.sqrt(WATERMARKS)) - int(rate <= mean / math.sqrt(WATERMARKS))
        if not here:
            continue
        time = i * bin_s
        count += int(here == -side and time - last <= SWING_S + 1e-9)
        side, last = here, time
    return count


def of_link(result: RunData, link: str, bin_s: float) -> pl.DataFrame:
    """A link and direction: ``queue_packets``, ``utilisation``, ``drops`` and ``marks``."""
    return (
        result.link_series(link)
        .group_by(_start(bin_s))
        .agg(pl.col("queue_packets", "utilisation").mean(), pl.col("drops", "marks").sum())
        .sort("time_s")
    )


def waits(result: RunData, link: str, bin_s: float) -> pl.DataFrame:
    """Queueing time of packets at a link, by departure time: ``wait_mean_s``."""
    wait = pl.col("dequeued_s") - pl.col("enqueued_s")
    return (
        result.packets()
        .filter((pl.col("link") == link) & pl.col("dequeued_s").is_not_null())
        .group_by(((pl.col("dequeued_s") / bin_s).floor() * bin_s).alias("time_s"))
        .agg(wait.mean().alias("wait_mean_s"))
        .sort("time_s")
    )
