"""Results that were imported from several recordings of one call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


def calls(runs: Sequence[RunData]) -> list[list[Recording]]:
    """The recordings of each call that several files have, in the order of the runs."""
    found: list[list[Recording]] = []
    for at, run in enumerate(runs):
        if (one := _recording(at, run)) is not None:
            call = next((call for call in found if any(map(one.is_of, call))), None)
            found.append([one]) if call is None else call.append(one)
    return [call for call in found if len({one.files for one in call}) > 1]


def apart(call: list[Recording]) -> dict[int, str]:
    """The runs whose flows are not compared with those of the same name, and a mark for each.

    Those of one file are compared: they differ in what was assumed.
    """
    files = [*dict.fromkeys(one.files for one in call)]
    places = {one.run: (files.index(one.files), one.title) for one in call}
    return {
        run: f" of recording {place + 1} ({title})"
        for run, (place, title) in places.items()
        if place
    }


def note(call: list[Recording], labels: Sequence[str]) -> str:
    """What the runs with these labels have in common, and the streams that have several names."""
    runs = [labels[one.run] for one in call]
    told = (
        f"{', '.join(runs[:-1])} and {runs[-1]} record the same call in "
        f"{len({one.files for one in call})} files: between these, differences are those of where "
        "and how it was recorded, and none is best"
    )
    flows: dict[int, list[tuple[str, str]]] = {}
    for one in call:
        for ssrc, flow in one.streams.items():
            flows.setdefault(ssrc, []).append((flow, labels[one.run]))
    named = [
        f"{ssrc}: " + ", ".join(f"{flow} of {run}" for flow, run in names)
        for ssrc, names in flows.items()
        if len({flow for flow, _ in names}) > 1
    ]
    more = len(named) - MAX_STREAMS
    named[MAX_STREAMS:] = [f"and {more} more"] if more > 0 else []
    return f"{told}. One stream by its SSRC is {'; '.join(named)}." if named else f"{told}."


def _recording(at: int, run: RunData) -> Recording | None:
    imported = run.manifest.get("imported", {})
    begin = imported.get("began_ns", 0)
    if not isinstance(begin, int) or begin < REAL_NS:
        return None
    facts = {flow: one.get("ssrc") for flow, one in imported["flows"].items()}
    ssrcs = {flow: int(it) for flow, it in facts.items() if isinstance(it, int | float)}
    count = Counter(ssrcs.values())
    alone = {ssrc: flow for flow, ssrc in ssrcs.items() if count[ssrc] == 1}
    files = tuple(str(file["sha256"]) for file in imported["files"])
    return Recording(at, run.title, files, begin, begin + run.duration_s * 1e9, alone)
