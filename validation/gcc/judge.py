#!/usr/bin/env python3
"""Compares Chromium's GCC with ours, on what the RTC event logs of its calls say.

    python validation/gcc/judge.py

Builds and runs ``crates/proto/examples/gcc_replay.rs`` with the events of each log in logs/
(``events.py``), and writes judged.json and the tables of docs/validation/gcc.md.

A log has an update of the delay-based estimate, with the detector's state, whenever a feedback
packet changed either; so that it says the state after each feedback packet. It has an update of the
estimate itself, which it calls loss-based, whenever that changed, and else every 5 s. An update is
logged before the packet of RTCP that caused it:

* an update of the delay-based estimate is that of the next feedback packet;
* one of the estimate is that of the packet of RTCP of the same millisecond or the next one, or of
  the next regular call. Of several in one millisecond, the last one counts.
"""

from __future__ import annotations

import bisect
import gzip
import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

import events  # noqa: E402
import networks  # noqa: E402
from events import Assumed  # noqa: E402
from tables import fill, table  # noqa: E402

from talkspurt.importing.webrtc import eventlog  # noqa: E402

PAGE = ROOT / "docs" / "validation" / "gcc.md"
NOISE, WIRE = "-noise", "-wire"


class Decided(NamedTuple):
    """What our controller said after an event; rates are in bit/s, and -1 if there is none."""

    word: str
    time_us: int
    state: int
    target: int
    delay: int
    loss: int
    acknowledged: int
    clusters: tuple[int, ...]


def read(name: str) -> eventlog.EventLog:
    """The log of a call."""
    return eventlog.read(gzip.decompress((HERE / "logs" / f"{name}.rtc-event-log.gz").read_bytes()))


