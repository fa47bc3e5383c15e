"""What the scenarios of SCTP tell their readers, held against their runs."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import talkspurt
from conftest import ROOT, shipped
from talkspurt.results.result import Study
from texts import BULK, cbr, flow_text, inline, link_text, scenario_text


@pytest.fixture(scope="module")
def two_paths() -> Study:
    return shipped("two-paths")


@pytest.fixture(scope="module")
def partial() -> Study:
    return shipped("partial-reliability")


def gaps(found: Study, setting: str) -> list[float]:
    return [run.flows["longest_gap_s"][0] for run in found.select(setting=setting)]


# Timeouts in a row until the path is left, RTO.Min doubled each time; the backlog comes on top. It
# begins with one packet (RFC 9260 §7.2.3): 70 packets take seven round trips of 60 ms, and the call is
# heard again when the oldest frame that is not late arrives.
@pytest.mark.parametrize(
    ("setting", "timeouts_s", "backlog_s"),
    [
        ("RFC 9260", 1 + 2 + 4 + 8 + 16 + 32, 6),
        ("3 timeouts", 1 + 2 + 4, 0.8),
        ("3 short timeouts", 0.2 + 0.4 + 0.8, 0.42),
        ("RFC 7829", 1, 0.2),
        ("RFC 7829, short", 0.2, 0.1),
    ],
)
def test_the_gap_is_the_timeouts_and_what_waited_meanwhile(
    two_paths: Study, setting: str, timeouts_s: float, backlog_s: float
) -> None:
    for gap in gaps(two_paths, setting):
        assert timeouts_s - 0.1 < gap < timeouts_s + backlog_s


def test_after_the_gap_all_is_heard_again(two_paths: Study) -> None:
    for run in two_paths.runs:
        heard = run.frames("call").filter(pl.col("captured_s").is_between(74.2, 75))
        assert set(heard["fate"]) == {"played"}


def test_the_figures_of_the_two_paths_are_drawn_and_their_sound_is_heard(two_paths: Study) -> None:
    (run,) = two_paths.select(setting="RFC 7829")[:1]
    (flow,) = run.topology["flows"]
    assert [route[1] for route in flow["routes"]] == ["north-west", "south-west"]
    south = run.links.filter(name="south")["sent_packets"][0]
    assert south > 3000  # 50 a second for the rest of the call
    assert run.audio("call") is not None


def test_a_failure_of_ones_own_link_is_not_heard(two_paths: Study) -> None:
    sets = {"axes": [], "replications.count": 1, "links.north.from": "home"}
    sets["flows.call.paths.0"] = ["home", "north-east", "office"]
    own = talkspurt.run(ROOT / "scenarios" / "two-paths.toml", set=sets)
    assert isinstance(own, talkspurt.Result)
    assert own.flows["longest_gap_s"][0] == 0
    assert own.links.filter(name="south")["sent_packets"][0] > 3000


def differences(found: Study, measure: str, baseline: str) -> dict[tuple[str, str], dict[str, Any]]:
    frame = found.differences("messages", baseline, names=[measure])
    return {(row["axis.buffer"], row["axis.messages"]): row for row in found.rows(frame)}


def test_order_costs_most(partial: Study) -> None:
    losses = differences(partial, "loss_ratio", "in order")
    scores = differences(partial, "mos", "in order")
    for messages in ("unordered", "lifetime unordered", "sent once"):
        assert losses["200ms", messages]["high"] < -0.1
        assert scores["200ms", messages]["low"] > 2


def test_giving_up_in_order_helps_little_but_shortens_the_longest_gaps(partial: Study) -> None:
    score = differences(partial, "mos", "in order")["200ms", "lifetime, in order"]
    assert 0 < score["low"] < score["high"] < 0.5
    gap = partial.summary(["longest_gap_s"]).filter(**{"axis.buffer": 0.2}, measure="longest_gap_s")
    means = dict(gap.select("axis.messages", "mean").iter_rows())
    assert means["lifetime, in order"] < 0.7 * means["in order"]


def test_a_longer_buffer_waits_for_repetitions_and_pays_in_delay(partial: Study) -> None:
    means = {
        (row["measure"], row["axis.buffer"], row["axis.messages"]): row["mean"]
        for row in partial.rows(partial.summary(["loss_ratio", "mos"]))
    }
    for messages in ("in order", "in order, fast T3", "unordered", "unordered, fast T3"):
        short, long = (means["loss_ratio", buffer, messages] for buffer in ("200ms", "400ms"))
        assert long < 0.25 * short
    for messages in ("lifetime unordered", "sent once"):
        short, long = (means["loss_ratio", buffer, messages] for buffer in ("200ms", "400ms"))
        # A repetition or two of twenty thousand frames come in time for the longer buffer.
        assert long == pytest.approx(short, abs=1e-4)
        assert short == pytest.approx(0.03, abs=0.004)
    assert means["mos", "200ms", "sent once"] > 0.3 + max(
        mean for (measure, buffer, _), mean in means.items()
        if (measure, buffer) == ("mos", "400ms")
    )  # fmt: skip


def test_a_shorter_least_timeout_helps_where_repetitions_are_waited_for(partial: Study) -> None:
    pair = differences(partial, "loss_ratio", "in order")["400ms", "in order, fast T3"]
    assert pair["high"] < 0


# Messages that fill packets cannot be bundled, so that `ack_clocked` changes what is carried only by
# the data that waits for a SACK. ns-2.35 carries 87.5 kbit/s of the messages here (ten seeds).
@pytest.mark.parametrize(
    "source",
    [cbr("400kbit/s", "1000B", noise="0s"), cbr("1Mbit/s", "1000B", noise="0s"), BULK],
    ids=["the buffer has room", "it fills up", "bulk"],
)
def test_ack_clocked_fills_the_window_though_the_send_buffer_is_full(source: str) -> None:
    queue = inline("droptail", packets=20, ns2=True)
    link = link_text("l", "a>b", "6619kbit/s", "235ms", queue=queue, loss=0.115)

    def carried(ack_clocked: bool) -> float:
        transport = inline("sctp", ack_clocked=ack_clocked)
        flow = flow_text("f", "a>b", transport, source, sizing="ns2", start_spread="0s")
        head = ("More offered than fits", "100s")
        scenario = scenario_text(*head, link, flow, measure='{ from = "5s" }')
        runs = [talkspurt.run(scenario, seed=seed).flows for seed in range(1, 11)]
        return sum(run["throughput_bps"][0] for run in runs)

    assert carried(True) == pytest.approx(carried(False), rel=0.1)
