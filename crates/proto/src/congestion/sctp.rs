//! The window of one path of an SCTP association (RFC 9260 §7.2): slow start and congestion avoidance
//! count bytes; a loss halves the window, not the flight, and never below four full-sized chunks.

use super::{Ack, Congestion, CongestionControl, Start};
use crate::rtt::RttEstimator;
use crate::time::Instant;

/// RFC 9260 §7.2.3: minimum window after a loss, in full-sized chunks.
const LEAST: u64 = 4;

/// Window and threshold of a path.
#[derive(Clone, Debug)]
pub struct Sctp {
    quantum: u64,
    cwnd: u64,
    ssthresh: Option<u64>,
    /// partial_bytes_acked
    partial: u64,
    /// The window has been reduced for idleness since data was last sent.
    idle: bool,
}

impl Sctp {
    /// An initial controller; the quantum is the path's largest DATA chunk (PMDCS).
    #[must_use]
    pub fn new(start: &Start) -> Self {
        let window = start.window.max(start.quantum);
        Self {
            quantum: start.quantum.max(1),
            cwnd: window,
            ssthresh: start.threshold,
            partial: 0,
            idle: false,
        }
    }
}

impl CongestionControl for Sctp {
    fn window(&self) -> u64 {
        self.cwnd
    }
    fn threshold(&self) -> Option<u64> {
        self.ssthresh
    }

    fn on_ack(&mut self, _: Instant, ack: &Ack, _: &RttEstimator) {
        self.idle = false;
        if self.ssthresh.is_none_or(|ssthresh| self.cwnd <= ssthresh) {
            // §7.2.1: only while the window is fully used, and by at most one full-sized chunk.
            if ack.window_limited {
                self.cwnd += ack.acked.min(self.quantum);
            }
        } else {
            // §7.2.2
            self.partial += ack.acked;
            if self.partial >= self.cwnd && ack.window_limited {
                self.partial -= self.cwnd;
                self.cwnd += self.quantum;
            }
            self.partial = self.partial.min(self.cwnd);
        }
        // §7.2.2, last paragraph: everything is acknowledged.
        if ack.acked >= ack.flight {
            self.partial = 0;
        }
    }

    fn on_congestion(&mut self, _: Instant, event: &Congestion) {
        // §7.2.3
        let half = (self.cwnd / 2).max(LEAST * self.quantum);
        self.ssthresh = Some(half);
        self.cwnd = match event {
            Congestion::Loss { .. } | Congestion::Mark { .. } => half,
            Congestion::Timeout { .. } => self.quantum,
        };
        self.partial = 0;
    }

    /// Called once per retransmission timeout without data.
    fn on_idle(&mut self, _: Instant) {
        // §7.2.1, on idle paths
        if !std::mem::replace(&mut self.idle, true) {
            self.ssthresh = Some(self.cwnd);
        }
        self.cwnd = self.cwnd.min((self.cwnd / 2).max(LEAST * self.quantum));
    }

    fn on_quantum(&mut self, quantum: u64) {
        self.quantum = quantum.max(1);
        self.cwnd = self.cwnd.max(self.quantum);
    }

    fn lower(&mut self, window: u64) {
        self.cwnd = self.cwnd.min(window.max(self.quantum));
        self.partial = self.partial.min(self.cwnd);
    }

    fn raise_threshold(&mut self, threshold: u64) {
        self.ssthresh = self.ssthresh.map(|ssthresh| ssthresh.max(threshold));
    }
}
