"""The codecs of the extra ``av``: their packets, read from a capture, and what is heard."""

from __future__ import annotations

import struct

import av
import numpy as np
import pytest

import talkspurt
from command import refused
from conftest import row_of
from one_call import SINGLE, SPEECH, write_call
from talkspurt.real_time import codecs
from texts import put

WOMAN = SPEECH / "french-woman.wav"
# RFC 4867 §3.6, table 1: mode, index, bits of a frame.
MODES = {
    "4.75": (0, 95),
    "5.15": (1, 103),
    "5.9": (2, 118),
    "6.7": (3, 134),
    "7.4": (4, 148),
    "7.95": (5, 159),
    "10.2": (6, 204),
    "12.2": (7, 244),
}


def scenario(tmp_path, source, loss=""):
    given = {"duration": 8, "file": WOMAN, "rate": "1Mbit/s", "link": loss}
    recorded = 'record.pcapng = ["link"]'
    return write_call(tmp_path, source, flow="rtcp = { enabled = false }", run=recorded, **given)


def run(tmp_path, source, **given):
    result = talkspurt.run(scenario(tmp_path, source, **given))
    result.save(tmp_path / "out", report=False)
    return result, row_of(result, "call"), result.audio("call")


def payloads(tmp_path):
    """RTP payload type and payload of each packet on the link, in order; pcapng with IPv4 and UDP."""
    (file,) = (tmp_path / "out").rglob("*.pcapng")
    data, found, at = file.read_bytes(), {}, 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:  # An enhanced packet block.
            (size,) = struct.unpack_from("<I", data, at + 20)
            packet = data[at + 28 : at + 28 + size]
            rtp = packet[20 + 8 :]
            assert packet[0] == 0x45
            (number,) = struct.unpack_from(">H", rtp, 2)
            found.setdefault(number, (rtp[1] & 0x7F, rtp[12:]))
        at += length
    first = min(found) if max(found) - min(found) < 30_000 else min(n for n in found if n > 30_000)
    order = sorted(found, key=lambda number: (number - first) % 65_536)
    return [found[number] for number in order]


def decoded(name, frames):
    """The sound of single frames, decoded by FFmpeg."""
    context = av.CodecContext.create(name, "r")
    context.sample_rate, context.layout = 8000, "mono"
    parts = [part.to_ndarray() for frame in frames for part in context.decode(av.Packet(frame))]
    sound = np.concatenate([part.ravel() for part in parts])
    return sound * 32_768 if sound.dtype == np.float32 else sound.astype(float)


def band(sound):
    """Without what is below 300 Hz, where AMR's high-pass filter changes the phase."""
    spectrum = np.fft.rfft(sound)
    spectrum[np.fft.rfftfreq(len(sound), 1 / 8000) < 300] = 0
    return np.fft.irfft(spectrum, len(sound))


def snr(ideal, sound):
    ideal, sound = np.asarray(ideal, dtype=float), np.asarray(sound, dtype=float)
    return 10 * np.log10(np.square(ideal).sum() / (np.square(ideal - sound).sum() + 1e-9))


def agreement(decoder, frames, audio):
    """The SNR of what is heard against what a decoder of FFmpeg makes of the frames.

    The last packets arrive after the end of the run.
    """
    sound = decoded(decoder, frames)[: len(audio.received) - 2400]
    return snr(sound, audio.received[: len(sound)])


def likeness(audio):
    """The largest correlation of what was said and heard above 300 Hz, and by how much it is later."""
    said, heard = band(audio.sent[800:-800].astype(float)), band(audio.received.astype(float))
    found = []
    for shift in range(-400, 401):
        part = heard[800 + shift :][: len(said)]
        found.append((np.dot(said, part) / np.linalg.norm(said) / np.linalg.norm(part), shift))
    return max(found)


