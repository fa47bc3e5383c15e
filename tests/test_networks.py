"""What the texts of ``scenarios/networks`` say, held against their runs."""

from math import ceil
from pathlib import Path

import polars as pl
import pytest

import talkspurt

NETWORKS = Path(__file__).parents[1] / "scenarios" / "networks"


def run(name, **sets):
    result = talkspurt.run(NETWORKS / f"{name}.toml", set=sets)
    return result, {row["name"]: row for row in result.flows.to_dicts()}


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
    fixed = talkspurt.run(
        NETWORKS / "dsl.toml", set={"flows.call.playout.buffer": "60ms"}
    ).flows.row(by_predicate=pl.col("name") == "call", named=True)
    assert fixed["late_packets"] > 0.8 * fixed["sent_packets"]


def test_lte():
    _, flows = run("lte")
    assert flows["call"]["delay_p50_s"] > 1


def test_cafe():
    _, flows = run("cafe", duration="1200s")
    assert flows["call"]["lost_packets"] / flows["call"]["sent_packets"] == pytest.approx(
        0.03, abs=0.006
    )
    assert flows["call"]["late_packets"] == 0


def test_loss():
    _, flows = run("loss", duration="1200s")
    for row in flows.values():
        assert row["lost_packets"] / row["sent_packets"] == pytest.approx(0.05, abs=0.01)
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
