"""Variations of published studies: ``--set`` changes every scenario with the field, and says so."""

import tomllib

import pytest

from command import told
from talkspurt import reproduce
from talkspurt.errors import BadInputError
from talkspurt.reproduce import rows
from talkspurt.reproduce.lab import Lab
from talkspurt.reproduce.study_file import StudyFile
from texts import UDP, cbr, flow_text, link_text

SET = "links.middle.queue.packets=50"


@pytest.fixture(scope="module")
def both():
    """wheeb2017 as it is and with a longer queue, each scenario once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StudyFile, "repeated", lambda self, name: 1)
        return [reproduce.reproduce(["wheeb2017"], sets=sets)[0] for sets in ((), (SET,))]


def test_a_longer_queue_has_the_delay_of_its_packets(both):
    """898 kb/s over 800 kb/s fill the queue: each packet more in it adds its transmission time."""
    before, after = ({row.spec.id: row for row in one.rows}["table4/data/udp"] for one in both)
    rise = after.inferred.value - before.inferred.value
    assert rise == pytest.approx(40 * 8 * 1000 / 800e3, rel=0.1)


def test_varied_rows_say_so_and_have_no_value_of_ns2(both):
    plain, varied = both
    row = next(row for row in varied.rows if row.spec.id == "table4/data/udp")
    assert row.reason.startswith(f"Varied: {SET}.")
    assert row.ns2 is None
    assert next(row for row in plain.rows if row.spec.id == row.spec.id).ns2 is not None
    assert not any("Varied" in row.reason for row in plain.rows)
    assert (plain.to_json().get("set"), varied.to_json()["set"]) == (None, [SET])
    assert varied.cases["data-udp-inferred"].sets == (SET,)
    # The checks are of the numbers in the text, which the varied rows do not have.
    plainly, now = (
        [row.spec.id for row in one.rows if row.verdict == rows.CANNOT_FOLLOW]
        for one in (plain, varied)
    )
    told = {row.spec.id: row.reason for row in varied.rows}
    assert plainly and any(told[id].startswith("Varied") for id in plainly)
    assert not [id for id in now if told[id].startswith("Varied")]


WIRE = link_text("wire", "a>b", "1Mbit/s", "5ms", 5)
FLOW = flow_text("f", "a>b", UDP, cbr("50kbit/s", "100B"))
SMALL = tomllib.loads(f'duration = "1s"\n{WIRE}{FLOW}')


def test_scenarios_without_the_field_stay_as_they_are():
    lab = Lab(sets=["links.wire.delay=50ms"])
    other = {**SMALL, "links": {"cable": SMALL["links"]["wire"]}}
    lab.ask("with", SMALL, "stated")
    lab.ask("without", other, "stated")
    lab.check()
    assert lab.first("with").flow("f", "delay_min_s") >= 0.05
    assert lab.first("without").flow("f", "delay_min_s") < 0.03
    lab.samples(["with"], lambda run: {"one": 1.0})
    lab.samples(["without"], lambda run: {"two": 1.0})
    assert (lab.varied("one"), lab.varied("two")) == (True, False)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        ("links.nix.delay=5ms", "no scenario of the study has this field"),
        ("links.wire.delay=abc", '"abc" is not a duration'),
        ("links.wire", "is not PATH=VALUE"),
    ],
)
def test_an_override_that_fits_nothing_is_an_error(one, words):
    lab = Lab(sets=[one])

    def ask():
        lab.ask("with", SMALL, "stated")
        lab.check()

    with pytest.raises(BadInputError) as error:
        ask()
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("all", "--set", "duration=5s"), "varies one study, not all of them"),
        (("wheeb2017", "--set", "links.nix.rate=1kbit/s"), "no scenario of the study has this field"),
        (("wheeb2017", "--set", SET, "--ns2"), "--n"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(words, said, tmp_path):
    assert said in told("reproduce", *words, cwd=tmp_path)
