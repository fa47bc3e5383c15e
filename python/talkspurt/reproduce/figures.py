"""The studies' figures redrawn on their own axes, each with a companion figure.

Studies draw throughput, delay or jitter; the companion shows how the call would sound today:
mouth-to-ear delay and MOS. The figures are in ``studies/NAME.runs.toml``; ``curve`` of a study's
module computes the points of a line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from talkspurt.figures import style
from talkspurt.figures.chart import Bars, Line, bars, draw
from talkspurt.intervals import Ends
from talkspurt.reproduce import study_file
from talkspurt.reproduce.formulas import module
from talkspurt.reproduce.sample import Sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.reproduce import Reproduction
    from talkspurt.reproduce.lab import Run
    from talkspurt.reproduce.sample import Value

SOURCES = {"printed": (style.INK, ""), "talkspurt": ("#0072B2", ""), "ns-2": ("#E69F00", "///")}
"""Colours and hatches of bars by origin of the value."""
Spec = Mapping[str, Any]
Runs = Callable[[str], Sequence["Run"]]
"""The runs of a scenario, in seed order."""
Points = tuple[Sequence[float], Sequence[float | Sample]]


@dataclass(frozen=True)
class Picture:
    """A figure with the name of its file, its alternative in words, and the seed of its run."""

    name: str
    alt: str
    figure: Figure
    seed: int | None = None


def pictures(found: Reproduction) -> Iterator[Picture]:
    """Every figure of a study."""

    def runs(name: str) -> Sequence[Run]:
        return found.cases[name].runs

    study = found.file.name
    with style.styled(math=True):
        for spec in study_file.filled(study, "figure"):
            title = spec["title"]
            if "mean_of" in spec:
                title += f", mean of {len(runs(spec['mean_of']))} runs"
            if "rows" in spec:
                figure = _bars(found, spec)
            elif "calls" in spec:
                calls = spec["calls"].items()
                figure = companion(title, {k: (runs(run)[0], flow) for k, (run, flow) in calls})
            else:
                figure = _lines(title, spec, _panels(spec), partial(module(study).curve, runs))
            seed = runs(spec["run"])[0].seed if "run" in spec else None
            if seed is not None:
                style.note(figure, f"Of seed {seed} alone, no mean.")
            yield Picture(spec["name"], spec["alt"], figure, seed)


def live_pictures(
    study: str, live: Mapping[str, Run], simulated: Mapping[str, Run]
) -> Iterator[Picture]:
    """The figures of a study that was measured in real time, with the lines of runs that exist."""

    def points(line: Spec) -> Points:
        of = simulated if line.get("simulated") else live
        found: Points = module(study).curve(lambda name: [of[name]], line)
        return found

    for spec in study_file.filled(study, "live"):
        panels = _panels(spec)
        for panel in panels:
            for label, line in list(panel["lines"].items()):
                if "run" in line and line["run"] not in live:
                    del panel["lines"][label]
        if any("run" in line for panel in panels for line in panel["lines"].values()):
            yield Picture(spec["name"], spec["alt"], _lines(spec["title"], spec, panels, points))


def _panels(spec: Spec) -> list[Spec]:
    """The panels of a figure of lines, which may be one itself."""
    return list(spec["panels"].values()) if "panels" in spec else [spec]


def _lines(
    title: str, spec: Spec, panels: Sequence[Spec], points: Callable[[Spec], Points]
) -> Figure:
    """A figure of lines, or of panels of lines under each other."""
    shared: dict[str, Any] = dict.fromkeys(spec.get("share", ()), True)
    figure, axes = style.sheet(title, height=spec.get("height", 3.1), rows=len(panels), **shared)
    for ax, panel in zip(axes, panels, strict=True):
        lines = [_line(label, line, points) for label, line in panel["lines"].items()]
        x = spec["x"] if ax is axes[-1] else ""
        if "columns" in panel:
            for line in lines:
                ax.bar(line.x, line.y, panel["columns"], color=line.colour)
        draw(
            ax, [] if "columns" in panel else lines, x, panel["y"], legend=panel.get("legend", True)
        )
        if "panels" not in spec:
            ax.margins(x=0.01)
            ax.set_ylim(bottom=0)
        _scale(ax, panel, lines)
    if spec.get("legend_below"):
        below: dict[str, Any] = {"loc": "outside lower left", "ncols": 3, "fontsize": 8}
        handles = axes[0].get_legend_handles_labels()
        figure.legend(*handles, **below, handlelength=style.LINE_LENGTH)
    return figure


def _line(label: str, line: Spec, points: Callable[[Spec], Points]) -> Line:
    """A line; values of several replications have a band of intervals."""
    colour, dashes = line["colour"], line.get("dashes", 0)
    if not colour.startswith("#"):
        colour = style.INK if colour == "ink" else style.transport_style(colour).colour
    if "shade" in line:
        colour = style.shade(colour, style.SHADES[line["shade"]])
    x, y = points(line)
    means = [value.value if isinstance(value, Sample) else value for value in y]
    return Line(
        label,
        x,
        [math.nan if value is None else float(value) for value in means],
        colour,
        style.DASHES[dashes] if isinstance(dashes, int) else tuple(dashes),
        steps=line.get("steps", False),
        band=[value.span for value in y if isinstance(value, Sample)],
        marker=line.get("marker", ""),
        joined=line.get("joined", True),
    )


def _scale(ax: Axes, panel: Spec, lines: Sequence[Line]) -> None:
    if "log_x" in panel:
        ax.set_xscale("log", base=panel["log_x"])
        ax.set_xticks(panel["ticks"], [f"{tick:g}" for tick in panel["ticks"]])
    if panel.get("minor_ticks") is False:
        ax.minorticks_off()
    if "x_from_to" in panel:
        ax.set_xlim(*panel["x_from_to"])
    if panel.get("from_zero"):
        ax.set_ylim(bottom=0)
    if panel.get("log_y"):
        ax.set_yscale("log")
    if "y_fits_from" in panel:
        # Clip the startup and the guest's stalls, which exceed everything else.
        own = zip(panel["lines"].values(), lines, strict=True)
        points = [
            (x, y) for spec, of in own if "run" in spec for x, y in zip(of.x, of.y, strict=True)
        ]
        ax.set_ylim(0, 1.25 * max(y for x, y in points if x >= panel["y_fits_from"]))
    if "flat" in panel:
        low, high = min(lines[0].y), max(lines[0].y)
        if high - low < 1:
            ax.set_ylim(low - panel["flat"], high + panel["flat"])
    if "level" in panel:
        # A printed or stated value, with its label at the end.
        y, words = panel["level"]
        ax.axhline(y, color=style.FAINT, linewidth=0.9, dashes=(4, 3))
        at: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "left", "va": "center"}
        ax.annotate(words, (1.01, y), **at, fontsize=8, color=style.INK)
    if "heading" in panel:
        ax.set_title(
            panel["heading"], loc="right", fontsize=9, fontweight=panel.get("weight", "bold")
        )


def _bars(found: Reproduction, spec: Spec) -> Figure:
    """Grouped bars of rows: printed, ours with intervals, and ns-2's if there are any."""
    by_id = {row.spec.id: row for row in found.rows}
    rows = [by_id[id] for id in spec["rows"].values()]
    ours = [row.ours for row in rows]
    ends = [None if one.still or not one.ends else Ends(*one.ends, False, False) for one in ours]
    values: dict[str, list[Value]] = {
        "printed": [row.spec.paper for row in rows],
        "talkspurt": [one.value for one in ours],
    }
    if any(row.ns2 is not None for row in rows):
        values["ns-2"] = [row.ns2 for row in rows]
    drawn = [
        Bars(
            name,
            [float(v) if isinstance(v, int | float) else math.nan for v in of],
            *SOURCES[name],
            ends if name == "talkspurt" else (),
        )
        for name, of in values.items()
    ]
    return bars(spec["title"], list(spec["rows"]), drawn, spec["y"])


