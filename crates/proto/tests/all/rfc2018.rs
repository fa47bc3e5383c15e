//! RFC 2018 and RFC 2883: how the receiver reports data beyond a gap, and duplicates.

use talkspurt_proto::tcp::{Config, Controller, Flags, Segment};
use talkspurt_proto::units::Size;
use talkspurt_testing::tcp::*;

const ACK: Flags = Flags::ACK;

/// The blocks of a segment, in thousands of bytes from the peer's first one.
fn blocks(segment: &Segment) -> Vec<(u32, u32)> {
    let place = |number: u32| number.wrapping_sub(PEER).wrapping_sub(1) / 1000;
    let sack = segment.sack.as_ref().map_or(&[][..], |sack| sack.as_slice());
    sack.iter().map(|(left, right)| (place(*left), place(*right))).collect()
}

/// The answer to the peer's segment number `place`, of 1000 bytes.
fn answer(alone: &mut Alone, place: u32) -> (u32, Vec<(u32, u32)>) {
    let answer = alone.arrive(ACK, 1 + 1000 * place, 1, 1000);
    (Alone::acked(&answer[0]) / 1000, blocks(&answer[0]))
}

fn receiver() -> Alone {
    let receive_buffer = Size::from_bytes(65_000);
    Alone::established(&Config { receive_buffer, ..selective() })
}

/// §2: the option is offered on the SYN, and used if both do; without it there are no blocks.
#[test]
fn permitted() {
    for (controller, peer, agreed) in [
        (Controller::Sack, true, true),
        (Controller::Sack, false, false),
        (Controller::Newreno, true, false),
    ] {
        let mut alone = Alone::client(&Config { controller, ..plain() });
        alone.sack = peer;
        let syn = alone.input(talkspurt_proto::endpoint::Input::Open);
        assert_eq!(syn[0].sack_permitted, controller == Controller::Sack);
        let reply = alone.syn(Flags::SYN | ACK, 1);
        alone.segment(reply);
        assert_eq!(answer(&mut alone, 1).1.is_empty(), !agreed);
        // The answering side offers it only if the client did.
        let mut alone = Alone::listener(&Config { controller, ..plain() });
        alone.sack = peer;
        let syn = alone.syn(Flags::SYN, 0);
        assert_eq!(alone.segment(syn)[0].sack_permitted, agreed);
    }
}

/// §4: the first block holds the segment that came, then the others, the latest first; a block ends
/// where data is missing and blocks that meet are one.
#[test]
fn latest_first() {
    let mut alone = receiver();
    assert_eq!(answer(&mut alone, 0), (1, vec![]));
    assert_eq!(answer(&mut alone, 2), (1, vec![(2, 3)]));
    assert_eq!(answer(&mut alone, 3), (1, vec![(2, 4)]));
    assert_eq!(answer(&mut alone, 5), (1, vec![(5, 6), (2, 4)]));
    assert_eq!(answer(&mut alone, 8), (1, vec![(8, 9), (5, 6), (2, 4)]));
    assert_eq!(answer(&mut alone, 6), (1, vec![(5, 7), (8, 9), (2, 4)]));
    assert_eq!(answer(&mut alone, 4), (1, vec![(2, 7), (8, 9)]));
    // In-order data forms no block, and with the last gap the option disappears.
    assert_eq!(answer(&mut alone, 1), (7, vec![(8, 9)]));
    assert_eq!(answer(&mut alone, 7), (9, vec![]));
}

/// §3: four blocks fill the options, three beside timestamps; each is in three acknowledgements at
/// least.
#[test]
fn as_many_as_fit() {
    let mut alone = receiver();
    let last = (0..5).map(|i| answer(&mut alone, 2 * i + 1).1).last();
    assert_eq!(last, Some(vec![(9, 10), (7, 8), (5, 6), (3, 4)]));
    let mut config = Config { timestamps: true, ..selective() };
    config.receive_buffer = Size::from_bytes(65_000);
    let mut alone = Alone::client(&config);
    alone.clock = Some(1);
    alone.input(talkspurt_proto::endpoint::Input::Open);
    let reply = alone.syn(Flags::SYN | ACK, 1);
    alone.segment(reply);
    let answers: Vec<_> =
        (0..5).map(|i| alone.arrive(ACK, 2001 + 2000 * i, 1, 1000).remove(0)).collect();
    assert_eq!(blocks(&answers[4]), [(10, 11), (8, 9), (6, 7)]);
    assert_eq!(answers[4].header_bytes(), 60);
}

/// §4: real bytes make the same blocks as virtual ones.
#[test]
fn real_bytes() {
    let mut alone = receiver();
    for (place, expected) in [(3, vec![(3, 4)]), (2, vec![(2, 4)]), (4, vec![(2, 5)])] {
        let payload = talkspurt_proto::packet::Payload::Real(vec![7; 1000].into());
        let segment = Segment { payload, ..alone.make(ACK, 1 + 1000 * place, 1, 0) };
        assert_eq!(blocks(&alone.segment(segment)[0]), expected);
    }
}

/// RFC 2883 §4: a duplicate is named first and once: below the acknowledgement, or with its block
/// behind it.
#[test]
fn duplicates() {
    let mut alone = receiver();
    (0..3).for_each(|place| drop(answer(&mut alone, place)));
    assert_eq!(answer(&mut alone, 1), (3, vec![(1, 2)]));
    assert_eq!(answer(&mut alone, 4), (3, vec![(4, 5)]));
    assert_eq!(answer(&mut alone, 5), (3, vec![(4, 6)]));
    assert_eq!(answer(&mut alone, 5), (3, vec![(5, 6), (4, 6)]));
    assert_eq!(answer(&mut alone, 0), (3, vec![(0, 1), (4, 6)]));
    assert_eq!(answer(&mut alone, 7), (3, vec![(7, 8), (4, 6)]));
}

