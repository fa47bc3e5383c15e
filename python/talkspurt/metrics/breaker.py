"""RTP's circuit breakers (RFC 8083): whether, and when, a flow would have had to stop sending.

The information a sender gets from RTCP is taken from the time series, interval by interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from talkspurt.metrics.bins import window
from talkspurt.results.manifest import Origin
from talkspurt.results.run_data import RunData

INTERVAL_S = 5.0
"""Report interval: RTCP's default minimum (RFC 3550 §6.2)."""
CB_INTERVAL = 3
"""Intervals over which losses are averaged (RFC 8083 §4.3: ⌈3 min(max(10 G T_f, 10 T_r, 3 T_dr),
max(15 s, 3 T_d)) / (3 T_dr)⌉, with intervals T_d and T_dr of 5 s and round trips below 1.5 s)."""
MEDIA_TIMEOUT = 5
"""Consecutive intervals without arrivals until the media timeout (RFC 8083 §4.2: k)."""


@dataclass(frozen=True)
class Report:
    """Sender information at the end of an interval.

    ``loss`` is the share of its packets lost; ``rtt_s`` is None if nothing arrived.
    """

    until_s: float
    width_s: float
    sent_bps: float
    loss: float
    rtt_s: float | None


def tcp_rate_bps(packet_bytes: float, rtt_s: float, loss: float) -> float:
    """TCP throughput (RFC 8083 §4.3, from Mathis et al. 1997): s / (R √(2p/3)), in bit/s."""
    return 8 * packet_bytes / (rtt_s * math.sqrt(2 * loss / 3))


def stopped(reports: Sequence[Report | None], packet_bytes: float) -> Report | None:
    """The report after which the sender must stop, or None.

    It stops when nothing arrived in ``MEDIA_TIMEOUT`` consecutive intervals (§4.2), or when more
    than ``CB_INTERVAL`` reports have come, something arrived, and it sent in that interval more
    than ten times the TCP rate for the losses of the last ``CB_INTERVAL``, weighted by interval
    length (§4.3, congestion). Without arrivals the fraction lost is 0, as receivers count it (RFC
    3550 appendix A.3). None among the reports is an interval without sending, which restarts the
    counts. Missing reports (§4.1) are not considered.
    """
    unheard = 0
    heard: list[tuple[float, float]] = []
    for report in reports:
        if report is None:
            unheard, heard = 0, []
            continue
        unheard = unheard + 1 if report.rtt_s is None else 0
        heard.append((0.0 if report.rtt_s is None else report.loss, report.width_s))
        if unheard >= MEDIA_TIMEOUT:
            return report
        last = heard[-CB_INTERVAL:]
        loss = sum(lost * width for lost, width in last) / sum(width for _, width in last)
        if report.rtt_s and len(heard) > CB_INTERVAL and loss > 0:
            fair = tcp_rate_bps(packet_bytes, report.rtt_s, loss)
            if report.sent_bps > 10 * fair:
                return report
    return None


def reports(result: RunData, flow: str) -> tuple[list[Report | None], float]:
    """The intervals of the measure window, and the mean packet length in bytes.

    Packets are counted at sending time, losses at drop time; R is twice the mean delay of the
    packets that arrived. The last interval may be shorter.
    """
    low, high = window(result)
    series = result.series(flow).sort("time_s")
    begin = pl.col("time_s").shift(fill_value=0.0)
    series = series.with_columns((pl.col("time_s") - begin).alias("width_s"), begin.alias("begin"))
    series = series.filter((pl.col("begin") >= low - 1e-9) & (pl.col("time_s") <= high + 1e-9))
    delays = pl.col("delay_mean_s") * pl.col("received_packets")
    bins = (
        series.group_by(((pl.col("begin") - low) / INTERVAL_S + 1e-9).floor().alias("bin"))
        .agg(
            pl.col("time_s").max().alias("until_s"),
            pl.col("width_s", "sent_packets", "sent_bytes", "lost_packets").sum(),
            pl.col("received_packets").sum(),
            delays.sum().alias("delays_s"),
        )
        .sort("bin")
    )
    packets = float(bins["sent_packets"].sum())
    size = float(bins["sent_bytes"].sum()) / packets if packets else math.nan
    return [_report(row) for row in bins.iter_rows(named=True)], size


def _report(row: dict[str, float]) -> Report | None:
    if not row["sent_packets"]:
        return None
    received = row["received_packets"]
    return Report(
        until_s=row["until_s"],
        width_s=row["width_s"],
        sent_bps=8 * row["sent_bytes"] / row["width_s"],
        loss=min(1.0, row["lost_packets"] / row["sent_packets"]),
        rtt_s=2 * row["delays_s"] / received if received else None,
    )


def stopped_s(result: RunData, flow: str) -> float | None:
    """When a flow would have had to stop, in seconds of the run; None if never."""
    series = result.series(flow)
    if result.origin is Origin.IMPORTED and series["delay_mean_s"].null_count() == series.height:
        raise ValueError(f"flow {flow!r}: circuit breakers need delays, and the trace has none")
    report = stopped(*reports(result, flow))
    return None if report is None else report.until_s
