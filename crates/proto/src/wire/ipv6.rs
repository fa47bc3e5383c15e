//! The IPv6 header (RFC 8200 §3), with DSCP and ECN in the traffic class (RFC 2474, RFC 3168).

use std::net::Ipv6Addr;

use super::Hop;
use crate::octets::{WireError, at_least, ecn, u16_at, u32_at};
use crate::packet::{Ecn, Packet};

/// Bytes of the header.
pub const HEADER: usize = 40;
/// ICMPv6's next-header number.
pub const ICMP: u8 = 58;

/// The header's fields, without its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Differentiated services code point.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// Flow label, 20 bits (RFC 6437).
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Protocol of what follows.
    pub next_header: u8,
    /// Source.
    pub src: Ipv6Addr,
    /// Destination.
    pub dst: Ipv6Addr,
}

impl Header {
    /// The header of this packet.
    #[must_use]
    pub fn of(packet: &Packet, next_header: u8, src: Ipv6Addr, dst: Ipv6Addr) -> Self {
        Self {
            dscp: packet.dscp,
            ecn: packet.ecn,
            flow_label: packet.mark(),
            hop_limit: packet.ttl(),
            next_header,
            src,
            dst,
        }
    }

    /// Writes itself into the first [`HEADER`] bytes of the whole packet.
    ///
    /// # Errors
    /// [`WireError::TooLong`] above 65535 bytes of payload.
    pub fn write(&self, packet: &mut [u8]) -> Result<(), WireError> {
        self.write_before(packet.len(), packet)
    }

    /// Writes itself as the header of a packet of `total` bytes, not all of which need be present.
    pub(super) fn write_before(&self, total: usize, packet: &mut [u8]) -> Result<(), WireError> {
        let payload =
            u16::try_from(total - HEADER).map_err(|_| WireError::TooLong("IPv6 packet"))?;
        self.write_with_length(payload, packet);
        Ok(())
    }

    /// Writes itself with this payload length, which need not be that of `packet` (a quote).
    pub(super) fn write_with_length(&self, payload: u16, packet: &mut [u8]) {
        let class = u32::from(self.dscp << 2 | self.ecn as u8);
        let first = 6 << 28 | class << 20 | self.flow_label;
        packet[..4].copy_from_slice(&first.to_be_bytes());
        packet[4..6].copy_from_slice(&payload.to_be_bytes());
        packet[6] = self.next_header;
        packet[7] = self.hop_limit;
        packet[8..24].copy_from_slice(&self.src.octets());
        packet[24..40].copy_from_slice(&self.dst.octets());
    }

    /// Overwrites the fields that hops change.
    pub(super) fn relabel(hop: Hop, bytes: &mut [u8]) {
        bytes[0] = 6 << 4 | hop.class >> 4;
        bytes[1] = hop.class << 4 | bytes[1] & 0xf;
        bytes[7] = hop.ttl;
    }

    /// Reads the header; also returns what follows it. Extension headers are not supported.
    ///
    /// # Errors
    /// Truncated or malformed bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let header = Self::parse_quoted(bytes)?;
        let end = HEADER + usize::from(u16_at(bytes, 4));
        at_least(bytes, end, "IPv6 packet")?;
        Ok((header, &bytes[HEADER..end]))
    }

    /// Reads a header; its packet may be truncated.
    pub(super) fn parse_quoted(bytes: &[u8]) -> Result<Self, WireError> {
        at_least(bytes, HEADER, "IPv6 header")?;
        let first = u32_at(bytes, 0);
        if first >> 28 != 6 {
            return Err(WireError::Malformed("IPv6 version"));
        }
        let class = (first >> 20) as u8;
        let address =
            |at: usize| Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|i| bytes[at + i]));
        Ok(Self {
            dscp: class >> 2,
            ecn: ecn(class),
            flow_label: first & 0xf_ffff,
            hop_limit: bytes[7],
            next_header: bytes[6],
            src: address(8),
            dst: address(24),
        })
    }
}
