//! Pacing: segments leave in quanta that stand apart as the controller's rate says
//! (draft-ietf-ccwg-bbr-06 §5.6.2, §5.6.3). What is not data is not paced.

use super::Tcp;
use super::timers::Timers;
use crate::congestion::{CongestionControl, quantum_at};
use crate::time::{Duration, Instant};

/// The schedule of a paced sender.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    /// C.next_send_time: the next quantum leaves then.
    next: Instant,
    /// Bytes of this quantum that may still leave.
    left: u64,
    /// What is to be sent waits until then.
    pub(super) wake: Option<Instant>,
}

impl Tcp {
    /// True if data has to wait, of which there may be none.
    #[inline(never)]
    pub(super) fn waits_for_its_turn(&mut self, now: Instant) -> bool {
        let Some(pacing) = &mut self.pacing else { return false };
        let waits = now < pacing.next && pacing.left == 0;
        pacing.wake = waits.then(|| pacing.next.min(Instant::HORIZON));
        waits
    }

    /// `bytes` leave.
    #[inline(never)]
    pub(super) fn take_its_turn(&mut self, now: Instant, bytes: u64) {
        let Some(pacing) = &mut self.pacing else { return };
        // Before there is a round trip the initial window leaves at once.
        let Some(rate) = self.cc.pacing_rate(&self.rtt) else { return };
        if pacing.next <= now {
            (pacing.next, pacing.left) = (now, quantum_at(rate, self.tx.mss));
        }
        pacing.left = pacing.left.saturating_sub(bytes);
        pacing.next += rate.time_for(bytes).unwrap_or(Duration::ZERO);
    }

    /// The pacing timer, which only wakes the endpoint up.
    pub(super) fn on_turn(&mut self, now: Instant) {
        if let Some(pacing) = &mut self.pacing {
            Timers::due(&mut pacing.wake, now);
        }
    }
}
