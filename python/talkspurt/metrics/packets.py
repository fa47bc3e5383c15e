"""Packets end to end: one row per packet, and statistics over time and by size.

All of these describe IP packets of one direction of a flow, whatever their payload, from arrival at
the first link to departure from the last, as analysts of ns-2 traces count.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from talkspurt.metrics.bins import bin_width
from talkspurt.results.manifest import Origin
from talkspurt.results.run_data import RunData

STATISTICS = (
    ("delay", "min"), ("delay", "mean"), ("delay", "max"), ("jitter", "mean"),
    ("processing", "mean"), ("queueing", "mean"),
)  # fmt: skip
"""What is computed of the packets that arrive in a bin."""


def life(result: RunData, flow: str, side: str = "from") -> pl.DataFrame:
    """One row per packet of a direction, in order of sending.

    Columns: ``number``, ``ip_bytes``, ``sent_s``, ``received_s`` (null if lost), ``delay_s`` (end
    to end), ``processing_s`` (waiting in intermediate nodes), ``queueing_s`` (waiting at all links,
    including the sender's), ``jitter_s`` (of arrivals in order: absolute change of delay since the
    previous arrival, |D| of RFC 3550 §6.4.1), ``smoothed_jitter_s`` (RFC 3550 A.8 over all packets,
    whatever their payload) and ``received_bytes`` (cumulative).

    Raises:
        KeyError: if the flow does not exist or the run has no packet table.
    """
    rows = result.packets(flow).filter(pl.col("side") == side)
    (known,) = (one for one in result.topology["flows"] if one["name"] == flow)
    final = [links[-1] for links in known["links"][side] if links]
    wait = (pl.col("dequeued_s") - pl.col("enqueued_s")).alias("wait")
    # Captures do not show when packets joined a queue.
    queued = pl.col("enqueued_s").is_not_null().any()
    packets = (
        rows.with_columns(wait)
        .group_by("number")
        .agg(
            pl.col("ip_bytes").first(),
            pl.coalesce("enqueued_s", "dequeued_s").min().alias("sent_s"),
            pl.col("received_s").filter(pl.col("link").is_in(final)).max(),
            # A node's work begins when a packet has arrived there; the first node is the sender.
            pl.when(queued)
            .then(pl.col("wait").sort_by("enqueued_s").slice(1).sum())
            .alias("processing_s"),
            pl.when(queued).then(pl.col("wait").sum()).alias("queueing_s"),
        )
        .with_columns((pl.col("received_s") - pl.col("sent_s")).alias("delay_s"))
    )
    arrived = (
        packets.filter(pl.col("received_s").is_not_null())
        .sort("received_s", "number")
        .with_columns(
            pl.col("delay_s").diff().abs().alias("jitter_s"),
            pl.col("ip_bytes").cum_sum().alias("received_bytes"),
        )
    )
    steps = (change or 0.0 for change in arrived["jitter_s"])
    smoothed = [*itertools.accumulate(steps, lambda j, d: j + (d - j) / 16, initial=0.0)][1:]
    arrived = arrived.with_columns(pl.Series("smoothed_jitter_s", smoothed, dtype=pl.Float64))
    extra = arrived.select("number", "jitter_s", "smoothed_jitter_s", "received_bytes")
    return packets.join(extra, on="number", how="left").sort("sent_s", "number")


def over_time(result: RunData, flow: str, side: str = "from", bin_s: float = 1.0) -> pl.DataFrame:
    """Time bins; packets are counted at sending time, arrivals at arrival time.

    Columns: ``time_s`` (start of the bin), ``generated_packets`` and ``generated_pps`` (by the
    source; null unless ``bin_s`` is a multiple of the series' bins), ``sent_packets``,
    ``sent_bps``, ``received_packets``, ``received_pps``, ``received_bps``, ``forwarded_packets``
    and ``forwarded_bps`` (sent on by nodes between the ends), ``delay_min_s``, ``delay_mean_s``,
    ``delay_max_s``, ``jitter_mean_s``, ``processing_mean_s`` and ``queueing_mean_s`` (of arrivals).
    """

    def binned(column: str) -> pl.Expr:
        return ((pl.col(column) / bin_s).floor() * bin_s).alias("time_s")

    packets = life(result, flow, side)
    sent = packets.group_by(binned("sent_s")).agg(
        pl.len().alias("sent_packets"), (pl.col("ip_bytes").sum() * 8 / bin_s).alias("sent_bps")
    )
    arrived = packets.filter(pl.col("received_s").is_not_null())
    received = arrived.group_by(binned("received_s")).agg(
        pl.len().alias("received_packets"),
        (pl.len() / bin_s).alias("received_pps"),
        (pl.col("ip_bytes").sum() * 8 / bin_s).alias("received_bps"),
        *(
            getattr(pl.col(f"{name}_s"), statistic)().alias(f"{name}_{statistic}_s")
            for name, statistic in STATISTICS
        ),
    )
    hops = result.packets(flow).filter(
        (pl.col("side") == side) & pl.col("dequeued_s").is_not_null()
    )
    first = hops.group_by("number").agg(pl.col("dequeued_s").min().alias("first"))
    forwarded = hops.join(first, on="number").filter(pl.col("dequeued_s") > pl.col("first"))
    forwarded = forwarded.group_by(binned("dequeued_s")).agg(
        pl.len().alias("forwarded_packets"),
        (pl.col("ip_bytes").sum() * 8 / bin_s).alias("forwarded_bps"),
    )
    count = max(1, math.ceil(result.duration_s / bin_s - 1e-9))
    table = pl.DataFrame({"time_s": [i * bin_s for i in range(count)]})
    for part in (sent, received, forwarded):
        table = table.join(part, on="time_s", how="left")
    counts = [name for name in table.columns if name.endswith(("_packets", "_pps", "_bps"))]
    table = table.with_columns(pl.col(counts).fill_null(0))
    unsent = [name for name in table.columns if name.startswith(("sent_", "forwarded_"))]
    if packets.height and packets["sent_s"].null_count() == packets.height:
        table = table.with_columns(pl.lit(None, table.schema[c]).alias(c) for c in unsent)
    return table.join(_generated(result, flow, side, bin_s), on="time_s", how="left")


def in_series(result: RunData, bin_s: float) -> bool:
    """Whether bins of this width are made of whole bins of the series."""
    bins = bin_s / bin_width(result)
    return abs(bins - round(bins)) <= 1e-6


def _generated(result: RunData, flow: str, side: str, bin_s: float) -> pl.DataFrame:
    """Units made by the source, from the series, whose bins are named by their ends."""
    columns = {"time_s": pl.Float64, "generated_packets": pl.Int64, "generated_pps": pl.Float64}
    if not in_series(result, bin_s):
        return pl.DataFrame(schema=columns)
    name = flow if side == "from" else f"{flow}.reverse"
    series = result.series().filter(pl.col("flow") == name)
    time = (((pl.col("time_s") / bin_s - 1e-9).ceil() - 1) * bin_s).alias("time_s")
    made = pl.col("generated_packets")
    # What programs and imported flows generated is not known.
    made = pl.when(made.count() > 0).then(made.sum())
    return series.group_by(time).agg(made, (made / bin_s).alias("generated_pps"))


def by_size(result: RunData, flow: str, side: str = "from", bin_s: float = 1.0) -> pl.DataFrame:
    """Packet lengths with counts, rates and delay.

    Columns: ``ip_bytes``, ``sent_packets``, ``received_packets``, ``sent_max_bps`` (in the busiest
    bin), ``received_mean_bps`` (over the run) and ``delay_mean_s``.
    """
    packets = life(result, flow, side)
    busiest = (
        packets.group_by("ip_bytes", (pl.col("sent_s") / bin_s).floor().alias("bin"))
        .agg(pl.col("ip_bytes").sum().alias("bytes"))
        .group_by("ip_bytes")
        .agg((pl.col("bytes").max() * 8 / bin_s).alias("sent_max_bps"))
    )
    return (
        packets.group_by("ip_bytes")
        .agg(
            pl.len().alias("sent_packets"),
            pl.col("received_s").count().alias("received_packets"),
            pl.col("delay_s").mean().alias("delay_mean_s"),
        )
        .with_columns(
            (pl.col("ip_bytes") * pl.col("received_packets") * 8 / result.duration_s).alias(
                "received_mean_bps"
            )
        )
        .join(busiest, on="ip_bytes")
        .sort("ip_bytes")
    )


# Loss events as in TFRC, for any flow, whatever its transport.
#
# A receiver following RFC 5348 would have these intervals, with two differences. Losses are known
# from the packet table, so a packet that is only late is not counted as lost (§5.1). And where a
# receiver synthesises an interval before the first loss from its receive rate (§6.3.1), the packets
# before that loss are counted.

WEIGHTS = (1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2)
"""Weights of the last eight intervals, the newest first (RFC 5348 §5.4)."""
LATER = 3
"""Later packets that must arrive before one is considered lost (§5.1, NDUPACK)."""


@dataclass(frozen=True)
class Event:
    """A loss event: its first lost packet, and when that would have arrived."""

    number: int
    time_s: float


def events(packets: Sequence[tuple[int, float | None]], rtt_s: float) -> list[Event]:
    """Loss events among packets in order of number, each with its arrival, None if lost.

    The time of a loss is interpolated by number between its neighbours' arrivals (§5.2). A loss
    starts an event if it occurs a round trip or more after the start of the previous event.
    """
    arrived = [(number, time) for number, time in packets if time is not None]
    found: list[Event] = []
    after = 0
    for number, time in packets:
        if time is not None:
            after += 1
            continue
        if after == 0 or len(arrived) - after < LATER:
            continue  # not yet detectable, or without a nominal arrival time
        (low, early), (high, late) = arrived[after - 1], arrived[after]
        when = early + (late - early) * (number - low) / (high - low)
        if not found or found[-1].time_s + rtt_s <= when:
            found.append(Event(number, when))
    return found


def rate(intervals: Sequence[int], open_: int) -> float:
    """The loss event rate p (§5.4) of closed intervals, the newest last, and the open one."""
    recent = list(intervals)[::-1][: len(WEIGHTS)]
    weights = WEIGHTS[: len(recent)]
    closed = sum(i * w for i, w in zip(recent, weights, strict=True))
    with_open = sum(i * w for i, w in zip([open_, *recent[:-1]], weights, strict=True))
    return sum(weights) / max(closed, with_open)


def loss_events(result: RunData, flow: str, side: str = "from") -> pl.DataFrame:
    """Each loss event: ``time_s``, ``interval_packets`` it closed, ``loss_event_rate`` after it."""
    packets, found = _found(result, flow, side)
    lengths = _closed(packets, found)
    rates = [rate(lengths[: i + 1], 1) for i in range(len(lengths))]
    return pl.DataFrame(
        {
            "time_s": [event.time_s for event in found],
            "interval_packets": lengths,
            "loss_event_rate": rates,
        },
        schema={"time_s": pl.Float64, "interval_packets": pl.Int64, "loss_event_rate": pl.Float64},
    )


def loss_event_rate(result: RunData, flow: str, side: str = "from") -> float:
    """The loss event rate after the last packet; 0 without a loss."""
    return at_the_end(*_found(result, flow, side))


def at_the_end(packets: Sequence[tuple[int, float | None]], found: Sequence[Event]) -> float:
    """The loss event rate of these packets, after the last of them."""
    if not found:
        return 0.0
    last = max(number for number, time in packets if time is not None)
    return rate(_closed(packets, found), last - found[-1].number + 1)


def _closed(packets: Sequence[tuple[int, float | None]], found: Sequence[Event]) -> list[int]:
    """The lengths of the intervals that these events closed."""
    starts = [*(number for number, _ in packets[:1]), *(event.number for event in found)]
    return [after - before for before, after in itertools.pairwise(starts)]


def _found(
    result: RunData, flow: str, side: str
) -> tuple[list[tuple[int, float | None]], list[Event]]:
    there = life(result, flow, side)
    # Packets in flight when the run ended are not lost, only unknown.
    under_way = set(
        result.packets(flow)
        .filter(pl.col("fate").is_in(["queued", "in_flight"]) & (pl.col("side") == side))["number"]
        .to_list()
    )
    rows = there.sort("number").select("number", "received_s").rows()
    packets = [(n, at) for n, at in rows if at is not None or n not in under_way]
    return packets, events(packets, round_trip(result, flow, side))


def round_trip(result: RunData, flow: str, side: str) -> float:
    """Sum of the mean delays of both directions, or twice the forward one if none came back."""
    there = life(result, flow, side)["delay_s"].mean()
    back = life(result, flow, "to" if side == "from" else "from")["delay_s"].mean()
    if not isinstance(there, float):
        if result.origin is Origin.IMPORTED:
            raise ValueError(f"flow {flow!r}: loss events need delays, and the trace has none")
        return 0.0
    return there + (back if isinstance(back, float) else there)
