"""Interactive charts of a run, with as few points as can be seen: the page draws them itself.

A page that does so needs no plotting library, whose import alone takes longer than many runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from talkspurt import scores
from talkspurt._text.format import time_text, verdict
from talkspurt.figures import decimating, inside
from talkspurt.figures.style import BACKGROUND, CAUSE_COLOURS, INK, Style, widths
from talkspurt.figures.time import DROP, QUEUE_COLOURS, bottlenecks, smooth_goodput, styles_of
from talkspurt.metrics import opinion
from talkspurt.metrics.catalogue import column
from talkspurt.results.run_data import RunData

Values = Sequence["Number"] | pl.Series

COLUMNS = 500
"""Columns of pixels of a chart."""
MAX_LINES = 12
MAX_FLOWS = 4
"""Flows of each kind of controller with charts; `talkspurt report` draws those of the others."""
DASHES = {"-": (), "--": (6, 2.5)}

Number = float | None
Chart = dict[str, Any]
Styles = Mapping[str, Style]


def of_result(result: RunData) -> list[Chart]:
    """All charts for which the run has data."""
    styles = styles_of(result)
    goodput, width = smooth_goodput(result)
    title = f"Goodput, means over {time_text(width)}"
    made = [
        _series(result.series(), "delay", "One-way network delay", "delay_mean_s", styles),
        _series(goodput, "goodput", title, "goodput_bps", styles),
        _late(result, styles),
        _mos(result, styles),
        _of_links(
            result, "queue", "Packets waiting where queues are longest", "packets", "queue_packets"
        ),
        _of_links(result, "sojourn", "Longest wait in a queue", "ms", "sojourn_max_s", 1e3),
        _cwnd(result, styles),
        *_inside(result, styles),
        *_sound(result, styles),
        _delays(result, styles),
        _film(result, styles),
    ]
    return [chart for chart in made if chart is not None]


def chart_of(
    name: str, title: str, unit: str, x: Values, lines: list[dict[str, Any]], **more: Any
) -> Chart | None:
    """A chart of lines over common times, or over their own; None without lines.

    Of each line only the points that can be seen are in the page: ``at`` holds their places in the
    times of the chart, if it has not all of them.
    """
    common = pl.Series(x, dtype=pl.Float64)
    parts = []
    for line in lines:
        mine = line.pop("x")
        times = common if mine is None else pl.Series(mine, dtype=pl.Float64)
        values = pl.Series(line["values"], dtype=pl.Float64, strict=False)
        places = decimating.kept(times, values, columns=COLUMNS)
        parts.append((times.gather(places), values.gather(places)))
    if not parts or (every := pl.concat([times for times, _ in parts]).unique().sort()).len() < 2:
        return None
    for line, (times, values) in zip(lines, parts, strict=True):
        line["at"] = None if times.len() == every.len() else every.search_sorted(times).to_list()
        line["values"] = [_short(value) for value in values.to_list()]
    return {
        "name": name,
        "title": title,
        "unit": unit,
        "x": [_short(v) for v in every.to_list()],
        "lines": lines,
        "note": "",
        "explained": [],
        "logarithmic": False,
        "range": None,
        "stepped": 0,
        "over": None,
    } | more


def _short(value: Number) -> Number:
    """Five digits exceed a screen's resolution."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")


def line_of(
    label: str,
    colour: str,
    dashes: Sequence[float],
    values: Values,
    *,
    x: Values | None = None,
    width: float = 1.6,
    marker: str = "",
    points: bool = False,
) -> dict[str, Any]:
    """A line of a chart, at places of its own if ``x`` is given; or points."""
    return {
        "label": label,
        "colour": colour,
        "dashes": list(dashes),
        "x": x,
        "values": values,
        "width": width,
        "marker": marker,
        "background": colour == BACKGROUND,
        "points": points,
    }


