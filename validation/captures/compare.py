#!/usr/bin/env python3
"""Fills docs/validation/captures.md: `talkspurt import` beside tshark, on public captures.

.venv/bin/python validation/captures/compare.py FOLDER

FOLDER/OWNER/NAME is a clone of the repository OWNER/NAME on GitHub; all captures in it are read.
Needs tshark and capinfos. Half an hour for the captures of the page; `--keep FOLDER` keeps what
tshark says, and then another run takes five minutes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

import talkspurt
from talkspurt import _core
from talkspurt.errors import BadInputError
from talkspurt.importing import rtp
from talkspurt.importing.cut import whole_bytes

sys.path.insert(0, str(Path(__file__).resolve().parent))
from page import COMPARED, UNEXPLAINED, Row, table_row, write

HEURISTIC = ("--enable-heuristic", "rtp_udp")
"""Any UDP that looks like RTP to tshark; by default, only what signalling announces."""
FIELDS = (
    "frame.number", "frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst",
    "udp.srcport", "udp.dstport", "tcp.srcport",
    "tcp.dstport", "sctp.srcport", "sctp.dstport", "dccp.srcport", "dccp.dstport",
    "rtp.ssrc", "rtp.seq", "rtp.p_type", "rtp.version", "rtp.timestamp", "tcp.stream",
)  # fmt: skip
TRANSPORTS = ("udp", "tcp", "sctp", "dccp")
MAGIC = (
    b"\x0a\x0d\x0d\x0a", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
)  # fmt: skip
MAX_BYTES = 4 << 20
Ends = tuple[str, int, str, int]
Key = tuple[str, int, str, int, int]
"""Sender, receiver, SSRC."""


@dataclass
class Stream:
    """A row of tshark's list of RTP streams, times in milliseconds."""

    packets: int
    lost: int
    jitter_ms: float
    known_clock: bool
    rows: int = 1
    """In the list, one may have several."""


@dataclass
class Frame:
    """What tshark reads in a frame."""

    number: int
    layers: list[str]
    protocol: str | None = None
    ends: Ends | None = None
    ssrc: int | None = None
    seq: int | None = None
    kind: int | None = None
    over: str = ""
    """What carries RTP."""


@dataclass
class Seen:
    """What one run of tshark tells of a file."""

    frames: dict[int, Frame]
    streams: dict[Key, Stream]

    @cached_property
    def packets(self) -> dict[Key, list[Frame]]:
        """The frames of each stream."""
        found: dict[Key, list[Frame]] = {}
        for one in self.frames.values():
            if one.ssrc is not None and one.ends is not None:
                found.setdefault((*one.ends, one.ssrc), []).append(one)
        return found


def tshark(file: Path, *options: str) -> tuple[str, str]:
    """What tshark prints and says of a file."""
    wanted = [word for name in FIELDS for word in ("-e", name)]
    done = subprocess.run(
        ["tshark", "-n", "-r", file, *options, "-T", "fields", *wanted, "-z", "rtp,streams"],
        capture_output=True, text=True, errors="replace", timeout=300,
    )  # fmt: skip
    return done.stdout, done.stderr


def read(text: str) -> Seen:
    """Its frames and streams."""
    frames: dict[int, Frame] = {}
    streams: dict[Key, Stream] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith("===="):
            break
        if line.strip():
            one = frame(dict(zip(FIELDS, line.split("\t"), strict=True)))
            frames[one.number] = one
    for line in lines:
        if " 0x" in line:
            words = line.split()
            at = next(i for i, word in enumerate(words) if word.startswith("0x"))
            # From the right: jitter (max, mean, min), delta (three), lost with its share, packets.
            rest = [word for word in words[at + 1 :] if word != "X"]
            key = (words[2], int(words[3]), words[4], int(words[5]), int(words[at], 16))
            numbers = rest[-9:]
            one = Stream(
                int(numbers[0]), int(numbers[1]), float(numbers[7]), float(numbers[6]) >= 0
            )
            if before := streams.get(key):
                one.packets, one.lost = one.packets + before.packets, one.lost + before.lost
                one.rows = before.rows + 1
            streams[key] = one
    return Seen(frames, streams)


