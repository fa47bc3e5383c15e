"""The profile ``ns2`` against ns-2.35 itself, on the path of ``scenarios/large-delay.toml``.

The numbers are packets that arrived in each half second, counted in ns-2's traces by the scripts in
``validation/ns2``: at the first no more than 41 half seconds are told, all later ones being 25.
"""

from __future__ import annotations

from itertools import accumulate, pairwise, zip_longest
from pathlib import Path

import pytest

import talkspurt

SCENARIO = Path(__file__).parent.parent / "scenarios" / "large-delay.toml"
HALF = 0.5
FULL = 25
"""Packets of 64 kbit/s in half a second."""

# fmt: off
CCID2 = {
    20: [0, 3, 0, 6, 12, 20, 17, 20, 6, 23, 21, 24, 19, 25, 11, 27, 25, 29, 21, 20, 21, 29, 33, 25, 35, 10, 35, 35, 37, 31, 39, 10, 41, 39, 43, 35, 45, 10, 45, 45, 38],
    50: [0, 3, 0, 6, 12, 24, 32, 50, 16, 51, 51, 40],
    100: [0, 3, 0, 6, 12, 24, 32, 80, 32, 46],
    200: [0, 3, 0, 6, 12, 24, 32, 80, 32, 46],
}
# fmt: on
"""By initial slow-start threshold, path of 300 ms."""

SETTLED = {20: 20.5, 50: 6.0, 100: 5.0, 200: 5.0}
"""From when on every half second of these is within 10 % of the codec's rate."""

CCID3_STUCK = 66
"""Packets that ns-2's CCID 3 carries in 40 s at 300 ms: one a round trip, because it computes with
packets of 500 bytes while 160 of each are received."""
CCID3_SETTLED = 10.5
"""When ns-2's CCID 3 has settled once it is told the packets' size (``s_s_`` 160)."""


def run(profile: str | None = "ns2", **changes: object) -> talkspurt.Result:
    """The call under a profile, with changes of its transport or, by path, of the scenario."""
    sets = {"axes": []} | ({"flows.call.transport.profile": profile} if profile else {})
    sets |= {k.replace("__", "."): v for k, v in changes.items()}
    result = talkspurt.run(SCENARIO, set=sets)
    assert isinstance(result, talkspurt.Result)
    return result


def arrived(result: talkspurt.Result) -> list[int]:
    """Packets that arrived in each half second."""
    return result.series("call")["received_packets"].to_list()


def settled(counts: list[int]) -> float:
    """From when on every half second is within 10 % of the codec's rate."""
    astray = [i for i, packets in enumerate(counts) if abs(packets - FULL) > 0.1 * FULL]
    return HALF * (max(astray, default=-1) + 1)


@pytest.mark.parametrize("threshold", CCID2)
def test_ccid_2_settles_when_ns2s_does(threshold: int) -> None:
    ours = arrived(run(flows__call__transport__window__initial_ssthresh=threshold))
    theirs = CCID2[threshold]
    assert settled(theirs) == settled(ours[:79]) == SETTLED[threshold]
    # On the way there as many packets have arrived at each half second, but for five (0.1 s of speech).
    pairs = zip_longest(ours[:79], theirs, fillvalue=FULL)
    gaps = list(accumulate(a - b for a, b in pairs))
    assert max(map(abs, gaps)) <= 5, gaps


def test_at_20_ms_nothing_has_to_settle() -> None:
    assert settled(arrived(run(links__long__delay="20ms"))[1:79]) == 0.0


@pytest.mark.parametrize(("profile", "factor"), [("rfc", 1.5), ("ns2", 2.0)])
def test_slow_start_grows_by_half_or_doubles(profile: str, factor: float) -> None:
    """RFC 4341 §5 adds a packet for every two acknowledged, ns-2 one for each."""
    result = run(profile, flows__call__transport__window__initial_ssthresh=100)
    windows = result.gauges("call", "cwnd_packets").filter(side="from")
    # In the middle of each round trip of 605 ms, while the backlog fills the window.
    trips = [
        float(windows.filter(windows["time_s"] < 0.605 * n + 0.3)["value"][-1]) for n in range(1, 7)
    ]
    assert trips[0] == {"rfc": 4, "ns2": 3}[profile]
    for before, after in pairwise(trips):
        assert abs(after - factor * before) <= 1, trips


def test_ccid_3_is_stuck_at_a_packet_a_round_trip_until_it_knows_their_size() -> None:
    ccid3 = {"kind": "dccp", "ccid": 3, "profile": "ns2"}
    carried = sum(arrived(run(flows__call__transport=ccid3))[:79])
    assert abs(carried - CCID3_STUCK) <= CCID3_STUCK / 4, carried
    knowing = arrived(run(flows__call__transport=ccid3 | {"rate": {"nominal_size": "160B"}}))
    # A doubling earlier or later, of the nine there are, is 1.2 s.
    assert abs(settled(knowing[:79]) - CCID3_SETTLED) <= 2.0


def test_rfc_5348s_ccid_3_knows_it_by_itself() -> None:
    result = run(None, flows__call__transport={"kind": "dccp", "ccid": 3})
    assert settled(arrived(result)[:79]) <= CCID3_SETTLED
