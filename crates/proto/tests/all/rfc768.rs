//! RFC 768 and the IP headers under it (RFC 791, RFC 8200), byte by byte.

use std::net::IpAddr;

use talkspurt_proto::body::Body;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, IpVersion, Packet, Payload};
use talkspurt_proto::wire::{self, Ends, Hints, WireError};

fn label(version: IpVersion) -> Packet {
    Packet { number: 0x1_2345, hop: 2, ecn: Ecn::Ect0, dscp: 46, version, ..Packet::default() }
}
fn ends(src: &str, dst: &str) -> Ends {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    Ends { src: address(src), dst: address(dst), src_port: 5004, dst_port: 5006 }
}
fn datagram(ends: &Ends, payload: &'static [u8]) -> Vec<u8> {
    let body = Body::Udp(Frame::Data(Payload::Real(payload.into())));
    let version = if ends.src.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
    let mut out = Vec::new();
    wire::emit(&label(version), &body, ends, &mut out).expect("fits");
    out
}
/// The ones' complement sum of RFC 1071 §1, the slow way: end-around carry at each step.
fn ones_complement(bytes: &[u8]) -> u16 {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(2), 0);
    padded.chunks(2).fold(0_u16, |sum, word| {
        let (sum, carry) = sum.overflowing_add(u16::from_be_bytes([word[0], word[1]]));
        sum + u16::from(carry)
    })
}

#[test]
fn rfc_791_header_fields() {
    let bytes = datagram(&ends("10.0.0.1", "10.0.0.2"), b"hello");
    assert_eq!(bytes.len(), 20 + 8 + 5);
    assert_eq!(bytes[0], 0x45, "version 4, five words");
    assert_eq!(bytes[1], 46 << 2 | 0b10, "DSCP EF, ECT(0)");
    assert_eq!(bytes[2..4], [0, 33], "total length");
    assert_eq!(bytes[4..6], [0x23, 0x45], "identification: the packet's number");
    assert_eq!(bytes[6..8], [0x40, 0], "Don't Fragment, no offset");
    assert_eq!(bytes[8], 64 - 2, "two links behind it");
    assert_eq!(bytes[9], 17);
    assert_eq!(ones_complement(&bytes[..20]), 0xffff);
    assert_eq!(bytes[12..20], [10, 0, 0, 1, 10, 0, 0, 2]);
}

#[test]
fn rfc_1071_the_header_checksum_of_a_published_example() {
    // A header often printed with its checksum, 0xb861: 192.168.0.1 to 192.168.0.199, UDP.
    let header = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00,
        0x01, 0xc0, 0xa8, 0x00, 0xc7,
    ];
    assert_eq!(wire::checksum::Sum::default().over(&header).finish(), 0);
    let mut blank = header;
    blank[10..12].fill(0);
    assert_eq!(wire::checksum::Sum::default().over(&blank).finish(), 0xb861);
}

#[test]
fn rfc_768_header_and_checksum_over_the_pseudo_header() {
    let bytes = datagram(&ends("10.0.0.1", "10.0.0.2"), b"hello");
    assert_eq!(bytes[20..26], [0x13, 0x8c, 0x13, 0x8e, 0, 13]);
    let pseudo = [&[10, 0, 0, 1, 10, 0, 0, 2, 0, 17, 0, 13], &bytes[20..]].concat();
    assert_eq!(ones_complement(&pseudo), 0xffff);
}

#[test]
fn rfc_8200_header_and_checksum_over_the_pseudo_header() {
    let bytes = datagram(&ends("fd00::1", "fd00::2"), b"hello");
    assert_eq!(bytes.len(), 40 + 8 + 5);
    assert_eq!(bytes[0] >> 4, 6);
    let class = bytes[0] << 4 | bytes[1] >> 4;
    assert_eq!(class, 46 << 2 | 0b10, "DSCP EF, ECT(0)");
    assert_eq!(bytes[4..8], [0, 13, 17, 62], "payload length, next header, hop limit");
    // RFC 8200 §8.1.
    let pseudo = [&bytes[8..40], &[0, 0, 0, 13, 0, 0, 0, 17], &bytes[40..]].concat();
    assert_eq!(ones_complement(&pseudo), 0xffff);
}

#[test]
fn rfc_768_a_checksum_of_zero_is_sent_as_all_ones() {
    let ends = ends("10.0.0.1", "10.0.0.2");
    // Two bytes of payload that bring the sum to all ones: all others, lengths 10.
    let rest = ones_complement(&[
        10, 0, 0, 1, 10, 0, 0, 2, 0, 17, 0, 10, 0x13, 0x8c, 0x13, 0x8e, 0, 10, 0, 0,
    ]);
    let body = Body::Udp(Frame::Data(Payload::Real((!rest).to_be_bytes().to_vec().into())));
    let mut out = Vec::new();
    wire::emit(&label(IpVersion::V4), &body, &ends, &mut out).expect("fits");
    assert_eq!(out[26..28], [0xff, 0xff]);
    assert!(wire::parse(&out, Hints::default()).is_ok());
}

#[test]
fn rfc_768_no_checksum_is_taken_over_ipv4_and_refused_over_ipv6() {
    let mut v4 = datagram(&ends("10.0.0.1", "10.0.0.2"), b"hello");
    v4[26..28].fill(0);
    assert!(wire::parse(&v4, Hints::default()).is_ok());
    let mut v6 = datagram(&ends("fd00::1", "fd00::2"), b"hello");
    v6[46..48].fill(0);
    // RFC 8200 §8.1.
    assert_eq!(wire::parse(&v6, Hints::default()), Err(WireError::Checksum("UDP")));
}

#[test]
fn every_damaged_bit_is_noticed() {
    for ends in [ends("10.0.0.1", "10.0.0.2"), ends("fd00::1", "fd00::2")] {
        let whole = datagram(&ends, b"hello");
        let parsed = wire::parse(&whole, Hints::default()).expect("whole");
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // Traffic class, flow label and hop limit of IPv6 have no checksum over them.
            let unprotected = ends.src.is_ipv6() && (matches!(bit, 0..4 | 8..32) || bit / 8 == 7);
            let result = wire::parse(&damaged, Hints::default());
            assert_eq!(result.is_ok(), unprotected, "bit {bit}: {result:?} of {parsed:?}");
        }
    }
}

#[test]
fn rfc_791_fragments_are_not_taken_and_padding_is_left() {
    let mut bytes = datagram(&ends("10.0.0.1", "10.0.0.2"), b"hello");
    let whole = wire::parse(&bytes, Hints::default());
    bytes.extend_from_slice(&[0; 13]);
    assert_eq!(wire::parse(&bytes, Hints::default()), whole);
    bytes[6] = 0x20;
    bytes[10..12].fill(0);
    let checksum = !ones_complement(&bytes[..20]);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    let fragment = Err(WireError::Unsupported("IPv4 fragment"));
    assert_eq!(wire::parse(&bytes, Hints::default()), fragment);
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let mut out = vec![1, 2, 3];
    let body = Body::Udp(Frame::Data(Payload::Virtual { offset: 0, len: 65_536 }));
    for ends in [ends("10.0.0.1", "10.0.0.2"), ends("fd00::1", "fd00::2")] {
        let result = wire::emit(&label(IpVersion::V4), &body, &ends, &mut out);
        assert_eq!(result, Err(WireError::TooLong("UDP datagram")));
    }
    let mixed = ends("10.0.0.1", "fd00::2");
    let result = wire::emit(&label(IpVersion::V4), &body, &mixed, &mut out);
    assert_eq!(result, Err(WireError::Families));
    assert_eq!(out, [1, 2, 3]);
}