def frame(row: dict[str, str]) -> Frame:
    """The innermost packet of a frame, and its RTP."""
    values = {name: text.split(",") for name, text in row.items() if text}
    taken: Counter[str] = Counter()

    def following(name: str) -> str:
        taken[name] += 1
        found = values.get(name, [])
        return found[taken[name] - 1] if taken[name] <= len(found) else ""

    one = Frame(int(row["frame.number"]), row["frame.protocols"].split(":"))
    hosts = ("", "")
    for layer in one.layers:
        if layer in ("ip", "ipv6"):
            if one.protocol == "tcp":
                break  # in a message
            hosts = following(f"{layer}.src"), following(f"{layer}.dst")
            one.protocol = one.ends = None
        elif layer in ("icmp", "icmpv6"):
            break  # what follows is a quotation
        elif layer in TRANSPORTS:
            ports = following(f"{layer}.srcport"), following(f"{layer}.dstport")
            if all(ports):
                one.protocol = layer
                one.ends = (hosts[0], int(ports[0]), hosts[1], int(ports[1]))
        elif layer == "rtp" and "rtp.ssrc" in values:
            one.ssrc, one.over = int(values["rtp.ssrc"][0], 16), one.protocol or ""
            one.seq, one.kind = (int(values[f"rtp.{name}"][0]) for name in ("seq", "p_type"))
    return one


@dataclass
class Ours:
    """What import says of a file."""

    error: str = ""
    frames: dict[str, int] = field(default_factory=dict)
    rows: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    why: dict[int, str] = field(default_factory=dict)
    streams: dict[Key, dict[str, Any]] = field(default_factory=dict)
    flows: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


def imported(file: Path, data: bytes) -> Ours:
    """The result of import, and the packets behind it."""
    found = Ours()
    try:
        result = talkspurt.import_trace(file)
    except BadInputError as error:
        found.error = str(error).removeprefix(f"{file}: ")
    try:
        packets, _, left_out, *_ = _core.capture(data[: whole_bytes(data)])
    except ValueError:
        return found
    for row in pl.DataFrame(packets).iter_rows(named=True):
        found.rows.setdefault(row["frame"], []).append(row)
    found.why = dict(pl.DataFrame(left_out).iter_rows())
    if found.error:
        return found
    facts = result.manifest["imported"]
    (found.frames,) = facts["frames"]
    flows = {row["name"]: row for row in result.flows.iter_rows(named=True)}
    for name, told in facts["flows"].items():
        kind = name.rpartition("-")[0]
        found.flows.setdefault(kind, []).append(name)
        if "ssrc" in told:
            key = (*end(told["source"]), *end(told["destination"]), told["ssrc"])
            found.streams[key] = {**told, **flows[name], "name": name}
    packets = result.table("packets").filter(pl.col("received_s").is_not_null())
    kinds = packets["flow"].str.replace(r"-\d+$", "")
    found.counts = dict(kinds.value_counts().iter_rows())
    return found


