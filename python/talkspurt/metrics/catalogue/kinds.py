"""Kinds of metrics: a column present in every run, or a value computed on request."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from talkspurt.metrics.catalogue.quantities import BY_COLUMN, Quantity

Better = Literal["higher", "lower", "neither"]
Known = Literal["sender", "receiver", "both"]
Shape = Literal[
    "packets", "over_time", "by_size", "losses", "series", "links", "calls", "scales", "flows"
]


@dataclass(frozen=True)
class Shown:
    """A column of a view: a table or list of results that shows some of the metrics.

    Attributes:
        view: its name, as in ``talkspurt_proto::metric::View``, or ``study_sound``.
        place: where among the columns of the view.
        rank: the column with the greatest is the first to be left out of a narrow table; with 0 it
            stays.
        below: whether it is written below the others where there is no room beside them.
    """

    view: str
    place: int
    rank: int = 0
    below: bool = False


@dataclass(frozen=True)
class Column:
    """A metric of a run's tables.

    Attributes:
        name: column in the table; for ``gauges``, the value in its column ``gauge``.
        table: the table it is in; ``scores`` only exists on request.
        label: display name.
        unit: unit of the stored number ("1" for a plain ratio or score).
        shown_unit: unit it is shown in.
        scale: shown value = stored value times this.
        digits: digits after the point when shown.
        meaning: its meaning, in a sentence or two.
        formula: how it is computed.
        source: where the definition comes from.
        better: which direction is good.
        known: the end of the flow that knows it without the other's notes, or ``both``.
        least: its minimum, in the stored unit.
        most: its maximum.
        title: head of its column in a table of a run on the terminal.
        long_title: the head where ``title`` alone is ambiguous, or empty.
        study_title: head of its column in a table of a study, if not the label.
        shown: the views that show it.
    """

    name: str
    table: Literal["flows", "links", "gauges", "scores"]
    label: str
    unit: str
    shown_unit: str
    scale: float
    digits: int
    meaning: str
    formula: str
    source: str
    better: Better = "neither"
    known: Known = "both"
    least: float = 0.0
    most: float = math.inf
    title: str = ""
    long_title: str = ""
    study_title: str = ""
    shown: tuple[Shown, ...] = ()

    def show(self, value: float | None, *, unit: bool = False) -> str:
        """The value as text in the shown unit; a dash if there is none."""
        return self.quantity.show(value, unit=unit)

    @property
    def quantity(self) -> Quantity:
        """How its values are shown."""
        counted = self.unit if self.unit in ("packets", "frames", "bytes") else ""
        return Quantity(
            self.label, self.shown_unit, self.scale, self.digits, self.least, self.most, counted
        )

    @property
    def anchor(self) -> str:
        """The anchor of its explanation on a page; links and flows share column names."""
        return f"m-link-{self.name}" if self.table == "links" else f"m-{self.name}"

    @property
    def full_name(self) -> str:
        """Its name with its table's, unique among metrics with the same name."""
        return f"{self.table}.{self.name}"

    @property
    def names(self) -> frozenset[str]:
        """The names it can be requested by."""
        return frozenset({self.name, self.full_name})

    @property
    def of_links(self) -> bool:
        """Whether it is a metric of links rather than flows."""
        return self.table == "links"

    has_bins = False


@dataclass(frozen=True)
class Computed:
    """A metric computed from a run's tables on request.

    Attributes:
        name: its name in requests.
        shape: the table it is returned in: a row per packet, time bin, length or loss event of the
            packet table; per bin of the time series of a flow or link; per window of a call; per
            time scale; per flow.
        x: column of the x axis, empty for a number of a flow.
        y: column of the y axis.
        unit: unit of ``y``.
        formula: how it is computed.
        source: where the definition comes from.
        study: its letter in the list of the study of voice over transports, if any.
        bin_s: default bin width in seconds.
        display: how values of a number of a flow are shown.
        study_title: head of its column in a table of a study, if not the label.
        shown: the views that show it.
    """

    name: str
    shape: Shape
    x: str
    y: str
    unit: str
    formula: str
    source: str
    study: str = ""
    bin_s: float = 1.0
    display: Quantity | None = None
    study_title: str = ""
    shown: tuple[Shown, ...] = ()

    @property
    def full_name(self) -> str:
        """Its name."""
        return self.name

    @property
    def quantity(self) -> Quantity:
        """How its values are shown."""
        return self.display or BY_COLUMN[self.y]

    @property
    def label(self) -> str:
        """Display name."""
        return self.quantity.label

    @property
    def shown_unit(self) -> str:
        """Unit it is shown in."""
        return self.quantity.unit

    meaning = ""
    """The formula says it."""

    @property
    def anchor(self) -> str:
        """The anchor of its explanation on a page."""
        return f"m-computed-{self.name}"

    @property
    def names(self) -> frozenset[str]:
        """The names it can be requested by."""
        return frozenset({self.name, self.study} - {""})

    @property
    def needs_packets(self) -> bool:
        """Whether the run must have a packet table."""
        return (
            self.shape in ("packets", "over_time", "by_size", "losses") or self.name in OF_PACKETS
        )

    @property
    def of_links(self) -> bool:
        """Whether it is a metric of links rather than flows."""
        return self.shape == "links"

    @property
    def has_bins(self) -> bool:
        """Whether it is counted in time bins of selectable width."""
        # Of the metrics by size, only the maximum rate uses bins.
        over_time = self.shape in ("over_time", "series", "links", "calls")
        return over_time or self.y == "sent_max_bps"


OF_PACKETS = (
    "active_rate", "rate_over_run", "loss_event_rate", "link_wait", "packet_size_min",
    "packet_size_mean", "packet_size_max",
)  # fmt: skip
"""Metrics of other shapes that need the packet table."""
Metric = Column | Computed
