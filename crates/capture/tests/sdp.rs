//! Session descriptions: the examples of RFC 8866, RFC 5576, RFC 8839 and RFC 4588, each way in which a capture
//! holds one, and any bytes.

use proptest::prelude::*;
use talkspurt_capture::sdp::{Candidate, Carrier, Direction, Group, Media, Role, find, parse};

fn one(text: &str) -> Media {
    let mut media = parse(text.as_bytes()).expect("a description");
    assert_eq!(media.len(), 1, "{media:?}");
    media.remove(0)
}

fn formats(media: &Media) -> Vec<(u8, String)> {
    let text = |format: &talkspurt_capture::sdp::Format| {
        format!("{}/{}/{}", format.encoding, format.clock_hz, format.channels)
    };
    let payloads = media.payloads.iter();
    payloads.map(|one| (one.number, one.format.as_ref().map(text).unwrap_or_default())).collect()
}

/// RFC 8866 §6.7 and the formats of §6.
#[test]
fn levels_and_formats_of_rfc_8866() {
    let text = "v=0\r\no=jdoe 3724395000 3724395001 IN IP6 2001:db8::1\r\ns=-\r\n\
        c=IN IP6 2001:db8::1\r\nt=0 0\r\na=inactive\r\nm=audio 49170 RTP/AVP 0\r\na=sendrecv\r\n\
        m=audio 49180 RTP/AVP 96 97 98 0 96\r\nc=IN IP4 233.252.0.1/127/3\r\na=rtpmap:96 L8/8000\r\n\
        a=rtpmap:97 L16/8000\r\na=rtpmap:98 L16/11025/2\r\na=ptime:12.5\r\na=maxptime:40\r\n\
        m=video 51372/2 RTP/AVP 99 31\r\na=rtpmap:99 h263-1998/90000\r\n";
    let media = parse(text.as_bytes()).expect("a description");
    let [first, second, third] = media.as_slice() else { panic!("{media:?}") };
    assert_eq!((first.direction, second.direction), (Direction::SendRecv, Direction::Inactive));
    assert_eq!(first.address, "2001:db8::1".parse().ok());
    assert_eq!(second.address, "233.252.0.1".parse().ok());
    assert_eq!(formats(first), [(0, "PCMU/8000/1".into())]);
    let wanted = [(96, "L8/8000/1"), (97, "L16/8000/1"), (98, "L16/11025/2"), (0, "PCMU/8000/1")];
    assert_eq!(formats(second), wanted.map(|(number, text)| (number, text.into())));
    assert_eq!((second.ptime_ms, second.maxptime_ms), (Some(12.5), Some(40.0)));
    assert_eq!((third.kind.as_str(), third.port), ("video", 51_372));
    let wanted = [(99, "h263-1998/90000/1"), (31, "H261/90000/1")];
    assert_eq!(formats(third), wanted.map(|(number, text)| (number, text.into())));
}

/// Figure 3 of RFC 5576 §7, with the other roles.
#[test]
fn sources_and_roles() {
    let media =
        one("v=0\nm=video 49174 RTP/AVPF 96 98 100 101 102 103 13\na=rtpmap:96 H.264/90000\n\
        a=rtpmap:98 rtx/90000\na=fmtp:98 apt=96;rtx-time=3000\na=ssrc-group:FID 11111 22222\n\
        a=ssrc:11111 cname:user3@example.com\na=ssrc:22222 cname:user3@example.com\n\
        a=rtpmap:100 red/90000\na=rtpmap:101 ulpfec/90000\na=rtpmap:102 flexfec-03/90000\n\
        a=rtpmap:103 telephone-event/8000\na=ssrc:11111 msid:a b\na=rtcp-mux\n\
        a=rtcp:53020 IN IP4 126.16.64.4\na=rtpmap:96 X/0\na=rtpmap:999 Y/1\n");
    let roles: Vec<_> = media.payloads.iter().map(|payload| payload.role).collect();
    let expected = [
        Role::Media,
        Role::Retransmission,
        Role::Redundant,
        Role::Repair,
        Role::Repair,
        Role::Events,
        Role::ComfortNoise,
    ];
    assert_eq!(roles, expected);
    assert_eq!(formats(&media)[0].1, "H.264/90000/1");
    let (apt, fmtp) = (media.payloads[1].apt, media.payloads[1].fmtp.as_deref());
    assert_eq!((apt, fmtp), (Some(96), Some("apt=96;rtx-time=3000")));
    let json = serde_json::json!({
        "number": 98, "encoding": "rtx", "clock_hz": 90_000, "channels": 1,
        "fmtp": "apt=96;rtx-time=3000", "role": "retransmission", "apt": 96
    });
    assert_eq!(serde_json::to_value(&media.payloads[1]).expect("data"), json);
    assert_eq!(media.ssrcs, [11_111, 22_222]);
    let group = Group { semantics: "FID".into(), ssrcs: vec![11_111, 22_222] };
    assert_eq!(media.groups, [group]);
    assert!(media.rtcp_mux);
    let rtcp = (media.rtcp_port, media.rtcp_address);
    assert_eq!(rtcp, (Some(53_020), "126.16.64.4".parse().ok()));
}

