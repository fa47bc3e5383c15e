//! "Fragmentation needed" (RFC 792, RFC 1191 §4) and "packet too big" (RFC 4443 §3.2).
//!
//! The quote is the refused packet's IP header and the next eight bytes: its ports, and TCP's
//! sequence number or UDP's length; 28 bytes over IPv4 and 48 over IPv6. For DCCP it is the generic
//! header, four or eight bytes more.

use std::net::IpAddr;

use super::{dccp, ipv4, ipv6, sctp, tcp, udp};
use crate::body::Body;
use crate::octets::checksum::Sum;
use crate::octets::{Ends, WireError, at_least, u16_at, u32_at};
use crate::packet::{IpVersion, Quote, Quoted};

/// Bytes before the quote.
const HEADER: usize = 8;
/// RFC 792: destination unreachable, fragmentation needed and DF set.
const V4_TOO_BIG: [u8; 2] = [3, 4];
/// RFC 4443 §3.2: packet too big.
const V6_TOO_BIG: [u8; 2] = [2, 0];

/// Appends the message of `router`; `ends` are those of the refused packet, reversed. RFC 1191 §4
/// limits the MTU to 65535.
///
/// # Errors
/// [`WireError::Families`].
pub fn emit(
    mtu: u32,
    quote: &Quote,
    router: IpAddr,
    ends: &Ends,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let start = out.len();
    let sum = match quote.version {
        IpVersion::V4 => {
            let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
            out.extend_from_slice(&V4_TOO_BIG);
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&mtu.to_be_bytes());
            Sum::default()
        }
        IpVersion::V6 => {
            out.extend_from_slice(&V6_TOO_BIG);
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&mtu.to_be_bytes());
            // RFC 4443 §2.3: ICMPv6 sums a pseudo-header, ICMP does not.
            let quoted = ipv6::HEADER + quote.transport.bytes() as usize;
            Sum::pseudo_header(router, ends.dst, ipv6::ICMP, HEADER + quoted)
        }
    };
    emit_quote(quote, &ends.reversed(), out)?;
    let checksum = sum.over(&out[start..]).finish();
    out[start + 2..start + 4].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Appends the IP header of the refused packet and the quoted bytes after it.
fn emit_quote(quote: &Quote, refused: &Ends, out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    let Quote { dscp, ecn, ttl, mark, .. } = *quote;
    let protocol = quote.transport.protocol();
    let short = |bytes: u32| u16::try_from(bytes).unwrap_or(u16::MAX);
    let payload = short(quote.ip_bytes.saturating_sub(quote.version.header_bytes()));
    match (quote.version, refused.src, refused.dst) {
        (IpVersion::V4, IpAddr::V4(src), IpAddr::V4(dst)) => {
            out.resize(start + ipv4::HEADER, 0);
            let identification = mark as u16;
            ipv4::Header { dscp, ecn, identification, ttl, protocol, src, dst }
                .write_with_length(short(quote.ip_bytes), &mut out[start..]);
        }
        (IpVersion::V6, IpAddr::V6(src), IpAddr::V6(dst)) => {
            out.resize(start + ipv6::HEADER, 0);
            let (flow_label, hop_limit, next_header) = (mark, ttl, protocol);
            ipv6::Header { dscp, ecn, flow_label, hop_limit, next_header, src, dst }
                .write_with_length(payload, &mut out[start..]);
        }
        _ => return Err(WireError::Families),
    }
    out.extend_from_slice(&refused.src_port.to_be_bytes());
    out.extend_from_slice(&refused.dst_port.to_be_bytes());
    out.extend_from_slice(quote.transport.behind_ports());
    Ok(())
}

/// Reads a message of this kind; returns the ends of the refused packet, reversed, and the message.
///
/// # Errors
/// Truncated bytes, a wrong checksum, any other kind of message, the quote of a packet that `dst`
/// did not send or of another protocol.
pub fn parse(bytes: &[u8], src: IpAddr, dst: IpAddr) -> Result<(Ends, Body), WireError> {
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
    let mtu = if dst.is_ipv4() { u16_at(bytes, 6).into() } else { u32_at(bytes, 4) };
    let (refused, quote) = parse_quote(&bytes[HEADER..], dst.is_ipv4())?;
    if refused.src != dst {
        return Err(WireError::Malformed("ICMP quotes what its receiver did not send"));
    }
    Ok((refused.reversed(), Body::TooBig { mtu, quote }))
}

fn parse_quote(bytes: &[u8], v4: bool) -> Result<(Ends, Quote), WireError> {
    let (src, dst, protocol, header_bytes, mut quote) = if v4 {
        let header = ipv4::Header::parse_quoted(bytes)?;
        let quote = Quote {
            version: IpVersion::V4,
            ip_bytes: u16_at(bytes, 2).into(),
            mark: header.identification.into(),
            ttl: header.ttl,
            dscp: header.dscp,
            ecn: header.ecn,
            transport: Quoted::new(udp::PROTOCOL, &[]),
        };
        let header_bytes = usize::from(bytes[0] & 0xf) * 4;
        (header.src.into(), header.dst.into(), header.protocol, header_bytes, quote)
    } else {
        let header = ipv6::Header::parse_quoted(bytes)?;
        let quote = Quote {
            version: IpVersion::V6,
            ip_bytes: u32::from(u16_at(bytes, 4)) + IpVersion::V6.header_bytes(),
            mark: header.flow_label,
            ttl: header.hop_limit,
            dscp: header.dscp,
            ecn: header.ecn,
            transport: Quoted::new(udp::PROTOCOL, &[]),
        };
        (header.src.into(), header.dst.into(), header.next_header, ipv6::HEADER, quote)
    };
    let behind = &bytes[header_bytes..];
    // RFC 792, RFC 1122 §3.2.2: at least eight bytes of the refused packet's data are quoted.
    at_least(behind, 8, "ICMP quote")?;
    let quoted = match protocol {
        udp::PROTOCOL | tcp::PROTOCOL | sctp::PROTOCOL => 8,
        dccp::PROTOCOL => dccp::quoted_bytes(behind)?,
        _ => return Err(WireError::Unsupported("quoted protocol")),
    };
    quote.transport = Quoted::new(protocol, &behind[4..quoted]);
    let (src_port, dst_port) = (u16_at(behind, 0), u16_at(behind, 2));
    Ok((Ends { src, dst, src_port, dst_port }, quote))
}
