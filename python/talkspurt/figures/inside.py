"""Figures of endpoint state: a rate-controlled sender, a window, a token bucket.

Each shows one direction of one flow, because its lines are quantities and not flows. A line is a
gauge, which holds its value until it changes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from talkspurt.figures.style import FAINT, INK, label_ends, sheet
from talkspurt.figures.time import styles_of
from talkspurt.metrics.catalogue import column
from talkspurt.scenarios.resolved import values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.results.run_data import RunData

REVERSE = ".reverse"
"""Suffix of the answering side's direction, after its flow's name."""

Line = tuple[str, str, str, str, float]
"""Gauge, its label, colour, line style and width."""


def directions(result: RunData, gauge: str) -> list[str]:
    """Directions whose sender has this gauge, with the names of the ``flows`` table."""
    import polars as pl

    rows = result.gauges(gauge=gauge).select("flow", "side").unique(maintain_order=True)
    named = pl.when(pl.col("side") == "to").then(pl.col("flow") + REVERSE).otherwise("flow")
    there = set(rows.select(named)["flow"].to_list()) if rows.height else set()
    return [name for name in result.flows["name"].to_list() if name in there]


def steps_of(result: RunData, direction: str, gauge: str) -> pl.DataFrame:
    """``time_s`` and ``value`` of a gauge at the sender of a direction, extended to the end."""
    side = "to" if direction.endswith(REVERSE) else "from"
    rows = result.gauges(direction.removesuffix(REVERSE), gauge).filter(side=side)
    return held(rows, result.duration_s)


def held(rows: pl.DataFrame, end_s: float) -> pl.DataFrame:
    """``time_s`` and ``value`` of a gauge until the end; of many rows, those that can be seen."""
    import polars as pl

    from talkspurt.figures import decimating

    rows = rows.select("time_s", "value").filter(pl.col("value").is_finite())
    if rows.is_empty():
        return rows
    rows = rows[decimating.kept(rows["time_s"], rows["value"])]
    end = pl.DataFrame({"time_s": [end_s], "value": [rows["value"][-1]]})
    return pl.concat([rows, end])


def rate_lines(colour: str) -> list[Line]:
    """Lines of a sender's rates; the input of a rate is drawn on top of it, thinner."""
    return [
        ("receive_rate", "X_recv", FAINT, "-", 1.1),
        ("rate", "X", colour, "-", 2.4),
        ("equation_rate", "X_calc", INK, "--", 1.1),
    ]


def rtt_lines(colour: str) -> list[Line]:
    """Lines of a sender's round-trip times."""
    return [
        ("srtt", "RTT", colour, "-", 2.4),
        ("rtt_square_mean", "R_sqmean", INK, "--", 1.1),
    ]


def window_lines(colour: str) -> list[Line]:
    """Lines of CCID 2's window."""
    return [
        ("pipe", "pipe", FAINT, "-", 0.8),
        ("ssthresh_packets", "ssthresh", INK, "--", 1.2),
        ("cwnd_packets", "cwnd", colour, "-", 1.8),
    ]


