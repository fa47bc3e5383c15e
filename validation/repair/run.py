#!/usr/bin/env python3
"""Compares the repair of video in Chromium's calls with ours, as ``cases.toml`` says.

    sudo .venv/bin/python validation/repair/run.py --record [NETWORK ...]
    .venv/bin/python validation/repair/run.py

With ``--record``, two Chromium browsers call each other once over each network, and what was
measured is added to calls.json. Otherwise our calls are simulated, and the table of
docs/validation/repair.md is written.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tomllib
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "apps"), str(HERE.parent / "gcc"), str(HERE.parent)]

import cells  # noqa: E402
import chromium  # noqa: E402
import made  # noqa: E402
import networks as apps  # noqa: E402
from tables import fill, table  # noqa: E402

import talkspurt  # noqa: E402
from talkspurt import _core, emulating  # noqa: E402
from talkspurt.importing.webrtc import eventlog  # noqa: E402

FILE = HERE / "calls.json"
PAGE = HERE.parents[1] / "docs" / "validation" / "repair.md"
CASES = tomllib.loads((HERE / "cases.toml").read_text())
RUNS = CASES["runs"]
MEDIA, REPEATED = 96, 97
"""Payload types of VP8 and of its retransmissions, of Chromium and of ours. Chromium also repeats
packets as padding, which has the same type."""
MEASURES = {
    "repeats": ("retransmissions of a lost packet", 1, "{:.2f}"),
    "unrepaired": ("never repaired, %", 100, "{:.2f}"),
    "repair_p50_s": ("median time to repair, ms", 1000, "{:.0f}"),
    "repair_p95_s": ("95 % repaired within, ms", 1000, "{:.0f}"),
    "freezes": ("freezes a minute", 1, "{:.1f}"),
    "frozen": ("frozen, %", 100, "{:.2f}"),
}
"""By name: what is measured, with which factor and form it is shown."""


def network(name: str) -> dict[str, Any]:
    """The links of a network."""
    it = {key: value for key, value in CASES["networks"][name].items() if key != "title"}
    line = {"from": "a", "to": "b", "rate": "10Mbit/s", **it}
    return {"links": {"line": {**line, "queue": {"kind": "droptail", "packets": 100}}}}


def recorded(text: dict[str, Any]) -> dict[str, Any]:
    """A scenario whose packets can be looked at."""
    text["record"] |= {"packets": True, "sojourn": True, "pcapng": ["line"], "snaplen": "100B"}
    return text


def crossings(result: talkspurt.Result, capture: bytes) -> pl.DataFrame:
    """Packets of RTP from ``a``: stream, number, type, when each left and, unless lost, arrived."""
    rows = pl.DataFrame(_core.capture(capture)[0]).filter(pl.col("rtp_ssrc").is_not_null())
    rows = rows.with_columns(pl.col("time_ns").cast(pl.Int64))
    hops = result.packets().filter(pl.col("dequeued_s").is_not_null(), pl.col("link") == "line")
    left = (pl.col("dequeued_s") * 1e9).round().cast(pl.Int64).alias("time_ns")
    arrived = pl.when(pl.col("fate") == "received").then(pl.col("received_s")).alias("arrived_s")
    hops = hops.select(left, pl.col("dequeued_s").alias("left_s"), arrived)
    rows = rows.join(hops, on="time_ns").sort("time_ns")
    return rows.select("rtp_ssrc", "rtp_seq", "rtp_type", "payload_at", "left_s", "arrived_s")


def repair(
    rows: pl.DataFrame, originals: dict[int, int], begin_s: float, end_s: float, again: float
) -> dict[str, float]:
    """What became of the lost packets of media that left between two instants.

    ``originals`` has, by the number of a retransmission that arrived, that of the packet which it
    repeats; ``again`` packets were repeated in this time.
    """
    media = rows.filter(pl.col("rtp_type") == MEDIA)
    transit_s = float((media["arrived_s"] - media["left_s"]).min())
    lost = media.filter(pl.col("arrived_s").is_null(), pl.col("left_s").is_between(begin_s, end_s))
    copies: dict[int, list[float]] = {}
    repeated = rows.filter(pl.col("rtp_type") == REPEATED, pl.col("arrived_s").is_not_null())
    for number, arrived_s in repeated["rtp_seq", "arrived_s"].rows():
        copies.setdefault(originals.get(number, -1), []).append(arrived_s)
    ends = [(number, left_s + transit_s) for number, left_s in lost["rtp_seq", "left_s"].rows()]
    times = [min(copies[number]) - due_s for number, due_s in ends if number in copies]
    return {
        "lost": lost.height,
        "repeats": again / lost.height,
        "unrepaired": 1 - len(times) / lost.height,
        "repair_p50_s": float(np.percentile(times, 50)),
        "repair_p95_s": float(np.percentile(times, 95)),
    }


def record(name: str, keep: Path | None) -> dict[str, Any]:
    """One call of Chromium."""
    text = recorded(
        apps.scenario(network(name), cells.silent(RUNS["seconds"]), seconds=RUNS["seconds"] + 40)
    )
    more = ["video", "events", "first", "soft", "bare", f"most={cells.bps(RUNS['video'])}"]
    with tempfile.TemporaryDirectory() as place:
        folder = keep or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        cells.speech(folder / f"speech-{chromium.RATE_HZ}.wav")
        talk = partial(chromium.browsers, folder, RUNS["seconds"], more)
        latest_s = RUNS["late_ms"] / 1000
        ends, result, late = apps.emulated(text, talk, folder / "network", latest_s=latest_s)
        rows = crossings(result, (folder / "network" / "line.pcapng").read_bytes())
        log = next((folder / "call" / "answerer.events").iterdir())
        packets = eventlog.read(log.read_bytes()).events["incoming_rtp_packets"]
    originals = {
        row.sequence_number: row.rtx_original_sequence_number
        for row in packets
        if row.rtx_original_sequence_number >= 0
    }
    media = rows.filter(pl.col("rtp_type") == MEDIA)
    first_s = float(media["left_s"].min())
    begin_s, end_s = first_s + RUNS["begin"], first_s + RUNS["seconds"] - 3
    seen = chromium.statistics(ends["answerer"], "inbound-rtp", "video")
    made_of = chromium.statistics(ends["caller"], "outbound-rtp", "video")
    begin_ms = chromium.first_sample_ms(ends["answerer"])

    def grown(samples: list[dict[str, Any]], key: str) -> float:
        at = [begin_ms + 1000 * it for it in (RUNS["begin"], RUNS["seconds"] - 3)]
        first, last = (min(samples, key=lambda row: abs(row["now"] - it)) for it in at)
        return last[key] - first[key]

    length_s = end_s - begin_s
    return {
        "late": late,
        **repair(rows, originals, begin_s, end_s, grown(made_of, "retransmittedPacketsSent")),
        "freezes": 60 * grown(seen, "freezeCount") / length_s,
        "frozen": grown(seen, "totalFreezesDuration") / length_s,
        "frames": grown(made_of, "framesEncoded") / length_s,
        "keys": grown(made_of, "keyFramesEncoded"),
        "rate": 8
        * (grown(made_of, "bytesSent") - grown(made_of, "retransmittedBytesSent"))
        / length_s,
        "requests": grown(seen, "nackCount"),
        "pictures_lost": grown(seen, "pliCount"),
    }


def simulate(name: str, rate: float, frames: float, seed: int) -> dict[str, float]:
    """The same of a call of ours, with Chromium's rate and frames.

    Below the rate that GCC allows, Chromium's pacer sends frames of this size at once.
    """
    flow = {
        "from": "a", "to": "b", "transport": {"kind": "udp"},
        "controller": {"kind": "fixed", "rate": f"{rate:.0f}bit/s", "pacing": "10Gbit/s"},
        "source": {"kind": "video", "frame": f"{1000 / frames:.3f}ms", "encoder": {}, "repair": {}},
    }  # fmt: skip
    # Sound in both directions moves a channel with bursts on, and tells the receiver the time of a
    # round trip.
    sound = {**cells.CASES["ours"]["sound"], "from": "a", "to": "b"}
    sound["reverse"] = cells.CASES["ours"]["answer"]["source"]
    flows = {"picture": flow, "sound": sound}
    text = recorded(apps.scenario(network(name), flows, seconds=RUNS["seconds"]))
    text["measure"] = {"from": f"{RUNS['begin']}s", "to": f"{RUNS['seconds'] - 3}s"}
    result = talkspurt.run(text, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        result.save(Path(folder) / "run")
        capture = (Path(folder) / "run" / "line.pcapng").read_bytes()
    rows = crossings(result, capture)
    repeated = rows.filter(pl.col("rtp_type") == REPEATED)
    originals = {
        number: int.from_bytes(capture[at : at + 2])
        for number, at in repeated["rtp_seq", "payload_at"].rows()
    }
    row = result.flows.filter(name="picture").to_dicts()[0]
    begin_s, end_s = RUNS["begin"], RUNS["seconds"] - 3
    length_s = end_s - begin_s
    again = repeated.filter(pl.col("left_s").is_between(begin_s, end_s)).height
    return {
        **repair(rows, originals, begin_s, end_s, again),
        "freezes": 60 * row["video_freezes"] / length_s,
        "frozen": row["video_frozen_s"] / length_s,
    }


def judge() -> dict[str, object]:
    """The parts of the page."""
    found = json.loads(FILE.read_text())
    rows, verdicts = [], []
    with ProcessPoolExecutor() as pool:
        for name, told in found.items():
            rate, frames = (
                float(np.mean([run[key] for run in told])) for key in ("rate", "frames")
            )
            seeds = range(1, RUNS["ours"] + 1)
            ours = list(pool.map(partial(simulate, name, rate, frames), seeds))
            for key, (words, factor, form) in MEASURES.items():
                each = [[run[key] for run in group] for group in (told, ours)]
                (mean, half), (own, own_half) = ((np.mean(it), cells.interval(it)) for it in each)
                limits = CASES["acceptance"]
                allowed = max(half, limits["share"] * mean, limits["least"][key])
                verdicts.append(bool(abs(own - mean) <= allowed))
                shown = form.format(own * factor)
                shown = shown if verdicts[-1] else f"**{shown}**"
                theirs = f"{form.format(mean * factor)} ± {form.format(half * factor)}"
                shown = f"{shown} ± {form.format(own_half * factor)}"
                rows.append([f"`{name}`", words, str(len(told)), theirs, shown])
                print(*rows[-1], flush=True)
    heads = "network | measure | runs | Chromium | ours"
    agree = f"{sum(verdicts)} of {len(verdicts)}"
    every = [run for told in found.values() for run in told]
    late = max(run["late"]["p99_s"] for run in every) * 1e3
    dates = sorted(run["made"]["date"] for run in every)
    program = every[0]["made"]["chromium"].split(" built")[0]
    about = (
        f"{program}, {dates[0]} to {dates[-1]}; 99 % of the packets left at most {late:.1f} ms late"
    )
    print(agree, "agree")
    return {"measures": table(heads, rows, "llrrr"), "agree": agree, "runs": about}


def main() -> None:
    """Record, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    if not asked.record:
        fill(PAGE, judge())
        return
    emulating.PRIORITY = cells.emulating.PRIORITY
    about = {**made.made(FILE), "chromium": made.line("chromium", "--version")}
    for name in asked.names or CASES["networks"]:
        try:
            run = {"made": about, **record(name, asked.keep and asked.keep / name)}
        except apps.TooLateError:
            print(f"{name}: not recorded, the machine is too busy", flush=True)
            continue
        found = json.loads(FILE.read_text()) if FILE.exists() else {}
        found.setdefault(name, []).append(run)
        print(name, {key: it for key, it in run.items() if key not in {"made", "late"}}, flush=True)
        FILE.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
