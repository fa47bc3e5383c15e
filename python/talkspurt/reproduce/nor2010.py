"""Nor, Hassan, Almomani 2010: G.711 over DCCP's CCID 2 on a link of 300 ms.

The study uses ns-2, so its parameters include ns-2's CCID 2; results of RFC 4341's are in the
reasons. Inferred: access links, queues, TCP's window and, for one figure, a third UDP flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from talkspurt.reproduce import hops
from talkspurt.reproduce.figures import Points, Runs, Spec
from talkspurt.reproduce.hops import InNs2
from talkspurt.reproduce.lab import Lab, Run

BOTTLENECK_BPS = 2e6
BIN_S = 0.5
FULL = 25
"""Packets of 64 kb/s in half a second."""
PACKET_BITS = 1280
THRESHOLDS = (20, 50, 100, 200)
START_S, END_S = 20.0, 100.0


def over_access(packets: pl.DataFrame) -> pl.DataFrame:
    """The hops of the calls' data over their access links."""
    mine = pl.col("link").is_in(["in-1", "in-2", "in-3"])
    return hops.ours(packets).filter(mine & (pl.col("bytes") > 160))


@dataclass(frozen=True)
class Arrived:
    """What arrived in each half second of a run of either simulator.

    Attributes:
        calls: packets of each flow but FTP.
        lost: lost packets of the calls.
        access: hops of the calls' data over their access links, if they were kept.
    """

    calls: Sequence[Sequence[float]]
    ftp: Sequence[float] = ()
    lost: float = 0.0
    access: pl.DataFrame | None = None

    @classmethod
    def of(cls, run: Run) -> Arrived:
        """Of our run."""
        names = [name for name in run.flows["name"] if name.startswith("call")]
        calls, ftp = (
            [list(map(float, run.series(name)["received_packets"])) for name in flows]
            for flows in (names, ["ftp"])
        )
        lost = sum(run.flow(name, "lost_packets") for name in names)
        return cls(calls, ftp[0], lost, run.tables.get("packets"))

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
        return mean([1040 * 8 / BIN_S * packets for packets in self.ftp], from_s, to_s)


def settled(arrived: Sequence[float]) -> float:
    """When all later bins but the last are within 10 % of the codec's rate, in seconds."""
    astray = [i for i, packets in enumerate(arrived[:-1]) if abs(packets - FULL) > 0.1 * FULL]
    return BIN_S * (max(astray, default=-1) + 1)


def mean(bins: Sequence[float], from_s: float, to_s: float) -> float:
    """The mean of the bins in a window."""
    part = bins[round(from_s / BIN_S) : round(to_s / BIN_S)]
    return sum(part) / len(part)


def rate(bins: Sequence[float], seconds: float = 10.0) -> float:
    """Goodput of the last seconds in kb/s."""
    last = bins[-round(seconds / BIN_S) :]
    return sum(last) * PACKET_BITS / 1e3 / (len(last) * BIN_S)


def slowest(three: Arrived) -> float:
    """Each flow from its own start, rounded up to a bin."""
    return max(map(settled, three.started))


def peak(three: Arrived) -> float:
    """Packets of the highest half second of a flow."""
    return max(map(max, three.started))


def first_hop_ms(run: Arrived, from_s: float, to_s: float) -> float:
    """Mean time of the calls' data over their access links."""
    assert run.access is not None
    return 1e3 * hops.mean_delay_s(run.access.filter(pl.col("enqueued_s").is_between(from_s, to_s)))


def call(lab: Lab, name: str) -> Sequence[float]:
    """The first call of a scenario's first run."""
    return Arrived.of(lab.first(name)).calls[0]


def ccid2_by_ccid3(two: Arrived, three: Arrived) -> float:
    """Mean throughput of two flows of CCID 2 over that of two of CCID 3."""
    return mean(two.together, 30, 100) / mean(three.together, 30, 100)


def curve(runs: Runs, line: Spec) -> Points:
    """Throughput of a flow over time, in kb/s."""
    series = runs(line["run"])[0].series(line["flow"])
    kbps = [line["bits"] / 1e3 / BIN_S * float(n) for n in series["received_packets"]]
    return series["time_s"].to_list(), kbps


def arrived(frame: pl.DataFrame, calls: int, bytes_: int, until_s: float = END_S) -> Arrived:
    """What crossed ns-2's bottleneck: data of this length of the calls, and of FTP."""
    crossed = frame.filter(pl.col("link") == "0>1")

    def bins(flow: int, least: int) -> list[float]:
        mine = pl.col("flow").str.starts_with(f"{flow} ") & (pl.col("bytes") >= least)
        found = [0.0] * round(until_s / BIN_S)
        for time in crossed.filter(mine)["received_s"].drop_nulls():
            if time < until_s:
                found[int(time / BIN_S)] += 1
        return found

    mine = frame.filter(~pl.col("flow").str.starts_with("9 "))
    to_west = pl.col("link").str.ends_with(">0") & (pl.col("link") != "1>0")
    access = mine.filter(to_west & (pl.col("bytes") > 160))
    lost = float(mine["enqueued_s"].null_count())
    return Arrived([bins(n, bytes_) for n in range(calls)], bins(9, 1000), lost, access)


SPREAD_STARTS = tuple(START_S + 0.06 * n for n in range(1, 10))
"""Later than in the text, by up to a round trip of the long link."""


def ns2_beyond(ns2: InNs2) -> dict[str, float]:
    """Throughput of CCID 2 over that of CCID 3 in ns-2: ten repetitions, and later starts."""
    same = {f"again {n}": START_S for n in range(10)}
    later = {f"from {start_s:.2f} s": start_s for start_s in SPREAD_STARTS}
    found = {}
    for name, start_s in (same | later).items():
        two, three = (
            arrived(ns2("300ms", 1, word, 2, "800kb", 1000, 65535, start_s, END_S), 2, 1000)
            for word in ("CCID2", "CCID3")
        )
        found[name] = round(ccid2_by_ccid3(two, three), 4)
    return found


def span(ratios: Mapping[str, float], word: str) -> tuple[float, float, int]:
    """The least and the highest of the ratios whose names begin with a word, and their number."""
    found = [ratio for name, ratio in ratios.items() if name.startswith(word)]
    return min(found), max(found), len(found)
