//! What a protocol reports of itself: quantities, packets it refused, and waiting in order.
//!
//! [`EndpointProbe`] is all that a protocol sees of an observer. Observers of a whole run implement
//! [`crate::probe::Probe`], which makes them observers of each endpoint too.

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
    /// A connection event, or rx_error from the network.
    Event,
    /// How long what was delivered had waited for what came before it.
    Order,
}

/// A protocol's inner quantities, by the name they have in their RFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Gauge {
    /// Congestion window in bytes (RFC 5681 §2).
    Cwnd = 0,
    /// Slow-start threshold in bytes (RFC 5681 §2); absent while unbounded.
    Ssthresh = 1,
    /// Bytes sent and neither acknowledged nor deemed lost.
    Flight = 2,
    /// Smoothed round-trip time in seconds (RFC 6298 §2).
    Srtt = 3,
    /// Retransmission timeout in seconds (RFC 6298 §2).
    Rto = 4,
    /// Interarrival jitter in seconds (RFC 3550 A.8).
    Jitter = 5,
    /// Round-trip time from RTCP reports in seconds (RFC 3550 §6.4.1).
    RtcpRtt = 6,
    /// Congestion window in packets (RFC 4341 §5).
    CwndPackets = 7,
    /// Slow-start threshold in packets (RFC 4341 §5); absent while unbounded.
    SsthreshPackets = 8,
    /// Data packets outstanding in the network (RFC 4341 §5: pipe).
    Pipe = 9,
    /// Data packets for each acknowledgement (RFC 4340 §11.3).
    AckRatio = 10,
    /// Allowed sending rate in bit/s (RFC 5348 §4: X).
    Rate = 11,
    /// Rate at which data was received, in bit/s, as last reported (RFC 5348 §4: X_recv).
    ReceiveRate = 12,
    /// Rate of the throughput equation in bit/s (RFC 5348 §3.1: X_Bps); absent without loss.
    EquationRate = 13,
    /// Average of the square root of the round-trip time, squared, in seconds (RFC 5348 §4.5:
    /// R_sqmean).
    RttSquareMean = 14,
    /// Loss event rate (RFC 5348 §5.4: p), 0 to 1.
    LossEventRate = 15,
    /// Mean loss interval in packets (RFC 5348 §5.4: I_mean).
    LossInterval = 16,
    /// Tokens in the bucket of TFRC-TB in bytes.
    Tokens = 17,
    /// Rung of the ladder in use, 0 being the best.
    Encoding = 18,
    /// Rate at which a paced sender spreads its packets, in bit/s (draft-ietf-ccwg-bbr-06 §2.4:
    /// C.pacing_rate).
    PacingRate = 19,
    /// Bandwidth in bit/s that a controller believes the path has for it (draft-ietf-ccwg-bbr-06
    /// §2.9.1: BBR.bw).
    Bandwidth = 20,
    /// Round-trip time of the empty path in seconds, as a controller believes it (draft-ietf-ccwg-bbr-06
    /// §2.9.2: BBR.min_rtt).
    MinRtt = 21,
    /// Bytes in flight beyond which losses were too many (draft-ietf-ccwg-bbr-06 §2.9.2:
    /// BBR.inflight_longterm); absent while unbounded.
    InflightLongterm = 22,
    /// State of the controller: 0 Startup, 1 Drain, 2 to 5 ProbeBW's Down, Cruise, Refill and Up, 6
    /// ProbeRTT (draft-ietf-ccwg-bbr-06 §5.1.1).
    Phase = 23,
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
