"""validation/headers.py finds a wrong header value: each kind is changed once."""

from __future__ import annotations

import random

import pytest

from validation import headers


def test_runs_are_those_of_a_set():
    draw = random.Random(3)
    for _ in range(200):
        runs, plain = headers.Runs(), set()
        for _ in range(draw.randrange(1, 30)):
            begin = draw.randrange(60)
            end = begin + draw.randrange(1, 8)
            known = any(number in plain for number in range(begin, end))
            assert runs.add(begin, end) == known
            plain.update(range(begin, end))
        for number in range(-1, 70):
            run = runs.run_at(number)
            assert (run is not None) == (number in plain)
            if run:
                assert run[0] - 1 not in plain
                assert run[1] not in plain
                assert set(range(*run)) <= plain


def receiver() -> headers.Receiver:
    """1 to 100 arrived, 200 to 300, 400 to 500 and then 250 to 260 once more."""
    side = headers.Receiver()
    side.arrived(0, 1, True)
    for begin, end in ((1, 100), (400, 500), (200, 300), (250, 260)):
        side.arrived(begin, end, False)
    side.before = None
    return side


@pytest.mark.parametrize(
    ("ack", "blocks", "faults"),
    [
        (100, [(250, 260), (200, 300), (400, 500)], 0),
        (100, [(200, 300), (400, 500)], 0),
        (99, [(200, 300), (400, 500)], 1),
        (100, [(400, 500), (200, 300)], 1),  # not the latest first
        (100, [(200, 299), (400, 500)], 2),  # not a whole run, and so not the latest
        (100, [(200, 300), (600, 700)], 1),  # never arrived
        (100, [], 1),  # SACK is due
        (100, [(20, 30), (200, 300)], 0),  # D-SACK below the acknowledgement
        (100, [(310, 320), (200, 300)], 2),
    ],
)
def test_tcp(ack, blocks, faults):
    found = headers.Faults()
    headers.judge_ours(receiver(), ack, blocks, True, True, "x", found)
    assert found.count == faults, found.words


def test_tcp_without_agreement_has_no_blocks():
    found = headers.Faults()
    headers.judge_ours(receiver(), 100, [(200, 300)], False, True, "x", found)
    assert found.count == 1


def test_tcp_of_the_other_side():
    found = headers.Faults()
    headers.judge_theirs(receiver(), 100, [(210, 290)], "x", found)
    assert found.count == 0
    headers.judge_theirs(receiver(), 101, [(210, 301)], "x", found)
    assert found.count == 2


def test_paws_is_known():
    side = headers.Receiver()
    assert side.accepts(0, 1, 10, True)
    side.arrived(0, 1, True)
    side.last_ack = 1
    assert side.accepts(1, 101, 20, False)
    assert not side.accepts(1, 101, 19, False)
    side.arrived(1, 101, False)
    # A segment that is old as a whole leaves TS.Recent alone (RFC 7323 §5.3 R2 before R3).
    assert side.accepts(1, 101, 30, False)
    assert side.accepts(101, 201, 20, False)


def tsns() -> headers.Tsns:
    """10 to 12, 14, 15 and 18 arrived, 14 twice; TSNs wrap."""
    side = headers.Tsns(2**32 - 3)
    for tsn in (0, 1, 2, 4, 5, 8, 4):
        side.arrived((2**32 - 3 + tsn) % 2**32)
    return side


@pytest.mark.parametrize(
    ("ack", "gaps", "repeats", "faults"),
    [
        (2, [(2, 3), (6, 6)], [4], 0),
        (1, [(2, 3), (6, 6)], [4], 2),
        (2, [(2, 2), (6, 6)], [4], 1),
        (2, [(2, 3)], [4], 1),
        (2, [(2, 3), (6, 6)], [], 1),
        (2, [(2, 3), (6, 6)], [4, 5], 1),
    ],
)
def test_sctp(ack, gaps, repeats, faults):
    found = headers.Faults()
    raw = [(2**32 - 3 + tsn) % 2**32 for tsn in repeats]
    headers.judge_our_sack(tsns(), (2**32 - 3 + ack) % 2**32, gaps, raw, "x", found)
    assert found.count == faults, found.words


def test_sctp_forward_tsn_moves_on():
    side = tsns()
    side.forward(0)  # 2^32 - 3 + 3
    assert side.gaps() == [(2**32 - 3 + 8, 2**32 - 3 + 8)]
    assert side.cumulative == 2**32 - 3 + 5


def test_sctp_of_the_other_side():
    found = headers.Faults()
    headers.judge_their_sack(tsns(), 2**32 - 1, [(2, 3)], "x", found)
    assert found.count == 0
    headers.judge_their_sack(tsns(), 2**32 - 1, [(2, 4)], "x", found)
    assert found.count == 1


