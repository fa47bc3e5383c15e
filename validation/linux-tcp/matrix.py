"""The conversations with the kernel, and their expected results.

A `Case` defines who opens, who sends, the congestion control, and the impairments of the path.
`judge` compares this with the counts of both sides and tshark.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import headers
from harness import Wrong

MEGABYTE = 1_000_000
PORT = 5001
# linux/tcp.h, tcpi_options
TIMESTAMPS, SACK, WINDOW_SCALE, ECN, ECN_SEEN = 1, 2, 4, 8, 16


@dataclass(frozen=True)
class Way:
    """Impairments by our side of the path, in either direction."""

    title: str
    rate: str = "100Mbit/s"
    queue: str = "100ms"
    delay: str = "10ms"
    loss: float = 0.0
    held: float = 0.0
    hold: str = "8ms"
    copied: float = 0.0
    marked: float = 0.0

    def words(self) -> list[str]:
        """The arguments for our program."""
        words = ["--queue", self.queue, "--delay", self.delay, "--hold", self.hold]
        words += ["--rate", self.rate] if self.rate else []
        for name in ("loss", "held", "copied", "marked"):
            words += [f"--{name}", str(getattr(self, name))]
        return words


BARE = Way("nothing in between", rate="", delay="0ms")
DELAY = Way("20 ms", queue="1s")
NARROW = Way("20 ms, a queue of 10 ms", queue="10ms")
LOSS = Way("20 ms, 1 % lost", loss=0.01)
DISORDER = Way("20 ms, 2 % 8 ms late", queue="1s", held=0.02)
COPIES = Way("20 ms, 2 % twice", queue="1s", copied=0.02)
BAD = Way("10 ms, 0.5 % lost, 1 % 8 ms late, 1 % twice", delay="5ms", loss=0.005, held=0.01,
          copied=0.01)  # fmt: skip
MARKS = Way("20 ms, 0.3 % marked", queue="1s", marked=0.003)


@dataclass(frozen=True)
class Case:
    """One conversation."""

    name: str
    title: str
    way: Way
    sends: str = "both"
    """The sending side: "ours", "theirs" or "both"."""
    controller: str = "cubic"
    kernel: str = "cubic"
    """The kernel's congestion control."""
    opens: str = "ours"
    """The opening side: "ours" or "theirs"."""
    version: int = 4
    megabytes: int = 50
    knobs: dict = field(default_factory=dict)
    """Additional configuration of our connection."""
    sysctl: dict = field(default_factory=dict)
    """The kernel's settings under net.ipv4."""
    slow: bool = False
    """Whether the kernel's program pauses until its buffer is full."""
    seed: int = 1
    mirrored: bool = False

    @property
    def bytes(self) -> tuple[int, int]:
        """Bytes sent by us, and by the kernel."""
        whole = self.megabytes * MEGABYTE
        return (whole if self.sends != "theirs" else 0, whole if self.sends != "ours" else 0)

    def ours(self) -> str:
        """Configuration of our end."""
        mss = "1460B" if self.version == 4 else "1440B"
        # Same as Linux, so that both ends have equal timeouts.
        return json.dumps(
            {"controller": self.controller, "mss": mss, "min_rto": "200ms", **self.knobs}
        )

    @property
    def options(self) -> int:
        """Expected negotiated options as tcpi_options bits, without ECN_SEEN."""
        sack = self.controller in ("sack", "cubic", "bbr")
        bits = SACK if sack and self.sysctl.get("tcp_sack", 1) else 0
        bits |= TIMESTAMPS if self.knobs.get("timestamps", True) else 0
        bits |= WINDOW_SCALE if self.knobs.get("window_scaling", True) else 0
        return bits | (ECN if self.knobs.get("ecn") else 0)


THEIRS = {"sack": "reno", "cubic": "cubic", "bbr": "bbr"}
"""The kernel's congestion control paired with ours; its BBR is version 1."""
WHO = {"ours": "we send", "theirs": "the kernel sends", "both": "both send"}
SHORT = {"ours": "out", "theirs": "in", "both": "both"}


