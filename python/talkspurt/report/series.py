"""Tables as lines for the interactive charts: a common time axis, with few points for speed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from talkspurt.figures.style import BACKGROUND, FlowStyle, widths
from talkspurt.figures.time import QUEUE_COLOURS, bottlenecks, smooth_goodput, styles_of
from talkspurt.format import time_text
from talkspurt.metrics import opinion
from talkspurt.report import inside

if TYPE_CHECKING:
    import polars as pl

    from talkspurt.result import Result

MOST_POINTS = 2000
MOST_LINES = 12

Number = float | None


def charts(result: Result) -> list[dict[str, Any]]:
    """All charts for which the run has data."""
    styles = styles_of(result)
    names = list(styles)[:MOST_LINES]
    calls = result.calls[:MOST_LINES]
    made = [
        _flow_chart(
            result.series(),
            "delay",
            "One-way network delay",
            "ms",
            "delay_mean_s",
            1e3,
            names,
            styles,
        ),
        _goodput_chart(result, names, styles),
        _late_chart(result, calls, styles),
        _mos_chart(result, calls, styles),
        _queue_chart(result),
        _sojourn_chart(result),
        _cwnd_chart(result, styles),
        *inside.charts(result),
    ]
    return [chart for chart in made if chart is not None]


def chart_of(
    name: str, title: str, unit: str, x: list[float], lines: list[dict[str, Any]], note: str = ""
) -> dict[str, Any] | None:
    """A chart of lines over common times, thinned; None without lines."""
    if len(x) < 2 or not lines:
        return None
    step = math.ceil(len(x) / MOST_POINTS)
    if step > 1:
        x = x[step - 1 :: step]
        for line in lines:
            line["values"] = _thin(line["values"], step, max if line.pop("peak", False) else _mean)[
                : len(x)
            ]
        note = f"{note} Each point is the mean of {step} bins.".strip()
    for line in lines:
        line.pop("peak", None)
        line["values"] = [_short(value) for value in line["values"]]
    return {
        "name": name,
        "title": title,
        "unit": unit,
        "x": [_short(v) for v in x],
        "lines": lines,
        "note": note,
        "explained": [],
        "logarithmic": False,
        "range": None,
        "stepped": False,
    }


def _thin(
    values: Sequence[Number], step: int, fold: Callable[[list[float]], float]
) -> list[Number]:
    thinned: list[Number] = []
    for i in range(0, len(values), step):
        there = [value for value in values[i : i + step] if value is not None]
        thinned.append(fold(there) if there else None)
    return thinned


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _short(value: Number) -> Number:
    """Five digits exceed a screen's resolution."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")


def line_of(
    label: str,
    colour: str,
    dashes: Sequence[float],
    values: list[Number],
    *,
    peak: bool = False,
    width: float = 1.6,
    marker: str = "",
) -> dict[str, Any]:
    """A line of a chart."""
    return {
        "label": label,
        "colour": colour,
        "dashes": list(dashes),
        "values": values,
        "width": width,
        "marker": marker,
        "background": colour == BACKGROUND,
        "peak": peak,
    }


def flow_lines(
    values: Mapping[str, list[Number]], styles: Mapping[str, FlowStyle], *, peak: bool = False
) -> list[dict[str, Any]]:
    """Lines of flows in their styles, background first, each thinner than those below it."""
    shown = [name for name, numbers in values.items() if any(n is not None for n in numbers)]
    shown.sort(key=lambda name: not styles[name].in_background)
    return [
        line_of(
            name,
            styles[name].colour,
            styles[name].dashes,
            values[name],
            peak=peak,
            width=1.0 if styles[name].in_background else width,
            marker=styles[name].marker,
        )
        for name, width in zip(shown, widths(len(shown)), strict=True)
    ]


def _goodput_chart(
    result: Result, names: Sequence[str], styles: Mapping[str, FlowStyle]
) -> dict[str, Any] | None:
    frame, width = smooth_goodput(result)
    title = f"Goodput, means over {time_text(width)}"
    return _flow_chart(frame, "goodput", title, "kbit/s", "goodput_bps", 1e-3, names, styles)


