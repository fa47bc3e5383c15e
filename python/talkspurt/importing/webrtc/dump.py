"""Reads statistics of WebRTC (W3C webrtc-stats) over time, of the forms in which they are saved.

* ``webrtc_internals_dump.txt`` of chrome://webrtc-internals: JSON with ``PeerConnections``, each
  with ``stats``, in which ``ID-member`` has ``startTime``, ``endTime`` and ``values``, a list as
  text. Since version 117 ``ID-timestamp`` has the time of each value; before, values are evenly
  spaced. Chromium keeps the last 1000 values of each member.
* Samples of ``getStats``: JSON with a list of samples, ``{"stats": [...]}`` around it, or a sample
  a line. A sample is an object of statistics by their identifiers (``Object.fromEntries(report)``),
  a list of statistics (``[...report.values()]``), a list of pairs (``[...report]``), or an object
  that has one of these as ``stats``, ``report`` or ``kept``, and beside it ``timestamp``, for
  statistics without a time of their own. Times are in milliseconds, or in microseconds as native
  programs have them.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from talkspurt._text.escaping import whole

MAX_BYTES = 1 << 30
"""JSON takes many times its size in memory."""
KEPT = 1000
"""Chromium keeps so many values of a member."""
MICROSECONDS = 1e14
"""Times above are not in milliseconds: they would be in the year 5138."""
LONGEST_MS = 366 * 86_400_000.0
"""Between the first and the last sample."""
TYPES = {
    "RTCInboundRTP": "inbound-rtp", "RTCOutboundRTP": "outbound-rtp",
    "RTCRemoteInboundRtp": "remote-inbound-rtp", "RTCRemoteOutboundRTP": "remote-outbound-rtp",
    "RTCAudioSource": "media-source", "RTCVideoSource": "media-source", "RTCCodec": "codec",
    "RTCIceCandidatePair": "candidate-pair", "RTCTransport": "transport",
    "RTCMediaStreamTrack": "track",
}  # fmt: skip
"""Types by the beginning of identifiers, in dumps that do not have them."""
SHAPES = (
    "expected webrtc_internals_dump.txt of Chromium, or samples of getStats as JSON: a list of"
    " objects of statistics by identifier, of lists of statistics, or of"
    ' {"timestamp": …, "stats": …}'
)


class DumpError(ValueError):
    """The file is no dump, or damaged; the end of a sentence about it."""


@dataclass
class Statistics:
    """One object of statistics over time.

    Attributes:
        type: as ``inbound-rtp``.
        times_ms: when it was sampled, in ascending order; reports of the other end can repeat.
        members: by name, the place of each value among the times, and the values.
    """

    id: str
    type: str
    times_ms: list[float] = field(default_factory=list)
    members: dict[str, tuple[list[int], list[Any]]] = field(default_factory=dict)

    def numbers(self, name: str) -> tuple[list[float], list[float]]:
        """When a member had a number, and the numbers."""
        found = [
            (self.times_ms[at], value)
            for at, one in zip(*self.members.get(name, ([], [])), strict=True)
            if (value := number(one)) is not None
        ]
        return [time for time, _ in found], [value for _, value in found]

    def last(self, name: str) -> str | float | None:
        """The last value of a member, if it is text or a number; None without."""
        values = self.members.get(name, ([], []))[1]
        value = values[-1] if values else None
        if isinstance(value, str):
            return whole(value)
        return value if number(value) is not None or isinstance(value, bool) else None


@dataclass
class Connection:
    """A peer connection.

    Attributes:
        name: as in the dump; empty for samples of one.
        changes: of its states: when, in milliseconds since 1970, what, and to what.
    """

    name: str = ""
    url: str = ""
    statistics: dict[str, Statistics] = field(default_factory=dict)
    changes: list[tuple[float, str, str]] = field(default_factory=list)

    def of(self, *types: str) -> list[Statistics]:
        """Statistics of these types, in the order of the file."""
        return [one for one in self.statistics.values() if one.type in types]


@dataclass
class Dump:
    """What was read."""

    format: str
    connections: list[Connection]
    user_agent: str = ""
    notes: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def number(value: Any) -> float | None:
    """A finite number, also one in a string; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def begins(data: bytes) -> bool:
    """Whether a file may be a dump, or another one of a browser, by its first bytes."""
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    return start[:1] in (b"{", b"[", b"<") or start.startswith(b"RTCStatsDump")


