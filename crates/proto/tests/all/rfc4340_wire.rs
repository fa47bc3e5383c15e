//! RFC 4340 §5 and §9, and RFC 5596 §2.2.1: the bytes of every type of packet laid out by hand, the
//! checksum added up by hand, and what a receiver must ignore. Options stand in `dccp_options.rs`.

use std::net::IpAddr;

use bytes::Bytes;
use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::dccp::{Kind, Options, Packet, ResetCode, WireSeq};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Damage, Ecn, IpVersion, Packet as Label, PacketBox, Payload, Quote};
use talkspurt_proto::rtp;
use talkspurt_proto::wire::{self, Ends, Hints, WireError};

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}
fn ends() -> Ends {
    let (src, dst) = (address("10.1.2.3"), address("10.4.5.6"));
    Ends { src, dst, src_port: 0x1389, dst_port: 0x2004 }
}
fn ends_v6() -> Ends {
    Ends { src: address("2001:db8::1"), dst: address("fd00::beef"), ..ends() }
}

/// Extended numbers whose six bytes all differ.
const SEQ: WireSeq = WireSeq::Extended(0x1122_3344_5566);
const ACK: WireSeq = WireSeq::Extended(0x99aa_bbcc_ddee);

fn packet(seq: WireSeq, kind: Kind) -> Packet {
    let payload = Frame::Data(Payload::default());
    Packet { seq, ccval: 0, cscov: 0, kind, options: Options::default(), payload }
}
fn with_data(packet: Packet, data: &'static [u8]) -> Packet {
    Packet { payload: Frame::Data(Payload::Real(Bytes::from_static(data))), ..packet }
}
fn emit(packet: &Packet, ends: &Ends) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::dccp::emit(packet, ends, &mut bytes).expect("fits");
    bytes
}
fn parse(bytes: &[u8]) -> Result<Packet, WireError> {
    let Ends { src, dst, .. } = ends();
    wire::dccp::parse(bytes, src, dst, Hints::default()).map(|(_, packet, _)| packet)
}

/// The sum of §9.1, worked out afresh: pseudo-header, then the first `covered` bytes with a zero
/// in place of the checksum.
fn sum(ends: &Ends, bytes: &[u8], covered: usize) -> u16 {
    let mut words: Vec<u8> = match (ends.src, ends.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => [src.octets(), dst.octets()].concat(),
        (IpAddr::V6(src), IpAddr::V6(dst)) => [src.octets(), dst.octets()].concat(),
        _ => panic!("one family"),
    };
    words.extend([0, 33]);
    words.extend((bytes.len() as u16).to_be_bytes());
    let start = words.len();
    words.extend(&bytes[..covered]);
    words[start + 6..start + 8].fill(0);
    if words.len() % 2 == 1 {
        words.push(0);
    }
    let mut sum = 0_u32;
    for pair in words.chunks(2) {
        sum += u32::from(pair[0]) * 256 + u32::from(pair[1]);
        sum = (sum & 0xffff) + (sum >> 16);
    }
    0xffff - sum as u16
}
/// Puts the right checksum of a fully covered packet in its place.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = sum(&ends(), &bytes, bytes.len());
    bytes[6..8].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// The bytes behind the generic header's first eight.
fn assert_laid_out(packet: &Packet, data_offset: u8, rest: &[u8]) {
    let bytes = emit(packet, &ends());
    assert_eq!(bytes[..4], [0x13, 0x89, 0x20, 0x04], "ports");
    assert_eq!(bytes[4], data_offset, "data offset of {:?}", packet.kind);
    assert_eq!(bytes[8..], *rest, "{:?}", packet.kind);
    assert_eq!(usize::from(data_offset) * 4, packet.header_bytes());
    assert_eq!(parse(&bytes).as_ref(), Ok(packet));
}

#[test]
fn section_5_1_generic_header_with_extended_numbers() {
    let data = with_data(packet(SEQ, Kind::Data), b"talk");
    // Type 2, X = 1; eight reserved bits; six bytes of number.
    let expected = [2 << 1 | 1, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, b't', b'a', b'l', b'k'];
    assert_laid_out(&data, 4, &expected);
}

