"""However and whenever it is stopped: words, a true account of what is left, and no traceback."""

import contextlib
import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from command import process, until
from conftest import SCENARIO
from talkspurt._storage import interrupts, output_folder
from talkspurt._storage.output_folder import Claim, Resumable, Staging
from talkspurt.errors import StoreError
from texts import put

SHORT = SCENARIO.replace('duration = "4s"', 'duration = "2s"')


@pytest.fixture(autouse=True)
def interruptible():
    """Job control of a shell ignores SIGINT in what it starts in the background, tests as well."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def case(folder, tmp_path):
    return put(tmp_path / "case.toml", SHORT.replace("speech.wav", str(folder / "speech.wav")))


def with_manifest(stage):
    (stage.folder / "manifest.json").write_text('{"talkspurt": "0", "kind": "reproduction"}')


def test_a_stop_while_a_folder_is_put_in_its_place_waits_until_it_is(tmp_path, monkeypatch):
    swap = Staging._swap

    def stopped(self):
        swap(self)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Staging, "_swap", stopped)
    monkeypatch.setattr(interrupts, "written", [])
    monkeypatch.setattr(output_folder, "written", interrupts.written)
    with pytest.raises(KeyboardInterrupt), Staging(tmp_path / "out") as stage:
        with_manifest(stage)
        stage.commit()
    assert interrupts.written == [tmp_path / "out"]
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_a_second_stop_leaves_no_half(tmp_path, monkeypatch):
    remove = shutil.rmtree

    def stopped(*given, **named):
        signal.raise_signal(signal.SIGINT)
        remove(*given, **named)

    monkeypatch.setattr(shutil, "rmtree", stopped)
    with pytest.raises(KeyboardInterrupt), Staging(tmp_path / "a" / "out") as stage:
        (stage.folder / "file").write_text("x")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["new", "resumable", "sibling"])
def test_a_stop_at_any_line_of_opening_a_folder_leaves_nothing(tmp_path, kind):
    """A stop before each line in turn, until the folder is open without one."""
    target = tmp_path / "a" / "out"
    opening = {
        "new": lambda: Staging(target),
        "resumable": lambda: Resumable(target, "key", 3, Claim("run", "out")),
        "sibling": lambda: output_folder.beside(target),
    }[kind]
    line = 0
    at = 0
    where = None

    def each_line(frame, event, _arg):
        nonlocal line, where
        if frame.f_code.co_filename != output_folder.__file__:
            return None
        if event == "line":
            line += 1
            if line == at:
                where = (frame.f_code.co_name, frame.f_lineno)
                signal.raise_signal(signal.SIGINT)
        return each_line

    opened = False
    while not opened:
        if kind == "sibling":
            target.mkdir(parents=True)
        at, line = at + 1, 0
        before = sys.gettrace()
        sys.settrace(each_line)
        try:
            with opening():
                sys.settrace(before)
                opened = line < at
        except KeyboardInterrupt:
            sys.settrace(before)
        if kind == "sibling":
            target.rmdir()
            target.parent.rmdir()
        assert list(tmp_path.iterdir()) == [], where
    assert at > 15


@pytest.mark.parametrize("number", interrupts.STOPS)
def test_what_is_held_back_comes_once(number):
    came = []
    before = signal.signal(number, lambda *got: came.append(got[0]))
    try:
        with interrupts.undisturbed():
            signal.raise_signal(number)
            signal.raise_signal(number)
            assert came == []
        assert came == [number]
        signal.raise_signal(number)
        assert came == [number] * 2
    finally:
        signal.signal(number, before)


def test_a_terminal_that_is_closed_ends_a_study_as_a_signal_does(folder, tmp_path):
    text = SHORT.replace('"2s"', '"10min"').replace("speech.wav", str(folder / "speech.wav"))
    put(tmp_path / "study.toml", text + "[replications]\ncount = 40\n")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        words = ["run", "study.toml", "--out", "out", "--jobs", "1"]
        os.execv(sys.executable, [sys.executable, "-m", "talkspurt", *words])
    os.set_blocking(terminal, False)

    def has_a_run():
        with contextlib.suppress(BlockingIOError):
            os.read(terminal, 65536)
        return any(tmp_path.glob(".out.*/runs/*[0-9]/manifest.json"))

    until(has_a_run, within=90)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 143
    (left,) = tmp_path.glob(".out.*")
    assert not list(left.glob("runs/*.part")) and list(left.glob("runs/*[0-9]/manifest.json"))


def test_nohup_keeps_a_command_when_its_terminal_is_closed(case, tmp_path):
    process = subprocess.Popen(
        ["nohup", sys.executable, "-m", "talkspurt", "run", case, "--out", "out", "--no-report",
         "--set", "duration=2min"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until(lambda: any(tmp_path.glob(".out.partial-*")), process)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=90) == 0
    assert (tmp_path / "out" / "manifest.json").exists()


def test_runs_whose_folder_was_removed_are_not_said_to_be_kept(tmp_path):
    claim = Claim("run", "x")
    begun = Resumable(tmp_path / "out", "key", 240, claim)
    with pytest.raises(StoreError, match="removed while") as error, begun as unfinished:
        part = unfinished.folder / "runs" / "0000"
        part.mkdir(parents=True)
        (part / "manifest.json").write_text("{}")
        unfinished.check()
        shutil.rmtree(unfinished.folder)
        unfinished.check()
    assert getattr(error.value, "__notes__", []) == []


def stopped(folder, code, status=130, run="main()"):
    """A program with this ``app`` in place of the command line, which says that it was stopped."""
    begin = "import asyncio, gc, os, sys, time, weakref\nfrom talkspurt._commands import entry\n"
    end = f'\nentry.app = app\nmain = entry.main\nsys.argv = ["talkspurt"]\n{run}\n'
    put(folder / "stopped.py", begin + code + end)
    # What is stopped would sleep for longer.
    done = process(sys.executable, "-m", "stopped", cwd=folder, timeout=25)
    assert (done.returncode, done.stderr) == (status, "talkspurt: stopped; nothing was written\n")


def test_a_stop_while_the_commands_are_imported_is_told_too():
    code = """
