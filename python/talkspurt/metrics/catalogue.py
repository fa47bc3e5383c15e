"""The catalogue of what is computed when asked for: name, unit, formula, source, and how to get it.

The measures of the study of voice over transports that this laboratory grew from (its list, a to
bb) are cross-plots: each names two columns of one table. The others are numbers of flows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from talkspurt.metrics import breaker, packets, sharing

if TYPE_CHECKING:
    from talkspurt.result import Result

Shape = Literal["packets", "over_time", "by_size", "flows", "scales"]


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: what it is asked for by.
        shape: the table it comes in: a row a packet, a bin of time, a length, a flow, a time scale.
        x: column along the figure, empty for a number of a flow.
        y: column up the figure.
        unit: unit of ``y``.
        formula: how it is computed.
        source: where the definition comes from.
        study: its letter in the list of the study of voice over transports, if it has one.
    """

    name: str
    shape: Shape
    x: str
    y: str
    unit: str
    formula: str
    source: str
    study: str = ""

    @property
    def needs_packets(self) -> bool:
        """Whether the run must have a packet table."""
        return self.shape in ("packets", "over_time", "by_size") or self.name in ("active_rate",)


_STUDY = "the list of the study of voice over transports, as TraceGraph draws it from ns-2's traces"
_D = "|D| = |delay − delay of the packet that arrived before| (RFC 3550 §6.4.1)"


def _cross(letter: str, name: str, shape: Shape, x: str, y: str, unit: str, formula: str) -> Metric:
    return Metric(name, shape, x, y, unit, formula, _STUDY, letter)


