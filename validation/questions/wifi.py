"""What the page on ECN for CCID 3 with a queue of a thousand packets shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from measures import DRAWN
from rows import Panel, Rows, bars, draw

from talkspurt.figures.style import BLUE, GREEN, ORANGE, PURPLE, TEAL, VERMILLION

P_FLOOR = 1e-4
"""The smallest loss event rate in Linux's table (`rate.p_floor`)."""
RATE_BPS = 7.15e6
PAYLOAD_BYTES = 1400
QUEUES: dict[str, dict[str, Any]] = {
    "FIFO": {"color": VERMILLION},
    "step at 200": {"color": GREEN},
    "RED from 200": {"color": TEAL, "dashes": (6, 2.5)},
    "CoDel": {"color": BLUE},
    "PIE": {"color": ORANGE, "dashes": (2, 2)},
    "FQ-CoDel": {"color": PURPLE, "dashes": (8, 2, 2, 2)},
}
"""Colour and dashes of each queue."""
EARLY = tuple(QUEUES)[1:]
AT_200 = ("step at 200", "RED from 200")
TODAY = ("CoDel", "PIE", "FQ-CoDel")


def milliseconds(label: str) -> float:
    """Convert the label of a buffer to milliseconds."""
    return float(label.removesuffix("ms"))


def values(wire: Rows, cell: Rows, long: Rows, call: Rows) -> Mapping[str, Any]:
    """Return the values of the page by name."""
    marks = wire(signal="marks", ends="linux").each("queue")
    fifo, step = marks["FIFO"], marks["step at 200"]
    since = {queue: marks[queue] - fifo for queue in EARLY}
    sooner = since["step at 200"]
    rfc_marks = wire(signal="marks", ends="rfc").each("queue")
    rfc_less = rfc_marks["FIFO"] - rfc_marks["step at 200"]
    drops = wire(signal="drops", ends="linux").each("queue")
    marked = {queue: marks[queue] - drops[queue] for queue in QUEUES}
    saved = {queue: drops[queue] - marks[queue] for queue in QUEUES}
    heard_ms = 1e3 * max(abs(marked[q].heard_s.low) for q in EARLY)
    waits_ms = 1e3 * max(marked[q].wait_mean.size for q in EARLY)

    rest = {queue: rows.each("ends") for queue, rows in long.each("queue").items()}
    linux, rfc = ({queue: rest[queue][ends] for queue in QUEUES} for ends in ("linux", "rfc"))
    carried_bps = RATE_BPS * PAYLOAD_BYTES / linux["FIFO"].ip_bytes.mean
    closed_s = 8 * PAYLOAD_BYTES / carried_bps * math.sqrt(3 / (2 * P_FLOOR))
    worth_s = 200 * 8 * rfc["FIFO"].ip_bytes.mean / RATE_BPS
    cost, rfc_cost = linux["FIFO"] - linux["CoDel"], rfc["FIFO"] - rfc["CoDel"]
    share = cost.goodput.mean / linux["FIFO"].goodput.mean

    air, rfc_air = (cell(ends=ends).each("queue") for ends in ("linux", "rfc"))
    air_less, gained = air["FIFO"] - air["step at 200"], air["step at 200"] - air["FIFO"]
    air_cost, wired_cost = (each["FIFO"] - each["CoDel"] for each in (rfc_air, rfc_marks))
    air_share = air_cost.goodput.mean / rfc_air["FIFO"].goodput.mean

    heard = {
        queue: max(rows.each("buffer").values(), key=lambda one: one.mos.mean)
        for queue, rows in call.each("queue").items()
    }
    gain = {queue: heard[queue] - heard["FIFO"] for queue in EARLY}
    mos = {queue: rows.mos.mean for queue, rows in heard.items()}
    return locals()


def traces(rows: Rows) -> list[dict[str, Any]]:
    """Return curves of the round-trip time of the first seed, for queues with a trace."""
    curves = []
    for queue, one in rows.each("queue").items():
        for time_s, rtt_s in one.frame["trace"].drop_nulls() if queue in DRAWN else ():
            rtt_ms = [1e3 * value for value in rtt_s]
            style = QUEUES[queue] | {"label": queue, "linewidth": 1.2}
            curves.append({"x": list(time_s), "y": rtt_ms, **style})
    return curves


def figures(wire: Rows, _: Rows, long: Rows, call: Rows) -> Mapping[str, bytes]:
    """Draw the figures of the page."""
    start = traces(wire(signal="marks", ends="linux"))
    ticks = {"yscale": "log", "yticks": (log := (3, 10, 30, 100, 300, 1000)), "yticklabels": log}
    title = {"title": "Smoothed round-trip time, Linux profile, marks"}
    axes = {"xlabel": "time / s", "ylabel": "RTT / ms"}
    whole: list[Panel] = [
        (
            {**axes, "title": f"RTT with marks, {words}", "xlim": (0, 960), "ylim": (0, 1100)},
            [curve for curve in traces(long(ends=ends)) if curve["label"] != "RED from 200"],
        )
        for ends, words in (("linux", "Linux profile"), ("rfc", "RFC profile"))
    ]
    begin: list[Panel] = [
        ({**axes, **ticks, **title, "xlim": (0, 20)}, start),
        ({**axes, **ticks, "xlim": (0, 180)}, start),
    ]
    below = {"loc": "outside lower center", "ncols": 4}
    return {
        "rtt": draw((8.4, 3.1), begin, below, sharey=True),
        "long": draw((8.4, 3.1), whole, below, sharey=True),
        "mos": draw((7.2, 3.1), [_calls(call)], {"loc": "outside right upper"}),
    }


def _calls(call: Rows) -> Panel:
    """Return a curve of the MOS against the playout buffer for each queue."""
    labels = call.labels("buffer")
    x = [milliseconds(label) for label in labels]
    curves = [
        {"x": x, "marker": "o", "markersize": 3.5, "label": queue, **QUEUES[queue]}
        | bars([rows(buffer=label).mos for label in labels])
        for queue, rows in call.each("queue").items()
    ]
    return {
        "title": "MOS of a call beside the transfer, Linux profile, marks",
        "xlabel": "playout delay after capture / ms",
        "ylabel": "MOS",
        "xlim": (0, 1.02 * max(x)),
        "ylim": (1, 4.6),
    }, curves
