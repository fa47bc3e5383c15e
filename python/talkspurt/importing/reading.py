"""Reads traces of ns-2, captures, and what WebRTC programs record, as results."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
import tomllib
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import tomli_w

from talkspurt import _core
from talkspurt._lazy import pl
from talkspurt._storage import file_access
from talkspurt._text.escaping import visible, whole
from talkspurt.errors import BadInputError
from talkspurt.importing import capture, directions, network, ns2
from talkspurt.importing.model import Trace
from talkspurt.importing.point import Point
from talkspurt.importing.rtp import CLOCKS
from talkspurt.importing.sessions import Payload, Sessions
from talkspurt.importing.tables import Tables
from talkspurt.importing.webrtc import dump, eventlog, streams
from talkspurt.results import manifest as manifests
from talkspurt.results.result import Result
from talkspurt.scenarios.resolved import duration_s, unknown_network

MAX_BYTES = 4 << 30
MAX_SDP = 1 << 20
CAPTURES = (
    b"\x0a\x0d\x0d\x0a", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\x3c\x4d", b"\x34\xcd\xb2\xa1", b"\xa1\xb2\xcd\x34",
)  # fmt: skip
"""First bytes of pcapng, and of pcap with micro- or nanoseconds, or as modified by Kuznetzov."""
PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
START_OF_SCENARIO = (
    "# This describes an imported trace, in the words of a scenario as far as they are known.\n"
    "# It cannot be run: the network and the sources are not in the trace.\n"
)


def import_trace(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    payloads: Mapping[int, str] | None = None,
    playout: str | Mapping[str, Any] = "adaptive",
    sdp: str | os.PathLike[str] | None = None,
    delay_s: float | None = None,
    clock_offset_s: float = 0.0,
    as_network: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Result:
    """The result of a trace of ns-2, a capture, or what a WebRTC program recorded.

    Args:
        files: one file, or two captures or event logs, at both ends of a path.
        payloads: dynamic payload types of RTP as SDP has them, as in ``{96: "opus/48000/2"}``;
            the clock of well-known encodings may be left out.
        playout: the jitter buffer of calls as in a scenario, such as ``{"kind": "fixed",
            "buffer": "60ms"}``, or in short its kind, its profile, or the length of a fixed one.
        sdp: a file with a session description, besides those in the capture.
        delay_s: the network delay before a single capture, for mouth-to-ear delay and MOS.
        clock_offset_s: the clock of the second capture minus that of the first.
        as_network: a folder for what the trace shows of the network: delays and losses over time as
            link traces, and ``network.toml``, a scenario with these links and the trace's calls.
        overwrite: whether this folder may replace another output.

    Returns:
        A result with the tables of a run; what the trace does not contain is null.
        ``manifest["imported"]`` has the hashes of the files, what was assumed, and what is unknown.

    Raises:
        talkspurt.errors.BadInputError: if a file is none of these formats, truncated, empty or
            compressed, or if an argument does not fit.
        OSError: if a file cannot be read.
    """
    given = [files] if isinstance(files, str | os.PathLike) else files
    paths, payloads = [Path(file) for file in given], payloads or {}
    if not 1 <= len(paths) <= 2:
        raise BadInputError(
            f"import: expected one trace, or two captures or event logs, found {len(paths)}"
        )
    faults = unfit(len(paths), delay_s is not None, clock_offset_s != 0)
    meanings: dict[int, Payload] = {}
    for kind, text in payloads.items():
        meaning = Payload.parse(text) if isinstance(text, str) else None
        if kind in range(128) and meaning is not None:
            meanings[kind] = meaning
        else:
            faults.append(wrong_payload(f"{kind}={text}"))
    buffer, fault = jitter_buffer(playout)
    faults += [fault] if fault else []
    if delay_s is not None and not 0 <= delay_s < math.inf:
        faults.append(f"--network-delay {delay_s} s: expected 0 s or more")
    if faults:
        raise BadInputError(visible("; ".join(faults)))
    began = time.monotonic()
    kinds = [_kind(file) for file in paths]
    contents = [file_access.read_bytes(file, MAX_BYTES) for file in paths]
    if len(paths) == 2 and {*kinds} - {"capture", "event log"}:
        raise BadInputError(
            visible(f"{paths[0]} and {paths[1]}: two files must be captures or RTC event logs")
        )
    if kinds[0] in {"ns-2", "statistics"} and (payloads or sdp is not None or delay_s is not None):
        raise BadInputError(
            "--payload, --sdp and --network-delay: only for captures and event logs"
        )
    sessions = Sessions(meanings, given=[] if sdp is None else description(Path(sdp)))
    if kinds[0] == "statistics":
        try:
            statistics = streams.Tables(dump.read(contents[0]))
        except dump.DumpError as error:
            raise BadInputError(visible(f"{paths[0]}: {error}")) from None
        if as_network is not None:
            raise BadInputError(
                "--as-network: statistics have no packets, and so no delays; "
                "an RTC event log or a capture of the call has them"
            )
        return _result(paths, contents, statistics.trace, statistics, began)
    points: list[Point] = []
    if kinds[0] == "ns-2":
        trace = ns2.read(paths[0], contents[0])
    else:
        for form, file, data in zip(kinds, paths, contents, strict=True):
            read = Point.of_log if form == "event log" else Point.read
            points.append(read(file, data, sessions))
        trace = _of_points(points, delay_s, clock_offset_s)
    tables = Tables(trace, buffer, b"".join(point.data for point in points))
    if as_network is not None:
        network.export(Path(as_network), trace, tables.flows_told, overwrite=overwrite)
    return _result(paths, contents, trace, tables, began)


def description(file: Path) -> list[dict[str, Any]]:
    """The media of a file with a session description."""
    found = _core.sdp(file_access.read_bytes(file, MAX_SDP), False)
    media: list[dict[str, Any]] = json.loads(found) if found else []
    if not media:
        raise BadInputError(
            visible(f"--sdp {file}: no session description: expected v=0 and lines m= (RFC 8866)")
        )
    return media


def jitter_buffer(playout: str | Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The settings of a jitter buffer in a scenario, and what is wrong with them."""
    if isinstance(playout, Mapping):
        table = dict(playout)
    elif duration_s(playout) is not None:
        table = {"kind": "fixed", "buffer": playout}
    elif playout == "libwebrtc":
        table = {"kind": "adaptive", "profile": playout}
    elif playout.startswith("{"):
        try:
            table = tomllib.loads(f"playout = {playout}")["playout"]
        except tomllib.TOMLDecodeError as error:
            return {}, f"--playout {playout}: {error}"
    else:
        table = {"kind": playout}
    try:
        known = json.loads(_core.jitter_buffer(json.dumps(table)))
        return {key: value for key, value in known.items() if value is not None}, None
    except ValueError as error:
        return {}, f"--playout {playout}: {error}"


