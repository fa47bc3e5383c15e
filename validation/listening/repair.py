#!/usr/bin/env python3
"""What concealment, in-band FEC and DRED make of lost Opus packets, by PESQ, ViSQOL and PLCMOS.

Six recordings in Opus at 24 kbit/s lose the same packets under each of three patterns. Playout is
fixed and waits 600 ms, so that waiting for redundancy is free, and the encoder knows the share of
lost packets. Each clip is judged as one piece. README.md has the results.

    pip install 'talkspurt[scores]'
    python validation/listening/repair.py           # continues results.csv: one line per call
    python validation/listening/repair.py --table   # only the tables of README.md

"""

from __future__ import annotations

import csv
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

import talkspurt
from talkspurt import scores
from talkspurt.scores import models

HERE = Path(__file__).parent
SPEECH = HERE.parents[1] / "speech"
RESULTS = HERE / "results.csv"
CLIPS = (
    "english-man",
    "french-woman",
    "italian-man",
    "russian-woman",
    "sense-and-sensibility",
    "spanish-woman",
)
MASKS = {"pesq": 10, "visqol": 1, "plcmos": 1}
"""Masks by model: the slower ones judge the first masks only."""
PATTERNS = {
    "random 8.5 %": (0.085, 1, False),
    "random 17 %": (0.17, 1, False),
    "bursts 12.5 %": (0.125, 5, True),
    "single 8.5 %": (0.085, 1, True),
    "single 17 %": (0.17, 1, True),
}
"""Share of lost packets, how many consecutive ones are lost at once, and whether never more."""
PESQ_ONLY = ("single 8.5 %", "single 17 %")
METHODS = {"PLC": "", "FEC": ", fec = true", "DRED": ', dred = "500ms"'}
SPARED = 25
"""Packets at the beginning that are not lost."""
COLUMNS = ("clip", "pattern", "mask", "method", "packets", "lost", "unheard", *scores.MODELS)
CALL = """
[links.{name}]
from = "a-{name}"
to = "b-{name}"
rate = "10Mbit/s"
delay = "10ms"
queue = {{ kind = "droptail", packets = 100 }}
steps = [{steps}]

[flows.{name}]
from = "a-{name}"
to = "b-{name}"
transport = {{ kind = "udp" }}
playout = {{ kind = "fixed", {playout} }}
rtcp = {{ enabled = false }}

[flows.{name}.source]
kind = "speech"
file = "{file}"
{source}
"""


def call(
    name: str, file: Path, lost: Iterable[tuple[float, float]], playout: str, source: str
) -> str:
    """A call over a link of its own that loses all packets of these times."""
    steps = "".join(
        f'{{ at = "{start:.4f}s", loss = 1.0 }}, {{ at = "{end:.4f}s", loss = 0.0 }}, '
        for start, end in lost
    )
    return CALL.format(name=name, steps=steps, file=file, playout=playout, source=source)


def scenario(clip: str, share: float, lost: dict[str, list[tuple[float, float]]]) -> str:
    """A call for each method."""
    parts = ['title = "Repair"\nduration = "18s"\nseed = 1\n']
    for name, opus in METHODS.items():
        source = f'opus = {{ bitrate = "24kbit/s", expected_loss = {share}{opus} }}'
        source += '\ncodec = "opus"'
        parts.append(call(name, SPEECH / f"{clip}.wav", lost[name], 'buffer = "600ms"', source))
    return "".join(parts)


def mask(
    packets: int, share: float, burst: int, apart: bool, seed: list[int]
) -> list[tuple[int, int]]:
    """First and last of the packets of each loss: as many as the share says, at random places."""
    rng = np.random.default_rng(seed)
    count = round(share * packets / burst)
    if not apart:
        places = SPARED + rng.choice(packets - SPARED, count, replace=False)
        return [(int(place), int(place)) for place in sorted(places)]
    # Bursts and the packets between them in random order, at least one between two bursts.
    free = packets - SPARED - count * (burst + 1)
    gaps = sorted(rng.choice(free + count, count, replace=False))
    starts = [SPARED + int(gap) - k + k * (burst + 1) for k, gap in enumerate(gaps)]
    return [(start, start + burst - 1) for start in starts]


