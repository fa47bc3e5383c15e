"""The result of one run: its data, and what is drawn and saved of it."""

from __future__ import annotations

from pathlib import Path

from talkspurt.results.run_data import RunData
from talkspurt.results.saving import Saved


class Result(RunData, Saved):
    """The result of one run: its data (:class:`RunData`), figures and report."""

    def _html(self) -> str:
        from talkspurt.report import single

        return single.html(self)

    def _write(self, folder: Path) -> None:
        from talkspurt._storage import writer

        writer.write_result(self, folder)

    def _draw(self, folder: Path, *, pdf: bool) -> None:
        from talkspurt.report import pictures

        pictures.of_result(self, folder, pdf=pdf)

    def _repr_html_(self) -> str:
        from talkspurt.report import notebook

        return notebook.result(self)
