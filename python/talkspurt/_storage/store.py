"""Results on disk: one run's tables, recordings and manifest in a folder, written and read.

`pictures` writes the drawings, `study_store` studies; `staging` makes folders atomic. Damaged files
raise a StoreError with the file's name.
"""

from __future__ import annotations

import errno
import functools
import json
import shutil
import warnings
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talkspurt import _core
from talkspurt._storage import remote
from talkspurt._storage.file_access import (
    file_name,
    files_in,
    from_json,
    read_json,
    read_text,
    reading,
    to_json,
    write_bytes,
    write_table,
    write_text,
    writing,
)
from talkspurt._storage.output_folder import (
    DRAWN,
    FIGURES,
    FORMAT,
    MANIFEST,
    REPORT,
    Claim,
    Resumable,
    Staging,
    what,
)  # fmt: skip
from talkspurt.errors import OtherVersionWarning, StoreError
from talkspurt.metrics import dictionary
from talkspurt.results import validation
from talkspurt.results.audio import Audio, read_wav
from talkspurt.results.result import TABLES, Result, recorded
from talkspurt.scenarios import provenance
from talkspurt.scenarios.members import as_written

if TYPE_CHECKING:
    import polars as pl

    from talkspurt.results.study import Study

__all__ = [
    "DRAWN", "FIGURES", "FORMAT", "MANIFEST", "REPORT", "Claim", "Resumable", "Staging",
    "StoreError", "check", "file_name", "files_in", "load", "load_result", "moved", "saved",
    "to_json", "write_bytes", "write_result", "write_table", "write_text", "writing",
]  # fmt: skip

AUDIO = "audio"


def header(kind: str) -> dict[str, Any]:
    """The start of every manifest: version, format and kind."""
    return {"talkspurt": _core.version(), "format": FORMAT, "kind": kind}


def write_result(
    result: Result, folder: Path, *, step: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Write one run to an existing folder, and return its manifest.

    ``step`` is called with the next output.
    """
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
        fields = dictionary.columns(dictionary.TABLES[name])
        write_table(folder / f"{name}.parquet", table, fields)
    if "imported" in result.manifest:
        fields = dictionary.columns(dictionary.TABLES["packets"])
        write_table(folder / "packets.parquet", result.packets(), fields)
    if (excerpt := result.excerpt) is not None:
        fields = dictionary.columns(dictionary.EXCERPT)
        write_table(folder / "excerpt.parquet", excerpt, fields)
    if result.is_scored:
        write_scores(result, folder)
    _copy_written(result, folder)
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
    manifest = {
        **header("result"), "made_of": made_of, **result.manifest, **said, **there,
    }  # fmt: skip
    write_text(folder / MANIFEST, to_json(manifest))
    return manifest


@functools.lru_cache(maxsize=256)
def _indented(text: str) -> str:
    """JSON with indentation. The runs of a study often have the same topology."""
    return to_json(json.loads(text))


def write_scores(result: Result, folder: Path) -> None:
    """Write the scores of a result's calls to its folder."""
    fields = dictionary.columns(dictionary.TABLES["scores"])
    write_table(folder / "scores.parquet", result.scores, fields)


def _copy_written(result: Result, folder: Path) -> None:
    """Captures and packets, written during the run."""
    for file in result._files():
        if file.parent != folder:
            with writing(folder / file.name):
                shutil.copyfile(file, folder / file.name)


def check(folder: Path, kinds: Collection[str] = ("result", "study")) -> dict[str, Any]:
    """The manifest of a result or study, or of another of these kinds.

    Raises:
        StoreError: if the folder holds none, or one of another format.
    """
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
    folder = remote.local(folder)
    manifest = check(folder)
    if manifest["kind"] == "study":
        from talkspurt.results.study import Study

        found: Result | Study = Study.of_folder(folder, manifest)
    else:
        found = load_result(folder, manifest)
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


def load_result(folder: Path, manifest: Mapping[str, Any] | None = None) -> Result:
    """Load the result of one run; tables are read, and checked, on first access."""
    if manifest is None:
        manifest = _read_manifest(folder)
        _check_format(manifest, folder)
    scenario = read_text(folder / "scenario.toml")
    with reading(folder / MANIFEST):
        validation.result(manifest, scenario, provenance.text(scenario))
    topology = read_text(folder / "topology.json")
    with reading(folder / "topology.json"):
        network = _network(topology)
    return _result(folder, manifest, scenario, network)


def saved(
    folder: Path, manifest: Mapping[str, Any], scenario: str, topology: Mapping[str, Any]
) -> Result:
    """The result of a run whose tables are in a folder.

    Results with the same topology and empty tables share them.
    """
    return _result(folder, manifest, scenario, _network(json.dumps(as_written(topology))))


def _result(
    folder: Path, manifest: Mapping[str, Any], scenario: str, network: Mapping[str, Any]
) -> Result:
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
        _file_of=functools.partial(_file_of, folder, empty),
        _read_audio=functools.partial(_read_audio, folder, manifest),
        _written=folder,
        _known=known,
    )


@functools.lru_cache(maxsize=256)
def _shared(text: str) -> Any:
    return json.loads(text)


@functools.lru_cache(maxsize=256)
def _network(text: str) -> dict[str, Any]:
    return validation.topology(from_json(text))


def moved(result: Result, folder: Path) -> Result:
    """A saved result whose folder was renamed."""
    return saved(folder, result.manifest, result.scenario, result.topology)


def _read_table(
    folder: Path, empty: Any, known: validation.Known, has_packets: bool, name: str
) -> pl.DataFrame | None:
    import polars as pl

    if name in empty:
        # A table without rows has no file; the manifest has its columns.
        with reading(folder / MANIFEST):
            columns = {key: getattr(pl, kind) for key, kind in empty[name].items()}
            return validation.table(name, pl.DataFrame(schema=columns), known)
    file = folder / f"{name}.parquet"
    if name == "packets" and not has_packets:
        return None
    if name == "scores" and not file.exists():
        return None
    with reading(file):
        return validation.table(name, pl.read_parquet(file, glob=False), known)


def _file_of(folder: Path, empty: Any, name: str) -> Path | None:
    """The file of a table; none without rows."""
    return None if name in empty else folder / f"{name}.parquet"


def _read_audio(folder: Path, manifest: Mapping[str, Any], name: str) -> Audio | None:
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
