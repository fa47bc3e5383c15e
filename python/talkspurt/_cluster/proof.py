"""Proof that a worker computes what the client computes: version, a probe run, and codecs.

The probe has every kind of transport and a lossy link. Each codec that the study uses with a
recording encodes and decodes a short signal. What is compared are the digest of the probe, the
bytes of its tables as Parquet, and the bytes of the decoded sound.
"""

from __future__ import annotations

import hashlib
import math
import struct
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from talkspurt import _core
from talkspurt._lazy import pl
from talkspurt._storage.file_access import write_table
from talkspurt.results.audio import wav
from talkspurt.runs import engine
from talkspurt.scenarios.resolved import recordings

TRANSPORTS = (
    'kind = "udp"', 'kind = "tcp", controller = "newreno"', 'kind = "tcp", controller = "cubic"',
    'kind = "tcp", controller = "bbr"', 'kind = "sctp"', 'kind = "dccp", ccid = 2',
    'kind = "dccp", ccid = 3', 'kind = "dccp", ccid = 4', 'kind = "tfrc"',
)  # fmt: skip
NETWORK = """\
title = "Probe"
duration = "2s"
seed = 7
record = { interval = "100ms" }
[links.wire]
from = "a"
to = "b"
rate = "2Mbit/s"
delay = "10ms"
loss = %s
queue = { kind = "droptail", packets = 20 }
"""
FLOW = """\
[flows.f%d]
from = "a"
to = "b"
transport = { %s }
source = { kind = "cbr", rate = "128kbit/s", packet = "400B" }
"""
ENCODING = ("codec", "packet", "opus", "stand_in", "vad", "red")
"""Keys of a source that decide how its recording is encoded."""


def sources(resolved: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How the calls of a resolved scenario encode their recordings."""
    sources = recordings(resolved)
    return [{key: source[key] for key in ENCODING if key in source} for source in sources]


def of_this(codecs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The proof of this process, for these encodings: what is compared, and its value."""
    proof = {"version of talkspurt": _core.version()}
    text = NETWORK % 0.02 + "".join(FLOW % it for it in enumerate(TRANSPORTS))
    with tempfile.TemporaryDirectory(prefix="talkspurt-proof-") as folder:
        outcome = _run(text, folder)
        proof["digest of a probe scenario"] = outcome.digest
        for name in ("flows", "links"):
            write_table(Path(folder) / f"{name}.parquet", pl.DataFrame(outcome.table(name)))
        for file in sorted(Path(folder).glob("*.parquet")):
            said = f"bytes of Parquet, table {file.stem}"
            proof[said] = hashlib.sha256(file.read_bytes()).hexdigest()
        speech = Path(folder) / "speech.wav"
        _write_signal(speech)
        for encoding in codecs:
            name = hashlib.sha256(repr(sorted(encoding.items())).encode()).hexdigest()[:6]
            said = f"output of the codec {encoding.get('codec')}, {name}"
            proof[said] = _coded(encoding, speech)
    return proof


def _coded(encoding: Mapping[str, Any], speech: Path) -> str:
    """A hash of what a call with this encoding plays of the signal."""
    scenario = tomllib.loads(NETWORK % 0.0)
    source = {"kind": "speech", "file": str(speech), **encoding}
    call = {"from": "a", "to": "b", "transport": {"kind": "udp"}, "source": source}
    scenario["flows"] = {"call": call}
    try:
        outcome = _run(tomli_w.dumps(scenario))
    except (ValueError, RuntimeError) as error:
        # A codec that is not installed there; the message is the same wherever it is missing.
        return f"none: {error}".replace(str(speech), "the signal")
    audio = outcome.audio("call")
    return hashlib.sha256(audio[1] if audio else b"").hexdigest()


def _run(text: str, folder: str | None = None) -> _core.Outcome:
    found: list[_core.Outcome] = []
    engine.drive(
        _core.load(text, "probe", ".", [], None),
        [0],
        jobs=1,
        folder=lambda _: folder,
        tables="folder" if folder else "none",
        on_end=lambda _, outcome: found.append(outcome),
    )
    return found[0]


def _write_signal(file: Path) -> None:
    """Half a second of a chirp, which all codecs have to work for."""
    rate = 16_000
    phase = (2 * math.pi * (200 + 2400 * t / rate) * t / rate for t in range(rate // 2))
    pcm = b"".join(struct.pack("<h", round(9000 * math.sin(p))) for p in phase)
    file.write_bytes(wav(pcm, rate))


def difference(here: Mapping[str, str], there: Mapping[str, str]) -> str | None:
    """The first difference of a worker's proof from the client's in words, or None."""
    for what, value in here.items():
        found = there.get(what, "not there")
        if found != value:
            return f"another {what}: {found[:40]}, here {value[:40]}"
    return None
