#!/usr/bin/env python3
"""RFC 8867 §5.1 with NADA and GCC, judged by `bands.toml`.

Both base delays, both ways of changing the capacity.

    validation/rmcat/run.py [--seeds N]     # prints the table and writes docs/validation/rmcat.md

Rates and delays are computed from each packet at the bottleneck.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats

import talkspurt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tables

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "validation" / "rmcat.md"
CASE = tomllib.loads((HERE / "bands.toml").read_text())["5-1"]
PHASES = [(float(at.rstrip("s")), rate * 1e6) for at, rate in CASE["capacity"]]
END = 99.0
"""When the media end (RFC 8867 §5.1)."""
SETTLING = 15.0
"""Seconds of a phase before it is judged."""

VIDEO_MAX, VIDEO_PACKET, AUDIO = 1.5e6, 1200, 20e3
"""The sources' highest rate in IP packets: RTP's rate, with UDP and IP headers of each packet."""
MOST = VIDEO_MAX * (VIDEO_PACKET + 40) / (VIDEO_PACKET + 12) + AUDIO * 78 / 50

CONTROLLERS = {
    "nada (rfc8698)": '{ kind = "nada", profile = "rfc8698" }',
    "nada (ns3-rmcat)": '{ kind = "nada", profile = "ns3-rmcat" }',
    "gcc": '{ kind = "gcc", max = "1600kbit/s" }',
}
"""GCC's `max` is the highest rate of the encoder with headers."""


def scenario(case: dict, seed: int) -> tuple[str, dict[str, str]]:
    """The scenario of a case, and what a seed changes in it."""
    changes = {
        "seed": str(seed),
        "links.bottleneck.delay": f'"{case["delay"]}"',
        "flows.video.controller": CONTROLLERS[case["controller"]],
        "record": "{ packets = true }",
    }
    text = (HERE / "5-1.toml").read_text()
    if case["by"] == "traffic":
        # The link has 4 Mbit/s, and a source without control takes 4 − Y·r of them (§5.1).
        changes["links.bottleneck.rate"] = '"4Mbit/s"'
        changes["links.bottleneck.steps"] = "[]"
        ends = [at for at, _ in PHASES[1:]] + [100.0]
        for number, ((at, rate), end) in enumerate(zip(PHASES, ends, strict=True)):
            payload = (4e6 - rate) * 972 / 1000
            text += f"""
[flows.load-{number}]
from = "sender"
to = "receiver"
start = "{at}s"
stop = "{end}s"
transport = {{ kind = "udp" }}
source = {{ kind = "cbr", rate = "{payload:.0f}bit/s", packet = "972B" }}
"""
    return text, changes


def measures(case: dict, seed: int) -> dict[str, float]:
    """What one run says of each band."""
    text, changes = scenario(case, seed)
    packets = (
        talkspurt.run(text, set=changes)
        .packets()
        .filter(
            pl.col("flow").is_in(["video", "audio"])
            & (pl.col("side") == "from")
            & (pl.col("link") == "bottleneck")
        )
    )
    bits = packets["ip_bytes"].to_numpy() * 8
    sent = packets["enqueued_s"].to_numpy()
    received = packets["received_s"].to_numpy()
    lost = np.isnan(received)
    queueing = packets["dequeued_s"].to_numpy() - sent

    def rate(times: np.ndarray, begin: float, end: float) -> float:
        return float(bits[(times >= begin) & (times < end)].sum() / (end - begin))

    found: dict[str, float] = {}
    ends = [at for at, _ in PHASES[1:]] + [END]
    falls = [
        at
        for (at, rate_), (_, before) in zip(PHASES[1:], PHASES[:-1], strict=True)
        if rate_ < before
    ]
    for number, ((begin, capacity), end) in enumerate(zip(PHASES, ends, strict=True), 1):
        most = min(capacity, MOST)
        judged = begin + SETTLING if end - begin > SETTLING else begin
        mean = rate(received, judged, end)
        found[f"goodput {number}"] = mean / most
        each = [rate(received, at, at + 1) for at in np.arange(judged, end - 1 + 1e-9)]
        inside = [abs(one / mean - 1) <= 0.15 for one in each]
        left = sum(a and not b for a, b in pairwise(inside))
        found[f"oscillation {number}"] = left * 10 / (end - judged)
    calm = np.ones(len(sent), dtype=bool)
    kept = np.ones(len(sent), dtype=bool)
    for at in falls:
        calm &= (sent < at) | (sent >= at + 5)
        kept &= (sent < at) | (sent >= at + 2)
        capacity = min(dict(PHASES)[at], MOST)
        after = np.arange(at, at + 20, 0.1)
        below = [one for one in after if rate(sent, one, one + 1) <= capacity]
        found["retreat"] = (below[0] if below else at + 20) - at
    found["queue"] = float(np.quantile(queueing[calm & ~np.isnan(queueing)], 0.95) * 1e3)
    found["loss"] = float(lost[kept].mean())
    return found


def verdict(name: str, low: float, high: float) -> str:
    """Whether an interval lies inside the band of a measure."""
    band = CASE[name.split()[0]]
    least = band.get("least", -np.inf)
    most = band.get("most", band.get("most_ms", band.get("most_s", np.inf)))
    if least <= low and high <= most:
        return "held"
    return "missed" if high < least or low > most else "open"


def cell(row: dict) -> str:
    """Mean, interval and verdict of a measure; what is not held stands out."""
    text = f"{row['mean']:.3g} ± {row['half']:.1g}"
    return text if row["verdict"] == "held" else f"**{text}, {row['verdict']}**"


def table(results: list[dict]) -> str:
    """The table of the page."""
    columns = {
        **{f"goodput {n}": f"goodput / C, phase {n}" for n in range(1, 5)},
        "queue": "queue p95, ms",
        "loss": "loss",
        "retreat": "retreat, s",
    }
    lines = []
    for case in results:
        rows = case["measures"]
        swings = max((rows[f"oscillation {n}"] for n in range(1, 5)), key=lambda row: row["mean"])
        head = f"{case['controller']}, {case['delay']}, {case['by']}"
        lines.append([head, *(cell(rows[name]) for name in columns), cell(swings)])
    heads = ["controller, delay, capacity by", *columns.values(), "oscillation"]
    seeds = results[0]["seeds"]
    note = (
        f"Means over {seeds} seeds with 95 % intervals; the oscillation is that of the worst phase."
    )
    return f"{tables.table(heads, lines)}\n\n{note}"


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    seeds = parser.parse_args().seeds
    cases = [
        {"controller": controller, "delay": delay, "by": by}
        for controller in CONTROLLERS
        for delay in ("50ms", "100ms")
        for by in ("link", "traffic")
    ]
    results = []
    with ProcessPoolExecutor() as pool:
        for case in cases:
            runs = list(pool.map(measures, [case] * seeds, range(1, seeds + 1)))
            rows = {}
            for name in runs[0]:
                values = np.array([run[name] for run in runs])
                mean = values.mean()
                half = stats.t.ppf(0.975, seeds - 1) * values.std(ddof=1) / np.sqrt(seeds)
                rows[name] = {
                    "mean": mean,
                    "half": half,
                    "verdict": verdict(name, mean - half, mean + half),
                }
            results.append({**case, "seeds": seeds, "measures": rows})
            print(f"\n{case['controller']}, {case['delay']}, capacity by {case['by']}")
            for name, row in rows.items():
                print(f"  {name:14} {row['mean']:8.3f} ± {row['half']:.3f}  {row['verdict']}")
            sys.stdout.flush()
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    tables.fill(PAGE, {"table": table(results)})


if __name__ == "__main__":
    main()
