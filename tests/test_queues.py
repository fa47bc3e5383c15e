"""What the text of ``scenarios/queues.toml`` tells its readers, held against its runs."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from statistics import mean

import pytest

from conftest import ROOT, shipped
from talkspurt.results.result import Result

ALIKE = ("DropTail 100", "DropTail 10", "RED", "Adaptive RED", "CoDel", "CoDel, ECN", "PIE")
"""Those that treat all packets alike."""
Runs = Callable[[str], list[Result]]
Of = Callable[[str, str], float]


@pytest.fixture(scope="module")
def runs() -> Runs:
    study = shipped("queues")

    def under(queue: str) -> list[Result]:
        found = [run for run in study.runs if run.settings["queue"] == queue]
        assert len(found) == 5
        return found

    return under


@pytest.fixture(scope="module")
def call(runs: Runs) -> Of:
    def value(queue: str, measure: str) -> float:
        return mean(run.flows.filter(name="call")[measure][0] for run in runs(queue))

    return value


@pytest.fixture(scope="module")
def uplink(runs: Runs) -> Of:
    def value(queue: str, measure: str) -> float:
        return mean(run.links.filter(name="uplink")[measure][0] for run in runs(queue))

    return value


def test_a_long_droptail_queue_is_full_and_a_short_one_loses(call: Of, uplink: Of) -> None:
    assert uplink("DropTail 100", "sojourn_mean_s") > 0.4
    assert call("DropTail 100", "late_packets") > 0.95 * call("DropTail 100", "sent_packets")
    tenth = uplink("DropTail 10", "sojourn_mean_s") / uplink("DropTail 100", "sojourn_mean_s")
    assert 0.07 < tenth < 0.12
    lost = call("DropTail 10", "lost_packets") / call("DropTail 10", "sent_packets")
    assert 1 / 18 < lost < 1 / 14


def test_red_holds_its_average_between_the_thresholds(runs: Runs, call: Of, uplink: Of) -> None:
    for queue in ("RED", "Adaptive RED"):
        assert uplink(queue, "drops_early") > 0.9 * uplink(queue, "drops")
        assert call(queue, "lost_packets") > 50
        assert call(queue, "late_packets") > 50
    averages = []
    for run in runs("Adaptive RED"):
        series = run.link_series("uplink")
        averages.append(series.filter(series["time_s"] > 12)["average_packets"].mean())
    # Half-way between 5 and 15; RED's own aim is from 0.4 to 0.6 of the way.
    assert 9 < mean(averages) < 11


def test_who_watches_the_wait_keeps_it_short_and_the_call_bears_its_part(
    call: Of, uplink: Of
) -> None:
    for queue in ("CoDel", "PIE"):
        others = set(ALIKE) - {"CoDel", "CoDel, ECN", "PIE"}
        assert uplink(queue, "sojourn_mean_s") < min(uplink(q, "sojourn_mean_s") for q in others)
        assert 0.07 < call(queue, "lost_packets") / call(queue, "sent_packets") < 0.13


def test_where_the_uploads_are_marked_the_call_is_dropped(call: Of, uplink: Of) -> None:
    assert uplink("CoDel, ECN", "marks") > 400
    assert call("CoDel, ECN", "lost_packets") > 0.97 * uplink("CoDel, ECN", "drops")
    assert uplink("CoDel, ECN", "drops") < 0.5 * uplink("CoDel", "drops")


@pytest.mark.parametrize("queue", ["FQ-CoDel", "Priority", "Policed priority", "Shaped FQ-CoDel"])
def test_who_keeps_the_call_apart_loses_nothing_of_it(call: Of, queue: str) -> None:
    assert call(queue, "lost_packets") == call(queue, "late_packets") == 0
    # 21 ms of propagation, 3 of noise on the average, and a packet or two of 6 ms.
    assert call(queue, "delay_p95_s") < 0.040


def test_behind_the_call_the_uploads_wait_as_before(uplink: Of) -> None:
    assert 0.8 < uplink("Priority", "sojourn_mean_s") / uplink("DropTail 100", "sojourn_mean_s") < 1


def test_a_policer_that_is_obeyed_changes_nothing(runs: Runs) -> None:
    for free, policed in zip(runs("Priority"), runs("Policed priority"), strict=True):
        assert free.flows.equals(policed.flows)
        assert free.digest == policed.digest


def test_a_shaper_moves_the_queue_and_does_not_shorten_it(call: Of, uplink: Of) -> None:
    for queue in ("Shaped DropTail", "Shaped FQ-CoDel"):
        assert uplink(queue, "utilisation") == pytest.approx(0.95, abs=0.002)
    assert uplink("Shaped DropTail", "sojourn_mean_s") > 0.4
    assert call("Shaped DropTail", "mos") < 1.5


def test_the_page_of_queues_says_what_the_scenario_says() -> None:
    page = ROOT / "docs" / "queues.md"
    told = tomllib.loads((ROOT / "scenarios" / "queues.toml").read_text(encoding="utf-8"))[
        "description"
    ].strip()
    assert page.read_text(encoding="utf-8").strip().endswith(told)


def test_l4s_keeps_its_flows_below_three_milliseconds() -> None:
    """The text of ``scenarios/l4s.toml``: 13 ms of the delay is propagation."""
    for run in shipped("l4s").runs:
        wait = run.flows["delay_p99_s"] - 0.013
        if run.settings["line"] == "DualPI2, L4S":
            assert wait.max() < 0.003
            assert run.flows["lost_packets"].sum() == 0
        elif run.settings["line"] != "FQ-CoDel":
            assert wait.min() > 0.01
