"""MOS over time: what the E-model says of each window of a call, as if it were a call of its own.

ITU-T G.107 speaks of whole connections, and listeners remember what is past; a window's score says
when a call was bad, not what would be said of it afterwards. A window that holds the whole call
gives the call's score.
"""

from __future__ import annotations

import json
import math
import tomllib
from itertools import groupby
from typing import TYPE_CHECKING

import polars as pl

from talkspurt import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from talkspurt.result import Result

SCHEMA = {
    "time_s": pl.Float64,
    "frames": pl.Int64,
    "mouth_to_ear_s": pl.Float64,
    "loss_ratio": pl.Float64,
    "burst_ratio": pl.Float64,
    "r_factor": pl.Float64,
    "mos": pl.Float64,
}


def window_s(result: Result) -> float:
    """A window for figures: 5 s, in short runs a twelfth of them and half a second at least."""
    return min(5.0, max(0.5, round(result.duration_s / 6) / 2))


def over_time(result: Result, flow: str, bin_s: float) -> pl.DataFrame:
    """One row for each window in which frames were captured, named by its start.

    Columns: ``time_s``, ``frames`` judged, ``mouth_to_ear_s`` (median of what was played),
    ``loss_ratio`` (missing or late), ``burst_ratio``, ``r_factor`` and ``mos``; no rows for a flow
    that is no speech.
    """
    name, _, back = flow.rpartition(".") if flow.endswith(".reverse") else (flow, "", "")
    told = tomllib.loads(result.scenario)["flows"][name]
    frames = result.frames(flow).sort("index")
    if frames.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    delays = (frames["playout_s"] - frames["captured_s"]).filter(frames["fate"] == "played")
    latest = delays.max()
    longest = latest if isinstance(latest, float) else 0.0
    # What was not delivered, and would have been played after the end, is not judged.
    decided = pl.col("fate").is_in(["played", "late", "discarded"]).fill_null(value=True)
    due = pl.col("captured_s") + longest < result.duration_s - 1e-9
    frames = frames.filter(decided | due)
    windows = frames.group_by(
        (pl.col("captured_s") / bin_s + 1e-9).floor().alias("window"), maintain_order=True
    )
    usual = _median(delays.to_list())
    rows = []
    for (window,), part in windows:
        assert isinstance(window, float)
        unheard = [fate in UNHEARD for fate in part["fate"]]
        played = part.filter(pl.col("fate") == "played")
        ear = _median((played["playout_s"] - played["captured_s"]).to_list())
        loss, burst = sum(unheard) / len(unheard), burst_ratio(unheard)
        asked = (json.dumps(told), bool(back), _rungs(played), ear if ear is not None else usual)
        r_factor, mos = _core.opinion(*asked, loss, burst)
        rows.append((window * bin_s, len(unheard), ear, loss, burst, r_factor, mos))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


UNHEARD = ("late", "lost", "discarded", "queued", "in_flight")


def _rungs(played: pl.DataFrame) -> list[int]:
    """Frames played in each rung of the ladder; none of a source that has no ladder."""
    if "encoding" not in played.columns or played["encoding"].null_count() == played.height:
        return []
    rungs: list[int] = played["encoding"].to_list()
    return [rungs.count(rung) for rung in range(max(rungs) + 1)]


def _median(values: Sequence[float]) -> float | None:
    """The nearest-rank median, as everywhere."""
    return sorted(values)[math.ceil(len(values) / 2) - 1] if values else None


def burst_ratio(lost: Sequence[bool]) -> float | None:
    """ITU-T G.107 §7.4: mean length of runs of losses, over that of losses at random."""
    runs = [len(list(run)) for gone, run in groupby(lost) if gone]
    if not runs:
        return None
    return sum(runs) / len(runs) * (1 - sum(runs) / len(lost))
