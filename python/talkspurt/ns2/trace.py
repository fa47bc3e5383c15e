"""Measures from an ns-2 trace, by the formulas of our flow and link tables.

A line is an event (``+`` enqueued, ``-`` dequeued, ``r`` received, ``d`` dropped), its time, the
link's two nodes, type and length of the packet, flags, flow, addresses, a protocol number and the
packet's ID. Lines are processed as they arrive; one entry is kept per packet in flight.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from talkspurt.ns2.network import Wire
from talkspurt.ns2.script import Way

ALWAYS_DATA = {"udp", "cbr", "exp", "tcpFriend", "DCCP_Data", "DCCP_DataAck"}
DELAYS = (("delay_min_s", 0.0), ("delay_p50_s", 0.5), ("delay_p95_s", 0.95), ("delay_max_s", 1.0))
ON_THE_WAY_S = 2.0
"""Maximum travel time of the Ack of a handshake."""


@dataclass
class Connection:
    """State of one of ns-2's DCCP connections, as seen in the trace.

    Its client sends DCCP-Data at once, and a single Ack to complete the handshake. Its server
    ignores DCCP-Data until that Ack arrives and resets the connection after 75 s (dccp.cc,
    `DCCP_STATE_RESPOND`); by RFC 4340 8.1.5 the client would continue to acknowledge.
    """

    server: str = ""
    open: bool = False
    closing: bool = False
    reset: bool = False
    first_data_s: float = math.inf

    def see(self, kind: str, event: str, now: float, source: str, here: str, there: str) -> None:
        """Process a line of the trace."""
        if event == "+" and source == here:
            self.server = source if kind == "DCCP_Response" else self.server
            if kind == "DCCP_Data":
                self.first_data_s = min(self.first_data_s, now)
            self.closing |= kind in ("DCCP_Close", "DCCP_CloseReq")
            self.reset |= kind == "DCCP_Reset" and self.open and not self.closing
        elif event == "r" and there == self.server != source:
            self.open |= kind in ("DCCP_Ack", "DCCP_DataAck")

    def fault(self, end: float) -> str | None:
        """Why its data so far cannot be compared, if so."""
        if self.server and not self.open and end - self.first_data_s > ON_THE_WAY_S:
            return "the Ack of the handshake was lost, and its server ignores all data"
        return "a connection was reset that nobody had closed" if self.reset else None


@dataclass
class FlowCount:
    """Packets with payload of one direction of a flow."""

    sent_packets: int = 0
    received_packets: int = 0
    lost_packets: int = 0
    sent_bytes: int = 0
    arrived_bytes: int = 0
    last_sent_s: float = -1.0
    delays_s: array[float] = field(default_factory=lambda: array("d"))

    def row(self, window_s: float) -> dict[str, float | None]:
        """The measures, named as in the flows table."""
        delays = sorted(self.delays_s)
        return {
            "sent_packets": self.sent_packets,
            "received_packets": self.received_packets,
            "lost_packets": self.lost_packets,
            "sent_bytes": self.sent_bytes,
            "throughput_bps": 8 * self.arrived_bytes / window_s if window_s > 0 else None,
            "delay_mean_s": math.fsum(delays) / len(delays) if delays else None,
            **{name: quantile(delays, share) if delays else None for name, share in DELAYS},
        }


@dataclass
class LinkCount:
    """One direction of a link."""

    rate_bps: int
    sent_packets: int = 0
    drops: int = 0
    busy_s: float = 0.0
    area: float = 0.0
    waiting: dict[str, float] = field(default_factory=dict)

    def row(self, begin: float, end: float) -> dict[str, float | None]:
        """The measures, named as in the links table."""
        window = end - begin
        for entered in self.waiting.values():
            self.area += max(0.0, end - max(begin, entered))
        self.waiting.clear()
        return {
            "sent_packets": self.sent_packets,
            "drops": self.drops,
            "utilisation": self.busy_s / window if window > 0 else None,
            "queue_mean_packets": self.area / window if window > 0 else None,
        }


def quantile(ascending: list[float], share: float) -> float:
    """The nearest-rank quantile, as in the flows table."""
    return ascending[max(0, math.ceil(share * len(ascending)) - 1)]


class Reader:
    """Counts the events of a trace."""

    def __init__(
        self, ways: Iterable[Way], wires: Iterable[Wire], window_s: tuple[float, float]
    ) -> None:
        ways, wires = list(ways), list(wires)
        self.begin, self.end = window_s
        self.flows = {way.name: FlowCount() for way in ways}
        self.links = {wire.name: LinkCount(wire.rate_bps) for wire in wires}
        # A flow's two directions differ in the packets' source.
        self._ways = {
            (str(way.number), str(way.ends[0])): (self.flows[way.name], str(way.ends[1]))
            for way in ways
        }
        self._wires = {
            (str(wire.ends[0]), str(wire.ends[1])): self.links[wire.name] for wire in wires
        }
        self._open: dict[str, tuple[float, FlowCount, bool]] = {}
        self._last = ("", "", "")
        self._names = {str(way.number): way.name.removesuffix(".reverse") for way in ways}
        self._connections: dict[str, Connection] = {}
        self.now = 0.0

    def read(self, lines: Iterable[str]) -> None:
        """Process all these lines."""
        for line in lines:
            self._line(line.split())

    def faults(self) -> list[str]:
        """Flows whose connection failed through a fault in ns-2, with the fault."""
        found = {self._names[n]: seen.fault(self.end) for n, seen in self._connections.items()}
        return [f"{name}: {fault}" for name, fault in found.items() if fault]

    def _line(self, words: list[str]) -> None:
        event, time, here, there, kind, length, flags, flow, source = words[:9]
        uid = words[12] if kind == "sctp" else words[11]
        if kind == "sctp":
            # One line per chunk of a packet.
            same, self._last = self._last == (event, time, uid), (event, time, uid)
            if same:
                return
        now = self.now = float(time)
        if kind.startswith("DCCP_") and now < self.end:
            seen = self._connections.setdefault(flow, Connection())
            seen.see(kind, event, now, source.split(".")[0], here, there)
        if (link := self._wires.get((here, there))) is not None:
            self._link(link, event, now, uid, int(length))
        found = self._ways.get((flow, source.split(".")[0]))
        if found is not None and _is_data(kind, flags, words):
            self._flow(*found, event, now, uid, int(length), here, there, source)

    def _link(self, link: LinkCount, event: str, now: float, uid: str, length: int) -> None:
        inside = self.begin <= now < self.end
        if event == "+":
            link.waiting[uid] = now
        elif event in "-d":
            entered = link.waiting.pop(uid, now)
            link.area += max(0.0, min(now, self.end) - max(entered, self.begin))
            if event == "d":
                link.drops += inside
                return
            link.sent_packets += inside
            ended = now + 8 * length / link.rate_bps
            link.busy_s += max(0.0, min(ended, self.end) - max(now, self.begin))

    def _flow(
        self, count: FlowCount, last: str, event: str, now: float, uid: str, length: int,
        here: str, there: str, source: str,
    ) -> None:  # fmt: skip
        if event == "+" and source.split(".")[0] == here:
            inside = self.begin <= now < self.end
            self._open[uid] = now, count, inside
            count.last_sent_s = now
            if inside:
                count.sent_packets += 1
                count.sent_bytes += length
        elif event == "r" and there == last and uid in self._open:
            sent, count, inside = self._open.pop(uid)
            if self.begin <= now < self.end:
                count.arrived_bytes += length
            if inside:
                count.received_packets += 1
                count.delays_s.append(now - sent)
        elif event == "d" and uid in self._open:
            _, count, inside = self._open.pop(uid)
            count.lost_packets += inside


def _is_data(kind: str, flags: str, words: list[str]) -> bool:
    if kind == "tcp":
        return words[10] != "0"  # the SYN
    return kind in ALWAYS_DATA or (kind == "sctp" and flags.endswith("D"))
