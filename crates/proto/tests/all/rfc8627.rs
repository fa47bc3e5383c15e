//! RFC 8627: FlexFEC with fixed blocks. Expected bytes are written out by hand from the text of the RFC.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use talkspurt_proto::octets::{Hints, WireError};
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rtp::flexfec::{Block, Decoder, Encoder, HEADER_BYTES, Parity};
use talkspurt_proto::rtp::{Packet, wire};

const SSRC: u32 = 0x0102_0304;

/// Three packets of a stream: with marker and payload type 0; with padding, extension bit, one CSRC and
/// payload type 8; and plain, of payload type 111.
fn three() -> [Bytes; 3] {
    let packet =
        |head: [u8; 8], rest: &[u8]| Bytes::from([&head[..], &SSRC.to_be_bytes(), rest].concat());
    [
        packet([0x80, 0x80, 0xff, 0xff, 0, 0, 0, 100], &[0xaa, 0xbb, 0xcc]),
        packet([0xb1, 0x08, 0x00, 0x00, 0, 0, 1, 4], &[0xde, 0xad, 0xbe, 0xef, 7, 0, 0, 1]),
        packet([0x80, 0x6f, 0x00, 0x01, 0, 0, 1, 164], &[0x11]),
    ]
}

/// Packets of a stream of 20 ms, each payload shorter or longer than the one before it.
fn stream(first: u16, count: u16) -> Vec<Bytes> {
    let packet = |number: u16| {
        let mut bytes = Vec::new();
        let len = 5 + usize::from(number * 7 % 11);
        let payload =
            (0..len).map(|at| (usize::from(number) * 31 + at * 3) as u8).collect::<Vec<_>>();
        let packet = Packet {
            payload_type: 96 + (number % 3) as u8,
            marker: number.is_multiple_of(5),
            sequence: first.wrapping_add(number),
            timestamp: 0xffff_ff00_u32.wrapping_add(u32::from(number) * 160),
            ssrc: SSRC,
            payload: Payload::Real(payload.into()),
            ..Packet::default()
        };
        wire::emit(&packet, &mut bytes);
        Bytes::from(bytes)
    };
    (0..count).map(packet).collect()
}

fn block(columns: u8, rows: u8, parity: Parity) -> Block {
    Block { columns, rows, parity }
}

/// The repair packets of a stream, each with the number of the packet that it follows.
fn encode(block: Block, packets: &[Bytes]) -> Vec<(usize, Bytes)> {
    let mut encoder = Encoder::new(block);
    let mut repair = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        repair.extend(encoder.push(packet).into_iter().map(|it| (number, it)));
    }
    repair.extend(encoder.flush().into_iter().map(|it| (packets.len() - 1, it)));
    repair
}

/// The numbers of packets restored, all of which must equal those sent.
fn decode(block: Block, packets: &[Bytes], lost: &[usize]) -> BTreeSet<usize> {
    let mut decoder = Decoder::new(SSRC, block.packets() + 20);
    let mut restored = BTreeSet::new();
    let repair = encode(block, packets);
    for (number, packet) in packets.iter().enumerate() {
        let mut found = Vec::new();
        if !lost.contains(&number) {
            found.extend(decoder.on_source(packet.clone()));
        }
        for (_, payload) in repair.iter().filter(|(after, _)| *after == number) {
            found.extend(decoder.on_repair(payload).expect("our own bytes"));
        }
        for packet in found {
            let place = packets.iter().position(|sent| *sent == packet);
            assert!(restored.insert(place.expect("a packet that was sent")));
        }
    }
    restored
}

/// §6.2 and Figure 13, by hand. First 16 bits: 8080 ^ b108 ^ 806f = b1e7, with R = 0 and F = 1 71e7. Lengths
/// after the fixed header: 3 ^ 8 ^ 1 = 10. Timestamps: 0x64 ^ 0x104 ^ 0x1a4 = 0xc4. SN base 65535, L = 3,
/// D = 0.
#[test]
fn section_6_2_a_repair_packet_by_hand() {
    let mut encoder = Encoder::new(block(3, 0, Parity::Rows));
    let [one, two, three] = three();
    assert!(encoder.push(&one).is_empty());
    assert!(encoder.push(&two).is_empty());
    assert!(encoder.is_open());
    let repair = encoder.push(&three);
    let header = [0x71, 0xe7, 0, 10, 0, 0, 0, 0xc4, 0xff, 0xff, 3, 0];
    let payload = [0xaa ^ 0xde ^ 0x11, 0xbb ^ 0xad, 0xcc ^ 0xbe, 0xef, 7, 0, 0, 1];
    assert_eq!(repair, [[&header[..], &payload].concat()]);
    assert!(!encoder.is_open());
    assert_eq!(encoder.flush(), Vec::<Bytes>::new());
}

