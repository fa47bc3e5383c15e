#!/usr/bin/env python3
"""Records what Chromium's jitter buffer does with the packets of calls over the listed traces.

    sudo nice -n -5 .venv/bin/python validation/playout/chromium/record.py [--jobs N] [NAME ...]

NAME is a trace, or one of its calls, such as "roaming-1". Without names, the traces for development
are recorded; those held out only by name. A call whose file exists is not repeated. Each call takes
a minute; ``traces.py`` has the rule by which one is repeated. Needs Chromium, FFmpeg, tshark and
root. A file in ``calls`` has

* ``chromium``: version;
* ``arrivals``: of the packets of the judged stream, in order of arrival, ``sequence``,
  ``timestamp`` (RTP, 48 kHz), ``ms`` and ``size`` (payload, in bytes), and ``fec``, the places of
  those that carry in-band FEC. Packets of padding alone are left out: Chromium probes for bandwidth
  with them, and its jitter buffer does not see them;
* ``playouts``: when Chromium took 10 ms each of sound, in ms;
* ``samples``: once a second, ``ms`` and the counters of ``getStats`` (W3C webrtc-stats; delays in
  seconds times samples);
* ``late_p99_s``: by how much the emulation was late, ``tries``: how many calls it took.

Sequences, timestamps and times are saved as differences to the value before, the first to 0;
``recordings.py`` undoes this. All times are milliseconds since the first packet arrived.

Chromium's event log counts milliseconds of its monotonic clock, and names the UTC time of its
beginning; ``timestamp`` in ``getStats`` is a UTC time. ``clock_ms`` has the least and greatest
difference, over the samples, between ``lastPacketReceivedTimestamp`` and the logged arrival of the
same packet, the newest until then. It is from 0 to 1 ms if both clocks agree, because the log cuts
fractions of a millisecond; a busy browser counts a packet some milliseconds after it logs it.
"""

from __future__ import annotations

import argparse
import functools
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ProcessPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import Any

import recordings

import traces
from talkspurt.importing.webrtc import eventlog

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "apps"))
import chromium
from networks import emulated, scenario, traffic

TRIES = 4
COUNTERS = (
    "jitterBufferDelay", "jitterBufferTargetDelay", "jitterBufferMinimumDelay",
    "jitterBufferEmittedCount", "concealedSamples", "silentConcealedSamples", "concealmentEvents",
    "insertedSamplesForDeceleration", "removedSamplesForAcceleration", "totalSamplesReceived",
    "packetsReceived", "packetsLost", "packetsDiscarded", "fecPacketsReceived",
)  # fmt: skip
UNWRITTEN_S = 6
"""Chromium writes its event log every 5 s, and loses what it has not written when a call ends."""
CLOCK_MS = (-1.0, 10.0)
"""Beyond, the clocks of log and samples do not agree."""


def call(name: str, seed: int) -> dict[str, Any]:
    """A call over a trace, as soon as the machine lets it."""
    for number in range(1, TRIES + 1):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            ends, late = crossed(name, seed, folder, "events")
            found = recorded(folder, ends["answerer"])
        found |= {"trace": name, "seed": seed, "tries": number, "late_p99_s": late}
        if not (words := recordings.spoiled(found)):
            return found
        print(f"{name}-{seed}: {words}: repeated", flush=True)
    raise RuntimeError(f"{name}-{seed}: the machine is too busy")


def crossed(name: str, seed: int, folder: Path, *more: str) -> tuple[dict[str, Any], float]:
    """A call over a trace: the statistics of both ends, and by how much the emulation was late."""
    flows = {"upload": traces.UPLOAD} if name == "bufferbloat" else traffic(name)
    text = scenario({"links": {"line": traces.link(name, seed, folder)}}, flows)
    text["seed"] = seed
    text["record"] |= {"pcapng": ["line"], "snaplen": "120B"}
    program = functools.partial(chromium.browsers, folder, traces.CALL_S + UNWRITTEN_S, [*more])
    # Arrivals are logged at the receiver: a late emulation only changes the trace.
    ends, _, late = emulated(text, program, folder / "network", latest_s=1.0)
    return ends, late["p99_s"]


