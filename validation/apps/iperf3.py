"""iperf3 with the kernel's Reno, CUBIC and BBR, beside our TCP with the same controllers.

The bands within which we claim agreement were set before the first measurement of all networks:
goodput is in the range of our ten seeds, widened by 5 %; the mean queue of the bottleneck in
theirs, widened by 25 % or 2 packets; the mean round-trip time of packets in the network in theirs,
widened by 25 % or 2 ms.

The smoothed estimates of both senders, read once a second, have no band.

``CAUSES`` are settings of ours that show what a difference comes from; they are measured on all
networks, too.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from networks import (
    SECONDS,
    Case,
    bottleneck,
    emulated,
    first_packet_s,
    networks,
    real_flow,
    scenario,
    simulated,
    spread,
    traffic,
    within,
)

import talkspurt

NEEDS = ("iperf3",)
VERSION = ("iperf3", "--version")
CONTROLLERS = {"reno": "sack", "cubic": "cubic", "bbr": "bbr"}
"""The kernel's name, and ours: the kernel's Reno has selective acknowledgements."""
BANDS = {
    "goodput_bps": (0.05, 0.0), "queue_packets": (0.25, 2.0), "rtt_s": (0.25, 2e-3),
}  # fmt: skip
CAUSES = {
    "reno": {"transport": {"delayed_ack": False}},
    "cubic": {"transport": {"delayed_ack": False}},
    "bbr": {"jitter": "1ms"},
}
"""Reno and CUBIC: an acknowledgement for each segment, with which slow start doubles the window in
a round trip as Linux's does with one for every second. BBR: acknowledgements that arrive up to 1 ms
late, as a busy machine sends them."""


def _kernel(
    name: str, network: dict[str, Any], controller: str
) -> tuple[dict[str, Any], float, dict[str, Any]]:
    def program(network: talkspurt.Emulation) -> dict[str, Any]:
        network.serve("b", ["iperf3", "-s", "-D"])
        words = ["-4", "-c", "b", "-C", controller, "-t", str(SECONDS), "-J"]
        found = network.run("a", ["iperf3", *words], timeout=SECONDS + 50)
        return json.loads(found.stdout)

    # No other traffic: the transfer fills the queues itself.
    document, result, late = emulated(scenario(network, traffic("clean")), program)
    row = real_flow(result, "tcp")
    start = first_packet_s(result, row["name"])
    found = {
        "goodput_bps": document["end"]["sum_received"]["bits_per_second"],
        "queue_packets": queue(result, name, start),
        "rtt_s": round_trip(result, row["name"]),
        "srtt_s": document["end"]["streams"][0]["sender"]["mean_rtt"] / 1e6,
        "lost_packets": row["lost_packets"],
    }
    return found, start, late


def queue(result: talkspurt.Result, name: str, start_s: float) -> float:
    """The mean queue of the bottleneck, in packets."""
    series = result.link_series(bottleneck(name))
    inside = (pl.col("time_s") > start_s) & (pl.col("time_s") <= start_s + SECONDS)
    return float(series.filter(inside)["queue_packets"].mean())


def round_trip(result: talkspurt.Result, flow: str) -> float:
    """The mean time that packets take there, and that the others take back."""
    packets = (
        result.packets(flow)
        .group_by("side", "number")
        .agg(
            (pl.col("received_s").max() - pl.col("enqueued_s").min()).alias("took_s"),
            (pl.col("fate") == "received").all().alias("arrived"),
        )
    )
    means = packets.filter("arrived").group_by("side").agg(pl.col("took_s").mean())
    return float(means["took_s"].sum())


def _ours(result: talkspurt.Result, name: str, start_s: float) -> dict[str, float]:
    row = next(it for it in result.flows.to_dicts() if it["name"] == "ours")
    gauge = result.gauges("ours", "srtt")
    times, values = gauge["time_s"].to_numpy(), gauge["value"].to_numpy()
    read = np.searchsorted(times, start_s + np.arange(1, SECONDS + 1), side="right") - 1
    return {
        "goodput_bps": row["goodput_bps"],
        "queue_packets": queue(result, name, start_s),
        "rtt_s": round_trip(result, "ours"),
        "srtt_s": float(np.mean(values[read[read >= 0]])),
        "lost_packets": row["lost_packets"],
    }


def _simulated(
    name: str, network: dict[str, Any], controller: str, start_s: float, cause: dict[str, Any]
) -> dict[str, Any]:
    kind = {
        "kind": "tcp", "controller": CONTROLLERS[controller], "receive_buffer": "6MB",
        "min_rto": "200ms", **cause.get("transport", {}),
    }  # fmt: skip
    network = copy.deepcopy(network)
    for link in network["links"].values():
        if "jitter" in cause:
            link["back"] = {**link.get("back", {}), "jitter": cause["jitter"]}
    flow = {"transport": kind, "source": {"kind": "bulk"}}
    runs = simulated(name, network, flow, start_s, other=False)
    rows = [_ours(run, name, start_s) for run in runs]
    return {key: spread([row[key] for row in rows]) for key in rows[0]}


def agrees(key: str, value: float, ours: list[float]) -> bool:
    """Whether a value is within the band."""
    return within(value, ours, *BANDS[key])


def cases(traces: Path | None) -> Iterator[Case]:
    """One for each network and controller that the kernel has."""
    there = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    for name, network in networks(traces):
        for controller in CONTROLLERS:
            if controller in there:
                yield f"{name} {controller}", partial(_crossed, name, network, controller)
            else:
                print(f"{controller}: skipped, the kernel does not have it")


def _crossed(name: str, network: dict[str, Any], controller: str) -> dict[str, Any]:
    found, start, late = _kernel(name, network, controller)
    return {
        "network": name, "controller": controller, "late": late, "program": found,
        "ours": _simulated(name, network, controller, start, {}),
        "cause": _simulated(name, network, controller, start, CAUSES[controller]),
    }  # fmt: skip
