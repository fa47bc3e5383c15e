"""What a run says of the bands of its case, computed from each packet.

Rates are those of IP packets with all headers, in bit/s; "goodput" counts what arrived at the last
node, "sent" what came to the first link. A media flow is its video and its audio together. A
window of 1 s begins at every tenth of a second, unless another step is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from talkspurt._lazy import pl
from talkspurt.evaluate.cases import MOST, Case, Media
from talkspurt.metrics.sharing import jain, least_over_greatest

Numbers = npt.NDArray[np.float64]
STEP_S = 0.1
"""Step of a window that slides."""
RANGE = 0.15
"""Distance from the mean, over the mean, beyond which a rate oscillates."""


class Packets:
    """The packets of some flows.

    Attributes:
        bits: their lengths in bits.
        sent: when they were sent, in s.
        received: when they arrived, in s; NaN if never.
        waits: how long they waited at all links, in s; NaN if they did not leave one.
    """

    def __init__(self, bits: Numbers, sent: Numbers, received: Numbers, waits: Numbers) -> None:
        self.bits, self.sent, self.received, self.waits = bits, sent, received, waits

    @cached_property
    def _sums(self) -> dict[bool, tuple[Numbers, Numbers]]:
        """Times in order, and the bits until each; of sent packets, and of those that arrived."""
        found = {}
        for arrived, times in ((False, self.sent), (True, self.received)):
            order = np.argsort(times, kind="stable")
            order = order[: len(times) - int(np.isnan(times).sum())]
            found[arrived] = times[order], np.concatenate([[0.0], np.cumsum(self.bits[order])])
        return found

    def rates(self, begins: npt.ArrayLike, width: float, *, arrived: bool = True) -> Numbers:
        """The rate in windows of a width (s), each from its begin on."""
        times, sums = self._sums[arrived]
        begins = np.asarray(begins, dtype=float)
        low, high = np.searchsorted(times, begins), np.searchsorted(times, begins + width)
        found: Numbers = (sums[high] - sums[low]) / width
        return found

    def rate(self, begin: float, end: float) -> float:
        """The goodput from a begin to an end."""
        return float(self.rates([begin], end - begin)[0])


class Run:
    """The packets of a run, with what its case says of it."""

    def __init__(self, table: pl.DataFrame, case: Case, media: Sequence[Media]) -> None:
        self.case, self.media = case, media
        rows = table.filter(pl.col("side") == "from").with_columns(
            (pl.col("dequeued_s") - pl.col("enqueued_s")).alias("wait")
        )
        several = rows.group_by("flow", "number").len()["len"].max() or 0
        if several > 1:  # type: ignore[operator]
            rows = rows.group_by("flow", "number", maintain_order=True).agg(
                pl.col("ip_bytes").first(),
                pl.col("enqueued_s").first(),
                pl.col("received_s").last(),
                pl.when(pl.col("wait").null_count() == 0).then(pl.col("wait").sum()).alias("wait"),
            )
        columns = ("ip_bytes", "enqueued_s", "received_s", "wait")
        self._flows: dict[str, Packets] = {}
        for (name,), part in rows.partition_by("flow", as_dict=True).items():
            size, *times = (part[column].to_numpy().astype(float) for column in columns)
            self._flows[str(name)] = Packets(size * 8, *times)
        self._known: dict[tuple[str, ...], Packets] = {}

    def of(self, flows: Iterable[str]) -> Packets:
        """The packets of these flows together."""
        names = tuple(name for name in flows if name in self._flows)
        if names not in self._known:
            parts = [self._flows[name] for name in names]
            empty = [Packets(*[np.empty(0)] * 4)]
            self._known[names] = Packets(
                *(
                    np.concatenate([getattr(part, what) for part in parts or empty])
                    for what in ("bits", "sent", "received", "waits")
                )
            )
        return self._known[names]

    def each(self, numbers: Sequence[int] | None = None) -> list[Packets]:
        """Each of these media flows, counted from 1; default: all."""
        chosen = numbers or range(1, len(self.media) + 1)
        return [self.of(self.media[n - 1].flows) for n in chosen]

    def wanted(self, band: Mapping[str, Any]) -> tuple[Packets, int]:
        """The packets that a band is about, and of how many media flows; 0 of other flows."""
        if "flows" in band:
            return self.starting(band["flows"]), 0
        chosen = band.get("media") or range(1, len(self.media) + 1)
        return self.of(name for n in chosen for name in self.media[n - 1].flows), len(chosen)

    def starting(self, names: Iterable[str]) -> Packets:
        """The flows whose names begin so."""
        begins = tuple(names)
        return self.of(name for name in sorted(self._flows) if name.startswith(begins))

    def falls(self) -> list[tuple[float, float]]:
        """When the capacity falls, and what is left of it in bit/s."""
        steps = pairwise(self.case.phases())
        return [(at, 1e6 * rate) for (_, _, before), (at, _, rate) in steps if rate < before]


def most(capacity: float, media: int) -> float:
    """The lower of a capacity in Mbit/s and what so many media flows can send, in bit/s."""
    return min(capacity * 1e6, MOST * media) if media else capacity * 1e6


Window = tuple[float, float, float]
"""Begin and end (s), and capacity (Mbit/s)."""


def windows(case: Case, band: Mapping[str, Any]) -> dict[str, Window]:
    """The windows of a band by the names of its measures: one of each phase, or one alone."""
    name = band.get("name", band["measure"])
    if "phases" in band or "last" in band:
        found = {}
        for number, (begin, end, rate) in enumerate(case.phases(), 1):
            settled = begin + band.get("phases", 0)
            judged = end - band["last"] if "last" in band else settled if settled < end else begin
            found[f"{name} {number}"] = judged, end, rate
        return found
    begin = band.get("from", 0)
    return {name: (begin, band.get("to", case.end), band.get("capacity", 0.0))}


def _goodput(run: Run, band: Mapping[str, Any], window: Window) -> float:
    packets, media = run.wanted(band)
    begin, end, capacity = window
    whole = most(capacity, media)
    if "less" in band:
        left = capacity * 1e6 - run.starting([band["less"]]).rate(begin, end)
        whole = min(left, MOST * media)
    return packets.rate(begin, end) / whole


def _shares(run: Run, band: Mapping[str, Any], window: Window) -> list[float]:
    return [one.rate(*window[:2]) for one in run.each(band.get("media"))]


def _oscillation(run: Run, band: Mapping[str, Any], window: Window) -> float:
    """Departures from the range around the mean, per 10 s, in windows of 1 s one after another."""
    packets, _ = run.wanted(band)
    begin, end, _ = window
    mean = packets.rate(begin, end)
    if not mean:
        return 0.0
    each = packets.rates(np.arange(begin, end - 1 + 1e-9), 1)
    inside = np.abs(each / mean - 1) <= RANGE
    return float((inside[:-1] & ~inside[1:]).sum() * 10 / (end - begin))


def _kept(run: Run, band: Mapping[str, Any], window: Window, sent: Numbers) -> npt.NDArray[Any]:
    """The packets sent in a window, without some seconds (``calm``) after a fall.

    What is still sent after the end of the media belongs to a window that ends there.
    """
    kept = (sent >= window[0]) & ((sent < window[1]) | (window[1] >= run.case.end))
    for at, _ in run.falls():
        kept &= (sent < at) | (sent >= at + band.get("calm", 0))
    found: npt.NDArray[Any] = kept
    return found


def _quantile(values: Numbers) -> float:
    """The 95th percentile in ms; NaN of nothing."""
    there = values[~np.isnan(values)]
    return float(np.quantile(there, 0.95) * 1e3) if len(there) else float("nan")


def _queue(run: Run, band: Mapping[str, Any], window: Window) -> float:
    packets, _ = run.wanted(band)
    return _quantile(packets.waits[_kept(run, band, window, packets.sent)])


def _wait(run: Run, band: Mapping[str, Any], window: Window) -> float:
    """The median of queueing delays in ms; NaN of nothing."""
    packets, _ = run.wanted(band)
    waits = packets.waits[(packets.sent >= window[0]) & (packets.sent < window[1])]
    return float(np.nanmedian(waits) * 1e3) if not np.isnan(waits).all() else float("nan")


def _delay(run: Run, band: Mapping[str, Any], window: Window) -> float:
    packets, _ = run.wanted(band)
    return _quantile((packets.received - packets.sent)[_kept(run, band, window, packets.sent)])


def _loss(run: Run, band: Mapping[str, Any], window: Window) -> float:
    packets, _ = run.wanted(band)
    lost = np.isnan(packets.received)[_kept(run, band, window, packets.sent)]
    return float(lost.mean()) if len(lost) else float("nan")


def _retreat(run: Run, band: Mapping[str, Any], window: Window) -> float:
    """The longest time after a fall until what is sent in 1 s fits; at most 20 s."""
    packets, media = run.wanted(band)
    found = []
    for at, capacity in run.falls():
        after = np.arange(at, at + 20, STEP_S)
        fits = packets.rates(after, 1, arrived=False) <= most(capacity / 1e6, media)
        found.append(float((after[fits][0] if fits.any() else at + 20) - at))
    return max(found)


def _first(true: npt.NDArray[Any], step: float, limit: float) -> float:
    """The time of the first that is true; the limit without any."""
    return float(np.argmax(true) * step) if true.any() else float(limit)


def _reach(run: Run, band: Mapping[str, Any], window: Window) -> float:
    packets, media = run.wanted(band)
    begins = np.arange(window[0], window[0] + band["limit"], STEP_S)
    enough = packets.rates(begins, 1) >= band["share"] * most(window[2], media)
    return _first(enough, STEP_S, band["limit"])


def _recovery(run: Run, band: Mapping[str, Any], window: Window) -> float:
    last = np.nanmax(np.append(run.starting([band["after"]]).received, 0.0))
    return _reach(run, band, (float(last), window[1], window[2]))


def _fair(run: Run, band: Mapping[str, Any], window: Window) -> float:
    """The time until Jain's index of windows of 5 s is high enough."""
    begins = np.arange(window[0], window[0] + band["limit"] - 5 + 1e-9, 5 * STEP_S)
    rates = np.array([one.rates(begins, 5) for one in run.each()])
    fair = np.array([jain(list(column)) >= band["jain"] for column in rates.T])
    return _first(fair, 5 * STEP_S, band["limit"])


