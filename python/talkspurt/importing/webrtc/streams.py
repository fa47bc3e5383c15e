"""The tables of a run from dumps of WebRTC statistics: a flow per RTP stream.

A column has a value where the statistics have one of the same definition (W3C webrtc-stats); all
numbers of the statistics are gauges under their own names, such as ``inbound-rtp.jitter``.
"""

from __future__ import annotations

import contextlib
import ipaddress
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

from talkspurt._lazy import np, pl
from talkspurt.importing import rtp, tables
from talkspurt.importing.model import Trace, Way
from talkspurt.importing.webrtc.dump import Connection, Dump, DumpError, Statistics
from talkspurt.metrics import dictionary

LOCAL = "local"
SIDES = {"inbound-rtp": "to", "remote-inbound-rtp": "to"}
"""The end that knows these; the sender knows all others of a stream."""
OF_STREAM = ("remote-inbound-rtp", "remote-outbound-rtp", "media-source", "track")
"""Statistics of a stream: they name it in ``localId``, or it names them."""
REFERENCES = ("remoteId", "mediaSourceId", "trackId")
READ = ("inbound-rtp", "outbound-rtp", "codec", "local-candidate", "remote-candidate")
"""What belongs to no other statistics, and is read."""
OF_CONNECTION = ("transport", "candidate-pair")
IDENTITIES = frozenset({
    "id", "type", "timestamp", "ssrc", "rtxSsrc", "fecSsrc", "mid", "rid", "priority",
    "payloadType",
})  # fmt: skip
"""Members that name, and measure nothing."""
SAME = {
    ("inbound-rtp", "jitter"): ("jitter", "to"),
    ("remote-inbound-rtp", "jitter"): ("jitter", "to"),
    ("remote-inbound-rtp", "roundTripTime"): ("rtcp_rtt", "from"),
}
"""Our gauges of the same definition, and the end that has them."""
TAGS = {"AES128_CM_HMAC_SHA1_80": 10, "AES128_CM_HMAC_SHA1_32": 4}
"""Bytes of the tag that SRTP adds to a packet (RFC 5764 §4.1.2)."""
UDP_HEADER = 8
MOST_BINS = 20_000
NO_SCORE = (
    "no score: the statistics have neither the mouth-to-ear delay nor the burst ratio of losses"
)


@dataclass
class Stream:
    """An RTP stream and what belongs to it.

    Attributes:
        main: its statistics at this end.
        others: other statistics of it, and for the first stream those of the connection.
    """

    way: Way
    connection: Connection
    main: Statistics
    others: list[Statistics] = field(default_factory=list)

    @property
    def is_received(self) -> bool:
        """Whether this end receives it."""
        return self.main.type == "inbound-rtp"

    def numbers(self, name: str, *types: str) -> tuple[list[float], list[float]]:
        """A member of the stream, or of other statistics of it, over time."""
        for one in (self.main, *self.others):
            if one.type in (types or (self.main.type, "track")) and name in one.members:
                return one.numbers(name)
        return [], []


def trace(dump: Dump) -> tuple[Trace, list[Stream]]:
    """The streams of a dump as directions without packets."""
    found: list[Stream] = []
    links: dict[str, tuple[str, str]] = {}
    for place, connection in enumerate(dump.connections, 1):
        several = len(dump.connections) > 1
        other = f"remote-{place}" if several else "remote"
        own: list[Stream] = []
        for main in connection.of("inbound-rtp", "outbound-rtp"):
            if not main.times_ms:
                continue
            ends = (other, LOCAL) if main.type == "inbound-rtp" else (LOCAL, other)
            link = "-".join(ends)
            links.setdefault(link, ends)
            source = "video" if _kind(main) == "video" else "speech"
            name = f"rtp-{len(found) + len(own) + 1}"
            way = Way(name, "from", "udp", source, *ends, routes=[[link]])
            own.append(Stream(way, connection, main))
        _assign(connection, own, dump)
        found += own
    if not found:
        legacy = any(
            one.type in {"ssrc", "googCandidatePair"}
            for connection in dump.connections
            for one in connection.statistics.values()
        )
        raise DumpError(
            "has statistics of the obsolete getStats of Chromium: choose the standardized ones"
            if legacy
            else "has no RTP stream: no statistics of type inbound-rtp or outbound-rtp"
        )
    begin = min(one.main.times_ms[0] for one in found)
    end = max(one.main.times_ms[-1] for one in found)
    for stream in found:
        stream.way.facts = _facts(stream, begin)
    facts = {
        "began_ns": round(begin * 1e6), "user_agent": dump.user_agent,
        "connections": [{"name": one.name, "url": one.url} for one in dump.connections],
    }  # fmt: skip
    made = Trace(
        dump.format, [one.way for one in found], links, max(0.0, (end - begin) / 1e3),
        list(dump.notes), dict(dump.skipped), facts,
    )  # fmt: skip
    return made, found