/// §6.3.2 and §6.3.3: P, X, CC, M, PT, length, timestamp, CSRC list and payload; sequence numbers wrap.
#[test]
fn section_6_3_every_field_is_restored() {
    let packets = three();
    for lost in 0..3 {
        assert_eq!(decode(block(3, 0, Parity::Rows), &packets, &[lost]), BTreeSet::from([lost]));
    }
    assert_eq!(decode(block(3, 0, Parity::Rows), &packets, &[0, 2]), BTreeSet::new());
    assert_eq!(decode(block(3, 0, Parity::Rows), &packets, &[]), BTreeSet::new());
}

/// Figure 14, and the order in which repair packets are sent.
#[test]
fn section_4_2_2_2_rows_and_columns_are_told_by_l_and_d() {
    let packets = stream(65_530, 12);
    let fields = |block| {
        let field = |(after, it): (usize, Bytes)| {
            (after, u16::from_be_bytes([it[8], it[9]]).wrapping_sub(65_530), it[10], it[11])
        };
        encode(block, &packets).into_iter().map(field).collect::<Vec<_>>()
    };
    // After which packet, base, L, D. Rows alone: D = 0.
    let rows = [(3, 0, 4, 0), (7, 4, 4, 0), (11, 8, 4, 0)];
    assert_eq!(fields(block(4, 0, Parity::Rows)), rows);
    let columns = [(8, 0, 4, 3), (9, 1, 4, 3), (10, 2, 4, 3), (11, 3, 4, 3)];
    assert_eq!(fields(block(4, 3, Parity::Columns)), columns);
    // Both: rows have D = 1, and the columns follow the last row.
    let both = [(3, 0, 4, 1), (7, 4, 4, 1), (11, 8, 4, 1)];
    let after = [(11, 0, 4, 3), (11, 1, 4, 3), (11, 2, 4, 3), (11, 3, 4, 3)];
    assert_eq!(fields(block(4, 3, Parity::Both)), [&both[..], &after].concat());
    assert_eq!(block(4, 3, Parity::Both).repair_packets(), 7);
}

/// A block that ends early: rows and columns are shorter, and no packet is left without protection.
#[test]
fn an_unfinished_block_is_protected() {
    let packets = stream(7, 6);
    let fields = |block| {
        let field = |(after, it): (usize, Bytes)| (after, it[9] - 7, it[10], it[11]);
        encode(block, &packets).into_iter().map(field).collect::<Vec<_>>()
    };
    assert_eq!(fields(block(4, 0, Parity::Rows)), [(3, 0, 4, 0), (5, 4, 2, 0)]);
    // Columns of two packets, and of one: L = 1 and D = 0 repeat it.
    let columns = [(5, 0, 4, 2), (5, 1, 4, 2), (5, 2, 1, 0), (5, 3, 1, 0)];
    assert_eq!(fields(block(4, 3, Parity::Columns)), columns);
    // A row protects what is alone in its column.
    let both = [(3, 0, 4, 1), (5, 4, 2, 1), (5, 0, 4, 2), (5, 1, 4, 2)];
    assert_eq!(fields(block(4, 3, Parity::Both)), both);
    for parity in [Parity::Rows, Parity::Columns, Parity::Both] {
        for lost in 0..6 {
            let restored = decode(block(4, 3, parity), &packets, &[lost]);
            assert_eq!(restored, BTreeSet::from([lost]), "{parity:?}");
        }
    }
}

