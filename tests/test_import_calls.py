"""Calls in captures: what shares their ports, sources of one packet, clocks that drift, session descriptions,
reports, redundancy, repair, and the jitter buffers of scenarios."""

import json
import struct

import polars as pl
import pytest

import talkspurt
from captures import ipv4, written
from command import refused, succeed
from conftest import ROOT, row_of
from talkspurt import import_trace as read
from talkspurt.analysis.answer import answer
from talkspurt.importing import drift

HERE, THERE = (10, 0, 0, 1), (10, 0, 0, 2)


def imported(tmp_path, packets, **more):
    return read([written(tmp_path / "call.pcap", packets)], **more)


def datagram(payload, *, ports=(4000, 4002), back=False):
    one, other = reversed(ports) if back else ports
    head = struct.pack(">HHHH", one, other, 8 + len(payload), 0)
    return ipv4(17, head + payload, back=back)


def rtp(number, stamp, kind=0, ssrc=7, payload=bytes(160)):
    head = struct.pack(">BBHII", 0x80, kind, number % 65536, stamp % 2**32, ssrc)
    return head + payload


def speech(count, *, kind=0, ssrc=7, ticks=160, back=False, payload=bytes(160), every=0.02):
    return [
        (i * every, datagram(rtp(100 + i, ticks * i, kind, ssrc, payload), back=back))
        for i in range(count)
    ]


def counts(row):
    return [row[f"{what}_packets"] for what in ("sent", "received", "lost")]


def frames(result):
    (found,) = result.manifest["imported"]["frames"]
    kinds = ("data", "repair", "control", "duplicate", "reassembled", "not_imported")
    assert sum(found[kind] for kind in kinds) == found["captured"]
    return {kind: found[kind] for kind in kinds if found[kind]}


def stun(number):
    return struct.pack(">HHIIII", 1, 0, 0x2112A442, number, 7, 9)


def dtls(kind, number):
    return struct.pack(">BHHHIH", kind, 0xFEFD, 1, 0, number, 200) + bytes(200)


@pytest.mark.parametrize("records", [300, 700])
def test_a_data_channel_beside_the_call(records, tmp_path):
    """However much of it there is (RFC 7983): BUNDLE has all on the same ports (RFC 9143)."""
    beside = [(0.003 + i / 70, datagram(dtls(23, i))) for i in range(records)]
    beside += [(0.001 + i, datagram(dtls(22, i))) for i in range(3)]
    beside += [(0.002 + i, datagram(stun(i), back=i % 2 == 1)) for i in range(4)]
    result = imported(tmp_path, speech(500) + beside)
    call, channel = result.flows.to_dicts()
    assert (call["name"], counts(call)) == ("rtp-1", [500, 500, 0])
    assert (channel["name"], channel["received_packets"]) == ("dtls-1", records)
    assert frames(result) == {"data": 500 + records, "control": 7}


def test_what_answers_one_way_media_is_counted(tmp_path):
    answers = [(i / 10, datagram(b"\x00\x01" + bytes(18), back=True)) for i in range(50)]
    result = imported(tmp_path, speech(200) + answers)
    assert counts(result.flows.row(0, named=True)) == [200, 200, 0]
    assert frames(result) == {"data": 200, "control": 50}


def test_sources_of_one_packet_are_listed_and_not_scored(tmp_path):
    single = [(1.001 + i / 100, datagram(rtp(5000 + i, 5, 0, 1000 + i))) for i in range(150)]
    result = imported(tmp_path, speech(200) + single)
    rows = result.flows.to_dicts()
    assert counts(rows[0]) == [200, 200, 0] and rows[0]["mos"] == pytest.approx(4.41, abs=0.01)
    assert len(rows) == 101 and all(row["mos"] is None for row in rows[1:])
    assert frames(result) == {"data": 300, "not_imported": 50}


@pytest.mark.parametrize("ppm", [-100, 100])
def test_a_clock_that_drifts_makes_nothing_late(ppm, tmp_path):
    """Half an hour of a lossless call; a buffer that does not follow the clock fails in the end."""
    call = speech(90_000, payload=bytes(20), every=0.02 * (1 + ppm * 1e-6))
    result = imported(tmp_path, call)
    (row,) = result.flows.to_dicts()
    assert row["mos"] == pytest.approx(4.41, abs=0.02)
    assert row["concealed_ratio"] < 1e-3
    facts = result.manifest["imported"]["flows"]["rtp-1"]
    assert facts["clock_drift_ppm"] == pytest.approx(ppm, abs=0.01)
    assert "100 ± 0 ppm" in row["quality_note"]
    if ppm > 0:
        fixed = imported(tmp_path, call, playout="60ms")
        assert fixed.flows["concealed_ratio"][0] > 0.5


def test_a_drift_is_that_of_the_fastest_packets():
    import random

    rng = random.Random(5)
    times = [(i / 50, i / 50 * (1 + 70e-6) + 0.04 + rng.expovariate(100)) for i in range(6000)]
    found = drift.found(times)
    assert found.ppm == pytest.approx(70, abs=found.bound_ppm + 1) and found.bound_ppm < 40
    assert drift.found(times[:1000]) is None
    wrong = drift.found([(2 * media_s, arrival) for media_s, arrival in times])
    assert not wrong.is_clock and "by 15999 a second" in wrong.note("rtp-1", 8000)