import os, signal, sys
class Stopped:
    def find_spec(self, name, path, target=None):
        if name == "cyclopts":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stopped())
from talkspurt.__main__ import main
main()
"""
    done = process(sys.executable, "-c", code)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "talkspurt: stopped; nothing was written\n"


def test_a_stop_while_a_string_is_executed_ends_with_its_status(tmp_path):
    """CPython would end `python -m` by SIGINT, although the exception was caught."""
    stopped(tmp_path, "def app(*_, **__):\n    exec('raise KeyboardInterrupt')")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("where", ["destructor", "callback"])
def test_a_stop_in_what_python_lets_not_fail_stops_all_the_same(tmp_path, number, where):
    code = f"""
def stop(*_):
    os.kill(os.getpid(), {int(number)})
class Thing:
    pass
class Destroyed:
    __del__ = stop
def app(*_, **__):
    thing = Destroyed() if {where == "destructor"} else Thing()
    watched = weakref.ref(thing, stop)
    if {where == "destructor"}:
        watched = None
    del thing
    time.sleep(30)  # what the stop interrupts
"""
    stopped(tmp_path, code, interrupts.status(number))


def test_requests_to_a_store_that_a_stop_ended_are_not_told(tmp_path):
    code = """
async def fail():
    raise ConnectionResetError
async def stopped():
    global request
    request = asyncio.ensure_future(fail())
    await asyncio.wait([request])
    raise KeyboardInterrupt
def app(*_, **__):
    asyncio.run(stopped())
