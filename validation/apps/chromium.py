"""A WebRTC call between two Chromium browsers, beside our call and our adaptive buffer.

Each network is crossed twice: by a call of voice alone, whose jitter buffer (NetEq) is compared
with ours, and by one with video from ``a``, whose bandwidth estimate is compared with what the link
had.

Our buffer is simulated in several ways. *Same packets*: the packets of a link that delays and loses
every one exactly as the emulated network did Chromium's, so that both buffers have one task. The
same with FEC in every packet, while otherwise our encoder adds it if the latest RTCP report says
that packets were lost; and with the quantile of delays for which NetEq buffers, besides. *Own
call*: our call over the same network under five seeds.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import hearing
import numpy as np
import polars as pl
from networks import Case, emulated, networks, scenario, simulated, spread, traffic

import talkspurt
from talkspurt import _core

NEEDS = ("chromium", "ffmpeg")
VERSION = ("chromium", "--version")
HERE = Path(__file__).parent
CALL_S = 33
SEEDS = range(1, 6)
FRAME_S = 0.02
RATE_HZ = 48_000
OPUS = 111
"""Chromium's payload type."""
SOURCE = {
    "kind": "speech", "codec": "opus", "repeat": True,
    "opus": {"bitrate": "32kbit/s", "rate_control": "vbr", "fec": True},
}  # fmt: skip
"""Chromium's defaults: 32 kbit/s, variable, with in-band FEC, packets of 20 ms."""

VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "same": (),
    "fec": ({"expected_loss": 0.01},),
    "quantile": ({"expected_loss": 0.01}, {"quantile": 0.95}),
}
"""How ours differs from its defaults: in the encoder, and in the buffer."""


def _call(
    name: str, network: dict[str, Any], folder: Path, *, video: bool
) -> tuple[talkspurt.Result, dict[str, Any], dict[str, Any]]:
    """A call; returns what the network and both ends recorded."""
    text = scenario(network, traffic(name))
    text["record"] |= {"pcapng": [_captured(name)], "snaplen": "100B"}
    program = partial(browsers, folder, CALL_S, ["video"] if video else [])
    ends, result, late = emulated(text, program, folder / "network")
    return result, late, ends


def browsers(
    folder: Path,
    seconds: float,
    more: list[str],
    network: talkspurt.Emulation,
    nodes: tuple[str, str] = ("a", "b"),
) -> dict[str, Any]:
    """Starts a browser at either node, and returns the statistics of both ends.

    ``more`` are additional arguments of ``browser.py``, whose files are in ``folder / "call"``.
    """
    calls = folder / "call"
    shutil.rmtree(calls, ignore_errors=True)
    calls.mkdir()
    speech = "-" if "fake" in more else str(hearing.speech(folder, RATE_HZ))
    words = [str(calls), str(seconds), speech, *more]
    ends = [
        network.start(node, [sys.executable, str(HERE / "browser.py"), role, *words])
        for node, role in zip(reversed(nodes), ("answerer", "caller"), strict=True)
    ]
    for end in ends:
        if status := end.wait(seconds + 60):
            raise RuntimeError(f"the browser at {end.node} ended with status {status}")
    return {
        role: json.loads((calls / f"{role}.json").read_text()) for role in ("caller", "answerer")
    }


def _captured(name: str) -> str:
    return "wire" if name == "wifi" else "line"


def statistics(samples: list[dict[str, Any]], kind: str, media: str | None) -> list[dict[str, Any]]:
    """One kind of statistics in all samples."""
    return [
        {"now": sample["now"], **it}
        for sample in samples
        for it in sample["kept"]
        if it["type"] == kind and (media is None or it["kind"] == media)
    ]


def _at(rows: list[dict[str, Any]], time_ms: float) -> dict[str, Any]:
    """The statistics nearest to a time."""
    return min(rows, key=lambda row: abs(row["now"] - time_ms))


