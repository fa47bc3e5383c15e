"""Where something is said: levels of frames of 20 ms."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.int16]

FRAME_S = 0.02
BELOW_DB = 30.0
"""A frame this far below the loudest twentieth of all frames is a pause."""
FLOOR = 10.0
"""RMS in steps of 16 bits below which nothing is said, however quiet all else is (−70 dBov)."""


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
