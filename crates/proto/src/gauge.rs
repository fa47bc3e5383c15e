//! What a protocol reports about itself: quantities, rejected packets and ordering delay.
//!
//! [`EndpointProbe`] is all that a protocol sees of an observer. Observers of a whole run implement
//! [`crate::probe::Probe`], which makes them observers of each endpoint too.

use crate::metric::{KILOBITS, KILOBYTES, MILLISECONDS, Metric};
use crate::time::Instant;

/// The subject of a note, so that a probe can decline whole topics.
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
    /// A protocol's internal quantity changed.
    Gauge,
    /// A connection event or a rejected packet.
    Event,
    /// How long delivered data had waited for earlier data.
    Order,
}

/// Defines [`Gauge`] and the catalogue entries of its variants.
macro_rules! gauges {
    ($($(#[doc = $doc:literal])+ $gauge:ident = $number:literal, $name:literal, $metric:expr;)*) => {
        /// A protocol's internal quantities, named as in their RFCs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Gauge {
            $($(#[doc = $doc])+ $gauge = $number,)*
        }

        impl Gauge {
            /// The metric of each gauge, by number.
            pub const METRICS: &[Metric] = &[
                $(Metric { name: $name, meaning: concat!($($doc),+), ..$metric }),*
            ];

            /// The gauge of a number.
            #[must_use]
            pub const fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$gauge),)*
                    _ => None,
                }
            }

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
    /// TCP's congestion window: maximum unacknowledged data in the network.
    Cwnd = 0, "cwnd", KILOBYTES.described("cwnd", "grows with acknowledgements, halves with a loss")
        .source("RFC 5681 §2");
    /// TCP's slow-start threshold: below it the window doubles every round trip, above it grows by a
    /// segment. Absent while unbounded.
    Ssthresh = 1, "ssthresh", KILOBYTES
        .described("ssthresh", "half of what was in flight at the last loss")
        .source("RFC 5681 §3.1");
    /// Data that TCP has sent and that is neither acknowledged nor deemed lost.
    Flight = 2, "flight", KILOBYTES.described("in flight", "sent − acknowledged − deemed lost")
        .source("RFC 5681 §2");
    /// The sender's smoothed round-trip time, R in TFRC's formulas.
    Srtt = 3, "srtt", MILLISECONDS
        .described("RTT, smoothed", "TCP and CCID 2: 7/8 old + 1/8 new; TFRC: 9/10 old + 1/10 new")
        .source("RFC 6298 §2; RFC 5348 §4.3 step 2");
    /// Time without an acknowledgement after which the sender assumes loss.
    Rto = 4, "rto", MILLISECONDS.described(
        "retransmission timeout",
        "max(1 s, srtt + 4 rttvar) unless the scenario changes the bound, doubled with each expiry",
    ).source("RFC 6298 §2");
    /// The receiver's running estimate of the interarrival jitter of media packets.
    Jitter = 5, "jitter", MILLISECONDS.described("jitter, running", "J ← J + (|D| − J) / 16")
        .source("RFC 3550 A.8");
    /// Round-trip time measured by RTCP reports.
    RtcpRtt = 6, "rtcp_rtt", MILLISECONDS.described("RTT of RTCP", "A − LSR − DLSR")
        .source("RFC 3550 §6.4.1");
    /// CCID 2's congestion window: maximum number of packets in the network, of any size.
    CwndPackets = 7, "cwnd_packets", Metric::of("packets", "packets", 1.0, 1).described(
        "cwnd",
        "grows with acknowledgements, halves once a window of data with a loss or a mark in it",
    ).source("RFC 4341 §5");
    /// CCID 2's slow-start threshold; above it the window grows by one packet per round trip. Absent
    /// while unbounded.
    SsthreshPackets = 8, "ssthresh_packets", Metric::of("packets", "packets", 1.0, 1)
        .described("ssthresh", "half the window at the last congestion event")
        .source("RFC 4341 §5");
    /// Data packets in the network, as estimated by CCID 2's sender, which sends while pipe < cwnd. If
    /// pipe stays below cwnd, the application limits the rate.
    Pipe = 9, "pipe", Metric::of("packets", "packets", 1.0, 1)
        .described("pipe", "sent − acknowledged − lost").source("RFC 4341 §5");
    /// Data packets per acknowledgement; raised when acknowledgements are lost.
    AckRatio = 10, "ack_ratio", Metric::of("packets", "packets", 1.0, 1).described(
        "Ack Ratio",
        "doubled with a congested reverse path, lowered as the window allows",
    ).source("RFC 4340 §11.3; RFC 4341 §6.1.1");
    /// Maximum sending rate. Speech is sent at its codec's rate or less.
    Rate = 11, "rate", KILOBITS.described(
        "X, allowed rate",
        "X = max(min(X_calc, recv_limit), s / t_mbi); without loss twice what was received",
    ).source("RFC 5348 §4.3");
    /// Receive rate in the receiver's last report. X cannot stay above twice this rate while the
    /// application has more to send.
    ReceiveRate = 12, "receive_rate", KILOBITS
        .described("X_recv, received rate", "bytes received ÷ time since the last report")
        .source("RFC 5348 §6.2");
    /// Rate of a TCP connection with the same loss and round-trip time. Absent before the first loss.
    EquationRate = 13, "equation_rate", KILOBITS
        .described("X_calc, TCP's rate", "s / (R √(2p/3) + t_RTO · 3 √(3p/8) · p (1 + 32 p²))")
        .source("RFC 5348 §3.1");
    /// Average that the current round-trip time is compared with, so that a growing queue slows the
    /// sender at once without making its rate oscillate.
    RttSquareMean = 14, "rtt_square_mean", MILLISECONDS
        .described("R_sqmean", "the mean of √R, squared").source("RFC 5348 §4.5");
    /// Frequency of loss events: losses within one round-trip time count as one event. A rate of 1 % is
    /// one event in a hundred packets.
    LossEventRate = 15, "loss_event_rate", Metric::of("1", "%", 100.0, 3)
        .described("p, loss event rate", "1 ÷ mean loss interval").source("RFC 5348 §5.4");
    /// Mean number of packets between loss events, with more weight on recent intervals.
    LossInterval = 16, "loss_interval", Metric::of("packets", "packets", 1.0, 1)
        .described("loss interval, mean", "weighted mean of the last eight intervals")
        .source("RFC 5348 §5.4");
    /// Tokens of TFRC-TB: allowance saved while the codec's rate is below the allowed rate, and spent
    /// to keep the codec when the allowed rate falls.
    Tokens = 17, "tokens", Metric::of("bytes", "kB", 0.001, 3).described(
        "tokens",
        "fills with what is allowed less what is sent, up to the bucket's depth",
    ).source("Maldonado, Baset, Schulzrinne 2005");
    /// Encoding that the controller requests from the source; 0 is the best.
    Encoding = 18, "encoding", Metric::of("1", "", 1.0, 0)
        .described("rung of the ladder", "a step down when tokens run out, up by the ladder's rule")
        .source("Maldonado, Baset, Schulzrinne 2005");
    /// Rate at which a pacing TCP sends segments.
    PacingRate = 19, "pacing_rate", Metric::of("bit/s", "kbit/s", 0.001, 0).described(
        "pacing rate",
        "BBR: bandwidth × gain of the state × 0.99; others: two or 1.2 windows a round trip",
    ).source("draft-ietf-ccwg-bbr-06 §5.6.2");
    /// BBR's estimate of the bandwidth available to it.
    Bandwidth = 20, "bandwidth", Metric::of("bit/s", "kbit/s", 0.001, 0).described(
        "bandwidth",
        "largest delivery rate of two cycles of probing, less after losses until the next probe",
    ).source("draft-ietf-ccwg-bbr-06 §5.5.2, §5.5.10");
    /// BBR's estimate of the round-trip time of the empty path.
    MinRtt = 21, "min_rtt", MILLISECONDS.described("least RTT", "least of ten seconds")
        .source("draft-ietf-ccwg-bbr-06 §5.5.7");
    /// Maximum data in flight before losses become excessive, as found by BBR. Absent until found.
    InflightLongterm = 22, "inflight_longterm", KILOBYTES.described(
        "bound in flight",
        "in flight when a probe lost more than 2 %, raised by probes that do not",
    ).source("draft-ietf-ccwg-bbr-06 §5.5.10.2, §5.3.3.9");
    /// State of BBR: 0 Startup, 1 Drain, 2 to 5 Down, Cruise, Refill and Up of ProbeBW, 6 ProbeRTT.
    Phase = 23, "phase", Metric::of("1", "", 1.0, 0)
        .described("state of BBR", "changes as the draft's state machine does")
        .source("draft-ietf-ccwg-bbr-06 §5.1.1");
    /// Delay that adaptive playout adds to that of the fastest recent packets.
    PlayoutDelay = 24, "playout_delay", MILLISECONDS.described(
        "playout delay",
        "playout − place in the stream − least (arrival − place) of two seconds",
    ).source("talkspurt");
    /// Delay that adaptive playout aims at.
    PlayoutTarget = 25, "playout_target", MILLISECONDS.described(
        "playout target",
        "quantile of the delays of packets, or the height of recurring peaks",
    ).source("as in WebRTC's NetEq");
    /// Whether the last received packet has in-band FEC: 1 or 0. Absent unless the codec is configured to make
    /// it.
    Fec = 26, "fec", Metric::of("1", "", 1.0, 0)
        .described("in-band FEC", "1 if the packet repeats the speech before it").source("RFC 6716 §2.1.7");
    /// Speech before the last received packet that its deep redundancy (DRED) covers; 0 without. Absent unless
    /// the codec is configured to make it.
    DredDepth = 27, "dred_depth", MILLISECONDS
        .described("depth of DRED", "whole packets that opus_dred_parse covers").source("libopus 1.6");
    /// Rate that the congestion control of a session asks of its sources.
    TargetRate = 28, "target_rate", KILOBITS
        .described("target rate", "NADA: r_ref; GCC: the estimate")
        .source("RFC 8698 §4.3; libwebrtc");
    /// Queueing delay that the congestion control of a session sees, by one-way delays.
    QueueingDelay = 29, "queueing_delay_seen", MILLISECONDS.described(
        "queueing delay, seen",
        "NADA: least of the last 15 of one-way delay − its minimum over ten minutes",
    ).source("RFC 8698 §5.1.1");
    /// Delay, loss and marks as one number.
    CongestionSignal = 30, "congestion_signal", MILLISECONDS.described(
        "x_curr, congestion",
        "queueing delay + 10 ms (loss / 1 %)² + 2 ms (marks / 1 %)²",
    ).source("RFC 8698 §4.2");
    /// The delay-based estimate of GCC. Absent before the first.
    DelayRate = 31, "delay_rate", KILOBITS
        .described("delay-based rate", "0.85 of what arrives when delays grow, then rises")
        .source("libwebrtc: AimdRateControl");
    /// The loss-based estimate of GCC. Absent before the first.
    LossRate = 32, "loss_rate", KILOBITS
        .described("loss-based rate", "the bandwidth that explains the losses best")
        .source("libwebrtc: LossBasedBweV2");
    /// Rate at which packets arrive, by reports.
    AcknowledgedRate = 33, "acknowledged_rate", KILOBITS
        .described("acknowledged rate", "bytes ÷ time of the last second and 20 packets")
        .source("libwebrtc: RobustThroughputEstimator");
    /// Trend of one-way delays: above the threshold, a queue grows.
    DelayTrend = 34, "delay_trend", Metric::of("1", "", 1.0, 2)
        .described("trend of delays", "slope over 20 groups of packets × groups × 4")
        .source("libwebrtc: TrendlineEstimator");
    /// Trend from which the bottleneck counts as overused.
    TrendThreshold = 35, "trend_threshold", Metric::of("1", "", 1.0, 2)
        .described("threshold of the trend", "follows the trend slowly")
        .source("libwebrtc: TrendlineEstimator");
    /// What the trend says of the bottleneck: 0 normal, 1 underused, 2 overused.
    Usage = 36, "usage", Metric::of("1", "", 1.0, 0)
        .described("state of the detector", "2 if the trend stays above the threshold for 10 ms")
        .source("libwebrtc: TrendlineEstimator");
}

/// Why received data was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RxError {
    /// Could not be parsed.
    Malformed = 0,
    /// A checksum did not match.
    Checksum = 1,
    /// Outside the window of acceptable sequence numbers.
    OutOfWindow = 2,
    /// Acknowledges data that was never sent.
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
    /// Received data was not used.
    RxError(RxError),
    /// An external stack reports this.
    Stack(StackNote),
}

