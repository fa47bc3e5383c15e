"""The programs of both sides: requirements, builds, and command lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benches.cost import FailedError
from benches.peers.matches import Match, network

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
BENCH = TARGET / "guided" / "talkspurt-bench"
"""The distributed build; ``cargo build --release`` output is compared with it."""
PLAIN = TARGET / "release" / "talkspurt-bench"
NS3_LIBRARIES = {
    "dumbbell": ["applications", "flow-monitor", "internet", "traffic-control", "point-to-point",
                 "network", "stats", "core"],
    "saturated": ["applications", "internet", "mobility", "wifi", "network", "stats", "core"],
}  # fmt: skip
NS3_SOURCES = {
    "dumbbell": HERE / "dumbbell.cc",
    "saturated": ROOT / "validation" / "cell" / "saturated.cc",
}


def missing(peers: set[str]) -> str | None:
    """Programs to install before running these peers; None if all are present."""
    packages = []
    if any(peer.startswith("ns-2") for peer in peers) and shutil.which("ns") is None:
        packages.append("ns2")
    if "ns-3" in peers:
        if shutil.which("g++") is None:
            packages.append("g++")
        if shutil.which("g++") is None or not _ns3_headers():
            packages += ["ns3", "libns3-dev"]
    if not packages:
        return None
    return (
        f"Not installed: {', '.join(packages)}. Nothing was installed and nothing run. Debian, "
        f"Ubuntu:\n  apt-get install {' '.join(packages)}\n"
        "or choose other peers with --peers."
    )


def _ns3_headers() -> bool:
    asked = ["g++", "-E", "-x", "c++", "-include", "ns3/core-config.h", "/dev/null"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def build_ns3(name: str) -> Path:
    """A program linked with ns-3, rebuilt if its source is newer.

    Raises:
        FailedError: compilation failed.
    """
    source, built = NS3_SOURCES[name], TARGET / "peers" / name
    if built.exists() and built.stat().st_mtime > source.stat().st_mtime:
        return built
    built.parent.mkdir(parents=True, exist_ok=True)
    libraries = [f"-lns3-{library}" for library in NS3_LIBRARIES[name]]
    flags = ["-std=c++17", "-O3", "-march=native", "-w"]
    command = ["g++", *flags, str(source), "-o", str(built), *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FailedError(f"{' '.join(command)}\n{done.stderr[:2000]}")
    return built


def ns3_program(match: Match) -> str:
    """The ns-3 program for a match."""
    return "saturated" if match.workload.startswith("w6") else "dumbbell"


def ours(match: Match, *, watch: str | None = None, out: Path | None = None) -> list[str]:
    """Our command for a match; output stays in ``out``, so that its deletion is not counted."""
    noise = ["--noise"] if match.noise else []
    seconds = CELL_S if match.workload.startswith("w6") else match.seconds
    watching = ["--watch", watch] if watch else []
    staying = ["--out", str(out)] if out else []
    return [str(BENCH), match.workload, str(seconds), *noise, *watching, *staying]


CELL_S = 500
"""Simulated seconds of a cell here: three, as in ns-3, would be a millisecond of CPU."""


def theirs(match: Match, folder: Path, *, count: bool = False) -> list[str]:
    """A peer's command for a match, writing to a folder; ns-2 counts in a separate run."""
    if match.workload.startswith("w6"):
        stations = match.workload.removeprefix("w6-")
        program = build_ns3(ns3_program(match))
        return [str(program), f"--n={stations}", f"--seconds={match.seconds - 1}", "--json=1"]
    net = network(match.workload)
    noise = net.service_s if match.noise else 0
    written = match.workload == "w4" and not count
    ends = match.peer.endswith(", traced") and not count
    if match.peer == "ns-3":
        trace = [f"--trace={folder}"] if written else []
        return [
            str(build_ns3(ns3_program(match))), f"--kind={net.kinds[0]}", f"--flows={net.each}",
            f"--mbps={net.mbps}", f"--limit={net.limit}", f"--seconds={match.seconds}",
            f"--noise={noise:g}", *trace,
        ]  # fmt: skip
    trace = [f"{'ends' if ends else 'trace'}={folder / 'ns2.tr'}"] if written or ends else []
    return [
        "ns", str(HERE / "dumbbell.tcl"), f"kinds={','.join(net.kinds)}", f"each={net.each}",
        f"mbps={net.mbps}", f"limit={net.limit}", f"queue={net.queue}",
        f"seconds={match.seconds}", f"noise={noise:g}",
        f"lean={int(match.peer.startswith('ns-2 lean'))}", f"count={int(count)}", *trace,
    ]  # fmt: skip


def talkspurt(*words: str | Path) -> list[str]:
    """The installed command."""
    return [str(Path(sys.executable).parent / "talkspurt"), *map(str, words)]


def said(command: Sequence[str | Path]) -> str:
    """The first line of a command's output; empty if the command does not exist."""
    try:
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False, cwd=ROOT
        )
    except OSError:
        return ""
    return (done.stdout.splitlines() or [""])[0].strip()
