"""What the texts of ``scenarios/controllers.toml`` and ``every-transport.toml`` tell their readers, held
against their runs."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import shipped

IN_ORDER = ["TCP Tahoe", "TCP Reno", "TCP NewReno", "TCP SACK", "TCP CUBIC", "TCP BBR", "SCTP"]
LUCKY = ["DCCP CCID 2", "DCCP CCID 3", "TFRC", "TFRC-TB"]


class Of:
    """The runs of a scenario: a measure of the call over a transport, run by run."""

    def __init__(self, name: str) -> None:
        self.study = shipped(name)

    def __call__(self, transport: str, measure: str) -> list[float]:
        runs = [run for run in self.study.runs if run.settings["transport"] == transport]
        assert len(runs) == 5
        return [run.flows.filter(name="call")[measure][0] for run in runs]

    def pair(self, transport: str, baseline: str, measure: str) -> dict[str, Any]:
        """The difference of a transport from another."""
        pairs = self.study.differences("transport", baseline, names=[measure])
        (row,) = pairs.filter(**{"axis.transport": transport}, flow="call").to_dicts()
        return row


@pytest.fixture(scope="module")
def of() -> Of:
    return Of("controllers")


@pytest.fixture(scope="module")
def every() -> Of:
    return Of("every-transport")


def test_udp_loses_about_one_packet_in_a_hundred(of: Of) -> None:
    losses = of("UDP", "loss_ratio")
    assert 0.005 < sum(losses) / 5 < 0.02


@pytest.mark.parametrize("transport", IN_ORDER)
def test_reliable_and_in_order_is_too_late(of: Of, transport: str) -> None:
    assert min(of(transport, "late_packets")) > 50
    for late, udp in zip(of(transport, "loss_ratio"), of("UDP", "loss_ratio"), strict=True):
        assert late > 2 * udp


@pytest.mark.parametrize("modern", ["TCP CUBIC", "TCP BBR"])
def test_rack_holds_the_call_up_a_quarter_to_a_half_less(of: Of, modern: str) -> None:
    losses = sum(of(modern, "loss_ratio"))
    for transport in ("TCP Tahoe", "TCP Reno", "TCP NewReno", "TCP SACK"):
        assert 0.5 < losses / sum(of(transport, "loss_ratio")) < 0.8


@pytest.mark.parametrize("transport", ["TCP Tahoe", "TCP Reno", "TCP SACK"])
def test_the_differences_between_the_older_tcps_are_not_shown(of: Of, transport: str) -> None:
    row = of.pair(transport, "TCP NewReno", "mos")
    assert row["low"] < 0 < row["high"]


@pytest.mark.parametrize("transport", ["SCTP unordered", "SCTP partial"])
def test_sctp_without_order_is_as_udp(of: Of, transport: str) -> None:
    row = of.pair(transport, "UDP", "mos")
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


def test_all_can_be_heard(every: Of) -> None:
    assert all(run.heard == ["call"] for run in every.study.runs)


def test_udp_loses_a_handful_of_two_thousand(every: Of) -> None:
    assert max(every("UDP", "lost_packets")) <= 10
    assert all(2000 < packets < 2200 for packets in every("UDP", "generated_packets"))
    assert max(every("UDP", "late_packets")) == 0


@pytest.mark.parametrize("transport", IN_ORDER)
def test_in_order_is_late(every: Of, transport: str) -> None:
    assert min(every(transport, "late_packets")) > 50
    assert min(every(transport, "longest_gap_s")) > 0.5


def test_sack_is_the_worse_one(every: Of) -> None:
    assert every.pair("TCP SACK", "TCP NewReno", "loss_ratio")["low"] > 0
    # Once through a whole recovery, NewReno's window is many times what SACK's ever is.
    windows = {}
    for run in every.study.runs:
        name = run.settings["transport"]
        if name in ("TCP NewReno", "TCP SACK") and run.seed == 1:
            cwnd = run.gauges("call", "cwnd").filter(side="from")
            windows[name] = max(cwnd["value"])
    assert windows["TCP NewReno"] > 5 * windows["TCP SACK"]


@pytest.mark.parametrize("transport", ["TCP BBR", "SCTP"])
def test_who_does_not_halve_is_late_less(every: Of, transport: str) -> None:
    assert every.pair(transport, "TCP SACK", "loss_ratio")["high"] < 0


def test_nobody_waits_in_sctp_without_order(every: Of) -> None:
    for transport in ("SCTP unordered", "SCTP partial"):
        assert abs(every.pair(transport, "UDP", "mos")["mean"]) < 0.1
    assert max(every("SCTP partial", "late_packets")) <= 5


@pytest.mark.parametrize("transport", LUCKY)
def test_rate_control_is_a_matter_of_luck(every: Of, transport: str) -> None:
    stale = every(transport, "discarded_packets")
    assert min(stale) < 20
    assert max(stale) > 300


def test_ccid_4_has_no_such_day(every: Of) -> None:
    assert max(every("DCCP CCID 4", "discarded_packets")) <= 25


def test_beritelli_gives_way(every: Of) -> None:
    assert min(every("Beritelli", "discarded_packets")) > 50
