"""The catalogue of measures: what each number is, its unit, its formula and where that is from.

The report, the documentation, the figures and the tables on the terminal all read it from here,
so that a measure is explained once and in the same words everywhere. Names are those of the
columns of the ``flows`` and ``links`` tables, and of the gauges in the ``gauges`` table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True)
class Measure:
    """One measure.

    Attributes:
        name: column in the table; in ``gauges`` the word in its column ``gauge``.
        table: the table it stands in.
        label: what a person calls it.
        unit: unit of the stored number ("1" for a plain ratio or score).
        shown_unit: unit it is shown in.
        scale: shown value = stored value times this.
        digits: digits after the point when shown.
        meaning: what it says, in a sentence or two.
        formula: how it is computed.
        source: where the definition comes from.
        better: which way is good.
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

    def show(self, value: float | None, *, unit: bool = False) -> str:
        """The value as text in the shown unit; a dash where there is none."""
        if value is None or not math.isfinite(value):
            return "–"
        text = f"{value * self.scale:,.{self.digits}f}".replace(",", "\u202f")
        return f"{text} {self.shown_unit}".rstrip() if unit else text

    @property
    def anchor(self) -> str:
        """What its explanation is found by on a page; links and flows have columns of one name."""
        return f"m-link-{self.name}" if self.table == "links" else f"m-{self.name}"


def _seconds(name: str, label: str, meaning: str, formula: str, source: str) -> Measure:
    return Measure(name, "flows", label, "s", "ms", 1e3, 1, meaning, formula, source, "lower")


def _packets(
    name: str, label: str, meaning: str, formula: str, better: Better = "neither"
) -> Measure:
    own = "talkspurt's own count"
    return Measure(name, "flows", label, "packets", "", 1, 0, meaning, formula, own, better)


def _frames(
    name: str, label: str, meaning: str, formula: str, better: Better = "neither"
) -> Measure:
    own = "talkspurt's own count"
    return Measure(name, "flows", label, "frames", "", 1, 0, meaning, formula, own, better)


def _bytes(name: str, label: str, meaning: str, formula: str) -> Measure:
    own = "talkspurt's own count, of packets with payload"
    return Measure(name, "flows", label, "bytes", "B", 1, 0, meaning, formula, own)


def _points(name: str, label: str, meaning: str, formula: str) -> Measure:
    source = "ITU-T G.107 §7; shares after Shapley (1953), so that they add up"
    return Measure(name, "flows", label, "MOS", "", 1, 2, meaning, formula, source, "lower")


def _link(
    name: str, label: str, unit: str, scale: float, digits: int, meaning: str, formula: str
) -> Measure:
    shown = {"1": "%", "packets": "", "bytes": "", "bit/s": "kbit/s", "s": "ms"}[unit]
    own = "talkspurt's own count"
    return Measure(name, "links", label, unit, shown, scale, digits, meaning, formula, own)