/// §1.1.3: a burst of L packets in columns; §1.1.1: one packet of each row.
#[test]
fn section_1_1_what_each_parity_restores() {
    let packets = stream(0, 12);
    let burst: Vec<usize> = (2..6).collect();
    let all: BTreeSet<usize> = burst.iter().copied().collect();
    assert_eq!(decode(block(4, 3, Parity::Columns), &packets, &burst), all);
    // In rows, the burst leaves two losses in each.
    assert!(decode(block(4, 0, Parity::Rows), &packets, &burst).is_empty());
    assert_eq!(decode(block(4, 0, Parity::Rows), &packets, &[1, 6, 8]), BTreeSet::from([1, 6, 8]));
    // Two losses in a column.
    assert!(decode(block(4, 3, Parity::Columns), &packets, &[1, 5]).is_empty());
}

/// Figures 16 to 18: 1 and 11 are restored by columns 1 and 3 (here numbered from 0), then 2 and 10.
#[test]
fn section_6_3_4_the_example_of_iterative_decoding() {
    let packets = stream(1, 12);
    let lost = [0, 1, 9, 10];
    let restored = decode(block(4, 3, Parity::Both), &packets, &lost);
    assert_eq!(restored, lost.into_iter().collect());
    // Neither rows nor columns alone can do that: column 2 has lost two packets.
    let columns = decode(block(4, 3, Parity::Columns), &packets, &lost);
    assert_eq!(columns, BTreeSet::from([0, 10]));
}

/// Figure 8: four losses at the corners of a rectangle are beyond two-dimensional parity.
#[test]
fn section_1_1_4_a_rectangle_of_losses_stays_lost() {
    let packets = stream(1, 12);
    assert!(decode(block(4, 3, Parity::Both), &packets, &[0, 1, 8, 9]).is_empty());
    assert_eq!(decode(block(4, 3, Parity::Both), &packets, &[0, 1, 8]).len(), 3);
}

/// A source packet that arrives after the repair packet still counts.
#[test]
fn packets_out_of_order() {
    let packets = stream(65_534, 4);
    let [(_, repair)] = &encode(block(4, 0, Parity::Rows), &packets)[..] else { panic!("one row") };
    let mut decoder = Decoder::new(SSRC, 24);
    assert_eq!(decoder.on_repair(repair), Ok(vec![]));
    assert_eq!(decoder.on_source(packets[3].clone()), Vec::<Bytes>::new());
    assert_eq!(decoder.on_source(packets[0].clone()), Vec::<Bytes>::new());
    assert_eq!(decoder.on_source(packets[0].clone()), Vec::<Bytes>::new());
    assert_eq!(decoder.on_source(packets[2].clone()), [packets[1].clone()]);
    // The packet itself, or the repair packet once more, changes nothing.
    assert_eq!(decoder.on_source(packets[1].clone()), Vec::<Bytes>::new());
    assert_eq!(decoder.on_repair(repair), Ok(vec![]));
}

#[test]
fn section_4_2_2_what_must_be_ignored() {
    let packets = stream(0, 4);
    let (_, repair) = encode(block(4, 0, Parity::Rows), &packets).remove(0);
    let with = |at: usize, value: u8| {
        let mut bytes = repair.to_vec();
        bytes[at] = value;
        let mut decoder = Decoder::new(SSRC, 24);
        packets[1..].iter().for_each(|packet| drop(decoder.on_source(packet.clone())));
        decoder.on_repair(&bytes.into())
    };
    assert_eq!(with(10, 4), Ok(vec![packets[0].clone()]));
    let variant = Err(WireError::Unsupported("FEC header variant"));
    // R = 1, F = 0 and 1; R = 0, F = 0.
    for bits in [0x80, 0xc0, 0x00] {
        assert_eq!(with(0, bits), variant);
    }
    assert_eq!(with(10, 0), Err(WireError::Malformed("FEC block without columns")));
    // L and D beyond the repair window; a base far away.
    assert_eq!(with(10, 25), Ok(vec![]));
    assert_eq!(with(11, 200), Ok(vec![]));
    assert_eq!(with(8, 0x40), Ok(vec![]));
    // A length recovery that is longer than the repair packet would need padding that nobody sent.
    assert_eq!(with(2, 0xff), Ok(vec![]));
    let mut decoder = Decoder::new(SSRC, 24);
    for end in 0..HEADER_BYTES {
        let result = decoder.on_repair(&repair.slice(..end));
        assert_eq!(result, Err(WireError::Truncated("FEC header")));
    }
    // No RTP packets, and one of another source.
    assert!(decoder.on_source(Bytes::from_static(&[0x80; 11])).is_empty());
    assert!(decoder.on_source(Bytes::from_static(&[0x40; 12])).is_empty());
    assert!(decoder.on_source(Bytes::from_static(&[0x80; 12])).is_empty());
}

