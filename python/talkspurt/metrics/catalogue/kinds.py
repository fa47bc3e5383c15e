"""What a metric is: a column that every run has, or something that is computed when asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "neither"]
Shape = Literal[
    "packets", "over_time", "by_size", "losses", "series", "links", "calls", "scales", "flows"
]


@dataclass(frozen=True)
class Column:
    """A metric that the engine computes in every run.

    Attributes:
        name: column in the table; in ``gauges`` the word in its column ``gauge``.
        table: the table it is in.
        label: what a person calls it.
        unit: unit of the stored number ("1" for a plain ratio or score).
        shown_unit: unit it is shown in.
        scale: shown value = stored value times this.
        digits: digits after the point when shown.
        meaning: what it says, in a sentence or two.
        formula: how it is computed.
        source: where the definition comes from.
        better: which way is good.
        least: the least it can be, in the stored unit.
        most: the most it can be.
    """

    name: str
    table: Literal["flows", "links", "gauges"]
    label: str
    unit: str
    shown_unit: str
    scale: float
    digits: int
    meaning: str
    formula: str
    source: str
    better: Better = "neither"
    least: float = 0.0
    most: float = math.inf

    def show(self, value: float | None, *, unit: bool = False) -> str:
        """The value as text in the shown unit; a dash where there is none."""
        if value is None or not math.isfinite(value):
            return "–"
        # Adding zero after rounding makes −0.00 what it is.
        rounded = round(value * self.scale, self.digits) + 0.0
        text = f"{rounded:,.{self.digits}f}".replace(",", "\u202f").replace("-", "−")
        return f"{text} {self.shown_unit}".rstrip() if unit else text

    @property
    def anchor(self) -> str:
        """What its explanation is found by on a page; links and flows have columns of one name."""
        return f"m-link-{self.name}" if self.table == "links" else f"m-{self.name}"

    @property
    def full_name(self) -> str:
        """Its name with its table's, which distinguishes it from others of the same name."""
        return f"{self.table}.{self.name}"

    @property
    def names(self) -> frozenset[str]:
        """What it is asked for by."""
        return frozenset({self.name, self.full_name})

    @property
    def of_links(self) -> bool:
        """Whether it is of links in the place of flows."""
        return self.table == "links"

    @property
    def has_bins(self) -> bool:
        """Whether it is counted in bins of time, whose width may be chosen."""
        return False


@dataclass(frozen=True)
class Computed:
    """A metric that is computed from a run's tables when somebody asks for it.

    Attributes:
        name: what it is asked for by.
        shape: the table it comes in: a row for each packet, bin of time, length or loss event of
            the packet table; for each bin of the time series of a flow or link; for each window of
            a call; for each time scale; for each flow.
        x: column along the figure, empty for a number of a flow.
        y: column up the figure.
        unit: unit of ``y``.
        formula: how it is computed.
        source: where the definition comes from.
        study: its letter in the list of the study of voice over transports, if it has one.
        bin_s: width of a bin in seconds, unless another is asked for.
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

    @property
    def full_name(self) -> str:
        """Its name."""
        return self.name

    @property
    def names(self) -> frozenset[str]:
        """What it is asked for by."""
        return frozenset({self.name, self.study} - {""})

    @property
    def needs_packets(self) -> bool:
        """Whether the run must have a packet table."""
        return self.shape in ("packets", "over_time", "by_size", "losses") or self.name in (
            "active_rate",
            "rate_over_run",
            "loss_event_rate",
            "link_wait",
        )

    @property
    def of_links(self) -> bool:
        """Whether it is of links in the place of flows."""
        return self.shape == "links"

    @property
    def has_bins(self) -> bool:
        """Whether it is counted in bins of time, whose width may be chosen."""
        # Of what is known by size only the greatest rate is that of a bin.
        over_time = self.shape in ("over_time", "series", "links", "calls")
        return over_time or self.y == "sent_max_bps"


Metric = Column | Computed