def read(data: bytes) -> Dump:
    """Read a dump."""
    if len(data) > MAX_BYTES:
        raise DumpError(
            f"has {len(data) / 2**20:.0f} MiB; at most {MAX_BYTES >> 20} are read: record fewer"
            " samples, or save each connection on its own"
        )
    if data.lstrip().startswith(b"RTCStatsDump"):
        raise DumpError(
            "is a dump of rtcstats: in chrome://webrtc-internals, choose the webrtc-internals dump"
        )
    if data.lstrip().startswith(b"<"):
        raise DumpError(
            "is a web page, as Firefox saves about:webrtc, without values over time: record"
            " getStats() as JSON"
        )
    content = _json(data)
    if isinstance(content, dict) and "PeerConnections" in content:
        return _internals(content)
    if isinstance(content, dict) and isinstance(content.get("stats"), list):
        content = content["stats"]
    alone = [*content.values()] if isinstance(content, dict) else content
    if isinstance(alone, list) and any(map(_is_statistics, alone)):
        raise DumpError(
            "is one report of getStats, without values over time: record one every second, and"
            " give them as a list, [report, report, …]"
        )
    if not isinstance(content, list) or not content:
        if isinstance(content, dict) and ("reports" in content or "pcid" in content):
            raise DumpError(
                "is a report of Firefox's about:webrtc, with one sample: record getStats() every"
                " second as JSON"
            )
        raise DumpError(f"is JSON of an unknown form: {SHAPES}")
    return _samples(content)


def _is_statistics(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("type"), str) and "id" in one


def _json(data: bytes) -> Any:
    """The content of the file; of several lines with a value each, a list."""
    try:
        text = data.decode("utf-8-sig")
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            # Text after the first value: a sample a line.
            if error.msg != "Extra data" or "\n" not in text:
                raise
            return [json.loads(line) for line in text.splitlines() if line.strip()]
    except RecursionError:
        raise DumpError("is JSON with too many levels") from None
    except ValueError as error:
        # A damaged dump, also one that was cut.
        raise DumpError(f"is no valid JSON: {error}; if it was cut, save it again") from None


def _samples(content: list[Any]) -> Dump:
    dump = Dump("getStats", [Connection()])
    statistics = dump.connections[0].statistics
    for sample in content:
        found, timestamp = _parts(sample)
        for one in found:
            if not isinstance(one, dict) or not isinstance(one.get("type"), str):
                dump.skipped["objects without a type"] += 1
                continue
            time = _milliseconds(one.get("timestamp", timestamp))
            if time is None:
                dump.skipped["statistics without a time"] += 1
                continue
            kind = whole(one["type"])
            name = whole(str(one.get("id", kind)))
            into = statistics.setdefault(name, Statistics(name, kind))
            if into.times_ms and time <= into.times_ms[-1]:
                # getStats returns the same report for some milliseconds.
                if time < into.times_ms[-1]:
                    dump.skipped["statistics out of order"] += 1
                continue
            _add(into, time, one)
    if not statistics:
        raise DumpError(f"has no statistics with type and timestamp: {SHAPES}")
    return _checked(dump)


def _parts(sample: Any) -> tuple[Iterable[Any], Any]:
    """The statistics of a sample, and the time of those without."""
    timestamp = None
    if isinstance(sample, dict):
        timestamp = sample.get("timestamp", sample.get("now"))
        sample = next((sample[key] for key in ("stats", "report", "kept") if key in sample), sample)
    if isinstance(sample, dict):
        return [one for one in sample.values() if isinstance(one, dict)], timestamp
    if isinstance(sample, list):
        pairs = all(isinstance(one, list) and len(one) == 2 for one in sample)
        return ([one[1] for one in sample] if pairs else sample), timestamp
    return [], timestamp


