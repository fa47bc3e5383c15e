"""usrsctp, FreeBSD's SCTP in user space, directly over IP, beside our SCTP.

Its program is that of ``validation/usrsctp``, which checks every byte. The bands are those of
iperf3's table. The capture of the wired link is read by tshark, which has to know every packet as
SCTP with a right checksum.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from iperf3 import counted, ours
from networks import ROOT, SECONDS, Case, crossed, networks

import talkspurt

NEEDS = ("gcc", "tshark")
VERSION = ("dpkg-query", "-W", "-f", "libusrsctp-dev ${Version}\n", "libusrsctp-dev")
MESSAGE_BYTES, PORT = 1000, 5001
HEADER_BYTES = 48
"""Of IP, SCTP and the chunk (RFC 791, RFC 9260 §3.1, §3.3.1)."""
OURS = {"kind": "sctp", "receive_buffer": "131072B"}
"""With the receive buffer that theirs has; our bulk is messages of 1000 bytes."""
CAUSE = {**OURS, "receive_buffer": "104357B"}
"""Their sender takes 256 bytes more than each message from the other's window, for what the
receiver needs to keep it (`sctp_peer_chunk_oh`): 104 messages are in flight at most, and 131 of
ours."""
KINDS = {"ours": OURS, "cause": CAUSE}


def built(folder: Path) -> Path | None:
    """Its program; None if usrsctp is not installed."""
    program = folder / "peer"
    source = ROOT / "validation" / "usrsctp" / "peer.c"
    words = ["gcc", "-O2", "-o", str(program), str(source), "-lusrsctp", "-lpthread"]
    done = subprocess.run(words, capture_output=True, check=False)
    return program if done.returncode == 0 else None


def transfer(
    network: talkspurt.Emulation, program: Path, seconds: float, ends: tuple[str, str] = ("a", "b")
) -> list[dict[str, Any]]:
    """What the receiver and the sender of a transfer say."""
    a, b = ends
    at = network.addresses[b][0]
    options = ("-l", str(MESSAGE_BYTES), "-g", "0", "-d", str(round(seconds * 1000) + 40_000))
    with tempfile.TemporaryFile("w+") as out:
        words = [str(program), "-n", "0", "-m", "1000000", *options]
        server = network.serve(b, [*words, "server", at, str(PORT)], stdout=out)
        words = [str(program), "-n", "1000000", "-m", "0", *options, "-k"]
        words += ["-f", str(round(seconds * 1000))]
        sent = network.run(a, [*words, "client", at, str(PORT)], timeout=seconds + 60)
        server.wait(60)
        out.seek(0)
        return [
            next(it for it in map(json.loads, text.splitlines()) if it["event"] == "result")
            for text in (out.read(), sent.stdout)
        ]


def decoded(capture: Path) -> tuple[int, int]:
    """Packets in a capture, and those of them that are intact SCTP for tshark."""
    found = []
    for wanted in ("frame", "sctp.checksum.status == 1 && !_ws.malformed"):
        words = ["tshark", "-r", str(capture), "-o", "sctp.checksum:CRC 32c", "-Y", wanted]
        told = subprocess.run([*words, "-T", "fields", "-e", "frame.number"], capture_output=True,
                              text=True, check=True).stdout  # fmt: skip
        found.append(len(told.splitlines()))
    return found[0], found[1]


def arrived(result: talkspurt.Result, row: dict[str, Any], start_s: float) -> dict[str, float]:
    """Bits of messages that arrive in a second, with those that come twice."""
    inside = pl.col("received_s").is_between(start_s, start_s + SECONDS)
    full = (pl.col("side") == "from") & (pl.col("ip_bytes") == MESSAGE_BYTES + HEADER_BYTES)
    last = pl.col("link").is_in(["line", "wire"])
    count = result.packets(row["name"]).filter(inside & full & last).height
    return {"goodput_bps": count * MESSAGE_BYTES * 8 / SECONDS}


def _theirs(
    name: str, network: dict[str, Any], program: Path
) -> tuple[dict[str, Any], float, dict[str, Any]]:
    run = partial(transfer, program=program, seconds=SECONDS)
    with tempfile.TemporaryDirectory() as kept:
        folder, links = Path(kept) / "run", list(network["links"])
        (got, said), result, late, row, start = crossed(
            name, network, "sctp", run, other=False, folder=folder, pcapng=links
        )
        captured, intact = decoded(next(folder.glob("*.pcapng")))
        found = {
            **arrived(result, row, start), **counted(result, name, row, start),
            "flow": row["name"], "ended_by": [said["ended_by"], got["ended_by"]],
            "wrong_messages": got["foreign_packets"] + got["reordered_packets"],
            "captured_packets": captured, "intact_packets": intact,
        }  # fmt: skip
    return found, start, late


def cases(traces: Path | None) -> Iterator[Case]:
    """One for each network."""
    with tempfile.TemporaryDirectory() as folder:
        program = built(Path(folder))
        if program is None:
            print("usrsctp: skipped, needs libusrsctp-dev")
            return
        # Where the commands of an emulation, which need not be root, can execute it.
        Path(folder).chmod(0o755)
        for name, network in networks(traces):
            yield name, partial(_crossed, name, network, program)


def _crossed(name: str, network: dict[str, Any], program: Path) -> dict[str, Any]:
    found, start, late = _theirs(name, network, program)
    return {
        "network": name, "late": late, "program": found,
        **{key: ours(name, network, kind, start, arrived) for key, kind in KINDS.items()},
    }  # fmt: skip
