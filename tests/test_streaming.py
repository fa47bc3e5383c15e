"""Tables that a run writes while it lasts: the same as those in memory, in memory that stays small."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import talkspurt
from command import output, start, succeed, until
from command import talkspurt as command
from talkspurt import api
from talkspurt.metrics import dictionary
from talkspurt.results.run_data import SUMMARIES, TABLES
from talkspurt.scenarios.source import read
from texts import BULK, NEWRENO, flow_text, link_text, put, scenario_text

SCENARIOS = Path(__file__).parent.parent / "scenarios"


def bulk(seconds: int) -> str:
    """An upload."""
    link = link_text("core", "a>b", "20Mbit/s", "5ms", 50)
    upload = flow_text("one", "a>b", NEWRENO, BULK)
    return scenario_text("Bulk", f"{seconds}s", link, upload, record='{ interval = "1ms" }')


def stored(scenario: Path, where: Path, *words: str) -> Path:
    """The folder of ``talkspurt run``."""
    succeed("run", scenario, "--out", where, "--no-report", *words)
    return where


@pytest.mark.parametrize(
    "name",
    [
        "small",
        "controlled",
        "every-transport",
        "multistreaming",
        "video",
        "ladder-heard",
        "two-way",
    ],
)
def test_files_have_what_memory_has(name: str, folder: Path, tmp_path: Path) -> None:
    own = folder / f"{name}.toml"
    scenario = own if own.exists() else SCENARIOS / own.name
    there = talkspurt.run(scenario, study=None)
    runs = there.runs if isinstance(there, talkspurt.Study) else [there]
    where = stored(scenario, tmp_path / "out")
    places = [where] if runs == [there] else sorted((where / "runs").iterdir())
    for place, run in zip(places, runs, strict=True):
        kept = talkspurt.load(place)
        manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
        # Written from memory, by polars: as before runs wrote their tables.
        saved = run.save(tmp_path / "saved" / place.name, report=False)
        earlier = json.loads((saved / "manifest.json").read_text(encoding="utf-8"))
        assert manifest["empty_tables"] == earlier["empty_tables"]
        assert manifest["digest"] == earlier["digest"]
        for table in TABLES:
            assert_frame_equal(kept.table(table), run.table(table), check_exact=True)
            file = place / f"{table}.parquet"
            assert file.exists() == (table not in manifest["empty_tables"])
            if file.exists():
                said = json.loads(pl.read_parquet_metadata(file)["talkspurt.columns"])
                assert said == dictionary.columns(dictionary.TABLES[table])
                assert_frame_equal(pl.read_parquet(saved / file.name), kept.table(table))
        assert kept.to_json() == run.to_json()


def test_long_tables_are_written_in_groups(tmp_path: Path) -> None:
    """Several row groups of gauges and series, and bins and delays that exceed the memory for them."""
    (tmp_path / "bulk.toml").write_text(bulk(150), encoding="utf-8")
    there = talkspurt.run(tmp_path / "bulk.toml")
    kept = talkspurt.load(stored(tmp_path / "bulk.toml", tmp_path / "out"))
    assert there.table("series").height == 150_000
    assert there.table("gauges").height > 1 << 17
    for table in TABLES:
        assert_frame_equal(kept.table(table), there.table(table), check_exact=True)
    assert not [file for file in (tmp_path / "out").iterdir() if file.name.startswith(".")]


PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""Prints the peak memory of a command. A new process begins with the peak of the one that starts it,
which must be small: pytest is not."""


def peak_bytes(scenario: Path, where: Path) -> int:
    """Peak memory of ``talkspurt run`` with its results in a folder."""
    run = [sys.executable, "-m", "talkspurt", "run", scenario, "--json", "--no-report"]
    told = output(sys.executable, "-c", PEAK, *map(str, run), "--out", where)
    return int(told) * (1 if sys.platform == "darwin" else 1024)


@pytest.mark.skipif(sys.platform == "win32", reason="the system does not tell peak memory")
def test_memory_does_not_grow_with_simulated_time(tmp_path: Path) -> None:
    peaks = []
    for seconds in (100, 400):
        scenario = put(tmp_path / f"bulk{seconds}.toml", bulk(seconds))
        peaks.append(peak_bytes(scenario, tmp_path / f"out{seconds}"))
    # In memory, 300 s are 500 000 packets, 1.2 million changes of gauges and 300 000 bins: 100 MB.
    assert peaks[1] - peaks[0] < 20e6, peaks
    assert peaks[1] < 150e6


def test_a_run_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "bulk.toml").write_text(bulk(3_600), encoding="utf-8")
    for stop in (signal.SIGINT, signal.SIGKILL):
        run = start("run", "bulk.toml", "--out", "out", "--no-report", cwd=tmp_path)
        until(lambda: any(tmp_path.glob(".*/gauges.parquet.part")), run)
        run.send_signal(stop)
        run.communicate(timeout=60)
    # What was killed is removed by the next run.
    scenario = put(tmp_path / "bulk.toml", bulk(1))
    stored(scenario, tmp_path / "out")
    assert {file.name for file in tmp_path.iterdir()} == {"bulk.toml", "out"}


def test_the_document_is_the_same_with_and_without_files(tmp_path):
    scenario = SCENARIOS / "first-call.toml"
    short = ("run", scenario, "--json", "--no-report")
    written = command(*short, "--out", tmp_path / "there")
    alone = command(*short)
    assert written.returncode == alone.returncode == 0, written.stderr + alone.stderr
    assert json.loads(written.stdout) == json.loads(alone.stdout)


@pytest.mark.parametrize("name", [*TABLES[len(SUMMARIES) :], "packets"])
def test_a_table_alone_has_what_it_has_among_all(name: str) -> None:
    question = read(
        SCENARIOS / "video.toml",
        set={"record.packets": True, "duration": "12s", "measure.to": "11s"},
    )
    every, alone = (api.collect(question, [0], tables=tables)[0] for tables in ("memory", (name,)))
    assert alone.digest == every.digest
    for table in (*SUMMARIES, name):
        assert every.table(table).height, table
        assert_frame_equal(alone.table(table), every.table(table))
    for table in {*TABLES} - {*SUMMARIES, name}:
        with pytest.raises(KeyError):
            alone.table(table)
