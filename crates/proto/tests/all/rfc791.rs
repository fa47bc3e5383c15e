//! RFC 791: fragmentation (§3.2), and that its reassembly restores what was cut.

use talkspurt_proto::body::{Layers, RealPacket};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::wire::ipv4::fragments;

const DF: u16 = 0x4000;
const MF: u16 = 0x2000;

/// A packet of UDP with these options, flags with offset, and data.
fn packet(options: &[u8], flags: u16, data: &[u8]) -> RealPacket {
    let header = 20 + options.len();
    let total = (header + data.len()) as u16;
    let mut bytes = vec![0x40 | (header / 4) as u8, 0xb9];
    bytes.extend_from_slice(&total.to_be_bytes());
    bytes.extend_from_slice(&[0xab, 0xcd]);
    bytes.extend_from_slice(&flags.to_be_bytes());
    bytes.extend_from_slice(&[9, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend_from_slice(options);
    let sum = checksum(&bytes);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend_from_slice(data);
    let transport = (options.len() + 8.min(data.len())) as u32;
    let payload = (bytes.len() - 20) as u32 - transport;
    let layers = Layers { transport, media: 0, payload };
    RealPacket { bytes: bytes.into(), layers, protocol: 17, ttl: 9 }
}

/// RFC 1071 §1, with an end-around carry at each step.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    !words.fold(0, |sum: u32, word| (sum + word) % 0x1_0000 + (sum + word) / 0x1_0000) as u16
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn header_bytes(bytes: &[u8]) -> usize {
    usize::from(bytes[0] & 0xf) * 4
}

/// RFC 791 §3.2, "An Example Reassembly Procedure": data by fragment offset, and the first header. Nothing may be
/// missing or there twice.
fn reassembled(pieces: &[RealPacket]) -> (Vec<u8>, Vec<u8>, bool) {
    let offset = |piece: &RealPacket| usize::from(word(&piece.bytes, 6) & 0x1fff) * 8;
    let mut pieces: Vec<_> = pieces.iter().collect();
    pieces.sort_by_key(|piece| offset(piece));
    let begin = offset(pieces[0]);
    let mut data = Vec::new();
    for piece in &pieces {
        assert_eq!(offset(piece), begin + data.len());
        data.extend_from_slice(&piece.bytes[header_bytes(&piece.bytes)..]);
    }
    let last = word(&pieces[pieces.len() - 1].bytes, 6);
    (pieces[0].bytes[..header_bytes(&pieces[0].bytes)].to_vec(), data, last & MF != 0)
}

fn check(whole: &RealPacket, pieces: &[RealPacket], mtu: usize, copied: &[u8]) {
    let header = header_bytes(&whole.bytes);
    for (number, piece) in pieces.iter().enumerate() {
        let bytes = &piece.bytes;
        assert!(bytes.len() <= mtu, "{} {mtu}", bytes.len());
        assert_eq!(usize::from(word(bytes, 2)), bytes.len());
        assert_eq!(checksum(&bytes[..header_bytes(bytes)]), 0);
        // All but lengths, flags and checksum; a fragment may be cut again.
        assert_eq!(bytes[0] >> 4, 4);
        assert_eq!((bytes[1], &bytes[4..6]), (whole.bytes[1], &whole.bytes[4..6]));
        assert_eq!((&bytes[8..10], &bytes[12..20]), (&whole.bytes[8..10], &whole.bytes[12..20]));
        assert_eq!(word(bytes, 6) & (DF | 0x8000), word(&whole.bytes, 6) & 0x8000);
        let is_last = number + 1 == pieces.len();
        let goes_on = !is_last || word(&whole.bytes, 6) & MF != 0;
        assert_eq!(word(bytes, 6) & MF != 0, goes_on);
        let data = bytes.len() - header_bytes(bytes);
        assert!(
            is_last || (data.is_multiple_of(8) && bytes.len() + 8 > mtu),
            "as long as possible"
        );
        let options = &bytes[20..header_bytes(bytes)];
        let (same, zero) = match number {
            0 => options.split_at(header - 20),
            _ => options.split_at(copied.len()),
        };
        assert_eq!(same, if number == 0 { &whole.bytes[20..header] } else { copied });
        assert!(zero.len() < 4 && zero.iter().all(|byte| *byte == 0));
        assert_eq!(piece.layers.total() as usize, bytes.len() - 20);
        assert!(piece.layers.transport as usize >= options.len());
        assert_eq!((piece.protocol, piece.ttl), (17, 9));
    }
    let (first, data, goes_on) = reassembled(pieces);
    assert_eq!(data, whole.bytes[header..]);
    assert_eq!(goes_on, word(&whole.bytes, 6) & MF != 0);
    assert_eq!(first[12..], whole.bytes[12..header]);
}

/// RFC 791 appendix A, example 2: 452 bytes of data on a network that carries 280 bytes.
#[test]
fn the_example_of_appendix_a() {
    let data: Vec<u8> = (0..452_u32).map(|at| at as u8).collect();
    let whole = packet(&[], 0, &data);
    let pieces = fragments(&whole, 280).expect("it may be cut");
    check(&whole, &pieces, 280, &[]);
    let told: Vec<_> = pieces.iter().map(|it| (word(&it.bytes, 2), word(&it.bytes, 6))).collect();
    assert_eq!(told, [(276, MF), (216, 32)]);
}

/// RFC 791 §3.1: an internet datagram marked don't fragment is not to be fragmented under any circumstances.
#[test]
fn what_must_not_be_cut_is_not() {
    assert_eq!(fragments(&packet(&[], DF, &[7; 500]), 280), None);
    assert_eq!(fragments(&packet(&[], DF | MF, &[7; 500]), 280), None);
    // Of IPv6; cut short; beyond the longest packet.
    let mut other = packet(&[], 0, &[7; 500]);
    for bytes in [vec![0x60; 500], vec![0x45; 19], Vec::new(), vec![0x4f; 30]] {
        other.bytes = bytes.into();
        assert_eq!(fragments(&other, 280), None);
    }
    assert_eq!(fragments(&packet(&[], 0x1fff, &[7; 500]), 280), None);
}

/// Options of random kinds and lengths, and those with the copied flag.
fn options(rng: &mut Rng) -> (Vec<u8>, Vec<u8>) {
    let (mut all, mut copied) = (Vec::new(), Vec::new());
    while rng.chance(0.7) {
        let kind = rng.below(256) as u8;
        let length = if kind < 2 { 1 } else { 2 + rng.below(12) as usize };
        if all.len() + length > 40 {
            break;
        }
        if kind == 0 {
            break;
        }
        let mut option = vec![kind];
        if kind > 1 {
            option.push(length as u8);
            option.resize_with(length, || rng.below(256) as u8);
        }
        all.extend_from_slice(&option);
        if kind & 0x80 != 0 {
            copied.extend_from_slice(&option);
        }
    }
    // The end of the list, and anything behind it.
    while !all.len().is_multiple_of(4) {
        all.push(0);
    }
    (all, copied)
}

#[test]
fn random_packets_are_restored() {
    let mut rng = Rng::new(1, "fragments");
    for _ in 0..2000 {
        let (options, copied) = options(&mut rng);
        let range = if rng.chance(0.5) { 60 } else { 9000 };
        let mtu = 68 + rng.below(range) as u32;
        let most = (mtu as u64 * 20).min(65_535 - 60);
        let data: Vec<u8> = (0..rng.below(most)).map(|_| rng.below(256) as u8).collect();
        // One that is already a fragment has a multiple of eight bytes before it.
        let room = (65_535 - data.len() as u64) / 8;
        let offset = if rng.chance(0.5) { 0 } else { rng.below(room + 1).min(0x1fff) as u16 };
        let more = if rng.chance(0.5) { MF } else { 0 };
        let reserved = if rng.chance(0.1) { 0x8000 } else { 0 };
        let whole = packet(&options, reserved | more | offset, &data);
        let pieces = fragments(&whole, mtu).expect("it may be cut");
        check(&whole, &pieces, mtu as usize, &copied);
        // Fragments of fragments, on a network that carries less.
        let less = 68 + rng.below(u64::from(mtu - 67)) as u32;
        let mut again: Vec<_> = pieces
            .iter()
            .flat_map(|piece| match piece.bytes.len() as u32 > less {
                true => fragments(piece, less).expect("it may be cut"),
                false => vec![piece.clone()],
            })
            .collect();
        let first = rng.below(again.len() as u64) as usize;
        again.rotate_left(first);
        assert!(again.iter().all(|piece| piece.bytes.len() <= less as usize));
        let (_, restored, goes_on) = reassembled(&again);
        assert_eq!((restored, goes_on), (data, more != 0));
    }
}

/// Options that are no options do no harm.
#[test]
fn random_bytes_are_cut_without_panic() {
    let mut rng = Rng::new(2, "fragments");
    for _ in 0..20_000 {
        let mut packet = packet(&[], 0, &[]);
        let mut bytes: Vec<u8> = (0..rng.below(400)).map(|_| rng.below(256) as u8).collect();
        if let [version, _, _, _, _, _, flags, ..] = &mut bytes[..] {
            *version = 0x40 | *version & 0xf;
            *flags &= 0xbf;
        }
        packet.bytes = bytes.into();
        let mtu = 68 + rng.below(100) as u32;
        for piece in fragments(&packet, mtu).into_iter().flatten() {
            assert!(piece.bytes.len() <= mtu as usize);
            assert_eq!(checksum(&piece.bytes[..header_bytes(&piece.bytes)]), 0);
        }
    }
}
