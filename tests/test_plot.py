"""Figures of any measure: the numbers drawn are those of the tables, and bad input is one error."""

import math
import os
import shutil
import statistics
import sys
from dataclasses import replace
from itertools import pairwise

import matplotlib.image
import numpy as np
import polars as pl
import pytest
from scipy import stats

import talkspurt
from command import refused, succeed, told
from command import talkspurt as run
from conftest import made, made_study
from talkspurt import figures
from talkspurt._text.format import VERDICTS
from talkspurt.figures import chart, panel, plot, style, values
from talkspurt.metrics.catalogue import ALL, COMPUTED, over_time
from talkspurt.metrics.catalogue.kinds import BY_COLUMN, OVER_TIME
from talkspurt.results.axis import Axis
from talkspurt.results.result import Study
from texts import BULK, NEWRENO, UDP, axis_text, cbr, dccp, flow_text, link_text, scenario_text

GRID = scenario_text(
    "Grid",
    "4s",
    link_text("sky", "west>east", "300kbit/s", "20ms", 12, loss=0.02),
    flow_text("call", "west>east"),
    flow_text("upload", "west>east", NEWRENO, BULK),
    axis_text("flows.call.transport", f"[{UDP}, {dccp(3)}]", name="transport"),
    axis_text("links.sky.delay", '["20ms", "200ms"]', name="delay"),
    record="{ packets = true, sojourn = true }",
    replications="{ count = 3 }",
)


@pytest.fixture(scope="module")
def grid():
    return talkspurt.run(GRID, study=True)


@pytest.fixture(scope="module")
def saved(grid, result, tmp_path_factory):
    place = tmp_path_factory.mktemp("plot")
    grid.save(place / "study", report=False)
    result.save(place / "run", report=False)
    return place


UNITS = {
    "s": ({"ms": 1e3, "s": 1.0}),
    "bit/s": {"kbit/s": 1e-3},
    "packets/s": {"1/s": 1.0},
    "packets": {"packets": 1.0},
    "bytes": {"kB": 1e-3, "bytes": 1.0},
    "MOS": {"": 1.0},
    "1": {"": 1.0, "%": 100.0},
    "": {"": 1.0},
}
"""The units in which a number may be shown, and the factors that follow from the SI prefixes."""


@pytest.mark.parametrize("one", COMPUTED, ids=lambda one: one.name)
def test_computed_metrics_are_shown_in_a_unit_of_their_kind(one):
    shown = one.quantity
    assert UNITS[one.unit][shown.unit] == shown.scale
    assert shown.label
    if one.x:
        assert BY_COLUMN[one.x].label


def test_numbers_over_time_are_metrics_against_time():
    names = {one.full_name for one in ALL} | {one.name for one in ALL}
    assert set(OVER_TIME) <= names
    for name in OVER_TIME:
        found = over_time(talkspurt.metrics.metric(name))
        assert getattr(found, "x", "time_s") in ("time_s", "received_s"), name


@pytest.fixture(scope="module")
def few(grid):
    """Two replications of two settings, which is enough to draw everything."""
    runs = [run for run in grid.select(delay="20ms") if run.replicate < 2]
    return replace(grid, runs=runs, replications=2)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.full_name)
def test_every_metric_is_drawn_with_its_name_and_unit(few, one):
    try:
        figure = few.figure(one.full_name)
    except ValueError as error:
        assert "nothing in these runs has a value" in str(error)
        return
    labels = [ax.get_ylabel().replace("\n", " ") for ax in figure.axes]
    assert one.quantity.head in labels
    assert any(ax.get_xlabel() for ax in figure.axes)
    assert all(ax.has_data() for ax in figure.axes if ax.get_visible())


def test_most_metrics_have_values_in_the_grid(few):
    """So the test above does not pass because nothing is drawn."""
    there = 0
    for one in ALL:
        try:
            there += bool(values.parts(few, one, None, None))
        except ValueError:
            continue
    assert there > 0.6 * len(ALL)


def bars_of(figure):
    return [
        [patch.get_height() for patch in group] for ax in figure.axes for group in ax.containers
    ]


