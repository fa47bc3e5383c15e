//! Bytes ↔ bodies: converts between parsed packets and bytes on the wire.
//!
//! [`emit`] writes a complete IP packet with correct checksums; [`parse`] reads one and rejects malformed
//! bytes. Used at the live edge and for captures; simulation uses the parsed form. The bytes follow the RFCs
//! whatever length a label has (under the `ns2` sizing profile [`Packet::ip_bytes`] counts fewer).

pub mod icmp;
pub mod ipv4;
pub mod ipv6;

use std::net::IpAddr;

use bytes::Bytes;

use crate::body::Body;
pub use crate::dccp::in_udp as dccp_udp;
pub use crate::dccp::wire as dccp;
use crate::frame::Frame;
pub use crate::frame::{emit as emit_frame, parse_media};
pub use crate::octets::{Ends, Hints, Tail, WireError, checksum, pattern};
pub use crate::packet::INITIAL_TTL;
use crate::packet::{Damage, Ecn, IpVersion, Packet, PacketBox, Payload};
pub use crate::rtcp::wire as rtcp;
pub use crate::rtp::wire as rtp;
pub use crate::sctp::in_udp as sctp_udp;
pub use crate::sctp::wire as sctp;
pub use crate::tcp::wire as tcp;
pub use crate::tfrc::wire as tfrc;
pub use crate::udp::wire as udp;

/// A packet as read from bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// Addresses and ports; of a Packet Too Big those of the refused packet, reversed.
    pub ends: Ends,
    /// ECN field.
    pub ecn: Ecn,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Whether its payload arrived unchanged, as far as the bytes show.
    pub damage: Damage,
    /// What it carries.
    pub body: Body,
}

/// Appends the whole IP packet to `out`: label for the IP header, body, addresses and ports.
///
/// Don't Fragment is set; TTL (or hop limit) is [`Packet::ttl`]; the IPv4 identification or IPv6
/// flow label is [`Packet::mark`]. The source of a Packet Too Big is `ends.src`, the destination of
/// the refused packet; [`emit_from`] writes a router's.
///
/// # Errors
/// [`WireError::Families`], or [`WireError::TooLong`] if it does not fit an IP packet; `out` is
/// then unchanged.
pub fn emit(packet: &Packet, body: &Body, ends: &Ends, out: &mut Vec<u8>) -> Result<(), WireError> {
    emit_from(ends.src, packet, body, ends, out)
}

/// Appends a router's answer to `out`: as [`emit`], with `router` for the source address. `ends`
/// are those of the refused packet, reversed.
///
/// # Errors
/// As [`emit`].
pub fn emit_from(
    router: IpAddr,
    packet: &Packet,
    body: &Body,
    ends: &Ends,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let tail = emit_head(router, packet, body, ends, out)?;
    pattern::emit(&Payload::Virtual { offset: tail.offset, len: tail.len.into() }, out);
    Ok(())
}

/// As [`emit_from`], but does not write a virtual payload at the end of a TCP segment: [`pattern::fill`]
/// generates it on demand.
///
/// # Errors
/// As [`emit`].
pub fn emit_head(
    router: IpAddr,
    packet: &Packet,
    body: &Body,
    ends: &Ends,
    out: &mut Vec<u8>,
) -> Result<Tail, WireError> {
    let start = out.len();
    let written = emit_ip(router, packet, body, ends, out);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// The fields that hops change: TTL, ECN field and DSCP; nothing after the IP header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hop {
    ttl: u8,
    /// DSCP and ECN field: type of service, or traffic class.
    class: u8,
}

impl Hop {
    /// The fields of this packet.
    #[must_use]
    pub const fn of(packet: &Packet) -> Self {
        Self::since(INITIAL_TTL, packet)
    }

    /// This TTL, DSCP and ECN field.
    #[must_use]
    pub const fn new(ttl: u8, dscp: u8, ecn: Ecn) -> Self {
        Self { ttl, class: dscp << 2 | ecn as u8 }
    }

    /// The fields of this packet, given its TTL when it left its sender.
    #[must_use]
    pub const fn since(initial_ttl: u8, packet: &Packet) -> Self {
        Self::new(initial_ttl.saturating_sub(packet.hop), packet.dscp, packet.ecn)
    }

    /// Changes a packet's bytes on another link, or the beginning of them, to those on this link.
    ///
    /// # Panics
    /// If `bytes` is shorter than an IP header.
    pub fn relabel(self, bytes: &mut [u8]) {
        if bytes[0] >> 4 == IpVersion::V4 as u8 {
            ipv4::Header::relabel(self, bytes);
        } else {
            ipv6::Header::relabel(self, bytes);
        }
    }
}

