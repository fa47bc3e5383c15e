"""Renker 2008, "CCID3 over WiFi": Linux's CCID 3 into an 802.11b link with a long queue.

The radio is a wire with the note's measured rate and estimated queue: a Linux kernel was recorded
on the same wire for comparison. Contention spikes at 5 and 6 Mb/s, which no wire has, use an
802.11b cell, whose values for the other rows are in their reasons.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

import polars as pl

from talkspurt.reproduce import study_file
from talkspurt.reproduce.lab import part
from talkspurt.reproduce.rows import Values
from talkspurt.reproduce.runs_file import notes, scenarios
from talkspurt.reproduce.sample import Sample, show

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from talkspurt.reproduce.figures import Points, Runs, Spec
    from talkspurt.reproduce.lab import Lab, Run, Table
    from talkspurt.reproduce.sample import Value

ENDS = ("desktop", "laptop")
PACKET_BYTES = 1400
RATES = (2, 5, 6, 7)
STARTED_S = 5.0
"""Start of evaluation at constant rates: Minstrel starts with rates that are too low."""


P_FLOOR = 1e-4
"""The minimum loss event rate in Linux's table of the equation."""
RADIOS = ("wire", "cell")
"""The model of the note's radio."""
ON_AIR = ("cbr-5", "cbr-6")
"""Runs that need contention and retries: the cell's values are the inferred ones."""
GAUGES = part("flow", "gauge", "time_s", "value", flow="iperf", side="from")


def _round_trips(gauges: pl.DataFrame) -> pl.DataFrame:
    """The only data needed at a constant rate."""
    return GAUGES(gauges.filter(gauge="srtt"))


def _marking(series: pl.DataFrame) -> pl.DataFrame:
    """The queue of the radio, in the bins in which it marks."""
    return series.filter(pl.col("link") == "radio", pl.col("marks") > 0)


LOSSES = part("flow", "time_s", "lost_packets")
KEEP = {
    "gauges": {"gauges": GAUGES},
    "marks": {"gauges": GAUGES, "link_series": _marking},
    "round-trips": {"gauges": _round_trips},
    "constant": {"gauges": _round_trips, "series": LOSSES},
}


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


def _first(frame: pl.DataFrame) -> float | None:
    return float(frame["time_s"][0]) if frame.height else None


def _mean(run: Run, name: str, from_s: float, to_s: float) -> float:
    """Mean over a time window; a gauge is written when it changes, and holds until then."""
    found = gauge(run, name, 0, to_s).with_columns(pl.col("time_s").clip(from_s))
    held = found["time_s"].diff().shift(-1).fill_null(to_s - float(found["time_s"][-1]))
    return float((found["value"] * held).sum()) / (to_s - from_s)


def at(run: Run, name: str, time_s: float) -> float:
    """The value of a gauge at a time."""
    return float(gauge(run, name, 0, time_s)["value"][-1])


def _most(frame: pl.DataFrame) -> float:
    return float(frame["value"].max())  # type: ignore[arg-type]


def values(lab: Lab) -> Values:
    """The values of all rows."""
    stated: dict[str, Sample] = {
        "equation/x-calc": Sample((equation_bps(PACKET_BYTES, 0.002, 0.4) / 1e3,)),
        # A round trip of 1 s at the 7 Mb/s that the note measures.
        "queue/estimate": Sample((1.0 * 7e6 / (8 * PACKET_BYTES),)),
    }
    found: dict[bool, dict[str, Sample]] = {True: {}, False: {}}
    for names, rows in ROWS:
        for radio in RADIOS:
            if all(f"{name}-{radio}" in lab.cases for name in names):
                own = radio == radio_of(names)
                found[own] |= lab.rows([(names, rows)], f"-{radio}")
    inferred = found[True]
    return Values(stated, inferred, notes=_notes(lab, found[False]), cases=lab.used)


def live_cases() -> dict[str, dict[str, Any]]:
    """The scenarios of rows that can be measured in real time, by name."""
    needed = {f"{name}-{radio_of(names)}" for names, _ in ROWS for name in names}
    return {one.name: one.table for one in scenarios("renker2008") if one.name in needed}


def radio_of(names: Sequence[str]) -> str:
    """The radio whose values are those of the rows."""
    return "cell" if names[0] in ON_AIR else "wire"


def _notes(lab: Lab, others: Mapping[str, Sample]) -> dict[str, str]:
    """Results of the other radio, and of a kernel."""
    unit = {spec.id: spec.unit for spec in study_file.load("renker2008").rows}
    found: dict[str, list[str]] = {}
    for row, sample in others.items():
        radio = "The wire" if row.startswith(("cbr5/", "cbr6/")) else "A cell of 802.11b"
        found[row] = [f"{radio} gives {sample.told(unit[row])}"]
    for row, value in linux().items():
        gave = f"A Linux 6.1 kernel on the wire gave {show(value, unit[row])}"
        found.setdefault(row, []).append(gave)
    rate = at(lab.first("full-3min-wire"), "receive_rate", 180) / 8
    facts = {
        "clear": lab.each(["cbr-5-clear"], spikes)["cbr5/spikes"].told(),
        "p_floor": P_FLOOR,
        "mbps": 8e-6 * rate,
        "floor_ms": 1e3 * PACKET_BYTES * (1.5 / P_FLOOR) ** 0.5 / rate,
    }
    for row, text in notes("renker2008", facts).items():
        found.setdefault(row, []).append(text)
    return {row: ". ".join(parts) for row, parts in found.items()}


