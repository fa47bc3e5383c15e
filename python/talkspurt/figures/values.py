"""The values of a measure in all runs of a study, and where a figure of them shows these.

A part is what one flow or link of one run has of a measure: a number, or values against a second
quantity such as time. A :class:`Plot` distributes parts over axes, colours and panels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from talkspurt._text.format import offered, same
from talkspurt.figures import scale, style
from talkspurt.figures.panel import across
from talkspurt.metrics import Metric
from talkspurt.metrics.catalogue import Column, Computed
from talkspurt.metrics.catalogue.kinds import BY_COLUMN, Quantity
from talkspurt.results.axis import Axis
from talkspurt.results.run_data import RunData
from talkspurt.results.study_data import StudyData

Numbers = np.ndarray[Any, np.dtype[np.float64]]
Row = Mapping[str, Any]

OF_RUNS = ("fairness", "least_over_greatest")
"""Metrics that all flows of a run share."""
ALL_FLOWS = "all flows"
FLOW, LINK, TRANSPORT, SOURCE = "flow", "link", "transport", "source"
OF_FLOWS = (TRANSPORT, SOURCE)
"""What distinguishes flows, beside their names."""
HOLDS = "gauges"
"""The table whose values hold until the next."""

Kind = Literal["lines", "bars", "points", "box", "cdf", "map"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TIME = "time"

MAX_COLOURS = 12
"""More values than these are not the default for colours."""
MAX_NAME = 30
"""Letters of a name in a figure; longer ones are shortened in the middle."""


@dataclass(frozen=True)
class Part:
    """What one flow or link of one run has of a measure.

    Attributes:
        told: the label of each axis, and flow or link, transport and source.
        member: the flow; that of a ``count`` is one of several under one name.
        y: the values; a single one without ``x``.
        x: where they are.
        until_s: the end of the run, to which the last value of a gauge holds.
        outside: whether the value is outside the range of its model; ``y`` is then its bound.
    """

    told: Mapping[str, str]
    member: str
    transport: str
    replicate: int
    seed: int
    y: Numbers
    x: Numbers | None = None
    until_s: float = 0.0
    outside: bool = False

    @property
    def number(self) -> float:
        """Its value, or the mean of its values; of a gauge weighted by how long each held."""
        if self.until_s and self.x is not None and len(self.x):
            held = np.diff(np.append(self.x, self.until_s))
            there = np.isfinite(self.y)
            total = held[there].sum()
            return float((self.y[there] * held[there]).sum() / total) if total else float("nan")
        there = self.y[np.isfinite(self.y)]
        return float(there.mean()) if len(there) else float("nan")


def against(one: Metric) -> Quantity | None:
    """What a measure is drawn against; None for a number of a whole run."""
    if isinstance(one, Column):
        return BY_COLUMN["time_s"] if one.table == HOLDS else None
    return BY_COLUMN[one.x] if one.x else None


def place_of(study: StudyData, one: Metric) -> str:
    """Name of the dimension that distinguishes parts by flow or link; no axis has this name."""
    kind = LINK if one.of_links else FLOW
    while any(axis.name == kind for axis in study.axes):
        kind += " name"
    return kind


def parts(study: StudyData, one: Metric, name: str | None, bin_s: float | None) -> list[Part]:
    """All parts with a value; ``name`` is one flow or link, or the flows of a ``count``.

    Raises:
        KeyError: if no run has this flow or link, or the packet table is missing.
        ValueError: if the measure cannot be computed.
    """
    found: list[Part] = []
    problem: Exception | None = None
    kind = place_of(study, one)
    for run in study.runs:
        of_run = run.links if one.of_links else run.flows
        rows = of_run.iter_rows(named=True)
        wanted = [row for row in rows if name in (None, row["name"], row.get("group"))]
        for row in _sampled(one, wanted):
            member, group = row["name"], row.get("group") or row["name"]
            try:
                y, x, until_s = _values(run, one, member, bin_s)
            except (KeyError, ValueError) as error:
                problem = problem or error
                continue
            bound = one.outside(row) if isinstance(one, Column) and one.table == "flows" else None
            if bound is not None:
                y = np.array([bound])
            told = {**{key: row.get(key) or "–" for key in OF_FLOWS}, **run.settings}
            shown = member if name == member else group
            told[kind] = ALL_FLOWS if one.name in OF_RUNS else shown
            if np.isfinite(y).any():
                over = row.get(TRANSPORT) or ""
                where = (told, member, over, run.replicate, run.seed, y, x, until_s)
                found.append(Part(*where, outside=bound is not None))
            if one.name in OF_RUNS:
                break
    if not found and name is not None:
        names = _names(study, links=one.of_links)
        if name not in names:
            raise KeyError(f"no {kind} {name!r}; {offered(name, names)}")
    if not found and problem is not None:
        raise problem
    return found


def axis_called(study: StudyData, name: str | None) -> str | None:
    """An axis of the study, or of any figure, by its name in any letters."""
    others = (FLOW, LINK, *OF_FLOWS, TIME)
    return name and same(name, [*(axis.name for axis in study.axes), *others])


def missing(study: StudyData, one: Metric, name: str | None) -> ValueError:
    """The error where a flow or link, or anything at all, has no value of a measure."""
    whose = f"{name!r} has no value" if name else "nothing in these runs has a value"
    hint = ""
    if isinstance(one, Column) and one.table == "gauges":
        there = {gauge for run in study.runs for gauge in run.gauge_names}
        hint = f"; {offered(one.name, sorted(there))}"
    return ValueError(f"{whose} of {one.full_name}{hint}")


def _names(study: StudyData, *, links: bool) -> list[str]:
    rows = (
        row
        for run in study.runs
        for row in (run.links if links else run.flows).iter_rows(named=True)
    )
    return list(
        dict.fromkeys(name for row in rows for name in (row["name"], row.get("group")) if name)
    )


def unknown_places(study: StudyData, flow: str | None, link: str | None) -> list[Exception]:
    """What is wrong with the name of a flow and that of a link, whatever is measured there."""
    return [
        KeyError(f"no {kind} {name!r}; {offered(name, names)}")
        for kind, name in ((FLOW, flow), (LINK, link))
        if name is not None and name not in (names := _names(study, links=kind == LINK))
    ]


MAX_MEMBERS = 100
"""Flows of one group that are drawn against time or another quantity: each is computed alone."""


def _sampled(one: Metric, rows: Sequence[Row]) -> Iterable[Row]:
    """The rows, but of a group of more than :data:`MAX_MEMBERS` so many at equal distances."""
    if against(one) is None:
        return rows
    groups: dict[str | None, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.get("group"), []).append(row)
    left_out: set[str] = set()
    for group, its in groups.items():
        if group is not None and len(its) > MAX_MEMBERS:
            kept = {its[k * len(its) // MAX_MEMBERS]["name"] for k in range(MAX_MEMBERS)}
            left_out |= {row["name"] for row in its} - kept
    return (row for row in rows if row["name"] not in left_out)


def sample_note(study: StudyData, one: Metric, found: Sequence[Part]) -> str | None:
    """Tells of which flows :func:`parts` drew only some."""
    if against(one) is None or one.of_links:
        return None
    drawn = {part.member for part in found}
    said = []
    for run in study.runs[:1]:
        for (group,), its in run.flows.drop_nulls("group").group_by("group", maintain_order=True):
            some = drawn.intersection(its["name"])
            if len(its) > MAX_MEMBERS and len(some) > 1:
                said.append(f"{len(some)} of the {len(its)} flows {group}")
    return f"Computed from {', '.join(said)}." if said else None


def _values(
    run: RunData, one: Metric, name: str, bin_s: float | None
) -> tuple[Numbers, Numbers | None, float]:
    from talkspurt.metrics import compute
    from talkspurt.metrics.computing import sender_of

    where = {"link": name} if one.of_links else {"flow": name}
    asked = bin_s if one.has_bins else None
    table = compute(run, one.full_name, bin_s=asked, **where)
    if isinstance(one, Column) and one.table == HOLDS:
        table = sender_of(run, table, name, one.name)
        table = table.filter(table["value"].is_finite())
        return _array(table, "value"), _array(table, "time_s"), run.duration_s
    if isinstance(one, Computed) and one.x:
        rows = table.drop_nulls([one.x])
        return _array(rows, one.y), _array(rows, one.x), 0.0
    return _array(table, "value"), None, 0.0


def _array(table: pl.DataFrame, column: str) -> Numbers:
    # Null becomes NaN.
    return np.asarray(table[column].cast(pl.Float64).to_numpy(), dtype=np.float64)


def same_places(one: Metric) -> bool:
    """Whether the values of all runs are at the same places, so that they have a mean."""
    if isinstance(one, Computed):
        over = one.x in ("time_s", "scale_s", "ip_bytes")
        return over and one.shape not in ("packets", "losses")
    return True


GRID = 400
"""Times at which gauges of several runs are averaged."""


def mean_line(found: Sequence[Part]) -> tuple[Numbers, Numbers, Sequence[int]]:
    """Where, a row of values per replication, and the replications: members are averaged.

    Gauges change at different times in each run and are read at equal distances.
    """
    if found[0].until_s:
        end = max(part.until_s for part in found)
        x = np.linspace(0.0, end, GRID)
        rows = [_held(part, x) for part in found]
    else:
        places = [np.round(part.x, 9) for part in found if part.x is not None]
        x = np.unique(np.concatenate(places))
        rows = []
        for part, at in zip(found, places, strict=True):
            row = np.full(len(x), np.nan)
            row[np.searchsorted(x, at)] = part.y
            rows.append(row)
    replicates = sorted({part.replicate for part in found})
    means = []
    for replicate in replicates:
        its = [row for row, part in zip(rows, found, strict=True) if part.replicate == replicate]
        means.append(mean_of(np.array(its)))
    return x, np.array(means), replicates


def _held(part: Part, x: Numbers) -> Numbers:
    assert part.x is not None
    place = np.searchsorted(part.x, x, side="right") - 1
    values = np.where(place >= 0, part.y[np.maximum(place, 0)], np.nan)
    return np.where(x <= part.until_s, values, np.nan)


def mean_of(rows: Numbers) -> Numbers:
    """The mean of each column over the rows with a value."""
    there = np.isfinite(rows)
    count = there.sum(axis=0)
    total = np.where(there, rows, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def half_width(rows: Numbers, confidence: float) -> Numbers:
    """Half of Student's interval of each column's mean; NaN with fewer than two values."""
    from scipy.special import stdtrit

    there = np.isfinite(rows)
    count = there.sum(axis=0)
    means = mean_of(rows)
    squares = np.where(there, (rows - means) ** 2, 0.0).sum(axis=0)
    freedom = np.maximum(count - 1, 1)
    half = stdtrit(freedom, (1 + confidence) / 2) * np.sqrt(
        squares / freedom / np.maximum(count, 1)
    )
    return np.where(count > 1, half, np.nan)


@dataclass
class Plot:
    """A figure to be drawn.

    Attributes:
        over: what the x axis is; None if it is the measure itself or a quantity of its own.
        by: what colours distinguish.
    """

    study: StudyData
    one: Metric
    parts: Sequence[Part]
    over: str | None
    by: str | None
    kind: Kind
    notes: list[str] = field(default_factory=list)

    @property
    def quantity(self) -> Quantity:
        """How the measure is shown."""
        return self.one.quantity

    @property
    def place(self) -> str:
        """What distinguishes the parts of one run: flow or link."""
        return place_of(self.study, self.one)

    @property
    def is_mos(self) -> bool:
        """Whether its scale is that of MOS."""
        return self.one.name.removeprefix("estimated_") in ("mos", "mos_over_time")

    def by_label(self, found: Sequence[Part]) -> Iterator[tuple[str, style.Style, list[Part]]]:
        """The parts under each label of ``by``, with its look."""
        for label in self.labels(self.by):
            its = [part for part in found if not self.by or part.told[self.by] == label]
            if its:
                yield label, self.looks[label], its

    @cached_property
    def rest(self) -> list[str]:
        """What has panels of its own."""
        axes = {axis.name for axis in self.study.axes}
        pooled = {self.over, self.by} & set(OF_FLOWS) - axes
        found = [
            d for d in varied(self.study, self.one, self.parts) if d not in (self.over, self.by)
        ]
        if pooled or (self.kind == "cdf" and against(self.one) is None):
            found = [d for d in found if d != self.place]
        return found

    def labels(self, name: str | None) -> list[str]:
        """The labels along a dimension, in order."""
        there = dict.fromkeys(part.told[name] for part in self.parts) if name else {"": None}
        for axis in self.study.axes:
            if axis.name == name:
                return [label for label in axis.labels if label in there]
        return list(there)

    def axis(self, name: str) -> Axis:
        """An axis of the study, or one of names."""
        labels = self.labels(name)
        factor = next((axis.factor for axis in self.study.axes if axis.name == name), None)
        return Axis(name, "", tuple(map(short, labels)), factor=factor)

    def groups(self, name: str) -> Axis:
        """The same, with numbers in one unit, for places side by side."""
        texts, unit = scale.ticks(self.labels(name))
        return Axis(scale.headed(name, unit), "", tuple(map(short, texts)))

    def panels(self) -> dict[tuple[str, ...], list[Part]]:
        """The parts of each panel, in the order of the labels."""
        order = {
            name: {label: i for i, label in enumerate(self.labels(name))} for name in self.rest
        }
        found: dict[tuple[str, ...], list[Part]] = {}
        for part in self.parts:
            found.setdefault(tuple(part.told[name] for name in self.rest), []).append(part)

        def rank(key: tuple[str, ...]) -> list[int]:
            return [order[name][label] for name, label in zip(self.rest, key, strict=True)]

        return {key: found[key] for key in sorted(found, key=rank)}

    @cached_property
    def looks(self) -> dict[str, style.Style]:
        """The look of each label of ``by``."""
        return looks(self.labels(self.by), self.transports(self.by), self.traffic)

    @property
    def traffic(self) -> str:
        """The kind of traffic, if all is of one; otherwise voice, whose colours stand for all."""
        kinds = {style.kind_of(part.told.get(SOURCE)) for part in self.parts if part.transport}
        return kinds.pop() if len(kinds) == 1 else style.VOICE

    def transports(self, name: str | None) -> dict[str, str]:
        """The transport of each label, where it has only one."""
        found: dict[str, set[str]] = {}
        changing = changed_by(name, self.parts) if name else set()
        for part in self.parts:
            if not changing or part.member in changing:
                found.setdefault(part.told[name] if name else "", set()).add(part.transport)
        return {label: kinds.pop() for label, kinds in found.items() if len(kinds) == 1}

    def row(self, found: Iterable[Part]) -> dict[str, Any]:
        """Mean and interval over the replications, as in a summary."""
        return self.study._row_of(self.one, found)


def varied(study: StudyData, one: Metric, found: Sequence[Part]) -> list[str]:
    """What distinguishes parts: axes with several values, and flow or link if there are several."""
    # The points of a design have no panels or colours of their own.
    names = [axis.name for axis in study.axes if not axis.factor]
    place = place_of(study, one)
    return [name for name in (*names, place) if len({part.told[name] for part in found}) > 1]


def unknown(study: StudyData, one: Metric | None, *names: str | None) -> list[Exception]:
    """What is wrong with the names of axes, of a metric or of any, if none is given."""
    known = [axis.name for axis in study.axes]
    more = [LINK, FLOW] if one is None else [place_of(study, one)]
    more += () if one is not None and one.of_links else OF_FLOWS
    known += [other for other in more if other not in known]
    return [
        KeyError(f"no axis {name!r}; {offered(name, known)}")
        for name in names
        if name is not None and name not in known
    ]


def together(faults: Sequence[Exception]) -> Exception:
    """One error for several."""
    if len(faults) == 1:
        return faults[0]
    return ValueError("; ".join(str(fault.args[0]) for fault in faults))


def chosen(
    study: StudyData,
    one: Metric,
    found: Sequence[Part],
    over: str | None,
    by: str | None,
    kind: str | None,
) -> Plot:
    """Complete what was not asked for."""
    place = place_of(study, one)
    dims = varied(study, one, found)
    quantity = against(one)
    if kind == "cdf" and over is not None:
        raise ValueError("a CDF is drawn over the measure itself: over is for other kinds")
    of_curves = quantity is not None and over is None and kind in (None, "lines", "points")
    if kind == "map":
        over, by = _of_map(study, dims, over, by)
    elif kind != "cdf" and not of_curves and over is None:
        over = _default_over(study, one, dims, by) or place
    if by is None and kind != "map":
        numbers_only = kind == "cdf" and quantity is None
        left = [name for name in dims if name not in (over, place if numbers_only else None)]
        # What changes the transport of a flow, or else the first axis with few values.
        few = [name for name in left if len({part.told[name] for part in found}) <= MAX_COLOURS]
        changing = (name for name in few if changed_by(name, found))
        by = next(changing, next(iter([*few, *left]), None))
        several = len({part.told[TRANSPORT] for part in found}) > 1
        if by is None and numbers_only and several and not one.of_links:
            by = TRANSPORT
        if over in OF_FLOWS and by == place:
            by = None
    if kind is None:
        if of_curves:
            assert quantity is not None
            cross = not same_places(one) or quantity.label not in ("time", "time scale")
            kind = "points" if cross else "lines"
        else:
            along = next((axis for axis in study.axes if axis.name == over), None)
            numeric = along is not None and bool(scale.numbers(along.labels))
            kind = "lines" if numeric else "bars"
            if along is not None and along.factor:
                kind = "points" if numeric else "box"
    return Plot(study, one, found, over, by, kind)  # type: ignore[arg-type]


def _default_over(study: StudyData, one: Metric, dims: Sequence[str], by: str | None) -> str | None:
    factors = [axis.name for axis in study.axes if axis.factor and axis.name != by]
    if factors:
        return factors[0]
    best = across(study) if any(axis.name in dims for axis in study.axes) else None
    if best is not None and best.name in dims and best.name != by:
        return best.name
    return next((name for name in dims if name != by), None)


def changed_by(name: str, found: Sequence[Part]) -> set[str]:
    """The flows whose transport differs between labels of an axis, and is one under each.

    If flows are the axis, those with different transports.
    """
    kinds: dict[str, dict[str, set[str]]] = {}
    for part in found:
        member = part.member if part.told[name] not in (part.member, "") else ""
        kinds.setdefault(member, {}).setdefault(part.told[name], set()).add(part.transport)
    changed: set[str] = set()
    for member, by_label in kinds.items():
        single = all(len(its) == 1 for its in by_label.values())
        if single and len({next(iter(its)) for its in by_label.values()}) > 1:
            changed |= {member} if member else {part.member for part in found}
    return changed


def _of_map(
    study: StudyData, dims: Sequence[str], over: str | None, by: str | None
) -> tuple[str, str]:
    length = {axis.name: len(axis.labels) for axis in study.axes}
    order = sorted(dims, key=lambda name: -length.get(name, 1))
    free = [name for name in order if name not in (over, by)]
    if over is None and free:
        over = free.pop(0)
    if by is None and free:
        by = free.pop(0)
    if over is None or by is None:
        there = ", ".join(dims) or "nothing"
        raise ValueError(f"a map needs two axes with several values; what varies here: {there}")
    for axis in study.axes:
        if axis.name in (over, by) and axis.factor and scale.numbers(axis.labels):
            raise ValueError(
                "a map has a cell for each pair of values, and each point of the design has its "
                f"own {axis.name}: kind points draws it"
            )
    return over, by


def short(name: str, most: int = MAX_NAME) -> str:
    """A name of limited length, shortened in the middle."""
    if len(name) <= most:
        return name
    half = (most - 1) // 2
    return f"{name[: most - 1 - half]}…{name[-half:]}"


def looks(
    labels: Sequence[str], transports: Mapping[str, str], traffic: str = style.VOICE
) -> dict[str, style.Style]:
    """Transports keep their colours; numbers go from dark to light; others have a palette."""
    there = {label: transports.get(label) or label for label in labels}
    styles = {label: style.transport_style(name, traffic) for label, name in there.items()}
    distinct = len({one.colour for one in styles.values()}) == len(labels)
    known = style.OTHER not in styles.values() or (len(labels) == 1 and "" in labels)
    if distinct and known:
        return styles
    palette = list(style.PALETTE)
    numeric = len(labels) > 2 and bool(scale.numbers(labels))
    if numeric or len(labels) > len(style.PALETTE):
        import matplotlib as mpl
        from matplotlib.colors import to_hex

        places = (0.92 * i / (len(labels) - 1) for i in range(len(labels)))
        palette = [to_hex(mpl.colormaps["viridis"](at)) for at in places]
    return {
        label: style.Style(
            palette[i],
            style.MARKERS[i % len(style.MARKERS)],
            style.DASHES[0 if numeric else i % len(style.DASHES)],
        )
        for i, label in enumerate(labels)
    }
