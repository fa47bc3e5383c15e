"""MOS over time: each window of a call scored as if it were a whole call.

ITU-T G.107 rates whole connections, and listeners remember the past; a window's score shows when a
call was bad, not how users would rate it afterwards. A window over the whole call gives the call's
score.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from talkspurt import _core
from talkspurt.metrics.bins import sided
from talkspurt.scenarios.resolved import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from talkspurt.results.run_data import RunData

COLUMNS = (
    "time_s", "frames", "mouth_to_ear_s", "loss_ratio", "concealed_ratio", "burst_ratio",
    "r_factor", "mos", "estimated_mos",
)  # fmt: skip
SCHEMA = {name: pl.Int64 if name == "frames" else pl.Float64 for name in COLUMNS}


def window_s(result: RunData) -> float:
    """The window for figures: 5 s, adjusted to give about 12 to 120 windows."""
    if result.duration_s > 600:
        return float(round(result.duration_s / 120))
    return min(5.0, max(0.5, round(result.duration_s / 6) / 2))


def over_time(result: RunData, flow: str, bin_s: float) -> pl.DataFrame:
    """One row per window in which frames were captured, identified by its start.

    Columns: ``time_s``, ``frames`` judged, ``mouth_to_ear_s`` (mean of the played frames),
    ``loss_ratio`` (missing or late), ``concealed_ratio`` (with pauses of playout),
    ``burst_ratio``, ``r_factor``, ``mos`` and ``estimated_mos``; no rows for a flow without speech.
    """
    name, side = sided(flow)
    back = side == "to"
    told = result.resolved["flows"][name]
    frames = result.frames(flow).sort("index")
    if frames.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    delays = (frames["playout_s"] - frames["captured_s"]).filter(frames["fate"].is_in(HEARD))
    longest, usual = _number(delays.max()) or 0.0, _number(delays.mean())
    # Undelivered frames with a playout after the end are not judged.
    decided = pl.col("fate").is_in([*HEARD, "late", "discarded"]).fill_null(value=True)
    due = pl.col("captured_s") + longest < result.duration_s - 1e-9
    asked = json.dumps(plain(told))
    frame_s = float(told["reverse" if back else "source"]["packet"])
    of_call = result.flows.row(by_predicate=pl.col("name") == flow, named=True)
    payload, packets = of_call["payload_bytes"], of_call["sent_packets"]
    each = payload / packets if payload and packets else None
    whole = (each, of_call["fec_ratio"], of_call["dred_ratio"])
    rows = []
    for row in _windows(frames.filter(decided | due), bin_s).iter_rows(named=True):
        count, lost, ear = row["frames"], row["lost"], row["mouth_to_ear_s"]
        # What was concealed: frames, and pauses of playout, each of which is a run.
        paused = row["paused_s"] / frame_s
        concealed, runs = lost + paused, row["runs"] + row["pauses"]
        share = concealed / (count + paused)
        # ITU-T G.107 §7.4: mean length of loss runs, over that of random losses.
        burst = concealed / runs * (1 - share) if runs else None
        heard = (row["rungs"], ear if ear is not None else usual, share, burst)
        found = _core.opinion(asked, back, *heard, row["recovered"] / count, whole)
        rows.append((row["time_s"], count, ear, lost / count, share, burst, *found))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def drawn(windows: Iterable[pl.DataFrame]) -> str:
    """Which of ``SCORES`` is drawn of calls: the first that one of them has."""
    tables = list(windows)
    there = (name for name in SCORES if any(len(rows[name].drop_nulls()) for rows in tables))
    return next(there, SCORES[0])


def _number(found: object) -> float | None:
    return found if isinstance(found, float) else None


def _windows(frames: pl.DataFrame, bin_s: float) -> pl.DataFrame:
    """Per window: frames, lost ones and their runs, pauses, the mean delay, and played rungs."""
    unheard = pl.col("fate").is_in(UNHEARD).fill_null(value=False)
    played = pl.col("fate").is_in(HEARD)
    most = frames["encoding"].max() if "encoding" in frames.columns else None
    rungs = range(most + 1 if isinstance(most, int) else 0)
    return (
        frames.with_columns(unheard.alias("unheard"))
        .group_by(
            ((pl.col("captured_s") / bin_s + 1e-9).floor() * bin_s).alias("time_s"),
            maintain_order=True,
        )
        .agg(
            pl.len().alias("frames"),
            pl.col("unheard").sum().alias("lost"),
            (pl.col("fate") == "recovered").sum().alias("recovered"),
            (pl.col("unheard") & ~pl.col("unheard").shift(fill_value=False)).sum().alias("runs"),
            (pl.col("playout_s") - pl.col("captured_s"))
            .filter(played)
            .mean()
            .alias("mouth_to_ear_s"),
            pl.col("paused_s").sum(),
            (pl.col("paused_s") > 0).sum().alias("pauses"),
            *((played & (pl.col("encoding") == rung)).sum().alias(f"rung{rung}") for rung in rungs),
        )
        .with_columns(
            pl.concat_list(f"rung{rung}" for rung in rungs).alias("rungs")
            if rungs
            else pl.lit([], dtype=pl.List(pl.UInt32)).alias("rungs")
        )
    )


HEARD = ("played", "recovered")
"""Fates of the frames that the listener hears."""
SCORES = ("mos", "estimated_mos")
"""Scores of windows, the one that is drawn if a call has it first."""
UNHEARD = ("late", "lost", "discarded", "queued", "in_flight")
