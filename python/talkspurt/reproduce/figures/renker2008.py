"""The plots of Renker 2008: rates, round-trip time and loss event rate of CCID 3 over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from talkspurt.figures.style import sheet
from talkspurt.reproduce.figures import Line, Picture, companion, draw, plot, quiet
from talkspurt.reproduce.renker2008 import RADIOS, gauge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.reproduce import Reproduction
    from talkspurt.reproduce.lab import Case

BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
TIME, RTT = "time / s", "RTT / ms"


def pictures(found: Reproduction) -> Iterator[Picture]:
    """Every plot of the note."""
    radio = RADIOS[-1]
    full, long, ecn = (found.cases[f"full-{n}-{radio}"] for n in ("3min", "15min", "ecn"))
    yield Picture(
        "s31-bytestream",
        "X, X_recv and X_calc, round-trip time and loss event rate of the first 20 s",
        _first(full),
    )
    yield Picture(
        "s36-slow-start",
        "X_recv and round-trip time in the first second",
        _slow_start(full),
    )
    yield Picture(
        "s33-x-calc-3min",
        "X_calc over three minutes",
        plot(
            "3.3: X_calc, 3 minutes",
            [_line(full, "equation_rate", "X_calc", BLUE, 1e-6)],
            TIME,
            "Mb/s",
            height=2.5,
        ),
    )
    figure, (ax,) = sheet("3.4: round-trip time under full load", height=2.6)
    draw(
        ax,
        [
            _line(full, "srtt", "FIFO of 1000", VERMILLION, 1e3),
            _line(ecn, "srtt", "marks from 200 on (ECN)", GREEN, 1e3),
        ],
        TIME,
        RTT,
    )
    quiet(ax, 200, "200 ms, printed")
    yield Picture("s34-rtt-load", "Round-trip time under full load, with and without ECN", figure)
    yield Picture(
        "s34-cbr",
        "Round-trip time at 2, 5, 6 and 7 Mb/s",
        _constant(found),
    )
    yield Picture("s35-15min", "X_recv and loss event rate over 15 minutes", _long(long))
    calls = {
        words: (found.cases[f"call-beside-{name}"], "call")
        for words, name in (
            ("FIFO", "fifo"),
            ("marks at 200", "marks"),
            ("CoDel", "codel"),
            ("FQ-CoDel", "fq-codel"),
        )
    }
    yield Picture(
        "companion-mos",
        "Mouth-to-ear delay and MOS of a UDP call beside the transfer",
        companion("What a caller beside the transfer would say, by queue", calls),
    )


def _line(case: Case, name: str, label: str, colour: str, scale: float, to_s: float = 1e9) -> Line:
    values = gauge(case, name, 0, to_s)
    x = values["time_s"].to_list()
    y = (values["value"] * scale).to_list()
    if not x:
        return Line(label, [0.0], [float("nan")], colour)
    # A gauge holds until it changes again.
    end = min(to_s, case.result.duration_s)
    return Line(label, [*x, end], [*y, y[-1]], colour, steps=True)


def _first(full: Case) -> Figure:
    figure, axes = sheet("3.1 to 3.3: bytestream, the first 20 s", height=5.6, rows=3, sharex=True)
    rates = [
        _line(full, "rate", "X", ORANGE, 1e-6, 20),
        _line(full, "receive_rate", "X_recv", BLUE, 1e-6, 20),
        _line(full, "equation_rate", "X_calc", VERMILLION, 1e-6, 20),
    ]
    draw(axes[0], rates, "", "Mb/s")
    draw(axes[1], [_line(full, "srtt", "RTT", GREEN, 1e3, 20)], "", RTT)
    draw(axes[2], [_line(full, "loss_event_rate", "p", VERMILLION, 100, 20)], TIME, "p / %")
    return figure


def _slow_start(full: Case) -> Figure:
    figure, axes = sheet("3.6: slow start, the first second", height=3.8, rows=2, sharex=True)
    draw(axes[0], [_line(full, "receive_rate", "X_recv", BLUE, 1e-6, 1)], "", "X_recv / (Mb/s)")
    draw(axes[1], [_line(full, "srtt", "RTT", GREEN, 1e3, 1)], TIME, RTT)
    return figure


def _constant(found: Reproduction) -> Figure:
    rates = (2, 5, 6, 7)
    figure, axes = sheet("3.2, 3.4: round-trip time at constant rates", height=6.0, rows=len(rates))
    for ax, rate in zip(axes, rates, strict=True):
        draw(
            ax,
            [_line(found.cases[f"cbr-{rate}-{RADIOS[-1]}"], "srtt", "RTT", GREEN, 1e3)],
            "",
            "ms",
        )
        ax.set_ylim(bottom=0)
        ax.set_title(f"{rate} Mb/s", loc="right", fontsize=9)
    axes[-1].set_xlabel(TIME)
    for ax in axes:
        ax.set_ylabel(RTT)
    return figure


def _long(long: Case) -> Figure:
    figure, axes = sheet("3.5: a very long run", height=4.0, rows=2, sharex=True)
    draw(axes[0], [_line(long, "receive_rate", "X_recv", BLUE, 1e-6)], "", "X_recv / (Mb/s)")
    axes[0].set_ylim(bottom=0)
    draw(axes[1], [_line(long, "loss_event_rate", "p", VERMILLION, 100)], TIME, "p / %")
    axes[1].set_yscale("log")
    return figure
