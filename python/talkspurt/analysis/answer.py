"""The answer of a run or a study: sentences on what is best, by how much, and why.

The Rust core computes it from the flows tables; what is read of single runs, for the causes of
differences, it asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from talkspurt import _core
from talkspurt.analysis import recordings
from talkspurt.results.concatenation import RUN
from talkspurt.results.run_data import RunData
from talkspurt.results.study_data import StudyData

TEXTS = (
    "name", "transport", "group", "quality_limits", "quality_note", "estimate_limits", "stand_in",
)  # fmt: skip
"""Columns of the flows table with texts that an answer reads."""


OF_MODEL = ("r_factor", "mos", "mos_lost_to_delay", "mos_lost_to_loss", "mos_lost_to_codec")
"""Columns that the E-model fills."""
ESTIMATE = "estimated_mos"


@dataclass(frozen=True)
class Answer:
    """What a run or a study answers.

    Attributes:
        sentences: the sentences, differences first.
        about: what their intervals mean; empty without a sentence.
        notes: what must be known about scores and sound.
        judged_by: the measures by which all calls are judged.
        questions: what was asked, as ``crates/answer`` defines it: the options of each question
            with their means, differences from the best, and causes.
        comparisons: comparisons that hold together with the confidence of the study.
    """

    sentences: list[str]
    about: str
    notes: list[str]
    judged_by: list[str]
    questions: list[dict[str, Any]]
    comparisons: int

    @property
    def lines(self) -> list[str]:
        """All that is to be read, the answer first."""
        return [*self.sentences, *filter(None, [self.about]), *self.notes]


def answer(of: RunData | StudyData, *, causes: bool = True) -> Answer:
    """The answer of a run or a study; causes need the tables of frames, as far as they are kept."""
    study = StudyData.of_run(of) if isinstance(of, RunData) else of
    document = {
        "axes": [
            {
                "name": axis.name,
                "path": axis.path,
                "labels": axis.labels,
                "numeric": axis.numbers is not None,
                "factor": axis.factor is not None,
            }
            for axis in study.axes
        ],
        "replications": study.replications,
        "confidence": study.confidence,
        "runs": [
            {
                "settings": [run.settings[axis.name] for axis in study.axes],
                "replicate": run.replicate,
                "duration_s": run.duration_s,
            }
            for run in study.runs
        ],
        "flows": (flows := _flows(study)),
    }
    limits = _limits(flows)
    calls = recordings.calls(study.runs)
    apart = {run: mark for call in calls for run, mark in recordings.apart(call).items()}
    flows["name"] = [
        name + apart.get(run, "") for run, name in zip(flows[RUN], flows["name"], strict=True)
    ]
    found = json.loads(_core.answer(json.dumps(document), _Details(study.runs, causes)))
    labels = [", ".join(run.settings[axis.name] for axis in study.axes) for run in study.runs]
    same = [recordings.note(call, labels) for call in calls]
    return Answer(**{**found, "notes": [*same, *found["notes"], *limits]})


LIMIT = ": what is unheard is an upper limit"
"""The end of a clause of ``quality_note``."""


def _limits(flows: Mapping[str, list[Any]]) -> list[str]:
    """Of which calls the share that is unheard is an upper limit, and why."""
    found: dict[str, dict[str, None]] = {}
    for name, note in zip(flows["name"], flows.get("quality_note", ()), strict=False):
        for clause in (note or "").split("; "):
            if clause.endswith(LIMIT):
                found.setdefault(clause, {})[name] = None
    return [f"{', '.join(names)}: {clause}." for clause, names in found.items()]


def _flows(study: StudyData) -> dict[str, list[Any]]:
    """The columns of the flows table that an answer reads, and the run of each row."""
    columns = (RUN, *TEXTS, *_core.answer_metrics())
    first = study.runs[0]
    # Without polars where the rows of one run are there, see RunData._rows.
    if len(study.runs) == 1 and first._outcome is not None and (rows := first._rows("flows")):
        found = {name: [row[name] for row in rows] for name in columns if name in rows[0]}
        return {RUN: [0] * len(rows), **found}
    flows = study._stack("flows")
    there = flows.select(name for name in columns if name in flows.columns)
    return there.to_dict(as_series=False)


def shown(
    names: Iterable[str], calls: Iterable[Mapping[str, Any]], judged_by: Sequence[str]
) -> tuple[str, ...]:
    """The columns of a table of calls: no scores that none of them has.

    The estimate is there if it judges the calls, or if one has no other score.
    """
    rows = list(calls)
    scored = any(row["mos"] is not None for row in rows)
    alone = any(row["mos"] is None and row.get(ESTIMATE) is not None for row in rows)
    estimated = ESTIMATE in judged_by or alone
    left_out = (() if scored or not estimated else OF_MODEL) + (() if estimated else (ESTIMATE,))
    return tuple(name for name in names if name not in left_out)


class _Details:
    """What an answer reads of single runs: ``talkspurt_answer::Runs``."""

    def __init__(self, runs: Sequence[RunData], causes: bool) -> None:
        self._runs, self._causes = runs, causes
        self._read: int | None = None
        """The run of ``_told`` and ``_routes``."""

    def _of(self, run: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The resolved scenario of a run, and the routes of its flows."""
        if self._read != run:
            self._told = self._runs[run].resolved
            topology = self._runs[run].topology
            self._routes = {flow["name"]: flow["links"] for flow in topology["flows"]}
            self._read = run
        return self._told, self._routes

    def flow(self, run: int, flow: str) -> str | None:
        """The settings of a flow with its routes; None of packets of a program."""
        told, routes = self._of(run)
        if flow not in told.get("flows", {}):
            return None
        return json.dumps({**told["flows"][flow], "routes": routes[flow]})

    def network(self, run: int, most: int) -> str | None:
        """The settings of all flows and links; None of more than ``most`` flows."""
        told, routes = self._of(run)
        if len(routes) > most:
            return None
        known = told.get("flows", {})
        # Packets of a program in an emulation are equal only to themselves.
        flows = {
            name: {**known.get(name, {"program": name}), "routes": its}
            for name, its in routes.items()
        }
        return json.dumps({"flows": flows, "links": told.get("links", {})})

    def frames(self, run: int, flow: str) -> dict[str, Any] | None:
        """The frames of a call, the window of its sender, and when its connection was open.

        None if the run has not kept them, or no causes are wanted.
        """
        if not self._causes:
            return None
        of = self._runs[run]
        try:
            frames, made, opened = (of.table(it) for it in ("frames", "series", "events"))
        except KeyError:
            return None
        base = flow.removesuffix(".reverse")
        side = "from" if base == flow else "to"
        measured = self._of(run)[0].get("measure", {})
        frames, made = frames.filter(flow=flow), made.filter(flow=flow)
        count = int(made["generated_packets"].sum())
        opened = opened.filter(flow=base, side=side, event="connected")

        def gauge(name: str) -> list[tuple[float, float]]:
            if of._gauge_file is None and of._kept("gauges") is None:
                return []
            rows = of.gauges(gauge=name).filter(flow=base, side=side).sort("time_s")
            return rows.select("time_s", "value").rows()

        times = ("captured", "handed_over", "delivered", "playout")
        return {
            **{name: frames[f"{name}_s"].to_list() for name in times},
            "window": (
                float(measured.get("from") or 0),
                float(measured.get("to") or of.duration_s),
            ),
            "fate": frames["fate"].to_list(),
            "cwnd": gauge("cwnd"),
            "flight": gauge("flight"),
            "opened": opened["time_s"].min(),
            "frame_bytes": int(made["generated_bytes"].sum()) / count if count else 0.0,
        }
