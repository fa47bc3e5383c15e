//! DCCP and bare TFRC as tshark reads them, with every checksum check on: all types of packets with
//! every option, in both header forms and over both IP versions; a checksum over a part; inside
//! UDP; quoted by a router. Without tshark these tests say so and pass, as those of `tshark.rs`.

#[path = "../../proto/tests/all/captures.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the tests of `proto`")]
mod captures;
#[macro_use]
mod dissector;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use dissector::{
    COMPLAINT, GOOD, MEDIA_PORT, PLAIN_PORT, Seen, assert_clean, capture, complaints, ends, fields,
    over_both, tshark,
};
use talkspurt_proto::body::Body;
use talkspurt_proto::dccp::options::{Feature, Opt, ccid_option};
use talkspurt_proto::dccp::{Kind, Options, Packet, ResetCode, WireSeq};
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, IpVersion, Packet as Label, PacketBox, Payload, Quote};
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::{self, Ends};
use talkspurt_proto::{rtp, tfrc};
use talkspurt_record::pcapng::{Pcapng, Remarks};

/// Over 2⁴⁰, so that none of the six bytes is zero.
const FIRST: u64 = 0x0102_0304_0506;
const ACKED: u64 = 0x0f0e_0d0c_0b0a;

fn data(len: u64) -> Frame {
    Frame::Data(Payload::Virtual { offset: 0x0102_0304_0506_0708, len })
}

/// Every type, in the order of their numbers; Data and `DataAck` carry data.
fn every_type() -> Vec<Packet> {
    let ack = WireSeq::Extended(ACKED);
    let (service, code) = (0x5350_4348, ResetCode::OPTION_ERROR);
    let kinds = [
        Kind::Request { service },
        Kind::Response { ack, service },
        Kind::Data,
        Kind::Ack { ack },
        Kind::DataAck { ack },
        Kind::CloseReq { ack },
        Kind::Close { ack },
        Kind::Reset { ack, code, data: [32, 1, 2] },
        Kind::Sync { ack },
        Kind::SyncAck { ack },
        Kind::Listen { service },
    ];
    (0_u64..)
        .zip(kinds)
        .map(|(index, kind)| {
            let payload = if kind.is_data() { data(101) } else { data(0) };
            let seq = WireSeq::Extended(FIRST + index);
            let ccval = index as u8;
            Packet { seq, ccval, cscov: 0, kind, options: Options::default(), payload }
        })
        .collect()
}

fn seen(packets: &[Packet]) -> Vec<Seen> {
    let body = |packet: &Packet| Body::Dccp(PacketBox::new(packet.clone()));
    (0..).zip(packets).map(|(i, packet)| (i * 1000, false, body(packet))).collect()
}

/// All options in one packet; a sender would not send them all.
fn every_option() -> Options {
    let mut options = Options::default();
    let feature = |number, value| Feature { number, value };
    for option in [
        Opt::Padding,
        Opt::SlowReceiver,
        Opt::Mandatory,
        Opt::ChangeL(feature(1, &[2, 3])),
        Opt::ConfirmL(feature(1, &[2, 2, 3])),
        Opt::ChangeR(feature(3, &[0, 0, 0, 0, 1, 44])),
        Opt::ConfirmR(feature(3, &[0, 0, 0, 0, 1, 44])),
        Opt::InitCookie(&[1, 2, 3, 4]),
        Opt::NdpCount(0x0102_0304_0506),
        Opt::AckVector { nonce: false, cells: &[0x00, 0x43, 0xc1] },
        Opt::AckVector { nonce: true, cells: &[0x02] },
        Opt::DataDropped(&[0x80, 0x93]),
        Opt::Timestamp(0x0102_0304),
        Opt::TimestampEcho { timestamp: 0x0a0b_0c0d, elapsed: 0 },
        Opt::TimestampEcho { timestamp: 0x0a0b_0c0d, elapsed: 0x1234 },
        Opt::TimestampEcho { timestamp: 0x0a0b_0c0d, elapsed: 0x0001_2345 },
        Opt::ElapsedTime(0x1234),
        Opt::ElapsedTime(0x0001_2345),
        Opt::DataChecksum(0xe306_9283),
        Opt::Ccid { kind: ccid_option::RTT_ESTIMATE, value: &[0, 0, 100] },
        Opt::Ccid { kind: ccid_option::LOSS_EVENT_RATE, value: &[0, 0, 1, 0] },
        Opt::Ccid { kind: ccid_option::LOSS_INTERVALS, value: &[1, 0, 0, 9, 0x80, 0, 1, 0, 0, 9] },
        Opt::Ccid { kind: ccid_option::RECEIVE_RATE, value: &[0, 1, 0, 0] },
        Opt::Ccid { kind: ccid_option::DROPPED_PACKETS, value: &[0, 0, 1] },
    ] {
        options.push(option);
    }
    options
}

