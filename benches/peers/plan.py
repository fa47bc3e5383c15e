"""All measurements, step by step."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benches import callgrind
from benches.cost import Cost, FailedError, cost
from benches.peers import product, programs
from benches.peers.matches import BARS, MATCHES, RECORDS, Match
from benches.peers.results import Step

BUILDS = {"release": programs.PLAIN, "guided": programs.BENCH}
BUILT = {"w1": 30, "w2": 30, "w3": 100, "w3d": 100}
"""Workloads and simulated seconds for comparing builds."""
WATCHES = (
    "nothing", "stats", "digest", "series", "gauges", "sojourn", "packets", "ns2", "pcapng"
)  # fmt: skip
GROWTH_FLOWS = (3, 10, 30, 100, 300, 1000)
GROWTH_S = (10, 30, 100, 300)
TIMES = 3
"""Repetitions of runs without a peer."""


def steps(matches: list[Match], *, pairs: int, all_else: bool) -> Iterator[Step]:
    """The matches and, optionally, all other measurements of the page."""
    for match in matches:
        yield from _match(match, pairs)
    if not all_else:
        return
    for match in RECORDS:
        for i in range(pairs):
            yield Step(f"pair {match.key} #{i}", match.guess_s, partial(_record, match))
    for name in ("w1", "w2", "w3", "w3d", "w5-1000", "w6-100"):
        seconds = {"w6-100": 100}.get(name, 10)
        words = [name, str(seconds), "--watch", "digest"]
        yield Step(f"digest {name}, {seconds} s", 2, partial(_digest, words))
    yield from _instructions()
    yield from _builds()
    yield from _alone()
    yield from product.steps()


def chosen(workloads: set[str], peers: set[str], shorten: float) -> list[Match]:
    """Matches with these workloads and peers (all if empty), with shortened times."""
    return [
        replace(m, seconds=max(2, round(m.seconds * shorten)), guess_s=m.guess_s * shorten)
        for m in MATCHES
        if (not workloads or m.workload in workloads) and (not peers or m.peer in peers)
    ]


def _match(match: Match, pairs: int) -> Iterator[Step]:
    if match.peer != "ns-3":
        counted = replace(match, peer="ns-2 lean")
        yield Step(f"count {match.run} in ns-2", match.guess_s, partial(_count, counted))
    for i in range(pairs):
        yield Step(f"pair {match.key} #{i}", match.guess_s, partial(_pair, match))


def _pair(match: Match) -> dict[str, Cost]:
    here = _ours(match)
    with tempfile.TemporaryDirectory() as folder:
        there = cost(programs.theirs(match, Path(folder)))
        there["written_bytes"] = sum(file.stat().st_size for file in Path(folder).iterdir())
    return {"here": here, "there": there}


def _count(match: Match) -> dict[str, Any]:
    """Hops and losses of ns-2, from a run with monitors; its event count verifies equality."""
    with tempfile.TemporaryDirectory() as folder:
        said: dict[str, Any] = cost(programs.theirs(match, Path(folder), count=True))["said"]
    return said


def _digest(words: list[str]) -> str:
    """The digest, which must be equal in both builds for valid results."""
    digests: list[str] = [cost([program, *words])["said"]["digest"] for program in BUILDS.values()]
    if len(set(digests)) > 1:
        raise FailedError(f"{' '.join(words)}: the builds differ, {' and '.join(digests)}")
    return digests[0]


def _ours(match: Match, watch: str | None = None) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        return cost(programs.ours(match, watch=watch, out=Path(folder)))


def _record(match: Match) -> dict[str, Cost]:
    watches = {
        "pcapng": "pcapng", "pcapng, 96 bytes of each": "pcapng-96", "Parquet": "packets",
    }  # fmt: skip
    watch = watches.get(match.peer)
    there = _ours(match, watch) if watch else product.parquet(match)
    return {"here": _ours(match), "there": there}


def _instructions() -> Iterator[Step]:
    if not callgrind.there():
        return
    bench = str(programs.BENCH)
    for name, lengths in callgrind.LENGTHS.items():
        yield Step(
            f"instructions {name}",
            25,
            partial(callgrind.per_hop, bench, name, lengths=lengths),
        )
    yield Step("instructions ns-2 lean", 25, _instructions_of_ns2)
    for watch in WATCHES:
        more = ("--watch", watch)
        yield Step(
            f"instructions while {watch}",
            15,
            partial(callgrind.per_hop, bench, "w1", lengths=(2, 3), more=more),
        )


def _builds() -> Iterator[Step]:
    for i in range(TIMES):
        for name, seconds in BUILT.items():
            for build, program in BUILDS.items():
                command = [str(program), name, str(seconds)]
                yield Step(f"{build} {name} #{i}", 0.5, partial(cost, command))
    if callgrind.there():
        for name in BUILT:
            work = partial(
                callgrind.per_hop, str(programs.PLAIN), name, lengths=callgrind.LENGTHS[name]
            )
            yield Step(f"release instructions {name}", 25, work)


def _instructions_of_ns2() -> float:
    counts: list[tuple[int, int]] = []
    for seconds in (1, 3):
        match = Match("w1", "ns-2 lean", seconds, 0)
        instructions, _ = callgrind.counted(programs.theirs(match, Path()))
        counts.append((instructions, _count(match)["hops"]))
    return (counts[1][0] - counts[0][0]) / (counts[1][1] - counts[0][1])


def _alone() -> Iterator[Step]:
    bench = str(programs.BENCH)
    for i in range(TIMES):
        for flows in GROWTH_FLOWS:
            command = [bench, f"w5-{flows}", "10"]
            yield Step(f"flows {flows} #{i}", flows / 500, partial(cost, command))
        for seconds in GROWTH_S:
            command = [bench, "w1", str(seconds)]
            yield Step(f"seconds {seconds} #{i}", seconds / 200, partial(cost, command))
        for watch in WATCHES:
            command = [bench, "w1", "20", "--watch", watch]
            yield Step(f"while {watch} #{i}", 1, partial(cost, command))


assert {match.workload for match in MATCHES} == set(BARS)
