//! RFC 6773: DCCP inside UDP, byte by byte.

use std::net::IpAddr;

use bytes::Bytes;
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::dccp::{Kind, Options, Packet, WireSeq};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::wire::dccp_udp::{self, PORT};
use talkspurt_proto::wire::{self, Ends, Hints, WireError};

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}
fn dccp_ends(v4: bool) -> Ends {
    let (src, dst) = if v4 { ("10.0.0.1", "10.0.0.2") } else { ("fd00::1", "fd00::2") };
    Ends { src: address(src), dst: address(dst), src_port: 0x1122, dst_port: 0x3344 }
}
/// A client behind a NAT may use any UDP port.
fn udp_ends(v4: bool) -> Ends {
    Ends { src_port: 40_000, dst_port: PORT, ..dccp_ends(v4) }
}
fn packet() -> Packet {
    let ack = WireSeq::Extended(0x99aa_bbcc_ddee);
    Packet {
        seq: WireSeq::Extended(0x1122_3344_5566),
        ccval: 5,
        cscov: 0,
        kind: Kind::DataAck { ack },
        options: Options::default(),
        payload: Frame::Data(Payload::Real(Bytes::from_static(b"talks"))),
    }
}
fn emit(packet: &Packet, v4: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    dccp_udp::emit(packet, &dccp_ends(v4), &udp_ends(v4), &mut bytes).expect("fits");
    bytes
}
fn parse(bytes: &[u8], v4: bool) -> Result<(Ends, Ends, Packet), WireError> {
    let Ends { src, dst, .. } = udp_ends(v4);
    dccp_udp::parse(bytes, src, dst, Hints::default())
}
/// Recomputes UDP's checksum after a change.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let Ends { src, dst, .. } = udp_ends(true);
    bytes[6..8].fill(0);
    let sum = wire::checksum::Sum::pseudo_header(src, dst, 17, bytes.len());
    let checksum = sum.over(&bytes).finish();
    bytes[6..8].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

#[test]
fn section_3_1_the_udp_header_stands_in_front_with_ports_of_its_own() {
    for v4 in [true, false] {
        let bytes = emit(&packet(), v4);
        assert_eq!(bytes[..4], [0x9c, 0x40, 0x19, 0x6f], "UDP ports 40000 and 6511");
        assert_eq!(usize::from(u16::from_be_bytes([bytes[4], bytes[5]])), bytes.len());
        assert_eq!(bytes.len(), 8 + 24 + 5);
        let Ends { src, dst, .. } = udp_ends(v4);
        let (outer, _) = wire::udp::parse(&bytes, src, dst).expect("a datagram like any other");
        assert_eq!(outer, udp_ends(v4));
        // §3.8: both pairs of ports name the connection.
        let (outer, ends) = (udp_ends(v4), dccp_ends(v4));
        assert_eq!(parse(&bytes, v4), Ok((outer, ends, packet())));
    }
}

#[test]
fn section_3_2_the_generic_header_is_that_of_rfc_4340_but_for_its_checksum() {
    let mut plain = Vec::new();
    wire::dccp::emit(&packet(), &dccp_ends(true), &mut plain).expect("fits");
    assert_ne!(plain[6..8], [0, 0]);
    // §3.3: the sender sets it to zero.
    plain[6..8].fill(0);
    assert_eq!(emit(&packet(), true)[8..], plain);
}

#[test]
fn section_3_3_the_receiver_ignores_dccps_checksum() {
    let mut bytes = emit(&packet(), true);
    bytes[14..16].copy_from_slice(&[0xde, 0xad]);
    assert_eq!(parse(&summed(bytes), true).map(|(.., read)| read), Ok(packet()));
}

#[test]
fn section_3_3_a_wrong_udp_checksum_or_none_is_refused() {
    let bytes = emit(&packet(), true);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(parse(&damaged, true).is_err(), "byte {at}");
    }
    // Plain UDP over IPv4 allows zero; RFC 6773 does not.
    let mut without = bytes;
    without[6..8].fill(0);
    let Ends { src, dst, .. } = udp_ends(true);
    assert!(wire::udp::parse(&without, src, dst).is_ok());
    assert_eq!(parse(&without, true), Err(WireError::Checksum("UDP")));
}

/// UDP covers everything, so data beyond CsCov is no less safe; CsCov itself arrives as sent.
#[test]
fn section_3_3_1_partial_coverage_is_said_but_not_done() {
    let mut partial = Packet { cscov: 1, ..packet() };
    // Not the CRC-32c of these five letters: the sender's own error, since no bit can have changed.
    partial.options.push(Opt::DataChecksum(1));
    partial.options.pad();
    let mut bytes = emit(&partial, true);
    assert_eq!(parse(&bytes, true).map(|(.., read)| read), Ok(partial));
    *bytes.last_mut().expect("data") ^= 1;
    assert_eq!(parse(&bytes, true), Err(WireError::Checksum("UDP")));
    // RFC 4340 §8.5 step 1 applies: the coverage exceeds the data.
    let mut bytes = emit(&packet(), true);
    bytes[13] = 3;
    assert_eq!(parse(&summed(bytes), true), Err(WireError::Checksum("DCCP")));
}

#[test]
fn what_rfc_4340_drops_is_dropped_inside_udp_too() {
    let with = |at: usize, value: u8| {
        let mut bytes = emit(&packet(), true);
        bytes[at] = value;
        parse(&summed(bytes), true)
    };
    assert!(matches!(with(12, 5), Err(WireError::Malformed(_))), "data offset too small");
    assert!(matches!(with(12, 8), Err(WireError::Malformed(_))), "data offset beyond the datagram");
    assert!(matches!(with(16, 12 << 1 | 1), Err(WireError::Unsupported(_))), "a reserved type");
    assert!(matches!(with(16, 8 << 1), Err(WireError::Malformed(_))), "short numbers on a Sync");
}

#[test]
fn a_packet_without_bytes_leaves_none() {
    let mut out = vec![1, 2, 3];
    let impossible = Packet { cscov: 15, ..packet() };
    let emitted = dccp_udp::emit(&impossible, &dccp_ends(true), &udp_ends(true), &mut out);
    assert!(emitted.is_err());
    assert_eq!(out, [1, 2, 3]);
}
