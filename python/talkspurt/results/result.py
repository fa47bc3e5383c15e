"""The results of runs: their data, and what is drawn and saved of them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from talkspurt._storage import disk_space, remote, writer
from talkspurt._storage.output_folder import DRAWN, Claim, Staging
from talkspurt._text.format import same
from talkspurt.analysis.answer import Answer, answer
from talkspurt.results.run_data import RunData
from talkspurt.results.study_data import StudyData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.figures.values import Kind


class Saved:
    """A run or a study that can be drawn, and written to a folder."""

    name: str

    @property
    def answer(self) -> Answer:
        """What is best, by how much, and why."""
        assert isinstance(self, (RunData, StudyData))
        return answer(self)

    def figure(
        self,
        measure: str | Sequence[str],
        *,
        over: str | None = None,
        by: str | None = None,
        kind: Kind | None = None,
        flow: str | None = None,
        link: str | None = None,
        bin_s: float | None = None,
        time: bool = False,
        size: tuple[float | None, float | None] = (None, None),
    ) -> Figure:
        """Measures as a matplotlib figure; intervals where there are replications.

        Of one run, a name of ``talkspurt.figures.KINDS`` without any other option but ``flow`` and
        ``link`` is that figure, as in the report.

        Args:
            measure: a metric of flows or links that ``talkspurt metrics`` lists, or a title of the
                tables on the terminal; of several, one below the other.
            over: what the x axis is: an axis of the study, ``flow``, ``link``, ``transport`` or
                ``source``, or ``time``. Default: an axis that does not change the transport,
                preferably one of numbers; for a metric that is drawn against time or another
                quantity, that quantity. If ``over`` is given for such a metric, its mean over each
                run is drawn.
            by: what colours distinguish, from the same list. Default: what changes the transport.
                Everything else that varies has panels of its own.
            kind: ``lines`` or ``points`` (means with intervals, joined or with the values of the
                replications), ``bars``, ``box``, ``cdf`` (of the values of all runs, or of those
                over time) or ``map`` (cells over ``over`` and ``by``). Default: bars over names,
                lines over numbers and time, points for one quantity against another.
            flow: one flow, or the flows of a ``count``; default: all that have a value.
            link: one link, for metrics of links; of two metrics with one name, those of links.
            bin_s: bin width in seconds, for metrics counted in time bins.
            time: draw the metric over time that belongs to a number of the whole run, as
                ``goodput_over_time`` to ``goodput_bps``.
            size: width and height in inches; None: 7.2, and more for many bars; the height that
                the panels need.

        Raises:
            KeyError: if the figure, metric, axis, flow or link does not exist, or the packet table
                is missing.
            ValueError: if there is no value, or it cannot be drawn in this way.
        """
        options: Any = {"over": over, "by": by, "kind": kind, "bin_s": bin_s, "time": time}
        from talkspurt import figures
        from talkspurt.figures import plot, style

        study: Any = self
        if isinstance(self, RunData):
            kind_of_report = same(measure, figures.KINDS) if isinstance(measure, str) else ""
            plain = all(one in (None, False) for one in options.values())
            if kind_of_report in figures.KINDS and plain:
                drawn = figures.figure(self, kind_of_report, flow=flow, link=link)
                style.set_size(drawn, size)
                return drawn
            study = StudyData.of_run(self)
        return plot.figure(study, measure, flow=flow, link=link, size=size, **options)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the report, one self-contained HTML file; returns its path."""
        target, answer = Path(path), cast("Any", self)
        if isinstance(self, RunData):  # the page of a study imports more
            from talkspurt.report import single

            page = single.html(answer)
        else:
            from talkspurt.report import study

            page = study.html(answer)
        target.write_text(page, encoding="utf-8")
        return target

    def _draw(
        self, folder: Path, step: Callable[[str], None] = lambda _: None, **options: bool
    ) -> None:
        """Write figures and report to its folder; ``step`` is called with the next one."""
        from talkspurt.report import pictures

        draw: Any = pictures.of_result if isinstance(self, RunData) else pictures.of_study
        draw(self, folder, step, **options)

    def save(
        self,
        directory: str | os.PathLike[str],
        *,
        report: bool = True,
        pdf: bool = False,
        overwrite: bool = False,
    ) -> Path:
        """Write everything to a folder, atomically; returns its path.

        An earlier result of the same scenario is replaced; one of another, or an export, only with
        ``overwrite``; files not written by talkspurt are never touched.

        Args:
            directory: the output folder, or a URL that fsspec knows, such as ``s3://bucket/name``.
            report: whether to write the report, and the figures of a study as SVG and PNG;
                without, earlier ones stay.
            pdf: also write every figure as a file, as SVG, PNG and PDF.
            overwrite: replace a result of another scenario, or an export.

        Raises:
            talkspurt.errors.StoreError: if the folder has other content or cannot be written, or
                the disk has no space for the captures and the packet table. If only the report
                cannot be written, the tables are.
        """
        answer: Any = self
        single = isinstance(self, RunData)
        runs = [self] if isinstance(self, RunData) else answer.runs
        claim = Claim("run", self.name, runs[0].manifest.get("file"), overwrite)
        with contextlib.ExitStack() as stack:
            target = Path(directory)
            far = remote.of(directory)
            if far is not None:
                far.check(claim)
                target = far.folder(stack.enter_context(tempfile.TemporaryDirectory()))
            staging = stack.enter_context(Staging(target, claim, far))
            need = float(sum(file.stat().st_size for run in runs for file in run._files()))
            what = "what was recorded of packets"
            disk_space.check(need, what, staging.target, "choose another folder")
            write = writer.write_result if single else writer.write_study
            write(answer, staging.folder)
            if report:
                with staging.drawing():
                    self._draw(staging.folder, pdf=pdf)
            else:
                staging.keep(DRAWN)
            staging.commit()
            if staging.undrawn is not None:
                raise staging.undrawn
        return Path(directory) if far else staging.target

    def _repr_html_(self) -> str:
        from talkspurt.report import notebook

        answer: Any = self
        return notebook.result(answer) if isinstance(self, RunData) else notebook.study(answer)


class Result(RunData, Saved):
    """The result of one run: its data (:class:`RunData`), figures and report."""


@dataclass(frozen=True, repr=False)
class Study(StudyData, Saved):
    """The results of all runs of a scenario: :class:`StudyData`, figures and a report."""

    runs: Sequence[Result]
