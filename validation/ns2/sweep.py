#!/usr/bin/env python3
"""Long and lossy paths here and in ns-2.35: ratios of throughput, cell by cell.

    .venv/bin/python validation/ns2/sweep.py [--page]

Needs Debian's `ns2` and takes about five minutes. It writes `sweep.json` next to itself and fills
docs/validation/ns2.md from it; with `--page` only the latter. Every sentence of that section with a
limit is asserted on the stored results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from cases import BULK, TFRC, UDP, cbr, dccp, flow, looked, network, tcp

sys.path.append(str(Path(__file__).resolve().parents[1]))
from made import ROOT, line, now
from tables import fill

PAGE = ROOT / "docs" / "validation" / "ns2.md"
RESULTS = Path(__file__).with_name("sweep.json")

SEEDS = 5
RTTS_MS = (50, 300, 600)
LOSSES = (0.0, 0.01, 0.1, 0.2, 0.3)
TCPS = ("tahoe", "reno", "newreno", "sack")
WINDOWED = ("tahoe", "reno", "newreno")
TRANSPORTS: dict[str, dict[str, Any]] = {
    "UDP": UDP,
    **{name: tcp(name) for name in TCPS},
    **{f"{name}, ns-2's windows": tcp(name, window_rule="ns2") for name in WINDOWED},
    "SCTP": {"kind": "sctp"},
    "TFRC, profile ns2": TFRC,
    "CCID 2, profile ns2": dccp(2),
    "CCID 3, profile ns2": dccp(3),
}
RULES: dict[str, dict[str, Any]] = {
    "as in the table above": {},
    "window_rule = ns2": {"window_rule": "ns2"},
    "delayed_ack = true": {"delayed_ack": True},
    "initial_window = 10": {"initial_window": 10},
    "min_rto = 1s": {"min_rto": "1s"},
    "min_rto = 30s": {"min_rto": "30s"},
    "initial_ssthresh = 200": {"initial_ssthresh": 200},
}
"""Single rules of NewReno over the long path with a short queue."""

STARTS_MS = {20: range(100, 1100, 50), 120: range(100, 1100, 200)}
"""When TFRC begins beside CCID 3, in runs of so many seconds."""

Cell = dict[str, Any]


def beside(start: int) -> dict[str, Any]:
    """CCID 3, and TFRC so many milliseconds later."""
    return {"ccid3": flow(dccp(3), BULK), "tfrc": flow(TFRC, BULK, start=f"{start}ms")}


def path(
    flows: dict[str, Any], rtt_ms: float, duration: str, *,
    loss: float = 0.0, rate: str = "2Mbit/s", packets: int = 50,
) -> dict[str, Any]:  # fmt: skip
    """The network of the cases with this round-trip time and a DropTail queue of 50 packets."""
    queue = {"kind": "droptail", "packets": packets}
    made = network(flows, duration, queue=queue, loss=loss, rate=rate)
    made["links"]["core"]["delay"] = f"{rtt_ms / 2 - 2:g}ms"
    if rate != "2Mbit/s":
        for name in ("near", "far"):
            made["links"][name]["rate"] = "100Mbit/s"
    return made


def seconds(name: str, rtt_ms: int, loss: float) -> int:
    """Duration of a cell: longer if 100 s contain few losses."""
    return 400 if name != "UDP" and rtt_ms >= 300 and loss in (0.01, 0.1) else 100


def alone(name: str, transport: dict[str, Any]) -> dict[str, Any]:
    """One flow at the transport's full rate, or at half the core's rate over UDP."""
    source = cbr("1Mbit/s", "1000B") if name == "UDP" else BULK
    return {"flow": flow(transport, source)}


def measured(scenario: dict[str, Any], seeds: int) -> Cell:
    """Throughput of every flow here and in ns-2 under each seed, and incomparable runs."""
    from talkspurt import RunError
    from talkspurt.ns2.crosscheck import crosscheck
    from talkspurt.scenarios.source import read

    out: Cell = {name: {"here": [], "ns2": []} for name in scenario["flows"]}
    out["refused"] = []
    for seed in range(1, seeds + 1):
        try:
            found = crosscheck(read(scenario, seed=seed))
        except RunError as error:
            out["refused"].append([seed, str(error).strip()])
            continue
        for name in scenario["flows"]:
            row = found.value(name, "throughput_bps")
            out[name]["here"].append(row.here or 0.0)
            out[name]["ns2"].append(row.ns2 or 0.0)
    return out


def thresholds() -> Cell:
    """NewReno's slow-start thresholds in packets on the long path with a short queue, in order."""
    import talkspurt

    out: Cell = {"table": "thresholds"}
    for key, name in (("rfc", "newreno"), ("rule", "newreno, ns-2's windows")):
        scenario = path(alone(name, TRANSPORTS[name]), 300, "60s", rate="10Mbit/s")
        seen = talkspurt.run(scenario).gauges("flow").filter(side="from", gauge="ssthresh")
        out[key] = [round(value / 1000, 1) for value in seen["value"].to_list()]
    values = looked(scenario, "flow", "ssthresh_", 0.01, 2)
    out["ns2"] = [b for a, b in pairwise([0.0, *values]) if a != b]
    return out


