"""Verdicts on transports in each condition, and what the page on transports shows of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
from rows import Interval, Rows, bars, draw, number

from talkspurt.figures.style import FAINT, transport_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CONFIDENCE = 0.99
MANY = 3.1
"""MOS at R = 60; below it, nearly all users are dissatisfied (G.107 Annex B)."""
WHOLE = ("TCP", "SCTP")
"""Transports that deliver all data."""
SLOW = ("CCID 2", "CCID 3", "TFRC")
ORDERED = ("TCP", "TCP long", "SCTP")
STYLES = {"CCID 2": "dccp-ccid2", "CCID 3": "dccp-ccid3", "CCID 4": "dccp-ccid4"}
"""Names of transports in the table of styles, if they differ from the labels."""
HOLLOW = ("TCP long", "SCTP partial")
"""Transports drawn with hollow markers, because they share colour and marker with another."""
# Conditions: the line, the delay and the load.
IDLE = "wide, 20 ms, alone"
NEAR = ("lossy, 20 ms, alone", "lossy, 20 ms, upload")
FAR = ("lossy, 150 ms, alone", "lossy, 150 ms, upload")


@dataclass(frozen=True)
class Cell:
    """One transport in one condition: its score, and the paired difference from the best.

    `word` is `as good` if the interval of the difference lies within the margin, `worse` if it does
    not and excludes 0, and `open` otherwise.
    """

    score: Interval
    difference: Interval
    word: str

    @property
    def good(self) -> bool:
        """Whether the transport is the best or shown to be as good."""
        return self.word in ("best", "as good")


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of traffic and its results.

    Attributes:
        unit: unit of the score, appended to a number.
        sign: 1 if a larger score is better, −1 if a smaller one is.
        margin: largest difference that counts as equal.
        spec: format of a score.
        rows: one row for each run.
        among: transports to compare.
        least: smallest acceptable score.
    """

    unit: str
    sign: int
    margin: float
    spec: str
    rows: Rows
    among: Sequence[str]
    least: float = -math.inf

    @cached_property
    def parts(self) -> dict[str, dict[str, Rows]]:
        """The runs by condition and transport, in order."""
        return {
            f"{line}, {delay}, {load}": part.each("transport")
            for line, lines in self.rows.each("line").items()
            for delay, delays in lines.each("delay").items()
            for load, part in delays.each("beside").items()
        }

    def compare(self, kind: str = "student") -> dict[str, dict[str, Cell]]:
        """Compare the transports in each condition with Student's or bootstrap intervals."""
        return {condition: self._cells(part, kind) for condition, part in self.parts.items()}

    def _cells(self, part: Mapping[str, Rows], kind: str) -> dict[str, Cell]:
        best = max(self.among, key=lambda name: self.sign * part[name].score.mean)
        cells = {}
        for name in self.among:
            away = (part[name] - part[best]).interval("score", kind)
            word = "as good" if away.size <= self.margin else "worse" if away.differs else "open"
            cells[name] = Cell(part[name].score, away, "best" if name == best else word)
        return cells

    def gap(self, condition: str, one: str, other: str) -> Interval:
        """Return the paired difference between two transports, positive if the first is better."""
        first, second = (one, other) if self.sign > 0 else (other, one)
        part = self.parts[condition]
        return (part[first] - part[second]).score

    def show(self, cell: Cell) -> str:
        """Format a cell: bold if as good as the best, in parentheses if inconclusive."""
        text = number(cell.score.mean, self.spec)
        return f"**{text}**" if cell.good else f"({text})" if cell.word == "open" else text

    def named(self, cells: Mapping[str, Cell]) -> str:
        """Name the best transport, those as good and those not shown to be worse."""
        good = [name for name, cell in cells.items() if cell.good]
        rest = [name for name, cell in cells.items() if not cell.good]
        unshown = [name for name in rest if cells[name].word == "open"]
        good.sort(key=lambda name: cells[name].word != "best")
        names = ", ".join(good)
        if len(cells) > len(WHOLE) and not rest:
            names = "all"
        elif rest and len(good) > 2 * len(rest) and not unshown:
            names = f"all but {', '.join(rest)}"
        names += f" ({', '.join(unshown)})" if unshown else ""
        score = cells[good[0]].score
        none = "none; " if score.high < self.least else ""
        return f"{none}{names}: {number(score.mean, self.spec)}{self.unit}"


def kinds_of(*studies: Rows) -> tuple[Kind, Kind, Kind]:
    """Return the three kinds of traffic."""
    voice, video, data = (replace(rows, confidence=CONFIDENCE) for rows in studies)
    return (
        Kind("", 1, 0.1, ".2f", voice, voice.labels("transport"), MANY),
        Kind(" %", 1, 1, ".1f", video, video.labels("transport")),
        Kind(" s", -1, 0.5, ".1f", data, WHOLE),
    )


