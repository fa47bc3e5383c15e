//! Prague against its closed form, under random marks of a share p of the segments. A window of W grows by 1 − p
//! a round trip and falls by W·p/2 at a reduction, for which all that was in flight at the last one is
//! acknowledged and one more mark arrives, on average after 1/p segments. So p·W = x with
//! x = (1 − p)(2 + 2/x). (RFC 9332 equation 6 neglects the wait for that mark: x = 2.) On round trips below
//! 25 ms, W is what is sent in 25 ms.

use talkspurt_proto::congestion::{CongestionControl, Controller, Machine, Prague};
use talkspurt_proto::packet::Ecn;
use talkspurt_proto::rng::Rng;
use talkspurt_proto::tcp::{Config, Tcp};
use talkspurt_testing::tcp::{Client, Pair, Verdict, ms, plain};

fn config() -> Config {
    Config { controller: Controller::Prague, ..plain() }
}

fn prague(tcp: &Tcp) -> &Prague {
    let Machine::Prague(prague) = tcp.controller() else { panic!("another") };
    prague
}

/// Segments per second over 60 s of round trips of 2 `delay`, if each is marked with probability `p`; and
/// the last average of marks.
fn rate(delay: u64, p: f64) -> (f64, f64) {
    let mut pair = Pair::new(&config());
    pair.delay = ms(delay);
    pair.connect();
    let mut rng = Rng::new(7, "marks");
    pair.on_wire(move |sent| {
        let marked = sent.from == Client && !sent.is_empty() && rng.unit() < p;
        if marked { Verdict::Mark } else { Verdict::Arrive }
    });
    pair.send(Client, 400_000_000);
    pair.drive_for(ms(10_000));
    let before = pair.data(Client).len();
    pair.drive_for(ms(60_000));
    let sent = pair.data(Client).len() - before;
    (sent as f64 / 60.0, prague(&pair.client.endpoint).alpha())
}

/// Within 15 % of the mean-field value, over and under 25 ms.
#[test]
fn the_rate_under_random_marks() {
    for (delay, p) in [(50, 0.05), (50, 0.2), (20, 0.1), (10, 0.1), (5, 0.1), (5, 0.04), (2, 0.05)]
    {
        let (rate, alpha) = rate(delay, p);
        let effective = f64::max(0.002 * delay as f64, 0.025);
        let x = (1.0 - p) * (1.0 + (1.0 + 2.0 / (1.0 - p)).sqrt());
        let expected = x / p / effective;
        assert!((rate / expected - 1.0).abs() < 0.15, "{delay} ms, {p}: {rate} of {expected}");
        assert!((alpha / p - 1.0).abs() < 0.5, "{alpha} {p}");
    }
}

/// Data carries ECT(1), and the first mark halves the window.
#[test]
fn the_first_mark_halves_the_window() {
    let mut pair = Pair::connected(&config());
    pair.send(Client, 4_000_000);
    pair.drive_for(ms(250));
    let data = pair.data(Client);
    assert!(data.len() > 10 && data.iter().all(|sent| sent.ecn == Ecn::Ect1));
    let before = prague(&pair.client.endpoint).window();
    let mut first = true;
    pair.on_wire(move |sent| {
        let marked = sent.from == Client && !sent.is_empty() && std::mem::take(&mut first);
        if marked { Verdict::Mark } else { Verdict::Arrive }
    });
    let mut largest = before;
    for _ in 0..40 {
        pair.drive_for(ms(5));
        let window = prague(&pair.client.endpoint).window();
        if window < largest {
            assert!((window as f64 / largest as f64 - 0.5).abs() < 0.03, "{window} of {largest}");
            return;
        }
        largest = largest.max(window);
    }
    panic!("no reduction");
}

/// An application that limits the sender does not grow the window (RFC 7661 §1): data in flight does not wait
/// for the pace.
#[test]
fn an_application_that_limits_it_grows_no_window() {
    let mut pair = Pair::connected(&config());
    for _ in 0..300 {
        pair.send(Client, 1000);
        pair.drive_for(ms(90));
    }
    assert!(prague(&pair.client.endpoint).window() <= 20_000);
}
