//! Tahoe and Reno, the ancestors: what they do with one loss and with two in a window (Fall and
//! Floyd 1996, "Simulation-based Comparisons of Tahoe, Reno, and SACK TCP"). Segments have 1000
//! bytes; a round trip is 100 ms; data starts at 150 ms with a window of ten segments.

use talkspurt_proto::probe::Gauge;
use talkspurt_proto::tcp::{Config, Controller, Flags, WindowRule};
use talkspurt_testing::tcp::*;

fn losing(controller: Controller, numbers: &[usize]) -> Pair {
    let mut pair = Pair::connected(&Config { controller, min_rto: ms(1000), ..plain() });
    pair.drop_data(Client, numbers);
    pair.send(Client, 60_000);
    pair.drive_for(ms(20_000));
    assert_eq!(pair.server.count, 60_000);
    pair
}

/// When segment `place` was sent.
fn times(pair: &Pair, place: u32) -> Vec<u64> {
    pair.trace(Client).into_iter().filter(|sent| sent.1 == place).map(|sent| sent.0).collect()
}

fn alone(controller: Controller) -> Alone {
    let mut alone = Alone::established(&Config { controller, ..plain() });
    alone.send(100_000);
    alone
}

/// Tahoe: the third duplicate leaves one segment in the window and half of the flight as threshold;
/// slow start begins with the lost segment and goes back to what follows it.
#[test]
fn tahoe_starts_over() {
    let mut alone = alone(Controller::Tahoe);
    (0..2).for_each(|_| drop(alone.arrive(Flags::ACK, 1, 1, 0)));
    let sent = alone.arrive(Flags::ACK, 1, 1, 0);
    assert_eq!(sent.iter().map(|s| alone.place(s)).collect::<Vec<_>>(), [1]);
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(1000.0));
    assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
    // More duplicates let nothing out: there is no fast recovery.
    for _ in 0..5 {
        assert!(alone.arrive(Flags::ACK, 1, 1, 0).is_empty());
    }
    // A hole behind the first: two segments from there.
    let sent = alone.arrive(Flags::ACK, 1, 3001, 0);
    assert_eq!(sent.iter().map(|s| alone.place(s)).collect::<Vec<_>>(), [3001, 4001]);
}

/// Tahoe with two losses in a window repairs both in slow start, without a timeout.
#[test]
fn tahoe_repairs_two_losses() {
    let pair = losing(Controller::Tahoe, &[5, 7]);
    assert_eq!(times(&pair, 4), [150, 250]);
    assert_eq!(times(&pair, 6), [150, 350]);
}

/// Reno: one loss is repaired by fast recovery (RFC 5681 §3.2), and the window is ssthresh.
#[test]
fn reno_repairs_one_loss() {
    let mut alone = alone(Controller::Reno);
    (0..3).for_each(|_| drop(alone.arrive(Flags::ACK, 1, 1, 0)));
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(8000.0));
    // Step 6: the acknowledgement of new data deflates it, though it is a partial one.
    alone.arrive(Flags::ACK, 1, 4001, 0);
    assert_eq!(alone.notes.last(Gauge::Cwnd), Some(5000.0));
}

/// Reno: each loss in a window is a reduction of its own, where NewReno makes one for all.
#[test]
fn reno_reduces_for_each_loss() {
    let halvings = |controller| {
        let pair = losing(controller, &[5, 10]);
        pair.client.notes.gauges.iter().filter(|note| note.1 == Gauge::Ssthresh).count()
    };
    assert_eq!((halvings(Controller::Newreno), halvings(Controller::Reno)), (1, 2));
}

/// Reno: with three losses in a small window duplicates run out and only a timeout helps.
#[test]
fn reno_waits_for_a_timeout() {
    let pair = losing(Controller::Reno, &[2, 4, 6, 8]);
    let retransmissions: Vec<u64> =
        (0..8).filter_map(|i| times(&pair, i).get(1).copied()).collect();
    assert!(retransmissions.iter().any(|at| *at >= 1000), "{retransmissions:?}");
    let newreno = losing(Controller::Newreno, &[2, 4, 6, 8]);
    assert!((0..8).filter_map(|i| times(&newreno, i).get(1).copied()).all(|at| at < 1000));
}

/// ns-2's windows: a segment and a fraction of one for each acknowledgement, half of the window where
/// RFC 5681 takes half of the flight, whole segments as threshold, and the window that the loss left
/// after recovery, plus its share.
#[test]
fn ns_2_halves_the_window_and_keeps_it() {
    for controller in [Controller::Reno, Controller::Newreno] {
        let config = Config { initial_ssthresh: Some(10), window_rule: WindowRule::Ns2, ..plain() };
        let mut alone = Alone::established(&Config { controller, ..config });
        alone.send(100_000);
        // 10 + 1/10, and room for one more.
        assert_eq!(alone.arrive(Flags::ACK, 1, 1001, 0).len(), 1);
        assert_eq!(alone.notes.last(Gauge::Cwnd), Some(10_100.0));
        (0..3).for_each(|_| drop(alone.arrive(Flags::ACK, 1, 1001, 0)));
        // 5.05, inflated by three; the threshold has five.
        assert_eq!(alone.notes.last(Gauge::Cwnd), Some(8050.0));
        assert_eq!(alone.notes.last(Gauge::Ssthresh), Some(5000.0));
        // Two segments were let out by the first duplicates: all is acknowledged, 5.05 + 1/5.05.
        alone.arrive(Flags::ACK, 1, 13_001, 0);
        assert_eq!(alone.notes.last(Gauge::Cwnd), Some(5248.0));
    }
}

/// ns-2 restarts the retransmission timer with a fast retransmission (`reset_rtx_timer`). By RFC
/// 6298 §5 it runs on: only an acknowledgement of new data starts it anew.
#[test]
fn ns_2_starts_the_timer_with_a_fast_retransmission() {
    let left = |window_rule| {
        let config = Config { controller: Controller::Newreno, window_rule, ..plain() };
        let mut alone = Alone::established(&config);
        alone.send(100_000);
        let before = alone.wake.expect("the timer runs");
        alone.now += ms(30);
        (0..3).for_each(|_| drop(alone.arrive(Flags::ACK, 1, 1, 0)));
        alone.wake.expect("the timer runs") - before
    };
    assert_eq!([WindowRule::Rfc5681, WindowRule::Ns2].map(left), [ms(0), ms(30)]);
}
