"""RTP sessions with a controller: what they send over paths that are too narrow, and what they refuse."""

from __future__ import annotations

import re
from functools import partial

import polars as pl
import pytest

import talkspurt
from command import dissected, needs_tshark
from conftest import row_of
from texts import BULK, UDP, flow_text, inline, link_text, scenario_text, speech

NADA = inline("nada")
ENCODER = '{ kind = "video", encoder = {} }'
QUEUE = '{ kind = "droptail", time = "300ms" }'


def call(rate="1Mbit/s", *, controller=NADA, source=ENCODER, queue=QUEUE, flows=(), **link):
    """Video under a controller over one link."""
    return scenario_text(
        "A session",
        "60s",
        link_text("line", "a>b", rate, "50ms", queue=queue, **link),
        flow_text("video", "a>b", UDP, source, controller=controller),
        *flows,
        seed=3,
    )


def sound(**more):
    return flow_text("sound", "a>b", UDP, speech("opus"), session="video", **more)


@pytest.mark.parametrize("rate", [400, 700, 1000, 1400, 3000])
def test_nada_takes_what_there_is_and_leaves_the_queue_short(rate):
    result = talkspurt.run(call(f"{rate}kbit/s"), set={"measure": '{ from = "20s" }'})
    row = row_of(result, "video")
    most = min(rate * 1000, 1.5e6)
    assert 0.85 * most < row["throughput_bps"] <= 1.03 * most
    # RFC 8698 §4.3: the standing queue is XREF·RMAX/r, beyond 50 ms of propagation.
    standing = 0.010 * 1.5e6 / most
    assert row["delay_p50_s"] - 0.050 < 1.5 * standing + 0.015
    assert row["lost_packets"] == row["discarded_packets"] == 0
    # A twentieth of the rate at most, and reports all the time.
    assert 0 < row["feedback_bytes"] * 8 / 40 < 0.05 * row["throughput_bps"]
    assert row["feedback_packets"] == pytest.approx(400, abs=40)
    assert row["transport"] == "udp+nada"


def test_marks_slow_a_session_without_a_loss():
    queue = '{ kind = "codel", ecn = true, packets = 1000 }'
    marked = inline("nada", ecn="ect1")
    result = talkspurt.run(call(controller=marked, queue=queue))
    assert result.links["marks"][0] > 0
    assert row_of(result, "video")["lost_packets"] == 0
    signal = result.gauges("video", "congestion_signal")["value"]
    plain = talkspurt.run(call(queue=queue))
    # Without ECN, CoDel drops instead.
    assert plain.links["marks"][0] == 0 and row_of(plain, "video")["lost_packets"] > 0
    assert signal.max() > 0.010


def test_sound_and_picture_share_one_controller_and_sound_never_waits():
    settled = {"record": "{ packets = true }", "measure": '{ from = "20s" }'}
    shared, alone = (talkspurt.run(call(flows=one), set=settled) for one in ([sound()], []))
    picture, voice = row_of(shared, "video"), row_of(shared, "sound")
    assert voice["transport"] == picture["transport"] == "udp+nada"
    assert voice["discarded_packets"] == 0 and voice["feedback_packets"] is None
    # The rate of both is that of one session.
    both = picture["throughput_bps"] + voice["throughput_bps"]
    assert both == pytest.approx(row_of(alone, "video")["throughput_bps"], rel=0.05)
    # Reports are as many as of one flow, and longer.
    feedback = [row_of(one, "video")["feedback_packets"] for one in (shared, alone)]
    assert feedback[0] == pytest.approx(feedback[1], rel=0.05)
    # Opus leaves each 20 ms, although video waits for the pacer.
    first = shared.packets("sound").filter(side="from", link="line")["enqueued_s"]
    gaps = first.diff().drop_nulls()
    assert gaps.max() < 0.022


