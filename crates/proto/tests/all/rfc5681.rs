//! RFC 5681: slow start, congestion avoidance, fast retransmit, restart, delayed acknowledgements.

use talkspurt_proto::endpoint::Input;
use talkspurt_proto::probe::Gauge;
use talkspurt_proto::tcp::{Config, Controller, Flags};
use talkspurt_proto::units::Size;
use talkspurt_testing::tcp::*;

const ACK: Flags = Flags::ACK;

/// Segments sent in each round trip of 100 ms.
fn rounds(pair: &Pair, count: u64) -> Vec<usize> {
    let start = pair.data(Client)[0].at;
    let round = |sent: &&Sent| (sent.at - start).as_nanos() / 100_000_000;
    (0..count).map(|i| pair.data(Client).iter().filter(|sent| round(sent) == i).count()).collect()
}

fn growth(config: &Config) -> Vec<usize> {
    let mut pair = Pair::connected(config);
    pair.send(Client, 1_000_000);
    pair.drive_for(ms(599));
    rounds(&pair, 6)
}

/// §3.1 equation 2: one segment for each acknowledgement; the window doubles when each segment is
/// acknowledged and grows by half when every second one is.
#[test]
fn slow_start() {
    let mut config = Config { initial_window: 2, ..plain() };
    config.receive_buffer = Size::from_bytes(65_000);
    assert_eq!(growth(&config), [2, 4, 8, 16, 32, 64]);
    config.delayed_ack = true;
    config.initial_window = 4;
    // Nine segments make four acknowledgements, and a late one for the last.
    assert_eq!(growth(&config)[..4], [4, 6, 9, 14]);
}

/// §3.1: an acknowledgement of many segments opens the window by one.
#[test]
fn slow_start_counts_at_most_one_segment() {
    let mut alone = Alone::established(&plain());
    alone.send(100_000);
    alone.arrive(ACK, 1, 10_001, 0);
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(11_000.0));
    // §3.1: and a byte opens it by a byte, however it is divided.
    (0..10).for_each(|i| drop(alone.arrive(ACK, 1, 10_002 + i, 0)));
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(11_010.0));
}

/// §3.1: above ssthresh one segment for each window acknowledged.
#[test]
fn congestion_avoidance() {
    let mut config = Config { initial_window: 2, initial_ssthresh: Some(8), ..plain() };
    config.receive_buffer = Size::from_bytes(65_000);
    assert_eq!(growth(&config), [2, 4, 8, 9, 10, 11]);
    // Bytes are counted, so delayed acknowledgements do not slow it down.
    config.delayed_ack = true;
    config.initial_window = 8;
    assert_eq!(growth(&config), [8, 9, 10, 11, 12, 13]);
}

/// §3.1 equation 4 and loss window: a timeout halves ssthresh by flight and leaves one segment;
/// again for the same segment, ssthresh is held.
#[test]
fn timeout() {
    let mut alone = Alone::established(&plain());
    alone.send(100_000);
    assert_eq!(alone.wait().len(), 1);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(1000.0));
    assert_eq!(alone.wait().len(), 1);
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
    // Slow start from there.
    assert_eq!(alone.arrive(ACK, 1, 1001, 0).len(), 2);
}

/// §3.2 step 1 (RFC 3042): the first two duplicates each let one new segment out, and these do not
/// count for ssthresh; steps 2 and 3: the third brings the lost segment at once.
#[test]
fn fast_retransmit() {
    let mut alone = Alone::established(&plain());
    alone.send(100_000);
    let places = |alone: &mut Alone| -> Vec<u32> {
        let answer = alone.arrive(ACK, 1, 1, 0);
        answer.iter().map(|segment| (alone.place(segment) - 1) / 1000).collect()
    };
    assert_eq!(places(&mut alone), [10]);
    assert_eq!(places(&mut alone), [11]);
    assert_eq!(places(&mut alone), [0]);
    // ssthresh = 10/2; cwnd = 5 + 3
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(8000.0));
    // Step 4: one segment for each further duplicate; step 5: new data once 12 < cwnd.
    let after: Vec<_> = (0..6).map(|_| places(&mut alone).len()).collect();
    assert_eq!(after, [0, 0, 0, 0, 1, 1]);
}

