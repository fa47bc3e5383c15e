#!/usr/bin/env python3
"""Holds conversations over SCTP inside UDP (RFC 6951) with usrsctp, on the loopback interface.

sudo apt-get install libusrsctp-dev gcc tshark     # once; the run itself needs no root
validation/usrsctp/run.py [NAME...]
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "sctp")]

import harness  # noqa: E402
from conversations import BAD, Case, Sctp, abandoned, bulk, opened, streams  # noqa: E402
from harness import Result, converse, started  # noqa: E402
from made import line  # noqa: E402

ADDRESS = "127.0.0.1"
SCTP_PORT = 5001
# Theirs is the port of RFC 6951 §5.1.
THEIR_UDP, OUR_UDP = 9899, 9900
IN_TURN = {"streams": 2, "bytes": 8000, "interleaving": True, **BAD}

CASES = [
    *opened(),
    *streams(),
    Case("client-interleaved", "We are the client; the same as I-DATA, streams in turn", **IN_TURN),
    Case("server-interleaved", "We are the server; the same", opens="theirs", closes="theirs",
         **IN_TURN),
    *abandoned(),
    Case("once-again", "Given up rather than sent a third time", max_retransmissions=1,
         streams=2, **BAD),
    *bulk("usrsctp", 240),
]  # fmt: skip


class Program:
    """The other side's program on this machine."""

    def __init__(self, context: contextlib.ExitStack) -> None:
        self.context = context

    def start(self, command: str) -> None:
        """Starts it."""
        self.process = self.context.enter_context(started(*command.split()))

    def wait_for(self, event: str) -> list[dict]:
        """Its first line, which is this event."""
        assert self.process.stdout
        self.process.stdout.readline()
        time.sleep(0.1)
        return []

    def finish(self, patience: float) -> tuple[list[dict], int]:
        """The rest."""
        said = self.process.communicate(timeout=patience)[0]
        events = [json.loads(row) for row in said.splitlines() if row.startswith("{")]
        return events, self.process.returncode


class Usrsctp(Sctp):
    """FreeBSD's stack in user space."""

    name, cases, them = "usrsctp", CASES, "usrsctp"
    as_root = False
    needs = ("gcc", "tshark")
    versions = (("usrsctp", "{usrsctp}"),)
    udp_port = THEIR_UDP

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[dict]:
        """Compiles its program."""
        self.theirs = folder / "usrsctp-peer"
        flags = ["-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(self.theirs)]
        words = ["gcc", *flags, str(HERE / "peer.c"), "-lusrsctp", "-lpthread"]
        subprocess.run(words, check=True)
        version = line("dpkg-query", "-W", "-f", "${Package} ${Version}", "libusrsctp2")
        yield {"usrsctp": version}

    def converse(self, case: Case, number: int, capture: Path, result: Result) -> None:
        """Over the loopback interface."""
        is_client = case.opens == "ours"
        ours = [*self.ours, "client" if is_client else "server", *case.our_words()]
        theirs = [str(self.theirs), *case.their_words(), "-e"]
        if is_client:
            ours += ["--local", f"{ADDRESS}:{SCTP_PORT + 1}", "--remote", f"{ADDRESS}:{SCTP_PORT}"]
            ours += ["--udp", f"{OUR_UDP}:{THEIR_UDP}"]
            theirs += [str(THEIR_UDP), "server"]
        else:
            ours += ["--local", f"{ADDRESS}:{SCTP_PORT}", "--udp", str(OUR_UDP)]
            theirs += [f"{THEIR_UDP}:{OUR_UDP}", "-a", ADDRESS, "client"]
        theirs += [ADDRESS, str(SCTP_PORT)]
        ours += ["--pcapng", str(capture)]
        with contextlib.ExitStack() as context:
            converse(case, ours, " ".join(theirs), Program(context), result)
        result["tshark"] = self.dissect(case, capture, result)


if __name__ == "__main__":
    sys.exit(harness.main(Usrsctp()))
