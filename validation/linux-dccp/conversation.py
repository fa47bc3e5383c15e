"""A captured conversation as text: tshark reads the packets, this file describes them.

Only tshark's interpretation of the bytes is used, so that the page shows our packets as seen by an
independent program (RFC 4340 §5 for the types, §5.8 and §6 for options; RFC 4342 §8, RFC 6323).
"""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import headers

HEADS = "time (s) | from | type | seq | ack | data | in words, and options"
ALIGN = "rllrrrl"

TYPES = {
    0: ("Request", "requests a connection"),
    1: ("Response", "accepts"),
    2: ("Data", "data"),
    3: ("Ack", "acknowledges"),
    4: ("DataAck", "data, and acknowledges"),
    5: ("CloseReq", "asks the client to close"),
    6: ("Close", "closes"),
    7: ("Reset", "ends the connection"),
    8: ("Sync", "number out of window, resynchronise"),
    9: ("SyncAck", "gives it"),
    10: ("Listen", "opens the way for a client"),
}
CODES = [
    "Unspecified", "Closed", "Aborted", "No Connection", "Packet Error", "Option Error",
    "Mandatory Error", "Connection Refused", "Bad Service Code", "Too Busy", "Bad Init Cookie",
    "Aggression Penalty",
]  # fmt: skip
FEATURES = {
    1: "CCID",
    2: "Allow Short Seqnos",
    3: "Sequence Window",
    4: "ECN Incapable",
    5: "Ack Ratio",
    6: "Send Ack Vector",
    7: "Send NDP Count",
    8: "Minimum Checksum Coverage",
    9: "Check Data Checksum",
    128: "Send RTT Estimate",
    192: "Send Loss Event Rate",
}
CHANGES = {32: "Change L", 33: "Confirm L", 34: "Change R", 35: "Confirm R"}
NON_NEGOTIABLE = {3, 5}
MANDATORY = 1
STATES = {0: "received", 1: "marked", 2: "reserved", 3: "not received"}


@dataclass(kw_only=True)
class Line(headers.DccpPacket):
    """One packet."""

    words: str
    checksum_good: bool


def read(capture: Path) -> tuple[list[Line], int]:
    """The packets of a capture of our side, and the number that tshark calls malformed."""
    command = ["tshark", "-r", str(capture), "-T", "pdml", "-o", "dccp.check_checksum:TRUE"]
    command += ["-o", "ip.check_checksum:TRUE"]
    pdml = subprocess.run(command, check=True, capture_output=True).stdout
    packets = ElementTree.fromstring(pdml).findall("packet")
    malformed = sum(packet.find("proto[@name='_ws.malformed']") is not None for packet in packets)
    lines = [
        packet_line(packet) for packet in packets if packet.find("proto[@name='dccp']") is not None
    ]
    return lines, malformed


def packet_line(packet: ElementTree.Element) -> Line:
    """One packet, from its tshark tree."""

    def shown(name: str) -> str | None:
        found = packet.find(f".//field[@name='{name}']")
        return None if found is None else found.get("show")

    def number(name: str) -> int | None:
        text = shown(name)
        return None if text is None else int(text, 0)

    kind = number("dccp.type") or 0
    header = 4 * (number("dccp.data_offset") or 0)
    whole = attribute(packet, "proto[@name='geninfo']/field[@name='len']", "size")
    data = whole - attribute(packet, "proto[@name='dccp']", "pos") - header
    words = TYPES[kind][1]
    if kind in (0, 1):
        words += f", service {number('dccp.service_code')}"
    if kind == 7:
        code = number("dccp.reset_code") or 0
        parts = [number(f"dccp.data{i}") or 0 for i in (1, 2, 3)]
        words += f": {CODES[code]} ({code})"
        if any(parts):
            words += f", about {parts}"
    status = shown("dccp.checksum.status")
    # epb_flags: 1 inbound, 2 outbound.
    return Line(
        seconds=float(shown("frame.time_relative") or 0),
        ours=(number("frame.packet_flags_direction") or 0) == 2,
        kind=kind,
        seq=number("dccp.seq_raw") or 0,
        ack=number("dccp.ack_raw"),
        words=words,
        raw=raw_options(packet),
        data_bytes=max(data, 0) if kind in (0, 1, 2, 4) else 0,
        comment=shown("frame.comment") or "",
        checksum_good=status == "1",
    )


def attribute(packet: ElementTree.Element, path: str, name: str) -> int:
    """A number at this place in tshark's tree; 0 if missing."""
    found = packet.find(path)
    return 0 if found is None else int(found.get(name, "0"))


