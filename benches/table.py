"""Runs the peer workloads and prints what a hop costs: ``make bench``.

Packet-hops per CPU-second are of the fastest of three runs, of the whole process including set-up.
Instructions per hop are counted by valgrind's callgrind where it is installed, as the difference
between a longer and a shorter run, so that set-up cancels; they are the number to compare between
changes, because they do not depend on what else the machine does.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import Any

WORKLOADS = {
    "w1": "50 bulk TCP SACK flows over one bottleneck",
    "w2": "500 voice calls, statistics of each",
}
TIMES = 3
COUNTED_S = {"w1": (2, 6), "w2": (1, 2)}
"""Simulated seconds of the shorter and the longer run; w1's are such that the ramp of slow start,
which ends within them, weighs little."""


def main() -> None:
    """Print one row per workload."""
    program = sys.argv[1]
    print(f"{'':4}{'M hops':>9}{'CPU s':>8}{'M hops/CPU s':>14}{'instr./hop':>12}{'peak MB':>9}")
    for name, words in WORKLOADS.items():
        best = min((run([program, name]) for _ in range(TIMES)), key=lambda row: row["cpu_s"])
        hops, cpu = best["hops"] / 1e6, best["cpu_s"]
        each = instructions_per_hop(program, name)
        shown = f"{each:.0f}" if each is not None else "–"
        peak = best["peak_kb"] / 1e3
        print(f"{name:4}{hops:>9.2f}{cpu:>8.2f}{hops / cpu:>14.1f}{shown:>12}{peak:>9.1f}  {words}")
    if shutil.which("valgrind") is None:
        print("valgrind is not installed: instructions were not counted", file=sys.stderr)


def run(command: list[str]) -> dict[str, Any]:
    """One run; the workload prints one JSON line."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def instructions_per_hop(program: str, name: str) -> float | None:
    """Instructions that one more hop costs."""
    if shutil.which("valgrind") is None:
        return None
    short, long = (counted(program, name, seconds) for seconds in COUNTED_S[name])
    return (long[0] - short[0]) / (long[1] - short[1])


def counted(program: str, name: str, seconds: int) -> tuple[int, int]:
    """Instructions and hops of a run of so many simulated seconds."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command = [*valgrind, program, name, str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if found is None:
        raise SystemExit(f"callgrind said nothing to count:\n{done.stderr}")
    return int(found.group(1)), int(json.loads(done.stdout)["hops"])


if __name__ == "__main__":
    main()
