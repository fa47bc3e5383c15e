"""The values of a resolved scenario, parsed by Rust.

A resolved scenario is TOML with every default written out. :func:`values` returns it as dicts and
lists in which each quantity is a :class:`Quantity`: a number of seconds, bit/s or bytes with its
original text.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from talkspurt import _core
from talkspurt.scenarios.members import Flows


class Quantity(float):
    """A number of seconds, bit/s or bytes.

    Attributes:
        text: as written, such as ``20ms``; also returned by ``str()``.
        unit: ``s``, ``bit/s`` or ``B``.
    """

    __slots__ = ("text", "unit")
    text: str
    unit: str

    def __new__(cls, value: float, text: str, unit: str) -> Quantity:
        """A quantity of this value."""
        made = super().__new__(cls, value)
        made.text, made.unit = text, unit
        return made

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else self.text


def values(text: str) -> dict[str, Any]:
    """A resolved scenario's values, with all flows; the dict is owned by the caller."""
    found = written(text)
    if isinstance(flows := found.get("flows"), dict):
        found["flows"] = Flows(flows)
    return found


def written(text: str) -> dict[str, Any]:
    """The same with groups of flows as written."""
    found: dict[str, Any] = json.loads(_values(text), object_hook=_quantity)
    return _with_durations(found) if text.startswith(IMPORTED) else found


SEED = re.compile(r"^seed = \d+$", re.MULTILINE)


def apart_from_seed(text: str) -> str:
    """What replications of a run have in common, as a key to what was found in one of them."""
    return SEED.sub("seed = 0", text)


IMPORTED = "# This describes an imported trace"
"""How the scenario of an imported trace begins; it is none that Rust knows."""
MEASURED = (
    "# This describes the traffic of a measurement. It cannot be run: the network is not known."
)
"""How the scenario of a measurement begins."""
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|min)")
UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}


def duration_s(text: str) -> float | None:
    """A duration in seconds; None if the text is none."""
    found = DURATION.fullmatch(text)
    return float(found[1]) * UNITS_S[found[2]] if found else None


def _with_durations(value: Any, key: str = "") -> Any:
    """The durations in the scenario of an imported trace as quantities."""
    if isinstance(value, dict):
        return {inner: _with_durations(value[inner], inner) for inner in value}
    # Of a capture of nothing but known calls, they are quantities already.
    if isinstance(value, str) and key in ("duration", "interval", "start", "packet", "buffer"):
        seconds = duration_s(value)
        return value if seconds is None else Quantity(seconds, value, "s")
    return value


def plain(value: Any) -> Any:
    """The same with quantities as written."""
    if isinstance(value, Quantity):
        return value.text
    if isinstance(value, Flows):
        return Flows(plain(value.written))
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


@functools.lru_cache(maxsize=8)
def _values(text: str) -> str:
    return _core.values(text)


def _quantity(table: dict[str, Any]) -> Any:
    if table.keys() == {"quantity", "value", "unit"}:
        return Quantity(table["value"], table["quantity"], table["unit"])
    return table
