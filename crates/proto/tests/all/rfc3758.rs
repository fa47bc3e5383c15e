//! Partial reliability (RFC 3758): messages are abandoned after their lifetime, and a FORWARD TSN tells
//! the receiver not to wait.

use crate::rfc9260_half::data;
use talkspurt_proto::probe::RxError;
use talkspurt_proto::sctp::{Chunk, Config, Data, ForwardTsn, Parameter, Skipped};
use talkspurt_proto::time::Duration;
use talkspurt_testing::sctp::{Client, Pair, Server, Verdict, ms, plain};

fn timed(lifetime: u64) -> Config {
    Config { lifetime: Some(ms(lifetime)), bundling: false, ..plain() }
}

#[test]
fn section_3_1_both_ends_say_that_they_know_it() {
    let pair = Pair::connected(&plain());
    for kind in [1, 2] {
        let sent = pair.log.iter().find(|sent| sent.has(kind)).unwrap();
        let (Chunk::Init(init) | Chunk::InitAck(init)) = &sent.packet.chunks[0] else { panic!() };
        assert!(init.parameters.contains(&Parameter::ForwardTsn));
    }
}

#[test]
fn section_3_5_what_is_lost_and_too_old_is_given_up() {
    let mut pair = Pair::connected(&timed(300));
    let tsn = pair.first_tsn(Client);
    let start = pair.now;
    pair.drop_data(Client, &[1]);
    pair.send(Client, 1, 100);
    // T3 runs out after a second, long after the lifetime: nothing is sent again.
    pair.drive_for(ms(1200));
    let sent: Vec<_> = pair.sent_by(Client).filter(|sent| sent.at >= start).collect();
    assert_eq!(sent.iter().filter(|sent| sent.has_data()).count(), 1);
    let forward = sent.iter().find(|sent| sent.has(192)).expect("a FORWARD TSN");
    assert_eq!(forward.at, start + ms(1000));
    let skipped = Skipped::Ssn(vec![(0, 0)]);
    let expected = Chunk::ForwardTsn(ForwardTsn { cumulative: tsn, skipped });
    assert_eq!(forward.packet.chunks, [expected]);
    // §3.6: it is acknowledged at once, and with that it is over.
    let sack = pair.sent_by(Server).last().unwrap();
    assert_eq!((sack.at, sack.sack().unwrap().cumulative), (start + ms(1050), tsn));
    pair.drive_for(Duration::from_secs(30));
    assert_eq!(pair.sent_by(Client).filter(|sent| sent.has(192)).count(), 1);
    assert_eq!(pair.client.endpoint.window(talkspurt_proto::packet::PathId(0)).unwrap().0, 1016);
}

/// Without a lifetime the stream waits for the lost message; with one it continues.
#[test]
fn section_3_6_messages_behind_a_gap_are_released() {
    let delivered = |config: Config| {
        let mut pair = Pair::connected(&config);
        let start = pair.now;
        let first = pair.first_tsn(Client);
        // The first message is lost however often it is sent.
        pair.on_wire(move |sent| {
            if sent.data().any(|data| data.tsn == first) { Verdict::Drop } else { Verdict::Arrive }
        });
        for number in 1..=5 {
            pair.send(Client, number, 100);
            pair.drive_for(ms(20));
        }
        pair.drive_for(ms(2500));
        let at = pair.server.received.first().map(|one| one.0.saturating_since(start));
        (pair.server.numbers(), at)
    };
    assert_eq!(delivered(Config { bundling: false, ..plain() }), (vec![], None));
    // Three SACKs miss it; the third, of message 4 sent after 60 ms, comes after 160 ms, when its 150 ms are
    // over; the FORWARD TSN takes 50 ms more.
    assert_eq!(delivered(timed(150)), (vec![2, 3, 4, 5], Some(ms(210))));
}

/// §3.5 A3: all parts of a message are given up together, those not yet sent too.
#[test]
fn section_3_5_a_message_in_parts_is_given_up_whole() {
    let mut pair = Pair::connected(&timed(300));
    let first = pair.first_tsn(Client);
    pair.on_wire(move |sent| {
        if sent.data().any(|data| data.tsn == first) { Verdict::Drop } else { Verdict::Arrive }
    });
    pair.send(Client, 1, 20_000);
    pair.drive_for(ms(350));
    pair.send(Client, 2, 100);
    pair.drive_for(Duration::from_secs(5));
    assert_eq!(pair.server.numbers(), [2]);
    let room = talkspurt_proto::endpoint::Endpoint::send_capacity(&pair.client.endpoint);
    assert_eq!(room, 4_000_000);
}

#[test]
fn section_3_6_an_old_forward_tsn_is_answered_and_changes_nothing() {
    let mut pair = Pair::connected(&plain());
    let (_, tag) = pair.tags();
    let tsn = pair.first_tsn(Client);
    pair.send(Client, 1, 100);
    pair.drive_for(ms(200));
    let skipped = Skipped::Ssn(vec![(0, 9)]);
    let old = ForwardTsn { cumulative: tsn.wrapping_sub(5), skipped };
    let before = pair.log.len();
    pair.forge(Server, tag, vec![Chunk::ForwardTsn(old)]);
    assert_eq!(pair.log[before..].iter().filter(|sent| sent.has(3)).count(), 1);
    pair.send(Client, 2, 100);
    pair.drive_for(ms(200));
    assert_eq!(pair.server.numbers(), [1, 2]);
    assert_eq!(pair.server.notes.rx_error, [] as [RxError; 0]);
}