def test_bars_are_means_and_whiskers_are_students_interval(grid):
    figure = grid.figure("goodput_bps", flow="call", kind="bars", over="delay", by="transport")
    (ax,) = figure.axes
    flows = grid.flows.filter(name="call")
    drawn = bars_of(figure)
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) == 2]
    spans = {tuple(line.get_ydata()) for line in lines}
    for i, transport in enumerate(("udp", "dccp")):
        for j, delay in enumerate((0.02, 0.2)):
            its = flows.filter(**{"axis.transport": transport, "axis.delay": delay})
            kbps = (its["goodput_bps"] / 1e3).to_list()
            assert drawn[i][j] == pytest.approx(statistics.fmean(kbps))
            low, high = stats.t.interval(
                0.95, len(kbps) - 1, statistics.fmean(kbps), stats.sem(kbps)
            )
            if low > 0:
                assert any(span == pytest.approx((low, high)) for span in spans)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["udp", "dccp"]
    colours = [group[0].get_facecolor() for group in ax.containers]
    assert len({tuple(colour) for colour in colours}) == 2


def test_lines_over_time_are_means_of_the_bins(grid):
    figure = grid.figure("goodput_bps", time=True, flow="call", by="transport", bin_s=1.0)
    bins = grid.compute("goodput_over_time", "call", 1.0)
    means = bins.group_by("axis.delay", "axis.transport", "time_s").agg(
        (pl.col("goodput_bps").mean() / 1e3).alias("mean")
    )
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["delay 20ms", "delay 200ms"]
    for ax, delay in zip(figure.axes, (0.02, 0.2), strict=True):
        for line, transport in zip(ax.get_lines(), ("udp", "dccp"), strict=True):
            by_hand = means.filter(**{"axis.delay": delay, "axis.transport": transport}).sort(
                "time_s"
            )
            assert line.get_xdata().tolist() == by_hand["time_s"].to_list()
            assert line.get_ydata().tolist() == pytest.approx(by_hand["mean"].to_list())
        assert len(ax.collections) == 2, "a band for each line"


def test_colours_of_transports_over_flows_have_a_legend():
    """Without it nobody knows why bars have two colours; all kinds of TCP have one."""
    link = link_text("path", "a>b", "1Mbit/s", "5ms", 50)
    kinds = (UDP, NEWRENO, '{ kind = "tcp", controller = "cubic" }', UDP)
    flows = [
        flow_text(f"f{number}", "a>b", kind, cbr("50kbit/s", "200B"))
        for number, kind in enumerate(kinds)
    ]
    text = scenario_text("Four flows", "1s", link, *flows)
    figure = talkspurt.run(text).figure("goodput_bps")
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "transport"
    assert [text.get_text() for text in legend.get_texts()] == ["udp", "tcp-newreno, tcp-cubic"]
    colours = [patch.get_facecolor() for patch in legend.get_patches()]
    assert len(set(colours)) == 2
    # The labels of an axis of transports say themselves what they are.
    one = talkspurt.run(scenario_text("Four flows", "1s", link, flows[0]))
    assert not one.figure("goodput_bps").legends


def test_letters_without_a_glyph_are_one_note(tmp_path):
    """matplotlib warns of each letter with a line of our source."""
    text = GRID.replace('"20ms", "200ms"]', '"20ms", "200ms"]\nlabels = ["日本", "é"]')
    assert text != GRID
    talkspurt.run(text, study=True).save(tmp_path / "study", report=False)
    said = {}
    for suffix in ("png", "svg"):
        done = run("plot", tmp_path / "study", "goodput_bps", "-o", tmp_path / f"a.{suffix}")
        assert done.stderr == ""
        said[suffix] = done.stdout.splitlines()[1:]
    (note,) = said["png"]
    assert note.startswith("Note: the font of figures lacks 日本, and boxes")
    assert said["svg"] == [] and "日本" in (tmp_path / "a.svg").read_text()


def test_labels_of_numbers_that_nearly_touch_are_sloping():
    """Three panels beside a legend: 0.0001 and 0.001 Gbit/s read as one number."""
    axis = Axis("rate", "links.path.rate", ("100kbit/s", "1Mbit/s", "1Gbit/s"))
    (ax,) = style.panels("", 1, 1, width=7.0, height=3.0)[1]
    panel.frame(ax, axis, [1e5, 1e6, 1e9], 3, bottom=True)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.0001", "0.001", "1"]
    assert {text.get_rotation() for text in ax.get_xticklabels()} == {35}


