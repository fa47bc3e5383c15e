"""The result of many runs: its data, and what is drawn and saved of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from talkspurt.results.result import Result
from talkspurt.results.saving import Saved
from talkspurt.results.study_data import StudyData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from talkspurt.figures.values import Kind


@dataclass(frozen=True, repr=False)
class Study(StudyData, Saved):
    """The results of all runs of a scenario: :class:`StudyData`, figures and a report."""

    runs: Sequence[Result]

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
        """A measure of all runs as a matplotlib figure; intervals where there are replications.

        Args:
            measure: a metric of flows or links that ``talkspurt metrics`` lists.
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

        Raises:
            KeyError: if the metric, axis, flow or link does not exist, or the packet table is
                missing.
            ValueError: if there is no value, or it cannot be drawn in this way.
        """
        from talkspurt.figures import plot

        return plot.figure(
            self, measure, over=over, by=by, kind=kind, flow=flow, link=link, bin_s=bin_s, time=time
        )

    def _write(self, folder: Path) -> None:
        from talkspurt._storage import writer

        writer.write_study(self, folder)

    def _draw(self, folder: Path, *, pdf: bool) -> None:
        from talkspurt.report import pictures

        pictures.of_study(self, folder, pdf=pdf)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the study's report, one self-contained HTML file; returns its path."""
        from talkspurt.report import study

        target = Path(path)
        target.write_text(study.html(self), encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        from talkspurt.report import notebook

        return notebook.study(self)
