"""The same flow simulated and sent by a program: the table of networks in docs/how-to/emulate.md.

    sudo .venv/bin/python validation/emulate/same.py [--normal] [NAME ...]

A program sends 100 packets a second of constant size over UDP across each network, with its
simulated flows. The simulator has the same flow at the same time, and again with starts up to 0.1 s
earlier and later: a queue that other traffic fills depends on the instants at which packets come.
Programs have real-time priority, above that of the network; with ``--normal`` they have none, and
nothing is written. Needs root; takes ten minutes. Writes same.json here, and prints the table.
"""

from __future__ import annotations

import copy
import json
import statistics
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import polars as pl

import talkspurt

sys.path.append(str(Path(__file__).parents[1]))
from tables import table

HERE = Path(__file__).parent
FILE = HERE / "same.json"
SCENARIOS = HERE.parents[1] / "scenarios"
PACKETS, GAP_S = 2000, 0.01
STARTS = 15
"""Simulations per network."""
PYTHON = [sys.executable, "-I", "-S", "-c"]
PRIORITY = ["chrt", "-f", "2"]
SEND = """\
import socket, sys, time, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2)  # ECT(0)
s.connect((sys.argv[1], 5000))
at = time.monotonic()
for n in range(int(sys.argv[2])):
    while time.monotonic() < at: time.sleep(max(0, at - time.monotonic()))
    s.send(struct.pack("!dI", time.monotonic(), n) + 160 * b"x")
    at += float(sys.argv[3])
"""
HEAR = """\
import socket, sys, time, struct, json
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
s.bind((sys.argv[1], 5000))
s.settimeout(6)
got = []
try:
    while True:
        data, control, _, _ = s.recvmsg(2000, 100)
        sent, number = struct.unpack_from("!dI", data)
        got.append([number, time.monotonic() - sent, control[0][2][0] & 3])
except TimeoutError:
    pass
print(json.dumps(got))
"""
PROBE = {"transport": {"kind": "udp"}, "source": {"kind": "cbr", "packet": "172B"}}
QUEUES = {
    "DropTail, half loaded": ({"kind": "droptail", "packets": 100}, "2.5Mbit/s"),
    "DropTail, full": ({"kind": "droptail", "packets": 50}, "6Mbit/s"),
    "RED with ECN": ({"kind": "red", "packets": 200, "ecn": True}, "5.2Mbit/s"),
    "CoDel with ECN": ({"kind": "codel", "packets": 1000, "ecn": True}, "4.9Mbit/s"),
    "FQ-CoDel with ECN": ({"kind": "fq_codel", "packets": 1000, "ecn": True}, "6Mbit/s"),
    "PIE with ECN": ({"kind": "pie", "packets": 1000, "ecn": True}, "5Mbit/s"),
}
LINES = {
    "clean": {},
    "loss of 3 %": {"loss": 0.03},
    "Gilbert-Elliott": {"gilbert_elliott": {"p": 0.02, "r": 0.3}},
}
SHIPPED = {
    f"`{Path(name).name}.toml`": f"{name}.toml"
    for name in (
        "networks/lte", "networks/leo", "networks/geo", "networks/steps", "networks/jitter",
        "networks/dsl", "networks/loss", "bufferbloat", "wireless-cell",
    )
}  # fmt: skip
NAMES = (*LINES, *QUEUES, *SHIPPED)


def network(name: str) -> tuple[dict[str, Any], str, str]:
    """A scenario without recordings, and the nodes of the flow."""
    if name in SHIPPED:
        found = tomllib.loads((SCENARIOS / SHIPPED[name]).read_text(encoding="utf-8"))
        for key in ("axes", "replications", "record", "measure"):
            found.pop(key, None)
        flow = next(it for it in found["flows"].values() if it["source"]["kind"] != "bulk")
        kept = ("bulk", "cbr", "poisson")
        flows = {k: it for k, it in found["flows"].items() if it["source"]["kind"] in kept}
        return {**found, "flows": flows}, flow["from"], flow["to"]
    queue, rate = QUEUES.get(name, ({"kind": "droptail", "packets": 100}, None))
    line = {"from": "a", "to": "b", "rate": "5Mbit/s", "delay": "20ms", "queue": queue}
    flows = {}
    if rate is not None:
        source = {"kind": "cbr", "packet": "1200B", "rate": rate}
        flows["other"] = {"from": "a", "to": "b", "transport": {"kind": "udp"}, "source": source}
    return {"links": {"line": {**line, **LINES.get(name, {})}}, "flows": flows}, "a", "b"


