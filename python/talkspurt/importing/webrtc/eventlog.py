"""Reads RTC event logs of libwebrtc, format 2.

The format is described by ``logging/rtc_event_log/rtc_event_log2.proto`` and
``logging/rtc_event_log/encoder/rtc_event_log_encoder_new_format.cc`` of libwebrtc. A log is a
sequence of messages in the wire encoding of protocol buffers. A batch of events has the fields of
its first event, and for each field that changes a string of bits with the differences of the
others. Times are milliseconds of the clock of the process; the log begins with one such time and
the UTC time of the same instant.

Chromium writes a log every few seconds, and loses what it has not written when a call ends: the
last seconds of a call are in no log. RTCP packets lack their SDES and APP parts, which libwebrtc
leaves out.
"""

from __future__ import annotations

from array import array
from collections import Counter, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from talkspurt._lazy import np
from talkspurt.importing.webrtc import wire
from talkspurt.importing.webrtc.wire import EventLogError

if TYPE_CHECKING:
    import numpy.typing as npt

ABSENT = -1
"""Stands for a value that an event does not have."""
VERSION = 2
BEGIN, END = 16, 17
"""Fields of ``EventStream`` that begin and end a log."""
BEGINNING = b"\x82\x01"
"""The tag of the first message."""
BEGINNING_OF_3 = b"\x80\xd6\x80\x25"
"""The tag ``BeginV3Log`` of format 3."""
MOST_EVENTS, FEW_EVENTS = 1 << 20, 30
"""Of a batch, and of one in which hardly anything changes: libwebrtc writes one as soon as it has
10 000 events."""


class VersionError(EventLogError):
    """The log is of another version."""


@dataclass(frozen=True)
class Column:
    """A field of a kind of events.

    Attributes:
        name: as in ``rtc_event_log2.proto``.
        number: of the field with the value of the first event.
        deltas: of the field with the differences of the others; 0 if each event is a message.
        bits: how many its values have at most; 0 of a string of bytes.
        is_signed: whether they can be negative.
        is_required: whether each event has it.
        shift: what is added to a value before differences are taken.
    """

    name: str
    number: int
    deltas: int = 0
    bits: int = 32
    is_signed: bool = False
    is_required: bool = True
    shift: int = 0


@dataclass(frozen=True)
class Kind:
    """A kind of events.

    Attributes:
        field: of ``EventStream``.
        count: the field with the number of events after the first; 0 if each is a message.
    """

    field: int
    count: int
    columns: tuple[Column, ...]


TIME = Column("timestamp_ms", 1, bits=53, is_signed=True)


def _single(number: int, *names: str) -> Kind:
    """Events that are a message each, with fields in this order; * marks one that can be absent."""
    rest = [
        Column(name.rstrip("*"), at, is_required=not name.endswith("*"))
        for at, name in enumerate(names, 2)
    ]
    return Kind(number, 0, (TIME, *rest))


def _batch(number: int, count: int, *columns: Column, begin: int = 101) -> Kind:
    """Events in batches; the differences of field 1 are in field ``begin``, and so on."""
    every = (TIME, *columns)
    placed = [
        Column(**{**vars(one), "deltas": one.deltas or begin + one.number - 1}) for one in every
    ]
    return Kind(number, count, tuple(placed))


def _rtp(number: int) -> Kind:
    return _batch(
        number, 11,
        Column("marker", 2, bits=1), Column("payload_type", 3, bits=7),
        Column("sequence_number", 4, bits=16), Column("rtp_timestamp", 5), Column("ssrc", 6),
        Column("payload_size", 8), Column("header_size", 9), Column("padding_size", 10),
        Column("transport_sequence_number", 15, bits=16, is_required=False),
        # Of retransmissions that arrive.
        Column("rtx_original_sequence_number", 22, deltas=121, bits=16, is_required=False),
    )  # fmt: skip


def _rtcp(number: int) -> Kind:
    return _batch(number, 3, Column("raw_packet", 2, bits=0))