def values(*studies: Rows) -> Mapping[str, Any]:
    """Return the values of the page by name."""
    voice, video, data = kinds = kinds_of(*studies)
    speech, pictures, bulk = results = [kind.compare() for kind in kinds]
    narrow = [condition for condition in speech if condition.startswith("narrow")]
    fits = [condition for condition in speech if condition not in narrow]
    plain = [condition for condition in fits if condition not in NEAR]
    seeds = speech[IDLE]["UDP"].score.count
    verdicts = {condition: [result[condition] for result in results] for condition in speech}
    behind = [voice.gap(condition, "UDP", "CCID 4") for condition in fits]
    partial = max(voice.gap(condition, "UDP", "SCTP partial").size for condition in fits)
    repair, segments = voice.gap(NEAR[0], "TCP long", "UDP"), voice.gap(NEAR[1], "TCP long", "TCP")

    both = 100 * 0.98**2
    gains = [video.gap(condition, "SCTP partial", "UDP") for condition in NEAR]
    ccid4 = [video.gap(condition, "UDP", "CCID 4") for condition in FAR]
    others = [name for name in video.among if name not in ("UDP", "CCID 4")]
    second = min(video.gap(condition, "UDP", name).mean for condition in FAR for name in others)
    busy = pictures["wide, 150 ms, upload"]

    unreliable = [name for name in data.rows.labels("transport") if name not in WHOLE]
    whole = data.rows(transport=WHOLE).values("share")
    partly = data.rows(transport=unreliable, line="lossy").values("share")
    excess = [100 - share for share in data.rows(transport="UDP", line="narrow").values("share")]
    faster = [c for c in bulk if data.gap(c, "TCP", "SCTP").low > data.margin]
    slower = [c for c in bulk if data.gap(c, "SCTP", "TCP").low > data.margin]

    names = ("voice", "video", "data")
    loaded = {
        f"{name}: {condition.removesuffix(', upload')}": part
        for name, kind in zip(names, kinds, strict=True)
        for condition, part in kind.parts.items()
        if condition.endswith("upload")
    }
    starved_bps = max(
        part["UDP"].upload_bps.mean
        for setting, part in loaded.items()
        if "narrow" in setting and not setting.startswith("data")
    )
    disturbed = max(
        abs((rows - part["UDP"]).upload_bps.mean) / part["UDP"].upload_bps.mean
        for setting, part in loaded.items()
        if "wide, 20 ms" in setting
        for name, rows in part.items()
        if name != "UDP"
    )
    udp = pl.concat(kind.rows(transport="UDP").frame.select("line", "stopped_s") for kind in kinds)
    stops = udp.filter(pl.col("stopped_s").is_not_null())

    idle = {name: kind.parts[IDLE] for name, kind in zip(names, kinds, strict=True)}
    equal = [name for name in voice.among if name != "TCP long"]
    uneven, single = 0.0, dict.fromkeys(equal, 0.0)
    for kind in kinds:
        base = kind.parts[IDLE]["UDP"].payload_bytes.mean
        for condition, part in kind.parts.items():
            for name in equal if condition.startswith("wide") else ():
                if name in part:
                    uneven = max(uneven, abs(part[name].payload_bytes.mean / base - 1))
                    off = (abs(size / base - 1) for size in part[name].values("payload_bytes"))
                    single[name] = max(single[name], *off)
    rest = max(off for name, off in single.items() if name != "SCTP")
    arrived = [n for k in kinds for n in k.rows(line=("wide", "lossy")).values("received")]
    squeezed = [n for k in kinds for n in k.rows(line="narrow").values("received")]
    words = [
        (cell.word, other[condition][name].word)
        for other, result in zip([k.compare("bootstrap") for k in kinds], results, strict=True)
        for condition, cells in result.items()
        for name, cell in cells.items()
        if cell.word != "best"
    ]
    same = sum(one == other for one, other in words)
    return locals()


def upload(part: Mapping[str, Rows], name: str) -> str:
    """Format the upload's goodput: bold if above the one beside UDP, in parentheses if below."""
    if name not in part:
        return "–"
    text = number(part[name].upload_bps.mean, ".0f*1e-3")
    away = (part[name] - part["UDP"]).upload_bps
    return f"**{text}**" if away.low > 0 else f"({text})" if away.high < 0 else text


def sizes(part: Mapping[str, Rows], name: str) -> str:
    """Format the bytes of the source and of the IP packet."""
    if name not in part:
        return "–"
    return f"{part[name].payload_bytes.mean:.0f} ({part[name].ip_bytes.mean:.0f})"


def figures(*studies: Rows) -> Mapping[str, bytes]:
    """Draw the figures of the page."""
    voice, video, data = kinds_of(*studies)
    last = (data, "score", "last arrival after end of source / s")
    return {
        "voice": _draw((voice, "score", "MOS")),
        "video": _draw((video, "score", "frames complete in time / %")),
        "data": _draw((data, "share", "arrived / %"), last),
    }


def _draw(*columns: tuple[Kind, str, str]) -> bytes:
    """Draw means with intervals by condition and transport, with a panel for each column."""
    conditions, panels = list(columns[0][0].parts), []
    for kind, column, label in columns:
        names, curves = kind.rows.labels("transport"), []
        for place, name in enumerate(names):
            if column == "share" or name in kind.among:
                style = transport_style(STYLES.get(name, name))
                shift = (place - (len(names) - 1) / 2) * 0.085
                curve = bars([part[name].interval(column) for part in kind.parts.values()], "x")
                curve |= {"y": [row + shift for row in range(len(conditions))], "label": name}
                curve |= {"color": style.colour, "marker": style.marker, "linestyle": "none"}
                face = "white" if name in HOLLOW else style.colour
                curves.append({**curve, "markersize": 4, "markerfacecolor": face, "capsize": 0})
        ticks = {"yticks": range(len(conditions)), "yticklabels": conditions}
        panels.append(({"xlabel": label, "ylim": (len(conditions) - 0.4, -0.6), **ticks}, curves))

    def separate(axes: Sequence[Axes]) -> None:
        for ax in axes:
            ax.grid(axis="y", visible=False)
            for row in range(len(conditions) - 1):
                ax.axhline(row + 0.5, color=FAINT, linewidth=0.5, alpha=0.5)

    return draw((8.4, 5.4), panels, {"loc": "outside right upper"}, separate, sharey=True)
