"""``talkspurt export``: replays a run and writes it in another tool's format.

A run is determined by its scenario and seed, so nothing needs to be recorded for an export: the run
is repeated, its packets are written as they occur, and its digest proves that it is the same.
Recorded tables are copied. No function here holds a whole run in memory.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from talkspurt import __version__, _core, disk, engine, provenance, room, store
from talkspurt.result import TABLES, Result, recorded
from talkspurt.running import say_news
from talkspurt.scenario import Question, read
from talkspurt.staging import around
from talkspurt.study import Study
from talkspurt.terminal.progress import Bar

if TYPE_CHECKING:
    import polars as pl

Format = Literal["pcapng", "ns2", "nam", "qlog", "parquet", "csv"]
CLAIM = store.Claim("export")


def export(source: Path, to: Format, out: Path | None) -> Path:
    """Export a run to another tool's format; returns the folder.

    Args:
        source: folder of a result, or a scenario of one run.
        to: the output format.
        out: output folder; default: next to the result, or in runs/. Only an export is replaced.

    Raises:
        talkspurt.RunError: if the run cannot be repeated exactly.
        talkspurt.ScenarioError: if the scenario, or a file it names, has changed.
        OSError: if reading or writing fails, or the disk has no space.
    """
    result = _result(source) if source.is_dir() else None
    target = out if out is not None else _beside(source, to)
    if to == "csv":
        return _tables(result, source, target)
    question = _question(result, source)
    with store.Staging(target, CLAIM) as staging:
        say_news(staging)
        (counts,) = room.count(question.plan, [0])
        snaplen = room.snaplen(recorded(question.plan.resolved(0)))
        room.check(counts.takes(to, snaplen=snaplen), to, staging.target)
        digest = _again(question, to, staging.folder)
        if result and digest != result.digest:
            raise _core.RunError(_another(result, source, digest))
        if result and to == "parquet":
            _copy_tables(source, staging.folder)
        manifest = {**store.header("export"), "to": to, "digest": digest}
        store.write_text(staging.folder / store.MANIFEST, store.to_json(manifest))
        return staging.commit()


def _beside(source: Path, to: str) -> Path:
    """The default location of an export: next to the result, or to the study that contains it."""
    if not source.is_dir():
        return Path("runs") / f"{source.stem}.{to}"
    folder = source.resolve()
    study = around(folder)
    if study is None:
        return folder.with_name(f"{folder.name}.{to}")
    return study.with_name(f"{study.name}-{folder.name}.{to}")


def _result(folder: Path) -> Result:
    found = store.load(folder)
    if isinstance(found, Study):
        runs = sorted((folder / "runs").iterdir())
        first = runs[0] if runs else folder
        raise _core.RunError(
            f"{folder} is a study of {len(found.runs)} runs: name one of them, such as {first}"
        )
    return found


def _question(result: Result | None, source: Path) -> Question:
    """The scenario to run, if it is a single run and unchanged."""
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


def _again(question: Question, to: str, folder: Path) -> str:
    """Repeat the run, written to the folder; returns its digest."""
    with Bar(f"{question.plan.title}: {to}") as bar:
        job = question.plan.export(0, to, str(folder))
        with _stopped(job):
            while not job.wait(0.05):
                bar.on_progress(_progress(job))
        return job.result()


def _another(result: Result, source: Path, digest: str) -> str:
    """Why a repeated run may differ."""
    words = f"{source}: done again, the run is another ({digest}, and was {result.digest}): "
    version = result.manifest["talkspurt"]
    if version != __version__:
        return words + f"it was made by talkspurt {version}, and this is {__version__}"
    if result.manifest["made_of"].get("engine") != provenance.engine():
        return words + f"it was made by another build of talkspurt {version}"
    return words + "scenario, files and engine are what they were, so its manifest is not"


def _progress(job: _core.Export) -> engine.Progress:
    return engine.Progress(fraction=job.progress(), finished=0, total=1)


@contextmanager
def _stopped(job: _core.Export) -> Iterator[None]:
    """Cancel the job when the wait ends for any reason."""
    try:
        yield
    except BaseException:
        job.cancel()
        job.wait(60.0)
        raise


def _copy_tables(source: Path, folder: Path) -> None:
    for name in TABLES:
        table = source / f"{name}.parquet"
        with disk.reading(table):
            table.stat()
        with store.writing(folder / table.name):
            shutil.copyfile(table, folder / table.name)


def without_formulas(table: pl.LazyFrame) -> pl.LazyFrame:
    """Prefix text that a spreadsheet would interpret as a formula with an apostrophe.

    First characters from OWASP: ``=``, ``+``, ``-``, ``@``, tab and carriage return.
    """
    import polars as pl

    text = pl.col(pl.String)
    return table.with_columns(
        pl.when(text.str.contains(r"^[=+\-@\t\r]")).then("'" + text).otherwise(text).name.keep()
    )


def _tables(result: Result | None, source: Path, target: Path) -> Path:
    if result is None:
        if not source.exists():
            raise store.StoreError(
                errno.ENOENT, "there is no result of talkspurt here", str(source)
            )
        raise _core.RunError(f"{source}: csv is made of the tables of a result: run it first")
    import polars as pl

    with store.Staging(target, CLAIM) as staging:
        say_news(staging)
        for name in (*TABLES, "packets"):
            table = source / f"{name}.parquet"
            file = staging.folder / f"{name}.csv"
            if name == "packets" and not recorded(result.scenario).get("packets"):
                continue
            with disk.reading(table):
                lazy = pl.scan_parquet(table, glob=False)
                lazy.collect_schema()
            with store.writing(file):
                without_formulas(lazy).sink_csv(file)
        manifest = {**store.header("export"), "to": "csv", "digest": result.digest}
        store.write_text(staging.folder / store.MANIFEST, store.to_json(manifest))
        return staging.commit()
