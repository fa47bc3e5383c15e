"""Opus and redundancy in whole calls: what is sent, recovered, and heard."""

from __future__ import annotations

import re
import wave

import numpy as np
import pytest

import talkspurt
from conftest import row_of, write_wav
from one_call import SINGLE, SPEECH, write_call

WOMAN = SPEECH / "spanish-woman.wav"


@pytest.fixture
def call(tmp_path):
    def run(source: str, *, loss="", **more):
        given = {"duration": 16, "file": WOMAN} | more
        result = talkspurt.run(write_call(tmp_path, source, link=loss, **given))
        return result, row_of(result, "call"), result.audio("call")

    return run


def rms(sound):
    return float(np.sqrt(np.mean(np.square(sound, dtype=float))))


def lag(sent, heard):
    """Samples by which ``heard`` is later."""
    size = 1 << (len(sent) + len(heard)).bit_length()
    spectra = np.fft.rfft(heard, size), np.fft.rfft(sent, size)
    found = int(np.argmax(np.fft.irfft(spectra[0] * np.conj(spectra[1]), size)))
    return found if found < size // 2 else found - size


@pytest.mark.parametrize("packet", ["2.5ms", "20ms", "60ms"])
@pytest.mark.parametrize("application", ["voip", "low-delay"])
def test_what_is_heard_is_as_loud_as_what_was_said_and_at_its_place(call, packet, application):
    opus = f'{{ application = "{application}", bitrate = "64kbit/s" }}'
    result, row, audio = call(f'codec = "opus"\npacket = "{packet}"\nopus = {opus}')
    assert (audio.rate, audio.channels, len(audio.sent)) == (48_000, 1, len(audio.received))
    assert abs(lag(audio.sent, audio.received)) <= 12  # a quarter of a millisecond
    assert rms(audio.received) == pytest.approx(rms(audio.sent), rel=0.05)
    assert result.manifest["machine_dependent"] == []
    # 64 kbit/s of payload, while the recording lasts.
    assert row["goodput_bps"] * 16 / audio.duration_s == pytest.approx(64_000, rel=0.01)


def test_both_channels_are_heard_apart_and_saved(call, tmp_path):
    rng = np.random.default_rng(1)
    left = 3000 * np.sin(np.arange(96_000) * 2 * np.pi * 300 / 48_000)
    pair = np.stack([left, rng.normal(0, 30, left.size)], axis=1).astype("<i2")
    write_wav(tmp_path / "pair.wav", pair.tobytes(), 48_000, channels=2)
    opus = 'codec = "opus"\nopus = { channels = 2, bitrate = "96kbit/s", application = "audio" }'
    _, _, audio = call(opus, file=tmp_path / "pair.wav")
    assert audio.received.shape == audio.sent.shape == (96_000, 2)
    assert rms(audio.received[9600:, 0]) == pytest.approx(rms(left), rel=0.05)
    assert rms(audio.received[9600:, 1]) < 100
    for file, samples in zip(audio.save(tmp_path), (audio.sent, audio.received), strict=True):
        with wave.open(str(file)) as saved:
            assert (saved.getnchannels(), saved.getnframes()) == (2, len(samples))
    # A recording with one channel sounds on both sides, and one channel of two is their mean.
    _, _, audio = call('codec = "opus"\nopus = { channels = 2 }')
    assert (audio.sent[:, 0] == audio.sent[:, 1]).all()
    assert audio.mono().sent.tolist() == audio.sent[:, 0].tolist()


@pytest.mark.parametrize("playout", ['kind = "fixed"', 'kind = "adaptive"'])
def test_silence_is_not_sent_and_sounds_like_the_room(call, tmp_path, playout):
    with wave.open(str(WOMAN)) as source:
        rate, frames = source.getframerate(), source.readframes(4 * source.getframerate())
    words = np.frombuffer(frames, "<i2").astype(float)
    room = np.random.default_rng(1).normal(0, 20, 2 * words.size + 5 * rate)
    sound = np.concatenate([words, np.zeros(5 * rate), words]) + room
    samples = sound.round().clip(-32_768, 32_767).astype("<i2")
    write_wav(tmp_path / "pause.wav", samples.tobytes(), rate)
    opus = 'codec = "opus"\nopus = { dtx = true }'
    result, row, audio = call(opus, playout=playout, file=tmp_path / "pause.wav")
    assert result.manifest["machine_dependent"] == ["call"]
    # 650 packets without DTX; most of the 5 s of pause are left out, and none of them counts as lost.
    assert 400 < row["sent_packets"] < 500
    assert (row["loss_ratio"], row["concealed_ratio"]) == (0, 0)
    said, heard = (side[5 * audio.rate : 8 * audio.rate] for side in (audio.sent, audio.received))
    assert rms(heard) == pytest.approx(rms(said), rel=0.5)
    again = audio.received[-3 * audio.rate :]
    assert rms(again) == pytest.approx(rms(audio.sent[-3 * audio.rate :]), rel=0.15)


