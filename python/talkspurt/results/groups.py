"""Groups of flows as one row: flows that `count` expanded are one row of a table.

Counts are summed, everything else is averaged over the flows with a value, and texts are kept if
all are equal. The Parquet files and JSON have a row per flow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

MANY = 5
"""Smaller groups are shown flow by flow."""
SUMS = ("_packets", "_bytes", "_bps", "_frames", "_complete", "_late")


def condensed(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the flows table, with groups of ``MANY`` flows or more condensed to one row.

    ``first`` is the first flow of a row, whose style represents all.
    """
    every = [{**row, "first": row["name"]} for row in rows]
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in every:
        if group := row.get("group"):
            groups.setdefault(group, []).append(row)
    shown: list[dict[str, Any]] = []
    for row in every:
        group = row.get("group")
        if not group or len(groups[group]) < MANY:
            shown.append(row)
        elif row is groups[group][0]:
            shown.append({name: _value(name, groups[group], group) for name in row})
    return shown


def _value(column: str, rows: list[dict[str, Any]], group: str) -> Any:
    if column == "name":
        return f"{group} × {len(rows)}"
    if column == "first":
        return rows[0]["name"]
    values = [row[column] for row in rows if row[column] is not None]
    if not values or isinstance(values[0], str):
        return values[0] if len(set(values)) == 1 else None
    return sum(values) if column.endswith(SUMS) else sum(values) / len(values)
