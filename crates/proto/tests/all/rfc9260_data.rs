//! How SCTP carries data (RFC 9260 §6): SACKs, order, fragmentation and bundling, the peer's window,
//! and invalid data.

use crate::rfc9260_half::data;
use talkspurt_proto::endpoint::{Endpoint, Event};
use talkspurt_proto::packet::PathId;
use talkspurt_proto::probe::RxError;
use talkspurt_proto::sctp::{Cause, Chunk, Config, Data, Packet, Sack};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;
use talkspurt_testing::sctp::{
    Client, Pair, Server, Verdict, bytes_of, message, ms, packet, plain,
};

#[test]
fn section_6_2_sacks_come_every_second_packet_or_after_200_ms() {
    let config = Config { sack_frequency: 2, bundling: false, ..plain() };
    let mut pair = Pair::connected(&config);
    let start = pair.now;
    // §5.1: the first of all at once.
    pair.send(Client, 0, 100);
    pair.drive_for(ms(100));
    pair.send(Client, 1, 100);
    pair.drive_for(ms(400));
    pair.send(Client, 2, 100);
    pair.send(Client, 3, 100);
    pair.drive_for(ms(400));
    let sacks: Vec<_> = pair.sent_by(Server).filter(|s| s.has(3)).map(|s| s.at).collect();
    assert_eq!(sacks, [50, 100 + 50 + 200, 500 + 50].map(|after| start + ms(after)));
}

#[test]
fn section_6_7_gaps_and_duplicates_are_told_of_at_once() {
    let config = Config { sack_frequency: 2, bundling: false, ..plain() };
    let mut pair = Pair::connected(&config);
    let tsn = pair.first_tsn(Client);
    let judge = |count| match count {
        2 => Verdict::Drop,
        4 => Verdict::Twice(ms(0)),
        _ => Verdict::Arrive,
    };
    pair.judge_counted(|sent| sent.has_data(), judge);
    for number in 1..=4 {
        pair.send(Client, number, 100);
    }
    pair.drive_for(ms(60));
    let sacks: Vec<_> = pair.sent_by(Server).filter_map(|sent| sent.sack().cloned()).collect();
    // §5.1 for packet 1. Packet 3 shows the gap, 4 widens the block, its copy is a duplicate.
    assert_eq!(sacks.len(), 4);
    assert!(sacks.iter().all(|sack| sack.cumulative == tsn));
    assert_eq!(sacks[0].gaps, []);
    let sacks = &sacks[1..];
    assert_eq!(sacks[0].gaps, [(2, 2)]);
    assert_eq!((sacks[1].gaps.clone(), sacks[1].duplicates.len()), (vec![(2, 3)], 0));
    assert_eq!(sacks[2].duplicates, [tsn.wrapping_add(3)]);
}

#[test]
fn section_6_6_order_is_kept_or_not_as_wanted() {
    for (ordered, expected) in [(true, vec![1, 2, 3]), (false, vec![2, 3, 1])] {
        let mut pair = Pair::connected(&Config { ordered, bundling: false, ..plain() });
        pair.drop_data(Client, &[1]);
        for number in 1..=3 {
            pair.send(Client, number, 100);
        }
        pair.drive_for(Duration::from_secs(3));
        assert_eq!(pair.server.numbers(), expected);
        let unordered = pair.log.iter().flat_map(|s| s.data()).all(|data| data.unordered);
        assert_eq!(unordered, !ordered);
    }
}

#[test]
fn section_6_9_long_messages_are_cut_and_put_together() {
    for (ordered, lost) in [(true, vec![]), (false, vec![2]), (true, vec![1, 3])] {
        let mut pair = Pair::connected(&Config { ordered, ..plain() });
        pair.drop_data(Client, &lost);
        pair.send(Client, 1, 3500);
        pair.send(Client, 2, 10);
        pair.drive_for(Duration::from_secs(10));
        let mut received: Vec<_> = pair.server.received.iter().map(|r| bytes_of(&r.1)).collect();
        received.sort();
        assert_eq!(received, [bytes_of(&message(1, 3500)), bytes_of(&message(2, 10))]);
        let parts: Vec<_> = pair
            .sent_by(Client)
            .flat_map(|sent| sent.data())
            .take(4)
            .map(|d| (d.beginning, d.ending, d.payload.wire_bytes()))
            .collect();
        let (first, middle, last) = ((true, false, 1000), (false, false, 1000), (false, true, 500));
        assert_eq!(parts, [first, middle, middle, last]);
    }
}

