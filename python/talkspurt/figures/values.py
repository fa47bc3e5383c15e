"""The values of one measure in all runs of a study, with what distinguishes them.

A part is what one flow or link of one run has of a measure: a number, or values against a second
quantity such as time. ``plot`` distributes parts over axes, colours and panels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from talkspurt._text.format import offered
from talkspurt.metrics.catalogue import Column, Computed
from talkspurt.metrics.catalogue.quantities import BY_COLUMN, Quantity

if TYPE_CHECKING:
    import polars as pl

    from talkspurt.metrics import Metric
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


@dataclass(frozen=True)
class Part:
    """What one flow or link of one run has of a measure.

    Attributes:
        told: the label of each axis, and flow or link, transport and source.
        member: the flow; that of a ``count`` is one of several under one name.
        transport: its transport; empty for a link.
        replicate: the replication.
        seed: its seed.
        y: the values; a single one without ``x``.
        x: where they are.
        until_s: the end of the run, to which the last value of a gauge holds.
    """

    told: Mapping[str, str]
    member: str
    transport: str
    replicate: int
    seed: int
    y: Numbers
    x: Numbers | None = None
    until_s: float = 0.0

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
    names: dict[str, None] = {}
    problem: Exception | None = None
    kind = place_of(study, one)
    for run in study.runs:
        of_run = run.links if one.of_links else run.flows
        rows: list[Row] = list(of_run.iter_rows(named=True))
        for row in rows:
            names |= {row["name"]: None, row.get("group") or row["name"]: None}
        wanted = [row for row in rows if name in (None, row["name"], row.get("group"))]
        for row in _sampled(one, wanted):
            member, group = row["name"], row.get("group") or row["name"]
            try:
                values = list(_values(run, one, member, bin_s))
            except (KeyError, ValueError) as error:
                problem = problem or error
                continue
            told = {**{key: row.get(key) or "–" for key in OF_FLOWS}, **run.settings}
            shown = member if name == member else group
            for y, x, until_s in values:
                if not np.isfinite(y).any():
                    continue
                told[kind] = ALL_FLOWS if one.name in OF_RUNS else shown
                over = row.get(TRANSPORT) or ""
                found.append(Part(told, member, over, run.replicate, run.seed, y, x, until_s))
            if one.name in OF_RUNS and values:
                break
    if not found and name is not None and name not in names:
        raise KeyError(f"no {kind} {name!r}; {offered(name, names)}")
    if not found and problem is not None:
        raise problem
    return found


def missing(study: StudyData, one: Metric, name: str | None) -> ValueError:
    """The error where a flow or link, or anything at all, has no value of a measure."""
    whose = f"{name!r} has no value" if name else "nothing in these runs has a value"
    hint = ""
    if isinstance(one, Column) and one.table == "gauges":
        there = {gauge for run in study.runs for gauge in run.gauge_names}
        hint = f"; {offered(one.name, sorted(there))}"
    return ValueError(f"{whose} of {one.full_name}{hint}")


def unknown_places(study: StudyData, flow: str | None, link: str | None) -> list[Exception]:
    """What is wrong with the name of a flow and that of a link, whatever is measured there."""
    faults: list[Exception] = []
    for kind, name in ((FLOW, flow), (LINK, link)):
        names: dict[str, None] = {}
        for run in study.runs if name is not None else ():
            for row in (run.links if kind == LINK else run.flows).iter_rows(named=True):
                names |= {row["name"]: None, row.get("group") or row["name"]: None}
        if name is not None and name not in names:
            faults.append(KeyError(f"no {kind} {name!r}; {offered(name, names)}"))
    return faults


MOST_MEMBERS = 100
"""Flows of one group that are drawn against time or another quantity: each is computed alone."""


def _sampled(one: Metric, rows: Sequence[Row]) -> Iterable[Row]:
    """The rows, but of a group of more than :data:`MOST_MEMBERS` so many at equal distances."""
    if against(one) is None:
        return rows
    groups: dict[str | None, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.get("group"), []).append(row)
    left_out: set[str] = set()
    for group, its in groups.items():
        if group is not None and len(its) > MOST_MEMBERS:
            kept = {its[k * len(its) // MOST_MEMBERS]["name"] for k in range(MOST_MEMBERS)}
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
            if len(its) > MOST_MEMBERS and len(some) > 1:
                said.append(f"{len(some)} of the {len(its)} flows {group}")
    return f"Computed from {', '.join(said)}." if said else None


def _values(
    run: RunData, one: Metric, name: str, bin_s: float | None
) -> Iterator[tuple[Numbers, Numbers | None, float]]:
    from talkspurt.metrics import compute
    from talkspurt.metrics.computing import sender_of

    where = {"link": name} if one.of_links else {"flow": name}
    asked = bin_s if one.has_bins else None
    table = compute(run, one.full_name, bin_s=asked, **where)
    if isinstance(one, Column):
        if one.table == HOLDS:
            table = sender_of(run, table, name, one.name)
            table = table.filter(table["value"].is_finite())
            yield _array(table, "value"), _array(table, "time_s"), run.duration_s
        else:
            yield _array(table, "value"), None, 0.0
    elif one.x:
        rows = table.drop_nulls([one.x])
        yield _array(rows, one.y), _array(rows, one.x), 0.0
    else:
        yield _array(table, "value"), None, 0.0


def _array(table: pl.DataFrame, column: str) -> Numbers:
    import polars as pl

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