/// The example of RFC 8839 §4.2.6; a candidate with a name is ignored.
#[test]
fn candidates() {
    let media = one("v=0\no=jdoe 2890844526 2890842807 IN IP4 203.0.113.141\ns=\n\
        c=IN IP4 192.0.2.3\nt=0 0\na=ice-options:ice2\na=ice-ufrag:8hhY\nm=audio 45664 RTP/AVP 0\n\
        a=rtpmap:0 PCMU/8000\na=candidate:1 1 UDP 2130706431 203.0.113.141 8998 typ host\n\
        a=candidate:2 1 UDP 1694498815 192.0.2.3 45664 typ srflx raddr 203.0.113.141 rport 8998\n\
        a=candidate:3 1 UDP 1 a.local 9 typ host\na=candidate:4 1 UDP");
    let candidate = |address: &str, port, kind: &str| Candidate {
        component: 1,
        transport: "UDP".into(),
        address: address.parse().expect("an address"),
        port,
        kind: kind.into(),
    };
    let expected =
        [candidate("203.0.113.141", 8998, "host"), candidate("192.0.2.3", 45_664, "srflx")];
    assert_eq!(media.candidates, expected);
}

#[test]
fn what_is_not_a_description() {
    for text in ["", "v=1\nm=audio 1 RTP/AVP 0\n", "m=audio 1 RTP/AVP 0\n", "v=0\ns=-\n"] {
        assert_eq!(parse(text.as_bytes()), None, "{text:?}");
    }
    let data = one(
        "\u{feff}\n v=0\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\n\0\0\u{fffd}\nv=0\nm=x 1 y",
    );
    assert_eq!((data.port, data.payloads.len()), (9, 0));
    // More than the limit, and a line that is too long.
    let many = format!("v=0\n{}", "m=audio 1 RTP/AVP 0\n".repeat(300));
    assert_eq!(parse(many.as_bytes()).map(|media| media.len()), Some(256));
    let sources: String = (0..300).map(|ssrc| format!("a=ssrc:{ssrc} cname:x\n")).collect();
    let long = format!("v=0\nm=audio 1 RTP/AVP 0\n{sources}a=fmtp:0 {}\n", "x".repeat(9000));
    let media = one(&long);
    assert_eq!((media.ssrcs.len(), &media.payloads[0].fmtp), (256, &None));
}

const BODY: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
    m=audio 49172 RTP/AVP 96\r\na=rtpmap:96 opus/48000/2\r\n";

/// The carrier and the format found.
fn found(payload: &[u8], cut: bool) -> Option<(Carrier, String)> {
    let (carrier, media) = find(payload, cut)?;
    let (_, format) = formats(&media[0]).remove(0);
    Some((carrier, format))
}

