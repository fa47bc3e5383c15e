"""Drawings of a result on disk: figures, the network picture, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from talkspurt import figures
from talkspurt._storage import file_access
from talkspurt._storage.output_folder import FIGURES, REPORT
from talkspurt._text.escaping import visible
from talkspurt.figures.style import Drawn
from talkspurt.report import single, topology

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.results.run_data import RunData
    from talkspurt.results.study_data import StudyData


def of_result(
    result: RunData,
    folder: Path,
    step: Callable[[str], None] = lambda _: None,
    *,
    every: bool = False,
    pdf: bool = False,
) -> None:
    """Write the report of one run, next to its tables, and its figures as files on request.

    The report draws its charts itself: to import the plotting library takes longer than many runs.
    """
    _network(result, folder)
    found = figures.every(result, only_of_report=not (every or pdf))
    drawn = _figures(found, folder, step, pdf=pdf)
    step("report")
    file_access.write_text(folder / REPORT, single.html(result, drawn))


def of_study(
    study: StudyData,
    folder: Path,
    step: Callable[[str], None] = lambda _: None,
    *,
    pdf: bool = False,
) -> None:
    """Draw a study, next to its tables; each figure also as PDF on request."""
    # A run does not need what they import.
    from talkspurt.figures import comparison
    from talkspurt.report import study as page

    _network(study.runs[0], folder)
    drawn = _figures(comparison.every(study), folder, step, pdf=pdf)
    step("report")
    file_access.write_text(folder / REPORT, page.html(study, drawn))


def _network(result: RunData, folder: Path) -> None:
    picture = topology.of_result(result)
    if picture:
        file_access.write_text(
            folder / FIGURES / "topology.svg", visible(topology.file(picture), lines=True)
        )


def _figures(
    drawn: Iterator[tuple[str, Figure]], folder: Path, step: Callable[[str], None], *, pdf: bool
) -> list[Drawn]:
    kept = []
    for name, figure in drawn:
        step(f"figure {name}")
        made = figures.formats(figure, as_pdf=pdf)
        for ending, data in made.items():
            file_access.write_bytes(
                folder / FIGURES / f"{file_access.file_name(name)}.{ending}", data
            )
        kept.append(Drawn.of(name, figure, made["svg"]))
    return kept
