//! "Fragmentation needed" (RFC 792, RFC 1191 §4) and "packet too big" (RFC 4443 §3.2).
//!
//! The parsed form holds the MTU only. The quote is rebuilt from the ends, turned round: the IP
//! header of the refused packet and a UDP header, with a length of the MTU plus one (the least
//! that is refused) and no checksum. So 28 bytes are quoted over IPv4 and 48 over IPv6.

use std::net::IpAddr;

use super::checksum::Sum;
use super::{Ends, INITIAL_TTL, WireError, at_least, ipv4, ipv6, u16_at, u32_at, udp};
use crate::packet::Ecn;

/// Bytes before the quote.
const HEADER: usize = 8;
/// RFC 792: destination unreachable, fragmentation needed and DF set.
const V4_TOO_BIG: [u8; 2] = [3, 4];
/// RFC 4443 §3.2: packet too big.
const V6_TOO_BIG: [u8; 2] = [2, 0];

/// Appends the message; `ends` lead from the router (or the far end in whose name it speaks) to
/// the sender of the refused packet. RFC 1191 §4 has room for an MTU of 65535 at most.
///
/// # Errors
/// [`WireError::Families`].
pub fn emit(mtu: u32, ends: &Ends, out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    let refused = u16::try_from(mtu.saturating_add(1)).unwrap_or(u16::MAX);
    let sum = match (ends.src, ends.dst) {
        (IpAddr::V4(_), IpAddr::V4(_)) => {
            let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
            out.extend_from_slice(&V4_TOO_BIG);
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&mtu.to_be_bytes());
            quote(&ends.reversed(), refused, out);
            Sum::default()
        }
        (IpAddr::V6(_), IpAddr::V6(_)) => {
            out.extend_from_slice(&V6_TOO_BIG);
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&mtu.to_be_bytes());
            quote(&ends.reversed(), refused, out);
            // RFC 4443 §2.3: ICMPv6 sums a pseudo-header, ICMP does not.
            Sum::pseudo_header(ends.src, ends.dst, ipv6::ICMP, out.len() - start)
        }
        _ => return Err(WireError::Families),
    };
    let checksum = sum.over(&out[start..]).finish();
    out[start + 2..start + 4].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Appends the headers of the refused packet of `length` bytes.
fn quote(refused: &Ends, length: u16, out: &mut Vec<u8>) {
    let start = out.len();
    let (ttl, dscp, ecn) = (INITIAL_TTL, 0, Ecn::NotEct);
    let payload = match (refused.src, refused.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            out.resize(start + ipv4::HEADER, 0);
            let (identification, protocol) = (0, udp::PROTOCOL);
            ipv4::Header { dscp, ecn, identification, ttl, protocol, src, dst }
                .write_with_length(length, &mut out[start..]);
            length.saturating_sub(ipv4::HEADER as u16)
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            out.resize(start + ipv6::HEADER, 0);
            let payload = length.saturating_sub(ipv6::HEADER as u16);
            let (flow_label, hop_limit, next_header) = (0, ttl, udp::PROTOCOL);
            ipv6::Header { dscp, ecn, flow_label, hop_limit, next_header, src, dst }
                .write_with_length(payload, &mut out[start..]);
            payload
        }
        _ => return,
    };
    for field in [refused.src_port, refused.dst_port, payload, 0] {
        out.extend_from_slice(&field.to_be_bytes());
    }
}

/// Reads a message of this kind; gives the MTU and where the message leads: from `src` to `dst`,
/// with the ports of the refused packet turned round.
///
/// # Errors
/// Truncated bytes, a wrong checksum, any other kind of message.
pub fn parse(bytes: &[u8], src: IpAddr, dst: IpAddr) -> Result<(Ends, u32), WireError> {
    at_least(bytes, HEADER, "ICMP header")?;
    let (sum, kind) = if dst.is_ipv4() {
        (Sum::default(), V4_TOO_BIG)
    } else {
        (Sum::pseudo_header(src, dst, ipv6::ICMP, bytes.len()), V6_TOO_BIG)
    };
    if sum.over(bytes).finish() != 0 {
        return Err(WireError::Checksum("ICMP"));
    }
    if bytes[..2] != kind {
        return Err(WireError::Unsupported("ICMP message"));
    }
    let quote = &bytes[HEADER..];
    let (mtu, ports) = if dst.is_ipv4() {
        ipv4::Header::parse_quoted(quote)?;
        (u32::from(u16_at(bytes, 6)), &quote[usize::from(quote[0] & 0xf) * 4..])
    } else {
        ipv6::Header::parse_quoted(quote)?;
        (u32_at(bytes, 4), &quote[ipv6::HEADER..])
    };
    // RFC 792, RFC 1122 §3.2.2: at least eight bytes of the refused packet's data are quoted.
    at_least(ports, 8, "ICMP quote")?;
    Ok((Ends { src, dst, src_port: u16_at(ports, 2), dst_port: u16_at(ports, 0) }, mtu))
}
