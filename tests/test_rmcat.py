"""Rates, counts and shares over time, of flows and links: on paper, and against other tables."""

import json
import math

import polars as pl
import pytest

import talkspurt
from command import talkspurt as command
from talkspurt import metrics
from talkspurt.errors import OtherVersionWarning
from talkspurt.metrics import catalogue, packets, series, sharing
from texts import UDP, cbr, dccp, flow_text, link_text, scenario_text

SHORT = '{ packets = 5, drop = "oldest" }'
BUSY = scenario_text(
    "Busy",
    "10s",
    link_text("near", "a>b", "1Mbit/s", "10ms"),
    link_text("far", "b>c", "250kbit/s", "20ms", 12),
    flow_text("beat", "a>c", UDP, cbr("80kbit/s", "972B")),
    flow_text("call", "a>c", playout='{ buffer = "100ms" }'),
    flow_text("held", "a>c", dccp(2), cbr("200kbit/s", "500B"), send_queue=SHORT),
    record="{ packets = true }",
)


@pytest.fixture(scope="module")
def busy():
    return talkspurt.run(BUSY)


def test_counts_over_time_add_up_to_the_flows(busy):
    names = {
        "sent_over_time": "sent_packets",
        "received_over_time": "received_packets",
        "lost_over_time": "lost_packets",
        "discarded_over_time": "discarded_packets",
        "late_over_time": "late_packets",
    }
    for metric, column in names.items():
        for flow in busy.flows["name"]:
            table = metrics.compute(busy, metric, flow)
            assert table.height == 10
            known = busy.flows.filter(name=flow)[column][0]
            assert table[column].sum() == (known or 0), (metric, flow)
    flows = busy.flows
    assert flows["discarded_packets"].sum() > 0
    assert flows["lost_packets"].sum() > 0
    assert flows["late_packets"].sum() > 0
    both = metrics.compute(busy, "generated_vs_sent", "beat")
    assert both["generated_packets"].sum() == flows["generated_packets"][0]


def test_rates_hold_every_bit(busy):
    for metric, column, y in [
        ("sending_rate", "sent_bytes", "sent_bps"),
        ("receiving_rate", "received_bytes", "received_bps"),
    ]:
        table = metrics.compute(busy, metric, "beat")
        assert table["time_s"].to_list() == pytest.approx([0.2 * i for i in range(50)])
        assert table[y].sum() * 0.2 == pytest.approx(8 * busy.flows[column][0])
    # 972 bytes of data every 97.2 ms are 80 kbit/s; a frame of G.711 has 160 every 20 ms.
    made = metrics.compute(busy, "generating_rate", "beat", 10.0)["generated_bps"]
    assert made.to_list() == [8 * 972 * busy.flows["generated_packets"][0] / 10]
    made = metrics.compute(busy, "generating_rate", "call")["generated_bps"].to_list()
    assert made[1:] == pytest.approx([64e3] * 9)
    sent = packets.life(busy, "beat").height
    assert metrics.compute(busy, "sent_packet_rate", "beat")["sent_packets"].sum() == sent
    passed = busy.packets("beat").filter(pl.col("link") == "far")["dequeued_s"].count()
    told = metrics.compute(busy, "forwarded_packet_rate", "beat")["forwarded_packets"]
    assert told.sum() == passed
    bits = metrics.compute(busy, "forwarded_rate", "beat")["forwarded_bps"]
    assert bits.to_list() == pytest.approx([8000 * count for count in told])
    goodput = metrics.compute(busy, "goodput_over_time", "beat", 0.5)
    assert goodput["goodput_bps"].mean() == pytest.approx(busy.flows["goodput_bps"][0])
    # A packet of 1000 bytes every 97.2 ms is two or three in 200 ms, but where the flow begins.
    sent = metrics.compute(busy, "sending_rate", "beat")["sent_bps"].to_list()[1:]
    assert {round(rate) for rate in sent} == {80_000, 120_000}


