"""The answer on disk: folders that are whole or are not there.

Everything is written into a hidden sibling of the folder asked for and renamed when the last byte
is on the disk, so that Ctrl-C, a kill or a full disk leave nothing that looks like a result. The
manifest lists every file written; a folder with anything else in it is somebody's own and is
never replaced.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from talkspurt.audio import Audio, read_wav
from talkspurt.result import TABLES, Result

if TYPE_CHECKING:
    import polars as pl

    from talkspurt.study import Study

MANIFEST = "manifest.json"
FIGURES = "figures"
AUDIO = "audio"
LOCK = ".lock"


class StoreError(OSError):
    """A result could not be written or read; says which file and why."""


class Staging:
    """A folder in the making; see the head of this file.

    >>> with Staging(Path("runs/x")) as staging:    # doctest: +SKIP
    ...     (staging.folder / "note").write_text("…")
    ...     staging.commit()
    """

    def __init__(self, target: Path) -> None:
        self.target = Path(os.path.abspath(target))
        self.folder = self.target
        self._committed = False
        self._made_parent = False

    def __enter__(self) -> Staging:
        refuse_foreign(self.target)
        parent = self.target.parent
        self._made_parent = not parent.exists()
        with writing(parent):
            parent.mkdir(parents=True, exist_ok=True)
            made = tempfile.mkdtemp(prefix=f".{self.target.name}.partial-", dir=parent)
        self.folder = Path(made)
        umask = os.umask(0)
        os.umask(umask)
        self.folder.chmod(0o777 & ~umask)  # mkdtemp makes it private
        return self

    def commit(self) -> Path:
        """Put the folder in its place, with the manifest's list of files completed."""
        manifest_file = self.folder / MANIFEST
        manifest = json.loads(manifest_file.read_text(encoding="utf-8"))
        names = sorted(str(f.relative_to(self.folder)) for f in files_in(self.folder))
        manifest["files"] = names
        write_text(manifest_file, to_json(manifest))
        for file in files_in(self.folder):
            _flush(file)
        _flush(self.folder)
        with writing(self.target):
            self._swap()
        _flush(self.target.parent)
        self._committed = True
        return self.target

    def _swap(self) -> None:
        """Rename into place; what stood there before is removed only when that is done."""
        if not self.target.is_dir() or not any(self.target.iterdir()):
            self.folder.rename(self.target)
            return
        refuse_foreign(self.target)  # it may have changed while we ran
        old = self.folder.with_name(self.folder.name.replace(".partial-", ".old-"))
        self.target.rename(old)
        try:
            self.folder.rename(self.target)
        except BaseException:
            old.rename(self.target)
            raise
        shutil.rmtree(old, ignore_errors=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._committed:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._made_parent:
            with contextlib.suppress(OSError):
                self.target.parent.rmdir()


class Resumable(Staging):
    """A folder in the making that outlives Ctrl-C and kills, if it holds finished parts.

    Its name holds ``key``, a hash of everything that makes the parts what they are; who comes again
    with the same key finds them. A part is finished when its folder below ``runs`` has lost its
    ``.part``. The folder is locked while somebody works in it.
    """

    def __init__(self, target: Path, key: str, parts: int) -> None:
        super().__init__(target)
        self._key = key
        self._parts = parts
        self._lock: IO[bytes] | None = None

    def __enter__(self) -> Resumable:
        refuse_foreign(self.target)
        parent = self.target.parent
        self._made_parent = not parent.exists()
        self.folder = parent / f".{self.target.name}.unfinished-{self._key}"
        with writing(parent):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / LOCK).open("wb")
        if not _locked(self._lock):
            self._lock.close()
            raise StoreError(
                errno.EAGAIN, "another talkspurt is at work on the same study", str(self.target)
            )
        for part in (self.folder / "runs").glob("*.part"):
            shutil.rmtree(part)
        return self

    @property
    def finished(self) -> list[Path]:
        """Folders of the parts that are whole."""
        return sorted(file.parent for file in (self.folder / "runs").glob(f"*/{MANIFEST}"))

    @property
    def others(self) -> list[Path]:
        """What was left behind of this name, made by another scenario or version."""
        found = self.target.parent.glob(f".{self.target.name}.unfinished-*")
        return sorted(folder for folder in found if folder != self.folder)

    def commit(self) -> Path:
        """Put the folder in its place."""
        (self.folder / LOCK).unlink()
        return super().commit()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        kept = 0 if self._committed else len(self.finished)
        if kept and error is not None:
            error.add_note(
                f"{kept} of {self._parts} runs are kept: the same command goes on from there"
            )
        if kept:
            # Nothing of what was begun, and nothing beside the parts.
            for file in self.folder.iterdir():
                if file.name not in ("runs", LOCK):
                    shutil.rmtree(file) if file.is_dir() else file.unlink()
            for part in (self.folder / "runs").glob("*.part"):
                shutil.rmtree(part, ignore_errors=True)
        else:
            super().__exit__(kind, error, trace)
        if self._lock is not None:
            self._lock.close()


