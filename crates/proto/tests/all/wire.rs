//! Bytes ↔ bodies: every kind of packet survives the round trip, and arbitrary bytes cause no panic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use proptest::prelude::*;
use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::{self, Kind, ResetCode, WireSeq};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{BodyId, Ecn, IpVersion, Packet, PacketBox, Payload, Quote, Quoted};
use talkspurt_proto::rtcp::{
    Compound, Feedback, Lost, Message, NtpTime, ReportBlock, SenderInfo, TransportWide,
};
use talkspurt_proto::tcp::{Flags, SackBlocks, Segment};
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::{self, Ends, Hints, WireError, pattern};
use talkspurt_proto::{rfc4571, rtp, tfrc};

fn label(number: u32, ecn: Ecn, dscp: u8, version: IpVersion) -> Packet {
    let (body, sent) = (BodyId(0), Instant::ZERO);
    Packet { body, ip_bytes: 0, route: 1, flow: 2, number, hop: 0, ecn, dscp, version, sent }
}

proptest! {
    /// The bytes of a packet forwarded by a link equal those it would have if created there.
    #[test]
    fn a_packet_relabelled_is_that_of_the_later_label(
        ends in ends(), payload in payload(), (hop, dscp, ce) in (1_u8..70, 0_u8..64, any::<bool>()),
    ) {
        let first = label(0x1_2345, Ecn::Ect0, 46, version(&ends));
        let ecn = if ce { Ecn::Ce } else { Ecn::Ect0 };
        let later = Packet { hop, dscp, ecn, ..first };
        let body = Body::Udp(Frame::Data(payload));
        let [mut here, mut there] = [Vec::new(), Vec::new()];
        wire::emit(&first, &body, &ends, &mut here).expect("fits");
        wire::emit(&later, &body, &ends, &mut there).expect("fits");
        wire::Hop::of(&later).relabel(&mut here);
        prop_assert_eq!(here, there);
    }
}

fn ends() -> impl Strategy<Value = Ends> {
    let addresses = prop_oneof![
        any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(a, b)| (IpAddr::V4(a), IpAddr::V4(b))),
        any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(a, b)| (IpAddr::V6(a), IpAddr::V6(b))),
    ];
    (addresses, any::<u16>(), any::<u16>()).prop_map(|((src, dst), src_port, dst_port)| Ends {
        src,
        dst,
        src_port,
        dst_port,
    })
}

fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        (any::<u64>(), 0_u64..1500).prop_map(|(offset, len)| Payload::Virtual { offset, len }),
        prop::collection::vec(any::<u8>(), 1..1500)
            .prop_map(|bytes| Payload::Real(Bytes::from(bytes))),
    ]
}

fn media() -> impl Strategy<Value = rtp::Packet> {
    let payload_type = prop_oneof![0_u8..64, 96_u8..128];
    (
        payload_type,
        any::<bool>(),
        any::<u16>(),
        any::<u32>(),
        any::<u32>(),
        any::<(Option<std::num::NonZeroU32>, Option<u16>, u8)>(),
        payload(),
    )
        .prop_map(|(payload_type, marker, sequence, timestamp, ssrc, rare, payload)| {
            let (csrc, transport, padding) = rare;
            rtp::Packet {
                payload_type,
                marker,
                sequence,
                timestamp,
                ssrc,
                csrc,
                transport,
                padding,
                payload,
            }
        })
}

/// Feedback on packets of which some were lost and the last one came.
fn transport_wide() -> impl Strategy<Value = Feedback> {
    let status = prop_oneof![
        3 => Just(None),
        3 => (0_i16..256).prop_map(Some),
        1 => any::<i16>().prop_map(Some),
    ];
    // Runs, and statuses in any order.
    let statuses = prop::collection::vec((status, prop_oneof![Just(1_usize), 1_usize..30]), 0..60);
    (any::<(u32, u32, u16, u8)>(), 0_u32..1 << 24, statuses).prop_map(
        |((sender, media, base, feedback_count), reference_time, runs)| {
            let statuses = runs.into_iter().flat_map(|(status, times)| vec![status; times]);
            let statuses: Vec<_> = statuses.chain([Some(7)]).collect();
            let numbered = (0..).zip(&statuses);
            let received = numbered.filter_map(|(place, delta)| {
                delta.map(|delta| (base.wrapping_add(place), Some(delta)))
            });
            let received = received.collect();
            let count = statuses.len() as u16;
            let report = TransportWide { base, count, reference_time, feedback_count, received };
            Feedback { sender, message: Message::TransportWide { media, report } }
        },
    )
}

