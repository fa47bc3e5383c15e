"""Reads traces of ns-2: `trace-all` of wired links, and both formats of wireless nodes.

The formats are those of trace/trace.cc, trace/cmu-trace.cc and chapters 16 and 26 of the ns manual.
A packet is identified by its unique number, its flow by ns-2's flow number and the two addresses.
"""

from __future__ import annotations

import io
import itertools
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError
from talkspurt.importing.model import Hop, Packet, Trace, Way

TRANSPORTS = {
    "cbr": "udp", "exp": "udp", "pareto": "udp", "udp": "udp", "audio": "udp", "video": "udp",
    "rtp": "udp", "rtcp": "udp", "tcp": "tcp", "ack": "tcp", "sctp": "sctp", "tcpFriend": "tfrc",
    "tcpFriendCtl": "tfrc",
}  # fmt: skip
"""Transport by ns-2's packet type; DCCP's types begin with ``DCCP_``."""
CONTROL = ("ack", "tcpFriendCtl", "rtcp")
DCCP_DATA = ("DCCP_Data", "DCCP_DataAck")
FATES = {"IFQ": "full", "RET": "retries", "COL": "medium", "ERR": "medium", "CBK": "retries"}
"""What became of a dropped packet, by the reason in a wireless trace."""
KEEPS = ("COL", "DUP", "END")
"""Reasons by which no packet is lost: a collision is followed by another attempt or by RET, DUP is
a second copy, and END that the simulation ended while the packet waited (trace/cmu-trace.h)."""
QUIET = frozenset("MvhcnleEaVTXY")
"""First words of lines without packets: movement, variables, annotations."""
EVENTS = frozenset("+-rdsDf")
"""First words of lines with packets."""


class Line(NamedTuple):
    """One event of a packet."""

    event: str
    time: float
    here: str
    there: str | None
    layer: str | None
    why: str
    kind: str
    size: int
    flags: str
    flow: str | None
    source: str
    target: str
    seq: int
    uid: str


@dataclass
class Journey:
    """A packet on its way."""

    number: int
    line: Line
    hops: dict[str, Hop] = field(default_factory=dict)
    size: int = 0
    last: str | None = None
    received_s: float | None = None
    dropped: str | None = None


NEITHER = "is neither pcap nor pcapng, nor a trace of ns-2"


def read(file: Path, data: bytes) -> Trace:
    """The flows of a trace."""
    reader = _Reader()
    try:
        for number, text in enumerate(io.TextIOWrapper(io.BytesIO(data), encoding="ascii"), 1):
            words = text.split()
            if not words or words[0].startswith("#") or _is_quiet(words):
                continue
            try:
                line = _parsed(words)
            except (ValueError, IndexError, KeyError):
                ends = "is no trace line" if text.endswith("\n") else "ends in the middle of a line"
                what = NEITHER if number == 1 else f"line {number} {ends} of ns-2"
                raise BadInputError(visible(f"{file}: {what}")) from None
            reader.see(line)
    except UnicodeDecodeError:
        raise BadInputError(visible(f"{file}: {NEITHER}")) from None
    if not reader.ways:
        none = "holds no packets of TCP, UDP, RTP, SCTP, DCCP or TFRC"
        raise BadInputError(visible(f"{file}: {none}"))
    return reader.trace()


def _is_quiet(words: list[str]) -> bool:
    """Whether a line tells of no packet.

    Nodes with an energy model write ``N -t TIME`` (common/mobilenode.cc), and routing agents lines
    of a word and the time: ``Sconfig`` (dsr/dsragent.cc), ``A`` (aodv/aodv_logs.cc).
    """
    if words[0] in EVENTS or len(words) < 2:
        return False
    return words[0] in QUIET or words[1] == "-t" or _is_time(words[1])


def _is_time(text: str) -> bool:
    try:
        _time(text)
    except ValueError:
        return False
    return "." in text


def _parsed(words: list[str]) -> Line:
    if len(words) > 2 and words[1] == "-t":
        return _new_wireless(words)
    if words[2][0] == "_":
        return _old_wireless(words)
    event, time, here, there, kind, size, flags, flow, source, target, seq = words[:11]
    if event not in ("+", "-", "r", "d"):
        raise ValueError(event)
    # trace.cc: SCTP has further columns for each chunk, and the unique number behind the TSN.
    uid = words[12] if kind == "sctp" and len(words) > 12 else words[11]
    int(uid), int(flow), int(here), int(there)
    return Line(
        event, _time(time), here, there, None, "", kind, int(size), flags, flow, source, target,
        int(seq), uid,
    )  # fmt: skip


