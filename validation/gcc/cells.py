#!/usr/bin/env python3
"""Compares whole calls of Chromium with ours, phase by phase, as ``cells.toml`` says.

    sudo .venv/bin/python validation/gcc/cells.py --record [--recorded FOLDER] [NETWORK ...]
    .venv/bin/python validation/gcc/cells.py [--recorded FOLDER]

With ``--record``, two Chromium browsers call each other once over each network, and the estimate of
each second is added to cells.json. Otherwise our calls are simulated from the instants at which
those of Chromium began, and the table of docs/validation/gcc.md is written. FOLDER has the traces
of mahimahi, without which the network *lte* is skipped.
"""

from __future__ import annotations

import argparse
import copy
import functools
import itertools
import json
import os
import sys
import tempfile
import tomllib
import wave
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import signal, stats

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "apps"), str(HERE.parent)]

import chromium  # noqa: E402
import events  # noqa: E402
import hearing  # noqa: E402
import made  # noqa: E402
import networks as apps  # noqa: E402
from tables import fill, table  # noqa: E402

import talkspurt  # noqa: E402
from talkspurt import _core, emulating  # noqa: E402
from talkspurt.importing.webrtc import eventlog  # noqa: E402
from talkspurt.results.audio import wav  # noqa: E402

FILE = HERE / "cells.json"
PAGE = HERE.parents[1] / "docs" / "validation" / "gcc.md"
CASES = tomllib.loads((HERE / "cells.toml").read_text())
START_S = 4
"""About so long after the network, a call begins: capacities change so much later."""
emulating.PRIORITY = 3
"""Above that of the browsers. One that waits for a processor finds packets late, which its peer
takes for a queue."""
AUDIO_BPS = 84_400 - 30_000
"""What sound takes of the estimate, with its headers."""
WAY = {
    "from": "left", "to": "right", "delay": "50ms",
    "queue": {"kind": "droptail", "time": "300ms", "follow_rate": True},
    "back": {"rate": "10Mbit/s", "steps": [], "queue": {"kind": "droptail", "time": "300ms"}},
}  # fmt: skip
TCP = {
    "from": "a", "to": "b", "transport": {"kind": "tcp", "controller": "newreno"},
    "source": {"kind": "bulk"},
}  # fmt: skip
FIRST, LAST = ("wire", "line", "a"), ("wire", "line", "b")
"""Names of links in the direction of the video."""
SOFT = "-soft"
"""Ends the names of networks that are crossed once more, with the soft picture."""
LEAST = "2640kbit/s"
"""Of pictures of 22 000 bytes, 15 times a second."""
CAUSES = (("lte", "half"), ("wifi", "half"), ("geo", "least"))
WORDS = {
    "half": "`headroom = 0.5`",
    "least": f'`min = "{LEAST}"`',
}
CODED = 2.4e6
"""At this estimate not every picture of noise can be coded."""
FULL = 1000
"""Bytes of payload of packets that take equally long."""
ACCESS = {"rate": "1Gbit/s", "delay": "0s", "queue": {"kind": "droptail", "packets": 1000}}
CALLS = (("a", "b"), ("c", "d"))
"""Nodes of the first and of the second call."""


def case(name: str) -> dict[str, Any]:
    """What ``cells.toml`` says of a network."""
    return CASES["rfc8867"].get(name) or CASES["apps"] | {"soft": name.endswith(SOFT)}


def names() -> list[str]:
    """All networks, in the order of the table."""
    return [*CASES["apps"]["networks"], *CASES["rfc8867"]]


def soft() -> list[str]:
    """Networks that are crossed once more, with the soft picture."""
    return [name + SOFT for name in CASES["soft"]["networks"]]


def links(name: str, traces: Path | None) -> dict[str, Any] | None:
    """Links and cells of a network; None without the traces that it needs."""
    if name not in CASES["rfc8867"]:
        return apps.links(name.removesuffix(SOFT), traces)
    it = CASES["rfc8867"][name]
    (_, first), *rest = it["capacity"]
    steps = [{"at": f"{at + START_S}s", "rate": f"{rate}Mbit/s"} for at, rate in rest]
    found = {"bottleneck": {**WAY, "rate": f"{first}Mbit/s", "steps": steps}}
    for here, there in CALLS[: it.get("calls", 1)]:
        found[here] = {**ACCESS, "from": here, "to": "left"}
        found[there] = {**ACCESS, "from": "right", "to": there}
    return {"links": found}


def beside(name: str) -> dict[str, Any]:
    """The simulated traffic beside the calls; a scenario needs a flow."""
    if case(name).get("tcp"):
        return {"tcp": TCP}
    if name == "bufferbloat":
        return apps.traffic(name)
    return silent(case(name)["seconds"])


