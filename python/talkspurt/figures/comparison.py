"""Figures of a study: each measure over an axis, with intervals.

The x axis is an axis that does not change the transport, so that transports keep their colours and
markers: preferably one with three or more numbers, then the longest. If only the transport varies,
it is the x axis, and each point has the style of its transport.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars.selectors as cs
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from talkspurt.analysis import answer
from talkspurt.analysis.sensitivity import INDICES
from talkspurt.figures import panel, scale, style
from talkspurt.figures.maps import over_two_axes
from talkspurt.figures.values import short
from talkspurt.metrics import Column
from talkspurt.metrics.catalogue import VIEWS, column, of_a_flow
from talkspurt.results.axis import Axis
from talkspurt.results.study_data import StudyData

SHOWN = tuple(VIEWS["figures"])
NARROW = 2
"""With more columns, panel titles have one line per part."""
SMALL = 4.6
"""Width of a figure of one panel in inches: two fit side by side on a page."""
LETTERS = 62
"""Letters of a legend's line in such a figure."""
BAR = 0.38
"""Width of a bar; the distance of factors is 1."""
COLOURS = (style.BLUE, style.ORANGE)


def every(study: StudyData) -> Iterator[tuple[str, Figure]]:
    """A figure for each measure with a value, with its file name.

    If two axes have three values or more, each measure also has a heat map. A study with a design
    has the sensitivity of each measure to the factors instead.
    """
    draws = {"": over_axis, "-map": over_two_axes} if study.design is None else {"": sensitivity}
    scores = study.flows.select(cs.by_name("mos", answer.ESTIMATE, require_all=False)).unique()
    for name in answer.shown(SHOWN, scores.iter_rows(named=True), ()):
        for ending, draw in draws.items():
            drawn = draw(study, name)
            if drawn is not None:
                yield f"{name}{ending}", drawn


def over_axis(study: StudyData, name: str) -> Figure | None:
    """Means and intervals of one measure over an axis, in as many panels as needed."""
    axis = panel.across(study)
    lines = panel.lines_over(study, axis, name) if axis else []
    if axis is None or not lines:
        return None
    with style.styled():
        return _drawn(study, axis, lines, column(name))


