#!/usr/bin/env python3
"""Runs conversations over SCTP inside UDP (RFC 6951) with usrsctp, on the loopback interface.

Writes results.json.gz next to this file and docs/validation/usrsctp.md.

    sudo apt-get install libusrsctp-dev gcc tshark     # once; the run itself needs no root
    validation/usrsctp/run.py [NAME...]                # all conversations, or these only

With names, only prints. Without, it refuses to start if the working tree has uncommitted changes
(--dirty overrides this, and the page states it).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "sctp")]

import headers  # noqa: E402
import packets  # noqa: E402
import page  # noqa: E402
from case import Case, judge  # noqa: E402
from made import ROOT, build, line, load, made, save, uncommitted  # noqa: E402

RESULTS = HERE / "results.json.gz"
PAGE = ROOT / "docs/validation/usrsctp.md"
ADDRESS = "127.0.0.1"
SCTP_PORT = 5001
# Theirs is the port of RFC 6951 §5.1.
THEIR_UDP, OUR_UDP = 9899, 9900

BAD = {"delay_ms": 10, "loss": 0.02, "held": 0.02}
# Slightly more than 50 MB, in messages that fill a packet.
BULK = {"bytes": 1400, "interval_ms": 0, "delay_ms": 5, "loss": 0.02, "held": 0.01, "hold_ms": 4,
        "limit_s": 240, "quiet_s": 60}  # fmt: skip
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
    *(
        Case(f"{role}-streams", f"We are the {role}; four streams, ordered", opens=opens,
             closes=opens, streams=4, **BAD)
        for role, opens in ROLES
    ),
    Case("unordered", "Four streams, unordered", streams=4, ordered=False, **BAD),
    Case("fragments", "Messages of six chunks, on two streams", streams=2, bytes=8000,
         closes="theirs", **BAD),
    Case("client-interleaved", "We are the client; the same as I-DATA, streams in turn", streams=2,
         bytes=8000, interleaving=True, **BAD),
    Case("server-interleaved", "We are the server; the same", opens="theirs", closes="theirs",
         streams=2, bytes=8000, interleaving=True, **BAD),
    Case("timed", "Given up 60 ms after it was handed over", lifetime_ms=60, streams=2, **BAD),
    Case("never-again", "Given up rather than sent again", opens="theirs", max_retransmissions=0,
         closes="theirs", streams=2, **BAD),
    Case("once-again", "Given up rather than sent a third time", max_retransmissions=1,
         streams=2, **BAD),
    *(
        Case(f"{role}-bulk-{sender}", f"We are the {role}; 50 MB from {whose}", opens=opens,
             closes="theirs" if sender == "ours" else "ours",
             ours=MESSAGES if sender == "ours" else 0,
             theirs=MESSAGES if sender == "theirs" else 0,
             mirror=sender == "theirs", seed=seed, **BULK)
        for seed, (role, opens) in enumerate(ROLES, 1)
        for sender, whose in (("ours", "us"), ("theirs", "usrsctp"))
    ),
]  # fmt: skip

HEAD = """\
# SCTP with usrsctp

<!-- Written by validation/usrsctp/run.py; changes made here are lost. -->

Our SCTP endpoint, the one used in simulations, communicates inside UDP (RFC 6951) with usrsctp,
FreeBSD's stack as a library, over the loopback interface. Our side adds delay, losses and
reordering from a seed, in both directions. Both sides send numbered messages, check every byte and
count what they receive; the packets of our side are captured, and read by tshark with CRC-32c
checks enabled.

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
| usrsctp | {usrsctp} |
| tshark | {tshark} |
| rustc | {rustc} |

To reproduce: `validation/usrsctp/run.py`; it prints what it needs.

## Conversations

"""

RACE = """\
## Goodput

The same 50 MB under the same random losses, sent by us and by usrsctp, with a round trip of
10 ms, 2 % of all packets lost and 1 % late by 4 ms, Max.Burst 4, RTO.Min 1 s and SACKs every second
packet on both sides. One run each, so only the order of magnitude is significant.

