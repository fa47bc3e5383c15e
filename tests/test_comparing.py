"""The answer in sentences: which calls are compared, how certain it is, and why."""

import re
from pathlib import Path

import pytest

import talkspurt
from conftest import made
from talkspurt import comparing
from talkspurt.analysis import causes
from talkspurt.results.axis import Axis
from talkspurt.results.result import Study
from texts import BULK, NEWRENO, UDP, axis_text, flow_text, link_text, put, scenario_text

FIRST_CALL = Path(__file__).parent.parent / "scenarios" / "first-call.toml"


def plain(sentence):
    return sentence.replace("\u00a0", " ")


@pytest.fixture(scope="module")
def first_call():
    return talkspurt.run(FIRST_CALL)


def test_calls_on_copies_of_a_network_are_compared_with_the_same_traffic(first_call):
    loaded, alone = comparing.of_result(first_call).comparisons
    assert loaded.baseline.label == "call (udp)"
    assert loaded.other.label == "call-over-tcp (tcp-newreno)"
    assert alone.baseline.label == "call-alone (udp)"
    mos = dict(first_call.flows.select("name", "mos").iter_rows())
    assert loaded.difference == pytest.approx(mos["call-over-tcp"] - mos["call"])
    assert loaded.significant is None
    (first, second) = map(plain, comparing.of_result(first_call).sentences())
    start = f"call (udp) {mos['call']:.2f}, call-over-tcp (tcp-newreno) {mos['call-over-tcp']:.2f}"
    assert first.startswith(f"{start}: call-over-tcp is {-loaded.difference:.2f} MOS worse; cause:")
    assert second.endswith("3.43: no difference.")


def test_the_causes_of_a_call_add_up_to_what_was_not_heard(first_call):
    (row,) = first_call.flows.filter(name="call-over-tcp").to_dicts()
    found = causes.unheard([(first_call, row)])
    assert found.causes.total() == row["late_packets"] + row["missing_packets"] > 100
    assert found.causes.total() / found.judged == pytest.approx(row["loss_ratio"])
    # Frames of more than one segment of 1460 bytes (9 frames of 160) that came at one instant had
    # arrived and waited for an earlier one; the congestion window held back the others.
    frames = first_call.frames("call-over-tcp").filter(fate="late")
    released = frames.group_by("delivered_s").len()["len"]
    assert found.causes[causes.HEAD_OF_LINE] == released.filter(released > 9).sum()
    assert set(found.causes) == {causes.HEAD_OF_LINE, causes.RATE}
    said = plain(comparing.of_result(first_call).sentences()[0])
    for cause in found.causes:
        assert cause in said and f"({found.share(cause):.2%}".replace("%", " %") in said


TCP = NEWRENO


def upload(name):
    return flow_text(f"{name}upload", f"{name}here>{name}there", NEWRENO, BULK)


def one_of_two(
    name,
    rate="2Mbit/s",
    delay="80ms",
    loss=0.0,
    codec="pcmu",
    lead="1s",
    buffer="60ms",
    anchor="first_arrival",
    transport=UDP,
):
    ends = f"{name}here>{name}there"
    source = f'{{ kind = "speech", codec = "{codec}", lead = "{lead}" }}'
    playout = f'{{ buffer = "{buffer}", anchor = "{anchor}" }}'
    return link_text(f"{name}line", ends, rate, delay, 50, loss=loss) + flow_text(
        f"{name}call", ends, transport, source, playout=playout, stop="19s"
    )


def pair(first, second, more="", **both):
    """Two calls on two copies of a network."""
    calls = (one_of_two("a-", **both | first), one_of_two("b-", **both | second))
    return scenario_text("pair", "20s", *calls, more, seed=1)


def sentences(tmp_path, text):
    found = talkspurt.run(put(tmp_path / "pair.toml", text))
    return [plain(words) for words in comparing.of_result(found).sentences()]


@pytest.mark.parametrize(
    ("second", "more", "count"),
    [
        ({"transport": TCP}, "", 1),
        ({"transport": TCP, "delay": "81ms"}, "", 0),
        ({"transport": TCP, "loss": 0.01}, "", 0),
        ({"transport": TCP}, upload("a-"), 0),
        ({"transport": TCP}, upload("a-") + upload("b-"), 1),
        ({}, "", 0),
    ],
)
def test_other_networks_other_traffic_and_equal_calls_are_not_compared(
    tmp_path, second, more, count
):
    assert len(sentences(tmp_path, pair({}, second, more))) == count


