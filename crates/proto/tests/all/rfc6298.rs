//! RFC 6298: the retransmission timer, seen in the times of retransmissions.

use talkspurt_proto::endpoint::Input;
use talkspurt_proto::probe::Gauge;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::tcp::{Config, Controller, Flags, Segment};
use talkspurt_proto::time::Duration;
use talkspurt_testing::tcp::*;

fn quick() -> Config {
    Config { min_rto: ms(1), ..plain() }
}

/// §2.1: before any sample the timer stands at 1 s; §5.5: it doubles; §2.5: up to its bound.
#[test]
fn first_timeout_and_back_off() {
    let mut alone = Alone::opening(&plain());
    let waits: Vec<_> = (0..8)
        .map(|_| {
            let before = alone.now;
            assert!(alone.wait()[0].flags.contains(Flags::SYN));
            (alone.now - before).as_nanos() / 1_000_000_000
        })
        .collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
}

/// §2.2: after the first sample R, SRTT = R and RTO = R + 4 · R/2.
#[test]
fn first_sample() {
    let pair = Pair::connected(&quick());
    assert_eq!(pair.client.notes.last(Gauge::Srtt), Some(0.1));
    assert_eq!(pair.client.notes.last(Gauge::Rto), Some(0.3));
}

/// §2.3: SRTT = 7/8 SRTT + 1/8 R, RTTVAR = 3/4 RTTVAR + 1/4 |SRTT − R|.
#[test]
fn later_samples() {
    let mut pair = Pair::connected(&quick());
    pair.delay = ms(90);
    pair.send(Client, 100);
    pair.drive_for(ms(200));
    // SRTT = (7 · 100 + 180)/8 = 110; RTTVAR = (3 · 50 + 80)/4 = 57.5
    assert_eq!(pair.client.notes.last(Gauge::Srtt), Some(0.110));
    assert_eq!(pair.client.notes.last(Gauge::Rto), Some(0.340));
}

/// §2.4: never below its lower bound, one second unless configured.
#[test]
fn lower_bound() {
    let mut pair = Pair::connected(&plain());
    pair.drop_data(Client, &[1]);
    pair.send(Client, 1000);
    pair.drive_for(ms(2000));
    assert_eq!(pair.trace(Client), [(150, 0), (1150, 0)]);
}

/// §3 (Karn): a segment sent twice is not measured; the backed-off timeout stays until one is.
#[test]
fn retransmissions_are_not_measured() {
    let mut pair = Pair::connected(&quick());
    pair.drop_data(Client, &[1]);
    pair.send(Client, 1000);
    pair.drive_for(ms(1000));
    assert_eq!(pair.trace(Client), [(150, 0), (450, 0)]);
    assert_eq!(pair.client.notes.last(Gauge::Srtt), Some(0.1));
    assert_eq!(pair.client.notes.last(Gauge::Rto), Some(0.6));
    pair.send(Client, 1000);
    pair.drive_for(ms(1000));
    // Measured again: RTTVAR = 3/4 · 50 = 37.5
    assert_eq!(pair.client.notes.last(Gauge::Rto), Some(0.25));
}

/// §3: on a path of 100 ms that keeps packets in order and loses 20 % of them each way, a sample that is longer
/// has waited for another segment's acknowledgement, since its own was lost. This other segment, which left
/// a round trip before, was not a retransmission: that would have come after a timeout. Nor was anything
/// sent again between the two.
#[test]
fn no_sample_spans_a_retransmission() {
    use Controller::{Bbr, Cubic, Newreno, Reno, Sack, Tahoe};
    // The timestamp clock's tick adds to it, at each of the samples of one instant.
    const TRIP: f64 = 0.11;
    let mut longer = 0;
    for (controller, timestamps) in [Tahoe, Reno, Newreno, Sack, Cubic, Bbr]
        .into_iter()
        .flat_map(|controller| [(controller, false), (controller, true)])
    {
        for (seed, bytes) in (0..20).flat_map(|seed| [(seed, 400), (seed, 100_000)]) {
            let config = Config { controller, timestamps, min_rto: ms(200), ..plain() };
            let mut pair = Pair::connected(&config);
            let mut rng = Rng::new(seed, "loss");
            pair.on_wire(move |_| if rng.below(5) == 0 { Verdict::Drop } else { Verdict::Arrive });
            // One transfer, or single segments each 300 ms.
            for _ in 0..if bytes < 1000 { 100 } else { 1 } {
                pair.send(Client, bytes);
                pair.drive_for(ms(300));
            }
            pair.drive_for(ms(60_000));
            let (mut again, mut end) = (Vec::new(), 0);
            for sent in pair.data(Client) {
                if sent.seq < end {
                    again.push(sent.at.as_secs_f64());
                }
                end = end.max(sent.seq + sent.len() as u32);
            }
            let srtt: Vec<_> = pair.client.notes.series(Gauge::Srtt).collect();
            for two in srtt.windows(2) {
                // The sample had at least this length, since it weighs an eighth or less (§2.3).
                let sample = two[0].1 + 8.0 * (two[1].1 - two[0].1);
                if sample > TRIP {
                    longer += 1;
                    let now = two[1].0.as_secs_f64();
                    let span = now - sample + 1e-6..now - 0.1 + 1e-6;
                    let spanned = again.iter().find(|at| span.contains(*at));
                    assert_eq!(
                        spanned, None,
                        "{controller:?}, {timestamps}, seed {seed}, {bytes} B, {now}: {sample}"
                    );
                }
            }
        }
    }
    assert!(longer > 100, "{longer}");
}

