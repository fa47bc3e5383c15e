"""The page of wifi.py: tables, figures, and statements with the conditions they assert."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl
from common import Asked, Interval, Page, paired

from talkspurt.figures import styled
from talkspurt.figures.style import BLUE, GREEN, LINE_LENGTH, ORANGE, PURPLE, TEAL, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEADY_S = 30.0
"""End of the start phase; steady values are measured from this time on."""
P_FLOOR = 1e-4
"""The smallest loss event rate in Linux's table (`rate.p_floor`)."""
RATE_BPS = 7.15e6
PAYLOAD_BYTES = 1400
QUEUES = {
    "FIFO": (VERMILLION, ()),
    "step at 200": (GREEN, ()),
    "RED from 200": (TEAL, (6, 2.5)),
    "CoDel": (BLUE, ()),
    "PIE": (ORANGE, (2, 2)),
    "FQ-CoDel": (PURPLE, (8, 2, 2, 2)),
}
"""Colour and dashes of each queue."""
AT_200 = ("step at 200", "RED from 200")
TODAY = ("CoDel", "PIE", "FQ-CoDel")
Traces = dict[tuple[str, ...], pl.DataFrame]
"""The smoothed round-trip time over time, for the first seed of each setting."""


def some(rows: pl.DataFrame, **setting: str) -> pl.DataFrame:
    """Return the rows of a setting."""
    return rows.filter(**setting)


def over(rows: pl.DataFrame, value: str) -> Interval:
    """Return the mean and the interval of a measure over the seeds."""
    return Interval.of(rows[value].drop_nulls().to_list())


def every(rows: pl.DataFrame, value: str, *, of: Sequence[str], most: float) -> bool:
    """Whether the value is at most `most` in every run with these queues."""
    return bool((rows.filter(pl.col("queue").is_in(of))[value] <= most).all())


COLUMNS = (
    ("first signal / s", "heard_s", 1.0, 2),
    ("maximum delay / ms", "wait_max", 1e3, 0),
    ("mean delay / ms", "wait_mean", 1e3, 1),
    ("packets lost", "lost", 1.0, 0),
    ("goodput / (Mbit/s)", "goodput", 1e-6, 2),
    ("variation of X", "x_variation", 1.0, 3),
)
"""Columns of the tables: heading, measure, scale, digits."""


def means(page: Page, rows: pl.DataFrame) -> None:
    """Write a table of means with intervals, with a row per queue."""
    lines = []
    for queue in QUEUES:
        mine = some(rows, queue=queue)
        cells = (over(mine, name).show(digits, scale) for _, name, scale, digits in COLUMNS)
        lines.append([queue, *cells])
    page.table(["queue", *(heading for heading, *_ in COLUMNS)], lines)


def round_trips(page: Page, rows: pl.DataFrame) -> None:
    """Write a table of the smoothed round-trip time, the queue length and X."""
    columns = (
        ("mean RTT / ms", "rtt_mean", 1e3, 1),
        ("RTT, 95 % of the time below / ms", "rtt_p95", 1e3, 1),
        ("maximum RTT / ms", "rtt_max", 1e3, 0),
        ("mean queue / packets", "queue_mean", 1.0, 0),
        ("maximum queue / packets", "queue_max", 1.0, 0),
        ("minimum X / (Mbit/s)", "x_least", 1e-6, 2),
        ("maximum X / (Mbit/s)", "x_most", 1e-6, 2),
    )
    page.table(
        ["queue", *(heading for heading, *_ in columns)],
        [
            [
                queue,
                *(over(some(rows, queue=queue), n).show(d, scale) for _, n, scale, d in columns),
            ]
            for queue in QUEUES
        ],
    )


def differences(page: Page, rows: pl.DataFrame) -> None:
    """Write a table of differences from the FIFO, paired by seed."""
    found = {name: paired(rows, "queue", "FIFO", name) for _, name, *_ in COLUMNS}
    lines = [
        [queue, *(found[n][queue].show(d, scale, sign=True) for _, n, scale, d in COLUMNS)]
        for queue in QUEUES
        if queue != "FIFO"
    ]
    page.table(["difference from the FIFO", *(heading for heading, *_ in COLUMNS)], lines)