ALL: tuple[Measure, ...] = (
    _packets(
        "generated_packets",
        "generated",
        "Units of data the source made in the window: frames of speech, packets of a constant or "
        "on/off source, segments' worth of bulk data.",
        "generated = queued + handed to the transport + discarded by the send queue",
    ),
    _packets(
        "queued_packets",
        "still queued",
        "Units that waited for the transport when the run ended.",
        "counted at the end of the run",
    ),
    _packets(
        "discarded_packets",
        "discarded",
        "Units the full send queue threw away because the transport had no room.",
        "counted when dropped",
        "lower",
    ),
    _packets(
        "sent_packets",
        "sent",
        "IP packets with payload that left the sender; with TCP, retransmissions count again.",
        "sent = received + lost + in flight",
    ),
    _packets(
        "received_packets",
        "received",
        "IP packets with payload that reached the other end.",
        "counted on arrival",
    ),
    _packets(
        "lost_packets",
        "lost",
        "IP packets with payload that the network dropped: full queues, the medium, outages, or "
        "being longer than a link takes.",
        "lost = sent − received − in flight",
        "lower",
    ),
    _packets(
        "in_flight_packets",
        "in flight",
        "IP packets with payload still on their way when the run ended.",
        "counted at the end of the run",
    ),
    _packets(
        "control_packets",
        "control",
        "Packets without payload: connection set-up, pure acknowledgements, RTCP reports.",
        "counted apart from sent packets",
    ),
    _bytes(
        "sent_bytes",
        "bytes sent",
        "Bytes of the IP packets with payload that left the sender, headers included.",
        "payload + media headers + transport headers + network headers",
    ),
    _bytes(
        "received_bytes",
        "bytes received",
        "Bytes of the IP packets with payload, of those sent in the window, that reached the other "
        "end, headers included.",
        "Σ IP length of received packets",
    ),
    _bytes(
        "payload_bytes",
        "payload",
        "Data that was sent, each time it was sent: speech, and with TCP its framing and "
        "retransmissions.",
        "bytes of transport payload − media headers",
    ),
    _bytes(
        "media_header_bytes",
        "media headers",
        "Headers of RTP around the speech and, in a byte stream, the length before each packet "
        "(RFC 4571). What TCP sends again counts as payload.",
        "12 bytes a frame over UDP, 14 in a stream",
    ),
    _bytes(
        "transport_header_bytes",
        "transport headers",
        "Headers of UDP or TCP, options included.",
        "UDP: 8 bytes a packet; TCP: 20 bytes and its options",
    ),
    _bytes(
        "network_header_bytes",
        "network headers",
        "Headers of IP. Those of the links below are not counted.",
        "IPv4: 20 bytes a packet; IPv6: 40 bytes",
    ),
    Measure(
        "goodput_bps",
        "flows",
        "goodput",
        "bit/s",
        "kbit/s",
        1e-3,
        1,
        "Data handed to the receiving application, each byte once: headers and retransmissions "
        "do not count.",
        "8 × payload bytes delivered in the window ÷ length of the window",
        "RFC 2647 §3.17",
        "higher",
    ),
    Measure(
        "throughput_bps",
        "flows",
        "throughput",
        "bit/s",
        "kbit/s",
        1e-3,
        1,
        "IP bytes that arrived, headers and retransmissions included.",
        "8 × IP bytes received in the window ÷ length of the window",
        "RFC 5136 §2.3",
    ),
    _seconds(
        "delay_min_s",
        "delay, least",
        "The fastest data packet.",
        "minimum of arrival − departure",
        "RFC 7679 §5.3",
    ),
    _seconds(
        "delay_mean_s",
        "delay, mean",
        "One-way network delay of data packets: from leaving the sender to arrival. Waiting in "
        "the sender's own queue is not in it.",
        "mean of arrival − departure",
        "RFC 7679",
    ),
    _seconds(
        "delay_p50_s",
        "delay, median",
        "Half the data packets crossed the network faster than this, from leaving the sender to "
        "arrival. Waiting in the sender's own queue is not in it.",
        "50th percentile of arrival − departure",
        "RFC 7679 §5.1",
    ),
    _seconds(
        "delay_p95_s",
        "delay, 95 %",
        "Nineteen of twenty data packets crossed the network faster than this.",
        "95th percentile of arrival − departure",
        "RFC 7679 §5.1",
    ),
    _seconds(
        "delay_p99_s",
        "delay, 99 %",
        "Ninety-nine of a hundred data packets crossed the network faster than this.",
        "99th percentile of arrival − departure",
        "RFC 7679 §5.1",
    ),
    _seconds(
        "delay_max_s",
        "delay, longest",
        "The slowest data packet that arrived.",
        "maximum of arrival − departure",
        "RFC 7679",
    ),
    _seconds(
        "jitter_s",
        "jitter",
        "How unevenly packets arrive: the smoothed difference between the spacing of arrivals "
        "and the spacing of departures.",
        "J ← J + (|D| − J) / 16, averaged over the window",
        "RFC 3550 §6.4.1 and A.8",
    ),
    _seconds(
        "mouth_to_ear_p50_s",
        "mouth to ear",
        "What the speakers notice: from a sound's capture to its playing at the far end. "
        "Packetisation, send queue, handshake, network, and the jitter buffer are all in it, and "
        "the 3.75 ms by which concealment after G.711 Appendix I holds speech back, where it runs.",
        "median of (playout of a frame's first sample − its capture)",
        "ITU-T G.114 §1",
    ),
    _seconds(
        "mouth_to_ear_max_s",
        "mouth to ear, longest",
        "The longest time from a sound's capture to its playing.",
        "maximum of (playout of a frame's first sample − its capture)",
        "ITU-T G.114 §1",
    ),
    _packets(
        "late_packets",
        "late",
        "Voice frames that arrived after the moment they should have been played, and are thus "
        "as good as lost.",
        "delivered after their playout instant",
        "lower",
    ),
    _packets(
        "missing_packets",
        "missing",
        "Voice frames never delivered: lost, discarded, or still waiting or on their way when they "
        "should have been played. Those whose turn would have come after the end of the run are "
        "not judged.",
        "judged frames − delivered frames",
        "lower",
    ),
    Measure(
        "loss_ratio",
        "flows",
        "lost or late",
        "1",
        "%",
        100,
        2,
        "Share of voice frames the listener did not hear, for whatever reason.",
        "(missing + late) ÷ judged frames",
        "ITU-T G.107 §7.4 (Ppl); loss and discard as in RFC 3611 §4.7.1",
        "lower",
    ),
    Measure(
        "burst_ratio",
        "flows",
        "burst ratio",
        "1",
        "",
        1,
        2,
        "Whether losses come in runs: 1 when they fall at random, more when they cluster.",
        "mean length of a run of losses × (1 − loss ratio)",
        "ITU-T G.107 §7.4 (BurstR)",
        "lower",
    ),
    Measure(
        "longest_gap_s",
        "flows",
        "longest gap",
        "s",
        "s",
        1,
        2,
        "The longest stretch of speech of which the listener heard nothing. The speaker's own "
        "pauses are not counted.",
        "sum of the lengths of consecutive frames missing or late, of the longest such run",
        "talkspurt's own measure",
        "lower",
    ),
    _frames(
        "video_frames",
        "frames",
        "Frames of video (of a replay: packets with one timestamp) captured in the window. Those "
        "that were not complete and whose deadline would have come after the end of the run are "
        "not counted.",
        "runs of packets made at one instant of capture",
    ),
    _frames(
        "video_frames_complete",
        "complete",
        "Frames of which every packet was delivered, late or not.",
        "frames with as many packets delivered as made",
        "higher",
    ),
    _frames(
        "video_frames_late",
        "late",
        "Complete frames whose last packet came after the deadline.",
        "delivery of the last packet − capture > deadline",
        "lower",
    ),
    _seconds(
        "frame_delay_p50_s",
        "frame delay, median",
        "From a frame's capture to the delivery of its last packet: send queue, the time its "
        "packets take one after another, network and what the transport does about losses.",
        "median over the complete frames",
        "talkspurt's own measure",
    ),
    _seconds(
        "frame_delay_p95_s",
        "frame delay, 95 %",
        "Nineteen of twenty complete frames took no longer than this.",
        "95th percentile over the complete frames",
        "talkspurt's own measure",
    ),
    _seconds(
        "frame_delay_max_s",
        "frame delay, longest",
        "The slowest frame that was completed.",
        "maximum over the complete frames",
        "talkspurt's own measure",
    ),
    Measure(
        "r_factor",
        "flows",
        "R",
        "1",
        "",
        1,
        1,
        "The E-model's rating of the call, 0 to 100, from delay, loss and codec. 93.2 is a call "
        "with nothing wrong, and 0 is as bad as it gets, however little was heard. It is a "
        "planning estimate, not a listening test.",
        "R = Ro − Is − Id − Ie,eff + A, kept within 0 … 100",
        "ITU-T G.107 §7.1",
        "higher",
    ),
    Measure(
        "mos",
        "flows",
        "MOS",
        "MOS",
        "",
        1,
        2,
        "The mean opinion the E-model expects of a conversation, 1 (bad) to 4.5 (as good as "
        "telephone speech gets).",
        "MOS = 1 + 0.035 R + R (R − 60)(100 − R) · 7·10⁻⁶",
        "ITU-T G.107 Annex B",
        "higher",
    ),
    _points(
        "mos_lost_to_delay",
        "lost to delay",
        "Points of MOS that the mouth-to-ear delay cost.",
        "MOS gained by taking delay and echo away, averaged over the orders of taking causes away",
    ),
    _points(
        "mos_lost_to_loss",
        "lost to loss",
        "Points of MOS that lost and late frames cost.",
        "MOS gained by taking loss away, averaged over the orders of taking causes away",
    ),
    _points(
        "mos_lost_to_codec",
        "lost to codec",
        "Points of MOS that the codec itself cost; G.711 is the reference and costs none.",
        "MOS gained by Ie = 0, averaged over the orders of taking causes away",
    ),
    _link(
        "rate_bps",
        "rate",
        "bit/s",
        1e-3,
        0,
        "What the link transmits; where it changes, what it begins with.",
        "as the scenario says",
    ),
    _link(
        "utilisation",
        "utilisation",
        "1",
        100,
        1,
        "Share of the window in which the transmitter was sending.",
        "time busy ÷ length of the window",
    ),
    _link(
        "sent_packets",
        "packets",
        "packets",
        1,
        0,
        "Packets of all flows whose transmission began, control packets among them.",
        "counted when a packet leaves the queue",
    ),
    _link(
        "sent_bytes",
        "bytes",
        "bytes",
        1,
        0,
        "Their IP bytes. What framing adds is not counted.",
        "Σ IP length of packets that left the queue",
    ),
    _link(
        "drops",
        "dropped",
        "packets",
        1,
        0,
        "Packets of all flows that ended here: full queue, medium, outage, or too long.",
        "full + early + medium + down + too big + retries",
    ),
    *(
        _link(f"drops_{why}", f"dropped, {label}", "packets", 1, 0, meaning, "counted when dropped")
        for why, label, meaning in (
            ("full", "full", "Packets that came to a full queue."),
            ("early", "early", "Packets that a queue's discipline dropped before it was full."),
            ("medium", "medium", "Packets that the medium lost: at random, in bursts, by bits."),
            ("down", "down", "Packets that met a link which was down."),
            ("too_big", "too big", "Packets longer than the link takes."),
            ("retries", "retries", "Packets sent on the air as often as may be, in vain."),
        )
    ),
    _link(
        "marks",
        "marked",
        "packets",
        1,
        0,
        "Packets that a queue marked with Congestion Experienced instead of dropping them.",
        "counted by the link (RFC 3168 §5)",
    ),
    _link(
        "retries",
        "retries",
        "packets",
        1,
        0,
        "Transmissions on the air that repeated one which was not acknowledged.",
        "counted by the transmitter of a cell",
    ),
    _link(
        "collisions",
        "collisions",
        "packets",
        1,
        0,
        "Transmissions on the air that met another's.",
        "counted by the transmitter of a cell",
    ),
    _link(
        "queue_mean_packets",
        "queue, mean",
        "packets",
        1,
        1,
        "Packets waiting for the transmitter, averaged over time, without the one being sent.",
        "∫ queue dt ÷ length of the window",
    ),
    _link(
        "queue_max_packets",
        "queue, longest",
        "packets",
        1,
        0,
        "The longest queue seen.",
        "maximum over the window",
    ),
    _link(
        "queue_mean_bytes",
        "queue, mean bytes",
        "bytes",
        1,
        0,
        "IP bytes waiting for the transmitter, averaged over time.",
        "∫ bytes waiting dt ÷ length of the window",
    ),
    _link(
        "sojourn_mean_s",
        "wait, mean",
        "s",
        1e3,
        1,
        "How long packets stood in the queue (RFC 8289: sojourn time), those that left it. Kept "
        "when `record.sojourn` asks for it.",
        "mean of (transmission begins − packet comes)",
    ),
    _link(
        "sojourn_p50_s",
        "wait, p50",
        "s",
        1e3,
        1,
        "Half the packets stood in the queue for less.",
        "nearest-rank quantile over packets",
    ),
    _link(
        "sojourn_p95_s",
        "wait, p95",
        "s",
        1e3,
        1,
        "95 % of the packets stood in the queue for less.",
        "nearest-rank quantile over packets",
    ),
    _link(
        "sojourn_p99_s",
        "wait, p99",
        "s",
        1e3,
        1,
        "99 % of the packets stood in the queue for less.",
        "nearest-rank quantile over packets",
    ),
    _link(
        "sojourn_max_s",
        "wait, longest",
        "s",
        1e3,
        1,
        "The longest that a packet stood in the queue.",
        "maximum over packets",
    ),
)


