#!/usr/bin/env python3
"""The same experiments here and in ns-2.35: what agrees, and how well.

    .venv/bin/python validation/ns2/crosscheck.py [WORD ...]

Needs Debian's `ns2`. Writes docs/validation/ns2.md, if no words choose among the cases. Ten minutes
or so.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev

from cases import CASES, Case
from windows import cost

import talkspurt
from talkspurt.ns2 import script
from talkspurt.ns2.crosscheck import crosscheck
from talkspurt.scenario import read

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "validation" / "ns2.md"


@dataclass(frozen=True)
class Compared:
    """What came of a case: throughput and delay of all its flows, packets sent and lost."""

    here: list[float]
    ns2: list[float]
    delay_here: list[float]
    delay_ns2: list[float]
    lost: tuple[int, int]
    sent: tuple[int, int]

    @property
    def ratio(self) -> float:
        """Throughput here beside ns-2's."""
        return mean(self.here) / mean(self.ns2) - 1

    @property
    def delay_ratio(self) -> float:
        """Mean delay here beside ns-2's."""
        return mean(self.delay_here) / mean(self.delay_ns2) - 1

    @property
    def noise(self) -> float:
        """Standard error of the throughput's ratio."""
        if len(self.here) < 2:
            return 0.0
        return (
            sum((stdev(side) / mean(side)) ** 2 / len(side) for side in (self.here, self.ns2))
            ** 0.5
        )


def compared(case: Case, seeds: int) -> Compared:
    """Both simulators under so many seeds."""
    out = Compared([], [], [], [], (0, 0), (0, 0))
    for seed in range(1, seeds + 1):
        found = crosscheck(read(case.scenario, seed=seed))
        names = list(case.scenario["flows"])
        rows = {m: [found.value(name, m) for name in names] for m in MEASURES}
        weights = [row.here or 0 for row in rows["received_packets"]]
        there = [row.ns2 or 0 for row in rows["received_packets"]]
        out.here.append(sum(row.here or 0 for row in rows["throughput_bps"]))
        out.ns2.append(sum(row.ns2 or 0 for row in rows["throughput_bps"]))
        delays = rows["delay_mean_s"]
        out.delay_here.append(_weighted([row.here or 0 for row in delays], weights))
        out.delay_ns2.append(_weighted([row.ns2 or 0 for row in delays], there))
        out = _more(out, rows)
    return out


MEASURES = (
    "sent_packets", "received_packets", "lost_packets", "throughput_bps", "delay_mean_s",
)  # fmt: skip


def _weighted(values: list[float], weights: list[float]) -> float:
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)


def _more(out: Compared, rows: dict) -> Compared:
    def both(measure: str, before: tuple[int, int]) -> tuple[int, int]:
        here = sum(int(row.here) for row in rows[measure])
        return before[0] + here, before[1] + sum(int(row.ns2) for row in rows[measure])

    lost, sent = both("lost_packets", out.lost), both("sent_packets", out.sent)
    return Compared(out.here, out.ns2, out.delay_here, out.delay_ns2, lost, sent)


def within(case: Case, found: Compared) -> bool:
    """Whether a case agrees as well as it has to."""
    if case.band == 0:
        apart = abs(mean(found.delay_here) - mean(found.delay_ns2))
        return found.lost[0] == found.lost[1] and found.ratio == 0 and apart <= 1e-6
    return abs(found.ratio) <= case.band and abs(found.delay_ratio) <= case.delay_band


def row(case: Case, found: Compared) -> str:
    """A row of the page."""
    noise = f" ± {found.noise:.1%}" if found.noise else ""
    band = "exactly" if case.band == 0 else f"{case.band:.0%}, {case.delay_band:.0%}"
    return "| " + " | ".join(
        [
            case.name,
            f"{mean(found.here) / 1e3:,.1f}",
            f"{mean(found.ns2) / 1e3:,.1f}",
            f"{found.ratio:+.2%}{noise}",
            f"{mean(found.delay_here) * 1e3:.3f}",
            f"{mean(found.delay_ns2) * 1e3:.3f}",
            f"{found.lost[0]} of {found.sent[0]}",
            f"{found.lost[1]} of {found.sent[1]}",
            f"{band}: {'yes' if within(case, found) else '**no**'}",
            case.why,
        ]
    ) + " |"  # fmt: skip


TOGETHER = [
    f"{kind}, bulk" for kind in ("tahoe", "reno", "newreno", "sack", "CCID 2", "CCID 3", "SCTP")
] + ["TFRC"]
ROUNDED = 2e-6
"""How far a time may be from a time in the trace, s."""


