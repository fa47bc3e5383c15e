"""When packets of RTP left a node, by the kernel: a command at a node of an emulation.

    python wire.py FILE

Writes lines of microseconds of the monotonic clock, which is that of the RTC event log, SSRC and
number of each packet that leaves, until it is ended.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from pathlib import Path

ALL, TIMESTAMPS = 3, 35
"""``ETH_P_ALL`` and ``SO_TIMESTAMPNS``."""
FAMILY_V4, UDP = 0x0800, 17


def main(file: str) -> None:
    """Write until the end."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL)) as packets:
        packets.setsockopt(socket.SOL_SOCKET, TIMESTAMPS, 1)
        packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        with Path(file).open("w", buffering=1) as out:
            while True:
                data, told, _, source = packets.recvmsg(2048, 64)
                if source[2] != socket.PACKET_OUTGOING or source[1] != FAMILY_V4 or data[9] != UDP:
                    continue
                rtp = data[28:]
                if len(rtp) < 12 or rtp[0] >> 6 != 2 or 192 <= rtp[1] < 224:
                    continue
                now = time.time_ns() - time.monotonic_ns()
                seconds, nanos = struct.unpack("qq", told[0][2])
                number, ssrc = struct.unpack_from(">H4xI", rtp, 2)
                out.write(f"{(seconds * 10**9 + nanos - now) // 1000} {ssrc} {number}\n")


if __name__ == "__main__":
    main(sys.argv[1])
