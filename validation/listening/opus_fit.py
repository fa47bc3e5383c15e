#!/usr/bin/env python3
"""Ie and Bpl of Opus, estimated by PESQ and the E-model: fitted by this project, not ITU.

Calls through the codec with known losses are judged by narrowband PESQ. The mean MOS-LQO of a
condition gives R by the inverse of the E-model's curve from R to MOS, and 93.2 − R is the raw
impairment. A straight line from raw to published impairments is fitted to reference conditions
whose Ie and Bpl G.113 Appendix I publishes, and then applied to Opus. Bpl is fitted to the
impairments under loss by the equation of Ie,eff (G.107 §7.5) with random loss. This is the idea of
the instrumental method of ITU-T P.834, not an implementation of its text.

Criterion, decided before the first call was judged: the fit is used if each reference condition,
predicted by a line through all others, is off by 5 points of R in the mean (mean absolute error).
Otherwise only the data are published.

    pip install 'talkspurt[scores,av]'
    python validation/listening/opus_fit.py           # continues opus_fit.csv: a line per call
    python validation/listening/opus_fit.py --table   # only the tables of README.md

"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from repair import CLIPS, call, mask, resumed
from repair import interval as student
from scipy.optimize import brentq, minimize_scalar
from scipy.signal import resample_poly
from scipy.special import stdtrit

import talkspurt

HERE = Path(__file__).parent
RESULTS = HERE / "opus_fit.csv"
COLUMNS = ("clip", "condition", "loss_percent", "mask", "packets", "lost", "pesq_nb")
MASKS = {0: 1, 1: 8, 2: 6, 5: 5, 10: 5}
"""Masks of lost packets by per cent of loss."""
RATES = (6, 8, 12, 16, 24, 32, 64)
BANDS = ("nb", "wb")
BEST = 93.2
"""R of a call in G.711 without loss at the defaults of G.107."""
WORST_IE = 95.0
"""Upper limit of Ie,eff (G.107 §7.5)."""
LIMIT = 5.0
"""The criterion, in points of R."""


@dataclass(frozen=True)
class Condition:
    """A codec with its parameters. ``ie`` and ``bpl`` are those of G.113 Appendix I."""

    codec: str
    packet_ms: int = 20
    opus: str = ""
    concealment: str = ""
    ie: float | None = None
    bpl: float | None = None
    in_fit: bool = False
    losses: tuple[int, ...] = (0,)

    def published(self, loss: int) -> float:
        """The published impairment at a random loss in per cent, G.107 §7.5."""
        assert self.ie is not None
        return effective(self.ie, self.bpl or 1.0, loss)


LOSSES = tuple(loss for loss in MASKS if loss)
REFERENCES = {
    "G.711": Condition("pcmu", ie=0, in_fit=True),
    "G.726-40": Condition("g726-40", ie=2, in_fit=True),
    "G.726-32": Condition("g726-32", ie=7, in_fit=True),
    "G.726-24": Condition("g726-24", ie=25, in_fit=True),
    "G.726-16": Condition("g726-16", ie=50, in_fit=True),
    "G.723.1-6.3": Condition("g723.1-6.3", packet_ms=30, ie=15, in_fit=True),
    "G.711 App. I": Condition(
        "pcmu", 10, concealment="g711-appendix-i", ie=0, bpl=25.1, in_fit=True, losses=LOSSES
    ),
    # Not in the fit: how far does it hold outside?
    "G.711 silence": Condition("pcmu", 10, concealment="silence", ie=0, bpl=4.3, losses=LOSSES),
}
OPUS = {
    f"Opus {rate} {band}{fec}": Condition(
        "opus",
        opus=f'bitrate = "{rate}kbit/s", max_bandwidth = "{band}"'
        + (", fec = true" if fec else ""),
        losses=LOSSES if fec else (0, *LOSSES),
    )
    for rate in RATES
    for band in BANDS
    for fec in ("", " FEC")
}
CONDITIONS = {**REFERENCES, **OPUS}


def effective(ie: float, bpl: float, loss: float) -> float:
    """Ie,eff under random loss in per cent (G.107 §7.5, BurstR = 1)."""
    return ie + (WORST_IE - ie) * loss / (loss + bpl)


def mos(r: float) -> float:
    """MOS for R (G.107 Annex B), from 0 to 100."""
    return 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6


def rating(score: float) -> float:
    """R for MOS; 100 for more than the curve's 4.5, and at least 6.5, above which it increases."""
    if score >= mos(100):
        return 100.0
    return 6.5 if score <= mos(6.5) else float(brentq(lambda r: mos(r) - score, 6.5, 100))


