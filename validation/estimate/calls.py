#!/usr/bin/env python3
"""Calls with known losses through every codec, judged by PESQ and ViSQOL: the data of the estimate.

Each talker speaks through every setup; packets are lost at given places. What was sent and what was
heard are brought to 8 kHz, the band of the scale, and judged by narrowband PESQ (P.862.1) and
ViSQOL's speech mode. docs/validation/estimate.md has the protocol; ``fit.py`` makes the curves.

    pip install 'talkspurt[scores,av]'; apt-get install libbcg729-0
    python validation/estimate/calls.py fit FOLDER    # continues calls.csv: a line per call
    python validation/estimate/calls.py held FOLDER   # FOLDER has the recordings of talkers.csv

"""

from __future__ import annotations

import csv
import hashlib
import math
import subprocess
import sys
import tempfile
import wave
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import talkspurt

sys.path.insert(0, str(Path(__file__).parents[1] / "listening"))
from repair import call

HERE = Path(__file__).parent
RESULTS, TALKERS = HERE / "calls.csv", HERE / "talkers.csv"
COLUMNS = (
    "part", "talker", "setup", "loss", "burst", "mask", "packets", "unheard", "burst_ratio",
    "recovered", "pesq", "visqol",
)  # fmt: skip
CLIP_S = 8.0
"""Of each recording, its first seconds: the models were made for clips of this length."""
LEVEL = 10 ** (-26 / 20) * 32768
"""RMS of the parts with speech, −26 dBov as in listening tests."""
SPARED = 15
"""Packets at the beginning that are not lost."""
AT_ONCE = 30
"""Calls of one simulation."""
MASKS = {"fit": 2, "held": 2}


@dataclass(frozen=True)
class Setup:
    """How a call is coded and played."""

    codec: str
    packet_ms: int = 20
    opus: str = ""
    playout: str = 'buffer = "200ms"'


def _opus(rate: int, more: str = "", packet_ms: int = 20, wait_ms: int = 200) -> Setup:
    return Setup("opus", packet_ms, f'bitrate = "{rate}kbit/s"{more}', f'buffer = "{wait_ms}ms"')


FEC, DRED = ", fec = true", ', dred = "500ms"'
AMR = ("12.2", "10.2", "7.95", "7.4", "6.7", "5.9", "5.15", "4.75")
SILENT = 'buffer = "200ms", concealment = "silence"'
SETUPS = {
    "pcmu": Setup("pcmu"),
    "pcmu 10 ms": Setup("pcmu", 10),
    "pcmu silence": Setup("pcmu", playout=SILENT),
    "g722": Setup("g722"),
    **{f"g726-{rate}": Setup(f"g726-{rate}") for rate in (40, 32, 24, 16)},
    "g729a": Setup("g729a"),
    "g723.1-6.3": Setup("g723.1-6.3", 30),
    **{f"amr-{mode}": Setup(f"amr-{mode}") for mode in AMR},
    **{f"opus {rate}": _opus(rate) for rate in (6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64)},
    **{f"opus {rate} 60 ms": _opus(rate, packet_ms=60) for rate in (16, 24)},
    **{f"opus {rate} deep": _opus(rate, ", decoder_complexity = 5") for rate in (16, 24, 32)},
    **{f"opus {rate} fec": _opus(rate, FEC) for rate in (20, 24, 32, 40, 64)},
    **{f"opus {rate} dred": _opus(rate, DRED, wait_ms=600) for rate in (24, 32, 40, 48, 64)},
}
Loss = tuple[int, float]
"""Per cent of lost packets, and the mean number of packets lost in a row; 0 if they are random."""
NONE: Loss = (0, 0)
MAIN: tuple[Loss, ...] = ((1, 0), (3, 0), (10, 0), (20, 0), (6, 2.5), (15, 5))
SOME: tuple[Loss, ...] = ((3, 0), (10, 0), (15, 5))
REPAIRED: tuple[Loss, ...] = ((3, 0), (10, 0), (20, 0), (15, 5))
GRID: dict[str, dict[str, tuple[Loss, ...]]] = {
    "fit": {
        **dict.fromkeys(
            (
                "pcmu", "g722", "g726-32", "g729a", "g723.1-6.3", "amr-12.2", "amr-7.95",
                "amr-4.75", "opus 8", "opus 12", "opus 16", "opus 24", "opus 64",
            ),
            (NONE, *MAIN),
        ),
        **dict.fromkeys(
            (
                "pcmu 10 ms", "pcmu silence", "g726-16", "opus 16 60 ms", "opus 24 deep",
                "opus 32",
            ),
            (NONE, *SOME),
        ),
        **dict.fromkeys(("opus 24 fec", "opus 32 fec", "opus 64 fec"), REPAIRED),
        **dict.fromkeys(("opus 32 dred", "opus 48 dred"), REPAIRED),
        **dict.fromkeys(
            (
                "g726-40", "g726-24", "amr-10.2", "amr-7.4", "amr-6.7", "amr-5.9", "amr-5.15",
                "opus 6", "opus 20", "opus 40",
            ),
            (NONE,),
        ),
    },
    "held": {
        **dict.fromkeys(
            (
                "pcmu", "pcmu silence", "g722", "g726-40", "g726-24", "g729a", "g723.1-6.3",
                "amr-12.2", "amr-7.4", "amr-5.15", "opus 10", "opus 14", "opus 28", "opus 48",
            ),
            (NONE, (2, 0), (5, 0), (8, 2), (14, 0), (14, 4)),
        ),
        **dict.fromkeys(
            ("opus 24 60 ms", "opus 16 deep", "opus 32 deep", "opus 24"), (NONE, (5, 0), (14, 4))
        ),
        **dict.fromkeys(("opus 20 fec", "opus 40 fec"), ((2, 0), (5, 0), (14, 0), (14, 4))),
        **dict.fromkeys(
            ("opus 24 dred", "opus 40 dred", "opus 64 dred"), ((5, 0), (14, 0), (14, 4))
        ),
        **dict.fromkeys(("g726-32", "g726-16", "amr-10.2", "amr-7.95", "amr-6.7", "amr-5.9",
                         "amr-4.75", "opus 6", "opus 8", "opus 12", "opus 64"), (NONE,)),
    },
}  # fmt: skip


