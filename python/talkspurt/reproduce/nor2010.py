"""Nor, Hassan, Almomani 2010: G.711 over DCCP's CCID 2 on a link of 300 ms.

The study's simulator is ns-2, so what it states includes ns-2's CCID 2; what RFC 4341's gives
stands in the reasons. Inferred are access links, queues, TCP's window and, for one figure, a third
UDP flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from talkspurt.reproduce import hops
from talkspurt.reproduce.network import NS2_TCP, Table, cbr, dccp, droptail, flow, link
from talkspurt.reproduce.rows import Value, Values

if TYPE_CHECKING:
    from talkspurt.reproduce.lab import Case, Lab
    from talkspurt.reproduce.ns2 import Script

BIN_S = 0.5
FULL = 25
"""Packets of 64 kb/s in half a second."""
PACKET_BITS = 1280
THRESHOLDS = (20, 50, 100, 200)
BESIDE_FTP = (20, 50, 100, 150, 200)
CALL = ("64kbit/s", "160B")
START_S, END_S = 20.0, 100.0

Access = tuple[str, str, int]
INFERRED: Access = ("10Mbit/s", "1ms", 50)
UNBINDING: Access = ("1Gbit/s", "0ms", 1000)
"""Access links that hold nothing up, where the text names none."""


def cases(lab: Lab) -> None:
    """What is run."""
    load = ("800kbit/s", "1000B")
    for profile, access in (("stated", UNBINDING), ("inferred", INFERRED)):
        for kind, count in (("udp", 2 if profile == "stated" else 3), ("ccid2", 2), ("ccid3", 2)):
            lab.ask(f"load-{kind}-{profile}", dumbbell("300ms", access, kind, count, load), profile)
        for threshold in THRESHOLDS:
            for delay in ("20ms", "300ms"):
                alone = dumbbell(delay, access, "ccid2", 1, CALL, threshold, ftp=False)
                lab.ask(f"call-{threshold}-{delay}-{profile}", alone, profile)
        slow = dumbbell("300ms", access, "ccid3", 1, CALL, ftp=False)
        lab.ask(f"call-ccid3-{profile}", slow, profile)
        for threshold in BESIDE_FTP:
            three = dumbbell("300ms", access, "ccid2", 3, CALL, threshold)
            three["record"]["packets"] = threshold == THRESHOLDS[0]
            lab.ask(f"three-{threshold}-{profile}", three, profile)
    # The same with a nominal size that is the packets' own.
    slow["flows"]["call-1"]["transport"] = dccp(3, rate={"nominal_size": CALL[1]})
    lab.ask("call-ccid3-own-size", slow, "companion")
    for threshold in THRESHOLDS:
        modern = {"kind": "dccp", "ccid": 2, "window": {"initial_ssthresh": threshold}}
        lab.ask(f"call-{threshold}-rfc", _modern(modern), "companion")
    lab.ask("call-ccid3-rfc", _modern({"kind": "dccp", "ccid": 3}), "companion")
    lab.ask("call-udp-rfc", _modern({"kind": "udp"}), "companion")


TRANSPORTS: Mapping[str, Table] = {"udp": {"kind": "udp"}, "ccid2": dccp(2), "ccid3": dccp(3)}


def dumbbell(
    delay: str,
    access: Access,
    kind: str,
    count: int,
    load: tuple[str, str],
    threshold: int | None = None,
    *,
    ftp: bool = True,
) -> Table:
    """The study's topology: each flow has its own two hosts, all share the bottleneck."""
    rate, access_delay, queue = access
    transport = dict(TRANSPORTS[kind])
    if threshold is not None:
        transport["window"] = {"initial_ssthresh": threshold}
    links = {"bottleneck": link(("west", "east"), "2Mbit/s", delay, max(queue, 50))}
    flows = {}
    first_s = START_S if ftp else 0.0
    for n in range(1, count + 1):
        flows[f"call-{n}"] = flow(
            (f"sender-{n}", f"receiver-{n}"),
            transport,
            cbr(*load),
            start=f"{first_s + 0.2 * (n - 1):.1f}s",
            send_queue={"packets": 1000},
        )
    if ftp:
        flows["ftp"] = flow(("sender-ftp", "receiver-ftp"), NS2_TCP, {"kind": "bulk"})
    for name in [str(n) for n in range(1, count + 1)] + ["ftp"] * ftp:
        links[f"in-{name}"] = link((f"sender-{name}", "west"), rate, access_delay, queue)
        links[f"out-{name}"] = link(("east", f"receiver-{name}"), rate, access_delay, queue)
    return {
        "duration": f"{END_S if ftp else 40.0:g}s",
        "record": {"interval": "500ms", "gauges": False},
        "links": links,
        "flows": flows,
    }