def build() -> Path:
    """The program that replays."""
    words = ["cargo", "build", "--quiet", "--release", "-p", "talkspurt-proto", "--example"]
    subprocess.run([*words, "gcc_replay"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "examples" / "gcc_replay"


def replay(program: Path, log: eventlog.EventLog, assumed: Assumed) -> list[Decided]:
    """What our controller decides on the events of a log."""
    text = "\n".join(events.lines(log, assumed)) + "\n"
    told = subprocess.run([program], input=text, check=True, capture_output=True, text=True).stdout
    found = []
    for line in told.splitlines():
        word, *rest = line.split()
        values = [int(it) for it in rest]
        found.append(Decided(word, *values[:6], tuple(values[6:])))
    return found


def near(ours: int, theirs: int) -> bool:
    """Whether two estimates agree."""
    return abs(ours - theirs) <= networks.NEAR * theirs


def compare(log: eventlog.EventLog, decided: list[Decided]) -> dict[str, Any]:
    """Counts of states and updates, and of those that are equal or near."""
    feedback = [it for it in decided if it.word == "feedback"]
    times = [it.time_us // 1000 for it in feedback]
    updates = list(log.events["delay_based_bwe_updates"])
    places, at = [], 0
    for update in updates:
        at = min(bisect.bisect_left(times, update.timestamp_ms, at), len(times) - 1)
        places.append(at)
        at += 1
    states, state = [], 1
    told = dict(zip(places, updates, strict=True))
    for place in range(len(feedback)):
        state = told[place].detector_state if place in told else state
        states.append(state - 1 == feedback[place].state)
    pairs = [(feedback[at].delay, it.bitrate_bps) for at, it in zip(places, updates, strict=True)]
    changes = [
        (it.detector_state - 1, feedback[at].state)
        for at, it, before in zip(places, updates, [None, *updates], strict=False)
        if before is not None and before.detector_state != it.detector_state
    ]
    return {
        "feedback": len(feedback),
        "states": sum(states),
        "changes": len(changes),
        "same_changes": sum(a == b for a, b in changes),
        "delay_updates": len(pairs),
        "delay_near": sum(itertools.starmap(near, pairs)),
        "delay_exact": sum(abs(a - b) <= 1 for a, b in pairs),
        **estimates(log, decided),
        "clusters": len(log.events["probe_clusters"]),
        "same_clusters": sum(
            a == b
            for a, b in zip(
                log.events["probe_clusters"]["bitrate_bps"],
                [rate for it in decided for rate in it.clusters],
                strict=False,
            )
        ),
    }


def estimates(log: eventlog.EventLog, decided: list[Decided]) -> dict[str, int]:
    """Counts of updates of the estimate."""
    last = {it.timestamp_ms: it.bitrate_bps for it in log.events["loss_based_bwe_updates"]}
    last.pop(events.began(log), None)
    rtcp: dict[int, int] = {}
    for place, it in enumerate(decided):
        if it.word != "process":
            rtcp[it.time_us // 1000] = place
    calls = [(it.time_us // 1000, at) for at, it in enumerate(decided) if it.word == "process"]
    pairs = []
    # Without regular calls, what follows is the next packet of RTCP.
    calls = calls or sorted(rtcp.items())
    for time, rate in last.items():
        place = rtcp.get(time, rtcp.get(time + 1))
        if place is None:
            place = calls[min(bisect.bisect_left(calls, (time, 0)), len(calls) - 1)][1]
        pairs.append((decided[place].target, rate))
    return {
        "updates": len(pairs),
        "near": sum(itertools.starmap(near, pairs)),
        "exact": sum(abs(a - b) <= 1 for a, b in pairs),
    }


def probed(log: eventlog.EventLog) -> dict[str, int]:
    """Clusters with results, and those of which as many packets had one as the log says.

    Each packet of a cluster has a result, from the one on with which 80 % of the packets and bytes
    that it wants have arrived.
    """
    every = events.sent(log)
    packets = {it.number: it for it in every}
    orders = {it.id: it for it in events.clusters(log, every)}
    logged = Counter([*log.events["probe_success"]["id"], *log.events["probe_failure"]["id"]])
    sizes: dict[int, list[int]] = {}
    results: Counter[int] = Counter()
    for told in events.feedback(log, every):
        there = [(arrived, packets[number]) for number, arrived in told.results if arrived != -1]
        for _, packet in sorted(there, key=lambda it: (it[0], it[1].time_ms, it[1].number)):
            if order := orders.get(packet.cluster):
                size = sizes.setdefault(order.id, [])
                size.append(packet.bytes)
                enough = len(size) >= int(0.8 * order.packets) and sum(size) >= 0.8 * order.bytes
                results[order.id] += enough
    same = sum(results[it] == count for it, count in logged.items())
    return {"probed": len(logged), "same_probed": same}


def by_kernel(name: str, log: eventlog.EventLog) -> dict[int, int]:
    """By how many microseconds packets left later than the log says, by the kernel (``wire.py``).

    Both are whole milliseconds, in which libwebrtc counts.
    """
    told = gzip.decompress((HERE / "logs" / f"{name}.sent.gz").read_bytes()).decode()
    times: dict[tuple[int, int], int] = {}
    for line in told.splitlines():
        if len(words := line.split()) == 3:
            time, ssrc, number = map(int, words)
            times.setdefault((ssrc, number), time // 1000)
    found, last = {}, 0
    for row in log.events["outgoing_rtp_packets"]:
        if row.transport_sequence_number >= 0:
            last = events.unwrapped(row.transport_sequence_number, last)
            time = times.get((row.ssrc, row.sequence_number), row.timestamp_ms)
            found[last] = 1000 * (time - row.timestamp_ms)
    return found


VARIANTS: dict[str, Assumed] = {
    "packets without IP and UDP": Assumed(more_bytes=-28),
    "packets with the tag of SRTP, 16 bytes": Assumed(more_bytes=16),
    "no packet belongs to a probe": Assumed(probes=False),
    "no receiver reports": Assumed(reports=False),
    "calls 12 ms later": Assumed(phase_us=12_000),
    "no calls every 25 ms": Assumed(calls=False),
    "feedback 1 ms earlier": Assumed(moved={"feedback": -1000}),
    "least rate 30 kbit/s": Assumed(least=30_000),
    "most rate 2.5 Mbit/s": Assumed(most=2_500_000),
    "start at 400 kbit/s": Assumed(start=400_000),
}
"""What else could be assumed."""


def main() -> None:
    """Judge all logs."""
    program = build()
    calls = json.loads((HERE / "calls.json").read_text())
    logs = {name: read(name) for name in calls}
    found: dict[str, Any] = {}
    for name, log in logs.items():
        found[name] = {
            "late_p99_s": calls[name]["late"]["p99_s"],
            **compare(log, replay(program, log, Assumed())),
            **probed(log),
        }
        if name.endswith(WIRE):
            later = by_kernel(name, log)
            times = Assumed(packets_us=later)
            found[name]["kernel"] = compare(log, replay(program, log, times))
            found[name] |= {"packets": len(later), "other_times": sum(map(bool, later.values()))}
        print(name, json.dumps(found[name]), flush=True)
    variants = {}
    judged = [log for name, log in logs.items() if not name.endswith(WIRE)]
    for variant, assumed in VARIANTS.items():
        every = [compare(log, replay(program, log, assumed)) for log in judged]
        variants[variant] = {key: sum(it[key] for it in every) for key in every[0]}
        print(variant, json.dumps(variants[variant]), flush=True)
    (HERE / "judged.json").write_text(
        json.dumps({"calls": found, "variants": variants}, indent=1) + "\n"
    )
    write(found, variants)


def share(part: int, whole: int) -> str:
    """A share in percent, bold below what is claimed."""
    if not whole:
        return "–"
    text = f"{100 * part / whole:.1f} %"
    return text if part >= networks.ESTIMATES * whole else f"**{text}**"


HEADS = (
    "feedback packets | states equal | changes of state | at the same packet"
    " | delay-based updates | within 3 % | updates | within 3 %"
)


def cells(it: dict[str, Any]) -> list[object]:
    """States and estimates of a row."""
    pairs = (("feedback", "states"), ("changes", "same_changes"), ("delay_updates", "delay_near"),
             ("updates", "near"))  # fmt: skip
    return [cell for whole, part in pairs for cell in (it[whole], share(it[part], it[whole]))]


def total(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums of the counts."""
    return {key: sum(it[key] for it in rows) for key, one in rows[0].items() if type(one) is int}


def write(found: dict[str, Any], variants: dict[str, Any]) -> None:
    """Fill the page."""
    kinds = {"fake": "", "noise": NOISE, "wire": WIRE}
    of = {kind: [it + end for it in networks.NETWORKS if it + end in found]
          for kind, end in kinds.items()}  # fmt: skip
    parts: dict[str, object] = {}
    for kind in ("fake", "noise"):
        rows = [
            [f"`{name.split('-')[0]}`", f"{1e3 * found[name]['late_p99_s']:.2f} ms",
             *cells(found[name])]
            for name in of[kind]
        ]  # fmt: skip
        rows.append(["all", "", *cells(total([found[name] for name in of[kind]]))])
        parts[kind] = table(f"network | late, 99 % | {HEADS}", rows, "lrrrrrrrrr")
    rows = []
    for name in of["wire"]:
        one, network = found[name], f"`{name.split('-')[0]}`"
        rows.append([network, "log", f"{1e3 * one['late_p99_s']:.2f} ms", *cells(one)])
        rows.append(["", "kernel", "", *cells(one["kernel"])])
    timed = [found[name] for name in of["wire"]]
    rows.append(["all", "log", "", *cells(total(timed))])
    rows.append(["", "kernel", "", *cells(total([one["kernel"] for one in timed]))])
    parts["wire"] = table(f"network | times of | late, 99 % | {HEADS}", rows, "llrrrrrrrrr")
    parts["networks"] = table(
        "network | ", [[f"`{name}`", text] for name, (text, _) in networks.NETWORKS.items()]
    )
    judged = [found[name] for kind in ("fake", "noise") for name in of[kind]]
    rows = [["as above", *cells(total(judged))]]
    rows += [[name, *cells(one)] for name, one in variants.items()]
    parts["variants"] = table(f"assumed | {HEADS}", rows, "lrrrrrrrr")
    later = sum(one["other_times"] for one in timed) / sum(one["packets"] for one in timed)
    parts["later"] = f"{100 * later:.0f} %"
    every = total([{**one, "packets": 0, "other_times": 0} for one in found.values()])
    parts["probed"] = f"{every['same_probed']} of {every['probed']}"
    missing = sum(one["clusters"] - one["same_clusters"] for one in judged)
    parts["clusters"] = f"{missing} of {sum(one['clusters'] for one in judged)}"
    fill(PAGE, parts)


if __name__ == "__main__":
    main()