def test_a_session_whose_feedback_ends_stops_for_good():
    fixed = inline("fixed", rate="600kbit/s")
    down = '[{ at = "20s", state = "down" }, { at = "40s", state = "up" }]'
    result = talkspurt.run(call("10Mbit/s", controller=fixed, events=down))
    sent = result.series("video").filter(pl.col("sent_packets") > 0)["time_s"]
    # RFC 8083 §4.1: five seconds after the last report.
    assert 24.5 <= sent.max() <= 26
    assert row_of(result, "video")["discarded_packets"] > 1000


def test_a_fixed_rate_that_tcp_would_not_send_at_is_stopped():
    # RFC 8083 §4.3: ten times 1240 B / (0.1 s √(2 · 0.3 / 3)) are 2.2 Mbit/s.
    fixed = inline("fixed", rate="5Mbit/s")
    path = {"source": '{ kind = "video", encoder = { max = "5Mbit/s" } }', "back": "{ loss = 0.0 }"}
    path["loss"] = 0.3
    result = talkspurt.run(call("10Mbit/s", controller=fixed, **path))
    assert result.series("video").filter(pl.col("sent_packets") > 0)["time_s"].max() < 10
    # A hundredth of this loss is borne.
    borne = talkspurt.run(call("10Mbit/s", controller=fixed, **{**path, "loss": 0.003}))
    assert borne.series("video").filter(pl.col("sent_packets") > 0)["time_s"].max() > 59


@pytest.mark.parametrize(
    ("transport", "name"),
    [
        ('{ kind = "tcp", controller = "cubic" }', "tcp-cubic+nada"),
        ('{ kind = "dccp", ccid = 3 }', "dccp-ccid3+nada"),
        ('{ kind = "tfrc" }', "tfrc+nada"),
        ('{ kind = "sctp" }', "sctp+nada"),
    ],
)
def test_a_session_runs_over_a_transport_with_control_of_its_own(transport, name):
    result = talkspurt.run(call(), set={"flows.video.transport": transport})
    row = row_of(result, "video")
    assert row["transport"] == name
    assert 1e5 < row["goodput_bps"] < 1e6
    assert result.gauges("video", "target_rate")["value"].max() > 1.5e5


def test_lost_feedback_is_no_lost_media():
    """One feedback packet in twenty is lost on the way back, and nothing on the way out."""
    path = {"back": "{ loss = 0.05 }"}
    plain, lossy = (
        row_of(talkspurt.run(call(**one), set={"measure": '{ from = "20s" }'}), "video")
        for one in ({}, path)
    )
    assert lossy["throughput_bps"] > 0.9 * plain["throughput_bps"]


def test_flows_of_a_session_that_overtake_each_other_lose_nothing():
    result = talkspurt.run(call(flows=[sound()], queue='{ kind = "fq_codel" }'))
    video = row_of(result, "video")
    assert video["throughput_bps"] > 6e5
    # Video has a queue of its own, which its session keeps short.
    assert video["delay_p95_s"] < 0.150


def test_a_session_slows_down_while_no_feedback_comes():
    """From 20 s to 40 s nothing comes back; the rate halves each second, to the lowest."""
    back = '{ steps = [{ at = "20s", loss = 1.0 }, { at = "40s", loss = 0.0 }] }'
    result = talkspurt.run(call("3Mbit/s", back=back))
    rate = dict(result.series("video").select("time_s", "sent_bytes").iter_rows())
    before, during, after = (
        sum(sent for at, sent in rate.items() if begin < at <= begin + 5) * 8 / 5
        for begin in (15, 30, 53)
    )
    assert before > 1.3e6 and during < 2e5 and after > 1e6


def test_a_source_that_pauses_does_not_stop_its_session():
    fixed = inline("fixed", rate="100kbit/s")
    talk = '{ kind = "speech", codec = "pcmu", talkspurts = { on = "5s", off = "8s" } }'
    result = talkspurt.run(call("10Mbit/s", controller=fixed, source=talk), set={"seed": 5})
    assert result.series("video").filter(pl.col("sent_packets") > 0)["time_s"].max() > 50
    assert row_of(result, "video")["discarded_packets"] == 0