def test_bins_must_be_of_the_series(busy, tmp_path):
    with pytest.raises(ValueError, match=r"expected a multiple of the series' 0\.1 s"):
        metrics.compute(busy, "sending_rate", "beat", 0.25)
    busy.save(tmp_path / "run", report=False)
    told = command("metrics", tmp_path / "run", "sending_rate", "--bin", "0.25")
    assert (told.returncode, told.stdout) == (2, "")
    assert "multiple of the series' 0.1 s (record.interval)" in told.stderr
    coarse = talkspurt.run(BUSY.replace("packets = true", 'interval = "500ms"'))
    assert metrics.compute(coarse, "sending_rate", "beat").height == 20


def test_a_result_of_an_older_version_is_told_so(busy, tmp_path):
    busy.save(tmp_path / "run", report=False)
    file = tmp_path / "run" / "series.parquet"
    pl.read_parquet(file).drop("discarded_packets").write_parquet(file)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    (tmp_path / "run" / "manifest.json").write_text(json.dumps({**manifest, "talkspurt": "0.0.1"}))
    told = command("metrics", tmp_path / "run", "lost_over_time")
    assert (told.returncode, told.stdout) == (2, "")
    assert "have no discarded_packets: an older talkspurt made it" in told.stderr
    # Frames without encodings are of one encoding.
    file = file.with_name("frames.parquet")
    pl.read_parquet(file).drop("encoding").write_parquet(file)
    with pytest.warns(OtherVersionWarning):
        old = talkspurt.load(tmp_path / "run")
    known = metrics.compute(busy, "mos_over_time", "call")
    assert metrics.compute(old, "mos_over_time", "call").equals(known)


def test_a_packets_time_is_its_waits_and_what_paper_says_of_the_rest(busy):
    for flow in ("beat", "call"):
        life = packets.life(busy, flow).drop_nulls("received_s")
        bits = 8 * life["ip_bytes"]
        links = bits / 1e6 + 0.01 + bits / 250e3 + 0.02
        waits = life["delay_s"] - links
        assert life["queueing_s"].to_list() == pytest.approx(waits.to_list(), abs=1e-8)
        assert life["queueing_s"].max() > 0.05
    mean = metrics.compute(busy, "mean_queueing_delay", "call")["queueing_mean_s"]
    assert min(mean) >= 0 and max(mean) > 0.05


def test_links_over_time(busy):
    far = busy.links.filter(name="far").row(0, named=True)
    used = metrics.compute(busy, "link_utilisation", link="far")
    assert used.columns == ["link", "time_s", "utilisation"]
    assert used["utilisation"].mean() == pytest.approx(far["utilisation"])
    assert metrics.compute(busy, "link_queue", link="far")["queue_packets"].mean() == (
        pytest.approx(far["queue_mean_packets"])
    )
    assert metrics.compute(busy, "link_drops", link="far")["drops"].sum() == far["drops"] > 0
    # Little's law: waiting packets are arrivals a second times their wait, but for those that never
    # left the queue.
    waits = series.waits(busy, "far", 10.0)
    left = busy.packets().filter((pl.col("link") == "far") & pl.col("dequeued_s").is_not_null())
    law = left.height / 10 * waits["wait_mean_s"][0]
    assert law == pytest.approx(far["queue_mean_packets"], rel=0.02)
    assert metrics.compute(busy, "link_wait")["link"].n_unique() == 4
    with pytest.raises(ValueError, match="is of links"):
        metrics.compute(busy, "link_queue", "beat")
    with pytest.raises(ValueError, match="is of flows"):
        metrics.compute(busy, "fairness", link="far")
    with pytest.raises(KeyError, match="no link 'fra'"):
        metrics.compute(busy, "link_queue", link="fra")


def test_shares_of_what_all_receive(busy):
    tables = [metrics.compute(busy, "throughput_ratio", f, 5.0) for f in busy.flows["name"]]
    sums = [sum(rows) for rows in zip(*(t["throughput_ratio"] for t in tables), strict=True)]
    assert sums == pytest.approx([len(tables)] * 2)
    received = busy.series("beat").filter(pl.col("time_s") <= 5)["received_bytes"].sum()
    of_all = busy.series().filter(pl.col("time_s") <= 5)["received_bytes"].sum()
    assert tables[0]["throughput_ratio"][0] == pytest.approx(len(tables) * received / of_all)


