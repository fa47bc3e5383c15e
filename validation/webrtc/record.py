#!/usr/bin/env python3
"""Records calls of Chromium over four emulated networks, and compares what counts their packets.

    sudo .venv/bin/python validation/webrtc/record.py [--keep FOLDER] [NETWORK ...]

At both ends of each call, the browser writes its RTC event log and the dump of
chrome://webrtc-internals, and ``getStats`` is sampled once a second; the emulated network captures
the packets. The tracks are stopped two seconds before the last sample, and the call lasts until the
log, which is written every 5 s, has all packets of media. Media are encrypted; headers of RTP and
the first word of RTCP are not (RFC 3711 §3.1 and §3.4).

Each count of a stream's packets, by a log, by the last sample of ``getStats`` and by an imported
dump, is compared with that of the captured packets until the same time; and so are the bytes of IP
packets of the dump's flows, and the packets of RTCP, until the last event of a log. Writes
``calls.json`` beside this file, and the tables of docs/validation/webrtc.md. Needs Chromium, FFmpeg
and root. ``--keep`` copies the recordings of each end to a folder.
"""

from __future__ import annotations

import argparse
import functools
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "validation" / "apps"), str(ROOT / "validation")]

import chromium  # noqa: E402
import made  # noqa: E402
from networks import emulated, scenario, traffic  # noqa: E402
from tables import fill, table  # noqa: E402

from talkspurt import Result, _core, import_trace  # noqa: E402
from talkspurt.importing.webrtc import eventlog  # noqa: E402

CALL_S = 20
PAGE = ROOT / "docs" / "validation" / "webrtc.md"
FILE = HERE / "calls.json"
LINE = {
    "from": "a", "to": "b", "rate": "10Mbit/s", "delay": "20ms",
    "queue": {"kind": "droptail", "packets": 1000},
}  # fmt: skip
"""Its queue never overflows: the capture has no packets that were dropped before they left."""
NETWORKS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "clean": ("10 Mbit/s, 20 ms each way", {}, []),
    "loss": ("the same, 3 % lost from `a` to `b`", {"loss": 0.03, "back": {"loss": 0.0}}, []),
    "reordering": ("the same, up to 60 ms of jitter, in any order",
                   {"jitter": "60ms", "reorder": True}, []),
    "slow": ("1 Mbit/s, video from `a` beside the voice", {"rate": "1Mbit/s"}, ["video"]),
}  # fmt: skip
"""By name: what the page says, how the link differs, and the settings of the browsers."""
ENDS = {"caller": "a", "answerer": "b"}


@dataclass
class End:
    """What an end recorded: its log, the last sample of ``getStats``, and its imported dump."""

    log: eventlog.EventLog
    last: list[dict[str, Any]]
    dump: Result

    def flow(self, ssrc: int) -> tuple[dict[str, Any], float]:
        """The flow of a stream in the imported dump, and until when, in ns since 1970."""
        told = self.dump.manifest["imported"]
        name, facts = next(it for it in told["flows"].items() if it[1]["ssrc"] == ssrc)
        row = self.dump.flows.row(by_predicate=pl.col("name") == name, named=True)
        return row, told["began_ns"] + 1e9 * facts["last_sample_s"]


def call(name: str, keep: Path | None) -> dict[str, Any]:
    """A call over a network, and what counts its packets."""
    _, differs, more = NETWORKS[name]
    text = scenario({"links": {"line": {**LINE, **differs}}}, traffic("clean"))
    text["record"] |= {"pcapng": ["line"]}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        program = functools.partial(chromium.browsers, folder, CALL_S, ["dump", *more])
        samples, result, late = emulated(text, program, folder / "network", latest_s=1.0)
        packets = captured(folder / "network" / "line.pcapng", result)
        ends = {}
        for role, node in ENDS.items():
            (log,) = (folder / "call" / f"{role}.events").iterdir()
            dump = folder / "call" / f"{role}.txt"
            last = samples[role][-1]["kept"]
            ends[node] = End(eventlog.read(log.read_bytes()), last, import_trace(dump))
            if keep is not None:
                keep.mkdir(exist_ok=True)
                shutil.copy(log, keep / f"{name}.{node}.rtc-event-log")
                shutil.copy(dump, keep / f"{name}.{node}.txt")
                shutil.copy(folder / "call" / f"{role}.json", keep / f"{name}.{node}.json")
        if keep is not None:
            shutil.copy(folder / "network" / "line.pcapng", keep / f"{name}.pcapng")
            packets.write_parquet(keep / f"{name}.packets.parquet")
        return {"late_p99_s": late["p99_s"], **compared(ends, packets)}


