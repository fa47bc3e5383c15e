//! A Linux kernel's DCCP packets: each parses and is re-serialised byte for byte,
//! and their numbers match tshark's. Random changes cause no harm.

use std::sync::LazyLock;

use crate::captures::{Captured, NAMES, frames, read};
use proptest::prelude::*;
use proptest::sample::Index;
use talkspurt_proto::dccp::Options;
use talkspurt_proto::dccp::options::Opt;
use talkspurt_proto::wire::{self, Ends, Hints};

/// Packets of each recording by type (0 to 9), as tshark 4.0.17 counts them (`dccp.type`).
const COUNTS: [(&str, [usize; 10]); 17] = [
    ("bad-service-code", [1, 0, 0, 0, 0, 0, 0, 1, 0, 0]),
    ("ccid-disagree", [1, 0, 0, 0, 0, 0, 0, 1, 0, 0]),
    ("ccid2", [1, 1, 0, 29, 30, 0, 1, 1, 0, 0]),
    ("ccid2-bidir", [1, 1, 0, 98, 100, 0, 0, 1, 0, 0]),
    ("ccid2-loss", [1, 1, 0, 572, 771, 0, 1, 1, 0, 0]),
    ("ccid2-reorder", [1, 1, 0, 149, 149, 0, 1, 3, 1, 1]),
    ("ccid3", [1, 1, 74, 76, 1, 0, 1, 1, 0, 0]),
    ("ccid3-bidir", [1, 1, 99, 101, 1, 0, 0, 1, 0, 0]),
    ("ccid3-loss", [1, 1, 1709, 143, 5, 0, 1, 1, 0, 0]),
    ("cscov", [1, 1, 0, 9, 10, 0, 1, 1, 0, 0]),
    ("default", [1, 1, 0, 29, 30, 0, 1, 1, 0, 0]),
    ("ipv6", [1, 1, 0, 9, 10, 0, 1, 1, 0, 0]),
    ("refused", [1, 0, 0, 0, 0, 0, 0, 1, 0, 0]),
    ("server-close", [1, 1, 2, 25, 23, 1, 1, 1, 0, 0]),
    ("server-close-timewait", [1, 1, 2, 25, 23, 0, 1, 1, 0, 0]),
    ("tx3-rx2", [1, 1, 49, 100, 51, 0, 1, 1, 0, 0]),
    ("userspace-client", [1, 1, 0, 3, 4, 0, 1, 1, 0, 0]),
];

#[test]
fn every_packet_of_every_recording_is_counted() {
    assert_eq!(COUNTS.map(|(name, _)| name), NAMES);
    for (name, expected) in COUNTS {
        let mut counted = [0; 10];
        for captured in read(name) {
            counted[usize::from(captured.packet.kind.number())] += 1;
        }
        assert_eq!(counted, expected, "{name}");
        assert_eq!(frames(name).len(), expected.iter().sum::<usize>(), "{name}");
    }
}

#[test]
fn every_packet_is_written_again_byte_for_byte() {
    for name in NAMES {
        for captured in read(name) {
            let ip_header = if captured.ends.src.is_ipv4() { 20 } else { 40 };
            let mut bytes = Vec::new();
            wire::dccp::emit(&captured.packet, &captured.ends, &mut bytes).expect("fits");
            assert_eq!(bytes, captured.bytes[ip_header..], "{name} at {:?}", captured.at);
        }
    }
}

#[test]
fn every_option_of_every_packet_can_be_read_and_is_written_again() {
    let mut options = 0;
    for name in NAMES {
        for captured in read(name) {
            let mut again = Options::default();
            for option in captured.packet.options.iter() {
                let option = option.expect("a sound option");
                assert!(!matches!(option, Opt::Unknown { .. }), "{name}: {option:?}");
                again.push(option);
                options += 1;
            }
            assert_eq!(again, captured.packet.options, "{name} at {:?}", captured.at);
        }
    }
    // As many values as `tshark -T fields -e dccp.option_type` prints of the same files.
    assert_eq!(options, 7532);
}

/// A change of a recorded packet: some bytes changed, the end cut off.
fn mutation() -> impl Strategy<Value = (usize, Index, Vec<(Index, u8)>, Option<Index>)> {
    let changes = prop::collection::vec((any::<Index>(), any::<u8>()), 0..6);
    (0..NAMES.len(), any::<Index>(), changes, prop::option::weighted(0.3, any::<Index>()))
}

static RECORDINGS: LazyLock<Vec<Vec<Captured>>> =
    LazyLock::new(|| NAMES.iter().map(|name| read(name)).collect());

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    /// No change of a recorded packet, even with a correct checksum, makes the parser panic;
    /// and what it reads is written as bytes that read the same.
    #[test]
    fn mutated_packets_never_panic((name, which, changes, cut) in mutation()) {
        let captured = which.get(&RECORDINGS[name]);
        let Ends { src, dst, .. } = captured.ends;
        let mut bytes = captured.bytes[if src.is_ipv4() { 20 } else { 40 }..].to_vec();
        // Half of the changes affect the header, which has the most checks.
        for (turn, (at, value)) in changes.into_iter().enumerate() {
            let reach = if turn % 2 == 0 { bytes.len().min(40) } else { bytes.len() };
            bytes[at.index(reach)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let hints = Hints::default();
        let media = Hints { media: true, ..hints };
        for _ in 0..2 {
            let _ = wire::dccp::parse(&bytes, src, dst, media);
            if let Ok((ends, packet, damage)) = wire::dccp::parse(&bytes, src, dst, hints) {
                packet.options.iter().for_each(drop);
                let mut again = Vec::new();
                wire::dccp::emit(&packet, &ends, &mut again).expect("it had bytes");
                let read = wire::dccp::parse(&again, src, dst, hints);
                prop_assert_eq!(read, Ok((ends, packet, damage)));
            }
            if bytes.len() < 12 {
                break;
            }
            // Now with a correct checksum, as far as the changed coverage goes.
            bytes[6..8].fill(0);
            let covered = match bytes[5] & 0xf {
                0 => bytes.len(),
                words => (usize::from(bytes[4]) + usize::from(words) - 1) * 4,
            };
            let sum = wire::checksum::Sum::pseudo_header(src, dst, 33, bytes.len());
            let sum = sum.over(&bytes[..covered.min(bytes.len())]).finish();
            bytes[6..8].copy_from_slice(&sum.to_be_bytes());
        }
    }
}
