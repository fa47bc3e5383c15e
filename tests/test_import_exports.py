"""Shipped scenarios come back from what they export: from traces of ns-2 with counts and delays of
every flow, from captures with every packet of a link, its time and its length."""

from pathlib import Path

import polars as pl
import pytest

import talkspurt
from talkspurt.runs import exporting

SCENARIOS = Path(__file__).parent.parent / "scenarios"
NAMES = [
    "bufferbloat", "ccid3", "controllers", "every-transport", "first-call", "jitter-buffers",
    "ladder-heard", "large-delay", "multistreaming", "partial-reliability", "queues", "sources",
    "two-paths", "two-way", "video", "which-transport", "wireless-cell",
]  # fmt: skip
LENGTHS_OF_NS_2 = "large-delay"
"""Its DCCP counts the bytes that ns-2 counts; a capture has the headers of RFC 4340."""
COUNTS = ["sent_packets", "received_packets", "lost_packets", "in_flight_packets"]


def run(name, **record):
    """The first run, measured from its start to its end."""
    file = SCENARIOS / f"{name}.toml"
    one = {"axes": [], "replications.count": 1} if "[[axes]]" in file.read_text() else {}
    return talkspurt.run(file, set={"measure": {}, "record": {"packets": True, **record}, **one})


@pytest.mark.parametrize("name", NAMES)
def test_counts_and_delays_come_back_from_a_trace_of_ns_2(name, tmp_path):
    result = run(name)
    made = exporting.export(result.save(tmp_path / "run", report=False), "ns2", tmp_path / "ns2")
    ours = talkspurt.import_trace([made / "trace.tr"]).flows
    # Streams of an association are one flow to a trace.
    sums = result.flows.with_columns(
        pl.col("transport").str.extract(r" in (.*)").fill_null(pl.col("name")).alias("carrier")
    )
    theirs = [
        (*rows.select(pl.col(COUNTS).sum()).row(0), rows["delay_mean_s"].drop_nulls().to_list())
        for _, rows in sums.group_by("carrier", maintain_order=True)
    ]
    left = ours.select(*COUNTS, "delay_mean_s", "transport", "name").rows()
    for *counts, delays in theirs:
        same = [
            row for row in left
            if list(row[:4]) == counts and row[4] == pytest.approx(delays[0], abs=1e-8)
        ]  # fmt: skip
        assert same, (counts, delays, left)
        left.remove(same[0])
    # Reports of receivers are in the stream of bytes of TCP, and no flow of a scenario.
    assert all(row[5] == "tcp" and row[6].endswith(".reverse") for row in left), left


def directions(packets):
    """Times from the first packet and lengths, of each direction of a flow."""
    at = pl.col("dequeued_s")
    rows = packets.filter(at.is_not_null()).with_columns(t=at - at.min()).sort("t")
    found = [of for _, of in rows.group_by("flow", "side", maintain_order=True)]
    return sorted(found, key=lambda of: (of.height, of["t"].round(6)[0]))


@pytest.mark.parametrize("name", NAMES)
def test_every_packet_of_a_link_comes_back_from_its_capture(name, tmp_path):
    first = run(name)
    packets = first.packets().filter(pl.col("dequeued_s").is_not_null())
    busiest = packets["link"].str.strip_suffix(".back").value_counts().sort("count", "link")
    link = busiest["link"][-1]
    result = run(name, pcapng=[link])
    assert result.digest == first.digest
    folder = result.save(tmp_path / "run", report=False)
    ours = talkspurt.import_trace([folder / f"{link}.pcapng"])

    here = packets.filter(pl.col("link").is_in([link, f"{link}.back"]))
    # What passed the point of a capture was received there; numbers tell what did not.
    there = ours.packets().drop("dequeued_s").rename({"received_s": "dequeued_s"})
    for theirs, mine in zip(directions(here), directions(there), strict=True):
        if name != LENGTHS_OF_NS_2:
            assert mine["ip_bytes"].to_list() == theirs["ip_bytes"].to_list()
        assert mine["t"].to_list() == pytest.approx(theirs["t"].to_list(), abs=2e-9)
