//! How a flow's transport is built and described: [`TransportConfig`], implemented beside each
//! protocol's configuration. [`Endpoint`] defines how it is driven.

use std::net::IpAddr;

use crate::endpoint::Endpoint;
use crate::octets::{Ends, Tail, WireError};
use crate::packet::{IpVersion, Quoted};
use crate::profile::Profile;
use crate::rng::Rng;
use crate::time::Duration;
use crate::units::Rate;
use crate::units::Size;
use crate::validate::Validate;

/// Which end of a connection a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It opens.
    Opens,
    /// It answers.
    Answers,
}

/// One encoding a source can send in, best first in a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Bytes a packet hands to the transport: media header and speech.
    pub packet_bytes: u32,
    /// Time between two packets.
    pub interval: Duration,
}

impl Rung {
    /// The rate handed to the transport, rounded up to a bit per second.
    #[must_use]
    pub fn rate(self) -> Rate {
        rate_of(self.packet_bytes, self.interval)
    }
}

/// The rate of one packet per interval, rounded up to a bit per second.
pub(crate) fn rate_of(packet_bytes: u32, interval: Duration) -> Rate {
    let bit_nanos = u128::from(packet_bytes) * 8_000_000_000;
    let rate = bit_nanos.div_ceil(u128::from(interval.as_nanos().max(1)));
    Rate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX))
}

/// What an endpoint is built from besides its configuration.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// Which side it is.
    pub side: Side,
    /// IP version of its packets.
    pub version: IpVersion,
    /// The addresses of this end, one for each path, the primary one first; empty if there is one path.
    pub addresses: &'a [IpAddr],
    /// The encodings its source can send in, best first; empty for a side that only listens, and for bulk.
    pub ladder: &'a [Rung],
    /// True if its source can send at any rate: the controller then reports each change of the rate
    /// it permits ([`Event::TargetRate`](crate::endpoint::Event::TargetRate)).
    pub any_rate: bool,
    /// Its random numbers.
    pub rng: Rng,
}

/// The configuration of a transport: it builds endpoints and describes them to tables and other layers.
pub trait TransportConfig: Validate {
    /// The endpoint type.
    type Endpoint: Endpoint;

    /// The endpoint of one side.
    fn build(&self, setup: Setup<'_>) -> Self::Endpoint;

    /// Its name in tables without the profile, such as `tcp-newreno`.
    fn name(&self) -> String;

    /// The common name of the protocol, such as `TCP`.
    fn protocol(&self) -> &'static str;

    /// Header bytes in front of a media packet sent alone, without the IP header.
    fn header_bytes(&self) -> u32;

    /// Maximum header bytes of a packet, without the IP header, which the transport reserves from
    /// the path's MTU.
    fn max_header_bytes(&self) -> u32 {
        self.header_bytes()
    }

    /// Default unit of a bulk source in bytes: the payload of one packet.
    fn unit_bytes(&self) -> u32 {
        1000
    }

    /// True if it carries a stream of bytes, in which messages need framing (RFC 4571).
    fn is_stream(&self) -> bool {
        false
    }

    /// True if several writes in a row have the effect of one.
    fn joins_writes(&self) -> bool {
        false
    }

    /// True if its send capacity bounds what is in the network, as bulk data needs.
    fn has_window(&self) -> bool {
        true
    }

    /// True if a listener has no connection until the other side opens it.
    fn has_handshake(&self) -> bool {
        false
    }

    /// The profile of parameters that are not set.
    fn profile(&self) -> Profile {
        Profile::Rfc
    }

    /// The flow whose association it shares, if any.
    fn association(&self) -> Option<&str> {
        None
    }

    /// Makes its packets fit the MTU of the first link.
    fn fit(&mut self, _mtu: Size, _version: IpVersion) {}
}

/// Bytes of a packet by layer, excluding the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// Transport header with options: UDP 8, TCP 20–60, DCCP 12–1020; everything except user data
    /// in an SCTP packet.
    pub transport: u32,
    /// Media header: 12 for RTP, all bytes of RTCP.
    pub media: u32,
    /// Application payload.
    pub payload: u32,
}

impl Layers {
    /// Sum of all layers.
    #[must_use]
    pub const fn total(self) -> u32 {
        self.transport + self.media + self.payload
    }
}

/// A packet format: what links, captures, counters and routers need to know of a packet. Implemented beside
/// the wire format of each protocol.
pub trait PacketFormat {
    /// Number of the protocol in the IP header.
    const PROTOCOL: u8;

    /// Its bytes by layer.
    fn layers(&self) -> Layers;

    /// Its first bytes, as a router quotes them in ICMP (RFC 792).
    fn quoted(&self) -> Quoted;

    /// Appends its bytes, except for virtual ones at the end, which are returned.
    ///
    /// # Errors
    /// It has no form on the wire, such as a header that is too long.
    fn emit(&self, ends: &Ends, out: &mut Vec<u8>) -> Result<Tail, WireError>;
}