def test_transports_keep_their_colours(grid):
    figure = grid.figure("delay_p50_s", flow="call")
    lines = figure.legends[0].get_lines()
    assert [line.get_color() for line in lines] == [
        style.transport_style("udp").colour,
        style.transport_style("dccp-ccid3").colour,
    ]


def test_a_cdf_counts_packets(grid):
    figure = grid.figure("delay_over_time", kind="cdf", flow="call", by="transport")
    delays = grid.compute("delay_over_time", "call")
    its = delays.filter(**{"axis.transport": "udp", "axis.delay": 0.02})
    (line,) = [one for one in figure.axes[0].get_lines() if one.get_label() == "udp"]
    shares = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
    for at in list(shares)[50:350:60]:
        by_hand = [
            (part["delay_s"].drop_nulls() * 1e3 <= at + 1e-9).mean()
            for _, part in its.group_by("replicate")
        ]
        assert shares[at] == pytest.approx(statistics.fmean(by_hand), abs=0.004)
    assert list(shares.values()) == sorted(shares.values())


def test_a_cdf_of_numbers_counts_flows():
    flows = tuple((f"call-{i}", "udp") for i in range(4))
    one = made({}, 0, 1.0, flows)
    table = one.flows.with_columns(pl.Series("mos", [4.0, 2.0, 3.0, None]))
    object.__setattr__(one, "_tables", {"flows": table})
    figure = one.figure("flows.mos", kind="cdf")
    (line,) = figure.axes[0].get_lines()
    assert line.get_xdata().tolist() == [2.0, 2.0, 3.0, 4.0]
    assert line.get_ydata().tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_a_box_has_quartiles():
    numbers = [1.0, 1.5, 2.5, 4.0, 4.2]
    figure = made_study({"a": numbers, "b": [2.0] * 5}, 5).figure("mos", kind="box")
    first, median, third = statistics.quantiles(numbers, method="inclusive")
    heights = [line.get_ydata() for line in figure.axes[0].get_lines()]
    assert heights[0].tolist() == [first, first, third, third, first]
    assert heights[1].tolist() == [median, median]
    assert [1.0, 4.2] in [one.tolist() for one in heights if len(one) == 2]


def test_a_map_has_a_cell_for_each_setting(grid):
    figure = grid.figure("goodput_bps", kind="map", flow="call", over="delay", by="transport")
    image = figure.axes[0].images[0].get_array()
    means = (
        grid.flows.filter(name="call")
        .group_by("axis.transport", "axis.delay")
        .agg(pl.col("goodput_bps").mean() / 1e3)
    )
    for row, transport in enumerate(("udp", "dccp")):
        for column, delay in enumerate((0.02, 0.2)):
            cell = means.filter(**{"axis.transport": transport, "axis.delay": delay})
            assert image[row, column] == pytest.approx(cell["goodput_bps"][0])


def test_a_gauge_is_averaged_by_how_long_it_held(grid):
    (one,) = (one for one in ALL if one.full_name == "gauges.srtt")
    part = next(p for p in values.parts(grid, one, "upload", None) if p.told["delay"] == "20ms")
    run = grid.select(transport=part.told["transport"], delay="20ms")[part.replicate]
    gauge = run.gauges("upload", "srtt").filter(side="from").sort("time_s")
    times = [*gauge["time_s"], run.duration_s]
    area = math.fsum(v * (b - a) for v, a, b in zip(gauge["value"], times, times[1:], strict=False))
    assert part.number == pytest.approx(area / (times[-1] - times[0]))


def test_a_mean_of_gauges_holds_their_values():
    told = {"flow": "a"}
    early, late = (
        values.Part(told, "a", "udp", n, n, np.array([2.0, 6.0]), np.array([0.0, change]), 8.0)
        for n, change in ((0, 2.0), (1, 6.0))
    )
    x, rows, replicates = values.mean_line([early, late])
    assert replicates == [0, 1]
    between = rows[:, (x > 2.0) & (x < 6.0)]
    assert (between == [[6.0], [2.0]]).all()
    assert values.mean_of(rows)[-1] == 6.0


def test_half_a_students_interval():
    rows = np.array([[1.0, 5.0], [2.0, np.nan], [4.0, np.nan]])
    half = values.half_width(rows, 0.9)
    low, high = stats.t.interval(0.9, 2, 7 / 3, stats.sem([1, 2, 4]))
    assert half[0] == pytest.approx((high - low) / 2)
    assert math.isnan(half[1])