def end(text: str) -> tuple[str, int]:
    """The host and port of a text."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def captures(folder: Path) -> Iterator[tuple[Row, bytes]]:
    """All captures below a folder, unpacked."""
    for clone in sorted(folder.glob("*/*")):
        for file in sorted(clone.rglob("*")):
            inside = file.relative_to(clone)
            if inside.parts[0] == ".git" or not file.is_file() or file.is_symlink():
                continue
            if file.stat().st_size >= MAX_BYTES:
                continue
            data = packed = file.read_bytes()
            if data.startswith(b"\x1f\x8b"):
                data = gzip.decompress(data)
            if data.startswith(MAGIC):
                name = f"{clone.parent.name}/{clone.name}"
                yield Row(name, str(inside), hashlib.sha256(packed).hexdigest()), data


NUMBERS = "no two packets of a source have successive numbers"
ALONE = "one packet between its ends, which nothing announces"
FEW = "most packets between the ends are no RTP"
INTERLEAVED = "RTP in TCP, which import leaves to the TCP flow"
ENCRYPTED = "padding longer than the packet: encrypted; tshark refuses the packet"
ELSE = "tshark reads it as {}; its numbers follow each other"
RESTART = "the source restarts with new numbers"
MARKED = "tshark leaves packets out of its mean, and weighs the others wrongly"
NOT_READ = "import: {}"
TUNNEL = "inside {}, which import does not open"
PARTS = "IP fragments: import counts the packet at the first one, tshark at the last if none lacks"
LARGE = "IP length 0 or jumbo: larger than 64 KiB"
STOPS = "tshark stops: {}"


class Comparison:
    """Of one file."""

    def __init__(self, row: Row, data: bytes, seen: tuple[Seen, Seen], ours: Ours) -> None:
        self.row, self.data, self.ours = row, data, ours
        self.default, self.heuristic = seen
        self.found: dict[Key, list[dict[str, Any]]] = {}
        for rows in ours.rows.values():
            for one in rows:
                if one["rtp_seq"] is not None:
                    self.found.setdefault((*ends(one), one["rtp_ssrc"]), []).append(one)

    def streams(self) -> None:
        """RTP."""
        theirs = {**self.default.streams, **self.heuristic.streams}
        row, ours = self.row, self.ours.streams
        row.announced, row.streams = len(self.default.streams), (len(theirs), len(ours))
        row.both = len(theirs.keys() & ours.keys())
        for key in theirs.keys() - ours.keys():
            row.causes[f"stream of tshark only: {self.missing(key)}"] += 1
        for key in ours.keys() - theirs.keys():
            frames = [self.heuristic.frames.get(one["frame"]) for one in self.found[key]]
            row.causes[f"stream of import only: {self.further(key, frames)}"] += 1
        for key in theirs.keys() & ours.keys():
            self.stream(key, theirs[key], ours[key])

    def missing(self, key: Key) -> str:
        """Why import has no such stream."""
        frames = self.heuristic.packets.get(key) or self.default.packets.get(key, [])
        if any(one.over == "tcp" for one in frames):
            return INTERLEAVED
        if why := {self.ours.why[one.number] for one in frames if one.number in self.ours.why}:
            return NOT_READ.format(" and ".join(sorted(why)))
        if self.ours.error:
            return NOT_READ.format(reason(self.ours.error))
        pair = {key[:2], key[2:4]}
        talk = [rows for other, rows in self.found.items() if {other[:2], other[2:4]} == pair]
        if sum(map(len, talk)) == 1:
            return ALONE
        if not any(1 in steps([one["rtp_seq"] for one in rows]) for rows in talk):
            return NUMBERS
        media = sum(len(rows) for rows in talk if 1 in steps([one["rtp_seq"] for one in rows]))
        every = sum(
            {ends(one)[:2], ends(one)[2:]} == pair
            for rows in self.ours.rows.values() for one in rows
        )  # fmt: skip
        return FEW if 2 * media <= every else UNEXPLAINED

    def further(self, key: Key, frames: list[Frame | None]) -> str:
        """Why tshark does not have packets of a stream of import."""
        numbers = steps([one["rtp_seq"] for one in self.found[key]])
        rows = {one["frame"]: one for one in self.found[key]}
        if all(one is None for one in frames):
            return STOPS.format("it reads fewer frames")
        if all(self.encrypted(rows[one.number]) for one in frames if one):
            return ENCRYPTED
        last = Counter(reading(one.layers) for one in frames if one).most_common(1)[0][0]
        follows = 2 * sum(1 <= step <= 3000 for step in numbers) >= max(1, len(numbers))
        return ELSE.format(last) if follows and last != "data" else UNEXPLAINED

    def encrypted(self, row: dict[str, Any]) -> bool:
        """Whether a packet has the bit of padding, and its last octet is no length of it."""
        at = row["payload_at"]
        if at is None:
            return False
        return bool(self.data[at - row["rtp_header_bytes"]] & 0x20) and not row["rtp_padding_bytes"]

    def stream(self, key: Key, theirs: Stream, ours: dict[str, Any]) -> None:
        """A stream that both have."""
        row, rows = self.row, self.found[key]
        copies = ours.get("duplicate_packets", 0)
        packets = ours["received_packets"] + copies
        row.packets = row.packets[0] + theirs.packets, row.packets[1] + packets
        row.lost = row.lost[0] + theirs.lost, row.lost[1] + ours["lost_packets"] - copies
        if packets != len(rows):
            row.causes[f"packet of RTP: {UNEXPLAINED}"] += abs(packets - len(rows))
        seen = {
            one.number
            for seen in (self.default, self.heuristic)
            for one in seen.packets.get(key, [])
        }
        more = [one for one in rows if one["frame"] not in seen]
        for one in more:
            why = self.further(key, [self.heuristic.frames.get(one["frame"])])
            row.causes[f"packet of RTP of import only: {why}"] += 1
        fewer = seen - {one["frame"] for one in rows}
        for number in fewer:
            why = NOT_READ.format(self.ours.why[number]) if number in self.ours.why else UNEXPLAINED
            row.causes[f"packet of RTP of tshark only: {why}"] += 1
        if more or fewer:
            return
        if theirs.lost != ours["lost_packets"] - copies:
            why = RESTART if "restarts" in ours else UNEXPLAINED
            row.causes[f"loss: {why}"] += 1
        if ours["jitter_s"] is None or not theirs.known_clock or theirs.rows > 1:
            return
        row.jitter_compared += 1
        if abs(1e3 * ours["jitter_s"] - theirs.jitter_ms) <= CLOSE_MS:
            row.jitter_equal += 1
            return
        same = abs(mean_of_tshark(rows, ours) - theirs.jitter_ms) <= CLOSE_MS / 10
        row.causes[f"jitter: {MARKED if same else UNEXPLAINED}"] += 1

    def transports(self) -> None:
        """TCP, SCTP and DCCP, packet by packet."""
        for protocol in COMPARED:
            theirs = {n: one.ends for n, one in self.default.frames.items()
                      if one.protocol == protocol and one.ends}  # fmt: skip
            ours = {n: ends(one) for n, rows in self.ours.rows.items() for one in rows
                    if one["protocol"] == protocol and not self.ours.error}  # fmt: skip
            talks = [len({frozenset((e[:2], e[2:])) for e in of.values()}) for of in (theirs, ours)]
            flows = {name.removesuffix(".reverse") for name in self.ours.flows.get(protocol, [])}
            packets = sum(one["protocol"] == protocol for rows in self.ours.rows.values()
                          for one in rows if not self.ours.error)  # fmt: skip
            # tshark counts copies as packets.
            fewer = packets - self.ours.counts.get(protocol, 0)
            if len(flows) != talks[1] or not 0 <= fewer <= self.ours.frames.get("duplicate", 0):
                self.row.causes[f"flows of {protocol.upper()}: {UNEXPLAINED}"] += 1
            if theirs or ours:
                self.row.transports[protocol] = [len(theirs), len(ours), *talks]
            for number in theirs.keys() | ours.keys():
                if theirs.get(number) != ours.get(number):
                    why = self.different(number, protocol, number in theirs)
                    self.row.causes[f"packet of {protocol.upper()}: {why}"] += 1

    def different(self, number: int, protocol: str, theirs: bool) -> str:
        """Why only one of both has a packet of a protocol, or they name other ends."""
        if self.ours.error:
            return NOT_READ.format(reason(self.ours.error))
        if number not in self.default.frames:
            return STOPS.format("it reads fewer frames")
        layers = self.default.frames[number].layers
        why = self.ours.why.get(number)
        if why in ("reassembled", "IP fragments") if theirs else layers[-1:] == ["data"]:
            return PARTS
        if why:
            return NOT_READ.format(why)
        rows = self.ours.rows.get(number, [])
        if theirs and len(rows) == 1 and rows[0]["protocol"] in layers:
            at = layers.index(rows[0]["protocol"])
            if (inner := layers[at + 1 :]) and protocol in inner:
                return TUNNEL.format(f"{inner[0]} on port {rows[0]['dst_port']}")
        if not theirs and any(one["ip_bytes"] > 65535 for one in rows):
            return LARGE
        return UNEXPLAINED


def reading(layers: list[str]) -> str:
    """What tshark reads behind UDP."""
    rest = layers[len(layers) - layers[::-1].index("udp") :] if "udp" in layers else layers
    return rest[0] if rest else "udp"


def reason(error: str) -> str:
    """That of a frame in an error about all frames, without their number."""
    frames = error.rpartition(" over IP: ")[2]
    return re.sub(r"\b\d+ (frames|packets|IP|encrypted)", r"\1", frames)


def ends(row: dict[str, Any]) -> Ends:
    """Of a packet."""
    return row["src"], row["src_port"], row["dst"], row["dst_port"]


def steps(numbers: list[int]) -> list[int]:
    """Of RTP's numbers."""
    return [(two - one) % 65536 for one, two in pairwise(numbers)]