def arriving(stream: Stream) -> tuple[float, float]:
    """The times of the samples between which packets arrived, in milliseconds.

    A receiver plays and conceals before the first packet and after the last one. Packets stop
    between the last sample that has more of them than the one before, and that one: what was played
    until the latter counts. Without packets it is all samples.
    """
    times, values = stream.numbers("packetsReceived")
    counted = accumulated(values)[0]
    grown = [at for at, (a, b) in enumerate(pairwise([0.0, *counted])) if b > a]
    if not grown:
        return -math.inf, math.inf
    first, last = grown[0], grown[-1]
    begin = times[first - 1] if first else -math.inf
    return begin, times[last - 1] if last > first else times[last]


def _kind(main: Statistics) -> Any:
    return main.last("kind") or main.last("mediaType")


def _assign(connection: Connection, streams: list[Stream], dump: Dump) -> None:
    """Give statistics of a connection to the streams that they are about."""
    if not streams:
        return
    by_id = {one.main.id: one for one in streams}
    referred = {one.main.last(member): one for one in streams for member in REFERENCES}
    chosen = [one.id for one in _selected(connection)]
    # Of the connection, with the estimate of what can be sent.
    first = next((one for one in streams if not one.is_received), streams[0])
    for one in connection.statistics.values():
        owner = None
        if one.type in OF_STREAM:
            owner = by_id.get(str(one.last("localId"))) or referred.get(one.id)
        elif one.id in chosen:
            owner = first
        elif one.type in READ:
            continue
        if owner is None:
            dump.skipped[f"statistics of type {one.type or 'unknown'}"] += 1
        else:
            owner.others.append(one)


def _selected(connection: Connection) -> list[Statistics]:
    """The transport of a connection, and its candidate pair; the first of several transports."""
    transports = connection.of("transport")[:1]
    named = {one.last("selectedCandidatePairId") for one in transports} - {None}
    pairs = [
        one
        for one in connection.of("candidate-pair")
        # Firefox names no pair, and has a member of its own.
        if one.id in named or (not named and True in (one.last("selected"), one.last("nominated")))
    ]
    return transports + pairs[:1]


def _facts(stream: Stream, begin: float) -> dict[str, Any]:
    main = stream.main
    codec = stream.connection.statistics.get(str(main.last("codecId")))
    told = {
        "connection": stream.connection.name, "id": main.id, "kind": _kind(main),
        "direction": "received" if stream.is_received else "sent",
        "ssrc": main.last("ssrc"), "mid": main.last("mid"), "rid": main.last("rid"),
        "first_sample_s": (main.times_ms[0] - begin) / 1e3,
        "last_sample_s": (main.times_ms[-1] - begin) / 1e3, "samples": len(main.times_ms),
    }  # fmt: skip
    if codec is not None:
        names = ("mimeType", "clockRate", "channels", "payloadType", "sdpFmtpLine")
        told |= {name: codec.last(name) for name in names}
    if stream.is_received:
        ends = zip(("arrivals_from_s", "arrivals_until_s"), arriving(stream), strict=True)
        told |= {name: (at - begin) / 1e3 for name, at in ends if math.isfinite(at)}
    return {name: value for name, value in told.items() if value is not None}


