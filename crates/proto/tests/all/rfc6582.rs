//! RFC 6582: NewReno's fast recovery, as traces of (milliseconds, segment). One-way delay is 50 ms,
//! so a round trip is 100 ms; data starts at 150 ms with a window of ten segments.

use talkspurt_proto::probe::Gauge;
use talkspurt_proto::tcp::{Config, Flags};
use talkspurt_testing::tcp::*;

/// Sends 40 segments, of which these transmissions are lost.
fn losing(numbers: &[usize]) -> Pair {
    let mut pair = Pair::connected(&Config { min_rto: ms(1000), ..plain() });
    pair.drop_data(Client, numbers);
    pair.send(Client, 40_000);
    pair.drive_for(ms(10_000));
    assert_eq!(pair.server.count, 40_000);
    pair
}

fn cwnd_at(pair: &Pair, now: u64) -> Option<f64> {
    let until = |note: &&(_, Gauge, f64)| note.1 == Gauge::Cwnd && note.0 <= at(now);
    pair.client.notes.gauges.iter().rev().find(until).map(|note| note.2)
}

fn round(pair: &Pair, now: u64) -> Vec<u32> {
    pair.trace(Client).into_iter().filter(|(at, _)| *at == now).map(|(_, place)| place).collect()
}

/// One loss (segment 4 of the first ten): retransmitted once, recovered in one round trip.
#[test]
fn one_loss() {
    let pair = losing(&[5]);
    // Acknowledgements of 0 to 3 (cwnd 14) bring 10 to 17. Of the duplicates for 5 to 9 the first
    // two bring 18 and 19 by limited transmit; the third brings 4, and ssthresh = 14/2 = 7.
    assert_eq!(round(&pair, 250), [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 4]);
    assert_eq!(cwnd_at(&pair, 250), Some(12_000.0));
    // Ten more duplicates inflate cwnd to 22: 16 are out, so the fifth brings 20 and so on to 25;
    // then 4 arrives, and the full acknowledgement (of 19) leaves six in flight:
    // cwnd = min(ssthresh, 6 + 1) = 7, which lets 26 out.
    assert_eq!(round(&pair, 350), [20, 21, 22, 23, 24, 25, 26]);
    assert_eq!(cwnd_at(&pair, 350), Some(7_000.0));
    assert_eq!(pair.trace(Client).iter().filter(|(_, place)| *place == 4).count(), 2);
}

/// Three losses in one window: each partial acknowledgement brings the next lost segment, one a
/// round trip, without a timeout and with one reduction of ssthresh.
#[test]
fn three_losses() {
    let pair = losing(&[5, 7, 9]);
    let again = |place| {
        let all: Vec<_> =
            pair.trace(Client).into_iter().filter(|sent| sent.1 == place).map(|s| s.0).collect();
        all
    };
    assert_eq!(again(4), [150, 250]);
    assert_eq!(again(6), [150, 350]);
    assert_eq!(again(8), [150, 450]);
    let halvings = pair.client.notes.gauges.iter().filter(|note| note.1 == Gauge::Ssthresh).count();
    assert_eq!(halvings, 1);
}

/// §3.2 step 3: on a partial acknowledgement cwnd shrinks by what it covers and grows by one
/// segment, and the first unacknowledged segment leaves.
#[test]
fn partial_acknowledgement() {
    let mut alone = Alone::established(&plain());
    alone.send(100_000);
    (0..3).for_each(|_| drop(alone.arrive(Flags::ACK, 1, 1, 0)));
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(8_000.0));
    let answer = alone.arrive(Flags::ACK, 1, 4001, 0);
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(5_000.0));
    assert_eq!(answer.iter().map(|s| alone.place(s)).collect::<Vec<_>>(), [4001]);
}

/// §4, impatient: only the first partial acknowledgement restarts the timer.
#[test]
fn impatient() {
    let mut alone = Alone::established(&plain());
    alone.send(100_000);
    alone.now = at(100);
    (0..3).for_each(|_| drop(alone.arrive(Flags::ACK, 1, 1, 0)));
    assert_eq!(alone.wake, Some(at(1000)));
    alone.now = at(200);
    alone.arrive(Flags::ACK, 1, 1001, 0);
    let first = alone.wake;
    assert!(first > Some(at(1000)));
    alone.now = at(300);
    alone.arrive(Flags::ACK, 1, 2001, 0);
    assert_eq!(alone.wake, first);
}

/// §3.2 step 3, option 1: after a full acknowledgement with nothing left in flight, two segments.
#[test]
fn no_burst_after_recovery() {
    let mut alone = Alone::established(&plain());
    alone.send(30_000);
    (0..3).for_each(|_| drop(alone.arrive(Flags::ACK, 1, 1, 0)));
    assert_eq!(alone.arrive(Flags::ACK, 1, 12_001, 0).len(), 2);
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(2_000.0));
}

/// §3.2 step 2 and §4.1: duplicates for segments sent before the last timeout are ignored;
/// later ones are not.
#[test]
fn no_fast_retransmit_after_timeout() {
    let mut alone = Alone::established(&plain());
    alone.send(100_000);
    alone.wait();
    alone.arrive(Flags::ACK, 1, 1001, 0);
    let ssthresh = alone.notes.last(Gauge::Ssthresh);
    let sent: usize = (0..6).map(|_| alone.arrive(Flags::ACK, 1, 1001, 0).len()).sum();
    assert_eq!((sent, alone.notes.last(Gauge::Ssthresh)), (0, ssthresh));
    // All of the old window arrives, then something new is lost.
    alone.arrive(Flags::ACK, 1, 10_001, 0);
    alone.arrive(Flags::ACK, 1, 11_001, 0);
    let answers: Vec<_> = (0..3).flat_map(|_| alone.arrive(Flags::ACK, 1, 11_001, 0)).collect();
    assert_eq!(alone.place(answers.last().expect("a retransmission")), 11_001);
}