SDP = """v=0\r
o=- 1 1 IN IP4 10.0.0.2\r
s=-\r
c=IN IP4 10.0.0.2\r
t=0 0\r
m=audio 4002 RTP/AVP 96 101\r
a=rtpmap:96 opus/48000/2\r
a=rtpmap:101 telephone-event/8000\r
"""
OFFER = (
    "INVITE sip:b@10.0.0.2 SIP/2.0\r\nContent-Type: application/sdp\r\n"
    f"Content-Length: {len(SDP)}\r\n\r\n{SDP}"
)


@pytest.mark.parametrize("how", ["sip", "sap", "file", "option"])
def test_a_session_description_names_the_payload(how, tmp_path):
    call = speech(200, kind=96, ticks=960)
    more, carrier = {}, None
    if how == "sip":
        carrier = datagram(OFFER.encode(), ports=(5060, 5060), back=True)
    elif how == "sap":
        head = b"\x20\x00\x12\x34" + bytes((10, 0, 0, 2)) + b"application/sdp\x00"
        carrier = datagram(head + SDP.encode(), ports=(9875, 9875))
    elif how == "file":
        (tmp_path / "call.sdp").write_text(SDP, newline="")
        more = {"sdp": tmp_path / "call.sdp"}
    else:
        more = {"payloads": {96: "opus/48000/2"}}
    packets = call if carrier is None else [(-1.0, carrier), *call]
    result = imported(tmp_path, packets, **more)
    facts = result.manifest["imported"]["flows"]["rtp-1"]
    assert (facts["encoding"], facts["clock_hz"]) == ("opus", 48000)
    row = row_of(result, "rtp-1")
    assert row["estimated_mos"] > 3.5 and row["jitter_s"] is not None


def test_without_a_description_the_option_is_named(tmp_path):
    result = imported(tmp_path, speech(50, kind=96, ticks=960))
    assert any("--payload 96=ENCODING/CLOCK" in one for one in result.manifest["imported"]["notes"])


