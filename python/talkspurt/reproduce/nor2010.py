"""Nor, Hassan, Almomani 2010: G.711 over DCCP's CCID 2 on a link of 300 ms.

The study uses ns-2, so its parameters include ns-2's CCID 2; results of RFC 4341's are in the
reasons. Inferred: access links, queues, TCP's window and, for one figure, a third UDP flow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from talkspurt.reproduce import hops
from talkspurt.reproduce import ns2 as peer
from talkspurt.reproduce.lab import part
from talkspurt.reproduce.network import NS2_TCP, Table, cbr, dccp, droptail, flow, link
from talkspurt.reproduce.rows import Values
from talkspurt.reproduce.sample import Sample

if TYPE_CHECKING:
    from talkspurt.reproduce.lab import Lab, Rows, Run
    from talkspurt.reproduce.ns2 import Script
    from talkspurt.reproduce.sample import Value

BOTTLENECK_BPS = 2e6
BIN_S = 0.5
FULL = 25
"""Packets of 64 kb/s in half a second."""
PACKET_BITS = 1280
THRESHOLDS = (20, 50, 100, 200)
BESIDE_FTP = (20, 50, 100, 150, 200)
CALL = ("64kbit/s", "160B")
LOAD = ("800kbit/s", "1000B")
PACKET_TIME = {CALL: "20ms", LOAD: "10ms"}
FTP_SPREAD = "600ms"
"""A round trip of the long link."""
START_S, END_S = 20.0, 100.0

Access = tuple[str, str, int]
INFERRED: Access = ("10Mbit/s", "1ms", 50)
UNBINDING: Access = ("1Gbit/s", "0ms", 1000)
"""Non-limiting access links, where the text specifies none."""


ARRIVALS = part("flow", "time_s", "received_packets")


def cases(lab: Lab) -> None:
    """The scenarios."""
    for profile, access in (("stated", UNBINDING), ("inferred", INFERRED)):
        for kind, count in (("udp", 2 if profile == "stated" else 3), ("ccid2", 2), ("ccid3", 2)):
            scenario = dumbbell("300ms", access, kind, count, LOAD)
            lab.ask(f"load-{kind}-{profile}", scenario, profile, series=ARRIVALS)
        for threshold in THRESHOLDS:
            for delay in ("20ms", "300ms"):
                alone = dumbbell(delay, access, "ccid2", 1, CALL, threshold, ftp=False)
                lab.ask(f"call-{threshold}-{delay}-{profile}", alone, profile, series=ARRIVALS)
        slow = dumbbell("300ms", access, "ccid3", 1, CALL, ftp=False)
        lab.ask(f"call-ccid3-{profile}", slow, profile, series=ARRIVALS)
        for threshold in BESIDE_FTP:
            three = dumbbell("300ms", access, "ccid2", 3, CALL, threshold)
            traced = (threshold, profile) == (THRESHOLDS[0], "inferred")
            three["record"]["packets"] = traced
            kept = {"packets": _over_access} if traced else {}
            lab.ask(f"three-{threshold}-{profile}", three, profile, series=ARRIVALS, **kept)
    # The same with a nominal size equal to the packet size.
    slow["flows"]["call-1"]["transport"] = dccp(3, rate={"nominal_size": CALL[1]})
    lab.ask("call-ccid3-own-size", slow, "companion", series=ARRIVALS)
    for threshold in THRESHOLDS:
        modern = {"kind": "dccp", "ccid": 2, "window": {"initial_ssthresh": threshold}}
        lab.ask(f"call-{threshold}-rfc", _modern(modern), "companion", series=ARRIVALS)
    ccid3 = _modern({"kind": "dccp", "ccid": 3})
    lab.ask("call-ccid3-rfc", ccid3, "companion", series=ARRIVALS)
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
    """The study's topology: each flow has its own two hosts, all share the bottleneck.

    Results with FTP depend strongly on which packets meet: there, FTP starts within the first round
    trip of the long link and every other flow within one packet interval, depending on the seed.
    """
    rate, access_delay, queue = access
    transport = dict(TRANSPORTS[kind])
    if threshold is not None:
        transport["window"] = {"initial_ssthresh": threshold}
    bottleneck = f"{BOTTLENECK_BPS:.0f}bit/s"
    links = {"bottleneck": link(("west", "east"), bottleneck, delay, max(queue, 50))}
    flows = {}
    first_s = START_S if ftp else 0.0
    for n in range(1, count + 1):
        flows[f"call-{n}"] = flow(
            (f"sender-{n}", f"receiver-{n}"),
            transport,
            cbr(*load),
            start=f"{first_s + 0.2 * (n - 1):.1f}s",
            send_queue={"packets": 1000},
            start_spread=PACKET_TIME[load] if ftp else "0s",
        )
    if ftp:
        ends, bulk = ("sender-ftp", "receiver-ftp"), {"kind": "bulk"}
        flows["ftp"] = flow(ends, NS2_TCP, bulk, start_spread=FTP_SPREAD)
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
    """A present-day call on the long link: RTP, dropping of stale frames, a playout buffer."""
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
    """When all later bins but the last are within 10 % of the codec's rate, in seconds."""
    astray = [i for i, packets in enumerate(arrived[:-1]) if abs(packets - FULL) > 0.1 * FULL]
    return BIN_S * (max(astray, default=-1) + 1)