def _loss(run: Run) -> float:
    """Time of the first reported loss."""
    first = _first(gauge(run, "loss_event_rate").filter(pl.col("value") > 0))
    assert first is not None
    return first


def full(run: Run) -> dict[str, Value]:
    """The bytestream: its slow start, its first loss and the following three minutes."""
    first_loss = _loss(run)
    # The sender's values computed from that report; gauges of one report have the same time.
    then = first_loss + 1e-9
    computed = gauge(run, "equation_rate")
    return {
        "full/x-calc": at(run, "equation_rate", then) / 1e3,
        "full/first-loss": first_loss,
        "full/rate-drops": _drops(gauge(run, "receive_rate"), first_loss),
        "full/p": 100 * at(run, "loss_event_rate", then),
        "full/rtt": 1e3 * at(run, "srtt", then),
        "full/rtt-peak": _most(gauge(run, "srtt", 0, 10)),
        "full/recovers": _first(computed.filter(pl.col("time_s") > 6, pl.col("value") >= 7e6)),
        "full/slow-start": at(run, "rate", 1) / at(run, "receive_rate", 1),
        "full/rtt-steps": _staircase(gauge(run, "srtt", 0.1, 1.1)["value"]),
        "full/rtt-least": 1e3 * float(gauge(run, "srtt")["value"].min()),  # type: ignore[arg-type]
        "3min/x-calc": _mean(run, "equation_rate", 120, 180) / 1e6,
        "3min/rtt-load": 1e3 * _mean(run, "srtt", 120, 180),
    }


def _drops(rates: pl.DataFrame, loss_s: float) -> float | None:
    """When a rate first falls below half of its highest before a loss."""
    most = _most(rates.filter(pl.col("time_s") <= loss_s))
    return _first(rates.filter(pl.col("time_s") > loss_s, pl.col("value") < most / 2))


def long(run: Run) -> dict[str, Value]:
    """The bytestream over fifteen minutes."""
    peak = _most(gauge(run, "loss_event_rate", 0, 10))
    late = gauge(run, "loss_event_rate")
    high = late.filter(pl.col("value") > peak / 10)
    declined = float(late.filter(pl.col("time_s") >= 10)["value"][0])
    return {
        "15min/x-recv": _mean(run, "receive_rate", 840, 900) / 1e6,
        "15min/p-declines": declined / float(late["value"][-1]),
        "15min/p-lasts": float(high["time_s"][-1]),
    }


def marked(ecn: Run, plain: Run) -> dict[str, Value]:
    """Marks from 200 packets, next to none."""
    heard = _first(gauge(ecn, "loss_event_rate").filter(pl.col("value") > 0))
    return {
        "ecn/queue": _first_marked(ecn),
        "ecn/heard": heard / _loss(plain) if heard is not None else None,
    }


def overload(run: Run) -> dict[str, Value]:
    """7 Mb/s."""
    return {
        "cbr7/first-loss": _first(run.series("iperf").filter(pl.col("lost_packets") > 0)),
        "cbr7/rtt": _most(gauge(run, "srtt")),
    }


def building_up(six: Run, two: Run) -> dict[str, Value]:
    """6 Mb/s, and 2 Mb/s."""
    return {
        "cbr6/builds-up": max(_steady(six)) / max(_steady(two)),
        "cbr6/no-loss": six.flow("iperf", "lost_packets"),
    }


def spikes(run: Run) -> dict[str, Value]:
    """5 Mb/s."""
    return {"cbr5/spikes": max(_steady(run)) / median(_steady(run))}


def at_rest(run: Run) -> dict[str, Value]:
    """2 Mb/s."""
    return {"cbr2/rtt": 1e3 * _mean(run, "srtt", 1, 60)}


ROWS: Table = (
    (["full-3min"], full),
    (["full-15min"], long),
    (["full-ecn", "full-3min"], marked),
    (["cbr-7"], overload),
    (["cbr-2"], at_rest),
    (["cbr-5"], spikes),
    (["cbr-6", "cbr-2"], building_up),
)
"""Which rows are computed from which runs."""


def _steady(run: Run) -> list[float]:
    """Round-trip times once a constant rate has started, in seconds."""
    later = gauge(run, "srtt", STARTED_S)["value"].to_list()
    return [at(run, "srtt", STARTED_S), *map(float, later)]


def _first_marked(run: Run) -> float | None:
    """Packets in the queue while it first marks, the mean over a tenth of a second."""
    marks = _marking(run.tables["link_series"])
    return float(marks["queue_packets"][0]) if marks.height else None


def _staircase(values: pl.Series) -> str:
    drop = values.diff().drop_nulls() / values.head(values.len() - 1)
    rising = bool((drop > -0.1).all())
    return "yes" if rising and float(values[-1]) >= 10 * 0.002 else "no"


def curves(runs: Runs) -> Callable[[Spec], Points]:
    """Gauges of our sender, and values of a Linux kernel's."""

    def points(line: Spec) -> Points:
        to_s, scale = line.get("to_s", 1e9), line["scale"]
        if "kernel" in line:
            # Of the kernel's sender over time in a run (``full``, ``cbr-2`` …), by column.
            series = _recorded()["series"][line["kernel"]]
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

    return points


def _recorded() -> dict[str, Any]:
    return study_file.linux_values("renker2008") or {}


def linux() -> Mapping[str, float]:
    """Recorded values of a Linux kernel on the same wire."""
    return dict(_recorded()["values"])