PAIR = {"flows.video.reverse": ENCODER}


@pytest.mark.parametrize(
    "change",
    [
        # Video both ways; one side stops before the other; parity packets when a session stops.
        PAIR,
        PAIR | {"flows.video.stop": "30s"},
        {
            "flows.video.source": '{ kind = "speech", codec = "pcmu", flexfec = { columns = 5 } }',
            "flows.video.controller": inline("fixed", rate="100kbit/s"),
            "links.line.events": '[{ at = "10.05s", state = "down" }]',
        },
        {
            "flows.video.controller": inline("fixed", rate="500kbit/s"),
            "flows.sound.reverse": speech("opus"),
            "flows.sound.stop": "10s",
            "flows.video.stop": "20s",
        },
        {"flows.video.source.packet": "1B", "flows.video.controller.max": "200kbit/s"},
        {"flows.sound.source": speech("pcmu", packet="60ms", red=2), **PAIR},
    ],
)
def test_no_session_keeps_its_run_from_ending(change):
    result = talkspurt.run(call(flows=[sound()]), set=change)
    assert row_of(result, "video")["sent_packets"] > 0


def test_two_videos_of_a_session_get_equal_parts():
    second = flow_text("second", "a>b", UDP, ENCODER, session="video")
    result = talkspurt.run(call(flows=[second]), set={"measure": '{ from = "20s" }'})
    rates = [row_of(result, name)["throughput_bps"] for name in ("video", "second")]
    assert rates[0] == pytest.approx(rates[1], rel=0.1)
    # The other gets all when one has stopped.
    early = {"flows.second.stop": "20s", "measure": '{ from = "30s" }'}
    alone = row_of(talkspurt.run(call(flows=[second]), set=early), "video")["throughput_bps"]
    assert alone > 1.7 * rates[0]


def rates(result, *names):
    return [row_of(result, name)["throughput_bps"] for name in names]


@pytest.mark.parametrize("controller", ["nada", "gcc"])
def test_flows_of_a_session_share_by_priority_what_they_can_use(controller):
    flow = partial(flow_text, ends="a>b", source=ENCODER, session="video")
    text = call("3Mbit/s", controller=inline(controller, max="3Mbit/s"),
                flows=[flow("second", priority=1), flow("third", priority=1)])  # fmt: skip
    settled = {"flows.video.priority": 2, "measure": '{ from = "30s" }'}
    first, second, third = rates(talkspurt.run(text, set=settled), "video", "second", "third")
    assert first / second == pytest.approx(2, rel=0.1) and third == pytest.approx(second, rel=0.1)
    # What the first cannot use is for the others.
    limit = {"flows.video.source.encoder.max": "600kbit/s"}
    limited = talkspurt.run(text, set=settled | limit)
    first, second, third = rates(limited, "video", "second", "third")
    assert 5e5 < first < 7e5
    assert second == pytest.approx(third, rel=0.1) and second > 1.3 * first


def test_gcc_does_not_fall_below_what_its_sources_need():
    upload = flow_text("upload", "a>b", '{ kind = "tcp", controller = "cubic" }', BULK)
    text = call("5Mbit/s", controller=inline("gcc"), flows=[sound(), upload],
                queue='{ kind = "droptail", time = "1s" }')  # fmt: skip
    result = talkspurt.run(text, set={"measure": '{ from = "40s" }'})
    target = result.gauges("video", "target_rate").filter(pl.col("time_s") > 40)["value"]
    # 100 kbit/s of pictures, 32 kbit/s of Opus, and headers of 30 and 50 packets a second.
    least = 100e3 + 30 * 8 * 28 + 32e3 + 50 * 8 * 40
    assert target.min() == pytest.approx(least, rel=0.01)
    assert row_of(result, "video")["goodput_bps"] > 0.85 * 1e5


