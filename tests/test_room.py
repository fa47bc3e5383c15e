"""How much room a trace takes is known before it is begun, and a disk that has none is left clean."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import talkspurt as package
from command import succeed, talkspurt
from talkspurt._storage import disk_space, file_access
from talkspurt.errors import StoreError
from talkspurt.runs import exporting
from test_export import SCENARIO

WINDOWED = SCENARIO + '[measure]\nfrom = "2500ms"\nto = "2600ms"\n'


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in file_access.files_in(folder))


def test_what_is_counted_is_the_whole_run() -> None:
    plan = package.read(WINDOWED).plan
    (counts,) = disk_space.count(plan, [0])
    whole = package.run(SCENARIO)
    windowed = package.run(WINDOWED)
    links = {name: (hops, sent, drops) for name, hops, sent, drops in counts.links}
    told = whole.links.select("name", "sent_packets", "sent_bytes", "drops").rows()
    assert links == {name: tuple(rest) for name, *rest in told}
    assert sum(hops for hops, _, _ in links.values()) == whole.hops
    assert windowed.links["sent_bytes"].sum() < 0.1 * whole.links["sent_bytes"].sum()
    first = whole.packets().unique(["flow", "side", "number"]).height
    assert counts.packets == first
    # The table leaves out values without a number, such as a threshold without bound.
    assert 0 <= counts.changes - whole.gauges().height <= 0.01 * counts.changes


@pytest.mark.parametrize("to", ["ns2", "nam", "pcapng", "qlog", "parquet"])
def test_the_estimate_is_near_the_truth(tmp_path: Path, to: exporting.Format) -> None:
    (tmp_path / "windowed.toml").write_text(WINDOWED, encoding="utf-8")
    folder = exporting.export(tmp_path / "windowed.toml", to, tmp_path / "out")
    (counts,) = disk_space.count(package.read(WINDOWED).plan, [0])
    assert 0.6 < counts.takes(to) / size(folder) < 1.7


def test_the_estimate_of_what_a_run_records_is_near_the_truth(tmp_path: Path) -> None:
    longer = {"duration": "60s", "flows.bulk.source.total": "100MB", "flows.call.stop": "60s"}
    result = package.run(SCENARIO, set={**longer, "record.pcapng": ["far"]})
    result.save(tmp_path / "out", report=False)
    (counts,) = disk_space.count(package.read(SCENARIO, set=longer).plan, [0])
    there = (tmp_path / "out" / "far.pcapng").stat().st_size
    assert 0.8 < counts.takes("pcapng", ["far"]) / there < 1.2
    there = (tmp_path / "out" / "packets.parquet").stat().st_size
    assert 0.6 < counts.takes("packets") / there < 1.7


def test_much_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    disk_space.check(99e6, "nam", tmp_path)
    assert capsys.readouterr().err == ""
    disk_space.check(123e6, "nam", tmp_path)
    assert capsys.readouterr().err == "talkspurt: nam takes about 123 MB\n"


BIG = SCENARIO.replace("3s", "60s").replace("2500ms", "60s").replace("150kB", "100MB")
STUDY = BIG + "[replications]\ncount = 2\n"


WAYS = {
    "export": ("export", "big.toml", "--to", "pcapng"),
    "captures": ("run", "big.toml", "--set", 'record.pcapng=["far"]'),
    "table": ("run", "big.toml", "--set", "duration=600s", "--no-report"),
    "study": ("run", "study.toml", "--set", 'record.pcapng=["near"]'),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_disk_cannot_hold_is_not_begun(tmp_path: Path, small: Path, way: str) -> None:
    (tmp_path / "big.toml").write_text(BIG, encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    done = talkspurt(*WAYS[way], "--out", "small/deep/x", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("talkspurt: "))
    assert said.startswith(f"talkspurt: {small}/deep/x: "), said
    assert " takes about " in said or " take about " in said
    assert said.endswith(" are free; choose another --out"), said
    assert not list(small.iterdir())


@pytest.mark.parametrize("to", ["pcapng", "ns2", "qlog"])
def test_a_disk_that_fills_all_the_same_is_left_clean(
    tmp_path: Path, small: Path, to: exporting.Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "big.toml").write_text(BIG, encoding="utf-8")
    monkeypatch.setattr(disk_space, "check", lambda *_: None)
    with pytest.raises(package.RunError, match="No space left on device") as raised:
        exporting.export(tmp_path / "big.toml", to, small / "deep" / "x")
    assert f"{small}/deep/x/" in str(raised.value)
    assert ".partial" not in str(raised.value)
    assert not list(small.iterdir())


@pytest.mark.parametrize("scenario", [BIG, STUDY], ids=["run", "study"])
def test_python_saves_nothing_that_a_disk_cannot_hold(
    tmp_path: Path, small: Path, scenario: str
) -> None:
    sets = {"record.pcapng": ["far"], "record.packets": False}
    captured = package.run(scenario, set=sets, study=None)
    kept = package.load(captured.save(tmp_path / "kept", report=False), study=None)
    words = f"{small}/x: what was recorded of packets takes about .* MB are free; "
    for answer in (captured, kept):
        with pytest.raises(StoreError) as raised:
            answer.save(small / "x", report=False)
        said = f"{raised.value.filename}: {raised.value.strerror}"
        assert re.fullmatch(f"{words}choose another folder", said), said
    assert not list(small.iterdir())


def test_python_counts_the_packet_table_without_reading_it(tmp_path: Path) -> None:
    result = package.run(SCENARIO)
    kept = result.save(tmp_path / "kept", report=False)
    size = (kept / "packets.parquet").stat().st_size
    (kept / "packets.parquet").write_bytes(bytes(size))
    for one in (package.load(kept), result):
        assert sum(file.stat().st_size for file in one._files()) == size > 10_000


def test_json_alone_captures_nothing(tmp_path: Path, small: Path) -> None:
    (tmp_path / "big.toml").write_text(BIG, encoding="utf-8")
    asked = ("run", "big.toml", "--json", "--set", "record.packets=false")
    there = {"TMPDIR": str(small)}
    done = succeed(*asked, "--set", 'record.pcapng=["far"]', cwd=tmp_path, env=there)
    assert not list(small.iterdir())
    plain = talkspurt(*asked, cwd=tmp_path)
    assert json.loads(done.stdout)["digest"] == json.loads(plain.stdout)["digest"]


def test_what_was_finished_when_the_disk_filled_is_kept(tmp_path: Path, small: Path) -> None:
    ballast = small / "ballast"
    ballast.write_bytes(bytes(2_700_000))
    study = SCENARIO + "[replications]\ncount = 12\n"
    (tmp_path / "study.toml").write_text(study, encoding="utf-8")
    asked = ("run", "study.toml", "--set", "record.packets=false")
    plain = (*asked, "--out", "small/x", "--no-report")
    done = talkspurt(*plain, "--jobs", "1", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "the disk is full; " in done.stderr
    assert "of 12 runs are kept: the same command goes on from there" in done.stderr
    ballast.unlink()
    done = succeed(*plain, cwd=tmp_path)
    assert "of 12 runs were there already" in done.stderr


@pytest.mark.parametrize("options", [(), ("--json", "--out", "small/x")])
def test_tables_are_kept_when_the_report_does_not_fit(
    tmp_path: Path, small: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "short.toml").write_text(SCENARIO, encoding="utf-8")
    plain = ("run", "short.toml", "--set", "record.packets=false")
    assert talkspurt(*plain, "--out", "roomy", cwd=tmp_path).returncode == 0
    page = (tmp_path / "roomy" / "report.html").stat().st_size
    tables = {p.name for p in (tmp_path / "roomy").iterdir()} - {"report.html", "figures"}
    assert talkspurt(*plain, "--out", "small/y", "--no-report", cwd=tmp_path).returncode == 0
    shutil.rmtree(small / "y")
    free = shutil.disk_usage(small).free
    used = sum(-(-p.stat().st_size // 4096) for p in (tmp_path / "roomy").rglob("*.parquet")) * 4096
    (small / "ballast").write_bytes(bytes(free - used - page // 2))

    done = talkspurt(*plain, *(options or ("--out", "small/x")), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "small/x/report.html: cannot write: the disk is full; the tables are kept" in done.stderr
    assert ("Calls" in done.stdout) is not bool(options)
    assert "Report:" not in done.stdout
    assert {p.name for p in (small / "x").iterdir()} == tables
    assert not list(small.glob(".*"))

    (small / "ballast").unlink()
    assert talkspurt("report", "small/x", cwd=tmp_path).returncode == 0
    assert (small / "x" / "report.html").exists()


def test_sizes_are_for_people() -> None:
    for size, text in ((7, "7 B"), (1500, "1.5 kB"), (2.5e9, "2.5 GB"), (1e13, "10 TB")):
        assert file_access.size(size) == text
