"""Runs the scenarios of the project and of its networks once, for ``make dist``.

The interpreter that runs this has the wheel that sees what it does, and along that the next one is
laid out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

SCENARIOS = Path(__file__).resolve().parents[1] / "scenarios"


def main() -> None:
    """Run them, one after another.

    Raises:
        SystemExit: one failed, or Ctrl-C.
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
