//! How late packets were: a histogram with buckets of 1/32 of their value.

use serde::Serialize;
use talkspurt_proto::time::Duration;

/// Buckets per doubling.
const STEPS: u64 = 32;
/// Lateness above which a packet counts as late.
const LATE: Duration = Duration::from_millis(1);

/// A histogram of durations in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max: u64,
    late: u64,
}

/// How late packets were: the time for which the emulation may have left them unread, plus that from their
/// virtual arrival to their writing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Packets.
    pub packets: u64,
    /// Half were not later than this, in seconds.
    pub p50_s: Option<f64>,
    /// 99 % were not later.
    pub p99_s: Option<f64>,
    /// 99.9 % were not later.
    pub p999_s: Option<f64>,
    /// The latest.
    pub max_s: Option<f64>,
    /// Share of packets later than a millisecond.
    pub later_than_1ms_ratio: Option<f64>,
}

impl Histogram {
    /// An empty one: all memory is allocated here.
    pub(crate) fn new() -> Self {
        Self { buckets: vec![0; bucket(u64::MAX) + 1], count: 0, max: 0, late: 0 }
    }

    pub(crate) fn add(&mut self, late: Duration) {
        let nanos = late.as_nanos();
        self.buckets[bucket(nanos)] += 1;
        self.count += 1;
        self.max = self.max.max(nanos);
        self.late += u64::from(late > LATE);
    }

    /// The upper bound of the bucket that holds the nearest rank; at most the maximum.
    fn quantile_s(&self, per_thousand: u64) -> Option<f64> {
        let rank = (self.count * per_thousand).div_ceil(1000).max(1);
        let mut seen = 0;
        let holds = |count: &u64| {
            seen += count;
            seen >= rank
        };
        let index = self.buckets.iter().position(holds)?;
        Some(upper(index).min(self.max) as f64 / 1e9)
    }

    pub(crate) fn summary(&self) -> Lateness {
        let share = || self.late as f64 / self.count as f64;
        Lateness {
            packets: self.count,
            p50_s: self.quantile_s(500),
            p99_s: self.quantile_s(990),
            p999_s: self.quantile_s(999),
            max_s: (self.count > 0).then(|| self.max as f64 / 1e9),
            later_than_1ms_ratio: (self.count > 0).then(share),
        }
    }
}

/// Values below [`STEPS`] have buckets of their own; then each doubling has [`STEPS`].
fn bucket(nanos: u64) -> usize {
    let doublings = (nanos / STEPS).checked_ilog2().map_or(0, |log| u64::from(log) + 1);
    let shift = doublings.saturating_sub(1);
    (doublings * STEPS + (nanos >> shift) % STEPS) as usize
}

/// The greatest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let (doublings, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    match doublings.checked_sub(1) {
        None => step,
        Some(shift) => ((STEPS + step) << shift) + ((1 << shift) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_bucket_whose_bound_is_within_a_thirty_second() {
        let mut value: u64 = 1;
        while value < u64::MAX / 5 {
            for nanos in [value, value + value / 3, value + value / 2] {
                let bound = upper(bucket(nanos));
                assert!(nanos <= bound && bound - nanos <= nanos / STEPS, "{nanos} {bound}");
                assert_eq!(bucket(bound), bucket(nanos));
                assert_ne!(bucket(bound + 1), bucket(nanos));
            }
            value = value * 2 + 1;
        }
        assert_eq!(bucket(0), 0);
        assert!(bucket(u64::MAX) < 64 * STEPS as usize);
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let mut all = Histogram::new();
        assert_eq!(all.summary(), Lateness::default());
        for micros in 1..=1000 {
            all.add(Duration::from_micros(2 * micros));
        }
        let found = all.summary();
        let near = |found: Option<f64>, exact: f64| {
            let found = found.expect("there are packets");
            assert!(exact <= found && found <= exact * 33.0 / 32.0, "{found} {exact}");
        };
        near(found.p50_s, 1000e-6);
        near(found.p99_s, 1980e-6);
        near(found.p999_s, 1998e-6);
        assert_eq!((found.max_s, found.later_than_1ms_ratio), (Some(2e-3), Some(0.5)));
    }
}
