//! A connection's own deadlines, apart from those of its CCIDs. Each is a plain field; the driver
//! learns the earliest when there is nothing more to do.

use crate::time::{Duration, Instant, earlier};

/// The deadlines.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    /// Next retransmission in the current state: Request, Listen, PARTOPEN's Ack, CloseReq or Close.
    pub(super) repeat: Option<Instant>,
    /// Current interval between retransmissions.
    pub(super) wait: Duration,
    /// When the current state is abandoned.
    pub(super) give_up: Option<Instant>,
    /// Next retransmission of Change options (RFC 4340 §6.6.3).
    pub(super) change: Option<Instant>,
    /// Current interval between retransmissions of Changes.
    pub(super) change_wait: Duration,
    /// End of TIMEWAIT.
    pub(super) time_wait: Option<Instant>,
}

impl Timers {
    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        [self.repeat, self.give_up, self.change, self.time_wait].into_iter().fold(None, earlier)
    }

    /// Starts retransmission, first after `wait`.
    pub(super) fn repeat_after(&mut self, now: Instant, wait: Duration) {
        (self.repeat, self.wait) = (Some(now + wait), wait);
    }

    /// A retransmission is due: the next interval is twice as long, up to `most`.
    pub(super) fn back_off(&mut self, now: Instant, most: Duration) {
        self.repeat_after(now, (self.wait * 2).min(most.max(self.wait)));
    }
}
