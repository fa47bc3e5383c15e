#!/usr/bin/env python3
"""What decoders of G.722 and G.726 gain that follow the concealment of a gap, on real speech.

All talkers of ``talkers.csv`` speak through each codec and lose the same packets twice: with the
default concealment, after which the decoder has the state of what was concealed, and with
``g711-appendix-i-frozen``, after which it has that of the last packet before the gap. PESQ judges
both, wideband for G.722. A click is a place after a gap, within 20 ms, with a peak of more than
twice that of the same place without loss.

    pip install 'talkspurt[scores]'
    python validation/estimate/following.py FOLDER  # a table of docs/validation/estimate.md

"""

from __future__ import annotations

import csv
import hashlib
import sys
import tempfile
from pathlib import Path

import numpy as np
from calls import CLIP_S, HERE, SETUPS, TALKERS, One, Setup, lost, recording, scenario
from scipy.special import stdtrit

import talkspurt
from talkspurt.scores import models

sys.path.insert(0, str(HERE.parent))
from tables import fill

CODECS = ("g722", "g726-40", "g726-32", "g726-24", "g726-16")
LOSSES = ((3, 0), (10, 0), (10, 4))
HOW = {"follows": "g711-appendix-i", "frozen": "g711-appendix-i-frozen"}
AFTER_S = 0.02
PAGE = HERE.parents[1] / "docs" / "validation" / "estimate.md"


def of_talker(name: str, path: Path) -> list[tuple[str, tuple[int, int], str, float, int, int]]:
    """Codec, loss, concealment, PESQ, clicks and gaps of each call."""
    for codec in CODECS:
        for how, word in HOW.items():
            playout = f'buffer = "200ms", concealment = "{word}"'
            SETUPS[f"{codec} {how}"] = Setup(codec, playout=playout)
    rows = []
    seed = int.from_bytes(hashlib.sha256(f"following {name}".encode()).digest()[:4], "big")
    with tempfile.TemporaryDirectory() as folder:
        clip = recording(path, Path(folder))
        setups = [f"{codec} {how}" for codec in CODECS for how in HOW]
        plain = talkspurt.run(
            scenario(clip, {s.replace(" ", "-"): (One(s, (0, 0), 0), []) for s in setups})
        )
        for loss in LOSSES:
            places = lost(round(CLIP_S * 50), loss, [seed, *loss])
            calls = {}
            for setup in setups:
                at = plain.frames(setup.replace(" ", "-"))["handed_over_s"].to_list()
                calls[setup.replace(" ", "-")] = (
                    One(setup, loss, 0),
                    [at[place] for place in places],
                )
            run = talkspurt.run(scenario(clip, calls))
            for flow, (one, _) in calls.items():
                heard, clean = run.audio(flow).mono(), plain.audio(flow).mono()
                score = models.score("pesq", heard.sent, heard.received, heard.rate)
                step, after = heard.rate // 50, round(AFTER_S * heard.rate)
                ends = [place + 1 for place in places if place + 1 not in places]
                clicks = sum(
                    _peak(heard.received, end * step, after)
                    > 2 * _peak(clean.received, end * step, after) + 200
                    for end in ends
                )
                codec, how = one.setup.split()
                rows.append((codec, loss, how, score, clicks, len(ends)))
    return rows


def _peak(samples: np.ndarray, at: int, length: int) -> float:
    part = np.abs(samples[at : at + length].astype(float))
    return float(part.max()) if len(part) else 0.0


def main() -> None:
    """Measure, and write the table."""
    with TALKERS.open(encoding="utf-8") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    rows = [
        (name, *row) for name in names for row in of_talker(name, Path(sys.argv[1]) / f"{name}.wav")
    ]
    lines = [
        "| codec | lost | PESQ, frozen | PESQ, follows | gain | clicks, frozen | follows | gaps |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for codec in CODECS:
        for loss in LOSSES:
            its = [row for row in rows if row[1:3] == (codec, loss)]
            by = {how: np.array([row[4] for row in its if row[3] == how]) for how in HOW}
            clicks = {how: sum(row[5] for row in its if row[3] == how) for how in HOW}
            gaps = sum(row[6] for row in its if row[3] == "frozen")
            gain = by["follows"] - by["frozen"]
            half = float(stdtrit(len(gain) - 1, 0.975)) * gain.std(ddof=1) / len(gain) ** 0.5
            words = f"{loss[0]} %" + (f", {loss[1]} in a row" if loss[1] else "")
            shown = f"{gain.mean():+.2f} ± {half:.2f}".replace("-", "−")
            scores = f"{by['frozen'].mean():.2f} | {by['follows'].mean():.2f} | {shown}"
            counts = f"{clicks['frozen']} | {clicks['follows']} | {gaps}"
            lines.append(f"| {codec} | {words} | {scores} | {counts} |")
    print("\n".join(lines))
    fill(PAGE, {"following": "\n".join(lines)})


if __name__ == "__main__":
    main()
