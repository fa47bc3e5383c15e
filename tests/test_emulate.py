"""Real programs over a scenario's network: namespaces, packets, accounts. Needs root and TUN."""

import contextlib
import json
import math
import shutil
import signal
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import talkspurt
from command import refused, start, succeed, until
from command import talkspurt as command
from talkspurt.emulating import account, namespaces
from talkspurt.emulating.command import Wanted, wanted
from talkspurt.errors import BadInputError
from test_animation import close, of_table, on_page, shown, table_of, unpacked
from texts import BULK, UDP, cbr, flow_text, link_text, put, scenario_text

NETWORK = scenario_text(
    "Two hosts behind a router",
    "20s",
    link_text("lan", "laptop>router", "1Gbit/s", "1ms", 1000),
    link_text("line", "router>server", "8Mbit/s", "19ms"),
    flow_text("call", "router>server", playout='{ kind = "fixed" }'),
    seed=1,
    record="{ sojourn = true }",
)


def _obstacle():
    """Why nothing can be emulated here."""
    try:
        with talkspurt.Emulation(NETWORK, ["laptop"], set={"duration": "1s"}):
            return None
    except BadInputError as error:
        return str(error)


OBSTACLE = _obstacle()
real = pytest.mark.skipif(OBSTACLE is not None, reason=str(OBSTACLE))
PYTHON = (sys.executable, "-I", "-S", "-c")


def two_hosts(network=NETWORK, **given):
    """An emulation of programs at both hosts."""
    return talkspurt.Emulation(network, ["laptop", "server"], **given)


def program(text):
    """A program with a socket for datagrams; its first argument is the address of the server."""
    return f"""\
import json, hashlib, random, socket, struct, sys, time
at = sys.argv[1]
s = socket.socket(socket.AF_INET6 if ":" in at else socket.AF_INET, socket.SOCK_DGRAM)
{text}"""


ECHO = program("""\
s.bind((at, 5000))
while True:
    data, who = s.recvfrom(2000)
    s.sendto(data, who)
""")
ASK = program("""\
count, bytes, pause = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
s.settimeout(1)
took = []
for n in range(count):
    begin = time.monotonic()
    s.sendto(bytes * b"x", (at, 5000))
    try:
        s.recv(2000)
        took.append(time.monotonic() - begin)
    except TimeoutError:
        took.append(None)
    time.sleep(pause)  # the traffic's pauses
print(json.dumps(took))
""")


def asked(network, at, count=20, bytes=172, pause=0.01):
    """The answer times of an echo server at the node `server`."""
    server = network.serve("server", [*PYTHON, ECHO, at])
    found = script(network, "laptop", ASK, at, count, bytes, pause)
    server.send_signal(signal.SIGKILL)
    server.wait(5)
    return json.loads(found)


@pytest.fixture(scope="module")
def crossed(tmp_path_factory):
    """One emulation with packets of several kinds, its folder, and what the programs measured."""
    folder = tmp_path_factory.mktemp("crossed")
    times = {}
    sets = {"record.pcapng": ["line"], "record.packets": True}
    with two_hosts(folder=folder, set=sets) as network:
        for version in range(2):
            at = network.addresses["server"][version]
            times[at] = asked(network, at)
    return folder, network.result, times


