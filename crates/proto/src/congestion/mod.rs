//! Window-based and rate-based congestion control. A controller decides how much may be in flight and, if it
//! paces, how fast it is sent. In-flight accounting, loss detection and timers are in the endpoint.
//!
//! `docs/adding-a-controller.md` adds one step by step: a file and its lines in `machines!` and `controllers!`.
//!
//! Windows are counted in an endpoint's own units and change in *quanta*: the sender maximum segment
//! size for TCP and SCTP, which count bytes; 1 for CCID 2, which counts packets.

mod bbr;
mod cubic;
mod dctcp;
mod hystart;
mod newreno;
mod ns2;
mod prague;
mod sctp;

use std::any::Any;
use std::fmt::Debug;

pub use bbr::{Bbr, BbrState};
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use newreno::NewReno;
pub use ns2::Ns2;
pub use prague::Prague;
pub use sctp::Sctp;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::packet::Ecn;
use crate::rng::Rng;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// Initial values of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Units of one quantum.
    pub quantum: u64,
    /// Initial window in units.
    pub window: u64,
    /// Initial slow-start threshold in units, if there is one.
    pub threshold: Option<u64>,
}

/// An acknowledgement of new data, outside fast recovery.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Units it newly acknowledges.
    pub acked: u64,
    /// Units in flight before it arrived.
    pub flight: u64,
    /// True if the window, not the application or the peer, limited the sender.
    pub window_limited: bool,
}

/// Signs of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Acknowledgements show a loss; once per window of data.
    Loss {
        /// Units in flight.
        flight: u64,
    },
    /// The peer reports marks (RFC 3168 §6.1.2); once per window of data.
    Mark {
        /// Units in flight.
        flight: u64,
    },
    /// The retransmission timer expired.
    Timeout {
        /// Units in flight.
        flight: u64,
        /// True if it had expired for the same data before.
        again: bool,
        /// True if it expired in fast recovery, so that the window was reduced for this loss.
        recovering: bool,
    },
}

/// Path measurement from an acknowledgement of new arrivals (draft-ietf-ccwg-bbr-06 §2.3, §4.1): RS,
/// and the fields of C used with it. Amounts are in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// RS.newly_acked: bytes newly known to have arrived.
    pub newly_acked: u64,
    /// C.delivered: all bytes that have arrived.
    pub total_delivered: u64,
    /// RS.prior_delivered: C.delivered when the newest of these segments was sent.
    pub prior_delivered: u64,
    /// RS.delivered: bytes that have arrived since.
    pub delivered: u64,
    /// RS.delivery_rate in bytes per second; 0 if the sample is not reliable.
    pub delivery_rate: f64,
    /// RS.is_app_limited.
    pub is_app_limited: bool,
    /// RS.tx_in_flight: bytes in flight when that segment was sent, including itself.
    pub tx_in_flight: u64,
    /// RS.lost: bytes declared lost since.
    pub lost: u64,
    /// RS.rtt: its round trip, if it was sent only once.
    pub rtt: Option<Duration>,
    /// C.inflight.
    pub inflight: u64,
    /// C.inflight before this acknowledgement.
    pub prior_inflight: u64,
    /// C.is_cwnd_limited: the window was full at some point in the last round trip.
    pub is_cwnd_limited: bool,
    /// The connection is in loss recovery: fast recovery or after a timeout.
    pub recovering: bool,
}

/// A segment declared lost (draft-ietf-ccwg-bbr-06 §5.5.10.2). Amounts are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// P.size.
    pub size: u64,
    /// Bytes in flight when it was sent, including itself.
    pub tx_in_flight: u64,
    /// Bytes declared lost since it was sent, including itself.
    pub lost: u64,
    /// P.is_app_limited.
    pub is_app_limited: bool,
    /// It does not follow the previously declared loss in the number space.
    pub is_new_range: bool,
}

/// The path model of a model-based controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// BBR.bw.
    pub bw: Rate,
    /// BBR.min_rtt.
    pub min_rtt: Option<Duration>,
    /// BBR.inflight_longterm in bytes, if bounded.
    pub inflight_longterm: Option<u64>,
    /// Number of the state ([`BbrState`]).
    pub phase: u8,
}

/// Units per second.
fn per_second(units: u64, span: Duration) -> f64 {
    units as f64 / span.as_secs_f64()
}

