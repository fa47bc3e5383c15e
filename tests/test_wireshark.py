"""Wireshark, reading our capture, finds the same call: its packets, its losses, its jitter.

The capture of the bottleneck is taken where packets leave its queue; from there to the listener
every packet takes the same time, so that what Wireshark reckons there is what the listener has.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

import talkspurt

SCENARIO = Path(__file__).parent.parent / "scenarios" / "first-call.toml"
CHECKS = [word for layer in ("ip", "udp", "tcp") for word in ("-o", f"{layer}.check_checksum:TRUE")]

if shutil.which("tshark") is None and not os.environ.get("TALKSPURT_REQUIRE_TSHARK"):
    pytest.skip("tshark is not installed", allow_module_level=True)


def tshark(capture: Path, *words: str) -> str:
    """What tshark prints of a capture."""
    command = ["tshark", "-r", str(capture), *CHECKS, "-d", "udp.port==5004,rtp", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[talkspurt.Result, Path]:
    """The first call, and the capture of the link it shares with the upload."""
    whole = {"measure.from": "0s", "measure.to": "60s"}
    result = talkspurt.run(SCENARIO, set={**whole, "record.pcapng": ["udp-satellite"]})
    assert isinstance(result, talkspurt.Result)
    folder = tmp_path_factory.mktemp("run") / "first-call"
    result.save(folder)
    return result, folder / "udp-satellite.pcapng"


def test_wireshark_reckons_the_same_jitter_and_loss(run: tuple[talkspurt.Result, Path]) -> None:
    result, capture = run
    call = result.flows.row(by_predicate=pl.col("name") == "call", named=True)
    rows = tshark(capture, "-q", "-z", "rtp,streams").splitlines()
    stream = next(row for row in rows if "g711U" in row).split()
    codec = stream.index("g711U")
    packets, lost = int(stream[codec + 1]), int(stream[codec + 2])
    mean_jitter_ms = float(stream[codec + 8])
    assert packets == call["received_packets"]
    assert lost == call["lost_packets"]
    # tshark prints microseconds, and starts its mean at the first packet, whose jitter is 0.
    assert mean_jitter_ms == pytest.approx(1000 * call["jitter_s"], abs=0.004)


def test_wireshark_finds_every_packet_sound(run: tuple[talkspurt.Result, Path]) -> None:
    _, capture = run
    wrong = "_ws.malformed || ip.checksum.status == 0 || udp.checksum.status == 0"
    assert tshark(capture, "-Y", f"{wrong} || tcp.checksum.status == 0") == ""
    assert tshark(capture, "-Y", "_ws.expert.group == 0x07000000") == ""  # group Malformed
