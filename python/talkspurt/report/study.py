"""The report of a study: what was varied, means with intervals, and calls to compare by ear."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from markupsafe import Markup

from talkspurt import figures, intervals
from talkspurt._storage import writer
from talkspurt._text.format import verdict
from talkspurt.analysis.cautions import cautions
from talkspurt.figures import comparison
from talkspurt.figures.panel import across
from talkspurt.figures.style import Drawn
from talkspurt.metrics import Metric
from talkspurt.metrics.catalogue import VIEWS, number
from talkspurt.report import answer, calls, page
from talkspurt.report.single import in_order, network_of, notes
from talkspurt.results.run_data import RunData
from talkspurt.results.study_data import StudyData
from talkspurt.scores import MODELS

COLUMNS = tuple(VIEWS["report_study"])
VIDEO = tuple(VIEWS["video"])
MAX_ROWS = 200


def html(study: StudyData, drawn: Iterable[Drawn] | None = None) -> str:
    """The page; ``drawn`` are the figures of the study, if they have been drawn."""
    one_of_each = [run for run in study.runs if run.replicate == 0]
    found = answer.of_study(study)
    extremes = calls.extremes(study, found["judged_by"]) if found else []
    score = answer.score_of(found)
    columns = _columns(study)
    axes = [axis.column for axis in study.axes]
    videos = _videos(study, axes)
    first = study.runs[0]
    settings = ", ".join(f"{axis} = {label}" for axis, label in first.settings.items())
    network, size = network_of(first)
    if drawn is None:
        drawn = [Drawn.of(name, one) for name, one in comparison.every(study)]
    stills = [
        (
            one.name,
            Markup(figures.inline_svg(one.svg, f"{_said_of(one.name)}. {one.notes}")),
            one.width > comparison.SMALL,
        )
        for one in drawn
    ]
    shown = [
        *columns,
        *(one.name for one in (found["columns"] if found else ())),
        *(VIDEO if videos else ()),
        *(name.removesuffix("-map") for name, *_ in stills),
    ]
    axis = across(study)
    over = axis.name if axis else "nothing"
    rows = _rows(study.rows(study.summary(columns)), axes)
    differences = _differences(study)
    return page.render(
        "study.html.j2",
        study=study,
        title=study.title,
        description=page.markdown(study.description),
        answer=found,
        player=calls.of_runs(study.runs, extremes, _of_run(study, score), size, score),
        sound=answer.sound_of_study(study),
        **network,
        of=f" Of the first run{', ' if settings else ''}{settings}.",
        metrics=in_order(shown),
        videos=videos,
        video_columns=[number(name) for name in VIDEO],
        rows=rows,
        columns=_filled(rows),
        differences=differences,
        most_rows=MAX_ROWS,
        marks=intervals.legend(
            cell["row"]
            for table in (videos, rows, *(one["rows"] for one in differences))
            for row in table[:MAX_ROWS]
            for cell in row["cells"].values()
        ),
        figures=[(svg, whole) for _, svg, whole in stills],
        heading="Sensitivity to the factors" if study.design else f"Over {over}",
        runs=[
            {
                "folder": writer.run_folder(i, run.settings, run.replicate),
                "seed": run.seed,
                "digest": run.digest,
                "hops": run.hops,
            }
            for i, run in enumerate(study.runs[:MAX_ROWS])
        ],
        cautions=cautions(study.flows),
        notes=notes(one_of_each),
    )


def _videos(study: StudyData, axes: list[str]) -> list[dict[str, Any]]:
    if not study.flows["video_frames"].is_not_null().any():
        return []
    rows = _rows(study.rows(study.summary(VIDEO)), axes)
    return [row for row in rows if row["cells"]["video_frames"]["row"]["count"]]


def _columns(study: StudyData) -> tuple[str, ...]:
    """The measures of the tables, with the scores of the sound if there are any."""
    return (*COLUMNS[:1], *MODELS, *COLUMNS[1:]) if study.is_scored else COLUMNS


def _of_run(study: StudyData, score: str) -> Callable[[RunData, str], str]:
    """Which run of a setting a call is of, and the mean score over all runs of the setting."""
    if study.replications < 2:
        return lambda _, __: ""
    axes = [axis.column for axis in study.axes]
    means = {
        (*(row[axis] for axis in axes), row["flow"]): row
        for row in study.rows(study.summary([score]))
    }

    def said(run: RunData, flow: str) -> str:
        row = means[(*run.settings.values(), flow)]
        which = f"run {run.replicate + 1} of {study.replications}, seed {run.seed}"
        return f"{which}; mean {number(score).label} of all {intervals.text(row)}"

    return said


def _said_of(figure: str) -> str:
    """The text alternative of a figure."""
    name = figure.removesuffix("-map")
    return f"{number(name).label} {'with intervals' if name == figure else 'as a map'}"


def _differences(study: StudyData) -> list[dict[str, Any]]:
    """A table for each axis with paired replications."""
    names = [axis.column for axis in study.axes]
    made = []
    for axis, frame in study.comparisons(_columns(study)).items():
        rows = _rows(study.rows(frame), names)
        if rows:
            baseline = study.axis(axis).labels[0]
            made.append(
                {"axis": axis, "baseline": baseline, "rows": rows, "columns": _filled(rows)}
            )
    return made


def _filled(rows: list[dict[str, Any]]) -> list[Metric]:
    """The measures with a value in at least one row."""
    cells = [row["cells"] for row in rows]
    names = dict.fromkeys(name for row in cells for name in row)
    return [
        number(n) for n in names if any(c[n]["row"]["mean"] is not None for c in cells if n in c)
    ]


def _rows(rows: list[dict[str, Any]], axes: list[str]) -> list[dict[str, Any]]:
    """One row per setting and flow, its measures as text with intervals."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in axes)
        flow = intervals.flow(row)
        line = found.setdefault((*key, flow), {"settings": key, "flow": flow, "cells": {}})
        mean, spread = intervals.texts(row)
        spread = spread.replace(" … ", "\u00a0… ").replace(" of ", "\u00a0of\u00a0")
        line["cells"][row["measure"]] = {"row": row, "mean": mean, "spread": spread}
    for line in found.values():
        r_factor = line["cells"].get("r_factor")
        line["verdict"] = verdict(r_factor["row"]["mean"]) if r_factor else None
    return list(found.values())