def signals(page: Page, rows: pl.DataFrame) -> dict[str, dict[str, Interval]]:
    """Write a table of the effect of marks instead of drops by the same queue, paired by seed."""
    found: dict[str, dict[str, Interval]] = {}
    for queue in QUEUES:
        mine = some(rows, queue=queue)
        found[queue] = {
            name: paired(mine, "signal", "drops", name)["marks"] for _, name, *_ in COLUMNS
        }
    lines = [
        [queue, *(found[queue][n].show(d, scale, sign=True) for _, n, scale, d in COLUMNS)]
        for queue in QUEUES
    ]
    page.table(["marks minus drops", *(heading for heading, *_ in COLUMNS)], lines)
    return found


def rtt_figure(traces: Traces) -> Figure:
    """Plot the round-trip time in the first twenty seconds and over the whole run, for Linux."""
    from matplotlib.figure import Figure

    with styled(math=True):
        figure = Figure(figsize=(8.4, 3.1))
        left, right = figure.subplots(1, 2, sharey=True)
        for queue, (colour, dashes) in QUEUES.items():
            if queue in ("PIE", "FQ-CoDel"):  # not distinguishable from CoDel
                continue
            for ax in (left, right):
                line(ax, traces[queue, "marks", "linux"], colour, dashes, queue)
        left.set_title("Smoothed round-trip time, Linux profile, marks")
        left.set_xlim(0, 20)
        right.set_xlim(0, 180)
        left.set_ylabel("RTT / ms")
        left.set_yscale("log")
        left.set_yticks([3, 10, 30, 100, 300, 1000], ["3", "10", "30", "100", "300", "1000"])
        left.minorticks_off()
        for ax in (left, right):
            ax.set_xlabel("time / s")
        figure.legend(
            *right.get_legend_handles_labels(),
            loc="outside lower center",
            ncols=4,
            handlelength=LINE_LENGTH,
            fontsize=8,
        )
    return figure


