"""The panels of a study's figure: lines of means distributed over several, and one panel.

Lines that would look alike in one panel, or crowd it, are distributed over several. Numbers are
placed to scale and joined, with intervals as bands; names are placed side by side and not joined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from talkspurt import intervals
from talkspurt.figures import scale
from talkspurt.figures.chart import whisker
from talkspurt.figures.style import DASHES, FILLS, Style, kind_of, transport_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from talkspurt.results.axis import Axis
    from talkspurt.results.study_data import StudyData

MAX_LINES = 6
MAX_ALIKE = 3
"""Maximum lines of one colour in a panel: dashes and marker fills distinguish them."""
MAX_PANELS = 24

Row = dict[str, Any]
Key = tuple[str, ...]
Places = tuple[int, ...]
"""Indices of the parts of a key."""
BESIDE = 4.0
"""Distance between lines at the same number, in points."""
MAX_LETTERS = 75
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
OUTSIDE = "An open triangle: outside the range of the model; the value lies below."
MEMBERS = "A pale bar: from the least to the greatest of the flows of which a point is the mean."
NO_BAR = f"No bar: {intervals.WORDS[intervals.STILL]}"


@dataclass(frozen=True)
class Line:
    """The means of one flow under one setting of the other axes."""

    key: Key
    rows: list[Row]
    styles: list[Style]

    @property
    def mixed(self) -> bool:
        """Whether its transport, and so its style, varies along the line."""
        return len(set(self.styles)) > 1

    @property
    def style(self) -> Style:
        """Its style, if it has one."""
        return self.styles[0]

    def by(self, numbers: Mapping[str, float], axis: str) -> Line:
        """The same, sorted by number."""
        pairs = zip(self.rows, self.styles, strict=True)
        ordered = sorted(pairs, key=lambda pair: numbers[pair[0][axis]])
        return Line(self.key, [row for row, _ in ordered], [look for _, look in ordered])


@dataclass(frozen=True)
class Sharing:
    """Lines distributed over panels.

    Attributes:
        varied: the parts in which the lines' keys differ; 0 is the flow.
        apart: those parts that have separate panels.
        parts: the lines of each panel, by those parts.
    """

    varied: Places
    apart: Places
    parts: Mapping[Key, Sequence[Line]]

    def entry(self, line: Line) -> str:
        """The name of a line in the legend: what its panel's title does not state."""
        return " · ".join(line.key[i] for i in self.varied if i not in self.apart)

    def looks(self) -> dict[str, int]:
        """The index of dashes and fill for each entry, distinct within every panel."""
        met: dict[str, set[str]] = {}
        for lines in self.parts.values():
            named = [(self.entry(line), line.style.colour) for line in lines]
            for words, colour in named:
                others = {other for other, its in named if its == colour and other != words}
                met.setdefault(words, set()).update(others)
        looks: dict[str, int] = {}
        for words, others in met.items():
            taken = {looks[other] for other in others if other in looks}
            looks[words] = next(i for i in range(len(met)) if i not in taken)
        return looks

    @property
    def fits(self) -> bool:
        """Whether all panels are readable."""
        readable = all(map(_readable, self.parts.values()))
        return readable and max(self.looks().values()) < len(DASHES)


def share_out(lines: Sequence[Line]) -> Sharing:
    """Use as few panels as possible; split by flow if each has settings to compare."""
    length = len(lines[0].key)
    varied = tuple(i for i in range(length) if len({line.key[i] for line in lines}) > 1)
    ways: list[Sharing] = []
    for size in range(len(varied) + 1):
        for apart in combinations(varied, size):
            parts: dict[Key, list[Line]] = {}
            for line in lines:
                parts.setdefault(tuple(line.key[i] for i in apart), []).append(line)
            ways.append(Sharing(varied, apart, parts))

    def rank(way: Sharing) -> tuple[bool, int]:
        by_flow = len(varied) > 1 and 0 in way.apart and len(way.parts) <= MAX_PANELS
        return (not by_flow, len(way.parts))

    return min((way for way in ways if way.fits), key=rank)


def _readable(lines: Sequence[Line]) -> bool:
    if len(lines) == 1:
        return True
    colours = [line.style.colour for line in lines]
    return (
        not any(line.mixed for line in lines)
        and len(lines) <= MAX_LINES
        and max(map(colours.count, colours)) <= MAX_ALIKE
    )


def across(study: StudyData) -> Axis | None:
    """The x axis."""
    lists = [axis for axis in study.axes if not axis.factor]
    keeping = [axis for axis in lists if keeps_transports(study, axis)]
    looks = set(map(transport_style, _transports(study).values()))
    there = lists if len(looks) == 1 else keeping or lists[:1]

    def rank(axis: Axis) -> tuple[bool, int]:
        # Two numbers show no trend; an axis with more names shows more.
        course = len(axis.labels) > 2 and bool(scale.numbers(axis.labels))
        return (axis in keeping and course, len(axis.labels))

    varied = [axis for axis in there if len(axis.labels) > 1] or there
    return max(varied, key=rank) if varied else None


