//! Receivers that cannot keep up (RFC 4342 §5.2): Slow Receiver and Data Dropped lower the allowed
//! rate for a round trip. Congestion is handled separately by the machine.

use crate::time::{Duration, Instant};

/// Option that lowers the rate.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    SlowReceiver,
    ReceiveBufferDrop,
}

/// Limits on the sending rate, each for one round trip. They are independent of each other.
#[derive(Debug, Default)]
pub(super) struct Ceiling {
    /// Minimum time between two data packets and when the limit ends, by [`Cause`].
    bounds: [Option<(Duration, Instant)>; 2],
    last: Option<Instant>,
}

impl Ceiling {
    /// Allows at most this many packets per round trip of `rtt`, for one round trip.
    pub(super) fn hold(&mut self, now: Instant, cause: Cause, packets: f64, rtt: Duration) {
        let interval = Duration::from_secs_f64(rtt.as_secs_f64() / packets);
        self.bounds[cause as usize] = Some((interval, now + rtt));
    }
    /// A data packet was sent.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.last = Some(now);
    }
    /// Earliest departure of the next packet; `None` without a limit.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        let last = self.last?;
        let bounds = self.bounds.iter().flatten();
        bounds
            .map(|(interval, end)| (last + *interval).min(*end))
            .max()
            .filter(|until| *until > now)
    }
}
