//! Congestion control of the half-connections: the interface between a connection and a CCID (RFC
//! 4340 §10), for the sending half and for the receiving half.
//!
//! The connection numbers, validates, acknowledges and negotiates; a CCID only decides when data
//! and acknowledgements may leave, and reads and writes its own options.

use super::ackvec::AckVector;
use super::config::{Ccid, Config};
use super::options::Options;
use super::seqno::SeqNo;
use super::{ccid2, ccid3};
use crate::gauge::EndpointProbe;
use crate::packet::Ecn;
use crate::rate::{Kind, Permit, Rung};
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

/// A packet that arrived, passed §7.5's checks and was not a duplicate, as the receiving half sees it.
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

macro_rules! dispatch {
    ($half:expr, $ccid:ident => $call:expr) => {
        match $half {
            Self::Two($ccid) => $call,
            Self::Three($ccid) => $call,
        }
    };
}

dispatched! {
    /// The sending half: HC-sender.
    pub trait Sender for SenderHalf by dispatch {
        /// Whether a data packet may leave; also called when there is none to send.
        fn permit(self: &mut Self, now: Instant) -> Permit;
        /// A packet was sent, with or without data.
        fn on_sent<P: EndpointProbe>(self: &mut Self, now: Instant, packet: &Departure, probe: &mut P);
        /// A packet of the other side arrived; called before `on_ack` for an acknowledgement. Allows detecting
        /// lost acknowledgements (RFC 4341 §6.1.1). `data_bytes` is `None` for packets without data.
        fn on_arrival(self: &mut Self, now: Instant, packet: &Arrival<'_>);
        /// Called when a data packet is about to leave: true if it should acknowledge, as a `DataAck`, so
        /// that the other side can discard state (RFC 4341 §6.2). Returns true once.
        fn owes_ack(self: &mut Self) -> bool;
        /// An acknowledgement arrived.
        fn on_ack<P: EndpointProbe>(self: &mut Self, now: Instant, ack: &Acknowledgement<'_>, probe: &mut P);
        /// When its timer expires.
        fn deadline(self: &Self) -> Option<Instant>;
        /// Its deadline has passed.
        fn on_timeout<P: EndpointProbe>(self: &mut Self, now: Instant, probe: &mut P);
        /// Data packets it may have in flight in one round trip, for the Sequence Window (§7.5.2).
        fn packets_per_rtt(self: &Self) -> u64;
        /// Round-trip time, once known.
        fn rtt(self: &Self) -> Option<Duration>;
        /// The ECN field of data packets: ECT(0), or Not-ECT where the feature says so.
        fn ect(self: &Self) -> bool;
        /// Bytes held for packets sent, missing and reported.
        fn footprint(self: &Self) -> usize;
    } provided {
        /// A permit went unused: the application had nothing to send.
        fn on_unused(self: &mut Self, now: Instant) {}
        /// CCVal of the next packet.
        fn ccval(self: &mut Self, now: Instant) -> u8 { 0 }
        /// Options for the next data packet (such as RFC 6323's RTT Estimate).
        fn options(self: &mut Self, now: Instant, out: &mut Options) {}
        /// Data packets in the network, if the CCID counts them.
        fn outstanding(self: &Self) -> u64 { 0 }
        /// The Ack Ratio it wants the other side to use, if any (RFC 4341 §6.1.1).
        fn ack_ratio(self: &Self) -> Option<u16> { None }
        /// Sets whether data packets are ECN-capable: the other side's ECN Incapable is off (RFC 4340 §12.1)
        /// and the flow uses ECN; and whether they report the round-trip time: Send RTT Estimate is on (RFC
        /// 6323 §3).
        fn agree(self: &mut Self, ect: bool, rtt_estimate: bool) {}
        /// The source can send at any rate: see [`crate::rate::RateControl::report_rate`].
        fn report_rate(self: &mut Self) {}
        /// The new target rate of the source, if changed: see [`crate::rate::RateControl`].
        fn target_rate(self: &mut Self) -> Option<Rate> { None }
    }
}

dispatched! {
    /// The receiving half: HC-receiver.
    pub trait Receiver for ReceiverHalf by dispatch {
        /// A packet arrived; the Ack Vector has already recorded it.
        fn on_packet<P: EndpointProbe>(self: &mut Self, now: Instant, packet: &Arrival<'_>, probe: &mut P);
        /// True if an acknowledgement should leave now, alone or with departing data.
        fn wants_ack(self: &Self, now: Instant) -> bool;
        /// When it will want one, if nothing happens before.
        fn deadline(self: &Self) -> Option<Instant>;
        /// Its deadline has passed.
        fn on_timeout(self: &mut Self, now: Instant);
        /// Writes the options of a departing packet with an Acknowledgement Number. `data` is true on a
        /// `DataAck`, which carries only options that are cheap or due.
        fn acknowledge(self: &mut Self, now: Instant, data: bool, vector: &mut AckVector, out: &mut Options);
        /// The other side reported its round-trip time (RFC 6323), or this end's sending half measured one.
        fn set_rtt(self: &mut Self, rtt: Duration);
    } provided {
        /// The other side set Ack Ratio.
        fn set_ack_ratio(self: &mut Self, ratio: u16) {}
        /// Sets whether Loss Event Rate is sent: Send Loss Event Rate (RFC 4342 §8.4); and whether the sender
        /// reports the round-trip time: Send RTT Estimate (RFC 6323 §3.2.2).
        fn agree(self: &mut Self, loss_event_rate: bool, rtt_estimate: bool) {}
        /// Bytes held for packets received.
        fn footprint(self: &Self) -> usize { 0 }
    }
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

/// The rate machine's kind for a CCID of the TFRC family.
pub(super) const fn kind(ccid: Ccid) -> Kind {
    match ccid {
        Ccid::Four => Kind::Ccid4,
        Ccid::Two | Ccid::Three => Kind::Ccid3,
    }
}

impl SenderHalf {
    /// Creates the half of a new connection, or of one that changed its CCID. `rtt` is the handshake's.
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
}
