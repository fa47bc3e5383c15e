"""Results in folders, written: one run's tables, recordings and manifest; studies of such runs.

`reader` reads them, `report.pictures` writes the drawings, `output_folder` makes folders atomic.
"""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from talkspurt import _core
from talkspurt._lazy import pl
from talkspurt._storage.file_access import (
    file_name,
    plain_name,
    to_json,
    write_bytes,
    write_table,
    write_text,
    writing,
)
from talkspurt._storage.output_folder import FORMAT, MANIFEST
from talkspurt.metrics import dictionary
from talkspurt.results.manifest import Manifest, Origin, where_and_when
from talkspurt.results.run_data import TABLES, RunData
from talkspurt.results.study_data import StudyData
from talkspurt.scenarios import provenance
from talkspurt.scenarios.resolved import as_written
from talkspurt.scenarios.source import Question

AUDIO = "audio"


def header(kind: str) -> dict[str, Any]:
    """The start of every manifest: version, format and kind."""
    return {"talkspurt": _core.version(), "format": FORMAT, "kind": kind}


def write_result(
    result: RunData, folder: Path, *, step: Callable[[str], None] = lambda _: None
) -> Manifest:
    """Write one run to a folder; returns its manifest. ``step`` is called with the next output."""
    step("tables")
    write_text(folder / "scenario.toml", result.scenario)
    write_text(folder / "topology.json", _indented(json.dumps(as_written(result.topology))))
    empty = {}
    # The run has written what it could to this folder.
    stored = result._outcome.stored if result._outcome and result._written == folder else ()
    for name in TABLES:
        if result._outcome and stored:
            if name not in stored:
                empty[name] = result._outcome.columns(name)
            continue
        table = result.table(name)
        if table.is_empty():
            empty[name] = {column: str(kind) for column, kind in table.schema.items()}
            continue
        write_run_table(folder, name, table)
    if result.origin is Origin.IMPORTED:
        write_run_table(folder, "packets", result.packets())
    if (excerpt := result.excerpt) is not None:
        write_run_table(folder, "excerpt", excerpt)
    if result.is_scored:
        write_run_table(folder, "scores", result.scores)
    # Captures and packets, written during the run.
    for file in result._files():
        if file.parent != folder:
            with writing(folder / file.name):
                shutil.copyfile(file, folder / file.name)
    step("recordings")
    starts = {}
    made_of = provenance.of(result.scenario)
    for name in result.heard if made_of["files"] else ():
        audio = result.audio(name)
        starts[name] = audio.start_s
        write_bytes(folder / AUDIO / file_name(name, "sent.wav"), audio.sent_wav())
        write_bytes(folder / AUDIO / file_name(name, "received.wav"), audio.received_wav())
    said = {"name": result.name, "title": result.title, "description": result.description}
    there = {"empty_tables": empty, "speech_start_s": starts}
    own = {"made_of": made_of, **result.manifest, **said, **there}
    manifest = cast("Manifest", {**header("result"), **own})
    write_text(folder / MANIFEST, to_json(manifest))
    return manifest


@functools.lru_cache(maxsize=256)
def _indented(text: str) -> str:
    """JSON with indentation. The runs of a study often have the same topology."""
    return to_json(json.loads(text))


def write_run_table(folder: Path, name: str, table: pl.DataFrame) -> None:
    """Write a table of a run, with what its columns mean."""
    write_table(folder / f"{name}.parquet", table, dictionary.columns(dictionary.fields(name)))


def run_folder(i: int, settings: Mapping[str, str], replicate: int) -> str:
    """The folder of run ``i`` of a study: its number, settings and replicate, for readability."""
    words = [f"{i:04d}", *settings.values(), f"r{replicate}"]
    # The number makes it unique, even if settings are truncated.
    return "runs/" + plain_name("-".join(plain_name(word)[:40] for word in words))


def write_study(
    study: StudyData,
    folder: Path,
    *,
    step: Callable[[str], None] = lambda _: None,
) -> None:
    """Write a study to an existing folder; runs already there are not rewritten."""
    runs = []
    for i, run in enumerate(study.runs):
        place = run_folder(i, run.settings, run.replicate)
        if not (folder / place / MANIFEST).exists():
            step(f"run {i + 1} of {len(study.runs)}")
            write_result(run, folder / place)
        facts = {"settings": dict(run.settings), "seed": run.seed, "digest": run.digest}
        runs.append({"folder": place, **facts})
    step("tables")
    write_text(folder / "scenario.toml", study.scenario)
    axes = dictionary.of_axes(study.axes)

    def write(name: str, frame: pl.DataFrame) -> None:
        kind = "differences" if name.startswith("differences-") else name
        fields = (*axes, *dictionary.OF_STUDIES[kind])
        write_table(folder / f"{name}.parquet", frame, dictionary.columns(fields))

    write("flows", study.flows)
    write("links", study.links)
    if study.is_scored:
        write("scores", study.scores)
    names = study.measures
    write("summary", study.summary(names))
    if study.has_groups:
        write("summary-members", study.summary(names, members=True))
    for axis, frame in study.comparisons(names).items():
        write(f"differences-{file_name(axis)}", frame)
    write_text(folder / MANIFEST, to_json(_manifest(study, runs)))


def key(question: Question) -> str:
    """A hash of all inputs of a study's runs: scenario, files, and engine."""
    runs = map(question.plan.resolved, range(len(question.plan)))
    return provenance.key(runs, question.text, question.sets, FORMAT)


def _manifest(study: StudyData, runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        **header("study"),
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
        **where_and_when(),
    }
