"""Renker 2008, "CCID3 over WiFi": Linux's CCID 3 into an 802.11b link with a long queue.

The radio is a wire of the rate the note measures, with the queue it estimates. For what no wire
has, spikes at 5 and 6 Mb/s from retries and changes of rate, it is a cell of 802.11b; the fastest
there is carries less than the note measures, so that nothing else is taken from it. Beside both
stands what a Linux kernel gave on the same wire, recorded.
"""

from __future__ import annotations

import json
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, Any

import polars as pl

from talkspurt.reproduce.network import Table, link
from talkspurt.reproduce.rows import Value, Values, show
from talkspurt.reproduce.study_file import FILES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from talkspurt.reproduce.lab import Case, Lab

ENDS = ("desktop", "laptop")
PACKET_BYTES = 1400
LINUX: Table = {"kind": "dccp", "ccid": 3, "profile": "linux", "sequence_window": 1000}
BULK: Table = {"kind": "bulk", "packet": f"{PACKET_BYTES}B"}
CELL: Table = {
    "access_point": "bridge",
    "standard": "802.11b",
    "short_preamble": True,
    "cw_min": 15,
    "snr_db": 9.0,
    "rate": {"kind": "minstrel"},
}
"""The fastest 802.11b there is (6.6 Mb/s of payload), with retries and changes of rate."""
MARKS: Table = {
    "kind": "red",
    "packets": 1000,
    "min_threshold": 200,
    "max_threshold": 600,
    "weight": 0.02,
    "ecn": True,
}
"""Marks from 200 packets on; the average follows the queue within 50 packets."""


FIFO: Table = {"kind": "droptail", "packets": 1000}
RATES = (2, 5, 6, 7)
STARTED_S = 5.0
"""From when on constant rates are looked at: Minstrel begins with rates that are too low."""


P_FLOOR = 1e-4
"""The least loss event rate that Linux's table of the equation knows."""
RADIOS = ("wire", "cell")
"""What stands for the note's radio."""
ON_AIR = ("cbr5", "cbr6")
"""Rows that want contention and retries: the cell's values are the inferred ones."""
WIRE_RATE = "7081kbit/s"
"""7.15 Mb/s as Linux's netem counts, with 14 bytes of Ethernet to each packet of 1436."""


def cases(lab: Lab) -> None:
    """What is run."""
    for radio in RADIOS:
        lab.ask(f"full-3min-{radio}", path(radio, BULK, 180), "inferred")
        lab.ask(f"full-15min-{radio}", path(radio, BULK, 920), "inferred")
        for rate in RATES:
            source = {"kind": "cbr", "rate": f"{rate}Mbit/s", "packet": f"{PACKET_BYTES}B"}
            seconds = 600 if rate == 7 else 60
            lab.ask(f"cbr-{rate}-{radio}", path(radio, source, seconds), "inferred")
        lab.ask(f"full-ecn-{radio}", path(radio, BULK, 180, ecn=True), "inferred")
    for name, transport, queue in (
        ("fifo", LINUX, FIFO),
        ("marks", {**LINUX, "ecn": True}, MARKS),
        ("codel", {"kind": "dccp", "ccid": 3}, {"kind": "codel", "ecn": True}),
        ("fq-codel", {"kind": "dccp", "ccid": 3}, {"kind": "fq_codel"}),
    ):
        lab.ask(f"call-beside-{name}", _call(transport, queue), "companion")


def path(radio: str, source: Table, seconds: int, *, ecn: bool = False) -> Table:
    """The desktop, the bridge and the laptop; on the wire the bridge is its queue."""
    queue = MARKS if ecn else FIFO
    transport = {**LINUX, "ecn": True} if ecn else LINUX
    if radio == "wire":
        net = {"links": {"radio": link(ENDS, WIRE_RATE, "1ms", queue, back={"rate": "100Mbit/s"})}}
    else:
        cell = {**CELL, "queue": queue, "stations": {ENDS[1]: {}}}
        ethernet = link((ENDS[0], cell["access_point"]), "100Mbit/s", "100us", FIFO)
        net = {"links": {"ethernet": ethernet}, "cells": {"radio": cell}}
    iperf = {"from": ENDS[0], "to": ENDS[1], "transport": transport, "source": source}
    return {
        "duration": f"{seconds}s",
        "record": {"interval": "100ms"},
        "flows": {"iperf": iperf},
        **net,
    }


