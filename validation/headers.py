"""Header values of a captured conversation, recomputed from the packets that arrived.

The capture is from our side, so it shows the order in which packets reached our endpoint and which
were lost on purpose. From the data that arrived, the content of each acknowledgement that we sent
follows from the RFCs, without our code: its cumulative number, its SACK blocks (RFC 2018 §4, RFC
2883 §4), the gap blocks and duplicates of a SACK chunk (RFC 9260 §3.3.4), the states of an Ack
Vector (RFC 4340 §11.4). The other stack's acknowledgements are checked as far as the order of its
arrivals is known: they must not name data that was never sent or was lost.
"""

from __future__ import annotations

import subprocess
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

INBOUND = "0x00000001"
SHOWN = 5
"""Faults that are reported; the others are counted."""

SAID = """\
Header values are checked as well: from the packets that arrived at our side, as tshark reads them
from the capture, `validation/headers.py` computes the required content of each of our
acknowledgements, and what the other side's cannot contain. It shares no code with the endpoint.
Computed, and equal:
"""


def page(results: Iterable[dict]) -> str:
    """A summary of the checks in all conversations, for a page; empty for results without it."""
    counts: dict[str, int] = {}
    for result in results:
        for kind, count in result.get("checked", {}).items():
            counts[kind] = counts.get(kind, 0) + count
    lines = [f"{count} {kind}" for kind, count in sorted(counts.items())]
    return SAID + ";\n".join(lines) + "." if lines else ""


def wrong(result: dict) -> list[str]:
    """The faults of one conversation as text."""
    if not result.get("faults"):
        return []
    return [f"{result['faults']} wrong header values: " + "; ".join(result["first"])]


