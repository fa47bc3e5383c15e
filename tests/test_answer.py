"""The answer: which options are compared, how certain it is, why, and that it agrees with the tables."""

import json
import re
import statistics

import polars as pl
import pytest
from scipy.stats import t

import command
import talkspurt
from conftest import made
from talkspurt._terminal import tables
from talkspurt.report import answer as page
from talkspurt.results.axis import Axis
from talkspurt.results.result import Study
from texts import BULK, NEWRENO, UDP, flow_text, link_text, scenario_text


def plain(words):
    return words.replace("\u00a0", " ").replace("\u202f", " ")


def sentences(of):
    return [plain(words) for words in of.answer.sentences]


def between_calls(of):
    return [one for one in of.answer.questions if one["axis"] is None]


@pytest.fixture(scope="module")
def first_call():
    """Over a satellite, with a fixed buffer, which loses what TCP delivers late."""
    path = {"rate": "1Mbit/s", "delay": "270ms", "queue.packets": 10}
    sets = {f"links.*-uplink.{key}": value for key, value in path.items()}
    return talkspurt.run(
        "scenarios/first-call.toml", set={**sets, "flows.call*.playout.buffer": "130ms"}
    )


def test_calls_on_copies_of_a_network_are_compared_with_the_same_traffic(first_call):
    loaded, alone = between_calls(first_call)
    assert [one["label"] for one in loaded["options"]] == ["call", "call-over-tcp", "call-in-opus"]
    assert {one["label"] for one in alone["options"]} == {"call-alone", "call-over-tcp-alone"}
    # The call over TCP leaves the range of the model, and Opus has no score.
    assert loaded["measures"] == ["mouth_to_ear_mean_s", "concealed_ratio"]
    rows = {row["name"]: row for row in first_call.flows.to_dicts()}
    delay, unheard = rows["call"]["mouth_to_ear_mean_s"], rows["call"]["concealed_ratio"]
    more = rows["call-over-tcp"]["concealed_ratio"] - unheard
    said = sentences(first_call)[0]
    assert said.startswith(
        f"But for what the codecs cost, call (udp) did best: mean mouth-to-ear delay {delay * 1e3:.1f} ms and unheard "
        f"{unheard * 100:.2f} %; call-over-tcp (tcp-newreno): {more * 100:.2f} percentage points more"
    )
    assert sentences(first_call)[1].startswith(
        "Not ranked by MOS: for call-over-tcp it is outside the range of the E-model, since "
    )


def test_the_causes_of_a_call_add_up_to_what_was_not_heard(first_call):
    (row,) = first_call.flows.filter(name="call-over-tcp").to_dicts()
    (_, worse, _) = between_calls(first_call)[0]["options"]
    parts = dict(re.findall(r"([\w -]+): (\d+\.\d+)", plain(worse["cause"])))
    assert sum(map(float, parts.values())) == pytest.approx(row["concealed_ratio"] * 100, abs=0.011)
    # Frames of more than one segment of 1460 bytes (9 frames of 160) that came at one instant had
    # arrived and waited for an earlier one; the congestion window held back the others.
    frames = first_call.frames("call-over-tcp").filter(fate="late")
    released = frames.group_by("delivered_s").len()["len"]
    blocked = released.filter(released > 9).sum() / frames.height * row["concealed_ratio"]
    assert float(parts["head-of-line blocking"]) == pytest.approx(blocked * 100, abs=0.006)
    assert "congestion control" in worse["cause"]


def test_the_parts_of_the_unheard_share_add_up(first_call):
    for row in first_call.flows.filter(source="speech").to_dicts():
        parts = (row[f"unheard_{part}_ratio"] for part in ("lost", "late", "paused"))
        assert sum(parts) == pytest.approx(row["concealed_ratio"], abs=1e-12)


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


def upload(name):
    return flow_text(f"{name}upload", f"{name}here>{name}there", NEWRENO, BULK)


@pytest.mark.parametrize(
    ("second", "more", "count"),
    [
        ({"transport": NEWRENO}, "", 1),
        ({"transport": NEWRENO, "delay": "81ms"}, "", 0),
        ({"transport": NEWRENO, "loss": 0.01}, "", 0),
        ({"transport": NEWRENO}, upload("a-"), 0),
        ({"transport": NEWRENO}, upload("a-") + upload("b-"), 1),
        ({}, "", 0),
    ],
)
def test_other_networks_other_traffic_and_equal_calls_are_not_compared(second, more, count):
    assert len(between_calls(talkspurt.run(pair({}, second, more)))) == count