def neteq(samples: list[dict[str, Any]]) -> dict[str, float]:
    """What NetEq says about itself (W3C webrtc-stats), over the whole call."""
    last = statistics(samples, "inbound-rtp", "audio")[-1]
    emitted, received = last["jitterBufferEmittedCount"], last["totalSamplesReceived"]
    return {
        "delay_s": last["jitterBufferDelay"] / emitted,
        "target_s": last["jitterBufferTargetDelay"] / emitted,
        "concealed": last["concealedSamples"] / received,
        "faster": last["removedSamplesForAcceleration"] / received,
        "slower": last["insertedSamplesForDeceleration"] / received,
        "events": last["concealmentEvents"],
        "lost": last["packetsLost"] / (last["packetsLost"] + last["packetsReceived"]),
    }


def neteq_over_time(samples: list[dict[str, Any]], begin_ms: float) -> list[list[float]]:
    """Each second since the first packet, the mean delay of its samples and the share concealed."""
    rows = statistics(samples, "inbound-rtp", "audio")
    found = []
    for second in range(1, CALL_S):
        pair = [_at(rows, begin_ms + 1000 * at) for at in (second - 1, second)]
        emitted, received, delay, concealed = (
            pair[1][key] - pair[0][key]
            for key in (
                "jitterBufferEmittedCount", "totalSamplesReceived", "jitterBufferDelay",
                "concealedSamples",
            )
        )  # fmt: skip
        if received:
            mean = delay / emitted if emitted else None
            found.append([second, mean, concealed / received])
    return found


def packets(result: talkspurt.Result, folder: Path, name: str) -> pl.DataFrame:
    """Chromium's packets of speech: place in the stream, when they left and arrived (or null)."""
    capture = (folder / "network" / f"{_captured(name)}.pcapng").read_bytes()
    rows = pl.DataFrame(_core.capture(capture)[0])
    rows = rows.filter(pl.col("rtp_type") == OPUS).with_columns(pl.col("time_ns").cast(pl.Int64))
    hops = result.packets().filter(pl.col("dequeued_s").is_not_null())
    key = ["flow", "side", "number"]
    whole = hops.group_by(key).agg(
        pl.col("enqueued_s").min().alias("left_s"),
        pl.col("received_s").sort_by("enqueued_s").last().alias("arrived_s"),
        pl.col("fate").sort_by("enqueued_s").last(),
    )
    # Only packets from `a`: the other direction is a link of another name.
    here = hops.filter(pl.col("link") == _captured(name)).with_columns(
        (pl.col("dequeued_s") * 1e9).round().cast(pl.Int64).alias("time_ns")
    )
    joined = rows.join(here.select(*key, "time_ns"), on="time_ns").join(whole, on=key)
    # Packets of other protocols may look like RTP, with another source.
    joined = joined.filter(pl.col("rtp_ssrc") == pl.col("rtp_ssrc").mode().first())
    arrived = pl.when(pl.col("fate") == "received").then(pl.col("arrived_s"))
    stamps = joined["rtp_timestamp"].cast(pl.Int64)
    first = int(stamps[0])
    place = ((stamps - first + 2**31) % 2**32 - 2**31) // round(FRAME_S * RATE_HZ)
    return (
        joined.with_columns(place.alias("place"), arrived.alias("arrived_s"))
        .select("place", "left_s", "arrived_s")
        .unique("place", keep="first")
        .sort("place")
    )


