"""A study's transfers over sockets across emulated networks. Needs root and TUN devices."""

import os
import re

import polars as pl
import pytest

import talkspurt
from command import refused
from talkspurt.errors import BadInputError
from talkspurt.reproduce import formulas, judged_live, live, renker2008, study_file
from talkspurt.reproduce.rows import GIVEN, UNDERSPECIFIED
from talkspurt.reproduce.sample import samples
from test_emulate import real


@pytest.fixture(scope="module")
def slow_start():
    """Six seconds of bulk data over CCID 3, with the queue of the study."""
    cases = {
        name: {**live.live_cases("renker2008")[name], "duration": "6s"}
        for name in ("full-3min-wire", "full-ecn-wire")
    }
    return live.measured(cases, "test")


@real
def test_slow_start_over_sockets_is_that_of_the_simulation(slow_start):
    assert slow_start.broken == {}
    run = slow_start.runs["full-3min-wire"]
    case = {"title": "simulated", **live.live_cases("renker2008")["full-3min-wire"]}
    simulated = talkspurt.run(case | {"duration": "6s", "record": {"gauges": True}})
    found = renker2008.gauge(run, "rate", 0, 1)["value"][-1]
    twice = renker2008.gauge(run, "receive_rate", 0, 1)["value"][-1]
    # RFC 5348 §4.3: twice what arrives, before the first loss.
    assert found == pytest.approx(2 * twice, rel=0.01)
    # Both fill the same queue of 1000 packets until it overflows, a second and a half later.
    ours = simulated.gauges().filter(gauge="loss_event_rate", side="from")
    theirs = renker2008.gauge(run, "loss_event_rate")
    firsts = [of.filter(pl.col("value") > 0)["time_s"][0] for of in (ours, theirs)]
    assert min(firsts) > 1.5
    assert run.flow("iperf", "lost_packets") > 0
    assert run.tables["links"]["queue_max_packets"].max() == 1000


@real
def test_routers_mark_packets_of_sockets(slow_start):
    marked, plain = (slow_start.runs[f"full-{name}-wire"] for name in ("ecn", "3min"))
    assert marked.tables["links"]["marks"].max() > 0
    assert plain.tables["links"]["marks"].max() == 0
    runs = {run.name: run for run in (marked, plain)}
    values = formulas.of_parts("renker2008", "inferred", runs)
    assert values["ecn/heard"] < 0.75


def judged(measured):
    """The rows of the study, of the one run that they rest on."""
    runs = {"full-3min-wire": measured.runs["full-3min-wire"]}
    found = samples([formulas.of_parts("renker2008", "inferred", runs)])
    return judged_live(study_file.load("renker2008"), found)


@real
def test_rows_are_judged_by_the_study_s_bands(slow_start):
    rows = {row.spec.id: row for row in judged(slow_start)}
    assert rows["full/slow-start"].verdict == UNDERSPECIFIED
    said = re.search(r"over sockets (\d+(?:\.\d+)?)", rows["full/slow-start"].reason)
    # Of gauges in real time, as above.
    assert said is not None and float(said[1]) == pytest.approx(2, rel=0.01)
    assert all(row.verdict != GIVEN for row in rows.values())


@real
def test_the_page_and_the_tables_are_written(slow_start, tmp_path, capsys):
    cases = {name: live.live_cases("renker2008")[name] for name in slow_start.runs}
    assert set(cases) == set(slow_start.runs)
    simulated = slow_start.runs
    rows = [live.LiveRow(row, None, None) for row in judged(slow_start)]
    live._write("renker2008", rows, slow_start, simulated, tmp_path, pdf=False)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    for name in slow_start.runs:
        gauges = pl.read_parquet(tmp_path / "tables" / name / "gauges.parquet")
        assert set(gauges["gauge"]) >= {"srtt", "rate", "loss_event_rate"}
        assert f"scenarios/{name}.toml" in page
        assert (tmp_path / "scenarios" / f"{name}.toml").is_file()
    assert {it.name for it in (tmp_path / "figures").iterdir()} >= {
        "live-bytestream.svg",
        "live-rtt-load.png",
    }
    live._print("renker2008", rows, slow_start, as_json=False)
    assert "slow-start" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nor2010", "--live"], "--live: measures renker2008, not nor2010"),
        (["all", "--live"], "--live: measures renker2008, not all"),
        (["renker2008", "--live", "--set", "seed=2"], "--set: has no effect on --live"),
        (["renker2008", "--live", "--ns2"], "--ns2: has no effect on --live"),
        (["renker2008", "--live", "--jobs", "2"], "--jobs: has no effect on --live"),
    ],
)
def test_what_cannot_be_measured_is_said(words, said):
    ended = refused("reproduce", *words)
    assert said in ended.stderr


def test_without_root_it_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    with pytest.raises(BadInputError, match="needs root"):
        live.run("renker2008", out=None, as_json=True, pdf=False, overwrite=False)
