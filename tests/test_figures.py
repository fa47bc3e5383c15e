"""Figures: each kind draws, the same figure gives the same bytes, one colour for each transport."""

import re

import polars as pl
import pytest

import talkspurt
from conftest import made, made_study
from talkspurt import figures
from talkspurt.figures import comparison, inside, style
from talkspurt.study import Axis, Study

INSIDE = ("rates", "window", "bucket")

PICTURES = """\
title = "Pictures"
duration = "2s"

[links.sky]
from = "west"
to = "east"
rate = "256kbit/s"
delay = "20ms"
queue = { kind = "droptail", packets = 5 }

[flows.video]
from = "west"
to = "east"
transport = { kind = "udp" }
source = { kind = "video", rate = "300kbit/s", frame = "100ms" }
"""


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
    drawn = lines[style.TRANSPORTS["dccp-ccid3"].colour]
    assert drawn.get_xdata().tolist() == [*gauge["time_s"], controlled.duration_s]
    assert drawn.get_ydata()[:-1].tolist() == [value * 1e-3 for value in gauge["value"]]
    assert drawn.get_drawstyle() == "steps-post"


def test_of_many_steps_the_extremes_are_drawn():
    times = [i / 1000 for i in range(50_000)]
    values = [float(i % 7) for i in range(50_000)]
    values[33_333] = -5.0
    values[44_444] = 99.0
    few = inside._fewer(pl.DataFrame({"time_s": times, "value": values}), 50.0)
    assert few.height <= inside.MOST_STEPS + 4
    assert few["value"].min() == -5.0
    assert few["value"].max() == 99.0
    assert few["time_s"].is_sorted()


def test_a_ladder_names_the_steps_of_its_figure(controlled):
    encoding = controlled.figure("bucket", flow="tb").axes[-1]
    assert [label.get_text() for label in encoding.get_yticklabels()] == [
        "pcmu",
        "g726-32",
        "g729a",
    ]
    assert encoding.yaxis_inverted()  # the best on top


def test_a_transport_has_one_colour_and_its_flows_differ_in_dashes():
    styles = style.flow_styles({"a": "udp", "b": "tcp", "c": "tcp", "d": "udp"})
    assert styles["a"].colour == styles["d"].colour != styles["b"].colour == styles["c"].colour
    assert styles["b"].dashes != styles["c"].dashes
    assert styles["a"].marker != styles["b"].marker


def test_transports_are_known_by_their_longest_name():
    assert style.transport_style("tcp/newreno") == style.TRANSPORTS["tcp"]
    assert style.transport_style("dccp_ccid3") == style.TRANSPORTS["dccp-ccid3"]
    assert style.transport_style("quic") == style.OTHER
    colours = [transport.colour for name, transport in style.TRANSPORTS.items() if name != "dccp"]
    assert len(set(colours)) == len(colours)


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
    texts = [figures.inline_svg(result.figure(kind), "alt") for kind in ("mos", "delay_ecdf")]
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
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["20ms", "200ms"]


def test_where_all_have_one_colour_the_longest_axis_goes_across():
    axes = (Axis("buffer", "b", ("short", "long")), Axis("messages", "m", ("one", "two", "three")))
    runs = [
        made({"buffer": buffer, "messages": messages}, 0, 3.0)
        for buffer in axes[0].labels
        for messages in axes[1].labels
    ]
    study = Study("made", "", "", axes, 1, 0.95, "", runs)
    assert comparison.across(study).name == "messages"


def test_labels_that_do_not_fit_beside_each_other_slope():
    def rotations(names):
        figure = comparison.over_axis(made_study({name: [3.0] for name in names}, 1), "mos")
        return {label.get_rotation() for label in figure.axes[0].get_xticklabels()}

    assert rotations(["udp", "tcp"]) == {0}
    assert rotations([f"a transport of name {i}" for i in range(9)]) == {35}


def test_two_long_axes_make_a_map():
    study = talkspurt.run(
        {
            "title": "map",
            "duration": "2s",
            "links": {"wire": {"from": "a", "to": "b", "rate": "1Mbit/s", "delay": "10ms",
                               "queue": {"kind": "droptail", "packets": 10}}},
            "flows": {"f": {"from": "a", "to": "b", "transport": {"kind": "udp"},
                            "source": {"kind": "cbr", "rate": "64kbit/s", "packet": "200B"}}},
            "axes": [
                {"path": "links.wire.delay", "values": ["10ms", "50ms", "90ms"]},
                {"path": "flows.f.source.rate",
                 "values": ["8kbit/s", "16kbit/s", "32kbit/s", "64kbit/s"]},
            ],
        }
    )  # fmt: skip
    figure = comparison.over_two_axes(study, "delay_p95_s")
    (ax,) = figure.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["10ms", "50ms", "90ms"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rate", "delay")
    # 200 bytes and 28 of headers take 1.824 ms at 1 Mbit/s.
    shown = [[float(text.get_text()) for text in ax.texts[4 * row : 4 * row + 4]] for row in (0, 2)]
    assert shown == [[11.8] * 4, [91.8] * 4]
    assert [name for name, _ in comparison.every(study) if name.endswith("-map")]
    assert comparison.over_two_axes(made_study({"udp": [4.0]}, 1), "mos") is None


def test_figures_are_pdf_where_asked_for(result, study, tmp_path):
    def endings(folder):
        names = [file.name for file in (folder / "figures").iterdir()]
        return {name.rpartition(".")[2] for name in names if not name.startswith("topology")}

    assert endings(result.save(tmp_path / "plain")) == {"svg", "png"}
    for one in (result, study):
        folder = one.save(tmp_path / "pdf", pdf=True)
        assert endings(folder) == {"svg", "png", "pdf"}
        svgs, pdfs = (len(list((folder / "figures").glob(f"*.{e}"))) for e in ("svg", "pdf"))
        assert svgs - 1 == pdfs, "the network's picture is SVG alone"
