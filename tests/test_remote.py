"""Results behind URLs of fsspec: written whole, resumed, read back; what cannot work is said first."""

import json
import shutil
import signal
import sys
from pathlib import Path

import fsspec
import pytest

import talkspurt as package
from command import output, refused, start, succeed, talkspurt, until
from conftest import fault
from talkspurt import api
from talkspurt._commands import reporting, running
from talkspurt._commands.options import RunOptions
from talkspurt._storage import file_access, output_folder, remote
from talkspurt.errors import BadInputError, MissingExtraError, StoreError


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    yield system
    system.rm("/", recursive=True)


def names(system, path):
    return sorted(system.find(path))


def test_a_study_is_written_and_read(study, memory):
    assert study.save("memory://bucket/deep/study", report=False) == Path(
        "memory:/bucket/deep/study"
    )
    again = package.load("memory://bucket/deep/study", study=True)
    assert again.to_json() == study.to_json()
    assert again.flows.equals(study.flows)
    manifest = json.loads(memory.cat("/bucket/deep/study/manifest.json"))
    there = [name.removeprefix("/bucket/deep/study/") for name in names(memory, "/bucket")]
    assert manifest["files"] == there


def test_an_earlier_version_is_replaced_and_nothing_else(study, result, memory):
    result.save("memory://b/one", report=False)
    memory.pipe("/b/one/old.txt", b"")
    with pytest.raises(StoreError, match=r"holds old\.txt, which talkspurt did not write"):
        result.save("memory://b/one", report=False)
    memory.rm("/b/one/old.txt")
    with fault("memory://b/one", r"holds a run of .* and would be replaced"):
        study.save("memory://b/one", report=False)
    study.save("memory://b/one", report=False, overwrite=True)
    assert not memory.exists("/b/one/frames.parquet")
    memory.pipe("/b/mine/thesis.tex", b"")
    with pytest.raises(StoreError, match="exists and is not a result of talkspurt"):
        result.save("memory://b/mine", report=False)


def test_the_manifest_is_written_last_and_removed_first(result, memory, monkeypatch):
    result.save("memory://b/one", report=False)
    put, seen = remote.Remote._put, []

    def watched(self, files):
        files = list(files)
        seen.append(
            ([name.rpartition("/")[2] for _, name in files], memory.exists("/b/one/manifest.json"))
        )
        put(self, files)

    monkeypatch.setattr(remote.Remote, "_put", watched)
    result.save("memory://b/one", report=False)
    (probe, _), (marker, _), (tables, whole), (last, _) = seen
    assert probe[0].startswith(".one.probe-") and last == ["manifest.json"]
    assert marker == [".one.uploading"]
    assert "flows.parquet" in tables and not whole
    assert all(name.startswith("/b/one/") for name in names(memory, "/b"))


def run(folder, url, **more):
    given = {"out": Path(url), "json": True, "report": False, "jobs": 1}
    running.run(folder / "study.toml", RunOptions(**given | more))


def test_a_stopped_study_is_resumed_from_its_url(folder, study, memory, monkeypatch, capsys):
    finish, kept = output_folder.Resumable.finish, []

    def stop(self, part):
        finish(self, part)
        kept.append(part.name)
        if len(kept) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(output_folder.Resumable, "finish", stop)
    with pytest.raises(KeyboardInterrupt) as raised:
        run(folder, "memory://b/study")
    assert "4 of 6 runs are kept: the same command goes on from there" in raised.value.__notes__
    archives = names(memory, "/b")
    assert len(archives) == 4 and all(".study.unfinished-" in name for name in archives)
    with pytest.raises(StoreError, match="there is no result of talkspurt here"):
        package.load("memory://b/study", study=True)
    run(folder, "memory://b/study")
    assert "4 of 6 runs were there already" in capsys.readouterr().err
    assert len(kept) == 6
    assert not [name for name in names(memory, "/b") if "unfinished" in name]
    again = package.load("memory://b/study", study=True)
    assert [one.digest for one in again.runs] == [one.digest for one in study.runs]
    # Further replications find the runs in the result.
    run(folder, "memory://b/study")


