//! SCTP as tshark reads it, with its CRC-32c check on: every kind of chunk over both IP
//! versions, bundles, inside UDP, quoted by a router, and a Linux kernel's packets. Without tshark
//! these tests say so and pass, as those of `tshark.rs`.

#[path = "../../proto/tests/all/captures.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the tests of `proto`")]
mod captures;
#[macro_use]
mod dissector;

use bytes::Bytes;
use dissector::{
    COMPLAINT, MEDIA_PORT, PLAIN_PORT, assert_clean, capture, complaints, fields, over_both, tshark,
};
use talkspurt_proto::body::Body;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{IpVersion, PacketBox, Payload, Quote};
use talkspurt_proto::rtp;
use talkspurt_proto::sctp::{
    Cause, Chunk, Data, ForwardTsn, Init, Number, Packet, Parameter, Sack, Skipped,
};

fn data(tsn: u32, number: Number, bytes: &'static [u8]) -> Data {
    Data {
        immediate: true,
        unordered: false,
        beginning: true,
        ending: true,
        tsn,
        stream: 3,
        number,
        ppid: 0,
        payload: Frame::Data(Payload::Real(Bytes::from_static(bytes))),
    }
}

fn init() -> Init {
    let parameters = vec![
        Parameter::SupportedAddressTypes(vec![5, 6]),
        Parameter::Ipv4([10, 0, 0, 1].into()),
        Parameter::Ipv6("fd00::1".parse().expect("an address")),
        Parameter::Ecn,
        Parameter::SupportedExtensions(Bytes::from_static(&[64, 192, 194])),
        Parameter::ForwardTsn,
    ];
    Init { tag: 0x0102_0304, a_rwnd: 131_072, outbound: 10, inbound: 11, tsn: 77, parameters }
}

/// Every kind of chunk, each in a packet of its own, as far as it may be sent alone.
fn every_chunk() -> Vec<Chunk> {
    let mut init_ack = init();
    init_ack.parameters.truncate(2);
    init_ack.parameters.push(Parameter::StateCookie(Bytes::from_static(b"a cookie of 19 byte")));
    let unrecognized = Bytes::from_static(&[0xc0, 6, 0, 8, 0, 0, 0, 1]);
    init_ack.parameters.push(Parameter::Unrecognized(unrecognized));
    let sack =
        Sack { cumulative: 76, a_rwnd: 9000, gaps: vec![(2, 3), (5, 5)], duplicates: vec![75] };
    let heartbeat = Bytes::from_static(&[0, 1, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8]);
    let causes = vec![Cause::invalid_stream(9), Cause::stale_cookie(100)];
    let (given_up, parts) = (Skipped::Ssn(vec![(3, 5)]), Skipped::Mid(vec![(3, true, 5)]));
    let part = Data { beginning: false, ..data(78, Number::Mid(1, 2), b"part") };
    vec![
        Chunk::Init(init()),
        Chunk::InitAck(init_ack),
        Chunk::CookieEcho(Bytes::from_static(b"a cookie of 19 byte")),
        Chunk::CookieAck,
        Chunk::Data(data(77, Number::Ssn(5), b"voice")),
        Chunk::Data(part),
        Chunk::Sack(sack),
        Chunk::Heartbeat(heartbeat.clone()),
        Chunk::HeartbeatAck(heartbeat),
        Chunk::Error(causes.clone()),
        Chunk::Ecne { lowest: 77 },
        Chunk::Cwr { lowest: 77 },
        Chunk::ForwardTsn(ForwardTsn { cumulative: 80, skipped: given_up }),
        Chunk::ForwardTsn(ForwardTsn { cumulative: 80, skipped: parts }),
        Chunk::Shutdown { cumulative: 80 },
        Chunk::ShutdownAck,
        Chunk::ShutdownComplete { reflected: false },
        Chunk::Abort {
            reflected: false,
            causes: vec![Cause::new(Cause::USER_INITIATED_ABORT, "")],
        },
    ]
}

fn body(tag: u32, chunks: Vec<Chunk>) -> Body {
    Body::Sctp(PacketBox::new(Packet { tag, chunks }))
}