def _locked(file: IO[bytes]) -> bool:
    """Whether the file is ours alone now, until it is closed or we are gone."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def refuse_foreign(target: Path) -> None:
    """Raise StoreError unless the folder is absent, empty, or only what talkspurt wrote."""
    if not target.exists() and not target.is_symlink():
        return
    other = "choose another --out"
    if not target.is_dir():
        raise StoreError(errno.EEXIST, f"exists and is not a folder; {other}", str(target))
    if target.is_symlink():
        raise StoreError(errno.EEXIST, f"is a symbolic link; {other}", str(target))
    present = {str(f.relative_to(target)) for f in files_in(target)}
    if not present:
        return
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        manifest = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
        foreign = (
            sorted(present - {*manifest["files"], MANIFEST}) if "talkspurt" in manifest else []
        )
        if "talkspurt" in manifest and not foreign:
            return
        if foreign:
            message = f"holds {foreign[0]}, which talkspurt did not write; move it or {other}"
            raise StoreError(errno.EEXIST, message, str(target)) from None
    raise StoreError(errno.EEXIST, f"exists and is not a result of talkspurt; {other}", str(target))


def files_in(folder: Path) -> Iterator[Path]:
    """Every file below a folder, in order of name."""
    return (f for f in sorted(folder.rglob("*")) if f.is_symlink() or not f.is_dir())


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn any failure to write into a StoreError that names the file."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise _failure(error.errno, error, path) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "polars":
            raise
        raise _failure(_number_of_writing(path), error, path) from error


def _number_of_writing(path: Path) -> int | None:
    """The system's error number, by writing there again: polars does not always pass it on."""
    try:
        with path.open("ab") as file:
            file.write(bytes(1 << 16))
    except OSError as error:
        return error.errno
    return None


def _failure(number: int | None, error: Exception, path: Path) -> StoreError:
    words = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk quota is used up",
        errno.EFBIG: "the file would be longer than the system's limit",
        errno.EACCES: "no permission to write there",
        errno.EROFS: "the file system is read-only",
    }
    reason = words.get(number or 0) or getattr(error, "strerror", None) or str(error)
    return StoreError(number or errno.EIO, f"cannot write: {reason}", str(path))


def _flush(path: Path) -> None:
    """fsync, so that a renamed folder is whole even if the power fails."""
    with writing(path):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_text(file: Path, text: str) -> None:
    """Write a text file, or say which file could not be written."""
    write_bytes(file, text.encode("utf-8"))


def write_bytes(file: Path, data: bytes) -> None:
    """Write a file, or say which file could not be written."""
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def write_table(file: Path, frame: pl.DataFrame) -> None:
    """Write a Parquet file, or say which file could not be written."""
    with writing(file):
        frame.write_parquet(file, compression="zstd")


