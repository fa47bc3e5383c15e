"""The picture of the network: what is drawn, where it stands, what it says."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from talkspurt import _core
from talkspurt.report import pictures, topology
from talkspurt.scenarios import source
from texts import BULK, flow_text, inline, link_text, tcp

ROOT = Path(__file__).parents[1]
SCENARIOS = [*ROOT.glob("scenarios/*.toml"), *ROOT.glob("scenarios/*/*.toml")]
QUEUE = 'queue = { kind = "droptail", packets = 9 }'


def link(a, b):
    numbers = {"rate_bps": 1e6, "delay_s": 0.01, "queue": "q", "mtu": 1500}
    return {"name": f"{a}-{b}", "from": a, "to": b, **numbers}


def read(text, folder="."):
    return json.loads(
        _core.load(text, "network", str(folder), [], None, source.unit_cube).topology(0)
    )


def picture(network, source=lambda name: "bulk"):
    flows = [(it["name"], it["transport"], source(it["name"])) for it in network["flows"]]
    schema = dict.fromkeys(("name", "transport", "source"), pl.String)
    named = pl.DataFrame(flows, schema=schema, orient="row")
    return topology.picture(json.dumps(network), named)


def drawn(network):
    found = picture(network)
    return found, ElementTree.fromstring(found.svg), ElementTree.fromstring(topology.file(found))


def texts(svg):
    return [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]


def flow(name, a, b, transport=tcp("cubic")):  # noqa: B008
    return flow_text(name, f"{a}>{b}", transport, BULK)


def dumbbell(hosts):
    text = f"""title = "t"\nduration = "9s"