def keeps_transports(study: StudyData, axis: Axis) -> bool:
    """Whether every flow has one transport along an axis, all else equal."""
    place = study.axes.index(axis)
    kinds: dict[Key, set[str]] = {}
    for setting, transport in _transports(study).items():
        kinds.setdefault(setting[:place] + setting[place + 1 :], set()).add(transport)
    return all(len(transports) == 1 for transports in kinds.values())


def lines_over(study: StudyData, axis: Axis, name: str) -> list[Line]:
    """The means of a measure along an axis, flow by flow."""
    others = [other.column for other in study.axes if other is not axis]
    transports = _transports(study)
    kinds = {
        row.get("group") or row["name"]: kind_of(row.get("source"))
        for run in study.runs
        for row in run.flows.iter_rows(named=True)
    }
    found: dict[Key, Line] = {}
    for row in study.rows(study.summary([name])):
        if row["mean"] is None:
            continue
        key = (row["flow"], *(row[other] for other in others))
        line = found.setdefault(key, Line(key, [], []))
        line.rows.append(row)
        setting = (*(row[other.column] for other in study.axes), row["flow"])
        line.styles.append(transport_style(transports[setting], kinds[row["flow"]]))
    flows = list(dict.fromkeys(line.key[0] for line in found.values()))
    return sorted(found.values(), key=lambda line: flows.index(line.key[0]))


def _transports(study: StudyData) -> dict[Key, str]:
    """The transport of each flow under each setting; the flows of a group share one."""
    return {
        (*run.settings.values(), row.get("group") or row["name"]): row["transport"]
        for run in study.runs
        for row in run.flows.iter_rows(named=True)
    }


def said(
    rows: Iterable[Mapping[str, Any]], still: str = NO_BAR, members: str = MEMBERS
) -> Iterator[str]:
    """Explanations of the marks that occur in a figure; those that are empty are left out."""
    rows = list(rows)
    found = [end for row in rows if (end := intervals.ends(row))]
    if any(end.cut_low or end.cut_high for end in found):
        yield CUT_OFF
    if any(row.get("bound") is not None for row in rows):
        yield OUTSIDE
    if still and any(intervals.still(row) for row in rows if row.get("bound") is None):
        yield still
    if members and any(map(intervals.spread, rows)):
        yield members


def extent(rows: Iterable[Mapping[str, Any]]) -> list[float]:
    """The values that an axis must hold: means, or ends of intervals, and members."""
    seen: list[float] = []
    for row in rows:
        end = intervals.ends(row)
        seen += (end.low, end.high) if end else (intervals.level(row),)
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
        for place, row, own in zip(x, line.rows, line.styles, strict=True):
            point(ax, place, row, own, look, size, beside)


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
    means = [math.nan if row["mean"] is None else intervals.level(row) for row in rows]
    low = [size * (end.low if end else mean) for end, mean in zip(found, means, strict=True)]
    high = [size * (end.high if end else mean) for end, mean in zip(found, means, strict=True)]
    if bands:
        ax.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
    y = [mean * size for mean in means]
    ax.plot(x, y, color=colour, lw=1.2, ls=(0, dashes) if dashes else "-", transform=beside)


def point(ax: Axes, x: float, row: Row, style: Style, look: int, size: float, beside: Any) -> None:
    """A mean with its interval; a clipped end is an arrowhead, others are caps.

    A value outside the range of its model is an open triangle at its bound.
    """
    y = intervals.level(row) * size
    both: dict[str, Any] = {"color": style.colour, "transform": beside}
    if members := intervals.spread(row):
        low, high = members
        pale: dict[str, Any] = {"alpha": 0.25, "solid_capstyle": "butt"}
        ax.plot([x, x], [low * size, high * size], lw=5, **pale, **both)
    if end := intervals.ends(row):
        whisker(ax, x, end, size, both)
    marker, fill = style.marker, FILLS[look]
    if row.get("bound") is not None:
        marker, fill = "v", "none"
    both |= {"marker": marker, "fillstyle": fill, "markerfacecoloralt": "none"}
    ax.plot(x, y, ms=5.5, ls="none", zorder=3, **both)
    if words := intervals.some_of_all(row):
        ax.annotate(words, (x, y), xytext=(5, 3), textcoords="offset points", fontsize=7)


def slanted(labels: Sequence[str], columns: float) -> bool:
    """Whether names side by side, with a space between them, do not fit below a panel."""
    return len(labels) * (max(map(len, labels)) + 1) > MAX_LETTERS / columns


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
