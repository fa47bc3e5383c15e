"""Figures of speech and video: frames and their delays, the waveform, and MOS."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from talkspurt._text.format import verdict
from talkspurt.figures import style
from talkspurt.figures.charts import MAX_FLOWS, styles_of
from talkspurt.metrics.catalogue import column

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.figures.charts import Chart
    from talkspurt.results.audio import Audio
    from talkspurt.results.run_data import RunData

BEST_MOS = 4.41
"""MOS at G.107's defaults (R = 93.2): the maximum for a G.711 call."""
MANY = 2000
"""With more patches, an SVG includes them as one bitmap."""


def mos(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """A bar for each call: its MOS, then the losses due to delay, loss and codec."""
    from matplotlib.patches import Patch

    rows = result.flows.drop_nulls("mos")
    rows = rows.filter(name=flow) if flow else rows
    if rows.is_empty():
        return None
    shown = rows.head(MAX_FLOWS).to_dicts()
    styles = styles_of(result)
    figure, (ax,) = style.sheet("MOS, and what took from it", height=1.15 + 0.42 * len(shown))
    score = column("mos")
    for place, row in enumerate(shown):
        bound = score.outside(row)
        left = row["mos"] if bound is None else bound
        colour = styles[row["name"]].colour
        look: Any = (
            {"color": colour} if bound is None else {"edgecolor": colour, "facecolor": "none"}
        )
        ax.barh(place, left - 1, left=1, height=0.62, **look)
        found = verdict(row["r_factor"]) if bound is None else None
        for cause, colour in style.CAUSE_COLOURS.items():
            taken = row[f"mos_lost_to_{cause}"] or 0.0
            # The three are computed separately, so their sum may exceed the whole.
            ax.barh(place, taken, left=left, color=colour, height=0.3, alpha=0.85)
            left += taken
        ax.text(
            max(left, BEST_MOS) + 0.06,
            place,
            f"{score.of(row)}  {'out of range' if bound else found.short if found else ''}",
            va="center",
            fontsize=8.5,
        )
    ax.axvline(BEST_MOS, color="#9aa1a8", linewidth=0.9, linestyle=":")
    ax.set_yticks(range(len(shown)), [str(row["name"]) for row in shown])
    ax.set_ylim(len(shown) - 0.45, -0.55)
    ax.set_xlim(1, 6)
    ax.set_xticks([1, 2, 3, 4, BEST_MOS], ["1", "2", "3", "4", "4.41"])
    ax.set_xlabel("MOS (1 bad, 4.41 as good as a G.711 call gets)")
    ax.grid(visible=False, axis="y")
    ax.tick_params(left=False)
    keys = [
        Patch(color=c, alpha=0.85, label=f"lost to {cause}")
        for cause, c in style.CAUSE_COLOURS.items()
    ]
    figure.legend(handles=keys, loc="outside lower right", ncols=3, fontsize=8)
    return figure


def mark_best(result: RunData, ax: Axes, panel: Chart) -> None:
    """Mark the best MOS."""
    ax.axhline(BEST_MOS, color=style.FAINT, linewidth=0.9, linestyle=":")
    ax.set_yticks([1, 2, 3, 4, BEST_MOS], ["1", "2", "3", "4", "4.41"])


def fates(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """One strip per call: capture times and outcomes of frames."""
    chosen = [flow] if flow else result.calls[:MAX_FLOWS]
    if not chosen:
        return None
    figure, (ax,) = style.sheet("What became of each voice frame", height=0.95 + 0.42 * len(chosen))
    seen: set[str] = set()
    for place, name in enumerate(chosen):
        seen |= _strip(ax, result.frames(name), place, result.duration_s)
    ax.set_yticks(range(len(chosen)), chosen)
    ax.set_ylim(len(chosen) - 0.45, -0.55)
    ax.set_xlim(0, result.duration_s)
    ax.set_xlabel("time of capture / s")
    ax.grid(visible=False)
    ax.spines["left"].set_visible(False)
    ax.tick_params(left=False)
    from matplotlib.patches import Patch

    there = {fate: colour for fate, colour in style.FATE_COLOURS.items() if fate in seen}
    keys = [Patch(color=colour, label=fate.replace("_", " ")) for fate, colour in there.items()]
    figure.legend(handles=keys, loc="outside lower right", ncols=len(keys), fontsize=8)
    return figure


def _strip(ax: Axes, rows: pl.DataFrame, place: int, duration_s: float) -> set[str]:
    times = rows["captured_s"].to_list()
    # A pausing speaker sends nothing: the minimum interval of frames is the frame length.
    step = min((b - a for a, b in pairwise(times)), default=duration_s / 100)
    for fate in rows["fate"].unique(maintain_order=True).to_list():
        spans = _spans(rows.filter(fate=fate)["captured_s"].to_list(), step)
        _patches(ax, spans, (place - 0.36, 0.72), color=style.FATE_COLOURS.get(fate, style.FAINT))
    return set(rows["fate"].to_list())


def _patches(
    ax: Axes, spans: list[tuple[float, float]], rows: tuple[float, float], **look: Any
) -> None:
    ax.broken_barh(spans, rows, linewidth=0, rasterized=len(spans) > MANY, **look)


def _spans(times: list[float], step: float) -> list[tuple[float, float]]:
    """Frames of ``step`` seconds as (start, length); consecutive frames are merged."""
    spans: list[tuple[float, float]] = []
    for t in times:
        if spans and t - sum(spans[-1]) < step / 2:
            spans[-1] = (spans[-1][0], t + step - spans[-1][0])
        else:
            spans.append((t, step))
    return spans


def waveform(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """Reference above degraded waveform; gaps are marked below the missing frames."""
    name = flow or next(iter(result.heard), None)
    if name is None or name not in result.heard:
        return None
    audio = result.audio(name).mono()
    figure, axes = style.sheet(
        f"{name}: said and heard", height=2.8, rows=2, sharex=True, sharey=True
    )
    colour = styles_of(result)[name].colour
    for ax, samples, word in zip(
        axes, (audio.sent, audio.received), ("said", "heard"), strict=True
    ):
        _envelope(ax, samples, audio, colour if word == "heard" else "#6b7280")
        ax.set_ylabel(word)
        ax.set_yticks([])
        ax.grid(visible=False)
        ax.spines["left"].set_visible(False)
    _shade_missing(axes[1], result.frames(name), audio.start_s)
    axes[1].set_xlabel("time / s")
    axes[1].set_xlim(0, audio.duration_s or 1)
    return figure


def _envelope(ax: Axes, samples: npt.NDArray[np.int16], audio: Audio, colour: str) -> None:
    import numpy as np

    if not samples.size:
        return
    columns = min(1400, max(1, samples.size // 2))
    width = samples.size // columns
    block = samples[: columns * width].reshape(columns, width)
    x = np.arange(columns) * width / audio.rate
    ax.fill_between(x, block.min(axis=1), block.max(axis=1), color=colour, linewidth=0.3)


def _shade_missing(ax: Axes, rows: pl.DataFrame, start_s: float | None) -> None:
    if rows.is_empty():
        return
    first = float(rows["captured_s"][0]) if start_s is None else start_s
    times = rows["captured_s"].to_list()
    step = (times[-1] - first) / (len(times) - 1) if len(times) > 1 else 0.02
    for fate, colour in style.FATE_COLOURS.items():
        spans = _spans((rows.filter(fate=fate)["captured_s"] - first).to_list(), step)
        if spans and fate != "played":
            low, high = ax.get_ylim()
            _patches(ax, spans, (low, high - low), color=colour, alpha=0.4, zorder=0)
            ax.set_ylim(low, high)
