"""Groups of flows: the same as single flows, thousands of them against closed forms."""

import json

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import talkspurt as package
from command import refused, succeed, talkspurt
from talkspurt.scenarios.resolved import values

CALL = """\
from = "{0}"
to = "{1}"
transport = {{ kind = "udp" }}
rtcp = {{ enabled = false }}
source = {{ kind = "speech", codec = "pcmu" }}
"""
IP_BYTES = 12 + 8 + 20 + 160
"""RTP, UDP and IPv4 headers, and 20 ms of G.711."""
CALL_BPS = IP_BYTES * 8 * 50


def scenario(duration: str, links: str, flows: str) -> str:
    return f'title = "Calls"\nduration = "{duration}"\nseed = 4\n{links}\n{flows}\n'


def link(name: str, ends: str, rate_bps: float, more: str = "") -> str:
    from_, to = ends
    return (
        f'[links.{name}]\nfrom = "{from_}"\nto = "{to}"\nrate = "{rate_bps:.0f}bit/s"\n'
        f'delay = "10ms"\nqueue = {{ kind = "droptail", time = "40ms" }}\n{more}\n'
    )


def group(name: str, count: int, ends: str = "ab", more: str = "") -> str:
    return f"[flows.{name}]\ncount = {count}\n{more}\n{CALL.format(*ends)}"


def test_a_group_is_its_members():
    links = link("link", "ab", 0.9 * 200 * CALL_BPS, "loss = 0.01")
    grouped = package.run(scenario("1s", links, group("call", 200, more='start_spread = "300ms"')))
    single = "".join(
        f'[flows.call-{n}]\ngroup = "call"\nstart_spread = "300ms"\n{CALL.format("a", "b")}'
        for n in range(1, 201)
    )
    alone = package.run(scenario("1s", links, single))
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
    links = "".join(link(f"l{n}", (f"h{n}", "b"), 1e6) for n in range(1, 31))
    text = scenario("200ms", links, group("call", 30, ("h*", "b"), 'via = ["h*", "b"]'))
    result = package.run(text)
    assert result.flows["from"].to_list() == [f"h{n}" for n in range(1, 31)]
    flows = values(result.scenario)["flows"]
    assert flows["call-17"]["via"] == ["h17", "b"]
    routes = [flow["routes"] for flow in result.topology["flows"]]
    assert routes == [[[f"h{n}", "b"]] for n in range(1, 31)]


def test_a_member_is_changed_alone(tmp_path):
    text = scenario("1s", link("link", "ab", 1e8), group("call", 40))
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
    assert package.run(text).digest == package.run(stored, set={
        "flows.call-17.source.codec": "pcmu"
    }).digest  # fmt: skip
    kinds = [flow["source"]["codec"] for flow in values(other.scenario)["flows"].values()]
    assert kinds == ["pcmu"] * 16 + ["g729"] + ["pcmu"] * 23
    loaded = package.load(tmp_path / "run")
    assert list(loaded.topology["flows"]) == list(other.topology["flows"])
    assert [flow["name"] for flow in loaded.topology["flows"]] == other.flows["name"].to_list()


def test_the_number_of_calls_is_an_axis():
    axes = '[[axes]]\nname = "calls"\npath = "flows.call.count"\nvalues = [1, 50, 1000]\n'
    text = scenario("100ms", link("link", "ab", 1e9), group("call", 9))
    study = package.run(text + axes + "[replications]\ncount = 2\n", study=True)
    heights = [run.flows.height for run in study.runs]
    assert heights == [1, 1, 50, 50, 1000, 1000]
    assert len({run.digest for run in study.runs}) == 6


@pytest.mark.parametrize(("load", "lost"), [(1.25, 0.2), (0.5, 0.0)])
def test_calls_lose_what_the_link_cannot_carry(load, lost):
    calls, seconds = 600, 4
    rate = calls * CALL_BPS / load
    links = link("access", "ab", 4 * calls * CALL_BPS) + link("core", "bc", rate)
    measure = 'measure = { from = "2s" }\nrecord = { interval = "1s" }'
    text = scenario(f"{seconds}s", links, group("call", calls, "ac"))
    flows = package.run(text.replace("seed = 4", f"seed = 4\n{measure}")).flows
    total = flows.select(pl.col("^.*_packets$", "sent_bytes").sum()).row(0, named=True)
    # The times at which a sender works vary by up to a millisecond.
    assert flows["sent_packets"].is_between(99, 101).all()
    assert total["sent_packets"] == pytest.approx(calls * 50 * 2, rel=1e-3)
    assert total["sent_bytes"] == total["sent_packets"] * IP_BYTES
    arrived = total["received_packets"] + total["lost_packets"] + total["in_flight_packets"]
    assert total["sent_packets"] == arrived
    assert total["lost_packets"] / total["sent_packets"] == pytest.approx(lost, abs=0.001)
    # Propagation and one transmission on each link; a full queue takes 40 ms.
    least = 0.02 + IP_BYTES * 8 * (1 / (4 * calls * CALL_BPS) + 1 / rate)
    assert flows["delay_min_s"].min() >= least - 2e-9
    most = flows["delay_max_s"].max()
    if lost:
        assert most == pytest.approx(least + 0.04, abs=0.001)
    else:
        assert most < least + 0.005


def test_more_calls_than_16_bits_number():
    """Calls on a link of their own are the same beside so many others."""
    own = link("own", "ab", 0.9 * 300 * CALL_BPS)
    measured = "record = { interval = '1s', gauges = false }\nseed = 4"
    few = scenario("100ms", own, group("own", 300)).replace("seed = 4", measured)
    alone = package.run(few)
    crowd = link("crowd", "cd", 32_700 * CALL_BPS) + own
    flows = group("crowd", 32_700, "cd") + group("own", 300)
    many = package.run(scenario("100ms", crowd, flows).replace("seed = 4", measured))
    assert many.flows.height == 33_000
    assert_frame_equal(many.flows.filter(group="own"), alone.flows)
    crowd_rows = many.flows.filter(group="crowd")
    assert crowd_rows["sent_packets"].is_between(3, 5).all()
    assert crowd_rows["lost_packets"].sum() == 0


def test_the_terminal_and_errors_have_few_lines(tmp_path):
    file = tmp_path / "calls.toml"
    file.write_text(scenario("40ms", link("link", "ab", 1e9), group("call", 5000)))
    done = succeed("run", str(file), "--no-report", "--out", str(tmp_path / "run"))
    assert "call × 5000" in done.stdout
    assert len(done.stdout.splitlines()) < 40
    assert len((tmp_path / "run" / "scenario.toml").read_text()) < 4000
    assert len((tmp_path / "run" / "topology.json").read_text()) < 4000
    flows = json.loads(talkspurt("run", str(file), "--json", "--no-report").stdout)["flows"]
    assert len(flows) == 5000
    bad = refused("run", str(file), "--set", "flows.call.source.packet=7ms")
    assert len(bad.stderr.strip().splitlines()) == 1
    assert "flows.call.source.packet" in bad.stderr


def test_a_figure_over_time_is_of_some_flows():
    text = scenario("400ms", link("link", "ab", 1e8), group("call", 130) + group("few", 20))
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
