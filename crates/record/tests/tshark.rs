//! Captures of every kind of packet, read by tshark (Wireshark's reader) with all its checks on:
//! no checksum is bad, nothing is malformed, and every field it prints is the one that was put in.
//!
//! Without tshark these tests say so and pass, unless `TALKSPURT_REQUIRE_TSHARK` is set.

#[macro_use]
mod dissector;

use std::path::Path;

use bytes::Bytes;
use dissector::{
    GOOD, MEDIA_PORT, PLAIN_PORT, Seen, assert_clean, capture, complaints, ends, fields, over_both,
    tshark,
};
use talkspurt_proto::body::Body;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{Ecn, IpVersion, Packet, Payload, Quote};
use talkspurt_proto::rtcp::feedback::{Feedback, IntraRequest, Lost, Message, RateLimit, Slice};
use talkspurt_proto::rtcp::{Compound, NtpTime, ReportBlock, SenderInfo, TransportWide};
use talkspurt_proto::tcp::{Flags, SackBlocks, Segment};
use talkspurt_proto::time::Instant;
use talkspurt_proto::{rfc4571, rtp, wire};
use talkspurt_record::pcapng::{Pcapng, Remarks};

fn media(sequence: u16, marker: bool) -> rtp::Packet {
    let payload = (0..160_u32).map(|i| (i * 7 + u32::from(sequence)) as u8).collect::<Vec<_>>();
    rtp::Packet {
        payload_type: 0,
        marker,
        sequence,
        timestamp: 0xffff_ff00_u32.wrapping_add(u32::from(sequence.wrapping_sub(65_534)) * 160),
        ssrc: 0xdead_beef,
        payload: Payload::Real(payload.into()),
        ..rtp::Packet::default()
    }
}
fn hex(payload: &Payload) -> String {
    let Payload::Real(bytes) = payload else { panic!("real") };
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn speech_over_udp() {
    over_both(|version| {
        let packets: Vec<_> =
            (0..4_u16).map(|i| media(65_534_u16.wrapping_add(i), i == 0)).collect();
        let seen: Vec<Seen> = (0..)
            .zip(&packets)
            .map(|(i, packet)| (i * 20_000, false, Body::Udp(Frame::Rtp(packet.clone()))))
            .collect();
        let path = capture("speech", version, MEDIA_PORT, &seen);
        assert_clean(&path);
        let names = [
            "frame.time_epoch",
            "frame.interface_name",
            "frame.protocols",
            "udp.srcport",
            "udp.dstport",
            "udp.length",
            "udp.checksum.status",
            "rtp.p_type",
            "rtp.marker",
            "rtp.seq",
            "rtp.timestamp",
            "rtp.ssrc",
            "rtp.payload",
        ];
        let ip = match version {
            IpVersion::V4 => "ip",
            IpVersion::V6 => "ipv6",
        };
        let expected: Vec<Vec<String>> = (0..)
            .zip(&packets)
            .map(|(i, packet)| {
                vec![
                    format!("0.{:09}", i * 20_000_000 + 7),
                    "uplink".into(),
                    format!("raw:{ip}:udp:rtp"),
                    "40000".into(),
                    "5004".into(),
                    (8 + 12 + 160).to_string(),
                    GOOD.into(),
                    "0".into(),
                    u8::from(packet.marker).to_string(),
                    packet.sequence.to_string(),
                    packet.timestamp.to_string(),
                    "0xdeadbeef".into(),
                    hex(&packet.payload),
                ]
            })
            .collect();
        assert_eq!(fields(&path, &names), expected);
    });
}

#[test]
fn ip_headers() {
    needs_tshark!();
    let body = || Body::Udp(Frame::Data(Payload::Virtual { offset: 0, len: 33 }));
    let seen = [(0, false, body()), (1, true, body())];
    let v4 = capture("header", IpVersion::V4, MEDIA_PORT, &seen);
    assert_clean(&v4);
    let names = [
        "ip.src",
        "ip.dst",
        "ip.len",
        "ip.id",
        "ip.ttl",
        "ip.dsfield.dscp",
        "ip.dsfield.ecn",
        "ip.flags.df",
        "frame.interface_name",
    ];
    assert_eq!(
        fields(&v4, &names),
        [
            ["10.0.0.1", "10.0.0.2", "61", "0x0000", "61", "46", "2", "1", "uplink"],
            ["10.0.0.2", "10.0.0.1", "61", "0x0001", "61", "46", "2", "1", "uplink.back"],
        ]
    );
    let v6 = capture("header", IpVersion::V6, MEDIA_PORT, &seen[..1]);
    assert_clean(&v6);
    let names =
        ["ipv6.src", "ipv6.dst", "ipv6.plen", "ipv6.hlim", "ipv6.tclass.dscp", "ipv6.tclass.ecn"];
    assert_eq!(fields(&v6, &names), [["fd00::1", "fd00::2", "41", "61", "46", "2"]]);
}

fn sender_report() -> Compound {
    Compound {
        ssrc: 0xdead_beef,
        sender: Some(SenderInfo {
            ntp: NtpTime::from(Instant::from_nanos(1_500_000_000)),
            rtp_timestamp: 123_456,
            packets: 75,
            octets: 12_000,
        }),
        reports: vec![ReportBlock {
            ssrc: 0x0bad_cafe,
            fraction_lost: 51,
            cumulative_lost: -3,
            highest_sequence: 65_536 + 9,
            jitter: 17,
            last_sr: 0xb705_2000,
            delay_since_last_sr: 0x0005_4000,
        }],
        cname: "caller@10.0.0.1".into(),
        ..Compound::default()
    }
}
fn receiver_report() -> Compound {
    Compound {
        sender: None,
        ssrc: 0x0bad_cafe,
        cname: "answer".into(),
        bye: true,
        ..sender_report()
    }
}

const RTCP_FIELDS: [&str; 17] = [
    "rtcp.pt",
    "rtcp.senderssrc",
    "rtcp.timestamp.ntp.msw",
    "rtcp.timestamp.ntp.lsw",
    "rtcp.timestamp.rtp",
    "rtcp.sender.packetcount",
    "rtcp.sender.octetcount",
    "rtcp.ssrc.identifier",
    "rtcp.ssrc.fraction",
    "rtcp.ssrc.cum_nr",
    "rtcp.ssrc.high_seq",
    "rtcp.ssrc.high_cycles",
    "rtcp.ssrc.jitter",
    "rtcp.ssrc.lsr",
    "rtcp.ssrc.dlsr",
    "rtcp.sdes.text",
    "rtcp.length_check",
];
const SENDER_REPORT: [&str; 17] = [
    "200,202",
    "0xdeadbeef",
    "2208988801",
    "2147483648",
    "123456",
    "75",
    "12000",
    "0x0badcafe,0xdeadbeef",
    "51",
    "-3",
    "9",
    "1",
    "17",
    "3070566400",
    "344064",
    "caller@10.0.0.1",
    "1",
];
const RECEIVER_REPORT: [&str; 17] = [
    "201,202,203",
    "0x0badcafe",
    "",
    "",
    "",
    "",
    "",
    "0x0badcafe,0x0badcafe,0x0badcafe",
    "51",
    "-3",
    "9",
    "1",
    "17",
    "3070566400",
    "344064",
    "answer",
    "1",
];

#[test]
fn reports_over_udp_share_the_port() {
    over_both(|version| {
        let body = |compound| Body::Udp(Frame::Rtcp(Box::new(compound)));
        let speech = Body::Udp(Frame::Rtp(media(1, false)));
        let seen = [
            (0, false, speech),
            (1000, false, body(sender_report())),
            (2000, true, body(receiver_report())),
        ];
        let path = capture("reports", version, MEDIA_PORT, &seen);
        assert_clean(&path);
        let rows = fields(&path, &RTCP_FIELDS);
        assert_eq!(rows[1..], [SENDER_REPORT, RECEIVER_REPORT]);
        assert_eq!(fields(&path, &["rtp.seq"]).concat(), ["1", "", ""]);
    });
}

/// Feedback messages behind a report, field by field.
#[test]
fn feedback_is_read() {
    needs_tshark!();
    let messages = [
        Message::Nack { media: 7, lost: Lost::list(&[100, 101, 116]) },
        Message::RateRequest(vec![RateLimit { ssrc: 7, bps: 2_500_000, overhead: 40 }]),
        Message::PictureLoss { media: 7 },
        Message::SliceLoss { media: 7, slices: vec![Slice { first: 1, count: 22, picture: 5 }] },
        Message::FullIntra(vec![IntraRequest { ssrc: 7, sequence: 9 }]),
    ];
    let feedback = messages.map(|message| Feedback { sender: 0xdead_beef, message });
    let compound = Compound { feedback: feedback.into(), ..sender_report() };
    let body = Body::Udp(Frame::Rtcp(Box::new(compound)));
    let path = capture("feedback", IpVersion::V4, MEDIA_PORT, &[(0, false, body)]);
    assert_clean(&path);
    let names = [
        "rtcp.pt",
        "rtcp.rtpfb.fmt",
        "rtcp.psfb.fmt",
        "rtcp.rtpfb.nack_pid",
        "rtcp.rtpfb.nack_blp",
        "rtcp.rtpfb.tmmbr.fci.exp",
        "rtcp.rtpfb.tmmbr.fci.mantissa",
        "rtcp.rtpfb.tmmbr.fci.measuredoverhead",
        "rtcp.psfb.fir.sli.number",
        "rtcp.psfb.fir.fci.csn",
        "rtcp.length_check",
    ];
    let row = [
        "200,202,205,205,206,206,206",
        "1,3",
        "1,2,4",
        "100,101,116",
        "0x8001",
        "5",
        "78125",
        "40",
        "22",
        "9",
        "1",
    ];
    assert_eq!(fields(&path, &names), [row]);
}

/// Transport-wide sequence numbers, padding behind a payload and alone, and feedback in chunks of each form.
#[test]
fn transport_wide_congestion_control_is_read() {
    needs_tshark!();
    let number = |transport| rtp::Packet { transport: Some(transport), ..media(1, false) };
    let probe = rtp::Packet { padding: 224, payload: Payload::default(), ..number(0xffff) };
    let padded = rtp::Packet { padding: 1, ..media(2, false) };
    let losses = [2, 5, 7, 8, 9, 10, 14, 18, 33, 40];
    let deltas = [4_i16, 0, 255, 1, 40, 4000, -4];
    let place = |place: u16| (65_534_u16.wrapping_add(place), Some(deltas[usize::from(place) % 7]));
    let received: Vec<_> = (0..80).filter(|it| !losses.contains(it)).map(place).collect();
    // Then a run of losses, and one of packets.
    let run = (200..240).map(|place| (65_534_u16.wrapping_add(place), Some(20)));
    let report = TransportWide {
        base: 65_534,
        count: 240,
        reference_time: 0x2b_cdef,
        feedback_count: 255,
        received: received.into_iter().chain(run).collect(),
    };
    let message = Message::TransportWide { media: 7, report: report.clone() };
    let feedback = Feedback { sender: 0xdead_beef, message };
    let compound = Compound { feedback: vec![feedback], ..sender_report() };
    let frames = [
        Frame::Rtp(number(0x1234)),
        Frame::Rtp(probe),
        Frame::Rtp(padded),
        Frame::Rtcp(Box::new(compound)),
    ];
    let seen: Vec<Seen> =
        (0..).zip(frames).map(|(i, frame)| (i * 20_000, false, Body::Udp(frame))).collect();
    let path = capture("transport_wide", IpVersion::V4, MEDIA_PORT, &seen);
    assert_clean(&path);
    let names = [
        "rtp.ext.profile",
        "rtp.ext.len",
        "rtp.ext.rfc5285.id",
        "rtp.ext.rfc5285.len",
        "rtp.ext.rfc5285.data",
        "rtp.padding.count",
        "udp.length",
    ];
    let rows = fields(&path, &names);
    assert_eq!(rows[0], ["0xbede", "1", "3", "2", "1234", "", "188"]);
    assert_eq!(rows[1], ["0xbede", "1", "3", "2", "ffff", "224", "252"]);
    assert_eq!(rows[2], ["", "", "", "", "", "1", "181"]);
    let names = ["baseseq", "statuscount", "reftime", "pktcount", "recv_delta"]
        .map(|name| format!("rtcp.rtpfb.transportcc.{name}"));
    let row = &fields(&path, &names.each_ref().map(String::as_str))[3];
    assert_eq!(row[..4], ["65534", "240", "2870767", "255"]);
    // tshark prints a byte, or two bytes, of each time.
    let times = report.received.iter().map(|(_, delta)| match delta.expect("timed") {
        delta @ 0..256 => format!("0x{delta:02x}"),
        delta => format!("0x{delta:04x}"),
    });
    let text = row[4].split(',').map(str::to_owned);
    assert_eq!(text.collect::<Vec<_>>(), times.collect::<Vec<_>>());
}

/// A connection as a capture sees it: both directions' sequence numbers, one tick a segment.
struct Connection {
    next: [u32; 2],
    seen: Vec<Seen>,
}

impl Connection {
    fn send(&mut self, back: bool, flags: Flags, payload: Payload) -> &mut Segment {
        let (mine, other) = (self.next[usize::from(back)], self.next[usize::from(!back)]);
        let tick = self.seen.len() as u32;
        let phantom = flags.contains(Flags::SYN) || flags.contains(Flags::FIN);
        self.next[usize::from(back)] = mine.wrapping_add(payload.len() as u32 + u32::from(phantom));
        let ack = if flags.contains(Flags::ACK) { other } else { 0 };
        let timestamps = Some((1000 + tick, if tick == 0 { 0 } else { 999 + tick }));
        let segment = Segment {
            seq: mine,
            ack,
            window: 8000,
            flags,
            timestamps,
            payload,
            ..Segment::default()
        };
        self.seen.push((u64::from(tick) * 10_000, back, Body::Tcp(segment)));
        match self.seen.last_mut() {
            Some((_, _, Body::Tcp(segment))) => segment,
            _ => unreachable!("just pushed"),
        }
    }

    fn opened() -> Self {
        let mut connection = Self { next: [u32::MAX - 5, 0x8000_0000], seen: Vec::new() };
        for (back, flags) in [(false, Flags::SYN), (true, Flags::SYN | Flags::ACK)] {
            let syn = connection.send(back, flags, Payload::default());
            (syn.mss, syn.window_scale) = (Some(1460), Some(7));
        }
        connection.send(false, Flags::ACK, Payload::default());
        connection
    }

    fn close(&mut self) {
        self.send(false, Flags::FIN | Flags::ACK, Payload::default());
        self.send(true, Flags::FIN | Flags::ACK, Payload::default());
        self.send(false, Flags::ACK, Payload::default());
    }
}

/// RFC 3168 §6.1: ECE and CWR are where tshark looks for them.
#[test]
fn ecn_in_tcp() {
    over_both(|version| {
        let mut connection = Connection::opened();
        for (bits, (_, _, body)) in
            [Flags::ECE | Flags::CWR, Flags::ECE].into_iter().zip(&mut connection.seen)
        {
            let Body::Tcp(segment) = body else { panic!("segments only") };
            segment.flags = segment.flags | bits;
        }
        connection.send(false, Flags::ACK | Flags::CWR, Payload::Virtual { offset: 0, len: 100 });
        connection.send(true, Flags::ACK | Flags::ECE, Payload::default());
        let path = capture("ecn", version, PLAIN_PORT, &connection.seen);
        assert_clean(&path);
        let rows = fields(&path, &["tcp.flags.ece", "tcp.flags.cwr"]);
        let flag = |is: bool| if is { "1" } else { "0" };
        let expected = [(true, true), (true, false), (false, false), (false, true), (true, false)];
        assert_eq!(rows, expected.map(|(ece, cwr)| [flag(ece), flag(cwr)]));
    });
}

/// RFC 2018 and RFC 2883: SACK-permitted on both SYNs, then one to three blocks beside timestamps.
#[test]
fn selective_acknowledgements() {
    over_both(|version| {
        let mut connection = Connection::opened();
        for (_, _, body) in &mut connection.seen[..2] {
            let Body::Tcp(segment) = body else { panic!("segments only") };
            segment.sack_permitted = true;
        }
        connection.send(false, Flags::ACK, Payload::Virtual { offset: 0, len: 100 });
        let first = connection.next[0];
        // Six segments leave, and every second of them arrives.
        for count in 1..=3_u32 {
            connection.send(false, Flags::ACK, Payload::Virtual { offset: 0, len: 100 });
            connection.send(false, Flags::ACK, Payload::Virtual { offset: 0, len: 100 });
            let ack = connection.send(true, Flags::ACK, Payload::default());
            ack.ack = first;
            let block = |i: u32| (first.wrapping_add(200 * i - 100), first.wrapping_add(200 * i));
            ack.sack = SackBlocks::of((1..=count).rev().map(block));
        }
        let path = capture("sack", version, PLAIN_PORT, &connection.seen);
        assert_clean(&path);
        let names = ["tcp.options.sack_perm", "tcp.options.sack.count", "tcp.hdr_len"];
        let blocks = ["tcp.options.sack_le", "tcp.options.sack_re"];
        let segments = connection.seen.iter().map(|(_, _, body)| match body {
            Body::Tcp(segment) => segment,
            _ => panic!("segments only"),
        });
        let (rows, edges) = (fields(&path, &names), fields(&path, &blocks));
        let relative = |number: &u32| number.wrapping_sub(u32::MAX - 5).to_string();
        for (segment, (row, edge)) in segments.zip(rows.iter().zip(&edges)) {
            let told = segment.sack.as_ref().map_or(&[][..], |sack| sack.as_slice());
            assert_eq!(row[0].is_empty(), !segment.sack_permitted);
            let count = if told.is_empty() { String::new() } else { told.len().to_string() };
            assert_eq!(row[1], count);
            assert_eq!(row[2], segment.header_bytes().to_string());
            let (left, right): (Vec<_>, Vec<_>) =
                told.iter().map(|(left, right)| (relative(left), relative(right))).unzip();
            assert_eq!(edge[0], left.join(","));
            assert_eq!(edge[1], right.join(","));
        }
        assert_eq!(rows.len(), connection.seen.len());
    });
}

#[test]
fn a_tcp_connection_with_options_and_data() {
    over_both(|version| {
        let mut connection = Connection::opened();
        connection.send(false, Flags::PSH | Flags::ACK, Payload::Virtual { offset: 0, len: 1448 });
        connection.send(false, Flags::ACK, Payload::Virtual { offset: 1448, len: 101 });
        connection.send(true, Flags::ACK, Payload::default());
        connection.close();
        let path = capture("connection", version, PLAIN_PORT, &connection.seen);
        assert_clean(&path);
        let names = [
            "tcp.seq_raw",
            "tcp.ack_raw",
            "tcp.flags",
            "tcp.window_size_value",
            "tcp.len",
            "tcp.options.mss_val",
            "tcp.options.wscale.shift",
            "tcp.options.timestamp.tsval",
            "tcp.options.timestamp.tsecr",
            "tcp.hdr_len",
            "tcp.checksum.status",
            "tcp.analysis.flags",
        ];
        let text = |value: Option<String>| value.unwrap_or_default();
        let expected: Vec<Vec<String>> = connection
            .seen
            .iter()
            .map(|(_, _, body)| {
                let Body::Tcp(segment) = body else { panic!("segments only") };
                let timestamps = segment.timestamps.expect("always");
                vec![
                    segment.seq.to_string(),
                    segment.ack.to_string(),
                    format!("0x{:04x}", segment.flags.0),
                    segment.window.to_string(),
                    segment.payload.len().to_string(),
                    text(segment.mss.map(|mss| mss.to_string())),
                    text(segment.window_scale.map(|shift| shift.to_string())),
                    timestamps.0.to_string(),
                    timestamps.1.to_string(),
                    segment.header_bytes().to_string(),
                    GOOD.into(),
                    String::new(),
                ]
            })
            .collect();
        assert_eq!(fields(&path, &names), expected);
        let bytes = fields(&path, &["tcp.payload"]).concat().concat();
        let pattern: String =
            (0..1549_u64).map(|o| format!("{:02x}", wire::pattern::byte_at(o))).collect();
        assert_eq!(bytes, pattern);
    });
}

#[test]
fn speech_and_reports_framed_over_tcp() {
    over_both(|version| {
        let packets: Vec<_> = (1..=5).map(|sequence| media(sequence, sequence == 1)).collect();
        let mut stream: Vec<u8> = Vec::new();
        for packet in &packets {
            stream.extend(rfc4571::frame(&Frame::Rtp(packet.clone())).expect("short"));
        }
        stream.extend(rfc4571::frame(&Frame::Rtcp(Box::new(sender_report()))).expect("short"));
        let mut connection = Connection::opened();
        // Cut without regard to packets, as a stream is.
        for piece in stream.chunks(233) {
            let payload = Payload::Real(Bytes::copy_from_slice(piece));
            connection.send(false, Flags::PSH | Flags::ACK, payload);
        }
        connection.send(true, Flags::ACK, Payload::default());
        connection.close();
        let path = capture("framed", version, MEDIA_PORT, &connection.seen);
        assert_clean(&path);
        let all = |name: &str| {
            let values = fields(&path, &[name]).concat().join(",");
            values.split(',').filter(|v| !v.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(all("rtp.seq"), ["1", "2", "3", "4", "5"]);
        let payloads: Vec<String> = packets.iter().map(|packet| hex(&packet.payload)).collect();
        assert_eq!(all("rtp.payload"), payloads);
        assert_eq!(all("rtcp.sender.packetcount"), ["75"]);
    });
}

#[test]
fn packet_too_big() {
    needs_tshark!();
    let seen = |version| {
        let quote = Quote {
            version,
            ip_bytes: 1300,
            mark: 7,
            ttl: 61,
            dscp: 46,
            ecn: Ecn::Ect0,
            transport: talkspurt_proto::udp::wire::quoted(8),
        };
        [(0, true, Body::TooBig { mtu: 1280, quote })]
    };
    let v4 = capture("too-big", IpVersion::V4, MEDIA_PORT, &seen(IpVersion::V4));
    assert_clean(&v4);
    let names = ["icmp.type", "icmp.code", "icmp.mtu", "icmp.checksum.status", "ip.src", "ip.len"];
    assert_eq!(fields(&v4, &names), [["3", "4", "1280", GOOD, "10.0.0.2,10.0.0.1", "56,1300"]]);
    let v6 = capture("too-big", IpVersion::V6, MEDIA_PORT, &seen(IpVersion::V6));
    assert_clean(&v6);
    let names = ["icmpv6.type", "icmpv6.code", "icmpv6.mtu", "icmpv6.checksum.status", "ipv6.src"];
    assert_eq!(fields(&v6, &names), [["2", "0", "1280", GOOD, "fd00::2,fd00::1"]]);
    for path in [v4, v6] {
        assert_eq!(fields(&path, &["udp.srcport", "udp.dstport"]), [["40000", "5004"]]);
    }
}

/// Losses and jitter of our receiver against those that tshark computes from the same packets.
#[test]
fn losses_and_jitter_agree_with_tsharks() {
    needs_tshark!();
    let mut receiver = rtp::Receiver::announced(8000);
    let (mut seen, mut jitter): (Vec<Seen>, Vec<f64>) = (Vec::new(), Vec::new());
    for i in 0..400_u16 {
        // Every seventh is lost; the others are late by anything from 0 to 12.3 ms.
        if i % 7 == 3 {
            continue;
        }
        let packet = media(65_534_u16.wrapping_add(i), false);
        let late = u64::from(i) * 7919 % 12_300;
        let micros = u64::from(i) * 20_000 + late;
        receiver.on_packet(Instant::from_nanos(micros * 1000 + 7), &packet);
        jitter.push(receiver.jitter_seconds() * 1000.0);
        seen.push((micros, false, Body::Udp(Frame::Rtp(packet))));
    }
    let path = capture("jitter", IpVersion::V4, MEDIA_PORT, &seen);
    let table = tshark(&path, &["-q", "-z", "rtp,streams"]);
    let row = table.iter().find(|row| row.contains("0xDEADBEEF")).expect("the stream");
    let words: Vec<&str> = row.split_whitespace().collect();
    let [.., packets, lost, _, _, _, _, _, mean, max, _] = words[..] else { panic!("{row}") };
    assert_eq!(packets, receiver.received().to_string());
    assert_eq!(lost, receiver.cumulative_lost().to_string());
    // tshark reckons with the capture's microseconds, A.8 with ticks of 125 µs: one tick apart.
    let ours = (
        jitter.iter().sum::<f64>() / jitter.len() as f64,
        jitter.iter().copied().fold(0.0, f64::max),
    );
    for (ours, theirs) in [(ours.0, mean), (ours.1, max)] {
        let theirs: f64 = theirs.parse().expect("a number");
        assert!((ours - theirs).abs() < 0.125, "{ours} ms, tshark {theirs} ms");
    }
}

/// The checks above can fail: a capture with one bad checksum does not pass them.
#[test]
fn a_wrong_checksum_is_noticed() {
    needs_tshark!();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong.pcapng");
    let mut file = Pcapng::create(&path, &["uplink"]).expect("writable");
    let body = Body::Udp(Frame::Rtp(media(1, false)));
    let (sent, version, ecn) = (Instant::ZERO, IpVersion::V4, Ecn::NotEct);
    let label = Packet { ecn, version, sent, ..Packet::default() };
    let mut bytes = Vec::new();
    wire::emit(&label, &body, &ends(version, MEDIA_PORT), &mut bytes).expect("fits");
    bytes[100] ^= 1;
    file.packet(0, sent, &bytes, 0, Remarks::default());
    file.finish().expect("complete");
    let complaints = complaints(&path).join("\n");
    assert!(complaints.contains("[Checksum Status: Bad]"), "{complaints}");
}
