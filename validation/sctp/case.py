"""An SCTP conversation with another stack, and its expected results.

A `Case` defines who opens, what each side sends and how, who closes, and the impairments of the
line. `judge` compares this with the counts of both sides and of tshark.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import headers

NEVER = 0


@dataclass(frozen=True)
class Case:
    """One conversation."""

    name: str
    title: str
    opens: str = "ours"
    """The opening side: "ours" or "theirs"."""
    closes: str = "ours"
    ours: int = 400
    """Messages we send; `theirs`: those of the other side."""
    theirs: int = 400
    bytes: int = 400
    interval_ms: int = 4
    streams: int = 1
    ordered: bool = True
    lifetime_ms: int | None = None
    max_retransmissions: int | None = None
    interleaving: bool = False
    delay_ms: int = 0
    """Of the path, in either direction."""
    loss: float = 0.0
    held: float = 0.0
    hold_ms: int = 25
    seed: int = 1
    mirror: bool = False
    """The random streams of both directions are swapped."""
    version: int = 4
    limit_s: int = 60
    quiet_s: int = 5
    """Silence after which a side considers the other done: longer than repeated timeouts."""
    knobs: dict = field(default_factory=dict)
    """Additional configuration of our association."""
    words: str = ""
    """Additional arguments for their program."""
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
            "bytes": self.bytes, "streams": self.streams, "interval": f"{self.interval_ms}ms",
            "delay": f"{self.delay_ms}ms", "loss": self.loss, "held": self.held,
            "hold": f"{self.hold_ms}ms", "seed": self.seed, "quiet": f"{self.quiet_s}s",
            "limit": f"{self.limit_s}s",
        }  # fmt: skip
        out = [part for word, value in words.items() for part in (f"--{word}", str(value))]
        out += ["--closes"] if self.closes == "ours" else []
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


def last(said: list[dict], event: str) -> dict:
    """The last event of this name, or an empty one."""
    return next((one for one in reversed(said) if one.get("event") == event), {})


def judge(case: Case, ours: list[dict], theirs: list[dict], read: dict) -> list[str]:
    """Deviations from the expected result."""
    wrong: list[str] = []

    def must(holds: object, words: str) -> None:
        if not holds:
            wrong.append(words)

    mine, its = last(ours, "result"), last(theirs, "result")
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
        mishap = mine["impairments"][way]
        if case.partial:
            # Only messages that were lost, late, or waited for a T3-rtx timeout may be abandoned.
            least = sent - mishap["lost_data_packets"] - mishap["held_packets"]
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
