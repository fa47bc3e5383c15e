#!/usr/bin/env python3
"""Mutates a sample of the lines of `proto` one by one, and checks whether a test fails.

    validation/mutants/run.py [--of 100] [--shard 0]

Needs `cargo-mutants` (`cargo install cargo-mutants`). Tries every `--of`-th mutant, from number
`--shard`, so that the sample covers all files; a hundred take about half an hour on two cores.
Writes docs/validation/mutants.md. An interrupted run writes its partial results.
"""

import argparse
import datetime
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "validation" / "mutants.md"


def wilson(caught: int, tried: int) -> tuple[float, float]:
    """Wilson's interval of a proportion, at 95 %."""
    z, share = 1.96, caught / tried
    middle = share + z * z / (2 * tried)
    half = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    return (middle - half) / (1 + z * z / tried), (middle + half) / (1 + z * z / tried)


def output(*words: str) -> str:
    """The output of a command."""
    return subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def page(outcomes: list[dict], of: int) -> str:
    """The page of documentation."""
    kinds = Counter(outcome["summary"] for outcome in outcomes)
    caught = kinds["CaughtMutant"] + kinds["Timeout"]
    missed = [o["scenario"]["Mutant"] for o in outcomes if o["summary"] == "MissedMutant"]
    tried = caught + len(missed)
    low, high = wilson(caught, tried)
    lines = [
        "# Mutation testing",
        "",
        "<!-- Written by validation/mutants/run.py; changes made here are lost. -->",
        "",
        "Do the tests of `proto` detect a wrong line? `cargo-mutants` changes one (another",
        "comparison, another constant, an empty function) and runs all tests; a mutant that no",
        f"test detects survives. A sample: every {of}th mutant of the crate, over all of its",
        "files.",
        "",
        "| | |",
        "|---|---|",
        f"| made | {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC |",
        f"| talkspurt | commit `{output('git', 'rev-parse', 'HEAD')}` |",
        f"| cargo-mutants | {output('cargo', 'mutants', '--version')} |",
        f"| tried | {tried}, and {kinds['Unviable']} that did not compile |",
        f"| detected | {caught}, of them {kinds['Timeout']} by timeout |",
        f"| **score** | **{caught / tried:.0%}** (95 % interval {low:.0%} to {high:.0%}) |",
        "",
        "Survivors:",
        "",
        *[f"* `{mutant['name']}`" for mutant in missed],
        "",
        "Some have no observable effect: a comparison at a value that does not occur, an arm",
        "equivalent to the next one.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Tries the sample and writes the page."""
    ask = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ask.add_argument("--of", type=int, default=100, help="try every OF-th mutant")
    ask.add_argument("--shard", type=int, default=0, help="beginning with this one")
    asked = ask.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        words = ["cargo", "mutants", "--package", "talkspurt-proto", "--sharding", "round-robin"]
        words += ["--shard", f"{asked.shard}/{asked.of}", "--timeout", "60", "--output", folder]
        try:
            subprocess.run(words, cwd=ROOT, check=False)
        except KeyboardInterrupt:
            print("interrupted: what was tried so far is written", file=sys.stderr)
        told = json.loads((Path(folder) / "mutants.out" / "outcomes.json").read_text())
    outcomes = [o for o in told["outcomes"] if o["scenario"] != "Baseline"]
    if not outcomes:
        sys.exit("no mutant was tried: the tests fail without any change, or none was reached")
    PAGE.write_text(page(outcomes, asked.of), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