"""

NOTE = """\
In our endpoint a chunk that is lost again after its fast retransmission waits for T3-rtx, because
RFC 9260 §7.2.4 makes it ineligible for another: at least RTO.Min, 1 s, without deliveries.
"""


def main() -> int:
    """Runs the selected conversations; the exit status is 1 if any failed."""
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    words.add_argument("names", nargs="*", help="conversations to hold")
    words.add_argument("--dirty", action="store_true", help="write with an unclean tree")
    words.add_argument("--keep", type=Path, help="folder for the captures (default: a new one)")
    words.add_argument(
        "--page", action="store_true", help="only write the page, from results.json.gz"
    )
    asked = words.parse_args()
    if asked.page:
        write_page(load(RESULTS))
        return 0
    unknown = set(asked.names) - {case.name for case in CASES}
    if unknown:
        sys.exit(f"run: no such conversation: {', '.join(sorted(unknown))}")
    if not asked.names and not asked.dirty and (changes := uncommitted(RESULTS, PAGE)):
        sys.exit(f"run: changes that are in no commit (commit them, or --dirty):\n{changes}")
    captures = asked.keep or Path(tempfile.mkdtemp(prefix="usrsctp-"))
    captures.mkdir(parents=True, exist_ok=True)
    version = line("dpkg-query", "-W", "-f", "${Package} ${Version}", "libusrsctp2")
    told = {**made(RESULTS, PAGE), "usrsctp": version}
    ours, theirs = build("sctp-peer"), compile_peer(captures)
    cases = [case for case in CASES if not asked.names or case.name in asked.names]
    held = []
    for case in cases:
        held.append(attempt(case, ours, theirs, captures))
        print(f"{case.name:30} {'; '.join(held[-1]['wrong']) or 'as it should be'}", flush=True)
    if not asked.names:
        results = {"made": told, "conversations": held}
        save(RESULTS, results)
        write_page(results)
    failed = sum(bool(one["wrong"]) for one in held)
    print(f"{len(cases) - failed} of {len(cases)} as they should be; captures in {captures}")
    return 1 if failed else 0


def write_page(results: dict) -> None:
    """Writes the page from results alone."""
    held = results["conversations"]
    parts = [*page.overview(CASES, held), RACE, *page.race(CASES, held, "usrsctp"), NOTE]
    PAGE.write_text(
        HEAD.format(
            **results["made"],
            headers=headers.page(one["tshark"].get("headers", {}) for one in held),
        )
        + "\n".join(parts).rstrip()
        + "\n"
    )


def compile_peer(folder: Path) -> Path:
    """Compiles the other side's program."""
    out = folder / "usrsctp-peer"
    flags = ["-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        ["gcc", *flags, "-o", str(out), str(HERE / "peer.c"), "-lusrsctp", "-lpthread"], check=True
    )
    return out


def attempt(case: Case, ours: Path, theirs: Path, captures: Path) -> dict:
    """Runs one conversation; an exception also becomes a result."""
    capture = captures / f"{case.name}.pcapng"
    said: dict[str, list[dict]] = {"ours": [], "theirs": []}
    try:
        converse(case, ours, theirs, capture, said)
        read = packets.read(capture, THEIR_UDP)
        read["headers"] = headers.sctp(capture, THEIR_UDP)
        wrong = judge(case, said["ours"], said["theirs"], read)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        wrong, read = [f"{type(error).__name__}: {error}"], {}
    return {"name": case.name, "title": case.title, "wrong": wrong, **said, "tshark": read}


def converse(
    case: Case, ours: Path, theirs: Path, capture: Path, said: dict[str, list[dict]]
) -> None:
    """Starts the listening side, then the opening side, and collects both outputs."""
    mine = [str(ours), "client" if case.opens == "ours" else "server", *case.our_words()]
    mine += ["--pcapng", str(capture)]
    its = [str(theirs), *case.their_words()]
    if case.opens == "ours":
        mine += ["--local", f"{ADDRESS}:{SCTP_PORT + 1}", "--remote", f"{ADDRESS}:{SCTP_PORT}"]
        mine += ["--udp", f"{OUR_UDP}:{THEIR_UDP}"]
        its += ["-e", str(THEIR_UDP), "server", ADDRESS, str(SCTP_PORT)]
        waits, opens, order = its, mine, ("theirs", "ours")
    else:
        mine += ["--local", f"{ADDRESS}:{SCTP_PORT}", "--udp", str(OUR_UDP)]
        its += ["-e", f"{THEIR_UDP}:{OUR_UDP}", "-a", ADDRESS, "client", ADDRESS, str(SCTP_PORT)]
        waits, opens, order = mine, its, ("ours", "theirs")
    with popen(waits) as waiting:
        try:
            assert waiting.stdout
            waiting.stdout.readline()
            time.sleep(0.1)
            with popen(opens) as opening:
                said[order[1]] += events(opening.communicate(timeout=case.limit_s + 30)[0])
            said[order[0]] += events(waiting.communicate(timeout=10)[0])
        finally:
            waiting.kill()


def popen(words: list[str]) -> subprocess.Popen[str]:
    """A program with captured output."""
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def events(text: str) -> list[dict]:
    """Its output."""
    return [json.loads(row) for row in text.splitlines() if row.startswith("{")]


if __name__ == "__main__":
    sys.exit(main())
