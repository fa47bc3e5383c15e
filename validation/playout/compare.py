#!/usr/bin/env python3
"""Fills docs/validation/playout.md: jitter buffers compared with one another and with hindsight.

.venv/bin/python validation/playout/compare.py --recorded TRACE

TRACE is a mahimahi trace of a recorded cellular uplink: ``Verizon-LTE-short.up`` of mahimahi's own
traces (https://github.com/ravinet/mahimahi, GPL-3.0, therefore not copied here). About a minute.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import talkspurt
from talkspurt import _core
from talkspurt.scenarios.resolved import plain, values

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from made import ROOT
from tables import fill, table

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = ROOT / "docs" / "validation" / "playout.md"
SEEDS = (1, 2, 3, 4, 5)
QUANTILES = (0.2, 0.6, 0.8, 0.9, 0.95, 0.99)
BUFFERS_MS = (*range(10, 200, 10), *range(200, 500, 25), *range(500, 3001, 100))
END_S = 120
BULK = {"transport": {"kind": "tcp", "controller": "cubic"}, "source": {"kind": "bulk"}}
WEB = {"transport": {"kind": "tcp", "controller": "cubic"},
       "source": {"kind": "web", "size": "60kB", "think": "2s"}}  # fmt: skip


def call(start: str = "0s") -> dict[str, Any]:
    """Speech in talkspurts (ITU-T P.59), which all three kinds of buffer can follow."""
    return {
        "from": "a",
        "to": "b",
        "start": start,
        "transport": {"kind": "udp"},
        "source": {"kind": "speech", "codec": "pcmu", "talkspurts": {}},
    }


def path(link: dict[str, Any], **flows: dict[str, Any]) -> dict[str, Any]:
    """A scenario of one link that a call shares with other flows."""
    ends = {"from": "a", "to": "b"}
    return {
        "title": "playout",
        "duration": f"{END_S}s",
        "links": {"path": ends | link},
        "flows": {"call": call()} | {name: ends | flow for name, flow in flows.items()},
    }


def droptail(packets: int) -> dict[str, Any]:
    """A plain queue."""
    return {"kind": "droptail", "packets": packets}


def steps(rates: Sequence[str], every_s: float) -> list[dict[str, str]]:
    """A rate for each interval, over the whole run."""
    count = int(END_S / every_s)
    return [{"at": f"{n * every_s}s", "rate": rates[n % len(rates)]} for n in range(1, count)]


def paths(recorded: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """The six paths: name, what is on it, and the scenario."""
    lte = ("8Mbit/s", "3Mbit/s", "12Mbit/s", "1Mbit/s", "6Mbit/s", "9Mbit/s", "2Mbit/s")
    orbit = {"altitude_km": 550, "elevations": [60, 40, 70, 33, 48, 25, 55, 90],
             "handover": "15s", "gap": "50ms", "gap_loss": 0.5}  # fmt: skip
    geo = {"altitude_km": 35786, "elevations": [30]}
    return {
        "LTE": (
            "rate changes every 3 s from 1 to 12 Mbit/s, jitter 8 ms, short transfers beside it",
            path({"rate": "8Mbit/s", "delay": "25ms", "jitter": "8ms", "queue": droptail(300),
                  "steps": steps(lte, 3.0)}, web=WEB, web2=WEB),
        ),
        "Wi-Fi": (
            "3 to 33 ms of jitter, bursts of loss (3 % in the long run)",
            path({"rate": "5Mbit/s", "delay": "3ms", "jitter": "30ms", "queue": droptail(100),
                  "gilbert_elliott": {"p": 0.0103, "r": 0.3333}}),
        ),
        "LEO": (
            "a hand-over every 15 s changes the delay and loses every second packet for 50 ms",
            path({"rate": "20Mbit/s", "delay": "15ms", "jitter": "4ms", "queue": droptail(500),
                  "orbit": orbit}, web=WEB),
        ),
        "bufferbloat": (
            "2 Mbit/s, an upload that starts after 10 s keeps a queue of 64 packets filled",
            path({"rate": "2Mbit/s", "delay": "8ms", "queue": droptail(64)},
                 upload=BULK | {"start": "10s"}),
        ),
        "GEO": (
            "258 ms of propagation, an upload with losses beside it",
            path({"rate": "4Mbit/s", "delay": "0ms", "orbit": geo, "bit_error_rate": 1e-7,
                  "queue": droptail(100)}, upload=BULK | {"start": "10s"}),
        ),
        "recorded": (
            f"`{recorded.name}`, a recorded uplink of a phone in a moving car, transfers beside it",
            path({"rate": "5Mbit/s", "delay": "25ms", "queue": droptail(300),
                  "trace": {"kind": "mahimahi", "file": str(recorded)}}, web=WEB, web2=WEB),
        ),
    }  # fmt: skip


class Outcome:
    """A setting: concealed share, mean mouth-to-ear delay and MOS, means of all seeds."""

    def __init__(self, runs: Sequence[talkspurt.Result]) -> None:
        rows = [run.flows.filter(pl.col("name") == "call").row(0, named=True) for run in runs]
        self.lost = float(np.mean([row["concealed_ratio"] for row in rows]))
        self.delay_s = float(np.mean([row["mouth_to_ear_mean_s"] or math.nan for row in rows]))
        self.mos = float(np.mean([row["mos"] for row in rows]))


def play(scenario: dict[str, Any], playout: dict[str, Any]) -> list[talkspurt.Result]:
    """The same network and traffic with this buffer, once for each seed."""
    changed = scenario | {"flows": dict(scenario["flows"])}
    changed["flows"]["call"] = scenario["flows"]["call"] | {"playout": playout}
    return [talkspurt.run(changed, seed=seed) for seed in SEEDS]


class Hindsight:
    """The least mean delay of a buffer that knows the future and keeps to one delay per talkspurt.

    Moon, Kurose and Towsley (1998) §3: D(k, i) is the least total delay of the first k talkspurts
    when i packets of them are given up; a talkspurt that gives up its j slowest packets plays all
    others with the delay of the slowest of these. Concealment (G.711 Appendix I) adds its delay.
    """

    CONCEALMENT_S = 0.00375

    def __init__(self, runs: Sequence[talkspurt.Result], ends: Sequence[float] = ()) -> None:
        curves = [self._curve(run.frames("call").sort("index"), ends) for run in runs]
        self.shares = np.linspace(0, 0.3, 3001)
        means = [np.interp(self.shares, *curve) for curve in curves]
        self.delays_s = np.mean(means, axis=0) + self.CONCEALMENT_S

    @staticmethod
    def _curve(frames: pl.DataFrame, ends: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Shares of frames unheard, and the least mean delay with each."""
        count = frames.height
        starts = (frames["captured_s"].diff() > 0.0201).fill_null(value=False)
        for end in ends:
            starts |= (frames["captured_s"] >= end) & (frames["captured_s"].shift(1) < end)
        delays = (frames["delivered_s"] - frames["captured_s"]).to_numpy()
        missing = int(np.isnan(delays).sum())
        budget = int(0.3 * count)
        best = np.zeros(1)
        for spurt in np.split(delays, np.flatnonzero(starts.to_numpy())):
            arrived = np.sort(spurt[~np.isnan(spurt)])[::-1]
            # Giving up j of n packets: n - j packets with the delay of the slowest of the rest.
            costs = [(len(arrived) - j) * slowest for j, slowest in enumerate(arrived)] + [0.0]
            longest = min(len(best) + len(costs) - 1, budget + 1)
            new = np.full(longest, np.inf)
            for j, cost in enumerate(costs[:longest]):
                part = best[: longest - j] + cost
                new[j : j + len(part)] = np.minimum(new[j : j + len(part)], part)
            best = new
        given_up = np.arange(len(best))
        return (missing + given_up) / count, best / (count - missing - given_up)

    def delay_s(self, lost: float) -> float:
        """The least delay at this share; at none given up if the share is below what links lost."""
        return float(np.interp(lost, self.shares, self.delays_s))


