//! What a protocol reports of itself: quantities, packets it refused, and waiting in order.
//!
//! [`EndpointProbe`] is all that a protocol sees of an observer. Observers of a whole run implement
//! [`crate::probe::Probe`], which makes them observers of each endpoint too.

use crate::metric::{KILOBITS, KILOBYTES, MILLISECONDS, Metric};
use crate::time::Instant;

/// What a note is about, so that a probe can decline whole subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A packet at a link: enqueued, dequeued, arrived.
    Hop,
    /// A packet dropped or marked by a link.
    Drop,
    /// A packet leaving or reaching a peer, a router's answer leaving it, or a copy made on the way.
    Packet,
    /// A unit of application data: generated, handed over, delivered, played.
    Frame,
    /// A protocol's inner quantity changed.
    Gauge,
    /// A connection event, or a packet that was refused.
    Event,
    /// How long what was delivered had waited for what came before it.
    Order,
}

/// Makes [`Gauge`] and the catalogue's entries of its variants.
macro_rules! gauges {
    ($($(#[doc = $doc:literal])+ $gauge:ident = $number:literal, $name:literal, $metric:expr;)*) => {
        /// A protocol's inner quantities, by the name they have in their RFC.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Gauge {
            $($(#[doc = $doc])+ $gauge = $number,)*
        }

        impl Gauge {
            /// What each of them is, by number.
            pub const METRICS: &[Metric] = &[
                $(Metric { name: $name, meaning: concat!($($doc),+), ..$metric }),*
            ];

            /// Its name in tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$gauge => $name,)*
                }
            }
        }
    };
}

gauges! {
    /// TCP's congestion window: how much may be in the network unacknowledged.
    Cwnd = 0, "cwnd", KILOBYTES.described(
        "cwnd",
        "grows with acknowledgements, halves with a loss",
        "RFC 5681 §2",
    );
    /// TCP's slow-start threshold: below it the window doubles every round trip, above it grows by
    /// a segment. Absent while it is unbounded.
    Ssthresh = 1, "ssthresh", KILOBYTES.described(
        "ssthresh",
        "half of what was in flight at the last loss",
        "RFC 5681 §3.1",
    );
    /// What TCP has sent that is neither acknowledged nor deemed lost.
    Flight = 2, "flight", KILOBYTES.described(
        "in flight",
        "sent − acknowledged − deemed lost",
        "RFC 5681 §2",
    );
    /// The sender's running estimate of the round-trip time, R in TFRC's formulas.
    Srtt = 3, "srtt", MILLISECONDS.described(
        "RTT, smoothed",
        "TCP and CCID 2: 7/8 old + 1/8 new; TFRC: 9/10 old + 1/10 new",
        "RFC 6298 §2; RFC 5348 §4.3 step 2",
    );
    /// How long the sender waits for news before it takes the network for lost.
    Rto = 4, "rto", MILLISECONDS.described(
        "retransmission timeout",
        "max(1 s, srtt + 4 rttvar) unless the scenario changes the bound, doubled with each expiry",
        "RFC 6298 §2",
    );
    /// The receiver's running estimate of how unevenly media packets arrive.
    Jitter = 5, "jitter", MILLISECONDS.described(
        "jitter, running",
        "J ← J + (|D| − J) / 16",
        "RFC 3550 A.8",
    );
    /// The round-trip time as the reports beside the speech tell it.
    RtcpRtt = 6, "rtcp_rtt", MILLISECONDS.described(
        "RTT of RTCP",
        "A − LSR − DLSR",
        "RFC 3550 §6.4.1",
    );
    /// CCID 2's congestion window, in packets of whatever size: how many may be in the network.
    CwndPackets = 7, "cwnd_packets", Metric::of("packets", "packets", 1.0, 1).described(
        "cwnd",
        "grows with acknowledgements, halves once a window of data with a loss or a mark in it",
        "RFC 4341 §5",
    );
    /// CCID 2's slow-start threshold; above it the window grows by a packet a round trip. Absent
    /// while it is unbounded.
    SsthreshPackets = 8, "ssthresh_packets", Metric::of("packets", "packets", 1.0, 1).described(
        "ssthresh",
        "half the window at the last congestion event",
        "RFC 4341 §5",
    );
    /// Data packets in the network, as CCID 2's sender counts them: it sends while pipe < cwnd.
    /// Where pipe stays below, the application is what limits it.
    Pipe = 9, "pipe", Metric::of("packets", "packets", 1.0, 1).described(
        "pipe",
        "sent − acknowledged − lost",
        "RFC 4341 §5",
    );
    /// Data packets for each acknowledgement: raised when acknowledgements themselves are lost.
    AckRatio = 10, "ack_ratio", Metric::of("packets", "packets", 1.0, 1).described(
        "Ack Ratio",
        "doubled with a congested reverse path, lowered as the window allows",
        "RFC 4340 §11.3; RFC 4341 §6.1.1",
    );
    /// What the sender may send at. It is a ceiling: speech sends at its codec's rate or less.
    Rate = 11, "rate", KILOBITS.described(
        "X, allowed rate",
        "X = max(min(X_calc, recv_limit), s / t_mbi); without loss twice what was received",
        "RFC 5348 §4.3",
    );
    /// What the receiver said arrived since its last report but one: X cannot stay above twice of
    /// it while the application has more to send.
    ReceiveRate = 12, "receive_rate", KILOBITS.described(
        "X_recv, received rate",
        "bytes received ÷ time since the last report",
        "RFC 5348 §6.2",
    );
    /// What a TCP would send at under the same loss and round-trip time. Absent before the first
    /// loss.
    EquationRate = 13, "equation_rate", KILOBITS.described(
        "X_calc, TCP's rate",
        "s / (R √(2p/3) + t_RTO · 3 √(3p/8) · p (1 + 32 p²))",
        "RFC 5348 §3.1",
    );
    /// The average that a momentary round-trip time is compared with, so that a growing queue slows
    /// the sender at once instead of making its rate swing.
    RttSquareMean = 14, "rtt_square_mean", MILLISECONDS.described(
        "R_sqmean",
        "the mean of √R, squared",
        "RFC 5348 §4.5",
    );
    /// How often congestion is met: losses within one round-trip time count as one event. A rate of
    /// 1 % is an event in a hundred packets.
    LossEventRate = 15, "loss_event_rate", Metric::of("1", "%", 100.0, 3).described(
        "p, loss event rate",
        "1 ÷ mean loss interval",
        "RFC 5348 §5.4",
    );
    /// Packets from one loss event to the next, recent intervals weighing more.
    LossInterval = 16, "loss_interval", Metric::of("packets", "packets", 1.0, 1).described(
        "loss interval, mean",
        "weighted mean of the last eight intervals",
        "RFC 5348 §5.4",
    );
    /// Sending that TFRC-TB has saved while the codec needed less than it was allowed, and may
    /// spend to hold the codec when it is allowed less.
    Tokens = 17, "tokens", Metric::of("bytes", "kB", 0.001, 3).described(
        "tokens",
        "fills with what is allowed less what is sent, up to the bucket's depth",
        "Maldonado, Baset, Schulzrinne 2005",
    );
    /// Which encoding the controller asks of the source; 0 is the best.
    Encoding = 18, "encoding", Metric::of("1", "", 1.0, 0).described(
        "rung of the ladder",
        "a step down when tokens run out, up by the ladder's rule",
        "Maldonado, Baset, Schulzrinne 2005",
    );
    /// Rate at which a TCP that paces spreads its segments.
    PacingRate = 19, "pacing_rate", Metric::of("bit/s", "kbit/s", 0.001, 0).described(
        "pacing rate",
        "BBR: bandwidth × gain of the state × 0.99; others: two or 1.2 windows a round trip",
        "draft-ietf-ccwg-bbr-06 §5.6.2",
    );
    /// What BBR believes the path delivers for it.
    Bandwidth = 20, "bandwidth", Metric::of("bit/s", "kbit/s", 0.001, 0).described(
        "bandwidth",
        "largest delivery rate of two cycles of probing, less after losses until the next probe",
        "draft-ietf-ccwg-bbr-06 §5.5.2, §5.5.10",
    );
    /// What BBR takes for the round trip of the empty path.
    MinRtt = 21, "min_rtt", MILLISECONDS.described(
        "least RTT",
        "least of ten seconds",
        "draft-ietf-ccwg-bbr-06 §5.5.7",
    );
    /// What may be in flight before losses are too many, as BBR found it. Absent until it has.
    InflightLongterm = 22, "inflight_longterm", KILOBYTES.described(
        "bound in flight",
        "in flight when a probe lost more than 2 %, raised by probes that do not",
        "draft-ietf-ccwg-bbr-06 §5.5.10.2, §5.3.3.9",
    );
    /// Where BBR stands: 0 Startup, 1 Drain, 2 to 5 Down, Cruise, Refill and Up of ProbeBW, 6
    /// ProbeRTT.
    Phase = 23, "phase", Metric::of("1", "", 1.0, 0).described(
        "state of BBR",
        "changes as the draft's state machine does",
        "draft-ietf-ccwg-bbr-06 §5.1.1",
    );
}

/// Why something from the network was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RxError {
    /// Could not be parsed.
    Malformed = 0,
    /// A checksum did not match.
    Checksum = 1,
    /// Outside the window of acceptable sequence numbers.
    OutOfWindow = 2,
    /// Acknowledges what was never sent.
    BadAck = 3,
    /// Timestamp older than the last (RFC 7323 §5, PAWS).
    OldTimestamp = 4,
    /// Not expected in this state.
    Unexpected = 5,
}

/// One observation of an endpoint about itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EndpointNote {
    /// A quantity has this value now.
    Gauge {
        /// Which.
        gauge: Gauge,
        /// In the unit its documentation states.
        value: f64,
    },
    /// Something from the network was not used.
    RxError(RxError),
}

/// An observer of one endpoint.
pub trait EndpointProbe {
    /// Whether notes on this topic are of use; protocols skip making those that are not.
    fn observes(&self, topic: Topic) -> bool;
    /// Takes a note. The notes of one endpoint come in order of time.
    fn note(&mut self, now: Instant, note: EndpointNote);
}
