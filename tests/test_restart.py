"""A study that was killed goes on where it was, and mixes with nothing else."""

import json
import os
import shutil
import signal
import sys

import pytest

import talkspurt as package
from command import start, succeed, talkspurt, until
from conftest import tone, write_wav
from talkspurt._storage import writer
from talkspurt.scenarios import provenance
from texts import UDP, axis_text, cbr, flow_text, link_text, put, scenario_text

STUDY = scenario_text(
    "Long",
    "20min",
    link_text("wire", "a>b", "1Mbit/s", "10ms"),
    *(flow_text(f"f{i}", "a>b", UDP, cbr("64kbit/s", "1000B")) for i in range(20)),
    record='{ interval = "60s" }',
    seed=1,
    replications="{ count = 12 }",
)


def finished(folder):
    names = [file.parent.name for file in folder.glob(".out.unfinished-*/runs/*/manifest.json")]
    return sorted(name for name in names if not name.endswith(".part"))


def stopped(tmp_path, number):
    """A study with some of its runs done, ended by a signal; what it said."""
    put(tmp_path / "study.toml", STUDY)
    running = start("run", "study.toml", "--out", "out", "--jobs", "1", cwd=tmp_path)
    until(lambda: len(finished(tmp_path)) >= 3, running, 120)
    running.send_signal(number)
    _, said = running.communicate(timeout=60)
    return said


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    file = put(tmp_path_factory.mktemp("whole") / "study.toml", STUDY)
    return [run.digest for run in package.run(file, study=True).runs]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_same_command_goes_on(tmp_path, whole, number):
    said = stopped(tmp_path, number)
    kept = finished(tmp_path)
    assert 3 <= len(kept) < 12
    if number != signal.SIGKILL:
        assert f"{len(kept)} of 12 runs are kept: the same command goes on from there" in said
    (folder,) = tmp_path.glob(".out.unfinished-*")
    written = {name: (folder / "runs" / name / "flows.parquet").stat().st_mtime_ns for name in kept}
    done = succeed("run", "study.toml", "--out", "out", "--no-report", cwd=tmp_path)
    assert f"{len(kept)} of 12 runs were there already" in done.stderr
    assert not list(tmp_path.glob(".out*"))
    for name, time_ns in written.items():
        assert (tmp_path / "out/runs" / name / "flows.parquet").stat().st_mtime_ns == time_ns
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert [run["digest"] for run in manifest["runs"]] == whole
    assert not [file for file in manifest["files"] if ".lock" in file or ".part" in file]


def test_a_half_written_table_is_made_again(tmp_path, whole):
    stopped(tmp_path, signal.SIGKILL)
    kept = finished(tmp_path)
    (folder,) = tmp_path.glob(".out.unfinished-*")
    table = folder / "runs" / kept[0] / "series.parquet"
    table.write_bytes(table.read_bytes()[:100])
    done = talkspurt("run", "study.toml", "--out", "out", "--no-report", cwd=tmp_path)
    assert f"{len(kept) - 1} of 12 runs were there already" in done.stderr
    assert [run.digest for run in package.load(tmp_path / "out", study=True).runs] == whole
    assert all(run.series().height > 0 for run in package.load(tmp_path / "out", study=True).runs)


def test_runs_of_another_scenario_are_left_alone_and_named(tmp_path):
    stopped(tmp_path, signal.SIGKILL)
    kept = finished(tmp_path)
    other = STUDY.replace("20min", "2s").replace("60s", "1s")
    put(tmp_path / "study.toml", other)
    done = succeed("run", "study.toml", "--out", "out", "--no-report", cwd=tmp_path)
    assert "runs of another scenario or version, left unfinished" in done.stderr
    assert "were there already" not in done.stderr
    assert finished(tmp_path) == kept


SHORT = STUDY.replace("20min", "2s").replace("60s", "1s").replace("count = 12", "count = 3")


def test_the_same_study_twice(tmp_path):
    put(tmp_path / "study.toml", SHORT)
    for seed in (1, 2, 2):
        succeed("run", "study.toml", "--out", "out", "--no-report", "--seed", seed, cwd=tmp_path)
        assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "study.toml"]
        assert package.load(tmp_path / "out", study=True).runs[0].seed == seed


