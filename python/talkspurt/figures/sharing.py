"""Distribution of a study's lines over panels, and the styles of lines within a panel.

Lines that would look alike in one panel, or crowd it, are distributed over several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from talkspurt.figures import scale
from talkspurt.figures.style import DASHES, IN_BACKGROUND, MEDIA, Style, transport_style

if TYPE_CHECKING:
    from talkspurt.results.axis import Axis
    from talkspurt.results.study_data import StudyData

MOST_LINES = 6
"""Maximum lines in a panel."""
MOST_ALIKE = 3
"""Maximum lines of one colour in a panel: dashes and marker fills distinguish them."""
MOST_PANELS = 24

Row = dict[str, Any]
Key = tuple[str, ...]
Places = tuple[int, ...]
"""Indices of the parts of a key."""


@dataclass(frozen=True)
class Line:
    """The means of one flow under one setting of the other axes.

    Attributes:
        key: the flow and the settings.
        rows: rows of the summary, along the x axis.
        transports: the flow's transport, row by row.
    """

    key: Key
    rows: list[Row]
    transports: list[str]

    @property
    def mixed(self) -> bool:
        """Whether its transport, and so its style, varies along the line."""
        return len(set(map(transport_style, self.transports))) > 1

    @property
    def style(self) -> Style:
        """Its style, if it has one."""
        return transport_style(self.transports[0])

    def by(self, numbers: Mapping[str, float], axis: str) -> Line:
        """The same, sorted by number."""
        pairs = zip(self.rows, self.transports, strict=True)
        ordered = sorted(pairs, key=lambda pair: numbers[pair[0][axis]])
        return Line(self.key, [row for row, _ in ordered], [over for _, over in ordered])


@dataclass(frozen=True)
class Sharing:
    """Lines distributed over panels.

    Attributes:
        varied: the parts in which the lines' keys differ; 0 is the flow.
        apart: those parts that have separate panels.
        parts: the lines of each panel, by those parts.
    """

    varied: Places
    apart: Places
    parts: Mapping[Key, Sequence[Line]]

    def entry(self, line: Line) -> str:
        """The name of a line in the legend: what its panel's title does not state."""
        return " · ".join(line.key[i] for i in self.varied if i not in self.apart)

    def looks(self) -> dict[str, int]:
        """The index of dashes and fill for each entry, distinct within every panel."""
        met: dict[str, set[str]] = {}
        for lines in self.parts.values():
            named = [(self.entry(line), line.style.colour) for line in lines]
            for words, colour in named:
                others = {other for other, its in named if its == colour and other != words}
                met.setdefault(words, set()).update(others)
        looks: dict[str, int] = {}
        for words, others in met.items():
            taken = {looks[other] for other in others if other in looks}
            looks[words] = next(i for i in range(len(met)) if i not in taken)
        return looks

    @property
    def fits(self) -> bool:
        """Whether all panels are readable."""
        readable = all(map(_readable, self.parts.values()))
        return readable and max(self.looks().values()) < len(DASHES)


def share_out(lines: Sequence[Line]) -> Sharing:
    """Use as few panels as possible; split by flow if each has settings to compare."""
    length = len(lines[0].key)
    varied = tuple(i for i in range(length) if len({line.key[i] for line in lines}) > 1)
    ways: list[Sharing] = []
    for size in range(len(varied) + 1):
        for apart in combinations(varied, size):
            parts: dict[Key, list[Line]] = {}
            for line in lines:
                parts.setdefault(tuple(line.key[i] for i in apart), []).append(line)
            ways.append(Sharing(varied, apart, parts))

    def rank(way: Sharing) -> tuple[bool, int]:
        by_flow = len(varied) > 1 and 0 in way.apart and len(way.parts) <= MOST_PANELS
        return (not by_flow, len(way.parts))

    return min((way for way in ways if way.fits), key=rank)


def _readable(lines: Sequence[Line]) -> bool:
    if len(lines) == 1:
        return True
    colours = [line.style.colour for line in lines]
    return (
        not any(line.mixed for line in lines)
        and len(lines) <= MOST_LINES
        and max(map(colours.count, colours)) <= MOST_ALIKE
    )


def across(study: StudyData) -> Axis | None:
    """The x axis."""
    lists = [axis for axis in study.axes if not axis.factor]
    keeping = [axis for axis in lists if keeps_transports(study, axis)]
    colours = {transport_style(name).colour for name in _transports(study).values()}
    there = lists if len(colours) == 1 else keeping or lists[:1]

    def rank(axis: Axis) -> tuple[bool, int]:
        # Two numbers show no trend; an axis with more names shows more.
        course = len(axis.labels) > 2 and bool(scale.numbers(axis.labels))
        return (axis in keeping and course, len(axis.labels))

    varied = [axis for axis in there if len(axis.labels) > 1] or there
    return max(varied, key=rank) if varied else None


def keeps_transports(study: StudyData, axis: Axis) -> bool:
    """Whether every flow has one transport along an axis, all else equal."""
    place = study.axes.index(axis)
    kinds: dict[Key, set[str]] = {}
    for setting, transport in _transports(study).items():
        kinds.setdefault(setting[:place] + setting[place + 1 :], set()).add(transport)
    return all(len(transports) == 1 for transports in kinds.values())


def lines_over(study: StudyData, axis: Axis, name: str) -> list[Line]:
    """The means of a measure along an axis, flow by flow."""
    others = [other.column for other in study.axes if other is not axis]
    transports = _transports(study)
    background = _background(study)
    found: dict[Key, Line] = {}
    for row in study.rows(study.summary([name])):
        if row["mean"] is None:
            continue
        key = (row["flow"], *(row[other] for other in others))
        line = found.setdefault(key, Line(key, [], []))
        line.rows.append(row)
        setting = (*(row[other.column] for other in study.axes), row["flow"])
        line.transports.append(IN_BACKGROUND if row["flow"] in background else transports[setting])
    flows = list(dict.fromkeys(line.key[0] for line in found.values()))
    return sorted(found.values(), key=lambda line: flows.index(line.key[0]))


def _background(study: StudyData) -> set[str]:
    """The flows and groups that are only there to disturb calls and video."""
    rows = [
        (row.get("group") or row["name"], row.get("source") in MEDIA)
        for run in study.runs
        for row in run.flows.iter_rows(named=True)
    ]
    media = {name for name, is_media in rows if is_media}
    return {name for name, _ in rows} - media if media else set()


def _transports(study: StudyData) -> dict[Key, str]:
    """The transport of each flow under each setting; the flows of a group share one."""
    return {
        (*run.settings.values(), row.get("group") or row["name"]): row["transport"]
        for run in study.runs
        for row in run.flows.iter_rows(named=True)
    }