def values(lab: Lab) -> Values:
    """The values of all rows."""
    stated, inferred = _profile(lab, "stated"), _profile(lab, "inferred")
    traced = f"three-{THRESHOLDS[0]}-inferred"
    inferred |= lab.samples([traced], lambda run: first_hop(run.packets))
    return Values(stated, inferred, notes=_notes(lab), cases=lab.used)


def _notes(lab: Lab) -> dict[str, str]:
    """Further results of these runs, and the effect of the RFCs' rules."""
    rfc = {t: settled(_bins(lab.first(f"call-{t}-rfc"), "call")) for t in THRESHOLDS}
    ccid3 = _bins(lab.first("call-ccid3-rfc"), "call")
    own = _bins(lab.first("call-ccid3-own-size"), "call-1")
    alone = {t: settled(_bins(lab.first(f"call-{t}-300ms-inferred"), "call-1")) for t in THRESHOLDS}
    theirs = peer.beyond("nor2010")
    same, later = (
        Sample(tuple(ratio for name, ratio in theirs.items() if name.startswith(word)))
        for word in (AGAIN, LATER)
    )
    one_link = (
        "That the text means one access link's delay is a guess, and the inferred value no proof "
        "of it: the link's 1 ms and 10 Mb/s were taken because they give what is printed of 40 to "
        "100 s"
    )
    return {
        "fig5/ccid2-above-ccid3": (
            "ns-2's DCCP does not repeat itself: the same script gives "
            f"{min(same.numbers):.3g} to {max(same.numbers):.3g} in {same.replications} runs, and "
            f"{min(later.numbers):.3g} to {max(later.numbers):.3g} where the flows start up to a "
            "round trip later"
        ),
        "fig6/ccid3": (
            "ns-2 reckons with packets of 500 bytes while 160 of each arrive; by RFC 5348 and "
            f"4342, from the sizes that are sent, {_rate(ccid3):.1f} kb/s arrive. An ns-2 that "
            f"reckons with 160 carries {_rate(own):.1f} kb/s, steady from {settled(own):g} s on"
        ),
        "fig8/20": f"By RFC 4341: {rfc[20]:g} s",
        "fig8/fastest": "Here: " + ", ".join(f"{t}: {alone[t]:g} s" for t in THRESHOLDS),
        "fig8/slowest": "By RFC 4341 and today's send queue: "
        + ", ".join(f"{t}: {s:g} s" for t, s in rfc.items()),
        "fig9/delay-unstable": one_link,
        "fig9/delay-stable": one_link,
    }


def _bins(run: Run, name: str, from_s: float = 0.0) -> list[float]:
    """Packets received in each half second."""
    bins = run.series(name)["received_packets"].to_list()
    return [float(packets) for packets in bins[round(from_s / BIN_S) :]]