def _old_wireless(words: list[str]) -> Line:
    event, time, node, layer, why, uid, kind, size = words[:8]
    if event not in ("s", "r", "D", "f"):
        raise ValueError(event)
    behind = " ".join(words[8:]).split("[")
    ends = next((part.split() for part in behind if ":" in part), ["?", "?"])
    # cmu-trace.cc: the sequence number follows the addresses, in separate brackets.
    after = [part for i, part in enumerate(behind) if i and ":" in behind[i - 1]]
    seq = after[0].split("]")[0].split()[0] if after else "-1"
    source, target = (end.strip("[]").replace(":", ".") for end in ends[:2])
    seq = seq if seq.lstrip("-").isdigit() else "-1"
    int(uid), int(node.strip("_"))
    return Line(
        event, _time(time), node.strip("_"), None, layer, why, kind, int(size), "", None, source,
        target, int(seq), uid,
    )  # fmt: skip


def _new_wireless(words: list[str]) -> Line:
    event = {"d": "D"}.get(words[0], words[0])
    if event not in ("s", "r", "D", "f"):
        raise ValueError(event)
    # The last flag of a truncated line has no value.
    told = dict(zip(words[1:-1:2], words[2::2], strict=True)) if len(words) % 2 else _pairs(words)
    if "-It" not in told:
        # Frames without IP: ARP, and control frames of the MAC.
        told |= {"-It": told.get("-P", "MAC"), "-Il": "0", "-Is": "?", "-Id": "?", "-Ii": "-1"}
    seq = told.get("-Pi") or told.get("-Ps") or "-1"
    return Line(
        event, _time(told["-t"]), told["-Ni"], None, told["-Nl"], told["-Nw"], told["-It"],
        int(told["-Il"]), "", told.get("-If", ""), told["-Is"], told["-Id"],
        int(seq) if seq.lstrip("-").isdigit() else -1, told["-Ii"],
    )  # fmt: skip


def _pairs(words: list[str]) -> dict[str, str]:
    """Flags with values; a flag of some protocols, as -P, may be followed by the next flag."""
    pairs = itertools.pairwise(words)
    return {flag: it for flag, it in pairs if flag.startswith("-") and flag[1:2].isalpha()}


def _time(text: str) -> float:
    time = float(text)
    if not math.isfinite(time) or time < 0:
        raise ValueError(text)
    return time


