"""Results on disk: what is written reads back, and what is not whole is not there."""

import dataclasses
import errno
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

import talkspurt
from conftest import edit, fault
from talkspurt._storage import file_access, output_folder, writer
from talkspurt.errors import StoreError
from talkspurt.results.run_data import TABLES
from texts import put


@pytest.fixture(scope="module")
def saved(result, tmp_path_factory):
    return result.save(tmp_path_factory.mktemp("saved") / "small")


def test_a_result_reads_back_as_itself(result, saved):
    again = talkspurt.load(saved)
    assert again.to_json() == result.to_json()
    for table in TABLES:
        assert again.table(table).equals(result.table(table)), table
    for call in result.calls:
        assert again.audio(call) == result.audio(call)
    for name in ("title", "scenario", "topology"):
        assert getattr(again, name) == getattr(result, name)


def test_the_folder_holds_what_is_promised(saved):
    names = {str(file.relative_to(saved)) for file in file_access.files_in(saved)}
    promised = {"scenario.toml", "manifest.json", "report.html", "audio/call.sent.wav"}
    promised |= {"audio/call.received.wav", "figures/topology.svg"}
    manifest = json.loads((saved / "manifest.json").read_text())
    assert list(manifest["empty_tables"]) == ["video_frames"]
    promised |= {f"{table}.parquet" for table in set(TABLES) - {"video_frames"}}
    assert promised <= names and "video_frames.parquet" not in names
    for key in ("talkspurt", "seed", "digest", "wall_s", "cpu_s", "hops", "created", "python"):
        assert manifest[key] is not None, key
    assert set(manifest["files"]) | {"manifest.json"} == names


def test_a_call_without_a_recording_has_everything_but_the_sound(silent, tmp_path):
    place = silent.save(tmp_path / "silent")
    names = {file.name for file in (place / "audio").iterdir()}
    assert names == {"tcp-call.sent.wav", "tcp-call.received.wav"}
    again = talkspurt.load(place)
    assert (again.calls, again.heard) == (silent.calls, silent.heard)


def test_the_scenario_saved_can_be_run_again(saved, result, folder, tmp_path):
    place = put(tmp_path / "again.toml", (saved / "scenario.toml").read_text())
    for wav in folder.glob("*.wav"):
        (tmp_path / wav.name).write_bytes(wav.read_bytes())
    assert talkspurt.run(place).digest == result.digest


def test_a_study_reads_back_as_itself(study, tmp_path):
    place = study.save(tmp_path / "study", report=False)
    again = talkspurt.load(place, study=True)
    assert again.to_json() == study.to_json()
    assert again.flows.equals(study.flows)
    assert again.axes == study.axes


def test_a_result_of_ours_is_replaced(result, tmp_path):
    place = tmp_path / "out"
    result.save(place, report=False)
    (place / "events.parquet").unlink()
    result.save(place, report=False)
    assert (place / "events.parquet").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def renamed(result, **said):
    """The same result, as if it were of another scenario."""
    manifest = {**result.manifest, "file": said.get("file", result.manifest["file"])}
    return dataclasses.replace(result, name=said.get("name", result.name), manifest=manifest)


def test_a_result_of_another_scenario_is_replaced_only_on_request(result, study, tmp_path):
    place = study.save(tmp_path / "out", report=False)
    digests = [run.digest for run in study.runs]
    said = "holds a study of 6 runs, made from .*study.toml, and would be replaced; .*--overwrite"
    with pytest.raises(StoreError, match=said):
        result.save(place, report=False)
    assert [run.digest for run in talkspurt.load(place, study=True).runs] == digests
    result.save(place, report=False, overwrite=True)
    assert talkspurt.load(place).digest == result.digest
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("form", [2, 1.5, "two", [1]])
def test_a_result_of_a_format_to_come_is_replaced_only_on_request(result, tmp_path, form):
    place = result.save(tmp_path / "out", report=False)
    edit(place, format=form)
    before = (place / "manifest.json").read_bytes()
    with pytest.raises(StoreError, match=r"in format .*cannot read.*replaced; .*--overwrite"):
        result.save(place, report=False)
    assert (place / "manifest.json").read_bytes() == before
    with pytest.raises(StoreError, match=r"in format .*or say --overwrite"):
        output_folder.Staging(place, output_folder.Claim("export")).__enter__()
    result.save(place, report=False, overwrite=True)
    assert talkspurt.load(place).digest == result.digest


