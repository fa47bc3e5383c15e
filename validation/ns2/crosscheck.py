#!/usr/bin/env python3
"""The same experiments here and in ns-2.35: quality of agreement.

    .venv/bin/python validation/ns2/crosscheck.py [WORD ...]

Needs Debian's `ns2`. Writes docs/validation/ns2.md if no words select cases; its section on long
and lossy paths is generated from the data stored by `sweep.py`, and that on random networks stays
as `networks.py` wrote it. Takes a few minutes.
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

import networks
from cases import CASES, Case
from section import section

import talkspurt
from talkspurt.ns2 import script
from talkspurt.ns2.crosscheck import crosscheck
from talkspurt.scenario import read

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "validation" / "ns2.md"


@dataclass(frozen=True)
class Compared:
    """The result of a case: throughput and delay of all its flows, packets sent and lost."""

    here: list[float]
    ns2: list[float]
    delay_here: list[float]
    delay_ns2: list[float]
    lost: tuple[int, int]
    sent: tuple[int, int]

    @property
    def ratio(self) -> float:
        """Our throughput over ns-2's."""
        return mean(self.here) / mean(self.ns2) - 1

    @property
    def delay_ratio(self) -> float:
        """Our mean delay over ns-2's."""
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
    """Both simulators under this many seeds."""
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
    """Whether a case agrees within its band."""
    if case.band == 0:
        apart = abs(mean(found.delay_here) - mean(found.delay_ns2))
        return found.lost[0] == found.lost[1] and found.ratio == 0 and apart <= 1e-6
    return abs(found.ratio) <= case.band and abs(found.delay_ratio) <= case.delay_band


def row(case: Case, found: Compared) -> str:
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
            why,
        ]
    ) + " |"  # fmt: skip


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
    for line in trace:
        words = line.split()
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


def page(rows: list[str], within_senders: list[str]) -> str:
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
directions. Throughput is that of IP packets of all flows, the delay that of the network, with the
standard error over the seeds where random numbers are drawn. The band is the permitted difference
in throughput and mean delay, and whether it is met; the last column explains what remains. Bands
were set after a first look, those with ns-2's windows before it, and none has been widened since.
*The first N packets at the same instants* are the packets with data that leave the sender in both
within two microseconds, up to the first that does not; their total and the time of the last are
given, and a different N makes the script fail that writes this page. `talkspurt crosscheck` does
the same with any scenario that ns-2 supports.

