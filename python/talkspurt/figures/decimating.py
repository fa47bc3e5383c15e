"""Fewer points for a line, without a visible difference: the extremes of each column of pixels."""

from __future__ import annotations

import polars as pl

COLUMNS = 1000
"""Columns of pixels of a figure; its bitmap has fewer between its axes."""


def kept(x: pl.Series, *lines: pl.Series) -> pl.Series:
    """The places of the points to draw of lines over common, sorted ``x``.

    In each column, these are the first, last, minimum and maximum of each line, and the first of
    successive missing values (null or NaN), so that gaps stay. Few points are all kept.
    """
    places = pl.int_range(x.len(), eager=True, dtype=pl.UInt32)
    if x.len() <= 4 * COLUMNS or x[-1] <= x[0]:
        return places
    names = [f"line{n}" for n in range(len(lines))]
    values = [
        y.cast(pl.Float64).fill_nan(None).alias(name) for name, y in zip(names, lines, strict=True)
    ]
    column = ((x - x[0]) / (x[-1] - x[0]) * COLUMNS).cast(pl.UInt32).clip(upper_bound=COLUMNS - 1)
    frame = pl.DataFrame([places.alias("place"), column.alias("column"), *values])
    place = pl.col("place")
    found = frame.group_by("column").agg(
        place.first().alias("first"),
        place.last().alias("last"),
        *(place.get(pl.col(name).arg_min()).alias(f"{name}.low") for name in names),
        *(place.get(pl.col(name).arg_max()).alias(f"{name}.high") for name in names),
    )
    gaps = [places.filter(y.is_null() & ~y.is_null().shift(fill_value=False)) for y in values]
    chosen = found.drop("column").iter_columns()
    return pl.concat([*chosen, *gaps]).drop_nulls().unique().sort()
