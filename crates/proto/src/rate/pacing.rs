//! When the next packet may leave (RFC 5348 §4.6, §8.3): nominal instants are t_ipi apart; a packet
//! may leave slightly early, and unused time is lost except for a credit.

use crate::time::{Duration, Instant};

use super::config::{Idle, Parameters};

/// The schedule of a sender's packets.
#[derive(Clone, Debug)]
pub(super) struct Pacing {
    granularity: Duration,
    credit: Duration,
    minimum: Duration,
    /// t_n: the nominal instant of the last packet sent.
    nominal: Option<Instant>,
    /// When it left.
    left: Instant,
    /// ns-2's TFRC (`send_timer_`): the interval is fixed when a packet leaves; later feedback does not
    /// change it.
    timer: bool,
    /// When the fixed interval ends.
    expires: Instant,
}

impl Pacing {
    pub(super) const fn new(parameters: &Parameters) -> Self {
        Self {
            granularity: parameters.timer_granularity,
            credit: parameters.credit,
            minimum: parameters.minimum_interval,
            nominal: None,
            left: Instant::ZERO,
            timer: matches!(parameters.idle, Idle::Ns2),
            expires: Instant::ZERO,
        }
    }

    /// RFC 5348 §8.3: no packet leaves more than half a round trip early.
    pub(super) fn bound(&mut self, granularity: Duration, rtt: Duration) {
        self.granularity = granularity.min(rtt);
    }

    /// The next packet may leave at any time.
    pub(super) fn release(&mut self) {
        self.nominal = None;
    }

    /// The first instant at which a packet may leave with `interval` between packets; `None` before
    /// the first, which need not wait.
    pub(super) fn next(&self, interval: Duration) -> Option<Instant> {
        let due = self.nominal? + interval;
        if self.timer {
            return Some(self.expires);
        }
        // RFC 5348 §8.3: t_delta = min(t_ipi, t_gran, rtt)/2.
        let early = interval.min(self.granularity) / 2;
        let due = Instant::from_nanos(due.as_nanos().saturating_sub(early.as_nanos()));
        // RFC 4828 §4.3: packets are at least this far apart, whatever the credit.
        Some(due.max(self.left + self.minimum).min(Instant::HORIZON))
    }

    /// A packet left. Unused time since its nominal instant is kept up to the credit, and up to a
    /// round trip (RFC 5348 §4.6).
    pub(super) fn on_sent(&mut self, now: Instant, interval: Duration, rtt: Option<Duration>) {
        let due = self.nominal.map_or(now, |nominal| nominal + interval);
        let credit = self.credit.min(rtt.unwrap_or(Duration::ZERO));
        let kept = Instant::from_nanos(now.as_nanos().saturating_sub(credit.as_nanos()));
        self.nominal = Some(due.max(kept));
        self.left = now;
        self.expires = (now + interval).min(Instant::HORIZON);
    }
}
