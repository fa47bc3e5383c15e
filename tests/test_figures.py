"""Figures: each kind draws, the same figure gives the same bytes, one colour for each transport."""

import re
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

import talkspurt
from conftest import made, made_study, row_of
from talkspurt import figures
from talkspurt.figures import (
    chart,
    charts,
    comparison,
    drawing,
    maps,
    panel,
    scale,
    style,
)
from talkspurt.reproduce.figures import companion
from talkspurt.reproduce.lab import Run
from talkspurt.results.axis import Axis
from talkspurt.results.result import Study
from texts import UDP, axis_text, cbr, flow_text, inline, link_text, scenario_text

ROOT = Path(__file__).parent.parent
INSIDE = ("rates", "window", "bucket")

LINK = link_text("sky", "west>east", "256kbit/s", "20ms", 5)
VIDEO = flow_text("video", "west>east", UDP, inline("video", rate="300kbit/s", frame="100ms"))
PICTURES = scenario_text("Pictures", "2s", LINK, VIDEO)


def of_kind(kind, result, controlled):
    """A run that has something to show in a figure."""
    if kind == "frame_delay":
        return talkspurt.run(PICTURES)
    return controlled if kind in INSIDE else result


@pytest.mark.parametrize("kind", figures.KINDS)
def test_every_kind_draws_something_with_units(result, controlled, kind):
    figure = of_kind(kind, result, controlled).figure(kind)
    assert figure.axes
    axes = figure.axes[-1]
    assert axes.has_data()
    words = axes.get_xlabel() + axes.get_ylabel()
    assert re.search(r" / (s|ms|kbit/s|kB)|MOS", words), words


@pytest.mark.parametrize("kind", figures.KINDS)
def test_the_same_figure_is_the_same_svg(result, controlled, kind):
    result = of_kind(kind, result, controlled)
    first, second = (figures.svg(result.figure(kind)) for _ in range(2))
    assert first == second
    assert b"<dc:date>" not in first
    assert figures.png(result.figure(kind)).startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", ["delay", "mos_over_time", "fates"])
def test_the_same_figure_is_the_same_pdf(result, kind):
    first, second = (figures.pdf(result.figure(kind)) for _ in range(2))
    assert first == second
    assert first.startswith(b"%PDF-")
    assert b"CreationDate" not in first
    assert b"/FontFile2" in first, "fonts are embedded, as TrueType"


def test_figures_of_one_flow_show_that_flow(result):
    words = [text.get_text() for text in result.figure("delay", flow="tcp-call").axes[0].texts]
    assert words == ["tcp-call"]
    with pytest.raises(ValueError, match="nothing to show"):
        result.figure("cwnd", flow="call")


def test_figures_of_the_inside_are_of_one_direction_each(controlled, result):
    names = [name for name, _ in figures.every(controlled)]
    inside = {name for name in names if name.split("-")[0] in INSIDE}
    assert inside == {"rates-three", "rates-three.reverse", "rates-tb", "window-two", "bucket-tb"}
    assert not {name for name, _ in figures.every(result) if name.split("-")[0] in INSIDE}
    with pytest.raises(ValueError, match="nothing to show"):
        controlled.figure("rates", flow="two")


def test_a_line_of_the_inside_is_its_gauge_held_to_the_end(controlled):
    figure = controlled.figure("rates", flow="three")
    lines = {line.get_color(): line for line in figure.axes[0].get_lines()}
    gauge = controlled.gauges("three", "rate").filter(side="from")
    drawn = lines[charts.styles_of(controlled)["three"].colour]
    times = [*gauge["time_s"], controlled.duration_s]
    assert drawn.get_xdata().tolist() == pytest.approx(times, rel=1e-4)
    values = [value * 1e-3 for value in gauge["value"]]
    assert drawn.get_ydata()[:-1].tolist() == pytest.approx(values, rel=1e-4)
    assert drawn.get_drawstyle() == "steps-post"


