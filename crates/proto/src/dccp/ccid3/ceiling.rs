//! A receiver that cannot keep up (RFC 4342 §5.2): Slow Receiver and Data Dropped lower, for a round
//! trip, what the machine allows. Congestion is the machine's business and stays apart from this.

use crate::time::{Duration, Instant};

/// What lowers the rate.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    SlowReceiver,
    ReceiveBufferDrop,
}

/// Bounds on the sending rate, each for a round trip. One does not end the other.
#[derive(Debug, Default)]
pub(super) struct Ceiling {
    /// Least time between two data packets, and until when that holds, by [`Cause`].
    bounds: [Option<(Duration, Instant)>; 2],
    last: Option<Instant>,
}

impl Ceiling {
    /// No more than so many packets each round trip of `rtt`, for one round trip.
    pub(super) fn hold(&mut self, now: Instant, cause: Cause, packets: f64, rtt: Duration) {
        let interval = Duration::from_secs_f64(rtt.as_secs_f64() / packets);
        self.bounds[cause as usize] = Some((interval, now + rtt));
    }
    /// A data packet left.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.last = Some(now);
    }
    /// Before when the next must not leave; `None` without a bound.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        let last = self.last?;
        let bounds = self.bounds.iter().flatten();
        bounds
            .map(|(interval, end)| (last + *interval).min(*end))
            .max()
            .filter(|until| *until > now)
    }
}
