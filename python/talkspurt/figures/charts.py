"""Charts of a run, which ``web/charts.js`` documents and draws on any page, and figures on paper.

A page that does so needs no plotting library, whose import alone takes longer than many runs. The
engine makes the charts, with as few points as can be seen, from the columns named here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import polars as pl
import polars.selectors as cs

from talkspurt import _core, scores
from talkspurt.figures.style import Style, flow_styles
from talkspurt.metrics import opinion
from talkspurt.results.manifest import Origin

if TYPE_CHECKING:
    from talkspurt.results.run_data import RunData

Chart = dict[str, Any]

MAX_FLOWS = 24
"""Flows that are drawn at most."""
COLUMNS = {
    "series": ("flow", "time_s", "delay_mean_s", "goodput_bps"),
    "link_series": ("link", "time_s", "capacity_bps", "queue_packets", "sojourn_max_s"),
    "links": ("name", "sent_packets", "queue_mean_packets", "utilisation"),
    "video_frames": ("flow", "captured_s", "complete_s", "shown_s", "kind"),
}
GAUGES = {"cwnd": ["cwnd"]} | {
    sender: [line[3] for line in lines]
    for sender, lines in groupby(json.loads(_core.gauge_lines()), itemgetter(0))
}
"""The gauges that a chart shows of a sender that has the first of these."""


def styles_of(result: RunData) -> dict[str, Style]:
    """A style for each flow."""
    flows = result.flows.select("name", "transport", "source").rows()
    return flow_styles({name: (transport, source) for name, transport, source in flows})


def of_result(result: RunData) -> tuple[list[Chart], list[dict[str, Any]]]:
    """All charts for which the run has data, and the bars of the MOS of its first calls.

    A bar has the cause, colour, place and length of each loss of MOS.
    """
    names = (*COLUMNS, "frames", *(["scores"] if result.is_scored else []))
    tables = {name: _table(result, name) for name in names}
    is_imported = result.origin is Origin.IMPORTED
    tables["gauges"] = result.gauges() if is_imported else _gauges(result, GAUGES)
    made = _made(result, result.flows, tables)
    return made["charts"], made["bars"]


def of_tables(
    result: RunData, names: Sequence[str], flow: str | None = None, *, calls: bool = False
) -> tuple[list[Chart], int]:
    """The charts that some tables give, of all flows, of one, or of calls if there are any.

    ``names`` are those of tables, or of ``GAUGES``. Also returns how many flows the first has.
    """
    chosen = [flow] if flow else result.calls if calls else []
    flows = result.flows
    if chosen:
        flows = flows.filter(pl.col("name").is_in(chosen))
    gauges = [name for name in names if name in GAUGES]
    tables = {"gauges": _gauges(result, gauges)} if gauges else {}
    tables |= {name: _table(result, name, flow) for name in names if name not in GAUGES}
    charts = _made(result, flows, tables)["charts"]
    if flow:
        _restyle(charts, styles_of(result)[flow], flow, *flows.select("transport", "source").row(0))
    first = next(iter(tables.values()))
    return charts, first.filter(pl.col("flow").is_in(flows["name"].implode()))["flow"].n_unique()


def bottlenecks(result: RunData, chart: str) -> dict[str, str]:
    """The links with the longest queues in a chart of links, with their colours."""
    tables = {name: _table(result, name) for name in ("links", "link_series")}
    made = _made(result, result.flows, tables)["charts"]
    panels = (panel for one in made if one["name"] == chart for panel in one["panels"])
    return {line["label"]: line["colour"] for panel in panels for line in panel["lines"]}


def _restyle(charts: list[Chart], own: Style, flow: str, *what: str) -> None:
    """The engine knew no flow but this: give it the style that it has among all."""
    alone = flow_styles({flow: (what[0], what[1])})[flow]
    for line in (line for chart in charts for panel in chart["panels"] for line in panel["lines"]):
        if line["colour"] == alone.colour:
            line["colour"] = own.colour
        if line["label"] == flow:
            line["dashes"] = own.dashes


def _made(result: RunData, flows: pl.DataFrame, tables: dict[str, pl.DataFrame]) -> Any:
    calls = flows.filter(source="speech")["name"].to_list()
    told = opinion.told(result, calls[:MAX_FLOWS]) | {
        "imported": result.origin is Origin.IMPORTED,
        "models": [(model.name, model.label) for model in scores.MODELS.values()],
        "topology": {"flows": [*result.topology["flows"]]},
    }
    return json.loads(_core.charts({"flows": flows, **tables}, json.dumps(told)))


def _table(result: RunData, name: str, flow: str | None = None) -> pl.DataFrame:
    """A table without what no chart shows."""
    if name == "scores":
        return _segments(result)
    if name == "links":
        found = result.links
    else:
        found = result.link_series() if name == "link_series" else getattr(result, name)(flow)
    # An older version may have had fewer columns.
    return found.select(cs.by_name(*COLUMNS.get(name, found.columns), require_all=False))


def _gauges(result: RunData, senders: Iterable[str]) -> pl.DataFrame:
    """The gauges that a chart has; of a run, a whole table can take 1 GB."""
    there = [sender for sender in senders if result.gauges(gauge=sender).height]
    names = dict.fromkeys(name for sender in there or ["cwnd"] for name in GAUGES[sender])
    return pl.concat(result.gauges(gauge=name) for name in names)


def _segments(result: RunData) -> pl.DataFrame:
    """The scores of segments of the first calls, a column for each model."""
    heard = result.heard[:MAX_FLOWS]
    values = {model.name: pl.coalesce(model.columns) for model in scores.MODELS.values()}
    rows = result.scores.drop_nulls("segment").filter(pl.col("flow").is_in(heard))
    return rows.select("flow", "start_s", "duration_s", **values)
