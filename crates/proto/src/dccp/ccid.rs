//! The half-connections' congestion control: what a connection asks of a CCID (RFC 4340 §10), for
//! the half that sends data and for the half that receives it.
//!
//! The connection numbers, validates, acknowledges and negotiates; a CCID only decides when data
//! may leave and when an acknowledgement should, and reads and writes its own options.

use super::ackvec::AckVector;
use super::options::Options;
use super::seqno::SeqNo;
use super::{ccid2, ccid3};
use crate::gauge::EndpointProbe;
use crate::packet::Ecn;
use crate::rate::Permit;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// A packet leaving, as the sending half sees it.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Its number.
    pub seq: SeqNo,
    /// Bytes of application data (media header included) if it is a data packet.
    pub data_bytes: Option<u32>,
}

/// A packet with an Acknowledgement Number that passed §7.5's checks, as the sending half sees it.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgement<'a> {
    /// Its own number.
    pub seq: SeqNo,
    /// What it acknowledges.
    pub ack: SeqNo,
    /// Its options.
    pub options: &'a Options,
    /// ECN field it arrived with.
    pub ecn: Ecn,
    /// Time between the arrival of `ack` at the other side and this packet, if it said so
    /// (Elapsed Time or Timestamp Echo).
    pub elapsed: Option<Duration>,
    /// A round-trip time from Timestamp Echo, if it brought one (RFC 4340 §13.3).
    pub echo_rtt: Option<Duration>,
}

/// A packet that arrived, passed §7.5's checks and was not a duplicate, as the receiving half sees
/// it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its number.
    pub seq: SeqNo,
    /// Bytes of application data if it is a data packet.
    pub data_bytes: Option<u32>,
    /// CCVal.
    pub ccval: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// NDP Count, if it brought one.
    pub ndp: Option<u64>,
    /// Its options.
    pub options: &'a Options,
}

/// The half that sends data: HC-sender.
pub trait Sender {
    /// Whether a data packet may leave; asked with nothing waiting too.
    fn permit(&mut self, now: Instant) -> Permit;
    /// A permit went unused: the application had nothing to send.
    fn on_unused(&mut self, now: Instant);
    /// CCVal of the next packet.
    fn ccval(&mut self, now: Instant) -> u8;
    /// Options for the next data packet (such as RFC 6323's RTT Estimate).
    fn options(&mut self, now: Instant, out: &mut Options);
    /// A packet left, of data or not.
    fn on_sent<P: EndpointProbe>(&mut self, now: Instant, packet: &Departure, probe: &mut P);
    /// Any packet of the other side arrived, told before `on_ack` if it is one: what lets lost
    /// acknowledgements be seen (RFC 4341 §6.1.1). `data_bytes` is `None` for those without data.
    fn on_arrival(&mut self, _now: Instant, _packet: &Arrival<'_>) {}
    /// Asked when a data packet is about to leave: true if it should acknowledge, as a `DataAck`, so
    /// that the other side may forget what it said (RFC 4341 §6.2). True is said once.
    fn owes_ack(&mut self) -> bool {
        false
    }
    /// An acknowledgement came.
    fn on_ack<P: EndpointProbe>(&mut self, now: Instant, ack: &Acknowledgement<'_>, probe: &mut P);
    /// When it has something to do by itself.
    fn deadline(&self) -> Option<Instant>;
    /// Its deadline has come.
    fn on_timeout<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P);
    /// The Ack Ratio it would like the other side to keep, if it has a wish (RFC 4341 §6.1.1).
    fn ack_ratio(&self) -> Option<u16>;
    /// Data packets it may have in flight in one round trip, for the Sequence Window (§7.5.2).
    fn packets_per_rtt(&self) -> u64;
    /// Round-trip time, once known.
    fn rtt(&self) -> Option<Duration>;
    /// The ECN field of data packets: ECT(0), or Not-ECT where the feature says so.
    fn ect(&self) -> bool;
    /// The rate the source should send at, when it changed: see [`crate::rate::RateControl`].
    fn target_rate(&mut self) -> Option<Rate>;
}

/// The half that receives data: HC-receiver.
pub trait Receiver {
    /// A packet arrived; the Ack Vector has already noted it.
    fn on_packet<P: EndpointProbe>(&mut self, now: Instant, packet: &Arrival<'_>, probe: &mut P);
    /// True if an acknowledgement should leave now. It goes alone unless data is about to leave.
    fn wants_ack(&self, now: Instant) -> bool;
    /// When it will want one, if nothing happens before.
    fn deadline(&self) -> Option<Instant>;
    /// Its deadline has come.
    fn on_timeout(&mut self, now: Instant);
    /// Options of a packet that carries an Acknowledgement Number, and news that it leaves. `data`
    /// is true on a `DataAck`, where only what is cheap or due goes along.
    fn acknowledge(&mut self, now: Instant, data: bool, vector: &mut AckVector, out: &mut Options);
    /// The other side set Ack Ratio.
    fn set_ack_ratio(&mut self, ratio: u16);
    /// The other side told its round-trip time (RFC 6323), or the own sending half measured one.
    fn set_rtt(&mut self, rtt: Duration);
}

/// The sending halves there are.
#[derive(Debug)]
pub enum SenderHalf {
    /// CCID 2 (RFC 4341).
    Two(Box<ccid2::Sender>),
    /// CCID 3 (RFC 4342) and CCID 4 (RFC 5622), which are one machine with different parameters.
    Three(Box<ccid3::Sender>),
}

/// The receiving halves there are.
#[derive(Debug)]
pub enum ReceiverHalf {
    /// CCID 2.
    Two(Box<ccid2::Receiver>),
    /// CCID 3 and CCID 4.
    Three(Box<ccid3::Receiver>),
}
