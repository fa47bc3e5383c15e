"""A row of a reproduction: what was printed, what came out, and the verdict.

The bands that decide stand in the study's TOML file, written before any run. Nothing here knows a
study: the verdict follows from the printed value, its band, what the checks found and the values of
the runs, so that another value gives another verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Value = float | str | None
"""A number in the row's unit, or a word where the row is about an order or a yes or no."""

MATCHES = "matches"
SAME_ORDERING = "same ordering"
CANNOT_FOLLOW = "cannot follow from the stated parameters"
UNDERSPECIFIED = "underspecified"
DIFFERS = "differs"
CLASSES = (MATCHES, SAME_ORDERING, CANNOT_FOLLOW, UNDERSPECIFIED, DIFFERS)
"""Every verdict there is."""


class StudyFileError(ValueError):
    """A study's file says something that cannot be."""


@dataclass(frozen=True)
class Band:
    """How far from the printed value a match may be; of the bounds given, each must hold.

    Where the text prints no number but makes a claim, ``at_least`` and ``at_most`` say which
    numbers the claim admits.

    Attributes:
        relative: share of the printed value.
        absolute: distance in the row's unit.
        at_least: lower bound, for claims such as "more than".
        at_most: upper bound, for claims such as "none".
    """

    relative: float | None = None
    absolute: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Band:
        """A band as a study's file writes it."""
        unknown = set(table) - set(cls.__dataclass_fields__)
        if unknown:
            raise StudyFileError(f"band: no such bound: {', '.join(sorted(unknown))}")
        return cls(**{name: float(value) for name, value in table.items()})

    def holds(self, paper: Value, ours: Value) -> bool:
        """Whether ours is inside; a word is inside when it is the printed one."""
        if ours is None or paper is None:
            return False
        bounded = self.at_least is not None or self.at_most is not None
        if isinstance(ours, str) or (isinstance(paper, str) and not bounded):
            return ours == paper
        if not math.isfinite(ours):
            return False
        distance = 0.0 if isinstance(paper, str) else abs(ours - paper)
        return (
            (self.relative is None or distance <= self.relative * abs(float(paper)))
            and (self.absolute is None or distance <= self.absolute)
            and (self.at_least is None or ours >= self.at_least)
            and (self.at_most is None or ours <= self.at_most)
        )

    def words(self, unit: str) -> str:
        """The band in words, as a reason quotes it."""
        of = f" {unit}" if unit else ""
        parts = [
            None if self.relative is None else f"±{self.relative * 100:g} %",
            None if self.absolute is None else f"±{self.absolute:g}{of}",
            None if self.at_least is None else f"at least {self.at_least:g}{of}",
            None if self.at_most is None else f"at most {self.at_most:g}{of}",
        ]
        return " and ".join(part for part in parts if part)


@dataclass(frozen=True)
class Spec:
    """A row before anything was run: the printed value and how it will be judged.

    Attributes:
        id: name of the row, within the study.
        quantity: what the number is.
        unit: its unit, the study's own; empty for words and plain ratios.
        paper: what the study prints, or the value its words claim.
        where: the place in the text.
        band: when a value matches.
        missing: what the text leaves out that the value depends on.
        group: rows whose order among each other is a claim of its own.
        checks: names of the checks that look for the impossible.
        facts: numbers the checks need beyond the study's stated ones.
        note: what the band or the measure rests on.
    """

    id: str
    quantity: str
    unit: str
    paper: Value
    where: str
    band: Band
    missing: tuple[str, ...] = ()
    group: str | None = None
    checks: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A row with its values and its verdict."""

    spec: Spec
    stated: Value
    inferred: Value
    ns2: Value
    verdict: str
    reason: str

    @property
    def ours(self) -> Value:
        """The value with the inferred parameters where there is one, else with the stated ones."""
        return self.stated if self.inferred is None else self.inferred

    def to_json(self, study: str) -> dict[str, Any]:
        """The row as ``--json`` prints it."""
        return {
            "id": f"{study}/{self.spec.id}",
            "quantity": self.spec.quantity,
            "unit": self.spec.unit,
            "paper": self.spec.paper,
            "stated": self.stated,
            "inferred": self.inferred,
            "ns2": self.ns2,
            "verdict": self.verdict,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Values:
    """What was computed for the rows, by their ids.

    Attributes:
        stated: with the parameters the study states.
        inferred: with the inferred ones.
        ns2: ns-2's with the inferred ones, or what else the study's file names as its peer.
        notes: facts of the runs that belong into the reason.
        cases: which runs a row rests on.
    """

    stated: Mapping[str, Value] = field(default_factory=dict)
    inferred: Mapping[str, Value] = field(default_factory=dict)
    ns2: Mapping[str, Value] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    cases: Mapping[str, Sequence[str]] = field(default_factory=dict)


def show(value: Value, unit: str = "") -> str:
    """A value as a reason or a table writes it."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    value = 0.0 if abs(value) < 1e-9 else value
    digits = f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
    return f"{digits} {unit}".rstrip()


