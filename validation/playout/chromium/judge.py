#!/usr/bin/env python3
"""Compares our jitter buffer with Chromium's on the same arrivals, for validation/playout.md.

    .venv/bin/python validation/playout/chromium/judge.py [--profile NAME] [--held-out] [--print]

``replay`` is the only place that knows our buffer, whose profile is NAME. Definitions and
tolerances are in ``traces.py``. The held-out traces are compared once, when the buffer is finished.
``--print`` leaves the page; ``--call roaming-1`` only prints one call second by second.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import recordings
from recordings import Call

import traces

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "apps"))
import chromium
import hearing
from made import ROOT
from tables import fill, table

PAGE = ROOT / "docs" / "validation" / "playout.md"
TWICE = Path(__file__).resolve().parent / "twice.json"
"""Written by ``twice.py``."""
PLAYOUT: dict[str, Any] = {"kind": "adaptive", "profile": "libwebrtc"}
"""The buffer that is compared, as in a scenario."""

Samples = dict[str, Sequence[float]]
"""Counters of ``getStats`` by name, at the times of a call's samples."""


def arrived_s_of(milliseconds: Sequence[int]) -> Any:
    """Arrivals in seconds: in one millisecond in the order of the log, 5 µs apart.

    Without, packets of one millisecond would arrive in the order of their lengths.
    """
    _, firsts, of = np.unique(milliseconds, return_index=True, return_inverse=True)
    return np.array(milliseconds) / 1e3 + 5e-6 * (np.arange(len(milliseconds)) - firsts[of])


def replay(call: Call) -> Samples:
    """What our buffer's counters are at the times of the samples, after the call's arrivals.

    The four that are compared: ``jitterBufferDelay`` and ``jitterBufferEmittedCount``,
    ``concealedSamples`` and ``totalSamplesReceived``.
    """
    arrivals = call["arrivals"]
    places = recordings.places(call)
    sent_s, arrived_s = chromium.FRAME_S * places, arrived_s_of(arrivals["ms"])
    # No packet arrives before it was sent.
    arrived_s += max(0.0, float(np.max(sent_s - arrived_s)))
    rows = pl.DataFrame({"place": places, "left_s": sent_s, "arrived_s": arrived_s})
    rows = rows.unique("place", keep="first").sort("place")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        run = chromium.same_packets(
            rows, hearing.speech(folder, chromium.RATE_HZ), folder, {"fec": False}, PLAYOUT
        )
    frames = run.frames("ours").filter(pl.col("fate") == "played").sort("playout_s")
    arrived_ms = dict(zip(places.tolist(), arrivals["ms"], strict=True))
    first = frames.row(0, named=True)
    begin_s = first["delivered_s"] - arrived_ms[first["index"]] / 1e3
    # Our packets have no FEC; the frame before one of Chromium's that had is recovered.
    is_repaired = pl.col("index").is_in(places[arrivals["fec"]].tolist())
    missing_s = chromium.FRAME_S * (pl.col("index").diff() - 1)
    between_s = pl.col("playout_s").diff() - pl.col("paused_s") - chromium.FRAME_S
    repaired_s = pl.when(is_repaired).then(chromium.FRAME_S).otherwise(0.0)
    lost_s = (pl.min_horizontal(between_s, missing_s) - repaired_s).clip(0).fill_null(0.0)
    heard = frames.select(
        at_s=pl.col("playout_s") - begin_s,
        waited_s=pl.col("playout_s") - pl.col("delivered_s"),
        concealed_s=pl.col("paused_s") + lost_s,
    ).to_dict(as_series=False)
    at_s, waited_s, concealed_s = (np.array(column) for column in heard.values())
    times_s = recordings.sampled_ms(call) / 1e3
    emitted = np.searchsorted(at_s, times_s, side="right")
    # What is concealed precedes the frame.
    edges_s = np.column_stack([at_s - concealed_s, at_s]).ravel()
    sums_s = np.column_stack([np.cumsum(concealed_s) - concealed_s, np.cumsum(concealed_s)]).ravel()
    return {
        "jitterBufferDelay": (
            recordings.FRAME * np.append(0.0, np.cumsum(waited_s))[emitted]
        ).tolist(),
        "jitterBufferEmittedCount": (recordings.FRAME * emitted).tolist(),
        "concealedSamples": (recordings.RATE_HZ * np.interp(times_s, edges_s, sums_s)).tolist(),
        "totalSamplesReceived": (recordings.RATE_HZ * times_s).tolist(),
    }


def delays_s(samples: Samples) -> list[float | None]:
    """The mean delay in each interval; None where nothing was emitted."""
    rows = zip(samples["jitterBufferDelay"], samples["jitterBufferEmittedCount"], strict=True)
    return [
        (delay - old_delay) / (emitted - old_emitted) if emitted > old_emitted else None
        for (old_delay, old_emitted), (delay, emitted) in pairwise(rows)
    ]


def concealed(samples: Samples) -> float:
    """The share of concealed samples over the whole call."""
    lost, taken = samples["concealedSamples"], samples["totalSamplesReceived"]
    return (lost[-1] - lost[0]) / (taken[-1] - taken[0])


@dataclass(frozen=True)
class Compared:
    """A call in Chromium and in our buffer.

    Attributes:
        apart_s: differences of delay in the intervals; infinite where only one emitted.
        delays_s: mean delays over the whole call, Chromium's first.
        concealed: concealed shares, Chromium's first.
    """

    apart_s: list[float]
    delays_s: tuple[float, float]
    concealed: tuple[float, float]


