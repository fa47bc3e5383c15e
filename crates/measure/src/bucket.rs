//! A token bucket: what may pass at a rate, with bursts.

use talkspurt_proto::time::{Duration, Instant};
use talkspurt_proto::units::Rate;

/// What a byte costs, in bits per second times nanoseconds.
const BYTE: i128 = 8_000_000_000;

/// A token bucket, full at first.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: i128,
    depth: i128,
    /// Negative while more has passed than was permitted.
    tokens: i128,
    filled: Instant,
}

impl Bucket {
    /// Permits bursts of `depth` at the rate, and of so many bytes at least.
    pub(crate) fn new(rate: Rate, depth: Duration, least_bytes: u32) -> Self {
        let rate = i128::from(rate.as_bps());
        let depth = (rate * i128::from(depth.as_nanos())).max(i128::from(least_bytes) * BYTE);
        Self { rate, depth, tokens: depth, filled: Instant::ZERO }
    }

    fn fill(&mut self, now: Instant) {
        let since = now.saturating_since(self.filled).as_nanos();
        self.filled = self.filled.max(now);
        self.tokens = (self.tokens + i128::from(since) * self.rate).min(self.depth);
    }

    /// Whether so many bytes may pass; counts them if they may.
    pub(crate) fn take(&mut self, now: Instant, bytes: u32) -> bool {
        self.fill(now);
        let cost = i128::from(bytes) * BYTE;
        let may = self.tokens >= cost;
        self.tokens -= if may { cost } else { 0 };
        may
    }

    /// Whether no more has passed than was permitted.
    pub(crate) fn is_positive(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.tokens >= 0
    }

    /// When it will be half full, from now.
    pub(crate) fn half_full_in(&mut self, now: Instant) -> Duration {
        self.fill(now);
        let missing = (self.depth / 2 - self.tokens).max(0);
        let nanos = (missing + self.rate - 1) / self.rate.max(1);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Counts bytes that pass in any case: later ones wait for them.
    pub(crate) fn charge(&mut self, now: Instant, bytes: u32) {
        self.fill(now);
        self.tokens -= i128::from(bytes) * BYTE;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_passes_in_any_case_is_paid_later() {
        // 8 kbit/s: a byte per millisecond.
        let mut bucket = Bucket::new(Rate::from_bps(8000), Duration::from_millis(10), 0);
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        assert!(bucket.take(at(0), 10));
        assert!(!bucket.take(at(0), 1));
        bucket.charge(at(0), 5);
        assert!(!bucket.take(at(5), 1));
        assert!(bucket.take(at(6), 1));
        // Nothing is left; half of ten bytes come in 5 ms.
        assert_eq!(bucket.half_full_in(at(6)), Duration::from_millis(5));
        assert_eq!(bucket.half_full_in(at(11)), Duration::ZERO);
        assert!(bucket.is_positive(at(11)));
        bucket.charge(at(11), 6);
        assert!(!bucket.is_positive(at(11)) && bucket.is_positive(at(12)));
    }

    proptest! {
        /// Over any time, no more passes than the rate and a burst.
        #[test]
        fn no_more_passes_than_the_rate_and_a_burst(
            bps in 1_u64..100_000_000,
            packets in prop::collection::vec((0_u64..50_000_000, 1_u32..1500), 1..200),
        ) {
            let mut bucket = Bucket::new(Rate::from_bps(bps), Duration::from_millis(100), 1500);
            let (mut now, mut passed) = (Instant::ZERO, 0.0);
            for (after, bytes) in packets {
                now += Duration::from_nanos(after);
                passed += if bucket.take(now, bytes) { 8.0 * f64::from(bytes) } else { 0.0 };
                let burst = (bps as f64 * 0.1).max(12_000.0);
                let most = bps as f64 * (now - Instant::ZERO).as_secs_f64() + burst;
                prop_assert!(passed <= most * (1.0 + 1e-9) + 1e-6);
            }
        }
    }
}
