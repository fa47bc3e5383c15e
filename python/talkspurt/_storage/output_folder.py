"""Atomic output folders that replace only earlier versions of the same output.

Everything is written to a hidden sibling of the requested folder and renamed when the last byte is
on disk, so that Ctrl-C, a kill or a full disk leave nothing that looks like a result. The manifest
lists every file written; a folder with any other file belongs to the user and is never replaced.

Hidden siblings are locked while in use. Those of dead processes are removed by the next writer of
the same folder name, after it has restored what they had moved aside.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from talkspurt._storage import owners
from talkspurt._storage.file_access import (
    files_in,
    flush,
    flush_all,
    folders_in,
    read_json,
    real,
    to_json,
    url_of,
    write_text,
    writing,
)  # fmt: skip
from talkspurt._storage.interrupts import undisturbed, written
from talkspurt.errors import BadInputError, StoreError

if TYPE_CHECKING:
    from talkspurt._storage.remote import Remote

MANIFEST = "manifest.json"
FORMAT = 1
"""Version of the folder format; incremented by changes that old readers would misread."""
REPORT = "report.html"
FIGURES = "figures"
DRAWN = (REPORT, FIGURES)
"""What is drawn from a result; all else is the result."""
LOCK = ".lock"
UNLOCKED_S = 60.0
"""Age of a hidden sibling without lock and content after which nobody is at work on it."""
PART = ".part"
"""End of the name of a part that is being written."""
OLD = "old"
"""In a hidden sibling: the previous content of the requested folder."""

OTHER = "choose another --out"
REMOVE = f"remove it, or {OTHER}"


@dataclass(frozen=True)
class Claim:
    """The identity of an output folder, which decides what it may replace: same kind, same name.

    Attributes:
        kind: ``run``, ``shard``, ``export`` or ``reproduction``, a study being a run.
        name: name of the scenario, or of the study that is re-run; None permits any.
        file: the file the scenario was read from, if any.
        overwrite: whether any talkspurt output may be replaced.
    """

    kind: str
    name: str | None = None
    file: str | None = None
    overwrite: bool = False

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Claim:
        kind = str(manifest.get("kind"))
        name = manifest.get("name" if kind in ("result", "study") else "study")
        if kind == "shard":
            name = f"{manifest.get('name')} {manifest.get('shard')}/{manifest.get('shards')}"
        kind = "run" if kind in ("result", "study") else kind
        return cls(kind, name, manifest.get("file"))

    def may_replace(self, other: Claim) -> bool:
        """Whether the other folder is an earlier version of this one."""
        if self.overwrite:
            return True
        if self.kind != other.kind or (self.name is not None and self.name != other.name):
            return False
        # Two scenarios may share a name; a moved scenario is still the same.
        here, there = self.file, other.file
        if not here or not there or not Path(there).is_absolute() or not Path(there).exists():
            return True
        return Path(here).exists() and Path(here).samefile(there)


class Staging:
    """An output folder being written; see the head of this file.

    >>> with Staging(Path("runs/x"), Claim("run", "x")) as staging:    # doctest: +SKIP
    ...     (staging.folder / "note").write_text("…")
    ...     staging.commit()

    Attributes:
        far: where the folder is uploaded to, if anywhere.
        news: messages about other folders found.
        undrawn: why the report could not be written, if it could not.
    """

    def __init__(self, target: Path, claim: Claim | None = None, far: Remote | None = None) -> None:
        if far is None and (url := url_of(target)):
            raise BadInputError(f"{url}: this is written to a folder of this machine only")
        self.target = Path(os.path.abspath(target))
        self.far = far
        self.claim = claim or Claim("reproduction")
        self.folder = self.target
        self.news: list[str] = []
        self.undrawn: StoreError | None = None
        self._lock: IO[bytes] | None = None
        self._committed = False
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        try:
            self._look()
            # A stop in between is raised at the end of this block, where the folder is known.
            with writing(self.target), undisturbed():
                self._open()
            self._take_up()
            return self
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def _open(self) -> None:
        """Make and lock the folder to write to."""
        self.folder, self._lock = _begin(self.target)

    def _take_up(self) -> None:
        """Continue with what is in the folder."""

    def _look(self) -> None:
        """Check that the folder is writable before the work; remove leftovers of dead processes."""
        self.news += sweep(self.target)
        if outer := around(real(self.target.parent) / self.target.name):
            said = f"lies inside {outer}, which is a whole of its own; {OTHER}"
            raise StoreError(errno.EEXIST, said, str(self.target))
        refuse_other(self.target, self.claim)
        if self.target.is_dir():
            if not owners.is_movable(self.target):
                whose = owners.of(self.target)
                said = f"belongs to {whose}, who alone can replace it there; {OTHER}"
                raise StoreError(errno.EEXIST, said, str(self.target))
            refuse_unwritable([self.target, *folders_in(self.target)])
        self._made = [p for p in self.target.parents if not p.exists()]
        above = next(p for p in self.target.parents if p.exists())
        if not above.is_dir():
            raise StoreError(errno.ENOTDIR, f"{above} is not a folder; {OTHER}", str(self.target))
        with writing(self.target):
            self.target.parent.mkdir(parents=True, exist_ok=True)

    def commit(self) -> Path:
        """Move the folder into place, with a complete list of files in the manifest."""
        manifest_file = self.folder / MANIFEST
        manifest = json.loads(manifest_file.read_text(encoding="utf-8"))
        files = [file for file in files_in(self.folder) if file != self.folder / LOCK]
        start = len(str(self.folder)) + 1
        manifest["files"] = sorted(str(file)[start:] for file in files)
        write_text(manifest_file, to_json(manifest))
        flush_all(files, self.folder)
        with undisturbed(), writing(self.target):
            self._swap()
            self._committed = True
            if self.far is None and self.target not in written:
                written.append(self.target)
            (self.target / LOCK).unlink(missing_ok=True)
        flush(self.target.parent)
        if self.far is not None:
            try:
                self.far.put(self.target)
            except BaseException as error:
                self._say_cut_short(error)
                raise
            written.append(self.far.url)
        return self.target

    def _say_cut_short(self, error: BaseException) -> None:
        assert self.far is not None
        error.add_note(f"the upload to {self.far.url} is not complete: the same command repeats it")

    @contextlib.contextmanager
    def drawing(self) -> Iterator[None]:
        """Write what can be drawn again; if that fails, the tables are kept and nothing is raised.

        Whoever commits the folder raises :attr:`undrawn` afterwards.
        """
        try:
            yield
        except StoreError as error:
            shutil.rmtree(self.folder / FIGURES, ignore_errors=True)
            (self.folder / REPORT).unlink(missing_ok=True)
            self._name_what_was_asked_for(error)
            place = self.far.url if self.far else self.target
            error.add_note(f"the tables are kept: `talkspurt report {place}` draws the report")
            self.undrawn = error

    def keep(self, names: Sequence[str]) -> bool:
        """Copy files or folders of the earlier version; returns whether there were any."""
        there = [self.target / name for name in names if (self.target / name).exists()]
        with writing(self.target):
            for old in there:
                new = self.folder / old.name
                if old.is_dir():
                    shutil.copytree(old, new, dirs_exist_ok=True)
                else:
                    shutil.copy2(old, new)
        return bool(there)

    def _swap(self) -> None:
        """Rename into place; the previous content is removed only afterwards."""
        if not self.target.is_dir() or not any(self.target.iterdir()):
            self.folder.rename(self.target)
            return
        refuse_other(self.target, self.claim)  # it may have changed during the run
        aside, lock = _begin(self.target)
        try:
            self.target.rename(aside / OLD)
            self.folder.rename(self.target)
        finally:
            if not self.target.exists():
                (aside / OLD).rename(self.target)
            shutil.rmtree(aside, ignore_errors=True)
            lock.close()

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            self._name_what_was_asked_for(error)
        # Do not let a second Ctrl-C leave half of it behind.
        with undisturbed():
            if not self._committed:
                if self._lock is not None:
                    self._remove(error)
                for made in self._made:
                    with contextlib.suppress(OSError):
                        made.rmdir()
            if self._lock is not None:
                self._lock.close()

    def _remove(self, error: BaseException | None) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _name_what_was_asked_for(self, error: BaseException) -> None:
        """Replace the hidden folder by the requested one in an error message."""
        hidden, asked = str(self.folder), self.far.url if self.far else str(self.target)
        if isinstance(error, OSError) and isinstance(error.filename, str):
            error.filename = error.filename.replace(hidden, asked)
        elif len(error.args) == 1 and isinstance(error.args[0], str):
            error.args = (error.args[0].replace(hidden, asked),)


class Resumable(Staging):
    """An output folder that survives Ctrl-C and kills if it contains finished parts.

    Its name contains ``key``, a hash of all inputs of the parts; a later process with the same key
    resumes it. A part is finished when its folder in ``runs`` has lost its ``.part``.
    """

    def __init__(
        self, target: Path, key: str, parts: int, claim: Claim, far: Remote | None = None
    ) -> None:
        super().__init__(target, claim, far)
        self._key = key
        self._parts = parts
        self._far_parts: set[str] = set()
        """Names of the parts that are also where the folder goes."""

    def _open(self) -> None:
        folder = self.target.parent / f".{self.target.name}.unfinished-{self._key}"
        folder.mkdir(exist_ok=True)
        # Others can foresee its name: what they put there might lead out of it.
        if folder.is_symlink():
            raise StoreError(errno.EEXIST, f"is a symbolic link; {REMOVE}", str(folder))
        if not owners.is_ours(folder):
            said = f"belongs to {owners.of(folder)}, as whom this study can go on; {REMOVE}"
            raise StoreError(errno.EEXIST, said, str(folder))
        self._lock = _take(folder, make=True)
        if self._lock is None:
            raise StoreError(
                errno.EAGAIN, "another talkspurt is at work on the same study", str(self.target)
            )
        self.folder = folder

    def _take_up(self) -> None:
        self._keep_parts_only()
        if self.far is not None:
            self.far.take_up(self.folder, self._key)
            self._far_parts = {part.name for part in self.finished}
        self.news += [
            f"{other} holds runs of another scenario or version, left unfinished; "
            "remove it unless that is to go on"
            for other in self._others()
        ]

    def finish(self, part: Path) -> None:
        """Keep a finished part also where the folder goes."""
        if self.far is not None:
            self.far.keep(part, self._key)
            # Not before: a signal may stop the upload.
            self._far_parts.add(part.name)

    def check(self) -> None:
        """Raise StoreError if the folder was replaced meanwhile."""
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
        return _finished(self.folder)

    def _others(self) -> Iterator[Path]:
        """Leftovers with this name from another scenario or version."""
        pattern = f".{literal(self.target.name)}.unfinished-*"
        for folder in sorted(self.target.parent.glob(pattern)):
            with contextlib.suppress(FileNotFoundError):
                if folder == self.folder or not owners.is_ours(folder):
                    continue
            if (lock := _take(folder)) is not None:
                if _finished(folder):
                    yield folder
                else:
                    shutil.rmtree(folder, ignore_errors=True)
                lock.close()

    def _say_cut_short(self, error: BaseException, kept: int | None = None) -> None:
        kept = self._parts if kept is None else kept
        error.add_note(
            f"{kept} of {self._parts} runs are kept: the same command goes on from there"
        )

    def _remove(self, error: BaseException | None) -> None:
        # If it goes far, this folder is a temporary one.
        kept = len(self._far_parts) if self.far is not None else len(self.finished)
        if not kept:
            super()._remove(error)
            return
        if error is not None:
            self._say_cut_short(error, kept)
        self._keep_parts_only()

    def _keep_parts_only(self) -> None:
        """Remove unfinished parts and everything else besides parts."""
        for file in self.folder.iterdir():
            if file.name not in ("runs", LOCK) or file.is_symlink():
                _delete(file)
        for part in (self.folder / "runs").glob("*"):
            # What is written must not follow a link out of this folder.
            if part.name.endswith(PART) or part.is_symlink():
                with contextlib.suppress(OSError):
                    _delete(part)


@contextlib.contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A hidden sibling of an existing folder to write to; it is removed at the end."""
    # Not beside a link to it, from where files might not be moved into it.
    there = real(target)
    whole = around(there / MANIFEST) or there
    refuse_link(there / FIGURES)
    refuse_unwritable([*{there, whole}, *filter(Path.is_dir, [there / FIGURES])])
    with contextlib.ExitStack() as made:
        with writing(target), undisturbed():
            folder, lock = _begin(there)
            made.callback(_discard, folder, lock)
        yield folder