@real
def test_packets_take_as_long_as_the_network_says(crossed):
    _, _, times = crossed
    for at, took in times.items():
        header = 40 if ":" in at else 20
        # Both links, both ways, and a packet at a time on the slow one.
        least = 2 * (0.001 + 0.019 + (172 + 8 + header) * 8 / 8e6)
        assert None not in took
        assert min(took) >= least
        assert sorted(took)[len(took) // 2] < least + 0.005


@real
def test_the_system_the_network_and_the_capture_count_the_same(crossed):
    folder, result, _ = crossed
    real_time = result.manifest["real_time"]
    assert account.findings({**real_time, "lateness": {"later_than_1ms_ratio": 0}}) == []
    hosts = {host["node"]: host for host in real_time["hosts"]}
    assert sorted(hosts) == ["laptop", "server"]
    for host in hosts.values():
        assert host["device"]["sent_packets"] == host["read_packets"] == host["sent_packets"] == 40
        assert host["device"]["received_packets"] == host["written_packets"] == 40
        assert host["device"]["sent_bytes"] == host["read_bytes"]
    assert real_time["sent_packets"] == real_time["arrived_packets"] == 80
    flows = result.flows.filter(pl.col("source") == "real")
    assert flows["transport"].to_list() == ["udp"] * 4
    assert flows["sent_packets"].to_list() == flows["received_packets"].to_list() == [20] * 4
    assert flows["lost_packets"].sum() == flows["in_flight_packets"].sum() == 0
    # What programs hand over and reject is not known.
    for what in ("generated", "queued", "discarded", "rejected", "damaged"):
        assert flows[f"{what}_packets"].null_count() == flows.height
    series = result.series().filter(pl.col("flow").is_in(flows["name"].implode()))
    for column in ("generated_packets", "generated_bytes", "discarded_packets"):
        assert series[column].null_count() == series.height
        assert result.series("call")[column].null_count() == 0
    assert result.flows.filter(name="call")["generated_packets"][0] > 0
    names = ["udp laptop-server:5000", "udp laptop-server:5000 IPv6"]
    assert flows["name"].to_list() == [n + end for n in names for end in ("", ".reverse")]
    ports = {it["flow"]: it["ports"] for it in real_time["flows"]}
    assert [ports[name][1] for name in names] == [5000, 5000]
    assert all(ports[name][0] >= 32768 for name in names)
    read = talkspurt._core.capture((folder / "line.pcapng").read_bytes())
    packets, _, left_out, frames, _ = read
    assert pl.DataFrame(left_out).is_empty()
    seen = pl.DataFrame(packets)
    call = result.flows.filter(name="call")
    sent = int(call["sent_packets"][0] + call["control_packets"][0])
    # What waited for the link, or was on it, at the end, is not in the capture.
    router = seen.filter(src="10.0.0.2").height
    assert sent - 5 <= router <= sent
    # A longer emulation has RTCP reports of the receiver, which are none of the sender's packets.
    reports = seen.filter((pl.col("src_port") != 5000) & (pl.col("src") == "10.0.0.3")).height
    assert frames == 80 + router + reports
    ports = seen.filter((pl.col("src_port") == 5000) | (pl.col("dst_port") == 5000))
    assert ports.height == 80


@real
def test_the_result_is_like_a_run_but_without_a_digest(crossed, tmp_path):
    _, result, _ = crossed
    assert result.manifest["digest"] is None
    assert result.digest == ""
    assert result.to_json()["digest"] is None
    folder = result.save(tmp_path / "saved")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Packets of each node" in page
    assert "from the first packet of a program in the window of measurement" in page
    assert "in real time" in page
    again = talkspurt.load(folder)
    assert again.flows.equals(result.flows)
    assert again.series().equals(result.series())
    assert again.manifest["real_time"] == result.manifest["real_time"]
    assert again.excerpt.equals(result.excerpt)
    assert (folder / "excerpt.parquet").stat().st_size < 100_000
    (folder / "report.html").unlink()
    assert command("report", folder).returncode == 0
    assert "first packet of a program" in (folder / "report.html").read_text(encoding="utf-8")
    found = refused("export", folder, "--to", "pcapng")
    assert "cannot be repeated" in found.stderr


@real
def test_the_animation_has_the_packets_of_the_table(crossed):
    _, result, _ = crossed
    made = shown(result)
    begin, end = made.data["from"], made.data["to"]
    first = result.packets().filter(pl.col("flow") != "call")["enqueued_s"].min()
    assert begin == pytest.approx(first, abs=1e-9)
    rows = unpacked(made.data)
    close(on_page(rows, end), of_table(table_of(result, begin, end), end))
    assert {"call", *result.flows.filter(source="real")["name"]} >= set(rows["flow"])
    assert rows.filter(pl.col("flow") != "call").height == 2 * 80


def script(network, node, text, *words):
    found = network.run(node, [*PYTHON, text, *map(str, words)], timeout=30)
    assert found.returncode == 0, found.stderr
    return found.stdout


SEND = program("""\
count, tos = int(sys.argv[2]), int(sys.argv[3])
s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
for n in range(count):
    s.sendto(1000 * b"x", (at, 5000))
""")
HEAR = program("""\
s.bind((at, 5000))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
s.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
s.settimeout(float(sys.argv[2]))
try:
    while True:
        _, control, _, _ = s.recvmsg(2000, 100)
        print(control[0][2][0], flush=True)
except TimeoutError:
    pass
""")


@real
def test_the_animation_begins_before_the_first_drop_of_a_program(tmp_path):
    few = {
        "links.line.queue": "{ kind = 'droptail', packets = 5 }",
        "links.line.rate": "300kbit/s",
        "record.animation.packets": 1000,
        "record.packets": True,
    }
    speech = NETWORK[NETWORK.index("source = {") :]
    # Its packets are dropped first.
    busy = NETWORK.replace(speech, "source = { kind = 'cbr', packet = '900B', rate = '1Mbit/s' }")
    with two_hosts(busy, set=few) as network:
        at = network.addresses["server"][0]
        script(network, "laptop", SEND, at, 40, 0)
    result = network.result
    made = shown(result)
    assert "around the first packet of a program that is dropped" in made.lead
    lost = result.packets().filter((pl.col("flow") != "call") & (pl.col("fate") == "full"))
    begin, end = made.data["from"], made.data["to"]
    assert begin < lost["enqueued_s"].min() < end
    close(on_page(unpacked(made.data), end), of_table(table_of(result, begin, end), end))
    none = {"record.animation.packets": 0, "duration": "300ms"}
    with two_hosts(set=none) as network:
        pass
    assert network.result.excerpt is None
    assert shown(network.result).startswith("the scenario asks for none")


CODEL = "{ kind = 'codel', packets = 1000, ecn = true }"


@real
def test_queues_mark_packets_and_keep_their_code_point(tmp_path):
    (tmp_path / "seen").touch()
    with (
        (tmp_path / "seen").open("w") as out,
        two_hosts(set={"links.line.queue": CODEL}) as network,
    ):
        at = network.addresses["server"][0]
        heard = network.serve("server", [*PYTHON, HEAR, at, "1"], stdout=out)
        script(network, "laptop", SEND, at, 300, 46 << 2 | 2)
        assert heard.wait(15) == 0
    seen = [int(line) for line in (tmp_path / "seen").read_text().split()]
    assert {it >> 2 for it in seen} == {46}
    assert {it & 3 for it in seen} == {2, 3}
    line = network.result.links.filter(name="line")
    # The call cannot be marked.
    assert sum(it & 3 == 3 for it in seen) == line["marks"][0]
    lost = network.result.flows.filter(source="real")["lost_packets"][0]
    assert len(seen) + lost == 300


ERRORS = program("""\
def said(s):
    # The error queue: struct sock_extended_err, then the address of who sent it (ip(7)).
    for _ in range(100):
        try:
            _, control, _, _ = s.recvmsg(2000, 500, socket.MSG_ERRQUEUE)
        except BlockingIOError:
            time.sleep(0.01)
            continue
        data = control[0][2]
        kind, code = data[5], data[6]
        info = int.from_bytes(data[8:12], "little")
        return kind, code, info, socket.inet_ntoa(data[20:24])
s.setblocking(False)
s.setsockopt(socket.IPPROTO_IP, 11, 1)
s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 1)
s.sendto(b"x", (sys.argv[1], 5000))
print(*said(s))
s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 64)
s.sendto(b"x", ("192.0.2.1", 5000))
print(*said(s))
# IP_MTU_DISCOVER, IP_PMTUDISC_DO
s.setsockopt(socket.IPPROTO_IP, 10, 2)
s.sendto(1400 * b"x", (sys.argv[1], 5000))
print(*said(s))
# A closed port: the answer of the host itself.
s.sendto(b"x", (sys.argv[1], 5001))
print(*said(s))
""")


@real
def test_routers_send_errors_as_in_rfc_792():
    with two_hosts(set={"links.line.mtu": "1200B"}) as network:
        server = network.addresses["server"][0]
        said = script(network, "laptop", ERRORS, server).splitlines()
    router = "10.0.0.2"
    assert said == [f"11 0 0 {router}", f"3 0 0 {router}", f"3 4 1200 {router}", f"3 3 0 {server}"]
    real_time = network.result.manifest["real_time"]
    assert real_time["expired_packets"] == 1
    assert real_time["message_packets"] == 2
    assert real_time["dropped_packets"] == 1
    assert [host["unroutable_packets"] for host in real_time["hosts"]] == [1, 0]


@real
def test_a_stop_while_the_report_is_drawn_leaves_the_result(tmp_path, monkeypatch):
    from talkspurt._commands.options import EmulateOptions
    from talkspurt.emulating import command as emulate
    from talkspurt.report import pictures

    file = put(tmp_path / "network.toml", NETWORK)
    asked = [Wanted("laptop", ("true",), serves=False)]
    for number, stop in enumerate((KeyboardInterrupt(), OSError(28, "No space left on device"))):

        def drawing(*_, stop=stop):
            raise stop

        monkeypatch.setattr(pictures, "of_result", drawing)
        out = tmp_path / str(number)
        with pytest.raises(type(stop)):
            options = EmulateOptions(duration="2s", out=out)
            emulate.run(file, asked, None, options)
        assert talkspurt.load(out).flows["name"].to_list() == ["call"]


LONG = program("""\
s.settimeout(3)
# IP_MTU_DISCOVER, IP_PMTUDISC_DONT: packets may be fragmented.
s.setsockopt(socket.IPPROTO_IP, 10, 0)
for n, length in enumerate((1400, 3000, 9000, 40000)):
    data = random.Random(n).randbytes(length)
    s.sendto(data, (sys.argv[1], 5000))
    assert s.recv(100) == hashlib.sha256(data).digest(), length
""")
LISTEN = program("""\
s.bind((at, 5000))
while True:
    data, who = s.recvfrom(65535)
    s.sendto(hashlib.sha256(data).digest(), who)
""")


@real
def test_the_system_restores_packets_that_it_and_routers_cut():
    with two_hosts(set={"links.line.mtu": "600B"}) as network:
        at = network.addresses["server"][0]
        network.serve("server", [*PYTHON, LISTEN, at])
        script(network, "laptop", LONG, at)
    real_time = network.result.manifest["real_time"]
    assert account.findings({**real_time, "lateness": {"later_than_1ms_ratio": 0}}) == []
    # RFC 791: the laptop's packets of up to 1500 bytes carry 1480, those on the line 576.
    sent = [length + 8 for length in (1400, 3000, 9000, 40000)]
    own = [min(1480, rest) for whole in sent for rest in range(whole, 0, -1480)]
    cut = sum(math.ceil(length / 576) for length in own)
    hosts = {host["node"]: host for host in real_time["hosts"]}
    assert hosts["laptop"]["sent_packets"] == len(own)
    assert real_time["fragment_packets"] == cut - len(own)
    assert hosts["server"]["written_packets"] == cut
    # Fragments have no ports, and are packets of their flow.
    flows = network.result.flows.filter(source="real")
    assert flows["transport"].to_list() == ["udp", "udp"]
    goodput = flows["goodput_bps"][0] * network.result.duration_s / 8
    assert goodput == pytest.approx(sum(sent) - 4 * 8, abs=1)


TAKE = """\
import hashlib, socket, sys
s = socket.create_server((sys.argv[1], 5000))
peer, _ = s.accept()
whole = hashlib.sha256()
while data := peer.recv(1 << 16):
    whole.update(data)
peer.sendall(whole.hexdigest().encode())
"""
GIVE = """\
import hashlib, random, socket, sys, time
data = random.Random(1).randbytes(int(sys.argv[2]))
s = socket.create_connection((sys.argv[1], 5000))
begin = time.monotonic()
s.sendall(data)
s.shutdown(socket.SHUT_WR)
assert s.recv(100).decode() == hashlib.sha256(data).hexdigest()
print(time.monotonic() - begin)
"""


@real
def test_a_file_over_tcp_arrives_at_the_rate_of_the_link_and_through_a_small_mtu():
    size = 1_500_000
    # Neither host sees the MTU of the link between.
    small = NETWORK.split("[flows.call]")[0].replace('to = "server"', 'to = "gate"\nmtu = "1000B"')
    last = link_text("last", "gate>server", "1Gbit/s", "1ms", 1000)
    call = "[flows.call]" + NETWORK.split("[flows.call]")[1]
    with two_hosts(small + last + call) as network:
        at = network.addresses["server"][0]
        network.serve("server", [*PYTHON, TAKE, at])
        took = float(script(network, "laptop", GIVE, at, size))
    assert size * 8 / 8e6 < took < 2 * size * 8 / 8e6
    flows = network.result.flows.filter(source="real")
    assert flows["transport"].to_list() == ["tcp", "tcp"]
    goodput = flows["goodput_bps"][0] * network.result.duration_s / 8
    assert goodput == pytest.approx(size, abs=1)
    assert network.result.links.filter(name="line")["drops_too_big"][0] > 0


@real
def test_simulated_flows_wait_in_the_same_queue():
    upload = NETWORK.split("[flows.call]")[0] + flow_text(
        "upload", "router>server", '{ kind = "tcp", controller = "cubic" }', BULK
    )
    with two_hosts(upload) as network:
        until(lambda: network.now_s > 2)  # the upload fills the queue
        took = asked(network, network.addresses["server"][0])
    assert None not in took
    # A hundred packets of 1500 bytes at 8 Mbit/s: 150 ms; CUBIC keeps at least half of them there.
    assert 0.1 < sorted(took)[len(took) // 2] < 0.2


FULL = program("""\
s.bind((at, 5000))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
time.sleep(100)  # it does not read
""")


@real
def test_packets_that_a_program_does_not_read_are_its_loss():
    with two_hosts() as network:
        for at in network.addresses["server"]:
            network.serve("server", [*PYTHON, FULL, at])
            ask = ASK.replace("settimeout(1)", "settimeout(0)").replace("TimeoutError", "OSError")
            script(network, "laptop", ask, at, 50, 500, 0.002)
        sent_s = network.now_s
        until(lambda: network.now_s > sent_s + 0.2)  # all have arrived
    real_time = network.result.manifest["real_time"]
    server = next(host for host in real_time["hosts"] if host["node"] == "server")
    assert server["written_packets"] == real_time["arrived_packets"] == 100
    lost = server["device"]["socket_dropped"]
    assert 80 < lost < 100
    assert f"server: {lost} datagrams arrived and were lost" in account.findings(real_time)[0]


@real
def test_what_is_read_after_a_device_went_down_is_counted(monkeypatch):
    """The device counts a packet when the network reads it, which may be after the device went down."""
    ask = talkspurt.Emulation._ask

    def early(self, node, what, key):
        found = ask(self, node, what, key)
        return {**found, "sent_packets": found["sent_packets"] - 2} if what == "down" else found

    monkeypatch.setattr(talkspurt.Emulation, "_ask", early)
    with two_hosts() as network:
        script(network, "laptop", ASK, network.addresses["server"][0], 5, 50, 0.01)
    real_time = network.result.manifest["real_time"]
    assert account.findings({**real_time, "lateness": {"later_than_1ms_ratio": 0}}) == []


@real
def test_two_emulations_at_once_do_not_see_each_other():
    with (
        two_hosts() as one,
        two_hosts() as two,
    ):
        asked(two, two.addresses["server"][0], count=3)
    counts = [it.result.manifest["real_time"]["sent_packets"] for it in (one, two)]
    assert counts == [0, 6]


@real
def test_a_device_that_disappears_ends_the_emulation_with_a_result():
    with two_hosts() as network:
        asked(network, network.addresses["server"][0], count=3)
        network.run("laptop", ["ip", "link", "delete", "tun0"])
        waiting = network.start("server", ["sleep", "100"])
        network.wait([waiting], 10)
        assert network.has_ended()
    assert waiting.is_stopped
    real_time = network.result.manifest["real_time"]
    (said,) = account.failures(real_time)
    assert said.startswith("laptop: its device failed, which ended the emulation")
    assert sum("laptop" in words for words in account.findings(real_time)) == 1
    assert real_time["arrived_packets"] == 6


@real
def test_a_node_that_is_killed_ends_the_emulation_with_a_result():
    with two_hosts() as network:
        asked(network, network.addresses["server"][0], count=3)
        waiting = network.start("laptop", ["sleep", "100"])
        network._nodes["server"]._process.kill()
        network.wait([waiting], 10)
        assert network.has_ended()
    assert waiting.is_stopped
    real_time = network.result.manifest["real_time"]
    assert real_time["arrived_packets"] == 6
    (said,) = account.failures(real_time)
    assert said == "server: its processes were killed, which ended the emulation"


def processes(word):
    """Processes that sleep for these seconds."""
    found = []
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if (place / "cmdline").read_bytes() == b"sleep\0%s\0" % word.encode():
                found.append(place.name)
    return found


@pytest.fixture
def case(tmp_path):
    return put(tmp_path / "case.toml", NETWORK)


LATER = flow_text("later", "left>right", start="15s")


@real
def test_a_shorter_time_and_calls_on_several_routes(case, tmp_path):
    """What begins later is no fault. Calls are compared although a program's packets have no settings."""
    scenarios = Path(__file__).parent.parent / "scenarios"
    text = (scenarios / "topologies" / "two-paths.toml").read_text(encoding="utf-8")
    case.write_text(text.replace('{ from = "5s" }', '{ from = "0s" }') + LATER, encoding="utf-8")
    words = "--at", "left", "--", sys.executable, "-c", ASK, "10.0.0.4", 500, 50, 0.01
    out = tmp_path / "out"
    there = "--no-report", "--out", out, "--serve", "right", "--", "sleep", "9"
    found = succeed("emulate", case, "--for", "2s", *there, *words)
    assert "emulating case for 2 s" in found.stderr
    assert "was ended with the emulation" in found.stderr
    assert 1.9 < talkspurt.load(out).duration_s < 3


@real
def test_the_command_line(case, tmp_path):
    words = "--at", "laptop", "--", "sh", "-c", "hostname; echo it >&2; exit 7"
    found = command("emulate", case, "--for", "5s", "--out", tmp_path / "out", *words)
    assert found.returncode == 7, found.stderr
    assert found.stdout.startswith("laptop\n")
    assert "it\n" in found.stderr
    assert "no other node answers" in found.stderr
    assert "Real packets: 0 packets sent" in found.stdout
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["digest"] is None
    assert [it["status"] for it in manifest["real_time"]["commands"]] == [7]
    assert "Emulation" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@real
def test_a_server_ends_with_the_last_command_and_output_can_be_json(case):
    found = succeed(
        "emulate", case, "--json", "--serve", "server", "--", *PYTHON, ECHO, "10.0.0.3",
        "--at", "laptop", "--", *PYTHON, ASK.replace("print", "sys.exit(0) #"), "10.0.0.3", 3, 50, 0,
    )  # fmt: skip
    real_time = json.loads(found.stdout)["real_time"]
    assert real_time["arrived_packets"] == 6
    assert [it["status"] for it in real_time["commands"]] == [-signal.SIGTERM, 0]


@real
def test_a_device_that_disappears_is_an_error(case):
    # The command itself succeeds, and is ended.
    words = "ip link delete tun0; exec sleep 100"
    found = refused("emulate", case, "--json", "--at", "laptop", "--", "sh", "-c", words)
    assert "laptop: its device failed, which ended the emulation" in found.stderr
    (host,) = json.loads(found.stdout)["real_time"]["hosts"]
    assert host["failure"]
    assert not host["killed"]


@real
def test_the_emulation_ends_the_commands(case):
    begin = time.monotonic()
    found = succeed("emulate", case, "--json", "--for", "1s", "--at", "laptop", "--", "sleep", "77")
    assert "sleep was ended with the emulation" in found.stderr
    # Not after the command, however slow the machine.
    assert time.monotonic() - begin < 77
    assert json.loads(found.stdout)["duration_s"] == 1


@real
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_keeps_what_was_measured_and_leaves_nothing(case, tmp_path, number):
    word = f"10{number}.25"
    running = start(
        "emulate", case, "--out", tmp_path / "out", "--no-report",
        "--at", "laptop", "--", "sleep", word,
    )  # fmt: skip
    assert "emulating case" in running.stderr.readline()
    until(lambda: processes(word), running)
    running.send_signal(number)
    _, err = running.communicate(timeout=20)
    assert running.returncode == (130 if number == signal.SIGINT else 143)
    assert "out is written" in err
    assert (tmp_path / "out" / "flows.parquet").exists()
    assert not processes(word)


@real
def test_nothing_is_left_after_a_kill(case, tmp_path):
    word = "1009.25"
    words = "emulate", case, "--out", tmp_path / "out", "--at", "laptop", "--", "sleep", word
    running = start(*words)
    assert "emulating case" in running.stderr.readline()
    until(lambda: processes(word), running)
    running.kill()
    running.communicate()
    until(lambda: not processes(word), within=5)
    succeed("emulate", case, "--out", tmp_path / "out", *words[4:6], "--", "true")
    assert sorted(it.name for it in tmp_path.iterdir()) == ["case.toml", "out"]


@real
def test_a_stopped_process_reports_its_lateness(case):
    asking = case.with_name("asking")
    ask = ASK.replace("    begin =", f"    if n == 5: open({str(asking)!r}, 'w')\n    begin =")
    running = start(
        "emulate", case, "--json", "--serve", "server", "--", *PYTHON, ECHO, "10.0.0.3",
        "--at", "laptop", "--", *PYTHON, ask, "10.0.0.3", 40, 50, 0.01,
    )  # fmt: skip
    assert "emulating case" in running.stderr.readline()
    until(asking.exists, running)
    # As a suspended machine would.
    running.send_signal(signal.SIGSTOP)
    time.sleep(0.4)
    running.send_signal(signal.SIGCONT)
    out, _ = running.communicate(timeout=30)
    took, document = map(json.loads, out.splitlines())
    assert max(it or 1 for it in took) > 0.3
    real_time = document["real_time"]
    assert real_time["lateness"]["max_s"] > 0.2
    assert any("more than 1 ms late" in words for words in account.findings(real_time))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "emulate: needs --at NODE -- COMMAND, or --shell NODE"),
        (("--at", "nowhere", "--", "true"), "'nowhere': no such node; there are: laptop, router"),
        (("--at", "laptop"), "emulate: --at laptop is followed by no command"),
        (("--", "true"), "emulate: a command needs its node: --at NODE -- COMMAND"),
        (("--at", "a", "--at", "b", "--", "true"), "are followed by -- COMMAND"),
        (("--for", "soon", "--at", "laptop", "--", "true"), "--for soon"),
    ],
)
def test_what_cannot_be_emulated_is_said(case, words, said):
    found = refused("emulate", case, *words)
    assert said in found.stderr


