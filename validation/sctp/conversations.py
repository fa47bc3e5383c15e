"""SCTP conversations with another stack, their expected results, and the tables of the page.

A `Case` defines what each side sends and how, besides what all conversations have. `judge` compares
this with the counts of both sides and of tshark, whose CRC-32c check is enabled.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
import headers
from harness import Peer, Result, Wrong, last, overview
from tables import table

NEVER = 0
FIELDS = ("sctp.checksum.status", "_ws.expert.group", "_ws.expert.message", "frame.protocols")
# Groups of expert items that indicate faulty packets: Checksum, Protocol, Malformed.
FAULTS = {0x01000000: "Checksum", 0x09000000: "Protocol", 0x07000000: "Malformed"}


@dataclass(frozen=True)
class Case(harness.Case):
    """One conversation."""

    ours: int = 400
    """Messages we send; `theirs`: those of the other side."""
    theirs: int = 400
    streams: int = 1
    ordered: bool = True
    lifetime_ms: int | None = None
    max_retransmissions: int | None = None
    interleaving: bool = False
    mirror: bool = False
    """The random streams of both directions are swapped."""
    quiet_s: int = 5
    """Silence after which a side considers the other done: longer than repeated timeouts."""
    ours_more: tuple[str, ...] = ()
    """Additional arguments for ours."""

    @property
    def partial(self) -> bool:
        """Whether messages may be abandoned."""
        return self.lifetime_ms is not None or self.max_retransmissions is not None

    def our_words(self) -> list[str]:
        """Arguments of our program, except role, addresses and capture."""
        knobs: dict = {"ordered": self.ordered, **self.knobs}
        if self.lifetime_ms is not None:
            knobs["lifetime"] = f"{self.lifetime_ms}ms"
        if self.max_retransmissions is not None:
            knobs["max_retransmissions"] = self.max_retransmissions
        if self.interleaving:
            knobs |= {"interleaving": True, "scheduler": "round_robin"}
        words = {
            "sctp": json.dumps(knobs), "packets": self.ours, "awaited": self.theirs,
            "streams": self.streams, "seed": self.seed, "quiet": f"{self.quiet_s}s",
            "limit": f"{self.limit_s}s",
        }  # fmt: skip
        out = [part for word, value in words.items() for part in (f"--{word}", str(value))]
        out += self.line_words()
        out += ["--mirrored"] if self.mirror else []
        return out + list(self.ours_more)

    def their_words(self) -> list[str]:
        """Arguments of their program, except role, addresses and ports."""
        out = ["-n", self.theirs, "-m", self.ours, "-l", self.bytes, "-g", self.interval_ms * 1000]
        out += ["-s", self.streams, "-q", self.quiet_s * 1000, "-d", self.limit_s * 1000]
        out += [] if self.ordered else ["-u"]
        out += [] if self.lifetime_ms is None else ["-t", self.lifetime_ms]
        out += [] if self.max_retransmissions is None else ["-x", self.max_retransmissions]
        out += ["-i"] if self.interleaving else []
        out += ["-k"] if self.closes == "theirs" else []
        return [*map(str, out), *self.words.split()]


BAD = {"delay_ms": 10, "loss": 0.02, "held": 0.02}
ROLES = (("client", "ours"), ("server", "theirs"))
MESSAGES = 35_715
"""Slightly more than 50 MB, in messages that fill a packet."""


def opened() -> list[Case]:
    """Each side opens, and each side closes."""
    return [
        Case(
            f"{role}-{name}", f"We are the {role}; the {who} closes", opens=opens,
            closes=opens if who == "client" else other[opens],
        )
        for name, who in (("plain", "client"), ("server-closes", "server"))
        for role, opens in ROLES
        for other in ({"ours": "theirs", "theirs": "ours"},)
    ]  # fmt: skip


def streams() -> list[Case]:
    """Several streams, and messages of several chunks."""
    return [
        *(
            Case(f"{role}-streams", f"We are the {role}; four streams, ordered", opens=opens,
                 closes=opens, streams=4, **BAD)
            for role, opens in ROLES
        ),
        Case("unordered", "Four streams, unordered", streams=4, ordered=False, **BAD),
        Case("fragments", "Messages of six chunks, on two streams", streams=2, bytes=8000,
             closes="theirs", **BAD),
    ]  # fmt: skip


def abandoned() -> list[Case]:
    """Messages that are given up."""
    return [
        Case("timed", "Given up 60 ms after it was handed over", lifetime_ms=60, streams=2, **BAD),
        Case("never-again", "Given up rather than sent again", opens="theirs",
             max_retransmissions=0, closes="theirs", streams=2, **BAD),
    ]  # fmt: skip


def bulk(them: str, limit_s: int) -> list[Case]:
    """50 MB one way, with the same random losses for both senders."""
    return [
        Case(f"{role}-bulk-{sender}", f"We are the {role}; 50 MB from {whose}", opens=opens,
             closes="theirs" if sender == "ours" else "ours",
             ours=MESSAGES if sender == "ours" else 0,
             theirs=MESSAGES if sender == "theirs" else 0,
             mirror=sender == "theirs", seed=seed, bytes=1400, interval_ms=0, delay_ms=5,
             loss=0.02, held=0.01, hold_ms=4, limit_s=limit_s, quiet_s=60)
        for seed, (role, opens) in enumerate(ROLES, 1)
        for sender, whose in (("ours", "us"), ("theirs", them))
    ]  # fmt: skip


def judge(case: Case, said: Result) -> list[str]:
    """Deviations from the expected result."""
    wrong = Wrong()
    must = wrong.must
    read = said["tshark"]
    mine, its = last(said["ours"], "result"), last(said["theirs"], "result")
    if not mine or not its:
        return [f"{'our' if not mine else 'their'} side told no result"]
    tally = mine["tally"]
    must(not tally["gave_up"], "our side reached its limit")
    closed = ["PeerClosed"] if case.closes == "theirs" else []
    must(tally["events"] == ["Connected", *closed, "Closed"], f"our events: {tally['events']}")
    wanted = "self" if case.closes == "theirs" else "peer"
    must(its["ended_by"] == wanted, f"their side ended by {its['ended_by']}")
    for whose, sent, receiver, way in (
        ("ours", tally["sent_packets"], its, "outbound"),
        ("theirs", its["sent_packets"], tally, "inbound"),
    ):
        asked = case.ours if whose == "ours" else case.theirs
        must(sent == asked, f"{whose}: {sent} messages sent of {asked}")
        came, distinct = receiver["received_packets"], receiver["distinct_packets"]
        must(came == distinct, f"{whose}: {came - distinct} messages delivered twice")
        must(receiver["received_bytes"] == came * case.bytes, f"{whose}: bytes")
        must(receiver["foreign_packets"] == 0, f"{whose}: bytes that nobody sent")
        impairment = mine["impairments"][way]
        if case.partial:
            # Only messages that were lost, late, or waited for a T3-rtx timeout may be abandoned.
            least = sent - impairment["lost_data_packets"] - impairment["held_packets"]
            if case.lifetime_ms is not None:
                least -= receiver["longest_silence_us"] // (1000 * case.interval_ms)
            must(least <= distinct <= sent, f"{whose}: {distinct} of {sent} came")
        else:
            must(distinct == sent, f"{whose}: {distinct} of {sent} came")
        if case.ordered:
            must(receiver["reordered_packets"] == 0, f"{whose}: order was not kept")
    if case.max_retransmissions == NEVER:
        must(mine["packets"]["sent"]["again"] == 0, "we sent a chunk twice")
        for way in ("sent", "received"):
            must(chunks(mine, way).get("FORWARD TSN"), f"no FORWARD TSN {way}")
    data = "I-DATA" if case.interleaving else "DATA"
    for way, count in (("sent", case.ours), ("received", case.theirs)):
        must(not count or chunks(mine, way).get(data), f"no {data} {way}")
        must(not mine["packets"][way]["causes"], f"{way}: causes {mine['packets'][way]['causes']}")
    errors = {kind for kind in mine["packets"]["rx_error"] if kind != "Unexpected"}
    must(not errors, f"errors: {mine['packets']['rx_error']}")
    seen = mine["impairments"]["inbound"], mine["impairments"]["outbound"]
    must(
        read["packets"] == sum(way[kind] for way in seen for kind in way if kind != DATA_LOST),
        "tshark read another number of SCTP packets than there were",
    )
    wrong.extend(headers.wrong(read["headers"]))
    must(read["bad_checksums"] == 0, f"{read['bad_checksums']} bad checksums")
    must(not read["faults"], f"tshark: {read['faults']}")
    return wrong


DATA_LOST = "lost_data_packets"


def chunks(result: dict, way: str) -> dict:
    """Chunks by type that our side sent or received."""
    return result["packets"][way]["chunks"]


def read(capture: Path, udp_port: int | None) -> dict:
    """Counts packets, wrong checksums, and faults of a capture of our side in tshark."""
    options = ["-d", f"udp.port=={udp_port},sctp"] if udp_port else []
    packets = bad = 0
    faults: Counter[str] = Counter()
    for _, _, status, groups, messages, protocols in headers.rows(
        capture, FIELDS, "-o", "sctp.checksum:CRC 32c", *options
    ):
        packets += "sctp" in protocols.split(":")
        bad += status != "1"
        for group, message in zip(groups.split(","), messages.split(","), strict=False):
            if group and int(group, 0) in FAULTS:
                faults[f"{FAULTS[int(group, 0)]}: {message}"] += 1
    return {
        "packets": packets, "bad_checksums": bad, "faults": dict(faults),
        "headers": headers.sctp(capture, udp_port),
    }  # fmt: skip


class Sctp(Peer):
    """Another stack for SCTP."""

    protocol = "sctp"
    them: str
    """Its name in tables."""
    udp_port: int | None = None
    """Its port, where SCTP is inside UDP (RFC 6951)."""
    judge = staticmethod(judge)

    def dissect(self, case: Case, capture: Path, result: Result) -> dict:
        """Counts, and the header values."""
        return read(capture, self.udp_port)

    def parts(self, found: dict[str, Result]) -> dict[str, object]:
        """The conversations, and the one-way ones once more."""
        cases = [case for case in self.cases if not case.ours_more]
        return {
            "conversations": overview(HEADS, cases, found, row, "llllrrl"),
            "race": race(cases, found, self.them),
        }


HEADS = (
    "conversation | path | messages from us: sent, received | from them | lost on purpose"
    " | chunks sent again by us"
)


def row(case: Case, result: Result) -> list[str]:
    """One conversation."""
    mine, its = last(result["ours"], "result"), last(result["theirs"], "result")
    if not mine or not its:
        return [case.title, case.path, *[""] * 4]
    tally, impairments = mine["tally"], mine["impairments"]
    lost = impairments["outbound"]["lost_packets"] + impairments["inbound"]["lost_packets"]
    return [
        case.title,
        case.path,
        f"{tally['sent_packets']}, {its['distinct_packets']}",
        f"{its['sent_packets']}, {tally['distinct_packets']}",
        str(lost),
        str(mine["packets"]["sent"]["again"]),
    ]


def race(cases: Sequence[Any], found: dict[str, Result], them: str) -> str:
    """The table of one-way conversations."""
    rows = []
    for case in cases:
        result = found.get(case.name)
        if bool(case.ours) == bool(case.theirs) or not result or result["wrong"]:
            continue
        mine, its = last(result["ours"], "result"), last(result["theirs"], "result")
        hearer = its if case.ours else mine["tally"]
        way, lost = ("sent", "outbound") if case.ours else ("received", "inbound")
        seconds = hearer["receiving_us"] / 1e6
        rows.append([
            "ours" if case.ours else them,
            case.seed,
            mine["impairments"][lost]["lost_data_packets"],
            again(case, mine, way),
            f"{seconds:.1f}",
            f"{hearer['received_bytes'] * 8 / seconds / 1e6:.2f}",
            f"{hearer['longest_silence_us'] / 1e6:.2f}",
        ])  # fmt: skip
    heads = (
        "who sends | seed | data lost on purpose | retransmissions seen | time (s) | Mbit/s"
        " | longest silence (s)"
    )
    return table(heads, rows, "lrrrrrr")


def again(case: Case, mine: dict, way: str) -> int:
    """DATA chunks beyond the first of each TSN; for received ones, including lost ones."""
    if way == "sent":
        return mine["packets"]["sent"]["again"]
    arrived = chunks(mine, "received")["DATA"]
    return arrived + mine["impairments"]["inbound"]["lost_data_packets"] - case.theirs
