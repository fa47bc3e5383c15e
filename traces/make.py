#!/usr/bin/env python3
"""Makes the traces in this folder: what encoders make of a test pattern, and a capture of RTP.

Needs ffmpeg (with libx264, which is GPL: it runs beside us and is never linked) and, for the
capture, dumpcap and the right to use it on the loopback interface. The pattern is ffmpeg's
`testsrc2` over `mandelbrot`, not a camera's picture; it is labelled so in each trace. Packages and
settings are written into the traces' first lines.

    python3 traces/make.py             # the two traces: the same bytes every time
    python3 traces/make.py capture     # the capture: its times are this machine's
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
SECONDS = 10
FFMPEG = ("ffmpeg", "-loglevel", "error")
EXACT = ("-flags:v", "+bitexact", "-fflags", "+bitexact")
PORT = 5004
SSRC = 20_260_101
PATTERN = (
    "mandelbrot=size=640x360:rate=25[zoom];testsrc2=size=640x360:rate=25[bars];"
    "[bars]crop=320:180:0:0[corner];[zoom][corner]overlay=20:20,format=yuv420p"
)
"""A picture that moves everywhere, with a field of bars and a running clock in a corner."""

MPEG4 = "-c:v mpeg4 -vtag mp4v -g 12 -bf 2 -b:v 800k -maxrate 1200k -bufsize 800k"
"""MPEG-4 Part 2 in groups of twelve pictures, IBBPBBPBBPBB."""
H264 = (
    "-c:v libx264 -preset veryfast -tune zerolatency -profile:v baseline -g 250 -keyint_min 250"
    " -sc_threshold 0 -b:v 800k -maxrate 800k -bufsize 80k -threads 1"
)
"""H.264 for a call: no B pictures, no look-ahead, a buffer of 0.1 s, one I picture."""


def version(*command: str) -> str:
    """First line of what a program says of itself."""
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return said.splitlines()[0]


def package(name: str) -> str:
    """A Debian package and its version."""
    form = "${Package} ${Version}"
    return version("dpkg-query", "--show", f"--showformat={form}\n", name)


def encode(settings: str, suffix: str) -> list[tuple[float, str, int]]:
    """Decoding time, picture type and size of every frame, in the order they are sent."""
    clip = HERE / f"clip.{suffix}"
    try:
        subprocess.run(
            [
                *FFMPEG,
                "-y",
                "-filter_complex",
                PATTERN,
                "-t",
                str(SECONDS),
                *EXACT,
                *settings.split(),
                str(clip),
            ],
            check=True,
        )
        probe = ["ffprobe", "-loglevel", "error", "-select_streams", "v", "-of", "json"]
        packets = json.loads(
            subprocess.run(
                [*probe, "-show_entries", "packet=pts_time,dts_time,size", str(clip)],
                capture_output=True,
                check=True,
            ).stdout
        )["packets"]
        frames = json.loads(
            subprocess.run(
                [*probe, "-show_entries", "frame=pts_time,pict_type", str(clip)],
                capture_output=True,
                check=True,
            ).stdout
        )["frames"]
    finally:
        clip.unlink(missing_ok=True)
    kinds = {frame["pts_time"]: frame["pict_type"] for frame in frames}
    return [(float(p["dts_time"]), kinds[p["pts_time"]], int(p["size"])) for p in packets]


def write(name: str, settings: str, suffix: str, packages: list[str]) -> None:
    """One trace."""
    frames = encode(settings, suffix)
    first = frames[0][0]
    head = [
        "Sizes of the frames that an encoder made of a test pattern (no camera's picture), in the",
        "order they are sent, with their decoding times. Made by traces/make.py.",
        f"encoder: {version('ffmpeg', '-version')}",
        *(f"package: {package(it)}" for it in packages),
        f"settings: {settings}",
        f"pattern: {PATTERN}",
        "licence: the pattern is computed and has no author; this list has talkspurt's licence",
    ]
    lines = [f"# {line}" for line in head] + ["time,type,size"]
    lines += [f"{round(1000 * (t - first))}ms,{kind},{size}B" for t, kind, size in frames]
    (HERE / name).write_text("\n".join(lines) + "\n")


def capture(name: str, seconds: int = 4) -> None:
    """What ffmpeg sends as RTP (RFC 6184) in real time, headers only, as dumpcap sees it."""
    where = f"rtp://127.0.0.1:{PORT}?rtcpport={PORT + 1}&pkt_size=1200"
    watch = ["dumpcap", "-q", "-i", "lo", "-s", "96", "-f", f"udp portrange {PORT}-{PORT + 1}"]
    with subprocess.Popen([*watch, "-w", str(HERE / name)]) as dumpcap:
        time.sleep(2)
        sent = subprocess.run(
            [
                *FFMPEG,
                "-filter_complex",
                f"{PATTERN},realtime",
                "-t",
                str(seconds),
                *H264.split(),
                "-f",
                "rtp",
                "-ssrc",
                str(SSRC),
                where,
            ],
            stdout=subprocess.DEVNULL,
            check=False,
        )
        time.sleep(1)
        dumpcap.send_signal(signal.SIGINT)
    sent.check_returncode()


def main() -> None:
    """The traces, or the capture."""
    if sys.argv[1:] == ["capture"]:
        capture("h264-rtp.pcapng")
        return
    write("mpeg4-gop.csv", MPEG4, "mp4", ["ffmpeg", "libavcodec59"])
    write("h264-low-delay.csv", H264, "mp4", ["ffmpeg", "libx264-164"])


if __name__ == "__main__":
    main()
