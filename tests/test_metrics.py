"""Metrics computed when asked for: on paper, by awk's kind of counting, and against formulas."""

import itertools
import json
import math

import pytest

import talkspurt
from command import refused, succeed
from command import talkspurt as command
from talkspurt import metrics
from talkspurt.metrics import bins, breaker, catalogue, packets, sharing
from talkspurt.runs import exporting
from talkspurt.scenarios import units
from talkspurt.scenarios.resolved import values
from talkspurt.scenarios.source import read
from texts import UDP, cbr, flow_text, inline, link_text, scenario_text

PAPER = scenario_text(
    "On paper",
    "4s",
    link_text("near", "a>b", "1Mbit/s", "10ms"),
    link_text("far", "b>c", "500kbit/s", "20ms"),
    flow_text("beat", "a>c", UDP, cbr("80kbit/s", "972B", noise="0ms")),
    record='{ packets = true, interval = "500ms" }',
)
"""IP packets of 1000 bytes every 97.2 ms: 8 ms on the first link, 16 ms on the second."""


@pytest.fixture(scope="module")
def paper():
    return talkspurt.run(PAPER)


def test_a_packet_alone_takes_what_paper_says(paper):
    life = packets.life(paper, "beat")
    arrived = life.filter(life["received_s"].is_not_null())
    assert arrived.height > 35
    # 8 + 10 + 16 + 20 ms; the node between works only by sending, which it does at once.
    assert arrived["delay_s"].to_list() == pytest.approx([0.054] * arrived.height, abs=1e-9)
    assert arrived["processing_s"].to_list() == pytest.approx([0.0] * arrived.height, abs=1e-9)
    assert arrived["jitter_s"].to_list()[1:] == pytest.approx(
        [0.0] * (arrived.height - 1), abs=1e-9
    )
    assert arrived["received_bytes"].to_list() == [1000 * (i + 1) for i in range(arrived.height)]


def test_bins_hold_every_packet_once(paper):
    life = packets.life(paper, "beat")
    table = packets.over_time(paper, "beat", bin_s=0.5)
    assert table.height == 8
    assert table["sent_packets"].sum() == life.height
    assert table["received_packets"].sum() == life["received_s"].count()
    assert table["generated_packets"].sum() == paper.flows["generated_packets"][0]
    # Every packet but the last is sent on by the one node between.
    assert abs(table["forwarded_packets"].sum() - life.height) <= 1
    full = table.filter(table["received_packets"] == 5)
    assert set(full["received_bps"]) == {5 * 8000 / 0.5}
    (row,) = packets.by_size(paper, "beat").to_dicts()
    assert (row["ip_bytes"], row["sent_packets"]) == (1000, life.height)
    assert row["delay_mean_s"] == pytest.approx(0.054)
    assert row["received_mean_bps"] == pytest.approx(8000 * row["received_packets"] / 4)


def test_active_rate_is_over_first_to_last(paper):
    (row,) = metrics.compute(paper, "active_rate").to_dicts()
    received = packets.life(paper, "beat")["received_s"].count()
    assert row["value"] == pytest.approx(8000 * received / ((received - 1) * 0.0972))


def test_delays_are_those_of_an_ns2_trace(tmp_path):
    other = flow_text("other", "a>c", UDP, inline("on_off", rate="60kbit/s", packet="300B"))
    queue = PAPER.replace("500kbit/s", "90kbit/s")
    result = talkspurt.run(queue.replace("[flows.beat]", f"{other}[flows.beat]"))
    result.save(tmp_path / "run", report=False)
    trace = exporting.export(tmp_path / "run", "ns2", None) / "trace.tr"
    # As the awk scripts of ns-2's users do: first "+" of a packet at its source, "r" at its end.
    began, delays = {}, {}
    for line in trace.read_text().splitlines():
        act, time, a, b, _, _, _, flow, *_, number, uid = line.split()
        if act == "+" and (a, flow) == ("0", "1"):
            began[uid] = float(time)
        if act == "r" and (b, flow) == ("2", "1"):
            delays[int(number)] = float(time) - began[uid]
    life = packets.life(result, "beat")
    ours = {
        number: delay
        for number, delay in life.select("number", "delay_s").iter_rows()
        if delay is not None
    }
    assert ours == pytest.approx(delays, abs=2e-9)
    assert len(ours) > 20
    order = sorted(delays, key=lambda number: began_at(life, number))
    changes = [abs(delays[b] - delays[a]) for a, b in itertools.pairwise(order)]
    table = metrics.compute(result, "q", "beat").filter(
        metrics.compute(result, "q", "beat")["jitter_s"].is_not_null()
    )
    assert table["jitter_s"].to_list() == pytest.approx(changes, abs=4e-9)
    smoothed = 0.0
    for change in changes:
        smoothed += (change - smoothed) / 16
    last = metrics.compute(result, "t", "beat").drop_nulls()["smoothed_jitter_s"][-1]
    assert last == pytest.approx(smoothed, rel=1e-6)


