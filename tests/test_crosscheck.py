"""The same experiments in ns-2: the script, what it refuses, its trace, and how well both agree."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import polars as pl
import pytest

import talkspurt as package
import texts
from command import needs_ns, output, refused, succeed, talkspurt
from conftest import problems
from pages import blocks
from talkspurt.ns2 import crosscheck as both
from talkspurt.ns2 import script, source
from talkspurt.ns2.network import Wire
from talkspurt.ns2.reading import Findings, Part, SourceMap
from talkspurt.ns2.script import Way
from talkspurt.ns2.trace import Reader
from talkspurt.scenarios.source import read

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "validation" / "ns2"))
from cases import BULK, CASES, SPEECH, TFRC, UDP, cbr, dccp, flow, network, tcp  # noqa: E402
from crosscheck import compared, together, within  # noqa: E402

GOLDEN = Path(__file__).parent / "golden" / "ns2-small.tcl"

SMALL = """\
title = "Small"
duration = "10s"
seed = 7

[measure]
from = "1s"

[links.sky]
from = "west"
to = "east"
rate = "256kbit/s"
delay = "120ms"
queue = { kind = "droptail", packets = 12 }
loss = 0.01
back = { rate = "64kbit/s", loss = 0.0 }

[flows.call]
from = "west"
to = "east"
sizing = "ns2"
transport = { kind = "udp" }
source = { kind = "speech", codec = "pcmu", noise = "0s" }
rtcp = { enabled = false }

