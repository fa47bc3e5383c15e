//! The profiles: their defaults, that a parameter overrides a profile, that impossible values are
//! reported by name, and Linux's idle behaviour.

use crate::rate_loop::*;
use talkspurt_proto::profile::Profile;
use talkspurt_proto::rate::{Config, FewIntervals, Idle, Kind, Parameters, bucket};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;
use talkspurt_proto::validate::{ConfigError, Validate};

fn of(profile: Profile, kind: Kind) -> Parameters {
    Config::default().resolve(profile, kind)
}

/// s: the mean, but 1460 under CCID 4 (RFC 5622), and ns-2's 500 and 1000.
#[test]
fn nominal_sizes() {
    let sizes = |profile| {
        [Kind::Ccid3, Kind::Ccid4, Kind::Tfrc].map(|kind| of(profile, kind).nominal_bytes)
    };
    assert_eq!(sizes(Profile::Rfc), [None, Some(1460), None]);
    assert_eq!(sizes(Profile::Ns2), [Some(500), Some(1460), Some(1000)]);
    assert_eq!(sizes(Profile::Linux), [None, Some(1460), None]);
}

/// Linux's table of the equation ends at 1e-4, ns-2's DCCP at 1e-5.
#[test]
fn floors() {
    let floors = [Profile::Rfc, Profile::Ns2, Profile::Linux].map(|p| of(p, Kind::Ccid3).p_floor);
    assert_eq!(floors, [0.0, 1e-5, 1e-4]);
}

/// ns-2's TFRC has one weight for round-trip times and their roots (`df_`) and takes one later packet
/// for proof of a loss (`numPkts_`); its DCCP, by another author, has RFC 3448's values.
#[test]
fn weights_and_proofs_of_loss() {
    let values = |profile, kind| {
        let of = of(profile, kind);
        (of.rtt_weight, of.root_weight, of.ndupack)
    };
    assert_eq!(values(Profile::Ns2, Kind::Tfrc), (0.95, 0.95, 1));
    for kind in [Kind::Ccid3, Kind::Tfrc] {
        assert_eq!(values(Profile::Rfc, kind), (0.9, 0.9, 3));
        assert_eq!(values(Profile::Linux, kind), (0.9, 0.9, 3));
    }
    assert_eq!(values(Profile::Ns2, Kind::Ccid3), (0.9, 0.9, 3));
    // The root's weight is at work: R goes from 100 to 400 ms, and X_inst falls below X by the
    // root of what is averaged over the root of the sample.
    for (profile, weight) in [(Profile::Rfc, 0.9), (Profile::Ns2, 0.95)] {
        let config = Config { nominal_size: Some(Size::from_bytes(1000)), ..Config::default() };
        let mut alone =
            Alone::started(&config.resolve(profile, Kind::Tfrc), 1000, ms(100)).until(at(400));
        alone.report(at(400), ms(400), 100_000, 0.0001);
        let roots = weight * 0.1_f64.sqrt() + (1.0 - weight) * 0.4_f64.sqrt();
        let slowed = alone.rate() * roots / 0.4_f64.sqrt();
        let interval = alone.sender.interval().as_secs_f64();
        assert!((interval * slowed / 1000.0 - 1.0).abs() < 1e-6, "{interval} {slowed}");
    }
}

/// ns-2's TFRC and CCID 3 have their own averages of loss intervals (`tfrc-sink.cc`: `est_loss_WALI`,
/// `minDiscountRatio_`; `dccp_tfrc.cc`: `tfrc_calcImean`); all others RFC 5348's.
#[test]
fn averages_of_loss_intervals() {
    let values = |profile, kind| {
        let of = of(profile, kind);
        (of.discount_threshold, of.few_intervals)
    };
    assert_eq!(values(Profile::Ns2, Kind::Tfrc), (0.5, FewIntervals::Join));
    for profile in [Profile::Rfc, Profile::Linux] {
        assert_eq!(values(profile, Kind::Tfrc), (0.25, FewIntervals::Replace));
        assert_eq!(values(profile, Kind::Ccid3), (0.25, FewIntervals::Replace));
    }
    assert_eq!(values(Profile::Ns2, Kind::Ccid3), (0.25, FewIntervals::Zero));
    let averages = |profile| of(profile, Kind::Ccid3).receiver_averages_rtt;
    assert_eq!([Profile::Rfc, Profile::Ns2, Profile::Linux].map(averages), [true, false, true]);
    // ns-2 sends option 192, Loss Event Rate, and not 193.
    let intervals = |profile| of(profile, Kind::Ccid3).loss_intervals_option;
    assert_eq!([Profile::Rfc, Profile::Ns2, Profile::Linux].map(intervals), [true, false, false]);
}

/// Minimum rates in silence: RFC 5348's, the older one of ns-2, Linux's.
#[test]
fn floors_of_silence() {
    for kind in [Kind::Ccid3, Kind::Ccid4, Kind::Tfrc] {
        let idle = [Profile::Ns2, Profile::Linux].map(|profile| of(profile, kind).idle);
        let ns2 = if kind == Kind::Tfrc { Idle::Ns2 } else { Idle::Rfc3448 };
        assert_eq!(idle, [ns2, Idle::Linux]);
        assert_eq!(of(Profile::Rfc, kind).idle, Idle::Rfc5348);
    }
}

