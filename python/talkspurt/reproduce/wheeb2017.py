"""Wheeb 2017: UDP, DCCP, SCTP and TFRC for data, video and VoIP over two routers.

The stated parameters cannot produce the tables (500 kb/s offered do not arrive as 799), and no link
is described. The inferred parameters follow from the tables' arithmetic and from ns-2's behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from talkspurt.reproduce import formulas, hops, study_file
from talkspurt.reproduce import ns2 as peer
from talkspurt.reproduce.rows import Values
from talkspurt.reproduce.runs_file import scenarios
from talkspurt.reproduce.sample import show

if TYPE_CHECKING:
    from talkspurt.reproduce.lab import Lab
    from talkspurt.reproduce.ns2 import Script
    from talkspurt.reproduce.sample import Sample, Value

PROTOCOLS = ("UDP", "DCCP", "SCTP", "TFRC")
LARGEST_CONTROL_BYTES = 100
"""Handshakes and acknowledgements are shorter, all data is longer."""


def data(frame: pl.DataFrame, sender: str) -> pl.DataFrame:
    """The data packets of the sender, end to end."""
    packets = hops.end_to_end(frame.filter(pl.col("flow").str.ends_with(sender)))
    long = pl.col("bytes") > LARGEST_CONTROL_BYTES
    return packets.filter(long).select("bytes", "sent_s", "received_s")


def sent(packets: pl.DataFrame) -> pl.DataFrame:
    """The hops to keep: the other side's packets need no names of flows."""
    return data(hops.ours(packets.filter(side="from")), "from")


def throughput_kbps(packets: pl.DataFrame) -> float:
    """From the first packet to the last."""
    arrived = packets.drop_nulls("received_s")
    span = float(arrived["received_s"].max()) - float(packets["sent_s"].min())  # type: ignore[arg-type]
    return 8e-3 * float(arrived["bytes"].sum()) / span


def delay_s(packets: pl.DataFrame) -> float:
    """Mean from end to end."""
    arrived = packets.drop_nulls("received_s")
    return hops.mean(arrived["received_s"] - arrived["sent_s"])


def lost_percent(packets: pl.DataFrame) -> float:
    """Like a trace script: packets in flight at the end were not received either."""
    return 100 * (1 - packets["received_s"].count() / packets.height)


def values(lab: Lab) -> Values:
    """The values of all rows."""
    found = formulas.values("wheeb2017", lab)
    return replace(found, notes=_with_ns2(found.inferred, dict(found.notes)))


def _with_ns2(rows: Mapping[str, Sample], found: dict[str, str]) -> dict[str, str]:
    """Notes, and reasons for differences from ns-2's results with the same parameters."""
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
        f"{traffic}-{protocol.lower()}-inferred": _traced(
            script, protocol, _words(tables[f"{traffic}-udp-inferred"])
        )
        for traffic in ("data", "video", "voip")
        for protocol in PROTOCOLS
    }
    return formulas.of_parts("wheeb2017", "inferred", runs)


def ns2_beyond(script: Script) -> dict[str, float]:
    """Delays of data over other links, on which UDP's is the printed one."""
    found: dict[str, list[float]] = {protocol: [] for protocol in PROTOCOLS}
    links = list(
        product(("800kb", "1Mb", "2Mb", "5Mb", "10Mb"), (1, 2, 5, 10), (1, 2, 5, 10, 15, 20))
    )
    for outer, outer_ms, middle_ms in links:
        words = ("898kb", "1000", outer, f"{outer_ms}ms", "800kb", f"{middle_ms}ms")
        for protocol in PROTOCOLS:
            delay = delay_s(_traced(script, protocol, words))
            if protocol == "UDP" and abs(delay / 0.108356 - 1) > 0.02:
                break
            found[protocol].append(delay)
    spans = {
        f"{protocol} {word}": round(end(delays), 6)
        for protocol, delays in found.items()
        for word, end in (("least", min), ("most", max))
    }
    return {"tried": len(links), "fit": len(found["UDP"]), **spans}