[flows.upload]
from = "west"
to = "east"
start = "2s"
sizing = "ns2"
transport = { kind = "tcp", controller = "newreno", timestamps = false, initial_ssthresh = 8 }
source = { kind = "bulk" }
"""


def test_the_script_of_a_small_scenario():
    """Look at the difference, and write the file anew if it is meant: this very text."""
    made = script.write(read(SMALL, set={"flows.call.start_spread": "5ms"})).text
    made = made.replace(f"talkspurt {package.__version__}", "talkspurt VERSION")
    assert made == GOLDEN.read_text(encoding="utf-8")


def test_every_comment_names_the_line_that_says_so():
    lines = SMALL.splitlines()
    text = script.write(read(SMALL, set=["flows.call.start_spread=5ms"])).text
    said = re.findall(r";# line (\d+): ([\w.-]+)(?: = (\S+))?", text)
    assert len(said) > 20
    for number, path, _ in said:
        words = path.split(".")
        line = lines[int(number) - 1]
        assert line.split(" =")[0] in words and words[-1] in line, (number, path)
    assert ";# --set: flows.call.start_spread" in text
    assert ';# default: flows.upload.transport.min_rto = "1s"' in text


INTERLEAVED = texts.inline("sctp", interleaving=True, send_buffer="64kB")
UNKNOWN = {"queue": texts.inline("codel"), "jitter": "1ms", "framing": "ethernet"}
UNKNOWN["events"] = '[{ at = "1s", state = "down" }, { at = "2s", state = "up" }]'
REFUSED = texts.scenario_text(
    "All that ns-2 has not",
    "5s",
    texts.link_text("l", "a>b", "1Mbit/s", "10ms", **UNKNOWN),
    texts.link_text("m", "b>a", "1Mbit/s", "10ms", queue=texts.inline("red", packets=20)),
    texts.flow_text("call", "a>b"),
    texts.flow_text("bbr", "a>b", texts.tcp("bbr"), texts.BULK),
    texts.flow_text("sctp", "a>b", INTERLEAVED, texts.cbr("64kbit/s", "160B"), ip="v6"),
    texts.flow_text("four", "a>b", texts.dccp(4, profile="ns2"), texts.BULK),
    texts.flow_text("tfrc", "a>b", texts.inline("tfrc"), texts.cbr("64kbit/s", "160B")),
)


def test_what_ns2_cannot_express_is_refused_by_name_and_all_at_once():
    found = {problem["path"]: problem for problem in problems(script.write, read(REFUSED))}
    assert set(found) == {
        "links.l.queue.kind", "links.l.jitter", "links.l.framing", "links.l.events",
        "links.m", "links.m.queue.ns2",
        "flows.call.rtcp.enabled",
        "flows.bbr.transport.controller",
        "flows.sctp.ip", "flows.sctp.transport.send_buffer",
        "flows.sctp.transport.interleaving", "flows.sctp.transport.ack_clocked",
        "flows.four.sizing", "flows.four.transport.ccid",
        "flows.tfrc.sizing", "flows.tfrc.transport.profile", "flows.tfrc.source",
        "flows.tfrc.transport.rate.nominal_size",
    }  # fmt: skip
    assert found["links.l.jitter"]["line"] == 10
    assert found["flows.four.sizing"]["hint"] == "--set flows.four.sizing=ns2"


def test_its_hints_help():
    """Doing what the words say leaves nothing to refuse."""
    question = read(ROOT / "scenarios" / "first-call.toml")
    sets = [p["hint"].removeprefix("--set ") for p in problems(script.write, question)]
    assert script.write(read(ROOT / "scenarios" / "first-call.toml", set=sets)).ways


def test_a_study_is_refused():
    with pytest.raises(package.ScenarioError, match="axes: ns-2 cannot express it"):
        script.write(read(ROOT / "scenarios" / "which-transport.toml"))


def test_a_key_that_nobody_knows_is_refused():
    findings = Findings(SourceMap(read(SMALL)))
    part = Part({"new": 3, "known": 1, "off": False, "inner": {"deep": "x"}}, "links.l", findings)
    part.take("known")
    part.part("inner")
    part.rest()
    assert [p["path"] for p in findings.problems] == ["links.l.inner.deep", "links.l.new"]


def test_a_source_that_nobody_knows_is_refused_once():
    findings = Findings(SourceMap(read(SMALL)))
    part = Part({"kind": "film", "frames": 25}, "flows.f.source", findings)
    source.read(part, None)
    part.rest()
    assert [p["path"] for p in findings.problems] == ["flows.f.source.kind"]


def test_a_bulk_window_is_the_narrower_of_the_buffers():
    upload = flow(tcp("reno", send_buffer="64kB", receive_buffer="200kB"), BULK)
    text = script.write(read(network({"upload": upload}, "1s"))).text
    assert re.search(r'set window_ 64 .*upload\.transport\.send_buffer = "64kB"', text)


def test_lengths_that_the_script_does_not_draw_are_refused():
    heavy = {"kind": "on_off", "rate": "64kbit/s", "packet": "160B",
             "spread": {"kind": "pareto", "shape": 1.5}}  # fmt: skip
    poisson = {"kind": "poisson", "rate": "64kbit/s", "packet": "160B"}
    calls = {"a": flow(UDP, heavy), "b": flow(UDP, poisson)}
    found = problems(script.write, read(network(calls, "1s")))
    paths = {problem["path"] for problem in found}
    assert {"flows.a.source.spread", "flows.b.source.kind"} <= paths


def test_two_routes_to_one_node_are_refused():
    scenario = network({"a": flow(UDP, SPEECH), "b": flow(UDP, SPEECH)}, "1s")
    scenario["links"]["other"] = {**scenario["links"]["core"], "to": "middle"}
    scenario["links"]["more"] = {**scenario["links"]["core"], "from": "middle"}
    scenario["flows"]["b"]["via"] = ["caller", "west", "middle", "east", "callee"]
    with pytest.raises(package.ScenarioError, match=r"flows\.b\.via: .* at west it leaves for mid"):
        script.write(read(scenario))


def test_longer_packets_than_a_link_takes_are_refused():
    scenario = network({"a": flow(tcp("reno"), BULK)}, "1s", mtu="1000B")
    with pytest.raises(package.ScenarioError, match=r"links\.core\.mtu: .* 1040 B long"):
        script.write(read(scenario))


# --- Traces --------------------------------------------------------------------------------------

TRACE = """\
+ 1 0 1 udp 100 ------- 1 0.0 2.0 0 0
- 1 0 1 udp 100 ------- 1 0.0 2.0 0 0
+ 1.01 0 1 udp 100 ------- 1 0.0 2.0 1 1
r 1.2 0 1 udp 100 ------- 1 0.0 2.0 0 0
+ 1.2 1 2 udp 100 ------- 1 0.0 2.0 0 0
- 1.2 1 2 udp 100 ------- 1 0.0 2.0 0 0
- 1.11 0 1 udp 100 ------- 1 0.0 2.0 1 1
+ 1.25 0 1 udp 100 ------- 1 0.0 2.0 2 2
d 1.25 0 1 udp 100 ------- 1 0.0 2.0 2 2
r 1.31 0 1 udp 100 ------- 1 0.0 2.0 1 1
r 1.5 1 2 udp 100 ------- 1 0.0 2.0 0 0
+ 1.6 2 1 ack 40 ------- 1 2.0 0.0 0 3
+ 2.1 0 1 udp 100 ------- 1 0.0 2.0 3 4
- 2.1 0 1 udp 100 ------- 1 0.0 2.0 3 4
"""


def test_a_trace_by_hand():
    """Window 0 to 2 s. Three packets were sent in it: one arrived after 0.5 s, one was dropped, one
    is on its way; the fourth came later. The first link sent two of 100 ms each, and one packet
    waited 0.1 s for it."""
    wires = [Wire("near", (0, 1), 8000, 1500), Wire("far", (1, 2), 8000, 1500)]
    reader = Reader([Way("call", 1, (0, 2))], wires, (0.0, 2.0))
    reader.read(TRACE.splitlines())
    call = reader.flows["call"].row(2.0)
    assert (call["sent_packets"], call["received_packets"], call["lost_packets"]) == (3, 1, 1)
    assert (call["sent_bytes"], call["throughput_bps"]) == (300, 400)
    assert [call[f"delay_{which}_s"] for which in ("min", "mean", "max")] == [0.5] * 3
    near = reader.links["near"].row(0.0, 2.0)
    assert (near["sent_packets"], near["drops"]) == (2, 1)
    assert near["utilisation"] == pytest.approx(0.1)
    assert near["queue_mean_packets"] == pytest.approx(0.05)
    assert reader.links["far"].row(0.0, 2.0)["sent_packets"] == 1


def test_the_lines_of_sctps_chunks_are_one_packet():
    chunk = "+ 1 0 1 sctp 1472 -------D 1 0.0 2.0 {} {} 9 0 0"
    reader = Reader([Way("s", 1, (0, 2))], [Wire("near", (0, 1), 8000, 1500)], (0.0, 2.0))
    reader.read(
        [chunk.format(2, 1), chunk.format(2, 2), "+ 1 0 1 sctp 56 -------H 1 0.0 2.0 1 -1 10 0 0"]
    )
    assert reader.flows["s"].sent_packets == 1


def test_open_packets_are_all_that_is_kept():
    reader = Reader([Way("call", 1, (0, 1))], [Wire("l", (0, 1), 8000, 1500)], (0.0, 1e9))
    for i in range(1000):
        for event, at in (("+", i), ("-", i), ("r", i + 0.5)):
            reader.read([f"{event} {at} 0 1 udp 100 ------- 1 0.0 1.0 {i} {i}"])
    assert (len(reader._open), len(reader.links["l"].waiting)) == (0, 0)
    assert reader.flows["call"].received_packets == 1000


# --- Both ----------------------------------------------------------------------------------------

TESTED = [case for case in CASES if case.seeds == 1 or case.name == "four renos through RED"]


@needs_ns
@pytest.mark.parametrize("case", TESTED, ids=lambda case: case.name)
def test_agrees_as_well_as_it_has_to(case):
    found = compared(case, 1)
    assert within(case, found), found


@needs_ns
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.together is not None], ids=lambda case: case.name
)
def test_as_many_packets_leave_at_the_same_instant_as_the_page_says(case):
    """Of TCP: the overshoot of slow start loses the 92nd packet and a dozen behind it; what arrives
    is acknowledged, and lets packets go, until 187 have left."""
    same, until = together(case)
    assert same == case.together
    assert until > 0.9 or same < 187


@needs_ns
def test_a_call_both_ways_over_udp_is_the_same_packet_for_packet():
    """To the microsecond that the trace rounds to, in the least, mean and longest delay; both ways,
    beside a video that fills the queue, with packets dropped."""
    video = flow(UDP, cbr("1.96Mbit/s", "997B"), start="7ms")
    calls = {"call": flow(UDP, SPEECH, reverse=SPEECH), "video": video}
    found = both.crosscheck(read(network(calls, "60s")))
    for row in found.flows:
        margin = 1e-6 if row.measure.startswith("delay") else 0
        assert row.difference == pytest.approx(0, abs=margin), row
    assert found.value("call", "lost_packets").here > 10
    assert found.value("call.reverse", "sent_packets").ns2 == 2999
    for row in found.links:
        assert row.difference == pytest.approx(0, abs=1e-3), row


@needs_ns
def test_queues_in_bytes_and_in_time_hold_the_same():
    for queue in ({"kind": "droptail", "bytes": "9kB"}, {"kind": "droptail", "time": "37ms"}):
        video = flow(UDP, cbr("1.99Mbit/s", "997B"), start="7ms")
        calls = {"call": flow(UDP, SPEECH), "video": video}
        found = both.crosscheck(read(network(calls, "20s", queue=queue)))
        lost = found.value("video", "lost_packets")
        assert lost.here == lost.ns2 > 10, queue


@needs_ns
def test_noise_and_talkspurts_are_drawn_alike():
    """Other dice: the mean of the noise is half a millisecond, and talk is 1.004 of 2.591 s."""
    noisy = {"kind": "on_off", "rate": "400kbit/s", "packet": "500B", "on": "100ms",
             "off": "158ms", "noise": "1ms"}  # fmt: skip
    found = both.crosscheck(read(network({"f": flow(UDP, noisy)}, "600s")))
    sent = found.value("f", "sent_packets")
    assert sent.ns2 == pytest.approx(600 * 100 * 100 / 258, rel=0.06)
    assert sent.here == pytest.approx(sent.ns2, rel=0.08)


@needs_ns
def test_both_directions_of_dccp():
    found = both.crosscheck(read(network({"f": flow(dccp(2), SPEECH, reverse=SPEECH)}, "20s")))
    for name in ("f", "f.reverse"):
        assert found.value(name, "received_packets").relative == pytest.approx(0, abs=0.01)


def long_path(ccid: int, seconds: int, queue: dict | None = None, **core):
    queue = queue or {"kind": "droptail", "packets": 50}
    scenario = network({"f": flow(dccp(ccid), BULK)}, f"{seconds}s", queue=queue, **core)
    scenario["links"]["core"] |= {"rate": "10Mbit/s", "delay": "148ms"}
    for name in ("near", "far"):
        scenario["links"][name]["rate"] = "100Mbit/s"
    return scenario


@needs_ns
def test_dccp_in_ns2_outlives_the_losses_of_slow_start():
    """With ECN it resets this connection after 4.3 s: its sums of nonces differ."""
    found = both.crosscheck(read(long_path(3, 20)))
    sent = found.value("f", "sent_packets")
    assert sent.ns2 > 10000
    assert not [note for note in found.notes if "ECN" in note]


@needs_ns
@pytest.mark.parametrize("ccid", [2, 3])
def test_without_marking_queues_ecn_changes_no_packet_of_ns2s_dccp(ccid, tmp_path):
    text = script.write(read(long_path(ccid, 20, loss=0.01))).text
    assert text.count("use_ecn_local_ 0") == text.count("use_ecn_remote_ 0") == 2
    seen = []
    for asked in (text, re.sub(r"(use_ecn_\w+_) 0", r"\1 1", text)):
        (tmp_path / "c.tcl").write_text(asked, encoding="utf-8")
        done = output("ns", "c.tcl", "c.tr", cwd=tmp_path)
        assert done == f"{script.END}\n"
        lines = (tmp_path / "c.tr").read_text(encoding="ascii").splitlines()
        # All but the column of flags, in which an E or N says that a packet is ECN-capable.
        seen.append([[*words[:6], *words[7:]] for words in map(str.split, lines)])
    assert len(seen[0]) > 1000
    assert seen[0] == seen[1]


@needs_ns
@pytest.mark.parametrize("seconds", [60, 100])
def test_a_server_of_ns2s_dccp_that_never_opens_is_an_error(seconds):
    """Under this seed the Ack of the handshake is lost; after 75 s the server resets."""
    scenario = network({"f": flow(dccp(3), BULK)}, f"{seconds}s", loss=0.3)
    with pytest.raises(package.RunError, match="f: the Ack of the handshake was lost"):
        both.crosscheck(read(scenario, seed=5))


@needs_ns
def test_a_flow_that_sends_nothing_in_ns2_is_noted():
    """Under this seed two of three packets of the handshake are lost until the end."""
    found = both.crosscheck(read(network({"f": flow(dccp(3), BULK)}, "20s", loss=0.3), seed=10))
    assert found.value("f", "sent_packets").ns2 is None
    assert found.value("f", "sent_packets").here > 0
    assert found.value("f", "delay_mean_s").relative is None
    (note,) = [note for note in found.notes if note.startswith("not compared")]
    assert note.startswith("not compared: f: ns-2 sent nothing at all; here ")
    assert found.seeds == [] and list(found.left_out) == [10]


class Bins:
    """Our run of two flows: packets sent in each second."""

    seed = 7

    def __init__(self, **sent):
        self.sent = sent

    def series(self, name):
        counts = self.sent[name]
        times = [float(second + 1) for second in range(len(counts))]
        return pl.DataFrame({"time_s": times, "sent_packets": counts})


@pytest.mark.parametrize(
    ("last_s", "ours", "said"),
    [
        (4.3, [5] * 20, "after 4.3 s; here 50 packets left in the second half"),
        (-1.0, [5] * 20, "at all; here 50 packets"),
        (10.6, [5] * 20, None),  # beyond the middle of ours, from 1 to 20 s
        (4.6, [5] * 8, None),  # ours ended, too
        (4.3, [5, 5, 5, *[0] * 16, 1], None),  # a single packet is no transfer
    ],
)
def test_a_flow_that_dies_in_ns2_is_named_with_its_last_packet(last_s, ours, said):
    made = script.Script("", [], [Way("f", 1, (0, 1))], [], (0.0, 20.0), 0, [])
    run = both._Run(Bins(f=ours), made)
    run.theirs = Reader(made.ways, [], made.window_s)
    if last_s >= 0:
        run.theirs.read([f"+ {last_s} 0 1 udp 100 ------- 1 0.0 1.0 9 9"])
    found = run.dead()
    assert found[0].startswith(f"f: ns-2 sent nothing {said}") if said else found == [], found


@needs_ns
def test_seeds_with_dead_flows_are_left_out_and_named():
    """At 30 % of loss some of ns-2's connections never open."""
    scenario = network({"f": flow(dccp(3), BULK)}, "20s", loss=0.3)
    scenario["replications"] = {"count": 4}
    found = both.crosscheck(read(scenario, seed=8))
    assert sorted([*found.seeds, *found.left_out]) == [8, 9, 10, 11]
    assert found.left_out[10].startswith("f: ns-2 sent nothing at all; here ")
    assert any(note.startswith("seed 10 is left out: f: ns-2 sent nothing") for note in found.notes)
    row = found.value("f", "sent_packets")
    assert len(row.ours) == len(row.theirs) == len(found.seeds)
    assert row.to_json()["here"] == pytest.approx(sum(row.ours) / len(row.ours))
    document = found.to_json()
    assert {one["seed"] for one in document["left_out"]} == set(found.left_out)
    if len(found.seeds) > 1:
        assert document["flows"][0]["difference_half_width"] > 0


