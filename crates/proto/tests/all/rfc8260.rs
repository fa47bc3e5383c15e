//! Stream schedulers and interleaving (RFC 8260).

use talkspurt_proto::sctp::{Cause, Chunk, Config, Scheduler, Sending};
use talkspurt_proto::time::Duration;
use talkspurt_testing::sctp::{Client, Pair, Server, Verdict, bytes_of, message, ms, plain};

fn on(stream: u16) -> Sending {
    Sending { stream, ..Sending::default() }
}

/// Messages of two chunks each on streams 2, 1 and 0, two per stream, passed at once; returns the
/// streams in the order of their chunks.
fn order(scheduler: Scheduler, interleaving: bool) -> Vec<u16> {
    let window = Some(talkspurt_proto::units::Size::from_bytes(1_000_000));
    let config =
        Config { scheduler, interleaving, initial_window: window, max_burst: 1000, ..plain() };
    let mut pair = Pair::connected(&config);
    let now = pair.now;
    for stream in [2, 2, 1, 1, 0, 0] {
        assert!(pair.client.endpoint.send(now, message(stream as u8, 1900), &on(stream)));
    }
    pair.settle(Client);
    pair.drive_for(Duration::from_secs(1));
    assert_eq!(pair.server.received.len(), 6);
    for (_, frame) in &pair.server.received {
        assert_eq!(bytes_of(frame), bytes_of(&message(bytes_of(frame)[0], 1900)));
    }
    let kind = if interleaving { 64 } else { 0 };
    let sent = pair.sent_by(Client).filter(|sent| sent.has_data());
    let chunks: Vec<_> = sent.flat_map(|sent| sent.packet.chunks.clone()).collect();
    assert!(chunks.iter().all(|chunk| chunk.number() == kind));
    pair.sent_by(Client).flat_map(|sent| sent.data()).map(|data| data.stream).collect()
}

#[test]
fn section_3_whose_turn_it_is() {
    assert_eq!(order(Scheduler::Fcfs, false), [2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(order(Scheduler::RoundRobin, false), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
    assert_eq!(order(Scheduler::Priority, false), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
}

#[test]
fn section_2_2_parts_of_several_messages_are_mixed() {
    assert_eq!(order(Scheduler::RoundRobin, true), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

/// A short message need not wait for a long one that has begun.
#[test]
fn section_1_a_long_message_blocks_no_other_stream() {
    let first = |interleaving| {
        let config = Config { scheduler: Scheduler::Priority, interleaving, ..plain() };
        let mut pair = Pair::connected(&config);
        pair.send_how(Client, 1, 200_000, &on(5));
        pair.drive_for(ms(10));
        pair.send_how(Client, 2, 100, &on(0));
        pair.drive_for(Duration::from_secs(20));
        assert_eq!(pair.server.received.len(), 2);
        pair.server.numbers()
    };
    assert_eq!((first(false), first(true)), (vec![1, 2], vec![2, 1]));
}

#[test]
fn section_2_2_1_without_both_ends_there_is_none() {
    let with = Config { interleaving: true, ..plain() };
    let mut pair = Pair::on_paths(&with, &plain(), 1);
    pair.connect();
    pair.send(Client, 1, 100);
    pair.drive_for(ms(200));
    assert!(pair.log.iter().any(|sent| sent.has(0)) && !pair.log.iter().any(|sent| sent.has(64)));
    // With both, DATA is a violation.
    let mut pair = Pair::connected(&with);
    let (_, tag) = pair.tags();
    pair.send(Client, 1, 100);
    let data = pair.log.last().unwrap().data().next().unwrap().clone();
    let wrong =
        talkspurt_proto::sctp::Data { number: talkspurt_proto::sctp::Number::Ssn(0), ..data };
    pair.forge(Server, tag, vec![Chunk::Data(wrong)]);
    let Chunk::Abort { causes, .. } = &pair.log.last().unwrap().packet.chunks[0] else {
        panic!("no ABORT")
    };
    assert_eq!(causes[0].code, Cause::PROTOCOL_VIOLATION);
}

#[test]
fn section_2_2_messages_survive_loss_and_disorder() {
    for unordered in [false, true] {
        let config = Config { scheduler: Scheduler::RoundRobin, interleaving: true, ..plain() };
        let mut pair = Pair::connected(&config);
        let mut count = 0;
        pair.on_wire(move |sent| {
            count += 1;
            match count % 7 {
                3 if sent.has_data() => Verdict::Drop,
                5 => Verdict::Late(ms(35)),
                _ => Verdict::Arrive,
            }
        });
        for number in 0..30_u8 {
            let how = Sending { stream: u16::from(number % 3), unordered, ..Sending::default() };
            assert!(pair.send_how(Client, number, 3000, &how));
        }
        pair.drive_for(Duration::from_secs(120));
        let mut received = pair.server.numbers();
        if !unordered {
            for stream in 0..3 {
                let of_stream: Vec<_> = received.iter().filter(|n| *n % 3 == stream).collect();
                assert!(of_stream.is_sorted());
            }
        }
        received.sort_unstable();
        assert_eq!(received, (0..30).collect::<Vec<u8>>());
    }
}

/// §2.3: abandoned messages are reported by I-FORWARD-TSN, including unordered ones.
#[test]
fn section_2_3_1_i_forward_tsn() {
    for unordered in [false, true] {
        let lifetime = Some(ms(300));
        let config = Config { interleaving: true, lifetime, ordered: !unordered, ..plain() };
        let mut pair = Pair::connected(&config);
        let first = pair.first_tsn(Client);
        pair.on_wire(move |sent| {
            if sent.data().any(|data| data.tsn == first) { Verdict::Drop } else { Verdict::Arrive }
        });
        pair.send(Client, 1, 2500);
        pair.drive_for(ms(400));
        pair.send(Client, 2, 100);
        pair.drive_for(Duration::from_secs(5));
        assert_eq!(pair.server.numbers(), [2]);
        assert!(pair.log.iter().any(|sent| sent.has(194)));
    }
}
