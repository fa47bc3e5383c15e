//! An exact token bucket, used by the meters of RFC 2697 and RFC 2698 and by shapers.
//!
//! Tokens are counted in billionths of a bit: at any integer rate a nanosecond yields an integer number of
//! tokens, so nothing is rounded.

use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::{Rate, Size};

/// Billionths of a bit in a byte.
const PER_BYTE: u128 = 8_000_000_000;

/// Tokens that arrive at a rate and are kept up to a depth; the bucket starts full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    rate_bps: u64,
    depth: u128,
    level: u128,
    at: Instant,
}

impl Bucket {
    pub(crate) fn new(rate: Rate, depth: Size) -> Self {
        let depth = u128::from(depth.as_bytes()) * PER_BYTE;
        Self { rate_bps: rate.as_bps(), depth, level: depth, at: Instant::ZERO }
    }

    pub(crate) fn rate(&self) -> Rate {
        Rate::from_bps(self.rate_bps)
    }

    /// Adds the tokens that arrived up to `now`; returns the overflow.
    pub(crate) fn fill(&mut self, now: Instant) -> u128 {
        let nanos = now.saturating_since(self.at).as_nanos();
        self.at = now;
        self.add(u128::from(self.rate_bps) * u128::from(nanos))
    }

    /// Adds tokens; returns the overflow.
    pub(crate) fn add(&mut self, tokens: u128) -> u128 {
        let level = self.level + tokens;
        self.level = level.min(self.depth);
        level - self.level
    }

    /// Whether there are enough tokens for `bytes`.
    pub(crate) fn holds(&self, bytes: u32) -> bool {
        self.level >= u128::from(bytes) * PER_BYTE
    }

    pub(crate) fn take(&mut self, bytes: u32) {
        self.level -= u128::from(bytes) * PER_BYTE;
    }

    /// When there will be tokens for `bytes` (at most the depth) if none are taken before.
    pub(crate) fn ready(&self, bytes: u32) -> Instant {
        let lacking = (u128::from(bytes) * PER_BYTE).saturating_sub(self.level);
        let nanos = lacking.div_ceil(u128::from(self.rate_bps.max(1)));
        self.at + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Tokens in bytes at the last update.
    pub(crate) fn level_bytes(&self) -> f64 {
        self.level as f64 / PER_BYTE as f64
    }
}
