"""What a reader must know about a measurement of a real path, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from talkspurt.results.manifest import Measured

COUNTS = {
    "policed_packets": "packets not sent, as beyond the {server}'s limit of the rate",
    "unsent_packets": "packets not accepted by the system",
    "refused_datagrams": "datagrams not authentic, repeated, or beyond the rate",
    "overrun_datagrams": "datagrams lost in the socket's full buffer, not on the path",
}


def ends(measured: Measured) -> tuple[str, str]:
    """Names of the two ends, the one that connected first."""
    return ("caller", "answerer") if "call" in measured else ("client", "server")


def notes(measured: Measured) -> list[str]:
    """What a reader must know about a measurement, a sentence each."""
    first, second = ends(measured)
    said = [*_clocks(measured, second)]
    for flow, facts in measured["flows"].items():
        said += _of_flow(flow, facts, {"client": first, "server": second})
    for end, facts_of_end in zip((first, second), measured["ends"].values(), strict=True):
        if facts_of_end is not None:
            said += _of_end(end, facts_of_end, second)
    if not measured["complete"]:
        said.append(
            f"The {second}'s notes are missing: what arrived there, and what it sent after the "
            "last packet that came, is not known."
        )
    return said


def _clocks(measured: Measured, second: str) -> Iterator[str]:
    """How exact one-way delays are, and the round-trip times."""
    bound = measured["clock_offset_bound_s"]
    if measured["clock_jump_s"] is not None:
        yield (
            f"A clock was set during the measurement, by {_ms(measured['clock_jump_s'])} or more: "
            "one-way delays are not known."
        )
    elif bound is None:
        yield "No packets came back: one-way delays are not known."
    else:
        drift = measured["clock_drift_ppm"]
        yield (
            f"One-way delays are within ± {_ms(bound)}: half the minimum round-trip time, as a "
            "longer way there and a shorter one back look the same, and the error of the clocks' "
            "drift. "
        ) + (
            "The drift is within its error, or may be that of queues, and is not removed."
            if drift is None
            else f"The {second}'s clock gained {drift:.1f} µs a second, which is removed."
        )
    if (least := measured["rtt_min_s"]) is not None:
        yield (
            f"Round-trip time: minimum {_ms(least)}, median {_ms(measured['rtt_p50_s'])}, maximum "
            f"{_ms(measured['rtt_max_s'])} of {measured['rtt_samples']} probes."
        )


def _of_flow(flow: str, facts: Mapping[str, Any], named: Mapping[str, str]) -> Iterator[str]:
    if facts["reordered_packets"]:
        yield f"{flow}: packets overtaken by later ones: {facts['reordered_packets']}."
    if facts["missing_packets"]:
        yield (
            f"{flow}: packets that did not come, before the last one that came: "
            f"{facts['missing_packets']}."
        )
    if tcp := facts["tcp"]:
        sent, again = tcp["segments"], tcp["retransmitted_segments"]
        yield f"{flow}: TCP segments sent: {sent}, retransmissions among them: {again}."
    if not flow.endswith(".reverse"):
        for stop in facts["stopped"]:
            where = named[stop["end"]]
            yield f"{flow}: stopped at {stop['at_s']:.1f} s by the {where}: {stop['why']}."
        if facts["blocked"]:
            yield f"{flow}: {facts['blocked']}."
    if (since := facts["silent_from_s"]) is not None:
        yield (
            f"{flow}: nothing arrived any more after {since:.1f} s, while more was sent: "
            "is a firewall in between?"
        )


def _of_end(end: str, facts: Mapping[str, Any], server: str) -> Iterator[str]:
    if (since := facts["silent_from_s"]) is not None:
        yield (
            f"At the {end}, no datagram arrived any more after {since:.1f} s, until "
            f"{facts['ended_s']:.1f} s: is a firewall in between?"
        )
    for what, words in COUNTS.items():
        if facts[what]:
            yield f"At the {end}, {words.format(server=server)}: {facts[what]}."
    if facts["too_long_packets"]:
        mtu, packets = facts["route_mtu_bytes"], facts["too_long_packets"]
        of = "" if mtu is None else f", {mtu} B"
        yield (
            f"At the {end}, packets directly over IP that were not sent, as they are longer "
            f"than the MTU of its route{of}: {packets}. Use a smaller --packet."
        )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 0.1 else f"{seconds * 1e3:.0f} ms"
