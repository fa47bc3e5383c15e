"""Figures of the page on the initial slow-start threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from common import Interval
from ssthresh_law import NONE, PROFILES, Law, Path

from talkspurt.figures import styled
from talkspurt.figures.style import FAINT, INK, LINE_LENGTH, transport_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CCID2 = transport_style("dccp-ccid2")
SHADES = {0.2: "#54bd98", 0.4: CCID2.colour, 0.6: "#004d38"}
"""Shades of CCID 2's colour by round-trip time: darker for longer times."""


def settling(laws: Sequence[Law], packets_per_s: float) -> Figure:
    """Plot the settling time against the threshold, measured and by the closed form."""
    from matplotlib.figure import Figure

    with styled(math=True):
        figure = Figure(figsize=(8.4, 5.6))
        grid = figure.subplots(2, 2, sharex=True, sharey=True)
        for i, one in enumerate(laws):
            for j, (profile, words) in enumerate(PROFILES.items()):
                ax = grid[j][i]
                ax.set_title(f"{one.sender}, {words}", fontsize=9)
                for rtt, colour in SHADES.items():
                    _settling_line(ax, one, Path(packets_per_s, rtt, profile), colour)
                ax.set_xscale("log")
                ax.set_xticks([2, 5, 10, 20, 50, 100, 300])
                ax.set_xticklabels(["2", "5", "10", "20", "50", "100", "none"])
                ax.minorticks_off()
                ax.set_ylim(0, 41)
            grid[-1][i].set_xlabel("initial ssthresh / packets")
        for ax in grid[:, 0]:
            ax.set_ylabel("settling time / s")
    return figure


def _settling_line(ax: Axes, one: Law, path: Path, colour: str) -> None:
    times = {s: t for s, t in one.times[path].items() if math.isfinite(t)}
    x = [300 if s == NONE else s for s in times]
    ax.plot(x, list(times.values()), CCID2.marker, color=colour, markersize=4, linestyle="none")
    fine = np.geomspace(2, 180, 200)
    ax.plot(fine, [one.form(path, s) for s in fine], color=colour, linewidth=1.2)
    ax.annotate(
        f"{path.rtt_s * 1e3:.0f} ms",
        (min(times), times[min(times)]),
        xytext=(-3, 5),
        textcoords="offset points",
        fontsize=7.5,
        color=INK,
    )


def needed(
    laws: Sequence[Law], rules: Mapping[str, tuple[str, Callable[[float], float]]]
) -> Figure:
    """Plot the minimum sufficient threshold against N, with the proposed rule."""
    from matplotlib.figure import Figure

    with styled(math=True):
        figure = Figure(figsize=(8.4, 3.3))
        for ax, one in zip(figure.subplots(1, 2), laws, strict=True):
            words, rule = rules[one.sender]
            for profile, face, shift in (("rfc", CCID2.colour, 1.015), ("ns2", "white", 0.985)):
                found = [least for least in one.informative if least.path.profile == profile]
                ax.errorbar(
                    [least.path.in_flight * shift for least in found],
                    [least.least for least in found],
                    yerr=[[least.least - least.below for least in found], [0] * len(found)],
                    color=CCID2.colour,
                    marker=CCID2.marker,
                    markerfacecolor=face,
                    linestyle="none",
                    markersize=5,
                    elinewidth=1,
                    label=PROFILES[profile],
                )
            x = np.linspace(0, 62, 50)
            ax.plot(x, [rule(n) for n in x], color=INK, linewidth=1, label=words)
            ax.plot(x, x, color=FAINT, linewidth=1, linestyle=(0, (4, 3)), label="N")
            ax.set_title(one.sender)
            ax.set_xlabel("N = packets per second × RTT")
            ax.set_xlim(0, 63)
            ax.set_ylim(bottom=0)
            ax.legend(fontsize=7.5, loc="upper left")
        figure.axes[0].set_ylabel("minimum sufficient ssthresh")
    return figure


def harm(shown: pl.DataFrame, senders: Sequence[str]) -> Figure:
    """Plot the lost packets of both calls against the threshold, for both senders."""
    from matplotlib.figure import Figure

    labels = shown["ssthresh"].unique(maintain_order=True).to_list()
    flows = (
        ("call", CCID2, "call over CCID 2"),
        ("bystander", transport_style("udp"), "other call over UDP"),
    )
    with styled(math=True):
        figure = Figure(figsize=(8.4, 3.1))
        axes = figure.subplots(1, 2, sharey=True)
        for ax, (profile, words) in zip(axes, PROFILES.items(), strict=True):
            for flow, style, name in flows:
                for sender, dashes in zip(senders, ("-", (0, (4, 3))), strict=True):
                    part = shown.filter(profile=profile, sender=sender)
                    lost = [
                        Interval.of(part.filter(ssthresh=s)[f"{flow}.lost_packets"].to_list())
                        for s in labels
                    ]
                    ax.errorbar(
                        range(len(labels)),
                        [one.mean for one in lost],
                        yerr=[one.high - one.mean for one in lost],
                        color=style.colour,
                        marker=style.marker,
                        markersize=5,
                        linestyle=dashes,
                        linewidth=1.2,
                        elinewidth=1.2,
                        capsize=2,
                        label=f"{name}, sender {sender}",
                    )
            ax.set_xticks(range(len(labels)), ["none" if s == str(NONE) else s for s in labels])
            ax.set_xlabel("initial ssthresh / packets")
            ax.set_title(words)
        axes[0].set_ylabel("lost packets")
        axes[0].legend(fontsize=7.5, loc="upper left", handlelength=LINE_LENGTH)
    return figure
