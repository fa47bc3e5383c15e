"""`talkspurt serve` and `measure` beside iperf3: both have the kernel's TCP fill the same network.

The two programs take turns, REPETITIONS times each. Of every quantity, ``difference`` gives the
mean of ours less that of iperf3, with Welch's 95 % interval. What is compared was fixed before the
first measurement: the bytes of the TCP stream per second (ours with the seal of each unit), the
mean of the sender's smoothed round-trip time, read once a second, and the segments sent again.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from iperf3 import controllers, transfer
from networks import Case, emulated, links, real_flow, scenario, traffic
from scipy import stats

import talkspurt

NEEDS = ("iperf3",)
VERSION = ("iperf3", "--version")
NETWORKS = ("loss", "bufferbloat")
SECONDS = 20
REPETITIONS = 5
QUANTITIES = ("rate_bps", "srtt_s", "retransmitted")
TALKSPURT = (sys.executable, "-m", "talkspurt")


def _iperf3(network: talkspurt.Emulation, controller: str) -> dict[str, float]:
    document = transfer(network, controller, SECONDS)
    return {
        "rate_bps": document["end"]["sum_received"]["bits_per_second"],
        "srtt_s": document["end"]["streams"][0]["sender"]["mean_rtt"] / 1e6,
        "retransmitted": document["end"]["sum_sent"]["retransmits"],
    }


def _measure(network: talkspurt.Emulation, controller: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        limit = ("--listen", "0.0.0.0:7862", "--max-rate", "1Gbit/s")
        network.serve("b", [*TALKSPURT, "serve", *limit, "--user", "nobody"])
        words = ["--transport", f"tcp-{controller}", "--traffic", "bulk", "--up"]
        last = ["--for", f"{SECONDS}s", "--out", str(out), "--no-report"]
        done = network.run("a", [*TALKSPURT, "measure", "b", *words, *last], timeout=SECONDS + 50)
        if done.returncode:
            raise SystemExit(done.stderr)
        result = talkspurt.load(out)
        (row,) = result.flows.to_dicts()
        gauge = result.gauges(row["name"], "srtt")
        times, values = gauge["time_s"].to_numpy(), gauge["value"].to_numpy()
        # The flow begins a second after the clock.
        read = np.searchsorted(times, 1 + np.arange(1, SECONDS + 1), side="right") - 1
        tcp = result.manifest["measured"]["flows"][row["name"]]["tcp"]
        return {
            "rate_bps": row["throughput_bps"],
            "srtt_s": float(np.mean(values[read[read >= 0]])),
            "retransmitted": tcp["retransmitted_segments"],
        }


PROGRAMS = {"iperf3": _iperf3, "measure": _measure}


def cases(_: Path | None) -> Iterator[Case]:
    """One for each network and controller that the kernel has."""
    for name in NETWORKS:
        for controller in controllers():
            yield f"{name} {controller}", partial(_crossed, name, controller)


def _crossed(name: str, controller: str) -> dict[str, Any]:
    os.environ["TALKSPURT_SECRET"] = "a secret for this comparison"
    network = links(name, None)
    assert network is not None
    found: dict[str, list[dict[str, float]]] = {program: [] for program in PROGRAMS}
    lates = []
    for number in range(REPETITIONS):
        for program, run in PROGRAMS.items():
            text = {**scenario(network, traffic("clean")), "seed": number + 1}
            told, result, late = emulated(text, partial(run, controller=controller))
            row = real_flow(result, "tcp")
            found[program].append({**told, "lost_packets": row["lost_packets"]})
            lates.append(late)
    return {
        "network": name, "controller": controller,
        "late": max(lates, key=lambda it: it["p99_s"]), **found,
        "difference": {
            key: difference(*([row[key] for row in found[it]] for it in ("measure", "iperf3")))
            for key in (*QUANTITIES, "lost_packets")
        },
    }  # fmt: skip


def difference(ours: list[float], theirs: list[float]) -> list[float]:
    """The mean of ours less that of theirs, with Welch's 95 % interval: low, mean, high."""
    tested = stats.ttest_ind(ours, theirs, equal_var=False)
    low, high = tested.confidence_interval(0.95)
    return [float(low), float(np.mean(ours) - np.mean(theirs)), float(high)]
