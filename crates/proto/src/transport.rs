//! What a flow's transport is to those who build and describe it: [`TransportConfig`], implemented
//! beside each protocol's configuration. How it is driven is [`Endpoint`]'s business.

use std::net::IpAddr;

use crate::endpoint::Endpoint;
use crate::packet::IpVersion;
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
    /// What it hands to the transport, rounded up to a bit per second.
    #[must_use]
    pub fn rate(self) -> Rate {
        rate_of(self.packet_bytes, self.interval)
    }
}

/// A packet of so many bytes in each interval, rounded up to a bit per second.
pub(crate) fn rate_of(packet_bytes: u32, interval: Duration) -> Rate {
    let bit_nanos = u128::from(packet_bytes) * 8_000_000_000;
    let rate = bit_nanos.div_ceil(u128::from(interval.as_nanos().max(1)));
    Rate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX))
}

/// What an endpoint is built from, besides its configuration.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// Which side it is.
    pub side: Side,
    /// IP version of its packets.
    pub version: IpVersion,
    /// The addresses of this end, one for each path, the primary one first; empty if there is one
    /// path.
    pub addresses: &'a [IpAddr],
    /// The encodings its source can send in, best first; empty for a side that only listens, and for
    /// bulk.
    pub ladder: &'a [Rung],
    /// True if its source can send at any rate: the controller then reports each change of the rate
    /// it permits ([`Event::TargetRate`](crate::endpoint::Event::TargetRate)).
    pub any_rate: bool,
    /// Its random numbers.
    pub rng: Rng,
}

/// The configuration of a transport: it builds endpoints and says what tables and other layers need.
pub trait TransportConfig: Validate {
    /// What carries the flow.
    type Endpoint: Endpoint;

    /// The endpoint of one side.
    fn build(&self, setup: Setup<'_>) -> Self::Endpoint;

    /// Its name in tables, the profile apart, such as `tcp-newreno`.
    fn name(&self) -> String;

    /// The common name of the protocol, such as `TCP`.
    fn protocol(&self) -> &'static str;

    /// Header bytes in front of a media packet that travels alone, the IP header apart.
    fn header_bytes(&self) -> u32;

    /// Bytes in front of what one packet carries, the IP header apart, at most: what the transport
    /// keeps free of the path's MTU.
    fn max_header_bytes(&self) -> u32 {
        self.header_bytes()
    }

    /// Bytes of a bulk source's unit unless it says otherwise: what one packet carries.
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

    /// True if a listener has no connection before the other side has called.
    fn has_handshake(&self) -> bool {
        false
    }

    /// Whose values its open parameters have.
    fn profile(&self) -> Profile {
        Profile::Rfc
    }

    /// The flow in whose association it travels, if that is another's.
    fn association(&self) -> Option<&str> {
        None
    }

    /// Bytes of a packet that opens a connection as ns-2.35 counts them.
    fn ns2_opening_bytes(&self) -> u32 {
        88
    }

    /// Makes its packets fit the MTU of the first link.
    fn fit(&mut self, _mtu: Size, _version: IpVersion) {}
}