def test_other_times_and_other_directions_are_not_compared():
    late = pair({}, {"transport": NEWRENO}).replace('stop = "19s"\n', 'stop = "18s"\n', 1)
    assert between_calls(talkspurt.run(late)) == []
    # On one network: the call back is not compared with the call there.
    text = pair({}, {"transport": NEWRENO})
    links = text.split("[links.b-line]")[0]
    flow = "[flows.b-call]" + text.split("[flows.b-call]")[1]
    there = links + flow.replace("b-here", "a-here").replace("b-there", "a-there")
    back = links + flow.replace("b-here", "a-there").replace("b-there", "a-here")
    assert len(between_calls(talkspurt.run(there))) == 1
    assert between_calls(talkspurt.run(back)) == []


def cause(text):
    (question,) = between_calls(talkspurt.run(text))
    return plain(question["options"][1]["cause"])


DCCP = '{{ kind = "dccp", ccid = {} }}'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # Of the worse call, whichever comes first.
        (
            pair({}, {"transport": NEWRENO}, loss=0.03, buffer="40ms"),
            r"head-of-line blocking: \d+\.\d\d % too late.*",
        ),
        (
            pair({"transport": NEWRENO}, {}, loss=0.03, buffer="40ms"),
            r"head-of-line blocking: \d+\.\d\d % too late.*",
        ),
        (
            pair({}, {"transport": DCCP.format(4)}, lead="0s", delay="200ms"),
            r"handshake delay.*",
        ),
        (pair({}, {"buffer": "300ms"}), r"mouth-to-ear delay of [\d.]+ ms instead of [\d.]+"),
        (pair({}, {"codec": "g729a"}), r"codec: costs \d\.\d\d MOS instead of 0\.00"),
        # CCID 2 starts with a window of a few packets, and every loss halves it.
        (
            pair({}, {"transport": DCCP.format(2)}, loss=0.08, delay="150ms"),
            r".*congestion control: .* waited too long at the sender.*",
        ),
    ],
)
def test_causes(text, wanted):
    assert re.fullmatch(wanted, cause(text)), cause(text)


def study_of(values, *, limits=None, **columns):
    runs = [
        made(
            {"transport": value},
            replicate,
            mos,
            group=[None],
            r_factor=[mos and 50.0],
            **{"concealed_ratio": [0.0], "quality_limits": [limits]} | columns,
        )
        for value, numbers in values.items()
        for replicate, mos in enumerate(numbers)
    ]
    axis = Axis("transport", "flows.call.transport", tuple(values))
    return Study("made", "", "", (axis,), len(runs) // len(values), 0.95, "", runs)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        # By hand: differences −1, −1.1, −1.2; mean −1.1, s = 0.1, t(2) = 4.303, half = 0.25.
        (
            {"UDP": [4.0, 4.0, 4.0], "TCP": [3.0, 2.9, 2.8]},
            "call: UDP is best: MOS 4.00; TCP: 1.10 ± 0.25 MOS less.",
        ),
        # By hand: differences −1, 1, −0.5; mean −0.17, s = 1.04, half = 2.59.
        (
            {"UDP": [4.0, 3.0, 4.0], "TCP": [3.0, 4.0, 3.5]},
            "call: no significant difference along transport (MOS 3.50 to 3.67).",
        ),
        # Nobody hears 0.002 MOS.
        (
            {"UDP": [4.0, 4.0, 4.0], "TCP": [4.002, 4.003, 4.002]},
            "call: no significant difference along transport (MOS 4.00).",
        ),
        # A difference with each seed, the same: nothing that chance could change.
        (
            {"UDP": [4.0, 4.0], "TCP": [3.0, 3.0]},
            "call: UDP is best: MOS 4.00; TCP: 1.00 MOS less.",
        ),
        # The same by chance, with a probability of 1/2.
        (
            {"UDP": [4.0, 3.5], "TCP": [3.0, 2.5]},
            "call: no significant difference along transport (MOS 2.75 to 3.75).",
        ),
        ({"UDP": [4.0], "TCP": [3.0]}, "call: UDP did best: MOS 4.00; TCP: 1.00 MOS less."),
        (
            {"20ms": [4.0], "300ms": [3.0]},
            "call: transport 20ms did best: MOS 4.00; transport 300ms: 1.00 MOS less.",
        ),
        (
            {"in order": [3.0], "in order, fast": [4.0]},
            "call: “in order, fast” did best: MOS 4.00; in order: 1.00 MOS less.",
        ),
    ],
)
def test_verdicts_by_hand(values, said):
    assert sentences(study_of(values)) == [said]