"""
    run = "try:\n    main()\nfinally:\n    del request\n    gc.collect()"
    stopped(tmp_path, code, run=run)


def test_a_stop_after_everything_was_written_says_so(case, tmp_path):
    # Nobody reads the tables, so the process is still at them when it is stopped.
    reading, writing = os.pipe()
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(1024))
    os.set_blocking(writing, True)
    process = subprocess.Popen(
        [sys.executable, "-m", "talkspurt", "run", case, "--no-report", "--out", "out"],
        cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(writing)
    place = Path(f"/proc/{process.pid}")
    # In write(2), to standard output: there it stays.
    until(lambda: (place / "syscall").read_text().startswith("1 0x1 "), process)
    assert (tmp_path / "out").exists()
    process.send_signal(signal.SIGINT)
    until(lambda: "ShdPnd:\t0000000000000000" in (place / "status").read_text(), process)
    os.close(reading)
    said = process.communicate(timeout=60)[1]
    assert "Traceback" not in said
    assert said.splitlines()[-1] == f"talkspurt: stopped; {tmp_path / 'out'} is written"
    assert process.returncode == 130


@pytest.mark.parametrize("words", [("metrics",), ("run", "case.toml", "--no-report")])
@pytest.mark.parametrize("how", ["| head -c 1", ">&-", "2>&-", ">&- 2>&-", "2>&1 | head -c 1"])
def test_nobody_has_to_read(case, tmp_path, words, how):
    command = f"{sys.executable} -m talkspurt {' '.join(words)} {how}"
    script = f"set -o pipefail; {command}; echo code $? >&3"
    with (tmp_path / "code").open("w") as code:
        script = f"exec 3>&{code.fileno()}; {script}"
        done = process("bash", "-c", script, cwd=tmp_path, pass_fds=[code.fileno()])
    assert done.stderr == "", done.stderr
    assert (tmp_path / "code").read_text() == "code 0\n"
    if words[-1] == "--no-report":
        assert (tmp_path / "runs/case/manifest.json").exists()


def test_a_full_disk_behind_standard_output_is_told(case, tmp_path):
    for words in (("check", case), ("schema",), ("run", case, "--json")):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "talkspurt", *words], cwd=tmp_path, stdout=full,
                stderr=subprocess.PIPE, text=True, timeout=60, check=False,
            )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr == "talkspurt: No space left on device\n"


def on_terminal(words, cwd, columns=80, stops=(), **env):
    """A command on a terminal of its own: its exit code, and all that it showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.environ.update(env)
        os.execv(sys.executable, [sys.executable, "-m", "talkspurt", *map(str, words)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    began, waiting, shown = time.monotonic(), list(stops), b""
    os.set_blocking(terminal, False)
    while time.monotonic() - began < 90:
        while waiting and time.monotonic() - began > waiting[0][0]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, waiting.pop(0)[1])
        try:
            shown += os.read(terminal, 65536)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            break
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode("utf-8", "replace")


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"NO_COLOR": "1"}, {"HOME": "/nonexistent"}])
def test_every_terminal_will_do(case, tmp_path, env):
    env.setdefault("MPLCONFIGDIR", str(tmp_path / "mpl"))
    for columns in (20, 80):
        code, shown = on_terminal(
            ("run", case, "--no-report", "--out", f"out{columns}"), tmp_path, columns, **env
        )
        assert code == 0 and "Traceback" not in shown


@pytest.mark.parametrize("command", ["run", "study", "check", "metrics", "export", "reproduce"])
def test_stops_at_any_instant_end_in_words(case, folder, tmp_path, command):
    study = put(tmp_path / "study.toml", case.read_text() + "[replications]\ncount = 6\n")
    words = {
        "run": ("run", case, "--out", "out"),
        "study": ("run", study, "--out", "out"),
        "check": ("check", case),
        "metrics": ("metrics",),
        "export": ("export", case, "--to", "pcapng", "--out", "out"),
        "reproduce": ("reproduce", "nor2010", "--out", "out"),
    }[command]
    instants = (0.4, 0.9, 1.5)
    for place, after in enumerate(instants):
        number = interrupts.STOPS[place]
        stops = [(after, number), (after + 0.02, signal.SIGINT)]
        code, shown = on_terminal(words, tmp_path, stops=stops)
        shown = shown.replace("\r\n", "\n")
        assert "Exception ignored" not in shown
        if -code in interrupts.STOPS:
            continue  # before main
        if "Traceback" in shown:
            # Python's own, before our first line ran.
            assert "_code()" not in shown and "talkspurt: stopped" not in shown, shown
            continue
        there = (tmp_path / "out" / "manifest.json").exists()
        if "stopped; " in shown:
            # Signals that arrive during one call into C, such as the compilation of a module,
            # are handled in the order of their numbers.
            assert code in {interrupts.status(sent) for _, sent in stops}
            assert ("nothing was written" in shown) <= (not there), shown
            assert (" is written" in shown) == there, shown
        else:
            assert code == 0, shown
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