def flow(condition: str) -> str:
    """The name of a flow."""
    return "c" + str(list(CONDITIONS).index(condition))


def scenario(clip: str, loss: int, lost: Mapping[str, list[tuple[float, float]]]) -> str:
    """A call for each condition."""
    parts = ['title = "Fit"\nduration = "18s"\nseed = 1\n']
    for name, times in lost.items():
        told = CONDITIONS[name]
        playout = 'buffer = "200ms"'
        playout += f', concealment = "{told.concealment}"' if told.concealment else ""
        source = f'codec = "{told.codec}"\npacket = "{told.packet_ms}ms"'
        if told.opus:
            # What RTCP would report.
            source += f"\nopus = {{ {told.opus}, expected_loss = {loss / 100} }}"
        parts.append(call(flow(name), clip, times, playout, source))
    return "".join(parts)


def judged(audio: talkspurt.Audio) -> float:
    """MOS-LQO by narrowband PESQ (P.862.1) of both signals at 8 kHz."""
    from pesq import pesq

    mono = audio.mono()
    sides = [
        np.clip(resample_poly(side / 32768, 8000 // common, mono.rate // common), -1, 1)
        for common in [math.gcd(mono.rate, 8000)]
        for side in (mono.sent, mono.received)
    ]
    return float(pesq(8000, *sides, "nb"))


def measured(done: set[tuple[str, ...]]) -> Iterator[list[object]]:
    """The rows that are missing. All calls of a clip with packets of 20 ms lose the same ones."""
    sent: dict[tuple[str, str], list[float]] = {}
    for number in range(max(MASKS.values())):
        for clip in CLIPS:
            if (clip, "G.711") not in sent:
                every = talkspurt.run(scenario(clip, 0, {name: [] for name in CONDITIONS}))
                for name in CONDITIONS:
                    sent[clip, name] = every.frames(flow(name))["handed_over_s"].to_list()
            for loss in (each for each, masks in MASKS.items() if number < masks):
                names = [
                    name
                    for name, told in CONDITIONS.items()
                    if loss in told.losses and (clip, name, str(loss), str(number)) not in done
                ]
                if not names:
                    continue
                lost = {}
                for name in names:
                    packet_s, at = CONDITIONS[name].packet_ms / 1000, sent[clip, name]
                    seed = [number, CLIPS.index(clip), loss]
                    places = mask(len(at), loss / 100, 1, apart=False, seed=seed) if loss else []
                    half_s = 0.4 * packet_s
                    lost[name] = [(at[one] - half_s, at[one] + half_s) for one, _ in places]
                run = talkspurt.run(scenario(clip, loss, lost))
                for name in names:
                    row = run.flows.filter(name=flow(name)).row(0, named=True)
                    assert row["lost_packets"] == len(lost[name]), (clip, name, loss, row)
                    score = judged(run.audio(flow(name)))
                    packets = len(sent[clip, name])
                    yield [clip, name, loss, number, packets, len(lost[name]), f"{score:.4f}"]


@dataclass(frozen=True)
class Fit:
    """The line, and what follows from it; keys are a condition and per cent of loss.

    Attributes:
        line: slope and intercept.
        predicted: impairments by the line, of everything measured.
        left_out: those of the reference conditions by a line through all others.
        ie: of Opus without loss, by condition; at least 0.
        bpl: of Opus, by condition.
        error: root of the mean square between the curve of Ie and Bpl and the impairments of a
            condition, in points of R.
    """

    line: tuple[float, float]
    predicted: dict[tuple[str, int], float]
    left_out: dict[tuple[str, int], float]
    ie: dict[str, float]
    bpl: dict[str, float]
    error: dict[str, float]


Key = tuple[str, int]
"""A condition and per cent of loss."""
Scores = dict[Key, np.ndarray]
"""The mean over the masks of each clip."""
PARTS: dict[str, Callable[[Key], bool]] = {
    "G.711 and G.726 without loss": lambda key: not key[1] and key[0] != "G.723.1-6.3",
    "all codecs without loss": lambda key: not key[1],
    "G.711 with Appendix I": lambda key: key[0] in ("G.711", "G.711 App. I"),
    "the fit without G.726-16": lambda key: key[0] not in ("G.726-16", "G.711 silence"),
    "the fit and gaps of silence": lambda key: True,
}
"""Other reference conditions, chosen after the results were known: to explain, not to use."""


def published(chosen: Callable[[Key], bool]) -> dict[Key, float]:
    """The impairments of these reference conditions by G.113 Appendix I."""
    keys = [(name, loss) for name, told in REFERENCES.items() for loss in told.losses]
    return {(name, loss): REFERENCES[name].published(loss) for name, loss in filter(chosen, keys)}


def raw_impairments(scores: Scores) -> dict[Key, float]:
    """93.2 − R by the mean MOS-LQO."""
    return {key: BEST - rating(float(np.mean(of_clips))) for key, of_clips in scores.items()}


def line(known: Mapping[Key, float], raw: Mapping[Key, float]) -> tuple[float, float]:
    """Slope and intercept of the line from raw to published impairments, by least squares."""
    slope, intercept = np.polyfit([raw[key] for key in known], list(known.values()), 1)
    return float(slope), float(intercept)


def without_each(known: Mapping[Key, float], raw: Mapping[Key, float]) -> dict[Key, float]:
    """Each impairment by the line through all others."""
    found = {}
    for key in known:
        slope, intercept = line({k: value for k, value in known.items() if k != key}, raw)
        found[key] = slope * raw[key] + intercept
    return found


def fit(scores: Scores) -> Fit:
    """The fit to some clips."""
    raw = raw_impairments(scores)
    known = published(lambda key: REFERENCES[key[0]].in_fit)
    slope, intercept = line(known, raw)
    predicted = {key: slope * value + intercept for key, value in raw.items()}
    left_out = without_each(known, raw)
    ie, bpl, error = {}, {}, {}
    for name in OPUS:
        ie[name] = max(0.0, predicted[name.removesuffix(" FEC"), 0])
        bpl[name], error[name] = robustness(ie[name], {p: predicted[name, p] for p in LOSSES})
    return Fit((slope, intercept), predicted, left_out, ie, bpl, error)


def robustness(ie: float, impairments: Mapping[int, float]) -> tuple[float, float]:
    """Bpl by least squares from impairments at random losses in per cent, and what remains."""

    def remains(log_bpl: float) -> float:
        bpl = math.exp(log_bpl)
        return sum((effective(ie, bpl, loss) - it) ** 2 for loss, it in impairments.items())

    bounds = math.log(0.1), math.log(1000)
    best = minimize_scalar(remains, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return math.exp(best.x), math.sqrt(best.fun / len(impairments))


def interval(value: Callable[[Fit], float], fits: list[Fit]) -> float:
    """Half of Student's 95 % interval over the clips, by the jackknife; ``fits`` lack one each."""
    n = len(fits)
    values = np.array([value(one) for one in fits])
    error = math.sqrt((n - 1) / n * float(np.sum((values - values.mean()) ** 2)))
    return float(stdtrit(n - 1, 0.975)) * error


def plus_minus(of_clips: np.ndarray) -> str:
    """Mean over the clips and half of Student's 95 % interval."""
    mean, half = student(of_clips)
    return f"{mean:.2f} ± {half:.2f}"


def without_effect(fec: str, scores: Scores) -> bool:
    """Whether FEC changed no score: libopus has none at low rates."""
    plain = fec.removesuffix(" FEC")
    return all(np.array_equal(scores[fec, loss], scores[plain, loss]) for loss in LOSSES)


def read() -> Scores:
    """The scores of the calls."""
    with RESULTS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    print(f"{len(rows)} calls of {len(CLIPS)} clips")
    found: dict[tuple[str, int], dict[str, list[float]]] = {}
    for row in rows:
        key = row["condition"], int(row["loss_percent"])
        found.setdefault(key, {}).setdefault(row["clip"], []).append(float(row["pesq_nb"]))
    return {
        key: np.array([np.mean(of_clip[clip]) for clip in CLIPS]) for key, of_clip in found.items()
    }


def tables(scores: Scores) -> str:
    """The tables of README.md."""
    whole = fit(scores)
    fits = [
        fit({key: np.delete(values, clip) for key, values in scores.items()})
        for clip in range(len(CLIPS))
    ]

    def told(value: Callable[[Fit], float], digits: int = 1) -> str:
        return f"{value(whole):.{digits}f} ± {interval(value, fits):.{digits}f}"

    slope, intercept = whole.line
    out = [f"\nImpairment = {slope:.3f} × (93.2 − R) {intercept:+.2f}".replace("-", "−")]
    out.append(
        "\n| condition | loss | MOS-LQO | R | published | fitted | residual | residual, left out |"
    )
    out.append("|---|---:|---:|---:|---:|---:|---:|---:|")
    by_set: dict[bool, list[float]] = {True: [], False: []}
    for name, about in REFERENCES.items():
        for loss in about.losses:
            key = name, loss
            score, known = float(np.mean(scores[key])), about.published(loss)
            without = whole.left_out.get(key, whole.predicted[key])
            by_set[about.in_fit].append(abs(without - known))
            shown = told(lambda one, key=key: one.predicted[key])
            last = f"{without - known:+.1f}" if about.in_fit else "not in the fit"
            residual = whole.predicted[key] - known
            cells = [
                name, f"{loss} %", f"{score:.2f}", f"{rating(score):.1f}", f"{known:.1f}", shown,
                f"{residual:+.1f}", last,
            ]  # fmt: skip
            out.append(f"| {' | '.join(cells)} |".replace(" -", " −").replace("+-", "−"))
    error = float(np.mean(by_set[True]))
    used = published(lambda key: REFERENCES[key[0]].in_fit)
    own = float(np.mean([abs(whole.predicted[key] - known) for key, known in used.items()]))
    verdict = "met" if error <= LIMIT else "not met"
    out += [
        f"\nMean absolute residual, each left out: {error:.1f}; "
        f"the criterion of {LIMIT:g} is {verdict}.",
        f"The largest is {max(by_set[True]):.1f}, the mean of those not in the fit "
        f"{np.mean(by_set[False]):.1f}. With nothing left out, the mean is {own:.1f}.",
    ]
    out.append(
        "\n| line through | conditions | slope | mean absolute residual, left out | largest |"
    )
    out.append("|---|---:|---:|---:|---:|")
    raw = raw_impairments(scores)
    for words, chosen in PARTS.items():
        part = published(chosen)
        errors = [abs(value - part[key]) for key, value in without_each(part, raw).items()]
        mean, most = float(np.mean(errors)), max(errors)
        slope = line(part, raw)[0]
        out.append(f"| {words} | {len(part)} | {slope:.2f} | {mean:.1f} | {most:.1f} |")
    losses = (0, *LOSSES)
    shown = " | ".join(f"{loss} %" for loss in losses)
    out += [f"\n| MOS-LQO | {shown} |", "|---|" + "---:|" * len(losses)]
    same = [name for name in OPUS if name.endswith(" FEC") and without_effect(name, scores)]
    for name in OPUS:
        keys = [(name if (name, loss) in scores else name.removesuffix(" FEC"), loss)
                for loss in losses]  # fmt: skip
        if name not in same:
            cells = [plus_minus(scores[key]) for key in keys]
            out.append(f"| {name} | {' | '.join(cells)} |")
    out.append(f"\nEqual to the same without FEC at every loss: {', '.join(same)}.")
    out.append(f"\n| fitted, not ITU | Ie | Bpl | error of the curve | {shown} |")
    out.append("|---|" + "---:|" * (3 + len(losses)))
    for name in OPUS:
        if name in same:
            continue
        limited = whole.ie[name] == 0
        ie = "0" if limited else told(lambda one, name=name: one.ie[name])
        half = interval(lambda one, name=name: one.bpl[name], fits)
        known = half < whole.bpl[name]
        bpl = told(lambda one, name=name: one.bpl[name]) if known else "undetermined"
        plain = whole.predicted[name.removesuffix(" FEC"), 0]
        points = [plain, *(whole.predicted[name, loss] for loss in LOSSES)]
        cells = [ie, bpl, f"{whole.error[name]:.1f}", *(f"{point:.1f}" for point in points)]
        out.append(f"| {name} | {' | '.join(cells)} |".replace(" -", " −"))
    return "\n".join(out)


def main() -> None:
    """Measure what is missing, then print the tables."""
    resumed(RESULTS, COLUMNS, ("clip", "condition", "loss_percent", "mask"), measured)
    print(tables(read()))


if __name__ == "__main__":
    main()
