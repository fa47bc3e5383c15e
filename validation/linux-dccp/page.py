"""Writes docs/validation/linux-dccp.md from results and captures alone."""

from __future__ import annotations

from pathlib import Path

import conversation
import headers
from matrix import CASES, RESETS, Case, last

HEAD = """\
# DCCP with the Linux kernel

<!-- Written by validation/linux-dccp/run.py; changes made here are lost. -->

Our DCCP endpoint, the one used in simulations, communicates over raw IP (protocol 33) with the DCCP
of a Linux kernel: a stock Debian kernel under qemu, from the last series with working DCCP. Both
are connected by a network namespace without loss; our side adds delay, losses and reordering from a
seed, in both directions. Both sides send numbered messages, check every byte and count what they
receive; the packets of our side are captured, and read by tshark with all checksum checks enabled.

A conversation passes if it connected with the requested CCIDs, all messages were sent and, except
for intentional losses, received without other bytes, it ended with the Reset that the RFC
specifies and both sides reported this, and no packet was malformed or had a wrong checksum. Drops
of the tap device and the guest's network card are read from their counters after each conversation
(of the card: `rx_dropped`, `rx_missed_errors`, `tx_dropped` and the backlog's) and are in the
column *dropped between*: at most as many further messages may be missing. Packets that are
intentionally late and out of the window (RFC 4340 §7.5) need not be delivered, and Sync and SyncAck
must be seen. Without losses or delays, our side must not reject any packet except a Reset 3 (No
Connection), with which the kernel answers a CloseReq or Close that we repeated while its own answer
was in flight, as happens when the machine is busy for longer than two round trips.

{headers}

Not asserted: round-trip times, sending speed, or that windows and rates of both sides are equal.

| | |
|---|---|
| made | {date} |
| talkspurt | commit `{commit}`{modified} |
| kernel | {kernel} ({kernel_package}) |
| qemu | {qemu} |
| tshark | {tshark} |
| rustc | {rustc} |

To reproduce (needs root; prints what to install):

```sh
sudo validation/guest/prepare --install
sudo validation/linux-dccp/run.py
```
"""

NOTES = """\
## Deviations of the kernel

Observed in these conversations and in trial runs:

* A refused connection is answered by a Reset with code 3, No Connection, where RFC 4340 §5.6
  specifies code 7, Connection Refused. Resets to a Request have sequence number 0 (§8.3.1).
* It requests Allow Short Seqnos = 0 and ECN Incapable = 1 with Mandatory: it supports neither short
  sequence numbers nor ECN.
* It does not confirm a Change for Send Ack Vector or Send NDP Count if it requests the same itself;
  our endpoint accepts such a crossing Change as the answer (§6.6.6).
* It sends at most one Sync per 125 ms, so that a client whose ports have an older connection
  (§7.5.5) gets no answer until the kernel next sends of its own accord.
* CCID 3 feedback has Receive Rate and Loss Event Rate, but no Loss Intervals (RFC 4342 §8.6) and no
  Elapsed Time, which RFC 4342 §6 requires.
* CCID 3 derives the first loss interval from the throughput equation (RFC 5348 §6.3.1) and keeps
  that loss event rate until the second loss. With a round trip below a millisecond it was 1/1, and
  our sender was slowed to one packet in several seconds; therefore paths with losses have a delay.
* It does not support DCCP inside UDP (RFC 6773), so there is no such conversation here. Ours does,
  and is tested against itself over the loopback interface (`crates/live/tests/dccp_in_udp.rs`).
"""


def write(path: Path, results: dict, captures: Path) -> None:
    """Writes the page."""
    held = results["conversations"]
    checked = headers.page(result["tshark"].get("headers", {}) for result in held)
    parts = [HEAD.format(**results["made"], headers=checked), *overview(results), NOTES]
    by_name = {result["name"]: result for result in results["conversations"]}
    parts.append("## Packet traces\n")
    parts.append(
        "Times are relative to the start of our program, numbers to the sender's first.\n"
        "Options are in packet order, without Padding.\n"
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
    out = ["## Conversations\n"]
    out += [
        "| conversation | path | messages from us: sent, received | from the kernel"
        " | dropped between | ended by | passed |"
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
