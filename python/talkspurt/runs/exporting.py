"""Exports: replays a run and writes it in another tool's format.

A run is determined by its scenario and seed, so nothing needs to be recorded for an export: the run
is repeated, its packets are written as they occur, and its digest proves that it is the same.
Recorded tables are copied. No function here holds a whole run in memory.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from talkspurt import __version__, _core
from talkspurt._lazy import pl
from talkspurt._storage import disk_space, file_access, output_folder, reader, writer
from talkspurt._storage.output_folder import around
from talkspurt._terminal.progress import Bar, say_news
from talkspurt._text.escaping import visible
from talkspurt._text.format import offered
from talkspurt.errors import BadInputError, StoreError
from talkspurt.metrics.catalogue import FLOWS
from talkspurt.results import validation
from talkspurt.results.manifest import Origin
from talkspurt.results.result import Result, Study
from talkspurt.results.run_data import TABLES, recorded
from talkspurt.runs import spreadsheet
from talkspurt.scenarios import provenance
from talkspurt.scenarios.source import Question, read

Format = Literal["pcapng", "ns2", "nam", "qlog", "parquet", "csv", "table", "xlsx"]
ONE_TABLE = {"table": ".table.csv", "xlsx": ".xlsx"}
"""Formats that are one file, and the default endings of its name."""
MEASURED = "was measured on a real path, and cannot be repeated; --to csv copies its tables"
NOT_RUNS = {
    Origin.MEASURED: MEASURED,
    Origin.CALLED: MEASURED,
    Origin.IMPORTED: (
        "was imported from a trace, and cannot be repeated; --to csv copies its tables"
    ),
    Origin.EMULATED: (
        "is an emulation, and cannot be repeated; --to csv copies its tables, and record.pcapng "
        "names links that are captured during an emulation"
    ),
}
"""Why a result cannot be repeated, by where it is from."""


def export(
    source: str | os.PathLike[str],
    to: Format,
    out: str | os.PathLike[str] | None = None,
    *,
    progress: bool = False,
    overwrite: bool = False,
) -> Path:
    """Export a run, or all runs of a study, to another tool's format; returns the folder.

    A study becomes one folder per run, named as in its ``runs``; as csv, its own tables. As table
    or xlsx, it is one file with a row for each run and flow, and units in the header.

    Args:
        source: folder of a result or a study, or a scenario of one run.
        to: the output format, as ``talkspurt export`` describes it.
        out: output folder, or file; default: next to the result, or in runs/. Only an export is
            replaced.
        progress: whether to show progress on standard error.
        overwrite: replace something else that talkspurt wrote, or another file.

    Raises:
        talkspurt.RunError: if a run cannot be repeated exactly.
        talkspurt.ScenarioError: if the scenario, or a file it names, has changed.
        talkspurt.errors.BadInputError: if the format is unknown, or if the result is of no
            simulation, unless as csv, table or xlsx.
        OSError: if reading or writing fails, or the disk has no space.
    """
    if to not in get_args(Format):
        raise BadInputError(visible(f"{to}: no format of exports; {offered(to, get_args(Format))}"))
    source = Path(source)
    found = reader.load(source) if source.is_dir() else None
    if to in ONE_TABLE:
        return _one_table(found, source, to, out, overwrite)
    several = isinstance(found, Study)
    runs: list[tuple[Result | None, Path]] = [(None, source)]
    if isinstance(found, Study):
        runs = [(run, Path(str(run._written))) for run in found.runs]
    elif found is not None:
        runs = [(found, source)]
    digests: list[str | None] = [run.digest if run else None for run, _ in runs]
    if to == "csv":
        files = _sources(found, source)
    else:
        questions = [_question(result, where) for result, where in runs]
    target = Path(out) if out is not None else _beside(source, to)
    if overwrite and found is not None and file_access.real(target) == file_access.real(source):
        raise BadInputError(visible(f"{target}: is what is exported; choose another --out"))
    claim = output_folder.Claim("export", overwrite=overwrite)
    with output_folder.Staging(target, claim) as staging:
        if progress:
            say_news(staging.news)
        if to == "csv":
            known = found._known if isinstance(found, Result) else None
            for table in files:
                _write_csv(table, known, staging.folder / f"{table.stem}.csv")
        else:
            _check_room(questions, to, staging.target)
            for i, ((result, where), question) in enumerate(zip(runs, questions, strict=True)):
                folder = staging.folder / where.name if several else staging.folder
                with file_access.writing(folder):
                    folder.mkdir(exist_ok=True)
                digests[i] = _write(result, where, question, to, folder, progress)
        digest = digests if several else digests[0]
        manifest = {**writer.header("export"), "to": to, "digest": digest}
        file_access.write_text(
            staging.folder / output_folder.MANIFEST, file_access.to_json(manifest)
        )
        return staging.commit()


def _one_table(
    found: Result | Study | None,
    source: Path,
    to: str,
    out: str | os.PathLike[str] | None,
    overwrite: bool,
) -> Path:
    """Write the table for spreadsheets, and return its file."""
    if found is None:
        raise _no_tables(source, to)
    file = _beside(source, to) if out is None else Path(out)
    endings = (".xlsx",) if to == "xlsx" else (".csv",)
    if file.suffix.lower() not in endings:
        raise BadInputError(visible(f"--out {file}: expected a name that ends in {endings[0]}"))
    study = found if isinstance(found, Study) else Study.of_run(found)
    spreadsheet.write(study, file, overwrite=overwrite)
    return file


def _no_tables(source: Path, to: str) -> Exception:
    if not source.exists():
        return StoreError(errno.ENOENT, "there is no result of talkspurt here", str(source))
    return _core.RunError(f"{source}: {to} is made of the tables of a result: run it first")


def _check_room(questions: Sequence[Question], to: str, target: Path) -> None:
    most = 0.0
    for question in questions:
        (counts,) = disk_space.count(question.plan, [0])
        most += counts.takes(to, snaplen=disk_space.snaplen(recorded(question.plan.resolved(0))))
    disk_space.check(most, to, target)


def _write(
    result: Result | None, source: Path, question: Question, to: str, folder: Path, progress: bool
) -> str:
    """Repeat one run into the folder; returns its digest."""
    with Bar(f"{question.plan.title}: {to}", shown=progress) as bar:
        job = question.plan.export(0, to, str(folder))
        try:
            _wait(job, bar)
        except BaseException:
            job.cancel()
            job.wait(60.0)
            raise
        digest = job.result()
    if result and digest != result.digest:
        raise _core.RunError(_another(result, source, digest))
    if result and to == "parquet":
        for table in _parquet_files(source):
            with file_access.writing(folder / table.name):
                shutil.copyfile(table, folder / table.name)
    return digest


def _wait(job: _core.Job[str], bar: Bar) -> None:
    while not job.wait(0.05):
        bar.on_fraction(job.progress())


def _beside(source: Path, to: str) -> Path:
    """The default location of an export: next to the result, or to the study that contains it."""
    ending = ONE_TABLE.get(to, f".{to}")
    if not source.is_dir():
        return Path("runs") / f"{source.stem}{ending}"
    folder = file_access.real(source)
    study = around(folder)
    if study is None:
        return folder.with_name(f"{folder.name}{ending}")
    return study.with_name(f"{study.name}-{folder.name}{ending}")


def _question(result: Result | None, source: Path) -> Question:
    """The scenario to run, if it is a single run and unchanged."""
    if result and result.origin in NOT_RUNS:
        raise BadInputError(visible(f"{source}: {NOT_RUNS[result.origin]}"))
    question = read(source / "scenario.toml" if result else source)
    if len(question.plan) != 1:
        raise _core.RunError(
            f"{source} asks for {len(question.plan)} runs: run it, and name one of its results"
        )
    if result and (changed := provenance.changed(result.manifest["made_of"], result.scenario)):
        raise _core.RunError(
            f"{source}: the run cannot be done again, for since it was made there changed: "
            + ", ".join(changed)
        )
    return question


def _another(result: Result, source: Path, digest: str) -> str:
    words = f"{source}: done again, the run is another ({digest}, and was {result.digest}): "
    version = result.manifest["talkspurt"]
    if version != __version__:
        return words + f"it was made by talkspurt {version}, and this is {__version__}"
    if result.manifest["made_of"].get("engine") != provenance.engine():
        return words + f"it was made by another build of talkspurt {version}"
    return words + "scenario, files and engine are what they were, so its manifest is not"


def _parquet_files(source: Path) -> list[Path]:
    """The tables of a run or study: those without rows have no file. Packets have their own."""
    manifest = file_access.read_json(source / output_folder.MANIFEST)
    if manifest["kind"] == "study":
        return sorted(source.glob("*.parquet"))
    empty = manifest.get("empty_tables", {})
    files = [source / f"{name}.parquet" for name in TABLES if name not in empty]
    for file in files:
        with file_access.reading(file):
            file.stat()
    return files


def without_formulas(table: pl.LazyFrame) -> pl.LazyFrame:
    """Prefix text that a spreadsheet would interpret as a formula with an apostrophe.

    First characters from OWASP: ``=``, ``+``, ``-``, ``@``, tab and carriage return.
    """
    text = pl.col(pl.String)
    return table.with_columns(
        pl.when(text.str.contains(r"^[=+\-@\t\r]")).then("'" + text).otherwise(text).name.keep()
    )


def marked(table: pl.LazyFrame) -> pl.LazyFrame:
    """The same with a text in place of each value outside the range of its model.

    Of a summary, or of differences, the interval is left out, too.
    """
    names = table.collect_schema().names()
    changed = []
    for one in FLOWS:
        if one.bound and {one.name, one.bound} <= {*names}:
            value, bound = pl.col(one.name), pl.col(one.bound)
            said = pl.format(spreadsheet.below("{}"), bound.round(one.digits))
            text = value.cast(pl.String)
            changed.append(pl.when(bound > value).then(said).otherwise(text).alias(one.name))
    if {"measure", "mean", "bound"} <= {*names}:
        is_outside = pl.col("bound").is_not_null()
        said = pl.format(spreadsheet.below("{}"), pl.col("bound").round(2))
        said = pl.lit("out of range") if "baseline" in names else said
        mean = pl.col("mean")
        changed.append(pl.when(is_outside).then(said).otherwise(mean.cast(pl.String)).alias("mean"))
        others = ("low", "high", "deviation", "member_low", "member_high")
        changed += [pl.when(~is_outside).then(pl.col(name)).alias(name) for name in others]
    return table.with_columns(changed)


def marked_values(table: pl.DataFrame) -> pl.DataFrame:
    """A metric as ``talkspurt metrics`` has it, with texts in place of values with a ``bound``."""
    if "bound" not in table.columns:
        return table
    bound, value = pl.col("bound"), pl.col("value")
    said = pl.format(spreadsheet.below("{}"), bound.round(2))
    text = pl.when(bound.is_not_null()).then(said).otherwise(value.cast(pl.String))
    return table.with_columns(text.alias("value")).drop("bound")


def _sources(result: Result | Study | None, source: Path) -> list[Path]:
    if result is None:
        raise _no_tables(source, "csv")
    files = _parquet_files(source)
    if isinstance(result, Result) and result.recorded.get("packets"):
        files.append(source / "packets.parquet")
    return files


def _write_csv(table: Path, known: validation.Known | None, file: Path) -> None:
    with file_access.reading(table):
        lazy = pl.scan_parquet(table, glob=False)
        lazy.collect_schema()
        if known is not None:
            validation.check_table(table.stem, lazy, known)
        else:
            lazy = lazy.collect().lazy()
    with file_access.writing(file):
        marked(without_formulas(lazy)).sink_csv(file)