/// Size of a paced burst (draft-ietf-ccwg-bbr-06 §5.6.3: C.send_quantum): a millisecond's worth, from
/// two segments of `smss` to 64 KB.
#[must_use]
pub fn quantum_at(rate: Rate, smss: u64) -> u64 {
    (rate.as_bps() / 8_000).min(65_536).max(2 * smss)
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossRecovery {
    /// Three duplicate acknowledgements act as a timeout: slow start, and all data is sent again
    /// (Jacobson 1988).
    Tahoe,
    /// Three duplicate acknowledgements begin fast recovery; the first new one ends it (RFC 5681 §3.2).
    Reno,
    /// As `reno`, but partial acknowledgements do not end fast recovery (RFC 6582).
    Newreno,
    /// Selective acknowledgements (RFC 2018, 2883), a scoreboard (RFC 6675) and proportional rate
    /// reduction (RFC 9937). If the peer does not offer the option, `newreno` is used.
    Sack,
    /// As `sack`, with RACK-TLP (RFC 8985), which uses time instead of counts of duplicates.
    Rack,
}

impl LossRecovery {
    /// Its name in scenarios.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tahoe => "tahoe",
            Self::Reno => "reno",
            Self::Newreno => "newreno",
            Self::Sack => "sack",
            Self::Rack => "rack",
        }
    }
}

/// Capabilities and requirements of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// Its default loss recovery.
    pub recovery: LossRecovery,
    /// It paces by default.
    pub paces: bool,
    /// It has a slow-start threshold.
    pub has_threshold: bool,
    /// It has HyStart++ (RFC 9406).
    pub has_hystart: bool,
    /// It also has ns-2's window rules.
    pub has_ns2_windows: bool,
    /// It uses delivery rates, which need selective acknowledgements.
    pub needs_sack: bool,
    /// It goes by marks: it needs ECN, and its data carry this code point.
    pub ecn: Option<Ecn>,
}

impl Abilities {
    /// Those of RFC 5681 with this recovery.
    const fn of(recovery: LossRecovery) -> Self {
        Self {
            recovery,
            paces: false,
            has_threshold: true,
            has_hystart: false,
            has_ns2_windows: false,
            needs_sack: false,
            ecn: None,
        }
    }
}

/// Inputs to build the controller of a TCP connection.
#[derive(Clone, Debug)]
pub struct Build {
    /// Initial values.
    pub start: Start,
    /// Its windows follow ns-2's rules.
    pub ns2_windows: bool,
    /// HyStart++ (RFC 9406) ends slow start early.
    pub hystart: bool,
    /// Segments are paced.
    pub paced: bool,
    /// The instant and random numbers of an open connection with selective acknowledgements.
    pub selective: Option<(Instant, Rng)>,
}

