"""Finds impossible values in a text by the checks in ``studies/checks.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from talkspurt.reproduce.band import StudyFileError
from talkspurt.reproduce.formulas import value
from talkspurt.reproduce.rows import Spec
from talkspurt.reproduce.sample import show
from talkspurt.reproduce.study_file import FILES

Facts = Mapping[str, Any]
NAMES = {
    "show": show,
    "SECONDS": {"s": 1.0, "ms": 1e-3},
    "BITS_PER_SECOND": {"bit/s": 1.0, "kb/s": 1e3, "kbit/s": 1e3, "Mb/s": 1e6},
}
"""What formulas have besides facts."""


@cache
def _checks() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads((FILES / "checks.toml").read_text(encoding="utf-8"))


def impossible(spec: Spec, stated: Facts) -> list[str]:
    """The findings of a row's checks; its own facts take precedence over the study's."""
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
