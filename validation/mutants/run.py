#!/usr/bin/env python3
"""Mutates a sample of the lines of `proto` one by one, and checks whether a test fails.

    validation/mutants/run.py [--of 100] [--shard 0]

Needs `cargo-mutants` (`cargo install cargo-mutants`). Tries every `--of`-th mutant, from number
`--shard`, so that the sample covers all files; a hundred take about half an hour on two cores.
Fills docs/validation/mutants.md. An interrupted run writes its partial results.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
from made import ROOT, line, now
from tables import fill, table

PAGE = ROOT / "docs" / "validation" / "mutants.md"


def wilson(caught: int, tried: int) -> tuple[float, float]:
    """Wilson's interval of a proportion, at 95 %."""
    z, share = 1.96, caught / tried
    middle = share + z * z / (2 * tried)
    half = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    return (middle - half) / (1 + z * z / tried), (middle + half) / (1 + z * z / tried)


def parts(outcomes: list[dict], of: int) -> dict[str, object]:
    """The generated parts of the page."""
    kinds = Counter(outcome["summary"] for outcome in outcomes)
    caught = kinds["CaughtMutant"] + kinds["Timeout"]
    missed = [o["scenario"]["Mutant"] for o in outcomes if o["summary"] == "MissedMutant"]
    tried = caught + len(missed)
    low, high = wilson(caught, tried)
    told = {
        "made": now(),
        "talkspurt": f"commit `{line('git', 'rev-parse', 'HEAD')}`",
        "cargo-mutants": line("cargo", "mutants", "--version"),
        "tried": f"{tried}, and {kinds['Unviable']} that did not compile",
        "detected": f"{caught}, of them {kinds['Timeout']} by timeout",
        "**score**": f"**{caught / tried:.0%}** (95 % interval {low:.0%} to {high:.0%})",
    }
    survivors = "\n".join(f"* `{mutant['name']}`" for mutant in missed)
    return {"of": of, "score": table(("", ""), told.items()), "survivors": survivors}


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
    fill(PAGE, parts(outcomes, asked.of))
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