def raw_options(packet: ElementTree.Element) -> list[tuple[int, bytes]]:
    """Type and value of each option except Padding."""
    found = (
        bytes.fromhex(field.get("value", ""))
        for field in packet.iterfind(".//field[@name='dccp.option_type']")
    )
    return [(raw[0], raw[2:] if raw[0] >= 32 else b"") for raw in found if raw and raw[0] > 0]


def options(raw: list[tuple[int, bytes]]) -> list[str]:
    """The options as text; Mandatory is part of the next one."""
    before = [0, *(kind for kind, _ in raw)]
    return [
        ("Mandatory " if last == MANDATORY else "") + option(kind, value)
        for last, (kind, value) in zip(before, raw, strict=False)
        if kind != MANDATORY
    ]


def option(kind: int, value: bytes) -> str:
    """One option as text."""
    number = int.from_bytes(value, "big")
    if kind in CHANGES:
        return f"{CHANGES[kind]}({feature(value)})"
    if kind in (38, 39):
        runs = ", ".join(f"{(cell & 63) + 1} {STATES[cell >> 6]}" for cell in value)
        return f"Ack Vector({runs})"
    if kind == 42:
        elapsed = int.from_bytes(value[4:], "big") / 100
        return f"Timestamp Echo({int.from_bytes(value[:4], 'big')}, after {elapsed:g} ms)"
    if kind == 43:
        return f"Elapsed Time({number / 100:g} ms)"
    if kind == 192:
        rate = "no loss" if number == 0xFFFFFFFF else f"1/{number}"
        return f"Loss Event Rate({rate})"
    if kind == 193:
        return f"Loss Intervals({intervals(value)})"
    if kind == 194:
        return f"Receive Rate({number} B/s)"
    names = {2: "Slow Receiver", 36: "Init Cookie", 37: "NDP Count", 40: "Data Dropped",
             41: "Timestamp", 44: "Data Checksum", 128: "RTT Estimate"}  # fmt: skip
    name = names.get(kind, f"option {kind}")
    return name if kind < 32 else f"{name}({number})"


def feature(value: bytes) -> str:
    """The content of a Change or Confirm option."""
    name = FEATURES.get(value[0], f"feature {value[0]}")
    rest = value[1:]
    if not rest:
        return name
    if value[0] in NON_NEGOTIABLE:
        return f"{name} {int.from_bytes(rest, 'big')}"
    return f"{name} {', '.join(map(str, rest))}"


def intervals(value: bytes) -> str:
    """RFC 4342 §8.6: a skip length, then lossless, loss and data lengths."""
    parts = (f"{it[0]} + {it[1]} of {it[2]} data" for it in headers.loss_intervals(value))
    return f"skip {value[0]}; " + "; ".join(parts)


def trace(lines: list[Line], most: int = 30) -> list[list[str]]:
    """Rows under `HEADS`, one for a packet; the middle of a long conversation is summarised."""
    head, tail = (most * 2 // 3, most // 3) if len(lines) > most else (len(lines), 0)
    first = {ours: next((line.seq for line in lines if line.ours == ours and line.kind != 7),
                        next((line.seq for line in lines if line.ours == ours), 0))
             for ours in (True, False)}  # fmt: skip
    rows = [row(line, first) for line in lines]
    if tail:
        rows[head:-tail] = [["…", *[""] * 5, middle(lines[head:-tail])]]
    return rows


def row(line: Line, first: dict[bool, int]) -> list[str]:
    """A row of the table; numbers are relative to the first of their side."""

    def relative(number: int | None, ours: bool) -> str:
        if number is None:
            return ""
        ahead = number - first[ours]
        return f"{ahead}" if 0 <= ahead < 1 << 24 else f"{number} (raw)"

    words = "; ".join([line.words, *options(line.raw)])
    return [
        f"{line.seconds:.4f}",
        "ours" if line.ours else "kernel",
        TYPES[line.kind][0],
        relative(line.seq, line.ours),
        relative(line.ack, not line.ours),
        str(line.data_bytes or ""),
        f"{words} **[{line.comment}]**" if line.comment else words,
    ]


def middle(lines: list[Line]) -> str:
    """A summary of the rows that a table omits."""
    counts = {
        who: Counter(TYPES[line.kind][0] for line in lines if line.ours == who)
        for who in (True, False)
    }
    ours, theirs = (
        ", ".join(f"{count} {kind}" for kind, count in counts[who].items()) or "nothing"
        for who in (True, False)
    )
    return f"and so on: ours {ours}; the kernel's {theirs}"
