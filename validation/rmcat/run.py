#!/usr/bin/env python3
"""Fills docs/validation/rmcat.md with the tables of `talkspurt evaluate rmcat`.

validation/rmcat/run.py [--seeds N] [CASE…]     # default: 30 seeds of all cases
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from talkspurt.evaluate import cases, running, showing

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation" / "rmcat.md"


def main() -> None:
    """Evaluate case by case, and write each table when it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("case", nargs="*")
    asked = parser.parse_args()
    for case in cases.select(asked.case):
        plan = running.Plan([case], cases.candidates([], []), asked.seeds)
        found = running.evaluate(running.Work.of(plan))
        print(f"{case.id}: {showing.summary(found)} {found.cpu_s:.1f} CPU-s", flush=True)
        words = f"{case.about}\n\n{showing.markdown(found.measured[case.id])}"
        tables.fill(PAGE, {case.id: f"{words}\n\n{asked.seeds} seeds."})


if __name__ == "__main__":
    main()