#[test]
fn section_5_1_generic_header_with_short_numbers() {
    let data = with_data(packet(WireSeq::Short(0xab_cdef), Kind::Data), b"talk");
    assert_laid_out(&data, 3, &[2 << 1, 0xab, 0xcd, 0xef, b't', b'a', b'l', b'k']);
    let ack = WireSeq::Short(0x12_3456);
    let acked = |kind| packet(WireSeq::Short(0xab_cdef), kind);
    let numbers = |kind: u8| [kind << 1, 0xab, 0xcd, 0xef, 0, 0x12, 0x34, 0x56];
    assert_laid_out(&acked(Kind::Ack { ack }), 4, &numbers(3));
    assert_laid_out(&acked(Kind::DataAck { ack }), 4, &numbers(4));
}

#[test]
fn section_5_1_ccval_and_cscov_share_a_byte() {
    let mut data = with_data(packet(SEQ, Kind::Data), b"talk");
    (data.ccval, data.cscov) = (0xa, 2);
    let bytes = emit(&data, &ends());
    assert_eq!(bytes[5], 0xa2);
    assert_eq!(parse(&bytes), Ok(data));
}

/// §5.2 to §5.7: the acknowledgement's six bytes stand behind two reserved ones.
#[test]
fn sections_5_2_to_5_7_every_type_with_its_fields() {
    let head = |kind: u8| vec![kind << 1 | 1, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66];
    let ack_bytes = [0, 0, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee];
    let service = 0x5350_4348; // "SPCH"
    let laid_out = |kind: Kind, number: u8, rest: &[&[u8]]| {
        let expected = [head(number), rest.concat()].concat();
        assert_laid_out(&packet(SEQ, kind), (expected.len() / 4 + 2) as u8, &expected);
    };
    let ack = ACK;
    laid_out(Kind::Request { service }, 0, &[b"SPCH"]);
    laid_out(Kind::Response { ack, service }, 1, &[&ack_bytes, b"SPCH"]);
    laid_out(Kind::Ack { ack }, 3, &[&ack_bytes]);
    laid_out(Kind::DataAck { ack }, 4, &[&ack_bytes]);
    laid_out(Kind::CloseReq { ack }, 5, &[&ack_bytes]);
    laid_out(Kind::Close { ack }, 6, &[&ack_bytes]);
    let reset = Kind::Reset { ack, code: ResetCode::OPTION_ERROR, data: [32, 1, 2] };
    laid_out(reset, 7, &[&ack_bytes, &[5, 32, 1, 2]]);
    laid_out(Kind::Sync { ack }, 8, &[&ack_bytes]);
    laid_out(Kind::SyncAck { ack }, 9, &[&ack_bytes]);
    // RFC 5596 §2.2.1: Listen is the generic header and a Service Code.
    laid_out(Kind::Listen { service }, 10, &[b"SPCH"]);
}

#[test]
fn section_5_1_options_fill_words_and_the_data_follows_them() {
    let mut ack = with_data(packet(SEQ, Kind::DataAck { ack: ACK }), b"talk");
    ack.options.push(Opt::SlowReceiver);
    let bytes = emit(&ack, &ends());
    assert_eq!(bytes[4], 7);
    assert_eq!(bytes[24..], [2, 0, 0, 0, b't', b'a', b'l', b'k']);
    ack.options.pad();
    assert_eq!(parse(&bytes), Ok(ack));
}

#[test]
fn section_5_1_reserved_bits_are_ignored() {
    let sync = packet(SEQ, Kind::Sync { ack: ACK });
    let clean = emit(&sync, &ends());
    let mut bytes = clean.clone();
    bytes[8] |= 0b1110_0000;
    bytes[9] = 0xff;
    bytes[16..18].fill(0xff);
    assert_eq!(parse(&summed(bytes)), Ok(sync));
    // And sent as zero.
    assert_eq!((clean[8] >> 5, clean[9], clean[16], clean[17]), (0, 0, 0, 0));
}

