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
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from networks import SECONDS, Case, bottleneck, crossed, networks, simulated, spread, within

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


def transfer(
    network: talkspurt.Emulation, controller: str, seconds: int = SECONDS
) -> dict[str, Any]:
    """What iperf3 says of a transfer of the kernel."""
    network.serve("b", ["iperf3", "-s", "-D"])
    words = ["-4", "-c", "b", "-C", controller, "-t", str(seconds), "-J"]
    return json.loads(network.run("a", ["iperf3", *words], timeout=seconds + 50).stdout)


def controllers() -> Iterator[str]:
    """Those that the kernel has; names the others."""
    there = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    for controller in CONTROLLERS:
        if controller in there:
            yield controller
        else:
            print(f"{controller}: skipped, the kernel does not have it")


def _kernel(
    name: str, network: dict[str, Any], controller: str
) -> tuple[dict[str, Any], float, dict[str, Any]]:
    program = partial(transfer, controller=controller)
    # No other traffic: the transfer fills the queues itself.
    document, result, late, row, start = crossed(name, network, "tcp", program, other=False)
    found = {
        "goodput_bps": document["end"]["sum_received"]["bits_per_second"],
        "srtt_s": document["end"]["streams"][0]["sender"]["mean_rtt"] / 1e6,
        **counted(result, name, row, start),
    }
    return found, start, late


def counted(
    result: talkspurt.Result, name: str, row: dict[str, Any], start_s: float
) -> dict[str, float]:
    """Mean queue of the bottleneck, mean time of packets there and of others back, and losses."""
    series, flow = result.link_series(bottleneck(name)), row["name"]
    inside = (pl.col("time_s") > start_s) & (pl.col("time_s") <= start_s + SECONDS)
    packets = (
        result.packets(flow)
        .group_by("side", "number")
        .agg(
            (pl.col("received_s").max() - pl.col("enqueued_s").min()).alias("took_s"),
            (pl.col("fate") == "received").all().alias("arrived"),
        )
    )
    means = packets.filter("arrived").group_by("side").agg(pl.col("took_s").mean())
    return {
        "queue_packets": float(series.filter(inside)["queue_packets"].mean()),
        "rtt_s": float(means["took_s"].sum()),
        "lost_packets": row["lost_packets"],
    }


def ours(
    name: str,
    network: dict[str, Any],
    transport: dict[str, Any],
    start_s: float,
    measure: Callable[[talkspurt.Result, dict[str, Any], float], dict[str, float]],
) -> dict[str, Any]:
    """Our transfer: what the network and a function say, least, mean and greatest of the seeds."""
    flow, rows = {"transport": transport, "source": {"kind": "bulk"}}, []
    for run in simulated(name, network, flow, start_s, other=False):
        row = next(it for it in run.flows.to_dicts() if it["name"] == "ours")
        rows.append(measure(run, row, start_s) | counted(run, name, row, start_s))
    return {key: spread([row[key] for row in rows]) for key in rows[0]}


def _of_sender(result: talkspurt.Result, row: dict[str, Any], start_s: float) -> dict[str, float]:
    gauge = result.gauges("ours", "srtt")
    times, values = gauge["time_s"].to_numpy(), gauge["value"].to_numpy()
    read = np.searchsorted(times, start_s + np.arange(1, SECONDS + 1), side="right") - 1
    srtt_s = float(np.mean(values[read[read >= 0]]))
    return {"goodput_bps": row["goodput_bps"], "srtt_s": srtt_s}


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
    return ours(name, network, kind, start_s, _of_sender)


def agrees(key: str, value: float, ours: list[float]) -> bool:
    """Whether a value is within the band."""
    return within(value, ours, *BANDS[key])


def cases(traces: Path | None) -> Iterator[Case]:
    """One for each network and controller that the kernel has."""
    for name, network in networks(traces):
        for controller in controllers():
            yield f"{name} {controller}", partial(_crossed, name, network, controller)


def _crossed(name: str, network: dict[str, Any], controller: str) -> dict[str, Any]:
    found, start, late = _kernel(name, network, controller)
    return {
        "network": name, "controller": controller, "late": late, "program": found,
        "ours": _simulated(name, network, controller, start, {}),
        "cause": _simulated(name, network, controller, start, CAUSES[controller]),
    }  # fmt: skip
