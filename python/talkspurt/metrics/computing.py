"""Reads or computes the metrics of the catalogue from a result."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import polars as pl

from talkspurt import scores
from talkspurt._text.format import offered
from talkspurt.metrics import breaker, jitter_buffer, opinion, packets, series, sharing
from talkspurt.metrics.bins import bin_width, sided
from talkspurt.metrics.catalogue import COMPUTED, Column, Computed, metric
from talkspurt.results.run_data import RunData


def compute(
    result: RunData,
    name: str,
    flow: str | None = None,
    bin_s: float | None = None,
    *,
    link: str | None = None,
) -> pl.DataFrame:
    """A metric of one flow or link, or of all: ``flow`` or ``link``, x (if any) and y.

    For a column of every run, y is ``value``; for a gauge, x is ``time_s``, and ``side`` is the end
    of the flow that has it: both ends for a one-way flow; for one direction of a two-way flow its
    sender, except for ``jitter``, which the receiver has.

    Args:
        result: the run.
        name: the metric, as known to ``metrics.metric``; if ``link`` is given, metrics of links
            take precedence.
        flow: one flow; default: all.
        bin_s: bin width in seconds, for metrics counted in time bins; default: the metric's own.
        link: one link, for metrics of links; default: all.

    Raises:
        KeyError: if the metric, flow or link does not exist, or the packet table is missing.
        ValueError: if it cannot be computed with these arguments.
    """
    one = metric(name, of_links=link is not None)
    kind, asked, other = ("link", link, flow) if one.of_links else ("flow", flow, link)
    if other is not None:
        raise ValueError(f"{one.full_name} is of {kind}s")
    if bin_s is not None and not one.has_bins:
        raise ValueError(f"{one.full_name} has no bins of time")
    there = (result.links if one.of_links else result.flows)["name"].to_list()
    if asked is not None and asked not in there:
        raise KeyError(f"no {kind} {asked!r}; {offered(asked, there)}")
    wanted = [asked] if asked is not None else there
    if isinstance(one, Column):
        return _recorded(result, one, wanted)
    if one.needs_packets and result._kept("packets") is None:
        raise KeyError(f"{one.name} is computed from the packet table: {without_packets(result)}")
    if one.name in RATIOS:
        flows = result.flows.filter(pl.col("name").is_in(wanted))
        return flows.select(pl.col("name").alias("flow"), ratio(flows, one.name).alias("value"))
    across = [one.x] if one.x else []
    parts = []
    for of in wanted:
        table = _table(result, one, of, bin_s)
        if one.y == "generated_pps" and not packets.in_series(result, bin_s or one.bin_s):
            raise ValueError(
                f"{one.name} comes from the time series: a bin of {bin_s or one.bin_s:g} s is no "
                f"multiple of record.interval, {bin_width(result):g} s"
            )
        parts.append(table.select(pl.lit(of).alias(kind), *across, one.y))
    return pl.concat(parts, how="vertical_relaxed")


def _recorded(result: RunData, one: Column, wanted: list[str]) -> pl.DataFrame:
    """A recorded column: ``value``; for a gauge, per ``side`` with ``time_s``."""
    if one.table == "gauges":
        ends = [(name, side) for of in wanted for name, side in _ends(result, of, one.name)]
        there = pl.DataFrame(ends, schema={"flow": pl.String, "side": pl.String}, orient="row")
        kept = result.gauges(gauge=one.name)
        kept = kept.join(there, on=["flow", "side"], how="semi", maintain_order="left")
        return kept.select("flow", "side", "time_s", "value")
    if one.table == "scores":
        rows = scores.calls(result)
        # Null without a recording.
        found = [(of, scores.value(rows[of], one.name) if of in rows else None) for of in wanted]
        return pl.DataFrame(found, schema={"flow": pl.String, "value": pl.Float64}, orient="row")
    table = result.table(one.table)
    if one.name not in table.columns:
        raise ValueError(
            f"this result has no {one.full_name}: an older talkspurt made it; run scenario.toml "
            "in it again"
        )
    of = pl.col("name").alias("link" if one.of_links else "flow")
    return table.filter(pl.col("name").is_in(wanted)).select(of, pl.col(one.name).alias("value"))


def without_packets(result: RunData) -> str:
    """Why a result has no packet table, or what would make one."""
    if result.origin.is_over_real_path:
        return "a measurement has none"
    return "run again with --set record.packets=true"


RATIOS = {
    "delivery_ratio": ("received_packets", "sent_packets"),
    "network_loss": ("lost_packets", "sent_packets"),
}
"""Metrics that are one count of each flow over another; null where that is 0."""


def ratio(flows: pl.DataFrame, name: str) -> pl.Series:
    """A metric of ``RATIOS`` of each row of a flows table.

    Not divided by polars: where it knows that all rows of a column have one value, it multiplies
    by the reciprocal, and the last digit would depend on how the table was read.
    """
    pairs = zip(*(flows[column] for column in RATIOS[name]), strict=True)
    found = [None if not whole or part is None else part / whole for part, whole in pairs]
    return pl.Series(name, found, dtype=pl.Float64)


OF_RECEIVERS = ("jitter",)
"""Gauges of a direction that its receiver has; its sender has the others."""


def _ends(result: RunData, direction: str, gauge: str) -> list[tuple[str, str]]:
    """Flow and side of the ends that have a gauge of a direction."""
    flow, sender = sided(direction)
    if f"{flow}.reverse" not in result.flows["name"]:
        return [(flow, "from"), (flow, "to")]
    receiver = "from" if sender == "to" else "to"
    return [(flow, receiver if gauge in OF_RECEIVERS else sender)]


def sender_of(result: RunData, table: pl.DataFrame, direction: str, gauge: str) -> pl.DataFrame:
    """The rows of a gauge at one end: the sender of a direction, or its receiver for ``jitter``.

    If that end has no rows, the other one's.
    """
    ends = _ends(result, direction, gauge)
    if len(ends) == 2 and gauge in OF_RECEIVERS:
        ends = ends[::-1]
    for _, side in ends:
        rows = table.filter(pl.col("side") == side)
        if not rows.is_empty():
            return rows
    return table


def _table(result: RunData, one: Computed, of: str, bin_s: float | None) -> pl.DataFrame:
    if one.shape in _BY_SIDE:
        return _BY_SIDE[one.shape](result, *sided(of), bin_s or one.bin_s)
    if one.shape == "calls" and one.y in jitter_buffer.COLUMNS:
        return jitter_buffer.over_time(result, of, bin_s or one.bin_s)
    if one.shape == "calls":
        return opinion.over_time(result, of, bin_s or one.bin_s)
    if one.shape == "scales":
        return sharing.variation_over_scales(result, of)
    if one.shape == "flows":
        value = _NUMBERS[one.name](result, of)
        number = None if value is None or math.isnan(value) else value
        return pl.DataFrame({"value": [number]}, schema={"value": pl.Float64})
    if one.name == "link_wait":
        return series.waits(result, of, bin_s or one.bin_s)
    width = series.usable_bin(result, bin_s, one.bin_s)
    if one.of_links:
        return series.of_link(result, of, width)
    if one.name == "bandwidth_utilisation":
        return series.bandwidth_utilisation(result, of, width)
    return series.of_flow(result, of, width)


_BY_SIDE: dict[str, Callable[[RunData, str, str, float], pl.DataFrame]] = {
    "packets": lambda result, flow, side, _: packets.life(result, flow, side),
    "over_time": packets.over_time,
    "by_size": packets.by_size,
    "losses": lambda result, flow, side, _: packets.loss_events(result, flow, side),
}


def _arrived(result: RunData, flow: str) -> pl.DataFrame:
    return packets.life(result, *sided(flow)).filter(pl.col("received_s").is_not_null())


def _active(result: RunData, flow: str) -> float:
    """Unlike ``throughput_bps``, which is over the window: studies use one name for both."""
    arrived = _arrived(result, flow)
    if arrived.height < 2:
        return math.nan
    times = [float(time) for time in arrived["received_s"]]
    return 8 * float(arrived["ip_bytes"].sum()) / (max(times) - min(times))


def _size(result: RunData, flow: str, statistic: str) -> float | None:
    """A statistic of the lengths of the packets that a direction sent."""
    lengths = packets.life(result, *sided(flow))["ip_bytes"].drop_nulls()
    return float(getattr(lengths, statistic)()) if len(lengths) else None


def _share(result: RunData, flow: str, of: str) -> float | None:
    """The share of a flow's judged speech frames that this column counts."""
    row = result.flows.row(by_predicate=pl.col("name") == flow, named=True)
    unheard = (row["missing_packets"] or 0) + (row["late_packets"] or 0)
    if row["loss_ratio"] is None:
        return None
    return float(row["loss_ratio"]) * (row[of] or 0) / unheard if unheard else 0.0


