"""Frames of speech and video, and what took from the MOS, drawn by the page itself.

The figures :func:`talkspurt.figures.speech.delay_ecdf`, ``quality.mos`` and ``video.frame_delay``
show the same. A page that draws them needs no plotting library, whose import alone takes longer
than many runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from talkspurt._text.format import verdict
from talkspurt.figures.quality import BEST_MOS
from talkspurt.figures.style import CAUSE_COLOURS, FlowStyle
from talkspurt.figures.time import DROP
from talkspurt.report.chart import chart_of, line_of
from talkspurt.report.series import MOST_LINES, flow_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from talkspurt.report.chart import Values
    from talkspurt.results.run_data import RunData


@dataclass(frozen=True)
class Bar:
    """The MOS of one call and what it lost.

    Attributes:
        name: the call.
        colour: its colour.
        mos: its score.
        lost: the cause, colour, place and length of each loss.
        words: its score and the user satisfaction.
        end: where its last part ends.
    """

    name: str
    colour: str
    mos: float
    lost: list[tuple[str, str, float, float]]
    words: str
    end: float


def bars(result: RunData, styles: Mapping[str, FlowStyle]) -> list[Bar]:
    """The first calls with a score."""
    return [_bar(row, styles) for row in result.flows.drop_nulls("mos").head(MOST_LINES).to_dicts()]


def _bar(row: Mapping[str, Any], styles: Mapping[str, FlowStyle]) -> Bar:
    at = row["mos"]
    lost = []
    for cause, colour in CAUSE_COLOURS.items():
        taken = row[f"mos_lost_to_{cause}"] or 0.0
        # The three are computed separately, so their sum may exceed the whole.
        lost.append((cause, colour, at, taken))
        at += taken
    found = verdict(row["r_factor"])
    words = f"{row['mos']:.2f} {found.short if found else ''}".strip()
    return Bar(row["name"], styles[row["name"]].colour, row["mos"], lost, words, max(at, BEST_MOS))


def charts(result: RunData, styles: Mapping[str, FlowStyle]) -> Iterator[dict[str, Any]]:
    """The charts for which the run has frames."""
    for made in (_delays(result, styles), _film(result, styles)):
        if made:
            yield made


def _delays(result: RunData, styles: Mapping[str, FlowStyle]) -> dict[str, Any] | None:
    """Share of frames delivered within a time since capture: the delay a buffer must bridge."""
    import polars as pl

    times: dict[str, Values] = {}
    shares: dict[str, Values] = {}
    for name in result.calls[:MOST_LINES]:
        rows = result.frames(name)
        took = (rows["delivered_s"] - rows["captured_s"]).drop_nulls().sort() * 1e3
        if took.is_empty():
            continue
        # Of equal times, the last: a step ends at the number of all of them.
        ends = took.to_frame("took").with_row_index("count", offset=1).group_by("took").last()
        ends = ends.sort("took")
        # A step begins at zero.
        times[name] = pl.concat([ends["took"].head(1) * (1 - 1e-9), ends["took"]])
        shares[name] = pl.concat(
            [pl.Series("count", [0.0]), ends["count"].cast(pl.Float64) * 100 / rows.height]
        )
    title = "Share of voice frames delivered within a time of their capture"
    made = chart_of("delay-ecdf", title, "%", (), flow_lines(shares, styles, times))
    over = {"label": "time from capture to delivery / ms", "unit": "ms"}
    return made and {**made, "stepped": 1, "range": (0, 102), "over": over}


def _film(result: RunData, styles: Mapping[str, FlowStyle]) -> dict[str, Any] | None:
    """The delay of each frame of video; below, those that were never complete."""
    frames = result.video_frames()
    lines = []
    for name in frames["flow"].unique(maintain_order=True).to_list()[:MOST_LINES]:
        rows = frames.filter(flow=name)
        whole = rows.drop_nulls("complete_s")
        delay = (whole["complete_s"] - whole["captured_s"]) * 1e3
        colour = styles[name].colour
        lines.append(line_of(name, colour, (), delay, x=whole["captured_s"], points=True))
        never = rows.filter(rows["complete_s"].is_null())["captured_s"]
        if never.len():
            words = f"{name}: never complete"
            zero = [0.0] * never.len()
            lines.append(line_of(words, DROP, (), zero, x=never, points=True))
    title = "Delay of each frame of video, from capture to its last packet; at 0: never complete"
    return chart_of("frame-delay", title, "ms", (), lines)
