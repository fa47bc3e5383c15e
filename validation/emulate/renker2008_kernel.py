"""The bridge of Renker (2008) in real time, with a Linux 6.1 kernel's CCID 3 at both ends.

    sudo validation/guest/prepare --install           # once: tools, kernel, initramfs
    sudo .venv/bin/python validation/emulate/renker2008_kernel.py [RATE]   # as in 7081kbit/s

The packets of two guests under qemu cross the emulated bridge: each node of the emulation forwards
between its TUN device and the guest's tap, and the guest has the node's address. Without KVM a
guest is slower than a machine, and RATE must be one that both sustain: the guests' counters of
dropped packets must not move, and the bridge must explain every loss. Beside it are the same
transfer of our endpoints, profile linux, over sockets across the same bridge, and simulated. Writes
renker2008_kernel.json here. Needs root; takes five minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import polars as pl

import talkspurt
from talkspurt.reproduce import formulas, live
from talkspurt.reproduce.lab import Run

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "guest"))

from guest import TAP, Guest, unprepared  # noqa: E402

SECONDS = 60
BOOT_S = 60
RATE = "7081kbit/s"
PORT = 5001
QUEUE_PACKETS = 20_000
"""Of a tap: a guest that is slow for a moment delays packets, and loses none."""
ATTEMPTS = 5
HANDSHAKE_PACKETS = 10
ENDS = ("desktop", "laptop")
TOLD = {
    "rate_bytes_per_second": ("rate", 8), "receive_rate": ("receive_rate", 8),
    "equation_rate": ("equation_rate", 8), "rtt_us": ("srtt", 1e-6),
    "loss_event_rate": ("loss_event_rate", 1),
}  # fmt: skip
"""The kernel's values, our gauges, and the factor between them."""


