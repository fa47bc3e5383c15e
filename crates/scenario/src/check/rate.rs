//! The knobs of rate-based congestion control, each told by itself: the machine's own check stops at
//! the first that cannot be.

use talkspurt_proto::rate::config::Config;
use talkspurt_proto::rate::{beritelli, bucket};
use talkspurt_proto::time::Duration;
use talkspurt_proto::units::Size;

use super::time::at_most;
use crate::path::Path;
use crate::problem::Findings;

/// Longest pause between packets, and coarsest timer, that still carry speech.
const MOST_INTERVAL: Duration = Duration::from_secs(1);
/// Longest nofeedback timeout and credit.
const MOST_TIMEOUT: Duration = Duration::from_secs(60);

/// More than any call sends.
const MOST_DEPTH: Size = Size::from_bytes(100_000_000);
const MOST_HEADER: u32 = 255;

pub(super) fn check(path: &Path, rate: &Config, found: &mut Findings) {
    let none = Config::default;
    let alone = [
        ("nominal_size", Config { nominal_size: rate.nominal_size, ..none() }),
        ("initial_window", Config { initial_window: rate.initial_window, ..none() }),
        ("loss_intervals", Config { loss_intervals: rate.loss_intervals, ..none() }),
        ("p_floor", Config { p_floor: rate.p_floor, ..none() }),
        ("rtt_weight", Config { rtt_weight: rate.rtt_weight, ..none() }),
        ("feedback_per_rtt", Config { feedback_per_rtt: rate.feedback_per_rtt, ..none() }),
    ];
    for (knob, config) in alone {
        if let Err(impossible) = config.check() {
            found.add(path.key(knob), impossible.to_string());
        }
    }
    if let Some(bucket) = &rate.token_bucket {
        token_bucket(&path.key("token_bucket"), bucket, found);
    }
    let spans = [
        ("minimum_interval", rate.minimum_interval, MOST_INTERVAL),
        ("timer_granularity", rate.timer_granularity, MOST_INTERVAL),
        ("credit", rate.credit, MOST_TIMEOUT),
        ("minimum_timeout", rate.minimum_timeout, MOST_TIMEOUT),
    ];
    for (knob, span, most) in spans {
        span.into_iter().for_each(|span| at_most(path.key(knob), span, most, found));
    }
}

fn token_bucket(path: &Path, bucket: &bucket::Config, found: &mut Findings) {
    if bucket.depth > MOST_DEPTH {
        let message = format!("{} is absurd here: at most {MOST_DEPTH}", bucket.depth);
        found.add(path.key("depth"), message).hint("0B keeps no tokens at all".to_owned());
    }
    if bucket.header_bytes > MOST_HEADER {
        let message =
            format!("{} bytes never stand before a packet: at most 255", bucket.header_bytes);
        found.add(path.key("header_bytes"), message);
    }
    at_most(path.key("step_up"), bucket.step_up, MOST_TIMEOUT, found);
}

/// The knobs of the controller that listens to delay.
pub(super) fn beritelli(path: &Path, config: &beritelli::Config, found: &mut Findings) {
    if config.threshold.is_zero() {
        found.add(path.key("threshold"), "0ms: any two delays would differ by more");
    }
    at_most(path.key("threshold"), config.threshold, MOST_TIMEOUT, found);
    if config.initial_rate.is_some_and(|rate| rate.as_bps() == 0) {
        let hint = "leave it out for that of the lowest rung".to_owned();
        found.add(path.key("initial_rate"), "at rate 0 nothing is ever sent").hint(hint);
    }
}
