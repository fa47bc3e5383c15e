"""Figures of endpoint state: a rate-controlled sender, a window, a token bucket.

Each shows one direction of one flow, because its lines are quantities and not flows. A line is a
gauge, which holds its value until it changes.
"""

from __future__ import annotations

import json
import math
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from talkspurt import _core
from talkspurt.figures import decimating
from talkspurt.figures.style import FAINT, INK, label_ends, sheet
from talkspurt.figures.time import styles_of
from talkspurt.metrics.catalogue import column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.results.run_data import RunData

REVERSE = ".reverse"
"""Suffix of the answering side's direction, after its flow's name."""

Line = tuple[str, str, str, bool, float]
"""Gauge, its label, colour (empty for the flow's), whether it is dashed, and width."""


class Panel(NamedTuple):
    """Gauges with one axis.

    Attributes:
        lines: the gauges; the input of a rate is drawn on top of it, thinner.
        unit: the label of the axis of the figure.
    """

    name: str
    lines: tuple[Line, ...]
    unit: str
    share: float


AXES = {
    "rates": ("rate / kbit/s", 2.4),
    "rtt": ("RTT / ms", 1.0),
    "p": ("p / %", 1.0),
    "window": ("packets", 2.6),
    "ack-ratio": ("packets\nper Ack", 1.0),
    "tokens": ("tokens / kB", 1.4),
    "encoding": ("encoding", 1.0),
}
PANELS = {
    gauge: tuple(
        Panel(name, tuple(tuple(line[3:]) for line in lines), *AXES[name])
        for name, lines in groupby(of, itemgetter(1))
    )
    for gauge, of in groupby(json.loads(_core.gauge_lines()), itemgetter(0))
}
"""What is shown of a sender that has a gauge."""
FILLED = ("pipe", "tokens")
TITLES = {
    "rate": ("the allowed rate and what it is made of", 5.6),
    "cwnd_packets": ("congestion window, and what fills it", 4.2),
    "encoding": ("tokens saved, and the encoding they hold", 3.9),
}


def directions(result: RunData, gauge: str) -> list[str]:
    """Directions whose sender has this gauge, with the names of the ``flows`` table."""
    rows = result.gauges(gauge=gauge).select("flow", "side").unique(maintain_order=True)
    named = pl.when(pl.col("side") == "to").then(pl.col("flow") + REVERSE).otherwise("flow")
    there = set(rows.select(named)["flow"].to_list()) if rows.height else set()
    return [name for name in result.flows["name"].to_list() if name in there]


def steps_of(result: RunData, direction: str, gauge: str) -> pl.DataFrame:
    """``time_s`` and ``value`` of a gauge at the sender of a direction, extended to the end."""
    side = "to" if direction.endswith(REVERSE) else "from"
    rows = result.gauges(direction.removesuffix(REVERSE), gauge).filter(side=side)
    return held(rows, result.duration_s)


def held(rows: pl.DataFrame, end_s: float) -> pl.DataFrame:
    """``time_s`` and ``value`` of a gauge until the end; of many rows, those that can be seen."""
    rows = rows.select("time_s", "value").filter(pl.col("value").is_finite())
    if rows.is_empty():
        return rows
    rows = rows[decimating.kept(rows["time_s"], rows["value"])]
    end = pl.DataFrame({"time_s": [end_s], "value": [rows["value"][-1]]})
    return pl.concat([rows, end])


def drawing(gauge: str) -> Callable[[RunData, str | None, str | None], Figure | None]:
    """Draws the panels of a direction whose sender has a gauge."""

    def draw(result: RunData, flow: str | None, link: str | None) -> Figure | None:
        there = directions(result, gauge)
        name = flow or next(iter(there), "")
        if name not in there:
            return None
        title, height = TITLES[gauge]
        panels = PANELS[gauge]
        if gauge == "encoding" and steps_of(result, name, "tokens").is_empty():
            title, height, panels = "encoding", 2.4, panels[1:]
        figure, axes = sheet(
            f"{name}: {title}",
            height=height,
            rows=len(panels),
            sharex=True,
            height_ratios=[panel.share for panel in panels],
        )
        for ax, panel in zip(axes, panels, strict=True):
            _panel(result, name, ax, panel)
        axes[-1].set_xlim(0, result.duration_s)
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


def _panel(result: RunData, name: str, ax: Axes, panel: Panel) -> None:
    ends = []
    positive: list[float] = []
    own = styles_of(result)[name].colour
    for gauge, words, colour, dashed, width in panel.lines:
        rows = steps_of(result, name, gauge)
        if rows.is_empty():
            continue
        colour = INK if colour == "ink" else colour or own
        style = "--" if dashed else "-"
        x, y = rows["time_s"].to_numpy(), rows["value"].to_numpy() * column(gauge).scale
        if gauge in FILLED:
            ax.fill_between(x, 0, y, color=colour, alpha=0.35, linewidth=0, step="post")
        ax.step(x, y, where="post", color=colour, linestyle=style, linewidth=width)
        ends.append((x[-1], float(y[-1]), words, colour if colour != FAINT else INK))
        if gauge != "receive_rate":  # early reports are out of scale
            positive += y[y > 0].tolist()
    ax.set_xlim(0, result.duration_s)
    ax.set_ylabel(panel.unit)
    if panel.name == "encoding":
        rungs = ladder(result, name)
        last = max(len(rungs) - 1, int(y.max()), 1)
        ax.set_ylim(last + 0.4, -0.4)
        ax.set_yticks(range(last + 1), [*rungs, *map(str, range(len(rungs), last + 1))])
        return
    if panel.name == "rates" and wide(positive):
        _logarithmic(ax, min(positive), max(positive))
    else:
        ax.set_ylim(bottom=0)
    label_ends(ax, ends)


def _logarithmic(ax: Axes, least: float, greatest: float) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_yscale("log")
    low, high = math.log10(least), math.log10(greatest)
    margin = 0.06 * (high - low)
    ax.set_ylim(10 ** (low - margin), 10 ** (high + margin))
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high - low < 2.5 else (1,)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


SPREAD = 30.0
"""A rate axis is logarithmic if its max exceeds its min by more than this factor."""


def wide(values: Sequence[float]) -> bool:
    """Whether positive values need a logarithmic axis."""
    return bool(values) and max(values) > SPREAD * min(values)
