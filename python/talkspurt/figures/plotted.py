"""What a figure of a measure shows, and where: axes, colours, panels, and its kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from talkspurt._text.format import offered
from talkspurt.figures import scale
from talkspurt.figures.sharing import across
from talkspurt.figures.style import (
    BLUE,
    BROWN,
    DASHES,
    GREEN,
    ORANGE,
    OTHER,
    PURPLE,
    SKY,
    SLATE,
    TEAL,
    VERMILLION,
    TransportStyle,
    transport_style,
)  # fmt: skip
from talkspurt.figures.values import (
    FLOW,
    LINK,
    OF_FLOWS,
    TRANSPORT,
    Part,
    against,
    place_of,
    same_places,
)  # fmt: skip
from talkspurt.results.axis import Axis

if TYPE_CHECKING:
    from talkspurt.metrics import Metric
    from talkspurt.metrics.catalogue import Quantity
    from talkspurt.results.study_data import StudyData

Kind = Literal["lines", "bars", "points", "box", "cdf", "map"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of figures of a measure."""
TIME = "time"

PALETTE = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BROWN, TEAL, SLATE, "#6b7280")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", "h")
MOST_COLOURS = 12
"""More values than these are not the default for colours."""
MOST_NAME = 30
"""Letters of a name in a figure; longer ones are shortened in the middle."""


@dataclass(frozen=True)
class Look:
    """How the values of one label are distinguished: colour, marker and dashes."""

    style: TransportStyle
    dashes: int = 0


@dataclass
class Plot:
    """A figure to be drawn.

    Attributes:
        study: the runs.
        one: the measure.
        parts: its values.
        over: what the x axis is; None if it is the measure itself or a quantity of its own.
        by: what colours distinguish.
        kind: its kind.
    """

    study: StudyData
    one: Metric
    parts: Sequence[Part]
    over: str | None
    by: str | None
    kind: Kind
    notes: list[str] = field(default_factory=list)

    @property
    def quantity(self) -> Quantity:
        """How the measure is shown."""
        return self.one.quantity

    @cached_property
    def rest(self) -> list[str]:
        """What has panels of its own."""
        axes = {axis.name for axis in self.study.axes}
        pooled = {self.over, self.by} & set(OF_FLOWS) - axes
        place = place_of(self.study, self.one)
        found = [
            d for d in varied(self.study, self.one, self.parts) if d not in (self.over, self.by)
        ]
        if pooled or (self.kind == "cdf" and against(self.one) is None):
            found = [d for d in found if d != place]
        return found

    def labels(self, name: str | None) -> list[str]:
        """The labels along a dimension, in order."""
        there = dict.fromkeys(part.told[name] for part in self.parts) if name else {"": None}
        for axis in self.study.axes:
            if axis.name == name:
                return [label for label in axis.labels if label in there]
        return list(there)

    def axis(self, name: str) -> Axis:
        """An axis of the study, or one of names."""
        labels = self.labels(name)
        factor = next((axis.factor for axis in self.study.axes if axis.name == name), None)
        return Axis(name, "", tuple(map(short, labels)), factor=factor)

    def groups(self, name: str) -> Axis:
        """The same, with numbers in one unit, for places side by side."""
        texts, unit = scale.ticks(self.labels(name))
        return Axis(scale.headed(name, unit), "", tuple(map(short, texts)))

    def panels(self) -> dict[tuple[str, ...], list[Part]]:
        """The parts of each panel, in the order of the labels."""
        order = {
            name: {label: i for i, label in enumerate(self.labels(name))} for name in self.rest
        }
        found: dict[tuple[str, ...], list[Part]] = {}
        for part in self.parts:
            found.setdefault(tuple(part.told[name] for name in self.rest), []).append(part)

        def rank(key: tuple[str, ...]) -> list[int]:
            return [order[name][label] for name, label in zip(self.rest, key, strict=True)]

        return {key: found[key] for key in sorted(found, key=rank)}

    @cached_property
    def looks(self) -> dict[str, Look]:
        """The look of each label of ``by``."""
        return looks(self.labels(self.by), self.transports(self.by))

    def transports(self, name: str | None) -> dict[str, str]:
        """The transport of each label, where it has only one."""
        found: dict[str, set[str]] = {}
        changing = changed_by(name, self.parts) if name else set()
        for part in self.parts:
            if not changing or part.member in changing:
                found.setdefault(part.told[name] if name else "", set()).add(part.transport)
        return {label: kinds.pop() for label, kinds in found.items() if len(kinds) == 1}

    def row(self, found: Iterable[Part]) -> dict[str, Any]:
        """Mean and interval over the replications, as in a summary."""
        return self.study._row_of(self.one, found)


def varied(study: StudyData, one: Metric, found: Sequence[Part]) -> list[str]:
    """What distinguishes parts: axes with several values, and flow or link if there are several."""
    # The points of a design have no panels or colours of their own.
    names = [axis.name for axis in study.axes if not axis.factor]
    place = place_of(study, one)
    return [name for name in (*names, place) if len({part.told[name] for part in found}) > 1]


def check(study: StudyData, one: Metric | None, name: str | None) -> None:
    """Raise :class:`KeyError` if there is no such dimension; of any metric, if none is given."""
    known = [axis.name for axis in study.axes]
    more = [LINK, FLOW] if one is None else [place_of(study, one)]
    more += () if one is not None and one.of_links else OF_FLOWS
    known += [other for other in more if other not in known]
    if name is not None and name not in known:
        raise KeyError(f"no axis {name!r}; {offered(name, known)}")


