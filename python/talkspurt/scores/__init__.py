"""Scores of the sound of calls: PESQ, ViSQOL and PLCMOS, of each call and of its segments.

The models are packages of their own (the extra ``talkspurt[scores]``) and are imported on first
use. The signals are first aligned through the frames table, so that a buffer delay that changes in
a pause of the speaker is not taken for a distortion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from talkspurt.scores.kinds import MODELS, Model, Segments, of_rate

if TYPE_CHECKING:
    import polars as pl

    from talkspurt.results.audio import Audio, Samples
    from talkspurt.results.run_data import RunData

__all__ = [
    "APART", "COLUMNS", "MODELS", "SEGMENT_S", "Call", "Model", "Segments", "calls", "chosen",
    "column_of", "disagreement", "document", "frame", "is_enough", "prepared", "rate", "rows",
    "said", "segments", "table", "value",
]  # fmt: skip

SEGMENT_S = 8.0
"""Length of a segment: the models were made with clips of about this length."""
REST_S = SEGMENT_S / 2
"""A shorter rest is part of the segment before it."""
MOST = 3
"""Segments of a call that are judged unless all are asked for: a model takes up to half a second
for each."""
MIN_DURATION_S = 1.0
"""Shorter clips are not scored, nor those in which less is said."""
APART = 0.7
"""Scores that differ by more are reported as contradictory."""
COLUMNS = ("pesq_nb", "pesq_wb", "visqol", "plcmos")
BOTTOM = 1.0
"""The score of a segment of which nothing was heard: the lower end of the scale."""
SILENCE = "nothing is said in the reference"
UNHEARD = "nothing was heard: the lower end of the scale, not the model's output"


def rate(audio: Audio, heard: Samples | None = None) -> dict[str, Any]:
    """The scores of a clip whose signals are aligned: a value for each of ``COLUMNS``, and why not.

    ``reason`` says why there is no score, or how it was obtained if not from the models. A clip is
    judged as one piece; the models were made for about 8 s.

    Args:
        audio: the signals.
        heard: the received signal before it was aligned, for the model without a reference.

    Raises:
        talkspurt.errors.MissingExtraError: if the models are not installed.
    """
    from talkspurt.scores import aligning

    mono = audio.mono()
    fit = of_rate(mono.rate)
    scores: dict[str, Any] = {**dict.fromkeys(COLUMNS), "reason": None}
    if mono.duration_s < MIN_DURATION_S:
        return {**scores, "reason": f"shorter than {MIN_DURATION_S:g} s"}
    active_s = aligning.active_s(mono.sent, mono.rate)
    if active_s < MIN_DURATION_S:
        reason = SILENCE if active_s == 0 else f"less than {MIN_DURATION_S:g} s of speech"
        return {**scores, "reason": reason}
    length = min(len(mono.sent), len(mono.received))
    sent, received = mono.sent[:length], mono.received[:length]
    if not aligning.is_heard(received if heard is None else heard):
        return {**scores, **dict.fromkeys(fit.values(), BOTTOM), "reason": UNHEARD}
    from talkspurt.scores import models

    reasons = []
    for name, column in fit.items():
        try:
            played = heard if heard is not None and not MODELS[name].compares else received
            scores[column] = models.score(name, sent, played, mono.rate)
        except ValueError as error:
            reasons.append(f"{MODELS[name].label}: {error}")
    return {**scores, "reason": "; ".join(reasons) or None}


@dataclass(frozen=True)
class Call:
    """What the models are given of a call.

    Attributes:
        start_s: when its first sample was captured, in the time of the run; None if nothing counts.
        duration_s: the length of what counts.
        pieces: the segments to be judged, and those in which too little is said: the start of each
            row, its signals, and the received one before it was aligned.
        speaking: segments in which enough is said to be judged.
    """

    flow: str
    start_s: float | None
    duration_s: float
    pieces: Sequence[tuple[dict[str, Any], Audio, Samples]]
    judged: int
    speaking: int


def table(result: RunData, wanted: Segments = "three") -> pl.DataFrame:
    """The scores of every call with a recording: one row for the call, and one per segment.

    Columns: ``flow``; ``segment`` (from 0; null for the call); ``start_s`` (when its first sample
    was captured, in the time of the run) and ``duration_s``; ``judged_segments`` of the
    ``speech_segments``, those of the call in which enough is said; ``pesq_nb`` or ``pesq_wb``,
    whichever fits the sample rate; ``visqol``; ``plcmos``; ``reason``, why a score is missing. The
    score of a call is the mean over the segments that were judged. Only speech in the measurement
    window is judged, and at the end of a run only frames whose playout was still due in it.

    Raises:
        talkspurt.errors.MissingExtraError: if the models are not installed.
    """
    from talkspurt.scores import models

    models.check()
    return frame(row for flow in result.heard for row in rows(prepared(result, flow, wanted)))


def frame(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """The table of these rows."""
    import polars as pl

    kinds: dict[str, Any] = {"flow": pl.String(), "segment": pl.Int64()}
    kinds |= dict.fromkeys(("start_s", "duration_s"), pl.Float64())
    kinds |= dict.fromkeys(("judged_segments", "speech_segments"), pl.Int64())
    kinds |= dict.fromkeys(COLUMNS, pl.Float64())
    return pl.DataFrame([*rows], schema={**kinds, "reason": pl.String()})


def prepared(result: RunData, flow: str, wanted: Segments = "three") -> Call:
    """The signals of a call, aligned, and of these the segments to be judged."""
    from talkspurt.results.audio import Audio
    from talkspurt.scores import aligning

    call = aligning.aligned(result, flow)
    if call is None:
        return Call(flow, None, 0.0, (), 0, 0)
    places = segments(len(call.sent), call.rate)
    speaking = [
        number
        for number, (start, end) in enumerate(places)
        if aligning.active_s(call.sent[start:end], call.rate) >= MIN_DURATION_S
    ]
    left_out = {*speaking} - {*(judged := chosen(speaking, wanted))}
    pieces = []
    for number, (start, end) in enumerate(places):
        if number in left_out:
            continue
        sent, received = (side[start:end].tobytes() for side in (call.sent, call.received))
        start_s, duration_s = call.start_s + start / call.rate, (end - start) / call.rate
        told = {"flow": flow, "segment": number, "start_s": start_s, "duration_s": duration_s}
        pieces.append((told, Audio(flow, sent, received, call.rate), call.heard(start, end)))
    duration_s = len(call.sent) / call.rate
    return Call(flow, call.start_s, duration_s, pieces, len(judged), len(speaking))


def chosen(speaking: Sequence[int], wanted: Segments) -> Sequence[int]:
    """The segments to be judged of those in which enough is said: the middles of equal parts."""
    count = len(speaking)
    if wanted == "all" or count <= MOST:
        return speaking
    return [speaking[(2 * part + 1) * count // (2 * MOST)] for part in range(MOST)]


def rows(call: Call, on_part: Callable[[float], None] = lambda _: None) -> list[dict[str, Any]]:
    """The rows of a call; ``on_part`` is called with the share that is done."""
    found: list[dict[str, Any]] = []
    for done, (told, audio, heard) in enumerate(call.pieces, start=1):
        found.append({**told, **rate(audio, heard)})
        on_part(done / len(call.pieces))
    whole = {
        "flow": call.flow,
        "segment": None,
        "start_s": call.start_s,
        "duration_s": call.duration_s,
        "judged_segments": call.judged,
        "speech_segments": call.speaking,
        **{column: _mean(row[column] for row in found) for column in COLUMNS},
        "reason": None,
    }
    if all(whole[column] is None for column in COLUMNS):
        reasons = dict.fromkeys(row["reason"] for row in found if row["reason"])
        whole["reason"] = "; ".join(reasons) or "no speech in the measurement window"
    return [whole, *found]


def is_enough(result: RunData, wanted: Segments) -> bool:
    """Whether a result has scores of as many segments."""
    if not result.is_scored:
        return False
    return wanted != "all" or all(
        row["judged_segments"] == row["speech_segments"] for row in calls(result).values()
    )


def segments(length: int, rate: int) -> list[tuple[int, int]]:
    """First and last sample of the segments of a call: a short rest is part of the last one."""
    step = round(SEGMENT_S * rate)
    count = max(1, (length + step - round(REST_S * rate)) // step)
    ends = [*(step * (number + 1) for number in range(count - 1)), length]
    return [(step * number, end) for number, end in enumerate(ends)] if length else []


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if there else None


def calls(result: RunData) -> dict[str, dict[str, Any]]:
    """The rows of whole calls, by flow."""
    import polars as pl

    whole = result.scores.filter(pl.col("segment").is_null())
    return {row["flow"]: row for row in whole.iter_rows(named=True)}


def document(result: RunData) -> dict[str, Any]:
    """The scores in JSON: by flow, the call's and those of its segments."""
    found: dict[str, Any] = {}
    for row in result.scores.iter_rows(named=True):
        flow = row.pop("flow")
        if row["segment"] is None:
            del row["segment"]
            by_model = {model: value(row, model) for model in MODELS}
            found[flow] = {**row, "disagreement": disagreement(by_model), "segments": []}
        else:
            del row["judged_segments"], row["speech_segments"]
            found[flow]["segments"].append(row)
    return found