def test_a_lost_upload_is_continued(folder, memory, monkeypatch):
    put = remote.Remote.put

    def fail(self, folder, only=None):
        raise StoreError(5, "cannot write: broken", self.url)

    monkeypatch.setattr(remote.Remote, "put", fail)
    with pytest.raises(StoreError, match="broken") as raised:
        run(folder, "memory://b/study")
    assert raised.value.__notes__ == ["6 of 6 runs are kept: the same command goes on from there"]
    monkeypatch.setattr(remote.Remote, "put", put)
    run(folder, "memory://b/study")
    assert len(package.load("memory://b/study", study=True).runs) == 6


def test_a_run_that_was_not_uploaded_is_not_kept(folder, memory, monkeypatch, capsys):
    keep, tried = remote.Remote.keep, []

    def fail(self, part, key):
        tried.append(part.name)
        if len(tried) == 4:
            raise StoreError(5, "cannot write: broken", self.url)
        keep(self, part, key)

    with monkeypatch.context() as patched, pytest.raises(StoreError, match="broken") as raised:
        patched.setattr(remote.Remote, "keep", fail)
        run(folder, "memory://b/study")
    assert raised.value.__notes__ == ["3 of 6 runs are kept: the same command goes on from there"]
    run(folder, "memory://b/study")
    assert "3 of 6 runs were there already" in capsys.readouterr().err


def test_a_damaged_result_is_named_by_its_url(folder, tmp_path):
    url = f"file://{tmp_path}/far/study"
    done = succeed("run", folder / "study.toml", "--out", url, "--no-report", cwd=tmp_path)
    lost = sorted((tmp_path / "far" / "study" / "runs").glob("*/flows.parquet"))[2]
    lost.unlink()
    name = lost.relative_to(tmp_path / "far" / "study").as_posix()
    done = talkspurt("metrics", url, "mos", cwd=tmp_path)
    assert done.stderr == f"talkspurt: {url}/{name}: is missing: the result is not whole\n"
    (tmp_path / "far" / "study" / "manifest.json").write_text("{")
    done = talkspurt("metrics", url, "mos", cwd=tmp_path)
    assert done.stderr.startswith(f"talkspurt: {url}/manifest.json: is damaged")


def test_a_killed_command_is_resumed_and_read_by_the_others(folder, tmp_path):
    url = f"file://{tmp_path}/far/study"
    words = ("run", folder / "study.toml", "--set", "duration=40s", "--out", url, "--jobs", "1")
    running = start(*words, "--no-report", cwd=tmp_path)
    until(lambda: len(list(tmp_path.glob("far/.study.unfinished-*/*.tar"))) >= 2, running)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    done = succeed(*words, "--no-report", cwd=tmp_path)
    assert "of 6 runs were there already" in done.stderr
    assert f"Results: {url}/" in done.stdout
    assert [entry.name for entry in (tmp_path / "far").iterdir()] == ["study"]

    done = succeed("report", url, cwd=tmp_path)
    assert done.stdout == f"Report: {url}/report.html\n"
    assert (tmp_path / "far" / "study" / "report.html").exists()
    manifest = json.loads((tmp_path / "far" / "study" / "manifest.json").read_text())
    assert "report.html" in manifest["files"]
    for command in (("plot", url, "mos", "-o", "mos.png"), ("metrics", url, "--table"),
                    ("compare", url, tmp_path / "far" / "study", "--json")):  # fmt: skip
        succeed(*command, cwd=tmp_path)
    assert (tmp_path / "mos.png").stat().st_size > 10_000


BAD = {
    "nothing://b/x": "nothing://b/x: cannot be used: Protocol not known: nothing",
    "gs://b/x": "install gcsfs",
    "memory://b/x": "URLs need fsspec, not installed: pip install",
    "file:///proc/no/x": "file:///proc/no/x: cannot write",
}


@pytest.mark.parametrize("url", BAD)
def test_what_cannot_work_is_said_before_the_first_run(folder, url, monkeypatch):
    monkeypatch.setattr(api, "collect", lambda *_, **__: pytest.fail("a run has begun"))
    if "need fsspec" in BAD[url]:
        monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(BadInputError) as raised:
        run(folder, url)
    assert BAD[url] in str(raised.value) and "\n" not in str(raised.value)
    assert isinstance(raised.value, MissingExtraError) == ("install" in str(raised.value))