def measured(done: set[tuple[str, ...]]) -> Iterator[list[object]]:
    """The rows that are missing."""
    sent: dict[str, dict[str, list[float]]] = {}
    for number in range(max(MASKS.values())):
        for clip in CLIPS:
            for pattern, (share, burst, apart) in PATTERNS.items():
                if all((clip, pattern, str(number), method) in done for method in METHODS):
                    continue
                if clip not in sent:
                    plain = talkspurt.run(scenario(clip, 0.1, {method: [] for method in METHODS}))
                    sent[clip] = {m: plain.frames(m)["handed_over_s"].to_list() for m in METHODS}
                packets = len(sent[clip]["PLC"])
                seed = [number, CLIPS.index(clip), list(PATTERNS).index(pattern)]
                lost = mask(packets, share, burst, apart, seed)
                times = {
                    method: [(at[first] - 0.008, at[last] + 0.008) for first, last in lost]
                    for method, at in sent[clip].items()
                }
                run = talkspurt.run(scenario(clip, share, times))
                for method in METHODS:
                    if (clip, pattern, str(number), method) in done:
                        continue
                    flow = run.flows.filter(name=method).row(0, named=True)
                    missing = sum(last - first + 1 for first, last in lost)
                    assert flow["lost_packets"] == missing, (clip, pattern, method, flow)
                    audio = run.audio(method)
                    numbers = [
                        ""
                        if number >= MASKS[model] or (model != "pesq" and pattern in PESQ_ONLY)
                        else f"{models.score(model, audio.sent, audio.received, audio.rate):.4f}"
                        for model in scores.MODELS
                    ]
                    unheard = f"{flow['concealed_ratio']:.4f}"
                    yield [clip, pattern, number, method, packets, missing, unheard, *numbers]


def interval(values: np.ndarray) -> tuple[float, float]:
    """Mean and half of Student's 95 % interval."""
    n = len(values)
    half = float(stdtrit(n - 1, 0.975)) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return float(np.mean(values)), half


def tables() -> str:
    """Means over all calls, and the gains over concealment; intervals over the clips.

    The masks of a clip are not independent samples of speech: first the mean of each clip is taken,
    then the interval over the clips.
    """
    with RESULTS.open(encoding="utf-8") as file:
        every = list(csv.DictReader(file))
    print(f"{len(every)} calls of {len(CLIPS)} clips")
    out = []
    for model in scores.MODELS:
        rows = [row for row in every if row[model] and int(row["mask"]) < MASKS[model]]
        rows = [row for row in rows if model == "pesq" or row["pattern"] not in PESQ_ONLY]
        masks = len({row["mask"] for row in rows})
        label = f"{scores.MODELS[model].label}, {masks} masks"
        out.append(f"\n| {label} | PLC | FEC | DRED | FEC − PLC | DRED − PLC | DRED − FEC |")
        out.append("|---|---:|---:|---:|---:|---:|---:|")
        found = defaultdict(list)
        for row in rows:
            found[row["pattern"], row["method"], row["clip"]].append(float(row[model]))
        for pattern in dict.fromkeys(row["pattern"] for row in rows):
            plc, fec, dred = (
                np.array([np.mean(found[pattern, method, clip]) for clip in CLIPS])
                for method in METHODS
            )
            cells = [interval(v) for v in (plc, fec, dred, fec - plc, dred - plc, dred - fec)]
            shown = [f"{mean:.2f} ± {half:.2f}" for mean, half in cells[:3]]
            shown += [f"{mean:+.2f} ± {half:.2f}" for mean, half in cells[3:]]
            out.append(f"| {pattern} | {' | '.join(shown)} |".replace("-", "−"))
    return "\n".join(out)


def resumed(
    results: Path,
    columns: Sequence[str],
    keys: Sequence[str],
    measured: Callable[[set[tuple[str, ...]]], Iterator[Iterable[object]]],
) -> None:
    """Append what is missing to the results; with ``--table``, nothing is measured."""
    done: set[tuple[str, ...]] = set()
    if results.exists():
        with results.open(encoding="utf-8") as file:
            done = {tuple(row[key] for key in keys) for row in csv.DictReader(file)}
    else:
        results.write_text(",".join(columns) + "\n", encoding="utf-8")
    if "--table" not in sys.argv:
        for row in measured(done):
            with results.open("a", encoding="utf-8") as file:
                file.write(",".join(map(str, row)) + "\n")


def main() -> None:
    """Measure what is missing, then print the tables."""
    resumed(RESULTS, COLUMNS, ("clip", "pattern", "mask", "method"), measured)
    print(tables())


if __name__ == "__main__":
    main()
