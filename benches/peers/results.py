"""Measurement results, saved after every step, with accessors for the page."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benches.cost import Cost
from benches.peers.compare import Counts, Ratio, ratio, unlike
from benches.peers.matches import Match
from benches.peers.programs import CELL_S


@dataclass(frozen=True)
class Step:
    """A task to run once; its result is stored under its key.

    Attributes:
        key: its name.
        guess_s: estimated duration, for the remaining time.
        work: runs it.
    """

    key: str
    guess_s: float
    work: Callable[[], Any]


@dataclass
class Results:
    """Results of completed steps, by key, for one machine and set of programs.

    Attributes:
        file: their location on disk.
        of: identifies machine and programs; other results are discarded.
        done: the result of each step.
    """

    file: Path
    of: str
    done: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def resumed(cls, file: Path, of: str) -> Results:
        """Results of an earlier run, if machine and programs match."""
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            kept = {}
        return cls(file, of, kept["done"] if kept.get("of") == of else {})

    def run(self, steps: Iterable[Step], tell: Callable[[Step, int, int, float], None]) -> None:
        """Run missing steps; ``tell`` gets the step, its position, their number, seconds left."""
        waiting = list({step.key: step for step in steps if step.key not in self.done}.values())
        guessed = sum(step.guess_s for step in waiting)
        began, past = time.monotonic(), 0.0
        for i, step in enumerate(waiting):
            took = time.monotonic() - began
            # Estimates assume an idle machine; after a while the actual speed is known.
            slow = took / past if past > 10 else 1.0
            tell(step, i, len(waiting), (guessed - past) * slow)
            self.done[step.key] = step.work()
            past += step.guess_s
            self.keep()

    def keep(self) -> None:
        """Save everything."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps({"of": self.of, "done": self.done}, indent=1), encoding="utf-8")
        part.replace(self.file)

    def pairs(self, match: Match) -> list[dict[str, Cost]]:
        """The pairs of a match."""
        return self.numbered(f"pair {match.key}")

    def numbered(self, key: str) -> list[Any]:
        """The results of all repetitions of a step."""
        return [value for name, value in self.done.items() if name.rpartition(" #")[0] == key]

    def middle(self, key: str, what: str) -> float:
        """The median of ``cpu_s``, ``wall_s`` or ``peak_mb`` over repetitions; NaN without any."""
        costs = self.numbered(key)
        return median(one[what] for one in costs) if costs else math.nan

    def outcome(self, match: Match) -> Outcome | None:
        """The outcome of a match, if there are a pair and the data to judge it."""
        pairs = self.pairs(match)
        there = pairs[0]["there"]["said"] if pairs else {}
        if match.peer.startswith("ns-2"):
            there = self.done.get(f"count {match.run} in ns-2")
        if not pairs or not there:
            return None
        here = pairs[0]["here"]["said"]
        return Outcome(match, pairs, here, with_loss(there))


def with_loss(said: Counts) -> Counts:
    """A peer's counts with the loss ratio."""
    if "drops" not in said:
        return said
    return {**said, "loss": said["drops"] / max(1, said["drops"] + said["core_packets"])}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a match.

    Attributes:
        match: the comparison.
        pairs: costs here and there.
        here: output of our run.
        there: output of the peer's run.
    """

    match: Match
    pairs: list[dict[str, Cost]]
    here: Counts
    there: Counts

    @property
    def seconds_here(self) -> int:
        """Simulated seconds here."""
        return CELL_S if "goodput_mbps" in self.there else self.match.seconds

    def cpu_s(self, side: str) -> list[float]:
        """CPU time of each run on one side; for a cell in ns-3 only the saturated part."""
        return [
            pair[side]["said"].get("saturated_cpu_s", pair[side]["cpu_s"]) for pair in self.pairs
        ]

    def ratio(self) -> Ratio:
        """The peer's CPU time over ours per simulated second."""
        here = [cpu / self.seconds_here for cpu in self.cpu_s("here")]
        there = [cpu / self.match.seconds for cpu in self.cpu_s("there")]
        return ratio(list(zip(here, there, strict=True)))

    def unlike(self) -> list[str]:
        """Why the ratio is invalid."""
        runs = {pair["there"]["said"].get("events") for pair in self.pairs}
        # ns-2's counts apply to the timed runs only if the runs were identical.
        others = runs - {self.there.get("events")}
        return unlike(self.here, self.there) + (["runs that differ"] if others else [])