def line(ax: Axes, trace: pl.DataFrame, colour: str, dashes: tuple[float, ...], label: str) -> None:
    """Plot a gauge in milliseconds, thinned to a few thousand points."""
    thin = trace.gather_every(max(1, trace.height // 4000))
    style = {"dashes": dashes} if dashes else {"linestyle": "-"}
    ax.plot(thin["time_s"], thin["value"] * 1e3, color=colour, label=label, linewidth=1.2, **style)


def long_figure(traces: Traces) -> Figure:
    """Plot the round-trip time over sixteen minutes, by profile."""
    from matplotlib.figure import Figure

    with styled(math=True):
        figure = Figure(figsize=(8.4, 3.1))
        axes = figure.subplots(1, 2, sharey=True)
        for ax, ends, words in zip(
            axes, ("linux", "rfc"), ("Linux profile", "RFC profile"), strict=True
        ):
            for queue in ("FIFO", "step at 200", "CoDel"):
                colour, dashes = QUEUES[queue]
                line(ax, traces[queue, ends], colour, dashes, queue)
            ax.set_title(f"RTT with marks, {words}")
            ax.set_xlabel("time / s")
            ax.set_ylim(0, 1100)
            ax.set_xlim(0, 960)
        axes[0].set_ylabel("RTT / ms")
        figure.legend(
            *axes[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=3,
            handlelength=LINE_LENGTH,
            fontsize=8,
        )
    return figure


def milliseconds(label: str) -> float:
    """Convert the label of a buffer to milliseconds."""
    return float(label.removesuffix("ms"))


def mos_figure(rows: pl.DataFrame, buffers: Sequence[str]) -> Figure:
    """Plot the MOS against the playout buffer, with a line per queue."""
    from matplotlib.figure import Figure

    with styled(math=True):
        figure = Figure(figsize=(7.2, 3.1))
        ax = figure.subplots()
        x = [milliseconds(label) for label in buffers]
        for queue, (colour, dashes) in QUEUES.items():
            found = [over(some(rows, queue=queue, buffer=label), "mos") for label in buffers]
            style = {"dashes": dashes} if dashes else {"linestyle": "-"}
            y = [one.mean for one in found]
            ax.plot(x, y, color=colour, marker="o", markersize=3.5, label=queue, **style)
            ax.fill_between(
                x, [f.low for f in found], [f.high for f in found], color=colour, alpha=0.2, lw=0
            )
        ax.set_title("MOS of a call beside the transfer, Linux profile, marks")
        ax.set_xlabel("playout delay after capture / ms")
        ax.set_ylabel("MOS")
        ax.set_ylim(1, 4.6)
        ax.set_xlim(0, 1.02 * max(x))
        figure.legend(loc="outside right upper", handlelength=LINE_LENGTH, fontsize=8)
    return figure


def best_buffers(rows: pl.DataFrame, buffers: Sequence[str]) -> dict[str, str]:
    """Return the buffer with the best mean MOS for each queue."""
    return {
        queue: max(buffers, key=lambda b: over(some(rows, queue=queue, buffer=b), "mos").mean)
        for queue in QUEUES
    }


QUESTION = """\
This page examines whether ECN improves CCID 3 on a wireless link with a long queue: the queue marks
packets from a length of 200 packets on, instead of dropping packets at 1000. A [note of
2008](../studies.md) (Renker, CCID 3 over WiFi) asked for this; DCCP did not support ECN then. The
network is that of the note: a payload of 1400 bytes, a round-trip time of 2 ms, 7.15 Mbit/s, and a
queue of a thousand packets. A telephone call shares the link with the transfer. Numbers are means
over seeds with 95 % intervals (Student's); differences are paired by seed."""


def answer(page: Page, wire: Asked, long: Asked, call: Asked) -> None:
    """Write the summary."""
    marks = some(wire.rows, signal="marks", ends="linux")
    fifo, step = (some(marks, queue=queue) for queue in ("FIFO", "step at 200"))
    sooner = {name: paired(marks, "queue", "FIFO", name)["step at 200"] for _, name, *_ in COLUMNS}
    longest = max(over(some(marks, queue=q), "wait_max").high for q in ("CoDel", "FQ-CoDel"))
    page.heading("Summary")
    page.claim(
        "**ECN improves the start of a transfer.** With Linux's profile, the sender gets the first "
        f"congestion signal after {over(step, 'heard_s').show(2)} s instead of "
        f"{over(fifo, 'heard_s').show(2)} s. The maximum queueing delay is "
        f"{over(step, 'wait_max').show(0, 1e3)} ms instead of "
        f"{over(fifo, 'wait_max').show(0, 1e3)} ms. No packet of the transfer is lost in any "
        f"run, instead of {over(fifo, 'lost').show(0)} packets. The goodput over the three "
        f"minutes changes by {sooner['goodput'].show(2, 1e-6, sign=True)} Mbit/s.",
        sooner["heard_s"].high < 0,
        sooner["wait_max"].high < 0,
        bool((step["lost"] == 0).all()),
        bool((fifo["lost"] > 0).all()),
        sooner["goodput"].low > 0,
    )
    rest = some(long.rows, ends="linux")
    at_rest = {queue: over(some(rest, queue=queue), "rtt_last") for queue in QUEUES}
    rfc = {queue: over(some(long.rows, ends="rfc", queue=queue), "rtt_last") for queue in QUEUES}
    page.claim(
        "**ECN does not change the steady state of Linux.** In the last third of "
        f"sixteen minutes, the round-trip time is {at_rest['FIFO'].show(1, 1e3)} ms with the FIFO "
        f"and {at_rest['step at 200'].show(1, 1e3)} ms with the queue that marks at 200. With "
        f"Linux's profile, {over(some(rest, queue='step at 200'), 'queue_mean').show(0)} packets "
        "are queued on average, which is below the marking threshold of 200. With the RFCs' "
        "profile the FIFO queue keeps growing, and marks limit the round-trip time to "
        f"{rfc['step at 200'].show(0, 1e3)} ms instead of {rfc['FIFO'].show(0, 1e3)} ms or more.",
        abs(at_rest["step at 200"].mean / at_rest["FIFO"].mean - 1) < 0.01,
        over(some(rest, queue="step at 200"), "queue_mean").high < 150,
        rfc["step at 200"].high < rfc["FIFO"].low / 2,
    )
    page.claim(
        "**Queues that control the delay perform better.** With CoDel and FQ-CoDel with marks, "
        "the first congestion signal arrives after "
        f"{over(some(marks, queue='CoDel'), 'heard_s').show(2)} s and "
        f"{over(some(marks, queue='FQ-CoDel'), 'heard_s').show(2)} s. The maximum queueing delay "
        f"is {over(some(marks, queue='CoDel'), 'wait_max').show(0, 1e3)} ms and "
        f"{over(some(marks, queue='FQ-CoDel'), 'wait_max').show(0, 1e3)} ms. The mean queueing "
        f"delay is {over(some(marks, queue='CoDel'), 'wait_mean').show(1, 1e3)} ms and "
        f"{over(some(marks, queue='FQ-CoDel'), 'wait_mean').show(1, 1e3)} ms instead of "
        f"{over(fifo, 'wait_mean').show(1, 1e3)} ms.",
        *(over(some(marks, queue=q), "heard_s").high < 0.2 for q in ("CoDel", "FQ-CoDel")),
        longest < over(step, "wait_max").low,
        *(
            over(some(marks, queue=q), "wait_mean").high < over(step, "wait_mean").low / 5
            for q in TODAY
        ),
    )
    buffers = call.study.axis("buffer").labels
    best = best_buffers(call.rows, buffers)
    scores = {q: over(some(call.rows, queue=q, buffer=best[q]), "mos") for q in QUEUES}
    ranks = ("FIFO", "RED from 200", "step at 200", "PIE", "CoDel", "FQ-CoDel")
    page.claim(
        "**The MOS of a call beside the transfer improves.** Compared with the FIFO, it changes "
        f"by {against_fifo(call.rows, best, 'step at 200').show(2, sign=True)} with marks at 200, "
        f"by {against_fifo(call.rows, best, 'CoDel').show(2, sign=True)} with CoDel and by "
        f"{against_fifo(call.rows, best, 'FQ-CoDel').show(2, sign=True)} with FQ-CoDel. Each "
        "listener uses the playout buffer with the best score. The MOS is "
        f"{scores['FIFO'].show(2)} with the FIFO, {scores['step at 200'].show(2)} with marks, "
        f"{scores['CoDel'].show(2)} with CoDel and {scores['FQ-CoDel'].show(2)} with FQ-CoDel.",
        *(against_fifo(call.rows, best, q).low > 0 for q in QUEUES if q != "FIFO"),
        scores["FIFO"].mean < min(scores[q].mean for q in AT_200),
        max(scores[q].mean for q in AT_200) < min(scores[q].mean for q in ("CoDel", "PIE")),
        max(scores[q].mean for q in ranks[:-1]) < scores["FQ-CoDel"].mean,
    )


def against_fifo(rows: pl.DataFrame, best: dict[str, str], queue: str) -> Interval:
    """Return the difference in MOS from the FIFO, each with its best buffer, paired by seed."""
    both = pl.concat([some(rows, queue=q, buffer=best[q]) for q in ("FIFO", queue)])
    return paired(both, "queue", "FIFO", "mos")[queue]


def start(page: Page, wire: Asked, traces: Traces) -> None:
    """Write the results on the first congestion signal."""
    page.heading("First congestion signal")
    page.text(
        "*first signal* is the time from the establishment of the connection to the sender's "
        "first loss event rate above zero, caused by a loss or a mark. *delay* is the queueing "
        "delay of all packets in front of the radio. *variation of X* is the coefficient of "
        "variation of the allowed sending rate X over time (standard deviation divided by mean), "
        f"from {STEADY_S:.0f} s on. Profile `linux`, ECN on; the FIFO does not mark."
    )
    marks = some(wire.rows, signal="marks", ends="linux")
    means(page, marks)
    differences(page, marks)
    page.text("Smoothed round-trip time of the sender over the whole run, and X from 30 s on:")
    round_trips(page, marks)
    page.figure("rtt", rtt_figure(traces), "Round-trip time over time, by queue")
    fifo, step = (some(marks, queue=queue) for queue in ("FIFO", "step at 200"))
    late = [over(each, "late_s") for each in (fifo, step)]
    page.claim(
        "In slow start, the queue reaches 200 packets long before it reaches a thousand. A loss "
        "is also detected late, because the packet behind the lost one must pass through the "
        "full queue. From the time at which 200 packets are queued (a mean over 100 ms), the "
        f"sender receives the signal after {late[0].show(2)} s by a loss at 1000 packets, and "
        f"after {late[1].show(2)} s by a mark.",
        late[1].high < late[0].low,
    )
    rfc = some(wire.rows, signal="marks", ends="rfc")
    less = {
        name: turned(paired(rfc, "queue", "FIFO", name)["step at 200"])
        for name in ("heard_s", "wait_max", "lost")
    }
    page.claim(
        "With the RFCs' profile the effect is similar: the first signal arrives "
        f"{less['heard_s'].show(2)} s earlier, the maximum queueing delay is "
        f"{less['wait_max'].show(0, 1e3)} ms shorter, and {less['lost'].show(0)} packets fewer are "
        "lost.",
        *(one.low > 0 for one in less.values()),
    )


def turned(one: Interval) -> Interval:
    """Negate a difference."""
    return Interval(-one.mean, -one.high, -one.low, one.count)


def rest(page: Page, long: Asked, traces: Traces) -> None:
    """Write the results on the steady state of the queue."""
    page.heading("Steady state")
    rows = long.rows
    lines = []
    for queue in QUEUES:
        cells = [
            over(some(rows, queue=queue, ends=ends), name).show(digits, scale)
            for ends in ("linux", "rfc")
            for name, scale, digits in (("rtt_middle", 1e3, 1), ("rtt_last", 1e3, 1))
        ]
        goodput = [
            over(some(rows, queue=queue, ends=e), "goodput").show(3, 1e-6) for e in ("linux", "rfc")
        ]
        lines.append([queue, *cells[:2], goodput[0], *cells[2:], goodput[1]])
    page.text(
        "Mean round-trip time in the second and the last third of sixteen minutes, with marks and "
        "without a call:"
    )
    page.table(
        [
            "queue",
            *("Linux: RTT, second third / ms", "last third / ms", "goodput / (Mbit/s)"),
            *("RFCs: RTT, second third / ms", "last third / ms", "goodput / (Mbit/s)"),
        ],
        lines,
    )
    page.figure("long", long_figure(traces), "Round-trip time over sixteen minutes")
    linux = {q: some(rows, ends="linux", queue=q) for q in QUEUES}
    carried = RATE_BPS * PAYLOAD_BYTES / float(linux["FIFO"]["ip_bytes"].mean())
    closed = 8 * PAYLOAD_BYTES / carried * math.sqrt(3 / (2 * P_FLOOR))
    page.claim(
        "**Linux's profile** converges to the limit of its lookup table. The table contains no "
        "loss event rate below 10⁻⁴, so X cannot exceed *s*/R · √(3/(2·10⁻⁴)). The sending rate "
        "equals the link's rate if R is "
        f"*s*/C · √15000 = {closed * 1e3:.1f} ms. The mean of the last third is "
        f"{over(linux['FIFO'], 'rtt_last').show(1, 1e3)} ms with the FIFO, and "
        f"{over(linux['step at 200'], 'rtt_last').show(1, 1e3)} and "
        f"{over(linux['RED from 200'], 'rtt_last').show(1, 1e3)} ms with the two queues that mark "
        "at 200. The 200 ms of the note are thus a property of the sender, not of the path or the "
        "queue, and a marking threshold above this queue length does not change them.",
        *(abs(over(linux[q], "rtt_last").mean / closed - 1) < 0.01 for q in ("FIFO", *AT_200)),
    )
    rfc = {q: some(rows, ends="rfc", queue=q) for q in QUEUES}
    worth = 200 * 8 * float(rfc["FIFO"]["ip_bytes"].mean()) / RATE_BPS
    grows = Interval.of((rfc["FIFO"]["rtt_last"] - rfc["FIFO"]["rtt_middle"]).to_list())
    page.claim(
        "**The RFCs' profile** has no such table, and with the FIFO the queue keeps growing: the "
        f"round-trip time increases by {grows.show(0, 1e3)} ms from the second third to the last, "
        f"to {over(rfc['FIFO'], 'rtt_last').show(0, 1e3)} ms. Marks at 200 limit it permanently "
        f"to {over(rfc['step at 200'], 'rtt_last').show(0, 1e3)} ms, less than the "
        f"{worth * 1e3:.0f} ms that it takes to send 200 packets.",
        grows.low > 0,
        over(rfc["step at 200"], "rtt_last").high < worth,
        over(rfc["FIFO"], "rtt_last").low > 1.5 * worth,
    )


def or_drops(page: Page, wire: Asked) -> None:
    """Write the separate effects of the queue and of marks."""
    page.heading("Marks compared with drops")
    page.text(
        "This section separates the effect of marks from the effect of a queue that signals "
        "early. If the endpoints do not support ECN, the same queues drop the packets that they "
        "would mark. Profile `linux`; differences are paired by seed."
    )
    found = signals(page, some(wire.rows, ends="linux"))
    early = [q for q in QUEUES if q != "FIFO"]
    heard = max(abs(found[q]["heard_s"].low) for q in early)
    waits = max(max(abs(found[q]["wait_mean"].low), abs(found[q]["wait_mean"].high)) for q in early)
    page.claim(
        "Most of the effect is that of the queue. The times of the first signal by a drop and by "
        f"a mark differ by less than {heard * 1e3:.0f} ms, and the mean queueing delays by at most "
        f"{waits * 1e3:.1f} ms, including the limits of the intervals. Marks avoid packet losses: "
        f"{turned(found['CoDel']['lost']).show(0)} packets with CoDel in three minutes, and "
        f"{turned(found['step at 200']['lost']).show(0)} with the step at 200. They do not "
        "increase the goodput of the transfer: with CoDel it is "
        f"{turned(found['CoDel']['goodput']).show(2, 1e-6)} Mbit/s lower.",
        heard < 0.05,
        waits < 0.01,
        found["CoDel"]["goodput"].high < 0,
        *(found[q]["lost"].high < 0 for q in early),
    )
    step = found["step at 200"]["wait_max"]
    page.claim(
        "Marks limit a burst less than drops. A queue that drops at 200 never exceeds 201 packets; "
        "a queue that marks accepts the burst, and its maximum queueing delay is "
        f"{step.show(0, 1e3)} ms longer.",
        step.low > 0,
        every(
            some(wire.rows, signal="drops", ends="linux"), "queue_max", of=["step at 200"], most=201
        ),
    )


def price(page: Page, wire: Asked, long: Asked) -> None:
    """Write the effect of short queues on the transfer."""
    page.heading("Effect of a short queue on the transfer")
    marks = some(wire.rows, signal="marks", ends="linux")
    swing = {q: over(some(marks, queue=q), "x_variation") for q in QUEUES}
    rfc_swing = over(some(wire.rows, signal="marks", ends="rfc", queue="CoDel"), "x_variation")
    less = {
        ends: turned(paired(some(long.rows, ends=ends), "queue", "FIFO", "goodput")["CoDel"])
        for ends in ("linux", "rfc")
    }
    share = less["linux"].mean / over(some(long.rows, ends="linux", queue="FIFO"), "goodput").mean
    page.claim(
        "With a round-trip time of 2 ms and a short queue, X oscillates: its variation is "
        f"{swing['CoDel'].show(3)} with CoDel and {swing['FIFO'].show(3)} with the FIFO. Over "
        "sixteen minutes with Linux's profile, the goodput is "
        f"{less['linux'].show(3, 1e-6)} Mbit/s or {100 * share:.1f} % lower than with the FIFO.",
        *(swing[q].low > swing["FIFO"].high for q in TODAY),
        swing["step at 200"].high < swing["FIFO"].low,
        less["linux"].low > 0,
        share < 0.05,
    )
    page.claim(
        "With the RFCs' profile, X oscillates less (its variation in three minutes is "
        f"{rfc_swing.show(3)}), and CoDel costs less than a thousandth of the rate of the wire.",
        max(abs(less["rfc"].low), abs(less["rfc"].high)) < 0.001 * RATE_BPS,
        rfc_swing.high < swing["CoDel"].low,
    )


def air(page: Page, cell: Asked, wire: Asked) -> None:
    """Write the results for 802.11b."""
    page.heading("Radio channel")
    page.text(
        "The access point of an 802.11b cell supports the same queues as a link, including "
        "those with ECN. The cell uses 11 Mbit/s with short preamble, CWmin 15, 10 dB and "
        "Minstrel rate control. Acknowledgements compete with the data for the channel. "
        "Profile `linux`, ECN on."
    )
    rows = some(cell.rows, ends="linux")
    means(page, rows)
    less = {
        name: turned(paired(rows, "queue", "FIFO", name)["step at 200"])
        for name in ("heard_s", "wait_max", "lost")
    }
    gained = paired(rows, "queue", "FIFO", "goodput")
    page.claim(
        "The effects are similar to those on the wire. With the step at 200, the first signal "
        f"arrives {less['heard_s'].show(2)} s earlier, the maximum queueing delay is "
        f"{less['wait_max'].show(0, 1e3)} ms shorter, no packet is lost, and the goodput changes "
        f"by {gained['step at 200'].show(2, 1e-6, sign=True)} Mbit/s. The mean queueing delay with "
        f"CoDel is {over(some(rows, queue='CoDel'), 'wait_mean').show(1, 1e3)} ms.",
        *(one.low > 0 for one in less.values()),
        bool((some(rows, queue="step at 200")["lost"] == 0).all()),
        gained["step at 200"].low > 0,
        over(some(rows, queue="CoDel"), "wait_mean").high < 0.02,
    )
    rfc = turned(paired(some(cell.rows, ends="rfc"), "queue", "FIFO", "goodput")["CoDel"])
    wired = turned(
        paired(some(wire.rows, signal="marks", ends="rfc"), "queue", "FIFO", "goodput")["CoDel"]
    )
    whole = over(some(cell.rows, ends="rfc", queue="FIFO"), "goodput").mean
    page.claim(
        "A short queue costs more goodput on the radio channel, because retries and changes of "
        "the bit rate make the service rate irregular. With the RFCs' profile, CoDel costs "
        f"{rfc.show(2, 1e-6)} Mbit/s in three minutes, {100 * rfc.mean / whole:.1f} % of the "
        f"goodput with the FIFO; on the wire it costs {wired.show(2, 1e-6)} Mbit/s.",
        rfc.low > max(wired.high, 0),
    )


def caller(page: Page, call: Asked) -> None:
    """Write the results for the concurrent call."""
    page.heading("MOS of the concurrent call")
    buffers = call.study.axis("buffer").labels
    page.figure("mos", mos_figure(call.rows, buffers), "MOS over the playout buffer")
    best = best_buffers(call.rows, buffers)
    lines = []
    for queue in QUEUES:
        mine = some(call.rows, queue=queue, buffer=best[queue])
        beyond = "" if queue == "FIFO" else against_fifo(call.rows, best, queue).show(2, sign=True)
        lines.append(
            [
                queue,
                f"{milliseconds(best[queue]):.0f} ms",
                over(mine, "mouth_to_ear_p50_s").show(0, 1e3),
                over(mine, "loss_ratio").show(2, 100),
                over(mine, "mos").show(2),
                beyond,
            ]
        )
    page.table(
        [
            "queue",
            "best buffer",
            "mouth-to-ear delay / ms",
            "frames lost or late / %",
            "MOS",
            "difference from the FIFO",
        ],
        lines,
    )
    rows = call.rows
    lost = {q: over(some(rows, queue=q, buffer=best[q]), "loss_ratio") for q in QUEUES}
    page.claim(
        "G.711 over UDP does not support ECN: a shared queue marks packets of the transfer and "
        f"drops packets of the call. With CoDel, {lost['CoDel'].show(2, 100)} % of the frames are "
        "lost, which lowers the MOS less than the delay of the FIFO does. FQ-CoDel, which "
        "separates flows, loses none.",
        lost["CoDel"].low > 0.005,
        lost["FQ-CoDel"].high == 0,
    )


def write(
    page: Page,
    wire: Asked,
    cell: Asked,
    long: Asked,
    call: Asked,
    traces: Traces,
    long_traces: Traces,
) -> None:
    """Write the page."""
    answer(page, wire, long, call)
    start(page, wire, traces)
    rest(page, long, long_traces)
    or_drops(page, wire)
    price(page, wire, long)
    air(page, cell, wire)
    caller(page, call)
    page.heading("Assumptions")
    page.text(
        "The radio is modelled as a wire, without retries and changes of the bit rate, except in "
        "the section on the radio channel. *step at 200* is RED with an average equal to the "
        "current queue length (weight 1) and thresholds of 200 and 201; above 402 it drops, as "
        "gentle RED requires. *RED from 200* has a weight of 0.02 and thresholds of 200 and 600. "
        "CoDel, PIE and FQ-CoDel have the parameters of their RFCs. All other parameters of the "
        "endpoints are those of the profile `linux` or `rfc` "
        "([Profiles](../reference/profiles.md)). Seeds differ in the start time of the transfer, "
        "the noise of the call, and the random numbers of RED, PIE and the radio. On a wire the "
        "effect of the seed is small, and intervals are narrow."
    )
    page.write(wire, cell, long, call)