def grid() -> list[Case]:
    """Sender × path, for three controllers; the opening side alternates between rows."""
    ways = {"delay": DELAY, "narrow": NARROW, "loss": LOSS, "disorder": DISORDER,
            "copies": COPIES, "bad": BAD}  # fmt: skip
    cases = []
    for controller, kernel in THEIRS.items():
        for place, (name, way) in enumerate(ways.items()):
            for turn, sends in enumerate(("ours", "theirs", "both")):
                opens = "ours" if (place + turn) % 2 == 0 else "theirs"
                title = f"{controller} (kernel {kernel}), {WHO[sends]}"
                cases.append(Case(f"{controller}-{name}-{SHORT[sends]}", title, way, sends,
                                  controller, kernel, opens))  # fmt: skip
    return cases


def others() -> list[Case]:
    """Cases outside the grid: versions, options, other controllers, no impairments."""
    ecn = {"knobs": {"ecn": True}, "sysctl": {"tcp_ecn": 1}}
    return [
        Case("bare-out", "cubic, as fast as it goes, we send", BARE, "ours"),
        Case("bare-in", "cubic, as fast as it goes, the kernel sends", BARE, "theirs"),
        Case("bare-both", "cubic, as fast as it goes, both send", BARE, opens="theirs"),
        Case("v6-delay-both", "cubic over IPv6", DELAY, version=6),
        Case("v6-bad-both", "cubic over IPv6, the kernel opens", BAD, version=6, opens="theirs"),
        Case("v6-sack-bad-both", "sack (kernel reno) over IPv6", BAD, controller="sack",
             kernel="reno", version=6),
        Case("ecn-out", "cubic with ECN, we send", MARKS, "ours", **ecn),
        Case("ecn-in", "cubic with ECN, the kernel sends and opens", MARKS, "theirs",
             opens="theirs", **ecn),
        Case("ecn-v6-both", "sack with ECN over IPv6, both send", MARKS, controller="sack",
             kernel="reno", version=6, **ecn),
        Case("newreno-bad-both", "newreno without SACK (kernel reno)", BAD, controller="newreno",
             kernel="reno", megabytes=20),
        Case("nosack-kernel", "cubic; the kernel refuses SACK", BAD, kernel="cubic",
             sysctl={"tcp_sack": 0}, opens="theirs", megabytes=20),
        Case("no-timestamps", "sack without timestamps: four blocks in an option", NARROW,
             controller="sack", kernel="reno", knobs={"timestamps": False}),
        Case("no-options", "newreno without timestamps, window scale and SACK", BAD,
             controller="newreno", kernel="reno", megabytes=10,
             knobs={"timestamps": False, "window_scaling": False}),
        Case("slow-reader", "the kernel's program pauses until its window is closed", DELAY,
             "ours", opens="theirs", slow=True),
        Case("bbr-kernel", "cubic; the kernel sends with BBR", BAD, "theirs", kernel="bbr"),
    ]  # fmt: skip


# Comparisons of goodput over the same path with the same random losses.
RACES = [
    (name, way, controller, kernel)
    for controller, kernel in THEIRS.items()
    for name, way in (("narrow", NARROW), ("loss", LOSS), ("bad", BAD))
]
SEEDS = range(11, 16)


def races() -> list[Case]:
    """Each sender alone, ours and the kernel's, over the same path and seed."""
    return [
        Case(f"race-{name}-{controller}-{seed}-{SHORT[sends]}", WHO[sends], way, sends, controller,
             kernel, megabytes=10, seed=seed, mirrored=sends == "theirs")
        for name, way, controller, kernel in RACES
        for seed in SEEDS
        for sends in ("ours", "theirs")
    ]  # fmt: skip


CASES = [*grid(), *others()]
ALL = [*CASES, *races()]
"""Also those that the page compares with one another."""


