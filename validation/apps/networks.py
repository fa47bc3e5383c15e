"""The six networks that programs cross, emulated and simulated, between the nodes ``a`` and ``b``.

:func:`emulated` runs a program over a network in real time, and repeats it if the machine was too
busy for the emulation to be on time. :func:`simulated` runs our own flow over the same network,
from the instant at which the program's first packet left, so that traces, outages and other traffic
find both in the same state, under several seeds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import talkspurt
from talkspurt.emulating import account

Case = tuple[str, Callable[[], dict[str, Any]]]
"""The name of a measurement, and what measures."""
ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30
"""For so long, programs measure."""
SEEDS = range(1, 11)
LATENESS_P99_S = 2e-3
"""A measurement in which more than one packet in a hundred left the network later is repeated."""
TRIES = 4
DURATION_S = 90
"""Of an emulation at most; programs end earlier."""
UPLOAD = {
    "from": "a", "to": "b", "start": "12s", "stop": "25s",
    "transport": {"kind": "tcp", "controller": "cubic"}, "source": {"kind": "bulk"},
}  # fmt: skip
TRACES = ("Verizon-LTE-short.down", "Verizon-LTE-short.up")

TITLES = {
    "clean": "10 Mbit/s, 10 ms each way, a queue of 50 packets",
    "loss": "the same, and 1 % of the packets from `a` to `b` are lost at random",
    "bufferbloat": "without loss, with a queue of 1 s (833 packets), which a simulated CUBIC upload"
    " fills from 12 to 25 s, except in the table of TCP",
    "lte": "`Verizon-LTE-short.down` and `.up`, recorded by Winstein et al. (2013), 20 ms each way,"
    " a queue of 1000 packets",
    "wifi": "`a` is a station of 802.11g at 25 dB with Minstrel, four others always have a packet"
    " of 1500 bytes to send; 10 ms of wire behind the access point",
    "geo": "a geostationary satellite 30° above the horizon, 10 Mbit/s there and 2 Mbit/s back, a"
    " queue of 200 packets; nothing passes from 20 to 22 s",
}
"""By name, in the order of the tables."""


def links(name: str, traces: Path | None) -> dict[str, Any] | None:
    """The links and cells of a network; None without the traces that it needs."""
    line = {
        "from": "a", "to": "b", "rate": "10Mbit/s", "delay": "10ms",
        "queue": {"kind": "droptail", "packets": 50},
    }  # fmt: skip
    match name:
        case "clean":
            return {"links": {"line": line}}
        case "loss":
            return {"links": {"line": {**line, "loss": 0.01, "back": {"loss": 0.0}}}}
        case "bufferbloat":
            return {"links": {"line": {**line, "queue": {"kind": "droptail", "packets": 833}}}}
        case "lte":
            if traces is None:
                return None
            there, back = (
                {"kind": "mahimahi", "file": str((traces / one).resolve())} for one in TRACES
            )
            queue = {"kind": "droptail", "packets": 1000}
            lte = {**line, "delay": "20ms", "queue": queue, "trace": there, "back": {"trace": back}}
            return {"links": {"line": lte}}
        case "wifi":
            cell = {
                "access_point": "ap", "standard": "802.11g", "rate": {"kind": "minstrel"},
                "snr_db": 25.0, "queue": {"kind": "droptail", "packets": 300},
                "contenders": {"count": 4}, "stations": {"a": {}},
            }  # fmt: skip
            wire = {**line, "from": "ap", "rate": "100Mbit/s"}
            return {"cells": {"cell": cell}, "links": {"wire": wire}}
        case "geo":
            geo = {
                "orbit": {"altitude_km": 35786, "elevations": [30]}, "delay": "0ms",
                "queue": {"kind": "droptail", "packets": 200}, "back": {"rate": "2Mbit/s"},
                "events": [{"at": "20s", "state": "down"}, {"at": "22s", "state": "up"}],
            }  # fmt: skip
            return {"links": {"line": {**line, **geo}}}
    raise KeyError(name)


def bottleneck(name: str) -> str:
    """The link, in the direction from ``a`` to ``b``, at which packets wait."""
    return "cell.a" if name == "wifi" else "line"


def networks(traces: Path | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name, links and cells of all networks that can be built; names the others."""
    for name in TITLES:
        found = links(name, traces)
        if found is None:
            print(f"{name}: skipped, needs the traces {', '.join(TRACES)}: --recorded FOLDER")
        else:
            yield name, found


