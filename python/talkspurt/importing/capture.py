"""Reads captures (pcap, pcapng) of RTP, UDP, TCP, SCTP and DCCP, from one point or from two.

The compiled part reads the headers, and :mod:`.conversations` finds the flows. From one point, the
trace tells when packets passed; numbers of RTP (RFC 3550 A.3) and DCCP (RFC 4340 §7) also tell how
many did not. From two points, packets are matched by their addresses and numbers, and give loss and
delay. Each frame has one outcome: see :class:`Outcomes`.
"""

from __future__ import annotations

from collections import Counter

from talkspurt._text.escaping import whole
from talkspurt.importing import matching
from talkspurt.importing.conversations import (
    CONTROL,
    DATA,
    DUPLICATE,
    REPAIR,
    Demultiplexer,
    Row,
)
from talkspurt.importing.directions import Flows, number
from talkspurt.importing.model import Hop, Trace
from talkspurt.importing.point import Point

REASSEMBLED = "reassembled"
OUTCOMES = (DATA, REPAIR, CONTROL, DUPLICATE, REASSEMBLED)
"""What a frame can be, the first that holds of its packets; others are not imported."""
CUT = "its last {} bytes are part of a packet, and what followed is missing"
UNTIMED = "frames have no time of their own: they have that of the frame before"


class Outcomes:
    """What became of each frame of a capture: the sums are the frames of the file.

    A frame has data, else repair or control packets of a flow; else all its packets are duplicates;
    else it is a fragment of a packet that another frame begins; else it is not imported, with its
    reason.
    """

    def __init__(self, rows: list[Row], left_out: list[tuple[int, str]], frames: int) -> None:
        of: dict[int, str] = dict(left_out)
        ranks = {name: rank for rank, name in enumerate(OUTCOMES)}
        for row in rows:
            before = of.get(row["frame"])
            if before is None or ranks.get(row["role"], 9) < ranks.get(before, 9):
                of[row["frame"]] = row["role"]
        counts = Counter(of.values())
        self.of_kind = {name: counts.pop(name, 0) for name in OUTCOMES}
        self.not_imported = dict(counts)
        found = sum(self.of_kind.values()) + sum(self.not_imported.values())
        assert found == frames, f"{found} of {frames} frames have an outcome"

    def facts(self) -> dict[str, int]:
        """For the manifest."""
        total = sum(self.of_kind.values()) + sum(self.not_imported.values())
        return {
            "captured": total, **self.of_kind, "not_imported": sum(self.not_imported.values())
        }  # fmt: skip


def read(points: list[Point], *, delay_s: float | None, offset_s: float) -> Trace:
    """The flows of one capture, or of the captures at both ends of a path."""
    shift = [0, round(offset_s * 1e9)]
    start = min(point.rows[0]["time_ns"] - shift[i] for i, point in enumerate(points))
    end = max(point.rows[-1]["time_ns"] - shift[i] for i, point in enumerate(points))
    for i, point in enumerate(points):
        for row in point.rows:
            row["t"] = (row["time_ns"] - shift[i] - start) / 1e9
    made = Flows(points[0].sessions, delay_s)
    if len(points) == 1:
        _single(points[0], made)
    else:
        matching.both(points, made)
    made.report()
    skipped: dict[str, int] = {}
    outcomes = [Outcomes(point.rows, point.left_out, point.frames) for point in points]
    for one in outcomes:
        for name, count in one.not_imported.items():
            skipped[name] = skipped.get(name, 0) + count
    made.notes[:0] = [
        f"{whole(it.file.name)} is cut: {CUT.format(it.cut)}" for it in points if it.cut
    ]
    if untimed := sum(point.untimed for point in points):
        made.note(f"{untimed} {UNTIMED}")
    facts = {"began_ns": start, "frames": [one.facts() for one in outcomes], **made.facts}
    if len(points) == 2:
        facts["clock_offset_s"] = offset_s
    return Trace("capture", made.ways, made.links, (end - start) / 1e9, made.notes, skipped, facts)


ONE_POINT = (
    "the capture is at one point: what passed counts as received; network delay, and what was "
    "lost behind the point, are not known",
    "packets lost before the capture are known by their numbers for RTP and DCCP, and not known "
    "for TCP, SCTP and other UDP",
)


def _single(point: Point, made: Flows) -> None:
    for found in Demultiplexer(point.rows, point.sessions).found:
        made.data = point.data
        for (_, rows), way in zip(found.parts, made.add(found, found.parts), strict=True):
            kept = [row for row in rows if row["packet"] is not None]
            number(way, kept, found.kind)
            for packet in way.packets:
                way.hops.append(
                    Hop(packet.number, way.routes[0][0], packet.ip_bytes, None, None,
                        packet.received_s, packet.fate)
                )  # fmt: skip