fn block() -> impl Strategy<Value = ReportBlock> {
    let rest = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
    (any::<u32>(), any::<u8>(), -0x80_0000_i32..0x80_0000, rest).prop_map(
        |(ssrc, fraction_lost, cumulative_lost, rest)| ReportBlock {
            ssrc,
            fraction_lost,
            cumulative_lost,
            highest_sequence: rest.0,
            jitter: rest.1,
            last_sr: rest.2,
            delay_since_last_sr: rest.3,
        },
    )
}

fn compound() -> impl Strategy<Value = Compound> {
    let info = any::<(u64, u32, u32, u32)>().prop_map(|(ntp, rtp_timestamp, packets, octets)| {
        SenderInfo { ntp: NtpTime(ntp), rtp_timestamp, packets, octets }
    });
    let blocks = prop::collection::vec(block(), 0..=31);
    let feedback = prop::collection::vec(transport_wide(), 0..2);
    (any::<u32>(), prop::option::of(info), blocks, "\\PC{0,60}", feedback, any::<bool>()).prop_map(
        |(ssrc, sender, reports, cname, feedback, bye)| Compound {
            ssrc,
            sender,
            reports,
            cname,
            feedback,
            bye,
            ..Compound::default()
        },
    )
}

fn segment() -> impl Strategy<Value = Segment> {
    let numbers = any::<(u32, u32, u16, u8)>();
    let options = any::<(Option<u16>, Option<u8>, Option<(u32, u32)>, bool)>();
    let blocks = prop::collection::vec(any::<(u32, u32)>(), 0..=4);
    (numbers, options, blocks, payload()).prop_map(
        |(
            (seq, ack, window, flags),
            (mss, window_scale, timestamps, permitted),
            blocks,
            payload,
        )| Segment {
            seq,
            ack,
            window,
            flags: Flags(flags),
            mss,
            window_scale,
            sack_permitted: permitted && blocks.is_empty(),
            timestamps,
            // On a SYN there are none (RFC 2018 §3), and with timestamps three fit.
            sack: match (mss, window_scale) {
                (None, None) => SackBlocks::of(blocks.into_iter().take(3)),
                _ => None,
            },
            payload,
        },
    )
}

fn dccp_options() -> impl Strategy<Value = dccp::Options> {
    prop::collection::vec(any::<u8>(), 0..60).prop_map(|bytes| {
        let mut options = dccp::Options::from_bytes(&bytes);
        options.pad();
        options
    })
}

/// A type of packet with its numbers, short where it may have short ones.
fn dccp_kind() -> impl Strategy<Value = (WireSeq, Kind)> {
    let number = || (0_u64..1 << 48).prop_map(WireSeq::Extended);
    let numbers = prop_oneof![
        (number(), number()),
        (0_u32..1 << 24, 0_u32..1 << 24)
            .prop_map(|(seq, ack)| (WireSeq::Short(seq), WireSeq::Short(ack))),
    ];
    (numbers, 0_u8..11, any::<(u32, u8, [u8; 3])>()).prop_map(
        |((seq, ack), kind, (service, code, data))| {
            let kind = match (kind, seq) {
                (2, _) => Kind::Data,
                (3, _) => Kind::Ack { ack },
                (4, _) | (_, WireSeq::Short(_)) => Kind::DataAck { ack },
                (0, _) => Kind::Request { service },
                (1, _) => Kind::Response { ack, service },
                (5, _) => Kind::CloseReq { ack },
                (6, _) => Kind::Close { ack },
                (7, _) => Kind::Reset { ack, code: ResetCode(code), data },
                (8, _) => Kind::Sync { ack },
                (9, _) => Kind::SyncAck { ack },
                _ => Kind::Listen { service },
            };
            (seq, kind)
        },
    )
}

