"""Speech codecs of FFmpeg, through PyAV: G.723.1 at 6.3 kbit/s and AMR.

The engine calls this module when a recording is sent in one of them. PyAV is the extra ``av``,
because the FFmpeg that its wheels contain has parts under the GPL.
"""

from __future__ import annotations

from fractions import Fraction
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from talkspurt._lazy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

REMEDY = "pip install 'talkspurt[av]'"
RATE = 8000
"""Samples per second of all these codecs."""


# Of AMR, this decoder, unlike FFmpeg's own, conceals frames without data.
AMR = "libopencore_amrnb"
FORMS = {
    "G.723.1 6.3": ("g723_1", 6300),
    "AMR 12.2": (AMR, 12200),
    "AMR 10.2": (AMR, 10200),
    "AMR 7.95": (AMR, 7950),
    "AMR 7.4": (AMR, 7400),
    "AMR 6.7": (AMR, 6700),
    "AMR 5.9": (AMR, 5900),
    "AMR 5.15": (AMR, 5150),
    "AMR 4.75": (AMR, 4750),
}
"""FFmpeg's codec and bits per second, which select its mode, by the engine's name of the codec."""


def error() -> str | None:
    """Why these codecs cannot be used, with the remedy; None if they can."""
    if find_spec("av") is None:
        choice = 'set stand_in = "opus-for-av" in the source'
        return f"its encoder needs PyAV; {REMEDY}, or {choice} to hear Opus in its place"
    return None


def load() -> None:
    """Import PyAV, if it is there: in a call, the first frame would wait for it."""
    if error() is None:
        import av  # noqa: F401


class Encoder:
    """Encodes single frames with one of :data:`FORMS`."""

    def __init__(self, name: str) -> None:
        self._context = _context(name, "w")
        self._context.format = "s16"
        self._context.bit_rate = FORMS[name][1]
        self._context.time_base = Fraction(1, RATE)
        self._sent = 0

    def code(self, samples: bytes) -> bytes:
        """The frame of these samples, 16-bit little endian."""
        import av

        pcm = np.frombuffer(samples, "<i2").astype(np.int16)
        frame = av.AudioFrame.from_ndarray(pcm[None, :], "s16", "mono")
        frame.sample_rate, frame.time_base = RATE, Fraction(1, RATE)
        frame.pts, self._sent = self._sent, self._sent + len(pcm)
        return b"".join(bytes(packet) for packet in self._context.encode(frame))


class Decoder:
    """Decodes single frames of one of :data:`FORMS`."""

    def __init__(self, name: str) -> None:
        self._context = _context(name, "r")

    def code(self, frame: bytes) -> bytes:
        """The samples of this frame, 16-bit little endian; none of a frame that is corrupt."""
        import av

        if not frame:
            # To FFmpeg, that is the end of the stream.
            return b""
        try:
            decoded = self._context.decode(av.Packet(frame))
        except av.FFmpegError:
            return b""
        return b"".join(_pcm(part.to_ndarray()).astype("<i2").tobytes() for part in decoded)


def _context(name: str, mode: str) -> Any:
    import av

    create: Any = av.CodecContext.create
    context = create(FORMS[name][0], mode)
    context.sample_rate, context.layout = RATE, "mono"
    return context


def _pcm(samples: NDArray[Any]) -> NDArray[np.int16]:
    """One channel as 16-bit integers."""
    if samples.dtype != np.int16:
        samples = np.clip(np.rint(samples * 32768), -32768, 32767)
    pcm: NDArray[np.int16] = samples.ravel().astype(np.int16)
    return pcm