class _Reader:
    """Follows packets through the lines of a trace."""

    def __init__(self) -> None:
        self.open: dict[tuple[str, str], Journey] = {}
        self.ways: dict[tuple[str | None, str, str], list[Journey]] = {}
        self.hops: dict[tuple[str | None, str, str], list[Hop]] = {}
        self.links: dict[str, tuple[str, str]] = {}
        self.skipped: dict[str, int] = {}
        self.seen = {"wired": 0, "old wireless": 0, "new wireless": 0}
        self.acks: dict[frozenset[str], int] = {}
        """Bytes of the shortest acknowledgement between two ends."""
        self.routers = False
        self.end = 0.0
        self.twice: dict[tuple[str | None, str, str], int] = {}
        self.numbers: dict[tuple[str | None, str, str], set[int]] = {}

    def see(self, line: Line) -> None:
        self.end = max(self.end, line.time)
        wireless = "old wireless" if line.flow is None else "new wireless"
        self.seen["wired" if line.layer is None else wireless] += 1
        if line.kind not in TRANSPORTS and not line.kind.startswith("DCCP_"):
            if line.event in "+s" and line.layer in (None, "AGT", "RTR"):
                what = f"{line.kind} packets"
                self.skipped[what] = self.skipped.get(what, 0) + 1
            return
        if line.kind == "ack":
            ends = frozenset((line.source, line.target))
            self.acks[ends] = min(line.size, self.acks.get(ends, line.size))
        if line.layer is None:
            self._wired(line)
        else:
            self._wireless(line)

    def _journey(self, line: Line) -> Journey | None:
        """The packet of a line; a new one if this is its first."""
        found = self.open.get((line.uid, line.source))
        if found is None and line.event in ("+", "s", "d", "D"):
            key = (line.flow, line.source, line.target)
            way = self.ways.setdefault(key, [])
            found = Journey(len(way), line, size=line.size)
            way.append(found)
            self.open[line.uid, line.source] = found
            if line.seq >= 0 and _is_data(line, way[0].line):
                numbers = self.numbers.setdefault(key, set())
                if line.seq in numbers:
                    self.twice[key] = self.twice.get(key, 0) + 1
                numbers.add(line.seq)
        return found

    def _hop(self, journey: Journey, key: str, hop: Hop) -> None:
        journey.hops[key] = hop
        first = journey.line
        self.hops.setdefault((first.flow, first.source, first.target), []).append(hop)

    def _wired(self, line: Line) -> None:
        journey = self._journey(line)
        if journey is None:
            return
        assert line.there is not None
        name = f"{line.here}-{line.there}"
        hop = journey.hops.get(name)
        if hop is None:
            self.links.setdefault(name, (line.here, line.there))
            hop = Hop(journey.number, name, line.size, None, None, None, "queued")
            self._hop(journey, name, hop)
        if line.event == "+" and hop.enqueued_s is None:
            hop.enqueued_s = line.time
        elif line.event == "-" and hop.dequeued_s is None:
            hop.dequeued_s, hop.fate = line.time, "in_flight"
        elif line.event == "r" and hop.received_s is None:
            hop.received_s, hop.fate = line.time, "received"
            if line.there == _node(line.target):
                journey.received_s = line.time
        elif line.event == "d":
            # A queue drops before the transmission, the medium during it.
            hop.fate = "full" if hop.dequeued_s is None else "medium"
            hop.enqueued_s = line.time if hop.enqueued_s is None else hop.enqueued_s
            journey.dropped = hop.fate

    def _wireless(self, line: Line) -> None:
        if line.layer not in ("AGT", "RTR", "IFQ", "MAC"):
            return
        self.routers = self.routers or line.layer == "RTR"
        if line.layer == "MAC" and line.event != "D":
            return
        journey = self._journey(line)
        if journey is None:
            return
        if line.event in ("s", "f") and line.layer in ("AGT", "RTR"):
            journey.last = line.here
            self._leave(journey, line)
        elif line.event == "r" and line.here != journey.last:
            self._arrive(journey, line)
        elif line.event == "D" and line.why not in KEEPS and journey.received_s is None:
            journey.dropped = FATES.get(line.why, "full" if line.layer == "IFQ" else "lost")
            if journey.hops.get(""):
                journey.hops[""].fate = journey.dropped

    def _leave(self, journey: Journey, line: Line) -> None:
        """A packet leaves a node; where to is known when it arrives."""
        before = journey.hops.get("")
        if before is not None and line.layer == "RTR":
            # From the agent to its router: headers are complete there.
            before.ip_bytes = journey.size = line.size
            return
        link = f"{line.here}-?"
        self._hop(
            journey, "", Hop(journey.number, link, line.size, line.time, None, None, "in_flight")
        )

    def _arrive(self, journey: Journey, line: Line) -> None:
        assert journey.last is not None or journey.hops.get("") is None
        hop = journey.hops.pop("", None)
        if hop is not None and journey.last is not None:
            hop.link = f"{journey.last}-{line.here}"
            self.links.setdefault(hop.link, (journey.last, line.here))
            hop.received_s, hop.fate = line.time, "received"
        journey.dropped = None
        journey.last = None
        if line.layer == "AGT" and line.here == _node(line.target):
            journey.received_s = line.time

    def trace(self) -> Trace:
        formats = [name for name, count in self.seen.items() if count]
        ways = self._named()
        notes = [
            "lengths are those of ns-2: for datagrams on wired links without UDP and IP headers",
            "goodput is not known: a trace of ns-2 does not distinguish headers from payload",
            "link rates are not in the trace, and utilisation is not known",
        ]
        if self.seen["old wireless"] or self.seen["new wireless"]:
            notes.append(
                "wireless hops are those between routers (RTR)" if self.routers
                else "only agents (AGT) were traced: hops between nodes are not known"
            )  # fmt: skip
        # Only hops that ended at a node have a link.
        for way in ways:
            for hop in way.hops:
                if hop.link.endswith("-?"):
                    here = hop.link[:-2]
                    there = next((n for n, ends in self.links.items() if ends[0] == here), None)
                    hop.link = there or f"{here}-{way.receiver}"
                    self.links.setdefault(hop.link, (here, way.receiver))
        return Trace(
            f"ns-2 ({', '.join(formats)})", ways, self.links, self.end, notes, self.skipped
        )

    def _named(self) -> list[Way]:
        """Directions with names: the two of one flow share its name."""
        # An answering agent may have another flow number: TFRC's has 0.
        alone = len({key[1:] for key in self.ways}) == len(self.ways)
        pairs: dict[tuple[str | None, frozenset[str]], list[tuple[str | None, str, str]]] = {}
        for key in self.ways:
            pairs.setdefault((None if alone else key[0], frozenset(key[1:])), []).append(key)
        numbers = [max(keys, key=self._sends_data)[0] for keys in pairs.values()]
        clear = None not in numbers and len(set(numbers)) == len(numbers)
        found = []
        for count, keys in enumerate(pairs.values(), 1):
            sides = sorted(keys, key=lambda key: not self._sends_data(key))
            kinds = [journey.line.kind for journey in self.ways[sides[0]]]
            # Our own traces have RTCP over DCCP and TFRC, too.
            kind = next((kind for kind in kinds if kind != "rtcp"), kinds[0])
            transport = "dccp" if kind.startswith("DCCP_") else TRANSPORTS[kind]
            flow = f"{transport}-{sides[0][0] if clear else count}"
            for side, key in zip(("from", "to"), sides, strict=False):
                found.append(self._way(flow, side, transport, key))
        return found

    def _sends_data(self, key: tuple[str | None, str, str]) -> bool:
        return any(self._carries_data(journey) for journey in self.ways[key])

    def _carries_data(self, journey: Journey) -> bool:
        line = journey.line
        shortest = self.acks.get(frozenset((line.source, line.target)))
        if line.kind == "tcp" and line.size == shortest:
            return False  # FullTcp calls a FIN tcp; it is as long as an acknowledgement
        if line.kind == "sctp" and journey.number == 0:
            return False  # INIT or INIT ACK (RFC 9260 §5.1)
        return _is_data(line, self.ways[line.flow, line.source, line.target][0].line)

    def _way(self, flow: str, side: str, transport: str, key: tuple[str | None, str, str]) -> Way:
        journeys = self.ways[key]
        way = Way(flow, side, transport, "unknown", _node(key[1]), _node(key[2]))
        for journey in journeys:
            line = journey.line
            fate = "received" if journey.received_s is not None else journey.dropped or "in_flight"
            way.packets.append(
                Packet(journey.number, self._carries_data(journey), journey.size, line.time,
                       journey.received_s, fate)
            )  # fmt: skip
        way.hops = self.hops.get(key, [])
        by_number: dict[int, list[str]] = {}
        for hop in way.hops:
            by_number.setdefault(hop.number, []).append(hop.link)
        arrived = [by_number[j.number] for j in journeys if j.received_s is not None]
        way.routes = [list(route) for route in dict.fromkeys(map(tuple, arrived))]
        way.facts = {
            "source": key[1], "destination": key[2], "ns2_flow": key[0],
            "types": sorted({journey.line.kind for journey in journeys}),
        }  # fmt: skip
        if transport in ("tcp", "sctp") and self.numbers.get(key):
            way.facts["retransmitted_packets"] = self.twice.get(key, 0)
        return way


def _node(address: str) -> str:
    return address.partition(".")[0]


def _is_data(line: Line, first: Line) -> bool:
    """Whether a packet has data; ``first`` is the first one of its direction."""
    if line.kind.startswith("DCCP_"):
        return line.kind in DCCP_DATA
    if line.kind == "sctp":
        # trace.cc: an eighth flag is the type of the chunk; other traces do not tell it.
        return line.flags[7] == "D" if len(line.flags) > 7 else line.size > MAX_HEADERS
    if line.kind == "tcp":
        # tcp.cc: the first packet of a connection is a SYN without data; it may be sent again.
        syn = line.seq == 0 and first.seq == 0 and line.size == first.size <= MAX_HEADERS
        if syn or line.size <= TCP_HEADERS:
            return False
    return line.kind not in CONTROL


TCP_HEADERS = 40
"""Bytes of a segment without data and options (tcp.cc: `tcpip_base_hdr_size_`)."""
MAX_HEADERS = 80
"""Bytes of a SYN with all options that TCP has room for: 20 of IP, 20 of TCP, 40 of options."""
