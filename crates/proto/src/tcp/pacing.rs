//! Pacing: segments leave in quanta that stand apart as the controller's rate says
//! (draft-ietf-ccwg-bbr-06 §5.6.2, §5.6.3). What is not data is not paced.

use super::Tcp;
use super::timers::Timers;
use crate::congestion::{CongestionControl, quantum_at};
use crate::seq::Seq;
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
    /// How much of the window was used in this round trip, and in the last.
    usage: [Usage; 2],
    /// This round trip ends when this is acknowledged.
    round: Seq,
}

/// How much of the window was used in a round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// Most bytes in flight.
    most: u64,
    /// The window let no further segment go.
    limited: bool,
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

    /// All has left that may now. What a paced sender has in flight when an acknowledgement comes is
    /// never a window: it says so of the round trip whether the window was used.
    #[inline(never)]
    pub(super) fn note_usage(&mut self) {
        let (most, window) = (self.pipe(), self.present_window());
        let limited = most + self.tx.mss > window;
        let (una, max) = (self.tx.una, self.tx.max);
        let Some(pacing) = &mut self.pacing else { return };
        if una >= pacing.round {
            pacing.usage = [Usage::default(), pacing.usage[0]];
            pacing.round = max + 1;
        }
        let this = &mut pacing.usage[0];
        (this.most, this.limited) = (this.most.max(most), this.limited || limited);
    }

    /// True if the window, and not the application or the peer, is what holds the sender back, with
    /// `flight` bytes in flight before the acknowledgement at hand came. A paced sender is judged by the
    /// last two round trips: the window was full, or in slow start at least half of it was used, as much
    /// as two windows a round trip bring into flight at a time (RFC 7661 §4.3; Linux
    /// `tcp_is_cwnd_limited`).
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

    /// The pacing timer, which only wakes the endpoint up.
    pub(super) fn on_turn(&mut self, now: Instant) {
        if let Some(pacing) = &mut self.pacing {
            Timers::due(&mut pacing.wake, now);
        }
    }
}
