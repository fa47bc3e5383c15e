"""MOS over time: against the engine's score of the whole call, and G.107's formulas by hand."""

import itertools
import math

import pytest

import talkspurt
from talkspurt import metrics
from talkspurt.figures import charts
from talkspurt.metrics import opinion
from texts import flow_text, link_text, scenario_text, speech

LOSSY = scenario_text(
    "Lossy",
    "20s",
    link_text("l", "a>b", "1Mbit/s", "5ms", 50, loss=0.03),
    flow_text("call", "a>b", reverse=speech("g729"), playout='{ concealment = "silence" }'),
)


@pytest.fixture(scope="module")
def lossy():
    return talkspurt.run(LOSSY)


def test_one_window_is_the_call(lossy, controlled):
    for run, flows in ((lossy, ("call",)), (controlled, ("two", "three", "three.reverse", "tb"))):
        for flow in flows:
            (row,) = opinion.over_time(run, flow, 1000.0).to_dicts()
            known = run.flows.filter(name=flow).row(0, named=True)
            for name in ("mos", "r_factor", "loss_ratio", "concealed_ratio", "burst_ratio"):
                assert row[name] == pytest.approx(known[name], abs=1e-9), (flow, name)
            assert row["mouth_to_ear_s"] == pytest.approx(known["mouth_to_ear_mean_s"], abs=1e-8)
            assert row["time_s"] == 0.0
    rungs = set(controlled.frames("tb")["encoding"])
    assert len(rungs) > 1, "a ladder was climbed down"


def test_a_codec_without_values_has_no_score(lossy):
    table = opinion.over_time(lossy, "call.reverse", 5.0)
    assert table.height == 4
    assert lossy.flows.filter(name="call.reverse")["mos"].to_list() == [None]
    assert table["mos"].to_list() == [None] * 4


def test_windows_by_hand(lossy):
    """R = 93.2 − Ie,eff under 100 ms, Ie,eff = 95 Ppl / (Ppl / BurstR + Bpl), Bpl = 4.3 (G.107 §7)."""
    table = opinion.over_time(lossy, "call", 2.0)
    assert table["time_s"].to_list() == [2.0 * i for i in range(10)]
    frames = lossy.frames("call").sort("index")
    for row in table.to_dicts():
        inside = frames.filter(
            (frames["captured_s"] >= row["time_s"] - 1e-9)
            & (frames["captured_s"] < row["time_s"] + 2.0 - 1e-9)
        )
        fates = inside["fate"].to_list()
        if row["time_s"] == 18.0:  # the last of which would be played after the end
            fates = fates[: row["frames"]]
        lost = [fate != "played" for fate in fates]
        assert row["frames"] == len(lost)
        share = sum(lost) / len(lost)
        assert row["loss_ratio"] == pytest.approx(share)
        assert row["mouth_to_ear_s"] < 0.1
        runs = [len(list(run)) for gone, run in itertools.groupby(lost) if gone]
        burst = max(1.0, sum(runs) / len(runs) * (1 - share)) if runs else 1.0
        r = 93.2062 - 95 * 100 * share / (100 * share / burst + 4.3)
        assert row["r_factor"] == pytest.approx(r, abs=1e-3)
        mos = 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6
        assert row["mos"] == pytest.approx(mos, abs=1e-4)
    assert table["mos"].n_unique() > 4


def test_silence_has_no_score():
    talks = LOSSY.replace('codec = "pcmu" }', 'codec = "pcmu" }\nstop = "9s"')
    result = talkspurt.run(talks)
    assert opinion.over_time(result, "call", 2.0)["time_s"].max() == 8.0


def test_no_line_is_drawn_over_windows_in_which_nobody_spoke():
    """Steps begin at the end of the one before, unless that was long ago."""
    pauses = 'codec = "pcmu", talkspurts = { on = "500ms", off = "4s" } }'
    run = talkspurt.run(LOSSY.replace('codec = "pcmu" }', pauses, 1))
    width = opinion.window_s(run)
    spoken = opinion.over_time(run, "call", width)["time_s"].to_list()
    assert any(b - a > 1.5 * width for a, b in itertools.pairwise(spoken))
    line = run.figure("mos_over_time", flow="call").axes[0].get_lines()[0]
    x, y = line.get_data()
    steps = [(a, b) for a, b, value in zip(x, x[1:], y[1:], strict=False) if not math.isnan(value)]
    assert [a for a, _ in steps] == pytest.approx(spoken)
    assert all(b - a <= width + 1e-3 for a, b in steps)
    chart = next(one for one in charts.of_result(run)[0] if one["name"] == "mos")
    line = chart["panels"][0]["lines"][0]
    places = zip(line["x"], line["x"][1:], line["values"][1:], strict=False)
    assert [(a, b) for a, b, value in places if value is not None] == steps


def test_figure_and_chart_show_the_same(lossy):
    assert opinion.window_s(lossy) == 1.5
    known = opinion.over_time(lossy, "call", 1.5)["mos"].to_list()
    (ax,) = lossy.figure("mos_over_time", flow="call").axes
    drawn = ax.get_lines()[0]
    assert drawn.get_ydata().tolist() == pytest.approx([known[0], *known], abs=1e-4)
    assert drawn.get_xdata().tolist() == pytest.approx([*(1.5 * i for i in range(14)), 20.0])
    assert drawn.get_drawstyle() == "steps-pre"
    chart = next(one for one in charts.of_result(lossy)[0] if one["name"] == "mos")
    line = chart["panels"][0]["lines"][0]
    assert line["x"][:3] == [0.0, 1.5, 3.0]
    assert line["values"] == pytest.approx([known[0], *known], abs=1e-4)


def test_what_is_no_speech_has_none(result):
    assert metrics.compute(result, "mos_over_time", "upload").is_empty()
