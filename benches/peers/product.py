"""Costs of the installed program: startup, writing Parquet, a thousand calls."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benches.cost import Cost, FailedError, cost
from benches.peers import programs
from benches.peers.matches import Match
from benches.peers.results import Step

CALL = """\
title = "One call"
duration = "60s"

[links.line]
from = "here"
to = "there"
rate = "256kbit/s"
delay = "20ms"
queue = { kind = "droptail", packets = 20 }

[flows.call]
from = "here"
to = "there"
transport = { kind = "udp" }
source = { kind = "speech", codec = "pcmu" }
"""
CALLS = 1000
STARTS = 7


def steps() -> Iterator[Step]:
    """Startup and the study."""
    for i in range(STARTS):
        yield Step(f"start of --help #{i}", 0.4, lambda: cost(programs.talkspurt("--help")))
        yield Step(f"start of a second #{i}", 0.7, _second)
    yield Step("study", 25, _study)


def _second() -> Cost:
    return _run(CALL.replace('"60s"', '"1s"'), "--json", "--no-report")


def _study() -> Cost:
    study = f"{CALL}\n[replications]\ncount = {CALLS}\n"
    with tempfile.TemporaryDirectory() as out:
        words = ["--no-report", "--json", "--jobs", "2", "--out", str(Path(out) / "study")]
        return _run(study, *words)


def parquet(match: Match) -> Cost:
    """A workload in the program, its packets written as Parquet."""
    command = [*programs.ours(match), "--scenario"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        raise FailedError(told.stderr)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        done = _run(
            told.stdout, "--no-report", "--json", "--out", str(out),
            "--set", "record.packets=true", "--set", "record.gauges=false",
        )  # fmt: skip
        done["written_bytes"] = (out / "packets.parquet").stat().st_size
    return done


def _run(scenario: str, *words: str) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scenario.toml"
        file.write_text(scenario, encoding="utf-8")
        done = cost(programs.talkspurt("run", file, *words))
    # The only part of the run's output that is kept.
    done["said"] = {"hops": done["said"].get("hops")}
    return done
