//! Reads the recordings of a Linux kernel's DCCP packet by packet: time, addresses and content.
//! Their origin is described in `tests/data/linux-dccp/README.md`.

use std::fs;
use std::path::PathBuf;

use talkspurt_proto::body::Body;
use talkspurt_proto::dccp;
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::sctp;
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::{self, Ends, Hints};

/// Every DCCP recording of the directory, by name.
pub const NAMES: [&str; 17] = [
    "bad-service-code",
    "ccid-disagree",
    "ccid2",
    "ccid2-bidir",
    "ccid2-loss",
    "ccid2-reorder",
    "ccid3",
    "ccid3-bidir",
    "ccid3-loss",
    "cscov",
    "default",
    "ipv6",
    "refused",
    "server-close",
    "server-close-timewait",
    "tx3-rx2",
    "userspace-client",
];

/// One packet of a recording.
#[derive(Clone, Debug)]
pub struct Captured {
    /// Time since the first packet of the recording.
    pub at: Instant,
    /// Addresses and ports.
    pub ends: Ends,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// The DCCP packet.
    pub packet: dccp::Packet,
    /// The IP packet as recorded.
    pub bytes: Vec<u8>,
}

impl Captured {
    /// True if sent by the side that opened the connection (the sender of the Request).
    pub fn is_from_client(&self, recording: &[Self]) -> bool {
        recording[0].ends.src == self.ends.src
    }
}

/// The packets of a recording in their order; all of them are DCCP.
pub fn read(name: &str) -> Vec<Captured> {
    let frames = frames(name);
    let start = frames[0].0;
    let captured = |(nanos, bytes): (u64, Vec<u8>)| {
        let parsed = wire::parse(&bytes, Hints::default()).expect("a sound packet");
        let Body::Dccp(packet) = parsed.body else { panic!("{name} holds another protocol") };
        let at = Instant::from_nanos(nanos - start);
        Captured { at, ends: parsed.ends, ecn: parsed.ecn, packet: packet.into_inner(), bytes }
    };
    frames.into_iter().map(captured).collect()
}

/// The packets of the SCTP recording: the IP packet, addresses and ports, and the SCTP packet.
pub fn read_sctp() -> Vec<(Vec<u8>, Ends, sctp::Packet)> {
    let captured = |(_, bytes): (u64, Vec<u8>)| {
        let parsed = wire::parse(&bytes, Hints::default()).expect("a sound packet");
        let Body::Sctp(packet) = parsed.body else { panic!("another protocol") };
        (bytes, parsed.ends, packet.into_inner())
    };
    frames("sctp").into_iter().map(captured).collect()
}

/// The file of a recording; found from every crate of the workspace.
pub fn path(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/tests/data/linux-dccp");
    PathBuf::from(folder).join(format!("{name}.pcap"))
}

/// The IP packets of a recording, each with its time in nanoseconds, without link padding.
pub fn frames(name: &str) -> Vec<(u64, Vec<u8>)> {
    let bytes = fs::read(path(name)).expect("a recording of this name");
    // The classic format: a header of 24 bytes, then 16 bytes before each frame.
    let unit = match word(&bytes, 0) {
        0xa1b2_c3d4 => 1000,
        0xa1b2_3c4d => 1,
        magic => panic!("{name} is no little-endian pcap file: {magic:#x}"),
    };
    assert_eq!(word(&bytes, 20), 1, "{name} is no Ethernet");
    let (mut rest, mut frames) = (&bytes[24..], Vec::new());
    while !rest.is_empty() {
        let nanos = u64::from(word(rest, 0)) * 1_000_000_000 + u64::from(word(rest, 4)) * unit;
        let length = word(rest, 8) as usize;
        assert_eq!(word(rest, 12) as usize, length, "{name} has a frame cut short");
        let (frame, behind) = rest[16..].split_at(length);
        frames.push((nanos, ip_packet(&frame[14..]).to_vec()));
        rest = behind;
    }
    frames
}

/// The number of bytes in the IP header.
fn ip_packet(bytes: &[u8]) -> &[u8] {
    let short = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let length = if bytes[0] >> 4 == 4 { short(2) } else { 40 + short(4) };
    &bytes[..length]
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
