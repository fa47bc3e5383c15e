"""Lines, points and grouped bars from plain numbers, on our style.

The figures of measures and of re-run studies are made of these. Missing values are NaN: a line has
a gap there, and a bar a dash in its place.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from talkspurt.figures.style import FAINT, INK, LINE_LENGTH, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.intervals import Ends

MAX_VECTORS = 4000
"""Lines of more points are drawn as pixels, also in SVG and PDF."""


@dataclass(frozen=True)
class Line:
    """One line of a figure, with intervals as a band if its values are means.

    Attributes:
        label: its name in the legend.
        x: where its values are.
        y: its values, NaN where there is none.
        colour: its colour.
        dashes: its dashes; empty for a solid line.
        steps: whether a value holds until the next one.
        band: both ends of the interval of each value; empty without intervals.
        marker: the marker of its points.
        joined: whether its points are joined.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dashes: tuple[float, ...] = ()
    steps: bool = False
    band: Sequence[tuple[float, float]] = ()
    marker: str = ""
    joined: bool = True


def draw(ax: Axes, lines: Sequence[Line], xlabel: str, ylabel: str, *, legend: bool = True) -> None:
    """Lines over one pair of axes."""
    for line in lines:
        style: dict[str, Any] = {"color": line.colour, "label": line.label}
        if not line.joined:
            style |= {"linestyle": "none", "markersize": 3 if len(line.x) > 20 else 6}
        else:
            style |= {"dashes": line.dashes} if line.dashes else {"linestyle": "-"}
        if line.steps:
            style["drawstyle"] = "steps-post"
        marker = line.marker or ("" if line.joined else "o")
        drawn = ax.plot(line.x, line.y, marker=marker, **style)
        # The one file format without pixels is as large as its points are many.
        drawn[0].set_rasterized(len(line.x) > MAX_VECTORS)
        if line.band and not line.joined:
            low, high = zip(*line.band, strict=True)
            ax.vlines(line.x, low, high, color=line.colour, alpha=0.5, linewidth=0.8)
        elif line.band:
            low, high = zip(*line.band, strict=True)
            step: Literal["post"] | None = "post" if line.steps else None
            ax.fill_between(
                line.x, low, high, color=line.colour, alpha=0.18, linewidth=0, step=step
            )
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    if legend and len(lines) > 1:
        ax.legend(handlelength=LINE_LENGTH, fontsize=8, ncols=2 if len(lines) > 4 else 1)


def plot(
    title: str, lines: Sequence[Line], xlabel: str, ylabel: str, *, height: float = 3.1
) -> Figure:
    """A figure of lines, its y axis from zero."""
    figure, (ax,) = sheet(title, height=height)
    draw(ax, lines, xlabel, ylabel)
    ax.margins(x=0.01)
    ax.set_ylim(bottom=0)
    return figure


@dataclass(frozen=True)
class Bars:
    """One bar in each group of a figure.

    Attributes:
        label: their name in the legend.
        values: one per group, NaN where there is none.
        colour: their colour, or one per bar.
        hatch: their hatch.
        ends: the interval of each value, None where there is none; or empty.
        bounds: whether each value is a bound, below which the value lies; or empty.
    """

    label: str
    values: Sequence[float]
    colour: str | Sequence[str]
    hatch: str = ""
    ends: Sequence[Ends | None] = ()
    bounds: Sequence[bool] = ()


UP, DOWN = 10, 11
"""matplotlib's carets with their base at the point."""


def whisker(ax: Axes, x: float, end: Ends, size: float, look: Mapping[str, Any]) -> None:
    """An interval; a clipped end is an arrowhead, others are caps."""
    ax.plot([x, x], [end.low * size, end.high * size], lw=1.2, **look)
    sides = ((end.low, DOWN if end.cut_low else "_"), (end.high, UP if end.cut_high else "_"))
    for value, marker in sides:
        ax.plot(x, value * size, marker=marker, ms=6, clip_on=False, **look)


def draw_bars(ax: Axes, bars: Sequence[Bars], ylabel: str, *, log: bool = False) -> None:
    """Grouped bars over one pair of axes; group i is at x = i."""
    width = 0.8 / len(bars)
    for n, one in enumerate(bars):
        at = [place - 0.4 + width * (n + 0.5) for place in range(len(one.values))]
        look: dict[str, Any] = {"label": one.label, "color": one.colour, "hatch": one.hatch or None}
        drawn = ax.bar(at, one.values, width * 0.92, edgecolor="w", **look)
        for x, value in zip(at, one.values, strict=True):
            if math.isnan(value):
                place = ("data", "axes fraction")
                ax.annotate("–", (x, 0.01), xycoords=place, ha="center", fontsize=8, color=FAINT)
        # The upper edge also shows bars without height.
        edges = [one.colour] * len(at) if isinstance(one.colour, str) else one.colour
        for x, value, colour in zip(at, one.values, edges, strict=True):
            ax.plot(
                [x - 0.46 * width, x + 0.46 * width], [value, value], color=colour, lw=1.5,
                solid_capstyle="butt", clip_on=False,
            )  # fmt: skip
        for x, value, colour, patch in itertools.compress(
            zip(at, one.values, edges, drawn.patches, strict=True), one.bounds
        ):
            patch.set(facecolor="none", edgecolor=colour)
            ax.plot(x, value, "v", color=colour, fillstyle="none", ms=6, clip_on=False)
        for x, end in zip(at, one.ends, strict=False):
            if end is not None:
                whisker(ax, x, end, 1.0, {"color": INK})
    ax.set_ylabel(ylabel)
    if log:
        ax.set_yscale("log")
    ax.grid(visible=False, axis="x")


def bars(
    title: str, groups: Sequence[str], values: Sequence[Bars], ylabel: str, *, log: bool = False
) -> Figure:
    """A figure of grouped bars."""
    figure, (ax,) = sheet(title, height=3.0)
    draw_bars(ax, values, ylabel, log=log)
    ax.set_xticks(range(len(groups)), groups)
    if len(values) > 1:
        ax.legend(fontsize=8, ncols=len(values), loc="upper left", bbox_to_anchor=(0, 1.0))
    ax.margins(y=0.25)
    return figure
