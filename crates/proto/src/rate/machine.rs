//! All rate controllers as one type: endpoints hold a [`Machine`] and do not distinguish them. A
//! new controller is a variant here and an option in [`Parameters`].

use super::beritelli::Beritelli;
use super::bucket::Bucket;
use super::config::Parameters;
use super::{Permit, Report, Rung, Sender};
use crate::gauge::EndpointProbe;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// A controller of a sending rate.
#[derive(Debug)]
pub enum Machine {
    /// TFRC (RFC 5348), and with its parameters TFRC-SP (RFC 4828).
    Tfrc(Box<Sender>),
    /// TFRC with a token bucket over a ladder (Maldonado et al. 2005, TFRC-TB).
    TokenBucket(Box<Bucket<Sender>>),
    /// Rate control by delay variation (Beritelli et al. 2002).
    Beritelli(Box<Beritelli>),
}

macro_rules! dispatch {
    ($machine:expr, $controller:ident => $call:expr) => {
        match $machine {
            Self::Tfrc($controller) => $call,
            Self::TokenBucket($controller) => $call,
            Self::Beritelli($controller) => $call,
        }
    };
}

dispatched! {
    /// A controller of a sending rate.
    pub trait RateControl for Machine by dispatch {
        /// Whether a packet of `bytes` may leave.
        #[inline]
        fn permit(self: &mut Self, now: Instant, bytes: u32) -> Permit;
        /// A permit was not used: there was nothing to send (RFC 5348 §4.3, data-limited). To be called when
        /// [`Permit::Now`] finds no packet waiting; a packet that leaves at the same instant cancels it.
        fn on_unused(self: &mut Self, now: Instant);
        /// A data packet of this many bytes left.
        fn on_sent(self: &mut Self, now: Instant, bytes: u32);
        /// Feedback arrived.
        fn on_report<P: EndpointProbe>(self: &mut Self, now: Instant, report: &Report, probe: &mut P);
        /// Sets a round-trip time known before the first feedback (RFC 5348 §4.2).
        fn set_initial_rtt<P: EndpointProbe>(self: &mut Self, now: Instant, rtt: Duration, probe: &mut P);
        /// Its next deadline (the nofeedback timer).
        #[inline]
        fn deadline(self: &Self) -> Option<Instant>;
        /// Its deadline was reached.
        fn on_timeout<P: EndpointProbe>(self: &mut Self, now: Instant, probe: &mut P);
        /// Allowed sending rate (RFC 5348 §4: X).
        #[inline]
        fn rate(self: &Self) -> Rate;
        /// Round-trip time, once known (R).
        #[inline]
        fn rtt(self: &Self) -> Option<Duration>;
        /// s in bytes (RFC 5348 §4.1), including headers that count.
        #[inline]
        fn segment_size(self: &Self) -> f64;
    } provided {
        /// Bytes the rate counts per packet: s, or with RFC 4828 the packet's own size.
        #[inline]
        fn paced_size(self: &Self) -> f64 { self.segment_size() }
        /// t_RTO of the equation in ticks of 100 ms; 0 if it is four round-trip times (RFC 5348 §3.1).
        #[inline]
        fn timeout_ticks(self: &Self) -> u8 { 0 }
        /// The part of its rate that the network has been shown to carry: after loss, at most the rate of the
        /// throughput equation, and before that at most the receive rate. Zero if the controller cannot tell.
        fn evidence(self: &Self) -> Rate { Rate::ZERO }
        /// The source can follow any rate: each change of the rate is reported by `target_rate`, but by
        /// controllers that select among the rungs of a ladder.
        fn report_rate(self: &mut Self) {}
        /// The rate requested from the source, excluding transport headers, if it differs from the last
        /// one requested; `None` for controllers that do not steer the source.
        #[inline]
        fn target_rate(self: &mut Self) -> Option<Rate> { None }
        /// Bytes held that reports can increase.
        fn footprint(self: &Self) -> usize { 0 }
    }
}

impl Machine {
    /// The controller selected by the parameters, for the source's encodings, best first. `now` is when the
    /// connection opened. Without a ladder a token bucket has no use and plain TFRC remains.
    #[must_use]
    pub fn build(now: Instant, parameters: &Parameters, ladder: &[Rung]) -> Self {
        if let Some(config) = &parameters.beritelli {
            return Self::Beritelli(Box::new(Beritelli::new(now, config, ladder)));
        }
        let (Some(config), Some(best)) = (&parameters.token_bucket, ladder.first()) else {
            return Self::Tfrc(Box::new(Sender::new(now, parameters)));
        };
        let mut config = config.clone();
        if parameters.header_bytes > 0 {
            // RFC 4828 §4.2: X already includes the headers.
            config.header_bytes = 0;
        }
        let mut parameters = parameters.clone();
        // If s were the mean of the packets sent, a step down the ladder would lower X itself and
        // cause the next: the fair rate assumes packets as long as the best codec's.
        parameters.nominal_bytes.get_or_insert(best.packet_bytes + config.header_bytes);
        let sender = Sender::new(now, &parameters);
        let spacing = parameters.minimum_interval;
        Self::TokenBucket(Box::new(Bucket::new(now, &config, ladder, spacing, sender)))
    }
}
