"""Numeric values of quantities in a resolved scenario, by unit."""

from __future__ import annotations

from talkspurt.scenarios.resolved import Quantity


def _number(quantity: Quantity, unit: str) -> float:
    if quantity.unit != unit:
        raise ValueError(f"{quantity.text!r} is not in {unit}")
    return float(quantity)


def seconds(quantity: Quantity) -> float:
    """A duration in seconds."""
    return _number(quantity, "s")


def bits(quantity: Quantity) -> int:
    """A rate in bits per second."""
    return round(_number(quantity, "bit/s"))


def size(quantity: Quantity) -> int:
    """A size in bytes."""
    return round(_number(quantity, "B"))
