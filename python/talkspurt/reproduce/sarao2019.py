"""Sarao 2019, "Voice Transmission over Transport Layer": two nodes, 256 kb/s, 50 ms.

ns-2.35 reproduces every cell to the digit if agents are connected to agents of their own class,
without sinks and without a listener. Wirings that our endpoints can imitate are run here (an
unanswered Request, TFRC without feedback). Two TCP senders that mistake each other's data for
acknowledgements, and ns-2's SCTP, which opens an association from both sides at once and sends data
only on a SACK, are computed event by event, and labelled as such.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping

import polars as pl

from talkspurt.reproduce import hops
from talkspurt.reproduce.figures import Points, Runs, Spec
from talkspurt.reproduce.hops import InNs2

ENDS = ("west", "east")
RATE_BPS = 256e3
DELAY_S = 0.05
START_S, STOP_S, END_S = 0.1, 10.0, 10.5


def wired(protocol: str, packets: pl.DataFrame | None = None) -> pl.DataFrame:
    """A protocol's hops as the study must have wired it; some are computed, not run.

    Only the forward path where the return path was made lossy.
    """
    if packets is None:
        return COMPUTED[protocol]()
    return packets if protocol == "UDP" else packets.filter(pl.col("link") == "wire")


def delays(frame: pl.DataFrame) -> pl.DataFrame:
    """Time of arrival, delay and size of received packets, in order of arrival."""
    return (
        frame.filter(pl.col("received_s").is_not_null())
        .sort("received_s")
        .select(
            "received_s", "bytes", (pl.col("received_s") - pl.col("enqueued_s")).alias("delay_s")
        )
    )


def running_mean_s(frame: pl.DataFrame) -> pl.DataFrame:
    """The cumulative mean delay at each arrival, as drawn by the study over time."""
    mean = pl.col("delay_s").cum_sum() / pl.int_range(1, pl.len() + 1)
    return delays(frame).with_columns(mean.alias("mean_s"))


def at(means: pl.DataFrame, time_s: float) -> float:
    """A running mean at a time."""
    before = means.filter(pl.col("received_s") <= time_s)
    return float((before if before.height else means.head(1))["mean_s"][-1])


def window(frame: pl.DataFrame, from_s: float, to_s: float) -> float:
    """Mean delay of arrivals in a window; if there are none, the last delay before it."""
    arrived = delays(frame)
    found = arrived.filter(pl.col("received_s").is_between(from_s, to_s))["delay_s"]
    if found.is_empty():
        found = arrived.filter(pl.col("received_s") < to_s)["delay_s"].tail(1)
    return float(found.mean())  # type: ignore[arg-type]


def change(means: pl.DataFrame) -> float:
    """The most that a running mean differs from its end, from 1.1 s on, per cent."""
    later = means.filter(pl.col("received_s") >= START_S + 1.0)["mean_s"]
    if later.len() == 0:
        return 0.0
    end = float(later[-1])
    return 100 * max(abs(float(value) / end - 1) for value in later)


def spread(means: pl.DataFrame, from_s: float, to_s: float) -> float:
    """The standard deviation of a running mean in a window."""
    part = means.filter(pl.col("received_s").is_between(from_s, to_s))["mean_s"]
    return float(part.std())  # type: ignore[arg-type]


def bits(frame: pl.DataFrame, from_s: float, to_s: float) -> float:
    """Bits of packets that arrive in a window."""
    arrived = frame.filter(pl.col("received_s").is_between(from_s, to_s))
    return 8.0 * float(arrived["bytes"].sum())


def until(frame: pl.DataFrame, time_s: float) -> float:
    """Throughput from the beginning of the run."""
    return bits(frame, 0, time_s) / time_s


def drift(frame: pl.DataFrame) -> float:
    """The most that the throughput from the beginning differs from that until 10 s, per cent."""
    last = until(frame, 10)
    return 100 * max(abs(until(frame, second) / last - 1) for second in range(2, 11))


def lost(frame: pl.DataFrame) -> float:
    """Packets that left until 10 s and did not arrive, in per cent."""
    sent = frame.filter(pl.col("dequeued_s") <= STOP_S)
    return 100 * sent["received_s"].null_count() / sent.height


def falls(found: pl.DataFrame) -> float | None:
    """Delays beyond 100 kb/s over those just below, in the bins of :func:`_correlates`."""
    number = (pl.col("received_s") / 0.5).floor().alias("bin")
    rate = (8 * pl.col("bytes").sum() / 0.5).over("bin").alias("bps")
    named = found.with_columns(number).with_columns(rate)
    high, low = (
        named.filter(pl.col("bps").is_between(from_bps, to_bps, closed="left"))["delay_s"]
        for from_bps, to_bps in ((1e5, 1.2e5), (8e4, 1e5))
    )
    if high.is_empty() or low.is_empty():
        return None
    return hops.mean(high) / hops.mean(low)


def grows(found: pl.DataFrame) -> str:
    """Whether the least delay grows from each size of packets to the next."""
    least = found.group_by("bytes").agg(pl.col("delay_s").min()).sort("bytes")["delay_s"]
    return "yes" if least.len() > 1 and bool((least.diff().drop_nulls() > 0).all()) else "no"


def correlates(found: pl.DataFrame) -> str:
    """Whether delay grows with throughput, by rank, in bins of half a second."""
    bins = found.group_by((pl.col("received_s") / 0.5).floor()).agg(
        pl.col("bytes").sum(), pl.col("delay_s").mean()
    )
    rank = bins.select(pl.corr("bytes", "delay_s", method="spearman")).item()
    return "yes" if rank is not None and rank > 0 else "no"


def size_order(frame: pl.DataFrame) -> str:
    """Small, large and other packets by the most of them in a second."""
    size = pl.col("bytes")
    kinds = pl.when(size <= 100).then(pl.lit("small")).when(size > 1300)
    named = frame.with_columns(
        kinds.then(pl.lit("large")).otherwise(pl.lit("between")).alias("kind"),
        pl.col("enqueued_s").floor().alias("second"),
    )
    most = named.group_by("kind", "second").len().group_by("kind").agg(pl.col("len").max())
    found: dict[str, int] = dict(most.iter_rows())
    return " > ".join(sorted(found, key=lambda kind: (-found[kind], kind)))


class _Wire:
    """One direction of the link. Both sides act identically, so only one is simulated."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, float, float, int]] = []
        self.free_s = 0.0

    def send(self, now_s: float, size: int) -> float:
        """Send a packet; returns when it arrives."""
        begins_s = max(now_s, self.free_s)
        self.free_s = begins_s + 8 * size / RATE_BPS
        self.sent.append((now_s, begins_s, self.free_s + DELAY_S, size))
        return self.free_s + DELAY_S

    def hops(self) -> pl.DataFrame:
        columns = ["enqueued_s", "dequeued_s", "received_s", "bytes"]
        one = pl.DataFrame(self.sent, schema=columns, orient="row").with_row_index("number")
        passed = pl.col("dequeued_s", "received_s")
        one = one.with_columns(pl.when(passed <= END_S).then(passed))
        sides = (one.with_columns(flow=pl.lit(side), link=pl.lit(side)) for side in ENDS)
        return pl.concat(sides).select(hops.COLUMNS)


