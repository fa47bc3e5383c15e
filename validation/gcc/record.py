#!/usr/bin/env python3
"""Records a call of two Chromium browsers over each network of networks.py.

    sudo .venv/bin/python validation/gcc/record.py [--noise] [--wire] [NETWORK ...]

Writes the RTC event log of the browser at ``a`` as logs/NETWORK.rtc-event-log.gz, and how late the
emulation was into calls.json. With ``--noise``, the fake camera at ``a`` shows a picture that no
encoder can compress, so that the video takes the rate it is allowed, and the names end with
``-noise``. With ``--wire``, the picture is that one, too, the kernel's times of the packets that
leave ``a`` are written beside the log as NAME.sent.gz (``wire.py``), and the names end with
``-wire``. Needs Chromium and root. ``judge.py`` compares.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import importlib.util
import json
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
# `networks` is that of validation/apps, whose functions are used; ours is `ten`.
sys.path[:0] = [str(HERE.parent / "apps"), str(HERE.parent)]

import chromium  # noqa: E402
import made  # noqa: E402
import networks as apps  # noqa: E402

from talkspurt import Emulation  # noqa: E402

spec = importlib.util.spec_from_file_location("ten", HERE / "networks.py")
assert spec is not None and spec.loader is not None
ten = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ten)

FILE = HERE / "calls.json"
NOISE, WIRE = "-noise", "-wire"
WIDTH, HEIGHT, RATE, FRAMES = 640, 480, 30, 30
"""Of the noise; 640 x 480 is what the browser asks its camera for."""


def noise(file: Path) -> Path:
    """Frames of independent pixels, as YUV4MPEG2 of format 4:2:0."""
    draw = np.random.default_rng(1)
    size = WIDTH * HEIGHT * 3 // 2
    frames = [b"FRAME\n" + draw.integers(0, 256, size, np.uint8).tobytes() for _ in range(FRAMES)]
    head = f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F{RATE}:1 Ip A1:1 C420jpeg\n"
    file.write_bytes(head.encode() + b"".join(frames))
    return file


def call(name: str, kind: str) -> dict:
    """A call over a network: writes its log, and returns how late packets left the network."""
    _, network = ten.NETWORKS[name]
    text = apps.scenario(network, ten.traffic(name))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        more = ["fake"] + ([f"picture={noise(folder / 'noise.y4m')}"] if kind else [])
        talk = functools.partial(program, folder, more, kind == WIRE)
        _, _, late = apps.emulated(text, talk, folder / "network", latest_s=ten.LATENESS_P99_S)
        (log,) = (folder / "call" / "caller.events").iterdir()
        file = HERE / "logs" / f"{name}{kind}.rtc-event-log.gz"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(gzip.compress(log.read_bytes(), 9, mtime=0))
        if kind == WIRE:
            sent = (folder / "sent").read_bytes()
            (file.parent / f"{name}{kind}.sent.gz").write_bytes(gzip.compress(sent, 9, mtime=0))
    return {"late": late, "log_bytes": file.stat().st_size}


def program(folder: Path, more: list[str], is_timed: bool, network: Emulation) -> None:
    """The browsers, and what notes when packets leave."""
    file = str(folder / "sent")
    words = [sys.executable, str(HERE / "wire.py"), file]
    watch = network.start("a", words) if is_timed else None
    try:
        chromium.browsers(folder, ten.CALL_S, more, network)
    finally:
        if watch is not None:
            watch.send_signal(signal.SIGTERM)
            watch.wait(10)


def main() -> None:
    """Record the calls that are asked for; others are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--wire", action="store_true")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    kind = WIRE if asked.wire else NOISE if asked.noise else ""
    about = made.made(FILE)
    about["chromium"] = made.line("chromium", "--version")
    for name in asked.names or ten.NETWORKS:
        found = json.loads(FILE.read_text()) if FILE.exists() else {}
        try:
            measured = {"made": about, **call(name, kind)}
        except apps.TooLateError:
            print(f"{name}: not recorded, the machine is too busy", flush=True)
            continue
        found[name + kind] = measured
        print(name + kind, measured["late"], measured["log_bytes"], flush=True)
        FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
