"""Reads captures (pcap, pcapng) of RTP, UDP, TCP, SCTP and DCCP, from one point or from two.

The compiled part reads the headers. From one point, the trace tells when packets passed; numbers
of RTP (RFC 3550 A.3) and DCCP (RFC 4340 §7) also tell how many did not. From two points, packets
are matched by their addresses and numbers, and give loss and delay.
"""

from __future__ import annotations

import itertools
import statistics
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from talkspurt import _core
from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError
from talkspurt.importing import rtp
from talkspurt.importing.model import Hop, Packet, Speech, Trace, Way

Row = dict[str, Any]
End = tuple[str, int]


@dataclass
class Point:
    """The packets of one capture.

    Attributes:
        file: the capture.
        rows: packets of known protocols, in order of time, with their chunks.
        left_out: how many frames and packets were not read, by kind.
    """

    file: Path
    rows: list[Row]
    left_out: dict[str, int]

    @classmethod
    def read(cls, file: Path, data: bytes) -> Point:
        """A capture file.

        Raises:
            BadInputError: if it cannot be read or has no packets of a known protocol.
        """
        try:
            packets, chunks, frames, left_out = _core.capture(data)
        except ValueError as error:
            raise BadInputError(visible(f"{file}: {error}")) from None
        rows = pl.DataFrame(packets).sort("time_ns", maintain_order=True).to_dicts()
        by_frame: dict[int, list[Row]] = {}
        for chunk in pl.DataFrame(chunks).iter_rows(named=True):
            by_frame.setdefault(chunk["frame"], []).append(chunk)
        for row in rows:
            row["chunks"] = by_frame.get(row["frame"], [])
        if not frames:
            raise BadInputError(visible(f"{file}: holds no packets"))
        if not rows:
            found = ", ".join(f"{count} {kind}" for kind, count in left_out)
            none = "holds no packets of RTP, UDP, TCP, SCTP or DCCP over IP"
            raise BadInputError(visible(f"{file}: {none}: {found}"))
        return cls(file, rows, dict(left_out))


@dataclass
class Conversation:
    """The packets between two ends, by direction: the first is that of the opening end."""

    protocol: str
    ends: tuple[End, End]
    rows: dict[End, list[Row]] = field(default_factory=dict)


def conversations(point: Point) -> dict[tuple[str, frozenset[End]], Conversation]:
    """All conversations of a capture, in order of their first packets."""
    found: dict[tuple[str, frozenset[End]], Conversation] = {}
    for row in point.rows:
        here, there = (row["src"], row["src_port"]), (row["dst"], row["dst_port"])
        key = (row["protocol"], frozenset((here, there)))
        if key not in found:
            found[key] = Conversation(row["protocol"], (here, there), {here: [], there: []})
        found[key].rows.setdefault(here, []).append(row)
    return found


def streams(talk: Conversation) -> dict[tuple[End, int], list[Row]]:
    """The RTP streams of a conversation by sender and source; empty if it carries none.

    A source is one of RTP if two packets have successive numbers (RFC 3550 A.1), and RTP and RTCP
    are most of the conversation: other protocols may begin with the same two bits.
    """
    found: dict[tuple[End, int], list[Row]] = {}
    for end, rows in talk.rows.items():
        for row in rows:
            if row["rtp_seq"] is not None:
                found.setdefault((end, row["rtp_ssrc"]), []).append(row)
    valid = {key: rows for key, rows in found.items() if _successive(rows)}
    media = sum(map(len, valid.values())) + sum(
        r["rtcp"] for rows in talk.rows.values() for r in rows
    )
    return valid if 2 * media > sum(map(len, talk.rows.values())) else {}


def _successive(rows: list[Row]) -> bool:
    pairs = itertools.pairwise(rows)
    return any((b["rtp_seq"] - a["rtp_seq"]) % 65536 == 1 for a, b in pairs)


