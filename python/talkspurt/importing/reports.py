"""What the ends of a call report in RTCP, beside what the capture shows itself."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from talkspurt import _core
from talkspurt.importing.conversations import Found, Part
from talkspurt.importing.model import Way

Report = dict[str, Any]

EVENTS = {
    "nack": "nack", "picture_loss": "pli", "full_intra": "fir", "bye": "bye",
    "slice_loss": "sli",
}  # fmt: skip
"""Reports that are events of the direction that they ask for."""


def read(data: bytes) -> list[int]:
    """The sources that send the reports in a packet of RTCP, so far as it is not encrypted."""
    return [one["ssrc"] for one in parsed(data) if one["kind"] in ("sender", "receiver")]


def parsed(data: bytes) -> list[Report]:
    """The reports in a packet of RTCP."""
    return list(json.loads(_core.rtcp(data)))


def add(ways: list[Way], found: Found, parts: list[Part]) -> None:
    """Add to the directions of a flow what their ends reported.

    Counts of the kinds of reports are facts of the direction whose end sent them; losses, jitter,
    round-trip time and requests are those of the direction of which they speak.
    """
    of = dict(zip(found.ssrcs, ways, strict=False))
    timed: list[tuple[int, float, bytes]] = []
    for way, (_, rows) in zip(ways, parts, strict=True):
        kinds: Counter[str] = Counter()
        for row in rows:
            if not row["rtcp"]:
                continue
            timed.append((row["time_ns"], row["t"], row["rtcp"]))
            for report in parsed(row["rtcp"]):
                kinds[report["kind"]] += 1
                _of(report, row["t"], of, ways, way)
        if kinds:
            way.facts["rtcp"] = dict(kinds)
    timed.sort()
    at = {time_ns: t for time_ns, t, _ in timed}
    trips = json.loads(_core.rtcp_round_trips([(time_ns, data) for time_ns, _, data in timed]))
    for trip in trips:
        way_ = of.get(trip["source"])
        if way_ is not None:
            way_.gauges.append((at[trip["time_ns"]], "rtcp_rtt", trip["seconds"]))


def _of(report: Report, t: float, of: dict[int, Way], ways: list[Way], by: Way) -> None:
    for block in report.get("blocks", ()):
        way = of.get(block["ssrc"])
        if way is None:
            continue
        way.gauges.append((t, "reported_loss", block["fraction_lost"] / 256))
        if clock := way.facts.get("clock_hz"):
            way.gauges.append((t, "reported_jitter", block["jitter"] / clock))
        way.facts["reported_lost_packets"] = block["cumulative_lost"]
    if text := EVENTS.get(report["kind"]):
        way = of.get(report.get("media", -1), by if report["kind"] == "bye" else None)
        if way is None:
            way = next((one for one in ways if one is not by), by)
        way.events.append((t, text))
        if report["kind"] == "nack":
            count = way.facts.get("nacked_packets", 0) + len(report["lost"])
            way.facts["nacked_packets"] = count
    if report["kind"] == "maximum_rate":
        other = next((one for one in ways if one is not by), by)
        other.gauges.append((t, "reported_maximum_rate", float(report["bps"])))