def below(connection: Connection) -> tuple[int, int] | None:
    """Bytes of a packet's IP header, and of the rest outside RTP; None if they are not known."""
    by_id = connection.statistics
    found = {one.type: one for one in _selected(connection)}
    if len(found) < len(OF_CONNECTION):
        return None
    ends = [
        by_id.get(str(found["candidate-pair"].last(f"{end}CandidateId")))
        for end in (LOCAL, "remote")
    ]
    tag = TAGS.get(str(found["transport"].last("srtpCipher")).removeprefix("SRTP_"))
    here = ends[0]
    # A relay on this side adds headers of its own.
    if tag is None or here is None or here.last("candidateType") == "relay":
        return None
    for end in ends:
        address = "" if end is None else str(end.last("address") or end.last("ip") or "")
        with contextlib.suppress(ValueError):
            version = ipaddress.ip_address(address).version
            is_udp = here.last("protocol") == "udp"
            return (20 if version == 4 else 40, UDP_HEADER + tag) if is_udp else None
    return None


def accumulated(values: list[float]) -> tuple[list[float], int]:
    """A counter without its restarts, and how many there were: it begins again at 0."""
    found, shift, restarts = [], 0.0, 0
    for place, value in enumerate(values):
        if place and value < values[place - 1]:
            shift += values[place - 1]
            restarts += 1
        found.append(value + shift)
    return found, restarts


COUNTERS = {
    "inbound-rtp": {"received_packets": "packetsReceived", "lost_packets": "packetsLost"},
    "outbound-rtp": {"sent_packets": "packetsSent"},
}
"""Columns of series that are differences of counters."""


