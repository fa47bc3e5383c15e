"""What is named as a file may be a device, a pipe, a folder or endless: it is told, not waited for."""

import os
import signal
import struct
from pathlib import Path

import pytest

import talkspurt as package
from command import refused, start, succeed, talkspurt, told, until
from conftest import SCENARIO
from talkspurt._storage import file_access
from texts import put

LINK = SCENARIO[SCENARIO.index("[links.sky]") : SCENARIO.index("[flows.call]")]
QUIET = "[flows.f]\nfrom = 'west'\nto = 'east'\ntransport = { kind = 'udp' }\nsource = {SOURCE}\n"
CBR = "{ kind = 'cbr', rate = '64kbit/s', packet = '160B' }"


def scenario(source=CBR, link=""):
    head = 'title = "T"\nduration = "2s"\n'
    return head + LINK + link + "\n" + QUIET.replace("{SOURCE}", source)


@pytest.fixture
def odd(tmp_path):
    """Files that are none, or not of sane size."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "tty").symlink_to("/dev/full")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(6 << 30)
    return tmp_path


NAMES = {"pipe": "is not a regular file", "device": "is not a regular file",
         "tty": "is not a regular file", "loop": "symbolic link", "huge": "is longer than",
         "folder.toml": "folder"}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_that_is_no_file_is_told(odd, name):
    assert NAMES[name] in told("check", odd / name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        scenario("{ kind = 'speech', codec = 'pcmu', file = 'NAME' }"),
        scenario("{ kind = 'video', file = 'NAME' }"),
        scenario("{ kind = 'replay', file = 'NAME', ssrc = 1 }"),
        scenario(link="trace = { kind = 'mahimahi', file = 'NAME' }\n"),
        scenario(link="trace = { kind = 'csv', file = 'NAME' }\n"),
    ],
    ids=["wav", "video", "capture", "mahimahi", "csv"],
)
def test_a_file_of_a_scenario_that_is_none_is_told(odd, name, text):
    file = put(odd / "case.toml", text.replace("NAME", name))
    with pytest.raises(package.ScenarioError, match=r"file"):
        package.read(file)


@pytest.mark.parametrize(
    "data",
    [
        SCENARIO.encode().replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + SCENARIO.encode(),
        b"\xef\xbb\xbf" + SCENARIO.encode().replace(b"\n", b"\r\n"),
    ],
    ids=["crlf", "bom", "both"],
)
def test_a_scenario_of_another_system_is_read(folder, tmp_path, data):
    file = tmp_path / "case.toml"
    file.write_bytes(data.replace(b"speech.wav", os.fsencode(folder / "speech.wav")))
    assert package.read(file).plan.title == "Small"


@pytest.mark.parametrize(
    "data", [b"\x00" * 50, b"title = 'a\x00b'\n", b"\xff\xfe" + "title='a'\n".encode("utf-16-le"),
             b"title = '\xc3\x28'\n", b"", b"\xef\xbb\xbf", b"\r\r\r", bytes(range(256)) * 100]
)  # fmt: skip
def test_what_is_no_text_is_told_in_a_few_lines(tmp_path, data):
    file = tmp_path / "case.toml"
    file.write_bytes(data)
    done = refused("check", file)
    assert 0 < done.stderr.count("\n") <= 41
    assert all(len(line) < 1500 for line in done.stderr.splitlines())


def test_many_faults_are_told_in_a_few_dozen_lines(tmp_path):
    file = put(tmp_path / "case.toml", "".join(f"zebra{n} = 1\n" for n in range(50_000)))
    done = refused("check", file)
    assert done.stderr.count("\n") == 41
    assert "more problems" in done.stderr.splitlines()[-1]


def test_parts_of_a_result_that_are_pipes_are_told(folder, tmp_path):
    where = package.run(folder / "small.toml", set={"duration": "2s"}).save(
        tmp_path / "out", report=False
    )
    for name in ("flows.parquet", "scenario.toml", "manifest.json"):
        (where / name).unlink()
        os.mkfifo(where / name)
        done = talkspurt("metrics", where, "mos")
        assert done.returncode in (1, 2)
        assert "is not a regular file" in done.stderr, (name, done.stderr)


def test_a_file_that_is_longer_than_it_says_is_not_read_whole():
    with pytest.raises(OSError, match="longer"):
        file_access.read_bytes(Path("/proc/self/maps"), 10)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_reading_is_stopped_at_once(tmp_path, number, code):
    # As many runs as may be: reading them takes seconds, of which a part of one is waited.
    text = scenario() + "[[axes]]\npath = 'seed'\nvalues = [" + ",".join(map(str, range(99_999)))
    process = start("check", put(tmp_path / "case.toml", text + "]\n"))
    stat = Path(f"/proc/{process.pid}/stat")
    until(lambda: int(stat.read_text().split()[13]) > 0.7 * os.sysconf("SC_CLK_TCK"), process)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert said == "talkspurt: stopped; nothing was written\n"


def test_a_path_that_is_no_text_is_read_and_written(tmp_path):
    file = put(tmp_path / os.fsdecode(b"gr\xfc\xffsse.toml"), scenario())
    for words in (("check", file), ("run", file, "--no-report"), ("run", file, "--json")):
        assert "Traceback" not in succeed(*words, cwd=tmp_path).stderr
    refused("check", file, "--set", b"duration=\xff\xfe")
    assert package.load(tmp_path / "runs" / "gr\\udcfc\\udcffsse").name == "gr\\udcfc\\udcffsse"


RATELESS = scenario(link="trace = { kind = 'csv', file = 'drive.csv' }\n")


def test_what_is_not_read_of_a_table_is_said_once(tmp_path):
    (tmp_path / "s.toml").write_text(RATELESS)
    table = '\ufeff"time_s";"rate_Mbps";RSRP\r\n0;1,5;-89\r\n0;2;-90\r\n1;1;-91\r\n'
    (tmp_path / "drive.csv").write_text(table)
    done = succeed("check", tmp_path / "s.toml")
    columns, lines = done.stderr.splitlines()
    assert columns.endswith('drive.csv: columns that are not read: "RSRP"')
    assert lines.endswith("with the time of the line before, spread evenly up to the next: 1")
    assert all("s.toml: links.sky.trace.file: " in line for line in (columns, lines))
    with pytest.warns(package.errors.FileWarning) as warned:
        package.run(tmp_path / "s.toml")
    assert [str(it.message) for it in warned] == [
        line.removeprefix("talkspurt: ") for line in (columns, lines)
    ]


def test_times_since_1970_are_no_times_of_a_run(tmp_path):
    file = put(tmp_path / "s.toml", RATELESS)
    (tmp_path / "drive.csv").write_text("time_s,rate_kbps\n1582018702,100\n1582018703,200\n")
    assert "with `from_first = true`" in told("check", file)
    put(file, RATELESS.replace("'drive.csv'", "'drive.csv', from_first = true"))
    assert succeed("check", file).stderr == ""


def wav(head=b"", length=None, kind=1, bits=16):
    """A second of silence at 8 kHz, behind another chunk, with this length in the header."""
    data = bytes(8000 * bits // 8)
    fmt = struct.pack("<4sIHHIIHH", b"fmt ", 16, kind, 1, 8000, 1000 * bits, bits // 8, bits)
    riff = 4 + len(head) + len(fmt) + 8 + len(data) if length is None else length
    samples = struct.pack("<4sI", b"data", len(data) if length is None else length)
    return struct.pack("<4sI4s", b"RIFF", riff, b"WAVE") + head + fmt + samples + data


ODD = b"iXML" + (5).to_bytes(4, "little") + b"hello\0"


@pytest.mark.parametrize(
    "data", [wav(ODD), wav(length=0xFFFF_FFFF), wav(kind=3, bits=32)], ids=["odd", "pipe", "float"]
)
def test_a_recording_is_read_alike_for_a_run_and_for_ns2(tmp_path, data):
    """ns-2's script has the number of packets, which follows from the length of the recording."""
    source = "{ kind = 'speech', codec = 'pcmu', file = 'in.wav' }"
    put(tmp_path / "s.toml", scenario(source) + "[flows.f.rtcp]\nenabled = false\n")
    scripts = []
    for content in (wav(), data):
        (tmp_path / "in.wav").write_bytes(content)
        assert package.run(tmp_path / "s.toml").flows["sent_packets"].to_list() == [50]
        out = tmp_path / "s.tcl"
        succeed("export", tmp_path / "s.toml", "--to", "ns2-script", "--out", out)
        scripts.append(out.read_text())
    assert scripts[0] == scripts[1]
