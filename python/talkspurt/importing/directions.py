"""Directions of flows as their packets passed a capture, with what their numbers tell."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from talkspurt.importing import acknowledged, drift, reports, rtp
from talkspurt.importing.conversations import (
    DATA,
    DUPLICATE,
    REPAIR,
    SHORT,
    Conversation,
    End,
    Found,
    Part,
    Row,
    without_copies,
)
from talkspurt.importing.model import Packet, Speech, Way
from talkspurt.importing.sessions import Payload, Sessions
from talkspurt.importing.spans import fresh_bytes


class Flows:
    """Directions as they are found, and the names of flows."""

    def __init__(self, sessions: Sessions, delay_s: float | None) -> None:
        self.sessions, self.delay_s = sessions, delay_s
        self.data = b""
        self.ways: list[Way] = []
        self.links: dict[str, tuple[str, str]] = {}
        self.notes: list[str] = []
        self.facts: dict[str, Any] = {}
        self.media: dict[int, list[tuple[Found, list[Way], list[Part]]]] = {}
        self.count: Counter[str] = Counter()

    def name(self, protocol: str) -> str:
        """The name of the next flow of a kind."""
        self.count[protocol] += 1
        return f"{protocol}-{self.count[protocol]}"

    def link(self, sender: str, receiver: str) -> str:
        """The name of the link between two hosts."""
        name = f"{sender}-{receiver}"
        self.links.setdefault(name, (sender, receiver))
        return name

    def note(self, text: str) -> None:
        """Say something once."""
        if text not in self.notes:
            self.notes.append(text)

    def add(self, found: Found, parts: list[Part]) -> list[Way]:
        """A flow of one or two directions; the first sends data, and opened if both do."""
        talk, kind = found.talk, found.kind
        hidden = kind == "rtp" and _is_encrypted(talk)
        flow = self.name(kind)
        added = []
        copies = [len(rows) for _, rows in parts]
        parts = [(end, without_copies(rows)) for end, rows in parts]
        for number, (side, (end, rows)) in enumerate(zip(("from", "to"), parts, strict=False)):
            other = talk.other(end)
            way = Way(flow, side, talk.protocol, "unknown", end[0], other[0])
            way.facts = {"source": _end(end), "destination": _end(other)}
            way.routes = [[self.link(end[0], other[0])]]
            media = kind == "rtp" and number < len(found.ssrcs)
            _fill(way, rows, kind, copies[number] - len(rows))
            if "restarts" in way.facts:
                self.note(
                    f"the source of {way.name} restarts with new numbers: what was lost in between "
                    "is not known"
                )
            if media:
                self._media(way, rows, (end, other, found.ssrcs[number]), is_encrypted=hidden)
            added.append(way)
        if kind == "rtp":
            self.media.setdefault(id(talk), []).append((found, added, parts))
        if kind in ("tcp", "sctp") and len(parts) == 2:
            (_, ahead), (_, back) = parts
            added[0].gauges += acknowledged.round_trips(ahead, back)
            added[1].gauges += acknowledged.round_trips(back, ahead)
        self.ways += added
        return added

    def report(self) -> None:
        """Add what RTCP reports, when all flows are there."""
        for flows in self.media.values():
            reports.add(flows)

    def _media(
        self, way: Way, rows: list[Row], stream: tuple[End, End, int], *, is_encrypted: bool
    ) -> None:
        data = [row for row in rows if row["role"] == DATA and row["packet"] is not None]
        it = self._source(stream, data, is_encrypted=is_encrypted)
        known = it.known
        name, clock = (known.encoding, known.clock_hz) if known else (None, None)
        way.facts |= {
            "ssrc": stream[2], "payload_type": it.kind, "encoding": name, "clock_hz": clock
        }  # fmt: skip
        if it.red is not None:
            way.facts["redundant_blocks"] = it.red.blocks
        if not it.is_encrypted:
            self._originals(rows, stream)
        if len(data) <= SHORT:
            return
        if known is None or clock is None:
            self.note(
                f"payload type {it.kind} is dynamic, and its clock not known: no jitter by RFC "
                f"3550 and no MOS; --payload {it.kind}=ENCODING/CLOCK or --sdp FILE names it"
            )
            return
        media = self._of_one_clock(way, it, clock)
        stamps = rtp.unwrapped([row["rtp_timestamp"] for row in media], 32)
        if odd := self._timed(way, media, stamps, known):
            self.note(f"{way.name}: {odd}: no playout and no score")
            return
        frame = rtp.frame_s(media, stamps, clock)
        if known.name in rtp.CODECS:
            every, media = media, rtp.sounding(media)
            if padding := len(every) - len(media):
                way.facts["padding_packets"] = padding
                self.note(f"{way.name}: {padding} packets are padding, and no speech")
        for row in media:
            packet = row["packet"]
            packet.media_s = row["media_s"]
            packet.noise = row["rtp_type"] == COMFORT_NOISE or it.names.get(row["rtp_type"]) == "CN"
            packet.marker = bool(row["rtp_marker"])
            # Another encoding is played, but nothing decodes it, nor what was cut off.
            at, end = row["payload_at"], row["payload_end"]
            if row["rtp_type"] == it.kind and at is not None and end - at == rtp.media_bytes(row):
                packet.payload = at, end
        speed = self._drift(way, media, clock)
        codec = rtp.codec(known, media, frame) if frame and media else None
        if codec is None or frame is None or it.changes:
            if it.changes or rtp.may_be_speech(known):
                why = CHANGES if it.changes else f"{name} is no codec of scenarios"
                self.note(f"{way.name}: {why}: no playout and no score")
            return
        ppm = speed.ppm if speed is not None and speed.is_clock else 0.0
        transit = min(row["t"] - row["media_s"] * (1 + ppm * 1e-6) for row in media)
        way.source = "speech"
        settings = rtp.settings(codec, media, frame, it.red)
        notes = [speed.assumed()] if ppm and speed is not None else []
        way.speech = Speech(codec, frame, transit, self.delay_s, ppm, settings, notes)
        self._hearing(way, it, [row for row in media if row["packet"].payload])

    def _source(
        self, stream: tuple[End, End, int], data: list[Row], *, is_encrypted: bool
    ) -> Source:
        """What a source sends, as it was described when its first packet passed."""
        begin, end = data[0]["time_ns"], data[-1]["time_ns"]
        is_encrypted = is_encrypted or self.sessions.encrypts(*stream, begin)
        meanings = {
            kind: payload
            for kind in {row["rtp_type"] for row in data}
            if (payload := self.sessions.payload(*stream, kind, begin)) is not None
        }
        kind = Counter(row["rtp_type"] for row in data).most_common(1)[0][0]
        known = meanings.get(kind)
        changes = known is not None and self.sessions.payload(*stream, kind, end) != known
        red = None
        if known is not None and known.name == "RED" and not is_encrypted:
            # Of redundant data, the primary encoding (RFC 2198).
            red = rtp.redundancy(data, kind, self.data)
            if red is not None:
                known = self.sessions.payload(*stream, red.primary, begin) or known
        return Source(data, kind, known, meanings, red, changes, is_encrypted)

    def _originals(self, rows: list[Row], stream: tuple[End, End, int]) -> None:
        """The number of the packet that each retransmission repeats (RFC 4588 §4)."""
        for row in rows:
            at, end = row["payload_at"], row["payload_end"]
            if row["role"] != REPAIR or at is None or end < at + ORIGINAL:
                continue
            here, there, _ = stream
            meaning = self.sessions.payload(
                here, there, row["rtp_ssrc"], row["rtp_type"], row["time_ns"]
            )
            if meaning is not None and meaning.name == "RTX":
                row["original"] = int.from_bytes(self.data[at : at + ORIGINAL], "big")

    def _of_one_clock(self, way: Way, it: Source, clock: int) -> list[Row]:
        """Without events (RFC 4733), and packets whose timestamps are of another clock."""
        others = rtp.event_types(it.data, it.kind, it.names)
        for kind, meaning in it.meanings.items():
            if kind in {it.kind, *others} or meaning.clock_hz == clock or meaning.name == "CN":
                continue
            others.add(kind)
            count = sum(row["rtp_type"] == kind for row in it.data)
            self.note(
                f"{way.name}: {count} packets of {meaning.encoding} are not played: their clock is "
                "another one"
            )
        return [row for row in it.data if row["rtp_type"] not in others]

    def _timed(self, way: Way, media: list[Row], stamps: list[int], known: Payload) -> str | None:
        """Sets the times of media; returns what is wrong with the clocks, if anything is."""
        still, back_s = rtp.standstills(media, known.clock_hz)
        if back_s:
            return f"the capture's clock was set back by {back_s:.0f} s while the source went on"
        for row, seconds in still:
            row["restart"] = True
            self.note(
                f"the timestamps of {way.name} stand still for {seconds:.0f} s: its source paused, "
                "or the capture's clock was set"
            )
        times = rtp.media_times(media, stamps, known.clock_hz)
        for row, time in zip(media, times, strict=True):
            row["media_s"] = time
        if (spans := rtp.other_pace(media)) is None:
            return None
        return (
            f"{spans[0]:.1f} s of media passed in {spans[1]:.1f} s, so that its clock is not "
            f"{known.encoding}/{known.clock_hz} (--payload), or these are not the times at which "
            "its packets passed"
        )

    def _drift(self, way: Way, media: list[Row], clock: int) -> drift.Drift | None:
        speed = drift.found([(row["media_s"], row["t"]) for row in media])
        if speed is not None:
            way.facts |= speed.facts()
            if note := speed.note(way.name, clock):
                self.note(note)
        return speed

    def _hearing(self, way: Way, it: Source, whole: list[Row]) -> None:
        """Say whether payload cannot be read: Opus may have repeated in it what was lost."""
        assert way.speech is not None
        codec, frame = way.speech.codec, way.speech.packet_s
        if it.is_encrypted or (it.red is None and rtp.is_encrypted(codec, whole, frame, self.data)):
            for row in whole:
                row["packet"].payload = None
            if codec != "opus" and whole:
                self.note(f"{way.name}: its payload is encrypted, and cannot be heard")
        if codec == "opus" and not any(row["packet"].payload for row in whole):
            way.speech.is_readable = False
            way.speech.notes.append(HIDDEN)
            self.note(HIDDEN)


@dataclass(frozen=True)
class Source:
    """A source of RTP: its packets, and what their payload types mean.

    Attributes:
        kind: the type of most packets.
        known: its meaning; of redundant data, that of the primary encoding.
        changes: whether a later description gives it another meaning.
    """

    data: list[Row]
    kind: int
    known: Payload | None
    meanings: dict[int, Payload]
    red: rtp.Red | None
    changes: bool
    is_encrypted: bool

    @property
    def names(self) -> dict[int, str]:
        """Encodings in capitals, by type."""
        return {kind: payload.name for kind, payload in self.meanings.items()}


CHANGES = "a later session description gives its payload type another meaning"
ORIGINAL = 2
"""Bytes of the number in front of what a retransmission repeats."""
HIDDEN = (
    "the payload of Opus cannot be read, and may repeat lost speech (in-band FEC): what is unheard "
    "is an upper limit"
)
UNHEARD = "no score: what arrived of it is not known"


def only_sent(way: Way) -> str:
    """Make a direction one that the sender recorded; returns what it was told of the arrivals."""
    way.sees_sent, way.sees_arrivals, way.counts = True, False, False
    for packet in way.packets:
        packet.sent_s, packet.received_s, packet.fate = packet.received_s, None, "unknown"
    for hop in way.hops:
        hop.dequeued_s, hop.received_s, hop.fate = hop.received_s, None, "unknown"
    lost = way.facts.get("reported_lost_packets")
    reported = "" if lost is None else f"; its receiver reported {lost} lost packets"
    if way.speech is not None:
        way.speech.notes = [UNHEARD + reported]
    return reported


def _is_encrypted(talk: Conversation) -> bool:
    """Whether keys of SRTP were agreed on the ports of a call (RFC 5764), or its RTCP is SRTCP."""
    return any(
        row["content"] == "dtls" or any(one["kind"] == "encrypted" for one in row["reports"])
        for row in talk.all
    )


COMFORT_NOISE = 13
"""RFC 3551 §6."""


def _end(end: End) -> str:
    return f"[{end[0]}]:{end[1]}" if ":" in end[0] else f"{end[0]}:{end[1]}"


DCCP_OPENS = (0, 1)
"""DCCP-Request and DCCP-Response."""
DCCP_WINDOW = 100
"""The initial sequence window (RFC 4340 §7.5.2)."""


def _fill(way: Way, rows: list[Row], kind: str, copies: int) -> None:
    """The packets of a direction as they passed, beside so many copies; and what numbers tell."""
    way.sees_sent = False
    way.counts = kind in ("rtp", "dccp")
    numbers, restarts = _numbers(rows, kind)
    if restarts:
        way.facts["restarts"] = len(restarts)
    fresh, again = fresh_bytes(rows, kind)
    seen: set[int] = set()
    for place, row in enumerate(rows):
        row["order"] = place if numbers[place] is None else numbers[place]
        row["restart"] = place in restarts
        if way.counts and numbers[place] is not None:
            if numbers[place] in seen:
                copies += 1
                row["packet"] = None
                row["role"] = DUPLICATE
                continue
            seen.add(row["order"])
        media = 0
        payload = row["payload_bytes"]
        if kind == "rtp" and row["rtp_header_bytes"]:
            media = min(row["rtp_header_bytes"] + row["rtp_padding_bytes"], payload)
        heads = (row["network_header_bytes"], row["transport_header_bytes"], media)
        whole = not row["chunks_cut"]
        row["packet"] = Packet(
            place, row["role"] == DATA, row["ip_bytes"], None, row["t"], "received",
            heads if whole else None, payload - media if whole else None, fresh[place], None,
        )  # fmt: skip
        way.packets.append(row["packet"])
    if copies:
        way.facts["duplicate_packets"] = copies
    repairs = [row for row in rows if row["role"] == REPAIR]
    if repairs:
        way.facts["repair_packets"] = len(repairs)
        way.facts["repair_bytes"] = sum(row["ip_bytes"] for row in repairs)
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


def _openings(way: Way, rows: list[Row]) -> None:
    for row in rows:
        if row["protocol"] == "tcp":
            way.events += [(row["t"], flag) for flag in ("syn", "fin", "rst") if row[flag]]
        elif text := OPENINGS.get(row["protocol"], {}).get(row["kind"]):
            way.events.append((row["t"], text))


def _numbers(rows: list[Row], kind: str) -> tuple[list[int | None], set[int]]:
    """The number of each packet, if its protocol counts them, and the places of restarts."""
    if kind == "rtp":
        places = [place for place, row in enumerate(rows) if row["role"] == DATA]
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


def _missing_s(way: Way, one: Row, two: Row, count: int) -> list[float | None]:
    """The media times of the packets between two; None for those for which there is no sound.

    They continued what came before, and may have been padding: the timestamps tell for how many of
    them sound is missing, though not which.
    """
    begin, end = one.get("media_s"), two.get("media_s")
    if way.speech is None or begin is None:
        return [None] * count
    step, sounds = way.speech.packet_s, count
    if end is not None:
        own = two["packet"].media_s is not None
        sounds = min(count, max(0, math.ceil((end - begin) / step - SHORTER) - own))
    times = [begin + step * place for place in range(1, sounds + 1)]
    return [*times, *[None] * (count - sounds)]


SHORTER = 0.1
"""Of a packet: by how much the time between two may be short of whole packets."""


def _repeated(rows: list[Row]) -> dict[int, Row]:
    """The first retransmission of each packet, by the extended number of the packet."""
    found: dict[int, Row] = {}
    last = next((row for row in rows if row["role"] == DATA), None)
    for row in rows:
        if row["role"] == DATA:
            last = row
        elif last is not None and (original := row.get("original")) is not None:
            step = (original - last["rtp_seq"] + 32768) % 65536 - 32768
            found.setdefault(last["order"] + step, row)
    return found


def number(way: Way, rows: list[Row], kind: str) -> None:
    """Numbers the packets in the order in which they were sent, with those that are missing."""
    if not way.counts:
        return
    keys: list[tuple[int, int, Packet]] = []
    last = None
    for place, row in enumerate(rows):
        if kind == "rtp" and row["role"] != DATA:
            # Behind the RTP packet that it followed.
            keys.append((rows[0]["order"] if last is None else last, place + 1, row["packet"]))
        else:
            last = row["order"]
            keys.append((last, 0, row["packet"]))
    there = {order for order, behind, _ in keys if not behind}
    again = _repeated(rows) if kind == "rtp" else {}
    data = {row["order"]: row for row in rows if row["packet"].data}
    for one, two in pairwise(sorted(data)):
        missing = [order for order in range(one + 1, two) if order not in there]
        times = _missing_s(way, data[one], data[two], len(missing))
        for order, time in zip(missing, times, strict=True):
            packet = Packet(0, True, None, None, None, "lost", media_s=time)
            if (repair := again.get(order)) is not None:
                way.facts["repaired_packets"] = way.facts.get("repaired_packets", 0) + 1
                packet.repaired_s, at = repair["t"], repair["payload_at"] + ORIGINAL
                packet.payload_bytes = rtp.media_bytes(repair) - ORIGINAL
                if repair["payload_end"] - at == packet.payload_bytes:
                    packet.payload = at, repair["payload_end"]
            keys.append((order, 0, packet))
    keys.sort(key=lambda key: key[:2])
    for number, (_, _, packet) in enumerate(keys):
        packet.number = number
    way.packets = [packet for _, _, packet in keys]
