"""The plots of Renker 2008: rates, round-trip time and loss event rate of CCID 3 over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from talkspurt.figures.chart import Line, draw, plot
from talkspurt.figures.style import INK, LINE_LENGTH, sheet
from talkspurt.reproduce.figures import Picture, companion, quiet
from talkspurt.reproduce.renker2008 import RATES, STARTED_S, gauge, linux_series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.reproduce import Reproduction
    from talkspurt.reproduce.lab import Run

BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
LINUX = INK
"""Replaced by the page's own colour in the report, also on dark screens."""
DOTS = (1.2, 1.4)
TIME, RTT = "time / s", "RTT / ms"


def pictures(found: Reproduction) -> Iterator[Picture]:
    """All plots of the note."""
    full, long, ecn = (found.run(f"full-{n}-wire") for n in ("3min", "15min", "ecn"))
    yield Picture(
        "s31-bytestream",
        "X, X_recv and X_calc, round-trip time and loss event rate of the first 20 s, and those of "
        "a Linux kernel on the same wire",
        _first(full),
        full.seed,
    )
    yield Picture(
        "s36-slow-start",
        "X_recv and round-trip time in the first second",
        _slow_start(full),
        full.seed,
    )
    yield Picture(
        "s33-x-calc-3min",
        "X_calc over three minutes",
        plot(
            "3.3: X_calc, 3 minutes",
            [
                _line(full, "equation_rate", "talkspurt", BLUE, 1e-6),
                _kernel("full", "equation_rate_bps", 1e-6),
            ],
            TIME,
            "X_calc / (Mb/s)",
            height=2.5,
        ),
        full.seed,
    )
    figure, (ax,) = sheet("3.4: round-trip time under full load", height=2.6)
    draw(
        ax,
        [
            _line(full, "srtt", "FIFO of 1000", VERMILLION, 1e3),
            _kernel("full", "rtt_ms", 1.0, "the same, Linux"),
            _line(ecn, "srtt", "marks from 200 on (ECN)", GREEN, 1e3),
        ],
        TIME,
        RTT,
    )
    quiet(ax, 200, "200 ms, printed")
    words = "Round-trip time under full load, with and without ECN"
    yield Picture("s34-rtt-load", words, figure, full.seed)
    yield Picture(
        "s34-cbr",
        "Round-trip time at 2, 5, 6 and 7 Mb/s in a cell, on the wire, and of a Linux kernel there",
        _constant(found),
        full.seed,
    )
    yield Picture("s35-15min", "X_recv and loss event rate over 15 minutes", _long(long), long.seed)
    calls = {
        words: (found.run(f"call-beside-{name}"), "call")
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


def _line(
    run: Run,
    name: str,
    label: str,
    colour: str,
    scale: float,
    to_s: float = 1e9,
    dashes: tuple[float, ...] = (),
) -> Line:
    values = gauge(run, name, 0, to_s)
    x = values["time_s"].to_list()
    y = (values["value"] * scale).to_list()
    if not x:
        return Line(label, [0.0], [float("nan")], colour)
    # A gauge holds until it changes again.
    end = min(to_s, run.duration_s)
    return Line(label, [*x, end], [*y, y[-1]], colour, dashes=dashes, steps=True)


def _kernel(run: str, column: str, scale: float, label: str = "Linux", to_s: float = 1e9) -> Line:
    """Values from a Linux kernel's sender on the same wire."""
    series = linux_series(run)
    points = [
        (time, value)
        for time, value in zip(series["time_s"], series[column], strict=True)
        if time is not None and value is not None and time <= to_s
    ]
    values = [scale * value for _, value in points]
    return Line(label, [time for time, _ in points], values, LINUX, dashes=DOTS)


def _first(full: Run) -> Figure:
    figure, axes = sheet("3.1 to 3.3: bytestream, the first 20 s", height=5.6, rows=3, sharex=True)
    rates = [
        _line(full, "rate", "X", ORANGE, 1e-6, 20),
        _line(full, "receive_rate", "X_recv", BLUE, 1e-6, 20),
        _line(full, "equation_rate", "X_calc", VERMILLION, 1e-6, 20),
        _kernel("full", "equation_rate_bps", 1e-6, "X_calc, Linux", 20),
    ]
    draw(axes[0], rates, "", "rate / (Mb/s)")
    round_trips = [
        _line(full, "srtt", "talkspurt", GREEN, 1e3, 20),
        _kernel("full", "rtt_ms", 1.0, "Linux", 20),
    ]
    draw(axes[1], round_trips, "", RTT)
    losses = [
        _line(full, "loss_event_rate", "talkspurt", VERMILLION, 100, 20),
        _kernel("full", "loss_event_rate", 100, "Linux", 20),
    ]
    draw(axes[2], losses, TIME, "p / %")
    return figure


def _slow_start(full: Run) -> Figure:
    figure, axes = sheet("3.6: slow start, the first second", height=3.8, rows=2, sharex=True)
    draw(axes[0], [_line(full, "receive_rate", "X_recv", BLUE, 1e-6, 1)], "", "X_recv / (Mb/s)")
    draw(axes[1], [_line(full, "srtt", "RTT", GREEN, 1e3, 1)], TIME, RTT)
    return figure


def _constant(found: Reproduction) -> Figure:
    figure, axes = sheet("3.2, 3.4: round-trip time at constant rates", height=6.4, rows=len(RATES))
    for ax, rate in zip(axes, RATES, strict=True):
        lines = [
            _line(found.run(f"cbr-{rate}-cell"), "srtt", "cell", ORANGE, 1e3),
            _line(found.run(f"cbr-{rate}-wire"), "srtt", "wire", GREEN, 1e3),
            _kernel(f"cbr-{rate}", "rtt_ms", 1.0, "wire, Linux"),
        ]
        draw(ax, lines, "", RTT, legend=False)
        # Clip the startup and the guest's stalls, which exceed everything else.
        own = [point for line in lines[:2] for point in zip(line.x, line.y, strict=True)]
        later = [y for x, y in own if x >= STARTED_S]
        ax.set_ylim(0, 1.25 * max(later))
        ax.set_title(f"{rate} Mb/s", loc="right", fontsize=9)
    axes[-1].set_xlabel(TIME)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower left",
        ncols=3,
        fontsize=8,
        handlelength=LINE_LENGTH,
    )
    return figure


