"""Dumps of WebRTC statistics: the forms in which they are saved give the same tables, with the numbers that
the statistics have; damaged ones give tables or one error."""

import copy
import gzip
import importlib.util
import json
import sys
import tomllib
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import talkspurt
from command import succeed
from conftest import ROOT, row_of
from talkspurt.analysis.answer import answer
from talkspurt.errors import BadInputError
from talkspurt.importing.webrtc import dump, eventlog, streams
from talkspurt.metrics.computing import compute

BEGIN_MS = 1.7e12


def sample(second):
    """What getStats tells of a call of audio, and of video that is sent, every second."""
    at = BEGIN_MS + 1000 * second + (second * 7) % 5
    common = {"timestamp": at}
    rows = [
        {"id": "IT01A5", "type": "inbound-rtp", "kind": "audio", "ssrc": 5, "mid": "0",
         "codecId": "CIT", "packetsReceived": 50 * second, "packetsLost": second // 2,
         "bytesReceived": 4000 * second, "headerBytesReceived": 1400 * second, "jitter": 0.01,
         "concealedSamples": 480 * second, "totalSamplesReceived": 48_000 * second,
         "jitterBufferDelay": 40.5 * second, "jitterBufferEmittedCount": 900 * second,
         "trackIdentifier": "a"},
        {"id": "OT01V7", "type": "outbound-rtp", "kind": "video", "ssrc": 7, "codecId": "COT",
         "mediaSourceId": "SV2", "remoteId": "RI7", "packetsSent": 30 * second,
         "bytesSent": 30_000 * second, "headerBytesSent": 900 * second,
         "qualityLimitationDurations": {"cpu": 0, "bandwidth": 1.5}, "active": True},
        {"id": "RI7", "type": "remote-inbound-rtp", "kind": "video", "ssrc": 7, "localId": "OT01V7",
         "jitter": 0.002, "roundTripTime": 0.05, "packetsLost": 3},
        {"id": "SV2", "type": "media-source", "kind": "video", "width": 640},
        {"id": "T01", "type": "transport", "selectedCandidatePairId": "CP2",
         "srtpCipher": "SRTP_AES128_CM_HMAC_SHA1_80", "packetsSent": 90 * second},
        {"id": "CP1", "type": "candidate-pair", "state": "failed", "priority": 2**62},
        {"id": "CP2", "type": "candidate-pair", "state": "succeeded", "localCandidateId": "L",
         "remoteCandidateId": "R", "availableOutgoingBitrate": 1e6},
        {"id": "L", "type": "local-candidate", "address": "10.0.0.1", "protocol": "udp"},
        {"id": "R", "type": "remote-candidate", "address": "", "protocol": "udp"},
        {"id": "CIT", "type": "codec", "mimeType": "audio/opus", "clockRate": 48000,
         "payloadType": 111, "sdpFmtpLine": "minptime=10;useinbandfec=1"},
        {"id": "COT", "type": "codec", "mimeType": "video/VP8", "clockRate": 90000},
    ]  # fmt: skip
    return {row["id"]: {**row, **common} for row in rows}


SAMPLES = [sample(second) for second in range(1, 11)]


