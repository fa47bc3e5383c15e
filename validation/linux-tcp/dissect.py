"""A captured conversation in tshark: verifies every checksum and collects all expert items."""

from __future__ import annotations

import collections
from pathlib import Path

import headers
from matrix import PORT

# Besides headers.TCP_FIELDS; tshark returns a field only once.
FIELDS = ("tcp.checksum.status", "ip.checksum.status", "_ws.expert.group",
          "tcp.options.sack.count", "tcp.checksum")  # fmt: skip
# epan/proto.h: notes on sequence numbers (retransmissions and the like) are not faults, nor are
# comments, which we wrote ourselves.
GROUPS = {0x01: "Checksum", 0x04: "Request", 0x05: "Undecoded", 0x06: "Reassemble",
          0x07: "Malformed", 0x09: "Protocol", 0x0A: "Security"}  # fmt: skip
# RFC 9293 §3.1
FIN, RST = 0x1, 0x4
# epb_flags
INBOUND = "0x00000001"
# The payload is random bytes, which tshark might dissect as some protocol.
PAYLOAD = f"tcp.port=={PORT},data"


def read(capture: Path) -> dict:
    """Findings of tshark on the capture of our side, without lost packets, and the header checks.

    Both come from one run of tshark, which takes up to a minute for a capture with disorder.
    """
    options = ["-d", PAYLOAD, "-Y", "tcp"]
    for name in ("tcp.check_checksum", "ip.check_checksum"):
        options += ["-o", f"{name}:TRUE"]
    values = headers.TcpHeaders()
    items: collections.Counter[str] = collections.Counter()
    ways = {"sent": collections.Counter[str](), "received": collections.Counter[str]()}
    bad = packets = all_ones = early_resets = 0
    closed = set()
    for row in headers.rows(capture, [*FIELDS, *headers.TCP_FIELDS], *options):
        direction, comment, tcp, ip, groups, blocks, checksum, *header = row
        values.add(direction, comment, header)
        _, length, flags, *_ = header
        packets += 1
        inbound = direction == INBOUND
        said = collections.Counter(
            GROUPS.get(int(group) >> 24) for group in groups.split(",") if group
        )
        if inbound and tcp == "0" and checksum == "0xffff":
            # Linux writes a TCP checksum of 0 as 0xffff, as UDP must: both are equivalent.
            all_ones += 1
            said["Checksum"] -= 1
            tcp = "1"
        if int(flags, 16) & FIN:
            closed.add(direction)
        if int(flags, 16) & RST and len(closed) < 2:
            early_resets += 1
        # IPv6 has no checksum.
        bad += tcp != "1" or ip not in ("1", "")
        items.update({name: count for name, count in said.items() if name and count})
        if inbound and comment.startswith("lost"):
            continue
        way = ways["received" if inbound else "sent"]
        way["segments"] += 1
        way["data_segments"] += int(length) > 0
        way["data_bytes"] += int(length)
        way["sack_blocks"] += int(blocks or 0)
    counts = {name: dict(way) for name, way in ways.items()}
    found = {"packets": packets, "bad_checksums": bad, "all_ones": all_ones}
    found |= {"early_resets": early_resets, "items": dict(items)} | counts
    return {**found, "headers": values.result()}
