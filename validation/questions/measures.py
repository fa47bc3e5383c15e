"""Measures of a run for the pages of questions: one row for each run, in units of the product."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from talkspurt import metrics
from talkspurt.metrics.sharing import coefficient_of_variation, jain

if TYPE_CHECKING:
    from talkspurt.results.result import Result

Row = dict[str, Any]

# Bucket depth and step-up time of TFRC-TB.

FROM_S, TO_S, BIN_S = 20.0, 120.0, 0.2
SCALES_S = {1: 0.2, 2: 0.4, 5: 1.0, 10: 2.0, 25: 5.0, 50: 10.0, 100: 20.0}
"""Time scales of the coefficient of variation, in bins of the series and in seconds."""
PACKET_BYTES = 200
"""A packet of G.711 with RTP, UDP and IP headers."""
TFRC_HEADER_BYTES = 16
"""Size of the TFRC header, which is sent but not counted in X."""


def bucket(result: Result) -> Row:
    """Measure smoothness, fairness, and the MOS of the calls."""
    flows = result.flows
    calls, uploads = flows.filter(group="call"), flows.filter(group="upload")
    link = result.links.filter(name="bottleneck").row(0, named=True)
    web_bps = flows.filter(group="web")["throughput_bps"].sum()
    fair_bps = (link["rate_bps"] - web_bps) / (calls.height + uploads.height)
    ours = pl.col("flow").is_in(calls["name"].implode())
    window = pl.col("time_s").is_between(FROM_S + BIN_S / 2, TO_S + BIN_S / 2)
    series = result.series().filter(ours, window)
    sent = [each["sent_bytes"].to_list() for each in series.partition_by("flow")]
    changes = result.events().filter(
        ours, pl.col("event").str.starts_with("encoding"), pl.col("time_s").is_between(FROM_S, TO_S)
    )
    row: Row = {
        "call_bps": calls["throughput_bps"].mean(),
        "call_share": calls["throughput_bps"].mean() / fair_bps,
        "upload_share": uploads["throughput_bps"].mean() / fair_bps,
        "jain": jain([*calls["throughput_bps"], *uploads["throughput_bps"]]),
        "switches": changes.height / (calls.height * (TO_S - FROM_S) / 60),
        "best": (series["encoding"].fill_null(0) == 0).mean(),
        "lost": calls["lost_packets"].sum() / calls["sent_packets"].sum(),
        "discarded": calls["discarded_packets"].sum() / calls["generated_packets"].sum(),
    }
    for bins in SCALES_S:
        each = [coefficient_of_variation(values, bins) for values in sent]
        heard = [value for value in each if not math.isnan(value)]
        row[f"cov_{bins}"] = sum(heard) / len(heard) if heard else None
    return row | opinions(calls) | inside(result, calls)


def opinions(calls: pl.DataFrame) -> Row:
    """Return mean, tenth percentile and minimum of the MOS; None if a codec used has no MOS."""
    # No codec is known for a completely lost call.
    said = [
        1.0 if mos is None and missed == 1 else mos
        for mos, missed in calls.select("mos", "loss_ratio").iter_rows()
    ]
    if None in said:
        return {"mos": None, "mos_p10": None, "mos_least": None}
    return {
        "mos": float(np.mean(said)),
        "mos_p10": float(np.quantile(said, 0.1)),
        "mos_least": float(min(said)),
    }


def inside(result: Result, calls: pl.DataFrame) -> Row:
    """Return X, X_calc, and the maximum excess of TFRC-TB's sent data over the integral of X.

    The excess is in packets of G.711; `of_x` is the data sent divided by that integral.
    """
    gauges = result.table("gauges")
    if not gauges.height or not (calls["transport"] == "tfrc-tb").all():
        return dict.fromkeys(("beyond_x", "of_x", "x", "x_calc"))
    most, shares = -math.inf, []
    for name in calls["name"]:
        x = gauges.filter(flow=name, side="from", gauge="rate")
        sent = result.series(name)
        count = (sent["sent_bytes"] - TFRC_HEADER_BYTES * sent["sent_packets"]).cum_sum().to_numpy()
        times, values = x["time_s"].to_numpy(), x["value"].to_numpy()
        ends = sent["time_s"].to_numpy()
        edges = np.concatenate([times, [max(ends[-1], times[-1])]])
        filled = np.concatenate([[0.0], np.cumsum(values * np.diff(edges))]) / 8
        allowed = np.interp(ends, edges, filled)
        most = max(most, float((count - allowed).max()) / PACKET_BYTES)
        shares.append(float(count[-1] / allowed[-1]))
    late = gauges.filter(
        pl.col("flow").is_in(calls["name"].implode()),
        pl.col("time_s").is_between(FROM_S, TO_S),
        side="from",
    )
    return {
        "beyond_x": most,
        "of_x": max(shares),
        "x": late.filter(gauge="rate")["value"].mean(),
        "x_calc": late.filter(gauge="equation_rate")["value"].mean(),
    }


# Initial slow-start threshold of CCID 2.

SETTLED_BIN_S = 0.5
"""Width of the bins in which the rate is measured, and thus the time resolution."""
BAND = 0.1
SHOWN = "G.711, 20 ms"
PACKETS = {"G.711, 10 ms": 100.0, SHOWN: 50.0, "G.723.1, 30 ms": 100 / 3}
"""Packets per second of each codec."""


def settled_s(arrived: Sequence[int], packets_per_s: float) -> float | None:
    """Return the seconds after which all bins but the last are within 10 % of the codec's rate.

    Return None if this period is shorter than two seconds.
    """
    full = packets_per_s * SETTLED_BIN_S
    astray = [i for i, n in enumerate(arrived[:-1]) if abs(n - full) > BAND * full]
    last = max(astray, default=-1)
    return None if last >= len(arrived) - 5 else SETTLED_BIN_S * (last + 1)


def ssthresh(result: Result, *, begin_s: float, until_s: float = math.inf) -> Row:
    """Measure the settling time of the call, from `begin_s` on, and the losses of all flows."""
    bins = result.series("call").sort("time_s")
    # `time_s` is the end of a bin.
    bins = bins.filter(pl.col("time_s").is_between(begin_s + 1e-9, until_s + 1e-9))
    codec = PACKETS[result.settings.get("codec", SHOWN)]
    row: Row = {"settled": settled_s(bins["received_packets"].to_list(), codec)}
    for flow in result.flows.iter_rows(named=True):
        for name in ("mos", "lost_packets", "discarded_packets", "goodput_bps"):
            row[f"{flow['name']}_{name}"] = flow[name]
    return row


# Transports for voice, video and data.

BEGIN_S, STOP_S = 10.0, 20.0
"""Start of the measurement window, and end of the data source."""


def voice(_: Result, flow: Mapping[str, Any]) -> Row:
    """Return the MOS of the call."""
    return {"score": flow["mos"]}


def video(_: Result, flow: Mapping[str, Any]) -> Row:
    """Return the percentage of frames that were complete in time."""
    whole = flow["video_frames_complete"] - flow["video_frames_late"]
    return {"score": 100 * whole / flow["video_frames"]}


def data(result: Result, flow: Mapping[str, Any]) -> Row:
    """Return the percentage delivered, and the time from the source's end to the last arrival."""
    arrived = result.series("main").filter(pl.col("goodput_bps") > 0)["time_s"]
    delivered = flow["goodput_bps"] * (result.duration_s - BEGIN_S) / 8
    share = 100 * delivered / (1000 * flow["generated_packets"])
    return {"share": share, "score": max(arrived) - STOP_S if arrived.len() else None}


