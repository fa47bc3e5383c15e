"""The reference and the degraded recording of a speech flow.

Both are 16-bit at the codec's rate. With fixed playout they are equally long, for direct
comparison.
"""

from __future__ import annotations

import base64
import io
import math
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from talkspurt._lazy import wave

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Samples = npt.NDArray[np.int16]


@dataclass(frozen=True)
class Audio:
    """The recordings of one speech flow.

    Attributes:
        name: the flow.
        sent_pcm: reference signal: 16-bit samples, little endian.
        received_pcm: degraded signal; with fixed playout as long as the reference.
        rate: samples per second and channel.
        channels: 1, or 2 with their samples interleaved.
        start_s: when the first sample of the reference was captured, in the time of the run; None
            in results of earlier versions.
    """

    name: str
    sent_pcm: bytes = field(repr=False)
    received_pcm: bytes = field(repr=False)
    rate: int
    channels: int = field(default=1, repr=False)
    start_s: float | None = field(default=None, repr=False)

    @cached_property
    def sent(self) -> Samples:
        """The reference signal: int16, of shape (samples,), or (samples, 2) in stereo."""
        return self._array(self.sent_pcm)

    @cached_property
    def received(self) -> Samples:
        """The degraded signal, as ``sent``."""
        return self._array(self.received_pcm)

    def _array(self, pcm: bytes) -> Samples:
        import numpy as np

        samples = np.frombuffer(pcm, dtype="<i2")
        return samples if self.channels == 1 else samples.reshape(-1, self.channels)

    def mono(self) -> Audio:
        """The mean of the channels."""
        if self.channels == 1:
            return self
        sent, received = (
            side.mean(axis=1).round().astype("<i2").tobytes() for side in (self.sent, self.received)
        )
        return Audio(self.name, sent, received, self.rate, start_s=self.start_s)

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return len(self.sent_pcm) / 2 / self.channels / self.rate

    def sent_wav(self) -> bytes:
        """The reference signal, as the bytes of a WAV file."""
        return wav(self.sent_pcm, self.rate, self.channels)

    def received_wav(self) -> bytes:
        """The degraded signal, as the bytes of a WAV file."""
        return wav(self.received_pcm, self.rate, self.channels)

    def save(self, directory: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write ``NAME.sent.wav`` and ``NAME.received.wav``; returns their paths."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        sent, received = (folder / f"{self.name}.{side}.wav" for side in ("sent", "received"))
        sent.write_bytes(self.sent_wav())
        received.write_bytes(self.received_wav())
        return sent, received

    def _repr_html_(self) -> str:
        """Two players, for notebooks."""
        players = "".join(
            f'<figure style="margin:0 1em 0 0;display:inline-block"><figcaption>{word}</figcaption>'
            f'<audio controls src="{data_url(data)}"></audio></figure>'
            for word, data in (("sent", self.sent_wav()), ("received", self.received_wav()))
        )
        return f"<div>{players}</div>"


def wav(pcm: bytes, rate: int, channels: int = 1) -> bytes:
    """A 16-bit WAV file with these samples."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(pcm)
    return file.getvalue()


def read_wav(file: Path, longest_s: float = math.inf) -> tuple[bytes, int, int]:
    """Samples, rate and channels of a file written by :func:`wav`."""
    with wave.open(str(file), "rb") as source:
        count, rate, channels = source.getnframes(), source.getframerate(), source.getnchannels()
        if channels not in (1, 2) or source.getsampwidth() != 2 or not 8000 <= rate <= 48000:
            raise ValueError("it has not 16 bits, one or two channels, and 8 to 48 kHz")
        if count > longest_s * rate:
            raise ValueError("it is longer than the run")
        frames = source.readframes(count)
    if len(frames) != 2 * channels * count:
        raise ValueError("it ends before its last sample")
    return frames, rate, channels


def data_url(wav_bytes: bytes) -> str:
    """A WAV file as a ``data:`` URL."""
    return "data:audio/wav;base64," + base64.b64encode(wav_bytes).decode("ascii")
