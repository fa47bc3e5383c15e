"""The page of wifi.py: its tables, its figures, and sentences with the conditions they assert."""

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
"""End of the start phase; steady values are measured from here."""
P_FLOOR = 1e-4
"""The smallest loss event rate of Linux's table (`rate.p_floor`)."""
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
"""The style of each queue."""
AT_200 = ("step at 200", "RED from 200")
TODAY = ("CoDel", "PIE", "FQ-CoDel")
Traces = dict[tuple[str, ...], pl.DataFrame]
"""The smoothed round-trip time over time, of the first seed of each setting."""


def some(rows: pl.DataFrame, **setting: str) -> pl.DataFrame:
    """The rows of a setting."""
    return rows.filter(**setting)


def over(rows: pl.DataFrame, value: str) -> Interval:
    """Mean and interval of a measure over the seeds."""
    return Interval.of(rows[value].drop_nulls().to_list())


def every(rows: pl.DataFrame, value: str, *, of: Sequence[str], most: float) -> bool:
    """Whether it is at most this in every run with these queues."""
    return bool((rows.filter(pl.col("queue").is_in(of))[value] <= most).all())


COLUMNS = (
    ("heard after / s", "heard_s", 1.0, 2),
    ("longest wait / ms", "wait_max", 1e3, 0),
    ("mean wait / ms", "wait_mean", 1e3, 1),
    ("packets lost", "lost", 1.0, 0),
    ("goodput / (Mbit/s)", "goodput", 1e-6, 2),
    ("variation of X", "x_variation", 1.0, 3),
)
"""Columns of the tables: heading, measure, scale, digits."""


def means(page: Page, rows: pl.DataFrame) -> None:
    """A table of means with intervals, a row per queue."""
    lines = []
    for queue in QUEUES:
        mine = some(rows, queue=queue)
        cells = (over(mine, name).show(digits, scale) for _, name, scale, digits in COLUMNS)
        lines.append([queue, *cells])
    page.table(["queue", *(heading for heading, *_ in COLUMNS)], lines)


