"""The conversations with the kernel, those with a failing path, and the page's text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from case import Case, last

BAD = {"delay_ms": 10, "loss": 0.02, "held": 0.02}
# Slightly more than 50 MB, in messages that fill a packet.
BULK = {"bytes": 1400, "interval_ms": 0, "delay_ms": 5, "loss": 0.02, "held": 0.01, "hold_ms": 4,
        "limit_s": 300, "quiet_s": 60}  # fmt: skip
MESSAGES = 35_715
ROLES = (("client", "ours"), ("server", "theirs"))

CASES = [
    *(
        Case(f"{role}-plain", f"We are the {role}; the client closes", opens=opens, closes=opens)
        for role, opens in ROLES
    ),
    *(
        Case(
            f"{role}-server-closes",
            f"We are the {role}; the server closes",
            opens=opens,
            closes="theirs" if opens == "ours" else "ours",
        )
        for role, opens in ROLES
    ),
    Case("ipv6", "Over IPv6", version=6, **BAD),
    *(
        Case(f"{role}-streams", f"We are the {role}; four streams, ordered", opens=opens,
             closes=opens, streams=4, **BAD)
        for role, opens in ROLES
    ),
    Case("unordered", "Four streams, unordered", streams=4, ordered=False, **BAD),
    Case("fragments", "Messages of six chunks, on two streams", streams=2, bytes=8000,
         closes="theirs", **BAD),
    *(
        Case(f"{role}-interleaved", f"We are the {role}; I-DATA of one chunk, four streams in turn",
             opens=opens, closes=opens, streams=4, bytes=1200, interleaving=True, **BAD)
        for role, opens in ROLES
    ),
    Case("timed", "Given up 60 ms after it was handed over", lifetime_ms=60, streams=2, **BAD),
    Case("never-again", "Given up rather than sent again", opens="theirs", max_retransmissions=0,
         closes="theirs", streams=2, **BAD),
    *(
        Case(f"{role}-bulk-{sender}", f"We are the {role}; 50 MB from {whose}", opens=opens,
             closes="theirs" if sender == "ours" else "ours",
             ours=MESSAGES if sender == "ours" else 0,
             theirs=MESSAGES if sender == "theirs" else 0,
             mirror=sender == "theirs", seed=seed, **BULK)
        for seed, (role, opens) in enumerate(ROLES, 1)
        for sender, whose in (("ours", "us"), ("theirs", "the kernel"))
    ),
]  # fmt: skip

# Cut of the first path, since the start of our program; the transfer takes some seconds more.
CUT_S = 4


@dataclass(frozen=True)
class Failover:
    """A conversation over two paths, the first of which is cut permanently."""

    case: Case
    settings: str
    """The sender's parameters, as text."""

    HEAD: ClassVar[str] = f"""\
## When a path fails

Both hosts have two addresses, one on each of two networks. A message leaves every 5 ms; {CUT_S} s
after our program began the first network fails permanently in both directions. All messages must
arrive nevertheless. The silence is the longest time between two deliveries, including late
messages, which a listener would not hear. RFC 9260's defaults give a path up after
Path.Max.Retrans = 5 consecutive timeouts, each twice the last, starting from RTO.Min;
retransmissions use the other path at once (§6.4.1), new data only when the path is given up, or
potentially failed (RFC 7829).
"""
    TABLE_HEAD: ClassVar[str] = (
        "| who sends | settings | messages sent | received | longest silence (s)"
        " | path given up by the kernel after (s) | passed |"
    )

    def judge(self, ours: list[dict], theirs: list[dict]) -> list[str]:
        """Deviations from the expected failover."""
        wrong = []
        mine = last(ours, "result")
        data = mine["packets"]["sent" if self.case.ours else "received"]["data"]
        if any(data.get(path, 0) < 10 for path in ("0", "1")):
            wrong.append(f"data did not go on both paths: {data}")
        if mine["impairments"]["outbound" if self.case.ours else "inbound"]["lost_packets"] == 0:
            wrong.append("nothing was lost by the cut")
        if not self.case.ours and not self.given_up(theirs):
            wrong.append("the kernel did not give up the path")
        return wrong

    @staticmethod
    def given_up(theirs: list[dict]) -> list[float]:
        """When the kernel reported a path as unreachable, in seconds since it was connected."""
        return [
            one["us"] / 1e6
            for one in theirs
            if one.get("event") == "path" and one["state"] == "unreachable"
        ]

    def row(self, result: dict) -> str:
        """One conversation."""
        case = self.case
        mine, its = last(result["ours"], "result"), last(result["theirs"], "result")
        if not mine or not its:
            return f"| | {self.settings} | | | | | no |"
        hearer = its if case.ours else mine["tally"]
        gone = self.given_up(result["theirs"])
        cells = [
            "ours" if case.ours else "the kernel",
            self.settings,
            str(case.ours or case.theirs),
            str(hearer["distinct_packets"]),
            f"{hearer['longest_silence_us'] / 1e6:.2f}",
            f"{gone[0] - CUT_S:.1f}" if gone else "–",
            "no" if result["wrong"] else "yes",
        ]
        return f"| {' | '.join(cells)} |"