#[test]
fn section_6_10_messages_that_wait_share_packets() {
    for (bundling, packets) in [(true, 2), (false, 11)] {
        let mut pair = Pair::new(&Config { bundling, ..plain() });
        pair.connect();
        // The first leaves at once; the others are handed over before the endpoint is asked.
        let now = pair.now;
        for number in 0..11 {
            let how = pair.client.endpoint.sending();
            assert!(pair.client.endpoint.send(now, message(number, 80), &how));
        }
        pair.settle(Client);
        pair.drive_for(ms(300));
        assert_eq!(pair.server.numbers(), (0..11).collect::<Vec<u8>>());
        let sent: Vec<_> = pair.sent_by(Client).filter(|sent| sent.has_data()).collect();
        // 96 bytes a chunk: ten in 1016.
        assert_eq!(sent.len(), packets);
        assert!(sent.iter().all(|sent| sent.packet.wire_bytes() + 20 <= 1048));
    }
}

#[test]
fn section_6_1_nagle_holds_back_what_does_not_fill_a_packet() {
    let mut pair = Pair::connected(&Config { nagle: true, ..plain() });
    let start = pair.now;
    pair.send(Client, 1, 100);
    pair.send(Client, 2, 100);
    pair.send(Client, 3, 100);
    pair.drive_for(ms(500));
    let sent: Vec<_> = pair.sent_by(Client).filter(|s| s.has_data()).collect();
    assert_eq!(sent.iter().map(|s| s.at).collect::<Vec<_>>(), [start, start + ms(100)]);
    assert_eq!(sent[1].data().count(), 2);
}

#[test]
fn section_5_1_the_first_data_is_acknowledged_at_once() {
    let mut pair = Pair::connected(&Config { sack_frequency: 2, ..plain() });
    let start = pair.now;
    pair.send(Client, 1, 100);
    pair.drive_for(ms(150));
    pair.send(Client, 2, 100);
    pair.drive_for(ms(600));
    let sacks: Vec<_> = pair.sent_by(Server).filter(|s| s.kinds() == [3]).map(|s| s.at).collect();
    // 50 ms there; then §6.2: 200 ms.
    assert_eq!(sacks, [50, 150 + 50 + 200].map(|after| start + ms(after)));
}

/// ns-2.35 (sctp/sctp.cc, `eSendNewDataChunks`): data leaves when a SACK arrives, however much waits.
#[test]
fn new_data_may_wait_for_sacks() {
    let mut pair = Pair::connected(&Config { ack_clocked: true, ..plain() });
    let start = pair.now;
    for number in 0..13 {
        pair.send(Client, number, 100);
    }
    pair.drive_for(ms(500));
    let sent: Vec<_> = pair.sent_by(Client).filter(|s| s.has_data()).collect();
    // The first alone; with its SACK two packets of eight and four chunks, though eight would have
    // filled a packet before.
    let seen: Vec<_> = sent.iter().map(|s| (s.at, s.data().count())).collect();
    assert_eq!(seen, [(start, 1), (start + ms(100), 8), (start + ms(100), 4)]);
    // Nothing in flight: a message need not wait for a SACK that will not come.
    let later = pair.now;
    pair.send(Client, 14, 100);
    pair.drive_for(ms(10));
    assert_eq!(pair.sent_by(Client).filter(|s| s.has_data()).last().unwrap().at, later);
}

/// While the send buffer is full, messages wait in the application. They leave with the SACK that makes
/// room for them, as do those in the buffer; later ones wait for the next SACK.
#[test]
fn new_data_that_waits_for_sacks_leaves_with_the_sack_that_makes_room_for_it() {
    let send_buffer = Size::from_bytes(3000);
    let mut pair = Pair::connected(&Config { ack_clocked: true, send_buffer, ..plain() });
    let (tag, tsn) = (pair.tags().0, pair.first_tsn(Client));
    pair.on_wire(|_| Verdict::Drop);
    let flown = |pair: &Pair| pair.sent_by(Client).filter(|sent| sent.has_data()).count();
    (0..3).for_each(|number| pair.send(Client, number, 1000));
    assert_eq!((flown(&pair), pair.client.endpoint.send_capacity()), (1, 0));
    // Each SACK makes room for one message: for two in the buffer, and when all in it are in flight.
    for acked in 0..3 {
        let sack = Sack { cumulative: tsn + acked, a_rwnd: 100_000, ..Sack::default() };
        let chunks = vec![Chunk::Sack(sack)];
        let arrival = packet(PathId(0), Packet { tag, chunks });
        pair.client.endpoint.handle(pair.now, arrival, &mut ());
        assert_eq!(pair.client.endpoint.send_capacity(), 1000);
        pair.send(Client, 3, 1000);
        assert_eq!(flown(&pair), 4 + acked as usize);
    }
    // The window, 4380 bytes, has room for what the buffer has not.
    let sack = Sack { cumulative: tsn + 4, a_rwnd: 100_000, ..Sack::default() };
    let chunks = vec![Chunk::Sack(sack)];
    pair.forge(Client, tag, chunks);
    pair.send(Client, 3, 1000);
    assert_eq!(flown(&pair), 6);
}