def _gauge(
    name: str, label: str, unit: str, meaning: str, formula: str, source: str, digits: int = 1
) -> Measure:
    shown, scale = {
        "bytes": ("kB", 1e-3),
        "packets": ("packets", 1.0),
        "bit/s": ("kbit/s", 1e-3),
        "s": ("ms", 1e3),
        "1": ("", 1.0),
        "ratio": ("%", 100.0),
    }[unit]
    unit = "1" if unit == "ratio" else unit
    return Measure(name, "gauges", label, unit, shown, scale, digits, meaning, formula, source)


GAUGES: tuple[Measure, ...] = (
    _gauge(
        "cwnd",
        "cwnd",
        "bytes",
        "TCP's congestion window: how much may be in the network unacknowledged.",
        "grows with acknowledgements, halves with a loss",
        "RFC 5681 §2",
    ),
    _gauge(
        "ssthresh",
        "ssthresh",
        "bytes",
        "TCP's slow-start threshold: below it the window doubles every round trip, above it grows "
        "by a segment. Absent while it is unbounded.",
        "half of what was in flight at the last loss",
        "RFC 5681 §3.1",
    ),
    _gauge(
        "flight",
        "in flight",
        "bytes",
        "What TCP has sent that is neither acknowledged nor deemed lost.",
        "sent − acknowledged − deemed lost",
        "RFC 5681 §2",
    ),
    _gauge(
        "srtt",
        "RTT, smoothed",
        "s",
        "The sender's running estimate of the round-trip time, R in TFRC's formulas.",
        "TCP and CCID 2: 7/8 old + 1/8 new; TFRC: 9/10 old + 1/10 new",
        "RFC 6298 §2; RFC 5348 §4.3 step 2",
    ),
    _gauge(
        "rto",
        "retransmission timeout",
        "s",
        "How long the sender waits for news before it takes the network for lost.",
        "max(1 s, srtt + 4 rttvar) unless the scenario changes the bound, doubled with each expiry",
        "RFC 6298 §2",
    ),
    _gauge(
        "jitter",
        "jitter, running",
        "s",
        "The receiver's running estimate of how unevenly media packets arrive.",
        "J ← J + (|D| − J) / 16",
        "RFC 3550 A.8",
    ),
    _gauge(
        "rtcp_rtt",
        "RTT of RTCP",
        "s",
        "The round-trip time as the reports beside the speech tell it.",
        "A − LSR − DLSR",
        "RFC 3550 §6.4.1",
    ),
    _gauge(
        "cwnd_packets",
        "cwnd",
        "packets",
        "CCID 2's congestion window, in packets of whatever size: how many may be in the network.",
        "grows with acknowledgements, halves once a window of data with a loss or a mark in it",
        "RFC 4341 §5",
    ),
    _gauge(
        "ssthresh_packets",
        "ssthresh",
        "packets",
        "CCID 2's slow-start threshold; above it the window grows by a packet a round trip. "
        "Absent while it is unbounded.",
        "half the window at the last congestion event",
        "RFC 4341 §5",
    ),
    _gauge(
        "pipe",
        "pipe",
        "packets",
        "Data packets in the network, as CCID 2's sender counts them: it sends while pipe < cwnd. "
        "Where pipe stays below, the application is what limits it.",
        "sent − acknowledged − lost",
        "RFC 4341 §5",
    ),
    _gauge(
        "ack_ratio",
        "Ack Ratio",
        "packets",
        "Data packets for each acknowledgement: raised when acknowledgements themselves are lost.",
        "doubled with a congested reverse path, lowered as the window allows",
        "RFC 4340 §11.3; RFC 4341 §6.1.1",
    ),
    _gauge(
        "rate",
        "X, allowed rate",
        "bit/s",
        "What the sender may send at. It is a ceiling: speech sends at its codec's rate or less.",
        "X = max(min(X_calc, recv_limit), s / t_mbi); without loss twice what was received",
        "RFC 5348 §4.3",
    ),
    _gauge(
        "receive_rate",
        "X_recv, received rate",
        "bit/s",
        "What the receiver said arrived since its last report but one: X cannot stay above twice "
        "of it while the application has more to send.",
        "bytes received ÷ time since the last report",
        "RFC 5348 §6.2",
    ),
    _gauge(
        "equation_rate",
        "X_calc, TCP's rate",
        "bit/s",
        "What a TCP would send at under the same loss and round-trip time. Absent before the first "
        "loss.",
        "s / (R √(2p/3) + t_RTO · 3 √(3p/8) · p (1 + 32 p²))",
        "RFC 5348 §3.1",
    ),
    _gauge(
        "rtt_square_mean",
        "R_sqmean",
        "s",
        "The average that a momentary round-trip time is compared with, so that a growing queue "
        "slows the sender at once instead of making its rate swing.",
        "the mean of √R, squared",
        "RFC 5348 §4.5",
    ),
    _gauge(
        "loss_event_rate",
        "p, loss event rate",
        "ratio",
        "How often congestion is met: losses within one round-trip time count as one event. A rate "
        "of 1 % is an event in a hundred packets.",
        "1 ÷ mean loss interval",
        "RFC 5348 §5.4",
        3,
    ),
    _gauge(
        "loss_interval",
        "loss interval, mean",
        "packets",
        "Packets from one loss event to the next, recent intervals weighing more.",
        "weighted mean of the last eight intervals",
        "RFC 5348 §5.4",
    ),
    _gauge(
        "tokens",
        "tokens",
        "bytes",
        "Sending that TFRC-TB has saved while the codec needed less than it was allowed, and may "
        "spend to hold the codec when it is allowed less.",
        "fills with what is allowed less what is sent, up to the bucket's depth",
        "Maldonado, Baset, Schulzrinne 2005",
        3,
    ),
    _gauge(
        "encoding",
        "rung of the ladder",
        "1",
        "Which encoding the controller asks of the source; 0 is the best.",
        "a step down when tokens run out, up by the ladder's rule",
        "Maldonado, Baset, Schulzrinne 2005",
        0,
    ),
    _gauge(
        "pacing_rate",
        "pacing rate",
        "bit/s",
        "Rate at which a TCP that paces spreads its segments.",
        "BBR: bandwidth × gain of the state × 0.99; others: two or 1.2 windows a round trip",
        "draft-ietf-ccwg-bbr-06 §5.6.2",
        0,
    ),
    _gauge(
        "bandwidth",
        "bandwidth",
        "bit/s",
        "What BBR believes the path delivers for it.",
        "largest delivery rate of two cycles of probing, less after losses until the next probe",
        "draft-ietf-ccwg-bbr-06 §5.5.2, §5.5.10",
        0,
    ),
    _gauge(
        "min_rtt",
        "least RTT",
        "s",
        "What BBR takes for the round trip of the empty path.",
        "least of ten seconds",
        "draft-ietf-ccwg-bbr-06 §5.5.7",
    ),
    _gauge(
        "inflight_longterm",
        "bound in flight",
        "bytes",
        "What may be in flight before losses are too many, as BBR found it. Absent until it has.",
        "in flight when a probe lost more than 2 %, raised by probes that do not",
        "draft-ietf-ccwg-bbr-06 §5.5.10.2, §5.3.3.9",
    ),
    _gauge(
        "phase",
        "state of BBR",
        "1",
        "Where BBR stands: 0 Startup, 1 Drain, 2 to 5 Down, Cruise, Refill and Up of ProbeBW, 6 "
        "ProbeRTT.",
        "changes as the draft's state machine does",
        "draft-ietf-ccwg-bbr-06 §5.1.1",
        0,
    ),
)
"""What happens inside endpoints: the gauges of the ``gauges`` table."""

