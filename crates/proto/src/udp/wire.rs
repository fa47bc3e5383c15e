//! The UDP header (RFC 768), over IPv4 and IPv6.

use crate::frame::{self, Frame};
use crate::octets::Tail;
use crate::packet::Quoted;
use crate::transport::{Layers, PacketFormat};
use std::net::IpAddr;

use crate::octets::checksum::Sum;
use crate::octets::{Ends, WireError, at_least, u16_at};

/// UDP's protocol number.
pub const PROTOCOL: u8 = 17;
/// The beginning of a datagram's header as a router quotes it (RFC 792): its length, header
/// included, and a checksum of zero.
#[must_use]
pub fn quoted(bytes: u32) -> Quoted {
    let [high, low] = u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes();
    Quoted::new(PROTOCOL, &[high, low, 0, 0])
}

/// Bytes of the header.
pub const HEADER: usize = 8;

/// Appends a datagram whose payload `payload` appends.
///
/// # Errors
/// [`WireError::TooLong`] above 65535 bytes of header and payload; and those of the payload.
pub fn emit(
    ends: &Ends,
    payload: impl FnOnce(&mut Vec<u8>) -> Result<(), WireError>,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let start = out.len();
    out.extend_from_slice(&ends.src_port.to_be_bytes());
    out.extend_from_slice(&ends.dst_port.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    payload(out)?;
    let datagram = &mut out[start..];
    let length = u16::try_from(datagram.len()).map_err(|_| WireError::TooLong("UDP datagram"))?;
    datagram[4..6].copy_from_slice(&length.to_be_bytes());
    let sum = Sum::pseudo_header(ends.src, ends.dst, PROTOCOL, datagram.len());
    // RFC 768: a checksum that computes to zero is sent as all ones; zero means there is none.
    let checksum = match sum.over(datagram).finish() {
        0 => 0xffff,
        checksum => checksum,
    };
    datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Reads and checks a datagram; returns ports and payload.
///
/// # Errors
/// Truncated or malformed bytes, a wrong checksum.
pub fn parse(bytes: &[u8], src: IpAddr, dst: IpAddr) -> Result<(Ends, &[u8]), WireError> {
    at_least(bytes, HEADER, "UDP header")?;
    let length = usize::from(u16_at(bytes, 4));
    if length < HEADER {
        return Err(WireError::Malformed("UDP length is below eight"));
    }
    at_least(bytes, length, "UDP datagram")?;
    let datagram = &bytes[..length];
    match u16_at(bytes, 6) {
        // RFC 768: no checksum; RFC 8200 §8.1: over IPv6 there must be one.
        0 if dst.is_ipv4() => {}
        0 => return Err(WireError::Checksum("UDP")),
        _ => {
            if Sum::pseudo_header(src, dst, PROTOCOL, length).over(datagram).finish() != 0 {
                return Err(WireError::Checksum("UDP"));
            }
        }
    }
    let ends = Ends { src, dst, src_port: u16_at(bytes, 0), dst_port: u16_at(bytes, 2) };
    Ok((ends, &datagram[HEADER..]))
}

/// A datagram with what it carries.
impl PacketFormat for Frame {
    const PROTOCOL: u8 = PROTOCOL;

    #[inline(always)]
    fn layers(&self) -> Layers {
        let (media, payload) = self.lengths();
        Layers { transport: HEADER as u32, media: media as u32, payload: payload as u32 }
    }
    fn quoted(&self) -> Quoted {
        quoted(self.layers().total())
    }
    fn emit(&self, ends: &Ends, out: &mut Vec<u8>) -> Result<Tail, WireError> {
        let payload = |out: &mut Vec<u8>| {
            frame::emit(self, out);
            Ok(())
        };
        emit(ends, payload, out).map(|()| Tail::default())
    }
}
