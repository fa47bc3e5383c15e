#!/usr/bin/env python3
"""Compares both profiles of the adaptive buffer with the best fixed one, for validation/playout.md.

    .venv/bin/python validation/playout/best_fixed.py

The paths are the delay traces on which Chromium judges (``chromium/traces.py``), with a call in
PCMU. Which fixed buffer is best is known afterwards only. Takes a minute.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import talkspurt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent / "chromium"))
from made import ROOT
from tables import fill, table

import traces

PAGE = ROOT / "docs" / "validation" / "playout.md"
FIXED_MS = (*range(20, 200, 20), *range(200, 400, 40), 400, 450, 500)
PROFILES = ("talkspurt", "libwebrtc")
MARGIN = 0.05

Heard = tuple[float, float, float]
"""MOS, mean mouth-to-ear delay in seconds and concealed share."""


def heard(name: str, playout: dict[str, Any]) -> Heard:
    """A call through a trace with this buffer: means of all seeds."""
    found = []
    for seed in traces.SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            scenario = {
                "title": name,
                "duration": f"{traces.CALL_S + 2}s",
                "links": {"path": traces.link(name, seed, Path(folder))},
                "flows": {
                    "call": {
                        "from": "a", "to": "b", "stop": f"{traces.CALL_S}s",
                        "transport": {"kind": "udp"}, "playout": playout,
                        "source": {"kind": "speech", "codec": "pcmu"},
                    },
                    **({"upload": traces.UPLOAD} if name == "bufferbloat" else {}),
                },
            }  # fmt: skip
            flows = talkspurt.run(scenario, seed=seed).flows
        row = flows.filter(pl.col("name") == "call").row(0, named=True)
        found.append((row["mos"], row["mouth_to_ear_mean_s"], row["concealed_ratio"]))
    mos, delay_s, concealed = np.mean(found, axis=0).tolist()
    return mos, delay_s, concealed


def text(of: Heard) -> str:
    """For a cell."""
    return f"{of[0]:.2f}, {1e3 * of[1]:.0f} ms, {100 * of[2]:.2f} %"


def row(name: str) -> list[str]:
    """Of a trace: the best fixed buffer, and both profiles."""
    fixed = {ms: heard(name, {"kind": "fixed", "buffer": f"{ms}ms"}) for ms in FIXED_MS}
    best = max(fixed, key=lambda ms: fixed[ms][0])
    ours = [heard(name, {"kind": "adaptive", "profile": profile}) for profile in PROFILES]
    short = round(fixed[best][0], 2) - round(ours[0][0], 2)
    kept = "yes" if short <= MARGIN + 1e-9 else f"**no**, {short:.2f} less"
    split = "" if traces.ALL[name] in traces.DEV else " (held out)"
    return [f"`{name}`{split}", f"{best} ms: {text(fixed[best])}", *map(text, ours), kept]


def main() -> None:
    """Fills the table."""
    with ProcessPoolExecutor(2) as pool:
        rows = list(pool.map(row, traces.ALL))
    head = "trace | best fixed buffer | `talkspurt` | `libwebrtc` | `talkspurt` within 0.05"
    fill(PAGE, {"best-fixed": table(head, rows), "fixed": len(FIXED_MS)})


if __name__ == "__main__":
    main()
