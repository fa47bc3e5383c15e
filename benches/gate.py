"""Fails if a hop costs more instructions than ``limits.toml`` permits: ``make bench-gate``.

Instruction counts do not depend on load, but vary slightly with the compiler and the C library:
hence the tolerance. ``make bench-gate ARGS=--update`` writes the current counts, for a commit that
states the reason.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benches import callgrind
from benches.cost import FailedError

FILE = Path(__file__).with_name("limits.toml")
UPDATE = "make bench-gate ARGS=--update"
LENGTHS = {"w1": (2, 3), "w2": (2, 4), "w2a": (2, 4), "w3": (2, 6), "w3d": (2, 4), "w7": (2, 4)}
"""Shorter than in ``make bench``: together they take less than a minute."""


@dataclass(frozen=True)
class Limits:
    """Limits on the cost of a hop.

    Attributes:
        tolerance: permitted excess as a share.
        rustc: the compiler used for the counts.
        instructions: per hop, by workload.
    """

    tolerance: float
    rustc: str
    instructions: dict[str, int]

    @classmethod
    def read(cls, file: Path = FILE) -> Limits:
        """Read the limits from a file."""
        return cls(**tomllib.loads(file.read_text(encoding="utf-8")))

    def exceeded(self, counts: Mapping[str, float], rustc: str) -> list[str]:
        """Exceeded limits, as text; empty if none."""
        found = []
        for name, count in counts.items():
            limit = self.instructions[name]
            if count > limit * (1 + self.tolerance):
                found.append(
                    f"{name}: {count:.0f} instructions a hop, {count / limit - 1:+.1%}; the limit "
                    f"is {limit} and {self.tolerance:.0%}"
                )
        if found and rustc != self.rustc:
            found.append(f"counted with {rustc}, the limits were made with {self.rustc}")
        return found

    def cheaper(self, counts: Mapping[str, float]) -> list[str]:
        """Counts so far below their limits that these can be lowered."""
        return [
            f"{name}: {count:.0f} instructions a hop, the limit is {self.instructions[name]}"
            for name, count in counts.items()
            if count < self.instructions[name] * (1 - self.tolerance)
        ]

    def text(self) -> str:
        """The content of the file."""
        counts = "".join(f"{name} = {count}\n" for name, count in self.instructions.items())
        return (
            "# Instructions that a packet-hop may cost (callgrind, x86-64 baseline, release), and\n"
            "# by what share more before the gate fails. A commit that raises a number says why.\n"
            f"# Written by `{UPDATE}`.\n"
            f'tolerance = {self.tolerance}\nrustc = "{self.rustc}"\n\n[instructions]\n{counts}'
        )


def main() -> int:
    """Count, then compare or update."""
    program, *words = sys.argv[1:]
    if not callgrind.there() or platform.machine() != "x86_64":
        print("instructions are counted with valgrind, on x86-64: nothing was checked")
        return 1 if os.environ.get("TALKSPURT_REQUIRE_VALGRIND") else 0
    counts = {
        name: callgrind.per_hop(program, name, lengths=lengths) for name, lengths in LENGTHS.items()
    }
    limits = Limits.read()
    rustc = compiler()
    for name, count in counts.items():
        print(f"{name}: {count:.0f} instructions a hop, limit {limits.instructions.get(name, '–')}")
    if words == ["--update"]:
        rounded = {name: round(count) for name, count in counts.items()}
        FILE.write_text(Limits(limits.tolerance, rustc, rounded).text(), encoding="utf-8")
        print(f"written: {FILE.name}")
        return 0
    if found := limits.exceeded(counts, rustc):
        print("\n".join(found), file=sys.stderr)
        print(f"if that is worth it: {UPDATE}, and say why in the commit", file=sys.stderr)
        return 1
    for line in limits.cheaper(counts):
        print(f"{line}; {UPDATE} lowers it")
    return 0


def compiler() -> str:
    """Name and version of the Rust compiler."""
    told = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False)
    return " ".join(told.stdout.split()[:2])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FailedError as error:
        sys.exit(str(error))