KINDS: dict[str, Kind] = {
    "incoming_rtp_packets": _rtp(2),
    "outgoing_rtp_packets": _rtp(3),
    "incoming_rtcp_packets": _rtcp(4),
    "outgoing_rtcp_packets": _rtcp(5),
    "audio_playout_events": _batch(6, 3, Column("local_ssrc", 2)),
    "frame_decoded_events": _batch(
        7, 15, Column("ssrc", 2), Column("render_time_ms", 3, bits=53, is_signed=True),
        Column("width", 4), Column("height", 5), Column("codec", 6), Column("qp", 7),
    ),
    "loss_based_bwe_updates": _batch(
        18, 5, Column("bitrate_bps", 2), Column("fraction_loss", 3), Column("total_packets", 4)
    ),
    "delay_based_bwe_updates": _batch(
        19, 4, Column("bitrate_bps", 2), Column("detector_state", 3, is_required=False)
    ),
    "audio_network_adaptations": _batch(
        20, 8, Column("bitrate_bps", 2, is_required=False),
        Column("frame_length_ms", 3, is_required=False),
        Column("uplink_packet_loss_fraction", 4, is_required=False),
        Column("enable_fec", 5, is_required=False), Column("enable_dtx", 6, is_required=False),
        # Differences are those of the number of channels less 1.
        Column("num_channels", 7, is_required=False, shift=-1),
    ),
    "probe_clusters": _single(21, "id", "bitrate_bps", "min_packets", "min_bytes"),
    "probe_success": _single(22, "id", "bitrate_bps"),
    "probe_failure": _single(23, "id", "failure"),
    "alr_states": _single(24, "in_alr"),
    "ice_candidate_configs": _single(
        25, "config_type", "candidate_pair_id", "local_candidate_type", "local_relay_protocol",
        "local_network_type", "local_address_family", "remote_candidate_type",
        "remote_address_family", "candidate_pair_protocol",
    ),
    "ice_candidate_events": _single(26, "event_type", "candidate_pair_id", "transaction_id"),
    "dtls_transport_state_events": _single(27, "dtls_transport_state"),
    "dtls_writable_states": _single(28, "writable"),
    "generic_packets_sent": _batch(
        29, 16, Column("packet_number", 2, bits=53), Column("overhead_length", 3),
        Column("payload_length", 4), Column("padding_length", 5), begin=17,
    ),
    "generic_packets_received": _batch(
        30, 16, Column("packet_number", 2, bits=53), Column("packet_length", 3), begin=17
    ),
    "route_changes": _single(32, "connected", "overhead"),
    "remote_estimates": _batch(
        33, 4, Column("link_capacity_lower_kbps", 2, is_required=False),
        Column("link_capacity_upper_kbps", 3, is_required=False),
    ),
    "neteq_set_minimum_delay": _batch(
        34, 4, Column("remote_ssrc", 2), Column("minimum_delay_ms", 3)
    ),
    "scream_bwe_updates": _batch(
        35, 7, Column("ref_window_bytes", 2), Column("target_rate_kbps", 3),
        Column("smoothed_rtt_ms", 4), Column("avg_queue_delay_ms", 5),
        Column("l4s_marked_permille", 6),
    ),
    "audio_recv_stream_configs": _single(101, "remote_ssrc", "local_ssrc"),
    "audio_send_stream_configs": _single(102, "ssrc"),
    "video_recv_stream_configs": _single(103, "remote_ssrc", "local_ssrc", "rtx_ssrc*"),
    "video_send_stream_configs": _single(104, "ssrc", "rtx_ssrc*"),
}  # fmt: skip
"""What a log has, by its name in ``EventStream``."""
_OF_FIELD = {kind.field: name for name, kind in KINDS.items()}


