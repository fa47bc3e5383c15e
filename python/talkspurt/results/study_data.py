"""The data of many runs: axes times replications, with confidence intervals.

:class:`talkspurt.Study` adds what is drawn and saved of it.

Replication k has the same seed for every combination of the axes, so the combinations share their
random streams and differences are computed in pairs (common random numbers): an interval on paired
differences is far shorter than the difference of two intervals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from talkspurt._lazy import pl
from talkspurt._text.format import offered, same
from talkspurt.analysis.means import Interval, bootstrap, student
from talkspurt.metrics.catalogue import SOUND, VIEWS, Column, Computed, Metric, of_a_flow, quantity
from talkspurt.results import concatenation
from talkspurt.results.axis import Axis
from talkspurt.results.run_data import SUMMARIES, RunData, finite
from talkspurt.scenarios.source import Question

if TYPE_CHECKING:
    from talkspurt.figures.values import Part
    from talkspurt.scores.kinds import Segments

SUMMARY = tuple(VIEWS["summary"])


@dataclass
class Cell:
    """The values of one flow, or of all flows of one group, under one setting.

    Attributes:
        members: name of each flow → metric → replicate → value.
    """

    settings: dict[str, str]
    flow: str
    members: dict[str, dict[str, dict[int, float | None]]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[tuple[tuple[str, str], ...], str]:
        """Setting and flow."""
        return tuple(self.settings.items()), self.flow

    def of_runs(self, name: str) -> dict[int, float | None]:
        """A metric per replication: the mean over the members with a value."""
        values: dict[int, list[float]] = {}
        for member in self.members.values():
            for replicate, value in member[name].items():
                values.setdefault(replicate, []).extend([] if value is None else [value])
        return {k: _mean(v) if v else None for k, v in values.items()}

    def of_members(self, name: str) -> list[float]:
        """A metric per member with a value: its mean over the replications."""
        found = (
            [v for v in member[name].values() if v is not None] for member in self.members.values()
        )
        return [_mean(v) for v in found if v]


@dataclass(frozen=True)
class StudyData:
    """The results of all runs of a scenario with axes or replications.

    Attributes:
        name: name of the scenario.
        title: its title.
        description: its description, in Markdown.
        axes: what was varied, slowest first.
        replications: runs of every combination, each under its own seed.
        confidence: confidence level of the intervals.
        scenario: the scenario as given, TOML.
        runs: the results, axes slowest first, replications fastest.
        sets: overrides of scenario fields.
        design: ``kind``, ``samples`` (points of the sample), ``indices`` (whether it has the points
            of sensitivity indices) and ``points`` (in all), if factors were sampled. Runs at all
            points follow one another for each combination of the axes.
    """

    name: str
    title: str
    description: str
    axes: tuple[Axis, ...]
    replications: int
    confidence: float
    scenario: str
    runs: Sequence[RunData]
    sets: Mapping[str, str] = field(default_factory=dict)
    design: Mapping[str, Any] | None = None
    _stacks: dict[str, pl.DataFrame] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Tables of all runs as read; see :mod:`talkspurt.results.concatenation`."""

    def __repr__(self) -> str:
        lists = [f"{len(axis.labels)} {axis.name}" for axis in self.axes if not axis.factor]
        points = [f"{self.design['points']} points"] if self.design else []
        axes = " × ".join((*lists, *points)) or "1"
        return f"<Study {self.name!r}: {axes} × {self.replications} replications>"

    @classmethod
    def of_results(
        cls,
        question: Question,
        runs: Sequence[RunData],
        stacks: Mapping[str, pl.DataFrame] | None = None,
    ) -> Self:
        """The study of a plan, from its runs in order, and tables of them all if there are any."""
        made = cls.of_facts(question.facts, question.text, runs)
        made._stacks.update(stacks or {})
        return made

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any], scenario: str, runs: Sequence[RunData]) -> Self:
        """The study of these runs in order, with the facts that a manifest holds."""
        told = ("name", "title", "description", "replications", "confidence")
        return cls(
            **{name: facts[name] for name in told},
            axes=tuple(map(Axis.of, facts["axes"])),
            scenario=scenario,
            runs=tuple(runs),
            sets=facts["set"],
            design=facts.get("design"),
        )

    @classmethod
    def of_answers(cls, answers: Mapping[str, RunData | StudyData]) -> Self:
        """Finished runs, or studies with the same axes, side by side: the first axis is ``run``.

        Raises:
            ValueError: if there are fewer than two, or if their axes or replications differ.
        """
        if len(answers) < 2:
            raise ValueError("a comparison needs at least two results")
        single = [name for name, one in answers.items() if not isinstance(one, StudyData)]
        if single and len(single) < len(answers):
            several = next(name for name in answers if name not in single)
            raise ValueError(f"{single[0]} is a single run, and {several} is a study")
        studies = {
            name: one if isinstance(one, StudyData) else cls.of_run(one)
            for name, one in answers.items()
        }
        first = next(iter(studies.values()))
        for name, one in studies.items():
            if one._shape != first._shape:
                raise ValueError(f"{name} has other axes or replications than {first.name}")
        if any(axis.name == "run" for axis in first.axes):
            raise ValueError(f"{first.name} has an axis `run` itself")

        def named(run: RunData, name: str) -> RunData:
            settings = {"run": name, **run.settings}
            return replace(run, settings=settings, manifest={**run.manifest, "settings": settings})

        # Of a single run, without the settings of a study that it may be from.
        runs = [named(run, name) for name, one in studies.items() for run in one.runs]
        titles = {name: one.title for name, one in answers.items()}
        same = len(set(titles.values())) == 1
        told = "\n".join(f"* {name}: {title}" for name, title in titles.items())
        return cls(
            name=" vs ".join(answers),
            title=f"{first.title} – {', '.join(answers)}" if same else " / ".join(titles.values()),
            description=first.description if same else told,
            axes=(Axis(name="run", path="", labels=tuple(answers)), *first.axes),
            replications=first.replications,
            confidence=first.confidence,
            scenario="# A comparison: the scenario of each run is in its folder.\n",
            runs=runs,
            design=first.design,
        )

    @classmethod
    def of_run(cls, run: RunData) -> Self:
        """A single run, as a study without axes."""
        return cls(
            name=run.name,
            title=run.title,
            description=run.description,
            axes=(),
            replications=1,
            confidence=0.95,
            scenario=run.scenario,
            runs=(replace(run, settings={}, replicate=0),),
        )

    @property
    def _shape(self) -> tuple[list[tuple[str, tuple[str, ...]]], int]:
        return [(axis.name, axis.labels) for axis in self.axes], self.replications

    @property
    def flows(self) -> pl.DataFrame:
        """The flows of all runs; first columns are ``axis.NAME``, ``replicate`` and ``seed``."""
        return self.table("flows")

    @property
    def links(self) -> pl.DataFrame:
        """The links of all runs; first columns are ``axis.NAME``, ``replicate`` and ``seed``."""
        return self.table("links")

    @property
    def scores(self) -> pl.DataFrame:
        """PESQ, ViSQOL and PLCMOS of the calls of all runs, as :attr:`Result.scores`."""
        return self.table("scores")

    def score(self, segments: Segments = "three") -> pl.DataFrame:
        """Compute :attr:`scores` of ``"three"`` or ``"all"`` segments, as :meth:`Result.score`."""
        for run in self.runs:
            run.score(segments)
        return self.scores

    @property
    def is_scored(self) -> bool:
        """Whether the scores of all runs are already there."""
        return all(run.is_scored for run in self.runs)

    @property
    def measures(self) -> tuple[str, ...]:
        """The metrics of the saved summary: ``SUMMARY``, and the scores of the sound if there."""
        return (*SUMMARY, *(one.name for one in SOUND if self.is_scored))

    def table(self, name: str) -> pl.DataFrame:
        """A table of all runs, such as ``series``; ``axis.NAME``, ``replicate``, ``seed`` first.

        Raises:
            KeyError: if there is no such table.
        """
        stack = self._stack(name)
        runs = pl.DataFrame(
            [
                {**self._columns(run.settings), "replicate": run.replicate, "seed": run.seed}
                for run in self.runs
            ],
            infer_schema_length=None,
        )
        return runs[stack[concatenation.RUN]].hstack(stack.drop(concatenation.RUN))

    def _stack(self, table: str) -> pl.DataFrame:
        """A table of all runs; column ``run`` is the index of the run."""
        if table not in SUMMARIES:
            return concatenation.stack(self.runs, table)
        if table not in self._stacks:
            self._stacks[table] = concatenation.stack(self.runs, table)
        return self._stacks[table]

    def by_run(self, table: str) -> Iterable[tuple[RunData, list[dict[str, Any]]]]:
        """Each run with its rows of a table."""
        groups = itertools.groupby(
            self._stack(table).iter_rows(named=True), lambda row: row.pop(concatenation.RUN)
        )
        following = next(groups, None)
        for i, run in enumerate(self.runs):
            if following is not None and following[0] == i:
                yield run, list(following[1])
                following = next(groups, None)
            else:
                yield run, []

    @property
    def has_groups(self) -> bool:
        """Whether a ``count`` grouped several flows."""
        flows = self._stack("flows")
        return "group" in flows.columns and flows["group"].count() > 0

    def select(self, /, **settings: str) -> list[RunData]:
        """The runs with these settings, as in ``study.select(transport="udp")``.

        Raises:
            KeyError: if there is no such axis or value.
        """
        for name, label in settings.items():
            self._check_label(self.axis(name), label)
        wanted = [(self.axis(name).name, label) for name, label in settings.items()]
        return [run for run in self.runs if all(run.settings[k] == v for k, v in wanted)]

    def axis(self, name: str) -> Axis:
        """The axis of this name, in any letters.

        Raises:
            KeyError: if there is none.
        """
        axes = {axis.name: axis for axis in self.axes}
        meant = same(name, axes)
        if meant not in axes:
            raise KeyError(f"no axis {name!r}; {offered(name, [*axes])}")
        return axes[meant]

    def _check_label(self, axis: Axis, label: str) -> None:
        if label not in axis.labels:
            raise KeyError(f"{axis.name} is never {label!r}; it is: {', '.join(axis.labels)}")

    def summary(
        self,
        names: Iterable[str] = SUMMARY,
        *,
        interval: Interval = "student",
        members: bool = False,
    ) -> pl.DataFrame:
        """Means over the replications with intervals, Student's or by bootstrap.

        ``names`` are metrics of flows listed by ``talkspurt metrics``; computed metrics are
        computed for every run. One row per setting, flow and metric:

        * ``axis.NAME`` for each axis: a number in the unit of the axis (20 ms is 0.02), or the
          label of a value that is no quantity; :meth:`labelled` replaces numbers by labels;
        * ``flow``, and ``members``: the flows of a ``count`` share one row under the name that the
          scenario gives them, and each replication counts with its mean over them. With
          ``members=True`` each flow has its own row;
        * ``measure`` (the metric's name), ``count`` (replications with a value), ``replications``
          (all);
        * ``mean``, ``low``, ``high`` (ends of the interval as computed, null with fewer than two
          values: Student's may exceed the measure's range, which tables and figures do not show)
          and ``deviation`` (sample standard deviation; 0 if all values are equal, which does not
          mean that the mean is certain);
        * ``member_low``, ``member_high``: the minimum and maximum mean of a member, null for a flow
          outside groups;
        * ``bound``: an upper bound of the mean, if values leave the range of their model (a MOS
          outside that of the E-model is not validated); else null.

        Raises:
            KeyError: if there is no such metric, it is not a number per flow, or runs lack its
                input.
        """
        rows = []
        wanted = list(dict.fromkeys(names))
        bounds = self._bounds(wanted)
        for cell in self._cells([*wanted, *bounds.values()], members=members):
            for name in wanted:
                numbers = [v for v in cell.of_runs(name).values() if v is not None]
                # The flows of a group have other names than it.
                each = cell.of_members(name) if list(cell.members) != [cell.flow] else []
                found = self._interval(numbers, interval, each)
                found["bound"] = _outside(cell, name, bounds)
                rows.append(self._row(cell, name, found))
        return self._frame(rows)

    def differences(
        self,
        axis: str,
        baseline: str | None = None,
        names: Iterable[str] = SUMMARY,
        *,
        interval: Interval = "student",
        members: bool = False,
    ) -> pl.DataFrame:
        """Paired differences from a baseline along one axis.

        Each replication under a value of the axis is paired with the same replication under the
        baseline (default: the first value), all else equal; both share the seed. One row per
        setting other than the baseline, flow and measure, with the columns of :meth:`summary` and
        ``baseline``; ``mean`` is the mean difference, value − baseline. The flows of a ``count``
        are compared by their means in each replication, or with ``members=True`` individually.
        ``bound`` is not null where one of both means leaves the range of its model. With
        few replications a bootstrap interval is too short, since it contains no values beyond those
        observed.
        """
        chosen = self.axis(axis)
        axis = chosen.name
        base = chosen.labels[0] if baseline is None else baseline
        self._check_label(chosen, base)
        wanted = list(dict.fromkeys(names))
        bounds = self._bounds(wanted)
        measures = [*wanted, *bounds.values()]
        cells = {cell.key: cell for cell in self._cells(measures, members=members)}
        rows = []
        for cell in cells.values():
            other = cells.get((tuple({**cell.settings, axis: base}.items()), cell.flow))
            if cell.settings[axis] == base or other is None:
                continue
            for name in wanted:
                base_of = other.of_runs(name)
                pairs = ((value, base_of.get(k)) for k, value in cell.of_runs(name).items())
                apart = [a - b for a, b in pairs if a is not None and b is not None]
                row = self._row(cell, name, self._interval(apart, interval))
                if any(_outside(one, name, bounds) is not None for one in (cell, other)):
                    shown = quantity(name)
                    row["bound"] = shown.most - shown.least
                rows.append({**row, "baseline": base})
        return self._frame(rows, "baseline")

    def compute(
        self,
        name: str,
        flow: str | None = None,
        bin_s: float | None = None,
        *,
        link: str | None = None,
    ) -> pl.DataFrame:
        """A metric of every run, as :func:`talkspurt.metrics.compute` returns it for one.

        ``axis.NAME`` for each axis, ``replicate`` and ``seed`` come first. A flow or link that only
        some settings have is skipped in the others.

        Raises:
            KeyError: if no run has the metric, flow or link, or the packet table is missing.
            ValueError: if it cannot be computed with these arguments.
        """
        from talkspurt.metrics import compute

        parts, error = [], None
        for run in self.runs:
            try:
                found = compute(run, name, flow, bin_s, link=link)
            except KeyError as missing:
                error = missing
                continue
            given = {**self._columns(run.settings), "replicate": run.replicate, "seed": run.seed}
            parts.append(found.select(*(pl.lit(v).alias(k) for k, v in given.items()), pl.all()))
        if error is not None and not parts:
            raise error
        return pl.concat(parts, how="vertical_relaxed")

    def with_bounds(self, one: Metric, table: pl.DataFrame, flow: str | None) -> pl.DataFrame:
        """A table of :meth:`compute`, or of one run, with ``bound`` if the metric may have one.

        It is null but of values outside the range of their model.
        """
        limit = self._bounds([one.name]).get(one.name) if isinstance(one, Column) else None
        if limit is None:
            return table
        bound = self.compute(f"flows.{limit}", flow)["value"]
        return table.with_columns(
            pl.when(pl.lit(bound) > pl.col("value")).then(pl.lit(bound)).alias("bound")
        )

    def sensitivity(self, measure: str) -> pl.DataFrame:
        """The sensitivity of a metric of flows to each factor of the design.

        One row per setting of the axes, flow, factor and index: the axes, ``flow``, ``measure``,
        ``factor``, ``index``, ``value``, ``low`` and ``high`` (ends of the bootstrap interval),
        ``points`` (of the design), ``missing`` (points without a value) and ``note`` (why an index
        is not defined). A point counts with the mean over its replications and, for a ``count``,
        over its flows. The indices are:

        * of a Sobol design with indices, ``first`` (share of the variance that the factor explains
          alone) and ``total`` (with its interactions); not defined if points have no value;
        * of other designs, ``src`` (standardised regression coefficient), ``prcc`` (partial rank
          correlation), and without a factor ``r2`` and ``rank_r2`` of the two regressions, from the
          points with a value. A list of names has a row ``NAME = LABEL`` for each but the first.

        Raises:
            KeyError: if there is no such metric, or it is not a number per flow.
            ValueError: if the study has no design.
        """
        from talkspurt.analysis import sensitivity

        return sensitivity.of_study(self, measure)

    def _values(self, name: str) -> list[dict[str, float | None]]:
        """A metric of each flow of each run, or its mean over the flows of a ``count``."""
        flows = self._stack("flows")
        found: list[dict[str, list[float]]] = [{} for _ in self.runs]
        for (i, _, group), each in zip(
            _whose(flows), self._column(of_a_flow(name), flows), strict=True
        ):
            its = found[i].setdefault(group, [])
            value = finite(each)
            its.extend([] if value is None else [value])
        return [
            {flow: _mean(its) if its else None for flow, its in of_run.items()} for of_run in found
        ]

    def comparisons(self, names: Iterable[str] = SUMMARY) -> dict[str, pl.DataFrame]:
        """:meth:`differences` from the first value of every axis with more than one value, by axis.

        Empty without replications: a single pair has no interval. Points of a design are not
        paired along its factors.
        """
        wanted = list(names)
        if self.replications < 2:
            return {}
        axes = [axis.name for axis in self.axes if len(axis.labels) > 1 and not axis.factor]
        return {axis: self.differences(axis, names=wanted) for axis in axes}

    def _cells(self, names: Sequence[str], *, members: bool) -> Iterable[Cell]:
        """The values of each flow, or each group of flows, under each setting."""
        flows = self._stack("flows")
        columns = [self._column(of_a_flow(name), flows) for name in names]
        rows = zip(*columns, strict=True) if columns else itertools.repeat((), flows.height)
        settings = [tuple(run.settings.items()) for run in self.runs]
        cells: dict[Any, Cell] = {}
        for (i, flow, group), row in zip(_whose(flows), rows, strict=True):
            shown = flow if members else group
            run = self.runs[i]
            cell = cells.setdefault((settings[i], shown), Cell(dict(run.settings), shown))
            values = cell.members.setdefault(flow, {name: {} for name in names})
            for name, value in zip(names, row, strict=True):
                values[name][run.replicate] = finite(value)
        return cells.values()

    def _column(self, one: Metric, flows: pl.DataFrame) -> Iterable[float | None]:
        """A metric of each row of the flows of all runs."""
        if not isinstance(one, Computed) and one.table == "flows":
            return flows[one.name]
        from talkspurt.metrics import computing

        if one.name in computing.RATIOS:
            return computing.ratio(flows, one.name)
        made = [dict(computing.compute(run, one.name).iter_rows()) for run in self.runs]
        return [made[i][flow] for i, flow, _ in _whose(flows)]

    def labelled(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A table of this study with the labels of all axes instead of numbers."""
        columns = []
        for axis in self.axes:
            if axis.numbers is not None and axis.column in frame.columns:
                old, new = list(axis.numbers), list(axis.labels)
                columns.append(pl.col(axis.column).replace_strict(old, new, return_dtype=pl.String))
        return frame.with_columns(columns)

    def rows(self, frame: pl.DataFrame) -> list[dict[str, Any]]:
        """The rows of a table of this study, with the labels of its axes."""
        return self.labelled(frame).to_dicts()

    def _columns(self, settings: Mapping[str, str]) -> dict[str, float | str]:
        return {axis.column: axis.value(settings[axis.name]) for axis in self.axes}

    def _bounds(self, names: Iterable[str]) -> dict[str, str]:
        """The bounds of the metrics that have one, in results that have it, by metric."""
        there = self._stack("flows").columns
        bounds = {name: getattr(of_a_flow(name), "bound", "") for name in names}
        return {name: bound for name, bound in bounds.items() if bound in there}

    def _row(self, cell: Cell, name: str, found: dict[str, Any]) -> dict[str, Any]:
        flow = {"flow": cell.flow, "members": len(cell.members), "measure": name}
        return {**self._columns(cell.settings), **flow, **found}

    def _row_of(self, one: Metric, found: Iterable[Part]) -> dict[str, Any]:
        """Mean and interval over the replications of what some flows have, as in a summary."""
        runs: dict[int, list[float]] = {}
        members: dict[str, list[float]] = {}
        outside = False
        for part in found:
            outside = outside or part.outside
            runs.setdefault(part.replicate, []).append(part.number)
            members.setdefault(part.member, []).append(part.number)
        numbers = [_mean(values) for values in runs.values()]
        each = [_mean(values) for values in members.values()] if len(members) > 1 else []
        row = {"measure": one.full_name, **self._interval(numbers, "student", each)}
        return {**row, "bound": row["mean"] if outside else None}

    def _interval(
        self, numbers: list[float], kind: Interval, members: Sequence[float] = ()
    ) -> dict[str, Any]:
        mean, half, deviation = student(numbers, self.confidence)
        low = mean - half if mean is not None and half is not None else None
        high = mean + half if mean is not None and half is not None else None
        if kind == "bootstrap" and low is not None:
            low, high = bootstrap(numbers, self.confidence)
        return {
            "count": len(numbers),
            "replications": self.replications,
            "mean": mean,
            "low": low,
            "high": high,
            "deviation": deviation,
            "member_low": min(members, default=None),
            "member_high": max(members, default=None),
        }

    def _frame(self, rows: list[dict[str, Any]], *more: str) -> pl.DataFrame:
        schema: dict[str, Any] = {
            axis.column: pl.String() if axis.numbers is None else pl.Float64() for axis in self.axes
        }
        schema |= dict.fromkeys([*more, "flow"], pl.String())
        schema |= {"members": pl.Int64(), "measure": pl.String()}
        schema |= dict.fromkeys(("count", "replications"), pl.Int64())
        numbers = ("mean", "low", "high", "deviation", "member_low", "member_high", "bound")
        return pl.DataFrame(rows, schema={**schema, **dict.fromkeys(numbers, pl.Float64())})

    def to_json(self) -> dict[str, Any]:
        """The document of ``talkspurt run --json`` for a study."""
        document = self._document()
        return {**document, "runs": [*document["runs"]]}

    def _document(self) -> dict[str, Any]:
        """The same with an iterator of its runs, so that not all are in memory."""
        tables = map(self.by_run, SUMMARIES)
        runs = (
            {
                "settings": dict(run.settings),
                "replicate": run.replicate,
                **run._document(flows, links),
            }
            for (run, flows), (_, links) in zip(*tables, strict=True)
        )
        return {
            "scenario": self.name,
            "axes": [axis.entry() for axis in self.axes],
            "replications": self.replications,
            "confidence": self.confidence,
            "runs": runs,
            "summary": self.summary(self.measures).to_dicts(),
            "differences": {
                axis: frame.to_dicts() for axis, frame in self.comparisons(self.measures).items()
            },
        }


def _whose(flows: pl.DataFrame) -> Iterable[tuple[int, str, str]]:
    """The run of each row of the flows of all runs, its flow, and its group or else its flow."""
    groups = flows["group"] if "group" in flows.columns else itertools.repeat(None, flows.height)
    for i, flow, group in zip(flows[concatenation.RUN], flows["name"], groups, strict=True):
        yield i, flow, group or flow


def _outside(cell: Cell, name: str, bounds: Mapping[str, str]) -> float | None:
    """The mean bound of a metric, if a value leaves the range of its model."""
    if name not in bounds:
        return None
    values, limits = cell.of_runs(name), cell.of_runs(bounds[name])
    both = [(value, limit) for k, value in values.items()
            if value is not None and (limit := limits[k]) is not None]  # fmt: skip
    if all(value >= limit for value, limit in both):
        return None
    return _mean([limit for _, limit in both])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
