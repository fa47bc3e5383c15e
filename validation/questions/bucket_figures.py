"""Figures of bucket.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from common import Interval

from talkspurt.figures import styled
from talkspurt.figures.style import LINE_LENGTH, transport_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCALES_S = {1: 0.2, 2: 0.4, 5: 1.0, 10: 2.0, 25: 5.0, 50: 10.0, 100: 20.0}
"""Time scales of the coefficient of variation, in bins of the series and in seconds."""
DRAWN = {
    "UDP": ("udp", (), "full"),
    "TFRC": ("tfrc", (), "full"),
    "TFRC, bare ladder": ("tfrc", (2, 2), "none"),
    "TFRC-TB": ("tfrc-tb", (), "full"),
    "TFRC-TB, wide start": ("tfrc-tb", (2, 2), "none"),
    "TFRC-TB, five codecs": ("tfrc-tb", (6, 2.5), "full"),
    "no bucket, five codecs": ("tfrc-tb", (2, 2), "none"),
    "DCCP CCID 4": ("dccp-ccid4", (), "full"),
    "DCCP CCID 4 with bucket": ("dccp-ccid4", (2, 2), "none"),
}
"""Style of each line: transport, dashes, and fill style of the marker."""
ONLY_SCALES = ("TFRC-TB, five codecs", "no bucket, five codecs")
NOT_SCALES = ("UDP", "TFRC-TB, wide start")


def spaced(label: str) -> str:
    """Insert a space before the unit of a label."""
    number = label.rstrip("abcdefghijklmnopqrstuvwxyzBM/")
    return f"{number} {label[len(number) :]}"


def words(setting: tuple[str, str]) -> str:
    """Format a setting."""
    return f"{spaced(setting[0].replace('1500kbit', '1.5Mbit'))}, {spaced(setting[1])}"


@dataclass(frozen=True)
class Map:
    """A measure over depth and step-up time: title, column, decimals, and codec ladder."""

    title: str
    column: str
    digits: int
    ladder: str


MAPS = (
    Map("MOS", "mos", 2, "three"),
    Map("MOS, tenth percentile", "mos_p10", 2, "three"),
    Map("codec changes / min", "switches", 1, "three"),
    Map("share of time on G.711", "best", 2, "five"),
    Map("rate variation over 1 s", "cov_5", 2, "five"),
    Map("share of an upload", "upload_share", 2, "five"),
)


def maps(rows: pl.DataFrame, depths: Sequence[str], steps: Sequence[str]) -> Figure:
    """Plot means over all settings and seeds, with a cell for each depth and step-up time."""
    from matplotlib.figure import Figure

    with styled(math=True):
        figure = Figure(figsize=(9.2, 4.6))
        for ax, one in zip(figure.subplots(2, 3).flat, MAPS, strict=True):
            grid = [
                [
                    float(
                        rows.filter(ladder=one.ladder, depth=d)
                        .filter(pl.col("step up") == s)[one.column]
                        .mean()
                    )
                    for d in depths
                ]
                for s in steps
            ]
            _map(ax, grid, one.digits)
            ax.set_xticks(range(len(depths)), map(spaced, depths))
            ax.set_yticks(range(len(steps)), map(spaced, steps))
            ax.set_title(f"{one.title} ({one.ladder})", fontsize=9)
        figure.supxlabel("bucket depth", fontsize=9)
        figure.supylabel("step-up time", fontsize=9)
    return figure


def _map(ax: Axes, grid: list[list[float]], digits: int) -> None:
    values = [value for row in grid for value in row]
    ax.imshow(grid, cmap="cividis", aspect="auto")
    ax.grid(visible=False)
    middle = (min(values) + max(values)) / 2
    for y, row in enumerate(grid):
        for x, value in enumerate(row):
            colour = "white" if value < middle else "black"
            ax.text(x, y, f"{value:.{digits}f}", ha="center", va="center", color=colour, fontsize=8)


def opinions(rows: pl.DataFrame, settings: Sequence[tuple[str, str]]) -> Figure:
    """Plot MOS by setting: large markers are means of the calls, small ones tenth percentiles."""
    from matplotlib.figure import Figure

    with styled(math=True):
        figure = Figure(figsize=(9.2, 3.6))
        ax = figure.subplots()
        shown = [label for label in DRAWN if label not in ONLY_SCALES]
        for i, label in enumerate(shown):
            transport, _, filling = DRAWN[label]
            style = transport_style(transport)
            found = [_of(rows, setting, label, "mos") for setting in settings]
            x = [place + (i - 3) * 0.11 for place in range(len(settings))]
            ax.errorbar(
                x,
                [one.mean for one in found],
                yerr=[one.mean - one.low for one in found],
                color=style.colour,
                marker=style.marker,
                fillstyle=filling,
                markersize=6,
                capsize=2,
                linestyle="none",
                label=label,
            )
            low = [_of(rows, setting, label, "mos_p10").mean for setting in settings]
            ax.plot(x, low, color=style.colour, marker="_", markersize=7, linestyle="none")
        names = [words(setting).replace(", ", "\n") for setting in settings]
        ax.set_xticks(range(len(settings)), names)
        ax.set_ylabel("MOS")
        ax.set_ylim(1, 4.2)
        ax.grid(visible=False, axis="x")
        ax.set_title("MOS of eight calls starting with G.711: mean, and tenth percentile (–)")
        figure.legend(loc="outside right upper", fontsize=8)
    return figure


def _of(rows: pl.DataFrame, setting: tuple[str, str], transport: str, value: str) -> Interval:
    mine = rows.filter(bottleneck=setting[0], transport=transport, codecs="from G.711").filter(
        pl.col("one way") == setting[1]
    )
    return Interval.of(mine[value].to_list())


def scales(rows: pl.DataFrame, settings: Sequence[tuple[str, str]]) -> Figure:
    """Plot the coefficient of variation of the sending rate against the time scale."""
    from matplotlib.figure import Figure

    with styled(math=True):
        figure = Figure(figsize=(9.2, 3.2))
        axes = figure.subplots(1, len(settings), sharey=True)
        for ax, setting in zip(axes, settings, strict=True):
            for label, (transport, dashes, filling) in DRAWN.items():
                style = transport_style(transport)
                if label in NOT_SCALES:
                    continue
                mine = rows.filter(bottleneck=setting[0], transport=label).filter(
                    pl.col("one way") == setting[1]
                )
                y = [mine[f"cov_{bins}"].mean() for bins in SCALES_S]
                ax.plot(
                    list(SCALES_S.values()),
                    [float(v) if v is not None else math.nan for v in y],
                    color=style.colour,
                    marker=style.marker,
                    fillstyle=filling,
                    markersize=4,
                    label=label,
                    **({"dashes": dashes} if dashes else {"linestyle": "-"}),
                )
            ax.set_xscale("log")
            ax.set_xticks(list(SCALES_S.values()), [f"{s:g}" for s in SCALES_S.values()])
            ax.minorticks_off()
            ax.set_xlabel("time scale / s")
            ax.set_title(words(setting))
        axes[0].set_ylabel("coefficient of variation")
        axes[0].set_ylim(bottom=0)
        figure.legend(
            *axes[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=4,
            handlelength=LINE_LENGTH,
            fontsize=8,
        )
    return figure