@real
def test_an_unknown_command_is_said(case, tmp_path):
    words = "--at", "laptop", "--", "no-such-command"
    found = refused("emulate", case, "--out", tmp_path / "out", *words)
    assert "no-such-command could not be started at laptop: No such file" in found.stderr
    assert not (tmp_path / "out").exists()


@real
def test_a_network_without_simulated_flows_is_enough(tmp_path):
    network = NETWORK[: NETWORK.index("[flows.call]")]
    with pytest.raises(talkspurt.ScenarioError, match="flows: missing"):
        talkspurt.run(network)
    with two_hosts(network, set={"duration": "5s"}) as here:
        pinged = here.run("laptop", ["ping", "-c", "2", "-i", "0.2", "server"])
    assert pinged.returncode == 0
    flows = here.result.flows
    assert set(flows["transport"]) == {"icmp"}
    assert flows["sent_packets"].to_list() == [2, 2]


def test_a_study_is_no_emulation():
    with pytest.raises(BadInputError, match="a single run"):
        talkspurt.Emulation(NETWORK + "\n[replications]\ncount = 2\n", ["laptop"])


def test_all_that_the_system_lacks_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(namespaces, "TUN", tmp_path / "tun")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(BadInputError) as caught:
        namespaces.check_system()
    said = str(caught.value)
    for word in ("unshare", "iproute2", "mount", "TUN devices", "load the module tun"):
        assert word in said


