//! RFC 9438: CUBIC's window against its closed forms, and its response function over a lossy path.
//! RFC 9406: the exit from slow start.

use talkspurt_proto::congestion::{Ack, Congestion, CongestionControl, Cubic, Start};
use talkspurt_proto::endpoint::Endpoint;
use talkspurt_proto::math;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::rtt::RttEstimator;
use talkspurt_proto::tcp::{Config, Controller};
use talkspurt_proto::time::{Duration, Instant};
use talkspurt_testing::tcp::*;

const MSS: u64 = 1000;

fn rtt(millis: u64) -> RttEstimator {
    let mut rtt = RttEstimator::new(ms(1), ms(60_000), ms(1));
    rtt.sample(ms(millis), 1);
    rtt
}

fn cubic(window: u64) -> Cubic {
    let start = Start { quantum: MSS, window: window * MSS, threshold: Some(window * MSS) };
    Cubic::new(&start, false)
}

/// A window's worth of acknowledgements each round trip, until `end`.
fn run(cubic: &mut Cubic, from: Instant, end: Instant, round: u64) -> Instant {
    let (mut now, rtt) = (from, rtt(round));
    while now < end {
        let window = cubic.window();
        for _ in 0..window / MSS {
            let ack = Ack { acked: MSS, flight: window, window_limited: true };
            cubic.on_ack(now, &ack, &rtt);
        }
        now += ms(round);
    }
    now
}

/// §4.6: a loss reduces the window to 0.7 of the flight.
#[test]
fn multiplicative_decrease() {
    let mut cubic = cubic(100);
    cubic.on_congestion(Instant::ZERO, &Congestion::Loss { flight: 100 * MSS });
    assert_eq!((cubic.window(), cubic.threshold()), (70 * MSS, Some(70 * MSS)));
    // The minimum is two segments.
    cubic.on_congestion(Instant::ZERO, &Congestion::Loss { flight: 2 * MSS });
    assert_eq!(cubic.window(), 2 * MSS);
}

/// §4.2 equations 1 and 2: after a loss at W_max = 1000 the window is C (t − K)³ + W_max, where
/// K = ∛(1000 · 0.3 / 0.4) = 9.0856 s. Over a round trip of 200 ms Reno's region is left at once.
#[test]
fn the_curve() {
    let mut cubic = cubic(1000);
    cubic.on_congestion(Instant::ZERO, &Congestion::Loss { flight: 1000 * MSS });
    cubic.on_recovered(Instant::ZERO, cubic.window());
    let mut now = Instant::ZERO;
    let k = math::cbrt(1000.0 * 0.3 / 0.4);
    assert!((k - 9.0856).abs() < 1e-4);
    for second in [1, 3, 6, 9, 12, 15] {
        now = run(&mut cubic, now, at(second * 1000), 200);
        let t = now.as_nanos() as f64 / 1e9;
        let curve = |t: f64| 0.4 * math::pow(t - k, 3.0) + 1000.0;
        let is = cubic.window() as f64 / MSS as f64;
        // §4.2, §4.4: a window of acknowledgements goes most of the way to where the curve will be
        // a round trip later.
        let (behind, target) = (curve(t - 0.2) - 0.5, curve(t) + 0.5);
        assert!((behind..=target).contains(&is), "{second} s: {is} for {behind} to {target}");
    }
}

/// §4.3: over a short round trip the window is Reno's estimate, which grows by α = 3 · 0.3 / 1.7 a
/// round trip.
#[test]
fn the_reno_friendly_region() {
    let mut cubic = cubic(20);
    cubic.on_congestion(Instant::ZERO, &Congestion::Loss { flight: 20 * MSS });
    cubic.on_recovered(Instant::ZERO, cubic.window());
    run(&mut cubic, Instant::ZERO, at(100), 10);
    let expected = 14.0 + 10.0 * 3.0 * 0.3 / 1.7;
    let is = cubic.window() as f64 / MSS as f64;
    // W_cubic(0.1 s) would be 14.6.
    assert!((is - expected).abs() < 0.4, "{is} for {expected}");
    // §4.3: back at the window before the loss, a segment a round trip.
    run(&mut cubic, at(100), at(300), 10);
    let at_20 = cubic.window();
    run(&mut cubic, at(300), at(400), 10);
    let step = (cubic.window() - at_20) as f64 / MSS as f64;
    assert!((9.0..10.5).contains(&step), "{step}");
}

