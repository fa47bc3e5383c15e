#!/usr/bin/env python3
"""The scores of clips whose values the authors of PESQ's package and of ViSQOL print.

    git clone https://github.com/ludlows/PESQ
    git clone https://github.com/google/visqol
    pip install 'talkspurt[scores]'
    python validation/listening/upstream.py PESQ/audio visqol/testdata/clean_speech

Printed in November 2026 with pesq 0.0.4 and visqol-python 3.8.0:

    speech.wav speech_bab_0dB.wav 16000 Hz pesq_wb: 1.0832, printed 1.0832
    CA01_01.wav transcoded_CA01_01.wav 48000 Hz visqol: 3.3004, printed 3.3129
    CA01_01.wav CA01_01.wav 48000 Hz visqol: 4.5045, printed 4.5056

"""

from __future__ import annotations

import sys
from pathlib import Path

from talkspurt import scores
from talkspurt.results.audio import Audio, read_wav

CASES = (
    # tests/test_pesq.py of PESQ.
    ("speech.wav", "speech_bab_0dB.wav", "pesq_wb", 1.0832337141036987),
    # src/include/conformance.h of ViSQOL 3.3.3, lattice model: kConformanceSpeechCA01Transcoded…,
    # kConformanceCA01PerfectScore….
    ("CA01_01.wav", "transcoded_CA01_01.wav", "visqol", 3.3129234313964844),
    ("CA01_01.wav", "CA01_01.wav", "visqol", 4.505550384521484),
)


def main() -> None:
    """Print our value beside each printed one."""
    folders = [Path(name) for name in sys.argv[1:]]
    for sent, received, column, printed in CASES:
        found = next((f for f in folders if (f / received).exists()), None)
        if found is None:
            print(f"{received}: not found, skipped")
            continue
        pcm, rate, _ = read_wav(found / sent)
        heard, *_ = read_wav(found / received)
        ours = scores.rate(Audio("clip", pcm, heard, rate))[column]
        print(f"{sent} {received} {rate} Hz {column}: {ours:.4f}, printed {printed:.4f}")


if __name__ == "__main__":
    main()
