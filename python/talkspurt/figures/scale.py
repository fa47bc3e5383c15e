"""Placement of a study's axis values in figures: numbers to scale, names side by side.

The labels of an axis are texts. If all are a number and a unit, they are placed as numbers, on a
logarithmic scale if a linear one would crowd them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axis import XAxis

NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(\S*)", re.IGNORECASE)
UNITS = {
    "ns": ("s", 1e-9),
    "us": ("s", 1e-6),
    "µs": ("s", 1e-6),
    "ms": ("s", 1e-3),
    "s": ("s", 1.0),
    "min": ("s", 60.0),
    "h": ("s", 3600.0),
    "bit/s": ("bit/s", 1.0),
    "kbit/s": ("bit/s", 1e3),
    "Mbit/s": ("bit/s", 1e6),
    "Gbit/s": ("bit/s", 1e9),
    "B": ("B", 1.0),
    "kB": ("B", 1e3),
    "MB": ("B", 1e6),
    "GB": ("B", 1e9),
    "": ("", 1.0),
}
"""The units of a scenario: their dimension, and their factor."""
CLOSE = 1 / 20
"""Neighbours closer than this share of an axis are too close."""

Scale = Literal["linear", "log", "symlog"]


def numbers(labels: Sequence[str]) -> list[float] | None:
    """Numbers in labels; None if one is not a number, two are equal or units are incompatible."""
    found, kinds = [], set()
    for label in labels:
        parts = NUMBER.fullmatch(label.strip())
        if parts is None:
            return None
        kind, size = UNITS.get(parts[2], (parts[2], 1.0))
        kinds.add(kind)
        found.append(float(parts[1]) * size)
    return found if len(kinds) == 1 and len(set(found)) == len(found) > 1 else None


def ticks(labels: Sequence[str]) -> tuple[list[str], str]:
    """Labels in one unit, and the unit; unchanged if it is not a scenario unit."""
    parts = [NUMBER.fullmatch(label.strip()) for label in labels]
    units = [part[2] for part in parts if part is not None]
    if len(units) < len(labels) or not set(units) <= set(UNITS) or numbers(labels) is None:
        return list(labels), ""
    chosen = max(units, key=lambda unit: (units.count(unit), UNITS[unit][1]))
    return [f"{value / UNITS[chosen][1]:.4g}" for value in numbers(labels) or ()], chosen


def range_of(axis: XAxis, kind: str, labels: Sequence[str]) -> str:
    """Set the scale and the ticks of an axis of many numbers, and return the unit of its labels."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    _, unit = ticks(labels)
    size = UNITS[unit][1]
    axis.axes.set_xscale(kind)
    few = MaxNLocator(7, steps=[1, 2, 2.5, 5, 10])
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if kind == "log" else few)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / size:.4g}"))
    return unit


def headed(name: str, unit: str) -> str:
    """The title of an axis."""
    return f"{name} / {unit}" if unit else name


def scale(values: Sequence[float]) -> Scale:
    """The scale on which no two values are too close, if any."""
    if gap(values, "linear") >= CLOSE or min(values) < 0:
        return "linear"
    other: Scale = "log" if min(values) > 0 else "symlog"
    return other if gap(values, other) > gap(values, "linear") else "linear"


def gap(values: Sequence[float], kind: Scale) -> float:
    """The minimum distance of two neighbours, as a share of the axis."""
    places = sorted(place(value, values, kind) for value in values)
    return min(b - a for a, b in pairwise(places)) / (places[-1] - places[0])


def some(texts: Sequence[str], values: Sequence[float], kind: Scale, apart: float) -> list[str]:
    """The texts, without those closer to another than a share of the axis."""
    places = [place(value, values, kind) for value in values]
    least, length = min(places), max(places) - min(places)
    kept = [""] * len(texts)
    last = -apart
    for n in sorted(range(len(places)), key=places.__getitem__):
        at = (places[n] - least) / length
        if at - last >= apart:
            kept[n], last = texts[n], at
    return kept


def place(value: float, values: Sequence[float], kind: Scale) -> float:
    """The position of a value on a scale, in units of that scale."""
    if kind == "linear":
        return value
    # Like matplotlib: linear up to the smallest positive value, over one decade.
    return math.log10(value / threshold(values)) + 1 if value > 0 else 0.0


def threshold(values: Sequence[float]) -> float:
    """The end of a symlog scale's linear part: the smallest positive value."""
    return min(value for value in values if value > 0)
