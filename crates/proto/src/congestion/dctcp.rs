//! DCTCP (RFC 8257): a mark reduces the window by half the fraction of bytes that are marked. Otherwise the
//! window is NewReno's (§3.4, §3.5).

use super::{Ack, Congestion, CongestionControl, NewReno, Start};
use crate::rtt::RttEstimator;
use crate::time::Instant;

/// The estimation gain g (RFC 8257 §4.2, and Prague of Linux).
const GAIN: f64 = 1.0 / 16.0;

/// The average fraction of bytes marked (RFC 8257 §3.3), over windows of what was in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// DCTCP.Alpha.
    pub(super) alpha: f64,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked.
    acked: u64,
    marked: u64,
    /// Bytes of this observation window: those in flight at its beginning.
    observed: u64,
}

impl Marks {
    pub(super) const fn new(alpha: f64, window: u64) -> Self {
        Self { alpha, acked: 0, marked: 0, observed: window }
    }
    pub(super) fn count(&mut self, marked: u64, acked: u64) {
        self.acked += acked;
        self.marked += marked;
    }
    /// True if all that was in flight at the beginning of the window is acknowledged.
    pub(super) const fn is_complete(&self) -> bool {
        self.acked >= self.observed
    }
    /// Ends the window; the next one has `flight` bytes.
    pub(super) fn update(&mut self, flight: u64) {
        let fraction = self.marked as f64 / self.acked.max(1) as f64;
        self.alpha = self.alpha * (1.0 - GAIN) + GAIN * fraction;
        self.skip(flight);
    }
    /// Ends the window without a new average.
    pub(super) const fn skip(&mut self, flight: u64) {
        (self.acked, self.marked, self.observed) = (0, 0, flight);
    }
}

/// DCTCP.
#[derive(Clone, Debug)]
pub struct Dctcp {
    reno: NewReno,
    marks: Marks,
}

impl Dctcp {
    /// A controller at its start.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        Self { reno: NewReno::new(start), marks: Marks::new(1.0, start.window) }
    }
    /// The average fraction of bytes marked, 0 to 1 (§3.3: DCTCP.Alpha).
    #[must_use]
    pub const fn alpha(&self) -> f64 {
        self.marks.alpha
    }
}

impl CongestionControl for Dctcp {
    fn window(&self) -> u64 {
        self.reno.window()
    }
    fn threshold(&self) -> Option<u64> {
        self.reno.threshold()
    }
    fn on_ack(&mut self, now: Instant, ack: &Ack, rtt: &RttEstimator) {
        self.reno.on_ack(now, ack, rtt);
    }
    fn uses_marks(&self) -> bool {
        true
    }
    fn on_marks(&mut self, _: Instant, marked: u64, acked: u64, flight: u64) {
        self.marks.count(marked, acked);
        if self.marks.is_complete() {
            self.marks.update(flight.saturating_sub(acked));
        }
    }
    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        let event = match event {
            // §3.3 step 9. NewReno halves the flight size, so the argument is twice the new window.
            Congestion::Mark { .. } => {
                let window = self.window() as f64 * (1.0 - self.marks.alpha / 2.0);
                Congestion::Mark { flight: 2 * window as u64 }
            }
            other => *other,
        };
        self.reno.on_congestion(now, &event);
    }
    fn on_recovered(&mut self, now: Instant, flight: u64) {
        self.reno.on_recovered(now, flight);
    }
    fn on_idle(&mut self, now: Instant) {
        self.reno.on_idle(now);
    }
    fn on_quantum(&mut self, quantum: u64) {
        self.reno.on_quantum(quantum);
    }
    fn lower(&mut self, window: u64) {
        self.reno.lower(window);
    }
    fn raise_threshold(&mut self, threshold: u64) {
        self.reno.raise_threshold(threshold);
    }
}
