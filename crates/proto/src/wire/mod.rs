//! Bytes ↔ bodies: the one place where a parsed packet becomes what a network carries, and back.
//!
//! [`emit`] writes a complete IP packet with every checksum right; [`parse`] reads one and refuses
//! what is not well formed. Used at the live edge and for captures; in simulation the parsed form
//! travels. Bytes are those of the RFCs whatever a label says of its length (under the `ns2`
//! sizing profile [`Packet::ip_bytes`] counts fewer).

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
    /// Where from and where to; of a Packet Too Big those of the refused packet, turned round.
    pub ends: Ends,
    /// ECN field.
    pub ecn: Ecn,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Whether its payload arrived as it was sent, as far as the bytes themselves tell.
    pub damage: Damage,
    /// What it carries.
    pub body: Body,
}

/// Appends the whole IP packet to `out`: label for the IP header, body, addresses and ports.
///
/// Don't Fragment is set; TTL (or hop limit) is [`Packet::ttl`]; the IPv4 identification or IPv6
/// flow label is [`Packet::mark`]. A Packet Too Big speaks in the name of `ends.src`, to which the
/// refused packet went; a router's is written by [`emit_from`].
///
/// # Errors
/// [`WireError::Families`], or [`WireError::TooLong`] if it does not fit an IP packet; `out` is
/// then as it was.
pub fn emit(packet: &Packet, body: &Body, ends: &Ends, out: &mut Vec<u8>) -> Result<(), WireError> {
    emit_from(ends.src, packet, body, ends, out)
}

/// Appends a router's answer to `out`: as [`emit`], with `router` for the source address. `ends`
/// are those of the refused packet, turned round.
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

/// As [`emit_from`], but a virtual payload at the end of a TCP segment is not written: [`pattern::fill`]
/// writes it whenever it is wanted, and as often.
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

/// What hops change of a packet's bytes: TTL, ECN field and DSCP, and nothing behind the IP header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hop {
    ttl: u8,
    /// DSCP and ECN field: type of service, or traffic class.
    class: u8,
}

impl Hop {
    /// What they are by this label.
    #[must_use]
    pub const fn of(packet: &Packet) -> Self {
        Self { ttl: packet.ttl(), class: packet.dscp << 2 | packet.ecn as u8 }
    }

    /// Makes of a packet's bytes, as [`emit`] or [`emit_from`] wrote them on another link, those that it
    /// has here.
    ///
    /// # Panics
    /// If they are fewer than an IP header's.
    pub fn relabel(self, bytes: &mut [u8]) {
        if bytes[0] >> 4 == IpVersion::V4 as u8 {
            ipv4::Header::relabel(self, bytes);
        } else {
            ipv6::Header::relabel(self, bytes);
        }
    }
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
            let protocol = protocol(body, ipv4::ICMP);
            let header = ipv4::Header::of(packet, protocol, src, dst);
            header.write_before(out.len() - start + tail.len as usize, &mut out[start..])?;
            Ok(tail)
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            out.resize(start + ipv6::HEADER, 0);
            let tail = emit_body(src.into(), body, ends, out)?;
            let next_header = protocol(body, ipv6::ICMP);
            let header = ipv6::Header::of(packet, next_header, src, dst);
            header.write_before(out.len() - start + tail.len as usize, &mut out[start..])?;
            Ok(tail)
        }
        _ => Err(WireError::Families),
    }
}

fn protocol(body: &Body, icmp: u8) -> u8 {
    match body {
        Body::Udp(_) | Body::Tfrc(_) => udp::PROTOCOL,
        Body::Dccp(_) => dccp::PROTOCOL,
        Body::Sctp(_) => sctp::PROTOCOL,
        Body::Tcp(_) => tcp::PROTOCOL,
        Body::TooBig { .. } => icmp,
    }
}

fn emit_body(src: IpAddr, body: &Body, ends: &Ends, out: &mut Vec<u8>) -> Result<Tail, WireError> {
    match body {
        Body::Udp(frame) => udp::emit(ends, |out| emit_frame(frame, out), out),
        Body::Tcp(segment) => return tcp::emit(segment, ends, out),
        Body::Dccp(packet) => dccp::emit(packet, ends, out),
        Body::Sctp(packet) => sctp::emit(packet, ends, out),
        Body::Tfrc(packet) => udp::emit(ends, |out| tfrc::emit(packet, out), out),
        Body::TooBig { mtu, quote } => icmp::emit(*mtu, quote, src, ends, out),
    }?;
    Ok(Tail::default())
}

/// Reads a whole IP packet. Bytes beyond its length field are link padding and are left.
///
/// # Errors
/// Says what is wrong with the bytes; [`WireError::rx_error`] makes it a note. Never panics.
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