CROWD = scenario_text(
    "Crowd",
    "2s",
    link_text("sky", "west>east", "9Mbit/s", "20ms", 50),
    *(flow_text(f"f{n}", "west>east", UDP, cbr("16kbit/s", "200B")) for n in range(30)),
)


@pytest.fixture(scope="module")
def crowd():
    return talkspurt.run(CROWD)


def test_of_many_flows_24_are_drawn_and_the_figure_says_so(crowd):
    for kind in ("delay", "goodput"):
        figure = crowd.figure(kind)
        names = [text.get_text() for ax in figure.axes for text in ax.texts]
        assert sorted(names) == sorted(f"f{n}" for n in range(24))
        assert all(len(ax.get_lines()) <= 6 for ax in figure.axes)
        assert style.notes_of(figure) == "24 of 30 flows are shown."


def test_a_flow_looks_alone_as_among_all_even_if_it_is_not_drawn_there(crowd):
    styles = charts.styles_of(crowd)
    for name in ("f0", "f13", "f29"):
        (line,) = crowd.figure("goodput", flow=name).axes[0].get_lines()
        assert line.get_color() == styles[name].colour
        scaled = [part * line.get_linewidth() for part in styles[name].dashes]
        assert (line._dash_pattern[1] or []) == pytest.approx(scaled)


def test_frames_of_video_that_were_never_decodable_are_ticks():
    film = flow_text("film", "west>east", UDP, inline("video", rate="400kbit/s", frame="100ms"))
    run = talkspurt.run(scenario_text("Film", "4s", LINK, film))
    frames = run.video_frames("film")
    broken = frames.filter(frames["decodable_s"].is_null())
    points, ticks = run.figure("frame_delay").axes[0].get_lines()
    assert 0 < broken.height < frames.height
    assert (ticks.get_marker(), ticks.get_color()) == ("|", drawing.DROP)
    assert ticks.get_xdata().tolist() == pytest.approx(broken["captured_s"].to_list(), rel=1e-4)
    assert len(points.get_xdata()) + broken.height == frames.height


def test_without_a_delay_there_is_no_figure_of_it():
    """All is lost: axes without a line would say that the delay is unknown."""
    link = link_text("sky", "west>east", "256kbit/s", "20ms", 5, loss=1.0)
    flow = flow_text("f", "west>east", UDP, cbr("16kbit/s", "200B"))
    lost = talkspurt.run(scenario_text("Lost", "2s", link, flow))
    with pytest.raises(ValueError, match="nothing to show"):
        lost.figure("delay")


def test_a_line_is_joined_over_bins_without_a_packet_and_its_band_is_their_longest(result):
    """A point between two gaps would not be seen."""
    (ax,) = result.figure("delay", flow="call").axes
    rows = result.series("call").drop_nulls("delay_mean_s")
    drawn = ax.get_lines()[0].get_ydata()
    assert drawn.tolist() == pytest.approx((rows["delay_mean_s"] * 1e3).to_list(), rel=1e-4)
    top = ax.collections[0].get_paths()[0].get_extents().y1
    assert top == pytest.approx(rows["delay_max_s"].max() * 1e3)


def test_panels_that_share_an_axis_show_the_highest(result):
    """The limits of one do not hide what is above them in another."""
    axes = result.figure("mouth_to_ear").axes
    assert len(axes) > 1
    assert all(ax.get_ylim()[1] >= one.dataLim.y1 for ax in axes for one in axes)


def test_a_ladder_names_the_steps_of_its_figure(controlled):
    encoding = controlled.figure("bucket", flow="tb").axes[-1]
    names = [label.get_text() for label in encoding.get_yticklabels()]
    assert names == ["pcmu", "g726-32", "g729a"]
    assert encoding.yaxis_inverted()  # the best on top


