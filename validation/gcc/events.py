"""What a sender's controller was told in a call, from the RTC event log of the browser.

:func:`lines` are the events as ``crates/proto/examples/gcc_replay.rs`` reads them. What the
log does not have is assumed, and :class:`Assumed` has each assumption, so that ``judge.py`` can
change it:

* Times are whole milliseconds. Packets are logged when they were handed to the transport, RTCP when
  it has been handled. Two events of one millisecond are ordered: packets sent, RTCP, process.
* The log has the size of a packet's RTP header, payload and padding. libwebrtc's controller adds
  20 bytes of IPv4 and 8 of UDP, but not the tag of SRTP.
* Which packets belonged to a cluster of probes: see :func:`clusters`.
* The controller is called every 25 ms from the instant at which DTLS has completed, with which it
  begins.
* The limits of the rate of all sources together, which libwebrtc takes from the encoders.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from talkspurt.importing.webrtc.eventlog import EventLog

OVERHEAD = 28
"""Bytes of IPv4 and UDP."""
PROBE_MS = 2
"""While it probes, the pacer sends at least what its rate permits in this time, at once."""
LATEST_MS = 5000
"""libwebrtc discards a cluster that waited so long."""
PROCESS_US = 25_000
SECOND_US = 1_000_000
TICK_S = 1 / 65536
"""Of the middle of an NTP time."""
SENDER_REPORT, RECEIVER_REPORT, FEEDBACK, PAYLOAD_FEEDBACK = 200, 201, 205, 206
TRANSPORT_WIDE = 15
SENT, TOLD, DONE = 0, 1, 2
"""The order of events of one instant."""


@dataclass(frozen=True)
class Assumed:
    """What the log does not say; rates in bit/s."""

    more_bytes: int = 0
    """Added to the size of each packet."""
    start: int = 300_000
    least: int = 84_400
    most: int = 1_749_600
    alr_probing: bool = False
    phase_us: int = 0
    """Of the calls every 25 ms."""
    probes: bool = True
    reports: bool = True
    moved: dict[str, int] = field(default_factory=dict)
    """By how many microseconds events of a word are later than the log says."""
    calls: bool = True
    packets_us: dict[int, int] = field(default_factory=dict)
    """By how many microseconds packets left later than the log says."""


@dataclass
class Sent:
    """A packet that left; ``number`` does not wrap."""

    time_ms: int
    number: int
    bytes: int
    is_padding: bool
    cluster: int = -1


@dataclass
class Cluster:
    """A cluster of probes, as it was ordered."""

    time_ms: int
    id: int
    rate: int
    packets: int
    bytes: int


def sent(log: EventLog) -> list[Sent]:
    """All packets with a number of transport-wide feedback, in order of these numbers."""
    found, last = [], 0
    for row in log.events["outgoing_rtp_packets"]:
        wire = row.transport_sequence_number
        if wire < 0:
            continue
        last = unwrapped(wire, last)
        size = row.header_size + row.payload_size + row.padding_size + OVERHEAD
        found.append(Sent(row.timestamp_ms, last, size, not row.payload_size))
    return sorted(found, key=lambda it: it.number)


def unwrapped(wire: int, last: int) -> int:
    """The number nearest to the last one that ends in these 16 bits."""
    return last + ((wire - last + 0x8000) & 0xFFFF) - 0x8000


def clusters(log: EventLog, packets: list[Sent]) -> list[Cluster]:
    """Marks packets that probed, by libwebrtc's rules for its pacer, and returns the clusters.

    A cluster begins with a packet of nothing but padding, which the pacer adds to have a sharp
    beginning, behind its order and behind the end of the cluster before. If none comes within
    ``LATEST_MS``, it never began. All packets that follow, also of sound, belong to it. The pacer
    sends until it has sent what the cluster's rate permits in ``PROBE_MS``, which counts as one
    packet of the cluster, and goes on until it has the cluster's number of these and its bytes,
    with all headers.
    """
    orders = [Cluster(row.timestamp_ms, row.id, row.bitrate_bps, row.min_packets, row.min_bytes)
              for row in log.events["probe_clusters"]]  # fmt: skip
    at = 0
    for order in orders:
        begin = next(
            (i for i in range(at, len(packets))
             if packets[i].time_ms >= order.time_ms and packets[i].is_padding),
            None,
        )  # fmt: skip
        if begin is None or packets[begin].time_ms > order.time_ms + LATEST_MS:
            continue
        at, size, calls, call, last = begin, 0, 0, 0, None
        least = order.rate * PROBE_MS // 8000
        while at < len(packets):
            packet = packets[at]
            if last is None or call >= least or packet.time_ms - last > PROBE_MS:
                if size >= order.bytes and calls >= order.packets:
                    break
                calls, call = calls + 1, 0
            packet.cluster, last = order.id, packet.time_ms
            call += packet.bytes
            size += packet.bytes
            at += 1
    return orders


def parts(packet: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The packets of a compound one (RFC 3550 §6.4): kind, count or format, and all its bytes."""
    at = 0
    while at + 4 <= len(packet):
        first, kind, words = struct.unpack_from(">BBH", packet, at)
        yield kind, first & 31, packet[at : at + 4 * words + 4]
        at += 4 * words + 4


