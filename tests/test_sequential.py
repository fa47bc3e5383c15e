"""Sequential replication: runs until intervals are narrow, under the seeds of a fixed number."""

import json
import math
import re

import pytest

import talkspurt
from command import succeed, told
from command import talkspurt as run
from conftest import made_study
from talkspurt.runs import sequential
from texts import axis_text, flow_text, link_text, put, scenario_text

SCENARIO = scenario_text(
    "Sequential",
    "2s",
    link_text("sky", "west>east", "1Mbit/s", "20ms", 20, loss=0.1),
    flow_text("call", "west>east"),
    axis_text("links.sky.loss", "[0.05, 0.1]", name="loss"),
)


def target(text):
    return sequential.targets([text])[0]


def halves(study):
    rows = study.summary(["network_loss"]).iter_rows(named=True)
    return [(row["high"] - row["low"]) / 2 for row in rows]


def test_it_stops_when_every_interval_is_narrow_enough():
    study = talkspurt.run_until(SCENARIO, {"network_loss": 0.015})
    assert max(halves(study)) <= 0.015
    assert study.replications > sequential.MIN_REPLICATIONS
    assert len(study.runs) == 2 * study.replications
    again = talkspurt.run(SCENARIO, set={"replications.count": study.replications}, study=True)
    assert [one.digest for one in study.runs] == [one.digest for one in again.runs]
    assert [one.seed for one in study.runs] == [one.seed for one in again.runs]


def test_the_limit_ends_it():
    study = talkspurt.run_until(SCENARIO, {"network_loss": 1e-6}, most=7)
    assert study.replications == 7
    reached, words = sequential.outcome(study, [target("network_loss=1e-6")])
    assert not reached
    assert words.startswith("7 replications: the widest interval is that of network_loss of call")
    assert re.search(r"±[\d.]+ %; requested: network_loss=1e-6$", words)


@pytest.mark.parametrize(
    ("text", "half", "relative"),
    [
        ("mos=0.1", 0.1, False),
        ("delay_p95_s=5ms", 0.005, False),
        ("goodput_bps=2kbit/s", 2000.0, False),
        ("network_loss = 5%", 0.05, True),
    ],
)
def test_widths_have_units(text, half, relative):
    found = target(text)
    assert (found.half, found.relative) == (pytest.approx(half), relative)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mos", "is not MEASURE=WIDTH"),
        ("mos=abc", "expected a number above 0"),
        ("mos=0", "expected a number above 0"),
        ("mos=-1", "expected a number above 0"),
        ("mos=1.2.3", "expected a number above 0"),
        ("delay_p95_s=5kbit/s", "is in s, not in kbit/s"),
        ("mosx=1", "did you mean 'mos'"),
        ("delay_over_time=1", "is no number of a flow"),
    ],
)
def test_a_width_that_says_nothing_is_an_error(text, words):
    with pytest.raises((KeyError, ValueError)) as error:
        target(text)
    assert words in error.value.args[0]


def test_the_next_number_follows_the_square_of_the_width():
    """Student's 95 % interval of (0, 1, 2, 3, 4) is 2 ± 2.776 · √(2.5 / 5)."""
    study = made_study({"a": [0.0, 1.0, 2.0, 3.0, 4.0]}, 5)
    half = 2.776445 * math.sqrt(0.5)
    ratio, *_ = sequential.widest(study, [target("mos=1.5")])
    assert ratio == pytest.approx(half / 1.5, rel=1e-5)
    assert sequential.more(study, [target("mos=1.5")], 100) == math.ceil(5 * (half / 1.5) ** 2)
    assert sequential.more(study, [target("mos=0.1")], 100) == 10, "doubled at most"
    assert sequential.more(study, [target("mos=0.1")], 7) == 7
    assert sequential.more(study, [target("mos=2")], 100) == 0
    assert sequential.more(study, [target("mos=100%")], 100) == 0
    assert sequential.more(study, [target("mos=2"), target("mos=1.9")], 100) == 6


def test_equal_and_missing_values_do_not_ask_for_more():
    study = made_study({"a": [2.0] * 5, "b": [None] * 5}, 5)
    assert sequential.more(study, [target("mos=0.01")], 100) == 0
    with pytest.raises(ValueError, match="no flow has a value of mos"):
        sequential.more(made_study({"a": [None] * 5}, 5), [target("mos=0.01")], 100)


def test_the_command_keeps_a_complete_study(tmp_path):
    put(tmp_path / "s.toml", SCENARIO)
    words = ("run", "s.toml", "--until", "network_loss=0.02", "--no-report", "-o", "out")
    done = succeed(*words, cwd=tmp_path, env={"COLUMNS": "80"})
    study = talkspurt.load(tmp_path / "out", study=True)
    assert max(halves(study)) <= 0.02
    assert f"{study.replications} replications: the widest interval" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    asked = {"network_loss": 0.02}
    same = talkspurt.run_until(tmp_path / "s.toml", asked)
    assert [one.digest for one in study.runs] == [one.digest for one in same.runs]
    again = run(
        "run", "s.toml", "--until", "network_loss=1e-9", "--most", "6", "--json", cwd=tmp_path
    )
    assert (again.returncode, json.loads(again.stdout)["replications"]) == (0, 6)
    assert again.stderr.startswith("talkspurt: not narrow enough: 6 replications")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--until", "mosx=1"), "did you mean 'mos'"),
        (("--until", "mos=0.1", "--most", "1"), "--most 1: expected at least 2"),
        (("--most", "9"), "--most: the limit of --until"),
        (("--until", "frame_delay_p50_s=1ms"), "no flow has a value"),
    ],
)
def test_bad_input_is_one_line(words, said, tmp_path):
    put(tmp_path / "s.toml", SCENARIO)
    assert said in told("run", "s.toml", *words, "--json", cwd=tmp_path)