def _call(transport: Table, queue: Table) -> Table:
    """A telephone call beside the transfer: what the queue does to somebody else."""
    scenario = path("wire", BULK, 60)
    scenario["links"]["radio"]["queue"] = queue
    scenario["flows"]["iperf"]["transport"] = transport
    scenario["flows"]["call"] = {
        "from": ENDS[0],
        "to": ENDS[1],
        "transport": {"kind": "udp"},
        "source": {"kind": "speech", "codec": "pcmu"},
        "playout": {"buffer": "300ms", "anchor": "capture"},
    }
    return scenario


def equation_bps(size_bytes: float, loss_event_rate: float, rtt_s: float) -> float:
    """RFC 3448 §3.1, with t_RTO = 4 R and b = 1."""
    p = loss_event_rate
    root = (2 * p / 3) ** 0.5
    timeouts = 4 * 3 * (3 * p / 8) ** 0.5 * p * (1 + 32 * p * p)
    return float(8 * size_bytes / (rtt_s * (root + timeouts)))


def gauge(case: Case, name: str, from_s: float = 0.0, to_s: float = 1e9) -> pl.DataFrame:
    """Values of a gauge of the transfer's sender in a window."""
    found = case.result.gauges("iperf", name)
    return found.filter(pl.col("time_s").is_between(from_s, to_s))


def _first(frame: pl.DataFrame) -> Value:
    return float(frame["time_s"][0]) if frame.height else None


def _mean(case: Case, name: str, from_s: float, to_s: float) -> float:
    """Mean over a window of time; a gauge is written when it changes, and holds until then."""
    found = gauge(case, name, 0, to_s).with_columns(pl.col("time_s").clip(from_s))
    held = found["time_s"].diff().shift(-1).fill_null(to_s - float(found["time_s"][-1]))
    return float((found["value"] * held).sum()) / (to_s - from_s)


def at(case: Case, name: str, time_s: float) -> float:
    """What a gauge stood at."""
    return float(gauge(case, name, 0, time_s)["value"][-1])


def _most(frame: pl.DataFrame) -> float:
    return float(frame["value"].max())  # type: ignore[arg-type]


def values(lab: Lab) -> Values:
    """Every row's values."""
    found = {radio: _measured(lab, radio) for radio in RADIOS}
    inferred, notes = {}, {}
    for row in found["wire"]:
        radio, other = ("cell", "wire") if row.split("/")[0] in ON_AIR else ("wire", "cell")
        inferred[row] = found[radio][row]
        parts = [f"{OTHERS[other]} gives {show(found[other][row])}"]
        if row in linux():
            parts.append(f"A Linux 6.1 kernel on the wire gave {show(linux()[row])}")
        notes[row] = ". ".join(parts)
    rate = at(lab.cases["full-3min-wire"], "receive_rate", 180) / 8
    floor = 1e3 * PACKET_BYTES * (1.5 / P_FLOOR) ** 0.5 / rate
    notes["3min/rtt-load"] += (
        f". At the least p that Linux's table knows, {P_FLOOR:g}, X_calc is the {8e-6 * rate:.3g} "
        f"Mb/s that arrive where R is s √(3/2p) / C = {floor:.0f} ms: there the queue stands"
    )
    stated: dict[str, Value] = {
        "equation/x-calc": equation_bps(PACKET_BYTES, 0.002, 0.4) / 1e3,
        # A round trip of 1 s at the 7 Mb/s that the note measures.
        "queue/estimate": 1.0 * 7e6 / (8 * PACKET_BYTES),
    }
    return Values(stated, inferred, notes=notes, cases={row: _cases_of(row) for row in inferred})


OTHERS = {"cell": "A cell of 802.11b", "wire": "The wire"}