def _long(long: Run) -> Figure:
    figure, axes = sheet("3.5: a very long run", height=4.0, rows=2, sharex=True)
    draw(axes[0], [_line(long, "receive_rate", "X_recv", BLUE, 1e-6)], "", "X_recv / (Mb/s)")
    axes[0].set_ylim(bottom=0)
    draw(axes[1], [_line(long, "loss_event_rate", "p", VERMILLION, 100)], TIME, "p / %")
    axes[1].set_yscale("log")
    return figure


DASHES = (4.0, 1.6)


def live_pictures(live: Mapping[str, Run], simulated: Mapping[str, Run]) -> Iterator[Picture]:
    """Transfers over sockets in real time, beside the simulated ones and a Linux kernel's."""
    if "full-3min-wire" in live:
        both = live["full-3min-wire"], simulated["full-3min-wire"]
        words = "X_calc, round-trip time and loss event rate of the first 20 s over sockets"
        yield Picture("live-bytestream", words, _live_first(*both))
    marks = {"FIFO of 1000": ("full-3min-wire", VERMILLION), "ECN": ("full-ecn-wire", GREEN)}
    lines = [
        _line(runs[name], "srtt", f"{label}, {where}", colour, 1e3, dashes=dashes)
        for label, (name, colour) in marks.items()
        if name in live
        for where, runs, dashes in (("live", live, ()), ("simulated", simulated, DASHES))
    ]
    if lines:
        title = "Round-trip time under full load, with and without ECN"
        lines.append(_kernel("full", "rtt_ms", 1.0, "FIFO, Linux"))
        yield Picture("live-rtt-load", title, plot(title, lines, TIME, RTT, height=2.8))


def _live_first(live: Run, simulated: Run) -> Figure:
    figure, axes = sheet("Bytestream, the first 20 s", height=5.6, rows=3, sharex=True)
    for ax, gauge_name, column, scale, unit in (
        (axes[0], "equation_rate", "equation_rate_bps", 1e-6, "X_calc / (Mb/s)"),
        (axes[1], "srtt", "rtt_ms", 1e3, RTT),
        (axes[2], "loss_event_rate", "loss_event_rate", 100, "p / %"),
    ):
        lines = [
            _line(live, gauge_name, "live", BLUE, scale, 20),
            _line(simulated, gauge_name, "simulated", ORANGE, scale, 20, DASHES),
            _kernel("full", column, 1.0 if column == "rtt_ms" else scale, "Linux", 20),
        ]
        draw(ax, lines, TIME if ax is axes[2] else "", unit)
    return figure
