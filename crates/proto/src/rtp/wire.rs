//! The RTP header (RFC 3550 §5.1) and its extension (§5.3.1). Of a CSRC list, only the first entry
//! is read and written; padding is skipped, not written.

use std::num::NonZeroU32;
use std::ops::Range;

use bytes::Bytes;

use crate::octets::{Hints, WireError, at_least, pattern, u16_at, u32_at};
use crate::rtp::{Extension, Packet};

const HEADER: usize = 12;
const VERSION: u8 = 2;

/// Appends header and payload.
pub fn emit(packet: &Packet, out: &mut Vec<u8>) {
    emit_extended(packet, None, out);
}

/// Appends header, extension if there is one, and payload.
pub fn emit_extended(packet: &Packet, extension: Option<&Extension>, out: &mut Vec<u8>) {
    let csrcs = u8::from(packet.csrc.is_some());
    out.push(VERSION << 6 | u8::from(extension.is_some()) << 4 | csrcs);
    out.push(u8::from(packet.marker) << 7 | packet.payload_type & 0x7f);
    out.extend_from_slice(&packet.sequence.to_be_bytes());
    out.extend_from_slice(&packet.timestamp.to_be_bytes());
    out.extend_from_slice(&packet.ssrc.to_be_bytes());
    if let Some(csrc) = packet.csrc {
        out.extend_from_slice(&csrc.get().to_be_bytes());
    }
    if let Some(extension) = extension {
        extension.emit(out);
    }
    pattern::emit(&packet.payload, out);
}

/// Reads a packet without its extension; the payload shares the bytes.
///
/// # Errors
/// Truncated or malformed bytes (the checks of RFC 3550 A.1).
pub fn parse(bytes: &Bytes, hints: Hints) -> Result<Packet, WireError> {
    read(bytes, hints).map(|(packet, _)| packet)
}

/// Reads a packet and its extension; the payload shares the bytes.
///
/// # Errors
/// As [`parse`].
pub fn parse_extended(
    bytes: &Bytes,
    hints: Hints,
) -> Result<(Packet, Option<Extension>), WireError> {
    let (packet, extension) = read(bytes, hints)?;
    let extension = extension.map(|place| {
        let data = bytes[place.start + 4..place.end].to_vec();
        Extension::new(u16_at(bytes, place.start), data)
    });
    Ok((packet, extension.transpose()?))
}

/// The packet, and the range of its extension.
fn read(bytes: &Bytes, hints: Hints) -> Result<(Packet, Option<Range<usize>>), WireError> {
    at_least(bytes, HEADER, "RTP header")?;
    if bytes[0] >> 6 != VERSION {
        return Err(WireError::Malformed("RTP version is not 2"));
    }
    let mut start = HEADER + usize::from(bytes[0] & 0xf) * 4;
    at_least(bytes, start, "RTP CSRC list")?;
    // RFC 3550 §5.3.1: the extension counts its 32-bit words after the first.
    let mut extension = None;
    if bytes[0] & 0x10 != 0 {
        at_least(bytes, start + 4, "RTP extension")?;
        let end = start + 4 + usize::from(u16_at(bytes, start + 2)) * 4;
        at_least(bytes, end, "RTP extension")?;
        extension = Some(start..end);
        start = end;
    }
    let mut end = bytes.len();
    // RFC 3550 §5.1: the last octet counts the padding, itself included.
    if bytes[0] & 0x20 != 0 {
        let padding = usize::from(bytes[end - 1]);
        if padding == 0 || padding > end - start {
            return Err(WireError::Malformed("RTP padding count"));
        }
        end -= padding;
    }
    let packet = Packet {
        payload_type: bytes[1] & 0x7f,
        marker: bytes[1] & 0x80 != 0,
        sequence: u16_at(bytes, 2),
        timestamp: u32_at(bytes, 4),
        ssrc: u32_at(bytes, 8),
        csrc: (bytes[0] & 0xf > 0).then(|| NonZeroU32::new(u32_at(bytes, HEADER))).flatten(),
        payload: hints.payload(bytes.slice(start..end)),
    };
    Ok((packet, extension))
}
