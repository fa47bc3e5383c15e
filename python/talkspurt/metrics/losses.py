"""Loss events as in TFRC for any flow, computed from its packets, whatever its transport.

A receiver following RFC 5348 would have these intervals, with two differences. Losses are known
from the packet table, so a packet that is only late is not counted as lost (§5.1). And where a
receiver synthesises an interval before the first loss from its receive rate (§6.3.1), the packets
before that loss are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from talkspurt.results.manifest import Origin

if TYPE_CHECKING:
    from talkspurt.results.run_data import RunData

WEIGHTS = (1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2)
"""Weights of the last eight intervals, the newest first (RFC 5348 §5.4)."""
LATER = 3
"""Later packets that must arrive before one is considered lost (§5.1, NDUPACK)."""


@dataclass(frozen=True)
class Event:
    """A loss event.

    Attributes:
        number: the first lost packet.
        time_s: when that packet would have arrived.
    """

    number: int
    time_s: float


def events(packets: Sequence[tuple[int, float | None]], rtt_s: float) -> list[Event]:
    """Loss events among packets in order of number, each with its arrival, None if lost.

    The time of a loss is interpolated by number between its neighbours' arrivals (§5.2). A loss
    starts an event if it occurs a round trip or more after the start of the previous event.
    """
    arrived = [(number, time) for number, time in packets if time is not None]
    found: list[Event] = []
    after = 0
    for number, time in packets:
        if time is not None:
            after += 1
            continue
        if after == 0 or len(arrived) - after < LATER:
            continue  # not yet detectable, or without a nominal arrival time
        (low, early), (high, late) = arrived[after - 1], arrived[after]
        when = early + (late - early) * (number - low) / (high - low)
        if not found or found[-1].time_s + rtt_s <= when:
            found.append(Event(number, when))
    return found


def rate(intervals: Sequence[int], open_: int) -> float:
    """The loss event rate p (§5.4) of closed intervals, the newest last, and the open one."""
    recent = list(intervals)[::-1][: len(WEIGHTS)]
    weights = WEIGHTS[: len(recent)]
    closed = sum(i * w for i, w in zip(recent, weights, strict=True))
    with_open = sum(i * w for i, w in zip([open_, *recent[:-1]], weights, strict=True))
    return sum(weights) / max(closed, with_open)


def loss_events(result: RunData, flow: str, side: str = "from") -> pl.DataFrame:
    """Each loss event: ``time_s``, ``interval_packets`` it closed, ``loss_event_rate`` after it."""
    packets, found = _found(result, flow, side)
    lengths = _closed(packets, found)
    rates = [rate(lengths[: i + 1], 1) for i in range(len(lengths))]
    return pl.DataFrame(
        {
            "time_s": [event.time_s for event in found],
            "interval_packets": lengths,
            "loss_event_rate": rates,
        },
        schema={"time_s": pl.Float64, "interval_packets": pl.Int64, "loss_event_rate": pl.Float64},
    )


def loss_event_rate(result: RunData, flow: str, side: str = "from") -> float:
    """The loss event rate after the last packet; 0 without a loss."""
    return at_the_end(*_found(result, flow, side))


def at_the_end(packets: Sequence[tuple[int, float | None]], found: Sequence[Event]) -> float:
    """The loss event rate of these packets, after the last of them."""
    if not found:
        return 0.0
    last = max(number for number, time in packets if time is not None)
    return rate(_closed(packets, found), last - found[-1].number + 1)


def _closed(packets: Sequence[tuple[int, float | None]], found: Sequence[Event]) -> list[int]:
    """The lengths of the intervals that these events closed."""
    starts = [*(number for number, _ in packets[:1]), *(event.number for event in found)]
    return [after - before for before, after in pairwise(starts)]


def _found(
    result: RunData, flow: str, side: str
) -> tuple[list[tuple[int, float | None]], list[Event]]:
    from talkspurt.metrics.packets import life

    there = life(result, flow, side)
    # Packets in flight when the run ended are not lost, only unknown.
    under_way = set(
        result.packets(flow)
        .filter(pl.col("fate").is_in(["queued", "in_flight"]) & (pl.col("side") == side))["number"]
        .to_list()
    )
    rows = there.sort("number").select("number", "received_s").rows()
    packets = [(n, at) for n, at in rows if at is not None or n not in under_way]
    return packets, events(packets, round_trip(result, flow, side))


def round_trip(result: RunData, flow: str, side: str) -> float:
    """Sum of the mean delays of both directions, or twice the forward one if none came back."""
    from talkspurt.metrics.packets import life

    there = life(result, flow, side)["delay_s"].mean()
    back = life(result, flow, "to" if side == "from" else "from")["delay_s"].mean()
    if not isinstance(there, float):
        if result.origin is Origin.IMPORTED:
            raise ValueError(f"flow {flow!r}: loss events need delays, and the trace has none")
        return 0.0
    return there + (back if isinstance(back, float) else there)
