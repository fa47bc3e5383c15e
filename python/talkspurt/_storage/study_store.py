"""A study on disk: a folder with tables of all runs, and a subfolder for each run."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talkspurt._storage import store
from talkspurt._storage.file_access import plain_name
from talkspurt._storage.output_folder import PART
from talkspurt.metrics import dictionary
from talkspurt.results.result import TABLES
from talkspurt.scenarios import provenance

if TYPE_CHECKING:
    import polars as pl

    from talkspurt.results.result import Result
    from talkspurt.results.study import Study
    from talkspurt.scenarios.source import Question


def run_folder(i: int, settings: Mapping[str, str], replicate: int) -> str:
    """The folder of run ``i`` of a study: its number, settings and replicate, for readability."""
    words = [f"{i:04d}", *settings.values(), f"r{replicate}"]
    # The number makes it unique, even if settings are truncated.
    return "runs/" + plain_name("-".join(plain_name(word)[:40] for word in words))


def write_study(
    study: Study,
    folder: Path,
    *,
    step: Callable[[str], None] = lambda _: None,
) -> None:
    """Write a study to an existing folder; runs already there are not rewritten."""
    runs = []
    for i, run in enumerate(study.runs):
        place = run_folder(i, run.settings, run.replicate)
        if not (folder / place / store.MANIFEST).exists():
            step(f"run {i + 1} of {len(study.runs)}")
            write_run(run, folder / place)
        runs.append(
            {
                "folder": place,
                "settings": dict(run.settings),
                "seed": run.seed,
                "digest": run.digest,
            }
        )
    step("tables")
    store.write_text(folder / "scenario.toml", study.scenario)
    axes = dictionary.of_axes(study.axes)

    def write(name: str, frame: pl.DataFrame) -> None:
        kind = "differences" if name.startswith("differences-") else name
        fields = (*axes, *dictionary.OF_STUDIES[kind])
        store.write_table(folder / f"{name}.parquet", frame, dictionary.columns(fields))

    write("flows", study.flows)
    write("links", study.links)
    if study.is_scored:
        write("scores", study.scores)
    names = study.measures
    write("summary", study.summary(names))
    if study.has_groups:
        write("summary-members", study.summary(names, members=True))
    for axis, frame in study.comparisons(names).items():
        write(f"differences-{store.file_name(axis)}", frame)
    store.write_text(folder / store.MANIFEST, store.to_json(_manifest(study, runs)))


def key(question: Question) -> str:
    """A hash of all inputs of a study's runs: scenario, files, and engine."""
    runs = map(question.plan.resolved, range(len(question.plan)))
    return provenance.key(runs, question.text, question.sets, store.FORMAT)


def reread(folder: Path) -> Result | None:
    """A run finished earlier, or None if part of it cannot be read."""
    try:
        result = store.load_result(folder)
        for name in TABLES:
            _ = result.table(name)
        with contextlib.suppress(KeyError):
            _ = result.table("packets")
        _ = [result.audio(name) for name in result.heard]
    except OSError:
        return None
    # Not with all its tables in memory.
    return store.moved(result, folder)


def write_run(run: Result, folder: Path) -> dict[str, Any]:
    """Write one run of a study: tables and recordings, no pictures; returns its manifest."""
    with store.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return store.write_result(run, folder)


def part(folder: Path) -> Path:
    """The folder of a run until it is complete."""
    return folder.with_name(f"{folder.name}{PART}")


def keep_run(run: Result, folder: Path) -> Result:
    """Write one run atomically, and return a result backed by its folder."""
    manifest = write_run(run, part(folder))
    _put(folder)
    return store.saved(folder, manifest, run.scenario, run.topology)


def put(folder: Path) -> Result:
    """Give a complete run its name, and return it."""
    _put(folder)
    return store.load_result(folder)


def _put(folder: Path) -> None:
    with store.writing(folder):
        if folder.exists():  # it could not be read
            shutil.rmtree(folder)
        part(folder).rename(folder)


def moved(study: Study, folder: Path) -> Study:
    """A saved study after its folder got its name; its summary tables stay in memory."""
    runs = tuple(
        store.moved(run, folder / run_folder(i, run.settings, run.replicate))
        for i, run in enumerate(study.runs)
    )
    found = dataclasses.replace(study, runs=runs)
    found._stacks.update(study._stacks)
    return found


def _manifest(study: Study, runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        **store.header("study"),
        "name": study.name,
        "file": study.runs[0].manifest.get("file"),
        "title": study.title,
        "description": study.description,
        "axes": [axis.entry() for axis in study.axes],
        "design": study.design,
        "replications": study.replications,
        "confidence": study.confidence,
        "set": dict(study.sets),
        "runs": runs,
        "hops": sum(run.hops for run in study.runs),
        "cpu_s": sum(float(run.manifest["cpu_s"]) for run in study.runs),
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
