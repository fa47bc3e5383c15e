"""Building blocks of the studies' networks, for concise scenarios."""

from __future__ import annotations

from typing import Any

Table = dict[str, Any]

NS2_TCP: Table = {
    "kind": "tcp",
    "controller": "tahoe",
    "mss": "1000B",
    "initial_window": 2,
    "initial_ssthresh": 20,
    "receive_buffer": "20kB",
    "window_scaling": False,
    "timestamps": False,
    "delayed_ack": False,
    "f_rto": False,
}
"""ns-2's Agent/TCP: Tahoe, segments of 1000 bytes, a window of 20, every segment acknowledged."""


def droptail(packets: int) -> Table:
    """A queue in ns-2's counting."""
    return {"kind": "droptail", "packets": packets, "ns2": True}


def link(ends: tuple[str, str], rate: str, delay: str, queue: int | Table, **more: Any) -> Table:
    """A link."""
    kept = droptail(queue) if isinstance(queue, int) else queue
    return {"from": ends[0], "to": ends[1], "rate": rate, "delay": delay, "queue": kept, **more}


def cbr(rate: str, packet: str) -> Table:
    """A constant rate, without jitter."""
    return {"kind": "cbr", "rate": rate, "packet": packet, "noise": "0s"}


def flow(ends: tuple[str, str], transport: Table, source: Table, **more: Any) -> Table:
    """A flow with packet lengths in ns-2's counting and a fixed start."""
    said = {"from": ends[0], "to": ends[1], "transport": transport, "source": source}
    return {**said, "sizing": "ns2", "start_spread": "0s", **more}


def dccp(ccid: int, **more: Any) -> Table:
    """DCCP like ns-2.35's."""
    return {"kind": "dccp", "ccid": ccid, "profile": "ns2", **more}