def at_share(points: Sequence[Outcome], lost: float) -> float:
    """The least delay of a family of settings at no more than this share, interpolated.

    Not a number if none of them comes down to it.
    """
    shares, delays, best = [], [], math.inf
    for one in sorted(points, key=lambda one: one.lost):
        best = min(best, one.delay_s)
        shares.append(one.lost)
        delays.append(best)
    return float(np.interp(lost, shares, delays, left=math.nan))


def ms(seconds: float) -> str:
    """As in the tables."""
    return "–" if math.isnan(seconds) else f"{seconds * 1e3:.0f} ms"


def share(lost: float) -> str:
    """As in the tables."""
    return f"{lost:.2%}".replace("%", " %")


def compared(recorded: Path) -> dict[str, str]:
    """The tables of the six paths."""
    lines, details = [], []
    for name, (words, scenario) in paths(recorded).items():
        print(name, flush=True)
        adaptive = {
            q: Outcome(play(scenario, {"kind": "adaptive", "quantile": q})) for q in QUANTILES
        }
        default = Outcome(play(scenario, {}))
        spurts = Outcome(play(scenario, {"kind": "talkspurt"}))
        runs = play(scenario, {"buffer": "60ms"})
        hindsight = Hindsight(runs)
        sixty = Outcome(runs)
        fixed = [Outcome(play(scenario, {"buffer": f"{b}ms"})) for b in BUFFERS_MS]
        equal = at_share(fixed, default.lost)
        best = hindsight.delay_s(default.lost)
        if equal < default.delay_s:
            raise AssertionError(f"{name}: a fixed buffer does better")
        lines.append([
            f"{name}: {words}", share(default.lost), ms(default.delay_s), ms(equal), ms(best),
            f"{default.delay_s / best:.2f}",
        ])  # fmt: skip
        kinds = (f"{share(o.lost)}, {ms(o.delay_s)}, {o.mos:.2f}" for o in (default, sixty, spurts))
        curve = ", ".join(f"{share(o.lost)} {ms(o.delay_s)}" for o in adaptive.values())
        details.append([name, *kinds, curve])
    head = "path | concealed | delay | fixed at the same share | hindsight | ratio"
    kinds_head = "path | `adaptive` | `fixed`, 60 ms | `talkspurt` | `adaptive` by quantile"
    return {"paths": table(head, lines, "lrrrrr"), "kinds": table(kinds_head, details)}


