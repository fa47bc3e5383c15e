"""A result that is damaged, or of another version, is said to be so in words that name the file."""

import shutil

import polars as pl
import pytest

import talkspurt as package
from command import talkspurt
from conftest import edit, fault
from talkspurt._storage import output_folder
from talkspurt.errors import OtherVersionWarning, StoreError


@pytest.fixture(scope="module")
def saved(folder, tmp_path_factory):
    result = package.run(folder / "small.toml", set={"record.packets": True})
    return result.save(tmp_path_factory.mktemp("damage") / "whole", report=False)


@pytest.fixture
def place(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "out")


def truncate(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def scribble(file):
    data = bytearray(file.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    start = len(data) - 8 - footer  # the footer lists the columns and where they are
    data[start : start + 392] = bytes(392)
    file.write_bytes(data)


HARM = {"half": truncate, "empty": lambda file: file.write_bytes(b""), "scribbled": scribble}


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("name", ["flows", "series", "packets"])
def test_a_damaged_table_is_named(place, name, harm):
    file = place / f"{name}.parquet"
    HARM[harm](file)
    with fault(file, r"is damaged: ."):
        package.load(place).table(name)


@pytest.mark.parametrize("harm", HARM)
def test_gauges_of_which_one_is_read_are_named(place, harm):
    file = place / "gauges.parquet"
    HARM[harm](file)
    with fault(file, r"is damaged: ."):
        package.load(place).gauges(gauge="cwnd")


@pytest.mark.parametrize("name", ["flows", "series", "packets"])
def test_a_table_that_is_gone_is_named_and_no_setting_is_blamed(place, name):
    (place / f"{name}.parquet").unlink()
    with fault(place / f"{name}.parquet", "is missing: the result is not whole"):
        package.load(place).table(name)


def test_a_table_nobody_asked_for_is_not_missing(result, tmp_path):
    place = result.save(tmp_path / "out", report=False)
    with pytest.raises(KeyError, match=r"does not set record\.packets"):
        package.load(place).table("packets")


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("name", ["manifest.json", "topology.json"])
def test_damaged_json_is_named(place, name, harm):
    HARM[harm](place / name)
    with fault(place / name, "is damaged"):
        package.load(place)


@pytest.mark.parametrize("name", ["topology.json", "scenario.toml"])
def test_a_file_that_is_gone_is_named(place, name):
    (place / name).unlink()
    with fault(place / name, "is missing"):
        package.load(place)


@pytest.mark.parametrize("side", ["sent", "received"])
def test_a_damaged_recording_is_named(place, side):
    file = place / "audio" / f"call.{side}.wav"
    file.write_bytes(file.read_bytes()[:20])
    with fault(file, "is damaged"):
        package.load(place).audio("call")


RUN_KEYS = ("name", "title", "description", "settings", "replicate", "seed", "digest",
            "duration_s", "hops", "cpu_s", "made_of")  # fmt: skip
STUDY_KEYS = ("name", "title", "description", "axes", "replications", "confidence", "set", "runs")


@pytest.mark.parametrize("key", RUN_KEYS)
def test_a_manifest_without_a_key_is_damaged(place, key):
    edit(place, **{key: None})
    with pytest.raises(StoreError, match=f"manifest.json|'{key}' is missing"):
        package.load(place)
    edit(place, **{key: ["nonsense"]})
    with pytest.raises(StoreError, match=f"'{key}' is not what it must be"):
        package.load(place)


@pytest.mark.parametrize("key", STUDY_KEYS)
def test_a_study_without_a_key_is_damaged(study, tmp_path, key):
    place = study.save(tmp_path / "out", report=False)
    edit(place, **{key: None})
    with pytest.raises(StoreError, match=f"'{key}' is missing"):
        package.load(place)


def test_a_study_of_nonsense_is_damaged(study, tmp_path):
    place = study.save(tmp_path / "out", report=False)
    edit(place, runs=[{"nonsense": 1}])
    with pytest.raises(StoreError, match=r"is damaged: 'runs\.0\.folder' is missing"):
        package.load(place)


def test_another_format_is_refused_and_another_version_named(place):
    edit(place, talkspurt="9.9.9")
    with pytest.warns(OtherVersionWarning, match=r"made by talkspurt 9\.9\.9, and this is"):
        assert package.load(place).flows.height
    edit(place, format=output_folder.FORMAT + 1)
    with pytest.raises(StoreError, match=r"written by talkspurt 9\.9\.9 in format 2"):
        package.load(place)
    edit(place, format=None)
    with pytest.raises(StoreError, match="before formats had numbers"):
        package.load(place)


def test_a_column_that_another_version_did_not_have_is_null(place):
    file = place / "flows.parquet"
    flows = pl.read_parquet(file)
    flows.drop("stand_in", "delay_p99_s").write_parquet(file)
    with pytest.raises(StoreError, match="is damaged: the column 'delay_p99_s' is missing"):
        _ = package.load(place).flows
    edit(place, talkspurt="0.0.1")
    with pytest.warns(OtherVersionWarning):
        found = package.load(place).flows
    assert found.schema == {**found.schema, "delay_p99_s": pl.Float64, "stand_in": pl.String}
    assert found["delay_p99_s"].null_count() == found.height == flows.height
    flows.drop("name").write_parquet(file)
    with (
        pytest.warns(OtherVersionWarning),
        pytest.raises(StoreError, match="is damaged: the column 'name' is missing"),
    ):
        _ = package.load(place).flows


COMMANDS = {
    "series": ("metrics", "m", "{place}/packets.parquet: is damaged: "),
    "topology": ("export", "--to=csv", "{place}/topology.json: is damaged: "),
    "version": ("export", "--to=csv", "{place} was made by talkspurt 9.9.9, and this is "),
    "format": ("metrics", "m", "{place}: was written by talkspurt 9.9.9 in format 77"),
}


@pytest.mark.parametrize("what", COMMANDS)
def test_the_command_line_says_so_without_a_traceback(place, what):
    if what == "series":
        truncate(place / "packets.parquet")
    elif what == "topology":
        truncate(place / "topology.json")
    else:
        edit(place, talkspurt="9.9.9", format=77 if what == "format" else output_folder.FORMAT)
    command, more, words = COMMANDS[what]
    done = talkspurt(command, place, more, cwd=place.parent)
    assert done.stderr.startswith(f"talkspurt: {words.format(place=place)}"), done.stderr
    assert done.stderr.count("\n") == 1
    assert (done.returncode == 0) == (what == "version")


def test_an_export_is_no_result(place, tmp_path):
    assert talkspurt("export", "out", "--to", "csv", "--out", "e", cwd=tmp_path).returncode == 0
    for command in (("metrics", "e", "m"), ("export", "e", "--to", "nam")):
        done = talkspurt(*command, cwd=tmp_path)
        assert done.stderr == "talkspurt: e: holds an export to csv, not a result\n"
        assert done.returncode == 1


@pytest.mark.parametrize("bin_s", ["nan", "inf", "0", "1e-9"])
def test_a_width_of_bins_that_cannot_be_is_named(place, bin_s):
    done = talkspurt("metrics", place, "m", f"--bin={bin_s}")
    assert done.stderr.startswith(f"talkspurt: --bin {float(bin_s):g}: "), done.stderr
    assert done.returncode == 2