def test_more_comparisons_need_more_certainty():
    """The interval of one of three comparisons is that of 1 − 0.05 / 3."""
    values = {"UDP": [4.0, 4.0, 4.0], "TCP": [3.0, 2.9, 2.8], "SCTP": [2.0, 1.9, 1.8]}
    half = t.ppf(1 - 0.05 / 3 / 2, 2) * 0.1 / 3**0.5
    (said,) = sentences(study_of(values))
    assert said == (
        f"call: UDP is best: MOS 4.00; TCP: 1.10 ± {half:.2f} MOS less; "
        f"SCTP: 2.10 ± {half:.2f} MOS less."
    )
    assert "at which all 3 comparisons hold together" in plain(study_of(values).answer.about)


def test_a_seed_without_a_score_means_that_calls_are_judged_otherwise():
    study = study_of({"UDP": [4.0, None, 4.0], "TCP": [3.0, 2.0, 2.9]}, mouth_to_ear_mean_s=[0.1])
    (question,) = study.answer.questions
    assert question["measures"] == ["mouth_to_ear_mean_s", "concealed_ratio"]
    assert "MOS" not in sentences(study)[0]


def test_instruments_are_never_mixed():
    """One score outside the range of the model, and no call is ranked by scores."""
    inside = study_of({"UDP": [4.0], "TCP": [3.0]})
    outside = study_of(
        {"UDP": [4.0], "TCP": [3.0]}, limits="too much loss", mouth_to_ear_mean_s=[0.1]
    )
    assert inside.answer.questions[0]["measures"] == ["mos"]
    assert outside.answer.questions[0]["measures"] == ["mouth_to_ear_mean_s", "concealed_ratio"]


def test_delay_and_unheard_speech_that_contradict_have_no_single_best():
    runs = [
        made(
            {"buffer": label},
            0,
            None,
            group=[None],
            r_factor=[None],
            mouth_to_ear_mean_s=[delay],
            concealed_ratio=[unheard],
        )
        for label, delay, unheard in (("short", 0.1, 0.05), ("long", 0.4, 0.001))
    ]
    axis = Axis("buffer", "flows.call.playout", ("short", "long"))
    study = Study("made", "", "", (axis,), 1, 0.95, "", runs)
    assert sentences(study) == [
        "call: no single best: short has the best mean mouth-to-ear delay 100.0 ms, with unheard "
        "5.00 %; long has the best unheard 0.10 %, with mean mouth-to-ear delay 400.0 ms."
    ]


def test_no_call_is_best_that_another_has_a_better_mean_than_in_one_measure():
    """By delay alone UDP is better for sure; of the unheard share, TCP has 0.8 points less."""
    delays = {"UDP": (0.100, 0.101, 0.102), "TCP": (0.150, 0.151, 0.153)}
    unheard = {"UDP": (0.02, 0.0, 0.01), "TCP": (0.001, 0.002, 0.003)}
    runs = [
        made(
            {"transport": value},
            replicate,
            None,
            group=[None],
            r_factor=[None],
            mouth_to_ear_mean_s=[delays[value][replicate]],
            concealed_ratio=[unheard[value][replicate]],
        )
        for value in delays
        for replicate in range(3)
    ]
    axis = Axis("transport", "flows.call.transport", tuple(delays))
    assert sentences(Study("made", "", "", (axis,), 3, 0.95, "", runs)) == [
        "call: no single best: UDP has the best mean mouth-to-ear delay 101.0 ms, with unheard "
        "1.00 %; TCP has the best unheard 0.20 %, with mean mouth-to-ear delay 151.3 ms."
    ]