# Of a name that columns of flows and of links share, the flows'.
_BY_NAME = {measure.name: measure for measure in reversed((*ALL, *GAUGES))}


def measure(name: str) -> Measure:
    """The measure of this name.

    Raises:
        KeyError: with the nearest name, when there is none.
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    import difflib

    near = difflib.get_close_matches(name, _BY_NAME, n=1)
    raise KeyError(f"no measure {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def known(name: str) -> bool:
    """Whether there is a measure of this name."""
    return name in _BY_NAME


@dataclass(frozen=True)
class Verdict:
    """A band of R in words."""

    from_r: float
    words: str
    short: str
    grade: int
    """0 is best, 5 worst: what colours are chosen by."""


# ITU-T G.107 Annex B, Table B.1, and its note on R below 50.
VERDICTS: tuple[Verdict, ...] = (
    Verdict(90, "users very satisfied", "very satisfied", 0),
    Verdict(80, "users satisfied", "satisfied", 1),
    Verdict(70, "some users dissatisfied", "some dissatisfied", 2),
    Verdict(60, "many users dissatisfied", "many dissatisfied", 3),
    Verdict(50, "nearly all users dissatisfied", "nearly all dissatisfied", 4),
    Verdict(-math.inf, "not recommended", "not recommended", 5),
)


def verdict(r_factor: float | None) -> Verdict | None:
    """What users would say of a call rated R (ITU-T G.107 Annex B, Table B.1)."""
    if r_factor is None:
        return None
    return next(v for v in VERDICTS if r_factor >= v.from_r)


def rate_text(bits_per_second: float | None) -> str:
    """A rate in the unit that suits it."""
    units = (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0))
    return _scaled(bits_per_second, units, zero="0 bit/s")


def time_text(seconds: float | None) -> str:
    """A time in the unit that suits it."""
    return _scaled(seconds, (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)), zero="0 ms")


def _scaled(value: float | None, units: tuple[tuple[str, float], ...], zero: str) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return zero
    # 999.95 ms must not become "1e+03 ms": choose the unit by the rounded value.
    name, size = next(((n, s) for n, s in units if abs(value) >= s * 0.9995), units[-1])
    shown = value / size
    return f"{shown:.3g} {name}" if abs(shown) < 999.5 else f"{shown:.0f} {name}"
