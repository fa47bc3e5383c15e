#!/usr/bin/env python3
"""Holds conversations over SCTP with a Linux 6.1 kernel in qemu, raw IP protocol 132.

sudo validation/guest/prepare --install        # once: tools, kernel, initramfs
sudo validation/linux-sctp/run.py [NAME...]
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / folder) for folder in ("", "guest", "sctp")]

import harness  # noqa: E402
from conversations import BAD, ROLES, Case, Sctp, abandoned, bulk, opened, streams  # noqa: E402
from guest import GUEST, HOST, further  # noqa: E402
from harness import Result, address, last, overview  # noqa: E402
from peer import GuestPeer  # noqa: E402

CASES = [
    *opened(),
    Case("ipv6", "Over IPv6", version=6, **BAD),
    *streams(),
    *(
        Case(f"{role}-interleaved", f"We are the {role}; I-DATA of one chunk, four streams in turn",
             opens=opens, closes=opens, streams=4, bytes=1200, interleaving=True, **BAD)
        for role, opens in ROLES
    ),
    *abandoned(),
    *bulk("the kernel", 300),
]  # fmt: skip

CUT_S = 4
"""Cut of the first path, since the start of our program; the transfer takes some seconds more."""
CUT = "A path fails; "
CARDS = 2


def failing(name: str, settings: str, ours: int, theirs: int, **more: object) -> Case:
    """A conversation with a message every 5 ms in one direction, whose first path is cut for ever.

    `settings` are the sender's parameters, as text.
    """
    return Case(
        name, CUT + settings, closes="theirs" if ours else "ours", ours=ours, theirs=theirs,
        bytes=400, interval_ms=5, delay_ms=10, quiet_s=90,
        ours_more=("--cut", f"0@{CUT_S}s..10min"), **more,
    )  # fmt: skip


QUICK = {"rto_min": "100ms", "rto_initial": "300ms", "path_max_retrans": 2}
QUICK_WORDS = "RTO.Min 100 ms, Path.Max.Retrans 2"
LONG, SHORT = 20_000, 4_000

FAILOVERS = [
    failing("failover-ours", "RFC 9260's defaults", LONG, 0, limit_s=240),
    failing("failover-theirs", "the kernel's defaults", 0, LONG, limit_s=240),
    failing("failover-ours-quick", QUICK_WORDS, SHORT, 0, knobs=QUICK),
    failing("failover-theirs-quick", QUICK_WORDS, 0, SHORT, words="-r 100 -p 2", knobs=QUICK),
    failing("failover-ours-pf", f"{QUICK_WORDS}, potentially failed after the first timeout",
            SHORT, 0, knobs={**QUICK, "potentially_failed": 0}),
]  # fmt: skip
HEADS = (
    "who sends | settings | messages sent | received | longest silence (s)"
    " | path given up by the kernel after (s)"
)


class LinuxSctp(Sctp, GuestPeer):
    """The kernel's SCTP, with two networks."""

    name, cases, them = "linux-sctp", [*CASES, *FAILOVERS], "the kernel"
    sysctl = "sctp"
    cards = CARDS
    # RFC 8260 in 6.1: off by default.
    setup = "echo 1 > /proc/sys/net/sctp/intl_enable"

    def our_words(self, case: Case, number: int) -> list[str]:
        """The opening side uses the next port; the first path is one of several if it is cut."""
        port, there = 5001 + 2 * number, GUEST[case.version]
        words = ["--local", address(HOST[case.version], port + (case.opens == "ours"))]
        words += ["--remote", address(there, port)] if case.opens == "ours" else []
        paths = ["=".join(further(card)) for card in range(1, CARDS)] if case in FAILOVERS else []
        return [*case.our_words(), *words, *(part for path in paths for part in ("--path", path))]

    def their_words(self, case: Case, number: int) -> str:
        """A server binds to the address of its role besides these."""
        is_server, there = case.opens == "ours", GUEST[case.version]
        bound = [] if is_server else [there]
        bound += [further(card)[1] for card in range(1, CARDS)] if case in FAILOVERS else []
        role = f"server {there}" if is_server else f"client {HOST[case.version]}"
        more = " ".join(["", *(f"-a {address}" for address in bound)])
        return f"sctp-peer {' '.join(case.their_words())}{more} {role} {5001 + 2 * number}"

    def judge(self, case: Case, result: Result) -> list[str]:
        """Also whether the other path was used."""
        wrong = super().judge(case, result)
        return [*wrong, *failover(case, result)] if case in FAILOVERS else wrong

    def parts(self, found: dict[str, Result]) -> dict[str, object]:
        """Also those whose path fails."""
        failovers = overview(HEADS, FAILOVERS, found, failover_row, "llrrrll")
        return {**super().parts(found), "failovers": failovers}


def failover(case: Case, result: Result) -> list[str]:
    """Deviations from the expected failover."""
    wrong = harness.Wrong()
    mine = last(result["ours"], "result")
    data = mine["packets"]["sent" if case.ours else "received"]["data"]
    both = all(data.get(path, 0) >= 10 for path in ("0", "1"))
    wrong.must(both, f"data did not go on both paths: {data}")
    lost = mine["impairments"]["outbound" if case.ours else "inbound"]["lost_packets"]
    wrong.must(lost, "nothing was lost by the cut")
    wrong.must(case.ours or given_up(result["theirs"]), "the kernel did not give up the path")
    return wrong


def given_up(theirs: list[dict]) -> list[float]:
    """When the kernel reported a path as unreachable, in seconds since it was connected."""
    return [
        one["us"] / 1e6
        for one in theirs
        if one.get("event") == "path" and one["state"] == "unreachable"
    ]


def failover_row(case: Case, result: Result) -> list[str]:
    """A conversation over two paths."""
    settings = case.title.removeprefix(CUT)
    mine, its = last(result["ours"], "result"), last(result["theirs"], "result")
    if not mine or not its:
        return ["", settings, *[""] * 4]
    hearer = its if case.ours else mine["tally"]
    gone = given_up(result["theirs"])
    return [
        "ours" if case.ours else "the kernel",
        settings,
        str(case.ours or case.theirs),
        str(hearer["distinct_packets"]),
        f"{hearer['longest_silence_us'] / 1e6:.2f}",
        f"{gone[0] - CUT_S:.1f}" if gone else "–",
    ]


if __name__ == "__main__":
    sys.exit(harness.main(LinuxSctp()))
