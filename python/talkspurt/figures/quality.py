"""Figures of opinion: each call's MOS, its impairments, and its course over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from talkspurt._text.format import time_text, verdict
from talkspurt.figures.style import CAUSE_COLOURS, FAINT, label_ends, sheet, widths
from talkspurt.figures.time import MOST, styles_of
from talkspurt.metrics import opinion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.results.run_data import RunData

BEST_MOS = 4.41
"""MOS at G.107's defaults (R = 93.2): the maximum for a G.711 call."""


def mos(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """A bar for each call: its MOS, then the losses due to delay, loss and codec."""
    del link
    rows = result.flows.drop_nulls("mos")
    rows = rows.filter(name=flow) if flow else rows
    if rows.is_empty():
        return None
    shown = rows.head(MOST).to_dicts()
    styles = styles_of(result)
    figure, (ax,) = sheet("MOS, and what took from it", height=1.15 + 0.42 * len(shown))
    for place, row in enumerate(shown):
        ax.barh(place, row["mos"] - 1, left=1, color=styles[row["name"]].colour, height=0.62)
        found = verdict(row["r_factor"])
        left = row["mos"]
        for cause, colour in CAUSE_COLOURS.items():
            taken = row[f"mos_lost_to_{cause}"] or 0.0
            # The three are computed separately, so their sum may exceed the whole.
            ax.barh(place, taken, left=left, color=colour, height=0.3, alpha=0.85)
            left += taken
        ax.text(
            max(left, BEST_MOS) + 0.06,
            place,
            f"{row['mos']:.2f}  {found.short if found else ''}",
            va="center",
            fontsize=8.5,
        )
    _finish(figure, shown)
    return figure


def _finish(figure: Figure, shown: list[dict[str, object]]) -> None:
    from matplotlib.patches import Patch

    (ax,) = figure.axes
    ax.axvline(BEST_MOS, color="#9aa1a8", linewidth=0.9, linestyle=":")
    ax.set_yticks(range(len(shown)), [str(row["name"]) for row in shown])
    ax.set_ylim(len(shown) - 0.45, -0.55)
    ax.set_xlim(1, 6)
    ax.set_xticks([1, 2, 3, 4, BEST_MOS], ["1", "2", "3", "4", "4.41"])
    ax.set_xlabel("MOS (1 bad, 4.41 as good as a G.711 call gets)")
    ax.grid(visible=False, axis="y")
    ax.tick_params(left=False)
    keys = [
        Patch(color=c, alpha=0.85, label=f"lost to {cause}") for cause, c in CAUSE_COLOURS.items()
    ]
    figure.legend(handles=keys, loc="outside lower right", ncols=3, fontsize=8)


def mos_over_time(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """MOS of each window of each call, as a step with the window's width."""
    import numpy as np

    del link
    width = opinion.window_s(result)
    calls = [flow] if flow else result.calls
    windows = {call: opinion.over_time(result, call, width) for call in calls[:MOST]}
    windows = {call: rows for call, rows in windows.items() if rows["mos"].drop_nulls().len()}
    if not windows:
        return None
    styles = styles_of(result)
    figure, (ax,) = sheet(f"MOS of each window of {time_text(width)}")
    ax.axhline(BEST_MOS, color=FAINT, linewidth=0.9, linestyle=":")
    ends = []
    for (call, rows), width_pt in zip(windows.items(), widths(len(windows)), strict=True):
        style = styles[call]
        there = rows.drop_nulls("mos")
        starts, mos = there["time_s"].to_numpy(), there["mos"].to_numpy()
        # A step from a window's start to its end, none over windows without speech.
        dashes: Any = (0, style.dashes) if style.dashes else "solid"
        until = (starts + width).clip(max=result.duration_s)
        ax.hlines(mos, starts, until, colors=style.colour, linestyles=dashes, linewidth=width_pt)
        next_door = np.diff(starts) < 1.5 * width
        sides = (starts[1:][next_door], mos[:-1][next_door], mos[1:][next_door])
        ax.vlines(*sides, colors=style.colour, linewidth=0.6)
        ends.append((result.duration_s, float(mos[-1]), call, style.colour))
    ax.set_xlim(0, result.duration_s)
    ax.set_ylim(0.9, 4.55)
    ax.set_yticks([1, 2, 3, 4, BEST_MOS], ["1", "2", "3", "4", "4.41"])
    ax.set_xlabel("time / s")
    ax.set_ylabel("MOS")
    label_ends(ax, ends)
    if len(calls) > MOST:
        ax.annotate(
            f"{MOST} of {len(calls)} calls shown", (1, 1), xycoords="axes fraction",
            xytext=(0, 4), textcoords="offset points", ha="right", fontsize=8,
        )  # fmt: skip
    return figure
