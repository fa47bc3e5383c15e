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
NOISE = "-noise"
MIN_SHARE = 0.8
"""Of a cluster's packets and bytes, which must arrive for its probe to count (libwebrtc)."""


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


def result(
    probes: list[events.Sent],
    arrivals: dict[int, int],
    order: events.Cluster,
    moved: dict[int, int],
) -> int | None:
    """What libwebrtc makes of a cluster if packets left some milliseconds later than logged."""
    there = [it for it in probes if it.number in arrivals]
    size = sum(it.bytes for it in there)
    if len(there) < int(order.packets * MIN_SHARE) or size < int(order.bytes * MIN_SHARE):
        return None
    departures = [(it.time_ms + moved.get(it.number, 0), it.bytes) for it in there]
    begin, end = min(departures)[0], max(departures)[0]
    last = next(bytes_ for time, bytes_ in departures if time == end)
    received = [(arrivals[it.number], it.bytes) for it in there]
    first, final = min(it[0] for it in received), max(it[0] for it in received)
    lead = next(bytes_ for time, bytes_ in received if time == first)
    if end <= begin or final <= first:
        return None
    send = (size - last) * 8_000_000 // (1000 * (end - begin))
    receive = (size - lead) * 8_000_000 // (final - first)
    return receive * 95 // 100 if receive < 0.9 * send else min(send, receive)


def moved(log: eventlog.EventLog) -> tuple[dict[str, int], dict[int, int]]:
    """How many clusters have the logged result as they are, or with other times; and these times.

    The first packets of a cluster and its last ones are tried up to a millisecond earlier or later.
    """
    packets = events.sent(log)
    orders = {it.id: it for it in events.clusters(log, packets)}
    arrivals = {
        number: time
        for told in events.feedback(log, packets)
        for number, time in told.results
        if time != -1
    }
    final = {row.id: row.bitrate_bps for row in log.events["probe_success"]}
    counts = {"as they are": 0, "moved": 0, "neither": 0}
    found: dict[int, int] = {}
    for id_, rate in final.items():
        probes = [it for it in packets if it.cluster == id_]
        there = [it for it in probes if it.number in arrivals]
        if not there:
            counts["neither"] += 1
            continue
        shifts = sorted(itertools.product((0, -1, 1), repeat=2), key=lambda it: sum(map(abs, it)))
        for early, late in shifts:
            move = {it.number: early for it in there if it.time_ms == there[0].time_ms}
            move |= {it.number: late for it in there if it.time_ms == there[-1].time_ms}
            got = result(probes, arrivals, orders[id_], move)
            if got is not None and abs(got - rate) <= 1 + rate // 10**6:
                counts["moved" if early or late else "as they are"] += 1
                found |= {number: 1000 * by for number, by in move.items() if by}
                break
        else:
            counts["neither"] += 1
    return counts, found


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
    shifts = {}
    for name, log in logs.items():
        counts, shifts[name] = moved(log)
        found[name] = {
            "late_p99_s": calls[name]["late"]["p99_s"],
            **compare(log, replay(program, log, Assumed())),
            "probes": counts,
            "moved": compare(log, replay(program, log, Assumed(packets_us=shifts[name]))),
        }
        print(name, json.dumps(found[name]), flush=True)
    variants = {}
    for variant, assumed in VARIANTS.items():
        every = [compare(log, replay(program, log, assumed)) for log in logs.values()]
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


def cells(it: dict[str, Any]) -> list[object]:
    """States and estimates of a row."""
    return [
        it["feedback"], share(it["states"], it["feedback"]),
        it["delay_updates"], share(it["delay_near"], it["delay_updates"]),
        it["updates"], share(it["near"], it["updates"]),
    ]  # fmt: skip


def total(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums of the counts."""
    return {key: sum(it[key] for it in rows) for key, one in rows[0].items() if type(one) is int}


def write(found: dict[str, Any], variants: dict[str, Any]) -> None:
    """Fill the page."""
    heads = (
        "feedback packets | states equal | delay-based updates | within 3 % | estimate's updates"
    )
    parts: dict[str, object] = {}
    for kind, is_kind in (("fake", False), ("noise", True)):
        names = [name for name in found if name.endswith(NOISE) == is_kind]
        rows = [
            [f"`{name.removesuffix(NOISE)}`", f"{1e3 * found[name]['late_p99_s']:.2f} ms",
             *cells(found[name])]
            for name in names
        ]  # fmt: skip
        if names:
            rows.append(["all", "", *cells(total([found[name] for name in names]))])
        parts[kind] = table(f"network | late, 99 % | {heads} | within 3 %", rows, "lrrrrrrr")
    parts["networks"] = table(
        "network | ", [[f"`{name}`", text] for name, (text, _) in networks.NETWORKS.items()]
    )
    every = total(list(found.values()))
    rows = [["as above", *cells(every)]]
    rows += [[name, *cells(one)] for name, one in variants.items()]
    times = total([one["moved"] for one in found.values()])
    rows.append(["probes' first and last packets 1 ms apart from the log", *cells(times)])
    parts["variants"] = table(f"assumed | {heads} | within 3 %", rows, "lrrrrrr")
    counts = total([one["probes"] for one in found.values()])
    parts["probes"] = (
        f"{counts['as they are']} of {sum(counts.values())} clusters with a logged result give it"
        f" with the logged times, {counts['moved']} more with the first or the last packet 1 ms"
        f" earlier or later, and {counts['neither']} do not"
    )
    fill(PAGE, parts)


if __name__ == "__main__":
    main()