def of_sound_and_picture(networks, frozen, unheard, late=0.2, goodput=(1e6, 1e6)):
    """A study of two ways to carry both over networks; values by way, the same over each."""
    runs = [
        made(
            {"way": way, "network": network},
            0,
            None,
            flows=(("picture", "udp"), ("sound", "udp")),
            group=[None, None],
            r_factor=[None, None],
            mouth_to_ear_mean_s=[None, 0.1],
            concealed_ratio=[None, unheard[way]],
            video_frozen_s=[frozen[way], None],
            frame_delay_p95_s=pl.Series([late, None], dtype=pl.Float64),
            goodput_bps=[goodput[way == "B"], 3e4],
        )
        for way in frozen
        for network in networks
    ]
    axes = (
        Axis("way", "flows.*.transport", tuple(frozen)),
        Axis("network", "links.a.rate", tuple(networks)),
    )
    return Study("made", "", "", axes, 1, 0.95, "", runs)


def test_sound_and_picture_are_told_under_one_setting_before_the_next():
    both = of_sound_and_picture(["LTE", "Wi-Fi"], {"A": 0.0, "B": 2.0}, {"A": 0.1, "B": 0.0})
    heads = [said.partition(": ")[::2] for said in sentences(both)]
    assert [head for head, _ in heads] == [
        "picture, network LTE",
        "sound, network LTE",
        "picture, network Wi-Fi",
        "sound, network Wi-Fi",
    ]
    assert [said.split()[0] for _, said in heads] == ["A", "B", "A", "B"]


def test_sound_that_does_not_differ_is_told_beside_pictures_that_do():
    both = of_sound_and_picture(["LTE"], {"A": 0.0, "B": 2.0}, {"A": 0.0, "B": 0.0})
    first, second = sentences(both)
    assert first.startswith("picture: A did best: frozen 0.00 s")
    assert second == (
        "sound: no noticeable difference along way (mean mouth-to-ear delay 100.0 ms, "
        "unheard 0.00 %)."
    )


def test_a_measure_that_is_unknown_is_not_named_in_a_trade_off():
    """As of frames of an imported trace."""
    wide = {"late": None, "goodput": (1e6, 2e6)}
    both = of_sound_and_picture(["LTE"], {"A": 0.0, "B": 2.0}, {"A": 0.0, "B": 0.0}, **wide)
    assert sentences(both)[0] == (
        "picture: no single best: A has the best frozen 0.00 s, with goodput 1 000.0 kbit/s; "
        "B has the best goodput 2 000.0 kbit/s, with frozen 2.00 s."
    )


LINE = {
    "from": "a", "to": "b", "rate": "600kbit/s", "delay": "30ms",
    "queue": {"kind": "droptail", "packets": 20},
}  # fmt: skip
VOICE = {
    "from": "a", "to": "b", "transport": {"kind": "udp"},
    "source": {"kind": "speech", "codec": "pcmu"},
}  # fmt: skip
VIDEO = {**VOICE, "source": {"kind": "video", "rate": "400kbit/s"}}
DATA = {
    "from": "a", "to": "b", "transport": {"kind": "tcp", "controller": "cubic"},
    "source": {"kind": "bulk"}, "start": "2s", "start_spread": "1s",
}  # fmt: skip
KINDS = [{"kind": "udp"}, {"kind": "tcp", "controller": "cubic"}, {"kind": "sctp"}]


def study(flows, axes, *, count=3):
    return talkspurt.run(
        {
            "title": "answer", "duration": "8s", "links": {"line": LINE}, "flows": flows,
            "axes": axes, "replications": {"count": count},
        },
        study=True,
    )  # fmt: skip


def transports(flow):
    return {
        "name": "over", "path": f"flows.{flow}.transport", "values": KINDS,
        "labels": ["UDP", "TCP", "SCTP"],
    }  # fmt: skip


@pytest.fixture(scope="module")
def video():
    return study({"voice": VOICE, "video": VIDEO, "upload": DATA}, [transports("video")])


def test_an_axis_is_about_the_flow_that_it_sets(video):
    (question,) = video.answer.questions
    measures = ["video_frozen_s", "frame_delay_p95_s", "goodput_bps"]
    assert (question["flow"], question["measures"]) == ("video", measures)
    rows = video.flows.filter(name="video")
    for option in question["options"]:
        its = rows.filter(**{"axis.over": option["label"]})
        for measure, cell in zip(measures, option["cells"], strict=True):
            assert cell["mean"]["mean"] == pytest.approx(its[measure].mean())
    assert sentences(video)[0].startswith("video: ")
    for label in ("frozen", "frame delay p95", "goodput"):
        assert label in sentences(video)[0]