def failing(name: str, settings: str, ours: int, theirs: int, **more: object) -> Failover:
    """A conversation with a message every 5 ms in one direction, whose first path is cut."""
    case = Case(
        name, f"A path fails; {settings}", closes="theirs" if ours else "ours", ours=ours,
        theirs=theirs, bytes=400, interval_ms=5, delay_ms=10, quiet_s=90,
        ours_more=("--cut", f"0@{CUT_S}s..10min"), **more,
    )  # fmt: skip
    return Failover(case, settings)


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

HEAD = """\
# SCTP with the Linux kernel

<!-- Written by validation/linux-sctp/run.py; changes made here are lost. -->

Our SCTP endpoint, the one used in simulations, communicates over raw IP (protocol 132) with the
SCTP of a Linux kernel: a stock Debian kernel under qemu. Both are connected by a network namespace
without loss, with two networks; our side adds delay, losses, reordering and the failure of a path
from a seed, in both directions. Both sides send numbered messages, check every byte and count what
they receive; the packets of our side are captured, and read by tshark with CRC-32c checks enabled.

A conversation passes if it opened, all messages were delivered once and unchanged, in the order of
their stream unless sent unordered, and SHUTDOWN closed it, as both sides reported; without ABORT or
ERROR; tshark read as many packets as our side saw, each with a correct checksum and without an
expert item of the groups Checksum, Malformed or Protocol. Where messages may be abandoned, at most
as many are missing as packets with data were lost or late and, if they have a lifetime, as fell due
in the longest silence; where retransmission is disabled, there is none, and FORWARD TSNs are seen
in both directions.
{headers}

Not asserted: sending speed.

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
sudo validation/linux-sctp/run.py
```

## Conversations

"""

RACE = """\
## Goodput

The same 50 MB under the same random losses, sent by us and by the kernel, with a round trip of
10 ms, 2 % of all packets lost and 1 % late by 4 ms, RTO.Min 1 s and SACKs every second packet on
both sides. The guest is emulated without KVM, so that its round trips are slightly longer.

"""

NOTE = """\
## Deviations of the kernel

* Messages of several I-DATA chunks cannot be exchanged with it. RFC 8260 §2.1 numbers the parts of
  a message from 0, where the first number is implied; the kernel's second part has number 0 again.
  Our endpoint answers with ABORT and the cause Protocol Violation, since two parts have the same
  number. usrsctp numbers them as the RFC does ([its conversations](usrsctp.md)). Tested by hand;
  not among the conversations above.
* By default it uses the potentially failed state (RFC 7829; `net.sctp.pf_enable` 1, `pf_retrans`
  0): new data leaves a path after its first timeout. In our endpoint this is the parameter
  `potentially_failed`, absent by default: hence the different results when a path fails.
* After its own shutdown, recv() reports no end of data; only the notification does.
"""
