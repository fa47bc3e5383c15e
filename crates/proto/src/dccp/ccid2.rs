//! CCID 2: to be written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ackvec::AckVector;
use super::ccid::{self, Acknowledgement, Arrival, Departure};
use super::options::Options;
use super::seqno::SeqNo;
use crate::probe::Probe;
use crate::profile::Profile;
use crate::rate::Permit;
use crate::time::{Duration, Instant};

/// Knobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {}

/// The sending half.
#[derive(Debug, Default)]
pub struct Sender {
    last: Option<SeqNo>,
    acked: Option<SeqNo>,
    flight: u64,
    rtt: Option<Duration>,
}

/// The receiving half.
#[derive(Debug, Default)]
pub struct Receiver {
    due: u32,
}

impl Sender {
    /// New.
    #[must_use]
    pub fn new(_now: Instant, _config: &Config, _profile: Profile) -> Self {
        Self::default()
    }
}
impl Receiver {
    /// New.
    #[must_use]
    pub fn new(_config: &Config, _profile: Profile) -> Self {
        Self::default()
    }
}

impl ccid::Sender for Sender {
    fn permit(&mut self, _: Instant) -> Permit {
        if self.flight < 100 { Permit::Now } else { Permit::Blocked }
    }
    fn on_unused(&mut self, _: Instant) {}
    fn ccval(&mut self, _: Instant) -> u8 {
        0
    }
    fn options(&mut self, _: Instant, _: &mut Options) {}
    fn on_sent<P: Probe>(&mut self, _: Instant, packet: &Departure, _: &mut P) {
        self.last = Some(packet.seq);
        self.flight += u64::from(packet.data_bytes.is_some());
    }
    fn on_ack<P: Probe>(&mut self, _: Instant, ack: &Acknowledgement<'_>, _: &mut P) {
        self.acked = self.acked.max(Some(ack.ack));
        self.flight = 0;
        self.rtt = ack.echo_rtt.or(self.rtt);
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn on_timeout<P: Probe>(&mut self, _: Instant, _: &mut P) {}
    fn ack_ratio(&self) -> Option<u16> {
        None
    }
    fn packets_per_rtt(&self) -> u64 {
        1
    }
    fn rtt(&self) -> Option<Duration> {
        self.rtt
    }
    fn ect(&self) -> bool {
        true
    }
    fn encoding(&mut self) -> Option<u8> {
        None
    }
}

impl ccid::Receiver for Receiver {
    fn on_packet<P: Probe>(&mut self, _: Instant, packet: &Arrival<'_>, _: &mut P) {
        self.due += u32::from(packet.data_bytes.is_some());
    }
    fn wants_ack(&self, _: Instant) -> bool {
        self.due >= 2
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn on_timeout(&mut self, _: Instant) {}
    fn acknowledge(&mut self, _: Instant, _: bool, _: &mut AckVector, _: &mut Options) {
        self.due = 0;
    }
    fn set_ack_ratio(&mut self, _: u16) {}
    fn set_rtt(&mut self, _: Duration) {}
}
