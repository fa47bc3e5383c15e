"""The scores of a run or a study as rows of a table and sentences, for terminal and report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from talkspurt import intervals, scores
from talkspurt.metrics.catalogue import column
from talkspurt.results.groups import condensed
from talkspurt.results.run_data import RunData
from talkspurt.results.study_data import StudyData
from talkspurt.scores.kinds import MODELS

Texts = tuple[str, str]
"""A mean, and its interval or an empty text."""
BANDS = {"pesq_nb": "narrowband", "pesq_wb": "wideband"}


@dataclass(frozen=True)
class Row:
    """The scores of one call, or of one flow under one setting of a study.

    Attributes:
        name: its name, with the number of flows of a group.
        flow: the flow whose style represents it.
        texts: the mean of each model as text, with its interval, or the band if calls differ.
    """

    settings: tuple[str, ...]
    name: str
    flow: str
    scores: Mapping[str, float | None]
    texts: Sequence[Texts]

    @property
    def title(self) -> str:
        """Settings and name in one text."""
        return ", ".join((*self.settings, self.name))


def of_result(result: RunData) -> list[Row]:
    """The calls with scores, the flows of a large group as one."""
    whole = scores.calls(result)
    groups = result.flows["group"].to_list() if "group" in result.flows.columns else None
    rows = []
    for place, name in enumerate(result.flows["name"]):
        if name in whole:
            found = {model: scores.value(whole[name], model) for model in MODELS}
            band = BANDS[scores.column_of(whole[name], "pesq")] if found["pesq"] else None
            group = groups[place] if groups else None
            rows.append({"name": name, "group": group, "band": band, **found})
    mixed = len({row["band"] for row in rows} - {None}) > 1
    return [
        Row(
            settings=(),
            name=row["name"],
            flow=row["first"],
            scores={model: row[model] for model in MODELS},
            texts=[
                (column(m).show(row[m]), row["band"] or "" if mixed and m == "pesq" else "")
                for m in MODELS
            ],
        )
        for row in condensed(rows)
    ]


def of_study(study: StudyData) -> list[Row]:
    """The flows with scores under each setting."""
    heard = {flow for run in study.runs for flow in run.scores["flow"]}
    groups = {
        row.get("group") or row["name"]
        for row in study.flows.iter_rows(named=True)
        if row["name"] in heard
    }
    axes = [axis.column for axis in study.axes]
    found: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for row in study.rows(study.summary(MODELS)):
        if row["flow"] in groups:
            key = (*(row[axis] for axis in axes), row["flow"])
            found.setdefault(key, {})[row["measure"]] = row
    return [
        Row(
            settings=key[:-1],
            name=intervals.flow(cells["pesq"]),
            flow=key[-1],
            scores={model: cells[model]["mean"] for model in MODELS},
            texts=[intervals.texts(cells[model]) for model in MODELS],
        )
        for key, cells in found.items()
    ]


def judged(results: Iterable[RunData]) -> str:
    """How many segments were judged, of how many, and how to judge the others."""
    found = [row for run in results for row in scores.calls(run).values()]
    counts = {(row["judged_segments"], row["speech_segments"]) for row in found}
    there, every = (
        sum(row[f"{which}_segments"] for row in found) for which in ("judged", "speech")
    )
    whose = "" if len(found) < 2 else " of all calls"
    if len(counts) == 1:
        ((there, every),) = counts
        whose = "" if len(found) < 2 else " of each call"
    less = "; --scores=all judges all" if there < every else ""
    return f"Judged: {there} of {every} segments of {scores.SEGMENT_S:g} s{whose}{less}."


def bands(results: Iterable[RunData]) -> str:
    """The bands in which PESQ was computed."""
    there = {
        scores.column_of(row, "pesq") for run in results for row in scores.calls(run).values()
        if scores.value(row, "pesq") is not None
    }  # fmt: skip
    return " or ".join(words for name, words in BANDS.items() if name in there)


def apart(rows: Sequence[Row]) -> list[str]:
    """Whether scores contradict each other, and where most."""
    found = [row for row in rows if scores.disagreement(row.scores)]
    if not found:
        return []
    worst = max(found, key=lambda row: _spread(row.scores.values()))
    said = f"{worst.title}: {scores.disagreement(worst.scores)}."
    if len(found) == 1:
        return [f"{said} They differ by more than {scores.APART:g}: quote neither alone."]
    return [
        f"In {len(found)} of {len(rows)} rows, scores differ by more than {scores.APART:g}: quote "
        f"none of them alone. Most in {said}"
    ]


def _spread(values: Iterable[float | None]) -> float:
    there = [value for value in values if value is not None]
    return max(there) - min(there) if there else -math.inf


def meanings(results: Iterable[RunData]) -> list[str]:
    """What each model measures, and what it misses."""
    band = bands(results)
    names = {"pesq": f"PESQ ({band})" if band else "PESQ"}
    return [f"{names.get(m.name, m.label)} {m.meaning} {m.misses}" for m in MODELS.values()]


ABOUT = (
    "Scores of the sound, 1 to 5, by models of listeners; no listener took part. None of them "
    "knows the delay."
)