def judge(case: Case, result: dict) -> list[str]:
    """Deviations from the expected result."""
    wrong = Wrong()
    must = wrong.must
    ours, kernel, shark = result["ours"], result["theirs"], result["tshark"]
    if not ours:
        return ["our side says nothing"]
    record, segments = ours["record"], ours["segments"]
    sent, received, errors = segments["sent"], segments["received"], segments["rx_error"]
    for name, digests in result["digests"].items():
        must(digests["sent"] == digests["received"], f"{name}: the bytes are others")
    out, back = case.bytes
    must((record["sent_bytes"], record["received_bytes"]) == (out, back), "numbers of bytes")
    names = sorted(name for name, _ in record["events"])
    must(names == ["Closed", "Connected", "PeerClosed"], f"our events are {names}")
    must(not record["gave_up"], "our side gave up")
    must(kernel["end"] == "closed", f"the kernel's side: {kernel['end']}")
    must(ours["unsent_packets"] == 0, "packets that could not be sent")
    must(not {"Malformed", "Checksum"} & set(errors), f"errors: {errors}")
    must(not shark["items"], f"tshark: {shark['items']}")
    must(shark["bad_checksums"] == 0, "tshark finds wrong checksums")
    for way, count in (("sent", sent), ("received", received)):
        for name in ("segments", "data_segments", "data_bytes", "sack_blocks"):
            theirs = shark[way].get(name, 0)
            must(count[name] == theirs, f"{name} {way}: {count[name]}, tshark says {theirs}")
    wrong.extend(headers.wrong(shark.get("headers", {})))
    counters = kernel["counters"]
    for name in (
        "InCsumErrors",
        "EstabResets",
        "AttemptFails",
        "TCPAbortOnData",
        "TCPAbortOnTimeout",
        "TCPSACKReneging",
    ):
        must(counters.get(name, 0) == 0, f"the kernel counts {name} {counters.get(name)}")
    # Blocks it discards are the D-SACKs that it calls dubious.
    discarded, dubious = (counters.get(f"TCP{name}", 0) for name in
                          ("SACKDiscard", "DSACKIgnoredDubious"))  # fmt: skip
    must(discarded <= dubious, f"the kernel discards {discarded} blocks, {dubious} dubious")
    # A late packet to a closed endpoint is answered by a reset (RFC 9293 §3.10.7.1).
    must(shark["early_resets"] == 0, "a reset before both have closed")
    agreed = kernel["info"]["options"] & ~ECN_SEEN & 31
    must(agreed == case.options, f"options agreed on: {agreed}, not {case.options}")
    _judge_of_case(case, result, must)
    return wrong


def _judge_of_case(case: Case, result: dict, must: Callable[[bool, str], None]) -> None:
    """What its way of losing, copying and marking packets must have led to."""
    ours, kernel = result["ours"]["segments"], result["theirs"]
    sent, received = ours["sent"], ours["received"]
    counters = kernel["counters"]
    out, back = case.bytes
    # Nothing exceeds the negotiated size.
    options = 12 if case.options & TIMESTAMPS else 0
    full = (1460 if case.version == 4 else 1440) - options
    must(max(sent["longest_payload_bytes"], received["longest_payload_bytes"]) == full,
         "longest payload")  # fmt: skip
    sack = bool(case.options & SACK)
    if case.way.loss and out:
        must(sent["again_segments"] > 0, "we sent nothing again")
        must(not sack or received["with_sack"] > 0, "no SACK came")
    if case.way.loss and back:
        must(kernel["info"]["total_retrans"] > 0, "the kernel sent nothing again")
        must(not sack or sent["with_sack"] > 0, "we sent no SACK")
    if not sack:
        must(sent["with_sack"] + received["with_sack"] == 0, "SACK without agreement")
    if case.way.copied and sack and out:
        must(received["d_sacks"] > 0, "no D-SACK came")
    if case.way.copied and sack and back:
        must(counters.get("TCPDSACKRecv", 0) > 0, "the kernel counts no D-SACK of ours")
    if case.name == "no-timestamps":
        # The kernel's number of blocks depends on which of our packets the queue lost.
        must(sent["most_blocks"] == 4, f"most blocks in an option: {sent['most_blocks']}")
    if case.way.marked:
        if out:
            must(bool(kernel["info"]["options"] & ECN_SEEN), "the kernel saw no ECT")
            must(received["ece"] > 0 and sent["cwr"] > 0, "marks of ours: no ECE, or no CWR")
        if back:
            must(received["ce"] > 0 and sent["ece"] > 0 and received["cwr"] > 0,
                 "marks of the kernel's: no CE, no ECE or no CWR")  # fmt: skip
    if case.slow:
        must(received["closed_windows"] > 0, "the window never closed")
