//! What a receiver remembers of losses (RFC 5348 §5): which packets are lost, which losses are one
//! event, how long the intervals between events were, and the loss event rate they give. RFC 4342
//! §6.1, §8.6 and §10.2 and RFC 4828 §4.4 live here too, as parameters and as what an interval holds.

use crate::time::{Duration, Instant};

use super::config::Parameters;

/// How many intervals are kept: those of the longest Loss Intervals option (RFC 4342 §8.6: 28).
pub const KEPT_INTERVALS: usize = 28;

/// A packet that arrived, data or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its place in the sequence space, which counts packets and does not wrap.
    pub seq: u64,
    /// Bytes of data if it carries any that count.
    pub data_bytes: Option<u32>,
    /// How many packets directly before it carry no data (RFC 4340 §7.7: NDP Count), if that is
    /// known; 0 where every packet carries data or nobody counts.
    pub non_data_before: u64,
    /// It arrived with Congestion Experienced.
    pub marked: bool,
    /// The sender's round-trip time, as the packet says or the caller has estimated; `None`: no
    /// news, the last one holds.
    pub rtt: Option<Duration>,
    /// The sender's window counter, unwrapped, where there is one (RFC 4342 §8.1): it grows by four
    /// in a round trip. With it loss events are told apart by §10.2, without by time.
    pub counter: Option<u64>,
}

/// A loss interval: from the first loss of an event to before the first loss of the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Its first sequence number.
    pub start: u64,
    /// Packets from its first loss to its last (RFC 4342 §8.6.1: Loss Length).
    pub loss_length: u64,
    /// Packets after that (Lossless Length).
    pub lossless_length: u64,
    /// Data packets in all of it (Data Length): what counts in the average.
    pub data_length: u64,
    /// Data packets in it that were lost or marked (RFC 5622 §5: Drop Count).
    pub drop_count: u64,
    /// It was at most two round trips long, so that its losses count each (RFC 4828 §4.4).
    pub short: bool,
}

/// The loss history.
#[derive(Clone, Debug)]
pub struct LossHistory {}

impl LossHistory {
    /// A history without packets.
    #[must_use]
    pub fn new(_parameters: &Parameters) -> Self {
        Self {}
    }
    /// A packet arrived. True if it showed that a new loss event has begun.
    pub fn on_packet(&mut self, _now: Instant, _arrival: &Arrival) -> bool {
        false
    }
    /// Gives the interval before the first loss event the length it would have had at the rate the
    /// sender had reached (RFC 5348 §6.3.1). Asked for by the receiver after the first event.
    pub fn seed(&mut self, _data_length: u64) {}
    /// Loss event rate p, 0 without loss (RFC 5348 §5.4).
    #[must_use]
    pub fn loss_event_rate(&self) -> f64 {
        0.0
    }
    /// I_mean in packets; `None` without loss.
    #[must_use]
    pub fn mean_interval(&self) -> Option<f64> {
        None
    }
    /// The intervals, newest first: the open one, then at most [`KEPT_INTERVALS`] closed ones. Before
    /// any loss there is only the open one. Its `lossless_length` ends with the newest packet not
    /// [skipped](Self::skip_length).
    pub fn intervals(&self) -> impl Iterator<Item = Interval> + '_ {
        std::iter::empty()
    }
    /// Packets at the newest end that intervals do not count yet, since missing ones before them
    /// may still come (RFC 4342 §8.6: Skip Length), at most NDUPACK.
    #[must_use]
    pub fn skip_length(&self) -> u64 {
        0
    }
}

/// The loss event rate of intervals as reported, for a sender that computes p itself (RFC 5348 §7,
/// RFC 4342 §6.1): `open` is I_0, `closed` are I_1, I_2, … as lengths in packets. Without closed
/// intervals there is no loss and p is 0.
#[must_use]
pub fn loss_event_rate(_open: f64, _closed: &[f64], _parameters: &Parameters) -> f64 {
    0.0
}