def rates(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """The allowed rate of a rate-controlled sender, with the quantities it is computed from."""
    del link
    name = _chosen(result, "rate", flow)
    if name is None:
        return None
    figure, (top, middle, bottom) = sheet(
        f"{name}: the allowed rate and what it is made of",
        height=5.6,
        rows=3,
        sharex=True,
        height_ratios=(2.4, 1, 1),
    )
    colour = styles_of(result)[name].colour
    _panel(result, name, top, rate_lines(colour), "rate / kbit/s", logarithmic=True)
    _panel(result, name, middle, rtt_lines(colour), "RTT / ms")
    _panel(result, name, bottom, [("loss_event_rate", "p", colour, "-", 1.8)], "p / %")
    return _finish(figure, result)


def window(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """CCID 2's window in packets, and its Ack Ratio."""
    del link
    name = _chosen(result, "cwnd_packets", flow)
    if name is None:
        return None
    figure, (top, bottom) = sheet(
        f"{name}: congestion window, and what fills it",
        height=4.2,
        rows=2,
        sharex=True,
        height_ratios=(2.6, 1),
    )
    colour = styles_of(result)[name].colour
    _panel(result, name, top, window_lines(colour), "packets", filled="pipe")
    _panel(result, name, bottom, [("ack_ratio", "Ack Ratio", INK, "-", 1.3)], "packets\nper Ack")
    return _finish(figure, result)


def bucket(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """The encoding a source sends in, and the tokens that limit it, if any."""
    del link
    name = _chosen(result, "encoding", flow)
    if name is None:
        return None
    saves = not steps_of(result, name, "tokens").is_empty()
    figure, axes = sheet(
        f"{name}: tokens saved, and the encoding they hold" if saves else f"{name}: encoding",
        height=3.9 if saves else 2.4,
        rows=2 if saves else 1,
        sharex=True,
        height_ratios=(1.4, 1) if saves else (1,),
    )
    colour = styles_of(result)[name].colour
    if saves:
        tokens: list[Line] = [("tokens", "tokens", colour, "-", 1.3)]
        _panel(result, name, axes[0], tokens, "tokens / kB", filled="tokens")
    bottom = axes[-1]
    _panel(result, name, bottom, [("encoding", "", colour, "-", 1.8)], "encoding")
    rungs = ladder(result, name)
    lowest = int(steps_of(result, name, "encoding")["value"].to_numpy().max())
    last = max(len(rungs) - 1, lowest, 1)
    bottom.set_ylim(last + 0.4, -0.4)
    bottom.set_yticks(range(last + 1), [*rungs, *map(str, range(len(rungs), last + 1))])
    return _finish(figure, result)


def ladder(result: RunData, direction: str) -> list[str]:
    """Names of the encodings that a direction's source can use, best first."""
    scenario = values(result.scenario)
    flow = scenario["flows"].get(direction.removesuffix(REVERSE), {})
    source = flow.get("reverse" if direction.endswith(REVERSE) else "source", {})
    rungs = source.get("ladder", [])
    return [rung if isinstance(rung, str) else str(rung.get("codec", "")) for rung in rungs]


def _chosen(result: RunData, gauge: str, flow: str | None) -> str | None:
    there = directions(result, gauge)
    if flow is not None:
        return flow if flow in there else None
    return there[0] if there else None


def _panel(
    result: RunData,
    name: str,
    ax: Axes,
    lines: Sequence[Line],
    unit: str,
    *,
    logarithmic: bool = False,
    filled: str = "",
) -> None:
    ends = []
    seen: list[np.ndarray] = []
    for gauge, words, colour, style, width in lines:
        rows = steps_of(result, name, gauge)
        if rows.is_empty():
            continue
        x, y = rows["time_s"].to_numpy(), rows["value"].to_numpy() * column(gauge).scale
        if gauge == filled:
            ax.fill_between(x, 0, y, color=colour, alpha=0.35, linewidth=0, step="post")
        ax.step(x, y, where="post", color=colour, linestyle=style, linewidth=width)
        ends.append((x[-1], float(y[-1]), words, colour if colour != FAINT else INK))
        if gauge != "receive_rate":  # early reports are out of scale
            seen.append(y[y > 0])
    ax.set_xlim(0, result.duration_s)
    ax.set_ylabel(unit)
    positive = [value for y in seen if len(y) for value in (float(y.min()), float(y.max()))]
    if logarithmic and wide(positive):
        _logarithmic(ax, min(positive), max(positive))
    else:
        ax.set_ylim(bottom=0)
    label_ends(ax, [end for end in ends if end[2]])


def _logarithmic(ax: Axes, least: float, greatest: float) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_yscale("log")
    low, high = math.log10(least), math.log10(greatest)
    margin = 0.06 * (high - low)
    ax.set_ylim(10 ** (low - margin), 10 ** (high + margin))
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high - low < 2.5 else (1,)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


SPREAD = 30.0
"""A rate axis is logarithmic if its max exceeds its min by more than this factor."""


def wide(values: Sequence[float]) -> bool:
    """Whether positive values need a logarithmic axis."""
    return bool(values) and max(values) > SPREAD * min(values)


def _finish(figure: Figure, result: RunData) -> Figure:
    axes = figure.axes
    axes[-1].set_xlim(0, result.duration_s)
    axes[-1].set_xlabel("time / s")
    figure.align_ylabels(axes)
    return figure
