"""TCP and TFRC at one bottleneck, in ns-2 and here: comparison of their shares.

Part of ``run.py``, which writes the page: 32 SACK TCPs and 32 bare TFRCs over 15 Mbit/s, once with
RED and once with DropTail. Here with the profile ``ns2``, its packet lengths and its RED.
"""

import json
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean

import talkspurt

HERE = Path(__file__).resolve().parent
FLOWS = 32
"""Of each kind."""
SECONDS = 200
SEEDS = 5
BAND = 0.10
"""Permitted difference of a share from ns-2's."""
SERVICE = 5.55e-4
"""Service time of 1040 bytes at 15 Mbit/s, in seconds."""
NOISES = {0.0: "no noise", SERVICE: "noise of 0.555 ms"}
"""Maximum random delay of senders, here and there: none, or a service time."""
QUEUES = {
    "RED": '{ kind = "red", packets = 200, min_threshold = 20, max_threshold = 80, weight = 0.002, '
    'max_p = 0.1, gentle = true, mean_packet = "1000B", ns2 = true }',
    "DropTail": '{ kind = "droptail", packets = 200, ns2 = true }',
}

Shares = tuple[float, float, float]
"""Packets of TCP and of TFRC received, and packets dropped by the bottleneck."""


def scenario(queue: str, late: float) -> str:
    """The network of ``shares.tcl``, as a scenario."""
    text = [f'title = "Shares"\nduration = "{SECONDS}s"\nmeasure = {{ from = "{SECONDS / 5}s" }}\n']
    text.append('record = { gauges = false, interval = "1s" }\n')

    def link(name: str, ends: tuple[str, str], rate: str, delay: str, more: str) -> None:
        text.append(
            f'[links.{name}]\nfrom = "{ends[0]}"\nto = "{ends[1]}"\n'
            f'rate = "{rate}"\ndelay = "{delay}"\n{more}\n'
        )

    wide = 'queue = { kind = "droptail", packets = 1000 }'
    link("core", ("left", "right"), "15Mbit/s", "20ms", f"queue = {queue}\nback = {{ {wide} }}")
    for i in range(2 * FLOWS):
        noise = f'jitter = "{round(late * 1e9)}ns"\nback = {{ jitter = "0s" }}'
        link(f"near{i}", (f"from{i}", "left"), "100Mbit/s", "1ms", f"{wide}\n{noise}")
        link(f"far{i}", ("right", f"to{i}"), "100Mbit/s", "1ms", wide)
        flow = [f'from = "from{i}"\nto = "to{i}"\nstart = "{1000 * (i % FLOWS) // FLOWS}ms"']
        flow.append("rtcp = { enabled = false }")
        if i < FLOWS:
            flow.append('source = { kind = "bulk" }')
            flow.append(
                'transport = { kind = "tcp", controller = "sack", mss = "1000B", '
                'delayed_ack = false, timestamps = false, min_rto = "200ms", '
                'receive_buffer = "64MB", send_buffer = "8MB" }'
            )
        else:
            flow.append('source = { kind = "bulk", packet = "1000B" }\nsizing = "ns2"')
            flow.append('transport = { kind = "tfrc", profile = "ns2" }')
        text.append(f"[flows.f{i}]\n" + "\n".join(flow) + "\n")
    return "\n".join(text)


def ours(queue: str, noise: float, seed: int) -> Shares:
    """Packets received here."""
    result = talkspurt.run(scenario(QUEUES[queue], noise), seed=seed)
    received = result.flows["received_packets"].to_list()
    core = result.links.filter(result.links["name"] == "core").row(0, named=True)
    return sum(received[:FLOWS]), sum(received[FLOWS:]), core["drops"]


def mean_of(run: Callable[[int], Shares]) -> Shares:
    """The mean over seeds."""
    runs = [run(seed) for seed in range(1, SEEDS + 1)]
    return mean(r[0] for r in runs), mean(r[1] for r in runs), mean(r[2] for r in runs)


def compared(said: Callable[..., str]) -> tuple[list[list[str]], list[str]]:
    """The rows of the page's table, and differences beyond the band; ``said`` runs a command."""
    rows, wrong = [], []
    for queue, noise in product(QUEUES, NOISES):

        def ns2(seed: int, queue: str = queue, noise: float = noise) -> Shares:
            words = [str(word) for word in (FLOWS, FLOWS, queue, SECONDS, seed, noise)]
            counts = json.loads(said("ns", HERE / "shares.tcl", *words))
            return counts["tcp"], counts["tfrc"], counts["drops"]

        here, there = mean_of(partial(ours, queue, noise)), mean_of(ns2)
        name = f"{queue}, {NOISES[noise]}"
        print(name, here, there, flush=True)
        cells = [name]
        for what, one, other in zip(("TCP", "TFRC"), here, there, strict=False):
            off = one / other - 1
            cells += [f"{one:,.0f} ({off:+.1%})", f"{other:,.0f}"]
            if abs(off) > BAND:
                wrong.append(f"{what}, {name}: {off:+.1%}, the band is {BAND:.0%}")
        cells += [f"{drops / (drops + tcp + tfrc):.1%}" for tcp, tfrc, drops in (here, there)]
        rows.append(cells)
    return rows, wrong
