//! A receiver that cannot keep up (RFC 4342 §5.2): Slow Receiver and Data Dropped lower, for a round
//! trip, what the machine allows. Congestion is the machine's business and stays apart from this.

use crate::time::{Duration, Instant};

/// A bound on the sending rate for some time.
#[derive(Debug, Default)]
pub(super) struct Ceiling {
    /// Least time between two data packets, and until when that holds.
    bound: Option<(Duration, Instant)>,
    last: Option<Instant>,
}

impl Ceiling {
    /// No more than `rate` packets each round trip of `rtt`, for one.
    pub(super) fn hold(&mut self, now: Instant, packets_per_rtt: f64, rtt: Duration) {
        let interval = Duration::from_secs_f64(rtt.as_secs_f64() / packets_per_rtt);
        self.bound = Some((interval, now + rtt));
    }
    /// A data packet left.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.last = Some(now);
    }
    /// Before when the next must not leave; `None` without a bound.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        let (interval, end) = self.bound.filter(|(_, end)| *end > now)?;
        Some((self.last? + interval).min(end)).filter(|until| *until > now)
    }
}
