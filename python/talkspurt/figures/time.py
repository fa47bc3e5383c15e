"""Figures over time: delay, goodput, the queue at the bottleneck, congestion windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from talkspurt._text.format import time_text
from talkspurt.figures import decimating, multiples, style
from talkspurt.figures.multiples import MAX_FLOWS, Panel
from talkspurt.metrics import mouth_to_ear

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.results.run_data import RunData

DROP = "#8b1a1a"
CAPACITY = "#8a939c"
PARTS = dict(zip(mouth_to_ear.PARTS, ("#7D6CBB", "#C0609A", "#6b7280", "#B08A2E"), strict=True))


def styles_of(result: RunData) -> dict[str, style.Style]:
    """A style for each flow."""
    flows = result.flows.select("name", "transport", "source").rows()
    return style.flow_styles({name: (transport, source) for name, transport, source in flows})


QUEUE_COLOURS = ("#7A8794", "#B0609A", "#9A7B3A", "#5F6470")
"""Colours of links, if several are drawn: none of a kind of traffic."""


def bottlenecks(result: RunData) -> list[str]:
    """The links with the longest mean queues: within a tenth of the longest, at most four."""
    links = result.links.filter(result.links["sent_packets"] > 0).drop_nulls("queue_mean_packets")
    order = links.sort(["queue_mean_packets", "utilisation"], descending=True, nulls_last=True)
    rows = order.select("name", "queue_mean_packets").head(len(QUEUE_COLOURS)).rows()
    least = 0.1 * rows[0][1] if rows else 0.0
    return [name for i, (name, mean) in enumerate(rows) if i == 0 or mean > max(least, 0.1)]


def delay(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """One-way delay over time: mean of each bin, shaded up to its maximum."""
    frame = result.series(flow).drop_nulls("delay_mean_s")

    def curve(name: str) -> list[np.ndarray]:
        x, *delays = _few(frame.filter(flow=name), "time_s", "delay_mean_s", "delay_max_s")
        return [x, *(delay * 1e3 for delay in delays)]

    title = "One-way network delay: mean of each bin, shaded up to its longest"
    chosen = [flow] if flow else (result.calls or result.flows["name"].to_list())
    return _of_flows(result, title, "delay / ms", chosen, curve)


GOODPUT_POINTS = 120
"""Points of a goodput line: with finer bins, TCP's bursts would hide everything else."""