def _flow_chart(
    frame: pl.DataFrame,
    name: str,
    title: str,
    unit: str,
    column: str,
    scale: float,
    names: Sequence[str],
    styles: Mapping[str, FlowStyle],
) -> dict[str, Any] | None:
    x = frame["time_s"].unique().sort().to_list()
    values = {flow: _on(x, frame.filter(flow=flow), column, scale) for flow in names}
    lines = flow_lines(values, styles)
    note = f"{MOST_LINES} of {len(styles)} flows." if len(styles) > MOST_LINES else ""
    return chart_of(name, title, unit, x, lines, note)


def _on(x: Sequence[float], rows: pl.DataFrame, column: str, scale: float = 1.0) -> list[Number]:
    """Values at the common times; null where the flow has none."""
    there = dict(rows.select("time_s", column).iter_rows())
    return [None if (value := there.get(t)) is None else value * scale for t in x]


def _late_chart(
    result: Result, calls: Sequence[str], styles: Mapping[str, FlowStyle]
) -> dict[str, Any] | None:
    """Cumulative count of unheard frames: where the line climbs, speech is missing."""
    import polars as pl

    frames = result.frames().filter(~pl.col("fate").is_in(opinion.HEARD))
    x = result.series()["time_s"].unique().sort().to_list()
    counts: dict[str, list[Number]] = {}
    for call in calls:
        times = frames.filter(flow=call)["captured_s"].sort()
        if not times.is_empty():
            counts[call] = times.search_sorted(pl.Series(x), side="right").to_list()
    lines = flow_lines(counts, styles, peak=True)
    return chart_of("not-heard", "Voice frames not heard so far", "frames", x, lines)


def _mos_chart(
    result: Result, calls: Sequence[str], styles: Mapping[str, FlowStyle]
) -> dict[str, Any] | None:
    """MOS of windows, each a step up to its end."""
    width = opinion.window_s(result)
    windows = {call: opinion.over_time(result, call, width) for call in calls}
    starts = sorted({start for rows in windows.values() for start in rows["time_s"]})
    scores = {call: _on(starts, rows, "mos") for call, rows in windows.items()}
    # A step begins at the end of the previous one.
    lines = flow_lines({call: [*v[:1], *v] for call, v in scores.items()}, styles)
    x = [*starts[:1], *(min(start + width, result.duration_s) for start in starts)]
    title = f"MOS of each window of {time_text(width)}"
    made = chart_of("mos", title, "", x, lines)
    return made and {**made, "stepped": True, "range": (0.9, 4.6)}


def _queue_chart(result: Result) -> dict[str, Any] | None:
    lines = []
    x: list[float] = []
    for link, colour in zip(bottlenecks(result), QUEUE_COLOURS, strict=False):
        rows = result.link_series(link)
        x = rows["time_s"].to_list()
        lines.append(line_of(link, colour, (), rows["queue_packets"].to_list(), peak=True))
    return chart_of("queue", "Packets waiting where queues are longest", "packets", x, lines)


def _sojourn_chart(result: Result) -> dict[str, Any] | None:
    lines = []
    x: list[float] = []
    for link, colour in zip(bottlenecks(result), QUEUE_COLOURS, strict=False):
        rows = result.link_series(link)
        if "sojourn_max_s" in rows.columns and rows["sojourn_max_s"].drop_nulls().len():
            x = rows["time_s"].to_list()
            values = [None if v is None else v * 1e3 for v in rows["sojourn_max_s"].to_list()]
            lines.append(line_of(link, colour, (), values, peak=True))
    return chart_of("sojourn", "Longest wait in a queue", "ms", x, lines)


def _cwnd_chart(result: Result, styles: Mapping[str, FlowStyle]) -> dict[str, Any] | None:
    import polars as pl

    gauges = result.gauges().filter(side="from")
    x = result.series()["time_s"].unique().sort()
    values: dict[str, list[Number]] = {}
    windows = gauges.filter(gauge="cwnd")
    for flow in windows["flow"].unique(maintain_order=True).to_list()[:MOST_LINES]:
        rows = windows.filter(flow=flow).select("time_s", "value").sort("time_s")
        joined = pl.DataFrame({"time_s": x}).join_asof(rows, on="time_s")
        values[flow] = [None if v is None else v / 1e3 for v in joined["value"].to_list()]
    return chart_of("cwnd", "Congestion window", "kB", x.to_list(), flow_lines(values, styles))
