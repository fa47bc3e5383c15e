"""The recordings of a page in little space, without loss.

Most of what several transports deliver is equal, sample by sample. A recording is a list of blocks
of 20 ms at 8 kHz; a block that occurs several times is stored once, and the blocks are compressed
with zlib, which browsers can decompress. A minute of a call needs about 60 kB instead of 1.3 MB.
"""

from __future__ import annotations

import base64
import sys
import zlib
from array import array
from itertools import chain, pairwise
from typing import Any

BLOCK = 160
"""Samples of a block."""
MAX_BYTES = 10_000_000
"""Maximum size of the sound and the animation of a page."""

LEVEL = 3
"""Compresses sound as much as the default, 6, in two thirds of the time."""


class Recordings:
    """The recordings of a page, each once, until it is full with its other large content."""

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self._blocks: dict[bytes, int] = {}
        self._lists: list[tuple[int, int, list[int]]] = []
        self._known: dict[tuple[int, tuple[int, ...], int], int] = {}
        self._packed = bytearray()
        self._packer = zlib.compressobj(LEVEL)

    def add(self, rate: int, *recordings: bytes) -> list[int] | None:
        """Numbers of recordings of 16-bit samples; None if the page has no space for them."""
        fresh: dict[bytes, int] = {}
        lists = []
        for pcm in recordings:
            parts = (pcm[at : at + 2 * BLOCK] for at in range(0, len(pcm), 2 * BLOCK))
            padded = [part.ljust(2 * BLOCK, b"\0") for part in parts]
            for part in padded:
                if part not in self._blocks:
                    fresh.setdefault(part, len(self._blocks) + len(fresh))
            lists.append([self._blocks[p] if p in self._blocks else fresh[p] for p in padded])
        packer = self._packer.copy()
        packed = packer.compress(b"".join(fresh)) + packer.flush(zlib.Z_SYNC_FLUSH)
        more = len(packed) * 4 // 3 + sum(map(len, lists))
        if self.size + more > MAX_BYTES:
            return None
        self._blocks |= fresh
        self._packed += packed
        self._packer = packer
        self.size += more
        return [
            self._number(rate, len(pcm) // 2, blocks)
            for pcm, blocks in zip(recordings, lists, strict=True)
        ]

    def _number(self, rate: int, length: int, blocks: list[int]) -> int:
        key = (rate, tuple(blocks), length)
        if key not in self._known:
            self._known[key] = len(self._lists)
            self._lists.append((rate, length, blocks))
        return self._known[key]

    def data(self) -> dict[str, Any]:
        """The recordings for the script.

        ``pool`` holds the blocks; ``steps`` the block numbers of all recordings as differences of
        neighbours (32 bits, little endian). Both are compressed with zlib and in base64.
        """
        blocks = chain([0], *(blocks for *_, blocks in self._lists))
        steps = array("i", (block - before for before, block in pairwise(blocks)))
        if sys.byteorder == "big":
            steps.byteswap()
        return {
            "block": BLOCK,
            "pool": _text(bytes(self._packed) + self._packer.copy().flush()),
            "steps": _text(zlib.compress(steps.tobytes())),
            "recordings": [{"rate": rate, "samples": length} for rate, length, _ in self._lists],
        }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
