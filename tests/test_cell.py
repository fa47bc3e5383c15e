"""What is told of packets over the air: topology, metrics, traces and animation of a cell.

The access point's one transmitter sends to all stations, so that where a packet goes is told by its
way and not by the link.
"""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

import talkspurt
from command import output
from talkspurt import metrics
from talkspurt.metrics import packets
from talkspurt.runs import exporting
from test_animation import close, of_table, on_page, shown, table_of, unpacked

SCENARIO = Path(__file__).parent.parent / "scenarios" / "wireless-cell.toml"
SETS = {
    "axes": [],
    "replications.count": 1,
    "duration": "10s",
    "record.packets": True,
    "record.animation.packets": 3000,
}


@pytest.fixture(scope="module")
def cafe() -> talkspurt.Result:
    found = talkspurt.run(SCENARIO, set=SETS)
    assert isinstance(found, talkspurt.Result)
    return found


@pytest.fixture(scope="module")
def folder(cafe: talkspurt.Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cell") / "run"
    cafe.save(folder, report=False)
    return folder


def test_the_topology_has_every_transmitter_and_where_it_leads(cafe: talkspurt.Result) -> None:
    topology = cafe.topology
    led = {link["name"]: (link["from"], link["to"]) for link in topology["links"]}
    assert led == {
        "line": ("ap", "net"),
        "cafe.laptop": ("laptop", "ap"),
        "cafe.phone": ("phone", "ap"),
        "cafe.contenders": ("cafe.contenders", "ap"),
    }
    (access_point,) = topology["access_points"]
    assert (access_point["name"], access_point["from"]) == ("cafe.ap", "ap")
    assert access_point["to"] == ["laptop", "phone"]
    links = {flow["name"]: flow["links"] for flow in topology["flows"]}
    assert links["talk"] == {"from": [["cafe.laptop", "line"]], "to": [["line.back", "cafe.ap"]]}
    assert links["listen"] == {"from": [["line.back", "cafe.ap"]], "to": [["cafe.laptop", "line"]]}


@pytest.mark.parametrize("name", ["talk", "listen", "download"])
def test_metrics_of_a_flow_that_ends_in_a_cell(cafe: talkspurt.Result, name: str) -> None:
    flow = cafe.flows.filter(name=name).row(0, named=True)
    arrived = packets.life(cafe, name).filter(pl.col("received_s") >= 5.0)
    assert arrived.height > 200
    # Of the window, by the time of arrival, as the run itself counts them, but for RTCP.
    assert 8 * arrived["ip_bytes"].sum() / 5 == pytest.approx(flow["throughput_bps"], rel=0.005)
    assert arrived["delay_s"].min() > 0.01
    if name != "download":  # whose delays are of its segments with data only
        sent = packets.life(cafe, name).filter(pl.col("sent_s") >= 5.0)
        assert sent["delay_s"].drop_nulls().max() == pytest.approx(flow["delay_max_s"], rel=0.3)
        assert arrived["delay_s"].median() == pytest.approx(flow["delay_p50_s"], rel=0.05)
    (row,) = metrics.compute(cafe, "active_rate", name).to_dicts()
    assert row["value"] == pytest.approx(flow["throughput_bps"], rel=0.25)
    (row,) = metrics.compute(cafe, "normalised_throughput", name).to_dicts()
    assert row["value"] is None, "the air has no share"


# The usual script: what node $4 received of flow $8 that was for it. ap, net, laptop and phone are
# 0 to 3, as links name them.
AWK = (
    '$1 == "r" && $4 == "{node}" && $10 == "{node}.{flow}" {{ bytes += $6 }} END {{ print bytes }}'
)
NODES = {"net": 1, "laptop": 2, "phone": 3}


@pytest.mark.skipif(shutil.which("awk") is None, reason="awk is not installed")
def test_the_usual_awk_finds_what_a_station_received(folder: Path, cafe: talkspurt.Result) -> None:
    trace = exporting.export(folder, "ns2", None) / "trace.tr"
    for number, flow in enumerate(cafe.topology["flows"]):
        for side, end in (("from", flow["to"]), ("to", flow["from"])):
            script = AWK.format(node=NODES[end], flow=number)
            told = output("awk", script, trace)
            mine = cafe.packets().filter(
                flow=flow["name"], side=side, link=flow["links"][side][0][-1]
            )
            received = mine.filter(pl.col("received_s").is_not_null())["ip_bytes"].sum()
            assert int(told or 0) == received > 0, (flow["name"], side)


def test_every_packet_of_a_trace_goes_from_node_to_node(folder: Path) -> None:
    traced = exporting.export(folder, "ns2", None)
    reached: dict[str, str] = {}
    arrivals = 0
    for line in (traced / "trace.tr").read_text().splitlines():
        act, _, a, b, *_, src, dst, _, uid = line.split()
        # Where a packet was received it goes on; it comes from its source and ends at its
        # destination.
        if act == "+":
            assert a == reached.get(uid, src.split(".")[0])
        if act == "r":
            reached[uid] = b
            arrivals += b == dst.split(".")[0]
    assert arrivals > 3000


def test_nam_draws_every_station_and_moves_its_packets(folder: Path) -> None:
    lines = (exporting.export(folder, "nam", None) / "trace.nam").read_text().splitlines()
    names = {line.split('"')[1] for line in lines if "DLABEL" in line}
    assert names == {"ap", "net", "laptop", "phone", "cafe.contenders"}
    hops = {tuple(line.split()[4:7:2]) for line in lines if line.startswith("h ")}
    wires = {(line.split()[4], line.split()[6]) for line in lines if line.startswith("l ")}
    assert len(wires) == 4
    assert hops
    assert all((a, b) in wires or (b, a) in wires for a, b in hops)


def test_the_animation_shows_both_ways(cafe: talkspurt.Result) -> None:
    made = shown(cafe)
    begin, end = made.data["from"], made.data["to"]
    found = unpacked(made.data)
    # The table does not know when a packet was given up.
    kept = table_of(cafe, begin, end).filter(pl.col("fate") != "retries")
    close(on_page(found.filter(pl.col("fate") != "retries"), end), of_table(kept, end))
    assert found.filter(link="cafe.ap").height > 100
    # Each packet on the lane of its own receiver, in its own direction.
    (world,) = made.worlds
    where = places(world["ground"])
    lanes = made.data["lanes"]
    for link in made.data["links"]:
        first, last = (lanes[link["lane"]]["points"][k] for k in (0, -1))
        a, b = (
            min(where, key=lambda n: (where[n][0] - x) ** 2 + (where[n][1] - y) ** 2)
            for x, y in (first, last)
        )
        assert link["name"] in (f"cafe.{a}", "line", "line.back"), (link, a, b)
        assert link["name"] != "line.back" or (a, b) == ("net", "ap")
    both = [link for link in made.data["links"] if link["name"] == "cafe.ap"]
    assert len({link["lane"] for link in both}) == 2
    assert len({link["stack"] for link in both}) == 1, "one queue"
    links = [link["name"] for link in made.data["links"]]
    assert all(link["stack"] == link["lane"] for link in made.data["links"]
               if link["name"] != "cafe.ap"), links  # fmt: skip


def places(ground: str) -> dict[str, tuple[float, float]]:
    """The nodes of the picture of a network."""
    groups = ElementTree.fromstring(ground).iter("g")
    circles = {group.findtext("title"): group.find("circle") for group in groups}
    return {
        name: (float(circle.get("cx", "")), float(circle.get("cy", "")))
        for name, circle in circles.items()
        if name and circle is not None
    }


def test_frames_that_contenders_give_up_are_no_drops_to_show() -> None:
    # In a crowd of sixteen with room for every packet, the contenders alone lose frames.
    sets = SETS | {
        "cells.cafe.contenders.count": 8,
        "cells.cafe.short_retry_limit": 7,
        "cells.cafe.queue": {"kind": "droptail", "packets": 5000},
        "duration": "6s",
        "flows.download.source": {"kind": "bulk", "total": "20kB"},
    }
    result = talkspurt.run(SCENARIO, set=sets)
    assert isinstance(result, talkspurt.Result)
    drops = dict(result.links.select("name", "drops").iter_rows())
    assert drops.pop("cafe.contenders") > 0
    lost = result.packets().filter(pl.col("fate").is_in(["retries", "full"]))
    made = shown(result)
    if sum(drops.values()) == lost.filter(pl.col("enqueued_s") >= 5.0).height == 0:
        assert "none was dropped" in made.lead
        assert made.data["from"] == 5.0
    else:
        assert "the first that is dropped" in made.lead
        assert sum(world["drops"] for world in made.worlds) > 0


def test_packets_at_the_retry_limit_fall_when_they_have_left_the_air() -> None:
    sets = SETS | {"cells.cafe.contenders.count": 16, "record.animation.from": "5s"}
    result = talkspurt.run(SCENARIO, set=sets)
    assert isinstance(result, talkspurt.Result)
    found = unpacked(shown(result).data).filter(fate="retries")
    assert found.height > 0
    # Seven tries: no less than seven times the shortest frame's 20 µs, and six DIFS of 28 µs.
    assert (found["ended"] - found["dequeued"]).min() > 6 * 28e-6 + 7 * 20e-6
    assert all(b >= a for a, b in pairwise(found["enqueued"]))
