//! SCTP inside UDP (RFC 6951): a datagram between UDP ports of its own, in it the whole SCTP packet
//! with its own ports and its CRC-32c.
//!
//! The reader knows that a datagram is SCTP by the port it came to.

use std::net::IpAddr;

use super::wire;
use crate::octets::{Ends, Hints, WireError};
use crate::sctp::Packet;
use crate::udp::wire as udp;

/// The UDP port of those who accept it (RFC 6951 §5.1).
pub const PORT: u16 = 9899;

/// Appends the datagram; `outer` are its addresses and UDP ports, of `ends` the ports alone matter.
///
/// # Errors
/// As [`udp::emit`] and [`wire::emit`]; `out` is then as it was.
pub fn emit(
    packet: &Packet,
    ends: &Ends,
    outer: &Ends,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let start = out.len();
    let mut inner = Ok(());
    let datagram = udp::emit(outer, |out| inner = wire::emit(packet, ends, out), out).and(inner);
    if datagram.is_err() {
        out.truncate(start);
    }
    datagram
}

/// Reads and checks a datagram: UDP's addresses and ports, SCTP's, and the packet.
///
/// # Errors
/// As [`udp::parse`] and [`wire::parse`]. UDP's checksum may be absent, for SCTP's is there (RFC
/// 6951 §5.3 wants one over IPv6 only).
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
