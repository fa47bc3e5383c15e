"""The figures of Nor et al. 2010: throughput at the bottleneck over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from talkspurt.figures.chart import Line, draw, plot
from talkspurt.figures.style import DASHES, shade, sheet, transport_style
from talkspurt.figures.style import SHADES as FLOW_SHADES
from talkspurt.reproduce.figures import Picture, companion, quiet
from talkspurt.reproduce.nor2010 import BESIDE_FTP, BIN_S, PACKET_BITS, THRESHOLDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.reproduce import Reproduction
    from talkspurt.reproduce.lab import Run

SHADES = {20: "#D55E00", 50: "#E69F00", 100: "#009E73", 150: "#56B4E9", 200: "#0072B2"}
"""Colours of the thresholds."""


def pictures(found: Reproduction) -> Iterator[Picture]:
    """All figures."""
    for figure, kind, words in (
        ("3", "udp", "TCP with three UDP flows of 800 kb/s"),
        ("4", "ccid2", "TCP with two CCID 2 flows"),
        ("5", "ccid3", "TCP with two CCID 3 flows"),
    ):
        run = found.run(f"load-{kind}-inferred")
        yield Picture(
            f"fig{figure}-{kind}",
            f"Throughput of {words} over a link of 2 Mb/s and 300 ms",
            plot(f"Fig {figure}: {words} (300 ms)", _loads(run, kind), TIME, RATE),
            run.seed,
        )
    ccid3 = found.run("call-ccid3-inferred")
    lines = [
        _call(found.run("call-100-300ms-inferred"), "CCID 2", transport_style("dccp-ccid2").colour),
        _call(ccid3, "CCID 3 (ns-2's)", transport_style("dccp-ccid3").colour),
        _call(found.run("call-ccid3-rfc"), "CCID 3 (RFC 5348)", "#1F5F7A", (5, 2), "call"),
    ]
    yield Picture(
        "fig6-ccid2-ccid3",
        "Throughput of G.711 over CCID 2 and CCID 3 at 300 ms",
        plot("Fig 6: G.711 over CCID 2 and CCID 3 (300 ms)", lines, TIME, RATE),
    )
    for figure, delay in (("7", "20ms"), ("8", "300ms")):
        lines = [
            _call(found.run(f"call-{t}-{delay}-inferred"), f"threshold {t}", SHADES[t], DASHES[n])
            for n, t in enumerate(THRESHOLDS)
        ]
        yield Picture(
            f"fig{figure}-{delay}",
            f"Throughput of G.711 over CCID 2 at {delay} with thresholds of 20 to 200 packets",
            plot(f"Fig {figure}: CCID 2, {delay[:-2]} ms", lines, TIME, RATE),
        )
    yield Picture(
        "fig9-13-three-flows",
        "Throughput of three CCID 2 flows beside FTP, one panel for each threshold",
        _three(found),
        found.run(f"three-{BESIDE_FTP[0]}-inferred").seed,
    )
    calls = {f"CCID 2\n{t}": (found.run(f"call-{t}-rfc"), "call") for t in THRESHOLDS}
    calls["CCID 3"] = (found.run("call-ccid3-rfc"), "call")
    calls["UDP"] = (found.run("call-udp-rfc"), "call")
    yield Picture(
        "companion-mos",
        "Mouth-to-ear delay and MOS of a G.711 call of 40 s at 300 ms by transport and threshold",
        companion("What a caller would say (300 ms, by the RFCs)", calls),
    )


TIME, RATE = "time / s", "throughput / (kb/s)"


def _kbps(run: Run, flow: str, bits: float) -> tuple[list[float], list[float]]:
    series = run.series(flow)
    packets = series["received_packets"]
    return series["time_s"].to_list(), [bits / 1e3 / BIN_S * float(n) for n in packets]


def _loads(run: Run, kind: str) -> list[Line]:
    tcp = _kbps(run, "ftp", 8320)
    lines = [Line("TCP", *tcp, transport_style("tcp").colour)]
    colour = transport_style("udp" if kind == "udp" else f"dccp-{kind}").colour
    flows = [name for name in run.flows["name"] if name.startswith("call")]
    for n, flow in enumerate(flows):
        words = f"{kind.upper()} {n + 1}"
        lines.append(Line(words, *_kbps(run, flow, 8000), colour, DASHES[n]))
    return lines


def _call(
    run: Run, label: str, colour: str, dashes: tuple[float, ...] = (), flow: str = "call-1"
) -> Line:
    return Line(label, *_kbps(run, flow, PACKET_BITS), colour, dashes)


def _three(found: Reproduction) -> Figure:
    figure, axes = sheet(
        "Figs 9 to 13: three CCID 2 flows beside FTP (300 ms)",
        height=8.0,
        rows=len(BESIDE_FTP),
        sharex=True,
        sharey=True,
    )
    colour = transport_style("dccp-ccid2").colour
    for ax, threshold in zip(axes, BESIDE_FTP, strict=True):
        run = found.run(f"three-{threshold}-inferred")
        lines = [
            Line(
                f"flow {n}",
                *_kbps(run, f"call-{n}", PACKET_BITS),
                shade(colour, FLOW_SHADES[n - 1]),
                DASHES[n - 1],
            )
            for n in (1, 2, 3)
        ]
        draw(ax, lines, "", RATE, legend=threshold == BESIDE_FTP[0])
        ax.set_xlim(15, 60)
        quiet(ax, 64, "64 kb/s")
        ax.set_title(f"threshold {threshold}", loc="right", fontsize=9, fontweight="normal")
    axes[-1].set_xlabel(TIME)
    return figure
