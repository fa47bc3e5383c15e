//! What the knobs of a connection cannot be: against RFC 4340, against each other, or of no effect
//! where they stand. All of it is told at once.

use super::config::{Ccid, Config};
use super::{ccid2, seqno};
use crate::rate;
use crate::time::Duration;
use crate::units::Size;

/// RFC 4340 §9.2: the field has four bits.
const MAX_COVERAGE: u8 = 15;
/// RFC 791: what every host can take; and the longest IP packet.
const MTU: std::ops::RangeInclusive<u64> = 68..=65_535;
const MAX_TIMER: Duration = Duration::from_secs(3600);

/// Why a knob cannot have its value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// RFC 4340 §7.5.2: 32 to 2^46 − 1.
    #[error(
        "{window} packets is not a Sequence Window: {least} to {most} (RFC 4340 §7.5.2)",
        least = seqno::MIN_WINDOW
    )]
    SequenceWindow {
        /// Its value, in packets.
        window: u64,
        /// The most there may be.
        most: u64,
    },
    /// RFC 4340 §7.6: with short sequence numbers less.
    #[error(
        "{window} packets cannot be told apart by short sequence numbers: {least} to {most}",
        least = seqno::MIN_WINDOW
    )]
    ShortSequenceWindow {
        /// Its value, in packets.
        window: u64,
        /// The most there may be.
        most: u64,
    },
    /// RFC 4340 §9.2: more than the field holds.
    #[error("{value} does not fit the four bits of the field: 0 to {MAX_COVERAGE}")]
    CoverageBits {
        /// Which.
        knob: &'static str,
        /// Its value.
        value: u8,
    },
    /// Both ends have the same knobs: what one sends in part, the other takes whole only.
    #[error("the other side takes only packets that are covered whole (RFC 4340 §9.2.1)")]
    PartialCoverage(u8),
    /// Below what the other end takes.
    #[error(
        "{coverage} is below the least the other side takes, minimum_checksum_coverage = {minimum} (RFC 4340 §9.2.1)"
    )]
    CoverageBelow {
        /// What is sent.
        coverage: u8,
        /// What is taken.
        minimum: u8,
    },
    /// A timer that has run out when it is set.
    #[error("0ms: a timer needs time")]
    Zero(&'static str),
    /// A timer nobody would wait for.
    #[error("{span} is out of range: at most {MAX_TIMER}")]
    TooLong {
        /// Which.
        knob: &'static str,
        /// Its value.
        span: Duration,
    },
    /// The first time above the longest.
    #[error("{first} is above max_timeout ({longest})")]
    RequestTimeout {
        /// `request_timeout`.
        first: Duration,
        /// `max_timeout`.
        longest: Duration,
    },
    /// No IP packet has this size.
    #[error("{0} is not the size of an IP packet: 68B to 65535B")]
    Mtu(Size),
    /// They would be believed and change nothing.
    #[error("these are knobs of CCID 2, which neither direction uses")]
    UnusedWindow,
    /// They would be believed and change nothing.
    #[error("these are knobs of CCID 3 and 4, which neither direction uses")]
    UnusedRate,
    /// A knob of CCID 2.
    #[error(transparent)]
    Window(ccid2::ConfigError),
    /// A knob of CCID 3 or 4.
    #[error(transparent)]
    Rate(rate::ConfigError),
}

