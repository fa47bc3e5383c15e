"""The figures of Sarao 2019: delay, throughput and jitter over time, and by packet size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from talkspurt.figures.chart import Line, draw, plot
from talkspurt.figures.style import sheet, transport_style
from talkspurt.reproduce import hops
from talkspurt.reproduce.figures import Picture, companion, compared, tabled
from talkspurt.reproduce.sarao2019 import PROTOCOLS, WIRED, delays, running_mean_s, wired

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.reproduce import Reproduction

STYLE = {"DCCP": "dccp-ccid2"}


def colour(protocol: str) -> str:
    """A protocol's colour."""
    return transport_style(STYLE.get(protocol, protocol)).colour


def pictures(found: Reproduction) -> Iterator[Picture]:
    """All figures."""
    frames = wired(*(found.run(name) for name in WIRED.values()))
    ids = [f"table3/{p.lower()}" for p in PROTOCOLS]
    yield Picture(
        "fig1-average-delays",
        "Average delays of the five protocols: printed, talkspurt's and ns-2's",
        compared("Fig 1: average delay", "delay / ms", PROTOCOLS, tabled(found, ids)),
    )
    calls = {p: (found.run(f"{p.lower()}-companion"), "voice") for p in PROTOCOLS}
    yield Picture(
        "companion-mos",
        "Mouth-to-ear delay and MOS of G.711 calls over the same link, wired soundly",
        companion("What a caller would say: G.711 both ways, wired soundly", calls),
    )
    yield Picture(
        "fig2-average-delay-over-time",
        "Average delay so far of each protocol over the simulation time",
        plot(
            "Fig 2: average delay over simulation time",
            [
                Line(p, m["received_s"].to_list(), (1e3 * m["mean_s"]).to_list(), colour(p))
                for p, m in ((p, running_mean_s(frames[p])) for p in PROTOCOLS)
            ],
            "simulation time / s",
            "average delay / ms",
        ),
    )
    yield Picture(
        "fig3-instant-throughput",
        "Throughput of each protocol in bins of 0.5 s, both directions",
        plot(
            "Figs 3, 14, 15: throughput",
            [
                Line(
                    p,
                    [0.5 * n for n in range(21)],
                    [b / 1e3 for b in hops.binned_bps(frames[p], 0.5, 10.5)],
                    colour(p),
                    steps=True,
                )
                for p in PROTOCOLS
            ],
            "simulation time / s",
            "throughput / (kb/s)",
        ),
    )
    yield Picture(
        "fig4-instant-jitter",
        "Distance between the delays of successive arrivals, each protocol",
        plot(
            "Fig 4: instant jitter",
            [
                Line(p, j["received_s"].to_list(), j["jitter"].to_list(), colour(p))
                for p, j in ((p, _jitter(frames[p])) for p in ("TCP", "UDP", "SCTP", "TFRC"))
            ],
            "simulation time / s",
            "jitter / ms",
        ),
    )
    yield Picture(
        "fig5-13-instant-delay",
        "Delay of each packet over time, each protocol in its own axes",
        _instant(frames),
    )
    least = delays(frames["TCP"]).group_by("bytes").agg(pl.col("delay_s").min()).sort("bytes")
    yield Picture(
        "fig16-size-delay",
        "Least delay by packet size over TCP",
        plot(
            "Fig 16: packet size and minimal delay, TCP",
            [
                Line(
                    "TCP",
                    least["bytes"].to_list(),
                    (1e3 * least["delay_s"]).to_list(),
                    colour("TCP"),
                )
            ],
            "packet size / B",
            "minimal delay / ms",
            height=2.4,
        ),
    )

    yield Picture(
        "fig17-throughput-delay",
        "Average delay against throughput of received bits over SCTP, a point for each half second",
        _throughput_delay(frames["SCTP"]),
    )
    yield Picture(
        "fig18-sizes",
        "Most packets of a size generated in a second over SCTP",
        _sizes(frames["SCTP"]),
    )


def _throughput_delay(frame: pl.DataFrame) -> Figure:
    bins = (
        delays(frame)
        .group_by((pl.col("received_s") / 0.5).floor())
        .agg(pl.col("bytes").sum() * 8 / 0.5 / 1e3, pl.col("delay_s").mean() * 1e3)
        .sort("received_s")
    )
    figure, (ax,) = sheet("Fig 17: throughput and average delay, SCTP", height=2.6)
    rates, delay = bins["bytes"].to_list(), bins["delay_s"].to_list()
    draw(
        ax,
        [Line("SCTP", rates, delay, colour("SCTP"), joined=False)],
        "throughput of receiving bits / (kb/s)",
        "average delay / ms",
    )
    return figure


def _sizes(frame: pl.DataFrame) -> Figure:
    seconds = frame.group_by("bytes", pl.col("enqueued_s").floor()).len()
    most = seconds.group_by("bytes").agg(pl.col("len").max()).sort("bytes")
    figure, (ax,) = sheet(
        "Fig 18: packet size and most packets generated in a second, SCTP", height=2.6
    )
    ax.bar(most["bytes"].to_list(), most["len"].to_list(), 18, color=colour("SCTP"))
    ax.set_xlabel("packet size / B")
    ax.set_ylabel("packets / s")
    return figure


def _jitter(frame: pl.DataFrame) -> pl.DataFrame:
    packets = hops.end_to_end(frame).filter(pl.col("received_s").is_not_null()).sort("received_s")
    delay = 1e3 * (pl.col("received_s") - pl.col("sent_s"))
    jitter = delay.diff().over("flow").abs().alias("jitter")
    return packets.with_columns(jitter).drop_nulls("jitter")


def _instant(frames: dict[str, pl.DataFrame]) -> Figure:
    figure, axes = sheet(
        "Figs 5 to 13: instant delay (latency)", height=6.2, rows=len(PROTOCOLS), sharex=True
    )
    for ax, protocol in zip(axes, PROTOCOLS, strict=True):
        found = delays(frames[protocol])
        x, y = found["received_s"].to_list(), (1e3 * found["delay_s"]).to_list()
        points = Line(protocol, x, y, colour(protocol), marker=".", joined=False)
        draw(ax, [points], "", f"{protocol} / ms")
        low, high = min(y), max(y)
        if high - low < 1:
            ax.set_ylim(low - 5, high + 5)
    axes[-1].set_xlabel("simulation time / s")
    return figure
