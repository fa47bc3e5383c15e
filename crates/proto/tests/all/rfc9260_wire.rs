//! The bytes of SCTP: a Linux kernel's packets are re-serialised byte for byte, each kind
//! of chunk has its RFC's layout, wrong lengths are rejected, and mutations cause no
//! harm. The checksum is the kernel's and tshark's (`crates/record/tests/tshark_sctp.rs`).

use crate::captures;
use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use talkspurt_proto::body::Body;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{PacketBox, Payload};
use talkspurt_proto::sctp::{
    Cause, Chunk, Data, ForwardTsn, Init, Number, Packet, Parameter, Sack, Skipped,
};
use talkspurt_proto::wire::{self, Ends, Hints, WireError, checksum::crc32c};

fn ends() -> Ends {
    let address = |text: &str| text.parse().expect("an address");
    let (src, dst) = (address("10.0.0.1"), address("10.0.0.2"));
    Ends { src, dst, src_port: 0x0102, dst_port: 0x0304 }
}

fn data(number: Number, bytes: &'static [u8]) -> Data {
    Data {
        immediate: false,
        unordered: false,
        beginning: true,
        ending: true,
        tsn: 0x0a0b_0c0d,
        stream: 7,
        number,
        ppid: 0x2122_2324,
        payload: Frame::Data(Payload::Real(Bytes::from_static(bytes))),
    }
}

fn bytes_of(packet: &Packet) -> Vec<u8> {
    let mut out = Vec::new();
    wire::sctp::emit(packet, &ends(), &mut out).expect("fits");
    assert_eq!(out.len(), packet.wire_bytes());
    out
}

fn read(bytes: &[u8]) -> Result<Packet, WireError> {
    let Ends { src, dst, .. } = ends();
    wire::sctp::parse(bytes, src, dst, Hints::default()).map(|(_, packet)| packet)
}

/// The chunk's bytes, written and read again.
fn layout(chunk: Chunk) -> Vec<u8> {
    let packet = Packet::of(0xdead_beef, chunk);
    let bytes = bytes_of(&packet);
    assert_eq!(read(&bytes), Ok(packet));
    bytes[12..].to_vec()
}

/// A packet of these bytes behind the common header, its checksum right.
fn sealed(chunks: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, 2, 3, 4, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0];
    bytes.extend_from_slice(chunks);
    seal(&mut bytes);
    bytes
}