def _run(scenario: dict[str, Any], seconds: float, **more: Any) -> dict[str, Any]:
    found = {**copy.deepcopy(scenario), "title": "Same", "seed": 7, "duration": f"{seconds:.4f}s"}
    found["flows"] = {**found["flows"], **more}
    return {key: it for key, it in found.items() if it != {}}


def compared(name: str, priority: list[str]) -> dict[str, Any]:
    """A network in real time, and simulated."""
    python = [*priority, *PYTHON]
    scenario, start, end = network(name)
    with talkspurt.Emulation(_run(scenario, 120), [start, end]) as running:
        at = running.addresses[end][0]
        with tempfile.TemporaryFile("w+") as out:
            server = running.serve(end, [*python, HEAR, at], stdout=out)
            running.run(start, [*python, SEND, at, str(PACKETS), str(GAP_S)])
            server.wait(60)
            out.seek(0)
            got = json.load(out)
    result = running.result
    real = result.flows.filter(source="real").sort("sent_packets").row(-1, named=True)
    sending = (pl.col("flow") == real["name"]) & (pl.col("sent_packets") > 0)
    began_s = float(result.table("series").filter(sending)["time_s"].min())
    rows = []
    for number in range(STARTS):
        from_s = max(0.01, began_s + 0.0137 * (number - STARTS // 2))
        until_s = from_s + PACKETS * GAP_S
        probe = {**copy.deepcopy(PROBE), "from": start, "to": end, "start": f"{from_s:.4f}s"}
        probe["stop"] = f"{until_s:.4f}s"
        probe["source"]["rate"] = f"{172 * 8 / GAP_S / 1000}kbit/s"
        run = talkspurt.run(_run(scenario, until_s + 5, probe=probe))
        rows.append(run.flows.filter(name="probe").row(0, named=True))
    p50 = [row["delay_p50_s"] for row in rows]
    lost = [row["lost_packets"] / row["sent_packets"] for row in rows]
    return {
        "name": name, "simulated_p50_s": [min(p50), max(p50)], "network_p50_s": real["delay_p50_s"],
        "program_p50_s": statistics.median(delay for _, delay, _ in got),
        "simulated_lost": [min(lost), max(lost)],
        "lost": 1 - len({number for number, _, _ in got}) / PACKETS,
        "marked": sum(ecn == 3 for _, _, ecn in got) / PACKETS,
        "lateness": result.manifest["real_time"]["lateness"],
    }  # fmt: skip


def networks(rows: list[dict[str, Any]]) -> str:
    """The table of the documentation."""

    def span(low: float, high: float) -> str:
        both = [f"{it:.2f}" for it in (low, high)]
        return both[0] if both[0] == both[1] else " – ".join(both)

    heads = "network | median, ms: simulated | in the network | program"
    cells = (
        [
            row["name"], span(*(1e3 * it for it in row["simulated_p50_s"])),
            f"{1e3 * row['network_p50_s']:.2f}", f"{1e3 * row['program_p50_s']:.2f}",
            span(*(100 * it for it in row["simulated_lost"])),
            f"{100 * (row['lost'] + row['marked']):.2f}",
        ]
        for row in rows
    )  # fmt: skip
    return table(f"{heads} | lost or marked, %: simulated | program", cells)


if __name__ == "__main__":
    normal, names = "--normal" in sys.argv[1:], [it for it in sys.argv[1:] if it != "--normal"]
    known = [] if normal or not FILE.exists() else json.loads(FILE.read_text(encoding="utf-8"))
    for each in names or NAMES:
        row = compared(each, [] if normal else PRIORITY)
        print(row, flush=True)
        known = [it for it in known if it["name"] != each] + [row]
    known.sort(key=lambda it: NAMES.index(it["name"]))
    if not normal:
        FILE.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(networks(known))