def transport_wide(packet: bytes) -> tuple[int, int, list[int | None]]:
    """Base number, base time in 64 ms, and of each packet the time behind it in 250 µs."""
    base, count, word = struct.unpack_from(">HHI", packet, 12)
    symbols: list[int] = []
    at = 20
    while len(symbols) < count:
        (chunk,) = struct.unpack_from(">H", packet, at)
        at += 2
        if not chunk >> 15:
            symbols += [chunk >> 13 & 3] * (chunk & 0x1FFF)
        elif chunk >> 14 & 1:
            symbols += [chunk >> shift & 3 for shift in range(12, -1, -2)]
        else:
            symbols += [chunk >> shift & 1 for shift in range(13, -1, -1)]
    found: list[int | None] = []
    time = 0
    for symbol in symbols[:count]:
        if symbol == 0:
            found.append(None)
            continue
        size, kind = (1, ">B") if symbol == 1 else (2, ">h")
        time += struct.unpack_from(kind, packet, at)[0]
        at += size
        found.append(time)
    return base, word >> 8, found


@dataclass
class Feedback:
    """Numbers and times of arrival, in µs by the receiver's clock, of packets not yet reported."""

    time_ms: int
    results: list[tuple[int, int]]


@dataclass
class Report:
    """A receiver report on the streams of one kind of media; times in µs."""

    time_ms: int
    lost: int
    received: int
    rtt: int | None