Packet = headers.DccpPacket
DATA, ACK = 2, 3


def arrivals(*numbers: int) -> list[Packet]:
    return [Packet(0.01 * at, False, DATA, seq, None, [], 100) for at, seq in enumerate(numbers)]


def acknowledge(ack: int, *options: tuple[int, bytes], seconds: float = 1.0) -> Packet:
    return Packet(seconds, True, ACK, 1, ack, list(options))


def triple(lossless: int, loss: int, data: int) -> bytes:
    return b"".join(number.to_bytes(3, "big") for number in (lossless, loss, data))


# Options and their types. The vector: 2 received, 1 not, 2 received.
VECTOR = (38, bytes([0b00_000001, 0b11_000000, 0b00_000001]))
INTERVALS = (193, bytes([0]) + triple(4, 1, 4) + triple(4, 0, 4))
RATE = (500).to_bytes(4, "big")
LATE = Packet(2.0, False, ACK, 7, 1)
"""Without data."""


def rate_of_events(inverse: int) -> tuple[int, bytes]:
    return 192, inverse.to_bytes(4, "big")


@pytest.mark.parametrize(
    ("packets", "faults"),
    [
        ([*arrivals(1, 2, 4, 5), acknowledge(5, VECTOR)], 0),
        ([*arrivals(1, 2, 4, 5), acknowledge(3, VECTOR)], 5),
        ([*arrivals(1, 2, 3, 4, 5), acknowledge(5, VECTOR)], 1),
        ([*arrivals(1, 2, 5), acknowledge(5, VECTOR)], 1),
        ([*arrivals(1, 2, 3, 4, 6, 7, 8, 9), acknowledge(9, INTERVALS)], 0),
        ([*arrivals(1, 2, 3, 4, 5, 6, 7, 8, 9), acknowledge(9, INTERVALS)], 1),
        ([*arrivals(1, 2, 3, 4, 6, 8, 9), acknowledge(9, INTERVALS)], 1),
        ([*arrivals(1, 2, 3, 4, 6, 8, 9), acknowledge(9, INTERVALS), LATE], 0),
        ([*arrivals(1, 2, 3, 4, 6, 7, 8, 9), acknowledge(9, INTERVALS, rate_of_events(4))], 0),
        ([*arrivals(1, 2, 3, 4, 6, 7, 8, 9), acknowledge(9, INTERVALS, rate_of_events(2))], 1),
    ],
)
def test_dccp(packets, faults):
    result = headers.dccp(packets)
    assert result["faults"] == faults, result


@pytest.mark.parametrize(("told", "faults"), [(500, 0), (650, 1), (400, 1), (50, 1)])
def test_dccp_receive_rate(told, faults):
    # Ten packets of 100 B in the two seconds between two reports: 500 B/s.
    packets = [Packet(0.0, False, DATA, 1, None, [], 100), acknowledge(1, (194, RATE), seconds=0.1)]
    packets += [Packet(0.1 + 0.2 * at, False, DATA, 1 + at, None, [], 100) for at in range(1, 11)]
    packets += [acknowledge(11, (194, told.to_bytes(4, "big")), seconds=2.1)]
    assert headers.dccp(packets)["faults"] == faults


@pytest.mark.parametrize(
    ("told", "faults"), [(10_000, 0), (20_000, 0), (3_000, 1), (500, 1), (100_000, 1)]
)
def test_dccp_receive_rate_over_a_round_trip(told, faults):
    # 100 B every 50 ms, and an acknowledgement of ours that was acknowledged after 10 ms: RFC 5348
    # §6.2 has 100 B over about 10 ms. Over less than half of that, or over the 50 ms, it has not.
    packets = [
        Packet(0.0, False, DATA, 1, None, [], 100),
        acknowledge(1, (194, RATE), seconds=0.001),
    ]
    packets += [Packet(0.011, False, ACK, 2, 1)]
    packets += [Packet(0.05 * at, False, DATA, 2 + at, None, [], 100) for at in range(1, 11)]
    packets += [acknowledge(12, (194, told.to_bytes(4, "big")), seconds=0.5001)]
    assert headers.dccp(packets)["faults"] == faults


@pytest.mark.parametrize(("told", "faults"), [(47, 0), (50, 0), (44, 1)])
def test_dccp_loss_event_rate_leaves_out_the_oldest_interval(told, faults):
    # RFC 5348 §5.4: max((57 + 29 + 54) / 3, (29 + 54 + 56) / 3) = 46.7.
    found = headers.Faults()
    intervals = [(66, 1, 57), (32, 2, 29), (61, 1, 54), (23, 0, 56)]
    headers.judge_loss_rate(told, intervals, "our", "x", found)
    assert found.count == faults, found.words
