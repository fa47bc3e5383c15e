"""Figures of speech: frame delays, frame outcomes, and the waveform."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from talkspurt.figures.style import FAINT, FATE_COLOURS, LINE_LENGTH, FlowStyle, sheet, widths
from talkspurt.figures.time import MOST, styles_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.results.audio import Audio
    from talkspurt.results.run_data import RunData

MANY = 2000
"""With more patches, an SVG includes them as one bitmap."""


def delay_ecdf(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """Share of frames delivered within a time since capture: the delay a buffer must bridge."""
    del link
    import numpy as np

    chosen = [flow] if flow else result.calls
    styles = styles_of(result)
    figure, (ax,) = sheet(
        "Share of voice frames delivered within a time of their capture", height=3.0
    )
    drawn = 0
    least = math.inf
    for name, width in zip(chosen[:MOST], widths(len(chosen[:MOST])), strict=True):
        rows = result.frames(name)
        took = (rows["delivered_s"] - rows["captured_s"]).drop_nulls().sort().to_numpy() * 1e3
        if took.size:
            share = np.arange(1, took.size + 1) / rows.height
            _ecdf(ax, took, share, name, styles[name], width)
            drawn += 1
            least = min(least, took[0])
    if not drawn:
        return None
    ax.set_ylim(0, 1.02)
    ax.set_xlim(left=max(0.0, least - 0.05 * (ax.dataLim.x1 - least)))
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_xlabel("time from capture to delivery / ms")
    ax.set_ylabel("frames")
    ax.legend(loc="lower right", fontsize=8.5, handlelength=LINE_LENGTH)
    return figure


def _ecdf(
    ax: Axes,
    took: npt.NDArray[np.float64],
    share: npt.NDArray[np.float64],
    name: str,
    style: FlowStyle,
    width: float,
) -> None:
    marks = [min(took.size, 1 + int(took.size * q)) for q in (0.1, 0.3, 0.5, 0.7, 0.9)]
    ax.plot(
        [took[0], *took],
        [0, *share],
        drawstyle="steps-post",
        marker=style.marker,
        markersize=4.5,
        markevery=marks,
        label=name,
        fillstyle="none" if style.dashes else "full",
        linewidth=width,
        **style.line(),
    )


def fates(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """One strip per call: capture times and outcomes of frames."""
    del link
    chosen = [flow] if flow else result.calls[:MOST]
    if not chosen:
        return None
    figure, (ax,) = sheet("What became of each voice frame", height=0.95 + 0.42 * len(chosen))
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

    keys = [
        Patch(color=FATE_COLOURS[fate], label=fate.replace("_", " "))
        for fate in FATE_COLOURS
        if fate in seen
    ]
    figure.legend(handles=keys, loc="outside lower right", ncols=len(keys), fontsize=8)
    return figure


def _strip(ax: Axes, rows: pl.DataFrame, place: int, duration_s: float) -> set[str]:
    times = rows["captured_s"].to_list()
    # A pausing speaker sends nothing: the minimum interval of frames is the frame length.
    step = min((b - a for a, b in pairwise(times)), default=duration_s / 100)
    for fate in rows["fate"].unique(maintain_order=True).to_list():
        spans = _spans(rows.filter(fate=fate)["captured_s"].to_list(), step)
        ax.broken_barh(
            spans,
            (place - 0.36, 0.72),
            color=FATE_COLOURS.get(fate, FAINT),
            linewidth=0,
            rasterized=len(spans) > MANY,
        )
    return set(rows["fate"].to_list())


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
    del link
    name = flow or next(iter(result.heard), None)
    if name is None or name not in result.heard:
        return None
    audio = result.audio(name).mono()
    figure, axes = sheet(f"{name}: said and heard", height=2.8, rows=2, sharex=True, sharey=True)
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
    for fate, colour in FATE_COLOURS.items():
        spans = _spans((rows.filter(fate=fate)["captured_s"] - first).to_list(), step)
        if spans and fate != "played":
            low, high = ax.get_ylim()
            ax.broken_barh(
                spans,
                (low, high - low),
                color=colour,
                alpha=0.4,
                linewidth=0,
                zorder=0,
                rasterized=len(spans) > MANY,
            )
            ax.set_ylim(low, high)