def sender_report(ssrc, ntp, blocks=()):
    body = struct.pack(">IQIII", ssrc, ntp, 0, 0, 0) + b"".join(blocks)
    return struct.pack(">BBH", 0x80 | len(blocks), 200, len(body) // 4) + body


def receiver_report(ssrc, blocks):
    body = struct.pack(">I", ssrc) + b"".join(blocks)
    return struct.pack(">BBH", 0x80 | len(blocks), 201, len(body) // 4) + body


def block(ssrc, lost, last_sr, delay, jitter=80):
    fraction = struct.pack(">I", lost & 0xFFFFFF)[1:]
    return struct.pack(">IB", ssrc, 26) + fraction + struct.pack(">IIII", 0, jitter, last_sr, delay)


@pytest.mark.parametrize("muxed", [True, False])
def test_reports_of_the_other_end_are_beside_ours(muxed, tmp_path):
    """The round trip is between the capture and the receiver: 80 ms less 50 ms at the receiver."""
    ports = (4000, 4002) if muxed else (4001, 4003)
    ntp = 0x1234_5678_9ABC_DEF0
    last = ntp >> 16 & 0xFFFFFFFF
    reports = [
        (1.001, datagram(sender_report(7, ntp), ports=ports)),
        (1.081, datagram(receiver_report(9, [block(7, 12, last, round(0.05 * 65536))]),
                         ports=ports, back=True)),
        (1.5, datagram(struct.pack(">BBHIIHH", 0x81, 205, 3, 9, 7, 130, 1),
                       ports=ports, back=True)),
    ]  # fmt: skip
    result = imported(tmp_path, speech(200) + reports)
    gauges = {row["gauge"]: row["value"] for row in result.gauges("rtp-1").to_dicts()}
    assert gauges["rtcp_rtt"] == pytest.approx(0.03, abs=1e-4)
    assert gauges["reported_loss"] == 26 / 256
    assert gauges["reported_jitter"] == 80 / 8000
    facts = result.manifest["imported"]["flows"]["rtp-1"]
    assert facts["reported_lost_packets"] == 12 and facts["nacked_packets"] == 2
    assert facts["rtcp"] == {"sender": 1}
    assert result.events("rtp-1")["event"].to_list() == ["nack"]
    assert frames(result) == {"data": 200, "control": 3}
    assert counts(result.flows.row(0, named=True)) == [200, 200, 0]


def feedback(form, content):
    """A packet of transport-layer feedback (RFC 4585 §6.1), padded to words by its reader's rule."""
    content += bytes(-len(content) % 4)
    return struct.pack(">BBH", 0x80 | form, 205, len(content) // 4) + content


def test_congestion_control_feedback_is_drawn(tmp_path):
    """RFC 8888 §3.1: of 100 to 103 one is lost and one marked; transport-wide: 3 of 4 arrived."""
    metrics = struct.pack(">HHHH", 0x8000 | 10, 0, 0xE000 | 5, 0x8000)
    ccfb = struct.pack(">IIHH", 9, 7, 100, 4) + metrics + struct.pack(">I", 1234)
    chunks = struct.pack(">H", 0x8000 | 0b11101 << 9) + bytes([4, 4, 4])
    twcc = struct.pack(">IIHHI", 9, 7, 100, 5, 5 << 8 | 1) + chunks
    reports = [
        (1.5, datagram(feedback(11, ccfb), ports=(4001, 4003), back=True)),
        (1.6, datagram(feedback(15, twcc), ports=(4001, 4003), back=True)),
    ]
    result = imported(tmp_path, speech(200) + reports)
    gauges = result.gauges("rtp-1").filter(pl.col("gauge").str.starts_with("feedback"))
    assert gauges.select("time_s", "side", "gauge", "value").rows() == [
        (1.5, "from", "feedback_loss", 0.25),
        (1.5, "from", "feedback_marks", pytest.approx(1 / 3)),
        (1.6, "from", "feedback_loss", pytest.approx(0.2)),
    ]


def test_retransmissions_are_repair(tmp_path):
    """RFC 4588 §8.6: a group FID names the source and that of its retransmissions."""
    described = SDP + "a=rtpmap:97 rtx/48000\r\na=fmtp:97 apt=96\r\na=ssrc-group:FID 7 8\r\n"
    (tmp_path / "rtx.sdp").write_text(described.replace("96 101", "96 97"), newline="")
    again = [(1 + i / 10, datagram(rtp(i, 0, 97, 8, b"\x00\x69" + bytes(50)))) for i in range(5)]
    result = imported(tmp_path, speech(200, kind=96, ticks=960) + again, sdp=tmp_path / "rtx.sdp")
    assert frames(result) == {"data": 200, "repair": 5}
    assert result.manifest["imported"]["flows"]["rtp-1"]["repair_packets"] == 5
    assert counts(result.flows.row(0, named=True)) == [200, 200, 0]


@pytest.mark.parametrize("how", ["plain", "late", "dtls"])
def test_what_is_retransmitted_in_time_is_played(how, tmp_path):
    """RFC 4588 §4: the number of the packet in front of its payload; behind SRTP it is not read."""
    described = SDP.replace("96 101", "0 97").replace("96 opus/48000/2", "0 PCMU/8000")
    described += "a=rtpmap:97 rtx/8000\r\na=fmtp:97 apt=0\r\na=ssrc-group:FID 7 8\r\n"
    (tmp_path / "rtx.sdp").write_text(described, newline="")
    tone = bytes(0x80 + i % 40 for i in range(160))
    call = speech(200, payload=tone)
    lost = (80, 81, 150)
    again = [
        (i / 50 + (0.04 if how != "late" else 1.5),
         datagram(rtp(i, 160 * i, 97, 8, struct.pack(">H", 100 + i) + tone)))
        for i in lost[:2]
    ]  # fmt: skip
    kept = [packet for i, packet in enumerate(call) if i not in lost]
    beside = [(0.001, datagram(dtls(22, 1)))] if how == "dtls" else []
    file = tmp_path / "rtx.sdp"
    result = imported(tmp_path, kept + again + beside, sdp=file, playout="80ms")
    row = row_of(result, "rtp-1")
    assert counts(row) == [200, 197, 3]
    facts = result.manifest["imported"]["flows"]["rtp-1"]
    assert facts.get("repaired_packets") == (None if how == "dtls" else 2)
    fates = result.frames("rtp-1")["fate"].value_counts().rows()
    assert dict(fates) == {
        "plain": {"played": 199, "lost": 1}, "late": {"played": 197, "late": 2, "lost": 1},
        "dtls": {"played": 197, "lost": 3},
    }[how]  # fmt: skip
    if how == "plain":
        whole = imported(tmp_path, call, sdp=file, playout="80ms").audio("rtp-1")
        heard = result.audio("rtp-1").received
        gap = slice(140 * 160, None)
        assert (heard[: gap.start] == whole.received[: gap.start]).all()
        assert (heard[gap] != whole.received[gap]).any()


def red(number):
    """RFC 2198 §3: a copy of the packet before, of G.711, and the packet."""
    head = struct.pack(">I", 1 << 31 | 0 << 24 | 160 << 10 | 160) + b"\x00"
    return head + bytes([number % 251]) * 160 + bytes([(number + 1) % 251]) * 160


def test_redundant_data_recover_what_was_lost(tmp_path):
    call = [(i / 50, datagram(rtp(i, 160 * i, 121, 7, red(i)))) for i in range(300) if i % 10 != 5]
    result = imported(tmp_path, call, payloads={121: "red/8000"})
    (row,) = result.flows.to_dicts()
    assert row["lost_packets"] == 30 and row["recovered_packets"] == 30
    assert row["loss_ratio"] == 0
    assert result.manifest["imported"]["flows"]["rtp-1"]["redundant_blocks"] == 270


def test_streams_of_both_ends_of_a_bundle_are_paired_by_their_type(tmp_path):
    sound = [(0, 7, False), (0, 17, True)]
    picture = [(96, 8, False), (96, 18, True)]
    packets = [
        packet
        for kind, ssrc, back in (*sound, *picture)
        for packet in speech(100, kind=kind, ssrc=ssrc, back=back)
    ]
    result = imported(tmp_path, packets, payloads={96: "VP8/90000"})
    assert result.flows["name"].to_list() == ["rtp-1", "rtp-1.reverse", "rtp-2", "rtp-2.reverse"]
    facts = result.manifest["imported"]["flows"]
    assert [facts[name]["encoding"] for name in result.flows["name"]] == [
        "PCMU", "PCMU", "VP8", "VP8"
    ]  # fmt: skip


CALL = """
title = "A call to be captured"
duration = "20s"
seed = 4
record = { packets = true, pcapng = ["path"] }
[links.path]
from = "a"
to = "b"
rate = "2Mbit/s"
delay = "30ms"
jitter = "15ms"
loss = 0.03
queue = { kind = "droptail", packets = 100 }
[flows.call]
from = "a"
to = "b"
transport = { kind = "udp" }
source = { kind = "speech", codec = "pcmu", packet = "20ms" }
stop = "19s"
"""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("call")
    (folder / "call.toml").write_text(CALL)
    succeed("run", "call.toml", "--out", "run", "--no-report", cwd=folder)
    return folder


BUFFERS = [
    '{ kind = "fixed", buffer = "40ms" }', '{ kind = "talkspurt" }', '{ kind = "adaptive" }',
    '{ kind = "adaptive", profile = "libwebrtc" }', '{ kind = "adaptive", quantile = 0.97 }',
]  # fmt: skip


@pytest.mark.parametrize("buffer", BUFFERS)
def test_a_buffer_plays_an_import_as_it_plays_a_run(buffer, simulated, tmp_path):
    """The arrivals are those of the run."""
    (tmp_path / "call.toml").write_text(CALL + f"playout = {buffer}\n")
    result = talkspurt.run(tmp_path / "call.toml")
    packets = [
        (row["delivered_s"], datagram(rtp(row["index"], 160 * row["index"])))
        for row in result.frames("call").drop_nulls("delivered_s").to_dicts()
    ]
    # Buffers may depend on the time: that of the trace begins with this datagram, as that of the run.
    packets.append((0.0, datagram(b"begin", ports=(9, 9))))
    ours = row_of(imported(tmp_path, packets, playout=buffer), "rtp-1")
    run = row_of(result, "call")
    for name in ("late_packets", "missing_packets", "paused_s", "burst_ratio", "longest_gap_s"):
        assert ours[name] == pytest.approx(run[name], abs=1e-6), name
    assert ours["concealed_ratio"] == pytest.approx(run["concealed_ratio"])


def test_playout_is_as_in_a_scenario(tmp_path):
    file = written(tmp_path / "call.pcap", speech(50))
    for words in ("adaptive", "libwebrtc", "talkspurt", "60ms", BUFFERS[-1]):
        succeed(
            "import", file, "--playout", words, "--no-report", "--overwrite", "-o", tmp_path / "o"
        )
    told = json.loads((tmp_path / "o/manifest.json").read_text())
    assert told["imported"]["format"] == "capture"
    for words, why in {
        "soon": "unknown variant `soon`",
        '{ kind = "fixed", quantile = 0.5 }': "quantile: only for kind",
        "{ kind = ": "--playout",
    }.items():
        said = refused("import", file, "--playout", words).stderr
        assert why in said and said.count("\n") == 1


def test_captured_sound_is_heard(tmp_path):
    tone = bytes(0x80 + i % 40 for i in range(160))
    call = speech(100, payload=tone)
    del call[40:43]
    audio = imported(tmp_path, call).audio("rtp-1")
    assert audio.rate == 8000
    assert len(audio.received) == pytest.approx(100 * 160, rel=0.1)
    assert abs(audio.received.astype(int)).max() > 1000
    # A capture of headers has none.
    headers = read([written(tmp_path / "cut.pcap", call, most=60)])
    assert headers.calls == ["rtp-1"] and not headers.heard


def test_sound_of_two_captures_is_that_of_each_direction(tmp_path):
    """The upstream capture of a direction is either file."""
    tone, noise = bytes(0x80 + i % 40 for i in range(160)), bytes(range(160))
    ahead, back = speech(100, payload=tone), speech(100, ssrc=9, payload=noise, back=True)
    here = written(tmp_path / "here.pcap", [*ahead, *((t + 0.03, data) for t, data in back)])
    strange = [(0, datagram(bytes(333), ports=(9, 9)))]
    there = [*strange, *((t + 0.03, data) for t, data in ahead), *back]
    both = read([here, written(tmp_path / "there.pcap", there)])
    for name, packets in (("rtp-1", ahead), ("rtp-1.reverse", back)):
        alone = imported(tmp_path, packets).audio("rtp-1")
        assert both.audio(name).sent_pcm == alone.sent_pcm, name


def test_in_band_fec_in_a_capture_is_played(tmp_path):
    """As in the run: behind the link that loses packets, the capture has all that arrives."""
    speaker = ROOT / "speech" / "english-man.wav"
    links = "".join(
        f"""[links.{name}]
from = "{one}"
to = "{other}"
rate = "10Mbit/s"
delay = "10ms"
loss = {loss}
queue = {{ kind = "droptail", packets = 100 }}
"""
        for name, one, other, loss in (("near", "a", "hub", 0.08), ("far", "hub", "b", 0))
    )
    (tmp_path / "call.toml").write_text(f"""title = "FEC"
duration = "8s"
{links}
[flows.call]
from = "a"
to = "b"
stop = "7s"
transport = {{ kind = "udp" }}
playout = {{ kind = "adaptive" }}
[flows.call.source]
kind = "speech"
codec = "opus"
file = "{speaker}"
opus = {{ fec = true, expected_loss = 0.2 }}
[record]
pcapng = ["far"]
""")
    run = talkspurt.run(tmp_path / "call.toml")
    folder = run.save(tmp_path / "run", report=False)
    row = row_of(read([folder / "far.pcapng"], payloads={111: "opus"}), "rtp-1")
    theirs = row_of(run, "call")
    assert theirs["recovered_packets"] > 5
    for name in ("missing_packets", "recovered_packets", "fec_ratio", "concealed_ratio"):
        assert row[name] == pytest.approx(theirs[name]), name


def random_bytes(count, size):
    from random import Random

    rng = Random(1)
    return [rng.randbytes(size) for _ in range(count)]


@pytest.mark.parametrize("how", ["tag", "dtls", "sdp"])
def test_encrypted_payload_is_not_heard(how, tmp_path):
    """SRTP with a tag and a master key identifier (RFC 3711 §3.1), or as keys and descriptions say."""
    size = 174 if how == "tag" else 160
    call = [
        (i / 50, datagram(rtp(i, 160 * i, payload=data)))
        for i, data in enumerate(random_bytes(100, size))
    ]
    if how == "dtls":
        call.append((0.001, datagram(dtls(22, 1))))
    if how == "sdp":
        offer = OFFER.replace("RTP/AVP 96 101", "RTP/SAVP 0")
        call.append((0.001, datagram(offer.encode(), ports=(5060, 5060))))
    result = imported(tmp_path, call)
    assert row_of(result, "rtp-1")["mos"] == pytest.approx(4.41, abs=0.01)
    assert not result.heard
    assert "rtp-1: its payload is encrypted, and cannot be heard" in notes(result)


def notes(result):
    return " ".join(result.manifest["imported"]["notes"])


def test_encrypted_opus_is_known_by_its_first_bytes(tmp_path):
    call = [
        (i / 50, datagram(rtp(i, 960 * i, 111, payload=data)))
        for i, data in enumerate(random_bytes(100, 80))
        if i != 50
    ]
    result = imported(tmp_path, call, payloads={111: "opus"})
    assert row_of(result, "rtp-1")["recovered_packets"] is None and not result.heard
    assert "in-band FEC" in notes(result)


@pytest.mark.parametrize("again", [False, True])
def test_a_payload_type_means_what_the_last_description_says(again, tmp_path):
    """A second call on the same ports, of another source; or, against RFC 3264 §8.3.2, of the same."""
    other = OFFER.replace("opus/48000/2", "G726-32/8000")
    call = speech(200, kind=96, ticks=960, payload=bytes(60))
    second = [
        (10 + i / 50, datagram(rtp(300 + i, 10**6 + 160 * i, 96, 7 if again else 8, bytes(80))))
        for i in range(200)
    ]
    offers = [(t, datagram(text.encode(), ports=(5060, 5060)))
              for t, text in ((-1, OFFER), (9, other))]  # fmt: skip
    result = imported(tmp_path, call + second + offers)
    rows = [row for row in result.flows.to_dicts() if row["transport"] == "udp"][1:]
    if again:
        assert rows[0]["mos"] is rows[0]["estimated_mos"] is None
        assert "gives its payload type another meaning" in notes(result)
        return
    facts = result.manifest["imported"]["flows"]
    assert [facts[f"rtp-{n}"]["encoding"] for n in (1, 2)] == ["opus", "G726-32"]
    assert [row["concealed_ratio"] for row in rows] == [0, 0]


def test_packets_of_another_clock_are_no_late_speech(tmp_path):
    call = speech(150)
    call += [(3 + i / 50, datagram(rtp(250 + i, 24_000 + 960 * i, 111))) for i in range(100)]
    result = imported(tmp_path, call, payloads={111: "opus/48000"})
    row = row_of(result, "rtp-1")
    assert counts(row) == [250, 250, 0]
    assert (row["late_packets"], row["concealed_ratio"], row["jitter_s"]) == (0, 0, 0)
    assert "100 packets of opus are not played: their clock is another one" in notes(result)


def with_jump(tmp_path, jump):
    """A call in whose middle the clock jumps by so many seconds."""
    file = tmp_path / "call.pcap"
    ahead, behind = speech(300)[:150], speech(300)[150:]
    written(file, ahead)
    later = written(tmp_path / "later.pcap", [(t + jump, data) for t, data in behind])
    file.write_bytes(file.read_bytes() + later.read_bytes()[24:])
    result = read([file])
    assert counts(row_of(result, "rtp-1")) == [300, 300, 0]
    return row_of(result, "rtp-1"), notes(result)


def test_a_clock_of_a_capture_that_is_set_back_gives_no_score(tmp_path):
    row, said = with_jump(tmp_path, -12)
    assert row["mos"] is row["jitter_s"] is None
    assert "rtp-1: the capture's clock was set back by 12 s while the source went on" in said


def test_a_source_whose_timestamps_stand_still_lost_nothing(tmp_path):
    """As telephones on hold, which go on with the next number and timestamp."""
    row, said = with_jump(tmp_path, 3600)
    assert row["mos"] == pytest.approx(4.41, abs=0.01) and row["concealed_ratio"] == 0
    assert row["jitter_s"] == pytest.approx(0, abs=1e-6)
    assert "the timestamps of rtp-1 stand still for 3600 s" in said


@pytest.mark.parametrize("how", ["clock", "times"])
def test_media_that_pass_at_another_pace_are_not_scored(how, tmp_path):
    """As G.722 whose description says 16 kHz, and captures that were made without times."""
    call = speech(300, kind=9)
    if how == "clock":
        result = imported(tmp_path, call, payloads={9: "G722/16000"})
        spans, clock = (3.0, 6.0), 16000
    else:
        result = imported(tmp_path, [(t / 1000, data) for t, data in call])
        spans, clock = (6.0, 0.0), 8000
    row = row_of(result, "rtp-1")
    assert counts(row) == [300, 300, 0]
    assert row["estimated_mos"] is row["jitter_s"] is row["concealed_ratio"] is None
    said = "rtp-1: {:.1f} s of media passed in {:.1f} s, so that its clock is not G722/{}"
    assert said.format(*spans, clock) in notes(result)
    assert "encrypted" not in notes(result)


def test_packets_that_waited_long_are_scored(tmp_path):
    """A path that holds packets for 15 s delivers them at once."""
    call = [(max(t, 18.0) if t > 3 else t, data) for t, data in speech(1500)]
    result = imported(tmp_path, call)
    assert row_of(result, "rtp-1")["concealed_ratio"] > 0.1
    assert "stand still" not in notes(result)


@pytest.mark.parametrize("back", [False, True])
def test_a_call_is_played_though_its_answer_is_not(back, tmp_path):
    call = speech(100, back=back) + speech(100, kind=97, ssrc=9, back=not back)
    for meanings in ({}, {97: "iLBC"}):
        result = imported(tmp_path, call, payloads=meanings)
        scores = {row["from"]: row["mos"] for row in result.flows.to_dicts()}
        speaks, other = ("10.0.0.2", "10.0.0.1") if back else ("10.0.0.1", "10.0.0.2")
        assert scores[speaks] == pytest.approx(4.41, abs=0.01) and scores[other] is None


@pytest.mark.parametrize("name", ["L16/16000", "iLBC", "AMR-WB", "EVS"])
def test_speech_that_is_not_played_is_said(name, tmp_path):
    call = speech(100, kind=97, payload=bytes(61))
    result = imported(tmp_path, call, payloads={97: name})
    said = f"rtp-1: {name.partition('/')[0]} is no codec of scenarios: no playout and no score"
    assert said in notes(result) and row_of(result, "rtp-1")["mos"] is None
    assert "no playout" not in notes(imported(tmp_path, call, payloads={97: "VP8"}))


def two_recordings(tmp_path, begin):
    """Of one call, at its sender, and 30 ms later at its receiver, whose packets pass first there."""
    ahead, back = speech(300), speech(300, ssrc=9, back=True)
    here = [*ahead, *((t + 0.03, data) for t, data in back)]
    there = [*((t + 0.03, data) for t, data in ahead if round(50 * t) % 6), *back]
    return [
        written(tmp_path / f"{name}.pcap", [(begin + t, data) for t, data in packets])
        for name, packets in (("here", here), ("there", there))
    ]


def test_recordings_of_one_call_are_no_options(tmp_path):
    here, there = (read([file]) for file in two_recordings(tmp_path, 1.7e9))
    # Silence at the end of a call: another buffer is another option.
    other = read([tmp_path / "there.pcap"], playout="500ms", delay_s=0.3)
    found = answer(talkspurt.compare({"a": here, "b": there, "c": other}))
    (first, *_) = found.notes
    assert first.startswith("a, b and c record the same call in 2 files")
    assert "7: rtp-1 of a, rtp-1.reverse of b, rtp-1.reverse of c" in first
    asked = {question["flow"]: {it["label"] for it in question["options"]}
             for question in found.questions}  # fmt: skip
    recording = "of recording 2 (there.pcap)"
    assert asked == {f"rtp-1 {recording}": {"b", "c"}, f"rtp-1.reverse {recording}": {"b", "c"}}


@pytest.mark.parametrize(("begin", "later"), [(0, 0), (1.7e9, 10)])
def test_other_calls_of_the_same_source_are_options(begin, later, tmp_path):
    """Simulated ones, and those that follow each other."""
    here, _ = (read([file]) for file in two_recordings(tmp_path, begin))
    _, there = (read([file]) for file in two_recordings(tmp_path, begin + later))
    found = answer(talkspurt.compare({"a": here, "b": there}))
    assert {question["flow"] for question in found.questions} == {"rtp-1", "rtp-1.reverse"}
    assert not any("record the same call" in note for note in found.notes)


def test_a_capture_becomes_the_network_of_another_run(simulated, tmp_path):
    """With its delays and losses, the same call has the same arrivals, up to the constant delay."""
    run = talkspurt.load(simulated / "run")
    frames = run.frames("call").to_dicts()
    packets = [
        (row["delivered_s"], datagram(rtp(row["index"], 160 * row["index"])))
        for row in frames
        if row["delivered_s"] is not None
    ]
    file = written(tmp_path / "call.pcap", packets)
    done = succeed(
        "import", file, "-o", tmp_path / "o", "--no-report", "--as-network", tmp_path / "net"
    )
    assert f"Network: {tmp_path / 'net/network.toml'}" in done.stdout
    text = (tmp_path / "net/network.toml").read_text()
    assert "# rtp-1: delays beyond that of the fastest packet, whose own is above 0; " in text
    again = talkspurt.run(tmp_path / "net/network.toml").frames("rtp-1").to_dicts()
    first = next(at for at, row in enumerate(frames) if row["delivered_s"] is not None)
    ours = [row["delivered_s"] for row in again]
    theirs = [row["delivered_s"] for row in frames[first : first + len(ours)]]
    last = max(at for at, one in enumerate(theirs) if one is not None)
    assert [one is None for one in ours[: last + 1]] == [one is None for one in theirs[: last + 1]]
    apart = [
        one - other for one, other in zip(ours, theirs, strict=False) if None not in (one, other)
    ]
    # Sources of runs hand frames over up to 1 ms after their capture (source.noise).
    assert max(apart) - min(apart) < 2.1e-3


def test_each_direction_of_a_call_is_a_flow_of_its_network(tmp_path):
    """With its own codec, packets and losses."""
    ahead = speech(300)
    back = speech(100, kind=8, ssrc=17, ticks=480, back=True, payload=bytes(480), every=0.06)
    del back[40:43]
    file = written(tmp_path / "call.pcap", ahead + back)
    read([file], as_network=tmp_path / "net")
    run = talkspurt.run(tmp_path / "net/network.toml")
    sources = {name: one["source"] for name, one in run.resolved["flows"].items()}
    told = {name: (one["codec"], one["packet"]) for name, one in sources.items()}
    assert told == {"rtp-1": ("pcmu", 0.02), "rtp-1-reverse": ("pcma", pytest.approx(0.06))}
    # Each sends as much as it did in the call.
    assert [run.frames(name).height for name in told] == [300, 100]
    lost = {name: run.frames(name).filter(fate="lost").height for name in told}
    assert lost == {"rtp-1": 0, "rtp-1-reverse": 3}


def test_a_network_needs_delays(tmp_path):
    file = written(tmp_path / "call.pcap", speech(50, kind=96, ticks=960))
    said = refused("import", file, "--as-network", tmp_path / "net").stderr
    assert said.startswith("talkspurt: --as-network: no direction has delays")
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize("transport", ["tcp", "sctp"])
def test_round_trips_are_those_of_the_path(transport, tmp_path):
    """Each packet is captured as its transmission begins: data 30 ms before they arrive at the
    other end, and the acknowledgement where it leaves, at most 200 ms later."""
    kind = {"tcp": 'kind = "tcp", controller = "newreno"', "sctp": 'kind = "sctp"'}[transport]
    scenario = CALL.replace('kind = "udp"', kind)
    scenario = scenario.replace("loss = 0.03", "loss = 0").replace("15ms", "0ms")
    (tmp_path / "call.toml").write_text(scenario)
    succeed("run", "call.toml", "--out", "run", "--no-report", cwd=tmp_path)
    result = read([tmp_path / "run/path.pcapng"])
    trips = result.gauges(f"{transport}-1", gauge="capture_rtt")["value"]
    assert len(trips) > 100
    assert 0.030 < trips.min() < 0.0325
    assert trips.max() < 0.235


def test_reports_of_a_bundle_are_those_of_each_stream(tmp_path):
    """RFC 3550 §6.1: one packet may have report blocks on several sources."""
    both = speech(200) + speech(200, kind=96, ssrc=8) + speech(200, ssrc=17, back=True)
    blocks = [block(7, 1, 0, 0), block(8, 2, 0, 0)]
    asked = struct.pack(">BBHII", 0x81, 206, 2, 17, 8)
    reports = [(1.01, datagram(receiver_report(17, blocks), back=True)),
               (1.02, datagram(asked, back=True))]  # fmt: skip
    result = imported(tmp_path, both + reports, payloads={96: "VP8"})
    facts = result.manifest["imported"]["flows"]
    lost = {one["ssrc"]: one.get("reported_lost_packets") for one in facts.values()}
    assert lost == {7: 1, 8: 2, 17: None}
    (event,) = result.events().filter(event="pli").to_dicts()
    assert facts[event["flow"]]["ssrc"] == 8


def test_encrypted_reports_are_counted_and_not_read(tmp_path):
    """SRTCP keeps the first eight bytes (RFC 3711 §3.4)."""
    plain = receiver_report(17, [block(7, 12, 0, 0)])
    hidden = plain[:8] + bytes(b ^ 0x5A for b in plain[8:]) + b"\x80\x00\x00\x01" + bytes(10)
    call = speech(200) + speech(200, ssrc=17, back=True)
    result = imported(tmp_path, [*call, (1.001, datagram(hidden, back=True))])
    facts = result.manifest["imported"]["flows"]["rtp-1.reverse"]
    assert facts["rtcp"] == {"encrypted": 1}
    assert result.gauges(gauge="reported_loss").is_empty()
    assert frames(result) == {"data": 400, "control": 1}


def padded(encrypted):
    """A call in which each fourth packet is padding after the one before, with its timestamp."""
    head = 0xA0 if not encrypted else 0x80
    size = 60
    packets, number = [], 100
    for i in range(200):
        packets.append((i * 0.02, datagram(rtp(number, 160 * i))))
        number += 1
        if i % 3 == 2:
            made = rtp(number, 160 * i, payload=bytes(size - 1) + bytes([size]))
            packets.append((i * 0.02 + 0.005, datagram(bytes([head]) + made[1:])))
            number += 1
    return packets


@pytest.mark.parametrize("encrypted", [False, True])
def test_padding_takes_numbers_and_is_no_speech(encrypted, tmp_path):
    """RFC 3550 §5.1. With nothing lost, with padding lost, and with speech lost: encrypted padding
    stands for the packet before, if that was lost."""
    packets = padded(encrypted)
    cases = {(): 0, (7, 11): 0, (7, 8): 1, (4, 5, 6, 7): 3, (5, 6): 1 if encrypted else 2}
    for gone, frames_lost in cases.items():
        kept = [packet for at, packet in enumerate(packets) if at not in gone]
        result = imported(tmp_path, kept)
        row = result.flows.row(0, named=True)
        assert counts(row) == [266, 266 - len(gone), len(gone)]
        assert frames(result) == {"data": 266 - len(gone)}
        heard = result.frames("rtp-1")
        assert heard.height == 200, gone
        assert heard.filter(fate="lost").height == frames_lost, gone
        assert result.resolved["flows"]["rtp-1"]["source"]["packet"] == pytest.approx(0.02)
        notes = " ".join(result.manifest["imported"]["notes"])
        assert "packets are padding, and no speech" in notes


@pytest.mark.parametrize("how", ["plain", "dtls", "srtcp", "headers"])
def test_redundancy_is_not_known_where_payload_cannot_be_read(how, tmp_path):
    """In-band FEC of Opus (RFC 6716 §2.1.7) behind SRTP (RFC 5764), and where only headers are."""
    call = speech(200, kind=111, ticks=960, payload=bytes([0x78] + [1] * 79))
    del call[50:53]
    if how == "dtls":
        call.append((0.001, datagram(dtls(22, 1))))
    if how == "srtcp":
        plain = receiver_report(17, [block(7, 12, 0, 0)])
        hidden = plain[:8] + bytes(b ^ 0x5A for b in plain[8:]) + b"\x80\x00\x00\x01" + bytes(10)
        call.append((1.001, datagram(hidden, back=True)))
    file = written(tmp_path / "call.pcap", call, most=60 if how == "headers" else None)
    result = read([file], payloads={111: "opus"})
    row = row_of(result, "rtp-1")
    assert row["missing_packets"] == 3
    assert row["recovered_packets"] == (0 if how == "plain" else None)
    assert ("is an upper limit" in row["quality_note"]) == (how != "plain")
    assert ("in-band FEC" in notes(result)) == (how != "plain")
    said = "rtp-1: the payload of Opus cannot be read"
    assert any(note.startswith(said) for note in answer(result).notes) == (how != "plain")
    told = succeed("import", file, "--payload", "111=opus", "-o", tmp_path / "o", "--no-report")
    assert ("unheard at most 1.50" in told.stdout) == (how != "plain")


def as_pcapng(pcap, order="<"):
    """The packets of a capture in Enhanced Packet Blocks."""

    def block(kind, body):
        body += bytes(-len(body) % 4)
        size = struct.pack(order + "I", 12 + len(body))
        return struct.pack(order + "I", kind) + size + body + size

    out = [block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)),
           block(1, struct.pack(order + "HHI", 101, 0, 0))]  # fmt: skip
    at = 24
    while at < len(pcap):
        seconds, nanos, kept, length = struct.unpack_from("<IIII", pcap, at)
        ticks = seconds * 10**6 + nanos // 1000
        head = struct.pack(order + "IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, kept, length)
        out.append(block(6, head + pcap[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return b"".join(out)


@pytest.mark.parametrize("form", ["pcap", "<", ">"])
def test_a_capture_that_is_cut_is_read_up_to_there(form, tmp_path):
    data = written(tmp_path / "call.pcap", speech(50)).read_bytes()
    data = data if form == "pcap" else as_pcapng(data, form)
    last = 16 + 200 if form == "pcap" else 32 + 200
    for gone in (1, 5, 199, last - 1):
        (tmp_path / "cut").write_bytes(data[:-gone])
        result = read([tmp_path / "cut"])
        assert counts(result.flows.row(0, named=True)) == [49, 49, 0]
        first = result.manifest["imported"]["notes"][0]
        assert first.startswith(f"cut is cut: its last {last - gone} bytes are part of a packet")
    (tmp_path / "cut").write_bytes(data[:-last])
    assert "is cut" not in notes(read([tmp_path / "cut"]))


def test_a_capture_as_modified_by_kuznetzov(tmp_path):
    plain = written(tmp_path / "plain.pcap", speech(50)).read_bytes()
    out, at = [struct.pack("<I", 0xA1B2CD34), plain[4:24]], 24
    while at < len(plain):
        seconds, nanos, kept, length = struct.unpack_from("<IIII", plain, at)
        out.append(struct.pack("<IIIIIHH", seconds, nanos // 1000, kept, length, 0, 0, 0))
        out.append(plain[at + 16 : at + 16 + kept])
        at += 16 + kept
    (tmp_path / "other.pcap").write_bytes(b"".join(out))
    row = read([tmp_path / "other.pcap"]).flows.row(0, named=True)
    assert counts(row) == [50, 50, 0]
