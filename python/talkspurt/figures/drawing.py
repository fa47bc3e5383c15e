"""Draws the charts of a run as figures: panels, lines, areas, points, legends and limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from talkspurt.figures import charts, style

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.figures.charts import Chart
    from talkspurt.results.run_data import RunData

Draw = Callable[["RunData", "str | None", "str | None"], "Figure | None"]

DROP = "#8b1a1a"
COLOURS = {"ink": style.INK, "field": "#8a939c"}
"""Colours that a page has of its own."""
STEPS: dict[int, Any] = {-1: "steps-pre", 0: "default", 1: "steps-post"}
THIN = 0.6
"""Width of lines in several panels, over that in one."""
COLUMNS = 2
MAX_ABOVE = 4.0
"""A capacity is shown up to so many times the greatest value before it."""


def of(
    name: str,
    quantity: str,
    *tables: str,
    calls: bool = False,
    more: str = "",
    also: Callable[[RunData, Axes, Chart], None] | None = None,
) -> Draw:
    """Draws a chart.

    Args:
        name: its name, as in ``crates/view/src/charts.rs``.
        quantity: what its values are, for the label of their axis.
        tables: those it is made of, the one with its flows first.
        calls: whether only calls are drawn if there are any.
        more: what its title also says.
        also: adds to the axes of a panel what only the figure shows.
    """

    def draw(result: RunData, flow: str | None, link: str | None) -> Figure | None:
        found, total = charts.of_tables(result, tables, flow, calls=calls)
        chart = next((one for one in found if one["name"] == name), None)
        if chart is None:
            return None
        chart["title"] += more
        figure, axes = _sheet(chart)
        unit, over = chart["unit"], chart["over"]
        for ax, panel in zip(axes, chart["panels"], strict=True):
            _fill(ax, chart, panel, result.duration_s, 1.0 if len(axes) == 1 else THIN)
            if also:
                also(result, ax, panel)
        # Not before all are filled: they may share an axis.
        for place, (ax, panel) in enumerate(zip(axes, chart["panels"], strict=True)):
            _frame(ax, chart, panel)
            if place >= len(axes) - COLUMNS:
                ax.set_xlabel(f"{over['label']} / {over['unit']}")
            if place % COLUMNS == 0:
                ax.set_ylabel(f"{quantity} / {unit}" if unit else quantity)
        if chart["stacked"]:
            keys, names = axes[0].get_legend_handles_labels()
            figure.legend(keys, names, loc="outside lower right", ncols=len(keys), fontsize=8)
        if total > charts.MAX_FLOWS:
            style.note(figure, f"{charts.MAX_FLOWS} of {total} flows are shown.")
        return figure

    return draw


def _sheet(chart: Chart) -> tuple[Figure, list[Axes]]:
    panels = chart["panels"]
    if len(panels) == 1 and not panels[0]["title"]:
        return style.sheet(chart["title"])
    columns = min(COLUMNS, len(panels))
    height = 1.2 + 1.8 * -(-len(panels) // columns)
    shared = chart["stacked"]
    figure, axes = style.panels(chart["title"], len(panels), columns, height=height, sharey=shared)
    for ax, panel in zip(axes, panels, strict=True):
        ax.set_title(panel["title"], fontsize=9, fontweight="normal")
    return figure, axes


def _fill(ax: Axes, chart: Chart, panel: Chart, duration_s: float, thin: float) -> None:
    if chart["over"]["unit"] == "s":
        ax.set_xlim(0, duration_s)
    if not chart["stacked"]:
        draw_lines(ax, panel, thin)
        return
    # The first line is on top.
    parts = panel["lines"][::-1]
    x, values = points(parts[0])[0], [points(part)[1] for part in parts]
    labels, colours = ([part[of] for part in parts] for of in ("label", "colour"))
    ax.stackplot(x, *values, labels=labels, colors=colours, lw=0, alpha=0.85)


def points(line: Chart) -> tuple[np.ndarray, np.ndarray]:
    """The places of a line and its values; where a step has none, NaN."""
    import numpy as np

    x, y = np.array(line["x"], dtype=float), np.array(line["values"], dtype=float)
    # A line joins its points: those between gaps would not be seen.
    known = ~np.isnan(y) | (line["stepped"] != 0)
    return x[known], y[known]


def draw_lines(ax: Axes, panel: Chart, thin: float = 1.0) -> None:
    """Lines, points, and ticks for points in ink, which are of what is missing."""
    for line in panel["lines"]:
        if line["look"] == "area":
            continue
        look = {"color": COLOURS.get(line["colour"], line["colour"]), "label": line["label"]}
        if line["look"] == "points":
            tick = {"marker": "|", "markersize": 7, "color": DROP}
            point = {"marker": ".", "markersize": 2.5}
            look |= {"linestyle": "none"} | (tick if line["colour"] == "ink" else point)
        else:
            look |= {"dashes": line["dashes"]} if line["dashes"] else {"linestyle": "-"}
            look |= {"drawstyle": STEPS[line["stepped"]], "lw": thin * line["width"]}
        ax.plot(*points(line), **look)


def _frame(ax: Axes, chart: Chart, panel: Chart) -> None:
    """Limits, the area behind the lines, and what they are."""
    looks = {line["look"] for line in panel["lines"]}
    if chart["range"]:
        ax.set_ylim(*chart["range"])
    elif chart["stacked"] or "points" in looks:
        ax.set_ylim(bottom=0)
    elif ax.has_data():
        ax.set_ylim(*style.bounds(*ax.dataLim.intervaly))
    for line in panel["lines"]:
        if line["look"] == "area":
            _behind(ax, *points(line))
    if chart["over"]["unit"] != "s":
        _distribution(ax, panel)
    elif not chart["stacked"]:
        label_lines(ax, panel)


def _behind(ax: Axes, x: np.ndarray, y: np.ndarray) -> None:
    low, high = ax.get_ylim()
    ax.fill_between(x, 0, y, color=COLOURS["field"], alpha=0.25, lw=0, step="pre")
    ax.set_ylim(min(low, 0), max(high, min(1.06 * float(y.max()), MAX_ABOVE * high)))


def _distribution(ax: Axes, panel: Chart) -> None:
    """Markers tell lines of one colour apart, at the same shares of each."""
    import numpy as np

    for drawn, line in zip(ax.get_lines(), panel["lines"], strict=True):
        at = np.searchsorted(points(line)[1], (10, 30, 50, 70, 90))
        drawn.set(marker=line["marker"], markersize=4.5, markevery=at[at < len(line["x"])].tolist())
        drawn.set_fillstyle("none" if line["dashes"] else "full")
    least = ax.dataLim.x0
    ax.set_xlim(left=max(0.0, least - 0.05 * (ax.dataLim.x1 - least)))
    ax.legend(loc="lower right", fontsize=8.5, handlelength=style.LINE_LENGTH)


def label_lines(ax: Axes, panel: Chart) -> None:
    """The names of lines at their ends."""
    ends = []
    for line in panel["lines"]:
        known = [value for value in line["values"] if value is not None]
        is_missing = line["look"] == "points" and line["colour"] == "ink"
        if line["look"] != "area" and known and not is_missing:
            colour = style.INK if line["colour"] in ("ink", style.FAINT) else line["colour"]
            ends.append((0.0, known[-1], line["label"], colour))
    style.label_ends(ax, ends)
