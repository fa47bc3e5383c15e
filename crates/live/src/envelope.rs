//! How bodies lie in the IP packets of a line: as [`wire`] writes them, or DCCP inside UDP
//! (RFC 6773), for ways on which protocol 33 does not pass.

use std::net::IpAddr;

use talkspurt_proto::packet::{Body, Packet};
use talkspurt_proto::wire::{self, Ends, Hints, Parsed, WireError, dccp_udp, ipv4, ipv6, udp};

/// UDP ports around DCCP's own (RFC 6773 §3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulation {
    /// Ours.
    pub local_port: u16,
    /// The peer's, [`dccp_udp::PORT`] if it accepts connections; 0 if it is to be learnt from the
    /// peer's first datagram.
    pub remote_port: u16,
}

/// Appends the whole IP packet.
pub(crate) fn emit(
    packet: &Packet,
    body: &Body,
    ends: &Ends,
    envelope: Option<Encapsulation>,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let (Some(envelope), Body::Dccp(dccp)) = (envelope, body) else {
        return wire::emit(packet, body, ends, out);
    };
    let Encapsulation { local_port: src_port, remote_port: dst_port } = envelope;
    let outer = Ends { src_port, dst_port, ..*ends };
    let start = out.len();
    match (ends.src, ends.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            out.resize(start + ipv4::HEADER, 0);
            dccp_udp::emit(dccp, ends, &outer, out)?;
            ipv4::Header::of(packet, udp::PROTOCOL, src, dst).write(&mut out[start..])
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            out.resize(start + ipv6::HEADER, 0);
            dccp_udp::emit(dccp, ends, &outer, out)?;
            ipv6::Header::of(packet, udp::PROTOCOL, src, dst).write(&mut out[start..])
        }
        _ => Err(WireError::Families),
    }
}

/// Reads a whole IP packet; of an encapsulated one also the UDP port it came from.
pub(crate) fn parse(
    bytes: &[u8],
    hints: Hints,
    encapsulated: bool,
) -> Result<(Parsed, Option<u16>), WireError> {
    if !encapsulated {
        return wire::parse(bytes, hints).map(|parsed| (parsed, None));
    }
    let (src, dst, ecn, dscp, ttl, datagram): (IpAddr, IpAddr, _, _, _, _) =
        if bytes.first().is_some_and(|byte| byte >> 4 == 4) {
            let (header, rest) = ipv4::Header::parse(bytes)?;
            let ipv4::Header { src, dst, ecn, dscp, ttl, .. } = header;
            (src.into(), dst.into(), ecn, dscp, ttl, rest)
        } else {
            let (header, rest) = ipv6::Header::parse(bytes)?;
            let ipv6::Header { src, dst, ecn, dscp, hop_limit, .. } = header;
            (src.into(), dst.into(), ecn, dscp, hop_limit, rest)
        };
    let inside = dccp_udp::parse(datagram, src, dst, hints)?;
    let (ends, damage) = (inside.ends, inside.damage);
    let body = Body::Dccp(Box::new(inside.packet));
    Ok((Parsed { ends, ecn, dscp, ttl, damage, body }, Some(inside.outer.src_port)))
}
