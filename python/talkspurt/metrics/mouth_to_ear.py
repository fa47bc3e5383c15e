"""The parts of mouth-to-ear delay over time: where the time between mouth and ear goes.

Each frame that was heard passes four instants: its capture, when its transport took it, its
delivery at the far end, and its playout. The parts between them add up to its mouth-to-ear delay.
"""

from __future__ import annotations

import polars as pl

from talkspurt.metrics.bins import bin_width, sided
from talkspurt.metrics.opinion import HEARD
from talkspurt.results.run_data import RunData

PARTS = {
    "codec_s": "frame and look-ahead of the codec",
    "sender_s": "wait at the sender",
    "network_s": "transport and network",
    "playout_s": "playout buffer",
}
"""The parts in the order in which they pass, and what they are."""
MAX_BINS = 120


def over_time(result: RunData, flow: str) -> pl.DataFrame:
    """A row per bin with frames that were heard: its start, and the means of the parts.

    Columns: ``time_s``, those of ``PARTS``, and ``mouth_to_ear_s``, which is their sum. A frame
    that was recovered from a later packet was not delivered itself: all its time after it was sent
    is that of the buffer, which waited for that packet.
    """
    name, side = sided(flow)
    flows = {one["name"]: one for one in result.topology["flows"]}
    shape = (flows.get(name, {}).get("speech") or (None, None))[side == "to"]
    codec_s = shape["interval_s"] + shape["look_ahead_s"] if shape else 0.0
    bin_s = bin_width(result) * max(1, round(result.duration_s / bin_width(result) / MAX_BINS))
    captured, taken = pl.col("captured_s"), pl.col("handed_over_s")
    ready = pl.min_horizontal(captured + codec_s, taken)
    arrived = pl.coalesce("delivered_s", taken)
    means = (
        result.frames(flow)
        .filter(pl.col("fate").is_in(HEARD))
        .drop_nulls(["handed_over_s", "playout_s"])
        .group_by((captured / bin_s).floor().alias("time_s") * bin_s)
        .agg(
            (ready - captured).mean().alias("codec_s"),
            (taken - ready).mean().alias("sender_s"),
            (arrived - taken).mean().alias("network_s"),
            (pl.col("playout_s") - arrived).mean().alias("playout_s"),
        )
        .sort("time_s")
    )
    return means.with_columns(pl.sum_horizontal(*PARTS).alias("mouth_to_ear_s"))
