#!/usr/bin/env python3
"""Runs every conversation of `matrix.py` with the TCP of this machine's kernel.

Writes results.json.gz next to this file and docs/validation/linux-tcp.md.

    sudo validation/linux-tcp/run.py [--jobs N] [NAME...]   # all conversations, or these only
    sudo .venv/bin/python validation/linux-tcp/run.py --cells [--jobs N]   # the senders of cells.py

With names, only prints. Without, it refuses to start if the working tree has uncommitted changes
(--dirty overrides this, and the page states it), since the page names the commit. Needs root for
TUN devices; each conversation has its own network namespace, which ends with it, so nothing
remains.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent)]

import dissect  # noqa: E402
import page  # noqa: E402
from made import load, save  # noqa: E402
from matrix import CASES, Case, judge, races  # noqa: E402

RESULTS = HERE / "results.json.gz"
PAGE = ROOT / "docs/validation/linux-tcp.md"
NEEDED = ("unshare", "ip", "tshark")
PATIENCE = 330
"""Seconds after which a conversation is killed; it times out earlier by itself."""


def main() -> int:
    """Runs the selected conversations; the exit status is 1 if any failed."""
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    words.add_argument("names", nargs="*", help="conversations to hold; their beginning is enough")
    words.add_argument("--dirty", action="store_true", help="write with an unclean tree")
    words.add_argument("--jobs", type=int, default=1, help="conversations at a time")
    words.add_argument("--keep", type=Path, help="folder in which the captures stay")
    words.add_argument(
        "--judge", action="store_true", help="hold nothing; judge and write what was held last"
    )
    words.add_argument(
        "--cells", action="store_true", help="run what is missing of cells.py; writes the page, too"
    )
    asked = words.parse_args()
    if asked.cells:
        import cells  # needs talkspurt's Python package, and the rest does not

        cells.run(asked.jobs)
        return write(load(RESULTS))
    if os.geteuid() != 0 and not asked.judge:
        sys.exit("run: needs root, for TUN devices and network namespaces")
    if missing := [tool for tool in NEEDED if shutil.which(tool) is None]:
        sys.exit(f"run: install {', '.join(missing)} first")
    if not asked.names and not asked.dirty and (changes := uncommitted()):
        sys.exit(f"run: changes that are in no commit (commit them, or --dirty):\n{changes}")
    if asked.judge:
        results = load(RESULTS)
        held = results["conversations"]
        if missing := [case.name for case in CASES + races() if case.name not in held]:
            sys.exit(f"run: never held, so not to be judged: {', '.join(missing)}")
        for case in CASES + races():
            result = held[case.name]
            if "tshark" in result:
                result["wrong"] = judge(case, result)
        return write(results)
    # Terminating this run must also stop its conversations.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("run: ended"))
    peer = build()
    chosen = [case for case in [*CASES, *races()] if wanted(case, asked.names)]
    if not chosen:
        sys.exit("run: no such conversation")
    described = made(asked.jobs)
    found = hold(chosen, peer, asked.jobs, asked.keep)
    described["load"] = os.getloadavg()[2]
    results = {"made": described, "conversations": found}
    return verdict(found) if asked.names else write(results)


def write(results: dict) -> int:
    """Writes the results and the page; returns the exit status."""
    results["made"]["judged"] = commit()
    save(RESULTS, results)
    page.write(PAGE, results)
    return verdict(results["conversations"])


def verdict(found: dict[str, dict]) -> int:
    """Prints the number of successes; the exit status is 1 if any failed."""
    failed = sum(bool(result["wrong"]) for result in found.values())
    print(f"{len(found) - failed} of {len(found)} as they should be")
    return 1 if failed else 0


def wanted(case: Case, names: list[str]) -> bool:
    """Whether the conversation is selected."""
    return not names or any(case.name.startswith(name) for name in names)


def uncommitted() -> str:
    """Uncommitted changes of the working tree, except this script's own output."""
    written = [f":(exclude){RESULTS.relative_to(ROOT)}", f":(exclude){PAGE.relative_to(ROOT)}"]
    command = ["git", "status", "--porcelain", "--", ".", *written]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return told.stdout.rstrip()


def commit() -> str:
    """The commit of the working tree."""
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True)
    return told.stdout.decode().strip()


def build() -> Path:
    """Our side's program."""
    command = ["cargo", "build", "--quiet", "--locked", "--workspace"]
    subprocess.run([*command, "--bin", "tcp-peer"], cwd=ROOT, check=True)
    metadata = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    told = subprocess.run(metadata, cwd=ROOT, check=True, capture_output=True).stdout
    return Path(json.loads(told)["target_directory"]) / "debug/tcp-peer"


def made(jobs: int) -> dict:
    """Versions and date."""

    def line(*command: str) -> str:
        told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        return (told.splitlines() or [""])[0].strip()

    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text()
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "modified": bool(uncommitted()),
        "kernel": platform.release(),
        "congestion_control": available.split(),
        "tshark": line("tshark", "--version"),
        "rustc": line("rustc", "--version"),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "jobs": jobs,
    }


def hold(cases: list[Case], peer: Path, jobs: int, keep: Path | None) -> dict[str, dict]:
    """Runs the conversations, `jobs` at a time; returns results by name."""
    running: set[subprocess.Popen[str]] = set()

    def attempt(case: Case) -> dict:
        with tempfile.TemporaryDirectory(prefix="linux-tcp-") as folder:
            result = converse(case, peer, Path(folder), running)
            capture = Path(folder) / f"{case.name}.pcapng"
            if keep and capture.exists():
                keep.mkdir(parents=True, exist_ok=True)
                shutil.move(capture, keep / capture.name)
        print(f"{case.name:30} {'; '.join(result['wrong']) or 'as it should be'}", flush=True)
        return result

    pool = ThreadPoolExecutor(jobs)
    try:
        return {case.name: result for case, result in zip(cases, pool.map(attempt, cases),
                                                          strict=True)}  # fmt: skip
    finally:
        # On Ctrl-C and the like: start no more, and stop the running ones.
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(running):
            process.terminate()


def converse(case: Case, peer: Path, folder: Path, running: set[subprocess.Popen[str]]) -> dict:
    """Runs one conversation; an exception also becomes a result."""
    command = ["unshare", "--net", sys.executable, str(HERE / "conversation.py"), case.name]
    process = subprocess.Popen(
        [*command, str(peer), str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    running.add(process)
    try:
        said, complaint = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.terminate()
        said, complaint = process.communicate()
    finally:
        running.discard(process)
    try:
        result = json.loads(said)
        result["tshark"], result["headers"] = dissect.read(folder / f"{case.name}.pcapng")
        result["wrong"] = judge(case, result)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        last = (complaint.strip().splitlines() or [""])[-1]
        result = {"wrong": [f"{type(error).__name__}: {error} {last}".strip()]}
    return result


if __name__ == "__main__":
    sys.exit(main())
