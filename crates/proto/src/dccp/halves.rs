//! Selection of the CCID of a half-connection: created by number, dispatched statically.

use super::ackvec::AckVector;
use super::ccid::{
    Acknowledgement, Arrival, Departure, Receiver, ReceiverHalf, Sender, SenderHalf,
};
use super::config::{Ccid, Config};
use super::options::Options;
use super::{ccid2, ccid3};
use crate::gauge::EndpointProbe;
use crate::rate::{Kind, Permit, Rung};
use crate::time::{Duration, Instant};
use crate::units::Rate;

macro_rules! dispatch {
    ($type:ident, $half:expr, $ccid:ident => $call:expr) => {
        match $half {
            $type::Two($ccid) => $call,
            $type::Three($ccid) => $call,
        }
    };
}

/// The rate machine's kind for a CCID of the TFRC family.
pub(super) const fn kind(ccid: Ccid) -> Kind {
    match ccid {
        Ccid::Four => Kind::Ccid4,
        Ccid::Two | Ccid::Three => Kind::Ccid3,
    }
}

impl SenderHalf {
    /// Creates the half of a new connection, or of one that changed its CCID. `rtt` is the
    /// handshake's.
    pub(super) fn begin<P: EndpointProbe>(
        now: Instant,
        ccid: Ccid,
        config: &Config,
        ladder: &[Rung],
        rtt: Option<Duration>,
        probe: &mut P,
    ) -> Self {
        let profile = config.profile;
        if ccid == Ccid::Two {
            let mut sender = ccid2::Sender::new(&config.window.resolve(profile));
            if let Some(rtt) = rtt {
                sender.on_handshake_rtt(rtt);
            }
            return Self::Two(Box::new(sender));
        }
        let parameters = config.rate.resolve(profile, kind(ccid));
        let mut sender = ccid3::Sender::new(now, &parameters, ladder);
        if let Some(rtt) = rtt {
            sender.set_initial_rtt(now, rtt, probe);
        }
        Self::Three(Box::new(sender))
    }

    /// The source can send at any rate, and follows the rate of CCID 3 and 4.
    pub(super) fn report_rate(&mut self) {
        match self {
            Self::Two(_) => {}
            Self::Three(sender) => sender.report_rate(),
        }
    }

    /// Data packets in the network, if the CCID counts them.
    pub(super) const fn outstanding(&self) -> u64 {
        match self {
            Self::Two(sender) => sender.pipe(),
            Self::Three(_) => 0,
        }
    }

    /// Sets whether data packets are ECN-capable and carry RFC 6323 estimates.
    pub(super) fn agree(&mut self, ecn: bool, estimates: bool) {
        if let Self::Three(sender) = self {
            sender.set_ect(ecn);
            sender.set_rtt_estimate(estimates);
        }
    }
}

impl ReceiverHalf {
    /// Creates the half of a new connection, or of one that changed its CCID.
    pub(super) fn begin(ccid: Ccid, config: &Config) -> Self {
        let profile = config.profile;
        if ccid == Ccid::Two {
            return Self::Two(Box::new(ccid2::Receiver::new(&config.window.resolve(profile))));
        }
        Self::Three(Box::new(ccid3::Receiver::new(&config.rate.resolve(profile, kind(ccid)))))
    }

    /// Sets Send Loss Event Rate (RFC 4342 §8.4) and Send RTT Estimate (RFC 6323 §3.2.2).
    pub(super) fn agree(&mut self, loss_event_rate: bool, estimates: bool) {
        if let Self::Three(receiver) = self {
            receiver.set_loss_event_rate(loss_event_rate);
            receiver.set_rtt_estimate(estimates);
        }
    }
}

impl Sender for SenderHalf {
    fn permit(&mut self, now: Instant) -> Permit {
        dispatch!(SenderHalf, self, ccid => ccid.permit(now))
    }
    fn on_unused(&mut self, now: Instant) {
        dispatch!(SenderHalf, self, ccid => ccid.on_unused(now));
    }
    fn ccval(&mut self, now: Instant) -> u8 {
        dispatch!(SenderHalf, self, ccid => ccid.ccval(now))
    }
    fn options(&mut self, now: Instant, out: &mut Options) {
        dispatch!(SenderHalf, self, ccid => ccid.options(now, out));
    }
    fn on_sent<P: EndpointProbe>(&mut self, now: Instant, packet: &Departure, probe: &mut P) {
        dispatch!(SenderHalf, self, ccid => ccid.on_sent(now, packet, probe));
    }
    fn on_arrival(&mut self, now: Instant, packet: &Arrival<'_>) {
        dispatch!(SenderHalf, self, ccid => ccid.on_arrival(now, packet));
    }
    fn owes_ack(&mut self) -> bool {
        dispatch!(SenderHalf, self, ccid => ccid.owes_ack())
    }
    fn on_ack<P: EndpointProbe>(&mut self, now: Instant, ack: &Acknowledgement<'_>, probe: &mut P) {
        dispatch!(SenderHalf, self, ccid => ccid.on_ack(now, ack, probe));
    }
    fn deadline(&self) -> Option<Instant> {
        dispatch!(SenderHalf, self, ccid => ccid.deadline())
    }
    fn on_timeout<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P) {
        dispatch!(SenderHalf, self, ccid => ccid.on_timeout(now, probe));
    }
    fn ack_ratio(&self) -> Option<u16> {
        dispatch!(SenderHalf, self, ccid => ccid.ack_ratio())
    }
    fn packets_per_rtt(&self) -> u64 {
        dispatch!(SenderHalf, self, ccid => ccid.packets_per_rtt())
    }
    fn rtt(&self) -> Option<Duration> {
        dispatch!(SenderHalf, self, ccid => ccid.rtt())
    }
    fn ect(&self) -> bool {
        dispatch!(SenderHalf, self, ccid => ccid.ect())
    }
    fn target_rate(&mut self) -> Option<Rate> {
        dispatch!(SenderHalf, self, ccid => ccid.target_rate())
    }
}

impl Receiver for ReceiverHalf {
    fn on_packet<P: EndpointProbe>(&mut self, now: Instant, packet: &Arrival<'_>, probe: &mut P) {
        dispatch!(ReceiverHalf, self, ccid => ccid.on_packet(now, packet, probe));
    }
    fn wants_ack(&self, now: Instant) -> bool {
        dispatch!(ReceiverHalf, self, ccid => ccid.wants_ack(now))
    }
    fn deadline(&self) -> Option<Instant> {
        dispatch!(ReceiverHalf, self, ccid => ccid.deadline())
    }
    fn on_timeout(&mut self, now: Instant) {
        dispatch!(ReceiverHalf, self, ccid => ccid.on_timeout(now));
    }
    fn acknowledge(&mut self, now: Instant, data: bool, vector: &mut AckVector, out: &mut Options) {
        dispatch!(ReceiverHalf, self, ccid => ccid.acknowledge(now, data, vector, out));
    }
    fn set_ack_ratio(&mut self, ratio: u16) {
        dispatch!(ReceiverHalf, self, ccid => ccid.set_ack_ratio(ratio));
    }
    fn set_rtt(&mut self, rtt: Duration) {
        dispatch!(ReceiverHalf, self, ccid => ccid.set_rtt(rtt));
    }
}
