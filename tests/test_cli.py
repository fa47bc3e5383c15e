"""The command line: what it prints, what it writes, and how it ends when something is wrong."""

import json
import resource
import signal
import struct
import subprocess
import sys

import pytest

import talkspurt as package
from command import process, refused, start, succeed, talkspurt, until
from conftest import SCENARIO, STUDY, tone, write_wav
from talkspurt._commands.options import GROUPS
from talkspurt.runs import engine
from texts import UDP, cbr, flow_text, link_text, put, scenario_text


def words(done):
    """Everything said on standard error, which never holds a traceback."""
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


def names(folder):
    """What is in a folder."""
    return sorted(entry.name for entry in folder.iterdir())


def scenario(folder, tmp_path, **changes):
    """The small scenario with parts of its text replaced, in a folder of its own."""
    text = SCENARIO
    for old, new in changes.pop("replace", {}).items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "speech.wav").write_bytes((folder / "speech.wav").read_bytes())
    return put(tmp_path / "case.toml", text)


def test_version():
    done = talkspurt("--version")
    assert (done.returncode, done.stdout.strip()) == (0, package.__version__)


def test_schema_is_a_json_schema():
    schema = json.loads(talkspurt("schema").stdout)
    assert {"links", "flows", "duration"} <= set(schema["properties"])


HEAVY = {"polars", "matplotlib", "jinja2", "numpy", "scipy"}
UNUSED = {"rich", "hashlib", "multiprocessing", "difflib"}
"""What the start of a run whose results are JSON takes no time for."""


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["evaluate", "--help"]])
def test_help_and_version_load_neither_tables_nor_pictures(words):
    assert not loaded(words) & HEAVY


def test_help_lists_commands_without_importing_them():
    of_commands = {f"talkspurt._commands.{name}" for group in GROUPS.values() for name in group}
    assert not loaded(["--help"]) & of_commands


def test_a_run_loads_little(folder):
    assert not loaded(["run", str(folder / "small.toml"), "--json"]) & (HEAVY | UNUSED)


