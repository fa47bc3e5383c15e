"""Finds the flows in the packets of a capture, and says what each packet is.

Content is distinguished by its first bytes (RFC 7983, RFC 5761), which the compiled part does. A
source of RTP is a flow of one direction; two that answer each other are one flow.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from talkspurt.importing.rtp import MAX_DROPOUT, MAX_MISORDER
from talkspurt.importing.sessions import Sessions

Row = dict[str, Any]
End = tuple[str, int]
Part = tuple[End, list[Row]]
"""A sender, and its packets in order of time."""
Sources = dict[tuple[End, int], list[Row]]
"""Packets of RTP by sender and SSRC."""

CERTAIN = 4
"""As many packets with numbers near each other are no coincidence."""
MAX_COUNTED = 1000
"""As many packets of a source are examined."""
SHORT = 2
"""A source of as many packets or fewer is listed, and not scored."""
MAX_SHORT = 100
"""As many of these are listed."""
APPLICATION_DATA = {23, *range(32, 64)}
"""First bytes of DTLS records of data, as of a data channel; those of DTLS 1.3 may also be of its
handshake, which is encrypted (RFC 9147 §4)."""
BESIDE = ("stun", "dtls", "zrtp", "turn")
"""What shares ports with RTP and is no evidence against it."""

SENT = ("sender", "receiver", "encrypted")
"""Reports that name their sender."""

DATA, CONTROL, REPAIR, DUPLICATE = "data", "control", "repair", "duplicate"
TOO_MANY = f"RTP packets of sources of one or two packets, beyond {MAX_SHORT} such sources"


@dataclass
class Conversation:
    """The packets between two ends, by direction: the first is that of the opening end."""

    protocol: str
    ends: tuple[End, End]
    rows: dict[End, list[Row]] = field(default_factory=dict)

    def other(self, end: End) -> End:
        """The other end."""
        return self.ends[1] if end == self.ends[0] else self.ends[0]

    @property
    def all(self) -> Iterable[Row]:
        """The packets of both directions."""
        return itertools.chain.from_iterable(self.rows.values())

    def beside(self, sources: Sources) -> Iterable[tuple[End, Row]]:
        """The packets of no source, with their senders."""
        media = {id(row) for rows in sources.values() for row in rows}
        for end, rows in self.rows.items():
            yield from ((end, row) for row in rows if id(row) not in media)


@dataclass
class Found:
    """A flow: its packets by direction, that which sends data first.

    If both do, the first direction is that of the end that opened.
    """

    talk: Conversation
    kind: str
    parts: list[Part]
    ssrcs: list[int] = field(default_factory=list)


def conversations(rows: Iterable[Row]) -> dict[tuple[str, frozenset[End]], Conversation]:
    """All conversations of a capture, in order of their first packets."""
    found: dict[tuple[str, frozenset[End]], Conversation] = {}
    for row in rows:
        here, there = (row["src"], row["src_port"]), (row["dst"], row["dst_port"])
        key = (row["protocol"], frozenset((here, there)))
        if key not in found:
            found[key] = Conversation(row["protocol"], (here, there), {here: [], there: []})
        found[key].rows.setdefault(here, []).append(row)
    return found


def identity(row: Row) -> tuple[Any, ...]:
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


COPY_NS = 10_000_000
"""A packet that is there twice within this time was captured at two interfaces."""


def without_copies(rows: list[Row]) -> list[Row]:
    """Packets without those that have the number of IP and the content of one just before.

    What is known of packets of SCTP is not their content, and DCCP numbers its packets.
    """
    kept: list[Row] = []
    before: dict[tuple[Any, ...], int] = {}
    for row in rows:
        is_known = row["ip_id"] and row["protocol"] in ("tcp", "udp")
        key = identity(row) if is_known else None
        if key in before and row["time_ns"] - before[key] < COPY_NS:
            row["role"], row["packet"] = DUPLICATE, None
            continue
        kept.append(row)
        if key is not None:
            before[key] = row["time_ns"]
    return kept


def is_data(row: Row, kind: str) -> bool:
    """Whether a packet has data of a flow that is not RTP."""
    if row["protocol"] == "sctp":
        return bool(row["chunks"])
    if row["protocol"] == "dccp":
        return row["kind"] in DCCP_DATA
    return bool(row["payload_bytes"]) and not (kind == "dtls" and not row["application_data"])


DCCP_DATA = (2, 4)
"""DCCP-Data and DCCP-DataAck."""


class Demultiplexer:
    """The flows of a capture, in order of the first packets of their conversations."""

    def __init__(self, rows: list[Row], sessions: Sessions) -> None:
        self.sessions = sessions
        self.short = 0
        self.found: list[Found] = []
        talks = conversations(rows)
        sources = {key: one for key, talk in talks.items() if (one := sources_of(talk, sessions))}
        for talk in talks.values():
            if talk.protocol == "udp" and (below := _rtcp_of(talk, sources)) is not None:
                # RTCP on the ports behind those of RTP (RFC 3550 §11).
                for end, packets in talk.rows.items():
                    talks[below].rows[(end[0], end[1] - 1)] += packets
        for key, talk in talks.items():
            if key in sources:
                self._media(talk, sources[key])
            elif talk.protocol != "udp" or _rtcp_of(talk, sources) is None:
                self._plain(talk, talk.protocol, talk.rows)

    def _plain(self, talk: Conversation, kind: str, rows: dict[End, list[Row]]) -> None:
        # A socket that sends to itself is both ends.
        parts = [(end, rows[end]) for end in dict.fromkeys(talk.ends) if rows.get(end)]
        for row in itertools.chain.from_iterable(packets for _, packets in parts):
            row["role"] = DATA if is_data(row, kind) else CONTROL
        sends = [any(row["role"] == DATA for row in packets) for _, packets in parts]
        if len(parts) == 2 and sends[1] and not sends[0]:
            parts.reverse()
        self.found.append(Found(talk, kind, parts))

    def _media(self, talk: Conversation, sources: Sources) -> None:
        """RTP sources as flows, with the control packets of their ports, and a data channel."""
        streams = self._streams(talk, sources)
        first: dict[End, int] = {}
        for end, ssrc in sorted(streams, key=lambda key: sources[key][0]["frame"]):
            if end not in first or len(sources[end, first[end]]) <= SHORT:
                first[end] = ssrc
        channel: dict[End, list[Row]] = {}
        rest: dict[End, list[Row]] = {}
        for end, row in talk.beside(sources):
            if row["application_data"]:
                channel.setdefault(end, []).append(row)
                continue
            row["role"] = CONTROL
            senders = (one.get("ssrc") for one in row["reports"] if one["kind"] in SENT)
            by = next((one for one in senders if (end, one) in streams), first.get(end))
            (rest.setdefault(end, []) if by is None else streams[end, by]).append(row)
        for rows in (*streams.values(), *rest.values()):
            rows.sort(key=lambda row: (row["time_ns"], row["frame"]))
        for pair in self._pairs(talk, streams, sources):
            parts = [(key[0], streams[key]) for key in pair]
            if len(parts) == 1:
                # Control packets of the end that only listens.
                end = talk.other(parts[0][0])
                if end != parts[0][0] and (packets := rest.pop(end, None)):
                    parts.append((end, packets))
            self.found.append(Found(talk, "rtp", parts, [key[1] for key in pair]))
        # All sources are short ones that are not listed.
        for row in itertools.chain.from_iterable(rest.values()):
            row["role"] = TOO_MANY
        if channel:
            self._plain(talk, "dtls", {end: channel.get(end, []) for end in talk.ends})

    def _streams(self, talk: Conversation, sources: Sources) -> Sources:
        """The sources that are flows, with what repairs them; says what each packet is."""
        streams: Sources = {}
        for key, rows in sources.items():
            base = self.sessions.repaired(key[0], talk.other(key[0]), key[1], sources)
            role = DATA if base is None else REPAIR
            if base is None and len(rows) <= SHORT:
                self.short += 1
                role = DATA if self.short <= MAX_SHORT else TOO_MANY
            for row in rows:
                row["role"] = role
            if role != TOO_MANY:
                streams.setdefault(base or key, []).extend(rows)
        return streams

    def _pairs(
        self,
        talk: Conversation,
        streams: Sources,
        sources: Sources,
    ) -> list[list[tuple[End, int]]]:
        """Streams that answer each other: the only ones of their type in each direction."""
        ordered = sorted(streams, key=lambda key: sources[key][0]["frame"])
        long = [key for key in ordered if len(sources[key]) > SHORT]
        counts = {key: Counter(row["rtp_type"] for row in sources[key]) for key in long}
        kinds = {key: count.most_common(1)[0][0] for key, count in counts.items()}
        pairs, taken = [], set()
        for key in ordered:
            if key in taken:
                continue
            taken.add(key)
            mate = self._mate(talk, key, kinds, taken) if key in kinds else None
            if mate is not None:
                taken.add(mate)
            pairs.append([key] if mate is None else [key, mate])
        return pairs

    def _mate(
        self,
        talk: Conversation,
        key: tuple[End, int],
        kinds: dict[tuple[End, int], int],
        taken: set[tuple[End, int]],
    ) -> tuple[End, int] | None:
        here, there = key[0], talk.other(key[0])
        if here == there:
            return None

        def only(is_kind: Callable[[tuple[End, int]], bool]) -> tuple[End, int] | None:
            ours = [one for one in kinds if one[0] == here and is_kind(one)]
            theirs = [one for one in kinds if one[0] == there and is_kind(one)]
            fits = len(ours) == len(theirs) == 1 and theirs[0] not in taken
            return theirs[0] if fits else None

        return only(lambda _: True) or only(lambda one: kinds[one] == kinds[key])


def sources_of(talk: Conversation, sessions: Sessions) -> Sources:
    """The RTP sources of a conversation by sender and SSRC; empty if it carries none.

    Other protocols may begin with the same two bits. Several packets with numbers near each other
    are RTP beyond doubt, and so is what a session description announces; two successive numbers
    (RFC 3550 A.1) are, if most of the packets look like RTP. Where there is RTP, all that looks
    like it is (RFC 7983).
    """
    found: Sources = {}
    for end, rows in talk.rows.items():
        for row in rows:
            if row["rtp_seq"] is not None:
                found.setdefault((end, row["rtp_ssrc"]), []).append(row)
    if not found:
        return {}
    certain = any(
        sessions.announces(end, talk.other(end)) or _is_certain(rows)
        for (end, _), rows in found.items()
    )
    if not certain:
        media = sum(len(rows) for rows in found.values() if 1 in _steps(_counted(rows)))
        media += sum(row["content"] == "rtcp" for row in talk.all) if media else 0
        evidence = sum(row["content"] not in BESIDE for row in talk.all)
        certain = 2 * media > evidence
    return found if certain else {}


def _counted(rows: list[Row]) -> list[int]:
    """The first numbers of a source, without copies; none if too few differ.

    A constant or a length, where RTP has its number, repeats; packets of RTP may be captured twice.
    """
    seqs = [row["rtp_seq"] for row in rows[:MAX_COUNTED]]
    return [seq for seq, _ in itertools.groupby(seqs)] if 2 * len(set(seqs)) >= len(seqs) else []


def _steps(numbers: list[int]) -> list[int]:
    return [(b - a) % 65536 for a, b in itertools.pairwise(numbers)]


def _is_certain(rows: list[Row]) -> bool:
    numbers = _counted(rows)
    if len(set(numbers)) < CERTAIN:
        return False
    steps = _steps(numbers)
    near = sum(1 <= step <= MAX_DROPOUT or step >= 65536 - MAX_MISORDER for step in steps)
    return 2 * near >= len(steps)


def _rtcp_of(
    talk: Conversation, media: Iterable[tuple[str, frozenset[End]]]
) -> tuple[str, frozenset[End]] | None:
    """The conversation of which this is the RTCP."""
    below = ("udp", frozenset((host, port - 1) for host, port in talk.ends))
    is_rtcp = below in media and all(row["content"] == "rtcp" for row in talk.all)
    return below if is_rtcp else None