def silent(seconds: float) -> dict[str, Any]:
    """A flow that begins after a call of this length."""
    found = copy.deepcopy(apps.traffic("clean"))
    found["silent"]["start"] = f"{seconds + 39}s"
    return found


def record(name: str, network: dict[str, Any], keep: Path | None) -> dict[str, Any]:
    """The calls of Chromium that belong to a case, once; files of the browsers stay in ``keep``."""
    it = case(name)
    pairs = CALLS[: it.get("calls", 1)]
    text = apps.scenario(network, beside(name), seconds=it["seconds"] + 40)
    # The first link of which packets can be captured, and the last.
    captured = [next(it for it in at if it in network["links"]) for at in (FIRST, LAST)]
    text["record"] |= {"pcapng": sorted(set(captured)), "snaplen": "100B"}
    more = [
        "video",
        "events",
        "first",
        f"most={bps(it['video'])}",
        *["soft"] * it.get("soft", False),
    ]
    with tempfile.TemporaryDirectory() as place:
        folder = keep or Path(place)
        folder.mkdir(parents=True, exist_ok=True)

        def one(pair: tuple[str, str], emulation: talkspurt.Emulation) -> dict[str, Any]:
            own = folder / "-".join(pair)
            own.mkdir(parents=True, exist_ok=True)
            speech(own / f"speech-{chromium.RATE_HZ}.wav")
            return chromium.browsers(own, it["seconds"], more, emulation, pair)

        def talk(emulation: talkspurt.Emulation) -> list[dict[str, Any]]:
            with ThreadPoolExecutor() as pool:
                return list(pool.map(one, pairs, itertools.repeat(emulation)))

        nodes = [node for pair in pairs for node in pair]
        latest_s = CASES["runs"]["late_ms"] / 1000
        found, result, late = apps.emulated(
            text, talk, folder / "network", latest_s=latest_s, nodes=nodes
        )
        sent, arrived = (
            pl.DataFrame(_core.capture((folder / "network" / f"{it}.pcapng").read_bytes())[0])
            for it in captured
        )
        log = folder / "-".join(pairs[0]) / "call" / "caller.events"
        hops = result.packets().filter(
            (pl.col("link") == captured[1]) & pl.col("dequeued_s").is_not_null()
        )
        left = (pl.col("dequeued_s") * 1e9).round().cast(pl.Int64).alias("time_ns")
        # On a traced link, several leave at one instant.
        place = pl.int_range(pl.len()).over("time_ns").alias("place")
        hops = hops.sort("dequeued_s", "enqueued_s").select(left, "received_s").with_columns(place)
        arrived = arrived.cast({"time_ns": pl.Int64}).with_columns(place)
        arrived = arrived.join(hops.drop_nulls(), on=["time_ns", "place"])
        behind_ms = behind(arrived, eventlog.read(next(log.iterdir()).read_bytes()))
    rows = sent.filter(pl.col("rtp_type") == chromium.OPUS)
    calls = []
    for ends in found:
        begin_ms = chromium.first_sample_ms(ends["answerer"])
        told = chromium.estimate(ends["caller"], begin_ms, it["seconds"])
        calls.append([[round(value) for value in row] for row in told])
    start_s = float(rows["time_ns"].min()) / 1e9
    about = {"late": late, "behind_ms": behind_ms, "load": os.getloadavg()[0]}
    return {**about, "start_s": start_s, "calls": calls}


def behind(rows: pl.DataFrame, log: eventlog.EventLog) -> float:
    """How late the receiver was with 99 % of the packets of video, more than with any, in ms.

    Times at which packets left the network are compared with those of transport-wide feedback.
    """
    numbers, last = {}, 0
    for row in log.events["outgoing_rtp_packets"]:
        if row.transport_sequence_number >= 0 and row.payload_size > FULL:
            last = events.unwrapped(row.transport_sequence_number, last)
            numbers[row.ssrc, row.sequence_number] = last
    arrived = {
        number: time_us
        for it in events.feedback(log, events.sent(log))
        for number, time_us in it.results
        if time_us >= 0
    }
    key = zip(rows["rtp_ssrc"], rows["rtp_seq"], rows["received_s"], strict=True)
    later = [
        arrived[numbers[ssrc, seq]] / 1e3 - received_s * 1e3
        for ssrc, seq, received_s in key
        if numbers.get((ssrc, seq)) in arrived
    ]
    return float(np.percentile(later, 99) - min(later))


def speech(file: Path) -> None:
    """Our recordings, one after the other, as ``hearing.speech`` has them, but without FFmpeg."""
    parts = []
    for name in hearing.SPEECH:
        with wave.open(str(hearing.ROOT / "speech" / f"{name}.wav")) as sound:
            samples = np.frombuffer(sound.readframes(1 << 30), np.int16)
            rate = sound.getframerate()
        part = signal.resample_poly(samples.astype(float), chromium.RATE_HZ, rate)
        parts.append(part.clip(-32768, 32767).astype(np.int16))
    file.write_bytes(wav(np.concatenate(parts).tobytes(), chromium.RATE_HZ))


