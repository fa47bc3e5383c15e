"""Wireshark, reading our capture, finds the same call: its packets, its losses, its jitter.

The capture of the bottleneck is taken where packets leave its queue; from there to the listener
every packet takes the same time, so that what Wireshark reckons there is what the listener has.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

import talkspurt
from command import CHECKS, dissected, needs_tshark, output
from conftest import row_of
from talkspurt.runs import exporting
from texts import BULK, NEWRENO, SPEECH, UDP, cbr, flow_text, link_text, scenario_text

SCENARIO = Path(__file__).parent.parent / "scenarios" / "first-call.toml"
pytestmark = needs_tshark


def tshark(capture: Path, *words: str) -> str:
    """What tshark prints of a capture."""
    return output("tshark", "-r", capture, *CHECKS, "-d", "udp.port==49152,rtp", *words)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[talkspurt.Result, Path]:
    """The first call, and the capture of the link it shares with the upload."""
    whole = {"measure.from": "0s", "measure.to": "60s"}
    result = talkspurt.run(SCENARIO, set={**whole, "record.pcapng": ["udp-uplink"]})
    assert isinstance(result, talkspurt.Result)
    folder = tmp_path_factory.mktemp("run") / "first-call"
    result.save(folder, report=False)
    return result, folder / "udp-uplink.pcapng"


def test_wireshark_reckons_the_same_jitter_and_loss(run: tuple[talkspurt.Result, Path]) -> None:
    result, capture = run
    call = row_of(result, "call")
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


OVER = {
    "bulk": ('{ kind = "tcp", controller = "sack" }', BULK),
    "cubic": ('{ kind = "tcp", controller = "cubic", mss = "1000B" }', BULK),
    "stream": (NEWRENO, SPEECH),
    "sctp": ('{ kind = "sctp" }', BULK),
    "messages": ('{ kind = "sctp", ordered = false }', SPEECH),
    "ccid2": ('{ kind = "dccp", ccid = 2 }', BULK),
    "ccid3": ('{ kind = "dccp", ccid = 3 }', SPEECH),
    "tfrc": ('{ kind = "tfrc" }', BULK),
}
READ = {
    "raw:ip:udp:data",
    "raw:ip:tcp",
    "raw:ip:tcp:data",
    "raw:ip:sctp",
    "raw:ip:sctp:data",
    "raw:ip:dccp",
    "raw:ip:dccp:data",
    "raw:ip:udp:rtcp",
    "raw:ip:dccp:rtcp",
}


@pytest.mark.parametrize(("jitter", "reorder"), [("0s", False), ("80ms", True), ("80ms", False)])
def test_of_many_flows_nothing_is_taken_for_another_protocol_nor_out_of_order(
    tmp_path: Path, jitter: str, reorder: bool
) -> None:
    text = scenario_text(
        "Every transport, many flows",
        "4s",
        link_text("line", "a>b", "20Mbit/s", "10ms", jitter=jitter, reorder=reorder),
        flow_text("speech", "a>b", count=150),
        flow_text("datagrams", "a>b", UDP, cbr("32kbit/s", "200B"), count=150),
        *(flow_text(name, "a>b", *over) for name, over in OVER.items()),
    )
    result = talkspurt.run(text)
    assert isinstance(result, talkspurt.Result)
    result.save(tmp_path / "run", report=False)
    capture = exporting.export(tmp_path / "run", "pcapng", None) / "line.pcapng"
    read = [*CHECKS, "-o", "sctp.checksum:TRUE", "-o", "dccp.check_checksum:TRUE"]
    names = ("frame.protocols", "frame.time_epoch", "_ws.malformed")
    rows = dissected(capture, *names, options=read)
    assert len(rows) > 30_000
    # SCTP bundles messages.
    assert {re.sub("(:data)+$", ":data", row[0]) for row in rows} - READ == set()
    assert {row[2] for row in rows} == {""}
    times = [float(row[1]) for row in rows]
    assert all(b >= a for a, b in pairwise(times))
    wrong = " || ".join(f'{layer}.checksum.status == "Bad"' for layer in ("ip", "udp", "tcp"))
    wrong += ' || sctp.checksum.status == "Bad" || dccp.checksum.status == "Bad"'
    assert tshark(capture, *read, "-Y", f"{wrong} || _ws.malformed") == ""
