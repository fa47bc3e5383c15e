"""Aligns the received with the sent speech of a call, through the times of its frames.

With adaptive playout, the delay of the buffer changes during a call. The frames table has the
instants at which each frame was captured and played, and thus its place in the received sound. A
change of delay is undone in the next pause of the speaker, where it cannot be heard: sound is
removed there, or silence inserted, for the speech after it to be at its place again. Within speech
nothing is changed: stretched and interrupted speech is heard, and belongs to the score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from talkspurt.metrics.opinion import HEARD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from talkspurt.results.run_data import RunData

    Samples = npt.NDArray[np.int16]
    Places = npt.NDArray[np.float64]

FRAME_S = 0.02
BELOW_DB = 30.0
"""A frame this far below the loudest twentieth of all frames is a pause."""
FLOOR = 10.0
"""RMS in steps of 16 bits below which nothing is said, however quiet all else is (−70 dBov)."""
FADE_S = 0.005
"""Overlap where sound is removed."""
PAUSE_S = 0.2
"""Shorter pauses are not changed: PESQ takes the speech around them for one utterance (P.862 joins
what is less than 200 ms apart), which has one delay."""
NEAR_S = 0.02
"""The sound after a pause is looked for this far around the place that the frames give it."""
WORD_S = 0.3
"""The length of the sound that is looked for."""
GUARD_S = 0.02
"""Of a pause, this much is never removed."""


@dataclass(frozen=True)
class Aligned:
    """A call's signals, sample by sample beside each other.

    Attributes:
        rate: samples per second.
        start_s: when the first sample was captured, in the time of the run.
        played: the received sound as it was played, nothing undone.
        places: place in ``played`` of each frame of 20 ms of the reference.
    """

    sent: Samples
    received: Samples
    rate: int
    start_s: float
    played: Samples
    places: npt.NDArray[np.int64]

    def heard(self, start: int, end: int) -> Samples:
        """What was played in place of these samples of the reference."""
        step = round(FRAME_S * self.rate)

        def place(at: int) -> int:
            nearest = min(at // step, len(self.places) - 1)
            return int(self.places[nearest]) + at - nearest * step

        return _read(self.played, place(start), max(place(start), place(end)))


def aligned(result: RunData, flow: str) -> Aligned | None:
    """The judged part of a call: captured in the measurement window, and decided in the run.

    None if there is no such part.
    """
    audio = result.audio(flow).mono()
    frames = result.frames(flow).sort("index")
    scenario = result.resolved
    name, _, back = flow.rpartition(".") if flow.endswith(".reverse") else (flow, "", "")
    told = scenario["flows"][name]
    judged = _judged(frames, result.duration_s, scenario.get("measure", {}))
    if not len(judged):
        return None
    frame_s = float(told["reverse" if back else "source"]["packet"])
    # `captured_s` is the instant of a frame's first sample.
    captured = frames["captured_s"].to_numpy()
    start_s = float(captured[0]) if audio.start_s is None else audio.start_s
    begins = captured - start_s
    moved = offsets(frames) if told["playout"]["kind"] == "adaptive" else np.zeros(len(begins))
    received = audio.received
    if moved.any():
        received = undone(audio.sent, received, audio.rate, begins, moved)
    first = round(float(begins[judged[0]]) * audio.rate)
    last = len(audio.sent)
    if judged[-1] < len(begins) - 1:
        last = min(last, round((float(begins[judged[-1]]) + frame_s) * audio.rate))
    grid = np.arange(first, max(last, first + 1), round(FRAME_S * audio.rate))
    nearest = np.searchsorted(begins, grid / audio.rate + 1e-6, side="right") - 1
    # Rounding to samples may put the first place before the first frame.
    nearest = np.maximum(nearest, 0)
    return Aligned(
        sent=audio.sent[first:last],
        received=_read(received, first, last),
        rate=audio.rate,
        start_s=start_s + first / audio.rate,
        played=audio.received,
        places=np.rint(grid + moved[nearest] * audio.rate).astype(np.int64),
    )


def _judged(
    frames: pl.DataFrame, duration_s: float, measure: Mapping[str, float]
) -> npt.NDArray[np.int64]:
    """Places of the frames that count, as for the E-model."""
    delays = (frames["playout_s"] - frames["captured_s"]).filter(frames["fate"].is_in(HEARD))
    latest = delays.max()
    longest = latest if isinstance(latest, float) else 0.0
    decided = pl.col("fate").is_in([*HEARD, "late", "discarded"]).fill_null(value=False)
    due = pl.col("captured_s") + longest < duration_s - 1e-9
    from_s, to_s = measure.get("from") or 0.0, measure.get("to") or duration_s
    inside = (pl.col("captured_s") >= from_s) & (pl.col("captured_s") < to_s)
    found: npt.NDArray[np.int64] = (
        frames.select(((decided | due) & inside).alias("judged"))["judged"].arg_true().to_numpy()
    )
    return found


def offsets(frames: pl.DataFrame) -> Places:
    """How much later each frame is played than if the delay of the first never changed, seconds.

    Frames that were not played are where the one before them leads; 0 if none was played.
    """
    played = pl.when(pl.col("fate").is_in(HEARD)).then(pl.col("playout_s") - pl.col("captured_s"))
    delay = frames.select(played.alias("delay"))["delay"].forward_fill().backward_fill()
    moved: Places = (delay.fill_null(0.0) - (delay[0] or 0.0)).to_numpy()
    return moved


def undone(sent: Samples, received: Samples, rate: int, begins: Places, moved: Places) -> Samples:
    """The received sound with every change of delay undone in the next pause of the speaker.

    Frames begin at ``begins`` seconds of the reference, and are played ``moved`` seconds later.
    """
    parts: list[Samples] = []
    shift = 0
    """By how much more than the samples so far has been read of the received sound."""
    done = 0
    for first, last in _pauses(sent, rate):
        parts.append(_read(received, done + shift, first + shift))
        # The delay of the first frame that begins in the speech after the pause.
        after = min(int(np.searchsorted(begins, last / rate - 1e-6)), len(moved) - 1)
        wanted = round(float(moved[after]) * rate)
        wanted += _residue(sent[last:], _read(received, last + wanted, len(received)), rate)
        length = last - first
        grown = min(wanted - shift, length - round(GUARD_S * rate))
        grown = max(grown, -length, -shift - first)
        pause = _read(received, first + shift, last + shift + grown)
        parts.append(_resized(pause, length, rate))
        shift += grown
        done = last
    parts.append(_read(received, done + shift, len(sent) + shift))
    return np.concatenate(parts)


def _residue(sent: Samples, received: Samples, rate: int) -> int:
    """By how many samples the beginning of the received sound is late, at most ``NEAR_S``.

    Time scaling reaches the intended length within some milliseconds, and codecs have a delay.
    """
    near, length = round(NEAR_S * rate), round(WORD_S * rate)
    word = sent[:length].astype(np.float64)
    if len(word) < length or not word.any():
        return 0
    place = np.concatenate([np.zeros(near), received[: length + near].astype(np.float64)])
    if len(place) < length + 2 * near or not place.any():
        return 0
    # `np.correlate` takes tens of milliseconds, on all cores. The sums are whole numbers.
    sums = np.fft.irfft(np.fft.rfft(place) * np.fft.rfft(word, len(place)).conj(), len(place))
    return int(np.argmax(np.rint(sums[: len(place) - length + 1]))) - near


def _pauses(sent: Samples, rate: int) -> Sequence[tuple[int, int]]:
    """First and last sample of the speaker's pauses that are long enough to change."""
    silent = ~is_speech(sent, rate)
    step = round(FRAME_S * rate)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], silent.astype(int), [0]])))
    runs = zip(edges[::2], edges[1::2], strict=True)
    least = round(PAUSE_S * rate)
    return [(a * step, b * step) for a, b in runs if (b - a) * step >= least]


