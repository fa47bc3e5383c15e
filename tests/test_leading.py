"""The first sentences on a study say which value of an axis is best for what the axis sets, and by how much."""

import re
import statistics

import polars as pl
import pytest
from scipy.stats import t

import talkspurt
from talkspurt import leading
from talkspurt._terminal import tables
from talkspurt.report import answer

KINDS = [{"kind": "udp"}, {"kind": "tcp", "controller": "cubic"}, {"kind": "sctp"}]
ENDS = {"from": "a", "to": "b"}
QUEUE = {"kind": "droptail", "packets": 20}
LINE = {**ENDS, "rate": "600kbit/s", "delay": "30ms", "queue": QUEUE}
VOICE = {**ENDS, "transport": KINDS[0], "source": {"kind": "speech", "codec": "pcmu"}}
VIDEO = {**ENDS, "transport": KINDS[0], "source": {"kind": "video", "rate": "400kbit/s"}}
BULK = {**ENDS, "transport": KINDS[1], "source": {"kind": "bulk"}}
BULK |= {"start": "2s", "start_spread": "1s"}


def study(flows, axes, *, count=3, links=None):
    tables = {"links": links or {"line": LINE}, "flows": flows, "axes": axes}
    head = {"title": "leading", "duration": "8s", "replications": {"count": count}}
    return talkspurt.run(head | tables, study=True)


def plain(words):
    return words.replace("\u00a0", " ").replace("\u202f", " ")


def transports(flow):
    names = {"name": "over", "labels": ["UDP", "TCP", "SCTP"]}
    return {**names, "path": f"flows.{flow}.transport", "values": KINDS}


@pytest.fixture(scope="module")
def video():
    return study({"voice": VOICE, "video": VIDEO, "upload": BULK}, [transports("video")])


def by_arithmetic(study, flow, value, digits):
    """The best label, its mean, and each other's mean difference with half of Student's interval."""
    rows = study.flows.filter(name=flow).with_columns(value.alias("x")).sort("replicate")
    numbers = {label: its["x"].to_list() for (label,), its in rows.group_by("axis.over")}
    best = max(numbers, key=lambda label: statistics.mean(numbers[label]))
    found = {}
    for label, its in numbers.items():
        if label != best:
            pairs = [a - b for a, b in zip(numbers[best], its, strict=True)]
            half = t.ppf(0.975, len(pairs) - 1) * statistics.stdev(pairs) / len(pairs) ** 0.5
            found[label] = statistics.mean(pairs), half
    return best, f"{statistics.mean(numbers[best]):.{digits}f}", found


def test_a_study_of_video_begins_with_the_video(video):
    """Before, the report began with the voice, which the axis does not change."""
    frames = pl.col("video_frames_complete") - pl.col("video_frames_late")
    best, mean, others = by_arithmetic(
        video, "video", 100 * frames / pl.col("video_frames"), 1
    )  # fmt: skip
    said = plain(answer.of_study(video)["sentences"][0])
    assert said.startswith(f"video: {best} is best with {mean} % of its frames in time; "), said
    assert said.endswith("(95 % intervals, 3 seeds)."), said
    sure = 0
    for label, (size, half) in others.items():
        if half < size:
            assert re.search(rf"{label} (has )?{size:.1f} (percentage points less )?", said), said
            sure += 1
        else:
            assert re.search(rf"{label} \(\d[^;]* not differ significantly", said), said
    assert sure, "no difference in this study: the test tests nothing"


def test_the_terminal_says_it_first(video, capsys):
    tables.print_study(video)
    out = " ".join(capsys.readouterr().out.split())
    first = plain(leading.sentences(video)[0]).split(";")[0]
    assert 0 < out.replace("\u00a0", " ").index(first) < out.index("Calls")


def test_bulk_data_are_judged_by_goodput_and_need_no_call():
    axis = [{**transports("data"), "values": KINDS[1:], "labels": ["TCP", "SCTP"]}]
    made = study({"data": {**BULK, "start": "0s"}}, axis)
    best, mean, others = by_arithmetic(made, "data", pl.col("goodput_bps") / 1e3, 1)
    ((label, (size, half)),) = others.items()
    found = answer.of_study(made)
    if half < size:
        (said,) = map(plain, leading.sentences(made))
        assert said.startswith(f"data: {best} is best with {mean} kbit/s of goodput; {label} has")
        assert found["rows"] == [] and plain(found["sentences"][0]) == said
    else:
        assert leading.sentences(made) == [] and found is None


