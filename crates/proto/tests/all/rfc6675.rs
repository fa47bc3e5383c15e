//! RFC 6675: when loss recovery with SACK begins, which segment is next, and what a timeout leaves.
//! Segments have 1000 bytes and are named by their number; the initial window is ten.

use talkspurt_proto::probe::Gauge;
use talkspurt_proto::tcp::{Config, Segment};
use talkspurt_testing::tcp::*;

fn sender(segments: u32) -> Alone {
    let mut alone = Alone::established(&Config { initial_window: 10, ..selective() });
    alone.send(1000 * segments);
    alone
}

/// §5: the first two duplicates each let one new segment out (step 3, RFC 3042), the third brings
/// the lost one (step 4), and the window is half of what was in flight before them.
#[test]
fn third_duplicate() {
    let mut alone = sender(100);
    assert_eq!(alone.sack_numbers(0, &[(1, 2)]), [10]);
    assert_eq!(alone.sack_numbers(0, &[(1, 3)]), [11]);
    assert_eq!(alone.sack_numbers(0, &[(1, 4)]), [0]);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
}

/// §2: a duplicate names something new; the same blocks again, or none, are not counted.
#[test]
fn what_is_a_duplicate() {
    let mut alone = sender(100);
    alone.sack_numbers(0, &[(1, 2)]);
    for _ in 0..9 {
        assert!(alone.sack_numbers(0, &[(1, 2)]).is_empty());
        assert!(alone.sack_numbers(0, &[]).is_empty());
    }
    // Data that comes with it does not matter, nor does a window that moves.
    alone.sack_numbers(0, &[(1, 3)]);
    let isn = alone.isn;
    let blocks = talkspurt_proto::tcp::SackBlocks::of([(isn + 1001, isn + 4001)]);
    let ack = Segment {
        sack: blocks,
        window: 20_001,
        ..alone.make(talkspurt_proto::tcp::Flags::ACK, 1, 1, 10)
    };
    let sent = alone.segment(ack);
    assert_eq!(alone.numbers(&sent), [0]);
}

/// §2, §5: an acknowledgement that names something new is a duplicate "even if it [...] moves the
/// cumulative acknowledgment point": DupAcks becomes zero, and then one.
#[test]
fn a_duplicate_that_acknowledges() {
    // Short segments, of which three do not make two segments' worth.
    let mut alone = Alone::established(&Config { initial_window: 10, ..selective() });
    (0..10).for_each(|_| drop(alone.send(100)));
    let mut named = |ack: u32, block: (u32, u32)| -> Vec<u32> {
        let sent = alone.sack(1 + 100 * ack, &[(1 + 100 * block.0, 1 + 100 * block.1)]);
        sent.iter().map(|segment| (alone.place(segment) - 1) / 100).collect()
    };
    assert!(named(1, (2, 3)).is_empty());
    assert!(named(1, (2, 4)).is_empty());
    assert_eq!(named(1, (2, 5)), [1]);
}

/// §5 step 4.3 sets RescueRxt to the end of the first retransmission, so that the rescue of rule 4
/// waits until more than that is acknowledged; there is one in a recovery.
#[test]
fn the_rescue() {
    // Ten in flight, nothing else to send; 0, 2, 8 and 9 are missing.
    let mut alone = sender(10);
    assert_eq!(alone.sack_numbers(0, &[(1, 2)]), [0; 0]);
    assert_eq!(alone.sack_numbers(0, &[(3, 4), (1, 2)]), [0; 0]);
    // 0, and 2, below which three lie, in a window of five; no rescue, however much room there is.
    let mut sent = alone.sack_numbers(0, &[(3, 5), (1, 2)]);
    sent.extend(alone.sack_numbers(0, &[(3, 7), (1, 2)]));
    sent.extend(alone.sack_numbers(0, &[(3, 8), (1, 2)]));
    assert_eq!(sent, [0, 2]);
    // Beyond the first retransmission: the last segment, once.
    assert_eq!(alone.sack_numbers(2, &[(3, 8)]), [9]);
    assert_eq!(alone.sack_numbers(8, &[]), [0; 0]);
}

/// §4, IsLost: more than two segments' worth named in one acknowledgement is as good as three
/// duplicates.
#[test]
fn one_acknowledgement_may_do() {
    let mut alone = sender(100);
    assert_eq!(alone.sack_numbers(0, &[(1, 4)])[0], 0);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
}

