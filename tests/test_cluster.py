"""Studies on workers of dask.distributed: the bytes of one machine, and every fault is named."""

import contextlib
import hashlib
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import talkspurt as package
from command import output, start, succeed, told, until
from conftest import tone, write_wav
from talkspurt._cluster import Address, client, proof, work
from talkspurt._commands import running
from talkspurt._commands.options import RunOptions
from talkspurt.errors import BadInputError
from talkspurt.results import concatenation
from talkspurt.results.run_data import TABLES
from validation.cluster.machines import Machines, another_version, kill, stopped, study, tables

pytest.importorskip("distributed")

RECORD = '{ interval = "100ms", packets = true, pcapng = ["wire"] }'
STUDY = study("Cluster", "1s", 16, file="speech.wav", record=RECORD)
SINGLE = STUDY.partition("[[axes]]")[0]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    (folder / "single.toml").write_text(SINGLE, encoding="utf-8")
    write_wav(folder / "speech.wav", tone(0.5))
    succeed("run", "study.toml", "--out", "whole", "--no-report", cwd=folder)
    return folder


def test_workers_killed_and_of_another_version(place):
    with Machines(place) as machines:
        machines.scheduler()
        first, second = machines.worker("first"), machines.worker("second")
        machines.worker("old", env=another_version(place))
        machines.wait(3)
        errors = place / "errors"
        with errors.open("w") as sink:
            words = ("study.toml", "--out", "out", "--no-report", "--cluster", machines.url)
            # The study cannot end before the third worker was rejected, nor before one was killed.
            with stopped(second):
                with stopped(first):
                    running = start("run", *words, cwd=place, stderr=sink)
                    until(lambda: "is rejected" in errors.read_text(), running)
                until(lambda: any(place.glob(".out.unfinished-*/runs/*")), running)
                kill(first)
            running.communicate(timeout=100)
    said = errors.read_text()
    assert running.returncode == 0, said
    assert "Traceback" not in said
    assert said.count("is rejected: another version of talkspurt") == 1, said
    assert tables(place / "out") == tables(place / "whole")
    assert len(tables(place / "whole")) > 16 * 5


def test_a_pool_of_processes(place):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        study = package.run(place / "study.toml", executor=pool, study=True)
    whole = package.load(place / "whole", study=True)
    assert len(study.runs) == len(whole.runs) == 16
    for one, other in zip(study.runs, whole.runs, strict=True):
        assert one.digest == other.digest
        for name in (*TABLES, "packets"):
            assert one.table(name).equals(other.table(name)), name


def test_a_pool_that_forks_is_refused(place):
    with (
        ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool,
        pytest.raises(ValueError, match=r'get_context\("spawn"\)'),
    ):
        package.run(place / "study.toml", study=True, executor=pool)


def test_no_file_is_read_again_for_the_tables_of_the_study(place, tmp_path, monkeypatch, capsys):
    def fail(runs, table):
        raise AssertionError(f"{table} of {len(runs)} runs are read from files")

    question = package.read(place / "study.toml")
    with (
        ThreadPoolExecutor(2) as pool,
        monkeypatch.context() as patched,
    ):
        patched.setattr(concatenation, "stack", fail)
        options = RunOptions(out=tmp_path / "out", report=False)
        running._run(question, (), 0, options, far=None, executor=pool)
    assert "Results: " in capsys.readouterr().out
    found, whole = tables(tmp_path / "out"), tables(place / "whole")
    assert found == whole
    # Longer ones are.
    monkeypatch.setattr(work, "MAX_ROWS", 0)
    with ThreadPoolExecutor(2) as pool, pytest.raises(AssertionError, match="read from files"):
        monkeypatch.setattr(concatenation, "stack", fail)
        options = RunOptions(out=tmp_path / "long", report=False)
        running._run(question, (), 0, options, far=None, executor=pool)


def sent(place, name):
    """A study whose recording has a path that is not here, and one of its runs."""
    resolved = package.read(place / "study.toml").plan.resolved(0)
    data = (place / "speech.wav").read_bytes()
    path = str((place / "speech.wav").resolve())
    wanted = hashlib.sha256(data).hexdigest()
    study = {
        "name": "study", "title": "t", "description": "", "file": None, "set": {},
        "files": {name: wanted}, "contents": {},
    }  # fmt: skip
    task = {"run": 0, "scenario": resolved.replace(path, name), "settings": {}, "replicate": 0}
    return study, task, data, wanted


def test_a_worker_without_the_recording_gets_it(place, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "_place", lambda: tmp_path)
    name = "/there is no/../such folder/speech.wav"
    study, task, data, wanted = sent(place, name)
    assert work.batch(study, [task]) == {"runs": {}, "rows": {}, "lacks": [wanted]}
    reply = work.batch({**study, "contents": {wanted: data}}, [task])
    client.write_files(reply["runs"][0], tmp_path / "run")
    (whole,) = (place / "whole" / "runs").glob("0000-*")
    assert tables(tmp_path / "run") == tables(whole)
    for file in (whole / "audio").iterdir():
        assert (tmp_path / "run" / "audio" / file.name).read_bytes() == file.read_bytes()
    assert name in (tmp_path / "run" / "scenario.toml").read_text()
    # It is kept under its hash and nowhere else.
    assert [f.name for f in (tmp_path / "talkspurt-files").iterdir()] == [wanted]
    assert "runs" in work.batch(study, [task]) and not Path(name).exists()


