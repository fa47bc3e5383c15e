"""Inputs of a run besides its scenario's text: the files it names, and the engine.

Contents are hashed, not dates: a recording downloaded again is unchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from talkspurt import _core
from talkspurt._lazy import hashlib
from talkspurt.scenarios.resolved import apart_from_seed, written


def engine() -> str:
    """A hash of the compiled part of talkspurt: builds of one version may differ."""
    # Its __file__ belongs to an exception that it defines in Python.
    spec = _core.__spec__
    assert spec is not None and spec.origin is not None, "an imported library has a file"
    return _hash(Path(spec.origin))


def text(resolved: str) -> str:
    """A hash of a resolved scenario."""
    return _short(hashlib.sha256(resolved.encode()))


def files(resolved: str) -> dict[str, str]:
    """Files named by a resolved scenario, each with its hash."""
    return {name: _hash(Path(name)) for name in named(resolved)}


def file(name: str) -> str:
    """A hash of a file."""
    return _hash(Path(name))


def named(resolved: str) -> list[str]:
    """Files named by a resolved scenario."""
    return [*_named(apart_from_seed(resolved))]


@functools.lru_cache(maxsize=256)
def _named(resolved: str) -> tuple[str, ...]:
    return tuple(files_in(written(resolved)))


def of(resolved: str) -> dict[str, Any]:
    """The full provenance, as stored in a manifest."""
    return {"engine": engine(), "scenario": text(resolved), "files": files(resolved)}


def changed(made_of: Mapping[str, Any], resolved: str) -> list[str]:
    """The changed files, and the scenario itself if it changed, as text."""
    then = made_of.get("files")
    then = then if isinstance(then, dict) else {}
    words = ["its scenario.toml"] if made_of.get("scenario") != text(resolved) else []
    return words + [name for name, hashed in files(resolved).items() if then.get(name) != hashed]


def key(resolved: Iterable[str], *more: object) -> str:
    """A hash of runs: their scenarios, their files, the engine, and further values."""
    whole = hashlib.sha256(repr((_core.version(), engine(), more)).encode())
    for run in resolved:
        whole.update(repr((text(run), files(run))).encode())
    return _short(whole)


def files_in(value: object) -> dict[str, None]:
    """Every value of a key ``file`` once, in order; absolute in resolved scenarios."""
    found: dict[str, None] = {}
    if isinstance(value, dict):
        if isinstance(value.get("file"), str):
            found[value["file"]] = None
        value = [*value.values()]
    for inner in value if isinstance(value, list) else ():
        found |= files_in(inner)
    return found


def _hash(file: Path) -> str:
    try:
        stat = file.stat()
        return _hash_of(file, stat.st_size, stat.st_mtime_ns)
    except OSError:  # the run reports it with a better message
        return "not there"


@functools.lru_cache(maxsize=1024)
def _hash_of(file: Path, size: int, mtime_ns: int) -> str:
    """Cached while size and date are unchanged."""
    with file.open("rb") as content:
        return _short(hashlib.file_digest(content, "sha256"))


def _short(digest: Any) -> str:
    return str(digest.hexdigest())[:12]
