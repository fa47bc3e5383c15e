"""Groups of flows: the same as single flows, thousands of them against closed forms."""

import json

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import talkspurt as package
from command import succeed, talkspurt, told
from talkspurt.scenarios.resolved import values
from texts import axis_text, flow_text, inline, link_text, put, scenario_text

IP_BYTES = 12 + 8 + 20 + 160
"""RTP, UDP and IPv4 headers, and 20 ms of G.711."""
CALL_BPS = IP_BYTES * 8 * 50


def scenario(duration: str, *tables: str, **more) -> str:
    return scenario_text("Calls", duration, *tables, seed=4, **more)


def link(name: str, ends: str, rate_bps: float, **more) -> str:
    queue = inline("droptail", time="40ms")
    return link_text(name, ends, f"{rate_bps:.0f}bit/s", "10ms", queue=queue, **more)


def calls(name: str, ends: str = "a>b", **more) -> str:
    return flow_text(name, ends, rtcp="{ enabled = false }", **more)


def group(name: str, count: int, ends: str = "a>b", **more) -> str:
    return calls(name, ends, count=count, **more)


def test_a_group_is_its_members():
    links = link("link", "a>b", 0.9 * 200 * CALL_BPS, loss=0.01)
    grouped = package.run(scenario("1s", links, group("call", 200, start_spread="300ms")))
    spread = {"group": "call", "start_spread": "300ms"}
    single = (calls(f"call-{n}", **spread) for n in range(1, 201))
    alone = package.run(scenario("1s", links, *single))
    assert grouped.digest == alone.digest
    for table in ("flows", "links", "series", "frames", "events"):
        assert_frame_equal(grouped.table(table), alone.table(table))
    assert list(grouped.topology["flows"]) == list(alone.topology["flows"])
    # The group stays one in the record of the run, which gives the same run.
    assert len(grouped.scenario) < 4000 < len(alone.scenario)
    again = package.run(grouped.scenario)
    assert (again.digest, again.scenario) == (grouped.digest, grouped.scenario)
    flows, singles = values(grouped.scenario)["flows"], values(alone.scenario)["flows"]
    assert dict(flows) == dict(singles)
    assert "call-201" not in flows and "call-0" not in flows and "call" not in flows
    assert "call-007" not in flows and len(flows) == 200


def test_nodes_of_members_have_their_numbers():
    links = (link(f"l{n}", f"h{n}>b", 1e6) for n in range(1, 31))
    text = scenario("200ms", *links, group("call", 30, "h*>b", via='["h*", "b"]'))
    result = package.run(text)
    assert result.flows["from"].to_list() == [f"h{n}" for n in range(1, 31)]
    flows = values(result.scenario)["flows"]
    assert flows["call-17"]["via"] == ["h17", "b"]
    routes = [flow["routes"] for flow in result.topology["flows"]]
    assert routes == [[[f"h{n}", "b"]] for n in range(1, 31)]


def test_a_member_is_changed_alone(tmp_path):
    text = scenario("1s", link("link", "a>b", 1e8), group("call", 40))
    usual = package.run(text)
    other = package.run(text, set={"flows.call-17.source.codec": "g729"})
    assert other.flows["name"].to_list() == usual.flows["name"].to_list()
    bytes_per_packet = pl.col("sent_bytes") / pl.col("sent_packets")
    found = other.flows.select("name", packet=bytes_per_packet).filter(pl.col("packet") != IP_BYTES)
    assert found.rows() == [("call-17", IP_BYTES - 160 + 20)]
    # Also in a stored scenario, and once more after that.
    other.save(tmp_path / "run", report=False)
    stored = tmp_path / "run" / "scenario.toml"
    assert package.run(stored).digest == other.digest
    back = package.run(stored, set={"flows.call-17.source.codec": "pcmu"})
    assert package.run(text).digest == back.digest
    kinds = [flow["source"]["codec"] for flow in values(other.scenario)["flows"].values()]
    assert kinds == ["pcmu"] * 16 + ["g729"] + ["pcmu"] * 23
    loaded = package.load(tmp_path / "run")
    assert list(loaded.topology["flows"]) == list(other.topology["flows"])
    assert [flow["name"] for flow in loaded.topology["flows"]] == other.flows["name"].to_list()


