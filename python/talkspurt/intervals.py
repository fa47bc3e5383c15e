"""How the interval of a mean is shown: cut to what its measure can be, and never as if certain.

Student's interval knows of no scale: of two replications it may promise a MOS of 0.2 or a delay
below nothing. Tables and figures show the part that can be, mark the end that was cut, and say what
the mark means. Where all replications gave the same value there is no interval to show: nothing was
seen of what chance does. Data frames and Parquet hold the ends as computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from talkspurt.metrics.catalogue import column

CUT, STILL, SPREAD = "*", "=", "{"
"""Marks of an end that was cut, of values that were all the same, and of the flows of a count."""

WORDS = {
    CUT: "the interval reaches beyond what can be, and is shown up to there: more replications "
    "would make it shorter.",
    STILL: "every replication gave this value: no interval, for nothing was seen of what chance "
    "does.",
    SPREAD: "… }: the least and the greatest of the flows of which this is the mean.",
}


@dataclass(frozen=True)
class Ends:
    """Ends of an interval as they are shown, in the unit the measure is stored in.

    Attributes:
        low: the lower end.
        high: the upper end.
        cut_low: whether the interval goes on below.
        cut_high: whether it goes on above.
    """

    low: float
    high: float
    cut_low: bool
    cut_high: bool


def still(row: Mapping[str, Any]) -> bool:
    """Whether several replications gave one and the same value."""
    return bool(row["count"] > 1 and row["deviation"] == 0)


def ends(row: Mapping[str, Any]) -> Ends | None:
    """The part of a row's interval that can be; None where there is none.

    A row is one of ``Study.summary`` or ``Study.differences``; a difference of two scores can be
    as large as their scale is long, either way.
    """
    if row["low"] is None or still(row):
        return None
    shown = column(row["measure"])
    least, most = shown.least, shown.most
    if "baseline" in row:
        least, most = least - most, most - least
    low, high = row["low"], row["high"]
    return Ends(max(low, least), min(high, most), low < least, high > most)


def some_of_all(row: Mapping[str, Any]) -> str:
    """How many replications a mean is of, as in "2 of 3"; nothing when it is of all."""
    count, replications = row["count"], row["replications"]
    return f"{count} of {replications}" if count < replications else ""


def flow(row: Mapping[str, Any]) -> str:
    """The flow a row is of; of the flows of a ``count`` their name, and how many they are."""
    many = row.get("members") or 1
    return f"{row['flow']} × {many}" if many > 1 else str(row["flow"])


def spread(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """The least and the greatest of several flows of which a row is the mean, if they differ."""
    low, high = row.get("member_low"), row.get("member_high")
    return None if low is None or high is None or low == high else (low, high)


def texts(row: Mapping[str, Any] | None) -> tuple[str, str]:
    """A mean, and what is known of how sure it is; of how many replications, if not of all."""
    if row is None or row["mean"] is None:
        return "–", ""
    shown = column(row["measure"])
    words = [_interval(row)]
    if of_all := some_of_all(row):
        words.append(f"({of_all})")
    if members := spread(row):
        low, high = map(shown.show, members)
        words.append(f"{SPREAD}{low} … {high}}}")
    return shown.show(row["mean"]), " ".join(filter(None, words))


def _interval(row: Mapping[str, Any]) -> str:
    if still(row):
        return STILL
    found = ends(row)
    if found is None:
        return ""
    shown = column(row["measure"])
    if found.cut_low or found.cut_high:
        low, high = shown.show(found.low), shown.show(found.high)
        return f"[{low}{CUT * found.cut_low} … {high}{CUT * found.cut_high}]"
    half = (found.high - found.low) / 2
    step = 10.0**-shown.digits
    return f"±<{step:g}" if half * shown.scale < step / 2 else f"±{shown.show(half)}"


def text(row: Mapping[str, Any] | None) -> str:
    """Both in one."""
    return " ".join(filter(None, texts(row)))


def legend(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the marks in a table mean, of those that occur."""
    used: set[str] = set()
    for row in rows:
        said = texts(row)[1]
        used |= {mark for mark in WORDS if mark in said}
    return [f"{mark} {words}" for mark, words in WORDS.items() if mark in used]
