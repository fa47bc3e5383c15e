#!/usr/bin/env python3
"""Write docs/questions/wifi.md: the effect of ECN on CCID 3 with a queue of a thousand packets.

.venv/bin/python validation/questions/wifi.py

It runs four studies with 900 runs, which takes about five minutes on two cores.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl
from common import Page, ask, begin
from wifi_page import QUESTION, STEADY_S, Traces, write

if TYPE_CHECKING:
    from talkspurt.result import Result

TRACES: Traces = {}
"""Traces of the smoothed round-trip time, filled while a study runs."""


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


def measure(result: Result) -> list[dict[str, object]]:
    """Return a row per run: the transfer, the queue in front of the radio, and any call."""
    until = result.duration_s
    opened = result.events("transfer").filter(event="connected", side="from")["time_s"][0]
    rtt, rate = result.gauges("transfer", "srtt"), result.gauges("transfer", "rate")
    if result.replicate == 0:
        TRACES[tuple(result.settings.values())] = rtt
    heard = result.gauges("transfer", "loss_event_rate").filter(pl.col("value") > 0)
    steady, x = held(rtt, STEADY_S, until), held(rate, STEADY_S, until)
    whole = held(rtt, float(rtt["time_s"][0]), until)
    queue = result.links.sort("queue_max_packets", descending=True).row(0, named=True)
    waits = result.link_series(queue["name"])
    transfer = result.flows.filter(name="transfer").row(0, named=True)
    at_200 = first(waits.filter(pl.col("queue_packets") >= 200), opened)
    heard_s = first(heard, opened)
    row: dict[str, object] = {
        "rtt_mean": mean(whole),
        "rtt_p95": quantile(whole, 0.95),
        "rtt_max": max(rtt["value"]),
        "rtt_steady": mean(steady),
        "rtt_middle": mean(held(rtt, until / 3, until * 2 / 3)),
        "rtt_last": mean(held(rtt, until * 2 / 3, until)),
        "x_mean": mean(x),
        "x_variation": variation(x),
        "x_least": min(x["value"]),
        "x_most": max(x["value"]),
        "heard_s": heard_s,
        "late_s": heard_s - at_200 if heard_s is not None and at_200 is not None else None,
        "queue_max": float(queue["queue_max_packets"]),
        "queue_mean": queue["queue_mean_packets"],
        "wait_mean": queue["sojourn_mean_s"],
        "wait_p95": queue["sojourn_p95_s"],
        "wait_max": queue["sojourn_max_s"],
        "marks": float(queue["marks"]),
        "goodput": transfer["goodput_bps"],
        "ip_bytes": transfer["sent_bytes"] / transfer["sent_packets"],
        "lost": float(transfer["lost_packets"]),
        "lost_share": transfer["lost_packets"] / transfer["sent_packets"],
    }
    calls = result.flows.filter(name="call")
    if calls.height:
        call = calls.row(0, named=True)
        row |= {f"call_{name}": call[name] for name in ("delay_p50_s", "delay_p95_s", "loss_ratio")}
        row |= {"call_lost": call["lost_packets"] / call["sent_packets"], "mos": call["mos"]}
    return [row]


def heard_call(result: Result) -> list[dict[str, object]]:
    """Return the MOS, loss and delay of the call."""
    call = result.flows.filter(name="call").row(0, named=True)
    return [{name: call[name] for name in ("mos", "loss_ratio", "mouth_to_ear_p50_s")}]


def main() -> None:
    """Run the four studies and write the page."""
    begin("wifi", __doc__ or "")
    wire = ask("wifi", measure)
    traces = dict(TRACES)
    cell = ask("wifi-cell", measure)
    TRACES.clear()
    long = ask("wifi-long", measure)
    long_traces = dict(TRACES)
    call = ask("wifi-call", heard_call)
    page = Page("wifi", "ECN for CCID 3 over WiFi", QUESTION)
    write(page, wire, cell, long, call, traces, long_traces)


if __name__ == "__main__":
    main()