/// The fields requested from tshark.
const FIELDS: [&str; 31] = [
    "dccp.srcport",
    "dccp.dstport",
    "dccp.data_offset",
    "dccp.ccval",
    "dccp.cscov",
    "dccp.checksum.status",
    "dccp.type",
    "dccp.x",
    "dccp.seq_raw",
    "dccp.ack_raw",
    "dccp.service_code",
    "dccp.reset_code",
    "dccp.data1",
    "dccp.data2",
    "dccp.data3",
    "data.len",
    "dccp.option_type",
    "dccp.feature_number",
    "dccp.init_cookie",
    "dccp.ndp_count",
    "dccp.ack_vector.nonce_0",
    "dccp.ack_vector.nonce_1",
    "dccp.data_dropped",
    "dccp.timestamp",
    "dccp.timestamp_echo",
    "dccp.elapsed_time",
    "dccp.checksum_data",
    "dccp.ccid3_loss_event_rate",
    "dccp.ccid3_loss_intervals",
    "dccp.ccid3_receive_rate",
    "dccp.bad_checksum",
];

/// The expected answer.
fn expected(packet: &Packet, ends: Ends) -> Vec<String> {
    let number = |seq| match seq {
        WireSeq::Extended(seq) => seq.to_string(),
        WireSeq::Short(seq) => seq.to_string(),
    };
    let service = match packet.kind {
        Kind::Request { service } | Kind::Response { service, .. } | Kind::Listen { service } => {
            service.to_string()
        }
        _ => String::new(),
    };
    let reset = match packet.kind {
        Kind::Reset { code, data: [first, second, third], .. } => {
            [code.0, first, second, third].map(|byte| byte.to_string())
        }
        _ => Default::default(),
    };
    let length = packet.payload.wire_bytes();
    let mut row = vec![
        ends.src_port.to_string(),
        ends.dst_port.to_string(),
        (packet.header_bytes() / 4).to_string(),
        packet.ccval.to_string(),
        packet.cscov.to_string(),
        GOOD.into(),
        packet.kind.number().to_string(),
        u8::from(packet.seq.is_extended()).to_string(),
        number(packet.seq),
        packet.kind.ack().map(number).unwrap_or_default(),
        service,
    ];
    row.extend(reset);
    row.push(if length == 0 { String::new() } else { length.to_string() });
    row.extend(expected_options(&packet.options));
    row.push(String::new());
    row
}

