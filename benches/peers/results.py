"""What was measured so far: kept on disk after every step, asked for by those who write of it."""

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
    """Something to run once; what comes of it is kept under its key.

    Attributes:
        key: what it is called.
        guess_s: how long it takes, roughly, for the time left.
        work: does it.
    """

    key: str
    guess_s: float
    work: Callable[[], Any]


@dataclass
class Results:
    """Steps done, by key, on one machine with one set of programs.

    Attributes:
        file: where they are kept.
        of: what they hold for; results of anything else are not taken up.
        done: what came of each step.
    """

    file: Path
    of: str
    done: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def resumed(cls, file: Path, of: str) -> Results:
        """What an earlier run left, if it is of the same."""
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            kept = {}
        return cls(file, of, kept["done"] if kept.get("of") == of else {})

    def run(self, steps: Iterable[Step], tell: Callable[[Step, int, int, float], None]) -> None:
        """Do what is not done; ``tell`` hears the step, its place, their number, seconds left."""
        waiting = list({step.key: step for step in steps if step.key not in self.done}.values())
        guessed = sum(step.guess_s for step in waiting)
        began, past = time.monotonic(), 0.0
        for i, step in enumerate(waiting):
            took = time.monotonic() - began
            # Guesses are for a quiet machine; after a while ours is known.
            slow = took / past if past > 10 else 1.0
            tell(step, i, len(waiting), (guessed - past) * slow)
            self.done[step.key] = step.work()
            past += step.guess_s
            self.keep()

    def keep(self) -> None:
        """Write everything down."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps({"of": self.of, "done": self.done}, indent=1), encoding="utf-8")
        part.replace(self.file)

    def pairs(self, match: Match) -> list[dict[str, Cost]]:
        """The pairs of a match."""
        return self.numbered(f"pair {match.key}")

    def numbered(self, key: str) -> list[Any]:
        """What came of all repetitions of a step."""
        return [value for name, value in self.done.items() if name.rpartition(" #")[0] == key]

    def middle(self, key: str, what: str) -> float:
        """The median of ``cpu_s``, ``wall_s`` or ``peak_mb`` over repetitions; NaN without any."""
        costs = self.numbered(key)
        return median(one[what] for one in costs) if costs else math.nan

    def outcome(self, match: Match) -> Outcome | None:
        """What came of a match, if there is a pair and what it needs to be judged."""
        pairs = self.pairs(match)
        there = pairs[0]["there"]["said"] if pairs else {}
        if match.peer.startswith("ns-2"):
            there = self.done.get(f"count {match.run} in ns-2")
        if not pairs or not there:
            return None
        here = pairs[0]["here"]["said"]
        return Outcome(match, pairs, here, with_loss(there))


def with_loss(said: Counts) -> Counts:
    """A peer's counts with the share that was dropped."""
    if "drops" not in said:
        return said
    return {**said, "loss": said["drops"] / max(1, said["drops"] + said["core_packets"])}


@dataclass(frozen=True)
class Outcome:
    """What came of a match.

    Attributes:
        match: what was compared.
        pairs: costs here and there.
        here: what a run here said.
        there: what a run there said.
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
        """CPU of each run on one side; of a cell in ns-3 only since it is saturated."""
        return [
            pair[side]["said"].get("saturated_cpu_s", pair[side]["cpu_s"]) for pair in self.pairs
        ]

    def ratio(self) -> Ratio:
        """How many times ours the peer's CPU is for a simulated second."""
        here = [cpu / self.seconds_here for cpu in self.cpu_s("here")]
        there = [cpu / self.match.seconds for cpu in self.cpu_s("there")]
        return ratio(list(zip(here, there, strict=True)))

    def unlike(self) -> list[str]:
        """Why the ratio does not count."""
        runs = {pair["there"]["said"].get("events") for pair in self.pairs}
        # What ns-2 counts is only true of the timed runs if they were the same.
        others = runs - {self.there.get("events")}
        return unlike(self.here, self.there) + (["runs that differ"] if others else [])