def feedback(log: EventLog, packets: list[Sent]) -> Iterator[Feedback]:
    """Transport-wide feedback, as libwebrtc looks up its packets.

    A packet that was reported as received is not looked up again; one that was reported as lost is.
    """
    unreported = {it.number: it.time_ms for it in packets}
    last, clock, base_time = 0, None, 0
    for row in log.events["incoming_rtcp_packets"]:
        for kind, form, packet in parts(row.raw_packet):
            if kind != FEEDBACK or form != TRANSPORT_WIDE:
                continue
            base, time, times = transport_wide(packet)
            if clock is None:
                clock = 1000 * row.timestamp_ms
            else:
                clock += (((time - base_time + (1 << 23)) & 0xFFFFFF) - (1 << 23)) * 64_000
            base_time = time
            results = []
            for wire, arrived in enumerate(times, base):
                last = number = unwrapped(wire & 0xFFFF, last)
                if unreported.get(number, row.timestamp_ms + 1) > row.timestamp_ms:
                    continue
                if arrived is None:
                    results.append((number, -1))
                else:
                    del unreported[number]
                    results.append((number, clock + arrived * 250 // 1000 * 1000))
            if results:
                yield Feedback(row.timestamp_ms, results)


def reports(log: EventLog) -> Iterator[Report]:
    """Receiver reports; each of libwebrtc's modules tells of its streams in one compound packet."""
    clock = {}
    for row in log.events["outgoing_rtcp_packets"]:
        for kind, _, packet in parts(row.raw_packet):
            if kind == SENDER_REPORT:
                clock[struct.unpack_from(">I", packet, 10)[0]] = row.timestamp_ms
    sound = set(log.events["audio_send_stream_configs"]["ssrc"])
    before: dict[int, tuple[int, int]] = {}
    for row in log.events["incoming_rtcp_packets"]:
        blocks = []
        for kind, count, packet in parts(row.raw_packet):
            if kind in (SENDER_REPORT, RECEIVER_REPORT):
                begin = 28 if kind == SENDER_REPORT else 8
                blocks += [
                    struct.unpack_from(">IIIIII", packet, begin + 24 * at) for at in range(count)
                ]
        for is_sound in (True, False):
            lost, total, rtt, some = 0, 0, None, False
            for ssrc, loss, highest, _, last_report, delay in blocks:
                if (ssrc in sound) != is_sound:
                    continue
                some = True
                cumulative = loss & 0xFFFFFF
                cumulative -= (cumulative >> 23) << 24
                if ssrc in before:
                    total += highest - before[ssrc][0]
                    lost += cumulative - before[ssrc][1]
                before[ssrc] = highest, cumulative
                if last_report and last_report in clock:
                    rtt = row.timestamp_ms - clock[last_report] - 1000 * delay * TICK_S
            if some:
                microseconds = None if rtt is None else 1000 * max(1, round(rtt))
                yield Report(row.timestamp_ms, lost, total - lost, microseconds)


def began(log: EventLog) -> int:
    """When the controller began: as soon as the transport could be written to."""
    rows = log.events["dtls_writable_states"]
    return next(row.timestamp_ms for row in rows if row.writable)


def lines(log: EventLog, assumed: Assumed) -> list[str]:
    """The events in order of time."""
    packets = sent(log)
    orders = {it.id: it for it in clusters(log, packets)} if assumed.probes else {}
    begin = 1000 * began(log)
    found: list[tuple[int, int, str]] = []

    def add(time_ms: int, order: int, word: str, rest: Any, later_us: int = 0) -> None:
        time = 1000 * time_ms + assumed.moved.get(word, 0) + later_us
        found.append((max(time, begin), order, f"{word} {max(time, begin)} {rest}"))

    for one in packets:
        order = orders.get(one.cluster)
        mark = f"{order.id} {order.packets} {order.bytes}" if order else "-1 -1 -1"
        later = assumed.packets_us.get(one.number, 0)
        rest = f"{one.number} {one.bytes + assumed.more_bytes} {mark}"
        add(one.time_ms, SENT, "sent", rest, later)
    for told in feedback(log, packets):
        rest = "\n".join(f"{number} {arrived}" for number, arrived in told.results)
        add(told.time_ms, TOLD, "feedback", f"{len(told.results)} 0\n{rest}")
    for report in reports(log) if assumed.reports else ():
        if report.received > 0:
            add(report.time_ms, TOLD, "loss", f"{report.lost} {report.received}")
        if report.rtt is not None:
            add(report.time_ms, TOLD, "rtt", report.rtt)
    end = max(time for time, _, _ in found)
    first = begin + assumed.phase_us + PROCESS_US
    for time in range(first, end, PROCESS_US) if assumed.calls else ():
        found.append((time, DONE, f"process {time}"))
    found.sort(key=lambda it: it[:2])
    init = (f"init {begin} {assumed.start} -1 -1 {int(assumed.alr_probing)} {assumed.most}"
            f" {assumed.least} 0 1.1")  # fmt: skip
    return [init, *(text for _, _, text in found)]