@pytest.mark.parametrize("codec", ["pcmu", "g722", "g726-24", "opus"])
def test_copies_of_lost_packets_sound_as_if_nothing_was_lost(call, codec):
    source = f'codec = "{codec}"\nred = 1'
    # Without a given loss, the encoder follows the reports, and makes other packets.
    source += "\nopus = { expected_loss = 0.1 }" if codec == "opus" else ""
    _, _, whole = call(source)
    result, row, audio = call(source, loss=SINGLE)
    assert row["lost_packets"] > 40
    # The last packet may be lost, after which no copy comes.
    assert row["recovered_packets"] >= row["lost_packets"] - 1
    assert row["missing_packets"] <= 1
    fates = result.frames("call")["fate"]
    assert (fates == "recovered").sum() == row["recovered_packets"]
    last = -audio.rate // 5
    assert (audio.received[:last] == whole.received[:last]).all()


def test_a_report_without_loss_does_not_switch_fec_off(call):
    # One packet in a hundred is lost: of 250 between two reports, sometimes none.
    source = 'codec = "opus"\nrepeat = true\nopus = { fec = true }'
    frames = call(source, duration=100, loss="loss = 0.01")[0].frames("call")
    lost = frames.filter(frames["fate"].is_in(["lost", "recovered"]) & (frames["captured_s"] > 10))
    assert len(lost) > 25
    # In pauses, there is nothing to repeat.
    assert (lost["fate"] == "recovered").mean() > 0.7


@pytest.mark.parametrize(
    ("opus", "least"), [("fec = true", 0.5), ('dred = "100ms"', 0.8), ("", None)]
)
def test_redundancy_recovers_what_rtcp_reports(call, opus, least):
    # How much redundancy a packet has depends on what the speech leaves of the bit rate.
    source = f'codec = "opus"\nrepeat = true\nopus = {{ bitrate = "40kbit/s", {opus} }}'
    result, row, _ = call(source.replace(", }", " }"), loss=SINGLE)
    if least is None:
        assert row["recovered_packets"] == 0
        return
    assert result.manifest["machine_dependent"] == ["call"]
    frames = result.frames("call")
    lost = frames.filter(frames["fate"].is_in(["lost", "recovered"]))
    early = lost.filter(lost["captured_s"] < 1)
    assert (early["fate"] == "recovered").sum() == 0
    later = lost.filter(lost["captured_s"] > 10)
    assert (later["fate"] == "recovered").mean() > least


@pytest.mark.parametrize(
    ("opus", "ratio", "note"),
    [
        ('bitrate = "16kbit/s", fec = true, expected_loss = 0.1', "fec_ratio", "in-band FEC"),
        ('bitrate = "24kbit/s", dred = "500ms", expected_loss = 0.1', "dred_ratio", "DRED"),
    ],
)
def test_the_bit_rate_named_for_redundancy_has_room_for_it(call, opus, ratio, note):
    _, row, _ = call(f'codec = "opus"\nopus = {{ {opus} }}', loss="loss = 0.05")
    assert row[ratio] < 0.8 and f"of the packets have {note}" in row["redundancy_note"]
    named = re.search(r"with (\d+) kbit/s, (\d+) % of the packets", row["redundancy_note"])
    assert named, row["redundancy_note"]
    own = re.search(r'"(\d+)kbit', opus)[1]
    _, there, _ = call(
        f'codec = "opus"\nopus = {{ {opus.replace(own, named[1])} }}', loss="loss = 0.05"
    )
    assert there["redundancy_note"] is None
    # The note is of the first 10 s of the recording, and of packets without loss.
    assert there[ratio] == pytest.approx(int(named[2]) / 100, abs=0.1)


def test_redundancy_is_counted_by_packet(call):
    opus = 'bitrate = "48kbit/s", dred = "400ms", fec = true, expected_loss = 0.2'
    result, row, _ = call(f'codec = "opus"\nopus = {{ {opus} }}')
    depths = result.gauges(gauge="dred_depth")["value"]
    assert 0.5 < row["fec_ratio"] <= 1 and 0.8 < row["dred_ratio"] <= 1
    assert 0.1 < row["dred_depth_mean_s"] <= depths.max() <= 0.4
    # Whole packets.
    assert all(abs(value / 0.02 - round(value / 0.02)) < 1e-9 for value in depths)
    assert row["redundancy_note"] is None


def test_fec_that_nobody_asked_for_is_no_column_and_without_loss_none_is_made(call):
    _, row, _ = call('codec = "opus"')
    assert row["fec_ratio"] is row["dred_ratio"] is row["redundancy_note"] is None
    _, row, _ = call('codec = "opus"\nopus = { fec = true }')
    assert row["fec_ratio"] == 0 and "expects no loss" in row["redundancy_note"]