#[test]
fn every_kind_of_chunk() {
    over_both(|version| {
        let chunks = every_chunk();
        let tag = |chunk: &Chunk| if matches!(chunk, Chunk::Init(_)) { 0 } else { 0x0506_0708 };
        let seen: Vec<_> =
            (0..).zip(&chunks).map(|(i, c)| (i, false, body(tag(c), vec![c.clone()]))).collect();
        let path = capture("sctp-chunks", version, PLAIN_PORT, &seen);
        assert_clean(&path);
        let told = fields(
            &path,
            &[
                "sctp.checksum.status",
                "sctp.verification_tag",
                "sctp.chunk_type",
                "sctp.chunk_length",
            ],
        );
        for (chunk, told) in chunks.iter().zip(&told) {
            let tag = format!("0x{:08x}", tag(chunk));
            let (kind, length) = (chunk.number().to_string(), chunk.length().to_string());
            assert_eq!(told, &["1", &tag, &kind, &length], "{chunk:?}");
        }
        assert_eq!(told.len(), chunks.len());
        // Fields of each kind, one row a packet.
        let row = |index: usize, names: &[&str]| fields(&path, names)[index].clone();
        let names = ["sctp.init_initiate_tag", "sctp.init_credit", "sctp.init_initial_tsn"];
        assert_eq!(row(0, &names), ["0x01020304", "131072", "77"]);
        let names = ["sctp.initack_initiate_tag", "sctp.parameter_state_cookie"];
        let cookie: String = b"a cookie of 19 byte".iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(row(1, &names), ["0x01020304", &cookie]);
        let names = ["sctp.data_tsn_raw", "sctp.data_sid", "sctp.data_ssn", "sctp.data_i_bit"];
        assert_eq!(row(4, &names), ["77", "0x0003", "5", "1"]);
        let names = ["sctp.data_tsn_raw", "sctp.data_mid", "sctp.data_fsn", "sctp.data_b_bit"];
        assert_eq!(row(5, &names), ["78", "1", "2", "0"]);
        let names = ["sctp.sack_cumulative_tsn_ack_raw", "sctp.sack_a_rwnd"];
        assert_eq!(row(6, &names), ["76", "9000"]);
        let names = ["sctp.sack_gap_block_start", "sctp.sack_gap_block_end"];
        assert_eq!(row(6, &names), ["2,5", "3,5"]);
        assert_eq!(row(9, &["sctp.cause_code"]), ["0x0001,0x0003"]);
        let names = ["sctp.forward_tsn_tsn", "sctp.forward_tsn_sid", "sctp.forward_tsn_ssn"];
        assert_eq!(row(12, &names), ["80", "3", "5"]);
        assert_eq!(row(17, &["sctp.cause_code"]), ["0x000c"]);
    });
}

#[test]
fn speech_bundled_with_a_sack() {
    over_both(|version| {
        let payload = Payload::Real(Bytes::from_static(&[0x55; 33]));
        let media = rtp::Packet {
            payload_type: 3,
            marker: true,
            sequence: 7,
            timestamp: 160,
            ssrc: 0xdead_beef,
            payload,
            ..rtp::Packet::default()
        };
        let one = Data { payload: Frame::Rtp(media), ..data(77, Number::Ssn(5), b"") };
        let next = Data { tsn: 78, number: Number::Ssn(6), ..one.clone() };
        let sack = Sack { cumulative: 9, a_rwnd: 9000, ..Sack::default() };
        let chunks = vec![Chunk::Sack(sack), Chunk::Data(one), Chunk::Data(next)];
        let path = capture("sctp-bundle", version, MEDIA_PORT, &[(0, false, body(1, chunks))]);
        assert_clean(&path);
        let names = ["sctp.chunk_type", "sctp.data_tsn_raw", "sctp.chunk_length"];
        assert_eq!(fields(&path, &names), [["3,0,0", "77,78", "16,61,61"]]);
    });
}

/// The checks above can fail.
#[test]
fn a_wrong_checksum_shows() {
    needs_tshark!();
    let path = capture(
        "sctp-bad",
        IpVersion::V4,
        PLAIN_PORT,
        &[(0, false, body(1, vec![Chunk::CookieAck]))],
    );
    let mut bytes = std::fs::read(&path).expect("readable");
    let chunk = bytes.windows(4).rposition(|four| four == [11, 0, 0, 4]).expect("the chunk");
    bytes[chunk - 5] ^= 1;
    std::fs::write(&path, bytes).expect("writable");
    let complaints = complaints(&path).join("\n");
    assert!(complaints.contains("[Checksum Status: Bad]"), "{complaints}");
}

#[test]
fn a_router_quotes_sctp() {
    needs_tshark!();
    for (version, mtu) in [(IpVersion::V4, "icmp.mtu"), (IpVersion::V6, "icmpv6.mtu")] {
        let quote = Quote {
            version,
            ip_bytes: 1500,
            mark: 7,
            ttl: 60,
            dscp: 0,
            ecn: talkspurt_proto::packet::Ecn::NotEct,
            transport: talkspurt_proto::sctp::wire::quoted(0x0506_0708),
        };
        let body = Body::TooBig { mtu: 1280, quote };
        let path = capture("sctp-too-big", version, PLAIN_PORT, &[(0, true, body)]);
        let unsummed = ["-o", "sctp.checksum:None", "-Y", COMPLAINT, "-V"];
        // Eight bytes are quoted; tshark's reader of SCTP wants twelve and says so for the quote.
        let told = tshark(&path, &unsummed).join("\n");
        assert!(!told.contains("Checksum Status: Bad"), "{told}");
        assert_eq!(fields(&path, &[mtu])[0][0], "1280");
    }
}

/// A Linux kernel's packets: tshark and this project read the same.
#[test]
fn the_recording_of_a_linux_kernel() {
    needs_tshark!();
    let path = captures::path("sctp");
    assert_clean(&path);
    let names =
        ["sctp.verification_tag", "sctp.chunk_type", "sctp.chunk_length", "sctp.data_tsn_raw"];
    let told = fields(&path, &names);
    let recorded = captures::read_sctp();
    assert_eq!(told.len(), recorded.len());
    for ((_, _, packet), told) in recorded.iter().zip(told) {
        let join = |values: Vec<String>| values.join(",");
        let chunks = &packet.chunks;
        let tsn = |chunk: &Chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn.to_string()),
            _ => None,
        };
        let expected = [
            format!("0x{:08x}", packet.tag),
            join(chunks.iter().map(|chunk| chunk.number().to_string()).collect()),
            join(chunks.iter().map(|chunk| chunk.length().to_string()).collect()),
            join(chunks.iter().filter_map(tsn).collect()),
        ];
        assert_eq!(told, expected);
    }
}