def add(source: Path, target: Path) -> list[str]:
    """Move all files of a folder into a result's folder, list them in its manifest; their names.

    Each replaces an earlier file of its name at once. For a run of a study, the study lists them.
    """
    fresh = [file for file in files_in(source) if file != source / LOCK]
    whole = around(real(target) / MANIFEST)
    assert whole is not None, "it holds a result"
    with undisturbed(), writing(target):
        manifest = read_json(whole / MANIFEST)
        added = [str(file.relative_to(source)) for file in fresh]
        inside = [real(target) / file.relative_to(source) for file in fresh]
        names = {str(file.relative_to(whole)) for file in inside}
        manifest["files"] = sorted(names | listed(manifest))
        write_text(source / MANIFEST, to_json(manifest))
        flush(source / MANIFEST)
        # First: files of which only some arrive must not look like the user's.
        (source / MANIFEST).replace(whole / MANIFEST)
        for file in fresh:
            flush(file)
            _move(file, real(target), file.relative_to(source))
    return added


def _move(file: Path, folder: Path, name: Path) -> None:
    """Move a file into a folder that others may change; no link leads it out of there."""
    place = folder / name
    if os.rename not in os.supports_dir_fd:  # not on Windows
        place.parent.mkdir(parents=True, exist_ok=True)
        file.replace(place)
        return
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for i, part in enumerate(name.parts[:-1]):
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=at)
            try:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            except OSError as error:
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                inside = str(folder.joinpath(*name.parts[: i + 1]))
                said = "is a symbolic link or a file; remove it"
                raise StoreError(errno.EEXIST, said, inside) from None
            os.close(at)
            at = inner
        os.replace(file, name.name, dst_dir_fd=at)
    finally:
        os.close(at)


