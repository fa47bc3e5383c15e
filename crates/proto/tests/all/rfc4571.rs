//! RFC 4571: media packets over a byte stream, whatever its pieces.

use bytes::Bytes;
use proptest::prelude::*;
use talkspurt_proto::frame::Frame;
use talkspurt_proto::packet::Payload;
use talkspurt_proto::rfc4571::{Deframer, frame};
use talkspurt_proto::rtcp::Compound;
use talkspurt_proto::rtp::Packet;

fn speech(sequence: u16, payload: &[u8]) -> Frame {
    Frame::Rtp(Packet {
        payload_type: 0,
        marker: sequence == 0,
        sequence,
        timestamp: u32::from(sequence) * 160,
        ssrc: 0xdead_beef,
        payload: Payload::Real(Bytes::copy_from_slice(payload)),
        ..Packet::default()
    })
}
fn report() -> Frame {
    Frame::Rtcp(Box::new(Compound { ssrc: 5, cname: "a@b".into(), ..Compound::default() }))
}
fn drain(deframer: &mut Deframer) -> Vec<Frame> {
    deframer.by_ref().collect()
}

#[test]
fn section_2_length_precedes_the_packet_and_does_not_count_itself() {
    let bytes = frame(&speech(1, &[0xaa; 160])).expect("short enough");
    assert_eq!(bytes.len(), 2 + 12 + 160);
    assert_eq!(bytes[..2], [0, 172]);
    assert_eq!(bytes[2..4], [0x80, 0x00]);
    let bytes = frame(&report()).expect("short enough");
    assert_eq!(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])), report().wire_bytes());
}

#[test]
fn section_2_what_the_length_cannot_say_is_refused() {
    let longest = vec![0; 65_535 - 12];
    assert_eq!(frame(&speech(1, &longest)).map(|bytes| bytes.len()), Some(2 + 65_535));
    assert_eq!(frame(&speech(1, &[longest, vec![0]].concat())), None);
    assert_eq!(frame(&Frame::Data(Payload::default())), None);
}

#[test]
fn section_2_a_null_packet_is_valid_and_empty() {
    let mut deframer = Deframer::new();
    deframer.push(Bytes::from_static(&[0, 0, 0, 0]));
    deframer.push(frame(&report()).expect("short enough"));
    assert_eq!(drain(&mut deframer), [report()]);
    assert_eq!(deframer.rx_error(), 0);
}

#[test]
fn garbage_is_counted_and_passed_over() {
    let mut deframer = Deframer::new();
    deframer.push(Bytes::from_static(&[0, 3, 1, 2, 3]));
    deframer.push(Bytes::from_static(&[0, 4, 0x80, 200, 9, 9]));
    deframer.push(frame(&speech(9, b"still here")).expect("short enough"));
    assert_eq!(drain(&mut deframer), [speech(9, b"still here")]);
    assert_eq!((deframer.rx_error(), deframer.waiting_bytes()), (2, 0));
}

#[test]
fn a_virtual_payload_becomes_the_bytes_of_its_pattern() {
    let payload = Payload::Virtual { offset: 0x0102_0304_0506_0708, len: 8 };
    let Frame::Rtp(packet) = speech(1, &[]) else { unreachable!() };
    let bytes = frame(&Frame::Rtp(Packet { payload, ..packet })).expect("short enough");
    assert_eq!(bytes[14..], *b"05060708");
}

proptest! {
    #[test]
    fn any_cut_of_the_stream_gives_the_same_packets(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..400), 1..20),
        cuts in prop::collection::vec(1_usize..300, 1..60),
    ) {
        let mut frames: Vec<Frame> =
            payloads.iter().enumerate().map(|(i, bytes)| speech(i as u16, bytes)).collect();
        frames.insert(frames.len() / 2, report());
        let stream: Vec<u8> =
            frames.iter().flat_map(|each| frame(each).expect("short enough")).collect();
        let (mut deframer, mut received, mut rest) = (Deframer::new(), Vec::new(), &stream[..]);
        for cut in cuts.iter().cycle() {
            let (piece, behind) = rest.split_at((*cut).min(rest.len()));
            deframer.push(Bytes::copy_from_slice(piece));
            received.extend(drain(&mut deframer));
            prop_assert!(deframer.waiting_bytes() < 65_537);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(received, frames);
        prop_assert_eq!(deframer.rx_error(), 0);
    }

    #[test]
    fn garbage_never_panics_nor_stays(pieces in prop::collection::vec(
        prop::collection::vec(any::<u8>(), 0..2000), 0..20)) {
        let mut deframer = Deframer::new();
        for piece in pieces {
            deframer.push(piece.into());
            let _ = drain(&mut deframer);
            prop_assert!(deframer.waiting_bytes() < 65_537);
        }
    }
}
