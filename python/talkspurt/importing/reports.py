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


def add(flows: list[tuple[Found, list[Way], list[Part]]]) -> None:
    """Add to the directions of a conversation's flows what their ends reported.

    One packet may have reports on several flows. Counts of the kinds of reports are facts of the
    direction whose end sent them; losses, jitter, round-trip time and requests are those of the
    direction of which they speak.
    """
    of = {
        ssrc: way for found, ways, _ in flows for ssrc, way in zip(found.ssrcs, ways, strict=False)
    }
    timed: list[tuple[int, float, bytes]] = []
    for _, ways, parts in flows:
        for way, (_, rows) in zip(ways, parts, strict=True):
            kinds: Counter[str] = Counter()
            for row in rows:
                kinds.update(report["kind"] for report in row["reports"])
                for report in row["reports"]:
                    _of(report, row["t"], of, ways, way)
                if row["reports"] and row["reports"][0]["kind"] != "encrypted":
                    timed.append((row["time_ns"], row["t"], row["rtcp"]))
            if kinds:
                way.facts["rtcp"] = dict(kinds)
    timed.sort()
    at = {time_ns: t for time_ns, t, _ in timed}
    trips = json.loads(_core.rtcp_round_trips([(time_ns, data) for time_ns, _, data in timed]))
    for trip in trips:
        if (sender := of.get(trip["source"])) is not None:
            sender.gauges.append((at[trip["time_ns"]], "rtcp_rtt", trip["seconds"]))


def _of(report: Report, t: float, of: dict[int, Way], ways: list[Way], by: Way) -> None:
    for block in report.get("blocks", ()):
        way = of.get(block["ssrc"])
        if way is None:
            continue
        way.gauges.append((t, "reported_loss", block["fraction_lost"] / 256))
        if clock := way.facts.get("clock_hz"):
            way.gauges.append((t, "reported_jitter", block["jitter"] / clock))
        way.facts["reported_lost_packets"] = block["cumulative_lost"]
    other = next((one for one in ways if one is not by), by)
    if text := EVENTS.get(report["kind"]):
        # RFC 5104 §4.3.1.1: a full intra request names its sources in a list.
        asked = [report.get("media"), *(one["ssrc"] for one in report.get("requests", ()))]
        named = (of[ssrc] for ssrc in asked if ssrc in of)
        way = by if report["kind"] == "bye" else next(named, other)
        way.events.append((t, text))
        if report["kind"] == "nack":
            count = way.facts.get("nacked_packets", 0) + len(report["lost"])
            way.facts["nacked_packets"] = count
    if report["kind"] == "congestion_control":
        for stream in report["streams"]:
            if (way := of.get(stream["ssrc"])) is not None:
                _feedback(way, t, stream["metrics"])
    if report["kind"] == "transport_wide" and report["count"]:
        # Its numbers are those of all sources of the transport; it names one of them.
        way = of.get(report["media"], other)
        way.gauges.append((t, "feedback_loss", 1 - len(report["received"]) / report["count"]))
    if report["kind"] == "maximum_rate":
        other.gauges.append((t, "reported_maximum_rate", float(report["bps"])))


def _feedback(way: Way, t: float, metrics: list[tuple[int, int] | None]) -> None:
    """RFC 8888 §3.1: for each packet its ECN field and its age, or null if it has not arrived."""
    arrived = [metric[0] for metric in metrics if metric is not None]
    if metrics:
        way.gauges.append((t, "feedback_loss", 1 - len(arrived) / len(metrics)))
    if any(arrived):  # some packet was ECN-capable; 3 is CE (RFC 3168 §5)
        way.gauges.append((t, "feedback_marks", arrived.count(3) / len(arrived)))
