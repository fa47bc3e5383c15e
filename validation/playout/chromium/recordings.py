"""Recorded calls: files in ``calls``, and how busy the machine was."""

from __future__ import annotations

import gzip
import json
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import traces

HERE = Path(__file__).resolve().parent
TICK_MS = 10
RATE_HZ = 48_000
FRAME = 960
"""Samples in 20 ms."""
DIFFERENCES = ("sequence", "timestamp", "ms")
"""Columns of arrivals that are saved as differences, which compress well."""

Call = dict[str, Any]
Milliseconds = npt.NDArray[np.float64]


def file(trace: str, seed: int) -> Path:
    """Where a call is."""
    return HERE / "calls" / f"{trace}-{seed}.json.gz"


def load(trace: str, seed: int) -> Call:
    """A call, its times in milliseconds since the first packet."""
    found = json.loads(gzip.decompress(file(trace, seed).read_bytes()))
    return _each(found, lambda values: list(accumulate(values)))


def save(call: Call) -> None:
    """Write a call; equal calls give equal bytes."""
    found = _each(call, lambda values: [now - old for old, now in pairwise([0, *values])])
    text = json.dumps(found, separators=(",", ":"))
    to = file(call["trace"], call["seed"])
    to.parent.mkdir(exist_ok=True)
    to.write_bytes(gzip.compress(text.encode(), mtime=0))


def _each(call: Call, change: Any) -> Call:
    arrivals = call["arrivals"]
    return call | {
        "arrivals": arrivals | {name: change(arrivals[name]) for name in DIFFERENCES},
        "playouts": change(call["playouts"]),
    }


def places(call: Call) -> npt.NDArray[np.int64]:
    """The place of each arrival in the stream, in packets of 20 ms; the first is 0."""
    stamps = np.array(call["arrivals"]["timestamp"])
    since = (stamps - stamps[0] + 2**31) % 2**32 - 2**31
    return (since - since.min()) // FRAME


def sampled_ms(call: Call) -> Milliseconds:
    """When the counters of the samples were read.

    A busy browser reads them up to some 100 ms after the time that it gives them. How many samples
    of sound had been taken tells between which times of ``playouts`` it was.
    """
    given = np.array(call["samples"]["ms"])
    ticks = np.array(call["samples"]["totalSamplesReceived"]) * 1000 // (RATE_HZ * TICK_MS)
    taken = np.array(call["playouts"])
    # Sound taken before the first packet is not counted.
    ticks += round(np.median(np.searchsorted(taken, given, side="right") - ticks))
    return np.clip(given, taken[ticks - 1], np.append(taken, np.inf)[ticks])


def starved(call: Call) -> dict[str, float]:
    """How busy the machine was, from the first packet to the last sample.

    ``longest_s``: the longest wait of the output; ``waited``: the share of time in waits above the
    limit; ``short``: by which share the samples taken differ from real time.
    """
    samples = call["samples"]
    begin, end = samples["ms"][0], samples["ms"][-1]
    times = [ms for ms in call["playouts"] if 0 <= ms <= end]
    waits = [(now - old) / 1e3 for old, now in pairwise(times)]
    taken = samples["totalSamplesReceived"][-1] - samples["totalSamplesReceived"][0]
    return {
        "longest_s": max(waits),
        "waited": 1e3 * sum(wait for wait in waits if wait > traces.GAP_S) / end,
        "short": 1 - taken / RATE_HZ * 1e3 / (end - begin),
        "seconds": end / 1e3,
    }


def spoiled(call: Call) -> str:
    """Why a call has to be repeated; empty if it has not."""
    found = starved(call)
    reasons = {
        f"the output waited for {found['longest_s']:.3f} s": found["longest_s"]
        > traces.LONGEST_GAP_S,
        f"it waited in {found['waited']:.2%} of the time": found["waited"] > traces.GAPS,
        f"samples are short by {found['short']:.2%}": abs(found["short"]) > traces.SHORT,
        f"the log ends after {max(call['playouts']) / 1e3:.1f} s": max(call["playouts"])
        < call["samples"]["ms"][-1],
    }
    return ", ".join(words for words, holds in reasons.items() if holds)