def departures(case: Case) -> tuple[list[float], list[float]]:
    """When packets with data left, here and in ns-2."""
    result = talkspurt.run(case.scenario, set={"record.packets": True})
    hops = result.packets().filter(link="near", side="from").sort("number")
    made = script.write(read(case.scenario))
    (way,) = made.ways
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "case.tcl").write_text(made.text, encoding="utf-8")
        subprocess.run(["ns", "case.tcl", "case.tr"], cwd=folder, check=True)
        with (Path(folder) / "case.tr").open(encoding="ascii") as trace:
            theirs = [at for at, event, here in sent(trace) if (event, here) == ("+", way.ends[0])]
    ours = hops.filter(hops["ip_bytes"] > SMALL_BYTES)["enqueued_s"].to_list()
    return ours, theirs


SMALL_BYTES = 120
"""What is longer has data in these cases."""


def sent(trace: Iterable[str]) -> Iterator[tuple[float, str, int]]:
    """Times, events and places of the packets with data; of an SCTP packet's chunks, the first."""
    last = ""
    for line in trace:
        words = line.split()
        packet = f"{words[0]} {words[1]} {words[12 if words[4] == 'sctp' else 11]}"
        if int(words[5]) > SMALL_BYTES and packet != last:
            yield float(words[1]), words[0], int(words[2])
        last = packet


def together(name: str) -> tuple[int, float, int]:
    """How many packets left at the same microsecond in both before one did not, and until when."""
    ours, theirs = departures(next(case for case in CASES if case.name == name))
    same = 0
    for here, there in zip(ours, theirs, strict=False):
        if abs(here - there) > ROUNDED:
            break
        same += 1
    return same, ours[same - 1] if same else 0.0, len(ours)


def page(
    rows: list[str], alike: list[tuple[str, int, float, int]], within_senders: list[str]
) -> str:
    """The page of documentation."""
    said = {
        "commit": ("git", "-C", str(ROOT), "rev-parse", "HEAD"),
        "ns2": ("dpkg-query", "-W", "-f", "${Package} ${Version}", "ns2"),
    }
    words = {
        key: subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        for key, command in said.items()
    }
    return f"""\
# The same experiments in ns-2

<!-- Written by validation/ns2/crosscheck.py; changes made here are lost. -->

Each scenario is run here and, as the script that `talkspurt export --to ns2-script` writes, in
ns-2.35; measures are read from ns-2's trace by the formulas of [the catalogue](../metrics.md). The
network is an access link of 10 Mbit/s and 1 ms, a core of 2 Mbit/s and 50 ms with a DropTail queue
of 20 packets unless another is named, and an access link again; losses on the core hit both
directions. Throughput is of IP packets and all flows, the delay that of the network, with what the
standard error over the seeds is where dice are drawn. The band says how far throughput and mean
delay may be apart, and whether they are within; the last column, why no nearer. Bands were set
after a first look, and are there to be kept. `talkspurt crosscheck` does the same with any scenario
that ns-2 can express.

| | kbit/s here | ns-2 | | delay here, ms | ns-2 | lost here | in ns-2 | band | what is left |
|---|---:|---:|---:|---:|---:|---:|---:|---|---|
{chr(10).join(rows)}

Delays agree to the microsecond that ns-2's trace rounds to, wherever the same packets wait for the
same ones.

## How long they are the same

One flow fills the core's queue. Packets with data that left the sender at the same microsecond in
both simulators before the first that did not.

| | packets | until, s | of |
|---|---:|---:|---:|
{chr(10).join(f"| {name} | {same} | {until:.3f} | {count} |" for name, same, until, count in alike)}

TCP's slow start is the same, and so are the packets that its overshoot loses; recoveries part them.
Here `sack` reduces its rate in proportion (RFC 9937), ns-2's counts a pipe. The others part in
their first round trips, some over the lengths of control packets (ns-2's COOKIE ECHO has 36 bytes).

## Inside

Where packets are lost at random, means over time of what the senders hold of the path, one run of
each. Four rules of ns-2's source account for what there was between the two:

* Its CCID 2 grows in the round trip after a loss as in any other (`dccp_tcplike.cc`, `updateCwnd`
  before `lostOrMarkedData`); by RFC 4341 a window with a loss in it earns nothing. The profile
  `ns2` does so too; without it this table had 12.48 packets here.
* Its CCID 3 compares the four bits of the window counter (`dccp_tfrc.cc`, `tfrc_recv_updateLI`): a
  loss 16 to 20 quarters of a round trip after the last event's first counts to that event, as if
  it were 0 to 4. So does the profile; without it the loss event rate was 0.0091 here.
* Its TFRC averages the roots of round-trip times with the weight of the times, 0.95, takes one
  later packet for proof of a loss, and reports with a packet instead of by a timer. So does the
  profile.
* Its TCP adds 1/cwnd for each acknowledgement, sends whole packets, and rounds half a window down
  to whole packets. Ours counts bytes (RFC 5681 §3.1). Windows alone, without any other rule of TCP,
  lose {-cost(tahoe=True):.1%} by that in Tahoe and {-cost(tahoe=False):.1%} in Reno
  (`windows.py`). Told to count acknowledgements (`windowOption_ 0`) ns-2's Tahoe carries
  {counting("tahoe")} more, as it should; its NewReno {counting("newreno")}, which is not explained.
  There is no profile for TCP.

| | | here | ns-2 |
|---|---|---:|---:|
{chr(10).join(within_senders)}

| | |
|---|---|
| made | {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC |
| talkspurt | commit `{words["commit"]}` |
| peer | {words["ns2"]} |
"""