def read(
    points: list[Point], *, payloads: dict[int, str], delay_s: float | None, offset_s: float
) -> Trace:
    """The flows of one capture, or of the captures at both ends of a path.

    Args:
        points: one capture, or two.
        payloads: encoding names of dynamic payload types.
        delay_s: the network delay before a single capture, if known.
        offset_s: the clock of the second capture minus that of the first.
    """
    shift = [0, round(offset_s * 1e9)]
    start = min(point.rows[0]["time_ns"] - shift[i] for i, point in enumerate(points))
    end = max(point.rows[-1]["time_ns"] - shift[i] for i, point in enumerate(points))
    for i, point in enumerate(points):
        for row in point.rows:
            row["t"] = (row["time_ns"] - shift[i] - start) / 1e9
    made = _Flows(payloads, delay_s)
    if len(points) == 1:
        _single(points[0], made)
    else:
        _both(points, made)
    skipped = made.skipped
    for point in points:
        for name, count in point.left_out.items():
            skipped[name] = skipped.get(name, 0) + count
    facts = {"began_ns": start, **made.facts}
    if len(points) == 2:
        facts["clock_offset_s"] = offset_s
    return Trace("capture", made.ways, made.links, (end - start) / 1e9, made.notes, skipped, facts)


class _Flows:
    """Directions as they are found, and the names of flows."""

    def __init__(self, payloads: dict[int, str], delay_s: float | None) -> None:
        self.payloads, self.delay_s = payloads, delay_s
        self.ways: list[Way] = []
        self.links: dict[str, tuple[str, str]] = {}
        self.notes: list[str] = []
        self.facts: dict[str, Any] = {}
        self.skipped: dict[str, int] = {}
        self.count: Counter[str] = Counter()

    def name(self, protocol: str) -> str:
        self.count[protocol] += 1
        return f"{protocol}-{self.count[protocol]}"

    def link(self, sender: str, receiver: str) -> str:
        name = f"{sender}-{receiver}"
        self.links.setdefault(name, (sender, receiver))
        return name

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def add(self, talk: Conversation, parts: list[tuple[End, list[Row]]], kind: str) -> list[Way]:
        """A flow of one or two directions; the first sends data, and opened if both do."""
        flow = self.name(kind)
        added = []
        for side, (end, rows) in zip(("from", "to"), parts, strict=False):
            other = talk.ends[1] if end == talk.ends[0] else talk.ends[0]
            way = Way(flow, side, talk.protocol, "unknown", end[0], other[0])
            way.facts = {"source": _end(end), "destination": _end(other)}
            way.routes = [[self.link(end[0], other[0])]]
            _fill(way, rows, kind)
            if "restarts" in way.facts:
                self.note(
                    f"the source of {way.name} restarts with new numbers: what was lost in between "
                    "is not known"
                )
            if kind == "rtp":
                self._media(way, rows)
            added.append(way)
        self.ways += added
        return added

    def _media(self, way: Way, rows: list[Row]) -> None:
        kinds = Counter(row["rtp_type"] for row in rows if row["rtp_seq"] is not None)
        kind = kinds.most_common(1)[0][0]
        name, clock = rtp.STATIC.get(kind, (None, None))
        if kind in self.payloads:
            name = self.payloads[kind]
            clock = rtp.CLOCKS.get(name.upper(), clock)
        way.facts |= {
            "ssrc": next(row["rtp_ssrc"] for row in rows if row["rtp_seq"] is not None),
            "payload_type": kind, "encoding": name, "clock_hz": clock
        }  # fmt: skip
        if clock is None:
            self.note(
                f"payload type {kind} is dynamic, and its clock not known: no jitter by RFC 3550 "
                "and no MOS; --payload names its encoding"
            )
            return
        # Copies of packets, and events (RFC 4733), are not part of the sound.
        events = rtp.event_types(rows, kind, self.payloads)
        media = [
            row
            for row in rows
            if row["rtp_seq"] is not None
            and row["packet"] is not None
            and row["rtp_type"] not in events
        ]
        stamps = rtp.unwrapped([row["rtp_timestamp"] for row in media], 32)
        for row, time in zip(media, rtp.media_times(media, stamps, clock), strict=True):
            row["media_s"] = row["packet"].media_s = time
        codec = rtp.CODECS.get((name or "").upper())
        if codec == "g723.1-6.3" and all(
            rtp.media_bytes(row) < 24 for row in rows if _data(row, "rtp")
        ):
            codec = "g723.1-5.3"  # RFC 3551 §4.5.3: 24 bytes at the higher rate, 20 at the lower
        frame = rtp.frame_s(media, stamps, clock)
        if codec is None or frame is None:
            return
        transit = min(row["t"] - row["media_s"] for row in media)
        way.source = "speech"
        way.speech = Speech(codec, frame, transit, self.delay_s)


