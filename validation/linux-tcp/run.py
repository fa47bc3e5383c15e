#!/usr/bin/env python3
"""Holds conversations over TCP with this machine's kernel, through a TUN device.

    sudo validation/linux-tcp/run.py [--jobs N] [NAME...]

Each conversation has its own network namespace, which ends with it, so nothing remains. The page
also has the senders of `cells.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import dissect  # noqa: E402
import harness  # noqa: E402
import page  # noqa: E402
from harness import Peer, Result, started  # noqa: E402
from matrix import ALL, Case, judge  # noqa: E402

PATIENCE = 330
"""Seconds after which a conversation is killed; it times out earlier by itself."""


class LinuxTcp(Peer):
    """The kernel's TCP."""

    name, protocol, cases = "linux-tcp", "tcp", ALL
    needs = ("unshare", "ip", "tshark")
    parallel = True
    judge, parts = staticmethod(judge), staticmethod(page.parts)
    versions = (
        ("kernel", "{kernel}, with {congestion_control}"),
        ("python", "{python}"),
        ("processors", "{processors}, load {load:.1f}, {jobs} conversations at a time"),
    )

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[dict]:
        """Nothing is shared."""
        available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text()
        yield {
            "kernel": platform.release(),
            "congestion_control": ", ".join(available.split()),
            "python": platform.python_version(),
            "processors": os.cpu_count(),
        }

    def converse(self, case: Case, number: int, capture: Path, result: Result) -> None:
        """Runs `conversation.py` in a namespace."""
        with tempfile.TemporaryDirectory(prefix="linux-tcp-") as folder:
            words = ["unshare", "--net", sys.executable, str(HERE / "conversation.py"), case.name]
            with started(*words, self.ours[0], folder, stdin=subprocess.DEVNULL) as process:
                result |= json.loads(process.communicate(timeout=PATIENCE)[0])
            shutil.move(Path(folder) / capture.name, capture)
        result["tshark"] = dissect.read(capture)


if __name__ == "__main__":
    sys.exit(harness.main(LinuxTcp()))