@pytest.mark.parametrize("mode", MODES)
def test_packets_of_amr_are_those_of_rfc_4867(tmp_path, mode):
    _, row, audio = run(tmp_path, f'codec = "amr-{mode}"')
    index, bits = MODES[mode]
    packets = payloads(tmp_path)
    assert len(packets) == row["sent_packets"] > 280
    # §4.4: CMR 15 and four zeros; F 0, FT, Q 1, two zeros; the speech bits, rounded up to octets.
    assert {len(payload) for _, payload in packets} == {2 + -(-bits // 8)}
    assert {payload[0] for _, payload in packets} == {0xF0}
    assert {payload[1] for _, payload in packets} == {index << 3 | 1 << 2}
    padding = -bits % 8
    assert all(payload[-1] & ((1 << padding) - 1) == 0 for _, payload in packets)
    # What is heard is what libopencore makes of the same frames and, nearly, what FFmpeg's own decoder
    # does, which computes in floating point.
    frames = [payload[1:] for _, payload in packets]
    assert agreement("libopencore_amrnb", frames, audio) > 90
    assert agreement("amrnb", frames, audio) > 18
    # The speech, at its place.
    correlation, late = likeness(audio)
    assert abs(late) <= 4
    assert correlation > {"4.75": 0.7, "12.2": 0.9}.get(mode, 0.75)


def test_two_frames_of_amr_share_a_header(tmp_path):
    _, row, audio = run(tmp_path, 'codec = "amr-7.95"\npacket = "40ms"')
    packets = [payload for _, payload in payloads(tmp_path)]
    # RFC 4867 §4.4.5.1: the entries of the table of contents, then the frames; F is 1 but for the last.
    assert {packet[:3] for packet in packets} == {bytes([0xF0, 0xAC, 0x2C])}
    assert {len(packet) for packet in packets} == {1 + 2 + 2 * 20}
    frames = [b"\x2c" + packet[start : start + 20] for packet in packets for start in (3, 23)]
    assert agreement("amrnb", frames, audio) > 18
    assert row["stand_in"] is None


def test_packets_of_g723_1_are_those_of_rfc_3551(tmp_path):
    _, row, audio = run(tmp_path, 'codec = "g723.1-6.3"\npacket = "60ms"')
    packets = payloads(tmp_path)
    # RFC 3551 §4.5.3: payload type 4, 24 octets; the first two bits are 0 at the high rate.
    assert {kind for kind, _ in packets} == {4}
    assert {len(payload) for _, payload in packets} == {48}
    frames = [payload[start : start + 24] for _, payload in packets for start in (0, 24)]
    assert {frame[0] & 3 for frame in frames} == {0}
    assert agreement("g723_1", frames, audio) > 90
    correlation, late = likeness(audio)
    assert abs(late) <= 4
    assert correlation > 0.8
    assert (row["mos"] is not None, row["stand_in"]) == (True, None)


@pytest.mark.parametrize("codec", ["amr-12.2", 'g723.1-6.3"\npacket = "30ms'])
def test_the_decoder_conceals_lost_packets(tmp_path, codec):
    result, row, audio = run(tmp_path, f'codec = "{codec}"', loss=SINGLE)
    frames = result.frames("call")
    lost = (frames["fate"] == "lost").to_numpy()
    assert lost.sum() > 15
    size = 240 if "g723" in codec else 160
    parts = [side[: len(side) // size * size] for side in (audio.sent, audio.received)]
    power = [np.square(part.reshape(-1, size).astype(float)).mean(axis=1) for part in parts]
    levels = [10 * np.log10(it + 1) for it in power]
    count = min(len(lost), len(levels[0]))
    loud = levels[0][:count] > levels[0].max() - 15
    change = (levels[1] - levels[0])[:count][lost[:count] & loud]
    assert len(change) > 3
    # The decoder repeats what it heard before, instead of silence.
    assert np.mean(np.abs(change) < 12) > 0.7
    assert np.isfinite(change).all()
    assert row["concealed_ratio"] > 0.05


def test_a_mode_per_rung(tmp_path):
    source = 'codec = "pcmu"\nladder = ["pcmu", "amr-12.2", "amr-4.75"]'
    _, row, audio = run(tmp_path, source)
    assert (audio.rate, row["stand_in"]) == (8000, None)
    assert (
        snr(audio.sent[:-2400], audio.received[:-2400]) > 30
    )  # UDP requests no rates, so the first is kept.


def test_without_the_extra_there_is_one_error_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(codecs, "find_spec", lambda name: None)
    ladder = 'codec = "amr-12.2"\nladder = ["amr-12.2", "amr-7.4", "amr-4.75"]'
    for source, key in (('codec = "amr-12.2"', "codec"), (ladder, "ladder")):
        with pytest.raises(talkspurt.ScenarioError) as caught:
            talkspurt.run(scenario(tmp_path, source))
        words = str(caught.value)
        assert words.count("talkspurt[av]") == 1
        assert f"flows.call.source.{key}: AMR 12.2 cannot be heard" in words
        assert "pip install 'talkspurt[av]'" in words
        assert 'stand_in = "opus-for-av"' in words
    # Packets without sound need no encoder, nor does a stand-in.
    bare = scenario(tmp_path, 'codec = "amr-12.2"')
    put(bare, bare.read_text().replace(f'file = "{WOMAN}"\n', ""))
    assert talkspurt.run(bare).flows["payload_bytes"][0] > 0
    _, row, audio = run(tmp_path, 'codec = "amr-12.2"\nstand_in = "opus-for-av"')
    assert row["stand_in"] == "AMR 12.2: narrowband Opus at 12.4 kbit/s"
    assert {payload for _, payload in payloads(tmp_path)} == {bytes(33)}
    assert likeness(audio)[0] > 0.7


def test_the_command_line_reports_the_missing_extra(tmp_path):
    # Marks the module `av` as not installed.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['av'] = None\n")
    file = scenario(tmp_path, 'codec = "g723.1-6.3"\npacket = "30ms"')
    done = refused("run", file, "--no-report", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    words = " ".join((done.stdout + done.stderr).split())
    assert "pip install 'talkspurt[av]'" in words and "Traceback" not in words


def test_corrupt_frames_are_no_crash():
    for name, form in codecs.FORMS.items():
        decoder = codecs.Decoder(name)
        for junk in (b"", b"\xff", bytes(range(24)), b"\xff" * 40):
            assert len(decoder.code(junk)) % 2 == 0, form
