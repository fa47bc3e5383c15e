"""What is run beside what: workloads, peers, lengths, and what the project asks of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """The dumbbell of a workload, for peers' scripts: that of ``benches/src/workloads.rs``."""

    kinds: tuple[str, ...] = ("sack",)
    each: int = 50
    mbps: int = 100
    limit: int = 250
    queue: str = "DropTail"

    @property
    def service_s(self) -> float:
        """Seconds that a packet of 1040 bytes takes at the bottleneck: the hosts' noise."""
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
    """A workload here beside the same elsewhere.

    Attributes:
        workload: its name for talkspurt-bench.
        peer: ``ns-2 lean``, the same with ``, traced``, ``ns-2`` or ``ns-3``; or a way to record
            it here.
        seconds: simulated.
        guess_s: CPU that a pair takes, for the time left.
        noise: whether hosts have theirs.
        must: how many times the peer's speed ours has to be.
    """

    workload: str
    peer: str
    seconds: int
    guess_s: float
    noise: bool = False
    must: float | None = None

    @property
    def run(self) -> str:
        """What is simulated."""
        return f"{self.workload}, {self.seconds} s" + (" with noise" if self.noise else "")

    @property
    def key(self) -> str:
        """What it is called in the file of results."""
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
"""W3 and what stands beside ns-3 has the noise of hosts, for without it the order of equal times
settles who loses at a full queue (docs/validation/peers.md). For the delay and jitter of a call
ns-2 needs the trace of its first and last link; without it counts losses only. ns-3 knows no TFRC
and no DCCP, and takes a minute and a half for a second of W5-1000."""

RECORDS = (
    Match("w4", "pcapng", 20, 2),
    Match("w4", "pcapng, 96 bytes of each", 20, 1.5),
    Match("w4", "Parquet", 20, 2),
    Match("w4", "Parquet, by `talkspurt run`", 20, 5),
)
"""W4 with another record here beside W4 with ns-2's trace: these have to be no slower."""


@dataclass(frozen=True)
class Bar:
    """What a workload has to reach here, and what is aimed at, in millions of hops a CPU-second."""

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
"""How far hops may be from a peer's before a ratio counts."""
LOSS_BAND = 1.5
"""And by what factor losses may differ."""
GOODPUT_BAND = 0.05
"""How far a cell's goodput may be from ns-3's."""
