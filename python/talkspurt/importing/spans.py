"""Which bytes of a capture are new, and which were sent before."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from talkspurt.importing import rtp

Row = dict[str, Any]


def fresh_bytes(rows: list[Row], kind: str) -> tuple[list[int | None], list[tuple[int, int]]]:
    """Bytes of each packet that none before it had, and packets without such, with their bytes.

    The bytes are not known if the capture does not have all of SCTP's chunks.
    """
    fresh: list[int | None] = []
    again: list[tuple[int, int]] = []
    if kind == "tcp":
        seqs = rtp.unwrapped([row["seq"] + row["syn"] for row in rows], 32)
        known = Spans()
        for place, (row, seq) in enumerate(zip(rows, seqs, strict=True)):
            size = row["payload_bytes"]
            # RFC 1122 §4.2.3.6: a keep-alive may have one garbage byte, before the next one.
            alive = size == 1 and seq + 1 == known.end and not (row["syn"] or row["fin"])
            new = known.add(seq, seq + size) if size and not alive else 0
            fresh.append(new)
            if size and not new and not alive:
                again.append((place, size))
    elif kind == "sctp":
        tsns: set[int] = set()
        for place, row in enumerate(rows):
            new = sum(c["bytes"] for c in row["chunks"] if c["tsn"] not in tsns)
            old = sum(c["bytes"] for c in row["chunks"] if c["tsn"] in tsns)
            tsns.update(c["tsn"] for c in row["chunks"])
            fresh.append(new)
            if old:
                again.append((place, old))
        if any(row["chunks_cut"] for row in rows):
            fresh = [None] * len(rows)
    else:
        heads = [
            (row["rtp_header_bytes"] or 0) + (row["rtp_padding_bytes"] or 0) if kind == "rtp" else 0
            for row in rows
        ]
        fresh = [max(0, row["payload_bytes"] - h) for row, h in zip(rows, heads, strict=True)]
    return fresh, again


class Spans:
    """Ranges of bytes that were seen."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    @property
    def end(self) -> int | None:
        """The end of the last range."""
        return self.ends[-1] if self.ends else None

    def add(self, low: int, high: int) -> int:
        """Add a range; returns how many of its bytes are new."""
        at = bisect_right(self.starts, low)
        if at and self.ends[at - 1] >= low:
            at -= 1
        until, old, first, last = at, 0, low, high
        while until < len(self.starts) and self.starts[until] <= high:
            old += max(0, min(high, self.ends[until]) - max(low, self.starts[until]))
            first, last = min(first, self.starts[until]), max(last, self.ends[until])
            until += 1
        self.starts[at:until], self.ends[at:until] = [first], [last]
        return high - low - old