def test_kinds_differ_in_colour_transports_in_shade_and_marker_and_flows_in_dashes():
    flows = {"a": ("udp", "speech"), "b": ("tcp", "speech"), "c": ("tcp", "speech")}
    styles = style.flow_styles({**flows, "film": ("udp", "video"), "load": ("tcp", "bulk")})
    kinds = {name: kind for kind, family in style.FAMILIES.items() for name in family}
    assert [kinds[one.colour] for one in styles.values()] == [*["voice"] * 3, "video", "bulk"]
    assert styles["a"].colour != styles["b"].colour == styles["c"].colour
    assert styles["b"].dashes != styles["c"].dashes
    assert styles["a"].marker == styles["film"].marker != styles["b"].marker


def test_no_two_of_fifteen_flows_over_one_transport_look_alike():
    styles = style.flow_styles({f"flow-{n}": ("tcp", "bulk") for n in range(15)})
    assert len({(s.colour, s.dashes) for s in styles.values()}) == 15
    assert len({s.colour for s in list(styles.values())[:5]}) == 1
    assert style.shade("#D55E00", -0.45) == "#753400"
    assert style.shade("#000000", 0.4) == "#666666"


def test_transports_are_known_by_their_longest_name():
    assert style.transport_style("tcp/newreno").marker == style.TRANSPORTS["tcp"][1]
    assert style.transport_style("dccp_ccid3").marker == style.TRANSPORTS["dccp-ccid3"][1]
    assert style.transport_style("quic") == style.OTHER
    unknown = style.flow_styles({"film": ("quic", "video")})["film"]
    assert unknown.colour in style.FAMILIES["video"] and unknown.marker == style.OTHER.marker
    looks = [look for name, look in style.TRANSPORTS.items() if name != "dccp"]
    assert len({marker for _, marker in looks}) == len(looks)


def linear(colour):
    """The components of a colour in linear light (IEC 61966-2-1)."""
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
     [0.0193339, 0.1191920, 0.9503041]]
)  # fmt: skip
# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
# Deficiency", 2009, severity 1.0.
VISIONS = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def lab(light):
    """CIE 1976 L*a*b* of linear light, of which white is the paper."""
    ratio = TO_XYZ @ light / TO_XYZ.sum(axis=1)
    root = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def test_shades_have_a_contrast_of_three_on_light_and_dark_paper():
    """Web Content Accessibility Guidelines 2.2, 1.4.11, for graphical objects."""

    def luminance(colour):
        return float(TO_XYZ[1] @ linear(colour)) + 0.05

    css = (ROOT / "python/talkspurt/web/report.css").read_text()
    papers = re.findall(r"--(?:paper|card): (#\w{6})", css)
    assert len(papers) == 4
    for paper, family in product(papers, style.FAMILIES.values()):
        for colour in family:
            low, high = sorted((luminance(paper), luminance(colour)))
            assert high / low >= 3.0, (paper, colour)


@pytest.mark.parametrize(
    ("vision", "least"), [*zip(VISIONS, (50, 15, 25, 12), strict=True)], ids=VISIONS
)
def test_kinds_of_traffic_are_told_apart_with_any_colour_vision(vision, least):
    def seen(colour):
        return lab(np.clip(VISIONS[vision] @ linear(colour), 0, 1))

    for one, other in combinations(style.FAMILIES.values(), 2):
        for a, b in product(one, other):
            # CIE 1976: a difference of 2.3 is just noticed (Mahy et al. 1994).
            assert np.linalg.norm(seen(a) - seen(b)) > least, (a, b)


def test_legends_show_how_lines_are_dashed(result):
    legend = result.figure("delay_ecdf").axes[0].get_legend()
    points = legend.handlelength * legend.get_texts()[0].get_fontsize()
    for dashes in style.DASHES:  # at a line's width of 1.5 points: a dash, a gap and a dash
        assert points > 1.5 * (sum(dashes) + sum(dashes[:1])), dashes


def test_a_call_without_a_recording_has_no_waveform(silent):
    with pytest.raises(ValueError, match="nothing to show"):
        silent.figure("waveform", flow="call")
    assert silent.figure("waveform").axes[0].get_title("left").startswith("tcp-call")
    names = [name for name, _ in figures.every(silent)]
    assert "waveform-tcp-call" in names
    assert "waveform-call" not in names


