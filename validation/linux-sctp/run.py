#!/usr/bin/env python3
"""Runs SCTP conversations with a Linux 6.1 kernel in qemu, raw IP protocol 132.

Writes results.json.gz next to this file and docs/validation/linux-sctp.md.

    sudo validation/guest/prepare --install        # once: tools, kernel, initramfs
    sudo validation/linux-sctp/run.py [NAME...]       # all conversations, or these only

With names, only prints. Without, it refuses to start if the working tree has uncommitted changes
(--dirty overrides this, and the page states it). Needs root for the network namespace and the raw
socket; cleans up both.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "guest"), str(HERE.parent / "sctp"), str(HERE)]

import headers  # noqa: E402
import packets  # noqa: E402
import page  # noqa: E402
from case import Case, judge  # noqa: E402
from guest import GUEST, HOST, STORE, Guest, Lane, further, unprepared  # noqa: E402
from made import ROOT, build, line, load, made, save, uncommitted  # noqa: E402
from matrix import CASES, FAILOVERS, HEAD, NOTE, RACE, Failover  # noqa: E402

RESULTS = HERE / "results.json.gz"
PAGE = ROOT / "docs/validation/linux-sctp.md"
CARDS = 2


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
    if os.geteuid() != 0:
        sys.exit("run: needs root, for the network namespace and the raw socket")
    if words := unprepared():
        sys.exit(f"run: {words}")
    all_cases = [*CASES, *(failover.case for failover in FAILOVERS)]
    unknown = set(asked.names) - {case.name for case in all_cases}
    if unknown:
        sys.exit(f"run: no such conversation: {', '.join(sorted(unknown))}")
    if not asked.names and not asked.dirty and (changes := uncommitted(RESULTS, PAGE)):
        sys.exit(f"run: changes that are in no commit (commit them, or --dirty):\n{changes}")
    captures = asked.keep or Path(tempfile.mkdtemp(prefix="linux-sctp-"))
    captures.mkdir(parents=True, exist_ok=True)
    when = made(RESULTS, PAGE)
    peer = build("sctp-peer")
    cases = [case for case in all_cases if not asked.names or case.name in asked.names]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("run: ended"))
    results = hold(cases, peer, captures, when)
    held = results["conversations"]
    if not asked.names:
        save(RESULTS, results)
        write_page(results)
    failed = sum(bool(one["wrong"]) for one in held)
    print(f"{len(cases) - failed} of {len(cases)} as they should be; captures in {captures}")
    return 1 if failed else 0


def write_page(results: dict) -> None:
    """Writes the page from results alone."""
    held = results["conversations"]
    plain = [one for one in held if one["name"] in {case.name for case in CASES}]
    parts = [*page.overview(CASES, plain), RACE, *page.race(CASES, plain, "the kernel")]
    parts += [*failovers(held), NOTE]
    PAGE.write_text(
        HEAD.format(
            **results["made"],
            headers=headers.page(one["tshark"].get("headers", {}) for one in held),
        )
        + "\n".join(parts).rstrip()
        + "\n"
    )


def hold(cases: list[Case], peer: Path, captures: Path, when: dict) -> dict:
    """Boots the guest and runs the conversations in sequence."""
    lane = Lane(CARDS)
    try:
        guest = Guest(lane)
        try:
            # RFC 8260 in 6.1: off by default.
            guest.ask("echo 1 > /proc/sys/net/sctp/intl_enable")
            results: dict = {"made": {**when, **told(guest)}, "conversations": []}
            for number, case in enumerate(cases):
                result = attempt(case, 5001 + 2 * number, lane, guest, peer, captures)
                results["conversations"].append(result)
                words = "; ".join(result["wrong"]) or "as it should be"
                print(f"{case.name:30} {words}", flush=True)
            return results
        finally:
            guest.close()
    finally:
        lane.close()


def told(guest: Guest) -> dict:
    """The kernel and its emulator."""
    package = dict(row.split(": ", 1) for row in (STORE / "package").read_text().splitlines())
    return {
        "kernel": guest.release,
        "kernel_package": f"{package['Package']} {package['Version']}",
        "kernel_sysctl": guest.ask("cd /proc/sys/net/sctp; grep . *").splitlines(),
        "qemu": line("qemu-system-x86_64", "--version"),
    }


def attempt(case: Case, port: int, lane: Lane, guest: Guest, peer: Path, captures: Path) -> dict:
    """Runs one conversation; an exception also becomes a result."""
    capture = captures / f"{case.name}.pcapng"
    ours: list[dict] = []
    theirs: list[dict] = []
    dropped = None
    try:
        before = lane.dropped() + guest.dropped()
        converse(case, port, lane, guest, peer, capture, ours, theirs)
        dropped = lane.dropped() + guest.dropped() - before
        read = packets.read(capture)
        read["headers"] = headers.sctp(capture)
        wrong = judge(case, ours, theirs, read)
        if failover := next((one for one in FAILOVERS if one.case.name == case.name), None):
            wrong += failover.judge(ours, theirs)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        traceback.print_exc()
        wrong, read = [f"{type(error).__name__}: {error}"], {}
    return {
        "name": case.name, "title": case.title, "wrong": wrong, "dropped_between": dropped,
        "ours": ours, "theirs": theirs, "tshark": read,
    }  # fmt: skip


def converse(
    case: Case, port: int, lane: Lane, guest: Guest, peer: Path, capture: Path,
    ours: list[dict], theirs: list[dict],
) -> None:  # fmt: skip
    """Starts the listening side, then the opening side, and collects both outputs."""
    here, there = HOST[case.version], GUEST[case.version]
    words = [str(peer), "client" if case.opens == "ours" else "server", *case.our_words()]
    words += ["--pcapng", str(capture)]
    bound = []
    if any(failover.case is case for failover in FAILOVERS):
        words += [part for card in range(1, CARDS) for part in ("--path", "=".join(further(card)))]
        bound = [further(card)[1] for card in range(1, CARDS)]
    theirs_words = ["sctp-peer", *case.their_words()]
    if case.opens == "ours":
        # The opening side uses the next port.
        words += ["--local", at(here, port + 1), "--remote", at(there, port)]
        more = [part for address in bound for part in ("-a", address)]
        guest.start(" ".join([*theirs_words, *more, "server", there, str(port)]))
        theirs += guest.wait_for("listening")
        with popen(lane, words) as process:
            ours += events(process.communicate(timeout=case.limit_s + 60)[0])
        theirs += guest.finish(case.limit_s + 30)[0]
    else:
        words += ["--local", at(here, port)]
        more = [part for address in [there, *bound] for part in ("-a", address)]
        with popen(lane, words) as process:
            assert process.stdout
            process.stdout.readline()
            guest.start(" ".join([*theirs_words, *more, "client", here, str(port)]))
            ours += events(process.communicate(timeout=case.limit_s + 60)[0])
            theirs += guest.finish(case.limit_s + 30)[0]


def failovers(held: list[dict]) -> list[str]:
    """The table of conversations with a failing path."""
    by_name = {one["name"]: one for one in held}
    rows = [Failover.TABLE_HEAD, "|---|---|---:|---:|---:|---|---|"]
    rows += [failover.row(by_name[failover.case.name]) for failover in FAILOVERS]
    wrong = [
        one for one in held if one["wrong"] and one["name"] in {f.case.name for f in FAILOVERS}
    ]
    rows += ["", *(f"* {one['title']}: {'; '.join(one['wrong'])}" for one in wrong)]
    return [Failover.HEAD, *rows, ""]


def at(host: str, port: int) -> str:
    """An address in our program's syntax."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def popen(lane: Lane, words: list[str]) -> subprocess.Popen[str]:
    """Our program, in the namespace."""
    return subprocess.Popen(lane.inside(*words), stdout=subprocess.PIPE, text=True)


def events(text: str) -> list[dict]:
    """Its output."""
    return [json.loads(row) for row in text.splitlines() if row.startswith("{")]


if __name__ == "__main__":
    sys.exit(main())