def _lines(
    values: Mapping[str, Values], styles: Styles, times: Mapping[str, Values] | None = None
) -> list[dict[str, Any]]:
    """Lines of flows in their styles, background first, each thinner than those below it.

    ``times`` are those of the flows, if they have no common ones.
    """
    shown = [name for name, numbers in values.items() if any(n is not None for n in numbers)]
    shown.sort(key=lambda name: not styles[name].in_background)
    return [
        line_of(
            name,
            styles[name].colour,
            styles[name].dashes,
            values[name],
            x=times[name] if times else None,
            width=1.0 if styles[name].in_background else width,
            marker=styles[name].marker,
        )
        for name, width in zip(shown, widths(len(shown)), strict=True)
    ]


def _series(
    frame: pl.DataFrame, name: str, title: str, measure: str, styles: Styles
) -> Chart | None:
    """A column of a table of flows over time."""
    flows = {flow: frame.filter(flow=flow) for flow in [*styles][:MAX_LINES]}
    shown = column(measure)
    values = {flow: rows[measure] * shown.scale for flow, rows in flows.items()}
    lines = _lines(values, styles, {flow: rows["time_s"] for flow, rows in flows.items()})
    note = f"{MAX_LINES} of {len(styles)} flows." if len(styles) > MAX_LINES else ""
    return chart_of(name, title, shown.shown_unit, (), lines, note=note)


def _late(result: RunData, styles: Styles) -> Chart | None:
    """Cumulative count of unheard frames: where the line climbs, speech is missing."""
    frames = result.frames().filter(~pl.col("fate").is_in(opinion.HEARD))
    x = result.series()["time_s"].unique().sort()
    counts: dict[str, Values] = {}
    for call in result.calls[:MAX_LINES]:
        times = frames.filter(flow=call)["captured_s"].sort()
        if not times.is_empty():
            counts[call] = times.search_sorted(x, side="right")
    title = "Voice frames not heard so far"
    return chart_of("not-heard", title, "frames", x, _lines(counts, styles))


def _mos(result: RunData, styles: Styles) -> Chart | None:
    """MOS of windows, each a step up to its end."""
    width = opinion.window_s(result)
    scored = {
        call: dict(opinion.over_time(result, call, width).select("time_s", "mos").iter_rows())
        for call in result.calls[:MAX_LINES]
    }
    starts = sorted({start for windows in scored.values() for start in windows})
    # A step begins at the end of the previous one.
    ends = [min(start + width, result.duration_s) for start in starts]
    values = {
        call: [windows.get(start) for start in (*starts[:1], *starts)]
        for call, windows in scored.items()
    }
    title, x = f"MOS of each window of {time_text(width)}", [*starts[:1], *ends]
    return chart_of("mos", title, "", x, _lines(values, styles), stepped=-1, range=(0.9, 4.6))


def _of_links(
    result: RunData, name: str, title: str, unit: str, measure: str, scale: float = 1.0
) -> Chart | None:
    lines = []
    for link, colour in zip(bottlenecks(result), QUEUE_COLOURS, strict=False):
        rows = result.link_series(link)
        if measure in rows.columns and rows[measure].drop_nulls().len():
            values = rows[measure] * scale
            lines.append(line_of(link, colour, (), values, x=rows["time_s"]))
    return chart_of(name, title, unit, (), lines)


def _cwnd(result: RunData, styles: Styles) -> Chart | None:
    windows = result.gauges(gauge="cwnd").filter(side="from")
    names = windows["flow"].unique(maintain_order=True).to_list()[:MAX_LINES]
    rows = {flow: inside.held(windows.filter(flow=flow), result.duration_s) for flow in names}
    values = {flow: of["value"] / 1e3 for flow, of in rows.items()}
    lines = _lines(values, styles, {flow: of["time_s"] for flow, of in rows.items()})
    return chart_of("cwnd", "Congestion window", "kB", (), lines, stepped=1)


def _inside(result: RunData, styles: Styles) -> Iterator[Chart | None]:
    """Endpoint state: rates, windows and tokens of the first flows of each kind of controller."""
    for gauge, panels in inside.PANELS.items():
        for flow in inside.directions(result, gauge)[:MAX_FLOWS]:
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
        lines.append(line_of(words, ink, DASHES[style], values, x=rows["time_s"], width=wide))
        explained.append({"line": words, "name": shown.name, "meaning": shown.meaning})
    return chart_of(
        f"{panel.name}-{flow}",
        f"{flow}: {panel.what}",
        column(panel.lines[0][0]).shown_unit,
        (),
        lines,
        explained=explained,
        logarithmic=panel.name == "rates" and inside.wide(positive),
        stepped=1,
    )


