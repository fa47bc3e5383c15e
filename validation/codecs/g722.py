#!/usr/bin/env python3
"""Prints the hashes that crates/app/tests/itu_g722.rs expects, from SpanDSP's G.722.

.venv/bin/python validation/codecs/g722.py

SpanDSP (LGPL-2.1; Debian: libspandsp2) passes the test vectors of ITU-T G.722 Appendix II. It is
run here, not linked.
"""

from __future__ import annotations

from g726 import COUNT, fnv, noise, spandsp, triangles

OPTIONS = 64_000, 0
"""Rate, and no further options."""


def main() -> None:
    """Encode and decode each signal."""
    signals = {"noise": noise(8000), "quiet": noise(6), "loud": noise(16_000)}
    for label, pcm in (signals | {"triangles": triangles()}).items():
        samples = b"".join(x.to_bytes(2, "little", signed=True) for x in pcm)
        packed, length = spandsp("g722_encode", samples, COUNT, COUNT, *OPTIONS)
        packed = packed[:length]
        decoded, count = spandsp("g722_decode", packed, length, 2 * COUNT, *OPTIONS)
        assert (length, count) == (COUNT // 2, COUNT)
        # Random codes, also those that an encoder does not send; quiet ones, because SpanDSP's
        # output wraps around where the Recommendation saturates.
        codes = bytes(64 | x & 128 | (x & 3 if x & 16 else 60 | x & 3) for x in pcm)
        sound, count = spandsp("g722_decode", codes, COUNT, 4 * COUNT, *OPTIONS)
        assert count == 2 * COUNT
        print(label, *(f"{fnv(output):#018x}" for output in (packed, decoded, sound)))


if __name__ == "__main__":
    main()