def captured(file: Path, result: Result) -> pl.DataFrame:
    """The packets of a capture: kind, stream, end that sent it, length, departure and arrival."""
    words = ["tshark", "-r", str(file), "-T", "fields", "-e", "frame.number", "-e", "udp.payload"]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    begins = [(int(line.split("\t")[0]), line.split("\t")[1][:4]) for line in told.splitlines()]
    kinds = [(frame, kind(bytes.fromhex(data))) for frame, data in begins]
    rows = pl.DataFrame(_core.capture(file.read_bytes())[0]).join(
        pl.DataFrame(kinds, schema=["frame", "what"], orient="row"), on="frame"
    )
    hops = result.packets().filter(pl.col("dequeued_s").is_not_null())
    nanos = (pl.col("dequeued_s") * 1e9).round().cast(pl.Int64).alias("time_ns")
    joined = rows.with_columns(pl.col("time_ns").cast(pl.Int64)).join(
        hops.select(nanos, "link", "fate", "received_s"), on="time_ns"
    )
    if joined.height != rows.height:
        raise RuntimeError("packets of the capture are not those of the packets table")
    return joined.select(
        "what", "ip_bytes", pl.col("rtp_ssrc").alias("ssrc"), pl.col("rtp_seq").alias("number"),
        pl.when(pl.col("link") == "line").then(pl.lit("a")).otherwise(pl.lit("b")).alias("end"),
        pl.col("time_ns").alias("sent_ns"),
        pl.when(pl.col("fate") == "received")
        .then((pl.col("received_s") * 1e9).round().cast(pl.Int64))
        .alias("arrived_ns"),
    )  # fmt: skip


def kind(data: bytes) -> str:
    """What begins with these bytes (RFC 7983 §7, RFC 5761 §4)."""
    if data[0] < 4:
        return "stun"
    if 20 <= data[0] < 64:
        return "dtls"
    return "rtcp" if 192 <= data[1] < 224 else "rtp"


def compared(ends: dict[str, End], packets: pl.DataFrame) -> dict[str, Any]:
    """The counts of all streams, and of RTCP, by the end that sent them."""
    packets = packets.with_columns(pl.col("sent_ns", "arrived_ns") + shift_ns(ends["a"], packets))
    streams, control = [], []
    for end, other in (("a", "b"), ("b", "a")):
        mine, theirs = ends[end], ends[other]
        for one in mine.last:
            if one["type"] == "outbound-rtp":
                streams.append({"from": end, **stream(one, mine, theirs, packets.filter(end=end))})
        control.append({"from": end, **rtcp(mine, theirs, packets.filter(end=end))})
    return {"streams": streams, "rtcp": control}


def shift_ns(end: End, packets: pl.DataFrame) -> int:
    """The clock of the log less that of the capture, which sees a packet after it was logged."""
    sent = end.log.events["outgoing_rtp_packets"]
    logged = pl.DataFrame(
        {
            "ssrc": [*sent["ssrc"]], "number": [*sent["sequence_number"]],
            "logged_ns": [end.log.utc_ns(it) for it in sent["timestamp_ms"]],
        }
    )  # fmt: skip
    both = packets.join(logged, on=["ssrc", "number"])
    return int((both["logged_ns"] - both["sent_ns"]).max())


def stream(one: dict[str, Any], mine: End, theirs: End, packets: pl.DataFrame) -> dict[str, Any]:
    """A stream: packets, and bytes of IP packets; with its retransmissions, as getStats counts."""
    ssrcs = [one["ssrc"], *([one["rtxSsrc"]] if "rtxSsrc" in one else [])]
    caught = packets.filter(pl.col("ssrc").is_in(ssrcs) & (pl.col("what") == "rtp"))
    there = caught.drop_nulls("arrived_ns")
    early = there.filter(~known(theirs.log.events["incoming_rtp_packets"]))
    # What arrives before the handshake of DTLS is complete cannot be decrypted.
    media = there["sent_ns"].max()
    handshake = packets.filter((pl.col("what") == "dtls") & (pl.col("sent_ns") < media))
    if early.filter(pl.col("arrived_ns") > handshake["arrived_ns"].max()).height:
        raise RuntimeError(f"packets are in no log:\n{early}")
    there = there.filter(known(theirs.log.events["incoming_rtp_packets"]))
    got = next(it for it in theirs.last if it.get("ssrc") == ssrcs[0] and "inbound" in it["type"])
    found: dict[str, Any] = {"kind": one["kind"], "early": early.height}
    for way, end, row, rows, events in (
        ("sent", mine, one, caught, mine.log.events["outgoing_rtp_packets"]),
        ("received", theirs, got, there, theirs.log.events["incoming_rtp_packets"]),
    ):
        column = "sent_ns" if way == "sent" else "arrived_ns"
        sampled = rows.filter(pl.col(column) <= row["timestamp"] * 1e6)
        flow, until = end.flow(ssrcs[0])
        dumped = rows.filter(pl.col(column) <= until)
        found[way] = {
            "log": [sum(it in ssrcs for it in events["ssrc"]), rows.height],
            "getStats": [row[f"packets{way.capitalize()}"], sampled.height],
            "dump": [flow[f"{way}_packets"], dumped.height],
        }
        found[f"{way}_bytes"] = {"dump": [flow[f"{way}_bytes"], int(dumped["ip_bytes"].sum())]}
    return found


