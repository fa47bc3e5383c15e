"""Warnings to read before comparing results.

They are derived from the flows table, or from a scenario before it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from talkspurt import _core
from talkspurt._lazy import pl
from talkspurt.scenarios.resolved import values

COLUMNS = (
    "name", "group", "transport", "handshake_wait_s", "redundancy_note",
    "rejected_packets", "damaged_packets", "sent_packets", "control_packets",
)  # fmt: skip
"""Columns of the flows table that warnings are found in."""
HANDSHAKES = ("tcp", "dccp", "sctp")
MAX_FLOWS = 5
"""Flows named individually in each kind of warning, at most."""


def cautions(flows: pl.DataFrame) -> list[str]:
    """Warnings about the rows of a flows table, of one run or a whole study."""
    there = [name for name in COLUMNS if flows.schema.get(name, pl.Null) != pl.Null]
    return _core.cautions(flows.select(there))


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
    said = [
        f"{name}: `lead` of its source is 0, so the first frame waits for the handshake of "
        f"{kind.upper()}, and the fixed playout buffer counts from its "
        "arrival: it is that much later for the whole call"
        for name, kind in hurried.items()
        if kind in HANDSHAKES
    ]
    return _few(said)


def _few(said: list[str]) -> list[str]:
    more = len(said) - MAX_FLOWS
    return [*said[:MAX_FLOWS], f"and {more} more flows likewise"] if more > 0 else said


def silent_redundancy(resolved: str) -> list[str]:
    """Redundancy of Opus in a resolved scenario: part of encoded sound, where there is none."""
    said = []
    for name, flow in values(resolved).get("flows", {}).items():
        for side in ("source", "reverse"):
            source = flow.get(side, {})
            wanted = [key for key in ("fec", "dred") if source.get("opus", {}).get(key)]
            if source.get("codec") == "opus" and wanted and not source.get("file"):
                said.append(
                    f"{name}: `{side}.opus.{wanted[0]}` changes nothing without sound: the "
                    f"redundancy is part of encoded speech; name a recording with `{side}.file`"
                )
    return _few(said)


def out_of_range(row: Mapping[str, Any], score: str = "mos") -> list[str]:
    """Where a score of a row of the flows table is outside the range of its model."""
    # Results of earlier versions have no such column.
    limits = row.get("quality_limits" if score == "mos" else "estimate_limits")
    return limits.split("; ") if limits else []
