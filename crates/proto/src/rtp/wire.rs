//! The RTP header (RFC 3550 §5.1), its extension (§5.3.1) and padding. Of a CSRC list, only the first entry is
//! read and written; of extensions, only the transport-wide sequence number.

use std::num::NonZeroU32;

use bytes::Bytes;

use crate::octets::{Hints, WireError, at_least, pattern, u16_at, u32_at};
use crate::rtp::{Packet, extension};

const HEADER: usize = 12;
const VERSION: u8 = 2;
/// Local identifier (RFC 8285 §5) of the transport-wide sequence number, as Chromium assigns it.
const TRANSPORT: u8 = 3;

/// Appends header, payload and padding.
pub fn emit(packet: &Packet, out: &mut Vec<u8>) {
    let padded = u8::from(packet.padding > 0);
    let extended = u8::from(packet.transport.is_some());
    let csrcs = u8::from(packet.csrc.is_some());
    out.push(VERSION << 6 | padded << 5 | extended << 4 | csrcs);
    out.push(u8::from(packet.marker) << 7 | packet.payload_type & 0x7f);
    out.extend_from_slice(&packet.sequence.to_be_bytes());
    out.extend_from_slice(&packet.timestamp.to_be_bytes());
    out.extend_from_slice(&packet.ssrc.to_be_bytes());
    if let Some(csrc) = packet.csrc {
        out.extend_from_slice(&csrc.get().to_be_bytes());
    }
    if let Some(number) = packet.transport {
        out.extend_from_slice(&extension::ONE_BYTE.to_be_bytes());
        // One word; one element, whose length field is its bytes less one; and padding.
        out.extend_from_slice(&[0, 1, TRANSPORT << 4 | 1]);
        out.extend_from_slice(&number.to_be_bytes());
        out.push(0);
    }
    pattern::emit(&packet.payload, out);
    if packet.padding > 0 {
        out.resize(out.len() + usize::from(packet.padding) - 1, 0);
        out.push(packet.padding);
    }
}

/// Reads a packet; the payload shares the bytes.
///
/// # Errors
/// Truncated or malformed bytes (the checks of RFC 3550 A.1).
pub fn parse(bytes: &Bytes, hints: Hints) -> Result<Packet, WireError> {
    at_least(bytes, HEADER, "RTP header")?;
    if bytes[0] >> 6 != VERSION {
        return Err(WireError::Malformed("RTP version is not 2"));
    }
    let mut start = HEADER + usize::from(bytes[0] & 0xf) * 4;
    at_least(bytes, start, "RTP CSRC list")?;
    // RFC 3550 §5.3.1: the extension counts its 32-bit words after the first.
    let mut transport = None;
    if bytes[0] & 0x10 != 0 {
        at_least(bytes, start + 4, "RTP extension")?;
        let end = start + 4 + usize::from(u16_at(bytes, start + 2)) * 4;
        at_least(bytes, end, "RTP extension")?;
        transport = extension::elements(u16_at(bytes, start), &bytes[start + 4..end])
            .find_map(|(id, data)| Some(data).filter(|_| id == TRANSPORT)?.try_into().ok())
            .map(u16::from_be_bytes);
        start = end;
    }
    let (mut end, mut padding) = (bytes.len(), 0);
    // RFC 3550 §5.1: the last octet counts the padding, itself included.
    if bytes[0] & 0x20 != 0 {
        padding = bytes[end - 1];
        if padding == 0 || usize::from(padding) > end - start {
            return Err(WireError::Malformed("RTP padding count"));
        }
        end -= usize::from(padding);
    }
    Ok(Packet {
        payload_type: bytes[1] & 0x7f,
        marker: bytes[1] & 0x80 != 0,
        sequence: u16_at(bytes, 2),
        timestamp: u32_at(bytes, 4),
        ssrc: u32_at(bytes, 8),
        csrc: (bytes[0] & 0xf > 0).then(|| NonZeroU32::new(u32_at(bytes, HEADER))).flatten(),
        transport,
        padding,
        payload: hints.payload(bytes.slice(start..end)),
    })
}
