//! Congestion control by window: one question, how much may be in flight, and the news that
//! changes the answer. In-flight accounting, loss detection and timers stay in the endpoint.
//!
//! Windows are counted in an endpoint's own units, and steps are made in *quanta*: the sender
//! maximum segment size for TCP and SCTP, which count bytes; 1 for CCID 2, which counts packets.

mod bbr;
mod cubic;
mod hystart;
mod newreno;
mod ns2;
mod sctp;

pub use bbr::{Bbr, BbrState};
pub use cubic::Cubic;
pub use newreno::NewReno;
pub use ns2::Ns2;
pub use sctp::Sctp;

use crate::rtt::RttEstimator;
use crate::time::{Duration, Instant};
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
    /// The peer tells of marks (RFC 3168 §6.1.2); once per window of data.
    Mark {
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

/// What an acknowledgement that tells of new arrivals says of the path (draft-ietf-ccwg-bbr-06 §2.3,
/// §4.1): RS, and what of C it is read with. Amounts are in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// RS.newly_acked: what it tells has arrived and was not known to have.
    pub newly_acked: u64,
    /// C.delivered: all that has arrived.
    pub total_delivered: u64,
    /// RS.prior_delivered: what had arrived when the newest of these segments was sent.
    pub prior_delivered: u64,
    /// RS.delivered: what has arrived since.
    pub delivered: u64,
    /// RS.delivery_rate in bytes per second; 0 if the sample is not reliable.
    pub delivery_rate: f64,
    /// RS.is_app_limited.
    pub is_app_limited: bool,
    /// RS.tx_in_flight: what was in flight when that segment was sent, itself included.
    pub tx_in_flight: u64,
    /// RS.lost: what was declared lost since.
    pub lost: u64,
    /// RS.rtt: its round trip, if it was sent only once.
    pub rtt: Option<Duration>,
    /// C.inflight.
    pub inflight: u64,
    /// C.inflight before this acknowledgement.
    pub prior_inflight: u64,
    /// C.is_cwnd_limited: the window was full at some time in the last round trip.
    pub is_cwnd_limited: bool,
    /// The connection is in loss recovery, be it fast recovery or after a timeout.
    pub recovering: bool,
}

/// A segment declared lost (draft-ietf-ccwg-bbr-06 §5.5.10.2). Amounts are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// P.size.
    pub size: u64,
    /// What was in flight when it was sent, itself included.
    pub tx_in_flight: u64,
    /// What was declared lost since it was sent, itself included.
    pub lost: u64,
    /// P.is_app_limited.
    pub is_app_limited: bool,
    /// It does not follow the one declared lost before it in the number space.
    pub is_new_range: bool,
}

/// What a controller that models the path believes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// BBR.bw.
    pub bw: Rate,
    /// BBR.min_rtt.
    pub min_rtt: Option<Duration>,
    /// BBR.inflight_longterm in bytes, where there is a bound.
    pub inflight_longterm: Option<u64>,
    /// Number of the state ([`BbrState`]).
    pub phase: u8,
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
    /// The rate of a sender that paces, once there is one. Unless the controller has its own it is
    /// what Linux gives the others (net.ipv4.tcp_pacing_ss_ratio and tcp_pacing_ca_ratio): two
    /// windows a round trip below half the threshold, 1.2 above it.
    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<Rate> {
        let srtt = rtt.srtt().filter(|srtt| *srtt > Duration::ZERO)?;
        let starts = self.threshold().is_none_or(|threshold| self.window() < threshold / 2);
        let share = if starts { 2.0 } else { 1.2 };
        Some(Rate::from_bps((8.0 * share * per_second(self.window(), srtt)) as u64))
    }

    // What a controller wants that goes by delivery rates, and others never hear of.

    /// News from the path. True if what is in flight now is so little by the controller's own will
    /// that it says nothing of the path's rate (draft-ietf-ccwg-bbr-06 §5.3.4.3).
    fn on_sample(&mut self, _now: Instant, _sample: &RateSample, _rtt: &RttEstimator) -> bool {
        false
    }
    /// A segment was declared lost.
    fn on_lost(&mut self, _now: Instant, _packet: &LostPacket) {}
    /// The application had nothing to send, nothing is in flight, and now something is about to be.
    fn on_restart(&mut self, _now: Instant) {}
    /// What it believes of the path.
    fn model(&self) -> Option<Model> {
        None
    }
}

/// Units per second.
fn per_second(units: u64, span: Duration) -> f64 {
    units as f64 / span.as_secs_f64()
}

/// What a paced sender sends at once (draft-ietf-ccwg-bbr-06 §5.6.3: C.send_quantum): a millisecond's
/// worth, from two segments of `smss` to 64 KB.
#[must_use]
pub fn quantum_at(rate: Rate, smss: u64) -> u64 {
    (rate.as_bps() / 8_000).min(65_536).max(2 * smss)
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
    /// draft-ietf-ccwg-bbr-06.
    Bbr(Box<Bbr>),
    /// ns-2.35's Tahoe, Reno and NewReno.
    Ns2(Ns2),
}

macro_rules! dispatch {
    ($self:expr, $machine:ident => $call:expr) => {
        match $self {
            Machine::NewReno($machine) => $call,
            Machine::Cubic($machine) => $call,
            Machine::Sctp($machine) => $call,
            Machine::Ns2($machine) => $call,
            Machine::Bbr($machine) => $call,
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
    fn on_sample(&mut self, now: Instant, sample: &RateSample, rtt: &RttEstimator) -> bool {
        dispatch!(self, machine => machine.on_sample(now, sample, rtt))
    }
    fn on_lost(&mut self, now: Instant, packet: &LostPacket) {
        dispatch!(self, machine => machine.on_lost(now, packet));
    }
    fn on_restart(&mut self, now: Instant) {
        dispatch!(self, machine => machine.on_restart(now));
    }
    fn model(&self) -> Option<Model> {
        dispatch!(self, machine => machine.model())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    /// Linux's tcp_pacing_ss_ratio and tcp_pacing_ca_ratio, 200 and 120 %: ten segments of 1000 bytes
    /// in 100 ms are 800 kbit/s.
    #[test]
    fn the_pace_of_those_without_one() {
        let paces = |threshold| {
            let start = Start { quantum: 1000, window: 10_000, threshold };
            let span = Duration::from_millis;
            let mut rtt = RttEstimator::new(span(200), span(60_000), span(1));
            let machines =
                [Machine::NewReno(NewReno::new(&start)), Machine::Sctp(Sctp::new(&start))];
            // Before the first round trip there is none.
            assert!(machines.iter().all(|machine| machine.pacing_rate(&rtt).is_none()));
            rtt.sample(span(100), 1);
            machines.map(|machine| machine.pacing_rate(&rtt).expect("timed").as_bps())
        };
        assert_eq!(paces(None), [1_600_000; 2]);
        assert_eq!(paces(Some(20_002)), [1_600_000; 2]);
        assert_eq!(paces(Some(20_000)), [960_000; 2]);
    }
}
