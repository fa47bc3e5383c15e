"""Shards of a study, merged: the same bytes as one run, and every wrong shard is named."""

import hashlib
import json
import shutil

import polars as pl
import pytest

import talkspurt as package
from command import succeed, talkspurt
from conftest import edit, tone, write_wav
from talkspurt._commands import running
from talkspurt._commands.options import RunOptions
from talkspurt.errors import BadInputError
from talkspurt.metrics import computing
from talkspurt.runs.merging import Shard
from texts import put
from validation.cluster.machines import study

RECORD = '{ interval = "100ms", packets = true, pcapng = ["wire"] }'
STUDY = study("Shards", "1s", 6, file="speech.wav", record=RECORD)
SINGLE = STUDY.partition("[[axes]]")[0]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the study, run at once into `whole` and in three shards into `1`, `2`, `3`."""
    folder = tmp_path_factory.mktemp("shards")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    (folder / "single.toml").write_text(SINGLE, encoding="utf-8")
    write_wav(folder / "speech.wav", tone(0.5))
    question = package.read(folder / "study.toml")
    succeed("run", "study.toml", "--out", "whole", "--no-report", cwd=folder)
    for n in (1, 2, 3):
        running.run_shard(question, Shard(n, 3), RunOptions(out=folder / str(n)))
    return folder


def sums(folder):
    """Every file of a study but the manifests, which have the time of the run."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.name != "manifest.json"
    }


def test_merged_shards_have_the_bytes_of_one_run(place):
    # In any order.
    where = package.merge([place / "3", place / "1", place / "2"], place / "merged", report=False)
    whole, merged = sums(place / "whole"), sums(where)
    assert whole == merged
    assert sum(name.endswith(".parquet") for name in whole) > 6 * 5
    one, other = (
        json.loads((place / w / "manifest.json").read_text()) for w in ("whole", "merged")
    )
    for manifest in (one, other):
        for key in ("cpu_s", "created"):
            del manifest[key]
    assert one == other


def test_shares_have_the_bytes_of_one_run(tmp_path):
    """Loss and delivery are divided after the run, from tables that were read in other ways."""
    text = study("Shares", "2s", 8).replace('["udp", "sctp"]', "[0.03, 0.1]")
    text = text.replace("flows.call.transport.kind", "links.wire.loss")
    text = text.replace('name = "transport"', 'name = "loss"')
    (tmp_path / "lossy.toml").write_text(text, encoding="utf-8")
    succeed("run", "lossy.toml", "--out", "whole", "--no-report", cwd=tmp_path)
    question = package.read(tmp_path / "lossy.toml")
    for n in (1, 2):
        running.run_shard(question, Shard(n, 2), RunOptions(out=tmp_path / str(n)))
    where = package.merge([tmp_path / "1", tmp_path / "2"], tmp_path / "merged", report=False)
    assert sums(tmp_path / "whole") == sums(where)


def test_a_share_does_not_depend_on_how_a_table_is_stored():
    """polars multiplies by the reciprocal of a column of which it knows that all values are equal."""
    lost = pl.DataFrame({"lost_packets": [7, 14, 13]})
    equal = lost.with_columns(pl.lit(99).alias("sent_packets"))
    plain = lost.with_columns(pl.Series("sent_packets", [99, 99, 99]))
    for flows in (equal, plain):
        assert computing.ratio(flows, "network_loss").to_list() == [7 / 99, 14 / 99, 13 / 99]
    none = pl.DataFrame({"lost_packets": [1, None, 0], "sent_packets": [None, 2, 0]})
    assert computing.ratio(none, "network_loss").to_list() == [None, None, None]


def test_shards_are_disjoint_and_complete():
    for total in (1, 7, 100):
        for of in (1, 2, 7):
            runs = [i for n in range(1, of + 1) for i in Shard(n, of).runs(total)]
            assert sorted(runs) == list(range(total))