def bps(rate: str) -> int:
    """A rate in bits per second."""
    return round(float(rate[:-6]) * {"M": 1e6, "k": 1e3}[rate[-6]])


def simulate(
    name: str, network: dict[str, Any], start_s: float, seed: int, cause: str = ""
) -> list[float]:
    """Our mean estimate of each phase, with a cause of differences or without."""
    it = case(name)
    end_s = start_s + it["seconds"]
    flows = copy.deepcopy(beside(name))
    most = bps(it["video"])
    pairs = CALLS[: it.get("calls", 1)]
    for number, (here, there) in enumerate(pairs):
        for key, flow in copy.deepcopy(CASES["ours"]).items():
            ends = (there, here) if key == "answer" else (here, there)
            times = {"start": f"{start_s:.6f}s", "stop": f"{end_s:.6f}s"}
            flow |= {"from": ends[0], "to": ends[1], **times}
            if key == "picture":
                flow["controller"]["max"] = f"{most + AUDIO_BPS}bit/s"
                flow["source"]["encoder"]["max"] = f"{most}bit/s"
                if cause == "least":
                    flow["source"]["encoder"]["min"] = LEAST
                if cause == "half":
                    flow["source"]["encoder"]["headroom"] = 0.5
            if "session" in flow:
                flow["session"] += f"-{number}"
            flows[f"{key}-{number}"] = flow
    flows.pop("silent", None)
    text = apps.scenario(network, flows, seconds=end_s + 1)
    result = talkspurt.run(text, seed=seed)
    calls = [
        phases(result.gauges(f"picture-{number}", "target_rate"), start_s, it["phases"])
        for number in range(len(pairs))
    ]
    return np.mean(calls, axis=0).tolist()


def phases(gauge: pl.DataFrame, start_s: float, wanted: list[list[float]]) -> list[float]:
    """Means over time of a gauge, which holds until it changes."""
    times, values = gauge["time_s"].to_numpy() - start_s, gauge["value"].to_numpy()
    found = []
    for begin, end in wanted:
        at = np.arange(begin, end, 0.005)
        before = np.searchsorted(times, at, side="right") - 1
        found.append(float(np.mean(values[np.maximum(before, 0)])))
    return found


def theirs(name: str, run: dict[str, Any]) -> list[float]:
    """Chromium's mean estimate of each phase; that of several calls."""
    calls = [
        [
            np.mean([row[1] for row in call if begin < row[0] <= end])
            for begin, end in case(name)["phases"]
        ]
        for call in run["calls"]
    ]
    return np.mean(calls, axis=0).tolist()


def interval(values: list[float]) -> float:
    """Half of the width of the 95 % interval of a mean; 0 of a single value."""
    count = len(values)
    if count < 2:
        return 0.0
    return float(stats.t.ppf(0.975, count - 1) * np.std(values, ddof=1) / np.sqrt(count))


def runs(name: str) -> list[dict[str, Any]]:
    """Chromium's runs over a network, or the one of docs/validation/apps.md."""
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    if name in found:
        return found[name]
    one = json.loads((HERE.parent / "apps" / "chromium.json").read_text()).get(f"{name} video")
    return [{"start_s": one["start_s"], "calls": [one["estimate"]]}] if one else []


def compare(wanted: list[str], traces: Path | None) -> tuple[str, list[bool], list[bool]]:
    """The table of these networks, which cells agree, and which do without Chromium's interval."""
    rows: list[list[str]] = []
    verdicts: list[bool] = []
    alone: list[bool] = []
    with ProcessPoolExecutor() as pool:
        for name in wanted:
            network, told = links(name, traces), runs(name)
            if network is None or not told:
                continue
            seeds = range(1, CASES["runs"]["ours"] + 1)
            starts = [told[seed % len(told)]["start_s"] for seed in seeds]
            ours = list(pool.map(functools.partial(simulate, name, network), starts, seeds))
            for place, (begin, end) in enumerate(case(name)["phases"]):
                values = [theirs(name, run)[place] for run in told]
                own = [it[place] for it in ours]
                mean, half = float(np.mean(values)), interval(values)
                share = abs(np.mean(own) / mean - 1)
                alone.append(bool(share <= CASES["acceptance"]["near"]))
                verdicts.append(alone[-1] or bool(share * mean <= half))
                row = [f"`{name}`", f"{begin} – {end} s", str(len(told)), cell(mean, half)]
                row.append(cell(float(np.mean(own)), interval(own), is_near=verdicts[-1]))
                rows.append(row)
                print(*row, flush=True)
    heads = "network | phase | runs | Chromium, Mbit/s | ours"
    return table(heads, rows, "llrrr"), verdicts, alone