def _end(end: End) -> str:
    return f"[{end[0]}]:{end[1]}" if ":" in end[0] else f"{end[0]}:{end[1]}"


DCCP_DATA = (2, 4)
"""DCCP-Data and DCCP-DataAck."""
DCCP_OPENS = (0, 1)
"""DCCP-Request and DCCP-Response."""
DCCP_WINDOW = 100
"""The initial sequence window (RFC 4340 §7.5.2)."""


def _data(row: Row, kind: str) -> bool:
    if kind == "rtp":
        return row["rtp_seq"] is not None
    if row["protocol"] == "sctp":
        return bool(row["chunks"])
    if row["protocol"] == "dccp":
        return row["kind"] in DCCP_DATA
    return bool(row["payload_bytes"])


def _fill(way: Way, rows: list[Row], kind: str) -> None:
    """The packets of a direction as they passed, and what numbers tell."""
    way.sees_sent = False
    way.counts = kind in ("rtp", "dccp")
    numbers, restarts = _numbers(rows, kind)
    if restarts:
        way.facts["restarts"] = len(restarts)
    fresh, again = _fresh(rows, kind)
    seen: set[int] = set()
    copies = 0
    for place, row in enumerate(rows):
        row["order"] = place if numbers[place] is None else numbers[place]
        row["restart"] = place in restarts
        if way.counts and numbers[place] is not None:
            if numbers[place] in seen:
                copies += 1
                row["packet"] = None
                continue
            seen.add(row["order"])
        media = 0
        payload = row["payload_bytes"]
        if kind == "rtp" and row["rtp_header_bytes"]:
            media = min(row["rtp_header_bytes"], payload)
        heads = (row["network_header_bytes"], row["transport_header_bytes"], media)
        whole = not row["chunks_cut"]
        row["packet"] = Packet(
            place, _data(row, kind), row["ip_bytes"], None, row["t"], "received",
            heads if whole else None, payload - media if whole else None, fresh[place], None,
        )  # fmt: skip
        way.packets.append(row["packet"])
    if copies:
        way.facts["duplicate_packets"] = copies
    if kind in ("tcp", "sctp"):
        if any(row["chunks_cut"] for row in rows):
            way.facts["chunks_cut_off"] = True
        way.facts["retransmitted_packets"] = len(again)
        way.facts["retransmitted_bytes"] = sum(size for _, size in again)
        way.events += [(rows[place]["t"], "retransmission") for place, _ in again]
    _openings(way, rows)


OPENINGS = {
    "dccp": {0: "request", 1: "response", 5: "close_request", 6: "close", 7: "reset"},
    "sctp": {1: "init", 2: "init_ack", 6: "abort", 7: "shutdown", 14: "shutdown_complete"},
}
"""Events of connections by kind of packet or chunk."""


def _openings(way: Way, rows: list[Row]) -> None:
    """Events of connections."""
    for row in rows:
        if row["protocol"] == "tcp":
            way.events += [(row["t"], flag) for flag in ("syn", "fin", "rst") if row[flag]]
        elif text := OPENINGS.get(row["protocol"], {}).get(row["kind"]):
            way.events.append((row["t"], text))


def _numbers(rows: list[Row], kind: str) -> tuple[list[int | None], set[int]]:
    """The number of each packet, if its protocol counts them, and the places of restarts."""
    if kind == "rtp":
        places = [place for place, row in enumerate(rows) if row["rtp_seq"] is not None]
        found, restarts = rtp.numbers([rows[place] for place in places])
        numbers: list[int | None] = [None] * len(rows)
        for place, number in zip(places, found, strict=True):
            numbers[place] = number
        return numbers, {places[i] for i in restarts}
    if kind == "dccp":
        # RFC 4340 §7.6: short numbers are the lower 24 bits.
        plain = rtp.unwrapped([row["seq"] & 0xFFFFFF for row in rows], 24)
        shift, begun = 0, set()
        counted: list[int | None] = []
        for place, (row, number) in enumerate(zip(rows, plain, strict=True)):
            follows = not place or 0 <= number - plain[place - 1] <= DCCP_WINDOW
            if row["kind"] in DCCP_OPENS and not follows:
                # Another connection on the same ports, with an initial number of its own (§7.2).
                shift = max(n for n in counted if n is not None) + 1 - number
                begun.add(place)
            counted.append(number + shift)
        return counted, begun
    return [None] * len(rows), set()


