"""Results in folders, read: tables and recordings on first access, each file checked.

Damaged files raise a StoreError with the file's name.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import json
import shutil
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from talkspurt import _core
from talkspurt._lazy import pl
from talkspurt._storage import remote
from talkspurt._storage.file_access import (
    file_name,
    from_json,
    read_json,
    read_text,
    reading,
    writing,
)
from talkspurt._storage.output_folder import FORMAT, MANIFEST, part, what
from talkspurt._storage.writer import AUDIO, run_folder, write_result
from talkspurt.errors import OtherVersionWarning, StoreError
from talkspurt.results import validation
from talkspurt.results.audio import Audio, read_wav
from talkspurt.results.manifest import Manifest, StudyManifest
from talkspurt.results.result import Result, Study
from talkspurt.results.run_data import TABLES, recorded
from talkspurt.scenarios import provenance
from talkspurt.scenarios.resolved import as_written


def check(folder: Path, kinds: Collection[str] = ("result", "study")) -> dict[str, Any]:
    """The manifest of a result or study, or of another of these kinds."""
    manifest = _read_manifest(folder)
    kind = manifest.get("kind")
    if kind == "reproduction":
        raise StoreError(
            errno.EINVAL,
            "holds the dossiers of published studies: open index.html, or read rows.json",
            str(folder),
        )
    if kind not in kinds:
        said = "not a shard of a study" if "shard" in kinds else "not a result"
        if kind == "shard":
            said = "not a whole study: `talkspurt merge` makes one of all its shards"
        raise StoreError(errno.EINVAL, f"holds {what(manifest)}, {said}", str(folder))
    _check_format(manifest, folder)
    return manifest


def load(folder: Path) -> Result | Study:
    """Load saved results, also from a URL; see :func:`talkspurt.load`."""
    if far := remote.of(folder):
        folder = far.downloaded()
    manifest = check(folder)
    read = _study if manifest["kind"] == "study" else load_result
    found: Result | Study = read(folder, manifest)
    if (version := manifest["talkspurt"]) != _core.version():
        warnings.warn(
            f"{folder} was made by talkspurt {version}, and this is {_core.version()}: "
            "what is measured may have changed",
            OtherVersionWarning,
            stacklevel=3,
        )
    return found


def _read_manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    if not file.exists():
        raise StoreError(errno.ENOENT, "there is no result of talkspurt here", str(folder))
    manifest = read_json(file)
    if not isinstance(manifest, dict) or "talkspurt" not in manifest:
        raise StoreError(errno.EIO, "is not a manifest of talkspurt", str(file))
    return manifest


def _check_format(manifest: Mapping[str, Any], folder: Path) -> None:
    found = manifest.get("format")
    if found == FORMAT:
        return
    written = "before formats had numbers" if found is None else f"in format {found}"
    raise StoreError(
        errno.EINVAL,
        f"was written by talkspurt {manifest['talkspurt']} {written}, and talkspurt "
        f"{_core.version()} reads format {FORMAT}: run its scenario again, or read it with the "
        "version that wrote it",
        str(folder),
    )


def _study(folder: Path, manifest: Any) -> Study:
    with reading(folder / MANIFEST):
        validation.check(manifest, validation.STUDY)
        runs = [load_result(folder / run["folder"]) for run in manifest["runs"]]
    return study_of(folder, manifest, runs)


def study_of(folder: Path, manifest: StudyManifest, runs: Sequence[Result]) -> Study:
    """The study of these runs, from a folder with its scenario and a manifest that was checked."""
    with reading(folder / MANIFEST):
        validation.study(manifest, [(run.settings, run.replicate) for run in runs])
        return Study.of_facts(manifest, read_text(folder / "scenario.toml"), runs)


def load_result(folder: Path, manifest: Any = None) -> Result:
    """Load the result of one run; tables are read, and checked, on first access."""
    if manifest is None:
        manifest = _read_manifest(folder)
        _check_format(manifest, folder)
    scenario = read_text(folder / "scenario.toml")
    with reading(folder / MANIFEST):
        checked = validation.result(manifest, scenario, provenance.text(scenario))
    topology = read_text(folder / "topology.json")
    with reading(folder / "topology.json"):
        network = _network(topology)
    return _result(folder, checked, scenario, network)


def saved(folder: Path, manifest: Manifest, scenario: str, topology: Mapping[str, Any]) -> Result:
    """The result of a run whose tables are in a folder.

    Results with the same topology and empty tables share them.
    """
    return _result(folder, manifest, scenario, _network(json.dumps(as_written(topology))))


def _result(folder: Path, manifest: Manifest, scenario: str, network: Mapping[str, Any]) -> Result:
    empty = _shared(json.dumps(manifest.get("empty_tables", {})))
    own = manifest["talkspurt"] == _core.version()
    known = validation.Known(manifest["duration_s"], network, own=own)
    has_packets = bool(recorded(scenario).get("packets"))
    return Result(
        name=manifest["name"],
        title=manifest["title"],
        description=manifest["description"],
        settings=manifest["settings"],
        replicate=manifest["replicate"],
        seed=manifest["seed"],
        scenario=scenario,
        topology=network,
        manifest={**manifest, "empty_tables": empty},
        _read_table=functools.partial(_read_table, folder, empty, known, has_packets),
        _file_of=lambda name: None if name in empty else folder / f"{name}.parquet",
        _read_audio=functools.partial(_read_audio, folder, manifest),
        _written=folder,
        _known=known,
    )


_shared = functools.lru_cache(maxsize=256)(json.loads)


@functools.lru_cache(maxsize=256)
def _network(text: str) -> dict[str, Any]:
    return validation.topology(from_json(text))


def moved(result: Result, folder: Path) -> Result:
    """A saved result whose folder was renamed."""
    return saved(folder, result.manifest, result.scenario, result.topology)


def _read_table(
    folder: Path, empty: Any, known: validation.Known, has_packets: bool, name: str
) -> pl.DataFrame | None:
    if name in empty:
        # A table without rows has no file; the manifest has its columns.
        with reading(folder / MANIFEST):
            columns = {key: getattr(pl, kind) for key, kind in empty[name].items()}
            return validation.table(name, pl.DataFrame(schema=columns), known)
    file = folder / f"{name}.parquet"
    if (name == "packets" and not has_packets) or (name == "scores" and not file.exists()):
        return None
    with reading(file):
        return validation.table(name, pl.read_parquet(file, glob=False), known)


def _read_audio(folder: Path, manifest: Manifest, name: str) -> Audio | None:
    sent = folder / AUDIO / file_name(name, "sent.wav")
    if not sent.exists():
        return None
    longest_s = 60 + 2 * manifest["duration_s"]
    with reading(sent):
        said, rate, channels = read_wav(sent, longest_s)
    received = folder / AUDIO / file_name(name, "received.wav")
    with reading(received):
        heard, *form = read_wav(received, longest_s)
        if form != [rate, channels]:
            raise ValueError(f"its rate or channels are not those of {sent.name}")
    return Audio(name, said, heard, rate, channels, manifest.get("speech_start_s", {}).get(name))


def reread(folder: Path) -> Result | None:
    """A run finished earlier, or None if part of it cannot be read."""
    try:
        result = load_result(folder)
        for name in TABLES:
            _ = result.table(name)
        with contextlib.suppress(KeyError):
            _ = result.table("packets")
        _ = [result.audio(name) for name in result.heard]
    except OSError:
        return None
    # Not with all its tables in memory.
    return moved(result, folder)


def keep_run(run: Result, folder: Path) -> Result:
    """Write one run atomically, and return a result backed by its folder."""
    manifest = write_result(run, part(folder))
    _put(folder)
    return saved(folder, manifest, run.scenario, run.topology)


def put(folder: Path) -> Result:
    """Give a complete run its name, and return it."""
    _put(folder)
    return load_result(folder)


def _put(folder: Path) -> None:
    with writing(folder):
        if folder.exists():  # it could not be read
            shutil.rmtree(folder)
        part(folder).rename(folder)


def moved_study(study: Study, folder: Path) -> Study:
    """A saved study after its folder got its name; its summary tables stay in memory."""
    runs = tuple(
        moved(run, folder / run_folder(i, run.settings, run.replicate))
        for i, run in enumerate(study.runs)
    )
    found = dataclasses.replace(study, runs=runs)
    found._stacks.update(study._stacks)
    return found
