"""`talkspurt serve` and `talkspurt measure`: results, bad input, and attacks from the network."""

import contextlib
import functools
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

import talkspurt
from command import (
    TALKSPURT,
    output,
    process,
    refused,
    start,
    succeed,
    told,
    until,
    until_said,
)  # fmt: skip
from command import talkspurt as command
from talkspurt import _core, metrics
from talkspurt.real_time import measuring
from talkspurt.real_time.notes import notes
from test_emulate import OBSTACLE as NO_EMULATION
from texts import UDP, cbr, flow_text, link_text, scenario_text

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="serve and measure need Linux")
SECRET = {"TALKSPURT_SECRET": "a secret of these tests"}


@contextlib.contextmanager
def serving(*options, **more):
    """A running server: its port and its process."""
    words = ("serve", "--listen", "127.0.0.1:0", "--user", "nobody", *options)
    process = start(*words, env={**SECRET, "PYTHONUNBUFFERED": "1"}, **more)
    try:
        line = process.stdout.readline()
        assert line.startswith("Listening on 127.0.0.1:"), line + process.stderr.read()
        yield int(line.split(":")[1]), process
    finally:
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


@contextlib.contextmanager
def server(*options):
    """A running server; its port."""
    with serving(*options) as (port, _):
        yield port


def wait_for_media(process, client, percent=3):
    """Wait until the client says that a session has sent media for a second or two; when it began."""
    assert " udp up " in process.stdout.readline()
    began = time.monotonic()
    until_said(client, percent)
    return began


def measure(port, *options, env=SECRET, run=command, **more):
    return run("measure", f"127.0.0.1:{port}", *options, env=env, **more)


def speech_both_ways(out, *options):
    """A measurement of speech; what was printed, and the folder."""
    words = ("--traffic", "talkspurts", "--seed", "5", "--out", out)
    with server() as port:
        done = measure(port, *words, *options, run=succeed, env={**SECRET, "COLUMNS": "80"})
    return done.stdout, out


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Two transports, one after another."""
    options = ("--transport", "udp", "--transport", "tfrc", "--for", "2s")
    return speech_both_ways(tmp_path_factory.mktemp("measured") / "out", *options)


def test_a_measurement_is_a_run_to_other_commands(measured, tmp_path):
    said, out = measured
    assert "Round-trip time: minimum" in said
    assert "One-way delays are within ±" in said
    assert max(map(len, said.splitlines())) <= 80
    for folder in (out / "udp", out / "tfrc"):
        assert (folder / "report.html").exists()
        result = talkspurt.load(folder)
        assert result.digest == ""
        assert result.manifest["digest"] is None
        assert result.flows.height == 2
        for row in result.flows.iter_rows(named=True):
            assert row["sent_packets"] == row["received_packets"] > 0
            assert row["lost_packets"] == 0
            # A busy machine delays speech, which lowers the score.
            assert 1 <= row["mos"] <= 4.5
        assert result.gauges().height > 0
    succeed("metrics", out / "tfrc")
    succeed("plot", out / "tfrc", "goodput_over_time", "--out", tmp_path / "x.png")
    succeed("compare", out / "udp", out / "tfrc", "--no-report", "--out", tmp_path / "both")
    again = refused("export", out / "udp", "--to", "pcapng")
    assert "was measured on a real path" in again.stderr


def test_every_metric_of_a_measurement_is_a_table_or_one_error(measured):
    """Before, the fair share over links of unknown rate ended in a traceback."""
    result = talkspurt.load(measured[1] / "udp")
    refused = {}
    for one in metrics.ALL:
        try:
            metrics.compute(result, one.full_name)
        except (KeyError, ValueError) as error:
            refused[one.full_name] = error.args[0]
    assert metrics.compute(result, "normalised_throughput")["value"].null_count() == 2
    assert "a measurement has none" in refused["delay_over_time"]
    assert "--set" not in " ".join(refused.values()), refused


def test_the_clocks_of_one_machine_are_found_to_agree(measured):
    """Both processes use one clock, whose offset is the difference of the two starts."""
    _, out = measured
    for folder in (out / "udp", out / "tfrc"):
        facts = json.loads((folder / "manifest.json").read_text())["measured"]
        assert facts["clock_offset_bound_s"] >= facts["rtt_min_s"] / 2
        assert abs(facts["clock_drift_ppm"] or 0) < 200
        flows = talkspurt.load(folder).flows
        assert (flows["delay_min_s"] >= 0).all()
        assert (flows["delay_p50_s"] < 0.1).all()


def test_the_kind_of_an_error_tells_what_failed():
    """Programs need not read its words."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        unused = closed.getsockname()[1]
    long = SECRET["TALKSPURT_SECRET"].encode()
    with server() as port:
        attempts = {
            "unreachable": ("127.0.0.1", unused, long),
            "secret": ("127.0.0.1", port, b"a different secret of tests"),
        }
        for kind, attempt in attempts.items():
            with pytest.raises(_core.RunError) as raised:
                _core.Session(*attempt)
            assert raised.value.kind == kind
        session = _core.Session("127.0.0.1", port, long)
        flow = ("udp", "udp", ("cbr", 10**9, 160, "pcmu", None), None)
        with pytest.raises(_core.RunError, match="the server permits") as raised:
            session.measure([flow], "1s", 1500, 1).result()
        assert raised.value.kind == "refused"
    run = _core.load(CALL, "call", ".", [("duration", "1h")], None).start(0, None)
    run.cancel()
    with pytest.raises(_core.RunError) as raised:
        run.result()
    assert raised.value.kind == "cancelled"
    assert _core.RunError("raised by Python").kind is None


