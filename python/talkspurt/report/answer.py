"""The first section of a report: every call with its score, and whether the score is valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from talkspurt import comparing, intervals, leading
from talkspurt._text.format import Verdict, verdict
from talkspurt.analysis.cautions import out_of_range
from talkspurt.figures.style import FlowStyle, TransportStyle, transport_style
from talkspurt.figures.time import styles_of
from talkspurt.metrics.catalogue import VIEWS, column
from talkspurt.results.groups import condensed

if TYPE_CHECKING:
    from talkspurt.metrics import Column
    from talkspurt.results.run_data import RunData
    from talkspurt.results.study_data import StudyData

RUN_COLUMNS = tuple(VIEWS["report_calls"])
STUDY_COLUMNS = tuple(VIEWS["report_study_calls"])
MOST_ROWS = 60

Cell = tuple[str, str]
"""A mean, and its interval or an empty text."""


@dataclass(frozen=True)
class Row:
    """One call.

    Attributes:
        settings: the label of each axis of a study.
        name: its name.
        over: its transport.
        style: its colour and dashes.
        mos: its score.
        limits: why the score is outside the range of the E-model; empty if it is not.
        missing: why there is no score; empty if there is one.
        verdict: user satisfaction.
        cells: the further columns.
    """

    settings: tuple[str, ...]
    name: str
    over: str
    style: FlowStyle
    mos: Cell
    limits: list[str]
    missing: str
    verdict: Verdict | None
    cells: list[Cell]


@dataclass(frozen=True)
class Answer:
    """The section.

    Attributes:
        sentences: what is said above the table.
        axes: names of the axes of a study.
        columns: the columns after score, name, transport and satisfaction.
        rows: one for each call.
        more: number of further calls.
        marks: explanations of the marks of intervals.
    """

    sentences: list[str]
    axes: list[str]
    columns: list[Column]
    rows: list[Row]
    more: int
    marks: list[str]


def sentences(of: RunData | StudyData) -> list[str]:
    """The sentences above the table, as on the terminal: what is best, and the calls compared."""
    from talkspurt.results.run_data import RunData

    if isinstance(of, RunData):
        of_calls = [*leading.of_result(of), *comparing.of_result(of).sentences()]
        return [*of_calls, *comparing.notes(of.flows)]
    said = comparing.sentences(of).values()
    compared = [words for some in said for words in some]
    return [*leading.sentences(of), *compared, *comparing.notes(of.flows)]


def of_result(result: RunData) -> Answer | None:
    """The calls of a run; None if it has none."""
    styles = styles_of(result)
    every = result.flows.filter(source="speech").to_dicts()
    rows = [
        Row(
            settings=(),
            name=row["name"],
            over=row["transport"] or "several",
            style=styles[row["first"]],
            mos=(column("mos").show(row["mos"]), ""),
            limits=limits(_members(every, row), "calls"),
            missing=missing(_members(every, row)),
            verdict=verdict(row["r_factor"]),
            cells=[(column(name).show(row[name]), "") for name in RUN_COLUMNS],
        )
        for row in condensed(every)
    ]
    return _answer(result, [], RUN_COLUMNS, rows, [])


def _members(every: Iterable[Mapping[str, Any]], row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The flows of a row: one, or those of its group."""
    if row["name"] == row["first"]:
        return [row]
    return [one for one in every if one.get("group") == row["group"]]


def of_study(study: StudyData) -> Answer | None:
    """The calls of a study under each setting; None if it has none, and nothing else to say."""
    axes = [axis.column for axis in study.axes]
    members: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    over: dict[tuple[str, ...], str] = {}
    for row in study.rows(study.flows.filter(source="speech")):
        key = (*(row[axis] for axis in axes), row.get("group") or row["name"])
        members.setdefault(key, []).append(row)
        over[key] = row["transport"]
    found: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for row in study.rows(study.summary(("mos", *STUDY_COLUMNS))):
        key = (*(row[axis] for axis in axes), row["flow"])
        if key in members:
            found.setdefault(key, {})[row["measure"]] = row
    rows = [
        Row(
            settings=key[:-1],
            name=intervals.flow(cells["mos"]),
            over=over[key],
            style=_plain(transport_style(over[key])),
            mos=intervals.texts(cells["mos"]),
            limits=limits(members[key], "runs"),
            missing=missing(members[key]),
            verdict=verdict(cells["r_factor"]["mean"]),
            cells=[intervals.texts(cells[name]) for name in STUDY_COLUMNS],
        )
        for key, cells in found.items()
    ]
    shown = [row for cells in list(found.values())[:MOST_ROWS] for row in cells.values()]
    return _answer(
        study, [axis.name for axis in study.axes], STUDY_COLUMNS, rows, intervals.legend(shown)
    )


def _answer(
    of: RunData | StudyData,
    axes: list[str],
    columns: Sequence[str],
    rows: list[Row],
    marks: list[str],
) -> Answer | None:
    said = sentences(of)
    if not rows and not (axes and said):
        return None
    more = max(0, len(rows) - MOST_ROWS)
    return Answer(said, axes, [column(name) for name in columns], rows[:MOST_ROWS], more, marks)


def _plain(style: TransportStyle) -> FlowStyle:
    return FlowStyle(style.colour, style.marker, ())


def missing(flows: Sequence[Mapping[str, Any]]) -> str:
    """Why none of these rows of the flows table has a score; empty if one has."""
    notes = [flow.get("quality_note") for flow in flows if flow["r_factor"] is None]
    if not notes or len(notes) < len(flows):
        return ""
    return str(notes[0]).split("; ")[0] if notes[0] else ""


def limits(flows: Sequence[Mapping[str, Any]], what: str) -> list[str]:
    """Why scores are outside the range of the E-model, of one row of the flows table or several."""
    outside = [clauses for flow in flows if (clauses := out_of_range(flow))]
    if len(flows) < 2 or not outside:
        return outside[0] if outside else []
    return [f"{len(outside)} of {len(flows)} {what}, one with {', '.join(outside[0])}"]
