"""Heat maps of a study: one measure over two axes, a cell per setting, a map per flow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from talkspurt.figures.scale import headed, ticks
from talkspurt.figures.style import left_out, note, panels, styled
from talkspurt.metrics.catalogue import column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.metrics import Column
    from talkspurt.study import Axis, Study

FAR = 50
"""Above this ratio of the maximum to the minimum, the colour scale is logarithmic."""
FIXED = {
    "mos": (1.0, 4.5),
    "concealed_ratio": (0.0, 0.2),
    "mouth_to_ear_p50_s": (0.0, 0.5),
    "delay_p95_s": (0.0, 0.5),
}
"""Colour scales that are the same in every study: the range of the scale or of the E-model."""
MOST_MAPS = 6
"""Maximum flows with their own map."""


def over_two_axes(study: Study, name: str) -> Figure | None:
    """Means of one measure over the two longest axes as a heat map; one map per flow.

    None if fewer than two axes have three values, or a third axis varies. A cell without a value
    stays empty. Maps are comparable: MOS, delay and loss have fixed colour scales, and other
    measures one scale for all flows. The colours are cividis, which colour-blind readers perceive
    alike.
    """
    shown = column(name)
    long = sorted(study.axes, key=lambda axis: len(axis.labels))[-2:]
    varied = sum(len(axis.labels) > 1 for axis in study.axes)
    if varied != 2 or min(len(axis.labels) for axis in long) < 3:
        return None
    down, along = long
    cells: dict[str, dict[tuple[str, str], float]] = {}
    for row in study.rows(study.summary([name])):
        if row["mean"] is not None:
            place = (row[down.column], row[along.column])
            cells.setdefault(row["flow"], {})[place] = row["mean"] * shown.scale
    flows = list(cells)[:MOST_MAPS]
    if not flows:
        return None
    unit = f" / {shown.shown_unit}" if shown.shown_unit else ""
    with styled():
        height = 0.5 + (0.6 + 0.3 * len(down.labels)) * len(flows)
        figure, grid = panels(f"{shown.label}{unit}", len(flows), 1, height=height)
        colours = _colours(shown, [value for flow in flows for value in cells[flow].values()])
        for ax, flow in zip(grid, flows, strict=True):
            _map(ax, (down, along), cells[flow], colours, f"{shown.label}{unit}")
            ax.set_title(flow, fontsize=9, fontweight="normal")
            ax.set_ylabel(headed(down.name, ticks(down.labels)[1]))
        grid[-1].set_xlabel(headed(along.name, ticks(along.labels)[1]))
        note(figure, left_out("flow", list(cells)[MOST_MAPS:]))
    return figure


@dataclass(frozen=True)
class _Colours:
    """A colour scale: its ends, and whether it is logarithmic."""

    low: float
    high: float
    logarithmic: bool = False

    @property
    def middle(self) -> float:
        if self.logarithmic:
            return math.sqrt(self.low * self.high)
        return (self.low + self.high) / 2


def _colours(shown: Column, values: Sequence[float]) -> _Colours:
    if shown.name in FIXED:
        low, high = FIXED[shown.name]
        return _Colours(low * shown.scale, high * shown.scale)
    low, high = min(values), max(values)
    return (
        _Colours(low, high, True) if low > 0 and high / low > FAR else _Colours(min(low, 0), high)
    )


def _map(
    ax: Axes,
    axes: tuple[Axis, Axis],
    cells: Mapping[tuple[str, str], float],
    colours: _Colours,
    label: str,
) -> None:
    down, along = axes
    grid = [[cells.get((row, column), math.nan) for column in along.labels] for row in down.labels]
    norm: dict[str, Any] = {"vmin": colours.low, "vmax": colours.high}
    if colours.logarithmic:
        from matplotlib.colors import LogNorm

        norm = {"norm": LogNorm(**norm)}
    image = ax.imshow(grid, cmap="cividis", aspect="auto", **norm)
    # An arrow where values exceed the scale.
    extend = "max" if max(cells.values()) > colours.high else "neither"
    bar = ax.figure.colorbar(image, ax=ax, label=label, aspect=12, pad=0.015, extend=extend)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_formatter(lambda value, _: brief(value))
    bar.ax.yaxis.set_minor_formatter(lambda value, _: "")
    ax.grid(visible=False)
    ax.set_xticks(range(len(along.labels)), ticks(along.labels)[0])
    ax.set_yticks(range(len(down.labels)), ticks(down.labels)[0])
    for y, row in enumerate(grid):
        for x, value in enumerate(row):
            if not math.isnan(value):
                colour = "white" if value < colours.middle else "black"
                ax.text(x, y, brief(value), ha="center", va="center", color=colour, fontsize=7.5)


def brief(value: float) -> str:
    """Three digits, or all before the decimal point; never an exponent."""
    before = math.floor(math.log10(abs(value))) + 1 if value else 3
    digits = min(max(3 - before, 0), 3)
    text = f"{round(value, digits) + 0.0:,.{digits}f}"
    return text.replace(",", "\u202f").replace("-", "−")