def same_packets(
    rows: pl.DataFrame,
    speech: Path,
    folder: Path,
    opus: dict[str, Any] | None = None,
    playout: dict[str, Any] | None = None,
) -> talkspurt.Result:
    """Our buffer with the arrivals of these packets: a link with a delay for each."""
    place, left, arrived = (rows[name].to_numpy() for name in ("place", "left_s", "arrived_s"))
    place = place - place[0]
    zero = float(np.min(left - FRAME_S * place))
    start = 1.0
    by_place = dict(zip(place.tolist(), (arrived - zero - FRAME_S * place).tolist(), strict=True))
    lines = ["time_s,delay_s,loss_percent"]
    for number in range(int(place[-1]) + 1):
        delay = by_place.get(number, float("nan"))
        lost = delay != delay
        # A packet leaves when its last sample has been spoken.
        at = start + FRAME_S * (number + 1) - FRAME_S / 2
        lines.append(f"{at:.6f},{'' if lost else f'{delay:.9f}'},{100 if lost else 0}")
    source = {**SOURCE, "opus": {**SOURCE["opus"], **(opus or {})}}
    trace = folder / "arrivals.csv"
    trace.write_text("\n".join(lines) + "\n")
    end = start + FRAME_S * (place[-1] + 1)
    flow = {
        "from": "a", "to": "b", "start": f"{start}s", "stop": f"{end:.3f}s", "start_spread": "0s",
        "transport": {"kind": "udp"}, "playout": {"kind": "adaptive", **(playout or {})},
        "source": {**source, "file": str(speech), "noise": "0s"},
    }  # fmt: skip
    link = {
        "from": "a", "to": "b", "rate": "1Gbit/s", "delay": "0s", "reorder": True,
        "queue": {"kind": "droptail", "packets": 100},
        "trace": {"kind": "csv", "file": str(trace)},
        "back": {"delay": "20ms", "loss": 0.0},
    }  # fmt: skip
    text = scenario({"links": {"line": link}}, {"ours": flow}, seconds=end + 3)
    return talkspurt.run(text)


def buffer(result: talkspurt.Result) -> dict[str, float]:
    """The same of our buffer."""
    row = result.flows.filter(name="ours").to_dicts()[0]
    frames = result.frames("ours").filter(pl.col("playout_s").is_not_null()).sort("index")
    heard = frames.filter(pl.col("fate") == "played")
    gauge = result.gauges("ours", "playout_target")
    moved = frames["playout_s"].diff() - FRAME_S * frames["index"].diff() - frames["paused_s"]
    length = float(frames["playout_s"].max() - frames["playout_s"].min()) + FRAME_S
    return {
        "delay_s": float((heard["playout_s"] - heard["delivered_s"]).mean()),
        "target_s": _over_time(gauge, result.duration_s),
        "concealed": row["concealed_ratio"],
        "faster": -float(moved.filter(moved < 0).sum()) / length,
        "slower": float(moved.filter(moved > 0).sum()) / length,
        "lost": row["lost_packets"] / row["sent_packets"],
        "mouth_to_ear_s": row["mouth_to_ear_mean_s"],
    }


def _over_time(gauge: pl.DataFrame, end_s: float) -> float:
    """The mean of a gauge over time."""
    times = np.append(gauge["time_s"].to_numpy(), end_s)
    return float(np.average(gauge["value"].to_numpy(), weights=np.diff(times)))


def over_time(result: talkspurt.Result, start_s: float) -> list[list[float]]:
    """Each second, the mean delay of our frames in the buffer."""
    frames = result.frames("ours").filter(pl.col("fate") == "played")
    second = ((pl.col("playout_s") - start_s).floor() + 1).cast(pl.Int64).alias("second")
    means = frames.group_by(second).agg((pl.col("playout_s") - pl.col("delivered_s")).mean())
    return [[row[0], row[1]] for row in means.sort("second").iter_rows()]


def estimate(
    samples: list[dict[str, Any]], begin_ms: float, seconds: int = CALL_S
) -> list[list[float]]:
    """Each second since the first packet, the estimate of the bandwidth and what the video sent."""
    pairs = statistics(samples, "candidate-pair", None)
    sent = statistics(samples, "outbound-rtp", "video")
    found = []
    for second in range(1, seconds):
        inside = [
            row.get("availableOutgoingBitrate")
            for row in pairs
            if second - 1 <= (row["now"] - begin_ms) / 1000 < second
        ]
        inside = [it for it in inside if it is not None]
        pair = [_at(sent, begin_ms + 1000 * at)["bytesSent"] for at in (second - 1, second)]
        if inside:
            found.append([second, float(np.mean(inside)), 8 * (pair[1] - pair[0])])
    return found


