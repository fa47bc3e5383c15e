"""Wheeb 2017: UDP, DCCP, SCTP and TFRC for data, video and VoIP over two routers.

The stated parameters cannot produce the tables (500 kb/s offered do not arrive as 799), and no link
is described. The inferred parameters follow from the tables' arithmetic and from ns-2's behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from talkspurt.reproduce import hops, study_file
from talkspurt.reproduce import ns2 as peer
from talkspurt.reproduce.rows import Values
from talkspurt.reproduce.runs_file import notes, scenarios
from talkspurt.reproduce.sample import show

if TYPE_CHECKING:
    from talkspurt.reproduce.lab import Lab, Run, Table
    from talkspurt.reproduce.ns2 import Script
    from talkspurt.reproduce.sample import Sample, Value

PROTOCOLS = ("UDP", "DCCP", "SCTP", "TFRC")
TRAFFIC = ("data", "video", "VoIP")
LARGEST_CONTROL_BYTES = 100
"""Handshakes and acknowledgements are shorter, all data is longer."""


def data(frame: pl.DataFrame, sender: str) -> pl.DataFrame:
    """The data packets of the sender, end to end."""
    packets = hops.end_to_end(frame.filter(pl.col("flow").str.ends_with(sender)))
    long = pl.col("bytes") > LARGEST_CONTROL_BYTES
    return packets.filter(long).select("bytes", "sent_s", "received_s")


def _sent(packets: pl.DataFrame) -> pl.DataFrame:
    # The other side's packets need no names of flows.
    return data(hops.ours(packets.filter(side="from")), "from")


KEEP = {"sent": {"packets": _sent}}


def throughput(row: str, packets: pl.DataFrame) -> dict[str, Value]:
    """A cell of Table 3: from the first packet to the last, in kb/s."""
    arrived = packets.drop_nulls("received_s")
    span = float(arrived["received_s"].max()) - float(packets["sent_s"].min())  # type: ignore[arg-type]
    return {f"table3/{row}": 8e-3 * float(arrived["bytes"].sum()) / span}


def cells(row: str, packets: pl.DataFrame) -> dict[str, Value]:
    """A cell of each table."""
    arrived = packets.drop_nulls("received_s")
    return throughput(row, packets) | {
        f"table4/{row}": hops.mean(arrived["received_s"] - arrived["sent_s"]),
        # Counted like a trace script: packets in flight at the end were not received either.
        f"table5/{row}": 100 * (1 - arrived.height / packets.height),
    }


EXTREMES = {
    "data": {"fig2/highest": "table3", "fig5/lowest": "table4", "text/loss-data": "table5"},
    "video": {"fig3/highest": "table3", "fig6/lowest": "table4", "text/loss-video": "table5"},
    "VoIP": {"fig4/highest": "table3", "fig7/lowest": "table4", "text/loss-voip": "table5"},
}
"""Claims about which protocol has the maximum or minimum, by the table that shows it."""


def extremes(traffic: str, *runs: pl.DataFrame) -> dict[str, Value]:
    """Which protocol has the highest throughput, the lowest delay and the lowest loss."""
    found = {protocol: cells("", run) for protocol, run in zip(PROTOCOLS, runs, strict=True)}
    tables = {
        table: {protocol: float(of[f"{table}/"] or 0) for protocol, of in found.items()}
        for table in ("table3", "table4", "table5")
    }
    rows: dict[str, Value] = {}
    for row, table in EXTREMES[traffic].items():
        best = max if row.endswith("highest") else min
        rows[row] = best(tables[table], key=tables[table].__getitem__)
    both, name = ("SCTP", "TFRC"), traffic.lower()
    least, soonest = (min(tables[table][p] for p in both) for table in ("table3", "table4"))
    rows[f"abstract/throughput/{name}"] = least / tables["table3"]["UDP"]
    rows[f"abstract/delay/{name}"] = tables["table4"]["DCCP"] / soonest
    return rows


def slight(*runs: pl.DataFrame) -> dict[str, Value]:
    """The highest of DCCP's loss ratios with each kind of traffic."""
    losses = [cells("", run)["table5/"] for run in runs]
    return {"text/loss-dccp": max(float(loss or 0) for loss in losses)}