#[test]
fn section_5_1_reserved_types_are_ignored() {
    for kind in 11..=15 {
        let mut bytes = emit(&packet(SEQ, Kind::Sync { ack: ACK }), &ends());
        bytes[8] = kind << 1 | 1;
        let unknown = Err(WireError::Unsupported("DCCP packet type"));
        assert_eq!(parse(&summed(bytes)), unknown, "{kind}");
    }
}

/// §8.5 step 1, which comes before any other look at the packet.
#[test]
fn section_8_5_step_1_what_is_shorter_than_twelve_bytes_is_dropped() {
    let bytes = emit(&packet(WireSeq::Short(1), Kind::Data), &ends());
    assert_eq!(bytes.len(), 12);
    for length in 0..12 {
        assert_eq!(parse(&bytes[..length]), Err(WireError::Truncated("DCCP header")));
    }
    assert!(parse(&bytes).is_ok());
}

#[test]
fn section_8_5_step_1_data_offset_below_the_types_header_or_beyond_the_packet() {
    let below = Err(WireError::Malformed("DCCP data offset is below the type's header"));
    let beyond = Err(WireError::Malformed("DCCP data offset is beyond the packet"));
    let (ack, service, code) = (ACK, 1, ResetCode::CLOSED);
    let kinds = [
        Kind::Request { service },
        Kind::Response { ack, service },
        Kind::Data,
        Kind::Ack { ack },
        Kind::DataAck { ack },
        Kind::CloseReq { ack },
        Kind::Close { ack },
        Kind::Reset { ack, code, data: [0; 3] },
        Kind::Sync { ack },
        Kind::SyncAck { ack },
        Kind::Listen { service },
    ];
    for kind in kinds {
        let bytes = emit(&with_data(packet(SEQ, kind), b"talkspurt..."), &ends());
        let right = bytes[4];
        let with = |offset: u8| {
            let mut bytes = bytes.clone();
            bytes[4] = offset;
            parse(&summed(bytes))
        };
        assert_eq!(with(0), below, "{kind:?}");
        assert_eq!(with(right - 1), below, "{kind:?}");
        // Three words of data may be taken for options, a fourth is not there.
        assert_eq!(with(right + 3).map(|packet| packet.options.as_bytes().len()), Ok(12));
        assert_eq!(with(right + 4), beyond, "{kind:?}");
        assert_eq!(with(255), beyond, "{kind:?}");
    }
}

#[test]
fn section_8_5_step_1_short_numbers_on_other_types_are_dropped() {
    let refused = Err(WireError::Malformed("DCCP type has no short sequence numbers"));
    for kind in [0, 1, 5, 6, 7, 8, 9, 10] {
        let mut bytes = emit(&packet(SEQ, Kind::Ack { ack: ACK }), &ends());
        bytes[8] = kind << 1;
        assert_eq!(parse(&summed(bytes)), refused, "{kind}");
    }
    // Nor are they written.
    let sync = packet(WireSeq::Short(1), Kind::Sync { ack: WireSeq::Short(2) });
    let mixed = packet(WireSeq::Short(1), Kind::Ack { ack: ACK });
    for packet in [sync, mixed] {
        let emitted = wire::dccp::emit(&packet, &ends(), &mut Vec::new());
        assert!(matches!(emitted, Err(WireError::Malformed(_))), "{emitted:?}");
    }
}

#[test]
fn section_5_1_header_and_options_are_at_most_255_words() {
    let mut data = packet(SEQ, Kind::Data);
    data.options = Options::from_bytes(&[0; 1004]);
    assert_eq!(emit(&data, &ends())[4], 255);
    data.options = Options::from_bytes(&[0; 1005]);
    let emitted = wire::dccp::emit(&data, &ends(), &mut Vec::new());
    assert_eq!(emitted, Err(WireError::TooLong("DCCP header")));
}