def part(folder: Path) -> Path:
    """The folder of a run until it is complete."""
    return folder.with_name(f"{folder.name}{PART}")


def _finished(folder: Path) -> list[Path]:
    parts = [file.parent for file in (folder / "runs").glob(f"*/{MANIFEST}")]
    # The manifest of an unfinished one is there just before it is renamed, and on a full disk.
    return sorted(part for part in parts if not part.name.endswith(PART))


def _delete(place: Path) -> None:
    """Remove a file, a folder with its content, or a link without what it leads to."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()


def _begin(target: Path) -> tuple[Path, IO[bytes]]:
    """A hidden sibling of a folder, and its lock."""
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


def _discard(folder: Path, lock: IO[bytes]) -> None:
    with undisturbed(), lock:
        shutil.rmtree(folder, ignore_errors=True)


def _take(folder: Path, *, make: bool = False) -> IO[bytes] | None:
    """The folder's lock, held until closed or process exit; None if another process holds it.

    Unless ``make``, also None if there is no lock file, or locking is unsupported.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        return (folder / LOCK).open("wb") if make else None
    try:
        # Others may know its name before: a link there would truncate what it names.
        how = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | (os.O_CREAT if make else 0)
        lock = os.fdopen(os.open(folder / LOCK, how, 0o666), "r+b")
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
    """Remove hidden siblings of dead processes; returns messages on restored folders.

    A process killed between two renames leaves the old folder moved aside and none in its place.
    """
    said = []
    for folder in sorted(target.parent.glob(f".{literal(target.name)}.partial-*")):
        try:
            if not owners.is_ours(folder):
                whose = f"{folder} is not of this user but of {owners.of(folder)}"
                said.append(f"{whose}; it can be removed unless a talkspurt is at work there")
                continue
        except FileNotFoundError:  # its process has ended
            continue
        lock = _take(folder)
        if lock is None:
            # Killed before it made the lock, which takes no minute, if nobody is at work there.
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > UNLOCKED_S:
                    folder.rmdir()  # fails if it is not empty
            continue
        old = folder / OLD / MANIFEST
        if old.exists() and not target.exists():
            with writing(target):
                old.parent.rename(target)
            said.append(f"{target} was moved aside by one who was killed, and is back")
        # The lock last: if this is killed meanwhile, another can tell.
        with contextlib.suppress(OSError):
            for place in folder.iterdir():
                if place.name != LOCK:
                    _delete(place)
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()
    return said


