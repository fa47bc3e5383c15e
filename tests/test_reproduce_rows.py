"""Verdicts follow from values and bands, and checks find what cannot be; no study is run here."""

from __future__ import annotations

import dataclasses
import html
import io
import math
import random
import re
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console
from scipy.stats import binomtest, t

from talkspurt import reproduce
from talkspurt.reproduce import dossier, formulas, lab, renker2008, running, study_file
from talkspurt.reproduce.band import EITHER, Band, StudyFileError, majority
from talkspurt.reproduce.rows import (
    CANNOT_FOLLOW,
    CLASSES,
    DIFFERS,
    GIVEN,
    MATCHES,
    SAME_ORDERING,
    UNDECIDED,
    UNDERSPECIFIED,
    Spec,
    Values,
    judge_all,
)
from talkspurt.reproduce.sample import Sample
from talkspurt.reproduce.study_file import filled, runs_file, scenarios


def spec(id: str = "a", paper: float | str = 100.0, **more: object) -> Spec:
    said = {"quantity": "q", "unit": "ms", "where": "Table 1", "band": Band(relative=0.01)}
    return Spec(id=id, paper=paper, **(said | more))  # type: ignore[arg-type]


def sample(value) -> Sample:
    """What one run gave, or what several did."""
    if isinstance(value, Sample):
        return value
    return Sample(tuple(value) if isinstance(value, list) else () if value is None else (value,))


def verdict(row: Spec, stated=None, inferred=None, impossible=(), others=()):
    rows = [row, *(other for other, _ in others)]
    values = Values(
        {row.id: sample(stated)},
        {row.id: sample(inferred)} | {other.id: sample(value) for other, value in others},
    )
    return judge_all(rows, values, {row.id: impossible})[0]


def test_a_value_inside_the_band_matches_and_one_just_outside_does_not() -> None:
    assert verdict(spec(), stated=101.0).verdict == MATCHES
    assert verdict(spec(), stated=101.1).verdict == DIFFERS


def test_only_a_check_says_that_a_value_cannot_follow() -> None:
    found = verdict(spec(), stated=50.0, impossible=["a delay below the link's"])
    assert found.verdict == CANNOT_FOLLOW
    assert found.reason.startswith("a delay below the link's")
    # What came out is said, whether it agrees or not.
    assert found.reason.endswith("; the stated parameters give 50 ms, outside ±1 %.")
    both = verdict(spec(), stated=50.0, inferred=60.0, impossible=["it cannot be"]).reason
    assert both.startswith("it cannot be; the stated parameters give 50 ms, outside ±1 %; ")
    assert both.endswith("the inferred ones 60 ms, outside ±1 %.")
    assert verdict(spec(), impossible=["no"]).reason == "no; no value came out of the runs."
    # That our simulator gives something else proves nothing.
    assert verdict(spec(), stated=50.0, inferred=100.5).verdict == DIFFERS


def test_what_the_text_leaves_out_makes_it_underspecified() -> None:
    row = spec(missing=("the link's rate",))
    found = verdict(row, inferred=100.5)
    assert found.verdict == UNDERSPECIFIED
    assert "the link's rate" in found.reason
    assert verdict(row, stated=50.0, inferred=100.5).verdict == UNDERSPECIFIED
    # One choice gives what is printed and another does not.
    assert verdict(row, stated=100.5, inferred=50.0).verdict == UNDERSPECIFIED
    assert verdict(row, stated=100.5, inferred=99.5).verdict == MATCHES
    # A text that leaves nothing out is judged by what it states.
    assert verdict(spec(), stated=100.5, inferred=50.0).verdict == MATCHES


def test_far_values_in_the_printed_order_have_the_same_ordering() -> None:
    low, high = spec("a", 100.0, group="delays"), spec("b", 300.0, group="delays")
    assert verdict(low, inferred=50.0, others=[(high, 80.0)]).verdict == SAME_ORDERING
    assert verdict(low, inferred=90.0, others=[(high, 80.0)]).verdict == DIFFERS


