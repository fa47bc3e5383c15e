"""The comparisons: workloads, peers, lengths, and the project's requirements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """The dumbbell of a workload, for peers' scripts: same as in ``benches/src/workloads.rs``."""

    kinds: tuple[str, ...] = ("sack",)
    each: int = 50
    mbps: int = 100
    limit: int = 250
    queue: str = "DropTail"

    @property
    def service_s(self) -> float:
        """Service time of a 1040-byte packet at the bottleneck: the bound of the hosts' noise."""
        return 1040 * 8 / self.mbps / 1e6


def network(workload: str) -> Network:
    """The dumbbell of a workload by its name."""
    stem, _, number = workload.partition("-")
    if stem == "w2":
        return Network(("voice",), 500, 50)
    if stem == "w3":
        return Network(("sack", "tfrc"), 32, 15, 200, "RED")
    if stem == "w3d":
        return Network(("sack", "ccid2", "ccid3", "sctp"), 16, 15, 200, "RED")
    if stem == "w5":
        flows = int(number)
        return Network(("sack",), flows, 2 * flows, 5 * flows)
    return Network()


@dataclass(frozen=True)
class Match:
    """A workload here and its equivalent in a peer.

    Attributes:
        workload: its talkspurt-bench name.
        peer: ``ns-2 lean``, the same with ``, traced``, ``ns-2`` or ``ns-3``; or a way to record
            it here.
        seconds: simulated seconds.
        guess_s: estimated CPU time of a pair, for the remaining time.
        noise: whether hosts have noise.
        must: required speed relative to the peer.
    """

    workload: str
    peer: str
    seconds: int
    guess_s: float
    noise: bool = False
    must: float | None = None

    @property
    def run(self) -> str:
        """The simulated workload."""
        return f"{self.workload}, {self.seconds} s" + (" with noise" if self.noise else "")

    @property
    def key(self) -> str:
        """Its key in the file of results."""
        return f"{self.run}, beside {self.peer}"


MATCHES = (
    Match("w1", "ns-2 lean", 100, 2.5, must=3.8),
    Match("w1", "ns-2", 100, 3.2),
    Match("w1", "ns-2 lean", 100, 3, noise=True),
    Match("w1", "ns-3", 20, 9, noise=True, must=130),
    Match("w2", "ns-2 lean", 100, 6, must=7),
    Match("w2", "ns-2 lean, traced", 20, 4, must=7),
    Match("w2", "ns-2", 100, 18),
    Match("w2", "ns-3", 100, 125, must=350),
    Match("w3", "ns-2 lean", 200, 1.5, noise=True, must=4.5),
    Match("w3", "ns-2", 200, 1.8, noise=True),
    Match("w3d", "ns-2 lean", 200, 3),
    Match("w3d", "ns-2", 200, 3.5),
    Match("w4", "ns-2 lean", 20, 5.5, must=7),
    Match("w4", "ns-2", 20, 6),
    Match("w4", "ns-3", 3, 6, noise=True),
    Match("w5-10", "ns-2 lean", 10, 0.2),
    Match("w5-10", "ns-3", 10, 1, noise=True),
    Match("w5-100", "ns-2 lean", 10, 1.3),
    Match("w5-100", "ns-3", 3, 6, noise=True),
    Match("w5-1000", "ns-2 lean", 10, 23),
    Match("w6-100", "ns-3", 5, 15, must=200),
)
"""W3 and the comparisons with ns-3 use host noise: without it, the order of simultaneous events
decides who loses at a full queue (docs/validation/peers.md). For the delay and jitter of a call
ns-2 needs the trace of its first and last link; without, it counts only losses. ns-3 has no TFRC or
DCCP, and takes a minute and a half for a second of W5-1000."""

RECORDS = (
    Match("w4", "pcapng", 20, 2),
    Match("w4", "pcapng, 96 bytes of each", 20, 1.5),
    Match("w4", "Parquet", 20, 2),
    Match("w4", "Parquet, by `talkspurt run`", 20, 5),
)
"""W4 with other output formats here, compared with ns-2's trace: must not be slower."""


@dataclass(frozen=True)
class Bar:
    """Required and desired speed of a workload here, in millions of hops per CPU-second."""

    words: str
    must: float | None = None
    aim: float | None = None


BARS = {
    "w1": Bar("50 bulk TCPs", 15, 22),
    "w2": Bar("500 calls with delay, jitter, loss and MOS of each", 8, 12),
    "w3": Bar("32 TCP and 32 TFRC under RED", 9, 14),
    "w3d": Bar("16 each of TCP, CCID 2, CCID 3 and SCTP under RED", 6, 10),
    "w4": Bar("W1 with ns-2's trace of every link on disk", 2.2, 3.2),
    "w5-10": Bar("10 bulk TCPs"),
    "w5-100": Bar("100 bulk TCPs"),
    "w5-1000": Bar("1000 bulk TCPs", 5, 7),
    "w6-100": Bar("100 saturated stations of 802.11b"),
}
HOPS_BAND = 0.03
"""Maximum relative difference in hops for a valid ratio."""
LOSS_BAND = 1.5
"""Maximum factor between losses."""
GOODPUT_BAND = 0.05
"""Maximum relative difference of a cell's goodput from ns-3's."""
