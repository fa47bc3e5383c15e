//! Bytes ↔ bodies: the one place where a parsed packet becomes what a network carries, and back.
//!
//! [`emit`] writes a complete IP packet with every checksum right; [`parse`] reads one and refuses
//! what is not well formed. Used at the live edge and for captures; in simulation the parsed form
//! travels. Bytes are those of the RFCs whatever a label says of its length (under the `ns2`
//! sizing profile [`Packet::ip_bytes`] counts fewer).

pub mod checksum;
pub mod dccp;
pub mod dccp_udp;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod pattern;
pub mod rtcp;
pub mod rtp;
pub mod sctp;
pub mod sctp_udp;
pub mod tcp;
pub mod tfrc;
pub mod udp;

use std::net::IpAddr;

use bytes::Bytes;

pub use crate::packet::INITIAL_TTL;
use crate::packet::{Body, Damage, Ecn, Frame, IpVersion, Packet, Payload};
use crate::probe::RxError;

/// Where a packet comes from and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Sender's address.
    pub src: IpAddr,
    /// Receiver's address, of the same family.
    pub dst: IpAddr,
    /// Sender's UDP, TCP, DCCP or SCTP port.
    pub src_port: u16,
    /// Receiver's UDP, TCP, DCCP or SCTP port.
    pub dst_port: u16,
}

impl Ends {
    /// The way back.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port }
    }
}

/// What the bytes do not say themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// A UDP, DCCP, SCTP or TFRC payload is RTP or RTCP, told apart by RFC 5761 §4; otherwise it is
    /// plain data.
    pub media: bool,
    /// A UDP payload is bare [`tfrc`].
    pub tfrc: bool,
    /// The payload is that of a virtual stream and begins at this offset in it: if its bytes are
    /// the [`pattern`]'s there, it is parsed as [`Payload::Virtual`]. Otherwise as real.
    pub virtual_offset: Option<u64>,
}

impl Hints {
    /// The payload in these bytes. Without bytes there is nothing real: it is then virtual.
    pub(crate) fn payload(self, bytes: Bytes) -> Payload {
        match self.virtual_offset {
            Some(offset) if pattern::matches(offset, &bytes) => {
                Payload::Virtual { offset, len: bytes.len() as u64 }
            }
            _ if bytes.is_empty() => Payload::default(),
            _ => Payload::Real(bytes),
        }
    }
}

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

/// Why bytes are no packet, or a packet has no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Fewer bytes than the header, or a length in it, asks for.
    #[error("{0} is cut short")]
    Truncated(&'static str),
    /// A field has a value that the RFC forbids.
    #[error("{0}")]
    Malformed(&'static str),
    /// A checksum does not match.
    #[error("wrong {0} checksum")]
    Checksum(&'static str),
    /// Well formed perhaps, but of a kind that is not spoken here.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// More bytes than the length field can say.
    #[error("{0} is too long")]
    TooLong(&'static str),
    /// Source and destination address are of different IP versions.
    #[error("source and destination are of different IP versions")]
    Families,
}

impl WireError {
    /// The note an endpoint's driver takes of it.
    #[must_use]
    pub const fn rx_error(self) -> RxError {
        match self {
            Self::Checksum(_) => RxError::Checksum,
            Self::Unsupported(_) => RxError::Unexpected,
            _ => RxError::Malformed,
        }
    }
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

/// What stands behind the bytes of [`emit_head`]: so many of a virtual stream from this offset on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// Offset of the first in its stream.
    pub offset: u64,
    /// How many; not as wide as the offset, lest both be read at once where they have just been written.
    pub len: u32,
}

impl Tail {
    /// Appends a payload at the end of a packet if it is real.
    fn of(payload: &Payload, out: &mut Vec<u8>) -> Self {
        match payload {
            Payload::Real(bytes) => {
                out.extend_from_slice(bytes);
                Self::default()
            }
            Payload::Virtual { offset, len } => {
                // The IP header refuses what is longer than it can say.
                let len = u32::try_from(*len).unwrap_or(u32::MAX);
                Self { offset: *offset, len }
            }
        }
    }
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

/// Appends a frame as a UDP payload or an RFC 4571 frame carries it.
pub fn emit_frame(frame: &Frame, out: &mut Vec<u8>) {
    match frame {
        Frame::Data(payload) => pattern::emit(payload, out),
        Frame::Rtp(packet) => rtp::emit(packet, out),
        Frame::Rtcp(compound) => rtcp::emit(compound, out),
    }
}

/// RTP or RTCP, by the second byte (RFC 5761 §4: 192 to 223 are RTCP packet types).
///
/// # Errors
/// As [`rtp::parse`] and [`rtcp::parse`].
pub fn parse_media(bytes: &Bytes, hints: Hints) -> Result<Frame, WireError> {
    match bytes.get(1) {
        Some(192..=223) => rtcp::parse(bytes).map(|compound| Frame::Rtcp(Box::new(compound))),
        _ => rtp::parse(bytes, hints).map(Frame::Rtp),
    }
}

/// What a packet of a transport of its own carries: media where expected. Bytes that are no media
/// packet stay data, for the packet around them counts and acknowledges all the same.
pub(crate) fn carried(bytes: Bytes, hints: Hints) -> Frame {
    if hints.media
        && let Ok(media) = parse_media(&bytes, hints)
    {
        return media;
    }
    Frame::Data(hints.payload(bytes))
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
            return Ok((ends, Body::Dccp(Box::new(packet)), damage));
        }
        sctp::PROTOCOL => {
            let (ends, packet) = sctp::parse(bytes, src, dst, hints)?;
            (ends, Body::Sctp(Box::new(packet)))
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

/// The two bytes at `at`, which must exist.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
/// The four bytes at `at`, which must exist.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
/// The ECN field in the two low bits (RFC 3168 §5).
pub(crate) const fn ecn(byte: u8) -> Ecn {
    match byte & 0b11 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}
/// Refuses fewer than `needed` bytes.
pub(crate) const fn at_least(
    bytes: &[u8],
    needed: usize,
    what: &'static str,
) -> Result<(), WireError> {
    if bytes.len() < needed { Err(WireError::Truncated(what)) } else { Ok(()) }
}
