//! SCTP inside UDP (RFC 6951) where the endpoint has a say: which packets are its peer's, so that the
//! peer's UDP port may follow them (§5.4). The bytes are in `rfc9260_wire.rs`, sockets in
//! `crates/live/tests/sctp_in_udp.rs`.

use talkspurt_proto::endpoint::{Endpoint, Input, Listener};
use talkspurt_proto::packet::{IpVersion, PacketBox};
use talkspurt_proto::rng::Rng;
use talkspurt_proto::sctp::{Chunk, Init, Packet, Sctp};
use talkspurt_proto::time::Instant;
use talkspurt_testing::sctp::{Client, End, Pair, Server, ms, plain};

fn body(tag: u32, chunk: Chunk) -> PacketBox<Packet> {
    PacketBox::new(Packet::of(tag, chunk))
}

#[test]
fn section_5_4_a_packet_with_the_associations_tag_is_the_peers() {
    let mut pair = Pair::connected(&plain());
    let (to_client, to_server) = pair.tags();
    let init = Chunk::Init(Init {
        tag: 7,
        a_rwnd: 100_000,
        outbound: 1,
        inbound: 1,
        tsn: 1,
        parameters: Vec::new(),
    });
    for (side, tag, others) in [(Client, to_client, to_server), (Server, to_server, to_client)] {
        let sctp = &pair.end(side).endpoint;
        assert!(sctp.recognises(&body(tag, Chunk::CookieAck)));
        assert!(!sctp.recognises(&body(others, Chunk::CookieAck)), "a reflected tag is no proof");
        assert!(!sctp.recognises(&body(0, init.clone())), "anybody can send an INIT");
    }
}

#[test]
fn section_5_4_without_an_association_nobody_is_the_peer() {
    let config = plain();
    let listener = Sctp::listener(&config, Rng::new(1, "server"));
    let mut client = Sctp::client(&config, Rng::new(1, "client"));
    client.handle(Instant::ZERO, Input::Open, &mut ());
    for tag in [0, 1, u32::MAX] {
        assert!(!listener.recognises(&body(tag, Chunk::CookieAck)));
        assert!(!client.recognises(&body(tag, Chunk::CookieAck)));
    }
}

/// UDP's header takes its eight bytes of the path MTU, as the IP version's takes its own.
#[test]
fn section_5_6_packets_leave_room_for_udp() {
    for (below, version, longest) in [
        (0, IpVersion::V4, 1048 - 20),
        (8, IpVersion::V4, 1048 - 20 - 8),
        (8, IpVersion::V6, 1048 - 40 - 8),
    ] {
        let mut pair = Pair::new(&plain());
        pair.client =
            End::new(Sctp::client(&plain(), Rng::new(1, "client")).under(below).over(version));
        pair.connect();
        pair.send(Client, 1, 5000);
        pair.drive_for(ms(2000));
        assert_eq!(pair.server.received.len(), 1);
        let sizes = pair.sent_by(Client).map(|sent| sent.packet.wire_bytes());
        assert_eq!(sizes.max(), Some(longest / 4 * 4), "{below} {version:?}");
    }
}
