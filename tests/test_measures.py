"""The catalogue of measures: complete, unique, and shown in the right units and words."""

import polars as pl
import pytest

from talkspurt import measures
from talkspurt.measures import measure, rate_text, time_text, verdict


def test_names_are_unique():
    names = [(m.table, m.name) for m in (*measures.ALL, *measures.GAUGES)]
    assert len(names) == len(set(names))


def test_every_measure_is_a_column_and_every_score_is_explained(result):
    for m in measures.ALL:
        frame = result.table(m.table)
        assert m.name in frame.columns
        assert frame[m.name].dtype in (pl.Float64, pl.Int64), m.name
        assert m.meaning.endswith("."), m.name
        assert m.formula and m.source
    for column in result.flows.columns:
        if column.startswith(("mos", "delay_m", "delay_p5", "r_")) and column != "delay_min_s":
            assert measures.known(column)


def test_every_gauge_is_explained_and_every_one_explained_exists(result, controlled):
    catalogue = {m.name: m for m in measures.GAUGES}
    found = {*result.gauges()["gauge"], *controlled.gauges()["gauge"]}
    assert found == set(catalogue)
    for m in catalogue.values():
        assert m.table == "gauges"
        assert m.meaning.endswith(".") and m.formula and m.source


# ITU-T G.107 Annex B, Table B.1: lower limits of R.
@pytest.mark.parametrize(
    ("r_factor", "words"),
    [
        (93.2, "users very satisfied"),
        (90.0, "users very satisfied"),
        (89.9, "users satisfied"),
        (80.0, "users satisfied"),
        (70.0, "some users dissatisfied"),
        (60.0, "many users dissatisfied"),
        (50.0, "nearly all users dissatisfied"),
        (49.9, "not recommended"),
        (-20.0, "not recommended"),
    ],
)
def test_verdicts_are_those_of_the_table(r_factor, words):
    assert verdict(r_factor).words == words


def test_no_rating_no_verdict():
    assert verdict(None) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.25, "250 ms"), (1.5, "1.5 s"), (0.0, "0 ms"), (0.9999, "1 s"), (2e-5, "20 µs"), (1234.0, "1234 s"), (None, "–")],
)  # fmt: skip
def test_times_in_the_unit_that_suits_them(seconds, text):
    assert time_text(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(64_000.0, "64 kbit/s"), (2e6, "2 Mbit/s"), (0.0, "0 bit/s"), (999_960.0, "1 Mbit/s")],
)
def test_rates_in_the_unit_that_suits_them(rate, text):
    assert rate_text(rate) == text


def test_values_are_shown_in_their_units():
    assert measure("delay_p50_s").show(0.26789, unit=True) == "267.9 ms"
    assert measure("loss_ratio").show(0.0234, unit=True) == "2.34 %"
    assert measure("mos").show(4.405) in ("4.40", "4.41")
    assert measure("sent_packets").show(12345) == "12\u202f345"
    assert measure("mos").show(None) == measure("mos").show(float("nan")) == "–"


def test_an_unknown_measure_names_the_nearest():
    with pytest.raises(KeyError, match="jitter_s"):
        measure("jiter_s")
