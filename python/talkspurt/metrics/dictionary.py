"""The data dictionary: unit and meaning of every column of every table.

Columns that are metrics come from the catalogue. The others are described here; a test compares
both with the tables of a run.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

from talkspurt import _core
from talkspurt.metrics.catalogue import FLOWS as FLOW_METRICS
from talkspurt.metrics.catalogue import GAUGES
from talkspurt.metrics.catalogue import LINKS as LINK_METRICS
from talkspurt.metrics.catalogue.kinds import Known
from talkspurt.results.axis import Axis


@dataclass(frozen=True)
class Field:
    """One column of a table.

    Attributes:
        unit: unit of its numbers: ``s``, ``bit/s``, ``bytes``, ``packets``, ``1`` for a plain
            number; empty for text.
        known: the end of a flow that knows it without the other's notes, or ``both`` if neither
            does; empty if every result has it.
    """

    name: str
    unit: str
    meaning: str
    known: Known | Literal[""] = ""


MAX_EXACT = float(2**53)
"""Most values are below it: from there on, a float does not hold every integer."""
MAX_U64 = float(2**64)
"""Rates and sizes are below it: the engine counts them in 64 bits, and a scenario can name any."""
ROUNDING = 1e-6
"""How far a share may exceed 1."""

FLOW = Field("flow", "", "flow; NAME.reverse for what the answering side sends")
SIDE = Field("side", "", "end of the flow: from (it opens) or to")
BIN = Field("time_s", "s", "end of the time bin")
CAPTURED = Field("captured_s", "s", "when the source had captured the frame")
INDEX = Field("index", "1", "number of the frame in its flow, from 0")
ENCODING = Field(
    "encoding", "1", "rung of the codec ladder, 0 for the best; null without a ladder", "sender"
)

TABLES: dict[str, tuple[Field, ...]] = {
    "flows": (
        Field("name", "", "flow; NAME.reverse for what the answering side sends"),
        Field("group", "", "name that the scenario gives to the flows of a `count`; else null"),
        Field("transport", "", "transport"),
        Field("source", "", "kind of source"),
        Field("from", "", "node that sends"),
        Field("to", "", "node that receives"),
        *(Field(one.name, one.unit, one.meaning, one.known) for one in FLOW_METRICS),
        Field(
            "quality_limits",
            "",
            "ranges of G.107 that the call leaves; null if it leaves none",
            "both",
        ),
        Field("quality_note", "", "what the score assumes, or why it is missing", "both"),
        Field(
            "estimate_limits",
            "",
            "ranges of the fit that the call leaves; null if it leaves none",
            "both",
        ),
        Field(
            "redundancy_note",
            "",
            "what the redundancy of Opus lacks, and the bit rate that has it; else null",
        ),
        Field("stand_in", "", "codec that is heard in place of one without an encoder; else null"),
    ),
    "links": (
        Field("name", "", "link"),
        Field("from", "", "node that sends"),
        Field("to", "", "node that receives"),
        *(Field(one.name, one.unit, one.meaning) for one in LINK_METRICS),
    ),
    "series": (
        FLOW,
        BIN,
        Field("generated_packets", "packets", "units that the source generated in the bin"),
        Field("generated_bytes", "bytes", "their bytes", "sender"),
        Field("discarded_packets", "packets", "units dropped from the send queue in the bin"),
        Field("sent_packets", "packets", "data packets sent in the bin"),
        Field("sent_bytes", "bytes", "their IP bytes"),
        Field("received_packets", "packets", "data packets received in the bin"),
        Field("received_bytes", "bytes", "their IP bytes"),
        Field("goodput_bps", "bit/s", "payload delivered to the application in the bin"),
        Field("lost_packets", "packets", "data packets sent in the bin that never arrived"),
        Field("delay_mean_s", "s", "mean one-way delay of the packets received in the bin"),
        Field("delay_max_s", "s", "their maximum one-way delay"),
        Field("late_packets", "packets", "voice frames delivered after their playout; voice only"),
        ENCODING,
    ),
    "link_series": (
        Field("link", "", "link"),
        BIN,
        Field("queue_packets", "packets", "mean queue length over the bin"),
        Field("queue_bytes", "bytes", "mean queue length over the bin"),
        Field("utilisation", "1", "share of the bin in which the transmitter was busy"),
        Field(
            "capacity_bps",
            "bit/s",
            "mean rate at which the transmitter could send, link framing included, 0 in outages; "
            "null for radios",
        ),
        Field("drops", "packets", "packets dropped in the bin"),
        Field("marks", "packets", "packets marked Congestion Experienced in the bin"),
        Field("sojourn_mean_s", "s", "mean time in the queue of packets sent in the bin"),
        Field("sojourn_max_s", "s", "their maximum time in the queue"),
        Field("average_packets", "packets", "RED's average at the end of the bin"),
        Field(
            "drop_probability",
            "1",
            "drop probability of RED, PIE or the classic queue of DualPI2 at the end of the bin",
        ),
        Field("drops_per_second", "1/s", "CoDel's drop rate at the end of the bin"),
        Field("tokens_bytes", "bytes", "tokens of a policer or shaper at the end of the bin"),
    ),
    "gauges": (
        Field("time_s", "s", "when the gauge changed"),
        FLOW,
        SIDE,
        Field("gauge", "", "gauge: " + ", ".join(one.name for one in GAUGES)),
        Field("value", "", "its value until the next row, in the unit of the gauge"),
    ),
    "frames": (
        FLOW,
        INDEX,
        CAPTURED,
        Field("handed_over_s", "s", "when it was handed to the transport; null if never"),
        Field("delivered_s", "s", "when the transport delivered it; null if never"),
        Field("playout_s", "s", "when it was to be played; null before playout begins"),
        Field("paused_s", "s", "how long playout paused before it because nothing had arrived"),
        Field(
            "fate", "", "played, recovered, late, lost, discarded, queued or in_flight", "receiver"
        ),
        ENCODING,
    ),
    "video_frames": (
        FLOW,
        INDEX,
        CAPTURED,
        Field("packets", "packets", "packets of the frame"),
        Field("bytes", "bytes", "bytes of the frame"),
        Field("delivered_packets", "packets", "its packets that were delivered"),
        Field("complete_s", "s", "when the last of them was delivered; null if one is missing"),
        Field("decodable_s", "s", "when it could be decoded, with those before it; null if never"),
        Field("shown_s", "s", "when it was due to be shown, unless a later one was before it"),
        Field("kind", "", "`key` if it needs no other, `inter` if it does; null if unknown"),
    ),
    "events": (
        Field("time_s", "s", "when it happened"),
        FLOW,
        SIDE,
        Field("event", "", "change of the connection, or reason why a packet was rejected"),
    ),
    "packets": (
        FLOW,
        Field("side", "", "end that sent it: from (it opens) or to"),
        Field("number", "1", "number of the packet among those of its sender"),
        Field("link", "", "link of this hop"),
        Field("ip_bytes", "bytes", "length of the IP packet"),
        Field("enqueued_s", "s", "arrival at the queue"),
        Field("dequeued_s", "s", "start of the transmission; null if it never started"),
        Field("received_s", "s", "arrival at the end of the link; null if it never arrived"),
        Field("fate", "", "what became of the packet on this hop"),
    ),
    "scores": (
        FLOW,
        Field("segment", "1", "number of the segment of about 8 s, from 0; null for the call"),
        Field("start_s", "s", "when its first sample was captured"),
        Field("duration_s", "s", "its length"),
        Field("judged_segments", "1", "segments that were judged; null for a segment"),
        Field(
            "speech_segments",
            "1",
            "segments in which 1 s or more is said, which can be judged; null for a segment",
        ),
        Field("pesq_nb", "MOS", "PESQ, narrowband (P.862.1); null from 16 kHz on"),
        Field("pesq_wb", "MOS", "PESQ, wideband (P.862.2); null below 16 kHz"),
        Field("visqol", "MOS", "ViSQOL in speech mode"),
        Field("plcmos", "MOS", "PLCMOS version 2"),
        Field("reason", "", "why there is no score, or which part has none"),
    ),
}

EXCERPT = (
    *TABLES["packets"],
    Field("dropped_s", "s", "when it was dropped; null if it was not"),
)
"""The packets of an emulation that its report animates."""

ALWAYS = frozenset({
    "name", "transport", "source", "from", "to", "flow", "link", "side", "gauge", "event",
    "time_s", "value", "index", "number", "captured_s",
})  # fmt: skip
"""Columns with a value in every row of every table."""
_ALSO = {
    "packets": {"fate"},
    "excerpt": {"fate"},
    "video_frames": {"packets", "bytes", "delivered_packets"},
}
"""Further columns with a value in every row of a table."""
KEYS: dict[str, tuple[str, ...]] = {
    "flows": ("name",),
    "links": ("name",),
    "series": ("flow", "time_s"),
    "link_series": ("link", "time_s"),
    "frames": ("flow", "index"),
    "video_frames": ("flow", "index"),
    "scores": ("flow", "segment"),
}
"""Columns that tell the rows of a table apart; a run writes its rows in their order."""
ON_REQUEST = frozenset({"pesq_nb", "pesq_wb"})
"""Columns of which a table may have others instead."""
INSTANTS = frozenset({
    "time_s", "captured_s", "handed_over_s", "delivered_s", "playout_s", "complete_s", "start_s",
    "decodable_s", "shown_s", "enqueued_s", "dequeued_s", "received_s", "dropped_s",
})  # fmt: skip
"""Columns of times in the run; other columns of seconds are durations."""


def fields(table: str) -> tuple[Field, ...]:
    """The columns of a table of a run."""
    return EXCERPT if table == "excerpt" else TABLES[table]


@functools.cache
def kinds(table: str) -> dict[str, str]:
    """The type of each column of a table of a run, as polars names it."""
    if table in _TYPES:
        return _TYPES[table]
    # The engine writes packets while it runs, and models compute scores.
    return {one.name: _OF_UNITS.get(one.unit, "Int64") for one in fields(table)}


_TYPES: dict[str, dict[str, str]] = json.loads(_core.types())

_OF_UNITS = {"": "String", "s": "Float64", "MOS": "Float64"}


def known(table: str) -> dict[str, Known]:
    """The end of a flow that knows a column without the other's notes, of columns that need one."""
    flows = {one.name: one.known for one in FLOW_METRICS}
    found = ((one.name, one.known or flows.get(one.name)) for one in TABLES[table])
    return {name: known for name, known in found if known}


