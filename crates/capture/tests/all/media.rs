//! What a datagram is by its first bytes, and what TURN relays.

use talkspurt_capture::headers::{Headers, Media, parse};

use crate::build::*;

fn headers(payload: &[u8]) -> Headers {
    parse(&ipv4(17, &udp(PORTS, payload)), 0).expect("headers")
}

fn media(payload: &[u8]) -> Media {
    headers(payload).media.expect("a payload")
}

/// Extension, header, padding and place of the payload in the datagram.
fn layout(payload: &[u8]) -> Option<(bool, u32, u32, std::ops::Range<u32>)> {
    match media(payload) {
        Media::Rtp { extension, header_bytes, padding_bytes, payload, .. } => {
            let payload = payload.expect("all bytes are there");
            Some((extension, header_bytes, padding_bytes, payload.start - 28..payload.end - 28))
        }
        _ => None,
    }
}

#[test]
fn the_header_of_rtp_must_fit_the_datagram() {
    let expected = Media::Rtp {
        ssrc: 0x5eed,
        seq: 9,
        timestamp: 1440,
        payload_type: 8,
        marker: true,
        extension: false,
        header_bytes: 12,
        padding_bytes: 0,
        payload: Some(40..200),
    };
    assert_eq!(media(&rtp(0x80, 0x88, &VOICE)), expected);
    // Two contributing sources, an extension of two words, and three bytes of padding.
    let body = [&[0; 8][..], &[0xbe, 0xde, 0, 2], &[0; 8], &[7; 20], &[0, 0, 3]].concat();
    assert_eq!(layout(&rtp(0xb2, 0, &body)), Some((true, 32, 3, 32..52)));
    // Nothing but padding, as senders that probe the path send it.
    assert_eq!(layout(&rtp(0xa0, 0, &[0, 0, 0, 4])), Some((false, 12, 4, 12..12)));
    // SRTP encrypts the count, which may then be any.
    assert_eq!(layout(&rtp(0xa0, 0, &[0, 0, 0, 5])), Some((false, 12, 0, 12..16)));
    assert_eq!(layout(&rtp(0xa0, 0, &[0, 0, 0, 0])), Some((false, 12, 0, 12..16)));
    assert_eq!(layout(&rtp(0x80, 0, &[])), Some((false, 12, 0, 12..12)));
    // More contributing sources or words of an extension than there is room for; another version; cut short.
    assert_eq!(media(&rtp(0x82, 0, &[0; 7])), Media::Other);
    assert_eq!(media(&rtp(0x90, 0, &[0xbe, 0xde, 0, 2, 0, 0, 0, 0])), Media::Other);
    assert_eq!(media(&rtp(0xc0, 0, &VOICE)), Media::Other);
    assert_eq!(media(&voice()[..11]), Media::Other);
}

#[test]
fn rtcp_is_known_by_its_type_and_length() {
    for kind in 0..=255 {
        // Its sequence number 9 is a length of ten words.
        let seen = media(&rtp(0x80, kind, &VOICE));
        match kind {
            192..=223 => assert_eq!(seen, Media::Rtcp),
            72..=76 => assert_eq!(seen, Media::Other),
            _ => assert!(matches!(seen, Media::Rtp { .. }), "{kind}"),
        }
        // With less, it is RTP with a marker, unless it is of a type that RTP never has.
        let seen = media(&rtp(0x80, kind, &[0; 20]));
        assert_eq!(matches!(seen, Media::Rtp { .. }), !matches!(kind & 0x7f, 72..=76), "{kind}");
    }
    // The shortest one: BYE of one source.
    assert_eq!(media(&[0x81, 203, 0, 1, 0, 0, 0, 1]), Media::Rtcp);
}

const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

fn stun(kind: u16, cookie: [u8; 4], attributes: &[u8]) -> Vec<u8> {
    let length = attributes.len() as u16;
    [&kind.to_be_bytes()[..], &length.to_be_bytes(), &cookie, &[7; 12], attributes].concat()
}

#[test]
fn other_protocols_on_the_ports_of_media_are_known() {
    assert_eq!(media(&stun(1, COOKIE, &[0; 8])), Media::Stun);
    assert_eq!(media(&stun(0x0111, [0; 4], &[0; 8])), Media::Stun);
    // Classic STUN of another type, or with another length.
    assert_eq!(media(&stun(3, [0; 4], &[0; 8])), Media::Other);
    assert_eq!(media(&[&stun(1, [0; 4], &[0; 8])[..], &[0]].concat()), Media::Other);
    assert_eq!(media(&stun(1, COOKIE, &[0; 8])[..24]), Media::Other);
    let dtls =
        |kind, version, size| [&[kind, 0xfe, version][..], &[0; 8], &[0, size], &[9; 40]].concat();
    for (bytes, expected) in [
        (dtls(22, 0xff, 40), Media::Dtls),
        (dtls(23, 0xfd, 20), Media::Dtls),
        (dtls(25, 0xfd, 99), Media::Dtls),
        (dtls(22, 0xfd, 41), Media::Other),
        (dtls(22, 0x03, 40), Media::Other),
        // DTLS 1.3: number of 16 bits, length; the same with a length that does not fit.
        ([&[0x2e, 0, 1, 0, 40][..], &[9; 40]].concat(), Media::Dtls),
        ([&[0x2e, 0, 1, 0, 41][..], &[9; 40]].concat(), Media::Other),
        ([&[0x10, 0, 0, 1][..], b"ZRTP", &[0; 20]].concat(), Media::Zrtp),
        ([&[0x10, 0, 0, 1][..], b"zrtp", &[0; 20]].concat(), Media::Other),
        (b"INVITE sip:bob@example.com SIP/2.0\r\n".to_vec(), Media::Other),
        (vec![0; 40], Media::Other),
    ] {
        assert_eq!(media(&bytes), expected, "{bytes:x?}");
    }
    let empty = headers(&[]);
    assert_eq!((empty.media, empty.payload), (None, None));
}

