#!/usr/bin/env python3
"""Prints the hashes that crates/app/tests/itu_g726.rs expects, from SpanDSP's G.726.

.venv/bin/python validation/codecs/g726.py

SpanDSP (LGPL-2.1; Debian: libspandsp2) passes the test vectors of ITU-T G.726 Appendix II. It is
run here, not linked. FFmpeg's and libsndfile's G.726 are not bit exact: the first rounds the mean
of the scale factors differently, the second leaves out a rounding constant of the predictor.
"""

from __future__ import annotations

import ctypes
import ctypes.util

LINEAR, LEAST_FIRST = 0, 2
COUNT = 32_000


def fnv(data: bytes) -> int:
    """FNV-1a, 64 bits."""
    found = 0xCBF29CE484222325
    for byte in data:
        found = (found ^ byte) * 0x100000001B3 % 2**64
    return found


def noise(amplitude: int) -> list[int]:
    """Uniform noise of a linear congruential generator (Knuth's MMIX)."""
    state, found = 1, []
    for _ in range(COUNT):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        found.append((state >> 33) % (2 * amplitude) - amplitude)
    return found


def triangles() -> list[int]:
    """Two triangle waves that take turns every 0.1 s, with silences."""
    found = []
    for t in range(COUNT):
        period = (16, 37, 0)[t // 800 % 3]
        found.append(abs(t % period * 2 - period) * 20_000 // period - 10_000 if period else 0)
    return found


def spandsp(step: str, data: bytes, length: int, size: int, *options: int) -> tuple[bytes, int]:
    """SpanDSP's output of at most so many bytes, and what it counts.

    The step is one such as ``g722_encode``; the options are those of the state's constructor.
    """
    name = ctypes.util.find_library("spandsp")
    if name is None:
        raise SystemExit("libspandsp is not installed")
    library = ctypes.CDLL(name)
    # G.726 has one constructor for both directions.
    init = library[f"{step}_init" if step.startswith("g722") else "g726_init"]
    init.restype, init.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *[ctypes.c_int] * len(options)]
    function, out = library[step], ctypes.create_string_buffer(size)
    function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
    count = function(init(None, *options), out, data, length)
    return out.raw, count


def main() -> None:
    """Encode and decode each signal at each rate."""
    for bits in (5, 4, 3, 2):
        for label, pcm in (("noise", noise(8000)), ("quiet", noise(6)), ("triangles", triangles())):
            samples = b"".join(x.to_bytes(2, "little", signed=True) for x in pcm)
            options = bits * 8000, LINEAR, LEAST_FIRST
            packed, length = spandsp("g726_encode", samples, COUNT, COUNT, *options)
            packed = packed[:length]
            decoded, count = spandsp("g726_decode", packed, length, 2 * COUNT, *options)
            assert (length, count) == (COUNT * bits // 8, COUNT)
            print(f"{bits * 8} {label}: {fnv(packed):#018x} {fnv(decoded):#018x}")


if __name__ == "__main__":
    main()