def test_the_number_of_calls_is_an_axis():
    axis = axis_text("flows.call.count", "[1, 50, 1000]", name="calls")
    tables = (link("link", "a>b", 1e9), group("call", 9), axis)
    study = package.run(scenario("100ms", *tables, replications="{ count = 2 }"), study=True)
    heights = [run.flows.height for run in study.runs]
    assert heights == [1, 1, 50, 50, 1000, 1000]
    assert len({run.digest for run in study.runs}) == 6


@pytest.mark.parametrize(("load", "lost"), [(1.25, 0.2), (0.5, 0.0)])
def test_calls_lose_what_the_link_cannot_carry(load, lost):
    count, seconds = 600, 4
    rate = count * CALL_BPS / load
    links = link("access", "a>b", 4 * count * CALL_BPS), link("core", "b>c", rate)
    measured = {"measure": '{ from = "2s" }', "record": '{ interval = "1s" }'}
    text = scenario(f"{seconds}s", *links, group("call", count, "a>c"), **measured)
    flows = package.run(text).flows
    total = flows.select(pl.col("^.*_packets$", "sent_bytes").sum()).row(0, named=True)
    # The times at which a sender works vary by up to a millisecond.
    assert flows["sent_packets"].is_between(99, 101).all()
    assert total["sent_packets"] == pytest.approx(count * 50 * 2, rel=1e-3)
    assert total["sent_bytes"] == total["sent_packets"] * IP_BYTES
    arrived = total["received_packets"] + total["lost_packets"] + total["in_flight_packets"]
    assert total["sent_packets"] == arrived
    assert total["lost_packets"] / total["sent_packets"] == pytest.approx(lost, abs=0.001)
    # Propagation and one transmission on each link; a full queue takes 40 ms.
    least = 0.02 + IP_BYTES * 8 * (1 / (4 * count * CALL_BPS) + 1 / rate)
    assert flows["delay_min_s"].min() >= least - 2e-9
    most = flows["delay_max_s"].max()
    if lost:
        assert most == pytest.approx(least + 0.04, abs=0.001)
    else:
        assert most < least + 0.005


def test_more_calls_than_16_bits_number():
    """Calls on a link of their own are the same beside so many others."""
    own = link("own", "a>b", 0.9 * 300 * CALL_BPS), group("own", 300)
    record = '{ interval = "1s", gauges = false }'
    alone = package.run(scenario("100ms", *own, record=record))
    crowd = link("crowd", "c>d", 32_700 * CALL_BPS), group("crowd", 32_700, "c>d")
    many = package.run(scenario("100ms", *crowd, *own, record=record))
    assert many.flows.height == 33_000
    assert_frame_equal(many.flows.filter(group="own"), alone.flows)
    crowd_rows = many.flows.filter(group="crowd")
    assert crowd_rows["sent_packets"].is_between(3, 5).all()
    assert crowd_rows["lost_packets"].sum() == 0


def test_the_terminal_and_errors_have_few_lines(tmp_path):
    text = scenario("40ms", link("link", "a>b", 1e9), group("call", 5000))
    file = put(tmp_path / "calls.toml", text)
    done = succeed("run", str(file), "--no-report", "--out", str(tmp_path / "run"))
    assert "call × 5000" in done.stdout
    assert len(done.stdout.splitlines()) < 40
    assert len((tmp_path / "run" / "scenario.toml").read_text()) < 4000
    assert len((tmp_path / "run" / "topology.json").read_text()) < 4000
    flows = json.loads(talkspurt("run", str(file), "--json", "--no-report").stdout)["flows"]
    assert len(flows) == 5000
    assert "flows.call.source.packet" in told("run", file, "--set", "flows.call.source.packet=7ms")


def test_a_figure_over_time_is_of_some_flows():
    text = scenario("400ms", link("link", "a>b", 1e8), group("call", 130), group("few", 20))
    result = package.run(text)
    figure = result.figure("throughput_bps", time=True)
    notes = " ".join(found.get_text() for found in figure.texts).replace("\n", " ")
    assert "Computed from 100 of the 130 flows call." in notes
    # One member, and numbers of whole runs, are as they are.
    for whole in ({"time": True, "flow": "call-2"}, {"kind": "cdf"}):
        drawn = result.figure("throughput_bps", **whole)
        assert not any("Computed" in found.get_text() for found in drawn.texts)
    with pytest.raises(KeyError, match=r"no flow 'cal'.* call-20, and 130 more"):
        result.series("cal")
