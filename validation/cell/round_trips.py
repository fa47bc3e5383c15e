"""Data round trips at a constant rate, on a wire and in a cell: the table of docs/wireless.md.

Same as `crates/sim/tests/world/cell/spread.rs`, from packet tables and under ten seeds.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import polars as pl

import talkspurt
from talkspurt.reproduce.sample import Sample

SEEDS = range(1, 11)
FIFO = {"kind": "droptail", "packets": 1000}
WIRE = {"from": "net", "to": "laptop", "rate": "6.87Mbit/s", "delay": "1ms", "queue": FIFO}
ETHERNET = {"from": "ap", "to": "net", "rate": "100Mbit/s", "delay": "1ms", "queue": FIFO}
CELL = {
    "access_point": "ap",
    "stations": {"laptop": {}, "other": {}},
    "standard": "802.11b",
    "short_preamble": True,
    "queue": FIFO,
}
LIGHT = {
    "from": "other",
    "to": "net",
    "transport": {"kind": "udp"},
    "source": {"kind": "cbr", "rate": "256kbit/s", "packet": "400B", "noise": "0s"},
}


def cell(**more: Any) -> dict[str, Any]:
    """A cell behind a wire."""
    return {"links": {"wire": ETHERNET}, "cells": {"cafe": {**CELL, **more}}}


NETWORKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "on a wire": ({"links": {"wire": WIRE}}, {}),
    "alone in the cell": (cell(), {}),
    "beside a station at 256 kbit/s": (cell(), {"light": LIGHT}),
    "beside one that always sends": (cell(contenders={"count": 1, "packet": "1428B"}), {}),
}


def round_trips(network: str, rate: str, seed: int) -> list[float]:
    """Sums of the delays of data and its acknowledgement, in ms, without waits in between."""
    net, more = NETWORKS[network]
    stream = {
        "from": "net",
        "to": "laptop",
        "transport": {"kind": "dccp", "ccid": 3},
        "source": {"kind": "cbr", "rate": rate, "packet": "1400B"},
    }
    scenario = {
        "title": network,
        "duration": "70s",
        "record": {"packets": True, "gauges": False, "interval": "1s"},
        "flows": {"stream": stream, **more},
        **net,
    }
    result = talkspurt.run(scenario, seed=seed)
    assert isinstance(result, talkspurt.Result)
    arrived = pl.col("received_s").is_not_null().all()
    packets = (
        result.packets("stream")
        .group_by("side", "number")
        .agg(
            pl.col("enqueued_s").min().alias("sent"),
            pl.when(arrived).then(pl.col("received_s").max()).alias("received"),
        )
        .drop_nulls()
        .sort("received")
    )
    there = packets.filter(side="from")
    at, took = there["received"].to_list(), (there["received"] - there["sent"]).to_list()
    trips = []
    for sent, received in packets.filter(side="to").select("sent", "received").iter_rows():
        last = bisect_right(at, sent + 1e-12) - 1
        if last >= 0 and received > 10:
            trips.append(1e3 * (took[last] + received - sent))
    return sorted(trips)


def main() -> None:
    """Print the table's cells."""
    for rate in ("2Mbit/s", "5Mbit/s", "6Mbit/s"):
        for network in NETWORKS:
            runs = [round_trips(network, rate, seed) for seed in SEEDS]
            medians = [trips[len(trips) // 2] for trips in runs]
            tails = [trips[len(trips) * 99 // 100] for trips in runs]
            beyond = Sample(tuple(t - m for t, m in zip(tails, medians, strict=True)))
            print(f"{rate} {network}: {beyond.show()} (median {Sample(tuple(medians)).show()})")


if __name__ == "__main__":
    main()