def _of_points(points: list[Point], delay_s: float | None, offset_s: float) -> Trace:
    """The packets of captures and logs, and what is known beyond them."""
    trace = capture.read(points, delay_s=delay_s, offset_s=offset_s)
    if all(point.log is None for point in points):
        trace.notes += capture.ONE_POINT if len(points) == 1 else ()
        return trace
    trace.format = " and ".join("capture" if it.log is None else "RTC event log" for it in points)
    for point, shift_s in zip(points, (0.0, offset_s), strict=False):
        log = point.log
        if log is None:
            continue
        if log.unread_bytes:
            trace.notes.insert(
                0,
                f"the log is cut: its last {log.unread_bytes} bytes are part of a message, and "
                "what followed is missing; copy a log after the call has ended",
            )
        for name, count in eventlog.others(log).items():
            trace.skipped[name] = trace.skipped.get(name, 0) + count
        sources = set(log.events["outgoing_rtp_packets"]["ssrc"])
        ours = (way for way in trace.ways if way.facts.get("ssrc") in sources)
        next(ours, trace.ways[0]).gauges += [
            (max(0.0, (at - trace.facts["began_ns"]) / 1e9 - shift_s), name, value)
            for at, name, value in sorted(eventlog.gauges(log))
        ]
    for way in trace.ways if len(points) == 1 else ():
        if way.sender == "local":
            reported = directions.only_sent(way)
            if way.has_data:
                trace.notes.append(
                    f"{way.name}: sent by the end that wrote the log, which does not know what "
                    f"arrived: no playout and no score{reported}"
                )
    if delay_s is None and len(points) == 1:
        trace.notes.append("network delay is not known")
    return trace


def unfit(files: int, delay: bool, clock_offset: bool) -> list[str]:
    """What does not fit the number of files, if it is given."""
    faults = ["--clock-offset: only for two captures"] if clock_offset and files == 1 else []
    return faults + (["--network-delay: two captures measure it"] if delay and files == 2 else [])


