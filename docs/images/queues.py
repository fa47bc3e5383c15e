#!/usr/bin/env python3
"""Draws docs/images/queues.png from scenarios/queues.toml: the waits under each discipline.

.venv/bin/python docs/images/queues.py
"""

from pathlib import Path

import matplotlib.pyplot as plt

import talkspurt
from talkspurt.figures import png, styled
from talkspurt.figures.style import SKY
from talkspurt.figures.time import waits

ROOT = Path(__file__).resolve().parents[2]
CALL = "#c2185b"
CHANGES = {"replications.count": 1, "record.interval": "500ms"}


def main() -> None:
    """One panel a discipline, of the first seed."""
    study = talkspurt.run(ROOT / "scenarios" / "queues.toml", set=CHANGES)
    with styled():
        figure, axes = plt.subplots(4, 3, figsize=(10.5, 9), sharex=True, layout="constrained")
        for ax, run in zip(axes.flat, study.runs, strict=True):
            waits(ax, run.link_series("uplink"), SKY)
            call = run.series("call")
            ax.plot(call["time_s"], call["delay_mean_s"] * 1e3, color=CALL, linewidth=0.9)
            ax.set_title(run.settings["queue"], fontsize=10)
            ax.set_xlim(0, run.duration_s)
            ax.set_ylim(0, 800 if run.links["sojourn_mean_s"].max() > 0.2 else 250)
        for ax in axes[-1]:
            ax.set_xlabel("time / s")
        for ax in axes[:, 0]:
            ax.set_ylabel("ms")
        (ROOT / "docs" / "images" / "queues.png").write_bytes(png(figure))


if __name__ == "__main__":
    main()
