"""The pages: a dossier per study and a summary, in a folder for independent verification.

Next to each page are the scenarios of its runs, its figures and its ns-2 script. A row names its
runs, their seed, digest and command to repeat them, and how its number is computed.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from talkspurt import _core, figures
from talkspurt._storage import file_access, output_folder
from talkspurt.report import page
from talkspurt.reproduce import Reproduction, document
from talkspurt.reproduce import rows as verdicts
from talkspurt.reproduce.band import SHARE
from talkspurt.reproduce.figures import Picture, pictures
from talkspurt.reproduce.lab import Case
from talkspurt.reproduce.sample import show
from talkspurt.reproduce.study_file import FILES, recorded

GRADES = {
    verdicts.MATCHES: "0",
    verdicts.SAME_ORDERING: "2",
    verdicts.UNDERSPECIFIED: "3",
    verdicts.UNDECIDED: "3",
    verdicts.GIVEN: "none",
}
"""Colours of verdicts, like the report's grades; others are 5."""


def write(
    found: Iterable[Reproduction],
    study: str,
    folder: Path,
    *,
    step: Callable[[str], None] = lambda _: None,
    pdf: bool = False,
) -> list[Reproduction]:
    """Write everything to an existing folder; yields the studies without their runs.

    Each study is written when it is ready, while the next ones run; then its runs are released.
    With ``pdf``, each figure is also written as PDF.
    """
    written = []
    for one in found:
        step(f"dossier of {one.file.name}")
        _write_study(one, folder / one.file.name, pdf=pdf)
        written.append(dataclasses.replace(one, cases={}))
    file_access.write_text(folder / "rows.json", file_access.to_json(document(written, study)))
    file_access.write_text(folder / "index.html", summary(written))
    header = {"talkspurt": _core.version(), "kind": "reproduction", "study": study}
    file_access.write_text(folder / output_folder.MANIFEST, file_access.to_json(header))
    return written


def _write_study(one: Reproduction, folder: Path, *, pdf: bool) -> None:
    for case in one.cases.values():
        file_access.write_text(folder / "scenarios" / f"{case.name}.toml", case.toml)
    digests = {
        case.name: {str(run.seed): run.digest for run in case.runs} for case in one.cases.values()
    }
    file_access.write_text(folder / "scenarios" / "digests.json", file_access.to_json(digests))
    for suffix in ("toml", "tcl", "ns2.json", "linux.json"):
        file = FILES / f"{one.file.name}.{suffix}"
        if file.is_file():
            file_access.write_text(
                folder / f"{one.file.name}.{suffix}", file.read_text(encoding="utf-8")
            )
    drawn = write_figures(pictures(one), folder, pdf=pdf)
    file_access.write_text(folder / "index.html", study_page(one, drawn))


def write_figures(drawn: Iterable[Picture], folder: Path, *, pdf: bool) -> list[Markup]:
    """Write figures in all formats; returns them as SVG for the page."""
    inline = []
    for picture in drawn:
        made = figures.formats(picture.figure, as_pdf=pdf)
        for ending, data in made.items():
            file_access.write_bytes(folder / "figures" / f"{picture.name}.{ending}", data)
        inline.append(Markup(figures.inline_svg(made["svg"], picture.alt)))
    return inline


def study_page(one: Reproduction, drawn: Iterable[Markup]) -> str:
    """The dossier of one study with its figures."""
    varied = f", varied ({', '.join(one.sets)})" if one.sets else ""
    return page.render(
        "dossier.html.j2",
        title=f"{one.file.name}{varied}: {one.file.title}",
        study=one.file,
        rows=[_row(one, row) for row in one.rows],
        tally=graded_tally(one.rows),
        figures=list(drawn),
        runs=[_run(case) for case in one.cases.values()],
        ns2=recorded(one.file.name, "ns2"),
        linux=recorded(one.file.name, "linux"),
    )


def summary(found: Sequence[Reproduction]) -> str:
    """The summary page of all studies."""
    every = [row for one in found for row in one.rows]
    return page.render(
        "dossiers.html.j2",
        title="Published studies, re-run",
        studies=[(one.file, len(one.rows), graded_tally(one.rows)) for one in found],
        total=(len(every), graded_tally(every)),
        classes=verdicts.CLASSES,
        rows=[(one.file.name, _row(one, row)) for one in found for row in one.rows],
    )


def graded_tally(rows: Sequence[verdicts.Row]) -> list[tuple[str, int, str]]:
    """Each verdict, how many rows have it, and its colour."""
    return [
        (verdict, count, GRADES.get(verdict, "5"))
        for verdict, count in zip(verdicts.CLASSES, verdicts.tally(rows), strict=True)
    ]


def cells(row: verdicts.Row) -> dict[str, Any]:
    """What a page says of a row, whatever the origin of its values."""
    spec = row.spec
    return {
        "id": spec.id,
        "anchor": spec.id.replace("/", "-"),
        "quantity": spec.quantity,
        "where": spec.where,
        "unit": spec.unit,
        "paper": show(spec.paper),
        "verdict": row.verdict,
        "grade": GRADES.get(row.verdict, "5"),
        "reason": row.reason,
        "band": spec.band.words(spec.unit) or "the same words",
    }


def _row(one: Reproduction, row: verdicts.Row) -> dict[str, Any]:
    spec, shown = row.spec, cells(row)
    return shown | {
        "stated": row.stated.show(),
        "inferred": row.inferred.show(),
        "ns2": show(row.ns2),
        "band": shown["band"]
        + (", more than half of the runs, each by itself" if spec.of == SHARE else ""),
        "how": one.file.recipe(spec.id),
        "changed": spec.changed_after_runs,
        "each": [
            # In seed order.
            (whose, ", ".join(map(show, sample.values)))
            for whose, sample in (("stated", row.stated), ("inferred", row.inferred))
            if sample.replications > 1
        ],
        "cases": [_run(one.cases[name]) for name in one.values.cases.get(spec.id, ()) if one.cases],
    }


def _run(case: Case) -> dict[str, Any]:
    last = case.runs[-1].seed
    return {
        "name": case.name,
        "profile": case.profile,
        "seeds": str(case.first.seed) if last == case.first.seed else f"{case.first.seed}–{last}",
        "several": case.replications > 1,
        "digest": case.first.digest,
        "file": f"scenarios/{case.name}.toml",
        "command": shlex.join(
            ["talkspurt", "run", f"scenarios/{case.name}.toml"]
            + [word for one in case.sets for word in ("--set", one)]
        ),
    }
