#!/usr/bin/env python3
"""Prints the hashes that crates/app/tests/itu_g722.rs expects, from SpanDSP's G.722.

.venv/bin/python validation/codecs/g722.py

SpanDSP (LGPL-2.1; Debian: libspandsp2) passes the test vectors of ITU-T G.722 Appendix II. It is
run here, not linked.
"""

from __future__ import annotations

import ctypes

from g726 import COUNT, fnv, noise, spandsp, triangles

RATE, OPTIONS = 64_000, 0


def main() -> None:
    """Encode and decode each signal."""
    library = spandsp()
    for init in (library.g722_encode_init, library.g722_decode_init):
        init.restype = ctypes.c_void_p
        init.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    for function in (library.g722_encode, library.g722_decode):
        function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
    signals = {"noise": noise(8000), "quiet": noise(6), "loud": noise(16_000)}
    for label, pcm in (signals | {"triangles": triangles()}).items():
        samples = b"".join(x.to_bytes(2, "little", signed=True) for x in pcm)
        packed = ctypes.create_string_buffer(COUNT)
        state = library.g722_encode_init(None, RATE, OPTIONS)
        length = library.g722_encode(state, packed, samples, COUNT)
        decoded = ctypes.create_string_buffer(2 * COUNT)
        state = library.g722_decode_init(None, RATE, OPTIONS)
        count = library.g722_decode(state, decoded, packed.raw[:length], length)
        assert (length, count) == (COUNT // 2, COUNT)
        # Random codes, also those that an encoder does not send; quiet ones, because SpanDSP's
        # output wraps around where the Recommendation saturates.
        codes = bytes(64 | x & 128 | (x & 3 if x & 16 else 60 | x & 3) for x in pcm)
        sound = ctypes.create_string_buffer(4 * COUNT)
        state = library.g722_decode_init(None, RATE, OPTIONS)
        assert library.g722_decode(state, sound, codes, COUNT) == 2 * COUNT
        outputs = packed.raw[:length], decoded.raw[: 2 * COUNT], sound.raw[: 4 * COUNT]
        print(label, *(f"{fnv(output):#018x}" for output in outputs))


if __name__ == "__main__":
    main()
