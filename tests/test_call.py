"""`talkspurt answer` and `talkspurt call`: sound, encryption, hanging up, and bad input."""

import contextlib
import importlib.util
import io
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import talkspurt
from command import output, refused, start, succeed, told, until_said
from command import talkspurt as command
from ports import free_port
from talkspurt import _core
from talkspurt._terminal import call as screen
from talkspurt.results.audio import read_wav, wav

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="calls need Linux")
SECRET = {"TALKSPURT_SECRET": "a secret of these tests"}
SPEECH = Path(__file__).parent.parent / "speech"
HERE, THERE = SPEECH / "english-man.wav", SPEECH / "french-woman.wav"


@contextlib.contextmanager
def answering(folder, *options, listen="127.0.0.1:0", speech=THERE):
    """A process that answers; its port, and the process."""
    process = start(
        "answer", "--listen", listen, "--speech", speech, "--heard", folder / "there.wav",
        "--out", folder / "there", *options, env={**SECRET, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        assert line.startswith("Waiting for a call on 127.0.0.1:"), line + process.stderr.read()
        yield int(line.split(":")[1].split(".")[0]), process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=40)  # also closes the pipes of a process that has ended


def calling(folder, port, *options, host="127.0.0.1", speech=HERE, run=command, env=SECRET, **more):
    return run(
        "call", f"{host}:{port}", "--speech", speech, "--heard", folder / "here.wav",
        "--out", folder / "here", *options, env=env, **more,
    )  # fmt: skip


def wait_for_connection(port):
    """Until a caller, whose start takes long on a busy machine, has connected to this port."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        if any(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows):
            return
        time.sleep(0.05)
    pytest.fail("nobody connects")


def samples(file):
    pcm, rate, channels = read_wav(file)
    assert channels == 1
    return np.frombuffer(pcm, dtype="<i2"), rate


def segments(pcm):
    """Samples in 14 bits, and their magnitude and segment in G.711 µ-law (ITU-T G.711)."""
    x = np.clip(pcm.astype(int) >> 2, -8159, 8158)
    magnitude = np.minimum(np.where(x < 0, ~x, x) + 33, 8191)
    return x, magnitude, np.floor(np.log2(magnitude)).astype(int) - 5


def decoded(pcm):
    """Samples as µ-law reproduces them."""
    x, magnitude, segment = segments(pcm)
    step = 1 << (segment + 1)
    value = (magnitude // step) * step + step // 2 - 33
    return (np.where(x < 0, -value, value) * 4).astype("<i2")


def found(frames, heard):
    """Share of the loud frames of 20 ms that are in a sound, bit by bit."""
    loud = [f for f in frames[: len(frames) // 160 * 160].reshape(-1, 160) if abs(f).max() > 500]
    return sum(f.tobytes() in heard.tobytes() for f in loud) / len(loud)


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """A call from file to file; the folder, and the output of both ends."""
    folder = tmp_path_factory.mktemp("called")
    env = {**SECRET, "COLUMNS": "80"}
    with answering(folder) as (port, process):
        done = calling(folder, port, "--codec", "opus,pcmu", "--for", "4s", run=succeed, env=env)
        there, errors = process.communicate(timeout=40)
    assert process.returncode == 0, errors
    return folder, done.stdout, there


@pytest.mark.skipif(not importlib.util.find_spec("av"), reason="needs the extra av")
def test_the_first_frame_does_not_wait_for_its_codec(tmp_path):
    """Encoding and decoding are in the loop of the media, which an import would stop."""
    code = f"""
import sys
import talkspurt
talkspurt.Voice({str(HERE)!r}, codecs=["amr-5.9"]).open(("pcmu",))
assert "av" in sys.modules
"""
    output(sys.executable, "-c", code, cwd=tmp_path)


def test_a_call_is_a_run_at_both_ends(called):
    folder, said, there = called
    for words in (said, there):
        assert "Codecs agreed: opus, pcmu." in words
        assert "Round-trip time: minimum" in words
    assert max(map(len, said.splitlines())) <= 80
    results = [talkspurt.load(folder / end) for end in ("here", "there")]
    for result in results:
        assert result.flows["name"].to_list() == ["call", "call.reverse"]
        assert result.flows["from"].to_list() == ["caller", "answerer"]
        assert (result.flows["received_packets"] > 150).all()
        assert result.heard == ["call", "call.reverse"]
    ours, theirs = results
    assert ours.flows.equals(theirs.flows)
    for flow, file in (("call", "there.wav"), ("call.reverse", "here.wav")):
        heard, rate = samples(folder / file)
        assert rate == 48_000
        assert np.array_equal(ours.audio(flow).received, heard)
        assert np.array_equal(ours.audio(flow).sent, theirs.audio(flow).sent)
        assert 3 < len(heard) / rate < 5
    succeed("metrics", folder / "there")
    assert "caller" in (folder / "here" / "report.html").read_text()


@pytest.mark.parametrize("transport", ["udp", "dccp-ccid3", "tfrc-tb", "tcp-reno"])
def test_what_is_heard_is_what_the_codec_makes_of_what_was_said(tmp_path, transport):
    """G.711 by its own formula here, of files at its rate."""
    files = []
    for file in (HERE, THERE):
        pcm, rate = samples(file)
        assert rate == 16_000
        files.append(tmp_path / file.name)
        files[-1].write_bytes(wav(pcm[::2].tobytes(), 8000))
    with answering(tmp_path, "--no-report", speech=files[1]) as (port, process):
        calling(
            tmp_path, port, "--transport", transport, "--codec", "pcmu,g726-32", "--for", "4s",
            "--no-report", speech=files[0], run=succeed,
        )  # fmt: skip
        process.communicate(timeout=40)
    for flow, spoken, file in zip(
        ("call", "call.reverse"), files, ("there.wav", "here.wav"), strict=True
    ):
        heard, rate = samples(tmp_path / file)
        assert rate == 8000
        said = samples(spoken)[0][: 4 * rate]
        reference = talkspurt.load(tmp_path / "here").audio(flow).sent
        assert np.array_equal(reference[: len(said)], said[: len(reference)])
        # A busy machine delays packets, whereupon the buffer stretches some frames. TFRC-TB needs
        # two seconds to reach G.711.
        assert found(decoded(said), heard) > (0.1 if transport == "tfrc-tb" else 0.5)
        assert found(said, heard) < 0.1, "coded, not copied"


class Relay:
    """Passes a call on, from 127.0.0.2 to 127.0.0.1 and back, and keeps what it sees.

    With a ``rate``, in bytes a second, the control connection is a slow path with short queues.
    """

    def __init__(self, port, media, rate=None):
        self.rate = rate
        self.seen = {"tcp": b"", "udp": []}
        self.listener = socket.create_server(("127.0.0.2", port))
        self.inner = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.inner.bind(("127.0.0.1", 0))
        self.outer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.outer.bind(("127.0.0.2", media))
        self.port, self.media = port, media
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with self.listener, self.inner, self.outer:
            answerer = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            if self.rate is not None:
                for each in (self.listener, answerer):
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                answerer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            caller, _ = self.listener.accept()
            with caller, answerer:
                answerer.connect(("127.0.0.1", self.port))
                self.relay(caller, answerer)

    def relay(self, caller, answerer):
        other = {caller: answerer, answerer: caller}
        back = None
        while True:
            ready, _, _ = select.select([caller, answerer, self.inner, self.outer], [], [], 20)
            if not ready:
                return
            for each in ready:
                if each in other:
                    data = each.recv(65536 if self.rate is None else 2048)
                    if not data:
                        return
                    if self.rate is not None:
                        time.sleep(len(data) / self.rate)  # the path is as slow as that
                    self.seen["tcp"] += data
                    other[each].sendall(data)
                else:
                    data, source = each.recvfrom(65536)
                    self.seen["udp"].append(data)
                    if each is self.outer:
                        back = source
                        self.inner.sendto(data, ("127.0.0.1", self.media))
                    else:
                        self.outer.sendto(data, back)


def relayed(folder, *options, rate=None):
    """A call over a relay."""
    port, media = free_port(), free_port()
    ports = ("--media-ports", f"{media}-{media}")
    with answering(folder, *ports, "--no-report", listen=f"127.0.0.1:{port}") as (_, process):
        relay = Relay(port, media, rate)
        calling(folder, port, "--no-report", *options, host="127.0.0.2", run=succeed)
        process.communicate(timeout=40)
    return relay


@pytest.mark.parametrize("transport", ["udp", "dccp-ccid2"])
def test_nothing_is_in_clear_on_the_wire(tmp_path, transport):
    """Neither speech in any coding that was agreed on, nor the codecs' names, nor RTP's headers."""
    relay = relayed(tmp_path, "--codec", "pcmu", "--for", "3s", "--transport", transport)
    relay.thread.join(30)
    everything = relay.seen["tcp"] + b"".join(relay.seen["udp"])
    assert len(relay.seen["udp"]) > 250
    result = talkspurt.load(tmp_path / "here")
    assert (result.flows["received_packets"] > 120).all()
    for flow in ("call", "call.reverse"):
        audio = result.audio(flow)
        for sound in (audio.sent, audio.received):
            loud = [f for f in sound[: len(sound) // 8 * 8].reshape(-1, 8) if abs(f).max() > 500]
            assert len(loud) > 100
            assert not any(f.tobytes() in everything for f in loud)
            codes = [mu_law(f) for f in loud]
            assert not any(code in everything for code in codes if len(set(code)) > 4)
    assert b"pcmu" not in everything
    assert not any(datagram[0] >> 6 == 2 for datagram in relay.seen["udp"])


def test_notes_pass_a_slow_path_before_the_sound(tmp_path):
    """The sound takes six seconds in each direction, longer than an end waits for a message."""
    relayed(tmp_path, "--codec", "opus", "--for", "1s", rate=32_000)
    facts = json.loads((tmp_path / "here" / "manifest.json").read_text())["measured"]
    assert facts["complete"]
    assert facts["call"]["sound_exchanged"]


def mu_law(pcm):
    """The bytes of µ-law."""
    x, magnitude, segment = segments(pcm)
    interval = (magnitude >> (segment + 1)) & 15
    code = (segment << 4) | interval
    return bytes(np.where(x < 0, ~code & 0x7F, (~code & 0x7F) | 0x80).astype(np.uint8))


@contextlib.contextmanager
def talking(folder, *options):
    """A call that has lasted for some seconds: the processes of both ends."""
    with answering(folder, "--no-report") as (port, answerer):
        caller = calling(folder, port, "--for", "50s", *options, run=start)
        until_said(caller, 8)  # percent of 50 s
        yield caller, answerer


@pytest.mark.parametrize("first", ["caller", "answerer"])
def test_ctrl_c_hangs_up_at_both_ends(tmp_path, first):
    with talking(tmp_path, "--no-report") as (caller, answerer):
        process = caller if first == "caller" else answerer
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        statuses = []
        for each in (caller, answerer):
            output, errors = each.communicate(timeout=40)
            assert f"The {first} hung up." in output, errors
            assert "Traceback" not in errors
            statuses.append(each.returncode)
        # The call ends within three seconds; notes, tables and files follow.
        assert time.monotonic() - began < 30
    assert statuses == ([130, 0] if first == "caller" else [0, 130])
    for end in ("here", "there"):
        heard, rate = samples(tmp_path / f"{end}.wav")
        assert 1 < len(heard) / rate < 20
        assert abs(heard).max() > 500
        facts = json.loads((tmp_path / end / "manifest.json").read_text())["measured"]
        assert facts["call"]["hung_up"] == first
        for of in facts["ends"].values():
            assert of["ended_s"] < 20


def test_an_end_that_is_killed_ends_the_call(tmp_path):
    """What was heard until then is kept."""
    with talking(tmp_path, "--no-report") as (caller, answerer):
        caller.kill()
        caller.communicate()
        began = time.monotonic()
        _, errors = answerer.communicate(timeout=40)
        assert time.monotonic() - began < 20
    assert answerer.returncode == 2
    assert "the control connection was lost; what was heard until then is in" in errors
    heard, rate = samples(tmp_path / "there.wav")
    assert 1 < len(heard) / rate < 20


def test_without_the_answerers_notes_nothing_is_said_of_what_it_heard(tmp_path):
    """Not that all was lost: it is not known."""
    with talking(tmp_path, "--codec", "pcmu") as (caller, answerer):
        answerer.kill()
        said, errors = caller.communicate(timeout=40)
    assert caller.returncode == 2, said
    assert "the control connection was lost" in errors
    assert "Traceback" not in errors
    result = talkspurt.load(tmp_path / "here")
    there = result.flows.filter(name="call").row(0, named=True)
    assert there["sent_packets"] > 50
    unknown = (
        "lost_packets in_flight_packets rejected_packets loss_ratio missing_packets r_factor mos"
    )
    for column in unknown.split():
        assert there[column] is None, column
    assert result.table("frames").filter(flow="call")["fate"].null_count() > 50
    page = (tmp_path / "here" / "report.html").read_text()
    assert page.count("No audio: the ends did not exchange their sound.") == 2
    back = result.flows.filter(name="call.reverse").row(0, named=True)
    assert back["received_packets"] > 50


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """An end that has only G.722."""
    with answering(tmp_path_factory.mktemp("refusing"), "--codec", "g722") as (port, _):
        yield port


@pytest.mark.parametrize(
    ("options", "env", "expected"),
    [
        ((), {"TALKSPURT_SECRET": "another secret, as long"}, "has another secret"),
        ((), {"TALKSPURT_SECRET": "short"}, "the secret has 5 characters"),
        (("--codec", "pcmu,opus"), SECRET, "no common codec: the caller offers pcmu, opus"),
        (("--codec", "pcmu", "--transport", "dccp-ccid4"), SECRET, "no common codec"),
        (("--codec", "g729"), SECRET, "codec g729: expected one or more of pcmu"),
        (("--transport", "x", "--mtu", "1"), SECRET, "--transport x: unknown"),
        (("--for", "2h"), SECRET, "--for"),
        (("--speech", "no.wav"), SECRET, "no.wav: cannot be read: there is no such file"),
        (("--heard", "no-folder/x.wav"), SECRET, "--heard no-folder/x.wav"),
    ],
)
def test_bad_input_is_told_in_a_line(tmp_path, refusing, options, env, expected):
    given = {"--speech": HERE, "--heard": tmp_path / "x.wav", "--codec": "g722"}
    given |= dict(zip(options[::2], options[1::2], strict=True))
    flat = [str(word) for pair in given.items() for word in pair]
    said = told("call", f"127.0.0.1:{refusing}", "--no-report", *flat, env=env, cwd=tmp_path)
    assert expected in said


def test_a_file_without_sound_is_told_before_anybody_is_called(tmp_path):
    (tmp_path / "x.wav").write_bytes(b"RIFF")
    options = ("--speech", tmp_path / "x.wav", "--heard", tmp_path / "y.wav")
    for words in (("answer",), ("call", "127.0.0.1:1")):
        done = refused(*words, *options, env=SECRET)
        assert "x.wav" in done.stderr
    done = refused("call", "127.0.0.1:1", "--speech", HERE, "--heard", "y.wav", env=SECRET)
    assert "nothing listens there" in done.stderr


def test_a_second_caller_is_told_that_the_line_is_busy(tmp_path):
    (tmp_path / "second").mkdir()
    with answering(tmp_path, "--no-report") as (port, _):
        caller = calling(tmp_path, port, "--for", "20s", "--no-report", run=start, env=SECRET)
        wait_for_connection(port)
        second = calling(tmp_path / "second", port, "--no-report", run=refused)
        caller.send_signal(signal.SIGINT)
        caller.communicate(timeout=40)
    assert "busy: in another call" in second.stderr


def test_a_server_of_measurements_answers_no_call(tmp_path):
    env = {**SECRET, "PYTHONUNBUFFERED": "1"}
    server = start("serve", "--listen", "127.0.0.1:0", "--user", "nobody", env=env)
    try:
        port = int(server.stdout.readline().split(":")[1])
        done = calling(tmp_path, port, run=refused)
        assert "calls need `talkspurt answer` there" in done.stderr
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=20)
    with answering(tmp_path) as (port, _):
        done = refused("measure", f"127.0.0.1:{port}", "--no-report", env=SECRET)
        assert "measurements need `talkspurt serve` there" in done.stderr


def test_json_is_one_document(tmp_path):
    with answering(tmp_path, "--no-report", "--calls", "2") as (port, process):
        for _ in range(2):
            done = succeed(
                "call", f"127.0.0.1:{port}", "--speech", HERE, "--heard", tmp_path / "x.wav",
                "--codec", "g722", "--for", "1s", "--json", env=SECRET,
            )  # fmt: skip
        process.communicate(timeout=40)
    document = json.loads(done.stdout)
    assert document["call"]["codecs"] == ["g722"]
    assert document["call"]["role"] == "caller"
    assert set(document["flows"]) == {"call", "call.reverse"}
    for number, name in ((1, "there.wav"), (2, "there-2.wav")):
        assert samples(tmp_path / name)[1] == 16_000
        assert (tmp_path / "there" / str(number) / "manifest.json").exists()


def test_the_screen_fits_80_columns():
    from rich.console import Console

    state = {
        "passed_s": 3601.5, "rtt_s": 0.1234,
        "sent": {"rate_bps": 123456.0, "codec": "G.723.1 6.3 kbit/s"},
        "heard": {"rate_bps": 98765.0, "codec": "G.711 µ-law", "loss": 0.123, "buffer_s": 0.0678,
                  "mos": 3.21},
    }  # fmt: skip
    empty = {"rate_bps": None, "codec": None, "loss": None, "buffer_s": None, "mos": None}
    first = {"passed_s": 0.0, "rtt_s": None, "sent": empty, "heard": empty}
    for shown, words in ((state, ("3.2", "12.3 %")), (first, ("–",)), (None, ("setting up",))):
        console = Console(width=80, file=io.StringIO(), record=True)
        console.print(screen.render("Call to far.example.org over dccp-ccid3", shown))
        text = console.export_text()
        assert all(word in text for word in words), text
        assert len(text.splitlines()) <= 6


def test_the_codecs_of_a_call_have_sound():
    codecs = _core.call_codecs()
    assert {"pcmu", "pcma", "g722", "g726-16", "opus"} <= set(codecs)
    assert not {"g729", "g728", "g729-10"} & set(codecs)


@pytest.fixture(scope="module")
def sound_server(tmp_path_factory):
    """A sound server of its own with two null sinks: the environment of its clients."""
    for name in ("pulseaudio", "pactl", "parec", "pacat"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
    folder = tmp_path_factory.mktemp("pulse")
    env = {
        **os.environ, "XDG_RUNTIME_DIR": str(folder), "PULSE_RUNTIME_PATH": str(folder),
        "HOME": str(folder), "PULSE_SERVER": f"unix:{folder}/native",
    }  # fmt: skip
    process = subprocess.Popen(
        ["pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--disallow-exit",
         "--use-pid-file=no", "-L", f"module-native-protocol-unix socket={folder}/native",
         "-L", "module-null-sink sink_name=mouth", "-L", "module-null-sink sink_name=ear"],
        env={k: v for k, v in env.items() if k != "PULSE_SERVER"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(100):
            time.sleep(0.1)
            done = subprocess.run(["pactl", "info"], env=env, capture_output=True, check=False)
            if done.returncode == 0:
                break
        else:
            pytest.skip("pulseaudio does not start")
        yield env
    finally:
        process.terminate()
        process.wait(10)


def likeness(sound, of):
    """The largest correlation coefficient of two seconds of a sound with another, at any delay."""
    part = sound[len(sound) // 2 :][: 2 * 8000].astype(float)
    size = 1 << (len(of) + len(part) - 1).bit_length()
    spectrum = np.fft.rfft(of.astype(float), size) * np.conj(np.fft.rfft(part, size))
    products = np.fft.irfft(spectrum, size)[: len(of)]
    energy = np.concatenate([[0], np.cumsum(of.astype(float) ** 2)])
    ends = np.minimum(np.arange(len(of)) + len(part), len(of))
    own = np.sqrt((energy[ends] - energy[: len(of)]) * (part**2).sum())
    return float((products / np.maximum(own, 1e6)).max())


def test_a_call_with_a_microphone_and_a_loudspeaker(tmp_path, sound_server):
    """What is played into the microphone is heard there, and what is said there is played here."""
    env = {**sound_server, **SECRET}
    spoken, _ = samples(HERE)
    raw = tmp_path / "mouth.raw"
    raw.write_bytes(spoken[::2].tobytes())
    plain = ("--raw", "--format=s16le", "--rate=8000", "--channels=1")
    with (
        answering(tmp_path, "--no-report") as (port, process),
        (tmp_path / "ear.raw").open("wb") as ear,
        raw.open("rb") as mouth,
    ):
        says = subprocess.Popen(["pacat", *plain, "--device=mouth"], env=env, stdin=mouth)
        hears = subprocess.Popen(
            ["parec", *plain, "--latency-msec=50", "--device=ear.monitor"], env=env, stdout=ear
        )
        succeed(
            "call", f"127.0.0.1:{port}", "--microphone", "mouth.monitor", "--loudspeaker", "ear",
            "--heard", tmp_path / "here.wav", "--codec", "pcmu", "--for", "6s", "--no-report",
            "--out", tmp_path / "here", env=env,
        )  # fmt: skip
        for each in (says, hears):
            each.terminate()
            each.wait(10)
        process.communicate(timeout=40)
    there, here = samples(tmp_path / "there.wav")[0], samples(tmp_path / "here.wav")[0]
    played = np.frombuffer((tmp_path / "ear.raw").read_bytes(), dtype="<i2")
    # On a busy machine a sound device may lose samples: two seconds in one piece are not certain.
    assert likeness(there[: 5 * 8000], spoken[::2]) > 0.5
    assert likeness(here[: 5 * 8000], played) > 0.5
    assert likeness(here, spoken[::2]) < 0.3, "the other voice"


def test_missing_devices_are_told(tmp_path, sound_server):
    options = ("call", "127.0.0.1:1", "--heard", tmp_path / "x.wav")
    done = refused(*options, "--microphone", "nose", env={**sound_server, **SECRET})
    assert "--microphone nose: unknown; there are mouth.monitor, ear.monitor" in done.stderr
    env = {**SECRET, "PULSE_SERVER": "unix:/nowhere"}
    done = refused(*options, "--microphone", "default", env=env)
    assert "--microphone: no sound server" in done.stderr
    for more in ((), ("--speech", HERE, "--microphone", "default")):
        done = refused(*options, *more, env=SECRET)
        assert "give one of --speech and --microphone" in done.stderr
