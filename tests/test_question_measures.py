"""What the pages of questions measure, held against numbers on paper; and their scenarios are sound.

The studies themselves take minutes: `validation/questions` runs them.
"""

import importlib
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import talkspurt

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = sorted((ROOT / "scenarios" / "questions").glob("*.toml"))


@pytest.fixture
def measures(monkeypatch):
    """The module, without what other folders of validation call the same."""
    monkeypatch.syspath_prepend(str(ROOT / "validation" / "questions"))
    before = set(sys.modules)
    yield importlib.import_module("measures")
    for name in set(sys.modules) - before:
        if str(ROOT / "validation") in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_every_question_is_a_study_that_can_be_run(file):
    plan = talkspurt.read(file).plan
    assert plan.axes
    assert plan.replications >= 5
    assert plan.description.strip()


def test_a_gauge_holds_until_its_next_line(measures):
    gauge = pl.DataFrame({"time_s": [0.0, 4.0, 6.0], "value": [1.0, 5.0, 2.0]})
    # From 3 to 10: 1 for 1 s, 5 for 2 s, 2 for 4 s.
    held = measures.held(gauge, 3.0, 10.0)
    assert measures.mean(held) == pytest.approx(19 / 7)
    assert measures.quantile(held, 0.1) == 1.0
    assert measures.quantile(held, 0.7) == 2.0
    assert measures.quantile(held, 0.95) == 5.0
    variance = (1 + 2 * 25 + 4 * 4) / 7 - (19 / 7) ** 2
    assert measures.variation(held) == pytest.approx(variance**0.5 / (19 / 7))


def test_smoothness_is_that_of_sums_over_bins(measures):
    sent = [160.0, 0.0, 320.0, 160.0, 480.0, 160.0, 0.0]
    for bins in (1, 2, 3):
        sums = np.asarray(sent[: len(sent) // bins * bins]).reshape(-1, bins).sum(axis=1)
        found = measures.coefficient_of_variation(sent, bins)
        assert found == pytest.approx(sums.std() / sums.mean())
    assert measures.jain([1.0, 1.0, 2.0]) == pytest.approx(16 / 18)


def test_opinions_count_a_call_of_which_nothing_was_heard(measures):
    calls = pl.DataFrame({"mos": [4.0, None, 3.0], "loss_ratio": [0.0, 1.0, 0.1]})
    said = measures.opinions(calls)
    assert said["mos"] == pytest.approx(8 / 3)
    assert said["mos_least"] == 1.0
    # The tenth percentile of 1, 3, 4 lies a fifth of the way from 1 to 3.
    assert said["mos_p10"] == pytest.approx(1.4)
    unscored = pl.DataFrame({"mos": [4.0, None], "loss_ratio": [0.0, 0.1]})
    assert measures.opinions(unscored)["mos"] is None


def test_what_tfrc_tb_sends_is_held_against_the_integral_of_its_rate(measures):
    changes = {"axes": [], "replications.count": 1, "duration": "30s", "measure.to": "28s"}
    changes |= {"flows.call.stop": "29s", "flows.call.transport": TB}
    result = talkspurt.run(ROOT / "scenarios/questions/bucket-transports.toml", set=changes)
    calls = result.flows.filter(group="call")
    found = measures.inside(result, calls)
    assert found["beyond_x"] < 6
    assert 0 < found["of_x"] < 1
    # A rate a fifth of what it was could not have paid for what was sent.
    fifth = pl.when(pl.col("gauge") == "rate").then(pl.col("value") / 5).otherwise(pl.col("value"))
    slower = result.table("gauges").with_columns(fifth.alias("value"))
    result._tables["gauges"] = slower
    assert measures.inside(result, calls)["of_x"] > 1


TB = {"kind": "tfrc", "rate": {"token_bucket": {}}}