/// What only an external stack reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StackNote {
    /// Which one it is; noted first.
    Is {
        /// Its name.
        name: &'static str,
        /// Its version.
        version: &'static str,
    },
    /// One of its own quantities has this value now.
    Gauge {
        /// Which.
        name: &'static str,
        /// In a unit of its choice.
        value: f64,
    },
    /// The messages of this end so far.
    Messages(Messages),
}

/// Messages of one end of an external stack, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Handed over by its application.
    pub accepted: u64,
    /// Delivered to its application.
    pub delivered: u64,
    /// Accepted, and discarded unsent.
    pub discarded: u64,
    /// Known to be lost.
    pub lost: u64,
    /// Accepted, and neither acknowledged nor given up, if it knows.
    pub open: Option<u64>,
}

/// An observer of one endpoint.
pub trait EndpointProbe {
    /// Whether notes on this topic are wanted; protocols do not create others.
    fn observes(&self, topic: Topic) -> bool;
    /// Takes a note. The notes of one endpoint are in time order.
    fn note(&mut self, now: Instant, note: EndpointNote);
    /// Notes a quantity.
    #[inline(always)]
    fn gauge(&mut self, now: Instant, gauge: Gauge, value: f64) {
        self.note(now, EndpointNote::Gauge { gauge, value });
    }
    /// Notes that received data was not used, if this is wanted.
    fn rx_error(&mut self, now: Instant, why: RxError) {
        if self.observes(Topic::Event) {
            self.note(now, EndpointNote::RxError(why));
        }
    }
}