def test_the_share_of_the_bottleneck(busy):
    share = metrics.compute(busy, "bandwidth_utilisation", "beat")["bandwidth_utilisation"]
    rate = metrics.compute(busy, "sending_rate", "beat")["sent_bps"]
    assert share.to_list() == pytest.approx([bps / 250e3 for bps in rate])
    steps = '[[links.far.steps]]\nat = "5s"\nrate = "500kbit/s"\n[flows.beat]'
    changing = talkspurt.run(BUSY.replace("[flows.beat]", steps, 1))
    with pytest.raises(ValueError, match="the rate of link 'far' changes"):
        metrics.compute(changing, "bandwidth_utilisation", "beat")


def test_no_share_of_a_cell(pytestconfig):
    cell = pytestconfig.rootpath / "scenarios/wireless-cell.toml"
    result = talkspurt.run(
        cell, set={"duration": "2s", "axes": [], "measure": {}, "replications.count": 1}
    )
    flow = result.calls[0]
    with pytest.raises(ValueError, match="leads through a cell"):
        series.narrowest(result, flow)


def test_numbers_of_flows_by_hand(busy):
    def value(name, flow):
        return metrics.compute(busy, name, flow)["value"][0]

    life = packets.life(busy, "beat")
    bits = 8 * life.drop_nulls("received_s")["ip_bytes"].sum()
    assert value("rate_over_run", "beat") == pytest.approx(bits / 10)
    assert value("active_rate", "beat") > value("rate_over_run", "beat")
    for flow in ("beat", "call"):
        row = busy.flows.filter(name=flow).row(0, named=True)
        assert value("network_loss", flow) == row["lost_packets"] / row["sent_packets"]
    fates = busy.frames("call")["fate"].to_list()
    row = busy.flows.filter(name="call").row(0, named=True)
    judged = (row["missing_packets"] + row["late_packets"]) / row["loss_ratio"]
    assert value("playout_discards", "call") == pytest.approx(fates.count("late") / judged)
    both = value("playout_discards", "call") + value("post_repair_loss", "call")
    assert both == pytest.approx(row["loss_ratio"])
    assert value("post_repair_loss", "beat") is None
    assert value("network_loss", "held") > 0
    rates = busy.flows["throughput_bps"]
    assert value("least_over_greatest", "beat") == pytest.approx(rates.min() / rates.max())


def test_oscillations_by_hand():
    # Mean 1: twice and half of it are the watermarks; each step is 0.2 s.
    assert series.oscillations([2.0, 1.0, 0.5, 0.5] * 5, 0.2) == 9
    assert series.oscillations([2.0, 1.0, 1.0, 1.0, 0.4, 0.4, 1.2], 0.2) == 0, "0.8 s is too slow"
    assert series.oscillations([2.0, 1.0, 1.0, 1.0, 0.4, 0.4, 1.2], 0.1) == 1
    assert series.oscillations([1.0, 1.9, 0.6, 0.5], 0.2) == 0
    assert series.oscillations([], 0.2) == series.oscillations([0.0, 0.0], 0.2) == 0
    assert metrics.compute(talkspurt.run(BUSY), "oscillations", "beat")["value"][0] == 0


def test_fair_convergence_by_hand():
    times = [0.0, 1.0, 2.0]
    # 1/101 and 100/101 of 101; then 45 and 55 of 100, which is (1 − 0.1)/2 and (1 + 0.1)/2.
    assert sharing.fair_after_s(times, [1, 40, 45], [100, 60, 55]) == 2.0
    assert sharing.fair_after_s(times, [0, 0, 0], [1, 1, 1]) is None
    assert sharing.fair_after_s(times, [0, 3, 0], [0, 3, 1]) == 1.0
    assert sharing.least_over_greatest([2.0, 8.0, 4.0]) == 0.25
    assert math.isnan(sharing.least_over_greatest([0.0]))


def test_every_number_of_a_table_is_in_the_catalogue(busy):
    known = {(one.table, one.name) for one in catalogue.COLUMNS}
    for name in ("flows", "links"):
        table = busy.table(name)
        numbers = [c for c, kind in table.schema.items() if kind.is_numeric()]
        assert [c for c in numbers if (name, c) not in known] == []
    anchors = [one.anchor for one in catalogue.COLUMNS]
    assert len(anchors) == len(set(anchors))