def test_flows_of_a_count_are_one_value_with_their_spread():
    flows = (("call-0", "udp"), ("call-1", "udp"))
    runs = []
    for replicate in range(2):
        one = made({"over": "1"}, replicate, 3.0, flows, group=["call", "call"])
        table = one.flows.with_columns(pl.Series("mos", [2.0 + replicate, 4.0 + replicate]))
        object.__setattr__(one, "_tables", {"flows": table})
        runs.append(one)
    study = Study("made", "", "", (Axis("over", "", ("1",)),), 2, 0.95, "", runs)
    row = plot.Plot(study, talkspurt.metrics.metric("flows.mos"),
                    values.parts(study, talkspurt.metrics.metric("flows.mos"), None, None),
                    "over", None, "lines")  # fmt: skip
    found = row.row(row.parts)
    assert (found["mean"], found["member_low"], found["member_high"]) == (3.5, 2.5, 4.5)
    assert [part.told["flow"] for part in row.parts] == ["call"] * 4


# Narrow and wide: one value, forty, long names, and cells without a value.


def many(count, name="", replications=2, none=()):
    labels = [f"{name or 'v'}{i}" for i in range(count)]
    return made_study(
        {
            label: [None if label in none else 1 + (i + k) % 3 for k in range(replications)]
            for i, label in enumerate(labels)
        },
        replications,
    )


@pytest.mark.parametrize("kind", ["lines", "bars", "points", "box", "cdf"])
@pytest.mark.parametrize("count", [1, 40])
def test_labels_of_one_and_of_forty_values_do_not_overlap(kind, count):
    figure = many(count, "a value with a long name, number ").figure("mos", kind=kind)
    figures.png(figure)
    canvas = figure.canvas
    for ax in figure.axes:
        labels = [one for one in ax.get_xticklabels() if one.get_text()]
        places = sorted(one.get_window_extent(canvas.get_renderer()).x1 for one in labels)
        if len(labels) > 1 and labels[0].get_rotation():
            height = labels[0].get_fontsize() * figure.dpi / 72
            gaps = [b - a for a, b in pairwise(places)]
            assert min(gaps) > 0.9 * height
    width, height = figure.get_size_inches()
    assert width <= plot.MAX_WIDTH
    box = figure.get_tightbbox(canvas.get_renderer())
    assert box.x0 > -0.1
    assert box.x1 < width + 0.1
    assert box.y0 > -0.1
    assert box.y1 < height + 0.1


def dashes(figure):
    """How many values a figure says are missing."""
    return [text.get_text() for text in figure.axes[0].texts].count("–")


def test_a_missing_value_is_a_dash_or_a_gap():
    study = many(4, none=("v2",))
    figure = study.figure("mos", kind="bars")
    assert dashes(figure) == 0  # no part, no place
    axes = (Axis("a", "", ("1", "2")), Axis("b", "", ("x", "y")))
    runs = [
        made({"a": a, "b": b}, 0, None if (a, b) == ("2", "y") else 3.0) for a in "12" for b in "xy"
    ]
    study = Study("made", "", "", axes, 1, 0.95, "", runs)
    figure = study.figure("mos", kind="bars", over="a", by="b")
    assert dashes(figure) == 1
    line = study.figure("mos", kind="lines", over="a", by="b").axes[0].get_lines()
    assert any(np.isnan(one.get_ydata()).any() for one in line)
    cells = study.figure("mos", kind="map", over="a", by="b").axes[0]
    assert sorted(text.get_text() for text in cells.texts) == ["3.00", "3.00", "3.00", "–"]


def test_without_any_value_there_is_no_figure():
    with pytest.raises(ValueError, match=r"nothing in these runs has a value of flows\.mos"):
        many(3, none=("v0", "v1", "v2")).figure("flows.mos")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"over": "nix"}, "no axis 'nix'; there are: transport, delay, flow, source"),
        ({"by": "dela"}, "did you mean 'delay'"),
        ({"over": "delay", "by": "delay"}, "over and by are both 'delay'"),
        ({"over": "delay", "time": True}, "give one of them"),
        ({"kind": "pie"}, "expected lines, bars, points, box, cdf, map"),
        ({"kind": "cdf", "over": "delay"}, "over is for other kinds"),
        ({"flow": "nix"}, "no flow 'nix'; there are: call, upload"),
        ({"link": "sky"}, "of flows, not of links"),
    ],
)
def test_what_does_not_fit_is_one_error(grid, options, words):
    with pytest.raises((KeyError, ValueError)) as error:
        grid.figure("mos", **options)
    assert words in error.value.args[0]


