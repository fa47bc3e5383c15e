"""Writes docs/performance.md from what was measured."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

from benches.peers import product, tables
from benches.peers.programs import ROOT, said
from benches.peers.results import Results

PAGE = ROOT / "docs" / "performance.md"
FIGURE = ROOT / "docs" / "images" / "performance.svg"


def page(results: Results, load: Sequence[float]) -> str:
    """The page of documentation."""
    return "\n".join(_lines(results, load))


def _lines(results: Results, load: Sequence[float]) -> Iterator[str]:
    yield HEAD
    yield tables.alone(results)
    yield ""
    yield tables.asked(results)
    yield PEERS
    yield tables.peers(results)
    yield NOTES
    yield tables.records(results)
    yield WATCHES
    yield tables.watches(results)
    yield GROWTH
    yield tables.growth(results)
    yield from _starts(results)
    yield BUILDS
    yield tables.builds(results)
    yield DIGESTS
    yield tables.digests(results)
    yield "\n## How it was made\n"
    yield "| | |\n|---|---|"
    for name, value in made(load).items():
        yield f"| {name} | {value} |"
    yield ""


def _starts(results: Results) -> Iterator[str]:
    yield "\n## To start, and a thousand calls\n"
    yield "| | wall | CPU | peak memory | asked |\n|---|---|---|---|---|"
    rows = {
        "`talkspurt --help`": ("start of --help", "0.3 s"),
        "a second of a call, `--json --no-report`": ("start of a second", "0.6 s"),
    }
    for words, (key, asked) in rows.items():
        if results.numbered(key):
            wall, cpu, peak = (results.middle(key, w) for w in ("wall_s", "cpu_s", "peak_mb"))
            met = "met" if wall <= float(asked.split()[0]) else "**not met**"
            yield f"| {words} | {wall:.2f} s | {cpu:.2f} s | {peak:.0f} MB | {asked}: {met} |"
    if study := results.done.get("study"):
        yield (
            f"| {product.CALLS} calls of 60 s as a study, on two cores, `--no-report` | "
            f"{study['wall_s']:.1f} s | {study['cpu_s']:.1f} s | {study['peak_mb']:.0f} MB | |"
        )
    walls = [one["wall_s"] for one in results.numbered("start of --help")]
    if walls:
        yield (
            f"\nMedians of {len(walls)}; `--help` took {min(walls):.2f} to {max(walls):.2f} s of "
            "wall time."
        )


def made(load: Sequence[float]) -> dict[str, str]:
    """With what, on what and when."""
    changed = said(["git", "status", "--porcelain", "--", ":(exclude)docs"])
    commit = f"`{said(['git', 'rev-parse', 'HEAD'])}`" + (
        " and changes in no commit" * bool(changed)
    )
    packages = said(
        ["dpkg-query", "-W", "-f", "${Package} ${Version}, ", "ns2", "libns3-dev", "valgrind"]
    )
    return {
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
        "machine": f"{processor()}, {os.cpu_count()} cores, Linux {platform.release()}",
        "load": f"{load[0]:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end",
        "talkspurt": f"{commit}, {said(['rustc', '--version'])}, as `make dist` builds",
        "peers": f"{packages.rstrip(', ')}; {said(['g++', '--version'])}",
        "Python": platform.python_version(),
    }


def processor() -> str:
    """What the kernel calls the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


HEAD = """\
# Speed

<!-- Written by `make bench-peers`; changes made here are lost. -->

The same work here, in ns-2 and in ns-3, one core each, counted in *packet-hops*: transmissions
begun on any link, of data and of acknowledgements. CPU is that of the whole process, user and
system, set-up included. The workloads: N hosts on the left, a router, a link, a router, N hosts
on the right, a flow from each to its opposite; access links of 100 Mbit/s, 1 ms and 1000 packets,
the link between of 20 ms. TCP has SACK, segments of 1000 bytes, an acknowledgement for each, an
initial window of 10 and a minimum RTO of 200 ms.

![Speed beside ns-2 and ns-3, and growth](images/performance.svg)

## Here

Medians of the runs below; instructions are counted by callgrind between two lengths of run. The
program is built as the wheel is that is given out ([how](#how-it-is-built)).
"""
PEERS = """
## Beside ns-2 and ns-3

Ours and theirs in turn; a ratio is theirs over ours of one pair, for the same simulated time, and
the table has the median with the least and the greatest. It counts only if hops agree within 3 %
and losses within a factor of 1.5 (of a cell: goodput within 5 %). *ns-2 lean* has only the packet
headers and the routes in use, *ns-2* those of a plain script.
"""
NOTES = """
* Noise: senders of bulk data are late by a uniform draw of up to a service time of the
  bottleneck, as hosts are (ns-2's `overhead_`, `jitter` here, in ns-3 a channel of our own).
  Without it the order of equal times settles who loses at a full queue
  ([why](validation/peers.md)); where it says no noise, they agree all the same.
* ns-3 is slow, so its runs are short, and so are ours beside it. It has no TFRC and no DCCP, and
  takes a minute and a half for a second of W5 with 1000 flows; both are left out. Its calls that
  pause begin with talk, as ours do, or runs so short would not agree.
* ns-2's hops come from one more run, with monitors, whose events are the same.
* Statistics of W2: delay, jitter, loss and MOS of each call here; delay, jitter and loss in ns-3's
  FlowMonitor. ns-2 counts losses of each call; for delay and jitter it has to be *traced* on the
  first and last link of each, and a second program, not counted here, to read the trace.
* W4 writes ns-2's trace here and in ns-2, and ns-3's ascii trace in ns-3.
* W6 in ns-3 is counted from when the stations saturate: association and ARP are not in it. Ours
  runs for more simulated seconds; the ratio is of one.

## W4 written otherwise

The CPU of W4 with its packets as pcapng (every link, 96 bytes of each packet, which hold all
headers, or the whole of it) or as Parquet (the table of one row per packet and hop), over that of
W4 with ns-2's trace, in pairs. Whole packets are four times as many bytes as the trace has.
`talkspurt run --set record.packets=true` has Python, its start, the count of packets beforehand,
the digest and all other tables beside it.
"""
WATCHES = """
## What recording costs

W1 with one probe at a time: *series* is what every `talkspurt run` keeps (accounts, series,
frames, events), the three after it are `record.gauges`, `record.sojourn` and `record.packets`
beside it, *digest* is the fingerprint of the run. Instructions between 2 and 3 s; CPU and memory
of 20 s, medians of three; bytes are memory beyond nothing recorded, per packet-hop.
"""
GROWTH = """
## Growth
"""
BUILDS = """
## How it is built

*Release* is what `cargo build --release` and `make setup` make; *as given out* is what `make dist`
makes of the wheel, and `make bench-peers` of this program: one unit, linked as a whole, and laid
out along what it was seen to do in training (profile-guided optimisation): the scenarios of the
project for the wheel, shorter runs or other sizes of these workloads for this program. Medians of
three runs. The rows of `talkspurt` and `talkspurt run` on this page are of a release build.
"""
DIGESTS = """
## Digests

What was measured is this: the digest of each workload, the same on any machine.
"""
