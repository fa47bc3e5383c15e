//! What the knobs of the rate machine cannot be, all of it told at once.

use crate::time::Duration;
use crate::units::Size;

use super::bucket;
use super::config::Config;
use super::history::KEPT_INTERVALS;

/// Longest pause between packets, and coarsest timer, that still carry speech.
const MAX_INTERVAL: Duration = Duration::from_secs(1);
/// Longest nofeedback timeout, credit, and wait for a better rung.
pub(super) const MAX_TIMEOUT: Duration = Duration::from_secs(60);
/// More than any call sends.
const MAX_DEPTH: Size = Size::from_bytes(100_000_000);
/// More than IP and any transport have.
pub(super) const MAX_HEADER_BYTES: u32 = 255;

/// Why a knob cannot have its value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// s = 0 would forbid every packet.
    #[error("{0}: a packet has at least 1B, and at most 65535B")]
    NominalSize(Size),
    /// No first packet.
    #[error("0: it takes at least one packet")]
    InitialWindow,
    /// The average needs two halves and cannot use more than are kept.
    #[error("{0}: between 2 and {KEPT_INTERVALS} are kept")]
    LossIntervals(u32),
    /// Not a rate.
    #[error("{0}: a loss event rate lies between 0 and 1")]
    PFloor(f64),
    /// Not a weight.
    #[error("{0}: it lies between 0 and 1, and at 1 nothing new would count")]
    RttWeight(f64),
    /// More than one for each window count.
    #[error("{0}: between 1 and 4, which a window counter can tell apart")]
    FeedbackPerRtt(u32),
    /// Not a share.
    #[error("{0}: a share of the depth lies between 0 and 1")]
    StepUpTokens(f64),
    /// More than any call sends.
    #[error("{0} is out of range: at most {MAX_DEPTH}")]
    Depth(Size),
    /// More than IP and any transport have.
    #[error("{0} bytes never stand before a packet: at most {MAX_HEADER_BYTES}")]
    HeaderBytes(u32),
    /// Bare TFRC's packets have no such option or field.
    #[error("DCCP's packets have this, TFRC's do not: it would change nothing")]
    DccpOnly(&'static str),
    /// A wait that carries no speech.
    #[error("{span} is out of range: at most {most}")]
    TooLong {
        /// Which.
        knob: &'static str,
        /// Its value.
        span: Duration,
        /// The most there may be.
        most: Duration,
    },
}

impl ConfigError {
    /// The knob, as a scenario has it, a point before each level.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::NominalSize(_) => "nominal_size",
            Self::InitialWindow => "initial_window",
            Self::LossIntervals(_) => "loss_intervals",
            Self::PFloor(_) => "p_floor",
            Self::RttWeight(_) => "rtt_weight",
            Self::FeedbackPerRtt(_) => "feedback_per_rtt",
            Self::StepUpTokens(_) => "token_bucket.step_up_tokens",
            Self::Depth(_) => "token_bucket.depth",
            Self::HeaderBytes(_) => "token_bucket.header_bytes",
            Self::DccpOnly(knob) | Self::TooLong { knob, .. } => knob,
        }
    }

    /// What may have been meant.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Depth(_) => Some("0B keeps no tokens at all"),
            Self::DccpOnly(_) => Some("it belongs to kind = \"dccp\" with CCID 3 or 4"),
            _ => None,
        }
    }
}

impl Config {
    /// All that cannot be; empty if there is nothing to say.
    #[must_use]
    pub fn check(&self) -> Vec<ConfigError> {
        let size = self.nominal_size.filter(|size| !(1..=65_535).contains(&size.as_bytes()));
        let window = self.initial_window.filter(|packets| *packets == 0);
        let kept = KEPT_INTERVALS as u32;
        let intervals = self.loss_intervals.filter(|count| !(2..=kept).contains(count));
        let floor = self.p_floor.filter(|p| !(0.0..=1.0).contains(p));
        let weight = self.rtt_weight.filter(|weight| !(0.0..1.0).contains(weight));
        let feedback = self.feedback_per_rtt.filter(|count| !(1..=4).contains(count));
        let mut found: Vec<ConfigError> = [
            size.map(ConfigError::NominalSize),
            window.map(|_| ConfigError::InitialWindow),
            intervals.map(ConfigError::LossIntervals),
            floor.map(ConfigError::PFloor),
            weight.map(ConfigError::RttWeight),
            feedback.map(ConfigError::FeedbackPerRtt),
        ]
        .into_iter()
        .flatten()
        .collect();
        found.extend(self.token_bucket.iter().flat_map(bucket::Config::check));
        found.extend(too_long([
            ("minimum_interval", self.minimum_interval, MAX_INTERVAL),
            ("timer_granularity", self.timer_granularity, MAX_INTERVAL),
            ("credit", self.credit, MAX_TIMEOUT),
            ("minimum_timeout", self.minimum_timeout, MAX_TIMEOUT),
        ]));
        found
    }
}

impl Config {
    /// The knobs given that say what DCCP's packets bear.
    pub(crate) fn dccp_only(&self) -> impl Iterator<Item = ConfigError> {
        [
            ("counter_follows_acks", self.counter_follows_acks),
            ("elapsed_time", self.elapsed_time),
            ("loss_intervals_option", self.loss_intervals_option),
            ("ask_loss_event_rate", self.ask_loss_event_rate),
        ]
        .into_iter()
        .filter_map(|(knob, value)| value.map(|_| ConfigError::DccpOnly(knob)))
    }
}

impl bucket::Config {
    fn check(&self) -> Vec<ConfigError> {
        let mut found = Vec::new();
        if !(0.0..=1.0).contains(&self.step_up_tokens) {
            found.push(ConfigError::StepUpTokens(self.step_up_tokens));
        }
        if self.depth > MAX_DEPTH {
            found.push(ConfigError::Depth(self.depth));
        }
        if self.header_bytes > MAX_HEADER_BYTES {
            found.push(ConfigError::HeaderBytes(self.header_bytes));
        }
        found.extend(too_long([("token_bucket.step_up", Some(self.step_up), MAX_TIMEOUT)]));
        found
    }
}

fn too_long<const N: usize>(
    spans: [(&'static str, Option<Duration>, Duration); N],
) -> impl Iterator<Item = ConfigError> {
    let long = |(knob, span, most): (_, Option<Duration>, _)| {
        let span = span.filter(|span| *span > most)?;
        Some(ConfigError::TooLong { knob, span, most })
    };
    spans.into_iter().filter_map(long)
}