def test_everything_that_does_not_fit_is_told_at_once(grid, saved, tmp_path):
    with pytest.raises(ValueError, match="no axis 'nix'") as error:
        grid.figure("mos", over="nix", by="delai", kind="pie", flow="nobody", link="sky")
    for words in (
        "no kind of figure 'pie'", "did you mean 'delay'?", "no flow 'nobody'",
        "of flows, not of links",
    ):  # fmt: skip
        assert words in error.value.args[0], error.value.args[0]
    for words, said in (
        ("study moss --over nix --bin -1 -o x.gif",
         ("-o ", "--bin -1: ", "no metric 'moss'", "no axis 'nix'")),
        ("run delai --over nix --flow nobody --link ground --kind cdf",
         ("no metric 'delai'", "no axis 'nix'", "no flow 'nobody'", "no link 'ground'",
          "figures of the report: delay")),
    ):  # fmt: skip
        folder, *options = words.split()
        done = refused("plot", saved / folder, *options, cwd=tmp_path)
        assert [each for each in said if each not in done.stderr] == [], done.stderr


def test_a_number_without_a_course_is_refused(grid):
    with pytest.raises(ValueError, match="one number for the whole run"):
        grid.figure("longest_gap_s", time=True)
    with pytest.raises(ValueError, match="against packet length"):
        grid.figure("size_vs_delay", over="time")
    with pytest.raises(ValueError, match="a map needs two axes"):
        many(3).figure("mos", kind="map")


def test_an_axis_can_be_named_like_a_flow():
    runs = [made({"flow": label}, 0, 3.0, (("a", "udp"), ("b", "tcp"))) for label in ("x", "y")]
    study = Study("made", "", "", (Axis("flow", "", ("x", "y")),), 1, 0.95, "", runs)
    figure = study.figure("mos", over="flow", by="flow name")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def test_an_axis_of_counts_says_what_is_counted(grid):
    assert grid.figure("lost_packets").axes[0].get_ylabel() == "lost / packets"
    assert grid.figure("lost_over_time").axes[0].get_ylabel() == "lost / packets"
    assert grid.figure("links.sent_packets").axes[0].get_ylabel() == "packets"
    assert grid.figure("links.queue_mean_packets").axes[0].get_ylabel() == "queue, mean / packets"
    assert grid.figure("mos").axes[0].get_ylabel() == "MOS"


def boxes(figure, texts):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    there = [text for text in texts if text.get_text() and text.get_visible()]
    return [text.get_window_extent(canvas.get_renderer()) for text in there]


@pytest.mark.parametrize("most", [7.5, 990.0, 75_000.0, 690_000.0, 15_300_000.0])
def test_large_numbers_below_panels_do_not_touch(most):
    """Before, the bytes of three panels were one long number."""
    with style.styled():
        figure, grid = style.panels("Payload", 3, 3, height=3.0)
        for ax in grid:
            ax.set_xlim(0, most)
            panel.few_ticks(ax, 3)
    for ax in grid:
        found = boxes(figure, [t for t in ax.get_xticklabels() if 0 <= t.get_position()[0] <= most])
        assert len(found) > 1
        assert not any(a.overlaps(b) for a, b in pairwise(found))


def test_names_below_panels_do_not_touch():
    """Before, "50 packets" and "10 packets" did below panels with scales of their own."""
    queues = ("50 packets", "10 packets", "CoDel")
    transports = ("UDP", "TCP", "DCCP-CCID3", "SCTP")
    flows = tuple((name, "udp") for name in ("call", "call.reverse", "upload"))
    runs = [
        made({"queue": q, "transport": t}, 0, 3.0, flows, goodput_bps=[43e6] * 3)
        for q in queues
        for t in transports
    ]
    axes = (Axis("transport", "", transports), Axis("queue", "", queues))
    figure = Study("made", "", "", axes, 1, 0.95, "", runs).figure(
        "goodput_bps", over="queue", by="transport"
    )
    assert len(figure.axes) == 3
    for ax in figure.axes:
        if not any(text.get_rotation() for text in ax.get_xticklabels()):
            found = boxes(figure, ax.get_xticklabels())
            assert all(b.x0 - a.x1 > a.height / 4 for a, b in pairwise(found))