def _add(into: Statistics, time: float, one: dict[str, Any]) -> None:
    place = len(into.times_ms)
    into.times_ms.append(time)
    for name, value in one.items():
        parts = (
            {f"{name}.{part}": it for part, it in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
        for part, it in parts.items():
            if not isinstance(it, dict | list):
                places, values = into.members.setdefault(whole(part), ([], []))
                places.append(place)
                values.append(it)


def _milliseconds(value: Any) -> float | None:
    time = number(value)
    if time is None:
        return None
    return time / 1e3 if time > MICROSECONDS else time


def _internals(content: dict[str, Any]) -> Dump:
    dump = Dump("webrtc-internals", [], user_agent=whole(str(content.get("UserAgent", ""))))
    found = content["PeerConnections"]
    if not isinstance(found, dict):
        raise DumpError('has "PeerConnections" that is no object: record the dump again')
    for name, one in found.items():
        told = one.get("stats") if isinstance(one, dict) else None
        if not isinstance(told, dict):
            dump.skipped["connections without statistics"] += 1
            continue
        connection = Connection(whole(name), whole(str(one.get("url", ""))))
        connection.statistics = _series(told, dump)
        connection.changes = [*_changes(one.get("updateLog"))]
        dump.connections.append(connection)
    if not any(connection.statistics for connection in dump.connections):
        raise DumpError(
            "has no statistics of a peer connection: open chrome://webrtc-internals before the"
            " call, and save the dump before it ends"
        )
    return _checked(dump)


def _series(told: dict[str, Any], dump: Dump) -> dict[str, Statistics]:
    members: dict[str, dict[str, Any]] = {}
    for key, one in told.items():
        # Rates that the page computes are in brackets, and may have hyphens.
        name, _, member = key.partition("-[") if "-[" in key else key.rpartition("-")
        if not name or not isinstance(one, dict):
            dump.skipped["series of an unknown form"] += 1
        elif "-[" in key:
            dump.skipped["rates computed by webrtc-internals"] += 1
        else:
            members.setdefault(whole(name), {})[whole(member)] = one
    made = {name: _statistics(name, series, dump) for name, series in members.items()}
    return {name: one for name, one in made.items() if one is not None}


def _statistics(name: str, series: dict[str, Any], dump: Dump) -> Statistics | None:
    kinds = (one["statsType"] for one in series.values() if isinstance(one.get("statsType"), str))
    guessed = next((kind for prefix, kind in TYPES.items() if name.startswith(prefix)), "")
    made = Statistics(name, whole(next(kinds, guessed)))
    values = {member: _list(one.get("values")) for member, one in series.items()}
    if any(it is not None and len(it) >= KEPT for it in values.values()):
        note = f"webrtc-internals keeps the last {KEPT} samples: earlier ones are not in the dump"
        if note not in dump.notes:
            dump.notes.append(note)
    times = [_milliseconds(it) for it in values.pop("timestamp", None) or []]
    stated = [it for it in times if it is not None]
    if len(stated) < len(times) or any(b < a for a, b in pairwise(stated)):
        dump.skipped["series with times out of order"] += len(series)
        return None
    if not stated:
        stated = _even([(series[member], it) for member, it in values.items() if it])
        note = "values have no times of their own: samples are taken to be evenly spaced"
        if stated and note not in dump.notes:
            dump.notes.append(note)
    made.times_ms = stated
    for member, it in values.items():
        if it is None:
            dump.skipped["series of an unknown form"] += 1
        elif it and len(it) <= len(stated):
            made.members[member] = (_places(series[member], it, stated), it)
        elif it:
            dump.skipped["series with more values than times"] += 1
    return made if made.members and stated else None


def _list(text: Any) -> list[Any] | None:
    """The values of a member, a list as text."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _even(series: list[tuple[dict[str, Any], list[Any]]]) -> list[float]:
    """Evenly spaced times, of the longest series."""
    one, values = max(series, key=lambda it: len(it[1]), default=({}, []))
    begin, end = _time(one.get("startTime")), _time(one.get("endTime"))
    if begin is None or end is None or end < begin or (end == begin and len(values) > 1):
        return []
    step = (end - begin) / max(1, len(values) - 1)
    return [begin + step * place for place in range(len(values))]


def _places(one: dict[str, Any], values: list[Any], times: list[float]) -> list[int]:
    """The places of values among the times: a member may begin later, or end earlier."""
    first, count = len(times) - len(values), len(values)
    begin = _time(one.get("startTime"))
    if first and begin is not None:
        # Text has whole milliseconds.
        first = min(first, bisect_left(times, begin - 1.0))
    return [*range(first, first + count)]


def _time(text: Any) -> float | None:
    """A time of a dump in milliseconds since 1970."""
    if not isinstance(text, str):
        return _milliseconds(text)
    try:
        return datetime.fromisoformat(text).timestamp() * 1e3
    except (ValueError, OverflowError):
        return None


STATES = ("iceconnectionstatechange", "connectionstatechange", "signalingstatechange")


def _changes(log: Any) -> Iterator[tuple[float, str, str]]:
    """The changes of states in the log of a connection; newer versions add ``on`` to the names."""
    for one in log if isinstance(log, list) else ():
        kind = one.get("type") if isinstance(one, dict) else None
        name = kind.removeprefix("on") if isinstance(kind, str) else ""
        time = _time(one.get("timestamp", one.get("time"))) if name in STATES else None
        if time is not None:
            yield time, name, whole(str(one.get("value", "")).strip('"'))


def _checked(dump: Dump) -> Dump:
    """The dump, if its times are those of one call."""
    times = [
        it
        for connection in dump.connections
        for one in connection.statistics.values()
        for it in (one.times_ms[0], one.times_ms[-1])
    ]
    if max(times) - min(times) > LONGEST_MS:
        raise DumpError(
            f"has times from {min(times):.0f} to {max(times):.0f} ms, more than a year apart:"
            " record timestamps of one clock"
        )
    return dump