def counting(controller: str) -> str:
    """What ns-2's TCP carries more if its window grows by one when as many were acknowledged."""
    case = next(case for case in CASES if case.name == f"{controller}, bulk, 1 % lost")
    (flow,) = case.scenario["flows"]
    carried: dict[int, list[float]] = {0: [], 1: []}
    for seed in range(1, 11):
        text = script.write(read(case.scenario, seed=seed)).text
        for option, counts in carried.items():
            told = text.replace("$ns run", f"$a({flow}) set windowOption_ {option}\n$ns run")
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "case.tcl").write_text(told, encoding="utf-8")
                subprocess.run(["ns", "case.tcl", "case.tr"], cwd=folder, check=True)
                with (Path(folder) / "case.tr").open(encoding="ascii") as trace:
                    lines = (line.split() for line in trace)
                    counts.append(
                        sum(w[0] == "r" and w[3] == "3" and int(w[5]) > SMALL_BYTES for w in lines)
                    )
    counted, added = carried[0], carried[1]
    noise = sum((stdev(side) / mean(side)) ** 2 / len(side) for side in (counted, added)) ** 0.5
    return f"{mean(counted) / mean(added) - 1:+.1%} ± {noise:.1%}"


INSIDE = (
    ("tahoe, bulk, 1 % lost", "congestion window, packets", "cwnd", 1e-3, "cwnd_"),
    ("reno, bulk, 1 % lost", "congestion window, packets", "cwnd", 1e-3, "cwnd_"),
    ("newreno, bulk, 1 % lost", "congestion window, packets", "cwnd", 1e-3, "cwnd_"),
    ("sack, bulk, 1 % lost", "congestion window, packets", "cwnd", 1e-3, "cwnd_"),
    ("CCID 2, bulk, 1 % lost", "congestion window, packets", "cwnd_packets", 1, "cwnd_"),
    ("CCID 2, bulk, 1 % lost", "smoothed round-trip time, s", "srtt", 1, "srtt_"),
    ("CCID 3, bulk, 1 % lost", "loss event rate", "loss_event_rate", 1, "s_p_"),
    ("CCID 3, bulk, 1 % lost", "round-trip time, s", "srtt", 1, "s_rtt_"),
)
"""Cases, what is looked at, our gauge and its scale, ns-2's variable."""
LOOK = """\
proc look {} {
    global ns a
    puts [$a(FLOW) set VARIABLE]
    $ns at [expr {[$ns now] + 0.02}] look
}
$ns at 10 look
$ns run"""


def inside(name: str, words: str, gauge: str, scale: float, variable: str) -> str:
    """A row of what senders hold of the path, from 10 s on."""
    case = next(case for case in CASES if case.name == name)
    question = read(case.scenario)
    (flow,) = case.scenario["flows"]
    look = LOOK.replace("FLOW", flow).replace("VARIABLE", variable)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "case.tcl"
        file.write_text(script.write(question).text.replace("$ns run", look), encoding="utf-8")
        said = subprocess.run(
            ["ns", file, "/dev/null"], capture_output=True, text=True, check=True
        ).stdout
    there = mean(map(float, said.split()))
    seen = talkspurt.run(case.scenario).gauges(flow).filter(side="from", gauge=gauge)
    times, values = seen["time_s"].to_list(), seen["value"].to_list()
    end = 300.0
    spans = [max(0.0, b - max(a, 10.0)) for a, b in pairwise([*times, end])]
    here = scale * sum(v * s for v, s in zip(values, spans, strict=True)) / sum(spans)
    return f"| {name} | {words} | {here:.4g} | {there:.4g} |"


def main() -> None:
    """Runs the cases and writes the page."""
    chosen = [case for case in CASES if all(word in case.name for word in sys.argv[1:])]
    rows = []
    for case in chosen:
        rows.append(row(case, compared(case, case.seeds)))
        print(rows[-1], flush=True)
    if len(chosen) == len(CASES):
        alike = [(name, *together(name)) for name in TOGETHER]
        senders = [inside(*words) for words in INSIDE]
        PAGE.write_text(page(rows, alike, senders), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
