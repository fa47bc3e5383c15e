"""`talkspurt measure` and `call` over the kernel's TCP: results, errors, and attacks on its streams."""

import contextlib
import json
import os
import random
import select
import shutil
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

import talkspurt
from command import refused, succeed, told
from ports import free_port
from test_emulate import OBSTACLE as NO_EMULATION
from test_measure import SECRET, measure, measured_over, server, speech_both_ways
from texts import link_text

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="serve and measure need Linux")


def controllers(which):
    """Those that the kernel has available or allowed, or the default one."""
    return Path(f"/proc/sys/net/ipv4/tcp_{which}congestion_control").read_text().split()


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Speech both ways over both spellings; what was printed, and the folder."""
    options = ("--transport", "tcp", "--transport", "tcp-reno", "--together", "--for", "3s")
    return speech_both_ways(tmp_path_factory.mktemp("measured") / "out", *options)


def test_a_measurement_of_tcp_is_a_run_to_other_commands(measured, tmp_path):
    said, out = measured
    assert max(map(len, said.splitlines())) <= 80
    result = talkspurt.load(out)
    rows = {row["name"]: row for row in result.flows.iter_rows(named=True)}
    assert set(rows) == {f"{name}{way}" for name in ("tcp", "tcp-reno") for way in ("", ".reverse")}
    (system,) = controllers("")
    for name, row in rows.items():
        assert row["transport"] == ("tcp-reno" if "reno" in name else f"tcp-{system}")
        assert row["sent_packets"] == row["received_packets"] > 0
        assert row["lost_packets"] == 0
        assert 1 <= row["mos"] <= 4.5
        # Of a unit: length, seal and RTP; headers of TCP and IP are not known.
        assert row["network_header_bytes"] == 40 * row["sent_packets"]
        assert row["transport_header_bytes"] == 0
        flow, reverse = name.removesuffix(".reverse"), name.endswith(".reverse")
        gauges = result.gauges(flow).filter(side="to" if reverse else "from")
        assert {"cwnd", "srtt", "rto"} <= set(gauges["gauge"])
        assert result.manifest["measured"]["flows"][name]["tcp"]["segments"] > 0
    assert "the kernel's TCP, whose parameters are not known" in result.scenario
    assert (out / "report.html").exists()
    copy = shutil.copytree(out, tmp_path / "copy")
    for words in (("metrics", out), ("plot", out, "goodput_over_time", "--out", tmp_path / "x.png"),
                  ("compare", out, copy, "--no-report", "--out", tmp_path / "both")):  # fmt: skip
        succeed(*words)


def test_bulk_stays_within_the_limit_of_the_server():
    options = ("--transport", "tcp-reno", "--traffic", "bulk", "--for", "1s", "--json")
    with server("--max-rate", "8Mbit/s") as port:
        done = measure(port, *options, run=succeed)
    document = json.loads(done.stdout)
    flows = document["flows"].values()
    assert len(flows) == 2
    # The headers of TCP count for the limit, and are not in the tables.
    assert sum(flow["throughput_bps"] for flow in flows) < 8e6 * 1.1
    for flow in flows:
        assert flow["received_packets"] > 50
        assert flow["lost_packets"] == 0
        assert flow["received_packets"] + flow["in_flight_packets"] == flow["sent_packets"]
    for end in document["measured"]["ends"].values():
        assert end["policed_packets"] == end["refused_datagrams"] == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--transport", "tcp-no-such", "--rate", "x"), "the kernel has no congestion controller"),
        (("--transport", "tcp-no-such", "--down"), "refused: tcp-no-such: the kernel has no"),
        (("--transport", "tcp-a-name-that-is-too-long"), "up to 15 letters"),
        (("--transport", "tcp-"), "up to 15 letters"),
        (("--transport", "tpc"), "tcp-CONTROLLER as in tcp-cubic"),
        (("--transport", "tcp", "--rate", "100Mbit/s"), "the server permits 20Mbit/s a session"),
    ],
)
def test_bad_input_is_told_in_a_line(refusing, options, expected):
    said = measure(refusing, "--no-report", *options, run=told)
    assert expected in said
    assert ("reno" in said) == ("the kernel has no" in expected)


@pytest.fixture(scope="module")
def refusing():
    with server() as port:
        yield port


@pytest.mark.skipif(os.geteuid() != 0, reason="the server gives up its privileges only as root")
def test_a_controller_that_needs_a_privilege_is_told(refusing):
    forbidden = sorted(set(controllers("available_")) - set(controllers("allowed_")))
    if not forbidden:
        pytest.skip("this kernel permits all its controllers to everybody")
    done = measure(refusing, "--transport", f"tcp-{forbidden[0]}", "--down", run=refused)
    assert f"controller {forbidden[0]} needs the privilege CAP_NET_ADMIN" in done.stderr


class Relay(threading.Thread):
    """Passes a measurement on from 127.0.0.2 to 127.0.0.1, and `spoils` what goes up in streams."""

    def __init__(self, port, media, spoil, *, listens=True):
        super().__init__(daemon=True)
        self.spoil, self.media, self.open = spoil, media, True
        ports = (port, media) if listens else (port,)
        self.listeners = {socket.create_server(("127.0.0.2", each)): each for each in ports}
        self.inner, self.outer = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
        self.inner.bind(("127.0.0.1", 0))
        self.outer.bind(("127.0.0.2", media))
        self.start()

    def run(self):
        other, streams, back = {}, set(), None
        while self.open:
            waited = [*self.listeners, *other, self.inner, self.outer]
            for each in select.select(waited, [], [], 0.1)[0]:
                if each in self.listeners:
                    client, _ = each.accept()
                    inside = socket.create_connection(("127.0.0.1", self.listeners[each]))
                    other.update({client: inside, inside: client})
                    if self.listeners[each] == self.media:
                        streams.add(client)
                elif each in (self.inner, self.outer):
                    data, source = each.recvfrom(65536)
                    if each is self.outer:
                        back = source
                        self.inner.sendto(data, ("127.0.0.1", self.media))
                    elif back is not None:
                        self.outer.sendto(data, back)
                elif each in other:
                    self.pass_on(each, other, each in streams)
        for each in (*self.listeners, *other, self.inner, self.outer):
            each.close()

    def pass_on(self, each, other, of_stream):
        with contextlib.suppress(OSError):
            if data := each.recv(65536):
                data = self.spoil(data) if of_stream else data
            if data:
                return other[each].sendall(data)
        inside = other.pop(each)
        del other[inside]
        each.close()
        inside.close()
        return None

    def stop(self):
        self.open = False
        self.join(30)


@contextlib.contextmanager
def relayed(spoil, **how):
    """A server behind a relay; the address to measure."""
    media = free_port()
    with server("--media-ports", f"{media}-{media}") as port:
        relay = Relay(port, media, spoil, **how)
        try:
            yield f"127.0.0.2:{port}"
        finally:
            relay.stop()


class After:
    """Spoils a stream once some of its media have passed."""

    def __init__(self, what, passed=4_000):
        self.what, self.left = what, passed

    def __call__(self, data):
        if self.left > 0:
            self.left -= len(data)
            return data
        return self.what(data)


def flipped(data):
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda _: b"", ("closed it", "reset")),
        (flipped, ("a unit is not authentic",)),
        (lambda _: b"\xff\xff", ("a unit of 65535 bytes", "reset")),
    ],
    ids=["closed", "damaged", "oversized"],
)
def test_a_broken_stream_stops_its_flow_and_results_are_kept(spoil, why):
    with relayed(After(spoil)) as address:
        done = succeed(
            "measure", address, "--transport", "tcp-reno", "--transport", "udp", "--together",
            "--for", "2s", "--json", env=SECRET,
        )  # fmt: skip
    document = json.loads(done.stdout)
    stopped = document["measured"]["flows"]["tcp-reno"]["stopped"]
    assert stopped
    assert all("the TCP connection broke" in each["why"] for each in stopped)
    assert any(words in each["why"] for each in stopped for words in why)
    assert document["flows"]["tcp-reno"]["received_packets"] > 0
    # The other flow goes on.
    both = [document["flows"][name]["received_packets"] for name in ("udp", "tcp-reno")]
    assert both[0] > both[1]


def test_a_stream_that_a_firewall_refuses_is_told():
    for spoil, listens, said in (
        (None, False, "was refused: is a firewall in between?"),
        (lambda _: b"", True, "was not answered by the server"),
    ):
        with relayed(spoil, listens=listens) as address:
            done = refused("measure", address, "--transport", "tcp", env=SECRET)
        assert f"the TCP connection of a flow {said}" in done.stderr


def test_attacks_on_the_port_of_streams_do_not_disturb_a_measurement():
    """Connections that say nothing, garbage, or too little, all the time, from the client's address."""
    media, over = free_port(), threading.Event()
    heard = []

    def attack():
        rng, held = random.Random(3), []
        while not over.is_set():
            time.sleep(0.0005)  # the rate of the attack
            with contextlib.suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", media), timeout=1))
                held[-1].setblocking(False)
                held[-1].sendall(rng.randbytes(rng.choice((0, 1, 2, 41, 4000))))
            for each in held[:-1]:
                with contextlib.suppress(OSError):
                    if answer := each.recv(100):
                        heard.append(answer)
            while len(held) > 200:
                held.pop(0).close()
        for each in held:
            each.close()

    with server("--media-ports", f"{media}-{media}") as port:
        attacker = threading.Thread(target=attack)
        attacker.start()
        try:
            done = measure(port, "--transport", "tcp-reno", "--for", "1s", "--json", run=succeed)
        finally:
            over.set()
            attacker.join()
    for flow in json.loads(done.stdout)["flows"].values():
        assert flow["received_packets"] == flow["sent_packets"] > 0
    assert heard == []


