#!/usr/bin/env python3
"""The same bottlenecks in ns-2, ns-3 and here: compares throughput and shares.

    .venv/bin/python validation/peers/run.py [--seconds 100]

Fifty bulk TCPs in all three, with the scripts of `make bench-peers`; TCP and TFRC (`shares.py`) in
ns-2 and here. Needs Debian's `ns2`, `ns3` and `libns3-dev`, and a C++ compiler. Writes
docs/validation/peers.md, and exits with status 1 if a comparison is out of its band. Takes about
ten minutes, mostly in ns-3.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import shares

import talkspurt

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent)]
from made import now  # noqa: E402
from tables import fill, table  # noqa: E402

from benches.peers import programs  # noqa: E402

PAGE = ROOT / "docs" / "validation" / "peers.md"
FLOWS = 50
SERVICE = 8.32e-5
"""Service time of 1040 bytes at 100 Mbit/s: noise of this size breaks the phase effects."""
CASES = [(250, 0.0), (250, SERVICE), (60, SERVICE)]
"""Queue limit in packets, noise of the senders."""
BAND = 0.03
"""Maximum relative difference of a noisy case's packets from a peer's."""
LOSS_BAND = 1.5
"""Maximum factor between loss ratios."""
SEEDS = 5

SHARES = "queue | TCP here | in ns-2 | TFRC here | in ns-2 | dropped here | in ns-2"


def said(*command: str | Path) -> str:
    """The output of a command."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout.strip()


def peer(*command: str | Path) -> tuple[float, float]:
    """Packets sent by a peer's bottleneck, and its loss ratio."""
    counts = json.loads(said(*command))
    packets, drops = counts["core_packets"], counts["drops"]
    return packets, drops / (packets + drops)


def scenario(places: int, noise: float, seconds: int) -> dict[str, Any]:
    """The same network, as a scenario."""
    links = {"core": shares.link("left", "right", "100Mbit/s", "20ms", places, 0)}
    flows = {}
    for i in range(FLOWS):
        near = shares.link(f"from{i}", "left", "100Mbit/s", "1ms", 1000, noise)
        far = shares.link("right", f"to{i}", "100Mbit/s", "1ms", 1000, 0)
        links |= {f"near{i}": near, f"far{i}": far}
        flows[f"f{i}"] = shares.flow(i, FLOWS, {"kind": "bulk"}, shares.SACK)
    title = {"title": "Bulk TCP", "duration": f"{seconds}s"}
    return {**title, "links": links, "flows": flows}


def ours(places: int, noise: float, seconds: int) -> tuple[float, float]:
    """The same counts here, the mean over seeds."""
    counts = []
    for seed in range(1, SEEDS + 1):
        result = talkspurt.run(scenario(places, noise, seconds), seed=seed)
        core = result.links.filter(result.links["name"] == "core").row(0, named=True)
        packets, drops = core["sent_packets"], core["drops"]
        counts.append((packets, drops / (packets + drops)))
    return mean(c[0] for c in counts), mean(c[1] for c in counts)


Rows = list[tuple[int, float, list[tuple[float, float]]]]


def out_of_band(rows: Rows) -> list[str]:
    """Differences beyond the band. Without noise there is no band: see the page."""
    wrong = []
    for places, noise, (here, *others) in rows:
        for name, other in zip(("ns-2", "ns-3"), others, strict=True):
            off, factor = here[0] / other[0] - 1, here[1] / other[1]
            what = f"{places} places beside {name}"
            if noise and abs(off) > BAND:
                wrong.append(f"{what}: {off:+.1%} packets, the band is {BAND:.0%}")
            if noise and not 1 / LOSS_BAND < factor < LOSS_BAND:
                wrong.append(f"{what}: {factor:.2f} times the losses, the band is {LOSS_BAND}")
    return wrong


def parts(rows: Rows, seconds: int, beside: list[list[str]], wrong: list[str]) -> dict[str, object]:
    """The generated parts of the page."""
    cells = []
    for places, noise, (here, ns2, ns3) in rows:
        what = f"{places} places, " + ("noise of 83.2 µs" if noise else "no noise")
        row = [what, f"{here[0]:,.0f}"]
        row += [f"{other[0]:,.0f} ({here[0] / other[0] - 1:+.1%})" for other in (ns2, ns3)]
        cells.append([*row, *(f"{side[1]:.2%}" for side in (here, ns2, ns3))])
    versions = said("dpkg-query", "-W", "-f", "${Package} ${Version}, ", "ns2", "libns3-dev")
    told = {
        "verdict": "; ".join(wrong) if wrong else "all comparisons are within their bands",
        "made": f"{now()}, mean of {SEEDS} seeds here",
        "talkspurt": f"commit `{said('git', '-C', ROOT, 'rev-parse', 'HEAD')}`",
        "peers": versions.rstrip(", "),
    }
    heads = "queue and senders | here | ns-2 | ns-3 | dropped here | in ns-2 | in ns-3"
    return {
        "seconds": seconds, "bulk": table(heads, cells), "shares": table(SHARES, beside),
        "made": table(("", ""), told.items()),
    }  # fmt: skip


def main() -> None:
    """Runs all cases and writes the page."""
    ask = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ask.add_argument("--seconds", type=int, default=100, help="simulated seconds of each run")
    seconds = ask.parse_args().seconds
    dumbbell = programs.build_ns3("dumbbell")
    beside, wrong = shares.compared(said)
    rows: Rows = []
    for places, noise in CASES:
        words = [f"limit={places}", f"seconds={seconds}", f"noise={noise}"]
        counts = [ours(places, noise, seconds)]
        counts.append(
            peer("ns", programs.HERE / "dumbbell.tcl", f"each={FLOWS}", "count=1", *words)
        )
        counts.append(peer(dumbbell, f"--flows={FLOWS}", *(f"--{word}" for word in words)))
        rows.append((places, noise, counts))
        print(places, noise, counts, flush=True)
    wrong += out_of_band(rows)
    fill(PAGE, parts(rows, seconds, beside, wrong))
    print(f"wrote {PAGE.relative_to(ROOT)}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
