"""Lateness and rates of emulations on this machine: tables of docs/how-to/emulate.md.

    sudo .venv/bin/python validation/emulate/measure.py

Needs root, iperf3 and an idle machine; takes two minutes. Programs measure at the nodes, and the
emulation accounts for packets. Delays are compared by ``same.py``. Writes results.json here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import talkspurt
from talkspurt.emulating import account

HERE = Path(__file__).parent
PYTHON = [sys.executable, "-I", "-S", "-c"]
SECONDS = 8

LINE = """\
title = "A line"
duration = "60s"
seed = 1

[links.line]
from = "a"
to = "b"
rate = "{rate}"
delay = "10ms"
queue = {{ kind = "droptail", packets = {packets} }}

[flows.other]
from = "a"
to = "b"
transport = {{ kind = "udp" }}
source = {{ kind = "speech", codec = "pcmu" }}
playout = {{ kind = "fixed" }}
"""


def udp(rate: str, payload: int, link: str, packets: int) -> tuple[dict, dict]:
    """iperf3 over a line: its report, and the account of the packets."""
    scenario = LINE.format(rate=link, packets=packets)
    with talkspurt.Emulation(scenario, ["a", "b"]) as network:
        network.serve("b", ["iperf3", "-s", "-D"])
        words = f"-4 -c b -u -b {rate} -l {payload} -t {SECONDS} -J --pacing-timer 100"
        found = network.run("a", ["iperf3", *words.split()], timeout=50)
    report = json.loads(found.stdout)
    return report, network.result.manifest["real_time"]


def lateness() -> list[dict]:
    """At several packet rates, with 200 bytes of payload."""
    rows = []
    for pps in (100, 1000, 10_000):
        report, real = udp(str(pps * 200 * 8), 200, "1Gbit/s", 10_000)
        rows.append(_account(pps, report["end"]["sum"]["packets"], real))
    return rows


def hundred_thousand() -> list[dict]:
    """100 000 packets a second, generator and receiver included: nothing is lost unexplained."""
    with talkspurt.Emulation(LINE.format(rate="1Gbit/s", packets=10_000), ["a", "b"]) as network:
        at = network.addresses["b"][0]
        server = network.serve("b", [*PYTHON, ARRIVALS, at, "100"], stdout=2)
        found = network.run("a", [*PYTHON, FLOOD, at, "64", "1e-5", str(SECONDS)])
        server.wait(20)
    return [_account(100_000, int(found.stdout), network.result.manifest["real_time"])]


def _account(pps: int, sent: int, real: dict) -> dict:
    row = {
        "asked_pps": pps, "sent": sent, "findings": account.findings(real),
        "read": real["sent_packets"], "arrived": real["arrived_packets"],
        "dropped": real["dropped_packets"], "in_flight": real["in_flight_packets"],
        "device_dropped": [host["device"]["sent_dropped"] for host in real["hosts"]],
        **real["lateness"], "priority": real["priority"],
    }  # fmt: skip
    print(row, flush=True)
    return row


ARRIVALS = """\
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
s.bind((sys.argv[1], 5000))
s.settimeout(2)
first, count, last = None, 0, None
buffer = bytearray(2000)
try:
    while True:
        s.recv_into(buffer)
        last = time.monotonic()
        if first is None: first = last
        count += 1
        if last - first > float(sys.argv[2]): break
except TimeoutError:
    pass
print(count - 1, last - first)
"""
FLOOD = """\
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 5000))
size, gap, end = int(sys.argv[2]), float(sys.argv[3]), time.monotonic() + float(sys.argv[4])
# Several packets with one call, which the system cuts: SOL_UDP, UDP_SEGMENT.
burst = max(1, min(40, int(5e-4 / gap)))
s.setsockopt(17, 103, size)
data, at, sent = burst * size * b"x", time.monotonic(), 0
while at < end:
    pause = at - time.monotonic()
    if pause > 0: time.sleep(pause)
    s.send(data)
    sent += burst
    at += burst * gap
print(sent)
"""


def rates() -> list[dict]:
    """What arrives over a line that is offered 10 % more than its rate, with headers."""
    rows = []
    for name, bps, size in (
        ("64kbit/s", 64e3, 200), ("1Mbit/s", 1e6, 1500), ("10Mbit/s", 10e6, 1500),
        ("100Mbit/s", 100e6, 1500), ("500Mbit/s", 500e6, 1500),
    ):  # fmt: skip
        gap = size * 8 / (1.1 * bps)
        with talkspurt.Emulation(
            LINE.format(rate=name, packets=int(max(100, bps * 0.05 / 12_000))), ["a", "b"]
        ) as network:
            at = network.addresses["b"][0]
            with (HERE / "arrivals.txt").open("w+") as out:
                server = network.serve("b", [*PYTHON, ARRIVALS, at, str(SECONDS - 2)], stdout=out)
                network.run("a", [*PYTHON, FLOOD, at, str(size - 28), repr(gap), str(SECONDS)])
                server.wait(20)
                out.seek(0)
                count, seconds = out.read().split()
        (HERE / "arrivals.txt").unlink()
        arrived = int(count) * size * 8 / float(seconds)
        # The other call is on the line, too.
        flows = network.result.flows.filter(name="other")
        other = flows["received_bytes"][0] * 8 / network.result.duration_s
        real = network.result.manifest["real_time"]
        rows.append({
            "rate_bps": bps, "arrived_bps": arrived, "other_bps": other,
            "error": (arrived + other) / bps - 1, "findings": account.findings(real),
            "p99_s": real["lateness"]["p99_s"],
        })  # fmt: skip
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    found = {
        "lateness": lateness(), "hundred_thousand": hundred_thousand(), "rates": rates(),
    }  # fmt: skip
    (HERE / "results.json").write_text(json.dumps(found, indent=1) + "\n")
