//! When the next packet may leave (RFC 5348 §4.6, §8.3): packets stand t_ipi apart on a line of
//! nominal instants; one may leave a little early, and time nobody used is lost but for a credit.

use crate::time::{Duration, Instant};

use super::config::{Idle, Parameters};

/// The schedule of a sender's packets.
#[derive(Clone, Debug)]
pub(super) struct Pacing {
    granularity: Duration,
    credit: Duration,
    minimum: Duration,
    /// t_n: the nominal instant of the packet that left last.
    nominal: Option<Instant>,
    /// When it left.
    left: Instant,
    /// ns-2's TFRC (`send_timer_`): the interval is fixed when a packet leaves; later feedback does not
    /// change it.
    timer: bool,
    /// When the interval that was fixed ends.
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

    /// The next packet may leave whenever it will.
    pub(super) fn release(&mut self) {
        self.nominal = None;
    }

    /// The first instant at which a packet may leave if they stand `interval` apart; `None` before
    /// the first, which waits for nothing.
    pub(super) fn next(&self, interval: Duration) -> Option<Instant> {
        let due = self.nominal? + interval;
        if self.timer {
            return Some(self.expires);
        }
        // RFC 5348 §8.3: t_delta = min(t_ipi, t_gran, rtt)/2.
        let early = interval.min(self.granularity) / 2;
        let due = Instant::from_nanos(due.as_nanos().saturating_sub(early.as_nanos()));
        // RFC 4828 §4.3: however much credit there is, packets stand at least so far apart.
        Some(due.max(self.left + self.minimum).min(Instant::HORIZON))
    }

    /// A packet left. Of the time since its nominal instant no more than the credit, and no more
    /// than a round trip (RFC 5348 §4.6), is kept for those after it.
    pub(super) fn on_sent(&mut self, now: Instant, interval: Duration, rtt: Option<Duration>) {
        let due = self.nominal.map_or(now, |nominal| nominal + interval);
        let credit = self.credit.min(rtt.unwrap_or(Duration::ZERO));
        let kept = Instant::from_nanos(now.as_nanos().saturating_sub(credit.as_nanos()));
        self.nominal = Some(due.max(kept));
        self.left = now;
        self.expires = (now + interval).min(Instant::HORIZON);
    }
}
