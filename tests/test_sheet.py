"""The sheet of a run or study, and metrics as tables: the same numbers as in the tables of the runs."""

import csv
import io
import json

import polars as pl
import pytest

import talkspurt
from command import talkspurt as run
from command import told
from talkspurt.metrics import sheet
from talkspurt.reproduce import hops
from talkspurt.results.result import Study
from talkspurt.results.study_data import SUMMARY
from texts import UDP, axis_text, cbr, flow_text, link_text, scenario_text

SCENARIO = scenario_text(
    "Sheet",
    "3s",
    link_text("sky", "west>east", "200kbit/s", "20ms", 10, loss=0.05),
    flow_text("call", "west>east", rtcp="{ enabled = false }"),
    flow_text("answer", "east>west", UDP, cbr("50kbit/s", "500B")),
    axis_text("links.sky.rate", '["60kbit/s", "200kbit/s"]', name="rate"),
    record="{ packets = true }",
    replications="{ count = 3 }",
)


@pytest.fixture(scope="module")
def study():
    return talkspurt.run(SCENARIO, study=True)


@pytest.fixture(scope="module")
def saved(study, tmp_path_factory):
    place = tmp_path_factory.mktemp("sheet")
    study.save(place / "study", report=False)
    study.runs[0].save(place / "run", report=False)
    return place


def test_means_are_those_of_the_flows_tables(study):
    table = sheet.sheet(study)
    assert table.height == 4
    assert table["axis.rate"].to_list() == [60e3, 60e3, 200e3, 200e3]
    flows = study.flows.with_columns(
        (pl.col("received_packets") / pl.col("sent_packets")).alias("delivery_ratio"),
        (pl.col("lost_packets") / pl.col("sent_packets")).alias("network_loss"),
    )
    means = flows.group_by("axis.rate", "name").agg(pl.col(sheet.MEASURES).mean())
    for row in table.iter_rows(named=True):
        by_hand = means.filter(**{"axis.rate": row["axis.rate"], "name": row["flow"]})
        for name in sheet.MEASURES:
            assert row[name] == pytest.approx(by_hand[name][0]), name
    assert table["network_loss"].max() > 0.2
    assert (table["delivery_ratio"] + table["network_loss"] <= 1 + 1e-9).all()


def test_sizes_are_those_of_tracegraph(study):
    """On one link, hop by hop counting, as TraceGraph does, counts each packet once."""
    for one in study.runs[:2]:
        table = sheet.sheet(Study.of_run(one))
        for flow in ("call", "answer"):
            frame = hops.ours(one.packets(flow).filter(side="from"))
            counted = hops.counts(frame)
            (row,) = table.filter(flow=flow).to_dicts()
            assert row["packet_size_min"] == counted["minimal-size"]
            assert row["packet_size_max"] == counted["maximal-size"]
            assert int(row["packet_size_mean"]) == counted["average-size"]
    assert {200.0, 528.0} == {row["packet_size_max"] for row in table.iter_rows(named=True)}


def test_nodes_that_send_and_receive_are_counted(study, result):
    assert sheet.nodes(study)[0] == {"nodes": 2, "senders": 2, "receivers": 2}
    assert sheet.nodes(Study.of_run(result)) == [{"nodes": 2, "senders": 1, "receivers": 1}]


def test_every_study_has_delivery_loss_delay_and_jitter(study):
    names = {"delivery_ratio", "network_loss", "delay_mean_s", "jitter_s"}
    assert names <= set(SUMMARY)
    assert names <= set(study.summary()["measure"])
    assert names <= {row["measure"] for row in study.to_json()["summary"]}


def test_the_command_prints_the_sheet(study, saved):
    rows = list(csv.DictReader(io.StringIO(run("metrics", saved / "study").stdout)))
    table = sheet.sheet(study).rows(named=True)
    assert [float(row["jitter_s"]) for row in rows] == pytest.approx([r["jitter_s"] for r in table])
    found = json.loads(run("metrics", saved / "run", "--json").stdout)
    assert {row["flow"] for row in found} == {"call", "answer"}


def test_the_command_prints_the_sheet_as_a_table(saved):
    done = run("metrics", saved / "study", "--table", env={"COLUMNS": "250"})
    assert (done.returncode, done.stderr) == (0, "")
    first, *_ = done.stdout.splitlines()
    assert first == "nodes 2; senders 2; receivers 2; simulated 3 s"
    for word in ("delivered", "lost", "jitter", "packet size", "±"):
        assert word in done.stdout


def test_packet_sizes_need_packets(result, tmp_path):
    result.save(tmp_path / "run", report=False)
    assert "packet_size_min" not in sheet.sheet(Study.of_run(result)).columns
    done = run("metrics", tmp_path / "run", "--table")
    assert "record.packets=true" in done.stdout


def test_a_metric_as_a_table_has_mean_and_interval(study, saved):
    done = run("metrics", saved / "study", "goodput_bps", "--flow", "answer", "--table")
    row = study.summary(["goodput_bps"]).filter(flow="answer")
    for mean in row["mean"]:
        assert f"{mean / 1e3:.1f}" in done.stdout
    done = run("metrics", saved / "study", "delay_over_time", "--flow", "answer", "--table")
    delays = study.compute("delay_over_time", "answer").drop_nulls()
    longest = delays.group_by("axis.rate").agg(pl.col("delay_s").max())["delay_s"]
    for value in longest:
        assert f"{value * 1e3:.1f}" in done.stdout
    assert str(delays.filter(pl.col("axis.rate") == 60e3).height) in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("study", "--table", "--json"), "--table and --json: give one of them"),
        (("study", "--flow", "call"), "for one metric"),
        (("study", "mosx", "--table"), "did you mean 'mos'"),
        (("study", "mos", "--flow", "nix", "--table"), "no flow 'nix'"),
        (("study", "links.drops", "--flow", "call", "--table"), "of links"),
        (("study", "mos_lost_to_codec", "--flow", "answer", "--table"), "'answer' has no value of"),
    ],
)
def test_bad_input_is_one_line(saved, words, said):
    folder, *rest = words
    assert said in told("metrics", saved / folder, *rest)