/// §5.2: no timer without data in flight. §5.3: an acknowledgement of new data restarts it.
#[test]
fn managing_the_timer() {
    let mut alone = Alone::established(&plain());
    assert_eq!(alone.wake, None);
    alone.send(2000);
    assert_eq!(alone.wake, Some(at(1000)));
    alone.now = at(400);
    alone.arrive(Flags::ACK, 1, 1001, 0);
    assert_eq!(alone.wake.map(|wake| wake > at(1399)), Some(true));
    alone.arrive(Flags::ACK, 1, 2001, 0);
    assert_eq!(alone.wake, None);
}

/// §5.4: the earliest segment goes out again.
#[test]
fn the_earliest_segment() {
    let mut alone = Alone::established(&plain());
    alone.send(3000);
    let again = alone.wait();
    assert_eq!(again.iter().map(|s| alone.place(s)).collect::<Vec<_>>(), [1]);
}

/// §5.7: after a lost SYN data begins with 3 s.
#[test]
fn after_a_lost_syn() {
    let mut pair = Pair::new(&plain());
    let mut first = true;
    pair.on_wire(move |_| if std::mem::take(&mut first) { Verdict::Drop } else { Verdict::Arrive });
    pair.input(Client, Input::Open);
    pair.drive_for(ms(2000));
    pair.on_wire(|_| Verdict::Drop);
    pair.send(Client, 1000);
    pair.drive_for(ms(4000));
    assert_eq!(pair.trace(Client), [(2000, 0), (5000, 0)]);
}

/// §5.7 raises a timeout below 3 s; one that the timestamps of the handshake made longer (§2.2, appendix A)
/// stays.
#[test]
fn after_a_needless_syn() {
    // An answer to the first SYN after R, and RTO = R + 4 · R/2; after a repetition it may be the answer to
    // that, whose timestamp was lost with an earlier one, and is not measured.
    for (round_trip, repeats, rto) in [(500, 0, 1.5), (1100, 1, 3.0), (5000, 2, 3.0)] {
        let mut alone = Alone::client(&Config { timestamps: true, ..plain() });
        alone.clock = Some(7);
        let first = alone.input(Input::Open)[0].timestamps.expect("a clock").0;
        (0..repeats).for_each(|_| drop(alone.wait()));
        alone.now = at(round_trip);
        let answer = alone.syn(Flags::SYN | Flags::ACK, 1);
        alone.segment(Segment { timestamps: Some((7, first)), ..answer });
        assert_eq!(alone.notes.last(Gauge::Rto), Some(rto));
    }
    // One to the second.
    for (round_trip, rto) in [(100, 3.0), (1100, 3.3)] {
        let mut alone = Alone::client(&Config { timestamps: true, ..plain() });
        alone.clock = Some(7);
        alone.input(Input::Open);
        let second = alone.wait()[0].timestamps.expect("a clock").0;
        alone.now += ms(round_trip);
        let answer = alone.syn(Flags::SYN | Flags::ACK, 1);
        alone.segment(Segment { timestamps: Some((7, second)), ..answer });
        assert_eq!(alone.notes.last(Gauge::Rto), Some(rto));
    }
}

/// §2.5: the upper bound is configurable, at least 60 s by default.
#[test]
fn upper_bound() {
    assert!(plain().max_rto >= Duration::from_secs(60));
}