class Events:
    """The events of a kind, in order of time, as columns.

    Attributes:
        columns: numbers by name, :data:`ABSENT` where an event has none; of RTCP also the packets.
    """

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self.columns: dict[str, Any] = {
            one.name: array("q") if one.bits else [] for one in kind.columns
        }

    def __len__(self) -> int:
        return len(self.columns["timestamp_ms"])

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def __iter__(self) -> Iterator[Any]:
        row = namedtuple("row", self.columns)  # type: ignore[misc]
        return map(row._make, zip(*self.columns.values(), strict=True))

    def _add(self, batch: wire.Fields, size: int) -> None:
        count = wire.number(batch, self._kind.count, 32, 0) if self._kind.count else 0
        # What differs from the event before takes bits; on average, one a field is the least.
        if count > min(MOST_EVENTS, FEW_EVENTS + 8 * size // len(self._kind.columns)):
            raise EventLogError(f"{count} events in a batch of {size} bytes")
        for one in self._kind.columns:
            column = self.columns[one.name]
            if not one.bits:
                column += _blobs(batch, one, count)
            elif count:
                column.frombytes(_column(batch, one, count).tobytes())
            else:
                column.append(_value(batch, one))

    def _sort(self) -> None:
        times = np.frombuffer(self.columns["timestamp_ms"], np.int64)
        if (times[1:] >= times[:-1]).all():
            return
        order = np.argsort(times, kind="stable")
        for name, column in self.columns.items():
            if isinstance(column, array):
                self.columns[name] = array("q", np.frombuffer(column, np.int64)[order].tobytes())
            else:
                self.columns[name] = [column[at] for at in order.tolist()]


@dataclass
class EventLog:
    """What was read.

    Attributes:
        begin_ms: when the log began, by its clock.
        begin_utc_ms: the same instant, in milliseconds since 1970.
        end_ms: when it was ended, by its clock; None if the last call was not.
        unread_bytes: at the end, of a message that is incomplete, as when the process was ended.
        events: by name in :data:`KINDS`, all of them.
        unknown: how many messages there are of each other field of ``EventStream``.
    """

    begin_ms: int
    begin_utc_ms: int
    end_ms: int | None = None
    unread_bytes: int = 0
    events: dict[str, Events] = field(
        default_factory=lambda: {name: Events(kind) for name, kind in KINDS.items()}
    )
    unknown: Counter[str] = field(default_factory=Counter)

    def utc_ns(self, time_ms: int) -> int:
        """The nanosecond since 1970 of a time by the log's clock."""
        return (self.begin_utc_ms + time_ms - self.begin_ms) * 1_000_000


def begins(data: bytes) -> bool:
    """Whether a file may be an RTC event log, of any format, by its first bytes."""
    # Format 1: a message in the field 1, with its own time in field 1; no text has such bytes.
    is_format_1 = data[:1] == b"\x0a" and b"\x08" in (data[2:3], data[3:4])
    return is_format_1 or data.startswith((BEGINNING, BEGINNING_OF_3))


def read(data: bytes) -> EventLog:
    """Read a log. The last message may be cut, as when the process was ended."""
    if not data.startswith(BEGINNING):
        raise _other(3 if data.startswith(BEGINNING_OF_3) else 1) if begins(data) else _none()
    fields = wire.fields(data)
    at, name = 0, "begin_log_events"
    try:
        _, number, value = next(fields)
        if number is None:
            raise EventLogError("it is cut")
        log = _begun(value)
        for at, number, value in fields:
            if number is None:
                log.unread_bytes = len(data) - at
                break
            name = _OF_FIELD.get(number, f"field {number}")
            _add(log, number, value)
    except VersionError:
        raise
    except EventLogError as error:
        where = f"near byte {at}, in {name}"
        raise EventLogError(f"is a damaged RTC event log: {where}: {error}") from None
    for events in log.events.values():
        events._sort()
    return log


def _none() -> EventLogError:
    return EventLogError(
        "is no RTC event log: it does not begin with its version (Chromium writes one with"
        " --webrtc-event-logging=DIR, or from chrome://webrtc-internals)"
    )


def _other(version: int) -> EventLogError:
    return VersionError(
        f"is an RTC event log of version {version}; only version {VERSION} can be read: record with"
        " Chromium, or with RtcEventLog::EncodingType::NewFormat"
    )


def _begun(value: int | bytes) -> EventLog:
    """The log that the first message of a file begins."""
    batch = wire.message(value)
    if (version := wire.number(batch, 2, 32)) != VERSION:
        raise _other(version)
    return EventLog(
        _signed(wire.number(batch, 1, wire.WORD)), _signed(wire.number(batch, 3, wire.WORD))
    )


def _add(log: EventLog, number: int, value: int | bytes) -> None:
    if number not in _OF_FIELD and number not in {BEGIN, END}:
        log.unknown[f"field {number}"] += 1
        return
    batch = wire.message(value)
    if number == BEGIN:
        raise EventLogError("a second log begins: cut the file into two")
    if number == END:
        log.end_ms = _signed(wire.number(batch, 1, wire.WORD))
    else:
        log.events[_OF_FIELD[number]]._add(batch, len(value) if isinstance(value, bytes) else 0)


def _signed(value: int) -> int:
    """A number of 64 bits as two's complement, which is how the format has negative ones."""
    value = value - (1 << wire.WORD) if value >> (wire.WORD - 1) else value
    if abs(value) >> TIME.bits:
        raise EventLogError(f"the time {value} ms is beyond all clocks")
    return value


def _base(batch: wire.Fields, one: Column) -> int | None:
    """The value of the first event, as differences are taken of it."""
    if one.number not in batch and not one.is_required:
        return None
    value = wire.number(batch, one.number, wire.WORD if one.is_signed else one.bits)
    if value + one.shift < 0:
        raise EventLogError(f"field {one.number} is {value}")
    return value + one.shift


def _value(batch: wire.Fields, one: Column) -> int:
    base = _base(batch, one)
    if base is None:
        return ABSENT
    return _signed(base) if one.is_signed else base - one.shift


def _column(batch: wire.Fields, one: Column, count: int) -> npt.NDArray[np.int64]:
    """A field of all events of a batch: ``count`` after the first."""
    base = _base(batch, one)
    deltas = batch.get(one.deltas, b"")
    if not isinstance(deltas, bytes):
        raise EventLogError(f"field {one.deltas} is not a string")
    first = ABSENT if base is None else _value(batch, one)
    found = np.full(count + 1, first, np.int64)
    if not deltas:
        # No differences: all events have the value of the first.
        return found
    values, are_there = wire.values(base, deltas, count)
    if not are_there.all() and one.is_required:
        raise EventLogError(f"{one.name} is absent from an event")
    there = values.astype(np.int64)
    if len(there):
        least, most = int(there.min()), int(there.max())
        if most >> one.bits > 0 or (least >> one.bits < -1 if one.is_signed else least < 0):
            raise EventLogError(f"{one.name} is {most if most >> one.bits > 0 else least}")
    found[1:][are_there] = there - one.shift
    found[1:][~are_there] = ABSENT
    return found


def _blobs(batch: wire.Fields, one: Column, count: int) -> list[bytes]:
    """A string of all events: the first, and the others."""
    first, others = batch.get(one.number), batch.get(one.deltas, b"")
    if not isinstance(first, bytes) or not isinstance(others, bytes):
        raise EventLogError(f"{one.name} is missing or no string")
    return [first, *wire.blobs(others, count)]


GAUGES = (
    "loss_based_bwe_updates", "delay_based_bwe_updates", "audio_network_adaptations",
    "probe_clusters", "probe_success", "remote_estimates", "scream_bwe_updates",
)  # fmt: skip
"""Events that tell what the sender took the path for, and how it adapted."""


def gauges(log: EventLog) -> Iterator[tuple[int, str, float]]:
    """When such an event was, in ns since 1970, the names of kind and field, and the value."""
    for name in GAUGES:
        columns = log.events[name].columns
        for column, values in columns.items():
            if column in {"timestamp_ms", "id"}:
                continue
            for time, value in zip(columns["timestamp_ms"], values, strict=True):
                if value != ABSENT:
                    yield log.utc_ns(time), f"{name}.{column}", float(value)


def others(log: EventLog) -> dict[str, int]:
    """How many events there are that are neither packets nor gauges."""
    packets = ("incoming_rtp_packets", "outgoing_rtp_packets", "incoming_rtcp_packets",
               "outgoing_rtcp_packets", *GAUGES)  # fmt: skip
    found = {name: len(one) for name, one in log.events.items() if name not in packets and len(one)}
    return found | log.unknown


PLAIN: dict[str, Any] = {
    "src_port": 0, "dst_port": 0, "protocol": "udp", "ip_id": None,
    "network_header_bytes": 0, "transport_header_bytes": 0, "kind": None, "seq": None, "ack": None,
    "syn": False, "fin": False, "rst": False, "short_seq": False, "chunks_cut": False,
    "digest": None, "chunks": (), "payload_at": None, "payload_end": None,
    **dict.fromkeys(("rtp_ssrc", "rtp_seq", "rtp_timestamp", "rtp_type", "rtp_marker",
                     "rtp_header_bytes", "rtp_padding_bytes")),
}  # fmt: skip
"""What packets of a log have in a row as of a capture, unless it is known."""


def rows(log: EventLog) -> tuple[list[dict[str, Any]], bytes]:
    """The packets of RTP and RTCP in order of time, as rows of a capture at this end.

    They have the columns of the table of ``talkspurt._core.capture``. The ends are ``local`` and
    ``remote``; a log has neither their addresses nor headers below RTP and RTCP, so that
    ``ip_bytes`` is what these have, with padding. Also returns the packets of RTCP, in which
    ``payload_at`` and ``payload_end`` are places.
    """
    found: list[dict[str, Any]] = []
    reports, end = [], 0
    for src, dst, way in (("remote", "local", "incoming"), ("local", "remote", "outgoing")):
        # Before all routers, or behind them.
        ends = {**PLAIN, "src": src, "dst": dst, "hop_limit": 256 if src == "local" else -1}
        for one in log.events[f"{way}_rtp_packets"]:
            size = one.header_size + one.payload_size + one.padding_size
            found.append(
                {**ends, "time_ns": log.utc_ns(one.timestamp_ms), "ip_bytes": size,
                 "payload_bytes": size, "content": "rtp", "rtp_ssrc": one.ssrc,
                 "rtp_seq": one.sequence_number, "rtp_timestamp": one.rtp_timestamp,
                 "rtp_type": one.payload_type, "rtp_marker": one.marker,
                 "rtp_header_bytes": one.header_size, "rtp_padding_bytes": one.padding_size}
            )  # fmt: skip
        for one in log.events[f"{way}_rtcp_packets"]:
            begin, end = end, end + len(one.raw_packet)
            reports.append(one.raw_packet)
            found.append(
                {**ends, "time_ns": log.utc_ns(one.timestamp_ms), "ip_bytes": end - begin,
                 "payload_bytes": end - begin, "content": "rtcp", "payload_at": begin,
                 "payload_end": end}
            )  # fmt: skip
    found.sort(key=lambda row: row["time_ns"])
    for frame, row in enumerate(found, 1):
        row["frame"] = frame
    return found, b"".join(reports)


def media(log: EventLog) -> list[dict[str, Any]]:
    """The streams of video with their retransmissions, as a session description has them."""
    found = []
    for name, ssrc in (
        ("video_recv_stream_configs", "remote_ssrc"), ("video_send_stream_configs", "ssrc"),
    ):  # fmt: skip
        columns = log.events[name].columns
        for base, again in zip(columns.get(ssrc, ()), columns.get("rtx_ssrc", ()), strict=True):
            if again != ABSENT:
                pair = [int(base), int(again)]
                group = {"semantics": "FID", "ssrcs": pair}
                found.append(
                    {"kind": "video", "address": None, "port": 0, "protocol": "", "payloads": [],
                     "candidates": [], "ssrcs": pair, "groups": [group]}
                )  # fmt: skip
    return found
