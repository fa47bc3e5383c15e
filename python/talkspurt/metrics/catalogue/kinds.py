"""Kinds of metrics: a column present in every run, or a value computed on request.

Recorded columns come with their labels from the engine; the columns of computed tables are listed
here, so that figures and tables label both alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

Better = Literal["higher", "lower", "neither"]
Known = Literal["sender", "receiver", "both"]
Shape = Literal[
    "packets", "over_time", "by_size", "losses", "series", "links", "calls", "scales", "flows"
]


@dataclass(frozen=True)
class Quantity:
    """How a number is shown.

    Attributes:
        label: its name.
        unit: unit it is shown in; empty for a plain number.
        scale: shown value = stored value times this.
        digits: digits after the point in a table.
        least: its minimum, in the stored unit.
        most: its maximum.
        counted: what it counts, which an axis has as its unit and a table does not repeat.
    """

    label: str
    unit: str = ""
    scale: float = 1.0
    digits: int = 3
    least: float = 0.0
    most: float = math.inf
    counted: str = ""

    @property
    def head(self) -> str:
        """The label of an axis: name and unit."""
        unit = self.unit or ("" if self.counted in self.label else self.counted)
        return f"{self.label} / {unit}" if unit else self.label

    def show(self, value: float | None, *, unit: bool = False) -> str:
        """The value as text in the shown unit; a dash if there is none."""
        if value is None or not math.isfinite(value):
            return "–"
        # Adding zero after rounding turns −0.00 into 0.00.
        rounded = round(value * self.scale, self.digits) + 0.0
        text = f"{rounded:,.{self.digits}f}".replace(",", "\u202f").replace("-", "−")
        return f"{text} {self.unit}".rstrip() if unit else text


milliseconds = partial(Quantity, unit="ms", scale=1e3, digits=1)
seconds = partial(Quantity, unit="s", digits=2)
kilobits = partial(Quantity, unit="kbit/s", scale=1e-3, digits=1)
packets = partial(Quantity, unit="packets", digits=1)
share = partial(Quantity, unit="%", scale=100.0, digits=2, most=1.0)

BY_COLUMN = {
    "time_s": seconds("time"),
    "sent_s": seconds("time sent"),
    "received_s": seconds("time received"),
    "scale_s": seconds("time scale"),
    "number": Quantity("packet number", digits=0),
    "ip_bytes": Quantity("packet length", "bytes", 1.0, 0),
    "generated_bps": kilobits("generated rate"),
    "sent_bps": kilobits("sent rate"),
    "received_bps": kilobits("received rate"),
    "goodput_bps": kilobits("goodput"),
    "forwarded_bps": kilobits("forwarded rate"),
    "sent_max_bps": kilobits("sent rate, maximum"),
    "received_mean_bps": kilobits("received rate, mean"),
    "generated_pps": Quantity("generated units", "1/s", 1.0, 1),
    "received_pps": Quantity("received packets", "1/s", 1.0, 1),
    "generated_packets": packets("generated"),
    "sent_packets": packets("sent"),
    "received_packets": packets("received"),
    "forwarded_packets": packets("forwarded"),
    "lost_packets": packets("lost"),
    "late_packets": packets("late"),
    "discarded_packets": packets("discarded"),
    "received_bytes": Quantity("bytes received", "kB", 1e-3, 1),
    "delay_s": milliseconds("delay"),
    "delay_min_s": milliseconds("delay, minimum"),
    "delay_mean_s": milliseconds("delay, mean"),
    "delay_max_s": milliseconds("delay, maximum"),
    "jitter_s": milliseconds("jitter"),
    "jitter_mean_s": milliseconds("jitter, mean"),
    "smoothed_jitter_s": milliseconds("smoothed jitter"),
    "processing_mean_s": milliseconds("processing time, mean"),
    "queueing_s": milliseconds("queueing delay"),
    "queueing_mean_s": milliseconds("queueing delay, mean"),
    "wait_mean_s": milliseconds("wait in the queue, mean"),
    "queue_packets": packets("packets waiting"),
    "utilisation": share("utilisation"),
    "drops": packets("dropped"),
    "loss_event_rate": share("loss event rate"),
    "throughput_ratio": Quantity("received rate / mean of all flows"),
    "bandwidth_utilisation": Quantity("sent rate / lowest link rate", "%", 100.0, 2),
    "mos": Quantity("MOS", digits=2, least=1.0, most=4.5),
    "estimated_mos": Quantity("estimated MOS", digits=2, least=1.0, most=4.5),
    "r_factor": Quantity("R", digits=1, most=100.0),
    "loss_ratio": share("unheard"),
    "cov": Quantity("coefficient of variation"),
    "jitter_buffer_delay_s": milliseconds("wait in the jitter buffer"),
    "jitter_buffer_target_delay_s": milliseconds("target of the jitter buffer"),
    "jitter_buffer_emitted_s": seconds("sound from the jitter buffer"),
    "concealed_s": seconds("concealed sound"),
    "silent_concealed_s": seconds("silent concealed sound"),
    "concealment_events": Quantity("concealment events", digits=0),
    "inserted_s": milliseconds("sound added by slower playout"),
    "removed_s": milliseconds("sound removed by faster playout"),
}
"""The columns of computed tables."""

OVER_TIME = {
    "generated_packets": "generating_rate",
    "sent_packets": "sent_over_time",
    "sent_bytes": "sending_rate",
    "received_packets": "received_over_time",
    "received_bytes": "receiving_rate",
    "throughput_bps": "receiving_rate",
    "goodput_bps": "goodput_over_time",
    "delay_mean_s": "network_delay_over_time",
    "delay_p50_s": "network_delay_over_time",
    "jitter_s": "gauges.jitter",
    "lost_packets": "lost_over_time",
    "late_packets": "late_over_time",
    "discarded_packets": "discarded_over_time",
    "mos": "mos_over_time",
    "estimated_mos": "estimated_mos_over_time",
    "r_factor": "r_over_time",
    "loss_ratio": "unheard_over_time",
    "loss_event_rate": "gauges.loss_event_rate",
    "links.utilisation": "link_utilisation",
    "links.drops": "link_drops",
    "links.queue_mean_packets": "link_queue",
    "links.sojourn_mean_s": "link_wait",
}


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
        bound: the metric that bounds it from above outside the range of its model, and equals it
            inside; empty without a model.
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
    bound: str = ""
    title: str = ""
    long_title: str = ""
    study_title: str = ""
    shown: tuple[Shown, ...] = ()

    def show(self, value: float | None, *, unit: bool = False) -> str:
        """The value as text in the shown unit; a dash if there is none."""
        return self.quantity.show(value, unit=unit)

    def outside(self, row: Mapping[str, Any]) -> float | None:
        """The bound of its value in a row, if that is outside the range of its model."""
        # Results of earlier versions have no bounds.
        value, bound = row.get(self.name), row.get(self.bound)
        return bound if value is not None and bound is not None and bound > value else None

    def of(self, row: Mapping[str, Any], *, unit: bool = False) -> str:
        """Its value in a row as text; outside the range of its model, "<" and its bound."""
        bound = self.outside(row)
        return self.show(row[self.name], unit=unit) if bound is None else f"<{self.show(bound)}"

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
Metric = Column | Computed
