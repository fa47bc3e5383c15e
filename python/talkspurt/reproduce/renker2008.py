"""Renker 2008, "CCID3 over WiFi": Linux's CCID 3 into an 802.11b link with a long queue.

The radio is a wire with the note's measured rate and estimated queue: a Linux kernel was recorded
on the same wire for comparison. Contention spikes at 5 and 6 Mb/s, which no wire has, use an
802.11b cell, whose values for the other rows are in their reasons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl

from talkspurt.reproduce import study_file
from talkspurt.reproduce.figures import Points, Runs, Spec
from talkspurt.reproduce.lab import Run, part
from talkspurt.reproduce.sample import Sample, show

PACKET_BYTES = 1400
STARTED_S = 5.0
"""Start of evaluation at constant rates: Minstrel starts with rates that are too low."""
KERNEL = study_file.recorded("renker2008", "linux")
"""Recorded of a Linux kernel on the same wire."""
P_FLOOR = 1e-4
"""The minimum loss event rate in Linux's table of the equation."""


def round_trips(gauges: pl.DataFrame) -> pl.DataFrame:
    """The only data needed at a constant rate."""
    return part("flow", "gauge", "time_s", "value", flow="iperf", side="from")(
        gauges.filter(gauge="srtt")
    )


def marking(series: pl.DataFrame) -> pl.DataFrame:
    """The queue of the radio, in the bins in which it marks."""
    return series.filter(pl.col("link") == "radio", pl.col("marks") > 0)


def equation_bps(size_bytes: float, loss_event_rate: float, rtt_s: float) -> float:
    """RFC 3448 §3.1, with t_RTO = 4 R and b = 1."""
    p = loss_event_rate
    root = (2 * p / 3) ** 0.5
    timeouts = 4 * 3 * (3 * p / 8) ** 0.5 * p * (1 + 32 * p * p)
    return float(8 * size_bytes / (rtt_s * (root + timeouts)))


def gauge(run: Run, name: str, from_s: float = 0.0, to_s: float = 1e9) -> pl.DataFrame:
    """Values of a gauge of the transfer's sender in a window."""
    found = run.gauges("iperf", name)
    return found.filter(pl.col("time_s").is_between(from_s, to_s))


def first(frame: pl.DataFrame) -> float | None:
    """Time of the first row."""
    return float(frame["time_s"][0]) if frame.height else None


def average(run: Run, name: str, from_s: float, to_s: float) -> float:
    """Mean over a time window; a gauge is written when it changes, and holds until then."""
    found = gauge(run, name, 0, to_s).with_columns(pl.col("time_s").clip(from_s))
    held = found["time_s"].diff().shift(-1).fill_null(to_s - float(found["time_s"][-1]))
    return float((found["value"] * held).sum()) / (to_s - from_s)


def at(run: Run, name: str, time_s: float) -> float:
    """The value of a gauge at a time."""
    return float(gauge(run, name, 0, time_s)["value"][-1])


def most(frame: pl.DataFrame) -> float:
    """The highest value."""
    return float(frame["value"].max())  # type: ignore[arg-type]


def notes(found: Mapping[str, Mapping[str, Sample]], written: Mapping[str, str]) -> dict[str, str]:
    """Results of the other radio and of a kernel, before the written notes."""
    said: dict[str, list[str]] = {}
    for spec in study_file.load("renker2008").rows:
        id, parts = spec.id, said.setdefault(spec.id, [])
        if id in found["other"]:
            radio = "The wire" if id.startswith(("cbr5/", "cbr6/")) else "A cell of 802.11b"
            parts.append(f"{radio} gives {found['other'][id].told(spec.unit)}")
        if id in KERNEL["values"]:
            gave = show(KERNEL["values"][id], spec.unit)
            parts.append(f"A Linux 6.1 kernel on the wire gave {gave}")
        parts += [written[id]] if id in written else []
    return {row: ". ".join(parts) for row, parts in said.items() if parts}


def first_loss(run: Run) -> float:
    """Time of the first reported loss."""
    found = first(gauge(run, "loss_event_rate").filter(pl.col("value") > 0))
    assert found is not None
    return found


def steady(run: Run) -> list[float]:
    """Round-trip times once a constant rate has started, in seconds."""
    later = gauge(run, "srtt", STARTED_S)["value"].to_list()
    return [at(run, "srtt", STARTED_S), *map(float, later)]


def first_marked(run: Run) -> float | None:
    """Packets in the queue while it first marks, the mean over a tenth of a second."""
    marks = marking(run.tables["link_series"])
    return float(marks["queue_packets"][0]) if marks.height else None


def curve(runs: Runs, line: Spec) -> Points:
    """Gauges of our sender, and values of a Linux kernel's."""
    to_s, scale = line.get("to_s", 1e9), line["scale"]
    if "kernel" in line:
        # Of the kernel's sender over time in a run (``full``, ``cbr-2`` …), by column.
        series = KERNEL["series"][line["kernel"]]
        known = [
            (time, scale * value)
            for time, value in zip(series["time_s"], series[line["column"]], strict=True)
            if time is not None and value is not None and time <= to_s
        ]
        return [time for time, _ in known], [value for _, value in known]
    run = runs(line["run"])[0]
    found = gauge(run, line["gauge"], 0, to_s)
    x, y = found["time_s"].to_list(), (found["value"] * scale).to_list()
    # A gauge holds until it changes again.
    return ([*x, min(to_s, run.duration_s)], [*y, y[-1]]) if x else ([0.0], [math.nan])
