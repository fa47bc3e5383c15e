"""The ten networks on which Chromium judges our GCC, and by which tolerances.

This file was committed before the first call was recorded. Two Chromium browsers at the nodes ``a``
and ``b`` call each other through ``talkspurt emulate``, with one stream of audio and one of video
from the browser's fake devices at either end. What leaves ``a`` is compared.

Each call's RTC event log has the packets that the browser sent and the feedback that it received.
Our controller gets the same, and both are compared at each update that the log has:

* ``STATES`` of the detector's states are equal;
* ``ESTIMATES`` of the estimates differ by at most ``NEAR``.

A call is repeated, before anything else of it is looked at, if 99 % of its packets did not leave
the network within ``LATENESS_P99_S``.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CALL_S = 40
START_S = 5
"""About so long after the network, the call begins: times below count from the network's start."""
LATENESS_P99_S = 2e-3
STATES, ESTIMATES, NEAR = 0.95, 0.95, 0.03

UPLOAD = {
    "from": "a", "to": "b", "start": "15s", "stop": "30s",
    "transport": {"kind": "tcp", "controller": "cubic"}, "source": {"kind": "bulk"},
}  # fmt: skip


def line(rate: str, delay: str, queue: str, **more: Any) -> dict[str, Any]:
    """A link with a queue of so long; the way back is as fast, and loses nothing."""
    return {
        "links": {
            "line": {
                "from": "a", "to": "b", "rate": rate, "delay": delay,
                "queue": {"kind": "droptail", "time": queue}, "back": {"loss": 0.0, "steps": []},
                **more,
            }
        }
    }  # fmt: skip


def steps(*rates: tuple[int, str]) -> list[dict[str, str]]:
    """Rates from an instant on."""
    return [{"at": f"{at}s", "rate": rate} for at, rate in rates]


def lte() -> dict[str, Any]:
    """The link of ``scenarios/networks/lte.toml``, whose changes come twice."""
    found = tomllib.loads((ROOT / "scenarios/networks/lte.toml").read_text())["links"]["lte"]
    period_s = 20
    found["steps"] = [
        {**step, "at": f"{float(step['at'].removesuffix('s')) + START_S + again:g}s"}
        for again in (0, period_s)
        for step in found["steps"]
    ]
    return {"links": {"line": {**found, "from": "a", "to": "b", "back": {"steps": []}}}}


def wifi() -> dict[str, Any]:
    """``a`` is a station of 802.11g beside four that always send."""
    cell = {
        "access_point": "ap", "standard": "802.11g", "rate": {"kind": "minstrel"}, "snr_db": 25.0,
        "queue": {"kind": "droptail", "packets": 300}, "contenders": {"count": 4},
        "stations": {"a": {}},
    }  # fmt: skip
    wire = line("100Mbit/s", "10ms", "100ms")["links"]["line"]
    return {"cells": {"cell": cell}, "links": {"wire": {**wire, "from": "ap"}}}


NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "narrow": ("300 kbit/s, 50 ms, queue 500 ms", line("300kbit/s", "50ms", "500ms")),
    "one": ("1 Mbit/s, 25 ms, queue 200 ms", line("1Mbit/s", "25ms", "200ms")),
    "fast": ("10 Mbit/s, 10 ms, queue 60 ms", line("10Mbit/s", "10ms", "60ms")),
    "loss": (
        "3 Mbit/s, 30 ms, queue 300 ms, 2 % lost",
        line("3Mbit/s", "30ms", "300ms", loss=0.02),
    ),
    "lossy": (
        "2 Mbit/s, 50 ms, queue 300 ms, 10 % lost",
        line("2Mbit/s", "50ms", "300ms", loss=0.1),
    ),
    "jitter": (
        "2 Mbit/s, 40 ms and up to 30 ms of jitter in order, queue 300 ms, 0.5 % lost",
        line("2Mbit/s", "40ms", "300ms", jitter="30ms", loss=0.005),
    ),
    "changes": (
        "2.5, 0.8, 0.4 and 1.5 Mbit/s from 0, 15, 25 and 35 s, 50 ms, queue 300 ms at the first",
        line("2.5Mbit/s", "50ms", "300ms",
             steps=steps((15, "800kbit/s"), (25, "400kbit/s"), (35, "1500kbit/s"))),
    ),
    "upload": (
        "2 Mbit/s, 25 ms, queue 300 ms, a simulated CUBIC upload from 15 to 30 s",
        line("2Mbit/s", "25ms", "300ms"),
    ),
    "lte": ("the link of scenarios/networks/lte.toml, 1 to 12 Mbit/s, its changes twice", lte()),
    "wifi": ("a station of 802.11g at 25 dB with Minstrel, four others always send", wifi()),
}  # fmt: skip
"""By name: what the page says, and links and cells."""


def traffic(name: str) -> dict[str, Any]:
    """The simulated traffic beside the call; a scenario needs a flow."""
    if name == "upload":
        return {"upload": UPLOAD}
    return {
        "silent": {
            "from": "a", "to": "b", "start": "89s", "transport": {"kind": "udp"},
            "source": {"kind": "cbr", "rate": "8kbit/s", "packet": "100B"},
        }
    }  # fmt: skip
