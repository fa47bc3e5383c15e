#!/usr/bin/env python3
"""Fills docs/validation/rmcat.md with the tables of `talkspurt evaluate rmcat`.

validation/rmcat/run.py [--seeds N] [CASE…]     # default: 30 seeds of all cases
validation/rmcat/run.py --orderings             # 10 seeds of those of orderings.toml, 30 of causes
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from talkspurt.evaluate import cases, judging, running, showing
from talkspurt.evaluate.judging import Measured

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation" / "rmcat.md"
ORDERINGS = Path(__file__).with_name("orderings.toml")
WORDS = {judging.HELD: "agrees", judging.MISSED: "**disagrees**", judging.OPEN: "**open**"}


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


def measured(ordering: dict[str, Any], seeds: int) -> dict[str, Measured]:
    """What an ordering is about, of each controller."""
    whole = cases.load()[ordering["case"]]
    bands = [{"why": ordering["says"], **ordering["band"]}]
    case = replace(whole, variants={"": whole.variants[ordering["variant"]]}, bands=bands)
    sets = [(path, str(value)) for path, value in ordering.get("set", {}).items()]
    other = ordering.get("controllers", {})
    candidates = [
        replace(one, controller=other.get(one.name, one.controller))
        for one in cases.candidates([], [])
    ]
    plan = running.Plan([case], candidates, seeds, sets)
    found = running.evaluate(running.Work.of(plan)).measured[case.id]
    return {one.candidate: one for one in found}


def agreement(every: Sequence[dict[str, Any]], seeds: int) -> str:
    """A row for each ordering: the means, and whether their difference is as the paper says."""
    found = [measured(ordering, seeds) for ordering in every]
    means = [{name: cell(one) for name, one in of.items()} for of in found]
    profiles = [name for name in found[0] if name != "gcc"]
    for profile in profiles:
        differences = []
        for ordering, of in zip(every, found, strict=True):
            more = (ordering["better"] == "gcc") != ordering.get("less", False)
            both = zip(of["gcc"].values, of[profile].values, strict=True)
            values = [gcc - nada for gcc, nada in both]
            band = {"least" if more else "most": 0.0}
            differences.append(Measured("", "", profile, "", band, values))
        judging.judge(differences, {"": True})
        for its, one in zip(means, differences, strict=True):
            # No difference is none in any direction.
            its[profile] += f", {WORDS[one.verdict if one.mean else judging.OPEN]}"
    lines = []
    for ordering, its in zip(every, means, strict=True):
        band = ordering["band"]
        what = f"{ordering['case']}: {band['of']}" + (f", {band['unit']}" if "unit" in band else "")
        what += f"; {ordering['cause']}" if "cause" in ordering else ""
        lines.append([what, ordering["better"], *its.values()])
    heads = ["", "better in the paper", *means[0]]
    return f"{tables.table(heads, lines)}\n\n{seeds} seeds."


def main() -> None:
    """Evaluate case by case, and write each table when it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--orderings", action="store_true")
    parser.add_argument("case", nargs="*")
    asked = parser.parse_args()
    if asked.orderings:
        every = tomllib.loads(ORDERINGS.read_text(encoding="utf-8"))["ordering"]
        alone = agreement([one for one in every if "cause" not in one], 10)
        # An interval that holds zero is no cause: more seeds make it narrower.
        causes = agreement([one for one in every if "cause" in one], 30)
        tables.fill(PAGE, {"orderings": alone, "causes": causes})
        return
    for case in cases.select(asked.case):
        plan = running.Plan([case], cases.candidates([], []), asked.seeds)
        found = running.evaluate(running.Work.of(plan))
        print(f"{case.id}: {showing.summary(found)} {found.cpu_s:.1f} CPU-s", flush=True)
        words = f"{case.about}\n\n{table(found.measured[case.id])}"
        tables.fill(PAGE, {case.id: f"{words}\n\n{asked.seeds} seeds."})


if __name__ == "__main__":
    main()
