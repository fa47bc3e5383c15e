//! The window of ns-2.35's Tahoe, Reno and NewReno (`tcp/tcp.cc`: `opencwnd` with `windowOption_` 1,
//! and `slowdown`), where it differs from RFC 5681 as in `newreno`. cwnd is a fractional number of
//! packets; its whole part may be in flight.

use super::{Ack, Congestion, CongestionControl, Start};
use crate::rtt::RttEstimator;
use crate::time::Instant;

/// Minimum threshold after a loss, in packets.
const MIN_THRESHOLD: f64 = 2.0;

/// Window and threshold as in ns-2.
#[derive(Clone, Debug)]
pub struct Ns2 {
    quantum: u64,
    /// Quanta that may be in flight.
    cwnd: f64,
    /// Quanta; infinite before any loss.
    ssthresh: f64,
}

impl Ns2 {
    /// A controller at its start.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        let quantum = start.quantum.max(1);
        let quanta = |units: u64| units as f64 / quantum as f64;
        Self {
            quantum,
            cwnd: quanta(start.window).max(1.0),
            ssthresh: start.threshold.map_or(f64::INFINITY, quanta),
        }
    }

    /// An acknowledgement of new data: adds a packet, or its share of a window.
    fn grow(&mut self) {
        self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
    }

    fn units(&self, quanta: f64) -> u64 {
        // The cast saturates at the integer's bounds.
        (quanta * self.quantum as f64) as u64
    }
}

impl CongestionControl for Ns2 {
    fn window(&self) -> u64 {
        self.units(self.cwnd)
    }
    fn threshold(&self) -> Option<u64> {
        self.ssthresh.is_finite().then(|| self.units(self.ssthresh))
    }

    /// Grows however much it covers, and whether or not the window was full.
    fn on_ack(&mut self, _: Instant, _: &Ack, _: &RttEstimator) {
        self.grow();
    }

    /// Half of the window, not of the flight; the threshold is in whole packets.
    fn on_congestion(&mut self, _: Instant, event: &Congestion) {
        let half = self.cwnd / 2.0;
        self.ssthresh = half.floor().max(MIN_THRESHOLD);
        self.cwnd = match event {
            Congestion::Loss { .. } | Congestion::Mark { .. } => half.max(1.0),
            Congestion::Timeout { .. } => 1.0,
        };
    }

    /// The window stays as the loss left it, and grows by the acknowledgement that ends recovery.
    fn on_recovered(&mut self, _: Instant, _: u64) {
        self.grow();
    }

    fn on_quantum(&mut self, quantum: u64) {
        if quantum > self.quantum {
            // RFC 5681 §3.1: larger segments do not grow the window; ns-2's never change.
            self.cwnd = (self.cwnd * self.quantum as f64 / quantum as f64).max(1.0);
        }
        self.quantum = quantum.max(1);
    }

    fn lower(&mut self, window: u64) {
        self.cwnd = self.cwnd.min(window as f64 / self.quantum as f64).max(1.0);
    }

    fn raise_threshold(&mut self, threshold: u64) {
        if self.ssthresh.is_finite() {
            self.ssthresh = self.ssthresh.max(threshold as f64 / self.quantum as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    fn grown(controller: &mut Ns2, acks: usize, acked: u64) -> u64 {
        let rtt = RttEstimator::new(Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let ack = Ack { acked, flight: 0, window_limited: false };
        (0..acks).for_each(|_| controller.on_ack(Instant::ZERO, &ack, &rtt));
        controller.window()
    }

    fn controller(window: u64, threshold: Option<u64>) -> Ns2 {
        Ns2::new(&Start { quantum: 1000, window, threshold })
    }

    #[test]
    fn acknowledgements_are_counted_not_bytes() {
        assert_eq!(grown(&mut controller(10_000, None), 1, 9000), 11_000);
        // 10 + 1/10 + 1/10.1
        assert_eq!(grown(&mut controller(10_000, Some(5000)), 2, 9000), 10_199);
    }

    #[test]
    fn a_loss_halves_the_window_and_the_threshold_is_whole() {
        let mut reno = controller(13_000, Some(13_000));
        reno.on_congestion(Instant::ZERO, &Congestion::Loss { flight: 4000 });
        assert_eq!((reno.window(), reno.threshold()), (6500, Some(6000)));
        // End of recovery: 6.5 + 1/6.5.
        reno.on_recovered(Instant::ZERO, 2000);
        assert_eq!(reno.window(), 6653);
        let timeout = Congestion::Timeout { flight: 9000, again: true, recovering: true };
        reno.on_congestion(Instant::ZERO, &timeout);
        assert_eq!((reno.window(), reno.threshold()), (1000, Some(3000)));
        reno.on_congestion(Instant::ZERO, &timeout);
        assert_eq!((reno.window(), reno.threshold()), (1000, Some(2000)), "two at least");
    }

    #[test]
    fn silence_costs_nothing() {
        let mut reno = controller(2000, None);
        grown(&mut reno, 8, 1000);
        reno.on_idle(Instant::ZERO);
        assert_eq!(reno.window(), 10_000);
    }
}
