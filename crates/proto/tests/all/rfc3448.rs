//! RFC 3448, which RFC 5348 replaces: its idle and data-limited rules, as the profile `idle =
//! "rfc3448"`; and what they do to voice under ns-2's values.

use crate::rate_loop::*;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{Config, Idle, Kind, Parameters, RateControl};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

const RTT: Duration = ms(100);

fn plain() -> Parameters {
    let config = Config {
        nominal_size: Some(Size::from_bytes(1000)),
        oscillation_prevention: Some(false),
        idle: Some(Idle::Rfc3448),
        initial_window: Some(1),
        ..Config::default()
    };
    config.resolve(Profile::Rfc, Kind::Tfrc)
}

fn ns2(size: Option<u64>) -> Parameters {
    let config = Config { nominal_size: size.map(Size::from_bytes), ..Config::default() };
    config.resolve(Profile::Ns2, Kind::Ccid3)
}

/// §4.2 and §4.3: slow start begins at one packet in a round trip and stays within twice the last
/// receive rate, whatever there was before.
#[test]
fn section_4_3_slow_start() {
    let mut alone = Alone::started(&plain(), 1000, RTT);
    same(alone.rate(), 10_000.0);
    for (now, receive_rate, x) in [
        (200, 10_000, 20_000.0),
        (300, 20_000, 40_000.0),
        // RFC 5348 would remember the 20 000 here, and never fall below 40 000.
        (400, 8000, 16_000.0),
        (500, 1000, 10_000.0),
    ] {
        alone.send_until(at(now));
        alone.report(at(now), RTT, receive_rate, 0.0);
        same(alone.rate(), x);
    }
}

/// §4.3 with p > 0: X = max(min(X_calc, 2 X_recv), s/t_mbi), data-limited or not.
#[test]
fn section_4_3_data_limited_is_no_excuse() {
    let mut alone = Alone::started(&plain(), 1000, RTT).until(at(400));
    alone.report(at(400), RTT, 100_000, 0.0001);
    same(alone.rate(), 200_000.0);
    alone.now = at(450);
    alone.send_late();
    alone.report(at(600), RTT, 10_000, 0.0001);
    same(alone.rate(), 20_000.0);
}

/// §4.4: idle time halves the rate only while four packets in a round trip were received.
#[test]
fn section_4_4_idle() {
    let mut alone = Alone::started(&plain(), 1000, RTT).until(at(400));
    alone.report(at(400), RTT, 100_000, 0.0001);
    // X_recv 100 000, 50 000, then 25 000 < 4 · 1000/0.1: no more.
    for x in [100_000.0, 50_000.0, 50_000.0, 50_000.0] {
        alone.expire();
        same(alone.rate(), x);
    }
}

/// §4.4: otherwise X_recv halves, or X by way of X_calc/4; down to a packet in 64 s.
#[test]
fn section_4_4_no_feedback() {
    let mut alone = Alone::started(&plain(), 1000, RTT).until(at(400));
    alone.report(at(400), RTT, 1_000_000, 0.01);
    let equation = alone.sender.equation_rate().unwrap();
    same(alone.rate(), equation);
    for halves in [2.0, 4.0, 8.0] {
        alone.send_until(alone.now + ms(1));
        alone.expire();
        same(alone.rate(), equation / halves);
    }
    for _ in 0..40 {
        let now = alone.now;
        alone.sender.on_sent(now, 1000);
        alone.expire();
    }
    same(alone.rate(), 1000.0 / 64.0);
}

/// Erratum 1458: without loss the rate itself halves, as before the first feedback.
#[test]
fn section_4_4_without_loss() {
    let mut alone = Alone::new(&plain(), 1000);
    assert_eq!(alone.expire(), ms(2000));
    same(alone.rate(), 500.0);
    let mut alone = Alone::started(&plain(), 1000, RTT).until(at(200));
    alone.report(at(200), RTT, 10_000, 0.0);
    assert!(alone.send_until(at(290)) > 0);
    alone.expire();
    same(alone.rate(), 10_000.0);
}

/// ns-2 computes with s = 500 while X_recv counts payloads of 160: 2 X_recv < s/R, and the sender
/// stays at one packet in a round trip: 160 B in 0.604 s are 2.1 kb/s.
#[test]
fn g711_is_held_at_one_packet_in_a_round_trip() {
    let mut path = Loop::new(&ns2(None), ms(302), ms(302));
    path.source = (160, ms(20));
    path.run_until(at(60_000));
    let rate = path.throughput(at(20_000), at(60_000));
    assert!((rate - 160.0 * 8.0 / 0.604).abs() < 40.0, "{rate}");
}

/// With s = 160 the same sender reaches 64 kb/s, ten seconds after its first packet; ns-2's full
/// protocol is measured at about twelve.
#[test]
fn g711_with_its_own_size() {
    let mut path = Loop::new(&ns2(Some(160)), ms(302), ms(302));
    path.source = (160, ms(20));
    path.run_until(at(40_000));
    let steady = (0..39)
        .rev()
        .take_while(|second| {
            let rate = path.throughput(at(1000 * second), at(1000 * second + 1000));
            (rate / 64_000.0 - 1.0).abs() < 0.1
        })
        .last()
        .unwrap();
    println!("every bin within 10 % of 64 kb/s from {steady} s on");
    assert!((9..=13).contains(&steady), "{steady}");
}
