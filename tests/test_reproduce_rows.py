"""Verdicts follow from values and bands, and checks find what cannot be; no study is run here."""

from __future__ import annotations

import dataclasses

import pytest

from talkspurt import reproduce
from talkspurt.reproduce import checks, study_file
from talkspurt.reproduce.rows import (
    CANNOT_FOLLOW,
    CLASSES,
    DIFFERS,
    MATCHES,
    SAME_ORDERING,
    UNDERSPECIFIED,
    Band,
    Spec,
    StudyFileError,
    Values,
    judge_all,
)


def spec(id: str = "a", paper: float | str = 100.0, **more: object) -> Spec:
    said = {"quantity": "q", "unit": "ms", "where": "Table 1", "band": Band(relative=0.01)}
    return Spec(id=id, paper=paper, **(said | more))  # type: ignore[arg-type]


def verdict(row: Spec, stated=None, inferred=None, impossible=(), others=()):
    rows = [row, *(other for other, _ in others)]
    values = Values(
        {row.id: stated}, {row.id: inferred} | {other.id: value for other, value in others}
    )
    return judge_all(rows, values, {row.id: impossible})[0]


def test_a_value_inside_the_band_matches_and_one_just_outside_does_not() -> None:
    assert verdict(spec(), stated=101.0).verdict == MATCHES
    assert verdict(spec(), stated=101.1).verdict == DIFFERS


def test_what_only_inferred_parameters_give_cannot_follow_from_complete_ones() -> None:
    assert verdict(spec(), stated=50.0, inferred=100.5).verdict == CANNOT_FOLLOW


def test_what_the_text_leaves_out_makes_it_underspecified() -> None:
    row = spec(missing=("the link's rate",))
    found = verdict(row, inferred=100.5)
    assert found.verdict == UNDERSPECIFIED
    assert "the link's rate" in found.reason


def test_an_impossible_value_cannot_follow_whatever_is_run() -> None:
    found = verdict(spec(), stated=50.0, impossible=["a delay below the link's"])
    assert found.verdict == CANNOT_FOLLOW
    assert found.reason.startswith("a delay below the link's")


def test_far_values_in_the_printed_order_have_the_same_ordering() -> None:
    low, high = spec("a", 100.0, group="delays"), spec("b", 300.0, group="delays")
    assert verdict(low, inferred=50.0, others=[(high, 80.0)]).verdict == SAME_ORDERING
    assert verdict(low, inferred=90.0, others=[(high, 80.0)]).verdict == DIFFERS


def test_words_match_as_words_and_claims_by_their_bounds() -> None:
    assert verdict(spec(paper="TCP", band=Band()), stated="TCP").verdict == MATCHES
    assert verdict(spec(paper="TCP", band=Band()), stated="UDP").verdict == DIFFERS
    assert verdict(spec(paper="grows", band=Band(at_least=1.1)), stated=1.2).verdict == MATCHES
    assert verdict(spec(paper="grows", band=Band(at_least=1.1)), stated=1.0).verdict == DIFFERS


@pytest.mark.parametrize("name", reproduce.NAMES)
def test_a_perturbed_value_changes_the_class_of_its_row(name: str) -> None:
    """Every row that gives what is printed matches; one that gives another value no longer does."""
    file = study_file.load(name)
    numbers = [r for r in file.rows if isinstance(r.paper, float) and not r.checks and r.paper]
    assert numbers
    given = {row.id: row.paper for row in numbers}
    whole = reproduce.judged(dataclasses.replace(file, rows=tuple(numbers)), Values(given), {})
    assert {row.verdict for row in whole.rows} == {MATCHES}
    for row in numbers:
        other = given | {row.id: 10 * row.paper + 10}
        found = reproduce.judged(dataclasses.replace(file, rows=tuple(numbers)), Values(other), {})
        changed = [r for r in found.rows if r.verdict != MATCHES]
        assert [r.spec.id for r in changed] == [row.id]
        assert changed[0].verdict in (DIFFERS, SAME_ORDERING)


@pytest.mark.parametrize("name", reproduce.NAMES)
def test_each_study_says_what_it_prints_infers_and_how_to_check_it(name: str) -> None:
    file = study_file.load(name)
    assert file.rows and file.inferred
    for row in file.rows:
        assert file.recipe(row.id), row.id
        assert row.quantity and row.where, row.id
        checks.impossible(row, file.stated)  # knows its checks and has their facts


LINK = {"delay_s": 0.05, "rate_bps": 256_000, "packet_bytes": 128}


