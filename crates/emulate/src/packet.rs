//! Packets of real hosts as bytes: what the network needs to know of one (RFC 791, 8200, 768, 9293), what
//! routers change in it, and their messages (RFC 792, 1812, 4443).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use talkspurt_live::Ip;
use talkspurt_proto::body::{Layers, RealPacket};
use talkspurt_proto::octets::ecn;
use talkspurt_proto::packet::{Ecn, IpVersion, Packet};
use talkspurt_proto::wire::{Hop, checksum::Sum, dccp, ipv4, ipv6, sctp, tcp, udp};

/// UDP-Lite (RFC 3828), whose header has UDP's ports.
const UDP_LITE: u8 = 136;
/// Of a fragment (RFC 791 §3.1): its offset, and the bit that more follow.
const OFFSET: u16 = 0x1fff;
const MORE: u16 = 0x2000;
/// RFC 1812 §4.3.2.3: an ICMP message has at most 576 bytes.
const MAX_V4: usize = 576;
/// RFC 4443 §3: an ICMPv6 message fits the minimum MTU.
const MAX_V6: usize = 1280;

/// What the network needs to know of a packet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PacketInfo {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    /// Ports at source and destination; of an echo its identifier, twice; otherwise zero.
    pub(crate) ports: (u16, u16),
    pub(crate) ecn: Ecn,
    pub(crate) dscp: u8,
    /// Of a fragment: which one it is.
    pub(crate) fragment: Option<Fragment>,
    /// It has the headers: it is no fragment other than the first.
    pub(crate) has_headers: bool,
    /// A router may send a message about it.
    pub(crate) is_answerable: bool,
    pub(crate) real: RealPacket,
}

impl PacketInfo {
    pub(crate) const fn version(&self) -> IpVersion {
        if self.src.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }
    }
}

/// A part of a packet (RFC 791 §3.2, RFC 8200 §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// The packet's identification.
    pub(crate) of: u32,
    /// Where its data begins in that of the packet, and how long it is.
    pub(crate) offset: u32,
    pub(crate) length: u32,
    /// It is not the last.
    pub(crate) has_more: bool,
}

/// The network layer of a packet.
struct Network {
    src: IpAddr,
    dst: IpAddr,
    class: u8,
    ttl: u8,
    protocol: u8,
    /// Where the transport's header begins.
    start: usize,
    fragment: Option<Fragment>,
    has_headers: bool,
}

/// Reads a packet; `None` if it is not one, or the header checksum of IPv4 is wrong.
pub(crate) fn parse(bytes: &[u8]) -> Option<PacketInfo> {
    let network = match bytes.first()? >> 4 {
        4 => v4(bytes)?,
        6 => v6(bytes)?,
        _ => return None,
    };
    let Network { src, dst, class, ttl, protocol, start, fragment, has_headers } = network;
    let body = bytes.get(start..)?;
    let body = if has_headers { body } else { &[] };
    let icmp = if src.is_ipv4() { ipv4::ICMP } else { ipv6::ICMP };
    let has_ports = matches!(
        protocol,
        udp::PROTOCOL | tcp::PROTOCOL | sctp::PROTOCOL | dccp::PROTOCOL | UDP_LITE
    );
    let ports = if has_ports {
        word(body, 0).zip(word(body, 2)).unwrap_or_default()
    } else if protocol == icmp && is_echo(src, body) {
        word(body, 4).map(|identifier| (identifier, identifier)).unwrap_or_default()
    } else {
        (0, 0)
    };
    let header = header_bytes(protocol, icmp, body).min(body.len());
    let fixed = if src.is_ipv4() { ipv4::HEADER } else { ipv6::HEADER };
    let transport = (start - fixed + header) as u32;
    let payload = (bytes.len() - fixed) as u32 - transport;
    let real = RealPacket {
        bytes: Bytes::copy_from_slice(bytes),
        layers: Layers { transport, media: 0, payload },
        protocol,
        ttl,
    };
    let (ecn, dscp) = (ecn(class), class >> 2);
    // RFC 1122 §3.2.2, RFC 4443 §2.4 (e).
    let is_answerable = has_headers
        && is_one_host(src)
        && !is_group(dst)
        && !(protocol == icmp && is_icmp_error(src, body));
    Some(PacketInfo { src, dst, ports, ecn, dscp, fragment, has_headers, is_answerable, real })
}

