//! A connection's own deadlines, apart from those of its CCIDs. Each is a plain field; the driver
//! learns the earliest when there is nothing more to do.

use crate::time::{Duration, Instant, earlier};

/// The deadlines.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    /// Next retransmission of what the present state repeats: Request, Listen, PARTOPEN's Ack,
    /// CloseReq or Close.
    pub(super) repeat: Option<Instant>,
    /// The present wait between two of them.
    pub(super) wait: Duration,
    /// The present state is given up.
    pub(super) give_up: Option<Instant>,
    /// Next retransmission of Change options (RFC 4340 §6.6.3).
    pub(super) change: Option<Instant>,
    /// The present wait between two of them.
    pub(super) change_wait: Duration,
    /// End of TIMEWAIT.
    pub(super) time_wait: Option<Instant>,
}

impl Timers {
    /// The earliest.
    pub(super) fn next(&self) -> Option<Instant> {
        [self.repeat, self.give_up, self.change, self.time_wait].into_iter().fold(None, earlier)
    }

    /// Clears `deadline` and says whether it had come.
    pub(super) fn due(deadline: &mut Option<Instant>, now: Instant) -> bool {
        let due = deadline.is_some_and(|at| at <= now);
        if due {
            *deadline = None;
        }
        due
    }

    /// Repeats from now on, first after `wait`.
    pub(super) fn repeat_after(&mut self, now: Instant, wait: Duration) {
        (self.repeat, self.wait) = (Some(now + wait), wait);
    }

    /// The repetition has come: the next is twice as far, up to `most`.
    pub(super) fn back_off(&mut self, now: Instant, most: Duration) {
        self.repeat_after(now, (self.wait * 2).min(most.max(self.wait)));
    }
}
