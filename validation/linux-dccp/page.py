"""Writes docs/validation/linux-dccp.md from results and captures alone."""

from __future__ import annotations

from pathlib import Path

import conversation
import headers
from matrix import CASES, RESETS, Case, last

HEAD = """\
# DCCP with the Linux kernel

<!-- Written by validation/linux-dccp/run.py; changes made here are lost. -->

Our DCCP endpoint, the one that simulations run, talks over raw IP (protocol 33) with the DCCP of
a Linux kernel: a stock Debian kernel under qemu, of the last series whose DCCP works. The lane
between the two is a network namespace without loss; delay, losses and reordering, where there are
any, are made on our side from a seed, in both directions. Both sides send numbered messages, of
which every byte is checked, and count what they receive; what our side sent and received is
captured, and read by tshark with every checksum checked.

As it should be means: connected with the CCIDs asked for, all messages sent, as many received as
sent less those lost on purpose, no other bytes, ended by the Reset that the RFC names and both
sides told so; no malformed packet, no wrong checksum. What the lane's tap device and the guest's
network card dropped is read from their own counters after each conversation (of the card:
`rx_dropped`, `rx_missed_errors`, `tx_dropped` and the backlog's), and is in the column
*dropped between*: so many more, and no others, may be missing; where it is 0 the count must be
exact. Where packets are late on purpose, those out of the window (RFC 4340 §7.5) need not be
delivered, and Sync and SyncAck must be seen. Where nothing is lost or late, nothing may come that
our side has no use for, but for one thing: a Reset 3 (No Connection) with which the kernel answers
a CloseReq or Close that we repeated while its own answer was under way, as happens when the machine
is busy for longer than two round trips.

{headers}

Not asserted: round-trip times, how fast either side sends, or that its window or rate is the
other's.

| | |
|---|---|
| made | {date} |
| talkspurt | commit `{commit}`{modified} |
| kernel | {kernel} ({kernel_package}) |
| qemu | {qemu} |
| tshark | {tshark} |
| rustc | {rustc} |

To have it made again (needs root; it says what to install):

```sh
sudo validation/guest/prepare --install
sudo validation/linux-dccp/run.py
```
"""

NOTES = """\
## What the kernel does its own way

Seen in these conversations and in trials of them:

* A refused connection is a Reset with code 3, No Connection; RFC 4340 §5.6 has code 7, Connection
  Refused, for it. Resets to a Request bear sequence number 0 (§8.3.1).
* Allow Short Seqnos = 0 and ECN Incapable = 1 are asked for with Mandatory: it speaks neither short
  numbers nor ECN.
* It does not confirm a Change for Send Ack Vector or Send NDP Count if it asks for the same itself;
  ours takes such a crossing Change for the answer (§6.6.6).
* It answers with one Sync in 125 ms at most, so that a client that meets an older connection of its
  own ports (§7.5.5) is heard only when the kernel next speaks by itself.
* CCID 3 feedback has Receive Rate and Loss Event Rate, no Loss Intervals (RFC 4342 §8.6) and no
  Elapsed Time, which §6 there asks for.
* CCID 3 takes the first loss interval from the throughput equation (RFC 5348 §6.3.1) and keeps that
  loss event rate until the second loss. With a round trip below a millisecond it was 1/1, and our
  sender was slowed to a packet in some seconds; the paths with losses have a delay therefore.
* It does not speak DCCP inside UDP (RFC 6773): there is no such conversation here. Ours does, and
  is tested with itself over the loopback interface (`crates/live/tests/dccp_in_udp.rs`).
"""


def write(path: Path, results: dict, captures: Path) -> None:
    """Writes the page."""
    held = results["conversations"]
    checked = headers.page(result["tshark"].get("headers", {}) for result in held)
    parts = [HEAD.format(**results["made"], headers=checked), *overview(results), NOTES]
    by_name = {result["name"]: result for result in results["conversations"]}
    parts.append("## Packet by packet\n")
    parts.append(
        "Times are since our program began, numbers since the first of the side that sent them.\n"
        "Options are in the order in which they stand, Padding left out.\n"
    )
    for case in CASES:
        capture = captures / f"{case.name}.pcapng"
        if case.shown and capture.exists() and case.name in by_name:
            lines, _ = conversation.read(capture)
            parts += [f"### {case.title}\n", *conversation.table(lines), ""]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts).rstrip() + "\n")


def overview(results: dict) -> list[str]:
    """The table of all conversations, with failures."""
    out = ["## What was held\n"]
    out += [
        "| conversation | path | messages from us: sent, received | from the kernel"
        " | dropped between | ended by | as it should be |"
    ]
    out += ["|---|---|---|---|---:|---|---|"]
    cases = {case.name: case for case in CASES}
    for result in results["conversations"]:
        out.append(overview_row(cases[result["name"]], result))
    wrong = [result for result in results["conversations"] if result["wrong"]]
    out.append("")
    for result in wrong:
        out.append(f"* {result['title']}: {'; '.join(result['wrong'])}")
    if wrong:
        out.append("")
    return out


def overview_row(case: Case, result: dict) -> str:
    """One conversation."""
    ours, kernel = last(result["ours"], "result"), last(result["kernel"], "result")
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
    verdict = "no" if result["wrong"] else "yes"
    dropped = "?" if result["dropped_between"] is None else result["dropped_between"]
    cells = [case.title, path(case), way_out, way_back, str(dropped), ended, verdict]
    return f"| {' | '.join(cells)} |"


def path(case: Case) -> str:
    """Impairments by our side in either direction."""
    parts = []
    if case.delay_ms:
        parts.append(f"{case.delay_ms} ms")
    if case.loss:
        parts.append(f"{case.loss:.0%} lost")
    if case.held:
        parts.append(f"{case.held:.0%} {case.hold_ms} ms late")
    return ", ".join(parts)


def lost(ours: dict, way: str) -> int:
    """Data packets dropped by our side on purpose."""
    return ours.get("impairments", {}).get(way, {}).get("lost_data_packets", 0)


def way(sender: dict, receiver: dict, lost: int) -> str:
    """Packets sent by one side and received by the other."""
    text = f"{sender.get('sent_packets', '?')}, {receiver.get('distinct_packets', '?')}"
    return f"{text} ({lost} lost on purpose)" if lost else text
