"""The conversations with the kernel, and their expected results.

A `Case` defines who opens, the congestion control, what is sent, who closes, the impairments of the
line, and the expected end. `judge` compares this with the counts of both sides.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import harness
import headers
from harness import Wrong, last

SERVICE = 42

# RFC 4340 §5.6
RESETS = {1: "Closed", 2: "Aborted", 3: "No Connection", 5: "Option Error", 8: "Bad Service Code"}


@dataclass(frozen=True)
class Case(harness.Case):
    """One conversation."""

    bytes: int = 160
    interval_ms: int = 10
    ours_sends: int = 2
    """CCID of our sender; `kernel_sends` is that of the other direction. `closes` is "nobody" if no
    connection is established."""
    kernel_sends: int = 2
    packets: int = 100
    listens: bool = True
    """Whether the listening side is running at all."""
    reset: tuple[str, int] | None = None
    """The side that sends the final Reset, and its code; by default the server answers a Close with
    Closed, be it the client's own or asked for by CloseReq (RFC 4340 §8.3)."""
    shown: bool = False
    """Whether the page shows it packet by packet."""
    late: bool = False
    """Whether packets are late enough to fall out of a window and be answered by Sync."""

    @property
    def connects(self) -> bool:
        """Whether a connection is established."""
        return self.closes != "nobody"

    def our_words(self) -> list[str]:
        """Arguments of our program for our end."""
        opener, answerer = self.ours_sends, self.kernel_sends
        if self.opens == "theirs":
            opener, answerer = answerer, opener
        knobs = {"ccid": opener, "ccid_back": answerer, "service": SERVICE, **self.knobs}
        words = ["--dccp", json.dumps(knobs), "--packets", str(self.packets), *self.line_words()]
        return words if self.connects else [*words, "--limit", "8s"]

    def their_words(self) -> str:
        """Arguments of the kernel's program, except role and address."""
        words = f"-S {self.kernel_sends} -R {self.ours_sends}"
        words += f" -v {SERVICE} -n {self.packets} -l {self.bytes} -g {self.interval_ms * 1000}"
        if self.closes == "theirs":
            words += " -k"
        if not self.connects:
            # Otherwise it would wait for another client.
            words += " -d 1500"
        return f"{words} {self.words}".strip()


def both(ccid: int) -> dict:
    """The same CCID in both directions."""
    return {"ours_sends": ccid, "kernel_sends": ccid}


OPENS = {"client": "ours", "server": "theirs"}
"""Who opens, by our role."""
OTHER = {"ours": "theirs", "theirs": "ours"}
SERVER = {"opens": "theirs", "closes": "theirs"}
MIXED = {"ours_sends": 3, "kernel_sends": 2}
UNHEARD = {"closes": "nobody", "shown": True}
BAD = {"packets": 400, "interval_ms": 8, "delay_ms": 20, "loss": 0.01, "held": 0.02}
BULK = {"packets": 1000, "interval_ms": 0, "bytes": 1200, "delay_ms": 10, "loss": 0.01}
LATE = {"packets": 400, "interval_ms": 4, "delay_ms": 5, "held": 0.01, "hold_ms": 150, "late": True}


def each(what: str, title: str, roles: tuple[str, ...] = tuple(OPENS), **more: Any) -> list[Case]:
    """The same in each of our roles and with each CCID."""
    ours = [(role, OPENS[role], ccid) for role in roles for ccid in (2, 3)]
    return [
        Case(
            f"{role}-ccid{ccid}{what}",
            f"We are the {role}, CCID {ccid}{title}",
            **{"opens": opens, "closes": opens, **both(ccid), **more},
        )
        for role, opens, ccid in ours
    ]


CASES = [
    *each("", "; the client closes", shown=True),
    *(
        replace(case, closes=OTHER[case.opens], shown=case.ours_sends == 2)
        for case in each("-server-closes", "; the server closes, by CloseReq")
    ),
    Case(
        "client-server-timewait",
        "We are the client, CCID 2; the server closes by Close and holds TIMEWAIT",
        closes="theirs",
        words="-w",
        reset=("ours", 1),
    ),
    Case(
        "server-timewait",
        "We are the server, CCID 2; we close by Close and hold TIMEWAIT",
        opens="theirs",
        closes="ours",
        knobs={"server_timewait": True},
        reset=("theirs", 1),
    ),
    Case(
        "client-mixed",
        "We are the client and send with CCID 3; the kernel sends with CCID 2",
        **MIXED,
    ),
    Case(
        "server-mixed",
        "We are the server and send with CCID 3; the kernel sends with CCID 2",
        **SERVER,
        **MIXED,
    ),
    *each("-bad-network", ", with losses and reordering", **BAD),
    *each("-bulk", ", both sides send as fast as they may, with losses", ("client",), **BULK),
    Case(
        "client-ccid2-late",
        "We are the client, CCID 2; packets come so late that they are out of the window",
        **LATE,
    ),
    Case(
        "client-linux-profile",
        "We are the client with the profile `linux`, CCID 3",
        knobs={"profile": "linux"},
        **both(3),
    ),
    Case("client-ipv6", "We are the client, over IPv6, CCID 2", version=6),
    Case("server-ipv6", "We are the server, over IPv6, CCID 3", version=6, **SERVER, **both(3)),
    Case(
        "ccid-disagreement",
        "We ask for CCID 2 and accept no other; the kernel accepts CCID 3 only",
        words="-S 3 -R 3",
        reset=("theirs", 5),
        **UNHEARD,
    ),
    Case(
        "service-disagreement",
        "We ask for service 42; the kernel serves 43",
        words="-v 43",
        reset=("theirs", 8),
        **UNHEARD,
    ),
    Case(
        "service-disagreement-here",
        "The kernel asks for service 43; we serve 42",
        opens="theirs",
        words="-v 43",
        reset=("ours", 8),
        **UNHEARD,
    ),
    # Linux sends No Connection (3); RFC 4340 §8.1.3 suggests Connection Refused (7).
    Case(
        "refused",
        "Nobody listens at the kernel's port",
        listens=False,
        reset=("theirs", 3),
        **UNHEARD,
    ),
]


