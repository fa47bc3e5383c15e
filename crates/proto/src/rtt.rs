//! Round-trip time and retransmission timeout (RFC 6298 §2, with the smaller gains of RFC 7323
//! appendix G when a window yields many samples). Integer nanoseconds throughout.

use crate::time::Duration;

/// RFC 6298 §2.1: the timeout before the first measurement.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// RFC 6298 §5.7: the timeout for data after a SYN had to be repeated.
const RTO_AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// SRTT, RTTVAR and RTO of one path.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    /// SRTT and RTTVAR, once there has been a sample.
    smoothed: Option<(Duration, Duration)>,
    latest: Duration,
    least: Duration,
    rto: Duration,
    min_rto: Duration,
    max_rto: Duration,
    granularity: Duration,
}

impl RttEstimator {
    /// An estimator without samples. `granularity` is that of the clock samples are taken with
    /// (G in RFC 6298 §2).
    #[must_use]
    pub fn new(min_rto: Duration, max_rto: Duration, granularity: Duration) -> Self {
        let max_rto = max_rto.max(min_rto);
        Self {
            smoothed: None,
            latest: Duration::ZERO,
            least: Duration::MAX,
            rto: INITIAL_RTO.clamp(min_rto, max_rto),
            min_rto,
            max_rto,
            granularity,
        }
    }

    /// With another timeout before the first measurement: RFC 2988 §2.1 had 3 s.
    #[must_use]
    pub fn starting_with(mut self, rto: Duration) -> Self {
        self.rto = rto.clamp(self.min_rto, self.max_rto);
        self
    }

    /// Adds a measurement. `samples` is the number expected per round trip (RFC 7323 appendix G:
    /// ⌈flight / (2 · SMSS)⌉); 1 when one segment per round trip is timed.
    #[inline]
    pub fn sample(&mut self, rtt: Duration, samples: u64) {
        self.latest = rtt;
        self.least = self.least.min(rtt);
        let (srtt, rttvar) = match self.smoothed {
            // RFC 6298 §2.2
            None => (rtt, rtt / 2),
            // RFC 6298 §2.3: alpha = 1/8, beta = 1/4; RFC 7323 appendix G divides both.
            Some((srtt, rttvar)) => {
                let samples = samples.max(1);
                (
                    towards(srtt, rtt, samples.saturating_mul(8)),
                    towards(rttvar, srtt.abs_diff(rtt), samples.saturating_mul(4)),
                )
            }
        };
        self.smoothed = Some((srtt, rttvar));
        // RFC 6298 §2.3 to §2.5
        let rto = srtt + (rttvar * 4).max(self.granularity);
        self.rto = rto.clamp(self.min_rto, self.max_rto);
    }

    /// RFC 6298 §5.5: doubles the timeout, up to its upper bound. The next sample undoes it.
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.max_rto);
    }

    /// RFC 6298 §5.7: the timer expired on a SYN, and data transfer begins. A longer timeout that was
    /// measured with timestamps remains (appendix A).
    pub fn syn_was_lost(&mut self) {
        let measured = self.smoothed.map_or(Duration::ZERO, |_| self.rto);
        self.rto = measured.max(RTO_AFTER_LOST_SYN).clamp(self.min_rto, self.max_rto);
    }

    /// The last sample is the first after a spurious timeout (RFC 4015 §3.1 step 11): SRTT and RTTVAR
    /// are at least what they were `before` it, and at least what this one sample gives.
    pub fn after_needless_timeout(&mut self, before: &Self) {
        let (srtt, rttvar) = before.smoothed.unwrap_or_default();
        let srtt = (srtt + self.granularity * 2).max(self.latest);
        let rttvar = rttvar.max(self.latest / 2);
        self.smoothed = Some((srtt, rttvar));
        let rto = srtt + (rttvar * 4).max(self.granularity);
        self.rto = rto.clamp(self.min_rto, self.max_rto);
    }

    /// The current retransmission timeout, including back-off.
    #[must_use]
    pub const fn rto(&self) -> Duration {
        self.rto
    }
    /// The upper bound of the timeout.
    #[must_use]
    pub const fn max_rto(&self) -> Duration {
        self.max_rto
    }
    /// The smoothed round-trip time, once measured.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.smoothed.map(|(srtt, _)| srtt)
    }
    /// The last sample, once there is one.
    #[must_use]
    pub fn latest(&self) -> Option<Duration> {
        self.smoothed.map(|_| self.latest)
    }
    /// The smallest sample, once there is one.
    #[must_use]
    pub fn least(&self) -> Option<Duration> {
        self.smoothed.map(|_| self.least)
    }
}

/// `from` moved towards `to` by one `parts`-th of the way.
fn towards(from: Duration, to: Duration, parts: u64) -> Duration {
    if to > from { from + (to - from) / parts } else { from - (from - to) / parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn first_and_second_sample_by_hand() {
        let mut rtt = RttEstimator::new(MS, Duration::from_secs(60), MS);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.sample(MS * 100, 1);
        assert_eq!((rtt.srtt(), rtt.rto()), (Some(MS * 100), MS * 300));
        // SRTT = 7/8 · 100 + 1/8 · 180 = 110; RTTVAR = 3/4 · 50 + 1/4 · 80 = 57.5
        rtt.sample(MS * 180, 1);
        assert_eq!((rtt.srtt(), rtt.rto()), (Some(MS * 110), MS * 340));
    }

    #[test]
    fn many_samples_a_window_weigh_less_each() {
        let mut rtt = RttEstimator::new(MS, Duration::from_secs(60), MS);
        rtt.sample(MS * 100, 10);
        rtt.sample(MS * 180, 10);
        assert_eq!(rtt.srtt(), Some(MS * 101));
    }
}
