"""The figures of Maldonado et al. 2005: fairness, rates, smoothness, talk after silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from talkspurt.figures.chart import Line, draw
from talkspurt.figures.style import DASHES, sheet, transport_style
from talkspurt.reproduce.figures import Picture, companion, line_of, quiet
from talkspurt.reproduce.maldonado2005 import (
    MIX_S,
    MIXES,
    SCALES_S,
    SPOKEN_BPS,
    mean_share,
    sent_bytes,
    variation_by_scale,
)
from talkspurt.reproduce.sample import Sample

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.reproduce import Reproduction

TCP, TFRC, TB = (transport_style(name).colour for name in ("tcp", "tfrc", "tfrc-tb"))
NAMES = {"tfrc": "TFRC", "tb": "TFRC-TB"}
COLOURS = {"tfrc": TFRC, "tb": TB}


def pictures(found: Reproduction) -> Iterator[Picture]:
    """All figures."""
    yield Picture(
        "fig3-fairness",
        "Mean throughput by the fair share of TCP, TFRC and TFRC-TB, 1, 8 and 64 of each",
        _fairness(found),
    )
    calls = {
        "UDP": (found.run("call-udp"), "call"),
        "TFRC": (found.run("call-tfrc"), "call"),
        "TFRC-TB": (found.run("call-tfrc-tb"), "call"),
        "CCID 4": (found.run("call-ccid4"), "call"),
    }
    yield Picture(
        "companion-mos",
        "Mouth-to-ear delay and MOS of a call beside eight uploads over the same link",
        companion("What a caller would say, beside eight uploads", calls),
    )
    yield Picture(
        "fig4-over-time",
        "Throughput over time of four flows out of eight TCP and eight TFRC or TFRC-TB flows",
        _over_time(found),
        found.run("mix-tb-8").seed,
    )
    yield Picture(
        "fig5-variation",
        "Coefficient of variation of the sending rate against the time scale, 16 sources",
        _variation(found),
    )
    for figure, speed, words in (
        ("6", "slow", "no faster restart"),
        ("7", "fast", "faster restart"),
    ):
        yield Picture(
            f"fig{figure}-{speed}",
            f"Sending rate of a call with 10 s of talk and 10 s of silence, {words}",
            _talk(found, speed, f"Fig {figure}: talk and silence, {words}"),
            found.run(f"talk-tb-{speed}-inferred").seed,
        )


def _fairness(found: Reproduction) -> Figure:
    count = found.cases[f"mix-tb-{MIXES[0]}"].replications
    figure, (ax,) = sheet(f"Fig 3: normalised mean throughput, mean of {count} runs", height=3.1)
    lines = []
    for kind in ("tfrc", "tb"):
        dashes = DASHES[0 if kind == "tfrc" else 1]
        for who, colour in (("tcp", TCP), ("other", COLOURS[kind])):
            runs = [found.cases[f"mix-{kind}-{n}"].runs for n in MIXES]
            shares = [Sample(tuple(mean_share(run, who) for run in each)) for each in runs]
            label = f"TCP with {NAMES[kind]}" if who == "tcp" else NAMES[kind]
            lines.append(line_of(label, MIXES, shares, colour, dashes, "o"))
    draw(ax, lines, "flows of each kind", "throughput / fair share")
    ax.set_xscale("log", base=2)
    ax.set_xticks(MIXES, [str(n) for n in MIXES])
    quiet(ax, 1.0, "fair share")
    return figure


def _over_time(found: Reproduction) -> Figure:
    figure, axes = sheet(
        "Fig 4: flows over time, 8 of each", height=4.4, rows=2, sharex=True, sharey=True
    )
    for ax, kind in zip(axes, ("tfrc", "tb"), strict=True):
        run = found.run(f"mix-{kind}-8")
        lines = []
        for n in (1, 2):
            x = [float(second) for second in range(MIX_S)]
            tcp = [8e-3 * b for b in run.series(f"tcp-{n}")["received_bytes"].to_list()]
            other = [8e-3 * b for b in run.series(f"other-{n}")["received_bytes"].to_list()]
            lines.append(Line(f"TCP {n}", x, tcp, TCP, DASHES[n - 1]))
            lines.append(Line(f"{NAMES[kind]} {n}", x, other, COLOURS[kind], DASHES[n - 1]))
        draw(ax, lines, "", "kb/s")
    axes[-1].set_xlabel("time / s")
    return figure


def _variation(found: Reproduction) -> Figure:
    count = found.cases["web-tb-inferred"].replications
    title = f"Fig 5: coefficient of variation, 16 sources, mean of {count} runs"
    figure, (ax,) = sheet(title, height=2.9)
    lines = []
    for kind in ("tfrc", "tb"):
        each = [variation_by_scale(run) for run in found.cases[f"web-{kind}-inferred"].runs]
        means = [Sample(tuple(of[scale] for of in each)) for scale in SCALES_S]
        lines.append(line_of(NAMES[kind], SCALES_S, means, COLOURS[kind]))
    draw(ax, lines, "time scale / s", "coefficient of variation")
    ax.set_xscale("log")
    ax.set_xticks(SCALES_S, [f"{scale:g}" for scale in SCALES_S])
    ax.minorticks_off()
    ax.set_ylim(bottom=0)
    return figure


def _talk(found: Reproduction, speed: str, title: str) -> Figure:
    figure, axes = sheet(title, height=4.0, rows=2, sharex=True, sharey=True)
    for ax, kind in zip(axes, ("tfrc", "tb"), strict=True):
        run = found.run(f"talk-{kind}-{speed}-inferred")
        bins = [8e-3 * b / 0.2 for b in sent_bytes(run, "call")]
        x = [0.2 * n for n in range(len(bins))]
        draw(
            ax,
            [Line(NAMES[kind], x, bins, COLOURS[kind], steps=True)],
            "",
            f"{NAMES[kind]} / (kb/s)",
        )
        ax.set_xlim(100, 220)
        quiet(ax, SPOKEN_BPS / 1e3, "80 kb/s")
    axes[-1].set_xlabel("time / s")
    return figure
