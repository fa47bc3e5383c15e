//! `X_recv_set`: the receive rates a sender keeps to bound its own rate (RFC 5348 §4.2, §4.3), and
//! how it knows that it has been data-limited (§8.2.1).

use crate::time::{Duration, Instant};

/// Receive rates of the last two round trips, in bytes per second.
#[derive(Clone, Debug)]
pub(super) struct ReceiveSet {
    /// When each came. An infinite one stands for the time before there were any.
    rates: Vec<(Instant, f64)>,
}

/// Reports a sender may get within two round trips and be remembered by. A receiver sends one in a
/// round trip and one for each loss event; of more, the largest is kept.
const KEPT: usize = 64;

impl ReceiveSet {
    /// Bytes held.
    pub(super) fn footprint(&self) -> usize {
        self.rates.capacity() * size_of::<(Instant, f64)>()
    }

    /// RFC 5348 §4.2: holds only infinity.
    pub(super) fn new(now: Instant) -> Self {
        Self { rates: vec![(now, f64::INFINITY)] }
    }

    /// RFC 5348 §4.3, Maximize X_recv_set: infinity leaves, the rate joins, and only the largest
    /// stays, as of now.
    pub(super) fn maximize(&mut self, now: Instant, rate: f64) {
        self.rates.retain(|(_, rate)| rate.is_finite());
        self.rates.push((now, rate));
        self.replace(now, self.highest());
    }

    /// RFC 5348 §4.3, Update X_recv_set: the rate joins, those older than two round trips leave.
    pub(super) fn update(&mut self, now: Instant, rate: f64, rtt: Duration) {
        self.rates.push((now, rate));
        self.rates.retain(|(at, _)| now.saturating_since(*at) <= rtt * 2);
        if self.rates.len() > KEPT {
            self.replace(now, self.highest());
        }
    }

    /// Every entry halved (RFC 5348 §4.3 step 4).
    pub(super) fn halve(&mut self) {
        self.rates.iter_mut().for_each(|(_, rate)| *rate /= 2.0);
    }

    /// Only this rate (RFC 5348 §4.4, Update_Limits).
    pub(super) fn replace(&mut self, now: Instant, rate: f64) {
        self.rates.clear();
        self.rates.push((now, rate));
    }

    /// The largest of the set.
    pub(super) fn highest(&self) -> f64 {
        self.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }
}

/// Instants at which the sender had sent all it was allowed to (RFC 5348 §8.2.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// NotLimited1: the first such instant not covered by feedback.
    first: Option<Instant>,
    /// NotLimited2: the first such instant since the last feedback came.
    second: Option<Instant>,
    /// t_new: when the last packet covered by feedback was sent.
    covered: Option<Instant>,
    /// t_next: when the last feedback came.
    heard: Option<Instant>,
}

impl Limits {
    /// The sender has sent all it was allowed to.
    #[inline]
    pub(super) fn not_limited(&mut self, now: Instant) {
        if self.first <= self.covered {
            self.first = Some(now);
        } else if self.second <= self.heard {
            self.second = Some(now);
        }
    }

    /// Feedback came that covers what was sent up to `covered`. True if the sender was data-limited
    /// all the time since the last one's.
    #[inline]
    pub(super) fn on_feedback(&mut self, now: Instant, covered: Instant) -> bool {
        let (from, to) = (self.covered, Some(covered));
        let inside = |at: Option<Instant>| at > from && at <= to;
        let limited = !inside(self.first) && !inside(self.second);
        if self.first <= to && self.second > to {
            self.first = self.second;
        }
        self.covered = from.max(to);
        self.heard = Some(now);
        limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// RFC 5348 §8.2.1: what counts is whether the sender was at its limit when it sent what the
    /// feedback covers, not when the feedback comes.
    #[test]
    fn limits_are_those_of_what_was_covered() {
        let mut limits = Limits::default();
        assert!(limits.on_feedback(at(100), at(50)));
        limits.not_limited(at(120));
        assert!(limits.on_feedback(at(200), at(110)), "120 is not covered yet");
        assert!(!limits.on_feedback(at(300), at(210)), "now it is");
        assert!(limits.on_feedback(at(400), at(310)), "and was before");
    }

    /// §8.2.1: the second variable remembers an instant while the first waits to be covered, and
    /// takes its place.
    #[test]
    fn two_instants_are_remembered() {
        let mut limits = Limits::default();
        limits.on_feedback(at(100), at(50));
        limits.not_limited(at(120));
        limits.not_limited(at(150));
        assert!(!limits.on_feedback(at(200), at(130)));
        limits.not_limited(at(220));
        limits.not_limited(at(260));
        assert!(!limits.on_feedback(at(300), at(160)), "150 was not forgotten");
        assert!(!limits.on_feedback(at(400), at(230)));
    }

    /// §4.3: Maximize lets infinity go and keeps the largest as of now.
    #[test]
    fn maximize() {
        let mut set = ReceiveSet::new(at(0));
        assert!(set.highest().is_infinite());
        for (now, rate, highest) in [(100, 5.0, 5.0), (400, 3.0, 5.0), (700, 7.0, 7.0)] {
            set.maximize(at(now), rate);
            assert_eq!(set.rates, [(at(now), highest)]);
        }
    }
}
