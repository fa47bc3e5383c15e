"""Turns what a trace shows of a path into links that a scenario can use."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import tomli_w

from talkspurt._storage import file_access, writer
from talkspurt._storage.output_folder import MANIFEST, Claim, Staging
from talkspurt._text.escaping import whole
from talkspurt.errors import BadInputError
from talkspurt.importing.model import Packet, Trace, Way

RATE = "1Gbit/s"
"""Packets do not wait for the link: what they waited for is part of the delays."""
LEAST_S = 1e-6
"""Steps of a link have different times."""
NONE = (
    "--as-network: no direction has delays: they need two captures, or RTP whose clock is known "
    "(--payload, --sdp)"
)
KNOWN = (
    "Delays are those of the packets of one flow, one after another: what it caused itself is in",
    "them, and how the path would treat more packets, or longer ones, is not known. Packets that",
    "were lost are steps with loss 1, so that a flow with the same times loses the same ones.",
)


def steps(way: Way, base_s: float) -> list[tuple[float, float | None, int]] | None:
    """When each packet left, its delay (None: lost), and whether it was lost; None if not known.

    At one point, a packet of RTP left when its media was complete, and its delay is that beyond
    the fastest packet's, plus ``base_s``.
    """
    packets = [p for p in way.packets if p.data and (p.sent_s is not None or not way.sees_sent)]
    if way.sees_sent:
        times = [(p.sent_s, p) for p in packets if p.sent_s is not None]
        delays = [None if p.received_s is None else p.received_s - t for t, p in times]
        return _of(way, times, delays, 0.0)
    media = [p for p in packets if p.media_s is not None]
    if len(media) < 2:
        return None
    speed = 1 + (way.speech.drift_ppm if way.speech else 0.0) * 1e-6
    times = [((p.media_s or 0.0) * speed, p) for p in media]
    transits = [None if p.received_s is None else p.received_s - t for t, p in times]
    least = min(one for one in transits if one is not None)
    return _of(way, times, [None if one is None else one - least for one in transits], base_s)


def _of(
    way: Way, times: list[tuple[float, Packet]], delays: list[float | None], base_s: float
) -> list[tuple[float, float | None, int]]:
    # The source of a scenario sends its first packet when it is full.
    first = times[0][0] - (way.speech.packet_s if way.speech else 0.0)
    rows = [
        (at - first, None if delay is None else max(0.0, delay + base_s), int(p.fate == "lost"))
        for (at, p), delay in zip(times, delays, strict=True)
        if delay is not None or p.fate == "lost"
    ]
    rows.sort(key=lambda row: row[0])
    return rows


def stop_s(way: Way) -> float:
    """When a source of a scenario stops that sends as much speech from 0 s on."""
    assert way.speech is not None
    media = [packet.media_s for packet in way.packets if packet.media_s is not None]
    packet_s = way.speech.packet_s
    # The last packet leaves when it is full: before the source stops, not as it does.
    return max(media) - min(media) + 1.5 * packet_s


def table(rows: list[tuple[float, float | None, int]]) -> str:
    """The steps of a link as CSV: each lies between a packet and the one before."""
    lines = ["time_s,delay_ms,loss"]
    known, before, last = 0.0, None, -1.0
    befores = [0.0, *((one[0] + other[0]) / 2 for one, other in pairwise(rows))]
    for begin, (_, delay, lost) in zip(befores, rows, strict=True):
        known = known if delay is None else delay
        step = (round(known * 1e3, 6), lost)
        if step != before:
            last = max(begin, last + LEAST_S)
            lines.append(f"{last:.6f},{step[0]:.6f},{lost}")
        before = step
    return "\n".join(lines) + "\n"


def export(
    target: Path, trace: Trace, told: dict[str, dict[str, Any]], *, overwrite: bool = False
) -> Path:
    """Write a folder with a link trace for each direction, and a scenario that uses them.

    Raises:
        BadInputError: if no direction has delays.
        talkspurt.errors.StoreError: if the folder has other content or cannot be written.
    """
    with Staging(target, Claim("export", overwrite=overwrite)) as staging:
        with file_access.writing(staging.folder):
            _write(staging.folder, trace, told)
        manifest = {**writer.header("export"), "to": "network", "digest": None}
        file_access.write_text(staging.folder / MANIFEST, file_access.to_json(manifest))
        return staging.commit()


def _write(folder: Path, trace: Trace, told: dict[str, dict[str, Any]]) -> None:
    links: dict[str, Any] = {}
    flows: dict[str, Any] = {}
    duration = 0.0
    measured = []
    for way in trace.ways:
        known = steps(way, (way.speech.delay_s or 0.0) if way.speech else 0.0)
        if not known:
            continue
        measured.append(way.name)
        file = folder / f"{way.name}.csv"
        file.write_text(table(known), encoding="utf-8")
        duration = max(duration, known[-1][0])
        part = {"trace": {"kind": "csv", "file": file.name}}
        here, there = f"{way.flow}-here", f"{way.flow}-there"
        ends = {"from": here, "to": there} if way.side == "from" else {"from": there, "to": here}
        # Names have no dots.
        name = way.name.replace(".", "-")
        if way.side == "to" and way.flow in links:
            links[way.flow]["back"] = part
        else:
            links[name] = {
                **ends, "rate": RATE, "delay": "0ms",
                "queue": {"kind": "droptail", "packets": 10_000}, **part,
            }  # fmt: skip
        flow = told.get(way.flow, {})
        source = dict(flow.get("source" if way.side == "from" else "reverse", {}))
        if "opus" in source:
            # In-band FEC is part of encoded sound: without a recording there is none.
            source["opus"] = {key: it for key, it in source["opus"].items() if key != "fec"}
        if source.get("kind") == "speech":
            flows[name] = {
                **ends, "start_spread": "0s", "stop": f"{stop_s(way):.6f}s",
                "transport": {"kind": "udp"}, "source": source, "playout": flow["playout"],
            }  # fmt: skip
    if not links:
        raise BadInputError(NONE)
    scenario: dict[str, Any] = {"title": "The network of an imported trace"}
    if flows:
        scenario["duration"] = f"{duration + 1:.3f}s"
    about = [*KNOWN, *bounds(trace.ways, measured)]
    text = "".join(f"# {line}\n" for line in map(whole, about))
    file = folder / "network.toml"
    file.write_text(text + tomli_w.dumps({**scenario, "links": links, "flows": flows}), "utf-8")


AT_THE_SENDER_S = 50e-6
"""Round trips between a sender and the capture below this are shown as 0.0 ms."""


def bounds(ways: list[Way], measured: list[str]) -> list[str]:
    """What of the delays is not known, and which directions have none.

    The way from a sender to the capture is a part of the round trip between them, which the
    reports of the other direction tell: those that this sender answered.
    """
    found = []
    for way in ways:
        if not way.sees_arrivals and way.has_data:
            found.append(
                f"{way.name}: sent by the end that recorded it, which knows nothing of its way: it "
                "has no flow here; a recording of the other end has its network"
            )
            continue
        if way.name not in measured:
            found += [f"{way.name}: no delays are known: it has no flow here"] * way.has_data
            continue
        if way.sees_sent or (way.speech is not None and way.speech.delay_s is not None):
            continue
        back = (one for one in ways if one.flow == way.flow and one.side != way.side)
        trips = [value for one in back for _, name, value in one.gauges if name == "rtcp_rtt"]
        if trips and min(trips) < AT_THE_SENDER_S:
            found.append(f"{way.name}: captured at its sender, by RTCP: no delay of the network")
            continue
        most = f" and less than {min(trips) * 1e3:.1f} ms, by RTCP" if trips else ""
        found.append(
            f"{way.name}: delays beyond that of the fastest packet, whose own is above 0{most}; "
            "--network-delay adds it"
        )
    return found
