"""Calls in real time and simulated: writes calls.json here.

    sudo .venv/bin/python validation/emulate/calls.py [NETWORK:CODEC ...]
    .venv/bin/python validation/emulate/calls_page.py [FILE]

``talkspurt call`` and ``answer`` talk to each other through each network over each transport. The
same call is then simulated: the flow that the call wrote to its folder, between the same nodes,
under several seeds, starts around the real one and offsets between the frames of both ends. A band
is the range of the simulations, widened by a margin that was fixed before the first measurement.
Needs root; takes 40 minutes.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

import talkspurt
from talkspurt.results.audio import read_wav, wav

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILE = HERE / "calls.json"
SECONDS = 15
RUNS = 12
"""Simulations per call."""
FRAME_S = 0.02
TOGETHER = 4
"""Calls at the same time, over networks of their own."""
LEAD_S = 1.0
"""From the start of a call's clock to its media."""
SPEECH = {"a": ("spanish-woman", "english-man"), "b": ("french-woman", "russian-woman")}
"""What each end says, one recording after the other: a real call goes on in silence after a file, a
simulated one does not."""
TRANSPORTS = (
    "udp", "tfrc", "tfrc-tb", "dccp-ccid2", "dccp-ccid3", "dccp-ccid4", "sctp", "tcp-reno",
    "dccp-ccid2-ip", "dccp-ccid3-ip", "dccp-ccid4-ip", "sctp-ip",
)  # fmt: skip
LADDERS = {
    "pcmu": "pcmu,g726-40,g726-32,g726-24,g726-16",
    "amr-12.2": "amr-12.2,amr-7.95,amr-5.9,amr-4.75",
    "opus": "opus",
}
"""The codecs, and those of the same call over TFRC-TB."""
RATES = {"near": "125kbit/s", "narrow": "84kbit/s"}
"""The call over UDP needs 105 kbit/s with its probes and the control connection."""
NETWORKS = {
    "clean": "10 Mbit/s, 20 ms each way",
    "loss": "the same, with 1 % of the packets lost at random in each direction",
    "near": "125 kbit/s, a fifth more than G.711 over UDP needs, 20 ms each way, queues of 20 "
    "packets",
    "narrow": "84 kbit/s, a fifth less than that, for TFRC-TB, otherwise the same",
    "lte": "`scenarios/networks/lte.toml` without its upload: 1 to 12 Mbit/s, 25 ms and up to 8 ms "
    "more",
    "wifi": "a station of 802.11g at 25 dB with Minstrel beside four that always have a packet to "
    "send, 10 ms of wire behind the access point",
}
CASES = [
    (name, codec) for codec in LADDERS for name in NETWORKS if codec == "pcmu" or name not in RATES
]
MARGINS = {"delay_p50_s": (0.05, 1e-3), "loss_ratio": (0.0, 0.005), "mos": (0.0, 0.1)}
"""Of bands, as a share of the mean of the simulations, and at least."""
TALKSPURT = (sys.executable, "-m", "talkspurt")


def network(name: str, ends: tuple[str, str], simulated: bool) -> dict[str, Any]:
    """Links, cells and flows of one network between two nodes, whose names its own names end in."""
    a, b = ends
    line: dict[str, Any] = {
        "from": a, "to": b, "rate": "10Mbit/s", "delay": "20ms",
        "queue": {"kind": "droptail", "packets": 100},
    }  # fmt: skip
    if name == "loss":
        line["loss"] = 0.01
    if name in RATES:
        line |= {
            "rate": RATES[name],
            "queue": {"kind": "droptail", "packets": 20},
        }
        if simulated:
            # The 38 bytes that number and seal each real packet.
            line["framing"] = "ethernet"
    if name == "lte":
        text = (ROOT / "scenarios" / "networks" / "lte.toml").read_text(encoding="utf-8")
        found = tomllib.loads(text)
        return {"links": {f"line{a}": {**found["links"]["lte"], "from": a, "to": b}}}
    if name == "wifi":
        cell = {
            "access_point": f"p{a}", "standard": "802.11g", "rate": {"kind": "minstrel"},
            "snr_db": 25.0, "queue": {"kind": "droptail", "packets": 300},
            "contenders": {"count": 4}, "stations": {a: {}},
        }  # fmt: skip
        wire = {**line, "from": f"p{a}", "rate": "100Mbit/s", "delay": "10ms"}
        return {"cells": {f"cell{a}": cell}, "links": {f"line{a}": wire}}
    return {"links": {f"line{a}": line}}


