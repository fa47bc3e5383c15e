#!/usr/bin/env python3
"""Opus packets of a capture: FFmpeg's own decoder, against the sound that talkspurt plays.

FFmpeg's decoder ``opus`` shares no code with libopus. CELT frames agree to 16 bits. For SILK and
hybrid frames it resamples with another filter, which delays by up to three samples more or less;
what remains after the best delay is the difference of the filters.

    pip install av           # PyAV 18, which includes FFmpeg
    python validation/codecs/opus.py

Printed in November 2026 with PyAV 18.1.0:

    20ms bitrate = "32kbit/s": 569 packets, SNR 24.4 dB at -1.50 samples
    20ms bitrate = "24kbit/s", fec = true, dred = "300ms", expected_loss = 0.2: 569 packets, SNR
        23.5 dB at -1.40 samples
    60ms bitrate = "12kbit/s": 190 packets, SNR 22.7 dB at -1.30 samples
    120ms bitrate = "20kbit/s": 95 packets, SNR 24.0 dB at -1.50 samples
    20ms bitrate = "6kbit/s": 569 packets, SNR 20.4 dB at -2.90 samples
    20ms bitrate = "20kbit/s", rate_control = "vbr": 569 packets, SNR 24.4 dB at -1.50 samples
    2.5ms bitrate = "96kbit/s", application = "low-delay": 4549 packets, SNR 75.1 dB at 0.00 samples
    40ms bitrate = "510kbit/s", application = "audio": 285 packets, SNR 75.0 dB at 0.00 samples
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from pathlib import Path

import av
import numpy as np

import talkspurt

SPEECH = Path(__file__).parents[2] / "speech" / "french-woman.wav"
CASES = (
    ("20ms", 'bitrate = "32kbit/s"'),
    ("20ms", 'bitrate = "24kbit/s", fec = true, dred = "300ms", expected_loss = 0.2'),
    ("60ms", 'bitrate = "12kbit/s"'),
    ("120ms", 'bitrate = "20kbit/s"'),
    ("20ms", 'bitrate = "6kbit/s"'),
    ("20ms", 'bitrate = "20kbit/s", rate_control = "vbr"'),
    ("2.5ms", 'bitrate = "96kbit/s", application = "low-delay"'),
    ("40ms", 'bitrate = "510kbit/s", application = "audio"'),
)
SCENARIO = """
title = "Opus"
duration = "12s"
seed = 1
record.pcapng = ["link"]

[links.link]
from = "a"
to = "b"
rate = "10Mbit/s"
mtu = "4000B"
delay = "10ms"
queue = {{ kind = "droptail", packets = 100 }}

[flows.call]
from = "a"
to = "b"
transport = {{ kind = "udp" }}
playout = {{ kind = "fixed" }}
rtcp = {{ enabled = false }}

[flows.call.source]
kind = "speech"
file = "{file}"
codec = "opus"
packet = "{packet}"
opus = {{ {opus} }}
"""


def payloads(capture: Path) -> list[bytes]:
    """The RTP payloads in the order of their timestamps; the link is captured at both ends."""
    command = ["tshark", "-r", str(capture), "-T", "fields", "-e", "udp.payload"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    packets = {
        struct.unpack(">I", packet[4:8])[0]: packet[12:] for packet in map(bytes.fromhex, lines)
    }
    first = struct.unpack(">I", bytes.fromhex(lines[0])[4:8])[0]
    return [packets[stamp] for stamp in sorted(packets, key=lambda stamp: (stamp - first) % 2**32)]


def decoded(packets: list[bytes]) -> np.ndarray:
    """The sound, with 16-bit full scale."""
    decoder = av.CodecContext.create("opus", "r")
    decoder.sample_rate, decoder.layout = 48_000, "mono"
    frames = [
        frame.to_ndarray()[0] for packet in packets for frame in decoder.decode(av.Packet(packet))
    ]
    return np.concatenate(frames).astype(float) * 32_768


def agreement(heard: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """The best SNR in dB over delays of up to four samples, and that delay."""
    size, inner = 1 << 20, slice(2000, -4000)
    spectrum, tones = np.fft.rfft(other, size), np.fft.rfftfreq(size)
    found = []
    for delay in np.arange(-4, 4.05, 0.05):
        moved = np.fft.irfft(spectrum * np.exp(-2j * np.pi * tones * delay), size)[: heard.size]
        noise = ((heard - moved)[inner] ** 2).sum()
        found.append((float(10 * np.log10((heard[inner] ** 2).sum() / noise)), float(delay)))
    return max(found)


for packet, opus in CASES:
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "opus.toml"
        scenario.write_text(
            SCENARIO.format(file=SPEECH, packet=packet, opus=opus), encoding="utf-8"
        )
        result = talkspurt.run(scenario)
        result.save(Path(folder) / "run")
        packets = payloads(next((Path(folder) / "run").rglob("*.pcapng")))
    snr, delay = agreement(result.audio("call").received.astype(float), decoded(packets))
    print(f"{packet} {opus}: {len(packets)} packets, SNR {snr:.1f} dB at {delay:.2f} samples")
