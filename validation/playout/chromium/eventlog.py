"""Reads RTP arrivals and playout of audio from an RTC event log of libwebrtc, format 2.

The format is described by ``logging/rtc_event_log/rtc_event_log2.proto`` and
``logging/rtc_event_log/encoder/{delta_encoding,var_int}.cc`` of libwebrtc. A log is a sequence of
messages in the wire encoding of protocol buffers. A batch of events has the fields of its first
event, and for each field that changes a string of bits with the differences of the others. Times
are milliseconds of the clock of the process; the log begins with one such time and the UTC time of
the same instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

INCOMING_RTP, AUDIO_PLAYOUT, BEGIN_LOG = 2, 6, 16
"""Fields of ``EventStream``."""
VERSION = 2
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types of protocol buffers."""
DELTAS = 100
"""The number of a field's differences is greater by this."""
COUNT_OF_RTP, COUNT_OF_PLAYOUT = 11, 3
"""Fields with the number of events after the first."""
WORD = 64

Fields = dict[int, int | bytes]


class EventLogError(ValueError):
    """The log is damaged, or in another format."""


class Packet(NamedTuple):
    """An RTP packet that arrived; its size is that of the payload without padding, in bytes."""

    arrival_ms: int
    marker: int
    payload_type: int
    sequence: int
    timestamp: int
    ssrc: int
    size: int


class Playout(NamedTuple):
    """10 ms of sound were taken from the jitter buffer of a stream."""

    time_ms: int
    ssrc: int


@dataclass
class EventLog:
    """What was read, each list in order of time.

    Attributes:
        begin_ms: when the log began, by its clock.
        begin_utc_ms: the same instant, in milliseconds since 1970.
        packets: RTP packets received, of all streams.
        playouts: sound played, of all streams.
    """

    begin_ms: int
    begin_utc_ms: int
    packets: list[Packet] = field(default_factory=list)
    playouts: list[Playout] = field(default_factory=list)


def read(data: bytes) -> EventLog:
    """Read a log. The last message may be cut, as when the process was ended.

    Raises:
        EventLogError: if the log does not begin as one of format 2, or is damaged.
    """
    log = None
    for number, value in _fields(data, may_be_cut=True):
        if log is None and number != BEGIN_LOG:
            break
        if number not in {BEGIN_LOG, INCOMING_RTP, AUDIO_PLAYOUT}:
            continue
        if not isinstance(value, bytes):
            raise EventLogError(f"damaged RTC event log: field {number} is not a message")
        batch = dict(_fields(value))
        if number == BEGIN_LOG:
            if batch.get(2) != VERSION:
                raise EventLogError(
                    f"RTC event log of version {batch.get(2)}; only version {VERSION} can be read"
                )
            log = log or EventLog(_number(batch, 1), _number(batch, 3))
        elif log is not None and number == INCOMING_RTP:
            rows = _events(batch, (1, 2, 3, 4, 5, 6, 8), COUNT_OF_RTP)
            log.packets += [Packet(*row) for row in rows]
        elif log is not None:
            rows = _events(batch, (1, 2), COUNT_OF_PLAYOUT)
            log.playouts += [Playout(*row) for row in rows]
    if log is None:
        raise EventLogError(
            "no RTC event log: it does not begin with its version"
            " (Chromium writes one with --webrtc-event-logging=DIR)"
        )
    log.packets.sort(key=attrgetter("arrival_ms"))
    log.playouts.sort(key=attrgetter("time_ms"))
    return log


def _fields(data: bytes, *, may_be_cut: bool = False) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, in their order."""
    at = 0
    while at < len(data):
        try:
            tag, at = _varint(data, at)
            number, kind = tag >> 3, tag & 7
            if kind == VARINT:
                value, at = _varint(data, at)
                yield number, value
                continue
            if kind == BYTES:
                length, at = _varint(data, at)
            elif kind in {FIXED32, FIXED64}:
                length = 4 if kind == FIXED32 else 8
            else:
                raise EventLogError(f"damaged RTC event log: field {number} has wire type {kind}")
            if at + length > len(data):
                raise IndexError
        except IndexError:
            if may_be_cut:
                return
            raise EventLogError("damaged RTC event log: a message ends within a field") from None
        content = data[at : at + length]
        at += length
        yield number, content if kind == BYTES else int.from_bytes(content, "little")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An integer of seven bits a byte, least first, and where it ends."""
    value = 0
    for shift in range(0, WORD, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise EventLogError("damaged RTC event log: an integer of more than ten bytes")


def _number(message: Fields, number: int) -> int:
    value = message.get(number)
    if not isinstance(value, int):
        raise EventLogError(f"damaged RTC event log: field {number} is missing")
    return value


def _events(batch: Fields, numbers: tuple[int, ...], counted: int) -> Iterator[tuple[int, ...]]:
    """The events of a batch, each with the values of these fields."""
    count = _number(batch, counted) if counted in batch else 0
    return zip(*(_column(batch, number, count) for number in numbers), strict=True)


def _column(batch: Fields, number: int, count: int) -> list[int]:
    """A field of all events of a batch: ``count`` after the first."""
    base = _number(batch, number)
    deltas = batch.get(number + DELTAS, b"")
    if not isinstance(deltas, bytes):
        raise EventLogError(f"damaged RTC event log: field {number + DELTAS} is not a string")
    # No differences: all events have the value of the first.
    return [base, *_values(base, deltas, count)] if deltas else [base] * (count + 1)


def _values(base: int, deltas: bytes, count: int) -> Iterator[int]:
    """The values after ``base``, from bits, the first of which is the greatest of the first byte.

    A header of two bits tells whether the widths are given; the first width is that of each
    difference. By default, differences are not negative, and values have 64 bits.
    """
    bits, left = int.from_bytes(deltas, "big"), 8 * len(deltas)

    def take(width: int) -> int:
        nonlocal left
        left -= width
        if left < 0:
            raise EventLogError("damaged RTC event log: differences are missing")
        return bits >> left & (1 << width) - 1

    form = take(2)
    width = take(6) + 1
    is_signed, is_optional, value_width = (take(1), take(1), take(6) + 1) if form else (0, 0, WORD)
    # Only header extensions, which are not read here, can be absent from packets.
    if form > 1 or is_optional or width > value_width:
        raise EventLogError(f"damaged RTC event log: differences of unknown form {form}")
    for _ in range(count):
        delta = take(width)
        if is_signed and delta >> (width - 1):
            delta -= 1 << width
        base = (base + delta) & (1 << value_width) - 1
        yield base
