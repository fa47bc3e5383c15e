//! Tunnels: the headers are those of the packet inside, wherever it is.

use talkspurt_capture::headers::{Headers, Media, Other, Tunnel, Unread, parse};
use talkspurt_capture::table::{self, REASSEMBLED};

use crate::build::*;

/// The headers apart from places in the packet, the payload of the datagram, and that of RTP.
fn read(packet: &[u8]) -> (Headers, Vec<u8>, Vec<u8>) {
    let mut headers = parse(packet, 0).expect("headers");
    let bytes =
        |range: std::ops::Range<u32>| packet[range.start as usize..range.end as usize].to_vec();
    let whole = bytes(headers.payload.take().expect("a payload"));
    let Some(Media::Rtp { payload, .. }) = &mut headers.media else { panic!("{headers:?}") };
    let voice = bytes(payload.take().expect("RTP has one"));
    (headers, whole, voice)
}

fn over_udp(port: u16, head: &[u8], inner: &[u8]) -> Vec<u8> {
    ipv4(17, &udp((50_000, port), &[head, inner].concat()))
}

fn gtp_u(flags: u8, kind: u8, options: &[u8], inner: &[u8]) -> Vec<u8> {
    let length = (options.len() + inner.len()) as u16;
    let head = [&[flags, kind][..], &length.to_be_bytes(), &[0, 0, 0, 1], options].concat();
    over_udp(2152, &head, inner)
}

fn gre(head: &[u8], inner: &[u8]) -> Vec<u8> {
    ipv4(47, &[head, inner].concat())
}

const VXLAN: [u8; 8] = [8, 0, 0, 0, 0, 0, 1, 0];

pub(crate) fn tunnels(packet: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let kind = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    let frame = ethernet(u16::from_be_bytes(kind), packet);
    let tagged = [&[2; 12][..], &[0x81, 0, 0, 9], &kind, packet].concat();
    let session = [0, 9, 0, 0x85, 1, 0x10, 1, 0];
    let two = [0, 9, 0, 0x85, 1, 0x10, 1, 0xc0, 2, 0, 0, 0, 0, 0, 0, 0];
    let type3 = [0x20, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    vec![
        ("nothing", packet.to_vec()),
        ("IP in IPv4", ipv4(if kind[0] == 8 { 4 } else { 41 }, packet)),
        ("IP in IPv6", ipv6(if kind[0] == 8 { 4 } else { 41 }, packet)),
        ("GRE", gre(&[&[0, 0][..], &kind].concat(), packet)),
        ("GRE with key", gre(&[&[0x20, 0][..], &kind, &[0, 0, 0, 7]].concat(), packet)),
        ("Ethernet in GRE", gre(&[0, 0, 0x65, 0x58], &frame)),
        ("ERSPAN I", gre(&[0, 0, 0x88, 0xbe], &frame)),
        (
            "ERSPAN II",
            gre(&[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10][..], &[0; 7]].concat(), &frame),
        ),
        (
            "ERSPAN III",
            gre(&[&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1][..], &type3, &[0]].concat(), &frame),
        ),
        (
            "ERSPAN III with a platform's header",
            gre(&[&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1][..], &type3, &[1], &[0; 8]].concat(), &frame),
        ),
        ("VXLAN", over_udp(4789, &VXLAN, &frame)),
        ("VXLAN of Linux", over_udp(8472, &VXLAN, &tagged)),
        ("VXLAN with a group", over_udp(4789, &[0x88, 0, 0, 5, 0, 0, 1, 0], &frame)),
        ("Geneve", over_udp(6081, &[0, 0, 0x65, 0x58, 0, 0, 1, 0], &frame)),
        (
            "Geneve with options",
            over_udp(6081, &[1, 0, kind[0], kind[1], 0, 0, 1, 0, 9, 9, 9, 9], packet),
        ),
        ("GTP-U", gtp_u(0x30, 255, &[], packet)),
        ("GTP-U with a number", gtp_u(0x32, 255, &[0, 9, 0, 0], packet)),
        ("GTP-U of a session", gtp_u(0x34, 255, &session, packet)),
        ("GTP-U with two extensions", gtp_u(0x36, 255, &two, packet)),
    ]
}

#[test]
fn the_packet_in_a_tunnel_is_read_like_one_without() {
    let six = ipv6(17, &udp(PORTS, &voice()));
    for plain in [call(), six] {
        let expected = read(&plain);
        assert_eq!(expected.0.ports, PORTS);
        assert_eq!((&expected.1, &expected.2[..]), (&voice(), &VOICE[..]));
        for (outer, packet) in tunnels(&plain) {
            assert_eq!(read(&packet), expected, "{outer}");
            for (inner, packet) in tunnels(&packet) {
                assert_eq!(read(&packet), expected, "{outer} in {inner}");
            }
        }
    }
}