def _name(traffic: str, protocol: str, separator: str = "-") -> str:
    return f"{traffic}{separator}{protocol}".lower()


EVERY = tuple(product(TRAFFIC, PROTOCOLS))
# Without links the text has no delay and no loss, and at most the offered rate.
STATED: Table = [([_name(t, p)], partial(throughput, _name(t, p, "/"))) for t, p in EVERY]
INFERRED: Table = [
    *(([_name(t, p)], partial(cells, _name(t, p, "/"))) for t, p in EVERY),
    *(([_name(t, p) for p in PROTOCOLS], partial(extremes, t)) for t in TRAFFIC),
    ([_name(t, "DCCP") for t in TRAFFIC], slight),
]
"""Which rows are computed from which runs of either simulator."""


def _packets(run: Run) -> pl.DataFrame:
    return run.packets


def values(lab: Lab) -> Values:
    """The values of all rows."""
    stated = lab.rows(STATED, "-stated", _packets)
    inferred = lab.rows(INFERRED, "-inferred", _packets)
    return Values(stated, inferred, notes=_notes(inferred), cases=lab.used)


def _notes(rows: Mapping[str, Sample]) -> dict[str, str]:
    """Reasons for differences, from ns-2's results with these and other links."""
    found = notes("wheeb2017", peer.beyond("wheeb2017"))
    theirs = peer.recorded("wheeb2017")
    for spec in study_file.load("wheeb2017").rows:
        ours, other = rows[spec.id], theirs[spec.id]
        if spec.id in found or True in spec.band.holds(spec.paper, ours):
            continue
        value = ours.value
        if isinstance(value, float) and isinstance(other, float):
            near = abs(value / other - 1) <= 0.05
        else:
            near = value == other
        if near:
            found[spec.id] = f"ns-2 gives {show(other)} with the same parameters"
    return found


def _words(scenario: Mapping[str, Any]) -> Sequence[str]:
    """Rate, packet, rates and delays of the outer links and of the middle one, as ns-2 has them."""
    source, links = scenario["flows"]["traffic"]["source"], scenario["links"]
    words = [source["rate"], source["packet"].removesuffix("B")]
    words += [links[name][key] for name in ("in", "middle") for key in ("rate", "delay")]
    return [word.replace("bit/s", "b") for word in words]


def _traced(script: Script, protocol: str, words: Sequence[str]) -> pl.DataFrame:
    return data(script.hops(protocol, *words), "0.0>3.0")


def ns2(script: Script) -> dict[str, Value]:
    """The rows in ns-2 with the inferred parameters."""
    tables = {one.name: one.table for one in scenarios("wheeb2017")}
    runs = {
        _name(t, p): _traced(script, p, _words(tables[f"{_name(t, 'UDP')}-inferred"]))
        for t, p in EVERY
    }
    return {
        row: value
        for names, rows in INFERRED
        for row, value in rows(*(runs[name] for name in names)).items()
    }


def ns2_beyond(script: Script) -> dict[str, float]:
    """Delays of data over other links, on which UDP's is the printed one."""
    found: dict[str, list[float]] = {protocol: [] for protocol in PROTOCOLS}
    links = list(
        product(("800kb", "1Mb", "2Mb", "5Mb", "10Mb"), (1, 2, 5, 10), (1, 2, 5, 10, 15, 20))
    )
    for outer, outer_ms, middle_ms in links:
        words = ("898kb", "1000", outer, f"{outer_ms}ms", "800kb", f"{middle_ms}ms")
        for protocol in PROTOCOLS:
            delay = cells("", _traced(script, protocol, words))["table4/"]
            assert isinstance(delay, float)
            if protocol == "UDP" and abs(delay / 0.108356 - 1) > 0.02:
                break
            found[protocol].append(delay)
    spans = {
        f"{protocol} {word}": round(end(delays), 6)
        for protocol, delays in found.items()
        for word, end in (("least", min), ("most", max))
    }
    return {"tried": len(links), "fit": len(found["UDP"]), **spans}