def test_coupled_sessions_share_by_priority():
    def three(**more):
        flows = [flow_text(name, "a>b", UDP, ENCODER, controller=NADA, **more)
                 for name in ("second", "third")]  # fmt: skip
        settled = {"flows.video.priority": 2, "measure": '{ from = "30s" }'} if more else {}
        return talkspurt.run(call("2Mbit/s", flows=flows), set=settled)

    result = three(coupled="video")
    first, second, third = rates(result, "video", "second", "third")
    assert first / second == pytest.approx(2, rel=0.1) and third == pytest.approx(second, rel=0.1)
    assert 0.8 * 2e6 < first + second + third < 2.05e6
    # RFC 8699 §5.3.1: r_ref of all, at any time, is in proportion.
    targets = [result.gauges(name, "target_rate")["value"][-1] for name in ("video", "third")]
    assert targets[0] / targets[1] == pytest.approx(2, rel=0.05)


def test_a_coupled_session_leaves_its_part_to_the_others_when_it_stops():
    second = flow_text("second", "a>b", UDP, ENCODER, controller=NADA, coupled="video")
    early = {"flows.second.stop": "20s", "measure": '{ from = "30s" }'}
    result = talkspurt.run(call("1200kbit/s", flows=[second]), set=early)
    assert row_of(result, "video")["throughput_bps"] > 0.8 * 1.2e6


def test_an_encoder_leaves_head_room():
    set_ = {"flows.video.source.encoder.headroom": 0.5, "measure": '{ from = "20s" }'}
    fixed = inline("fixed", rate="1Mbit/s")
    half, whole = (
        rates(talkspurt.run(call("10Mbit/s", controller=fixed), set=change), "video")[0]
        for change in (set_, {"measure": set_["measure"]})
    )
    assert half / whole == pytest.approx(0.5, rel=0.05)


def test_a_shared_screen_sends_when_it_changes():
    fixed = inline("fixed", rate="1Mbit/s")
    source = '{ kind = "video", encoder = { changes = "5s" }, repair = {} }'
    result = talkspurt.run(call("10Mbit/s", controller=fixed, source=source))
    row = row_of(result, "video")
    # 60 s have about 12 changes of 8 frames, and a small frame in each other second.
    assert 80 < row["video_frames"] < 250
    assert row["throughput_bps"] < 2e5
    assert row["video_freezes"] is None and row["video_frozen_s"] is None
    gaps = result.video_frames("video")["captured_s"].diff().drop_nulls()
    assert gaps.max() == pytest.approx(1, abs=0.001)


def test_an_encoder_reads_the_sizes_of_its_frames(tmp_path):
    # Odd frames are four times as large; key frames come first.
    rows = [f"{4000 * (1 + 3 * (n % 2))},{8000 * (1 + 3 * (n % 2))}" for n in range(40)]
    (tmp_path / "sizes.csv").write_text("\n".join(["1Mbit/s,2Mbit/s", *rows]) + "\n")
    source = (
        '{ kind = "video", file = "sizes.csv", frame = "100ms", encoder = { max = "5Mbit/s" } }'
    )
    fixed = inline("fixed", rate="1550kbit/s")
    path = tmp_path / "trace.toml"
    path.write_text(call("10Mbit/s", controller=fixed, source=source))
    result = talkspurt.run(path)
    packets = result.video_frames("video")["packets"].to_list()[20:60]
    # 1550 kbit/s of IP packets are about 1.5 Mbit/s of payload, in the middle between both columns:
    # 6 kB and 24 kB in packets of 1200 bytes.
    assert {*packets[::2]} == {5} and {*packets[1::2]} == {20}


def test_an_encoder_follows_a_transport_that_asks_for_rates():
    text = scenario_text(
        "TFRC",
        "30s",
        link_text("line", "a>b", "600kbit/s", "20ms"),
        flow_text("video", "a>b", '{ kind = "tfrc" }', ENCODER),
    )
    rate = row_of(talkspurt.run(text), "video")["throughput_bps"]
    assert 3e5 < rate < 6.1e5


