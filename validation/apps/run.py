"""Runs other programs over six networks, and writes what they found as NAME.json here.

    sudo .venv/bin/python validation/apps/run.py [--recorded FOLDER] [NAME ...]

NAME is one of the programs below, or one with the beginning of a case, such as "iperf3 clean"; the
other cases of its file are kept. Without names all are run, in 90 minutes. Programs that are not
installed are skipped with a message. FOLDER has mahimahi's recorded traces of
https://github.com/ravinet/mahimahi (GPL-3.0, therefore not copied here); without it there is no
network called lte. Needs root. `page.py` writes the page from the files.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import made  # noqa: E402
from networks import TooLateError  # noqa: E402

PROGRAMS = ("irtt", "iperf3", "measured", "usrsctp", "baresip", "ffmpeg", "chromium")


def main() -> None:
    """Measure with the programs that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recorded", type=Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    for name in asked.names or PROGRAMS:
        run(*name.partition(" ")[::2], asked.recorded)


def run(name: str, beginning: str, traces: Path | None) -> None:
    """Measure with one program; each case is written when it is complete."""
    program = importlib.import_module(name)
    if missing := [it for it in program.NEEDS if shutil.which(it) is None]:
        print(f"{name}: skipped, needs {', '.join(missing)}")
        return
    file = HERE / f"{name}.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    about = made.made(*HERE.glob("*.json"), made.ROOT / "docs/validation/apps.md")
    told = subprocess.run(program.VERSION, capture_output=True, text=True, check=False)
    about["program"] = (told.stdout or told.stderr).splitlines()[0].strip()
    for case, measure in program.cases(traces):
        if not case.startswith(beginning):
            continue
        load = os.getloadavg()[0]
        try:
            row = measure()
        except TooLateError:
            print(f"{name} {case}: not measured, the machine is too busy", flush=True)
            continue
        found[case] = {"made": {**about, "load": load}, **row}
        print(name, json.dumps(found[case]), flush=True)
        file.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
