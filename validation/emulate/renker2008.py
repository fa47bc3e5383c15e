"""The bridge of Renker (2008) in real time: CCID 3 over sockets, and the same simulated.

    sudo .venv/bin/python validation/emulate/renker2008.py

The bridge is that of `talkspurt reproduce renker2008` (a wire of 7.081 Mbit/s behind a FIFO of 1000
packets). `talkspurt serve` and `talkspurt measure` send bulk data over DCCP in UDP (RFC 6773) from
the desktop to the laptop; the simulation has the same endpoints, with the profile of the RFCs and
packets that are as long. The control connection of `measure` goes the other way, so that it does
not wait in the FIFO. Needs root; takes two minutes. Writes renker2008.json here.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
from pathlib import Path

import polars as pl

import talkspurt

HERE = Path(__file__).parent
SECONDS = 20
ATTEMPTS = 6
"""The control connection, silent for three seconds after a loss in the full FIFO, often ends."""
BRIDGE = """\
title = "CCID 3 over a bridge"
duration = "{seconds}s"
seed = 1
record = {{ gauges = true }}

[links.radio]
from = "desktop"
to = "laptop"
rate = "7.081Mbit/s"
delay = "1ms"
mtu = "1600B"
queue = {{ kind = "droptail", packets = 1000 }}
back = {{ rate = "100Mbit/s" }}

[flows.iperf]
from = "desktop"
to = "laptop"
transport = {{ kind = "dccp", ccid = 3 }}
source = {{ kind = "bulk", packet = "1400B" }}
{start}
"""
PRINTED = {
    "slow_start_x_by_x_recv": 2, "first_loss_s": 5, "rtt_at_first_loss_s": 0.4, "highest_rtt_s": 1,
}  # fmt: skip


def live(folder: Path) -> talkspurt.Result | None:
    """Measured by programs over the emulated bridge; None if their control connection was lost."""
    # The simulated flow is not wanted: it begins after the end.
    scenario = BRIDGE.format(seconds=SECONDS + 12, start=f'start = "{SECONDS + 11}s"')
    os.environ["TALKSPURT_SECRET"] = secrets.token_hex(16)
    program = [sys.executable, "-m", "talkspurt"]
    with talkspurt.Emulation(scenario, ["desktop", "laptop"]) as network:
        at = network.addresses["desktop"][0]
        network.serve("desktop", [*program, "serve", "--listen", f"{at}:7862"])
        words = "--transport dccp-ccid3 --traffic bulk --packet 1400 --mtu 1600 --down --no-report"
        found = network.run(
            "laptop",
            [*program, "measure", at, *words.split(), "--for", f"{SECONDS}s", "--out", str(folder)],
            timeout=SECONDS + 30,
        )
    return talkspurt.load(folder) if found.returncode == 0 else None


def values(result: talkspurt.Result) -> dict:
    """What the note describes, from the sender's gauges."""
    gauges = result.gauges().filter(pl.col("side") == "from")

    def gauge(name: str, frm: float = 0.0, to: float = 1e9) -> pl.DataFrame:
        return gauges.filter((pl.col("gauge") == name) & pl.col("time_s").is_between(frm, to))

    begin = gauge("receive_rate").filter(pl.col("value") > 0)["time_s"][0]
    loss = gauge("loss_event_rate").filter(pl.col("value") > 0)
    first = loss["time_s"][0]
    srtt = gauge("srtt")
    x_recv = gauge("receive_rate", 0, begin + 1)["value"][-1]
    return {
        "slow_start_x_by_x_recv": gauge("rate", 0, begin + 1)["value"][-1] / x_recv,
        "first_loss_s": first - begin,
        "rtt_at_first_loss_s": srtt.filter(pl.col("time_s") <= first)["value"][-1],
        "first_loss_event_rate": loss["value"][0],
        "first_x_calc_bps": gauge("equation_rate", first)["value"][0],
        "lowest_x_calc_bps": gauge("equation_rate", first)["value"].min(),
        "highest_rtt_s": srtt["value"].max(),
        "goodput_bps": result.flows["goodput_bps"][0],
        "lost_packets": result.flows["lost_packets"][0],
    }


def main() -> None:
    """Print both columns and write them."""
    simulated = values(talkspurt.run(BRIDGE.format(seconds=SECONDS, start="")))
    with tempfile.TemporaryDirectory() as folder:
        tried = (live(Path(folder) / str(number)) for number in range(ATTEMPTS))
        found = values(next(result for result in tried if result is not None))
    rows = {
        name: {"printed": PRINTED.get(name), "simulated": simulated[name], "live": found[name]}
        for name in simulated
    }
    for name, row in rows.items():
        print(name, *(f"{key} {value:.6g}" for key, value in row.items() if value is not None))
    (HERE / "renker2008.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
