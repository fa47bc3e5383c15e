"""Exports against the tables of the same run, and against the tools they are written for."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import talkspurt
from command import CHECKS, dissected, needs_tshark, output
from command import talkspurt as command
from talkspurt.errors import StoreError
from talkspurt.results.run_data import TABLES
from talkspurt.runs import exporting
from texts import UDP, cbr, dccp, flow_text, inline, link_text, put, scenario_text, tcp

SCENARIO = scenario_text(
    "All that a trace may hold",
    "3s",
    flow_text("call", "home>office", stop="2500ms"),
    flow_text("cbr", "home>office", dccp(2), cbr("200kbit/s", "500B")),
    flow_text("bulk", "home>office", tcp("sack"), inline("bulk", total="150kB")),
    flow_text("messages", "office>home", inline("sctp"), cbr("50kbit/s", "200B")),
    link_text("near", "home>hub", "10Mbit/s", "10ms", 6),
    link_text("far", "hub>office", "1Mbit/s", "10ms", 6, loss=0.01),
    record="{ packets = true }",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "run"
    result = talkspurt.run(SCENARIO)
    assert isinstance(result, talkspurt.Result)
    result.save(folder, report=False)
    return folder


def rows(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / "trace.tr").read_text().splitlines()]


def test_an_ns2_trace_holds_what_the_packet_table_holds(run: Path) -> None:
    trace = rows(exporting.export(run, "ns2", None))
    packets = talkspurt.load(run).table("packets")
    nodes = {"near": ("0", "1"), "near.back": ("1", "0"), "far": ("1", "2"), "far.back": ("2", "1")}
    names = {ends: link for link, ends in nodes.items()}
    flows = ["call", "cbr", "bulk", "messages"]

    def seen(act: str) -> Counter[tuple[str, str, int, str]]:
        return Counter(
            (names[(row[2], row[3])], flows[int(row[7])], int(row[5]), f"{float(row[1]):.9f}")
            for row in trace
            if row[0] == act
        )

    def kept(column: str) -> Counter[tuple[str, str, int, str]]:
        told = packets.filter(pl.col(column).is_not_null())
        return Counter(
            (link, flow, size, f"{at:.9f}")
            for link, flow, size, at in told.select("link", "flow", "ip_bytes", column).rows()
        )

    assert seen("r") == kept("received_s")
    assert seen("-") == kept("dequeued_s")
    # The table does not know when somebody was refused; ns-2 has a + for everybody.
    refused = packets.filter(pl.col("fate") == "full").height
    assert seen("+").total() == kept("enqueued_s").total()
    assert seen("d").total() == packets.filter(pl.col("fate").is_in(["full", "medium"])).height
    assert refused > 0
    words = {row[4] for row in trace}
    assert words == {"rtp", "rtcp", "tcp", "ack", "sctp", *(w for w in words if "DCCP" in w)}
    assert {"DCCP_Request", "DCCP_Response", "DCCP_Data", "DCCP_Ack"} <= words


def test_a_trace_is_in_order_and_every_packet_goes_its_way(run: Path) -> None:
    trace = rows(exporting.export(run, "ns2", None))
    order = [(float(row[1]), "r+-d".index(row[0])) for row in trace]
    assert order == sorted(order)
    ways: dict[str, str] = {}
    for row in trace:
        ways[row[11]] = ways.get(row[11], "") + row[0]
    # Of two links each: +-r twice, or an end by loss, a full queue, or the run's.
    assert set(ways.values()) <= {
        "+-r+-r", "+-r+-d", "+-r+d", "+d", "+-d", "+-r+-", "+-r+", "+-", "+", "+-r",
    }  # fmt: skip
    assert sum(way == "+-r+-r" for way in ways.values()) > 500


AWK = '$1 == "r" && $4 == "2" && $8 == "0" && $5 == "rtp" { bytes += $6 } END { print bytes }'


@pytest.mark.skipif(shutil.which("awk") is None, reason="awk is not installed")
def test_awk_adds_up_what_we_say_was_received(run: Path) -> None:
    folder = exporting.export(run, "ns2", None)
    told = output("awk", AWK, folder / "trace.tr")
    result = talkspurt.load(run)
    assert isinstance(result, talkspurt.Result)
    packets = result.table("packets")
    speech = packets.filter(
        (pl.col("flow") == "call") & (pl.col("link") == "far") & (pl.col("ip_bytes") == 200)
    )
    assert int(told) == speech.filter(pl.col("received_s").is_not_null())["ip_bytes"].sum()


def test_nam_hears_of_every_hop(run: Path) -> None:
    ns2 = rows(exporting.export(run, "ns2", None))
    lines = (exporting.export(run, "nam", None) / "trace.nam").read_text().splitlines()
    acts = Counter(line[0] for line in lines if " -t 0." in line or " -t 1." in line
                   or " -t 2." in line)  # fmt: skip
    there = Counter(row[0] for row in ns2)
    assert {act: acts[act] for act in "r+-d"} == {act: there[act] for act in "r+-d"}
    assert acts["h"] == acts["-"]
    assert sum(line.startswith("l ") for line in lines) == 2
    assert next(line for line in lines if "DLABEL" in line).endswith('-l "home" -L ""')
    # nam places nodes by the links that stand before the first line with a time.
    always = [" -t * " in line for line in lines]
    assert not any(always[always.index(False) :])


def test_qlog_holds_what_each_end_sent_and_its_window(run: Path) -> None:
    folder = exporting.export(run, "qlog", None)
    result = talkspurt.load(run)
    assert isinstance(result, talkspurt.Result)
    packets = result.table("packets")
    files = sorted(folder.glob("*.sqlog"))
    assert len(files) == 2 * len(result.flows)
    for file in files:
        head, *events = [json.loads(part) for part in file.read_text().split("\x1e")[1:]]
        assert head["qlog_format"] == "JSON-SEQ"
        times = [event["time"] for event in events]
        assert times == sorted(times)
        flow, side, _ = file.name.split(".")
        sent = [event for event in events if event["name"] == "transport:packet_sent"]
        first = "near" if (flow == "messages") != (side == "from") else "far.back"
        there = packets.filter(
            (pl.col("flow") == flow) & (pl.col("side") == side) & (pl.col("link") == first)
        )
        assert len(sent) == there.height
        windows = [
            event["data"]["congestion_window"]
            for event in events
            if "congestion_window" in event["data"]
        ]
        table = result.gauges(flow, "cwnd").filter(side=side)["value"].to_list()
        assert windows == table


def on_wire(run: Path, link: str) -> list[tuple[str, int]]:
    """The instants at which packets left for a link, and their lengths."""
    packets = talkspurt.load(run).table("packets").drop_nulls("dequeued_s")
    both = packets.filter(pl.col("link").is_in([link, f"{link}.back"]))
    return sorted((f"{at:.9f}", size) for at, size in both.select("dequeued_s", "ip_bytes").rows())


@needs_tshark
def test_every_link_is_captured(run: Path) -> None:
    folder = exporting.export(run, "pcapng", None)
    for link in ("near", "far"):
        names = ("frame.time_epoch", "ip.len", "_ws.malformed", "ip.checksum.status",
                 "tcp.checksum.status", "udp.checksum.status")  # fmt: skip
        seen = dissected(folder / f"{link}.pcapng", *names, options=CHECKS)
        assert sorted((row[0], int(row[1])) for row in seen) == on_wire(run, link)
        assert all(row[2] == "" and set(row[3:]) <= {"1", ""} for row in seen)


@needs_tshark
def test_a_snaplen_cuts_captures_and_nothing_else(run: Path, tmp_path: Path) -> None:
    cut = SCENARIO.replace("packets = true", 'packets = true, snaplen = "60B"')
    scenario = put(tmp_path / "cut.toml", cut)
    folder = exporting.export(scenario, "pcapng", tmp_path / "cut")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["digest"] == talkspurt.load(run).digest
    names = ("frame.time_epoch", "frame.len", "frame.cap_len", "ip.len")
    seen = dissected(folder / "far.pcapng", *names)
    assert sorted((row[0], int(row[1])) for row in seen) == on_wire(run, "far")
    assert all(int(cap) == min(int(size), 60) and ip == size for _, size, cap, ip in seen)
    assert len({int(row[2]) for row in seen}) > 1


def test_parquet_is_the_packets_of_a_run_and_its_tables(run: Path, tmp_path: Path) -> None:
    folder = exporting.export(run, "parquet", None)
    packets = talkspurt.load(run).table("packets")
    assert pl.read_parquet(folder / "packets.parquet").equals(packets)
    for name in set(TABLES) - {"video_frames"}:
        assert (folder / f"{name}.parquet").read_bytes() == (run / f"{name}.parquet").read_bytes()
    # Who asks for a part of the run is given it: groups tell of their times.
    part = (pl.col("enqueued_s") > 1.2) & (pl.col("received_s") < 1.3)
    lazy = pl.scan_parquet(folder / "packets.parquet").filter(part).collect()
    assert lazy.equals(packets.filter(part))
    assert lazy.height > 10
    # The run need not have kept them, nor be there.
    scenario = put(tmp_path / "lean.toml", SCENARIO.replace("packets = true", "gauges = false"))
    lean = exporting.export(scenario, "parquet", tmp_path / "lean")
    assert pl.read_parquet(lean / "packets.parquet").equals(packets)
    assert {file.name for file in lean.iterdir()} == {"packets.parquet", "manifest.json"}
    told = command("export", scenario, "--to", "parquet", "--out", tmp_path / "lean")
    assert told.stdout == f"{tmp_path / 'lean'}/packets.parquet\n"


BUSY = scenario_text(
    "Many packets",
    "10min",
    link_text("wire", "a>b", "1Gbit/s", "10ms"),
    flow_text("flood", "a>b", UDP, cbr("90Mbit/s", "125B")),
)
MEASURED = """
import resource, sys
from pathlib import Path
from talkspurt.runs import exporting
exporting.export(Path(sys.argv[1]), "parquet", Path(sys.argv[2]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_a_run_of_any_length_takes_the_same_memory(tmp_path: Path) -> None:
    took = {}
    for length in ("4s", "16s"):
        scenario = put(tmp_path / f"{length}.toml", BUSY.replace("10min", length))
        took[length] = int(output(sys.executable, "-c", MEASURED, scenario, tmp_path / length))
    table = pl.scan_parquet(tmp_path / "16s/packets.parquet")
    assert table.select(pl.len()).collect().item() > 1_400_000
    # A million rows more would be some 80 MB.
    assert took["16s"] < 1.2 * took["4s"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, talkspurt.errors.StoreError(28, "full")])
def test_what_is_stopped_leaves_nothing_and_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    jobs = []

    def fail(job: object, _bar: object) -> None:
        jobs.append(job)
        raise error

    monkeypatch.setattr(exporting, "_wait", fail)
    scenario = put(tmp_path / "long.toml", BUSY)
    with pytest.raises(type(error) if isinstance(error, Exception) else KeyboardInterrupt):
        exporting.export(scenario, "parquet", tmp_path / "out")
    assert list(tmp_path.iterdir()) == [scenario]
    (job,) = jobs
    with pytest.raises(talkspurt.RunError, match="cancelled"):
        job.result()
    assert job.progress() < 0.5


def test_csv_is_the_tables(run: Path) -> None:
    folder = exporting.export(run, "csv", None)
    result = talkspurt.load(run)
    read = pl.read_csv(folder / "flows.csv")
    assert read["name"].to_list() == result.table("flows")["name"].to_list()
    assert (folder / "packets.csv").exists()


def test_a_run_that_cannot_be_done_again_is_refused(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(run, other)
    scenario = other / "scenario.toml"
    scenario.write_text(scenario.read_text().replace("seed = 1", "seed = 2"))
    with pytest.raises(StoreError, match=r"is damaged: its scenario\.toml is not the one"):
        exporting.export(other, "ns2", None)
    assert not (tmp_path / "other.ns2").exists()


def test_a_recording_that_changed_is_named(folder: Path, tmp_path: Path) -> None:
    for name in ("small.toml", "speech.wav"):
        shutil.copy(folder / name, tmp_path)
    place = talkspurt.run(tmp_path / "small.toml").save(tmp_path / "out", report=False)
    speech = bytearray((tmp_path / "speech.wav").read_bytes())
    speech[-100] ^= 1
    (tmp_path / "speech.wav").write_bytes(speech)
    with pytest.raises(talkspurt.RunError, match=f"there changed: {tmp_path}/speech.wav$"):
        exporting.export(place, "pcapng", None)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "its manifest is not"),
        ({"engine": "another"}, f"made by another build of talkspurt {talkspurt.__version__}$"),
        ({"talkspurt": "9.9.9"}, r"made by talkspurt 9\.9\.9, and this is"),
    ],
)
@pytest.mark.filterwarnings("ignore::talkspurt.errors.OtherVersionWarning")
def test_why_a_run_became_another_is_said_truly(
    run: Path, tmp_path: Path, said: dict[str, str], words: str
) -> None:
    other = tmp_path / "other"
    shutil.copytree(run, other)
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["digest"] = "0" * 32
    manifest["made_of"]["engine"] = said.get("engine", manifest["made_of"]["engine"])
    manifest["talkspurt"] = said.get("talkspurt", manifest["talkspurt"])
    (other / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(talkspurt.RunError, match=words):
        exporting.export(other, "ns2", None)
    assert not (tmp_path / "other.ns2").exists()


@pytest.mark.parametrize("to", ["ns2", "csv"])
def test_an_export_replaces_nothing_but_an_export(run: Path, tmp_path: Path, to: str) -> None:
    place = shutil.copytree(run, tmp_path / "run")
    before = sorted(place.iterdir())
    for target, words in {
        place: "holds a run of scenario, and would be replaced; choose another --out, or say --overwrite: ",
        place / "trace": "lies inside",
        tmp_path: "is not a result of talkspurt",
    }.items():
        with pytest.raises(talkspurt.errors.StoreError, match=words):
            exporting.export(place, to, target)  # type: ignore[arg-type]
    assert sorted(place.iterdir()) == before
    assert talkspurt.load(place).digest == talkspurt.load(run).digest
    exporting.export(place, "csv", tmp_path / "e")
    exporting.export(place, to, tmp_path / "e")  # type: ignore[arg-type]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["e", "run"]


def test_an_export_of_a_studys_run_goes_beside_the_study(tmp_path: Path) -> None:
    study = talkspurt.run(SCENARIO, set={"replications.count": 2}, study=True)
    place = study.save(tmp_path / "study", report=False)
    made = exporting.export(place / "runs" / "0001-r1", "ns2", None)
    assert made == tmp_path / "study-0001-r1.ns2"
    study.save(place, report=False)  # it is still whole and ours


def test_a_trace_that_fills_the_disk_is_not_begun(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil._ntuple_diskusage(10**9, 10**9, 1000)  # type: ignore[attr-defined]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(talkspurt.errors.StoreError, match="1 kB are free"):
        exporting.export(run, "ns2", None)


def test_a_study_is_exported_run_by_run(tmp_path: Path) -> None:
    study = talkspurt.run(SCENARIO, set={"replications.count": 2}, study=True)
    study.save(tmp_path / "study", report=False)
    folder = exporting.export(tmp_path / "study", "ns2", None)
    for run in sorted((tmp_path / "study/runs").iterdir()):
        alone = exporting.export(run, "ns2", tmp_path / f"alone-{run.name}")
        files = {file.name: file.read_bytes() for file in alone.iterdir()}
        del files["manifest.json"]
        assert files == {file.name: file.read_bytes() for file in (folder / run.name).iterdir()}