def internals(samples, *, with_times=True):
    """A dump of chrome://webrtc-internals of the samples."""

    def text(ms):
        return datetime.fromtimestamp(ms / 1e3, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"

    series = {}
    for one in samples:
        for name, row in one.items():
            for member, value in row.items():
                if member in ("id", "type") or (member == "timestamp" and not with_times):
                    continue
                key = f"{name}-{member}"
                made = series.setdefault(
                    key,
                    {"startTime": text(row["timestamp"]), "statsType": row["type"], "values": []},
                )
                made["endTime"] = text(row["timestamp"])
                made["values"].append(value)
    series["IT01A5-[packetsReceived/s]"] = {
        "startTime": text(BEGIN_MS), "endTime": text(BEGIN_MS), "statsType": "inbound-rtp",
        "values": [50],
    }  # fmt: skip
    stats = {key: {**one, "values": json.dumps(one["values"])} for key, one in series.items()}
    log = [{"timestamp": BEGIN_MS + 500, "type": "connectionstatechange", "value": '"connected"'}]
    connection = {"url": "https://call.example/", "stats": stats, "updateLog": log}
    return {"getUserMedia": [], "PeerConnections": {"12-1": connection}, "UserAgent": "Chrome/156"}


SHAPES = {
    "objects by identifier": SAMPLES,
    "lists": [[*one.values()] for one in SAMPLES],
    "pairs": [[[name, row] for name, row in one.items()] for one in SAMPLES],
    "around": {"stats": SAMPLES},
    "with a time": [{"timestamp": 5.0, "stats": one} for one in SAMPLES],
    "ours": [{"now": 5.0, "kept": [*one.values()]} for one in SAMPLES],
    "microseconds": [
        {name: {**row, "timestamp": 1000 * row["timestamp"]} for name, row in one.items()}
        for one in SAMPLES
    ],
    "webrtc-internals": internals(SAMPLES),
}


def read(content):
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return streams.Tables(dump.read(data))


@pytest.mark.parametrize("shape", SHAPES)
def test_all_forms_give_the_same_tables(shape):
    made = read(SHAPES[shape]).made
    expected = read(SAMPLES).made
    for name in ("flows", "series"):
        assert made[name].equals(expected[name]), name
    key = ["flow", "side", "gauge", "time_s"]
    # A member that is an object is text in webrtc-internals.
    apart = pl.col("gauge").str.contains("Durations")
    ours, theirs = (one["gauges"].filter(~apart).sort(key) for one in (made, expected))
    assert ours.equals(theirs)


def test_a_sample_a_line_is_read():
    lines = "\n".join(json.dumps(one) for one in SAMPLES)
    assert read(lines.encode()).made["flows"].equals(read(SAMPLES).made["flows"])


def test_columns_have_what_the_statistics_say():
    tables = read(SAMPLES)
    audio, video = tables.made["flows"].to_dicts()
    assert (audio["name"], audio["source"], audio["from"], audio["to"]) == (
        "rtp-1", "speech", "remote", "local"
    )  # fmt: skip
    assert (audio["received_packets"], audio["lost_packets"], audio["sent_packets"]) == (
        500,
        5,
        505,
    )
    assert audio["concealed_ratio"] == pytest.approx(0.01)
    assert audio["jitter_s"] == pytest.approx(0.01)
    # IPv4, UDP and the tag of SRTP are 38 bytes a packet.
    assert audio["received_bytes"] == 40_000 + 14_000 + 500 * 38
    seconds = (SAMPLES[-1]["T01"]["timestamp"] - SAMPLES[0]["T01"]["timestamp"]) / 1e3
    assert audio["throughput_bps"] == pytest.approx(8 * 9 * (4000 + 1400 + 50 * 38) / seconds)
    assert audio["goodput_bps"] == pytest.approx(8 * 36_000 / seconds)
    assert audio["mos"] is None and "mouth-to-ear" in audio["quality_note"]
    assert (video["source"], video["sent_packets"], video["payload_bytes"]) == (
        "video",
        300,
        300_000,
    )
    assert video["sent_bytes"] == 300_000 + 9_000 + 300 * 38
    assert video["network_header_bytes"] == 300 * 20
    # What the other end last reported is older than what was sent.
    assert video["lost_packets"] is None and video["jitter_s"] == pytest.approx(0.002)
    series = tables.made["series"]
    assert series.filter(flow="rtp-1")["received_packets"].to_list() == [50] * 9
    assert series.filter(flow="rtp-1")["lost_packets"].sum() == 5
    assert series.filter(flow="rtp-2")["sent_packets"].to_list() == [30] * 9
    assert tables.width == 1.0


def test_every_number_is_a_gauge_at_the_end_that_has_it():
    gauges = read(SAMPLES).made["gauges"]
    of = {
        (row["gauge"], row["flow"], row["side"])
        for row in gauges.select("gauge", "flow", "side").unique().to_dicts()
    }
    assert of >= {
        ("inbound-rtp.jitterBufferDelay", "rtp-1", "to"), ("jitter", "rtp-1", "to"),
        ("outbound-rtp.qualityLimitationDurations.bandwidth", "rtp-2", "from"),
        ("remote-inbound-rtp.packetsLost", "rtp-2", "to"), ("rtcp_rtt", "rtp-2", "from"),
        ("media-source.width", "rtp-2", "from"), ("transport.packetsSent", "rtp-2", "from"),
        ("candidate-pair.availableOutgoingBitrate", "rtp-2", "from"),
    }  # fmt: skip
    assert not {
        gauge for gauge, _, _ in of if gauge.endswith(("ssrc", "active", "priority", "mid"))
    }
    delays = gauges.filter(gauge="inbound-rtp.jitterBufferDelay")["value"].to_list()
    assert delays == [40.5 * second for second in range(1, 11)]
    # Only changes.
    assert gauges.filter(gauge="media-source.width").height == 1


def changed(name, member, values):
    """The samples with other values of a member; ... is none."""
    samples = copy.deepcopy(SAMPLES)
    for one, value in zip(samples, values, strict=False):
        if value is ...:
            one[name].pop(member, None)
        else:
            one[name][member] = value
    return samples


def test_counters_that_begin_again_count_on():
    values = [50, 100, 150, 20, 70, 120, 170, 220, 270, 320]
    tables = read(changed("IT01A5", "packetsReceived", values))
    assert tables.made["flows"]["received_packets"][0] == 150 + 320
    assert tables.shown[0].facts["restarts"] == {"packetsReceived": 1}
    series = tables.made["series"].filter(flow="rtp-1")["received_packets"].to_list()
    assert series == [50, 50, 20, 50, 50, 50, 50, 50, 50]


def test_what_is_played_counts_while_packets_arrive(tmp_path):
    """A receiver conceals before the first one, and after the last."""
    samples = changed("IT01A5", "packetsReceived", [0, 0, 40, 90, 140, 190, 195, 195, 195, 195])
    for one, concealed in zip(samples, [9, 18, 19, 19, 20, 22, 40, 70, 99, 120], strict=True):
        for name in ("concealedSamples", "concealmentEvents", "insertedSamplesForDeceleration"):
            one["IT01A5"][name] = 480 * concealed
    for form in (lambda it: it, internals):
        tables = read(form(samples))
        # Of the samples at 3, 4, 5 and 6 s, beyond that at 2 s.
        ratio = 480 * (22 - 18) / (4 * 48_000)
        assert tables.made["flows"]["concealed_ratio"][0] == pytest.approx(ratio)
        file = tmp_path / "dump.txt"
        file.write_text(json.dumps(form(samples)))
        result = talkspurt.import_trace(file)
        for metric, value in (("concealed_sound", 0.04), ("concealment_events", 480 * 4),
                              ("inserted_sound", 0.04), ("jitter_buffer_emitted", 9000 / 48_000)):  # fmt: skip
            found = compute(result, metric).filter(flow="rtp-1")["value"].item()
            assert found == pytest.approx(value), metric
            times = (
                compute(result, f"{metric}_over_time").filter(flow="rtp-1").drop_nulls()["time_s"]
            )
            assert times.max() < 6 or metric == "jitter_buffer_emitted"
        # Every value is still a gauge.
        raw = result.gauges("rtp-1", "inbound-rtp.concealedSamples")["value"].to_list()
        assert raw[-1] == 480 * 120


def test_what_is_missing_is_shared_by_its_bins():
    values = [50, 100, ..., ..., 250, 300, 350, 400, 450, 500]
    for form in (lambda it: it, internals):
        tables = read(form(changed("IT01A5", "packetsReceived", values)))
        series = tables.made["series"].filter(flow="rtp-1")["received_packets"]
        assert series.sum() == 450 and len(series) == 9
        assert tables.made["flows"]["received_packets"][0] == 500


def test_a_member_that_comes_late_has_the_times_of_its_values():
    values = [..., ..., 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, ..., ...]
    expected = read(changed("IT01A5", "late", values)).made["gauges"]
    found = read(internals(changed("IT01A5", "late", values))).made["gauges"]
    rows = [one.filter(gauge="inbound-rtp.late").sort("time_s") for one in (found, expected)]
    assert rows[0].height == 6 and rows[0].equals(rows[1])


@pytest.mark.parametrize("values", [["50", "100", "150"], [float("nan"), None, True]])
def test_text_with_a_number_is_one_and_others_are_none(values):
    tables = read(changed("IT01A5", "packetsReceived", values))
    assert tables.made["flows"]["received_packets"][0] == 500
    found = tables.made["gauges"].filter(gauge="inbound-rtp.packetsReceived")["value"].to_list()
    begin = 1 if values[0] == "50" else 4
    assert found == [50.0 * second for second in range(begin, 11)]


@pytest.mark.parametrize("value", [-1, 2**80, 1e300, "x", [1], {"a": {"b": 1}}])
def test_a_value_that_no_column_can_have_is_null(value):
    for name in ("packetsReceived", "packetsLost", "bytesReceived", "concealedSamples", "jitter"):
        tables = read(changed("IT01A5", name, [value] * 10))
        for table, frame in tables.made.items():
            assert frame.null_count().height or not frame.height, table
        flows = tables.made["flows"].to_dicts()[0]
        if name == "packetsReceived":
            assert flows["received_packets"] is None


def test_one_sample_has_counts_but_no_rates():
    tables = read(SAMPLES[:1])
    audio = tables.made["flows"].to_dicts()[0]
    assert (audio["received_packets"], audio["goodput_bps"]) == (50, None)
    assert tables.made["series"].is_empty() and tables.made["gauges"].height > 20


def test_dumps_before_version_117_have_evenly_spaced_values():
    tables = read(internals(SAMPLES, with_times=False))
    assert tables.made["flows"]["received_packets"].to_list() == [500, None]
    assert tables.trace.duration_s == pytest.approx(9.0, abs=0.01)
    assert "evenly spaced" in " ".join(tables.trace.notes)


def test_old_statistics_have_concealment_in_those_of_the_track():
    samples = changed("IT01A5", "trackId", ["TR1"] * 10)
    for second, one in enumerate(samples, 1):
        row = one["IT01A5"]
        track = {name: row.pop(name) for name in ("concealedSamples", "totalSamplesReceived")}
        one["TR1"] = {"id": "TR1", "type": "track", "timestamp": row["timestamp"], **track}
        assert track["concealedSamples"] == 480 * second
    tables = read(samples)
    assert tables.made["flows"]["concealed_ratio"][0] == pytest.approx(0.01)
    assert "track.concealedSamples" in tables.made["gauges"]["gauge"].to_list()


def test_what_is_not_known_leaves_columns_null():
    for name, member, value in (
        ("T01", "srtpCipher", "UNKNOWN"), ("L", "candidateType", "relay"), ("L", "address", ""),
        ("L", "protocol", "tcp"),
    ):  # fmt: skip
        flows = read(changed(name, member, [value] * 10)).made["flows"]
        assert flows.select("received_bytes", "sent_bytes", "throughput_bps").null_count().row(0) == (
            2, 2, 2
        ), member  # fmt: skip
        assert flows["goodput_bps"][0] is not None


def test_several_connections_have_ends_of_their_own():
    content = internals(SAMPLES)
    content["PeerConnections"]["12-2"] = content["PeerConnections"]["12-1"]
    tables = read(content)
    assert [way.receiver for way in tables.shown] == ["local", "remote-1", "local", "remote-2"]
    assert [one["name"] for one in tables.trace.facts["connections"]] == ["12-1", "12-2"]
    events = tables.made["events"]
    assert events["event"].to_list() == ["connectionstatechange: connected"] * 2
    assert events["flow"].to_list() == ["rtp-1", "rtp-3"]


def test_a_dump_becomes_a_result_that_can_be_compared(tmp_path):
    file = tmp_path / "webrtc_internals_dump.txt"
    file.write_text(json.dumps(internals(SAMPLES), indent=1))
    told = succeed("import", file, "--out", tmp_path / "dump", cwd=tmp_path)
    said = "rtp-1: remote to local, packets 505 sent, 500 received, 5 lost; goodput 32.0 kbit/s; "
    assert f"{said}jitter 10.0 ms; unheard 1.00 %\n" in told.stdout
    result = talkspurt.load(tmp_path / "dump")
    assert row_of(result, "rtp-1")["received_packets"] == 500
    assert result.manifest["imported"]["format"] == "webrtc-internals"
    assert result.manifest["imported"]["not_imported"]["rates computed by webrtc-internals"] == 1
    assert result.gauges("rtp-1", "inbound-rtp.jitterBufferDelay").height == 10
    delay = compute(result, "jitter_buffer_delay").filter(flow="rtp-1")["value"]
    assert delay.to_list() == [pytest.approx(40.5 / 900)]
    over_time = compute(result, "jitter_buffer_delay_over_time")
    assert over_time["jitter_buffer_delay_s"].to_list() == pytest.approx([40.5 / 900] * 5)
    concealed = compute(result, "concealed_sound_over_time")["concealed_s"].to_list()
    # The first sample counts what was before it, and packets may have stopped before the last.
    assert sum(concealed) == pytest.approx(8 * 0.01)
    assert result.manifest["imported"]["flows"]["rtp-1"]["mimeType"] == "audio/opus"
    other = tmp_path / "getstats.json"
    other.write_text(json.dumps(SAMPLES))
    succeed("import", other, "--out", tmp_path / "other", "--no-report", cwd=tmp_path)
    succeed("compare", tmp_path / "dump", tmp_path / "other", cwd=tmp_path)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "is no valid JSON"),
        (json.dumps(SAMPLES).encode()[:5000], "is no valid JSON"),
        (b"[" * 100_000, "too many levels"),
        (b"[" + b"9" * 10_000 + b"]", "is no valid JSON|no statistics"),
        (b"{}", "unknown form: expected webrtc_internals_dump.txt of Chromium, or samples"),
        (b"[]", "unknown form"),
        (json.dumps(SAMPLES[0]).encode(), r"one report of getStats.*give them as a list, \[report,"),
        (json.dumps([*SAMPLES[0].values()]).encode(), "one report of getStats"),
        (b"[1, 2]", "no statistics with type and timestamp"),
        (b"\xff{", "is no valid JSON|neither"),
        (b"<!doctype html><title>about:webrtc</title>", "a web page, as Firefox saves"),
        (b'{"reports": [{"pcid": "1"}]}', "Firefox's about:webrtc, with one sample"),
        (b'RTCStatsDump\n{"fileFormat":3}', "choose the webrtc-internals dump"),
        (b'{"PeerConnections": {}}', "open chrome://webrtc-internals before the call"),
        (b'{"PeerConnections": []}', "that is no object"),
        (b'[{"a": {"id": "a", "type": "transport", "timestamp": 1}}]', "has no RTP stream"),
        (b'[{"a": {"id": "a", "type": "ssrc", "timestamp": 1}}]', "obsolete getStats"),
        (b'[{"a": {"id": "a", "type": "inbound-rtp", "timestamp": 1}},'
         b' {"b": {"id": "b", "type": "inbound-rtp", "timestamp": 1e13}}]', "more than a year apart"),
    ],
)  # fmt: skip
def test_what_is_no_dump_is_named(tmp_path, data, words):
    file = tmp_path / "dump.txt"
    file.write_bytes(data)
    with pytest.raises(BadInputError, match=words):
        talkspurt.import_trace(file)


