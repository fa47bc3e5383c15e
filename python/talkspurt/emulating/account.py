"""Where the packets of real hosts went: what the system counted, what the network counted.

From a command to another, a packet passes: the sender's device, the network, the receiver's device.
Each step counts for itself; :func:`findings` compares neighbours and says who lost what.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from talkspurt.results.manifest import RealTime

NOTABLE = 1e-3
"""The share of late packets above which the result is doubtful."""


def joined(
    said: RealTime,
    counted: Mapping[str, Mapping[str, int] | None],
    gone: Collection[str],
) -> RealTime:
    """The network's account with the system's counters of each device, and who was killed."""
    for host in said["hosts"]:
        host["device"] = counted.get(host["node"])
        host["killed"] = host["node"] in gone
    return said


def failures(real_time: RealTime) -> list[str]:
    """Sentences on what ended the emulation, other than its end or that of its commands."""
    found = []
    for host in real_time["hosts"]:
        if host["killed"]:
            found.append(f"{host['node']}: its processes were killed, which ended the emulation")
        if host["failure"]:
            found.append(
                f"{host['node']}: its device failed, which ended the emulation: {host['failure']}"
            )
    return found


def findings(real_time: RealTime) -> list[str]:
    """Sentences on failures, packets lost outside the scenario's network, and late ones."""
    hosts = real_time["hosts"]
    found = failures(real_time)
    found += [words for host in hosts for words in _of_host(host)]
    for what, begun, ended in (
        ("has", _sum([real_time], "sent", "copied", "fragment", "message"),
         _sum([real_time], "arrived", "expired", "dropped", "in_flight")),
        ("got", _sum(hosts, "sent"), _sum([real_time], "sent")),
        ("gave", _sum([real_time], "arrived") + _sum(hosts, "answered"),
         _sum(hosts, "written", "refused")),
    ):  # fmt: skip
        if begun != ended:
            found.append(
                f"the network {what} {begun} packets to account for, and accounts for {ended}"
            )
    begin_s, end_s = real_time.get("window_s", (0.0, math.inf))
    if end_s <= begin_s:
        found.append(
            f"the tables are empty: the emulation ended after {end_s:.3g} s, and the window of "
            f"measurement begins after {begin_s:g} s (--set measure.from=0s)"
        )
    if count := real_time["uncaptured_packets"]:
        found.append(f"{count} packets are missing from the captures: they fit no IP packet")
    late = real_time["lateness"]["later_than_1ms_ratio"] or 0.0
    if late > NOTABLE:
        found.append(
            f"{100 * late:.1f} % of packets left the network more than 1 ms late: the machine is "
            "too slow or too busy for this scenario"
        )
    return found


def _sum(counts: Iterable[Mapping[str, Any]], *names: str) -> int:
    return sum(it.get(f"{name}_packets", 0) for it in counts for name in names)


def _of_host(host: Mapping[str, Any]) -> Iterator[str]:
    node, device = host["node"], host["device"]
    read = host["read_packets"]
    ended = _sum([host], "sent", "unroutable", "malformed", "after_end")
    if read != ended:
        yield f"{node}: the network read {read} packets, and accounts for {ended}"
    if device is None:
        if not host["killed"] and not host["failure"]:
            yield f"{node}: the system's counters of its device are not known"
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
        ("malformed", "are no valid IP packets"),
        ("unroutable", "were not from this node to one with --at, --serve or --shell"),
    ):
        if count := host[f"{key}_packets"]:
            yield f"{node}: {count} packets {words}"


def summary(real_time: RealTime) -> str:
    """A sentence on the packets and one on their lateness."""
    counts = [
        f"{_sum([real_time], how)} {words}"
        for how, words in (
            ("sent", "packets sent"), ("arrived", "arrived"), ("dropped", "dropped by links"),
            ("in_flight", "on their way at the end"), ("copied", "copied by links"),
            ("fragment", "more by fragmentation"),
            ("expired", "at the end of their time to live"), ("message", "messages of routers"),
        )
        if _sum([real_time], how) or how in ("sent", "arrived", "dropped")
    ]  # fmt: skip
    if after := _sum(real_time["hosts"], "after_end"):
        counts.append(f"{after} more sent after the end")
    late = real_time["lateness"]
    words = f"Real packets: {', '.join(counts)}."
    if late["packets"]:
        times = ", ".join(
            f"{name} {late[key] * 1e6:.0f} µs"
            for name, key in (("p50", "p50_s"), ("p99", "p99_s"), ("p99.9", "p999_s"))
        )
        words += (
            f" Lateness: {times}, {100 * late['later_than_1ms_ratio']:.2f} % later than 1 ms"
            f" ({real_time['priority']} priority)."
        )
    return words