def _modern(transport: Table) -> Table:
    """A call of today on the long link: RTP, stale frames thrown away, a playout buffer."""
    call = {
        "from": "home",
        "to": "office",
        "transport": transport,
        "source": {"kind": "speech", "codec": "pcmu"},
        "send_queue": {"drop": "stale", "lifetime": "200ms"},
        "playout": {"buffer": "200ms"},
    }
    wire = link(("home", "office"), "2Mbit/s", "300ms", droptail(50))
    links = {"long": wire}
    return {
        "duration": "40s",
        "record": {"interval": "500ms"},
        "links": links,
        "flows": {"call": call},
    }


def settled(arrived: Sequence[float]) -> float:
    """From when on every bin but the last is within 10 % of the codec's rate, in seconds."""
    astray = [i for i, packets in enumerate(arrived[:-1]) if abs(packets - FULL) > 0.1 * FULL]
    return BIN_S * (max(astray, default=-1) + 1)


def values(lab: Lab) -> Values:
    """Every row's values."""
    found = {}
    for profile in ("stated", "inferred"):
        found[profile] = _profile(lab, profile)
    rfc = {t: settled(_bins(lab.cases[f"call-{t}-rfc"], "call")) for t in THRESHOLDS}
    ccid3 = lab.cases["call-ccid3-rfc"].result.series("call")["received_packets"].to_list()
    own = _bins(lab.cases["call-ccid3-own-size"], "call-1")
    alone = {t: settled(_bins(lab.cases[f"call-{t}-300ms-inferred"], "call-1")) for t in THRESHOLDS}
    notes = {
        "fig6/ccid3": (
            "ns-2 reckons with packets of 500 bytes while 160 of each arrive; by RFC 5348 and "
            f"4342, from the sizes that are sent, {_rate(ccid3):.1f} kb/s arrive. An ns-2 that "
            f"reckons with 160 carries {_rate(own):.1f} kb/s, steady from {settled(own):g} s on"
        ),
        "fig8/fastest": "Here: " + ", ".join(f"{t}: {alone[t]:g} s" for t in THRESHOLDS),
        "fig8/slowest": "By RFC 4341 and today's send queue: "
        + ", ".join(f"{t}: {s:g} s" for t, s in rfc.items()),
        "fig9/delay-unstable": "The value is one access link's, not the path's",
        "fig9/delay-stable": "The value is one access link's, not the path's",
    }
    notes["fig8/20"] = f"By RFC 4341: {rfc[20]:g} s"
    used = {row: [f"call-{row.split('/')[1]}-300ms-{p}" for p in found] for row in ("fig8/20",)}
    for row in (*found["stated"], *found["inferred"]):
        used.setdefault(row, _cases_of(row))
    return Values(found["stated"], found["inferred"], notes=notes, cases=used)


def _cases_of(row: str) -> list[str]:
    figure, _, rest = row.partition("/")
    stems = {
        "fig3": ["load-udp"],
        "fig4": ["load-ccid2"],
        "fig5": ["load-ccid3", "load-ccid2"],
        "fig6": ["call-ccid3" if "3" in rest else "call-20-300ms"],
        "fig7": [f"call-{rest.split('/')[0]}-20ms"],
        "fig8": [f"call-{t}-300ms" for t in THRESHOLDS],
        "fig9": ["three-20"],
        "fig9-13": [f"three-{t}" for t in BESIDE_FTP],
        "fig13": ["three-200", "three-20"],
    }
    return [f"{stem}-{profile}" for stem in stems[figure] for profile in ("stated", "inferred")]


