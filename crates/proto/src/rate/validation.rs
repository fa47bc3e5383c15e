//! Validation of the rate machine's parameters.

use crate::time::Duration;
use crate::units::Size;
use crate::validate::{ConfigError, ConfigErrors, Validate};

use super::config::Config;
use super::history::KEPT_INTERVALS;
use super::{beritelli, bucket};

/// Longest interval between packets, and coarsest timer, that still support speech.
const MAX_INTERVAL: Duration = Duration::from_secs(1);
/// Longest nofeedback timeout, credit, and wait for a better rung.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
/// More than any call sends in total.
const MAX_DEPTH: Size = Size::from_bytes(100_000_000);
/// More than IP and any transport use.
const MAX_HEADER_BYTES: u32 = 255;

impl Validate for Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut found = ConfigErrors::default();
        if let Some(size) = self.nominal_size.filter(|s| !(1..=65_535).contains(&s.as_bytes())) {
            // s = 0 would forbid every packet.
            let why = format!("{size}: a packet has at least 1B, and at most 65535B");
            found.add("nominal_size", why);
        }
        if self.initial_window == Some(0) {
            found.add("initial_window", "0: it takes at least one packet");
        }
        let kept = KEPT_INTERVALS as u32;
        if let Some(count) = self.loss_intervals.filter(|count| !(2..=kept).contains(count)) {
            found.add("loss_intervals", format!("{count}: between 2 and {kept} are kept"));
        }
        if let Some(p) = self.p_floor.filter(|p| !(0.0..=1.0).contains(p)) {
            found.add("p_floor", format!("{p}: a loss event rate lies between 0 and 1"));
        }
        if let Some(weight) = self.rtt_weight.filter(|weight| !(0.0..1.0).contains(weight)) {
            let why = "it lies between 0 and 1, and at 1 nothing new would count";
            found.add("rtt_weight", format!("{weight}: {why}"));
        }
        if let Some(count) = self.feedback_per_rtt.filter(|count| !(1..=4).contains(count)) {
            let why = format!("{count}: between 1 and 4, which a window counter can tell apart");
            found.add("feedback_per_rtt", why);
        }
        if let Some(bucket) = &self.token_bucket {
            found.add_within("token_bucket", bucket.errors());
        }
        for (key, time, most) in [
            ("minimum_interval", self.minimum_interval, MAX_INTERVAL),
            ("timer_granularity", self.timer_granularity, MAX_INTERVAL),
            ("credit", self.credit, MAX_TIMEOUT),
            ("minimum_timeout", self.minimum_timeout, MAX_TIMEOUT),
        ] {
            time.into_iter().for_each(|time| found.at_most(key, time, most));
        }
        found.0
    }
}

impl Config {
    /// The given keys that need an option or field of DCCP's packets.
    pub(crate) fn dccp_only(&self) -> impl Iterator<Item = ConfigError> {
        [
            ("counter_follows_acks", self.counter_follows_acks),
            ("elapsed_time", self.elapsed_time),
            ("loss_intervals_option", self.loss_intervals_option),
            ("ask_loss_event_rate", self.ask_loss_event_rate),
        ]
        .into_iter()
        .filter(|(_, value)| value.is_some())
        .map(|(key, _)| {
            let why = "DCCP's packets have this, TFRC's do not: it would change nothing";
            ConfigError::new(key, why).hint("it belongs to kind = \"dccp\" with CCID 3 or 4")
        })
    }
}

impl Validate for bucket::Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut found = ConfigErrors::default();
        let share = self.step_up_tokens;
        if !(0.0..=1.0).contains(&share) {
            let why = format!("{share}: a share of the depth lies between 0 and 1");
            found.add("step_up_tokens", why);
        }
        if self.depth > MAX_DEPTH {
            let why = format!("{} is out of range: at most {MAX_DEPTH}", self.depth);
            found.add_with_hint("depth", why, "0B keeps no tokens at all");
        }
        header_bytes(self.header_bytes, &mut found);
        found.at_most("step_up", self.step_up, MAX_TIMEOUT);
        found.0
    }
}

impl Validate for beritelli::Config {
    fn errors(&self) -> Vec<ConfigError> {
        let mut found = ConfigErrors::default();
        if self.threshold.is_zero() {
            found.add("threshold", "0ms: any two delays would differ by more");
        }
        found.at_most("threshold", self.threshold, MAX_TIMEOUT);
        for (key, value, least, most) in [
            ("decrease", self.decrease, 0.05, 0.95),
            ("slow_start_gain", self.slow_start_gain, 1.01, 4.0),
            ("slow_start_until", self.slow_start_until, 0.0, 1.0),
            ("increase_packets", self.increase_packets, 0.0, 100.0),
        ] {
            if !(least..=most).contains(&value) {
                found.add(key, format!("{value}: it lies between {least} and {most}"));
            }
        }
        if self.initial_rate.is_some_and(|rate| rate.as_bps() == 0) {
            let hint = "leave it out for that of the lowest rung";
            found.add_with_hint("initial_rate", "at rate 0 nothing is ever sent", hint);
        }
        header_bytes(self.header_bytes, &mut found);
        found.0
    }
}

/// Checks the IP and transport header bytes.
fn header_bytes(bytes: u32, found: &mut ConfigErrors) {
    if bytes > MAX_HEADER_BYTES {
        let why = format!("{bytes} bytes never stand before a packet: at most {MAX_HEADER_BYTES}");
        found.add("header_bytes", why);
    }
}
