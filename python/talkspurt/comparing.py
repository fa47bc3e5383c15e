"""The answer in sentences: which call is better, by how much, and why.

Which calls are compared:

* **In one run**, two calls (or groups of calls made by ``count``) that carry the same speech in the
  same direction at the same times, over the same route or over separate copies of a network with
  the same competing traffic (:mod:`talkspurt.analysis.comparable`), and that differ in some
  setting, such as the transport. Of the calls that can be compared with each other, the first in
  the scenario is the baseline.
* **In a study, along an axis**, a call under one value of the axis and the same call under the
  first value, the baseline, with all other axes equal.
* **In a study, within its runs**, the calls of one run, as above, for each setting.

Replications are paired: both calls of a pair have the same seed. The difference is the mean over
the pairs, with Student's interval at the confidence level of the study. It is significant if the
interval does not contain 0. From one pair there is no interval, and a single run proves nothing
about other seeds.

A cause is stated for differences of ``MIN_DIFFERENCE`` MOS or more that are not insignificant:

1. The E-model divides the MOS lost by each call into shares of delay, loss and codec, which add up
   (``mos_lost_to_…``). A share counts that makes up ``MAIN`` of the difference or more.
2. For loss, each frame that was not heard has a cause, decided from its times, the delay of the
   network and the congestion window (:mod:`talkspurt.analysis.causes`); pauses of adaptive playout
   are a cause of their own. Causes that make up ``PART`` of the additional unheard speech are
   named. Of more than ``MAX_PAIRS`` pairs, the frames of as many are read: of each of 10 000
   runs, that takes longer than the runs.
3. For delay, it is the handshake's or the network's if that accounts for half of the additional
   mouth-to-ear delay.

If the measures do not decide, the sentence states the measured difference, or no cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from talkspurt import intervals
from talkspurt._text.format import time_text
from talkspurt.analysis import causes
from talkspurt.analysis.comparable import Conditions
from talkspurt.metrics.catalogue import column

if TYPE_CHECKING:
    import polars as pl

    from talkspurt.results.run_data import RunData
    from talkspurt.results.study_data import StudyData

MIN_DIFFERENCE = 0.05
"""Smallest difference in MOS with a cause."""
MAIN = 0.3
PART = 0.25
MAX_PAIRS = 200
"""Pairs whose frames are read for a cause."""
MAX_SENTENCES = 5
"""Sentences in one place; of more comparisons, the best and the worst are shown."""
MAX_CALLS = 24
"""With more calls or groups in one run, none are compared."""

Row = Mapping[str, Any]
Rows = tuple["RunData", Sequence[Row]]
"""A run, and rows of its flows table."""


@dataclass(frozen=True)
class Call:
    """A call, or a group of calls, under one setting.

    Attributes:
        label: its name in a sentence.
        runs: per replication, the run and its rows of the flows table.
    """

    label: str
    runs: Mapping[int, tuple[RunData, Sequence[Row]]]

    def mean(self, name: str, replicate: int) -> float | None:
        """A metric in one replication: the mean over the members with a value."""
        numbers = [v for row in self.runs[replicate][1] if (v := row.get(name)) is not None]
        return sum(numbers) / len(numbers) if numbers else None

    def over(self, name: str, replicates: Iterable[int]) -> float | None:
        """A metric over replications: the mean of those with a value."""
        found = [self.mean(name, k) for k in replicates]
        numbers = [value for value in found if value is not None]
        return sum(numbers) / len(numbers) if numbers else None


@dataclass(frozen=True)
class Comparison:
    """Two calls, one of them the baseline.

    Attributes:
        where: what else tells this comparison from others, such as the other axes; may be empty.
        baseline: the call compared with.
        other: the call that is better or worse.
        replications: runs of each setting.
        confidence: confidence level of the interval.
    """

    where: str
    baseline: Call
    other: Call
    replications: int = 1
    confidence: float = 0.95

    @cached_property
    def pairs(self) -> tuple[int, ...]:
        """The replications in which both calls have a MOS."""
        return tuple(
            k
            for k in self.baseline.runs
            if k in self.other.runs
            and None not in (self.baseline.mean("mos", k), self.other.mean("mos", k))
        )

    @cached_property
    def scores(self) -> tuple[float, float]:
        """Mean MOS of the baseline and of the other call."""
        base, other = (call.over("mos", self.pairs) for call in (self.baseline, self.other))
        assert base is not None and other is not None
        return base, other

    @cached_property
    def row(self) -> dict[str, Any]:
        """The difference, other − baseline, as a row of ``Study.differences``."""
        from talkspurt.analysis.means import student

        numbers = [
            (self.other.mean("mos", k) or 0.0) - (self.baseline.mean("mos", k) or 0.0)
            for k in self.pairs
        ]
        mean, half, deviation = student(numbers, self.confidence)
        assert mean is not None
        return {
            "measure": "mos",
            "baseline": self.baseline.label,
            "count": len(numbers),
            "replications": self.replications,
            "mean": mean,
            "low": None if half is None else mean - half,
            "high": None if half is None else mean + half,
            "deviation": deviation,
        }

    @property
    def difference(self) -> float:
        """Mean difference in MOS, other − baseline."""
        return float(self.row["mean"])

    @property
    def significant(self) -> bool | None:
        """Whether the interval does not contain 0; None without an interval."""
        low, high = self.row["low"], self.row["high"]
        return None if low is None else bool(low > 0 or high < 0)

    @property
    def differs(self) -> bool:
        """Whether there is a difference that can be seen, and no interval that contains 0."""
        return self.significant is not False and float(column("mos").show(abs(self.difference))) > 0

    @cached_property
    def cause(self) -> str:
        """Why the worse call is worse; empty if the measures do not decide it."""
        if self.significant is False or abs(self.difference) < MIN_DIFFERENCE:
            return ""
        calls = (self.baseline, self.other)
        better, worse = calls if self.difference < 0 else calls[::-1]
        return _Cause(better, worse, self.pairs, abs(self.difference)).words()

    def sentence(self) -> str:
        """The comparison in words, as in "UDP 3.41, TCP 1.44: TCP is 1.97 MOS worse"."""
        mos = column("mos")
        base, other = (mos.show(score) for score in self.scores)
        if _is_number(self.baseline.label) or _is_number(self.other.label):
            scores = f"MOS {base} at {self.baseline.label}, {other} at {self.other.label}"
        else:
            scores = f"{self.baseline.label} {base}, {self.other.label} {other}"
        where = f"{self.where}: " if self.where else ""
        said = f"{where}{scores}: {self._verdict()}{self._because()}."
        # A number stays on one line with its interval and its unit.
        return re.sub(r"(?<=\d) (?=±|%|ms|MOS|seeds)|(?<=±) (?=[\d<])", "\u00a0", said)

    def _verdict(self) -> str:
        mos = column("mos")
        size, spread = mos.show(abs(self.difference)), intervals.texts(self.row)[1]
        seeds = f"{len(self.pairs)} seeds"
        if len(self.pairs) < self.replications:
            seeds = f"{len(self.pairs)} of {self.replications} seeds"
        level = f"{self.confidence * 100:g} % interval, {seeds}"
        if self.significant is None and float(size) == 0:
            return "no difference"
        if intervals.still(self.row):
            same = f"the same with each of {seeds}"
            if float(size) == 0:
                return f"no difference ({same})"
            return f"{self._ranked(size)} ({same})"
        if self.significant is None:
            one = "" if self.replications == 1 else f" ({seeds})"
            return self._ranked(size) + one
        ends = intervals.ends(self.row)
        assert ends is not None
        if ends.cut_low or ends.cut_high:
            level = f"{level}: {mos.show(ends.low)} … {mos.show(ends.high)}"
            half = ""
        else:
            half = " " + spread.split(" (")[0].replace("±", "± ")
        if not self.significant:
            return f"no significant difference ({mos.show(self.difference)}{half} MOS, {level})"
        if float(size) == 0:
            return f"the difference is below 0.01 MOS ({level})"
        return f"{self._ranked(size + half)} ({level})"

    def _ranked(self, size: str) -> str:
        # The label without the name of its transport in parentheses.
        name = re.sub(r" \([^()]*\)$", "", self.other.label)
        return f"{name} is {size} MOS {'better' if self.difference > 0 else 'worse'}"

    def _because(self) -> str:
        if not self.cause:
            return ""
        # The cause is a property of the worse call.
        of = f"{self.baseline.label} has " if self.difference > 0 else ""
        return f"; cause: {of}{self.cause}"


@dataclass(frozen=True)
class _Cause:
    """What the worse of two calls has and the better has not."""

    better: Call
    worse: Call
    pairs: Sequence[int]
    difference: float

    def words(self) -> str:
        found = {}
        for what in ("loss", "delay", "codec"):
            worse, better = self._both(f"mos_lost_to_{what}")
            if worse is None or better is None:
                return ""
            found[what] = (worse - better) / self.difference
        say: dict[str, Callable[[], list[str]]] = {
            "loss": self._loss, "delay": self._delay, "codec": self._codec
        }  # fmt: skip
        ranked = sorted(found, key=lambda what: -found[what])
        said = [say[what]() for what in ranked if found[what] >= MAIN]
        return _listed([part for parts in said for part in parts])

    def _both(self, name: str) -> tuple[float | None, float | None]:
        return self.worse.over(name, self.pairs), self.better.over(name, self.pairs)

    def _loss(self) -> list[str]:
        worse, better = (self._shares(call) for call in (self.worse, self.better))
        total, least = sum(worse.values()), sum(better.values())
        more = total - least
        if more < PART * total:
            return self._bursts()
        parts = {cause: worse[cause] - better[cause] for cause in LOSS_WORDS}
        ranked = sorted(parts, key=lambda cause: -parts[cause])
        named = [cause for cause in ranked if parts[cause] >= PART * more]
        if sum(parts[cause] for cause in named) < more / 2:
            return [f"unheard speech ({_instead(total, least)})"]
        return [LOSS_WORDS[cause].format(_instead(worse[cause], better[cause])) for cause in named]

    def _shares(self, call: Call) -> dict[str, float]:
        """The share of each cause in what was not heard: frames, and pauses of playout."""
        pairs = self.pairs[:MAX_PAIRS]
        found = causes.unheard((call.runs[k][0], row) for k in pairs for row in call.runs[k][1])
        shares = {cause: found.share(cause) for cause in (*LOSS_WORDS, causes.UNKNOWN)}
        concealed, lost = (call.over(n, pairs) for n in ("concealed_ratio", "loss_ratio"))
        shares[PAUSES] = max(0.0, (concealed or 0.0) - (lost or 0.0))
        return shares

    def _bursts(self) -> list[str]:
        """For similar shares of unheard speech: whether the gaps are longer."""
        worse, better = self._both("burst_ratio")
        if not worse or not better or worse < better * (1 + PART):
            return []
        ratio = column("burst_ratio")
        return [f"longer gaps (burst ratio {ratio.show(worse)} instead of {ratio.show(better)})"]

    def _delay(self) -> list[str]:
        worse, better = self._both("mouth_to_ear_mean_s")
        if worse is None or better is None or worse - better < 1e-3:
            return []
        said = f"mouth-to-ear delay of {time_text(worse)} instead of {time_text(better)}"
        for name, words in (
            ("handshake_wait_s", "handshake delay"),
            ("delay_p50_s", "network delay"),
        ):
            there, here = (value or 0.0 for value in self._both(name))
            if there - here >= (worse - better) / 2:
                return [f"{words} ({said})"]
        return [said]

    def _codec(self) -> list[str]:
        worse, better = self._both("mos_lost_to_codec")
        mos = column("mos_lost_to_codec")
        return [f"codec (costs {mos.show(worse)} MOS instead of {mos.show(better)})"]


PAUSES = "pauses of playout"
LOSS_WORDS = {
    causes.HEAD_OF_LINE: "head-of-line blocking ({} of the speech arrived too late)",
    causes.RATE: "rate limitation by congestion control ({} of the speech waited too long at the "
    "sender)",
    causes.RETRANSMISSION: "retransmission ({} of the speech arrived too late)",
    causes.NETWORK_LOSS: "loss in the network ({} of the speech)",
    causes.NETWORK_DELAY: "delay variation in the network ({} of the speech arrived too late)",
    causes.HANDSHAKE: "handshake ({} of the speech waited for the connection)",
    PAUSES: "pauses of adaptive playout ({} of what was heard)",
}
"""Causes of unheard speech in a sentence, with the place of their share."""


def _instead(worse: float, better: float) -> str:
    share = column("loss_ratio")
    if share.show(better) == share.show(0):
        return share.show(worse, unit=True)
    return f"{share.show(worse)} instead of {share.show(better, unit=True)}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _quoted(label: str) -> str:
    """The label, in quotation marks if it would be read as more than one."""
    return f"“{label}”" if re.search("[,:;]", label) else label


def _is_number(label: str) -> bool:
    return bool(re.match(r"[-−+.]?\d", label))


@dataclass(frozen=True)
class Answers:
    """The comparisons below one table.

    Attributes:
        comparisons: those to be shown.
        omitted: how many others there are.
    """

    comparisons: Sequence[Comparison] = field(default_factory=tuple)
    omitted: int = 0

    @classmethod
    def of(cls, found: Iterable[Comparison]) -> Answers:
        """Those with a MOS; of many, the best and the worst."""
        every = [one for one in found if one.pairs]
        if len(every) <= MAX_SENTENCES:
            return cls(every)
        ranked = sorted(range(len(every)), key=lambda i: every[i].difference)
        chosen = sorted({*ranked[: MAX_SENTENCES // 2 + 1], *ranked[-(MAX_SENTENCES // 2) :]})
        return cls([every[i] for i in chosen], len(every) - len(chosen))

    def sentences(self) -> list[str]:
        """One per comparison, differences first, and one on those that are omitted."""
        ordered = sorted(self.comparisons, key=lambda one: not one.differs)
        said = [one.sentence() for one in ordered]
        if self.omitted:
            said.append(f"{self.omitted} other comparisons lie between these: see the table.")
        return said


def of_result(result: RunData) -> Answers:
    """The comparisons within one run."""
    rows = result.flows.to_dicts()
    return Answers.of(_within({result.replicate: (result, rows)}, "", 1, 0.95))


def of_study(study: StudyData) -> dict[str | None, Answers]:
    """The comparisons within the runs of a study (key None), and along each axis by its name."""
    settings: dict[tuple[str, ...], dict[int, Rows]] = {}
    for run, rows in study.by_run("flows"):
        key = tuple(run.settings[axis.name] for axis in study.axes)
        settings.setdefault(key, {})[run.replicate] = run, rows
    several = [axis for axis in study.axes if len(axis.labels) > 1]
    apart = [axis for axis in several if not axis.factor]

    def where(key: Sequence[str], without: str | None = None) -> str:
        named = zip((axis.name for axis in study.axes), key, strict=True)
        shown = {axis.name for axis in several} - {without}
        return ", ".join(f"{axis} {label}" for axis, label in named if axis in shown)

    count, level = study.replications, study.confidence
    inside = (
        one for key, runs in settings.items() for one in _within(runs, where(key), count, level)
    )
    found: dict[str | None, Answers] = {None: Answers.of(inside)}
    calls = {key: _calls(runs) for key, runs in settings.items()}
    many = len({unit for of_setting in calls.values() for unit in of_setting}) > 1
    for position, axis in enumerate(study.axes):
        if axis not in apart:
            continue
        along = []
        first = axis.labels[0]
        for key in settings:
            base = (*key[:position], first, *key[position + 1 :])
            if key[position] == first or base not in calls:
                continue
            for unit, call in calls[key].items():
                if unit in calls[base]:
                    place = ", ".join(filter(None, [unit if many else "", where(key, axis.name)]))
                    here = Call(_quoted(first), calls[base][unit].runs)
                    there = Call(_quoted(key[position]), call.runs)
                    along.append(Comparison(place, here, there, count, level))
        found[axis.name] = Answers.of(along)
    return found


def sentences(study: StudyData) -> dict[str | None, list[str]]:
    """The sentences below the tables of a study, with the keys of :func:`of_study`."""
    return {place: answers.sentences() for place, answers in of_study(study).items()}


def unscored(flows: pl.DataFrame) -> list[str]:
    """Why calls have no score: a sentence per reason, with the calls and groups of calls."""
    reasons: dict[str, dict[str, None]] = {}
    for row in flows.drop_nulls("quality_note").iter_rows(named=True):
        if row["r_factor"] is None:
            reason = row["quality_note"].split("; ")[0].removeprefix("no score: ")
            reasons.setdefault(reason, {})[row["group"] or row["name"]] = None
    return [f"No score for {_several(list(names))}: {reason}." for reason, names in reasons.items()]


DECLARED = " as declared, not from ITU-T: "
"""In a note: the values of a codec, and their source."""


def declared(flows: pl.DataFrame) -> list[str]:
    """Which scores rest on declared values of a codec: a sentence per source of values."""
    used: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for row in flows.drop_nulls("quality_note").iter_rows(named=True):
        for clause in row["quality_note"].split("; ") if row["r_factor"] is not None else ():
            values, found, source = clause.partition(DECLARED)
            if found:
                names, told = used.setdefault(source, ({}, {}))
                names[row["group"] or row["name"]] = None
                told[values] = None
    return [
        f"The score of {_several(list(names))} uses declared values: "
        f"{_several(list(told))} ({source})."
        for source, (names, told) in used.items()
    ]


def stood_in(flows: pl.DataFrame) -> list[str]:
    """Which calls are heard through another codec: a sentence per stand-in."""
    heard: dict[str, dict[str, None]] = {}
    # Results of earlier versions have no such column.
    if "stand_in" in flows.columns:
        for row in flows.drop_nulls("stand_in").iter_rows(named=True):
            for part in row["stand_in"].split("; "):
                heard.setdefault(part, {})[row["group"] or row["name"]] = None
    return [
        f"{_several(list(names))}: the sound of {codec} is that of {other}, since it has no "
        "encoder here; its packets and the score are its own."
        for (codec, other), names in ((part.split(": ", 1), names) for part, names in heard.items())
    ]


def notes(flows: pl.DataFrame) -> list[str]:
    """What must be known about the scores and the sound of calls: of one run, or of a study."""
    return [*unscored(flows), *declared(flows), *stood_in(flows)]


def _several(names: list[str]) -> str:
    listed = names[:MAX_SENTENCES] + (
        [f"{len(names) - MAX_SENTENCES} more"] if len(names) > MAX_SENTENCES else []
    )
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"


def _calls(runs: Mapping[int, Rows]) -> dict[str, Call]:
    """The calls and groups of calls of one setting with a score, by name."""
    rows: dict[str, dict[int, tuple[RunData, list[Row]]]] = {}
    for replicate, (run, flows) in runs.items():
        for row in flows:
            if row.get("r_factor") is not None:
                unit = row.get("group") or row["name"]
                rows.setdefault(unit, {}).setdefault(replicate, (run, []))[1].append(row)
    return {
        unit: Call(f"{unit} ({_transport(of_runs)})", of_runs) for unit, of_runs in rows.items()
    }


def _transport(runs: Mapping[int, tuple[RunData, Sequence[Row]]]) -> str:
    return str(next(iter(runs.values()))[1][0]["transport"])


def _within(
    runs: Mapping[int, Rows], where: str, replications: int, confidence: float
) -> Iterable[Comparison]:
    """The calls of the runs of one setting, each compared with the first comparable one."""
    calls = _calls(runs)
    if not 1 < len(calls) <= MAX_CALLS:
        return
    run, _ = next(iter(runs.values()))
    conditions = Conditions.of(run)
    members = {
        unit: [str(row["name"]) for row in next(iter(call.runs.values()))[1]]
        for unit, call in calls.items()
    }
    bases: list[str] = []
    for unit in calls:
        base = next((b for b in bases if conditions.comparable(members[b], members[unit])), None)
        if base is None:
            bases.append(unit)
        else:
            yield Comparison(where, calls[base], calls[unit], replications, confidence)