def wrong_payload(text: str) -> str:
    """What is wrong with a payload type as in the text ``111=opus``."""
    return (
        f"--payload {text}: expected TYPE=ENCODING/CLOCK/CHANNELS as in SDP, such as "
        "96=opus/48000/2; the clock may be left out of "
        f"{', '.join(sorted(CLOCKS))}"
    )


def _kind(file: Path) -> str:
    if file.is_dir():
        raise BadInputError(
            visible(f"{file}: is a folder: name the trace in it; results need no import")
        )
    data = file_access.first_bytes(file, 4096)
    for magic, name in PACKED.items():
        if data.startswith(magic):
            raise BadInputError(visible(f"{file}: is compressed with {name}: unpack it first"))
    if not data:
        raise BadInputError(visible(f"{file}: is empty"))
    if data[:4] in CAPTURES:
        return "capture"
    if eventlog.begins(data):
        return "event log"
    if dump.begins(data):
        return "statistics"
    if b"\0" in data:
        raise BadInputError(visible(f"{file}: {ns2.NEITHER}"))
    return "ns-2"


def _result(
    files: Sequence[Path],
    contents: Sequence[bytes],
    trace: Trace,
    tables: Tables | streams.Tables,
    began: float,
) -> Result:
    name = "-".join(file_access.plain_name(file.stem) for file in files)
    hashes = [hashlib.sha256(data).hexdigest() for data in contents]
    title = " and ".join(whole(file.name) for file in files)
    told = {
        "title": title, "duration": f"{trace.duration_s:.9f}s",
        "record": {"interval": f"{tables.width:g}s", "packets": True},
        "flows": tables.flows_told,
    }  # fmt: skip
    made = tables.made
    imported: Any = {
        "format": trace.format,
        "files": [
            {"file": whole(str(file.absolute())), "sha256": hashed, "bytes": len(data)}
            for file, hashed, data in zip(files, hashes, contents, strict=True)
        ],
        "notes": trace.notes,
        "not_imported": trace.skipped,
        "unknown": unknown(made["flows"]),
        **trace.facts,
        "flows": {way.name: way.facts for way in tables.shown},
    }
    manifest = manifests.made(
        name,
        whole(str(files[0].absolute())),
        seed=0,
        digest=hashlib.sha256("".join(hashes).encode()).hexdigest()[:16],
        machine_dependent=False,
        duration_s=trace.duration_s,
        hops=made["packets"].height,
        events=made["packets"].height,
        cpu_s=time.monotonic() - began,
        wall_s=time.monotonic() - began,
    )
    description = "\n".join(
        [f"Imported from {trace.format}.", "", *(f"* {note}" for note in trace.notes)]
    )
    return Result(
        name=name,
        title=title,
        description=description,
        settings={},
        replicate=0,
        seed=0,
        scenario=START_OF_SCENARIO + tomli_w.dumps(told),
        topology=_topology(trace, tables),
        manifest={**manifest, "imported": imported},
        _read_table=lambda table: made.get(table),
        _read_audio=lambda name: tables.audio(name) if isinstance(tables, Tables) else None,
    )


def unknown(flows: pl.DataFrame) -> list[str]:
    """The columns of the flows table that have no value in any row."""
    return [name for name in flows.columns if flows[name].null_count() == flows.height]


def _topology(trace: Trace, tables: Tables | streams.Tables) -> dict[str, Any]:
    """Nodes, links and routes, as of a run; rates and delays are not known."""
    ends = [*trace.links.values(), *((way.sender, way.receiver) for way in trace.ways)]
    flows = []
    for flow in tables.flows_told:
        ways = {way.side: way for way in trace.ways if way.flow == flow}
        first = next(iter(ways.values()))
        routes = {side: ways[side].routes if side in ways else [] for side in ("from", "to")}
        flows.append(
            {"name": flow, "transport": first.transport, "from": first.sender,
             "to": first.receiver, "routes": [_nodes(trace, route) for route in routes["from"]],
             "back": [_nodes(trace, route) for route in routes["to"]],
             "links": routes,
             "speech": [None, None]}
        )  # fmt: skip
    return unknown_network(chain.from_iterable(ends), trace.links, flows)


def _nodes(trace: Trace, route: Sequence[str]) -> list[str]:
    if not route:
        return []
    return [trace.links[route[0]][0], *(trace.links[link][1] for link in route)]
