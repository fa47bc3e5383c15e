"""`talkspurt measure` and `call` over DCCP and SCTP directly over IP: packets as tshark reads them, privileges,
paths that drop the protocols, and attacks."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import polars as pl
import pytest

import talkspurt
from command import TALKSPURT, dissected, needs_tshark, process, succeed, told
from talkspurt.real_time.measuring import notes
from test_call import THERE, answering, calling
from test_emulate import OBSTACLE as NO_EMULATION
from test_measure import SECRET, measure, measured_over, server
from texts import link_text

PROTOCOLS = Path("/proc/net/protocols")
SPOKEN = (
    {line.split()[0] for line in PROTOCOLS.read_text().splitlines()}
    if PROTOCOLS.exists()
    else {"DCCP"}
)
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or SPOKEN & {"DCCP", "DCCPv6", "SCTP", "SCTPv6"},
    reason="raw sockets need Linux, root, and a kernel that does not speak DCCP or SCTP itself",
)
DIRECT = ("dccp-ccid2-ip", "dccp-ccid3-ip", "dccp-ccid4-ip", "sctp-ip")


def opened(*words, **env):
    """A program with the secret, and its output as it comes."""
    env = {**os.environ, **SECRET, **env, "PYTHONUNBUFFERED": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([str(word) for word in words], **pipes, env=env)


@contextlib.contextmanager
def listening(address, prefix=(), *options):
    """A server on this address, run by a prefix; its port."""
    words = (*prefix, *TALKSPURT, "serve", "--listen", f"{address}:0", "--user", "nobody", *options)
    running = opened(*words)
    try:
        line = running.stdout.readline()
        assert line.startswith("Listening on "), line + running.stderr.read()
        yield int(line.split(": at most")[0].rsplit(":", 1)[1])
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=20)


@contextlib.contextmanager
def captured(file, what):
    """Captures what passes the loopback interface."""
    process = subprocess.Popen(
        ["dumpcap", "-q", "-i", "lo", "-f", what, "-w", file], stderr=subprocess.PIPE, text=True
    )
    # It names the file when the interface and the file are open.
    while "File:" not in process.stderr.readline():
        assert process.poll() is None
    try:
        yield
    finally:
        # Until it has taken over what the kernel holds, of which it says nothing.
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


@needs_tshark
@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_the_network_sees_genuine_packets_of_the_lengths_in_the_tables(tmp_path, address):
    transports = [word for name in DIRECT for word in ("--transport", name)]
    kind = "ip" if address[0] == "1" else "ip6"
    with (
        listening(address, (), "--raw-ip") as port,
        captured(tmp_path / "x.pcapng", f"{kind} proto 33 or {kind} proto 132"),
    ):
        succeed(
            "measure", f"{address}:{port}", *transports, "--together", "--traffic", "cbr",
            "--for", "2s", "--out", tmp_path / "out", "--no-report", env=SECRET,
        )  # fmt: skip
    result = talkspurt.load(tmp_path / "out")
    rows = result.flows.rows(named=True)
    assert len(rows) == 8
    for row in rows:
        assert row["transport"] == row["name"].removesuffix(".reverse")
        assert row["sent_packets"] == row["received_packets"] > 50
        # IP and the seal: of DCCP 38 bytes, of SCTP 44.
        seal = 44 if "sctp" in row["name"] else 38
        header = seal + (20 if kind == "ip" else 40)
        assert row["network_header_bytes"] == header * row["sent_packets"]
    for facts in result.manifest["measured"]["flows"].values():
        assert facts["blocked"] is None
    assert {"loss_event_rate", "rate"} <= set(result.gauges("dccp-ccid3-ip")["gauge"])
    fields = ("frame.protocols", "ip.len", "ipv6.plen", "dccp.checksum.status", "sctp.checksum.status",
              "_ws.expert.message", "_ws.malformed", "sctp.chunk_type", "dccp.type")  # fmt: skip
    checks = ["-o", "dccp.check_checksum:TRUE", "-o", "sctp.checksum:CRC 32c"]
    seen = {"dccp": [0, 0], "sctp": [0, 0]}
    chunks = set()
    for line in dissected(tmp_path / "x.pcapng", *fields, options=checks):
        protocols, four, six, dccp, sctp, expert, malformed, kinds, kind = line
        name = "dccp" if ":dccp" in protocols else "sctp"
        assert f":{name}" in protocols
        assert (dccp or sctp) == "1", line
        assert (expert, malformed) == ("", ""), line
        chunks |= set(kinds.split(",")) if kinds else set()
        # Tables count packets with data: DCCP-Data and DataAck, and those with DATA.
        if kind in ("2", "4") or "0" in kinds.split(","):
            seen[name][0] += 1
            seen[name][1] += int(four) if four else int(six) + 40
    # DATA, INIT, INIT ACK, SACK, COOKIE ECHO, COOKIE ACK, SHUTDOWN, its ACK and COMPLETE, PAD.
    assert {"0", "1", "2", "3", "10", "11", "7", "8", "14", "132"} <= chunks
    for name, lengths in seen.items():
        of = [row for row in rows if row["name"].startswith(name)]
        for what, on_wire in zip(("packets", "bytes"), lengths, strict=True):
            told = sum(row[f"sent_{what}"] for row in of)
            # A packet or two of each flow may leave after the sources' time.
            assert on_wire * 0.97 <= told <= on_wire


NO_RAW = ("setpriv", "--bounding-set=-net_raw")
needs_setpriv = pytest.mark.skipif(
    shutil.which("setpriv") is None, reason="setpriv is not installed"
)


def told_without(*words):
    """The line that a command says which may not have the privilege."""
    done = process(*NO_RAW, *TALKSPURT, *words, env=SECRET)
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1), done.stderr
    return done.stderr


@needs_setpriv
def test_without_the_privilege_the_client_sends_nothing():
    said = told_without("measure", "192.0.2.1", "--transport", "sctp-ip")
    assert "--transport sctp-ip: SCTP directly over IP needs the privilege CAP_NET_RAW" in said


@needs_setpriv
def test_a_server_without_the_privilege_refuses_these_flows_and_serves_others():
    with listening("127.0.0.1", NO_RAW) as port:
        said = measure(port, "--transport", "dccp-ccid2-ip", run=told)
        measure(port, "--transport", "dccp-ccid2", "--for", "1s", "--json", run=succeed)
    assert "refused: the server was started without --raw-ip" in said


@needs_setpriv
def test_a_server_that_has_no_raw_sockets_does_not_start_with_them():
    said = told_without("serve", "--listen", "127.0.0.1:0", "--raw-ip")
    assert "directly over IP needs the privilege CAP_NET_RAW" in said


def privileges(pid):
    """Capabilities and the flag that no program gets more, of each thread."""
    wanted = ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs")
    for thread in Path(f"/proc/{pid}/task").iterdir():
        lines = dict(line.split(":\t") for line in (thread / "status").read_text().splitlines())
        yield tuple(int(lines[name].strip(), 16) for name in wanted)


@needs_setpriv
@pytest.mark.parametrize(
    ("user", "options"),
    [
        ((), ("--user", "nobody")),
        (("--reuid=65534", "--ambient-caps=+net_raw"), ()),
    ],
    ids=["root", "user"],
)
def test_a_server_with_raw_sockets_has_no_privileges_left(user, options):
    prefix = ("setpriv", "--inh-caps=+net_raw", *user)
    words = [*prefix, *TALKSPURT, "serve", "--listen", "127.0.0.1:0", "--raw-ip", *options]
    with opened(*words) as running:
        try:
            line = running.stdout.readline()
            assert line.startswith("Listening on "), line + running.stderr.read()
            found = set(privileges(running.pid))
        finally:
            running.send_signal(signal.SIGINT)
    assert found == {(0, 0, 0, 0, 1)}


needs_open_python = pytest.mark.skipif(
    not all(path.stat().st_mode & 0o005 == 0o005 for path in Path(os.__file__).parents),
    reason="Python's modules are in a folder of root",
)


@pytest.fixture
def all_write():
    """A folder in which other users may write, which they may not in those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@needs_setpriv