def mistaken_tcp() -> pl.DataFrame:
    """Two of ns-2's TCP senders that mistake each other's segments for acknowledgements.

    Each receives its own transmissions, one link delay later; segment n acknowledges its own
    segment n. A SYN of 40 bytes opens; each message of the source is a segment of 1040.
    """
    wire = _Wire()
    window, acknowledged, next_segment, message = 2.0, -1, 1, 1
    last_message = round((STOP_S - START_S) / 0.02) + 1
    under_way = deque([(wire.send(START_S, 40), 0)])
    while True:
        message_s = START_S + 0.02 * (message - 1) if message <= last_message else 1e9
        arrival_s = under_way[0][0] if under_way else 1e9
        now_s = min(message_s, arrival_s)
        if now_s > END_S:
            return wire.hops()
        if arrival_s <= message_s:
            _, acknowledged = under_way.popleft()
            if acknowledged > 0:
                window = min(window + (1.0 if window < 20 else 1 / window), 1e9)
        else:
            message += 1
        ready = message - 1
        while acknowledged >= 0 and next_segment <= min(ready, acknowledged + min(int(window), 20)):
            under_way.append((wire.send(now_s, 1040), next_segment))
            next_segment += 1


def clocked_sctp() -> pl.DataFrame:
    """ns-2's SCTP on both sides, as its source has it (sctp/sctp.cc).

    Each opens the association: INIT, COOKIE ECHO, HEARTBEAT and its answer, each one link delay
    after the previous; then data may be sent. From then on each SACK releases new data: all waiting
    messages, ten per packet. The first chunk is acknowledged at once, then every second packet or
    after 200 ms.
    """
    chunk, most, header, sack_bytes = 16 + 128, 10, 32, 48
    messages = round((STOP_S - START_S) / 0.02) + 1
    wire = _Wire()
    events: list[tuple[float, int, str, int]] = []
    gone, unacknowledged, timer = 0, 0, 0

    def send(now_s: float, size: int, what: str, detail: int = 0) -> None:
        heapq.heappush(events, (wire.send(now_s, size), len(wire.sent), what, detail))

    opening = deque((36, 56, 56))
    send(START_S, 56, "opening")
    while events and events[0][0] <= END_S:
        now_s, _, what, detail = heapq.heappop(events)
        if what == "opening" and opening:
            send(now_s, opening.popleft(), "opening")
        elif what in ("opening", "sack"):
            made = min(messages, int((now_s - START_S) / 0.02 + 1e-9) + 1)
            while gone < made:
                bundle = min(most, made - gone)
                send(now_s, header + bundle * chunk, "data", gone)
                gone += bundle
        elif what == "data":
            # The packet with the first chunk also counts, for its other chunks.
            unacknowledged += 1
            if unacknowledged == 1:
                timer += 1
                heapq.heappush(events, (now_s + 0.2, 0, "late", timer))
            if detail == 0 or unacknowledged == 2:
                send(now_s, sack_bytes, "sack")
            if unacknowledged == 2:
                unacknowledged, timer = 0, timer + 1
        elif what == "late" and detail == timer:
            unacknowledged = 0
            send(now_s, sack_bytes, "sack")
    return wire.hops()


