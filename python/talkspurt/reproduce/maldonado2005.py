"""Maldonado, Baset, Schulzrinne 2005: TFRC with a token bucket over a ladder of codecs.

The text omits RED's parameters, the bucket's depth and the rule for stepping up, and its load of 50
to 100 sources is two to four times the link's capacity: here 16 and 20 are run.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise

import polars as pl

from talkspurt.reproduce import hops
from talkspurt.reproduce.figures import Points, Runs, Spec
from talkspurt.reproduce.hops import InNs2
from talkspurt.reproduce.lab import Run
from talkspurt.reproduce.renker2008 import equation_bps
from talkspurt.reproduce.sample import Sample

LINK_BPS = 1.5e6
MIXES = (1, 2, 4, 8, 16, 32, 64)
MIX_S, MIX_FROM_S = 120, 30
WEB_FROM_S = 50
FLOWS = (10, 20, 30, 40)
"""Beritelli's."""
SPOKEN_BPS = 80e3
"""G.711 in packets of 20 ms with 40 bytes of headers."""

AXES = {
    f"{number} starts": [{"n": n, "start": f"{2000 * n // number}ms"} for n in range(1, number + 1)]
    for number in MIXES
}
"""The flows of each kind of a mix, started over two seconds."""


def percent_lost(run: Run, kind: str) -> float:
    """Lost packets of the flows of a kind, as a share of those sent."""
    mine = run.flows.filter(run.flows["name"].str.starts_with(kind))
    return 100 * float(mine["lost_packets"].sum()) / float(mine["sent_packets"].sum())


def mean(values: Iterable[float | None]) -> float:
    """The mean of the values that exist."""
    kept = [value for value in values if value is not None]
    return sum(kept) / len(kept)


def codec_kbps(run: Run, name: str) -> float:
    """Payload bits of a packet per duration of its speech, from the run's bytes and frames."""
    payload = run.flow(name, "payload_bytes") / run.flow(name, "sent_packets")
    return 8e-3 * payload / _spacing_s(run, name)


def wire_kbytes(run: Run, name: str) -> float:
    """The rate of a codec with headers, in kB/s."""
    sent = run.flow(name, "sent_bytes") / run.flow(name, "sent_packets")
    return 1e-3 * sent / _spacing_s(run, name)


def _spacing_s(run: Run, name: str) -> float:
    frames = run.tables["frames"].filter(flow=name)["captured_s"].sort()
    return (float(frames[-1]) - float(frames[0])) / (frames.len() - 1)


def nominal_bytes(run: Run) -> float:
    """The packet size at which the throughput equation gives CCID 4's rate, from p and R."""
    gauges = {
        name: run.gauges("call", name) for name in ("equation_rate", "loss_event_rate", "srtt")
    }
    at = gauges["equation_rate"]["time_s"][-1]
    rate, loss, rtt = (
        float(found.filter(pl.col("time_s") <= at)["value"][-1]) for found in gauges.values()
    )
    # RFC 5622 §5: headers of 36 bytes are deducted from the equation's rate (RFC 4828 §4.2).
    payload = float(run.flow("call", "payload_bytes") / run.flow("call", "sent_packets"))
    return rate * (payload + 36) / payload / equation_bps(1, loss, rtt)


def mean_share(run: Run, kind: str) -> float:
    """Mean throughput of the flows of a kind over the fair share, including headers."""
    mine = run.flows.filter(run.flows["name"].str.starts_with(kind))
    fair = LINK_BPS / run.flows.height
    return mean([float(bps) / fair for bps in mine["throughput_bps"]])


def sent_bytes(run: Run, name: str) -> list[float]:
    """Bytes sent in each bin."""
    return run.series(name)["sent_bytes"].cast(pl.Float64).to_list()


def gain(tfrc: Run, tb: Run) -> float:
    """TCP's share next to TFRC-TB over that next to TFRC."""
    return mean_share(tb, "tcp") / mean_share(tfrc, "tcp")


