//! A node's clock, with an offset from true time and a drift.
//!
//! A peer runs entirely by its own clock: intervals, timers and timestamps. The driver uses true time; the peer
//! converts at its interface.

use talkspurt_proto::time::Instant;

const BILLION: i128 = 1_000_000_000;

/// Conversion between true time and one node's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    offset_nanos: u64,
    /// Nanoseconds gained per second of true time.
    drift_ppb: i64,
}

impl Clock {
    /// A clock `offset_nanos` ahead at the start that gains `drift_ppm` microseconds per second.
    #[must_use]
    pub fn new(offset_nanos: u64, drift_ppm: f64) -> Self {
        Self { offset_nanos, drift_ppb: (drift_ppm * 1000.0).round() as i64 }
    }

    /// The clock's time at this true time.
    #[inline]
    #[must_use]
    pub fn local(&self, truth: Instant) -> Instant {
        if self.drift_ppb == 0 {
            return Instant::from_nanos(truth.as_nanos() + self.offset_nanos);
        }
        self.drifted(truth)
    }

    // Clocks that drift are rare, and inlined divisions would take the registers of the code around them.
    #[cold]
    #[inline(never)]
    fn drifted(&self, truth: Instant) -> Instant {
        let truth = i128::from(truth.as_nanos());
        let gained = truth * i128::from(self.drift_ppb) / BILLION;
        Instant::from_nanos((truth + gained) as u64 + self.offset_nanos)
    }

    /// The first true time at which the clock shows `local` or more.
    #[inline]
    #[must_use]
    pub fn truth(&self, local: Instant) -> Instant {
        let since = local.as_nanos().saturating_sub(self.offset_nanos);
        if self.drift_ppb == 0 {
            return Instant::from_nanos(since);
        }
        self.truth_of_drifted(local, since)
    }

    #[cold]
    #[inline(never)]
    fn truth_of_drifted(&self, local: Instant, since: u64) -> Instant {
        let mut truth =
            (i128::from(since) * BILLION / (BILLION + i128::from(self.drift_ppb))) as u64;
        // The two roundings differ by at most a few nanoseconds.
        truth = truth.saturating_sub(2);
        while self.local(Instant::from_nanos(truth)) < local {
            truth += 1;
        }
        Instant::from_nanos(truth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fast_clock_gains() {
        let clock = Clock::new(5, 100.0);
        assert_eq!(clock.local(Instant::from_nanos(1_000_000_000)).as_nanos(), 1_000_100_005);
    }

    proptest! {
        #[test]
        fn truth_is_the_first_instant_that_shows_it(offset in 0_u64..1 << 40, ppm in -500.0..500.0, local in 1_u64 << 41..1 << 47) {
            let clock = Clock::new(offset, ppm);
            let truth = clock.truth(Instant::from_nanos(local));
            prop_assert!(clock.local(truth).as_nanos() >= local);
            prop_assert!(clock.local(Instant::from_nanos(truth.as_nanos() - 1)).as_nanos() < local);
        }
    }
}
