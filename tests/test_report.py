"""The report as text: whole, self-contained, and safe whatever a scenario is called."""

import base64
import json
import re
import statistics
import struct
import subprocess
import sys
import zlib
from html import unescape
from itertools import pairwise

import jinja2
import polars as pl
import pytest

import talkspurt
from conftest import SCENARIO, SILENT, STUDY, made_study
from talkspurt import intervals
from talkspurt._text.format import verdict
from talkspurt.figures.charts import of_result as charts_of
from talkspurt.figures.charts import styles_of
from talkspurt.figures.style import CAUSE_COLOURS
from talkspurt.report import answer, calls, page, recordings, single
from talkspurt.report import study as study_report

CBR = {"kind": "cbr", "rate": "16kbit/s", "packet": "200B"}
SPEECH_OF_NOBODY = {"kind": "speech", "codec": "pcma"}

# A plain link is followed only when clicked; everything else would be fetched at once.
FETCHED = re.compile(
    r"""\bsrc\s*=\s*["']?(?:https?:)?//|<link[^>]+//|url\(\s*["']?(?:https?:)?//|@import"""
)


def data(html, name):
    found = re.search(
        rf'<script type="application/json" id="{name}">(.*?)</script>', html, re.DOTALL
    )
    return json.loads(found.group(1))


def test_the_page_asks_the_network_for_nothing(result, study):
    for html in (single.html(result), study_report.html(study)):
        assert not FETCHED.search(html)
        assert "default-src 'none'" in html