def judge_all(
    specs: Sequence[Spec], values: Values, impossible: Mapping[str, Sequence[str]]
) -> list[Row]:
    """Every row with its verdict; ``impossible`` holds what the checks found, by row."""
    ours = {
        s.id: values.inferred.get(s.id)
        if values.inferred.get(s.id) is not None
        else values.stated.get(s.id)
        for s in specs
    }
    rows = []
    for spec in specs:
        group = [s for s in specs if spec.group is not None and s.group == spec.group]
        stated, inferred = values.stated.get(spec.id), values.inferred.get(spec.id)
        ordered = in_order(spec, group, ours)
        verdict, reason = judge(spec, stated, inferred, impossible.get(spec.id, ()), ordered)
        note = values.notes.get(spec.id, "")
        parts = [reason, note, spec.note]
        reason = " ".join(part if part.endswith(".") else part + "." for part in parts if part)
        rows.append(Row(spec, stated, inferred, values.ns2.get(spec.id), verdict, reason))
    return rows


def judge(
    spec: Spec, stated: Value, inferred: Value, impossible: Sequence[str], ordered: bool | None
) -> tuple[str, str]:
    """Verdict and reason of one row.

    A value that comes out of the stated parameters matches. One that a check shows to be
    impossible, or that comes out of the inferred parameters only although the stated ones are
    complete, cannot follow from them. Where the text leaves parameters out, a value that the
    inferred ones give is underspecified. What is left has at least its place in the order, or
    differs.
    """
    words = spec.band.words(spec.unit)
    inside, outside = (f"within {words}", f"outside {words}") if words else ("the same", "not so")
    printed = f"printed {show(spec.paper, spec.unit)}"
    with_stated = f"the stated parameters give {show(stated, spec.unit)}"
    with_inferred = f"the inferred ones {show(inferred, spec.unit)}"
    if impossible:
        follows = spec.band.holds(spec.paper, inferred)
        tail = f"; {with_inferred}, {inside}" if follows else ""
        return CANNOT_FOLLOW, "; ".join(impossible) + tail
    if spec.band.holds(spec.paper, stated):
        return MATCHES, f"{printed}, {with_stated}: {inside}"
    if spec.band.holds(spec.paper, inferred):
        if stated is not None and not spec.missing:
            return CANNOT_FOLLOW, f"{printed}, but {with_stated}; {with_inferred}, {inside}"
        left_out = ", ".join(spec.missing) or "what the value depends on"
        return UNDERSPECIFIED, f"the text leaves out {left_out}; {with_inferred}, {inside}"
    given = [
        said
        for value, said in ((stated, with_stated), (inferred, with_inferred))
        if value is not None
    ]
    if not given:
        if spec.missing:
            return (
                UNDERSPECIFIED,
                f"the text leaves out {', '.join(spec.missing)}; no value came out",
            )
        return DIFFERS, f"{printed}; no value came out of the runs"
    said = f"{printed}, {' and '.join(given)}: {outside}"
    if ordered:
        return SAME_ORDERING, f"{said}, but in the same order among {spec.group}"
    return DIFFERS, said


def in_order(spec: Spec, group: Sequence[Spec], ours: Mapping[str, Value]) -> bool | None:
    """Whether ours stands to every other of its group as printed; None where there is no group."""
    if len(group) < 2:
        return None
    compared = False
    for other in group:
        pair = (spec.paper, other.paper, ours[spec.id], ours[other.id])
        if other.id == spec.id or any(not isinstance(value, int | float) for value in pair):
            continue
        printed, theirs, mine, others = (float(value) for value in pair if value is not None)
        compared = True
        if (printed > theirs) != (mine > others) or (printed < theirs) != (mine < others):
            return False
    return compared or None