@pytest.mark.parametrize(
    ("user", "sudo"),
    [
        pytest.param((), {}, id="root"),
        pytest.param(("--reuid=65534", "--ambient-caps=+net_raw"), {}, id="user"),
        pytest.param((), {"SUDO_UID": "65534"}, id="sudo", marks=needs_open_python),
    ],
)
def test_an_answerer_has_no_privileges_left_and_answers_directly_over_ip(all_write, user, sudo):
    prefix = ("setpriv", "--inh-caps=+net_raw", *user)
    words = [
        *prefix, *TALKSPURT, "answer", "--listen", "127.0.0.1:0", "--speech", THERE,
        "--heard", all_write / "there.wav", "--out", all_write / "there", "--no-report",
        "--calls", "2",
    ]  # fmt: skip
    with opened(*words, **sudo, HOME=str(all_write)) as running:
        line = running.stdout.readline()
        assert line.startswith("Waiting for a call on 127.0.0.1:"), line + running.stderr.read()
        port = int(line.split(":")[1].split(".")[0])
        found = {*privileges(running.pid)}
        done = []
        for transport in ("dccp-ccid3-ip", "sctp-ip"):
            options = ("--transport", transport, "--for", "1s", "--no-report", "--overwrite")
            done.append(calling(all_write, port, *options))
        _, said = running.communicate(timeout=60)
    assert found == {(0, 0, 0, 0, 1)}
    assert [it.returncode for it in done] == [0, 0], [it.stderr for it in done]
    assert running.returncode == 0, said
    owner = 65534 if user or sudo else 0
    for name in ("there.wav", "there-2.wav", "there/1/manifest.json", "there/2/manifest.json"):
        assert (all_write / name).stat().st_uid == owner