def _read(samples: Samples, start: int, end: int) -> Samples:
    """Samples from ``start`` to ``end``, with silence where there are none."""
    before = np.zeros(max(0, min(end, 0) - start), dtype=np.int16)
    there = samples[max(start, 0) : max(end, 0)]
    missing = max(0, end - start) - len(before) - len(there)
    return np.concatenate([before, there, np.zeros(missing, dtype=np.int16)])


def _resized(pause: Samples, length: int, rate: int) -> Samples:
    """A pause of another length: the quietest part is removed, or silence inserted there."""
    less = len(pause) - length
    if less == 0:
        return pause
    power = np.concatenate([[0.0], np.cumsum(pause.astype(np.float64) ** 2)])
    if less < 0:
        window = min(len(pause), round(GUARD_S * rate))
        sums = power[window:] - power[: len(power) - window]
        cut = int(np.argmin(sums)) + window // 2 if window else 0
        return np.concatenate([pause[:cut], np.zeros(-less, dtype=np.int16), pause[cut:]])
    sums = power[less:] - power[: len(power) - less]
    cut = int(np.argmin(sums))
    kept = np.concatenate([pause[:cut], pause[cut + less :]])
    fade = min(round(FADE_S * rate), cut, less)
    if fade:
        # What was removed fades out while what follows fades in.
        rise = (np.arange(fade) + 0.5) / fade
        old = pause[cut - fade : cut].astype(np.float64)
        new = pause[cut + less - fade : cut + less].astype(np.float64)
        kept[cut - fade : cut] = np.rint(old * (1 - rise) + new * rise).astype(np.int16)
    return kept


def is_speech(samples: Samples, rate: int) -> npt.NDArray[np.bool_]:
    """For each frame of 20 ms, whether something is said in it."""
    step = max(1, round(FRAME_S * rate))
    count = len(samples) // step
    if count == 0:
        return np.zeros(0, dtype=bool)
    frames = samples[: count * step].astype(np.float64).reshape(count, step)
    levels = np.sqrt(np.mean(frames**2, axis=1))
    threshold = max(FLOOR, float(np.quantile(levels, 0.95)) * 10 ** (-BELOW_DB / 20))
    spoken: npt.NDArray[np.bool_] = levels > threshold
    return spoken


def active_s(samples: Samples, rate: int) -> float:
    """For how long something is said."""
    return float(is_speech(samples, rate).sum()) * FRAME_S


def is_heard(samples: Samples) -> bool:
    """Whether there is any sound."""
    return bool(len(samples)) and float(abs(samples.astype(int)).max()) > FLOOR