def judge(traces: Path | None) -> dict[str, object]:
    """The parts of the page."""
    text, verdicts, alone = compare(names(), traces)
    agree = f"{sum(verdicts)} of {len(verdicts)} cells ({np.mean(verdicts):.0%})"
    agree += f", {sum(alone)} of them within 20 %"
    print(agree, f"agree; {CASES['acceptance']['share']:.0%} were asked for")
    parts = {"cells": text, "agree": agree, "cells_soft": compare(soft(), traces)[0]}
    of_noise, of_soft = (
        [f"{sent(it):.0%} on *{it.removesuffix(SOFT)}*" for it in group if runs(it)]
        for group in (CASES["soft"]["networks"], soft())
    )
    return {
        **parts,
        "sent": " and ".join(of_noise),
        "sent_soft": " and ".join(of_soft),
        "causes": causes(traces),
        "runs": about_runs(),
    }


def causes(traces: Path | None) -> str:
    """The table of our estimates with a cause of differences."""
    rows = []
    for name, cause in CAUSES:
        network, told = links(name, traces), runs(name)
        if network is None or not told:
            continue
        seeds = range(1, CASES["runs"]["ours"] + 1)
        starts = [told[seed % len(told)]["start_s"] for seed in seeds]
        with ProcessPoolExecutor() as pool:
            one = functools.partial(simulate, name, network, cause=cause)
            ours = list(pool.map(one, starts, seeds))
        theirs_each = [theirs(name, run) for run in told]
        for place, (begin, end) in enumerate(case(name)["phases"]):
            each = [[it[place] for it in group] for group in (theirs_each, ours)]
            words = [cell(float(np.mean(it)), interval(it)) for it in each]
            rows.append([f"`{name}`", f"{begin} – {end} s", WORDS[cause], *words])
            print(*rows[-1], flush=True)
    return table("network | phase | with | Chromium, Mbit/s | ours", rows, "lllrr")


def sent(name: str) -> float:
    """Chromium's video as a share of the estimate, after 3 s and below ``CODED``."""
    rows = [row for run in runs(name) for call in run["calls"] for row in call]
    return float(np.mean([row[2] / row[1] for row in rows if row[0] > 3 and row[1] < CODED]))


def cell(mean: float, half: float, *, is_near: bool = True) -> str:
    """A mean and its interval, in Mbit/s."""
    text = f"{mean / 1e6:.2f}" if is_near else f"**{mean / 1e6:.2f}**"
    return f"{text} ± {half / 1e6:.2f}" if half else text


def about_runs() -> str:
    """When Chromium was recorded, and how late its packets left the network."""
    every = [run for it in names() + soft() for run in runs(it) if "made" in run]
    if not every:
        return "None was recorded."
    dates = sorted(run["made"]["date"] for run in every)
    late = max(run["late"]["p99_s"] for run in every) * 1e3
    behind = max(run["behind_ms"] for run in every)
    loads = sorted(run["load"] for run in every)
    program = every[0]["made"]["chromium"].split(" built")[0]
    return (
        f"{program}, {dates[0]} to {dates[-1]}; 99 % of the packets left the network at most"
        f" {late:.1f} ms late, and were seen by the browser at most"
        f" {behind:.1f} ms later; load {loads[0]:.0f} to {loads[-1]:.0f} on 2 processors."
    )


def main() -> None:
    """Record, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--recorded", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    if not asked.record:
        fill(PAGE, judge(asked.recorded))
        return
    about = {**made.made(FILE), "chromium": made.line("chromium", "--version")}
    for name in asked.names or names():
        network = links(name, asked.recorded)
        if network is None:
            print(f"{name}: skipped, needs the traces {', '.join(apps.TRACES)}: --recorded FOLDER")
            continue
        found = json.loads(FILE.read_text()) if FILE.exists() else {}
        keep = asked.keep / f"{name}-{len(found.get(name, []))}" if asked.keep else None
        try:
            run = {"made": about, **record(name, network, keep)}
        except apps.TooLateError:
            print(f"{name}: not recorded, the machine is too busy", flush=True)
            continue
        limits = CASES["runs"]
        if run["start_s"] > limits["latest_start_s"] or run["behind_ms"] > limits["behind_ms"]:
            told = f"began after {run['start_s']:.1f} s, {run['behind_ms']:.1f} ms behind"
            print(f"{name}: discarded, {told}", flush=True)
            continue
        # Another recording may have ended in the meantime.
        found = json.loads(FILE.read_text()) if FILE.exists() else {}
        found.setdefault(name, []).append(run)
        print(name, run["late"], [f"{it / 1e6:.2f}" for it in theirs(name, run)], flush=True)
        FILE.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
