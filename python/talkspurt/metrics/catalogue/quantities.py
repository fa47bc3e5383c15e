"""Display of computed metrics: label, shown unit and range of each column that one can have.

Recorded columns come with their labels from the engine; the columns of computed tables are listed
here, so that figures and tables label both alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


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


def _ms(label: str) -> Quantity:
    return Quantity(label, "ms", 1e3, 1)


def _s(label: str) -> Quantity:
    return Quantity(label, "s", 1.0, 2)


def _kbps(label: str) -> Quantity:
    return Quantity(label, "kbit/s", 1e-3, 1)


def _packets(label: str) -> Quantity:
    return Quantity(label, "packets", 1.0, 1)


def _share(label: str) -> Quantity:
    return Quantity(label, "%", 100.0, 2, most=1.0)


BY_COLUMN = {
    "time_s": _s("time"),
    "sent_s": _s("time sent"),
    "received_s": _s("time received"),
    "scale_s": _s("time scale"),
    "number": Quantity("packet number", digits=0),
    "ip_bytes": Quantity("packet length", "bytes", 1.0, 0),
    "generated_bps": _kbps("generated rate"),
    "sent_bps": _kbps("sent rate"),
    "received_bps": _kbps("received rate"),
    "goodput_bps": _kbps("goodput"),
    "forwarded_bps": _kbps("forwarded rate"),
    "sent_max_bps": _kbps("sent rate, maximum"),
    "received_mean_bps": _kbps("received rate, mean"),
    "generated_pps": Quantity("generated units", "1/s", 1.0, 1),
    "received_pps": Quantity("received packets", "1/s", 1.0, 1),
    "generated_packets": _packets("generated"),
    "sent_packets": _packets("sent"),
    "received_packets": _packets("received"),
    "forwarded_packets": _packets("forwarded"),
    "lost_packets": _packets("lost"),
    "late_packets": _packets("late"),
    "discarded_packets": _packets("discarded"),
    "received_bytes": Quantity("bytes received", "kB", 1e-3, 1),
    "delay_s": _ms("delay"),
    "delay_min_s": _ms("delay, minimum"),
    "delay_mean_s": _ms("delay, mean"),
    "delay_max_s": _ms("delay, maximum"),
    "jitter_s": _ms("jitter"),
    "jitter_mean_s": _ms("jitter, mean"),
    "smoothed_jitter_s": _ms("smoothed jitter"),
    "processing_mean_s": _ms("processing time, mean"),
    "queueing_s": _ms("queueing delay"),
    "queueing_mean_s": _ms("queueing delay, mean"),
    "wait_mean_s": _ms("wait in the queue, mean"),
    "queue_packets": _packets("packets waiting"),
    "utilisation": _share("utilisation"),
    "drops": _packets("dropped"),
    "loss_event_rate": _share("loss event rate"),
    "throughput_ratio": Quantity("received rate / mean of all flows"),
    "bandwidth_utilisation": Quantity("sent rate / lowest link rate", "%", 100.0, 2),
    "mos": Quantity("MOS", digits=2, least=1.0, most=4.5),
    "r_factor": Quantity("R", digits=1, most=100.0),
    "loss_ratio": _share("unheard"),
    "cov": Quantity("coefficient of variation"),
}
"""The columns of computed tables."""

BY_NAME = {
    "rate_over_run": _kbps("received rate over the run"),
    "active_rate": _kbps("received rate while active"),
    "loss_event_rate": _share("loss event rate"),
    "delivery_ratio": _share("delivered"),
    "packet_size_min": Quantity("packet size, minimum", "bytes", 1.0, 0),
    "packet_size_mean": Quantity("packet size, mean", "bytes", 1.0, 1),
    "packet_size_max": Quantity("packet size, maximum", "bytes", 1.0, 0),
    "network_loss": _share("lost in the network"),
    "post_repair_loss": _share("lost after repair"),
    "playout_discards": _share("discarded by playout"),
    "oscillations": Quantity("oscillations", digits=1),
    "fairness": Quantity("fairness (Jain)", most=1.0),
    "least_over_greatest": Quantity("minimum / maximum throughput", most=1.0),
    "normalised_throughput": Quantity("throughput / fair share"),
    "equivalence": Quantity("equivalence ratio", most=1.0),
    "convergence": _s("convergence time"),
    "fair_convergence": _s("fair convergence time"),
    "circuit_breaker": _s("time of the circuit breaker"),
}
"""The computed metrics that are one number of a flow."""

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
