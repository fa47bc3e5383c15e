"""Sessions under GCC: what they send, how they probe and pad, and that Wireshark reads their packets."""

from __future__ import annotations

import polars as pl
import pytest

import talkspurt
from command import dissected, needs_tshark
from conftest import row_of
from texts import BULK, UDP, flow_text, inline, link_text, scenario_text, speech

GCC = inline("gcc")
REPAIRED = '{ kind = "video", encoder = { max = "2500kbit/s" }, repair = {} }'
PLAIN = '{ kind = "video", encoder = { max = "2500kbit/s" } }'


def call(rate="1Mbit/s", *, controller=GCC, source=REPAIRED, flows=(), **link):
    """Video under GCC over one link."""
    link.setdefault("queue", '{ kind = "droptail", time = "300ms" }')
    return scenario_text(
        "A session under GCC",
        "60s",
        link_text("line", "a>b", rate, "50ms", **link),
        flow_text("video", "a>b", UDP, source, controller=controller),
        *flows,
        seed=3,
    )


def of_time(result, gauge, begin, end):
    gauges = result.gauges("video", gauge)
    return gauges.filter(pl.col("time_s").is_between(begin, end))["value"]


@pytest.mark.parametrize("rate", [300, 1000, 2000, 10_000])
def test_gcc_takes_most_of_what_there_is(rate):
    result = talkspurt.run(call(f"{rate}kbit/s"), set={"measure": '{ from = "20s" }'})
    row = row_of(result, "video")
    most = min(rate * 1000, 2.5e6 * 1.03)
    assert 0.65 * most < row["throughput_bps"] <= most
    assert row["transport"] == "udp+gcc"
    assert 0 < row["feedback_bytes"] * 8 / 40 < 0.05 * row["throughput_bps"]


def test_it_begins_with_probes_at_three_and_six_times_the_first_rate():
    result = talkspurt.run(call("10Mbit/s"), set={"record": "{ packets = true }"})
    # The second probe shows 1.8 Mbit/s, and two more follow, to twice what the sources can use.
    assert of_time(result, "target_rate", 0, 0.4).max() > 1.5e6
    assert of_time(result, "target_rate", 0, 3).max() > 3e6
    row = row_of(result, "video")
    # One before each cluster; what is missing after the first picture, too.
    assert row["padding_packets"] >= 4 and row["padding_bytes"] >= 4 * 224
    # Nothing repeats what is not lost.
    assert row["repair_packets"] is None and row["video_frames_complete"] == row["video_frames"]
    # Five bursts of 2 ms at 0.9 Mbit/s, of one packet each, the first of which is small.
    first = result.packets("video").filter(side="from", link="line").head(5)
    assert first["ip_bytes"].to_list() == [224 + 48, *[1248] * 4]
    gaps = first["enqueued_s"].diff().drop_nulls().to_list()
    expected = [bytes_ * 8 / 9e5 for bytes_ in (224 + 48, *[1248] * 3)]
    assert gaps == pytest.approx(expected, abs=1e-4)


def test_without_repair_there_is_no_padding_and_probes_are_of_media():
    result = talkspurt.run(call("10Mbit/s", source=PLAIN))
    row = row_of(result, "video")
    assert row["padding_packets"] is None
    assert of_time(result, "target_rate", 0, 10).max() > 2e6


def test_a_fall_of_the_capacity_is_answered_and_recovered_from():
    steps = '[{ at = "20s", rate = "400kbit/s" }, { at = "40s", rate = "2Mbit/s" }]'
    queue = '{ kind = "droptail", time = "300ms", follow_rate = true }'
    result = talkspurt.run(call("2Mbit/s", steps=steps, queue=queue))
    assert of_time(result, "target_rate", 15, 20).mean() > 1.4e6
    assert of_time(result, "target_rate", 25, 40).mean() < 4e5
    assert of_time(result, "usage", 20, 25).max() == 2
    assert of_time(result, "target_rate", 58, 60).mean() > 6e5


