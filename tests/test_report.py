"""The report as text: whole, self-contained, and safe whatever a scenario is called."""

import base64
import json
import re
from html import unescape

import talkspurt
from conftest import SCENARIO, SILENT, STUDY, made_study
from talkspurt.figures import time
from talkspurt.report import calls, page, series, single
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


def test_the_page_holds_every_part(result):
    html = single.html(result)
    for part in ("calls", "numbers", "network", "series", "figures", "metrics", "origin"):
        assert f'<section id="{part}">' in html
    assert "<em>slow</em>" in html
    assert result.digest[:16] in html


def test_every_recording_is_in_the_page_once_and_whole(result):
    wavs = data(single.html(result), "wavs")
    recordings = {base64.b64decode(text) for text in wavs.values()}
    for call in result.calls:
        audio = result.audio(call)
        assert {audio.sent_wav(), audio.received_wav()} <= recordings
    assert len(recordings) == len(wavs)


def test_a_call_without_a_recording_has_its_card_and_says_why_it_is_silent(silent):
    html = single.html(silent)
    card, other = re.findall(r'<article class="call".*?</article>', html, re.DOTALL)
    row = silent.flows.filter(name="call").row(0, named=True)
    assert f"<b>{row['mos']:.2f}</b>" in card
    assert "has no recording" in card
    assert "<audio" not in card
    found = re.search(r'class="strip" data-call="(.*?)"', card)
    fates = json.loads(unescape(found.group(1)))["fates"]
    assert sum(frames for _, frames in fates) == silent.frames("call").height
    assert other.count("<audio") == 2


def test_a_page_of_silent_calls_promises_no_sound(folder):
    alone = talkspurt.run(folder / "silent.toml", set={"flows.tcp-call.source": SPEECH_OF_NOBODY})
    html = single.html(alone)
    assert "<h2>Audio</h2>" not in html
    assert html.count('class="strip"') == 2
    sounds = calls.Sounds(calls=calls.MOST_CALLS - 1)
    assert len(calls.calls_of(alone, sounds)) == 1
    assert sounds.links == []


def test_a_study_with_silent_calls_has_a_report(folder):
    axes = STUDY.removeprefix(SCENARIO)
    (folder / "silent-study.toml").write_text(SILENT + axes, encoding="utf-8")
    html = study_report.html(talkspurt.run(folder / "silent-study.toml"))
    assert (html.count('class="strip"'), html.count('class="player"')) == (2, 2)


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
    cards = re.findall(r'<article class="call".*?</article>', single.html(crowd), re.DOTALL)
    titles = [re.search("<h3>(.*?)</h3>", card)[1] for card in cards]
    assert titles == ["call × 6", "tcp-call"]
    of_group = crowd.flows.filter(group="call")
    assert f"<b>{of_group['mos'].mean():.2f}</b>" in cards[0]
    worst = of_group.sort("mos")["name"][0]
    assert f"the worst of them, {worst}" in unescape(cards[0])
    fates = json.loads(unescape(re.search(r'class="strip" data-call="(.*?)"', cards[0])[1]))[
        "fates"
    ]
    assert sum(frames for _, frames in fates) == crowd.frames(worst).height


def test_what_may_be_wider_than_the_page_is_a_region_with_a_name(result, study):
    for html in (single.html(result), study_report.html(study)):
        body = html[html.index("<main>") :]
        regions = re.findall('<div class="wide"(.*?)>', body)
        assert all(re.search('role="region" aria-label="[^"]+" tabindex="0"', r) for r in regions)
        assert body.count("<table") == len(re.findall(r'class="wide"[^>]*><table', body)) > 0
        assert body.count('class="still"') == body.count('class="still"><div class="wide"') > 0


def test_a_table_that_is_cut_says_so(study, monkeypatch):
    assert "The first" not in study_report.html(study)
    monkeypatch.setattr(study_report, "MOST_ROWS", 2)
    html = study_report.html(study)
    assert "The first 2 of 6 rows" in html
    assert "The first 2 of 3 rows" in html  # of the differences
    every = html[html.index("<caption>All settings") :]
    assert every[: every.index("</table>")].count("<tr>") == 1 + 2


def test_charts_hold_the_series(result):
    charts = {chart["name"]: chart for chart in data(single.html(result), "charts")}
    assert {"delay", "goodput", "queue", "cwnd"} <= set(charts)
    chart = charts["delay"]
    line = next(line for line in chart["lines"] if line["label"] == "call")
    expected = dict(result.series("call").select("time_s", "delay_mean_s").iter_rows())
    for at, value in zip(chart["x"], line["values"], strict=True):
        want = next(v for t, v in expected.items() if abs(t - at) < 1e-4)
        assert (value is None) == (want is None)
        assert value is None or abs(value - want * 1e3) <= 1e-4 * want * 1e3


def test_charts_show_the_inside_of_controllers_and_explain_it(controlled):
    html = single.html(controlled)
    charts = {chart["name"]: chart for chart in data(html, "charts")}
    lines = {
        name: [line["label"] for line in charts[name]["lines"]]
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
    return re.findall(r'<div id="m-([^"]+)"', html)


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
    assert "mos_lost_to_loss" in explained(pages["study"])
    assert "late_packets" not in explained(pages["study"])


def test_smoothed_goodput_carries_as_much_as_the_series(result):
    frame, width = time.smooth_goodput(result)
    assert width == 0.1  # 4 s in bins of 100 ms are few enough to show each
    fine = result.series("upload")["goodput_bps"].mean()
    assert abs(frame.filter(flow="upload")["goodput_bps"].mean() - fine) <= 1e-9 * fine


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


def test_a_page_holds_so_many_calls_and_ten_megabytes_at_most():
    sounds = calls.Sounds()
    kept = [sounds.add(b"same", bytes([i]) * 100) for i in range(28)]
    assert [keys is not None for keys in kept] == [True] * 24 + [False] * 4
    assert len(sounds.wavs) == 25  # what was said is there once
    sounds = calls.Sounds()
    kept = [sounds.add(bytes([i]) * 2_000_000, bytes([i, 200]) * 1_000_000) for i in range(3)]
    assert [keys is not None for keys in kept] == [True, False, False]
    assert sounds.size <= calls.MOST_BYTES


def test_long_series_are_thinned_but_keep_their_peaks():
    x = [float(i) for i in range(10_000)]
    values = [0.0] * 10_000
    values[1234] = 7.0
    line = series.line_of("queue", "#000", (), values, peak=True)
    chart = series.chart_of("queue", "Queue", "packets", x, [line])
    assert len(chart["x"]) == len(chart["lines"][0]["values"]) <= series.MOST_POINTS
    assert max(chart["lines"][0]["values"]) == 7.0
