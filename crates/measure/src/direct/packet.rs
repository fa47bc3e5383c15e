//! Sealed packets of DCCP and SCTP as they are on the wire: the headers are genuine and in clear, so that the
//! network sees the protocol and can follow it, and user data are encrypted in place.
//!
//! The seal of a packet, with number and time of departure, is at the end of DCCP's application data area,
//! which every packet type has (RFC 4340 §5). That of a Reset is meant for a text about the error (§5.6),
//! which only people read. In SCTP the seal is a PAD chunk (RFC 4820 §3), which every receiver skips, at the
//! end or in front of ABORT, behind which nothing may be (RFC 9260 §3.3.7). INIT, INIT ACK and SHUTDOWN
//! COMPLETE are alone in their packets (§6.10) and have it as last parameter: INIT as Padding (RFC 4820 §4),
//! the others, which must not have Padding, of a type that receivers skip (RFC 9260 §3.2.1). SHUTDOWN COMPLETE
//! becomes longer than the standard has it (§3.3.13).
//!
//! What is in clear is authenticated with it, except for what a NAT changes: addresses, ports and checksums.
//! TTL, DSCP and ECN are in front of all this.

use std::net::IpAddr;
use std::ops::Range;

use talkspurt_live::Ip;
use talkspurt_proto::sctp::{CHUNK_HEADER, COMMON_HEADER};
use talkspurt_proto::wire::{WireError, dccp, sctp};

use crate::protocol::{ELEMENT, Protocol};
use crate::seal::{HEAD, Header, OVERHEAD, Opener, Sealer};

/// Bytes of both ports.
const PORTS: Range<usize> = 0..4;
/// Position of the checksums of DCCP (RFC 4340 §5.1) and of SCTP (RFC 9260 §3.1).
const DCCP_CHECKSUM: Range<usize> = 6..8;
const SCTP_CHECKSUM: Range<usize> = 8..12;
/// Chunk type of ABORT (RFC 9260 §3.3.7).
const ABORT: u8 = 6;
/// The beginning of the element as a chunk: PAD, without flags, of this length.
const PAD: [u8; 4] = [0x84, 0, 0, ELEMENT as u8];
/// As a parameter: Padding, or one of an unassigned type whose highest bits are 10, to be skipped without
/// report.
const PADDING: [u8; 4] = [0x80, 0x05, 0, ELEMENT as u8];
const PARAMETER: [u8; 4] = [0xbf, 0xfe, 0, ELEMENT as u8];

/// An authentic packet.
#[derive(Debug, PartialEq)]
pub(super) struct OpenedPacket {
    pub(super) header: Header,
    /// The source port on the wire.
    pub(super) src_port: u16,
    /// The whole IP packet as its sender wrote it, with the addresses on the wire.
    pub(super) packet: Vec<u8>,
}

/// The whole packet with this header.
fn whole(ip: &Ip, inside: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut packet = vec![0; ip.bytes()];
    packet.extend_from_slice(inside);
    ip.write(&mut packet)?;
    Ok(packet)
}

/// Source address of an IP packet.
pub(super) fn source(packet: &[u8]) -> Option<IpAddr> {
    Ip::parse(packet).ok().map(|(ip, _)| ip.addresses()[0])
}

/// Seals a whole IP packet.
///
/// # Errors
/// It is no packet of this protocol, or gets too long.
pub(super) fn seal(
    sealer: &mut Sealer,
    protocol: Protocol,
    header: &Header,
    packet: &[u8],
) -> Result<Vec<u8>, WireError> {
    let (ip, inside) = Ip::parse(packet)?;
    let mut inside = inside.to_vec();
    let secret = secret(protocol, &inside).ok_or(WireError::Malformed("no packet to seal"))?;
    let clear = clear(protocol, &inside, &secret);
    let plain: Vec<_> = secret.iter().flat_map(|part| &inside[part.clone()]).copied().collect();
    let sealed = sealer.seal_with(header, &plain, &clear);
    let (head, rest) = sealed.split_at(HEAD);
    let (mut rest, tag) = rest.split_at(plain.len());
    for part in secret {
        let (encrypted, later) = rest.split_at(part.len());
        inside[part].copy_from_slice(encrypted);
        rest = later;
    }
    let [src, dst] = ip.addresses();
    match protocol {
        Protocol::Dccp => {
            inside.extend([head, tag].concat());
            dccp::sum(&mut inside, src, dst)?;
        }
        Protocol::Sctp => {
            let mut before = [0; 2];
            if is_alone(&inside) {
                before.copy_from_slice(&inside[LENGTH]);
                let whole = (inside.len() - COMMON_HEADER + ELEMENT) as u16;
                inside[LENGTH].copy_from_slice(&whole.to_be_bytes());
            }
            let element = [&kind(&inside), head, tag, &before].concat();
            let at = place(&inside);
            inside.splice(at..at, element);
            sctp::sum(&mut inside)?;
        }
    }
    whole(&ip, &inside)
}

