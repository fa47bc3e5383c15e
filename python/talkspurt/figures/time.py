"""Figures over time: what shades delays, and queues of links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from talkspurt.figures import charts, decimating, style
from talkspurt.figures.drawing import DROP

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.figures.charts import Chart
    from talkspurt.results.run_data import RunData


def up_to_longest(result: RunData, ax: Axes, panel: Chart) -> None:
    """Shade the delays of each bin from their mean up to the longest."""
    for line in panel["lines"]:
        rows = result.series(line["label"]).drop_nulls("delay_mean_s")
        x, mean, high = _few(rows, "time_s", "delay_mean_s", "delay_max_s")
        ax.fill_between(x, mean * 1e3, high * 1e3, color=line["colour"], alpha=0.13, linewidth=0)


def queue(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """Queue length of a link (default: the bottlenecks), with drops as ticks above."""
    links = {link: ONE_LINK} if link else charts.bottlenecks(result, "queue")
    return _of_links(result, "Packets waiting, and packets dropped", "packets", links, _one_queue)


ONE_LINK = "#7A8794"
"""The colour of a link that was asked for: of no kind of traffic."""


def _of_links(
    result: RunData,
    title: str,
    unit: str,
    links: dict[str, str],
    draw: Callable[[Axes, pl.DataFrame, str], None],
) -> Figure | None:
    if not links:
        return None
    height = 1.2 + 1.35 * len(links)
    figure, axes = style.sheet(title, height=height, rows=len(links), sharex=True)
    for ax, (name, colour) in zip(axes, links.items(), strict=True):
        draw(ax, result.link_series(name), colour)
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
    links = charts.bottlenecks(result, "sojourn")
    if link:
        rows = result.link_series(link)
        waited = "sojourn_max_s" in rows.columns and rows["sojourn_max_s"].drop_nulls().len()
        links = {link: ONE_LINK} if waited else {}
    title = "Wait in the queue: mean of each bin, shaded up to its longest"
    return _of_links(result, title, "ms", links, waits)


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


def _few(rows: pl.DataFrame, x: str, *lines: str) -> list[np.ndarray]:
    """Columns as numbers, without points that make no difference to the picture."""
    places = decimating.kept(*(rows[name] for name in (x, *lines)))
    return [rows[name].gather(places).cast(pl.Float64).to_numpy() for name in (x, *lines)]
