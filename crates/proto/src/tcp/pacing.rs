//! Pacing: segments leave in quanta spaced by the controller's rate (draft-ietf-ccwg-bbr-06 §5.6.2,
//! §5.6.3). Only data is paced.

use super::Tcp;
use crate::congestion::CongestionControl;
use crate::seq::Seq;
use crate::time::{Duration, Instant, due};

/// The schedule of a paced sender.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    /// C.next_send_time: when the next quantum leaves.
    next: Instant,
    /// Bytes of this quantum still to leave.
    left: u64,
    /// When pending data may leave.
    pub(super) wake: Option<Instant>,
    /// Window usage in this round trip and in the last.
    usage: [Usage; 2],
    /// Acknowledgement of this ends the round trip.
    round: Seq,
}

/// Window usage in a round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// Maximum bytes in flight.
    most: u64,
    /// The window blocked a further segment.
    limited: bool,
}

impl Tcp {
    /// True if data, if any, has to wait.
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
        // Before the first RTT sample the initial window leaves at once.
        let Some(rate) = self.cc.pacing_rate(&self.rtt) else { return };
        if pacing.next <= now {
            (pacing.next, pacing.left) = (now, self.cc.pacing_burst(rate, self.tx.mss));
        }
        pacing.left = pacing.left.saturating_sub(bytes);
        pacing.next += rate.time_for(bytes).unwrap_or(Duration::ZERO);
    }

    /// Everything permitted has left. A paced sender never has a full window in flight when an
    /// acknowledgement arrives; this records whether the window was used in the round trip.
    #[inline(never)]
    pub(super) fn note_usage(&mut self) {
        let (most, window) = (self.pipe(), self.present_window());
        let (una, max) = (self.tx.una, self.tx.max);
        let unsent = self.tx.end() > max && max < una + self.tx.window;
        let held = unsent && self.cc.is_held_by_pace();
        let Some(pacing) = &mut self.pacing else { return };
        let limited = most + self.tx.mss > window || held && pacing.wake.is_some();
        if una >= pacing.round {
            pacing.usage = [Usage::default(), pacing.usage[0]];
            pacing.round = max + 1;
        }
        let this = &mut pacing.usage[0];
        (this.most, this.limited) = (this.most.max(most), this.limited || limited);
    }

    /// True if the window, not the application or the peer, limits the sender, with `flight` bytes in
    /// flight before the current acknowledgement. For a paced sender the last two round trips decide:
    /// the window was full, or in slow start at least half used, which is what two windows per round
    /// trip keep in flight (RFC 7661 §4.3; Linux `tcp_is_cwnd_limited`).
    #[inline]
    pub(super) fn is_window_limited(&self, flight: u64) -> bool {
        let window = self.cc.window();
        match &self.pacing {
            None => flight + self.tx.mss > window,
            Some(pacing) => {
                let starts = self.cc.threshold().is_none_or(|threshold| window < threshold);
                let used = |usage: &Usage| usage.limited || (starts && window < 2 * usage.most);
                pacing.usage.iter().any(used)
            }
        }
    }

    /// The pacing timer, which only wakes the endpoint.
    pub(super) fn on_turn(&mut self, now: Instant) {
        if let Some(pacing) = &mut self.pacing {
            due(&mut pacing.wake, now);
        }
    }
}