HALF = 1 << 31
"""Of RTP's timestamps."""
CLOSE_MS = 0.02
"""tshark prints microseconds."""


def mean_of_tshark(rows: list[dict[str, Any]], facts: dict[str, Any]) -> float:
    """The mean jitter of tshark 4.0 as it was found to behave, in milliseconds.

    The estimate is that of RFC 3550 over packets with a known clock whose timestamp is not before
    the last one. Their running mean counts all packets, and marked ones do not update it either.
    """
    clocks = {kind: clock for kind, _, clock in rtp.STATIC}
    clocks[facts["payload_type"]] = facts["clock_hz"]
    estimate = mean = time = 0.0
    stamp = 0
    for place, row in enumerate(rows):
        now, clock = row["time_ns"] / 1e6, clocks.get(row["rtp_type"])
        step = (row["rtp_timestamp"] - stamp + HALF) % (2 * HALF) - HALF
        if place and clock and step >= 0:
            estimate += (abs(now - time - step * 1e3 / clock) - estimate) / 16
            if not row["rtp_marker"]:
                mean = (mean * (place - 1) + estimate) / place
        if clock or not place:
            stamp = row["rtp_timestamp"]
        time = now
    return mean


def compare(row: Row, data: bytes, keep: Path | None) -> None:
    """Both readings of a file."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(data)
        file.flush()
        name = Path(file.name)
        kept = keep / f"{row.sha256}.json.gz" if keep else None
        if kept and kept.exists():
            told = json.loads(gzip.decompress(kept.read_bytes()))
        else:
            told = {"default": tshark(name), "heuristic": tshark(name, *HEURISTIC)}
            words = ["capinfos", "-c", "-T", "-r", name]
            told["capinfos"] = subprocess.run(words, capture_output=True, text=True).stdout
            if kept:
                kept.write_bytes(gzip.compress(json.dumps(told).encode(), 1))
        ours = imported(name, data)
    seen = read(told["default"][0]), read(told["heuristic"][0])
    count = told["capinfos"].rstrip().rpartition("\t")[2]
    row.frames = int(count) if count.isdigit() else len(seen[0].frames)
    row.error = ours.error
    row.imported = sum(n for name, n in ours.frames.items() if name != "captured")
    if not row.error and row.imported != row.frames:
        cut = [line for line in told["default"][1].split("\n") if line.startswith("(")]
        row.causes["frames: " + (STOPS.format(cut[0]) if cut else UNEXPLAINED)] += 1
    both = Comparison(row, data, seen, ours)
    both.streams()
    both.transports()


def main() -> None:
    """Compare, and fill the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path, help="folder for what tshark says")
    parser.add_argument("--only", default="", help="a part of the path; prints, and writes nothing")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    rows = []
    for row, data in captures(options.folder):
        if options.only not in f"{row.repository}/{row.path}":
            continue
        compare(row, data, options.keep)
        rows.append(row)
        if row.causes:
            print(*table_row(row)[:2], *(f"\n    {n} {why}" for why, n in row.causes.items()))
    if not options.only:
        write(options.folder, rows)


if __name__ == "__main__":
    main()
