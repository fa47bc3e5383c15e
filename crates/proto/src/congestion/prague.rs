//! Prague: DCTCP for the Internet (RFC 9331 §4), by the behaviour of `tcp_prague` 0.7 of L4STeam's Linux. Its
//! pacing at ±3 % around the rate and its smaller segments below 1 Mbit/s are not part of this.

use super::dctcp::Marks;
use super::{Ack, Congestion, CongestionControl, Start, per_second};
use crate::rtt::RttEstimator;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// A flow with a shorter round trip grows as if it had this one.
const TARGET_RTT: Duration = Duration::from_millis(25);
/// Round trips after slow start from which it does.
const TRANSITION: u32 = 4;
/// The lowest rate, in bit/s.
const MIN_RATE: u64 = 100_000;

/// Prague.
#[derive(Clone, Debug)]
pub struct Prague {
    quantum: u64,
    /// The window in bytes. It may be less than the two segments that the sender may always have in flight: the
    /// pace then keeps the rate.
    window: f64,
    ssthresh: Option<u64>,
    initial_window: u64,
    marks: Marks,
    /// A mark was received: some queue on the path marks.
    marked: bool,
    /// Marked bytes of the present acknowledgement, which do not grow the window.
    fresh_marks: u64,
    /// Round trips since slow start.
    rounds: u32,
    updated: Instant,
    reduced: Option<Instant>,
}

impl Prague {
    /// A controller at its start.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        let initial_window = start.window.max(start.quantum);
        Self {
            quantum: start.quantum.max(1),
            window: initial_window as f64,
            ssthresh: start.threshold,
            initial_window,
            marks: Marks::new(0.0, initial_window),
            marked: false,
            fresh_marks: 0,
            rounds: 0,
            updated: Instant::ZERO,
            reduced: None,
        }
    }
    /// The average fraction of bytes marked, 0 to 1.
    #[must_use]
    pub const fn alpha(&self) -> f64 {
        self.marks.alpha
    }
    fn starts(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.window < ssthresh as f64)
    }
    /// Its rate does not depend on round trips below the target.
    const fn is_rtt_independent(&self) -> bool {
        self.rounds >= TRANSITION
    }
    /// The window, and the end of slow start.
    fn reduce_to(&mut self, window: f64) {
        self.window = window.max(1.0);
        self.ssthresh = Some(self.window as u64);
    }
}

impl CongestionControl for Prague {
    fn window(&self) -> u64 {
        let segments = (self.window / self.quantum as f64).ceil() as u64;
        (segments * self.quantum).max(2 * self.quantum)
    }
    /// Two segments at least (RFC 5681 equation 4), which recovery reduces the flight to.
    fn threshold(&self) -> Option<u64> {
        self.ssthresh.map(|ssthresh| ssthresh.max(2 * self.quantum))
    }

    fn uses_marks(&self) -> bool {
        true
    }
    fn on_marks(&mut self, now: Instant, marked: u64, acked: u64, flight: u64) {
        self.fresh_marks = marked;
        self.marks.count(marked, acked);
        if marked > 0 && !self.marked {
            // There is no average yet: the first mark halves the window.
            self.marked = true;
            self.reduce_to(self.window / 2.0);
        }
        let elapsed = now.saturating_since(self.updated);
        if !self.marks.is_complete() || self.is_rtt_independent() && elapsed < TARGET_RTT {
            return;
        }
        let flight = flight.saturating_sub(acked);
        if self.marked {
            self.marks.update(flight);
            self.updated = now;
        } else {
            self.marks.skip(flight);
        }
        if !self.starts() {
            self.rounds = self.rounds.saturating_add(1);
        }
    }
    fn on_ack(&mut self, _: Instant, ack: &Ack, rtt: &RttEstimator) {
        let acked = ack.acked.saturating_sub(std::mem::take(&mut self.fresh_marks));
        if acked == 0 || !ack.window_limited {
            return;
        }
        if self.starts() {
            self.window += acked as f64;
            return;
        }
        // One segment per window; below the target round trip less, so that rates of equal marks are equal.
        let srtt = rtt.srtt().filter(|_| self.is_rtt_independent()).unwrap_or(TARGET_RTT);
        let share = (srtt.as_secs_f64() / TARGET_RTT.as_secs_f64()).min(1.0);
        let segments = (self.window / share / self.quantum as f64).max(1.0);
        self.window += share * acked as f64 / segments;
    }
    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        match *event {
            Congestion::Mark { .. } => {
                let since = self.reduced.map(|reduced| now.saturating_since(reduced));
                if self.is_rtt_independent() && since.is_some_and(|since| since < TARGET_RTT) {
                    return;
                }
                self.reduced = Some(now);
                self.reduce_to(self.window * (1.0 - self.marks.alpha / 2.0));
            }
            // RFC 9331 §4.3: a loss is answered like that of Reno.
            Congestion::Loss { .. } => self.reduce_to(self.window / 2.0),
            Congestion::Timeout { again, .. } => {
                if !again {
                    self.reduce_to(self.window / 2.0);
                }
                self.window = self.window.min(self.quantum as f64);
            }
        }
    }
    fn on_idle(&mut self, _: Instant) {
        // RFC 5681 §4.1: the restart window.
        self.window = self.window.min(self.initial_window as f64);
    }
    fn on_quantum(&mut self, quantum: u64) {
        // RFC 5681 §3.1: the window shrinks with the segments, so that they form no burst.
        let share = (quantum as f64 / self.quantum as f64).min(1.0);
        self.window *= share;
        self.initial_window = (self.initial_window as f64 * share) as u64;
        self.quantum = quantum.max(1);
    }
    fn lower(&mut self, window: u64) {
        self.window = self.window.min(window.max(self.quantum) as f64);
    }
    fn raise_threshold(&mut self, threshold: u64) {
        self.ssthresh = self.ssthresh.map(|ssthresh| ssthresh.max(threshold));
    }
    fn is_held_by_pace(&self) -> bool {
        true
    }
    /// What takes 2⁻¹² s at the rate, so that no burst reaches the thresholds of queues that mark.
    fn pacing_burst(&self, rate: Rate, smss: u64) -> u64 {
        (rate.as_bps() >> 15).max(smss)
    }
    /// The window in a round trip; twice that below half the threshold.
    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        let srtt = rtt.srtt().filter(|srtt| *srtt > Duration::ZERO)?;
        let starts = self.ssthresh.is_none_or(|ssthresh| self.window < ssthresh as f64 / 2.0);
        let gain = if starts { 2.0 } else { 1.0 };
        let rate = 8.0 * gain * per_second(self.window as u64, srtt);
        Some(Rate::from_bps((rate as u64).max(MIN_RATE)))
    }
}