class Tables:
    """All tables of a dump.

    Attributes:
        width: of the bins of series in seconds: the interval of the samples.
    """

    def __init__(self, dump: Dump) -> None:
        self.trace, self._streams = trace(dump)
        self.shown = self.trace.ways
        self.flows_told = {one.way.flow: _told(one) for one in self._streams}
        self._begin = self.trace.facts["began_ns"] / 1e6
        self._around = {id(one): below(one) for one in dump.connections}
        self.width = self._width()
        none = ("links", "link_series", "frames", "video_frames", "packets")
        self.made = {
            "flows": tables.frame(
                "flows", (_valid("flows", self._flow(it)) for it in self._streams)
            ),
            "series": tables.frame("series", chain.from_iterable(map(self._bins, self._streams))),
            "gauges": self._gauges(),
            "events": tables.frame("events", self._events()).sort("time_s", maintain_order=True),
            **{name: tables.frame(name, ()) for name in none},
        }

    def _width(self) -> float:
        """The median interval of the samples, to two digits; more for very long dumps."""
        steps = np.concatenate([np.diff(one.main.times_ms) for one in self._streams])
        steps = steps[steps > 0]
        if not len(steps):
            return 1.0
        width = float(f"{max(float(np.median(steps)), 1.0) / 1e3:.2g}")
        while self.trace.duration_s / width > MOST_BINS:
            width *= 10
        return width

    def _flow(self, stream: Stream) -> dict[str, Any]:
        way = stream.way
        row: dict[str, Any] = {
            "name": way.name, "transport": "udp", "source": way.source, "from": way.sender,
            "to": way.receiver,
        }  # fmt: skip
        if way.source == "speech":
            row["quality_note"] = NO_SCORE
        jitter_of = "inbound-rtp" if stream.is_received else "remote-inbound-rtp"
        jitters = stream.numbers("jitter", jitter_of)[1]
        row["jitter_s"] = math.fsum(jitters) / len(jitters) if jitters else None
        if not stream.is_received:
            row["sent_packets"] = self._total(stream, "packetsSent")
            row["payload_bytes"] = self._total(stream, "bytesSent")
            row |= self._ip_bytes(stream, "sent", row["sent_packets"])
            return row
        received, lost = self._total(stream, "packetsReceived"), stream.numbers("packetsLost")[1]
        row["received_packets"] = received
        # RFC 3550 A.3: duplicates count as received, so that the number can be negative.
        if lost and lost[-1] >= 0:
            row["lost_packets"] = round(lost[-1])
            row["sent_packets"] = None if received is None else received + round(lost[-1])
        row |= self._ip_bytes(stream, "received", received)
        row["goodput_bps"] = self._goodput(stream)
        concealed, samples = (
            self._played(stream, name) for name in ("concealedSamples", "totalSamplesReceived")
        )
        if concealed is not None and samples:
            row["concealed_ratio"] = concealed / samples
        return row

    def _played(self, stream: Stream, name: str) -> float | None:
        """By how much a counter grew while packets arrived; it goes on when none do."""
        times, values = stream.numbers(name)
        if not values or min(values) < 0:
            return None
        begin, end = arriving(stream)
        found = [(it, time) for it, time in zip(accumulated(values)[0], times, strict=True)]
        until = [it for it, time in found if time <= end]
        before = [it for it, time in found if time <= begin]
        return until[-1] - (before[-1] if before else 0.0) if until else None

    def _total(self, stream: Stream, name: str) -> int | None:
        """The last value of a counter, with what it had counted before it began again."""
        values = stream.numbers(name)[1]
        if not values or min(values) < 0:
            return None
        found, restarts = accumulated(values)
        if restarts:
            stream.way.facts.setdefault("restarts", {})[name] = restarts
        return round(found[-1])

    def _ip_bytes(self, stream: Stream, way: str, packets: int | None) -> dict[str, Any]:
        """Bytes of IP packets, where the network, the transport and the cipher are known."""
        around = self._around[id(stream.connection)]
        sizes = [
            self._total(stream, f"{part}{way.capitalize()}") for part in ("bytes", "headerBytes")
        ]
        if around is None or packets is None or sizes[0] is None or sizes[1] is None:
            return {}
        whole = sizes[0] + sizes[1] + packets * sum(around)
        if way == "sent":
            return {
                "sent_bytes": whole, "network_header_bytes": packets * around[0],
                "transport_header_bytes": packets * UDP_HEADER,
            }  # fmt: skip
        found: dict[str, Any] = {"received_bytes": whole}
        grown = [stream.numbers(f"{name}Received") for name in ("bytes", "headerBytes", "packets")]
        begin, end = grown[0][0][0], grown[0][0][-1]
        if end > begin and all(times[:1] == [begin] for times, _ in grown):
            more = [accumulated(values)[0] for _, values in grown]
            steps = [one[-1] - one[0] for one in more]
            size = steps[0] + steps[1] + steps[2] * sum(around)
            found["throughput_bps"] = 8e3 * size / (end - begin)
        return found

    def _goodput(self, stream: Stream) -> float | None:
        """Bytes of payload, each once, over the time in which the stream was sampled."""
        times, values = stream.numbers("bytesReceived")
        if not values or times[-1] <= times[0]:
            return None
        gained = [accumulated(values)[0]]
        for name in ("retransmittedBytesReceived", "fecBytesReceived"):
            if again := stream.numbers(name)[1]:
                gained.append([-it for it in accumulated(again)[0]])
        size = sum(one[-1] - one[0] for one in gained)
        return 8e3 * size / (times[-1] - times[0]) if size >= 0 else None

    def _bins(self, stream: Stream) -> Iterator[dict[str, Any]]:
        """Differences of counters between the samples nearest to the edges of bins."""
        columns: dict[str, dict[int, float | None]] = {}
        for column, name in COUNTERS[stream.main.type].items():
            times, values = stream.numbers(name)
            if column != "lost_packets":
                values = accumulated(values)[0]
            columns[column] = dict(self._differences(times, values))
        if stream.is_received:
            times, values = stream.numbers("bytesReceived")
            sizes = self._differences(times, accumulated(values)[0])
            rates = {at: None if it is None else 8 * it / self.width for at, it in sizes}
            if not stream.numbers("retransmittedBytesReceived")[1]:
                columns["goodput_bps"] = rates
        for at in sorted({at for one in columns.values() for at in one}):
            row: dict[str, Any] = {"flow": stream.way.name, "time_s": at * self.width}
            for column, found in columns.items():
                value = found.get(at)
                whole = column != "goodput_bps"
                row[column] = round(value) if whole and value is not None else value
            yield _valid("series", row)

    def _differences(
        self, times: list[float], values: list[float]
    ) -> Iterable[tuple[int, float | None]]:
        """By the number of a bin, how much a counter grew in it; a gap is shared by its bins."""
        edges: dict[int, float] = {}
        for time, value in zip(times, values, strict=True):
            edges[round((time - self._begin) / 1e3 / self.width)] = value
        if len(edges) < 2:
            return []
        if max(edges) - min(edges) > 50 * len(edges):
            # Mostly gaps: only what is between neighbours.
            pairs = pairwise(edges.items())
            return [(b, new - old) for (a, old), (b, new) in pairs if b == a + 1 and new >= old]
        places = np.arange(min(edges), max(edges) + 1)
        whole = np.rint(np.interp(places, [*edges], [*edges.values()]))
        grown = np.diff(whole).tolist()
        return [
            (int(at), it if it >= 0 else None) for at, it in zip(places[1:], grown, strict=True)
        ]

    def _events(self) -> Iterator[dict[str, Any]]:
        """Changes of the states of connections, at this end of the first stream of each."""
        first: dict[int, Stream] = {}
        for stream in self._streams:
            first.setdefault(id(stream.connection), stream)
        for stream in first.values():
            side = "to" if stream.is_received else "from"
            for time, what, value in stream.connection.changes:
                at = max(0.0, (time - self._begin) / 1e3)
                row = {"time_s": at, "flow": stream.way.flow, "side": side}
                yield row | {"event": f"{what}: {value}"}

    def _gauges(self) -> pl.DataFrame:
        rows: list[tuple[float, str, str, str, float]] = []
        for stream in self._streams:
            for one in (stream.main, *stream.others):
                own = "to" if stream.is_received else "from"
                side = own if one.type in OF_CONNECTION else SIDES.get(one.type, "from")
                for name in one.members:
                    if name.partition(".")[0] in IDENTITIES:
                        continue
                    rows += self._gauge(stream, side, f"{one.type}.{name}", one, name)
                    if same := SAME.get((one.type, name)):
                        rows += self._gauge(stream, same[1], same[0], one, name)
        schema = tables.schema("gauges")
        made = pl.DataFrame(rows, schema=list(schema), orient="row", schema_overrides=schema)
        return made.sort("time_s", maintain_order=True)

    def _gauge(
        self, stream: Stream, side: str, gauge: str, one: Statistics, name: str
    ) -> Iterator[tuple[float, str, str, str, float]]:
        """A member when it changed; a number that the tables cannot hold is left out."""
        before = None
        for time, value in zip(*one.numbers(name), strict=True):
            if value != before and abs(value) < 2.0**64:
                yield (max(0.0, (time - self._begin) / 1e3), stream.way.flow, side, gauge, value)
            before = value


def _valid(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row without the numbers that a column cannot have, as of a damaged dump."""
    bounds = dictionary.bounds(table)
    return {
        name: None
        if isinstance(value, int | float) and not bounds[name][0] <= value <= bounds[name][1]
        else value
        for name, value in row.items()
    }


def _told(stream: Stream) -> dict[str, Any]:
    """A flow of the scenario, in its words."""
    way = stream.way
    source: dict[str, Any] = {"kind": way.source if way.source == "video" else "unknown"}
    codec = rtp.CODECS.get(str(way.facts.get("mimeType", "")).rpartition("/")[2].upper())
    if way.source == "speech" and codec is not None:
        source = {"kind": "speech", "codec": codec}
    return {
        "from": way.sender, "to": way.receiver, "start": "0ns", "transport": {"kind": "udp"},
        "source": source,
    }  # fmt: skip