#[test]
fn section_9_1_the_checksum_covers_pseudo_header_header_options_and_data() {
    // One byte more than a word, and than a pair of bytes.
    let mut data = with_data(packet(SEQ, Kind::DataAck { ack: ACK }), b"talks");
    data.options.push(Opt::Timestamp(0xfeed_f00d));
    for ends in [ends(), ends_v6()] {
        let bytes = emit(&data, &ends);
        let checksum = u16::from_be_bytes([bytes[6], bytes[7]]);
        assert_eq!(checksum, sum(&ends, &bytes, bytes.len()));
        let sound = wire::dccp::parse(&bytes, ends.src, ends.dst, Hints::default());
        assert!(sound.is_ok());
        // Another address is another packet.
        let elsewhere = if ends.src.is_ipv4() { "10.1.2.4" } else { "2001:db8::2" };
        let wrong = wire::dccp::parse(&bytes, address(elsewhere), ends.dst, Hints::default());
        assert_eq!(wrong, Err(WireError::Checksum("DCCP")));
    }
}

/// §9.2: with CsCov n the first 4(n − 1) bytes of data are covered, and the length in the
/// pseudo-header is still that of the whole packet.
#[test]
fn section_9_2_the_coverage_ends_where_cscov_says() {
    for (cscov, covered_data) in [(0, 11), (1, 0), (2, 4), (3, 8)] {
        let mut data = with_data(packet(SEQ, Kind::Data), b"talk spurts");
        data.cscov = cscov;
        let bytes = emit(&data, &ends());
        let checksum = u16::from_be_bytes([bytes[6], bytes[7]]);
        assert_eq!(checksum, sum(&ends(), &bytes, 16 + covered_data), "CsCov {cscov}");
        for at in 0..11 {
            let mut damaged = bytes.clone();
            damaged[16 + at] ^= 0x20;
            let parsed = parse(&damaged);
            if at < covered_data {
                assert_eq!(parsed, Err(WireError::Checksum("DCCP")), "CsCov {cscov}, byte {at}");
            } else {
                let parsed = parsed.expect("not covered");
                assert_ne!(parsed.payload, data.payload);
                assert_eq!((parsed.seq, parsed.kind), (data.seq, data.kind));
            }
        }
    }
}

/// §9.2, §8.5 step 1: CsCov beyond the data; also never written.
#[test]
fn section_9_2_a_coverage_larger_than_the_data_is_a_wrong_checksum() {
    for (length, largest) in [(0_usize, 1), (3, 1), (4, 2), (11, 3), (12, 4), (56, 15)] {
        let data = Bytes::from(vec![7; length]);
        let payload = Frame::Data(match length {
            0 => Payload::default(),
            _ => Payload::Real(data),
        });
        for cscov in 1..=15 {
            let packet = Packet { cscov, payload: payload.clone(), ..packet(SEQ, Kind::Data) };
            let mut bytes = Vec::new();
            let emitted = wire::dccp::emit(&packet, &ends(), &mut bytes);
            if cscov <= largest {
                assert_eq!((emitted, parse(&bytes)), (Ok(()), Ok(packet)));
                continue;
            }
            assert!(matches!(emitted, Err(WireError::Malformed(_))));
            let mut bytes = emit(&Packet { cscov: 0, ..packet }, &ends());
            bytes[5] = cscov;
            // Not even with a checksum over all there is.
            assert_eq!(parse(&summed(bytes)), Err(WireError::Checksum("DCCP")));
        }
    }
}

#[test]
fn section_9_3_a_data_checksum_tells_of_damage_that_the_checksum_does_not_cover() {
    let mut data = with_data(packet(SEQ, Kind::Data), b"123456789");
    data.cscov = 1;
    // The check value of CRC-32c, over the nine digits.
    data.options.push(Opt::DataChecksum(0xe306_9283));
    let bytes = emit(&data, &ends());
    assert_eq!(bytes[16..22], [44, 6, 0xe3, 0x06, 0x92, 0x83]);
    let Ends { src, dst, .. } = ends();
    let damage = |bytes: &[u8]| {
        let (_, _, damage) = wire::dccp::parse(bytes, src, dst, Hints::default()).expect("sound");
        damage
    };
    assert_eq!(damage(&bytes), Damage::None);
    for at in 24..33 {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert_eq!(damage(&damaged), Damage::Payload, "byte {at}");
    }
    // Where the checksum covers all, bits are as they were sent, and the option itself is wrong:
    // that is the endpoint's to tell.
    let mut wrong = Packet { cscov: 0, options: Options::default(), ..data.clone() };
    wrong.options.push(Opt::DataChecksum(1));
    assert_eq!(damage(&emit(&wrong, &ends())), Damage::None);
    // Without the option nobody can tell.
    let mut plain = emit(&Packet { options: Options::default(), ..data }, &ends());
    *plain.last_mut().expect("data") ^= 1;
    assert_eq!(damage(&plain), Damage::None);
}