@needs_ns
def test_the_defaults_of_a_textbook_script_are_named():
    """ns-2's own values, asked of it; they are those of its ns-default.tcl."""
    found = both.crosscheck(read(SMALL, set={"flows.upload.transport.controller": "reno"}))
    (note,) = [note for note in found.notes if "ns-2's own defaults" in note and "upload" in note]
    assert note.startswith("upload: a script with ns-2's own defaults has ")
    for said in ("minrto_ 0.2 (here 1)", "bugFix_ true (here false)", "window_ 20 (here 2739)",
                 "tcpTick_ 0.01 (here 0.001)", "windowInit_ 2 (here 10)"):  # fmt: skip
        assert said in note, said
    assert "timestamps_" not in note  # the same there


def dccp_faults(lines: list[tuple[str, float, int, int, str, int]], end: float = 60) -> list[str]:
    reader = Reader([Way("f", 1, (0, 3))], [], (0, end))
    reader.read(
        f"{event} {at} {here} {there} {kind} 40 ------- 1 {source}.0 {3 - source}.0 -1 {n}"
        for n, (event, at, here, there, kind, source) in enumerate(lines)
    )
    return reader.faults()


def test_connections_of_ns2s_dccp_that_fail_are_named():
    response, lost = ("+", 1, 3, 2, "DCCP_Response", 3), ("+", 2, 0, 1, "DCCP_Ack", 0)
    data, arrived = ("+", 2, 0, 1, "DCCP_Data", 0), ("r", 2.2, 2, 3, "DCCP_Ack", 0)
    close, reset = ("+", 4, 0, 1, "DCCP_Close", 0), ("+", 5, 3, 2, "DCCP_Reset", 3)
    assert dccp_faults([response, lost, data, arrived]) == []
    assert dccp_faults([response, lost, data, arrived, close, reset]) == []
    assert dccp_faults([response, lost, data], end=3) == []
    assert "Ack of the handshake" in dccp_faults([response, lost, data])[0]
    assert "Ack of the handshake" in dccp_faults([response, lost, data, reset])[0]
    assert dccp_faults([response, lost, data, arrived, reset]) == [
        "f: a connection was reset that nobody had closed"
    ]
    assert dccp_faults([response, lost, data, arrived, reset], end=4.5) == []