#[test]
fn section_6_2_1_the_peers_window_is_respected_and_probed() {
    let small = Config { receive_buffer: Size::from_bytes(2500), ..plain() };
    let mut pair = Pair::on_paths(&plain(), &small, 1);
    pair.connect();
    // Ordered messages behind a lost one stay in the receiver's buffer.
    pair.drop_data(Client, &[1]);
    for number in 0..6 {
        pair.send(Client, number, 1000);
    }
    // a_rwnd of 2500 lets two chunks out.
    assert_eq!(pair.sent_by(Client).filter(|s| s.has_data()).count(), 2);
    pair.drive_for(ms(60));
    let sack = pair.sent_by(Server).filter_map(|sent| sent.sack()).last().unwrap();
    assert_eq!(sack.a_rwnd, 1500);
    pair.drive_for(Duration::from_secs(20));
    assert_eq!(pair.server.numbers(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn section_6_2_1_a_sack_for_what_was_not_sent_is_not_believed() {
    let mut pair = Pair::connected(&plain());
    let (tag, _) = pair.tags();
    let tsn = pair.first_tsn(Client);
    pair.on_wire(|_| Verdict::Drop);
    pair.send(Client, 1, 100);
    let a_rwnd = 100_000;
    let lies = [
        Sack { cumulative: tsn.wrapping_add(1), a_rwnd, ..Sack::default() },
        Sack { cumulative: tsn.wrapping_sub(1), a_rwnd, gaps: vec![(2, 3)], ..Sack::default() },
        Sack { cumulative: tsn.wrapping_sub(1), a_rwnd, gaps: vec![(3, 2)], ..Sack::default() },
    ];
    for lie in lies {
        pair.forge(Client, tag, vec![Chunk::Sack(lie)]);
    }
    assert_eq!(pair.client.notes.rx_error, [RxError::BadAck; 3]);
    let room = pair.client.endpoint.send_capacity();
    assert_eq!(room, 4_000_000 - 100);
    let truth = Sack { cumulative: tsn, a_rwnd, ..Sack::default() };
    pair.forge(Client, tag, vec![Chunk::Sack(truth)]);
    assert_eq!(pair.client.endpoint.send_capacity(), 4_000_000);
}

#[test]
fn section_6_2_and_6_5_data_that_must_not_be() {
    // No user data: ABORT.
    let mut pair = Pair::connected(&plain());
    let (_, tag) = pair.tags();
    let tsn = pair.first_tsn(Client);
    pair.forge(Server, tag, vec![Chunk::Data(data(tsn, b""))]);
    let Chunk::Abort { causes, .. } = &pair.log.last().unwrap().packet.chunks[0] else {
        panic!("no ABORT")
    };
    assert_eq!(causes[..], [Cause::no_user_data(tsn)]);
    // A stream that does not exist: acknowledged and reported.
    let mut pair = Pair::connected(&plain());
    let stray = Data { stream: 10, ..data(tsn, b"x") };
    pair.forge(Server, tag, vec![Chunk::Data(stray)]);
    let answer = pair.log.last().unwrap();
    assert!(answer.packet.chunks.contains(&Chunk::Error(vec![Cause::invalid_stream(10)])));
    assert_eq!(answer.sack().map(|sack| sack.cumulative), Some(tsn));
    assert!(pair.server.received.is_empty());
}

#[test]
fn parts_that_overlap_end_the_association() {
    let mut pair = Pair::connected(&plain());
    let (_, tag) = pair.tags();
    let tsn = pair.first_tsn(Client);
    let part = Data { ending: false, ..data(tsn, b"first part") };
    // A message begins where the one before it must go on.
    let other = Data { tsn: tsn.wrapping_add(1), ending: false, ..data(tsn, b"no") };
    pair.forge(Server, tag, vec![Chunk::Data(part), Chunk::Data(other)]);
    let Chunk::Abort { causes, .. } = &pair.log.last().unwrap().packet.chunks[0] else {
        panic!("no ABORT")
    };
    assert_eq!(causes[0].code, Cause::PROTOCOL_VIOLATION);
    assert!(pair.server.saw(Event::Reset));
}

/// Wire numbers wrap; the association continues.
#[test]
fn stream_sequence_numbers_wrap() {
    let config = Config { sack_frequency: 2, mtu: Size::from_bytes(60_000), ..Config::default() };
    let mut pair = Pair::connected(&config);
    let how = pair.client.endpoint.sending();
    for _ in 0..140 {
        let now = pair.now;
        for number in 0..500_usize {
            assert!(pair.client.endpoint.send(now, message(number as u8, 2), &how));
        }
        pair.settle(Client);
        pair.drive_for(Duration::from_secs(3));
        pair.log.clear();
    }
    assert_eq!(pair.server.received.len(), 70_000);
}
