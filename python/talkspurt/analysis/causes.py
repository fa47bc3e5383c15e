"""Why speech was not heard: the cause of each missing or late frame, from the tables of a run.

A cause is assigned only if the measures decide it:

* *handshake*: the frame was captured before the connection was open.
* *network loss*: a transport that does not retransmit handed the frame to the network, and it was
  never delivered.
* *network delay*: a transport that does not retransmit delivered the frame too late, and no later
  after its hand-over than the slowest packet of the flow took through the network.
* *rate limitation*: the send queue discarded the frame; or it would have been in time without its
  wait there; or it took longer than the slowest packet, and at its hand-over the congestion window
  had no room for a segment.
* *head-of-line blocking*: a transport that delivers in order delivered the late frame at the same
  instant as more data than one segment holds. So segments that had arrived before were waiting for
  an earlier one.
* *retransmission*: a transport that retransmits delivered the frame in a single segment, later than
  the slowest packet and three or more least one-way delays after its hand-over, while the
  congestion window had room.

Everything else remains *unknown*.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from talkspurt._lazy import pl
from talkspurt.metrics.opinion import HEARD
from talkspurt.results.run_data import RunData

HANDSHAKE = "handshake"
NETWORK_LOSS = "network loss"
NETWORK_DELAY = "network delay"
RATE = "rate limitation"
HEAD_OF_LINE = "head-of-line blocking"
RETRANSMISSION = "retransmission"
UNKNOWN = "unknown"

DATAGRAMS = ("udp", "dccp", "tfrc", "beritelli")
"""Transports that never retransmit, and wait only in the send queue."""
CONTROLLED = ("dccp", "tfrc", "beritelli")
"""Of these, the ones with congestion control."""
STREAMS = ("tcp", "sctp")
"""Transports that retransmit, with congestion control."""


@dataclass
class Unheard:
    """Frames that were not heard, by cause.

    Attributes:
        judged: frames whose fate is known.
        causes: the number of those not heard, by cause.
    """

    judged: int = 0
    causes: Counter[str] = field(default_factory=Counter)

    def share(self, cause: str) -> float:
        """The share of the judged frames that this cause took."""
        return self.causes[cause] / self.judged if self.judged else 0.0


def unheard(runs: Iterable[tuple[RunData, Mapping[str, Any]]]) -> Unheard:
    """The frames not heard in these calls, each a run and a row of its flows table."""
    found = Unheard()
    for run, row in runs:
        frames = _with_causes(run, row)
        found.judged += frames.height
        counted = frames.drop_nulls("cause")["cause"].value_counts()
        found.causes.update(dict(counted.iter_rows()))
    return found


def _with_causes(run: RunData, row: Mapping[str, Any]) -> pl.DataFrame:
    """The judged frames of a call with a column ``cause``, null if the frame was heard."""
    flow = str(row["name"])
    back = flow.endswith(".reverse")
    base, side = flow.removesuffix(".reverse"), "to" if back else "from"
    told = run.resolved
    transport = told["flows"][base]["transport"]
    kind = transport["kind"]
    # Yes and no as expressions, to be combined with those of frames.
    datagrams = pl.lit(kind in DATAGRAMS)
    controlled = pl.lit(kind in (*CONTROLLED, *STREAMS))
    # SCTP may give messages up.
    limits = (transport.get(key) for key in ("lifetime", "max_retransmissions"))
    reliable = pl.lit(kind in STREAMS and all(limit is None for limit in limits))
    ordered = pl.lit(kind in STREAMS and transport.get("ordered", True))
    nagle = pl.lit(bool(transport.get("nagle")))
    lost_some = pl.lit(bool(row["lost_packets"]))
    segment = float(transport.get("mss") or transport.get("mtu") or math.inf)

    frames = _with_room(run, run.frames(flow), base, side)
    wait = pl.col("handed_over_s") - pl.col("captured_s")
    frames = frames.with_columns(
        wait=wait - wait.min(),  # packetisation is the same for all frames
        transit=pl.col("delivered_s") - pl.col("handed_over_s"),
        released=pl.len().over("delivered_s") * _frame_bytes(run, flow),
    )
    frames = _judged(frames, told.get("measure", {}), row, run.duration_s)

    fate = pl.col("fate")
    late, lost, at_sender = fate == "late", fate == "lost", fate.is_in(["discarded", "queued"])
    opened = _opened(run, base, side)
    early = pl.lit(value=False) if opened is None else pl.col("captured_s") < opened
    without_wait = pl.col("delivered_s") - pl.col("wait") <= pl.col("playout_s")
    in_network = pl.col("transit") <= (row["delay_max_s"] or 0.0) + 1e-9
    full, has_room = pl.col("room") < segment, pl.col("room") >= segment
    again = pl.col("transit") >= 3 * (row["delay_min_s"] or math.inf)
    rules = (
        (early, HANDSHAKE),
        (at_sender & controlled, RATE),
        (lost & lost_some & (datagrams | (has_room & ~reliable)), NETWORK_LOSS),
        (~late, UNKNOWN),
        (controlled & without_wait, RATE),
        (in_network & datagrams, NETWORK_DELAY),
        (ordered & (pl.col("released") > segment), HEAD_OF_LINE),
        (in_network, UNKNOWN),
        (full, RATE),
        (has_room & again & lost_some & reliable & ~nagle, RETRANSMISSION),
        (pl.lit(value=True), UNKNOWN),
    )
    # The first rule that holds decides; a rule without its measures does not hold.
    found = pl.coalesce(pl.when(holds).then(pl.lit(cause)) for holds, cause in rules)
    return frames.with_columns(cause=pl.when(~fate.is_in(HEARD)).then(found))


def _judged(
    frames: pl.DataFrame, measure: Mapping[str, Any], row: Mapping[str, Any], duration_s: float
) -> pl.DataFrame:
    """The frames of the window whose fate is known, as for ``loss_ratio``."""
    captured = pl.col("captured_s")
    first, last = float(measure.get("from") or 0), float(measure.get("to") or duration_s)
    known = pl.col("fate").is_in([*HEARD, "late", "discarded"]).fill_null(value=False)
    due = captured + (row["mouth_to_ear_max_s"] or 0.0) < duration_s - 1e-9
    return frames.filter(captured.is_between(first, last, closed="left"), known | due)


def _with_room(run: RunData, frames: pl.DataFrame, flow: str, side: str) -> pl.DataFrame:
    """The frames with ``room``: congestion window − data in flight at hand-over, in bytes."""
    frames = frames.sort("handed_over_s", nulls_last=True)
    for name in ("cwnd", "flight"):
        one = run.gauges(gauge=name).filter(flow=flow, side=side).sort("time_s")
        one = one.select(pl.col("time_s"), pl.col("value").alias(name))
        frames = frames.join_asof(one, left_on="handed_over_s", right_on="time_s")
    return frames.with_columns(room=pl.col("cwnd") - pl.col("flight"))


def _frame_bytes(run: RunData, flow: str) -> float:
    """The mean size of a frame."""
    made = run.table("series").filter(flow=flow)
    count = int(made["generated_packets"].sum())
    return int(made["generated_bytes"].sum()) / count if count else 0.0


def _opened(run: RunData, flow: str, side: str) -> float | None:
    """When the connection of a flow was open at this side; None without a handshake."""
    opened = run.table("events").filter(flow=flow, side=side, event="connected")
    return opened["time_s"].min() if opened.height else None  # type: ignore[return-value]