/// The columns of [`FIELDS`] from the type of option on: all its values, in order.
fn expected_options(options: &Options) -> [String; 14] {
    let mut columns: [Vec<String>; 14] = Default::default();
    let mut padded = options.clone();
    padded.pad();
    for option in padded.iter() {
        let option = option.expect("a sound option");
        let mut alone = Options::default();
        alone.push(option);
        columns[0].push(alone.as_bytes()[0].to_string());
        let mut tell = |column: usize, value: String| columns[column].push(value);
        let word = |value: &[u8]| value.iter().fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
        match option {
            Opt::ChangeL(feature)
            | Opt::ConfirmL(feature)
            | Opt::ChangeR(feature)
            | Opt::ConfirmR(feature) => tell(1, feature.number.to_string()),
            Opt::InitCookie(cookie) => tell(2, hex(cookie)),
            Opt::NdpCount(count) => tell(3, count.to_string()),
            Opt::AckVector { nonce, cells } => tell(4 + usize::from(nonce), hex(cells)),
            Opt::DataDropped(blocks) => tell(6, hex(blocks)),
            Opt::Timestamp(timestamp) => tell(7, timestamp.to_string()),
            Opt::TimestampEcho { timestamp, elapsed } => {
                tell(8, timestamp.to_string());
                // An echo without elapsed time says nothing of it.
                if elapsed > 0 {
                    tell(9, elapsed.to_string());
                }
            }
            Opt::ElapsedTime(elapsed) => tell(9, elapsed.to_string()),
            Opt::DataChecksum(crc) => tell(10, format!("{crc:#010x}")),
            Opt::Ccid { kind: ccid_option::LOSS_EVENT_RATE, value } => {
                tell(11, word(value).to_string());
            }
            Opt::Ccid { kind: ccid_option::LOSS_INTERVALS, value } => tell(12, hex(value)),
            Opt::Ccid { kind: ccid_option::RECEIVE_RATE, value } => {
                tell(13, word(value).to_string());
            }
            _ => {}
        }
    }
    columns.map(|values| values.join(","))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn assert_agree(name: &str, version: IpVersion, packets: &[Packet]) {
    // tshark has another name for short Sequence Numbers.
    let names = FIELDS.map(|name| match (name, packets[0].seq) {
        ("dccp.seq_raw", WireSeq::Short(_)) => "dccp.seq",
        (name, _) => name,
    });
    let path = capture(name, version, PLAIN_PORT, &seen(packets));
    assert_clean(&path);
    let ends = ends(version, PLAIN_PORT);
    let expected: Vec<_> = packets.iter().map(|packet| expected(packet, ends)).collect();
    let fields = fields(&path, &names);
    assert_eq!(fields.len(), packets.len());
    for (packet, (told, expected)) in packets.iter().zip(fields.into_iter().zip(expected)) {
        assert_eq!(told, expected, "{packet:?}");
    }
}

#[test]
fn every_type_of_packet_with_no_option_and_with_every() {
    over_both(|version| {
        let mut packets = every_type();
        let full = every_type().into_iter();
        packets.extend(full.map(|packet| Packet { options: every_option(), ..packet }));
        assert_agree("dccp-types", version, &packets);
    });
}

/// The values of negotiated features, which tshark prints in no field.
#[test]
fn values_of_features() {
    needs_tshark!();
    let packet = Packet { options: every_option(), ..every_type()[3].clone() };
    let path = capture("dccp-features", IpVersion::V4, PLAIN_PORT, &seen(&[packet]));
    let told = tshark(&path, &["-V"]);
    let mut values = told.iter().filter_map(|line| line.trim().strip_prefix("Reserved("));
    for expected in [" 2, 3)", " 2, 2, 3)", " 300)", " 300)"] {
        assert_eq!(values.next(), Some(expected));
    }
}

#[test]
fn short_sequence_numbers() {
    over_both(|version| {
        let (seq, ack) = (WireSeq::Short(0xff_fffe), WireSeq::Short(0x01_0203));
        let kinds = [Kind::Data, Kind::Ack { ack }, Kind::DataAck { ack }];
        let plain = kinds.map(|kind| {
            let payload = if kind.is_data() { data(33) } else { data(0) };
            Packet { seq, ccval: 15, cscov: 0, kind, options: Options::default(), payload }
        });
        let full = plain.clone().map(|packet| Packet { options: every_option(), ..packet });
        assert_agree("dccp-short", version, &[plain, full].concat());
    });
}

#[test]
fn checksums_over_a_part_of_the_data() {
    over_both(|version| {
        let packets: Vec<Packet> = (0..=15)
            .flat_map(|cscov| {
                [0_u64, 3, 4, 5, 57].map(|len| {
                    let kind = Kind::Data;
                    let (seq, options) = (WireSeq::Extended(FIRST), Options::default());
                    Packet { seq, ccval: 0, cscov, kind, options, payload: data(len) }
                })
            })
            .filter(|packet| usize::from(packet.cscov) <= 1 + packet.payload.wire_bytes() / 4)
            .collect();
        assert_eq!(packets.len(), 5 + 5 + 3 + 13);
        assert_agree("dccp-coverage", version, &packets);
    });
}

/// The checks above can fail: damage to what the checksum covers shows, damage beyond does not.
#[test]
fn damage_shows_as_far_as_the_checksum_covers() {
    needs_tshark!();
    let packet = Packet { cscov: 2, payload: data(40), ..every_type()[2].clone() };
    let mut sound = Vec::new();
    let (ends, body) = (ends(IpVersion::V4, PLAIN_PORT), Body::Dccp(PacketBox::new(packet)));
    wire::emit(&label(), &body, &ends, &mut sound).expect("fits");
    let data_at = 20 + 16;
    for (at, covered) in [(data_at + 3, true), (data_at + 4, false), (data_at + 39, false)] {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        let path = packet_file("dccp-damage", &bytes);
        let complaints = complaints(&path).join("\n");
        assert_eq!(complaints.contains("[Checksum Status: Bad]"), covered, "{complaints}");
        assert_eq!(complaints.is_empty(), !covered, "{complaints}");
    }
}

#[test]
fn speech_over_dccp() {
    over_both(|version| {
        let payload = Payload::Real(Bytes::from_static(&[0x55; 160]));
        let media = rtp::Packet {
            payload_type: 0,
            marker: true,
            sequence: 7,
            timestamp: 160,
            ssrc: 0xdead_beef,
            payload,
            ..rtp::Packet::default()
        };
        let mut bytes = Vec::new();
        wire::rtp::emit(&media, &mut bytes);
        let packet = Packet { payload: Frame::Rtp(media), ..every_type()[2].clone() };
        let path = capture("dccp-speech", version, MEDIA_PORT, &seen(&[packet]));
        assert_clean(&path);
        // tshark knows no RTP inside DCCP; to it the packet is data.
        assert_eq!(fields(&path, &["data.data"]), [[hex(&bytes)]]);
    });
}

/// Bare TFRC: to tshark data inside UDP, laid out as `wire::tfrc` pictures it.
#[test]
fn bare_tfrc_is_sound_udp() {
    over_both(|version| {
        let (seq, timestamp, rtt) = (1, 0x0203_0405, 50_000);
        let payload = Frame::Data(Payload::Real(Bytes::from_static(b"talk")));
        let media = tfrc::Packet::Data(tfrc::Data { seq, timestamp, rtt, timeout: 0, payload });
        let (delay, receive_rate, loss_event_rate) = (6, 8000, 0x8000_0000);
        let feedback = tfrc::Feedback { timestamp, delay, receive_rate, loss_event_rate };
        let seen = [
            (0, false, Body::Tfrc(media)),
            (9, true, Body::Tfrc(tfrc::Packet::Feedback(feedback))),
        ];
        let path = capture("tfrc", version, PLAIN_PORT, &seen);
        assert_clean(&path);
        let names = ["udp.length", "udp.checksum.status", "data.data"];
        let media = "54460000".to_owned() + "00000001" + "02030405" + "0000c350" + "74616c6b";
        let feedback = "54460100".to_owned() + "02030405" + "00000006" + "00001f40" + "80000000";
        assert_eq!(fields(&path, &names), [["28", GOOD, &media], ["28", GOOD, &feedback]]);
    });
}

/// RFC 6773: tshark reads the datagram; the DCCP in it is data to it.
#[test]
fn dccp_inside_udp_is_sound_udp() {
    needs_tshark!();
    let (v4, packet) = (IpVersion::V4, every_type()[4].clone());
    let (inner, outer) = (ends(v4, PLAIN_PORT), ends(v4, wire::dccp_udp::PORT));
    let mut bytes = vec![0; wire::ipv4::HEADER];
    wire::dccp_udp::emit(&packet, &inner, &outer, &mut bytes).expect("fits");
    let (IpAddr::V4(src), IpAddr::V4(dst)) = (outer.src, outer.dst) else { unreachable!("IPv4") };
    let protocol = wire::udp::PROTOCOL;
    wire::ipv4::Header::of(&label(), protocol, src, dst).write(&mut bytes).expect("fits");
    let path = packet_file("dccp-udp", &bytes);
    assert_clean(&path);
    let names = ["udp.srcport", "udp.dstport", "udp.length", "udp.checksum.status", "data.data"];
    let length = (8 + packet.header_bytes() + 101).to_string();
    let inside = hex(&bytes[28..]);
    assert_eq!(fields(&path, &names), [["40000", "6511", &length, GOOD, &inside]]);
}

#[test]
fn a_router_quotes_dccp() {
    needs_tshark!();
    for (version, mtu) in [(IpVersion::V4, "icmp.mtu"), (IpVersion::V6, "icmpv6.mtu")] {
        let short = WireSeq::Short(0xab_cdef);
        let refused = [
            Packet { options: every_option(), ..every_type()[4].clone() },
            Packet { seq: short, kind: Kind::Ack { ack: short }, ..every_type()[2].clone() },
        ];
        let answer = |packet: &Packet| {
            let refused = Body::Dccp(PacketBox::new(packet.clone()));
            let quote = Quote::of(&Label { version, ..label() }, &refused).expect("no answer");
            (0, true, Body::TooBig { mtu: 1280, quote })
        };
        let path = capture("dccp-too-big", version, PLAIN_PORT, &refused.each_ref().map(answer));
        // tshark sums the quote as if it were the whole packet; no checksum could be right.
        let unsummed = ["-o", "dccp.check_checksum:FALSE", "-Y", COMPLAINT, "-V"];
        assert_eq!(tshark(&path, &unsummed).join("\n"), "");
        let names = [mtu, "dccp.srcport", "dccp.dstport", "dccp.data_offset", "dccp.ccval"];
        let more = ["dccp.cscov", "dccp.type", "dccp.x", "dccp.seq_raw", "dccp.seq"];
        let seq = (FIRST + 4).to_string();
        let expected = [
            ["1280", "40000", "40001", "41", "4", "0", "4", "1", &seq, ""],
            ["1280", "40000", "40001", "4", "2", "0", "3", "0", "", "11259375"],
        ];
        assert_eq!(fields(&path, &[&names[..], &more[..]].concat()), expected);
    }
}

/// A Linux kernel's packets: tshark and this project read the same in every field of every one.
#[test]
fn the_recordings_of_a_linux_kernel() {
    needs_tshark!();
    for name in captures::NAMES {
        let path = captures::path(name);
        assert_clean(&path);
        let (recorded, told) = (captures::read(name), fields(&path, &FIELDS));
        assert_eq!(told.len(), recorded.len(), "{name}");
        for (captured, told) in recorded.iter().zip(told) {
            let expected = expected(&captured.packet, captured.ends);
            assert_eq!(told, expected, "{name} at {:?}", captured.at);
        }
    }
}

fn label() -> Label {
    Label { ecn: Ecn::Ect0, ..Label::default() }
}

/// A capture of one IP packet.
fn packet_file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcapng"));
    let mut file = Pcapng::create(&path, &["uplink"]).expect("writable");
    file.packet(0, Instant::ZERO, bytes, 0, Remarks::default());
    file.finish().expect("complete");
    path
}
