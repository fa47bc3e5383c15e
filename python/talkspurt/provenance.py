"""What a run is made of beside its scenario's text: the files it names, and the engine.

Contents are hashed, not dates: a recording fetched again is the same recording.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from talkspurt import _core
from talkspurt.resolved import values


def engine() -> str:
    """The compiled part of talkspurt, as a hash: two builds of one version differ."""
    # Its __file__ is the file of an exception that it defines in Python.
    spec = _core.__spec__
    assert spec is not None and spec.origin is not None, "an imported library has a file"
    return _hash(Path(spec.origin))


def text(resolved: str) -> str:
    """A scenario with every default written out, as a hash."""
    return _short(hashlib.sha256(resolved.encode()))


def files(resolved: str) -> dict[str, str]:
    """Files that a scenario with every default written out names, each with its hash."""
    return {name: _hash(Path(name)) for name in _named(values(resolved))}


def of(resolved: str) -> dict[str, Any]:
    """All of it, as a manifest keeps it."""
    return {"engine": engine(), "scenario": text(resolved), "files": files(resolved)}


def changed(made_of: Mapping[str, Any], resolved: str) -> list[str]:
    """Which of the files are not what they were, and the scenario itself, in words."""
    then = made_of.get("files")
    then = then if isinstance(then, dict) else {}
    words = ["its scenario.toml"] if made_of.get("scenario") != text(resolved) else []
    return words + [name for name, hashed in files(resolved).items() if then.get(name) != hashed]


def key(resolved: Iterable[str], *more: object) -> str:
    """A hash of runs: their scenarios, their files, the engine, and whatever else is given."""
    whole = hashlib.sha256(repr((_core.version(), engine(), more)).encode())
    for run in resolved:
        whole.update(repr((text(run), files(run))).encode())
    return _short(whole)


def _named(value: object) -> list[str]:
    """Every value of a key ``file``, in order; absolute where defaults are written out."""
    found: list[str] = []
    if isinstance(value, dict):
        if isinstance(value.get("file"), str):
            found.append(value["file"])
        for inner in value.values():
            found += _named(inner)
    elif isinstance(value, list):
        for inner in value:
            found += _named(inner)
    return list(dict.fromkeys(found))


def _hash(file: Path) -> str:
    try:
        stat = file.stat()
        return _hash_of(file, stat.st_size, stat.st_mtime_ns)
    except OSError:  # whoever runs the scenario says so in better words
        return "not there"


@functools.lru_cache(maxsize=1024)
def _hash_of(file: Path, size: int, mtime_ns: int) -> str:
    """Read once while size and date stay what they are."""
    with file.open("rb") as content:
        return _short(hashlib.file_digest(content, "sha256"))


def _short(digest: Any) -> str:
    return str(digest.hexdigest())[:12]
