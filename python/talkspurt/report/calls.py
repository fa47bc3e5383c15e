"""The calls of a report: the signals that its player compares.

A signal is a call's degraded recording, or a reference. Each call has the outcome of its frames and
its score; a call without a recording has everything except sound. A group of calls (``count``) is
one signal, as it has one row in the tables: the means of all, with the worst call to see and hear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any

from talkspurt._storage import file_access, writer
from talkspurt.analysis.answer import ESTIMATE
from talkspurt.analysis.cautions import out_of_range
from talkspurt.figures.charts import styles_of
from talkspurt.figures.style import FATE_COLOURS, Style, transport_style
from talkspurt.metrics.catalogue import Column, column
from talkspurt.report.answer import Row, limits, members_of
from talkspurt.report.recordings import MAX_BYTES, Recordings
from talkspurt.results.concatenation import RUN
from talkspurt.results.groups import condensed
from talkspurt.results.manifest import Origin
from talkspurt.results.run_data import RunData
from talkspurt.results.study_data import StudyData

MAX_CALLS = 200
SIDES = ("sent", "received")
CHOSEN = 4
"""Calls that the player shows at first."""


@dataclass(frozen=True)
class Call:
    """One call on the page.

    Attributes:
        title: the flow's name, or the settings of its run.
        row: its row of the flows table, or the means of a group.
        limits: why it is outside the range of its model; empty if it is not.
        sent, received: numbers of its recordings; None without sound.
        fates: runs of equal outcome, or of pauses: [outcome, frames].
        frame_s: length of a frame with sound.
        among: of a group that it represents, its own name, the number of calls, and their least and
            greatest MOS, None if none has one.
        of_run: in a study, which run it is, and the mean of all.
        rank: whether it is the best or the worst call of the study, and by what; mostly empty.
        is_real: whether it is of `talkspurt call`, after which the ends exchange their sound.
    """

    title: str
    subtitle: str
    row: Mapping[str, Any]
    style: Style
    score: Column
    limits: list[str]
    sent: int | None
    received: int | None
    fates: list[tuple[str, int]]
    frame_s: float | None
    among: Mapping[str, Any] | None
    of_run: str
    rank: str
    is_real: bool

    def signal(self) -> dict[str, Any]:
        """It as a signal of the player."""
        score = self.score
        model = "the fit" if score.name == ESTIMATE else "the E-model"
        return {
            "name": " · ".join(filter(None, [self.title, self.subtitle])),
            "recording": self.received,
            "fates": self.fates,
            "frame_s": self.frame_s,
            "colour": self.style.colour,
            "title": self.title,
            "subtitle": self.subtitle,
            "over": self.row["transport"] or "several transports",
            "score": {
                "label": score.label,
                "text": score.show(self.row[score.name]),
                "outside": model if self.limits else "",
            },
            "rank": self.rank,
            "notes": [*filter(None, [self.of_run, self._of_group()])],
            "silence": self._silence(),
        }

    def _of_group(self) -> str:
        if self.among is None:
            return ""
        low, high = self.among["mos"] or (0.0, 0.0)
        shown = self.score.show
        spread = f", {self.score.label} {shown(low)} to {shown(high)}" if low < high else ""
        which = "the worst of them" if low < high else "one of them"
        count = self.among["count"]
        return f"Means of {count} calls{spread}. Shown is {which}, {self.among['name']}."

    def _silence(self) -> str:
        if self.received is not None:
            return ""
        if self.is_real:
            return "No audio: the ends did not exchange their sound."
        return "No audio: the source of this call has no recording (file)."


MAX_NAMES = 3
"""Calls that the name of a reference lists."""


@dataclass(frozen=True)
class Reference:
    """A reference recording, and the calls that sent it; no names if all did."""

    recording: int
    calls: list[str]

    @property
    def name(self) -> str:
        """Its name, with some of its calls."""
        if not self.calls:
            return "reference"
        more = len(self.calls) - MAX_NAMES
        words = ", ".join(self.calls[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
        return f"reference of {words}"


@dataclass(frozen=True)
class Link:
    """A call that is only linked: its name, and its two files relative to the report."""

    title: str
    sent_file: str
    received_file: str


@dataclass
class Player:
    """The signals of a page, until it is full; then links to files, and how many have no sound."""

    recordings: Recordings = field(default_factory=Recordings)
    score: str = "mos"
    calls: list[Call] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    left_out: int = 0

    @property
    def limited(self) -> str:
        """What the page has no room for; empty if all is there."""
        linked, mute = len(self.links), self.left_out
        if not linked + mute:
            return ""
        parts = [f"{linked} with sound in files of the results folder"] if linked else []
        parts += [f"{mute} without sound"] if mute else []
        return (
            f"The player has {len(self.calls)} of {len(self.calls) + linked + mute} calls, as a "
            f"page holds at most {MAX_CALLS} and {MAX_BYTES // 1_000_000} MB of sound and packets. "
            f"Not in it: {' and '.join(parts)}."
        )

    @property
    def full(self) -> bool:
        """Whether the page has its maximum of calls."""
        return len(self.calls) >= MAX_CALLS

    @property
    def has_sound(self) -> bool:
        """Whether at least one call can be heard, here or in a file."""
        return bool(self.links) or any(call.received is not None for call in self.calls)

    @property
    def references(self) -> list[Reference]:
        """The references, each once."""
        by_sent: dict[int, list[str]] = {}
        for call in self.calls:
            if call.sent is not None:
                by_sent.setdefault(call.sent, []).append(call.title)
        return [Reference(n, names if len(by_sent) > 1 else []) for n, names in by_sent.items()]

    def data(self) -> dict[str, Any]:
        """Recordings and signals, as ``player.js`` documents them."""
        signals: list[dict[str, Any]] = [
            {"name": one.name, "recording": one.recording, "chosen": True}
            for one in self.references
        ]
        for n, call in enumerate(self.calls):
            signals.append({**call.signal(), "chosen": n < CHOSEN})
        return {**self.recordings.data(), "signals": signals, "colours": FATE_COLOURS}


def of_result(result: RunData, size: int = 0, score: str = "mos") -> Player:
    """The calls of one run; ``size`` is that of other large content of the page."""
    player = Player(Recordings(size), score)
    styles = styles_of(result)
    for row, flow, among in _shown(result, player.score):
        _add(player, result, row, flow, among, styles[flow], (row["name"], ""))
    return player


@dataclass(frozen=True)
class Extreme:
    """The best or the worst call of a study: its run by number, its row, and by what it is that."""

    run: int
    row: Row
    rank: str


def extremes(study: StudyData, judged_by: Sequence[str]) -> list[Extreme]:
    """The best and the worst call of all runs, by the measures that the answer judges calls by.

    Measures that cannot be weighed against each other count one after the other, the last first.
    """
    measures = [column(name) for name in reversed(judged_by)]
    # A call of which nothing was heard has no delay, and is the worst.
    flows = study._stack("flows").filter(source="speech").drop_nulls(measures[0].name)
    highest_first = [one.better == "higher" for one in measures]
    flows = flows.sort(
        [one.name for one in measures],
        descending=highest_first,
        nulls_last=True,
        maintain_order=True,
    )
    if flows.height < 2:
        return []
    # By several measures none is the best: the first of them is named.
    words = ("best", "worst") if len(measures) == 1 else ("least", "most")

    def rank(which: str, row: Row) -> str:
        one = measures[0]
        value = f"({one.of(row, unit=True)})"
        if len(measures) == 1:
            return f"the {which} call of the study by {one.label} {value}"
        return f"the call of the study with the {which} {one.label} {value}"

    ends = zip(words, (flows.row(0, named=True), flows.row(-1, named=True)), strict=True)
    return [Extreme(row[RUN], row, rank(which, row)) for which, row in ends]


def of_runs(
    every: Sequence[RunData],
    extremes: Sequence[Extreme],
    said: Callable[[RunData, str], str],
    size: int = 0,
    score: str = "mos",
) -> Player:
    """The extreme calls of a study, and those of the first run of each setting, named by it.

    ``said`` returns which run of a setting a flow or group is of, and the mean over all.
    """
    firsts = [i for i, result in enumerate(every) if result.replicate == 0]
    player = Player(Recordings(size), score)
    ranked = {(one.run, one.row["name"]): one.rank for one in extremes}
    first = ((one.run, one.row, one.row["name"], None) for one in extremes)
    others = ((i, *shown) for i in firsts for shown in _shown(every[i], player.score))
    rest = (one for one in others if one[3] or (one[0], one[2]) not in ranked)
    for i, row, flow, among in chain(first, rest):
        result = every[i]
        settings = " · ".join(result.settings.values())
        style = transport_style(row["transport"] or "")
        titles = (settings, row["name"]) if settings else (row["name"], "")
        folder = f"{writer.run_folder(i, result.settings, result.replicate)}/"
        rank = "" if among else ranked.get((i, flow), "")
        about = (said(result, row.get("group") or flow), rank)
        _add(player, result, row, flow, among, style, titles, folder, about)
    return player


def _shown(result: RunData, score: str) -> Iterator[tuple[Row, str, Row | None]]:
    """The calls and groups with a signal: their rows, their flows, and the groups."""
    calls = set(result.calls)
    rows = [row for row in result.flows.to_dicts() if row["name"] in calls]
    for row in condensed(rows):
        group = members_of(rows, row)
        if group == [row]:
            yield row, row["name"], None
            continue
        scored = {one["name"]: one.get(score) for one in group}
        worst = min(group, key=lambda one: scored[one["name"]] or math.inf)
        scores = [value for value in scored.values() if value is not None]
        spread = (min(scores), max(scores)) if scores else None
        among = {"name": worst["name"], "count": len(group), "mos": spread}
        yield row, worst["name"], among


def _add(
    player: Player,
    result: RunData,
    row: Row,
    flow: str,
    among: Row | None,
    style: Style,
    titles: tuple[str, str],
    folder: str = "",
    about: tuple[str, str] = ("", ""),
) -> None:
    heard = flow in result.heard
    # The page plays and draws one channel, the WAV files have both.
    audio = result.audio(flow).mono() if heard and not player.full else None
    numbers = None
    if audio:
        numbers = player.recordings.add(audio.rate, audio.sent_pcm, audio.received_pcm)
    if heard and numbers is None:
        sides = (f"{folder}{writer.AUDIO}/{file_access.file_name(flow, f'{s}.wav')}" for s in SIDES)
        player.links.append(Link(" · ".join(filter(None, titles)), *sides))
        return
    if player.full:
        player.left_out += 1
        return
    sent, received = numbers or (None, None)
    fates = _fates(result, flow, audio.start_s if audio else None)
    units = sum(count for _, count in fates)
    player.calls.append(
        Call(
            title=titles[0],
            subtitle=titles[1],
            row=row,
            style=style,
            score=column(player.score),
            limits=limits(members_of(result.flows.to_dicts(), row), player.score)
            if among
            else out_of_range(row, player.score),
            sent=sent,
            received=received,
            fates=fates,
            frame_s=audio.duration_s / units if audio and units else None,
            among=among,
            of_run=about[0],
            rank=about[1],
            is_real=result.origin is Origin.CALLED,
        )
    )


def _fates(result: RunData, flow: str, start_s: float | None) -> list[tuple[str, int]]:
    """Runs of frames with equal fates, and of pauses as long as so many frames."""
    frames = result.frames(flow).sort("captured_s")
    times = frames["captured_s"].to_list()
    name, _, back = flow.rpartition(".") if flow.endswith(".reverse") else (flow, "", "")
    source = result.resolved["flows"][name]["reverse" if back else "source"]
    packet_s = float(source["packet"])
    found: list[tuple[str, int]] = []
    follows: float = start_s if start_s is not None else times[0] if times else 0.0
    for fate, at in zip(frames["fate"].to_list(), times, strict=True):
        if (silent := int((at - follows) / packet_s + 0.01)) > 0:
            found.append(("pause", silent))
        found.append((fate, 1))
        follows = at + packet_s
    return [
        (fate, sum(count for _, count in run)) for fate, run in groupby(found, lambda one: one[0])
    ]
