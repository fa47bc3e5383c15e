"""What a jitter buffer did, over time: the counters of ``RTCInboundRtpStreamStats``.

They are named as in ``webrtc-internals`` and counted from the table of frames, for any buffer and
origin of a result; an imported dump has them as gauges. Amounts of sound are in seconds, where
WebRTC counts samples.
"""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from talkspurt.metrics.bins import sided
from talkspurt.metrics.opinion import HEARD
from talkspurt.results.run_data import RunData

FADED_S = {"g711-appendix-i": 0.06, "g711-appendix-i-frozen": 0.06, "silence": 0.0}
"""Concealment after which nothing is heard (G.711 Appendix I)."""
MEANS = {"jitter_buffer_delay_s": "waited_s", "jitter_buffer_target_delay_s": "aimed_s"}
"""Means over the sound taken from the buffer, and the sums that they are made of."""
COUNTERS = (
    "jitter_buffer_emitted_s", "concealed_s", "silent_concealed_s", "concealment_events",
    "inserted_s", "removed_s", "total_received_s",
)  # fmt: skip
COLUMNS = (*MEANS, *COUNTERS)


def over_time(result: RunData, flow: str, bin_s: float) -> pl.DataFrame:
    """One row per bin in which the receiver played sound, identified by its start.

    Columns: ``time_s``; ``jitter_buffer_delay_s``, from the arrival of what was played to its
    playout, and ``jitter_buffer_target_delay_s``, the target when it arrived (null for buffers
    without), means over the bin; and in the bin, ``jitter_buffer_emitted_s``, sound taken from the
    buffer, ``concealed_s``, ``silent_concealed_s`` (null if the codec conceals by itself),
    ``concealment_events``, ``inserted_s`` by slower playout, ``removed_s`` by faster playout, and
    ``total_received_s``, all sound played. Sound that was recovered from other packets counts
    there only.
    """
    if (facts := _imported(result, flow)) is not None:
        return _recorded(result, flow, facts, bin_s)
    return _rows(result, flow, ((pl.col("playout_s") / bin_s + 1e-9).floor() * bin_s))


def total(result: RunData, flow: str, column: str) -> float | None:
    """A column of :func:`over_time` over the whole call; None for a flow without speech."""
    if (facts := _imported(result, flow)) is not None:
        rows = _recorded(result, flow, facts, None)
    else:
        rows = _rows(result, flow, pl.lit(0.0))
    return None if rows.is_empty() else rows[column][0]


RECORDED = {
    "waited_s": "jitterBufferDelay", "aimed_s": "jitterBufferTargetDelay",
    "jitter_buffer_emitted_s": "jitterBufferEmittedCount", "concealed_s": "concealedSamples",
    "silent_concealed_s": "silentConcealedSamples", "concealment_events": "concealmentEvents",
    "inserted_s": "insertedSamplesForDeceleration", "removed_s": "removedSamplesForAcceleration",
    "total_received_s": "totalSamplesReceived",
}  # fmt: skip
"""The members of an imported dump."""
OF_ARRIVALS = ("waited_s", "aimed_s", "jitter_buffer_emitted_s")
"""Those that grow by what arrived; the others go on when nothing does."""
ROUNDED_S = 5e-4
"""By how much the times of gauges and facts may differ."""


def _imported(result: RunData, flow: str) -> dict[str, Any] | None:
    """What is known of a stream of a dump; None for all other flows."""
    facts = result.manifest.get("imported", {}).get("flows", {}).get(flow, {})
    return facts if "samples" in facts else None


def _recorded(
    result: RunData, flow: str, facts: dict[str, Any], bin_s: float | None
) -> pl.DataFrame:
    """By how much the counters of a dump grew in each bin; without bins, what they have at last."""
    of = {member: name for name, member in RECORDED.items()}
    # Samples: those of G.722 come twice as fast as its clock (RFC 3551 §4.5.2).
    rate = 16_000 if facts.get("mimeType") == "audio/G722" else facts.get("clockRate", 48_000)
    before = pl.col("value").shift().over("gauge")
    kept = result.gauges(flow).with_columns(name=pl.col("gauge").str.extract(r"([^.]+)$"))
    kept = kept.filter(pl.col("name").is_in([*of])).sort("time_s", maintain_order=True)
    # A counter that is less than before has begun again.
    grown = pl.when(pl.col("value") >= before).then(pl.col("value") - before).otherwise("value")
    grown = grown if bin_s is None else pl.when(before.is_not_null()).then(grown)
    place = pl.lit(0.0) if bin_s is None else (pl.col("time_s") / bin_s + 1e-9).floor() * bin_s
    after = pl.col("time_s") > facts.get("arrivals_from_s", -1.0) + ROUNDED_S
    until = pl.col("time_s") < facts.get("arrivals_until_s", math.inf) + ROUNDED_S
    sums = (
        kept.with_columns(value=grown, name=pl.col("name").replace_strict(of))
        .drop_nulls("value")
        .filter(pl.col("name").is_in(OF_ARRIVALS) | (after & until))
        .with_columns(time_s=place)
        .group_by("time_s", "name")
        .agg(pl.col("value").sum())
        .pivot("name", index="time_s", values="value")
        .sort("time_s")
    )
    there = [name for name in RECORDED if name in sums.columns]
    gone = [pl.lit(None, pl.Float64).alias(name) for name in RECORDED if name not in there]
    scaled = [pl.col(name) / (1 if name == "concealment_events" else rate) for name in there]
    sums = sums.select("time_s", *scaled, *gone)
    emitted = pl.col("jitter_buffer_emitted_s")
    means = [
        pl.when(emitted > 0).then(pl.col(part) / emitted).alias(name)
        for name, part in MEANS.items()
    ]
    return sums.select("time_s", *means, *COUNTERS)