def test_equal_seeds_give_equal_sessions():
    texts = [call(flows=[sound()]), call(flows=[sound()])]
    first, second = (talkspurt.run(text).manifest["digest"] for text in texts)
    assert first == second
    assert talkspurt.run(call(), set={"seed": 4}).manifest["digest"] != first


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"flows.video.source": BULK}, "flows.video.controller: needs sources that send RTP"),
        ({"flows.video.rtcp.enabled": False}, "needs the feedback that RTCP carries"),
        ({"flows.video.controller.max": "100kbit/s"}, "controller.max: 100kbit/s is below `min`"),
        ({"flows.video.controller.feedback": "0ms"}, "controller.feedback: 0ms"),
        ({"flows.video.reverse": BULK}, "needs sources that send RTP"),
        ({"flows.sound.dscp": 46}, "differs from that of"),
        (
            {"flows.video.controller.kind": "scream"},
            'the nearest is controller = { kind = "nada" }',
        ),
        ({"flows.video.controller": inline("gcc", min="1kbit/s")}, "below 5kbit/s"),
        ({"flows.video.controller": inline("gcc", start="3Gbit/s")}, "above 1Gbit/s"),
        ({"flows.video.controller": '{ kind = "fixed" }'}, "rate"),
        ({"flows.video.controller": inline("fixed", rate="1Mbit/s", pacing="1kbit/s")}, "pacing"),
        ({"flows.video.source.encoder.max": "1kbit/s"}, "encoder.max: 1kbit/s is below `min`"),
        ({"flows.video.source.rate": "1Mbit/s"}, "leave `rate` or `encoder` out"),
        ({"flows.sound.session": "vidio"}, 'did you mean "video"'),
        ({"flows.sound.session": "sound"}, "is this flow itself"),
        ({"flows.sound.controller": inline("nada", max="1Mbit/s")}, "belongs to the session"),
        ({"flows.sound.transport": '{ kind = "tfrc" }'}, "differs from that of"),
        ({"flows.video.coupled": "vidio"}, "there is no flow"),
        ({"flows.video.coupled": "video"}, "is this flow itself"),
        ({"flows.sound.coupled": "video"}, "flows.video.coupled ="),
        ({"flows.video.coupled": "sound"}, '"sound" belongs to "video"'),
        ({"flows.sound.priority": 0}, "it must be 0.01 to 100"),
        ({"flows.video.source.encoder.headroom": 1}, "it must be 0 to 0.9"),
        ({"flows.video.source.encoder.changes": "0s"}, "at least 1ms"),
        ({"flows.video.source.file": "no.csv"}, "no.csv"),
    ],
)
def test_what_makes_no_session_is_refused(change, expected):
    with pytest.raises(talkspurt.ScenarioError, match=re.escape(expected)):
        talkspurt.run(call(flows=[sound()]), set=change)


def test_only_controllers_that_can_be_coupled_are():
    second = flow_text("second", "a>b", UDP, ENCODER, controller=inline("gcc"), coupled="video")
    with pytest.raises(talkspurt.ScenarioError, match="use `session`"):
        talkspurt.run(call(flows=[second]))
    with pytest.raises(talkspurt.ScenarioError, match="this one is alone"):
        talkspurt.run(call(), set={"flows.video.priority": 2})


def test_an_encoder_without_a_controller_is_refused_with_the_remedy():
    text = call().replace(f"controller = {NADA}\n", "")
    with pytest.raises(talkspurt.ScenarioError, match="add controller = "):
        talkspurt.run(text)