class Faults:
    """Faults, with text for the first few."""

    def __init__(self) -> None:
        self.count = 0
        self.words: list[str] = []
        self.checked: dict[str, int] = {}
        self.late = 0
        """Acknowledgements that do not include the arrival just before them."""

    def check(self, kind: str, holds: bool, words: str) -> None:
        """Counts a value of this kind; an incorrect one is a fault."""
        self.checked[kind] = self.checked.get(kind, 0) + 1
        if not holds:
            self.count += 1
            if len(self.words) < SHOWN:
                self.words.append(words)

    def result(self) -> dict:
        """The result for storage."""
        total = sum(self.checked.values())
        if self.late > max(2, total // 1000):
            self.check("late acknowledgements", False, f"{self.late} without the last arrival")
        return {
            "late": self.late,
            "checked": self.checked,
            "faults": self.count,
            "first": self.words,
        }


class Runs:
    """A set of integers as disjoint runs [begin, end), none adjacent to another."""

    def __init__(self) -> None:
        self.begins: list[int] = []
        self.ends: list[int] = []

    def add(self, begin: int, end: int) -> bool:
        """Adds a run; returns whether any of it was present."""
        first = bisect_left(self.ends, begin)
        last = bisect_right(self.begins, end)
        known = any(max(begin, self.begins[i]) < min(end, self.ends[i]) for i in range(first, last))
        if first < last:
            begin, end = min(begin, self.begins[first]), max(end, self.ends[last - 1])
        self.begins[first:last], self.ends[first:last] = [begin], [end]
        return known

    def run_at(self, number: int) -> tuple[int, int] | None:
        """The run that contains the number."""
        index = bisect_right(self.begins, number) - 1
        if index >= 0 and number < self.ends[index]:
            return self.begins[index], self.ends[index]
        return None

    def covers(self, begin: int, end: int) -> bool:
        """Whether the set contains this whole run."""
        run = self.run_at(begin)
        return run is not None and end <= run[1]

    def after(self, number: int) -> Iterator[tuple[int, int]]:
        """The runs that begin at or after the number."""
        first = bisect_left(self.begins, number)
        yield from zip(self.begins[first:], self.ends[first:], strict=True)


def rows(capture: Path, fields: Iterable[str], *options: str) -> Iterator[list[str]]:
    """The fields of each packet from tshark: direction and comment come first."""
    command = ["tshark", "-r", str(capture), *options, "-T", "fields", "-E", "occurrence=a"]
    names = ["frame.packet_flags_direction", "frame.comment", *fields]
    command += [word for name in names for word in ("-e", name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for row in process.stdout:
            yield row.rstrip("\n").split("\t")
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


# --- TCP


class Receiver:
    """Data received by one side of a TCP connection."""

    def __init__(self) -> None:
        self.data = Runs()
        self.begin: int | None = None
        self.latest: tuple[int, int] | None = None
        self.before: int | None = None
        """RCV.NXT before the last arrival."""
        self.ts_recent: int | None = None
        self.last_ack = 0

    def accepts(self, begin: int, end: int, stamp: int | None, syn: bool) -> bool:
        """Whether PAWS accepts a segment (RFC 7323 §5.3 R1); keeps TS.Recent (§5.3 R2, R3)."""
        if stamp is None or syn or self.ts_recent is None:
            if syn and stamp is not None:
                self.ts_recent = stamp
            return True
        newer = (stamp - self.ts_recent) % 2**32 < 2**31
        old = self.next is not None and max(end, begin + 1) <= self.next
        if newer and not old and begin <= self.last_ack:
            self.ts_recent = stamp
        return newer

    def arrived(self, begin: int, end: int, syn: bool) -> None:
        """Processes a segment that occupies sequence numbers."""
        if syn and self.begin is None:
            self.begin = begin
        self.before = self.next
        self.data.add(begin, end)
        self.latest = (begin, end)

    @property
    def next(self) -> int | None:
        """RCV.NXT."""
        run = None if self.begin is None else self.data.run_at(self.begin)
        return run[1] if run else None


TCP_FIELDS = ("tcp.seq", "tcp.len", "tcp.flags", "tcp.ack", "tcp.options.timestamp.tsval",
              "tcp.options.sack_le", "tcp.options.sack_re", "tcp.options.sack_perm")  # fmt: skip


class TcpHeaders:
    """Checks acknowledgement numbers and SACK blocks of both sides, packet by packet."""

    def __init__(self) -> None:
        self.ours, self.theirs, self.faults = Receiver(), Receiver(), Faults()
        self.count = 0
        self.asked: list[bool] = []
        """For each SYN, whether it permits SACK."""

    def add(self, direction: str, comment: str, fields: Sequence[str]) -> None:
        """Checks a packet; `fields` are the values of `TCP_FIELDS`."""
        seq, length, flags, ack, stamp, left, right, permits = fields
        self.count += 1
        ours, theirs, faults = self.ours, self.theirs, self.faults
        bits, begin = int(flags, 16), int(seq)
        syn, fin, rst, has_ack = (bool(bits & bit) for bit in (0x2, 0x1, 0x4, 0x10))
        end = begin + int(length) + syn + fin
        blocks = list(zip(numbers(left), numbers(right), strict=True))
        inbound, lost = direction == INBOUND, comment.startswith("lost")
        if syn:
            self.asked.append(bool(permits))
        if inbound and lost:
            return
        where = f"packet {self.count}"
        if has_ack and not rst and not syn:
            if inbound:
                judge_theirs(theirs, int(ack), blocks, where, faults)
            else:
                bare, sack_agreed = begin == end, len(self.asked) >= 2 and all(self.asked)
                judge_ours(ours, int(ack), blocks, sack_agreed, bare, where, faults)
        if rst or lost:
            return
        if inbound:
            if ours.accepts(begin, end, int(stamp) if stamp else None, syn) and begin < end:
                ours.arrived(begin, end, syn)
        elif begin < end:
            theirs.arrived(begin, end, syn)

    def result(self) -> dict:
        """The result for storage."""
        return self.faults.result()


def numbers(text: str) -> list[int]:
    """Comma-separated numbers."""
    return [int(part) for part in text.split(",") if part]


def judge_ours(
    side: Receiver,
    ack: int,
    blocks: list[tuple[int, int]],
    sack_agreed: bool,
    bare: bool,
    where: str,
    faults: Faults,
) -> None:
    """Our acknowledgement must state exactly what arrived."""
    side.last_ack = ack
    expected = side.next
    if ack == side.before != expected:
        # A timer that expired just before the arrival is served first; rare.
        faults.late += 1
        return
    faults.check("our acknowledgement numbers", ack == expected, f"{where}: ACK {ack}, {expected}")
    if expected is None:
        return
    queued = list(side.data.after(expected))
    if not sack_agreed:
        faults.check("our SACK blocks", not blocks, f"{where}: SACK without agreement")
        return
    # RFC 2883 §4: a first block at or below the ACK number, or inside the second, is a D-SACK.
    if blocks:
        begin, end = blocks[0]
        inside = len(blocks) > 1 and blocks[1][0] <= begin and end <= blocks[1][1]
        if end <= ack or inside:
            known = side.data.covers(begin, end)
            faults.check("our D-SACK blocks", known, f"{where}: D-SACK {begin}-{end} never arrived")
            blocks = blocks[1:]
    for block in blocks:
        # RFC 2018 §4: bytes just below and just above a block have not been received.
        whole = block in queued
        faults.check("our SACK blocks", whole, f"{where}: block {block} is no run of {queued[:4]}")
    unique = len(set(blocks)) == len(blocks)
    faults.check("our SACK options", unique, f"{where}: a block twice in {blocks}")
    if queued and (bare or blocks):
        # RFC 2018 §4: SACK options are in ACKs that do not acknowledge the highest number received;
        # our data segments never have them (rfc-exceptions.toml).
        faults.check("our SACK options", bool(blocks), f"{where}: no SACK, {queued[:4]} queued")
        latest = side.latest and side.data.run_at(side.latest[0])
        if latest in queued and blocks:
            first = f"{where}: first block {blocks[0]}, but the latest segment is in {latest}"
            faults.check("our first SACK blocks", blocks[0] == latest, first)


def judge_theirs(
    side: Receiver, ack: int, blocks: list[tuple[int, int]], where: str, faults: Faults
) -> None:
    """The other side must not acknowledge data that did not reach it."""
    limit = side.next
    holds = limit is not None and ack <= limit
    faults.check("their acknowledgement numbers", holds, f"{where}: their ACK {ack} of {limit}")
    for begin, end in blocks:
        known = side.data.covers(begin, end)
        faults.check("their SACK blocks", known, f"{where}: their block {begin}-{end}, never sent")


# --- SCTP

# RFC 9260 §3.2, RFC 3758 §3.2, RFC 8260 §2.1 and §2.3.1
DATA, SACK, FORWARD_TSN, I_DATA, I_FORWARD_TSN = 0, 3, 192, 64, 194


class Tsns:
    """The TSNs received by one side of an association."""

    def __init__(self, initial: int) -> None:
        self.initial = initial
        self.runs = Runs()
        self.cumulative = initial - 1
        self.duplicates: list[int] = []

    def extend(self, tsn: int) -> int:
        """A 32-bit TSN as a number without wraparound."""
        return self.initial + (tsn - self.initial + 2**31) % 2**32 - 2**31

    def arrived(self, tsn: int) -> None:
        """Processes a DATA chunk."""
        tsn = self.extend(tsn)
        if tsn <= self.cumulative or self.runs.covers(tsn, tsn + 1):
            self.duplicates.append(tsn)
            return
        self.runs.add(tsn, tsn + 1)
        self._advance()

    def forward(self, tsn: int) -> None:
        """Processes a FORWARD TSN (RFC 3758 §3.6)."""
        self.cumulative = max(self.cumulative, self.extend(tsn))
        self._advance()

    def _advance(self) -> None:
        if run := self.runs.run_at(self.cumulative + 1):
            self.cumulative = run[1] - 1

    def gaps(self) -> list[tuple[int, int]]:
        """The runs after the cumulative TSN, with first and last number."""
        return [(begin, end - 1) for begin, end in self.runs.after(self.cumulative + 1)]


def sctp(capture: Path, udp_port: int | None = None) -> dict:
    """Checks cumulative TSNs, gap blocks and duplicates of both sides."""
    fields = ["sctp.chunk_type", "sctp.init_initial_tsn", "sctp.initack_initial_tsn"]
    fields += ["sctp.data_tsn_raw", "sctp.forward_tsn_tsn", "sctp.i_forward_tsn_tsn"]
    fields += ["sctp.sack_cumulative_tsn_ack_raw", "sctp.sack_number_of_gap_blocks"]
    fields += ["sctp.sack_gap_block_start", "sctp.sack_gap_block_end", "sctp.sack_duplicate_tsn"]
    options = ["-o", "sctp.relative_tsns:FALSE", "-Y", "sctp"]
    options += ["-d", f"udp.port=={udp_port},sctp"] if udp_port else []
    faults = Faults()
    sides: dict[bool, Tsns] = {}
    for number, row in enumerate(rows(capture, fields, *options), 1):
        direction, comment, kinds, *rest = row
        init, init_ack, data, forward, i_forward, acks, blocks, starts, ends, repeats = map(
            numbers, rest
        )
        inbound, lost = direction == INBOUND, comment.startswith("lost")
        if inbound and lost:
            continue
        where = f"packet {number}"
        for initial in init or init_ack:
            # The TSNs in this direction; a repeated INIT has the same.
            if inbound not in sides or sides[inbound].initial != initial:
                sides[inbound] = Tsns(initial)
        receiver = sides.get(not inbound)
        for index, ack in enumerate(acks):
            if receiver is None or index:
                break
            gaps = list(zip(starts, ends, strict=True))[: blocks[0]]
            if inbound:
                judge_their_sack(receiver, ack, gaps, where, faults)
            else:
                judge_our_sack(receiver, ack, gaps, repeats, where, faults)
        if lost or inbound not in sides:
            continue
        side, tsns, moved = sides[inbound], iter(data), iter(forward or i_forward)
        for kind in numbers(kinds):
            if kind in (DATA, I_DATA) and (tsn := next(tsns, None)) is not None:
                side.arrived(tsn)
            elif kind in (FORWARD_TSN, I_FORWARD_TSN) and (tsn := next(moved, None)) is not None:
                side.forward(tsn)
    return faults.result()


def judge_our_sack(
    side: Tsns,
    ack: int,
    gaps: list[tuple[int, int]],
    repeats: list[int],
    where: str,
    faults: Faults,
) -> None:
    """Our SACK must state exactly what arrived (RFC 9260 §3.3.4, §6.2)."""
    cumulative, expected = side.extend(ack), side.gaps()
    right = cumulative == side.cumulative
    faults.check("our cumulative TSNs", right, f"{where}: {cumulative}, not {side.cumulative}")
    named = [(cumulative + start, cumulative + end) for start, end in gaps]
    # As many as fit are listed, from the lowest.
    right = named == expected[: len(named)] and (len(named) == len(expected) or len(named) > 8)
    faults.check("our gap blocks", right, f"{where}: blocks {named[:4]}, not {expected[:4]}")
    told = sorted(map(side.extend, repeats))
    came = sorted(side.duplicates)
    right = told == came or (len(told) > 8 and len(told) < len(came))
    faults.check("our duplicate TSNs", right, f"{where}: duplicates {told[:4]}, not {came[:4]}")
    side.duplicates = []


def judge_their_sack(
    side: Tsns, ack: int, gaps: list[tuple[int, int]], where: str, faults: Faults
) -> None:
    """The other side must not acknowledge data that did not reach it."""
    cumulative = side.extend(ack)
    right = cumulative <= side.cumulative
    faults.check("their cumulative TSNs", right, f"{where}: {cumulative} of {side.cumulative}")
    for start, end in gaps:
        first, last = cumulative + start, cumulative + end
        known = last <= side.cumulative or side.runs.covers(
            max(first, side.cumulative + 1), last + 1
        )
        faults.check("their gap blocks", known, f"{where}: their block {first}-{last}, never sent")


# --- DCCP

ACK_TYPES, DATA_TYPES = (3, 4), (0, 1, 2, 4)
ACK_VECTORS, LOSS_EVENT_RATE, LOSS_INTERVALS, RECEIVE_RATE = (38, 39), 192, 193, 194
RECEIVED, MARKED = 0, 1
WEIGHTS = (1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2)
"""RFC 5348 §5.4."""
NDUPACK = 3
"""RFC 5348 §5.1."""


@dataclass
class DccpPacket:
    """A packet read by linux-dccp/conversation.py."""

    seconds: float
    ours: bool
    kind: int
    seq: int
    ack: int | None = None
    raw: list[tuple[int, bytes]] = field(default_factory=list)
    """Type and value of each option except Padding."""
    data_bytes: int = 0
    comment: str = ""


class Half:
    """The packets of one half-connection that reached its receiver."""

    def __init__(self) -> None:
        self.times: dict[int, float] = {}
        self.data: list[tuple[float, int]] = []
        """Times and bytes of data packets."""
        self.greatest = -1
        self.before = -1
        """The highest number before the last arrival."""
        self.top: list[int] = []
        """The three highest sequence numbers received."""
        self.late: set[int] = set()
        """Packets that arrived after three with higher numbers: lost by TFRC's definition."""
        self.harmless: set[int] = set()
        """Packets without data, which may be missing in a lossless part (RFC 4342 §6.1)."""
        self.reported: float | None = None
        """Time of the last Receive Rate."""
        self.rtts: list[float] = []
        """From a packet of the receiver to its acknowledgement, in seconds."""

    def arrived(self, seq: int, now: float) -> None:
        """Processes a packet."""
        if seq not in self.times and len(self.top) == NDUPACK and self.top[0] > seq:
            self.late.add(seq)
        self.times.setdefault(seq, now)
        self.before = self.greatest
        self.greatest = max(self.greatest, seq)
        self.top = sorted({*self.top, seq})[-NDUPACK:]


CAPTURE_S = 0.002
"""Maximum difference between capture time and computation time."""


def dccp(packets: Iterable[DccpPacket]) -> dict:
    """Checks acknowledgement numbers, Ack Vectors and the options of CCID 3 of both sides."""
    faults = Faults()
    to_us, to_them = Half(), Half()
    sent: dict[int, float] = {}
    packets = list(packets)
    for packet in packets:
        # NDP Count tells a receiver which numbers these have, even before a late one arrives.
        if packet.kind not in DATA_TYPES:
            (to_them if packet.ours else to_us).harmless.add(packet.seq)
    for number, packet in enumerate(packets, 1):
        lost = packet.comment.startswith("lost")
        if lost and not packet.ours:
            continue
        where = f"packet {number}"
        half = to_us if packet.ours else to_them
        if packet.ours:
            sent.setdefault(packet.seq, packet.seconds)
        elif packet.ack in sent:
            to_us.rtts.append(packet.seconds - sent.pop(packet.ack))
        if packet.kind in ACK_TYPES and packet.ack is not None:
            who = "our" if packet.ours else "their"
            judge_dccp(half, packet, who, where, faults)
        if not lost:
            half = to_them if packet.ours else to_us
            half.arrived(packet.seq, packet.seconds)
            if packet.kind in DATA_TYPES and packet.data_bytes:
                half.data.append((packet.seconds, packet.data_bytes))
    return faults.result()


def judge_dccp(half: Half, packet: DccpPacket, who: str, where: str, faults: Faults) -> None:
    """Checks the numbers and options of one acknowledgement."""
    ack = packet.ack
    assert ack is not None
    ours = packet.ours
    # RFC 4340 §7.1: the Acknowledgement Number is the greatest sequence number received.
    if ours and ack == half.before != half.greatest:
        # A timer that expired just before the arrival is served first; rare.
        faults.late += 1
        return
    right = ack == half.greatest if ours else ack in half.times
    faults.check(f"{who} acknowledgement numbers", right, f"{where}: {who} ack {ack}")
    intervals: list[tuple[int, int, int]] = []
    place = ack
    for kind, value in packet.raw:
        if kind in ACK_VECTORS:
            place = judge_vector(half, place, value, who, where, faults)
        elif kind == LOSS_INTERVALS:
            intervals = loss_intervals(value)
            judge_intervals(half, ack - value[0], intervals, who, where, faults)
        elif kind == RECEIVE_RATE:
            judge_rate(half, packet.seconds, int.from_bytes(value, "big"), who, where, faults)
    for kind, value in packet.raw:
        if kind == LOSS_EVENT_RATE and intervals:
            inverse = int.from_bytes(value, "big")
            judge_loss_rate(inverse, intervals, who, where, faults)


def judge_vector(half: Half, place: int, value: bytes, who: str, where: str, faults: Faults) -> int:
    """Checks an Ack Vector (RFC 4340 §11.4) backwards from `place`; returns its end."""
    for cell in value:
        state, count = cell >> 6, (cell & 63) + 1
        for seq in range(place, place - count, -1):
            there = seq in half.times
            if state in (RECEIVED, MARKED):
                words = f"{where}: {who} vector says that {seq} was received"
                faults.check(f"{who} Ack Vector states, received", there, words)
            elif packet_known(half, seq) and who == "our":
                words = f"{where}: our vector says that {seq} was not received"
                faults.check("our Ack Vector states, not received", not there, words)
        place -= count
    return place


def packet_known(half: Half, seq: int) -> bool:
    """Whether the number belongs to this connection: not before its first packet."""
    return bool(half.times) and seq >= min(half.times)


def loss_intervals(value: bytes) -> list[tuple[int, int, int]]:
    """Lossless, loss and data lengths, the most recent first (RFC 4342 §8.6)."""
    parts = [value[at : at + 9] for at in range(1, len(value) - 8, 9)]
    numbers = ([int.from_bytes(part[i : i + 3], "big") for i in (0, 3, 6)] for part in parts)
    return [(lossless, loss & 0x7FFFFF, data) for lossless, loss, data in numbers]


def judge_intervals(
    half: Half,
    place: int,
    intervals: list[tuple[int, int, int]],
    who: str,
    where: str,
    faults: Faults,
) -> None:
    """Loss Intervals (RFC 4342 §8.6.1): content of lossless parts, beginnings of lossy parts."""
    for number, (lossless, loss, data) in enumerate(intervals):
        first = place - lossless + 1
        known = [seq for seq in range(first, place + 1) if packet_known(half, seq)]
        missing = [seq for seq in known if seq not in half.times and seq not in half.harmless]
        words = f"{where}: {who} lossless part {first}-{place} lacks {missing[:3]}"
        faults.check(f"{who} lossless parts", not missing, words)
        begin = first - loss
        if loss and packet_known(half, begin) and who == "our":
            # A late packet may or may not fill the hole (RFC 5348 §5.1).
            gone = begin not in half.times or begin in half.late
            words = f"{where}: our lossy part begins with {begin}, which was received"
            faults.check("our lossy parts", gone, words)
        # RFC 4342 §6.1.1: the data length of the connection's first interval, which has no lossy
        # part, is computed and may be longer than its sequence length.
        computed = number == len(intervals) - 1 and loss == 0
        right = computed or data <= lossless + loss
        faults.check(f"{who} data lengths", right, f"{where}: data length {data} of an interval")
        place = begin - 1


def judge_rate(half: Half, now: float, told: int, who: str, where: str, faults: Faults) -> None:
    """Receive Rate: the bytes received in the last t seconds, over t.

    In RFC 5348 §6.2 t is the round-trip time, regardless of the last report; in RFC 4342 §8.3 the
    time since that report, or the round-trip time if longer. The receiver's RTT estimate is not on
    the wire, but the capture has round-trip times that bound it. Only our reports can be checked:
    our arrivals are in the capture.
    """
    before, half.reported = half.reported, now
    if who != "our" or before is None or now <= before or told == 0:
        return
    size = max((size for _, size in half.data[-1:]), default=0)

    def follows(begin: float) -> bool:
        count = sum(size for at, size in half.data if begin < at <= now)
        # An arrival may lie between the times of capture and of computation.
        return abs(told * (now - begin) - count) <= 1.25 * size

    def in_round_trip() -> bool:
        recent = [(at, size) for at, size in half.data if now - 1 < at <= now]
        count = 0
        for place in range(len(recent) - 1, -1, -1):
            at, size = recent[place]
            count += size
            span = count / told
            older = recent[place - 1][0] if place else -1.0
            holds = now - at - CAPTURE_S <= span <= now - older + CAPTURE_S
            if holds and 0.5 * min(half.rtts) <= span <= 2 * max(half.rtts):
                return True
        return False

    longer = (at for at, _ in half.data if now - 1 < at <= before)
    right = follows(before) or any(follows(at) for at in longer)
    right = right or (bool(half.rtts) and in_round_trip())
    faults.check("our receive rates", right, f"{where}: X_recv {told} B/s")


def judge_loss_rate(
    inverse: int, intervals: list[tuple[int, int, int]], who: str, where: str, faults: Faults
) -> None:
    """Loss Event Rate (RFC 4342 §8.5) against the data lengths reported beside it (RFC 5348 §5.4).

    With history discounting (RFC 5348 §5.5) the mean may be longer than this computation's.
    """
    lengths = [data for *_, data in intervals]
    closed = lengths[1:9]
    if inverse == 2**32 - 1 or not closed:
        return

    def mean(values: list[int]) -> float:
        weights = WEIGHTS[: len(values)]
        weighed = sum(w * v for w, v in zip(weights, values, strict=True))
        return weighed / sum(weights)

    # I_1 to I_k, or I_0 to I_(k-1): the oldest does not count in both.
    expected = max(mean(closed), mean(lengths[: len(closed)]))
    words = f"{where}: {who} loss event rate 1/{inverse}, intervals say 1/{expected:.1f}"
    least = expected * 0.98 - 1
    faults.check(f"{who} loss event rates", inverse >= least, words)
