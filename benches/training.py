"""Runs the project's and its networks' scenarios once, for ``make dist``.

The interpreter runs this with the instrumented wheel, whose profile guides the optimisation of the
next one.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

SCENARIOS = Path(__file__).resolve().parents[1] / "scenarios"


def main() -> None:
    """Run all scenarios in sequence.

    Raises:
        SystemExit: a run failed, or Ctrl-C.
    """
    files = sorted([*SCENARIOS.glob("*.toml"), *(SCENARIOS / "networks").glob("*.toml")])
    with tempfile.TemporaryDirectory() as out:
        for number, file in enumerate(files, 1):
            print(f"training {number}/{len(files)}: {file.name}", flush=True)
            command = [sys.executable, "-m", "talkspurt", "run", str(file), "--no-report", "--json"]
            done = subprocess.run(
                [*command, "--out", str(Path(out) / file.stem)],
                check=False, cwd=SCENARIOS.parent, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            if done.returncode:
                sys.exit(f"training failed: {file.name}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
