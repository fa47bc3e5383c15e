//! Congestion control by window: one question, how much may be in flight, and the news that
//! changes the answer. In-flight accounting, loss detection and timers stay in the endpoint.
//!
//! Windows are counted in an endpoint's own units, and steps are made in *quanta*: the sender
//! maximum segment size for TCP and SCTP, which count bytes; 1 for CCID 2, which counts packets.

mod cubic;
mod hystart;
mod newreno;
mod sctp;

pub use cubic::Cubic;
pub use newreno::NewReno;
pub use sctp::Sctp;

use crate::rtt::RttEstimator;
use crate::time::Instant;
use crate::units::Rate;

/// Where a controller begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Units of one quantum.
    pub quantum: u64,
    /// Initial window in units.
    pub window: u64,
    /// Initial slow-start threshold in units, if there is one.
    pub threshold: Option<u64>,
}

/// An acknowledgement of something new, outside fast recovery.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Units it newly acknowledges.
    pub acked: u64,
    /// Units in flight before it came.
    pub flight: u64,
    /// True if the window, and not the application or the peer, was what held the sender back.
    pub window_limited: bool,
}

/// Signs of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Acknowledgements tell of a loss; once per window of data.
    Loss {
        /// Units in flight.
        flight: u64,
    },
    /// The retransmission timer ran out.
    Timeout {
        /// Units in flight.
        flight: u64,
        /// True if it had run out for the same data before.
        again: bool,
        /// True if it ran out in fast recovery, so that the window was reduced for this loss.
        recovering: bool,
    },
}

/// A congestion controller.
pub trait CongestionControl {
    /// Units that may be in flight (RFC 5681 §2: cwnd).
    fn window(&self) -> u64;
    /// Slow-start threshold, while there is one (RFC 5681 §2: ssthresh).
    fn threshold(&self) -> Option<u64>;
    /// New data was acknowledged.
    fn on_ack(&mut self, now: Instant, ack: &Ack, rtt: &RttEstimator);
    /// Congestion was seen.
    fn on_congestion(&mut self, now: Instant, event: &Congestion);
    /// Fast recovery is over and `flight` units remain in flight.
    fn on_recovered(&mut self, now: Instant, flight: u64);
    /// The sender was silent for longer than a retransmission timeout and is about to send.
    fn on_idle(&mut self, now: Instant);
    /// The quantum changed (another path MTU).
    fn on_quantum(&mut self, quantum: u64);
    /// The window falls to this without a sign of congestion in the network: the other side's
    /// buffer is full (RFC 4340 §11.7.2), or it was not used (RFC 2861 §3).
    fn lower(&mut self, window: u64);
    /// The threshold, where there is one, is at least this from now on (RFC 2861 §3).
    fn raise_threshold(&mut self, threshold: u64);
    /// The rate at which to spread a window over a round trip, if the controller wants that.
    fn pacing_rate(&self, _rtt: &RttEstimator) -> Option<Rate> {
        None
    }
}

/// The controllers there are, without a pointer between endpoint and controller.
#[derive(Clone, Debug)]
pub enum Machine {
    /// RFC 5681 with RFC 6582.
    NewReno(NewReno),
    /// RFC 9438; boxed, lest every connection be as long.
    Cubic(Box<Cubic>),
    /// RFC 9260 §7.2.
    Sctp(Sctp),
}

macro_rules! dispatch {
    ($self:expr, $machine:ident => $call:expr) => {
        match $self {
            Machine::NewReno($machine) => $call,
            Machine::Cubic($machine) => $call,
            Machine::Sctp($machine) => $call,
        }
    };
}

impl CongestionControl for Machine {
    #[inline]
    fn window(&self) -> u64 {
        dispatch!(self, machine => machine.window())
    }
    #[inline]
    fn threshold(&self) -> Option<u64> {
        dispatch!(self, machine => machine.threshold())
    }
    #[inline]
    fn on_ack(&mut self, now: Instant, ack: &Ack, rtt: &RttEstimator) {
        dispatch!(self, machine => machine.on_ack(now, ack, rtt));
    }
    fn on_congestion(&mut self, now: Instant, event: &Congestion) {
        dispatch!(self, machine => machine.on_congestion(now, event));
    }
    fn on_recovered(&mut self, now: Instant, flight: u64) {
        dispatch!(self, machine => machine.on_recovered(now, flight));
    }
    fn on_idle(&mut self, now: Instant) {
        dispatch!(self, machine => machine.on_idle(now));
    }
    fn on_quantum(&mut self, quantum: u64) {
        dispatch!(self, machine => machine.on_quantum(quantum));
    }
    fn lower(&mut self, window: u64) {
        dispatch!(self, machine => machine.lower(window));
    }
    fn raise_threshold(&mut self, threshold: u64) {
        dispatch!(self, machine => machine.raise_threshold(threshold));
    }
    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        dispatch!(self, machine => machine.pacing_rate(rtt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    /// RFC 5681 and RFC 9260 let packets leave as the window opens.
    #[test]
    fn reno_and_sctp_ask_for_no_pace() {
        let start = Start { quantum: 1000, window: 10_000, threshold: None };
        let span = Duration::from_millis;
        let mut rtt = RttEstimator::new(span(200), span(60_000), span(1));
        rtt.sample(span(100), 1);
        for machine in [Machine::NewReno(NewReno::new(&start)), Machine::Sctp(Sctp::new(&start))] {
            assert_eq!(machine.pacing_rate(&rtt), None);
        }
    }
}
