"""Saving of results: common parts of runs and studies."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


class Saved:
    """A result that can be written to a folder; subclasses define the content."""

    name: str

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
        from talkspurt._storage import disk_space, remote
        from talkspurt._storage.output_folder import DRAWN, Claim, Staging

        claim = Claim("run", self.name, self._file(), overwrite)
        with contextlib.ExitStack() as stack:
            target = Path(directory)
            far = remote.of(directory)
            if far is not None:
                far.check(claim)
                target = far.folder(stack.enter_context(tempfile.TemporaryDirectory()))
            staging = stack.enter_context(Staging(target, claim, far))
            need = self._packet_bytes()
            disk_space.check(
                need, "what was recorded of packets", staging.target, "choose another folder"
            )
            self._write(staging.folder)
            if report:
                with staging.drawing():
                    self._draw(staging.folder, pdf=pdf)
            else:
                staging.keep(DRAWN)
            staging.commit()
            if staging.undrawn is not None:
                raise staging.undrawn
        return Path(directory) if far else staging.target

    def _file(self) -> str | None:
        """The file the scenario was read from, if any."""
        raise NotImplementedError

    def _packet_bytes(self) -> float:
        """The disk space of the recorded packets in bytes."""
        raise NotImplementedError

    def _write(self, folder: Path) -> None:
        """Write tables, recordings and manifest."""
        raise NotImplementedError

    def _draw(self, folder: Path, *, pdf: bool) -> None:
        """Write figures and report."""
        raise NotImplementedError
