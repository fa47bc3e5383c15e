"""The first sentences on a study: under which value of an axis a flow does best, and by how much.

An axis that sets something of flows is about these flows. One of queues or cells, whose values are
no numbers, is about all calls, or without calls about the video, or else about all flows. No
sentence names the best value of another condition, because the answer is known: a call is better
with less loss, and a flow has more beside fewer others. Calls of one run that have no MOS, and can
be compared (:mod:`talkspurt.analysis.comparable`), are compared with each other.

Calls are judged by their MOS, or without one by the share of speech that was heard, video by its
share of frames that are complete in time, everything else by its goodput.

Every value is compared with the best one, replication by replication: both have the same seed. A
difference is significant if Student's interval of its mean does not contain 0.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from talkspurt.analysis.means import student

if TYPE_CHECKING:
    from talkspurt.results.axis import Axis
    from talkspurt.results.run_data import RunData
    from talkspurt.results.study_data import StudyData

MAX_SETTINGS = 3
"""Settings of the other axes with a sentence each; of more, one sentence counts which are best."""
MAX_SENTENCES = 6
"""Sentences."""
MAX_VALUES = 6
"""Values in one sentence."""
MAX_CALLS = 24
"""With more calls or groups in one run, none are compared."""

Row = Mapping[str, Any]
Numbers = dict[int, float]
"""One number per replication."""


@dataclass(frozen=True)
class Quality:
    """What a flow is judged by.

    Attributes:
        value: its number, from its row of the flows table; None if it has none.
        digits: digits after the point.
        good: words for the best, with the place of its number.
        worse: words for another one, with the place of its difference.
        unit: unit of a difference.
    """

    value: Callable[[Row], float | None]
    digits: int
    good: str
    worse: str
    unit: str

    def show(self, number: float) -> str:
        """A number as text."""
        return f"{round(number, self.digits) + 0.0:,.{self.digits}f}".replace(",", "\u202f")


def _in_time(row: Row) -> float | None:
    frames, complete, late = (row.get(f"video_frames{what}") for what in ("", "_complete", "_late"))
    if not frames or complete is None or late is None:
        return None
    return float(100 * (complete - late) / frames)


def _goodput(row: Row) -> float | None:
    found = row.get("goodput_bps")
    return None if found is None else float(found) / 1e3


def _heard(row: Row) -> float | None:
    found = row.get("loss_ratio")
    return None if found is None else 100 * (1 - float(found))


MOS = Quality(lambda row: row.get("mos"), 2, "MOS {}", "is {} MOS worse", " MOS")
HEARD = Quality(
    _heard, 1, "{} % of its speech heard", "has {} percentage points less", " percentage points"
)
IN_TIME = Quality(
    _in_time, 1, "{} % of its frames in time", "has {} percentage points less", " percentage points"
)
GOODPUT = Quality(_goodput, 1, "{} kbit/s of goodput", "has {} kbit/s less", " kbit/s")
QUALITIES = (MOS, HEARD, IN_TIME, GOODPUT)


@dataclass(frozen=True)
class _Question:
    """One flow or group of flows along an axis, or calls of one run.

    Attributes:
        axis: name of the axis; empty if calls are compared.
        flow: the flow; empty if calls are compared.
        quality: what it is judged by.
        found: numbers by setting of the other axes, and by value of the axis, or by call.
    """

    axis: str
    flow: str
    quality: Quality
    found: Mapping[str, Mapping[str, Numbers]]

    def named(self, label: str) -> str:
        """A value of the axis, or a call, in a sentence."""
        quoted = f"“{label}”" if re.search("[,:;]", label) else label
        return f"{self.axis} {quoted}" if self.axis and re.match(r"[-−+.]?\d", label) else quoted


@dataclass(frozen=True)
class _Ranking:
    """The values of an axis under one setting.

    Attributes:
        best: the value with the best mean.
        mean: that mean.
        same: values that do not differ from it significantly, and their means.
        worse: the others: how much worse each is, and half its interval; the next one first.
    """

    best: str
    mean: float
    same: Sequence[tuple[str, float]]
    worse: Sequence[tuple[str, float, float | None]]

    @classmethod
    def of(
        cls, by_label: Mapping[str, Numbers], quality: Quality, confidence: float
    ) -> _Ranking | None:
        """None if fewer than two values have a number."""
        means = {k: math.fsum(v.values()) / len(v) for k, v in by_label.items() if v}
        if len(means) < 2:
            return None
        best = max(means, key=means.__getitem__)
        same, worse = [], []
        for label in sorted(means, key=means.__getitem__, reverse=True):
            if label == best:
                continue
            here, there = by_label[label], by_label[best]
            pairs = [there[k] - here[k] for k in there if k in here]
            mean, half, _ = student(pairs, confidence)
            unseen = half is None and mean is not None and quality.show(mean) == quality.show(0)
            if mean is None or mean == 0 or unseen or (half is not None and half >= abs(mean)):
                same.append((label, means[label]))
            else:
                worse.append((label, mean, half))
        return cls(best, means[best], same, worse)


def sentences(study: StudyData) -> list[str]:
    """The first sentences on a study, differences first; none without an axis of these kinds."""
    asked = [*_questions(study), *_inside(study)]
    said = [found for one in asked for found in _answers(study, one)]
    return [words for _, words in sorted(said, key=lambda one: not one[0])[:MAX_SENTENCES]]


def of_result(result: RunData) -> list[str]:
    """The first sentences on one run: on its calls without a MOS."""
    from talkspurt.results.study_data import StudyData

    return sentences(StudyData.of_run(result))


def _questions(study: StudyData) -> Iterable[_Question]:
    axes = [axis for axis in study.axes if not axis.factor and len(axis.labels) > 1]
    axes = [axis for axis in axes if _flows_of(axis) or _chosen(axis)]
    if not axes:
        return
    units = _units(study)
    found = {unit: q for unit, its in units.items() if (q := _quality(its)) is not None}
    # Transports first, then what else is of flows.
    order = sorted(axes, key=lambda a: (not a.path.endswith(".transport"), not _flows_of(a)))
    for axis in order:
        patterns = _flows_of(axis)
        if patterns:
            chosen = [u for u in found if any(_matches(u, pattern) for pattern in patterns)]
        else:
            some = (quality for quality in QUALITIES if quality in found.values())
            first = next(some, None)
            chosen = [unit for unit, quality in found.items() if quality is first]
        for unit in chosen:
            numbers = _numbers(study, units[unit], axis, found[unit])
            yield _Question(axis.name, unit, found[unit], numbers)


def _units(study: StudyData) -> dict[str, list[tuple[RunData, Row]]]:
    """The rows of each flow or group of flows, with their runs."""
    units: dict[str, list[tuple[RunData, Row]]] = {}
    for run, rows in study.by_run("flows"):
        for row in rows:
            units.setdefault(row.get("group") or row["name"], []).append((run, row))
    return units


def _inside(study: StudyData) -> Iterable[_Question]:
    """Calls of one run without a MOS; :mod:`talkspurt.comparing` compares those with one."""
    units = _units(study)
    calls = [unit for unit, its in units.items() if _quality(its) is HEARD]
    if not 1 < len(calls) <= MAX_CALLS:
        return
    from talkspurt.analysis.comparable import Conditions

    members: dict[Any, dict[str, list[str]]] = {}
    found: dict[Any, dict[str, Numbers]] = {}
    first: dict[str, RunData] = {}
    for unit in calls:
        each: dict[tuple[str, int], list[float]] = {}
        for run, row in units[unit]:
            where = _where(study, run)
            here = first.setdefault(where, run)
            if run is here:
                members.setdefault(where, {}).setdefault(unit, []).append(str(row["name"]))
            if (number := HEARD.value(row)) is not None:
                each.setdefault((where, run.replicate), []).append(number)
        for (where, replicate), numbers in each.items():
            mean = math.fsum(numbers) / len(numbers)
            found.setdefault(where, {}).setdefault(unit, {})[replicate] = mean
    asked: dict[tuple[str, ...], dict[str, dict[str, Numbers]]] = {}
    for where, run in first.items():
        conditions = Conditions.of(run)
        alike: list[list[str]] = []
        for unit, names in members[where].items():
            for others in alike:
                if conditions.comparable(members[where][others[0]], names):
                    others.append(unit)
                    break
            else:
                alike.append([unit])
        for its in alike:
            of_calls = {unit: found.get(where, {}).get(unit, {}) for unit in its}
            asked.setdefault(tuple(its), {})[where] = of_calls
    for compared, by_setting in asked.items():
        if len(compared) > 1:
            yield _Question("", "", HEARD, by_setting)


def _where(study: StudyData, run: RunData, without: Axis | None = None) -> str:
    """The setting of a run: the axes with several values, but for one."""
    axes = [one for one in study.axes if one is not without and len(one.labels) > 1]
    return ", ".join(f"{one.name} {run.settings[one.name]}" for one in axes)


def _chosen(axis: Axis) -> bool:
    """Whether its values are kinds of queues, or of settings of a cell."""
    return axis.numbers is None and bool(re.search(r"(^|\W)cells\.|\.queue\b", axis.path))


def _flows_of(axis: Axis) -> list[str]:
    """Names of flows, or patterns, of which the axis sets something but their number."""
    if axis.path.endswith(".count"):
        return []
    return re.findall(r"(?<![\w.])flows\.([^.,\s]+)\.", axis.path)


def _matches(unit: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(unit.removesuffix(".reverse"), pattern)


def _quality(rows: Sequence[tuple[RunData, Row]]) -> Quality | None:
    """The first measure of which a run has a number."""
    return next(
        (q for q in QUALITIES if any(q.value(row) is not None for _, row in rows)),
        None,
    )


def _numbers(
    study: StudyData, rows: Sequence[tuple[RunData, Row]], axis: Axis, quality: Quality
) -> dict[str, dict[str, Numbers]]:
    """The means over the members, by setting of the other axes and value of this one."""
    each: dict[str, dict[str, dict[int, list[float]]]] = {}
    for run, row in rows:
        number = quality.value(row)
        if number is not None:
            by_label = each.setdefault(_where(study, run, axis), {})
            runs = by_label.setdefault(run.settings[axis.name], {})
            runs.setdefault(run.replicate, []).append(number)
    return {
        where: {
            label: {k: math.fsum(v) / len(v) for k, v in runs.items()}
            for label, runs in by_label.items()
        }
        for where, by_label in each.items()
    }


def _answers(study: StudyData, asked: _Question) -> list[tuple[bool, str]]:
    """Sentences, and whether they tell of a difference."""
    ranked = {
        where: ranking
        for where, by_label in asked.found.items()
        if (ranking := _Ranking.of(by_label, asked.quality, study.confidence)) is not None
    }
    # Where no value makes a difference, there is nothing to say first.
    if not any(ranking.worse for ranking in ranked.values()):
        return []
    if len(ranked) > MAX_SETTINGS:
        return [(any(not one.same for one in ranked.values()), _counted(asked, ranked))]
    return [
        (bool(ranking.worse), _sentence(study, asked, where, ranking))
        for where, ranking in ranked.items()
    ]


def _sentence(study: StudyData, asked: _Question, where: str, ranking: _Ranking) -> str:
    quality = asked.quality
    head = ", ".join(filter(None, [asked.flow, where]))
    if not ranking.worse:
        what = "no significant difference" if study.replications > 1 else "no difference"
        said = f"{what} along {asked.axis}" if asked.axis else f"{what} between calls"
        return f"{head}: {said}." if head else f"{said.capitalize()}."
    good = quality.good.format(quality.show(ranking.mean))
    parts = [f"{asked.named(ranking.best)} is best with {good}"]
    if ranking.same:
        more = len(ranking.same) - MAX_VALUES
        names = [f"{asked.named(one)} ({quality.show(m)})" for one, m in ranking.same[:MAX_VALUES]]
        names += [f"{more} more"] if more > 0 else []
        verb = "does" if len(names) == 1 else "do"
        clearly = " significantly" if study.replications > 1 else ""
        parts.append(f"{_listed(names)} {verb} not differ{clearly}")
    (first, size, half), *rest = ranking.worse
    worse = [f"{asked.named(first)} {quality.worse.format(_size(quality, size, half))}"]
    worse += [
        f"{asked.named(label)} {_size(quality, size, half)}"
        for label, size, half in rest[:MAX_VALUES]
    ]
    if len(rest) > MAX_VALUES:
        worse.append(f"{len(rest) - MAX_VALUES} more up to {_size(quality, *rest[-1][1:])}")
    parts.append(", ".join(worse))
    seeds = ""
    if study.replications > 1:
        seeds = f" ({study.confidence * 100:g} % intervals, {study.replications} seeds)"
    said = f"{head}: {'; '.join(parts)}{seeds}." if head else f"{'; '.join(parts)}{seeds}."
    # A number stays on one line with its interval and its unit.
    return re.sub(
        r"(?<=\d) (?=±|%|kbit|MOS|seeds)|(?<=±) (?=[\d<])|(?<=MOS) (?=\d)", "\u00a0", said
    )


def _counted(asked: _Question, ranked: Mapping[str, _Ranking]) -> str:
    """How often each value is best, with its distance from the next where that is significant."""
    wins: dict[str, list[_Ranking]] = {}
    for ranking in ranked.values():
        wins.setdefault(ranking.best, []).append(ranking)
    parts = []
    for label in sorted(wins, key=lambda one: -len(wins[one])):
        alone = [r for r in wins[label] if not r.same]
        sure = ""
        if alone:
            most = max(r.worse[0][1] for r in alone)
            sure = (
                f" (alone in {len(alone)}, by up to {asked.quality.show(most)}{asked.quality.unit})"
            )
        parts.append(f"{asked.named(label)} is best in {len(wins[label])}{sure}")
    head = f"{asked.flow}, in {len(ranked)} settings of the other axes"
    if not asked.flow:
        head = f"In {len(ranked)} settings of the axes"
    return f"{head}: {', '.join(parts)}."


def _size(quality: Quality, size: float, half: float | None) -> str:
    least = 10.0**-quality.digits
    shown = quality.show(size) if size >= least / 2 else f"<{quality.show(least)}"
    if half is None or half == 0:
        return shown
    return f"{shown} ± {quality.show(half) if half >= least / 2 else f'<{quality.show(least)}'}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