/// Unsent messages past their life leave no trace on the wire.
#[test]
fn section_4_what_was_never_sent_needs_no_tsn() {
    let mut pair = Pair::connected(&timed(90));
    for number in 0..20 {
        pair.send(Client, number, 1000);
    }
    pair.drive_for(Duration::from_secs(1));
    // Four leave at once; when the first SACK comes after 100 ms the others are too old.
    assert_eq!(pair.server.numbers(), [0, 1, 2, 3]);
    assert!(pair.log.iter().all(|sent| !sent.has(192)));
    pair.send(Client, 77, 10);
    pair.drive_for(Duration::from_secs(1));
    assert_eq!(pair.server.numbers().last(), Some(&77));
}

/// §3.6: a FORWARD TSN is acknowledged by the rules for data, RFC 9260 §6.2 and §6.7.
#[test]
fn section_3_6_a_forward_tsn_in_order_is_acknowledged_as_data_is() {
    let mut pair = Pair::connected(&Config { sack_frequency: 2, ..plain() });
    let (_, tag) = pair.tags();
    let tsn = pair.first_tsn(Client);
    pair.send(Client, 1, 100);
    pair.drive_for(ms(500));
    let forward = |to: u32| {
        let skipped = Skipped::Ssn(vec![]);
        Chunk::ForwardTsn(ForwardTsn { cumulative: tsn.wrapping_add(to), skipped })
    };
    let sacks = |pair: &Pair| -> Vec<_> {
        pair.sent_by(Server).filter_map(|s| Some((s.at, s.sack()?.cumulative))).collect()
    };
    // In order and alone: after 200 ms.
    let (before, start) = (sacks(&pair).len(), pair.now);
    pair.forge(Server, tag, vec![forward(1)]);
    pair.drive_for(ms(500));
    assert_eq!(sacks(&pair)[before..], [(start + ms(200), tsn.wrapping_add(1))]);
    // The second packet of two: at once.
    let (before, start) = (sacks(&pair).len(), pair.now);
    pair.forge(Server, tag, vec![forward(2)]);
    pair.forge(Server, tag, vec![forward(3)]);
    assert_eq!(sacks(&pair)[before..], [(start, tsn.wrapping_add(3))]);
    // One that fills a gap: at once.
    let part = Chunk::Data(Data { unordered: true, ..data(tsn.wrapping_add(5), b"later") });
    pair.forge(Server, tag, vec![part]);
    let (before, start) = (sacks(&pair).len(), pair.now);
    pair.forge(Server, tag, vec![forward(4)]);
    assert_eq!(sacks(&pair)[before..], [(start, tsn.wrapping_add(5))]);
}

/// §3.6: parts of a message that misses one up to the new cumulative TSN are removed, and the window
/// offered has their room again.
#[test]
fn section_3_6_parts_behind_what_is_skipped_are_removed() {
    let mut pair = Pair::connected(&plain());
    let (_, tag) = pair.tags();
    let tsn = pair.first_tsn(Client);
    let part = |at: u32, ending| {
        let tsn = tsn.wrapping_add(at);
        Chunk::Data(Data { beginning: false, ending, ..data(tsn, b"a part") })
    };
    pair.forge(Server, tag, vec![part(1, false)]);
    pair.forge(Server, tag, vec![part(2, true)]);
    let skipped = Skipped::Ssn(vec![(0, 0)]);
    pair.forge(Server, tag, vec![Chunk::ForwardTsn(ForwardTsn { cumulative: tsn, skipped })]);
    let sack = pair.sent_by(Server).last().unwrap().sack().unwrap().clone();
    assert_eq!((sack.cumulative, sack.a_rwnd), (tsn.wrapping_add(2), 4_000_000));
}

/// A3: parts that a gap block has acknowledged are given up with the others.
#[test]
fn section_3_5_a3_parts_that_came_are_given_up_too() {
    let config = Config { lifetime: Some(ms(300)), ..plain() };
    let mut pair = Pair::connected(&config);
    let first = pair.first_tsn(Client);
    pair.drop_data(Client, &[1, 3]);
    pair.send(Client, 1, 4000);
    pair.drive_for(ms(1100));
    let forwards: Vec<_> = pair
        .sent_by(Client)
        .flat_map(|sent| &sent.packet.chunks)
        .filter_map(|chunk| match chunk {
            Chunk::ForwardTsn(forward) => Some(forward.cumulative),
            _ => None,
        })
        .collect();
    assert_eq!(forwards, [first.wrapping_add(3)]);
    pair.drive_for(Duration::from_secs(5));
    assert_eq!(pair.server.received.len(), 0);
    let sack = pair.sent_by(Server).last().unwrap().sack().unwrap();
    assert_eq!(sack.a_rwnd, 4_000_000);
}

/// A message whose first parts are acknowledged when its life ends leaves no state that blocks others.
#[test]
fn section_3_5_a_message_given_up_behind_its_acknowledged_parts() {
    for interleaving in [false, true] {
        let config = Config { lifetime: Some(ms(150)), interleaving, ..plain() };
        let mut pair = Pair::connected(&config);
        // Four chunks of thirty leave at once, and are acknowledged when the life ends.
        pair.send(Client, 1, 30_000);
        pair.drive_for(ms(1000));
        pair.send(Client, 2, 100);
        pair.drive_for(ms(1000));
        assert_eq!(pair.server.numbers(), [2]);
        let sack = pair.sent_by(Server).filter_map(|sent| sent.sack()).last().unwrap();
        assert_eq!(sack.a_rwnd, 4_000_000);
    }
}
