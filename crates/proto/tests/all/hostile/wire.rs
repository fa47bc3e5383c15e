//! Bytes as a network may bring them: none panics, and what they are read as is written and read the
//! same.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use talkspurt_proto::body::Body;
use talkspurt_proto::packet::{IpVersion, Packet};
use talkspurt_proto::rfc4571::Deframer;
use talkspurt_proto::rtp;
use talkspurt_proto::wire::{self, Hints, INITIAL_TTL, WireError};

use super::{Script, label, repair};

/// Reads a packet whose first byte says how.
pub fn read(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let how = script.byte();
    let offset = (how & 4 != 0).then(|| u64::from(script.byte()));
    let hints = Hints { media: how & 1 != 0, tfrc: how & 2 != 0, virtual_offset: offset };
    let rest = script.bytes(usize::MAX);
    match how >> 4 {
        0 => parts(rest, hints),
        1 => deframe(rest),
        5 => flexfec(rest),
        _ => whole(rest, hints, how & 8 == 0),
    }
}

fn whole(bytes: &[u8], hints: Hints, mend: bool) {
    let mut bytes = bytes.to_vec();
    if mend {
        repair(&mut bytes);
    }
    let Ok(read) = wire::parse(&bytes, hints) else { return };
    let version = if read.ends.src.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
    let hop = INITIAL_TTL.saturating_sub(read.ttl);
    let label = Packet { ecn: read.ecn, dscp: read.dscp, version, hop, ..label() };
    let mut again = Vec::new();
    match wire::emit(&label, &read.body, &read.ends, &mut again) {
        Ok(()) => {}
        // Of options, more were read than we would write.
        Err(WireError::TooLong(_)) => return,
        // Media lose what we do not keep (CSRCs, padding), and then the checksum covers too much.
        Err(WireError::Malformed(_)) if hints.media && matches!(read.body, Body::Dccp(_)) => return,
        Err(error) => panic!("what was read cannot be written: {error}"),
    }
    let second = wire::parse(&again, hints).expect("our own bytes");
    assert_eq!((second.ends, &second.body), (read.ends, &read.body));
    assert_eq!((second.ecn, second.dscp), (read.ecn, read.dscp));
    if !matches!(read.body, Body::TooBig { .. }) {
        let layers = read.body.layers();
        let counted = version.header_bytes() + layers.transport + layers.media + layers.payload;
        assert_eq!(again.len(), counted as usize, "the lengths by layer are those of the bytes");
    }
}

/// The readers that do not begin at an IP header.
fn parts(bytes: &[u8], hints: Hints) {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let shared = Bytes::copy_from_slice(bytes);
    let _ = wire::dccp_udp::parse(bytes, address, address, hints);
    let _ = wire::sctp_udp::parse(bytes, address, address, hints);
    let _ = wire::tfrc::parse(&shared, hints);
    if let Ok(read) = wire::rtcp::parse(bytes) {
        let mut again = Vec::new();
        wire::rtcp::emit(&read, &mut again);
        assert_eq!(again.len(), read.wire_bytes());
        assert_eq!(wire::rtcp::parse(&again).expect("our own bytes"), read);
    }
    if let Ok(frame) = wire::parse_media(&shared, hints) {
        let mut again = Vec::new();
        wire::emit_frame(&frame, &mut again);
        assert_eq!(again.len(), frame.wire_bytes());
        assert_eq!(wire::parse_media(&again.into(), hints).expect("our own bytes"), frame);
    }
}

/// RFC 4571 in pieces as TCP brings them.
fn deframe(bytes: &[u8]) {
    let mut deframer = Deframer::new();
    let mut script = Script::new(bytes);
    let mut given = 0;
    while !script.is_over() {
        let length = usize::from(script.byte()) + 1;
        let piece = script.bytes(length);
        given += piece.len();
        deframer.push(Bytes::copy_from_slice(piece));
        for count in 0.. {
            assert!(count <= given, "more frames than bytes");
            if deframer.next().is_none() {
                break;
            }
        }
    }
}

/// RFC 8627: source and repair packets of any bytes.
fn flexfec(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut decoder = rtp::flexfec::Decoder::new(0, u32::from(script.byte()));
    while !script.is_over() {
        let how = script.byte();
        let len = usize::from(script.byte());
        let bytes = Bytes::copy_from_slice(script.bytes(len));
        let restored = if how & 1 == 0 {
            decoder.on_source(bytes)
        } else {
            decoder.on_repair(&bytes).unwrap_or_default()
        };
        for packet in restored {
            let _ = wire::rtp::parse(&packet, Hints::default());
        }
    }
}