def always(table: str) -> frozenset[str]:
    """The columns of a table of a run that have a value in every row."""
    return ALWAYS.union(_ALSO.get(table, ()))


@functools.cache
def bounds(table: str) -> dict[str, tuple[float, float]]:
    """The least and the greatest value of each column of numbers of a table of a run."""
    metrics = {"flows": FLOW_METRICS, "links": LINK_METRICS}.get(table, ())
    known = {one.name: (one.least, one.most) for one in metrics}
    found = {}
    for one in fields(table):
        most = MAX_U64 if one.unit in _LARGE else MAX_EXACT
        least = -most if one.unit in _SIGNED else 0.0
        least, limit = known.get(one.name, (least, math.inf))
        limit = 1 + ROUNDING if one.name in _SHARES else limit
        found[one.name] = (least, min(limit, most))
    return found


_SIGNED = frozenset({"s", ""})
_LARGE = frozenset({"bit/s", "bytes", ""})
_SHARES = frozenset({"utilisation", "drop_probability"})


OF_RUNS = (
    Field("replicate", "1", "number of the replication, from 0"),
    Field("seed", "1", "seed of the run"),
)
"""Columns before those of a run, in the tables of a study; after the axes."""

SUMMARY = (
    Field("flow", "", "flow, or the flows of a `count` under the name in the scenario"),
    Field("members", "1", "number of flows in the row"),
    Field("measure", "", "name of the metric"),
    Field("count", "1", "replications with a value"),
    Field("replications", "1", "all replications"),
    Field("mean", "", "mean over the replications, in the unit of the metric"),
    Field("low", "", "lower end of the confidence interval; null with fewer than two values"),
    Field("high", "", "upper end of the confidence interval"),
    Field("deviation", "", "sample standard deviation over the replications"),
    Field("member_low", "", "minimum of the members' means; null for a single flow"),
    Field("member_high", "", "maximum of the members' means"),
    Field("bound", "", "upper bound, where values leave the range of their model; else null"),
)
BASELINE = Field("baseline", "", "value of the axis that is subtracted")

