"""The flows that two captures or event logs have in common, with loss and delay between them.

A log has neither addresses nor other headers below RTP: streams in it are known by their sources.
"""

from __future__ import annotations

import statistics
from itertools import chain
from typing import Any

from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError
from talkspurt.importing.conversations import (
    Demultiplexer,
    Found,
    Row,
    identity,
    without_copies,
)
from talkspurt.importing.directions import Flows
from talkspurt.importing.model import Hop, Way
from talkspurt.importing.point import Point
from talkspurt.importing.spans import fresh_bytes


def both(points: list[Point], made: Flows) -> None:
    """The flows that both captures have, with loss and delay between them."""
    ends = [point.rows[0]["t"] for point in points], [point.rows[-1]["t"] for point in points]
    by_source = any(point.log is not None for point in points)
    found, others = (Demultiplexer(point.rows, point.sessions).found for point in points)
    there = {
        _key(one, at, by_source): _kept(rows, by_source)
        for one in others
        for at, (_, rows) in enumerate(one.parts)
    }
    made.data = b"".join(point.data for point in points)
    for row in chain(points[0].rows, points[1].rows) if by_source else ():
        row["ip_id"] = None
    for row in points[1].rows:
        if row["payload_at"] is not None:
            row["payload_at"] += len(points[0].data)
            row["payload_end"] += len(points[0].data)
    least: dict[int, list[float]] = {0: [], 1: []}
    one_sided = 0
    for one in found:
        pairs = [
            (end, _kept(rows, by_source), there.pop(_key(one, at, by_source), None))
            for at, (end, rows) in enumerate(one.parts)
        ]
        for _, rows, other in pairs:
            if other is None:
                one_sided += 1
                _leave(rows)
        kept = [at for at, (_, _, other) in enumerate(pairs) if other is not None]
        ordered = [
            (end, *_upstream(rows, other)) for end, rows, other in pairs if other is not None
        ]
        if not ordered:
            continue
        # The SSRC of a direction is at its place.
        same = Found(
            one.talk, one.kind, [], [ssrc for at, ssrc in enumerate(one.ssrcs) if at in kept]
        )
        ways = made.add(same, [(end, early) for end, early, _, _ in ordered])
        for way, (_, early, late, first) in zip(ways, ordered, strict=True):
            begin, finish = ends[0][1 - first], ends[1][1 - first]
            delays = _matched(way, early, late, one.kind, begin, finish)
            least[first] += [min(delays)] if delays else []
    if not made.ways:
        first_file, second = (point.file for point in points)
        none = "has no flow in common with the other capture"
        raise BadInputError(visible(f"{first_file}: {none}, {second}"))
    one_sided += len(there)
    for rows in there.values():
        _leave(rows)
    if one_sided:
        made.facts["directions_in_one_capture"] = one_sided
    if least[0] and least[1]:
        ahead, back = min(least[0]), min(least[1])
        made.facts["clock_offset_estimate_s"] = (ahead - back) / 2
        made.facts["clock_offset_bound_s"] = abs(ahead + back) / 2
    if any(delay < 0 for found in least.values() for delay in found):
        made.note(
            "some delays are negative: the clocks of the captures differ; --clock-offset corrects "
            "it"
        )
    made.note("sent at the first capture on the way, received at the second")


ONE_SIDED = "packets of directions of flows that only one capture has"


def _leave(rows: list[Row]) -> None:
    for row in rows:
        row["role"] = ONE_SIDED


def _kept(rows: list[Row], by_source: bool) -> list[Row]:
    """The packets that can be found in the other capture."""
    once = without_copies(rows)
    return [row for row in once if row["rtp_seq"] is not None or not by_source]


def _key(found: Found, at: int, by_source: bool) -> tuple[Any, ...]:
    """The same direction of the same flow in either capture."""
    ssrc = found.ssrcs[at] if at < len(found.ssrcs) else None
    if by_source and ssrc is not None:
        return (ssrc,)
    return found.kind, frozenset(found.talk.ends), found.parts[at][0], ssrc


def _upstream(one: list[Row], two: list[Row]) -> tuple[list[Row], list[Row], int]:
    """The rows of the earlier capture on the way, of the later, and the number of the earlier.

    Routers count the hop limit down; where both captures see the same, the time decides.
    """
    first = {identity(row): row for row in reversed(one)}
    both = [(first[identity(row)], row) for row in two if identity(row) in first]
    hops = sum(early["hop_limit"] - late["hop_limit"] for early, late in both)
    if not hops and both:
        hops = 1 if statistics.median(late["t"] - early["t"] for early, late in both) >= 0 else -1
    return (one, two, 0) if hops >= 0 else (two, one, 1)


def _matched(
    way: Way, early: list[Row], late: list[Row], kind: str, begin: float, finish: float
) -> list[float]:
    """Completes a direction that was filled from the earlier capture; returns its delays.

    Of several equal packets, one that arrives is the latest that was sent before.
    """
    waiting: dict[tuple[Any, ...], list[Row]] = {}
    for row in early:
        if row["packet"] is not None:
            waiting.setdefault(identity(row), []).append(row)
    fresh, _ = fresh_bytes(late, kind)
    delays, strays = [], 0
    found: dict[int, float] = {}
    bytes_: dict[int, int | None] = {}
    for row, new in zip(late, fresh, strict=True):
        same = waiting.get(identity(row))
        if not same:
            strays += 1
            continue
        place = max((i for i, sent in enumerate(same) if sent["t"] <= row["t"]), default=0)
        sent = same.pop(place)
        found[id(sent)], bytes_[id(sent)] = row["t"], new
        delays.append(row["t"] - sent["t"])
    usual = statistics.median(delays) if delays else 0.0
    packets = []
    for row in early:
        packet = row["packet"]
        if packet is None:
            continue
        packet.sent_s, packet.received_s = row["t"], found.get(id(row))
        if packet.received_s is not None:
            packet.fresh_bytes = bytes_[id(row)]
        elif row["t"] + usual < begin:
            continue  # before the other capture began
        else:
            packet.fate = "in_flight" if row["t"] + usual > finish else "lost"
        packets.append(packet)
    way.sees_sent, way.counts = True, False
    way.packets = packets
    for number, packet in enumerate(packets):
        packet.number = number
        way.hops.append(
            Hop(number, way.routes[0][0], packet.ip_bytes, None, packet.sent_s, packet.received_s,
                packet.fate)
        )  # fmt: skip
    if way.speech is not None:
        # The sender's capture shows when packets left.
        way.speech.delay_s = 0.0
    if strays:
        way.facts["received_but_not_sent_packets"] = strays
    return delays
