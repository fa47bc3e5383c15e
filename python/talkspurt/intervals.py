"""Display of a mean's interval: clipped to the measure's range, and never as if certain.

Student's interval ignores the range of a measure: from two replications it may include a MOS of 0.2
or a negative delay. Tables and figures show the possible part, mark the clipped end, and explain
the mark. If all replications gave the same value no interval is shown, because the effect of chance
is unknown. Data frames and Parquet contain the ends as computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from talkspurt.metrics.catalogue import quantity

CUT, STILL, SPREAD, BELOW = "*", "=", "{", "<"
"""Marks of a clipped end, of equal values, of the flows of a count, and of a bound."""

WORDS = {
    CUT: "the interval ends at the limit of possible values; more replications would "
    "make it shorter.",
    STILL: "every replication gave this value, so that there is no interval.",
    BELOW: "the value is outside the range of its model, and below this bound.",
    SPREAD: "… }: the least and the greatest of the flows of which this is the mean.",
}


@dataclass(frozen=True)
class Ends:
    """Ends of an interval for display, in the stored measure's unit, and whether each is cut."""

    low: float
    high: float
    cut_low: bool
    cut_high: bool


def still(row: Mapping[str, Any]) -> bool:
    """Whether several replications gave the same value."""
    return bool(row["count"] > 1 and row["deviation"] == 0)


def ends(row: Mapping[str, Any]) -> Ends | None:
    """The possible part of a row's interval; None without an interval.

    A row is one of ``Study.summary`` or ``Study.differences``; a difference of two scores may span
    the length of their scale in either direction.
    """
    if row["low"] is None or still(row) or row.get("bound") is not None:
        return None
    shown = quantity(row["measure"])
    least, most = shown.least, shown.most
    if "baseline" in row:
        least, most = least - most, most - least
    low, high = row["low"], row["high"]
    return Ends(max(low, least), min(high, most), low < least, high > most)


def level(row: Mapping[str, Any]) -> float:
    """Where a row's mean is drawn: outside the range of its model, at its bound."""
    bound = row.get("bound")
    return float(row["mean"] if bound is None else bound)


def some_of_all(row: Mapping[str, Any]) -> str:
    """The number of replications with a value, as in "2 of 3"; empty if all have one."""
    count, replications = row["count"], row["replications"]
    return f"{count} of {replications}" if count < replications else ""


def flow(row: Mapping[str, Any]) -> str:
    """The flow of a row; for the flows of a ``count`` their name and number."""
    many = row.get("members") or 1
    return f"{row['flow']} × {many}" if many > 1 else str(row["flow"])


def spread(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """The minimum and maximum over the flows averaged in a row, if they differ."""
    low, high = row.get("member_low"), row.get("member_high")
    return None if low is None or high is None or low == high else (low, high)


def texts(row: Mapping[str, Any] | None) -> tuple[str, str]:
    """A mean and its uncertainty; with the number of replications, if not all had a value."""
    if row is None or row["mean"] is None:
        return "–", ""
    shown = quantity(row["measure"])
    if (bound := row.get("bound")) is not None:
        return ("–" if "baseline" in row else f"{BELOW}{shown.show(bound)}"), ""
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
    shown = quantity(row["measure"])
    if found.cut_low or found.cut_high:
        low, high = shown.show(found.low), shown.show(found.high)
        return f"[{low}{CUT * found.cut_low} … {high}{CUT * found.cut_high}]"
    half = (found.high - found.low) / 2
    step = 10.0**-shown.digits
    return f"±<{step:g}" if half * shown.scale < step / 2 else f"±{shown.show(half)}"


def text(row: Mapping[str, Any] | None) -> str:
    """Both in one text."""
    return " ".join(filter(None, texts(row)))


def legend(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Explanations of the marks that occur in a table."""
    used: set[str] = set()
    for row in rows:
        mean, said = texts(row)
        used |= {mark for mark in WORDS if mark in said and mark != BELOW}
        used |= {BELOW} if mean.startswith(BELOW) else set()
    return [f"{mark} {words}" for mark, words in WORDS.items() if mark in used]
