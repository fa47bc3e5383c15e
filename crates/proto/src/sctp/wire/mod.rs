//! The SCTP packet (RFC 9260 §3): the common header with its CRC-32c, and a sequence of chunks.
//!
//! A packet is rejected whole if a length is wrong or a chunk is too short for its type. Unknown
//! types are kept unchanged: the endpoint handles them (§3.2).

mod chunk;
mod element;

use std::net::IpAddr;

use bytes::{BufMut, Bytes};

use crate::octets::checksum::crc32c;
use crate::octets::{Ends, Hints, Tail, WireError, at_least, u16_at, u32_at};
use crate::packet::{PacketBox, Quoted};
use crate::sctp::{COMMON_HEADER, Chunk, Data, Packet, Parameter};
use crate::transport::{Layers, PacketFormat};

/// SCTP's protocol number (RFC 9260 §15.1).
pub const PROTOCOL: u8 = 132;
/// Position of the checksum.
const CHECKSUM: std::ops::Range<usize> = 8..12;

/// The beginning of a packet's header as a router quotes it (RFC 792): its Verification Tag, by which its
/// sender recognises it (RFC 9260 §10).
#[must_use]
pub fn quoted(tag: u32) -> Quoted {
    Quoted::new(PROTOCOL, &tag.to_be_bytes())
}

/// Appends a packet.
///
/// # Errors
/// [`WireError::TooLong`] if the packet exceeds 65535 bytes or an element its length field;
/// `out` then holds a part of it.
pub fn emit(packet: &Packet, ends: &Ends, out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    out.put_u16(ends.src_port);
    out.put_u16(ends.dst_port);
    out.put_u32(packet.tag);
    out.put_u32(0);
    for chunk in &packet.chunks {
        chunk::emit(chunk, out)?;
        element::pad(start, out);
    }
    let bytes = &mut out[start..];
    if bytes.len() > usize::from(u16::MAX) {
        return Err(WireError::TooLong("SCTP packet"));
    }
    write_checksum(bytes);
    Ok(())
}

/// RFC 9260 appendix A: over the packet with a checksum of zero, its low byte first.
fn write_checksum(bytes: &mut [u8]) {
    bytes[CHECKSUM].fill(0);
    let checksum = crc32c(bytes);
    bytes[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
}

/// Writes the checksum of a packet whose bytes were changed.
///
/// # Errors
/// [`WireError::Truncated`] if it is shorter than a common header.
pub fn sum(bytes: &mut [u8]) -> Result<(), WireError> {
    at_least(bytes, COMMON_HEADER, "SCTP header")?;
    write_checksum(bytes);
    Ok(())
}

/// Checks the checksum of a packet (§6.8).
///
/// # Errors
/// It is wrong, or the common header is truncated.
pub fn check(bytes: &[u8]) -> Result<(), WireError> {
    at_least(bytes, COMMON_HEADER, "SCTP header")?;
    let mut summed = bytes.to_vec();
    write_checksum(&mut summed);
    // §6.8: a packet with a wrong checksum is dropped.
    if summed[CHECKSUM] == bytes[CHECKSUM] { Ok(()) } else { Err(WireError::Checksum("SCTP")) }
}

/// Reads and checks a packet.
///
/// Bytes that are invalid by §6.8 and §6.10: truncated, with a wrong checksum, without chunks, with
/// a wrong length, or with a chunk too short for its type.
pub fn parse(
    bytes: &[u8],
    src: IpAddr,
    dst: IpAddr,
    hints: Hints,
) -> Result<(Ends, Packet), WireError> {
    check(bytes)?;
    let bytes = Bytes::copy_from_slice(bytes);
    let ends = Ends { src, dst, src_port: u16_at(&bytes, 0), dst_port: u16_at(&bytes, 2) };
    let tag = u32_at(&bytes, 4);
    let chunks = parse_chunks(bytes.slice(COMMON_HEADER..), hints)?;
    Ok((ends, Packet { tag, chunks }))
}

fn parse_chunks(mut rest: Bytes, mut hints: Hints) -> Result<Vec<Chunk>, WireError> {
    if rest.is_empty() {
        return Err(WireError::Malformed("SCTP packet has no chunk"));
    }
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let (head, value) = element::take(&mut rest, "SCTP chunk")?;
        let [kind, flags] = head.to_be_bytes();
        let chunk = chunk::parse(kind, flags, value, hints)?;
        if let (Chunk::Data(Data { payload, .. }), Some(offset)) =
            (&chunk, &mut hints.virtual_offset)
        {
            *offset = offset.wrapping_add(payload.lengths().1 as u64);
        }
        chunks.push(chunk);
    }
    Ok(chunks)
}

/// The bytes of a chunk without its padding; none if it is longer than its length field can hold.
#[must_use]
pub fn chunk_bytes(chunk: &Chunk) -> Bytes {
    let mut out = Vec::with_capacity(chunk.wire_bytes());
    chunk::emit(chunk, &mut out).map_or_else(|_| Bytes::new(), |()| out.into())
}

/// The bytes of a parameter, as a report of an unrecognised one quotes it.
pub(crate) fn parameter_bytes(parameter: &Parameter) -> Bytes {
    let mut out = Vec::with_capacity(parameter.length());
    let all = std::slice::from_ref(parameter);
    element::emit_parameters(all, &mut out).map_or_else(|_| Bytes::new(), |()| out.into())
}

impl PacketFormat for PacketBox<Packet> {
    const PROTOCOL: u8 = PROTOCOL;

    #[inline(always)]
    fn layers(&self) -> Layers {
        let (transport, media, payload) = self.lengths();
        Layers { transport: transport as u32, media: media as u32, payload: payload as u32 }
    }
    fn quoted(&self) -> Quoted {
        quoted(self.tag)
    }
    fn emit(&self, ends: &Ends, out: &mut Vec<u8>) -> Result<Tail, WireError> {
        emit(self, ends, out).map(|()| Tail::default())
    }
}
