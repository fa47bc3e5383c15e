//! NewReno's window (RFC 5681 §3.1, §4.1; RFC 6582 §3.2 for the exit from fast recovery).
//!
//! The endpoint inflates the window for duplicate acknowledgements: this estimates what has left
//! the network, and does not decide how much may be in it.
//!
//! An acknowledgement grows the window only if the window limited the sender; otherwise a source
//! that never fills it would get a window never tested on the path (RFC 7661 §1). This is stricter
//! than RFC 5681, which does not specify it.

use super::{Ack, Congestion, CongestionControl, Start};
use crate::rtt::RttEstimator;
use crate::time::Instant;

/// Window and threshold of Reno and NewReno.
#[derive(Clone, Debug)]
pub struct NewReno {
    quantum: u64,
    cwnd: u64,
    ssthresh: Option<u64>,
    /// Minimum quanta after a loss.
    least: u64,
    /// The restart window after an idle time.
    initial_window: u64,
    /// Units acknowledged since the last step of congestion avoidance.
    counted: u64,
}

impl NewReno {
    /// A controller at its start.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        Self {
            quantum: start.quantum.max(1),
            cwnd: start.window.max(start.quantum),
            ssthresh: start.threshold,
            least: 2,
            initial_window: start.window.max(start.quantum),
            counted: 0,
        }
    }
    /// For CCID 2: a loss may leave a window of one quantum (RFC 4341 §5); TCP's minimum is two.
    #[must_use]
    pub const fn down_to_one(mut self) -> Self {
        self.least = 1;
        self
    }
    /// Ends slow start without a reduction (RFC 4341 §5.2). A window of one stays below the minimum
    /// threshold (§5: two), where it grows no faster than in congestion avoidance.
    pub fn end_slow_start(&mut self) {
        let least = self.cwnd.max(2 * self.quantum);
        self.ssthresh = Some(self.ssthresh.map_or(least, |ssthresh| ssthresh.min(least)));
    }
    /// RFC 5681 §3.1 equation 4; RFC 4341 §5: ssthresh is never less than two.
    fn half(&self, flight: u64) -> u64 {
        (flight / 2).max(2 * self.quantum)
    }
}

impl CongestionControl for NewReno {
    #[inline]
    fn window(&self) -> u64 {
        self.cwnd
    }
    #[inline]
    fn threshold(&self) -> Option<u64> {
        self.ssthresh
    }