def test_a_folder_is_refused_with_a_remedy(tmp_path):
    with pytest.raises(BadInputError, match="is a folder: name the trace in it"):
        talkspurt.import_trace(tmp_path)


def test_options_of_captures_are_refused(tmp_path):
    file = tmp_path / "dump.txt"
    file.write_text(json.dumps(SAMPLES))
    with pytest.raises(BadInputError, match="only for captures"):
        talkspurt.import_trace(file, delay_s=0.1)


def outcome(data):
    """Whether data is read; anything but one error fails."""
    try:
        read(data)
    except dump.DumpError as error:
        assert str(error).startswith(("is ", "has "))
        return False
    return True


WHOLE = json.dumps(internals(SAMPLES[:3])).encode()


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_random_bytes_are_read_or_refused(data):
    outcome(data)


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=4))
@settings(max_examples=100, deadline=None)
def test_a_damaged_dump_is_read_or_refused(changes):
    damaged = bytearray(WHOLE)
    for place, byte in changes:
        damaged[place] = byte
    outcome(bytes(damaged))


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*SAMPLES[0]]),
            st.sampled_from(
                sorted({member for row in SAMPLES[0].values() for member in row} | {"nominated"})
            ),
            st.integers(0, 2), VALUES,
        ),
        max_size=6,
    ),
    st.booleans(),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_any_value_of_a_member_gives_tables_or_one_error(changes, is_internals):
    samples = copy.deepcopy(SAMPLES[:3])
    for name, member, place, value in changes:
        samples[place][name][member] = value
    if is_internals:
        for one in samples:
            for row in one.values():
                row["timestamp"] = dump.number(row["timestamp"]) or BEGIN_MS
                row["timestamp"] = min(max(row["timestamp"], 1.0), 1e13)
                row["type"] = str(row["type"])
    content = internals(samples) if is_internals else samples
    outcome(json.dumps(content).encode())