def _measured(lab: Lab, radio: str) -> dict[str, Value]:
    full, long, ecn = (lab.cases[f"full-{name}-{radio}"] for name in ("3min", "15min", "ecn"))
    cbr = {rate: lab.cases[f"cbr-{rate}-{radio}"] for rate in RATES}
    first_loss = _first(gauge(full, "loss_event_rate").filter(pl.col("value") > 0))
    assert isinstance(first_loss, float)
    # What that report made the sender compute; gauges of one report bear one time.
    computed_first = first_loss + 1e-9
    peak = _most(gauge(full, "loss_event_rate", 0, 10))
    computed = gauge(full, "equation_rate")
    late = gauge(long, "loss_event_rate")
    high = late.filter(pl.col("value") > peak / 10)
    steady = {rate: _steady(case) for rate, case in cbr.items()}
    lost7 = cbr[7].result.series("iperf").filter(pl.col("lost_packets") > 0)
    heard = _first(gauge(ecn, "loss_event_rate").filter(pl.col("value") > 0))
    return {
        "full/x-calc": at(full, "equation_rate", computed_first) / 1e3,
        "full/first-loss": first_loss,
        "full/p": 100 * at(full, "loss_event_rate", computed_first),
        "full/rtt": 1e3 * at(full, "srtt", computed_first),
        "full/rtt-peak": _most(gauge(full, "srtt", 0, 10)),
        "full/recovers": _first(computed.filter(pl.col("time_s") > 6, pl.col("value") >= 7e6)),
        "full/slow-start": at(full, "rate", 1) / at(full, "receive_rate", 1),
        "full/rtt-steps": _staircase(gauge(full, "srtt", 0.1, 1.1)["value"]),
        "full/rtt-least": 1e3 * float(gauge(full, "srtt")["value"].min()),  # type: ignore[arg-type]
        "3min/x-calc": _mean(full, "equation_rate", 120, 180) / 1e6,
        "3min/rtt-load": 1e3 * _mean(full, "srtt", 120, 180),
        "15min/x-recv": _mean(long, "receive_rate", 840, 900) / 1e6,
        "15min/p-declines": float(late.filter(pl.col("time_s") >= 10)["value"][0])
        / float(late["value"][-1]),
        "15min/p-lasts": float(high["time_s"][-1]),
        "cbr7/first-loss": _first(lost7),
        "cbr7/rtt": _most(gauge(cbr[7], "srtt")),
        "cbr2/rtt": 1e3 * _mean(cbr[2], "srtt", 1, 60),
        "cbr5/spikes": max(steady[5]) / median(steady[5]),
        "cbr6/builds-up": max(steady[6]) / max(steady[2]),
        "cbr6/no-loss": cbr[6].flow("iperf", "lost_packets"),
        "ecn/queue": _longest_queue(ecn),
        "ecn/heard": heard / first_loss if isinstance(heard, float) else None,
    }


def _steady(case: Case) -> list[float]:
    """Round-trip times once a constant rate has started, in seconds."""
    later = gauge(case, "srtt", STARTED_S)["value"].to_list()
    return [at(case, "srtt", STARTED_S), *map(float, later)]


def _longest_queue(case: Case) -> float:
    """At the radio, the only queue that marks."""
    return float(case.result.links["queue_max_packets"].max())  # type: ignore[arg-type]


def _staircase(values: pl.Series) -> str:
    drop = values.diff().drop_nulls() / values.head(values.len() - 1)
    rising = bool((drop > -0.1).all())
    return "yes" if rising and float(values[-1]) >= 10 * 0.002 else "no"


def _cases_of(row: str) -> list[str]:
    kind = row.split("/")[0]
    stems = {
        "full": ["full-3min"],
        "3min": ["full-3min"],
        "15min": ["full-15min", "full-3min"],
        "ecn": ["full-ecn", "full-3min"],
        "cbr6": ["cbr-6", "cbr-2"],
    }.get(kind, [kind.replace("cbr", "cbr-")])
    return [f"{stem}-{radio}" for stem in stems for radio in RADIOS]


def linux() -> Mapping[str, float]:
    """What a Linux kernel gave on the same wire, as recorded."""
    values: dict[str, float] = _recorded()["values"]
    return values


def linux_series(run: str) -> Mapping[str, list[float | None]]:
    """The kernel's sender over time in a run (``full``, ``cbr-2`` …), by column."""
    series: dict[str, dict[str, list[float | None]]] = _recorded()["series"]
    return series[run]


@cache
def _recorded() -> dict[str, Any]:
    text = (FILES / "renker2008.linux.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