/// Opens a whole IP packet; `None` if it is not from the other end, or not new.
pub(super) fn open(opener: &mut Opener, protocol: Protocol, packet: &[u8]) -> Option<OpenedPacket> {
    let (ip, inside) = Ip::parse(packet).ok()?;
    let [src, dst] = ip.addresses();
    let (mut inside, seal) = match protocol {
        Protocol::Dccp => {
            let (header_bytes, _) = dccp::check(inside, src, dst).ok()?;
            let data = inside.len() - header_bytes;
            let (rest, seal) = inside.split_at(inside.len() - OVERHEAD.min(data));
            (rest.to_vec(), seal)
        }
        Protocol::Sctp => {
            sctp::check(inside).ok()?;
            without_element(inside)?
        }
    };
    let secret = secret(protocol, &inside)?;
    let clear = clear(protocol, &inside, &secret);
    let (head, tag) = seal.split_at_checked(HEAD)?;
    let mut sealed = head.to_vec();
    secret.iter().for_each(|part| sealed.extend(&inside[part.clone()]));
    sealed.extend(tag);
    let (header, plain) = opener.open_with(&sealed, &clear)?;
    let mut rest = &plain[..];
    for part in secret {
        let (decrypted, later) = rest.split_at_checked(part.len())?;
        inside[part].copy_from_slice(decrypted);
        rest = later;
    }
    match protocol {
        Protocol::Dccp => dccp::sum(&mut inside, src, dst).ok()?,
        Protocol::Sctp => sctp::sum(&mut inside).ok()?,
    }
    let src_port = u16::from_be_bytes(*inside.first_chunk()?);
    Some(OpenedPacket { header, src_port, packet: whole(&ip, &inside).ok()? })
}

/// What is encrypted: DCCP's application data area, and the user data of SCTP's chunks. `None` if the bytes are
/// no packet.
fn secret(protocol: Protocol, inside: &[u8]) -> Option<Vec<Range<usize>>> {
    // DCCP's shortest header is as long (RFC 4340 §5.1).
    inside.len().checked_sub(COMMON_HEADER)?;
    let (mut parts, mut at) = (Vec::new(), COMMON_HEADER);
    if protocol == Protocol::Dccp {
        let header_bytes = 4 * usize::from(*inside.get(4)?);
        parts.push(inside.len().min(header_bytes)..inside.len());
        return Some(parts);
    }
    while at < inside.len() {
        let [kind, _, length @ ..] = *inside[at..].first_chunk::<CHUNK_HEADER>()?;
        let end = at + usize::from(u16::from_be_bytes(length)).max(CHUNK_HEADER);
        // DATA (RFC 9260 §3.3.1) and I-DATA (RFC 8260 §2.1).
        let header_bytes = match kind {
            0 => Some(16),
            64 => Some(20),
            _ => None,
        };
        if end > inside.len() {
            return None;
        }
        if let Some(header_bytes) = header_bytes {
            parts.push((at + header_bytes).min(end)..end);
        }
        at = end.next_multiple_of(4);
    }
    Some(parts)
}

/// What is authenticated in clear: the protocol and its headers, without what is encrypted and what a NAT
/// changes.
fn clear(protocol: Protocol, inside: &[u8], secret: &[Range<usize>]) -> Vec<u8> {
    let mut clear = inside.to_vec();
    let checksum = match protocol {
        Protocol::Dccp => DCCP_CHECKSUM,
        Protocol::Sctp => SCTP_CHECKSUM,
    };
    for part in secret.iter().cloned().chain([PORTS, checksum]) {
        clear[part].fill(0);
    }
    clear.push(protocol.number());
    clear
}

/// Position of the first chunk's Chunk Length.
const LENGTH: Range<usize> = COMMON_HEADER + 2..COMMON_HEADER + 4;

/// RFC 9260 §6.10: whether the first chunk, INIT, INIT ACK or SHUTDOWN COMPLETE, is the only one.
fn is_alone(inside: &[u8]) -> bool {
    matches!(inside.get(COMMON_HEADER), Some(1 | 2 | 14))
}

/// The beginning of the element of a packet.
fn kind(inside: &[u8]) -> [u8; 4] {
    match inside.get(COMMON_HEADER) {
        Some(1) => PADDING,
        Some(2 | 14) => PARAMETER,
        _ => PAD,
    }
}

/// Where the element of a packet is, or ends: in front of the first ABORT, without one at the end.
fn place(inside: &[u8]) -> usize {
    let chunk = |at: &usize| Some(*inside.get(*at..)?.first_chunk::<CHUNK_HEADER>()?);
    let mut at = COMMON_HEADER;
    while let Some([kind, _, length @ ..]) = chunk(&at) {
        if kind == ABORT {
            return at;
        }
        let length = usize::from(u16::from_be_bytes(length)).max(CHUNK_HEADER);
        at += length.next_multiple_of(4);
    }
    inside.len()
}

/// An SCTP packet without the element that has the seal, and the seal.
fn without_element(inside: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let end = place(inside);
    let start = end.checked_sub(ELEMENT).filter(|start| *start >= COMMON_HEADER)?;
    let (found, element) = inside[start..end].split_at(CHUNK_HEADER);
    let (seal, length) = element.split_at(OVERHEAD);
    let mut rest = [&inside[..start], &inside[end..]].concat();
    if found != kind(&rest) {
        return None;
    }
    if is_alone(&rest) {
        let whole = u16::from_be_bytes(*inside.get(LENGTH)?.first_chunk()?);
        if usize::from(whole) != inside.len() - COMMON_HEADER {
            return None;
        }
        rest.get_mut(LENGTH)?.copy_from_slice(length);
    } else if length != [0; 2] {
        return None;
    }
    Some((rest, seal))
}