@pytest.mark.parametrize("marks", [False, True])
def test_dccp_has_ecn_in_ns2_where_a_queue_marks(marks):
    red = {"kind": "red", "packets": 50, "ns2": True, "ecn": marks}
    text = script.write(read(long_path(2, 20, red))).text
    assert text.count(f"use_ecn_local_ {int(marks)}") == 2


@needs_ns
def test_the_trace_may_be_kept_and_says_the_same(tmp_path):
    kept, said = tmp_path / "kept.tr", []
    question = read(network({"tfrc": flow(TFRC, {"kind": "bulk"})}, "20s"))
    found = both.crosscheck(question, trace=kept, say=said.append)
    made = script.write(question)
    reader = Reader(made.ways, made.wires, made.window_s)
    reader.read(kept.read_text(encoding="ascii").splitlines())
    assert reader.flows["tfrc"].sent_packets == found.value("tfrc", "sent_packets").ns2 > 1000
    assert said == [f"{kept}: ns-2's trace may become {script.size_text(made.trace_bytes)} long"]
    assert 0.5 < kept.stat().st_size / made.trace_bytes <= 1


@needs_ns
@pytest.mark.parametrize("name", ["speech and video over UDP, overloaded", "reno, bulk",
                                  "CCID 2, bulk", "SCTP, bulk", "SCTP, speech",
                                  "four renos through RED"])  # fmt: skip
