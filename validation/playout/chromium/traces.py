"""The delay traces on which Chromium judges our jitter buffer, and by which tolerances.

This file was committed before the first recording. ``DEV`` is looked at while the buffer is
written; ``HELD_OUT`` is recorded, and compared once, when it is finished. Each trace is a link from
``a`` to ``b`` under five seeds; packets back take 20 ms.

What is compared: a call is sampled once a second, and an *interval* lies between two samples, the
first of which is the first after a packet arrived. Chromium's delay in an interval is
Δ ``jitterBufferDelay`` / Δ ``jitterBufferEmittedCount``. No interval is excluded: the output takes
sound before the first packet arrives, so that the beginning, too, follows from the arrivals alone.
An interval in which neither emitted anything is not compared; one in which only one of both did is
a difference beyond every tolerance. For each trace, over the intervals of all its calls:

* 95 % of the differences of delay are at most ``DELAY_S``;
* the shares of concealed samples, Δ ``concealedSamples`` / Δ ``totalSamplesReceived`` from the
  first to the last sample of each call, differ in the mean of the calls by at most ``CONCEALED``.

A machine that is too busy takes sound late. A call is repeated, before anything else of it is
looked at, if from the first packet on the output waited once for more than ``LONGEST_GAP_S``, if
waits of more than ``GAP_S`` were together more than ``GAPS`` of the time, or if the samples taken
differ from real time by more than ``SHORT``. Chromium takes 10 ms of sound every 10 ms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SEEDS = range(1, 6)
CALL_S = 50
DURATION_S = 90
"""Of an emulation at most: browsers start before the call."""
GRID_S = 0.005
DELAY_S, CONCEALED = 0.020, 0.005
GAP_S, LONGEST_GAP_S, GAPS, SHORT = 0.030, 0.060, 0.005, 0.005

Milliseconds = npt.NDArray[np.float64]
Draw = np.random.Generator
Trace = Callable[[Draw], Any]
"""Delays at ``TIMES_S``, or what a link has besides the common."""
TIMES_S = np.arange(0, DURATION_S, GRID_S)


def every(draw: Draw, first_s: float, least_s: float, most_s: float) -> Iterator[float]:
    """Times, each so long after the one before."""
    at = first_s
    while at < DURATION_S:
        yield at
        at += draw.uniform(least_s, most_s)


def held(delays: Milliseconds, begin_s: float, seconds: float) -> None:
    """Packets wait until the end of an interruption."""
    waits = begin_s + seconds - TIMES_S
    inside = (waits > 0) & (waits <= seconds)
    delays[inside] = np.maximum(delays[inside], 1e3 * waits[inside])


def base(draw: Draw, least_ms: float, mean_ms: float) -> Milliseconds:
    """A delay with exponential jitter, drawn for each 20 ms."""
    return least_ms + each(draw.exponential(mean_ms, len(TIMES_S)))


def each(values: Milliseconds) -> Milliseconds:
    """The same value for 20 ms."""
    return np.repeat(values[::4], 4)[: len(TIMES_S)]


def steady(draw: Draw) -> Milliseconds:
    """30 ms and 1 to 3 ms of jitter."""
    return 30 + each(draw.uniform(1, 3, len(TIMES_S)))


def roaming(draw: Draw) -> Milliseconds:
    """Packets held for 120 to 450 ms every 8 to 16 s."""
    delays = base(draw, 10, 4)
    for at in every(draw, draw.uniform(9, 17), 8, 16):
        held(delays, at, draw.uniform(0.12, 0.45))
    return delays


def outage(draw: Draw) -> Milliseconds:
    """Twice, packets are held for 3 s, then all released."""
    delays = base(draw, 30, 3)
    held(delays, draw.uniform(18, 24), 3)
    held(delays, draw.uniform(40, 46), 3)
    return delays


def lte(draw: Draw) -> Milliseconds:
    """Packets leave at grants: 5 to 20 ms apart for 7 s, then 20 to 120 ms apart for 7 s."""
    grants = [0.0]
    while grants[-1] < DURATION_S + 1:
        is_slow = int(grants[-1]) // 7 % 2
        grants.append(
            grants[-1] + (draw.uniform(0.02, 0.12) if is_slow else draw.uniform(0.005, 0.02))
        )
    granted = np.array(grants)[np.searchsorted(grants, TIMES_S + 0.004)]
    return 25 + 1e3 * (granted - TIMES_S)


def spikes(draw: Draw) -> Milliseconds:
    """Packets held for 1 s every 14 to 24 s."""
    delays = base(draw, 30, 3)
    for at in every(draw, draw.uniform(10, 20), 14, 24):
        held(delays, at, 1.0)
    return delays


def reordering(draw: Draw) -> Milliseconds:
    """One packet in twenty arrives 30 to 90 ms later than the others."""
    delays = base(draw, 30, 2)
    late = each(draw.uniform(0, 1, len(TIMES_S))) < 0.05
    return np.where(late, delays + each(draw.uniform(30, 90, len(TIMES_S))), delays)


def step(draw: Draw) -> Milliseconds:
    """The path becomes 180 ms longer, and 20 s later as short as before."""
    delays = base(draw, 40, 2)
    at = draw.uniform(18, 24)
    delays[(at <= TIMES_S) & (at + 20 > TIMES_S)] += 180
    return delays


def sawtooth(draw: Draw) -> Milliseconds:
    """The delay grows by 50 ms a second for 8 s, and falls within 0.6 s."""
    phase = (TIMES_S + draw.uniform(0, 8.6)) % 8.6
    rising, falling = 20 + 50 * phase, 420 - 400 * (phase - 8) / 0.6
    return np.where(phase < 8, rising, falling) + each(draw.uniform(0, 3, len(TIMES_S)))


def levels(draw: Draw) -> Milliseconds:
    """Every 6 s another path, longer by up to 300 ms."""
    heights = draw.uniform(0, 300, math.ceil(DURATION_S / 6))
    return base(draw, 40, 2) + heights[(TIMES_S / 6).astype(np.int64)]


def two_paths(draw: Draw) -> Milliseconds:
    """For 10 of each 20 s, packets take two paths in turn, of which one is 45 ms longer."""
    delays = base(draw, 25, 2)
    second = ((TIMES_S // 0.02).astype(np.int64) % 2 == 1) & (TIMES_S % 20 >= 10)
    return delays + np.where(second, 45.0, 0.0)


def blackouts(draw: Draw) -> Milliseconds:
    """For 0.2 to 0.8 s every 8 to 12 s all packets are lost (not a number); 10 ms of jitter."""
    delays = 30 + each(draw.uniform(0, 10, len(TIMES_S)))
    for at in every(draw, draw.uniform(9, 13), 8, 12):
        delays[(at <= TIMES_S) & (at + draw.uniform(0.2, 0.8) > TIMES_S)] = np.nan
    return delays


def wifi(_: Draw) -> dict[str, Any]:
    """3 to 33 ms of jitter, bursts of loss (3 % in the long run)."""
    return {"delay": "3ms", "jitter": "30ms", "gilbert_elliott": {"p": 0.0103, "r": 0.3333}}


def loss(_: Draw) -> dict[str, Any]:
    """One packet in twenty is lost at random, over 4 ms of jitter."""
    return {"delay": "20ms", "jitter": "4ms", "loss": 0.05}


def bufferbloat(draw: Draw) -> dict[str, Any]:
    """A CUBIC upload of 25 s fills a queue of 64 packets at 1.5 to 3 Mbit/s."""
    queue = {"kind": "droptail", "packets": 64}
    return {"rate": f"{draw.uniform(1.5, 3):.3f}Mbit/s", "delay": "8ms", "queue": queue}


DEV: tuple[Trace, ...] = (steady, roaming, outage, lte, spikes, wifi, reordering)
HELD_OUT: tuple[Trace, ...] = (step, bufferbloat, loss, sawtooth, levels, two_paths, blackouts)
REORDERED = (reordering, two_paths)
"""Where packets may overtake others."""
ALL: dict[str, Trace] = {one.__name__: one for one in (*DEV, *HELD_OUT)}
UPLOAD = {
    "from": "a", "to": "b", "start": "15s", "stop": "40s",
    "transport": {"kind": "tcp", "controller": "cubic"}, "source": {"kind": "bulk"},
}  # fmt: skip


def link(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """The link of a trace; its steps are written into ``folder``."""
    trace = ALL[name]
    found = trace(np.random.default_rng(seed))
    ends = {
        "from": "a", "to": "b", "rate": "10Mbit/s", "queue": {"kind": "droptail", "packets": 1000},
        "back": {"rate": "10Mbit/s", "delay": "20ms", "jitter": "0ms", "loss": 0.0},
        "reorder": trace in REORDERED,
    }  # fmt: skip
    if isinstance(found, dict):
        return ends | found
    file = folder / f"{name}-{seed}.csv"
    rows = (
        f"{time:.3f},{'' if lost else f'{delay:.3f}'},{100 if lost else 0}"
        for time, delay, lost in zip(TIMES_S, found, np.isnan(found), strict=True)
    )
    file.write_text("\n".join(("time_s,delay_ms,loss_percent", *rows)) + "\n")
    return ends | {"delay": "0ms", "trace": {"kind": "csv", "file": str(file)}}
