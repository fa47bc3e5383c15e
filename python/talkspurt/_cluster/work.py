"""What a worker executes: runs of a study, each from its resolved scenario to its folder's bytes.

Files that the worker lacks are sent with the batch and kept under their SHA-256. Their names never
become paths here, so that nothing outside the worker's folder can be written.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
import re
import tempfile
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import tomli_w

from talkspurt import _core
from talkspurt._storage import writer
from talkspurt._storage.file_access import files_in
from talkspurt.results.manifest import MadeOf, Manifest
from talkspurt.results.result import Result
from talkspurt.results.run_data import SUMMARIES
from talkspurt.runs import engine
from talkspurt.scenarios import provenance
from talkspurt.scenarios.source import Question

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)
"""System errors of the machine, not of a run."""


MAX_ROWS = 100
"""Rows of a table that are sent beside the files; longer ones are fast to read from these."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows and column types of a run's short summary tables, so that no file is read for them."""

    tables: Mapping[str, list[dict[str, Any]]]
    kinds: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, outcome: _core.Outcome) -> Rows | None:
        """Those of a run; None if one is long."""
        tables = {name: outcome.rows(name) for name in SUMMARIES}
        if any(len(rows) > MAX_ROWS for rows in tables.values()):
            return None
        return cls(tables, {name: outcome.columns(name) for name in SUMMARIES})

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table, as ``Outcome.rows``."""
        return self.tables[name]

    def columns(self, name: str) -> Mapping[str, str]:
        """The columns of a table, as ``Outcome.columns``."""
        return self.kinds[name]


def batch(study: Mapping[str, Any], tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """Run these tasks.

    ``study`` has name, title, description, file, set, ``files`` (SHA-256 by path) and ``contents``
    (bytes by SHA-256); a task has run, scenario, settings and replicate.

    Returns:
        ``runs``: number of a run → the files of its folder, and ``rows``: its summary tables if
        they are short. Or ``lacks``: files to send; or ``failed``: the number of a run with
        ``reason``, and ``machine``, whether it is the fault of this machine. Runs finished before
        are always in ``runs``.
    """
    done: dict[int, dict[str, bytes]] = {}
    rows: dict[int, Rows] = {}
    reply: dict[str, Any] = {"runs": done, "rows": rows}
    number = tasks[0]["run"]
    try:
        with tempfile.TemporaryDirectory(prefix="talkspurt-", dir=_place()) as scratch:
            local, lacks = _files(study["files"], study["contents"])
            if lacks:
                return {**reply, "lacks": lacks}
            for task in tasks:
                number = task["run"]
                folder = Path(scratch) / str(number)
                folder.mkdir()
                outcome = _one(study, task, local, folder)
                if (short := Rows.of(outcome)) is not None:
                    rows[number] = short
                done[number] = {
                    file.relative_to(folder).as_posix(): file.read_bytes()
                    for file in files_in(folder)
                }
    except (OSError, _core.RunError, ValueError) as error:
        reason, machine = str(error), False
        if isinstance(error, OSError):
            reason, machine = error.strerror or reason, error.errno in FULL
        reply |= {"failed": number, "reason": reason, "machine": machine}
    return reply


def _one(
    study: Mapping[str, Any], task: Mapping[str, Any], local: Mapping[str, str], folder: Path
) -> _core.Outcome:
    """One run into a folder, as on one machine."""
    resolved = task["scenario"]
    plan = _core.load(_with_files(resolved, local), study["name"], ".", [], None)
    question = Question(study["name"], None, resolved, (), plan)
    began = time.monotonic()
    results: list[Result] = []
    outcomes: list[_core.Outcome] = []

    def on_end(_: int, outcome: _core.Outcome) -> None:
        outcomes.append(outcome)
        wall_s = time.monotonic() - began
        results.append(Result.of_outcome(question, 0, outcome, wall_s=wall_s, written=folder))

    place = os.fspath(folder)
    engine.drive(plan, [0], jobs=1, folder=lambda _: place, tables="folder", on_end=on_end)
    made_of: MadeOf = {
        "engine": provenance.engine(),
        "scenario": provenance.text(resolved),
        "files": {name: study["files"][name][:12] for name in provenance.named(resolved)},
    }
    own = {"settings": task["settings"], "replicate": task["replicate"]}
    facts = {"file": study["file"], "set": study["set"], **own, "made_of": made_of}
    result = dataclasses.replace(
        results[0],
        title=study["title"],
        description=study["description"],
        **own,
        scenario=resolved,
        manifest=cast("Manifest", {**results[0].manifest, **facts}),
    )
    writer.write_result(result, folder)
    return outcomes[0]


def _with_files(resolved: str, local: Mapping[str, str]) -> str:
    """The scenario with the paths that its files have here."""
    if all(there == here for there, here in local.items()):
        return resolved

    def moved(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                k: local.get(v, v) if k == "file" and isinstance(v, str) else moved(v)
                for k, v in value.items()
            }
        return [moved(v) for v in value] if isinstance(value, list) else value

    return tomli_w.dumps(moved(tomllib.loads(resolved)))


def _place() -> Path:
    try:
        from distributed import get_worker

        return Path(get_worker().local_directory)
    except (ImportError, ValueError):
        return Path(tempfile.gettempdir())


def _files(
    files: Mapping[str, str], contents: Mapping[str, bytes]
) -> tuple[dict[str, str], list[str]]:
    """The path here of each file by its path at the client, and the SHA-256 of those not here."""
    local: dict[str, str] = {}
    lacks: list[str] = []
    for name, wanted in files.items():
        if not re.fullmatch("[0-9a-f]{64}", wanted):
            raise ValueError(f"{wanted!r} is not a SHA-256")
        kept = _place() / "talkspurt-files" / wanted
        if sha256(Path(name)) == wanted:
            local[name] = name
        elif sha256(kept) == wanted:
            local[name] = str(kept)
        elif (data := contents.get(wanted)) is not None:
            if hashlib.sha256(data).hexdigest() != wanted:
                raise ValueError(f"{name}: other bytes arrived than were sent")
            kept.parent.mkdir(exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as file:
                file.write(data)
            Path(file.name).replace(kept)
            local[name] = str(kept)
        else:
            lacks.append(wanted)
    return local, lacks


def sha256(file: Path) -> str | None:
    """The SHA-256 of a file, or None if it cannot be read."""
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return None
