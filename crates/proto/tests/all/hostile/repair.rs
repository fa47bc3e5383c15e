//! Lengths and checksums set right after bytes were changed, so that a change reaches what is behind
//! the checks.

use std::net::IpAddr;

use talkspurt_proto::wire::checksum::{Sum, crc32c};
use talkspurt_proto::wire::{dccp, ipv4, ipv6, sctp, tcp, udp};

/// Of a whole IP packet; what is too short for one is left as it is.
pub(super) fn repair(packet: &mut [u8]) {
    let length = packet.len();
    let (src, dst, protocol, header): (IpAddr, IpAddr, u8, usize);
    match packet.first().map(|byte| byte >> 4) {
        Some(4) if length >= ipv4::HEADER => {
            header = usize::from(packet[0] & 15) * 4;
            if header < ipv4::HEADER || header > length {
                return;
            }
            packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            packet[10..12].fill(0);
            let sum = Sum::default().over(&packet[..header]).finish();
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            let address = |at: usize| -> [u8; 4] { packet[at..at + 4].try_into().expect("four") };
            (src, dst, protocol) = (address(12).into(), address(16).into(), packet[9]);
        }
        Some(6) if length >= ipv6::HEADER => {
            header = ipv6::HEADER;
            packet[4..6].copy_from_slice(&((length - header) as u16).to_be_bytes());
            let address = |at: usize| -> [u8; 16] { packet[at..at + 16].try_into().expect("16") };
            (src, dst, protocol) = (address(8).into(), address(24).into(), packet[6]);
        }
        _ => return,
    }
    let bytes = &mut packet[header..];
    let length = bytes.len();
    let pseudo = Sum::pseudo_header(src, dst, protocol, length);
    let (at, begun, covered) = match protocol {
        udp::PROTOCOL if length >= 8 => {
            bytes[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            (6, pseudo, length)
        }
        tcp::PROTOCOL if length >= 20 => (16, pseudo, length),
        dccp::PROTOCOL if length >= 12 => {
            let end = usize::from(bytes[4]) * 4;
            let words = usize::from(bytes[5] & 15);
            (6, pseudo, if words == 0 { length } else { (end + 4 * (words - 1)).min(length) })
        }
        ipv4::ICMP if length >= 8 => (2, Sum::default(), length),
        ipv6::ICMP if length >= 8 => (2, pseudo, length),
        sctp::PROTOCOL if length >= 12 => {
            bytes[8..12].fill(0);
            let sum = crc32c(bytes);
            return bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        }
        _ => return,
    };
    bytes[at..at + 2].fill(0);
    let sum = begun.over(&bytes[..covered]).finish();
    // RFC 768: a sum of zero is written as its twin.
    let sum = if protocol == udp::PROTOCOL && sum == 0 { 0xffff } else { sum };
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}