CALL = scenario_text(
    "A call",
    "1s",
    link_text("path", "here>there", "1Mbit/s", "10ms", 10),
    flow_text("call", "here>there"),
)


def test_times_of_unknown_clocks_are_null():
    """Without a relation of the clocks, no time of the receiver is given."""
    outcome = _core.load(CALL, "call", ".", [], None).start(0, None).result()
    for name, columns in measuring.BETWEEN_CLOCKS.items():
        known, unknown = (
            measuring._table(outcome, name, known=known, complete=True) for known in (True, False)
        )
        assert set(columns) <= set(known.columns)
        for column in known.columns:
            nulls = unknown[column].null_count()
            assert nulls == (known.height if column in columns else known[column].null_count())


def test_all_transports_at_once_as_json():
    """Greedy flows stay below the server's limit together: the policer shows where they do not."""
    with server("--max-rate", "8Mbit/s") as port:
        done = measure(
            port, "--together", "--transport", "dccp-ccid2", "--transport", "dccp-ccid3",
            "--transport", "sctp", "--traffic", "bulk", "--up", "--for", "2s", "--json", run=succeed,
        )  # fmt: skip
    document = json.loads(done.stdout)
    assert document["digest"] is None
    assert set(document["flows"]) == {"dccp-ccid2", "dccp-ccid3", "sctp"}
    flows = document["flows"].values()
    # How much below depends on the machine.
    assert sum(flow["throughput_bps"] for flow in flows) < 8e6 * 1.1
    lost = document["measured"]["ends"]["server"]["overrun_datagrams"]
    for flow in flows:
        assert flow["received_packets"] > 0
        assert flow["received_packets"] + flow["lost_packets"] <= flow["sent_packets"]
    # What did not leave is not lost.
    assert sum(flow["lost_packets"] for flow in flows) <= lost
    assert document["measured"]["ends"]["client"]["policed_packets"] > 0


def test_a_path_that_falls_silent_is_told(measured):
    facts = talkspurt.load(measured[1] / "udp").manifest["measured"]
    assert facts["ends"]["client"]["silent_from_s"] is None
    assert not any("firewall" in note for note in notes(facts))
    facts["ends"]["server"]["silent_from_s"] = 1.25
    facts["flows"]["udp.reverse"]["silent_from_s"] = 2.5
    said = [note for note in notes(facts) if "firewall" in note]
    assert said == [
        "udp.reverse: nothing arrived any more after 2.5 s, while more was sent: "
        "is a firewall in between?",
        "At the server, no datagram arrived any more after 1.2 s, until "
        f"{facts['ends']['server']['ended_s']:.1f} s: is a firewall in between?",
    ]


