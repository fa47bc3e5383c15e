"""What the text of ``scenarios/every-transport.toml`` tells its readers, held against its runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import talkspurt
from talkspurt.results.result import Study

SCENARIO = Path(__file__).parent.parent / "scenarios" / "every-transport.toml"
IN_ORDER = ["TCP Tahoe", "TCP Reno", "TCP NewReno", "TCP SACK", "TCP CUBIC", "TCP BBR", "SCTP"]
LUCKY = ["DCCP CCID 2", "DCCP CCID 3", "TFRC", "TFRC-TB"]
Of = Callable[[str, str], list[float]]


@pytest.fixture(scope="module")
def study() -> Study:
    found = talkspurt.run(SCENARIO, study=True)
    assert isinstance(found, Study)
    return found


@pytest.fixture(scope="module")
def of(study: Study) -> Of:
    def values(transport: str, measure: str) -> list[float]:
        runs = [run for run in study.runs if run.settings["transport"] == transport]
        assert len(runs) == 5
        return [run.flows.filter(name="call")[measure][0] for run in runs]

    return values


def test_all_can_be_heard(study: Study) -> None:
    assert all(run.heard == ["call"] for run in study.runs)


def test_udp_loses_a_handful_of_two_thousand(of: Of) -> None:
    assert max(of("UDP", "lost_packets")) <= 10
    assert all(2000 < packets < 2200 for packets in of("UDP", "generated_packets"))
    assert max(of("UDP", "late_packets")) == 0


@pytest.mark.parametrize("transport", IN_ORDER)
def test_in_order_is_late(of: Of, transport: str) -> None:
    assert min(of(transport, "late_packets")) > 50
    assert min(of(transport, "longest_gap_s")) > 0.5


def test_sack_is_the_worse_one(study: Study, of: Of) -> None:
    pairs = study.differences("transport", "TCP NewReno", names=["loss_ratio"])
    (row,) = pairs.filter(**{"axis.transport": "TCP SACK"}, flow="call").to_dicts()
    assert row["low"] > 0
    # Once through a whole recovery, NewReno's window is many times what SACK's ever is.
    windows = {}
    for run in study.runs:
        name = run.settings["transport"]
        if name in ("TCP NewReno", "TCP SACK") and run.seed == 1:
            cwnd = run.gauges("call", "cwnd").filter(side="from")
            windows[name] = max(cwnd["value"])
    assert windows["TCP NewReno"] > 5 * windows["TCP SACK"]


@pytest.mark.parametrize("transport", ["TCP BBR", "SCTP"])
def test_who_does_not_halve_is_late_less(study: Study, transport: str) -> None:
    pairs = study.differences("transport", "TCP SACK", names=["loss_ratio"])
    (row,) = pairs.filter(**{"axis.transport": transport}, flow="call").to_dicts()
    assert row["high"] < 0


def test_nobody_waits_in_sctp_without_order(study: Study, of: Of) -> None:
    pairs = study.differences("transport", "UDP", names=["mos"])
    for transport in ("SCTP unordered", "SCTP partial"):
        (row,) = pairs.filter(**{"axis.transport": transport}, flow="call").to_dicts()
        assert abs(row["mean"]) < 0.1
    assert max(of("SCTP partial", "late_packets")) <= 5


@pytest.mark.parametrize("transport", LUCKY)
def test_rate_control_is_a_matter_of_luck(of: Of, transport: str) -> None:
    stale = of(transport, "discarded_packets")
    assert min(stale) < 20
    assert max(stale) > 300


def test_ccid_4_has_no_such_day(of: Of) -> None:
    assert max(of("DCCP CCID 4", "discarded_packets")) <= 25


def test_beritelli_gives_way(of: Of) -> None:
    assert min(of("Beritelli", "discarded_packets")) > 50
