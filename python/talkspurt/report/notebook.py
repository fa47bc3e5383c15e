"""Notebook display of a result or a study."""

from __future__ import annotations

from html import escape

from talkspurt import intervals
from talkspurt._text.escaping import visible
from talkspurt.figures.scale import headed
from talkspurt.metrics.catalogue import VIEWS, column
from talkspurt.results.run_data import RunData
from talkspurt.results.study_data import StudyData

COLUMNS = tuple(VIEWS["notebook"])
MAX_ROWS = 60


def result(of: RunData) -> str:
    """Title, and a table of the flows."""
    rows = [
        [row["name"], row["transport"], *(column(c).of(row, unit=True) for c in COLUMNS)]
        for row in of.flows.head(MAX_ROWS).iter_rows(named=True)
    ]
    heads = ["flow", "over", *(column(c).label for c in COLUMNS)]
    digest = f"<p><small>digest {escape(of.digest)}</small></p>" if of.digest else ""
    more = of.flows.height - MAX_ROWS
    rest = f"<p><small>and {more} more flows, in .flows</small></p>" if more > 0 else ""
    return f"<h4>{_escape(of.title)}</h4>{_table(heads, rows)}{rest}{digest}"


def study(of: StudyData) -> str:
    """Title, and the means with intervals."""
    from talkspurt.report import study as page

    axes = [axis.name for axis in of.axes]
    summary = of.rows(of.summary(COLUMNS))
    lines = page._rows(summary, [axis.column for axis in of.axes])
    rows = [
        [
            *line["settings"],
            line["flow"],
            *(intervals.text(line["cells"].get(c, {}).get("row")) for c in COLUMNS),
        ]
        for line in lines[:MAX_ROWS]
    ]
    heads = [*axes, "flow", *(headed(column(c).label, column(c).shown_unit) for c in COLUMNS)]
    said = intervals.legend(cell["row"] for line in lines for cell in line["cells"].values())
    if len(lines) > MAX_ROWS:
        said.append(f"The first {MAX_ROWS} of {len(lines)} rows; summary() has all.")
    notes = "".join(f"<p><small>{escape(words)}</small></p>" for words in said)
    return f"<h4>{_escape(of.title)}</h4>{_table(heads, rows)}{notes}"


def _escape(text: str) -> str:
    return escape(visible(text, lines=True))


def _table(heads: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{_escape(cell)}</th>" for cell in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{_escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
