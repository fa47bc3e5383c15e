"""Loss events of RFC 5348: histories by hand, and what the engine's own receivers reported."""

import math

import pytest

import talkspurt
from talkspurt import metrics
from talkspurt.metrics import packets as losses
from texts import UDP, cbr, dccp, flow_text, inline, link_text, scenario_text

STEP = 0.01


def train(count, lost):
    """Packets 0, 1, … that arrive every 10 ms, but for those lost."""
    return [(n, None if n in lost else n * STEP) for n in range(count)]


def test_a_loss_stands_where_it_would_have_come():
    assert losses.events(train(10, {4}), 0.1) == [losses.Event(4, pytest.approx(0.04))]
    # Of two in a row, by number between the neighbours' arrivals (§5.2).
    packets = [(0, 0.0), (1, None), (2, None), (3, 0.06), (4, 0.07), (5, 0.08)]
    first, second = losses.events(packets, 0.001)
    assert (first.time_s, second.time_s) == (pytest.approx(0.02), pytest.approx(0.04))


def test_losses_within_a_round_trip_are_one_event():
    packets = train(40, {5, 9, 15, 24, 25})
    # 40 ms after the first is inside 100 ms, 100 ms is not (§5.2: T_old + R > T_new).
    assert [e.number for e in losses.events(packets, 0.1 - 1e-9)] == [5, 15, 25]
    assert [e.number for e in losses.events(packets, 0.1 + 1e-6)] == [5, 24]
    assert [e.number for e in losses.events(packets, 0.0)] == [5, 9, 15, 24, 25]


def test_who_is_not_followed_by_three_is_not_lost_yet():
    assert losses.events(train(9, {5}), 0.1)
    assert not losses.events(train(8, {5}), 0.1), "two came after it"
    assert not losses.events(train(9, {0}), 0.1), "nothing came before it"


def test_the_mean_interval_by_hand():
    # Weights 1 1 1 1 .8 .6 .4 .2 add up to 6 (§5.4).
    assert losses.rate([100] * 8, 1) == pytest.approx(0.01)
    assert losses.rate([100] * 20, 1) == pytest.approx(0.01)
    # The open interval counts once it lowers the rate: (1000 + 100 · 5) / 6 = 250, for the oldest of
    # eight falls out and the others move on by one.
    assert losses.rate([100] * 8, 1000) == pytest.approx(1 / 250)
    # Oldest first: 10, 20 … 80; the newest weigh most.
    closed = (80 + 70 + 60 + 50 + 0.8 * 40 + 0.6 * 30 + 0.4 * 20 + 0.2 * 10) / 6
    assert losses.rate([10, 20, 30, 40, 50, 60, 70, 80], 1) == pytest.approx(1 / closed)
    # Three there are: (50 + 20 + 10) / 3.
    assert losses.rate([10, 20, 50], 1) == pytest.approx(3 / 80)


EQUAL = "{ history_discounting = false }"
# At 20 Mbit/s the queue never fills, so that all losses are random.
LOSSY = scenario_text(
    "Random losses",
    "40s",
    link_text("l", "a>b", "20Mbit/s", "40ms", loss=0.01),
    flow_text("three", "a>b", dccp(3, rate=EQUAL), inline("bulk", packet="500B")),
    flow_text("bare", "a>b", inline("tfrc", rate=EQUAL), inline("bulk", packet="500B")),
    flow_text("beat", "a>b", UDP, cbr("80kbit/s", "100B")),
    record="{ packets = true }",
)


@pytest.fixture(scope="module")
def lossy():
    return talkspurt.run(LOSSY)


@pytest.mark.parametrize("flow", ["three", "bare"])
def test_it_is_what_a_receiver_kept(lossy, flow):
    """Of more than eight events, so that the interval a receiver invents (§6.3.1) is gone.

    The receiver, which tests hold against the RFC and a Linux kernel, sees packets and a round trip
    that its sender tells; this sees the table of packets, afterwards: each time as much of it as had
    come when a report was made, 40 ms and its transmission before the sender read it. Where they
    differ, a loss lies about a round trip behind another: the receiver has the round trip of that
    moment (CCID 3 by a counter of its quarters, RFC 4342 §10.2), this the mean of the run. History
    discounting (§5.5) is off.
    """
    assert metrics.compute(lossy, "loss_events", flow).height > 20
    life = metrics.packets.life(lossy, flow).sort("number").select("number", "received_s")
    gauge = lossy.gauges(flow, "loss_event_rate")
    reports = gauge.filter((gauge["time_s"] > 20) & (gauge["side"] == "from"))
    rtt = losses.round_trip(lossy, flow, "from")
    ratios = []
    for time, reported in reports.select("time_s", "value").iter_rows():
        known = life.filter(life["received_s"] < time - 0.04003)
        seen = life.filter(life["number"] <= known["number"].max()).rows()
        ratios.append(losses.at_the_end(seen, losses.events(seen, rtt)) / reported)
    assert len(ratios) > 50
    assert sum(abs(ratio - 1) < 1e-6 for ratio in ratios) > 2 / 3 * len(ratios)
    assert max(ratios) < 1.5 and min(ratios) > 1 / 1.5
    (row,) = metrics.compute(lossy, "loss_event_rate", flow).to_dicts()
    assert row["value"] == pytest.approx(gauge["value"][-1], rel=0.05), "a little later"


def test_of_losses_that_are_far_apart_each_is_an_event(lossy):
    # A packet every 10 ms, a round trip of 80 ms: a loss in nine hides another, roughly.
    table = losses.loss_events(lossy, "beat")
    life = metrics.packets.life(lossy, "beat")
    lost = life.filter(life["received_s"].is_null())["number"].to_list()
    assert 0.7 * len(lost) < table.height <= len(lost)
    ends = [0, *(n for n in lost)]
    assert set(table["interval_packets"].cum_sum()) <= set(ends)
    last = table["interval_packets"].to_list()[-8:][::-1]
    mean = sum(i * w for i, w in zip(last, losses.WEIGHTS, strict=True)) / math.fsum(losses.WEIGHTS)
    assert table["loss_event_rate"][-1] == pytest.approx(1 / mean)


def test_without_a_loss_the_rate_is_none():
    wide = LOSSY.replace("loss = 0.01", "").replace("40s", "2s").replace("20Mbit/s", "1Gbit/s")
    quiet = talkspurt.run(wide)
    assert metrics.compute(quiet, "loss_event_rate", "beat")["value"].to_list() == [0.0]
    assert metrics.compute(quiet, "loss_events", "beat").is_empty()