/// Defines [`Controller`], the controllers a TCP flow can select.
macro_rules! controllers {
    ($($(#[$about:meta])* $kind:ident $name:literal, $abilities:expr, $build:expr;)*) => {
        /// Congestion controller of a TCP flow. A scenario always names it: defaults may change over
        /// time, results may not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum Controller {
            $($(#[$about])* #[serde(rename = $name)] $kind,)*
        }

        impl Controller {
            /// Its name in scenarios.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
            /// Its capabilities.
            #[must_use]
            pub const fn abilities(self) -> Abilities {
                match self {
                    $(Self::$kind => $abilities,)*
                }
            }
            /// The controller of a connection.
            #[must_use]
            pub fn build(self, build: Build) -> Machine {
                match self {
                    $(Self::$kind => {
                        let make: fn(Build) -> Machine = $build;
                        make(build)
                    })*
                }
            }
        }
    };
}

controllers! {
    /// Tahoe: after a loss, slow start from one segment (Jacobson 1988; ns-2 `Agent/TCP`).
    Tahoe "tahoe",
        Abilities { has_ns2_windows: true, ..Abilities::of(LossRecovery::Tahoe) }, rfc5681;
    /// Reno: RFC 5681 alone; the first new acknowledgement ends fast recovery (ns-2 `Agent/TCP/Reno`).
    Reno "reno",
        Abilities { has_ns2_windows: true, ..Abilities::of(LossRecovery::Reno) }, rfc5681;
    /// NewReno: RFC 5681 with the recovery of RFC 6582 (ns-2 `Agent/TCP/Newreno`).
    Newreno "newreno",
        Abilities { has_ns2_windows: true, ..Abilities::of(LossRecovery::Newreno) }, rfc5681;
    /// The window of RFC 5681 with selective acknowledgements: RFC 2018, 6675 and 9937 (ns-2
    /// `Agent/TCP/Sack1`).
    Sack "sack", Abilities::of(LossRecovery::Sack), rfc5681;
    /// CUBIC (RFC 9438) with RACK-TLP (RFC 8985), as in real hosts (ns-2 `Agent/TCP/Linux` with `cubic`).
    Cubic "cubic", Abilities { has_hystart: true, ..Abilities::of(LossRecovery::Rack) }, |build| {
        let cubic = Cubic::new(&build.start, build.hystart);
        Machine::Cubic(Box::new(if build.paced { cubic.paced() } else { cubic }))
    };
    /// BBR version 3 (draft-ietf-ccwg-bbr-06) with RACK-TLP and pacing. It uses delivery rates, which
    /// need selective acknowledgements; if the peer does not offer them, `newreno` is used.
    Bbr "bbr",
        Abilities {
            paces: true,
            has_threshold: false,
            needs_sack: true,
            ..Abilities::of(LossRecovery::Rack)
        },
        |build| match build.selective {
            Some((now, rng)) => Machine::Bbr(Box::new(Bbr::new(&build.start, now, rng))),
            None => Machine::NewReno(NewReno::new(&build.start)),
        };
    /// DCTCP (RFC 8257) with RACK-TLP: a mark reduces the window by half the fraction of bytes marked. For
    /// networks whose queues mark at a short delay, as in data centres.
    Dctcp "dctcp",
        Abilities { ecn: Some(Ecn::Ect0), ..Abilities::of(LossRecovery::Rack) },
        |build| Machine::Dctcp(Box::new(Dctcp::new(&build.start)));
    /// Prague (RFC 9331 §4; Linux `tcp_prague`) with RACK-TLP and pacing: DCTCP for the Internet, whose data
    /// carry ECT(1), so that a queue of kind `dualpi2` keeps their delay short.
    Prague "prague",
        Abilities { paces: true, ecn: Some(Ecn::Ect1), ..Abilities::of(LossRecovery::Rack) },
        |build| Machine::Prague(Box::new(Prague::new(&build.start)));
}

fn rfc5681(build: Build) -> Machine {
    if build.ns2_windows {
        Machine::Ns2(Ns2::new(&build.start))
    } else {
        Machine::NewReno(NewReno::new(&build.start))
    }
}

/// Defines [`Machine`], the controllers that endpoints can hold.
macro_rules! machines {
    ($($(#[$about:meta])* $name:ident($type:ty),)*) => {
        /// Any controller, stored by value: endpoint and controller share their memory.
        #[derive(Clone, Debug)]
        pub enum Machine {
            $($(#[$about])* $name($type),)*
        }

        macro_rules! dispatch {
            ($of:expr, $machine:ident => $call:expr) => {
                match $of {
                    $(Self::$name($machine) => $call,)*
                }
            };
        }
    };
}

machines! {
    /// RFC 5681 with RFC 6582.
    NewReno(NewReno),
    /// RFC 9438; boxed, as it is larger than most.
    Cubic(Box<Cubic>),
    /// RFC 9260 §7.2.
    Sctp(Sctp),
    /// draft-ietf-ccwg-bbr-06.
    Bbr(Box<Bbr>),
    /// RFC 8257.
    Dctcp(Box<Dctcp>),
    /// RFC 9331 §4.
    Prague(Box<Prague>),
    /// ns-2.35's Tahoe, Reno and NewReno.
    Ns2(Ns2),
    /// One of a program that uses this crate; scenarios cannot name it.
    Other(Box<dyn Other>),
}

dispatched! {
    /// A congestion controller. The first five methods are all that one needs.
    pub trait CongestionControl for Machine by dispatch {
        /// Units that may be in flight (RFC 5681 §2: cwnd).
        #[inline]
        fn window(self: &Self) -> u64;
        /// New data was acknowledged.
        #[inline]
        fn on_ack(self: &mut Self, now: Instant, ack: &Ack, rtt: &RttEstimator);
        /// Congestion was detected.
        fn on_congestion(self: &mut Self, now: Instant, event: &Congestion);
        /// The quantum changed (another path MTU).
        fn on_quantum(self: &mut Self, quantum: u64);
        /// Lowers the window to this without congestion in the network: the peer's buffer is full
        /// (RFC 4340 §11.7.2), or the window was not used (RFC 2861 §3).
        fn lower(self: &mut Self, window: u64);
    } provided {
        /// Slow-start threshold, if there is one (RFC 5681 §2: ssthresh).
        #[inline]
        fn threshold(self: &Self) -> Option<u64> { None }
        /// Raises the threshold, if there is one, to at least this (RFC 2861 §3).
        fn raise_threshold(self: &mut Self, threshold: u64) {}
        /// Fast recovery is over and `flight` units remain in flight.
        fn on_recovered(self: &mut Self, now: Instant, flight: u64) {}
        /// The sender was silent for longer than a retransmission timeout and is about to send.
        fn on_idle(self: &mut Self, now: Instant) {}

        /// True if it uses the number of marks: TCP's receiver then echoes each mark once (RFC 8257 §3.2)
        /// instead of until the sender has reduced its window (RFC 3168 §6.1.3), so that both ends of a
        /// connection need such a controller.
        fn uses_marks(self: &Self) -> bool { false }
        /// An acknowledgement of `acked` new units arrived over TCP with ECN, also in fast recovery; `flight`
        /// units were in flight before. With a peer that echoes each mark, `marked` of them arrived with
        /// Congestion Experienced, apart from those that one delayed acknowledgement covers together with
        /// others. With any other peer, all of them are `marked` while it echoes, which is for about a round
        /// trip after a mark.
        ///
        /// Called before [`Congestion::Mark`], which is still reported at most once per window of data.
        fn on_marks(self: &mut Self, now: Instant, marked: u64, acked: u64, flight: u64) {}

        /// The rate of a paced sender, once there is one. By default that of Linux for controllers
        /// without their own (net.ipv4.tcp_pacing_ss_ratio and tcp_pacing_ca_ratio): two windows per
        /// round trip below half the threshold, 1.2 above it.
        fn pacing_rate(self: &Self, rtt: &RttEstimator) -> Option<Rate> {
            let srtt = rtt.srtt().filter(|srtt| *srtt > Duration::ZERO)?;
            let starts = self.threshold().is_none_or(|threshold| self.window() < threshold / 2);
            let share = if starts { 2.0 } else { 1.2 };
            Some(Rate::from_bps((8.0 * share * per_second(self.window(), srtt)) as u64))
        }

        /// True if the pace may keep less in flight than the window does: data that waits for it shows
        /// then that the application does not limit the sender.
        fn is_held_by_pace(self: &Self) -> bool { false }
        /// Bytes that a paced sender sends at once at this rate.
        fn pacing_burst(self: &Self, rate: Rate, smss: u64) -> u64 { quantum_at(rate, smss) }

        /// True if it uses delivery rates: TCP then measures them, which needs selective acknowledgements, and
        /// calls the methods below.
        fn uses_samples(self: &Self) -> bool { false }
        /// A path measurement. True if the controller itself keeps so little in flight that this says
        /// nothing about the path's rate (draft-ietf-ccwg-bbr-06 §5.3.4.3).
        fn on_sample(self: &mut Self, now: Instant, sample: &RateSample, rtt: &RttEstimator) -> bool { false }
        /// A segment was declared lost.
        fn on_lost(self: &mut Self, now: Instant, packet: &LostPacket) {}
        /// Sending restarts after the application had nothing to send and nothing was in flight.
        fn on_restart(self: &mut Self, now: Instant) {}
        /// Its path model.
        fn model(self: &Self) -> Option<Model> { None }
    }
}

/// A controller in [`Machine::Other`].
pub trait Other: CongestionControl + Any + Debug + Send {
    /// A copy: TCP keeps one for the case that a timeout was spurious (RFC 5682).
    fn copy(&self) -> Box<dyn Other>;
}

impl<T: CongestionControl + Any + Clone + Debug + Send> Other for T {
    fn copy(&self) -> Box<dyn Other> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Other> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

impl Machine {
    /// Window and threshold.
    #[inline]
    #[must_use]
    pub fn limits(&self) -> (u64, Option<u64>) {
        dispatch!(self, machine => (machine.window(), machine.threshold()))
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
            // There is none before the first RTT sample.
            assert!(machines.iter().all(|machine| machine.pacing_rate(&rtt).is_none()));
            rtt.sample(span(100), 1);
            machines.map(|machine| machine.pacing_rate(&rtt).expect("timed").as_bps())
        };
        assert_eq!(paces(None), [1_600_000; 2]);
        assert_eq!(paces(Some(20_002)), [1_600_000; 2]);
        assert_eq!(paces(Some(20_000)), [960_000; 2]);
    }
}