fn seal(bytes: &mut [u8]) {
    bytes[8..12].fill(0);
    let checksum = crc32c(bytes);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn a_kernels_packets_are_written_again_byte_for_byte() {
    let recorded = captures::read_sctp();
    assert_eq!(recorded.len(), 14);
    for (bytes, ends, packet) in &recorded {
        let mut again = Vec::new();
        wire::sctp::emit(packet, ends, &mut again).expect("fits");
        assert_eq!(again, bytes[20..], "{packet:?}");
    }
    // What tshark 4.0.17 prints of them (`sctp.chunk_type`).
    let types: Vec<Vec<u8>> =
        recorded.iter().map(|(_, _, p)| p.chunks.iter().map(Chunk::number).collect()).collect();
    let mut expected = vec![vec![1], vec![2], vec![10], vec![11], vec![0], vec![3], vec![0; 3]];
    expected.extend([vec![3], vec![0; 10], vec![0; 6], vec![3], vec![7], vec![8], vec![14]]);
    assert_eq!(types, expected);
    let Chunk::Init(init) = &recorded[0].2.chunks[0] else { panic!("no INIT") };
    assert_eq!((init.tag, init.a_rwnd, init.tsn), (0x8339_a4ab, 106_496, 1_954_306_733));
    let expected =
        [Parameter::SupportedAddressTypes(vec![5]), Parameter::Ecn, Parameter::ForwardTsn];
    assert_eq!(init.parameters, expected);
}

/// RFC 9260 §3.3.1; RFC 7053 §3 for the I bit; RFC 8260 §2.1.
#[test]
fn data_as_pictured() {
    let plain = layout(Chunk::Data(data(Number::Ssn(0x1112), b"voice")));
    let head = [0, 3, 0, 21, 0x0a, 0x0b, 0x0c, 0x0d, 0, 7, 0x11, 0x12, 0x21, 0x22, 0x23, 0x24];
    assert_eq!(plain, [&head[..], b"voice", &[0; 3]].concat());
    let flags = [(1, true, false, false, false), (2, false, true, false, false)];
    let flags =
        flags.into_iter().chain([(4, false, false, true, false), (8, false, false, false, true)]);
    for (bit, ending, beginning, unordered, immediate) in flags {
        let base = data(Number::Ssn(0), b"x");
        let chunk = Data { ending, beginning, unordered, immediate, ..base };
        assert_eq!(layout(Chunk::Data(chunk))[1], bit);
    }
    let first = layout(Chunk::Data(data(Number::Mid(0x3132_3334, 0), b"voice")));
    let head = [64, 3, 0, 25, 0x0a, 0x0b, 0x0c, 0x0d, 0, 7, 0, 0, 0x31, 0x32, 0x33, 0x34];
    assert_eq!(first, [&head[..], &[0x21, 0x22, 0x23, 0x24], b"voice", &[0; 3]].concat());
    let later = Data { beginning: false, ppid: 0, ..data(Number::Mid(1, 0x4142_4344), b"ok") };
    assert_eq!(layout(Chunk::Data(later))[16..22], [0x41, 0x42, 0x43, 0x44, b'o', b'k']);
}

/// RFC 9260 §3.3.2, §3.3.2.1: each parameter but the last is padded within the chunk's length.
#[test]
fn init_as_pictured() {
    let parameters = vec![
        Parameter::SupportedAddressTypes(vec![5]),
        Parameter::Ipv4([10, 0, 0, 1].into()),
        Parameter::SupportedExtensions(Bytes::from_static(&[64, 192, 194])),
    ];
    let init = Init { tag: 1, a_rwnd: 2, outbound: 3, inbound: 4, tsn: 5, parameters };
    let bytes = layout(Chunk::Init(init.clone()));
    let fixed = [1, 0, 0, 43, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 0, 4, 0, 0, 0, 5];
    let addresses = [0, 12, 0, 6, 0, 5, 0, 0, 0, 5, 0, 8, 10, 0, 0, 1];
    assert_eq!(bytes, [&fixed[..], &addresses, &[0x80, 8, 0, 7, 64, 192, 194, 0]].concat());
    assert_eq!(layout(Chunk::InitAck(init))[0], 2);
}

/// RFC 9260 §3.3.4 to §3.3.13.
#[test]
fn the_other_chunks_as_pictured() {
    let sack = Sack { cumulative: 1, a_rwnd: 2, gaps: vec![(2, 3), (5, 5)], duplicates: vec![9] };
    let fixed = [3, 0, 0, 28, 0, 0, 0, 1, 0, 0, 0, 2, 0, 2, 0, 1];
    assert_eq!(
        layout(Chunk::Sack(sack)),
        [&fixed[..], &[0, 2, 0, 3, 0, 5, 0, 5, 0, 0, 0, 9]].concat()
    );
    let value = Bytes::from_static(&[0, 1, 0, 5, 9]);
    assert_eq!(layout(Chunk::Heartbeat(value.clone())), [4, 0, 0, 9, 0, 1, 0, 5, 9, 0, 0, 0]);
    assert_eq!(layout(Chunk::HeartbeatAck(value.clone()))[0], 5);
    assert_eq!(layout(Chunk::CookieEcho(value)), [10, 0, 0, 9, 0, 1, 0, 5, 9, 0, 0, 0]);
    let causes = vec![Cause::new(6, vec![1]), Cause::stale_cookie(7)];
    let expected = [6, 1, 0, 20, 0, 6, 0, 5, 1, 0, 0, 0, 0, 3, 0, 8, 0, 0, 0, 7];
    assert_eq!(layout(Chunk::Abort { reflected: true, causes: causes.clone() }), expected);
    assert_eq!(layout(Chunk::Error(causes))[..2], [9, 0]);
    assert_eq!(layout(Chunk::Shutdown { cumulative: 5 }), [7, 0, 0, 8, 0, 0, 0, 5]);
    assert_eq!(layout(Chunk::ShutdownAck), [8, 0, 0, 4]);
    assert_eq!(layout(Chunk::CookieAck), [11, 0, 0, 4]);
    assert_eq!(layout(Chunk::Ecne { lowest: 5 }), [12, 0, 0, 8, 0, 0, 0, 5]);
    assert_eq!(layout(Chunk::Cwr { lowest: 5 }), [13, 0, 0, 8, 0, 0, 0, 5]);
    assert_eq!(layout(Chunk::ShutdownComplete { reflected: true }), [14, 1, 0, 4]);
    let unknown = Chunk::Unknown { kind: 0xfe, flags: 3, value: Bytes::from_static(&[1]) };
    assert_eq!(layout(unknown), [0xfe, 3, 0, 5, 1, 0, 0, 0]);
}

/// RFC 3758 §3.2, RFC 8260 §2.3.1.
#[test]
fn forward_tsn_as_pictured() {
    let skipped = Skipped::Ssn(vec![(1, 2)]);
    let bytes = layout(Chunk::ForwardTsn(ForwardTsn { cumulative: 9, skipped }));
    assert_eq!(bytes, [192, 0, 0, 12, 0, 0, 0, 9, 0, 1, 0, 2]);
    let skipped = Skipped::Mid(vec![(1, true, 2)]);
    let bytes = layout(Chunk::ForwardTsn(ForwardTsn { cumulative: 9, skipped }));
    assert_eq!(bytes, [194, 0, 0, 16, 0, 0, 0, 9, 0, 1, 0, 1, 0, 0, 0, 2]);
}

#[test]
fn lengths_that_lie_are_refused() {
    let lies: [&[u8]; 14] = [
        // No chunk, half a header, a length below the header, one beyond the packet.
        &[],
        &[11, 0],
        &[11, 0, 0, 3],
        &[4, 0, 0, 9, 1, 2, 3, 4],
        // Too short for DATA, I-DATA, INIT, SACK; too short and too long for SHUTDOWN.
        &[0, 3, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1],
        &[64, 3, 0, 16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0],
        &[1, 0, 0, 8, 0, 0, 0, 1],
        &[3, 0, 0, 8, 0, 0, 0, 1],
        &[7, 0, 0, 4],
        &[7, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1],
        // A SACK of two blocks that has one; a FORWARD TSN with half an entry.
        &[3, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 1],
        &[192, 0, 0, 10, 0, 0, 0, 9, 0, 1, 0, 0],
        // A cause and a parameter longer than their chunk.
        &[9, 0, 0, 8, 0, 6, 0, 9],
        &[1, 0, 0, 24, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 0, 4, 0, 0, 0, 5, 0x80, 0, 0, 5],
    ];
    for lie in lies {
        let told = read(&sealed(lie));
        let refused = matches!(told, Err(WireError::Malformed(_) | WireError::Truncated(_)));
        assert!(refused, "{lie:?}: {told:?}");
    }
    // Missing padding is accepted, since the length is right.
    assert!(read(&sealed(&[4, 0, 0, 5, 1])).is_ok());
}

/// RFC 9260 §6.8: every bit of the packet is under the checksum.
#[test]
fn a_flipped_bit_anywhere_shows() {
    let sound = bytes_of(&Packet::of(5, Chunk::Data(data(Number::Ssn(1), b"abc"))));
    for bit in 0..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(read(&bytes), Err(WireError::Checksum("SCTP")), "bit {bit}");
    }
}