@dataclass(frozen=True)
class One:
    """A call: its setup, its loss and the number of its mask."""

    setup: str
    loss: Loss
    mask: int

    def key(self, part: str, talker: str) -> tuple[str, ...]:
        """The first columns of its row."""
        return part, talker, self.setup, str(self.loss[0]), f"{self.loss[1]:g}", str(self.mask)


def lost(packets: int, loss: Loss, seed: list[int]) -> list[int]:
    """Numbers of the lost packets: exactly as many as the loss says, at random places."""
    percent, burst = loss
    count = round(percent / 100 * packets)
    rng = np.random.default_rng(seed)
    if not burst:
        return sorted(int(n) for n in SPARED + rng.choice(packets - SPARED, count, replace=False))
    lengths: list[int] = []
    while sum(lengths) < count:
        lengths.append(min(int(rng.geometric(1 / burst)), count - sum(lengths)))
    # Bursts and the packets between them in random order, at least one between two bursts.
    free = packets - SPARED - count - len(lengths)
    gaps = sorted(rng.choice(free + len(lengths), len(lengths), replace=False))
    found, at, before = [], SPARED, -1
    for gap, length in zip(gaps, lengths, strict=True):
        at += int(gap) - before
        found += range(at, at + length)
        at, before = at + length, int(gap)
    return found