[topology]\nkind = "dumbbell"\nleft = {hosts}
access = {{ rate = "100Mbit/s", delay = "1ms", delay_to = "20ms", {QUEUE} }}
bottleneck = {{ rate = "10Mbit/s", delay = "20ms", {QUEUE}, back = {{ rate = "1Mbit/s" }} }}
[nodes]\nwest = {{ colour = "#e69f00" }}
"""
    for n in range(1, hosts + 1):
        kind = tcp("cubic") if n % 2 else inline("sctp")
        text += flow(f"f-{n}", f"left-{n}", f"right-{n}", kind)
    return read(text)


def test_a_small_dumbbell_is_drawn_whole():
    found, page, alone = drawn(dumbbell(4))
    words = texts(page)
    assert {*(f"left-{n}" for n in range(1, 5)), "west", "east", "bottleneck"} <= set(words)
    assert "10 Mbit/s ⇄ 1 Mbit/s, 20 ms" in words and "DropTail 9 packets" in words
    assert [line["flows"] for line in found.key] == [[f"f-{n}"] for n in range(1, 5)]
    circles = list(page.iter("{http://www.w3.org/2000/svg}circle"))
    assert len({(c.get("cx"), c.get("cy")) for c in circles}) == 10
    assert [c.get("style") for c in circles].count("fill:#e69f00") == 1
    assert "f-1 – tcp-cubic, left-1 → right-1" in texts(alone)


def test_fifty_hosts_a_side_become_one_and_keep_their_delays_and_flows():
    found, page, _ = drawn(dumbbell(50))
    words = texts(page)
    assert words.count("left-1 … left-50") == 2  # the node and its links
    assert "100 Mbit/s, 1 ms … 20 ms" in words
    assert len(words) < 20
    # Of each transport one line, for all its flows.
    assert [(line["transport"], len(line["flows"])) for line in found.key] == [
        ("tcp-cubic", 25),
        ("sctp", 25),
    ]
    assert {line["ends"] for line in found.key} == {"left-1 … left-50 → right-1 … right-50"}


def test_many_networks_that_are_alike_become_one():
    def worlds(count, slow=None):
        text = 'title = "t"\nduration = "9s"\n'
        for n in range(count):
            rate = "1Mbit/s" if n == slow else "2Mbit/s"
            text += link_text(f"{n}-line", f"{n}-home>{n}-office", rate, "5ms", 9)
            text += flow(f"f{n}", f"{n}-home", f"{n}-office")
        return drawn(read(text))

    assert Counter(texts(worlds(4)[1]))["2 Mbit/s, 5 ms"] == 4
    found, page, _ = worlds(13)
    assert {"13 ×", "…-home", "…-office", "…-line"} <= set(texts(page))
    assert [len(line["flows"]) for line in found.key] == [13]
    # One that differs is drawn for itself.
    assert {"12 ×", "7-home", "1 Mbit/s, 5 ms"} <= set(texts(worlds(13, slow=7)[1]))


def test_lines_that_share_a_link_run_beside_each_other():
    _, page, _ = drawn(dumbbell(4))
    ways = [p.get("points") for p in page.iter("{http://www.w3.org/2000/svg}polyline")]
    middle = [
        way.split()[2] for way in ways if way and len(way.split()) == 6
    ]  # where each enters the bottleneck
    heights = sorted(float(corner.split(",")[1]) for corner in middle)
    gaps = [b - a for a, b in pairwise(heights)]
    assert len(heights) == 4
    assert gaps == pytest.approx([4.5] * 3, abs=0.11)  # as rounded


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_every_scenario_has_a_picture_with_all_that_it_names(file):
    network = read(file.read_text(encoding="utf-8"), file.parent)
    found, page, alone = drawn(network)
    assert {flow["name"] for flow in network["flows"]} == {f for k in found.key for f in k["flows"]}
    names = {node["name"] for node in network["nodes"]}
    titles = page.iter("{http://www.w3.org/2000/svg}title")
    # One of several hosts or networks that are alike is drawn for all.
    shown = {title.text for title in titles} & names
    words = " ".join(texts(page))
    assert shown == names or "…" in words
    assert all(name in words or " ×" in words for name in shown)
    left, top, width, height = map(float, alone.get("viewBox").split())
    assert (left, top) == (0, 0)
    for circle in page.iter("{http://www.w3.org/2000/svg}circle"):
        assert 0 < float(circle.get("cx")) < width and 0 < float(circle.get("cy")) < height


def test_the_picture_lies_among_the_figures(tmp_path):
    import talkspurt

    result = talkspurt.run(ROOT / "scenarios/topologies/chain.toml")
    pictures.of_result(result, tmp_path)
    svg = ElementTree.parse(tmp_path / "figures" / "topology.svg").getroot()
    assert {"node-1", "node-6", "hop-5"} <= set(texts(svg))
    assert "var(--ink)" in (svg[0].text or "")


def test_hops_without_a_link_are_drawn_as_air():
    flow = {"name": "f", "transport": "udp", "from": "a", "to": "c", "routes": [list("abc")]}
    nodes = [{"name": name} for name in "abc"]
    _, page, _ = drawn({"nodes": nodes, "links": [link("a", "b")], "flows": [flow]})
    wires = [p.get("class") for p in page.iter("{http://www.w3.org/2000/svg}polyline")]
    assert wires == ["wire", "wire air", "route"]
    assert len(texts(page)) == 3 + 3  # names of nodes, and the link in three lines


def test_a_link_of_an_imported_trace_has_no_numbers():
    unknown = {**link("a", "b"), "rate_bps": None, "delay_s": None, "queue": None, "mtu": None}
    flow = {"name": "f", "transport": "rtp", "from": "a", "to": "b", "routes": [["a", "b"]]}
    nodes = [{"name": name, "colour": None} for name in "ab"]
    _, page, _ = drawn({"nodes": nodes, "links": [unknown], "flows": [flow]})
    assert texts(page) == ["a-b", "rate and delay not known", "a", "b"]


def test_a_network_without_nodes_has_no_picture():
    assert picture({"nodes": [], "links": [], "flows": []}) is None


def test_calls_share_no_line_with_other_traffic():
    network = dumbbell(8)
    flows = [{**network["flows"][0], "name": f"f{n}"} for n in range(13)]
    sources = {"f3": "bulk", "f4": "bulk"}
    key = picture({**network, "flows": flows}, lambda name: sources.get(name, "speech")).key
    assert sorted(len(line["flows"]) for line in key) == [2, len(flows) - 2]
    assert [line["flows"] for line in key if line["in_background"]] == [["f3", "f4"]]