fn channel(data: &[u8], padding: usize) -> Vec<u8> {
    let length = data.len() as u16;
    [&[0x40, 1][..], &length.to_be_bytes(), data, &vec![0; padding]].concat()
}

/// Addresses and ports stay those of the datagram; framing and padding are no payload.
#[test]
fn what_turn_relays_is_read() {
    let odd = &voice()[..171];
    let attribute = |kind: u16, data: &[u8]| {
        let pad = vec![0; data.len().next_multiple_of(4) - data.len()];
        [&kind.to_be_bytes()[..], &(data.len() as u16).to_be_bytes(), data, &pad].concat()
    };
    let peer = attribute(0x0012, &[0; 8]);
    let indication = |kind| stun(kind, COOKIE, &[&peer[..], &attribute(0x0013, odd)].concat());
    for (bytes, begin, padding) in [
        (channel(odd, 0), 4, 0),
        (channel(odd, 1), 4, 1),
        (indication(0x0016), 36, 1),
        (indication(0x0017), 36, 1),
    ] {
        let read = headers(&bytes);
        let sizes = (read.ports, read.transport_header_bytes, read.payload_bytes);
        assert_eq!(sizes, (PORTS, 8 + begin + padding, 171));
        assert_eq!(read.payload, Some(28 + begin..28 + begin + 171));
        let Some(Media::Rtp { ssrc: 0x5eed, payload, .. }) = read.media else { panic!("{read:?}") };
        assert_eq!(payload, Some(28 + begin + 12..28 + begin + 171));
        assert_eq!(read.ip_bytes, 28 + bytes.len() as u32);
    }
    assert_eq!(media(&channel(&[0x81, 203, 0, 1, 0, 0, 0, 1], 0)), Media::Rtcp);
    assert_eq!(media(&channel(&stun(1, COOKIE, &[]), 0)), Media::Stun);
    assert_eq!(media(&channel(&[], 0)), Media::TurnChannel);
    // Of another length than the datagram; a success response; an indication of an ICMP message.
    assert_eq!(headers(&channel(odd, 2)).media, Some(Media::Other));
    assert_eq!(headers(&stun(0x0116, COOKIE, &attribute(0x0013, odd))).media, Some(Media::Stun));
    assert_eq!(
        headers(&stun(0x0017, COOKIE, &attribute(0x8004, &[0; 8]))).media,
        Some(Media::Stun)
    );
    // Data that is longer than the message.
    let mut long = stun(0x0017, COOKIE, &attribute(0x0013, &[0; 8]));
    long[23] = 9;
    assert_eq!(headers(&long).transport_header_bytes, 8);
}

#[test]
fn what_was_not_captured_is_in_no_range() {
    let whole = ipv4(17, &udp(PORTS, &channel(&rtp(0xa0, 0, &[4; 160]), 0)));
    let at = |end: usize| {
        let read = parse(&whole[..end], whole.len() - end).expect("headers");
        assert_eq!((read.payload_bytes, read.transport_header_bytes), (172, 12));
        (read.media.expect("media"), read.payload)
    };
    assert_eq!(at(32), (Media::TurnChannel, None));
    assert_eq!(at(36), (Media::Other, Some(32..36)));
    let payload = |end| match at(end) {
        (Media::Rtp { payload, padding_bytes, header_bytes: 12, .. }, Some(all)) => {
            (payload, padding_bytes, all)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(payload(44), (Some(44..44), 0, 32..44));
    assert_eq!(payload(60), (Some(44..60), 0, 32..60));
    assert_eq!(payload(204), (Some(44..200), 4, 32..204));
}

/// RFC 4340 §5.1: DCCP-Data with 48 bits of sequence number; RFC 5762.
#[test]
fn media_over_dccp_has_the_same_places() {
    let head = [0x0f, 0xa0, 0x0f, 0xa2, 4, 0, 0, 0, 2 << 1 | 1, 0, 0, 0, 0, 0, 0, 5];
    let read = parse(&ipv4(33, &[&head[..], &voice()].concat()), 0).expect("headers");
    let Some(Media::Rtp { ssrc: 0x5eed, payload, .. }) = read.media else { panic!("{read:?}") };
    assert_eq!((payload, read.payload), (Some(48..208), Some(36..208)));
    assert_eq!((read.transport_header_bytes, read.payload_bytes), (16, 172));
}
