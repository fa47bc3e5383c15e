#!/usr/bin/env python3
"""The same experiments here and in ns-2.35: quality of agreement.

    .venv/bin/python validation/ns2/crosscheck.py [WORD ...]

Needs Debian's `ns2`. Fills the tables of docs/validation/ns2.md if no words select cases; those on
long and lossy paths are written by `sweep.py`, and that on random networks by `networks.py`. Takes
a few minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev

from cases import CASES, Case, looked

import talkspurt
from talkspurt.ns2 import script
from talkspurt.ns2.crosscheck import crosscheck
from talkspurt.scenarios.source import read

sys.path.append(str(Path(__file__).resolve().parents[1]))
from made import ROOT, line, now
from tables import fill, table

PAGE = ROOT / "docs" / "validation" / "ns2.md"


Sides = tuple[list[float], list[float]]
"""Here, and in ns-2."""
MEASURES = (
    "sent_packets", "received_packets", "lost_packets", "throughput_bps", "delay_mean_s",
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """Throughput and mean delay of all flows of a case under each seed; packets sent and lost."""

    throughput: Sides
    delay: Sides
    lost: list[int]
    sent: list[int]

    @property
    def ratio(self) -> float:
        """By how much our mean throughput is above ns-2's."""
        here, ns2 = map(mean, self.throughput)
        return here / ns2 - 1

    @property
    def noise(self) -> float:
        """Standard error of the throughput's ratio."""
        if len(self.throughput[0]) < 2:
            return 0.0
        return sum((stdev(side) / mean(side)) ** 2 / len(side) for side in self.throughput) ** 0.5


def compared(case: Case, seeds: int) -> Compared:
    """Both simulators under this many seeds."""
    out = Compared(([], []), ([], []), [0, 0], [0, 0])
    for seed in range(1, seeds + 1):
        found = crosscheck(read(case.scenario, seed=seed))
        for at, side in enumerate(("here", "ns2")):
            sent, received, lost, throughput, delay = (
                [getattr(found.value(name, measure), side) or 0 for name in case.scenario["flows"]]
                for measure in MEASURES
            )
            weighted = sum(v * w for v, w in zip(delay, received, strict=True))
            out.throughput[at].append(sum(throughput))
            out.delay[at].append(weighted / sum(received))
            out.lost[at] += int(sum(lost))
            out.sent[at] += int(sum(sent))
    return out


def within(case: Case, found: Compared) -> bool:
    """Whether a case agrees within its band."""
    here, ns2 = map(mean, found.delay)
    if case.band == 0:
        return found.lost[0] == found.lost[1] and found.ratio == 0 and abs(here - ns2) <= 1e-6
    return abs(found.ratio) <= case.band and abs(here / ns2 - 1) <= case.delay_band


def row(case: Case, found: Compared) -> list[str]:
    """A row of the page.

    Raises:
        AssertionError: the number of packets that leave together differs from the case's.
    """
    why = case.why
    if case.together is not None:
        same, until = together(case)
        assert same == case.together, f"{case.name}: {same} packets together, not {case.together}"
        alike = f"the first {same}" if same > 1 else ("the first" if same else "none")
        why = f"{alike} of {found.sent[0]} packets at the same instants"
        why += f", to {until:.3f} s; {case.why}" if same else f"; {case.why}"
    noise = f" ± {found.noise:.1%}" if found.noise else ""
    band = "exactly" if case.band == 0 else f"{case.band:.0%}, {case.delay_band:.0%}"
    return [
        case.name,
        *(f"{mean(side) / 1e3:,.1f}" for side in found.throughput),
        f"{found.ratio:+.2%}{noise}",
        *(f"{mean(side) * 1e3:.3f}" for side in found.delay),
        *(f"{lost} of {sent}" for lost, sent in zip(found.lost, found.sent, strict=True)),
        f"{band}: {'yes' if within(case, found) else '**no**'}",
        why,
    ]


ROUNDED = 2e-6
"""Permitted difference between a time and the trace, s."""


