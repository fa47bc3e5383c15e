//! A connection's deadlines, as plain fields without a queue; the driver learns the earliest when
//! the endpoint is idle.

use crate::time::{Duration, Instant, earlier};

/// The deadlines of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    /// Retransmission (RFC 6298 §5).
    pub(super) rto: Option<Instant>,
    /// Zero-window probe, or the override of silly-window avoidance (RFC 9293 §3.8.6.1, §3.8.6.2).
    pub(super) persist: Option<Instant>,
    /// Delayed acknowledgement (RFC 5681 §4.2).
    pub(super) ack: Option<Instant>,
    /// End of TIME-WAIT (RFC 9293 §3.6.1).
    pub(super) time_wait: Option<Instant>,
    /// The current interval between probes.
    pub(super) persist_wait: Duration,
}

impl Timers {
    /// The earliest deadline.
    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        earlier(earlier(self.rto, self.persist), earlier(self.ack, self.time_wait))
    }
}
