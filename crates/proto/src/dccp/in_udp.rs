//! DCCP in UDP, for middleboxes without DCCP support (RFC 6773): a datagram with its own UDP ports
//! contains the DCCP packet with DCCP ports and without checksum, since UDP's covers everything.
//!
//! Addresses and both pairs of ports identify a connection (RFC 6773 §3.8). The receiver recognises
//! DCCP datagrams by their destination port.

use std::net::IpAddr;

use super::wire;
use crate::dccp::Packet;
use crate::octets::{Ends, Hints, WireError, u16_at};
use crate::udp::wire as udp;

/// The UDP port on which encapsulated DCCP is accepted (RFC 6773 §3.8).
pub const PORT: u16 = 6511;

/// Appends the datagram; `outer` has its addresses and UDP ports; only the ports of `ends` are used.
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
    // RFC 6773 §3.3: UDP's checksum replaces DCCP's, which is sent as zero. CsCov keeps its
    // meaning for Minimum Checksum Coverage, though all is covered (§3.3.1).
    let inner = |out: &mut Vec<u8>| wire::emit_unsummed(packet, ends, out).map(|_| ());
    let datagram = udp::emit(outer, inner, out);
    if datagram.is_err() {
        out.truncate(start);
    }
    datagram
}

/// Reads and checks a datagram: UDP's addresses and ports, DCCP's, and the packet. It is undamaged: UDP's
/// checksum covers every bit, regardless of CsCov.
///
/// # Errors
/// As [`udp::parse`] and [`wire::parse`]; a datagram without checksum is treated as one with a wrong
/// checksum.
pub fn parse(
    bytes: &[u8],
    src: IpAddr,
    dst: IpAddr,
    hints: Hints,
) -> Result<(Ends, Ends, Packet), WireError> {
    let (outer, bytes_inside) = udp::parse(bytes, src, dst)?;
    // RFC 6773 §3.1, §3.3: UDP's checksum is mandatory.
    if u16_at(bytes, 6) == 0 {
        return Err(WireError::Checksum("UDP"));
    }
    let header_bytes = wire::check_header(bytes_inside)?;
    // RFC 4340 §8.5 step 1: coverage must not exceed the data; the checksum itself is ignored (§3.3).
    wire::covered(bytes_inside[5], header_bytes, bytes_inside.len())
        .ok_or(WireError::Checksum("DCCP"))?;
    let packet = wire::read(bytes_inside, header_bytes, hints);
    let (src_port, dst_port) = (u16_at(bytes_inside, 0), u16_at(bytes_inside, 2));
    Ok((outer, Ends { src_port, dst_port, ..outer }, packet))
}