def loaded(words):
    """The modules that a command imports."""
    code = (
        "import sys, talkspurt._commands as c\n"
        f"sys.argv = ['talkspurt', *{words!r}]\n"
        "try: c.main()\n"
        "finally: print(*sys.modules, sep='\\n', file=sys.__stderr__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stderr.split())


def test_run_prints_tables_and_writes_results(folder, tmp_path):
    done = succeed("run", folder / "small.toml", cwd=tmp_path)
    for word in ("Calls", "Flows", "Links", "call", "tcp-call", "upload", "sky", "MOS"):
        assert word in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 120
    assert "runs/small/report.html" in done.stdout
    assert (tmp_path / "runs/small/report.html").stat().st_size > 100_000
    assert names(tmp_path / "runs") == ["small"]


def test_speech_without_a_recording_runs_like_any_other(folder, tmp_path):
    succeed("run", folder / "silent.toml", "--out", "out", cwd=tmp_path)
    assert names(tmp_path / "out/audio") == ["tcp-call.received.wav", "tcp-call.sent.wav"]
    assert (tmp_path / "out/report.html").exists()


def test_json_is_one_document_and_nothing_else(folder, tmp_path):
    done = talkspurt("run", folder / "small.toml", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert done.returncode == 0
    assert list(document["flows"]) == ["call", "tcp-call", "upload"]
    assert names(tmp_path) == []


def test_json_of_a_study_has_runs_and_a_summary(folder, tmp_path):
    done = talkspurt(
        "run", folder / "study.toml", "--json", "--out", "s", "--no-report", cwd=tmp_path
    )
    document = json.loads(done.stdout)
    assert len(document["runs"]) == 6
    assert document["runs"][4]["settings"] == {"delay": "200ms"}
    assert (document["runs"][4]["replicate"], document["runs"][4]["seed"]) == (1, 4)
    assert {"flow", "measure", "mean", "low", "high", "axis.delay"} <= set(document["summary"][0])
    pairs = {
        (row["axis.delay"], row["baseline"], row["flow"]): row
        for row in document["differences"]["delay"]
        if row["measure"] == "delay_p50_s"
    }
    assert set(pairs) == {(0.2, "20ms", flow) for flow in ("call", "tcp-call", "upload")}
    # 180 ms more propagation, less or more by what the queue holds.
    row = pairs[0.2, "20ms", "call"]
    assert row["low"] < row["mean"] < row["high"]
    assert abs(row["mean"] - 0.18) < 0.1
    assert not (tmp_path / "s/report.html").exists()
    assert (tmp_path / "s/summary.parquet").exists()


def test_a_study_prints_intervals_and_paired_differences(folder, tmp_path):
    done = succeed("run", folder / "study.toml", "--no-report", cwd=tmp_path)
    assert "±" in done.stdout
    assert "Paired differences along delay: value − 20ms" in done.stdout


def test_fields_and_seed_are_set_from_the_command_line(folder, tmp_path):
    def digest(*more):
        done = talkspurt("run", folder / "small.toml", "--json", *more, cwd=tmp_path)
        return json.loads(done.stdout)["digest"]

    plain = digest()
    assert digest("--seed", 3) == plain == digest("--set", "seed=3")
    assert digest("--seed", 4) != plain
    slower = digest("--set", "links.sky.delay=130ms", "--set", "links.sky.queue.packets=9")
    assert slower != plain


def test_check_runs_nothing(folder, tmp_path):
    done = talkspurt("check", folder / "study.toml", cwd=tmp_path)
    assert (done.returncode, names(tmp_path)) == (0, [])
    assert "6 runs" in done.stdout


BAD = {
    "an unknown key": ({'delay = "120ms"': 'delay = "120ms"\nqeue = 3'}, ["qeue", "queue"]),
    "a wrong unit": ({'rate = "256kbit/s"': 'rate = "256ms"'}, ["links.sky.rate", "256ms"]),
    "a negative number": ({'delay = "120ms"': 'delay = "-1ms"'}, ["links.sky.delay"]),
    "a number without unit": ({'duration = "4s"': "duration = 4"}, ["duration"]),
    "a flow over a missing link": (
        {'to = "east"\ntransport = { kind = "udp" }': 'to = "eats"\ntransport = { kind = "udp" }'},
        ["flows.call", "eats", "east"],
    ),
    "an unknown transport": ({'kind = "udp"': 'kind = "upd"'}, ["upd", "udp"]),
    "text that is no TOML": ({"[links.sky]": "[links.sky"}, [":"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_said_with_file_line_and_field(folder, tmp_path, case):
    replace, expected = BAD[case]
    file = scenario(folder, tmp_path, replace=replace)
    done = talkspurt("run", file.name, cwd=tmp_path)
    said = words(done)
    assert done.returncode == 2, said
    assert "case.toml:" in said
    for word in expected:
        assert word in said, said
    assert not (tmp_path / "runs").exists()


def wav(tag, channels, bits):
    """Writes a WAV file of this format at 8 kHz."""

    def write(file):
        data = bytes(100 * channels * bits // 8)
        align = channels * bits // 8
        fmt = struct.pack("<HHIIHH", tag, channels, 8000, 8000 * align, align, bits)
        body = b"WAVEfmt " + struct.pack("<I", 16) + fmt
        body += b"data" + struct.pack("<I", len(data)) + data
        file.write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)

    return write


def truncated_wav(file):
    write_wav(file, tone())
    file.write_bytes(file.read_bytes()[:5000])


WAVS = {
    "missing": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "no wav": lambda file: file.write_bytes(b"This is text, not sound. " * 10),
    "without samples": lambda file: write_wav(file, b""),
    "truncated": truncated_wav,
    "µ-law": wav(7, 1, 8),
    "long float": wav(3, 1, 64),
    "eight channels": wav(1, 8, 16),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
}


@pytest.mark.parametrize("case", WAVS)
def test_a_bad_recording_is_said_with_its_name(folder, tmp_path, case):
    file = scenario(folder, tmp_path)
    WAVS[case](tmp_path / "speech.wav")
    done = talkspurt("run", file.name, cwd=tmp_path)
    said = words(done)
    assert done.returncode == 2, said
    assert "speech.wav" in said
    assert "flows.call.source.file" in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["--set", "seed"], "PATH=VALUE"),
        (["--set", "links.skye.delay=20ms"], "sky"),
        (["--set", "links.sky.delay=20"], "links.sky.delay"),
        (["--jobs", "0"], "--jobs"),
        (["--pdf", "--no-report"], "no figure is drawn"),
        (["--seed", "x"], "seed"),
        (["--seed", "-1"], "whole number"),
        (["--out", "/proc/nowhere/x"], "/proc/nowhere"),
        (["--sed", "3"], "sed"),
    ],
)
def test_bad_words_on_the_command_line(folder, tmp_path, more, expected):
    done = refused("run", folder / "small.toml", *more, cwd=tmp_path)
    assert expected in words(done) + done.stdout
    assert names(tmp_path) == []


def test_an_unknown_format_names_the_nearest(folder, tmp_path):
    done = refused("export", folder / "small.toml", "--to", "pcap", cwd=tmp_path)
    assert "did you mean pcapng?" in words(done)
    assert names(tmp_path) == []


def test_a_missing_scenario_names_the_nearest(folder):
    done = refused("run", folder / "smal.toml")
    assert "did you mean" in words(done)
    assert "small.toml" in words(done)


def test_a_folder_that_is_not_ours_is_refused_before_running(folder, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.tex").write_text("mine")
    done = refused(
        "run", folder / "small.toml", "--out", "out", "--set", "duration=3h", cwd=tmp_path
    )
    assert "thesis.tex" in words(done) or "not a result" in words(done)
    assert names(tmp_path / "out") == ["thesis.tex"]


def test_a_disk_that_fills_up_leaves_nothing(folder, tmp_path):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))

    done = talkspurt(
        "run", folder / "small.toml", "--out", "out", cwd=tmp_path, preexec_fn=small_files
    )
    assert done.returncode == 1, words(done)
    assert "cannot write" in words(done)
    assert "longer than the system's limit" in words(done)
    assert ".parquet: cannot write" in words(done)
    assert names(tmp_path) == []


def test_a_capture_that_fills_the_disk_is_said_too(folder, tmp_path):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    capture = ["--set", 'record.pcapng=["sky"]', "--out", "out"]
    done = talkspurt("run", folder / "small.toml", *capture, cwd=tmp_path, preexec_fn=small_files)
    assert done.returncode == 1, words(done)
    assert "capture" in words(done)
    assert "File too large" in words(done)
    assert names(tmp_path) == []


def test_captures_are_written_into_the_results(folder, tmp_path):
    capture = ["--set", 'record.pcapng=["sky"]', "--no-report"]
    succeed("run", folder / "small.toml", *capture, cwd=tmp_path)
    # RFC draft pcapng §4.1: a section header block opens the file.
    assert (tmp_path / "runs/small/sky.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    succeed("run", folder / "study.toml", *capture, cwd=tmp_path)
    assert len(list((tmp_path / "runs/study").glob("runs/*/sky.pcapng"))) == 6


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_stopped_run_leaves_nothing(folder, tmp_path, number, code):
    running = start(
        "run", folder / "small.toml", "--set", "duration=3h", "--out", "results/out", cwd=tmp_path
    )
    until(lambda: any(tmp_path.glob("results/.out.partial-*/.lock")), running)
    running.send_signal(number)
    out, err = running.communicate(timeout=60)
    assert running.returncode == code, err
    assert "Traceback" not in err
    assert out == ""
    assert names(tmp_path) == []


QUIET = scenario_text(
    "Quiet",
    "70h",
    link_text("wire", "a>b", "1Mbit/s", "10ms"),
    *(flow_text(f"f{i}", "a>b", UDP, cbr("64kbit/s", "1000B")) for i in range(20)),
    record='{ interval = "1s" }',
    seed=1,
)


def test_a_long_quiet_run_stops_at_once(tmp_path):
    (tmp_path / "quiet.toml").write_text(QUIET, encoding="utf-8")
    running = start("run", "quiet.toml", "--out", "out", cwd=tmp_path)
    # Progress is said in lines where there is no terminal.
    line = running.stderr.readline()
    assert line.startswith("Quiet:"), line
    assert "%" in line
    running.send_signal(signal.SIGINT)
    try:  # the engine's grace, and what a busy machine takes to end an interpreter
        _, err = running.communicate(timeout=engine.GRACE_S + 4)
    finally:
        running.kill()
    assert running.returncode == 130, err
    assert "Traceback" not in err
    assert names(tmp_path) == ["quiet.toml"]


@pytest.mark.parametrize("command", ["schema", "run FILE --json", "run FILE --no-report"])
def test_a_reader_that_goes_away_is_no_error(folder, tmp_path, command):
    words = command.replace("FILE", str(folder / "small.toml"))
    # A reader that is gone before the first word: the writer is sure to notice.
    line = f"(sleep 0.1; {sys.executable} -m talkspurt {words}) | true; exit ${{PIPESTATUS[0]}}"
    done = process("bash", "-c", line, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_python_faults_are_not_hidden(folder):
    assert package.ScenarioError.__mro__[1] is ValueError
    with pytest.raises(package.ScenarioError):
        package.read(STUDY.replace("values", "valuse"))
