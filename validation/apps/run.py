"""Runs other programs over six networks, and writes what they found as NAME.json here.

    sudo .venv/bin/python validation/apps/run.py [--recorded FOLDER] [NAME ...]

NAME is one of the programs below; without names all are run, in about an hour. Programs that
are not installed are skipped with a message. FOLDER has mahimahi's recorded traces of
https://github.com/ravinet/mahimahi (GPL-3.0, therefore not copied here); without it there is no
network called lte. Needs root. `page.py` writes the page from the files.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import made  # noqa: E402

PROGRAMS = ("irtt",)


def main() -> None:
    """Measure with the programs that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recorded", type=Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    for name in asked.names or PROGRAMS:
        program = importlib.import_module(name)
        if missing := program.is_there():
            print(f"{name}: skipped, {missing}")
            continue
        before = {**made.made(HERE, made.ROOT / "docs/validation/apps.md"), "load": os.getloadavg()}
        found = {"made": before, "rows": program.measure(asked.recorded)}
        (HERE / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
