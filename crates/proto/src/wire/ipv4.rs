//! The IPv4 header (RFC 791 §3.1), with DSCP and ECN (RFC 2474, RFC 3168) in the type of service.

use std::net::Ipv4Addr;

use bytes::Bytes;

use super::Hop;
use crate::body::{Layers, RealPacket};
use crate::octets::checksum::Sum;
use crate::octets::{WireError, at_least, ecn, u16_at};
use crate::packet::{Ecn, Packet};

/// Bytes of a header without options.
pub const HEADER: usize = 20;
/// ICMP's protocol number.
pub const ICMP: u8 = 1;
/// RFC 791 §3.1: the Don't Fragment bit.
const DF: u16 = 0x4000;
/// RFC 791 §3.1: the More Fragments bit.
const MF: u16 = 0x2000;
/// RFC 791 §3.1: the fragment offset, in units of 8 bytes.
const OFFSET: u16 = 0x1fff;
/// Both: a packet without them is whole.
const FRAGMENT: u16 = MF | OFFSET;

/// The header's fields, without its lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Differentiated services code point.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// Identification.
    pub identification: u16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of what follows.
    pub protocol: u8,
    /// Source.
    pub src: Ipv4Addr,
    /// Destination.
    pub dst: Ipv4Addr,
}

impl Header {
    /// The header of this packet.
    #[must_use]
    pub fn of(packet: &Packet, protocol: u8, src: Ipv4Addr, dst: Ipv4Addr) -> Self {
        Self {
            dscp: packet.dscp,
            ecn: packet.ecn,
            identification: packet.mark() as u16,
            ttl: packet.ttl(),
            protocol,
            src,
            dst,
        }
    }

    /// Writes itself into the first [`HEADER`] bytes of the whole packet.
    ///
    /// # Errors
    /// [`WireError::TooLong`] above 65535 bytes.
    pub fn write(&self, packet: &mut [u8]) -> Result<(), WireError> {
        self.write_before(packet.len(), packet)
    }

    /// Writes itself as the header of a packet of `total` bytes, not all of which need be present.
    pub(super) fn write_before(&self, total: usize, packet: &mut [u8]) -> Result<(), WireError> {
        let total = u16::try_from(total).map_err(|_| WireError::TooLong("IPv4 packet"))?;
        self.write_with_length(total, packet);
        Ok(())
    }

    /// Writes itself with this total length, which need not be that of `packet` (a quote).
    pub(super) fn write_with_length(&self, total: u16, packet: &mut [u8]) {
        let class = u32::from(self.dscp << 2 | self.ecn as u8);
        let mut words = [
            0x4500 << 16 | class << 16 | u32::from(total),
            u32::from(self.identification) << 16 | u32::from(DF),
            u32::from(self.ttl) << 24 | u32::from(self.protocol) << 16,
            self.src.to_bits(),
            self.dst.to_bits(),
        ];
        words[2] |= u32::from(Sum::of_words(words).finish());
        for (place, word) in packet[..HEADER].as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_be_bytes();
        }
    }

    /// Overwrites the fields that hops change; options, which may be cut, stay and count.
    pub(super) fn relabel(hop: Hop, bytes: &mut [u8]) {
        let (header, _) = bytes[..HEADER].as_chunks_mut::<4>();
        // By words: a sum over a word just after a write to one of its bytes stalls.
        let [first, third] = [0, 2].map(|i| u32::from_be_bytes(header[i]));
        let new_first = first & 0xff00_ffff | u32::from(hop.class) << 16;
        let new_third = third & 0x00ff_0000 | u32::from(hop.ttl) << 24;
        // RFC 1624 §3, equation 3: HC' = ~(~HC + ~m + m').
        let sum = Sum::of_words([!first, !third, new_first, new_third]).finish();
        header[0] = new_first.to_be_bytes();
        header[2] = (new_third | u32::from(sum)).to_be_bytes();
    }

    /// Reads and checks the header; also returns what follows it. Options are skipped.
    ///
    /// # Errors
    /// Truncated or malformed bytes, a wrong checksum, a fragment.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let header = Self::parse_quoted(bytes)?;
        let header_bytes = usize::from(bytes[0] & 0xf) * 4;
        let total = usize::from(u16_at(bytes, 2));
        if total < header_bytes {
            return Err(WireError::Malformed("IPv4 total length is below the header's"));
        }
        at_least(bytes, total, "IPv4 packet")?;
        // RFC 791 §3.1: a receiver discards what fails the header checksum.
        if Sum::default().over(&bytes[..header_bytes]).finish() != 0 {
            return Err(WireError::Checksum("IPv4 header"));
        }
        if u16_at(bytes, 6) & FRAGMENT != 0 {
            return Err(WireError::Unsupported("IPv4 fragment"));
        }
        Ok((header, &bytes[header_bytes..total]))
    }

    /// Reads a header without checks; its packet may be truncated.
    pub(super) fn parse_quoted(bytes: &[u8]) -> Result<Self, WireError> {
        at_least(bytes, HEADER, "IPv4 header")?;
        if bytes[0] >> 4 != 4 || bytes[0] & 0xf < 5 {
            return Err(WireError::Malformed("IPv4 version or header length"));
        }
        at_least(bytes, usize::from(bytes[0] & 0xf) * 4, "IPv4 options")?;
        let address = |at: usize| Ipv4Addr::from([0, 1, 2, 3].map(|i| bytes[at + i]));
        Ok(Self {
            dscp: bytes[1] >> 2,
            ecn: ecn(bytes[1]),
            identification: u16_at(bytes, 4),
            ttl: bytes[8],
            protocol: bytes[9],
            src: address(12),
            dst: address(16),
        })
    }
}