def value(row: Mapping[str, Any], model: str) -> float | None:
    """A model's score in a row; PESQ's is of the band that fits."""
    return next((row[c] for c in MODELS[model].columns if row[c] is not None), None)


def column_of(row: Mapping[str, Any], model: str) -> str:
    """The column with a model's score in a row; the first one if there is none."""
    columns = MODELS[model].columns
    return next((c for c in columns if row[c] is not None), columns[0])


def disagreement(scores: Mapping[str, float | None]) -> str | None:
    """What two models say if they differ by more than ``APART``; ``scores`` by model."""
    there = sorted((score, name) for name, score in scores.items() if score is not None)
    # Rounded, so that 3.7 and 3.0 do not differ by more than 0.7.
    if len(there) < 2 or round(there[-1][0] - there[0][0], 6) <= APART:
        return None
    (low, worse), (high, better) = there[0], there[-1]
    return f"{MODELS[better].label} says {high:.2f} and {MODELS[worse].label} {low:.2f}"


def said(results: Sequence[RunData]) -> list[str]:
    """Why calls have no score, each reason once."""
    reasons: dict[str, list[str]] = {}
    for result in results:
        for flow, row in calls(result).items():
            if row["reason"]:
                flows = reasons.setdefault(row["reason"], [])
                flows += [flow] if flow not in flows else []
    return [f"{', '.join(flows)}: no score: {why}" for why, flows in reasons.items()]
