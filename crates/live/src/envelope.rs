//! Encapsulation of bodies in the IP packets of a line: as written by [`wire`], or in UDP (DCCP by RFC 6773,
//! SCTP by RFC 6951), for paths that block their own protocol numbers.

use std::net::IpAddr;

use talkspurt_proto::body::Body;
use talkspurt_proto::packet::{Damage, Packet, PacketBox};
use talkspurt_proto::wire::{
    self, Ends, Hints, Parsed, WireError, dccp_udp, ipv4, ipv6, sctp_udp, udp,
};

use crate::ip::Ip;

/// The protocol inside UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// DCCP, whose connection is identified by both pairs of ports (RFC 6773 §3.8).
    Dccp,
    /// SCTP, whose association continues when its peer's UDP port changes (RFC 6951 §5.4).
    Sctp,
}

/// UDP ports around another protocol's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulation {
    /// The protocol.
    pub inside: Inside,
    /// Ours.
    pub local_port: u16,
    /// The peer's, [`dccp_udp::PORT`] or [`sctp_udp::PORT`] if it accepts connections; 0 to learn it from the
    /// peer's first datagram.
    pub remote_port: u16,
}

/// Appends the whole IP packet.
///
/// # Errors
/// It has no form on the wire.
pub fn emit(
    packet: &Packet,
    body: &Body,
    ends: &Ends,
    envelope: Option<Encapsulation>,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let (Some(envelope), Body::Dccp(_) | Body::Sctp(_)) = (envelope, body) else {
        return wire::emit(packet, body, ends, out);
    };
    let Encapsulation { local_port: src_port, remote_port: dst_port, .. } = envelope;
    let outer = Ends { src_port, dst_port, ..*ends };
    let datagram = |out: &mut Vec<u8>| match body {
        Body::Dccp(dccp) => dccp_udp::emit(dccp, ends, &outer, out),
        Body::Sctp(sctp) => sctp_udp::emit(sctp, ends, &outer, out),
        _ => unreachable!("nothing else is encapsulated"),
    };
    let start = out.len();
    let header = match (ends.src, ends.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            Ip::V4(ipv4::Header::of(packet, udp::PROTOCOL, src, dst))
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            Ip::V6(ipv6::Header::of(packet, udp::PROTOCOL, src, dst))
        }
        _ => return Err(WireError::Families),
    };
    out.resize(start + header.bytes(), 0);
    datagram(out)?;
    header.write(&mut out[start..])
}

/// Parses a whole IP packet; if encapsulated, also returns its UDP source port.
///
/// # Errors
/// It is not a valid packet.
pub fn parse(
    bytes: &[u8],
    hints: Hints,
    inside: Option<Inside>,
) -> Result<(Parsed, Option<u16>), WireError> {
    let Some(inside) = inside else {
        return wire::parse(bytes, hints).map(|parsed| (parsed, None));
    };
    let (header, datagram) = Ip::parse(bytes)?;
    let [src, dst] = header.addresses();
    let (Ip::V4(ipv4::Header { ecn, dscp, ttl, .. })
    | Ip::V6(ipv6::Header { ecn, dscp, hop_limit: ttl, .. })) = header;
    let (outer, ends, body) = match inside {
        Inside::Dccp => {
            let (outer, ends, packet) = dccp_udp::parse(datagram, src, dst, hints)?;
            (outer, ends, Body::Dccp(PacketBox::new(packet)))
        }
        Inside::Sctp => {
            let (outer, ends, packet) = sctp_udp::parse(datagram, src, dst, hints)?;
            (outer, ends, Body::Sctp(PacketBox::new(packet)))
        }
    };
    let damage = Damage::None;
    Ok((Parsed { ends, ecn, dscp, ttl, damage, body }, Some(outer.src_port)))
}