SCALES_S = (0.2, 0.4, 1.0, 2.0, 4.0, 10.0, 20.0)
"""Time scales of Fig 5, multiples of the series' bin."""


def variation_by_scale(run: Run, name: str = "other") -> dict[float, float]:
    """Coefficient of variation of the sending rate at each time scale."""
    found = {}
    # Sums of whole numbers, which are exact.
    until = [0.0, *accumulate(sent_bytes(run, name)[round(WEB_FROM_S / 0.2) :])]
    for scale in SCALES_S:
        ends = until[:: round(scale / 0.2)]
        found[scale] = hops.variation([end - start for start, end in pairwise(ends)])
    return found


def talkspurts(run: Run) -> list[list[float]]:
    """The sending rate in each talkspurt after the first, in bins of 200 ms, bits per second."""
    bins = [8 * bytes_ / 0.2 for bytes_ in sent_bytes(run, "call")]
    made = run.series("call")["generated_packets"].to_list()
    found: list[list[float]] = []
    now: list[float] = []
    for rate, frames in zip(bins, made, strict=True):
        # Silence has two or three packets in 200 ms, talk ten (or six of 30 ms).
        if frames >= 5:
            now.append(rate)
        elif now:
            found.append(now)
            now = []
    return [spurt for spurt in found[1:] if len(spurt) >= 25]


def fallen(run: Run) -> list[bool]:
    """For each talkspurt, whether it falls below half the codec's rate after 2 s."""
    return [any(rate < SPOKEN_BPS / 2 for rate in spurt[10:-1]) for spurt in talkspurts(run)]


def curve(runs: Runs, line: Spec) -> Points:
    """Shares, rates in kb/s over time, and variations over time scales."""
    if line["of"] == "share":
        each = [runs(f"mix-{line['kind']}-{number}") for number in MIXES]
        return MIXES, [Sample(tuple(mean_share(r, line["who"]) for r in of)) for of in each]
    if line["of"] == "variation":
        found = [variation_by_scale(run) for run in runs(line["run"])]
        return SCALES_S, [Sample(tuple(of[scale] for of in found)) for scale in SCALES_S]
    run = runs(line["run"])[0]
    if line["of"] == "received":
        bins = run.series(line["flow"])["received_bytes"].to_list()
        return [float(second) for second in range(MIX_S)], [8e-3 * bytes_ for bytes_ in bins]
    bins = [8e-3 * bytes_ / 0.2 for bytes_ in sent_bytes(run, "call")]
    return [0.2 * n for n in range(len(bins))], bins


def mixed(hops: pl.DataFrame, number: int) -> Run:
    """A mix in ns-2 after the flows have started, with as many of TCP as of TFRC."""
    flow = pl.col("flow").str.split(" ").list.first().cast(pl.Int64)
    kind = pl.when(flow < number).then(pl.lit("tcp-")).otherwise(pl.lit("other-"))
    started, lost = pl.col("enqueued_s") >= MIX_FROM_S, pl.col("dequeued_s").is_null()
    # Packets of the last second may still be queued when the run ends.
    sent = started & (pl.col("enqueued_s") <= MIX_S - 1)
    received = pl.col("bytes").filter(pl.col("received_s") > MIX_FROM_S).sum()
    flows = hops.group_by((kind + flow.cast(pl.String)).alias("name")).agg(
        throughput_bps=8 * received / (MIX_S - MIX_FROM_S),
        sent_packets=sent.sum(),
        lost_packets=(sent & lost).sum(),
    )
    return Run("", 1, "", MIX_S, {"flows": flows.sort("name")})


def ns2_beyond(ns2: InNs2) -> dict[str, float]:
    """TCP's share in ns-2 with 64 flows of each kind, and the losses of both."""
    run = mixed(ns2(64, 64, 0, MIX_S), 64)
    return {
        "TCP share": round(mean_share(run, "tcp"), 6),
        "TCP lost": round(percent_lost(run, "tcp"), 4),
        "TFRC lost": round(percent_lost(run, "other"), 4),
    }
