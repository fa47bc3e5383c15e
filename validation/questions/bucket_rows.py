"""Rows of the studies of bucket.py: settings, codec ladders, and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import polars as pl
from common import Interval, paired

DEPTH, STEP = "8kB", "2s"
"""The parameters that the page recommends, used in `bucket-transports`."""
SETTINGS = [
    (rate, delay) for rate in ("3Mbit/s", "1500kbit/s", "1Mbit/s") for delay in ("20ms", "100ms")
]
PAYS = SETTINGS[:3]
"""Settings in which the fair rate suffices for G.711 most of the time."""
LADDERS = {
    "five": (
        ("G.711", 200, 20),
        ("G.726", 120, 20),
        ("G.728", 80, 20),
        ("G.729", 65, 20),
        ("G.723.1", 64, 30),
    ),
    "three": (("G.711", 200, 20), ("G.729A", 60, 20), ("G.723.1", 64, 30)),
}
"""Codecs: name, bytes per packet including RTP, UDP and IP, and milliseconds per packet."""
PACKET_BYTES = 200
G711, G729A = "from G.711", "from G.729A"
TB, WIDE, TFRC, BARE = "TFRC-TB", "TFRC-TB, wide start", "TFRC", "TFRC, bare ladder"
FIVE, FIVE_BARE = "TFRC-TB, five codecs", "no bucket, five codecs"
CCID4, CCID4_TB, UDP = "DCCP CCID 4", "DCCP CCID 4 with bucket", "UDP"


def at(rows: pl.DataFrame, **setting: str) -> pl.DataFrame:
    """Return the rows of a setting; `_` in an axis name represents a space."""
    for name, label in setting.items():
        rows = rows.filter(pl.col(name.replace("_", " ")) == label)
    return rows


def of(rows: pl.DataFrame, setting: tuple[str, str]) -> pl.DataFrame:
    """Return the rows of a rate and a delay."""
    return at(rows, bottleneck=setting[0], one_way=setting[1])


def together(rows: pl.DataFrame, value: str, *keys: str) -> pl.DataFrame:
    """Average over all axes except `keys`, for each replicate."""
    return rows.group_by(*keys, "replicate", maintain_order=True).agg(pl.col(value).mean())


def over(rows: pl.DataFrame, value: str) -> Interval:
    """Return the mean and interval over the seeds, with settings pooled."""
    return Interval.of(together(rows, value)[value].to_list())


def beside(rows: pl.DataFrame, axis: str, baseline: str, label: str, value: str) -> Interval:
    """Return the difference from a baseline along an axis, paired by seed, settings pooled."""
    return paired(together(rows, value, axis), axis, baseline, value)[label]


def turned(one: Interval) -> Interval:
    """Negate a difference."""
    return Interval(-one.mean, -one.high, -one.low, one.count)


def rates(ladder: str) -> list[float]:
    """Return the rates of all codecs including headers, in kbit/s."""
    return [8 * size / time for _, size, time in LADDERS[ladder]]


def each(rows: pl.DataFrame) -> Iterable[pl.DataFrame]:
    """Iterate over the rows of each depth and step-up time."""
    return (mine for _, mine in rows.group_by("depth", "step up", maintain_order=True))


def steps(ladder: str) -> list[tuple[float, float]]:
    """Return pairs of the rates of adjacent codecs."""
    found = rates(ladder)
    return list(pairwise(found))


def split(found: dict[tuple[str, str], Interval]) -> tuple[list[Interval], list[Interval]]:
    """Split into differences above zero and below zero."""
    return (
        [one for one in found.values() if one.low > 0],
        [one for one in found.values() if one.high < 0],
    )


def signed(value: float) -> str:
    """Format a number with its sign."""
    return f"{value:+.3f}".replace("-", "−")


def spread(found: Sequence[Interval]) -> str:
    """Format the range of the means."""
    means = sorted(one.mean for one in found)
    return f"{means[0]:.2f} to {means[-1]:.2f}"


def number(found: Sequence[Interval]) -> str:
    """Format the count in words."""
    return ("none", "one", "two", "three", "four", "five", "six")[len(found)]