def test_colour_bars_of_several_maps_do_not_touch(grid):
    figure = grid.figure("delay_p99_s", kind="map", over="delay", by="transport")
    bars = [ax for ax in figure.axes if ax.get_label() == "<colorbar>"]
    assert len(bars) == 2
    found = boxes(figure, [ax.yaxis.label for ax in bars])
    assert len(found) == 2 and not found[0].overlaps(found[1])
    assert {ax.get_ylabel() for ax in bars} == {"ms"}


def test_the_same_plot_is_the_same_svg(grid):
    first, second = (figures.svg(grid.figure("mos", kind="box")) for _ in range(2))
    assert first == second


def g107(r_factor):
    """MOS of R: ITU-T G.107 Annex B, equation B-4."""
    return 1 + 0.035 * r_factor + r_factor * (r_factor - 60) * (100 - r_factor) * 7e-6


def test_classes_of_satisfaction_begin_where_the_equation_puts_them():
    for one in VERDICTS[:-1]:
        # The table has 4.03 for 4.024.
        assert one.from_mos == pytest.approx(g107(one.from_r), abs=0.0061)


@pytest.mark.parametrize("measure", ["mos", "r_factor"])
@pytest.mark.parametrize("kind", ["bars", "points", "box"])
def test_scores_have_bands_of_satisfaction(grid, measure, kind):
    figure = grid.figure(measure, kind=kind, flow="call", over="delay", by="transport")
    (ax,) = figure.axes
    bands = [one for one in ax.patches if one.get_width() == 1 and one.get_x() == 0]
    ends = "from_mos" if measure == "mos" else "from_r"
    starts = [max(getattr(one, ends), 0 if measure == "r_factor" else 1) for one in VERDICTS]
    assert [band.get_y() for band in bands] == pytest.approx(starts)
    assert bands[0].get_y() + bands[0].get_height() == pytest.approx(
        100 if starts[-1] == 0 else 4.5
    )
    names = {text.get_text() for text in ax.texts} & {one.short for one in VERDICTS}
    assert names and (measure == "r_factor" or len(names) == len(VERDICTS))
    assert "G.107 Annex B" in style.notes_of(figure)


def test_other_measures_have_no_bands(grid):
    figure = grid.figure("goodput_bps", flow="call")
    assert "G.107" not in style.notes_of(figure)


def bounded(mos, bound):
    """A study of two runs with one call each: of the first the score is outside its range."""
    axes = (Axis("a", "", ("1", "2")), Axis("b", "", ("x", "y")))
    runs = [
        made({"a": a, "b": b}, 0, mos, mos_bound=[bound if a == "1" else mos])
        for a in "12" for b in "xy"
    ]  # fmt: skip
    return Study("made", "", "", axes, 1, 0.95, "", runs)


@pytest.mark.parametrize("kind", ["bars", "points", "lines"])
def test_a_bound_is_an_open_triangle_at_its_height(kind):
    figure = bounded(2.0, 2.5).figure("mos", kind=kind, over="a", by="b")
    ax = figure.axes[0]
    marks = [line for line in ax.get_lines() if line.get_marker() == "v"]
    assert len(marks) == 2
    for mark in marks:
        assert mark.get_fillstyle() == "none" and list(mark.get_ydata()) == [2.5]
    assert panel.OUTSIDE in style.notes_of(figure)
    if kind == "bars":
        bars = [one for one in ax.patches if one.get_x() != 0 or one.get_width() != 1]
        heights = {one.get_height(): one.get_facecolor()[3] for one in bars}
        assert heights == {2.5: 0.0, 2.0: 1.0}


def test_a_bound_is_marked_in_maps_boxes_and_distributions():
    study = bounded(2.0, 2.5)
    cells = study.figure("mos", kind="map", over="a", by="b").axes[0]
    assert sorted(text.get_text() for text in cells.texts) == ["2.00", "2.00", "<2.50", "<2.50"]
    for options in ({"kind": "box", "over": "a"}, {"kind": "cdf", "by": "b"}):
        assert plot.OF_BOUNDS in style.notes_of(study.figure("mos", **options))