def _rate(bins: Sequence[float], seconds: float = 10.0) -> float:
    """Goodput of the last seconds in kb/s."""
    last = list(bins)[-round(seconds / BIN_S) :]
    return sum(last) * PACKET_BITS / 1e3 / (len(last) * BIN_S)


def _tcp(run: Run) -> list[float]:
    """FTP data received in each half second, bits per second."""
    return [1040 * 8 / BIN_S * packets for packets in _bins(run, "ftp")]


def _loads(run: Run) -> list[float]:
    """Packets of both other flows received in each half second."""
    flows = [name for name in run.flows["name"] if name.startswith("call")]
    return [sum(bins) for bins in zip(*(_bins(run, f) for f in flows), strict=True)]


def _call(run: Run) -> list[float]:
    return _bins(run, "call-1")


def _profile(lab: Lab, profile: str) -> dict[str, Sample]:
    def made(stems: Iterable[str], rows: Rows) -> None:
        found.update(lab.samples([f"{stem}-{profile}" for stem in stems], rows))

    found: dict[str, Sample] = {}
    made(["load-udp"], lambda udp: beside_udp(_tcp(udp)))
    made(["load-ccid2"], lambda run: beside_dccp("fig4", _tcp(run)))
    made(["load-ccid3"], lambda run: beside_dccp("fig5", _tcp(run)))
    made(["load-ccid2", "load-ccid3"], lambda two, three: compared(_loads(two), _loads(three)))
    made([f"call-{THRESHOLDS[0]}-300ms"], lambda run: {"fig6/ccid2": _rate(_call(run))})
    made(["call-ccid3"], lambda run: {"fig6/ccid3": _rate(_call(run))})
    for threshold in THRESHOLDS:
        made([f"call-{threshold}-20ms"], partial(_short, threshold))
    made([f"call-{THRESHOLDS[0]}-300ms"], lambda run: {"fig8/20": settled(_call(run))})
    long = [f"call-{t}-300ms" for t in THRESHOLDS]
    made(long, lambda *runs: alone(dict(zip(THRESHOLDS, map(_call, runs), strict=True))))
    both = [f"call-{t}-{delay}" for delay in ("20ms", "300ms") for t in THRESHOLDS]
    made(both, lambda *runs: suits_both([_call(run) for run in runs]))
    made([f"three-{THRESHOLDS[0]}"], lambda run: lowest_threshold(_three(run)))
    ends = [f"three-{t}" for t in (BESIDE_FTP[-1], BESIDE_FTP[0])]
    made(ends, lambda most, least: by_threshold(_three(most), _three(least)))
    every = [f"three-{t}" for t in BESIDE_FTP]
    made(every, lambda *runs: beside_ftp(dict(zip(BESIDE_FTP, map(_three, runs), strict=True))))
    made(every, lambda *runs: {"fig9-13/drops": max(map(_lost, runs))})
    return found


def _short(threshold: int, run: Run) -> dict[str, Value]:
    # The first bin contains the handshake.
    return {f"fig7/{threshold}/settles": settled(_call(run)[1:])}


def _three(run: Run) -> list[list[float]]:
    return [_bins(run, f"call-{n}", START_S) for n in (1, 2, 3)]


def _lost(run: Run) -> float:
    return sum(run.flow(f"call-{n}", "lost_packets") for n in (1, 2, 3))


def _over_access(packets: pl.DataFrame) -> pl.DataFrame:
    """The hops of the calls' data over their access links."""
    mine = pl.col("link").is_in(["in-1", "in-2", "in-3"])
    return hops.ours(packets).filter(mine & (pl.col("bytes") > 160))


# Rows, from the data received in each half second: ours, and ns-2's.


def beside_udp(tcp: Sequence[float]) -> dict[str, Value]:
    """TCP before and next to UDP."""
    return {
        "fig3/tcp-starved": _mean(tcp, 25, 100) / 1e3,
        "fig3/tcp-begins": _mean(tcp, 0, 5) / BOTTLENECK_BPS,
    }


