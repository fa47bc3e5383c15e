"""Speech through G.729 Annex A with lost packets, by bcg729 (Debian's package libbcg729-0).

bcg729 is under the GPL: this program loads it in a process of its own, and nothing of it is in
talkspurt. Samples at 8 kHz, 16-bit little endian, come on standard input and leave on standard
output; the argument has the numbers of the packets of 20 ms that are lost.

    python g729a.py 12,13,40 < sent.raw > heard.raw

"""

from __future__ import annotations

import ctypes
import sys

LIBRARY = "libbcg729.so.0"
FRAME = 80
"""Samples of a frame of 10 ms; a packet has two."""


def main() -> None:
    """Encode, lose and decode."""
    lost = {int(one) for one in sys.argv[1].split(",") if one}
    pcm = sys.stdin.buffer.read()
    lib = ctypes.CDLL(LIBRARY)
    lib.initBcg729EncoderChannel.restype = ctypes.c_void_p
    lib.initBcg729DecoderChannel.restype = ctypes.c_void_p
    encoder = ctypes.c_void_p(lib.initBcg729EncoderChannel(ctypes.c_uint8(0)))
    decoder = ctypes.c_void_p(lib.initBcg729DecoderChannel())
    out = bytearray()
    for number in range(len(pcm) // (2 * FRAME)):
        sent = (ctypes.c_int16 * FRAME).from_buffer_copy(pcm, number * 2 * FRAME)
        bits, length = (ctypes.c_uint8 * 10)(), ctypes.c_uint8(0)
        lib.bcg729Encoder(encoder, sent, bits, ctypes.byref(length))
        heard = (ctypes.c_int16 * FRAME)()
        erased = ctypes.c_uint8(number // 2 in lost)
        zero = ctypes.c_uint8(0)
        lib.bcg729Decoder(decoder, bits, length, erased, zero, zero, heard)
        out += bytes(heard)
    sys.stdout.buffer.write(out)


if __name__ == "__main__":
    main()