def began_at(life, number):
    return life.filter(life["number"] == number)["received_s"][0]


def test_every_metric_of_the_study_can_be_had(paper):
    letters = [one.study for one in catalogue.COMPUTED if one.study]
    assert letters == [*"abcdefghijklmnopqrstuvwxyz", "aa", "bb"]
    for one in catalogue.COMPUTED:
        table = metrics.compute(paper, one.name)
        first = "link" if one.of_links else "flow"
        assert table.columns == [first, *([one.x] if one.x else []), one.y]
        # There is no call and no loss in it.
        assert table.height > 0 or one.shape in ("calls", "losses")
        assert one.formula and one.source


# Jain, Chiu and Hawe 1984, §2: k of n users share alike and the others have nothing: k/n.
@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 4), (3, 4), (10, 10)])
def test_fairness_of_k_of_n(k, n):
    assert sharing.jain([5.0] * k + [0.0] * (n - k)) == pytest.approx(k / n)


def test_variation_by_hand():
    # 1, 3: mean 2, deviation 1; over two bins, all alike.
    values = [1.0, 3.0] * 8
    assert sharing.coefficient_of_variation(values, 1) == pytest.approx(0.5)
    assert sharing.coefficient_of_variation(values, 2) == 0
    assert math.isnan(sharing.coefficient_of_variation(values, 16))


def test_equivalence_by_hand():
    assert sharing.equivalence([1, 2, 0, 0], [2, 1, 0, 4], 1) == pytest.approx((0.5 + 0.5 + 0) / 3)
    assert sharing.equivalence([1, 2, 4, 4], [2, 1, 4, 4], 2) == 1


def test_convergence_is_from_when_it_stays():
    times = [0.0, 1.0, 2.0, 3.0, 4.0]
    assert sharing.converged_s(times, [5, 10, 5, 10, 10.9], 10) == 3.0
    assert sharing.converged_s(times, [10, 10, 10, 10, 12], 10) is None


# RFC 8083 §4.3 with the law of Mathis et al.: 1000 B, 100 ms, p = 1.5 %: 8000 / (0.1 · 0.1) bit/s.
def reports(*rates, loss=0.015, rtt_s=0.1):
    return [
        r if r is None else breaker.Report(5.0 * n, 5.0, r, loss, rtt_s)
        for n, r in enumerate(rates)
    ]


OVER, UNDER = 8.1e6, 7.9e6


def test_the_circuit_breaker_averages_losses_over_three_intervals():
    assert breaker.tcp_rate_bps(1000, 0.1, 0.015) == pytest.approx(8e5)
    # RFC 8083 §4.3: "more than CB_INTERVAL" reports, so the fourth is the first that counts.
    assert breaker.stopped(reports(OVER, OVER, OVER), 1000) is None
    assert breaker.stopped(reports(OVER, OVER, OVER, OVER), 1000).until_s == 15
    # The rate is the last interval's.
    assert breaker.stopped(reports(*5 * [UNDER]), 1000) is None
    assert breaker.stopped(reports(OVER, OVER, OVER, UNDER), 1000) is None
    assert breaker.stopped(reports(*4 * [UNDER], OVER), 1000).until_s == 20
    assert breaker.stopped(reports(*3 * [OVER], None, *3 * [OVER]), 1000) is None, "it was silent"
    assert breaker.stopped(reports(*6 * [OVER], loss=0.0), 1000) is None
    # All the losses in the last of three: 4.5 % there are 1.5 % of all; 4 % are not.
    clean = reports(OVER, OVER, OVER, loss=0.0)
    assert (
        breaker.stopped([*clean, breaker.Report(15.0, 5.0, OVER, 0.045, 0.1)], 1000).until_s == 15
    )
    assert breaker.stopped([*clean, breaker.Report(15.0, 5.0, OVER, 0.04, 0.1)], 1000) is None
    # An interval counts by its length: 4.5 % in 2.5 s of 12.5 s are 0.9 %, 7.5 % are 1.5 %.
    assert breaker.stopped([*clean, breaker.Report(12.5, 2.5, OVER, 0.045, 0.1)], 1000) is None
    short = breaker.Report(12.5, 2.5, OVER, 0.075, 0.1)
    assert breaker.stopped([*clean, short], 1000).until_s == 12.5


