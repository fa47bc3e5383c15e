"""Draws sources.png: what each source of scenarios/sources.toml sends over time."""

from pathlib import Path

import polars as pl

import talkspurt
from talkspurt.figures.charts import styles_of
from talkspurt.figures.style import styled

HERE = Path(__file__).parent


def main() -> None:
    """Run the scenario and draw it."""
    from matplotlib import pyplot

    run = talkspurt.run(HERE.parent.parent / "scenarios" / "sources.toml")
    styles = styles_of(run)
    with styled():
        figure, panels = pyplot.subplots(
            len(styles), 1, figsize=(8, 9), sharex=True, layout="constrained"
        )
        for ax, (name, style) in zip(panels, styles.items(), strict=True):
            # A bin of the series is named by its end.
            series = run.series(name).with_columns(kbps=pl.col("sent_bytes") * 8 / 0.2 / 1e3)
            colour = style.colour
            ax.fill_between(series["time_s"], series["kbps"], step="pre", color=colour, linewidth=0)
            ax.set_title(name, loc="left", fontsize=9, pad=2)
            ax.set_ylim(bottom=0)
            ax.locator_params(axis="y", nbins=2)
        panels[-1].set_xlim(0, run.duration_s)
        panels[-1].set_xlabel("time / s")
        figure.supylabel("sent / kbit/s, IP packets with payload", fontsize=9)
        figure.savefig(HERE / "sources.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