fn parity() -> impl Strategy<Value = Parity> {
    prop_oneof![Just(Parity::Rows), Just(Parity::Columns), Just(Parity::Both)]
}

/// The packets that peeling can restore: RFC 8627 §6.3.4 on sets of numbers, with rows and columns in turn.
fn expected(block: Block, count: usize, lost: &[usize]) -> BTreeSet<usize> {
    let (columns, size) = (usize::from(block.columns), block.packets() as usize);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for begin in (0..count).step_by(size) {
        let whole: Vec<usize> = (begin..count.min(begin + size)).collect();
        if block.parity != Parity::Columns {
            groups.extend(whole.chunks(columns).map(<[usize]>::to_vec));
        }
        if block.parity != Parity::Rows {
            let column = |first| whole.iter().copied().skip(first).step_by(columns).collect();
            // Of an unfinished block, a column of one packet is left to its row.
            let is_sent = |column: &Vec<usize>| block.parity != Parity::Both || column.len() > 1;
            groups.extend((0..columns).map(column).filter(is_sent));
        }
    }
    let mut missing: BTreeSet<usize> = lost.iter().copied().filter(|it| *it < count).collect();
    let before = missing.clone();
    loop {
        let single = groups.iter().find_map(|group| {
            let mut of = group.iter().filter(|it| missing.contains(it));
            of.next().filter(|_| of.next().is_none()).copied()
        });
        let Some(single) = single else { return before.difference(&missing).copied().collect() };
        missing.remove(&single);
    }
}

proptest! {
    /// Any losses, blocks and beginnings: exactly what the algorithm of the RFC restores is restored, bit by
    /// bit.
    #[test]
    fn restores_what_the_algorithm_of_the_rfc_does(
        first in any::<u16>(),
        count in 1..80_u16,
        parity in parity(),
        (columns, rows) in (1..9_u8, 2..7_u8),
        lost in prop::collection::vec(0..80_usize, 0..30),
    ) {
        let block = block(columns, rows, parity);
        let packets = stream(first, count);
        let restored = decode(block, &packets, &lost);
        prop_assert_eq!(restored, expected(block, packets.len(), &lost));
    }

    /// Bytes from anybody: no panic, and what is restored has an RTP header of the stream.
    #[test]
    fn any_bytes_may_come(
        window in 0..200_u32,
        script in prop::collection::vec(
            (
                any::<bool>(),
                prop::collection::vec(any::<u8>(), 0..60),
                0..3_u8,
                any::<u8>(),
                any::<u8>(),
            ),
            0..60,
        ),
    ) {
        let mut decoder = Decoder::new(SSRC, window);
        for (is_source, mut bytes, forged, sequence, size) in script {
            if forged > 0 && bytes.len() >= 12 {
                bytes[0] = if is_source { bytes[0] & 0x3f | 0x80 } else { bytes[0] & 0x3f | 0x40 };
                let at = if is_source { 2 } else { 8 };
                bytes[at..at + 2].copy_from_slice(&[0, sequence]);
                if is_source {
                    bytes[8..12].copy_from_slice(&SSRC.to_be_bytes());
                } else {
                    bytes[10..12].copy_from_slice(&[size % 8, size / 8 % 8 * (forged - 1)]);
                }
            }
            let bytes = Bytes::from(bytes);
            let restored = if is_source {
                decoder.on_source(bytes)
            } else {
                decoder.on_repair(&bytes).unwrap_or_default()
            };
            for packet in restored {
                prop_assert!(packet.len() >= 12 && packet[0] >> 6 == 2);
                prop_assert_eq!(&packet[8..12], &SSRC.to_be_bytes()[..]);
                let _ = wire::parse(&packet, Hints::default());
            }
        }
    }
}