def test_where_nothing_arrives_the_media_time_out():
    dead = reports(*5 * [UNDER], loss=1.0, rtt_s=None)
    assert breaker.stopped(dead, 1000).until_s == 20
    assert breaker.stopped(dead[:4], 1000) is None
    assert breaker.stopped([*dead[:4], None, *dead[:4]], 1000) is None, "it was silent"
    # A receiver that has heard of nothing new tells of no loss: 4.5 % count again when it does.
    mixed = [*reports(OVER, OVER, loss=0.0), breaker.Report(10.0, 5.0, OVER, 1.0, None)]
    after = breaker.Report(15.0, 5.0, OVER, 0.045, 0.1)
    assert breaker.stopped(mixed, 1000) is None
    assert breaker.stopped([*mixed, after], 1000).until_s == 15


def line(duration, interval, source=cbr("80kbit/s", "972B", noise="0ms"), **more):  # noqa: B008
    link = link_text("near", "a>b", "1Mbit/s", "10ms", **more)
    beat = flow_text("beat", "a>b", UDP, source)
    return talkspurt.run(
        scenario_text("t", duration, link, beat, record=f'{{ interval = "{interval}" }}')
    )


def test_a_flow_of_which_nothing_arrives_would_have_to_stop():
    result = line("38s", "500ms", loss=1.0)
    (row,) = metrics.compute(result, "circuit_breaker").to_dicts()
    assert row["value"] == pytest.approx(25.0)
    told, size = breaker.reports(result, "beat")
    # A packet of 1000 B every 97.2 ms, in the last, shorter interval too.
    assert size == 1000
    assert [report.sent_bps for report in told] == pytest.approx([8000 / 0.0972] * 8, rel=0.03)
    assert told[-1].until_s == 38


def test_delays_of_an_interval_count_by_packets():
    # Ten times the packets while the queue is full as before.
    result = line("5s", "100ms", cbr("1200kbit/s", "972B"))
    ((report,), _) = breaker.reports(result, "beat")
    flow = result.flows.row(0, named=True)
    assert report.rtt_s == pytest.approx(2 * flow["delay_mean_s"])


def test_bins_finer_than_the_series_are_refused_where_it_is_needed(paper):
    with pytest.raises(ValueError, match=r"0\.2 s is no multiple of record\.interval, 0\.5 s"):
        metrics.compute(paper, "generated_rate", bin_s=0.2)
    table = metrics.compute(paper, "generated_rate", bin_s=1.0)
    made = paper.flows["generated_packets"][0]
    assert table["generated_pps"].sum() == made
    assert metrics.compute(paper, "generated_rate", bin_s=2.0)["generated_pps"].sum() == made / 2
    assert metrics.compute(paper, "received_packet_rate", bin_s=0.25)["received_pps"].max() == 12


