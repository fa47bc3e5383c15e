"""Axes and replications: Student's intervals, paired differences, and independence of workers."""

import math

import pytest

import talkspurt
from conftest import made_study
from talkspurt import intervals
from talkspurt.analysis.means import bootstrap, student


# Two-sided quantiles of Student's t as printed in statistical tables (e.g. NIST/SEMATECH e-Handbook
# of Statistical Methods, §1.3.6.7.2), for n numbers, thus n − 1 degrees of freedom.
@pytest.mark.parametrize(
    ("n", "confidence", "t"),
    [(2, 0.95, 12.706), (5, 0.95, 2.776), (10, 0.95, 2.262), (31, 0.95, 2.042), (11, 0.99, 3.169)],
)
def test_half_widths_use_the_printed_quantiles(n, confidence, t):
    numbers = [float(i) for i in range(n)]
    mean, half, deviation = student(numbers, confidence)
    assert mean == pytest.approx((n - 1) / 2)
    assert deviation == pytest.approx(math.sqrt(n * (n + 1) / 12))  # of 0 … n−1
    assert half == pytest.approx(t * deviation / math.sqrt(n), rel=3e-4)


def test_few_numbers_give_no_interval():
    assert student([], 0.95) == (None, None, None)
    assert student([4.0], 0.95) == (4.0, None, None)


def test_differences_are_taken_pair_by_pair():
    # The replications differ by 1, the transports by 0.5 ± a little: pairing must cancel the former.
    study = made_study({"udp": [4.0, 3.0, 2.0], "tcp": [3.5, 2.4, 1.6]}, 3)
    row = study.differences("over", names=["mos"]).row(0, named=True)
    assert (row["axis.over"], row["baseline"], row["count"]) == ("tcp", "udp", 3)
    assert row["mean"] == pytest.approx(-0.5)
    # Differences −0.5, −0.6, −0.4: s = 0.1, t(2, 95 %) = 4.303.
    assert row["high"] - row["mean"] == pytest.approx(4.303 * 0.1 / math.sqrt(3), rel=1e-3)
    alone = study.summary(["mos"]).filter(**{"axis.over": "udp"}).row(0, named=True)
    assert alone["high"] - alone["mean"] == pytest.approx(4.303 * 1.0 / math.sqrt(3), rel=1e-3)


def test_a_bootstrap_interval_covers_as_often_as_it_says():
    import numpy as np

    dice = np.random.default_rng(7)
    trials, size = 200, 25
    covered = 0
    for _ in range(trials):
        low, high = bootstrap(list(dice.exponential(1.0, size)), 0.9)
        covered += low <= 1.0 <= high
    # Of skewed samples of 25, BCa covers a little less often than it says; 3 standard errors.
    assert 0.9 - 0.05 - 3 * math.sqrt(0.09 / trials) < covered / trials < 0.97


def test_bootstrap_and_student_agree_on_what_is_symmetric():
    numbers = [math.sin(i) for i in range(200)]
    mean, half, _ = student(numbers, 0.95)
    low, high = bootstrap(numbers, 0.95)
    assert (low, high) == pytest.approx((mean - half, mean + half), abs=0.1 * half)
    assert bootstrap([2.0, 2.0, 2.0], 0.95) == (2.0, 2.0)
    study = made_study({"udp": [4.0, 3.0, 2.0], "tcp": [3.5, 2.4, 1.6]}, 3)
    pair = study.differences("over", names=["mos"], interval="bootstrap").row(0, named=True)
    assert pair["mean"] == pytest.approx(-0.5)
    assert (pair["low"], pair["high"]) == pytest.approx((-0.6, -0.4))


