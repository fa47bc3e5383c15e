"""Fewer points for a line, without a visible difference: the extremes of each column of pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.floating[Any]]

COLUMNS = 1000
"""Columns of pixels of a figure; its bitmap has fewer between its axes."""


def kept(x: Numbers, *lines: Numbers) -> npt.NDArray[np.intp]:
    """The places of the points to draw of lines over common, sorted ``x``.

    In each column, these are the first, last, minimum and maximum of each line, and the first of
    successive NaN, so that gaps stay. Few points are all kept.
    """
    count = len(x)
    if count <= 4 * COLUMNS or x[-1] <= x[0]:
        return np.arange(count)
    scaled = (x - x[0]) / (x[-1] - x[0]) * COLUMNS
    column = np.minimum(scaled.astype(np.intp), COLUMNS - 1)
    begin = np.flatnonzero(np.diff(column, prepend=-1))
    size = np.diff(begin, append=count)
    chosen = np.zeros(count, dtype=bool)
    chosen[begin] = chosen[begin + size - 1] = True
    for y in lines:
        missing = np.isnan(y)
        chosen |= missing & ~np.concatenate(([False], missing[:-1]))
        for extreme in (np.fmin, np.fmax):
            found = np.flatnonzero(y == np.repeat(extreme.reduceat(y, begin), size))
            chosen[found[np.diff(column[found], prepend=-1) > 0]] = True
    return np.flatnonzero(chosen)