#[test]
fn section_9_3_the_parser_of_whole_packets_says_so_too() {
    let mut data = with_data(packet(SEQ, Kind::Data), b"123456789");
    data.cscov = 2;
    data.options.push(Opt::DataChecksum(1));
    let label = Label { ecn: Ecn::Ect0, dscp: 46, ..Label::default() };
    let mut bytes = Vec::new();
    wire::emit(&label, &Body::Dccp(PacketBox::new(data)), &ends(), &mut bytes).expect("fits");
    // §19.1: IP protocol 33.
    assert_eq!(bytes[9], 33);
    let parsed = wire::parse(&bytes, Hints::default()).expect("sound");
    assert_eq!((parsed.damage, parsed.ends), (Damage::Payload, ends()));
}

/// RFC 5762 §4.1: one RTP packet is the application data; damage to it does not undo the packet
/// around it, which has its place in the sequence.
#[test]
fn rfc_5762_section_4_1_media_is_the_application_data() {
    let payload = Payload::Real(Bytes::from_static(b"speech"));
    let media = rtp::Packet {
        payload_type: 0,
        marker: true,
        sequence: 1,
        timestamp: 2,
        ssrc: 3,
        payload,
        ..rtp::Packet::default()
    };
    let mut data = Packet { payload: Frame::Rtp(media), ..packet(SEQ, Kind::Data) };
    data.cscov = 1;
    let mut bytes = emit(&data, &ends());
    assert_eq!(bytes.len(), 16 + 12 + 6);
    let Ends { src, dst, .. } = ends();
    let hints = Hints { media: true, ..Hints::default() };
    let read = |bytes: &[u8]| wire::dccp::parse(bytes, src, dst, hints).expect("sound").1;
    assert_eq!(read(&bytes), data);
    bytes[16] = 0; // RTP version 0.
    let damaged = read(&bytes);
    assert_eq!(damaged.seq, SEQ);
    assert!(matches!(damaged.payload, Frame::Data(Payload::Real(_))), "{:?}", damaged.payload);
}

/// §14.1: an ICMP message counts only if the number it quotes is one that was sent; so it must
/// quote one. Eight bytes, which RFC 792 asks for, hold none.
#[test]
fn section_14_a_quote_without_a_sequence_number_is_none() {
    let transport = wire::dccp::quoted(&Packet {
        seq: SEQ,
        ccval: 0,
        cscov: 0,
        kind: Kind::Data,
        options: Options::default(),
        payload: Frame::default(),
    });
    let quote = Quote {
        version: IpVersion::V4,
        ip_bytes: 1500,
        mark: 7,
        ttl: 60,
        dscp: 0,
        ecn: Ecn::Ect0,
        transport,
    };
    let Ends { src, dst, .. } = ends();
    let mut message = Vec::new();
    wire::icmp::emit(1400, &quote, src, &ends(), &mut message).expect("one family");
    let (back, body) = wire::icmp::parse(&message, src, dst).expect("sound");
    assert_eq!((back, body), (ends(), Body::TooBig { mtu: 1400, quote }));
    for quoted in 8..16 {
        let mut short = message[..8 + 20 + quoted].to_vec();
        short[2..4].fill(0);
        let checksum = wire::checksum::Sum::default().over(&short).finish();
        short[2..4].copy_from_slice(&checksum.to_be_bytes());
        let parsed = wire::icmp::parse(&short, src, dst);
        assert_eq!(parsed, Err(WireError::Truncated("quoted DCCP header")), "{quoted} bytes");
    }
}
