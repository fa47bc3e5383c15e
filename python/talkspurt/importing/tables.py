"""The tables of a run from the directions of flows that a trace holds.

Definitions are those of the tables of runs; what the trace does not tell is null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from talkspurt import _core
from talkspurt.importing.model import Packet, Trace, Way
from talkspurt.metrics import dictionary

FIRST = ("name", "transport", "source", "from", "to", "group")
LOST = ("lost", "full", "early", "medium", "down", "too_big", "retries")


def schema(table: str) -> dict[str, Any]:
    """Columns and types of a table, as a run has them."""
    names = [one.name for one in dictionary.TABLES[table]]
    if table == "flows":
        names = [*FIRST, *(name for name in names if name not in FIRST)]

    kinds = dictionary.kinds(table)
    return {name: getattr(pl, kinds[name]) for name in names}


def frame(table: str, rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """A table of rows that may lack columns; these are null."""
    columns = schema(table)
    full = [{name: row.get(name) for name in columns} for row in rows]
    return pl.DataFrame(full, schema=columns)


def interval_s(duration_s: float) -> float:
    """Width of the bins of series: 100 ms, and more for traces over ten minutes."""
    width = 0.1
    while duration_s / width > 6000:
        width *= 10
    return width


class Tables:
    """All tables of a trace.

    Attributes:
        flows_told: settings of each flow for the scenario.
    """

    def __init__(self, trace: Trace, buffer_s: float) -> None:
        self.trace, self.buffer_s = trace, buffer_s
        self.width = interval_s(trace.duration_s)
        self.shown = [way for way in trace.ways if way.has_data or way.side == "from"]
        self.flows_told = self._told()
        self.calls = {
            way.name: Call(way, self.flows_told[way.flow], buffer_s, trace.duration_s)
            for way in self.shown
            if way.speech is not None
        }
        self.made = {
            "flows": frame("flows", map(self._flow, self.shown)),
            "links": frame("links", self._links()),
            "series": frame("series", (row for way in self.shown for row in self._series(way))),
            "link_series": frame("link_series", self._link_series()),
            "gauges": frame("gauges", ()),
            "frames": frame("frames", (row for c in self.calls.values() for row in c.frames)),
            "video_frames": frame("video_frames", ()),
            "events": frame("events", self._events()),
            "packets": frame("packets", self._packets()),
        }

    def _told(self) -> dict[str, dict[str, Any]]:
        """The flows of the scenario: what is known, in its words."""
        told: dict[str, dict[str, Any]] = {}
        for way in self.shown:
            flow = told.setdefault(
                way.flow,
                {"from": way.sender, "to": way.receiver, "start": "0ns",
                 "transport": {"kind": way.transport}, "source": {"kind": "unknown"}},
            )  # fmt: skip
            source: dict[str, Any] = {"kind": "unknown"}
            if way.speech is not None:
                speech = way.speech
                source = {"kind": "speech", "codec": speech.codec,
                          "packet": f"{speech.packet_s * 1e3:g}ms"}  # fmt: skip
                flow["playout"] = {"kind": "fixed", "buffer": f"{self.buffer_s * 1e3:g}ms",
                                   "anchor": "first_arrival"}  # fmt: skip
            flow["source" if way.side == "from" else "reverse"] = source
        return told

    def _flow(self, way: Way) -> dict[str, Any]:
        data = [packet for packet in way.packets if packet.data]
        arrived = [packet for packet in data if packet.received_s is not None]
        counted = way.sees_sent or way.counts
        lost = [packet for packet in data if packet.fate in LOST]
        row: dict[str, Any] = {
            "name": way.name, "transport": way.transport, "source": way.source,
            "from": way.sender, "to": way.receiver,
            "sent_packets": len(data) if counted else None,
            "received_packets": len(arrived),
            "lost_packets": len(lost) if counted else None,
            "in_flight_packets": len(data) - len(arrived) - len(lost) if way.sees_sent else None,
            "control_packets": len(way.packets) - len(data),
            "received_bytes": sum(packet.ip_bytes or 0 for packet in arrived),
        }  # fmt: skip
        if way.sees_sent:
            row["sent_bytes"] = sum(packet.ip_bytes or 0 for packet in data)
            if data and all(packet.headers is not None for packet in data):
                heads = [packet.headers or (0, 0, 0) for packet in data]
                names = ("network_header_bytes", "transport_header_bytes", "media_header_bytes")
                row |= {name: sum(head[i] for head in heads) for i, name in enumerate(names)}
                row["payload_bytes"] = sum(packet.payload_bytes or 0 for packet in data)
        span = self.trace.duration_s
        if span > 0:
            row["throughput_bps"] = 8 * row["received_bytes"] / span
            if arrived and all(packet.fresh_bytes is not None for packet in arrived):
                row["goodput_bps"] = 8 * sum(packet.fresh_bytes or 0 for packet in arrived) / span
        row |= _delays(arrived)
        row["jitter_s"] = jitter_s(arrived)
        if way.name in self.calls:
            row |= self.calls[way.name].columns
        return row

    def _series(self, way: Way) -> Iterable[dict[str, Any]]:
        bins = max(1, math.ceil(self.trace.duration_s / self.width - 1e-9))
        late = self.calls[way.name].late_s if way.name in self.calls else None
        rows: list[dict[str, Any]] = [
            {"flow": way.name, "time_s": min((i + 1) * self.width, self.trace.duration_s),
             "received_packets": 0, "received_bytes": 0, "delays": [], "fresh": 0, "known": True,
             **({"sent_packets": 0, "sent_bytes": 0, "lost_packets": 0} if way.sees_sent else {}),
             **({"late_packets": 0} if late is not None else {})}
            for i in range(bins)
        ]  # fmt: skip

        def at(time: float) -> dict[str, Any]:
            return rows[min(bins - 1, int(time / self.width + 1e-9))]

        for packet in way.packets:
            if not packet.data:
                continue
            if way.sees_sent and packet.sent_s is not None:
                row = at(packet.sent_s)
                row["sent_packets"] += 1
                row["sent_bytes"] += packet.ip_bytes or 0
                row["lost_packets"] += packet.fate in LOST
            if packet.received_s is not None:
                row = at(packet.received_s)
                row["received_packets"] += 1
                row["received_bytes"] += packet.ip_bytes or 0
                row["known"] &= packet.fresh_bytes is not None
                row["fresh"] += packet.fresh_bytes or 0
                if packet.sent_s is not None:
                    row["delays"].append(packet.received_s - packet.sent_s)
        for time in late or ():
            at(time)["late_packets"] += 1
        knows = all(p.fresh_bytes is not None for p in way.packets if p.received_s is not None)
        begin = 0.0
        for row in rows:
            length = row["time_s"] - begin
            begin = row["time_s"]
            if knows and length > 0:
                row["goodput_bps"] = 8 * row["fresh"] / length
            if row["delays"]:
                row["delay_mean_s"] = math.fsum(row["delays"]) / len(row["delays"])
                row["delay_max_s"] = max(row["delays"])
        return rows

    def _links(self) -> Iterable[dict[str, Any]]:
        hops: dict[str, list[Any]] = {name: [] for name in self.trace.links}
        for way in self.trace.ways:
            for hop in way.hops:
                hops[hop.link].append(hop)
        for name, (here, there) in self.trace.links.items():
            row: dict[str, Any] = {"name": name, "from": here, "to": there}
            queued = any(hop.enqueued_s is not None for hop in hops[name])
            sent = [hop for hop in hops[name] if hop.dequeued_s is not None]
            if queued:
                drops = [hop.fate for hop in hops[name] if hop.fate in LOST]
                row |= {"drops": len(drops), "drops_full": drops.count("full"),
                        "drops_medium": drops.count("medium"),
                        "drops_retries": drops.count("retries")}  # fmt: skip
            if sent and queued:
                row |= {"sent_packets": len(sent), "sent_bytes": sum(h.ip_bytes or 0 for h in sent)}
                waits = sorted(hop.dequeued_s - hop.enqueued_s for hop in sent)
                row |= {f"sojourn_{kind}_s": value for kind, value in _statistics(waits).items()
                        if kind != "min"}  # fmt: skip
                row["queue_mean_packets"] = math.fsum(waits) / self.trace.duration_s
                row["queue_mean_bytes"] = (
                    math.fsum(
                        (hop.dequeued_s - hop.enqueued_s) * (hop.ip_bytes or 0) for hop in sent
                    )
                    / self.trace.duration_s
                )
                row["queue_max_packets"] = _longest(sent)
            yield row

    def _link_series(self) -> Iterable[dict[str, Any]]:
        bins = max(1, math.ceil(self.trace.duration_s / self.width - 1e-9))
        ends = [min(i * self.width, self.trace.duration_s) for i in range(bins)]
        ends.append(self.trace.duration_s)
        for name in self.trace.links:
            hops = [h for way in self.trace.ways for h in way.hops if h.link == name]
            if not any(hop.dequeued_s is not None and hop.enqueued_s is not None for hop in hops):
                continue
            waits: list[list[float]] = [[] for _ in range(bins)]
            drops = [0] * bins
            queue = [[0.0, 0.0] for _ in range(bins)]
            for hop in hops:
                if hop.enqueued_s is None:
                    continue
                place = min(bins - 1, int((hop.dequeued_s or hop.enqueued_s) / self.width + 1e-9))
                if hop.dequeued_s is not None:
                    waits[place].append(hop.dequeued_s - hop.enqueued_s)
                    for i in range(min(bins - 1, int(hop.enqueued_s / self.width)), place + 1):
                        begin, end = max(hop.enqueued_s, ends[i]), min(hop.dequeued_s, ends[i + 1])
                        queue[i][0] += max(0.0, end - begin)
                        queue[i][1] += max(0.0, end - begin) * (hop.ip_bytes or 0)
                drops[place] += hop.fate in LOST
            for i in range(bins):
                width = ends[i + 1] - ends[i]
                yield {
                    "link": name, "time_s": ends[i + 1], "drops": drops[i],
                    "queue_packets": queue[i][0] / width, "queue_bytes": queue[i][1] / width,
                    "sojourn_mean_s": math.fsum(waits[i]) / len(waits[i]) if waits[i] else None,
                    "sojourn_max_s": max(waits[i], default=None),
                }  # fmt: skip

    def _events(self) -> Iterable[dict[str, Any]]:
        rows = [
            {"time_s": time, "flow": way.flow, "side": way.side, "event": text}
            for way in self.trace.ways
            for time, text in way.events
        ]
        return sorted(rows, key=lambda row: float(str(row["time_s"])))

    def _packets(self) -> Iterable[dict[str, Any]]:
        rows = [
            {"flow": way.flow, "side": way.side, "number": hop.number, "link": hop.link,
             "ip_bytes": hop.ip_bytes, "enqueued_s": hop.enqueued_s,
             "dequeued_s": hop.dequeued_s, "received_s": hop.received_s, "fate": hop.fate}
            for way in self.trace.ways
            for hop in way.hops
        ]  # fmt: skip

        def begin(row: dict[str, Any]) -> float:
            times = (row["enqueued_s"], row["dequeued_s"], row["received_s"])
            return next((time for time in times if time is not None), math.inf)

        return sorted(rows, key=begin)


def _longest(hops: Sequence[Any]) -> int:
    """The longest queue: packets that have arrived and whose transmission has not begun."""
    changes = sorted(
        change for hop in hops for change in ((hop.enqueued_s, 1), (hop.dequeued_s, -1))
    )
    most = now = 0
    # Departures come before arrivals at the same instant, but a packet arrives before it leaves.
    for _, step in changes:
        now += step
        most = max(most, now)
    return most


def _statistics(ascending: Sequence[float]) -> dict[str, float]:
    if not ascending:
        return {}

    def rank(share: float) -> float:
        return ascending[max(0, math.ceil(share * len(ascending)) - 1)]

    return {
        "min": ascending[0], "mean": math.fsum(ascending) / len(ascending), "p50": rank(0.5),
        "p95": rank(0.95), "p99": rank(0.99), "max": ascending[-1],
    }  # fmt: skip


def _delays(arrived: Iterable[Packet]) -> dict[str, float]:
    delays = sorted(
        p.received_s - p.sent_s
        for p in arrived
        if p.received_s is not None and p.sent_s is not None
    )
    return {f"delay_{kind}_s": value for kind, value in _statistics(delays).items()}


def jitter_s(arrived: Sequence[Packet]) -> float | None:
    """The mean of RFC 3550's estimate (A.8) after each arrival but the first.

    The spacing of departures is that at the sender, if it is known, else that of RTP timestamps;
    packets without either, as those of events among speech, do not count.
    """
    estimate, values, before = 0.0, [], None
    for packet in sorted(arrived, key=lambda p: p.received_s or 0.0):
        left = packet.sent_s if packet.sent_s is not None else packet.media_s
        if left is None or packet.received_s is None:
            continue
        transit = packet.received_s - left
        if before is not None:
            estimate += (abs(transit - before) - estimate) / 16
            values.append(estimate)
        before = transit
    return math.fsum(values) / len(values) if values else None


CONCEALED_S = {"pcmu": 0.00375, "pcma": 0.00375, "g722": 0.00375}
"""Delay of the concealment of G.711 Appendix I, for codecs without concealment of their own."""
LOOK_AHEAD_S = {"g729a": 0.005, "g723.1-6.3": 0.0075, "g723.1-5.3": 0.0075}
"""Look-ahead of the encoders (G.729, G.723.1)."""


class Call:
    """Speech of one direction through a fixed playout buffer, as :mod:`docs/playout.md` has it.

    Attributes:
        frames: rows of the frames table.
        late_s: arrivals of late frames.
        columns: columns of the flows table.
    """

    def __init__(self, way: Way, told: dict[str, Any], buffer_s: float, end_s: float) -> None:
        assert way.speech is not None
        self.way, self.speech = way, way.speech
        self.frames: list[dict[str, Any]] = []
        self.late_s: list[float] = []
        self._play(buffer_s)
        self.columns = self._columns(told)

    def _play(self, buffer_s: float) -> None:
        speech = self.speech
        media = [p for p in self.way.packets if p.data and p.media_s is not None]
        media.sort(key=lambda p: p.media_s or 0.0)
        arrivals = [p for p in media if p.received_s is not None]
        first = min(arrivals, key=lambda p: p.received_s or 0.0)
        assert first.received_s is not None and first.media_s is not None
        origin = first.received_s - first.media_s + buffer_s
        extra = CONCEALED_S.get(speech.codec, 0.0)
        # The packet that was fastest left when its last sample had been captured.
        ahead = speech.packet_s + LOOK_AHEAD_S.get(speech.codec, 0.0)
        zero = speech.first_s - (speech.delay_s or 0.0) - ahead
        for index, packet in enumerate(media):
            assert packet.media_s is not None
            due = origin + packet.media_s
            fate = "lost"
            if packet.received_s is not None:
                fate = "played" if packet.received_s <= due + 1e-9 else "late"
            if fate == "late" and packet.received_s is not None:
                self.late_s.append(packet.received_s)
            self.frames.append(
                {"flow": self.way.name, "index": index, "captured_s": zero + packet.media_s,
                 "handed_over_s": packet.sent_s, "delivered_s": packet.received_s,
                 "playout_s": due + extra, "paused_s": 0.0, "fate": fate}
            )  # fmt: skip

    def _columns(self, told: dict[str, Any]) -> dict[str, Any]:
        fates = [row["fate"] for row in self.frames]
        heard = [row for row in self.frames if row["fate"] == "played"]
        lost, late = fates.count("lost"), fates.count("late")
        share = (lost + late) / len(fates)
        runs = [0]
        for before, fate in zip(["played", *fates], fates, strict=False):
            if fate != "played":
                runs += [1] if before == "played" else []
                runs[-1] += before != "played"
        runs = runs[1:]
        # ITU-T G.107 §7.4: mean length of loss runs, over that of random losses.
        burst = sum(runs) / len(runs) * (1 - share) if runs else None
        ears = sorted(row["playout_s"] - row["captured_s"] for row in heard)
        ear = math.fsum(ears) / len(ears) if ears else None
        known = self.speech.delay_s is not None
        columns: dict[str, Any] = {
            "late_packets": late, "recovered_packets": 0, "missing_packets": lost,
            "loss_ratio": share, "concealed_ratio": share, "unheard_lost_ratio": lost / len(fates),
            "unheard_late_ratio": late / len(fates), "unheard_paused_ratio": 0.0, "paused_s": 0.0,
            "burst_ratio": burst, "longest_gap_s": max(runs, default=0) * self.speech.packet_s,
        }  # fmt: skip
        if known and ears:
            columns |= {
                "mouth_to_ear_p50_s": _statistics(ears)["p50"], "mouth_to_ear_mean_s": ear,
                "mouth_to_ear_max_s": ears[-1],
            }  # fmt: skip
        back = self.way.side == "to"
        try:
            asked = json.dumps({**told, "source": told["reverse"]} if back else told)
            columns |= json.loads(_core.quality(asked, False, ear, share, burst))
        except ValueError as error:
            columns["quality_note"] = f"no score: {error}"
        buffer = told["playout"]["buffer"]
        notes = [
            columns.get("quality_note"),
            f"fixed playout buffer of {buffer} after the first arrival",
        ]
        if not known:
            notes.append(
                "network delay before the capture taken as 0, because it is not known: an upper "
                "limit"
            )
        columns["quality_note"] = "; ".join(filter(None, notes))
        return columns