#[test]
fn a_datagram_that_is_no_tunnel_stays_one() {
    let plain = |packet: &[u8]| parse(packet, 0).expect("headers").ports;
    // Another length than UDP says; another version; no packet of IP in the place of one.
    let mut other = gtp_u(0x30, 255, &[], &call());
    other[20 + 8 + 3] += 1;
    assert_eq!(plain(&other), (50_000, 2152));
    assert_eq!(plain(&gtp_u(0x50, 255, &[], &call())), (50_000, 2152));
    let frame = ethernet(0x0800, &call());
    assert_eq!(plain(&over_udp(4789, &[8, 0, 0, 0, 0, 0, 1, 9], &frame)), (50_000, 4789));
    assert_eq!(plain(&over_udp(4789, &[0, 0, 0, 0, 0, 0, 1, 0], &frame)), (50_000, 4789));
    assert_eq!(plain(&over_udp(6081, &[0, 0, 0, 1, 0, 0, 1, 0], &frame)), (50_000, 6081));
    assert_eq!(plain(&over_udp(6081, &[0x40, 0, 0x65, 0x58, 0, 0, 1, 0], &frame)), (50_000, 6081));
    // RTP on the port of a tunnel.
    assert_eq!(plain(&over_udp(4789, &[], &voice())), (50_000, 4789));
    // Only the destination's port is that of VXLAN.
    let back = ipv4(17, &udp((4789, 50_000), &[&VXLAN[..], &frame].concat()));
    assert_eq!(plain(&back), (4789, 50_000));
}

#[test]
fn what_else_tunnels_carry_is_named() {
    let arp = ethernet(0x0806, &[0; 28]);
    let other = |packet: &[u8]| parse(packet, 0).expect_err("no headers");
    let of = |tunnel| Unread::Other(Other::Tunnel(tunnel));
    // An echo request and an end marker.
    assert_eq!(other(&gtp_u(0x32, 1, &[0, 9, 0, 0], &[])), of(Tunnel::GtpU));
    assert_eq!(other(&gtp_u(0x30, 254, &[], &[])), of(Tunnel::GtpU));
    assert_eq!(other(&gtp_u(0x30, 255, &[], &arp)), of(Tunnel::GtpU));
    assert_eq!(other(&over_udp(4789, &VXLAN, &arp)), of(Tunnel::Vxlan));
    assert_eq!(other(&over_udp(6081, &[0, 0, 0x65, 0x58, 0, 0, 1, 0], &arp)), of(Tunnel::Geneve));
    assert_eq!(other(&gre(&[0, 0, 0x88, 0xbe], &arp)), of(Tunnel::Erspan));
    assert_eq!(other(&gre(&[0, 0, 0x65, 0x58], &arp)), of(Tunnel::Gre));
    assert_eq!(Other::Tunnel(Tunnel::GtpU).to_string(), "packets of GTP-U without IP");
    assert_eq!(other(&gtp_u(0x34, 255, &[0, 9, 0, 0x85], &[])), Unread::Other(Other::Cut));
}

#[test]
fn nine_tunnels_in_each_other_are_too_many() {
    let nested = |count| (0..count).fold(call(), |packet, _| ipv4(4, &packet));
    assert_eq!(read(&nested(8)), read(&call()));
    assert_eq!(parse(&nested(9), 0), Err(Unread::Other(Other::Protocol(4))));
    let nested = |count| (0..count).fold(call(), |packet, _| gtp_u(0x30, 255, &[], &packet));
    assert_eq!(read(&nested(8)), read(&call()));
    // The ninth is a datagram like others.
    assert_eq!(parse(&nested(9), 0).expect("headers").ports, (50_000, 2152));
}

/// The first fragment of a tunnel has the headers of the packet in it, whose lengths are its own.
#[test]
fn a_tunnel_in_fragments_keeps_the_lengths_of_its_packet() {
    let whole = gtp_u(0x30, 255, &[], &call());
    let (first, second) = whole[20..].split_at(104);
    let fragment = |place: u16, bytes: &[u8]| {
        let mut packet = ipv4(17, bytes);
        packet[6..8].copy_from_slice(&place.to_be_bytes());
        ethernet(0x0800, &packet)
    };
    let frames = [fragment(0x2000, first), fragment(13, second), ethernet(0x0800, &call())];
    let file = pcap(0xa1b2_c3d4, u32::to_le_bytes, 1, &frames);
    let tables = table::read(&file).expect("tables");
    let column =
        |name: &str| format!("{:?}", tables.packets.column_by_name(name).expect("one").slice(0, 2));
    for (name, value) in [("ip_bytes", 200), ("payload_bytes", 172), ("rtp_ssrc", 0x5eed)] {
        assert_eq!(column(name).matches(&format!("  {value},")).count(), 2, "{}", column(name));
    }
    // The second fragment has no row of its own.
    let left_out = format!("{:?}", tables.left_out);
    assert!(tables.left_out.num_rows() == 1 && left_out.contains(REASSEMBLED), "{left_out}");
}
