"""Video frames: their delays over time, and incomplete ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from talkspurt.figures.style import sheet
from talkspurt.figures.time import DROP, MOST, styles_of

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from talkspurt.figures.style import FlowStyle
    from talkspurt.results.run_data import RunData


def frame_delay(result: RunData, flow: str | None, link: str | None) -> Figure | None:
    """From capture to the last packet of each complete frame; ticks below mark incomplete ones."""
    del link
    frames = result.video_frames(flow)
    chosen = frames["flow"].unique(maintain_order=True).to_list()
    if not chosen:
        return None
    title = "Each frame's delay, from capture to its last packet; ticks: never complete"
    figure, (ax,) = sheet(title)
    styles = styles_of(result)
    for name in chosen[:MOST]:
        draw(ax, frames.filter(flow=name), styles[name], name)
    ax.set_xlim(0, result.duration_s)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("time / s")
    ax.set_ylabel("frame delay / ms")
    ax.legend(loc="upper left", frameon=False)
    return figure


def draw(ax: Axes, frames: pl.DataFrame, style: FlowStyle, label: str) -> None:
    """The frames of one flow."""
    whole = frames.drop_nulls("complete_s")
    delay = (whole["complete_s"] - whole["captured_s"]).to_numpy() * 1e3
    at = whole["captured_s"].to_numpy()
    ax.plot(at, delay, ".", markersize=2.5, color=style.colour, label=label)
    never = frames.filter(frames["complete_s"].is_null())["captured_s"].to_numpy()
    ax.plot(never, [0.0] * len(never), "|", markersize=7, color=DROP)
