"""A row of a reproduction: the printed value, our value, and the verdict.

The decisive bands are in the study's TOML file, written before any run unless a row states that it
was changed later, and why. Verdicts depend only on the printed value, its band, the checks'
findings and the values of the runs, not on the study. If the interval of a value crosses a band's
edge, so that two verdicts are possible, the row is undecided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from talkspurt._terminal.layout import Column, Table
from talkspurt.reproduce.band import EITHER, MEAN, SHARE, Band
from talkspurt.reproduce.sample import Sample, Value, narrow, show

MATCHES = "matches"
SAME_ORDERING = "same ordering"
CANNOT_FOLLOW = "cannot follow from the stated parameters"
UNDERSPECIFIED = "underspecified"
DIFFERS = "differs"
UNDECIDED = "undecided"
GIVEN = "given"
CLASSES = (MATCHES, SAME_ORDERING, CANNOT_FOLLOW, UNDERSPECIFIED, DIFFERS, UNDECIDED, GIVEN)
SHORT = {verdict: verdict for verdict in CLASSES} | {CANNOT_FOLLOW: "cannot follow"}


@dataclass(frozen=True)
class Spec:
    """A row before any run: the printed value and the criteria.

    Attributes:
        unit: its unit, the study's own; empty for words and ratios.
        paper: the printed value, or the value claimed in words.
        where: the location in the text.
        band: when a value matches.
        of: what the band applies to: the ``mean`` of the replications, or, for printed statements
            on single runs, the ``share`` of runs inside. Words always use a share.
        missing: parameters omitted in the text that affect the value.
        given: why the value is fixed, if it restates an input. Such a row is no claim about
            results: findings of its checks go into the reason, not into the verdict.
        group: rows whose relative order is a claim of its own.
        checks: names of its impossibility checks.
        facts: numbers for the checks besides the study's stated ones.
        restates: id of another row with the same values, so that they count once.
        note: the basis of the band or the measure.
        changed_after_runs: what of the row (band, measure, checks, omissions) was changed after
            runs had been seen, and why; empty if nothing was.
    """

    id: str
    quantity: str
    unit: str
    paper: Value
    where: str
    band: Band
    of: str = MEAN
    missing: tuple[str, ...] = ()
    given: str = ""
    group: str | None = None
    checks: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    restates: str = ""
    note: str = ""
    changed_after_runs: str = ""


@dataclass(frozen=True)
class Row:
    """A row with its values and its verdict."""

    spec: Spec
    stated: Sample
    inferred: Sample
    ns2: Value
    verdict: str
    reason: str

    @property
    def ours(self) -> Sample:
        """The value with the inferred parameters if there is one, else with the stated ones."""
        return self.inferred if self.inferred.there else self.stated

    def to_json(self, study: str) -> dict[str, Any]:
        """The row in ``--json`` output."""
        return {
            "id": f"{study}/{self.spec.id}",
            "quantity": self.spec.quantity,
            "unit": self.spec.unit,
            "paper": self.spec.paper,
            "stated": self.stated.value,
            "inferred": self.inferred.value,
            "ns2": self.ns2,
            "verdict": self.verdict,
            "reason": self.reason,
            "given": bool(self.spec.given),
            "of": self.spec.of,
            "restates": f"{study}/{self.spec.restates}" if self.spec.restates else None,
            "changed_after_runs": self.spec.changed_after_runs,
            "stated_replications": self.stated.replications,
            "stated_interval": self.stated.ends,
            "inferred_replications": self.inferred.replications,
            "inferred_interval": self.inferred.ends,
        }


@dataclass(frozen=True)
class Values:
    """The computed values of rows, by row id.

    Attributes:
        ns2: ns-2's with the inferred ones, or those of another peer named in the study's file.
    """

    stated: Mapping[str, Sample] = field(default_factory=dict)
    inferred: Mapping[str, Sample] = field(default_factory=dict)
    ns2: Mapping[str, Value] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    cases: Mapping[str, Sequence[str]] = field(default_factory=dict)


NOTHING = Sample()
TOO_WIDE = (
    "The band is at least as wide as the printed value: being inside does not tell it from nothing"
)
WHOSE = ("the stated parameters give", "the inferred ones")


def judge_all(
    specs: Sequence[Spec],
    values: Values,
    impossible: Mapping[str, Sequence[str]],
    whose: tuple[str, str] = WHOSE,
) -> list[Row]:
    """All rows with their verdicts; ``impossible`` contains the checks' findings, by row.

    ``whose`` are the words before the stated and the inferred values in reasons.
    """
    of = {
        s.id: (values.stated.get(s.id, NOTHING), values.inferred.get(s.id, NOTHING)) for s in specs
    }
    ours = {id: inferred if inferred.there else stated for id, (stated, inferred) in of.items()}
    rows = []
    for spec in specs:
        group = [s for s in specs if spec.group is not None and s.group == spec.group]
        order = in_order(spec, group, ours)
        verdict, reason = judge(spec, *of[spec.id], impossible.get(spec.id, ()), order, whose)
        wide = TOO_WIDE if spec.band.as_wide_as(spec.paper) else ""
        again = f"Restates {spec.restates}: the same values once more" if spec.restates else ""
        parts = [reason, again, wide, values.notes.get(spec.id, ""), spec.note]
        reason = " ".join(part if part.endswith(".") else part + "." for part in parts if part)
        rows.append(Row(spec, *of[spec.id], values.ns2.get(spec.id), verdict, reason))
    return rows


def judge(
    spec: Spec,
    stated: Sample,
    inferred: Sample,
    impossible: Sequence[str] = (),
    order: frozenset[bool] = frozenset(),
    whose: tuple[str, str] = WHOSE,
) -> tuple[str, str]:
    """Verdict and reason of one row.

    Each value is inside its band, outside, or either; if more than one verdict remains possible,
    the row is undecided, and its reason names them.
    """
    # None of a value that is missing.
    sides: list[tuple[Sample, frozenset[bool | None]]] = [
        (it, spec.band.holds(spec.paper, it, spec.of) if it.there else frozenset((None,)))
        for it in (stated, inferred)
    ]
    found = {
        _class(spec, s, i, bool(impossible), ordered)
        for s, i, ordered in product(sides[0][1], sides[1][1], order or (None,))
    }
    verdict = found.pop() if len(found) == 1 else UNDECIDED
    said = "; ".join(
        f"{words} {sample.told(spec.unit)}, {_side(spec, sample, held)}"
        for words, (sample, held) in zip(whose, sides, strict=True)
        if sample.there
    )
    said = said or "no value came out of the runs"
    if verdict == CANNOT_FOLLOW:
        return verdict, "; ".join((*impossible, said))
    if verdict == GIVEN and impossible:
        said = "; ".join((*impossible, said))
    printed = f"printed {show(spec.paper, spec.unit)}; {said}"
    return verdict, "; ".join(_around(spec, verdict, printed, found))


def _around(spec: Spec, verdict: str, printed: str, found: set[str]) -> Iterator[str]:
    if verdict == GIVEN:
        yield spec.given
    if verdict == UNDERSPECIFIED:
        yield f"the text leaves out {', '.join(spec.missing)}"
    yield printed
    if verdict == SAME_ORDERING:
        yield f"in the same order among {spec.group}"
    if verdict == UNDECIDED:
        yield f"so it is {' or '.join(sorted(found, key=CLASSES.index))}"


def _side(spec: Spec, sample: Sample, held: frozenset[bool | None]) -> str:
    """Which side of the band's edge a value is on, in words."""
    words = spec.band.words(spec.unit)
    if spec.of == SHARE and sample.replications > 1:
        counted = f"{spec.band.inside(spec.paper, sample)} of {sample.replications} inside {words}"
        return counted + (", which decides nothing" if held == EITHER else "")
    if held == EITHER:
        return f"which reaches over the edge of {words}" if words else "which decides nothing"
    inside = held == {True}
    if not words:
        return "the same" if inside else "not so"
    return f"within {words}" if inside else f"outside {words}"