def test_a_restart_over_an_older_result(tmp_path, whole):
    put(tmp_path / "study.toml", SHORT)
    talkspurt("run", "study.toml", "--out", "out", "--no-report", cwd=tmp_path)
    older = package.load(tmp_path / "out", study=True)
    stopped(tmp_path, signal.SIGKILL)
    assert [run.digest for run in package.load(tmp_path / "out", study=True).runs] == [
        run.digest for run in older.runs
    ]
    done = succeed("run", "study.toml", "--out", "out", "--no-report", cwd=tmp_path)
    assert "runs were there already" in done.stderr
    assert [run.digest for run in package.load(tmp_path / "out", study=True).runs] == whole
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "study.toml"]


SPOKEN = scenario_text(
    "Said",
    "1s",
    link_text("wire", "a>b", "1Mbit/s", "10ms"),
    flow_text("call", "a>b", UDP, '{ kind = "speech", file = "one.wav", codec = "pcmu" }'),
    axis_text("flows.call.source.file", '["one.wav", "two.wav"]', name="said"),
)


def test_runs_of_other_recordings_are_others(tmp_path):
    for name in ("one", "two"):
        write_wav(tmp_path / f"{name}.wav", tone(0.5))
    put(tmp_path / "study.toml", SPOKEN)

    def key():
        return writer.key(package.read(tmp_path / "study.toml"))

    first = key()
    # The same contents under a new date are the same; others of the same length and date are not.
    os.utime(tmp_path / "two.wav", (1, 1))
    assert key() == first
    pcm = bytearray(tone(0.5))
    pcm[100] ^= 1
    write_wav(tmp_path / "two.wav", bytes(pcm))
    os.utime(tmp_path / "two.wav", (2, 2))
    assert key() != first


def test_runs_of_another_engine_are_others(tmp_path, monkeypatch):
    question = package.read(put(tmp_path / "study.toml", SHORT))
    first = writer.key(question)
    library = tmp_path / "_core.so"
    shutil.copyfile(package._core.__spec__.origin, library)
    monkeypatch.setattr(package._core.__spec__, "origin", str(library))
    assert writer.key(question) == first
    with library.open("ab") as file:
        file.write(b"another")
    assert provenance.engine() != "not there"
    assert writer.key(question) != first


ALONE = STUDY.replace("20min", "10h").replace("replications = { count = 12 }\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_single_run_that_is_stopped_leaves_nothing_for_long(tmp_path, number):
    (tmp_path / "long.toml").write_text(ALONE, encoding="utf-8")
    running = start("run", "long.toml", "--out", "out", cwd=tmp_path)
    until(lambda: any(tmp_path.glob(".out.partial-*/.lock")), running, 120)
    running.send_signal(number)
    _, said = running.communicate(timeout=60)
    if number == signal.SIGKILL:
        assert list(tmp_path.glob(".out.partial-*"))
        (tmp_path / "long.toml").write_text(ALONE.replace("10h", "1s"), encoding="utf-8")
        succeed("run", "long.toml", "--out", "out", "--no-report", cwd=tmp_path)
        assert sorted(file.name for file in tmp_path.iterdir()) == ["long.toml", "out"]
    else:
        assert said.endswith("talkspurt: stopped; nothing was written\n")
        assert running.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130}[number]
        assert [file.name for file in tmp_path.iterdir()] == ["long.toml"]


def test_two_at_work_on_one_study_do_not_mix(tmp_path):
    put(tmp_path / "study.toml", STUDY)
    running = start("run", "study.toml", "--out", "out", "--jobs", "1", cwd=tmp_path)
    until(lambda: finished(tmp_path), running, 120)
    done = talkspurt("run", "study.toml", "--out", "out", "--jobs", "1", cwd=tmp_path)
    running.kill()
    running.communicate(timeout=60)
    assert done.returncode == 1, done.stderr
    assert "another talkspurt is at work on the same study" in done.stderr