/// §4.7: a loss below the last plateau sets the next one lower, at 0.85 of the window.
#[test]
fn fast_convergence() {
    let plateau_reached = |second_loss: u64| {
        let mut cubic = cubic(1000);
        cubic.on_congestion(Instant::ZERO, &Congestion::Loss { flight: 1000 * MSS });
        cubic.on_recovered(Instant::ZERO, cubic.window());
        let now = run(&mut cubic, Instant::ZERO, at(second_loss), 200);
        let window = cubic.window();
        cubic.on_congestion(now, &Congestion::Loss { flight: window });
        cubic.on_recovered(now, cubic.window());
        // K with plateau p·W from 0.7 W: ∛((p − 0.7) W / 0.4).
        let share = if window < 1000 * MSS { 0.85 } else { 1.0 };
        let segments = window as f64 / MSS as f64;
        let k = math::cbrt((share - 0.7) * segments / 0.4);
        let end = now + Duration::from_nanos((k * 1e9) as u64);
        run(&mut cubic, now, end, 200);
        (cubic.window() as f64 / MSS as f64, share * segments)
    };
    for (second_loss, converges) in [(4000, true), (12_000, false)] {
        let (is, expected) = plateau_reached(second_loss);
        assert!((is / expected - 1.0).abs() < 0.01, "{is} for {expected}");
        assert_eq!(expected < 900.0, converges);
    }
}

/// §4.8: a timeout leaves one segment and β of the flight as threshold; the stage after it begins
/// on its own plateau, growing as C t³.
#[test]
fn timeout() {
    let mut cubic = cubic(100);
    let timeout = Congestion::Timeout { flight: 100 * MSS, again: false, recovering: false };
    cubic.on_congestion(Instant::ZERO, &timeout);
    assert_eq!((cubic.window(), cubic.threshold()), (MSS, Some(70 * MSS)));
    let now = run(&mut cubic, Instant::ZERO, at(1400), 200);
    assert!((70..=72).contains(&(cubic.window() / MSS)), "{}", cubic.window());
    let end = run(&mut cubic, now, now + ms(4000), 200);
    let t = (end - now).as_nanos() as f64 / 1e9;
    let expected = 70.0 + 0.4 * t * t * t;
    let is = cubic.window() as f64 / MSS as f64;
    assert!((is / expected - 1.0).abs() < 0.15, "{is} for {expected}");
}

/// §5.8: an unused window does not grow, and that time does not count.
#[test]
fn an_unused_window_does_not_grow() {
    let mut cubic = cubic(1000);
    cubic.on_congestion(Instant::ZERO, &Congestion::Loss { flight: 1000 * MSS });
    cubic.on_recovered(Instant::ZERO, cubic.window());
    let now = run(&mut cubic, Instant::ZERO, at(2000), 200);
    let before = cubic.window();
    for i in 0..50 {
        let ack = Ack { acked: MSS, flight: 10 * MSS, window_limited: false };
        cubic.on_ack(now + ms(200 * i), &ack, &rtt(200));
    }
    assert_eq!(cubic.window(), before);
    run(&mut cubic, now + ms(10_000), now + ms(10_400), 200);
    let grown = (cubic.window() - before) as f64 / MSS as f64;
    // Two rounds on the slope at 2 s: 3 · 0.4 · (2 − 9.09)² · 0.4 s = 24, not those at 12 s.
    assert!((15.0..35.0).contains(&grown), "{grown}");
}

/// RFC 9406 §4: round trips that grow by an eighth (4 to 16 ms) end slow start within five rounds of
/// slower growth; round trips that do not change never do.
#[test]
fn hystart() {
    let grown = |slower: u64| {
        let start = Start { quantum: MSS, window: 10 * MSS, threshold: None };
        let mut cubic = Cubic::new(&start, true);
        let mut now = Instant::ZERO;
        let mut windows = Vec::new();
        for round in 0..10_u64 {
            let millis = 100 + if round >= 2 { slower } else { 0 };
            let window = cubic.window();
            for i in 0..window / MSS {
                let ack = Ack { acked: MSS, flight: cubic.window(), window_limited: true };
                cubic.on_ack(now + ms(i / 100), &ack, &rtt(millis));
            }
            now += ms(millis);
            windows.push(cubic.window() / MSS);
        }
        (windows, cubic.threshold())
    };
    assert_eq!(grown(0).0[..5], [20, 40, 80, 160, 320]);
    assert_eq!(grown(0).1, None);
    assert_eq!(grown(11).1, None);
    // ⌈100/8⌉ = 13 ms longer from the third window on. A round ends with what was out when it began,
    // two acknowledgements before the window of the time, and the next one earlier still: the round
    // that shows it begins six before the end of the third window, its eighth sample is the second
    // of the fourth, and the other 78 bring a quarter each.
    let (windows, threshold) = grown(13);
    assert_eq!(windows[..3], [20, 40, 80]);
    assert!((80_u64 + 2 + 78 / 4).abs_diff(windows[3]) <= 1, "{windows:?}");
    // Five rounds in all, then congestion avoidance.
    for i in 4..7 {
        let ratio = windows[i] as f64 / windows[i - 1] as f64;
        assert!((ratio - 1.25).abs() < 0.01, "{windows:?}");
    }
    assert!(windows[9] - windows[8] <= 1, "{windows:?}");
    assert!(threshold.is_some());
}