def test_other_systems_are_refused(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(BadInputError, match="needs Linux with network namespaces, not darwin"):
        talkspurt.Emulation(NETWORK, ["laptop"])


def test_commands_are_split_at_their_nodes():
    rest = "iperf3 -c server --at noon --serve laptop -- ls -- -x --at server -- sh"
    assert wanted(["laptop"], [], rest.split()) == [
        Wanted("laptop", ("iperf3", "-c", "server", "--at", "noon"), serves=False),
        Wanted("laptop", ("ls", "--", "-x"), serves=True),
        Wanted("server", ("sh",), serves=False),
    ]


def test_every_difference_is_a_finding():
    host = {
        "node": "a", "failure": None, "killed": False, "read_packets": 9, "sent_packets": 9,
        "written_packets": 5, "refused_packets": 0, "malformed_packets": 0,
        "unroutable_packets": 0, "answered_packets": 0, "after_end_packets": 0,
        "device": {
            "sent_packets": 9, "received_packets": 5, "sent_dropped": 0, "received_dropped": 0,
            "received_errors": 0, "socket_dropped": 0,
        },
    }  # fmt: skip
    whole = {
        "hosts": [host], "sent_packets": 9, "copied_packets": 1, "message_packets": 2,
        "arrived_packets": 5, "expired_packets": 1, "dropped_packets": 2, "in_flight_packets": 4,
        "uncaptured_packets": 0,
        "lateness": {"later_than_1ms_ratio": 0.0},
    }  # fmt: skip
    assert account.findings(whole) == []
    for key in host["device"].keys() - {"received_dropped"}:
        other = {**host, "device": {**host["device"], key: 3}}
        assert len(account.findings({**whole, "hosts": [other]})) == 1
    # Each number is in a sum with others, and those outside the network are worth a sentence.
    for key in ("refused_packets", "malformed_packets", "unroutable_packets"):
        assert len(account.findings({**whole, "hosts": [{**host, key: 1}]})) == 2
    for key in ("after_end_packets", "answered_packets"):
        assert len(account.findings({**whole, "hosts": [{**host, key: 1}]})) == 1
    for key in ("copied", "fragment", "message", "expired", "dropped", "in_flight", "uncaptured"):
        assert len(account.findings({**whole, f"{key}_packets": 9})) == 1
    assert len(account.findings({**whole, "sent_packets": 7})) == 2
    assert len(account.findings({**whole, "arrived_packets": 7})) == 2
    unknown = {**host, "device": None}
    for other in (unknown, {**unknown, "killed": True}, {**unknown, "failure": "gone"}):
        assert len(account.findings({**whole, "hosts": [other]})) == 1
    assert account.findings({**whole, "window_s": [1.0, 1.5]}) == []
    assert "measure.from=0s" in account.findings({**whole, "window_s": [5.0, 1.5]})[0]
    late = {"later_than_1ms_ratio": 0.1}
    assert "10.0 %" in account.findings({**whole, "lateness": late})[0]


HOME = """
[cells.home]
access_point = "ap"
standard = "802.11n"
rate = { kind = "minstrel" }
snr_db = 25.0
queue = { kind = "droptail", packets = 300 }
contenders = { count = 2 }

[cells.home.stations]
laptop = {}
phone = {}
"""
CELL = scenario_text(
    "Stations share a channel",
    "20s",
    HOME,
    link_text("line", "ap>server", "100Mbit/s", "10ms", duplicate=0.2),
    flow_text("download", "server>phone", UDP, cbr("1Mbit/s", "1200B")),
    seed=1,
)


def test_contenders_are_no_nodes_for_programs():
    with pytest.raises(BadInputError, match="there are: ap, laptop, phone, server"):
        talkspurt.Emulation(CELL, ["home.contenders"])


@real
def test_three_hosts_over_a_cell_and_a_link_that_copies():
    with talkspurt.Emulation(CELL, ["laptop", "phone", "server"]) as network:
        at = network.addresses
        for name in ("phone", "server"):
            network.serve(name, [*PYTHON, ECHO, at[name][0]])
        near, far = (
            json.loads(script(network, "laptop", ASK, at[name][0], 20, 50, 0))
            for name in ("phone", "server")
        )
    # An answer may be that to an earlier copy.
    assert None not in near + far
    assert max(far) > 0.02
    real_time = network.result.manifest["real_time"]
    assert real_time["copied_packets"] > 0
    ended = (real_time[f"{how}_packets"] for how in ("arrived", "dropped", "in_flight"))
    assert real_time["sent_packets"] + real_time["copied_packets"] == sum(ended)
    assert real_time["in_flight_packets"] >= 0
    flows = network.result.flows.filter(source="real")
    assert flows["sent_packets"].sum() == real_time["sent_packets"]
    assert network.result.links.filter(name="home.laptop")["sent_packets"][0] >= 40
