"""The result of many runs: its data, and what is drawn and saved of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from talkspurt.results.result import Result
from talkspurt.results.saving import Saved
from talkspurt.results.study_data import StudyData


@dataclass(frozen=True, repr=False)
class Study(StudyData, Saved):
    """The results of all runs of a scenario: :class:`StudyData`, figures and a report."""

    runs: Sequence[Result]

    def _html(self) -> str:
        from talkspurt.report import study

        return study.html(self)

    def _write(self, folder: Path) -> None:
        from talkspurt._storage import writer

        writer.write_study(self, folder)

    def _draw(self, folder: Path, *, pdf: bool) -> None:
        from talkspurt.report import pictures

        pictures.of_study(self, folder, pdf=pdf)

    def _repr_html_(self) -> str:
        from talkspurt.report import notebook

        return notebook.study(self)
