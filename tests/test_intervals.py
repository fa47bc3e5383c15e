"""Intervals as they are shown: cut to what a measure can be, with a word, and never as if certain."""

import pytest

from conftest import made_study
from talkspurt import intervals
from talkspurt.metrics.catalogue import column


def row(name, mean, low, high, *, count=3, replications=3, deviation=1.0, **more):
    found = {"measure": name, "mean": mean, "low": low, "high": high, "deviation": deviation}
    return {**found, "count": count, "replications": replications, **more}


def test_an_interval_beyond_the_scale_ends_there_and_says_so():
    # 2.28 ± 2.09 on a scale from 1.
    cut = row("mos", 2.28, 0.19, 4.37)
    assert intervals.text(cut) == "2.28 [1.00* … 4.37]"
    assert intervals.text(row("mos", 4.0, 3.2, 4.8)) == "4.00 [3.20 … 4.50*]"
    below = row("mouth_to_ear_p50_s", 0.1797, -0.0153, 0.3747, count=2)
    assert intervals.text(below) == "179.7 [0.0* … 374.7] (2 of 3)"
    assert intervals.text(row("loss_ratio", 0.99, 0.96, 1.02)) == "99.00 [96.00 … 100.00*]"
    assert any("more replications" in words for words in intervals.legend([cut]))
    inside = row("mos", 3.0, 2.5, 3.5)
    assert intervals.text(inside) == "3.00 ±0.50"
    assert intervals.legend([inside]) == []


def test_a_difference_may_be_as_large_as_the_scale_is_long():
    assert intervals.text(row("mos", -2.0, -4.5, 0.5, baseline="udp")) == "−2.00 [−3.50* … 0.50]"
    assert intervals.text(row("mos", -1.0, -3.0, 1.0, baseline="udp")) == "−1.00 ±2.00"
    delay = row("delay_p50_s", -0.1, -5.0, 4.8, baseline="udp")
    assert intervals.text(delay) == "−100.0 ±4\u202f900.0"


def test_replications_that_are_all_the_same_have_no_interval():
    # A mean of these three in floating point is not what each of them is.
    study = made_study({"udp": [1.1, 1.1, 1.1], "tcp": [3.0, 2.5, 1.0]}, 3)
    (same, other) = study.summary(["mos"]).to_dicts()
    assert (same["mean"], same["deviation"]) == (1.1, 0.0)
    assert intervals.text(same) == "1.10 ="
    assert intervals.ends(same) is None
    assert "=" not in intervals.text(other)
    (words,) = intervals.legend([same])
    assert words.startswith("= ") and "no interval" in words


def test_a_short_interval_is_not_shown_as_none():
    assert intervals.text(row("delay_p50_s", 0.1, 0.09999, 0.10001)) == "100.0 ±<0.1"
    assert intervals.text(row("mos", 4.0, 3.999, 4.001)) == "4.00 ±<0.01"
    assert intervals.text(row("mos", 4.0, None, None, count=1)) == "4.00 (1 of 3)"
    assert intervals.text(None) == "–"


@pytest.mark.parametrize(
    ("value", "text"), [(-0.001, "0.00"), (-0.01, "−0.01"), (0.0, "0.00"), (-2.5, "−2.50")]
)
def test_minus_is_a_minus_and_nothing_is_not_negative(value, text):
    assert column("mos").show(value) == text


def test_every_measure_of_the_product_lies_in_its_range(result, controlled):
    from talkspurt.metrics.catalogue import FLOWS, LINKS

    for m in (*FLOWS, *LINKS):
        for run in (result, controlled):
            values = run.table(m.table)[m.name].drop_nulls().drop_nans()
            assert values.is_empty() or m.least <= values.min() <= values.max() <= m.most, m.name
