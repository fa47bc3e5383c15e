"""The gauges of the table ``gauges``: what happens inside endpoints, as it changes."""

from __future__ import annotations

from talkspurt.metrics.catalogue.kinds import Column


def _gauge(
    name: str, label: str, unit: str, meaning: str, formula: str, source: str, digits: int = 1
) -> Column:
    shown, scale = {
        "bytes": ("kB", 1e-3),
        "packets": ("packets", 1.0),
        "bit/s": ("kbit/s", 1e-3),
        "s": ("ms", 1e3),
        "1": ("", 1.0),
        "ratio": ("%", 100.0),
    }[unit]
    unit = "1" if unit == "ratio" else unit
    return Column(name, "gauges", label, unit, shown, scale, digits, meaning, formula, source)


GAUGES: tuple[Column, ...] = (
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
