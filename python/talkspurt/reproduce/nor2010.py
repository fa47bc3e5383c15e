"""Nor, Hassan, Almomani 2010: G.711 over DCCP's CCID 2 on a link of 300 ms.

The study uses ns-2, so its parameters include ns-2's CCID 2; results of RFC 4341's are in the
reasons. Inferred: access links, queues, TCP's window and, for one figure, a third UDP flow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from talkspurt.reproduce import hops
from talkspurt.reproduce import ns2 as peer
from talkspurt.reproduce.lab import part
from talkspurt.reproduce.rows import Values
from talkspurt.reproduce.runs_file import notes

if TYPE_CHECKING:
    from talkspurt.reproduce.figures import Points, Runs, Spec
    from talkspurt.reproduce.lab import Lab, Run, Table
    from talkspurt.reproduce.ns2 import Script
    from talkspurt.reproduce.sample import Value

BOTTLENECK_BPS = 2e6
BIN_S = 0.5
FULL = 25
"""Packets of 64 kb/s in half a second."""
PACKET_BITS = 1280
THRESHOLDS = (20, 50, 100, 200)
BESIDE_FTP = (20, 50, 100, 150, 200)
START_S, END_S = 20.0, 100.0
ARRIVALS = part("flow", "time_s", "received_packets")


def _over_access(packets: pl.DataFrame) -> pl.DataFrame:
    """The hops of the calls' data over their access links."""
    mine = pl.col("link").is_in(["in-1", "in-2", "in-3"])
    return hops.ours(packets).filter(mine & (pl.col("bytes") > 160))


KEEP = {
    "arrivals": {"series": ARRIVALS},
    "traced": {"series": ARRIVALS, "packets": _over_access},
}


@dataclass(frozen=True)
class Arrived:
    """What arrived in each half second of a run of either simulator.

    Attributes:
        calls: packets of each flow but FTP.
        ftp: packets of FTP.
        lost: lost packets of the calls.
    """

    calls: Sequence[Sequence[float]]
    ftp: Sequence[float] = ()
    lost: float = 0.0

    @classmethod
    def of(cls, run: Run) -> Arrived:
        """Of our run."""
        names = [name for name in run.flows["name"] if name.startswith("call")]
        calls, ftp = (
            [list(map(float, run.series(name)["received_packets"])) for name in flows]
            for flows in (names, ["ftp"])
        )
        return cls(calls, ftp[0], sum(run.flow(name, "lost_packets") for name in names))

    @property
    def together(self) -> list[float]:
        """Packets of all flows but FTP."""
        return [sum(bins) for bins in zip(*self.calls, strict=True)]

    @property
    def started(self) -> list[Sequence[float]]:
        """Packets of each call beside FTP, from when the first of them starts."""
        return [bins[round(START_S / BIN_S) :] for bins in self.calls]

    def tcp_bps(self, from_s: float, to_s: float) -> float:
        """Mean of FTP's data in a window."""
        return _mean([1040 * 8 / BIN_S * packets for packets in self.ftp], from_s, to_s)


def settled(arrived: Sequence[float]) -> float:
    """When all later bins but the last are within 10 % of the codec's rate, in seconds."""
    astray = [i for i, packets in enumerate(arrived[:-1]) if abs(packets - FULL) > 0.1 * FULL]
    return BIN_S * (max(astray, default=-1) + 1)


def _mean(bins: Sequence[float], from_s: float, to_s: float) -> float:
    part = bins[round(from_s / BIN_S) : round(to_s / BIN_S)]
    return sum(part) / len(part)


def _rate(bins: Sequence[float], seconds: float = 10.0) -> float:
    """Goodput of the last seconds in kb/s."""
    last = bins[-round(seconds / BIN_S) :]
    return sum(last) * PACKET_BITS / 1e3 / (len(last) * BIN_S)


def _slowest(three: Arrived) -> float:
    """Each flow from its own start, rounded up to a bin."""
    return max(map(settled, three.started))


def _peak(three: Arrived) -> float:
    """Packets of the highest half second of a flow."""
    return max(map(max, three.started))


def beside_udp(load: Arrived) -> dict[str, Value]:
    """TCP before and next to UDP."""
    return {
        "fig3/tcp-starved": load.tcp_bps(25, 100) / 1e3,
        "fig3/tcp-begins": load.tcp_bps(0, 5) / BOTTLENECK_BPS,
    }


def beside_dccp(figure: str, load: Arrived) -> dict[str, Value]:
    """TCP before and next to two DCCP flows."""
    before = load.tcp_bps(15, 20)
    return {
        f"{figure}/tcp-maintains": load.tcp_bps(30, 100) / before,
        f"{figure}/dip": min(load.tcp_bps(s, s + 1) for s in range(20, 30)) / before,
        f"{figure}/regains": load.tcp_bps(60, 100) / before,
    }


