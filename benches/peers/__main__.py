"""``make bench-peers``: the same workloads here, in ns-2 and in ns-3, and a page of results.

Results are saved after every run: after Ctrl-C, the same command resumes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from pathlib import Path

from benches import guided
from benches.cost import FailedError
from benches.peers import page, plan, programs, tables
from benches.peers.matches import BARS, MATCHES
from benches.peers.results import Results, Step

PEERS = sorted({match.peer for match in MATCHES})


def main() -> int:
    """Run the selected measurements; 0 done, 1 failure, 2 missing program, 130 Ctrl-C."""
    asked = arguments()
    matches = plan.chosen(set(asked.only), set(asked.peers), asked.shorten)
    if not matches:
        print("none of these workloads has such a peer", file=sys.stderr)
        return 2
    peers = programs.missing({match.peer for match in matches})
    if words := [words for words in (peers, guided.missing()) if words]:
        print(*words, sep="\n", file=sys.stderr)
        return 2
    if not programs.PLAIN.exists():
        print(f"{programs.PLAIN} is missing: make bench-peers builds it", file=sys.stderr)
        return 2
    try:
        guided.build()
    except (FailedError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    whole = not asked.only and not asked.peers and asked.shorten == 1
    load = os.getloadavg()
    results = Results.resumed(asked.results, fingerprint())
    if asked.fresh:
        results.done.clear()
    steps = list(plan.steps(matches, pairs=asked.pairs, all_else=whole))
    if any(step.key in results.done for step in steps):
        print("some of it was done already and is taken up; --fresh starts over")
    try:
        for match in matches:
            if match.peer == "ns-3":
                programs.build_ns3(programs.ns3_program(match))
        results.run(steps, tell)
    except FailedError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nstopped; what is done is in {results.file}: the same command goes on from there")
        print(tables.lines(results, matches))
        return 130
    print(tables.lines(results, matches))
    if not whole and not asked.page:
        print("only a part was asked for: no page is written")
        return 0
    from benches.peers import figure

    page.FIGURE.write_bytes(figure.draw(results))
    page.PAGE.write_text(page.page(results, load), encoding="utf-8")
    print(f"written: {page.PAGE.relative_to(programs.ROOT)}, with its figure")
    return 0


def arguments() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(prog="make bench-peers ARGS=…", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], choices=BARS, help="workloads")
    parser.add_argument("--peers", nargs="+", default=[], choices=PEERS)
    parser.add_argument("--pairs", type=positive, default=5, help="runs of each, in turn (5)")
    parser.add_argument(
        "--shorten", type=float, default=1.0, metavar="X", help="simulate X of the time, as in 0.1"
    )
    parser.add_argument("--page", action="store_true", help="write the page with what there is")
    parser.add_argument("--fresh", action="store_true", help="forget what was done before")
    parser.add_argument(
        "--results",
        type=Path,
        default=programs.TARGET / "bench-peers.json",
        help="where they are kept",
    )
    asked = parser.parse_args()
    if not 0 < asked.shorten <= 1:
        parser.error("--shorten: above 0 and at most 1")
    return asked


def positive(text: str) -> int:
    """A number of pairs."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least one")
    return number


def fingerprint() -> str:
    """Identifies the programs, scripts and processor that results are valid for."""
    hashed = hashlib.sha256(page.processor().encode())
    files = [
        programs.BENCH,
        programs.PLAIN,
        *programs.NS3_SOURCES.values(),
        programs.HERE / "dumbbell.tcl",
    ]
    for file in [*files, programs.HERE / "matches.py"]:
        # Not read whole: the peak memory of children starts at ours.
        with file.open("rb") as content:
            hashed.update(hashlib.file_digest(content, "sha256").digest())
    return hashed.hexdigest()


def tell(step: Step, place: int, number: int, left_s: float) -> None:
    """Print a line before each step."""
    left = f"{left_s / 60:.0f} min" if left_s >= 90 else f"{max(1, left_s):.0f} s"
    print(f"[{place + 1}/{number}, {left} left] {step.key}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