def _starved(run: Run, band: Mapping[str, Any], window: Window) -> float:
    """The most seconds, one after another, with a rate (Mbit/s) below a bound."""
    packets, _ = run.wanted(band)
    below = packets.rates(np.arange(*window[:2]), 1) < band["below"] * 1e6
    longest = now = 0
    for one in below:
        now = now + 1 if one else 0
        longest = max(longest, now)
    return float(longest)


def _ratio(run: Run, band: Mapping[str, Any], window: Window) -> float:
    mine = _shares(run, band, window)
    others = _shares(run, {"media": band["against"]}, window)
    return float(np.mean(mine) / np.mean(others)) if any(others) else float("inf")


def _change(run: Run, band: Mapping[str, Any], window: Window) -> float:
    packets, _ = run.wanted(band)
    before = packets.rate(*band["before"])
    return packets.rate(*window[:2]) / before if before else float("nan")


def _jain(run: Run, band: Mapping[str, Any], window: Window) -> float:
    return jain(_shares(run, band, window))


def _spread(run: Run, band: Mapping[str, Any], window: Window) -> float:
    share = least_over_greatest(_shares(run, band, window))
    return 1 / share if share else float("inf")


MEASURES: Mapping[str, Callable[[Run, Mapping[str, Any], Window], float]] = {
    "change": _change,
    "delay": _delay,
    "fair": _fair,
    "goodput": _goodput,
    "jain": _jain,
    "loss": _loss,
    "oscillation": _oscillation,
    "queue": _queue,
    "ratio": _ratio,
    "reach": _reach,
    "recovery": _recovery,
    "retreat": _retreat,
    "spread": _spread,
    "starved": _starved,
    "wait": _wait,
}
"""What a band can be about. The keys of a band that a measure reads are in its function."""


def measures(run: Run, bands: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """What a run says of each band, in the unit of the band."""
    found = {}
    for band in bands:
        for name, window in windows(run.case, band).items():
            found[name] = MEASURES[band["measure"]](run, band, window)
    return found


def curves(run: Run) -> dict[str, Any]:
    """What is drawn of a run, a value a second: goodputs (Mbit/s), longest waits of media (ms)."""
    end = int(run.case.end) + 1
    seconds = np.arange(end)
    drawn = {f"media {n}": one for n, one in enumerate(run.each(), 1)}
    for name in ("tcp", "web", "cbr", "other"):
        others = run.starting([name])
        drawn |= {name: others} if len(others.bits) else {}
    everything, _ = run.wanted({})
    waits = np.zeros(end + 1)
    there = ~np.isnan(everything.waits)
    places = np.minimum(everything.sent[there].astype(int), end)
    np.maximum.at(waits, places, everything.waits[there])
    return {
        "rates": {
            name: [round(float(rate) / 1e6, 3) for rate in one.rates(seconds, 1)]
            for name, one in drawn.items()
        },
        "waits": [round(float(wait) * 1e3, 1) for wait in waits[:end]],
    }
