"""Captures that end in the middle of a packet, as those copied while they were written."""

from __future__ import annotations

import struct

SECTION = b"\x0a\x0d\x0d\x0a"
HEADERS = {
    b"\xd4\xc3\xb2\xa1": ("<", 16), b"\xa1\xb2\xc3\xd4": (">", 16), b"\x4d\x3c\xb2\xa1": ("<", 16),
    b"\xa1\xb2\x3c\x4d": (">", 16), b"\x34\xcd\xb2\xa1": ("<", 24), b"\xa1\xb2\xcd\x34": (">", 24),
}  # fmt: skip
"""Byte order, and length of the header of a packet, of pcap."""
LONGEST = {False: 1 << 18, True: 1 << 24}
"""A longer packet of pcap or block of pcapng, which Wireshark refuses, too, is no cut one."""


def whole_bytes(data: bytes) -> int | None:
    """How many bytes there are before the packet that is cut; None if the file is damaged."""
    at, is_pcapng = 0, data.startswith(SECTION)
    order, head = ("<", 12) if is_pcapng else HEADERS[data[:4]]
    at = 0 if is_pcapng else 24
    while at < len(data):
        if is_pcapng and data.startswith(SECTION, at):
            order = ">" if data[at + 8 : at + 12] == b"\x1a\x2b\x3c\x4d" else "<"
        if at + head > len(data):
            return at
        (length,) = struct.unpack_from(f"{order}I", data, at + (4 if is_pcapng else 8))
        size = length if is_pcapng else head + length
        if size > LONGEST[is_pcapng] or size < head:
            return None
        if at + size > len(data):
            return at
        at += size
    return at