def test_the_command_line_says_so_with_status_2(folder, tmp_path):
    done = refused("run", folder / "study.toml", "--out", "nothing://x/y", cwd=tmp_path)
    assert done.stderr == "talkspurt: nothing://x/y: cannot be used: Protocol not known: nothing\n"
    done = talkspurt("run", folder / "study.toml", "--shard", "1/2", "--out", "memory://x/y")
    assert (done.returncode, done.stderr) == (
        2, "talkspurt: memory://x/y: this is written to a folder of this machine only\n"
    )  # fmt: skip
    done = talkspurt("plot", "memory://x/y", "mos", cwd=tmp_path)
    assert done.stderr == "talkspurt: memory://x/y: there is no result of talkspurt here\n"
    assert not list(tmp_path.iterdir())


def test_commands_print_the_url_of_what_they_write(silent, tmp_path):
    """`pathlib` makes `file:/x` of `file:///x`, which several commands printed."""
    for name in ("one", "two"):
        silent.save(tmp_path / name, report=False)
    url = f"file://{tmp_path}/far/both"
    words = ("--no-report", "--out", url)
    done = succeed("compare", tmp_path / "one", tmp_path / "two", *words, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == f"Results: {url}/"


@pytest.mark.parametrize("beside", [True, False])
def test_a_report_is_named_by_its_url(capsys, beside):
    running.say_where(Path("s3://bucket/name"), True, beside=beside)
    between = "   Report: " if beside else "\nReport:  "
    where = "s3://bucket/name"
    assert capsys.readouterr().out == f"Results: {where}/{between}{where}/report.html\n"


def test_a_result_is_downloaded_once_unless_it_changed(result, silent, memory):
    result.save("memory://b/one", report=False)
    first = remote.of("memory://b/one").downloaded()
    assert remote.of("memory:/b/one").downloaded() == first
    silent.save("memory://b/one", report=False, overwrite=True)
    assert remote.of("memory://b/one").downloaded() != first


@pytest.mark.parametrize(
    ("place", "url"),
    [
        ("s3://b/x", "s3://b/x"), ("s3:/b/x/", "s3://b/x"), ("file:///t/x", "file:///t/x"),
        ("file:/t/x", "file:///t/x"), ("C:/x", None), ("out", None), ("/a/b:c", None),
        ("runs/x:y", None), ("a:b", None), ("FILE:/x", "file:///x"),
    ],
)  # fmt: skip
def test_what_is_a_url(place, url):
    assert file_access.url_of(place) == url == file_access.url_of(Path(place))


def test_fsspec_is_not_imported_without_need(folder):
    code = (
        "import sys, talkspurt; talkspurt.run(sys.argv[1]); import talkspurt._commands, "
        "talkspurt._commands.running; sys.exit('fsspec' in sys.modules)"
    )
    output(sys.executable, "-c", code, folder / "small.toml")


@pytest.mark.parametrize("kept", [0, 0.3, 0.6, 0.95])
def test_an_archive_that_was_cut_short_is_repeated(folder, memory, monkeypatch, capsys, kept):
    monkeypatch.setattr(remote.Remote, "put", lambda *_: pytest.fail("stopped"))
    with pytest.raises(pytest.fail.Exception):
        run(folder, "memory://b/study")
    monkeypatch.undo()
    victim = names(memory, "/b")[3]
    data = memory.cat(victim)
    memory.pipe(victim, data[: int(kept * len(data)) // 512 * 512])
    run(folder, "memory://b/study")
    assert "5 of 6 runs were there already" in capsys.readouterr().err
    listed = json.loads(memory.cat("/b/study/manifest.json"))["files"]
    assert {name.count("/") for name in listed if name.startswith("runs/")} <= {2, 3}
    assert not [name for name in listed if name.count("/") == 3 and "/audio/" not in name]


def test_a_run_whose_upload_was_stopped_is_not_said_to_be_kept(folder, memory, monkeypatch):
    put, archives = remote.Remote._put, []

    def stop(self, files):
        archives.extend(name for _, name in files if name.endswith(".tar"))
        if len(archives) == 3:
            raise KeyboardInterrupt
        put(self, files)

    monkeypatch.setattr(remote.Remote, "_put", stop)
    with pytest.raises(KeyboardInterrupt) as raised:
        run(folder, "memory://b/study")
    assert raised.value.__notes__ == ["2 of 6 runs are kept: the same command goes on from there"]


@pytest.mark.parametrize("earlier", [False, True])
def test_an_upload_that_was_cut_short_anywhere_is_not_whole_and_is_repeated(
    result, memory, monkeypatch, earlier
):
    """The last file is cut in the middle, as by stores that write in place."""
    put_file = type(memory).put_file
    cut, whole = 0, False
    while not whole:
        cut += 1
        memory.rm("/", recursive=True)
        if earlier:
            result.save("memory://b/one", report=False)
        done = []

        def stop(self, here, there, done=done, last=cut, **more):
            done.append(there)
            put_file(self, here, there, **more)
            if len(done) == last:
                self.pipe(there, self.cat(there)[: self.size(there) // 2])
                raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(type(memory), "put_file", stop)
            try:
                result.save("memory://b/one", report=False)
                whole = True
            except KeyboardInterrupt as stopped:
                if cut > 1:  # the first is the probe
                    assert "the same command repeats it" in stopped.__notes__[0]
        if not whole and (not earlier or cut > 2):
            said = "cut short: give the command" if cut > 1 else "there is no result of talkspurt"
            with fault("memory://b/one", said):
                package.load("memory://b/one")
            with pytest.raises(StoreError, match=said):
                reporting.show(Path("memory://b/one"))
        else:
            assert package.load("memory://b/one").digest == result.digest
        result.save("memory://b/one", report=False)
        assert package.load("memory://b/one").digest == result.digest
        listed = json.loads(memory.cat("/b/one/manifest.json"))["files"]
        assert names(memory, "/b") == sorted(f"/b/one/{name}" for name in listed)
    assert cut > 10


def test_files_that_others_put_there_meanwhile_are_left(result, memory, monkeypatch):
    result.save("memory://b/one", report=False)
    check = remote.Remote.check

    def checked(self, claim):
        check(self, claim)
        memory.pipe("/b/one/thesis.tex", b"mine")

    monkeypatch.setattr(remote.Remote, "check", checked)
    result.save("memory://b/one", report=False)
    assert memory.cat("/b/one/thesis.tex") == b"mine"


@pytest.mark.parametrize("key", ["../../out", "/out", "audio/../../../out"])
def test_keys_of_a_store_cannot_lead_out_of_the_folder(result, memory, monkeypatch, key):
    result.save("memory://keys/one", report=False)
    monkeypatch.setattr(type(memory), "find", lambda *_, **__: [f"/keys/one/{key}"])
    monkeypatch.setattr(type(memory), "get", lambda *_, **__: pytest.fail("it is read"))
    with pytest.raises(StoreError, match="leads out of a folder"):
        package.load("memory://keys/one")


@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
def test_an_upload_follows_no_link_of_this_machine(result, tmp_path, monkeypatch):
    mine = tmp_path / "mine"
    (mine / "audio").mkdir(parents=True)
    (mine / "thesis.tex").write_text("mine")
    place = tmp_path / "far" / "one"
    url = f"file://{place}"
    result.save(url, report=False)
    for name in (place / "flows.parquet", tmp_path / "far" / ".one.uploading"):
        name.unlink(missing_ok=True)
        name.symlink_to(mine / "thesis.tex")
    result.save(url, report=False)
    assert (mine / "thesis.tex").read_text() == "mine"
    assert not (place / "flows.parquet").is_symlink()
    assert [entry.name for entry in (tmp_path / "far").iterdir()] == ["one"]
    check = remote.Remote.check

    def checked(self, claim):
        check(self, claim)
        shutil.rmtree(place / "audio")
        (place / "audio").symlink_to(mine / "audio")

    monkeypatch.setattr(remote.Remote, "check", checked)
    with pytest.raises(StoreError, match="is a symbolic link; remove it"):
        result.save(url, report=False)
    assert not list((mine / "audio").iterdir())


def test_an_archive_cannot_leave_its_folder(tmp_path):
    import tarfile

    (tmp_path / "x").write_text("x")
    with tarfile.open(tmp_path / "run.tar", "w") as packed:
        packed.add(tmp_path / "x", "../../outside")
    with pytest.raises(tarfile.TarError, match="no file of the run"):
        remote._unpack(tmp_path / "run.tar", tmp_path / "runs" / "run")


def test_the_length_of_a_manifest_is_checked_before_it_is_read(tmp_path):
    (tmp_path / "far").mkdir()
    with (tmp_path / "far" / "manifest.json").open("wb") as file:
        file.truncate(10 << 30)
    with fault(f"file://{tmp_path}/far/manifest.json", "is longer than 512 MiB"):
        package.load(f"file://{tmp_path}/far")
