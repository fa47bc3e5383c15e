"""Computes the rows and facts that a study's file states as formulas, and finds impossible values.

A formula is a Python expression over the names of the study's module, of ``hops`` and of its own
runs. The tables ``[[rows]]`` of ``studies/NAME.runs.toml`` have these keys:

* ``runs``: names in formulas, and the beginnings of the scenarios they stand for, whose names end
  in ``-stated`` and ``-inferred``; ``stated``, ``inferred`` and ``other`` have whole names;
* ``of``: what formulas get of a run, by default the file's ``of``, or the run;
* ``let``: intermediate values, in order;
* ``values``: the rows. All runs together are ``runs``;
* ``cases``: further scenarios that concern the rows.
"""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import CodeType, ModuleType
from typing import Any

from talkspurt.reproduce import hops, study_file
from talkspurt.reproduce.band import StudyFileError
from talkspurt.reproduce.lab import Keep, Lab, part
from talkspurt.reproduce.rows import Spec, Values
from talkspurt.reproduce.sample import Sample, Value, show

PROFILES = ("stated", "inferred", "other")
"""Where values belong; others are for notes."""


def module(study: str) -> ModuleType:
    """The module with a study's names."""
    return import_module(f"talkspurt.reproduce.{study}")


@cache
def _code(formula: str) -> CodeType:
    return compile(f"({formula})", formula, "eval")


def names(study: str) -> dict[str, Any]:
    """What formulas of a study may name."""
    return {"hops": hops, "math": math, "statistics": statistics, **vars(module(study))}


def value(formula: str, names: dict[str, Any]) -> Any:
    """The value of a formula with these names."""
    # The formulas are part of the package, like its modules.
    return eval(_code(formula), names)


@dataclass(frozen=True)
class Rows:
    """Rows computed from the same runs, as in the file, with the scenarios by profile and name."""

    study: str
    of: str
    let: Mapping[str, str]
    formulas: Mapping[str, str]
    names: Mapping[str, Mapping[str, str]]
    cases: Sequence[str] = ()

    def values(self, profile: str, *runs: Any) -> dict[str, Value]:
        """The rows of one replication, from the parts of its runs."""
        named = dict(zip(self.names[profile], runs, strict=True))
        known = {**names(self.study), **named, "runs": named}
        for name, formula in self.let.items():
            known[name] = value(formula, known)
        return {row: value(formula, known) for row, formula in self.formulas.items()}

    def samples(self, lab: Lab, profile: str) -> dict[str, Sample]:
        """The rows of all replications."""
        of = value(self.of, names(self.study)) if self.of else lambda run: run
        found = lab.samples(
            self.names[profile].values(), lambda *runs: self.values(profile, *map(of, runs))
        )
        for row in found:
            lab.used[row].extend(self.cases)
        return found


def kept(study: str) -> dict[str, dict[str, Keep]]:
    """What to keep of runs, by name: columns of tables, or what a function returns of them."""

    def keep(of: Any) -> Keep:
        if isinstance(of, str):
            found: Keep = value(of, names(study))
            return found
        return part(*of["columns"], flow=of.get("flow", ""), side=of.get("side"))

    named = study_file.runs_file(study).get("keep", {})
    return {name: {table: keep(of) for table, of in of.items()} for name, of in named.items()}


def tables(study: str) -> Iterator[Rows]:
    """All rows of a study."""
    of = study_file.runs_file(study).get("of", "")
    for entry in study_file.filled(study, "rows"):
        both = {
            profile: {name: f"{start}-{profile}" for name, start in entry["runs"].items()}
            for profile in ("stated", "inferred")
            if "runs" in entry
        }
        scenarios = both | {key: entry[key] for key in entry if key in PROFILES}
        let, more = entry.get("let", {}), entry.get("cases", ())
        yield Rows(study, entry.get("of", of), let, entry["values"], scenarios, more)


def values(study: str, lab: Lab) -> Values:
    """The values of all rows, with their notes, to which a study's module may add."""
    found: dict[str, dict[str, Sample]] = {profile: {} for profile in PROFILES}
    for rows in tables(study):
        for profile in rows.names:
            found[profile] |= rows.samples(lab, profile)
    notes = study_file.notes(study, facts(study, lab))
    if more := getattr(module(study), "notes", None):
        notes = more(found, notes)
    return Values(found["stated"], found["inferred"], notes=notes, cases=lab.used)


def of_parts(study: str, profile: str, parts: Mapping[str, Any]) -> dict[str, Value]:
    """The rows of scenarios whose parts are there, for example of ns-2's runs."""
    found: dict[str, Value] = {}
    for rows in tables(study):
        needed = rows.names.get(profile, {}).values()
        if needed and parts.keys() >= set(needed):
            found |= rows.values(profile, *(parts[name] for name in needed))
    return found


def facts(study: str, lab: Lab) -> dict[str, Any]:
    """The numbers in the notes: the file's ``facts``, and those recorded of ns-2.

    Their formulas also have the runs as ``lab``, and ns-2's numbers as ``theirs``.
    """
    theirs = study_file.recorded(study, "ns2").get("beyond", {})
    known = {**names(study), "lab": lab, "theirs": theirs}
    own = study_file.runs_file(study).get("facts", {})
    return {**theirs, **{name: value(formula, known) for name, formula in own.items()}}


Facts = Mapping[str, Any]
NAMES = {
    "show": show,
    "SECONDS": {"s": 1.0, "ms": 1e-3},
    "BITS_PER_SECOND": {"bit/s": 1.0, "kb/s": 1e3, "kbit/s": 1e3, "Mb/s": 1e6},
}


@cache
def _checks() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads((study_file.FILES / "checks.toml").read_text(encoding="utf-8"))


def impossible(spec: Spec, stated: Facts) -> list[str]:
    """What the checks of a row in ``studies/checks.toml`` find impossible in a text.

    The row's own facts take precedence over the study's.
    """
    found, checks = [], _checks()
    for name in spec.checks:
        if name not in checks:
            raise StudyFileError(f"{spec.id}: no check {name!r}; there are {', '.join(checks)}")
        check, facts = checks[name], {**stated, **spec.facts}
        given = {"paper": spec.paper, "unit": spec.unit, "facts": facts}
        names = {**NAMES, **check.get("defaults", {}), **facts, **given}
        try:
            for let, formula in check.get("let", {}).items():
                names[let] = value(formula, names)
            if value(check["when"], names):
                found.append(value(check["say"], names))
        except (NameError, KeyError, TypeError) as error:
            wants = f"a number, not {spec.paper!r}" if isinstance(error, TypeError) else str(error)
            wants = repr(error.name) if isinstance(error, NameError) else wants
            raise StudyFileError(f"{spec.id}: check {name!r} wants {wants}") from None
    return found
