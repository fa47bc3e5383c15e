"""Runs the workloads without peers and prints the cost of a hop: ``make bench``.

Packet-hops per CPU-second are from the fastest of three runs, for the whole process including
set-up; instructions are counted if valgrind is installed, and are the number to compare between
changes. ``make bench-peers`` also runs the workloads in ns-2 and ns-3.
"""

from __future__ import annotations

import sys

from benches import callgrind
from benches.cost import FailedError, cost

WORKLOADS = {
    "w1": "50 bulk TCP SACK flows over one bottleneck",
    "w2": "500 voice calls, statistics of each",
    "w2a": "the same with adaptive playout",
    "w3": "32 TCP and 32 TFRC under RED",
    "w3d": "16 each of TCP, CCID 2, CCID 3 and SCTP under RED",
    "w4": "W1 for 20 s, ns-2's trace of every link on disk",
    "w4-pcapng": "W1 for 20 s, a capture of every link on disk",
    "w4-parquet": "W1 for 20 s, a row for each packet on each link on disk",
    "w5-1000": "1000 bulk TCP SACK flows",
    "w6-100": "100 stations that saturate a cell of 802.11b",
    "w7": "500 calls of speech and video under NADA, statistics of each",
}
TIMES = 3


def main() -> None:
    """Print one row per workload."""
    program = sys.argv[1]
    head = f"{'':10}{'M hops':>9}{'CPU s':>8}{'M hops/CPU s':>14}{'instr./hop':>12}"
    print(f"{head}{'peak MB':>9}{'set-up s':>10}")
    for name, words in WORKLOADS.items():
        best = min((cost([program, name]) for _ in range(TIMES)), key=lambda run: run["cpu_s"])
        hops, cpu = best["said"]["hops"] / 1e6, best["cpu_s"]
        lengths = callgrind.LENGTHS.get(name)
        each = "–"
        if lengths is not None and callgrind.there():
            each = f"{callgrind.per_hop(program, name, lengths=lengths):.0f}"
        set_up = best["said"]["set_up_s"]
        print(
            f"{name:10}{hops:>9.2f}{cpu:>8.2f}{hops / cpu:>14.1f}{each:>12}"
            f"{best['peak_mb']:>9.1f}{set_up:>10.3f}  {words}",
            flush=True,
        )
    if not callgrind.there():
        print("valgrind is not installed: instructions were not counted", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except FailedError as error:
        sys.exit(str(error))