def _drawn(study: StudyData, axis: Axis, lines: Sequence[panel.Line], shown: Column) -> Figure:
    keys = ["flow", *(other.name for other in study.axes if other is not axis)]
    shared = panel.share_out(lines)
    parts = list(shared.parts.items())
    drawn, rest = parts[: panel.MAX_PANELS], parts[panel.MAX_PANELS :]
    entries: dict[str, list[panel.Line]] = {}
    for line in lines:
        entries.setdefault(shared.entry(line), []).append(line)
    looks = shared.looks()
    numbers = scale.numbers(axis.labels) if panel.keeps_transports(study, axis) else None
    by_flow = 0 in shared.apart
    flows = len({line.key[0] for line in lines}) if by_flow else 1
    columns = _columns(len(drawn), len(parts) // flows, axis, numbers)
    alone = len(drawn) == 1
    width = SMALL if alone else style.WIDTH
    of = "" if len({line.key[0] for line in lines}) > 1 else f" · {lines[0].key[0]}"
    figure, grid = style.panels(
        scale.headed(shown.label, shown.shown_unit) + of,
        len(drawn),
        columns,
        width=width,
        height=2.9 if alone else 0.9 + 1.75 * -(-len(drawn) // columns),
        sharex=True,
        sharey=len(drawn) > 1 and not by_flow,
    )
    before = ""
    for place, (ax, (part, inside)) in enumerate(zip(grid, drawn, strict=True)):
        its = [looks[shared.entry(line)] for line in inside]
        panel.draw(ax, axis, numbers, inside, its, shown.scale)
        panel.frame(
            ax, axis, numbers, columns * style.WIDTH / width, bottom=place >= len(drawn) - columns
        )
        if shared.apart:
            words = _words(keys, shared, part, "\n" if columns > NARROW else " · ")
            most = int(panel.TITLE_LETTERS * width / columns)
            lines_of = "\n".join(short(line, most) for line in words.split("\n"))
            ax.set_title(lines_of, fontsize=9, fontweight="normal")
        flow = inside[0].key[0] if by_flow else ""
        first = place % columns == 0
        ax.set_ylabel(shown.shown_unit if first else "")
        ax.tick_params(axis="y", labelleft=first or flow != before)
        before = flow
    inside_all = [inside for _, inside in drawn]
    _heights(grid, inside_all, shown, shared=not by_flow)
    seen = [row for inside in inside_all for line in inside for row in line.rows]
    not_drawn = style.left_out("panel", [_words(keys, shared, part) for part, _ in rest])
    style.note(figure, *panel.said(seen), not_drawn)
    if len(entries) > 1:
        _legend(grid[0] if alone else figure, entries, looks, joined=numbers is not None)
    return figure


def _columns(count: int, of_a_flow: int, axis: Axis, numbers: Sequence[float] | None) -> int:
    if count == 1:
        return 1
    if numbers is None and sum(map(len, axis.labels)) > panel.MAX_LETTERS / 3:
        slanted = len(axis.labels) * panel.SLOPING
        return 2 if count > 2 and slanted < panel.PANEL_WIDTH / 2 else 1
    if count <= 4:
        return 2 if count == 4 else count
    return 4 if of_a_flow % 4 == 0 else 3


def _words(
    keys: Sequence[str], shared: panel.Sharing, part: panel.Key, between: str = " · "
) -> str:
    named = ((keys[i], value) for i, value in zip(shared.apart, part, strict=True))
    return between.join(value if key == "flow" else f"{key} {value}" for key, value in named)


def _heights(
    grid: Sequence[Axes], parts: Sequence[Sequence[panel.Line]], shown: Column, *, shared: bool
) -> None:
    """MOS has a fixed scale; others are fitted to the intervals, and panels of a flow share one."""
    if shown.name in ("mos", "estimated_mos"):
        for ax in grid:
            ax.set_ylim(1, 4.6)
        return
    ends: dict[str, list[float]] = {}
    for lines in parts:
        seen = ends.setdefault("" if shared else lines[0].key[0], [])
        seen += panel.extent(row for line in lines for row in line.rows)
    for ax, lines in zip(grid, parts, strict=True):
        seen = ends["" if shared else lines[0].key[0]]
        ax.set_ylim(*style.bounds(min(seen) * shown.scale, max(seen) * shown.scale))


def _legend(
    where: Figure | Axes,
    entries: Mapping[str, Sequence[panel.Line]],
    looks: Mapping[str, int],
    *,
    joined: bool,
) -> None:
    """A line or a marker for each; in ink if its colour differs between panels.

    Above a single panel, below several.
    """
    handles = []
    for words, lines in entries.items():
        styles = {line.style for line in lines}
        own = styles.pop() if len(styles) == 1 else style.Style(style.INK, "o")
        look = looks[words]
        dashes = style.DASHES[look]
        drawn: dict[str, Any] = {"color": own.colour, "marker": own.marker, "lw": 1.2}
        drawn |= {"fillstyle": style.FILLS[look], "markerfacecoloralt": "none"}
        drawn["ls"] = "none" if not joined else (0, dashes) if dashes else "-"
        handles.append(Line2D([], [], label=words, **drawn))
    letters = max(map(len, entries)) + (10 if joined else 4)
    most = LETTERS if isinstance(where, Axes) else style.LETTERS
    look_of: dict[str, Any] = {
        "handles": handles,
        "fontsize": 8,
        "ncols": max(1, min(len(entries), most // letters)),
        "handlelength": style.LINE_LENGTH - 2 if joined else 1,
        "columnspacing": 1.2,
        "borderaxespad": 0,
    }
    if isinstance(where, Figure):
        # Between the panels and the note, which the layout places at the bottom.
        inch = 72 * where.get_figheight()
        note = where.get_supxlabel()
        low = (9.5 * (note.count("\n") + 1) + 5) / inch if note else 0.0
        band = (12.0 * -(-len(entries) // look_of["ncols"]) + 4) / inch
        engine: Any = where.get_layout_engine()
        engine.set(rect=(0, band, 1, 1 - band))
        legend = where.legend(loc="lower left", bbox_to_anchor=(0, low), **look_of)
        legend.set_in_layout(False)
        return
    where.legend(loc="lower left", bbox_to_anchor=(0, 1), **look_of)


def sensitivity(study: StudyData, measure: str) -> Figure | None:
    """The sensitivity of a measure to the factors of a design, as bars with intervals.

    A panel for each setting of the axes and flow; None if no index is defined.
    """
    rows = [row for row in study.sensitivity(measure).to_dicts() if row["factor"] is not None]
    keys = [*(axis.column for axis in study.axes if not axis.factor), "flow"]
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["value"] is not None:
            # Of an index without an interval, both ends are its value.
            row |= {end: row["value"] for end in ("low", "high") if row[end] is None}
            found.setdefault(tuple(row[key] for key in keys), []).append(row)
    if not found:
        return None
    factors = list(dict.fromkeys(row["factor"] for row in rows))
    kinds = list(dict.fromkeys(row["index"] for row in rows))
    shown = list(found.items())[: panel.MAX_PANELS]
    columns = min(len(shown), 2)
    high = -(-len(shown) // columns) * (0.6 + 0.4 * len(factors)) + 0.9
    with style.styled():
        title = f"Sensitivity of {of_a_flow(measure).quantity.label}"
        figure, grid = style.panels(
            title, len(shown), columns, width=style.WIDTH, height=high, sharey=True
        )
        for ax, (key, its) in zip(grid, shown, strict=True):
            for place, kind in enumerate(kinds):
                of_kind = [row for row in its if row["index"] == kind]
                y = [factors.index(row["factor"]) + BAR * (place - 0.5) for row in of_kind]
                x = [row["value"] for row in of_kind]
                # Ends of a percentile interval may lie on one side of the value.
                ends = [
                    [max(0.0, row["value"] - row["low"]) for row in of_kind],
                    [max(0.0, row["high"] - row["value"]) for row in of_kind],
                ]
                label = INDICES[kind]
                ax.barh(y, x, BAR, color=COLOURS[place], label=label)
                ax.errorbar(
                    x, y, xerr=ends, fmt="none", ecolor=style.INK, elinewidth=0.8, capsize=2
                )
            ax.axvline(0, color=style.INK, lw=0.6)
            ax.set_title(" · ".join(key), fontsize=9, fontweight="normal")
            ax.set_yticks(range(len(factors)), factors)
        grid[0].invert_yaxis()
        figure.legend(*grid[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
        rest = [" · ".join(key) for key in list(found)[panel.MAX_PANELS :]]
        level = f"Whiskers: bootstrap intervals of {study.confidence * 100:g} %."
        style.note(figure, level, style.left_out("panel", rest))
    return figure