def companion(title: str, calls: Mapping[str, tuple[Run, str]]) -> Figure:
    """Mouth-to-ear delay and MOS of present-day calls, one bar each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 2.7))
    left, right = figure.subplots(1, 2)
    names = list(calls)
    for ax, column, scale, label in (
        (left, "mouth_to_ear_p50_s", 1e3, "mouth-to-ear delay / ms"),
        (right, "mos", 1.0, "MOS"),
    ):
        numbers = [scale * run.flow(flow, column) for run, flow in calls.values()]
        colours = [
            style.transport_style(run.rows[flow]["transport"]).colour
            for run, flow in calls.values()
        ]
        drawn = ax.bar(range(len(names)), numbers, 0.7, color=colours)
        texts = [f"{number:.{0 if scale > 1 else 2}f}".replace("nan", "") for number in numbers]
        ax.bar_label(drawn, texts, fontsize=8, padding=2)
        for place, text in enumerate(texts):
            if not text:
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
    style.note(figure, f"One run each, seed {', '.join(map(str, seeds))}.", *_unrated(calls))
    return figure


def _unrated(calls: Mapping[str, tuple[Run, str]]) -> Iterator[str]:
    for name, (run, flow) in calls.items():
        row = run.rows[flow]
        if row["mos"] is None:
            words = name.replace("\n", " ")
            reason = (row["quality_note"] or "nothing of it was heard").split("; ")[0]
            yield f"{words} has no MOS: {reason.removeprefix('no score: ')}."
