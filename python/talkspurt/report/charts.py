"""Interactive charts of a run, with as few points as can be seen: the page draws them itself.

A page that does so needs no plotting library, whose import alone takes longer than many runs. A
chart is JSON, which ``web/charts.js`` documents and draws on any page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from talkspurt import scores
from talkspurt._text.format import time_text, verdict
from talkspurt.figures import decimating, inside, multiples
from talkspurt.figures.multiples import MAX_FLOWS, Panel
from talkspurt.figures.style import CAUSE_COLOURS, INK, Style, widths
from talkspurt.figures.time import (
    PARTS,
    QUEUE_COLOURS,
    bottlenecks,
    smooth,
    styles_of,
)
from talkspurt.metrics import mouth_to_ear, opinion
from talkspurt.metrics.catalogue import column
from talkspurt.results.manifest import Origin, origin
from talkspurt.results.run_data import RunData

Values = Sequence["Number"] | pl.Series

COLUMNS = 500
"""Columns of pixels of a chart."""
MAX_SENDERS = 4
"""Flows of each kind of controller with charts; `talkspurt report` draws those of the others."""
DASHES = {"-": (), "--": (6, 2.5)}

Number = float | None
Chart = dict[str, Any]
Line = dict[str, Any]
Styles = Mapping[str, Style]


def of_result(result: RunData) -> list[Chart]:
    """All charts for which the run has data."""
    styles = styles_of(result)
    made = [
        _mouth_to_ear(result),
        _series(result.series(), "delay", "One-way network delay", "delay_mean_s", styles),
        _goodput(result, styles),
        _late(result, styles),
        _mos(result, styles),
        _of_links(
            result, "queue", "Packets waiting where queues are longest", "packets", "queue_packets"
        ),
        _of_links(result, "sojourn", "Longest wait in a queue", "ms", "sojourn_max_s", 1e3),
        _cwnd(result, styles),
        *_reported(result, styles),
        *_inside(result, styles),
        *_sound(result, styles),
        _delays(result, styles),
        _film(result, styles),
    ]
    return [chart for chart in made if chart is not None]


def chart_of(
    name: str, title: str, unit: str, panels: Sequence[tuple[str, list[Line]]], **more: Any
) -> Chart | None:
    """A chart of panels: titles and lines; None without lines of at least two points in all."""
    shown = [{"title": title, "lines": lines} for title, lines in panels if lines]
    if len({x for _, lines in panels for line in lines for x in line["x"]}) < 2:
        return None
    return {
        "name": name,
        "title": title,
        "unit": unit,
        "panels": shown,
        "note": "",
        "explained": [],
        "logarithmic": False,
        "range": None,
        "stacked": False,
        "over": {"label": "time", "unit": "s"},
    } | more


def _short(value: Number) -> Number:
    """Five digits exceed a screen's resolution."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")


def line_of(
    label: str,
    colour: str,
    dashes: Sequence[float],
    x: Values,
    values: Values,
    *,
    width: float = 1.6,
    marker: str = "",
    look: str = "line",
    stepped: int = 0,
) -> Line:
    """A line of a chart, points or an area; of its points only those that can be seen."""
    times = pl.Series(x, dtype=pl.Float64)
    numbers = pl.Series(values, dtype=pl.Float64, strict=False)
    places = decimating.kept(times, numbers, columns=COLUMNS)
    return {
        "label": label,
        "colour": colour,
        "dashes": list(dashes),
        "x": [_short(v) for v in times.gather(places).to_list()],
        "values": [_short(v) for v in numbers.gather(places).to_list()],
        "width": width,
        "marker": marker,
        "look": look,
        "stepped": stepped,
        "background": False,
    }


def _lines(
    curves: Mapping[str, tuple[Values, Values]], styles: Styles, stepped: int = 0
) -> list[Line]:
    """Lines of flows in their styles, background first, each thinner than those below it."""
    shown = [name for name, (_, values) in curves.items() if any(n is not None for n in values)]
    shown.sort(key=lambda name: not styles[name].in_background)
    return [
        line_of(
            name,
            styles[name].colour,
            styles[name].dashes,
            *curves[name],
            width=1.2 if styles[name].in_background else width,
            marker=styles[name].marker,
            stepped=stepped,
        )
        | {"background": styles[name].in_background}
        for name, width in zip(shown, widths(len(shown)), strict=True)
    ]


