//! CUBIC's window (RFC 9438), with the slow start of RFC 9406 (HyStart++) as on real hosts.
//!
//! The equations count segments and seconds in floating point, with functions from [`crate::math`];
//! windows are rounded down to whole bytes. An acknowledgement grows the window only if the window
//! limited the sender (RFC 9438 §5.8).

use super::hystart::{Hystart, L};
use super::{Ack, Congestion, CongestionControl, Start};
use crate::math;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Instant};

/// RFC 9438 §4.6: β_cubic.
const BETA: f64 = 0.7;
/// RFC 9438 §4.1.1 and §5.1: C, in segments per second cubed.
const C: f64 = 0.4;
/// RFC 9438 §4.3: the additive increase factor with which the estimate of Reno's window has the
/// same average as Reno's own.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// A congestion avoidance stage, between two reductions.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// When it began.
    since: Instant,
    /// Seconds from the beginning to the plateau: K.
    k: f64,
    /// Window in segments at the beginning: `cwnd_epoch`.
    from: f64,
    /// Estimate of Reno's window, in segments: `W_est`.
    estimate: f64,
}

/// CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    quantum: u64,
    cwnd: u64,
    /// Fractional byte of cwnd, for the steps of the equations.
    fraction: f64,
    ssthresh: Option<u64>,
    initial_window: u64,
    /// `W_max`, in segments: the window before the last reduction, or less (§4.7).
    plateau: f64,
    /// `cwnd_prior`, in segments.
    prior: f64,
    epoch: Option<Epoch>,
    /// When the window last grew, to exclude idle time from the epoch (§5.8).
    active: Instant,
    hystart: Option<Hystart>,
    /// Maximum segments counted per acknowledgement in the first slow start: L of RFC 9406 §4.3.
    most: u64,
}

impl Cubic {
    /// A controller at its start, with or without HyStart++.
    #[must_use]
    pub fn new(start: &Start, hystart: bool) -> Self {
        let window = start.window.max(start.quantum);
        Self {
            quantum: start.quantum.max(1),
            cwnd: window,
            fraction: 0.0,
            ssthresh: start.threshold,
            initial_window: window,
            plateau: 0.0,
            prior: 0.0,
            epoch: None,
            active: Instant::ZERO,
            hystart: hystart.then(Hystart::default),
            most: L,
        }
    }

    /// For a sender that paces, whose segments form no burst however many one acknowledgement
    /// releases: RFC 9406 §4.3 sets no bound to L then.
    #[must_use]
    pub const fn paced(mut self) -> Self {
        self.most = u64::MAX;
        self
    }

    fn segments(&self, units: u64) -> f64 {
        units as f64 / self.quantum as f64
    }

    /// §4.2: begins a stage. Without a preceding reduction (slow start ended by HyStart++ or by a
    /// configured threshold) its plateau is the current window.
    fn begin(&self, now: Instant) -> Epoch {
        let from = self.segments(self.cwnd);
        // Equation 2; below the plateau K is the time to it.
        let k = if self.plateau > from { math::cbrt((self.plateau - from) / C) } else { 0.0 };
        Epoch { since: now, k, from, estimate: from }
    }