def measure() -> Iterator[Cell]:
    """All cells."""
    yield thresholds()
    for name, transport in TRANSPORTS.items():
        for rtt in RTTS_MS:
            for loss in LOSSES:
                run = f"{seconds(name, rtt, loss)}s"
                scenario = path(alone(name, transport), rtt, run, loss=loss)
                cell = measured(scenario, SEEDS if loss else 1)
                yield {"table": "grid", "name": name, "rtt_ms": rtt, "loss": loss, **cell}
    for name, transport in TRANSPORTS.items():
        if name != "UDP":
            scenario = path(alone(name, transport), 300, "60s", rate="10Mbit/s")
            yield {"table": "short", "name": name, "duration": 60, **measured(scenario, 1)}
    for name in ("newreno", "newreno, ns-2's windows"):
        scenario = path(alone(name, TRANSPORTS[name]), 300, "300s", rate="10Mbit/s")
        yield {"table": "short", "name": name, "duration": 300, **measured(scenario, 1)}
    for name, rule in RULES.items():
        scenario = path(alone(name, tcp("newreno", **rule)), 300, "60s", rate="10Mbit/s")
        yield {"table": "rules", "name": name, **measured(scenario, 1)}
    for rtt in (50, 100, 300):
        for packets in (20, 50):
            for long, starts in STARTS_MS.items():
                runs = [
                    measured(path(beside(start), rtt, f"{long}s", packets=packets), 1)
                    for start in starts
                ]
                shares = {
                    name: {side: [run[name][side][0] for run in runs] for side in ("here", "ns2")}
                    for name in ("ccid3", "tfrc")
                }
                yield {
                    "table": "beside", "rtt_ms": rtt, "packets": packets, "duration": long,
                    **shares, "refused": [],
                }  # fmt: skip


def main() -> None:
    """Measures, unless only the page is requested, and fills the page."""
    if sys.argv[1:] != ["--page"]:
        cells = []
        for cell in measure():
            cells.append(cell)
            print(json.dumps(cell), flush=True)
        said = {
            "made": now(),
            "commit": line("git", "rev-parse", "HEAD"),
            "peer": line("dpkg-query", "-W", "-f", "${Package} ${Version}", "ns2"),
        }
        rows = ",\n".join(json.dumps(cell) for cell in cells)
        text = f'{{"said": {json.dumps(said)},\n"cells": [\n{rows}\n]}}\n'
        RESULTS.write_text(text, encoding="utf-8")
    from section import Sweep, parts

    fill(PAGE, parts(Sweep()))


if __name__ == "__main__":
    main()
