#!/usr/bin/env python3
"""How far the scores of three segments of a call are from those of all its segments.

    pip install 'talkspurt[scores]'
    python validation/listening/segments.py

24 calls: six recordings, each in Opus with 1 and 5 % of loss (60 and 120 s), in G.711 with 2 % and
in G.722 with 10 % (60 s). Printed in November 2026 with pesq 0.0.4 and visqol-python 3.8.0:

    PESQ: mean 0.063, root mean square 0.144, at most 0.295
    ViSQOL: mean 0.009, root mean square 0.070, at most 0.166
    PLCMOS: mean 0.006, root mean square 0.070, at most 0.165
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

import talkspurt
from talkspurt import scores

SPEECH = Path(talkspurt.__file__).parent / "speech"
CLIPS = ("english-man", "french-woman", "italian-man", "russian-woman", "spanish-woman",
         "sense-and-sensibility")  # fmt: skip
CALLS = (("opus", 0.01, "60s"), ("opus", 0.05, "120s"), ("pcmu", 0.02, "60s"), ("g722", 0.1, "60s"))
"""Codec, share of lost packets, and length."""


def scenario(clip: str, codec: str, loss: float, duration: str, seed: int) -> dict[str, object]:
    """A call over a link that loses packets at random."""
    ends = {"from": "a", "to": "b"}
    queue = {"kind": "droptail", "packets": 100}
    link = {**ends, "rate": "1Mbit/s", "delay": "20ms", "loss": loss, "queue": queue}
    file = str(SPEECH / f"{clip}.wav")
    source = {"kind": "speech", "file": file, "codec": codec, "repeat": True}
    call = {
        **ends, "transport": {"kind": "udp"}, "source": source, "playout": {"kind": "adaptive"}
    }  # fmt: skip
    head = {"title": "Segments", "duration": duration, "seed": seed}
    return {**head, "links": {"l": link}, "flows": {"call": call}}


def main() -> None:
    """Score all segments of each call, and compare with the means of three of them."""
    apart: dict[str, list[float]] = {model: [] for model in scores.MODELS}
    for seed, (clip, call) in enumerate(itertools.product(CLIPS, CALLS), start=11):
        table = talkspurt.run(scenario(clip, *call, seed)).score("all").drop_nulls("segment")
        rows = {row["segment"]: row for row in table.to_dicts() if row["reason"] is None}
        three = scores.chosen([*rows], "three")
        for model, found in apart.items():
            values = {number: scores.value(row, model) for number, row in rows.items()}
            found.append(np.mean([values[n] for n in three]) - np.mean([*values.values()]))
    for model, found in apart.items():
        off = np.array(found)
        print(
            f"{scores.MODELS[model].label}: mean {off.mean():.3f}, root mean square "
            f"{np.sqrt((off**2).mean()):.3f}, at most {abs(off).max():.3f}"
        )


if __name__ == "__main__":
    main()
