"""RTC event logs: a log of Chromium against tshark's view of the same packets, and logs written here by
the rules of libwebrtc's encoder."""

import csv
import struct
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import captures
import talkspurt
from conftest import ROOT
from talkspurt import _core
from talkspurt.errors import BadInputError
from talkspurt.importing.webrtc import eventlog, wire

LOG = ROOT / "tests" / "data" / "chromium.rtc-event-log"
"""Chromium 156: a call over a path with 60 ms of jitter, reordering and 5 % loss."""
CAPTURE = LOG.with_suffix(".csv")
"""The packets sent, where the emulated network delayed or lost them, read by tshark."""


@pytest.fixture(scope="module")
def log():
    return eventlog.read(LOG.read_bytes())


def test_packets_are_those_of_a_capture(log):
    with CAPTURE.open() as lines:
        captured = [
            {key: float(value) for key, value in row.items()} for row in csv.DictReader(lines)
        ]
    by_sequence = {row["sequence"]: row for row in captured}
    packets = [*log.events["incoming_rtp_packets"]]
    rows = [by_sequence[one.sequence_number] for one in packets]
    assert len(rows) > 300
    for name, theirs in (
        ("ssrc", "ssrc"), ("rtp_timestamp", "timestamp"), ("payload_type", "payload_type"),
        ("marker", "marker"), ("payload_size", "size"),
    ):  # fmt: skip
        assert [getattr(one, name) for one in packets] == [row[theirs] for row in rows], name
    numbers = [one.sequence_number for one in packets]
    assert numbers != sorted(numbers)
    # Besides the jitter, the browser takes packets late when the machine is busy.
    waits = [one.timestamp_ms - row["ms"] for one, row in zip(packets, rows, strict=True)]
    assert 50 < max(waits) - min(waits) < 80
    lost = 1 - len(rows) / len(by_sequence)
    assert 0.02 < lost < 0.08


def test_sound_is_played_every_10_ms(log):
    times = log.events["audio_playout_events"]["timestamp_ms"]
    assert set(log.events["audio_playout_events"]["local_ssrc"]) == set(
        log.events["incoming_rtp_packets"]["ssrc"]
    )
    assert np.median(np.diff(times)) == 10
    assert (times[-1] - times[0]) / 10 == pytest.approx(len(times) - 1, abs=3)
    assert abs(times[0] - log.begin_ms) < 2000


def test_rtcp_is_rtcp_of_the_streams(log):
    """RFC 3550 §6.4 and RFC 4585 §6.1: a length in words less one, and the sender's SSRC."""
    ssrcs = {
        "incoming": set(log.events["incoming_rtp_packets"]["ssrc"]),
        "outgoing": set(log.events["outgoing_rtp_packets"]["ssrc"]),
    }
    for way, events in (
        ("incoming", log.events["incoming_rtcp_packets"]),
        ("outgoing", log.events["outgoing_rtcp_packets"]),
    ):
        assert len(events) > 50
        kinds = set()
        for packet in events["raw_packet"]:
            at = 0
            while at < len(packet):
                assert packet[at] >> 6 == 2
                kinds.add(packet[at + 1])
                assert int.from_bytes(packet[at + 4 : at + 8], "big") in ssrcs[way]
                at += 4 * (int.from_bytes(packet[at + 2 : at + 4], "big") + 1)
            assert at == len(packet)
        # Sender reports and transport-wide feedback; libwebrtc logs no SDES.
        assert kinds >= {200, 205} and 202 not in kinds


def test_transport_wide_numbers_count_what_is_sent(log):
    """draft-holmer-rmcat-transport-wide-cc-extensions-01: the numbers increase by 1 a packet."""
    numbers = [
        one for one in log.events["outgoing_rtp_packets"]["transport_sequence_number"] if one >= 0
    ]
    assert np.array_equal(np.diff(numbers), np.ones(len(numbers) - 1))