@pytest.mark.parametrize(
    ("options", "env", "expected"),
    [
        ((), {"TALKSPURT_SECRET": "another secret, as long"}, "the server has another secret"),
        ((), {"TALKSPURT_SECRET": "short"}, "the secret has 5 characters"),
        (("--rate", "100Mbit/s"), SECRET, "the server permits 20Mbit/s a session"),
        (("--for", "10min"), SECRET, "the server permits 2min"),
        (("--for", "500ms"), SECRET, "--for 500ms: expected 1 s to 1 h"),
        (("--rate", "0bit/s"), SECRET, "--rate 0bit/s: expected more than 0"),
        (("--traffic", "bulk"), SECRET, "bulk over UDP has no rate"),
        (("--transport", "x", "--rate", "y", "--mtu", "1"), SECRET, "--transport x: unknown"),
        (("--up", "--down"), SECRET, "give one of them"),
        (("--traffic", "talkspurts", "--codec", "x"), SECRET, "codec"),
        (("--packet", "1400"), SECRET, "packets of 1400 B"),
    ],
)
def test_bad_input_is_told_in_a_line(refusing, options, env, expected):
    assert expected in measure(refusing, "--no-report", *options, env=env, run=told)


@pytest.fixture(scope="module")
def refusing():
    with server() as port:
        yield port


