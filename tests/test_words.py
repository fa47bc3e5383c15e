"""Numbers in words: times and rates in the unit that suits them, and what users say of a call."""

import pytest

from talkspurt._text.format import rate_text, time_text, verdict


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
