"""irtt: round trips of 50 packets a second of 200 bytes, beside our packets of the same size.

irtt stamps packets at both ends, which have one clock here, so that its one-way delays are exact.
The bands within which we claim agreement were set before the first measurement: a delay is in the
range of our ten seeds, widened by 5 % or 1 ms, and a loss in theirs, widened by 0.5 points.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from networks import SECONDS, Case, crossed, networks, simulated, spread, within

import talkspurt

NEEDS = ("irtt",)
VERSION = ("irtt", "version")
DELAY_SHARE, DELAY_LEAST_S = 0.05, 1e-3
LOSS_LEAST = 0.005
ROWS = {
    "there_p50_s": "delay to `b`, median", "there_p95_s": "delay to `b`, 95 %",
    "back_p50_s": "delay to `a`, median", "back_p95_s": "delay to `a`, 95 %",
    "there_loss": "lost to `b`", "back_loss": "lost to `a`",
}  # fmt: skip


def _measured(network: talkspurt.Emulation) -> dict[str, Any]:
    network.serve("b", ["irtt", "server", "-i", "0"], stdout=2)
    at = network.addresses["b"][0]
    words = ["-i", "20ms", "-d", f"{SECONDS}s", "-l", "172", "--wait=3s", "-Q", "-o", "-", at]
    found = network.run("a", ["irtt", "client", *words], timeout=SECONDS + 30)
    if found.returncode:
        raise RuntimeError(found.stderr)
    return json.loads(found.stdout)


def _summary(document: dict[str, Any]) -> dict[str, float]:
    """Stamps and counts of irtt; a packet counts as lost where it says so."""
    trips = document["round_trips"]
    there = [it["delay"]["send"] for it in trips if "send" in it.get("delay", {})]
    back = [it["delay"]["receive"] for it in trips if "receive" in it.get("delay", {})]
    stats = document["stats"]
    arrived = stats["server_packets_received"]
    return {
        "there_p50_s": float(np.median(there)) / 1e9,
        "there_p95_s": float(np.quantile(there, 0.95)) / 1e9,
        "back_p50_s": float(np.median(back)) / 1e9,
        "back_p95_s": float(np.quantile(back, 0.95)) / 1e9,
        "there_loss": 1 - arrived / stats["packets_sent"],
        "back_loss": 1 - stats["packets_received"] / arrived,
    }


def _ours(result: talkspurt.Result) -> dict[str, float]:
    there, back = (
        next(row for row in result.flows.to_dicts() if row["name"] == name)
        for name in ("ours", "ours.reverse")
    )
    return {
        f"{way}_{what}": value
        for way, row in (("there", there), ("back", back))
        for what, value in (
            ("p50_s", row["delay_p50_s"]), ("p95_s", row["delay_p95_s"]),
            ("loss", row["lost_packets"] / row["sent_packets"]),
        )
    }  # fmt: skip


def agrees(key: str, value: float, ours: list[float]) -> bool:
    """Whether a value is within the band."""
    if key.endswith("loss"):
        return within(value, ours, 0.0, LOSS_LEAST)
    return within(value, ours, DELAY_SHARE, DELAY_LEAST_S)


def cases(traces: Path | None) -> Iterator[Case]:
    """One for each network."""
    for name, network in networks(traces):
        yield name, partial(_crossed, name, network)


def _crossed(name: str, network: dict[str, Any]) -> dict[str, Any]:
    source = {"kind": "cbr", "rate": "68.8kbit/s", "packet": "172B"}
    flow = {"transport": {"kind": "udp"}, "source": source, "reverse": source}
    document, result, late, row, start = crossed(name, network, "udp", _measured)
    back = result.flows.filter(name=f"{row['name']}.reverse").to_dicts()[0]
    ours = [_ours(run) for run in simulated(name, network, flow, start)]
    return {
        "network": name, "late": late, "program": _summary(document),
        "network_counted": {
            f"{way}_{what}_s": it[f"delay_{what}_s"]
            for way, it in (("there", row), ("back", back))
            for what in ("p50", "p95")
        } | {"there_loss": row["lost_packets"] / row["sent_packets"],
             "back_loss": back["lost_packets"] / back["sent_packets"]},
        "ours": {key: spread([one[key] for one in ours]) for key in ROWS},
    }  # fmt: skip
