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

from talkspurt.figures.style import (
    FAINT,
    INK,
    LINE_LENGTH,
    note,
    sheet,
    styled,
    transport_style,
)

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


@dataclass(frozen=True)
class Line:
    """One line of a figure, with intervals as a band if its values are means."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dashes: tuple[float, ...] = ()
    steps: bool = False
    band: Sequence[tuple[float, float]] = ()

    @classmethod
    def of(
        cls,
        label: str,
        x: Sequence[float],
        samples: Sequence[Sample],
        colour: str,
        dashes: tuple[float, ...] = (),
    ) -> Line:
        """A line of means."""
        means = [float("nan") if s.value is None else float(s.value) for s in samples]
        return cls(label, x, means, colour, dashes, band=[sample.span for sample in samples])


def draw(ax: Axes, lines: Sequence[Line], xlabel: str, ylabel: str, *, legend: bool = True) -> None:
    """Lines over one pair of axes."""
    for line in lines:
        style = {"dashes": line.dashes} if line.dashes else {"linestyle": "-"}
        drawstyle = "steps-post" if line.steps else "default"
        ax.plot(line.x, line.y, color=line.colour, label=line.label, drawstyle=drawstyle, **style)
        if line.band:
            low, high = zip(*line.band, strict=True)
            ax.fill_between(line.x, low, high, color=line.colour, alpha=0.18, linewidth=0)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    if legend and len(lines) > 1:
        ax.legend(handlelength=LINE_LENGTH, fontsize=8, ncols=2 if len(lines) > 4 else 1)


def plot(
    title: str, lines: Sequence[Line], xlabel: str, ylabel: str, *, height: float = 3.1
) -> Figure:
    """A figure of lines."""
    figure, (ax,) = sheet(title, height=height)
    draw(ax, lines, xlabel, ylabel)
    ax.margins(x=0.01)
    ax.set_ylim(bottom=0)
    return figure


def bars(
    title: str,
    ylabel: str,
    groups: Sequence[str],
    values: Mapping[str, Sequence[Value]],
    *,
    log: bool = False,
) -> Figure:
    """Grouped bars: printed, ours and ns-2's."""
    figure, (ax,) = sheet(title, height=3.0)
    draw_bars(ax, ylabel, groups, values, log=log)
    return figure


def draw_bars(
    ax: Axes,
    ylabel: str,
    groups: Sequence[str],
    values: Mapping[str, Sequence[Value]],
    *,
    log: bool = False,
) -> None:
    """Bars over one pair of axes."""
    width = 0.8 / len(values)
    for n, (name, each) in enumerate(values.items()):
        at = [place - 0.4 + width * (n + 0.5) for place in range(len(groups))]
        numbers = [float(v) if isinstance(v, int | float) else float("nan") for v in each]
        colour = SOURCES.get(name, INK)
        ax.bar(
            at,
            numbers,
            width * 0.92,
            label=name,
            color=colour,
            hatch=HATCHES.get(name),
            edgecolor="w",
        )
    ax.set_xticks(range(len(groups)), groups)
    ax.set_ylabel(ylabel)
    if log:
        ax.set_yscale("log")
    ax.grid(visible=False, axis="x")
    ax.legend(fontsize=8, ncols=len(values), loc="upper left", bbox_to_anchor=(0, 1.0))
    ax.margins(y=0.25)


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


def tabled(found: Reproduction, ids: Sequence[str]) -> dict[str, list[Value]]:
    """Printed, ours and ns-2's values of some rows, as input of bars."""
    rows = {row.spec.id: row for row in found.rows}
    values: dict[str, list[Value]] = {
        "printed": [rows[id].spec.paper for id in ids],
        "talkspurt": [rows[id].ours.value for id in ids],
    }
    if any(rows[id].ns2 is not None for id in ids):
        values["ns-2"] = [rows[id].ns2 for id in ids]
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