def test_the_baseline_can_be_any_value_of_the_axis():
    study = made_study({"udp": [4.0], "tcp": [3.0], "sctp": [2.0]}, 1)
    frame = study.differences("over", "tcp", names=["mos"])
    assert dict(frame.select("axis.over", "mean").iter_rows()) == {"udp": 1.0, "sctp": -1.0}
    with pytest.raises(KeyError, match="udp, tcp, sctp"):
        study.differences("over", "dccp")
    with pytest.raises(KeyError, match="over"):
        study.differences("transport")


def test_axes_with_one_value_and_single_runs_have_nothing_to_compare():
    assert made_study({"udp": [4.0], "tcp": [3.0]}, 1).comparisons(["mos"]) == {}
    assert made_study({"udp": [4.0, 3.0]}, 2).comparisons(["mos"]) == {}
    study = made_study({"udp": [4.0, 3.0], "tcp": [3.0, 2.5]}, 2)
    (frame,) = study.comparisons(["mos"]).values()
    assert frame["mean"].to_list() == [-0.75]


def test_a_replication_without_a_value_is_left_out_of_its_pair():
    study = made_study({"udp": [4.0, 3.0, None], "tcp": [3.5, None, 1.0]}, 3)
    row = study.differences("over", names=["mos"]).row(0, named=True)
    assert (row["count"], row["mean"], row["low"]) == (1, -0.5, None)


def test_a_mean_of_fewer_than_all_replications_says_of_how_many():
    study = made_study({"udp": [4.0, 3.0, None], "tcp": [3.5, 2.5, 1.0], "sctp": [None] * 3}, 3)
    rows = {row["axis.over"]: row for row in study.summary(["mos"]).to_dicts()}
    counts = [(row["count"], row["replications"]) for row in rows.values()]
    assert counts == [(2, 3), (3, 3), (0, 3)]
    assert intervals.text(rows["udp"]).endswith(" (2 of 3)")
    assert "of" not in intervals.text(rows["tcp"])
    assert intervals.text(rows["sctp"]) == "–"
    (pair,) = study.differences("over", names=["mos"]).filter(**{"axis.over": "tcp"}).to_dicts()
    assert (pair["count"], pair["replications"]) == (2, 3)


def test_an_unknown_measure_names_the_nearest():
    with pytest.raises(KeyError, match="'mos'"):
        made_study({"udp": [4.0]}, 1).summary(["moss"])


def test_all_combinations_are_run_under_shared_seeds(study):
    assert [(run.settings["delay"], run.replicate, run.seed) for run in study.runs] == [
        ("20ms", 0, 3), ("20ms", 1, 4), ("20ms", 2, 5), ("200ms", 0, 3), ("200ms", 1, 4), ("200ms", 2, 5),
    ]  # fmt: skip
    assert study.flows.columns[:3] == ["axis.delay", "replicate", "seed"]
    assert study.flows.height == 6 * 3
    assert len(study.select(delay="20ms")) == 3
    with pytest.raises(KeyError, match="20ms, 200ms"):
        study.select(delay="30ms")


def test_means_are_those_of_the_runs(study):
    row = (
        study.summary(["delay_p50_s"]).filter(**{"axis.delay": 0.2}, flow="call").row(0, named=True)
    )
    frame = study.flows.filter(**{"axis.delay": 0.2}, name="call")
    assert row["mean"] == pytest.approx(frame["delay_p50_s"].mean())
    assert row["deviation"] == pytest.approx(frame["delay_p50_s"].std())


def test_results_do_not_depend_on_the_number_of_workers(folder, study):
    for jobs in (1, 3):
        again = talkspurt.run(folder / "study.toml", jobs=jobs, study=True)
        assert [run.digest for run in again.runs] == [run.digest for run in study.runs]
        assert again.flows.equals(study.flows)


def test_a_run_of_a_study_is_the_run_alone(folder, study):
    alone = talkspurt.run(folder / "small.toml", set={"links.sky.delay": "200ms"}, seed=4)
    (same,) = (run for run in study.select(delay="200ms") if run.replicate == 1)
    assert same.digest == alone.digest