/// Appends what follows the IP header, except for virtual bytes at the end; `router` is the source of a
/// router's message.
///
/// # Errors
/// It has no form on the wire, such as a header that is too long.
pub fn emit_body(
    router: IpAddr,
    body: &Body,
    ends: &Ends,
    out: &mut Vec<u8>,
) -> Result<Tail, WireError> {
    if let Body::TooBig { mtu, quote } = body {
        return icmp::emit(*mtu, quote, router, ends, out).map(|()| Tail::default());
    }
    body.emit(ends, out)
}

fn emit_ip(
    src: IpAddr,
    packet: &Packet,
    body: &Body,
    ends: &Ends,
    out: &mut Vec<u8>,
) -> Result<Tail, WireError> {
    let start = out.len();
    match (src, ends.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            out.resize(start + ipv4::HEADER, 0);
            let tail = emit_body(src.into(), body, ends, out)?;
            let protocol = body.protocol(ipv4::ICMP);
            let header = ipv4::Header::of(packet, protocol, src, dst);
            header.write_before(out.len() - start + tail.len as usize, &mut out[start..])?;
            Ok(tail)
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            out.resize(start + ipv6::HEADER, 0);
            let tail = emit_body(src.into(), body, ends, out)?;
            let next_header = body.protocol(ipv6::ICMP);
            let header = ipv6::Header::of(packet, next_header, src, dst);
            header.write_before(out.len() - start + tail.len as usize, &mut out[start..])?;
            Ok(tail)
        }
        _ => Err(WireError::Families),
    }
}

/// Reads a whole IP packet. Bytes beyond its length field are link padding and are ignored.
///
/// # Errors
/// Why the bytes are invalid; [`WireError::rx_error`] converts it. Never panics.
pub fn parse(bytes: &[u8], hints: Hints) -> Result<Parsed, WireError> {
    match bytes.first().map(|byte| byte >> 4) {
        Some(4) => {
            let (header, rest) = ipv4::Header::parse(bytes)?;
            let icmp = header.protocol == ipv4::ICMP;
            let (src, dst) = (header.src.into(), header.dst.into());
            let (ends, body, damage) = parse_body(header.protocol, icmp, src, dst, rest, hints)?;
            let ipv4::Header { ecn, dscp, ttl, .. } = header;
            Ok(Parsed { ends, ecn, dscp, ttl, damage, body })
        }
        Some(6) => {
            let (header, rest) = ipv6::Header::parse(bytes)?;
            let icmp = header.next_header == ipv6::ICMP;
            let (src, dst) = (header.src.into(), header.dst.into());
            let (ends, body, damage) = parse_body(header.next_header, icmp, src, dst, rest, hints)?;
            let ipv6::Header { ecn, dscp, hop_limit: ttl, .. } = header;
            Ok(Parsed { ends, ecn, dscp, ttl, damage, body })
        }
        Some(_) => Err(WireError::Malformed("IP version is neither 4 nor 6")),
        None => Err(WireError::Truncated("IP header")),
    }
}

fn parse_body(
    protocol: u8,
    icmp: bool,
    src: IpAddr,
    dst: IpAddr,
    bytes: &[u8],
    hints: Hints,
) -> Result<(Ends, Body, Damage), WireError> {
    let (ends, body) = match protocol {
        udp::PROTOCOL => {
            let (ends, payload) = udp::parse(bytes, src, dst)?;
            (ends, parse_datagram(Bytes::copy_from_slice(payload), hints)?)
        }
        tcp::PROTOCOL => {
            let (ends, segment) = tcp::parse(bytes, src, dst, hints)?;
            (ends, Body::Tcp(segment))
        }
        dccp::PROTOCOL => {
            let (ends, packet, damage) = dccp::parse(bytes, src, dst, hints)?;
            return Ok((ends, Body::Dccp(PacketBox::new(packet)), damage));
        }
        sctp::PROTOCOL => {
            let (ends, packet) = sctp::parse(bytes, src, dst, hints)?;
            (ends, Body::Sctp(PacketBox::new(packet)))
        }
        _ if icmp => icmp::parse(bytes, src, dst)?,
        _ => return Err(WireError::Unsupported("IP protocol")),
    };
    Ok((ends, body, Damage::None))
}

fn parse_datagram(payload: Bytes, hints: Hints) -> Result<Body, WireError> {
    Ok(if hints.tfrc {
        Body::Tfrc(tfrc::parse(&payload, hints)?)
    } else if hints.media {
        Body::Udp(parse_media(&payload, hints)?)
    } else {
        Body::Udp(Frame::Data(hints.payload(payload)))
    })
}
