"""A table of many runs as one frame, without a frame for each run where that can be avoided.

A frame of one row costs as much as one of thousands. Rows of runs that end here are gathered as
they end; files of saved runs are read together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from talkspurt import _core
from talkspurt._lazy import pl
from talkspurt._storage.file_access import of_polars
from talkspurt.results import validation
from talkspurt.results.run_data import SUMMARIES, RunData

if TYPE_CHECKING:
    from talkspurt._cluster.work import Rows

RUN = "run"
"""First column of a stack: the index of the run that a row is of."""
MAX_WAITING = 1000
"""Runs whose rows wait to become a frame."""


class Gathered:
    """The summary tables of runs as they end."""

    def __init__(self) -> None:
        self._fresh = _core.Summaries()
        self._rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SUMMARIES}
        self._frames: dict[str, list[pl.DataFrame]] = {name: [] for name in SUMMARIES}
        self._kinds: dict[str, Mapping[str, str]] = {}
        self._runs: set[int] = set()
        self._waiting = 0

    def add(self, i: int, outcome: _core.Outcome | Rows) -> None:
        """Add the rows of run ``i``, once."""
        if i in self._runs:
            return
        if isinstance(outcome, _core.Outcome):
            self._fresh.add(i, outcome)
        else:
            for name, rows in self._rows.items():
                rows += ({RUN: i, **row} for row in outcome.rows(name))
                if name not in self._kinds:
                    self._kinds[name] = outcome.columns(name)
        self._runs.add(i)
        self._waiting += 1
        if self._waiting == MAX_WAITING:
            self._join()

    def _join(self) -> None:
        for name, rows in self._rows.items():
            self._frames[name].append(pl.DataFrame(self._fresh.take(name)))
            if rows:
                kinds = {column: getattr(pl, kind) for column, kind in self._kinds[name].items()}
                frame = pl.DataFrame(rows, schema={RUN: pl.Int64, **kinds}, orient="row")
                self._frames[name].append(frame)
                rows.clear()
        self._waiting = 0

    def stacks(self, runs: Mapping[int, RunData]) -> dict[str, pl.DataFrame]:
        """The summary tables of all runs of a study; those not added are read from their files."""
        if not self._runs:
            return {}
        if self._waiting:
            self._join()
        others = [i for i in sorted(runs) if i not in self._runs]
        there = {}
        for name, frames in self._frames.items():
            if others:
                found = stack([runs[i] for i in others], name)
                places = pl.Series(RUN, others, dtype=pl.Int64)
                frames.append(found.with_columns(places.gather(found[RUN])))
            there[name] = _whole(frames).sort(RUN, maintain_order=True)
            frames[:] = [there[name]]
        return there

    def read(self, i: int, name: str) -> pl.DataFrame | None:
        """A table of run ``i``, once there are :meth:`stacks`; None if runs may be without it."""
        if name not in self._frames:
            if name in ("packets", "scores"):
                return None
            raise KeyError(name)
        (frame,) = self._frames[name]
        return frame.filter(pl.col(RUN) == i).drop(RUN)


def stack(runs: Sequence[RunData], table: str) -> pl.DataFrame:
    """This table of all runs in order; first column ``RUN``.

    Raises:
        KeyError: if a run has no such table.
        talkspurt.errors.StoreError: if a file cannot be read.
    """
    if (found := _together(runs, table)) is not None:
        return found
    parts = (run.table(table) for run in runs)
    return _whole(
        [
            part.select(pl.lit(i, dtype=pl.Int64).alias(RUN), pl.all())
            for i, part in enumerate(parts)
        ]
    )


def _whole(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(parts, how="diagonal_relaxed", rechunk=True)


def _together(runs: Sequence[RunData], table: str) -> pl.DataFrame | None:
    """The files of the runs, read at once; None if that does not work."""
    # Those that run here, or have been read, are in memory.
    there = [run._outcome is not None or table in run._tables for run in runs]
    files = [None if it else run._file_of(table) for it, run in zip(there, runs, strict=True)]
    if len(files) < 2 or None in files:
        return None
    try:
        found = pl.read_parquet([*map(str, files)], glob=False, include_file_paths=RUN)
    except BaseException as error:
        # One by one, they are read, or the damaged one is named.
        if isinstance(error, (OSError, ValueError, TypeError)) or of_polars(error):
            return None
        raise
    known = [run._known for run in runs if run._known is not None]
    try:
        if known:
            found = validation.table(table, found, validation.Known.union(known), of=RUN)
            if table in SUMMARIES:
                every = found.group_by(RUN, maintain_order=True).agg("name")["name"]
                for one, names in zip(known, every, strict=True):
                    validation.check_names(table, names, one)
    except ValueError:
        return None
    place = pl.col(RUN).rle_id().cast(pl.Int64)
    if found[RUN].n_unique() != len(files):
        return None
    return found.select(place, pl.exclude(RUN)).rechunk()