def test_every_wrong_shard_is_named(place, tmp_path):
    other = put(tmp_path / "other.toml", STUDY.replace("seed = 3", "seed = 4"))
    write_wav(tmp_path / "speech.wav", tone(0.5))
    running.run_shard(package.read(other), Shard(3, 3), RunOptions(out=tmp_path / "foreign"))
    shutil.copytree(place / "2", tmp_path / "older")
    edit(tmp_path / "older", talkspurt="0.0.1")
    shutil.copytree(place / "1", tmp_path / "again")
    with pytest.raises(BadInputError) as error:
        package.merge(
            [place / "1", tmp_path / "again", tmp_path / "foreign", tmp_path / "older",
             place / "whole", tmp_path / "nowhere"],
            tmp_path / "out",
            report=False,
        )  # fmt: skip
    lines = str(error.value).splitlines()
    expected = [
        ("whole", "holds a study of 6 runs"), ("nowhere", "there is no result"),
        ("again", "is shard 1/3, as is"), ("foreign", "is of another study"),
        ("older", "was made by talkspurt 0.0.1"), ("study is missing", "shards 2, 3 of 3"),
    ]  # fmt: skip
    assert len(lines) == len(expected), lines
    for where, why in expected:
        assert any(where in line and why in line for line in lines), (where, why, lines)
    assert not (tmp_path / "out").exists()


def test_a_damaged_run_is_named(place, tmp_path):
    for n in ("1", "2", "3"):
        shutil.copytree(place / n, tmp_path / n)
    (flows, *_) = sorted((tmp_path / "2").glob("runs/*/flows.parquet"))
    flows.write_bytes(flows.read_bytes()[:50])
    with pytest.raises(BadInputError, match=f"{flows.parent.name}: cannot be read; run shard 2/3"):
        package.merge([tmp_path / n for n in ("1", "2", "3")], tmp_path / "out", report=False)


@pytest.mark.parametrize("folder", ["../../etc", "runs/..", "/etc/passwd", "runs/a/b", "x/y"])
def test_a_manifest_that_points_outside_is_refused(place, tmp_path, folder):
    shutil.copytree(place / "2", tmp_path / "2")
    first, *others = json.loads((place / "2" / "manifest.json").read_text())["runs"]
    edit(tmp_path / "2", runs=[first | {"folder": folder}, *others])
    with pytest.raises(BadInputError, match="is damaged"):
        package.merge([place / "1", tmp_path / "2", place / "3"], tmp_path / "out", report=False)


@pytest.mark.parametrize("text", ["5/4", "0/4", "-1/4", "1", "a/b", "1/0", "1/4/4", ""])
def test_what_is_no_shard(text):
    with pytest.raises(BadInputError, match="expected I/N"):
        Shard.parse(text)


def test_on_the_command_line(place):
    def said(*words, code):
        done = talkspurt(*words, cwd=place)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    assert "--shard 5/4: expected I/N" in said("run", "study.toml", "--shard", "5/4", code=2)
    assert "is a single run" in said("run", "single.toml", "--shard", "1/2", code=2)
    assert "at most 6 shards" in said("run", "study.toml", "--shard", "1/7", code=2)
    assert "not together" in said("run", "study.toml", "--shard=1/2", "--until=mos=1", code=2)
    assert "give the folders" in said("merge", code=2)
    assert "shards 2, 3 of 3" in said("merge", "1", code=2)
    told = said("run", "study.toml", "--shard", "2/3", "--out", "cli", code=0)
    assert "Shard 2/3 of study: 2 of 6 runs" in told
    assert sums(place / "cli") == sums(place / "2")
    assert "`talkspurt merge`" in said("metrics", "cli", "mos", code=1)
    # Another shard does not replace it.
    assert "--overwrite" in said("run", "study.toml", "--shard", "1/3", "--out", "cli", code=2)
    done = said("merge", "1", "cli", "3", "--no-report", "--out", "by-command", code=0)
    assert "6 runs, 3 of every setting" in done
    assert sums(place / "by-command") == sums(place / "whole")