def test_other_bytes_than_were_sent_are_refused(place, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "_place", lambda: tmp_path)
    study, task, data, wanted = sent(place, "/nowhere/speech.wav")
    reply = work.batch({**study, "contents": {wanted: data + b"x"}}, [task])
    assert "other bytes arrived" in reply["reason"]
    study["files"] = {"/nowhere/speech.wav": "../../etc/passwd"}
    assert "is not a SHA-256" in work.batch(study, [task])["reason"]
    assert not (tmp_path / "talkspurt-files").exists() or not any(
        (tmp_path / "talkspurt-files").iterdir()
    )


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "..\\x"])
def test_a_worker_cannot_write_elsewhere(tmp_path, name):
    with pytest.raises(BadInputError, match="outside its run"):
        client.write_files({name: b""}, tmp_path / "run")


def test_the_proof_names_what_differs():
    codecs = [{"codec": "pcmu", "packet": "20ms"}, {"codec": "opus", "packet": "20ms"}]
    here = proof.of_this(codecs)
    assert here == proof.of_this(codecs)
    assert sum("codec" in what for what in here) == 2
    assert not [value for value in here.values() if value.startswith("none")]
    for what in here:
        said = proof.difference(here, {**here, what: "other"})
        assert said and what in said
    assert proof.difference(here, {}) and not proof.difference(here, here)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:1", "expected tcp://HOST:PORT"),
        ("local:0", "expected tcp://HOST:PORT"),
        ("local:x", "expected tcp://HOST:PORT"),
        ("tcp://192.0.2.1:8786", "use tls://"),
        ("tcp://example.org:8786", "use tls://"),
    ],
)
def test_addresses_that_are_refused(url, said):
    with pytest.raises(BadInputError, match=said):
        Address(url, {}).check()


@pytest.mark.parametrize(
    "url", ["tcp://127.0.0.1:1", "tcp://[::1]:1", "tls://example.org:1", "local:4"]
)
def test_addresses_that_are_not(url):
    Address(url, {}).check()
    Address("tcp://192.0.2.1:8786", {}, plain=True).check()


def test_bad_input_on_the_command_line(place, tmp_path):
    def said(*words, **more):
        return told("run", *words, cwd=place, **more)

    assert "is a single run" in said("single.toml", "--cluster", "local:2")
    without = said("study.toml", "--cluster", "tls://127.0.0.1:9", "--out", tmp_path / "t")
    assert "TLS needs --tls-ca, --tls-cert and --tls-key" in without
    assert "cannot be reached" in said("study.toml", "--cluster", "tcp://127.0.0.1:9")
    assert "for --cluster" in said("study.toml", "--plain-tcp")
    assert "no such file" in said(
        "study.toml", "--cluster", "tls://127.0.0.1:9", "--tls-ca", "no.pem"
    )
    (tmp_path / "distributed.py").write_text("raise ImportError('hidden')")
    env = {"PYTHONPATH": str(tmp_path)}
    line = said("study.toml", "--cluster", "local:2", env=env)
    assert "pip install 'talkspurt[cluster]'" in line
    assert not (place / "runs").exists()


def of_group(group):
    """How many processes of a group `multiprocessing` has started for workers."""
    count = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = stat.read_text().rpartition(")")[2].split()
            line = stat.with_name("cmdline").read_bytes()
            count += int(words[2]) == group and b"spawn_main" in line
    return count


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("stage", ["start", "work"])
def test_ctrl_c_of_a_terminal_says_one_line(place, tmp_path, stage):
    """It goes to the workers, too, also while they start."""
    # Too many runs to end before the signal.
    (place / "long.toml").write_text(study("Long", "1s", 1000, file="speech.wav", record=RECORD))
    process = start(
        "run", place / "long.toml", "--cluster", "local:2", "--no-report", "--out", tmp_path / "x",
        start_new_session=True,
    )  # fmt: skip
    until(lambda: of_group(process.pid), process)
    if stage == "work":
        until(lambda: any(tmp_path.glob(".x.unfinished-*/runs/*")), process)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said and said.splitlines()[-1].startswith("talkspurt: stopped")


def test_workers_end_while_the_study_is_written(place, tmp_path, monkeypatch):
    """Before, the command waited for their end when everything was written."""
    from talkspurt._cluster import connected
    from talkspurt._cluster.workers import Dask
    from talkspurt._storage import output_folder, writer
    from talkspurt.scenarios.source import read

    order = []

    def noted(name, function):
        def call(*given, **more):
            order.append(name)
            return function(*given, **more)

        return call

    monkeypatch.setattr(Dask, "release", noted("release", Dask.release))
    monkeypatch.setattr(writer, "write_study", noted("write", writer.write_study))
    question = read(place / "study.toml")
    address = Address("local:1", {})
    for last, expected in ((True, ["release", "write"]), (False, ["write"])):
        order.clear()
        claim = output_folder.Claim("run", question.name)
        key = writer.key(question)
        folder = tmp_path / str(last)
        with (
            connected(address) as workers,
            output_folder.Resumable(folder, key, len(question.plan), claim) as unfinished,
        ):
            running._study_into(question, unfinished, RunOptions(), {}, executor=workers, last=last)
            unfinished.commit()
        assert order == expected
        assert workers.client.status == "closed"
        assert tables(folder) == tables(place / "whole")


def test_dask_is_not_imported_without_need():
    names = "talkspurt._commands, talkspurt._commands.running, talkspurt._cluster"
    code = f"import sys, {names}; sys.exit('distributed' in sys.modules)"
    output(sys.executable, "-c", code)
