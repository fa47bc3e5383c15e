//! The capture file and the probe that writes it, byte by byte and note by note. `tshark.rs` tests
//! how Wireshark reads it.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use talkspurt_proto::body::Body;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::{BodyId, Ecn, IpVersion, Packet, PacketBox, Payload};
use talkspurt_proto::probe::{DropReason, Note, Place, Probe};
use talkspurt_proto::time::Instant;
use talkspurt_proto::wire::{self, Ends, Hints};
use talkspurt_proto::{dccp, tcp, tfrc};
use talkspurt_record::pcapng::{CaptureProbe, Direction, Pcapng, Remarks};

/// A writer whose bytes can be read afterwards, and which is full after some of them.
#[derive(Clone)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: usize,
}

impl Disk {
    fn of(room: usize) -> Self {
        Self { bytes: Arc::default(), room }
    }
    fn blocks(&self) -> Vec<(u32, Vec<u8>)> {
        let bytes = self.bytes.lock().expect("not poisoned").clone();
        let (mut blocks, mut rest) = (Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let length = word(rest, 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(rest, length - 4) as usize, length, "lengths at both ends");
            blocks.push((word(rest, 0), rest[8..length - 4].to_vec()));
            rest = &rest[length..];
        }
        blocks
    }
}
impl io::Write for Disk {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let mut bytes = self.bytes.lock().expect("not poisoned");
        if bytes.len() + buffer.len() > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        bytes.extend_from_slice(buffer);
        Ok(buffer.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("writable");
    folder
}
fn names(folder: &PathBuf) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("readable");
    entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into()).collect()
}

