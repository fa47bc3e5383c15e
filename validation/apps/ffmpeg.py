"""RTP from FFmpeg to FFmpeg: G.711 in packets of 20 ms, without a jitter buffer or concealment.

The receiver orders packets and fills gaps with silence by their time stamps. Beside it is our call
with a fixed buffer and silence in place of lost speech. The bands are in `hearing.py`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import hearing
from networks import SECONDS, Case, crossed, networks

import talkspurt

NEEDS = ("ffmpeg",)
VERSION = ("ffmpeg", "-version")
RATE_HZ = 8000
SPEAKS_S = SECONDS + 3
DESCRIPTION = """\
v=0
o=- 0 0 IN IP4 {at}
s=speech
c=IN IP4 {at}
t=0 0
m=audio 5004 RTP/AVP 0
"""


def cases(traces: Path | None) -> Iterator[Case]:
    """One for each network."""
    for name, network in networks(traces):
        yield name, partial(_crossed, name, network)


def _crossed(name: str, network: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _, _, late, row, start = crossed(name, network, "udp", partial(_stream, folder))
        flow = {
            "transport": {"kind": "udp"},
            "playout": {"kind": "fixed", "buffer": "2s", "concealment": "silence"},
            "source": {"kind": "speech", "codec": "pcmu", "repeat": True,
                       "file": str(hearing.speech(folder, RATE_HZ))},
        }  # fmt: skip
        return {
            "network": name, "late": late,
            "program": {
                "lost": row["lost_packets"] / row["sent_packets"], "packets": row["sent_packets"],
                **hearing.judged(folder / "heard.wav", folder, RATE_HZ, SECONDS),
            },
            "ours": hearing.ours(name, network, flow, start, folder, rate=RATE_HZ),
        }  # fmt: skip


def _stream(folder: Path, network: talkspurt.Emulation) -> None:
    at = network.addresses["b"][0]
    (folder / "stream.sdp").write_text(DESCRIPTION.format(at=at))
    quiet = ["ffmpeg", "-hide_banner", "-v", "error", "-nostdin", "-y"]
    with Path(os.devnull).open() as nothing:
        receiver = network.serve("b", [
            *quiet, "-protocol_whitelist", "file,udp,rtp", "-i", str(folder / "stream.sdp"),
            "-af", "aresample=async=1:min_hard_comp=0.01", str(folder / "heard.wav"),
        ], stdin=nothing)  # fmt: skip
        sender = network.start("a", [
            *quiet, "-i", str(hearing.speech(folder, RATE_HZ)), "-t", str(SPEAKS_S),
            # -re would send what the file's reader reads at once, a quarter of a second.
            "-af", "asetnsamples=n=160,arealtime",
            "-c:a", "pcm_mulaw", "-f", "rtp", f"rtp://{at}:5004?pkt_size=172",
        ], stdin=nothing)  # fmt: skip
        sender.wait(SPEAKS_S + 30)
        # What is on its way arrives, and FFmpeg completes the file.
        network.wait([receiver], 3)
        receiver.send_signal(2)
        receiver.wait(10)