DATA = ROOT / "tests" / "data" / "webrtc"
CALLS = ROOT / "validation" / "webrtc" / "calls.json"
"""What the emulated network carried of the recorded call, by ``validation/webrtc/record.py``."""


@pytest.fixture(scope="module")
def carried():
    (there, back) = json.loads(CALLS.read_text())["loss"]["streams"]
    assert (there["from"], back["from"]) == ("a", "b")
    return there, back


def test_a_dump_of_chromium_has_what_the_network_carried(carried, tmp_path):
    there, back = carried
    file = tmp_path / "dump.txt"
    file.write_bytes(gzip.decompress((DATA / "loss.b.txt.gz").read_bytes()))
    result = talkspurt.import_trace(file)
    rows = {row["from"]: row for row in result.flows.to_dicts()}
    captured = {name: there[name]["dump"][1] for name in ("received", "received_bytes", "sent")}
    assert rows["remote"]["received_packets"] == captured["received"]
    assert rows["remote"]["received_bytes"] == captured["received_bytes"]
    assert rows["remote"]["sent_packets"] == captured["sent"]
    assert rows["remote"]["lost_packets"] == captured["sent"] - captured["received"]
    assert rows["local"]["sent_packets"] == back["sent"]["dump"][1]
    assert rows["local"]["sent_bytes"] == back["sent_bytes"]["dump"][1]
    (connection,) = json.loads(file.read_text())["PeerConnections"].values()
    samples = {
        name.rpartition("-")[2]: json.loads(one["values"])
        for name, one in connection["stats"].items()
        if one["statsType"] == "inbound-rtp"
    }
    last = {name: values[-1] for name, values in samples.items()}
    # The sender stopped 0.1 s after the last sample but one; the rest of the last second is
    # concealed.
    heard = samples["concealedSamples"][-2] / 48_000
    assert last["concealedSamples"] / 48_000 > 2 * heard
    assert compute(result, "concealed_sound").drop_nulls()["value"].item() == pytest.approx(heard)
    concealed = samples["concealedSamples"][-2] / samples["totalSamplesReceived"][-2]
    assert concealed < 0.02
    assert rows["remote"]["concealed_ratio"] == pytest.approx(concealed)
    delay = compute(result, "jitter_buffer_delay").drop_nulls()["value"].item()
    assert delay == pytest.approx(last["jitterBufferDelay"] / last["jitterBufferEmittedCount"])
    assert result.manifest["imported"]["flows"]["rtp-1"]["mimeType"] == "audio/opus"
    assert "connectionstatechange: connected" in result.events()["event"].to_list()


