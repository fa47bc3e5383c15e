//! The knobs of rate-based congestion control, each told by itself: the machine's own check stops at
//! the first that cannot be.

use talkspurt_proto::rate::config::Config;
use talkspurt_proto::time::Duration;

use super::time::at_most;
use crate::path::Path;
use crate::problem::Findings;

/// Longest pause between packets, and coarsest timer, that still carry speech.
const MOST_INTERVAL: Duration = Duration::from_secs(1);
/// Longest nofeedback timeout and credit.
const MOST_TIMEOUT: Duration = Duration::from_secs(60);

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
