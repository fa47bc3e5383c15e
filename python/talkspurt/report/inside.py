"""Charts of endpoint state: rates, windows and tokens of single flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from talkspurt.figures import inside
from talkspurt.figures.style import INK
from talkspurt.figures.time import styles_of
from talkspurt.metrics.catalogue import column
from talkspurt.report.chart import chart_of, line_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from talkspurt.figures.inside import Line
    from talkspurt.results.run_data import RunData

MOST_FLOWS = 4
"""Flows of each kind with charts; figures of the others are available on request."""

DASHES = {"-": (), "--": (6, 2.5)}


def charts(result: RunData) -> list[dict[str, Any] | None]:
    """Charts of the first flows of each kind of controller."""
    styles = styles_of(result)
    made: list[dict[str, Any] | None] = []
    for name in _first(result, "rate"):
        colour = styles[name].colour
        loss: list[Line] = [("loss_event_rate", "p", colour, "-", 1.6)]
        made += [
            _chart(result, name, "rates", "allowed rate", inside.rate_lines(colour)),
            _chart(result, name, "rtt", "round-trip time", inside.rtt_lines(colour)),
            _chart(result, name, "p", "loss event rate", loss),
        ]
    for name in _first(result, "cwnd_packets"):
        lines = inside.window_lines(styles[name].colour)
        made.append(_chart(result, name, "window", "window of CCID 2", lines))
        ratio: list[Line] = [("ack_ratio", "Ack Ratio", INK, "-", 1.6)]
        made.append(_chart(result, name, "ack-ratio", "Ack Ratio", ratio))
    for name in _first(result, "encoding"):
        tokens: list[Line] = [("tokens", "tokens", styles[name].colour, "-", 1.6)]
        made.append(_chart(result, name, "tokens", "tokens saved", tokens))
        rung: list[Line] = [("encoding", "rung", styles[name].colour, "-", 1.6)]
        made.append(_chart(result, name, "encoding", "rung of the ladder", rung))
    return made


def _first(result: RunData, gauge: str) -> list[str]:
    return inside.directions(result, gauge)[:MOST_FLOWS]


def _chart(
    result: RunData, name: str, kind: str, what: str, lines: Sequence[Line]
) -> dict[str, Any] | None:
    drawn = []
    explained = []
    positive: list[float] = []
    unit = column(lines[0][0]).shown_unit
    for gauge, words, colour, style, width in lines:
        rows = inside.steps_of(result, name, gauge)
        if rows.is_empty():
            continue
        values = rows["value"] * column(gauge).scale
        if gauge != "receive_rate":
            positive += values.filter(values != 0).to_list()
        shown = "ink" if colour == INK else colour
        drawn.append(line_of(words, shown, DASHES[style], values, x=rows["time_s"], width=width))
        explained.append((words, column(gauge)))
    made = chart_of(f"{kind}-{name}", f"{name}: {what}", unit, (), drawn)
    if made is None:
        return None
    made["explained"] = [
        {"line": words, "name": m.name, "meaning": m.meaning} for words, m in explained
    ]
    made["stepped"] = 1
    made["logarithmic"] = kind == "rates" and inside.wide(positive)
    return made