fn frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        payload().prop_map(Frame::Data),
        media().prop_map(Frame::Rtp),
        compound().prop_map(|compound| Frame::Rtcp(Box::new(compound))),
    ]
}

fn dccp_packet() -> impl Strategy<Value = dccp::Packet> {
    let plain = payload().prop_map(Frame::Data);
    (dccp_kind(), 0_u8..16, 0_u8..16, dccp_options(), frame(), plain).prop_map(
        |((seq, kind), ccval, cscov, options, frame, plain)| {
            let carries = kind.is_data() || matches!(kind.number(), 0 | 1);
            let payload = if carries { frame } else { plain };
            let cscov = cscov.min((payload.wire_bytes() / 4 + 1).min(15) as u8);
            dccp::Packet { seq, ccval, cscov, kind, options, payload }
        },
    )
}

fn tfrc_packet() -> impl Strategy<Value = tfrc::Packet> {
    prop_oneof![
        (any::<(u32, u32, u32, u8)>(), frame()).prop_map(
            |((seq, timestamp, rtt, timeout), payload)| {
                tfrc::Packet::Data(tfrc::Data { seq, timestamp, rtt, timeout, payload })
            }
        ),
        any::<(u32, u32, u32, u32)>().prop_map(|(timestamp, delay, receive_rate, p)| {
            let feedback = tfrc::Feedback { timestamp, delay, receive_rate, loss_event_rate: p };
            tfrc::Packet::Feedback(feedback)
        }),
    ]
}

fn quoted() -> impl Strategy<Value = Quoted> {
    prop_oneof![
        Just(wire::udp::quoted(8)),
        any::<u32>().prop_map(wire::tcp::quoted),
        any::<u32>().prop_map(wire::sctp::quoted),
        dccp_packet().prop_map(|packet| wire::dccp::quoted(&packet)),
    ]
}

fn quote(version: IpVersion) -> impl Strategy<Value = Quote> {
    let most = if version == IpVersion::V4 { 0xffff_u32 } else { 0xf_ffff };
    let transport = quoted();
    (48_u32..65_536, 0..=most, any::<u8>(), 0_u8..64, 0_usize..4, transport).prop_map(
        move |(ip_bytes, mark, ttl, dscp, ecn, transport)| {
            let ecn = ECNS[ecn];
            Quote { version, ip_bytes, mark, ttl, dscp, ecn, transport }
        },
    )
}

fn body(version: IpVersion) -> impl Strategy<Value = Body> {
    prop_oneof![
        payload().prop_map(|payload| Body::Udp(Frame::Data(payload))),
        media().prop_map(|packet| Body::Udp(Frame::Rtp(packet))),
        compound().prop_map(|compound| Body::Udp(Frame::Rtcp(Box::new(compound)))),
        segment().prop_map(Body::Tcp),
        dccp_packet().prop_map(|packet| Body::Dccp(PacketBox::new(packet))),
        tfrc_packet().prop_map(Body::Tfrc),
        (0_u32..=65_535, quote(version)).prop_map(|(mtu, quote)| Body::TooBig { mtu, quote }),
    ]
}

fn packet() -> impl Strategy<Value = (Ends, Body)> {
    ends().prop_flat_map(|ends| (Just(ends), body(version(&ends))))
}

fn version(ends: &Ends) -> IpVersion {
    if ends.src.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }
}

/// The hints under which the bytes of this body parse to the body again.
fn hints(body: &Body) -> Hints {
    let frame = match body {
        Body::Udp(frame) => Some(frame),
        Body::Dccp(packet) => Some(&packet.payload),
        Body::Tfrc(tfrc::Packet::Data(data)) => Some(&data.payload),
        // SCTP has round trips of its own (`rfc9260_wire`); a stack's datagrams are those of UDP on the wire.
        Body::Tfrc(tfrc::Packet::Feedback(_))
        | Body::Tcp(_)
        | Body::Sctp(_)
        | Body::External(_)
        | Body::TooBig { .. }
        | Body::Real(_) => None,
    };
    let payload = match (body, frame) {
        (Body::Tcp(segment), _) => Some(&segment.payload),
        (_, Some(Frame::Data(payload))) => Some(payload),
        (_, Some(Frame::Rtp(packet))) => Some(&packet.payload),
        _ => None,
    };
    let virtual_offset = match payload {
        Some(Payload::Virtual { offset, .. }) => Some(*offset),
        _ => None,
    };
    let media = matches!(frame, Some(Frame::Rtp(_) | Frame::Rtcp(_)));
    Hints { media, tfrc: matches!(body, Body::Tfrc(_)), virtual_offset }
}