    /// §4.2 to §4.5
    fn avoid(&mut self, now: Instant, ack: &Ack, rtt: &RttEstimator) {
        let mut epoch = self.epoch.take().unwrap_or_else(|| self.begin(now));
        let plateau = self.plateau.max(epoch.from);
        let cwnd = self.segments(self.cwnd) + self.fraction / self.quantum as f64;
        let acked = self.segments(ack.acked);
        // §4.3, equation 4: Reno's full step once the estimate reaches `prior`.
        let step = if epoch.estimate >= self.prior { 1.0 } else { ALPHA };
        epoch.estimate += step * acked / cwnd;
        self.epoch = Some(epoch);
        let elapsed = now.saturating_since(epoch.since);
        // Equation 1
        let cubic = |t: f64| C * (t - epoch.k) * (t - epoch.k) * (t - epoch.k) + plateau;
        if cubic(elapsed.as_secs_f64()) < epoch.estimate {
            // §4.3: the region in which Reno would be faster.
            return self.grow_to(epoch.estimate.max(cwnd));
        }
        let ahead = elapsed + rtt.srtt().unwrap_or(Duration::ZERO);
        // §4.2: target
        let target = cubic(ahead.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
        // §4.4, §4.5: (target − cwnd) / cwnd for each segment acknowledged.
        self.grow_to(cwnd + (target - cwnd) / cwnd * acked);
    }

    fn grow_to(&mut self, segments: f64) {
        let units = segments * self.quantum as f64;
        self.cwnd = (units as u64).max(self.quantum);
        self.fraction = (units - self.cwnd as f64).clamp(0.0, 1.0);
    }

    /// §4.6 and §4.7: the next plateau and the threshold.
    fn reduce(&mut self, flight: u64) -> u64 {
        let cwnd = self.segments(self.cwnd);
        // §4.7, fast convergence: a flow that lost before it had recovered makes room for newer ones.
        let below = cwnd < self.plateau;
        self.plateau = if below { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.prior = cwnd;
        self.epoch = None;
        self.fraction = 0.0;
        // RFC 9406 §4.3: only for the first slow start.
        self.hystart = None;
        // §4.6: at least two segments.
        ((flight as f64 * BETA) as u64).max(2 * self.quantum)
    }
}

impl CongestionControl for Cubic {
    fn window(&self) -> u64 {
        self.cwnd
    }
    fn threshold(&self) -> Option<u64> {
        self.ssthresh
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack, rtt: &RttEstimator) {
        if !ack.window_limited {
            // §5.8: time in which the window was not fully used does not count.
            if let Some(epoch) = &mut self.epoch {
                epoch.since += now.saturating_since(self.active);
            }
            self.active = now;
            return;
        }
        self.active = now;
        if self.ssthresh.is_some_and(|ssthresh| self.cwnd >= ssthresh) {
            return self.avoid(now, ack, rtt);
        }
        let Some(hystart) = &mut self.hystart else {
            // RFC 5681 §3.1 equation 2
            self.cwnd += ack.acked.min(self.quantum);
            return;
        };
        let sample = rtt.latest().unwrap_or(Duration::MAX);
        self.cwnd +=
            hystart.step(ack.acked.min(self.most.saturating_mul(self.quantum)), ack, sample);
        if hystart.is_over() {
            (self.ssthresh, self.hystart) = (Some(self.cwnd), None);
        }
    }

    fn on_congestion(&mut self, _: Instant, event: &Congestion) {
        match *event {
            Congestion::Loss { flight } => {
                let threshold = self.reduce(flight);
                (self.ssthresh, self.cwnd) = (Some(threshold), threshold);
            }
            // §4.6: a mark may leave a window of one segment.
            Congestion::Mark { flight } => {
                self.ssthresh = Some(self.reduce(flight));
                self.cwnd = ((flight as f64 * BETA) as u64).max(self.quantum);
            }
            // §4.8: the threshold is β of the flight, the window RFC 5681's.
            Congestion::Timeout { flight, again, recovering } => {
                if !again && !recovering {
                    self.ssthresh = Some(self.reduce(flight));
                }
                // The next stage gets a new plateau.
                self.plateau = 0.0;
                (self.cwnd, self.epoch, self.fraction) = (self.quantum, None, 0.0);
            }
        }
    }

    fn on_recovered(&mut self, now: Instant, flight: u64) {
        let modest = flight.max(self.quantum) + self.quantum;
        self.cwnd = self.ssthresh.map_or(modest, |ssthresh| ssthresh.min(modest));
        (self.epoch, self.active) = (None, now);
    }

    fn on_idle(&mut self, now: Instant) {
        // RFC 5681 §4.1; RFC 9438 §5.8: the stage continues from there.
        self.cwnd = self.cwnd.min(self.initial_window);
        (self.epoch, self.fraction, self.active) = (None, 0.0, now);
    }

    fn on_quantum(&mut self, quantum: u64) {
        let quantum = quantum.max(1);
        if quantum < self.quantum {
            let scale = |units: u64| {
                (u128::from(units) * u128::from(quantum) / u128::from(self.quantum)) as u64
            };
            (self.cwnd, self.initial_window) = (scale(self.cwnd), scale(self.initial_window));
        }
        self.quantum = quantum;
        self.cwnd = self.cwnd.max(quantum);
        self.initial_window = self.initial_window.max(quantum);
        (self.epoch, self.fraction) = (None, 0.0);
    }

    fn lower(&mut self, window: u64) {
        if window < self.cwnd {
            self.cwnd = window.max(self.quantum);
            (self.epoch, self.fraction) = (None, 0.0);
        }
    }

    fn raise_threshold(&mut self, threshold: u64) {
        self.ssthresh = self.ssthresh.map(|ssthresh| ssthresh.max(threshold));
    }
}
