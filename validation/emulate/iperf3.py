"""iperf3 over emulated networks, with the kernel's Reno, CUBIC and BBR, beside our TCP simulated.

    sudo .venv/bin/python validation/emulate/iperf3.py

Each of three networks is crossed by iperf3 for fifteen seconds, and simulated with our controller
of the same name (Reno with selective acknowledgements: `sack`), under ten seeds. The queue is that
of the link in both cases. Needs root and iperf3; a controller that the kernel lacks is skipped.
Takes three minutes. Writes iperf3.json here.
"""

from __future__ import annotations

import json
from pathlib import Path

import talkspurt

HERE = Path(__file__).parent
SECONDS = 15
SEEDS = 10
NETWORK = """\
title = "One transfer"
duration = "{seconds}s"
seed = 1
record = {{ sojourn = true }}
measure = {{ to = "{measured}s" }}

[links.line]
from = "a"
to = "b"
rate = "10Mbit/s"
delay = "10ms"
loss = {loss}
queue = {{ kind = "droptail", packets = {packets} }}
back = {{ loss = 0.0 }}

[flows.transfer]
from = "a"
to = "b"
transport = {{ kind = "tcp", controller = "{controller}", receive_buffer = "6MB" }}
source = {{ kind = "bulk" }}
{start}
"""
NETWORKS = {"clean": (0.0, 50), "1 % loss": (0.01, 50), "bufferbloat": (0.0, 800)}
CONTROLLERS = {"reno": "sack", "cubic": "cubic", "bbr": "bbr"}


def real(loss: float, packets: int, name: str) -> dict | None:
    """What iperf3 and the network measured; None if the kernel has no such controller."""
    scenario = NETWORK.format(
        seconds=SECONDS + 5, measured=SECONDS, loss=loss, packets=packets, controller="cubic",
        start=f'start = "{SECONDS + 4}s"',
    )  # fmt: skip
    with talkspurt.Emulation(scenario, ["a", "b"]) as network:
        network.serve("b", ["iperf3", "-s", "-D"])
        words = ["-C", name, "-t", str(SECONDS), "-J"]
        found = network.run("a", ["iperf3", "-4", "-c", "b", *words], timeout=SECONDS + 20)
    document = json.loads(found.stdout)
    if "error" in document:
        return None
    # The other five-tuple is iperf3's control connection.
    flow = max(network.result.flows.to_dicts(), key=lambda row: row["sent_bytes"])
    return {
        "goodput_bps": document["end"]["sum_received"]["bits_per_second"],
        "queue_mean_packets": _queue(network.result),
        "lost_packets": flow["lost_packets"],
    }


def _queue(result: talkspurt.Result) -> float:
    return float(result.links.filter(name="line")["queue_mean_packets"][0])


def simulated(loss: float, packets: int, name: str) -> dict:
    """The same of our TCP, under every seed: the least, the mean and the greatest."""
    scenario = NETWORK.format(
        seconds=SECONDS, measured=SECONDS, loss=loss, packets=packets,
        controller=CONTROLLERS[name], start="",
    )  # fmt: skip
    rows = []
    for seed in range(1, SEEDS + 1):
        result = talkspurt.run(scenario, seed=seed)
        row = result.flows.to_dicts()[0]
        rows.append({
            "goodput_bps": row["goodput_bps"], "queue_mean_packets": _queue(result),
            "lost_packets": row["lost_packets"],
        })  # fmt: skip
    found = {key: [row[key] for row in rows] for key in rows[0]}
    return {key: [min(of), sum(of) / len(of), max(of)] for key, of in found.items()}


def main() -> None:
    """Print and write all rows."""
    rows = []
    for network, (loss, packets) in NETWORKS.items():
        for name in CONTROLLERS:
            found = real(loss, packets, name)
            if found is None:
                print(f"{name}: the kernel does not have it; skipped")
                continue
            ours = simulated(loss, packets, name)
            rows.append({"network": network, "controller": name, "kernel": found, "ours": ours})
            print(json.dumps(rows[-1]), flush=True)
    (HERE / "iperf3.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
