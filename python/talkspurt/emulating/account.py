"""Where the packets of real hosts went: what the system counted, what the network counted.

From a command to another, a packet passes: the sender's device, the network, the receiver's device.
Each step counts for itself; :func:`findings` compares neighbours and says who lost what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

LATE_S = 1e-3
"""Later packets are counted apart."""
NOTABLE = 1e-3
"""The share of late packets above which the result is doubtful."""


def joined(said: dict[str, Any], counted: Mapping[str, Mapping[str, int] | None]) -> dict[str, Any]:
    """The network's account with the system's counters of each device."""
    for host in said["hosts"]:
        host["device"] = counted.get(host["node"])
    return said


def findings(real_time: Mapping[str, Any]) -> list[str]:
    """Sentences on packets that were lost outside the scenario's network, and on late ones."""
    found = [words for host in real_time["hosts"] for words in _of_host(host)]
    ended = sum(
        real_time[f"{how}_packets"] for how in ("arrived", "expired", "dropped", "in_flight")
    )
    begun = sum(real_time[f"{how}_packets"] for how in ("sent", "copied", "message"))
    if ended != begun or real_time["in_flight_packets"] < 0:
        found.append(f"the network has {begun} packets to account for, and accounts for {ended}")
    late = real_time["lateness"]["later_than_1ms_ratio"] or 0.0
    if late > NOTABLE:
        found.append(
            f"{late:.1%} of packets left the network more than 1 ms late: the machine is too slow "
            "or too busy for this scenario"
        )
    return found


def _of_host(host: Mapping[str, Any]) -> Iterator[str]:
    node, device = host["node"], host["device"]
    if host["failure"]:
        yield f"{node}: its device failed, which ended the emulation: {host['failure']}"
    if device is None:
        yield (
            f"{node}: its processes were killed, which ended the emulation, and the system's "
            "counters of its device are not known"
        )
    else:
        if device["sent_dropped"]:
            yield (
                f"{node}: its device dropped {device['sent_dropped']} packets before the network "
                "read them"
            )
        for what, system, network in (
            ("sent", device["sent_packets"], host["read_packets"]),
            ("received", device["received_packets"], host["written_packets"]),
        ):
            if system != network:
                yield f"{node}: its device {what} {system} packets, and the network {network}"
        if device["socket_dropped"]:
            yield (
                f"{node}: {device['socket_dropped']} datagrams arrived and were lost, because "
                "their program did not read its socket in time"
            )
        if device["received_dropped"] or device["received_errors"]:
            lost = device["received_dropped"] + device["received_errors"]
            yield f"{node}: its device lost {lost} packets that arrived"
    for key, words in (
        ("refused", "arrived and were refused by its device"),
        ("malformed", "are no IP packets"),
        ("unroutable", "went to addresses of no node with --at, --serve or --shell"),
    ):
        if count := host[f"{key}_packets"]:
            yield f"{node}: {count} packets {words}"


def summary(real_time: Mapping[str, Any]) -> str:
    """A sentence on the packets and one on their lateness."""
    counts = [
        f"{real_time[f'{how}_packets']} {words}"
        for how, words in (
            ("sent", "packets sent"), ("arrived", "arrived"), ("dropped", "dropped by links"),
            ("in_flight", "on their way at the end"), ("copied", "copied by links"),
            ("expired", "at the end of their time to live"), ("message", "messages of routers"),
        )
        if real_time[f"{how}_packets"] or how in ("sent", "arrived", "dropped")
    ]  # fmt: skip
    late = real_time["lateness"]
    words = f"Real packets: {', '.join(counts)}."
    if late["packets"]:
        times = ", ".join(
            f"{name} {late[key] * 1e6:.0f} µs"
            for name, key in (("p50", "p50_s"), ("p99", "p99_s"), ("p99.9", "p999_s"))
        )
        words += (
            f" Lateness: {times}, {late['later_than_1ms_ratio']:.2%} later than 1 ms"
            f" ({real_time['priority']} priority)."
        )
    return words