def test_a_run_says_what_its_sound_and_its_picture_came_to():
    said = sentences(talkspurt.run({
        "title": "both", "duration": "8s", "links": {"line": LINE},
        "flows": {"voice": VOICE, "video": VIDEO, "upload": DATA},
    }))  # fmt: skip
    assert [sentence.split(" ")[0] for sentence in said] == ["voice", "video"]
    assert "frozen" in said[1] and "goodput" in said[1]


def test_a_queue_is_chosen_for_sound_and_picture():
    queues = {
        "name": "queue", "path": "links.line.queue", "labels": ["short", "long"],
        "values": [{"kind": "droptail", "packets": 10}, {"kind": "droptail", "packets": 300}],
    }  # fmt: skip
    found = study({"voice": VOICE, "video": VIDEO, "upload": DATA}, [queues])
    assert {question["flow"] for question in found.answer.questions} == {"voice", "video"}


def test_the_controller_of_a_session_is_of_all_its_flows():
    controllers = [
        {"kind": "gcc"},
        {"kind": "fixed", "rate": "900kbit/s", "circuit_breaker": False},
    ]
    picture = {**VIDEO, "source": {"kind": "video", "encoder": {"max": "900kbit/s"}}}
    flows = {
        "picture": {**picture, "controller": controllers[0]},
        "sound": {**VOICE, "session": "picture"},
        "other": VOICE,
    }
    axis = {"name": "control", "path": "flows.picture.controller", "values": controllers}
    found = study(flows, [{**axis, "labels": ["GCC", "fixed"]}], count=1)
    along = [one["flow"] for one in found.answer.questions if one["axis"]]
    assert along == ["picture", "sound"]


def test_codecs_that_no_score_judges_are_not_called_best(capsys, monkeypatch):
    codecs = {"name": "codec", "path": "flows.voice.source.codec"}
    codecs = {**codecs, "values": ["g729a", "pcmu", "amr-12.2"]}
    found = study({"voice": {**VOICE, "count": 6}}, [codecs], count=1)
    assert found.answer.judged_by == ["mouth_to_ear_mean_s", "concealed_ratio"]
    assert sentences(found)[0].startswith("voice: but for what the codecs cost, ")
    losses = {"name": "loss", "path": "links.line.loss", "values": [0, 0.01, 0.02, 0.03]}
    (said, *_) = sentences(study({"voice": VOICE}, [codecs, losses], count=1))
    assert ", but for what the codecs cost, in 4 settings of the other axes: " in said
    # What judges has a column before what does not.
    monkeypatch.setenv("COLUMNS", "50")
    tables.print_study(found)
    heads = capsys.readouterr().out.partition("Calls\n")[2].partition("──")[0]
    assert "mouth-to-ear" in heads and "unheard" in heads and "estimated" not in heads


