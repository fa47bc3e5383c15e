#!/usr/bin/env python3
"""Prague beside CUBIC at a DualPI2 queue: the ratio of their rates against RFC 9332 equation 10.

    validation/l4s/run.py [--seeds N]     # prints the table and writes docs/validation/l4s.md

A cell holds if the mean ratio over all seeds is within a factor of 1.4 of R_C / (1.22 R_L), with
the round-trip times that the flows measured; R_L is 25 ms or more, below which Prague's rate does
not depend on it (RFC 9332 C.2). In cells where CUBIC's mean window, by the drops that it had, is
above that of Reno (RFC 8312 equation 7), the equation does not speak of it: these stand apart.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

import talkspurt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tables

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "validation" / "l4s.md"
RATES = (4, 12, 40, 120, 200)
"""Mbit/s."""
ROUND_TRIPS = (5, 10, 25, 50, 100)
"""Without queues, ms."""
FACTOR = 1.4
TARGET = 0.025
"""Round-trip time below which Prague's rate does not depend on it, in s."""
BEGIN, END = 40, 120

SCENARIO = """
title = "Prague beside CUBIC"
duration = "{END}s"
measure = {{ from = "{BEGIN}s" }}

[record]
interval = "100ms"
gauges = true

[links.line]
from = "net"
to = "home"
rate = "{rate}Mbit/s"
delay = "{delay}us"
queue = {{ kind = "dualpi2", step_packets = {step} }}
back = {{ queue = {{ kind = "droptail", packets = 10000 }} }}

[flows.l4s]
from = "net"
to = "home"
start_spread = "1s"
transport = {{ kind = "tcp", controller = "prague", receive_buffer = "64MB", send_buffer = "64MB" }}
source = {{ kind = "bulk" }}

[flows.classic]
from = "net"
to = "home"
start_spread = "1s"
transport = {{ kind = "tcp", controller = "cubic", receive_buffer = "64MB", send_buffer = "64MB" }}
source = {{ kind = "bulk" }}
"""


def measures(rate: int, round_trip: int, seed: int) -> dict[str, float]:
    """What one run says."""
    text = SCENARIO.format(
        END=END, BEGIN=BEGIN, rate=rate, delay=round_trip * 500, step=int(rate < 24)
    )
    run = talkspurt.run(text, set={"seed": str(seed)})
    flows = {row["name"]: row for row in run.flows.to_dicts()}

    def srtt(flow: str) -> float:
        found = run.gauges(flow, "srtt").filter(pl.col("time_s") >= BEGIN)
        return found["value"].mean()

    classic = flows["classic"]
    return {
        "l4s": flows["l4s"]["goodput_bps"] / 1e6,
        "classic": classic["goodput_bps"] / 1e6,
        "r_l": srtt("l4s"),
        "r_c": srtt("classic"),
        "p": classic["lost_packets"] / classic["sent_packets"],
    }


def is_reno_friendly(p: float, rtt: float) -> bool:
    """Whether Reno's mean window is CUBIC's or more (RFC 9332 equation 5; RFC 8312 equation 7)."""
    return p > 0 and 1.22 / p**0.5 >= 1.054 * (rtt / p) ** 0.75


def main() -> None:
    """Run all cells and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = range(1, parser.parse_args().seeds + 1)
    lines, held, judged = [], 0, 0
    cells = [(rate, round_trip) for rate in RATES for round_trip in ROUND_TRIPS]
    results = []
    with ProcessPoolExecutor() as pool:
        for rate, round_trip in cells:
            each = list(pool.map(partial(measures, rate, round_trip), seeds))
            mean = {key: float(np.mean([one[key] for one in each])) for key in each[0]}
            ratio = mean["l4s"] / mean["classic"]
            expected = mean["r_c"] / (1.22 * max(mean["r_l"], TARGET))
            judges = is_reno_friendly(mean["p"], mean["r_c"])
            holds = 1 / FACTOR <= ratio / expected <= FACTOR
            judged, held = judged + judges, held + (judges and holds)
            verdict = ("held" if holds else "**missed**") if judges else "CUBIC, apart"
            lines.append([
                rate, round_trip, f"{mean['l4s']:.3g}", f"{mean['classic']:.3g}",
                f"{mean['r_l'] * 1e3:.1f}", f"{mean['r_c'] * 1e3:.1f}", f"{mean['p'] * 100:.3g}",
                f"{ratio:.2f}", f"{expected:.2f}", f"{ratio / expected:.2f}", verdict,
            ])  # fmt: skip
            results.append({"rate": rate, "round_trip": round_trip, "means": mean})
            print(" ".join(str(cell) for cell in lines[-1]), flush=True)
    heads = (
        "Mbit/s | ms | Prague | CUBIC | R_L, ms | R_C, ms | drops, % | ratio | equation 10"
        " | ratio of these | band"
    )
    note = f"{held} of {judged} cells held. Rates are goodputs in Mbit/s over {len(seeds)} seeds."
    tables.fill(PAGE, {"cells": f"{tables.table(heads, lines, 'r' * 10)}\n\n{note}"})
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