ALL: tuple[Metric, ...] = (
    _cross("a", "sent_rate_vs_jitter", "over_time", "sent_bps", "jitter_mean_s", "s", _D),
    _cross("b", "generated_rate", "over_time", "time_s", "generated_pps", "packets/s",
           "units the source made in a bin over its width"),
    _cross("c", "received_packet_rate", "over_time", "time_s", "received_pps", "packets/s",
           "IP packets that arrived in a bin over its width"),
    _cross("d", "jitter_vs_number", "packets", "number", "jitter_s", "s", _D),
    _cross("e", "size_vs_greatest_rate", "by_size", "ip_bytes", "sent_max_bps", "bit/s",
           "bits sent in packets of this length in the busiest bin, over its width"),
    _cross("f", "size_vs_received_rate", "by_size", "ip_bytes", "received_mean_bps", "bit/s",
           "bits received in packets of this length, over the run"),
    _cross("g", "received_rate_vs_least_delay", "over_time", "received_bps", "delay_min_s", "s",
           "least end-to-end delay of the arrivals of a bin"),
    _cross("h", "received_rate_vs_jitter", "over_time", "received_bps", "jitter_mean_s", "s", _D),
    _cross("i", "forwarded_rate_vs_processing", "over_time", "forwarded_bps",
           "processing_mean_s", "s", "time from reaching a node to leaving its queue, of all nodes "
           "between the ends, mean of the arrivals of a bin"),
    _cross("j", "size_vs_received_packets", "by_size", "ip_bytes", "received_packets", "packets",
           "packets of this length received; the study names f twice"),
    _cross("k", "size_vs_delay", "by_size", "ip_bytes", "delay_mean_s", "s",
           "mean end-to-end delay of packets of this length"),
    _cross("l", "received_bytes", "packets", "received_s", "received_bytes", "bytes",
           "sum of the lengths of all that has arrived"),
    _cross("m", "delay_over_time", "packets", "sent_s", "delay_s", "s",
           "received − sent, from the first link to the end of the last"),
    _cross("n", "delay_vs_number", "packets", "number", "delay_s", "s", "received − sent"),
    _cross("o", "mean_delay", "over_time", "time_s", "delay_mean_s", "s",
           "mean of received − sent over the arrivals of a bin"),
    _cross("p", "instant_delay", "packets", "received_s", "delay_s", "s", "received − sent"),
    _cross("q", "instant_jitter", "packets", "received_s", "jitter_s", "s", _D),
    _cross("r", "instant_throughput", "over_time", "time_s", "received_bps", "bit/s",
           "bits that arrived in a bin over its width"),
    _cross("s", "jitter_over_time", "packets", "received_s", "smoothed_jitter_s", "s",
           "J := J + (|D| − J) / 16 (RFC 3550 A.8)"),
    _cross("t", "smoothed_jitter_vs_number", "packets", "number", "smoothed_jitter_s", "s",
           "J := J + (|D| − J) / 16 (RFC 3550 A.8)"),
    _cross("u", "latency", "over_time", "time_s", "delay_max_s", "s",
           "greatest end-to-end delay of the arrivals of a bin"),
    _cross("v", "end_to_end_delay", "packets", "number", "delay_s", "s", "received − sent"),
    _cross("w", "traffic", "over_time", "time_s", "sent_bps", "bit/s",
           "bits sent in a bin over its width"),
    _cross("x", "throughput", "over_time", "time_s", "received_bps", "bit/s",
           "bits that arrived in a bin over its width"),
    _cross("y", "number_over_time", "packets", "sent_s", "number", "",
           "number of the packet, by when it was sent"),
    _cross("z", "size_vs_packet_delay", "packets", "ip_bytes", "delay_s", "s", "received − sent"),
    _cross("aa", "received_bit_rate", "over_time", "time_s", "received_bps", "bit/s",
           "bits that arrived in a bin over its width"),
    _cross("bb", "generated_number_over_time", "packets", "sent_s", "number", "",
           "number of the packet, by when it was sent; the study names y twice"),
    Metric("active_rate", "flows", "", "value", "bit/s",
           "bits received over the time from the first arrival to the last",
           "beside throughput_bps, which is over the window; studies call both throughput"),
    Metric("fairness", "flows", "", "value", "1",
           "(Σ x)² / (n Σ x²) of the flows' throughputs in the window",
           "Jain, Chiu and Hawe 1984; RFC 5166 §2.4"),
    Metric("normalised_throughput", "flows", "", "value", "1",
           "throughput over the flow's max-min fair share of the links on its way, every flow "
           "taking what it can get; absent for a flow over a cell",
           "RFC 5166 §2.4; Bertsekas and Gallager 1992 §6.5.2"),
    Metric("variation", "scales", "scale_s", "cov", "1",
           "standard deviation over mean of the received rate, averaged over each time scale",
           "Floyd, Handley, Padhye and Widmer 2000 §4.1.1"),
    Metric("equivalence", "flows", "", "value", "1",
           "mean of min(a/b, b/a) of this flow's and the first flow's received bytes, in seconds "
           "in which either received some", "Floyd, Handley, Padhye and Widmer 2000 §4.1.1"),
    Metric("convergence", "flows", "", "value", "s",
           "time from the window's start until the received rate, in seconds, stays within 10 % of "
           "its mean over the last quarter of the window; absent if it never does",
           "RFC 5166 §2.5 asks for convergence times and names no band"),
    Metric("circuit_breaker", "flows", "", "value", "s",
           "when the flow would have had to stop: after three intervals of RTCP in a row, 5 s "
           "each, in each of which it sent more than ten times s / (R √(2p/3)), or nothing "
           "arrived; absent if never. p is the share of its packets lost in the interval, R twice "
           "the mean delay of those that arrived, or the last known",
           "RFC 8083 §4.1 and §4.3"),
)  # fmt: skip


def metric(name: str) -> Metric:
    """The metric of this name, or with this letter in the study's list.

    Raises:
        KeyError: when there is none; names the nearest.
    """
    import difflib

    for one in ALL:
        if name in (one.name, one.study):
            return one
    near = difflib.get_close_matches(name, [one.name for one in ALL], 1)
    hint = f"; did you mean {near[0]!r}?" if near else "; `talkspurt metrics` lists them"
    raise KeyError(f"no metric {name!r}{hint}")