def heard_after(delay_s: float, flow: dict[str, Any]) -> float:
    """The MOS of a call whose frames are all heard after so long."""
    frame = {"flow": "call", "index": 0, "fate": "played", "captured_s": 0.0, "playout_s": delay_s}
    told = json.dumps({"duration_s": END_S, "flows": {"call": flow}})
    [window] = json.loads(_core.opinion({"frames": pl.DataFrame([frame])}, told, "call", END_S))
    return window["mos"]


def stepped() -> str:
    """A path that becomes 180 ms longer at once, halfway through calls of different length."""
    lines = []
    for length in (20, 30, 60, 120):
        half = length / 2
        for speech in ("continuous", "talkspurts"):
            link = {"rate": "2Mbit/s", "delay": "40ms", "jitter": "5ms", "queue": droptail(100),
                    "steps": [{"at": f"{half}s", "delay": "220ms"}]}  # fmt: skip
            scenario = path(link) | {"duration": f"{length}s"}
            if speech == "continuous":
                scenario["flows"]["call"]["source"].pop("talkspurts")
            runs = play(scenario, {"buffer": "60ms"})
            sixty, adaptive = Outcome(runs), Outcome(play(scenario, {}))
            spurts = Outcome(play(scenario, {"kind": "talkspurt"}))
            # The first frame that takes the longer path is sent at the step, captured 20 ms before.
            best = Hindsight(runs, ends=(half - 0.0201,)).delay_s(0.0)
            known = heard_after(best, plain(values(runs[0].scenario)["flows"]["call"]))
            if adaptive.lost > 0.03 or adaptive.mos < known - 0.2:
                raise AssertionError(
                    f"{length} s, {speech}: {adaptive.lost}, {adaptive.mos}, {known}"
                )
            results = (f"{share(o.lost)}, {o.mos:.2f}" for o in (sixty, spurts, adaptive))
            lines.append([f"{length} s, {speech}", *results, f"{known:.2f}"])
    return table("call | `fixed`, 60 ms | `talkspurt` | `adaptive` | knows the step", lines)


def main() -> None:
    """Run everything and fill the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recorded", type=Path, required=True)
    options = parser.parse_args()
    parts = {
        "seconds": END_S, "seeds": len(SEEDS), "quantiles": ", ".join(map(str, QUANTILES)),
        **compared(options.recorded.resolve()), "steps": stepped(),
    }  # fmt: skip
    fill(PAGE, parts)
    print(PAGE)


if __name__ == "__main__":
    main()
