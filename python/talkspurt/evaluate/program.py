"""Runs of a program that has registered external stacks, as ``examples/quinn`` does.

It is called as ``PROGRAM SCENARIO FOLDER``. It writes the folder of a run, prints the digest, and
ends with another status than 0 and the reason on standard error if it cannot run the scenario.
"""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from talkspurt._storage import file_access
from talkspurt.errors import BadInputError

FOLDER = "run"
"""Where the program writes, in the folder of its scenario."""


@dataclass(frozen=True)
class Ended:
    """What came out of a run that a program made; ``failed`` is why it could not."""

    digest: str
    failed: str = ""
    crashed: bool = False
    """It was ended by a signal, or wrote nothing, which says nothing of what it can run."""
    cpu_s: float = 0.0
    """Not known of a program."""


class ProgramJob:
    """A run under way in a process of its own."""

    def __init__(self, program: str, scenario: str, folder: Path) -> None:
        file_access.write_text(folder / "scenario.toml", scenario)
        self._said = folder / "said.txt"
        self._packets = folder / FOLDER / "packets.parquet"
        words = [program, str(folder / "scenario.toml"), str(folder / FOLDER)]
        none = subprocess.DEVNULL
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(words, stdin=none, stdout=none, stderr=said)

    def progress(self) -> float:
        """Not known."""
        return 0.0

    def wait(self, seconds: float, /) -> bool:
        """Wait at most so long; true when it has ended."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def cancel(self) -> None:
        """End it."""
        self._process.kill()

    def result(self) -> Ended:
        """What came out."""
        status = self._process.wait()
        said = self._said.read_text(encoding="utf-8", errors="replace")
        last = said.strip().rpartition("\n")[2]
        if not status and self._packets.is_file():
            return Ended("")
        crashed = status <= 0
        why = f"it ended with status {status}" if crashed or not last else last
        return Ended("", why if status else f"it wrote no {self._packets.name}", crashed)


def applied(scenario: Mapping[str, Any], sets: Sequence[tuple[str, Any]], seed: int) -> str:
    """A scenario as text with these overrides, whose values may be in TOML.

    Raises:
        BadInputError: if a path leads through something that is no table.
    """
    # In a copy in which no flow shares a table with another.
    scenario = tomllib.loads(tomli_w.dumps(scenario))
    for path, value in sets:
        *above, last = path.split(".")
        table: dict[str, Any] = scenario
        for key in above:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise BadInputError(f"--set {path}: {key} is no table")
        table[last] = valued(value)
    scenario["seed"] = seed
    return tomli_w.dumps(scenario)


def valued(value: object) -> object:
    """What is set, which may be in TOML."""
    if not isinstance(value, str):
        return value
    try:
        return tomllib.loads(f"it = {value}")["it"]
    except tomllib.TOMLDecodeError:
        return value
