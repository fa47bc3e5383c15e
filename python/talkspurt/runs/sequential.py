"""Sequential replication: more replications until the intervals of measures are narrow enough.

Each step runs all settings of a study under the same seeds, so that they stay paired. From the
widest interval, the number of replications that it needs is estimated (its width falls with the
square root of their number); a step at most doubles them. At least ``MIN_REPLICATIONS`` run before
the first decision: an interval of fewer is often narrow by chance (Law, Simulation Modeling and
Analysis, 5th ed., §9.4.1).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from talkspurt import api, intervals
from talkspurt._text.escaping import visible
from talkspurt.api import OnProgress
from talkspurt.errors import BadInputError
from talkspurt.metrics.catalogue import of_a_flow, quantity
from talkspurt.results.result import Result, Study
from talkspurt.scenarios.source import Question, Sets, Source, read

MIN_REPLICATIONS = 5
MAX_REPLICATIONS = 100
MAX_GROWTH = 2
"""Maximum growth of their number in one step."""
WIDTH = re.compile(
    r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)\s*([^\s0-9.]\S*)?", re.IGNORECASE
)


@dataclass(frozen=True)
class Target:
    """Half the width that the interval of a measure may have.

    Attributes:
        half: half the width, in the unit of the stored measure, or a share of the mean.
        text: as it was given.
    """

    measure: str
    half: float
    relative: bool
    text: str

    @classmethod
    def of(cls, measure: str, width: float | str) -> Target:
        """A target such as 0.1, ``"5ms"`` or, relative to the mean, ``"5%"``."""
        from talkspurt.figures.scale import UNITS

        one = of_a_flow(measure)
        text = f"{measure}={width}"
        found = WIDTH.fullmatch(str(width).strip())
        number = float(found[1]) if found else 0.0
        if found is None or not 0 < number < math.inf:
            raise ValueError(f"{text}: expected a number above 0, as in mos=0.1 or mos=5%")
        unit = found[2] or ""
        if unit == "%":
            return cls(measure, number / 100, True, text)
        kind, size = UNITS.get(unit, (unit, 1.0))
        if unit and kind != one.unit:
            raise ValueError(f"{text}: {one.full_name} is in {one.unit}, not in {unit}")
        return cls(measure, number * size, False, text)

    def ratio(self, row: Mapping[str, Any]) -> float:
        """Half of a row's interval over the one requested; infinite without an interval."""
        if row["mean"] is None:
            return 0.0  # a flow that never has the measure
        if row["low"] is None:
            return math.inf
        wanted = self.half * abs(row["mean"]) if self.relative else self.half
        half = (row["high"] - row["low"]) / 2
        return 0.0 if half == 0 else half / wanted if wanted else math.inf


def targets(until: Mapping[str, float | str] | Sequence[str]) -> tuple[Target, ...]:
    """Targets by measure, or from ``MEASURE=WIDTH``.

    Raises:
        ValueError: if one is not valid.
        KeyError: if there is no such metric.
    """
    if isinstance(until, Mapping):
        return tuple(Target.of(name, width) for name, width in until.items())
    found = []
    for one in until:
        name, equals, width = one.partition("=")
        if not equals:
            raise ValueError(f"{one!r} is not MEASURE=WIDTH, such as mos=0.1")
        found.append(Target.of(name.strip(), width.strip()))
    return tuple(found)


def first(replications: int, most: int) -> int:
    """The replications of the first step."""
    return min(max(replications, MIN_REPLICATIONS), most)


def widest(study: Study, wanted: Sequence[Target]) -> tuple[float, Target, Mapping[str, Any]]:
    """The largest ratio of an interval to the one requested, with its target and row."""
    found: list[tuple[float, Target, Mapping[str, Any]]] = []
    for target in wanted:
        rows = study.rows(study.summary([target.measure]))
        if all(row["mean"] is None for row in rows):
            raise ValueError(f"no flow has a value of {target.measure}")
        found += [(target.ratio(row), target, row) for row in rows]
    return max(found, key=lambda one: one[0])


def more(study: Study, wanted: Sequence[Target], most: int) -> int:
    """The replications of the next step; 0 if the intervals are narrow enough, or at the limit."""
    ratio, *_ = widest(study, wanted)
    n = study.replications
    if ratio <= 1 or n >= most:
        return 0
    need = MAX_GROWTH * n if math.isinf(ratio) else math.ceil(n * ratio**2)
    return min(max(need, n + 1), MAX_GROWTH * n, most)


def outcome(study: Study, wanted: Sequence[Target]) -> tuple[bool, str]:
    """Whether the intervals are as narrow as requested, and a sentence on the widest one."""
    ratio, target, row = widest(study, wanted)
    where = ", ".join(f"{axis.name} {row[axis.column]}" for axis in study.axes)
    of = f"{intervals.flow(row)}{f' ({where})' if where else ''}"
    unit = quantity(row["measure"]).unit
    found = f"{intervals.text(row)}{f' {unit}' if unit else ''}"
    said = f"{study.replications} replications: the widest interval is that of {target.measure}"
    return ratio <= 1, visible(f"{said} of {of}, {found}; requested: {target.text}")


def repeated(question: Question, count: int, seed: int | None) -> Question:
    """The same scenario with another number of replications."""
    sets = [(path, value) for path, value in question.sets if path != "replications.count"]
    again = read(
        question.file or question.text,
        set=[*sets, ("replications.count", str(count))],
        seed=seed,
    )
    if again.text != question.text:
        raise BadInputError("the scenario was changed while it was run")
    return again


def known(question: Question, study: Study) -> dict[int, Result]:
    """The runs of a study that are also runs of a plan with more replications."""
    there = {(tuple(run.settings.items()), run.replicate): run for run in study.runs}
    plan = question.plan
    keys = {i: (tuple(plan.settings(i).items()), plan.replicate(i)) for i in range(len(plan))}
    return {i: there[key] for i, key in keys.items() if key in there}


def run_until(
    scenario: Source,
    until: Mapping[str, float | str],
    *,
    most: int = MAX_REPLICATIONS,
    set: Sets | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    progress: OnProgress = lambda _: None,
) -> Study:
    """Run a scenario with more and more replications until intervals are narrow enough.

    All settings have the same number of replications. Because the number depends on the values, the
    confidence level of the intervals is only approximate.

    Args:
        scenario: path of a TOML file, TOML text, or a dict.
        until: half the width of the interval of each measure: a number in its unit, a quantity such
            as ``"5ms"``, or a share of the mean such as ``"5%"``.
        most: maximum number of replications.
        set: overrides of scenario fields.
        seed: replaces the scenario's seed.
        jobs: concurrent runs; default: all cores.
        progress: called with :class:`talkspurt.runs.engine.Progress`.

    Returns:
        The study; its intervals are wider than requested only if ``most`` was not enough.

    Raises:
        talkspurt.ScenarioError: if the scenario is invalid, with all errors.
        KeyError: if a measure does not exist or is not one number per flow.
        ValueError: if a width is not valid, or no flow has a value.
    """
    if most < 2:
        raise ValueError(f"most {most}: expected at least 2 replications, for an interval")
    wanted = targets(until)
    asked = read(scenario, set=set, seed=seed)
    question = repeated(asked, first(asked.plan.replications, most), seed)
    there: dict[int, Result] = {}
    while True:
        study = api.answer(question, jobs=jobs, on_progress=progress, there=there)
        assert isinstance(study, Study)
        count = more(study, wanted, most)
        if not count:
            return study
        question = repeated(asked, count, seed)
        there = known(question, study)
