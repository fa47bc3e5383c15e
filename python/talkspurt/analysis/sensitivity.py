"""Sensitivity of a measure to the factors of a study's design.

A Sobol design with indices gives first-order and total indices (Saltelli et al. 2010, estimated by
scipy.stats.sobol_indices), with bootstrap intervals. Every other design gives standardised
regression coefficients (SRC), partial rank correlations (PRCC; Iman and Conover 1980) and the R² of
both regressions, with percentile intervals of a bootstrap over the points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from talkspurt._lazy import pl
from talkspurt.metrics.catalogue import of_a_flow
from talkspurt.results.run_data import finite

if TYPE_CHECKING:
    from talkspurt.results.axis import Axis
    from talkspurt.results.study_data import StudyData

RESAMPLES = 999
SEED = 1
"""Seed of the bootstrap: equal results give equal intervals."""
INDICES = {
    "first": "first order",
    "total": "total",
    "src": "SRC",
    "prcc": "PRCC",
    "r2": "R²",
    "rank_r2": "R² of ranks",
}
CONSTANT = "the measure is the same at every point"

Numbers = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Estimate:
    """One index of one factor.

    Attributes:
        factor: its name; for a value of a list without numbers, ``NAME = LABEL``.
        index: ``first``, ``total``, ``src``, ``prcc``, or of the whole regression ``r2`` and
            ``rank_r2``, without a factor.
        value: the index; None if it is not defined.
    """

    factor: str | None
    index: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


def of_study(study: StudyData, measure: str) -> pl.DataFrame:
    """The table of :meth:`talkspurt.Study.sensitivity`."""
    if study.design is None:
        raise ValueError("sensitivity needs a study with a [design]")
    of_a_flow(measure)  # an unknown measure is an error of its own
    rows = []
    for (settings, flow), values in _outputs(study, measure).items():
        there = {axis.column: dict(settings)[axis.name] for axis in study.axes if not axis.factor}
        found, note = estimate(study, values)
        missing = int(np.isnan(values).sum())
        for one in found:
            of_all = {"points": len(values), "missing": missing, "note": note}
            rows.append({**there, "flow": flow, "measure": measure, **asdict(one), **of_all})
    schema: dict[str, Any] = {axis.column: pl.String() for axis in study.axes if not axis.factor}
    schema |= dict.fromkeys(("flow", "measure", "factor", "index"), pl.String())
    schema |= dict.fromkeys(("value", "low", "high"), pl.Float64())
    schema |= {"points": pl.Int64(), "missing": pl.Int64(), "note": pl.String()}
    return pl.DataFrame(rows, schema=schema)


def _outputs(
    study: StudyData, measure: str
) -> dict[tuple[tuple[tuple[str, str], ...], str], Numbers]:
    """The measure at each point, by setting of the axes and flow: the mean over replications."""
    assert study.design is not None
    points = int(study.design["points"])
    lists = [axis.name for axis in study.axes if not axis.factor]
    sums: dict[tuple[tuple[tuple[str, str], ...], str], list[list[float]]] = {}
    for i, (run, found) in enumerate(zip(study.runs, study._values(measure), strict=True)):
        point = i // study.replications % points
        setting = tuple((name, run.settings[name]) for name in lists)
        for flow, value in found.items():
            key = (setting, flow)
            values = sums.setdefault(key, [[] for _ in range(points)])
            if value is not None:
                values[point].append(value)
    return {
        key: np.array([np.mean(its) if its else np.nan for its in values])
        for key, values in sums.items()
    }


def estimate(study: StudyData, values: Numbers) -> tuple[list[Estimate], str | None]:
    """The indices of all factors, and why they are not defined, if so."""
    assert study.design is not None
    factors = [axis for axis in study.axes if axis.factor]
    there = np.isfinite(values)
    inputs: dict[str, Numbers] = {}
    note = f"{(~there).sum()} of {len(values)} points have no value"
    if study.design["indices"]:
        names, kinds = [axis.name for axis in factors], ("first", "total")
        # Without some rows, the estimators would be of another region.
        undefined = not there.all()
    else:
        points = [run.settings for run in study.runs[:: study.replications]][: len(values)]
        for axis in factors:
            inputs |= _terms(axis, [settings[axis.name] for settings in points])
        names, kinds = list(inputs), ("src", "prcc")
        note += ": too few remain"
        undefined = there.sum() < len(inputs) + 2
    if undefined or np.ptp(values[there]) == 0:
        nothing = [Estimate(name, index) for index in kinds for name in names]
        return nothing, note if undefined else CONSTANT
    if study.design["indices"]:
        return sobol(names, values, study.confidence), None
    chosen = {name: column[there] for name, column in inputs.items()}
    return regression(chosen, values[there], study.confidence), None


def _terms(axis: Axis, labels: Sequence[str]) -> dict[str, Numbers]:
    """A factor as numbers: names become one indicator for each but the first."""
    if axis.numbers is not None:
        return {axis.name: np.array([axis.value(label) for label in labels], dtype=float)}
    return {
        f"{axis.name} = {label}": np.array([float(it == label) for it in labels])
        for label in axis.labels[1:]
    }


def sobol(names: Sequence[str], values: Numbers, confidence: float) -> list[Estimate]:
    """First-order and total indices, from the values at A, at B, and at A with columns of B."""
    from scipy.stats import sobol_indices

    blocks = values.reshape(len(names) + 2, -1)
    points = blocks.shape[1]

    def indices(chosen: Any) -> Numbers:
        part = blocks[:, chosen]
        func = {"f_A": part[:1], "f_B": part[1:2], "f_AB": part[2:, np.newaxis]}
        found = sobol_indices(func=func, n=points)
        return np.concatenate([np.ravel(found.first_order), np.ravel(found.total_order)])

    # scipy's own bootstrap of the indices takes no seed.
    rng = np.random.default_rng(SEED)
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = indices(slice(None))
        resamples = rng.integers(points, size=(RESAMPLES, points))
        samples = np.array([indices(chosen) for chosen in resamples])
    keys = [(name, index) for index in ("first", "total") for name in names]
    return list(_estimates(keys, exact, samples, confidence))


def _estimates(
    keys: Sequence[tuple[str | None, str]], exact: Numbers, samples: Numbers, confidence: float
) -> Iterator[Estimate]:
    """Indices with their percentile intervals."""
    tail = 50 * (1 - confidence)
    for (name, index), value, sample in zip(keys, exact, samples.T, strict=True):
        there = sample[np.isfinite(sample)]
        low, high = np.percentile(there, (tail, 100 - tail)) if len(there) else (np.nan, np.nan)
        yield Estimate(name, index, *(finite(float(end)) for end in (value, low, high)))


def regression(inputs: Mapping[str, Numbers], values: Numbers, confidence: float) -> list[Estimate]:
    """SRC and PRCC of each input, and R² of the regressions on values and on ranks."""
    names = list(inputs)
    x = np.column_stack([inputs[name] for name in names])
    exact = _coefficients(x, values)
    rng = np.random.default_rng(SEED)
    with np.errstate(divide="ignore", invalid="ignore"):
        samples = np.array(
            [
                _coefficients(x[chosen], values[chosen])
                for chosen in rng.integers(len(values), size=(RESAMPLES, len(values)))
            ]
        )
    columns = [(n, "src") for n in names] + [(n, "prcc") for n in names]
    keys: list[tuple[str | None, str]] = [*columns, (None, "r2"), (None, "rank_r2")]
    return [
        one if one.value is not None else Estimate(one.factor, one.index)
        for one in _estimates(keys, exact, samples, confidence)
    ]


def _coefficients(x: Numbers, y: Numbers) -> Numbers:
    """SRC, PRCC, R² and the R² of ranks."""
    from scipy.stats import rankdata

    src, r2 = _standardised(x, y)
    ranks, of_y = rankdata(x, axis=0), rankdata(y)
    _, rank_r2 = _standardised(ranks, of_y)
    partial = [_partial(ranks, of_y, i) for i in range(x.shape[1])]
    return np.array([*src, *partial, r2, rank_r2])


def _standardised(x: Numbers, y: Numbers) -> tuple[Numbers, float]:
    """Coefficients of the regression of standard scores, and its R²; NaN for constants."""
    spread, of_y = x.std(axis=0), y.std()
    varies = spread > 0
    result = np.full(x.shape[1], np.nan)
    if of_y == 0 or not varies.any():
        return result, float("nan")
    scores = (x[:, varies] - x[:, varies].mean(axis=0)) / spread[varies]
    wanted = (y - y.mean()) / of_y
    fitted, *_ = np.linalg.lstsq(scores, wanted, rcond=None)
    result[varies] = fitted
    return result, float(1 - np.mean((wanted - scores @ fitted) ** 2))


def _partial(x: Numbers, y: Numbers, i: int) -> float:
    """The correlation of y and column i, after the regression of both on all other columns."""
    others = np.column_stack([np.ones(len(y)), np.delete(x, i, axis=1)])
    rest = []
    for one in (x[:, i], y):
        fitted, *_ = np.linalg.lstsq(others, one, rcond=None)
        left = one - others @ fitted
        # What rounding leaves of a constant is no residual.
        if np.sqrt(np.mean(left**2)) <= 1e-9 * max(float(np.abs(one).max()), 1.0):
            return float("nan")
        rest.append(left)
    return float(np.corrcoef(*rest)[0, 1])
