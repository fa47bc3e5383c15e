"""An axis of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Axis:
    """One axis: the field it sets, and its values.

    Attributes:
        name: its name.
        path: the field that it sets.
        labels: one text per value, in order.
        unit: unit of ``numbers``: ``s``, ``bit/s``, ``B``, or ``1`` for plain numbers.
        numbers: one number per value, if all values are quantities of one kind, and no two are
            equal; else None.
        factor: how a factor of a design is sampled: from a range on a ``linear`` or ``log`` scale,
            or from a list of ``values``; None for an axis.
    """

    name: str
    path: str
    labels: tuple[str, ...]
    unit: str | None = None
    numbers: tuple[float, ...] | None = None
    factor: str | None = None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Axis:
        """The axis of an entry of a plan or manifest."""
        numbers = entry.get("numbers")
        # The labels tell 20ms from 0.02s.
        if numbers is not None and len({*numbers}) < len(numbers):
            numbers = None
        return cls(
            name=entry["name"],
            path=entry["path"],
            labels=tuple(entry["labels"]),
            unit=None if numbers is None else entry.get("unit"),
            numbers=None if numbers is None else tuple(numbers),
            factor=entry.get("factor"),
        )

    def entry(self) -> dict[str, Any]:
        """The entry of a manifest or JSON document."""
        found = {"name": self.name, "path": self.path, "labels": list(self.labels)}
        if self.factor is not None:
            found["factor"] = self.factor
        if self.numbers is None:
            return found
        return {**found, "unit": self.unit, "numbers": list(self.numbers)}

    def value(self, label: str) -> float | str:
        """The value with this label in tables: a number, or the label if it has none."""
        return label if self.numbers is None else self._by_label[label]

    @cached_property
    def _by_label(self) -> dict[str, float]:
        return dict(zip(self.labels, self.numbers or (), strict=True))

    @property
    def sampled(self) -> bool:
        """Whether its values were sampled from a range."""
        return self.factor in ("linear", "log")

    @property
    def extent(self) -> str:
        """Its labels, or the first and last of those sampled from a range."""
        if not self.sampled or self.numbers is None:
            return ", ".join(self.labels)
        return f"{min(self.labels, key=self.value)} to {max(self.labels, key=self.value)}"

    @property
    def column(self) -> str:
        """Name of its column in every table: no other column starts with ``axis.``."""
        return f"axis.{self.name}"