def test_losses_that_delays_do_not_show_limit_the_rate_by_the_loss_based_estimate():
    few, many = (
        talkspurt.run(call("10Mbit/s", loss=loss), set={"measure": '{ from = "20s" }'})
        for loss in (0.01, 0.15)
    )
    rates = [row_of(one, "video")["throughput_bps"] for one in (few, many)]
    assert rates[0] > 2e6 > rates[1]
    assert of_time(many, "loss_rate", 20, 60).max() < of_time(many, "delay_rate", 0, 60)[-1]
    # While losses limit the rate, padding looks for more; two packets are of the first probes.
    whole = talkspurt.run(call("10Mbit/s", loss=0.15))
    assert row_of(whole, "video")["padding_packets"] > 4


@pytest.mark.parametrize("feedback", ["transport-wide", "rfc8888"])
def test_sound_and_picture_share_one_estimate(feedback):
    sound = flow_text("sound", "a>b", UDP, speech("opus"), session="video")
    controller = inline("gcc", feedback=feedback)
    result = talkspurt.run(call(controller=controller, flows=[sound]))
    picture, voice = row_of(result, "video"), row_of(result, "sound")
    assert voice["discarded_packets"] == 0 and voice["lost_packets"] < 100
    assert 0.6e6 < picture["throughput_bps"] + voice["throughput_bps"] < 1e6


@pytest.mark.parametrize(
    ("transport", "name"),
    [
        ('{ kind = "tcp", controller = "cubic" }', "tcp-cubic+gcc"),
        ('{ kind = "dccp", ccid = 3 }', "dccp-ccid3+gcc"),
        ('{ kind = "sctp" }', "sctp+gcc"),
    ],
)
def test_it_runs_over_a_transport_with_control_of_its_own(transport, name):
    result = talkspurt.run(call(), set={"flows.video.transport": transport})
    row = row_of(result, "video")
    assert row["transport"] == name and 1e5 < row["goodput_bps"] < 1e6


def test_it_falls_while_no_feedback_comes_and_rises_again():
    down = '[{ at = "20s", state = "down" }, { at = "30s", state = "up" }]'
    result = talkspurt.run(call("2Mbit/s", events=down))
    target = result.gauges("video", "target_rate")
    assert target.filter(pl.col("time_s").is_between(21, 30)).is_empty()
    sent = result.series("video")
    rate = pl.col("sent_packets")
    before, without, after = (
        sent.filter(pl.col("time_s").is_between(begin, end)).select(rate.mean()).item()
        for begin, end in ((15, 20), (28, 30), (55, 60))
    )
    assert without < 0.5 * before and after > 0.5 * before


@needs_tshark
def test_wireshark_reads_numbers_padding_and_feedback(tmp_path):
    # The queue drops nothing, so that the capture behind it has every packet.
    queue = '{ kind = "droptail", packets = 100000 }'
    result = talkspurt.run(
        call("2Mbit/s", loss=0.02, queue=queue),
        set={"record.pcapng": ["line"], "duration": "10s"},
    )
    result.save(tmp_path / "run", report=False)
    file = tmp_path / "run" / "line.pcapng"
    row = row_of(result, "video")
    control = dissected(
        file,
        "rtcp.pt",
        "rtcp.rtpfb.fmt",
        "rtcp.rtpfb.transportcc.baseseq",
        "rtcp.length_check",
        "_ws.malformed",
        where="ip.src == 10.0.0.2",
        options=["-d", "udp.port==49152-49153,rtcp"],
    )
    assert {one[4] for one in control} == {""} and {one[3] for one in control} == {"1"}
    feedback = [one for one in control if one[0] == "205" and one[1] == "15"]
    assert len(feedback) == row["feedback_packets"] - sum(one[1] == "1" for one in control)
    bases = [int(one[2]) for one in feedback]
    assert len(bases) > 50 and bases == sorted(bases)
    media = dissected(
        file,
        "rtp.ext.rfc5285.id",
        "rtp.ext.rfc5285.data",
        "rtp.padding",
        "rtp.padding.count",
        "_ws.malformed",
        where="ip.src == 10.0.0.1 && rtp",
        options=["-d", "udp.port==49152-49153,rtp"],
    )
    assert {one[4] for one in media} == {""}
    # Each packet that left has the next number.
    numbers = [int(one[1].replace(":", ""), 16) for one in media if one[0] == "3"]
    assert numbers == list(range(len(numbers))) and len(numbers) > 500
    padded = {one[3] for one in media if one[2] in ("1", "True")}
    assert padded == {"224"}


