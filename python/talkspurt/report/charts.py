"""Interactive charts of a run, which ``web/charts.js`` documents and draws on any page.

A page that does so needs no plotting library, whose import alone takes longer than many runs. The
engine makes the charts, with as few points as can be seen, from the columns named here.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import polars.selectors as cs

from talkspurt import _core, scores
from talkspurt.figures.inside import PANELS
from talkspurt.figures.multiples import MAX_FLOWS
from talkspurt.metrics import opinion
from talkspurt.results.manifest import Origin
from talkspurt.results.run_data import RunData

SERIES = ("flow", "time_s", "delay_mean_s", "goodput_bps")
LINK_SERIES = ("link", "time_s", "capacity_bps", "queue_packets", "sojourn_max_s")
LINKS = ("name", "sent_packets", "queue_mean_packets", "utilisation")
VIDEO_FRAMES = ("flow", "captured_s", "complete_s", "decodable_s", "kind")


def of_result(result: RunData) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """All charts for which the run has data, and the bars of the MOS of its first calls.

    A bar has the cause, colour, place and length of each loss of MOS.
    """
    tables = {
        "flows": result.flows,
        "links": _some(result.links, LINKS),
        "series": _some(result.series(), SERIES),
        "link_series": _some(result.link_series(), LINK_SERIES),
        "gauges": _gauges(result),
        "frames": result.frames(),
        "video_frames": _some(result.video_frames(), VIDEO_FRAMES),
    }
    if result.is_scored:
        tables["scores"] = _segments(result)
    told = opinion.told(result, result.calls[:MAX_FLOWS]) | {
        "imported": result.origin is Origin.IMPORTED,
        "models": [(model.name, model.label) for model in scores.MODELS.values()],
        "topology": {"flows": [*result.topology["flows"]]},
    }
    made = json.loads(_core.charts(tables, json.dumps(told)))
    return made["charts"], made["bars"]


def _some(frame: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """Those of the columns that there are: an older version may have had fewer."""
    return frame.select(cs.by_name(*names, require_all=False))


def _gauges(result: RunData) -> pl.DataFrame:
    """The gauges that a chart has; of a run, a whole table can take 1 GB."""
    if result.origin is Origin.IMPORTED:
        return result.gauges()
    names = {"cwnd": None}
    for gauge, panels in PANELS.items():
        if result.gauges(gauge=gauge).height:
            names |= {line[0]: None for panel in panels for line in panel.lines}
    return pl.concat(result.gauges(gauge=name) for name in names)


def _segments(result: RunData) -> pl.DataFrame:
    """The scores of segments of the first calls, a column for each model."""
    heard = result.heard[:MAX_FLOWS]
    values = {model.name: pl.coalesce(model.columns) for model in scores.MODELS.values()}
    rows = result.scores.drop_nulls("segment").filter(pl.col("flow").is_in(heard))
    return rows.select("flow", "start_s", "duration_s", **values)