def test_a_host_without_a_server_is_told(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        done = measure(unused.getsockname()[1], run=refused)
    assert "nothing listens there" in done.stderr
    done = refused("measure", "no-such-host.invalid", env=SECRET)
    assert "no-such-host.invalid" in done.stderr
    done = refused("measure", "localhost", "--secret-file", tmp_path / "missing")
    open_to_all = tmp_path / "secret"
    open_to_all.write_text("a secret of these tests")
    open_to_all.chmod(0o644)
    done = refused("measure", "localhost", "--secret-file", open_to_all)
    assert "chmod 600" in done.stderr
    refused("serve", "--max-sessions", "0", env=SECRET)


def test_another_version_of_the_protocol_is_told():
    """A server that answers as a later version would."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        client = start("measure", f"127.0.0.1:{port}", env=SECRET)
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.recv(4096).startswith(b"TLKSPRT\x0a")
            accepted.sendall(b"TLKSPRT\x0b\x01")
            _, said = client.communicate(timeout=20)
    assert client.returncode == 2
    assert "speaks version 11 of the protocol" in said


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_stop_keeps_what_was_measured_and_measures_no_more(number, status, tmp_path):
    with serving() as (port, process):
        out = tmp_path / "out"
        client = start(
            "measure", f"127.0.0.1:{port}", "--transport", "udp", "--transport", "tfrc",
            "--for", "30s", "--no-report", "--out", out, env=SECRET,
        )  # fmt: skip
        wait_for_media(process, client, 5)
        client.send_signal(number)
        client.communicate(timeout=50)
    assert client.returncode == status
    assert [folder.name for folder in out.iterdir()] == ["udp"]
    result = talkspurt.load(out / "udp")
    assert 1 < result.duration_s < 30
    assert (result.flows["received_packets"] > 0).all()


def test_a_lost_server_stops_media_within_three_seconds_and_results_are_kept(tmp_path):
    out = tmp_path / "out"
    with serving() as (port, process):
        words = ("--for", "60s", "--no-report", "--out", out)
        client = start("measure", f"127.0.0.1:{port}", *words, env=SECRET)
        began = wait_for_media(process, client)
        process.send_signal(signal.SIGSTOP)  # its connection stays open, but it says nothing
        silent = time.monotonic() - began
        # Media stops, and the server's notes do not come in 5 s.
        _, said = client.communicate(timeout=50)
    assert client.returncode == 2
    assert "the control connection was lost" in said
    result = talkspurt.load(out)
    # Three seconds until it stops, and as many for a busy machine.
    assert result.duration_s < silent + 3 + 3
    down = result.flows.filter(name="udp.reverse").row(0, named=True)
    assert down["received_packets"] > 0
    up = result.flows.filter(name="udp").row(0, named=True)
    assert up["sent_packets"] > 0
    assert up["received_packets"] is None


NAMES = {"name", "transport", "source", "from", "to"}
SENDER = {
    "generated_packets", "queued_packets", "discarded_packets", "sent_packets", "control_packets",
    "sent_bytes", "network_header_bytes", "transport_header_bytes", "media_header_bytes",
    "payload_bytes",
}  # fmt: skip
"""Columns of the flows that the sending end notes."""
RECEIVER = {
    "received_packets", "received_bytes", "throughput_bps", "delay_min_s", "delay_mean_s",
    "delay_p50_s", "delay_p95_s", "delay_p99_s", "delay_max_s",
}  # fmt: skip
"""Columns that the receiving end notes of packets whose number and departure are sealed in them."""
REJECTED = {"rejected_packets", "damaged_packets"}
MEDIA = {"goodput_bps", "jitter_s"}
HELD = {"held_back_packets", "head_of_line_mean_s", "head_of_line_max_s"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--transport", "udp"), {"udp": SENDER, "udp.reverse": RECEIVER | REJECTED | MEDIA}),
        (
            ("--transport", "sctp", "--traffic", "talkspurts"),
            {"sctp": SENDER | {"handshake_wait_s"}, "sctp.reverse": RECEIVER | REJECTED | HELD},
        ),
        # Of acknowledgements that the server rejected, only the server knows.
        (("--down",), {"udp": RECEIVER | MEDIA}),
        (("--up",), {"udp": SENDER}),
    ],
)
def test_what_one_end_alone_cannot_know_is_null(options, expected, tmp_path):
    """The server is killed: whether Dst received a packet (RFC 7680 §2.4), only Dst can say."""
    out = tmp_path / "out"
    with serving() as (port, process):
        words = ("--for", "60s", "--seed", "5", "--no-report", "--out", out)
        client = start("measure", f"127.0.0.1:{port}", *options, *words, env=SECRET)
        assert " for " in process.stdout.readline()
        until_said(client, 3)  # of 60 s
        process.kill()
        _, said = client.communicate(timeout=50)
    assert client.returncode == 2
    assert "the control connection was lost" in said
    assert "Traceback" not in said
    flows = talkspurt.load(out).flows
    known = {
        row["name"]: {key for key, value in row.items() if value is not None}
        for row in flows.iter_rows(named=True)
    }
    assert known == {name: NAMES | columns for name, columns in expected.items()}
    assert all(flows[column].fill_null(1).min() > 0 for column in ("sent_bytes", "received_bytes"))


def test_what_the_client_knows_is_written_before_the_server_is_asked(tmp_path):
    """Whatever becomes of the client while it waits for the server's notes."""
    out = tmp_path / "out"
    with serving() as (port, process):
        words = ("--for", "60s", "--no-report", "--out", out)
        client = start("measure", f"127.0.0.1:{port}", *words, env=SECRET)
        wait_for_media(process, client, 5)
        process.send_signal(signal.SIGSTOP)  # its connection stays open, but it says nothing
        until((out / "manifest.json").exists, client)
        assert client.poll() is None
        client.kill()
        client.communicate()
    result = talkspurt.load(out)
    assert not result.manifest["measured"]["complete"]
    up, down = result.flows["sent_packets"][0], result.flows["received_packets"][1]
    assert min(up, down) > 50


def test_a_flood_that_takes_all_descriptors_keeps_nobody_out():
    """Of 40 descriptors; the flood comes from one address, the client from another."""
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))  # noqa: E731
    with serving(preexec_fn=few) as (port, _), contextlib.ExitStack() as held:
        for _ in range(60):
            held.enter_context(
                socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.9", 0))
            )
        measure(port, "--for", "1s", "--json", run=succeed)