def to_json(value: Any) -> str:
    """JSON as people read it."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_result(
    result: Result,
    folder: Path,
    *,
    report: bool = True,
    pdf: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> None:
    """Write one run into a folder that exists; ``step`` hears what is written next."""
    step("tables")
    write_text(folder / "scenario.toml", result.scenario)
    write_text(folder / "topology.json", to_json(result.topology))
    for name in TABLES:
        write_table(folder / f"{name}.parquet", result.table(name))
    with contextlib.suppress(KeyError):
        write_table(folder / "packets.parquet", result.table("packets"))
    _copy_captures(result, folder)
    step("recordings")
    for name in result.heard:
        audio = result.audio(name)
        write_bytes(folder / AUDIO / file_name(name, "sent.wav"), audio.sent_wav())
        write_bytes(folder / AUDIO / file_name(name, "received.wav"), audio.received_wav())
    if report:
        _write_pictures(result, folder, step, pdf=pdf)
    header = {"name": result.name, "title": result.title, "description": result.description}
    write_text(folder / MANIFEST, to_json({**result.manifest, **header}))


def _write_pictures(
    result: Result, folder: Path, step: Callable[[str], None], *, pdf: bool
) -> None:
    from talkspurt import figures
    from talkspurt.report import single

    write_topology(result, folder)
    for name, figure in figures.every(result):
        step(f"figure {name}")
        for ending, data in figures.formats(figure, as_pdf=pdf).items():
            write_bytes(folder / FIGURES / f"{file_name(name)}.{ending}", data)
    step("report")
    write_text(folder / "report.html", single.html(result))


def write_topology(result: Result, folder: Path) -> None:
    """Write the picture of the network among the figures."""
    from talkspurt.figures.time import styles_of
    from talkspurt.report import topology

    picture = topology.picture(result.topology, styles_of(result))
    if picture:
        write_text(folder / FIGURES / "topology.svg", topology.file(picture))


def _copy_captures(result: Result, folder: Path) -> None:
    if result._captures is None:
        return
    for file in sorted(Path(result._captures).glob("*.pcapng")):
        if file.parent != folder:
            with writing(folder / file.name):
                shutil.copyfile(file, folder / file.name)


def file_name(name: str, ending: str = "") -> str:
    """A flow's or link's name as a file name."""
    safe = "".join(c if c.isalnum() or c in "._-+ " else "_" for c in name)
    return f"{safe}.{ending}" if ending else safe


def load(folder: Path) -> Result | Study:
    """Open results saved before; see :func:`talkspurt.load`."""
    manifest = _read_manifest(folder)
    if manifest.get("kind") == "study":
        from talkspurt.study import Study

        return Study.of_folder(folder, manifest)
    if manifest.get("kind") == "reproduction":
        raise StoreError(
            errno.EINVAL,
            "holds the dossiers of published studies: open index.html, or read rows.json",
            str(folder),
        )
    return load_result(folder, manifest)


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreError(
            errno.ENOENT, "there is no result of talkspurt here", str(folder)
        ) from None
    except ValueError as error:
        raise StoreError(errno.EIO, f"not a manifest: {error}", str(folder / MANIFEST)) from None
    if not isinstance(manifest, dict) or "talkspurt" not in manifest:
        raise StoreError(errno.EIO, "not a manifest of talkspurt", str(folder / MANIFEST))
    return manifest


def load_result(folder: Path, manifest: dict[str, Any] | None = None) -> Result:
    """Open the result of one run; tables are read when they are asked for."""
    manifest = manifest if manifest is not None else _read_manifest(folder)
    return Result(
        name=manifest["name"],
        title=manifest["title"],
        description=manifest["description"],
        settings=manifest["settings"],
        replicate=manifest["replicate"],
        seed=manifest["seed"],
        scenario=(folder / "scenario.toml").read_text(encoding="utf-8"),
        topology=json.loads((folder / "topology.json").read_text(encoding="utf-8")),
        manifest=manifest,
        _read_table=functools.partial(_read_table, folder),
        _read_audio=functools.partial(_read_audio, folder),
        _captures=folder,
    )


def _read_table(folder: Path, name: str) -> pl.DataFrame | None:
    import polars as pl

    file = folder / f"{name}.parquet"
    return pl.read_parquet(file) if file.exists() else None


def _read_audio(folder: Path, name: str) -> Audio | None:
    sent = folder / AUDIO / file_name(name, "sent.wav")
    if not sent.exists():
        return None
    said, rate = read_wav(sent)
    heard, _ = read_wav(folder / AUDIO / file_name(name, "received.wav"))
    return Audio(name, said, heard, rate)