def _fresh(rows: list[Row], kind: str) -> tuple[list[int | None], list[tuple[int, int]]]:
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
        heads = [row["rtp_header_bytes"] or 0 if kind == "rtp" else 0 for row in rows]
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


def _single(point: Point, made: _Flows) -> None:
    for talk, kind, parts in flows(point):
        for (_, rows), way in zip(parts, made.add(talk, parts, kind), strict=True):
            kept = [row for row in rows if row["packet"] is not None]
            _number(way, kept, kind)
            for packet in way.packets:
                way.hops.append(
                    Hop(packet.number, way.routes[0][0], packet.ip_bytes, None, None,
                        packet.received_s, packet.fate)
                )  # fmt: skip
    made.note(
        "the capture is at one point: what passed counts as received; network delay, and what was "
        "lost behind the point, are not known"
    )
    made.note(
        "packets lost before the capture are known by their numbers for RTP and DCCP, and not "
        "known for TCP, SCTP and other UDP"
    )


def _number(way: Way, rows: list[Row], kind: str) -> None:
    """Numbers the packets in the order in which they were sent, with those that are missing."""
    if not way.counts:
        return
    keys: list[tuple[int, int, Packet]] = []
    last = None
    for place, row in enumerate(rows):
        if kind == "rtp" and row["rtp_seq"] is None:
            # Behind the RTP packet that it followed.
            keys.append((rows[0]["order"] if last is None else last, place + 1, row["packet"]))
        else:
            last = row["order"]
            keys.append((last, 0, row["packet"]))
    data = {order: packet for order, _, packet in keys if packet.data}
    there = {order for order, behind, _ in keys if not behind}
    if data:
        before = data[min(data)].media_s
        step = way.speech.packet_s if way.speech else None
        for order in range(min(data), max(data) + 1):
            if order in data:
                before = data[order].media_s
            elif order not in there:
                # The media time of a missing packet, if it continued what came before.
                before = before + step if before is not None and step is not None else None
                keys.append((order, 0, Packet(0, True, None, None, None, "lost", media_s=before)))
    keys.sort(key=lambda key: key[:2])
    for number, (_, _, packet) in enumerate(keys):
        packet.number = number
    way.packets = [packet for _, _, packet in keys]


def flows(point: Point) -> list[tuple[Conversation, str, list[tuple[End, list[Row]]]]]:
    """The flows of a capture: conversation, kind, and rows by direction.

    The first direction sends data; if both do, it is that of the opening end.
    """
    found: list[tuple[Conversation, str, list[tuple[End, list[Row]]]]] = []
    talks = conversations(point)
    media = {key for key, talk in talks.items() if streams(talk)}
    for key, talk in talks.items():
        kind = talk.protocol
        if key in media:
            sources = streams(talk)
            rest = {
                end: [row for row in rows if (end, row["rtp_ssrc"]) not in sources]
                for end, rows in talk.rows.items()
            }
            # Their numbers are not those of any other source.
            strays = sum(row["rtp_seq"] is not None for rows in rest.values() for row in rows)
            if strays:
                point.left_out[STRAYS] = point.left_out.get(STRAYS, 0) + strays
            found += _of_media(talk, sources, rest)
            continue
        if kind == "udp" and _is_rtcp_of(talk, media):
            continue
        # A socket that sends to itself is both ends.
        parts = [(end, talk.rows[end]) for end in dict.fromkeys(talk.ends) if talk.rows[end]]
        sends = [any(_data(row, kind) for row in rows) for _, rows in parts]
        if len(parts) == 2 and sends[1] and not sends[0]:
            parts.reverse()
        found.append((talk, kind, parts))
    return found


STRAYS = "RTP packets of sources without two successive numbers"


def _is_rtcp_of(talk: Conversation, media: set[tuple[str, frozenset[End]]]) -> bool:
    """Whether this is RTCP on the ports behind those of RTP (RFC 3550 §11)."""
    if not all(row["rtcp"] for rows in talk.rows.values() for row in rows):
        return False
    below = frozenset((host, port - 1) for host, port in talk.ends)
    return ("udp", below) in media


