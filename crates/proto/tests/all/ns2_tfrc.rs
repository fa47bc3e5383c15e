//! The `ns2` profile of TFRC against ns-2.35 (Debian package ns2 2.35+dfsg-5): its equation.

use crate::rate_loop::*;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{Config, Kind, Permit, RateControl};
use talkspurt_proto::time::{Duration, Instant};

/// `formula.h`, `p_to_b`, with t_RTO of a clock of 100 ms ticks. s = 1000 B, R = 100 ms: t_RTO = 300 ms.
/// p = 0.01: 0.1 · 0.0816497 + 0.3 · 0.1837117 · 0.01 · 1.0032 = 0.0087179 s.
/// p = 0.3: 3√(0.1125) = 1.0062 counts as 1: 0.1 · 0.4472136 + 0.3 · 0.3 · 3.88 = 0.3939214 s.
/// RFC 5348 has 4R and no bound: 0.1 · 0.4472136 + 0.4 · 1.0062306 · 0.3 · 3.88 = 0.5132211 s.
#[test]
fn the_equation() {
    let x = |profile, p: f64| {
        let config = Config { oscillation_prevention: Some(false), ..Config::default() };
        let mut alone =
            Alone::started(&config.resolve(profile, Kind::Tfrc), 1000, ms(100)).until(at(400));
        alone.report(at(400), ms(100), 10_000_000, p);
        alone.sender.equation_rate().unwrap()
    };
    let near = |x: f64, expected: f64| assert!((x / expected - 1.0).abs() < 1e-5, "{x} {expected}");
    near(x(Profile::Ns2, 0.01), 1000.0 / 0.008_717_9);
    near(x(Profile::Ns2, 0.3), 1000.0 / 0.393_921_4);
    near(x(Profile::Rfc, 0.3), 1000.0 / 0.513_221_1);
}

fn alone() -> Alone {
    Alone::new(&Config::default().resolve(Profile::Ns2, Kind::Tfrc), 1000)
}

/// `InitRate_`: 300 bytes per second, and the nofeedback timer runs for two packets of that rate, then twice
/// as long.
#[test]
fn the_first_packets() {
    let mut alone = alone();
    same(alone.rate(), 300.0);
    assert_eq!(alone.sender.permit(at(0), 1000), Permit::At(Instant::from_nanos(3_333_333_333)));
    assert_eq!(alone.expire(), Duration::from_nanos(6_666_666_667));
    same(alone.rate(), 150.0);
    assert_eq!(alone.expire(), Duration::from_nanos(13_333_333_333));
    // Without an answer packets leave at 0, 3.33, 6.67, where a packet is due as the timer expires, and
    // 13.33 s: a trace of ns-2.35 whose first packets are lost.
    let mut alone = self::alone();
    assert_eq!(alone.send_until(at(6_667)), 2);
    alone.now = Instant::from_nanos(6_666_666_667);
    alone.expire();
    let next = alone.sender.permit(alone.now, 1000);
    assert_eq!(next, Permit::At(Instant::from_nanos(13_333_333_334)));
}

/// `send_timer_` is set when a packet leaves, and feedback does not set it again: outside slow start (`recv`)
/// the packet after the next is the first at the new rate.
#[test]
fn the_send_timer() {
    let mut alone = alone();
    // The first feedback lets a packet go at once, and the rate is 4 packets in 100 ms.
    alone.report(at(100), ms(100), 0, 0.0);
    assert_eq!(alone.sender.permit(at(100), 1000), Permit::Now);
    alone.sender.on_sent(at(100), 1000);
    assert_eq!(alone.sender.permit(at(100), 1000), Permit::At(at(125)));
    alone.report(at(110), ms(100), 10_000, 0.3);
    assert!(alone.rate() < 3000.0);
    assert_eq!(alone.sender.permit(at(110), 1000), Permit::At(at(125)));
    alone.sender.on_sent(at(125), 1000);
    let interval = Duration::from_secs_f64(1000.0 / alone.rate());
    assert_eq!(alone.sender.permit(at(125), 1000), Permit::At(at(125) + interval));
}

/// `increase_rate`: at most two packets more, and at most what was received twice over or one packet in a
/// round trip; a sender that had nothing to send within 1.5 round trips reaches the initial rate.
#[test]
fn the_rate_rises() {
    for (idle, limited) in [(None, false), (Some(1240), false), (Some(1260), true)] {
        let mut alone = alone();
        alone.report(at(100), ms(100), 0, 0.0);
        alone.send_until(at(400));
        alone.report(at(400), ms(100), 10_000, 0.3);
        let before = alone.rate();
        if let Some(idle) = idle {
            alone.now = at(idle);
            alone.send_late();
        }
        alone.report(at(1400), ms(100), 1000, 0.0001);
        let expected = if limited { before + 20_000.0 } else { 10_000.0 };
        same(alone.rate(), expected);
    }
}

/// `slowstart`, `slow_increase_`: the rate doubles, and packet by packet. The intervals are those of a trace
/// of ns-2.35 (2 Mbit/s, 110 ms, packets of 1000 bytes) from the packet that left at 0.3341 s on.
#[test]
fn slow_start() {
    let mut alone = alone();
    let rtt = ms(110);
    alone.report(at(110), rtt, 0, 0.0);
    same(alone.rate(), 4000.0 / 0.11);
    alone.report(at(220), rtt, 9091, 0.0);
    same(alone.rate(), 4000.0 / 0.11);
    alone.report(at(334), rtt, 36_364, 0.0);
    assert!((alone.rate() - 72_727.0).abs() < 2.0, "{}", alone.rate());
    for expected in [24.5, 22.0, 20.0, 18.4, 16.9, 15.7, 14.7] {
        alone.sender.on_sent(alone.now, 1000);
        let Permit::At(next) = alone.sender.permit(alone.now, 1000) else { panic!("no interval") };
        let interval = (next - alone.now).as_secs_f64() * 1e3;
        assert!((interval - expected).abs() < 0.1, "{interval} for {expected}");
        alone.now = next;
    }
    // What arrived was half as much: the rate falls to that, at once.
    alone.report(at(560), rtt, 30_000, 0.0);
    same(alone.rate(), 30_000.0);
}

/// `nextpkt`: while the rate increases packet by packet, a longer round trip does not slow the packets (`ca_`
/// acts in its other branch only): R = 0.95 · 110 + 0.05 · 440 ms, and each packet raises the rate by
/// 36 363 / (72 727 R / 1000).
#[test]
fn no_root_while_the_rate_increases() {
    let mut alone = alone();
    let rtt = ms(110);
    alone.report(at(110), rtt, 0, 0.0);
    alone.report(at(220), rtt, 9091, 0.0);
    alone.report(at(360), ms(440), 36_364, 0.0);
    for expected in [24.80, 22.59, 20.74, 19.17] {
        alone.sender.on_sent(alone.now, 1000);
        let Permit::At(next) = alone.sender.permit(alone.now, 1000) else { panic!("no interval") };
        let interval = (next - alone.now).as_secs_f64() * 1e3;
        assert!((interval - expected).abs() < 0.02, "{interval} for {expected}");
        alone.now = next;
    }
}