@needs_tshark
def test_wireshark_reads_the_feedback(tmp_path):
    result = talkspurt.run(call(flows=[sound()]), set={"record.pcapng": ["line"]})
    result.save(tmp_path / "run", report=False)
    names = ("rtcp.pt", "rtcp.rtpfb.fmt", "rtcp.length_check", "_ws.malformed")
    rows = dissected(
        tmp_path / "run" / "line.pcapng",
        *names,
        where="ip.src == 10.0.0.2",
        options=["-d", "udp.port==49152-49155,rtcp"],
    )
    assert {row[3] for row in rows} == {""} and {row[2] for row in rows} == {"1"}
    # Format 11 is RFC 8888's (§3.1); others are reports and goodbyes.
    feedback = [row for row in rows if row[0] == "205"]
    assert {row[1] for row in feedback} == {"11"}
    assert len(feedback) == row_of(result, "video")["feedback_packets"]


REPAIRED = '{ kind = "video", encoder = {}, repair = {} }'
FIXED = inline("fixed", rate="600kbit/s", circuit_breaker=False)


def repaired(source=REPAIRED, **link):
    return talkspurt.run(call("3Mbit/s", source=source, controller=FIXED, **link))


def test_retransmissions_complete_what_the_network_lost():
    results = [repaired(one, loss=0.01) for one in (ENCODER, REPAIRED)]
    plain, again = (row_of(one, "video") for one in results)
    assert 0 < plain["video_frames_complete"] < plain["video_frames"]
    assert plain["repair_packets"] is None and plain["feedback_packets"] > 0
    assert again["video_frames_complete"] == again["video_frames"]
    # Each packet of media that was lost, and again those whose retransmission was.
    lost = again["lost_packets"]
    assert lost > 20 and again["repair_packets"] == pytest.approx(lost, abs=3)
    assert again["repair_bytes"] < 1300 * again["repair_packets"]
    # One way, the request, and the way again; then the packet is there.
    frames = results[1].video_frames("video")
    decodable = frames["decodable_s"] - frames["captured_s"]
    longest = decodable.max() - decodable.median()
    assert 0.1 < longest < 0.5
    # The viewer hardly notices: frames wait for what may be repeated.
    settled = frames.filter(pl.col("captured_s") > 20)["shown_s"].diff().drop_nulls()
    assert settled.max() < 0.12 < longest
    assert again["frame_delay_p50_s"] > decodable.median() + 0.05


def test_without_nack_a_loss_costs_frames_until_a_key_frame():
    asks = '{ kind = "video", encoder = {}, repair = { nack = false } }'
    result = repaired(asks, loss=0.005)
    row = row_of(result, "video")
    frames = result.video_frames("video")
    keys = frames.filter(kind="key")
    broken = frames.filter(pl.col("complete_s").is_not_null() & pl.col("decodable_s").is_null())
    assert row["repair_packets"] is None and keys.height > 5 and broken.height > keys.height
    assert set(frames["kind"]) == {"key", "inter"}
    assert row["video_freezes"] > 0
    # A frame is decodable with the last of those since the key frame before it.
    chain, expected = None, []
    for frame in frames.iter_rows(named=True):
        complete = frame["complete_s"]
        if frame["kind"] == "key":
            chain = complete
        else:
            chain = None if None in (chain, complete) else max(chain, complete)
        expected.append(chain)
    got = frames["decodable_s"].to_list()
    assert all(one in (None, other) for one, other in zip(got, expected, strict=True))
    assert sum(one != other for one, other in zip(got, expected, strict=True)) < 5


@pytest.mark.parametrize(
    "transport",
    ['{ kind = "tcp", controller = "cubic" }', '{ kind = "tfrc" }', '{ kind = "dccp", ccid = 3 }'],
)
def test_repair_goes_over_other_transports(transport):
    text = call("3Mbit/s", source=REPAIRED, loss=0.01).replace(UDP, transport)
    row = row_of(talkspurt.run(text), "video")
    is_reliable = "tcp" in transport
    assert (row["repair_packets"] is None) == is_reliable
    assert row["video_frames_complete"] > 0.9 * row["video_frames"]