/// RFC 6951 §5.1: the whole SCTP packet is the datagram's payload, and UDP's checksum is there.
#[test]
fn inside_udp() {
    let packet = Packet::of(5, Chunk::CookieAck);
    let outer = Ends { src_port: 9899, dst_port: wire::sctp_udp::PORT, ..ends() };
    let mut bytes = Vec::new();
    wire::sctp_udp::emit(&packet, &ends(), &outer, &mut bytes).expect("fits");
    assert_eq!(bytes[..6], [0x26, 0xab, 0x26, 0xab, 0, 24]);
    assert_ne!(bytes[6..8], [0, 0]);
    assert_eq!(bytes[8..], bytes_of(&packet));
    let told = wire::sctp_udp::parse(&bytes, outer.src, outer.dst, Hints::default());
    assert_eq!(told, Ok((outer, ends(), packet)));
}

/// Lengths by layer match the bytes.
#[test]
fn layers_add_up() {
    let chunks = vec![
        Chunk::Sack(Sack::default()),
        Chunk::Data(data(Number::Ssn(1), b"abc")),
        Chunk::Data(data(Number::Mid(1, 0), b"abcde")),
    ];
    let body = Body::Sctp(PacketBox::new(Packet { tag: 1, chunks }));
    let layers = body.layers();
    assert_eq!((layers.transport, layers.payload), (12 + 16 + 16 + 1 + 20 + 3, 8));
}

fn mutation() -> impl Strategy<Value = (Index, Vec<(Index, u8)>, Option<Index>)> {
    let changes = prop::collection::vec((any::<Index>(), any::<u8>()), 0..6);
    (any::<Index>(), changes, prop::option::weighted(0.3, any::<Index>()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    /// No change of a recorded packet with a correct checksum makes the parser panic; what it
    /// reads is written as bytes that read the same.
    #[test]
    fn mutated_packets_never_panic((which, changes, cut) in mutation()) {
        let recorded = captures::read_sctp();
        let (bytes, ..) = which.get(&recorded);
        let mut bytes = bytes[20..].to_vec();
        for (turn, (at, value)) in changes.into_iter().enumerate() {
            let reach = if turn % 2 == 0 { bytes.len().min(40) } else { bytes.len() };
            bytes[at.index(reach)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(12 + cut.index(bytes.len() - 12));
        }
        seal(&mut bytes);
        if let Ok(packet) = read(&bytes) {
            prop_assert_eq!(read(&bytes_of(&packet)), Ok(packet));
        }
    }
}