/// §4, NextSeg: lost segments in order (rule 1), then new data (rule 2); all within one recovery
/// and one reduction, without a timeout.
#[test]
fn several_losses_in_one_round_trip() {
    let mut pair = Pair::connected(&Config { min_rto: ms(1000), ..selective() });
    pair.drop_data(Client, &[5, 7, 9]);
    pair.send(Client, 40_000);
    pair.drive_for(ms(10_000));
    assert_eq!(pair.server.count, 40_000);
    let again = |place| -> Vec<u64> {
        let all = pair.trace(Client).into_iter();
        all.filter(|sent| sent.1 == place).map(|sent| sent.0).collect()
    };
    // 5, 7 and 9 are named: three runs above 4. In the next round trip 10 makes three segments
    // above 6, and 11 three above 8. NewReno repairs 8 a round trip later (`rfc6582`).
    assert_eq!((again(4), again(6), again(8)), (vec![150, 250], vec![150, 350], vec![150, 350]));
    let halvings = pair.client.notes.gauges.iter().filter(|note| note.1 == Gauge::Ssthresh).count();
    assert_eq!(halvings, 1);
}

/// §4, NextSeg rule 3: without new data, a hole that is not yet taken for lost; rule 4: then, once,
/// the last segment.
#[test]
fn holes_and_the_rescue() {
    let mut alone = sender(10);
    // 0 is lost, and 5 may be: only one run of two segments lies above it.
    alone.sack_numbers(0, &[(1, 2)]);
    alone.sack_numbers(0, &[(1, 3)]);
    assert_eq!(alone.sack_numbers(0, &[(1, 5)]), [0]);
    assert_eq!(alone.sack_numbers(0, &[(6, 8), (1, 5)]), [5]);
    // 8 and 9 remain; the last one is sent when the window allows, and not again.
    let mut after = alone.sack_numbers(5, &[(6, 8)]);
    after.extend(alone.sack_numbers(8, &[]));
    assert_eq!(after, [9]);
}

/// §5 (A): the recovery point reached, the window is ssthresh, and new data flows.
#[test]
fn the_end() {
    let mut alone = sender(100);
    (2..=10).for_each(|last| drop(alone.sack_numbers(0, &[(1, last)])));
    let in_flight = alone.notes.last(Gauge::Flight);
    assert!(in_flight <= Some(6000.0), "{in_flight:?}");
    alone.sack_numbers(12, &[]);
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(5000.0));
    assert_eq!(alone.notes.last(Gauge::Flight), Some(5000.0));
}

/// §5.1: a timeout ends recovery; what is named is not sent again, and duplicates begin no new
/// recovery before all that was in flight has arrived.
#[test]
fn timeout() {
    let mut alone = sender(100);
    alone.sack_numbers(0, &[(1, 4)]);
    let sent = alone.wait();
    assert_eq!(alone.numbers(&sent), [0]);
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(1000.0));
    let threshold = alone.notes.last(Gauge::Ssthresh);
    let highest = alone.sent.iter().map(|s| (alone.place(s) - 1) / 1000).max().expect("data");
    // Slow start over what is missing: 4 and 5 for the acknowledgement of 0 to 3.
    assert_eq!(alone.sack_numbers(4, &[]), [4, 5]);
    assert_eq!(alone.sack_numbers(5, &[(7, 10)]), [6, 10]);
    (0..4).for_each(|i| drop(alone.sack_numbers(6, &[(7, highest.min(10 + i))])));
    assert_eq!(alone.notes.last(Gauge::Ssthresh), threshold);
    // All of it arrives and something new is lost: a recovery of its own.
    alone.sack(1 + 1000 * (highest + 1), &[]);
    let una = highest + 1;
    assert!(
        alone.sack_numbers(una, &[(una + 1, una + 4)]).contains(&una) || {
            alone.sack_numbers(una, &[(una + 1, una + 5)]).contains(&una)
        }
    );
    assert_ne!(alone.notes.last(Gauge::Ssthresh), threshold);
}

/// §6: the timer starts anew with each retransmission, so that a long recovery is no timeout.
#[test]
fn the_timer_waits_for_the_retransmission() {
    let mut alone = sender(100);
    alone.now = at(900);
    assert_eq!(alone.sack_numbers(0, &[(1, 4)])[0], 0);
    assert_eq!(alone.wake, Some(at(1900)));
}

/// A path that shrinks splits what is sent again.
#[test]
fn packet_too_big() {
    let mut alone = sender(10);
    let seq = alone.sent.last().expect("data").seq;
    let before = alone.sent.len();
    alone.input(refusal(640, seq));
    for i in 1..40 {
        alone.sack((1 + 600 * i).min(10_001), &[]);
    }
    let again = &alone.sent[before..];
    assert!(again.iter().all(|segment| segment.payload.len() <= 600));
    let total: usize = again.iter().map(|segment| segment.payload.len()).sum();
    assert_eq!(total, 10_000);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), None);
}