def compared(ccid2: Arrived, ccid3: Arrived) -> dict[str, Value]:
    """The two flows of CCID 2 and those of CCID 3."""
    two, three = (_mean(load.together, 30, 100) for load in (ccid2, ccid3))
    return {"fig5/ccid2-above-ccid3": two / three}


def by_ccid2(run: Arrived) -> dict[str, Value]:
    """A call on the long link with a threshold of 20."""
    (call,) = run.calls
    return {"fig6/ccid2": _rate(call), "fig8/20": settled(call)}


def by_ccid3(run: Arrived) -> dict[str, Value]:
    """A call on the long link over CCID 3."""
    return {"fig6/ccid3": _rate(run.calls[0])}


def short(threshold: int, run: Arrived) -> dict[str, Value]:
    """A call on the short link; the first bin contains the handshake."""
    return {f"fig7/{threshold}/settles": settled(run.calls[0][1:])}


def alone(*runs: Arrived) -> dict[str, Value]:
    """Calls on the long link, by threshold."""
    times = {t: settled(run.calls[0]) for t, run in zip(THRESHOLDS, runs, strict=True)}
    return {
        "fig8/slowest": str(max(times, key=lambda t: times[t])),
        "fig8/fastest": "yes" if times[200] == min(times.values()) else "no",
    }


def suits_both(*runs: Arrived) -> dict[str, Value]:
    """Extra time of a threshold of 100 over the best, on the worse of both links."""
    n, place = len(THRESHOLDS), THRESHOLDS.index(100)
    links = [settled(r.calls[0][1:]) for r in runs[:n]], [settled(r.calls[0]) for r in runs[n:]]
    return {"conclusion/100": max(link[place] - min(link) for link in links)}


def lowest_threshold(three: Arrived) -> dict[str, Value]:
    """Three flows with a threshold of 20."""
    to_kbps = PACKET_BITS / 1e3 / BIN_S
    return {
        "fig9/settles": _slowest(three),
        "fig9/far-below": to_kbps * min(min(flow[10:40]) for flow in three.started),
        "fig9/high-start": to_kbps * _peak(three),
    }


def by_threshold(most: Arrived, least: Arrived) -> dict[str, Value]:
    """Three flows with the highest threshold and with the lowest."""
    return {
        "fig9/sharp-start": _peak(least) / _peak(most),
        "fig13/settles-after-start": _slowest(most) / _slowest(least),
    }


def beside_ftp(*runs: Arrived) -> dict[str, Value]:
    """Three flows, by threshold."""
    beside = {t: _slowest(three) for t, three in zip(BESIDE_FTP, runs, strict=True)}
    late = [beside[t] for t in (100, 150, 200)]
    return {
        "fig10/sooner": beside[50] / beside[20],
        "fig11/sooner": beside[100] / beside[50],
        "fig12/alike": beside[150] - beside[100],
        "fig9-13/slowest": str(max(beside, key=lambda t: beside[t])),
        "fig9-13/fastest": "yes" if beside[200] == min(beside.values()) else "no",
        "fig9-13/alike": max(late) - min(late),
        "fig9-13/drops": max(three.lost for three in runs),
    }


LONG, SHORT = ([f"call-{t}-{delay}" for t in THRESHOLDS] for delay in ("300ms", "20ms"))
ROWS: Table = (
    (["load-udp"], beside_udp),
    (["load-ccid2"], partial(beside_dccp, "fig4")),
    (["load-ccid3"], partial(beside_dccp, "fig5")),
    (["load-ccid2", "load-ccid3"], compared),
    (["call-20-300ms"], by_ccid2),
    (["call-ccid3"], by_ccid3),
    *(([f"call-{t}-20ms"], partial(short, t)) for t in THRESHOLDS),
    (LONG, alone),
    ([*SHORT, *LONG], suits_both),
    (["three-20"], lowest_threshold),
    (["three-200", "three-20"], by_threshold),
    ([f"three-{t}" for t in BESIDE_FTP], beside_ftp),
)
"""Which rows are computed from which runs of either simulator."""


def first_hop(packets: pl.DataFrame) -> dict[str, Value]:
    """Time of the calls' data over their access links."""
    delays = {
        row: 1e3 * hops.mean_delay_s(packets.filter(pl.col("enqueued_s").is_between(begin, end)))
        for row, begin, end in (("unstable", 20, 40), ("stable", 40, 100))
    }
    found: dict[str, Value] = {f"fig9/delay-{row}": delay for row, delay in delays.items()}
    return found | {"fig9/delay-higher": delays["unstable"] - delays["stable"]}


def values(lab: Lab) -> Values:
    """The values of all rows."""
    stated, inferred = (lab.rows(ROWS, f"-{p}", Arrived.of) for p in ("stated", "inferred"))
    inferred |= lab.samples(["three-20-inferred"], lambda run: first_hop(run.packets))
    return Values(stated, inferred, notes=notes("nor2010", _facts(lab)), cases=lab.used)