def test_frames_are_as_long_as_they_are_whatever_the_pauses(folder):
    pauses = {"kind": "speech", "codec": "pcmu", "talkspurts": {}}
    run = talkspurt.run(folder / "silent.toml", set={"flows.call.source": pauses})
    frames = run.frames("call").height
    assert frames < 190
    strips = run.figure("fates", flow="call").axes[0].collections
    drawn = sum(path.get_extents().width for strip in strips for path in strip.get_paths())
    assert abs(drawn - 0.02 * frames) < 1e-6  # neighbours are drawn as one, pauses not at all


def test_a_mean_of_some_replications_says_so():
    study = made_study({"near": [4.0, 3.0, None], "far": [3.5, 2.5, 1.0]}, 3)
    texts = comparison.over_axis(study, "mos").axes[0].texts
    assert [text.get_text() for text in texts] == ["2 of 3"]


def test_labels_at_line_ends_do_not_overlap():
    with style.styled():
        figure, (ax,) = style.sheet("x")
        ax.set_ylim(0, 100)
        ax.set_xlim(0, 1)
        style.label_ends(ax, [(1, 50.0, "a", "k"), (1, 50.5, "b", "k"), (1, 51.0, "c", "k")])
        figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    for upper, lower in zip(boxes[1:], boxes, strict=False):
        assert upper.y0 >= lower.y1 - 2


def test_inline_pictures_take_the_pages_ink_and_have_ids_of_their_own(result):
    texts = [
        figures.inline_svg(figures.svg(result.figure(kind)), "alt")
        for kind in ("mos", "delay_ecdf")
    ]
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in texts]
    assert not ids[0] & ids[1]
    for text, own in zip(texts, ids, strict=True):
        assert style.INK not in text
        assert "currentColor" in text
        assert set(re.findall(r'(?:url\(|xlink:href=")#([^")]+)', text)) <= own


def test_a_study_has_a_figure_for_each_measure_over_its_first_axis(study):
    names = [name for name, _ in comparison.every(study)]
    assert "mos" in names
    assert "goodput_bps" in names
    figure = comparison.over_axis(study, "mos")
    (ax,) = figure.axes
    assert [label.get_text() for label in ax.get_xticklabels()] == ["20", "200"]
    assert ax.get_xlabel() == "delay / ms"


def test_where_all_have_one_colour_the_longest_axis_goes_across():
    axes = (Axis("buffer", "b", ("short", "long")), Axis("messages", "m", ("one", "two", "three")))
    runs = [
        made({"buffer": buffer, "messages": messages}, 0, 3.0)
        for buffer in axes[0].labels
        for messages in axes[1].labels
    ]
    study = Study("made", "", "", axes, 1, 0.95, "", runs)
    assert panel.across(study).name == "messages"


def test_a_course_of_numbers_goes_across_before_names():
    names = tuple(f"queue {n}" for n in range(5))
    course = varied({"queue": names, "others": ("1", "4", "16")}, lambda *_: 3.0)
    assert panel.across(course).name == "others"
    two = varied({"queue": names, "others": ("1", "4")}, lambda *_: 3.0)
    assert panel.across(two).name == "queue"
    (ax,) = comparison.over_axis(two, "mos").axes
    assert len(means(ax)) == 2 * len(names)


def test_labels_that_do_not_fit_beside_each_other_slope():
    def rotations(names):
        figure = comparison.over_axis(made_study({name: [3.0] for name in names}, 1), "mos")
        return {label.get_rotation() for label in figure.axes[0].get_xticklabels()}

    assert rotations(["udp", "tcp"]) == {0}
    assert rotations([f"a transport of name {i}" for i in range(9)]) == {35}


