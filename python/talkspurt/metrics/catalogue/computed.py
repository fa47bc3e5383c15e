"""Metrics computed on request: name, shape, unit, formula and source.

The metrics of the original study of voice over transports (its list, a to bb) are cross-plots: each
names two columns of one table. Others are numbers per flow, or time series of flows, links and
calls. ``talkspurt.metrics.computing`` computes them.
"""

from __future__ import annotations

from collections.abc import Iterator

from talkspurt.metrics.catalogue.kinds import (
    BY_COLUMN,
    Computed,
    Quantity,
    Shape,
    Shown,
    kilobits,
    seconds,
    share,
)

_STUDY = "the list of the study of voice over transports, as TraceGraph draws it from ns-2's traces"
_ARRIVED = "bits that arrived in a bin over its width"
_SMOOTHED = "J := J + (|D| − J) / 16 (RFC 3550 A.8)"
_D = "|D| = |delay − delay of the packet that arrived before| (RFC 3550 §6.4.1)"


def _cross(
    letter: str, name: str, shape: Shape, x: str, y: str, unit: str, formula: str
) -> Computed:
    return Computed(name, shape, x, y, unit, formula, _STUDY, letter)


def _rmcat(name: str, y: str, unit: str, formula: str, item: str, bin_s: float = 1.0) -> Computed:
    source = f"RFC 8868 §3, item {item}"
    return Computed(name, "series", "time_s", y, unit, formula, source, bin_s=bin_s)


def _buffer(name: str, y: str, formula: str, counter: str) -> Iterator[Computed]:
    source = f"RTCInboundRtpStreamStats.{counter} (W3C, Identifiers for WebRTC's Statistics)"
    unit = "s" if y.endswith("_s") else "1"
    yield Computed(name, "flows", "", "value", unit, formula, source, display=BY_COLUMN[y])
    yield Computed(f"{name}_over_time", "calls", "time_s", y, unit,
                   f"{formula}, of what was played in a bin", source)  # fmt: skip


def _buffers() -> Iterator[Computed]:
    """The counters of jitter buffers; ``jitter_buffer.over_time`` computes them."""
    yield from _buffer(
        "jitter_buffer_delay",
        "jitter_buffer_delay_s",
        "mean time from the arrival of sound to its playout",
        "jitterBufferDelay / …EmittedCount",
    )
    yield from _buffer(
        "jitter_buffer_target",
        "jitter_buffer_target_delay_s",
        "mean target of the jitter buffer when sound arrived that was played",
        "jitterBufferTargetDelay / …EmittedCount",
    )
    yield from _buffer(
        "jitter_buffer_emitted",
        "jitter_buffer_emitted_s",
        "sound taken from the jitter buffer",
        "jitterBufferEmittedCount",
    )
    yield from _buffer(
        "concealed_sound",
        "concealed_s",
        "pauses of playout, and the time that lost or late frames took",
        "concealedSamples",
    )
    yield from _buffer(
        "silent_concealed_sound",
        "silent_concealed_s",
        "concealed sound after its fading: 60 ms "
        "(G.711 Appendix I); absent for codecs that conceal by themselves",
        "silentConcealedSamples",
    )
    yield from _buffer(
        "concealment_events",
        "concealment_events",
        "stretches of concealed sound",
        "concealmentEvents",
    )
    yield from _buffer(
        "inserted_sound",
        "inserted_s",
        "sound added by slower playout",
        "insertedSamplesForDeceleration",
    )
    yield from _buffer(
        "removed_sound", "removed_s", "sound removed by faster playout",
        "removedSamplesForAcceleration",
    )  # fmt: skip