impl ConfigError {
    /// The knob, as a scenario has it, a point before each level: `window.min_rto`.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::SequenceWindow { .. } | Self::ShortSequenceWindow { .. } => "sequence_window",
            Self::PartialCoverage(_) | Self::CoverageBelow { .. } => "checksum_coverage",
            Self::CoverageBits { knob, .. } | Self::Zero(knob) | Self::TooLong { knob, .. } => knob,
            Self::RequestTimeout { .. } => "request_timeout",
            Self::Mtu(_) => "mtu",
            Self::UnusedWindow => "window",
            Self::UnusedRate => "rate",
            Self::Window(inner) => return format!("window.{}", inner.key()),
            Self::Rate(inner) => return format!("rate.{}", inner.key()),
        }
        .to_owned()
    }

    /// What may have been meant.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::PartialCoverage(coverage) => {
                Some(format!("minimum_checksum_coverage = {coverage} or less lets it take these"))
            }
            Self::UnusedWindow => Some("those of CCID 3 and 4 are in `rate`".to_owned()),
            Self::UnusedRate => Some("those of CCID 2 are in `window`".to_owned()),
            Self::Rate(inner) => inner.hint().map(str::to_owned),
            _ => None,
        }
    }
}

impl Config {
    /// All that cannot be; empty if there is nothing to say.
    #[must_use]
    pub fn check(&self) -> Vec<ConfigError> {
        let mut found = Vec::new();
        found.extend(self.check_sequence_window());
        found.extend(self.check_coverage());
        found.extend(self.check_timers());
        if !MTU.contains(&self.mtu.as_bytes()) {
            found.push(ConfigError::Mtu(self.mtu));
        }
        found.extend(self.check_unused());
        found.extend(self.window.check(self.profile).into_iter().map(ConfigError::Window));
        found.extend(self.rate.check().into_iter().map(ConfigError::Rate));
        found
    }

    fn check_sequence_window(&self) -> Option<ConfigError> {
        let (window, most) = (self.sequence_window?, self.most_window());
        if (seqno::MIN_WINDOW..=most).contains(&window) {
            None
        } else if window > most && self.allow_short_seqnos {
            Some(ConfigError::ShortSequenceWindow { window, most })
        } else {
            Some(ConfigError::SequenceWindow { window, most })
        }
    }

    fn check_coverage(&self) -> Vec<ConfigError> {
        let (coverage, minimum) = (self.checksum_coverage, self.minimum_checksum_coverage);
        let knobs = [("checksum_coverage", coverage), ("minimum_checksum_coverage", minimum)];
        let wide = knobs.into_iter().filter(|(_, value)| *value > MAX_COVERAGE);
        let mut found: Vec<ConfigError> =
            wide.map(|(knob, value)| ConfigError::CoverageBits { knob, value }).collect();
        // RFC 4340 §9.2.1: a coverage below the other side's minimum is refused there.
        if found.is_empty() && coverage > 0 {
            if minimum == 0 {
                found.push(ConfigError::PartialCoverage(coverage));
            } else if coverage < minimum {
                found.push(ConfigError::CoverageBelow { coverage, minimum });
            }
        }
        found
    }

    fn check_timers(&self) -> Vec<ConfigError> {
        let mut found = Vec::new();
        for (knob, span, may_be_zero) in [
            ("request_timeout", self.request_timeout, false),
            ("max_timeout", self.max_timeout, false),
            ("give_up", self.give_up, false),
            ("msl", self.msl, true),
        ] {
            if span.is_zero() && !may_be_zero {
                found.push(ConfigError::Zero(knob));
            } else if span > MAX_TIMER {
                found.push(ConfigError::TooLong { knob, span });
            }
        }
        if self.request_timeout > self.max_timeout {
            let (first, longest) = (self.request_timeout, self.max_timeout);
            found.push(ConfigError::RequestTimeout { first, longest });
        }
        found
    }

    /// Parameters of a CCID that neither direction uses.
    fn check_unused(&self) -> Vec<ConfigError> {
        let used = [self.ccid_of(false), self.ccid_of(true)];
        let mut found = Vec::new();
        if !used.contains(&Ccid::Two) && self.window != ccid2::Config::default() {
            found.push(ConfigError::UnusedWindow);
        }
        if !used.iter().any(|ccid| ccid.is_rate_based()) && self.rate != rate::Config::default() {
            found.push(ConfigError::UnusedRate);
        }
        found
    }
}