const ECNS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

proptest! {
    #[test]
    fn every_packet_survives_the_round_trip(
        (ends, body) in packet(), number: u32, ecn in 0_usize..4, dscp in 0_u8..64,
    ) {
        let version = version(&ends);
        let label = label(number, ECNS[ecn], dscp, version);
        let mut bytes = Vec::new();
        wire::emit(&label, &body, &ends, &mut bytes).expect("fits");
        let parsed = wire::parse(&bytes, hints(&body)).expect("our own bytes");
        prop_assert_eq!(parsed.ends, ends);
        prop_assert_eq!((parsed.ecn, parsed.dscp, parsed.ttl), (label.ecn, dscp, 64));

        // The lengths by layer are those of the bytes.
        let layers = body.layers();
        let header = version.header_bytes();
        let counted = header + layers.transport + layers.media + layers.payload;
        prop_assert_eq!(bytes.len(), counted as usize);
        prop_assert_eq!(parsed.body, body);
    }

    #[test]
    fn any_single_damage_to_a_segment_is_noticed(
        segment in segment(), at in any::<prop::sample::Index>(), flip in 1_u8..=255,
    ) {
        let any = Ipv4Addr::new(10, 0, 0, 1).into();
        let ends = Ends { src: any, dst: any, src_port: 1, dst_port: 2 };
        let mut bytes = Vec::new();
        let body = Body::Tcp(segment);
        wire::emit(&label(0, Ecn::NotEct, 0, IpVersion::V4), &body, &ends, &mut bytes).expect("fits");
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(wire::parse(&bytes, Hints::default()).is_err());
    }

    /// RFC 4340 §9.1, §9.2: every bit of header, options and covered data counts, no other does.
    #[test]
    fn damage_to_a_dccp_packet_is_noticed_as_far_as_its_checksum_covers(
        packet in dccp_packet(), at in any::<prop::sample::Index>(), flip in 1_u8..=255,
    ) {
        let address = Ipv4Addr::new(10, 0, 0, 1).into();
        let ends = Ends { src: address, dst: address, src_port: 1, dst_port: 2 };
        let mut bytes = Vec::new();
        wire::dccp::emit(&packet, &ends, &mut bytes).expect("fits");
        let end = match packet.cscov {
            0 => bytes.len(),
            words => packet.header_bytes() + 4 * (usize::from(words) - 1),
        };
        let at = at.index(bytes.len());
        // Another data offset or coverage is another sum over other bytes; now and then it is right.
        prop_assume!(at != 4 && at != 5);
        bytes[at] ^= flip;
        let parsed = wire::dccp::parse(&bytes, address, address, Hints::default());
        if at < end {
            prop_assert!(parsed.is_err());
        } else {
            let (_, parsed, _) = parsed.expect("not covered");
            prop_assert_eq!((parsed.seq, parsed.kind, parsed.options), (packet.seq, packet.kind, packet.options));
        }
    }

    #[test]
    fn dccp_survives_the_round_trip_inside_udp(
        packet in dccp_packet(), ends in ends(), udp_ports: (u16, u16),
    ) {
        let outer = Ends { src_port: udp_ports.0, dst_port: udp_ports.1, ..ends };
        let mut bytes = Vec::new();
        wire::dccp_udp::emit(&packet, &ends, &outer, &mut bytes).expect("fits");
        let hints = hints(&Body::Dccp(PacketBox::new(packet.clone())));
        let parsed = wire::dccp_udp::parse(&bytes, ends.src, ends.dst, hints).expect("ours");
        prop_assert_eq!(parsed, (outer, ends, packet));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300), media: bool, offset: Option<u64>,
        tfrc: bool,
    ) {
        let hints = Hints { media, tfrc, virtual_offset: offset };
        let _ = wire::parse(&bytes, hints);
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let _ = wire::dccp::parse(&bytes, address, address, hints);
        let _ = wire::dccp_udp::parse(&bytes, address, address, hints);
        let _ = wire::tfrc::parse(&Bytes::copy_from_slice(&bytes), hints);
        let _ = wire::rtcp::parse(&bytes);
        let _ = wire::parse_media(&Bytes::from(bytes), hints);
    }

    /// Random bytes rarely get past the first check: damage real packets, and skip the checksums.
    #[test]
    fn damaged_packets_never_panic(
        (ends, body) in packet(), cut in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let version = if ends.src.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let mut bytes = Vec::new();
        wire::emit(&label(0, Ecn::NotEct, 0, version), &body, &ends, &mut bytes).expect("fits");
        bytes.truncate(cut.index(bytes.len()) + 1);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = wire::parse(&bytes, hints(&body));
        let headers = bytes.len().min(if ends.src.is_ipv4() { 28 } else { 48 });
        let media = Bytes::from(bytes).slice(headers..);
        let _ = wire::parse_media(&media, hints(&body));
        let _ = wire::rtcp::parse(&media);
    }

    #[test]
    fn segments_with_any_options_never_panic(options in prop::collection::vec(any::<u8>(), 0..=40)) {
        let address: IpAddr = Ipv4Addr::LOCALHOST.into();
        let mut bytes = vec![0; 20];
        bytes.extend_from_slice(&options);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes[12] = (bytes.len() as u8 / 4) << 4;
        let sum = wire::checksum::Sum::pseudo_header(address, address, 6, bytes.len());
        let checksum = sum.over(&bytes).finish();
        bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
        let parsed = wire::tcp::parse(&bytes, address, address, Hints::default());
        prop_assert!(!matches!(parsed, Err(WireError::Checksum(_))));
    }

    #[test]
    fn a_virtual_payload_that_is_not_the_pattern_is_real(offset: u64, len in 1_u64..100, at in any::<prop::sample::Index>()) {
        let mut bytes = Vec::new();
        pattern::emit(&Payload::Virtual { offset, len }, &mut bytes);
        prop_assert!(pattern::matches(offset, &bytes));
        bytes[at.index(len as usize)] ^= 1;
        prop_assert!(!pattern::matches(offset, &bytes));
    }
}

