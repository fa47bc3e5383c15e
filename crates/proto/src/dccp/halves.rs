//! Which CCID answers for a half-connection: built by number, asked without a virtual call.

use super::ackvec::AckVector;
use super::ccid::{
    Acknowledgement, Arrival, Departure, Receiver, ReceiverHalf, Sender, SenderHalf,
};
use super::config::{Ccid, Config};
use super::options::Options;
use super::{ccid2, ccid3};
use crate::probe::Probe;
use crate::rate::{Kind, Permit};
use crate::time::{Duration, Instant};

macro_rules! dispatch {
    ($type:ident, $half:expr, $ccid:ident => $call:expr) => {
        match $half {
            $type::Two($ccid) => $call,
            $type::Three($ccid) => $call,
        }
    };
}

const fn kind(ccid: Ccid) -> Kind {
    match ccid {
        Ccid::Four => Kind::Ccid4,
        Ccid::Two | Ccid::Three => Kind::Ccid3,
    }
}

impl SenderHalf {
    /// The half of a connection, or of one that changed its CCID, from now on.
    pub(super) fn new(now: Instant, ccid: Ccid, config: &Config) -> Self {
        let profile = config.profile;
        match ccid {
            Ccid::Two => Self::Two(Box::new(ccid2::Sender::new(now, &config.window, profile))),
            Ccid::Three | Ccid::Four => {
                let sender = ccid3::Sender::new(now, &config.rate, profile, kind(ccid));
                Self::Three(Box::new(sender))
            }
        }
    }
}

impl ReceiverHalf {
    /// The half of a connection, or of one that changed its CCID, from now on.
    pub(super) fn new(ccid: Ccid, config: &Config) -> Self {
        let profile = config.profile;
        match ccid {
            Ccid::Two => Self::Two(Box::new(ccid2::Receiver::new(&config.window, profile))),
            Ccid::Three | Ccid::Four => {
                Self::Three(Box::new(ccid3::Receiver::new(&config.rate, profile, kind(ccid))))
            }
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
    fn on_sent<P: Probe>(&mut self, now: Instant, packet: &Departure, probe: &mut P) {
        dispatch!(SenderHalf, self, ccid => ccid.on_sent(now, packet, probe));
    }
    fn on_ack<P: Probe>(&mut self, now: Instant, ack: &Acknowledgement<'_>, probe: &mut P) {
        dispatch!(SenderHalf, self, ccid => ccid.on_ack(now, ack, probe));
    }
    fn deadline(&self) -> Option<Instant> {
        dispatch!(SenderHalf, self, ccid => ccid.deadline())
    }
    fn on_timeout<P: Probe>(&mut self, now: Instant, probe: &mut P) {
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
    fn encoding(&mut self) -> Option<u8> {
        dispatch!(SenderHalf, self, ccid => ccid.encoding())
    }
    fn on_feature(&mut self, number: u8, value: u64) {
        dispatch!(SenderHalf, self, ccid => ccid.on_feature(number, value));
    }
}

impl Receiver for ReceiverHalf {
    fn on_packet<P: Probe>(&mut self, now: Instant, packet: &Arrival<'_>, probe: &mut P) {
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
    fn on_feature(&mut self, number: u8, value: u64) {
        dispatch!(ReceiverHalf, self, ccid => ccid.on_feature(number, value));
    }
}
