"""The functions of the package that do what commands do: results, errors, and no output."""

import contextlib
import json
import os
import pickle
import subprocess
import sys
import threading
import time

import polars as pl
import pytest

import talkspurt
from talkspurt.errors import BadInputError, EndedEarlyError, StoreError
from test_call import HERE, answering, samples
from test_call import SECRET as CALL_SECRET
from texts import UDP, axis_text, cbr, flow_text, link_text, put, scenario_text

linux = pytest.mark.skipif(sys.platform != "linux", reason="real-time sockets need Linux")
SECRET = "a secret of these tests"
LINE = link_text("l", "a>b", "1Mbit/s", "20ms", 50, loss=0.05)
VOICE = flow_text("voice", "a>b", UDP, cbr("64kbit/s", "160B"))
SCENARIO = scenario_text("A line", "2s", LINE, VOICE)


@pytest.fixture(autouse=True)
def silent(capfd):
    yield
    assert capfd.readouterr() == ("", "")


# A process of its own, since it is killed.
SERVER = """
import sys, threading, talkspurt
with talkspurt.serve("127.0.0.1:0", max_duration=sys.argv[1], media_ports=(41000, 41063)) as server:
    assert server.address == f"127.0.0.1:{server.port}"
    print(server.port, flush=True)
    threading.Thread(target=lambda: (sys.stdin.readline(), server.stop())).start()
    for line in server.lines():
        print(line, flush=True)
print("stopped:", list(server.lines()), flush=True)
"""


@contextlib.contextmanager
def serving(longest="1min"):
    """A program with a server: its address and the process."""
    words = [sys.executable, "-c", SERVER, longest]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    env = {**os.environ, "TALKSPURT_SECRET": SECRET}
    process = subprocess.Popen(words, text=True, env=env, **pipes)
    try:
        yield f"127.0.0.1:{int(process.stdout.readline())}", process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def server(monkeypatch):
    """The address of a server."""
    monkeypatch.setenv("TALKSPURT_SECRET", SECRET)
    with serving() as (address, _):
        yield address


@linux
def test_a_measurement_is_a_result(server, tmp_path):
    result = talkspurt.measure(server, duration="1s", seed=3)
    assert isinstance(result, talkspurt.Result)
    assert result.flows["name"].to_list() == ["udp", "udp.reverse"]
    # One every 20 ms, and fewer where a busy machine lets the source wait beyond the end.
    assert all(25 < sent <= 50 for sent in result.flows["sent_packets"])
    assert result.flows["lost_packets"].to_list() == [0, 0]
    assert result.seed == 3
    assert result.manifest["measured"]["complete"]
    folder = result.save(tmp_path / "measured", report=False)
    assert talkspurt.load(folder).flows.equals(result.flows)


@linux
def test_several_transports_are_measured_at_once(server):
    traffic = talkspurt.Traffic(rate="32kbit/s", packet=100, direction="up")
    result = talkspurt.measure(server, ["udp", "tfrc", "udp"], traffic, duration="1s")
    assert result.flows["name"].to_list() == ["udp", "tfrc", "udp-2"]
    assert result.duration_s < 6 and all(
        20 < sent <= 40 for sent in result.flows["sent_packets"][::2]
    )
    assert (result.flows["from"] == "client").all()


@linux
def test_what_is_wrong_with_a_measurement_is_told_at_once(server, monkeypatch):
    with pytest.raises(BadInputError) as error:
        traffic = talkspurt.Traffic("speech", rate="0bit/s", direction="upstream")
        talkspurt.measure(server, "carrier-pigeon", traffic, mtu=1)
    expected = ("carrier-pigeon", "--rate", "--mtu 1", "traffic speech: there", "upstream: there")
    assert all(word in str(error.value) for word in expected), error.value
    with pytest.raises(BadInputError, match="no transport is named"):
        talkspurt.measure(server, [])
    monkeypatch.setenv("TALKSPURT_SECRET", "another secret of these tests")
    with pytest.raises(BadInputError, match="secret") as error:
        talkspurt.measure(server, duration="1s")
    assert error.value.kind == "secret"
    monkeypatch.delenv("TALKSPURT_SECRET")
    with pytest.raises(BadInputError, match="no secret"):
        talkspurt.measure(server, duration="1s")


@linux
def test_the_result_of_a_measurement_that_ended_early_is_in_the_error(monkeypatch):
    monkeypatch.setenv("TALKSPURT_SECRET", SECRET)
    with serving() as (address, process):

        def end():
            process.stdout.readline()  # of a session that begins
            time.sleep(3.0)  # the part that is measured
            process.kill()

        stop = threading.Thread(target=end)
        stop.start()
        with pytest.raises(EndedEarlyError) as error:
            talkspurt.measure(address, duration="30s")
        stop.join()
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    result = error.value.result
    assert result is not None and 1 < result.duration_s < 29
    assert result.flows["sent_packets"][0] > 20


@linux
def test_a_server_has_limits_lines_and_an_end(monkeypatch):
    monkeypatch.setenv("TALKSPURT_SECRET", SECRET)
    with serving("1s") as (address, process):
        with pytest.raises(BadInputError, match="permits 1s"):
            talkspurt.measure(address, duration="2s")
        talkspurt.measure(address, duration="1s")
        said = process.communicate("stop\n", timeout=20)
    assert " udp " in said[0] and "stopped: []" in said[0] and said[1] == ""
    with pytest.raises(BadInputError):
        talkspurt.measure(address, duration="1s")