def _rows(result: RunData, flow: str, bins: pl.Expr) -> pl.DataFrame:
    name, side = sided(flow)
    told = result.resolved["flows"][name]
    frames = result.frames(flow).filter(pl.col("fate").is_in(HEARD)).sort("playout_s")
    source = told["reverse" if side == "to" else "source"] if not frames.is_empty() else {}
    frame_s = float(source.get("packet", 0.02))
    own = str(source.get("codec", ""))
    faded_s = FADED_S.get(told.get("playout", {}).get("concealment", "")) if own in _PLAIN else None
    # Since the frame before: time of playout without the pause, frames, and time of capture.
    out_s = pl.col("playout_s").diff() - pl.col("paused_s") - frame_s
    missing = pl.col("index").diff() - 1
    follows = (missing == 0) & (pl.col("captured_s").diff() < 1.5 * frame_s)
    lost_s = pl.when(missing > 0).then(out_s.clip(0, missing * frame_s)).otherwise(0.0)
    concealed_s = pl.col("paused_s") + lost_s.fill_null(0.0)
    emitted = pl.when(pl.col("fate") == "played").then(frame_s).otherwise(0.0)
    nothing = pl.lit(None, dtype=pl.Float64)
    silent_s = nothing if faded_s is None else (concealed_s - faded_s).clip(0)
    stretched_s = pl.when(follows).then(out_s).otherwise(0.0).fill_null(0.0)
    # Rounding of times is no stretching.
    stretched_s = pl.when(stretched_s.abs() < 1e-6).then(0.0).otherwise(stretched_s)
    return (
        _with_targets(result, name, side, frames)
        .sort("playout_s")
        .select(
            bins.alias("time_s"),
            (emitted * (pl.col("playout_s") - pl.col("delivered_s"))).alias("waited_s"),
            (emitted * pl.col("value")).alias("aimed_s"),
            emitted.alias("jitter_buffer_emitted_s"),
            concealed_s.alias("concealed_s"),
            silent_s.alias("silent_concealed_s"),
            (concealed_s > 1e-6).cast(pl.Int64).alias("concealment_events"),
            stretched_s.clip(0).alias("inserted_s"),
            stretched_s.clip(upper_bound=0).abs().alias("removed_s"),
            (frame_s + concealed_s + stretched_s).alias("total_received_s"),
        )
        .group_by("time_s", maintain_order=True)
        .agg(
            *(
                _mean(part, pl.col("jitter_buffer_emitted_s")).alias(name)
                for name, part in MEANS.items()
            ),
            *(
                pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name)
                for name in COUNTERS
            ),
        )
    )


_PLAIN = ("pcmu", "pcma", "g722", "g726-40", "g726-32", "g726-24", "g726-16")
"""Codecs whose gaps the flow's concealment fills."""


def _mean(part: str, whole: pl.Expr) -> pl.Expr:
    known = pl.col(part).is_not_null()
    return pl.when(whole.filter(known).sum() > 0).then(
        pl.col(part).sum() / whole.filter(known).sum()
    )


def _with_targets(result: RunData, name: str, side: str, frames: pl.DataFrame) -> pl.DataFrame:
    """Adds the target of the buffer when each frame arrived."""
    receiver = "from" if side == "to" else "to"
    targets = result.gauges(gauge="playout_target").filter(flow=name, side=receiver)
    targets = targets.select("value", delivered_s="time_s").sort("delivered_s")
    arrived = frames.sort("delivered_s", nulls_last=True)
    known = arrived.filter(pl.col("delivered_s").is_not_null())
    found = known.join_asof(targets, on="delivered_s", strategy="backward")
    rest = arrived.filter(pl.col("delivered_s").is_null())
    return pl.concat([found, rest.with_columns(value=pl.lit(None, dtype=pl.Float64))])
