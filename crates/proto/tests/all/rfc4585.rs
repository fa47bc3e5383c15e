//! RTCP feedback messages: RFC 4585 §6 and RFC 5104 §4, byte by byte, and arbitrary input.

use proptest::prelude::*;
use talkspurt_proto::rtcp::Compound;
use talkspurt_proto::rtcp::feedback::{
    Feedback, IntraRequest, Lost, Message, PSFB, RTPFB, RateLimit, Slice,
};
use talkspurt_proto::wire::rtcp::{emit, parse};

const SENDER: u32 = 0x0a0b_0c0d;
const MEDIA: u32 = 0x0102_0304;

fn compound(messages: Vec<Message>) -> Compound {
    let feedback = messages.into_iter().map(|message| Feedback { sender: SENDER, message });
    Compound {
        ssrc: SENDER,
        cname: "a@b".to_owned(),
        feedback: feedback.collect(),
        ..Compound::default()
    }
}

/// The bytes of one message, and that they are read as it is.
fn bytes(message: &Message) -> Vec<u8> {
    let (mut bare, mut out) = (Vec::new(), Vec::new());
    emit(&compound(vec![]), &mut bare);
    let whole = compound(vec![message.clone()]);
    emit(&whole, &mut out);
    assert_eq!(out.len(), whole.wire_bytes());
    assert_eq!(parse(&out).as_ref(), Ok(&whole));
    out[bare.len()..].to_vec()
}

/// Header and both SSRCs, the second of which is the media source.
fn packet(first: [u8; 2], words: u8, media: u32, content: &[u8]) -> Vec<u8> {
    let mut out = vec![first[0], first[1], 0, words];
    out.extend_from_slice(&SENDER.to_be_bytes());
    out.extend_from_slice(&media.to_be_bytes());
    out.extend_from_slice(content);
    out
}

/// RFC 4585 §6.2.1: the least significant bit of BLP is the packet after PID.
#[test]
fn generic_nack() {
    let lost = Lost::list(&[65_534, 65_535, 2, 14, 15, 40]);
    assert_eq!(lost.len(), 3);
    assert_eq!(lost[0], Lost { first: 65_534, following: 0b1000_0000_0000_1001 });
    let again: Vec<_> = lost.iter().flat_map(|lost| lost.sequences()).collect();
    assert_eq!(again, [65_534, 65_535, 2, 14, 15, 40]);
    let message = Message::Nack { media: MEDIA, lost };
    let content = [0xff, 0xfe, 0x80, 0x09, 0, 15, 0, 0, 0, 40, 0, 0];
    assert_eq!(bytes(&message), packet([0x81, RTPFB], 5, MEDIA, &content));
}

/// RFC 5104 §4.2.1.1: 2 500 000 bit/s is 78 125 · 2⁵.
#[test]
fn bit_rate_limits() {
    let limit = RateLimit { ssrc: MEDIA, bps: 2_500_000, overhead: 40 };
    let bits: u32 = 5 << 26 | 78_125 << 9 | 40;
    let content = [&MEDIA.to_be_bytes()[..], &bits.to_be_bytes()].concat();
    let request = Message::RateRequest(vec![limit]);
    assert_eq!(bytes(&request), packet([0x83, RTPFB], 4, 0, &content));
    let notification = Message::RateNotification(vec![limit]);
    assert_eq!(bytes(&notification), packet([0x84, RTPFB], 4, 0, &content));
    // §4.2.2.1: an empty bounding set.
    assert_eq!(bytes(&Message::RateNotification(vec![])), packet([0x84, RTPFB], 2, 0, &[]));
    // The greatest rate of the format is more than 64 bits hold.
    let greatest = [&[0; 4][..], &[0xff; 4]].concat();
    let mut whole = Vec::new();
    emit(&compound(vec![]), &mut whole);
    whole.extend(packet([0x83, RTPFB], 4, 0, &greatest));
    let read = parse(&whole).unwrap().feedback;
    let expected = RateLimit { ssrc: 0, bps: u64::MAX, overhead: 0x1ff };
    assert_eq!(read[0].message, Message::RateRequest(vec![expected]));
}

/// RFC 4585 §6.3.1 to §6.4, RFC 5104 §4.3.1.
#[test]
fn payload_specific_messages() {
    let loss = Message::PictureLoss { media: MEDIA };
    assert_eq!(bytes(&loss), packet([0x81, PSFB], 2, MEDIA, &[]));
    let slices = vec![Slice { first: 1, count: 8191, picture: 5 }];
    let slice: u32 = 1 << 19 | 8191 << 6 | 5;
    let message = Message::SliceLoss { media: MEDIA, slices };
    assert_eq!(bytes(&message), packet([0x82, PSFB], 3, MEDIA, &slice.to_be_bytes()));
    // 21 bits: three bytes of which 3 bits are not used, and three bytes of padding.
    let message = Message::ReferencePicture {
        media: MEDIA,
        payload_type: 96,
        string: vec![0xab, 0xcd, 0xe8],
        unused_bits: 3,
    };
    let content = [27, 96, 0xab, 0xcd, 0xe8, 0, 0, 0];
    assert_eq!(bytes(&message), packet([0x83, PSFB], 4, MEDIA, &content));
    let message = Message::FullIntra(vec![IntraRequest { ssrc: MEDIA, sequence: 7 }]);
    let content = [1, 2, 3, 4, 7, 0, 0, 0];
    assert_eq!(bytes(&message), packet([0x84, PSFB], 4, 0, &content));
    let message = Message::Application { media: MEDIA, data: vec![1, 2, 3, 4] };
    assert_eq!(bytes(&message), packet([0x8f, PSFB], 3, MEDIA, &[1, 2, 3, 4]));
    let message = Message::Other { packet_type: RTPFB, format: 14, media: MEDIA, data: vec![9; 8] };
    assert_eq!(bytes(&message), packet([0x8e, RTPFB], 4, MEDIA, &[9; 8]));
}

/// RFC 4585 §6.1: a packet has at least one message.
#[test]
fn nothing_is_not_written() {
    let empty = [
        Message::Nack { media: 1, lost: vec![] },
        Message::RateRequest(vec![]),
        Message::FullIntra(vec![]),
        Message::SliceLoss { media: 1, slices: vec![] },
    ];
    let (mut bare, mut out) = (Vec::new(), Vec::new());
    emit(&compound(vec![]), &mut bare);
    let whole = compound(empty.to_vec());
    emit(&whole, &mut out);
    assert_eq!((&out, out.len()), (&bare, whole.wire_bytes()));
}

proptest! {
    /// Any bytes after a report are read or rejected, and what was read is written unchanged.
    #[test]
    fn whatever_comes(
        format in 0_u8..32, payload_specific: bool, words in 2_usize..20, bytes: [u8; 80],
    ) {
        let mut out = Vec::new();
        emit(&compound(vec![]), &mut out);
        let packet_type = if payload_specific { PSFB } else { RTPFB };
        out.extend_from_slice(&[0x80 | format, packet_type, 0, words as u8]);
        out.extend_from_slice(&bytes[..4 * words]);
        if let Ok(read) = parse(&out) {
            let mut again = Vec::new();
            emit(&read, &mut again);
            prop_assert_eq!(again.len(), read.wire_bytes());
            // Empty messages are not written, reserved bits are not kept, and rates are rounded.
            let mut twice = Vec::new();
            emit(&parse(&again).expect("our own"), &mut twice);
            prop_assert_eq!(twice, again);
        }
    }
}