@needs_tshark
def test_wireshark_reads_requests_and_retransmissions(tmp_path):
    result = talkspurt.run(
        call("3Mbit/s", source=REPAIRED, controller=FIXED, loss=0.02),
        set={"record.pcapng": ["line"], "record.packets": True},
    )
    result.save(tmp_path / "run", report=False)
    file = tmp_path / "run" / "line.pcapng"
    options = ["-d", "udp.port==49152-49153,rtp", "-o", "rtp.rfc2198_payload_type:99"]
    names = (
        "rtcp.pt",
        "rtcp.rtpfb.fmt",
        "rtcp.rtpfb.nack_pid",
        "rtcp.length_check",
        "_ws.malformed",
    )
    control = dissected(
        file,
        *names,
        where="ip.src == 10.0.0.2",
        options=["-d", "udp.port==49152-49153,rtcp"],
    )
    assert {row[4] for row in control} == {""} and {row[3] for row in control} == {"1"}
    nacks = [row[2] for row in control if row[0] == "205" and row[1] == "1"]
    assert len(nacks) > 20 and all(nacks)
    media = dissected(
        file, "rtp.p_type", "rtp.ssrc", "rtp.payload", "_ws.malformed", where="rtp", options=options
    )
    assert {row[3] for row in media} == {""}
    again = [row for row in media if row[0] == "97"]
    assert len(again) == row_of(result, "video")["repair_packets"]
    assert len({row[1] for row in again}) == 1 != len({row[1] for row in media})
    # RFC 4588 §4: the original sequence number comes first; it was requested.
    asked = {number for row in nacks for number in row.split(",")}
    assert {str(int(row[2].replace(":", "")[:4], 16)) for row in again} & asked


@needs_tshark
def test_wireshark_reads_requests_for_key_frames(tmp_path):
    asks = '{ kind = "video", encoder = {}, repair = { nack = false } }'
    text = call("3Mbit/s", source=asks, controller=FIXED, loss=0.02)
    talkspurt.run(text, set={"record.pcapng": ["line"]}).save(tmp_path / "run", report=False)
    rows = dissected(
        tmp_path / "run" / "line.pcapng",
        "rtcp.pt", "rtcp.psfb.fmt", "rtcp.length_check", "_ws.malformed",
        where="ip.src == 10.0.0.2",
        options=["-d", "udp.port==49152-49153,rtcp"],
    )  # fmt: skip
    assert {row[3] for row in rows} == {""} and {row[2] for row in rows} == {"1"}
    # RFC 4585 §6.3.1: payload-specific feedback of format 1.
    requests = [row for row in rows if row[0] == "206"]
    assert len(requests) > 5 and {row[1] for row in requests} == {"1"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"flows.video.source": '{ kind = "video", rate = "1Mbit/s", repair = {} }'},
         "repair: needs an encoder"),
        ({"flows.video.rtcp": "{ enabled = false }"}, "turns off"),
        ({"flows.video.source.packet": "1B"}, "at least 2B"),
        ({"flows.video.source.repair": "{ pli = true }"}, "nack"),
        ({"flows.video.source.repair.nack": "3"}, "true or false"),
    ],
)  # fmt: skip
def test_what_cannot_be_repaired_is_refused(change, expected):
    with pytest.raises(talkspurt.ScenarioError, match=expected):
        talkspurt.run(call(source=REPAIRED), set=change)


def test_how_much_later_than_its_sound_a_picture_is_seen(tmp_path):
    slow = sound(playout='{ buffer = "900ms" }')
    early = talkspurt.run(call(flows=[slow])).save(tmp_path / "early", report=False)
    assert row_of(talkspurt.load(early), "video")["av_skew_s"] < 0
    result = talkspurt.run(call(flows=[sound()]))
    video, voice = row_of(result, "video"), row_of(result, "sound")
    skew = video["frame_delay_p50_s"] - voice["mouth_to_ear_p50_s"]
    assert video["av_skew_s"] == pytest.approx(skew)
    assert voice["av_skew_s"] is None
    alone = row_of(talkspurt.run(call()), "video")
    assert alone["av_skew_s"] is None
