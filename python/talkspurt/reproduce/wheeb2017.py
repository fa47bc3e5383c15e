"""Wheeb 2017: UDP, DCCP, SCTP and TFRC for data, video and VoIP over two routers.

The stated parameters cannot produce the tables (500 kb/s offered do not arrive as 799), and no link
is described. The inferred parameters follow from the tables' arithmetic and from ns-2's behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import polars as pl

from talkspurt.reproduce import hops, study_file
from talkspurt.reproduce.hops import InNs2
from talkspurt.reproduce.sample import Sample, show

PROTOCOLS = ("UDP", "DCCP", "SCTP", "TFRC")
MAX_CONTROL_BYTES = 100
"""Handshakes and acknowledgements are shorter, all data is longer."""


def data(frame: pl.DataFrame, sender: str) -> pl.DataFrame:
    """The data packets of the sender, end to end."""
    packets = hops.end_to_end(frame.filter(pl.col("flow").str.ends_with(sender)))
    long = pl.col("bytes") > MAX_CONTROL_BYTES
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


def notes(found: Mapping[str, Mapping[str, Sample]], written: dict[str, str]) -> dict[str, str]:
    """Also that ns-2 gives the same, of other rows whose values differ from the printed ones."""
    theirs = study_file.recorded("wheeb2017", "ns2")["values"]
    for spec in study_file.load("wheeb2017").rows:
        ours, other = found["inferred"][spec.id], theirs[spec.id]
        if spec.id in written or True in spec.band.holds(spec.paper, ours):
            continue
        numbers = isinstance(ours.value, float) and isinstance(other, float)
        if abs(ours.value / other - 1) <= 0.05 if numbers else ours.value == other:
            written[spec.id] = f"ns-2 gives {show(other)} with the same parameters"
    return written


def ns2_beyond(ns2: InNs2) -> dict[str, float]:
    """Delays of data over other links, on which UDP's is the printed one."""
    protocols = ("UDP", "DCCP", "SCTP", "TFRC")
    found: dict[str, list[float]] = {protocol: [] for protocol in protocols}
    links = list(
        product(("800kb", "1Mb", "2Mb", "5Mb", "10Mb"), (1, 2, 5, 10), (1, 2, 5, 10, 15, 20))
    )
    for outer, outer_ms, middle_ms in links:
        words = ("898kb", "1000", outer, f"{outer_ms}ms", "800kb", f"{middle_ms}ms")
        for protocol in protocols:
            delay = delay_s(data(ns2(protocol, *words), "0.0>3.0"))
            if protocol == "UDP" and abs(delay / 0.108356 - 1) > 0.02:
                break
            found[protocol].append(delay)
    spans = {
        f"{protocol} {word}": round(end(delays), 6)
        for protocol, delays in found.items()
        for word, end in (("least", min), ("most", max))
    }
    return {"tried": len(links), "fit": len(found["UDP"]), **spans}