def test_no_trace_is_longer_than_foretold(name, tmp_path):
    case = next(case for case in CASES if case.name == name)
    made = script.write(read({**case.scenario, "duration": "20s"}))
    texts.put(tmp_path / "case.tcl", made.text)
    output("ns", "case.tcl", "case.tr", cwd=tmp_path)
    assert 0.2 < (tmp_path / "case.tr").stat().st_size / made.trace_bytes <= 1


# --- Commands ------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path):
    """The small scenario as a file."""
    return texts.put(tmp_path / "small.toml", SMALL)


def test_export_writes_the_script(small):
    done = succeed("export", small, "--to", "ns2-script")
    assert done.stdout == script.write(read(small)).text
    out = small.with_suffix(".tcl")
    done = talkspurt("export", small, "--to", "ns2-script", "--out", out)
    assert "small.tcl: its trace may become" in done.stdout
    assert out.read_text(encoding="utf-8") == script.write(read(small)).text
    assert "playout and opinion scores are left out" in done.stderr


def test_no_file_of_somebody_is_written_over(small):
    for words, ours in (
        (("export", small, "--to", "ns2-script", "--out"), "script of ours"),
        (("crosscheck", small, "--trace"), "trace of ns-2"),
    ):
        done = refused(*words, small)
        remedy = "choose another name, or say --overwrite"
        assert done.stderr == f"talkspurt: {small}: exists and is no {ours}; {remedy}\n"
        done = refused(*words, small, "--overwrite")
        assert done.stderr == f"talkspurt: {small}: is the scenario itself; choose another name\n"
        assert small.read_text(encoding="utf-8") == SMALL
    out = small.with_suffix(".tcl")
    for seed in ("1", "2"):  # an earlier script is
        done = succeed("export", small, "--to", "ns2-script", "--out", out, "--seed", seed)


