"""Figures of a study: each measure over an axis, with intervals.

The axis across is the first one that does not change the transport, so that transports are told
apart as everywhere else, by colour and marker; when only the transport varies, it goes across.
Where all have one colour it tells nothing apart, and the longest axis goes across.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from talkspurt import measures
from talkspurt.figures.style import DASHES, LINE_LENGTH, sheet, styled, transport_style
from talkspurt.study import some_of_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.study import Axis, Study

SHOWN = (
    "mos",
    "mouth_to_ear_p50_s",
    "loss_ratio",
    "longest_gap_s",
    "delay_p95_s",
    "goodput_bps",
)
MOST = 12
"""Lines drawn at most."""
MOST_MAPS = 4
"""Flows that have a map of their own at most."""
MOST_LETTERS = 75
"""Letters that find room below a figure; labels beyond that slope."""

Row = dict[str, Any]


def every(study: Study) -> Iterator[tuple[str, Figure]]:
    """A figure for each measure that has a value, with the name of its file.

    Where two axes have three values or more, each measure is a map of squares too.
    """
    for name in SHOWN:
        drawn = over_axis(study, name)
        if drawn is not None:
            yield name, drawn
        drawn = over_two_axes(study, name)
        if drawn is not None:
            yield f"{name}-map", drawn


def across(study: Study) -> Axis | None:
    """The axis that goes across."""
    colours = {transport_style(name).colour for name in _transports(study).values()}
    if len(colours) == 1 and study.axes:
        return max(study.axes, key=lambda axis: len(axis.labels))
    for place, axis in enumerate(study.axes):
        kinds: dict[tuple[str, ...], set[str]] = {}
        for setting, transport in _transports(study).items():
            kinds.setdefault(setting[:place] + setting[place + 1 :], set()).add(transport)
        if all(len(transports) == 1 for transports in kinds.values()):
            return axis
    return study.axes[0] if study.axes else None


def over_axis(study: Study, name: str) -> Figure | None:
    """Means and intervals of one measure; a line for each flow and other setting."""
    shown = measures.measure(name)
    rows = [row for row in study.summary([name]).to_dicts() if row["mean"] is not None]
    axis = across(study)
    if not rows or axis is None:
        return None
    others = [a.name for a in study.axes if a is not axis]
    lines: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        lines.setdefault((row["flow"], *(row[other] for other in others)), []).append(row)
    unit = f" / {shown.shown_unit}" if shown.shown_unit else ""
    with styled():
        figure, (ax,) = sheet(f"{shown.label}{unit}", height=3.1)
        _lines(ax, study, axis, dict(list(lines.items())[:MOST]), shown.scale)
        ax.set_xticks(range(len(axis.labels)), axis.labels)
        if len(axis.labels) * max(map(len, axis.labels)) > MOST_LETTERS:
            ax.tick_params(axis="x", rotation=35)
            for label in ax.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
        ax.set_xlim(-0.4, len(axis.labels) - 0.6)
        ax.set_xlabel(axis.name)
        ax.set_ylabel(f"{shown.label}{unit}")
        if name == "mos":
            ax.set_ylim(1, 4.6)
        else:
            ax.set_ylim(bottom=0)
        figure.legend(loc="outside right upper", fontsize=8, handlelength=LINE_LENGTH)
    return figure


def over_two_axes(study: Study, name: str) -> Figure | None:
    """Means of one measure over the two longest axes, a square each; a map for each flow.

    Nothing where fewer than two axes have three values, or a third varies. A square without a value
    stays empty. The colours are cividis, which the colour-blind read as others do.
    """
    shown = measures.measure(name)
    long = sorted(study.axes, key=lambda axis: len(axis.labels))[-2:]
    varied = sum(len(axis.labels) > 1 for axis in study.axes)
    if varied != 2 or min(len(axis.labels) for axis in long) < 3:
        return None
    down, along = long
    rows = [row for row in study.summary([name]).to_dicts() if row["mean"] is not None]
    flows = list(dict.fromkeys(row["flow"] for row in rows))[:MOST_MAPS]
    if not flows:
        return None
    values = [row["mean"] * shown.scale for row in rows if row["flow"] in flows]
    limits = (min(values), max(values))
    unit = f" / {shown.shown_unit}" if shown.shown_unit else ""
    with styled():
        height = 0.9 + (0.5 + 0.32 * len(down.labels)) * len(flows)
        figure, all_axes = sheet(f"{shown.label}{unit}", rows=len(flows), height=height)
        for ax, flow in zip(all_axes, flows, strict=True):
            cells = {
                (row[down.name], row[along.name]): row["mean"] * shown.scale
                for row in rows
                if row["flow"] == flow
            }
            _map(ax, (down, along), cells, limits)
            ax.set_ylabel(down.name)
            if len(flows) > 1:
                ax.set_title(flow, loc="left", fontsize=9)
        all_axes[-1].set_xlabel(along.name)
    return figure


def _map(
    ax: Axes,
    axes: tuple[Axis, Axis],
    cells: Mapping[tuple[str, str], float],
    limits: tuple[float, float],
) -> None:
    down, along = axes
    grid = [[cells.get((row, column), math.nan) for column in along.labels] for row in down.labels]
    ax.imshow(grid, cmap="cividis", vmin=limits[0], vmax=limits[1], aspect="auto")
    ax.grid(visible=False)
    ax.set_xticks(range(len(along.labels)), along.labels)
    ax.set_yticks(range(len(down.labels)), down.labels)
    middle = sum(limits) / 2
    for y, row in enumerate(grid):
        for x, value in enumerate(row):
            if not math.isnan(value):
                colour = "white" if value < middle else "black"
                ax.text(x, y, f"{value:.3g}", ha="center", va="center", color=colour, fontsize=8)


def _lines(
    ax: Axes, study: Study, axis: Axis, lines: Mapping[tuple[str, ...], list[Row]], scale: float
) -> None:
    transports = _transports(study)
    used: dict[str, int] = {}
    for i, (key, line) in enumerate(lines.items()):
        kinds = {transports[_setting(study, row)] for row in line}
        style = transport_style(kinds.pop() if len(kinds) == 1 else "")
        dashes = DASHES[used.get(style.colour, 0) % len(DASHES)]
        used[style.colour] = used.get(style.colour, 0) + 1
        shift = (i - (len(lines) - 1) / 2) * 0.05
        half = [(row["mean"] - row["low"]) * scale if row["low"] is not None else 0 for row in line]
        x = [axis.labels.index(row[axis.name]) + shift for row in line]
        y = [row["mean"] * scale for row in line]
        _say_of_how_many(ax, line, x, y)
        ax.errorbar(
            x,
            y,
            yerr=half if any(half) else None,
            color=style.colour,
            marker=style.marker,
            markersize=5,
            capsize=3,
            linewidth=1.2,
            # Between two transports there is nothing: no line.
            linestyle="none" if kinds else (0, dashes) if dashes else "-",
            elinewidth=1.2,
            label=" · ".join(key),
        )


def _say_of_how_many(ax: Axes, line: list[Row], x: list[float], y: list[float]) -> None:
    """Beside each mean that is not of all replications."""
    for row, at in zip(line, zip(x, y, strict=True), strict=True):
        if words := some_of_all(row):
            ax.annotate(words, at, xytext=(5, 3), textcoords="offset points", fontsize=7)


def _setting(study: Study, row: Row) -> tuple[str, ...]:
    return (*(row[axis.name] for axis in study.axes), row["flow"])


def _transports(study: Study) -> dict[tuple[str, ...], str]:
    """Which transport each flow used under each setting."""
    return {
        (*run.settings.values(), flow): transport
        for run in study.runs
        for flow, transport in run.flows.select("name", "transport").iter_rows()
    }
