"""Results on disk: what is written reads back, and what is not whole is not there."""

import json
from pathlib import Path

import pytest

import talkspurt
from talkspurt import store
from talkspurt.result import TABLES


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
    assert (again.title, again.scenario, again.topology) == (
        result.title,
        result.scenario,
        result.topology,
    )


def test_the_folder_holds_what_is_promised(saved):
    names = {str(file.relative_to(saved)) for file in store.files_in(saved)}
    promised = {"scenario.toml", "manifest.json", "report.html", "audio/call.sent.wav"}
    promised |= {"audio/call.received.wav", "figures/delay.svg", "figures/delay.png"}
    promised |= {f"{table}.parquet" for table in TABLES}
    assert promised <= names
    manifest = json.loads((saved / "manifest.json").read_text())
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
    text = (saved / "scenario.toml").read_text()
    place = tmp_path / "again.toml"
    place.write_text(text)
    for wav in folder.glob("*.wav"):
        (tmp_path / wav.name).write_bytes(wav.read_bytes())
    assert talkspurt.run(place).digest == result.digest


def test_a_study_reads_back_as_itself(study, tmp_path):
    place = study.save(tmp_path / "study", report=False)
    again = talkspurt.load(place)
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


def test_an_empty_folder_is_taken(result, tmp_path):
    (tmp_path / "out").mkdir()
    assert result.save(tmp_path / "out", report=False).name == "out"


@pytest.mark.parametrize("what", ["file", "folder", "note", "link"])
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
    with pytest.raises(store.StoreError) as raised:
        result.save(place, report=False)
    assert str(place) in str(raised.value)
    assert sorted(str(file) for file in tmp_path.rglob("*")) == before


def test_a_failure_half_way_leaves_nothing(result, tmp_path, monkeypatch):
    place = tmp_path / "out"
    result.save(place, report=False)
    before = (place / "manifest.json").read_bytes()

    def fail(file, frame):
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "write_table", fail)
    with pytest.raises(KeyboardInterrupt):
        result.save(place, report=False)
    assert (place / "manifest.json").read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_said_in_words_with_the_file(result):
    full = Path("/dev/full")
    for write in (
        lambda: store.write_bytes(full, b"x" * 100_000),
        lambda: store.write_table(full, result.flows),
    ):
        with pytest.raises(store.StoreError, match=r"the disk is full.*/dev/full"):
            write()


def test_opening_what_is_no_result_says_so(tmp_path):
    with pytest.raises(store.StoreError, match="no result"):
        talkspurt.load(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(store.StoreError, match="not a manifest"):
        talkspurt.load(tmp_path)


def test_names_of_flows_become_names_of_files():
    assert store.file_name("call") == "call"
    assert store.file_name("../a/b:c", "wav") == ".._a_b_c.wav"