def compare(call: Call, replay: Callable[[Call], Samples] = replay) -> Compared:
    """Chromium's counters beside those of a buffer with the same arrivals."""
    both = call["samples"], replay(call)
    apart = [
        float("inf") if theirs is None or ours is None else abs(theirs - ours)
        for theirs, ours in zip(*map(delays_s, both), strict=True)
        if theirs is not None or ours is not None
    ]
    theirs, ours = (
        (one["jitterBufferDelay"][-1] / one["jitterBufferEmittedCount"][-1], concealed(one))
        for one in both
    )
    return Compared(apart, (theirs[0], ours[0]), (theirs[1], ours[1]))


def twice() -> dict[str, list[Compared]]:
    """By trace, Chromium compared with itself: the same arrivals, and other speech."""
    found: dict[str, list[Compared]] = {}
    for call, row in json.loads(TWICE.read_text()).items():
        apart_s = [float("inf") if apart is None else apart for apart in row["apart_s"]]
        one = Compared(apart_s, tuple(row["delays_s"]), tuple(row["concealed"]))
        found.setdefault(call.rpartition("-")[0], []).append(one)
    return found


@dataclass(frozen=True)
class Verdict:
    """All calls of a trace, by the definitions of ``traces.py``."""

    trace: str
    compared: Sequence[Compared]

    @property
    def apart_s(self) -> float:
        """The least difference of delay that 95 % of the intervals do not exceed."""
        each = sorted(apart for call in self.compared for apart in call.apart_s)
        return each[max(0, -(-95 * len(each) // 100) - 1)]

    @property
    def delays_s(self) -> tuple[float, float]:
        """Mean delays, Chromium's first."""
        return self._means("delays_s")

    @property
    def concealed(self) -> tuple[float, float]:
        """Mean shares, Chromium's first."""
        return self._means("concealed")

    def _means(self, name: str) -> tuple[float, float]:
        theirs, ours = np.mean([getattr(call, name) for call in self.compared], axis=0).tolist()
        return theirs, ours

    @property
    def is_within(self) -> bool:
        """Whether both tolerances hold."""
        theirs, ours = self.concealed
        return self.apart_s <= traces.DELAY_S and abs(theirs - ours) <= traces.CONCEALED

    def row(self, itself: Verdict | None) -> Iterator[str]:
        """Of the table; beside it, Chromium compared with itself, if it was."""
        yield f"`{self.trace}`: {(traces.ALL[self.trace].__doc__ or '').rstrip('.')}"
        yield str(len(self.compared))
        yield from (f"{1e3 * delay:.0f} ms" for delay in self.delays_s)
        yield f"{1e3 * self.apart_s:.0f} ms"
        yield f"{1e3 * itself.apart_s:.0f} ms" if itself else "–"
        yield from (f"{100 * share:.2f} %" for share in self.concealed)
        yield "yes" if self.is_within else "**no**"


HEAD = (
    "trace | calls | Chromium's delay | ours | 95 % of the differences at most"
    " | of Chromium, other speech | Chromium conceals | ours | within the tolerances"
)


def wanted(split: Sequence[traces.Trace]) -> list[tuple[str, int]]:
    """The calls over these traces that have been recorded."""
    each = ((one.__name__, seed) for one in split for seed in traces.SEEDS)
    return [one for one in each if recordings.file(*one).exists()]


def judged(which: Sequence[tuple[str, int]], jobs: int) -> list[Verdict]:
    """Compares calls, and sums up by trace."""
    with ProcessPoolExecutor(jobs) as pool:
        found = list(pool.map(_compared, which))
    by_name: dict[str, list[Compared]] = {}
    for (name, _), one in zip(which, found, strict=True):
        by_name.setdefault(name, []).append(one)
    return [Verdict(*both) for both in by_name.items()]


def _compared(which: tuple[str, int]) -> Compared:
    return compare(recordings.load(*which))


def second_by_second(call: Call) -> str:
    """Delays, and samples concealed, in each interval; Chromium's first."""
    both = call["samples"], replay(call)
    delays = [
        ["-" if delay is None else f"{1e3 * delay:.0f}" for delay in delays_s(one)] for one in both
    ]
    lost = [[f"{now - old:.0f}" for old, now in pairwise(one["concealedSamples"])] for one in both]
    ends = [f"{ms / 1e3:.1f}" for ms in call["samples"]["ms"][1:]]
    head = "until s | Chromium ms | ours | concealed | ours"
    return table(head, zip(ends, *delays, *lost, strict=True), "rrrrr")


def main() -> None:
    """Compare, and fill the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default=PLAYOUT["profile"])
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--call")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    PLAYOUT["profile"] = asked.profile
    if asked.call:
        name, _, seed = asked.call.rpartition("-")
        print(second_by_second(recordings.load(name, int(seed))))
        return
    kind, split = ("held-out", traces.HELD_OUT) if asked.held_out else ("dev", traces.DEV)
    verdicts = judged(wanted(split), asked.jobs)
    itself = {name: Verdict(name, found) for name, found in twice().items()}
    text = table(HEAD, (one.row(itself.get(one.trace)) for one in verdicts), "lrrrrrrrl")
    print(text)
    if not asked.print:
        each = [recordings.load(*one) for one in wanted((*traces.DEV, *traces.HELD_OUT))]
        longest_s = max(recordings.starved(one)["longest_s"] for one in each)
        profile = f", profile `{asked.profile}`"
        parts = {
            "chromium": ", ".join(sorted({one["chromium"] for one in each})),
            "chromium-longest": f"{1e3 * longest_s:.0f}",
            "chromium-ours": f"`adaptive`{profile}",
            "chromium-delay": f"{1e3 * traces.DELAY_S:.0f}",
            "chromium-concealed": f"{100 * traces.CONCEALED:.1f}",
        }
        fill(PAGE, {**parts, f"chromium-{kind}": text})


if __name__ == "__main__":
    main()
