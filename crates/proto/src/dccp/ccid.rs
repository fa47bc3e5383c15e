//! Congestion control of the half-connections: the interface between a connection and a CCID (RFC
//! 4340 §10), for the sending half and for the receiving half.
//!
//! The connection numbers, validates, acknowledges and negotiates; a CCID only decides when data
//! and acknowledgements may leave, and reads and writes its own options.

use super::ackvec::AckVector;
use super::options::Options;
use super::seqno::SeqNo;
use super::{ccid2, ccid3};
use crate::gauge::EndpointProbe;
use crate::packet::Ecn;
use crate::rate::Permit;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// A departing packet, as the sending half sees it.
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
    /// The number it acknowledges.
    pub ack: SeqNo,
    /// Its options.
    pub options: &'a Options,
    /// ECN field it arrived with.
    pub ecn: Ecn,
    /// Time between the arrival of `ack` at the other side and this packet, if reported
    /// (Elapsed Time or Timestamp Echo).
    pub elapsed: Option<Duration>,
    /// Round-trip time from Timestamp Echo, if present (RFC 4340 §13.3).
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
    /// NDP Count, if present.
    pub ndp: Option<u64>,
    /// Its options.
    pub options: &'a Options,
}

/// The sending half: HC-sender.
pub trait Sender {
    /// Whether a data packet may leave; also called when there is none to send.
    fn permit(&mut self, now: Instant) -> Permit;
    /// A permit went unused: the application had nothing to send.
    fn on_unused(&mut self, now: Instant);
    /// CCVal of the next packet.
    fn ccval(&mut self, now: Instant) -> u8;
    /// Options for the next data packet (such as RFC 6323's RTT Estimate).
    fn options(&mut self, now: Instant, out: &mut Options);
    /// A packet was sent, with or without data.
    fn on_sent<P: EndpointProbe>(&mut self, now: Instant, packet: &Departure, probe: &mut P);
    /// A packet of the other side arrived; called before `on_ack` for an acknowledgement. Allows detecting
    /// lost acknowledgements (RFC 4341 §6.1.1). `data_bytes` is `None` for packets without data.
    fn on_arrival(&mut self, _now: Instant, _packet: &Arrival<'_>) {}
    /// Called when a data packet is about to leave: true if it should acknowledge, as a `DataAck`, so
    /// that the other side can discard state (RFC 4341 §6.2). Returns true once.
    fn owes_ack(&mut self) -> bool {
        false
    }
    /// An acknowledgement arrived.
    fn on_ack<P: EndpointProbe>(&mut self, now: Instant, ack: &Acknowledgement<'_>, probe: &mut P);
    /// When its timer expires.
    fn deadline(&self) -> Option<Instant>;
    /// Its deadline has passed.
    fn on_timeout<P: EndpointProbe>(&mut self, now: Instant, probe: &mut P);
    /// The Ack Ratio it wants the other side to use, if any (RFC 4341 §6.1.1).
    fn ack_ratio(&self) -> Option<u16>;
    /// Data packets it may have in flight in one round trip, for the Sequence Window (§7.5.2).
    fn packets_per_rtt(&self) -> u64;
    /// Round-trip time, once known.
    fn rtt(&self) -> Option<Duration>;
    /// The ECN field of data packets: ECT(0), or Not-ECT where the feature says so.
    fn ect(&self) -> bool;
    /// The new target rate of the source, if changed: see [`crate::rate::RateControl`].
    fn target_rate(&mut self) -> Option<Rate>;
}

/// The receiving half: HC-receiver.
pub trait Receiver {
    /// A packet arrived; the Ack Vector has already recorded it.
    fn on_packet<P: EndpointProbe>(&mut self, now: Instant, packet: &Arrival<'_>, probe: &mut P);
    /// True if an acknowledgement should leave now, alone or with departing data.
    fn wants_ack(&self, now: Instant) -> bool;
    /// When it will want one, if nothing happens before.
    fn deadline(&self) -> Option<Instant>;
    /// Its deadline has passed.
    fn on_timeout(&mut self, now: Instant);
    /// Writes the options of a departing packet with an Acknowledgement Number. `data` is true on a
    /// `DataAck`, which carries only options that are cheap or due.
    fn acknowledge(&mut self, now: Instant, data: bool, vector: &mut AckVector, out: &mut Options);
    /// The other side set Ack Ratio.
    fn set_ack_ratio(&mut self, ratio: u16);
    /// The other side reported its round-trip time (RFC 6323), or this end's sending half measured one.
    fn set_rtt(&mut self, rtt: Duration);
}

/// The sending half by CCID.
#[derive(Debug)]
pub enum SenderHalf {
    /// CCID 2 (RFC 4341).
    Two(Box<ccid2::Sender>),
    /// CCID 3 (RFC 4342) and CCID 4 (RFC 5622), one implementation with different parameters.
    Three(Box<ccid3::Sender>),
}

/// The receiving half by CCID.
#[derive(Debug)]
pub enum ReceiverHalf {
    /// CCID 2.
    Two(Box<ccid2::Receiver>),
    /// CCID 3 and CCID 4.
    Three(Box<ccid3::Receiver>),
}