def beside_dccp(figure: str, tcp: Sequence[float]) -> dict[str, Value]:
    """TCP before and next to two DCCP flows."""
    before = _mean(tcp, 15, 20)
    seconds = [_mean(tcp, second, second + 1) for second in range(20, 30)]
    return {
        f"{figure}/tcp-maintains": _mean(tcp, 30, 100) / before,
        f"{figure}/dip": min(seconds) / before,
        f"{figure}/regains": _mean(tcp, 60, 100) / before,
    }


def compared(ccid2: Sequence[float], ccid3: Sequence[float]) -> dict[str, Value]:
    """The two flows of CCID 2 and those of CCID 3."""
    return {"fig5/ccid2-above-ccid3": _mean(ccid2, 30, 100) / _mean(ccid3, 30, 100)}


def alone(calls: Mapping[int, Sequence[float]]) -> dict[str, Value]:
    """Calls on the long link, by threshold."""
    times = {threshold: settled(bins) for threshold, bins in calls.items()}
    return {
        "fig8/slowest": str(max(times, key=lambda t: times[t])),
        "fig8/fastest": "yes" if times[200] == min(times.values()) else "no",
    }


def suits_both(calls: Sequence[Sequence[float]]) -> dict[str, Value]:
    """Extra time of a threshold of 100 over the best, on the worse of both links."""
    times = [settled(bins[1:] if n < len(THRESHOLDS) else bins) for n, bins in enumerate(calls)]
    links = (times[: len(THRESHOLDS)], times[len(THRESHOLDS) :])
    place = THRESHOLDS.index(100)
    return {"conclusion/100": max(link[place] - min(link) for link in links)}


def _slowest(three: Sequence[Sequence[float]]) -> float:
    """Each flow from its own start, rounded up to a bin."""
    return max(settled(flow) for flow in three)


def _peak(three: Sequence[Sequence[float]]) -> float:
    """Packets of the highest half second of a flow."""
    return max(max(flow) for flow in three)


def lowest_threshold(three: Sequence[Sequence[float]]) -> dict[str, Value]:
    """Three flows with a threshold of 20."""
    to_kbps = PACKET_BITS / 1e3 / BIN_S
    return {
        "fig9/settles": _slowest(three),
        "fig9/far-below": to_kbps * min(min(flow[10:40]) for flow in three),
        "fig9/high-start": to_kbps * _peak(three),
    }


def by_threshold(
    most: Sequence[Sequence[float]], least: Sequence[Sequence[float]]
) -> dict[str, Value]:
    """Three flows with the highest threshold and with the lowest."""
    return {
        "fig9/sharp-start": _peak(least) / _peak(most),
        "fig13/settles-after-start": _slowest(most) / _slowest(least),
    }


def beside_ftp(three: Mapping[int, Sequence[Sequence[float]]]) -> dict[str, Value]:
    """Three flows, by threshold."""
    beside = {t: _slowest(flows) for t, flows in three.items()}
    late = [beside[t] for t in (100, 150, 200)]
    return {
        "fig10/sooner": beside[50] / beside[20],
        "fig11/sooner": beside[100] / beside[50],
        "fig12/alike": beside[150] - beside[100],
        "fig9-13/slowest": str(max(beside, key=lambda t: beside[t])),
        "fig9-13/fastest": "yes" if beside[200] == min(beside.values()) else "no",
        "fig9-13/alike": max(late) - min(late),
    }


def first_hop(packets: pl.DataFrame) -> dict[str, Value]:
    """Time of the calls' data over their access links."""
    delays = {
        row: 1e3 * hops.mean_delay_s(packets.filter(pl.col("enqueued_s").is_between(begin, end)))
        for row, begin, end in (("unstable", 20, 40), ("stable", 40, 100))
    }
    found: dict[str, Value] = {f"fig9/delay-{row}": delay for row, delay in delays.items()}
    return found | {"fig9/delay-higher": delays["unstable"] - delays["stable"]}


def _mean(bins: Sequence[float], from_s: float, to_s: float) -> float:
    part = list(bins)[round(from_s / BIN_S) : round(to_s / BIN_S)]
    return sum(part) / len(part)


def _arrived(frame: pl.DataFrame, flow: int, size: int, weight: float) -> list[float]:
    """Packets of this length that crossed ns-2's bottleneck in each half second."""
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


