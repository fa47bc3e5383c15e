"""The studies' figures redrawn on their own axes, each with a companion figure.

Studies draw throughput, delay or jitter; the companion shows how the call would sound today:
mouth-to-ear delay and MOS. One module per study; this one holds shared code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from talkspurt.figures.chart import Bars, Line, bars
from talkspurt.figures.style import FAINT, INK, note, styled, transport_style
from talkspurt.intervals import Ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.reproduce import Reproduction
    from talkspurt.reproduce.lab import Run
    from talkspurt.reproduce.sample import Sample, Value

SOURCES = {"printed": INK, "talkspurt": "#0072B2", "ns-2": "#E69F00"}
"""Bar colours by origin of the value."""
HATCHES = {"printed": "", "talkspurt": "", "ns-2": "///"}


@dataclass(frozen=True)
class Cells:
    """The values of some rows, NaN where there is none, and their intervals.

    Attributes:
        values: one per row.
        ends: the interval of each, None where there is none; empty without any.
    """

    values: Sequence[float]
    ends: Sequence[Ends | None] = ()

    @classmethod
    def of(cls, values: Sequence[Value]) -> Cells:
        """Cells without intervals."""
        return cls([float(v) if isinstance(v, int | float) else math.nan for v in values])


@dataclass(frozen=True)
class Picture:
    """A figure with its text.

    Attributes:
        name: name of its file.
        alt: text alternative.
        figure: the drawing.
        seed: its replication, if it shows one of several.
    """

    name: str
    alt: str
    figure: Figure
    seed: int | None = None


def pictures(found: Reproduction) -> Iterator[Picture]:
    """Every figure of a study."""
    module = import_module(f"talkspurt.reproduce.figures.{found.file.name}")
    with styled(math=True):
        for picture in module.pictures(found):
            if picture.seed is not None:
                note(picture.figure, f"Of seed {picture.seed} alone, no mean.")
            yield picture


def live_pictures(
    study: str, live: Mapping[str, Run], simulated: Mapping[str, Run]
) -> Iterator[Picture]:
    """The figures of a study that was measured in real time."""
    module = import_module(f"talkspurt.reproduce.figures.{study}")
    yield from module.live_pictures(live, simulated)


def line_of(
    label: str,
    x: Sequence[float],
    samples: Sequence[Sample],
    colour: str,
    dashes: tuple[float, ...] = (),
    marker: str = "",
) -> Line:
    """A line of means with their intervals."""
    means = [float("nan") if s.value is None else float(s.value) for s in samples]
    band = [sample.span for sample in samples]
    return Line(label, x, means, colour, dashes, band=band, marker=marker)


def compared(title: str, ylabel: str, groups: Sequence[str], found: Mapping[str, Cells]) -> Figure:
    """Grouped bars: printed, ours and ns-2's; ours with intervals."""
    return bars(
        title,
        groups,
        [
            Bars(name, cells.values, SOURCES[name], HATCHES[name], cells.ends)
            for name, cells in found.items()
        ],
        ylabel,
    )


def companion(title: str, calls: Mapping[str, tuple[Run, str]]) -> Figure:
    """Mouth-to-ear delay and MOS of present-day calls, one bar each."""
    from matplotlib.figure import Figure as Sheet

    figure = Sheet(figsize=(7.2, 2.7))
    left, right = figure.subplots(1, 2)
    names = list(calls)
    for ax, column, scale, label in (
        (left, "mouth_to_ear_p50_s", 1e3, "mouth-to-ear delay / ms"),
        (right, "mos", 1.0, "MOS"),
    ):
        numbers = [scale * run.flow(flow, column) for run, flow in calls.values()]
        colours = [transport_style(transport_of(*call)).colour for call in calls.values()]
        drawn = ax.bar(range(len(names)), numbers, 0.7, color=colours)
        texts = [f"{number:.0f}" if scale > 1 else f"{number:.2f}" for number in numbers]
        ax.bar_label(
            drawn, [text if "nan" not in text else "" for text in texts], fontsize=8, padding=2
        )
        for place, number in enumerate(numbers):
            if math.isnan(number):
                at = (place, 0.03)
                ax.annotate("none", at, xycoords=("data", "axes fraction"), ha="center", fontsize=8)
        ax.set_xticks(range(len(names)), names, fontsize=8)
        if len(names) > 4:
            ax.tick_params(axis="x", rotation=20)
        ax.set_ylabel(label)
        ax.grid(visible=False, axis="x")
        ax.margins(y=0.15)
    right.set_ylim(1, 5)
    left.set_title(title)
    seeds = sorted({run.seed for run, _ in calls.values()})
    note(figure, f"One run each, seed {', '.join(map(str, seeds))}.", *_unrated(calls))
    return figure


def _unrated(calls: Mapping[str, tuple[Run, str]]) -> Iterator[str]:
    """Reasons for calls without a MOS."""
    for name, (run, flow) in calls.items():
        row = run.flows.filter(name=flow).row(0, named=True)
        if row["mos"] is None:
            words = name.replace("\n", " ")
            reason = (row["quality_note"] or "nothing of it was heard").split("; ")[0]
            yield f"{words} has no MOS: {reason.removeprefix('no score: ')}."


def transport_of(run: Run, flow: str) -> str:
    """The transport of a flow."""
    flows = run.flows
    return str(flows.filter(flows["name"] == flow)["transport"][0])


def tabled(found: Reproduction, ids: Sequence[str]) -> dict[str, Cells]:
    """Printed, ours and ns-2's values of some rows, as input of :func:`compared`."""
    rows = {row.spec.id: row for row in found.rows}
    ours = [rows[id].ours for id in ids]
    ends = [None if one.still or not one.ends else Ends(*one.ends, False, False) for one in ours]
    values = {
        "printed": Cells.of([rows[id].spec.paper for id in ids]),
        "talkspurt": Cells(Cells.of([one.value for one in ours]).values, ends),
    }
    if any(rows[id].ns2 is not None for id in ids):
        values["ns-2"] = Cells.of([rows[id].ns2 for id in ids])
    return values


def quiet(ax: Axes, y: float, words: str) -> None:
    """A horizontal line with a label at its end, for printed or stated values."""
    ax.axhline(y, color=FAINT, linewidth=0.9, dashes=(4, 3))
    ax.annotate(
        words,
        (1.01, y),
        xycoords=("axes fraction", "data"),
        ha="left",
        va="center",
        fontsize=8,
        color=INK,
    )
