"""File access in which every failure is a StoreError with the file's name and the reason."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from talkspurt._lazy import hashlib, pl, wave
from talkspurt.errors import StoreError


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn any write failure into a StoreError that names the file."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise failure(error, path) from error
    except Exception as error:
        if not of_polars(error):
            raise
        raise failure(error, path, _number_of_writing(path)) from error


def of_polars(error: BaseException) -> bool:
    """Whether polars raised it, perhaps as a panic, which is no Exception."""
    return type(error).__module__.partition(".")[0] in ("polars", "pyo3_runtime")


def _number_of_writing(path: Path) -> int | None:
    """The system's error number, found by writing again: polars does not always report it."""
    try:
        with path.open("ab") as file:
            file.write(bytes(1 << 16))
    except OSError as error:
        return error.errno
    return None


def failure(error: Exception, path: Path, number: int | None = None) -> StoreError:
    """The StoreError of a failure to write; ``number`` is the system's, if the error has none."""
    number = error.errno if isinstance(error, OSError) else number
    words = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk quota is used up",
        errno.EFBIG: "the file would be longer than the system's limit",
        errno.EACCES: "no permission to write there",
        errno.EPERM: "no permission to write there",
        errno.EROFS: "the file system is read-only",
    }
    reason = words.get(number or 0) or getattr(error, "strerror", None) or str(error)
    if number in (errno.EEXIST, errno.ENOTDIR, errno.ELOOP):
        every = [*reversed(path.parents), path]
        found = next((one for one in every if os.path.lexists(one) and not one.is_dir()), None)
        reason = reason if found is None else f"{found} is not a folder"
    return StoreError(number or errno.EIO, f"cannot write: {reason}", str(path))


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any failure to read a result file into a StoreError that names the file.

    Only regular files are opened: a pipe could block, and a device has no end.
    """
    try:
        if path.exists() and not path.is_file():
            raise ValueError("it is not a regular file")
        yield
    except StoreError:
        raise
    except FileNotFoundError as error:
        raise StoreError(errno.EIO, "is missing: the result is not whole", str(path)) from error
    except OSError as error:
        if error.errno == errno.EMSGSIZE:
            raise _damaged(error, path) from error
        reason = error.strerror or str(error)
        raise StoreError(error.errno or errno.EIO, f"cannot read: {reason}", str(path)) from error
    except (ValueError, TypeError, KeyError, AttributeError, EOFError, wave.Error) as error:
        raise _damaged(error, path) from error
    except BaseException as error:
        if not of_polars(error):
            raise
        raise _damaged(error, path) from error


def _damaged(error: BaseException, path: Path) -> StoreError:
    said = error.strerror if isinstance(error, OSError) else str(error)
    said = (said or "").strip().partition("\n")[0]
    return StoreError(errno.EIO, f"is damaged: {said or type(error).__name__}", str(path))


def real(path: Path) -> Path:
    """The path without links; a loop of links is left, for the system to refuse."""
    # `Path.resolve` raises RuntimeError for one until Python 3.13.
    return Path(os.path.realpath(path))


def read_bytes(file: Path, most: int) -> bytes:
    """A regular file of at most ``most`` bytes; the length is checked before it is read.

    Raises:
        OSError: if it cannot be read, is not a regular file, or is longer.
    """
    too_long = OSError(errno.EMSGSIZE, f"is longer than {most >> 20} MiB", str(file))
    with _regular(file) as content:
        length = os.fstat(content.fileno()).st_size
        if length > most:
            raise too_long
        # A file in /proc may be longer than its reported size. Asked for ``most``, Python takes as
        # much memory before it reads.
        parts = [content.read(length + 1)]
        while (total := sum(map(len, parts))) <= most and (more := content.read(1 << 16)):
            parts.append(more)
    if total > most:
        raise too_long
    return parts[0] if len(parts) == 1 else b"".join(parts)


def first_bytes(file: Path, count: int) -> bytes:
    """The first bytes of a regular file, up to ``count``.

    Raises:
        OSError: if it cannot be read, or is not a regular file.
    """
    with _regular(file) as content:
        return content.read(count)


@contextlib.contextmanager
def _regular(file: Path) -> Iterator[IO[bytes]]:
    _check_regular(file, file.stat().st_mode)
    # Check again, because the name may now refer to another file; without O_NONBLOCK a pipe would
    # block. Regular files ignore it.
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as content:
        _check_regular(file, os.fstat(handle).st_mode)
        yield content


def _check_regular(file: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    if not stat.S_ISREG(mode):
        raise OSError(errno.ENXIO, "is not a regular file", str(file))


def flush(path: Path) -> None:
    """fsync, so that a renamed folder is complete even after a power failure."""
    with _handle(path) as handle:
        os.fsync(handle)


@contextlib.contextmanager
def _handle(path: Path) -> Iterator[int]:
    """A file or folder, open for what writes it out."""
    with writing(path):
        handle = os.open(path, os.O_RDONLY)
        try:
            yield handle
        finally:
            os.close(handle)


MANY = 100
"""Files from which on it is faster to write out the whole file system than each of them."""


def flush_all(files: Sequence[Path], folder: Path) -> None:
    """:func:`flush` for all these files and the folder that holds them."""
    if len(files) < MANY or not _write_out(folder):
        for file in files:
            flush(file)
    flush(folder)


def _write_out(folder: Path) -> bool:
    """Write out the file system of a folder; false if this system cannot."""
    import ctypes

    try:
        # Linux; unlike sync(2), it reports errors.
        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError, TypeError):
        return False
    with _handle(folder) as handle:
        if syncfs(handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    return True


def write_text(file: Path, text: str) -> None:
    write_bytes(file, text.encode("utf-8"))


def write_bytes(file: Path, data: bytes) -> None:
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def replace_bytes(file: Path, data: bytes) -> None:
    """Write a file, or replace it; if that fails, an earlier one is left as it was."""
    if file.exists() and not file.is_file():  # a pipe, or a device
        write_bytes(file, data)
        return
    target = real(file)
    fresh = target.with_name(f".{target.name[: MAX_NAME_BYTES // 2]}.{os.getpid()}")
    with writing(file):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Whoever may write there may have put a link in its place.
            fresh.unlink(missing_ok=True)
            with fresh.open("xb") as file_there:
                file_there.write(data)
            if target.exists():
                shutil.copymode(target, fresh)
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)


def write_table(
    file: Path, frame: pl.DataFrame, columns: Mapping[str, Mapping[str, str]] | None = None
) -> None:
    """Write a Parquet file; a failure names the file.

    ``columns`` says what columns mean: unit and meaning by name. It becomes JSON under the key
    ``talkspurt.columns`` of the file's metadata, where ``polars.read_parquet_metadata``, DuckDB's
    ``parquet_kv_metadata`` and Arrow find it.
    """
    there = {name: dict(said) for name, said in (columns or {}).items() if name in frame.columns}
    with writing(file):
        frame.write_parquet(
            file,
            compression="zstd",
            metadata={"talkspurt.columns": json.dumps(there, ensure_ascii=False)},
        )


MAX_TEXT = 512 << 20
"""Bytes of a text file of a result: the manifest of a study of 100 000 runs has a fifth of them."""


def read_text(file: Path) -> str:
    with reading(file):
        return read_bytes(file, MAX_TEXT).decode()


def read_json(file: Path) -> Any:
    text = read_text(file)
    with reading(file):
        return from_json(text)


def from_json(text: str | bytes) -> Any:
    """The value of a JSON document, whose numbers are finite and whose texts are Unicode."""
    try:
        found = json.loads(text, parse_float=_finite, parse_constant=_finite)
        # Escapes can make half of a surrogate pair, which UTF-8 cannot represent.
        if _SURROGATE.search(text if isinstance(text, str) else text.decode()):
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("a text holds half of a surrogate pair") from None
    return found


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def to_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def files_in(folder: Path) -> Iterator[Path]:
    """All files below a folder, sorted by name."""
    found: list[str] = []
    folders: list[str | Path] = [folder] if folder.is_dir() else []
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                there = folders if entry.is_dir(follow_symlinks=False) else found
                there.append(entry.path)
    # By the names of the folders, then of the files.
    return map(Path, sorted(found, key=lambda path: path.replace(os.sep, "\0")))


def folders_in(folder: Path) -> Iterator[Path]:
    for above, names, _ in os.walk(folder):
        yield from (Path(above, name) for name in names if not Path(above, name).is_symlink())


def url_of(place: str | os.PathLike[str]) -> str | None:
    """The URL that a place is, or None for a folder of this machine.

    A path may be one: ``pathlib`` makes ``s3:/bucket/x`` of ``s3://bucket/x``.
    """
    found = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.+)", os.fspath(place))
    if found is None:
        return None
    scheme, rest = found[1].lower(), found[2].rstrip("/")
    return f"file:///{rest}" if scheme == "file" else f"{scheme}://{rest}"


MAX_NAME_BYTES = 120
"""Bytes of a name that a file name keeps; file systems allow 255 in total."""


def file_name(name: str, ending: str = "") -> str:
    """The name of a flow, link or axis as a unique file name.

    Spaces and characters that file names cannot contain are replaced, and a hash makes the name
    unique.
    """
    safe = plain_name(name)
    if safe != name:
        safe += "-" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{safe}.{ending}" if ending else safe


def plain_name(name: str) -> str:
    """A name without spaces and characters that file names cannot contain, truncated."""
    safe = "".join(c if c.isalnum() or c in "._-+" else "_" for c in name.replace(", ", "-"))
    return safe.encode()[:MAX_NAME_BYTES].decode(errors="ignore")


def size(count: float) -> str:
    """A byte count in readable units."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
