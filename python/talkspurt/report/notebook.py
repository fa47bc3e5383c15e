"""What a notebook shows when a result or a study is the last line of a cell."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from talkspurt import measures

if TYPE_CHECKING:
    from talkspurt.result import Result
    from talkspurt.study import Study

COLUMNS = (
    "goodput_bps",
    "delay_p50_s",
    "delay_p95_s",
    "mouth_to_ear_p50_s",
    "loss_ratio",
    "r_factor",
    "mos",
)


def result(of: Result) -> str:
    """Title, and a table of the flows."""
    rows = [
        [
            row["name"],
            row["transport"],
            *(measures.measure(c).show(row[c], unit=True) for c in COLUMNS),
        ]
        for row in of.flows.head(40).iter_rows(named=True)
    ]
    heads = ["flow", "over", *(measures.measure(c).label for c in COLUMNS)]
    digest = f"<p><small>digest {escape(of.digest)}</small></p>"
    return f"<h4>{escape(of.title)}</h4>{_table(heads, rows)}{digest}"


def study(of: Study) -> str:
    """Title, and the means with intervals."""
    from talkspurt.report import study as page

    axes = [axis.name for axis in of.axes]
    lines = page._rows(of.summary(COLUMNS).to_dicts(), axes)[:60]
    rows = [
        [
            *line["settings"],
            line["flow"],
            *(line["cells"][c]["text"] if c in line["cells"] else "–" for c in COLUMNS),
        ]
        for line in lines
    ]
    heads = [*axes, "flow", *(_headed(c) for c in COLUMNS)]
    return f"<h4>{escape(of.title)}</h4>{_table(heads, rows)}"


def _headed(name: str) -> str:
    shown = measures.measure(name)
    return f"{shown.label} / {shown.shown_unit}" if shown.shown_unit else shown.label


def _table(heads: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
