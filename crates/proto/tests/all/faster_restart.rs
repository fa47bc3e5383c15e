//! draft-ietf-dccp-tfrc-faster-restart-06: after silence a sender quadruples its rate in a round
//! trip without congestion, up to what it achieved before.

use crate::rate_loop::*;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{Config, Idle, Kind, Parameters};
use talkspurt_proto::time::Duration;

const RTT: Duration = ms(150);

fn parameters(faster_restart: bool) -> Parameters {
    let config = Config {
        idle: Some(Idle::Rfc3448),
        oscillation_prevention: Some(false),
        faster_restart: Some(faster_restart),
        ..Config::default()
    };
    config.resolve(Profile::Rfc, Kind::Tfrc)
}

/// A sender of 120-byte packets that has talked at 12 kB/s and then been heard at 1 kB/s.
fn after_silence(faster_restart: bool) -> Alone {
    let mut alone = Alone::started(&parameters(faster_restart), 120, RTT);
    for turn in 2..12 {
        alone.send_until(at(150 * turn));
        alone.report(at(150 * turn), RTT, 12_000, 0.0);
    }
    for turn in 12..20 {
        alone.now = at(150 * turn - 75);
        alone.send_late();
        alone.report(at(150 * turn), RTT, 1000, 0.0);
    }
    alone
}

/// The rates sent in the round trips after silence, until 12 kB/s are sent: the source takes what
/// it may, and each round trip ends with a report of what was sent in it.
fn climb(faster_restart: bool) -> Vec<f64> {
    let mut alone = after_silence(faster_restart);
    let mut sent = Vec::new();
    while sent.last().is_none_or(|rate| *rate < 12_000.0) {
        let rate = alone.rate().min(12_000.0);
        sent.push(rate);
        let next = alone.now + RTT;
        alone.send_until(next);
        alone.report(next, RTT, rate as u64, 0.0);
    }
    sent
}

/// The study's example: 12 kB/s, 1 kB/s in silence, R = 0.15 s: sent again in the second round trip
/// with faster restart, in the fourth without.
#[test]
fn two_round_trips_instead_of_four() {
    assert_eq!(climb(false), [2000.0, 4000.0, 8000.0, 12_000.0]);
    assert_eq!(climb(true), [4000.0, 12_000.0]);
}

/// With a real receiver each report is of a round trip that ended half a one ago, so that either
/// climb takes longer; faster restart keeps its lead.
#[test]
fn on_a_path_with_a_receiver() {
    let turns = |faster_restart| {
        let mut path = Loop::new(&parameters(faster_restart), ms(75), ms(75));
        path.source = (120, ms(10));
        path.run_until(at(10_000));
        assert_eq!(path.throughput(at(9000), at(10_000)), 96_000.0);
        path.talk(120, ms(120));
        path.run_until(at(20_000));
        path.talk(120, ms(10));
        let mut turn = 0;
        while path.sender.allowed_rate() < 12_000.0 {
            turn += 1;
            path.run_until(at(20_000 + 150 * turn));
        }
        turn
    };
    let (plain, fast) = (turns(false), turns(true));
    println!("X ≥ 12 kB/s after {plain} round trips, with faster restart after {fast}");
    assert!(fast <= 2 && plain >= fast + 3, "{fast} {plain}");
}

/// Congestion ends it: what may be returned to fast is half of what then came through.
#[test]
fn congestion_lowers_what_was_achieved() {
    let mut alone = after_silence(true);
    alone.send_until(alone.now + RTT);
    alone.report(alone.now, RTT, 4000, 1e-5);
    // X_fast_max = 2000: twice the receive rate and no more, however far the equation reaches.
    same(alone.rate(), 8000.0);
    assert!(alone.sender.equation_rate().unwrap() > 100_000.0);
}

/// Missing feedback of an active sender is not explained by silence.
#[test]
fn no_feedback_lowers_what_was_achieved() {
    for (active, x) in [(true, 2000.0), (false, 4000.0)] {
        let mut alone = after_silence(true);
        if active {
            alone.send_late();
        }
        alone.expire();
        alone.report(alone.now + ms(200), RTT, 1000, 0.0);
        same(alone.rate(), x);
    }
}

/// A rate never achieved is approached by doubling only.
#[test]
fn no_faster_than_before() {
    let mut alone = Alone::started(&parameters(true), 120, RTT);
    for (turn, receive_rate, x) in [(2, 3200, 6400.0), (3, 6400, 12_800.0), (4, 12_800, 25_600.0)] {
        alone.send_until(at(150 * turn));
        alone.report(at(150 * turn), RTT, receive_rate, 0.0);
        same(alone.rate(), x);
    }
}

/// What was achieved holds for ten minutes, has halved after twenty and is gone after thirty.
#[test]
fn old_rates_fade() {
    for (minutes, x) in [(9, 4000.0), (10, 4000.0), (20, 4000.0), (28, 2000.0), (31, 2000.0)] {
        let mut alone = after_silence(true);
        // The last full rate was heard of at 11 · 150 ms.
        let now = at(1650 + minutes * 60_000);
        alone.now = at(1650 + minutes * 60_000 - 150);
        alone.send_late();
        alone.report(now, RTT, 1000, 0.0);
        same(alone.rate(), x);
    }
    // At 28 minutes 12 kB/s · 2/20 are left; at 25, 12 kB/s · 5/20 = 3 kB/s.
    let mut alone = after_silence(true);
    let now = 1650 + 25 * 60_000;
    alone.now = at(now - 150);
    alone.send_late();
    alone.report(at(now), RTT, 1000, 0.0);
    same(alone.rate(), 3000.0);
}