def transport(result: Result, *, of: Callable[[Result, Mapping[str, Any]], Row]) -> Row:
    """Measure the score, packet sizes, the effect on the upload, and the circuit breaker."""
    flow, upload = (
        result.flows.row(by_predicate=pl.col("name") == name, named=True)
        for name in ("main", "upload")
    )
    stopped = metrics.compute(result, "circuit_breaker", "main")["value"].item()
    return {
        **of(result, flow),
        "received": flow["received_packets"],
        "ip_bytes": flow["sent_bytes"] / max(flow["sent_packets"], 1),
        "payload_bytes": flow["payload_bytes"] / max(flow["sent_packets"], 1),
        "upload_bps": upload["goodput_bps"],
        "stopped_s": stopped,
    }


# ECN for CCID 3 over WiFi.

STEADY_S = 30.0
"""End of the start phase; steady values are measured from this time on."""
DRAWN = ("FIFO", "step at 200", "RED from 200", "CoDel")
"""Queues with a trace of the round-trip time, of the first seed; PIE and FQ-CoDel equal CoDel."""


def held(frame: pl.DataFrame, low: float, high: float) -> pl.DataFrame:
    """Return the values of a gauge and their durations within a window.

    A value is valid until the next one.
    """
    inside = frame.filter(pl.col("time_s") < high).with_columns(pl.col("time_s").clip(low))
    ends = inside["time_s"].shift(-1).fill_null(high)
    return inside.select("value", (ends - inside["time_s"]).alias("for_s")).filter(
        pl.col("for_s") > 0
    )