    #[inline]
    fn on_ack(&mut self, _: Instant, ack: &Ack, _: &RttEstimator) {
        if !ack.window_limited {
            return;
        }
        if self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh) {
            // RFC 5681 §3.1 equation 2: slow start counts bytes, at most one quantum per ACK.
            self.cwnd += ack.acked.min(self.quantum);
            return;
        }
        // RFC 5681 §3.1: congestion avoidance, one quantum per window acknowledged.
        self.counted += ack.acked;
        if self.counted >= self.cwnd {
            self.counted -= self.cwnd;
            // One step per ACK, however much it covers.
            self.counted = self.counted.min(self.cwnd);
            self.cwnd += self.quantum;
        }
    }

    fn on_congestion(&mut self, _: Instant, event: &Congestion) {
        self.counted = 0;
        match *event {
            // RFC 5681 §3.2 steps 2 and 3, without the inflation
            Congestion::Loss { flight } | Congestion::Mark { flight } => {
                self.cwnd = (flight / 2).max(self.least * self.quantum);
                self.ssthresh = Some(self.half(flight));
            }
            // RFC 5681 §3.1: the loss window; ssthresh is held while the same data times out again.
            Congestion::Timeout { flight, again, recovering } => {
                let half = self.half(flight);
                if !again {
                    // "No more than" half of the flight, which grew with duplicate acknowledgements
                    // while the network held less and less of it: one loss is one reduction.
                    let least = self.ssthresh.filter(|_| recovering);
                    self.ssthresh = Some(least.map_or(half, |ssthresh| ssthresh.min(half)));
                }
                self.cwnd = self.quantum;
            }
        }
    }

    fn on_recovered(&mut self, _: Instant, flight: u64) {
        // RFC 6582 §3.2 step 3, full acknowledgement, option 1: no burst when little is in flight.
        let modest = flight.max(self.quantum) + self.quantum;
        self.cwnd = self.ssthresh.map_or(modest, |ssthresh| ssthresh.min(modest));
        self.counted = 0;
    }

    fn on_idle(&mut self, _: Instant) {
        // RFC 5681 §4.1: the restart window.
        self.cwnd = self.cwnd.min(self.initial_window);
        self.counted = 0;
    }

    fn on_quantum(&mut self, quantum: u64) {
        // RFC 5681 §3.1: the window shrinks with the segments, so that they form no burst.
        if quantum < self.quantum {
            let scale = |units: u64| {
                (u128::from(units) * u128::from(quantum) / u128::from(self.quantum)) as u64
            };
            (self.cwnd, self.initial_window) = (scale(self.cwnd), scale(self.initial_window));
        }
        self.quantum = quantum.max(1);
        self.cwnd = self.cwnd.max(self.quantum);
        self.initial_window = self.initial_window.max(self.quantum);
    }

    fn lower(&mut self, window: u64) {
        self.cwnd = self.cwnd.min(window.max(self.quantum));
        self.counted = self.counted.min(self.cwnd);
    }

    fn raise_threshold(&mut self, threshold: u64) {
        self.ssthresh = self.ssthresh.map(|ssthresh| ssthresh.max(threshold));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller() -> NewReno {
        NewReno::new(&Start { quantum: 1000, window: 10_000, threshold: None })
    }

    /// RFC 5681 §3.1 equation 4: max(FlightSize / 2, 2·SMSS). RFC 4341 §5: cwnd may be one packet.
    #[test]
    fn little_in_flight_leaves_two_quanta_and_ccid_2_one() {
        let after = |mut controller: NewReno, flight| {
            controller.on_congestion(Instant::ZERO, &Congestion::Loss { flight });
            (controller.window(), controller.threshold())
        };
        assert_eq!(after(controller(), 10_000), (5000, Some(5000)));
        assert_eq!(after(controller(), 3000), (2000, Some(2000)));
        assert_eq!(after(controller().down_to_one(), 1000), (1000, Some(2000)));
    }

    /// RFC 5681 §3.1: a smaller segment shrinks the window, a larger one does not grow it.
    #[test]
    fn the_window_shrinks_with_the_segment_and_does_not_grow_with_it() {
        let with = |quantum| {
            let mut controller = controller();
            controller.on_quantum(quantum);
            controller.window()
        };
        assert_eq!([500, 1000, 2000].map(with), [5000, 10_000, 10_000]);
        assert_eq!(with(20_000), 20_000, "one segment at least");
    }

    #[test]
    fn a_timeout_in_fast_recovery_does_not_raise_the_threshold() {
        let mut reno = controller();
        reno.on_congestion(Instant::ZERO, &Congestion::Loss { flight: 160_000 });
        assert_eq!(reno.threshold(), Some(80_000));
        // Duplicate acknowledgements have released as much again.
        let timeout = Congestion::Timeout { flight: 270_000, again: false, recovering: true };
        reno.on_congestion(Instant::ZERO, &timeout);
        assert_eq!((reno.threshold(), reno.window()), (Some(80_000), 1000));
        // With less in flight the bound of RFC 5681 §3.1 equation 4 holds.
        let timeout = Congestion::Timeout { flight: 50_000, again: false, recovering: true };
        reno.on_congestion(Instant::ZERO, &timeout);
        assert_eq!(reno.threshold(), Some(25_000));
        let timeout = Congestion::Timeout { flight: 160_000, again: false, recovering: false };
        reno.on_congestion(Instant::ZERO, &timeout);
        assert_eq!(reno.threshold(), Some(80_000));
    }
}