def speech(folder: Path) -> dict[str, str]:
    """The files of what each end says."""
    files = {}
    for end, names in SPEECH.items():
        found = [read_wav(ROOT / "speech" / f"{name}.wav") for name in names]
        file = folder / f"{end}.wav"
        file.write_bytes(wav(b"".join(pcm for pcm, *_ in found), *found[0][1:]))
        files[end] = str(file)
    return files


def _joined(parts: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    whole: dict[str, Any] = {"title": "Calls", "seed": 1, "duration": f"{seconds:.4f}s"}
    for part in parts:
        for key, tables in part.items():
            whole.setdefault(key, {}).update(tables)
    return whole


def real(
    name: str, codec: str, transports: tuple[str, ...], said: dict[str, str]
) -> list[dict[str, Any]]:
    """Calls over the transports at the same time, each over a network of its own."""
    pairs = {transport: (f"a{n}", f"b{n}") for n, transport in enumerate(transports)}
    text = _joined([network(name, pair, False) for pair in pairs.values()], 120)
    if "flows" not in text:
        a, b = next(iter(pairs.values()))
        source = {"kind": "cbr", "rate": "8kbit/s", "packet": "100B"}
        silent = {"from": a, "to": b, "start": "119s", "transport": {"kind": "udp"}}
        text["flows"] = {"silent": {**silent, "source": source}}
    for (_, one), (_, other) in itertools.pairwise(pairs.values()):
        # Unused: an emulation has links between all of its nodes.
        joint = {**network("clean", (one, other), False)["links"][f"line{one}"]}
        text["links"][f"joint{one}"] = joint
    text["record"] = {"packets": True}
    offered = LADDERS[codec]
    rows = []
    with tempfile.TemporaryDirectory() as kept:
        with talkspurt.Emulation(text, [end for pair in pairs.values() for end in pair]) as running:
            calls = []
            for transport, (a, b) in pairs.items():
                there, here = Path(kept) / b, Path(kept) / a
                more = ("--quiet", "--no-report")
                say = ("--speech", said["b"])
                hear = ("--heard", f"{there}.wav", "--out", str(there))
                listen = ("--listen", "0.0.0.0:7863")
                running.serve(b, [*TALKSPURT, "answer", *listen, *say, *hear, *more])
                say = ("--speech", said["a"])
                hear = ("--heard", f"{here}.wav", "--out", str(here))
                how = ("--transport", transport, "--for", f"{SECONDS}s", "--codec")
                codecs = offered if transport == "tfrc-tb" else codec
                call = [*TALKSPURT, "call", b, *say, *hear, *how, codecs, *more]
                calls.append((transport, a, b, running.start(a, call)))
            status = {transport: call.wait(75) for transport, *_, call in calls}
        late = running.result.manifest["real_time"]["lateness"]
        for transport, a, b, _ in calls:
            if not (Path(kept) / a).exists():
                print(f"{name} {codec} {transport}: no call", flush=True)
                continue
            result = talkspurt.load(Path(kept) / a)
            scenario = tomllib.loads((Path(kept) / a / "scenario.toml").read_text("utf-8"))
            rows.append({
                "network": name, "codec": codec, "transport": transport,
                "began_s": _began(running.result, result, (a, b)), "late_p99_s": late["p99_s"],
                "status": status[transport], "real": _measures(result),
                "flow": scenario["flows"]["call"],
            })  # fmt: skip
    return rows


def _began(network: talkspurt.Result, call: talkspurt.Result, ends: tuple[str, str]) -> float:
    """The network's time at the call's zero: with it, most frames left when they should."""
    sent = call.table("frames").filter(flow="call")["handed_over_s"].drop_nulls().to_numpy()
    left = []
    for row in network.flows.filter(source="real").to_dicts():
        if {row["from"], row["to"]} == set(ends) and not row["name"].endswith(".reverse"):
            side = "from" if row["from"] == ends[0] else "to"
            left += network.packets(row["name"]).filter(side=side)["enqueued_s"].to_list()
    packets = np.sort(np.array(left))
    zeros = packets[:, None] - sent[None, :20]

    def met(zero: float) -> int:
        after = packets[np.clip(np.searchsorted(packets, sent + zero - 2e-4), 0, len(packets) - 1)]
        return int(np.sum(after - (sent + zero) < 1e-3))

    return float(max(np.unique(zeros.round(4)), key=met))


def _measures(result: talkspurt.Result) -> list[dict[str, Any]]:
    """Of both directions."""
    events = result.table("events")
    rows = []
    for name, side in (("call", "from"), ("call.reverse", "to")):
        row = result.flows.filter(name=name).row(0, named=True)
        mine = events.filter(flow="call", side=side)["event"].to_list()
        steps = [int(it.removeprefix("encoding_")) for it in mine if it.startswith("encoding_")]
        rows.append({**{key: row[key] for key in MARGINS}, "encodings": steps})
    return rows


def simulated(row: dict[str, Any], said: dict[str, str]) -> list[list[dict[str, Any]]]:
    """The same call, simulated."""
    found = []
    for number in range(RUNS):
        start = max(0.5, row["began_s"] + LEAD_S + 0.0137 * (number - RUNS // 2))
        text = _joined([network(row["network"], ("a", "b"), True)], start + SECONDS + 2)
        flow = json.loads(json.dumps(row["flow"]))
        flow |= {
            "from": "a",
            "to": "b",
            "start": f"{start:.4f}s",
            "stop": f"{start + SECONDS:.4f}s",
        }
        flow["source"]["file"], flow["reverse"]["file"] = said["a"], said["b"]
        # The frames of real ends begin at any time after each other.
        flow["reverse"]["lead"] = f"{number * FRAME_S / RUNS:.6f}s"
        if row["transport"].startswith("tcp-"):
            flow["transport"] = {"kind": "tcp", "controller": "sack", "min_rto": "200ms"}
        text.setdefault("flows", {})["call"] = flow
        if row["network"] in RATES:
            # Probes, their answers and reports, and signs of life on the control connection.
            cbr = {"kind": "cbr", "packet": "20B", "rate": "2240bit/s"}
            probes = {"from": "a", "to": "b", "transport": {"kind": "udp"}, "source": cbr}
            text["flows"]["probes"] = {**probes, "reverse": cbr}
        found.append(_measures(talkspurt.run(text, seed=number + 1)))
    return found


def compared(row: dict[str, Any], said: dict[str, str]) -> dict[str, Any]:
    """The measures of a call beside the ranges of its simulations."""
    runs = simulated(row, said)
    ranges = []
    for side in (0, 1):
        every = [run[side] for run in runs]
        found: dict[str, Any] = {}
        for key in MARGINS:
            values = [it[key] for it in every if it[key] is not None]
            # The model has no score of some codecs.
            found[key] = [min(values), sum(values) / len(values), max(values)] if values else None
        changes = [len(it["encodings"]) for it in every]
        found["changes"] = [min(changes), max(changes)]
        found["last"] = sorted({it["encodings"][-1] for it in every if it["encodings"]})
        ranges.append(found)
    return {**{key: it for key, it in row.items() if key != "flow"}, "simulated": ranges}


def within(value: float | None, found: list[float] | None, key: str) -> bool:
    """Whether a value is in the band."""
    if value is None or found is None:
        return value is None and found is None
    share, least = MARGINS[key]
    more = max(share * found[1], least)
    return found[0] - more <= value <= found[2] + more


def write(rows: list[dict[str, Any]]) -> None:
    """Write the results, a call on each line, in the order of the page."""
    rows.sort(
        key=lambda it: (
            CASES.index((it["network"], it["codec"])), TRANSPORTS.index(it["transport"])
        )
    )  # fmt: skip
    lines = ",\n".join(json.dumps(row) for row in rows)
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def main(wanted: list[tuple[str, str]]) -> None:
    """Measure, and keep what other measurements found."""
    os.environ["TALKSPURT_SECRET"] = "a secret for this comparison"
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        said = speech(Path(folder))
        for name, codec in wanted or CASES:
            known = [it for it in known if (it["network"], it["codec"]) != (name, codec)]
            transports = ("tfrc-tb",) if name == "narrow" else TRANSPORTS
            for first in range(0, len(transports), TOGETHER):
                for row in real(name, codec, transports[first : first + TOGETHER], said):
                    known.append(compared(row, said))
                    print(known[-1], flush=True)
            write(known)


if __name__ == "__main__":
    main([(it.partition(":")[0], it.partition(":")[2]) for it in sys.argv[1:]])