def scenario(
    network: dict[str, Any], flows: dict[str, Any], *, seconds: float = DURATION_S
) -> dict[str, Any]:
    """A scenario of this network and these flows."""
    return {
        "title": "Another program",
        "duration": f"{seconds:.3f}s",
        "seed": 1,
        "record": {"packets": True, "sojourn": True},
        **network,
        "flows": flows,
    }


def traffic(name: str) -> dict[str, Any]:
    """The simulated traffic of the network; a scenario needs a flow."""
    if name == "bufferbloat":
        return {"upload": UPLOAD}
    return {
        "silent": {
            "from": "a", "to": "b", "start": f"{DURATION_S - 1}s", "transport": {"kind": "udp"},
            "source": {"kind": "cbr", "rate": "8kbit/s", "packet": "100B"},
        }
    }  # fmt: skip


class TooLateError(Exception):
    """The machine was too busy in every try."""


def emulated(
    text: dict[str, Any],
    program: Callable[[talkspurt.Emulation], Any],
    folder: Path | None = None,
    *,
    latest_s: float = LATENESS_P99_S,
    nodes: Sequence[str] = ("a", "b"),
) -> tuple[Any, talkspurt.Result, dict[str, Any]]:
    """What a program found over a network, what the network counted, and how late it was.

    Captures are in ``folder``.

    Raises:
        TooLateError: if the 99th percentile of the lateness was above ``latest_s`` in all tries.
    """
    for number in range(1, TRIES + 1):
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        with talkspurt.Emulation(text, list(nodes), folder=folder) as network:
            found = program(network)
        real = network.result.manifest["real_time"]
        late = real["lateness"]
        told = {
            "p50_s": late["p50_s"], "p99_s": late["p99_s"], "tries": number,
            "packets": late["packets"], "findings": account.findings(real),
        }  # fmt: skip
        if late["p99_s"] <= latest_s:
            return found, network.result, told
        print(f"late by {late['p99_s'] * 1e3:.1f} ms (99 %): repeated", flush=True)
    raise TooLateError


def real_flow(result: talkspurt.Result, transport: str) -> dict[str, Any]:
    """The row of the program's largest flow from ``a`` to ``b``."""
    rows = result.flows.filter(source="real", transport=transport).to_dicts()
    rows = [row for row in rows if row["from"] == "a"]
    return max(rows, key=lambda row: row["sent_bytes"])


def first_packet_s(result: talkspurt.Result, flow: str) -> float:
    """When the first packet of a flow left."""
    base = flow.removesuffix(".reverse")
    # The packet table has both directions of a flow, and the opening side is `from`.
    packets = result.packets(base).filter(side="from" if base == flow else "to")
    return float(packets["enqueued_s"].min())


def crossed(
    name: str,
    network: dict[str, Any],
    transport: str,
    program: Callable[[talkspurt.Emulation], Any],
    *,
    other: bool = True,
    folder: Path | None = None,
    **record: Any,
) -> tuple[Any, talkspurt.Result, dict[str, Any], dict[str, Any], float]:
    """:func:`emulated` by name, beside the row of the program's flow, and when that began."""
    text = scenario(network, traffic(name if other else "clean"))
    text["record"] |= record
    found, result, late = emulated(text, program, folder)
    row = real_flow(result, transport)
    return found, result, late, row, first_packet_s(result, row["name"])


def simulated(
    name: str,
    network: dict[str, Any],
    flow: dict[str, Any],
    start_s: float,
    *,
    other: bool = True,
    seconds: float = SECONDS,
    seeds: Sequence[int] = SEEDS,
) -> list[talkspurt.Result]:
    """Our flow, called ``ours``, over the network from ``start_s`` on, under every seed."""
    ours = {**flow, "start": f"{start_s:.6f}s", "stop": f"{start_s + seconds:.6f}s"}
    flows = {"ours": {"from": "a", "to": "b", **ours}}
    if other and name == "bufferbloat":
        flows["upload"] = UPLOAD
    text = scenario(network, flows, seconds=start_s + seconds + 2)
    text["measure"] = {"from": ours["start"], "to": ours["stop"]}
    return [talkspurt.run(text, seed=seed) for seed in seeds]


def spread(values: list[float | None]) -> list[float] | None:
    """The least, the mean and the greatest of the seeds; None if one is missing."""
    there = [it for it in values if it is not None]
    if not there or len(there) < len(values):
        return None
    return [min(there), sum(there) / len(there), max(there)]


def within(value: float, ours: list[float], share: float, least: float) -> bool:
    """Whether a value is in the range of ours, widened by a share of our mean, or by ``least``."""
    more = max(share * abs(ours[1]), least)
    return ours[0] - more <= value <= ours[2] + more
