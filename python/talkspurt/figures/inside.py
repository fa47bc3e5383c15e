"""Figures of endpoint state: a rate-controlled sender, a window, a token bucket.

Each shows one direction of one flow, because its lines are quantities and not flows. A line is a
gauge, which holds its value until it changes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from talkspurt.figures import charts, drawing
from talkspurt.figures.style import FAINT, sheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.figures.charts import Chart
    from talkspurt.results.run_data import RunData

REVERSE = ".reverse"
"""Suffix of the answering side's direction, after its flow's name."""
AXES = {
    "rates": ("rate / kbit/s", 2.4),
    "rtt": ("RTT / ms", 1.0),
    "p": ("p / %", 1.0),
    "window": ("packets", 2.6),
    "ack-ratio": ("packets\nper Ack", 1.0),
    "tokens": ("tokens / kB", 1.4),
    "encoding": ("encoding", 1.0),
}
"""Label and share of the height of each chart of a sender."""
FILLED = ("pipe", "tokens")


def directions(result: RunData, gauge: str) -> list[str]:
    """Directions whose sender has this gauge, with the names of the ``flows`` table."""
    rows = result.gauges(gauge=gauge).select("flow", "side").unique(maintain_order=True)
    named = pl.when(pl.col("side") == "to").then(pl.col("flow") + REVERSE).otherwise("flow")
    there = set(rows.select(named)["flow"].to_list()) if rows.height else set()
    return [name for name in result.flows["name"].to_list() if name in there]


def drawn_of(gauge: str, title: str) -> drawing.Draw:
    """Draws the charts of a direction whose sender has a gauge, below each other."""

    def draw(result: RunData, flow: str | None, link: str | None) -> Figure | None:
        there = directions(result, gauge)
        name = flow or next(iter(there), "")
        if name not in there:
            return None
        made, _ = charts.of_tables(result, [gauge], name)
        found = {one["name"].removesuffix(f"-{name}"): one for one in made}
        shares = [AXES[kind][1] for kind in found]
        figure, axes = sheet(
            f"{name}: {title}" if len(found) > 1 else made[0]["title"],
            height=1.2 + sum(shares),
            rows=len(found),
            sharex=True,
            height_ratios=shares,
        )
        axes[-1].set_xlim(0, result.duration_s)
        for ax, (kind, chart) in zip(axes, found.items(), strict=True):
            (panel,) = chart["panels"]
            drawing.draw_lines(ax, panel)
            ax.set_ylabel(AXES[kind][0])
            if kind == "encoding":
                _name_rungs(ax, ladder(result, name))
            else:
                _frame(ax, chart, panel)
        axes[-1].set_xlabel("time / s")
        figure.align_ylabels(axes)
        return figure

    return draw


def ladder(result: RunData, direction: str) -> list[str]:
    """Names of the encodings that a direction's source can use, best first."""
    scenario = result.resolved
    flow = scenario["flows"].get(direction.removesuffix(REVERSE), {})
    source = flow.get("reverse" if direction.endswith(REVERSE) else "source", {})
    rungs = source.get("ladder", [])
    return [rung if isinstance(rung, str) else str(rung.get("codec", "")) for rung in rungs]


def _name_rungs(ax: Axes, rungs: Sequence[str]) -> None:
    last = max(len(rungs) - 1, int(ax.dataLim.y1), 1)
    ax.set_ylim(last + 0.4, -0.4)
    ax.set_yticks(range(last + 1), [*rungs, *map(str, range(len(rungs), last + 1))])


def _frame(ax: Axes, chart: Chart, panel: Chart) -> None:
    for line in panel["lines"]:
        if line["label"] in FILLED:
            look = {"color": line["colour"], "alpha": 0.35, "linewidth": 0}
            ax.fill_between(*drawing.points(line), step="post", **look)
    if chart["logarithmic"]:
        # Early reports, which are faint, are out of scale.
        shown = [line["values"] for line in panel["lines"] if line["colour"] != FAINT]
        positive = [value for values in shown for value in values if value > 0]
        _logarithmic(ax, min(positive), max(positive))
    else:
        ax.set_ylim(bottom=0)
    drawing.label_lines(ax, panel)


def _logarithmic(ax: Axes, least: float, greatest: float) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_yscale("log")
    low, high = math.log10(least), math.log10(greatest)
    margin = 0.06 * (high - low)
    ax.set_ylim(10 ** (low - margin), 10 ** (high + margin))
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high - low < 2.5 else (1,)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