def test_the_figure_of_a_run_marks_a_bound(result):
    texts = [text.get_text() for text in result.figure("mos").axes[0].texts]
    rows = result.flows.drop_nulls("mos")
    outside = rows.filter(pl.col("mos_bound") > pl.col("mos"))
    assert len(texts) == rows.height and outside.height
    for bound in outside["mos_bound"]:
        assert f"<{bound:.2f}  out of range" in texts


def test_several_metrics_are_one_below_the_other_with_one_legend(grid):
    figure = grid.figure(["mos", "Delay", "unheard"], flow="call", over="delay", by="transport")
    assert [part.get_suptitle() for part in figure.subfigs] == [
        "MOS · call", "Delay, mean · call", "Unheard · call",
    ]  # fmt: skip
    assert [ax.get_ylabel() for ax in figure.axes] == ["MOS", "delay, mean / ms", "unheard / %"]
    assert len(figure.legends) == 1 and not any(part.legends for part in figure.subfigs)
    tops = [ax.get_position().y0 for ax in figure.axes]
    figures.png(figure)
    assert tops == sorted(tops, reverse=True)
    alone = grid.figure("delay_mean_s", flow="call", over="delay", by="transport")
    own, other = (
        [list(line.get_ydata()) for line in ax.get_lines()]
        for ax in (alone.axes[0], figure.axes[1])
    )
    assert own == other
    with pytest.raises(ValueError, match=r"no metric 'nix'.*no metric 'nox'"):
        grid.figure(["mos", "nix", "nox"])
    with pytest.raises(ValueError, match="kind map: draws one metric"):
        grid.figure(["mos", "delay_mean_s"], kind="map", flow="call")


def test_metrics_and_axes_are_known_in_any_letters(grid):
    plain = figures.svg(grid.figure("mos", over="delay", by="transport", flow="call"))
    assert figures.svg(grid.figure("MOS", over="Delay", by="TRANSPORT", flow="call")) == plain
    gap = figures.svg(grid.figure("longest_gap_s", flow="call"))
    assert figures.svg(grid.figure("Longest gap", flow="call")) == gap
    assert grid.axis("Delay") is grid.axis("delay")
    means = grid.differences("DELAY", names=["MOS"]).drop("measure")
    assert means.equals(grid.differences("delay", names=["mos"]).drop("measure"))


def test_a_figure_has_the_size_and_the_title_that_were_asked_for(saved, tmp_path):
    options = (
        "--width",
        "10cm",
        "--height",
        "4in",
        "--dpi",
        "100",
        "--title",
        "Ours",
        "-o",
        "a.png",
    )
    for words in (("study", "mos"), ("study", "mos", "Delay"), ("run", "delay"), ("run", "mos")):
        folder, *measures = words
        succeed("plot", saved / folder, *measures, *options, cwd=tmp_path)
        high, wide, _ = matplotlib.image.imread(tmp_path / "a.png").shape
        assert (wide, high) == pytest.approx((10 / 2.54 * 100, 400), abs=1)
    text = ("--title", "Ours & <others>", "-o", "a.svg")
    for words in (("study", "mos"), ("study", "mos", "Delay"), ("run", "delay")):
        folder, *measures = words
        succeed("plot", saved / folder, *measures, *text, cwd=tmp_path)
        drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
        assert drawn.count("Ours &amp; &lt;others&gt;</text>") == 1, drawn[:500]


# The command.


