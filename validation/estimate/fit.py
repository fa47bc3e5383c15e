#!/usr/bin/env python3
"""The curves of `estimated_mos` from calls.csv, and their acceptance on held-out calls.

    python validation/estimate/fit.py          # fits; prints the curves and the tables of README.md

README.md has the protocol.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from calls import RESULTS, SETUPS
from scipy.optimize import brentq, least_squares
from scipy.stats import spearmanr

BEST = 93.2
WORST_IE = 95.0
LIMIT, RANK = 0.35, 0.9
"""The acceptance."""


def mos(r: float) -> float:
    """MOS for R (G.107 Annex B)."""
    if r <= 0:
        return 1.0
    return 4.5 if r >= 100 else 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6


TOP = mos(BEST)


@dataclass(frozen=True)
class Condition:
    """Means over the calls of a setup and a loss, and each instrument through its mapping."""

    setup: str
    loss: float
    burst: float
    unheard: float
    gap_ms: float
    recovered: float
    scores: dict[str, float]

    @property
    def target(self) -> float:
        """What the fit is to give."""
        return sum(self.scores.values()) / len(self.scores)


def conditions() -> dict[str, list[Condition]]:
    """The conditions of each part."""
    with RESULTS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        found[row["part"], row["setup"], row["loss"], row["burst"]].append(row)

    def mean(of: Iterable[dict[str, str]], column: str) -> float:
        # Of each talker first: those without loss have one mask.
        talkers = defaultdict(list)
        for row in of:
            talkers[row["talker"]].append(float(row[column] or 1))
        return float(np.mean([np.mean(values) for values in talkers.values()]))

    best = {name: mean(found["fit", "pcmu", "0", "0"], name) for name in ("pesq", "visqol")}
    parts: dict[str, list[Condition]] = {"fit": [], "held": []}
    for (part, setup, loss, burst), calls in found.items():
        unheard = mean(calls, "unheard")
        packet_ms = SETUPS[setup].packet_ms
        gap_ms = mean(calls, "burst_ratio") / (1 - unheard) * packet_ms
        recovered = float(np.mean([int(row["recovered"]) / int(row["packets"]) for row in calls]))
        scores = {
            name: min(TOP, 1 + (mean(calls, name) - 1) * (TOP - 1) / (x0 - 1))
            for name, x0 in best.items()
        }
        one = Condition(setup, float(loss), float(burst), unheard, gap_ms, recovered, scores)
        parts[part].append(one)
    return parts


def family(setup: str) -> str:
    """The setups that share *Bpl*."""
    codec = SETUPS[setup].codec
    for shared in ("g726", "amr", "opus"):
        if codec.startswith(shared):
            codec = shared
    return codec + ("".join(f" {word}" for word in ("silence", "deep") if word in setup))


def codec(setup: str) -> str:
    """The setups that share *Ie*: codec and rate."""
    told = SETUPS[setup]
    return f"opus {setup.split()[1]}" if told.codec == "opus" else told.codec


class Curves:
    """The parameters by name, as a vector for the fit."""

    def __init__(self, parts: list[Condition]) -> None:
        self.ies = sorted({codec(one.setup) for one in parts})
        self.families = sorted({family(one.setup) for one in parts})
        self.names = [f"ie {one}" for one in self.ies] + [f"bpl {one}" for one in self.families]
        self.names += ["k", "w fec", "w dred", "c fec", "c dred"]
        self.low = [0.0] * len(self.ies) + [0.5] * len(self.families) + [0.0] * 5
        self.high = [90.0] * len(self.ies) + [200.0] * len(self.families) + [1.5, 1, 1, 0.8, 0.8]
        self.values = np.array(
            [10.0] * len(self.ies) + [15.0] * len(self.families) + [0.3, 0.1, 0.4, 0.2, 0.4]
        )

    def __getitem__(self, name: str) -> float:
        return float(self.values[self.names.index(name)])

    def ie(self, setup: str) -> float:
        """The impairment of a codec at its rate."""
        if SETUPS[setup].codec != "opus":
            return self[f"ie {codec(setup)}"]
        rate = float(setup.split()[1])
        for kind in ("fec", "dred"):
            if kind in setup:
                rate *= 1 - self[f"c {kind}"]
        known = sorted(float(one.split()[1]) for one in self.ies if one.startswith("opus "))
        values = [self[f"ie opus {rate:g}"] for rate in known]
        return float(np.interp(math.log(rate), np.log(known), values))

    def of(self, one: Condition) -> float:
        """The listening score of a condition."""
        weight = self["w dred"] if "dred" in one.setup else self["w fec"]
        percent = 100 * (one.unheard + weight * one.recovered)
        q = percent * (one.gap_ms / 20) ** self["k"]
        ie = self.ie(one.setup)
        return mos(BEST - ie - (WORST_IE - ie) * q / (q + self[f"bpl {family(one.setup)}"]))

    def fit(self, parts: list[Condition]) -> None:
        """Least squares of the scores of all conditions."""

        def errors(values: np.ndarray) -> list[float]:
            self.values = values
            return [self.of(one) - one.target for one in parts]

        self.values = least_squares(errors, self.values, bounds=(self.low, self.high)).x


def rms(pairs: Iterable[tuple[float, float]]) -> float:
    """Root of the mean square of differences."""
    return math.sqrt(float(np.mean([(one - other) ** 2 for one, other in pairs])))


def agreement(curves: Curves, parts: list[Condition]) -> list[str]:
    """How the estimate and the instruments agree."""
    said = [curves.of(one) for one in parts]
    by = {name: [one.scores[name] for one in parts] for name in ("pesq", "visqol")}
    between = rms(zip(by["pesq"], by["visqol"], strict=True))
    rho = spearmanr(by["pesq"], by["visqol"]).statistic
    out = ["| | RMSE | Spearman |", "|---|---:|---:|"]
    out.append(f"| PESQ and ViSQOL | {between:.2f} | {rho:.3f} |")
    for name, label in (("pesq", "PESQ"), ("visqol", "ViSQOL")):
        error = rms(zip(said, by[name], strict=True))
        rho = spearmanr(said, by[name]).statistic
        met = error <= max(LIMIT, between) and rho >= RANK
        out.append(
            f"| estimate and {label} | {error:.2f} | {rho:.3f} | {'met' if met else 'not met'} |"
        )
    return out


def rating(score: float) -> float:
    """R for MOS."""
    return float(brentq(lambda r: mos(r) - score, 6.5, 100)) if score > mos(6.5) else 6.5


def main() -> None:
    """Fit and judge."""
    parts = conditions()
    curves = Curves(parts["fit"])
    curves.fit(parts["fit"])
    for name, value in zip(curves.names, curves.values, strict=True):
        print(f"{name:24s} {value:8.3f}")
    for part, of in parts.items():
        print(part, len(of))
        if of:
            print("\n".join(agreement(curves, of)))
    for part, of in parts.items():
        for one in sorted(of, key=lambda one: (one.setup, one.loss, one.burst)):
            print(
                f"{part} {one.setup:16s} {one.loss:3g} {one.burst:3g} {one.unheard:.3f} "
                f"{one.gap_ms:5.0f} {one.recovered:.3f} {one.scores['pesq']:.2f} "
                f"{one.scores['visqol']:.2f} {one.target:.2f} {curves.of(one):.2f}"
            )


if __name__ == "__main__":
    main()