def test_other_times_and_other_directions_are_not_compared(tmp_path):
    late = pair({}, {"transport": TCP}).replace('stop = "19s"\n', 'stop = "18s"\n', 1)
    assert sentences(tmp_path, late) == []
    # On one network: the call back is not compared with the call there.
    text = pair({}, {"transport": TCP})
    links, flow = (
        text.split("[links.b-line]")[0],
        "[flows.b-call]" + text.split("[flows.b-call]")[1],
    )
    there = links + flow.replace("b-here", "a-here").replace("b-there", "a-there")
    back = links + flow.replace("b-here", "a-there").replace("b-there", "a-here")
    assert len(sentences(tmp_path, there)) == 1
    assert sentences(tmp_path, back) == []


def cause(tmp_path, text):
    (said,) = sentences(tmp_path, text)
    assert "; cause: " in said, said
    return said.partition("; cause: ")[2]


def test_head_of_line_blocking_is_told_from_loss(tmp_path):
    said = cause(tmp_path, pair({}, {"transport": TCP}, loss=0.03, buffer="40ms"))
    assert said.startswith("head-of-line blocking ("), said
    assert re.search(r"\(\d+\.\d\d % of the speech arrived too late\)", said)


def test_a_better_call_names_the_worse_ones_cause(tmp_path):
    text = pair({"transport": TCP}, {}, loss=0.03, buffer="40ms")
    (said,) = sentences(tmp_path, text)
    assert "b-call is" in said and "MOS better; cause: a-call (tcp-newreno) has head-of" in said


def test_a_handshake_delays_the_whole_call(tmp_path):
    dccp = '{ kind = "dccp", ccid = 4 }'
    text = pair({}, {"transport": dccp}, lead="0s", delay="200ms")
    assert cause(tmp_path, text).startswith("handshake delay (mouth-to-ear delay of ")


def test_a_larger_playout_buffer_costs_delay(tmp_path):
    text = pair({}, {"buffer": "300ms"})
    said = cause(tmp_path, text)
    assert re.fullmatch(r"mouth-to-ear delay of \d+ ms instead of \d+ ms\.", said), said


def test_a_codec_costs_what_the_model_says(tmp_path):
    text = pair({}, {"codec": "g729a"})
    assert "codec (costs" in cause(tmp_path, text)


def test_congestion_control_that_holds_speech_back_is_named(tmp_path):
    # CCID 2 starts with a window of a few packets, and every loss halves it.
    text = pair({}, {"transport": '{ kind = "dccp", ccid = 2 }'}, loss=0.08, delay="150ms")
    assert "rate limitation by congestion control" in cause(tmp_path, text)


