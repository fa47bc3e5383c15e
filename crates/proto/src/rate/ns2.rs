//! Slow start of ns-2's TFRC (tcp/tfrc.cc: `slowstart`, `nextpkt`).

use crate::time::{Duration, Instant};

/// X in bytes per second before any feedback (`InitRate_`).
pub(super) const FIRST_RATE: f64 = 300.0;

/// Contents of feedback, and the sender's state.
pub(super) struct Round {
    pub now: Instant,
    /// X_recv, in bytes per second.
    pub received: f64,
    /// X so far.
    pub rate: f64,
    /// W_init/R.
    pub initial: f64,
    /// s/R.
    pub packet: f64,
    pub rtt: Duration,
    /// Whether there was recently nothing to send.
    pub limited: bool,
}

/// A rate that doubles once per round trip, and reaches each new value packet by packet (`slow_increase_`).
#[derive(Clone, Debug, Default)]
pub(super) struct SlowStart {
    /// Feedback packets and expiries of the nofeedback timer (`round_id`).
    rounds: u32,
    /// When the rate last changed.
    pub(super) changed: Instant,
    /// The rate that the packets have reached, and the increment of each.
    reached: f64,
    step: f64,
}

impl SlowStart {
    /// The nofeedback timer has expired.
    pub(super) fn on_timeout(&mut self) {
        self.rounds += 1;
    }

    /// Feedback without a loss has arrived: the new X.
    pub(super) fn on_feedback(&mut self, round: &Round) -> f64 {
        self.rounds += 1;
        let most = if self.rounds > 1 { 2.0 * round.received } else { 0.0 };
        let since = round.now.saturating_since(self.changed);
        let rate = if self.rounds <= 2 || (most > 0.0 && round.limited && most < round.initial) {
            round.rate.max(round.initial)
        } else if most <= 0.0 {
            round.packet
        } else if round.rate > most {
            most / 2.0
        } else if round.rate < most && since > round.rtt {
            most.min(2.0 * round.rate).max(round.packet)
        } else {
            return round.rate;
        };
        // A lower rate applies at once.
        self.reached = round.rate.min(rate);
        self.step = (rate - self.reached) / (rate / round.packet);
        self.changed = round.now;
        rate
    }

    /// The rate that sets the interval after the packet that leaves now, while it increases to X.
    pub(super) fn next(&mut self, rate: f64) -> Option<f64> {
        let rises = self.rounds > 2 && self.reached < rate;
        rises.then(|| {
            self.reached += self.step;
            self.reached
        })
    }
}