def test_attacks_do_not_disturb_a_measurement():
    """Floods of connections, of bytes, and of datagrams while a client measures."""
    with server("--media-ports", "29000-29009") as port, contextlib.ExitStack() as held:
        client = start("measure", f"127.0.0.1:{port}", "--for", "2s", "--json", env=SECRET)
        for _ in range(150):  # half open: they say nothing
            held.enter_context(socket.create_connection(("127.0.0.1", port)))
        with socket.create_connection(("127.0.0.1", port)) as oversized:
            oversized.sendall(b"TLKSPRT\x03\xff\xff" + bytes(65535))
        datagrams = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        while client.poll() is None:
            datagrams.sendto(os.urandom(200), ("127.0.0.1", 29000))
            time.sleep(0.002)  # the rate of the flood
        printed, said = client.communicate(timeout=30)
        # The flood of connections keeps no other client out.
        after = measure(port, "--for", "1s", "--json")
    assert client.returncode == 0, said
    document = json.loads(printed)
    for flow in document["flows"].values():
        assert flow["lost_packets"] == 0
        assert flow["received_packets"] == flow["sent_packets"] > 0
    assert document["measured"]["ends"]["server"]["refused_datagrams"] > 0
    assert after.returncode == 0, after.stderr


def namespaces():
    """Why two network namespaces cannot be made, or None."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "needs root and iproute2"
    name = f"tsp-{os.getpid()}"
    made = process("ip", "netns", "add", name)
    process("ip", "netns", "del", name)
    return None if made.returncode == 0 else "network namespaces cannot be made here"


WITHOUT = namespaces()


@pytest.fixture
def two_hosts():
    """Two namespaces joined by veth, with addresses of both families; their names."""
    if WITHOUT:
        pytest.skip(WITHOUT)

    ip = functools.partial(output, "ip")
    here, there = f"tsa-{os.getpid()}", f"tsb-{os.getpid()}"
    for name in (here, there):
        ip("netns", "add", name)
    try:
        veth = f"link add v0 type veth peer name v0 netns {there}"
        ip("netns", "exec", here, "ip", *veth.split())
        for last, name in enumerate((here, there), 1):
            inside = ("-n", name)
            for words in (f"10.77.0.{last}/24", f"fd77::{last}/64", f"fe80::{last}/64"):
                ip(*inside, "addr", "add", words, "dev", "v0", *["nodad"] * (":" in words))
            for device in ("v0", "lo"):
                ip(*inside, "link", "set", device, "up")
        yield here, there
    finally:
        for name in (here, there):
            ip("netns", "del", name)


@contextlib.contextmanager
def server_on(there, address):
    """A running server on a host."""
    env = {**os.environ, **SECRET, "PYTHONUNBUFFERED": "1"}
    words = ["ip", "netns", "exec", there, *TALKSPURT, "serve", "--listen", f"{address}:7862"]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout.readline().startswith("Listening on ")
            yield serving
        finally:
            serving.send_signal(signal.SIGINT)
            serving.wait(timeout=20)


def client_on(here, *words):
    return ["ip", "netns", "exec", here, *TALKSPURT, "measure", *words]


@pytest.mark.parametrize(
    ("address", "header", "listen"),
    [
        ("10.77.0.2", 20, "[::]"),  # it hears both families
        ("[fd77::2]", 40, "[::]"),
        ("[fe80::2%v0]", 40, "[::]"),
        ("[fe80::2%v0]", 40, "[fe80::2%v0]"),
    ],
)
def test_a_path_between_two_hosts(two_hosts, address, header, listen, tmp_path):
    here, there = two_hosts
    out = tmp_path / "out"
    words = (address, "--no-report", "--for", "1s", "--out", out, "--transport", "dccp-ccid3")
    with server_on(there, listen):
        output(*client_on(here, *words), env=SECRET)
    flows = talkspurt.load(out).flows
    assert (flows["lost_packets"] == 0).all()
    assert (flows["received_packets"] > 0).all()
    # IP, the seal, and UDP around DCCP.
    assert (flows["network_header_bytes"] / flows["sent_packets"] == header + 38 + 8).all()


NO_INTERFACE = "a link-local address needs its interface, as in [fe80::2%eth0]"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("measure [fe80::2]:9", NO_INTERFACE),
        ("serve --listen [fe80::2]:9", NO_INTERFACE),
        ("serve --listen [fe80::2%absent0]:9", "no interface absent0"),
    ],
)
def test_a_link_local_address_needs_an_interface(words, said):
    command, *given = words.split()
    line = told(command, *given, env=SECRET)
    assert line == f"talkspurt: {' '.join(given)}: {said}\n"


def test_an_interface_that_disappears_is_told_and_results_are_kept(two_hosts, tmp_path):
    here, there = two_hosts
    out = tmp_path / "out"
    words = ("10.77.0.2", "--no-report", "--for", "30s", "--out", out)
    with (
        server_on(there, "10.77.0.2") as process,
        subprocess.Popen(
            client_on(here, *words), env={**os.environ, **SECRET}, stderr=subprocess.PIPE, text=True
        ) as broken,
    ):
        wait_for_media(process, broken)
        output("ip", "-n", here, "link", "del", "v0")
        _, said = broken.communicate(timeout=50)
    assert broken.returncode == 2
    assert "the control connection was lost" in said
    up, down = talkspurt.load(out).flows.sort("name").iter_rows(named=True)
    assert up["sent_packets"] > 0
    assert up["received_packets"] is None
    assert down["received_packets"] > 0


def measured_over(folder, links, *options, serve=()):
    """The result of `talkspurt measure` from `here` to `there` in an emulation with these links."""
    nothing = flow_text("nothing", "here>there", UDP, cbr("1kbit/s", "10B"))
    text = scenario_text("a path", "60s", links, nothing)
    (folder / "path.toml").write_text(text)
    program = TALKSPURT
    succeed(
        "emulate", folder / "path.toml", "--out", folder / "run", "--no-report",
        "--serve", "there", "--", *program, "serve", "--listen", "0.0.0.0:7862", *serve,
        "--at", "here", "--", *program, "measure", "10.0.0.2", *options, "--no-report",
        "--out", folder / "out", env=SECRET,
    )  # fmt: skip
    return talkspurt.load(folder / "out")


ASYMMETRIC = link_text(
    "path", "here>there", "20Mbit/s", "20ms", loss=0.05, back='{ delay = "60ms", loss = 0.0 }'
)


@pytest.mark.skipif(NO_EMULATION is not None, reason=str(NO_EMULATION))
def test_a_known_path_is_measured_within_the_bounds(tmp_path):
    """Over the links of an emulation, whose delays and losses are known from its scenario."""
    result = measured_over(tmp_path, ASYMMETRIC, "--rate", "256kbit/s", "--for", "3s")
    facts = result.manifest["measured"]
    bound = facts["clock_offset_bound_s"]
    # The machine may be late, never early.
    assert 0.080 <= facts["rtt_min_s"] < 0.085
    assert 0.040 <= bound < 0.080
    up = result.flows.filter(name="udp").row(0, named=True)
    down = result.flows.filter(name="udp.reverse").row(0, named=True)
    # The asymmetry cannot be seen: both are half of the round trip, within the bound of the truth.
    for row, truth in ((up, 0.020), (down, 0.060)):
        assert row["delay_min_s"] == pytest.approx(0.040, abs=0.004)
        assert abs(row["delay_min_s"] - truth) <= bound
    # 600 packets, of which 5 % are lost: a standard deviation is 5.3 packets.
    assert up["lost_packets"] == pytest.approx(0.05 * up["sent_packets"], abs=5 * 5.3)
    assert up["lost_packets"] > 0
    assert down["lost_packets"] == 0
