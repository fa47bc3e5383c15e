//! SCTP over UDP (RFC 6951): a UDP datagram with ports of its own contains the whole SCTP packet
//! with its ports and CRC-32c.
//!
//! The destination port identifies a datagram as SCTP.

use std::net::IpAddr;

use super::wire;
use crate::octets::{Ends, Hints, WireError};
use crate::sctp::Packet;
use crate::udp::wire as udp;

/// The UDP port for SCTP (RFC 6951 §5.1).
pub const PORT: u16 = 9899;

/// Appends the datagram; `outer` are its addresses and UDP ports; `ends` gives only ports.
///
/// # Errors
/// As [`udp::emit`] and [`wire::emit`]; `out` is then unchanged.
pub fn emit(
    packet: &Packet,
    ends: &Ends,
    outer: &Ends,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let start = out.len();
    let datagram = udp::emit(outer, |out| wire::emit(packet, ends, out), out);
    if datagram.is_err() {
        out.truncate(start);
    }
    datagram
}

/// Reads and checks a datagram: UDP's addresses and ports, SCTP's, and the packet.
///
/// # Errors
/// As [`udp::parse`] and [`wire::parse`]. UDP's checksum may be absent, as SCTP has one (RFC 6951
/// §5.3 requires it over IPv6 only).
pub fn parse(
    bytes: &[u8],
    src: IpAddr,
    dst: IpAddr,
    hints: Hints,
) -> Result<(Ends, Ends, Packet), WireError> {
    let (outer, inside) = udp::parse(bytes, src, dst)?;
    let (ends, packet) = wire::parse(inside, src, dst, hints)?;
    Ok((outer, ends, packet))
}
