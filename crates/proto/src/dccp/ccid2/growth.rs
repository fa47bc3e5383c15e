//! Window growth while the application does not fill the window: draft-ietf-ccwg-ratelimited-increase
//! or RFC 2861, as [`Limited`] says; and the effect of idle periods.

use super::config::{Idle, Limited, SlowStart};
use crate::congestion::{CongestionControl, Machine};
use crate::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Growth {
    rule: Limited,
    slow_start: SlowStart,
    /// Largest flight since the window last fell (the draft's maxFS).
    most: u64,
    /// Pending growth in half packets in slow start (RFC 4341 §5).
    halves: u64,
    /// RFC 2861: when the window was last full or lowered.
    full: Option<Instant>,
    /// RFC 2861: largest flight since then.
    used: u64,
}

impl Growth {
    pub(super) const fn new(rule: Limited, slow_start: SlowStart, initial_window: u64) -> Self {
        // The draft, rules: maxFS starts at the initial window.
        Self { rule, slow_start, most: initial_window, halves: 0, full: None, used: 0 }
    }

    /// The window was lowered for any reason.
    pub(super) const fn on_fall(&mut self) {
        // The draft, rules: reset to zero, so that only later flights count.
        self.most = 0;
        self.halves = 0;
    }

    /// A data packet was sent; `pipe` packets are in the network, itself included.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        pipe: u64,
        initial_window: u64,
        rto: Duration,
        window: &mut Machine,
    ) {
        self.most = self.most.max(pipe);
        if self.rule != Limited::Validate {
            return;
        }
        // RFC 2861 §3.1
        if pipe >= window.window() {
            (self.full, self.used) = (Some(now), 0);
            return;
        }
        self.used = self.used.max(pipe);
        if now.saturating_since(*self.full.get_or_insert(now)) >= rto {
            let used = self.used.max(initial_window);
            if used < window.window() {
                window.raise_threshold(window.window() * 3 / 4);
                window.lower(u64::midpoint(window.window(), used));
            }
            (self.full, self.used) = (Some(now), 0);
        }
    }

    /// The first packet after an idle period of this length is about to be sent.
    pub(super) fn on_idle(
        &mut self,
        now: Instant,
        rule: Idle,
        (silence, rto): (Duration, Duration),
        initial_window: u64,
        window: &mut Machine,
    ) {
        let before = window.window();
        match rule {
            Idle::Keep => {}
            Idle::Restart => window.on_idle(now),
            // RFC 2861 §3.1: halved for each timeout; ssthresh keeps three quarters.
            Idle::Halve => {
                let times = silence.as_nanos() / rto.as_nanos().max(1);
                window.raise_threshold(before * 3 / 4);
                window.lower((before >> times.min(63)).max(initial_window));
                (self.full, self.used) = (Some(now), 0);
            }
        }
        if window.window() < before {
            self.on_fall();
        }
    }

    /// `acked` data packets are acknowledged, none of them marked; `step` grows the window for that
    /// many packets and returns it.
    pub(super) fn on_acked(
        &mut self,
        acked: u64,
        ack_ratio: u16,
        (cwnd, ssthresh): (u64, Option<u64>),
        mut step: impl FnMut(u64) -> u64,
    ) {
        if ssthresh.is_some_and(|ssthresh| cwnd >= ssthresh) {
            self.halves = 0;
            // The draft, rules: limit(maxFS) in congestion avoidance.
            if self.rule != Limited::Limit || cwnd < self.most + 1 {
                step(acked);
            }
            return;
        }
        let (steps, limit) = match self.slow_start {
            SlowStart::PerPacket => (acked, self.most * 2),
            SlowStart::Rfc4341 => {
                // §5: "up to a maximum of Ack Ratio/2 packets per acknowledgement".
                self.halves += acked.min(u64::from(ack_ratio));
                let steps = self.halves / 2;
                self.halves %= 2;
                // limit() is the window after all acknowledgements of a flight of maxFS, at least one
                // packet more.
                (steps, self.most + (self.most / 2).max(1))
            }
        };
        let limit = if self.rule == Limited::Limit { limit } else { u64::MAX };
        let mut reached = cwnd;
        for _ in 0..steps {
            if reached >= limit {
                return;
            }
            reached = step(1);
        }
    }
}
