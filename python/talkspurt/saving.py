"""Putting an answer away: what saving one run and saving a study have in common."""

from __future__ import annotations

import os
from pathlib import Path


class Saved:
    """An answer that can be written into a folder; who inherits says what belongs there."""

    name: str

    def save(
        self,
        directory: str | os.PathLike[str],
        *,
        report: bool = True,
        pdf: bool = False,
        overwrite: bool = False,
    ) -> Path:
        """Write everything into a folder, whole or not at all; returns where it is.

        An earlier result of the same scenario is replaced; one of another, or an export, only with
        ``overwrite``; what talkspurt did not write is always left alone.

        Args:
            directory: where.
            report: whether to draw figures and write the report.
            pdf: write each figure as PDF, too, beside SVG and PNG.
            overwrite: replace a result of another scenario, or an export.

        Raises:
            talkspurt.store.StoreError: when the folder is somebody else's or cannot be written, or
                the disk has no room for the captures and the packet table.
        """
        from talkspurt import room, store

        claim = store.Claim("run", self.name, self._file(), overwrite)
        with store.Staging(Path(directory), claim) as staging:
            need = self._packet_bytes()
            room.check(
                need, "what was recorded of packets", staging.target, "choose another folder"
            )
            self._write(staging.folder)
            if report:
                self._draw(staging.folder, pdf=pdf)
            return staging.commit()

    def _file(self) -> str | None:
        """Where the scenario was read from, if it was a file."""
        raise NotImplementedError

    def _packet_bytes(self) -> float:
        """How many bytes what was recorded of packets takes on the disk."""
        raise NotImplementedError

    def _write(self, folder: Path) -> None:
        """Write tables, recordings and manifest."""
        raise NotImplementedError

    def _draw(self, folder: Path, *, pdf: bool) -> None:
        """Write figures and report."""
        raise NotImplementedError
