#!/usr/bin/env python3
"""Holds conversations over DCCP with a Linux 6.1 kernel in qemu, raw IP protocol 33.

sudo validation/guest/prepare --install        # once: tools, kernel, initramfs
sudo validation/linux-dccp/run.py [NAME...]
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "guest")]

import conversation  # noqa: E402
import harness  # noqa: E402
import headers  # noqa: E402
from guest import GUEST, HOST  # noqa: E402
from harness import Result, address, last, overview  # noqa: E402
from matrix import CASES, RESETS, Case, judge  # noqa: E402
from peer import GuestPeer  # noqa: E402
from tables import table  # noqa: E402

HEADS = (
    "conversation | path | messages from us: sent, received | from the kernel | dropped between"
    " | ended by"
)


class Dccp(GuestPeer):
    """The kernel's DCCP."""

    name, protocol, cases = "linux-dccp", "dccp", CASES
    sysctl = "dccp/default"
    judge = staticmethod(judge)

    def our_words(self, case: Case, number: int) -> list[str]:
        """With a seed for each conversation."""
        port = 5001 + number
        words = ["--local", address(HOST[case.version], port), "--seed", str(port)]
        if case.opens == "ours":
            words += ["--remote", address(GUEST[case.version], port)]
        return [*words, *case.our_words()]

    def their_words(self, case: Case, number: int) -> str:
        """Nothing if nobody is to listen."""
        role, at = ("server", GUEST) if case.opens == "ours" else ("client", HOST)
        words = f"dccp-peer {case.their_words()} {role} {at[case.version]} {5001 + number}"
        return words if case.listens else ""

    def dissect(self, case: Case, capture: Path, result: Result) -> dict:
        """Also the trace of those that the page shows."""
        lines, malformed = conversation.read(capture)
        if case.shown:
            result["trace"] = conversation.trace(lines)
        bad = sum(not line.checksum_good for line in lines)
        counts = {"packets": len(lines), "malformed": malformed, "bad_checksums": bad}
        return {**counts, "headers": headers.dccp(lines)}

    def parts(self, found: dict[str, Result]) -> dict[str, object]:
        """The conversations, and the packets of some."""
        traces = [
            f"### {case.title}\n\n{table(conversation.HEADS, trace, conversation.ALIGN)}"
            for case in CASES
            if (trace := found.get(case.name, {}).get("trace"))
        ]
        conversations = overview(HEADS, CASES, found, row, "llllrll")
        return {"conversations": conversations, "traces": "\n\n".join(traces)}


def row(case: Case, result: Result) -> list[str]:
    """One conversation."""
    ours, kernel = last(result["ours"], "result"), last(result["theirs"], "result")
    tally = ours.get("tally", {})
    way_out = way_back = ""
    if case.connects:
        way_out = way(tally, kernel, lost(ours, "outbound"))
        way_back = way(kernel, tally, lost(ours, "inbound"))
    resets = ours.get("packets", {}).get("resets", [])
    ended = ", ".join(
        f"{'our' if reset['sent'] else 'its'} Reset {reset['code']}"
        + (f" ({RESETS[reset['code']]})" if reset["code"] in RESETS else "")
        for reset in resets[:1]
    )
    dropped = result.get("dropped_between", "?")
    return [case.title, case.path, way_out, way_back, str(dropped), ended]


def lost(ours: dict, way: str) -> int:
    """Data packets dropped by our side on purpose."""
    return ours.get("impairments", {}).get(way, {}).get("lost_data_packets", 0)


def way(sender: dict, receiver: dict, lost: int) -> str:
    """Packets sent by one side and received by the other."""
    text = f"{sender.get('sent_packets', '?')}, {receiver.get('distinct_packets', '?')}"
    return f"{text} ({lost} lost on purpose)" if lost else text


if __name__ == "__main__":
    sys.exit(harness.main(Dccp()))