fn v4(bytes: &[u8]) -> Option<Network> {
    let header: &[u8; ipv4::HEADER] = bytes.first_chunk()?;
    let start = usize::from(header[0] & 0xf) * 4;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if start < ipv4::HEADER || length < start || length != bytes.len() {
        return None;
    }
    // RFC 1812 §5.2.2: what a router verifies.
    if Sum::default().over(&bytes[..start]).finish() != 0 {
        return None;
    }
    let address = |at: usize| Ipv4Addr::from([0, 1, 2, 3].map(|i| header[at + i]));
    let (identification, place) = (word(header, 4)?, word(header, 6)?);
    let fragment = (place & (MORE | OFFSET) != 0).then(|| Fragment {
        of: identification.into(),
        offset: u32::from(place & OFFSET) * 8,
        length: (length - start) as u32,
        has_more: place & MORE != 0,
    });
    Some(Network {
        src: address(12).into(),
        dst: address(16).into(),
        class: header[1],
        ttl: header[8],
        protocol: header[9],
        start,
        fragment,
        has_headers: place & OFFSET == 0,
    })
}

fn v6(bytes: &[u8]) -> Option<Network> {
    let header: &[u8; ipv6::HEADER] = bytes.first_chunk()?;
    let length = ipv6::HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]));
    if length != bytes.len() {
        return None;
    }
    let address = |at: usize| Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|i| header[at + i]));
    let (mut protocol, mut start) = (header[6], ipv6::HEADER);
    let (mut fragment, mut has_headers) = (None, true);
    // RFC 8200 §4: hop-by-hop options, routing, destination options, fragment.
    // What follows the header of a later fragment is data.
    while has_headers && let Some(extension) = bytes.get(start..start + 8) {
        let length = match protocol {
            0 | 43 | 60 => 8 + 8 * usize::from(extension[1]),
            44 => {
                let place = word(extension, 2)?;
                has_headers = place >> 3 == 0;
                fragment = Some(Fragment {
                    of: u32::from(word(extension, 4)?) << 16 | u32::from(word(extension, 6)?),
                    offset: u32::from(place & !7),
                    length: (length - start - 8) as u32,
                    has_more: place & 1 != 0,
                });
                8
            }
            _ => break,
        };
        protocol = extension[0];
        start += length;
    }
    Some(Network {
        src: address(8).into(),
        dst: address(24).into(),
        class: header[0] << 4 | header[1] >> 4,
        ttl: header[7],
        protocol,
        start,
        fragment,
        has_headers,
    })
}

/// Bytes of the transport's header.
fn header_bytes(protocol: u8, icmp: u8, body: &[u8]) -> usize {
    let words = |at: usize| body.get(at).map_or(0, |byte| usize::from(*byte));
    match protocol {
        udp::PROTOCOL | UDP_LITE => udp::HEADER,
        tcp::PROTOCOL => words(12) / 16 * 4,
        dccp::PROTOCOL => words(4) * 4,
        sctp::PROTOCOL => 12,
        _ if protocol == icmp => 8,
        _ => 0,
    }
}

/// Echo and echo reply (RFC 792, RFC 4443 §4).
fn is_echo(src: IpAddr, body: &[u8]) -> bool {
    let kinds = if src.is_ipv4() { [0, 8] } else { [128, 129] };
    body.first().is_some_and(|kind| kinds.contains(kind))
}

/// Not one of the queries and answers of RFC 792, RFC 950 and RFC 1256, or of ICMPv6 (RFC 4443 §2.1).
fn is_icmp_error(src: IpAddr, body: &[u8]) -> bool {
    match (src, body.first()) {
        (IpAddr::V4(_), Some(kind)) => !matches!(kind, 0 | 8..=10 | 13..=18),
        (IpAddr::V6(_), Some(kind)) => *kind < 128,
        (_, None) => true,
    }
}