def _of_flows(
    name: str,
    title: str,
    unit: str,
    curves: Mapping[str, tuple[Values, Values]],
    styles: Styles,
    stepped: int = 0,
    **more: Any,
) -> Chart | None:
    """A chart of a line for each flow, in as many panels as needed."""
    panels = multiples.by_kind(list(curves), styles)
    drawn = [
        (one.title, _lines({f: curves[f] for f in one.flows}, styles, stepped)) for one in panels
    ]
    return chart_of(name, title, unit, drawn, **more)


def _some(shown: int, total: int) -> str:
    return f"{shown} of {total} flows." if shown < total else ""


def _series(
    frame: pl.DataFrame, name: str, title: str, measure: str, styles: Styles
) -> Chart | None:
    """A column of a table of flows over time."""
    shown = column(measure)
    curves = {}
    for flow in [*styles][:MAX_FLOWS]:
        rows = frame.filter(flow=flow)
        curves[flow] = (rows["time_s"], rows[measure] * shown.scale)
    note = _some(len(curves), len(styles))
    return _of_flows(name, title, shown.shown_unit, curves, styles, note=note)


def _mouth_to_ear(result: RunData) -> Chart | None:
    """The parts of the mouth-to-ear delay of each call, on top of each other."""
    panels = []
    for call in result.calls[:MAX_FLOWS]:
        rows = mouth_to_ear.over_time(result, call)
        times = rows["time_s"]
        panels.append(
            (
                call,
                [
                    line_of(
                        mouth_to_ear.PARTS[part], colour, (), times, rows[part] * 1e3, width=1.0
                    )
                    for part, colour in reversed(PARTS.items())
                    if rows.height > 1
                ],
            )
        )
    note = f"{MAX_FLOWS} of {len(result.calls)} calls." if len(result.calls) > MAX_FLOWS else ""
    title = "Mouth-to-ear delay and its parts"
    return chart_of("mouth-to-ear", title, "ms", panels, stacked=True, note=note)


def _goodput(result: RunData, styles: Styles) -> Chart | None:
    """Goodput, with the capacity of the bottleneck behind it."""
    shown = column("goodput_bps")
    goodput, width = smooth(result.series(), "flow", "goodput_bps")
    flows = [*styles][:MAX_FLOWS]
    panels = []
    for panel in multiples.by_bottleneck(result, flows, styles):
        rows = {flow: goodput.filter(flow=flow) for flow in panel.flows}
        curves = {f: (of["time_s"], of["goodput_bps"] * shown.scale) for f, of in rows.items()}
        lines = _lines(curves, styles)
        if panel.link:
            lines.insert(0, _capacity(result, panel, shown.scale))
        panels.append((panel.title, lines))
    title = f"Goodput, means over {time_text(width)}"
    if any(line["look"] == "area" for _, lines in panels for line in lines):
        title += ", before the capacity of bottlenecks"
    return chart_of("goodput", title, shown.shown_unit, panels, note=_some(len(flows), len(styles)))


def _capacity(result: RunData, panel: Panel, scale: float) -> Line:
    rows, _ = smooth(result.link_series(panel.link), "link", "capacity_bps")
    # A step begins at the end of the one before.
    x, values = [0.0, *rows["time_s"]], (rows["capacity_bps"] * scale).to_list()
    area = [values[0], *values]
    return line_of("capacity", "field", (), x, area, width=0.8, look="area", stepped=-1)


def _late(result: RunData, styles: Styles) -> Chart | None:
    """Cumulative count of unheard frames: where the line climbs, speech is missing."""
    frames = result.frames().filter(~pl.col("fate").is_in(opinion.HEARD))
    x = result.series()["time_s"].unique().sort()
    curves: dict[str, tuple[Values, Values]] = {}
    for call in result.calls[:MAX_FLOWS]:
        times = frames.filter(flow=call)["captured_s"].sort()
        if not times.is_empty():
            curves[call] = (x, times.search_sorted(x, side="right"))
    return _of_flows("not-heard", "Voice frames not heard so far", "frames", curves, styles)


