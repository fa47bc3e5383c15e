"""The section with the scores of the sound: PESQ, ViSQOL and PLCMOS, and what each one misses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from talkspurt import intervals, scores
from talkspurt.figures.style import FlowStyle
from talkspurt.figures.time import styles_of
from talkspurt.metrics.catalogue import column
from talkspurt.report.chart import Number, chart_of
from talkspurt.report.series import MOST_LINES, flow_lines
from talkspurt.scores import saying

if TYPE_CHECKING:
    from talkspurt.metrics import Column
    from talkspurt.results.run_data import RunData
    from talkspurt.results.study_data import StudyData

MOST_ROWS = 60


@dataclass(frozen=True)
class Sound:
    """The section.

    Attributes:
        about: what the scores are.
        axes: names of the axes of a study.
        columns: one for each model.
        rows: one for each call, or flow under a setting.
        styles: colour and dashes by flow; empty for a study.
        apart: where scores contradict each other.
        missing: why calls have no score.
        meanings: what each model measures and misses.
        more: number of further rows.
        marks: explanations of the marks of intervals.
    """

    about: str
    axes: list[str]
    columns: list[Column]
    rows: list[saying.Row]
    styles: Mapping[str, FlowStyle]
    apart: list[str]
    missing: list[str]
    meanings: list[str]
    more: int
    marks: list[str]


def of_result(result: RunData) -> Sound | None:
    """The scores of a run; None if it has not been scored."""
    if not result.is_scored:
        return None
    return _sound([result], [], saying.of_result(result), styles_of(result), [])


def of_study(study: StudyData) -> Sound | None:
    """The scores of a study; None if it has not been scored."""
    if not study.is_scored:
        return None
    marks = intervals.legend(study.summary(tuple(scores.MODELS)).iter_rows(named=True))
    axes = [axis.name for axis in study.axes]
    return _sound(study.runs, axes, saying.of_study(study), {}, marks)


def _sound(
    runs: Sequence[RunData],
    axes: list[str],
    rows: list[saying.Row],
    styles: Mapping[str, FlowStyle],
    marks: list[str],
) -> Sound:
    return Sound(
        about=saying.ABOUT,
        axes=axes,
        columns=[column(model) for model in scores.MODELS],
        rows=rows[:MOST_ROWS],
        styles=styles,
        apart=saying.apart(rows),
        missing=scores.said(runs),
        meanings=saying.meanings(runs),
        more=max(0, len(rows) - MOST_ROWS),
        marks=marks,
    )


def charts(
    result: RunData, calls: Sequence[str], styles: Mapping[str, FlowStyle]
) -> list[dict[str, Any]]:
    """A chart for each model with the scores of the segments of calls."""
    if not result.is_scored:
        return []
    segments = result.scores.drop_nulls("segment")
    made = []
    for model in scores.MODELS.values():
        steps: dict[str, list[tuple[float, float, Number]]] = {}
        for row in segments.iter_rows(named=True):
            if row["flow"] in calls[:MOST_LINES]:
                end = row["start_s"] + row["duration_s"]
                step = (row["start_s"], end, scores.value(row, model.name))
                steps.setdefault(row["flow"], []).append(step)
        ends = {end for of in steps.values() for _, end, _ in of}
        x = sorted({start for of in steps.values() for start, _, _ in of} | ends)
        lines = {flow: [_at(of, time) for time in x] for flow, of in steps.items()}
        title = f"{model.label} of each segment of {scores.SEGMENT_S:g} s"
        chart = chart_of(model.name, title, "", x, flow_lines(lines, styles))
        if chart:
            made.append({**chart, "stepped": -1, "range": (0.9, 5.1)})
    return made


def _at(steps: Sequence[tuple[float, float, Number]], time: float) -> Number:
    """The value of the step that ends at a time or after it: it is drawn back to the one before."""
    first = steps[0][0]
    return next(
        (v for start, end, v in steps if start < time <= end or start == time == first), None
    )
