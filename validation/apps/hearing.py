"""Scores of sound that another program received, against the speech that it was given.

Whoever plays the speech begins somewhere in it and repeats it, and a jitter buffer moves it. Each
segment of 8 s of the received sound is therefore looked for in the repeated speech by its
correlation, and compared with what is found there; PESQ and ViSQOL align what is left themselves.
Our own received sound goes through the same function, so that both are judged alike.
"""

from __future__ import annotations

import io
import math
import subprocess
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from networks import SECONDS, simulated, spread, within

from talkspurt import scores
from talkspurt.results.audio import Audio, wav
from talkspurt.scores import aligning as speech_of
from talkspurt.scores import models

Samples = npt.NDArray[np.int16]
ROOT = Path(__file__).resolve().parents[2]
SPEECH = ("english-man", "french-woman", "sense-and-sensibility", "italian-man", "spanish-woman")
SEGMENT_S = 8
SEEDS = range(1, 4)
LOST_LEAST, SCORE_LEAST = 0.01, 0.3
"""Bands, set before the first measurement: the range of our seeds, widened by one point of loss,
and by 0.3 of a score."""
AUDIBLE = 300
"""Samples with a greater magnitude, about -40 dB, are a sound."""
SETTLED_S = 1.0
"""At the beginning, the connection is set up and buffers settle."""


def speech(folder: Path, rate: int) -> Path:
    """Our recordings, one after the other, as a file of 57 s."""
    file = folder / f"speech-{rate}.wav"
    if not file.exists():
        parts = [read(ROOT / "speech" / f"{name}.wav", rate) for name in SPEECH]
        file.write_bytes(wav(np.concatenate(parts).tobytes(), rate))
    return file


def read(file: Path, rate: int) -> Samples:
    """The sound of a file of any kind, mono at this rate, by FFmpeg."""
    words = ["ffmpeg", "-v", "error", "-i", str(file), "-ac", "1", "-ar", str(rate)]
    found = subprocess.run([*words, "-f", "wav", "-"], check=True, capture_output=True).stdout
    # FFmpeg cannot write the length to a pipe.
    with wave.open(io.BytesIO(found)) as sound:
        return np.frombuffer(sound.readframes(1 << 30), np.int16)


def judged(file: Path, folder: Path, rate: int, seconds: float) -> dict[str, float | None]:
    """Mean scores over the segments of a received file."""
    rows = [scores.rate(it) for it in _segments(file, folder, rate, seconds)]
    return {column: _mean([row[column] for row in rows]) for column in scores.COLUMNS}


def pesq(file: Path, folder: Path, rate: int, seconds: float) -> float | None:
    """The mean of PESQ alone, which takes a tenth of the time."""
    return _mean([
        models.score("pesq", it.sent, it.received, it.rate)
        if speech_of.is_heard(it.received) else scores.BOTTOM
        for it in _segments(file, folder, rate, seconds)
    ])  # fmt: skip


def _segments(file: Path, folder: Path, rate: int, seconds: float) -> Iterator[Audio]:
    """Each 8 s of a received file, with what was said."""
    spoken = read(speech(folder, rate), rate)
    twice = np.concatenate([spoken, spoken[: SEGMENT_S * rate]])
    heard = read(file, rate)
    first = max(round(SETTLED_S * rate), _onset(heard))
    for begin in range(first, round(seconds * rate) - SEGMENT_S * rate + 1, SEGMENT_S * rate):
        segment = heard[begin : begin + SEGMENT_S * rate]
        if len(segment) < SEGMENT_S * rate:
            return
        at = _place(twice, segment)
        sent = twice[at : at + len(segment)]
        yield Audio("call", sent.tobytes(), segment.tobytes(), rate)


def _onset(heard: Samples) -> int:
    """Where the first sound is: over a long path, a recorder hears silence before the call."""
    loud = np.flatnonzero(np.abs(heard.astype(np.int32)) > AUDIBLE)
    return int(loud[0]) if loud.size else 0


def _place(spoken: Samples, segment: Samples) -> int:
    """Where the segment begins in the speech: the greatest correlation."""
    size = 1 << (len(spoken) + len(segment)).bit_length()
    spectrum = np.fft.rfft(spoken, size) * np.conj(np.fft.rfft(segment, size))
    return int(np.argmax(np.fft.irfft(spectrum, size)[: len(spoken) - len(segment) + 1]))


def _mean(values: list[Any]) -> float | None:
    there = [it for it in values if it is not None]
    return math.fsum(there) / len(there) if there else None


def ours(
    name: str,
    network: dict[str, Any],
    flow: dict[str, Any],
    start_s: float,
    folder: Path,
    *,
    rate: int,
) -> dict[str, Any]:
    """Loss and PESQ of our call over a network: least, mean and greatest of the seeds."""
    rows = []
    for run in simulated(name, network, flow, start_s, seeds=SEEDS):
        row = run.flows.filter(name="ours").to_dicts()[0]
        run.audio("ours").save(folder / "ours")
        rows.append({
            "lost": row["lost_packets"] / row["sent_packets"],
            "concealed": row["concealed_ratio"],
            "pesq": pesq(folder / "ours" / "ours.received.wav", folder, rate, SECONDS),
        })  # fmt: skip
    return {key: spread([row[key] for row in rows]) for key in rows[0]}


def agrees(key: str, value: float, ours: list[float]) -> bool:
    """Whether a loss or a score is within the band."""
    return within(value, ours, 0.0, LOST_LEAST if key == "lost" else SCORE_LEAST)
