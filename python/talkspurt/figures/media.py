"""Figures of speech and video: frames and their delays, the waveform, and MOS."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from talkspurt._text.format import time_text, verdict
from talkspurt.figures import multiples, style
from talkspurt.figures.multiples import MAX_FLOWS
from talkspurt.figures.time import DROP, in_panels, labelled, say_shown, styles_of
from talkspurt.metrics import opinion
from talkspurt.metrics.catalogue import column

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def mos_over_time(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """MOS of each window of each call, as a step with the window's width."""
    import numpy as np

    width = opinion.window_s(result)
    calls = [flow] if flow else result.calls
    windows = {call: opinion.over_time(result, call, width) for call in calls[:MAX_FLOWS]}
    score = opinion.drawn(windows.values())
    windows = {call: rows for call, rows in windows.items() if rows[score].drop_nulls().len()}
    if not windows:
        return None
    styles = styles_of(result)

    def draw(ax: Axes, names: list[str]) -> None:
        ax.axhline(BEST_MOS, color=style.FAINT, linewidth=0.9, linestyle=":")
        ends = []
        for call, width_pt in zip(names, style.widths(len(names)), strict=True):
            look = styles[call]
            there = windows[call].drop_nulls(score)
            starts, mos = there["time_s"].to_numpy(), there[score].to_numpy()
            # A step from a window's start to its end, none over windows without speech.
            dashes: Any = (0, look.dashes) if look.dashes else "solid"
            until = (starts + width).clip(max=result.duration_s)
            ax.hlines(mos, starts, until, colors=look.colour, linestyles=dashes, lw=width_pt)
            next_door = np.diff(starts) < 1.5 * width
            sides = (starts[1:][next_door], mos[:-1][next_door], mos[1:][next_door])
            ax.vlines(*sides, colors=look.colour, linewidth=0.6)
            ends.append((result.duration_s, float(mos[-1]), call, look.colour))
        ax.set_xlim(0, result.duration_s)
        ax.set_ylim(0.9, 4.55)
        ax.set_yticks([1, 2, 3, 4, BEST_MOS], ["1", "2", "3", "4", "4.41"])
        style.label_ends(ax, ends)

    label = column(score).label
    title = f"{label} of each window of {time_text(width)}"
    figure, axes = in_panels(title, multiples.by_kind(list(windows), styles), draw)
    labelled(axes, "time / s", label)
    say_shown(axes[0], len(calls), "calls")
    return figure


def delay_ecdf(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """Share of frames delivered within a time since capture: the delay a buffer must bridge."""
    import numpy as np

    styles = styles_of(result)
    times = {}
    for name in [flow] if flow else result.calls[:MAX_FLOWS]:
        rows = result.frames(name)
        took = (rows["delivered_s"] - rows["captured_s"]).drop_nulls().sort().to_numpy() * 1e3
        if took.size:
            times[name] = (took, np.arange(1, took.size + 1) / rows.height)
    if not times:
        return None
    least = min(took[0] for took, _ in times.values())

    def draw(ax: Axes, names: list[str]) -> None:
        for name, width in zip(names, style.widths(len(names)), strict=True):
            took, share = times[name]
            look = styles[name]
            marks = [min(took.size, 1 + int(took.size * q)) for q in (0.1, 0.3, 0.5, 0.7, 0.9)]
            ax.plot(
                [took[0], *took],
                [0, *share],
                drawstyle="steps-post",
                marker=look.marker,
                markersize=4.5,
                markevery=marks,
                label=name,
                fillstyle="none" if look.dashes else "full",
                linewidth=width,
                **look.line(),
            )
        ax.set_ylim(0, 1.02)
        ax.set_xlim(left=max(0.0, least - 0.05 * (ax.dataLim.x1 - least)))
        ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        ax.legend(loc="lower right", fontsize=8.5, handlelength=style.LINE_LENGTH)

    title = "Share of voice frames delivered within a time of their capture"
    figure, axes = in_panels(title, multiples.by_kind(list(times), styles), draw)
    labelled(axes, "time from capture to delivery / ms", "frames")
    return figure


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


def frame_delay(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """From capture to the last packet of each complete frame; ticks below mark incomplete ones."""
    frames = result.video_frames(flow)
    chosen = frames["flow"].unique(maintain_order=True).to_list()
    if not chosen:
        return None
    title = "Each frame's delay, from capture until it can be decoded; ticks: never"
    figure, (ax,) = style.sheet(title)
    styles = styles_of(result)
    for name in chosen[:MAX_FLOWS]:
        draw_frames(ax, frames.filter(flow=name), styles[name], name)
    ax.set_xlim(0, result.duration_s)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("time / s")
    ax.set_ylabel("frame delay / ms")
    ax.legend(loc="upper left", frameon=False)
    return figure


def draw_frames(ax: Axes, frames: pl.DataFrame, look: style.Style, label: str) -> None:
    """The frames of one flow."""
    # Results of versions without kinds have no frame that depends on another.
    depends = pl.col("kind").is_not_null()
    end = pl.when(depends).then("decodable_s").otherwise("complete_s")
    frames = frames.with_columns(end=end)
    whole = frames.drop_nulls("end")
    delay = (whole["end"] - whole["captured_s"]).to_numpy() * 1e3
    at = whole["captured_s"].to_numpy()
    ax.plot(at, delay, ".", markersize=2.5, color=look.colour, label=label)
    never = frames.filter(pl.col("end").is_null())["captured_s"].to_numpy()
    ax.plot(never, [0.0] * len(never), "|", markersize=7, color=DROP)
