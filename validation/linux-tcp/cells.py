"""Senders of the kernel and ours alone on the same networks: goodput, SRTT and timeouts.

The kernel's sender and receiver are two programs of an emulation; ours is simulated on the same
scenario, with the same seeds. The cells, the rules by which they differ and the settings that may
explain a difference were committed before the first run:

* A run takes 60 s from the instant at which the sender is connected. The kernel's are repeated, at
  most three times, if more than one packet in a hundred left the emulation more than 1 ms late.
* A measure of a cell differs if Welch's test over the runs says so at 5 %, with Holm's correction
  over all measures of all cells, and the means differ by more than ``APART``.
* It is explained by the first setting of ours in ``SWITCHES`` which removes 80 % of the difference
  of the means; if none does, it is open.

    sudo .venv/bin/python validation/linux-tcp/cells.py [JOBS]     # runs what is missing
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

import talkspurt

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
import page  # noqa: E402
import rules  # noqa: E402
from made import ROOT  # noqa: E402
from tables import fill  # noqa: E402

FILE = page.CELLS
SECONDS = 60
KERNEL_RUNS, OUR_RUNS = 5, 20
LATENESS_P99_S, TRIES = 1e-3, 4
SAMPLING_S = 0.05
"""Time between two readings of SRTT."""
CONTROLLERS = {
    "reno": {"controller": "newreno", "recovery": "rack"},
    "cubic": {"controller": "cubic"},
    "bbr": {"controller": "bbr"},
}
"""The kernel's name, and ours: the kernel always has selective acknowledgements and RACK-TLP."""
HOST = {
    "kind": "tcp", "min_rto": "200ms", "ack_delay": "40ms", "receive_buffer": "6MB",
    "send_buffer": "4MB",
}  # fmt: skip
NETWORKS = {
    # Mbit/s, round trip in ms, queue in bandwidth-delay products, loss there and back.
    "clean, 20 ms": (10, 20, 1, 0, 0),
    "clean, deep queue": (10, 40, 4, 0, 0),
    "clean, shallow queue": (10, 100, 0.2, 0, 0),
    "clean, 600 ms": (5, 600, 1, 0, 0),
    "1 % there": (10, 50, 1, 0.01, 0),
    "5 % there": (5, 100, 1, 0.05, 0),
    "10 % there": (2, 200, 1, 0.1, 0),
    "30 % there": (2, 100, 1, 0.3, 0),
    "2 % both ways": (10, 40, 0.5, 0.02, 0.02),
    "5 % both ways, 600 ms": (5, 600, 0.5, 0.05, 0.05),
    "10 % both ways": (2, 100, 1, 0.1, 0.1),
    "20 % both ways": (2, 100, 3, 0.2, 0.2),
    "30 % both ways": (1, 50, 2, 0.3, 0.3),
}
CELLS = [(network, controller) for network in NETWORKS for controller in CONTROLLERS]
MEASURES = {"goodput_bps": "goodput", "srtt_s": "median SRTT", "timeouts": "timeouts"}
APART: dict[str, Callable[[float, float], bool]] = {
    "goodput_bps": lambda a, b: abs(a - b) > 0.05 * b,
    "srtt_s": lambda a, b: abs(a - b) > max(0.1 * b, 2e-3),
    "timeouts": lambda a, b: abs(a - b) > max(0.2 * b, 1.0),
}
"""Whether two means are far enough apart to be called different; the second is the kernel's."""
SWITCHES: dict[str, dict[str, Any] | str] = {
    "each segment acknowledged": {"delayed_ack": False},
    "no HyStart": {"hystart": False},
    "no F-RTO": {"f_rto": False},
    "no timestamps": {"timestamps": False},
    "recovery by RFC 6675, without RACK-TLP": {"recovery": "sack"},
    "paced": {"pacing": True},
    "echoes from before a retransmission measured": "stale-echo",
    "the lower bound is that of 4 RTTVAR, not of the RTO": "rto-floor",
    "each sample weighs as much, without RFC 7323 appendix G": "appendix-g",
    "half of the window after a loss, not of the flight": "flight",
    "slow start counts all bytes of an acknowledgement": "slow-start-limit",
    "α of CUBIC 0.53 for ever": "cubic-alpha",
    "CUBIC without W_max grows by 5 % of the window": "cubic-restart",
    "losses change nothing, as in BBR version 1": "bbr-loss",
}
"""Parameters of the transport, or a rule of `rules.patch` that is switched off. The latter are
what tcp_input.c, tcp_cubic.c and tcp_bbr.c of Linux do otherwise, as read before the first
comparison."""
SEND = """\
import json, select, socket, struct, sys, time
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[2].encode())
s.connect((sys.argv[1], 5000))
began = time.monotonic()
s.setblocking(False)
chunk, srtt, due = bytes(65536), [], began
while (now := time.monotonic()) < began + float(sys.argv[3]):
    if now >= due:
        info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 248)
        srtt.append(struct.unpack_from("I", info, 68)[0] / 1e6)
        due += float(sys.argv[4])
    if select.select([], [s], [], max(0, due - now))[1]:
        try: s.send(chunk)
        except BlockingIOError: pass
# tcpi_total_rto, since Linux 6.7
print(json.dumps([began, srtt, struct.unpack_from("H", info, 240)[0]]))
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
"""
HEAR = """\
import json, socket, sys, time
s = socket.socket()
s.bind((sys.argv[1], 5000))
s.listen()
c, _ = s.accept()
total, got = 0, []
# The reset that ends the connection may be lost.
until = time.monotonic() + float(sys.argv[2])
try:
    while (left := until - time.monotonic()) > 0:
        c.settimeout(left)
        data = c.recv(1 << 20)
        if not data: break
        total += len(data)
        got.append([time.monotonic(), total])
except OSError:
    pass
print(json.dumps(got))
"""