#[test]
fn the_blocks_are_laid_out_as_the_draft_says() {
    let disk = Disk::of(10_000);
    let mut file = Pcapng::to(disk.clone(), &["uplink", "b"]).expect("room");
    let now = Instant::from_nanos(0x1_0000_0002);
    let remarks = Remarks { comment: Some("hi"), direction: Some(Direction::Outbound) };
    file.packet(1, now, &[0x45, 1, 2, 3, 4], 1500, remarks);
    file.finish().expect("room");
    let blocks = disk.blocks();
    let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 1, 6]);
    assert_eq!(word(&blocks[0].1, 0), 0x1a2b_3c4d);
    // LINKTYPE_RAW, no snap length; if_name (2), if_tsresol (9): 10⁻⁹.
    assert_eq!(blocks[1].1[..8], [101, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(blocks[1].1[8..20], *b"\x02\0\x06\0uplink\0\0");
    assert_eq!(blocks[1].1[20..28], [9, 0, 1, 0, 9, 0, 0, 0]);
    let packet = &blocks[3].1;
    let fields: Vec<u32> = (0..5).map(|i| word(packet, i * 4)).collect();
    assert_eq!(fields, [1, 1, 2, 5, 1500]);
    assert_eq!(packet[20..28], [0x45, 1, 2, 3, 4, 0, 0, 0]);
    assert_eq!(packet[28..36], *b"\x01\0\x02\0hi\0\0");
    assert_eq!(packet[36..44], [2, 0, 4, 0, 2, 0, 0, 0]);
    assert_eq!(packet[44..], [0; 4]);
}

#[test]
fn a_file_has_its_name_only_when_complete() {
    let folder = folder("names");
    let mut file = Pcapng::create(folder.join("a.pcapng"), &["a"]).expect("writable");
    file.packet(0, Instant::ZERO, &[0x45], 1, Remarks::default());
    assert_eq!(names(&folder), ["a.pcapng.part"]);
    file.finish().expect("writable");
    assert_eq!(names(&folder), ["a.pcapng"]);
    // One that is abandoned leaves nothing.
    drop(Pcapng::create(folder.join("b.pcapng"), &["b"]).expect("writable"));
    assert_eq!(names(&folder), ["a.pcapng"]);
    let error = Pcapng::create(folder.join("none/c.pcapng"), &["c"]).expect_err("no such folder");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn the_first_failure_is_kept_and_told_at_the_end() {
    let mut file = Pcapng::to(Disk::of(200), &["a"]).expect("room for the header");
    assert!(!file.failed());
    for _ in 0..100 {
        file.packet(0, Instant::ZERO, &[0x45; 40], 40, Remarks::default());
    }
    assert!(file.failed());
    assert_eq!(file.finish().expect_err("full").kind(), io::ErrorKind::StorageFull);
    let full = Pcapng::to(Disk::of(10), &["a"]).expect_err("no room for the header");
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
}

const ROUTE: u32 = 5;

fn ends() -> Ends {
    let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    Ends { src, dst, src_port: 1, dst_port: 2 }
}
fn label(number: u32, hop: u8, ecn: Ecn) -> Packet {
    let (body, sent, version) = (BodyId(number % 4), Instant::ZERO, IpVersion::V4);
    let (ip_bytes, flow, dscp) = (60, 3, 0);
    Packet { body, ip_bytes, route: ROUTE, flow, number, hop, ecn, dscp, version, sent }
}
fn body(number: u32) -> Body {
    Body::Udp(Frame::Data(Payload::Virtual { offset: u64::from(number) * 32, len: 32 }))
}
fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}
fn sent(probe: &mut CaptureProbe, millis: u64, packet: &Packet) {
    let body = body(packet.number);
    probe.record(at(millis), Place::Peer(6), &Note::Sent { packet, body: &body });
}
fn dequeued(probe: &mut CaptureProbe, millis: u64, link: u32, packet: &Packet) {
    let note = Note::Dequeued { packet, packets: 0, bytes: 0 };
    probe.record(at(millis), Place::Link(link), &note);
}
/// Interface, milliseconds and bytes of every packet on the disk.
fn packets(disk: &Disk) -> Vec<(u32, u32, Vec<u8>)> {
    let blocks = disk.blocks().into_iter().filter(|(kind, _)| *kind == 6);
    blocks
        .map(|(_, block)| {
            let bytes = block[20..20 + word(&block, 12) as usize].to_vec();
            (word(&block, 0), word(&block, 8) / 1_000_000, bytes)
        })
        .collect()
}

#[test]
fn a_packet_is_written_as_it_is_on_the_link() {
    let disk = Disk::of(10_000);
    let mut probe = CaptureProbe::new([((3, ROUTE), ends())]);
    let file = Pcapng::to(disk.clone(), &["a"]).expect("room");
    probe.tap(file, &[7]);
    sent(&mut probe, 1, &label(9, 0, Ecn::Ect0));
    dequeued(&mut probe, 2, 6, &label(9, 0, Ecn::Ect0));
    // At the second link it has one link behind it and was marked on the way.
    dequeued(&mut probe, 4, 7, &label(9, 1, Ecn::Ce));
    probe.finish().expect("room");
    let seen = packets(&disk);
    assert_eq!(seen.len(), 1, "link 6 is not captured");
    assert_eq!((seen[0].0, seen[0].1), (0, 4));
    let hints = Hints { virtual_offset: Some(9 * 32), ..Hints::default() };
    let parsed = wire::parse(&seen[0].2, hints).expect("well formed");
    assert_eq!((parsed.ends, parsed.ecn, parsed.ttl), (ends(), Ecn::Ce, 63));
    assert_eq!(parsed.body, body(9));
}

#[test]
fn of_a_packet_as_much_is_kept_as_asked_for() {
    let path = folder("cut").join("a.pcapng");
    let mut probe = CaptureProbe::new([((3, ROUTE), ends())]);
    probe.tap(Pcapng::cut(&path, &["a"], 50).expect("writable"), &[0]);
    sent(&mut probe, 1, &label(9, 0, Ecn::NotEct));
    dequeued(&mut probe, 4, 0, &label(9, 0, Ecn::NotEct));
    probe.finish().expect("writable");
    let disk = Disk::of(10_000);
    disk.bytes.lock().expect("not poisoned").extend(std::fs::read(path).expect("readable"));
    let blocks = disk.blocks();
    assert_eq!(word(&blocks[1].1, 4), 50, "of the interface");
    let packet = &blocks[2].1;
    // A datagram of 32 bytes: 60 with its headers.
    assert_eq!((word(packet, 12), word(packet, 16)), (50, 60));
    let mut whole = Vec::new();
    wire::emit(&label(9, 0, Ecn::NotEct), &body(9), &ends(), &mut whole).expect("fits");
    assert_eq!(packet[20..], [&whole[..50], &[0, 0]].concat());
}

/// As they are on the wire, checksums and all; `wire::parse` checks these.
#[test]
fn dccp_and_tfrc_are_written_too() {
    let disk = Disk::of(10_000);
    let mut probe = CaptureProbe::new([((3, ROUTE), ends())]);
    probe.tap(Pcapng::to(disk.clone(), &["a"]).expect("room"), &[0]);
    let payload = Frame::Data(Payload::Real(Bytes::from_static(b"speech")));
    let (seq, ack) = (dccp::WireSeq::Extended(1), dccp::WireSeq::Extended(2));
    let (kind, options) = (dccp::Kind::DataAck { ack }, dccp::Options::default());
    let packet = dccp::Packet { seq, ccval: 3, cscov: 1, kind, options, payload: payload.clone() };
    let data = tfrc::Data { seq: 1, timestamp: 2, rtt: 3, timeout: 0, payload };
    let bodies = [Body::Dccp(PacketBox::new(packet)), Body::Tfrc(tfrc::Packet::Data(data))];
    for (number, body) in (0..).zip(&bodies) {
        let label = label(number, 0, Ecn::Ect0);
        let place = Place::Peer(6);
        probe.record(at(u64::from(number)), place, &Note::Sent { packet: &label, body });
        dequeued(&mut probe, u64::from(number), 0, &label);
    }
    assert_eq!(probe.unwritten(), 0);
    probe.finish().expect("room");
    let seen = packets(&disk);
    assert_eq!(seen.len(), 2);
    for ((_, _, bytes), body) in seen.iter().zip(bodies) {
        let hints = Hints { tfrc: matches!(body, Body::Tfrc(_)), ..Hints::default() };
        let parsed = wire::parse(bytes, hints).expect("well formed");
        assert_eq!((parsed.ends, parsed.body), (ends(), body));
    }
}

#[test]
fn both_directions_of_a_link_come_in_order_of_time() {
    let disk = Disk::of(10_000);
    let mut probe = CaptureProbe::new([((3, ROUTE), ends())]);
    let file = Pcapng::to(disk.clone(), &["a", "a.back"]).expect("room");
    probe.tap(file, &[0, 1]);
    for number in 0..4 {
        sent(&mut probe, 0, &label(number, 0, Ecn::NotEct));
    }
    // Link 1 reports events late, however long ago they began.
    dequeued(&mut probe, 10, 0, &label(0, 0, Ecn::NotEct));
    dequeued(&mut probe, 120, 0, &label(1, 0, Ecn::NotEct));
    dequeued(&mut probe, 8, 1, &label(2, 0, Ecn::NotEct));
    assert_eq!(packets(&disk).len(), 0, "nothing is settled");
    probe.settled(at(120));
    assert_eq!(packets(&disk).len(), 2, "what began at 120 ms may have company");
    dequeued(&mut probe, 120, 1, &label(3, 0, Ecn::NotEct));
    sent(&mut probe, 130, &label(4, 0, Ecn::NotEct));
    dequeued(&mut probe, 140, 0, &label(4, 0, Ecn::NotEct));
    probe.finish().expect("room");
    let order: Vec<(u32, u32)> = packets(&disk).iter().map(|seen| (seen.0, seen.1)).collect();
    assert_eq!(order, [(1, 8), (0, 10), (0, 120), (1, 120), (0, 140)]);
}

#[test]
fn a_body_is_never_taken_for_anothers() {
    let disk = Disk::of(10_000);
    let mut probe = CaptureProbe::new([((3, ROUTE), ends())]);
    probe.tap(Pcapng::to(disk.clone(), &["a"]).expect("room"), &[0]);
    let (first, second) = (label(1, 0, Ecn::NotEct), label(5, 0, Ecn::NotEct));
    assert_eq!(first.body, second.body, "the pool used the same place twice");
    sent(&mut probe, 1, &first);
    let dropped = Note::Dropped { packet: &first, why: DropReason::Full };
    probe.record(at(2), Place::Link(0), &dropped);
    dequeued(&mut probe, 3, 0, &first);
    assert_eq!(probe.unwritten(), 1, "it was dropped and is forgotten");
    sent(&mut probe, 4, &second);
    dequeued(&mut probe, 5, 0, &first);
    assert_eq!(probe.unwritten(), 2, "another's body is there now");
    let carried = body(1);
    let stale = Note::Received { packet: &first, body: &carried };
    probe.record(at(6), Place::Peer(7), &stale);
    dequeued(&mut probe, 7, 0, &second);
    // A flow without ends is not captured.
    let stranger = Packet { flow: 4, ..label(2, 0, Ecn::NotEct) };
    sent(&mut probe, 8, &stranger);
    dequeued(&mut probe, 9, 0, &stranger);
    assert_eq!(probe.unwritten(), 3);
    probe.finish().expect("room");
    assert_eq!(packets(&disk).len(), 1);
}

/// Of packets long gone, in places that others have since; and across the pieces in which files are written.
#[test]
fn a_packet_is_kept_until_what_was_seen_of_it_is_written() {
    let path = folder("kept").join("a.pcapng");
    let disk = Disk::of(10_000_000);
    let mut probe = CaptureProbe::new([((3, ROUTE), ends())]);
    let file = Pcapng::create(&path, &["a"]).expect("writable");
    probe.tap(file.one_of(1000), &[0]);
    probe.tap(Pcapng::to(disk.clone(), &["a"]).expect("room"), &[1]);
    let segment = |number: u32| {
        // Of all lengths, so that words and pieces end anywhere.
        let (offset, len) = (u64::from(number) * 999, u64::from(number * 7 % 1400));
        let payload = Payload::Virtual { offset, len };
        Body::Tcp(tcp::Segment { seq: number, payload, ..tcp::Segment::default() })
    };
    let mut expected = Vec::new();
    for number in 0..300 {
        let body = segment(number);
        for link in 0..2_u8 {
            let (now, packet) = (u64::from(number), label(number, link, Ecn::Ect0));
            if link == 0 {
                let note = Note::Sent { packet: &packet, body: &body };
                probe.record(at(now), Place::Peer(6), &note);
            } else {
                let mut bytes = Vec::new();
                wire::emit(&packet, &body, &ends(), &mut bytes).expect("fits");
                expected.push((0, number, bytes));
            }
            dequeued(&mut probe, now, link.into(), &packet);
        }
        let received = Note::Received { packet: &label(number, 2, Ecn::Ect0), body: &body };
        probe.record(at(u64::from(number)), Place::Peer(7), &received);
        if number % 50 == 49 {
            // Events reported at this instant are kept for later.
            probe.settled(at(u64::from(number)));
        }
    }
    probe.finish().expect("writable");
    assert!(packets(&disk) == expected, "on the second link");
    let first = Disk::of(0);
    first.bytes.lock().expect("not poisoned").extend(std::fs::read(path).expect("readable"));
    let first = packets(&first);
    assert_eq!(first.len(), expected.len());
    for ((_, _, mut here), (_, number, there)) in first.into_iter().zip(expected) {
        wire::Hop::of(&label(number, 1, Ecn::Ect0)).relabel(&mut here);
        assert!(here == there, "packet {number} on the first link");
    }
}

#[test]
fn a_full_disk_is_told_once_and_stops_nothing() {
    let mut probe = CaptureProbe::new([((3, ROUTE), ends())]);
    probe.tap(Pcapng::to(Disk::of(250), &["a"]).expect("room"), &[0]);
    for number in 0..10 {
        sent(&mut probe, u64::from(number), &label(number, 0, Ecn::NotEct));
        dequeued(&mut probe, u64::from(number), 0, &label(number, 0, Ecn::NotEct));
    }
    probe.settled(at(10));
    assert!(probe.failed());
    assert_eq!(probe.finish().expect_err("full").kind(), io::ErrorKind::StorageFull);
}