def test_two_scenarios_of_one_name_are_two_unless_one_was_moved(result, tmp_path):
    place = result.save(tmp_path / "out", report=False)
    elsewhere = renamed(result, file=str(tmp_path / "elsewhere.toml"))
    with pytest.raises(StoreError, match="would be replaced"):
        elsewhere.save(place, report=False)
    (tmp_path / "by-link.toml").symlink_to(result.manifest["file"])
    renamed(result, file=str(tmp_path / "by-link.toml")).save(place, report=False)
    moved = renamed(result, file=str(tmp_path / "gone.toml"))
    moved.save(tmp_path / "moved", report=False)
    result.save(tmp_path / "moved", report=False)
    assert talkspurt.load(tmp_path / "moved").manifest["file"] == result.manifest["file"]


def test_nothing_is_put_into_a_result(result, tmp_path):
    place = result.save(tmp_path / "out", report=False)
    for within in (place / "more", place / "audio" / "more"):
        with pytest.raises(StoreError, match="lies inside"):
            result.save(within, report=False)
    (tmp_path / "by-link").symlink_to(place)
    with pytest.raises(StoreError, match="lies inside"):
        result.save(tmp_path / "by-link" / "more", report=False)
    result.save(place, report=False)  # which is still whole and ours


def left_behind(tmp_path, name, old=None):
    """What somebody left who was killed: a hidden sibling whose lock nobody holds."""
    litter = tmp_path / f".{name}.partial-dead"
    litter.mkdir()
    (litter / ".lock").touch()
    if old:
        shutil.copytree(old, litter / "old")
    return litter


@pytest.mark.skipif(sys.platform == "win32", reason="no locks to tell the dead by")
def test_what_the_dead_left_is_removed_and_the_living_are_not_disturbed(result, tmp_path):
    left_behind(tmp_path, "out")
    other = left_behind(tmp_path, "other")
    with output_folder.Staging(tmp_path / "out", output_folder.Claim("run")) as living:
        (living.folder / "half").write_text("…")
        result.save(tmp_path / "out", report=False)
        assert (living.folder / "half").exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [other.name, "out"]


def test_a_sibling_whose_process_was_killed_before_the_lock_is_removed(result, tmp_path):
    """Unless it has content, or is so young that the process may be about to lock it."""
    names = [f".out.partial-{which}" for which in ("empty", "young", "used")]
    empty, young, used = (tmp_path / name for name in names)
    for folder in (empty, young, used):
        folder.mkdir()
    (used / "file").touch()
    for folder in (empty, used):
        os.utime(folder, (1, 1))
    result.save(tmp_path / "out", report=False)
    left = sorted(entry.name for entry in tmp_path.iterdir())
    assert left == sorted([young.name, used.name, "out"])


@pytest.mark.skipif(sys.platform == "win32", reason="no locks to tell the dead by")
def test_what_was_moved_aside_by_one_who_was_killed_there_is_put_back(result, tmp_path):
    place = result.save(tmp_path / "out", report=False)
    left_behind(tmp_path, "out", old=place)
    shutil.rmtree(place)
    with output_folder.Staging(place, output_folder.Claim("run", result.name)) as staging:
        assert staging.news == [f"{place} was moved aside by one who was killed, and is back"]
        assert talkspurt.load(place).digest == result.digest
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_cannot_be_renamed_into_place_leaves_the_old(result, tmp_path, monkeypatch):
    place = result.save(tmp_path / "out", report=False)
    before = (place / "manifest.json").read_bytes()
    rename = Path.rename

    def fail(self, target):
        if Path(target) == place and ".partial-" in self.name:
            raise OSError(errno.EIO, "broken")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(StoreError, match="broken"):
        result.save(place, report=False)
    assert (place / "manifest.json").read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_is_taken(result, tmp_path):
    (tmp_path / "out").mkdir()
    assert result.save(tmp_path / "out", report=False).name == "out"


