"""Folders that are whole or are not there, and that replace nothing but what they are a redoing of.

Everything is written into a hidden sibling of the folder asked for and renamed when the last byte
is on the disk, so that Ctrl-C, a kill or a full disk leave nothing that looks like a result. The
manifest lists every file written; a folder with anything else in it is somebody's own and is
never replaced.

Hidden siblings hold a lock while somebody works in them. Those of the dead are removed by the next
who writes a folder of the same name; what they had moved aside is put back first.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from talkspurt.disk import files_in, flush, to_json, write_text, writing
from talkspurt.errors import StoreError
from talkspurt.interrupts import undisturbed, written

MANIFEST = "manifest.json"
LOCK = ".lock"
OLD = "old"
"""Of a hidden sibling: what stood in the place of the folder asked for."""

OTHER = "choose another --out"


@dataclass(frozen=True)
class Claim:
    """Who is about to write a folder, and so what it may replace: its own kind, of its own name.

    Attributes:
        kind: ``run``, ``export`` or ``reproduction``, a study being a run.
        name: name of the scenario, or of the study that is re-run; absent where any will do.
        file: where the scenario was read from, if it was a file.
        overwrite: whether anything that talkspurt wrote may be replaced.
    """

    kind: str
    name: str | None = None
    file: str | None = None
    overwrite: bool = False

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Claim:
        """Who wrote a folder."""
        kind = str(manifest.get("kind"))
        name = manifest.get("name" if kind in ("result", "study") else "study")
        kind = "run" if kind in ("result", "study") else kind
        return cls(kind, name, manifest.get("file"))

    def may_replace(self, other: Claim) -> bool:
        """Whether that other folder is an earlier one of the same."""
        if self.overwrite:
            return True
        if self.kind != other.kind or (self.name is not None and self.name != other.name):
            return False
        # Two scenarios may have one name; one that was moved is still the same.
        here, there = self.file, other.file
        if not here or not there or not Path(there).is_absolute() or not Path(there).exists():
            return True
        return Path(here).exists() and Path(here).samefile(there)


class Staging:
    """A folder in the making; see the head of this file.

    >>> with Staging(Path("runs/x"), Claim("run", "x")) as staging:    # doctest: +SKIP
    ...     (staging.folder / "note").write_text("…")
    ...     staging.commit()

    Attributes:
        target: the folder asked for.
        folder: where to write.
        news: what was found of others and is worth saying.
    """

    def __init__(self, target: Path, claim: Claim | None = None) -> None:
        self.target = Path(os.path.abspath(target))
        self.claim = claim or Claim("reproduction")
        self.folder = self.target
        self.news: list[str] = []
        self._lock: IO[bytes] | None = None
        self._committed = False
        self._made: list[Path] = []

    def __enter__(self) -> Staging:
        self._look()
        with writing(self.target):
            self.folder, self._lock = _begin(self.target)
        return self

    def _look(self) -> None:
        """Whether the folder may be written is asked before the work; what the dead left, goes."""
        self.news += sweep(self.target)
        refuse_inside(self.target)
        refuse_other(self.target, self.claim)
        self._made = [p for p in self.target.parents if not p.exists()]
        above = next(p for p in self.target.parents if p.exists())
        if not above.is_dir():
            raise StoreError(errno.ENOTDIR, f"{above} is not a folder; {OTHER}", str(self.target))
        with writing(self.target):
            self.target.parent.mkdir(parents=True, exist_ok=True)

    def commit(self) -> Path:
        """Put the folder in its place, with the manifest's list of files completed."""
        manifest_file = self.folder / MANIFEST
        manifest = json.loads(manifest_file.read_text(encoding="utf-8"))
        files = [file for file in files_in(self.folder) if file != self.folder / LOCK]
        manifest["files"] = sorted(str(file.relative_to(self.folder)) for file in files)
        write_text(manifest_file, to_json(manifest))
        for file in files:
            flush(file)
        flush(self.folder)
        with undisturbed(), writing(self.target):
            self._swap()
            self._committed = True
            written.append(self.target)
            (self.target / LOCK).unlink(missing_ok=True)
        flush(self.target.parent)
        return self.target

    def _swap(self) -> None:
        """Rename into place; what stood there before is removed only when that is done."""
        if not self.target.is_dir() or not any(self.target.iterdir()):
            self.folder.rename(self.target)
            return
        refuse_other(self.target, self.claim)  # it may have changed while we ran
        aside, lock = _begin(self.target)
        try:
            self.target.rename(aside / OLD)
            self.folder.rename(self.target)
        finally:
            if not self.target.exists():
                (aside / OLD).rename(self.target)
            shutil.rmtree(aside, ignore_errors=True)
            lock.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._name_what_was_asked_for(error)
        # A second Ctrl-C is no reason to leave half of it behind.
        with undisturbed():
            if not self._committed:
                self._remove()
            if self._lock is not None:
                self._lock.close()

    def _remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        for made in self._made:
            with contextlib.suppress(OSError):
                made.rmdir()

    def _name_what_was_asked_for(self, error: BaseException) -> None:
        """In an error's words, the folder that was asked for in the place of the hidden one."""
        hidden, asked = str(self.folder), str(self.target)
        if isinstance(error, OSError) and isinstance(error.filename, str):
            error.filename = error.filename.replace(hidden, asked)
        elif len(error.args) == 1 and isinstance(error.args[0], str):
            error.args = (error.args[0].replace(hidden, asked),)


