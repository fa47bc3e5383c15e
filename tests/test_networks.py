"""What the texts of ``scenarios/networks`` and ``scenarios/topologies`` say, held against their runs."""

from math import ceil, sqrt

import polars as pl
import pytest

import talkspurt
from conftest import ROOT


def run(name, folder="networks", **sets):
    result = talkspurt.run(ROOT / "scenarios" / folder / f"{name}.toml", set=sets)
    return result, {row["name"]: row for row in result.flows.to_dicts()}


def loss(rows):
    return sum(row["lost_packets"] for row in rows) / sum(row["sent_packets"] for row in rows)


def busy(result, link):
    return result.links.filter(pl.col("name") == link)["utilisation"][0]


def test_geo():
    result, flows = run("geo")
    # Light, and a packet of 200 bytes at 10 Mbit/s.
    assert flows["call"]["delay_min_s"] == pytest.approx(0.257589514 + 160e-6, abs=1e-8)
    lost = 1 - (1 - 1e-7) ** (8 * 1500)
    assert lost == pytest.approx(1 / 800, rel=0.05)
    assert flows["call"]["lost_packets"] <= 2
    assert busy(result, "geo") < 1 / 3
    assert flows["call"]["delay_max_s"] > 0.29


def test_leo():
    result, flows = run("leo")
    call = flows["call"]
    assert call["delay_min_s"] == pytest.approx(0.018669 + 16e-6, abs=2e-6)
    assert call["delay_max_s"] == pytest.approx(0.022495 + 16e-6, abs=2e-6)
    # Seven hand-overs, after each two or three packets, every second of them lost.
    assert 4 <= call["lost_packets"] <= 14
    frames = result.frames("call").filter(pl.col("fate") == "lost")
    after = frames["handed_over_s"].to_numpy() % 15
    assert len(after) == call["lost_packets"] and all(after < 0.051)


def test_dsl():
    _, flows = run("dsl")
    cells = ceil((60 + 32 + 8) / 48)
    assert cells * 53 == 159
    assert flows["call"]["delay_min_s"] == pytest.approx(0.008 + cells * 53 * 8e-6, abs=1e-9)
    assert ceil((1492 + 32 + 8) / 48) * 53 * 8e-6 == pytest.approx(0.0136, abs=1e-4)
    assert 0.35 < flows["call"]["delay_p95_s"] < 0.5
    # The adaptive playout buffer follows the queue; a fixed one would play nothing.
    assert flows["call"]["late_packets"] == 0
    assert flows["call"]["concealed_ratio"] < 0.05
    assert flows["call"]["mouth_to_ear_p50_s"] > 0.4
    _, flows = run("dsl", **{"flows.call.playout.buffer": "60ms"})
    fixed = flows["call"]
    assert fixed["late_packets"] > 0.8 * fixed["sent_packets"]


def test_lte():
    _, flows = run("lte")
    assert flows["call"]["delay_p50_s"] > 1


def test_cafe():
    _, flows = run("cafe", duration="1200s")
    assert loss([flows["call"]]) == pytest.approx(0.03, abs=0.006)
    assert flows["call"]["late_packets"] == 0


def test_loss():
    _, flows = run("loss", duration="1200s")
    for row in flows.values():
        assert loss([row]) == pytest.approx(0.05, abs=0.01)
    assert flows["single"]["burst_ratio"] == pytest.approx(1, abs=0.1)
    assert flows["bursts"]["burst_ratio"] == pytest.approx(5 * 0.95, rel=0.15)


def test_jitter():
    _, flows = run("jitter")
    # 160 bytes and the headers of IP and UDP at 10 Mbit/s.
    least = 0.020 + 188 * 8e-7
    assert flows["overtaking"]["delay_p50_s"] == pytest.approx(least + 0.025, abs=0.002)
    assert flows["in-order"]["delay_p50_s"] > least + 0.050 - 0.015
    for row in flows.values():
        assert least <= row["delay_min_s"] and row["delay_max_s"] <= least + 0.050


def test_steps():
    result, flows = run("steps")
    # While the rate is too low 3/8 of what is sent beyond the queue is dropped, and one packet waits
    # for fifty and itself.
    packet = 1028 * 8
    assert flows["stream"]["delay_max_s"] == pytest.approx(51 * packet / 5e5 + 0.02, rel=0.05)
    series = result.link_series("line")
    late = series.filter(pl.col("time_s") > 20.5)
    assert late["queue_packets"].max() <= 1


def test_in_a_dumbbell_rates_are_inversely_proportional_to_round_trips():
    _, flows = run("dumbbell", "topologies")
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
        _, flows = run("parking-lot", "topologies", seed=str(seed))
        long, short = flows["long"], [flows[f"short-{k}"] for k in (1, 2, 3)]
        ratio = long["goodput_bps"] / (sum(row["goodput_bps"] for row in short) / 3)
        ratios.append(ratio)
        # The law by the losses that were, too. Back: 1 + 60 + 1 and 29 + 20 + 29 ms.
        trips = (short[1]["delay_p50_s"] + 0.078) / (long["delay_p50_s"] + 0.062)
        assert trips == pytest.approx(1, abs=0.03)
        assert ratio == pytest.approx(trips * sqrt(loss(short) / loss([long])), rel=0.08)
    assert sum(ratios) / 4 == pytest.approx(1 / sqrt(3), rel=0.1)


def test_in_a_chain_delays_add_up():
    _, flows = run("chain", "topologies")
    for name, seconds in (("there", 0.034), ("back", 0.038)):
        row = flows[name]
        # Packets of RTCP, 499 ms apart at least, may be before one.
        assert row["delay_p50_s"] == pytest.approx(seconds, abs=1e-9)
        assert row["delay_min_s"] == pytest.approx(seconds, abs=1e-9)


def test_one_of_two_paths_does_not_feel_the_other():
    _, flows = run("two-paths", "topologies")
    south, north = flows["south"], flows["north"]
    assert south["delay_min_s"] == pytest.approx(0.027832, abs=1e-9)
    assert south["delay_p95_s"] == pytest.approx(0.027832, abs=1e-9)
    assert south["lost_packets"] == 0
    assert north["lost_packets"] > 0 and north["delay_p50_s"] > 0.05


def test_stations_of_a_wireless_edge_have_the_air_they_were_given():
    _, flows = run("wireless-edge", "topologies")
    assert flows["good"]["lost_packets"] == 0
    for name in ("bursts", "single"):
        row = flows[name]
        # Of 15 000: three deviations are 0.4 % of single losses, some 1 % of bursts of three.
        assert loss([row]) == pytest.approx(0.03, abs=0.01)
    assert flows["single"]["burst_ratio"] == pytest.approx(1, abs=0.15)
    assert flows["bursts"]["burst_ratio"] == pytest.approx(3 * 0.97, abs=0.45)
