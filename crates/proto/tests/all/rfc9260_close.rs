//! How an SCTP association ends: SHUTDOWN and ABORT (RFC 9260 §9, §6.4.1).

use crate::rfc9260_half::init;
use bytes::Bytes;
use talkspurt_proto::endpoint::{Endpoint, Event, Input};
use talkspurt_proto::packet::PathId;
use talkspurt_proto::sctp::{Cause, Chunk, Config, Init, Sack, State};
use talkspurt_proto::time::Duration;
use talkspurt_testing::sctp::{Client, Pair, Server, Verdict, ms, plain};

#[test]
fn section_9_2_shutdown_waits_for_data() {
    let mut pair = Pair::connected(&plain());
    for number in 0..10 {
        pair.send(Client, number, 1000);
    }
    pair.input(Client, Input::Close);
    assert_eq!(pair.client.endpoint.send_capacity(), 0);
    pair.drive_for(Duration::from_secs(2));
    assert_eq!(pair.server.numbers(), (0..10).collect::<Vec<u8>>());
    let kinds: Vec<_> = pair.log.iter().rev().take(3).map(|s| (s.from, s.kinds())).collect();
    assert_eq!(kinds, [(Client, vec![14]), (Server, vec![8]), (Client, vec![7])]);
    assert!(pair.client.saw(Event::Closed) && pair.server.saw(Event::Closed));
    assert!(pair.server.saw(Event::PeerClosed));
}

#[test]
fn section_9_2_the_other_side_sends_what_it_has_before_it_agrees() {
    let mut pair = Pair::connected(&plain());
    for number in 0..10 {
        pair.send(Server, number, 1000);
    }
    pair.input(Client, Input::Close);
    pair.drive_for(Duration::from_secs(2));
    assert_eq!(pair.client.numbers(), (0..10).collect::<Vec<u8>>());
    assert!(pair.client.saw(Event::Closed) && pair.server.saw(Event::Closed));
}

#[test]
fn section_9_2_lost_shutdowns_are_repeated() {
    for lost in [7, 8, 14] {
        let mut pair = Pair::connected(&plain());
        let mut gone = false;
        pair.on_wire(move |sent| {
            let drop = sent.has(lost) && !gone;
            gone |= drop;
            if drop { Verdict::Drop } else { Verdict::Arrive }
        });
        pair.input(Client, Input::Close);
        pair.drive_for(Duration::from_secs(10));
        assert!(pair.client.saw(Event::Closed) && pair.server.saw(Event::Closed), "{lost}");
        assert!(!pair.client.saw(Event::Reset) && !pair.server.saw(Event::Reset), "{lost}");
    }
}

#[test]
fn section_9_2_both_may_close_at_once() {
    let mut pair = Pair::connected(&plain());
    pair.input(Client, Input::Close);
    pair.input(Server, Input::Close);
    pair.drive_for(Duration::from_secs(10));
    assert!(pair.client.saw(Event::Closed) && pair.server.saw(Event::Closed));
}

#[test]
fn section_9_1_abort_says_why() {
    let mut pair = Pair::connected(&plain());
    pair.input(Client, Input::Abort);
    pair.drive_for(ms(100));
    let Chunk::Abort { reflected: false, causes } = &pair.log.last().unwrap().packet.chunks[0]
    else {
        panic!("no ABORT")
    };
    assert_eq!(causes[..], [Cause::new(Cause::USER_INITIATED_ABORT, "")]);
    assert!(pair.client.saw(Event::Reset) && pair.server.saw(Event::Reset));
}

/// Found with a Linux kernel: a SHUTDOWN whose path had failed was repeated there until the
/// association was given up, for no data was under way to tell.
#[test]
fn section_6_4_1_a_shutdown_that_times_out_goes_another_way() {
    let config = plain();
    let mut pair = Pair::on_paths(&config, &config, 2);
    pair.connect();
    pair.drive_for(ms(2000));
    pair.on_wire(|sent| if sent.path == PathId(0) { Verdict::Drop } else { Verdict::Arrive });
    pair.input(Client, Input::Close);
    pair.drive_for(ms(10_000));
    let shutdowns: Vec<_> =
        pair.sent_by(Client).filter(|sent| sent.has(7)).map(|sent| sent.path).collect();
    // The answer goes to the path the SHUTDOWN did not use, times out, and then uses the other.
    assert_eq!(shutdowns[..2], [PathId(0), PathId(1)]);
    assert!(pair.client.saw(Event::Closed) && pair.server.saw(Event::Closed));
}

