//! t_RTO of the throughput equation (RFC 5348 §3.1): four round trips, or, as in ns-2's TFRC
//! (`tfrc.cc`, `update_rtt`), the retransmission timeout of a TCP whose clock ticks every 100 ms.

use crate::time::Duration;

/// A tick of ns-2's clock (`tcp_tick_`).
pub(super) const TICK: f64 = 0.1;

/// The timeout of a TCP with a coarse clock: SRTT in eighths and RTTVAR in quarters of a tick, both
/// integers (Jacobson 1988), RTO = SRTT + 4 RTTVAR rounded down to a tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoarseTimeout {
    srtt: i64,
    rttvar: i64,
}

impl CoarseTimeout {
    /// Adds a round-trip time, rounded to the nearest tick, at least one.
    pub fn measure(&mut self, sample: Duration) {
        // The conversion rounds non-negative values down.
        let ticks = ((sample.as_secs_f64() / TICK + 0.5) as i64).max(1);
        if self.srtt == 0 {
            *self = Self { srtt: ticks << 3, rttvar: ticks << 1 };
            return;
        }
        let error = ticks - (self.srtt >> 3);
        self.srtt = (self.srtt + error).max(1);
        self.rttvar = (self.rttvar + error.abs() - (self.rttvar >> 2)).max(1);
    }

    /// t_RTO in ticks; zero before any measurement.
    #[must_use]
    pub const fn ticks(self) -> i64 {
        ((self.rttvar << 3) + self.srtt) >> 3
    }

    /// t_RTO in seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.ticks() as f64 * TICK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 100 ms is a tick, SRTT 8 eighths, RTTVAR 2 quarters, (2·8 + 8)/8 = 3 ticks; repetition
    /// changes nothing, since a quarter of 2 is 0. 600 ms: 48 and 12, 18 ticks, then (3·8 + 48)/8 = 9.
    #[test]
    fn by_hand() {
        for (millis, first, last) in [(20, 0.3, 0.3), (100, 0.3, 0.3), (600, 1.8, 0.9)] {
            let mut timeout = CoarseTimeout::default();
            timeout.measure(Duration::from_millis(millis));
            assert!((timeout.seconds() - first).abs() < 1e-9, "{millis}");
            (0..50).for_each(|_| timeout.measure(Duration::from_millis(millis)));
            assert!((timeout.seconds() - last).abs() < 1e-9, "{millis}: {}", timeout.seconds());
        }
    }
}