def unpacked(packed):
    """The recordings of a page: rate and samples."""

    def inflated(name):
        return zlib.decompress(base64.b64decode(packed[name]))

    pool, size = inflated("pool"), 2 * packed["block"]
    steps = iter(struct.unpack(f"<{len(inflated('steps')) // 4}i", inflated("steps")))
    found, number = [], 0
    for one in packed["recordings"]:
        parts = []
        for _ in range(-(-one["samples"] // packed["block"])):
            number += next(steps)
            parts.append(pool[number * size : (number + 1) * size])
        found.append((one["rate"], b"".join(parts)[: 2 * one["samples"]]))
    assert next(steps, None) is None
    return found


def signals(html):
    return data(html, "player")["signals"]


def test_the_page_holds_every_part(result):
    html = single.html(result)
    for part in ("answer", "calls", "numbers", "network", "series", "figures", "metrics", "origin"):
        assert f'<section id="{part}">' in html
    assert "<em>slow</em>" in html
    assert result.digest[:16] in html


def test_the_first_section_is_the_answer_and_the_contents_name_all(result, study):
    for html in (single.html(result), study_report.html(study)):
        body = html[html.index("<body>") :]
        sections = re.findall('<section id="([^"]+)"', body)
        assert sections[0] == "answer"
        nav = body[body.index('<nav class="contents"') : body.index("</nav>")]
        assert re.findall('href="#([^"]+)"', nav) == sections
        table = body[body.index("<table") : body.index("</table>")]
        assert re.search('<th scope="col"[^>]*>.*?</th>', table)[0].count("MOS") == 1


def test_a_score_outside_the_range_of_the_model_is_grey_with_the_reason(folder):
    far = talkspurt.run(folder / "small.toml", set={"links.sky.delay": "600ms"})
    (row,) = far.flows.filter(name="call").to_dicts()
    assert row["mouth_to_ear_p50_s"] > 0.5
    html = unescape(single.html(far))
    line = next(part for part in html.split("<tr>") if 'class="over">udp<' in part)
    assert f'<b class="mos outside"><{row["mos_bound"]:.2f}</b>' in line
    assert re.search(r"outside the E-model’s range: \d+ ms of delay is beyond G.107's 500", line)
    near = talkspurt.run(folder / "small.toml", set={"links.sky.rate": "10Mbit/s"})
    line = next(p for p in single.html(near).split("<tr>") if 'class="over">udp<' in p)
    assert "outside" not in line
    assert "satisfied" in line


def test_limits_of_several_runs_are_counted():
    good = {"name": "call", "quality_limits": None}
    bad = {
        "name": "call",
        "quality_limits": "burst ratio 9.0 is beyond G.107's 8; 21.0 % of loss is beyond G.107's 20",
    }
    first = ["burst ratio 9.0 is beyond G.107's 8", "21.0 % of loss is beyond G.107's 20"]
    assert answer.limits([bad]) == first
    assert answer.limits([good, {"name": "call"}]) == []
    assert answer.limits([good, bad, good]) == [f"1 of 3 runs, one with {', '.join(first)}"]
    # The calls of a group, in several runs.
    calls = [{**bad, "name": f"call-{number}"} for number in (1, 2) for _ in range(2)]
    assert answer.limits(calls) == [f"4 of 4 calls, one with {', '.join(first)}"]


def test_every_recording_is_in_the_page_once_and_whole(result):
    found = unpacked(data(single.html(result), "player"))
    for call in result.calls:
        audio = result.audio(call)
        assert {(audio.rate, audio.sent_pcm), (audio.rate, audio.received_pcm)} <= set(found)
    assert len(found) == len(set(found))


def test_a_call_without_a_recording_is_shown_and_says_why_it_is_silent(silent):
    html = single.html(silent)
    reference, quiet, other = signals(html)
    row = silent.flows.filter(name="call").row(0, named=True)
    assert quiet["score"]["text"] == f"{row['mos']:.2f}"
    assert "has no recording" in quiet["silence"] and not other["silence"]
    assert [one["recording"] is None for one in (reference, quiet, other)] == [False, True, False]
    assert sum(frames for _, frames in quiet["fates"]) == silent.frames("call").height


def test_a_page_of_silent_calls_promises_no_sound(folder, monkeypatch):
    alone = talkspurt.run(folder / "silent.toml", set={"flows.tcp-call.source": SPEECH_OF_NOBODY})
    html = single.html(alone)
    assert "<h2>Audio</h2>" not in html
    assert [one["recording"] for one in signals(html)] == [None, None]
    monkeypatch.setattr(calls, "MAX_CALLS", 1)
    player = calls.of_result(alone)
    assert (len(player.calls), player.links) == (1, [])
    said = f"The player has 1 of {1 + player.left_out} calls, as a page holds at most 1 and "
    assert player.left_out > 0 and player.limited.startswith(said)
    assert player.limited.endswith(f" Not in it: {player.left_out} without sound.")


def test_a_study_with_silent_calls_has_a_report(folder):
    axes = STUDY.removeprefix(SCENARIO)
    (folder / "silent-study.toml").write_text(SILENT + axes, encoding="utf-8")
    found = talkspurt.run(folder / "silent-study.toml", study=True)
    html = study_report.html(found)
    extremes = calls.extremes(found, found.answer.judged_by)
    # Of each setting, the first run has two calls; those that are extremes come first.
    others = 4 - sum(found.runs[one.run].replicate == 0 for one in extremes)
    assert len(signals(html)) == 1 + len(extremes) + others
    silent = [one for one in signals(html) if one["name"].endswith("· call")]
    assert len(silent) >= 2 and all("has no recording" in one["silence"] for one in silent)
    assert sum(bool(one.get("silence")) for one in signals(html)) == len(silent)


def test_a_study_plays_every_setting_and_says_which_run(study):
    html = study_report.html(study)
    found = unpacked(data(html, "player"))
    means = study.labelled(study.summary(["mos"]))
    for run in study.runs:
        for name in run.calls:
            if run.replicate == 0:
                audio = run.audio(name)
                assert (audio.rate, audio.received_pcm) in found
                of_all = {"axis.delay": run.settings["delay"], "flow": name}
                mean = intervals.text(means.filter(**of_all).row(0, named=True))
                words = f"run 1 of 3, seed {run.seed}; mean MOS of all {mean}"
                [card] = [
                    one
                    for one in signals(html)
                    if one["name"] == f"{run.settings['delay']} · {name}" and words in one["notes"]
                ]
                assert card["score"]["text"] == f"{run.flows.filter(name=name)['mos'][0]:.2f}"


def test_a_call_of_a_study_has_the_score_that_judges_it(folder):
    """Of Opus the estimate, in its card and in the mean of all runs."""
    source = {"kind": "speech", "codec": "opus", "file": "speech.wav"}
    sets = {"flows.call.source": source, "flows.tcp-call.source": source}
    found = talkspurt.run(folder / "study.toml", set=sets, study=True)
    assert found.answer.judged_by != ["mos"] and found.flows["mos"].null_count() > 0
    means = found.labelled(found.summary(["estimated_mos"]))
    html = study_report.html(found, drawn=())
    # Also on a phone, where a table has no heads.
    assert html.count('<td class="n" data-label="estimated MOS">') == 4
    cards = [one for one in signals(html) if "score" in one]
    assert len(cards) >= 4
    for card in cards:
        assert card["score"]["label"] == "estimated MOS"
        delay, name = card["title"], card["subtitle"]
        mean = means.filter(**{"axis.delay": delay, "flow": name}).row(0, named=True)
        assert any(
            f"mean estimated MOS of all {intervals.text(mean)}" in it for it in card["notes"]
        )


def test_what_is_said_of_sound_and_of_pictures_is_not_folded():
    lines = ["a.", "b.", "c.", "d."]
    shown = {"unfolded": 4, "rows": [], "sentences": [*lines, "note."]}
    parts = page.environment().get_template("parts.html.j2").make_module()
    html = str(parts.answer(shown))
    assert re.findall('<p class="answer">(.*?)</p>', html) == lines
    assert "1 more" in html and "note." in html.partition("<details>")[2]


def test_the_best_and_the_worst_call_of_a_study_come_first(study):
    calls_of_all = study._stack("flows").filter(source="speech")
    measures = study.answer.judged_by
    found = calls.extremes(study, measures)
    assert measures == ["mouth_to_ear_mean_s", "concealed_ratio"], "a score is out of range"
    least, most = calls_of_all["concealed_ratio"].min(), calls_of_all["concealed_ratio"].max()
    assert [one.row["concealed_ratio"] for one in found] == [least, most]
    # By one measure alone.
    found = calls.extremes(study, ["mos"])
    assert [one.row["mos"] for one in found] == [
        calls_of_all["mos"].max(),
        calls_of_all["mos"].min(),
    ]
    player = calls.of_runs(study.runs, found, lambda *_: "")
    assert [call.rank.split(" (")[0] for call in player.calls[:3]] == [
        "the best call of the study by MOS",
        "the worst call of the study by MOS",
        "",
    ]
    for one, call in zip(found, player.calls, strict=False):
        audio = study.runs[one.run].audio(one.row["name"])
        pcm = unpacked(player.recordings.data())[call.received][1]
        assert pcm == audio.received_pcm
    html = study_report.html(study)
    ranks = [one.get("rank") or "" for one in signals(html)]
    assert any("the call of the study with the least unheard" in rank for rank in ranks)
    assert any("the call of the study with the most unheard" in rank for rank in ranks)


def test_the_report_says_where_the_bytes_go(result):
    (table,) = re.findall(
        r"<table>\n<caption>Bytes by layer.*?</table>", single.html(result), re.DOTALL
    )
    row = next(row for row in table.split("<tr>") if "</svg>call</th>" in row)
    # 160, 12, 8 and 20 bytes of 200.
    assert re.findall(r'class="n">([\d.]+)<', row) == ["80.0", "6.0", "4.0", "10.0"]


def test_a_mean_of_some_replications_says_so():
    study = made_study({"udp": [4.0, 3.0, None], "tcp": [3.5, 2.5, 1.0]}, 3)
    cells = {
        line["settings"]: line["cells"]["mos"]["spread"].replace("\u00a0", " ")
        for line in study_report._rows(study.summary(["mos"]).to_dicts(), ["axis.over"])
    }
    assert cells["udp",].endswith("(2 of 3)")
    assert "of" not in cells["tcp",]


CROWD = SILENT.replace("[flows.call]\n", "[flows.call]\ncount = 6\n")
"""The same with six silent calls."""


def test_what_count_wrote_many_times_has_one_card(folder):
    (folder / "crowd.toml").write_text(CROWD, encoding="utf-8")
    crowd = talkspurt.run(folder / "crowd.toml")
    html = single.html(crowd)
    _, card, other = signals(html)
    assert [one["name"] for one in (card, other)] == ["call × 6", "tcp-call"]
    of_group = crowd.flows.filter(group="call")
    assert card["score"]["text"] == f"{of_group['mos'].mean():.2f}"
    worst = of_group.sort("mos")["name"][0]
    assert f"the worst of them, {worst}" in card["notes"][0]
    assert sum(frames for _, frames in card["fates"]) == crowd.frames(worst).height


def test_what_may_be_wider_than_the_page_is_a_region_with_a_name(result, study):
    for html in (single.html(result), study_report.html(study)):
        body = html[html.index("<main>") :]
        regions = re.findall('<div class="wide(?: tall)?"(.*?)>', body)
        assert all(re.search('role="region" aria-label="[^"]+" tabindex="0"', r) for r in regions)
        assert (
            body.count("<table") == len(re.findall(r'class="wide(?: tall)?"[^>]*><table', body)) > 0
        )
        head = r'class="(?:still|chart opinions)[^>]*>(?:<figcaption>[^<]*</figcaption>)?'
        stills = re.findall(f"{head}(.*?)aria-label", body)
        assert set(stills) == {'<div class="wide" role="region" '}


def test_a_table_that_is_cut_says_so(study, monkeypatch):
    assert "The first" not in study_report.html(study)
    monkeypatch.setattr(study_report, "MAX_ROWS", 2)
    html = study_report.html(study)
    assert "The first 2 of 6 rows" in html
    assert "The first 2 of 3 rows" in html  # of the differences
    every = html[html.index("<caption>All flows and metrics") :]
    assert every[: every.index("</table>")].count("<tr>") == 1 + 2


def test_charts_hold_the_series(result):
    charts = {chart["name"]: chart for chart in data(single.html(result), "charts")}
    assert {"delay", "goodput", "queue", "cwnd"} <= set(charts)
    chart = charts["delay"]
    line = next(line for line in lines_of(chart) if line["label"] == "call")
    expected = dict(result.series("call").select("time_s", "delay_mean_s").iter_rows())
    for at, value in whole(line).items():
        want = next(v for t, v in expected.items() if abs(t - at) < 1e-4)
        assert (value is None) == (want is None)
        assert value is None or abs(value - want * 1e3) <= 1e-4 * want * 1e3


def test_lines_of_charts_are_told_apart_and_background_is_below(result):
    charts = {chart["name"]: chart for chart in data(single.html(result), "charts")}
    lines = lines_of(charts["goodput"])
    assert lines.pop(0)["look"] == "area", "the capacity behind them"
    assert [(line["label"], line["background"]) for line in lines] == [
        ("upload", True),
        ("call", False),
        ("tcp-call", False),
    ]
    looks = [(line["colour"], tuple(line["dashes"]), line["marker"]) for line in lines]
    assert len(set(looks)) == 3
    assert lines[1]["width"] > lines[2]["width"]


def test_a_table_has_no_empty_column(folder):
    sets = dict.fromkeys(("flows.call.source", "flows.tcp-call.source"), CBR)
    html = study_report.html(talkspurt.run(folder / "study.toml", set=sets, study=True))
    table = html[html.index("<caption>All flows and metrics") :]
    heads = re.findall('href="#m-([^"]+)"', table[: table.index("</thead>")])
    assert "goodput_bps" in heads and "mos" not in heads


def test_charts_show_the_inside_of_controllers_and_explain_it(controlled):
    html = single.html(controlled)
    charts = {chart["name"]: chart for chart in data(html, "charts")}
    lines = {
        name: [line["label"] for line in lines_of(charts[name])]
        for name in (
            "rates-three",
            "rtt-three",
            "p-three",
            "window-two",
            "ack-ratio-two",
            "tokens-tb",
        )
    }
    assert lines["rates-three"] == ["X_recv", "X", "X_calc"]
    assert lines["window-two"] == ["pipe", "ssthresh", "cwnd"]
    assert "rates-three.reverse" in charts
    assert "encoding-tb" in charts
    for chart in charts.values():
        for part in chart["explained"]:
            assert f'id="m-{part["name"]}"' in html
            assert part["meaning"].endswith(".")


def explained(html):
    return re.findall(r'<details id="m-([^"]+)"', html)


def test_what_the_page_shows_is_explained_and_nothing_else(folder, result, study, controlled):
    film = {"kind": "video", "rate": "100kbit/s", "frame": "100ms"}
    seen = talkspurt.run(folder / "small.toml", set={"flows.upload.source": film})
    alone = {"title": "t", "duration": "2s", "flows.tcp-call.source": {"kind": "bulk"}}
    mute = talkspurt.run(folder / "small.toml", set={"flows.call.source": CBR, **alone})
    pages = {
        name: single.html(one)
        for name, one in (("calls", result), ("film", seen), ("mute", mute), ("in", controlled))
    }
    pages["study"] = study_report.html(study)
    for name, html in pages.items():
        told = explained(html)
        assert len(told) == len(set(told))
        assert set(re.findall(r'href="#m-([^"]+)"', html)) <= set(told), name
        for word in ("collisions", "retries", "drops_retries"):
            assert f"link-{word}" not in told
        assert ("video_frames" in told) == (name == "film")
        assert ("mos" in told) == (name != "mute")
        assert ("Table B.1" in html) == (name != "mute")
    assert "rate" in explained(pages["in"]) and "rate" not in explained(pages["calls"])
    assert "cwnd" in explained(pages["calls"]) and "cwnd" not in explained(pages["study"])
    assert "mos_lost_to_loss" in explained(pages["calls"])
    assert "mos_lost_to_loss" not in explained(pages["study"])
    assert "late_packets" not in explained(pages["study"])


def test_smoothed_goodput_carries_as_much_as_the_series(result):
    (chart,) = [one for one in charts_of(result)[0] if one["name"] == "goodput"]
    assert "100 ms" in chart["title"]  # 4 s in bins of 100 ms are few enough to show each
    (upload,) = [line["values"] for line in lines_of(chart) if line["label"] == "upload"]
    fine = result.series("upload")["goodput_bps"].mean() / 1e3
    assert statistics.mean(upload) == pytest.approx(fine, rel=1e-4)


def test_titles_and_descriptions_cannot_break_the_page(folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = SCENARIO.replace('title = "Small"', 'title = "</script><script>alert(1)</script>"')
    text = text.replace("*slow*", "<img src=x onerror=alert(1)> ![x](http://example.org/x.png)")
    html = single.html(talkspurt.run(text))
    assert "<script>alert" not in html
    assert "<img" not in html
    assert not FETCHED.search(html)


def test_script_text_cannot_end_its_element():
    assert "</script" not in page.script_safe("a </script> b")


def test_what_exceeds_the_space_of_a_page_is_linked(result, monkeypatch):
    size = calls.of_result(result).recordings.size
    monkeypatch.setattr(recordings, "MAX_BYTES", size - 1)
    player = calls.of_result(result)
    assert len(player.calls) == 1
    assert [link.title for link in player.links] == ["tcp-call"]
    assert "Not in it: 1 with sound in files of the results folder." in player.limited
    assert player.links[0].received_file == "audio/tcp-call.received.wav"
    assert player.recordings.size < size
    kept = player.calls[0]
    found = unpacked(player.recordings.data())
    assert found[kept.received][1] == result.audio("call").received_pcm
    monkeypatch.setattr(calls, "MAX_CALLS", 0)
    assert len(calls.of_result(result).links) == 2


def lines_of(chart):
    """The lines of all panels of a chart."""
    return [line for panel in chart["panels"] for line in panel["lines"]]


def points_of(line):
    """The points of a line of a chart."""
    return list(zip(line["x"], line["values"], strict=True))


def whole(line):
    """The values of a line by their places, which differ."""
    points = points_of(line)
    assert len(dict(points)) == len(points)
    return dict(points)


def test_charts_and_bars_look_like_the_figures(controlled):
    """Both have the styles of flows, verdicts and the colours of losses."""
    charts, bars = charts_of(controlled)
    by_name = {chart["name"]: chart for chart in charts}
    styles = styles_of(controlled)
    for line in lines_of(by_name["goodput"]):
        look = styles.get(line["label"])
        if line["look"] != "area":
            assert (line["colour"], line["marker"]) == (look.colour, look.marker)
            assert tuple(line["dashes"]) == look.dashes and line["background"] == look.in_background
    assert sorted({line["label"] for line in lines_of(by_name["goodput"])} - {"capacity"}) == (
        sorted(controlled.flows["name"])
    )
    scored = controlled.flows.drop_nulls("mos").select("name", "mos", "r_factor").rows()
    assert [bar["name"] for bar in bars] == [name for name, _, _ in scored]
    for bar, (name, mos, r_factor) in zip(bars, scored, strict=True):
        assert bar["colour"] == styles[name].colour
        assert bar["words"] == f"{mos:.2f} {verdict(r_factor).short}"
        assert {cause: colour for cause, colour, _, _ in bar["lost"]} == CAUSE_COLOURS


def test_the_parts_of_mouth_to_ear_delay_add_up_to_it(result):
    charts = {chart["name"]: chart for chart in data(single.html(result), "charts")}
    assert charts["mouth-to-ear"]["stacked"]
    for panel in charts["mouth-to-ear"]["panels"]:
        frames = result.frames(panel["title"]).filter(pl.col("fate") == "played")
        delay = (pl.col("playout_s") - pl.col("captured_s")) * 1e3
        times = panel["lines"][0]["x"]
        width = min(b - a for a, b in pairwise(times))
        assert len(times) > 5 and len(panel["lines"]) == 4
        parts = [line["values"] for line in panel["lines"]]
        for at, *values in zip(times, *parts, strict=True):
            bin_ = (frames["captured_s"] / width).floor() == round(at / width)
            mean = frames.filter(bin_).select(delay.mean()).item()
            assert sum(values) == pytest.approx(mean, rel=1e-4)
            assert min(values) >= 0
        # 20 ms of PCMU have no look-ahead.
        assert set(panel["lines"][-1]["values"]) == {20.0}


def test_goodput_is_before_the_capacity_of_its_bottleneck(folder):
    sets = {"links.sky.steps": [{"at": "2s", "rate": "128kbit/s"}]}
    sets |= {"links.sky.events": [{"at": "3s", "state": "down"}]}
    seen = talkspurt.run(folder / "small.toml", set=sets)
    charts = {chart["name"]: chart for chart in data(single.html(seen), "charts")}
    (panel,) = charts["goodput"]["panels"]
    area = panel["lines"][0]
    rate = seen.links.filter(name="sky")["rate_bps"][0] / 1e3
    values = whole(area)
    assert values[1.0] == values[2.0] == rate and values[2.5] == values[3.0] == 128.0
    assert values[3.5] == values[4.0] == 0.0


def test_more_than_six_lines_are_distributed_over_panels(folder):
    text = CROWD.replace("count = 6", "count = 9").replace("256kbit/s", "4Mbit/s")
    (folder / "many.toml").write_text(text, encoding="utf-8")
    result = talkspurt.run(folder / "many.toml")
    assert result.flows.height == 11
    charts = {chart["name"]: chart for chart in charts_of(result)[0]}
    for name in ("delay", "goodput"):
        panels = charts[name]["panels"]
        assert len(panels) > 1
        drawn = [[ln for ln in panel["lines"] if ln["look"] != "area"] for panel in panels]
        assert all(0 < len(lines) <= 6 for lines in drawn)
        measured = result.series().drop_nulls(f"{name}_{'mean_s' if name == 'delay' else 'bps'}")
        names = {line["label"] for lines in drawn for line in lines}
        assert names == set(measured["flow"]), "each flow with a value"
    assert [panel["title"] for panel in charts["delay"]["panels"]] == [
        "voice: call-1 … call-5",
        "voice: call-6 … tcp-call",
        "bulk",
    ]


def test_the_delays_of_voice_frames_are_a_distribution(result):
    charts = {chart["name"]: chart for chart in data(single.html(result), "charts")}
    chart = charts["delay-ecdf"]
    assert chart["over"]["unit"] == "ms"
    assert {line["label"] for line in lines_of(chart)} == set(result.calls)
    for line in lines_of(chart):
        frames = result.frames(line["label"])
        took = ((frames["delivered_s"] - frames["captured_s"]) * 1e3).to_list()
        (first, none), *points = points_of(line)
        assert none == 0 and first <= points[0][0]
        for at, share in points:
            arrived = sum(1 for t in took if t is not None and t <= at * (1 + 1e-4))
            before = sum(1 for t in took if t is not None and t <= at * (1 - 1e-4))
            assert 100 * before / len(took) - 1e-2 <= share <= 100 * arrived / len(took) + 1e-2
        assert points[-1][1] == float(f"{100 * sum(t is not None for t in took) / len(took):.5g}")


def test_the_bars_of_a_call_are_its_score_and_its_losses(result):
    html = single.html(result)
    figure = html[html.index('class="chart opinions"') :]
    figure = figure[: figure.index("</svg>")]
    for row in result.flows.drop_nulls("mos").iter_rows(named=True):
        bar = figure[figure.index(f'<tspan class="name">{row["name"]}</tspan>') :]
        widths = [float(width) for width in re.findall('<rect[^>]* width="([^"]+)"', bar)]
        lost = [row[f"mos_lost_to_{cause}"] or 0.0 for cause in ("delay", "loss", "codec")]
        expected = [row["mos"] - 1, *(part for part in lost if part)]
        assert [width / 120 for width in widths[: len(expected)]] == pytest.approx(
            expected, abs=1e-3
        )
        assert f"</tspan> {row['mos']:.2f}" in bar


def test_frames_of_video_are_points_and_those_never_complete_are_at_zero(folder):
    film = {"kind": "video", "rate": "400kbit/s", "frame": "100ms"}
    udp = {"flows.call.transport": {"kind": "udp"}, "flows.call.source": film}
    seen = talkspurt.run(folder / "small.toml", set=udp)
    charts = {chart["name"]: chart for chart in data(single.html(seen), "charts")}
    chart = charts["frame-delay"]
    points, never = lines_of(chart)
    assert points["look"] == never["look"] == "points"
    frames = seen.video_frames("call")
    broken = frames.filter(frames["complete_s"].is_null())
    assert broken.height > 0
    assert list(whole(never).values()) == [0.0] * broken.height
    complete = frames.drop_nulls("complete_s")
    delays = ((complete["complete_s"] - complete["captured_s"]) * 1e3).to_list()
    assert list(whole(points).values()) == pytest.approx(delays, rel=1e-4)


def test_the_page_of_a_run_needs_no_plotting_library(result, tmp_path):
    code = (
        "import sys, talkspurt; r = talkspurt.load(sys.argv[1]); r.report(sys.argv[2]); "
        "assert not {'matplotlib', 'numpy'} & set(sys.modules)"
    )
    saved = result.save(tmp_path / "saved", report=False)
    command = [sys.executable, "-c", code, saved, tmp_path / "page.html"]
    done = subprocess.run(command, check=False)
    assert done.returncode == 0


def test_compiled_templates_are_used_again_and_a_damaged_one_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "COMPILED", tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def text():
        templates = jinja2.DictLoader({"a": "{{ 6 * 7 }} of {{ name }}"})
        found = jinja2.Environment(loader=templates, bytecode_cache=page.compiled())
        return found.get_template("a").render(name="b")

    assert text() == "42 of b"
    (file,) = tmp_path.iterdir()
    first = file.read_bytes()
    monkeypatch.setattr(jinja2.Environment, "compile", lambda *_: pytest.fail("compiled again"))
    assert text() == "42 of b"
    monkeypatch.undo()
    monkeypatch.setattr(page, "COMPILED", tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for damaged in (b"", first[:20], first[:-20], bytes(200)):
        file.write_bytes(damaged)
        assert text() == "42 of b"
        assert file.read_bytes() == first
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert page.compiled() is None