COMPUTED: Mapping[str, Callable[[], pl.DataFrame]] = {"TCP": mistaken_tcp, "SCTP": clocked_sctp}
"""Protocols whose wiring our endpoints cannot imitate."""


def _half_seconds(frame: pl.DataFrame) -> pl.DataFrame:
    bins = delays(frame).group_by((pl.col("received_s") / 0.5).floor())
    kbps, mean = pl.col("bytes").sum() * 8 / 0.5 / 1e3, pl.col("delay_s").mean() * 1e3
    return bins.agg(kbps, mean).sort("received_s").select("bytes", "delay_s")


def _sizes(frame: pl.DataFrame) -> pl.DataFrame:
    seconds = frame.group_by("bytes", pl.col("enqueued_s").floor()).len()
    return seconds.group_by("bytes").agg(pl.col("len").max()).sort("bytes")


MS = 1e3 * pl.col("delay_s")
CURVES: Mapping[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "mean": lambda frame: running_mean_s(frame).select("received_s", 1e3 * pl.col("mean_s")),
    "throughput": lambda frame: pl.DataFrame(
        ([0.5 * n, bps / 1e3] for n, bps in enumerate(hops.binned_bps(frame, 0.5, END_S))),
        orient="row",
    ),
    "jitter": lambda frame: hops.jitters(frame, 1e3),
    "delay": lambda frame: delays(frame).select("received_s", MS),
    "least": lambda frame: (
        delays(frame).group_by("bytes").agg(pl.col("delay_s").min()).sort("bytes")
    ).select("bytes", MS),
    "half-seconds": _half_seconds,
    "sizes": _sizes,
}
"""Points of the lines of figures, from a protocol's hops."""


def curve(runs: Runs, line: Spec) -> Points:
    """Points by what they are ``of``."""
    packets = runs(line["run"])[0].packets if "run" in line else None
    x, y = CURVES[line["of"]](wired(line["protocol"], packets))
    return x.to_list(), y.to_list()


def ns2_beyond(ns2: InNs2) -> dict[str, float]:
    """Delays of data packets in ns-2 if each sender has its sink, in ms."""
    found = {}
    for protocol in ("TCP", "SCTP", "TFRC", "CCID2", "CCID3"):
        data = ns2(protocol, "sound").filter(pl.col("bytes") > 100)
        found[protocol] = round(1e3 * hops.mean_delay_s(data), 4)
    return found
