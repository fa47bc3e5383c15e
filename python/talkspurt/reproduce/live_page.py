"""The page of a study that was measured in real time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from talkspurt import figures
from talkspurt.report import page
from talkspurt.reproduce.dossier import GRADES, graded_tally, linux_values
from talkspurt.reproduce.sample import show

if TYPE_CHECKING:
    from talkspurt.reproduce.live import LiveRow
    from talkspurt.reproduce.study_file import StudyFile


def live_page(
    file: StudyFile,
    rows: Sequence[LiveRow],
    facts: Mapping[str, Mapping[str, Any]],
    notes: Sequence[str],
    drawn: Iterable[tuple[bytes, str]],
) -> str:
    """The page: its rows, the ``facts`` of the runs, ``notes`` on the machine, and figures."""
    from markupsafe import Markup

    shown = [
        {
            "id": row.row.spec.id,
            "anchor": row.row.spec.id.replace("/", "-"),
            "quantity": row.row.spec.quantity,
            "unit": row.row.spec.unit,
            "where": row.row.spec.where,
            "paper": show(row.row.spec.paper),
            "simulated": show(row.simulated),
            "live": show(row.row.inferred.value),
            "kernel": show(row.kernel),
            "band": row.row.spec.band.words(row.row.spec.unit) or "the same words",
            "verdict": row.row.verdict,
            "grade": GRADES.get(row.row.verdict, "5"),
            "reason": row.row.reason,
        }
        for row in rows
    ]
    return page.render(
        "live.html.j2",
        title=f"{file.name}, live: {file.title}",
        study=file,
        rows=shown,
        tally=graded_tally([row.row for row in rows]),
        runs=facts,
        notes=notes,
        figures=[Markup(figures.inline_svg(svg, alt)) for svg, alt in drawn],
        linux=linux_values(file.name),
    )