def _oscillations(result: RunData, flow: str) -> float:
    width = series.usable_bin(result, None, 0.2)
    sent = sharing.rates(result, flow, "sent_bytes")
    rates = sharing.averages(sent, round(width / bin_width(result)))
    return float(series.oscillations(rates, width))


def _throughputs(result: RunData) -> list[float]:
    return [float(rate or 0.0) for rate in result.flows["throughput_bps"]]


def _a_second(result: RunData) -> int:
    return max(1, round(1.0 / bin_width(result)))


def _equivalence(result: RunData, flow: str) -> float:
    first = result.flows["name"][0]
    mine, its = sharing.rates(result, flow), sharing.rates(result, first)
    return sharing.equivalence(mine, its, _a_second(result))


def _convergence(result: RunData, flow: str) -> float | None:
    times, seconds = _by_seconds(result, flow)
    if len(seconds) < 4:
        return None
    end = seconds[-(len(seconds) // 4) :]
    target = math.fsum(end) / len(end)
    return sharing.converged_s(times, seconds, target) if target else None


def _by_seconds(result: RunData, flow: str) -> tuple[list[float], list[float]]:
    """The received rate per second since the window's start."""
    bins = _a_second(result)
    means = sharing.averages(sharing.rates(result, flow), bins)
    width = bins * bin_width(result)
    return [i * width for i in range(len(means))], means


def _fair_convergence(result: RunData, flow: str) -> float | None:
    times, mine = _by_seconds(result, flow)
    _, its = _by_seconds(result, result.flows["name"][0])
    return sharing.fair_after_s(times, mine, its)


_NUMBERS: dict[str, Callable[[RunData, str], float | None]] = {
    "active_rate": _active,
    "rate_over_run": lambda result, flow: (
        8 * float(_arrived(result, flow)["ip_bytes"].sum()) / result.duration_s
    ),
    "loss_event_rate": lambda result, flow: packets.loss_event_rate(result, *sided(flow)),
    "packet_size_min": partial(_size, statistic="min"),
    "packet_size_mean": partial(_size, statistic="mean"),
    "packet_size_max": partial(_size, statistic="max"),
    "post_repair_loss": partial(_share, of="missing_packets"),
    "playout_discards": partial(_share, of="late_packets"),
    "oscillations": _oscillations,
    "fairness": lambda result, _: sharing.jain(_throughputs(result)),
    "least_over_greatest": lambda result, _: sharing.least_over_greatest(_throughputs(result)),
    "normalised_throughput": sharing.normalised_throughput,
    "equivalence": _equivalence,
    "convergence": _convergence,
    "fair_convergence": _fair_convergence,
    "circuit_breaker": breaker.stopped_s,
    **{
        one.name.removesuffix("_over_time"): partial(jitter_buffer.total, column=one.y)
        for one in COMPUTED
        if one.y in jitter_buffer.COLUMNS
    },
}
