#!/usr/bin/env python3
"""The curves of `estimated_mos` from calls.csv, and their acceptance on held-out calls.

    python validation/estimate/fit.py            # writes docs/validation/estimate.md and curves.rs
    python validation/estimate/fit.py --explore  # the part of the fit only

The page has the protocol.
"""

from __future__ import annotations

import csv
import itertools
import math
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from calls import HERE, RESULTS, SETUPS
from scipy.optimize import least_squares
from scipy.stats import spearmanr

sys.path.insert(0, str(HERE.parent))
from tables import fill

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


def name_of(one: str) -> str:
    """A codec without its rate."""
    return one.replace(" ", "-").rpartition("-")[0] or one


def rate_of(one: str) -> float:
    """Its rate in kbit/s; 0 for a codec of one rate."""
    return float(one.replace(" ", "-").rpartition("-")[2]) if name_of(one) != one else 0.0


class Curves:
    """The parameters by name, as a vector for the fit."""

    def __init__(self, parts: list[Condition]) -> None:
        self.ies = sorted({codec(one.setup) for one in parts})
        self.families = sorted({family(one.setup) for one in parts})
        self.names = [f"ie {one}" for one in self.ies] + [f"bpl {one}" for one in self.families]
        self.names += ["a", "k", "w fec", "w dred", "c fec", "c dred"]
        self.low = [0.0] * len(self.ies) + [0.5] * len(self.families) + [0.2] + [0.0] * 5
        self.high = (
            [90.0] * len(self.ies) + [200.0] * len(self.families) + [1.5, 1.5, 1, 1, 0.8, 0.8]
        )
        # The anchor of the scale.
        self.high[self.ies.index("pcmu")] = 1e-6
        self.values = np.array(
            [5.0] * len(self.ies) + [15.0] * len(self.families) + [0.8, 0.3, 0.1, 0.4, 0.2, 0.4]
        )

    def __getitem__(self, name: str) -> float:
        return float(self.values[self.names.index(name)])

    def at_rate(self, one: str) -> float:
        """The impairment of a codec at a rate of its own: what it adds to that of all higher ones.

        So that less rate is never better; the parameters are the differences, at least 0.
        """
        above = [
            other
            for other in self.ies
            if name_of(other) == name_of(one) and rate_of(other) >= rate_of(one)
        ]
        return sum(self[f"ie {other}"] for other in above)

    def ie(self, setup: str, *, redundant: bool) -> float:
        """The impairment of a codec at its rate."""
        if SETUPS[setup].codec != "opus":
            return self.at_rate(codec(setup))
        rate = float(setup.split()[1])
        for kind in ("fec", "dred"):
            if kind in setup and redundant:
                rate *= 1 - self[f"c {kind}"]
        known = sorted(float(one.split()[1]) for one in self.ies if one.startswith("opus "))
        values = [self.at_rate(f"opus {rate:g}") for rate in known]
        return float(np.interp(math.log(rate), np.log(known), values))

    def of(self, one: Condition) -> float:
        """The listening score of a condition."""
        weight = self["w dred"] if "dred" in one.setup else self["w fec"]
        percent = 100 * (one.unheard + weight * one.recovered)
        q = percent ** self["a"] * (one.gap_ms / 20) ** self["k"]
        # At low rates and with little expected loss, libopus makes none.
        ie = self.ie(one.setup, redundant=one.recovered > 0)
        return mos(BEST - ie - (WORST_IE - ie) * q / (q + self[f"bpl {family(one.setup)}"]))

    def fit(self, parts: list[Condition]) -> None:
        """Least squares of the scores of all conditions."""

        def errors(values: np.ndarray) -> list[float]:
            self.values = values
            return [self.of(one) - one.target for one in parts]

        start = np.clip(self.values, self.low, self.high)
        self.values = least_squares(errors, start, bounds=(self.low, self.high)).x


def rms(pairs: Iterable[tuple[float, float]]) -> float:
    """Root of the mean square of differences."""
    return math.sqrt(float(np.mean([(one - other) ** 2 for one, other in pairs])))