def smooth(series: pl.DataFrame, of: str, value: str) -> tuple[pl.DataFrame, float]:
    """A rate of a table over time averaged over several bins, and their total width in seconds."""
    ends = series["time_s"].unique().sort()
    step = max(1, round(ends.len() / GOODPUT_POINTS))
    place = pl.DataFrame({"time_s": ends}).with_row_index("bin").with_columns(pl.col("bin") // step)
    means = (
        series.select(of, "time_s", value)
        .join(place, on="time_s")
        .group_by(of, "bin", maintain_order=True)
        .agg(pl.col("time_s").last(), pl.col(value).mean())
    )
    # Bins begin at 0, so the end of the first group is its length.
    width = float(ends[step - 1]) if ends.len() else 0.0
    return means, width


def goodput(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """Goodput over time, with the capacity of the bottleneck behind it."""
    frame, width = smooth(result.series(), "flow", "goodput_bps")

    def curve(name: str) -> list[np.ndarray]:
        rows = frame.filter(flow=name)
        return [rows["time_s"].to_numpy(), rows["goodput_bps"].to_numpy() / 1e3]

    chosen = [flow] if flow else result.flows["name"].to_list()
    panels = multiples.by_bottleneck(result, chosen[:MAX_FLOWS], styles_of(result))
    title = f"Goodput, means over {time_text(width)}"
    links = {panel.link for panel in panels if panel.link}
    if links:
        title += f", before the capacity of {links.pop() if len(links) == 1 else 'bottlenecks'}"
    link_of = {name: panel.link for panel in panels for name in panel.flows}

    def behind(ax: Axes, name: str) -> None:
        if (there := link_of[name]) is None:
            return
        rows, _ = smooth(result.link_series(there), "link", "capacity_bps")
        x, y = rows["time_s"].to_numpy(), rows["capacity_bps"].to_numpy() / 1e3
        low, high = ax.get_ylim()
        ax.fill_between([0, *x], 0, [y[0], *y], color=CAPACITY, alpha=0.25, lw=0, step="pre")
        ax.set_ylim(min(low, 0), max(high, min(1.06 * float(y.max()), MAX_ABOVE * high)))

    return _of_flows(result, title, "goodput / kbit/s", chosen, curve, panels, behind)


MAX_ABOVE = 4.0
"""A capacity is shown up to so many times the greatest goodput."""


def mouth_to_ear_parts(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """Mouth-to-ear delay of each call over time, as the sum of its parts."""
    from matplotlib.patches import Patch

    calls = [flow] if flow else result.calls
    tables = {name: mouth_to_ear.over_time(result, name) for name in calls[:MAX_FLOWS]}
    tables = {name: rows for name, rows in tables.items() if rows.height > 1}
    if not tables:
        return None
    columns = min(2, len(tables))
    height = 0.9 + 1.7 * -(-len(tables) // columns)
    title = "Mouth-to-ear delay and its parts"
    figure, axes = style.panels(title, len(tables), columns, height=height, sharey=True)
    for place, (ax, (name, rows)) in enumerate(zip(axes, tables.items(), strict=True)):
        values = [rows[part].to_numpy() * 1e3 for part in PARTS]
        ax.stackplot(rows["time_s"].to_numpy(), *values, colors=PARTS.values(), lw=0, alpha=0.85)
        ax.set_title(name, fontsize=9, fontweight="normal")
        ax.set_xlim(0, result.duration_s)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("time of capture / s")
        if place % columns == 0:
            ax.set_ylabel("mouth-to-ear delay / ms")
    words = mouth_to_ear.PARTS
    keys = [Patch(color=colour, label=words[part]) for part, colour in PARTS.items()]
    figure.legend(handles=keys, loc="outside lower right", ncols=len(keys), fontsize=8)
    say_shown(axes[0], len(calls), "calls")
    return figure


def queue(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """Queue length of a link (default: the bottlenecks), with drops as ticks above."""
    names = [link] if link else bottlenecks(result)
    tables = {name: result.link_series(name) for name in names}
    return _of_links(result, "Packets waiting, and packets dropped", "packets", tables, _one_queue)


def _of_links(
    result: RunData,
    title: str,
    unit: str,
    tables: dict[str, pl.DataFrame],
    draw: Callable[[Axes, pl.DataFrame, str], None],
) -> Figure | None:
    if not tables:
        return None
    height = 1.2 + 1.35 * len(tables)
    figure, axes = style.sheet(title, height=height, rows=len(tables), sharex=True)
    for ax, (name, rows), colour in zip(axes, tables.items(), QUEUE_COLOURS, strict=False):
        draw(ax, rows, colour)
        ax.set_ylabel(f"{name}\n{unit}", fontsize=8)
    axes[-1].set_xlim(0, result.duration_s)
    axes[-1].set_xlabel("time / s")
    return figure


def _one_queue(ax: Axes, rows: pl.DataFrame, colour: str) -> None:
    x, y = _few(rows, "time_s", "queue_packets")
    ax.fill_between(x, 0, y, color=colour, alpha=0.55, linewidth=0, step="pre")
    ax.step(x, y, where="pre", color=style.INK, linewidth=0.6)
    if "average_packets" in rows.columns and rows["average_packets"].drop_nulls().len():
        ax.plot(*_few(rows, "time_s", "average_packets"), color=style.ORANGE, linewidth=1.1)
    ax.set_ylim(bottom=0)
    drops = rows.filter(rows["drops"] > 0)
    if not drops.is_empty():
        top = [1.0] * drops.height
        over = ax.get_xaxis_transform()
        ax.plot(drops["time_s"], top, "|", color=DROP, markersize=7, transform=over, clip_on=False)
        ax.annotate(
            f"{int(drops['drops'].sum())} dropped", (1, 1), xycoords="axes fraction",
            xytext=(6, 0), textcoords="offset points", va="center", color=DROP, fontsize=8.5,
        )  # fmt: skip


def sojourn(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """Queueing time at a link (default: the bottlenecks), mean and maximum.

    Also shows the discipline's reaction: drop probability, or drops per second.
    """
    names = [link] if link else bottlenecks(result)
    kept = {name: result.link_series(name) for name in names}
    kept = {n: r for n, r in kept.items() if "sojourn_max_s" in r.columns}
    kept = {n: r for n, r in kept.items() if r["sojourn_max_s"].drop_nulls().len()}
    title = "Wait in the queue: mean of each bin, shaded up to its longest"
    return _of_links(result, title, "ms", kept, waits)


CONTROLS = {"drop_probability": "p", "drops_per_second": "drops/s"}
"""The control variable of a discipline, and its unit."""


def waits(ax: Axes, rows: pl.DataFrame, colour: str) -> None:
    """Draw the queueing times of one link, with the control variable on the right axis."""
    x, mean, high = _few(rows, "time_s", "sojourn_mean_s", "sojourn_max_s")
    ax.fill_between(x, mean * 1e3, high * 1e3, color=colour, alpha=0.35, linewidth=0)
    ax.plot(x, mean * 1e3, color=style.INK, linewidth=0.9)
    ax.set_ylim(bottom=0)
    for column, unit in CONTROLS.items():
        if rows[column].drop_nulls().len():
            right = ax.twinx()
            right.plot(*_few(rows, "time_s", column), color=DROP, linewidth=0.6, alpha=0.7)
            # In the lower third, except for rare peaks.
            right.set_ylim(0, 3 * (rows[column].quantile(0.98) or 1.0))
            right.set_ylabel(unit, color=DROP, fontsize=8)
            right.tick_params(labelsize=7)


def cwnd(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """Congestion window of the opening side of each flow that has one."""
    frame = result.gauges(flow, "cwnd").filter(side="from")
    chosen = frame["flow"].unique(maintain_order=True).to_list()

    def curve(name: str) -> list[np.ndarray]:
        x, y = _few(frame.filter(flow=name), "time_s", "value")
        return [x, y / 1e3]

    if not chosen:
        return None
    title = "Congestion window"
    return _of_flows(result, title, "cwnd / kB", chosen, curve, drawstyle="steps-post")


def _few(rows: pl.DataFrame, x: str, *lines: str) -> list[np.ndarray]:
    """Columns as numbers, without points that make no difference to the picture."""
    places = decimating.kept(*(rows[name] for name in (x, *lines)))
    return [rows[name].gather(places).cast(pl.Float64).to_numpy() for name in (x, *lines)]


def _of_flows(
    result: RunData,
    title: str,
    unit: str,
    chosen: list[str],
    curve: Callable[[str], list[np.ndarray]],
    panels: Sequence[Panel] = (),
    behind: Callable[[Axes, str], None] = lambda *_: None,
    drawstyle: Any = "default",
) -> Figure:
    """Lines of flows, shaded up to a third array of their curves; background below the others.

    ``behind`` draws what is behind them, in the panel of a flow.
    """
    styles = styles_of(result)
    panels = panels or multiples.by_kind(chosen[:MAX_FLOWS], styles)
    thin = 1.0 if len(panels) == 1 else 0.6

    def draw(ax: Axes, names: list[str]) -> None:
        ends = []
        names.sort(key=lambda name: not styles[name].in_background)
        for name, width in zip(names, style.widths(len(names)), strict=True):
            x, y, *high = curve(name)
            if not len(x):
                continue
            colour = styles[name].colour
            if high:
                ax.fill_between(x, y, high[0], color=colour, alpha=0.13, linewidth=0)
            ax.plot(x, y, **styles[name].line(), lw=thin * width, drawstyle=drawstyle)
            ends.append((x[-1], float(y[-1]), name, colour))
        ax.set_xlim(0, result.duration_s)
        if ax.has_data():
            ax.set_ylim(*style.bounds(*ax.dataLim.intervaly))
            behind(ax, names[0])
        style.label_ends(ax, ends)

    figure, axes = in_panels(title, panels, draw)
    labelled(axes, "time / s", unit)
    say_shown(axes[0], len(chosen), "flows")
    return figure


COLUMNS = 2


def in_panels(
    title: str, panels: Sequence[Panel], draw: Callable[[Axes, list[str]], None]
) -> tuple[Figure, list[Axes]]:
    """A figure with the flows of each panel drawn."""
    if len(panels) == 1:
        figure, axes = style.sheet(title)
    else:
        height = 0.6 + 1.9 * -(-len(panels) // COLUMNS)
        figure, axes = style.panels(title, len(panels), COLUMNS, height=height)
    for ax, panel in zip(axes, panels, strict=True):
        draw(ax, list(panel.flows))
        if len(panels) > 1:
            ax.set_title(panel.title, fontsize=9, fontweight="normal")
    return figure, axes


def labelled(axes: Sequence[Axes], x: str, y: str) -> None:
    """The labels of the axes of panels, at the left and below each column."""
    for place, ax in enumerate(axes):
        if place >= len(axes) - COLUMNS:
            ax.set_xlabel(x)
        if place % COLUMNS == 0 or len(axes) == 1:
            ax.set_ylabel(y)


def say_shown(ax: Axes, total: int, what: str) -> None:
    """Above a figure of some flows, how many there are."""
    if total > MAX_FLOWS:
        ax.annotate(
            f"{MAX_FLOWS} of {total} {what} shown", (1, 1), xycoords="axes fraction",
            xytext=(0, 4), textcoords="offset points", ha="right", fontsize=8,
        )  # fmt: skip
