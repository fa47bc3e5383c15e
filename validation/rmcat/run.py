#!/usr/bin/env python3
"""Fills docs/validation/rmcat.md with the tables of `talkspurt evaluate rmcat`.

validation/rmcat/run.py [--seeds N] [CASE…]     # default: 30 seeds of all cases
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from talkspurt.evaluate import cases, running, showing
from talkspurt.evaluate.judging import Measured

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation" / "rmcat.md"


def cell(one: Measured) -> str:
    """Mean, interval and verdict of a measure; what is not held stands out."""
    text = showing.value_text(one).replace("±", "± ")
    if one.verdict in ("held", "reported"):
        return text
    return one.verdict if one.verdict == "cannot run" else f"**{text}, {one.verdict}**"


def table(measured: Sequence[Measured]) -> str:
    """A row for each candidate and variant, a column for each measure."""
    names = list(dict.fromkeys(one.name for one in measured))
    units = {one.name: one.band.get("unit") for one in measured}
    order = list(dict.fromkeys(one.candidate for one in measured))
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for one in sorted(measured, key=lambda one: order.index(one.candidate)):
        rows.setdefault((one.candidate, one.variant), {})[one.name] = cell(one)
    heads = ["candidate, variant", *(f"{n}, {units[n]}" if units[n] else n for n in names)]
    lines = [[", ".join(key), *(its.get(name, "") for name in names)] for key, its in rows.items()]
    return tables.table(heads, lines)


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
        words = f"{case.about}\n\n{table(found.measured[case.id])}"
        tables.fill(PAGE, {case.id: f"{words}\n\n{asked.seeds} seeds."})


if __name__ == "__main__":
    main()