def test_only_a_script_is_made_of_changed_fields(small):
    done = refused("export", small, "--to", "nam", "--set", "seed=3")
    assert "--set and --seed: only for --to ns2-script, not for nam" in done.stderr


def test_export_refuses_with_every_reason(tmp_path):
    file = texts.put(tmp_path / "refused.toml", REFUSED)
    done = refused("export", file, "--to", "ns2-script")
    assert f"{file}:10: links.l.jitter: ns-2 cannot express it" in done.stderr
    assert len(done.stderr.splitlines()) == 18, done.stderr


@needs_ns
def test_crosscheck_prints_both(small):
    done = succeed("crosscheck", small)
    assert "Flows here and in ns-2" in done.stdout
    assert "delay, mean, ms" in done.stdout
    document = json.loads(talkspurt("crosscheck", small, "--json").stdout)
    rows = {(row["name"], row["measure"]): row for row in document["flows"]}
    sent = rows["call", "sent_packets"]
    assert (sent["here"], sent["ns2"], sent["difference"], sent["relative"]) == (450, 450, 0, 0)
    assert (sent["difference_half_width"], len(document["seeds"])) == (0, 5)
    mean = rows["upload", "delay_mean_s"]
    assert mean["here_half_width"] > 0 and mean["ns2_half_width"] > 0