def literal(name: str) -> str:
    """A glob pattern that matches only this name."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def manifest_of(folder: Path) -> dict[str, Any] | None:
    """The manifest of a talkspurt folder; None if it is missing or invalid."""
    try:
        manifest = read_json(folder / MANIFEST)
    except OSError:
        return None
    return manifest if isinstance(manifest, dict) and "talkspurt" in manifest else None


def around(place: Path) -> Path | None:
    """The outermost talkspurt folder that contains a path, if any."""
    inside = [parent for parent in place.parents if manifest_of(parent) is not None]
    return inside[-1] if inside else None


def refuse_other(target: Path, claim: Claim) -> None:
    """Raise StoreError unless the folder is absent, empty, or an earlier version."""
    if not target.exists() and not target.is_symlink():
        return
    if not target.is_dir():
        raise StoreError(errno.EEXIST, f"exists and is not a folder; {OTHER}", str(target))
    if target.is_symlink():
        raise StoreError(errno.EEXIST, f"is a symbolic link; {OTHER}", str(target))
    present = {str(f.relative_to(target)) for f in files_in(target)} - {LOCK}
    refuse_content(present, manifest_of(target), claim, str(target))


def refuse_unwritable(folders: Iterable[Path]) -> None:
    """Raise StoreError for the first folder in which this process cannot write."""
    for folder in folders:
        if not owners.is_writable(folder):
            said = "cannot write: no permission to write there"
            raise StoreError(errno.EACCES, said, str(folder))


def refuse_link(place: Path) -> None:
    """Raise StoreError for a symbolic link, through which files would be written elsewhere."""
    if place.is_symlink():
        raise StoreError(errno.EEXIST, "is a symbolic link; remove it", str(place))


def refuse_content(
    present: Collection[str], manifest: Mapping[str, Any] | None, claim: Claim, target: str
) -> None:
    """Raise StoreError unless files are an earlier version, or there are none."""
    if not present:
        return
    if manifest is None:
        raise StoreError(errno.EEXIST, f"exists and is not a result of talkspurt; {OTHER}", target)
    if foreign := sorted({*present} - listed(manifest) - {MANIFEST}):
        message = f"holds {foreign[0]}, which talkspurt did not write; move it or {OTHER}"
        raise StoreError(errno.EEXIST, message, target)
    newer = ""
    if manifest.get("format") not in (None, *range(1, FORMAT + 1)) and not claim.overwrite:
        newer = f" in format {manifest['format']}, which this version cannot read"
    if newer or not claim.may_replace(Claim.of(manifest)):
        message = f"holds {what(manifest)}{newer}, and would be replaced; {OTHER}"
        raise StoreError(errno.EEXIST, f"{message}, or say --overwrite", target)


def refuse_file(
    file: Path, is_earlier: Callable[[Path], bool], what: str, *, overwrite: bool = False
) -> None:
    """Raise StoreError for a file that is there, unless it is an earlier output of its kind.

    Pipes and devices are written to.
    """
    if overwrite or not file.is_file() or not file.stat().st_size:
        return
    if is_earlier(file):
        return
    raise StoreError(
        errno.EEXIST, f"exists and is no {what}; choose another name, or say --overwrite", str(file)
    )


def listed(manifest: Mapping[str, Any]) -> set[str]:
    found = manifest.get("files")
    return {str(name) for name in found} if isinstance(found, list) else set()


def what(manifest: Mapping[str, Any]) -> str:
    """A description of a folder's content."""
    kind, name = manifest.get("kind"), manifest.get("file") or manifest.get("name")
    runs = manifest.get("runs")
    if kind == "study" and isinstance(runs, list):
        return f"a study of {len(runs)} runs, made from {name}"
    if kind == "result":
        return f"a run of {name}"
    if kind == "shard":
        shard = f"{manifest.get('shard')} of {manifest.get('shards')}"
        return f"shard {shard} of the study {name}"
    if kind == "export":
        return f"an export to {manifest.get('to')}"
    if kind == "reproduction":
        return f"the dossiers of {manifest.get('study')}"
    if kind == "evaluation":
        return f"the evaluation {manifest.get('study')}"
    return f"something of kind {kind!r}"
