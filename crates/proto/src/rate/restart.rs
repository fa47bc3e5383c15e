//! Faster restart (draft-ietf-dccp-tfrc-faster-restart-06): a sender that was silent or slow may quadruple its
//! rate per round trip without congestion, instead of doubling it, up to the rate it has achieved before.

use crate::time::{Duration, Instant};

/// How long an achieved rate remains valid (the draft's `DelayTime`).
const HOLDS: Duration = Duration::from_secs(10 * 60);
/// When it has decayed to zero; in between it falls linearly.
const GONE: Duration = Duration::from_secs(30 * 60);

/// The rate a sender has achieved.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Restart {
    /// X_fast_max in bytes per second, and when it was reached.
    achieved: Option<(Instant, f64)>,
}

impl Restart {
    /// Feedback arrived: `congested` if it reported a new loss event.
    pub(super) fn on_feedback(&mut self, now: Instant, receive_rate: f64, congested: bool) {
        if congested {
            // Only half of the receive rate is known to be safe.
            self.achieved = Some((now, receive_rate / 2.0));
        } else if receive_rate >= self.ceiling(now) {
            self.achieved = Some((now, receive_rate));
        }
    }

    /// X_fast_max as of now, 0 if there is none.
    pub(super) fn ceiling(&self, now: Instant) -> f64 {
        self.achieved.map_or(0.0, |(at, rate)| {
            let age = now.saturating_since(at);
            let left = GONE.saturating_sub(age.max(HOLDS)).as_secs_f64();
            rate * left / (GONE - HOLDS).as_secs_f64()
        })
    }

    /// The rate that may follow `rate` after one round trip: twice, or up to four times within the
    /// rate achieved before.
    pub(super) fn next(&self, now: Instant, rate: f64) -> f64 {
        (2.0 * rate).max((4.0 * rate).min(self.ceiling(now)))
    }
}
