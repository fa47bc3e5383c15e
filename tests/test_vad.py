"""Voice activity detection in whole calls: what is sent, and what is heard in the pauses."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest

import talkspurt
from conftest import row_of, write_wav
from one_call import SPEECH, write_call

NOISE = 'keep_alive = { every = "200ms", size = "11B", at_once = true }'
TALK = [(0.5, 1.5), (2.5, 3.1), (4.0, 5.25)]
"""Talkspurts of the made-up recording, in seconds."""
BACKGROUND = 0.003


def recording(path: Path) -> Path:
    """Harmonics of 150 Hz in background noise of −50.5 dBov, with its power at low frequencies."""
    rate, rng = 8000, np.random.default_rng(1)
    time = np.arange(6 * rate) / rate
    voice = sum(np.sin(2 * np.pi * 150 * k * time + k) / k for k in range(1, 12))
    spoken = np.zeros(len(time))
    for begin, end in TALK:
        spoken[(time >= begin) & (time < end)] = 1
    white = rng.standard_normal(len(time))
    low = np.zeros(len(time))
    for at in range(1, len(time)):
        low[at] = 0.8 * low[at - 1] + white[at]
    sound = 0.1 * voice * spoken + BACKGROUND * low / low.std()
    write_wav(path, (sound * 32767).astype("<i2").tobytes())
    return path


@pytest.fixture
def call(tmp_path):
    def run(source: str, *, file=None, duration=6.5, **more):
        file = file or recording(tmp_path / "voice.wav")
        return talkspurt.run(write_call(tmp_path, source, duration=duration, file=file, **more))

    return run


def spurts(result, origin=0.0) -> list[tuple[float, float]]:
    """Talkspurts of a call without comfort noise, whose frames are 20 ms, by the time of the recording."""
    times = (result.frames("call")["captured_s"].sort() - origin).to_list()
    found = [[times[0], times[0] + 0.02]]
    for at in times[1:]:
        if at > found[-1][1] + 1e-6:
            found.append([at, at])
        found[-1][1] = at + 0.02
    return [tuple(spurt) for spurt in found]


def pcm(samples: bytes):
    return np.frombuffer(samples, "<i2").astype(float)


def rms(sound) -> float:
    return float(np.sqrt(np.mean(np.square(sound)))) / 32768


@pytest.mark.parametrize("hangover", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("codec", ["pcmu", "g726-32", "g722", "opus"])
def test_packets_are_sent_while_somebody_speaks(call, codec, hangover):
    origin = call(f'codec = "{codec}"').frames("call")["captured_s"].min()
    result = call(f'codec = "{codec}"\nvad = {{ hangover = "{hangover * 1000:g}ms" }}')
    found = spurts(result, origin)
    assert len(found) == len(TALK)
    for (begin, end), (first, last) in zip(found, TALK, strict=True):
        # Decisions are on 10 ms; packets are 20 ms.
        assert first - 0.02 < begin <= first
        assert last + hangover - 0.001 <= end < last + hangover + 0.03
    assert row_of(result, "call")["concealed_ratio"] == 0


def test_repetitions_have_the_same_talkspurts(call):
    found = spurts(call('codec = "pcma"\nrepeat = true\nvad = {}', duration=12.5))
    assert len(found) == 6
    assert np.allclose(np.array(found[3:]) - np.array(found[:3]), 6.0)


@pytest.mark.parametrize("playout", ['kind = "fixed"', 'kind = "talkspurt"', 'kind = "adaptive"'])
@pytest.mark.parametrize("noise", [False, True])
def test_pauses_are_silent_or_have_the_level_and_spectrum_of_the_background(call, playout, noise):
    source = 'codec = "pcmu"\nvad = { hangover = "50ms" }\n' + (NOISE if noise else "")
    result = call(source, playout=playout, link='jitter = "10ms"')
    sound = pcm(result.audio("call").received_pcm)
    assert row_of(result, "call")["concealed_ratio"] == 0
    # The parts of pauses that no buffer shifts into speech.
    pauses = [
        sound[int((a + 0.18) * 8000) : int((b - 0.1) * 8000)] for a, b in [(1.5, 2.5), (3.1, 4.0)]
    ]
    for pause in pauses:
        if not noise:
            assert not pause.any()
            continue
        assert 20 * abs(np.log10(rms(pause) / BACKGROUND)) < 2.5
        # The background is autoregressive with 0.8.
        alike = np.dot(pause[1:], pause[:-1]) / np.dot(pause, pause)
        assert 0.7 < alike < 0.88
    # The pause at the end continues as it began.
    last = sound[int(5.55 * 8000) : int(5.85 * 8000)]
    assert 20 * abs(np.log10(rms(last) / BACKGROUND)) < 2.5 if noise else not last.any()
    speech = sound[int(0.8 * 8000) : int(1.2 * 8000)]
    assert (
        20 * abs(np.log10(rms(speech) / rms(pcm(result.audio("call").sent_pcm)[6400:9600]))) < 0.5
    )


def test_only_losses_are_concealed(call):
    lossy = call('codec = "pcmu"\nvad = {}\n' + NOISE, link="loss = 0.2")
    assert 0.1 < row_of(lossy, "call")["concealed_ratio"] < 0.3
    sound = pcm(lossy.audio("call").received_pcm)
    # Where noise packets are lost, the noise continues.
    for begin, end in [(2.0, 2.45), (3.55, 3.95)]:
        part = sound[int(begin * 8000) : int(end * 8000)]
        blocks = [rms(part[at : at + 400]) for at in range(0, len(part) - 400, 400)]
        assert all(20 * abs(np.log10(level / BACKGROUND)) < 6 for level in blocks)


def test_comfort_noise_costs_what_it_says(call):
    plain, quiet = call('codec = "pcmu"\nvad = {}'), call('codec = "pcmu"\nvad = {}\n' + NOISE)
    extra = quiet.frames("call").height - plain.frames("call").height
    sent = [it.flows["sent_bytes"][0] for it in (plain, quiet)]
    # Headers of RTP, UDP and IP.
    assert sent[1] - sent[0] == extra * (11 + 40)
    # One at the beginning of each of four pauses, and one every 200 ms.
    silent = 6 - sum(end - begin for begin, end in spurts(plain))
    assert abs(extra - silent / 0.2) <= 4


@pytest.mark.parametrize("name", sorted(it.stem for it in SPEECH.glob("*.wav")))
def test_recordings_keep_their_speech(call, name):
    with wave.open(str(SPEECH / f"{name}.wav")) as file:
        rate, length = file.getframerate(), file.getnframes()
        sound = np.frombuffer(file.readframes(length), "<i2").astype(float)
    result = call(
        'codec = "pcmu"\nvad = {}', file=SPEECH / f"{name}.wav", duration=length / rate + 0.5
    )
    sent = np.zeros(length, dtype=bool)
    for begin, end in spurts(result):
        sent[round(begin * rate) : round(end * rate)] = True
    # Speech has its energy where it is sent, and pauses in which nothing is.
    energy = np.sum(sound[sent] ** 2) / np.sum(sound**2)
    assert energy > 0.995
    assert 0.5 < sent.mean() < 0.99


@pytest.mark.parametrize("codec", ["pcmu", "opus"])
def test_pictures_and_scores_know_where_the_recording_begins(call, codec, tmp_path):
    """The first packet is half a second into the recording."""
    from talkspurt.report import calls

    whole, active = call(f'codec = "{codec}"'), call(f'codec = "{codec}"\nvad = {{}}')
    begins = whole.frames("call")["captured_s"].min()
    audio = active.audio("call")
    assert audio.start_s == pytest.approx(begins, abs=1e-9)
    active.save(tmp_path / "saved", report=False)
    assert talkspurt.load(tmp_path / "saved").audio("call").start_s == audio.start_s
    fates = calls._fates(active, "call", audio.start_s)
    at, spoken = 0, []
    for fate, count in fates:
        if fate == "played":
            spoken.append((at * 0.02, (at + count) * 0.02))
        at += count
    assert np.allclose(spoken, spurts(active, begins), atol=0.021)


def test_dtx_of_opus_follows_the_detection(call):
    both = call('codec = "opus"\nvad = {}\nopus = { dtx = true }')
    assert both.flows["concealed_ratio"][0] == 0
    assert both.frames("call").height <= call('codec = "opus"\nvad = {}').frames("call").height
