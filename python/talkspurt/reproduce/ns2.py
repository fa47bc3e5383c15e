"""Runs the studies' ns-2 scripts where ``ns`` is installed, and records values of their rows.

Recorded values are in ``studies/NAME.ns2.json`` next to the scripts, with their origin, as written
by ``python -m talkspurt.reproduce.ns2 NAME``. Changing a script invalidates them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import polars as pl

from talkspurt.reproduce import formulas
from talkspurt.reproduce.hops import of_ns2
from talkspurt.reproduce.sample import Value
from talkspurt.reproduce.study_file import FILES, filled

TIMEOUT_S = 600


class Ns2Error(RuntimeError):
    """ns-2 is missing, or a script failed; with details."""


def installed() -> bool:
    """Whether ``ns`` can be run here."""
    return shutil.which("ns") is not None


def hops(study: str, *arguments: object) -> pl.DataFrame:
    """The hops of a run of a study's script; rates may be in bit/s, which ns-2 calls b."""
    if not installed():
        raise Ns2Error("ns is not installed (Debian and Ubuntu: the package ns2)")
    with tempfile.TemporaryDirectory(prefix="talkspurt-ns2-") as folder:
        script, trace = Path(folder) / f"{study}.tcl", Path(folder) / "trace"
        script.write_text((FILES / script.name).read_text(encoding="utf-8"), encoding="utf-8")
        words = [str(word).replace("bit/s", "b") for word in arguments]
        words = ["ns", str(script), str(trace), *words]
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        if done.returncode != 0 or not trace.is_file():
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no word"]
            raise Ns2Error(f"{' '.join(words[1:])}: {last[0]}")
        return of_ns2(trace)


def measured(study: str) -> dict[str, Value]:
    """The study's rows, computed by ns-2 now, from the runs ``[[ns2]]`` in its file."""
    parts = {}
    for run in filled(study, "ns2"):
        of = formulas.value(run.get("of", "lambda hops: hops"), formulas.names(study))
        parts[run["name"]] = of(hops(study, *run["arguments"]))
    both = (formulas.of_parts(study, profile, parts) for profile in ("stated", "inferred"))
    return {row: value for found in both for row, value in found.items()}


def record(study: str) -> Path:
    """Run ns-2 and write its values next to the script."""
    values = measured(study)
    further = getattr(formulas.module(study), "ns2_beyond", None)
    query = ["dpkg-query", "-W", "-f=ns-2.35 (Debian ns2 ${Version})", "ns2"]
    version = "ns-2"
    if shutil.which(query[0]):
        found = subprocess.run(query, capture_output=True, text=True, check=False)
        version = found.stdout.strip() or version
    document = {
        "origin": f"{version}, {study}.tcl",
        "date": datetime.now(UTC).date().isoformat(),
        "script_sha256": hashlib.sha256((FILES / f"{study}.tcl").read_bytes()).hexdigest(),
        "values": {k: round(v, 9) if isinstance(v, float) else v for k, v in values.items()},
        **({"beyond": further(partial(hops, study))} if further else {}),
    }
    file = Path(str(FILES / f"{study}.ns2.json"))
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(record(name))