def unknown(study: StudyData, one: Metric | None, *names: str | None) -> list[Exception]:
    """What is wrong with the names of axes."""
    faults: list[Exception] = []
    for name in names:
        try:
            check(study, one, name)
        except KeyError as error:
            faults.append(error)
    return faults


def together(faults: Sequence[Exception]) -> Exception:
    """One error for several."""
    if len(faults) == 1:
        return faults[0]
    return ValueError("; ".join(str(fault.args[0]) for fault in faults))


def chosen(
    study: StudyData,
    one: Metric,
    found: Sequence[Part],
    over: str | None,
    by: str | None,
    kind: str | None,
) -> Plot:
    """Complete what was not asked for."""
    place = place_of(study, one)
    dims = varied(study, one, found)
    quantity = against(one)
    if kind == "cdf" and over is not None:
        raise ValueError("a CDF is drawn over the measure itself: over is for other kinds")
    of_curves = quantity is not None and over is None and kind in (None, "lines", "points")
    if kind == "map":
        over, by = _of_map(study, dims, over, by)
    elif kind != "cdf" and not of_curves and over is None:
        over = _default_over(study, one, dims, by) or place
    if by is None and kind != "map":
        numbers_only = kind == "cdf" and quantity is None
        left = [name for name in dims if name not in (over, place if numbers_only else None)]
        by = _default_by(left, found)
        several = len({part.told[TRANSPORT] for part in found}) > 1
        if by is None and numbers_only and several and not one.of_links:
            by = TRANSPORT
        if over in OF_FLOWS and by == place:
            by = None
    if kind is None:
        if of_curves:
            assert quantity is not None
            cross = not same_places(one) or quantity.label not in ("time", "time scale")
            kind = "points" if cross else "lines"
        else:
            along = next((axis for axis in study.axes if axis.name == over), None)
            numeric = along is not None and bool(scale.numbers(along.labels))
            kind = "lines" if numeric else "bars"
            if along is not None and along.factor:
                kind = "points" if numeric else "box"
    return Plot(study, one, found, over, by, kind)  # type: ignore[arg-type]


def _default_over(study: StudyData, one: Metric, dims: Sequence[str], by: str | None) -> str | None:
    factors = [axis.name for axis in study.axes if axis.factor and axis.name != by]
    if factors:
        return factors[0]
    best = across(study) if any(axis.name in dims for axis in study.axes) else None
    if best is not None and best.name in dims and best.name != by:
        return best.name
    return next((name for name in dims if name != by), None)


def _default_by(left: Sequence[str], found: Sequence[Part]) -> str | None:
    """What changes the transport of a flow, or else the first axis with few values."""
    few = [name for name in left if len({part.told[name] for part in found}) <= MOST_COLOURS]
    return next((name for name in few if changed_by(name, found)), next(iter([*few, *left]), None))


def changed_by(name: str, found: Sequence[Part]) -> set[str]:
    """The flows whose transport differs between labels of an axis, and is one under each.

    If flows are the axis, those with different transports.
    """
    kinds: dict[str, dict[str, set[str]]] = {}
    for part in found:
        member = part.member if part.told[name] not in (part.member, "") else ""
        kinds.setdefault(member, {}).setdefault(part.told[name], set()).add(part.transport)
    changed: set[str] = set()
    for member, by_label in kinds.items():
        single = all(len(its) == 1 for its in by_label.values())
        if single and len({next(iter(its)) for its in by_label.values()}) > 1:
            changed |= {member} if member else {part.member for part in found}
    return changed


def _of_map(
    study: StudyData, dims: Sequence[str], over: str | None, by: str | None
) -> tuple[str, str]:
    length = {axis.name: len(axis.labels) for axis in study.axes}
    order = sorted(dims, key=lambda name: -length.get(name, 1))
    free = [name for name in order if name not in (over, by)]
    if over is None and free:
        over = free.pop(0)
    if by is None and free:
        by = free.pop(0)
    if over is None or by is None:
        there = ", ".join(dims) or "nothing"
        raise ValueError(f"a map needs two axes with several values; what varies here: {there}")
    for axis in study.axes:
        if axis.name in (over, by) and axis.factor and scale.numbers(axis.labels):
            raise ValueError(
                "a map has a cell for each pair of values, and each point of the design has its "
                f"own {axis.name}: kind points draws it"
            )
    return over, by


def short(name: str, most: int = MOST_NAME) -> str:
    """A name of limited length, shortened in the middle."""
    if len(name) <= most:
        return name
    half = (most - 1) // 2
    return f"{name[: most - 1 - half]}…{name[-half:]}"


def looks(labels: Sequence[str], transports: Mapping[str, str]) -> dict[str, Look]:
    """Transports keep their colours; numbers go from dark to light; others have a palette."""
    there = {label: transports.get(label) or label for label in labels}
    styles = {label: transport_style(name) for label, name in there.items()}
    distinct = len({style.colour for style in styles.values()}) == len(labels)
    known = OTHER not in styles.values() or (len(labels) == 1 and "" in labels)
    if distinct and known:
        return {label: Look(style) for label, style in styles.items()}
    if (len(labels) > 2 and scale.numbers(labels)) or len(labels) > len(PALETTE):
        import matplotlib as mpl
        from matplotlib.colors import to_hex

        colours = mpl.colormaps["viridis"]
        at = [0.92 * i / (len(labels) - 1) for i in range(len(labels))]
        return {
            label: Look(TransportStyle(to_hex(colours(at[i])), MARKERS[i % len(MARKERS)]),
                        i % len(DASHES) if not scale.numbers(labels) else 0)
            for i, label in enumerate(labels)
        }  # fmt: skip
    return {
        label: Look(TransportStyle(PALETTE[i], MARKERS[i]), i % len(DASHES))
        for i, label in enumerate(labels)
    }