def scenario(network: str, seed: int, flows: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The network and these flows."""
    rate, trip_ms, queue, there, back = NETWORKS[network]
    packets = max(2, round(queue * rate * 1e6 * trip_ms / 1e3 / 8 / 1500))
    line = {
        "from": "a", "to": "b", "rate": f"{rate}Mbit/s", "delay": f"{trip_ms / 2}ms",
        "queue": {"kind": "droptail", "packets": packets}, "loss": there, "back": {"loss": back},
    }  # fmt: skip
    return {
        "title": "One sender", "duration": f"{seconds}s", "seed": seed, "links": {"line": line},
        "flows": flows,
    }  # fmt: skip


def kernel(network: str, controller: str, seed: int) -> dict[str, Any]:
    """One run of the kernel's sender."""
    silent = {
        "from": "a", "to": "b", "start": "149s", "transport": {"kind": "udp"},
        "source": {"kind": "cbr", "rate": "8kbit/s", "packet": "100B"},
    }  # fmt: skip
    python = [sys.executable, "-I", "-S", "-c"]
    for _ in range(TRIES):
        text = scenario(network, seed, {"silent": silent}, 150)
        with talkspurt.Emulation(text, ["a", "b"]) as running, tempfile.TemporaryFile("w+") as out:
            at = running.addresses["b"][0]
            server = running.serve("b", [*python, HEAR, at, str(SECONDS + 1)], stdout=out)
            words = [at, controller, str(SECONDS), str(SAMPLING_S)]
            said = running.run("a", [*python, SEND, *words], timeout=145).stdout
            try:
                server.wait(15)
            finally:
                out.seek(0)
                heard = out.read()
        late = running.result.manifest["real_time"]["lateness"]["p99_s"]
        if late < LATENESS_P99_S:
            break
    else:
        raise RuntimeError(f"more than 1 ms late in {TRIES} tries: {late}")
    began, srtt, timeouts = json.loads(said)
    inside = [total for at_s, total in json.loads(heard) if at_s <= began + SECONDS]
    return {
        "goodput_bps": 8 * inside[-1] / SECONDS, "srtt_s": statistics.median(srtt),
        "srtt_max_s": max(srtt), "timeouts": timeouts, "late_p99_s": late,
    }  # fmt: skip


def ours(network: str, controller: str, seed: int, setting: dict[str, Any]) -> dict[str, Any]:
    """One run of our sender."""
    transport = {**HOST, **CONTROLLERS[controller], **setting}
    flow = {
        "from": "a", "to": "b", "transport": transport, "source": {"kind": "bulk"},
        "start_spread": "0s",
    }  # fmt: skip
    text = {
        **scenario(network, seed, {"ours": flow}, SECONDS + 30),
        "record": {"gauges": True, "interval": "100ms"},
    }
    result = talkspurt.run(text, jobs=1)
    gauges = result.table("gauges").filter(pl.col("side") == "from")
    known = gauges.filter(gauge="srtt")
    times, values = known["time_s"].to_numpy(), known["value"].to_numpy()
    # The handshake's sample; after a lost SYN the first of the data.
    began = times[0]
    read = np.searchsorted(times, began + np.arange(0, SECONDS, SAMPLING_S), side="right") - 1
    series = result.series("ours")
    inside = series.filter((pl.col("time_s") > began) & (pl.col("time_s") <= began + SECONDS))
    spans = gauges.filter(gauge="rto").filter(pl.col("time_s") <= began + SECONDS)["value"]
    return {
        "goodput_bps": float(inside["goodput_bps"].mean()),
        "srtt_s": float(np.median(values[read])), "srtt_max_s": float(values[read].max()),
        # Backing off is the one thing that doubles the timer's span.
        "timeouts": int(((spans / spans.shift(1)) >= 1.99).sum()),
    }  # fmt: skip


def repeated(network: str, controller: str, setting: dict[str, Any] | str) -> list[dict[str, Any]]:
    """Runs of our sender with a setting, or without a rule."""
    rule, parameters = (setting, {}) if isinstance(setting, str) else ("", setting)
    with rules.without(rule), ThreadPoolExecutor(os.cpu_count()) as pool:
        seeds = range(1, OUR_RUNS + 1)
        return list(pool.map(lambda seed: ours(network, controller, seed, parameters), seeds))


def load() -> dict[str, Any]:
    """What was measured before."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {"kernel": {}}


def save(found: dict[str, Any]) -> None:
    """Replaces the file at once, so that a kill loses nothing."""
    new = FILE.with_suffix(".new")
    new.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    new.replace(FILE)


def run(jobs: int) -> dict[str, Any]:
    """Runs what is missing of the kernel's side, `jobs` at a time, then all of ours, and judges."""
    found = load()
    missing = [
        (network, controller, seed)
        for seed in range(1, KERNEL_RUNS + 1)
        for network, controller in CELLS
        if f"{network}, {controller}, {seed}" not in found["kernel"]
    ]
    with ThreadPoolExecutor(jobs) as pool:
        for cell, row in zip(missing, pool.map(attempt, missing), strict=True):
            print(*cell, row, flush=True)
            if isinstance(row, dict):
                found["kernel"][", ".join(map(str, cell))] = row
                save(found)
    if len(found["kernel"]) < KERNEL_RUNS * len(CELLS):
        sys.exit("cells: runs are missing; start again to run them")
    rules.use()
    found["ours"] = {f"{network}, {controller}": repeated(network, controller, {})
                     for network, controller in CELLS}  # fmt: skip
    found["verdicts"] = judge(found)
    save(found)
    return found


def attempt(cell: tuple[str, str, int]) -> dict[str, Any] | str:
    """A run of the kernel's sender, or why it failed."""
    try:
        return kernel(*cell)
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        return f"failed: {error}"


def judge(found: dict[str, Any]) -> list[dict[str, Any]]:
    """A verdict for each measure of each cell."""
    rows = []
    for network, controller in CELLS:
        name = f"{network}, {controller}"
        theirs = [found["kernel"][f"{name}, {seed}"] for seed in range(1, KERNEL_RUNS + 1)]
        for measure in MEASURES:
            a, b = ([run[measure] for run in runs] for runs in (found["ours"][name], theirs))
            p = 1.0 if {*a, *b} == {a[0]} else float(stats.ttest_ind(a, b, equal_var=False).pvalue)
            rows.append({"network": network, "controller": controller, "measure": measure,
                         "ours": interval(a), "kernel": interval(b), "p": p})  # fmt: skip
    # Holm: the k-th smallest of n is compared with 5 % / (n − k + 1).
    holds = True
    for rank, row in enumerate(sorted(rows, key=lambda row: row["p"])):
        holds = holds and row["p"] <= 0.05 / (len(rows) - rank)
        apart = APART[row["measure"]](row["ours"][0], row["kernel"][0])
        row["verdict"] = "differs" if holds and apart else "agrees"
    tried: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["verdict"] == "differs":
            explain(row, tried)
    return rows


def explain(row: dict[str, Any], tried: dict[tuple[str, str, str], list[dict[str, Any]]]) -> None:
    """Finds the setting that removes 80 % of a difference, and notes what each removes."""
    cell = (row["network"], row["controller"])
    row["removes"] = {}
    for switch, setting in SWITCHES.items():
        if not applies(row["controller"], setting):
            continue
        if (*cell, switch) not in tried:
            tried[*cell, switch] = repeated(*cell, setting)
        runs = tried[*cell, switch]
        mean = statistics.mean(run[row["measure"]] for run in runs)
        apart = row["ours"][0] - row["kernel"][0]
        row["removes"][switch] = 1 - abs(mean - row["kernel"][0]) / abs(apart)
    row["cause"] = next((name for name, share in row["removes"].items() if share >= 0.8), None)


def applies(controller: str, setting: dict[str, Any] | str) -> bool:
    """Whether a controller has this setting and another value of it."""
    if "hystart" in setting or str(setting).startswith("cubic-"):
        return controller == "cubic"
    if controller == "bbr":
        windows = {"flight", "slow-start-limit"}
        return setting not in windows if isinstance(setting, str) else not {
            "pacing", "recovery"
        } & set(setting)  # fmt: skip
    return setting != "bbr-loss"


def interval(values: list[float]) -> list[float]:
    """The mean, and half of its interval of 95 %."""
    half = stats.t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
    return [statistics.mean(values), float(half)]


if __name__ == "__main__":
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    fill(ROOT / "docs" / "validation" / "linux-tcp.md", page.alone(run(jobs)))