def test_an_order_within_the_intervals_is_undecided() -> None:
    low, high = spec("a", 100.0, group="delays"), spec("b", 300.0, group="delays")
    near = [(high, [50.0, 56.0, 53.0])]
    found = verdict(low, inferred=[49.0, 55.0, 52.0], others=near)
    assert found.verdict == UNDECIDED
    assert "same ordering or differs" in found.reason
    assert verdict(low, inferred=[19.0, 25.0, 22.0], others=near).verdict == SAME_ORDERING
    assert verdict(low, inferred=[79.0, 85.0, 82.0], others=near).verdict == DIFFERS


def test_an_input_that_comes_out_again_is_given_and_no_match() -> None:
    row = spec(given="what is run")
    found = verdict(row, stated=100.5, inferred=100.0)
    assert (found.verdict, found.to_json("s")["given"]) == (GIVEN, True)
    assert found.reason.startswith("what is run; ")
    assert verdict(row, stated=50.0).verdict == DIFFERS
    assert verdict(spec(), stated=100.5).to_json("s")["given"] is False


def test_an_input_that_a_check_finds_impossible_is_given_and_its_reason_says_so() -> None:
    row = spec(given="what is run")
    for found in (
        verdict(row, stated=100.5, impossible=["it cannot be"]),
        verdict(row, impossible=["it cannot be"]),
    ):
        assert found.verdict == GIVEN
        assert "; it cannot be; " in found.reason
    # A value outside its band is no input that comes out again.
    assert verdict(row, stated=50.0, impossible=["it cannot be"]).verdict == CANNOT_FOLLOW
    assert verdict(row, inferred=50.0, impossible=["it cannot be"]).verdict == CANNOT_FOLLOW
    # A result that agrees is still impossible.
    assert verdict(spec(), stated=100.0, impossible=["no"]).verdict == CANNOT_FOLLOW


def test_words_match_as_words_and_claims_by_their_bounds() -> None:
    assert verdict(spec(paper="TCP", band=Band()), stated="TCP").verdict == MATCHES
    assert verdict(spec(paper="TCP", band=Band()), stated="UDP").verdict == DIFFERS
    assert verdict(spec(paper="grows", band=Band(at_least=1.1)), stated=1.2).verdict == MATCHES
    assert verdict(spec(paper="grows", band=Band(at_least=1.1)), stated=1.0).verdict == DIFFERS


def test_a_sample_is_a_mean_with_students_interval() -> None:
    numbers = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0]
    found = Sample(tuple(numbers))
    mean = sum(numbers) / 7
    error = math.sqrt(sum((x - mean) ** 2 for x in numbers) / 6 / 7)
    assert found.value == pytest.approx(mean)
    assert found.ends == pytest.approx(t.interval(0.95, 6, mean, error))
    assert found.show() == "3.6 ±2.6"
    assert found.told("ms") == "3.6 [1.0 … 6.2] ms, mean of 7 replications"
    assert Sample((2.0,)).ends is None and Sample((2.0,)).told("ms") == "2 ms"
    assert Sample((2.0, 2.0)).show() == "2 =" and Sample((2.0, None)).show() == "2 (1 of 2)"
    assert Sample((1000.0, 1000.0001)).show() == "1000.00 ±<0.01"
    assert Sample((1e-4, -1e-4)).show() == "0 ±0.0013"
    assert Sample(("UDP", "TCP", "TCP")).show() == "TCP (2 of 3)"
    assert Sample(("UDP", "TCP", "TCP")).ends is None
    assert Sample().value is None and Sample((None, None)).show() == "–"


def test_a_value_is_decided_by_its_whole_interval() -> None:
    """Samples of all places and widths, against the interval as scipy has it."""
    rng = random.Random(1)
    seen = set()
    for _ in range(300):
        centre, width = rng.uniform(98.0, 102.0), rng.choice([0.01, 0.3, 1.0])
        numbers = [rng.gauss(centre, width) for _ in range(5)]
        mean = sum(numbers) / 5
        error = math.sqrt(sum((x - mean) ** 2 for x in numbers) / 4 / 5)
        low, high = t.interval(0.95, 4, mean, error)
        if low >= 99.0 and high <= 101.0:
            expected = MATCHES
        else:
            expected = DIFFERS if high < 99.0 or low > 101.0 else UNDECIDED
        assert verdict(spec(), stated=numbers).verdict == expected, (low, high)
        seen.add(expected)
    assert seen == {MATCHES, DIFFERS, UNDECIDED}