def test_the_terminal_says_it_last_and_the_report_first(video, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    tables.print_study(video)
    out = plain(capsys.readouterr().out).rstrip().splitlines()
    at = next(i for i, line in enumerate(out) if line.startswith("video: "))
    assert len(out) - at <= 6
    words = " ".join(" ".join(out[at:]).split())
    assert words.startswith(sentences(video)[0])
    assert plain(page.of_study(video)["sentences"][0]) == sentences(video)[0]


def test_the_terminal_says_which_setting_is_out_of_range(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    values = {"UDP": [4.0], "TCP": [3.0]}
    of = study_of(values, limits="too much loss", mouth_to_ear_mean_s=[0.1])
    said = sentences(of)[1]
    assert said == (
        "Not ranked by MOS: for call (UDP) and call (TCP) it is outside the range of the E-model, "
        "the first since too much loss."
    )
    for prints in (tables.print_answer, tables._print_answer):
        prints(of.answer, tables.console())
        out = plain(capsys.readouterr().out)
        assert " ".join(out.split()).count(said) == 1
        assert prints is tables._print_answer or len(out.splitlines()) <= 6


def test_bulk_data_are_judged_by_goodput_and_need_no_call():
    axis = {**transports("data"), "values": KINDS[1:], "labels": ["TCP", "SCTP"]}
    found = study({"data": {**DATA, "start": "0s"}}, [axis])
    (question,) = found.answer.questions
    assert question["measures"] == ["goodput_bps"]
    means = {
        label: statistics.mean(its["goodput_bps"])
        for (label,), its in found.flows.group_by("axis.over")
    }
    texts = {one["label"]: one["cells"][0]["text"] for one in question["options"]}
    assert {k: plain(v) for k, v in texts.items()} == {
        k: f"{v / 1e3:,.1f}".replace(",", " ") for k, v in means.items()
    }


def test_settings_of_other_axes_are_told_apart_or_counted():
    rates = {"name": "rate", "path": "links.line.rate", "values": ["600kbit/s", "2Mbit/s"]}
    flows = {"voice": VOICE, "upload": DATA}
    said = sentences(study(flows, [transports("voice"), rates], count=1))
    heads = {words.split(":")[0] for words in said}
    assert heads - {"Not ranked by MOS"} == {"voice, rate 600kbit/s", "voice, rate 2Mbit/s"}
    more = {**rates, "values": ["300kbit/s", "600kbit/s", "1Mbit/s", "2Mbit/s"]}
    said, *_ = sentences(study(flows, [transports("voice"), more], count=1))
    assert re.match(r"voice, along over \(.* and .*\), in 4 settings of the other axes: ", said)
    counted = said.split("other axes: ")[1]
    assert sum(map(int, re.findall(r" in (?:all )?(\d)", counted))) == 4


def test_a_condition_is_asked_about_only_where_nothing_else_is():
    rates = {"name": "rate", "path": "links.line.rate", "values": ["50kbit/s", "2Mbit/s"]}
    alone = study({"voice": VOICE}, [rates], count=1)
    assert [one["axis"] for one in alone.answer.questions] == ["rate"]
    assert sentences(alone)[0].startswith("voice: rate 2Mbit/s did best: ")
    both = study({"voice": VOICE}, [transports("voice"), rates], count=1)
    assert {one["axis"] for one in both.answer.questions} == {"over"}


def test_a_study_agrees_with_its_paired_differences():
    values = {"UDP": [4.0, 3.9, 4.1], "TCP": [3.0, 2.9, 2.8]}
    found = study_of(values)
    (row,) = found.differences("transport", names=["mos"]).to_dicts()
    (_, other) = found.answer.questions[0]["options"]
    (difference,) = other["differences"]
    assert difference["mean"]["mean"] == pytest.approx(row["mean"])
    assert difference["half"] == pytest.approx(row["high"] - row["mean"])


def test_the_frames_of_a_limited_number_of_calls_are_read(monkeypatch):
    from talkspurt.analysis.answer import _Details

    read = []
    frames = _Details.frames
    monkeypatch.setattr(_Details, "frames", lambda *it: read.append(it) or frames(*it))
    group = {**VOICE, "transport": {"kind": "udp"}}
    tcp = {**group, "transport": {"kind": "tcp", "controller": "cubic"}}
    flows = {"x": group | {"count": 250}, "y": tcp | {"count": 250}}
    found = talkspurt.run({"title": "t", "duration": "1s", "links": {"line": LINE}, "flows": flows})
    assert between_calls(found)
    assert 0 < len(read) <= 400


def test_the_json_of_a_result_has_its_answer(tmp_path):
    file = tmp_path / "pair.toml"
    file.write_text(pair({}, {"transport": NEWRENO}), encoding="utf-8")
    document = json.loads(command.talkspurt("run", str(file), "--json").stdout)
    assert document["answer"]["sentences"] and document["answer"]["questions"]


def behind_an_upload(**playout):
    """A call behind an upload that fills a queue of half a second, with these keys of playout."""
    link = link_text("line", "home>office", "1Mbit/s", "20ms", 42)
    call = flow_text("call", "home>office")
    bulk = flow_text("upload", "home>office", NEWRENO, BULK)
    text = scenario_text("late", "12s", link, call, bulk)
    return talkspurt.run(text, set={f"flows.call.playout.{key}": it for key, it in playout.items()})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"buffer": "60ms"}, "the fixed playout buffer is shorter than the variation of the delay"),
        (
            {"buffer": "80ms", "anchor": "capture"},
            "the fixed playout buffer is shorter than the delay",
        ),
        ({}, None),
        ({"buffer": "900ms"}, None),
    ],
)
def test_a_note_says_why_most_of_a_call_was_too_late(keys, said):
    of = behind_an_upload(**keys)
    late = of.flows.filter(name="call")["unheard_late_ratio"].item()
    notes = [it for it in of.answer.notes if "too late" in it]
    assert (late > 0.5) == bool(said) == bool(notes)
    if said:
        share = f"{late * 100:.2f}\u00a0%"
        remedy = "the default buffer adapts"
        assert notes == [f"Most of the speech of call was too late ({share}): {said}; {remedy}."]