def mean(frame: pl.DataFrame) -> float:
    """Return the mean over time."""
    return float((frame["value"] * frame["for_s"]).sum() / frame["for_s"].sum())


def quantile(frame: pl.DataFrame, share: float) -> float:
    """Return the value that the gauge does not exceed for this share of the time."""
    rising = frame.sort("value").with_columns(pl.col("for_s").cum_sum().alias("until"))
    return float(rising.filter(pl.col("until") >= share * rising["until"][-1])["value"][0])


def variation(frame: pl.DataFrame) -> float:
    """Return the coefficient of variation over time."""
    middle = mean(frame)
    squares = float(((frame["value"] - middle) ** 2 * frame["for_s"]).sum() / frame["for_s"].sum())
    return math.sqrt(squares) / middle


def first(frame: pl.DataFrame, since: float) -> float | None:
    """Return the first time in the frame, relative to `since`."""
    return float(frame["time_s"][0]) - since if frame.height else None


def wifi(result: Result, traced: Mapping[str, str] | None = None) -> Row:
    """Measure the transfer and the queue in front of the radio.

    The trace of the round-trip time is kept for the settings `traced`.
    """
    until = result.duration_s
    opened = result.events("transfer").filter(event="connected", side="from")["time_s"][0]
    rtt, rate = result.gauges("transfer", "srtt"), result.gauges("transfer", "rate")
    heard = result.gauges("transfer", "loss_event_rate").filter(pl.col("value") > 0)
    x = held(rate, STEADY_S, until)
    queue = result.links.sort("queue_max_packets", descending=True).row(0, named=True)
    waits = result.link_series(queue["name"])
    transfer = result.flows.filter(name="transfer").row(0, named=True)
    at_200 = first(waits.filter(pl.col("queue_packets") >= 200), opened)
    heard_s = first(heard, opened)
    middle, last = (mean(held(rtt, until * i / 3, until * (i + 1) / 3)) for i in (1, 2))
    whole = held(rtt, float(rtt["time_s"][0]), until)
    row: Row = {
        "rtt_mean": mean(whole),
        "rtt_p95": quantile(whole, 0.95),
        "rtt_max": max(rtt["value"]),
        "rtt_middle": middle,
        "rtt_last": last,
        "rtt_growth": last - middle,
        "x_variation": variation(x),
        "x_least": min(x["value"]),
        "x_most": max(x["value"]),
        "heard_s": heard_s,
        "late_s": heard_s - at_200 if heard_s is not None and at_200 is not None else None,
        "queue_max": float(queue["queue_max_packets"]),
        "queue_mean": queue["queue_mean_packets"],
        "wait_mean": queue["sojourn_mean_s"],
        "wait_max": queue["sojourn_max_s"],
        "goodput": transfer["goodput_bps"],
        "ip_bytes": transfer["sent_bytes"] / transfer["sent_packets"],
        "lost": float(transfer["lost_packets"]),
    }
    wanted = traced is not None and traced.items() <= result.settings.items()
    if wanted and result.replicate == 0 and result.settings["queue"] in DRAWN:
        thin = rtt.gather_every(max(1, rtt.height // 4000))
        row["trace"] = [thin["time_s"].round(3).to_list(), thin["value"].round(4).to_list()]
    return row


def call(result: Result) -> Row:
    """Return the MOS, loss and delay of the call."""
    call = result.flows.filter(name="call").row(0, named=True)
    return {name: call[name] for name in ("mos", "loss_ratio", "mouth_to_ear_p50_s")}


STUDIES: dict[str, dict[str, Callable[[Result], Row]]] = {
    "bucket": dict.fromkeys(
        ("bucket", "bucket-tokens", "bucket-transports", "bucket-packets"), bucket
    ),
    "ssthresh": {
        "ssthresh": partial(ssthresh, begin_s=0.0),
        "ssthresh-today": partial(ssthresh, begin_s=1.0),
        "ssthresh-beside": partial(ssthresh, begin_s=20.0, until_s=40.0),
    },
    "transport": {
        f"transport-{of.__name__}": partial(transport, of=of) for of in (voice, video, data)
    },
    "wifi": {
        "wifi": partial(wifi, traced={"signal": "marks", "ends": "linux"}),
        "wifi-cell": wifi,
        "wifi-long": partial(wifi, traced={}),
        "wifi-call": call,
    },
}
"""The studies of each page in `scenarios/questions`, and what is measured in their runs."""