#[test]
fn messages_that_hold_a_description() {
    let opus = |carrier| Some((carrier, "opus/48000/2".to_owned()));
    let length = BODY.len();
    let sip = |head: &str, body: &str| found(format!("{head}\r\n\r\n{body}").as_bytes(), false);
    assert_eq!(found(BODY.as_bytes(), false), opus(Carrier::Plain));
    let invite = "INVITE sip:bob@biloxi.example SIP/2.0";
    for head in [
        format!("{invite}\r\nContent-Type: application/sdp\r\nContent-Length: {length}"),
        format!("\r\n\r\nSIP/2.0 200 OK\r\nc : Application/SDP;charset=x\r\nl: {length}"),
        format!("{invite}\r\ncontent-type:\r\n application/sdp"),
    ] {
        assert_eq!(sip(&head, BODY), opus(Carrier::Sip), "{head}");
    }
    let describe = "RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp";
    assert_eq!(sip(describe, BODY), opus(Carrier::Rtsp));
    let parts = format!(
        "--b1\r\nContent-Type: application/isup\r\n\r\n\x01\x02\r\n--b1\r\n\
         Content-Type: application/sdp\r\n\r\n{BODY}\r\n--b1--\r\n"
    );
    let mixed = format!("{invite}\r\nContent-Type: multipart/mixed; boundary=\"b1\"");
    assert_eq!(sip(&mixed, &parts), opus(Carrier::Sip));
    // Of another type; no message; a length that ends before the media.
    assert_eq!(sip(&format!("{invite}\r\nContent-Type: text/plain"), BODY), None);
    assert_eq!(sip("INVITE sip:bob", BODY), None);
    assert_eq!(sip(&format!("{invite}\r\nc: application/sdp\r\nl: 20"), BODY), None);
    // Cut in the last line: in the datagram, or by the length.
    let short = &BODY[..length - 6];
    assert_eq!(found(short.as_bytes(), false), Some((Carrier::Plain, "opus/480/1".into())));
    assert_eq!(found(short.as_bytes(), true), Some((Carrier::Plain, String::new())));
    let head = format!("{invite}\r\nc: application/sdp\r\nl: {length}");
    assert_eq!(sip(&head, short), Some((Carrier::Sip, String::new())));
}

#[test]
fn announcements() {
    let packet = |flags: u8, authentication: u8, source: usize, kind: &str| {
        let skipped = vec![9; source + 4 * usize::from(authentication)];
        [&[flags, authentication, 1, 2], &*skipped, kind.as_bytes(), BODY.as_bytes()].concat()
    };
    let sap = Some((Carrier::Sap, "opus/48000/2".to_owned()));
    assert_eq!(found(&packet(0x20, 0, 4, "application/sdp\0"), false), sap);
    assert_eq!(found(&packet(0x20, 2, 4, ""), false), sap);
    assert_eq!(found(&packet(0x30, 0, 16, "application/sdp\0"), false), sap);
    // Deleted, encrypted, compressed, of another type.
    for flags in [0x24, 0x22, 0x21] {
        assert_eq!(found(&packet(flags, 0, 4, "application/sdp\0"), false), None);
    }
    assert_eq!(found(&packet(0x20, 0, 4, "text/plain\0"), false), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300), cut: bool) {
        let _ = find(&bytes, cut);
        let _ = parse(&[b"v=0\n", &*bytes].concat());
    }

    /// Messages of pieces in any order.
    #[test]
    fn any_pieces_are_read(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "v=0\r\n", "m=audio 9 RTP/AVP 0 96\r\n", "a=rtpmap:96 ", "/", "4800", "a=fmtp:96 apt=", ";",
            "a=candidate:1 1 UDP 1 ", "192.0.2.1 ", "c=IN IP4 ", "\r\n", "INVITE x SIP/2.0\r\n", "a=ptime:",
            "Content-Type: ", "application/sdp", "multipart/mixed; boundary=b", "--b", "Content-Length: 30",
            "a=ssrc:5 ", "a=rtcp:", "a=ssrc-group:FID ", "\u{e9}", " ", "-", "\0",
        ]), 0..40),
        cut: bool,
    ) {
        let text = pieces.concat();
        let _ = find(text.as_bytes(), cut);
        let _ = find(format!("INVITE x SIP/2.0\r\n{text}").as_bytes(), cut);
        for media in parse(text.as_bytes()).into_iter().flatten() {
            for payload in media.payloads {
                prop_assert!(payload.number < 128);
                prop_assert!(payload.format.is_none_or(|format| format.clock_hz > 0));
            }
        }
    }
}
