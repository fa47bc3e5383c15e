"""Round-trip times between a capture and a receiver, by the acknowledgements of TCP and SCTP."""

from __future__ import annotations

from collections import deque
from typing import Any

Row = dict[str, Any]

GAUGE = "capture_rtt"
WORD = 1 << 32


def round_trips(ahead: list[Row], back: list[Row]) -> list[tuple[float, str, float]]:
    """When an acknowledgement of new data passed, and how long after this data.

    Of data that one acknowledgement covers, the last count; the receiver's delay of
    acknowledgements is part of the times. After a retransmission, all that waits is left out: what
    is acknowledged may be either copy (Karn's rule, RFC 6298 §3), and what follows waited for it.
    """
    rows = sorted(
        [(row["time_ns"], 0, row) for row in ahead] + [(row["time_ns"], 1, row) for row in back],
        key=lambda one: one[:2],
    )
    waiting: deque[tuple[int, float, bool]] = deque()
    found: list[tuple[float, str, float]] = []
    highest: int | None = None
    for _, is_back, row in rows:
        if not is_back:
            for end in _ends(row):
                if highest is None or _ahead(end, highest) > 0:
                    highest = end
                    waiting.append((end, row["t"], True))
                else:
                    waiting = deque((one, t, False) for one, t, _ in waiting)
            continue
        if row["ack"] is None:
            continue
        last = None
        while waiting and _ahead(row["ack"], waiting[0][0]) >= 0:
            last = waiting.popleft()
        if last is not None and last[2]:
            found.append((row["t"], GAUGE, row["t"] - last[1]))
    return found


def _ahead(one: int, other: int) -> int:
    """By how much a number is beyond another, of 32 bits that wrap around."""
    return (one - other + WORD // 2) % WORD - WORD // 2


def _ends(row: Row) -> list[int]:
    """The numbers whose acknowledgement covers what a packet has."""
    if row["protocol"] == "sctp":
        return [chunk["tsn"] for chunk in row["chunks"]]
    length = row["payload_bytes"] + row["syn"] + row["fin"]
    return [(row["seq"] + length) % WORD] if length else []