NOT_OURS = {
    "file": "exists and is not a folder; choose another --out",
    "folder": "exists and is not a result of talkspurt; choose another --out",
    "note": "holds notes.txt, which talkspurt did not write; move it or choose another --out",
    "link": "is a symbolic link; choose another --out",
}


@pytest.mark.parametrize("what", NOT_OURS)
def test_what_is_not_ours_is_left_alone(result, tmp_path, what):
    place = tmp_path / "out"
    if what == "file":
        place.write_text("mine")
    elif what == "folder":
        place.mkdir()
        (place / "thesis.tex").write_text("mine")
    elif what == "note":
        result.save(place, report=False)
        (place / "notes.txt").write_text("mine")
    else:
        (tmp_path / "else").mkdir()
        place.symlink_to(tmp_path / "else")
    before = sorted(str(file) for file in tmp_path.rglob("*"))
    with fault(place) as raised:
        result.save(place, report=False)
    assert raised.value.strerror == NOT_OURS[what]
    with pytest.raises(StoreError):
        result.save(place, report=False, overwrite=True)
    assert sorted(str(file) for file in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("what", ["loop", "file"])
def test_a_place_below_what_is_no_folder_names_it(result, tmp_path, what):
    """Before, a loop of links ended in a traceback (until Python 3.13)."""
    above = tmp_path / "above"
    if what == "loop":
        above.symlink_to(tmp_path / "below")
        (tmp_path / "below").symlink_to(above)
    else:
        above.write_text("mine")
    with pytest.raises(StoreError) as raised:
        result.save(above / "out", report=False)
    assert f"{above} is not a folder" in raised.value.strerror
    with pytest.raises(StoreError, match=r"above is not a folder"):
        file_access.write_bytes(above / "figure.png", b"x")


def test_a_failure_half_way_leaves_nothing(result, tmp_path, monkeypatch):
    place = tmp_path / "out"
    result.save(place, report=False)
    before = (place / "manifest.json").read_bytes()

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, "write_table", fail)
    with pytest.raises(KeyboardInterrupt):
        result.save(place, report=False)
    assert (place / "manifest.json").read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_said_in_words_with_the_file(result):
    full = Path("/dev/full")
    for write in (
        lambda: file_access.write_bytes(full, b"x" * 100_000),
        lambda: file_access.write_table(full, result.flows),
    ):
        with pytest.raises(StoreError, match=r"the disk is full.*/dev/full"):
            write()


def test_a_folder_below_a_file_is_said_to_be(result, tmp_path):
    (tmp_path / "mine").write_text("notes")
    place = tmp_path / "mine" / "deep" / "out"
    with fault(place, f"{tmp_path}/mine is not a folder; choose"):
        result.save(place)
    assert (tmp_path / "mine").read_text() == "notes"


def test_opening_what_is_no_result_says_so(tmp_path):
    for text, said in ((None, "no result"), ("{", "is damaged"), ("{}", "not a manifest of talk")):
        if text:
            put(tmp_path / "manifest.json", text)
        with pytest.raises(StoreError, match=said):
            talkspurt.load(tmp_path)


def test_names_of_flows_become_names_of_files():
    assert file_access.file_name("call") == "call"
    assert file_access.file_name("../a/b:c", "wav") == ".._a_b_c-e9274756.wav"  # sha256 of the name


@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
def test_links_that_others_put_in_the_place_of_temporary_files_are_not_followed(tmp_path):
    other = tmp_path / "other"
    other.write_text("of somebody else")
    (tmp_path / f".a.svg.{os.getpid()}").symlink_to(other)
    file_access.replace_bytes(tmp_path / "a.svg", b"<svg/>")
    assert (tmp_path / "a.svg").read_bytes() == b"<svg/>"
    (tmp_path / ".out.unfinished-key").mkdir()
    (tmp_path / ".out.unfinished-key" / ".lock").symlink_to(other)
    with pytest.raises(StoreError, match="symbolic links"):
        output_folder.Resumable(
            tmp_path / "out", "key", 3, output_folder.Claim("run", "x")
        ).__enter__()
    assert other.read_text() == "of somebody else"
