"""Scores of the sound of calls as metrics of flows: they are computed by models on request."""

from __future__ import annotations

from talkspurt.metrics.catalogue.kinds import Column, Shown
from talkspurt.scores.kinds import MODELS

_FORMULA = "mean over the segments of about 8 s of the aligned recording"

SOUND: tuple[Column, ...] = tuple(
    Column(
        name=one.name,
        table="scores",
        label=one.label,
        unit="1",
        shown_unit="",
        scale=1.0,
        digits=2,
        meaning=f"{one.meaning[0].upper()}{one.meaning[1:]} {one.misses}",
        formula=_FORMULA,
        source=one.source,
        better="higher",
        least=1.0,
        most=5.0,
        shown=(Shown("study_sound", place),),
    )
    for place, one in enumerate(MODELS.values())
)
"""One for each model; the table has PESQ's in two columns, of which a call has one."""