def capacity(name: str, network: dict[str, Any], start_s: float) -> list[float]:
    """Each second of the call, what the link from ``a`` can carry: a flow of 50 Mbit/s fills it.

    Simulated, and without the other traffic, of whose share a call may take some.
    """
    flow = {
        "transport": {"kind": "udp"},
        "source": {"kind": "cbr", "rate": "50Mbit/s", "packet": "1172B"},
    }
    run = simulated(name, network, flow, start_s, other=False, seconds=CALL_S, seeds=[1])[0]
    series = run.series("ours")
    second = (pl.col("time_s") - start_s).ceil().cast(pl.Int64).alias("second")
    sums = series.group_by(second).agg(pl.col("received_bytes").sum()).sort("second")
    return [8.0 * row[1] for row in sums.iter_rows() if 1 <= row[0] < CALL_S]


def _voice(name: str, network: dict[str, Any], folder: Path) -> dict[str, Any]:
    result, late, ends = _call(name, network, folder, video=False)
    rows = packets(result, folder, name)
    start = float(rows["left_s"].min())
    samples = ends["answerer"]
    begin_ms = first_sample_ms(samples)
    speech = hearing.speech(folder, RATE_HZ)
    same = {key: same_packets(rows, speech, folder, *more) for key, more in VARIANTS.items()}
    flow = {
        "transport": {"kind": "udp"}, "playout": {"kind": "adaptive"},
        "source": {**SOURCE, "file": str(speech)},
    }  # fmt: skip
    own = [
        buffer(run) for run in simulated(name, network, flow, start, seconds=CALL_S, seeds=SEEDS)
    ]
    files = {"neteq": folder / "call" / "answerer.webm"}
    for key, run in same.items():
        run.audio("ours").save(folder / key)
        files[key] = folder / key / "ours.received.wav"
    return {
        "network": name, "late": late, "neteq": neteq(samples),
        **{key: buffer(run) for key, run in same.items()},
        "own": {key: spread([one[key] for one in own]) for key in own[0]},
        "scores": {
            key: hearing.judged(file, folder, 16_000, CALL_S) for key, file in files.items()
        },
        "neteq_over_time": neteq_over_time(samples, begin_ms),
        "same_over_time": over_time(same["same"], 1.0),
    }  # fmt: skip


def first_sample_ms(samples: list[dict[str, Any]]) -> float:
    """When the first sound came."""
    rows = statistics(samples, "inbound-rtp", "audio")
    return next(row["now"] for row in rows if row["packetsReceived"])


def _video(name: str, network: dict[str, Any], folder: Path) -> dict[str, Any]:
    result, late, ends = _call(name, network, folder, video=True)
    rows = packets(result, folder, name)
    start = float(rows["left_s"].min())
    begin_ms = first_sample_ms(ends["answerer"])
    received = statistics(ends["answerer"], "inbound-rtp", "video")[-1]
    return {
        "network": name, "late": late, "start_s": start,
        "estimate": estimate(ends["caller"], begin_ms),
        "capacity_bps": capacity(name, network, start),
        "video": {
            key: received.get(key)
            for key in ("framesDecoded", "framesDropped", "freezeCount", "totalFreezesDuration",
                        "packetsLost", "packetsReceived", "frameHeight")
        },
        "voice": neteq(ends["answerer"]),
    }  # fmt: skip


def cases(traces: Path | None) -> Iterator[Case]:
    """Two calls for each network."""
    for name, network in networks(traces):
        for kind, call in (("voice", _voice), ("video", _video)):
            yield f"{name} {kind}", partial(_in_a_folder, call, name, network)


def _in_a_folder(call: Any, name: str, network: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return call(name, network, Path(folder))
