"""The tables of a run from the directions of flows that a trace holds.

Definitions are those of the tables of runs; what the trace does not tell is null. A trace has no
window of measurement: rates are over the time from a flow's first packet to its last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from talkspurt._lazy import np, pl
from talkspurt.importing.model import Packet, Trace, Way
from talkspurt.importing.playing import Call
from talkspurt.metrics import dictionary
from talkspurt.ns2.trace import quantile
from talkspurt.results.audio import Audio

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
    """All tables of a trace."""

    def __init__(self, trace: Trace, playout: Mapping[str, Any], data: bytes = b"") -> None:
        self.trace, self.playout = trace, playout
        self.width = interval_s(trace.duration_s)
        self.shown = [way for way in trace.ways if way.has_data or way.side == "from"]
        self.flows_told = self._told()
        self.calls = {
            way.name: Call(way, self.flows_told[way.flow], trace.duration_s, data)
            for way in self.shown
            if way.speech is not None and way.sees_arrivals
        }
        bins = max(1, math.ceil(trace.duration_s / self.width - 1e-9))
        ends = [min((i + 1) * self.width, trace.duration_s) for i in range(bins)]
        self.bins = pl.DataFrame({"bin": range(bins), "time_s": ends}).with_columns(
            length_s=pl.col("time_s") - pl.col("time_s").shift(fill_value=0.0)
        )
        self.data = {way.name: _data(way) for way in self.shown}
        self.hops = self._packets()
        self.made = {
            "flows": frame("flows", map(self._flow, self.shown)),
            "links": frame("links", self._links()),
            "series": frame("series", (row for way in self.shown for row in self._series(way))),
            "link_series": frame("link_series", self._link_series()),
            "gauges": self._gauges(),
            "frames": frame("frames", (row for c in self.calls.values() for row in c.frames)),
            "video_frames": frame("video_frames", ()),
            "events": self._events(),
            "packets": self.hops,
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
                          "packet": f"{speech.packet_s * 1e3:g}ms", **speech.settings}  # fmt: skip
                flow["playout"] = dict(self.playout)
            flow["source" if way.side == "from" else "reverse"] = source
        return told

    def _flow(self, way: Way) -> dict[str, Any]:
        data = self.data[way.name]
        arrived = data.drop_nulls("received_s")
        counted, lost = way.sees_sent or way.counts, data["lost"].sum()
        row: dict[str, Any] = {
            "name": way.name, "transport": way.transport, "source": way.source,
            "from": way.sender, "to": way.receiver,
            "sent_packets": data.height if counted else None,
            "control_packets": len(way.packets) - data.height,
        }  # fmt: skip
        if way.sees_arrivals:
            still = data.height - arrived.height - lost if way.sees_sent else None
            row |= {
                "received_packets": arrived.height, "lost_packets": lost if counted else None,
                "in_flight_packets": still, "received_bytes": arrived["ip_bytes"].sum(),
            }  # fmt: skip
        if way.sees_sent:
            row["sent_bytes"] = data["ip_bytes"].sum()
            if data.height and not data["headers"].null_count():
                names = ("network_header_bytes", "transport_header_bytes", "media_header_bytes")
                # An event log has no headers below RTP: their sum of 0 is unknown.
                sums = (data["headers"].list.get(i).sum() for i in range(len(names)))
                row |= {name: found or None for name, found in zip(names, sums, strict=True)}
                row["payload_bytes"] = data["payload_bytes"].sum()
        times = [time for name in ("sent_s", "received_s") for time in data[name].drop_nulls()]
        # From the first packet to the last.
        span = max(times) - min(times) if times else 0.0
        if span > 0 and way.sees_arrivals:
            row["throughput_bps"] = 8 * row["received_bytes"] / span
            if arrived.height and not arrived["fresh_bytes"].null_count():
                row["goodput_bps"] = 8 * int(arrived["fresh_bytes"].sum()) / span
        row |= _statistics("delay", arrived["delay_s"])
        row["jitter_s"] = jitter_s([packet for packet in way.packets if packet.data])
        if way.name in self.calls:
            row |= self.calls[way.name].columns
        elif way.speech is not None:
            row["quality_note"] = "; ".join(way.speech.notes)
        return row

    def _binned(self, rows: pl.DataFrame, time: str, **sums: pl.Expr) -> pl.DataFrame:
        """Sums over the rows whose time is in each bin."""
        place = (pl.col(time) / self.width + 1e-9).cast(pl.Int64)
        place = place.clip(upper_bound=self.bins.height - 1).alias("bin")
        found = rows.drop_nulls(time).group_by(place).agg(**sums)
        filled = self.bins.join(found, on="bin", how="left").sort("bin")
        return filled.with_columns(pl.selectors.integer().fill_null(0))

    def _series(self, way: Way) -> Iterable[dict[str, Any]]:
        data = self.data[way.name]
        counts = {"packets": pl.len(), "bytes": pl.sum("ip_bytes")}
        received = {f"received_{what}": count for what, count in counts.items()}
        received |= {"delay_mean_s": pl.mean("delay_s"), "delay_max_s": pl.max("delay_s")}
        parts = []
        if way.sees_arrivals:
            parts.append(self._binned(data, "received_s", fresh=pl.sum("fresh_bytes"), **received))
        if way.sees_sent:
            sent = {f"sent_{what}": count for what, count in counts.items()}
            lost = {"lost_packets": pl.sum("lost")} if way.sees_arrivals else {}
            parts.append(self._binned(data, "sent_s", **lost, **sent))
        if way.name in self.calls:
            late = pl.DataFrame({"late_s": self.calls[way.name].late_s}, {"late_s": pl.Float64})
            parts.append(self._binned(late, "late_s", late_packets=pl.len()))
        rows = pl.concat(parts, how="align").with_columns(flow=pl.lit(way.name))
        if way.sees_arrivals and all(
            p.fresh_bytes is not None for p in way.packets if p.received_s is not None
        ):
            rows = rows.with_columns(goodput_bps=8 * pl.col("fresh") / pl.col("length_s"))
        return rows.iter_rows(named=True)

    def _links(self) -> Iterable[dict[str, Any]]:
        span = self.trace.duration_s
        for name, (here, there) in self.trace.links.items():
            row: dict[str, Any] = {"name": name, "from": here, "to": there}
            hops = self.hops.filter(link=name)
            sent = hops.drop_nulls("dequeued_s")
            if hops["enqueued_s"].count():
                row["drops"] = hops["fate"].is_in(LOST).sum()
                kinds = ("full", "medium", "retries")
                row |= {f"drops_{kind}": (hops["fate"] == kind).sum() for kind in kinds}
                if sent.height:
                    waits, sizes = sent["dequeued_s"] - sent["enqueued_s"], sent["ip_bytes"]
                    row |= {"sent_packets": sent.height, "sent_bytes": sizes.sum()}
                    row |= _statistics("sojourn", waits)
                    row["queue_mean_packets"] = math.fsum(waits) / span
                    row["queue_mean_bytes"] = math.fsum(waits * sizes.fill_null(0)) / span
                    row["queue_max_packets"] = _longest(sent)
            yield row

    def _link_series(self) -> Iterable[dict[str, Any]]:
        last, ends = self.bins.height - 1, [0.0, *self.bins["time_s"]]
        queued = self.hops.drop_nulls("enqueued_s").with_columns(
            wait_s=pl.col("dequeued_s") - pl.col("enqueued_s"),
            gone_s=pl.coalesce("dequeued_s", "enqueued_s"),
            lost=pl.col("fate").is_in(LOST),
        )
        waits = {"sojourn_mean_s": pl.mean("wait_s"), "sojourn_max_s": pl.max("wait_s")}
        for name in self.trace.links:
            hops = queued.filter(link=name)
            sent = hops.drop_nulls("dequeued_s")
            if sent.is_empty():
                continue
            area = np.zeros((2, last + 1))
            for size, came, left in sent.select("ip_bytes", "enqueued_s", "dequeued_s").iter_rows():
                begin, end = (
                    min(last, int(bin)) for bin in (came / self.width, left / self.width + 1e-9)
                )
                for i in range(begin, end + 1):
                    length = max(0.0, min(left, ends[i + 1]) - max(came, ends[i]))
                    area[:, i] += length, length * (size or 0)
            packets, bytes_ = area / self.bins["length_s"].to_numpy()
            rows = self._binned(hops, "gone_s", drops=pl.sum("lost"), **waits)
            queue = {"queue_packets": packets, "queue_bytes": bytes_}
            yield from rows.with_columns(pl.lit(name).alias("link"), **queue).to_dicts()

    def _gauges(self) -> pl.DataFrame:
        rows: list[dict[str, Any]] = [
            {"time_s": time, "flow": way.flow, "side": way.side, "gauge": gauge, "value": value}
            for way in self.trace.ways
            for time, gauge, value in way.gauges
        ]
        for name, call in self.calls.items():
            flow = name.removesuffix(".reverse")
            rows += [{**row, "flow": flow} for row in call.gauges]
        return frame("gauges", rows).sort("time_s", maintain_order=True)

    def audio(self, name: str) -> Audio | None:
        """The sound of a direction; None if there is none."""
        return self.calls[name].audio() if name in self.calls else None

    def _events(self) -> pl.DataFrame:
        rows = [
            {"time_s": time, "flow": way.flow, "side": way.side, "event": text}
            for way in self.trace.ways
            for time, text in way.events
        ]
        return frame("events", rows).sort("time_s", maintain_order=True)

    def _packets(self) -> pl.DataFrame:
        rows = [
            {"flow": way.flow, "side": way.side, "number": hop.number, "link": hop.link,
             "ip_bytes": hop.ip_bytes, "enqueued_s": hop.enqueued_s,
             "dequeued_s": hop.dequeued_s, "received_s": hop.received_s, "fate": hop.fate}
            for way in self.trace.ways
            for hop in way.hops
        ]  # fmt: skip

        begin = pl.coalesce("enqueued_s", "dequeued_s", "received_s")
        return frame("packets", rows).sort(begin, nulls_last=True, maintain_order=True)


def _data(way: Way) -> pl.DataFrame:
    """The packets with payload, their delay, and whether they were lost."""
    whole: dict[str, Any] = {"headers": pl.List(pl.Int64), "fate": pl.String}
    whole |= dict.fromkeys(("ip_bytes", "payload_bytes", "fresh_bytes"), pl.Int64)
    whole |= dict.fromkeys(("sent_s", "received_s"), pl.Float64)
    rows = [[getattr(packet, name) for name in whole] for packet in way.packets if packet.data]
    return pl.DataFrame(rows, schema=whole, orient="row").with_columns(
        lost=pl.col("fate").is_in(LOST), delay_s=pl.col("received_s") - pl.col("sent_s")
    )


def _longest(hops: pl.DataFrame) -> int:
    """The longest queue: packets that have arrived and whose transmission has not begun."""
    came, left = (
        hops.select(pl.col(time).alias("time"), pl.lit(by).alias("by"))
        for time, by in (("enqueued_s", 1), ("dequeued_s", -1))
    )
    # Departures come before arrivals at the same instant, but a packet arrives before it leaves.
    waiting: list[int] = pl.concat([came, left]).sort("time", "by")["by"].cum_sum().to_list()
    return max(0, *waiting)


def _statistics(what: str, values: pl.Series) -> dict[str, float]:
    ascending = values.drop_nulls().sort().to_list()
    if not ascending:
        return {}
    shares = {"min": 0.0, "p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    found = {f"{what}_{kind}_s": quantile(ascending, share) for kind, share in shares.items()}
    return {**found, f"{what}_mean_s": math.fsum(ascending) / len(ascending)}


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
