//! Interarrival jitter as an RTP receiver measures it (RFC 3550 §6.4.1, A.8), in nanoseconds
//! instead of ticks of the media clock, and its mean over the measure window.

use talkspurt_proto::time::{Duration, Instant};

use crate::sum::Sum;

/// The running estimator of RFC 3550 A.8 and the mean of its values, fewer than 2³².
#[derive(Clone, Debug)]
pub struct Jitter {
    /// Transit time of the previous packet: arrival minus sending time, on clocks that may differ.
    transit: i64,
    /// Sixteen times the estimate, as in A.8; negative before the first packet.
    scaled: i64,
    counted: Sum,
}

impl Default for Jitter {
    fn default() -> Self {
        Self { transit: 0, scaled: -1, counted: Sum::default() }
    }
}

impl Jitter {
    /// Processes the arrival of a packet sent (or sampled) at `sent`; `counts` if the new value of the
    /// estimate belongs to the mean.
    #[inline]
    pub fn arrive(&mut self, sent: Instant, arrival: Instant, counts: bool) {
        let transit = arrival.as_nanos().wrapping_sub(sent.as_nanos()) as i64;
        let before = std::mem::replace(&mut self.transit, transit);
        if self.scaled < 0 {
            self.scaled = 0;
            return;
        }
        // RFC 3550 A.8: s->jitter += d - ((s->jitter + 8) >> 4)
        let difference = transit.wrapping_sub(before).saturating_abs();
        self.scaled += difference - ((self.scaled + 8) >> 4);
        if counts {
            self.counted.add(self.scaled as u64);
        }
    }

    /// The current estimate (RFC 3550 A.8: `s->jitter >> 4`).
    #[must_use]
    pub fn estimate(&self) -> Duration {
        Duration::from_nanos((self.scaled.max(0) >> 4) as u64)
    }

    /// Mean of the counted values, in seconds; `None` before the second packet.
    #[must_use]
    pub fn mean_s(&self) -> Option<f64> {
        self.counted.mean(16e9)
    }
}
