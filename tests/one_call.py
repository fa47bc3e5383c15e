"""One call over one link: the scenario of the tests of codecs, redundancy and pauses."""

from __future__ import annotations

from pathlib import Path

from texts import put

SPEECH = Path(__file__).parent.parent / "speech"
FIXED = 'kind = "fixed", buffer = "100ms"'
SINGLE = "gilbert_elliott = { p = 0.1, r = 1.0, h = 0.0, k = 1.0 }"
"""A tenth of the packets is lost, never two in a row."""


def one_call(
    source: str,
    *,
    duration: float,
    file: Path | None = None,
    link: str = "",
    rate: str = "10Mbit/s",
    delay: str = "20ms",
    queue: str = 'kind = "droptail", packets = 100',
    transport: str = 'kind = "udp"',
    playout: str = FIXED,
    flow: str = "",
    run: str = "",
    seed: int = 1,
) -> str:
    """A scenario with the flow ``call`` from ``a`` to ``b`` over the link ``link``.

    ``source``, ``link``, ``flow`` and ``run`` are further lines of their tables.
    """
    recording = f'file = "{file}"' if file else ""
    return f"""
title = "One call"
duration = "{duration}s"
seed = {seed}
{run}

[links.link]
from = "a"
to = "b"
rate = "{rate}"
delay = "{delay}"
queue = {{ {queue} }}
{link}

[flows.call]
from = "a"
to = "b"
transport = {{ {transport} }}
playout = {{ {playout} }}
{flow}

[flows.call.source]
kind = "speech"
{recording}
{source}
"""


def write_call(place: Path, source: str, *, more: str = "", **given) -> Path:
    """The file of this scenario in a folder, with ``more`` tables."""
    return put(place / "call.toml", one_call(source, **given) + more)
