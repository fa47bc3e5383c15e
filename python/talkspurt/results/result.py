"""The result of one run: its data, and what is drawn and saved of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from talkspurt.results.run_data import RunData
from talkspurt.results.saving import Saved

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.figures.values import Kind


class Result(RunData, Saved):
    """The result of one run: its data (:class:`RunData`), figures and report."""

    def figure(
        self,
        measure: str,
        *,
        over: str | None = None,
        by: str | None = None,
        kind: Kind | None = None,
        flow: str | None = None,
        link: str | None = None,
        bin_s: float | None = None,
        time: bool = False,
    ) -> Figure:
        """A figure: one of ``talkspurt.figures.KINDS``, or a measure of the catalogue.

        A name of ``KINDS`` without any other option but ``flow`` and ``link`` is that figure, as in
        the report. Every other name is a metric, drawn as :meth:`Study.figure` does.

        Raises:
            KeyError: if the figure, metric, flow or link does not exist, or the packet table is
                missing.
            ValueError: if there is no value, or it cannot be drawn in this way.
        """
        from talkspurt import figures

        plain = over is None and by is None and kind is None and bin_s is None and not time
        if measure in figures.KINDS and plain:
            return figures.figure(self, measure, flow=flow, link=link)
        from talkspurt.figures import plot
        from talkspurt.results.study_data import StudyData

        study = StudyData.of_run(self)
        return plot.figure(
            study, measure, over=over, by=by, kind=kind, flow=flow, link=link, bin_s=bin_s,
            time=time,
        )  # fmt: skip

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the report, one self-contained HTML file; returns its path."""
        from talkspurt.report import single

        target = Path(path)
        target.write_text(single.html(self), encoding="utf-8")
        return target

    def _write(self, folder: Path) -> None:
        from talkspurt._storage import writer

        writer.write_result(self, folder)

    def _draw(self, folder: Path, *, pdf: bool) -> None:
        from talkspurt.report import pictures

        pictures.of_result(self, folder, pdf=pdf)

    def _repr_html_(self) -> str:
        from talkspurt.report import notebook

        return notebook.result(self)
