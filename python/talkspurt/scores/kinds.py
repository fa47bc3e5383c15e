"""What the models of sound are: names, meaning, what they miss, sources. Imports none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Segments = Literal["three", "all"]
"""How many segments of a call are judged: at most three, or all."""


@dataclass(frozen=True)
class Model:
    """One model.

    Attributes:
        columns: its columns; the first with a value is its score.
        compares: whether it is given the sent signal, too.
    """

    name: str
    label: str
    columns: tuple[str, ...]
    meaning: str
    misses: str
    source: str
    compares: bool = True


MODELS: dict[str, Model] = {
    one.name: one
    for one in (
        Model(
            "pesq",
            "PESQ",
            ("pesq_wb", "pesq_nb"),
            "compares the received with the sent speech as the ear resolves them: loudness over "
            "time and pitch, added and missing parts weighted differently.",
            "It knows neither delay nor echo, and was made before codecs such as Opus and before "
            "concealment that changes the speed of speech.",
            "ITU-T P.862 with P.862.1 (narrowband, 8 kHz) or P.862.2 (wideband, 16 kHz); package "
            "pesq",
        ),
        Model(
            "visqol",
            "ViSQOL",
            ("visqol",),
            "compares spectrograms of the sent and the received speech, patch by patch, and looks "
            "for each patch where it fits best.",
            "It knows neither delay nor echo, sees little of a short gap in a long clip, and even "
            "an unchanged clip gets less than 5.",
            "Chinen et al. 2020, speech mode at 16 kHz with the lattice mapping; package "
            "visqol-python",
        ),
        Model(
            "plcmos",
            "PLCMOS",
            ("plcmos",),
            "estimates from the received speech alone how listeners rate its concealed losses.",
            "It does not know what was said: words that are missing without a trace cost nothing, "
            "and voice, microphone and noise of the reference count as well.",
            "Diener et al. 2023, version 2, 16 kHz; package speechmos",
            compares=False,
        ),
    )
}

WIDEBAND_HZ = 16_000


def of_rate(rate: int) -> dict[str, str]:
    """The column of each model for signals of this sample rate."""
    pesq = "pesq_nb" if rate < WIDEBAND_HZ else "pesq_wb"
    return {"pesq": pesq, "visqol": "visqol", "plcmos": "plcmos"}