/// RFC 6691 §2: blocks never make a full segment exceed the path's MTU. The acknowledgement with
/// blocks is sent first, without data.
#[test]
fn no_segment_outgrows_the_path() {
    let mut alone = receiver();
    alone.send(9_500);
    alone.sack(1001, &[]);
    let before = alone.sent.len();
    alone.arrive(ACK, 2001, 5001, 1000);
    alone.send(10_000);
    let after = &alone.sent[before..];
    assert_eq!((after[0].payload.len(), blocks(&after[0])), (0, vec![(2, 3)]));
    assert!(after.len() > 3);
    assert!(after.iter().all(|segment| segment.header_bytes() + segment.payload.len() <= 1020));
    // Small segments carry the blocks themselves.
    (1501..=19_501).step_by(1000).for_each(|acked| drop(alone.sack(acked, &[])));
    let small = alone.send(100);
    assert_eq!((small.len(), small[0].payload.len(), blocks(&small[0])), (1, 100, vec![(2, 3)]));
}

/// §3: "the sequence number immediately following the last sequence number" of a run: a FIN has one
/// (RFC 9293 §3.4), so that a block which it ends covers it, as Linux's does. RFC 5681 §4.2: each
/// segment out of order, a FIN alone too, is acknowledged at once; RFC 2883 §4: what came twice is named.
#[test]
fn a_fin_beyond_a_gap() {
    let block = |segment: &Segment| -> Vec<(u32, u32)> {
        let place = |number: u32| number.wrapping_sub(PEER);
        let sack = segment.sack.as_ref().map_or(&[][..], |sack| sack.as_slice());
        sack.iter().map(|(left, right)| (place(*left), place(*right))).collect()
    };
    let fin = Flags::FIN | ACK;
    // With data, alone, alone beside data that came before, and before it.
    let mut alone = receiver();
    assert_eq!(block(&alone.arrive(fin, 1001, 1, 1000)[0]), [(1001, 2002)]);
    assert_eq!(block(&alone.arrive(fin, 1001, 1, 1000)[0]), [(1001, 2002), (1001, 2002)]);
    // In-order data is not reported.
    let answer = &alone.arrive(ACK, 1, 1, 1000)[0];
    assert_eq!((Alone::acked(answer), block(answer)), (2002, vec![]));
    let mut alone = receiver();
    assert_eq!(block(&alone.arrive(fin, 2001, 1, 0)[0]), [(2001, 2002)]);
    assert_eq!(block(&alone.arrive(fin, 2001, 1, 0)[0]), [(2001, 2002), (2001, 2002)]);
    assert_eq!(block(&alone.arrive(ACK, 1001, 1, 1000)[0]), [(1001, 2002)]);
    let mut alone = receiver();
    assert_eq!(block(&alone.arrive(ACK, 1001, 1, 1000)[0]), [(1001, 2001)]);
    assert_eq!(block(&alone.arrive(fin, 2001, 1, 0)[0]), [(1001, 2002)]);
    // Others in between, and delayed acknowledgements.
    let receive_buffer = Size::from_bytes(65_000);
    let config = Config { receive_buffer, delayed_ack: true, ..selective() };
    let mut alone = Alone::established(&config);
    assert_eq!(block(&alone.arrive(fin, 5001, 1, 0)[0]), [(5001, 5002)]);
    assert_eq!(block(&alone.arrive(ACK, 2001, 1, 1000)[0]), [(2001, 3001), (5001, 5002)]);
    // It fills a part of what is missing (RFC 5681 §4.2).
    assert_eq!(alone.arrive(ACK, 1, 1, 1000).len(), 1);
    let mut alone = Alone::established(&config);
    alone.arrive(fin, 5001, 1, 0);
    let answer = &alone.arrive(ACK, 1, 1, 1000)[0];
    assert_eq!((Alone::acked(answer), block(answer)), (1001, vec![(5001, 5002)]));
}

/// §8: the peer may discard reported data; if a timeout finds the next byte reported, all reports are
/// discarded and everything is sent again.
#[test]
fn reneging() {
    let mut alone = Alone::established(&selective());
    alone.send(5_000);
    alone.sack(1, &[(1001, 4001)]);
    // The first arrives, and the acknowledgement tells that nothing behind it is left.
    alone.sack(1001, &[]);
    let mut again = Vec::new();
    for acked in [2001, 3001, 4001, 5001] {
        let mut sent = alone.sent.len();
        if acked == 2001 {
            alone.wait();
        }
        sent = sent.min(alone.sent.len());
        again.extend(alone.sent[sent..].iter().map(|segment| alone.place(segment)));
        sent = alone.sent.len();
        alone.sack(acked, &[]);
        again.extend(alone.sent[sent..].iter().map(|segment| alone.place(segment)));
    }
    again.sort_unstable();
    again.dedup();
    assert_eq!(again, [1001, 2001, 3001, 4001]);
}

/// Blocks beyond the data sent, or that end before they begin, are rejected without effect.
#[test]
fn blocks_that_lie() {
    let mut alone = Alone::established(&selective());
    alone.send(30_000);
    let before = alone.sent.len();
    for block in [(5001, 50_001), (4001, 3001), (20_001, 21_001), (2001, 2001)] {
        let noted = alone.notes.rx_error.len();
        (0..4).for_each(|_| drop(alone.sack(1, &[block])));
        assert_eq!(alone.notes.rx_error.len(), noted + 4, "{block:?}");
    }
    assert_eq!(alone.sent.len(), before);
}
