"""One panel of a study's figure: means, their intervals, and the x axis.

Numbers are placed to scale and joined, with intervals as bands; names are placed side by side and
not joined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from talkspurt import intervals
from talkspurt.figures import scale
from talkspurt.figures.chart import whisker
from talkspurt.figures.style import DASHES, FILLS, Style, transport_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from talkspurt.figures.sharing import Line, Row
    from talkspurt.results.axis import Axis

BESIDE = 4.0
"""Distance between lines at the same number, in points."""
MOST_LETTERS = 75
"""Letters that fit below a figure; with more, labels are slanted."""
TITLE_LETTERS = 11
"""Letters of a panel's title per inch."""
PANEL_WIDTH = 420.0
"""Approximate width of a full-width panel, in points."""
LETTER, SLOPING = 5.5, 16.0
"""Width of a letter of a label, and of a whole slanted label, in points."""
CUT_OFF = (
    "An arrowhead: the interval exceeds the possible values; more replications would shorten it."
)
MEMBERS = "A pale bar: from the least to the greatest of the flows of which a point is the mean."
NO_BAR = "No bar: every replication gave this value, so that there is no interval."


def said(
    rows: Iterable[Mapping[str, Any]], still: str = NO_BAR, members: str = MEMBERS
) -> Iterator[str]:
    """Explanations of the marks that occur in a figure; those that are empty are left out."""
    rows = list(rows)
    found = [end for row in rows if (end := intervals.ends(row))]
    if any(end.cut_low or end.cut_high for end in found):
        yield CUT_OFF
    if still and any(map(intervals.still, rows)):
        yield still
    if members and any(map(intervals.spread, rows)):
        yield members


def extent(rows: Iterable[Mapping[str, Any]]) -> list[float]:
    """The values that an axis must hold: means, or ends of intervals, and members."""
    seen: list[float] = []
    for row in rows:
        end = intervals.ends(row)
        seen += (end.low, end.high) if end else (row["mean"],)
        seen += intervals.spread(row) or ()
    return seen


def draw(
    ax: Axes,
    axis: Axis,
    numbers: Sequence[float] | None,
    lines: Sequence[Line],
    looks: Sequence[int],
    size: float,
) -> None:
    """Lines if the axis has numbers, points if it has names."""
    from matplotlib.transforms import ScaledTranslation

    step = min(0.12, 0.7 / len(lines))
    for i, (line, look) in enumerate(zip(lines, looks, strict=True)):
        aside = i - (len(lines) - 1) / 2
        beside: Any = ax.transData
        if numbers is None:
            x = [axis.labels.index(row[axis.column]) + aside * step for row in line.rows]
        else:
            at = dict(zip(axis.labels, numbers, strict=True))
            line = line.by(at, axis.column)
            x = [at[row[axis.column]] for row in line.rows]
            if aside:
                # Side by side, so that both of two equal lines are visible.
                figure = ax.get_figure(root=True)
                assert figure is not None
                inches = figure.dpi_scale_trans
                beside = beside + ScaledTranslation(aside * BESIDE / 72, 0, inches)
            join(ax, x, line.rows, line.style.colour, DASHES[look], size, beside)
        for place, row, transport in zip(x, line.rows, line.transports, strict=True):
            point(ax, place, row, transport_style(transport), look, size, beside)


def join(
    ax: Axes,
    x: Sequence[float],
    rows: Sequence[Row],
    colour: str,
    dashes: Sequence[float],
    size: float,
    beside: Any,
    *,
    bands: bool = True,
) -> None:
    """A line through the means, with a gap where there is none, and the band of the intervals."""
    found = [intervals.ends(row) for row in rows]
    means = [math.nan if row["mean"] is None else row["mean"] for row in rows]
    low = [size * (end.low if end else mean) for end, mean in zip(found, means, strict=True)]
    high = [size * (end.high if end else mean) for end, mean in zip(found, means, strict=True)]
    if bands:
        ax.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
    y = [mean * size for mean in means]
    ax.plot(x, y, color=colour, lw=1.2, ls=(0, dashes) if dashes else "-", transform=beside)


def point(ax: Axes, x: float, row: Row, style: Style, look: int, size: float, beside: Any) -> None:
    """A mean with its interval; a clipped end is an arrowhead, others are caps."""
    y = row["mean"] * size
    both: dict[str, Any] = {"color": style.colour, "transform": beside}
    if members := intervals.spread(row):
        low, high = members
        pale: dict[str, Any] = {"alpha": 0.25, "solid_capstyle": "butt"}
        ax.plot([x, x], [low * size, high * size], lw=5, **pale, **both)
    if end := intervals.ends(row):
        whisker(ax, x, end, size, both)
    both |= {"marker": style.marker, "fillstyle": FILLS[look], "markerfacecoloralt": "none"}
    ax.plot(x, y, ms=5.5, ls="none", zorder=3, **both)
    if words := intervals.some_of_all(row):
        ax.annotate(words, (x, y), xytext=(5, 3), textcoords="offset points", fontsize=7)


def slanted(labels: Sequence[str], columns: float) -> bool:
    """Whether names side by side, with a space between them, do not fit below a panel."""
    return len(labels) * (max(map(len, labels)) + 1) > MOST_LETTERS / columns


def frame(
    ax: Axes, axis: Axis, numbers: Sequence[float] | None, columns: float, *, bottom: bool
) -> None:
    """Labels of the x axis; ``columns`` panels of this width fit into a full-width figure."""
    unit = ""
    if numbers is None:
        ax.set_xticks(range(len(axis.labels)), axis.labels)
        ax.set_xlim(-0.5, len(axis.labels) - 0.5)
        slope = slanted(axis.labels, columns)
    elif axis.sampled:
        # Sampled values are many and have no names: the ticks are those of a range.
        unit = scale.range_of(ax.xaxis, str(axis.factor), axis.labels)
        slope = False
    else:
        kind = scale.scale(numbers)
        ax.set_xscale(kind, **({"linthresh": scale.threshold(numbers)} if kind == "symlog" else {}))
        texts, unit = scale.ticks(axis.labels)
        width = PANEL_WIDTH / columns
        # A legend takes some of the width, and labels need a space between them.
        slope = scale.gap(numbers, kind) * width < (max(map(len, texts)) + 2) * LETTER
        apart = (SLOPING if slope else 0.0) / width
        ax.set_xticks(numbers, scale.some(texts, numbers, kind, apart))
        ax.minorticks_off()
    if slope:
        ax.tick_params(axis="x", rotation=35)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    ax.tick_params(axis="x", labelbottom=bottom, pad=7)  # arrowheads reach into the frame
    if bottom:
        ax.set_xlabel(scale.headed(axis.name, unit))


LARGE = 1e5
"""From here on, numbers at ticks have a prefix, as in 15M: with all digits they would touch."""


def few_ticks(ax: Axes, columns: float) -> None:
    """As many ticks along x as have room in one of so many columns."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(max(2, round(9 / columns)), steps=[1, 2, 2.5, 5, 10]))
    if max(map(abs, ax.get_xlim())) >= LARGE:
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))
