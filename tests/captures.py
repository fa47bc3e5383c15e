"""Captures written byte by byte."""

import struct

HERE, THERE = bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))


def ipv4(protocol, payload, *, number=0, fragment=0, hops=64, total=None, back=False):
    ends = THERE + HERE if back else HERE + THERE
    length = 20 + len(payload) if total is None else total
    return (
        struct.pack(">BBHHHBBH", 0x45, 0, length, number, fragment, hops, protocol, 0)
        + ends + payload
    )  # fmt: skip


def udp(payload, **more):
    return ipv4(17, struct.pack(">HHHH", 4000, 4002, 8 + len(payload), 0) + payload, **more)


def tcp(seq, size, flags=0x10, **more):
    head = struct.pack(">HHIIBBHHH", 4000, 80, seq, 1, 5 << 4, flags, 9, 0, 0)
    return ipv4(6, head + bytes(size), **more)


def media(number, stamp, kind=0, size=160):
    return udp(struct.pack(">BBHII", 0x80, kind, number % 65536, stamp % 2**32, 7) + bytes(size))


def written(path, packets, link=101, most=None):
    """Frames with their times in seconds, as pcap."""
    out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, link)]
    for time, data in sorted(packets, key=lambda packet: packet[0]):
        seconds, nanos = divmod(round((1000 + time) * 1e9), 10**9)
        kept = data[:most]
        out += [struct.pack("<IIII", seconds, nanos, len(kept), len(data)), kept]
    path.write_bytes(b"".join(out))
    return path
