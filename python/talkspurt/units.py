"""Quantities of a resolved scenario as numbers: seconds, bits per second, bytes."""

from __future__ import annotations

import re

SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
BITS = {"bit/s": 1, "kbit/s": 1_000, "Mbit/s": 1_000_000, "Gbit/s": 1_000_000_000}
BYTES = {"B": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
QUANTITY = re.compile(r"([0-9.]+)\s*(\S+)")


def _parts(text: str) -> tuple[str, str]:
    found = QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no quantity")
    return found[1], found[2]


def seconds(text: str) -> float:
    """A duration in seconds."""
    number, unit = _parts(text)
    # A scenario's times are whole nanoseconds: 0.1 ms is then the double nearest to 0.0001.
    return round(float(number) * SECONDS[unit] * 1e9) / 1e9


def bits(text: str) -> int:
    """A rate in bits per second."""
    number, unit = _parts(text)
    return round(float(number) * BITS[unit])


def size(text: str) -> int:
    """A size in bytes."""
    number, unit = _parts(text)
    return round(float(number) * BYTES[unit])