/// Multicast or broadcast.
fn is_group(dst: IpAddr) -> bool {
    dst.is_multicast() || dst == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// A source to which a message can be sent: not zero, loopback, multicast, broadcast, or class E.
fn is_one_host(src: IpAddr) -> bool {
    match src {
        IpAddr::V4(src) => !matches!(src.octets()[0], 0 | 127 | 224..),
        IpAddr::V6(src) => !(src.is_unspecified() || src.is_loopback() || src.is_multicast()),
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Whether a packet has the flags of a fragment, or an extension header of IPv6.
pub(crate) fn may_be_fragment(real: &RealPacket) -> bool {
    let bytes = &real.bytes;
    match bytes[0] >> 4 {
        4 => word(bytes, 6).is_some_and(|place| place & (MORE | OFFSET) != 0),
        _ => matches!(bytes[6], 0 | 43 | 44 | 60),
    }
}

/// What a TCP segment takes of the space of sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The first number.
    pub(crate) seq: u32,
    /// How many: its payload's, and one each for SYN and FIN (RFC 9293 §3.4).
    pub(crate) numbers: u32,
    /// It begins a connection.
    pub(crate) is_syn: bool,
}

/// A TCP segment; `None` of other packets, and behind extension headers.
pub(crate) fn segment(real: &RealPacket) -> Option<Segment> {
    let bytes = &real.bytes;
    let start = if bytes[0] >> 4 == 4 { usize::from(bytes[0] & 0xf) * 4 } else { ipv6::HEADER };
    let next = if bytes[0] >> 4 == 4 { bytes[9] } else { bytes[6] };
    let header: &[u8; 20] = bytes.get(start..)?.first_chunk()?;
    let is_first_fragment = bytes[0] >> 4 == 6 || word(bytes, 6)? & OFFSET == 0;
    if next != tcp::PROTOCOL || !is_first_fragment {
        return None;
    }
    let seq = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    let (is_syn, is_fin) = (header[13] & 2 != 0, header[13] & 1 != 0);
    let numbers = real.layers.payload + u32::from(is_syn) + u32::from(is_fin);
    Some(Segment { seq, numbers, is_syn })
}

/// The packet as its destination reads it: the TTL is less by one for each router, and the ECN field is that of
/// its label.
pub(crate) fn arrived(real: &RealPacket, packet: &Packet, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&real.bytes);
    Hop::new(ttl_at(real, packet), packet.dscp, packet.ecn).relabel(out);
}

/// The TTL with which a packet arrives at the node that it has reached.
pub(crate) fn ttl_at(real: &RealPacket, packet: &Packet) -> u8 {
    // The first link needs no router.
    real.ttl.saturating_sub(packet.hop.saturating_sub(1))
}

/// A router's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The packet's TTL became zero (RFC 792: type 11; RFC 4443 §3.3).
    TimeExceeded,
    /// No host has its destination address (RFC 792: net unreachable; RFC 4443 §3.1: no route).
    Unreachable,
    /// The next link has this MTU (RFC 1191 §4: fragmentation needed; RFC 4443 §3.2).
    TooBig(u32),
}