def test_without_a_difference_nothing_is_said_first():
    fast = {"line": {**LINE, "rate": "10Mbit/s"}}
    made = study({"voice": VOICE}, [transports("voice")], count=2, links=fast)
    delays = {"name": "delay", "path": "links.line.delay", "values": ["10ms", "90ms"]}
    first = study({"voice": VOICE}, [delays], count=2)
    # No sentence names the best value of an axis of the network whose values are numbers.
    assert leading.sentences(first) == []
    for words in leading.sentences(made):
        assert "UDP is best" in plain(words)


def test_settings_of_other_axes_are_told_apart_or_counted():
    rates = {"name": "rate", "path": "links.line.rate", "values": ["600kbit/s", "2Mbit/s"]}
    flows = {"voice": VOICE, "upload": BULK}
    said = leading.sentences(study(flows, [transports("voice"), rates], count=1))
    assert [plain(words).split(":")[0] for words in said] in (
        ["voice, rate 600kbit/s", "voice, rate 2Mbit/s"],
        ["voice, rate 2Mbit/s", "voice, rate 600kbit/s"],
    )
    more = {**rates, "values": ["300kbit/s", "600kbit/s", "1Mbit/s", "2Mbit/s"]}
    (said,) = leading.sentences(study(flows, [transports("voice"), more], count=1))
    found = re.findall(r"is best in (\d)", plain(said))
    assert "voice, in 4 settings of the other axes: " in plain(said)
    assert sum(map(int, found)) == 4


def test_comparisons_that_differ_come_before_those_that_do_not(video):
    from talkspurt import comparing

    for answers in comparing.of_study(video).values():
        said = answers.sentences()[: len(answers.comparisons)]
        none = [bool(re.search(r": no (significant )?difference", words)) for words in said]
        assert none == sorted(none)


UNSCORED = {"kind": "speech", "codec": "g729"}
"""G.113 has no Bpl of G.729 with the concealment of the default."""


def unscored(axes, count):
    """Two calls without a MOS, on equal links of their own."""
    ends = {name: {"from": f"a-{name}", "to": f"b-{name}"} for name in ("x", "y")}
    links = {name: LINE | own | {"loss": 0.05} for name, own in ends.items()}
    flows = {
        name: {**own, "source": UNSCORED, "transport": kind}
        for (name, own), kind in zip(ends.items(), KINDS, strict=False)
    }
    found = study(flows, axes, count=count, links=links)
    assert found.flows["mos"].null_count() == found.flows.height
    return found


def test_calls_of_one_run_without_a_score_are_compared_by_what_was_heard(capsys):
    both = unscored([], 4)
    heard = {
        name: (100 * (1 - both.flows.filter(name=name).sort("replicate")["loss_ratio"])).to_list()
        for name in ("x", "y")
    }
    best, other = sorted(heard, key=lambda name: -statistics.mean(heard[name]))
    pairs = [a - b for a, b in zip(heard[best], heard[other], strict=True)]
    half = t.ppf(0.975, 3) * statistics.stdev(pairs) / 2
    said = [plain(words) for words in leading.sentences(both)]
    assert said == [
        f"{best} is best with {statistics.mean(heard[best]):.1f} % of its speech heard; {other} has "
        f"{statistics.mean(pairs):.1f} ± {half:.1f} percentage points less (95 % intervals, 4 seeds)."
    ]
    assert said[0] in [plain(words) for words in answer.sentences(both)]

    one = both.runs[0]
    less = heard[best][0] - heard[other][0]
    words = (
        f"{best} is best with {heard[best][0]:.1f} % of its speech heard; {other} has {less:.1f} "
        "percentage points less."
    )
    assert [plain(words) for words in leading.of_result(one)] == [words]
    tables.print_result(one)
    assert words in " ".join(plain(capsys.readouterr().out).split())
    assert words in [plain(words) for words in answer.sentences(one)]


def test_a_number_of_flows_is_a_load_and_other_numbers_have_the_name_of_their_axis():
    number = {"name": "n", "path": "flows.upload.count", "values": [1, 4]}
    assert leading.sentences(study({"upload": BULK}, [number])) == []
    numbered = transports("video") | {"labels": ["1", "2", "3"]}
    (said, *_) = leading.sentences(study({"video": VIDEO, "upload": BULK}, [numbered]))
    assert re.match(r"video: over [123] is best with", plain(said)), said


def test_without_replications_a_difference_that_cannot_be_seen_is_none():
    """Before, one of two values with MOS 1.00 was the best, by less than 0.01."""
    close = {"a": {0: 1.0}, "b": {0: 1.004}, "c": {0: 1.2}}
    ranked = leading._Ranking.of(close, leading.MOS, 0.95)
    assert ranked.best == "c" and [label for label, *_ in ranked.worse] == ["b", "a"]
    del close["c"]
    assert leading._Ranking.of(close, leading.MOS, 0.95).worse == []