def bits(text):
    text = text.replace(" ", "")
    return int(text.ljust(-(-len(text) // 8) * 8, "0"), 2).to_bytes(-(-len(text) // 8), "big")


@pytest.mark.parametrize(
    ("deltas", "base", "values"),
    [
        # Form 0: differences of 3 bits, not negative.
        ("00 000010  001 111 000", 10, [11, 18, 18]),
        # Form 1, of 2 bits, signed, none absent, values of 16 bits: they wrap.
        ("01 000001 1 0 001111  01 11 10", 65_535, [0, 65_535, 65_533]),
        # Form 1, of 1 bit, not signed, values of 1 bit.
        ("01 000000 0 0 000000  1 1 0", 1, [0, 1, 1]),
        # Form 1, of 64 bits.
        (f"01 111111 1 0 111111  {'1' * 64} {'0' * 63}1", 7, [6, 7]),
        # Form 1, of 4 bits, optional: the second of three is absent.
        ("01 000011 0 1 001111  101  0011 0001", 5, [8, None, 9]),
        # The same without a first value: the first that is there is a varint, here of two bytes.
        ("01 000011 0 1 001111  011  10000001 00000001 0010", None, [None, 129, 131]),
    ],
)
def test_differences_are_those_of_the_format(deltas, base, values):
    found, are_there = wire.values(base, bits(deltas), len(values))
    assert are_there.tolist() == [one is not None for one in values]
    assert found.tolist() == [one for one in values if one is not None]


def varint(value):
    out = bytearray()
    while True:
        out.append(value & 0x7F | (0x80 if value >> 7 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def encoded(base, values):
    """What EncodeDeltas of libwebrtc makes of values after a base; None is absent."""
    if all(one == base for one in values):
        return b""
    there = [one for one in values if one is not None]
    with_base = there if base is None else [base, *there]
    is_ascending = all(a <= b for a, b in zip([base or 0, *there], there, strict=False))
    value_width = 64 if is_ascending else max(1, max(with_base).bit_length())
    mask = (1 << value_width) - 1
    forward = [(b - a) & mask for a, b in pairwise(with_base)]
    backward = [(a - b) & mask for a, b in pairwise(with_base)]
    up = max((f for f, b in zip(forward, backward, strict=True) if f < b), default=0)
    down = max((b for f, b in zip(forward, backward, strict=True) if f >= b), default=0)
    plain = max(1, max(forward, default=0).bit_length())
    signed = 1 + max(up.bit_length(), (down - 1).bit_length() if down else 0)
    is_signed, is_optional = signed < plain, base is None or len(there) < len(values)
    width = min(signed, plain)
    form = int(is_signed or is_optional or value_width != 64)
    text = f"{form:02b}{width - 1:06b}"
    if form:
        text += f"{is_signed:b}{is_optional:b}{value_width - 1:06b}"
    if is_optional:
        text += "".join("01"[one is not None] for one in values)
    if base is None and there:
        text += "".join(f"{byte:08b}" for byte in varint(there[0]))
    for f, b in zip(forward, backward, strict=True):
        delta = -b if is_signed and f > b else f
        text += f"{delta & (1 << width) - 1:0{width}b}"
    return bits(text)


def field(number, value):
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value & 2**64 - 1)


BEGIN = field(16, field(1, 1000) + field(2, 2) + field(3, 1_700_000_000_000))


def batch(name, rows):
    """A log with these events; the first values of each column are those of the batch."""
    kind = eventlog.KINDS[name]
    body = b""
    for place, one in enumerate(kind.columns):
        base, *values = (row[place] for row in rows)
        if base is not None:
            body += field(one.number, base)
        if one.bits == 0 and values:
            body += field(one.deltas, b"".join(varint(len(it)) for it in values) + b"".join(values))
        elif values:
            shifted = [
                None if it is None else (it + one.shift) & 2**64 - 1 for it in (base, *values)
            ]
            if deltas := encoded(shifted[0], shifted[1:]):
                body += field(one.deltas, deltas)
    if len(rows) > 1:
        body += field(kind.count, len(rows) - 1)
    return BEGIN + field(kind.field, body)


@st.composite
def events(draw):
    name = draw(st.sampled_from([name for name, kind in eventlog.KINDS.items() if kind.count]))
    values = []
    for one in eventlog.KINDS[name].columns:
        if one.bits == 0:
            value = st.binary(max_size=20)
        else:
            least = -(2 ** (one.bits - 1)) if one.is_signed else 0
            value = st.integers(max(least, -one.shift), 2**one.bits - 1)
            if one.is_required:
                value |= st.integers(1000, 1010) if one.bits > 10 else value
            else:
                value |= st.none()
        values.append(value)
    return name, draw(st.lists(st.tuples(*values), min_size=1, max_size=12))


@given(events())
@settings(max_examples=300, deadline=None)
def test_what_the_encoder_of_libwebrtc_writes_is_read(made):
    name, rows = made
    log = eventlog.read(batch(name, rows))
    found = [tuple(None if it == eventlog.ABSENT else it for it in row) for row in log.events[name]]
    expected = sorted(rows, key=lambda row: row[0])
    signed = [one.is_signed for one in eventlog.KINDS[name].columns]
    assert len(found) == len(rows)
    for one, other in zip(found, expected, strict=True):
        for value, theirs, is_signed in zip(one, other, signed, strict=True):
            # -1 is a number of milliseconds.
            assert value == theirs or (is_signed and theirs == -1)
    assert sum(len(one) for one in log.events.values()) == len(rows)


def test_single_events_and_unknown_ones_are_counted():
    probe = field(21, field(1, 1200) + b"".join(field(n, n) for n in (2, 3, 4, 5)))
    state = field(27, field(1, -5) + field(2, 3))
    log = eventlog.read(BEGIN + probe + state + field(77, b"new") + field(17, field(1, 9000)))
    assert [*log.events["probe_clusters"]] == [(1200, 2, 3, 4, 5)]
    assert [*log.events["dtls_transport_state_events"]] == [(-5, 3)]
    assert log.unknown == {"field 77": 1}
    assert (log.begin_ms, log.end_ms) == (1000, 9000)
    assert log.utc_ns(1250) == 1_700_000_000_250_000_000


def test_packets_become_rows_of_a_capture(log, tmp_path):
    rows, reports = eventlog.rows(log)
    capture = captures.written(tmp_path / "one.pcap", [(0.0, captures.media(1, 160))])
    columns = pl.DataFrame(_core.capture(capture.read_bytes())[0]).columns
    assert all({*row} == {*columns, "chunks"} for row in rows)
    assert len(rows) == sum(
        map(
            len,
            (
                log.events["incoming_rtp_packets"],
                log.events["outgoing_rtp_packets"],
                log.events["incoming_rtcp_packets"],
                log.events["outgoing_rtcp_packets"],
            ),
        )
    )
    assert [row["frame"] for row in rows] == [*range(1, len(rows) + 1)]
    times = [row["time_ns"] for row in rows]
    assert times == sorted(times)
    received = [row for row in rows if row["dst"] == "local" and row["content"] == "rtp"]
    sent = [row for row in rows if row["src"] == "local" and row["content"] == "rtcp"]
    raw = [reports[row["payload_at"] : row["payload_end"]] for row in sent]
    assert raw == [bytes(one) for one in log.events["outgoing_rtcp_packets"]["raw_packet"]]
    assert [row["rtp_seq"] for row in received] == log.events["incoming_rtp_packets"][
        "sequence_number"
    ].tolist()
    assert received[0]["ip_bytes"] == 28 + 72
    assert abs(received[0]["time_ns"] / 1e9 - log.begin_utc_ms / 1e3) < 2


COUNT, LOST, AHEAD_MS, BACK_MS = 200, {50, 51, 120}, 30, 40
HERE, THERE = 7, 9
"""The sources of two ends."""


def spoken(ssrc, later_ms=0, lost=()):
    """The packets of a source of Opus when they pass, as a log has them."""
    return [
        (1000 + 20 * i + later_ms, 0, 111, 500 + i, 960 * i, ssrc, 80, 12, 0, None, None)
        for i in range(COUNT)
        if i not in lost
    ]


def log_of(ssrc, other, back_ms, lost):
    """Of one end, which gets the packets of the other one late."""
    sent = batch("outgoing_rtp_packets", spoken(ssrc))
    received = batch("incoming_rtp_packets", spoken(other, back_ms, lost))
    return sent + received[len(BEGIN) :]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("theirs", ["log", "capture"])
def test_recordings_of_both_ends_give_loss_and_delay(theirs, order, tmp_path):
    """A log has no addresses: its streams are known by their sources."""
    here = tmp_path / "here.log"
    here.write_bytes(log_of(HERE, THERE, BACK_MS, ()))
    there = tmp_path / "there"
    if theirs == "log":
        there.write_bytes(log_of(THERE, HERE, AHEAD_MS, LOST))
    else:
        packets = []
        for ssrc, late, lost in ((HERE, AHEAD_MS, LOST), (THERE, 0, ())):
            for ms, marker, kind, number, stamp, *_ in spoken(ssrc, late, lost):
                head = struct.pack(">BBHII", 0x80, marker << 7 | kind, number, stamp, ssrc)
                data = captures.udp(
                    head + bytes([0x78]) + bytes(79), number=number, back=ssrc == THERE
                )
                packets.append((1.7e9 + ms / 1e3 - 1001, data))
        captures.written(there, packets)
    result = talkspurt.import_trace(
        [here, there][::order], payloads={111: "opus"}, as_network=tmp_path / "network"
    )
    ssrcs = {name: one["ssrc"] for name, one in result.manifest["imported"]["flows"].items()}
    rows = {ssrcs[row["name"]]: row for row in result.flows.to_dicts()}
    for ssrc, late, lost in ((HERE, AHEAD_MS, len(LOST)), (THERE, BACK_MS, 0)):
        row = rows[ssrc]
        assert [row[f"{it}_packets"] for it in ("sent", "received", "lost")] == [
            COUNT, COUNT - lost, lost
        ]  # fmt: skip
        assert row["delay_min_s"] == pytest.approx(late / 1e3, abs=1e-6)
        assert row["delay_max_s"] == pytest.approx(late / 1e3, abs=1e-6)
    traces = sorted((tmp_path / "network").glob("*.csv"))
    assert len(traces) == 2
    losses = [sum(line.endswith(",1") for line in file.read_text().splitlines()) for file in traces]
    assert sorted(losses) == [0, 2], "two gaps"


def test_a_dump_is_no_other_end(tmp_path):
    here, dump = tmp_path / "here.log", tmp_path / "dump.txt"
    here.write_bytes(log_of(HERE, THERE, BACK_MS, ()))
    dump.write_text("[]")
    with pytest.raises(BadInputError, match="two files must be captures or RTC event logs"):
        talkspurt.import_trace([here, dump])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is no RTC event log: it does not begin with its version"),
        (b"RIFF....WAVEfmt ", "is no RTC event log"),
        (BEGIN[:6], "in begin_log_events: it is cut"),
        (b"\x82\x01\x04\x08\x01\x10\x03", "of version 3; only version 2 .*record with Chromium"),
        (b"\x80\xd6\x80\x25\x05\x00\x00\x00\x00\x00", "of version 3; only version 2"),
        (b"\x0a\x0f\x08\xc0\xa9\xd3\x8e\x04\x10\x01", "of version 1; only version 2"),
        (field(16, field(2, 2) + field(3, 1)), "field 1 is missing"),
        (field(16, field(1, 1 << 60) + field(2, 2) + field(3, 1)), "beyond all clocks"),
        (BEGIN + BEGIN, "a second log begins: cut the file into two"),
        (BEGIN + field(6, 7), "near byte 15, in audio_playout_events: a number, and no message"),
        (BEGIN + field(6, field(1, 1) + field(2, 5) + field(3, 2**31)), "2147483648 events in a"),
        (BEGIN + field(2, field(1, 1) + field(2, 2)), "incoming_rtp_packets: field 2 is 2"),
        (BEGIN + field(6, field(1, 1) + field(2, 5) + field(3, 2) + field(102, b"\x80")),
         "differences of unknown form 2"),
        (BEGIN + field(6, field(1, 1) + field(2, 5) + field(3, 9) + field(102, b"\x07\x01")),
         "differences are missing"),
        (BEGIN + field(4, field(1, 1) + field(2, b"x") + field(3, 1) + field(102, b"\x05x")),
         "strings have not the length of their parts"),
        (BEGIN + b"\x37", "wire type 7"),
        (BEGIN + field(6, b"\x80"), "a message ends within a field"),
    ],
)  # fmt: skip
def test_what_is_no_log_of_this_format_is_named(data, words):
    with pytest.raises(wire.EventLogError, match=words):
        eventlog.read(data)


def test_a_log_is_read_up_to_where_it_is_cut(log):
    data = LOG.read_bytes()
    cut = [eventlog.read(data[:size]) for size in range(20, len(data), 97)]
    sizes = [len(one.events["incoming_rtp_packets"]) for one in cut]
    assert sizes == sorted(sizes)
    assert sizes[0] == 0 < sizes[-1] <= len(log.events["incoming_rtp_packets"])
    whole = sum(one.unread_bytes == 0 for one in cut)
    assert whole < 10 < len(cut) and log.unread_bytes == 0


def outcome(data):
    """Whether data is read; anything but one error fails."""
    try:
        eventlog.rows(eventlog.read(data))
    except wire.EventLogError as error:
        assert str(error).startswith("is ")
        return False
    return True


@given(st.binary(max_size=300), st.booleans())
@settings(max_examples=300, deadline=None)
def test_random_bytes_are_read_or_refused(data, begins):
    outcome(BEGIN + data if begins else data)


@given(st.lists(st.tuples(st.integers(0, LOG.stat().st_size - 1), st.integers(0, 255)), max_size=5))
@settings(max_examples=100, deadline=None)
def test_a_damaged_log_is_read_or_refused(changes):
    damaged = bytearray(LOG.read_bytes())
    for place, byte in changes:
        damaged[place] = byte
    outcome(bytes(damaged))