COMPUTED: tuple[Computed, ...] = (
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
    _cross("r", "instant_throughput", "over_time", "time_s", "received_bps", "bit/s", _ARRIVED),
    _cross("s", "jitter_over_time", "packets", "received_s", "smoothed_jitter_s", "s", _SMOOTHED),
    _cross("t", "smoothed_jitter_vs_number", "packets", "number", "smoothed_jitter_s", "s",
           _SMOOTHED),
    _cross("u", "latency", "over_time", "time_s", "delay_max_s", "s",
           "greatest end-to-end delay of the arrivals of a bin"),
    _cross("v", "end_to_end_delay", "packets", "number", "delay_s", "s", "received − sent"),
    _cross("w", "traffic", "over_time", "time_s", "sent_bps", "bit/s",
           "bits sent in a bin over its width"),
    _cross("x", "throughput", "over_time", "time_s", "received_bps", "bit/s", _ARRIVED),
    _cross("y", "number_over_time", "packets", "sent_s", "number", "",
           "number of the packet, by when it was sent"),
    _cross("z", "size_vs_packet_delay", "packets", "ip_bytes", "delay_s", "s", "received − sent"),
    _cross("aa", "received_bit_rate", "over_time", "time_s", "received_bps", "bit/s", _ARRIVED),
    _cross("bb", "generated_number_over_time", "packets", "sent_s", "number", "",
           "number of the packet, by when it was sent; the study names y twice"),
    Computed("queueing_delay", "packets", "sent_s", "queueing_s", "s",
           "Σ over the links of its way of (transmission begins − packet comes to the queue)",
           "RFC 5166 §2.1"),
    Computed("mean_queueing_delay", "over_time", "time_s", "queueing_mean_s", "s",
           "mean of queueing_delay over the arrivals of a bin", "RFC 5166 §2.1"),
    Computed("loss_events", "losses", "time_s", "loss_event_rate", "1",
           "1 / weighted mean of the last eight loss intervals, after each loss event; from the "
           "packet table: an interval is the packets between the first losses of two events, "
           "losses within a round trip are one event, and the packets before the first loss are "
           "the oldest interval", "RFC 5348 §5.2 to 5.4"),
    Computed("loss_event_rate", "flows", "", "value", "1",
           "as loss_events, when the last packet has come, the interval still open counted if that "
           "lowers it; 0 without a loss. Beside it the gauge loss_event_rate is what a receiver of "
           "TFRC or CCID 3 kept itself", "RFC 5348 §5.2 to 5.4",
           display=share("loss event rate")),
    Computed("rate_over_run", "flows", "", "value", "bit/s",
           "bits received over the length of the run: all IP packets, as in active_rate",
           "talkspurt's own; studies call this, active_rate or throughput_bps throughput. The last "
           "is of packets with payload, over the window",
           display=kilobits("received rate over the run")),
    Computed("active_rate", "flows", "", "value", "bit/s",
           "bits received over the time from the first arrival to the last",
           "talkspurt's own; see rate_over_run",
           display=kilobits("received rate while active")),
    Computed("sent_packet_rate", "over_time", "time_s", "sent_packets", "packets",
           "IP packets sent in a bin, whatever they carry", _STUDY),
    Computed("forwarded_rate", "over_time", "time_s", "forwarded_bps", "bit/s",
           "bits that nodes between the ends sent on in a bin, each time, over its width", _STUDY),
    Computed("forwarded_packet_rate", "over_time", "time_s", "forwarded_packets", "packets",
           "packets that nodes between the ends sent on in a bin, each time", _STUDY),
    Computed("generating_rate", "series", "time_s", "generated_bps", "bit/s",
           "8 × bytes of application data that the source made in a bin / its width", _STUDY),
    _rmcat("sending_rate", "sent_bps", "bit/s", "8 × bytes sent in a bin / its width", "1", 0.2),
    _rmcat("receiving_rate", "received_bps", "bit/s",
           "8 × bytes received in a bin / its width", "1", 0.2),
    _rmcat("goodput_over_time", "goodput_bps", "bit/s",
           "8 × bytes delivered to the application in a bin / its width", "1", 0.2),
    _rmcat("sent_over_time", "sent_packets", "packets", "packets sent in a bin", "2"),
    _rmcat("received_over_time", "received_packets", "packets", "packets received in a bin", "2"),
    Computed("generated_vs_sent", "series", "generated_packets", "sent_packets", "packets",
           "packets sent against units the source made, in a bin: apart where a send queue holds "
           "or drops units, or a transport cuts, joins and repeats them", "talkspurt's own"),
    _rmcat("lost_over_time", "lost_packets", "packets",
           "packets that a link dropped in a bin", "5"),
    _rmcat("late_over_time", "late_packets", "packets",
           "frames of speech whose verdict in a bin was: after their playout. The playout buffer "
           "discards them", "5"),
    Computed("discarded_over_time", "series", "time_s", "discarded_packets", "packets",
           "units that the send queue dropped in a bin", "talkspurt's own count"),
    Computed("network_delay_over_time", "series", "time_s", "delay_mean_s", "s",
           "mean network delay of the packets with payload received in a bin", "RFC 7679"),
    Computed("delivery_ratio", "flows", "", "value", "1",
           "received_packets / sent_packets of the window: 1 − network_loss, less what was in "
           "flight when the run ended", "packet delivery ratio; talkspurt's own count",
           display=share("delivered"),
           shown=(Shown("study_flows", 1, 9, below=True), Shown("report_study", 9),
                  Shown("summary", 1))),
    Computed("packet_size_min", "flows", "", "value", "bytes",
           "least length of the IP packets sent, whatever they carry", _STUDY,
           display=Quantity("packet size, minimum", "bytes", 1.0, 0)),
    Computed("packet_size_mean", "flows", "", "value", "bytes",
           "mean length of the IP packets sent, whatever they carry", _STUDY,
           display=Quantity("packet size, mean", "bytes", 1.0, 1)),
    Computed("packet_size_max", "flows", "", "value", "bytes",
           "greatest length of the IP packets sent, whatever they carry", _STUDY,
           display=Quantity("packet size, maximum", "bytes", 1.0, 0)),
    Computed("network_loss", "flows", "", "value", "1",
           "lost_packets / sent_packets of the window", "RFC 5166 §2.1; RFC 8868 §3, item 5",
           display=share("lost in the network"),
           study_title="lost",
           shown=(Shown("study_flows", 2, 6, below=True), Shown("report_study", 10),
                  Shown("summary", 2))),
    Computed("post_repair_loss", "flows", "", "value", "1",
           "missing_packets / judged frames of speech: what no retransmission brought in the end. "
           "Judged frames are (missing + late) / loss_ratio", "RFC 8868 §3, item 6",
           display=share("lost after repair")),
    Computed("playout_discards", "flows", "", "value", "1",
           "late_packets / judged frames of speech",
           "RFC 8868 §3, item 5; discard rate of RFC 3611 §4.7.1",
           display=share("discarded by playout")),
    _rmcat("throughput_ratio", "throughput_ratio", "1",
           "bytes received in a bin / mean of all flows' in that bin. The ratio of two flows is "
           "that of theirs; the guideline is 1/3 to 3, at bins of 1, 5 and 20 s", "7"),
    Computed("oscillations", "flows", "", "value", "1",
           "how often the sending rate, in bins of 0.2 s, goes from twice its mean or more to half "
           "of it or less, or back, within 0.5 s", "RFC 8868 §3, item 9, whose example has "
           "watermarks a factor of 4 apart and says nothing of where",
           display=Quantity("oscillations", digits=1)),
    _rmcat("bandwidth_utilisation", "bandwidth_utilisation", "1",
           "bits sent in a bin / its width / the least rate of the links on the way", "10", 0.2),
    Computed("link_queue", "links", "time_s", "queue_packets", "packets",
           "∫ packets waiting dt / width of the bin", "talkspurt's own count"),
    Computed("link_wait", "links", "time_s", "wait_mean_s", "s",
           "mean of (transmission begins − packet comes), of packets that left the queue in a bin",
           "RFC 8289 (sojourn time)"),
    Computed("link_utilisation", "links", "time_s", "utilisation", "1",
           "time the transmitter was busy / width of the bin", "RFC 5166 §2.1"),
    Computed("link_drops", "links", "time_s", "drops", "packets",
           "packets dropped at the link in a bin, for whatever reason", "talkspurt's own count"),
    Computed("mos_over_time", "calls", "time_s", "mos", "MOS",
           "the E-model's MOS of the frames captured in a window, by their mean mouth-to-ear "
           "delay, share and burst ratio of what was concealed (frames missing or late, and "
           "pauses of playout), and codecs",
           "ITU-T G.107, window by window", bin_s=5.0),
    Computed("estimated_mos_over_time", "calls", "time_s", "estimated_mos", "MOS",
           "the estimated MOS of the frames captured in a window, as mos_over_time",
           "our fit, window by window: docs/validation/estimate.md", bin_s=5.0),
    Computed("r_over_time", "calls", "time_s", "r_factor", "1",
           "the E-model's R of the frames captured in a window, as mos_over_time",
           "ITU-T G.107, window by window", bin_s=5.0),
    Computed("unheard_over_time", "calls", "time_s", "loss_ratio", "1",
           "(missing + late) / judged, of the frames captured in a window",
           "as loss_ratio of flows", bin_s=5.0),
    Computed("fairness", "flows", "", "value", "1",
           "(Σ x)² / (n Σ x²) of the flows' throughputs in the window",
           "Jain, Chiu and Hawe 1984; RFC 5166 §2.3",
           display=Quantity("fairness (Jain)", most=1.0)),
    Computed("least_over_greatest", "flows", "", "value", "1",
           "least throughput / greatest, of all flows: ε-fair is 1 − ε or more", "RFC 5166 §2.3",
           display=Quantity("minimum / maximum throughput", most=1.0)),
    Computed("normalised_throughput", "flows", "", "value", "1",
           "throughput over the flow's max-min fair share of the links on its way, every flow "
           "taking what it can get; absent for a flow over a cell",
           "RFC 5166 §2.3; Bertsekas and Gallager 1992 §6.5.2",
           display=Quantity("throughput / fair share")),
    Computed("variation", "scales", "scale_s", "cov", "1",
           "standard deviation over mean of the received rate, averaged over each time scale",
           "Floyd, Handley, Padhye and Widmer 2000 §4.1.1; RFC 5166 §2.2"),
    Computed("equivalence", "flows", "", "value", "1",
           "mean of min(a/b, b/a) of this flow's and the first flow's received bytes, in seconds "
           "in which either received some", "Floyd, Handley, Padhye and Widmer 2000 §4.1.1",
           display=Quantity("equivalence ratio", most=1.0)),
    Computed("convergence", "flows", "", "value", "s",
           "time from the window's start until the received rate, in seconds, stays within 10 % of "
           "its mean over the last quarter of the window; absent if it never does",
           "RFC 8868 §3, item 8, and RFC 5166 §2.3 ask for convergence times and name no band",
           display=seconds("convergence time")),
    Computed("fair_convergence", "flows", "", "value", "s",
           "time from the window's start until this flow and the first receive, in a second, no "
           "more than (1 + δ)/2 of what both do, δ = 0.1; absent if they never do",
           "δ-fair convergence time: Bansal, Balakrishnan, Floyd and Shenker 2001; RFC 5166 §2.3",
           display=seconds("fair convergence time")),
    Computed("circuit_breaker", "flows", "", "value", "s",
           "when the flow would have had to stop: after an interval of RTCP, 5 s, in which it sent "
           "more than ten times s / (R √(2p/3)), or after the fifth in a row in which nothing "
           "arrived; absent if never. p is the share of its packets lost, averaged over the last "
           "three intervals by their lengths, from the fourth interval on; R is twice the mean "
           "delay of those that arrived",
           "RFC 8083 §4.2 and §4.3",
           display=seconds("time of the circuit breaker")),
    *_buffers(),
)  # fmt: skip