/// §2: what carries data, moves the window or comes while nothing is in flight is no duplicate.
#[test]
fn what_is_no_duplicate() {
    let mut alone = Alone::established(&plain());
    alone.send(10_000);
    let before = alone.sent.len();
    for i in 0..5 {
        alone.arrive(ACK, 1 + i * 10, 1, 10);
    }
    for i in 0..5 {
        let moved =
            talkspurt_proto::tcp::Segment { window: 20_001 + i, ..alone.make(ACK, 51, 1, 0) };
        alone.segment(moved);
    }
    assert!(alone.sent[before..].iter().all(|segment| segment.payload.is_empty()));
}

/// §4.1: after an idle time above RTO the window restarts from the initial one.
#[test]
fn restart() {
    for (idle, flight) in [(600, 36), (1100, 10)] {
        let mut pair =
            Pair::connected(&Config { receive_buffer: Size::from_bytes(65_000), ..plain() });
        // 10 + 20 + 30 segments; cwnd grows to 36 while they last.
        pair.send(Client, 60_000);
        pair.drive_for(ms(299 + idle));
        pair.log.clear();
        pair.send(Client, 60_000);
        assert_eq!(pair.data(Client).len(), flight);
    }
}

/// §4.2: every second full-sized segment at once, a lone one within the delay.
#[test]
fn delayed_acknowledgements() {
    let config = Config { delayed_ack: true, ack_delay: ms(40), ..plain() };
    let mut alone = Alone::established(&config);
    assert!(alone.arrive(ACK, 1, 1, 1000).is_empty());
    assert_eq!(Alone::acked(&alone.arrive(ACK, 1001, 1, 1000)[0]), 2001);
    assert!(alone.arrive(ACK, 2001, 1, 1000).is_empty());
    assert_eq!(alone.wake, Some(at(40)));
    assert_eq!(Alone::acked(&alone.wait()[0]), 3001);
    // It rides on data that leaves before.
    alone.arrive(ACK, 3001, 1, 1000);
    assert_eq!(Alone::acked(&alone.send(10)[0]), 4001);
    // RFC 5681 §4.2: below 500 ms whatever is configured.
    let config = Config { delayed_ack: true, ack_delay: ms(9000), ..plain() };
    let mut alone = Alone::established(&config);
    alone.arrive(ACK, 1, 1, 1000);
    assert!(alone.wake < Some(at(500)));
}

/// §4.2: out of order, and filling a gap, at once.
#[test]
fn gaps_are_told_at_once() {
    let mut alone = Alone::established(&Config { delayed_ack: true, ..plain() });
    for (seq, acked) in [(1001, 1), (3001, 1), (2001, 1), (1, 4001), (1, 4001)] {
        let answer = alone.arrive(ACK, seq, 1, 1000);
        assert_eq!((answer.len(), Alone::acked(&answer[0])), (1, acked));
    }
    assert_eq!(alone.count, 4000);
}

/// Not in §3.1, but in RFC 7661 §1: a window that is not filled does not grow.
#[test]
fn an_idle_window_does_not_grow() {
    let mut pair = Pair::connected(&plain());
    for _ in 0..50 {
        pair.send(Client, 2000);
        pair.drive_for(ms(200));
    }
    assert_eq!(pair.client.notes.last(Gauge::Cwnd), Some(10_000.0));
    pair.input(Client, Input::Close);
}

/// §3.1: slow start doubles the window in each round trip where every segment is acknowledged, however
/// the segments are spread over it (RFC 7661 §4.3: a window of which half is used is used).
#[test]
fn a_paced_slow_start_doubles() {
    for controller in [Controller::Newreno, Controller::Sack, Controller::Cubic] {
        let config = Config {
            controller,
            initial_window: 10,
            pacing: Some(true),
            hystart: Some(false),
            window_scaling: true,
            ..plain()
        };
        let mut pair = Pair::connected(&config);
        pair.send(Client, 3_000_000);
        pair.drive_for(ms(250));
        let window = |pair: &Pair| pair.client.notes.last(Gauge::Cwnd).expect("told");
        let before = window(&pair);
        pair.drive_for(ms(300));
        let grown = window(&pair) / before;
        // Three round trips.
        assert!((6.9..=8.6).contains(&grown), "{controller:?}: {grown}");
    }
}

/// A paced sender with little data grows its window to at most twice the used one.
#[test]
fn a_paced_window_that_is_not_used_does_not_grow() {
    let config = Config { initial_window: 10, pacing: Some(true), ..selective() };
    let mut pair = Pair::connected(&config);
    for _ in 0..200 {
        pair.send(Client, 3000);
        pair.drive_for(ms(100));
    }
    assert_eq!(pair.client.notes.last(Gauge::Cwnd), Some(10_000.0));
}