/// §4.6: a loss leaves two segments at least, a mark one; the threshold is two in either case.
#[test]
fn little_in_flight() {
    let after = |event: Congestion| {
        let start = Start { quantum: MSS, window: 2 * MSS, threshold: None };
        let mut cubic = Cubic::new(&start, false);
        cubic.on_congestion(Instant::ZERO, &event);
        (cubic.window(), cubic.threshold())
    };
    assert_eq!(after(Congestion::Loss { flight: MSS }), (2 * MSS, Some(2 * MSS)));
    assert_eq!(after(Congestion::Mark { flight: MSS }), (MSS, Some(2 * MSS)));
}

/// RFC 9406 §4.3: L is 8 segments, and without bound for a sender that paces. After HyStart++ RFC 5681's
/// one holds.
#[test]
fn one_acknowledgement_of_many() {
    let start = Start { quantum: MSS, window: 40 * MSS, threshold: None };
    let grown = |mut cubic: Cubic| {
        let ack = Ack { acked: 20 * MSS, flight: 40 * MSS, window_limited: true };
        cubic.on_ack(Instant::ZERO, &ack, &rtt(100));
        cubic.window() / MSS - 40
    };
    assert_eq!(grown(Cubic::new(&start, true)), 8);
    assert_eq!(grown(Cubic::new(&start, true).paced()), 20);
    assert_eq!(grown(Cubic::new(&start, false).paced()), 1);
}

/// Throughput of a bulk transfer over a path with random loss, in segments per round trip of 100 ms.
fn mean_window(controller: Controller, loss: f64, seconds: u64) -> f64 {
    let mut config = Config { controller, initial_window: 10, ..selective() };
    config.window_scaling = true;
    config.min_rto = ms(200);
    let mut pair = Pair::connected(&config);
    let mut rng = Rng::new(11, "loss");
    let share = (loss * 1e6) as u64;
    pair.on_wire(move |sent| {
        if !sent.is_empty() && rng.below(1_000_000) < share {
            Verdict::Drop
        } else {
            Verdict::Arrive
        }
    });
    let mut before = 0;
    for second in 0..seconds {
        while pair.client.endpoint.send_capacity() >= 100_000 {
            pair.send(Client, 100_000);
        }
        pair.drive_for(ms(1000));
        pair.log.clear();
        if second == seconds / 10 {
            before = pair.server.count;
        }
    }
    let span = (seconds - seconds / 10 - 1) as f64;
    (pair.server.count - before) as f64 / MSS as f64 / span / 10.0
}

/// The square-root law (Mathis et al. 1997): with SACK, every segment acknowledged and loss p the
/// mean window is √(3/2p) segments, within 15 %.
#[test]
fn the_square_root_law() {
    for loss in [0.01, 0.003, 0.001] {
        let (is, law) = (mean_window(Controller::Sack, loss, 600), (1.5 / loss).sqrt());
        assert!((is / law - 1.0).abs() < 0.15, "p = {loss}: {is} for {law}");
    }
}

/// §5.1 equation 6 and §5.2 table 1: over RTT 100 ms the mean window is 38 segments at p = 10⁻³,
/// where CUBIC is Reno, and 1.054 · (RTT/p)^¾ = 187 at 10⁻⁴, with one loss every 1/p segments. Here
/// losses are random, so within 25 %.
#[test]
fn the_response_function() {
    for (loss, table) in [(0.001, 38.4), (0.0001, 187.0)] {
        let is = mean_window(Controller::Cubic, loss, 900);
        assert!((is / table - 1.0).abs() < 0.25, "p = {loss}: {is} for {table}");
    }
}