def recorded(folder: Path, told: list[dict[str, Any]]) -> dict[str, Any]:
    """What the answering browser recorded."""
    (file,) = (folder / "call" / "answerer.events").iterdir()
    log = eventlog.read(file.read_bytes())
    rows = chromium.statistics(told, "inbound-rtp", "audio")
    utc_ms = log.begin_utc_ms - log.begin_ms
    ssrc = rows[-1]["ssrc"]
    packets = [one for one in log.events["incoming_rtp_packets"] if one.ssrc == ssrc]
    first = packets[0].timestamp_ms
    end = first + 1e3 * traces.CALL_S
    rows = [one for one in rows if one["packetsReceived"] and one["timestamp"] - utc_ms <= end]
    packets = [one for one in packets if one.timestamp_ms <= end]
    newest = list(accumulate(packets, later))
    logged_ms = [newest[row["packetsReceived"] - 1].timestamp_ms for row in rows]
    gaps = [
        row["lastPacketReceivedTimestamp"] - utc_ms - at
        for row, at in zip(rows, logged_ms, strict=True)
    ]
    if min(gaps) < CLOCK_MS[0] or max(gaps) > CLOCK_MS[1]:
        raise RuntimeError(f"the clocks of log and samples differ by {min(gaps)} to {max(gaps)} ms")
    repaired = with_fec(folder / "network" / "line.pcapng", ssrc)
    packets = [one for one in packets if one.payload_size]
    columns = {
        "sequence": [one.sequence_number for one in packets],
        "timestamp": [one.rtp_timestamp for one in packets],
        "ms": [one.timestamp_ms - first for one in packets],
        "size": [one.payload_size for one in packets],
        "fec": [at for at, one in enumerate(packets) if one.sequence_number in repaired],
    }
    return {
        "chromium": subprocess.check_output(chromium.VERSION, text=True).split(" built")[0].strip(),
        "clock_ms": [round(min(gaps), 3), round(max(gaps), 3)],
        "arrivals": columns,
        "playouts": [
            one.timestamp_ms - first
            for one in log.events["audio_playout_events"]
            if one.local_ssrc == ssrc and one.timestamp_ms <= end
        ],
        "samples": {"ms": [round(row["timestamp"] - utc_ms - first, 3) for row in rows]}
        | {name: [row[name] for row in rows] for name in COUNTERS},
    }


def later(one: Any, other: Any) -> Any:
    """The packet that was sent later. Chromium has no arrival of what comes after it."""
    return other if (other.sequence_number - one.sequence_number) % 0x10000 < 0x8000 else one


def with_fec(capture: Path, ssrc: int) -> set[int]:
    """Sequence numbers of a stream's packets with in-band FEC, captured without encryption."""
    words = ["tshark", "-r", str(capture), "-T", "fields", "-e", "udp.payload"]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    packets = [bytes.fromhex(line) for line in told.splitlines()]
    # In a receiver report, the same place has the SSRC that it is about.
    stream = [
        one
        for one in packets
        if one[8:12] == ssrc.to_bytes(4, "big") and one[1] & 0x7F == chromium.OPUS
    ]
    return {int.from_bytes(one[2:4], "big") for one in stream if is_with_fec(payload(one))}


def payload(packet: bytes) -> bytes:
    """What follows header, sources and extension of an RTP packet (RFC 3550 §5.1 and §5.3.1)."""
    begin = 12 + 4 * (packet[0] & 0x0F)
    if packet[0] & 0x10:
        begin += 4 + 4 * int.from_bytes(packet[begin + 2 : begin + 4], "big")
    return packet[begin:]


def is_with_fec(frame: bytes) -> bool:
    """Whether an Opus packet of one frame of 20 ms, mono, has the LBRR flag (RFC 6716 §4.2.4).

    It follows the VAD flag; both are equally likely to be set, so that the range coder makes them
    the first two bits. Packets of CELT alone (configurations from 16 on) have none.
    """
    return len(frame) > 1 and frame[0] < 0x80 and bool(frame[1] & 0x40)


def main() -> None:
    """Record the calls that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("names", nargs="*", default=[one.__name__ for one in traces.DEV])
    asked = parser.parse_args()
    wanted = [
        (trace, seed)
        for trace in traces.ALL
        for seed in traces.SEEDS
        if trace in asked.names or f"{trace}-{seed}" in asked.names
    ]
    missing = [one for one in wanted if not recordings.file(*one).exists()]
    with ProcessPoolExecutor(asked.jobs) as pool:
        list(pool.map(record, missing))


def record(wanted: tuple[str, int]) -> None:
    """Record a call and save it."""
    try:
        found = call(*wanted)
    except Exception:
        traceback.print_exc()
        return
    recordings.save(found)
    print(*wanted, recordings.starved(found), flush=True)


if __name__ == "__main__":
    main()
