"""What the texts of ``scenarios/topologies`` say, held against their runs."""

from math import sqrt
from pathlib import Path

import pytest

import talkspurt

SHAPES = Path(__file__).parents[1] / "scenarios" / "topologies"


def flows_of(shape, **sets):
    result = talkspurt.run(SHAPES / f"{shape}.toml", set=sets)
    return {row["name"]: row for row in result.flows.to_dicts()}


def loss(rows):
    return sum(row["lost_packets"] for row in rows) / sum(row["sent_packets"] for row in rows)


def test_in_a_dumbbell_rates_are_inversely_proportional_to_round_trips():
    flows = flows_of("dumbbell")
    # There with the queue, as measured; back without one: twice the access and the bottleneck.
    back = {"nearest": 0.015, "near": 0.045, "far": 0.075, "farthest": 0.105}
    products = [
        row["goodput_bps"] * (row["delay_p50_s"] + back[name]) for name, row in flows.items()
    ]
    mean = sum(products) / len(products)
    assert products == pytest.approx([mean] * 4, rel=0.1)
    assert flows["nearest"]["goodput_bps"] > 4 * flows["farthest"]["goodput_bps"]


def test_in_a_parking_lot_the_long_way_gets_less_by_the_root_of_its_links():
    ratios = []
    for seed in range(1, 5):
        flows = flows_of("parking-lot", seed=str(seed))
        long, short = flows["long"], [flows[f"short-{k}"] for k in (1, 2, 3)]
        ratio = long["goodput_bps"] / (sum(row["goodput_bps"] for row in short) / 3)
        ratios.append(ratio)
        # The law by the losses that were, too. Back: 1 + 60 + 1 and 29 + 20 + 29 ms.
        trips = (short[1]["delay_p50_s"] + 0.078) / (long["delay_p50_s"] + 0.062)
        assert trips == pytest.approx(1, abs=0.03)
        assert ratio == pytest.approx(trips * sqrt(loss(short) / loss([long])), rel=0.08)
    assert sum(ratios) / 4 == pytest.approx(1 / sqrt(3), rel=0.1)


def test_in_a_chain_delays_add_up():
    flows = flows_of("chain")
    for name, seconds in (("there", 0.034), ("back", 0.038)):
        row = flows[name]
        # Packets of RTCP, 499 ms apart at least, may be before one.
        assert row["delay_p50_s"] == pytest.approx(seconds, abs=1e-9)
        assert row["delay_min_s"] == pytest.approx(seconds, abs=1e-9)


def test_one_of_two_paths_does_not_feel_the_other():
    flows = flows_of("two-paths")
    south, north = flows["south"], flows["north"]
    assert south["delay_min_s"] == pytest.approx(0.027832, abs=1e-9)
    assert south["delay_p95_s"] == pytest.approx(0.027832, abs=1e-9)
    assert south["lost_packets"] == 0
    assert north["lost_packets"] > 0 and north["delay_p50_s"] > 0.05


def test_stations_of_a_wireless_edge_have_the_air_they_were_given():
    flows = flows_of("wireless-edge")
    assert flows["good"]["lost_packets"] == 0
    for name in ("bursts", "single"):
        row = flows[name]
        # Of 15 000: three deviations are 0.4 % of single losses, some 1 % of bursts of three.
        assert row["lost_packets"] / row["sent_packets"] == pytest.approx(0.03, abs=0.01)
    assert flows["single"]["burst_ratio"] == pytest.approx(1, abs=0.15)
    assert flows["bursts"]["burst_ratio"] == pytest.approx(3 * 0.97, abs=0.45)
