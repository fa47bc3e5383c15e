//! The `ns2` profile of TFRC against ns-2.35 (Debian package ns2 2.35+dfsg-5): its equation.

use crate::rate_loop::*;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{Config, Kind};

/// `formula.h`, `p_to_b`, with t_RTO of a clock of 100 ms ticks. s = 1000 B, R = 100 ms: t_RTO = 300 ms.
/// p = 0.01: 0.1 · 0.0816497 + 0.3 · 0.1837117 · 0.01 · 1.0032 = 0.0087179 s.
/// p = 0.3: 3√(0.1125) = 1.0062 counts as 1: 0.1 · 0.4472136 + 0.3 · 0.3 · 3.88 = 0.3939214 s.
/// RFC 5348 has 4R and no bound: 0.1 · 0.4472136 + 0.4 · 1.0062306 · 0.3 · 3.88 = 0.5132211 s.
#[test]
fn the_equation() {
    let x = |profile, p: f64| {
        let config = Config { oscillation_prevention: Some(false), ..Config::default() };
        let mut alone = Alone::started(&config.resolve(profile, Kind::Tfrc), 1000, ms(100));
        alone.send_until(at(400));
        alone.report(at(400), ms(100), 10_000_000, p);
        alone.sender.equation_rate().unwrap()
    };
    let near = |x: f64, expected: f64| assert!((x / expected - 1.0).abs() < 1e-5, "{x} {expected}");
    near(x(Profile::Ns2, 0.01), 1000.0 / 0.008_717_9);
    near(x(Profile::Ns2, 0.3), 1000.0 / 0.393_921_4);
    near(x(Profile::Rfc, 0.3), 1000.0 / 0.513_221_1);
}
