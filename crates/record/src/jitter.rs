//! Interarrival jitter as an RTP receiver measures it (RFC 3550 §6.4.1, A.8), in nanoseconds
//! instead of ticks of the media clock, and its mean over the measure window.

use talkspurt_proto::time::{Duration, Instant};

/// The running estimator of RFC 3550 A.8 and the mean of its values.
#[derive(Clone, Debug, Default)]
pub struct Jitter {
    /// Transit time of the packet before: arrival less sending time, on clocks that may differ.
    transit: Option<i64>,
    /// Sixteen times the estimate, as A.8 keeps it.
    scaled: i64,
    sum: i128,
    samples: u64,
}

impl Jitter {
    /// Takes the arrival of a packet sent (or sampled) at `sent`; `counts` if the new value of the
    /// estimator belongs to the mean.
    pub fn arrive(&mut self, sent: Instant, arrival: Instant, counts: bool) {
        let transit = arrival.as_nanos().wrapping_sub(sent.as_nanos()) as i64;
        let Some(before) = self.transit.replace(transit) else { return };
        // RFC 3550 A.8: s->jitter += d - ((s->jitter + 8) >> 4)
        let difference = transit.wrapping_sub(before).saturating_abs();
        self.scaled += difference - ((self.scaled + 8) >> 4);
        if counts {
            self.sum += i128::from(self.scaled);
            self.samples += 1;
        }
    }

    /// The estimator's present value (RFC 3550 A.8: `s->jitter >> 4`).
    #[must_use]
    pub const fn estimate(&self) -> Duration {
        Duration::from_nanos((self.scaled >> 4) as u64)
    }

    /// Mean of the values that counted, in seconds; `None` before the second packet.
    #[must_use]
    pub fn mean_s(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum as f64 / 16e9 / self.samples as f64)
    }
}