def _sound(result: RunData, styles: Styles) -> Iterator[Chart | None]:
    """The scores of the segments of calls, a chart for each model."""
    if not result.is_scored:
        return
    segments = result.scores.drop_nulls("segment")
    for model in scores.MODELS.values():
        steps: dict[str, list[tuple[float, float, Number]]] = {}
        for row in segments.iter_rows(named=True):
            if row["flow"] in result.heard[:MAX_LINES]:
                end = row["start_s"] + row["duration_s"]
                step = (row["start_s"], end, scores.value(row, model.name))
                steps.setdefault(row["flow"], []).append(step)
        x = sorted({time for of in steps.values() for step in of for time in step[:2]})
        values = {flow: [_at(of, time) for time in x] for flow, of in steps.items()}
        title = f"{model.label} of each segment of {scores.SEGMENT_S:g} s"
        lines = _lines(values, styles)
        yield chart_of(model.name, title, "", x, lines, stepped=-1, range=(0.9, 5.1))


def _at(steps: Sequence[tuple[float, float, Number]], time: float) -> Number:
    """The value of the step that ends at a time or after it: it is drawn back to the one before."""
    first = steps[0][0]
    return next(
        (v for start, end, v in steps if start < time <= end or start == time == first), None
    )


def _delays(result: RunData, styles: Styles) -> Chart | None:
    """Share of frames delivered within a time since capture: the delay a buffer must bridge."""
    times: dict[str, Values] = {}
    shares: dict[str, Values] = {}
    for name in result.calls[:MAX_LINES]:
        rows = result.frames(name)
        took = (rows["delivered_s"] - rows["captured_s"]).drop_nulls().sort() * 1e3
        if took.is_empty():
            continue
        # Of equal times, the last: a step ends at the number of all of them.
        ends = took.to_frame("took").with_row_index("count", offset=1).group_by("took").last()
        ends = ends.sort("took")
        # A step begins at zero.
        times[name] = pl.concat([ends["took"].head(1) * (1 - 1e-9), ends["took"]])
        shares[name] = pl.concat(
            [pl.Series("count", [0.0]), ends["count"].cast(pl.Float64) * 100 / rows.height]
        )
    title = "Share of voice frames delivered within a time of their capture"
    over = {"label": "time from capture to delivery / ms", "unit": "ms"}
    lines = _lines(shares, styles, times)
    return chart_of("delay-ecdf", title, "%", (), lines, stepped=1, range=(0, 102), over=over)


def _film(result: RunData, styles: Styles) -> Chart | None:
    """The delay of each frame of video; below, those that were never complete."""
    frames = result.video_frames()
    lines = []
    for name in frames["flow"].unique(maintain_order=True).to_list()[:MAX_LINES]:
        rows = frames.filter(flow=name)
        whole = rows.drop_nulls("complete_s")
        delay = (whole["complete_s"] - whole["captured_s"]) * 1e3
        colour = styles[name].colour
        lines.append(line_of(name, colour, (), delay, x=whole["captured_s"], points=True))
        never = rows.filter(rows["complete_s"].is_null())["captured_s"]
        if never.len():
            words = f"{name}: never complete"
            zero = [0.0] * never.len()
            lines.append(line_of(words, DROP, (), zero, x=never, points=True))
    title = "Delay of each frame of video, from capture to its last packet; at 0: never complete"
    return chart_of("frame-delay", title, "ms", (), lines)


def bars(result: RunData) -> list[dict[str, Any]]:
    """The MOS of the first calls with one, and the cause, colour, place and length of each loss."""
    styles, made = styles_of(result), []
    for row in result.flows.drop_nulls("mos").head(MAX_LINES).iter_rows(named=True):
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
