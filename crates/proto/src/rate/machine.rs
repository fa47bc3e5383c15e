//! All rate controllers as one type: endpoints hold a [`Machine`] and do not distinguish them. A
//! new controller is a variant here and an option in [`Parameters`].

use super::beritelli::Beritelli;
use super::bucket::Bucket;
use super::config::Parameters;
use super::{Permit, RateControl, Report, Rung, Sender};
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
            Machine::Tfrc($controller) => $call,
            Machine::TokenBucket($controller) => $call,
            Machine::Beritelli($controller) => $call,
        }
    };
}

impl Machine {
    /// The controller selected by the parameters, for the source's encodings, best first. `now` is
    /// when the connection opened. Without a ladder a token bucket has no use and plain TFRC
    /// remains.
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
    /// The source can follow any rate: each change of the rate is reported
    /// ([`RateControl::target_rate`]).
    pub fn report_rate(&mut self) {
        match self {
            Self::Tfrc(sender) => sender.report_rate(),
            // These select among the rungs of a ladder.
            Self::TokenBucket(_) | Self::Beritelli(_) => {}
        }
    }
    /// Sets a round-trip time known before the first feedback (RFC 5348 §4.2).
    pub fn set_initial_rtt<P: EndpointProbe>(
        &mut self,
        now: Instant,
        rtt: Duration,
        probe: &mut P,
    ) {
        dispatch!(self, controller => controller.set_initial_rtt(now, rtt, probe));
    }
    /// Bytes held that reports can increase.
    pub(crate) fn footprint(&self) -> usize {
        match self {
            Self::Tfrc(sender) => sender.footprint(),
            Self::TokenBucket(bucket) => bucket.inner().footprint(),
            Self::Beritelli(_) => 0,
        }
    }

    /// s in bytes (RFC 5348 §4.1).
    #[inline]
    #[must_use]
    pub fn segment_size(&self) -> f64 {
        dispatch!(self, controller => controller.segment_size())
    }
    /// t_RTO of the equation in ticks of 100 ms; 0 if it is four round-trip times (RFC 5348 §3.1).
    #[inline]
    #[must_use]
    pub fn timeout_ticks(&self) -> u8 {
        match self {
            Self::Tfrc(sender) => sender.timeout_ticks(),
            Self::TokenBucket(bucket) => bucket.inner().timeout_ticks(),
            Self::Beritelli(_) => 0,
        }
    }
    /// Bytes the rate counts per packet: s, or with RFC 4828 the packet's own size.
    #[inline]
    #[must_use]
    pub fn paced_size(&self) -> f64 {
        match self {
            Self::Tfrc(sender) => sender.paced_size(),
            Self::TokenBucket(bucket) => bucket.inner().paced_size(),
            Self::Beritelli(_) => self.segment_size(),
        }
    }
}

impl RateControl for Machine {
    #[inline]
    fn permit(&mut self, now: Instant, bytes: u32) -> Permit {
        dispatch!(self, controller => controller.permit(now, bytes))
    }
    fn on_unused(&mut self, now: Instant) {
        dispatch!(self, controller => controller.on_unused(now));
    }
    fn on_sent(&mut self, now: Instant, bytes: u32) {
        dispatch!(self, controller => controller.on_sent(now, bytes));
    }
    fn on_report<P: EndpointProbe>(&mut self, now: Instant, report: &Report, probe: &mut P) {
        dispatch!(self, controller => controller.on_report(now, report, probe));
    }
    #[inline]
    fn deadline(&self) -> Option<Instant> {
        dispatch!(self, controller => controller.deadline())
    }
    fn on_timeout<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        dispatch!(self, controller => controller.on_timeout(now, probe));
    }
    #[inline]
    fn rate(&self) -> Rate {
        dispatch!(self, controller => controller.rate())
    }
    #[inline]
    fn rtt(&self) -> Option<Duration> {
        dispatch!(self, controller => controller.rtt())
    }
    fn evidence(&self) -> Rate {
        dispatch!(self, controller => controller.evidence())
    }
    #[inline]
    fn target_rate(&mut self) -> Option<Rate> {
        dispatch!(self, controller => controller.target_rate())
    }
}
