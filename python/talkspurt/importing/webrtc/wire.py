"""The wire encoding of RTC event logs: messages of protocol buffers, and batches of values.

By ``logging/rtc_event_log/encoder/{delta_encoding,blob_encoding,var_int}.cc`` of libwebrtc.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from talkspurt._lazy import np

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.uint64]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types of protocol buffers."""
WORD = 64

Fields = dict[int, int | bytes]


class EventLogError(ValueError):
    """The log is damaged, or in another format; the end of a sentence about it."""


def message(value: int | bytes) -> Fields:
    """The fields of a message by number; of several, the last."""
    if not isinstance(value, bytes):
        raise EventLogError("a number, and no message")
    found: Fields = {}
    for _, field, content in fields(value):
        if field is None:
            raise EventLogError("a message ends within a field")
        found[field] = content
    return found


def fields(data: bytes) -> Iterator[tuple[int, int | None, int | bytes]]:
    """Where each field of a message begins, its number and its value.

    The last number is None if the message ends within a field.
    """
    at = 0
    while at < len(data):
        begin = at
        try:
            tag, at = varint(data, at)
            number, kind = tag >> 3, tag & 7
            if kind == VARINT:
                value, at = varint(data, at)
                yield begin, number, value
                continue
            if kind == BYTES:
                length, at = varint(data, at)
            elif kind in {FIXED32, FIXED64}:
                length = 4 if kind == FIXED32 else 8
            else:
                raise EventLogError(f"field {number} has the unknown wire type {kind}")
        except IndexError:
            length = len(data) + 1
        if at + length > len(data):
            yield begin, None, 0
            return
        content = data[at : at + length]
        at += length
        yield begin, number, content if kind == BYTES else int.from_bytes(content, "little")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An integer of seven bits a byte, least first, and where it ends."""
    value = 0
    for shift in range(0, WORD, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << WORD) - 1, at
    raise EventLogError("an integer of more than ten bytes")


def number(message: Fields, field: int, bits: int, default: int | None = None) -> int:
    """A field that is a number of at most so many bits."""
    value = message.get(field, default)
    if not isinstance(value, int):
        raise EventLogError(f"field {field} is missing or no number")
    if value >> bits:
        raise EventLogError(f"field {field} is {value}, and has at most {bits} bits")
    return value


def values(base: int | None, deltas: bytes, count: int) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """The values after ``base`` that are there, and which of ``count`` are there.

    They come from bits, the first of which is the greatest of the first byte. A header of two bits
    tells whether the widths are given; the first width is that of each difference. By default,
    differences are not negative, no value is absent, and values have 64 bits. A bit each tells
    which are there; if the first event has none, the first that is there is a varint.
    """
    form, width = deltas[0] >> 6, (deltas[0] & 63) + 1
    is_signed, is_optional, value_width, at = False, False, WORD, 8
    if form == 1 and len(deltas) > 1:
        is_signed, is_optional = bool(deltas[1] & 0x80), bool(deltas[1] & 0x40)
        value_width, at = (deltas[1] & 63) + 1, 16
    elif form:
        raise EventLogError(f"differences of unknown form {form}")
    if width > value_width or (base is not None and base >> value_width):
        raise EventLogError(f"values of {value_width} bits with differences of {width}")
    octets = np.frombuffer(deltas, np.uint8)
    are_there = np.ones(count, np.bool_)
    if is_optional:
        if at + count > 8 * len(deltas):
            raise EventLogError("differences are missing")
        are_there = np.unpackbits(octets[at // 8 :], count=count).astype(np.bool_)
        at += count
    elif base is None:
        raise EventLogError("differences to no value")
    n = int(are_there.sum())
    begun: list[int] = []
    if base is None and n:
        base, at = varint_of_bits(deltas, at)
        begun, n = [base], n - 1
    if at + n * width > 8 * len(deltas):
        raise EventLogError("differences are missing")
    values = np.cumsum(words(octets, at, width, n, is_signed), dtype=np.uint64)
    values = (values + np.uint64(base or 0)) & np.uint64((1 << value_width) - 1)
    return np.concatenate([np.array(begun, np.uint64), values]), are_there


def words(
    octets: npt.NDArray[np.uint8], at: int, width: int, count: int, is_signed: bool
) -> Numbers:
    """Successive numbers of so many bits each, from this bit on."""
    places = at + width * np.arange(count, dtype=np.int64)
    bytes_, bits = places >> 3, (places & 7).astype(np.uint64)
    longer = np.concatenate([octets, np.zeros(WORD // 8 + 1, np.uint8)]).astype(np.uint64)
    words = np.zeros(count, np.uint64)
    for more in range(8):
        words = words << np.uint64(8) | longer[bytes_ + more]
    words = words << bits | longer[bytes_ + 8] >> (np.uint64(8) - bits)
    over = WORD - width
    found: Numbers = words >> np.uint64(over)
    if is_signed:
        found = (words.view(np.int64) >> np.int64(over)).view(np.uint64)
    return found


def varint_of_bits(deltas: bytes, at: int) -> tuple[int, int]:
    """A varint that begins at this bit, and the bit after it."""
    window = int.from_bytes(deltas[at // 8 : at // 8 + 11].ljust(11, b"\0"), "big")
    data = ((window << at % 8) & (1 << 88) - 1).to_bytes(11, "big")
    value, length = varint(data, 0)
    return value, at + 8 * length


def blobs(data: bytes, count: int) -> list[bytes]:
    """So many strings: first their lengths, then they."""
    found, lengths, at = [], [], 0
    try:
        for _ in range(count):
            length, at = varint(data, at)
            lengths.append(length)
    except IndexError:
        raise EventLogError("strings end within a length") from None
    if at + sum(lengths) != len(data):
        raise EventLogError("strings have not the length of their parts")
    for length in lengths:
        found.append(data[at : at + length])
        at += length
    return found