@needs_open_python
def test_an_answerer_says_before_a_call_what_it_may_not_write(all_write):
    all_write.chmod(0o755)
    files = ("--heard", all_write / "there.wav", "--out", all_write / "a/there")
    words = ("answer", "--listen", "127.0.0.1:0", "--speech", THERE, *files)
    done = process(*TALKSPURT, *words, env={**SECRET, "SUDO_UID": "65534"})
    assert done.returncode == 2
    assert done.stderr == (
        f"talkspurt: --heard {all_write}/there.wav: {all_write} may not be written by this user; "
        f"--out {all_write}/a/there: {all_write} may not be written by this user\n"
    )


def test_a_session_with_raw_sockets_is_followed_by_another():
    """The only raw socket is used again, by a client on other ports."""
    with server("--raw-ip", "--max-sessions", "1") as port:
        for _ in range(2):
            options = ("--transport", "dccp-ccid2-ip", "--for", "1s", "--json")
            done = measure(port, *options, run=succeed)
            for flow in json.loads(done.stdout)["flows"].values():
                assert flow["received_packets"] == flow["sent_packets"] > 30


def in_namespace(script, before=""):
    """The output of a script in a network namespace, where a server permits flows directly over IP."""
    program = f"{sys.executable} -m talkspurt"
    script = f"""
    ip link set lo up
    {before}
    {program} serve --listen 127.0.0.1:7862 --user nobody --raw-ip &> /dev/null &
    for _ in $(seq 100); do ss -Hltn | grep -q 7862 && break; sleep 0.1; done
    measure() {{ {program} measure 127.0.0.1 --json "$@"; }}
    {script}
    kill -INT %1
    """
    return process("unshare", "-n", "bash", "-c", script, env=SECRET)


def measured_behind(rules, *options):
    """The document of a measurement in a namespace with these rules of nftables: hook and rule."""
    table = "".join(
        f"chain {hook} {{\n type filter hook {hook} priority 0\n {rule}\n}}\n"
        for hook, rule in rules
    )
    before = f"set -e\nnft -f - <<< 'table inet t {{\n{table}}}'"
    done = in_namespace(f"measure --together --for 1s {' '.join(options)}", before)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


