"""TCP and TFRC at one bottleneck, in ns-2 and here: comparison of their shares.

Part of ``run.py``, which writes the page: 32 SACK TCPs and 32 bare TFRCs over 15 Mbit/s, once with
RED and once with DropTail. Here with the profile ``ns2``, its packet lengths and its RED.
"""

import json
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import talkspurt

HERE = Path(__file__).resolve().parent
FLOWS = 32
"""Of each kind."""
SECONDS = 200
SEEDS = 5
BAND = 0.10
"""Permitted difference of a share from ns-2's."""
SERVICE = 5.55e-4
"""Service time of 1040 bytes at 15 Mbit/s, in seconds."""
NOISES = {0.0: "no noise", SERVICE: "noise of 0.555 ms"}
"""Maximum random delay of senders, here and there: none, or a service time."""
QUEUES: dict[str, dict[str, Any]] = {
    "RED": {
        "kind": "red", "packets": 200, "min_threshold": 20, "max_threshold": 80, "weight": 0.002,
        "max_p": 0.1, "gentle": True, "mean_packet": "1000B", "ns2": True,
    },
    "DropTail": {"kind": "droptail", "packets": 200, "ns2": True},
}  # fmt: skip
SACK = {
    "kind": "tcp", "controller": "sack", "mss": "1000B", "delayed_ack": False, "timestamps": False,
    "min_rto": "200ms", "receive_buffer": "64MB", "send_buffer": "8MB",
}  # fmt: skip

Shares = tuple[float, float, float]
"""Packets of TCP and of TFRC received, and packets dropped by the bottleneck."""


def link(
    a: str, b: str, rate: str, delay: str, packets: int, late: float | None = None
) -> dict[str, Any]:
    """A link with a plain queue, and noise of the sender in one direction."""
    queue = {"kind": "droptail", "packets": packets}
    made = {"from": a, "to": b, "rate": rate, "delay": delay, "queue": queue}
    noise = {"jitter": f"{round((late or 0) * 1e9)}ns", "back": {"jitter": "0s"}}
    return made if late is None else made | noise


def flow(number: int, of: int, source: dict[str, Any], transport: dict[str, Any]) -> dict[str, Any]:
    """A flow from a host of its own to another; they begin one after the other within a second."""
    start = {"start": f"{1000 * (number % of) // of}ms", "rtcp": {"enabled": False}}
    ends = {"from": f"from{number}", "to": f"to{number}"}
    return {**ends, **start, "source": source, "transport": transport}


def scenario(queue: dict[str, Any], late: float) -> dict[str, Any]:
    """The network of ``shares.tcl``, as a scenario."""
    core = link("left", "right", "15Mbit/s", "20ms", 1000)
    links = {"core": core | {"queue": queue, "back": {"queue": core["queue"]}}}
    flows = {}
    bare = {"kind": "tfrc", "profile": "ns2"}
    for i in range(2 * FLOWS):
        links[f"near{i}"] = link(f"from{i}", "left", "100Mbit/s", "1ms", 1000, late)
        links[f"far{i}"] = link("right", f"to{i}", "100Mbit/s", "1ms", 1000)
        if i < FLOWS:
            flows[f"f{i}"] = flow(i, FLOWS, {"kind": "bulk"}, SACK)
        else:
            made = flow(i, FLOWS, {"kind": "bulk", "packet": "1000B"}, bare)
            flows[f"f{i}"] = made | {"sizing": "ns2"}
    record = {"gauges": False, "interval": "1s"}
    return {
        "title": "Shares", "duration": f"{SECONDS}s", "measure": {"from": f"{SECONDS / 5}s"},
        "record": record, "links": links, "flows": flows,
    }  # fmt: skip


def ours(queue: str, noise: float, seed: int) -> Shares:
    """Packets received here."""
    result = talkspurt.run(scenario(QUEUES[queue], noise), seed=seed)
    received = result.flows["received_packets"].to_list()
    core = result.links.filter(result.links["name"] == "core").row(0, named=True)
    return sum(received[:FLOWS]), sum(received[FLOWS:]), core["drops"]


def mean_of(run: Callable[[int], Shares]) -> Shares:
    """The mean over seeds."""
    runs = [run(seed) for seed in range(1, SEEDS + 1)]
    return mean(r[0] for r in runs), mean(r[1] for r in runs), mean(r[2] for r in runs)


def compared(said: Callable[..., str]) -> tuple[list[list[str]], list[str]]:
    """The rows of the page's table, and differences beyond the band; ``said`` runs a command."""
    rows, wrong = [], []
    for queue, noise in product(QUEUES, NOISES):

        def ns2(seed: int, queue: str = queue, noise: float = noise) -> Shares:
            words = [str(word) for word in (FLOWS, FLOWS, queue, SECONDS, seed, noise)]
            counts = json.loads(said("ns", HERE / "shares.tcl", *words))
            return counts["tcp"], counts["tfrc"], counts["drops"]

        here, there = mean_of(partial(ours, queue, noise)), mean_of(ns2)
        name = f"{queue}, {NOISES[noise]}"
        print(name, here, there, flush=True)
        cells = [name]
        for what, one, other in zip(("TCP", "TFRC"), here, there, strict=False):
            off = one / other - 1
            cells += [f"{one:,.0f} ({off:+.1%})", f"{other:,.0f}"]
            if abs(off) > BAND:
                wrong.append(f"{what}, {name}: {off:+.1%}, the band is {BAND:.0%}")
        cells += [f"{drops / (drops + tcp + tfrc):.1%}" for tcp, tfrc, drops in (here, there)]
        rows.append(cells)
    return rows, wrong
