"""What the text of ``scenarios/controllers.toml`` tells its readers, held against its runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import talkspurt
from talkspurt.results.result import Study

SCENARIO = Path(__file__).parent.parent / "scenarios" / "controllers.toml"
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


def test_udp_loses_about_one_packet_in_a_hundred(of: Of) -> None:
    losses = of("UDP", "loss_ratio")
    assert 0.005 < sum(losses) / 5 < 0.02


@pytest.mark.parametrize(
    "transport",
    ["TCP Tahoe", "TCP Reno", "TCP NewReno", "TCP SACK", "TCP CUBIC", "TCP BBR", "SCTP"],
)
def test_reliable_and_in_order_is_too_late(of: Of, transport: str) -> None:
    assert min(of(transport, "late_packets")) > 50
    for late, udp in zip(of(transport, "loss_ratio"), of("UDP", "loss_ratio"), strict=True):
        assert late > 2 * udp


@pytest.mark.parametrize("modern", ["TCP CUBIC", "TCP BBR"])
def test_rack_holds_the_call_up_a_quarter_to_a_half_less(of: Of, modern: str) -> None:
    losses = sum(of(modern, "loss_ratio"))
    for transport in ("TCP Tahoe", "TCP Reno", "TCP NewReno", "TCP SACK"):
        assert 0.5 < losses / sum(of(transport, "loss_ratio")) < 0.8


def test_the_differences_between_the_older_tcps_are_not_shown(study: Study) -> None:
    pairs = study.differences("transport", "TCP NewReno", names=["mos"]).filter(flow="call")
    intervals = {row["axis.transport"]: (row["low"], row["high"]) for row in pairs.to_dicts()}
    for transport in ("TCP Tahoe", "TCP Reno", "TCP SACK"):
        low, high = intervals[transport]
        assert low < 0 < high


@pytest.mark.parametrize("transport", ["SCTP unordered", "SCTP partial"])
def test_sctp_without_order_is_as_udp(study: Study, transport: str) -> None:
    pairs = study.differences("transport", "UDP", names=["mos"])
    (row,) = pairs.filter(**{"axis.transport": transport}, flow="call").to_dicts()
    assert row["low"] < 0 < row["high"]
    assert row["high"] - row["low"] < 0.3


def test_ccid_2_throws_away_what_its_window_holds_back(of: Of) -> None:
    for gone, lost in zip(
        of("DCCP CCID 2", "discarded_packets"), of("DCCP CCID 2", "lost_packets"), strict=True
    ):
        assert gone > 5 * lost


@pytest.mark.parametrize("transport", ["DCCP CCID 3", "TFRC"])
def test_equal_packets_get_just_about_what_the_call_needs(of: Of, transport: str) -> None:
    # G.711 has 64 kbit/s of payload; frames grow stale in some runs.
    assert all(0.85 * 64e3 < rate < 64.2e3 for rate in of(transport, "goodput_bps"))
    assert max(of(transport, "discarded_packets")) > 0


def test_ccid_4_hardly_holds_the_call_back(of: Of) -> None:
    # After a start below 10 s, outside the window, nothing waits long enough to be thrown away.
    assert max(of("DCCP CCID 4", "discarded_packets")) <= 25


def test_tfrc_tb_changes_the_codec_and_throws_little_away(of: Of) -> None:
    rates = of("TFRC-TB", "goodput_bps")
    assert min(rates) < 60e3
    assert max(of("TFRC-TB", "discarded_packets")) < min(of("DCCP CCID 2", "discarded_packets"))


def test_the_delay_listener_falls_to_the_lowest_codec(of: Of) -> None:
    # G.723.1 at 6.3 kbit/s is 24 bytes every 30 ms.
    assert all(6.3e3 < rate < 8.5e3 for rate in of("Beritelli", "goodput_bps"))