def _mos(result: RunData, styles: Styles) -> Chart | None:
    """MOS of windows, each a step up to its end."""
    width = opinion.window_s(result)
    windows = {call: opinion.over_time(result, call, width) for call in result.calls[:MAX_FLOWS]}
    score = opinion.drawn(windows.values())
    scored = {
        call: dict(rows.select("time_s", score).iter_rows()) for call, rows in windows.items()
    }
    starts = sorted({start for windows in scored.values() for start in windows})
    # A step begins at the end of the previous one.
    ends = [min(start + width, result.duration_s) for start in starts]
    x = [*starts[:1], *ends]
    curves = {
        call: (x, [windows.get(start) for start in (*starts[:1], *starts)])
        for call, windows in scored.items()
    }
    title = f"{column(score).label} of each window of {time_text(width)}"
    return _of_flows("mos", title, "", curves, styles, -1, range=(0.9, 4.6))


def _of_links(
    result: RunData, name: str, title: str, unit: str, measure: str, scale: float = 1.0
) -> Chart | None:
    lines = []
    for link, colour in zip(bottlenecks(result), QUEUE_COLOURS, strict=False):
        rows = result.link_series(link)
        if measure in rows.columns and rows[measure].drop_nulls().len():
            lines.append(line_of(link, colour, (), rows["time_s"], rows[measure] * scale))
    return chart_of(name, title, unit, [("", lines)])


def _cwnd(result: RunData, styles: Styles) -> Chart | None:
    windows = result.gauges(gauge="cwnd").filter(side="from")
    names = windows["flow"].unique(maintain_order=True).to_list()[:MAX_FLOWS]
    rows = {flow: inside.held(windows.filter(flow=flow), result.duration_s) for flow in names}
    curves = {flow: (of["time_s"], of["value"] / 1e3) for flow, of in rows.items()}
    return _of_flows("cwnd", "Congestion window", "kB", curves, styles, 1)


REPORTED = (
    ("reported-rtt", "Round-trip times in the capture", "ms", ("rtcp_rtt", "capture_rtt"), 1e3),
    ("reported-loss", "Loss that receivers reported", "%", ("reported_loss",), 100.0),
    ("feedback-loss", "Loss in congestion control feedback", "%", ("feedback_loss",), 100.0),
    ("feedback-marks", "ECN marks in congestion control feedback", "%", ("feedback_marks",), 100.0),
)
"""What an imported trace has of acknowledgements and RTCP: name, title, unit, gauges, scale."""


def _reported(result: RunData, styles: Styles) -> Iterator[Chart | None]:
    if origin(result.manifest) is not Origin.IMPORTED:
        return
    for name, title, unit, gauges, scale in REPORTED:
        rows = result.gauges().filter(pl.col("gauge").is_in(gauges))
        curves: dict[str, tuple[Values, Values]] = {}
        for (flow, side), of in rows.group_by("flow", "side", maintain_order=True):
            sender = str(flow) if side == "from" else f"{flow}.reverse"
            if sender in styles and len(curves) < MAX_FLOWS:
                curves[sender] = (of["time_s"], of["value"] * scale)
        yield _of_flows(name, title, unit, curves, styles)


def _inside(result: RunData, styles: Styles) -> Iterator[Chart | None]:
    """Endpoint state: rates, windows and tokens of the first flows of each kind of controller."""
    for gauge, panels in inside.PANELS.items():
        for flow in inside.directions(result, gauge)[:MAX_SENDERS]:
            for panel in panels:
                yield _panel(result, flow, panel, styles[flow].colour)


def _panel(result: RunData, flow: str, panel: inside.Panel, own: str) -> Chart | None:
    lines, explained = [], []
    positive: list[float] = []
    for gauge, words, colour, style, width in panel.lines:
        rows, shown = inside.steps_of(result, flow, gauge), column(gauge)
        if rows.is_empty():
            continue
        values = rows["value"] * shown.scale
        if gauge != "receive_rate":
            positive += values.filter(values != 0).to_list()
        wide = width if len(panel.lines) > 1 else 1.6
        ink = "ink" if colour == INK else colour or own
        lines.append(
            line_of(words, ink, DASHES[style], rows["time_s"], values, width=wide, stepped=1)
        )
        explained.append({"line": words, "name": shown.name, "meaning": shown.meaning})
    return chart_of(
        f"{panel.name}-{flow}",
        f"{flow}: {panel.what}",
        column(panel.lines[0][0]).shown_unit,
        [("", lines)],
        explained=explained,
        logarithmic=panel.name == "rates" and inside.wide(positive),
    )


MIN_GAP_S = 1e-6
"""What is shorter is rounding, not a segment that was left out."""


