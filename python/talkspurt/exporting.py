"""What ``talkspurt export`` does: a run once more, written for another tool.

A run is its scenario and its seed, so nothing has to be recorded for an export: the run is done
again, its packets are written while they move, and its digest says that it was the same. Tables,
which are recorded, are copied. Nothing here holds a whole run in memory.
"""

from __future__ import annotations

import errno
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from talkspurt import __version__, _core, engine, store
from talkspurt.result import TABLES, Result
from talkspurt.scenario import read
from talkspurt.study import Study
from talkspurt.terminal.progress import Bar

Format = Literal["pcapng", "ns2", "nam", "qlog", "parquet", "csv"]

BYTES_A_HOP = {"ns2": 3 * 75, "nam": 4 * 110, "parquet": 22}
"""For each packet on each link: of a trace lines times their usual length, of a table a row."""
BYTES_A_PACKET = {"pcapng": 64, "qlog": 2 * 150}
"""Of a capture, what stands around the packet itself; of a qlog, two events."""


def export(source: Path, to: Format, out: Path | None) -> Path:
    """Write a run for another tool; the folder it stands in.

    Args:
        source: folder of a result, or a scenario of one run.
        to: what is written.
        out: where; beside the result, or in runs/, unless given.

    Raises:
        talkspurt.RunError: when the run cannot be done again as it was.
        talkspurt.ScenarioError: when the scenario, or a file it names, is not what it was.
        OSError: when something cannot be read or written, or the disk has no room.
    """
    result = _result(source) if source.is_dir() else None
    name = source.name if result else source.stem
    beside = source.resolve().parent if result else Path("runs")
    target = out if out is not None else beside / f"{name}.{to}"
    if to == "csv":
        return _tables(result, source, target)
    if result:
        _check_room(result, to, target)
    with store.Staging(target) as staging:
        digest = _again(result, source, to, staging.folder)
        if result and to == "parquet":
            _copy_tables(source, staging.folder)
        manifest = {"talkspurt": __version__, "kind": "export", "to": to, "digest": digest}
        store.write_text(staging.folder / store.MANIFEST, store.to_json(manifest))
        return staging.commit()


def _result(folder: Path) -> Result:
    found = store.load(folder)
    if isinstance(found, Study):
        runs = sorted((folder / "runs").iterdir())
        first = runs[0] if runs else folder
        raise _core.RunError(
            f"{folder} is a study of {len(found.runs)} runs: name one of them, such as {first}"
        )
    return found


def _again(result: Result | None, source: Path, to: str, folder: Path) -> str:
    """The run once more, written into the folder; its digest."""
    question = read(result.scenario if result else source)
    if len(question.plan) != 1:
        raise _core.RunError(
            f"{source} asks for {len(question.plan)} runs: run it, and name one of its results"
        )
    with Bar(f"{question.plan.title}: {to}") as bar:
        if to == "parquet":
            digest = _write_packets(question.plan.rows(0), folder / "packets", bar)
        else:
            job = question.plan.export(0, to, str(folder))
            with _stopped(job):
                while not job.wait(0.05):
                    bar.on_progress(_progress(job))
            digest = job.result()
    if result and digest != result.digest:
        raise _core.RunError(
            f"{source}: done again, the run is another ({digest}, and was {result.digest}): "
            f"it was made by talkspurt {result.manifest['talkspurt']}, and this is {__version__}, "
            "or a file that the scenario names has changed"
        )
    return digest


def _progress(job: _core.Export | _core.Rows) -> engine.Progress:
    return engine.Progress(fraction=job.progress(), finished=0, total=1)


def _write_packets(job: _core.Rows, folder: Path, bar: Bar) -> str:
    """A file for each batch of packets, in order: together one data set. The run's digest."""
    import polars as pl

    with store.writing(folder):
        folder.mkdir()
    count = 0
    with _stopped(job):
        while True:
            ended = job.wait(0.0)
            batch = job.batch(0.0 if ended else 0.05)
            if batch is not None:
                store.write_table(folder / f"{count:05}.parquet", pl.DataFrame(batch))
                count += 1
            elif ended:
                return job.result()
            bar.on_progress(_progress(job))


@contextmanager
def _stopped(job: _core.Export | _core.Rows) -> Iterator[None]:
    """Whatever ends the wait ends the work."""
    try:
        yield
    except BaseException:
        job.cancel()
        job.wait(60.0)
        raise


def _check_room(result: Result, to: str, target: Path) -> None:
    """Say what a trace will take before it is begun, and begin none that the disk cannot hold."""
    need = _estimate(result, to)
    place = target.resolve()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if need > 0.9 * free:
        raise store.StoreError(
            errno.ENOSPC, f"{to} takes about {_size(need)} and {_size(free)} are free", str(target)
        )
    if need > 100e6:
        print(f"talkspurt: {to} takes about {_size(need)}", file=sys.stderr)


def _estimate(result: Result, to: str) -> float:
    hops = float(result.manifest["hops"])
    if to in BYTES_A_HOP:  # of Parquet, the tables that are copied are small beside the packets
        return hops * BYTES_A_HOP[to]
    if to == "pcapng":
        return hops * BYTES_A_PACKET[to] + float(result.links["sent_bytes"].sum() or 0)
    changes = float(result.table("gauges").height)
    packets = float(result.flows["sent_packets"].sum() or 0)
    return 2 * packets * BYTES_A_PACKET[to] + 100 * changes


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _copy_tables(source: Path, folder: Path) -> None:
    for name in TABLES:
        file = folder / f"{name}.parquet"
        with store.writing(file):
            shutil.copyfile(source / file.name, file)


def _tables(result: Result | None, source: Path, target: Path) -> Path:
    if result is None:
        raise _core.RunError(f"{source}: csv is made of the tables of a result: run it first")
    import polars as pl

    with store.Staging(target) as staging:
        for name in (*TABLES, "packets"):
            table = source / f"{name}.parquet"
            file = staging.folder / f"{name}.csv"
            if table.exists():
                with store.writing(file):
                    pl.scan_parquet(table).sink_csv(file)
        manifest = {"talkspurt": __version__, "kind": "export", "to": "csv"}
        manifest["digest"] = result.digest
        store.write_text(staging.folder / store.MANIFEST, store.to_json(manifest))
        return staging.commit()