The bands are valid for this network, a round trip of 104 ms and at most 2 % of random loss, not for
other paths: [below](#long-and-lossy-paths) are round trips of 50 to 600 ms and up to 30 % of loss,
where some transports differ much more.

| | kbit/s here | ns-2 | | delay here, ms | ns-2 | lost here | in ns-2 | band | explanation |
|---|---:|---:|---:|---:|---:|---:|---:|---|---|
{chr(10).join(rows)}

Delays agree to the microsecond (the resolution of ns-2's trace) wherever each packet waits for the
same ones.

TCP's slow start is identical packet for packet, and so are the packets that its overshoot loses;
recoveries differ. Here `sack` uses proportional rate reduction (RFC 9937), ns-2's counts a pipe.

## Internal state

With random loss, means over 3000 s of the senders' path estimates, one run each. These rules of
ns-2's source explain the differences there were; the profile `ns2` has those of DCCP and TFRC,
`window_rule = "ns2"` those of TCP:

* Its CCID 2 grows in the round trip after a loss as in any other (`dccp_tcplike.cc`, `updateCwnd`
  before `lostOrMarkedData`); by RFC 4341 a window with a loss does not grow. Without this rule the
  mean window was 12.48 packets here.
* Its CCID 2 acknowledges a data packet after a hole like any other (`recv_packetRecv`; RFC 4340
  §11.3: SHOULD at once), and its Changes and Confirms of Ack Ratio wait for a packet that leaves
  anyway (`output`; RFC 4340 §6.6.1 permits this, and packets of their own, as under the other
  profiles). With windows of four packets every acknowledgement more saves timeouts: through losses
  of 5 and 10 % in both directions (2 Mbit/s, 100 ms, 24 runs of 300 s) ours carried 1.05 and 1.19
  times as much as ns-2 without these rules, 1.00 and 1.04 with the second alone, and carries 0.99
  and 1.01 with both.
* Its CCID 3 compares the four bits of the window counter (`dccp_tfrc.cc`, `tfrc_recv_updateLI`): a
  loss 16 to 20 quarters of a round trip after the last event's first counts to that event, as if
  it were 0 to 4. Without this rule the loss event rate was 0.0091 here.
* Its CCID 3 reports Loss Event Rate and no Loss Intervals, so that the receiver computes the rate
  of the first interval, from a round-trip time that it takes with each packet (`sampleRTT`).
* Its CCID 3 counts loss intervals that are missing as empty (`tfrc_calcImean`): after the first
  loss the average is a sixth of the interval that corresponds to the rate reached. Without this
  rule CCID 3 carried up to 3.8 times as much here beside other flows, in runs of a minute.
* Its TFRC averages the roots of round-trip times with the weight of the times, 0.95, infers a loss
  from one later packet, and reports with a packet instead of by a timer. Feedback does not change
  when the next packet leaves (`send_timer_`), except in slow start, where packets that approach a
  new rate one by one are not slowed by a round trip that grows (`nextpkt`). The receiver knows the
  sender's t_RTO. Beside one Reno on a queue of two seconds (311 kbit/s, 94 packets, no random
  loss) TFRC carried 0.11 times as much as in ns-2 without the last two rules; it carries 0.32
  times as much with them, and 0.63 if Reno has ns-2's windows, too. Packets leave at the same
  instants until the first loss. What remains is unexplained.
* Its TFRC averages the open loss interval with all closed ones while they are fewer than eight
  (`tfrc-sink.cc`, `est_loss_WALI`); by RFC 5348 §5.4 it takes the oldest's place, which comes back
  when it closes. So RFC 5348's rate falls by 6 % at an early loss event; ns-2's does not, loses
  again at once, and therefore has the shorter queue. No weight falls by more than half at a time
  (`minDiscountRatio_`; RFC 5348 §5.5: to a quarter). Both matter while there are few losses:
  without them the mean delay of a minute was 6.7 % longer here, and that of ten minutes 0.4 %.
* Its TCP adds 1/cwnd for each acknowledgement, and halves the window; the threshold has whole
  packets (`tcp.cc`, `opencwnd` and `slowdown`). Ours counts bytes, and halves what is in flight
  (RFC 5681 §3.1). Its recovery ends with the window that the loss left, ours with no more than the
  threshold (RFC 6582 §3.2). Its fast retransmission restarts the retransmission timer
  (`reset_rtx_timer`), ours lets it run (RFC 6298 §5): with a minimum timeout of less than two round
  trips, as here, this causes three times as many timeouts.

| | | here | ns-2 |
|---|---|---:|---:|
{chr(10).join(within_senders)}

{section()}

{random_networks()}

| | |
|---|---|
| made | {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC |
| talkspurt | commit `{words["commit"]}` |
| peer | {words["ns2"]} |
"""


def random_networks() -> str:
    """The section that `networks.py` has written."""
    page = PAGE.read_text(encoding="utf-8")
    text = page.partition(networks.BEGIN)[2].partition(networks.END)[0]
    return networks.BEGIN + text + networks.END


TCPS = [f"{name} with ns-2's windows, bulk, 1 % lost" for name in ("tahoe", "reno", "newreno")]
INSIDE = (
    *((name, "slow-start threshold, packets", "ssthresh", 1e-3, "ssthresh_") for name in TCPS),
    ("CCID 2, bulk, 1 % lost", "congestion window, packets", "cwnd_packets", 1, "cwnd_"),
    ("CCID 2, bulk, 1 % lost", "smoothed round-trip time, s", "srtt", 1, "srtt_"),
    ("CCID 3, bulk, 1 % lost", "loss event rate", "loss_event_rate", 1, "s_p_"),
    ("CCID 3, bulk, 1 % lost", "round-trip time, s", "srtt", 1, "s_rtt_"),
)
"""Cases, the quantity, our gauge and its scale, ns-2's variable."""
LOOK = """\
proc look {} {
    global ns a
    puts [$a(FLOW) set VARIABLE]
    $ns at [expr {[$ns now] + 0.02}] look
}
$ns at 10 look
$ns run"""


def inside(name: str, words: str, gauge: str, scale: float, variable: str) -> str:
    """A row on the senders' path estimates, from 10 s to 3000 s."""
    case = next(case for case in CASES if case.name == name)
    scenario = {**case.scenario, "duration": "3000s"}
    question = read(scenario)
    (flow,) = case.scenario["flows"]
    look = LOOK.replace("FLOW", flow).replace("VARIABLE", variable)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "case.tcl"
        file.write_text(script.write(question).text.replace("$ns run", look), encoding="utf-8")
        said = subprocess.run(
            ["ns", file, "/dev/null"], capture_output=True, text=True, check=True
        ).stdout
    there = mean(float(line) for line in said.splitlines() if line != script.END)
    seen = talkspurt.run(scenario).gauges(flow).filter(side="from", gauge=gauge)
    times, values = seen["time_s"].to_list(), seen["value"].to_list()
    end = 3000.0
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
        senders = [inside(*words) for words in INSIDE]
        PAGE.write_text(page(rows, senders), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