def _sound(result: RunData, styles: Styles) -> Iterator[Chart | None]:
    """The scores of the segments of calls, a chart for each model."""
    if not result.is_scored:
        return
    segments = result.scores.drop_nulls("segment")
    for model in scores.MODELS.values():
        steps: dict[str, list[tuple[float, float, Number]]] = {}
        for row in segments.iter_rows(named=True):
            if row["flow"] in result.heard[:MAX_FLOWS]:
                end = row["start_s"] + row["duration_s"]
                step = (row["start_s"], end, scores.value(row, model.name))
                steps.setdefault(row["flow"], []).append(step)
        times = {time for of in steps.values() for step in of for time in step[:2]}
        # Between segments that were judged, a point without a value interrupts the line.
        for of in steps.values():
            ends = ((one[1], other[0]) for one, other in pairwise(of))
            times |= {(end + start) / 2 for end, start in ends if start - end > MIN_GAP_S}
        x = sorted(times)
        curves = {flow: (x, [_at(of, time) for time in x]) for flow, of in steps.items()}
        title = f"{model.label} of each judged segment of {scores.SEGMENT_S:g} s"
        yield _of_flows(model.name, title, "", curves, styles, -1, range=(0.9, 5.1))


def _at(steps: Sequence[tuple[float, float, Number]], time: float) -> Number:
    """The value of the step that ends at a time or after it: it is drawn back to the one before.

    At the start of a step with none before it, that of the step.
    """
    return next((v for start, end, v in steps if start <= time <= end), None)


def _delays(result: RunData, styles: Styles) -> Chart | None:
    """Share of frames delivered within a time since capture: the delay a buffer must bridge."""
    curves: dict[str, tuple[Values, Values]] = {}
    for name in result.calls[:MAX_FLOWS]:
        rows = result.frames(name)
        took = (rows["delivered_s"] - rows["captured_s"]).drop_nulls().sort() * 1e3
        if took.is_empty():
            continue
        # Of equal times, the last: a step ends at the number of all of them.
        ends = took.to_frame("took").with_row_index("count", offset=1).group_by("took").last()
        ends = ends.sort("took")
        # A step begins at zero.
        times = pl.concat([ends["took"].head(1) * (1 - 1e-9), ends["took"]])
        shares = pl.concat(
            [pl.Series("count", [0.0]), ends["count"].cast(pl.Float64) * 100 / rows.height]
        )
        curves[name] = (times, shares)
    title = "Share of voice frames delivered within a time of their capture"
    over = {"label": "time from capture to delivery", "unit": "ms"}
    return _of_flows("delay-ecdf", title, "%", curves, styles, 1, range=(0, 102), over=over)


def _film(result: RunData, styles: Styles) -> Chart | None:
    """The delay of each frame of video; below, those that were never complete."""
    frames = result.video_frames()
    names = frames["flow"].unique(maintain_order=True).to_list()[:MAX_FLOWS]
    panels = []
    for panel in multiples.by_kind(names, styles):
        lines = []
        for name in panel.flows:
            rows = frames.filter(flow=name)
            whole = rows.drop_nulls("complete_s")
            delay = (whole["complete_s"] - whole["captured_s"]) * 1e3
            colour = styles[name].colour
            lines.append(line_of(name, colour, (), whole["captured_s"], delay, look="points"))
            never = rows.filter(rows["complete_s"].is_null())["captured_s"]
            if never.len():
                words = f"{name}: never complete"
                lines.append(line_of(words, "ink", (), never, [0.0] * never.len(), look="points"))
        panels.append((panel.title, lines))
    title = "Delay of each frame of video, from capture to its last packet; at 0: never complete"
    return chart_of("frame-delay", title, "ms", panels)


def bars(result: RunData) -> list[dict[str, Any]]:
    """The MOS of the first calls with one, and the cause, colour, place and length of each loss."""
    styles, made = styles_of(result), []
    for row in result.flows.drop_nulls("mos").head(MAX_FLOWS).iter_rows(named=True):
        at, lost = row["mos"], []
        for cause, colour in CAUSE_COLOURS.items():
            taken = row[f"mos_lost_to_{cause}"] or 0.0
            # The three are computed separately, so their sum may exceed the whole.
            lost.append((cause, colour, at, taken))
            at += taken
        found = verdict(row["r_factor"])
        words = f"{row['mos']:.2f} {found.short if found else ''}".strip()
        colour = styles[row["name"]].colour
        made.append(
            {"name": row["name"], "colour": colour, "mos": row["mos"], "lost": lost, "words": words}
        )
    return made
