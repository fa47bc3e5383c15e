"""MOS over time: each window of a call scored as if it were a whole call.

ITU-T G.107 rates whole connections, and listeners remember the past; a window's score shows when a
call was bad, not how users would rate it afterwards. A window over the whole call gives the call's
score.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from talkspurt import _core
from talkspurt.metrics.bins import bin_width, sided
from talkspurt.scenarios.resolved import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from talkspurt.results.run_data import RunData

COLUMNS = (
    "time_s", "frames", "mouth_to_ear_s", "loss_ratio", "concealed_ratio", "burst_ratio",
    "r_factor", "mos", "estimated_mos",
)  # fmt: skip
SCHEMA = {name: pl.Int64 if name == "frames" else pl.Float64 for name in COLUMNS}


def over_time(result: RunData, flow: str, bin_s: float) -> pl.DataFrame:
    """One row per window in which frames were captured, identified by its start.

    Columns: ``time_s``, ``frames`` judged, ``mouth_to_ear_s`` (mean of the played frames),
    ``loss_ratio`` (missing or late), ``concealed_ratio`` (with pauses of playout),
    ``burst_ratio``, ``r_factor``, ``mos`` and ``estimated_mos``; no rows for a flow without speech.
    """
    tables = {"flows": result.flows.filter(name=flow), "frames": result.frames(flow)}
    windows = _core.opinion(tables, json.dumps(told(result, [flow])), flow, bin_s)
    return pl.DataFrame(json.loads(windows), schema=SCHEMA)


def told(result: RunData, directions: Iterable[str]) -> dict[str, Any]:
    """What the engine needs beside the tables to score these directions."""
    flows = result.resolved["flows"]
    names = dict.fromkeys(sided(direction)[0] for direction in directions)
    return {
        "duration_s": result.duration_s,
        "interval_s": bin_width(result),
        # The transport does not matter here, and an import does not know all of its settings.
        "flows": {name: plain(flows[name]) | {"transport": {"kind": "udp"}} for name in names},
    }


HEARD = ("played", "recovered")
"""Fates of the frames that the listener hears."""