needs_namespaces = pytest.mark.skipif(
    None in map(shutil.which, ("nft", "unshare", "ip", "ss")),
    reason="needs nft, ip, ss and unshare",
)


@needs_namespaces
@pytest.mark.parametrize(
    ("rules", "way", "expected"),
    [
        # A stateful firewall follows associations from INIT to SHUTDOWN COMPLETE.
        ([("input", "meta l4proto 33 drop\n meta l4proto 132 ct state invalid drop")], "--both",
         {"dccp-ccid3-ip": "no DCCP packet from the client arrived at the server: something on the path "
                           "drops IP protocol 33", "sctp-ip": None}),
        # The answers of an association are dropped; the system of a client does not send.
        ([("input", "meta l4proto 132 ct state established drop"), ("output", "meta l4proto 33 drop")],
         "--up",
         {"sctp-ip": "no SCTP packet from the server arrived at the client: something on the path drops IP "
                     "protocol 132",
          "dccp-ccid2-ip": "no DCCP packet left the client, whose system refuses to send them"}),
        ([("input", "meta l4proto 132 drop")], "--down",
         {"sctp-ip": "no SCTP packet from the server arrived at the client: something on the path drops IP "
                     "protocol 132, or lets no connection in that the server opens"}),
    ],
    ids=["both", "up", "down"],
)  # fmt: skip
def test_a_path_that_drops_a_protocol_is_told(rules, way, expected):
    transports = [word for name in (*expected, "udp") for word in ("--transport", name)]
    document = measured_behind(rules, way, *transports)
    for name, facts in document["measured"]["flows"].items():
        assert facts["blocked"] == expected.get(name.removesuffix(".reverse"))
    for name, flow in document["flows"].items():
        if expected.get(name.removesuffix(".reverse")) is None:
            assert flow["sent_packets"] == flow["received_packets"] > 0
        else:
            assert flow["received_packets"] == 0
    for end in document["measured"]["ends"].values():
        assert end["refused_datagrams"] == 0


@needs_namespaces
@pytest.mark.parametrize("way", ["up", "down"])
def test_packets_that_the_route_does_not_carry_are_refused_before_anything_is_sent(way):
    options = f"--transport sctp-ip --{way} --traffic cbr --for 2s"
    done = in_namespace(f"""
    ip link set lo mtu 1000
    measure {options} --packet 825
    measure {options} --packet 824
    """)
    end = {"up": "client", "down": "server"}[way]
    assert (
        f"sctp-ip: packets of 825 B: expected at most 824 B, as the route from the {end} has an MTU of 1000 B"
        in done.stderr
    )
    (flow,) = json.loads(done.stdout)["flows"].values()
    assert flow["received_packets"] == flow["sent_packets"] > 10


@needs_namespaces
def test_packets_that_the_route_carries_no_longer_are_told():
    # Once some have been sent: how long a loaded machine takes to start is not known.
    done = in_namespace("""
    sent() { awk '$1 == "lo:" { print $10 }' /proc/net/dev; }
    (until [ $(sent) -gt 18000 ]; do sleep 0.05; done; ip link set lo mtu 700) &
    measure --transport dccp-ccid2-ip --up --traffic cbr --packet 900 --for 4s
    """)
    document = json.loads(done.stdout)
    (flow,) = document["flows"].values()
    assert flow["received_packets"] == flow["sent_packets"] > 5
    end = document["measured"]["ends"]["client"]
    assert end["unsent_packets"] >= end["too_long_packets"] > 5
    assert end["route_mtu_bytes"] == 700
    note = "longer than the MTU of its route, 700 B: "
    assert any(note in said for said in notes(document["measured"]))