BOTTLENECK = link_text("path", "here>there", "4Mbit/s", "20ms")


@pytest.mark.skipif(NO_EMULATION is not None, reason=str(NO_EMULATION))
def test_tcp_fills_a_bottleneck_and_its_queue(tmp_path):
    """Over the links of an emulation, whose rate is known; the kernel's Reno fills the queue."""
    options = ("--transport", "tcp-reno", "--traffic", "bulk", "--up", "--for", "5s")
    result = measured_over(tmp_path, BOTTLENECK, *options)
    (row,) = result.flows.iter_rows(named=True)
    # A segment of 1500 bytes has 1448 of the stream; of a unit of 1242 there, 1200 are payload.
    most = 4e6 * 1448 / 1500 * 1200 / 1242
    assert 0.6 * most < row["goodput_bps"] < 1.02 * most
    # 100 packets of 1500 bytes take 300 ms, and 32 kB in the socket 65 ms.
    assert 0.06 < row["delay_p50_s"] < 0.45
    gauges = result.gauges()
    # The window fills the queue; what is in flight is in the queue and on the path.
    assert 40e3 < gauges.filter(gauge="cwnd")["value"].max() < 1e6
    assert 0.06 < gauges.filter(gauge="srtt")["value"].max() < 0.6
    facts = result.manifest["measured"]
    assert facts["flows"]["tcp-reno"]["tcp"]["retransmitted_segments"] > 0
    assert 0.040 <= facts["rtt_min_s"] < 0.060
    assert facts["rtt_max_s"] > 0.1, "probes meet the queue, too"