def crossed(packets: dict) -> int:
    """Resets of the kernel that may arrive after our connection has ended.

    A CloseReq or Close is repeated after two round trips (RFC 4340 §8.3). If the kernel's answer
    crosses the repetition, the kernel has no connection when that arrives, and sends a Reset.
    """
    repeated = sum(max(packets["sent"].get(kind, 0) - 1, 0) for kind in ("CloseReq", "Close"))
    forgotten = [reset for reset in packets["resets"] if not reset["sent"] and reset["code"] == 3]
    return min(repeated, len(forgotten))


def judge(case: Case, said: dict) -> list[str]:
    """Deviations from the expected result."""
    ours, kernel, dissected = said["ours"], said["theirs"], said["tshark"]
    wrong = Wrong()
    must = wrong.must
    result = last(ours, "result")
    if not result:
        return ["our side says nothing"]
    tally, packets = result["tally"], result["packets"]
    # A server that refuses one client waits for the next.
    must(tally["gave_up"] == (case.opens == "theirs" and not case.connects), "our side gave up")
    errors = packets["rx_error"]
    only_crossed = set(errors) <= {"Unexpected"} and sum(errors.values()) <= crossed(packets)
    must(only_crossed or case.loss > 0 or case.late, f"errors: {errors}")
    must(dissected["bad_checksums"] == 0, "tshark finds wrong checksums")
    must(dissected["malformed"] == 0, "tshark finds malformed packets")
    must(result["unsent_packets"] == 0, "packets that were not sent")
    wrong.extend(headers.wrong(dissected["headers"]))
    who, code = case.reset or ("theirs" if case.opens == "ours" else "ours", 1)
    seen = [(reset["sent"], reset["code"]) for reset in packets["resets"]]
    must((who == "ours", code) in seen, f"Reset {code} by {who} expected, seen: {seen}")
    if not case.connects:
        must("Connected" not in tally["events"], "a connection came about")
        must(not last(kernel, "connected"), "the kernel says it is connected")
        return wrong
    told = ["PeerClosed"] if case.closes == "theirs" else []
    must(tally["events"] == ["Connected", *told, "Closed"], f"our events are {tally['events']}")
    connected = last(kernel, "connected")
    ccids = (connected.get("receiving_ccid"), connected.get("sending_ccid"))
    must(ccids == (case.ours_sends, case.kernel_sends), f"the kernel's CCIDs are {ccids}")
    theirs = last(kernel, "result")
    if not theirs:
        return [*wrong, "the kernel's side says nothing"]
    ended_by = "self" if case.closes == "theirs" else "peer"
    must(theirs["ended_by"] == ended_by, f"the kernel was closed by {theirs['ended_by']}")
    lost = {way: result["impairments"][way]["lost_data_packets"] for way in ("inbound", "outbound")}
    held = sum(result["impairments"][way]["held_packets"] for way in ("inbound", "outbound"))
    if case.late:
        must(packets["received"].get("Sync", 0) > 0, "the kernel sent no Sync")
        must(packets["sent"].get("SyncAck", 0) > 0, "we sent no SyncAck")
    # A packet held so long that its number is before our window is rejected (RFC 4340 §7.5.3).
    refused = min(held, errors.get("OutOfWindow", 0))
    for side, sender, receiver, gone, late in (
        ("kernel", tally, theirs, lost["outbound"], 0),
        ("our side", theirs, tally, lost["inbound"], refused),
    ):
        must(sender["sent_packets"] == case.packets, f"{sender['sent_packets']} sent to {side}")
        must(sender["sent_bytes"] == case.packets * case.bytes, f"bytes sent to {side}")
        arrived = receiver["distinct_packets"]
        # Packets dropped in between may have been data or not: exact if there were none.
        least = case.packets - gone - said["dropped_between"] - max(late, held if case.late else 0)
        must(least <= arrived <= case.packets - gone, f"{arrived} reached {side}, {gone} were lost")
        must(receiver["received_bytes"] == arrived * case.bytes, f"bytes received by {side}")
        must(receiver["foreign_packets"] == 0, f"{side} received what was not sent")
    return wrong