OF_STUDIES: dict[str, tuple[Field, ...]] = {
    "flows": (*OF_RUNS, *TABLES["flows"]),
    "links": (*OF_RUNS, *TABLES["links"]),
    "scores": (*OF_RUNS, *TABLES["scores"]),
    "summary": SUMMARY,
    "summary-members": SUMMARY,
    "differences": (BASELINE, *SUMMARY),
}
"""The tables of a study, without the columns of its axes, ``axis.NAME``."""


def of_axes(axes: Iterable[Axis]) -> tuple[Field, ...]:
    """The columns of these axes."""
    return tuple(
        Field(axis.column, axis.unit or "", f"value of the axis over {axis.path}") for axis in axes
    )


def columns(of: Iterable[Field]) -> dict[str, dict[str, str]]:
    """Unit and meaning by name, as in the metadata of Parquet files."""
    return {one.name: {"unit": one.unit, "meaning": one.meaning} for one in of}


@functools.cache
def json_columns() -> dict[str, dict[str, str]]:
    """What :func:`columns` returns for each table of a run, as JSON by column."""
    return {
        table: {name: json.dumps(said, ensure_ascii=False) for name, said in columns(of).items()}
        for table, of in TABLES.items()
    }


def document() -> dict[str, dict[str, list[dict[str, str]]]]:
    """The dictionary as JSON: tables of a run, and of a study."""
    kinds = {"run": TABLES, "study": OF_STUDIES}
    return {
        kind: {name: [asdict(one) for one in of] for name, of in tables.items()}
        for kind, tables in kinds.items()
    }