def test_replays_copies_and_noise_are_refused_and_not_answered():
    """An attacker on the path repeats each packet, also from another address, and sends noise to its ports."""
    over, heard = threading.Event(), []

    def attack():
        seen = set()
        kind = (socket.AF_INET, socket.SOCK_RAW)
        with socket.socket(*kind, 132) as ear, socket.socket(*kind, socket.IPPROTO_RAW) as mouth:
            ear.bind(("127.0.0.1", 0))
            ear.settimeout(0.1)
            strange = socket.inet_aton("127.0.0.9")
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    packet = ear.recv(65536)
                    if packet[20:] in seen:
                        continue
                    seen.add(packet[20:])
                    noise = packet[:32] + os.urandom(len(packet) - 32)
                    seen.add(noise[20:])
                    for each in (packet, packet[:12] + strange + packet[16:], noise):
                        mouth.sendto(each, ("127.0.0.1", 0))

    def hear():
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, 132) as ear:
            ear.bind(("127.0.0.9", 0))
            ear.settimeout(0.1)
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    heard.append(ear.recv(65536))

    threads = [threading.Thread(target=each) for each in (attack, hear)]
    with server("--raw-ip") as port:
        for thread in threads:
            thread.start()
        try:
            options = ("--transport", "sctp-ip", "--for", "1s", "--json")
            done = measure(port, *options, run=succeed)
        finally:
            over.set()
            for thread in threads:
                thread.join()
    document = json.loads(done.stdout)
    for flow in document["flows"].values():
        assert flow["received_packets"] == flow["sent_packets"] > 30
    for end in document["measured"]["ends"].values():
        assert end["refused_datagrams"] > 60
    assert heard == []


def test_a_call_agrees_on_its_codecs_in_packets_of_dccp(tmp_path):
    with answering(tmp_path, "--codec", "pcmu,g722", "--no-report") as (port, _):
        options = ("--transport", "dccp-ccid4-ip", "--codec", "opus,g722,pcmu", "--for", "2s")
        calling(tmp_path, port, *options, "--no-report", run=succeed)
    result = talkspurt.load(tmp_path / "here")
    assert result.manifest["measured"]["call"]["codecs"] == ["g722", "pcmu"]
    assert set(result.flows["transport"]) == {"dccp-ccid4-ip"}
    assert (result.flows["received_packets"] > 30).all()


LOSSY = link_text("path", "here>there", "4Mbit/s", "20ms", 50, loss=0.02, back="{ loss = 0.0 }")


@pytest.mark.skipif(NO_EMULATION is not None, reason=str(NO_EMULATION))
def test_ccid3_finds_the_same_path_as_in_udp(tmp_path):
    result = measured_over(
        tmp_path, LOSSY, "--transport", "dccp-ccid3-ip", "--transport", "dccp-ccid3", "--together",
        "--traffic", "bulk", "--up", "--for", "7s", serve=("--raw-ip",),
    )  # fmt: skip
    gauges = result.gauges().filter(side="from").filter(pl.col("time_s") > 3.5)
    means = {}
    for flow in ("dccp-ccid3", "dccp-ccid3-ip"):
        of = gauges.filter(flow=flow)
        means[flow] = {
            name: of.filter(gauge=name)["value"].mean()
            for name in ("loss_event_rate", "srtt", "rate")
        }
        # At most the share of lost packets, and less as losses of one round-trip time are one event.
        assert 0.005 < means[flow]["loss_event_rate"] < 0.04
        assert 0.040 < means[flow]["srtt"] < 0.080
    ratio = means["dccp-ccid3-ip"]["rate"] / means["dccp-ccid3"]["rate"]
    assert 1 / 2.5 < ratio < 2.5
    flows = {row["name"]: row for row in result.flows.rows(named=True)}
    # Payload, and IP 20, UDP 8, seal 38, DCCP 16.
    for name, header in (("dccp-ccid3", 82), ("dccp-ccid3-ip", 74)):
        assert flows[name]["sent_bytes"] == pytest.approx(
            (1200 + header) * flows[name]["sent_packets"], rel=0.01
        )