def test_fair_shares_are_max_min_fair():
    # One flow over both links beside one on each: the narrow link gives 0.5 each, and the wide one
    # what is left (Bertsekas and Gallager's parking lot).
    tables = (
        link_text("one", "a>b", "1Mbit/s", "1ms", 50),
        link_text("two", "b>c", "3Mbit/s", "1ms", 50),
        flow_text("both", "a>c", UDP, cbr("100kbit/s", "972B"), reverse=cbr("50kbit/s", "99B")),
        flow_text("near", "a>b", UDP, cbr("400kbit/s", "972B")),
        flow_text("far", "b>c", UDP, cbr("2000kbit/s", "972B")),
    )
    result = talkspurt.run(scenario_text("t", "9s", *tables))
    shares = sharing.fair_shares(result)
    assert shares == pytest.approx(
        {"both": 0.5e6, "near": 0.5e6, "far": 2.5e6, "both.reverse": 1e6}
    )
    found = dict(metrics.compute(result, "normalised_throughput").iter_rows())
    rates = dict(result.flows.select("name", "throughput_bps").iter_rows())
    assert found == pytest.approx({name: rates[name] / shares[name] for name in shares})
    assert found["far"] == pytest.approx(2e6 * 1000 / 972 / 2.5e6, rel=0.02)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1500us", 0.0015), ("2us", 2e-6), ("0.1ms", 0.0001), ("2.5s", 2.5), ("1min", 60.0)],
)
def test_durations_are_read_alike_everywhere(text, expected):
    plan = read(PAPER, set={"duration": "70s", "flows.beat.start": text}).plan
    found = values(plan.resolved(0))["flows"]["beat"]["start"]
    assert units.seconds(found) == expected
    assert bins.seconds is units.seconds
    with pytest.raises(ValueError, match="is not in bit/s"):
        units.bits(found)


def test_a_flow_that_floods_would_be_stopped_and_a_call_would_not():
    scenario = PAPER.replace("4s", "40s") + flow_text("flood", "a>c", UDP, cbr("950kbit/s", "200B"))
    result = talkspurt.run(scenario)
    found = dict(metrics.compute(result, "circuit_breaker").iter_rows())
    # 0.95 of 0.5 Mbit/s: half is lost, and s / (R √(2p/3)) is some 30 kbit/s behind a full queue.
    # The fourth report is the first that counts.
    assert found["flood"] == pytest.approx(20.0)
    assert found["beat"] is None


def test_the_command_lists_and_computes(tmp_path, paper):
    paper.save(tmp_path / "run", report=False)
    listed = succeed("metrics")
    assert "delay_over_time" in listed.stdout and "mos" in listed.stdout
    document = json.loads(command("metrics", "--json").stdout)
    assert len(document["metrics"]) == len(catalogue.ALL)
    told = command("metrics", tmp_path / "run", "m", "--flow", "beat")
    assert told.stdout.splitlines()[0] == "flow,sent_s,delay_s"
    for words, complaint in [
        (("metrics", tmp_path / "run", "delay_over_tme"), "did you mean 'delay_over_time'"),
        (("metrics", tmp_path / "run", "m", "--flow", "bet"), "no flow 'bet'"),
        (("metrics", tmp_path / "run", "--flow", "beat"), "for one metric, and none is named"),
        (("metrics", tmp_path / "run", "m", "--bin", "0"), "--bin 0"),
        (
            ("metrics", tmp_path / "run", "moss", "--bin", "0", "--json", "--table"),
            "more than 0; --table and --json: give one of them; no metric 'moss'",
        ),
        (("metrics", tmp_path / "run", "mos", "--bin", "3"), "flows.mos has no bins of time"),
        (("metrics", tmp_path / "run", "fairness", "--bin", "7"), "fairness has no bins of time"),
        (
            ("metrics", tmp_path / "run", "rate"),
            "nothing in these runs has a value of gauges.rate; there are: ",
        ),
        (
            ("metrics", tmp_path / "run", "cwnd", "--flow", "beat"),
            "'beat' has no value of gauges.cwnd",
        ),
    ]:
        done = refused(*words)
        assert done.stdout == ""
        assert complaint in done.stderr


def test_a_width_of_bins_is_taken_where_it_changes_something_and_refused_elsewhere(paper):
    for one in catalogue.ALL:
        if not one.has_bins:
            with pytest.raises(ValueError, match="has no bins of time"):
                metrics.compute(paper, one.full_name, bin_s=2.0)
        elif one.shape != "calls":  # there is none on paper
            own = metrics.compute(paper, one.name)
            assert not metrics.compute(paper, one.name, bin_s=2.0).equals(own), one.name


def test_without_packets_it_says_how_to_have_them(tmp_path):
    result = talkspurt.run(PAPER.replace("packets = true, ", ""))
    with pytest.raises(KeyError, match=r"record\.packets=true"):
        metrics.compute(result, "m")
    assert metrics.compute(result, "fairness")["value"].to_list() == [1.0]
