"""Results that were imported from several recordings of one call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from talkspurt.results.run_data import RunData

REAL_NS = 10**18
"""Clocks of recorded calls are beyond 2001; those of simulated ones begin at 0."""
MAX_STREAMS = 5
"""As many are named that have several names."""


@dataclass
class Recording:
    """A recording of a call.

    Attributes:
        title: the names of the files.
        files: their hashes.
        streams: the flow of each SSRC.
    """

    run: int
    title: str
    files: tuple[str, ...]
    begin_ns: int
    end_ns: float
    streams: Mapping[int, str]

    def is_of(self, other: Recording) -> bool:
        """Whether both have a stream in common, for most of the time of the shorter one."""
        both = min(self.end_ns, other.end_ns) - max(self.begin_ns, other.begin_ns)
        least = min(one.end_ns - one.begin_ns for one in (self, other))
        return self.streams.keys() & other.streams.keys() != set() and both > least / 2


@dataclass
class Calls:
    """The recordings of each call, in the order of the runs."""

    found: list[list[Recording]] = field(default_factory=list)

    @classmethod
    def of(cls, runs: Sequence[RunData]) -> Calls:
        """Those among these runs."""
        made = cls()
        for at, run in enumerate(runs):
            if (one := _recording(at, run)) is None:
                continue
            call = next((call for call in made.found if any(map(one.is_of, call))), None)
            if call is None:
                made.found.append([one])
            else:
                call.append(one)
        made.found = [call for call in made.found if len({one.files for one in call}) > 1]
        return made

    def apart(self) -> dict[int, str]:
        """The runs whose flows are not compared with those of the same name, and a mark for each.

        Those of one file are compared: they differ in what was assumed.
        """
        return {
            one.run: f" of recording {number} ({one.title})"
            for call in self.found
            for number, files in enumerate(dict.fromkeys(one.files for one in call), 1)
            for one in call
            if one.files == files and number > 1
        }

    def notes(self, labels: Sequence[str]) -> list[str]:
        """What the runs with these labels have in common."""
        return [_note(call, labels) for call in self.found]


def _recording(at: int, run: RunData) -> Recording | None:
    imported = run.manifest.get("imported", {})
    begin = imported.get("began_ns", 0)
    if not isinstance(begin, int) or begin < REAL_NS:
        return None
    streams = [
        (int(facts["ssrc"]), flow)
        for flow, facts in imported["flows"].items()
        if isinstance(facts.get("ssrc"), int | float)
    ]
    count = Counter(ssrc for ssrc, _ in streams)
    files = tuple(str(file["sha256"]) for file in imported["files"])
    end = begin + run.duration_s * 1e9
    alone = {ssrc: flow for ssrc, flow in streams if count[ssrc] == 1}
    return Recording(at, run.title, files, begin, end, alone)


def _note(call: list[Recording], labels: Sequence[str]) -> str:
    named = [f"{ssrc}: " + ", ".join(names) for ssrc, names in _names(call, labels).items()]
    more = len(named) - MAX_STREAMS
    named[MAX_STREAMS:] = [f"and {more} more"] if more > 0 else []
    runs = [labels[one.run] for one in call]
    files = len({one.files for one in call})
    told = (
        f"{', '.join(runs[:-1])} and {runs[-1]} record the same call in {files} files: between "
        "these, differences are those of where and how it was recorded, and none is best"
    )
    return f"{told}. One stream by its SSRC is {'; '.join(named)}." if named else f"{told}."


def _names(call: list[Recording], labels: Sequence[str]) -> dict[int, list[str]]:
    """By SSRC, the flows that have it, if their names differ."""
    found: dict[int, dict[str, str]] = {}
    for one in call:
        for ssrc, flow in one.streams.items():
            found.setdefault(ssrc, {})[f"{flow} of {labels[one.run]}"] = flow
    return {ssrc: [*names] for ssrc, names in found.items() if len({*names.values()}) > 1}
