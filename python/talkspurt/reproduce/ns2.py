"""ns-2's side: the studies' own scripts, run where ``ns`` is installed, and what they gave before.

The recorded values stand beside the scripts in ``studies/NAME.ns2.json`` with their origin; as
``python -m talkspurt.reproduce.record NAME`` writes them. A script that changed makes them void.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from talkspurt.reproduce.sample import Value
from talkspurt.reproduce.study_file import FILES

TIMEOUT_S = 600


class Ns2Error(RuntimeError):
    """ns-2 is not there, or a script failed; says which and how."""


class Script:
    """A study's script for ns-2."""

    def __init__(self, study: str) -> None:
        self.text = (FILES / f"{study}.tcl").read_text(encoding="utf-8")
        self.name = f"{study}.tcl"

    @property
    def sha256(self) -> str:
        """What recorded values are tied to."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @contextmanager
    def run(self, *arguments: object) -> Iterator[Path]:
        """Run it with these arguments; gives the trace it wrote, for as long as one looks at it."""
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


Measure = Callable[[Script], Mapping[str, Value]]


def installed() -> bool:
    """Whether ``ns`` can be run here."""
    return shutil.which("ns") is not None


def scripted(study: str) -> bool:
    """Whether a study has a script for ns-2."""
    return (FILES / f"{study}.tcl").is_file()


def measured(study: str) -> dict[str, Value]:
    """The study's rows as ns-2 gives them now."""
    module = import_module(f"talkspurt.reproduce.{study}")
    return dict(module.ns2(Script(study)))


def origin(study: str) -> str:
    """Where and when the recorded values were made; empty where there are none."""
    file = FILES / f"{study}.ns2.json"
    if not file.is_file():
        return ""
    found = json.loads(file.read_text(encoding="utf-8"))
    return f"{found['origin']}, {found['date']}"


def beyond(study: str) -> dict[str, float]:
    """What was recorded of ns-2 besides rows, for reasons: a study's ``ns2_beyond`` says what."""
    file = FILES / f"{study}.ns2.json"
    if not file.is_file():
        return {}
    found: dict[str, float] = json.loads(file.read_text(encoding="utf-8")).get("beyond", {})
    return found


def recorded(study: str) -> dict[str, Value]:
    """The study's rows as ns-2 gave them when they were recorded; none where it has no script."""
    file = FILES / f"{study}.ns2.json"
    if not file.is_file():
        return {}
    values: dict[str, Value] = json.loads(file.read_text(encoding="utf-8"))["values"]
    return values
