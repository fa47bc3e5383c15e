"""Results behind a URL that fsspec knows: ``s3://``, ``gs://``, ``sftp://``, ``memory://``, ``file://``.

A result is written to a temporary folder of this machine and uploaded when it is complete, its
manifest last: what has a manifest is whole. Until then, a copy of the manifest beside it lists the
files, so that the same command may replace what an upload that was cut short has left. Each
finished run of a study is uploaded at once, as an archive beside the result, so that the same
command continues on any machine. To be read, a result is downloaded to a temporary folder.

fsspec has file systems for all stores in use, and dask brings it along. It is imported if there is
a URL.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from talkspurt._lazy import hashlib, secrets, tarfile
from talkspurt._storage import file_access, output_folder
from talkspurt.errors import BadInputError, MissingExtraError, StoreError

WAITING = 256
"""Files that are transferred in one call."""
UPLOAD = ".talkspurt-upload"
"""Name of a file of this machine until it is complete."""
CUT_SHORT = "its upload was cut short: give the command that wrote it again"


def of(place: str | os.PathLike[str]) -> Remote | None:
    """The place behind a URL, or None for a folder of this machine.

    Raises:
        BadInputError: if there is no such kind of URL.
        talkspurt.errors.MissingExtraError: if a package is not installed.
    """
    url = file_access.url_of(place)
    return None if url is None else Remote(url)


class Remote:
    """A result behind a URL, which may not be there yet."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            core: Any = importlib.import_module("fsspec.core")
        except ImportError:
            raise MissingExtraError(
                f"{url}: URLs need fsspec, not installed: pip install 'talkspurt[remote]'"
            ) from None
        more = {"auto_mkdir": True} if url.startswith("file:") else {}
        try:
            self._system, path = core.url_to_fs(url, **more)
        except ImportError as error:
            raise MissingExtraError(f"{url}: {_reason(error)}") from None
        except Exception as error:  # of the file system's own kinds
            raise BadInputError(f"{url}: cannot be used: {_reason(error)}") from None
        self._path = str(path).rstrip("/")
        above, _, self._name = self._path.rpartition("/")
        self._above = above
        self._beside = f"{above}/.{self._name}"
        self._marker = f"{self._beside}.uploading"
        # The file systems of fsspec remember what was in a folder.
        self._system.invalidate_cache()

    def folder(self, inside: str | os.PathLike[str]) -> Path:
        """The folder of this machine, in a temporary one, in which the result is made."""
        return Path(inside) / self._name

    def check(self, claim: output_folder.Claim) -> None:
        """Check, before the first run, that the result can be written there.

        Raises:
            BadInputError: if it cannot.
            talkspurt.errors.StoreError: if something else is there.
        """
        try:
            with self._talking("write"):
                manifest, names = self._earlier(), self._names()
                # Two may check at the same time. A left one is removed with the next upload.
                place = f"{self._beside}.probe-{secrets.token_hex(4)}"
                with tempfile.TemporaryDirectory() as scratch:
                    probe = Path(scratch) / "probe"
                    probe.write_bytes(b"talkspurt")
                    self._put([(probe, place)])
                with contextlib.suppress(FileNotFoundError):
                    self._system.rm_file(place)
        except StoreError as error:
            raise BadInputError(f"{error.filename}: {error.strerror}") from None
        output_folder.refuse_content(names, manifest, claim, self.url)

    def take_up(self, folder: Path, key: str) -> None:
        """Download the finished runs of an unfinished study into its folder."""
        with self._talking("read"):
            prefix = f"{self._beside}.unfinished-{key}"
            there = self._system.find(prefix) if self._system.exists(prefix) else []
            with tempfile.TemporaryDirectory() as scratch:
                for some in _pieces([name for name in there if name.endswith(".tar")]):
                    files = [Path(scratch) / name.rpartition("/")[2] for name in some]
                    self._system.get(some, [*map(str, files)])
                    for file in files:
                        # If its upload was cut short, the run is repeated.
                        run = folder / "runs" / file.stem
                        with contextlib.suppress(tarfile.TarError, EOFError):
                            _unpack(file, run)
                        shutil.rmtree(output_folder.part(run), ignore_errors=True)
                        file.unlink()

    def keep(self, run: Path, key: str) -> None:
        """Upload a finished run of a study."""
        with tempfile.TemporaryDirectory() as scratch, self._talking("write"):
            archive = Path(scratch) / "run.tar"
            files = [file.relative_to(run) for file in file_access.files_in(run)]
            # What has no manifest is not whole, also in an archive that ends too early.
            files.sort(key=lambda file: str(file) == output_folder.MANIFEST)
            with tarfile.open(archive, "w") as packed:
                for file in files:
                    packed.add(run / file, f"{run.name}/{file.as_posix()}")
            self._put([(archive, f"{self._beside}.unfinished-{key}/{run.name}.tar")])

    def put(self, folder: Path, only: Sequence[str] | None = None) -> None:
        """Upload a complete folder, or ``only`` some of its files, and its manifest last."""
        manifest = folder / output_folder.MANIFEST
        names = [*map(str, only)] if only is not None else None
        if names is None:
            names = [str(file.relative_to(folder)) for file in file_access.files_in(folder)]
        names = [name for name in names if name not in (output_folder.MANIFEST, output_folder.LOCK)]
        with self._talking("write"):
            goal = f"{self._path}/{output_folder.MANIFEST}"
            if only is None:
                before, listed = self._names(), output_folder.listed(self._earlier() or {})
                self._announce(manifest, listed)
                if output_folder.MANIFEST in before:
                    # What is there is not whole from now on.
                    self._system.rm_file(goal)
            self._put([(folder / name, f"{self._path}/{name}") for name in names])
            if only is None:
                stale = (before & listed).difference(names, [output_folder.MANIFEST])
                for some in _pieces([f"{self._path}/{name}" for name in sorted(stale)]):
                    self._system.rm(some)
            self._put([(manifest, goal)])
            if only is None:
                self._remove_left()

    def _announce(self, manifest: Path, listed: Collection[str]) -> None:
        """Say whose the files are until the manifest is there: the new and the earlier ones."""
        said = file_access.read_json(manifest)
        said["files"] = sorted({*output_folder.listed(said), *listed})
        with tempfile.TemporaryDirectory() as scratch:
            marker = Path(scratch) / "marker"
            file_access.write_text(marker, file_access.to_json(said))
            self._put([(marker, self._marker)])

    def _remove_left(self) -> None:
        """Remove what a complete result makes superfluous beside it."""
        start = f".{self._name}."
        for left in self._system.glob(f"{self._above}/{output_folder.literal(start)}*"):
            end = str(left).rpartition("/")[2].removeprefix(start)
            if end == "uploading" or end.startswith(("unfinished-", "probe-")):
                with contextlib.suppress(FileNotFoundError):
                    self._system.rm(left, recursive=True)

    def report(self, folder: Path) -> Path:
        """The folder, with the report if there is one and the result is whole."""
        with self._talking("read"):
            (folder / output_folder.MANIFEST).write_bytes(self._whole())
            with contextlib.suppress(FileNotFoundError):
                self._system.get(
                    [f"{self._path}/{output_folder.REPORT}"], [str(folder / output_folder.REPORT)]
                )
        return folder

    def downloaded(self) -> Path:
        """A folder of this machine with all its files, until the process ends."""
        with self._talking("read"):
            manifest = self._whole()
            key = self.url, hashlib.sha256(manifest).hexdigest()
            if key not in _downloads:
                names = sorted(self._names())
                kept = tempfile.TemporaryDirectory(prefix="talkspurt-")
                folder = self.folder(kept.name)
                for some in _pieces(names):
                    for name in some:
                        (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    there = [f"{self._path}/{name}" for name in some]
                    self._system.get(there, [str(folder / name) for name in some])
                _downloads[key] = kept
            return self.folder(_downloads[key].name)

    def _whole(self) -> bytes:
        """The manifest of a result that is there."""
        manifest = self._read(f"{self._path}/{output_folder.MANIFEST}")
        if _parsed(manifest) is None and self._system.exists(self._marker):
            raise StoreError(errno.EIO, CUT_SHORT, self.url)
        if manifest is None:
            raise StoreError(errno.ENOENT, "there is no result of talkspurt here", self.url)
        return manifest

    def _earlier(self) -> dict[str, Any] | None:
        """The manifest of what is there, also of an upload that was cut short."""
        manifest = _parsed(self._read(f"{self._path}/{output_folder.MANIFEST}"))
        return _parsed(self._read(self._marker)) if manifest is None else manifest

    def _read(self, file: str) -> bytes | None:
        """A manifest, or None if it is not there."""
        try:
            # Not every file system knows a length.
            if (self._system.size(file) or 0) > file_access.MAX_TEXT:
                said = f"is longer than {file_access.MAX_TEXT >> 20} MiB"
                raise StoreError(errno.EMSGSIZE, said, f"{self.url}/{output_folder.MANIFEST}")
            found: bytes = self._system.cat_file(file)
        except FileNotFoundError:
            return None
        return found

    def _names(self) -> set[str]:
        """The files below the URL."""
        if not self._system.exists(self._path):
            return set()
        start = len(self._path) + 1
        names = {str(name)[start:] for name in self._system.find(self._path)} - {""}
        for name in names:
            # Keys of a store may be any text, and are to become files of this machine.
            if name.startswith("/") or ".." in name.split("/"):
                said = f"holds {name!r}, which leads out of a folder; remove it"
                raise StoreError(errno.EEXIST, said, self.url)
        return {name for name in names if name.rpartition("/")[2] != UPLOAD}

    def _put(self, files: Sequence[tuple[Path, str]]) -> None:
        if self.url.startswith("file:"):
            for file, name in files:
                self._replace(file, Path(name))
            return
        for some in _pieces(files):
            self._system.put([str(file) for file, _ in some], [name for _, name in some])

    def _replace(self, file: Path, goal: Path) -> None:
        """Copy a file to another folder of this machine: whole or not at all, and through no link.

        fsspec writes in place.
        """
        for above in goal.parents:
            if above.is_relative_to(self._path):
                output_folder.refuse_link(above)
        goal.parent.mkdir(parents=True, exist_ok=True)
        fresh = goal.with_name(UPLOAD)
        fresh.unlink(missing_ok=True)
        with file.open("rb") as content, fresh.open("xb") as copy:
            shutil.copyfileobj(content, copy)
        fresh.replace(goal)

    @contextlib.contextmanager
    def _talking(self, what: str) -> Iterator[None]:
        """Turn every failure of the file system into a StoreError with the URL."""
        try:
            yield
        except StoreError:
            raise
        except PermissionError:
            said = f"cannot {what}: no permission"
            raise StoreError(errno.EACCES, said, self.url) from None
        except Exception as error:  # of the file system's own kinds
            number = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
            raise StoreError(number, f"cannot {what}: {_reason(error)}", self.url) from error


_downloads: dict[tuple[str, str], tempfile.TemporaryDirectory[str]] = {}


def asked_for(file: str) -> str:
    """The URL of a file if it was downloaded, else its name."""
    for (url, _), kept in _downloads.items():
        if file.startswith(f"{kept.name}{os.sep}"):
            inside = Path(file).relative_to(kept.name).parts[1:]
            return "/".join([url.rstrip("/"), *inside])
    return file


def _pieces(all_of_them: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (all_of_them[i : i + WAITING] for i in range(0, len(all_of_them), WAITING))


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a run, which gets its name when it is complete."""
    part = output_folder.part(folder)
    with tarfile.open(archive) as packed:
        for member in packed:
            # The filters of tarfile came with Python 3.11.4.
            goal = part / member.name
            if not member.isfile() or not goal.resolve().is_relative_to(part.resolve()):
                raise tarfile.TarError(f"{member.name} is no file of the run")
            goal.parent.mkdir(parents=True, exist_ok=True)
            content = packed.extractfile(member)
            if content is not None:
                with content, goal.open("wb") as file:
                    shutil.copyfileobj(content, file)
    (part / folder.name).rename(folder)
    part.rmdir()


def _parsed(manifest: bytes | None) -> dict[str, Any] | None:
    try:
        found = file_access.from_json(manifest or b"")
    except ValueError:
        return None
    return found if isinstance(found, dict) and "talkspurt" in found else None


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