/// RFC 4828 and RFC 5622 §5: 36 bytes of headers and 10 ms, under CCID 4 only.
#[test]
fn small_packets() {
    for profile in [Profile::Rfc, Profile::Ns2, Profile::Linux] {
        let (three, four) = (of(profile, Kind::Ccid3), of(profile, Kind::Ccid4));
        assert_eq!((three.header_bytes, three.minimum_interval), (0, Duration::ZERO));
        assert_eq!((four.header_bytes, four.minimum_interval), (36, ms(10)));
        assert!(four.short_intervals && !three.short_intervals);
    }
}

/// A parameter overrides the profile, as text like in a scenario.
#[test]
fn knobs_go_first() {
    let config: Config = serde_json::from_str(
        r#"{"nominal_size": "160B", "idle": "rfc3448", "faster_restart": true, "p_floor": 0.001}"#,
    )
    .unwrap();
    let parameters = config.resolve(Profile::Linux, Kind::Ccid3);
    assert_eq!((parameters.nominal_bytes, parameters.idle), (Some(160), Idle::Rfc3448));
    assert_eq!((parameters.faster_restart, parameters.p_floor), (true, 0.001));
    assert!(serde_json::from_str::<Config>(r#"{"nominal": "160B"}"#).is_err());
    assert!(serde_json::from_str::<Config>(r#"{"nominal_size": 160}"#).is_err());
}

#[test]
fn impossible_values_are_refused_by_name() {
    let named = |config: Config| -> Vec<_> { config.errors().into_iter().map(|e| e.key).collect() };
    let with = Config::default;
    let second = Duration::from_secs(1);
    let bucket = |depth, header_bytes, step_up, step_up_tokens| {
        let depth = Size::from_bytes(depth);
        Some(bucket::Config { depth, header_bytes, step_up, step_up_tokens, initial_rung: None })
    };
    assert_eq!(with().errors(), []);
    let most = Config {
        nominal_size: Some(Size::from_bytes(65_535)),
        initial_window: Some(1),
        loss_intervals: Some(28),
        p_floor: Some(1.0),
        rtt_weight: Some(0.0),
        feedback_per_rtt: Some(4),
        minimum_interval: Some(second),
        timer_granularity: Some(second),
        credit: Some(second * 60),
        minimum_timeout: Some(second * 60),
        token_bucket: bucket(100_000_000, 255, second * 60, 1.0),
        ..with()
    };
    assert_eq!(most.errors(), []);
    let beyond = Config {
        nominal_size: Some(Size::from_bytes(65_536)),
        initial_window: Some(0),
        loss_intervals: Some(29),
        p_floor: Some(f64::NAN),
        rtt_weight: Some(1.0),
        feedback_per_rtt: Some(5),
        minimum_interval: Some(second * 2),
        timer_granularity: Some(second * 2),
        credit: Some(second * 61),
        minimum_timeout: Some(second * 61),
        token_bucket: bucket(100_000_001, 256, second * 61, 1.1),
        ..with()
    };
    assert_eq!(
        named(beyond),
        [
            "nominal_size",
            "initial_window",
            "loss_intervals",
            "p_floor",
            "rtt_weight",
            "feedback_per_rtt",
            "token_bucket.step_up_tokens",
            "token_bucket.depth",
            "token_bucket.header_bytes",
            "token_bucket.step_up",
            "minimum_interval",
            "timer_granularity",
            "credit",
            "minimum_timeout",
        ]
    );
    let low = Config { feedback_per_rtt: Some(0), loss_intervals: Some(1), ..with() };
    assert_eq!(
        low.errors(),
        [
            ConfigError::new("loss_intervals", "1: between 2 and 28 are kept"),
            ConfigError::new(
                "feedback_per_rtt",
                "0: between 1 and 4, which a window counter can tell apart"
            ),
        ]
    );
}

/// Linux: twice what was last received; after two round trips without sending, at least the initial
/// rate; the nofeedback timer halves, idle or not.
#[test]
fn linux_when_idle() {
    let mut alone = Alone::started(&of(Profile::Linux, Kind::Ccid3), 1000, ms(100));
    same(alone.rate(), 40_000.0);
    alone.send_until(at(400));
    alone.report(at(400), ms(100), 10_000, 1e-4);
    same(alone.rate(), 20_000.0);
    // 1e-4 allows 1.2 MB/s. Idle: W_init/R = 40 000.
    alone.report(at(800), ms(100), 5000, 1e-4);
    same(alone.rate(), 40_000.0);
    // Without loss: halved down, idle or not.
    let mut alone = Alone::started(&of(Profile::Linux, Kind::Ccid3), 1000, ms(100));
    for x in [20_000.0, 10_000.0, 5000.0] {
        alone.expire();
        same(alone.rate(), x);
    }
}