@needs_ns
def test_the_number_of_seeds_can_be_chosen(small, tmp_path):
    for words, seeds in (
        (("--seeds", "2"), [7, 8]),
        (("--set", "replications.count=3"), [7, 8, 9]),
        (("--trace", tmp_path / "one.tr"), [7]),
    ):
        done = talkspurt("crosscheck", small, "--json", *words)
        assert json.loads(done.stdout)["seeds"] == seeds, done.stderr
    for words, said in (
        (("--seeds", "0"), "--seeds 0: expected 1 or more"),
        (("--seeds", "2", "--trace", tmp_path / "two.tr"), "--trace: keeps the trace of one run"),
    ):
        assert said in refused("crosscheck", small, *words).stderr


def test_without_ns2_it_says_so(small, tmp_path):
    done = talkspurt("crosscheck", small, env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert "ns-2 is not installed" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_ns2_says_when_it_fails_is_shown(small, tmp_path):
    texts.put(tmp_path / "ns", "#!/bin/sh\necho no such agent >&2\nexit 3\n").chmod(0o755)
    done = talkspurt("crosscheck", small, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 1
    assert "ns-2 failed, with exit code 3:\nno such agent" in done.stderr


def test_a_trace_that_would_fill_the_disk_is_refused_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(both.shutil, "which", lambda _: "/bin/false")
    free = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(both.shutil, "disk_usage", lambda _: free)
    monkeypatch.setattr(both.api, "answer", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(package.RunError, match=r"may become .* kB long, and 1 kB are free"):
        both.crosscheck(read(SMALL), trace=tmp_path / "kept.tr")
    assert not (tmp_path / "kept.tr").exists()


@pytest.mark.parametrize(
    ("opus", "refused"),
    [
        ('bitrate = "24kbit/s"', []),
        ('rate_control = "vbr"', ["flows.call.source.opus.rate_control"]),
        ("dtx = true", ["flows.call.source.opus.dtx"]),
    ],
)
def test_opus_of_constant_packets_can_be_sent_by_ns2(opus, refused):
    file = ROOT / "speech" / "english-man.wav"
    source = f'{{ kind = "speech", codec = "opus", file = "{file}", opus = {{ {opus} }} }}'
    call = texts.flow_text("call", "a>b", texts.UDP, source, rtcp="{ enabled = false }")
    link = texts.link_text("l", "a>b", "1Mbit/s", "10ms")
    text = texts.scenario_text("Opus", "3s", link, call)
    if not refused:
        assert script.write(read(text)).ways
        return
    assert [problem["path"] for problem in problems(script.write, read(text))] == refused


@needs_ns
def test_the_translated_script_gives_what_its_page_says(tmp_path):
    page = ROOT / "docs" / "coming-from.md"
    found = blocks(page)
    (tcl,) = (block.text for block in found if block.language == "tcl")
    (toml,) = (block.text for block in found if block.title == "dumbbell.toml")
    output("ns", texts.put(tmp_path / "dumbbell.tcl", tcl), cwd=tmp_path)
    lines = [it.split() for it in (tmp_path / "dumbbell.tr").read_text().splitlines()]
    # Event, time, nodes, kind: what arrived at the end of the uplink, and what its queue dropped.
    there = {
        kind: (sum(it[0] == "r" and it[4] == kind for it in lines), sum(it[0] == "d" and it[4] == kind for it in lines))
        for kind in ("cbr", "tcp")
    }  # fmt: skip
    flows = {row["name"]: row for row in package.run(toml).flows.iter_rows(named=True)}
    here = flows["voice"]["received_packets"], flows["voice"]["lost_packets"]
    said = page.read_text(encoding="utf-8")
    assert f"delivers {there['cbr'][0]} packets of the call and loses {there['cbr'][1]}" in said
    assert f"this scenario {here[0]} and {here[1]}" in said
    more = flows["upload"]["received_packets"] / there["tcp"][0] - 1
    assert f"{more:.0%}".replace("%", " %") + " more" in said