def _beside(script: Script, word: str, count: int, start_s: float) -> pl.DataFrame:
    """Hops of 800 kb/s flows next to FTP in ns-2."""
    words = ("300ms", 1, word, count, "800kb", 1000, 65535, start_s, END_S)
    with script.run(*words) as trace:
        return hops.of_ns2(trace)


def _both(frame: pl.DataFrame, count: int) -> list[float]:
    each = [_arrived(frame, n, 1000, 1.0) for n in range(count)]
    return [sum(bins) for bins in zip(*each, strict=True)]


def ns2(script: Script) -> dict[str, Value]:
    """The rows in ns-2 with the inferred parameters."""
    found: dict[str, Value] = {}
    load: dict[str, list[float]] = {}
    for kind, word, count in (("udp", "UDP", 3), ("ccid2", "CCID2", 2), ("ccid3", "CCID3", 2)):
        frame = _beside(script, word, count, START_S)
        tcp = _arrived(frame, 9, 1000, 1040 * 8 / BIN_S)
        figure = {"ccid2": "fig4", "ccid3": "fig5"}.get(kind)
        found |= beside_dccp(figure, tcp) if figure else beside_udp(tcp)
        load[kind] = _both(frame, count)
    found |= compared(load["ccid2"], load["ccid3"])
    calls = {}
    for threshold in THRESHOLDS:
        for delay in ("20ms", "300ms"):
            with script.run(delay, 0, "CCID2", 1, "64kb", 160, threshold, 0.0, 40.0) as trace:
                calls[threshold, delay] = _arrived(hops.of_ns2(trace), 0, 160, 1.0)[:80]
        found[f"fig7/{threshold}/settles"] = settled(calls[threshold, "20ms"][1:])
    found["fig6/ccid2"] = _rate(calls[20, "300ms"])
    found["fig8/20"] = settled(calls[20, "300ms"])
    found |= alone({t: calls[t, "300ms"] for t in THRESHOLDS})
    found |= suits_both([calls[t, delay] for delay in ("20ms", "300ms") for t in THRESHOLDS])
    with script.run("300ms", 0, "CCID3", 1, "64kb", 160, 0, 0.0, 40.0) as trace:
        found["fig6/ccid3"] = _rate(_arrived(hops.of_ns2(trace), 0, 160, 1.0)[:80])
    three: dict[int, list[list[float]]] = {}
    drops: list[float] = []
    for threshold in BESIDE_FTP:
        with script.run("300ms", 1, "CCID2", 3, "64kb", 160, threshold, 20.0, 100.0) as trace:
            frame = hops.of_ns2(trace)
        begin = round(START_S / BIN_S)
        three[threshold] = [_arrived(frame, n, 160, 1.0)[begin:] for n in range(3)]
        mine = frame.filter(~pl.col("flow").str.starts_with("9 "))
        drops.append(mine.filter(pl.col("enqueued_s").is_null()).height)
        if threshold == THRESHOLDS[0]:
            to_west = mine["link"].str.ends_with(">0") & (mine["link"] != "1>0")
            found |= first_hop(mine.filter(to_west).filter(pl.col("bytes") > 160))
    found |= lowest_threshold(three[20]) | by_threshold(three[200], three[20]) | beside_ftp(three)
    return found | {"fig9-13/drops": float(max(drops))}


SPREAD_STARTS = tuple(START_S + 0.06 * n for n in range(1, 10))
"""Later than in the text, by up to a round trip of the long link."""
AGAIN, LATER = "again", "from"


def ns2_beyond(script: Script) -> dict[str, float]:
    """Throughput of CCID 2 over that of CCID 3 in ns-2: ten repetitions, and later starts."""
    same = {f"{AGAIN} {n}": START_S for n in range(10)}
    later = {f"{LATER} {start_s:.2f} s": start_s for start_s in SPREAD_STARTS}
    found = {}
    for name, start_s in (same | later).items():
        two, three = (_both(_beside(script, word, 2, start_s), 2) for word in ("CCID2", "CCID3"))
        ratio = compared(two, three)["fig5/ccid2-above-ccid3"]
        assert isinstance(ratio, float)
        found[name] = round(ratio, 4)
    return found