@linux
def test_what_is_wrong_with_a_server_is_told_at_once(monkeypatch, tmp_path):
    monkeypatch.delenv("TALKSPURT_SECRET", raising=False)
    with pytest.raises(BadInputError) as error:
        talkspurt.serve("nowhere", max_sessions=0, max_rate="fast", media_ports="9-1")
    said = str(error.value)
    for option in ("--listen", "--max-sessions", "--max-rate", "--media-ports", "no secret"):
        assert option in said
    with pytest.raises(FileNotFoundError):
        talkspurt.serve("127.0.0.1:0", secret_file=tmp_path / "secret")


@linux
def test_a_call_is_a_result_with_its_sound(tmp_path, monkeypatch):
    monkeypatch.setenv("TALKSPURT_SECRET", CALL_SECRET["TALKSPURT_SECRET"])
    heard = tmp_path / "heard.wav"
    voice = talkspurt.Voice(HERE, codecs=["pcmu"])
    with answering(tmp_path, "--no-report") as (port, process):
        result = talkspurt.call(f"127.0.0.1:{port}", voice, heard=heard, duration="2s", seed=1)
        process.communicate(timeout=40)
    assert result.flows["name"].to_list() == ["call", "call.reverse"]
    assert result.manifest["measured"]["call"]["codecs"] == ["pcmu"]
    pcm, rate = samples(heard)
    received = result.audio("call.reverse").received
    assert rate == result.audio("call.reverse").rate
    assert received.tolist() == pcm.tolist() and len(pcm) > rate
    assert talkspurt.load(tmp_path / "there").flows.equals(result.flows)


@linux
def test_what_is_wrong_with_a_call_is_told_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("TALKSPURT_SECRET", SECRET)
    with pytest.raises(BadInputError) as error:
        talkspurt.call("host:0", talkspurt.Voice(), heard=tmp_path, transport="x")
    said = str(error.value)
    assert all(word in said for word in ("what is said", "--heard", "host:0", "x"))
    with pytest.raises(BadInputError, match="nothing"):
        talkspurt.call("127.0.0.1:1", tmp_path / "nothing.wav")


def test_a_capture_of_a_run_is_a_result(tmp_path):
    result = talkspurt.run(SCENARIO, set={"record.pcapng": '["l"]'})
    folder = talkspurt.export(result.save(tmp_path / "run", report=False), "pcapng")
    assert folder == tmp_path / "run.pcapng"
    found = talkspurt.import_trace(str(folder / "l.pcapng"), playout="80ms", delay_s=0.02)
    # Lost packets are in no capture of the link's end, and UDP does not count.
    arrived = result.flows["received_packets"][0]
    assert abs(found.flows["received_packets"][0] - arrived) <= 5
    assert found.manifest["imported"]["format"] == "capture"
    both = talkspurt.import_trace([folder / "l.pcapng", folder / "l.pcapng"])
    assert both.flows["lost_packets"][0] == 0


@pytest.mark.parametrize(
    ("files", "more", "said"),
    [
        ([], {}, "expected one trace, or two captures or event logs, found 0"),
        (["a"], {"clock_offset_s": 0.1}, "only for two captures"),
        (["a", "b"], {"delay_s": 0.1}, "two captures measure it"),
        (["a"], {"payloads": {111: "mp3"}}, "111=mp3: expected TYPE=ENCODING/CLOCK"),
        (["a"], {"payloads": {300: "opus"}}, "300=opus: expected TYPE=ENCODING"),
        (["a"], {"payloads": {96: 5}}, "96=5: expected TYPE=ENCODING"),
        (["a"], {"playout": "-1s"}, "--playout -1s: unknown variant `-1s`"),
        (["a"], {"delay_s": -0.1}, "--network-delay -0.1 s: expected 0 s or more"),
    ],
)
def test_what_does_not_fit_a_trace_is_told(files, more, said):
    with pytest.raises(BadInputError, match=said):
        talkspurt.import_trace(files, **more)


def test_an_export_is_a_folder(tmp_path):
    case = put(tmp_path / "line.toml", SCENARIO)
    folder = talkspurt.run(case).save(tmp_path / "run", report=False)
    tables = talkspurt.export(folder, "csv", tmp_path / "tables")
    assert tables == tmp_path / "tables"
    flows = pl.read_csv(tables / "flows.csv")
    assert flows["sent_packets"].to_list() == talkspurt.load(folder).flows["sent_packets"].to_list()
    packets = talkspurt.export(case, "parquet", tmp_path / "packets")
    manifest = json.loads((packets / "manifest.json").read_text())
    assert manifest["digest"] == talkspurt.load(folder).digest
    with pytest.raises(BadInputError, match="ods: no format of exports; there are: pcapng"):
        talkspurt.export(case, "ods")
    with pytest.raises(StoreError, match="no result"):
        talkspurt.export(tmp_path / "nowhere", "csv")
    for to in ("csv", "table", "xlsx"):
        with pytest.raises(talkspurt.RunError, match="run it first"):
            talkspurt.export(case, to)
    assert talkspurt.export(folder, "table") == tmp_path / "run.table.csv"


def test_shards_are_merged_into_a_study(tmp_path):
    from talkspurt._commands import running
    from talkspurt._commands.options import RunOptions
    from talkspurt.runs.merging import Shard

    axis = axis_text("links.l.delay", '["20ms", "90ms", "200ms"]')
    case = put(tmp_path / "study.toml", SCENARIO + axis)
    parts = [
        running.run_shard(talkspurt.read(case), Shard(n, 2), RunOptions(out=tmp_path / str(n)))
        for n in (1, 2)
    ]
    where = talkspurt.merge(parts, tmp_path / "whole")
    assert where == tmp_path / "whole" and (where / "report.html").exists()
    study = talkspurt.load(where, study=True)
    assert study.flows.equals(talkspurt.run(case, study=True).flows)
    with pytest.raises(BadInputError, match="is missing: shard 2 of 2"):
        talkspurt.merge(str(parts[0]))