@pytest.mark.parametrize(("ending", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF-")])  # fmt: skip
def test_the_command_writes_what_the_ending_says(saved, tmp_path, ending, begin):
    file = tmp_path / f"a.{ending}"
    done = run("plot", saved / "study", "goodput_bps", "--over", "delay", "-o", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Figure: {file}\n"
    assert file.read_bytes().startswith(begin)
    # A figure that was written here is replaced without further ado.
    succeed("plot", saved / "study", "goodput_bps", "-o", file)


def test_a_figure_that_cannot_be_written_leaves_the_earlier_one(saved, small):
    (small / "a.svg").write_bytes(b"earlier")
    (small / "ballast").write_bytes(bytes(shutil.disk_usage(small).free - 4096))
    done = run("plot", saved / "study", "goodput_bps", "-o", small / "a.svg", "--overwrite")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{small}/a.svg: cannot write: the disk is full" in done.stderr
    assert (small / "a.svg").read_bytes() == b"earlier"
    assert {one.name for one in small.iterdir()} == {"a.svg", "ballast"}


def test_a_figure_goes_through_a_link_and_keeps_its_mode(saved, tmp_path):
    (tmp_path / "real.svg").write_bytes(b"earlier")
    (tmp_path / "real.svg").chmod(0o600)
    (tmp_path / "a.svg").symlink_to("real.svg")
    assert "is no figure of talkspurt" in told(
        "plot", saved / "study", "goodput_bps", "-o", tmp_path / "a.svg"
    )
    done = run("plot", saved / "study", "goodput_bps", "-o", tmp_path / "a.svg", "--overwrite")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.svg").is_symlink()
    assert (tmp_path / "real.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "real.svg").stat().st_mode & 0o777 == 0o600
    done = run("plot", saved / "study", "goodput_bps", "-o", tmp_path / "b.svg")
    assert (tmp_path / "b.svg").stat().st_mode & 0o777 == 0o644 & ~_umask()


def _umask():
    found = os.umask(0)
    os.umask(found)
    return found


def test_a_home_folder_that_cannot_be_written_is_no_matter_of_the_user(saved, tmp_path):
    done = run("plot", saved / "study", "goodput_bps", "-o", tmp_path / "a.svg",
               env={"HOME": "/proc/1", "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": "", "MPLCONFIGDIR": ""})  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_what_matplotlib_warns_of_is_no_matter_of_the_user(saved, tmp_path):
    """In its logs, and on behalf of the code that calls it: both come from its own settings here."""
    (tmp_path / "matplotlibrc").write_text("no.such.key: 1\nfont.family: no such font\n")
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Warned:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'matplotlib.figure':\n"
        "            sys.meta_path.remove(self)\n"
        "            from matplotlib import _api, cbook\n"
        "            import matplotlib.figure as of\n"
        "            work = of.Figure.subplots\n"
        "            def warned(*given, **named):\n"
        "                _api.warn_external('nobody needs to know')\n"
        "                _api.warn_deprecated('1', message='nor this')\n"
        "                return work(*given, **named)\n"
        "            of.Figure.subplots = warned\n"
        "sys.meta_path.insert(0, Warned())\n"
    )
    env = {"MATPLOTLIBRC": str(tmp_path), "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    for words in (("plot", saved / "study", "goodput_bps", "-o", tmp_path / "a.png"),
                  ("report", saved / "run")):  # fmt: skip
        done = run(*words, env=env)
        # A slow machine prints its progress.
        said = [line for line in done.stderr.splitlines() if not line.startswith("Small: ")]
        assert (done.returncode, said) == (0, [])


def test_the_command_names_the_file_by_result_and_measure(saved, tmp_path):
    done = run("plot", saved / "run", "delay", cwd=tmp_path)
    assert done.stdout == "Figure: small-delay.png\n"
    assert matplotlib.image.imread(tmp_path / "small-delay.png").shape[1] > 500


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("study", "mosx"), "no metric 'mosx'; did you mean 'mos'"),
        (("run", "delai"), "figures of the report: delay"),
        (("study", "mos", "--over", "nix"), "no axis 'nix'"),
        (("study", "mos", "-o", "a.gif"), "expected a name that ends in .png, .svg or .pdf"),
        (("study", "mos_over_time", "--bin", "0"), "expected seconds"),
        (("study", "mos_over_time", "--bin", "1e-9"), "expected at most"),
        (("run", "delay_over_time"), "record.packets=true"),
        (("nowhere", "mos"), "there is no result of talkspurt here"),
        (("other", "mos"), "holds the dossiers of published studies"),
    ],
)
def test_bad_input_of_the_command_is_one_line(saved, tmp_path, words, said):
    other = saved / "other"
    other.mkdir(exist_ok=True)
    manifest = '{"talkspurt": "0", "format": 1, "kind": "reproduction"}'
    (other / "manifest.json").write_text(manifest, encoding="utf-8")
    folder, *rest = words
    assert said in told("plot", saved / folder, *rest, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_plain_lines_and_bars():
    line = chart.Line("a", [0, 1, 2], [1, math.nan, 3], "#000000", band=[(0, 2), (1, 3), (2, 4)])
    figure = chart.plot("Title", [line, line], "x / s", "y / ms")
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["a", "a"]
    bars = chart.bars("Title", ["g", "h"], [chart.Bars("a", [1.0, math.nan], "#000000")], "y")
    assert bars_of(bars)[0][0] == 1.0
    assert [text.get_text() for text in bars.axes[0].texts] == ["–"]