fn tcp(options: &[u8]) -> Result<Segment, WireError> {
    let address: IpAddr = Ipv4Addr::LOCALHOST.into();
    let mut bytes = vec![0; 20];
    bytes.extend_from_slice(options);
    bytes[12] = (bytes.len() as u8 / 4) << 4;
    let sum = wire::checksum::Sum::pseudo_header(address, address, 6, bytes.len());
    let checksum = sum.over(&bytes).finish();
    bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
    wire::tcp::parse(&bytes, address, address, Hints::default()).map(|(_, segment)| segment)
}

#[test]
fn rfc_9293_section_3_2_unknown_options_are_passed_over() {
    // SACK permitted (4), an unknown kind (200) of length 5, then the MSS, then the end.
    let segment = tcp(&[4, 2, 200, 5, 9, 9, 9, 2, 4, 5, 180, 0]).expect("well formed");
    assert_eq!(segment.mss, Some(1460));
    // Bytes after the end of the list are ignored.
    assert_eq!(tcp(&[0, 2, 4, 5]).expect("well formed").mss, None);
    // A known kind with a wrong length is ignored.
    assert_eq!(tcp(&[2, 3, 5, 0]).expect("well formed").mss, None);
}

#[test]
fn rfc_9293_must_7_illegal_option_lengths_are_refused() {
    for options in [[8, 0, 0, 0], [8, 1, 0, 0], [8, 10, 0, 0], [1, 1, 1, 8]] {
        assert_eq!(tcp(&options), Err(WireError::Malformed("TCP option length")), "{options:?}");
    }
}