/// The fragments of a packet for a link with this MTU, at least 68 bytes (RFC 791 §3.2, RFC 1812 §4.2.2.7);
/// `None` if it must not be cut (Don't Fragment), is not of IPv4, or is longer than any packet.
#[must_use]
pub fn fragments(packet: &RealPacket, mtu: u32) -> Option<Vec<RealPacket>> {
    let bytes = &packet.bytes[..];
    Header::parse_quoted(bytes).ok()?;
    let flags = u16_at(bytes, 6);
    let header = usize::from(bytes[0] & 0xf) * 4;
    let data = bytes.get(header..)?;
    let begin = usize::from(flags & OFFSET) * 8;
    if flags & DF != 0 || begin + data.len() > usize::from(u16::MAX) {
        return None;
    }
    let later = later_header(&bytes[..header]);
    let (mut cut, mut at) = (Vec::new(), 0);
    while at < data.len() || cut.is_empty() {
        let is_first = cut.is_empty();
        let mut piece = if is_first { bytes[..header].to_vec() } else { later.clone() };
        let header = piece.len();
        let room = (mtu as usize).checked_sub(header)?;
        let rest = data.len() - at;
        let length = if rest <= room { rest } else { room / 8 * 8 };
        if length == 0 && rest > 0 {
            return None;
        }
        let more = if at + length < data.len() { MF } else { flags & MF };
        let offset = ((begin + at) / 8) as u16;
        piece[2..4].copy_from_slice(&((header + length) as u16).to_be_bytes());
        piece[6..8].copy_from_slice(&(flags & !FRAGMENT | more | offset).to_be_bytes());
        piece[10..12].fill(0);
        let sum = Sum::default().over(&piece).finish();
        piece[10..12].copy_from_slice(&sum.to_be_bytes());
        piece.extend_from_slice(&data[at..at + length]);
        let all = (piece.len() - HEADER) as u32;
        let transport = if is_first { packet.layers.transport } else { (header - HEADER) as u32 };
        let transport = transport.min(all);
        let layers = Layers { transport, media: 0, payload: all - transport };
        cut.push(RealPacket { bytes: Bytes::from(piece), layers, ..*packet });
        at += length;
    }
    Some(cut)
}

/// The header of fragments other than the first: of the options, only those with the copied flag (RFC 791
/// §3.1), up to one that is malformed.
fn later_header(header: &[u8]) -> Vec<u8> {
    let (fixed, mut options) = header.split_at(HEADER);
    let mut later = fixed.to_vec();
    // Type 0 ends the list, type 1 is a single byte, and others have a length.
    while let [kind, rest @ ..] = options
        && *kind != 0
    {
        let length = if *kind == 1 { 1 } else { rest.first().copied().map_or(0, usize::from) };
        let Some(option) = options.get(..length).filter(|_| *kind == 1 || length > 1) else {
            break;
        };
        if kind & 0x80 != 0 {
            later.extend_from_slice(option);
        }
        options = &options[length..];
    }
    later.resize(later.len().next_multiple_of(4), 0);
    later[0] = 0x40 | (later.len() / 4) as u8;
    later
}