def agreement(curves: Curves, parts: list[Condition]) -> list[str]:
    """How the estimate and the instruments agree."""
    said = [curves.of(one) for one in parts]
    by = {name: [one.scores[name] for one in parts] for name in ("pesq", "visqol")}
    between = rms(zip(by["pesq"], by["visqol"], strict=True))
    rho = spearmanr(by["pesq"], by["visqol"]).statistic
    out = ["| | RMSE | Spearman | |", "|---|---:|---:|---|"]
    out.append(f"| PESQ and ViSQOL | {between:.2f} | {rho:.3f} | |")
    for name, label in (("pesq", "PESQ"), ("visqol", "ViSQOL")):
        error = rms(zip(said, by[name], strict=True))
        rho = spearmanr(said, by[name]).statistic
        met = error <= max(LIMIT, between) and rho >= RANK
        out.append(
            f"| estimate and {label} | {error:.2f} | {rho:.3f} | {'met' if met else 'not met'} |"
        )
    return out


PAGE = HERE.parents[1] / "docs" / "validation" / "estimate.md"
CURVES = HERE.parents[1] / "crates" / "app" / "src" / "quality" / "curves.rs"
RUST = {
    "pcmu": ("Pcmu", "Pcma"),
    "g722": ("G722",),
    **{f"g726-{rate}": (f"G726At{rate}",) for rate in (40, 32, 24, 16)},
    "g729a": ("G729A", "G729"),
    "g723.1-6.3": ("G7231At63",),
    **{
        f"amr-{mode}": (f"Amr{round(100 * float(mode))}",)
        for mode in ("12.2", "10.2", "7.95", "7.4", "6.7", "5.9", "5.15", "4.75")
    },
}
"""Names in Rust of the codecs that a curve is for."""
RANKED = ("pcmu", "amr-12.2", "g729a", "g723.1-6.3")
"""By the E-model without loss (Ie 0, 5 of GSM EFR, 11, 15), the best first."""
LOSSES = (1, 2, 5, 10, 20)


def order(curves: Curves, loss: float) -> dict[str, float]:
    """The estimates of the ranked codecs at a random loss in per cent, the best first."""
    gaps = {name: SETUPS[name].packet_ms / (1 - loss / 100) for name in RANKED}
    found = {
        name: curves.of(Condition(name, loss, 0, loss / 100, gaps[name], 0, {})) for name in RANKED
    }
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def refused(curves: Curves) -> set[str]:
    """The codecs whose ranking fails, which have no estimate: both of each pair in wrong order."""
    found = set()
    for loss in (0, *LOSSES):
        by = order(curves, loss)
        judged = [name for name in RANKED if not loss or name != "amr-12.2"]
        for better, worse in itertools.combinations(judged, 2):
            found |= {better, worse} if by[better] <= by[worse] else set()
    return found


def rust(curves: Curves) -> str:
    """The source file with the curves."""
    without = refused(curves)

    def pairs(name: str, kind: str, of: Iterable[tuple[str, float]]) -> list[str]:
        lines = [f"    ({key}, {value:.2f})," for key, value in of]
        return [f"pub(super) const {name}: &[({kind}, f64)] = &[", *lines, "];"]

    ies = [
        (f"Codec::{name}", curves.at_rate(codec))
        for codec, names in RUST.items()
        for name in names
        if codec not in without
    ]
    rates = sorted(float(one.split()[1]) for one in curves.ies if one.startswith("opus "))
    opus = [(f"{rate:.1f}", curves.at_rate(f"opus {rate:g}")) for rate in rates]
    bpl = {
        "BPL_G711": "pcmu", "BPL_G711_SILENCE": "pcmu silence", "BPL_G722": "g722",
        "BPL_G726": "g726", "BPL_G729": "g729a", "BPL_G723_1": "g723.1-6.3", "BPL_AMR": "amr",
        "BPL_OPUS": "opus", "BPL_OPUS_DEEP": "opus deep",
    }  # fmt: skip
    numbers = {name: curves[f"bpl {one}"] for name, one in bpl.items() if one not in without}
    numbers |= {
        "LOSS_EXPONENT": curves["a"], "GAP_EXPONENT": curves["k"], "FEC_WEIGHT": curves["w fec"],
        "DRED_WEIGHT": curves["w dred"], "FEC_COST": curves["c fec"],
        "DRED_COST": curves["c dred"],
    }  # fmt: skip
    lines = [
        "//! The curves of [`super::estimate`], written by `validation/estimate/fit.py`.",
        "",
        "use crate::codec::Codec;",
        "",
        "/// Impairment without loss.",
        *pairs("IE", "Codec", ies),
        "/// The same of Opus by kbit/s, in order.",
        *pairs("OPUS_IE", "f64", opus),
        "",
        *(f"pub(super) const {name}: f64 = {value:.3f};" for name, value in numbers.items()),
    ]
    return "\n".join(lines) + "\n"