def _of_media(
    talk: Conversation,
    found: dict[tuple[End, int], list[Row]],
    rest: dict[End, list[Row]],
) -> list[tuple[Conversation, str, list[tuple[End, list[Row]]]]]:
    """RTP streams as flows, with the rest of the packets on their ports.

    Two streams of one source each in both directions are one flow.
    """
    senders = Counter(end for end, _ in found)
    both = len(found) == 2 and all(count == 1 for count in senders.values())
    rest = {end: [r for r in rows if r["rtp_seq"] is None] for end, rows in rest.items()}
    parts = []
    for (end, _), rows in sorted(found.items(), key=lambda item: item[1][0]["frame"]):
        # RTCP and other packets on the same ports belong to the sender's first stream.
        more, rest[end] = rest[end], []
        parts.append((end, sorted([*rows, *more], key=lambda row: row["time_ns"])))
    if both:
        return [(talk, "rtp", parts)]
    return [(talk, "rtp", [part]) for part in parts]


def _both(points: list[Point], made: _Flows) -> None:
    """The flows that both captures have, with loss and delay between them."""
    ends = [point.rows[0]["t"] for point in points], [point.rows[-1]["t"] for point in points]
    there = {_key(talk, kind, end, rows): rows for talk, kind, parts in flows(points[1])
             for end, rows in parts}  # fmt: skip
    least: dict[int, list[float]] = {0: [], 1: []}
    one_sided = 0
    for talk, kind, parts in flows(points[0]):
        pairs = [(end, rows, there.pop(_key(talk, kind, end, rows), None)) for end, rows in parts]
        one_sided += sum(other is None for _, _, other in pairs)
        ordered = [
            (end, *_upstream(rows, other, kind)) for end, rows, other in pairs if other is not None
        ]
        if not ordered:
            continue
        ways = made.add(talk, [(end, early) for end, early, _, _ in ordered], kind)
        for way, (_, early, late, first) in zip(ways, ordered, strict=True):
            begin, finish = ends[0][1 - first], ends[1][1 - first]
            delays = _matched(way, early, late, kind, begin, finish)
            least[first] += [min(delays)] if delays else []
    if not made.ways:
        one, other = (point.file for point in points)
        none = "has no flow in common with the other capture"
        raise BadInputError(visible(f"{one}: {none}, {other}"))
    one_sided += len(there)
    if one_sided:
        made.skipped["directions of flows that only one capture has"] = one_sided
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


def _key(talk: Conversation, kind: str, end: End, rows: list[Row]) -> tuple[Any, ...]:
    """The same direction of the same flow in either capture."""
    ssrc = next((row["rtp_ssrc"] for row in rows if row["rtp_seq"] is not None), None)
    return kind, frozenset(talk.ends), end, ssrc if kind == "rtp" else None


def _identity(row: Row) -> tuple[Any, ...]:
    """What a packet keeps on its way."""
    kind = row["protocol"]
    if row["rtp_seq"] is not None:
        return "rtp", row["rtp_ssrc"], row["rtp_seq"], row["rtp_timestamp"], row["ip_id"]
    if kind == "dccp":
        return kind, row["seq"], row["kind"], row["ip_id"]
    if kind == "tcp":
        flags = (row["syn"], row["fin"], row["rst"])
        return kind, row["seq"], row["ack"], row["payload_bytes"], flags, row["ip_id"]
    if kind == "udp":
        # Not every system numbers its packets, and IPv6 none. A router may have cut the packet.
        return kind, row["payload_bytes"], row["digest"], row["ip_id"]
    tsns = tuple(chunk["tsn"] for chunk in row["chunks"])
    return kind, row["kind"], tsns, row["ip_bytes"], row["ip_id"]


def _upstream(one: list[Row], two: list[Row], kind: str) -> tuple[list[Row], list[Row], int]:
    """The rows of the earlier capture on the way, of the later, and the number of the earlier.

    Routers count the hop limit down; where both captures see the same, the time decides.
    """
    first = {_identity(row): row for row in reversed(one)}
    both = [(first[_identity(row)], row) for row in two if _identity(row) in first]
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
            waiting.setdefault(_identity(row), []).append(row)
    fresh, _ = _fresh(late, kind)
    delays, strays = [], 0
    found: dict[int, float] = {}
    bytes_: dict[int, int | None] = {}
    for row, new in zip(late, fresh, strict=True):
        same = waiting.get(_identity(row))
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