def compute(result: Result, name: str, flow: str | None = None, bin_s: float = 1.0) -> pl.DataFrame:
    """A metric of one flow, or of all: the columns ``flow``, x (if there is one) and y.

    Raises:
        KeyError: when there is no such metric or flow, or no packet table that it needs.
        ValueError: when a bin is no multiple of those of the series that a metric needs.
    """
    one = metric(name)
    names = [flow] if flow is not None else result.flows["name"].to_list()
    for wanted in names:
        if wanted not in result.flows["name"]:
            there = ", ".join(result.flows["name"])
            raise KeyError(f"no flow {wanted!r}; there are: {there}")
    if one.needs_packets and not _has_packets(result):
        raise KeyError(
            f"{one.name} is computed from the packet table: run again with "
            "--set record.packets=true"
        )
    parts = []
    for wanted in names:
        table = _table(result, one, wanted, bin_s)
        if one.y == "generated_pps" and table[one.y].null_count() == table.height:
            raise ValueError(
                f"{one.name} comes from the time series: a bin of {bin_s:g} s is no multiple of "
                f"record.interval, {sharing.bin_width(result):g} s"
            )
        across = [one.x] if one.x else []
        parts.append(table.select(pl.lit(wanted).alias("flow"), *across, one.y))
    return pl.concat(parts, how="vertical_relaxed")


def _has_packets(result: Result) -> bool:
    try:
        result.table("packets")
    except KeyError:
        return False
    return True


def _table(result: Result, one: Metric, flow: str, bin_s: float) -> pl.DataFrame:
    name, _, back = flow.rpartition(".") if flow.endswith(".reverse") else (flow, "", "")
    side = "to" if back else "from"
    if one.shape == "packets":
        return packets.life(result, name, side)
    if one.shape == "over_time":
        return packets.over_time(result, name, side, bin_s)
    if one.shape == "by_size":
        return packets.by_size(result, name, side, bin_s)
    if one.shape == "scales":
        return sharing.variation_over_scales(result, flow)
    value = _NUMBERS[one.name](result, flow)
    number = None if value is None or math.isnan(value) else value
    return pl.DataFrame({"value": [number]}, schema={"value": pl.Float64})


def _active(result: Result, flow: str) -> float:
    name, _, back = flow.rpartition(".") if flow.endswith(".reverse") else (flow, "", "")
    return sharing.active_throughput_bps(result, name, "to" if back else "from")


def _throughputs(result: Result) -> list[float]:
    return [float(rate or 0.0) for rate in result.flows["throughput_bps"]]


def _a_second(result: Result) -> int:
    return max(1, round(1.0 / sharing.bin_width(result)))


def _equivalence(result: Result, flow: str) -> float:
    first = result.flows["name"][0]
    mine, its = sharing.rates(result, flow), sharing.rates(result, first)
    return sharing.equivalence(mine, its, _a_second(result))


def _convergence(result: Result, flow: str) -> float | None:
    values, bins = sharing.rates(result, flow), _a_second(result)
    seconds = [
        math.fsum(values[i : i + bins]) / bins for i in range(0, len(values) - bins + 1, bins)
    ]
    if len(seconds) < 4:
        return None
    end = seconds[-(len(seconds) // 4) :]
    width = bins * sharing.bin_width(result)
    times = [i * width for i in range(len(seconds))]
    target = math.fsum(end) / len(end)
    return sharing.converged_s(times, seconds, target) if target else None


_NUMBERS: dict[str, Callable[[Result, str], float | None]] = {
    "active_rate": _active,
    "fairness": lambda result, _: sharing.jain(_throughputs(result)),
    "normalised_throughput": sharing.normalised_throughput,
    "equivalence": _equivalence,
    "convergence": _convergence,
    "circuit_breaker": breaker.stopped_s,
}