def test_an_undecided_row_names_both_sides_and_the_replications() -> None:
    found = verdict(spec(missing=("the link's rate",)), inferred=[100.0, 100.8, 101.6])
    assert found.verdict == UNDECIDED
    assert "mean of 3 replications" in found.reason
    assert "reaches over the edge of ±1 %" in found.reason
    assert found.reason.endswith("so it is underspecified or differs.")


def test_a_replication_without_a_value_is_not_inside() -> None:
    some = [100.0, 100.1, None, 100.0]
    found = verdict(spec(), stated=some)
    assert found.verdict == UNDECIDED
    assert "mean of the 3 of 4 that gave one" in found.reason
    assert verdict(spec(), stated=[50.0, 50.1, None, 50.0]).verdict == DIFFERS
    assert verdict(spec(), stated=[None, None, None]).verdict == DIFFERS


@pytest.mark.parametrize("of", [1, 2, 5, 6, 10, 11])
def test_words_are_decided_by_the_exact_interval_of_their_share(of: int) -> None:
    for count in range(of + 1):
        interval = binomtest(count, of).proportion_ci(0.95, method="exact")
        expected = {True} if interval.low > 0.5 else {False} if interval.high < 0.5 else {*EITHER}
        # Of one run there is nothing to ask.
        assert majority(count, of) == (expected if of > 1 else {count == 1})
    # A tie is no majority.
    assert majority(of // 2, of) != {True}
    row = spec(paper="TCP", band=Band())
    tie = verdict(row, stated=["TCP", "UDP"] * 10)
    assert (tie.stated.value, tie.verdict) == ("TCP", UNDECIDED)
    # Most often given is not most: it is the printed word's share that is asked for.
    most = verdict(row, stated=["TCP"] * 40 + ["UDP"] * 30 + ["SCTP"] * 30)
    assert (most.stated.value, most.verdict) == ("TCP", UNDECIDED)
    assert verdict(row, stated=["TCP"] * 38 + ["UDP"] * 31 + ["SCTP"] * 31).verdict == DIFFERS
    assert verdict(row, stated=["TCP"] * 6).verdict == MATCHES
    assert verdict(row, stated=["UDP"] * 6).verdict == DIFFERS
    assert verdict(row, stated=["TCP", "TCP", "UDP", "UDP", "TCP", "TCP"]).verdict == UNDECIDED


def test_what_is_said_of_single_runs_is_judged_by_each_of_them() -> None:
    row = spec(paper=0.0, band=Band(absolute=0), of="share")
    # One run in ten that loses much makes no mean of nothing, and yet nine lost nothing.
    lossy = [0.0] * 9 + [50.0]
    found = verdict(row, stated=lossy)
    assert found.verdict == MATCHES
    assert "9 of 10 inside ±0 ms" in found.reason
    assert verdict(dataclasses.replace(row, of="mean"), stated=lossy).verdict == UNDECIDED
    half = verdict(row, stated=[0.0, 12.0, 15.0, 9.0, 0.0, 0.0, 6.0, 0.0, 0.0, 6.0])
    assert half.verdict == UNDECIDED
    assert "5 of 10 inside ±0 ms, which decides nothing" in half.reason
    assert verdict(row, stated=[5.0] * 9 + [0.0]).verdict == DIFFERS
    # Of one run there is no share; what gave no value is not inside.
    assert verdict(row, stated=0.0).verdict == MATCHES
    assert "1 of" not in verdict(row, stated=0.0).reason
    assert verdict(row, stated=[0.0] * 5 + [None] * 5).verdict == UNDECIDED


@pytest.mark.parametrize("name", reproduce.NAMES)
@pytest.mark.parametrize("width", [40, 80, 100, 120])
def test_ids_of_the_table_can_be_copied(name: str, width: int) -> None:
    file = study_file.load(name)
    wide = {row.id: Sample((1000.25, 1003.5, 990.125)) for row in file.rows}
    found = reproduce.judged(file, Values(wide, wide), {})
    with io.StringIO() as text:
        running._print_rows(name, found.rows, Console(width=width, file=text))
        printed = text.getvalue()
    lost = [row.id for row in file.rows if row.id not in printed.split()]
    assert not lost
    assert max(map(len, printed.splitlines())) <= width


def test_a_distance_between_percentages_is_in_points() -> None:
    assert Band(absolute=0.5).words("%") == "±0.5 percentage points"
    assert Band(relative=0.005).words("%") == "±0.5 %"
    assert Band(absolute=0.5).words("ms") == "±0.5 ms"
    assert Band(at_most=2).words("%") == "at most 2 %"


def test_a_band_that_reaches_to_nothing_is_said_to() -> None:
    wide = {"paper": 0.33, "unit": "%"}
    said = "does not tell it from nothing"
    assert said in verdict(spec(**wide, band=Band(absolute=0.5)), stated=0.1).reason
    assert said not in verdict(spec(**wide, band=Band(absolute=0.3)), stated=0.1).reason
    # Nothing is what is printed, or what keeps from it is another bound.
    assert said not in verdict(spec(paper=0.0, band=Band(absolute=0)), stated=0.0).reason
    apart = Band(absolute=0.5, at_least=0.1)
    assert said not in verdict(spec(**wide, band=apart), stated=0.2).reason
    file = study_file.load("wheeb2017")
    losses = [row.id for row in file.rows if row.band.as_wide_as(row.paper)]
    assert losses == [f"table5/video/{name}" for name in ("dccp", "sctp", "udp")]


def test_a_row_that_restates_another_says_so() -> None:
    again = verdict(spec("b", restates="a"), stated=100.0)
    assert "Restates a: the same values once more." in again.reason
    assert again.to_json("s")["restates"] == "s/a"
    assert verdict(spec(), stated=100.0).to_json("s")["restates"] is None


def test_a_row_changed_after_runs_says_so_and_why() -> None:
    file = study_file.load("maldonado2005")
    why = next(row for row in file.rows if row.id == "fig6/seldom").changed_after_runs
    assert why.startswith("replaced a row about the first second")
    one = reproduce.judged(file, Values(), {})
    rows = {row["id"]: row for row in one.to_json()["rows"]}
    assert rows["maldonado2005/fig6/seldom"]["changed_after_runs"] == why
    assert rows["maldonado2005/fig3/factor/1"]["changed_after_runs"] == ""
    page = dossier.study_page(one, [])
    marked = [row for row in file.rows if row.changed_after_runs]
    assert page.count("<dt>Changed after runs</dt>") == len(marked) > 0
    assert "".join(re.findall(r"\w", why)) in "".join(re.findall(r"\w", html.unescape(page)))


def test_the_pages_say_how_many_rows_there_are_and_how_many_were_changed_after_runs() -> None:
    docs = Path(__file__).parent.parent / "docs"
    rows = [row for name in reproduce.NAMES for row in study_file.load(name).rows]
    marked = sum(bool(row.changed_after_runs) for row in rows)
    studies = (docs / "studies.md").read_text(encoding="utf-8")
    assert f"of {marked} of the {len(rows)} rows" in studies
    checked = (docs / "checked.md").read_text(encoding="utf-8")
    assert f"five studies: {len(rows)} values and claims" in checked
    said = [note for note in runs_file("sarao2019")["note"] if "What is inferred" in note["text"]]
    computed = {row for note in said for row in note["rows"]}
    assert computed <= {row.id for row in study_file.load("sarao2019").rows}
    assert f"{len(computed)} rows rest on that arithmetic" in studies


def test_a_study_says_what_its_bands_are_of() -> None:
    rows = study_file.load("nor2010").rows
    drops = next(row for row in rows if row.id == "fig9-13/drops")
    assert (drops.of, spec().of) == ("share", "mean")


def edges(row: Spec) -> list[tuple[float, float]]:
    """The edges of a row's band, each with the way out: -1 below, 1 above."""
    low, high = row.band.edges(row.paper)
    return [(edge, way) for edge, way in ((low, -1.0), (high, 1.0)) if math.isfinite(edge)]


@pytest.mark.parametrize("name", reproduce.NAMES)
def test_every_bands_edge_is_where_the_class_changes(name: str) -> None:
    """Just inside each edge a row matches, just outside it alone no longer does; on it, neither."""
    file = study_file.load(name)
    # As if the text were complete and no row an input; what a check finds is another matter.
    whole = {"missing": (), "given": "", "group": None, "checks": ()}
    banded = [dataclasses.replace(row, **whole) for row in file.rows if edges(row)]
    assert banded
    inside = {}
    for row in banded:
        low, high = row.band.edges(row.paper)
        ends = (low if math.isfinite(low) else high - 2, high if math.isfinite(high) else low + 2)
        inside[row.id] = sum(ends) / 2
    file = dataclasses.replace(file, rows=tuple(banded))

    def judged(**changed: Sample):
        values = {id: Sample((value,)) for id, value in inside.items()} | changed
        return reproduce.judged(file, Values(values), {}).rows

    assert {row.verdict for row in judged()} == {MATCHES}
    for row in banded:
        for edge, way in edges(row):
            step = 1e-6 * max(abs(edge), 1e-3)
            near, beyond = edge - way * step, edge + way * step
            wide = row.band.edges(row.paper)[0] < row.band.edges(row.paper)[1]
            if wide:
                assert {r.verdict for r in judged(**{row.id: Sample((near,))})} == {MATCHES}
                # Six, for a share that fewer do not decide.
                several = Sample((near, near - way * step / 9, near + way * step / 9) * 2)
                assert {r.verdict for r in judged(**{row.id: several})} == {MATCHES}
            out = [r for r in judged(**{row.id: Sample((beyond,))}) if r.verdict != MATCHES]
            assert [(r.spec.id, r.verdict) for r in out] == [(row.id, DIFFERS)]
            across = Sample((edge - step, edge, edge + step) * 2)
            torn = [r for r in judged(**{row.id: across}) if r.verdict != MATCHES]
            assert [(r.spec.id, r.verdict) for r in torn] == [(row.id, UNDECIDED)]


@pytest.mark.parametrize("name", reproduce.NAMES)
def test_another_word_changes_the_class_of_its_row(name: str) -> None:
    file = study_file.load(name)
    worded = [
        dataclasses.replace(row, missing=(), given="", checks=())
        for row in file.rows
        if isinstance(row.paper, str) and not edges(row)
    ]
    file = dataclasses.replace(file, rows=tuple(worded))
    printed = {row.id: Sample((row.paper,)) for row in worded}
    for row in worded:
        changed = printed | {row.id: Sample(("another",))}
        found = reproduce.judged(file, Values(changed), {}).rows
        others = [(r.spec.id, r.verdict) for r in found if r.verdict != MATCHES]
        assert others == [(row.id, DIFFERS)]


@pytest.mark.parametrize("name", reproduce.NAMES)
def test_each_study_says_what_it_prints_infers_and_how_to_check_it(name: str) -> None:
    file = study_file.load(name)
    assert file.rows and file.inferred
    for row in file.rows:
        assert file.recipe(row.id), row.id
        assert row.quantity and row.where, row.id
        facts = file.facts
        formulas.impossible(row, facts)  # knows its checks and has their facts


LINK = {"delay_s": 0.05, "rate_bps": 256_000, "packet_bytes": 128}


def found(name: str, paper: float | str, unit: str = "ms", **facts: object) -> bool:
    return bool(formulas.impossible(spec(paper=paper, unit=unit, checks=(name,)), facts))


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
    too_many = [n for n in (16, 22, 23, 25, 50, 100) if found("link_carries", n, **web)]
    assert too_many == [23, 25, 50, 100]


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


def test_a_table_that_says_another_has_the_least_is_found() -> None:
    printed = {"t4/voip/tfrc": 0.78, "t4/voip/dccp": 0.13, "t4/data/tfrc": 0.01}
    facts = {"printed": printed, "cells": "t4/voip", "in": "s", "also_where": "x", "here": "y"}
    assert found("extreme_of_table", "TFRC", extreme="lowest", **facts)
    assert not found("extreme_of_table", "DCCP", extreme="lowest", **facts)
    assert not found("extreme_of_table", "TFRC", extreme="highest", **facts)


def test_a_table_that_has_the_opposite_order_is_found() -> None:
    printed = {"t3/data/udp": 100.0, "t3/data/sctp": 110.0, "t3/data/tfrc": 99.0}
    facts = {"cells": "t3/data", "in": "kb/s", "also_where": "Table 3", "here": "the abstract"}
    both = {"more": ["sctp", "tfrc"], "less": ["udp"], **facts}
    row = spec(paper="better", band=Band(at_least=1), checks=("order_of_table",))
    # One of two that is below is enough; the sentence names both values.
    assert formulas.impossible(row, {**both, "printed": printed}) == [
        "Table 3 prints 99 kb/s for TFRC and 100 kb/s for UDP, the abstract the opposite"
    ]
    # At the edge, equal values are not the opposite.
    assert not found("order_of_table", "better", printed={**printed, "t3/data/tfrc": 100.0}, **both)
    assert not found("order_of_table", "better", printed={**printed, "t3/data/tfrc": 101.0}, **both)
    # Less of several: each is compared.
    more = {"more": ["sctp"], "less": ["udp", "tfrc"], "printed": printed, **facts}
    assert not found("order_of_table", "better", **more)
    more["printed"] = {**printed, "t3/data/udp": 111.0}
    assert found("order_of_table", "better", **more)
    # The rows of another table do not count.
    other = {**printed, "t3/data/tfrc": 101.0, "t3/voip/tfrc": 1.0}
    assert not found("order_of_table", "better", printed=other, **both)


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
        ('paper = 1\nband = { absolute = 1 }\nrestates = "b"', "restates no row: a"),
        ('paper = 1\nband = { absolute = 1 }\nof = "all"', "of is mean or share, not all"),
        ('paper = "a"\nband = {}\nof = "share"', "words are a share"),
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


def test_runs_are_repeated_as_the_file_says() -> None:
    file = study_file.load("maldonado2005")
    assert file.repeated("web-tb-inferred") == 5
    assert file.repeated("mix-tb-8") == 10
    assert file.repeated("codecs-stated") == 1


def test_classes_are_those_of_the_documentation() -> None:
    page = (Path(__file__).parent.parent / "docs" / "studies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z ]+) \|", page[page.index("## A verdict") :], re.MULTILINE)
    assert rows[1 : len(CLASSES) + 1] == list(CLASSES)


# --- Bands against the words and numbers of the texts ----------------------------------------------


def test_no_row_calls_comparable_what_the_next_sentence_excludes():
    """TFRC-TB sends no faster than its best codec, 80 kb/s; TCP has the rest of 1.5 Mb/s."""
    file = study_file.load("maldonado2005")
    comparable = [row for row in file.rows if row.id.startswith("fig3/comparable/")]
    few = [row for row in file.rows if row.id.startswith("fig3/few")]
    assert len(comparable) == 4 and len(few) == 3
    for row in (*comparable, *few):
        number = int(row.id.rpartition("/")[2]) if row.id != "fig3/few" else 1
        fair = 1500 / (2 * number)
        least = (1500 - number * min(80, fair)) / number / fair
        low, high = row.band.edges(row.paper)
        assert low <= least <= high or (row in comparable and least == 1), row.id


def test_what_is_high_is_no_less_than_what_only_is():
    """The bands of one quantity: «highly variable» wants at least what «fluctuates» wants."""
    rows = {row.id: row for row in study_file.load("sarao2019").rows}
    assert rows["fig7/dccp-varies"].band.at_least >= rows["fig6/sctp-fluctuates"].band.at_least
    rows = {row.id: row for row in study_file.load("nor2010").rows}
    assert rows["fig9/sharp-start"].band.at_least > 1  # "smaller values give" it: a ratio


def test_a_least_loss_that_printed_counts_contradict():
    printed = {f"t/{which}-packets/{name}": value for which, values in (
        ("sent", {"a": 204.0, "b": 992.0, "c": 10.0}), ("received", {"a": 202.0, "b": 992.0, "c": 9.0})
    ) for name, value in values.items()}  # fmt: skip
    facts = {"printed": printed, "cells": "t", "also_where": "Table 2", "here": "the end"}
    row = spec(paper="", checks=("less_lost",))
    assert formulas.impossible(row, {**facts, "name": "a", "others": ["c", "b"]}) == [
        "Table 2 prints 202 of 204 received for A and 992 of 992 received for B, the end the opposite"
    ]
    assert formulas.impossible(row, {**facts, "name": "b", "others": ["a", "c"]}) == []
    assert formulas.impossible(row, {**facts, "name": "a", "others": ["c"]}) == []


def test_the_conclusions_of_a_study_are_held_against_its_tables():
    file = study_file.load("sarao2019")
    facts = file.facts
    found = {row.id: formulas.impossible(row, facts) for row in file.rows}
    (delay,), (loss,) = found["conclusion/sctp-delay"], found["conclusion/sctp-loss"]
    assert "81.9691 ms for SCTP" in delay and "DCCP has 52.75 ms" in delay
    assert "202 of 204 received for SCTP and 992 of 992 received for UDP" in loss


def test_the_first_mark_is_looked_up_in_the_queue_that_marks():
    series = pl.DataFrame(
        {
            "link": ["radio", "radio", "radio.back", "radio", "radio"],
            "time_s": [0.1, 0.2, 0.2, 0.3, 0.4],
            "queue_packets": [100.0, 190.0, 7.0, 240.0, 300.0],
            "marks": [0, 0, 3, 2, 5],
        }
    )
    run = lab.Run("r", 1, "", 1.0, {"link_series": series})
    assert renker2008.first_marked(run) == 240.0
    none = lab.Run("r", 1, "", 1.0, {"link_series": series.with_columns(marks=pl.lit(0))})
    assert renker2008.first_marked(none) is None


def test_a_template_is_filled_with_words_parts_and_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    file = {
        "parts": {"queue": {"kind": "droptail", "packets": "{packets}"}},
        "templates": {
            "star": {
                "duration": "{seconds}s",
                "links": {"each {hosts}": {"in-{n}": {"from": "host-{n}", "queue": "{queue}"}}},
                "flows": {"each starts": {"flow-{n}": {"start": "{start}"}}},
            }
        },
        "axes": {"length": [{"packets": 5}, {"packets": 10}]},
        "scenario": [
            {
                "name": "star-{packets}",
                "template": "star",
                "profile": "stated",
                "each": ["length"],
                "with": {"seconds": 7, "hosts": 2},
            }
        ],
    }
    monkeypatch.setattr("talkspurt.reproduce.study_file.runs_file", lambda study: file)
    starts = {"starts": [{"n": 1, "start": "0s"}, {"n": 2, "start": "1s"}]}
    five, ten = scenarios("star", starts)
    assert (five.name, five.profile, five.keep, ten.name) == ("star-5", "stated", "", "star-10")
    assert ten.table == {
        "duration": "7s",
        "links": {
            f"in-{n}": {"from": f"host-{n}", "queue": {"kind": "droptail", "packets": 10}}
            for n in (1, 2)
        },
        "flows": {"flow-1": {"start": "0s"}, "flow-2": {"start": "1s"}},
    }
    assert five.table["links"]["in-1"]["queue"] is not five.table["links"]["in-2"]["queue"]


@pytest.mark.parametrize("name", reproduce.NAMES)
def test_notes_and_figures_name_rows_and_runs_that_exist(name: str) -> None:
    ids = {row.id for row in study_file.load(name).rows}
    assert {row for note in runs_file(name)["note"] for row in note["rows"]} <= ids
    made = list(scenarios(name, getattr(reproduce.module(name), "AXES", None)))
    runs = {one.name for one in made}
    assert len(runs) == len(made)
    assert {one.keep for one in made} - {""} >= set(formulas.kept(name))
    for rows in formulas.tables(name):
        assert set(rows.formulas) <= ids
        assert {run for names in rows.names.values() for run in names.values()} <= runs
    for figure in (*filled(name, "figure"), *filled(name, "live")):
        panels = figure.get("panels", {"": figure}).values()
        lines = [line for panel in panels for line in panel.get("lines", {}).values()]
        named = {each["run"] for each in (figure, *lines) if "run" in each}
        assert named | {run for run, _ in figure.get("calls", {}).values()} <= runs
        assert set(figure.get("rows", {}).values()) <= ids
