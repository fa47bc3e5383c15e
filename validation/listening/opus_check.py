#!/usr/bin/env python3
"""The scores without loss of opus_fit.csv, again from other encoders and decoders: FFmpeg's.

FFmpeg encodes and decodes µ-law, G.726 and Opus (its own build of libopus), and nothing of
talkspurt is used but the recordings. The largest difference of PESQ says whether talkspurt's
codecs, or the way its calls are recorded, could have caused a result of the fit.

    pip install 'talkspurt[scores,av]'
    python validation/listening/opus_check.py

"""

from __future__ import annotations

import csv
import wave
from fractions import Fraction

import av
import numpy as np
from opus_fit import BANDS, RATES, RESULTS
from pesq import pesq
from repair import CLIPS, SPEECH
from scipy.signal import resample_poly

CUTOFFS = {"nb": "4000", "wb": "8000"}


def recording(clip: str, rate: int) -> np.ndarray:
    """A recording at another rate."""
    with wave.open(str(SPEECH / f"{clip}.wav")) as file:
        plain, own = np.frombuffer(file.readframes(file.getnframes()), "<i2"), file.getframerate()
    factor = Fraction(rate, own)
    found = resample_poly(plain / 32768, factor.numerator, factor.denominator)
    return np.clip(np.round(found * 32767), -32768, 32767).astype("<i2")


def coded(codec: str, bps: int, rate: int, sent: np.ndarray, options: dict[str, str]) -> np.ndarray:
    """What FFmpeg's decoder makes of its encoder's packets of 20 ms."""
    sides = [av.CodecContext.create(codec, mode) for mode in ("w", "r")]
    for side in sides:
        side.sample_rate, side.layout, side.format = rate, "mono", "s16"
        side.bit_rate = bps
    encoder, decoder = sides
    decoder.options = {"bits_per_coded_sample": str(bps // 8000)} if codec == "g726" else {}
    encoder.options, encoder.time_base = options, Fraction(1, rate)
    step, packets = rate // 50, []
    for start in range(0, len(sent) - step + 1, step):
        frame = av.AudioFrame.from_ndarray(sent[None, start : start + step], "s16", "mono")
        frame.sample_rate, frame.pts = rate, start
        packets += encoder.encode(frame)
    packets += encoder.encode(None)
    sound = [
        frame.to_ndarray().reshape(-1) for packet in packets for frame in decoder.decode(packet)
    ]
    whole = np.concatenate(sound)
    return whole / 32768 if whole.dtype.kind == "i" else whole


def main() -> None:
    """Compare every condition that FFmpeg has."""
    with RESULTS.open(encoding="utf-8") as file:
        ours = {
            (row["condition"], row["clip"]): float(row["pesq_nb"])
            for row in csv.DictReader(file)
            if row["loss_percent"] == "0"
        }
    ways = {"G.711": ("pcm_mulaw", 64_000, 8000, {})}
    ways |= {f"G.726-{k}": ("g726", k * 1000, 8000, {}) for k in (16, 24, 32, 40)}
    for rate in RATES:
        for band in BANDS:
            options = {"application": "voip", "vbr": "off", "cutoff": CUTOFFS[band]}
            options["compression_level"] = "9"
            ways[f"Opus {rate} {band}"] = ("libopus", rate * 1000, 48_000, options)
    print(f"{'condition':12} {'mean of ours':>12} {'FFmpeg':>7} {'largest difference':>18}")
    for name, (codec, bps, rate, options) in ways.items():
        theirs = {}
        for clip in CLIPS:
            sent = recording(clip, rate)
            received = coded(codec, bps, rate, sent, options)
            length = min(len(sent), len(received))
            sides = [
                np.clip(
                    resample_poly(side[:length], 1, rate // 8000) if rate > 8000 else side[:length],
                    -1,
                    1,
                )
                for side in (sent / 32768, received)
            ]
            theirs[clip] = float(pesq(8000, *sides, "nb"))
        own = [ours[name, clip] for clip in CLIPS]
        most = max(abs(theirs[clip] - ours[name, clip]) for clip in CLIPS)
        mean = np.mean(list(theirs.values()))
        print(f"{name:12} {np.mean(own):12.3f} {mean:7.3f} {most:18.3f}")


if __name__ == "__main__":
    main()
