"""Codecs without an encoder: packets and score are their own, the sound is narrowband Opus.

And ladders whose codecs have different sample rates.
"""

from __future__ import annotations

import numpy as np
import pytest

import talkspurt
from command import succeed
from conftest import row_of
from one_call import SINGLE, SPEECH, write_call
from texts import BULK, flow_text

WOMAN = SPEECH / "spanish-woman.wav"


@pytest.fixture
def call(tmp_path):
    def run(source, *, loss="", **more):
        given = {"duration": 10, "rate": "1Mbit/s", "queue": 'kind = "codel"'} | more
        return talkspurt.run(write_call(tmp_path, source, link=loss, **given))

    return run


def levels(sound, rate):
    """Levels of each 20 ms, in dB."""
    frames = sound[: len(sound) // (rate // 50) * (rate // 50)].reshape(-1, rate // 50)
    return 10 * np.log10(np.square(frames, dtype=float).mean(axis=1) + 1)


def pitch(frame, rate):
    """The period with the largest autocorrelation between 60 and 400 Hz, and that correlation."""
    frame = frame - frame.mean()
    best = (0.0, 0)
    for lag in range(rate // 400, rate // 60):
        one, other = frame[lag:], frame[:-lag]
        norm = np.sqrt(np.dot(one, one) * np.dot(other, other)) + 1
        best = max(best, (float(np.dot(one, other) / norm), lag))
    return best


@pytest.mark.parametrize(
    ("codec", "packet", "name", "kbps", "payload"),
    # RFC 3551 §4.5.5, §4.5.6 and §4.5.3: 16 and 8 kbit/s; 20 bytes in 30 ms.
    [
        ("g728", 20, "G.728", "16", 40),
        ("g729", 20, "G.729", "8", 20),
        ("g729a", 30, "G.729A", "8", 30),
        ("g729-10", 20, "G.729 10", "10", 25),
        ("g723.1-5.3", 30, "G.723.1 5.3", "6", 20),
    ],
)
def test_the_sound_is_that_of_opus_and_all_else_the_codecs_own(
    call, codec, packet, name, kbps, payload
):
    source = f'codec = "{codec}"\npacket = "{packet}ms"\n'
    result = call(f'{source}file = "{WOMAN}"\nrepeat = true')
    silent = call(source)
    # The packets are those of a call without sound.
    assert result.flows.drop("stand_in").equals(silent.flows.drop("stand_in"))
    assert result.frames("call").equals(silent.frames("call"))
    row, bare = (row_of(it, "call") for it in (result, silent))
    assert row["payload_bytes"] == row["sent_packets"] * payload
    assert row["mos"] == bare["mos"]
    # The stand-in is named everywhere.
    words = f"{name}: narrowband Opus at {kbps} kbit/s"
    assert (row["stand_in"], bare["stand_in"]) == (words, None)
    assert result.to_json()["flows"]["call"]["stand_in"] == words
    assert 'stand_in = "opus"' in result.scenario
    assert "stand_in" not in silent.scenario
    # As loud as what was said, at its place, with its pitch.
    audio = result.audio("call")
    assert (audio.rate, len(audio.sent)) == (8000, len(audio.received))
    said, heard = (levels(side, audio.rate) for side in (audio.sent, audio.received))
    active = said > said.max() - 25
    assert -6 < np.mean((heard - said)[active]) < 1
    assert np.corrcoef(said[active], heard[active])[0, 1] > 0.8
    both = []
    for at in np.flatnonzero(active)[3:-3:3]:
        window = slice(at * 160 - 160, at * 160 + 320)
        (strength, own), (_, other) = (
            pitch(side[window].astype(float), 8000) for side in (audio.sent, audio.received)
        )
        if strength > 0.85:
            both.append(abs(own - other) <= 2)
    assert len(both) > 30
    assert np.mean(both) > 0.8


def test_lost_packets_are_concealed_by_the_stand_in(call):
    result = call(f'codec = "g729"\nfile = "{WOMAN}"', loss=SINGLE)
    row, audio = row_of(result, "call"), result.audio("call")
    assert row["missing_packets"] > 30
    fates = result.frames("call")["fate"].to_list()
    said, heard = (levels(side, audio.rate) for side in (audio.sent, audio.received))
    loud = said > said.max() - 15
    lost = np.array([fate == "lost" for fate in fates])[: len(loud)]
    # No frame of 20 ms is silent, and most are within 10 dB.
    gaps = (heard - said)[: len(lost)][lost & loud[: len(lost)]]
    assert len(gaps) > 5
    assert np.mean(np.abs(gaps) < 10) > 0.7
    # Copies repair the losses.
    again = call(f'codec = "g729"\nfile = "{WOMAN}"\nred = 1', loss=SINGLE)
    whole = call(f'codec = "g729"\nfile = "{WOMAN}"\nred = 1')
    last = -audio.rate // 5
    assert again.flows["recovered_packets"][0] > 30
    assert (again.audio("call").received[:last] == whole.audio("call").received[:last]).all()


LADDER = ("opus", "g722", "g726-32", "g729")


def test_a_ladder_is_heard_at_the_highest_rate_of_its_codecs(call):
    cubic = '{ kind = "tcp", controller = "cubic", send_buffer = "32kB" }'
    uploads = flow_text("upload", "a>b", cubic, BULK, start="8s", stop="18s")
    ladder = ", ".join(f'"{codec}"' for codec in LADDER)
    source = f"""
codec = "opus"
ladder = [{ladder}]
opus = {{ bitrate = "96kbit/s" }}
file = "{WOMAN}"
repeat = true
"""
    transport = 'kind = "tfrc", rate = { token_bucket = { depth = "8kB", step_up = "1s" } }'
    result = call(source, duration=30, rate="300kbit/s", transport=transport, more=uploads)
    assert row_of(result, "call")["stand_in"] == "G.729: narrowband Opus at 8 kbit/s"
    audio = result.audio("call")
    assert (audio.rate, len(audio.sent)) == (48_000, len(audio.received))
    frames = result.frames("call")
    rungs = frames["encoding"].to_numpy()
    assert set(np.unique(rungs)) == {0, 1, 2, 3}
    # The bandwidth is that of each codec: above 4 kHz only Opus and G.722 have sound.
    step = audio.rate // 50
    bands = {"all": (100, 3400), "wide": (4500, 7000)}
    energy = {name: np.zeros((2, 4)) for name in bands}
    played = frames["fate"].to_numpy() == "played"
    starts = np.round(frames["captured_s"].to_numpy() * 50).astype(int)
    starts -= starts[0]
    for start, rung, fine in zip(starts, rungs, played, strict=True):
        part = slice(start * step, (start + 1) * step)
        if not fine or part.stop > len(audio.sent):
            continue
        for side, sound in enumerate((audio.sent, audio.received)):
            spectrum = np.abs(np.fft.rfft(sound[part] * np.hanning(step))) ** 2
            hz = np.fft.rfftfreq(step, 1 / audio.rate)
            for name, (low, high) in bands.items():
                energy[name][side, rung] += spectrum[(hz > low) & (hz < high)].sum()
    ratio = {name: 10 * np.log10(both[1] / both[0]) for name, both in energy.items()}
    assert (np.abs(ratio["all"]) < 4).all(), ratio
    assert (np.abs(ratio["wide"][:2]) < 3).all(), ratio
    assert (ratio["wide"][2:] < -20).all(), ratio
    # No clicks: where the codec changes, steps between samples are not larger than elsewhere.
    change = np.flatnonzero((np.diff(rungs) != 0) & played[1:] & played[:-1]) + 1
    assert len(change) >= 4
    jumps = np.abs(np.diff(audio.received.astype(float), n=2))
    usual = np.quantile(jumps, 0.999)
    at = [jumps[starts[k] * step - 48 : starts[k] * step + 288].max() for k in change]
    assert np.median(at) < usual, (at, usual)


def test_the_terminal_and_the_report_name_the_stand_in(tmp_path):
    source = f'codec = "g729"\nfile = "{WOMAN}"'
    done = succeed("run", write_call(tmp_path, source, duration=3), "--out", tmp_path / "out")
    words = "the sound of G.729 is that of narrowband Opus at 8 kbit/s"
    assert words in " ".join((done.stdout + done.stderr).split())
    assert words in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