/// The message of `router` about a packet that arrived there with this TTL; `None` if it must trigger none.
pub(crate) fn message(
    kind: Message,
    router: IpAddr,
    about: &PacketInfo,
    ttl: u8,
) -> Option<Vec<u8>> {
    if !about.is_answerable {
        return None;
    }
    let (header, most) = match router {
        IpAddr::V4(_) => (ipv4::HEADER, MAX_V4),
        IpAddr::V6(_) => (ipv6::HEADER, MAX_V6),
    };
    let mut quote = about.real.bytes[..about.real.bytes.len().min(most - header - 8)].to_vec();
    Hop::new(ttl, about.dscp, about.ecn).relabel(&mut quote);
    let mut packet = vec![0; header + 8];
    let (kind, code, rest) = match (kind, router) {
        (Message::TimeExceeded, IpAddr::V4(_)) => (11, 0, 0),
        (Message::TimeExceeded, IpAddr::V6(_)) => (3, 0, 0),
        (Message::Unreachable, IpAddr::V4(_)) => (3, 0, 0),
        (Message::Unreachable, IpAddr::V6(_)) => (1, 0, 0),
        (Message::TooBig(mtu), IpAddr::V4(_)) => (3, 4, mtu),
        (Message::TooBig(mtu), IpAddr::V6(_)) => (2, 0, mtu),
    };
    packet[header..header + 2].copy_from_slice(&[kind, code]);
    packet[header + 4..header + 8].copy_from_slice(&u32::to_be_bytes(rest));
    packet.extend_from_slice(&quote);
    let length = packet.len() - header;
    let protocol = if router.is_ipv4() { ipv4::ICMP } else { ipv6::ICMP };
    Ip::new((router, about.src), protocol, 0).ok()?.write(&mut packet).ok()?;
    let sum = if router.is_ipv4() {
        Sum::default()
    } else {
        Sum::pseudo_header(router, about.src, protocol, length)
    };
    let sum = sum.over(&packet[header..]).finish();
    packet[header + 2..header + 4].copy_from_slice(&sum.to_be_bytes());
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use talkspurt_proto::body::Body;
    use talkspurt_proto::frame::Frame;
    use talkspurt_proto::packet::{BodyId, Payload};
    use talkspurt_proto::time::Instant;
    use talkspurt_proto::wire::{self, Ends, Hints};

    fn label(version: IpVersion, ip_bytes: u32, hop: u8, ecn: Ecn) -> Packet {
        let (route, flow, number) = (0, 0, 0);
        let (body, sent) = (BodyId(0), Instant::ZERO);
        Packet { body, ip_bytes, route, flow, number, hop, ecn, dscp: 46, version, sent }
    }

    fn datagram(addresses: [&str; 2], ecn: Ecn) -> Vec<u8> {
        let [src, dst] = addresses.map(|text| text.parse().expect("an address"));
        let ends = Ends { src, dst, src_port: 5004, dst_port: 6000 };
        let body = Body::Udp(Frame::Data(Payload::Real(vec![7; 100].into())));
        let version = if src.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let mut bytes = Vec::new();
        wire::emit(&label(version, 128, 0, ecn), &body, &ends, &mut bytes).expect("it fits");
        bytes
    }

    /// Completes a header of IPv4.
    fn add_sum(header: &mut [u8]) {
        header[10..12].fill(0);
        let sum = Sum::default().over(header).finish();
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    /// The same if it is one of IPv4, with its options.
    fn add_right_sum(bytes: &mut [u8]) {
        let header = usize::from(bytes[0] & 0xf) * 4;
        if bytes[0] >> 4 == 4 && (20..=bytes.len()).contains(&header) {
            add_sum(&mut bytes[..header]);
        }
    }

    const PAIRS: [[&str; 2]; 2] = [["10.0.0.1", "10.0.0.2"], ["fd00::1", "fd00::2"]];

    #[test]
    fn a_datagram_is_read_and_arrives_with_the_marks_of_its_way() {
        for pair in PAIRS {
            let bytes = datagram(pair, Ecn::Ect0);
            let seen = parse(&bytes).expect("a packet");
            assert_eq!((seen.ports, seen.ecn, seen.dscp), ((5004, 6000), Ecn::Ect0, 46));
            assert_eq!(seen.real.layers, Layers { transport: 8, media: 0, payload: 100 });
            assert!(seen.is_answerable);
            let mut out = Vec::new();
            let packet = label(seen.version(), bytes.len() as u32, 3, Ecn::Ce);
            arrived(&seen.real, &packet, &mut out);
            // The parser checks IPv4's checksum, and UDP's over the addresses.
            let parsed = wire::parse(&out, Hints::default()).expect("it is still valid");
            assert_eq!((parsed.ttl, parsed.ecn, parsed.dscp), (62, Ecn::Ce, 46));
        }
    }

    #[test]
    fn cut_and_garbled_bytes_are_no_packets_and_never_panic() {
        let plain = PAIRS.map(|pair| datagram(pair, Ecn::NotEct));
        let fragments = [fragment(0, udp::PROTOCOL), fragment(8, udp::PROTOCOL)];
        for bytes in plain.into_iter().chain(with_extensions()).chain(fragments) {
            for end in 0..bytes.len() {
                assert_eq!(parse(&bytes[..end]), None);
            }
            for at in 0..80 {
                for value in 0..=255 {
                    let mut bytes = bytes.clone();
                    bytes[at] = value;
                    if at != 10 && at != 11 {
                        add_right_sum(&mut bytes);
                    }
                    if let Some(seen) = parse(&bytes) {
                        let router = seen.dst;
                        message(Message::TimeExceeded, router, &seen, 1);
                        segment(&seen.real);
                        arrived(
                            &seen.real,
                            &label(seen.version(), 0, 255, Ecn::Ce),
                            &mut Vec::new(),
                        );
                    }
                }
            }
        }
        assert_eq!(parse(&[]), None);
    }

    /// RFC 1812 §5.2.2 (2).
    #[test]
    fn a_packet_with_a_wrong_header_checksum_is_none() {
        for (mut bytes, at) in
            [(datagram(PAIRS[0], Ecn::Ect0), 10), (with_extensions()[0].clone(), 21)]
        {
            assert!(parse(&bytes).is_some());
            bytes[at] ^= 1;
            assert_eq!(parse(&bytes), None);
        }
    }

    /// RFC 792, RFC 1191 and RFC 4443: type, code, MTU, checksum, and the packet that caused it.
    #[test]
    fn a_router_quotes_the_packet_and_answers_no_error() {
        let kinds = [
            (Message::TimeExceeded, [[11, 0], [3, 0]], 0),
            (Message::Unreachable, [[3, 0], [1, 0]], 0),
            (Message::TooBig(1006), [[3, 4], [2, 0]], 1006),
        ];
        for ((kind, types, mtu), (pair, which)) in kinds
            .into_iter()
            .flat_map(|kind| PAIRS.into_iter().zip(0..).map(move |pair| (kind, pair)))
        {
            let mut bytes = datagram(pair, Ecn::NotEct);
            // Of IPv4 the identification, and no Don't Fragment; of IPv6 the length, and UDP.
            bytes[4..8].copy_from_slice([&[9, 8, 0, 0][..], &[0, 108, 17, 64][..]][which]);
            if which == 0 {
                add_sum(&mut bytes[..20]);
            }
            let seen = parse(&bytes).expect("a packet");
            let router: IpAddr = ["10.9.9.9", "fd00::9"][which].parse().expect("an address");
            let message = message(kind, router, &seen, 1).expect("an answer");
            let header = [ipv4::HEADER, ipv6::HEADER][which];
            assert_eq!(message[header..header + 2], types[which]);
            assert_eq!(message[header + 4..header + 8], u32::to_be_bytes(mtu));
            let about = &message[header + 8..];
            // All but its TTL and IPv4's checksum.
            bytes[[8, 7][which]] = 1;
            if which == 0 {
                assert_eq!(Sum::default().over(&about[..header]).finish(), 0);
                bytes[10..12].copy_from_slice(&about[10..12]);
            }
            assert_eq!(about, bytes);
            let icmp = [ipv4::ICMP, ipv6::ICMP][which];
            let length = message.len() - header;
            let sum = if which == 0 {
                Sum::default()
            } else {
                Sum::pseudo_header(router, seen.src, icmp, length)
            };
            assert_eq!(sum.over(&message[header..]).finish(), 0);
            let answer = parse(&message).expect("a packet");
            assert_eq!((answer.src, answer.dst), (router, seen.src));
            assert_eq!(super::message(kind, router, &answer, 1), None);
        }
    }

    /// RFC 1122 §3.2.2, RFC 4443 §2.4 (e).
    #[test]
    fn routers_answer_packets_from_one_host_to_one_host_only() {
        let is_answerable = |change: &dyn Fn(&mut Vec<u8>), pair| {
            let mut bytes = datagram(pair, Ecn::NotEct);
            change(&mut bytes);
            add_right_sum(&mut bytes);
            parse(&bytes).expect("a packet").is_answerable
        };
        let v4 = |at: usize, value: &[u8]| {
            is_answerable(&|bytes| bytes[at..at + value.len()].copy_from_slice(value), PAIRS[0])
        };
        for src in [[0, 0, 0, 0], [0, 1, 2, 3], [127, 0, 0, 1], [224, 0, 0, 1], [240, 0, 0, 1]] {
            assert!(!v4(12, &src), "{src:?}");
        }
        assert!(!v4(12, &[255; 4]) && !v4(16, &[255; 4]) && !v4(16, &[239, 1, 2, 3]));
        assert!(v4(16, &[10, 255, 255, 255]));
        // The first fragment, and another.
        assert!(v4(6, &[0x20, 0]) && !v4(6, &[0, 1]));
        // Generic routing encapsulation; an echo whose identifier is 0; errors, and what may be one.
        assert!(v4(9, &[47]));
        let icmp = |kind| {
            let change = |bytes: &mut Vec<u8>| {
                bytes[9] = ipv4::ICMP;
                bytes[20..28].copy_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 1]);
            };
            is_answerable(&change, PAIRS[0])
        };
        assert!([0, 8, 13, 17].into_iter().all(icmp));
        assert!(![3, 4, 5, 11, 12, 40].into_iter().any(icmp));
        let v6 = |at: usize, value: &[u8]| {
            is_answerable(&|bytes| bytes[at..at + value.len()].copy_from_slice(value), PAIRS[1])
        };
        let [mut one, many] = [[0_u8; 16], [0xff; 16]];
        assert!(!v6(8, &one) && !v6(8, &many) && !v6(24, &many));
        one[15] = 1;
        assert!(!v6(8, &one));
    }

    /// RFC 8200 §4.5: what follows the header of a fragment other than the first is no header.
    #[test]
    fn only_the_first_fragment_has_ports() {
        for (offset, ports, transport) in [(0, (5004, 6000), 16), (8, (0, 0), 8)] {
            let seen = parse(&fragment(offset, udp::PROTOCOL)).expect("a packet");
            assert_eq!((seen.ports, seen.real.layers.transport), (ports, transport));
            assert_eq!(seen.is_answerable, offset == 0);
        }
        // Its content, read as the header of destination options, would have a length of 152.
        let seen = parse(&fragment(8, 60)).expect("a packet");
        assert_eq!((seen.real.protocol, seen.real.layers.transport), (60, 8));
    }

    /// A datagram behind a fragment header (RFC 8200 §4.5).
    fn fragment(offset: u8, protocol: u8) -> Vec<u8> {
        let mut bytes = datagram(PAIRS[1], Ecn::NotEct);
        bytes.splice(40..40, [protocol, 0, 0, offset | 1, 0, 0, 0, 7]);
        bytes[4..7].copy_from_slice(&[0, 116, 44]);
        bytes
    }

    /// A datagram behind hop-by-hop options, a routing header, and destination options, or behind the options
    /// of IPv4.
    fn with_extensions() -> [Vec<u8>; 2] {
        let [mut v4, mut v6] = PAIRS.map(|pair| datagram(pair, Ecn::Ect1));
        v4.splice(20..20, [7, 7, 4, 0, 0, 0, 0, 0]);
        (v4[0], v4[3]) = (0x47, v4[3] + 8);
        add_sum(&mut v4[..28]);
        let headers = [43, 0, 1, 4, 0, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0];
        v6.splice(40..40, headers.into_iter().chain([udp::PROTOCOL, 1, 1, 12]).chain([0; 12]));
        (v6[5], v6[6]) = (v6[5] + 32, 0);
        [v4, v6]
    }

    /// As hops change a header with options, also one that is cut in a capture.
    #[test]
    fn the_checksum_of_a_header_has_its_options() {
        let [sent, _] = with_extensions();
        let mut bytes = sent.clone();
        Hop::of(&label(IpVersion::V4, 0, 3, Ecn::Ce)).relabel(&mut bytes);
        assert_eq!(Sum::default().over(&bytes[..28]).finish(), 0);
        assert_eq!((bytes[1], bytes[8]), (46 << 2 | 3, 61));
        let mut cut = sent[..20].to_vec();
        Hop::of(&label(IpVersion::V4, 0, 3, Ecn::Ce)).relabel(&mut cut);
        assert_eq!(cut, bytes[..20]);
    }

    #[test]
    fn ports_are_found_behind_extensions() {
        for (bytes, extensions) in with_extensions().into_iter().zip([8, 32]) {
            let seen = parse(&bytes).expect("a packet");
            assert_eq!((seen.ports, seen.is_answerable), ((5004, 6000), true));
            let layers = Layers { transport: 8 + extensions, media: 0, payload: 100 };
            assert_eq!(seen.real.layers, layers);
        }
    }
}