def found(name: str, paper: float | str, unit: str = "ms", **facts: object) -> bool:
    return bool(checks.impossible(spec(paper=paper, unit=unit, checks=(name,)), facts))


def test_a_delay_shorter_than_the_links_is_found() -> None:
    assert found("delay_floor", 53.9, **LINK)
    assert not found("delay_floor", 54.0, **LINK)
    assert found("delay_floor", 1.151, delay_s=0.3)


def test_a_queue_that_overflows_holds_no_less_than_itself() -> None:
    facts = {"queue_packets": 1000, "packet_bytes": 1400, "rate_bps": 7e6, "also_where": "there"}
    assert found("full_queue", 1.2, "s", **facts)
    assert not found("full_queue", 1.6, "s", **facts)
    assert not found("full_queue", 1600.0, **facts)


def test_a_throughput_above_the_offered_rate_is_found() -> None:
    assert found("offered_ceiling", 798.84, "kb/s", offered_bps=500_000)
    assert not found("offered_ceiling", 500.0, "kb/s", offered_bps=500_000)
    # 36 bytes of headers on 128 of payload are within what DCCP may add.
    facts = {"offered_bps": 64_000, "header_bytes": 48, "packet_bytes": 128}
    assert not found("offered_ceiling", 80.0, "kb/s", **facts)


def test_a_load_the_link_cannot_carry_is_found() -> None:
    web = {"source_bps": 200_000, "on_s": 1, "off_s": 2, "rate_bps": 1_500_000}
    assert [n for n in (16, 22, 23, 25, 50, 100) if found("link_carries", n, **web)] == [
        23,
        25,
        50,
        100,
    ]


def test_voice_flows_whose_headers_exceed_their_share_are_found() -> None:
    facts = {"rate_bps": 150_000, "header_bytes": 40, "packet_s": 0.02}
    assert [n for n in (5, 9, 10, 40) if found("headers_fit", n, **facts)] == [10, 40]


def test_a_link_with_room_left_is_not_starved() -> None:
    assert found("leaves_room", "none", rate_bps=2e6, offered_bps=1.6e6)
    assert not found("leaves_room", "none", rate_bps=2e6, offered_bps=2.4e6)


def test_numbers_that_contradict_each_other_are_found() -> None:
    assert found("same_as_stated", 5, also_stated=2, also_where="Table 1", here="Table 2")
    assert found("same_as_stated", "TFRC", also_stated="DCCP", also_where="x", here="y")
    assert found("range_stated", 16, least=50, most=100, also_where="x", here="y")
    assert found("codec_standard", 10, codec="G.729", standard=8, source="ITU-T G.729")
    assert not found("codec_standard", 6.4, codec="G.723.1", standard=6.3, source="ITU-T")
    assert found("loss_and_throughput", 11.03, throughput_bps=798_840, offered_bps=500_000)
    assert not found("loss_and_throughput", 10.0, throughput_bps=450_000, offered_bps=500_000)
    assert found("service_time", 1000, service_s=0.001, packet_bytes=1400, rate_bps=7e6)
    assert not found("service_time", 1000, service_s=0.0016, packet_bytes=1400, rate_bps=7e6)


def test_delays_whose_mean_is_the_least_possible_do_not_vary() -> None:
    assert found("constant_delay", "varies", mean_s=0.054, also_where="Table 3", **LINK)
    assert found("constant_delay", "varies", mean_s=0.05275, also_where="Table 3", **LINK)
    assert not found("constant_delay", "varies", mean_s=0.0541, also_where="Table 3", **LINK)


ROW = """
title = "T"
citation = "C"
asks = "A"
[[row]]
id = "a"
quantity = "q"
unit = "ms"
where = "w"
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("paper = 1\nband = {}", "wants a band"),
        ("paper = 1", "not said: band"),
        ("paper = true\nband = { at_least = 1 }", "yes or no as words"),
        ("paper = 1\nband = { near = 1 }", "no such bound: near"),
        ("paper = 1\nband = { absolute = 1 }\nhue = 1", "unknown: hue"),
    ],
)
def test_a_faulty_study_file_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(StudyFileError, match=words):
        study_file.parse("x", ROW + text)


def test_a_check_without_its_facts_is_refused() -> None:
    with pytest.raises(StudyFileError, match="wants 'offered_bps'"):
        found("offered_ceiling", 1.0, "kb/s")
    with pytest.raises(StudyFileError, match="no check 'nonsense'"):
        found("nonsense", 1.0)


def test_classes_are_those_of_the_documentation() -> None:
    assert len(set(CLASSES)) == 5
