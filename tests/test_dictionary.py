"""The data dictionary, the metadata of Parquet files, and metrics and exports of studies."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import talkspurt
from command import succeed, told
from talkspurt.metrics import dictionary
from texts import NEWRENO, UDP, axis_text, cbr, flow_text, link_text, put, scenario_text

STUDY = scenario_text(
    "Dictionary",
    "2s",
    link_text("one", "a>b", "1Mbit/s", "10ms", 20),
    flow_text("call", "a>b", UDP, cbr("64kbit/s", "160B")),
    axis_text("links.one.delay", '["10ms", "200ms"]'),
    axis_text("flows.call.transport", f"[{UDP}, {NEWRENO}]"),
    nodes="{ a = {}, b = {} }",
    record="{ packets = true }",
    replications="{ count = 2 }",
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("dictionary")
    study = talkspurt.run(put(where / "study.toml", STUDY), study=True)
    assert isinstance(study, talkspurt.Study)
    return study.save(where / "out", report=False)


def test_every_column_of_every_table_is_described(saved: Path) -> None:
    study = talkspurt.load(saved, study=True)
    assert isinstance(study, talkspurt.Study)
    for name, fields in dictionary.TABLES.items():
        assert set(study.runs[0].table(name).columns) == {one.name for one in fields}, name
    axes = {axis.column for axis in study.axes}
    for file in saved.glob("*.parquet"):
        kind = "differences" if file.stem.startswith("differences-") else file.stem
        described = {one.name for one in dictionary.OF_STUDIES[kind]} | axes
        assert set(pl.read_parquet_schema(file)) == described, file.name


def test_parquet_files_carry_units_and_axes_are_numbers(saved: Path) -> None:
    said = json.loads(pl.read_parquet_metadata(saved / "flows.parquet")["talkspurt.columns"])
    assert said["axis.delay"] == {"unit": "s", "meaning": "value of the axis over links.one.delay"}
    assert said["goodput_bps"]["unit"] == "bit/s"
    flows = pl.read_parquet(saved / "flows.parquet")
    assert flows["axis.delay"].unique().sort().to_list() == [0.01, 0.2]
    assert set(flows["axis.transport"]) == {"udp", "tcp-newreno"}
    study = talkspurt.load(saved, study=True)
    assert isinstance(study, talkspurt.Study)
    assert set(study.labelled(flows)["axis.delay"]) == {"10ms", "200ms"}


def test_tables_without_rows_have_no_file_and_can_be_read(saved: Path) -> None:
    study = talkspurt.load(saved, study=True)
    assert isinstance(study, talkspurt.Study)
    folder = sorted((saved / "runs").iterdir())[0]
    assert not (folder / "video_frames.parquet").exists()
    assert all(pl.read_parquet(file).height for file in folder.glob("*.parquet"))
    fields = [one.name for one in dictionary.TABLES["video_frames"]]
    assert study.runs[0].table("video_frames").columns == fields


def test_no_file_name_has_a_space(tmp_path: Path) -> None:
    text = STUDY.replace('values = ["10ms", "200ms"]', 'values = ["10ms"]\nlabels = ["near by, 1"]')
    file = put(tmp_path / "study.toml", text)
    where = talkspurt.run(file, study=True).save(tmp_path / "out", report=False)
    names = [str(file.relative_to(where)) for file in where.rglob("*")]
    assert names and not [name for name in names if " " in name]


def test_metrics_of_a_study(saved: Path) -> None:
    lines = succeed("metrics", saved, "goodput_bps").stdout.splitlines()
    assert lines[0] == "axis.delay,axis.transport,replicate,seed,flow,value"
    assert len(lines) == 1 + 8
    over_time = succeed("metrics", saved, "throughput", "--flow", "call").stdout.splitlines()
    assert over_time[0].startswith("axis.delay,axis.transport,replicate,seed,flow,")
    told("metrics", saved, "throughput", "--flow", "cal")


def test_export_of_a_study(saved: Path, tmp_path: Path) -> None:
    succeed("export", saved, "--to", "csv", "--out", tmp_path / "csv")
    assert {"flows.csv", "summary.csv"} <= {file.name for file in (tmp_path / "csv").iterdir()}
    succeed("export", saved, "--to", "ns2", "--out", tmp_path / "ns2")
    folders = [file for file in (tmp_path / "ns2").iterdir() if file.is_dir()]
    runs = {file.name for file in (saved / "runs").iterdir()}
    assert {file.name for file in folders} == runs
    assert all(list(folder.iterdir()) for folder in folders)


def test_describe(tmp_path: Path) -> None:
    text = succeed("metrics", "--describe").stdout
    assert max(map(len, text.splitlines())) <= 80
    document = json.loads(succeed("metrics", "--describe", "--json").stdout)
    assert set(document["run"]) == set(dictionary.TABLES)
    assert told("metrics", tmp_path, "--describe").startswith("talkspurt: --describe")
