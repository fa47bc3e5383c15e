"""Rows with their values as a table on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from talkspurt._terminal.layout import Column, Table
from talkspurt.reproduce.rows import SHORT, Row
from talkspurt.reproduce.sample import narrow, show


def row_table(
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
        [
            row.spec.id,
            row.spec.unit,
            show(row.spec.paper),
            *map(narrow, values),
            SHORT[row.verdict],
        ]
        for row, values in rows
    ]
    return Table(title, columns, cells, file)
