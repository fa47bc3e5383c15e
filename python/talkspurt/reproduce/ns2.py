"""Runs the studies' ns-2 scripts where ``ns`` is installed, and reads recorded values.

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
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talkspurt.reproduce import hops
from talkspurt.reproduce.sample import Value
from talkspurt.reproduce.study_file import FILES

if TYPE_CHECKING:
    import polars as pl

TIMEOUT_S = 600


class Ns2Error(RuntimeError):
    """ns-2 is missing, or a script failed; with details."""


class Script:
    """A study's script for ns-2."""

    def __init__(self, study: str) -> None:
        self.text = (FILES / f"{study}.tcl").read_text(encoding="utf-8")
        self.name = f"{study}.tcl"

    @property
    def sha256(self) -> str:
        """Identifies the script's version of recorded values."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @contextmanager
    def run(self, *arguments: object) -> Iterator[Path]:
        """Run it with these arguments; yields its trace, removed afterwards."""
        if not installed():
            raise Ns2Error("ns is not installed (Debian and Ubuntu: the package ns2)")
        with tempfile.TemporaryDirectory(prefix="talkspurt-ns2-") as folder:
            script, trace = Path(folder) / self.name, Path(folder) / "trace"
            script.write_text(self.text, encoding="utf-8")
            words = ["ns", str(script), str(trace), *map(str, arguments)]
            done = subprocess.run(
                words, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
            if done.returncode != 0 or not trace.is_file():
                last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no word"]
                raise Ns2Error(f"{' '.join(words[1:])}: {last[0]}")
            yield trace

    def hops(self, *arguments: object) -> pl.DataFrame:
        """The hops of a run with these arguments."""
        with self.run(*arguments) as trace:
            return hops.of_ns2(trace)


def installed() -> bool:
    """Whether ``ns`` can be run here."""
    return shutil.which("ns") is not None


def scripted(study: str) -> bool:
    """Whether a study has a script for ns-2."""
    return (FILES / f"{study}.tcl").is_file()


def measured(study: str) -> dict[str, Value]:
    """The study's rows, computed by ns-2 now."""
    return dict(import_module(f"talkspurt.reproduce.{study}").ns2(Script(study)))


def _file(study: str) -> dict[str, Any]:
    """The recorded values; empty without a script."""
    file = FILES / f"{study}.ns2.json"
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return found


def origin(study: str) -> str:
    """Where and when the values were recorded; empty without any."""
    found = _file(study)
    return f"{found['origin']}, {found['date']}" if found else ""


def beyond(study: str) -> dict[str, float]:
    """Recorded values besides rows, for reasons: computed by a study's ``ns2_beyond``."""
    return dict(_file(study).get("beyond", {}))


def recorded(study: str) -> dict[str, Value]:
    """The study's recorded ns-2 rows; empty without a script."""
    return dict(_file(study).get("values", {}))


def record(study: str) -> Path:
    """Run ns-2 and write its values next to the script."""
    values = measured(study)
    further = getattr(import_module(f"talkspurt.reproduce.{study}"), "ns2_beyond", None)
    query = ["dpkg-query", "-W", "-f=ns-2.35 (Debian ns2 ${Version})", "ns2"]
    version = "ns-2"
    if shutil.which(query[0]):
        found = subprocess.run(query, capture_output=True, text=True, check=False)
        version = found.stdout.strip() or version
    document = {
        "origin": f"{version}, {study}.tcl",
        "date": datetime.now(UTC).date().isoformat(),
        "script_sha256": Script(study).sha256,
        "values": {k: round(v, 9) if isinstance(v, float) else v for k, v in values.items()},
        **({"beyond": further(Script(study))} if further else {}),
    }
    file = Path(str(FILES / f"{study}.ns2.json"))
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(record(name))