def _facts(lab: Lab) -> dict[str, object]:
    """The numbers in the notes."""

    def call(name: str) -> Sequence[float]:
        return Arrived.of(lab.first(name)).calls[0]

    theirs = peer.beyond("nor2010")
    same, later = (
        [ratio for name, ratio in theirs.items() if name.startswith(word)]
        for word in (AGAIN, LATER)
    )
    own = call("call-ccid3-own-size")
    return {
        "rfc": {t: settled(call(f"call-{t}-rfc")) for t in THRESHOLDS},
        "alone": {t: settled(call(f"call-{t}-300ms-inferred")) for t in THRESHOLDS},
        "ccid3": _rate(call("call-ccid3-rfc")),
        "own": _rate(own),
        "own_settled": settled(own),
        "same": (min(same), max(same), len(same)),
        "later": (min(later), max(later)),
    }


def curves(runs: Runs) -> Callable[[Spec], Points]:
    """Throughput of a flow over time, in kb/s."""

    def points(line: Spec) -> Points:
        series = runs(line["run"])[0].series(line["flow"])
        kbps = [line["bits"] / 1e3 / BIN_S * float(n) for n in series["received_packets"]]
        return series["time_s"].to_list(), kbps

    return points


def _arrived(frame: pl.DataFrame, calls: int, bytes_: int, until_s: float = END_S) -> Arrived:
    """What crossed ns-2's bottleneck: data of this length of the calls, and of FTP."""
    crossed = frame.filter(pl.col("link") == "0>1")

    def bins(flow: int, least: int) -> list[float]:
        mine = pl.col("flow").str.starts_with(f"{flow} ") & (pl.col("bytes") >= least)
        found = [0.0] * round(until_s / BIN_S)
        for time in crossed.filter(mine)["received_s"].drop_nulls():
            if time < until_s:
                found[int(time / BIN_S)] += 1
        return found

    lost = frame.filter(~pl.col("flow").str.starts_with("9 "))["enqueued_s"].null_count()
    return Arrived([bins(n, bytes_) for n in range(calls)], bins(9, 1000), float(lost))


def _beside(script: Script, word: str, count: int, start_s: float) -> Arrived:
    """Flows of 800 kb/s next to FTP in ns-2."""
    words = ("300ms", 1, word, count, "800kb", 1000, 65535, start_s, END_S)
    return _arrived(script.hops(*words), count, 1000)


def ns2(script: Script) -> dict[str, Value]:
    """The rows in ns-2 with the inferred parameters."""
    found: dict[str, Value] = {}
    runs: dict[str, Arrived] = {}
    for word, count in (("UDP", 3), ("CCID2", 2), ("CCID3", 2)):
        runs[f"load-{word.lower()}"] = _beside(script, word, count, START_S)
    calls = [(f"call-{t}-{d}", d, "CCID2", t) for t in THRESHOLDS for d in ("20ms", "300ms")]
    for name, delay, word, threshold in [*calls, ("call-ccid3", "300ms", "CCID3", 0)]:
        frame = script.hops(delay, 0, word, 1, "64kb", 160, threshold, 0.0, 40.0)
        runs[name] = _arrived(frame, 1, 160, 40.0)
    for threshold in BESIDE_FTP:
        frame = script.hops("300ms", 1, "CCID2", 3, "64kb", 160, threshold, 20.0, 100.0)
        runs[f"three-{threshold}"] = _arrived(frame, 3, 160)
        if threshold == THRESHOLDS[0]:
            to_west = pl.col("link").str.ends_with(">0") & (pl.col("link") != "1>0")
            mine = ~pl.col("flow").str.starts_with("9 ") & (pl.col("bytes") > 160)
            found |= first_hop(frame.filter(to_west & mine))
    for names, rows in ROWS:
        found |= rows(*(runs[name] for name in names))
    return found


SPREAD_STARTS = tuple(START_S + 0.06 * n for n in range(1, 10))
"""Later than in the text, by up to a round trip of the long link."""
AGAIN, LATER = "again", "from"


def ns2_beyond(script: Script) -> dict[str, float]:
    """Throughput of CCID 2 over that of CCID 3 in ns-2: ten repetitions, and later starts."""
    same = {f"{AGAIN} {n}": START_S for n in range(10)}
    later = {f"{LATER} {start_s:.2f} s": start_s for start_s in SPREAD_STARTS}
    found = {}
    for name, start_s in (same | later).items():
        two, three = (_beside(script, word, 2, start_s) for word in ("CCID2", "CCID3"))
        ratio = compared(two, three)["fig5/ccid2-above-ccid3"]
        assert isinstance(ratio, float)
        found[name] = round(ratio, 4)
    return found
