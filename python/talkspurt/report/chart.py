"""Lines of an interactive chart, with as few points as can be seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from talkspurt.figures import decimating
from talkspurt.figures.style import BACKGROUND

if TYPE_CHECKING:
    import polars as pl

    Values = Sequence["Number"] | pl.Series

COLUMNS = 500
"""Columns of pixels of a chart."""

Number = float | None


def chart_of(
    name: str,
    title: str,
    unit: str,
    x: Sequence[float] | pl.Series,
    lines: list[dict[str, Any]],
    note: str = "",
) -> dict[str, Any] | None:
    """A chart of lines over common times, or over their own; None without lines.

    Of each line only the points that can be seen are in the page: ``at`` holds their places in the
    times of the chart, if it has not all of them.
    """
    import polars as pl

    common = pl.Series(x, dtype=pl.Float64)
    parts = []
    for line in lines:
        mine = line.pop("x")
        times = common if mine is None else pl.Series(mine, dtype=pl.Float64)
        values = pl.Series(line["values"], dtype=pl.Float64, strict=False)
        places = decimating.kept(times, values, columns=COLUMNS)
        parts.append((times.gather(places), values.gather(places)))
    if not parts or (every := pl.concat([times for times, _ in parts]).unique().sort()).len() < 2:
        return None
    for line, (times, values) in zip(lines, parts, strict=True):
        line["at"] = None if times.len() == every.len() else every.search_sorted(times).to_list()
        line["values"] = [_short(value) for value in values.to_list()]
    return {
        "name": name,
        "title": title,
        "unit": unit,
        "x": [_short(v) for v in every.to_list()],
        "lines": lines,
        "note": note,
        "explained": [],
        "logarithmic": False,
        "range": None,
        "stepped": 0,
        "over": None,
    }


def _short(value: Number) -> Number:
    """Five digits exceed a screen's resolution."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")


def line_of(
    label: str,
    colour: str,
    dashes: Sequence[float],
    values: Values,
    *,
    x: Values | None = None,
    width: float = 1.6,
    marker: str = "",
    points: bool = False,
) -> dict[str, Any]:
    """A line of a chart, at places of its own if ``x`` is given; or points."""
    return {
        "label": label,
        "colour": colour,
        "dashes": list(dashes),
        "x": x,
        "values": values,
        "width": width,
        "marker": marker,
        "background": colour == BACKGROUND,
        "points": points,
    }