/// A SHUTDOWN has neither Gap Ack Blocks nor a window: what the last SACK said of both stays true. Only
/// the chunk that is missing is sent again, and nothing new into the closed window.
#[test]
fn section_9_2_a_shutdown_changes_neither_gaps_nor_window() {
    let mut pair = Pair::connected(&plain());
    let (_, to_server) = pair.tags();
    let tsn = pair.first_tsn(Server);
    pair.on_wire(|_| Verdict::Drop);
    for number in 0..4 {
        pair.send(Server, number, 100);
    }
    let cumulative = tsn.wrapping_sub(1);
    let sack = Sack { cumulative, a_rwnd: 100, gaps: vec![(2, 4)], ..Sack::default() };
    pair.forge(Server, to_server, vec![Chunk::Sack(sack)]);
    for number in 4..8 {
        pair.send(Server, number, 100);
    }
    let before = pair.log.len();
    pair.forge(Server, to_server, vec![Chunk::Shutdown { cumulative }]);
    assert_eq!(pair.server.endpoint.state(), State::ShutdownReceived);
    pair.drive_for(ms(5000));
    let data = pair.log[before..].iter().filter(|sent| sent.from == Server);
    let again: Vec<u32> = data.flat_map(|sent| sent.data().map(|data| data.tsn)).collect();
    assert!(!again.is_empty() && again.iter().all(|one| *one == tsn), "{again:?} after {tsn}");
}

/// In SHUTDOWN-SENT any packet of the peer clears the count of repetitions and restarts T2-shutdown.
#[test]
fn section_9_2_a_packet_of_the_peer_restarts_t2_shutdown() {
    let mut pair = Pair::connected(&Config { association_max_retrans: 1, ..plain() });
    let (to_client, _) = pair.tags();
    pair.on_wire(|_| Verdict::Drop);
    let start = pair.now;
    pair.input(Client, Input::Close);
    pair.drive_for(ms(1500));
    pair.forge(Client, to_client, vec![Chunk::Heartbeat(Bytes::from_static(&[0, 1, 0, 4]))]);
    pair.drive_for(ms(3500));
    // RTO is 1 s, then 2 s, which count from the packet at 1.5 s.
    let sent: Vec<_> = pair.sent_by(Client).filter(|sent| sent.has(7)).map(|s| s.at).collect();
    assert_eq!(sent, [0, 1000, 3500].map(|after| start + ms(after)));
    assert_eq!(pair.client.endpoint.state(), State::ShutdownSent);
}

/// An INIT whose values are not allowed is discarded in SHUTDOWN-ACK-SENT too (§3.3.2); another is
/// answered by SHUTDOWN ACK (§9.2).
#[test]
fn section_9_2_an_init_in_shutdown_ack_sent_is_checked_first() {
    let mut pair = Pair::connected(&plain());
    pair.on_wire(|sent| if sent.has(8) { Verdict::Drop } else { Verdict::Arrive });
    pair.input(Client, Input::Close);
    pair.drive_for(ms(200));
    assert_eq!(pair.server.endpoint.state(), State::ShutdownAckSent);
    let cases = [
        (Init { a_rwnd: 1499, ..init(7) }, 6),
        (Init { outbound: 0, ..init(7) }, 6),
        (Init { inbound: 0, ..init(7) }, 6),
        (init(7), 8),
    ];
    for (asked, answer) in cases {
        let before = pair.log.len();
        pair.forge(Server, 0, vec![Chunk::Init(asked)]);
        let kinds: Vec<_> = pair.log[before..].iter().map(|sent| sent.kinds()).collect();
        assert_eq!(kinds, [[answer]]);
        assert_eq!(pair.server.endpoint.state(), State::ShutdownAckSent);
    }
}

/// §8.3: the sending of HEARTBEATs ends with the SHUTDOWN, and with the SHUTDOWN ACK.
#[test]
fn section_8_3_no_heartbeat_follows_a_shutdown() {
    for (side, last, lost) in [(Client, 7, 7), (Server, 8, 8)] {
        let config = plain();
        let mut pair = Pair::on_paths(&config, &config, 2);
        // The second path stays unconfirmed, and is probed once per timeout.
        pair.on_wire(move |sent| {
            let drop = sent.path == PathId(1) || sent.has(lost);
            if drop { Verdict::Drop } else { Verdict::Arrive }
        });
        pair.connect();
        pair.drive_for(ms(1500));
        assert!(pair.sent_by(side).any(|sent| sent.has(4)));
        pair.input(Client, Input::Close);
        pair.drive_for(ms(60_000));
        let first = pair.sent_by(side).position(|sent| sent.has(last)).unwrap();
        assert!(pair.sent_by(side).skip(first).all(|sent| !sent.has(4)), "{side:?}");
    }
}