def round_trips(page: Page, rows: pl.DataFrame) -> None:
    """A table of the smoothed round-trip time, the queue and X."""
    columns = (
        ("RTT, mean / ms", "rtt_mean", 1e3, 1),
        ("95 % of the time below / ms", "rtt_p95", 1e3, 1),
        ("longest / ms", "rtt_max", 1e3, 0),
        ("queue, mean / packets", "queue_mean", 1.0, 0),
        ("longest / packets", "queue_max", 1.0, 0),
        ("least X / (Mbit/s)", "x_least", 1e-6, 2),
        ("most X / (Mbit/s)", "x_most", 1e-6, 2),
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
    """A table of differences from the FIFO, seed by seed."""
    found = {name: paired(rows, "queue", "FIFO", name) for _, name, *_ in COLUMNS}
    lines = [
        [queue, *(found[n][queue].show(d, scale, sign=True) for _, n, scale, d in COLUMNS)]
        for queue in QUEUES
        if queue != "FIFO"
    ]
    page.table(["beside the FIFO", *(heading for heading, *_ in COLUMNS)], lines)


def signals(page: Page, rows: pl.DataFrame) -> dict[str, dict[str, Interval]]:
    """A table of the effect of marks instead of drops by the same queue, seed by seed."""
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
    page.table(["marks, not drops", *(heading for heading, *_ in COLUMNS)], lines)
    return found


def rtt_figure(traces: Traces) -> Figure:
    """Round-trip time in the first twenty seconds and over the whole run, Linux's endpoints."""
    from matplotlib.figure import Figure

    with styled(math=True):
        figure = Figure(figsize=(8.4, 3.1))
        left, right = figure.subplots(1, 2, sharey=True)
        for queue, (colour, dashes) in QUEUES.items():
            if queue in ("PIE", "FQ-CoDel"):  # indistinguishable from CoDel
                continue
            for ax in (left, right):
                line(ax, traces[queue, "marks", "linux"], colour, dashes, queue)
        left.set_title("Smoothed round-trip time, Linux's ends, marks")
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
    """A gauge in milliseconds, thinned: a page needs at most a few thousand points."""
    thin = trace.gather_every(max(1, trace.height // 4000))
    style = {"dashes": dashes} if dashes else {"linestyle": "-"}
    ax.plot(thin["time_s"], thin["value"] * 1e3, color=colour, label=label, linewidth=1.2, **style)


def long_figure(traces: Traces) -> Figure:
    """Round-trip time over sixteen minutes, by implementation of the endpoints."""
    from matplotlib.figure import Figure

    with styled(math=True):
        figure = Figure(figsize=(8.4, 3.1))
        axes = figure.subplots(1, 2, sharey=True)
        for ax, ends, words in zip(
            axes, ("linux", "rfc"), ("Linux's ends", "the RFCs' ends"), strict=True
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
    """A buffer's label as a number."""
    return float(label.removesuffix("ms"))


def mos_figure(rows: pl.DataFrame, buffers: Sequence[str]) -> Figure:
    """MOS against the listener's buffer, a line per queue."""
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
        ax.set_title("MOS of a call beside the transfer, Linux's ends, marks")
        ax.set_xlabel("delay that the listener's buffer makes up to / ms")
        ax.set_ylabel("MOS")
        ax.set_ylim(1, 4.6)
        ax.set_xlim(0, 1.02 * max(x))
        figure.legend(loc="outside right upper", handlelength=LINE_LENGTH, fontsize=8)
    return figure


def best_buffers(rows: pl.DataFrame, buffers: Sequence[str]) -> dict[str, str]:
    """The buffer with the best mean score of calls for each queue."""
    return {
        queue: max(buffers, key=lambda b: over(some(rows, queue=queue, buffer=b), "mos").mean)
        for queue in QUEUES
    }


QUESTION = """\
Does it help CCID 3, on a wireless link with a long queue, to hear of the queue at 200 packets by
ECN instead of at 1000 by a loss? A [note of 2008](../studies.md) (Renker, CCID 3 over WiFi) asked
for it; DCCP of its day had no ECN. The network is the note's: 1400 bytes of payload, 2 ms there and
back, 7.15 Mbit/s, a thousand packets. A telephone call goes beside the transfer. Numbers are means
over seeds with 95 % intervals (Student's); differences are taken seed by seed."""


def answer(page: Page, wire: Asked, long: Asked, call: Asked) -> None:
    """The answer first."""
    marks = some(wire.rows, signal="marks", ends="linux")
    fifo, step = (some(marks, queue=queue) for queue in ("FIFO", "step at 200"))
    sooner = {name: paired(marks, "queue", "FIFO", name)["step at 200"] for _, name, *_ in COLUMNS}
    longest = max(over(some(marks, queue=q), "wait_max").high for q in ("CoDel", "FQ-CoDel"))
    page.heading("Answer")
    page.claim(
        "**Yes, for the start.** With Linux's ends the sender hears of the queue after "
        f"{over(step, 'heard_s').show(2)} s instead of {over(fifo, 'heard_s').show(2)} s, the "
        f"longest wait in the queue is {over(step, 'wait_max').show(0, 1e3)} ms instead of "
        f"{over(fifo, 'wait_max').show(0, 1e3)} ms, no packet of the transfer is lost in any "
        f"run where {over(fifo, 'lost').show(0)} were, and it carries "
        f"{sooner['goodput'].show(2, 1e-6, sign=True)} Mbit/s more over the three minutes.",
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
        "**No, for what comes after.** At rest, in the last third of sixteen minutes, the "
        f"round trip is {at_rest['FIFO'].show(1, 1e3)} ms behind the FIFO and "
        f"{at_rest['step at 200'].show(1, 1e3)} ms behind the queue that marks at 200: Linux's "
        f"ends leave {over(some(rest, queue='step at 200'), 'queue_mean').show(0)} packets waiting "
        "on average, of which a threshold of 200 hears nothing. With the RFCs' ends, whose queue "
        f"would grow on, marks hold it: {rfc['step at 200'].show(0, 1e3)} ms instead of "
        f"{rfc['FIFO'].show(0, 1e3)} ms and more.",
        abs(at_rest["step at 200"].mean / at_rest["FIFO"].mean - 1) < 0.01,
        over(some(rest, queue="step at 200"), "queue_mean").high < 150,
        rfc["step at 200"].high < rfc["FIFO"].low / 2,
    )
    page.claim(
        "**Today's answer is a queue that looks at time.** CoDel and FQ-CoDel with marks are "
        f"heard of after {over(some(marks, queue='CoDel'), 'heard_s').show(2)} s and "
        f"{over(some(marks, queue='FQ-CoDel'), 'heard_s').show(2)} s, the longest wait is "
        f"{over(some(marks, queue='CoDel'), 'wait_max').show(0, 1e3)} ms and "
        f"{over(some(marks, queue='FQ-CoDel'), 'wait_max').show(0, 1e3)} ms, and the mean wait "
        f"{over(some(marks, queue='CoDel'), 'wait_mean').show(1, 1e3)} ms and "
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
        "**For a caller beside the transfer** marks at 200 are worth "
        f"{against_fifo(call.rows, best, 'step at 200').show(2, sign=True)} MOS, CoDel "
        f"{against_fifo(call.rows, best, 'CoDel').show(2, sign=True)} and FQ-CoDel "
        f"{against_fifo(call.rows, best, 'FQ-CoDel').show(2, sign=True)}, each listener with "
        f"the buffer that suits best: {scores['FIFO'].show(2)} behind the FIFO, "
        f"{scores['step at 200'].show(2)}, {scores['CoDel'].show(2)} and "
        f"{scores['FQ-CoDel'].show(2)}.",
        *(against_fifo(call.rows, best, q).low > 0 for q in QUEUES if q != "FIFO"),
        scores["FIFO"].mean < min(scores[q].mean for q in AT_200),
        max(scores[q].mean for q in AT_200) < min(scores[q].mean for q in ("CoDel", "PIE")),
        max(scores[q].mean for q in ranks[:-1]) < scores["FQ-CoDel"].mean,
    )


def against_fifo(rows: pl.DataFrame, best: dict[str, str], queue: str) -> Interval:
    """MOS relative to the FIFO's, each with its best buffer, seed by seed."""
    both = pl.concat([some(rows, queue=q, buffer=best[q]) for q in ("FIFO", queue)])
    return paired(both, "queue", "FIFO", "mos")[queue]


def start(page: Page, wire: Asked, traces: Traces) -> None:
    """Earlier signals."""
    page.heading("Hearing sooner")
    page.text(
        "*heard after* is the time from the connection's opening to the sender's first loss "
        "event rate above zero, from a loss or a mark; *wait* is that of every packet in the "
        "queue before the radio; *variation of X* is the standard deviation of the allowed "
        f"rate over its mean, both over time, from {STEADY_S:.0f} s on. Linux's ends, marks; "
        "the FIFO has none to give."
    )
    marks = some(wire.rows, signal="marks", ends="linux")
    means(page, marks)
    differences(page, marks)
    page.text("Round-trip times as the sender smooths them, over the whole run; X from 30 s on:")
    round_trips(page, marks)
    page.figure("rtt", rtt_figure(traces), "Round-trip time over time behind five queues")
    fifo, step = (some(marks, queue=queue) for queue in ("FIFO", "step at 200"))
    late = [over(each, "late_s") for each in (fifo, step)]
    page.claim(
        "In slow start 200 packets wait long before a thousand do, and a sender that learns of "
        "the queue by a loss waits once more: the packet behind the lost one has the full queue "
        "before it. From the moment 200 packets wait (a mean over 100 ms) it takes "
        f"{late[0].show(2)} s until the sender hears by a loss at 1000, and {late[1].show(2)} s by "
        "a mark.",
        late[1].high < late[0].low,
    )
    rfc = some(wire.rows, signal="marks", ends="rfc")
    less = {
        name: turned(paired(rfc, "queue", "FIFO", name)["step at 200"])
        for name in ("heard_s", "wait_max", "lost")
    }
    page.claim(
        f"With the RFCs' ends the same holds: heard {less['heard_s'].show(2)} s sooner, the "
        f"longest wait shorter by {less['wait_max'].show(0, 1e3)} ms, {less['lost'].show(0)} "
        "packets fewer lost.",
        *(one.low > 0 for one in less.values()),
    )


def turned(one: Interval) -> Interval:
    """The negated difference."""
    return Interval(-one.mean, -one.high, -one.low, one.count)


def rest(page: Page, long: Asked, traces: Traces) -> None:
    """The steady state of the queue."""
    page.heading("At rest")
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
    page.text("Sixteen minutes, marks, no call: mean round trip in the second and the last third.")
    page.table(
        [
            "queue",
            *("Linux: RTT, second third / ms", "last / ms", "goodput / (Mbit/s)"),
            *("RFCs: RTT, second third / ms", "last / ms", "goodput / (Mbit/s)"),
        ],
        lines,
    )
    page.figure("long", long_figure(traces), "Round-trip time over sixteen minutes")
    linux = {q: some(rows, ends="linux", queue=q) for q in QUEUES}
    carried = RATE_BPS * PAYLOAD_BYTES / float(linux["FIFO"]["ip_bytes"].mean())
    closed = 8 * PAYLOAD_BYTES / carried * math.sqrt(3 / (2 * P_FLOOR))
    page.claim(
        "**Linux's ends** rest where their table ends. It knows no loss event rate below 10⁻⁴, "
        "so X cannot exceed *s*/R · √(3/(2·10⁻⁴)), and the link's rate is reached while R is "
        f"*s*/C · √15000 = {closed * 1e3:.1f} ms. Behind the FIFO the last third's mean is "
        f"{over(linux['FIFO'], 'rtt_last').show(1, 1e3)} ms, behind the two queues that mark at "
        f"200 {over(linux['step at 200'], 'rtt_last').show(1, 1e3)} and "
        f"{over(linux['RED from 200'], 'rtt_last').show(1, 1e3)}: the 200 ms of the note are "
        "neither the path's nor the queue's, and no threshold above them changes them.",
        *(abs(over(linux[q], "rtt_last").mean / closed - 1) < 0.01 for q in ("FIFO", *AT_200)),
    )
    rfc = {q: some(rows, ends="rfc", queue=q) for q in QUEUES}
    worth = 200 * 8 * float(rfc["FIFO"]["ip_bytes"].mean()) / RATE_BPS
    grows = Interval.of((rfc["FIFO"]["rtt_last"] - rfc["FIFO"]["rtt_middle"]).to_list())
    page.claim(
        "**The RFCs' ends** have no such table, and behind the FIFO the queue creeps back: the "
        "round trip grows by "
        f"{grows.show(0, 1e3)} ms from the second third to the last, "
        f"{over(rfc['FIFO'], 'rtt_last').show(0, 1e3)} ms there. Here marks at 200 do matter "
        f"for good: {over(rfc['step at 200'], 'rtt_last').show(0, 1e3)} ms, less than the "
        f"{worth * 1e3:.0f} ms that 200 packets take to send.",
        grows.low > 0,
        over(rfc["step at 200"], "rtt_last").high < worth,
        over(rfc["FIFO"], "rtt_last").low > 1.5 * worth,
    )


def or_drops(page: Page, wire: Asked) -> None:
    """The separate effects of the queue and of marks."""
    page.heading("Marks or drops")
    page.text(
        "How much of this is the mark, and how much the queue that speaks early? The same "
        "queues before ends that do not know ECN drop where they would mark. Linux's ends; "
        "differences, seed by seed."
    )
    found = signals(page, some(wire.rows, ends="linux"))
    early = [q for q in QUEUES if q != "FIFO"]
    heard = max(abs(found[q]["heard_s"].low) for q in early)
    waits = max(max(abs(found[q]["wait_mean"].low), abs(found[q]["wait_mean"].high)) for q in early)
    page.claim(
        f"Mostly it is the queue: by a drop the sender hears within {heard * 1e3:.0f} ms of "
        f"when it would have heard by a mark, and mean waits differ by {waits * 1e3:.1f} ms at "
        "most, ends of intervals included. What the mark alone saves is the packet: "
        f"{turned(found['CoDel']['lost']).show(0)} of them behind CoDel in three minutes, "
        f"{turned(found['step at 200']['lost']).show(0)} behind the step at 200. The transfer does "
        "not gain by it: its goodput is "
        f"{turned(found['CoDel']['goodput']).show(2, 1e-6)} Mbit/s lower behind CoDel.",
        heard < 0.05,
        waits < 0.01,
        found["CoDel"]["goodput"].high < 0,
        *(found[q]["lost"].high < 0 for q in early),
    )
    step = found["step at 200"]["wait_max"]
    page.claim(
        "And marking has a price where a burst is to be stopped: a queue that drops at 200 is "
        "never longer than 201 packets, one that marks lets the burst in and its longest wait is "
        f"{step.show(0, 1e3)} ms longer.",
        step.low > 0,
        every(
            some(wire.rows, signal="drops", ends="linux"), "queue_max", of=["step at 200"], most=201
        ),
    )


def price(page: Page, wire: Asked, long: Asked) -> None:
    """The cost of short queues to the transfer."""
    page.heading("What a short queue costs the transfer")
    marks = some(wire.rows, signal="marks", ends="linux")
    swing = {q: over(some(marks, queue=q), "x_variation") for q in QUEUES}
    rfc_swing = over(some(wire.rows, signal="marks", ends="rfc", queue="CoDel"), "x_variation")
    less = {
        ends: turned(paired(some(long.rows, ends=ends), "queue", "FIFO", "goodput")["CoDel"])
        for ends in ("linux", "rfc")
    }
    share = less["linux"].mean / over(some(long.rows, ends="linux", queue="FIFO"), "goodput").mean
    page.claim(
        "With a round trip of 2 ms and no queue to hide in, X swings: its variation is "
        f"{swing['CoDel'].show(3)} behind CoDel and {swing['FIFO'].show(3)} behind the FIFO. "
        f"Over sixteen minutes that costs Linux's ends {less['linux'].show(3, 1e-6)} Mbit/s "
        f"beside the FIFO, {100 * share:.1f} %.",
        *(swing[q].low > swing["FIFO"].high for q in TODAY),
        swing["step at 200"].high < swing["FIFO"].low,
        less["linux"].low > 0,
        share < 0.05,
    )
    page.claim(
        "With the RFCs' ends, whose X swings less, CoDel costs less than a "
        f"thousandth on the wire (variation in three minutes {rfc_swing.show(3)}).",
        max(abs(less["rfc"].low), abs(less["rfc"].high)) < 0.001 * RATE_BPS,
        rfc_swing.high < swing["CoDel"].low,
    )


def air(page: Page, cell: Asked, wire: Asked) -> None:
    """The same on 802.11b."""
    page.heading("On the air")
    page.text(
        "A cell of 802.11b takes any queue that a link takes at its access point, so marking "
        "before the radio is a word in the scenario. 11 Mbit/s with short preamble, CWmin 15, "
        "10 dB, rates after Minstrel; acknowledgements compete with the data for the air. "
        "Linux's ends, marks."
    )
    rows = some(cell.rows, ends="linux")
    means(page, rows)
    less = {
        name: turned(paired(rows, "queue", "FIFO", name)["step at 200"])
        for name in ("heard_s", "wait_max", "lost")
    }
    gained = paired(rows, "queue", "FIFO", "goodput")
    page.claim(
        f"As on the wire: the step at 200 is heard of {less['heard_s'].show(2)} s sooner, its "
        f"longest wait is {less['wait_max'].show(0, 1e3)} ms shorter, nothing is lost, and it "
        f"carries {gained['step at 200'].show(2, 1e-6, sign=True)} Mbit/s more. CoDel's mean "
        f"wait is {over(some(rows, queue='CoDel'), 'wait_mean').show(1, 1e3)} ms.",
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
        "The short queue is dearer on the air, where retries and changes of rate make the pace "
        f"uneven: with the RFCs' ends CoDel costs {rfc.show(2, 1e-6)} Mbit/s in three minutes, "
        f"{100 * rfc.mean / whole:.1f} % of what the FIFO carries, and on the wire "
        f"{wired.show(2, 1e-6)} Mbit/s.",
        rfc.low > max(wired.high, 0),
    )


def caller(page: Page, call: Asked) -> None:
    """The score of a concurrent call."""
    page.heading("The caller beside it")
    buffers = call.study.axis("buffer").labels
    page.figure("mos", mos_figure(call.rows, buffers), "MOS over the listener's buffer")
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
            "unheard / %",
            "MOS",
            "beyond the FIFO's",
        ],
        lines,
    )
    rows = call.rows
    lost = {q: over(some(rows, queue=q, buffer=best[q]), "loss_ratio") for q in QUEUES}
    page.claim(
        "G.711 over UDP does not understand ECN: a queue shared with a transfer that does "
        f"marks the transfer and drops the call. CoDel takes {lost['CoDel'].show(2, 100)} % of "
        "its frames, which cost less than the FIFO's delay; FQ-CoDel, which keeps flows apart, "
        "takes none.",
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
    """The page, from the answer to its basis."""
    answer(page, wire, long, call)
    start(page, wire, traces)
    rest(page, long, long_traces)
    or_drops(page, wire)
    price(page, wire, long)
    air(page, cell, wire)
    caller(page, call)
    page.heading("What was assumed")
    page.text(
        "The radio of the first three parts is a wire: its retries and changes of rate are in "
        "the part on the air only. *step at 200* is RED with an average that is the queue "
        "itself (weight 1) and thresholds of 200 and 201; beyond 402 it drops, as gentle RED "
        "must. *RED from 200* has a weight of 0.02 and thresholds of 200 and 600. CoDel, PIE "
        "and FQ-CoDel have the values of their RFCs; all else of the ends is as the profile "
        "`linux` or `rfc` has it ([Profiles](../reference/profiles.md)). Seeds differ in when "
        "the transfer begins, in the noise of the call and in the random numbers of RED, PIE "
        "and the radio: on a wire that is little, and intervals are short."
    )
    page.write(wire, cell, long, call)
