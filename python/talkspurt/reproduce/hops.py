"""Statistics of awk scripts and trace graphs, from packets and hops of either simulator.

The frame has a row per packet and hop: ``flow``, ``number``, ``link``, ``bytes``, ``enqueued_s``,
``dequeued_s``, ``received_s``; missing times are null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

InNs2 = Callable[..., pl.DataFrame]
"""Runs a study's script in ns-2 with these arguments; returns its hops."""
COLUMNS = ("flow", "number", "link", "bytes", "enqueued_s", "dequeued_s", "received_s")


def ours(packets: pl.DataFrame) -> pl.DataFrame:
    """The hops of a run's packet table."""
    return packets.select(
        pl.format("{} {}", "flow", "side").alias("flow"),
        "number",
        "link",
        pl.col("ip_bytes").alias("bytes"),
        *COLUMNS[4:],
    )


def of_ns2(trace: Path) -> pl.DataFrame:
    """The hops of an ns-2 trace (``trace-all``)."""
    names = ("event", "time", "from", "to", "kind", "bytes", "flags", "fid", "src", "dst", "seq")
    lines = pl.read_csv(
        trace,
        separator=" ",
        has_header=False,
        new_columns=[*names, "uid"],
        schema_overrides={"src": pl.String, "dst": pl.String, "fid": pl.Int64},
        truncate_ragged_lines=True,
    )
    lines = lines.with_columns(pl.format("{}>{}", "from", "to").alias("link"))
    key = ["uid", "link"]

    def times(event: str, name: str) -> pl.DataFrame:
        of = lines.filter(pl.col("event") == event)
        return of.group_by(key).agg(pl.col("time").first().alias(name))

    first = lines.filter(pl.col("event").is_in(["+", "d"])).unique(key, keep="first")
    return (
        first.select(*key, "bytes", pl.format("{} {}>{}", "fid", "src", "dst").alias("flow"))
        .join(times("+", "enqueued_s"), on=key, how="left")
        .join(times("-", "dequeued_s"), on=key, how="left")
        .join(times("r", "received_s"), on=key, how="left")
        .rename({"uid": "number"})
        .select(COLUMNS)
    )


def mean_delay_s(hops: pl.DataFrame) -> float:
    """Mean time over one hop, including queueing, of received packets."""
    return mean(hops.select(pl.col("received_s") - pl.col("enqueued_s")).to_series())


def end_to_end(hops: pl.DataFrame) -> pl.DataFrame:
    """A row per packet: first hop's start, last hop's arrival (null if it was lost)."""
    whole = pl.col("received_s").is_not_null().all()
    return hops.group_by("flow", "number", maintain_order=True).agg(
        pl.col("bytes").first(),
        pl.col("enqueued_s").min().alias("sent_s"),
        pl.when(whole).then(pl.col("received_s").max()).alias("received_s"),
    )


def mean(values: pl.Series) -> float:
    """The mean, NaN if there is none; equal whatever the number of threads that made the chunks."""
    found = values.rechunk().mean()
    return float("nan") if not isinstance(found, int | float) else float(found)


def variation(values: pl.Series | Sequence[float]) -> float:
    """Standard deviation over mean, NaN if the mean is 0."""
    found = pl.Series(values).rechunk()
    average = mean(found)
    return _number(found.std()) / average if average else float("nan")


def counts(hops: pl.DataFrame) -> dict[str, float]:
    """Tracegraph's list for a trace: length, packets, sizes, bytes; each hop counts."""
    times = {"generated": "enqueued_s", "sent": "dequeued_s", "received": "received_s"}
    bytes_ = {
        name: hops.filter(pl.col(time).is_not_null())["bytes"] for name, time in times.items()
    }
    queued = bytes_["generated"]
    last = max(_number(hops[time].max()) for time in times.values() if hops[time].count())
    return {
        "length": last - _number(hops["enqueued_s"].min()),
        **{f"{name}-packets": float(of.len()) for name, of in bytes_.items()},
        "minimal-size": _number(queued.min()),
        "maximal-size": _number(queued.max()),
        # Tracegraph prints whole bytes.
        "average-size": float(int(queued.sum() / queued.len())),
        **{f"{name}-bytes": float(of.sum()) for name, of in bytes_.items()},
    }


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def jitters(hops: pl.DataFrame, scale: float = 1.0) -> pl.DataFrame:
    """Absolute differences of the delays of successive arrivals of a flow, in scaled seconds."""
    packets = end_to_end(hops).filter(pl.col("received_s").is_not_null()).sort("received_s")
    delay = scale * (pl.col("received_s") - pl.col("sent_s"))
    jitter = delay.diff().over("flow").abs().alias("jitter")
    return packets.select("received_s", jitter).drop_nulls("jitter")


def throughput_bps(hops: pl.DataFrame, until_s: float) -> float:
    """Received bits, over the run."""
    arrived = end_to_end(hops).filter(pl.col("received_s").is_not_null())
    return 8 * float(arrived["bytes"].sum()) / until_s


def binned_bps(hops: pl.DataFrame, width_s: float, until_s: float) -> list[float]:
    """Received bits per second in each bin."""
    bins = [0.0] * round(until_s / width_s)
    arrived = hops.filter(pl.col("received_s").is_not_null())
    for time, size in arrived.select("received_s", "bytes").iter_rows():
        place = int(time / width_s)
        if place < len(bins):
            bins[place] += 8 * size / width_s
    return bins