def test_an_event_log_of_chromium_has_what_the_network_carried(carried):
    there, back = carried
    file = DATA / "loss.b.rtc-event-log"
    log = eventlog.read(file.read_bytes())
    assert len(log.events["incoming_rtp_packets"]) == there["received"]["log"][1]
    assert len(log.events["outgoing_rtp_packets"]) == back["sent"]["log"][1]
    result = talkspurt.import_trace(file, payloads={111: "opus"}, playout="200ms")
    rows = result.flows.to_dicts()
    sent = next(row for row in rows if row["from"] == "local")
    lost = next(row for row in rows if row["from"] == "remote")
    assert lost["received_packets"] == len(log.events["incoming_rtp_packets"])
    assert lost["lost_packets"] == there["sent"]["log"][1] - there["received"]["log"][1]
    # What arrived of the stream that this end sent is in the log of the other one.
    assert sent["sent_packets"] == len(log.events["outgoing_rtp_packets"])
    whole = [
        one.header_size + one.payload_size + one.padding_size
        for one in log.events["outgoing_rtp_packets"]
    ]
    assert sent["sent_bytes"] == sum(whole)
    assert sent["payload_bytes"] == sum(log.events["outgoing_rtp_packets"]["payload_size"])
    for name, value in sent.items():
        unknown = ("received", "lost_p", "in_flight", "goodput", "through", "network_", "missing",
                   "concealed", "mos", "estimated", "jitter", "delay")  # fmt: skip
        assert value is None or not name.startswith(unknown), name
    assert result.frames(sent["name"]).is_empty() and sent["name"] not in result.heard
    series = result.series(sent["name"])
    assert series["sent_packets"].sum() == len(log.events["outgoing_rtp_packets"])
    assert series["received_packets"].null_count() == series.height
    reported = result.manifest["imported"]["flows"][sent["name"]]["reported_lost_packets"]
    note = f"what arrived of it is not known; its receiver reported {reported} lost packets"
    assert sent["quality_note"] == f"no score: {note}"
    # What in-band FEC repeats is in the payload, which no log has.
    assert lost["recovered_packets"] is None and lost["missing_packets"] > 0
    assert "upper limit" in lost["quality_note"]
    notes = result.manifest["imported"]["notes"]
    assert sum("in-band FEC" in one for one in notes) == 1
    # One packet in five is padding: 20 s of media have about 1000 frames of 20 ms.
    voice = {one.rtp_timestamp for one in log.events["incoming_rtp_packets"] if one.payload_size}
    span = (max(voice) - min(voice)) // 960 + 1
    assert 0.2 < 1 - len(voice) / len(log.events["incoming_rtp_packets"]) < 0.21
    heard = result.frames(lost["name"])
    assert (heard.height, heard.filter(fate="lost").height) == (span, span - len(voice))
    sizes = [one.payload_size for one in log.events["incoming_rtp_packets"] if one.payload_size]
    times = log.events["incoming_rtp_packets"]["timestamp_ms"]
    # The log goes on after the stream.
    assert result.duration_s > 1.2 * (times[-1] - times[0]) / 1e3
    assert lost["goodput_bps"] == pytest.approx(8e3 * sum(sizes) / (times[-1] - times[0]))
    told = result.resolved["flows"]["rtp-1"]["reverse"]["opus"]["bitrate"]
    assert told == pytest.approx(8 * sum(sizes) / len(sizes) / 0.02, abs=1)
    rates = result.gauges(gauge="delay_based_bwe_updates.bitrate_bps")
    assert rates["value"].to_list() == [
        float(it[1]) for it in log.events["delay_based_bwe_updates"]
    ]
    told = result.manifest["imported"]
    assert told["format"] == "RTC event log"
    assert told["not_imported"]["audio_playout_events"] == len(log.events["audio_playout_events"])