def _bins(case: Case, name: str, from_s: float = 0.0) -> list[float]:
    """Packets that arrived in each half second."""
    bins = case.result.series(name)["received_packets"].to_list()
    return [float(packets) for packets in bins[round(from_s / BIN_S) :]]


def _rate(bins: Sequence[float], seconds: float = 10.0) -> float:
    """Goodput of the last seconds in kb/s."""
    last = list(bins)[-round(seconds / BIN_S) :]
    return sum(last) * PACKET_BITS / 1e3 / (len(last) * BIN_S)


def _profile(lab: Lab, profile: str) -> dict[str, Value]:
    def tcp(kind: str) -> list[float]:
        series = lab.cases[f"load-{kind}-{profile}"].result.series("ftp")
        return [1040 * 8 / BIN_S * float(packets) for packets in series["received_packets"]]

    def load(kind: str) -> list[float]:
        case = lab.cases[f"load-{kind}-{profile}"]
        flows = [f for f in case.result.flows["name"] if f.startswith("call")]
        return [sum(bins) for bins in zip(*(_bins(case, f) for f in flows), strict=True)]

    calls = {
        (threshold, delay): _bins(lab.cases[f"call-{threshold}-{delay}-{profile}"], "call-1")
        for threshold in THRESHOLDS
        for delay in ("20ms", "300ms")
    }
    three = {}
    drops = 0.0
    for threshold in BESIDE_FTP:
        case = lab.cases[f"three-{threshold}-{profile}"]
        names = [f"call-{n}" for n in (1, 2, 3)]
        three[threshold] = [_bins(case, name, START_S) for name in names]
        drops += sum(case.flow(name, "lost_packets") for name in names)
    frame = hops.ours(lab.cases[f"three-20-{profile}"])
    access = frame.filter(pl.col("link").str.starts_with("in-") & (pl.col("bytes") > 160))
    access = access.filter(pl.col("link") != "in-ftp")
    return rows(
        {kind: tcp(kind) for kind in TRANSPORTS},
        {kind: load(kind) for kind in TRANSPORTS},
        calls,
        _bins(lab.cases[f"call-ccid3-{profile}"], "call-1"),
        three,
        drops,
        access if profile == "inferred" else None,
    )


def rows(
    tcp: Mapping[str, Sequence[float]],
    load: Mapping[str, Sequence[float]],
    calls: Mapping[tuple[int, str], Sequence[float]],
    ccid3: Sequence[float],
    three: Mapping[int, Sequence[Sequence[float]]],
    drops: float,
    access: pl.DataFrame | None,
) -> dict[str, Value]:
    """The rows, from what arrived in each half second."""
    alone = {t: settled(calls[t, "300ms"]) for t in THRESHOLDS}
    # Each flow from its own start, to the bin it falls into.
    beside = {t: max(settled(flow) for flow in three[t]) for t in BESIDE_FTP}
    late = [beside[t] for t in (100, 150, 200)]
    bottom = three[20]
    to_kbps = PACKET_BITS / 1e3 / BIN_S
    found: dict[str, Value] = {
        "fig3/tcp-starved": _mean(tcp["udp"], 25, 100) / 1e3,
        "fig3/tcp-begins": _mean(tcp["udp"], 0, 5) / _mean(tcp["udp"], 15, 20),
        "fig4/tcp-maintains": _mean(tcp["ccid2"], 30, 100) / _mean(tcp["ccid2"], 15, 20),
        "fig5/tcp-maintains": _mean(tcp["ccid3"], 30, 100) / _mean(tcp["ccid3"], 15, 20),
        "fig5/ccid2-above-ccid3": _mean(load["ccid2"], 30, 100) / _mean(load["ccid3"], 30, 100),
        "fig6/ccid2": _rate(calls[20, "300ms"]),
        "fig6/ccid3": _rate(ccid3),
        "fig8/slowest": str(max(alone, key=lambda t: alone[t])),
        "fig8/fastest": "yes" if alone[200] == min(alone.values()) else "no",
        "fig8/20": alone[20],
        "fig9/settles": beside[20],
        "fig9/far-below": to_kbps * min(min(flow[10:40]) for flow in bottom),
        "fig9/sharp-start": to_kbps * max(max(flow) for flow in bottom),
        "fig9-13/drops": drops,
        "fig9-13/slowest": str(max(beside, key=lambda t: beside[t])),
        "fig9-13/fastest": "yes" if beside[200] == min(beside.values()) else "no",
        "fig9-13/alike": max(late) - min(late),
        "fig13/settles-after-start": beside[200] / beside[20],
    }
    for threshold in THRESHOLDS:
        # The first bin is that of the handshake.
        found[f"fig7/{threshold}/settles"] = settled(calls[threshold, "20ms"][1:])
    if access is not None:
        for row, begin, end in (("unstable", 20, 40), ("stable", 40, 100)):
            part = access.filter(pl.col("enqueued_s").is_between(begin, end))
            found[f"fig9/delay-{row}"] = 1e3 * hops.mean_delay_s(part)
    return found