def _class(
    spec: Spec, stated: bool | None, inferred: bool | None, impossible: bool, ordered: bool | None
) -> str:
    """The verdict, from whether each value is inside (None if missing).

    A reproduced input is *given*, even if a check finds it faulty: it is a stated parameter, so it
    follows by definition; the reason states the finding. A result that a check proves impossible
    cannot follow from the text. A result of the stated parameters matches, unless the text omits
    parameters and other values of these give another result. If only the inferred parameters give
    it, the text is underspecified, provided that it omits something. Any other result at least has
    its place in the order, or differs.
    """
    if spec.given and stated is not False and inferred is not False:
        return GIVEN
    if impossible:
        return CANNOT_FOLLOW
    if stated and not (spec.missing and inferred is False):
        return MATCHES
    if spec.missing and (stated or inferred):
        return UNDERSPECIFIED
    return SAME_ORDERING if ordered else DIFFERS


def in_order(spec: Spec, group: Sequence[Spec], ours: Mapping[str, Sample]) -> frozenset[bool]:
    """Whether our value has the printed order relative to its group: yes, no, or either.

    Empty without a group.
    """
    found: frozenset[bool] = frozenset()
    for other in group:
        values = (ours[spec.id].value, ours[other.id].value)
        if other.id == spec.id or any(not isinstance(value, int | float) for value in values):
            continue
        if not isinstance(spec.paper, int | float) or not isinstance(other.paper, int | float):
            continue
        (low, high), (least, most) = ours[spec.id].span, ours[other.id].span
        above, below = spec.paper > other.paper, spec.paper < other.paper
        if low <= most and least <= high and (low, high) != (least, most):
            found |= EITHER
        elif above != (low > most) or below != (high < least):
            return frozenset((False,))
        else:
            found |= {True}
    return found


def tally(rows: Iterable[Row]) -> list[int]:
    """How many rows have each verdict."""
    counted = Counter(row.verdict for row in rows)
    return [counted[verdict] for verdict in CLASSES]


def table(
    title: str,
    file: str,
    rows: Iterable[tuple[Row, Sequence[str]]],
    origins: Mapping[str, int],
    unit: int,
) -> Table:
    """A table of rows and of their values by origin; numbers are the ranks of columns."""
    columns = (
        Column("row", 0, "id"),  # meant to be copied
        Column("unit", unit, "text"),
        Column("printed", 0, "prose"),
        *(Column(origin, rank) for origin, rank in origins.items()),
        Column("verdict", 0, "text"),
    )
    cells = [
        [one.spec.id, one.spec.unit, show(one.spec.paper), *map(narrow, values), SHORT[one.verdict]]
        for one, values in rows
    ]
    return Table(title, columns, cells, file)
