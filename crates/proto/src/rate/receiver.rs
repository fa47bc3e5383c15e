//! The half that receives data (RFC 5348 §6): measures the receive rate, keeps the loss history and
//! knows when feedback is due. What feedback looks like on the wire is the endpoint's.

use crate::probe::Probe;
use crate::time::{Duration, Instant};

use super::config::Parameters;
use super::history::{Arrival, LossHistory};

/// What a feedback packet says (RFC 5348 §3.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// The packet it answers: the one that arrived last, data or not.
    pub last: u64,
    /// Time between that one's arrival and this feedback (t_delay).
    pub delay: Duration,
    /// X_recv in bytes per second.
    pub receive_rate: u64,
    /// p.
    pub loss_event_rate: f64,
}

/// A receiver of data.
#[derive(Clone, Debug)]
pub struct Receiver {
    history: LossHistory,
}

impl Receiver {
    /// A receiver that has seen nothing.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self { history: LossHistory::new(parameters) }
    }
    /// A packet arrived, data or not, no duplicate.
    pub fn on_packet<P: Probe>(&mut self, now: Instant, arrival: &Arrival, _probe: &mut P) {
        self.history.on_packet(now, arrival);
    }
    /// News of the round-trip time by another way than [`Arrival::rtt`].
    pub fn set_rtt(&mut self, _rtt: Duration) {}
    /// True if feedback should leave now.
    #[must_use]
    pub fn wants_feedback(&self, _now: Instant) -> bool {
        false
    }
    /// When feedback will be due if nothing arrives before: the feedback timer.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        None
    }
    /// The deadline has come: feedback is due if data has arrived since the last (RFC 5348 §6.2).
    pub fn on_timeout(&mut self, _now: Instant) {}
    /// What the feedback that leaves now says; starts the next measurement. `None` before any data.
    pub fn feedback(&mut self, _now: Instant) -> Option<Feedback> {
        None
    }
    /// The loss history, for options that tell of it.
    #[must_use]
    pub fn history(&self) -> &LossHistory {
        &self.history
    }
    /// Round-trip time, once known.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        None
    }
}
