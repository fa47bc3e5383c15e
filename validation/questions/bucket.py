#!/usr/bin/env python3
"""Write docs/questions/bucket.md: bucket depth, step-up time, and comparison of TFRC-TB.

.venv/bin/python validation/questions/bucket.py

It runs four studies with 2872 runs, which takes about ten minutes on two cores.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from bucket_figures import SCALES_S
from bucket_page import QUESTION, write
from bucket_rows import PACKET_BYTES
from common import Page, ask, begin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from talkspurt.result import Result

FROM_S, TO_S, BIN_S = 20.0, 120.0, 0.2
TFRC_HEADER_BYTES = 16
"""Size of the TFRC header, which is sent but not counted in X."""


def variation(values: Sequence[float], bins: int) -> float:
    """Return the coefficient of variation of the data sent, in groups of `bins` bins."""
    whole = len(values) // bins * bins
    sums = np.asarray(values[:whole]).reshape(-1, bins).sum(axis=1)
    return float(sums.std() / sums.mean()) if sums.mean() else math.nan


def jain(values: Sequence[float]) -> float:
    """Return Jain's fairness index."""
    squares = sum(x * x for x in values)
    return sum(values) ** 2 / (len(values) * squares)


def measure(result: Result) -> list[dict[str, Any]]:
    """Return a row per run: smoothness, fairness, and the MOS of the calls."""
    flows = result.flows
    calls = flows.filter(group="call")
    uploads = flows.filter(group="upload")
    web = flows.filter(group="web")["throughput_bps"].sum()
    link = result.links.filter(name="bottleneck").row(0, named=True)
    fair = (link["rate_bps"] - web) / (calls.height + uploads.height)
    window = pl.col("time_s").is_between(FROM_S + BIN_S / 2, TO_S + BIN_S / 2)
    series = result.series().filter(pl.col("flow").is_in(calls["name"].implode()), window)
    sent = [each["sent_bytes"].to_list() for each in series.partition_by("flow")]
    changes = result.events().filter(
        pl.col("flow").is_in(calls["name"].implode()),
        pl.col("event").str.starts_with("encoding"),
        pl.col("time_s").is_between(FROM_S, TO_S),
    )
    minutes = calls.height * (TO_S - FROM_S) / 60
    rates = calls["throughput_bps"].to_list()
    row: dict[str, Any] = {
        "call_bps": calls["throughput_bps"].mean(),
        "call_share": calls["throughput_bps"].mean() / fair,
        "upload_share": uploads["throughput_bps"].mean() / fair,
        "jain": jain(rates + uploads["throughput_bps"].to_list()),
        "jain_calls": jain(rates),
        "switches": changes.height / minutes,
        "best": (series["encoding"].fill_null(0) == 0).mean(),
        "utilisation": link["utilisation"],
        "missed": calls["loss_ratio"].mean(),
        "lost": calls["lost_packets"].sum() / calls["sent_packets"].sum(),
        "discarded": calls["discarded_packets"].sum() / calls["generated_packets"].sum(),
        "goodput": calls["goodput_bps"].mean(),
        "mouth_to_ear": calls["mouth_to_ear_p50_s"].mean(),
    }
    for bins in SCALES_S:
        each = [variation(values, bins) for values in sent]
        heard = [value for value in each if not math.isnan(value)]
        row[f"cov_{bins}"] = sum(heard) / len(heard) if heard else None
    return [row | opinions(calls) | inside(result, calls)]


def opinions(calls: pl.DataFrame) -> dict[str, Any]:
    """Return the mean and tenth percentile of the MOS, or None if a codec used has no MOS."""
    said = []
    for mos, missed in calls.select("mos", "loss_ratio").iter_rows():
        # No codec is known for a completely lost call.
        said.append(1.0 if mos is None and missed == 1 else mos)
    if None in said:
        return {"mos": None, "mos_p10": None, "mos_least": None}
    return {
        "mos": float(np.mean(said)),
        "mos_p10": float(np.quantile(said, 0.1)),
        "mos_least": float(min(said)),
    }


def inside(result: Result, calls: pl.DataFrame) -> dict[str, Any]:
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
    of = gauges.filter(pl.col("flow").is_in(calls["name"].implode()), side="from")
    late = of.filter(pl.col("time_s").is_between(FROM_S, TO_S))
    return {
        "beyond_x": most,
        "of_x": max(shares),
        "x": late.filter(gauge="rate")["value"].mean(),
        "x_calc": late.filter(gauge="equation_rate")["value"].mean(),
    }


def main() -> None:
    """Run the four studies and write the page."""
    begin("bucket", __doc__ or "")
    names = ("bucket", "bucket-tokens", "bucket-transports", "bucket-packets")
    page = Page("bucket", "Token bucket of TFRC-TB", QUESTION)
    write(page, *(ask(name, measure) for name in names))


if __name__ == "__main__":
    main()