class Site:
    """A node of the emulation that forwards between its network and a guest with its address."""

    taps = (TAP,)

    def __init__(self, network: talkspurt.Emulation, node: str) -> None:
        self.pid = network._nodes[node]._process.pid
        self.at = {4: network.addresses[node][0], 6: "fd33::2"}
        own = self.at[4]
        for line in (
            f"tuntap add {TAP} mode tap",
            f"address del {own}/32 dev tun0",
            f"link set {TAP} txqueuelen {QUEUE_PACKETS} up",
            f"route add {own}/32 dev {TAP}",
            "route replace default dev tun0",
        ):
            subprocess.run(self.inside("ip", *line.split()), check=True)
        for name, value in (
            ("ip_forward", 1), (f"conf/{TAP}/proxy_arp", 1), (f"conf/{TAP}/rp_filter", 0),
            ("conf/all/rp_filter", 0), ("conf/tun0/rp_filter", 0),
        ):  # fmt: skip
            write = f"echo {value} > /proc/sys/net/ipv4/{name}"
            subprocess.run(self.inside("sh", "-c", write), check=True)

    def inside(self, *command: str) -> list[str]:
        """The command that runs this one in the node's network."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", *command]

    def dropped(self) -> int:
        """Packets that the tap dropped because the guest did not take them in time."""
        folder = f"/sys/class/net/{TAP}/statistics"
        # The node's own /sys shows the interfaces of the network it was mounted in.
        script = f"mount -t sysfs sys /sys && cat {folder}/rx_dropped {folder}/tx_dropped"
        words = ["unshare", "--mount", "sh", "-c", script]
        told = subprocess.run(self.inside(*words), check=True, capture_output=True)
        return sum(map(int, told.stdout.split()))


def bridge(rate: str, seconds: int) -> dict:
    """The scenario of the study on a wire of this rate."""
    scenario = {**live.live_cases("renker2008")["full-3min-wire"], "duration": f"{seconds}s"}
    scenario["links"]["radio"]["rate"] = rate
    return scenario


def transfer(
    sender: Guest, receiver: Guest, there: str, port: int, seconds: int
) -> tuple[list[dict], list[dict]]:
    """Bulk data from one guest to the other; returns what both said."""
    peer = "dccp-peer -c 3 -l 1400"
    # The receiver ends with the sender, which closes the connection.
    receiver.start(f"{peer} -n 0 -d {1000 * (seconds + 20)} server {there} {port}")
    receiver.wait_for("listening")
    sender.start(f"{peer} -n 99999 -g 0 -I 100 -d {1000 * seconds} client {there} {port}")
    said, _ = sender.finish(seconds + 60)
    heard, _ = receiver.finish(60)
    return said, heard


def kernel(rate: str) -> tuple[Run, dict]:
    """A transfer between two kernels, and what was lost where."""
    scenario = bridge(rate, SECONDS + BOOT_S + 120)
    network = {key: value for key, value in scenario.items() if key != "flows"} | {
        "title": "kernel"
    }
    with talkspurt.Emulation(network, ENDS) as emulation:
        sites = [Site(emulation, node) for node in ENDS]
        sender, receiver = (Guest(site, at=site.at) for site in sites)
        try:
            for guest in (sender, receiver):
                guest.ask("ip route add default dev eth0")
                guest.ask("echo 1000 > /proc/sys/net/dccp/default/seq_window")
                guest.ask("echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter")
            there = emulation.addresses[ENDS[1]][0]
            # qemu translates what the guests execute: a first transfer is slower than all others.
            transfer(sender, receiver, there, PORT + 1, 5)
            before = [it.dropped() for it in (sender, receiver, *sites)]
            said, heard = transfer(sender, receiver, there, PORT, SECONDS)
            after = [it.dropped() for it in (sender, receiver, *sites)]
            release = sender.release
        finally:
            sender.close()
            receiver.close()
    result = emulation.result
    states = [event for event in said if event.get("event") == "sender"]
    rows = [
        (state["time_us"] / 1e6, gauge, state[column] * factor)
        for state in states
        for column, (gauge, factor) in TOLD.items()
    ]
    gauges = pl.DataFrame(
        rows, schema={"time_s": pl.Float64, "gauge": pl.String, "value": pl.Float64}, orient="row"
    ).with_columns(pl.lit("iperf").alias("flow"), pl.lit("from").alias("side"))
    flows = result.flows.filter(pl.col("name").str.ends_with(f":{PORT}"))
    facts = {
        "kernel": release,
        "sent_packets": next(e for e in said if e["event"] == "result")["sent_packets"],
        "received_packets": next(e for e in heard if e["event"] == "result")["received_packets"],
        "lost_at_the_bridge": int(flows["lost_packets"][0]),
        "arrived_at_the_node": int(flows["received_packets"][0]),
        "lost_elsewhere": sum(after) - sum(before),
        "lateness": result.manifest["real_time"]["lateness"],
    }
    return Run("kernel", 1, "", SECONDS, {"gauges": gauges, "flows": flows}), facts


def values(run: Run) -> dict[str, object]:
    """The rows of the first minute, and the goodput."""
    found = formulas.of_parts("renker2008", "inferred", {"full-3min-wire": run})
    return {name: value for name, value in found.items() if name.startswith("full/")}


def main() -> None:
    """Print the columns and write them."""
    if words := unprepared():
        sys.exit(words)
    rate = sys.argv[1] if len(sys.argv) > 1 else RATE
    began = time.monotonic()
    for _ in range(ATTEMPTS):
        kernels, facts = kernel(rate)
        print(json.dumps(facts), flush=True)
        # The network counts the packets of the handshake and of the end, too.
        missing = facts["arrived_at_the_node"] - facts["received_packets"]
        if facts["lost_elsewhere"] == 0 and 0 <= missing <= HANDSHAKE_PACKETS:
            break
    else:
        sys.exit(f"packets were lost elsewhere in {ATTEMPTS} attempts: the guests are too slow")
    ours = live.measured({"live": bridge(rate, SECONDS)}, "live").runs["live"]
    scenario = {"title": "simulated", **bridge(rate, SECONDS)}
    scenario["record"]["gauges"] = True
    answer = talkspurt.run(scenario)
    simulated = Run("simulated", 1, "", SECONDS, {"gauges": answer.gauges()})
    columns = {"simulated": simulated, "live": ours, "kernel": kernels}
    found = {name: values(run) for name, run in columns.items()}
    rows = {row: {name: found[name][row] for name in columns} for row in found["kernel"]}
    for row, of in rows.items():
        print(row, *(f"{name} {value}" for name, value in of.items()))
    file = HERE / "renker2008_kernel.json"
    document = json.loads(file.read_text()) if file.exists() else {}
    document[rate] = {"seconds": SECONDS, "rows": rows, "facts": facts}
    file.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