def test_two_long_axes_make_a_map():
    tables = (
        link_text("wire", "a>b", "1Mbit/s", "10ms", 10),
        flow_text("f", "a>b", UDP, cbr("64kbit/s", "200B")),
        axis_text("links.wire.delay", '["10ms", "50ms", "90ms"]'),
        axis_text("flows.f.source.rate", '["8kbit/s", "16kbit/s", "32kbit/s", "64kbit/s"]'),
    )
    study = talkspurt.run(scenario_text("map", "2s", *tables), study=True)
    figure = comparison.over_two_axes(study, "delay_p95_s")
    ax, bar = figure.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["10", "50", "90"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rate / kbit/s", "delay / ms")
    assert bar.get_ylabel().replace("\n", " ") == figure.get_suptitle() == "delay, 95 % / ms"
    # 200 bytes and 28 of headers take 1.824 ms at 1 Mbit/s.
    shown = [[float(text.get_text()) for text in ax.texts[4 * row : 4 * row + 4]] for row in (0, 2)]
    assert shown == [[11.8] * 4, [91.8] * 4]
    assert [name for name, _ in comparison.every(study) if name.endswith("-map")]
    assert comparison.over_two_axes(made_study({"udp": [4.0]}, 1), "mos") is None


DELAYS = ("1ms", "5ms", "20ms", "50ms", "100ms", "150ms", "200ms", "400ms")
RATES = tuple(f"{2**n * 64}kbit/s" for n in range(9))


def varied(axes, score, *, replications=2, flows=(("call", "udp"),)):
    """A study over axes, by name, of which every flow's MOS is made."""
    runs = [
        made(dict(zip(axes, labels, strict=True)), n, score(*labels, n), flows)
        for labels in product(*axes.values())
        for n in range(replications)
    ]
    found = tuple(Axis(name, f"made.{name}", labels) for name, labels in axes.items())
    return Study("made", "", "", found, replications, 0.95, "", runs)


def means(ax):
    """The points of a panel: where, how dashed and how filled."""
    return [
        (line.get_xdata()[0], line.get_ydata()[0], line.get_color(), line.get_fillstyle())
        for line in ax.get_lines()
        if line.get_zorder() == 3
    ]


def joining(ax):
    """The lines from value to value."""
    return [line for line in ax.get_lines() if len(set(line.get_xdata())) > 1]


def test_numbers_are_read_with_their_units():
    assert scale.numbers(["500us", "20ms", "1s"]) == pytest.approx([0.0005, 0.02, 1.0])
    assert scale.numbers(["64kbit/s", "2Mbit/s"]) == [64e3, 2e6]
    assert scale.numbers(["1", "4", "16"]) == [1, 4, 16]
    for names in (["FIFO 300", "FQ-CoDel"], ["20ms", "20kbit/s"], ["1s", "1000ms"], ["20ms"]):
        assert scale.numbers(names) is None
    assert scale.ticks(["128kbit/s", "1Mbit/s", "10Mbit/s"]) == (["0.128", "1", "10"], "Mbit/s")
    assert scale.ticks(["FIFO", "RED"]) == (["FIFO", "RED"], "")


def test_numbers_too_close_on_a_linear_scale_stand_on_a_logarithmic_one():
    assert scale.scale([20, 300]) == scale.scale([1, 4, 16]) == "linear"
    assert scale.scale(scale.numbers(DELAYS)) == "log"
    assert scale.scale([0, 1, 10, 100, 1000]) == "symlog"
    assert scale.scale([float(n) for n in range(50)]) == "linear"  # a logarithm were worse


def test_numbers_stand_where_they_belong_and_names_are_not_joined():
    study = varied({"delay": DELAYS}, lambda _, n: 3.0 + n)
    (ax,) = comparison.over_axis(study, "mos").axes
    assert ax.get_xscale() == "log"
    assert [at for at, *_ in means(ax)] == pytest.approx(scale.numbers(DELAYS))
    (line,) = joining(ax)
    assert len(line.get_xdata()) == len(DELAYS)
    assert len(ax.collections) == 1, "a band"
    named = varied({"queue": ("FIFO 300", "FQ-CoDel", "PIE")}, lambda _, n: 3.0 + n)
    (ax,) = comparison.over_axis(named, "mos").axes
    assert [at for at, *_ in means(ax)] == [0, 1, 2]
    assert not joining(ax) and not ax.collections


@pytest.mark.parametrize("rates", [RATES, tuple(f"profile {letter}" for letter in "abcdefghi")])
def test_nothing_is_left_out_and_no_two_lines_of_a_panel_look_alike(rates):
    flows = (("voice", "udp"), ("upload", "tcp"))
    study = varied({"delay": DELAYS, "rate": rates}, lambda *_: 3.0, flows=flows)
    figure = comparison.over_axis(study, "mos")
    drawn = [ax for ax in figure.axes if ax.get_visible()]
    assert sum(len(means(ax)) for ax in drawn) == len(DELAYS) * len(rates) * len(flows)
    for ax in drawn:
        looks = [
            (line.get_color(), line.get_linestyle(), str(line._dash_pattern))
            for line in joining(ax)
        ]
        assert len(set(looks)) == len(looks) > 0
    assert len({ax.get_title("left") for ax in drawn}) == len(drawn)
    assert "Not drawn" not in style.notes_of(figure)


def test_lines_of_one_panel_and_colour_differ_in_dashes_and_fill():
    study = varied({"delay": DELAYS, "profile": ("rfc", "ns2", "linux")}, lambda *_: 3.0)
    figure = comparison.over_axis(study, "mos")
    (ax,) = figure.axes
    assert len({str(line._dash_pattern) for line in joining(ax)}) == 3
    assert len({fill for *_, fill in means(ax)}) == 3
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["rfc", "ns2", "linux"]
    assert figure.get_suptitle() == "MOS · call"


def test_what_is_too_much_for_a_figure_is_named():
    names = tuple(f"setting {n}" for n in range(panel.MAX_PANELS + 3))
    study = varied({"delay": ("1ms", "2ms", "3ms"), "setting": names}, lambda *_: 3.0)
    figure = comparison.over_axis(study, "mos")
    assert len([ax for ax in figure.axes if ax.get_visible()]) == panel.MAX_PANELS
    words = style.notes_of(figure)
    assert "Not drawn: 3 panels" in words
    assert all(name in words for name in names[-3:])
    flows = tuple((f"flow-{n}", "udp") for n in range(maps.MAX_MAPS + 1))
    study = varied({"a": ("1", "2", "3"), "b": ("1", "2", "3")}, lambda *_: 3.0, flows=flows)
    assert f"1 flow: {flows[-1][0]}" in style.notes_of(comparison.over_two_axes(study, "mos"))


def test_an_interval_that_was_cut_ends_in_an_arrowhead():
    # ± 12.7 of Student on a scale from 1 to 4.5.
    study = varied(
        {"delay": ("20ms", "90ms")}, lambda label, n: 2.0 + n if label == "20ms" else 3.0
    )
    figure = comparison.over_axis(study, "mos")
    (ax,) = figure.axes
    heads = {
        line.get_marker(): line.get_ydata()[0]
        for line in ax.get_lines()
        if line.get_marker() in (chart.UP, chart.DOWN)
    }
    assert heads == {chart.DOWN: 1.0, chart.UP: 4.5}
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (1.0, 4.5)
    assert panel.CUT_OFF in style.notes_of(figure)
    assert panel.NO_BAR in style.notes_of(figure), "at 90 ms both were the same"
    calm = varied({"delay": ("20ms", "90ms")}, lambda _, n: 3.0 + 0.01 * n)
    assert style.notes_of(comparison.over_axis(calm, "mos")) == ""


def test_where_the_transport_varies_each_point_looks_like_its_own():
    kinds = ("udp", "tcp", "sctp")
    runs = [made({"over": kind}, n, 3.0 + n, (("call", kind),)) for kind in kinds for n in (0, 1)]
    study = Study("made", "", "", (Axis("over", "x", kinds),), 2, 0.95, "", runs)
    (ax,) = comparison.over_axis(study, "mos").axes
    own = [style.transport_style(kind, "bulk").colour for kind in kinds]
    assert [colour for _, _, colour, _ in means(ax)] == own
    assert not joining(ax)


def test_all_maps_share_one_scale_and_have_no_exponents():
    flows = (("voice", "udp"), ("upload", "tcp"))
    axes = (Axis("a", "made.a", ("1", "2", "3")), Axis("b", "made.b", ("1", "2", "3")))
    scores = {(a, b): int(a) + int(b) / 9 for a in axes[0].labels for b in axes[1].labels}
    runs = [
        made({"a": a, "b": b}, 0, 3.0, flows, goodput_bps=[64e3 * score, 90.8e6 * score])
        for (a, b), score in scores.items()
    ]
    study = Study("made", "", "", axes, 1, 0.95, "", runs)
    figure = maps.over_two_axes(study, "goodput_bps")
    images = [ax.get_images()[0] for ax in figure.axes if ax.get_images()]
    assert [image.norm.vmax for image in images] == pytest.approx([90.8e3 * 10 / 3] * 2)
    assert [image.norm.vmin for image in images] == pytest.approx([64 * 10 / 9] * 2)
    assert figure.get_suptitle() == "goodput / kbit/s"
    assert [ax.get_title("left") for ax in figure.axes if ax.get_images()] == ["voice", "upload"]
    # The title names the measure: beside each of several maps it would not have room.
    assert {ax.get_ylabel() for ax in figure.axes if not ax.get_images()} == {"kbit/s"}
    texts = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert "100\u202f889" in texts
    assert not [text for text in texts if "e" in text]


def test_maps_of_scores_and_losses_have_the_scale_of_every_study():
    axes = {"a": ("1", "2", "3"), "b": ("1", "2", "3")}
    for name, limits in (("mos", (1, 4.5)), ("concealed_ratio", (0, 20))):
        settings = [dict(zip(axes, labels, strict=True)) for labels in product(*axes.values())]
        runs = [made(setting, 0, 3.0, concealed_ratio=[0.9]) for setting in settings]
        found = tuple(Axis(name, f"made.{name}", labels) for name, labels in axes.items())
        study = Study("made", "", "", found, 1, 0.95, "", runs)
        figure = maps.over_two_axes(study, name)
        (image,) = [ax.get_images()[0] for ax in figure.axes if ax.get_images()]
        assert (image.norm.vmin, image.norm.vmax) == pytest.approx(limits)
        assert image.colorbar.extend == ("neither" if name == "mos" else "max")


def test_traffic_beside_calls_is_thin_and_below_them(result):
    styles = charts.styles_of(result)
    assert [name for name, one in styles.items() if one.in_background] == ["upload"]
    upload = result.figure("goodput").axes[0].get_lines()[0]
    assert upload.get_color() == styles["upload"].colour, "below the others"


def test_without_calls_no_traffic_is_background(folder):
    bulk = {"kind": "bulk"}
    sets = {"flows.call.source": bulk, "flows.tcp-call.source": bulk, "duration": "2s"}
    sets["flows.call.transport"] = {"kind": "tcp", "controller": "cubic"}
    styles = charts.styles_of(talkspurt.run(folder / "small.toml", set=sets))
    assert not any(one.in_background for one in styles.values())


def test_lines_of_studies_have_the_colours_of_their_kind(study):
    lines = panel.lines_over(study, study.axes[0], "goodput_bps")
    kinds = {line.key[0]: line.style.kind for line in lines}
    assert kinds["upload"] == "bulk" and {*kinds.values()} == {"voice", "bulk"}


@pytest.mark.parametrize(
    ("data", "limits"),
    [((280.0, 400.0), (270.4, 409.6)), ((10.0, 400.0), (0.0, 424.0)), ((0.0, 0.0), (0.0, 1.0)),
     ((5.0, 5.0), (4.5, 5.5)), ((-2.0, 1.0), (-2.0, 1.06))],
)  # fmt: skip
def test_axes_are_fitted_to_data_far_from_zero(data, limits):
    assert style.bounds(*data) == pytest.approx(limits)


def test_equal_lines_are_of_different_width(result):
    widths = [line.get_linewidth() for line in result.figure("delay").axes[0].get_lines()]
    assert len(widths) > 1 and widths == sorted(set(widths), reverse=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [(90800.0, "90\u202f800"), (11.824, "11.8"), (4.405, "4.41"), (0.0, "0"), (-2.5, "−2.50"), (0.012, "0.012")],
)  # fmt: skip
def test_numbers_in_squares_are_short_and_have_no_exponent(value, text):
    assert maps.brief(value) == text


def test_figures_are_pdf_where_asked_for(result, study, tmp_path):
    def endings(folder):
        names = [file.name for file in (folder / "figures").iterdir()]
        return {name.rpartition(".")[2] for name in names if not name.startswith("topology")}

    assert endings(result.save(tmp_path / "plain")) == set()
    assert endings(study.save(tmp_path / "several")) == {"svg", "png"}
    for one, name in ((result, "result"), (study, "study")):
        folder = one.save(tmp_path / name, pdf=True)
        assert endings(folder) == {"svg", "png", "pdf"}
        svgs, pdfs = (len(list((folder / "figures").glob(f"*.{e}"))) for e in ("svg", "pdf"))
        assert svgs - 1 == pdfs, "the network's picture is SVG alone"


def test_a_dossier_says_why_a_call_has_no_score(folder):
    # ITU-T G.113 has no factor for what losses do to G.728 concealed in this way.
    unrated = {"kind": "speech", "codec": "g728"}
    lossy = {"flows.call.source": unrated, "links.sky.loss": 0.05}
    run = talkspurt.run(folder / "small.toml", set=lossy)
    row = row_of(run, "call")
    assert row["mos"] is None
    tables = {"flows": run.flows, "links": run.links}
    kept = Run("small", run.seed, run.digest, run.duration_s, tables)
    figure = companion("What", {"G.728": (kept, "call"), "TCP": (kept, "tcp-call")})
    words = style.notes_of(figure)
    assert words.startswith(f"One run each, seed {run.seed}. G.728 has no MOS: ")
    assert row["quality_note"].split("; ")[0].removeprefix("no score: ") in words
    assert "TCP" not in words
    assert "none" in [text.get_text() for text in figure.axes[1].texts]


def test_the_figure_of_the_page_on_adding_one_draws(result, monkeypatch, tmp_path):
    page = (ROOT / "docs" / "adding-a-figure.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(compile(block, "page", "exec"), names)
    monkeypatch.setitem(figures.KINDS, "under_way", names["ENTRY"])
    figure = result.figure("under_way")
    assert figure.axes[0].has_data()
    assert figure.axes[0].get_ylabel() == "under way / kB"
    assert "under_way" in dict(figures.every(result))
    result.save(tmp_path / "out")
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Goodput times mean delay of each flow, over time" in report
    assert list((tmp_path / "out" / "figures").glob("under_way.*"))


def test_long_titles_of_panels_do_not_touch():
    source = cbr("64kbit/s", "200B")
    names = [f"a-flow-with-a-name-of-this-length-{n}" for n in range(5)]
    flows = (flow_text(name, "a>b", UDP, source, reverse=source) for name in names)
    link = link_text("wire", "a>b", "1Mbit/s", "10ms", 10)
    axis = axis_text("links.wire.delay", '["1ms", "9ms"]', name="delay")
    study = talkspurt.run(scenario_text("titles", "1s", link, *flows, axis), study=True)
    figure = comparison.over_axis(study, "goodput_bps")
    figure.draw_without_rendering()
    titles = [
        text
        for ax in figure.axes
        for text in ax.findobj(Text)
        if text.get_text() and text.get_text() == ax.get_title(loc="left")
    ]
    boxes = [title.get_window_extent() for title in titles]
    assert len(boxes) > 8 and not [
        (one.get_text(), other.get_text())
        for i, one in enumerate(titles)
        for j, other in enumerate(titles[:i])
        if boxes[i].overlaps(boxes[j])
    ]