def study_of(values, **columns):
    runs = [
        made({"transport": value}, replicate, mos, group=[None], r_factor=[mos and 50.0], **columns)
        for value, numbers in values.items()
        for replicate, mos in enumerate(numbers)
    ]
    axis = Axis("transport", "flows.call.transport", tuple(values))
    return Study("made", "", "", (axis,), len(runs) // len(values), 0.95, "", runs)


def said_of(values):
    return [plain(words) for words in comparing.of_study(study_of(values))["transport"].sentences()]


def test_a_significant_difference_has_its_interval():
    # By hand: differences −1, −1.1, −1.2; mean −1.1, s = 0.1, t(2) = 4.303, half = 0.25.
    (said,) = said_of({"UDP": [4.0, 4.0, 4.0], "TCP": [3.0, 2.9, 2.8]})
    assert said == "UDP 4.00, TCP 2.90: TCP is 1.10 ± 0.25 MOS worse (95 % interval, 3 seeds)."


def test_an_interval_around_nothing_is_no_significant_difference():
    (said,) = said_of({"UDP": [4.0, 3.0, 4.0], "TCP": [3.0, 4.0, 3.5]})
    # By hand: differences −1, 1, −0.5; mean −0.17, s = 1.04, half = 2.59.
    assert said == (
        "UDP 3.67, TCP 3.50: no significant difference (−0.17 ± 2.59 MOS, 95 % interval, 3 seeds)."
    )


def test_a_significant_difference_that_nobody_hears_has_no_rank():
    (said,) = said_of({"UDP": [4.0, 4.0, 4.0], "TCP": [4.002, 4.003, 4.002]})
    assert said == (
        "UDP 4.00, TCP 4.00: the difference is below 0.01 MOS (95 % interval, 3 seeds)."
    )


def test_equal_differences_have_no_interval():
    (said,) = said_of({"UDP": [4.0, 3.5], "TCP": [3.0, 2.5]})
    assert said == "UDP 3.75, TCP 2.75: TCP is 1.00 MOS worse (the same with each of 2 seeds)."
    (said,) = said_of({"UDP": [4.0, 3.5], "TCP": [4.0, 3.5]})
    assert said.endswith(": no difference (the same with each of 2 seeds).")


def test_a_replication_without_a_score_is_no_pair():
    (said,) = said_of({"UDP": [4.0, None, 4.0], "TCP": [3.0, 2.0, 2.9]})
    assert "2 of 3 seeds" in said
    assert said_of({"UDP": [4.0], "TCP": [None]}) == []


def test_the_possible_part_of_an_interval_is_shown():
    (said,) = said_of({"UDP": [4.5, 4.5], "TCP": [1.5, 1.45]})
    assert "TCP is 3.02 ± 0.32 MOS worse" in said
    (said,) = said_of({"UDP": [4.5, 4.5], "TCP": [1.5, 1.0]})
    # By hand: −3.25 ± 12.71 · 0.354 / √2; no difference of two scores is more than 3.5.
    assert "TCP is 3.25 MOS worse (95 % interval, 2 seeds: −3.50 … −0.07)" in said


def test_labels_that_are_numbers_are_told_from_scores():
    (said,) = said_of({"20ms": [4.0], "300ms": [3.0]})
    assert said == "MOS 4.00 at 20ms, 3.00 at 300ms: 300ms is 1.00 MOS worse."
    (said,) = said_of({"in order": [4.0], "in order, fast": [3.0]})
    assert said.startswith("in order 4.00, “in order, fast” 3.00: “in order, fast” is 1.00")


def test_of_many_comparisons_the_best_and_the_worst_are_shown():
    values = {"base": [3.0], **{f"v{k}": [1.0 + k / 4] for k in range(12)}}
    said = said_of(values)
    assert [words.split(",")[1].split()[0] for words in said[:-1]] == [
        "v0",
        "v1",
        "v2",
        "v10",
        "v11",
    ]
    assert said[-1] == "7 other comparisons lie between these: see the table."


def test_a_study_agrees_with_its_paired_differences(study):
    answers = comparing.of_study(study)
    rows = {row["flow"]: row for row in study.differences("delay", names=["mos"]).to_dicts()}
    assert answers["delay"].comparisons
    for one in answers["delay"].comparisons:
        row = rows[one.where]
        for key in ("mean", "low", "high", "deviation", "count"):
            assert one.row[key] == pytest.approx(row[key]), key
    # Within its runs, the two calls on one link are compared under each delay.
    places = [(one.where, one.baseline.label, one.other.label) for one in answers[None].comparisons]
    calls = ("call (udp)", "tcp-call (tcp-newreno)")
    assert places == [("delay 20ms", *calls), ("delay 200ms", *calls)]


def test_every_frame_not_heard_in_a_study_has_one_cause(study):
    for one in study.runs:
        for row in one.flows.filter(source="speech").to_dicts():
            found = causes.unheard([(one, row)])
            assert found.causes.total() == row["late_packets"] + row["missing_packets"]
            assert found.causes.total() / found.judged == pytest.approx(row["loss_ratio"])


def test_the_frames_of_a_limited_number_of_runs_are_read(tmp_path, monkeypatch):
    link = link_text("l", "a>b", "1Mbit/s", "150ms", loss=0.05)
    over = axis_text("flows.call.transport.kind", '["udp", "sctp"]', name="over")
    tables = (link, flow_text("call", "a>b"), over)
    text = scenario_text("t", "3s", *tables, replications="{ count = 4 }")
    study = talkspurt.run(text, study=True)
    read = []
    unheard = causes.unheard

    def counted(rows):
        rows = list(rows)
        read.append(len(rows))
        return unheard(rows)

    monkeypatch.setattr(causes, "unheard", counted)
    (all_said,) = comparing.of_study(study)["over"].sentences()
    assert "95 % interval, 4 seeds" in plain(all_said) and set(read) == {4}
    monkeypatch.setattr(comparing, "MAX_PAIRS", 3)
    read.clear()
    (said,) = comparing.of_study(study)["over"].sentences()
    assert said.split("; cause: ")[0] == all_said.split("; cause: ")[0]
    assert set(read) == {3}