def _mean(bins: Sequence[float], from_s: float, to_s: float) -> float:
    part = list(bins)[round(from_s / BIN_S) : round(to_s / BIN_S)]
    return sum(part) / len(part)


def ns2(script: Script) -> dict[str, Value]:
    """The rows as ns-2 gives them with the inferred parameters."""

    def arrived(frame: pl.DataFrame, flow: int, size: int, weight: float) -> list[float]:
        bins = [0.0] * round(END_S / BIN_S)
        mine = frame.filter(
            (pl.col("link") == "0>1")
            & pl.col("flow").str.starts_with(f"{flow} ")
            & (pl.col("bytes") >= size)
        )
        for time in mine["received_s"].drop_nulls():
            if time < END_S:
                bins[int(time / BIN_S)] += weight
        return bins

    tcp, load = {}, {}
    for kind, word, count in (("udp", "UDP", 3), ("ccid2", "CCID2", 2), ("ccid3", "CCID3", 2)):
        with script.run("300ms", 1, word, count, "800kb", 1000, 65535, 20.0, 100.0) as trace:
            frame = hops.of_ns2(trace)
        tcp[kind] = arrived(frame, 9, 1000, 1040 * 8 / BIN_S)
        each = [arrived(frame, n, 1000, 1.0) for n in range(count)]
        load[kind] = [sum(bins) for bins in zip(*each, strict=True)]
    calls = {}
    for threshold in THRESHOLDS:
        for delay in ("20ms", "300ms"):
            with script.run(delay, 0, "CCID2", 1, "64kb", 160, threshold, 0.0, 40.0) as trace:
                calls[threshold, delay] = arrived(hops.of_ns2(trace), 0, 160, 1.0)[:80]
    with script.run("300ms", 0, "CCID3", 1, "64kb", 160, 0, 0.0, 40.0) as trace:
        ccid3 = arrived(hops.of_ns2(trace), 0, 160, 1.0)[:80]
    three: dict[int, list[list[float]]] = {}
    drops, access = 0.0, None
    for threshold in BESIDE_FTP:
        with script.run("300ms", 1, "CCID2", 3, "64kb", 160, threshold, 20.0, 100.0) as trace:
            frame = hops.of_ns2(trace)
        begin = round(START_S / BIN_S)
        three[threshold] = [arrived(frame, n, 160, 1.0)[begin:] for n in range(3)]
        mine = frame.filter(~pl.col("flow").str.starts_with("9 "))
        drops += mine.filter(pl.col("enqueued_s").is_null()).height
        if threshold == THRESHOLDS[0]:
            to_west = mine["link"].str.ends_with(">0") & (mine["link"] != "1>0")
            access = mine.filter(to_west).filter(pl.col("bytes") > 160)
    return rows(tcp, load, calls, ccid3, three, drops, access)