#[test]
fn rfc_3550_section_5_1_csrc_extension_and_padding_are_read_over() {
    let mut bytes = vec![0x80 | 0x20 | 0x10 | 1, 0x80, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3];
    bytes.extend_from_slice(&[7; 4]); // one CSRC
    bytes.extend_from_slice(&[0xbe, 0xde, 0, 2, 1, 1, 1, 1, 2, 2, 2, 2]); // two words of extension
    bytes.extend_from_slice(b"speech\0\0\x03"); // three bytes of padding
    let packet = wire::rtp::parse(&bytes.clone().into(), Hints::default()).expect("well formed");
    assert_eq!(packet.payload, Payload::Real(Bytes::from_static(b"speech")));
    assert_eq!((packet.marker, packet.sequence, packet.timestamp, packet.ssrc), (true, 1, 2, 3));
    assert_eq!((packet.transport, packet.padding), (None, 3));
    let last = bytes.len() - 1;
    for bad in [0, 10, 255] {
        bytes[last] = bad;
        let result = wire::rtp::parse(&bytes.clone().into(), Hints::default());
        assert_eq!(result, Err(WireError::Malformed("RTP padding count")), "{bad}");
    }
}

#[test]
fn rfc_3550_a2_what_is_no_compound_is_refused() {
    let sound = Compound { ssrc: 1, cname: "a".into(), ..Compound::default() };
    let mut bytes = Vec::new();
    wire::rtcp::emit(&sound, &mut bytes);
    assert_eq!(wire::rtcp::parse(&bytes), Ok(sound.clone()));
    let with = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        wire::rtcp::parse(&bytes)
    };
    assert!(with(0, 0x40).is_err(), "version");
    assert!(with(0, 0xa0).is_err(), "padding on the first packet");
    assert!(with(1, 202).is_err(), "first packet is no report");
    assert!(with(3, 2).is_err(), "length beyond the packet");
    assert!(with(0, 0x81).is_err(), "a report block that is not there");
    // An application-defined packet (204) in between is ignored.
    let app = [0x80, 204, 0, 2, 0, 0, 0, 9, b't', b'e', b's', b't'];
    bytes.splice(8..8, app);
    assert_eq!(wire::rtcp::parse(&bytes), Ok(sound));
}

/// Transport-wide feedback with a byte of padding, as libwebrtc writes it: alone, and before others.
#[test]
fn rfc_3550_section_6_4_1_padding_of_feedback_is_read_over() {
    let padded =
        [&[0xaf, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2][..], &[0, 7, 0, 1, 0, 0, 3, 9, 0x20, 1, 4, 1]]
            .concat();
    let nack = [0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 5, 0, 0];
    let read = |bytes: &[u8]| wire::rtcp::parse(bytes).map(|it| it.feedback);
    let alone = read(&padded).expect("padded");
    let Message::TransportWide { media: 2, report } = &alone[0].message else { panic!() };
    assert_eq!((report.base, &report.received[..]), (7, &[(7, Some(4))][..]));
    let both = read(&[&padded[..], &nack].concat()).expect("padded before another");
    assert_eq!((both.len(), &both[0]), (2, &alone[0]));
    assert_eq!(both[1].message, Message::Nack { media: 2, lost: Lost::list(&[5]) });
    for count in [0, 21, 255] {
        let mut wrong = padded.clone();
        wrong[23] = count;
        assert_eq!(read(&wrong), Err(WireError::Malformed("RTCP padding")), "{count}");
    }
}

#[test]
fn rfc_3550_section_6_5_a_long_cname_is_cut_between_characters() {
    let compound = Compound { cname: "é".repeat(200), ..Compound::default() };
    let mut bytes = Vec::new();
    wire::rtcp::emit(&compound, &mut bytes);
    assert_eq!(bytes.len(), compound.wire_bytes());
    assert_eq!(wire::rtcp::parse(&bytes).expect("ours").cname, "é".repeat(127));
    let crowd = Compound { reports: vec![ReportBlock::default(); 40], ..Compound::default() };
    let mut bytes = Vec::new();
    wire::rtcp::emit(&crowd, &mut bytes);
    assert_eq!(bytes.len(), crowd.wire_bytes());
    assert_eq!(wire::rtcp::parse(&bytes).expect("ours").reports.len(), 31);
}

#[test]
fn the_pattern_shows_its_own_offset() {
    let mut bytes = Vec::new();
    pattern::emit(&Payload::Virtual { offset: 0x1230, len: 18 }, &mut bytes);
    assert_eq!(bytes, b"000012300000123800");
}

