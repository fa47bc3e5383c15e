"""qlog files against the definitions of the drafts they follow.

The rules were read from the sources of draft-ietf-quic-qlog-main-schema and
draft-ietf-quic-qlog-quic-events as they were at qlog version 0.3, and stand here in other words.
`validation/qlog` has the files read by another's reader.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import talkspurt
from talkspurt.runs import exporting
from test_export import SCENARIO
from texts import flow_text, inline, put, tcp

MODEL = flow_text("model", "home>office", tcp("bbr"), inline("bulk", total="150kB"))
TEXTS = {"title", "description"}
PACKET_TYPES = {
    "initial", "handshake", "0RTT", "1RTT", "retry", "version_negotiation", "stateless_reset",
    "unknown",
}  # fmt: skip
METRICS = {
    **dict.fromkeys(("min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance"), float),
    **dict.fromkeys(("congestion_window", "bytes_in_flight", "ssthresh", "pacing_rate"), int),
    **dict.fromkeys(("packets_in_flight", "pto_count"), int),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("qlog")
    scenario = put(folder / "all.toml", SCENARIO + MODEL)
    return sorted(exporting.export(scenario, "qlog", folder / "out").glob("*.sqlog"))


def records(file: Path) -> list[dict[str, Any]]:
    """RFC 7464 §2.2: each text begins with a record separator and ends with a line feed."""
    raw = file.read_bytes()
    first, *texts = raw.split(b"\x1e")
    assert first == b""
    assert all(text.endswith(b"\n") for text in texts)
    return [json.loads(text.decode("utf-8")) for text in texts]


def test_there_is_a_file_for_each_end(files: list[Path]) -> None:
    assert len(files) == 10  # the suffix SHOULD be .sqlog


def test_the_head_is_a_qlog_file_seq(files: list[Path]) -> None:
    for file in files:
        start = file.read_bytes()[:256]  # where both SHOULD be, to be found by
        assert b'"qlog_version":"0.3"' in start and b'"qlog_format":"JSON-SEQ"' in start
        head = records(file)[0]
        assert head.keys() - TEXTS == {"qlog_version", "qlog_format", "trace"}
        trace = head["trace"]
        assert trace.keys() - TEXTS <= {"configuration", "common_fields", "vantage_point"}
        assert all(isinstance(part[t], str) for part in (head, trace) for t in TEXTS & part.keys())
        point = trace["vantage_point"]
        assert point["type"] == {"from": "client", "to": "server"}[file.stem.rpartition(".")[2]]
        assert isinstance(point["name"], str) and point.keys() == {"name", "type"}
        common = trace["common_fields"]
        assert common["time_format"] in ("absolute", "delta", "relative")
        assert isinstance(common["reference_time"], int | float)
        assert common["protocol_type"] and all(isinstance(p, str) for p in common["protocol_type"])


def test_events_have_what_every_event_must_have(files: list[Path]) -> None:
    for file in files:
        events = records(file)[1:]
        assert events
        times = [event["time"] for event in events]
        assert times == sorted(times)  # SHOULD be in ascending order
        for event in events:
            assert event.keys() == {"time", "name", "data"}
            assert isinstance(event["time"], int | float)
            category, kind = event["name"].split(":")  # neither may have a colon
            assert category and kind and event["name"] == event["name"].lower()
            assert isinstance(event["data"], dict)
            assert all(key == key.lower() for key in event["data"])


def test_events_that_quic_knows_are_as_it_defines_them(files: list[Path]) -> None:
    seen = set()
    for file in files:
        for event in records(file)[1:]:
            data = event["data"]
            if event["name"].startswith("transport:packet_"):
                assert data.keys() == {"header", "raw"}
                header = data["header"]
                assert header["packet_type"] in PACKET_TYPES
                assert isinstance(header["packet_number"], int) and header["packet_number"] >= 0
                assert data["raw"].keys() == {"length"} and isinstance(data["raw"]["length"], int)
            elif event["name"] == "recovery:metrics_updated":
                assert data
                for name, value in data.items():
                    kind = METRICS[name]
                    assert isinstance(value, kind) or (kind is float and isinstance(value, int))
                    assert value >= 0
                    seen.add(name)
            else:
                assert event["name"].startswith("talkspurt:")
    assert {"congestion_window", "smoothed_rtt", "pacing_rate", "ssthresh", "min_rtt"} <= seen


def test_times_are_milliseconds(files: list[Path]) -> None:
    scenario = SCENARIO + MODEL
    result = talkspurt.run(scenario)
    (file,) = (file for file in files if file.name == "bulk.from.sqlog")
    told = [
        event["data"]["smoothed_rtt"]
        for event in records(file)[1:]
        if "smoothed_rtt" in event["data"]
    ]
    gauges = result.gauges("bulk", "srtt").filter(side="from")["value"]
    assert told == pytest.approx([1e3 * value for value in gauges])
    assert 20 < told[0] < 500
