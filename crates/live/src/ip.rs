//! The header of an IP packet of either version.

use std::net::IpAddr;

use talkspurt_proto::octets::ecn;
use talkspurt_proto::wire::{INITIAL_TTL, WireError, ipv4, ipv6};

/// The header of an IP packet.
#[derive(Clone, Copy, Debug)]
pub enum Ip {
    /// RFC 791.
    V4(ipv4::Header),
    /// RFC 8200.
    V6(ipv6::Header),
}

impl Ip {
    /// The header of a new packet with this type of service or traffic class.
    ///
    /// # Errors
    /// [`WireError::Families`] if the addresses are not of one family.
    pub const fn new(
        (src, dst): (IpAddr, IpAddr),
        protocol: u8,
        class: u8,
    ) -> Result<Self, WireError> {
        let (dscp, ecn, ttl) = (class >> 2, ecn(class), INITIAL_TTL);
        match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let identification = 0;
                Ok(Self::V4(ipv4::Header { dscp, ecn, identification, ttl, protocol, src, dst }))
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let (flow_label, hop_limit, next_header) = (0, ttl, protocol);
                let header =
                    ipv6::Header { dscp, ecn, flow_label, hop_limit, next_header, src, dst };
                Ok(Self::V6(header))
            }
            _ => Err(WireError::Families),
        }
    }

    /// Reads and checks the header; also returns what follows it.
    ///
    /// # Errors
    /// Those of [`ipv4::Header::parse`] and [`ipv6::Header::parse`].
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), WireError> {
        if packet.first().is_some_and(|byte| byte >> 4 == 4) {
            ipv4::Header::parse(packet).map(|(header, rest)| (Self::V4(header), rest))
        } else {
            ipv6::Header::parse(packet).map(|(header, rest)| (Self::V6(header), rest))
        }
    }

    /// Source and destination.
    #[must_use]
    pub fn addresses(&self) -> [IpAddr; 2] {
        match self {
            Self::V4(header) => [header.src.into(), header.dst.into()],
            Self::V6(header) => [header.src.into(), header.dst.into()],
        }
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        if matches!(self, Self::V4(_)) { ipv4::HEADER } else { ipv6::HEADER }
    }

    /// Writes itself into the first bytes of the whole packet.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn write(&self, packet: &mut [u8]) -> Result<(), WireError> {
        match self {
            Self::V4(header) => header.write(packet),
            Self::V6(header) => header.write(packet),
        }
    }
}