#[test]
fn speech_over_tcp_is_speech_again() {
    let payload = Payload::Real(Bytes::from_static(b"sixteen bytes it"));
    let packet = rtp::Packet {
        payload_type: 8,
        marker: true,
        sequence: 1,
        timestamp: 2,
        ssrc: 3,
        payload,
        ..rtp::Packet::default()
    };
    let framed = rfc4571::frame(&Frame::Rtp(packet.clone())).expect("short");
    let body = Body::Tcp(Segment { payload: Payload::Real(framed), ..Segment::default() });
    let address: IpAddr = Ipv6Addr::LOCALHOST.into();
    let ends = Ends { src: address, dst: address, src_port: 1, dst_port: 2 };
    let mut bytes = Vec::new();
    wire::emit(&label(0, Ecn::NotEct, 0, IpVersion::V6), &body, &ends, &mut bytes).expect("fits");
    let Ok(wire::Parsed { body: Body::Tcp(segment), .. }) = wire::parse(&bytes, Hints::default())
    else {
        panic!("a segment")
    };
    let Payload::Real(stream) = segment.payload else { panic!("real bytes") };
    let mut deframer = rfc4571::Deframer::new();
    deframer.push(stream);
    assert_eq!(deframer.next(), Some(Frame::Rtp(packet)));
}

/// RFC 792, RFC 4443 §3.2: the router's own address in front, and behind it the very bytes with
/// which the refused packet began.
#[test]
fn a_router_quotes_the_packet_it_refused() {
    let addresses: [[IpAddr; 3]; 2] = [
        ["10.0.0.1", "10.0.0.2", "10.9.9.9"].map(|text| text.parse().expect("an address")),
        ["fd00::1", "fd00::2", "fd00::9"].map(|text| text.parse().expect("an address")),
    ];
    let segment = Segment {
        seq: 0xdead_beef,
        payload: Payload::Virtual { offset: 0, len: 1400 },
        ..Segment::default()
    };
    let datagram = Frame::Data(Payload::Virtual { offset: 0, len: 1400 });
    let dccp = |seq, kind| {
        let (payload, options) = (datagram.clone(), dccp::Options::from_bytes(&[2, 0, 0, 0]));
        Body::Dccp(PacketBox::new(dccp::Packet { seq, ccval: 7, cscov: 3, kind, options, payload }))
    };
    let (extended, short) = (WireSeq::Extended(0xdead_beef_cafe), WireSeq::Short(0xda_beef));
    for [src, dst, router] in addresses {
        let ends = Ends { src, dst, src_port: 5004, dst_port: 5006 };
        let bodies = [
            (Body::Tcp(segment.clone()), 8),
            (Body::Udp(datagram.clone()), 8),
            (dccp(extended, Kind::DataAck { ack: extended }), 16),
            (dccp(short, Kind::Data), 12),
        ];
        for (refused, quoted) in bodies {
            let mut label = label(0x1_2345, Ecn::Ect0, 46, version(&ends));
            label.hop = 3;
            let mut sent = Vec::new();
            wire::emit(&label, &refused, &ends, &mut sent).expect("fits");
            let quote = Quote::of(&label, &refused).expect("no answer itself");
            let answer = Body::TooBig { mtu: 1280, quote };
            assert_eq!(Quote::of(&label, &answer), None);
            let mut bytes = Vec::new();
            wire::emit_from(router, &label, &answer, &ends.reversed(), &mut bytes).expect("fits");
            let parsed = wire::parse(&bytes, Hints::default()).expect("checksums hold");
            assert_eq!((parsed.ends, &parsed.body), (ends.reversed(), &answer));
            let header = label.version.header_bytes() as usize;
            let from = if src.is_ipv4() { 12..16 } else { 8..24 };
            let octets = match router {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            assert_eq!(bytes[from], octets);
            // All but the checksum, where one is quoted.
            sent.truncate(header + quoted);
            if !matches!(refused, Body::Tcp(_)) {
                sent[header + 6..header + 8].fill(0);
            }
            assert_eq!(bytes[header + 8..], sent);
            assert_eq!(bytes.len() - header, (8 + answer.layers().payload) as usize);
        }
    }
}
