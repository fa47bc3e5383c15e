"""Calls in a report: both recordings, the outcome of each frame, and statistics.

A group of calls (``count``) has one card, as it has one row in the tables: the means of all, with
the worst call to see and hear.

A recording sent over several transports is included once. A report holds at most 24 calls and ten
megabytes of sound and packets; further calls are links to files. A call without a recording has
everything except sound.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from talkspurt import store
from talkspurt.figures.style import FATE_COLOURS, FlowStyle, transport_style
from talkspurt.figures.time import styles_of
from talkspurt.format import Verdict, verdict
from talkspurt.groups import condensed

if TYPE_CHECKING:
    from talkspurt.result import Result

MOST_CALLS = 24
MOST_BYTES = 10_000_000


@dataclass(frozen=True)
class Among:
    """The group a call represents.

    Attributes:
        name: the representative call, the worst one.
        count: size of the group.
        mos: minimum and maximum MOS; None if none has one.
    """

    name: str
    count: int
    mos: tuple[float, float] | None


@dataclass(frozen=True)
class Call:
    """One call on the page.

    Attributes:
        key: unique on the page.
        title: the flow's name, or the settings of its run.
        subtitle: further text, may be empty.
        row: its row of the flows table, or the means of a group.
        style: its colour and dashes.
        verdict: user satisfaction.
        sounds: keys of the recordings sent and received; None without sound.
        fates: runs of equal outcome: [outcome, frames].
        frame_s: length of a frame with sound.
        among: the group it represents, if any.
    """

    key: str
    title: str
    subtitle: str
    row: Mapping[str, Any]
    style: FlowStyle
    verdict: Verdict | None
    sounds: tuple[str, str] | None
    fates: list[tuple[str, int]]
    frame_s: float | None
    among: Among | None = None

    def data(self) -> dict[str, Any]:
        """Data for the player script."""
        return {"fates": self.fates, "frame_s": self.frame_s, "colour": self.style.colour}


@dataclass(frozen=True)
class Link:
    """A call that is only linked: its name, and its two files relative to the report."""

    title: str
    sent_file: str
    received_file: str


@dataclass
class Sounds:
    """The recordings of a page, each once, until the page is full; then links to files.

    ``size`` starts with the size of other large content of the page.
    """

    wavs: dict[str, str] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    size: int = 0
    calls: int = 0

    @property
    def full(self) -> bool:
        """Whether the page has its maximum of calls."""
        return self.calls >= MOST_CALLS

    def add(self, sent: bytes, received: bytes) -> tuple[str, str] | None:
        """Keys of both recordings, or None if the page is full."""
        fresh = {self._key(data): data for data in (sent, received)}
        fresh = {key: data for key, data in fresh.items() if key not in self.wavs}
        more = sum((len(data) + 2) // 3 * 4 for data in fresh.values())
        if self.full or self.size + more > MOST_BYTES:
            return None
        for key, data in fresh.items():
            self.wavs[key] = base64.b64encode(data).decode("ascii")
        self.size += more
        self.calls += 1
        return self._key(sent), self._key(received)

    @staticmethod
    def _key(data: bytes) -> str:
        return "w" + hashlib.sha256(data).hexdigest()[:16]


def calls_of(result: Result, sounds: Sounds) -> list[Call]:
    """The calls of one run shown in the page; others become links to their recordings."""
    styles = styles_of(result)
    return [
        call
        for shown in _shown(result)
        if (call := _call(result, shown, sounds, styles[shown.flow], (shown.title, ""), ""))
    ]


def calls_of_runs(runs: Iterable[tuple[str, Result]], sounds: Sounds) -> list[Call]:
    """The calls of several runs of a study, named by their settings; with the runs' folders."""
    found = []
    for folder, result in runs:
        settings = " · ".join(result.settings.values())
        for shown in _shown(result):
            plain = transport_style(shown.row["transport"])
            style = FlowStyle(plain.colour, plain.marker, ())
            titles = (settings, shown.title) if settings else (shown.title, "")
            found.append(_call(result, shown, sounds, style, titles, f"{folder}/"))
    return [call for call in found if call is not None]


@dataclass(frozen=True)
class _Shown:
    """A call with a card: its flow, and its displayed name and row."""

    flow: str
    title: str
    row: Mapping[str, Any]
    among: Among | None


def _shown(result: Result) -> list[_Shown]:
    calls = set(result.calls)
    rows = [row for row in result.flows.to_dicts() if row["name"] in calls]
    found = []
    for row in condensed(rows):
        group = [
            one
            for one in rows
            if row["name"] != row["first"] and one.get("group") == row.get("group")
        ]
        if not group:
            found.append(_Shown(row["name"], row["name"], row, None))
            continue
        worst = min(group, key=lambda one: (one["mos"] is None, one["mos"] or 0.0))
        scores = [one["mos"] for one in group if one["mos"] is not None]
        spread = (min(scores), max(scores)) if scores else None
        among = Among(worst["name"], len(group), spread)
        found.append(_Shown(worst["name"], row["name"], row, among))
    return found


def _call(
    result: Result,
    shown: _Shown,
    sounds: Sounds,
    style: FlowStyle,
    titles: tuple[str, str],
    folder: str,
) -> Call | None:
    title, subtitle = titles
    flow, row = shown.flow, shown.row
    heard = flow in result.heard
    audio = result.audio(flow) if heard and not sounds.full else None
    keys = sounds.add(audio.sent_wav(), audio.received_wav()) if audio else None
    if heard and keys is None:
        sides = (f"{folder}{store.AUDIO}/{store.file_name(flow, f'{s}.wav')}" for s in SIDES)
        sounds.links.append(Link(" · ".join(filter(None, titles)), *sides))
        return None
    if not heard:
        if sounds.full:
            return None
        sounds.calls += 1
    frames = result.frames(flow)
    fates = [(fate, len(list(run))) for fate, run in groupby(frames["fate"].to_list())]
    return Call(
        key=f"{folder}{flow}",
        title=title,
        subtitle=subtitle,
        row=row,
        style=style,
        verdict=verdict(row["r_factor"]),
        sounds=keys,
        fates=fates,
        frame_s=audio.duration_s / frames.height if audio and frames.height else None,
        among=shown.among,
    )


SIDES = ("sent", "received")

FATES = FATE_COLOURS
"""Colours of outcomes, for the page's legend."""
