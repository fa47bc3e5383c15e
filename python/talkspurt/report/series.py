"""Tables as lines for the interactive charts, with as few points as can be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from talkspurt._text.format import time_text
from talkspurt.figures.inside import held
from talkspurt.figures.style import FlowStyle, widths
from talkspurt.figures.time import QUEUE_COLOURS, bottlenecks, smooth_goodput, styles_of
from talkspurt.metrics import opinion
from talkspurt.report import inside
from talkspurt.report.chart import Number, chart_of, line_of

if TYPE_CHECKING:
    import polars as pl

    from talkspurt.report.chart import Values
    from talkspurt.results.run_data import RunData


MOST_LINES = 12


def charts(result: RunData) -> list[dict[str, Any]]:
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


def flow_lines(
    values: Mapping[str, Values],
    styles: Mapping[str, FlowStyle],
    times: Mapping[str, Values] | None = None,
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


def _goodput_chart(
    result: RunData, names: Sequence[str], styles: Mapping[str, FlowStyle]
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
    flows = {flow: frame.filter(flow=flow) for flow in names}
    values = {flow: rows[column] * scale for flow, rows in flows.items()}
    lines = flow_lines(values, styles, {flow: rows["time_s"] for flow, rows in flows.items()})
    note = f"{MOST_LINES} of {len(styles)} flows." if len(styles) > MOST_LINES else ""
    return chart_of(name, title, unit, (), lines, note)


def _on(x: Sequence[float], rows: pl.DataFrame, column: str, scale: float = 1.0) -> list[Number]:
    """Values at the common times; null where the flow has none."""
    there = dict(rows.select("time_s", column).iter_rows())
    return [None if (value := there.get(t)) is None else value * scale for t in x]


def _late_chart(
    result: RunData, calls: Sequence[str], styles: Mapping[str, FlowStyle]
) -> dict[str, Any] | None:
    """Cumulative count of unheard frames: where the line climbs, speech is missing."""
    import polars as pl

    frames = result.frames().filter(~pl.col("fate").is_in(opinion.HEARD))
    x = result.series()["time_s"].unique().sort()
    counts: dict[str, Values] = {}
    for call in calls:
        times = frames.filter(flow=call)["captured_s"].sort()
        if not times.is_empty():
            counts[call] = times.search_sorted(x, side="right")
    lines = flow_lines(counts, styles)
    return chart_of("not-heard", "Voice frames not heard so far", "frames", x, lines)


def _mos_chart(
    result: RunData, calls: Sequence[str], styles: Mapping[str, FlowStyle]
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
    return made and {**made, "stepped": -1, "range": (0.9, 4.6)}


def _queue_chart(result: RunData) -> dict[str, Any] | None:
    lines = []
    for link, colour in zip(bottlenecks(result), QUEUE_COLOURS, strict=False):
        rows = result.link_series(link)
        lines.append(line_of(link, colour, (), rows["queue_packets"], x=rows["time_s"]))
    return chart_of("queue", "Packets waiting where queues are longest", "packets", (), lines)


def _sojourn_chart(result: RunData) -> dict[str, Any] | None:
    lines = []
    for link, colour in zip(bottlenecks(result), QUEUE_COLOURS, strict=False):
        rows = result.link_series(link)
        if "sojourn_max_s" in rows.columns and rows["sojourn_max_s"].drop_nulls().len():
            lines.append(line_of(link, colour, (), rows["sojourn_max_s"] * 1e3, x=rows["time_s"]))
    return chart_of("sojourn", "Longest wait in a queue", "ms", (), lines)


def _cwnd_chart(result: RunData, styles: Mapping[str, FlowStyle]) -> dict[str, Any] | None:
    windows = result.gauges(gauge="cwnd").filter(side="from")
    names = windows["flow"].unique(maintain_order=True).to_list()[:MOST_LINES]
    rows = {flow: held(windows.filter(flow=flow), result.duration_s) for flow in names}
    values = {flow: of["value"] / 1e3 for flow, of in rows.items()}
    lines = flow_lines(values, styles, {flow: of["time_s"] for flow, of in rows.items()})
    made = chart_of("cwnd", "Congestion window", "kB", (), lines)
    return made and {**made, "stepped": 1}
