"""Draws frame-delay.png: the frames of the first runs of scenarios/video.toml, by transport."""

from pathlib import Path

import talkspurt
from talkspurt.figures import charts, drawing
from talkspurt.figures.style import styled

HERE = Path(__file__).parent


def main() -> None:
    """Run the scenario and draw it."""
    from matplotlib import pyplot

    study = talkspurt.run(HERE.parent.parent / "scenarios" / "video.toml")
    runs = [run for run in study.runs if run.replicate == 0]
    with styled():
        figure, panels = pyplot.subplots(len(runs), 1, figsize=(8, 9), sharex=True)
        for ax, run in zip(panels, runs, strict=True):
            (made,), _ = charts.of_tables(run, ["video_frames"], "video")
            drawing.draw_lines(ax, made["panels"][0])
            ax.set_title(run.settings["video transport"], loc="left", fontsize=10)
            ax.set_ylabel("frame delay / ms")
            ax.set_ylim(bottom=0)
        panels[-1].set_xlim(0, runs[0].duration_s)
        panels[-1].set_xlabel("time / s   (ticks: frames that were never decodable)")
        figure.savefig(HERE / "frame-delay.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