UNLIMITED = '{ kind = "droptail", packets = 100000 }'


def asserted(rate, *, delay, steps="[]", controller=GCC, flows=(), **link):
    """A scenario of goog_cc_network_control_unittest.cc: queues there have no limit."""
    source = '{ kind = "video", encoder = { min = "30kbit/s", max = "1500kbit/s" }, repair = {} }'
    text = call(rate, controller=controller, source=source, flows=flows, queue=UNLIMITED, **link)
    return talkspurt.run(
        text, set={"links.line.delay": f'"{delay}"', "links.line.steps": steps, "duration": "120s"}
    )


def test_the_target_follows_the_capacity_as_libwebrtcs_test_asserts():
    # UpdatesTargetRateBasedOnLinkCapacity
    steps = (
        '[{ at = "25s", rate = "800kbit/s" }, { at = "45s", rate = "100kbit/s", delay = "200ms" }]'
    )
    controller = inline("gcc", min="10kbit/s", start="300kbit/s", max="1500kbit/s")
    result = asserted("500kbit/s", delay="100ms", steps=steps, controller=controller)
    for at, expected, apart in ((25, 450e3, 100e3), (45, 750e3, 150e3), (95, 90e3, 25e3)):
        assert of_time(result, "target_rate", 0, at)[-1] == pytest.approx(expected, abs=apart)


def test_it_backs_off_modestly_at_high_loss_as_libwebrtcs_test_asserts():
    # LossBasedControlDoesModestBackoffToHighLoss
    controller = inline("gcc", min="10kbit/s", start="300kbit/s", max="1500kbit/s")
    result = asserted("2Mbit/s", delay="200ms", controller=controller, loss=0.1)
    assert of_time(result, "target_rate", 0, 120)[-1] > 100e3


def test_it_gives_way_to_tcp_as_libwebrtcs_test_asserts():
    # IsFairToTCP
    upload = flow_text("upload", "a>b", '{ kind = "tcp", controller = "newreno" }', BULK)
    controller = inline("gcc", start="1Mbit/s")
    result = asserted("1Mbit/s", delay="50ms", controller=controller, flows=[upload])
    assert of_time(result, "target_rate", 0, 10)[-1] < 750e3


@pytest.mark.parametrize("change", [{}, {"loss": 0.1}])
def test_nothing_leaves_after_the_end_of_a_flow(change):
    # A side whose peer has left, or whose peer's BYE was lost, does not pad to the end of the run.
    result = talkspurt.run(
        call("5Mbit/s", **change),
        set={
            "flows.video.stop": "20s",
            "flows.video.reverse": REPAIRED,
            "record": "{ packets = true }",
        },
    )
    media = result.packets("video").filter(pl.col("ip_bytes") > 200)
    assert media["enqueued_s"].max() < 21


def test_packets_too_long_with_the_number_are_refused():
    source = '{ kind = "video", encoder = {}, packet = "1455B" }'
    with pytest.raises(talkspurt.ScenarioError, match="packet"):
        talkspurt.run(call(source=source))
    # RFC 8888 needs no extension: 1455 + 12 + 28 are 1495 bytes.
    talkspurt.run(call(source=source, controller=inline("gcc", feedback="rfc8888")))
