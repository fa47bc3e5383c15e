"""The rows of bucket.py's studies: settings, ladders, and statistics over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import polars as pl
from common import Interval, paired

DEPTH, STEP = "8kB", "2s"
"""The page's recommendation, used in `bucket-transports`."""
SETTINGS = [
    (rate, delay) for rate in ("3Mbit/s", "1500kbit/s", "1Mbit/s") for delay in ("20ms", "100ms")
]
PAYS = SETTINGS[:3]
"""Settings where a fair rate suffices for G.711 most of the time."""
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
"""Codecs: name, bytes of a packet with RTP, UDP and IP, and its milliseconds of speech."""
PACKET_BYTES = 200
G711, G729A = "from G.711", "from G.729A"
TB, WIDE, TFRC, BARE = "TFRC-TB", "TFRC-TB, wide start", "TFRC", "TFRC, bare ladder"
FIVE, FIVE_BARE = "TFRC-TB, five codecs", "no bucket, five codecs"
CCID4, CCID4_TB, UDP = "DCCP CCID 4", "DCCP CCID 4 with bucket", "UDP"


def at(rows: pl.DataFrame, **setting: str) -> pl.DataFrame:
    """The rows of a setting; `_` in an axis name stands for a space."""
    for name, label in setting.items():
        rows = rows.filter(pl.col(name.replace("_", " ")) == label)
    return rows


def of(rows: pl.DataFrame, setting: tuple[str, str]) -> pl.DataFrame:
    """The rows of a rate and a delay."""
    return at(rows, bottleneck=setting[0], one_way=setting[1])


def together(rows: pl.DataFrame, value: str, *keys: str) -> pl.DataFrame:
    """Means over all axes except `keys`, for each replicate."""
    return rows.group_by(*keys, "replicate", maintain_order=True).agg(pl.col(value).mean())


def over(rows: pl.DataFrame, value: str) -> Interval:
    """Mean and interval over the seeds, with settings pooled."""
    return Interval.of(together(rows, value)[value].to_list())


def beside(rows: pl.DataFrame, axis: str, baseline: str, label: str, value: str) -> Interval:
    """Difference from a baseline along an axis, with settings pooled, seed by seed."""
    return paired(together(rows, value, axis), axis, baseline, value)[label]


def turned(one: Interval) -> Interval:
    """The negated difference."""
    return Interval(-one.mean, -one.high, -one.low, one.count)


def rates(ladder: str) -> list[float]:
    """Rates of all codecs including headers, in kbit/s."""
    return [8 * size / time for _, size, time in LADDERS[ladder]]


def each(rows: pl.DataFrame) -> Iterable[pl.DataFrame]:
    """The rows of each depth and step."""
    return (mine for _, mine in rows.group_by("depth", "step up", maintain_order=True))


def steps(ladder: str) -> list[tuple[float, float]]:
    """Each codec's rate and the next one's."""
    found = rates(ladder)
    return list(pairwise(found))


def split(found: dict[tuple[str, str], Interval]) -> tuple[list[Interval], list[Interval]]:
    """Those above zero, and those below."""
    return (
        [one for one in found.values() if one.low > 0],
        [one for one in found.values() if one.high < 0],
    )


def signed(value: float) -> str:
    """A number with its sign."""
    return f"{value:+.3f}".replace("-", "−")


def spread(found: Sequence[Interval]) -> str:
    """From the minimum to the maximum mean."""
    means = sorted(one.mean for one in found)
    return f"{means[0]:.2f} to {means[-1]:.2f}"


def number(found: Sequence[Interval]) -> str:
    """The count, in words."""
    return ("none", "one", "two", "three", "four", "five", "six")[len(found)]