class Resumable(Staging):
    """A folder in the making that outlives Ctrl-C and kills, if it holds finished parts.

    Its name holds ``key``, a hash of everything that makes the parts what they are; who comes again
    with the same key finds them. A part is finished when its folder below ``runs`` has lost its
    ``.part``.
    """

    def __init__(self, target: Path, key: str, parts: int, claim: Claim) -> None:
        super().__init__(target, claim)
        self._key = key
        self._parts = parts

    def __enter__(self) -> Resumable:
        self._look()
        folder = self.target.parent / f".{self.target.name}.unfinished-{self._key}"
        with writing(self.target):
            folder.mkdir(exist_ok=True)
            self._lock = _take(folder, make=True)
        if self._lock is None:
            raise StoreError(
                errno.EAGAIN, "another talkspurt is at work on the same study", str(self.target)
            )
        self.folder = folder
        self._keep_parts_only()
        self.news += [
            f"{other} holds runs of another scenario or version, left unfinished; "
            "remove it unless that is to go on"
            for other in self._others()
        ]
        return self

    def check(self) -> None:
        """Raise StoreError if the folder is no longer the one that was begun."""
        assert self._lock is not None, "it was begun"
        begun = os.fstat(self._lock.fileno())
        try:
            same = os.path.samestat(begun, (self.folder / LOCK).stat())
        except OSError:
            same = False
        if not same:
            raise StoreError(
                errno.ENOENT, "was removed while its runs were written", str(self.folder)
            )

    @property
    def finished(self) -> list[Path]:
        """Folders of the parts that are whole."""
        return _finished(self.folder)

    def _others(self) -> Iterator[Path]:
        """What was left behind of this name, made by another scenario or version."""
        pattern = f".{_literal(self.target.name)}.unfinished-*"
        for folder in sorted(self.target.parent.glob(pattern)):
            if folder != self.folder and (lock := _take(folder)) is not None:
                if _finished(folder):
                    yield folder
                else:
                    shutil.rmtree(folder, ignore_errors=True)
                lock.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        kept = 0 if self._committed else len(self.finished)
        if not kept:
            super().__exit__(kind, error, trace)
            return
        if error is not None:
            self._name_what_was_asked_for(error)
            error.add_note(
                f"{kept} of {self._parts} runs are kept: the same command goes on from there"
            )
        with undisturbed():
            self._keep_parts_only()
            if self._lock is not None:
                self._lock.close()

    def _keep_parts_only(self) -> None:
        """Remove what was begun, and what stands beside the parts."""
        for file in self.folder.iterdir():
            if file.name not in ("runs", LOCK):
                shutil.rmtree(file) if file.is_dir() else file.unlink()
        for part in (self.folder / "runs").glob("*.part"):
            shutil.rmtree(part, ignore_errors=True)


