#!/usr/bin/env python3
"""Cuts the recordings of python/talkspurt/speech from Debian's packages, and sets their level.

apt-get download asterisk-core-sounds-{es,fr,it,ru}-g722 pocketsphinx-testdata
for package in *.deb; do dpkg-deb -x "$package" packages; done
.venv/bin/python validation/speech/make.py packages

Needs SpanDSP (Debian: libspandsp2), which decodes G.722. The active speech level of ITU-T P.56 is
set to -26 dBov, at which most listening tests are done (P.800 Annex B). sense-and-sensibility.wav
is older and not changed; its level is printed.
"""

from __future__ import annotations

import math
import sys
import wave
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "codecs"))

from g726 import spandsp

from talkspurt.results.audio import wav

SPEECH = Path(__file__).parents[2] / "python" / "talkspurt" / "speech"
RATE = 16_000
LEVEL_DBOV = -26.0
CONGRATS = "usr/share/asterisk/sounds/{}/demo-congrats.g722"
CARDS = "usr/share/pocketsphinx/test/data/cards/{}.wav"
SOURCES = {
    "french-woman": [CONGRATS.format("fr_CA_f_June")],
    "italian-man": [CONGRATS.format("it_IT_m_Carlo")],
    "russian-woman": [CONGRATS.format("ru_RU_f_IvrvoiceRU")],
    "spanish-woman": [CONGRATS.format("es_MX_f_Allison")],
    "english-man": [CARDS.format(number) for number in ("005", "002", "003", "001")],
}
SECONDS = 10.0
PAUSE_S = 0.15
"""A recording ends in the first pause of this length after ``SECONDS``."""
QUIET = 0.01


def active_level(signal: np.ndarray, rate: int) -> tuple[float, float]:
    """Active speech level in dBov and activity factor, by method B of ITU-T P.56 (§7)."""
    keep = math.exp(-1.0 / (rate * 0.03))
    hangover = round(0.2 * rate)
    envelope = np.abs(signal)
    for _ in range(2):
        smooth, last = np.empty_like(envelope), 0.0
        for i, value in enumerate(envelope):
            last = keep * last + (1.0 - keep) * value
            smooth[i] = last
        envelope = smooth
    energy = float(np.sum(signal**2))
    before: tuple[float, float, float] | None = None
    for exponent in range(15, 0, -1):
        threshold = 2.0**-exponent
        above = np.flatnonzero(envelope >= threshold)
        if not len(above):
            break
        # A sample is active up to the hangover after the envelope was above the threshold.
        gaps = np.diff(np.append(above, len(signal) + hangover))
        active = int(np.sum(np.minimum(gaps, hangover + 1)))
        active = min(active, len(signal) - int(above[0]))
        level, edge = 10 * math.log10(energy / active), 20 * math.log10(threshold)
        margin = level - edge - 15.9
        if margin <= 0 and before:
            share = before[1] / (before[1] - margin)
            found = before[0] + share * (level - before[0])
            return found, energy / len(signal) / 10 ** (found / 10)
        before = level, margin, active
    raise ValueError("the signal has no active level")


def decode(file: Path) -> np.ndarray:
    """Samples of a file of G.722, or of a WAV file at 16 kHz."""
    if file.suffix == ".wav":
        with wave.open(str(file)) as source:
            assert source.getframerate() == RATE and source.getnchannels() == 1
            pcm = source.readframes(source.getnframes())
    else:
        data = file.read_bytes()
        sound, count = spandsp("g722_decode", data, len(data), 4 * len(data), 64_000, 0)
        pcm = sound[: 2 * count]
    return np.frombuffer(pcm, dtype="<i2").astype(float) / 32_768.0


def cut(signal: np.ndarray) -> np.ndarray:
    """Up to the first pause after ``SECONDS``, without offset, with 20 ms of fade at both ends."""
    loud = np.abs(signal) > QUIET
    first, last = np.flatnonzero(loud)[[0, -1]]
    margin, window = round(0.1 * RATE), round(PAUSE_S * RATE)
    end = last
    for at in np.flatnonzero(loud[first + round(SECONDS * RATE) :]) + first + round(SECONDS * RATE):
        if not loud[at + 1 : at + window].any():
            end = at
            break
    part = signal[max(0, first - margin) : end + margin]
    part = part - part.mean()
    fade = round(0.02 * RATE)
    part[:fade] *= np.linspace(0, 1, fade)
    part[-fade:] *= np.linspace(1, 0, fade)
    return part


def main(packages: Path) -> None:
    """Write the recordings."""
    for name, files in SOURCES.items():
        gap = np.zeros(round(0.4 * RATE))
        parts = [part for file in files for part in (decode(packages / file), gap)]
        signal = cut(np.concatenate(parts))
        level, _ = active_level(signal, RATE)
        signal *= 10 ** ((LEVEL_DBOV - level) / 20)
        assert np.abs(signal).max() < 1.0, name
        pcm = np.round(signal * 32_768).astype("<i2").tobytes()
        (SPEECH / f"{name}.wav").write_bytes(wav(pcm, RATE))
    for file in sorted(SPEECH.glob("*.wav")):
        signal = decode(file)
        level, activity = active_level(signal, RATE)
        peak = 20 * math.log10(np.abs(signal).max())
        seconds = len(signal) / RATE
        print(f"{file.name}: {seconds:.2f} s, {level:.1f} dBov ({activity:.0%}), peak {peak:.1f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
