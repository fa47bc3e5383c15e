"""Checks that a disk has space for a trace before it is written.

The length is not estimated from rates: the run is repeated without recording, which takes a
fraction of the time of writing it, and all its packets are counted, regardless of the measure
window.
"""

from __future__ import annotations

import errno
import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from talkspurt import _core
from talkspurt._storage import file_access
from talkspurt._terminal.progress import Bar
from talkspurt._text.escaping import visible
from talkspurt.errors import StoreError
from talkspurt.runs import engine
from talkspurt.scenarios import units

LINE = {"ns2": 75, "nam": 110}
"""Usual length of a trace line. A hop has three lines in ns-2 and four in nam, a drop two."""
AROUND = 64
"""Overhead of each packet in a capture."""
EVENT = 150
"""Usual length of a packet event in a qlog; a packet has two of them."""
CHANGE = 100
"""Usual length of a gauge event in a qlog."""
ROW = 36
"""A row of the packet table: four numbers of eight bytes, and indices."""
WORTH_SAYING = 100e6
"""The estimated size is printed if it exceeds this."""


@dataclass(frozen=True)
class Counts:
    """Traffic of a run.

    Attributes:
        links: name, hops, bytes and drops of each direction of a link.
        packets: packets sent by endpoints and routers.
        changes: number of gauge changes in protocols.
    """

    links: list[tuple[str, int, int, int]]
    packets: int
    changes: int

    def takes(
        self, to: str, links: Collection[str] | None = None, snaplen: int | None = None
    ) -> float:
        """The number of bytes needed to write the run as ``to``.

        A capture can be limited to these links, and to this many bytes per packet.
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
    """The traffic of these runs."""
    found: dict[int, Counts] = {}

    def on_end(i: int, counted: tuple[list[tuple[str, int, int, int]], int, int]) -> None:
        found[i] = Counts(*counted)

    with Bar(f"{plan.title}: counting packets") as bar:
        engine.each(plan.count, runs, jobs=jobs, on_end=on_end, on_progress=bar.on_progress)
    return [found[i] for i in runs]


def check(need: float, what: str, target: Path, instead: str = "choose another --out") -> None:
    """Print the size of a large output; raise an error if the disk cannot hold it.

    ``target`` need not exist; ``instead`` is the advice if there is no space.

    Raises:
        StoreError: if it would take more than nine tenths of the free space.
    """
    place = file_access.real(target)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if need > 0.9 * free:
        raise StoreError(
            errno.ENOSPC,
            f"{what} takes about {file_access.size(need)} and {file_access.size(free)} are free; "
            f"{instead}",
            str(target),
        )
    if need > WORTH_SAYING:
        print(f"talkspurt: {visible(what)} takes about {file_access.size(need)}", file=sys.stderr)


def snaplen(record: Mapping[str, Any]) -> int | None:
    """Bytes that captures keep per packet; None for all."""
    return units.size(record["snaplen"]) if "snaplen" in record else None


def recorded(counts: Counts, record: Mapping[str, Any]) -> float:
    """The number of bytes of a run's own captures and packet table."""
    captured = record.get("pcapng")
    need = counts.takes("pcapng", captured, snaplen(record)) if captured else 0.0
    return need + (counts.takes("packets") if record.get("packets") else 0.0)