def departures(case: Case) -> tuple[list[float], list[float]]:
    """Departure times of packets with data, here and in ns-2."""
    result = talkspurt.run(case.scenario, set={"record.packets": True})
    hops = result.packets().filter(link="near", side="from").sort("number")
    made = script.write(read(case.scenario))
    (way,) = made.ways
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "case.tcl").write_text(made.text, encoding="utf-8")
        command = ["ns", "case.tcl", "case.tr"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with (Path(folder) / "case.tr").open(encoding="ascii") as trace:
            theirs = [at for at, event, here in sent(trace) if (event, here) == ("+", way.ends[0])]
    ours = hops.filter(hops["ip_bytes"] > SMALL_BYTES)["enqueued_s"].to_list()
    return ours, theirs


SMALL_BYTES = 120
"""Longer packets have data in these cases."""


def sent(trace: Iterable[str]) -> Iterator[tuple[float, str, int]]:
    """Times, events and places of the packets with data; for an SCTP packet, of its first chunk."""
    last = ""
    for event in trace:
        words = event.split()
        packet = f"{words[0]} {words[1]} {words[12 if words[4] == 'sctp' else 11]}"
        if int(words[5]) > SMALL_BYTES and packet != last:
            yield float(words[1]), words[0], int(words[2])
        last = packet


def together(case: Case) -> tuple[int, float]:
    """Number of packets with equal departure times before the first difference, and its time, s."""
    ours, theirs = departures(case)
    same = 0
    for here, there in zip(ours, theirs, strict=False):
        if abs(here - there) > ROUNDED:
            break
        same += 1
    return same, ours[same - 1] if same else 0.0


HEADS = (
    " | kbit/s here | ns-2 |  | delay here, ms | ns-2 | lost here | in ns-2 | band | explanation"
)


def parts(rows: list[list[str]], within_senders: list[list[str]]) -> dict[str, object]:
    """The tables of the page."""
    told = {
        "made": now(),
        "talkspurt": f"commit `{line('git', 'rev-parse', 'HEAD')}`",
        "peer": line("dpkg-query", "-W", "-f", "${Package} ${Version}", "ns2"),
    }
    return {
        "cases": table(HEADS, rows, "lrrrrrrrll"),
        "senders": table(" |  | here | ns-2", within_senders, "llrr"),
        "made": table(("", ""), told.items()),
    }


TCPS = [f"{name} with ns-2's windows, bulk, 1 % lost" for name in ("tahoe", "reno", "newreno")]
INSIDE = (
    *((name, "slow-start threshold, packets", "ssthresh", 1e-3, "ssthresh_") for name in TCPS),
    ("CCID 2, bulk, 1 % lost", "congestion window, packets", "cwnd_packets", 1, "cwnd_"),
    ("CCID 2, bulk, 1 % lost", "smoothed round-trip time, s", "srtt", 1, "srtt_"),
    ("CCID 3, bulk, 1 % lost", "loss event rate", "loss_event_rate", 1, "s_p_"),
    ("CCID 3, bulk, 1 % lost", "round-trip time, s", "srtt", 1, "s_rtt_"),
)
"""Cases, the quantity, our gauge and its scale, ns-2's variable."""


def inside(name: str, words: str, gauge: str, scale: float, variable: str) -> list[str]:
    """A row on the senders' path estimates, from 10 s to 3000 s."""
    case = next(case for case in CASES if case.name == name)
    scenario = {**case.scenario, "duration": "3000s"}
    (flow,) = case.scenario["flows"]
    there = mean(looked(scenario, flow, variable, 0.02, 10))
    seen = talkspurt.run(scenario).gauges(flow).filter(side="from", gauge=gauge)
    times, values = seen["time_s"].to_list(), seen["value"].to_list()
    end = 3000.0
    spans = [max(0.0, b - max(a, 10.0)) for a, b in pairwise([*times, end])]
    here = scale * sum(v * s for v, s in zip(values, spans, strict=True)) / sum(spans)
    return [name, words, f"{here:.4g}", f"{there:.4g}"]


def main() -> None:
    """Runs the cases and writes the page."""
    chosen = [case for case in CASES if all(word in case.name for word in sys.argv[1:])]
    rows = []
    for case in chosen:
        rows.append(row(case, compared(case, case.seeds)))
        print(rows[-1], flush=True)
    if len(chosen) == len(CASES):
        senders = [inside(*words) for words in INSIDE]
        fill(PAGE, parts(rows, senders))
        print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