def recording(path: Path, folder: Path) -> Path:
    """The clip that is sent: the first seconds of a recording at −26 dBov."""
    with wave.open(str(path)) as file:
        rate = file.getframerate()
        pcm = np.frombuffer(file.readframes(round(CLIP_S * rate)), "<i2").astype(float)
    if rate not in (8000, 16000):
        from scipy.signal import resample_poly

        common = math.gcd(rate, 16000)
        pcm, rate = resample_poly(pcm, 16000 // common, rate // common), 16000
    pcm -= pcm.mean()
    step = rate // 50
    power = np.square(pcm[: len(pcm) // step * step]).reshape(-1, step).mean(axis=1)
    loud = np.sort(power)[-len(power) // 20 :].mean()
    active = power[power > loud / 1000].mean()
    pcm = np.clip(np.rint(pcm * LEVEL / math.sqrt(active)), -32768, 32767).astype("<i2")
    out = folder / f"{path.stem}.wav"
    with wave.open(str(out), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm.tobytes())
    return out


def scenario(clip: Path, calls: dict[str, tuple[One, list[float]]]) -> str:
    """A link and a call for each."""
    parts = ['title = "Estimate"\nduration = "10s"\nseed = 1\n']
    for name, (one, times) in calls.items():
        told = SETUPS[one.setup]
        half_s = 0.4 * told.packet_ms / 1000
        source = f'codec = "{told.codec}"\npacket = "{told.packet_ms}ms"'
        if told.opus:
            source += f"\nopus = {{ {told.opus}, expected_loss = {one.loss[0] / 100} }}"
        lost = [(at - half_s, at + half_s) for at in times]
        parts.append(call(name, clip, lost, told.playout, source))
    return "".join(parts)


def judged(sent: np.ndarray, received: np.ndarray, rate: int) -> list[float]:
    """PESQ and ViSQOL of both signals at 8 kHz."""
    from scipy.signal import resample_poly

    from talkspurt.scores import models

    common = math.gcd(rate, 8000)
    length = min(len(sent), len(received))
    sides = [
        np.clip(
            np.rint(resample_poly(side[:length].astype(float), 8000 // common, rate // common)),
            -32768,
            32767,
        ).astype(np.int16)
        for side in (sent, received)
    ]
    return [models.score(model, *sides, 8000) for model in ("pesq", "visqol")]


def outside(clip: Path, calls: list[tuple[One, list[int]]]) -> Iterator[tuple[One, list[object]]]:
    """Calls in G.729A, which no permissive encoder has: by bcg729."""
    from scipy.signal import resample_poly

    with wave.open(str(clip)) as file:
        rate = file.getframerate()
        plain = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float)
    common = math.gcd(rate, 8000)
    pcm = np.clip(np.rint(resample_poly(plain, 8000 // common, rate // common)), -32768, 32767)
    sent = pcm.astype("<i2")
    packets = len(sent) // 160
    for one, places in calls:
        told = ",".join(map(str, places))
        command = [sys.executable, str(HERE / "g729a.py"), told]
        raw = subprocess.run(command, input=sent.tobytes(), capture_output=True, check=True).stdout
        heard = np.frombuffer(raw, "<i2")
        share = len(places) / packets
        runs = sum(place - 1 not in places for place in places)
        ratio = len(places) / runs * (1 - share) if runs else None
        yield one, [packets, share, ratio, 0, *judged(sent, heard, 8000)]


def of_talker(part: str, talker: str, path: Path, wanted: list[One]) -> list[list[object]]:
    """The rows of a talker's calls."""
    seed = [int.from_bytes(hashlib.sha256(f"{part} {talker}".encode()).digest()[:4], "big")]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        clip = recording(path, Path(folder))

        def places(one: One, packets: int) -> list[int]:
            told = [*seed, one.mask, one.loss[0], round(10 * one.loss[1])]
            return lost(packets, one.loss, told) if one.loss[0] else []

        found: list[tuple[One, list[object]]] = []
        ours = [one for one in wanted if one.setup != "g729a"]
        for start in range(0, len(ours), AT_ONCE):
            names = {f"c{n}": one for n, one in enumerate(ours[start : start + AT_ONCE])}
            plain = talkspurt.run(scenario(clip, {n: (one, []) for n, one in names.items()}))
            calls = {}
            for name, one in names.items():
                at = plain.frames(name)["handed_over_s"].to_list()
                spoken = round(CLIP_S * 1000 / SETUPS[one.setup].packet_ms)
                calls[name] = one, [at[place] for place in places(one, min(len(at), spoken))]
            run = talkspurt.run(scenario(clip, calls))
            for name, (one, times) in calls.items():
                row = run.flows.filter(name=name).row(0, named=True)
                assert row["lost_packets"] == len(times), (talker, one, row)
                audio = run.audio(name).mono()
                told = [row["generated_packets"], row["concealed_ratio"], row["burst_ratio"]]
                told += [row["recovered_packets"], *judged(audio.sent, audio.received, audio.rate)]
                found.append((one, told))
        theirs = [one for one in wanted if one.setup == "g729a"]
        packets = round(CLIP_S * 50)
        found += outside(clip, [(one, places(one, packets)) for one in theirs])
    for one, told in found:
        shown = [f"{value:.5f}" if isinstance(value, float) else value for value in told]
        rows.append([*one.key(part, talker), *("" if value is None else value for value in shown)])
    return rows


def main() -> None:
    """Judge the calls that are missing."""
    part, folder = sys.argv[1], Path(sys.argv[2])
    done: set[tuple[str, ...]] = set()
    if RESULTS.exists():
        with RESULTS.open(encoding="utf-8") as file:
            done = {tuple(row[key] for key in COLUMNS[:6]) for row in csv.DictReader(file)}
    else:
        RESULTS.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    with TALKERS.open(encoding="utf-8") as file:
        talkers = [row["name"] for row in csv.DictReader(file) if row["part"] == part]
    every = [
        One(setup, loss, mask)
        for setup, losses in GRID[part].items()
        for loss in losses
        for mask in range(MASKS[part] if loss[0] else 1)
    ]
    with ProcessPoolExecutor(int(sys.argv[3]) if len(sys.argv) > 3 else 2) as pool:
        waiting = []
        for talker in talkers:
            wanted = [one for one in every if one.key(part, talker) not in done]
            path = folder / f"{talker}.wav"
            waiting.append(pool.submit(of_talker, part, talker, path, wanted))
        for talker, rows in zip(talkers, waiting, strict=True):
            with RESULTS.open("a", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows.result())
            print(talker, flush=True)


if __name__ == "__main__":
    main()