def _finished(folder: Path) -> list[Path]:
    return sorted(file.parent for file in (folder / "runs").glob(f"*/{MANIFEST}"))


def _begin(target: Path) -> tuple[Path, IO[bytes]]:
    """A hidden sibling of a folder, and the lock that it holds."""
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
    try:
        lock = _take(folder, make=True)
        assert lock is not None, "nobody else knows of it"
        umask = os.umask(0)
        os.umask(umask)
        folder.chmod(0o777 & ~umask)  # mkdtemp makes it private
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder, lock


def _take(folder: Path, *, make: bool = False) -> IO[bytes] | None:
    """The folder's lock, ours until it is closed or we are gone; None where it is another's.

    Unless it is to be made, None also where there is none, or no way to tell.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        return (folder / LOCK).open("wb") if make else None
    try:
        lock = (folder / LOCK).open("wb" if make else "r+b")
    except OSError:
        if make:
            raise
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock


def sweep(target: Path) -> list[str]:
    """Remove hidden siblings of those who were killed; what they moved aside is put back, and said.

    A folder may stand aside and none in its place between two renames of one who was killed there.
    """
    said = []
    for folder in sorted(target.parent.glob(f".{_literal(target.name)}.partial-*")):
        lock = _take(folder)
        if lock is None:
            continue
        old = folder / OLD / MANIFEST
        if old.exists() and not target.exists():
            with writing(target):
                old.parent.rename(target)
            said.append(f"{target} was moved aside by one who was killed, and is back")
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()
    return said


def _literal(name: str) -> str:
    """A name as a pattern that matches it alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def manifest_of(folder: Path) -> dict[str, Any] | None:
    """The manifest of what talkspurt wrote, or nothing where it did not, or not whole."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and "talkspurt" in manifest else None


def around(place: Path) -> Path | None:
    """The outermost folder of ours in which a place lies, if it lies in one."""
    inside = [parent for parent in place.parents if manifest_of(parent) is not None]
    return inside[-1] if inside else None


def refuse_inside(target: Path) -> None:
    """Raise StoreError if the folder lies in another of ours, which would then be somebody's."""
    if outer := around(target.parent.resolve() / target.name):
        raise StoreError(
            errno.EEXIST, f"lies inside {outer}, which is a whole of its own; {OTHER}", str(target)
        )


def refuse_other(target: Path, claim: Claim) -> None:
    """Raise StoreError unless the folder is absent, empty, or an earlier one of the same."""
    if not target.exists() and not target.is_symlink():
        return
    if not target.is_dir():
        raise StoreError(errno.EEXIST, f"exists and is not a folder; {OTHER}", str(target))
    if target.is_symlink():
        raise StoreError(errno.EEXIST, f"is a symbolic link; {OTHER}", str(target))
    present = {str(f.relative_to(target)) for f in files_in(target)} - {LOCK}
    if not present:
        return
    manifest = manifest_of(target)
    if manifest is None:
        raise StoreError(
            errno.EEXIST, f"exists and is not a result of talkspurt; {OTHER}", str(target)
        )
    listed = manifest.get("files")
    ours = {str(name) for name in listed} if isinstance(listed, list) else set()
    if foreign := sorted(present - ours - {MANIFEST}):
        message = f"holds {foreign[0]}, which talkspurt did not write; move it or {OTHER}"
        raise StoreError(errno.EEXIST, message, str(target))
    if not claim.may_replace(Claim.of(manifest)):
        message = f"holds {what(manifest)}, and would be replaced; {OTHER}"
        if claim.kind == "run":
            message += ", or say --overwrite"
        raise StoreError(errno.EEXIST, message, str(target))


def what(manifest: Mapping[str, Any]) -> str:
    """What a folder holds, in words."""
    kind, name = manifest.get("kind"), manifest.get("file") or manifest.get("name")
    runs = manifest.get("runs")
    if kind == "study" and isinstance(runs, list):
        return f"a study of {len(runs)} runs, made from {name}"
    if kind == "result":
        return f"a run of {name}"
    if kind == "export":
        return f"an export to {manifest.get('to')}"
    if kind == "reproduction":
        return f"the dossiers of {manifest.get('study')}"
    return f"something of kind {kind!r}"
