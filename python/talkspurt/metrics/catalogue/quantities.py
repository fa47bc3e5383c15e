"""Display of computed metrics: label, shown unit and range of each column that one can have.

Recorded columns come with their labels from the engine; the columns of computed tables are listed
here, so that figures and tables label both alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial


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
"""A number of packets, which may be a mean."""
share = partial(Quantity, unit="%", scale=100.0, digits=2, most=1.0)
"""A ratio up to 1."""

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
    "r_factor": Quantity("R", digits=1, most=100.0),
    "loss_ratio": share("unheard"),
    "cov": Quantity("coefficient of variation"),
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
    "r_factor": "r_over_time",
    "loss_ratio": "unheard_over_time",
    "loss_event_rate": "gauges.loss_event_rate",
    "links.utilisation": "link_utilisation",
    "links.drops": "link_drops",
    "links.queue_mean_packets": "link_queue",
    "links.sojourn_mean_s": "link_wait",
}
"""The metric over time of a number of the whole run."""
