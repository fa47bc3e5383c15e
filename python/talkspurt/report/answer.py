"""The sections on calls: their scores and whether these are valid, and scores of the sound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from talkspurt import intervals, scores
from talkspurt._text.format import verdict
from talkspurt.analysis.answer import ESTIMATE, Answer, answer, shown
from talkspurt.analysis.cautions import out_of_range
from talkspurt.figures.charts import styles_of
from talkspurt.figures.style import Style, transport_style
from talkspurt.metrics.catalogue import VIEWS, column
from talkspurt.results.groups import condensed
from talkspurt.results.run_data import RunData
from talkspurt.results.study_data import StudyData
from talkspurt.scores import saying

RUN_COLUMNS = tuple(VIEWS["report_calls"])
STUDY_COLUMNS = tuple(VIEWS["report_study_calls"])
MAX_ROWS = 60
UNFOLDED = 3
"""Sentences that are there to see, if no more are said of calls and pictures."""

Row = Mapping[str, Any]
"""A row of the flows table, or several condensed to one."""


def of_result(result: RunData) -> dict[str, Any] | None:
    """The calls of a run; None if it has none."""
    styles = styles_of(result)
    every = result.flows.filter(source="speech").to_dicts()
    found = answer(result)
    score, columns = _columns(RUN_COLUMNS, every, found)
    rows = [
        {
            "settings": (),
            "name": row["name"],
            "over": row["transport"] or "several",
            "style": styles[row["first"]],
            "mos": (column(score).of(row), ""),
            "limits": limits(members_of(every, row), score),
            "missing": missing(members_of(every, row), score),
            # The classes are of the E-model.
            "verdict": verdict(row["r_factor"]) if score == "mos" else None,
            "cells": [(column(name).of(row), "") for name in columns],
        }
        for row in condensed(every)
    ]
    return _answer(found, score, [], columns, rows, [])


def _columns(names: Sequence[str], calls: Sequence[Row], found: Answer) -> tuple[str, list[str]]:
    """The score that stands first, and the other columns of a table of calls."""
    there = shown(("mos", *names), calls, found.judged_by)
    score = ESTIMATE if ESTIMATE in there else "mos"
    return score, [name for name in there if name != score]


def score_of(found: dict[str, Any] | None) -> str:
    """The metric that is the score of all calls of a page."""
    return found["score"].name if found else "mos"


def members_of(every: Iterable[Row], row: Row) -> list[Row]:
    """The flows of a row: one, or those of its group."""
    if row["name"] == row["first"]:
        return [row]
    return [one for one in every if one.get("group") == row["group"]]


def of_study(study: StudyData) -> dict[str, Any] | None:
    """The calls of a study under each setting; None if it has none, and nothing else to say."""
    axes = [axis.column for axis in study.axes]
    members: dict[tuple[str, ...], list[Row]] = {}
    over: dict[tuple[str, ...], str] = {}
    for row in study.rows(study.flows.filter(source="speech")):
        key = (*(row[axis] for axis in axes), row.get("group") or row["name"])
        members.setdefault(key, []).append(row)
        over[key] = row["transport"]
    found: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    answered = answer(study)
    calls = study.flows.drop_nulls("concealed_ratio").to_dicts()
    score, columns = _columns(STUDY_COLUMNS, calls, answered)
    for row in study.rows(study.summary(("mos", score, "r_factor", *columns))):
        key = (*(row[axis] for axis in axes), row["flow"])
        if key in members:
            found.setdefault(key, {})[row["measure"]] = row
    rows = [
        {
            "settings": key[:-1],
            "name": intervals.flow(cells[score]),
            "over": over[key],
            "style": transport_style(over[key]),
            "mos": intervals.texts(cells[score]),
            "limits": limits(members[key], score),
            "missing": missing(members[key], score),
            "verdict": verdict(cells["r_factor"]["mean"]) if score == "mos" else None,
            "cells": [intervals.texts(cells[name]) for name in columns],
        }
        for key, cells in found.items()
    ]
    seen = [row for cells in list(found.values())[:MAX_ROWS] for row in cells.values()]
    names = [axis.name for axis in study.axes]
    return _answer(answered, score, names, columns, rows, intervals.legend(seen))


def _answer(
    found: Answer,
    score: str,
    axes: list[str],
    columns: Sequence[str],
    rows: list[dict[str, Any]],
    marks: list[str],
) -> dict[str, Any] | None:
    """The values for the template: the sentences and the table below them, with a row per call."""
    if not rows and not (axes and found.lines):
        return None
    return {
        "sentences": found.lines,
        # What is said of sound and of pictures is not folded.
        "unfolded": max(UNFOLDED, len(found.sentences)),
        "judged_by": found.judged_by,
        "score": column(score),
        "rated": any(row["verdict"] or row["limits"] or row["missing"] for row in rows),
        **_table(axes, columns, rows, marks),
    }


def _table(
    axes: list[str], columns: Iterable[str], rows: Sequence[Any], marks: list[str]
) -> dict[str, Any]:
    return {
        "axes": axes,
        "columns": [column(name) for name in columns],
        "rows": rows[:MAX_ROWS],
        "more": max(0, len(rows) - MAX_ROWS),
        "marks": marks,
    }


def missing(flows: Sequence[Row], score: str = "mos") -> str:
    """Why none of these rows of the flows table has a score; empty if one has."""
    notes = [flow.get("quality_note") for flow in flows if flow[score] is None]
    if not notes or len(notes) < len(flows):
        return ""
    return str(notes[0]).split("; ")[0] if notes[0] else ""


def limits(flows: Sequence[Row], score: str = "mos") -> list[str]:
    """Why scores are outside the range of their model, of one row of the flows table or several."""
    outside = [clauses for flow in flows if (clauses := out_of_range(flow, score))]
    if len(flows) < 2 or not outside:
        return outside[0] if outside else []
    # A row of a study is one flow in several runs, or a group of calls in each of them.
    what = "runs" if len({flow["name"] for flow in flows}) == 1 else "calls"
    return [f"{len(outside)} of {len(flows)} {what}, one with {', '.join(outside[0])}"]


def sound_of_result(result: RunData) -> dict[str, Any] | None:
    """The scores of a run; None if it has not been scored."""
    if not result.is_scored:
        return None
    return _sound([result], [], saying.of_result(result), styles_of(result), [])


def sound_of_study(study: StudyData) -> dict[str, Any] | None:
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
    styles: Mapping[str, Style],
    marks: list[str],
) -> dict[str, Any]:
    return {
        "about": f"{saying.ABOUT} {saying.judged(runs)}",
        "styles": styles,
        "apart": saying.apart(rows),
        "missing": scores.said(runs),
        "meanings": saying.meanings(runs),
        **_table(axes, scores.MODELS, rows, marks),
    }
