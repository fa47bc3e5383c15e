//! SCTP's cookies that come again: a peer that restarts, and who only says so (RFC 9260 §5.2.2 to
//! §5.2.4).

use crate::rfc9260_half::{data, from, init, invited, listener};
use bytes::Bytes;
use talkspurt_proto::endpoint::{Endpoint, Event, Input};
use talkspurt_proto::packet::PathId;
use talkspurt_proto::sctp::{Cause, Chunk, Packet, Parameter, State};
use talkspurt_testing::sctp::{Client, Pair, Server, Verdict, answers, at, bytes_of, ms, plain};

/// The cookie of an INIT ACK, and the tag that the COOKIE ECHO needs.
fn cookie_of(packet: &Packet) -> (u32, u32, Bytes) {
    let Chunk::InitAck(ack) = &packet.chunks[0] else { panic!("no INIT ACK: {packet:?}") };
    let cookie = ack.parameters.iter().find_map(|parameter| match parameter {
        Parameter::StateCookie(cookie) => Some(cookie.clone()),
        _ => None,
    });
    (ack.tag, ack.tsn, cookie.expect("a cookie"))
}

/// A peer that has lost its association and knows nothing of it opens anew with this tag; the
/// server's answer to its INIT.
fn init_again(pair: &mut Pair, tag: u32) -> (u32, u32, Bytes) {
    let before = pair.log.len();
    pair.forge(Server, 0, vec![Chunk::Init(init(tag))]);
    assert_eq!(pair.log.len(), before + 1, "one packet for one packet");
    let sent = pair.log.last().expect("an answer");
    assert_eq!(sent.packet.tag, tag);
    cookie_of(&sent.packet)
}

#[test]
fn section_5_2_2_and_5_2_4_a_a_peer_that_restarts_is_heard_again() {
    let mut pair = Pair::connected(&plain());
    pair.drop_data(Server, &[1, 2, 3, 4, 5, 6, 7, 8]);
    for number in 0..6 {
        pair.send(Server, number, 900);
    }
    pair.drive_for(ms(3000));
    let (_, old_tag) = pair.tags();
    let old_tsn = pair.first_tsn(Server);
    // The client dies; what it sends is not heard any more.
    pair.on_wire(|sent| if sent.from == Client { Verdict::Drop } else { Verdict::Arrive });
    let (tag, tsn, cookie) = init_again(&mut pair, 77);
    assert_ne!(tag, old_tag, "§5.3.1: a restart has a tag of its own");
    assert_ne!(tsn, old_tsn);
    // Until the cookie comes the association stands as it was.
    assert!(!pair.server.saw(Event::Restarted));
    assert!(pair.server.endpoint.send_capacity() < 4_000_000);
    let before = pair.log.len();
    pair.forge(Server, tag, vec![Chunk::CookieEcho(cookie), Chunk::Data(data(1000, b"anew"))]);
    let answers: Vec<_> = pair.log[before..].iter().map(|sent| &sent.packet).collect();
    assert_eq!(answers[0].tag, 77, "the peer's new tag");
    assert_eq!(answers[0].chunks[0], Chunk::CookieAck);
    assert!(pair.server.saw(Event::Restarted) && !pair.server.saw(Event::Reset));
    assert_eq!(pair.server.endpoint.state(), State::Established);
    // The new TSN is the cookie's, and what was under way is forgotten.
    assert_eq!(
        pair.server.received.last().map(|(_, frame)| bytes_of(frame)),
        Some(b"anew".to_vec())
    );
    assert_eq!(pair.server.endpoint.send_capacity(), 4_000_000);
    assert_eq!(pair.server.endpoint.window(PathId(0)), Some((4 * 1016, None)), "windows restart");
    // What it sends has the new tag and begins at the new Initial TSN.
    let before = pair.log.len();
    pair.send(Server, 9, 100);
    let sent = &pair.log[before];
    assert_eq!((sent.packet.tag, sent.data().next().map(|data| data.tsn)), (77, Some(tsn)));
    // The old tag is nobody's.
    let received = pair.server.received.len();
    pair.forge(Server, old_tag, vec![Chunk::Data(data(1001, b"old"))]);
    assert_eq!(pair.server.received.len(), received);
}

#[test]
fn section_5_2_4_c_a_cookie_without_tie_tags_restarts_nothing() {
    // A cookie sealed before the association stood is an old one: nobody has restarted.
    let mut server = listener(&plain());
    let (ack, cookie) = invited(&mut server, 5);
    let (late_ack, late) = invited(&mut server, 6);
    let opened = answers(&mut server, at(1), from(vec![Chunk::CookieEcho(cookie)], ack.tag));
    assert_eq!(opened[0].chunks, [Chunk::CookieAck]);
    let answered = answers(&mut server, at(2), from(vec![Chunk::CookieEcho(late)], late_ack.tag));
    assert!(answered.is_empty(), "{answered:?}");
    // It is still the first one's.
    let heard = answers(&mut server, at(3), from(vec![Chunk::Heartbeat(Bytes::new())], ack.tag));
    assert_eq!((heard.len(), heard[0].tag), (1, 5));
}

#[test]
fn section_5_2_4_a_cookie_of_an_association_before_restarts_nothing() {
    // Restarted twice: the Tie-Tags of the first restart's cookie are not those of the association
    // that came of it.
    let mut pair = Pair::connected(&plain());
    pair.on_wire(|sent| if sent.from == Client { Verdict::Drop } else { Verdict::Arrive });
    let (first_tag, _, first) = init_again(&mut pair, 77);
    let (second_tag, _, second) = init_again(&mut pair, 78);
    pair.forge(Server, first_tag, vec![Chunk::CookieEcho(first)]);
    let before = pair.log.len();
    pair.forge(Server, second_tag, vec![Chunk::CookieEcho(second)]);
    assert_eq!(pair.log.len(), before, "discarded");
    let restarts = pair.server.events.iter().filter(|(_, event)| *event == Event::Restarted);
    assert_eq!(restarts.count(), 1);
}

#[test]
fn section_5_2_4_a_in_shutdown_ack_sent_the_shutdown_goes_on() {
    let mut pair = Pair::connected(&plain());
    let (tag, _, cookie) = init_again(&mut pair, 77);
    // The client closes and its SHUTDOWN COMPLETE never comes.
    pair.on_wire(
        |sent| {
            if sent.from == Client && sent.has(14) { Verdict::Drop } else { Verdict::Arrive }
        },
    );
    pair.input(Client, Input::Close);
    pair.drive_for(ms(220));
    assert_eq!(pair.server.endpoint.state(), State::ShutdownAckSent);
    let before = pair.log.len();
    pair.forge(Server, tag, vec![Chunk::CookieEcho(cookie)]);
    let Chunk::Error(causes) = &pair.log[before].packet.chunks[1] else { panic!("no ERROR") };
    assert_eq!(pair.log[before].kinds(), [8, 9]);
    assert_eq!(causes[0].code, Cause::COOKIE_WHILE_SHUTTING_DOWN);
    assert!(!pair.server.saw(Event::Restarted));
}

#[test]
fn section_5_2_2_tie_tags_say_nothing_of_the_tags() {
    let mut pair = Pair::connected(&plain());
    let (to_client, to_server) = pair.tags();
    let (_, _, cookie) = init_again(&mut pair, 77);
    for tag in [to_client, to_server] {
        let bytes = tag.to_be_bytes();
        assert!(cookie.windows(4).all(|window| window != bytes), "a tag in the open");
    }
}
