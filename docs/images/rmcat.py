"""Draws rmcat-5-1.png: a run of RFC 8867 §5.1 under each profile of NADA and under GCC."""

from pathlib import Path

import numpy as np
import polars as pl

import talkspurt
from talkspurt.evaluate import cases
from talkspurt.figures.style import styled

HERE = Path(__file__).parent
STEPS = [0, 40, 40, 60, 60, 80, 80, 100], [1, 1, 2.5, 2.5, 0.6, 0.6, 1, 1]


def main() -> None:
    """Run the case and draw it."""
    from matplotlib import pyplot

    with styled():
        figure, panels = pyplot.subplots(
            2, 3, figsize=(12, 5), sharex=True, sharey="row", layout="constrained"
        )
        case = cases.load()["5.1"]
        names = ("NADA (rfc8698)", "NADA (ns3-rmcat)", "GCC")
        controllers = dict(zip(names, cases.candidates([], []), strict=True))
        for column, (name, candidate) in zip(panels.T, controllers.items(), strict=True):
            built = cases.build(case, "50ms, link", candidate)
            run = talkspurt.run(built.scenario, set=built.sets, seed=1)
            packets = run.packets().filter(
                (pl.col("link") == "bottleneck") & (pl.col("side") == "from")
            )
            received = packets["received_s"].to_numpy()
            kept = ~np.isnan(received)
            bits = np.histogram(
                received[kept], range(101), weights=packets["ip_bytes"].to_numpy()[kept]
            )
            rate, queue = column
            rate.plot(*STEPS, color="0.6", linewidth=1, label="capacity")
            rate.stairs(bits[0] * 8 / 1e6, bits[1], label="received")
            rate.set_title(name, loc="left", fontsize=10)
            waits = (packets["dequeued_s"] - packets["enqueued_s"]) * 1e3
            queue.plot(packets["enqueued_s"], waits, ",", alpha=0.6)
            queue.set_xlabel("time / s")
        panels[0, 0].set_ylabel("rate / Mbit/s")
        panels[1, 0].set_ylabel("queueing delay / ms")
        panels[0, 0].set_xlim(0, 100)
        panels[0, 0].legend(fontsize=8)
        figure.savefig(HERE / "rmcat-5-1.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