def known(events: eventlog.Events) -> pl.Expr:
    """Whether a packet of a capture is in a log."""
    pairs = [a << 16 | b for a, b in zip(events["ssrc"], events["sequence_number"], strict=True)]
    return (pl.col("ssrc") * 65536 + pl.col("number")).is_in(pairs)


def rtcp(mine: End, theirs: End, packets: pl.DataFrame) -> dict[str, Any]:
    """RTCP from an end.

    The transport of ``getStats`` counts packets of RTP, RTCP and DTLS.
    """
    transport = next(it for it in mine.last if it["type"] == "transport")
    before = packets.filter(pl.col("sent_ns") <= transport["timestamp"] * 1e6)
    others = before.filter(pl.col("what").is_in(["rtp", "dtls"])).height
    control = packets.filter(what="rtcp")
    sent = control.filter(pl.col("sent_ns") <= written_ns(mine.log))
    received = control.filter(pl.col("arrived_ns") <= written_ns(theirs.log))
    return {
        "sent": {
            "log": [len(mine.log.events["outgoing_rtcp_packets"]), sent.height],
            "getStats": [transport["packetsSent"] - others, before.filter(what="rtcp").height],
        },
        "received": {"log": [len(theirs.log.events["incoming_rtcp_packets"]), received.height]},
    }


def written_ns(log: eventlog.EventLog) -> int:
    """Until when a log was written: its last event."""
    return log.utc_ns(1 + max(max(it["timestamp_ms"]) for it in log.events.values() if len(it)))


def main() -> None:
    """Record the calls that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("names", nargs="*", default=[*NETWORKS])
    asked = parser.parse_args()
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in asked.names:
        about = made.made(FILE, PAGE) | {"chromium": made.line(*chromium.VERSION)}
        found[name] = {"made": about, **call(name, asked.keep)}
        print(name, json.dumps(found[name]), flush=True)
        FILE.write_text(json.dumps(found, indent=1) + "\n")
    fill(PAGE, parts(found))


def cell(of: dict[str, list[int]]) -> str:
    """What the recordings count, and the capture until then: one number each if they agree."""
    words = [
        f"{ours}" if ours == captured else f"**{ours} of {captured}**"
        for ours, captured in of.values()
    ]
    return words[0] if len({*words}) == 1 else ", ".join(words)


def parts(found: dict[str, Any]) -> dict[str, str]:
    """The generated parts of the page."""
    rows, control, agree = [], [], []
    for name, (title, *_) in NETWORKS.items():
        if name not in found:
            continue
        for one in found[name]["streams"]:
            kinds = [one[it] for it in ("sent", "received", "sent_bytes", "received_bytes")]
            agree += kinds
            what = f"{one['kind']} from `{one['from']}`"
            rows.append([title, what, *map(cell, kinds), one["early"] or ""])
        for one in found[name]["rtcp"]:
            kinds = [one["sent"], one["received"]]
            agree += kinds
            control.append([title, f"from `{one['from']}`", *map(cell, kinds)])
    pairs = [pair for one in agree for pair in one.values()]
    same = sum(ours == captured for ours, captured in pairs)
    about = next(iter(found.values()))["made"]
    return {
        "seconds": f"{CALL_S}",
        "made": f"Made {about['date']} at commit `{about['commit'][:12]}`{about['modified']} with"
        f" {about['chromium'].split(' built')[0]} and {about['tshark'].split(' (Git')[0]}.",
        "agree": f"{same} of {len(pairs)}",
        "streams": table(
            "network | stream | packets sent | received | IP bytes sent | received | too early",
            rows, "llrrrrr",
        ),
        "rtcp": table(
            "network | RTCP | sent: log, `getStats` | received: log", control, "llrr",
        ),
    }  # fmt: skip


if __name__ == "__main__":
    main()
