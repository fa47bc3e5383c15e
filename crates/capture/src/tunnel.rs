//! Packets in tunnels: IP in IP (RFC 2003, RFC 2473), GRE (RFC 2784, RFC 2890) of IP or Ethernet (RFC 7637),
//! ERSPAN, and over UDP VXLAN (RFC 7348), Geneve (RFC 8926) and the user plane of GTP (3GPP TS 29.281).

use std::fmt;

use etherparse::IpNumber;

use crate::frame::{self, Left};
use crate::media::be16;

/// TS 29.281 §4.4.2: the UDP port of GTP-U.
const GTP_U: u16 = 2152;
/// RFC 7348 §5, and the one that Linux used before.
const VXLAN: [u16; 2] = [4789, 8472];
/// RFC 8926 §3.3.
const GENEVE: u16 = 6081;

/// A protocol that carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tunnel {
    /// Generic Routing Encapsulation.
    Gre,
    /// Frames that a switch mirrors (draft-foschiano-erspan).
    Erspan,
    /// Virtual Extensible LAN.
    Vxlan,
    /// Generic Network Virtualization Encapsulation.
    Geneve,
    /// The user plane of the GPRS Tunnelling Protocol, of mobile networks.
    GtpU,
}

impl fmt::Display for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gre => "GRE",
            Self::Erspan => "ERSPAN",
            Self::Vxlan => "VXLAN",
            Self::Geneve => "Geneve",
            Self::GtpU => "GTP-U",
        })
    }
}

/// What is in a tunnel.
pub(crate) enum Inside<'a> {
    /// An IP packet.
    Packet(&'a [u8]),
    /// Something else: another protocol, or messages between the ends of the tunnel.
    Other(Tunnel),
    /// It was not captured.
    Cut,
}

/// What is in the payload of an IP packet if this is a tunnel.
pub(crate) fn open(kind: IpNumber, bytes: &[u8]) -> Option<Inside<'_>> {
    match kind {
        IpNumber::IPV4 | IpNumber::IPV6 => Some(Inside::Packet(bytes)),
        IpNumber::GRE => Some(gre(bytes).unwrap_or(Inside::Cut)),
        IpNumber::UDP => udp(bytes),
        _ => None,
    }
}

/// RFC 2784 §2.1 and RFC 2890 §2: a word each for checksum, key and sequence number, if their bits are set.
fn gre(bytes: &[u8]) -> Option<Inside<'_>> {
    let (flags, kind) = (be16(bytes, 0)?, be16(bytes, 2)?);
    let words = 1 + [0x8000, 0x2000, 0x1000].iter().filter(|bit| flags & **bit != 0).count();
    let rest = bytes.get(4 * words..)?;
    Some(match (flags & 0x4007, kind) {
        (0, 0x0800 | 0x86dd) => Inside::Packet(rest),
        // Ethernet in GRE (RFC 7637 §3.2).
        (0, 0x6558) => frame(rest, Tunnel::Gre),
        // Type II has a sequence number and a header of two words; type I has neither.
        (0, 0x88be) if flags & 0x1000 == 0 => frame(rest, Tunnel::Erspan),
        (0, 0x88be) => frame(rest.get(8..)?, Tunnel::Erspan),
        // Type III: three words, of which the last says the kind of frame, 0 or IP (2), and whether there are
        // two more.
        (0, 0x22eb) => {
            let last = be16(rest, 10)?;
            let rest = rest.get(if last & 1 == 0 { 12 } else { 20 }..)?;
            match last >> 10 & 0x1f {
                0 => frame(rest, Tunnel::Erspan),
                2 => Inside::Packet(rest),
                _ => Inside::Other(Tunnel::Erspan),
            }
        }
        _ => Inside::Other(Tunnel::Gre),
    })
}

fn frame(bytes: &[u8], of: Tunnel) -> Inside<'_> {
    match frame::ethernet(bytes) {
        Ok(packet) => Inside::Packet(packet),
        Err(Left::Short) => Inside::Cut,
        Err(_) => Inside::Other(of),
    }
}

/// A tunnel over UDP. Other protocols may use its port by chance, so that its header must be as the protocol
/// says, bits that are reserved included.
fn udp(bytes: &[u8]) -> Option<Inside<'_>> {
    let (from, to, length) = (be16(bytes, 0)?, be16(bytes, 2)?, be16(bytes, 4)?);
    let payload = &bytes[8.min(bytes.len())..];
    if VXLAN.contains(&to) {
        return vxlan(payload);
    }
    match (from, to) {
        (_, GENEVE) => geneve(payload),
        (GTP_U, _) | (_, GTP_U) => gtp_u(payload, usize::from(length)),
        _ => None,
    }
}

/// RFC 7348 §5; with bit 0, the second half of the first word is a group (draft-smith-vxlan-group-policy).
fn vxlan(bytes: &[u8]) -> Option<Inside<'_>> {
    match bytes {
        [8, 0, 0, 0, _, _, _, 0, rest @ ..] | [0x88, _, _, _, _, _, _, 0, rest @ ..] => {
            Some(frame(rest, Tunnel::Vxlan))
        }
        _ => None,
    }
}

/// RFC 8926 §3.4: version 0, the number of words of options, and the protocol.
fn geneve(bytes: &[u8]) -> Option<Inside<'_>> {
    let &[words @ ..0x40, flags, high, low, _, _, _, 0, ..] = bytes else { return None };
    if flags & 0x3f != 0 {
        return None;
    }
    let rest = bytes.get(8 + 4 * usize::from(words)..);
    match (u16::from_be_bytes([high, low]), rest) {
        (0x6558 | 0x0800 | 0x86dd, None) => Some(Inside::Cut),
        (0x6558, Some(rest)) => Some(frame(rest, Tunnel::Geneve)),
        (0x0800 | 0x86dd, Some(rest)) => Some(Inside::Packet(rest)),
        _ => None,
    }
}

/// TS 29.281 §5.1: version 1 and the bit PT, the type of the message, and the length of what follows the first
/// eight bytes. `told` is the length of the UDP datagram with its header, which is 0 if segmentation is left to
/// the network interface.
fn gtp_u(bytes: &[u8], told: usize) -> Option<Inside<'_>> {
    let (&[flags @ 0x30..=0x37, kind, ..], length) = (bytes, be16(bytes, 2)?) else { return None };
    if told != 0 && told != 16 + usize::from(length) {
        return None;
    }
    // G-PDU (§6.1).
    if kind != 255 {
        return Some(Inside::Other(Tunnel::GtpU));
    }
    let packet = || {
        // With one of the bits E, S and PN, all three fields are there; the last one says the type of the first
        // extension header.
        let mut at = if flags & 7 == 0 { 8 } else { 12 };
        let mut next = if flags & 4 == 0 { 0 } else { *bytes.get(11)? };
        while next != 0 {
            // §5.2.1: its length in words, which is not 0; its last byte is the type of the next one.
            at += 4 * usize::from(*bytes.get(at)?).max(1);
            next = *bytes.get(at - 1)?;
        }
        bytes.get(at..).filter(|rest| !rest.is_empty())
    };
    match packet() {
        None => Some(Inside::Cut),
        // IPv4 or IPv6; mobile networks also carry Ethernet and PPP, which nothing here tells apart.
        Some(packet) if matches!(packet[0], 0x45..=0x4f | 0x60..=0x6f) => {
            Some(Inside::Packet(packet))
        }
        Some(_) => Some(Inside::Other(Tunnel::GtpU)),
    }
}
