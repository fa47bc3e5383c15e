"""The sensitivity of a measure to the factors of a design, as bars with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from talkspurt.analysis.sensitivity import INDICES
from talkspurt.figures.sharing import MOST_PANELS
from talkspurt.figures.style import BLUE, INK, ORANGE, WIDTH, left_out, note, panels, styled
from talkspurt.metrics.catalogue import of_a_flow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.results.study_data import StudyData

BAR = 0.38
"""Width of a bar; the distance of factors is 1."""
COLOURS = (BLUE, ORANGE)


def bars(study: StudyData, measure: str) -> Figure | None:
    """A panel for each setting of the axes and flow; None if no index is defined."""
    rows = [row for row in study.sensitivity(measure).to_dicts() if row["factor"] is not None]
    keys = [*(axis.column for axis in study.axes if not axis.factor), "flow"]
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["value"] is not None:
            found.setdefault(tuple(row[key] for key in keys), []).append(row)
    if not found:
        return None
    factors = list(dict.fromkeys(row["factor"] for row in rows))
    kinds = list(dict.fromkeys(row["index"] for row in rows))
    shown = list(found.items())[:MOST_PANELS]
    columns = min(len(shown), 2)
    high = -(-len(shown) // columns) * (0.6 + 0.4 * len(factors)) + 0.9
    with styled():
        title = f"Sensitivity of {of_a_flow(measure).quantity.label}"
        figure, grid = panels(title, len(shown), columns, width=WIDTH, height=high, sharey=True)
        for ax, (key, its) in zip(grid, shown, strict=True):
            for place, kind in enumerate(kinds):
                of_kind = [row for row in its if row["index"] == kind]
                y = [factors.index(row["factor"]) + BAR * (place - 0.5) for row in of_kind]
                x = [row["value"] for row in of_kind]
                # Ends of a percentile interval may lie on one side of the value.
                ends = [
                    [max(0.0, row["value"] - _or(row["low"], row)) for row in of_kind],
                    [max(0.0, _or(row["high"], row) - row["value"]) for row in of_kind],
                ]
                label = INDICES[kind]
                ax.barh(y, x, BAR, color=COLOURS[place], label=label)
                ax.errorbar(x, y, xerr=ends, fmt="none", ecolor=INK, elinewidth=0.8, capsize=2)
            ax.axvline(0, color=INK, lw=0.6)
            ax.set_title(" · ".join(key), fontsize=9, fontweight="normal")
            ax.set_yticks(range(len(factors)), factors)
        grid[0].invert_yaxis()
        figure.legend(*grid[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
        rest = [" · ".join(key) for key in list(found)[MOST_PANELS:]]
        level = f"Whiskers: bootstrap intervals of {study.confidence * 100:g} %."
        note(figure, level, left_out("panel", rest))
    return figure


def _or(end: float | None, row: dict[str, Any]) -> float:
    """An end of an interval, or the value of an index without one."""
    return float(row["value"] if end is None else end)
