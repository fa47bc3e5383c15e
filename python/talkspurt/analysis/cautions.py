"""Warnings to read before comparing results.

They are derived from the flows table, or from a scenario before it runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from talkspurt._lazy import pl
from talkspurt._text.format import time_text
from talkspurt.scenarios.resolved import values

REJECTED = 0.01
"""Share of a flow's packets rejected though intact, above which a warning is given.

A few are common when a connection closes.
"""
HANDSHAKES = ("tcp", "dccp", "sctp")
MAX_FLOWS = 5
"""Flows named individually in each kind of warning, at most."""


def cautions(flows: pl.DataFrame) -> list[str]:
    """Warnings about the rows of a flows table, of one run or a whole study."""
    rows = flows.to_dicts()
    return [*_late_openings(rows), *_rejections(rows), *_redundancy(rows)]


def openings(resolved: str) -> list[str]:
    """Speech in a resolved scenario that starts before its transport can have connected."""
    flows = values(resolved).get("flows", {})
    hurried = {
        name: flow["transport"]["kind"]
        for name, flow in flows.items()
        if flow.get("playout", {}).get("anchor") == "first_arrival"
        and (source := flow.get("source", {})).get("kind") == "speech"
        and not source.get("lead")
    }
    return _few(
        f"{name}: `lead` of its source is 0, so the first frame waits for the handshake of "
        f"{kind.upper()}, and the fixed playout buffer counts from its "
        "arrival: it is that much later for the whole call"
        for name, kind in hurried.items()
        if kind in HANDSHAKES
    )


def out_of_range(row: Mapping[str, Any], score: str = "mos") -> list[str]:
    """Where a score of a row of the flows table is outside the range of its model."""
    # Results of earlier versions have no such column.
    limits = row.get("quality_limits" if score == "mos" else "estimate_limits")
    return limits.split("; ") if limits else []


def _late_openings(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Frames that waited for a handshake, which delays playout."""
    waits: dict[str, float] = {}
    for row in rows:
        if wait := row.get("handshake_wait_s"):
            name = _flow(row)
            waits[name] = max(wait, waits.get(name, 0.0))
    # Rounded up to half a second, on top of the source's value.
    return _few(
        f"{name}: the first frame waited {time_text(wait)} for the handshake. A fixed playout "
        "buffer that counts from its arrival is that much later for the whole call; an adaptive "
        "one catches up. Add "
        f"{math.ceil(wait * 2) / 2:g} s or more to `lead` of its source to compare it with "
        "transports without a handshake"
        for name, wait in waits.items()
    )


def _redundancy(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Redundancy that the encoder of a call had no room for."""
    # Results of earlier versions have no such column.
    notes = ((_flow(row), note) for row in rows if (note := row.get("redundancy_note")))
    # One of the runs of a setting, and of numbers that differ from run to run.
    kinds = {(name, re.sub(r"\d+", "", note)): f"{name}: {note}" for name, note in notes}
    return _few(kinds.values())


def _rejections(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Intact packets that the other end rejected. TCP rejects retransmissions it already has."""
    totals: dict[str, list[int]] = {}
    for row in rows:
        # One end of a measurement alone does not know all of these.
        whats = ("rejected", "damaged", "sent", "control")
        known = [row.get(f"{what}_packets") for what in whats]
        if None in known or row["transport"].startswith("tcp"):
            continue
        sums = totals.setdefault(_flow(row), [0, 0])
        sums[0] += row["rejected_packets"] - row["damaged_packets"]
        sums[1] += row["sent_packets"] + row["control_packets"]
    return _few(
        f"{name}: the ends refused {refused} packets that were not damaged"
        # What arrives in the window of measurement may have been sent before it.
        f"{f' ({refused / sent:.1%} of those sent)' if sent else ''}; "
        "`rejected_packets` counts them, the events of the flow say why"
        for name, (refused, sent) in totals.items()
        if refused > REJECTED * sent
    )


def _flow(row: dict[str, Any]) -> str:
    group = row.get("group")
    return f"{group} (of a group)" if group else str(row["name"])


def _few(words: Iterable[str]) -> list[str]:
    said = list(words)
    more = len(said) - MAX_FLOWS
    return [*said[:MAX_FLOWS], f"and {more} more flows likewise"] if more > 0 else said