def test_a_dump_and_a_log_of_one_call_are_no_options(tmp_path):
    file = tmp_path / "dump.txt"
    file.write_bytes(gzip.decompress((DATA / "loss.b.txt.gz").read_bytes()))
    dumped = talkspurt.import_trace(file)
    logged = talkspurt.import_trace(DATA / "loss.b.rtc-event-log", payloads={111: "opus"})
    found = answer(talkspurt.compare({"dump": dumped, "log": logged}))
    assert found.questions == []
    assert "dump and log record the same call in 2 files" in found.notes[0]
    (ssrc,) = {
        int(one["ssrc"])
        for one in dumped.manifest["imported"]["flows"].values()
        if one["direction"] == "received"
    }
    assert f"{ssrc}: rtp-2 of dump, rtp-1.reverse of log" in found.notes[0]


def test_a_log_that_is_cut_says_so_first(tmp_path):
    file = tmp_path / "cut.log"
    file.write_bytes((DATA / "loss.b.rtc-event-log").read_bytes()[:20_000])
    said = succeed("import", file, "--payload", "111=opus", "--no-report", cwd=tmp_path).stdout
    notes = [line for line in said.splitlines() if line.startswith("Note: ")]
    assert notes[0].startswith("Note: the log is cut: its last ")
    assert "incomplete" not in said


