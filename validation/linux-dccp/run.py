#!/usr/bin/env python3
"""Runs every conversation of `matrix.py` with a Linux 6.1 kernel.

Writes results.json.gz next to this file and docs/validation/linux-dccp.md.

    sudo validation/guest/prepare --install        # once: tools, kernel, initramfs
    sudo validation/linux-dccp/run.py [NAME...]       # all conversations, or these only

With names, only prints. Without, it refuses to start if the working tree has uncommitted changes
(--dirty overrides this, and the page states it), since the page names the commit. The captures'
folder is printed at the end. Needs root for the network namespace and the raw socket; cleans up
both.
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
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "guest")]

import conversation  # noqa: E402
import headers  # noqa: E402
import page  # noqa: E402
from guest import GUEST, HOST, STORE, Guest, Lane, unprepared  # noqa: E402
from made import ROOT, build, line, made, save, uncommitted  # noqa: E402
from matrix import CASES, Case, judge  # noqa: E402

RESULTS = HERE / "results.json.gz"
PAGE = ROOT / "docs/validation/linux-dccp.md"


def main() -> int:
    """Runs the selected conversations; the exit status is 1 if any failed."""
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    words.add_argument("names", nargs="*", help="conversations to hold")
    words.add_argument(
        "--dirty", action="store_true", help="write with an unclean tree, and say so"
    )
    words.add_argument("--keep", type=Path, help="folder for the captures (default: a new one)")
    asked = words.parse_args()
    if os.geteuid() != 0:
        sys.exit("run: needs root, for the network namespace and the raw socket")
    if words := unprepared():
        sys.exit(f"run: {words}")
    unknown = set(asked.names) - {case.name for case in CASES}
    if unknown:
        sys.exit(f"run: no such conversation: {', '.join(sorted(unknown))}")
    if not asked.names and not asked.dirty and (changes := uncommitted(RESULTS, PAGE)):
        sys.exit(f"run: changes that are in no commit (commit them, or --dirty):\n{changes}")
    peer = build("dccp-peer")
    captures = asked.keep or Path(tempfile.mkdtemp(prefix="linux-dccp-"))
    captures.mkdir(parents=True, exist_ok=True)
    cases = [case for case in CASES if not asked.names or case.name in asked.names]
    # Terminating this run must also stop the guest and its network.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("run: ended"))
    results = hold(cases, peer, captures)
    failed = [result["name"] for result in results["conversations"] if result["wrong"]]
    if not asked.names:
        save(RESULTS, results)
        page.write(PAGE, results, captures)
    print(f"{len(cases) - len(failed)} of {len(cases)} as they should be; captures in {captures}")
    return 1 if failed else 0


def hold(cases: list[Case], peer: Path, captures: Path) -> dict:
    """Boots the guest and runs the conversations in sequence."""
    lane = Lane()
    try:
        guest = Guest(lane)
        try:
            results = {"made": told(guest), "conversations": []}
            guest.dropped()
            for number, case in enumerate(cases):
                result = attempt(case, 5001 + number, lane, guest, peer, captures)
                results["conversations"].append(result)
                print(
                    f"{case.name:30} {'; '.join(result['wrong']) or 'as it should be'}", flush=True
                )
            return results
        finally:
            guest.close()
    finally:
        lane.close()


def told(guest: Guest) -> dict:
    """Versions and date."""
    package = dict(row.split(": ", 1) for row in (STORE / "package").read_text().splitlines())
    return {
        **made(RESULTS, PAGE),
        "kernel": guest.release,
        "kernel_package": f"{package['Package']} {package['Version']}",
        "kernel_sysctl": guest.ask("cd /proc/sys/net/dccp/default; grep . *").splitlines(),
        "qemu": line("qemu-system-x86_64", "--version"),
    }


def attempt(case: Case, port: int, lane: Lane, guest: Guest, peer: Path, captures: Path) -> dict:
    """Runs one conversation; an exception also becomes a result."""
    capture = captures / f"{case.name}.pcapng"
    ours: list[dict] = []
    kernel: list[dict] = []
    dropped = None
    try:
        before = lane.dropped() + guest.dropped(settle=0)
        converse(case, port, lane, guest, peer, capture, ours, kernel)
        dropped = lane.dropped() + guest.dropped() - before
        lines, malformed = conversation.read(capture)
        bad = sum(not line.checksum_good for line in lines)
        dissected = {"packets": len(lines), "malformed": malformed, "bad_checksums": bad}
        dissected["headers"] = headers.dccp(lines)
        wrong = judge(case, ours, kernel, dissected, dropped)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        traceback.print_exc()
        wrong, dissected = [f"{type(error).__name__}: {error}"], {}
    return {
        "name": case.name,
        "title": case.title,
        "wrong": wrong,
        "dropped_between": dropped,
        "ours": ours,
        "kernel": kernel,
        "tshark": dissected,
    }


def converse(
    case: Case,
    port: int,
    lane: Lane,
    guest: Guest,
    peer: Path,
    capture: Path,
    ours: list[dict],
    kernel: list[dict],
) -> None:
    """Starts the listening side, then the opening side, and collects both outputs."""
    here, there = address(HOST[case.version], port), address(GUEST[case.version], port)
    words = [str(peer), "client" if case.opens == "ours" else "server", "--local", here]
    words += ["--dccp", case.ours(), "--packets", str(case.packets), "--bytes", str(case.bytes)]
    words += ["--interval", f"{case.interval_ms}ms", "--delay", f"{case.delay_ms}ms"]
    words += ["--loss", str(case.loss)]
    words += [
        "--held",
        str(case.held),
        "--hold",
        f"{case.hold_ms}ms",
        "--seed",
        str(port),
        "--pcapng",
        str(capture),
    ]
    words += ["--closes"] if case.closes == "ours" else []
    words += ["--limit", "8s"] if not case.connects else []
    if case.opens == "ours":
        if case.listens:
            guest.start(f"dccp-peer {case.kernels()} server {GUEST[case.version]} {port}")
            kernel += guest.wait_for("listening")
        with popen(lane, [*words, "--remote", there]) as process:
            ours += said(process)
        if case.listens:
            kernel += guest.finish()[0]
    else:
        with popen(lane, words) as process:
            assert process.stdout
            process.stdout.readline()
            guest.start(f"dccp-peer {case.kernels()} client {HOST[case.version]} {port}")
            kernel += guest.finish()[0]
            ours += said(process)


def address(host: str, port: int) -> str:
    """An address in our program's syntax."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def popen(lane: Lane, words: list[str]) -> subprocess.Popen[str]:
    """Our program, in the namespace."""
    return subprocess.Popen(lane.inside(*words), stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> list[dict]:
    """Its output until it ends."""
    assert process.stdout
    return [json.loads(line) for line in process.stdout if line.startswith("{")]


if __name__ == "__main__":
    sys.exit(main())