def ranking(curves: Curves) -> list[str]:
    """The order of codecs without loss and with random losses, and whether it is the model's."""
    out = ["| random loss | the best first, with the estimate | judged | |", "|---:|---|---|---|"]
    for loss in (0, *LOSSES):
        found = order(curves, loss)
        judged = RANKED if not loss else tuple(name for name in RANKED if name != "amr-12.2")
        met = [name for name in found if name in judged] == list(judged)
        said = ", ".join(f"{name} {score:.2f}" for name, score in found.items())
        what = "all" if not loss else "without AMR"
        out.append(f"| {loss} % | {said} | {what} | {'met' if met else 'not met'} |")
    without = sorted(refused(curves))
    return [*out, "", f"Without an estimate: {', '.join(without)}."] if without else out


def shown(curves: Curves) -> list[str]:
    """The values per codec."""
    out = ["| codec | *Ie* | *Bpl* |", "|---|---:|---:|"]
    for name in sorted(
        curves.ies, key=lambda one: (one.split()[0], -float(one.split()[-1]) if " " in one else 0)
    ):
        its = [one for one in curves.families if one.split()[0] == family(name).split()[0]]
        bpl = ", ".join(
            f"{curves[f'bpl {one}']:.1f}" + (f" ({one.split()[-1]})" if " " in one else "")
            for one in its
        )
        label = f"{name} kbit/s" if name.startswith("opus ") else name
        out.append(f"| {label} | {curves.at_rate(name):.1f} | {bpl} |")
    return out


def by_setup(curves: Curves, parts: list[Condition]) -> list[str]:
    """The mean of each setup's held-out conditions."""
    out = [
        "| setup | conditions | PESQ | ViSQOL | estimate | error | largest |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for setup in dict.fromkeys(one.setup for one in parts):
        its = [one for one in parts if one.setup == setup]
        errors = [curves.of(one) - one.target for one in its]
        means = [float(np.mean([one.scores[name] for one in its])) for name in ("pesq", "visqol")]
        said = float(np.mean([curves.of(one) for one in its]))
        worst = max(errors, key=abs)
        row = f"| {setup} | {len(its)} | {means[0]:.2f} | {means[1]:.2f} | {said:.2f} | "
        out.append((row + f"{np.mean(errors):+.2f} | {worst:+.2f} |").replace("-0.", "−0."))
    return out


def main() -> None:
    """Fit and judge; ``--explore`` only prints the part of the fit."""
    parts = conditions()
    curves = Curves(parts["fit"])
    curves.fit(parts["fit"])
    print("\n".join(agreement(curves, parts["fit"])))
    if "--explore" in sys.argv:
        for name, value in zip(curves.names, curves.values, strict=True):
            print(f"{name:24s} {value:8.3f}")
        return
    CURVES.write_text(rust(curves), encoding="utf-8")
    with RESULTS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    count = {part: sum(row["part"] == part for row in rows) for part in parts}
    talkers = {part: len({r["talker"] for r in rows if r["part"] == part}) for part in parts}
    calls = (
        f"{count['fit']} calls of {talkers['fit']} talkers in {len(parts['fit'])} conditions were "
        f"fitted (RMSE {rms((curves.of(one), one.target) for one in parts['fit']):.2f}), "
        f"{count['held']} of {talkers['held']} others in {len(parts['held'])} conditions held out."
    )
    exponents = (
        f"*a* = {curves['a']:.2f}, *k* = {curves['k']:.2f}; a frame recovered from FEC counts as "
        f"{curves['w fec']:.2f} lost ones and one from DRED as {curves['w dred']:.2f}; FEC takes "
        f"{100 * curves['c fec']:.0f} % of the bit rate, DRED {100 * curves['c dred']:.0f} %."
    )
    fill(
        PAGE,
        {
            "calls": calls,
            "agreement": "\n".join(agreement(curves, parts["held"])),
            "ranking": "\n".join(ranking(curves)),
            "curves": "\n".join(shown(curves)),
            "exponents": exponents,
            "setups": "\n".join(by_setup(curves, parts["held"])),
        },
    )
    print(calls, *agreement(curves, parts["held"]), *ranking(curves), sep="\n")


if __name__ == "__main__":
    main()
