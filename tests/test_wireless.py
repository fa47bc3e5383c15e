"""What the text of ``scenarios/wireless-cell.toml`` tells its readers, held against its runs."""

from __future__ import annotations

import pytest

from conftest import shipped
from talkspurt import Result
from talkspurt.results.result import Study


@pytest.fixture(scope="module")
def cafe() -> Study:
    return shipped("wireless-cell")


def runs(cafe: Study, queue: str, others: int) -> list[Result]:
    found = cafe.select(queue=queue, others=str(others))
    assert len(found) == 3
    return found


def flow(run: Result, name: str, measure: str) -> float:
    return float(run.flows.filter(name=name)[measure][0])


def link(run: Result, name: str, measure: str) -> float:
    return float(run.links.filter(name=f"cafe.{name}")[measure][0])


def test_you_are_heard_and_hear_nothing(cafe: Study) -> None:
    for run in runs(cafe, "FIFO 300", 1):
        assert flow(run, "talk", "mos") > 4.3
        assert flow(run, "listen", "mos") < 1.3
        assert 0.2 < flow(run, "listen", "delay_p50_s") < 0.3
        assert link(run, "laptop", "queue_mean_packets") < 0.1


def test_the_access_point_has_no_more_turns_than_each_of_the_others(cafe: Study) -> None:
    one, four = (runs(cafe, "FIFO 300", others) for others in (1, 4))
    for few, many in zip(one, four, strict=True):
        # A fifth of the turns and half of them; how long the queue is besides, TCP decides.
        assert flow(many, "listen", "delay_p50_s") > 2 * flow(few, "listen", "delay_p50_s")
        waiting = [link(run, "ap", "queue_mean_packets") for run in (few, many)]
        assert waiting[1] < 1.05 * waiting[0]
    for others, found in ((1, one), (4, four)):
        for run in found:
            turns = link(run, "contenders", "sent_packets") / others
            assert link(run, "ap", "sent_packets") == pytest.approx(turns, rel=0.1)


@pytest.mark.parametrize("others", [1, 4])
def test_fq_codel_lets_the_call_past_the_download(cafe: Study, others: int) -> None:
    fifo = runs(cafe, "FIFO 300", others)
    for plain, fair in zip(fifo, runs(cafe, "FQ-CoDel", others), strict=True):
        assert flow(fair, "listen", "mos") > 4.3
        assert flow(fair, "talk", "mos") > 4.3
        cost = 1 - flow(fair, "download", "goodput_bps") / flow(plain, "download", "goodput_bps")
        assert cost < 0.2


@pytest.mark.parametrize("queue", ["FIFO 300", "FQ-CoDel"])
def test_in_a_crowd_no_queue_helps(cafe: Study, queue: str) -> None:
    for run in runs(cafe, queue, 16):
        for name in ("talk", "listen"):
            assert flow(run, name, "mos") < 3.5
            assert flow(run, name, "loss_ratio") > 0.03
        sent = link(run, "contenders", "sent_packets") + link(run, "contenders", "retries")
        assert 0.4 < link(run, "contenders", "collisions") / sent < 0.65
        assert link(run, "contenders", "drops_retries") > 0


def test_the_picture_shows_the_stations(cafe: Study) -> None:
    run = runs(cafe, "FQ-CoDel", 4)[0]
    ends = {(link["from"], link["to"]) for link in run.topology["links"]}
    assert {("laptop", "ap"), ("phone", "ap"), ("cafe.contenders", "ap")} <= ends
    routes = {flow["name"]: flow["routes"] for flow in run.topology["flows"]}
    assert routes["download"] == [["net", "ap", "phone"]]
    assert routes["talk"] == [["laptop", "ap", "net"]]
