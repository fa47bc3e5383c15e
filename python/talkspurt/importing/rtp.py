"""Streams of RTP in a capture (RFC 3550): numbers, media times, and the codecs of payload types."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from talkspurt import _core

if TYPE_CHECKING:
    from talkspurt.importing.sessions import Payload

Row = dict[str, Any]

STATIC = _core.rtp_payloads()
"""Payload types of RFC 3551 §6: number, encoding and clock rate."""
CODECS = {
    "PCMU": "pcmu", "PCMA": "pcma", "G723": "g723.1-6.3", "G722": "g722", "G728": "g728",
    "G729": "g729a", "G726-40": "g726-40", "G726-32": "g726-32", "G726-24": "g726-24",
    "G726-16": "g726-16", "OPUS": "opus", "AMR": "amr-12.2",
}  # fmt: skip
"""Codecs of scenarios by encoding name. G.729 and Annex A have one payload (RFC 3551 §4.5.6)."""
CLOCKS = {
    **{name: clock for _, name, clock in STATIC}, "OPUS": 48000, "ILBC": 8000, "AMR": 8000,
    "AMR-WB": 16000, "G726-40": 8000, "G726-32": 8000, "G726-24": 8000, "G726-16": 8000,
    "VP8": 90000, "VP9": 90000, "H264": 90000, "H265": 90000, "AV1": 90000, "EVS": 16000,
    "SPEEX": 8000, "TELEPHONE-EVENT": 8000,
}  # fmt: skip


def unwrapped(numbers: list[int], bits: int) -> list[int]:
    """Numbers that wrap around, extended: each the nearest to the one before."""
    half, whole = 1 << (bits - 1), 1 << bits
    return [*accumulate(numbers, lambda last, new: last + (new - last + half) % whole - half)]


MAX_DROPOUT, MAX_MISORDER = 3000, 100
"""A step of the sequence number from -MAX_MISORDER to MAX_DROPOUT is no restart (RFC 3550 A.1)."""


def numbers(rows: list[Row]) -> tuple[list[int], set[int]]:
    """Numbers of RTP, extended, and where a source that restarted begins.

    By RFC 3550 A.1 a source restarts where two successive numbers follow a large jump. Here the
    timestamp must also differ from what the jump implies: else an outage or a path explains it.
    """
    seqs = [row["rtp_seq"] for row in rows]
    plain = unwrapped(seqs, 16)
    stamps = unwrapped([row["rtp_timestamp"] for row in rows], 32)
    found: list[int] = []
    restarts: set[int] = set()
    shift = begin = 0
    for place, number in enumerate(plain):
        if place:
            step = number - plain[place - 1]
            follows = place + 1 < len(rows) and (seqs[place + 1] - seqs[place]) % 65536 == 1
            if follows and not -MAX_MISORDER <= step <= MAX_DROPOUT:
                before = plain[place - 1] - plain[begin]
                expected = step * (stamps[place - 1] - stamps[begin]) / before if before else 0.0
                if abs(stamps[place] - stamps[place - 1] - expected) > abs(expected) / 2:
                    shift += max(found) + 1 - (number + shift)
                    begin = place
                    restarts.add(place)
        found.append(number + shift)
    return found, restarts


def event_types(rows: list[Row], main: int, names: dict[int, str]) -> set[int]:
    """Types of events in a stream: named so, or dynamic with timestamps that several packets have.

    All packets of an event have the time of its begin, and the last one is sent three times
    (RFC 4733 §2.5.1.2 and 2.5.1.4). Names are in capitals.
    """
    stamps: dict[int, list[int]] = {}
    for row in rows:
        if row["rtp_type"] != main and row["packet"] is not None:
            stamps.setdefault(row["rtp_type"], []).append(row["rtp_timestamp"])
    return {
        kind
        for kind, times in stamps.items()
        if names.get(kind) == "TELEPHONE-EVENT"
        or (kind >= 96 and kind not in names and len(set(times)) < len(times))
    }


STILL_S = 10.0
"""Less cannot be told from a path that holds packets."""


def standstills(rows: list[Row], clock: int) -> tuple[list[tuple[Row, float]], float]:
    """Where timestamps stand still, and for how long; and how far the capture's clock was set back.

    The next frame of the file has the next number and timestamp, and all that follows is later, or
    earlier, than what came before: packets that a path held catch up.
    """
    rows = sorted(rows, key=lambda row: row["frame"])
    stamps = unwrapped([row["rtp_timestamp"] for row in rows], 32)
    transits: list[float] = [
        row["t"] - stamp / clock for row, stamp in zip(rows, stamps, strict=True)
    ]
    before = [*accumulate(transits, min)]
    behind = [*accumulate(reversed(transits), min)][::-1]
    still, back = [], 0.0
    for place, (one, two) in enumerate(pairwise(rows), 1):
        jump = transits[place] - transits[place - 1]
        follows = (two["rtp_seq"] - one["rtp_seq"]) % 65536 == 1
        step = (stamps[place] - stamps[place - 1]) / clock
        if not (follows and 0 <= step < STILL_S):
            continue
        if min(jump, behind[place] - before[place - 1]) > STILL_S:
            still.append((two, jump))
        elif max(jump, behind[place] - before[place - 1]) < -STILL_S:
            back = min(back, jump)
    return still, -back


BACK_S, AHEAD_S = 1.0, 5.0
"""A step of the timestamp by more, backwards or ahead of the time that passed, is a new clock."""


def media_times(rows: list[Row], stamps: list[int], clock: int) -> list[float]:
    """Times since the first packet by the media clock; where another begins, as time passed."""
    times: list[float] = []
    shift = 0.0
    for place, (row, stamp) in enumerate(zip(rows, stamps, strict=True)):
        time = (stamp - stamps[0]) / clock + shift
        if place:
            last = rows[place - 1]
            step, passed = time - times[-1], row["t"] - last["t"]
            jumps = row["order"] == last["order"] + 1 and not -BACK_S <= step <= passed + AHEAD_S
            if row["restart"] or jumps:
                shift += passed - step
                time = times[-1] + passed
        times.append(time)
    return times


LEAST_S, LEAST_STEPS, OFF = 2.0, 20, 1.25
"""Of fewer and shorter steps, and of a smaller factor, a network can be the cause."""


def other_pace(rows: list[Row]) -> tuple[float, float] | None:
    """Seconds of media, and in which they passed, if both the whole and most packets disagree."""
    pairs = [
        (two["media_s"] - one["media_s"], two["t"] - one["t"])
        for one, two in pairwise(rows)
        if two["order"] == one["order"] + 1 and two["media_s"] > one["media_s"]
    ]
    if len(pairs) < LEAST_STEPS:
        return None
    media = [row["media_s"] for row in rows]
    spans = max(media) - min(media), rows[-1]["t"] - rows[0]["t"]
    steps = statistics.median(step for step, _ in pairs), statistics.median(t for _, t in pairs)
    slow = all(t > OFF * media for media, t in (spans, steps))
    fast = all(media > OFF * t for media, t in (spans, steps))
    return spans if spans[0] > LEAST_S and (slow or fast) else None


def media_bytes(row: Row) -> int:
    """Bytes behind the header of RTP, without padding."""
    return int(row["payload_bytes"]) - int(row["rtp_header_bytes"]) - int(row["rtp_padding_bytes"])


def sounding(rows: list[Row]) -> list[Row]:
    """The packets with sound of their own: no padding alone, which takes numbers like any other.

    Encrypted, padding is known by its timestamp, which is that of the packet before.
    """
    first: dict[float, Row] = {}
    for row in sorted(rows, key=lambda row: row["order"]):
        if media_bytes(row) > 0:
            first.setdefault(row["media_s"], row)
    kept = {id(row) for row in first.values()}
    return [row for row in rows if id(row) in kept]


def frame_s(rows: list[Row], stamps: list[int], clock: int) -> float | None:
    """The length of a packet: the most frequent step of the timestamp between successive ones."""
    steps = Counter(
        after - before
        for (one, before), (two, after) in pairwise(zip(rows, stamps, strict=True))
        if (two["rtp_seq"] - one["rtp_seq"]) % 65536 == 1 and after > before
    )
    return steps.most_common(1)[0][0] / clock if steps else None


@dataclass(frozen=True)
class Red:
    """Redundant audio data (RFC 2198) of a stream.

    Attributes:
        primary: the payload type of the primary encoding.
        blocks: redundant blocks in all packets.
        copies: those of most packets.
    """

    primary: int
    blocks: int
    copies: int


def redundancy(rows: list[Row], kind: int, data: bytes) -> Red | None:
    """What packets of RED hold; None if none of their payload was captured."""
    primaries, blocks = Counter[int](), Counter[int]()
    for row in rows:
        if row["rtp_type"] != kind or row["payload_at"] is None:
            continue
        at, end, count = row["payload_at"], row["payload_end"], 0
        while at < end and data[at] & 0x80:
            at, count = at + 4, count + 1
        if at < end:
            primaries[data[at]] += 1
            blocks[count] += 1
    if not primaries:
        return None
    total = sum(count * packets for count, packets in blocks.items())
    return Red(primaries.most_common(1)[0][0], total, blocks.most_common(1)[0][0])


AMR_KBPS = {
    12: "4.75",
    13: "5.15",
    15: "5.9",
    17: "6.7",
    19: "7.4",
    20: "7.95",
    26: "10.2",
    31: "12.2",
}
"""Modes of AMR by the bytes of their speech frames (RFC 4867 §3.6, octet-aligned)."""


def codec(payload: Payload, media: list[Row], frame: float) -> str | None:
    """The codec in scenarios, if there is one."""
    name = CODECS.get(payload.name)
    most = Counter(media_bytes(row) for row in media).most_common(1)[0][0]
    if name == "g723.1-6.3" and all(media_bytes(row) < 24 for row in media):
        return "g723.1-5.3"  # RFC 3551 §4.5.3: 24 bytes at the higher rate, 20 at the lower
    if name == "amr-12.2":
        # A header and an entry of the table of contents, for frames of 20 ms.
        frames = max(1, round(frame / 0.02))
        mode = AMR_KBPS.get((most - 1 - frames) // frames)
        return f"amr-{mode}" if mode else None
    return name


def may_be_speech(payload: Payload) -> bool:
    """Whether an encoding is none of video (RFC 3551 §5), text, events, or repair."""
    return payload.clock_hz != 90_000 and payload.name not in NO_SPEECH


NO_SPEECH = {"TELEPHONE-EVENT", "CN", "RED", "RTX", "ULPFEC", "FLEXFEC", "FLEXFEC-03", "T140"}
RATES = {"pcmu": 8000, "pcma": 8000, "g722": 8000, "g726-40": 5000, "g726-32": 4000,
         "g726-24": 3000, "g726-16": 2000}  # fmt: skip
"""Bytes a second of codecs of a constant rate (RFC 3551 §4.5)."""
MOST_HEADS, FEWEST_HEADS = 100, 10


def is_encrypted(codec: str, media: list[Row], frame: float, data: bytes) -> bool:
    """Whether payload that was captured cannot be that of its codec: SRTP (RFC 3711 §3.1).

    Its tag makes packets longer. The first bytes of Opus, without the code of their number of
    frames, are few (RFC 6716 §3.1); encrypted ones are random.
    """
    if rate := RATES.get(codec):
        sizes = Counter(media_bytes(row) for row in media)
        return bool(sizes) and sizes.most_common(1)[0][0] > round(rate * frame)
    heads = [data[row["payload_at"]] >> 2 for row in media[:MOST_HEADS]]
    return codec == "opus" and len(heads) >= FEWEST_HEADS and 3 * len(set(heads)) > len(heads)


def settings(codec: str, media: list[Row], frame: float, red: Red | None) -> dict[str, Any]:
    """More of the source's settings in a scenario."""
    found: dict[str, Any] = {}
    if red is not None and red.copies:
        found["red"] = min(red.copies, 3)
    if codec == "opus":
        mean = sum(map(media_bytes, media)) / len(media)
        rate = mean * 8 / frame / (1 + found.get("red", 0))
        # Packets of pauses are shorter; RFC 6716 §2.1.1 has 6 to 510 kbit/s.
        bitrate = min(max(round(rate), 6000), 510_000)
        found["opus"] = {"bitrate": f"{bitrate}bit/s", "fec": True}
    return found
