//! The half that sends data (RFC 5348 §4): the allowed rate from feedback and from its absence,
//! and when the next packet may leave. RFC 3448's idle rule, RFC 4828's small packets and faster
//! restart are parameters of it.

use crate::probe::Probe;
use crate::time::{Duration, Instant};
use crate::units::Rate;

use super::config::Parameters;
use super::{Permit, RateControl, Report};

/// A sender of data.
#[derive(Clone, Debug)]
pub struct Sender {
    parameters: Parameters,
}

impl Sender {
    /// A sender that has sent nothing. `now` is when its connection opened.
    #[must_use]
    pub fn new(_now: Instant, parameters: &Parameters) -> Self {
        Self { parameters: parameters.clone() }
    }
    /// A round-trip time known before the first feedback, from a handshake (RFC 5348 §4.2, RFC 4342
    /// §5): the initial rate holds from now on.
    pub fn set_initial_rtt<P: Probe>(&mut self, _now: Instant, _rtt: Duration, _probe: &mut P) {}
    /// X in bytes per second, without oscillation prevention.
    #[must_use]
    pub fn allowed_rate(&self) -> f64 {
        0.0
    }
    /// X_Bps of the throughput equation in bytes per second; `None` while p is 0 or R unknown.
    #[must_use]
    pub fn equation_rate(&self) -> Option<f64> {
        None
    }
    /// X_recv as last reported, in bytes per second.
    #[must_use]
    pub fn receive_rate(&self) -> Option<f64> {
        None
    }
    /// p as last reported.
    #[must_use]
    pub fn loss_event_rate(&self) -> f64 {
        0.0
    }
    /// s in bytes.
    #[must_use]
    pub fn segment_size(&self) -> f64 {
        f64::from(self.parameters.nominal_bytes.unwrap_or(0))
    }
    /// Time between two packets at the rate allowed now (RFC 5348 §4.6: t_ipi).
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::ZERO
    }
}

impl RateControl for Sender {
    fn permit(&mut self, _now: Instant, _bytes: u32) -> Permit {
        Permit::Now
    }
    fn on_unused(&mut self, _now: Instant) {}
    fn on_sent(&mut self, _now: Instant, _bytes: u32) {}
    fn on_report<P: Probe>(&mut self, _now: Instant, _report: &Report, _probe: &mut P) {}
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn on_timeout<P: Probe>(&mut self, _now: Instant, _probe: &mut P) {}
    fn rate(&self) -> Rate {
        Rate::ZERO
    }
    fn rtt(&self) -> Option<Duration> {
        None
    }
}
