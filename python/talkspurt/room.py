"""Whether a disk has room for a trace, asked before it is begun.

How long a trace gets is not estimated from rates: the run is done once with nobody looking on,
which takes a fraction of the time that writing it does, and its packets are counted, all of them,
whatever the window of measurement.
"""

from __future__ import annotations

import errno
import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from talkspurt import _core, disk, engine, units
from talkspurt.errors import StoreError
from talkspurt.terminal.progress import Bar
from talkspurt.visible import visible

LINE = {"ns2": 75, "nam": 110}
"""Usual length of a line of a trace. A hop has three of ns-2's and four of nam's, a drop two."""
AROUND = 64
"""Of a capture, what stands around each packet."""
EVENT = 150
"""Usual length of an event of a packet in a qlog; a packet has two of them."""
CHANGE = 100
"""Usual length of an event of a gauge in a qlog."""
ROW = 36
"""Of a packet table, a packet on a link: four numbers of eight bytes, and indices."""
WORTH_SAYING = 100e6
"""Bytes from which on it is said what is going to be written."""


@dataclass(frozen=True)
class Counts:
    """What a run sends.

    Attributes:
        links: name, hops, bytes and drops of each direction of a link.
        packets: what endpoints and routers sent.
        changes: how often the inner quantities of protocols changed.
    """

    links: list[tuple[str, int, int, int]]
    packets: int
    changes: int

    def takes(
        self, to: str, links: Collection[str] | None = None, snaplen: int | None = None
    ) -> float:
        """How many bytes it takes to write the run as ``to``.

        A capture can be of these links only, and of so many bytes of each packet.
        """
        chosen = [
            link for link in self.links if links is None or link[0].removesuffix(".back") in links
        ]
        hops = sum(hops for _, hops, _, _ in chosen)
        sent = sum(sent for _, _, sent, _ in chosen)
        drops = sum(drops for _, _, _, drops in chosen)
        if to in ("packets", "parquet"):
            return ROW * (hops + drops)
        if to == "pcapng":
            return hops * AROUND + (sent if snaplen is None else min(sent, hops * snaplen))
        if to == "qlog":
            return 2 * self.packets * EVENT + self.changes * CHANGE
        return LINE[to] * (hops * (4 if to == "nam" else 3) + 2 * drops)


def count(plan: _core.Plan, runs: Collection[int], jobs: int | None = None) -> list[Counts]:
    """What these runs send."""
    found: dict[int, Counts] = {}

    def on_end(i: int, counted: tuple[list[tuple[str, int, int, int]], int, int]) -> None:
        found[i] = Counts(*counted)

    with Bar(f"{plan.title}: counting packets") as bar:
        engine.each(plan.count, runs, jobs=jobs, on_end=on_end, on_progress=bar.on_progress)
    return [found[i] for i in runs]


def check(need: float, what: str, target: Path, instead: str = "choose another --out") -> None:
    """Say what is going to be written, if it is much; refuse what the disk cannot hold.

    Args:
        need: bytes.
        what: what takes them.
        target: where it is to be written; it need not exist.
        instead: what to do where there is no room.

    Raises:
        StoreError: when they would take more than nine tenths of what is free.
    """
    place = target.resolve()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if need > 0.9 * free:
        raise StoreError(
            errno.ENOSPC,
            f"{what} takes about {disk.size(need)} and {disk.size(free)} are free; {instead}",
            str(target),
        )
    if need > WORTH_SAYING:
        print(f"talkspurt: {visible(what)} takes about {disk.size(need)}", file=sys.stderr)


def snaplen(record: Mapping[str, Any]) -> int | None:
    """Bytes that captures keep of each packet; None for all of them."""
    return units.size(record["snaplen"]) if "snaplen" in record else None


def recorded(counts: Counts, record: Mapping[str, Any]) -> float:
    """How many bytes a run's own captures and packet table take."""
    captured = record.get("pcapng")
    need = counts.takes("pcapng", captured, snaplen(record)) if captured else 0.0
    return need + (counts.takes("packets") if record.get("packets") else 0.0)
