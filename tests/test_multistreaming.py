"""What the scenario of several flows in one SCTP association tells, held against its runs."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

import talkspurt
from command import dissected, needs_tshark, output
from conftest import ROOT, problems, row_of, shipped
from talkspurt.ns2 import script
from talkspurt.results.result import Study
from talkspurt.scenarios.source import read

SCENARIO = ROOT / "scenarios" / "multistreaming.toml"
FLOWS = ("call", "second", "picture")
CALLS = ("call", "second")


@pytest.fixture(scope="module")
def study() -> Study:
    return shipped("multistreaming")


def values(study: Study, streams: str, order: str, flow: str, column: str) -> list[float]:
    runs = study.select(streams=streams, order=order)
    assert len(runs) == 10
    return [row_of(run, flow)[column] for run in runs]


def average(study: Study, streams: str, order: str, flow: str, column: str) -> float:
    return mean(values(study, streams, order, flow, column))


def test_the_same_packets_leave_and_the_same_are_lost(study: Study) -> None:
    for column in ("sent_packets", "lost_packets"):
        one = values(study, "one stream", "ordered", "call", column)
        assert one == values(study, "a stream each", "ordered", "call", column)


def test_on_one_stream_all_wait_for_every_loss(study: Study) -> None:
    for flow in FLOWS:
        held = average(study, "one stream", "ordered", flow, "held_back_packets")
        made = average(study, "one stream", "ordered", flow, "generated_packets")
        assert 0.225 < held / made < 0.275
        assert (
            0.0375 < average(study, "one stream", "ordered", flow, "head_of_line_mean_s") < 0.0425
        )
        assert average(study, "one stream", "ordered", flow, "head_of_line_max_s") > 1


def test_on_streams_of_their_own_they_wait_much_less(study: Study) -> None:
    for flow in FLOWS:
        for column, least, most in (
            ("held_back_packets", 0.35, 0.5),
            ("head_of_line_mean_s", 0.4, 0.5),
        ):
            one = average(study, "one stream", "ordered", flow, column)
            each = average(study, "a stream each", "ordered", flow, column)
            assert least < each / one < most, (flow, column)
    for flow in CALLS:
        one = average(study, "one stream", "ordered", flow, "late_packets")
        assert average(study, "a stream each", "ordered", flow, "late_packets") < one
        gain = average(study, "a stream each", "ordered", flow, "mos") - average(
            study, "one stream", "ordered", flow, "mos"
        )
        assert 0.75 < gain < 1.25


def test_unordered_nobody_waits_and_streams_make_no_difference(study: Study) -> None:
    for flow in FLOWS:
        for streams in ("one stream", "a stream each"):
            for column in ("held_back_packets", "head_of_line_mean_s", "head_of_line_max_s"):
                assert set(values(study, streams, "unordered", flow, column)) == {0}
    one, each = (
        study.select(streams=streams, order="unordered")
        for streams in ("one stream", "a stream each")
    )
    for run, other in zip(one, each, strict=True):
        assert run.flows.equals(other.flows)
    for flow in CALLS:
        late = average(study, "a stream each", "unordered", flow, "late_packets")
        assert 0 < late < average(study, "a stream each", "ordered", flow, "late_packets")


def test_each_call_is_heard_for_itself_and_the_association_is_one(study: Study) -> None:
    run = study.select(streams="a stream each", order="ordered")[0]
    for flow in CALLS:
        assert run.audio(flow) is not None
        assert run.frames(flow).height > 2750
    rows = {row["name"]: row for row in run.flows.iter_rows(named=True)}
    assert rows["call"]["sent_packets"] > 0
    for flow in ("second", "picture"):
        assert rows[flow]["transport"] == "sctp in call"
        assert rows[flow]["sent_packets"] == 0
        assert rows[flow]["delay_mean_s"] is None
        assert rows[flow]["goodput_bps"] > 0


@needs_tshark
@pytest.mark.parametrize(("each", "streams"), [(True, ["0", "1", "2"]), (False, ["0", "0", "0"])])
def test_tshark_reads_the_streams(each: bool, streams: list[str], tmp_path: Path) -> None:
    changes = {
        "axes": [], "replications.count": 1, "duration": "10s", "record.pcapng": ["line"],
        "measure.from": "0s", "measure.to": "10s", "flows.call.transport.multistreaming": each,
        **{f"flows.{flow}.stop": "9s" for flow in FLOWS},
    }  # fmt: skip
    found = talkspurt.run(SCENARIO, set=changes)
    assert isinstance(found, talkspurt.Result)
    found.save(tmp_path / "run", report=False)
    capture = tmp_path / "run" / "line.pcapng"
    names = ("sctp.data_sid", "sctp.data_payload_proto_id", "sctp.init_nr_out_streams")
    check = ["-o", "sctp.checksum:TRUE"]
    rows = dissected(capture, *names, options=check)
    seen = {
        (int(stream, 0), int(ppid, 0))
        for row in rows
        for stream, ppid in zip(row[0].split(","), row[1].split(","), strict=True)
        if stream
    }
    ppids = [0, 0x74730001, 0x74730002]
    assert seen == {(int(stream), ppid) for stream, ppid in zip(streams, ppids, strict=True)}
    assert [row[2] for row in rows if row[2]] == ["10"]
    wrong = ["-Y", "sctp.checksum.status == 0 || _ws.expert.group == 0x07000000"]
    assert output("tshark", "-r", capture, *check, *wrong) == ""


def test_ns2_cannot_express_it_and_is_told_by_name() -> None:
    found = problems(script.write, read(SCENARIO, set={"axes": []}))
    refused = {problem["path"]: problem for problem in found}
    for flow in ("second", "picture"):
        told = refused[f"flows.{flow}.transport.association"]
        assert told["line"] is not None
        assert "one application" in told["message"]
    assert "flows.call.transport.association" not in refused
    assert "flows.call.transport.multistreaming" not in refused