def test_the_network_of_a_log_is_that_of_what_it_received(tmp_path):
    """And a run over it loses the frames that the call lost, though the log is of the end `b`."""
    log = DATA / "loss.b.rtc-event-log"
    call = talkspurt.import_trace(log, payloads={111: "opus"}, as_network=tmp_path / "net")
    text = (tmp_path / "net/network.toml").read_text()
    assert "# rtp-1: sent by the end that recorded it, which knows nothing of its way" in text
    told = tomllib.loads(text)
    assert [*told["flows"]] == [*told["links"]] == ["rtp-1-reverse"]
    assert told["links"]["rtp-1-reverse"]["trace"]["file"] == "rtp-1.reverse.csv"
    # Without a recording, in-band FEC has no effect.
    assert [*told["flows"]["rtp-1-reverse"]["source"]["opus"]] == ["bitrate"]
    theirs = call.resolved["flows"]["rtp-1"]["reverse"]
    run = talkspurt.run(tmp_path / "net/network.toml")
    assert (
        run.resolved["flows"]["rtp-1-reverse"]["source"]["opus"]["bitrate"]
        == (theirs["opus"]["bitrate"])
    )
    was, now = call.frames("rtp-1.reverse"), run.frames("rtp-1-reverse")
    assert now["fate"].to_list() == was["fate"].to_list()
    assert was.filter(fate="lost").height > 20


def test_the_page_has_what_was_recorded():
    file = ROOT / "validation" / "webrtc" / "record.py"
    spec = importlib.util.spec_from_file_location("webrtc_record", file)
    record = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = record
    spec.loader.exec_module(record)
    found = json.loads(CALLS.read_text())
    assert [*found] == [*record.NETWORKS]
    page = record.PAGE.read_text()
    for name, text in record.parts(found).items():
        assert text in page, name
    assert "**" not in record.parts(found)["streams"] + record.parts(found)["rtcp"]
