"""Heat maps of a study: one measure over two axes, a cell per setting, a map per flow."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from talkspurt import intervals
from talkspurt.figures.scale import headed, ticks
from talkspurt.figures.style import INK, WIDTH, left_out, note, panels, styled
from talkspurt.figures.values import short
from talkspurt.metrics.catalogue import Quantity, column
from talkspurt.results.axis import Axis
from talkspurt.results.study_data import StudyData

FAR = 50
"""Above this ratio of the maximum to the minimum, the colour scale is logarithmic."""
FIXED = {
    "mos": (1.0, 4.5),
    "estimated_mos": (1.0, 4.5),
    "concealed_ratio": (0.0, 0.2),
    "mouth_to_ear_mean_s": (0.0, 0.5),
    "delay_p95_s": (0.0, 0.5),
}
"""Colour scales that are the same in every study: the range of the scale or of the E-model."""
MAX_MAPS = 6
MAX_WIDTH = 16.0
"""Maximum width of a map in inches."""


def over_two_axes(study: StudyData, name: str) -> Figure | None:
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
    cells: dict[str, Cells] = {}
    for row in study.rows(study.summary([name])):
        if row["mean"] is not None:
            place = (row[down.column], row[along.column])
            cells.setdefault(row["flow"], {})[place] = cell(row, shown.scale)
    if not cells:
        return None
    with styled():
        return draw(shown.quantity, name, down, along, cells, shown.quantity.head)


@dataclass(frozen=True)
class Cell:
    """A mean, or the bound below which it lies."""

    value: float
    is_bound: bool = False

    @property
    def text(self) -> str:
        """What is written into it."""
        return f"{intervals.BELOW}{brief(self.value)}" if self.is_bound else brief(self.value)


Cells = dict[tuple[str, str], Cell]


def cell(row: Mapping[str, Any], scale: float) -> Cell:
    """The cell of a row of a summary."""
    return Cell(intervals.level(row) * scale, row.get("bound") is not None)


MAX_CELLS = 24
"""Cells along an axis; of more, the numbers are not written in."""


def draw(
    shown: Quantity,
    name: str,
    down: Axis,
    along: Axis,
    cells: Mapping[str, Cells],
    title: str,
    notes: Sequence[str] = (),
) -> Figure:
    """Maps of some cells, by label of ``down`` and ``along``, below each other."""
    flows = list(cells)[:MAX_MAPS]
    height = 0.7 + (0.6 + max(0.3 * len(down.labels), 0.5)) * len(flows)
    width = min(max(WIDTH, 1.8 + 0.42 * len(along.labels)), MAX_WIDTH)
    figure, grid = panels(title, len(flows), 1, width=width, height=min(height, 2 * MAX_WIDTH))
    norm = _norm(shown, name, [one.value for flow in flows for one in cells[flow].values()])
    # The title says what all the maps show.
    label = shown.head if len(flows) == 1 else shown.head.partition(" / ")[2]
    room = max(0.3 * len(down.labels), 0.5) * 72 / LETTER
    for ax, flow in zip(grid, flows, strict=True):
        _map(ax, (down, along), cells[flow], norm, textwrap.fill(label, max(int(room), 10)))
        ax.set_title(flow, fontsize=9, fontweight="normal")
        ax.set_ylabel(headed(down.name, ticks(down.labels)[1]))
    grid[-1].set_xlabel(headed(along.name, ticks(along.labels)[1]))
    bounds = any(one.is_bound for flow in flows for one in cells[flow].values())
    below = f"{intervals.BELOW} {intervals.WORDS[intervals.BELOW]}" if bounds else ""
    note(figure, *notes, below, left_out("flow", list(cells)[MAX_MAPS:]))
    return figure


def _norm(shown: Quantity, name: str, values: Sequence[float]) -> Normalize:
    low, high = min(values), max(values)
    if name in FIXED:
        low, high = (end * shown.scale for end in FIXED[name])
    elif low > 0 and high / low > FAR:
        return LogNorm(low, high)
    else:
        low = min(low, 0)
    return Normalize(low, high)


def _map(
    ax: Axes,
    axes: tuple[Axis, Axis],
    cells: Cells,
    norm: Normalize,
    label: str,
) -> None:
    down, along = axes
    shown = [[cells.get((row, column)) for column in along.labels] for row in down.labels]
    grid = [[math.nan if one is None else one.value for one in row] for row in shown]
    image = ax.imshow(grid, cmap="cividis", aspect="auto", norm=norm)
    # An arrow where values exceed the scale.
    extend = "max" if max(one.value for one in cells.values()) > (norm.vmax or 0.0) else "neither"
    bar = ax.figure.colorbar(image, ax=ax, label=label, aspect=12, pad=0.015, extend=extend)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_formatter(lambda value, _: brief(value))
    bar.ax.yaxis.set_minor_formatter(lambda value, _: "")
    ax.grid(visible=False)
    texts = [short(text, MAX_LETTERS) for text in ticks(along.labels)[0]]
    ax.set_xticks(range(len(texts)), texts)
    if sum(map(len, texts)) * LETTER > ax.get_window_extent().width:
        ax.tick_params(axis="x", rotation=35)
        for tick in ax.get_xticklabels():
            tick.set(ha="right", rotation_mode="anchor")
    ax.set_yticks(
        range(len(down.labels)), [short(text, MAX_LETTERS) for text in ticks(down.labels)[0]]
    )
    if len(along.labels) > MAX_CELLS:
        return
    for y, row in enumerate(shown):
        for x, one in enumerate(row):
            words, colour = "–", INK
            if one is not None:
                words, colour = one.text, "white" if norm(one.value) < 0.5 else "black"
            ax.text(x, y, words, ha="center", va="center", color=colour, fontsize=7.5)


LETTER = 5.0
"""Width of a letter of a label in points."""
MAX_LETTERS = 24


def brief(value: float) -> str:
    """Three digits, or all before the decimal point; never an exponent."""
    before = math.floor(math.log10(abs(value))) + 1 if value else 3
    digits = min(max(3 - before, 0), 3)
    text = f"{round(value, digits) + 0.0:,.{digits}f}"
    return text.replace(",", "\u202f").replace("-", "−")
