#!/usr/bin/env python3
"""Measures by how much Chromium's jitter buffer differs from itself if only the sound differs.

    sudo nice -n -5 .venv/bin/python validation/playout/chromium/twice.py [--jobs N] [NAME-SEED ...]

When speech can be played faster depends on the speech. A call therefore has two streams of the same
recording, the second some seconds later, whose packets leave within 20 ms of each other; the
receiver has a jitter buffer for each. ``twice.json`` has, for each call, the differences of their
delays in each second (null if only one emitted), and both shares of concealed samples.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import judge
import record

import traces

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "apps"))
import chromium


def compared(wanted: str) -> tuple[str, judge.Compared]:
    """A call over a trace."""
    name, _, seed = wanted.rpartition("-")
    with tempfile.TemporaryDirectory() as folder:
        ends, _ = record.crossed(name, int(seed), Path(folder), "events", "twice")
    return wanted, apart(ends["answerer"])


def apart(told: list[dict[str, Any]]) -> judge.Compared:
    """The two streams of a call, at the samples at which both had arrived."""
    rows = chromium.statistics(told, "inbound-rtp", "audio")
    first, second = sorted({row["ssrc"] for row in rows})
    by_stream = {
        ssrc: {row["now"]: row for row in rows if row["ssrc"] == ssrc and row["packetsReceived"]}
        for ssrc in (first, second)
    }
    times = [at for at in by_stream[first] if at in by_stream[second]]
    one, other = (
        {name: [by_stream[ssrc][at][name] for at in times] for name in record.COUNTERS}
        for ssrc in (first, second)
    )
    return judge.compare({"samples": one}, lambda _: other)


def save(wanted: str, one: judge.Compared) -> None:
    """Adds a call to those measured."""
    found = json.loads(judge.TWICE.read_text()) if judge.TWICE.exists() else {}
    found[wanted] = {
        "apart_s": [round(it, 4) if it < float("inf") else None for it in one.apart_s],
        "delays_s": [round(it, 4) for it in one.delays_s],
        "concealed": [round(it, 5) for it in one.concealed],
    }
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(found.items())]
    judge.TWICE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> None:
    """Measure the calls that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("names", nargs="*", default=[f"{name}-1" for name in traces.ALL])
    asked = parser.parse_args()
    with ProcessPoolExecutor(asked.jobs) as pool:
        for wanted, one in pool.map(compared, asked.names):
            save(wanted, one)
            print(wanted, judge.Verdict(wanted, [one]).apart_s, one.concealed, flush=True)


if __name__ == "__main__":
    main()
